"""Estimates beside reality: each question at ten sizes, predicted and measured seconds and memory, and their ratios.

::

    python benchmarks/estimate.py             # every question, some minutes
    python benchmarks/estimate.py closure     # one of them

Each size runs in a process of its own, so that its peak memory is its own. The exit code is 1 when the median ratio of a
question's seconds is not between 1/3 and 3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

LAYERS = [
    "lightning(d=2,dp=1,a=1)", "lightning(d=2,dp=1)", "lightning(d=2,dp=2,a=1)", "lightning(d=2,dp=2)",
]  # fmt: skip
SMALL = [
    *LAYERS, "linear(widths=[2,1,2])", "linear(widths=[3,2,3])", "mlp(widths=[2,2,2],r=2)", "mlp(widths=[2,2,1],r=3)",
    "convolution(filters=[2,2],r=2)",
]  # fmt: skip
SIZES = {
    "dimension": [
        "lightning(d=2,dp=1)", "lightning(d=4,dp=4)", "lightning(d=8,dp=8)", "lightning(d=16,dp=16)",
        "mlp(widths=[3,5,1],r=4)", "mlp(widths=[8,16,4],r=2)", "deep-lightning(d=[3,3,3],a=[2,2],t=3)",
        "deep-lightning(d=[5,5,5,5],a=[3,3,3],t=3)", "linear(widths=[20,20,20])", "convolution(filters=[4,4,4],r=2)",
    ],
    "closure": [*SMALL, "lightning(d=2,dp=3)"],
    "fiber": [*SMALL, "lightning(d=3,dp=3)"],
    "singular-locus": [*LAYERS, "lightning(d=2,dp=3)", "lightning(d=3,dp=1,a=1)"],
    "boundary": [*LAYERS, "lightning(d=3,dp=2,a=2)"],
}  # fmt: skip
MODULE = "import json, sys; from m2bridge.questions import find; r = find(sys.argv[1])(sys.argv[2], timeout='3m'); "
ONE = MODULE + "print(json.dumps([r.seconds, r.peak_memory_bytes, r.limit]))"


def main(names: list[str]) -> int:
    """Print a table and return the exit code."""
    from m2bridge.questions import find

    wrong = 0
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start")
    for name in names or list(SIZES):
        ratios = []
        for spec in SIZES[name]:
            done = subprocess.run(
                [sys.executable, "-c", ONE, name, spec], capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{name:15s} {spec:45s} {done.stderr.strip().splitlines()[-1][:80]}")
                continue
            seconds, memory, limit = json.loads(done.stdout)
            said = find(name).estimate(spec)
            ratios.append(said.seconds / seconds)
            print(
                f"{name:15s} {spec:45s} {said.seconds:8.2f} s predicted {seconds:8.2f} s measured, ratio {ratios[-1]:5.2f};"
                f" {said.memory_bytes / 2**20:5.0f} and {memory / 2**20:5.0f} MB, ratio {said.memory_bytes / memory:5.2f}"
                + (f" ({limit})" if limit else ""),
                flush=True,
            )
        middle = median(ratios)
        wrong += not 1 / 3 <= middle <= 3
        print(
            f"{name:15s} median ratio {middle:.2f}, from {min(ratios):.2f} to {max(ratios):.2f} at {len(ratios)} sizes"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
