"""Dimension side by side: the exact routes of m2bridge against the numerical ones that people use.

One run, ratios of times on one machine. ``python benchmarks/dimension.py --output
benchmarks/RESULTS-dimension.md``; ``--quick`` leaves out everything above a few seconds. Environment:
m2bridge; and PyTorch if its rows are wanted (``pip install torch==2.13.0`` in an environment of its own,
m2bridge does not need it). Without PyTorch the rows that need it say so.

Tables: 1. Figure 3 of Henry, Marchetti and Kohn, proved, against the method of its public code and against
torch.func. 2. Large networks: lightning proved over F_p, softmax with units for exponentials. 3. Where
float32 or the default tolerance fail. 4. Negative cases and classical defects.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import table_row, timed

from m2bridge.families import Model, parse_spec
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.jacobians import free_columns, jacobian_block
from m2bridge.programs.points import NOTHING_HELD
from m2bridge.programs.ranks import GenericRank, generic_rank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension import dimension
from m2bridge.questions.dimension.checks import float_witness

FIGURE_3 = tuple(range(3, 11))
LARGE = (
    ((64,) * 3, 2, 3),
    ((128,) * 3, 2, 3),
    ((256,) * 3, 2, 3),
    ((512,) * 3, 2, 3),
    ((64,) * 7, 2, 3),
    ((64,) * 9, 2, 3),
    ((32,) * 13, 2, 3),
    ((64,) * 5, 8, 8),
    ((32,) * 3, 32, 3),
    ((64,) * 3, 64, 3),
)


def model_of(widths: tuple[int, ...], a: int, t: int, softmax: bool) -> Model:
    family = "softmax" if softmax else "deep-lightning"
    sizes = ",".join(map(str, widths))
    return parse_spec(f"{family}(d=[{sizes}],a=[{','.join([str(a)] * (len(widths) - 1))}],t={t})")


def free_count(model: Model) -> int:
    """The free weights of the slice, which bound the dimension."""
    return model.parameter_count - model.knowledge.gauge.count


def rank_of(model: Model) -> GenericRank:
    """Return the rank over F_p that proves the lower bound."""
    known, upper = model.knowledge, free_count(model)
    return generic_rank(
        model.program, held=known.gauge, upper=upper, samples=known.samples, memory_limit=None
    )


# -- 1. Figure 3 ------------------------------------------------------------------------------------------


def figure_3(lines: list[str]) -> None:
    models = [model_of((d,) * 3, 2, 3, True) for d in FIGURE_3]
    rank_of(models[0])  # imports and thread pools are warm for everyone
    proof, ranks = timed(lambda: [rank_of(model) for model in models])
    for rank, model in zip(ranks, models, strict=True):
        assert rank.heuristic is None
        assert rank.rank == free_count(model)
    whole, answers = timed(lambda: [dimension(m, engine=False) for m in models])
    loop, func = torch_times()
    rows = []
    for name, kind, seconds in (
        ("m2bridge, modular rank with units (Ax) and slice", "proved", proof.cpu),
        ("m2bridge.dimension, all witnesses", answers[0].certainty.value, whole.cpu),
        ("public code's method in float64: one backward pass per output, matrix_rank", "estimate", loop),
        ("torch.func vmap(jacrev) in float64, matrix_rank", "estimate", func),
    ):
        ratio = None if seconds is None else f"{seconds / proof.cpu:.1f}"
        rows.append(
            [name, kind, "PyTorch is not installed" if ratio is None else f"{seconds:.3f}", ratio or ""]
        )
    lines += ["", "## Figure 3: l=2, t=3, a=2, delta=3..10, softmax, all eight sizes", ""]
    lines += table(["method", "kind of answer", "seconds", "times the proof"], rows)
    dims = ", ".join(f"{d}: {answer.image_dim}" for d, answer in zip(FIGURE_3, answers, strict=True))
    lines += ["", f"Proved dimensions (delta: dimension): {dims}; each equals Eq. 16."]


def torch_times() -> tuple[float | None, float | None]:
    """Seconds of the two numerical methods over the eight sizes, or None without PyTorch.

    The first is the loop of the paper's public code (giovanni-marchetti/NeuroDim, dim_estimator.py), in float64, with the paper's
    250 samples and one seed where the code takes five.
    """
    try:
        import torch
    except ImportError:
        return None, None
    torch.set_default_dtype(torch.float64)

    def network(flat: Any, x: Any, d: int) -> Any:
        q1, k1, v1, q2, k2, v2 = torch.split(flat, [2 * d, 2 * d, d * d] * 2)
        for q, k, v in ((q1, k1, v1), (q2, k2, v2)):
            scores = x.mT @ (k.reshape(2, d).mT @ q.reshape(2, d)) @ x
            x = v.reshape(d, d) @ x @ torch.softmax(scores, dim=-1).mT
        return x

    samples = 250
    loop = func = 0.0
    for d in FIGURE_3:
        generator = torch.Generator().manual_seed(0)
        flat = torch.randn(2 * (4 * d + d * d), generator=generator, requires_grad=True)
        x = torch.randn(samples, d, 3, generator=generator)
        start = time.process_time()
        outputs = network(flat, x, d).reshape(-1)
        rows = []
        for j in range(len(outputs)):
            flat.grad = None
            outputs[j].backward(retain_graph=True)
            rows.append(flat.grad)
        torch.linalg.matrix_rank(torch.stack(rows))
        loop += time.process_time() - start
        start = time.process_time()
        one = torch.func.jacrev(lambda w, y, d=d: network(w, y, d).reshape(-1))
        matrix = torch.func.vmap(one, in_dims=(None, 0))(flat.detach(), x)
        torch.linalg.matrix_rank(matrix.reshape(-1, flat.numel()))
        func += time.process_time() - start
    return loop, func


# -- 2. large networks ------------------------------------------------------------------------------------


def one(widths: tuple[int, ...], a: int, t: int, softmax: bool) -> dict[str, Any]:
    """Compute the rank of one size in this process: what was found, seconds, peak memory."""
    model = model_of(widths, a, t, softmax)
    took, found = timed(lambda: rank_of(model))
    proved = "proved" if found.rank == free_count(model) else "lower bound"
    return {
        "parameters": model.parameter_count,
        "rank": found.rank,
        "label": proved if found.heuristic is None else "heuristic",
        "seconds": took.cpu,
        "megabytes": peak_megabytes(),
    }


def peak_megabytes() -> float:
    """Peak memory of this process. On Linux ru_maxrss also counts the parent's, VmHWM does not."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(widths: tuple[int, ...], a: int, t: int, softmax: bool, timeout: float) -> dict[str, Any] | None:
    """The same in a process of its own, so that the peak memory is this size's."""
    command = [sys.executable, __file__, "--one", json.dumps([list(widths), a, t, softmax])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def large(lines: list[str], *, quick: bool, timeout: float) -> None:
    sizes = LARGE[:2] if quick else LARGE
    for softmax, equation in ((False, "Eq. 14"), (True, "Eq. 16")):
        rows, points = [], []
        for widths, a, t in sizes:
            name = f"l={len(widths) - 1}, delta={widths[0]}, a={a}, t={t}"
            found = apart(widths, a, t, softmax, timeout)
            if found is None:
                rows.append([name, "", "", "", f"stopped after {timeout:.0f} s", "", ""])
                continue
            value = formula(widths, a, softmax)
            agrees = f"{'=' if found['rank'] == value else '!='} {value}"
            cells = [found["parameters"], found["rank"], agrees, found["label"]]
            rows.append([name, *cells, f"{found['seconds']:.2f}", f"{found['megabytes']:.0f}"])
            if len(widths) == 3 and a == 2:
                points.append((found["parameters"], found["seconds"]))
        kind = "softmax" if softmax else "lightning"
        lines += ["", f"## Large {kind} networks", ""]
        header = ["network", "weights", "dimension", equation, "answer", "seconds", "peak MB"]
        lines += table(header, rows)
        if len(points) > 1:
            x, y = np.log([p for p, _ in points]), np.log([s for _, s in points])
            lines += ["", f"Fitted growth at l=2, a=2: seconds ~ weights^{np.polyfit(x, y, 1)[0]:.2f}."]


def formula(widths: tuple[int, ...], a: int, softmax: bool) -> int:
    """Eq. 14 or 16 for equal widths, to print beside what was computed."""
    d, depth = widths[0], len(widths) - 1
    alpha = min(a, d)
    return depth * (2 * alpha * d - alpha**2) + d * d - (0 if softmax else depth)


# -- 3. where floats fail ---------------------------------------------------------------------------------


def naive_rank(d: int, seed: int, kind: type) -> int:
    """matrix_rank with its default tolerance of the whole Jacobian, N(0, 1) weights and inputs, in one float type."""
    model = model_of((d,) * 3, 2, 3, True)
    rng = np.random.default_rng(seed)
    given = {k: Lettered("", rng.normal(size=s).astype(kind)) for k, s in model.parameters.items()}
    samples = max(250, math.ceil(1.5 * model.parameter_count / (3 * d)))
    given["X"] = Lettered("N", rng.normal(size=(samples, d, 3)).astype(kind))
    matrix = jacobian_block(
        model.program, FloatArithmetic(kind), given, free_columns(model.program, NOTHING_HELD)
    )
    assert matrix.dtype == kind
    return int(np.linalg.matrix_rank(matrix))


def floats(lines: list[str], *, quick: bool) -> None:
    rows = []
    for d in (3, 5, 7, 8, 9, 10) if quick else (3, 5, 7, 8, 9, 10, 16, 24, 32):
        model = model_of((d,) * 3, 2, 3, True)
        found = rank_of(model)
        ours, _ = float_witness(model, found, seed=0, report=None)
        naive = [
            ", ".join(str(naive_rank(d, seed, kind)) for seed in range(3 if d <= 10 else 1))
            for kind in (np.float64, np.float32)
        ]
        lower = found.rank if found.heuristic is None else "not proved"
        numeric = None if ours is None else ours.rank
        rows.append([d, lower, free_count(model), "undecided" if numeric is None else numeric, *naive])
    title = "## Softmax, l=2, a=2, t=3: naive floating point ranks (N(0, 1) weights, default tolerance)"
    header = ["delta", "proved lower", "proved upper", "our float64"]
    naive_columns = [f"{kind} naive, seeds 0..2" for kind in ("float64", "float32")]
    lines += ["", title, "", *table([*header, *naive_columns], rows)]


# -- 4. negative cases ------------------------------------------------------------------------------------


def special(lines: list[str]) -> None:
    cases = (
        ("deep-lightning(d=[3,3,3],a=[2,2],t=1)", "t = 1"),
        ("deep-lightning(d=[2,3,2],a=[2,2],t=3)", "widening widths"),
        ("deep-lightning(d=[3,3,3],a=[1,2],t=3)", "a_1 = 1, then a_2 = 2"),
        ("mlp(widths=[3,5,1],r=4)", "Alexander-Hirschowitz"),
        ("mlp(widths=[4,9,1],r=4)", "Alexander-Hirschowitz"),
        ("mlp(widths=[5,14,1],r=4)", "Alexander-Hirschowitz"),
        ("mlp(widths=[5,7,1],r=3)", "Alexander-Hirschowitz"),
        ("convolution(filters=[3,2,2],r=2)", "sum of k, - L + 1"),
        ("linear(widths=[5,2,3,4])", "determinantal"),
    )
    rows = []
    for spec, why in cases:
        found = dimension(spec, engine=False)
        formula_value = None if found.formula is None else found.formula.value
        bounds = f"{found.lower_bound}..{found.upper_bound}"
        shown = "does not apply" if formula_value is None else formula_value
        rows.append(
            [f"`{spec}`", why, found.image_dim, bounds, found.certainty.value, found.expected_dim, shown]
        )
    lines += ["", "## Negative cases and known defects", ""]
    lines += table(["model", "what", "dimension", "bounds", "certainty", "expected", "formula"], rows)


def table(header: list[str], rows: list[list[Any]]) -> list[str]:
    return [table_row(*cells) for cells in (header, ["---"] * len(header), *rows)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="leave out what takes more than a few seconds")
    parser.add_argument("--timeout", type=float, default=300.0, help="wall seconds for each large size")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        widths, a, t, softmax = json.loads(arguments.one)
        print(json.dumps(one(tuple(widths), a, t, softmax)))
        return
    lines = ["# Dimension, side by side", ""]
    command = "python benchmarks/dimension.py" + (" --quick" if arguments.quick else "")
    lines.append(
        f"Made by `{command}` with Python {platform.python_version()}, NumPy {np.__version__}; one run; "
        "seconds are CPU seconds of one thread (OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1)."
    )
    for stage in (
        figure_3,
        lambda found: large(found, quick=arguments.quick, timeout=arguments.timeout),
        lambda found: floats(found, quick=arguments.quick),
        special,
    ):
        stage(lines)
        if arguments.output:
            arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
