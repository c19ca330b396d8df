"""PyTorch modules: their dimensions with m2bridge, beside torch.func with singular values in float64, in one run.

Run in an environment with the extra ``torch``:

    python benchmarks/pytorch.py modules      # small modules as people write them; every rank is compared
    python benchmarks/pytorch.py large [N]    # larger modules, up to N weights (default 6000)
    python benchmarks/pytorch.py sweep [N]    # one transformer block, from 1,000 to N weights (default 20000)

Each measurement has a process of its own: processor seconds without imports, wall seconds, and the peak of memory.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import time
from typing import Any

import torch
from pytorch_modules import LARGE, MODULES, REFUSED, Case, block_of
from torch import nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from m2bridge import dimension, from_torch
from m2bridge.errors import M2BridgeError

MOST_FLOAT64_WEIGHTS = 11_000
"""Beyond this float64 takes more than 5 GB."""
EXTRA_ROWS = 40
SWEEP = (1000, 2000, 3000, 5000, 7000, 10_000, 14_000, 20_000)


def case(name: str) -> Case:
    return block_of(int(name)) if name.isdigit() else {**MODULES, **REFUSED, **LARGE}[name]


def by_torch_func(module: nn.Module, shapes: Any) -> dict[str, Any]:
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


def by_m2bridge(module: nn.Module, shapes: Any) -> dict[str, Any]:
    try:
        network = from_torch(module, list(shapes))
    except M2BridgeError as error:
        return {"refused": str(error)}
    found = dimension(network, engine=False, timeout="2h", memory="8G")
    return {
        "weights": network.parameter_count,
        "rank": found.image_dim,
        "bounds": [found.lower_bound, found.upper_bound],
        "certainty": found.certainty.value,
    }


def measure(name: str, method: str) -> dict[str, Any]:
    """Run one method in this process."""
    make, shapes = case(name)
    torch.manual_seed(0)
    importlib.import_module("torch.export._trace")  # 1.5 s that PyTorch takes once in a process
    cpu, wall = time.process_time(), time.perf_counter()
    module = make()
    found = by_torch_func(module, shapes) if method == "torch" else by_m2bridge(module, shapes)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return {**found, **seconds, "megabytes": round(used)}


def measured(name: str, method: str) -> dict[str, Any]:
    """Run one method in a process of its own."""
    command = [sys.executable, __file__, "one", name, method]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return {"failed": (run.stderr.strip().splitlines() or ["?"])[-1][:200]}
    return dict(json.loads(run.stdout.strip().splitlines()[-1]))


def seconds(found: dict[str, Any]) -> str:
    return f"{found['cpu']:.1f} ({found['wall']:.1f}) | {found['megabytes']} MB"


def row(name: str, *, with_float64: bool = True) -> bool:
    """Print one line of the table; return whether the ranks agree."""
    ours = measured(name, "m2bridge")
    theirs = measured(name, "torch") if with_float64 else {}
    if message := ours.get("refused") or ours.get("failed"):
        print(f"| {name} | | {message} | | | | | |", flush=True)
        return "refused" in ours
    low, high = ours["bounds"]
    answer = f"{low}" if low == high else f"{low} to {high}"
    other = (
        f"{theirs['rank']} | {seconds(theirs)}" if "rank" in theirs else f"{theirs.get('failed', '')} | | "
    )
    print(
        f"| {name} | {ours['weights']} | {answer}, {ours['certainty']} | {seconds(ours)} | {other} |",
        flush=True,
    )
    return "rank" not in theirs or theirs["rank"] == ours["rank"]


def main() -> None:
    mode, *rest = sys.argv[1:] or ["modules"]
    if mode == "one":
        print(json.dumps(measure(*rest)))
        return
    print("| module | weights | m2bridge | s (wall) | memory | torch.func, SVD | s (wall) | memory |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    most = int(rest[0]) if rest else {"large": 6000, "sweep": 20_000}.get(mode, 0)
    names = {
        "modules": [*MODULES, *REFUSED],
        "large": list(LARGE),
        "sweep": [str(n) for n in SWEEP if n <= most],
    }[mode]
    agree = True
    for name in names:
        make, _ = case(name)
        count = sum(p.numel() for p in make().parameters())
        if mode == "large" and count > most:
            continue
        agree &= row(name, with_float64=count <= MOST_FLOAT64_WEIGHTS)
    print("\nAll ranks agree." if agree else "\nRANKS DISAGREE.")


if __name__ == "__main__":
    main()
