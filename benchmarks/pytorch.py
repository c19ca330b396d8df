"""PyTorch modules: their dimensions with m2bridge, beside torch.func with singular values in float64, in one run.

Run in an environment with the extras ``torch`` and ``plot``:

    python benchmarks/pytorch.py modules      # small modules as people write them; every rank is compared
    python benchmarks/pytorch.py large [N]    # larger modules, up to N weights (default 6000)
    python benchmarks/pytorch.py sweep [N]    # one transformer block, from 1,000 to N weights (default 20000)

Each measurement has a process of its own: processor seconds without imports, wall seconds, and the peak of memory. Certificates
are checked in another process. The table replaces the one of the same name in RESULTS-pytorch.md; the sweep also draws
docs/_static/pytorch_sweep.svg. The environment variables OPENBLAS_NUM_THREADS, OMP_NUM_THREADS and MKL_NUM_THREADS set the
number of threads.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from pytorch_modules import LARGE, MODULES, REFUSED, Case, block_of
from torch import nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from m2bridge import checker, dimension, from_torch
from m2bridge.errors import M2BridgeError

MOST_FLOAT64_WEIGHTS = 11_000
"""Beyond this float64 takes more than 5 GB."""
EXTRA_ROWS = 40
SWEEP = (1000, 2000, 3000, 5000, 7000, 10_000, 14_000, 20_000)
RESULTS = Path(__file__).with_name("RESULTS-pytorch.md")
PICTURE = Path(__file__).parents[1] / "docs/_static/pytorch_sweep.svg"
Found = dict[str, Any]


def case(name: str) -> Case:
    return block_of(int(name)) if name.isdigit() else {**MODULES, **REFUSED, **LARGE}[name]


def by_torch_func(module: nn.Module, shapes: Any) -> Found:
    """Return the rank of the Jacobian at random float64 weights and inputs, and the gap in its singular values."""
    module = module.double().eval()
    weights = {name: torch.randn_like(w) / w.shape[-1] ** 0.5 for name, w in module.named_parameters()}
    count = sum(w.numel() for w in weights.values())
    outputs = module(*[torch.zeros(shape, dtype=torch.double) for shape in shapes]).numel()
    samples = [torch.randn(count // outputs + EXTRA_ROWS, *shape, dtype=torch.double) for shape in shapes]

    def output(w: Any, *x: Any) -> Any:
        return functional_call(module, w, x).flatten()

    batched = vmap(jacrev(output), (None, *(0 for _ in shapes))) if shapes else jacrev(output)
    with sdpa_kernel(SDPBackend.MATH):  # the kernel that vmap knows
        rows = batched(weights, *samples)
    axes = 2 if shapes else 1
    parts = [part.flatten(0, axes - 1).flatten(1) for part in rows.values()]
    jacobian = torch.cat(parts, dim=1)
    values = torch.linalg.svdvals(jacobian)
    rank = int((values > values[0] * max(jacobian.shape) * 2.2e-16).sum())
    gap = float(values[rank - 1] / values[rank]) if rank < len(values) else None
    return {"rank": rank, "gap": gap, "weights": count}


def by_m2bridge(module: nn.Module, shapes: Any, certificate: str) -> Found:
    """Return the bounds of the dimension; the certificate is written to a file."""
    try:
        network = from_torch(module, list(shapes))
    except M2BridgeError as error:
        return {"refused": str(error)}
    found = dimension(network, engine=False, timeout="2h", memory="8G")
    Path(certificate).write_text(json.dumps(found.certificate))
    return {
        "weights": network.parameter_count,
        "rank": found.image_dim,
        "bounds": [found.lower_bound, found.upper_bound],
        "certainty": found.certainty.value,
    }


def measure(name: str, method: str, certificate: str) -> Found:
    """Run one method in this process."""
    make, shapes = case(name)
    torch.manual_seed(0)
    importlib.import_module("torch.export._trace")  # 1.5 s that PyTorch takes once in a process
    cpu, wall = time.process_time(), time.perf_counter()
    module = make()
    found = by_torch_func(module, shapes) if method == "torch" else by_m2bridge(module, shapes, certificate)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return {**found, **seconds, "megabytes": round(used)}


def measured(name: str, method: str, certificate: str) -> Found:
    """Run one method in a process of its own."""
    command = [sys.executable, __file__, "one", name, method, certificate]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return {"failed": (run.stderr.strip().splitlines() or ["?"])[-1][:200]}
    return dict(json.loads(run.stdout.strip().splitlines()[-1]))


def checked(certificate: str) -> Found:
    """Check a certificate in a process of its own; return its outcome, processor seconds and size."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-I", checker.__file__, "--seconds", "7200", certificate]
    outcome = subprocess.run(command, capture_output=True, check=False).returncode
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return {"outcome": outcome, "cpu": cpu, "kilobytes": Path(certificate).stat().st_size // 1000}


def compared(name: str, *, with_float64: bool) -> Found:
    """Measure one module: m2bridge, the check of its certificate, and float64."""
    with tempfile.TemporaryDirectory() as directory:
        certificate = str(Path(directory, "certificate.json"))
        ours = measured(name, "m2bridge", certificate)
        theirs = measured(name, "torch", certificate) if with_float64 else {}
        check = checked(certificate) if ours.get("certainty") == "proved" else {}
    return {"name": name, "ours": ours, "theirs": theirs, "check": check}


def agrees(found: Found) -> bool:
    """Return whether the ranks agree and the certificate was accepted; a refusal agrees."""
    if "rank" not in found["ours"]:
        return "refused" in found["ours"]
    same = found["theirs"].get("rank", found["ours"]["rank"]) == found["ours"]["rank"]
    return same and found["check"].get("outcome", 0) == 0


def seconds(found: Found) -> str:
    return f"{found['cpu']:.1f} ({found['wall']:.1f}) | {found['megabytes']} MB"


def row(found: Found) -> str:
    """Return one line of the table."""
    name, ours, theirs, check = (found[key] for key in ("name", "ours", "theirs", "check"))
    if message := ours.get("refused") or ours.get("failed"):
        return f"| {name} | | {message} | | | | | | |"
    low, high = ours["bounds"]
    answer = f"{low}" if low == high else f"{low} to {high}"
    verified = f"{check['cpu']:.1f} ({check['kilobytes']} kB)" if check else ""
    other = f"{theirs['rank']} | {seconds(theirs)}" if "rank" in theirs else f"{theirs.get('failed', '')} | |"
    first = f"| {name} | {ours['weights']} | {answer}, {ours['certainty']} | {seconds(ours)} | {verified} |"
    return f"{first} {other} |"


def write_table(mode: str, lines: list[str]) -> None:
    """Replace the table of this name in the page of results."""
    begin, end = f"<!-- {mode} -->", f"<!-- end of {mode} -->"
    old = RESULTS.read_text()
    table = "\n".join([begin, *lines, end])
    RESULTS.write_text(re.sub(f"{begin}.*{end}", lambda _: table, old, flags=re.DOTALL))


def draw(results: list[Found]) -> None:
    """Draw processor seconds over weights, both logarithmic."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "m2bridge"})
    figure, axes = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    for key, label in (("ours", "m2bridge, with certificate"), ("theirs", "torch.func and SVD")):
        points = [(f["ours"]["weights"], f[key]["cpu"]) for f in results if "rank" in f[key]]
        axes.loglog(*zip(*points, strict=True), "o-", label=label)
    axes.set_xticks(
        [1000, 2000, 5000, 10_000, 20_000], labels=["1,000", "2,000", "5,000", "10,000", "20,000"]
    )
    axes.minorticks_off()
    axes.set(xlabel="weights", ylabel="processor seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def conditions() -> str:
    """Describe the machine: what the seconds depend on."""
    threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count()
    return f"PyTorch {torch.__version__}, {os.cpu_count()} cores, BLAS threads: {threads}, load {os.getloadavg()[0]:.0f}."


def main() -> None:
    mode, *rest = sys.argv[1:] or ["modules"]
    if mode == "one":
        print(json.dumps(measure(*rest)))
        return
    most = int(rest[0]) if rest else {"large": 6000, "sweep": 20_000}.get(mode, 0)
    names = {
        "modules": [*MODULES, *REFUSED],
        "large": list(LARGE),
        "sweep": [str(n) for n in SWEEP if n <= most],
    }[mode]
    lines = [
        conditions(),
        "",
        "| module | weights | m2bridge | s (wall) | memory | check, s | torch.func, SVD | s (wall) | memory |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(lines))
    results = []
    for name in names:
        count = sum(p.numel() for p in case(name)[0]().parameters())
        if mode == "large" and count > most:
            continue
        results.append(compared(name, with_float64=count <= MOST_FLOAT64_WEIGHTS))
        lines.append(row(results[-1]))
        print(lines[-1], flush=True)
    lines += ["", "All ranks agree." if all(map(agrees, results)) else "RANKS DISAGREE."]
    print(lines[-1])
    if mode == "sweep":
        draw(results)
        lines += ["", f"![Processor seconds over weights](../docs/_static/{PICTURE.name})"]
    write_table(mode, lines)


if __name__ == "__main__":
    main()
