"""Ask twenty questions alone and beside busy loops on the same core: the same statements are expected.

Everything runs on one core (`os.sched_setaffinity`, Linux), first with nothing beside it, then with `--loops` processes that only
count. Statements are the first line of an answer, its certainty, its agreement, its limit and all evidence. Exit code 1 where
two differ and no limit was reached.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from typing import Any

from m2bridge.questions import find

TWENTY: list[tuple[str, str, dict[str, Any]]] = [
    ("dimension", "lightning(d=3,dp=2)", {}),
    ("dimension", "deep-lightning(d=[3,3,3],a=[2,2],t=3)", {}),
    ("dimension", "mlp(widths=[5,5,3,1],r=2)", {}),
    ("dimension", "mlp(widths=[16,32,10],r=2)", {}),
    ("dimension", "softmax(d=[16,16],a=[16],t=4)", {}),
    ("dimension", "transformer(d=3,a=2,t=3)", {}),
    ("symmetries", "mlp(widths=[5,5,3,1],r=2)", {}),
    ("symmetries", "deep-lightning(d=[3,3,3],a=[2,2],t=3)", {}),
    ("symmetries", "transformer(d=3,a=2,t=3)", {}),
    ("closure", "lightning(d=2,dp=1)", {}),
    ("closure", "lightning(d=2,dp=2)", {"field": "QQ"}),
    ("closure", "mlp(widths=[2,2,1],r=2)", {}),
    ("membership", "map:s,t->s^2+t^2;s*t", {"point": [1, 1]}),
    ("membership", "lightning(d=2,dp=1)", {"point": [1, 0, 1, 0, 0, 1]}),
    ("singular-locus", "lightning(d=2,dp=1)", {}),
    ("singular-locus", "map:t->t^2;t^3", {}),
    ("singular-point", "linear(widths=[2,1,2])", {}),
    ("fiber", "lightning(d=2,dp=1,parametrization=attention)", {}),
    ("critical-points", "lightning(d=2,dp=1)", {}),
    ("boundary", "lightning(d=2,dp=1)", {}),
]


def statements(name: str, model: str, options: dict[str, Any]) -> list[Any]:
    """What an answer says, without how long it took."""
    found = find(name)(model, **options)
    evidence = [
        (e.quantity, str(e.value), e.relation, e.witness, e.method, e.certainty) for e in found.evidence
    ]
    return [found.view().answer, found.certainty, found.agreement, found.limit, evidence]


def count_for_ever() -> None:
    while True:
        pass


def main(loops: int) -> int:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    differing = 0
    for name, model, options in TWENTY:
        start = time.monotonic()
        alone = statements(name, model, options)
        middle = time.monotonic()
        beside = [multiprocessing.Process(target=count_for_ever, daemon=True) for _ in range(loops)]
        for process in beside:
            process.start()
        loaded = statements(name, model, options)
        for process in beside:
            process.kill()
        same = alone == loaded
        differing += not same and alone[3] is None and loaded[3] is None
        spent = f"{middle - start:.1f} s alone, {time.monotonic() - middle:.1f} s beside {loops} loops"
        print(f"{'same' if same else 'DIFFERENT'}: {name} {model}: {alone[0]}; {spent}", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--loops", type=int, default=3, help="busy processes on the same core")
    sys.exit(main(arguments.parse_args().loops))
