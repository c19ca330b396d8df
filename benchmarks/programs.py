"""Programs beside the starting point: time and memory of dimension(), and the cost of recording and of one Jacobian rank.

One run, each measurement in a process of its own, old and new in turn several times:
``python benchmarks/programs.py --before PATH``, where
PATH is a checkout of the version to compare with (``git worktree add PATH TAG``); ``--large`` measures width 512 instead, and
larger ones without a comparison. Nothing is compared without ``--before``. Times are
processor seconds with one BLAS thread, the best of the repetitions, so that a loaded machine disturbs them little; memory is the
peak of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

DIMENSION = """
import json, resource, sys, time
from m2bridge import dimension
spec, repeats = sys.argv[1], int(sys.argv[2])
if repeats > 1:
    dimension(spec, engine=False, certify=False)
times = []
for _ in range(repeats):
    start = time.process_time()
    found = dimension(spec, engine=False, certify=False)
    times.append(time.process_time() - start)
print(json.dumps([min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, found.image_dim, found.certainty.value]))
"""
LADDER = """
import json, sys, time
import numpy as np
from m2bridge.families import from_callable
from m2bridge.programs.ranks import generic_rank
n = int(sys.argv[1])
start = time.process_time()
model = from_callable(lambda W1, W2, W3, x: W3 @ (W2 @ (W1 @ x) ** 2) ** 2, {"W1": (n, n), "W2": (n, n), "W3": (n, n)}, inputs={"x": (n,)})
recorded = time.process_time() - start
start = time.process_time()
found = generic_rank(model.program, grow=False)
print(json.dumps([model.parameter_count, recorded, time.process_time() - start, found.rank, found.samples]))
"""  # noqa: E501


def measured(code: str, directory: Path, *arguments: str) -> list[object]:
    """What a script prints in a process of its own, with the package of this directory."""
    environment = os.environ | {"PYTHONPATH": str(directory), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [None, None, done.stderr.strip().splitlines()[-1][:60], ""]
    return list(json.loads(done.stdout.splitlines()[-1]))


def compare(before: Path | None, here: Path, widths: list[int], *, repeats: int, rounds: int = 1) -> None:
    """Both versions in turn, `rounds` times; of each the best time and the least memory."""
    for family in ("deep-lightning", "softmax"):
        for d in widths:
            spec = f"{family}(d=[{d},{d},{d}],a=[2,2],t=3)"
            old, new = [], []
            for _ in range(rounds):
                new.append(measured(DIMENSION, here, spec, str(repeats)))
                old.append(
                    measured(DIMENSION, before, spec, str(repeats)) if before else [None, None, "", ""]
                )
            print(row(spec, best(old), best(new)), flush=True)


def best(runs: list[list[object]]) -> list[object]:
    """The least time and the least memory of several runs, and what the first one found; a failed run stands for all."""
    failed = [run for run in runs if not isinstance(run[0], float)]
    return failed[0] if failed else [min(run[k] for run in runs) for k in (0, 1)] + runs[0][2:]  # type: ignore[type-var]


def row(spec: str, old: list[object], new: list[object]) -> str:
    def ratio(k: int) -> str:
        a, b = old[k], new[k]
        return f"{b / a:.2f}" if isinstance(a, float) and isinstance(b, float) else "-"

    def shown(value: object, digits: int) -> str:
        return f"{value:.{digits}f}" if isinstance(value, float) else "-"

    cells = [spec, shown(old[0], 3), shown(new[0], 3), ratio(0), shown(old[1], 0), shown(new[1], 0), ratio(1)]
    return "| " + " | ".join([*cells, str(new[2]), str(new[3]), str(old[2])]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--large", action="store_true", help="widths from 512 on, minutes and gigabytes")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    before = arguments.before.resolve() if arguments.before else None
    load = os.getloadavg()[0]
    print(f"load average at the beginning: {load:.1f} on {os.cpu_count()} cores\n")
    print(
        "| model | before s | now s | ratio | before MB | now MB | ratio | dimension | certainty | before |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    if arguments.large:
        compare(before, here, [512], repeats=1)
        for spec in (
            "deep-lightning(d=[1024,1024,1024],a=[2,2],t=3)",
            "softmax(d=[768,768,768],a=[2,2],t=3)",
        ):
            print(row(spec, [None] * 4, measured(DIMENSION, here, spec, "1")), flush=True)
        print(f"\nload average at the end: {os.getloadavg()[0]:.1f}")
        return
    compare(before, here, [*range(3, 11), 16], repeats=arguments.repeats, rounds=3)
    compare(before, here, [32, 64], repeats=2, rounds=2)
    print("\n| weights | recording s | one Jacobian and its rank s | rank | inputs |\n|---|---|---|---|---|")
    for n in (6, 18, 58):
        count, recorded, ranked, rank, samples = measured(LADDER, here, str(n))
        print(f"| {count} | {recorded:.4f} | {ranked:.3f} | {rank} | {samples} |", flush=True)
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
