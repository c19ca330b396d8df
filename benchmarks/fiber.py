"""Fibers of deep attention: unique factorization against one plain Groebner basis, as ratios, and the largest size in 60 s.

    python benchmarks/fiber.py [--seconds 60]

Both ways run the same Macaulay2 on this machine, one after the other; each time is the better of two. A way that does not finish
in the time allowed is shown as a bound; plain equations with more than 100,000 terms each are not formed at all ("not run").
"""

from __future__ import annotations

import argparse
import math
import time

from m2bridge.engine import Engine, Limits, open_engine
from m2bridge.linear.primes import MACAULAY2_PRIME
from m2bridge.models import parse_spec
from m2bridge.questions.fiber.computed import plain
from m2bridge.questions.fiber.deep import factored
from m2bridge.questions.fiber.request import estimated_terms
from m2bridge.questions.kernel import Asking
from m2bridge.questions.point import random_point

MOST_TERMS = 100_000
SIZES = ("2,2,2", "2,2,3", "3,3,1", "3,3,3", "4,4,4", "5,5,5", "2,2,2,2", "3,3,3,3")


def timed(way: str, engine: Engine, widths: str, seconds: float) -> tuple[float, str | None]:
    """Seconds of the better of two runs, and what was found; None when it was cut off or did not decide."""
    point = random_point(parse_spec(f"deep-lightning(d=[{widths}],t=2,parametrization=virtual)"), 0)
    best, found = float("inf"), None
    for _ in range(2):
        ask = Asking(
            engine=engine, prime=None, seed=0, limits=Limits(wall_seconds=seconds), keep=None, progress=None
        )
        start = time.perf_counter()
        if way == "plain":
            terms = estimated_terms(point.model)
            if terms > MOST_TERMS:
                return float("nan"), None
            outcome = plain(ask, point, MACAULAY2_PRIME, 0, again=False)
        else:
            outcome = factored(ask, point, MACAULAY2_PRIME, 0)
        best = min(best, time.perf_counter() - start)
        if outcome.components is None:
            return best, None
        found = f"dim {outcome.fiber_dim}, {len(outcome.components)} component(s)"
        if best > seconds / 3:
            break
    return best, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    print(f"{'widths':>10} {'structured s':>13} {'plain s':>9} {'plain/structured':>17}  found")
    largest: dict[str, str] = {}
    with open_engine(warm=True) as engine:
        for widths in SIZES:
            fast, found = timed("structured", engine, widths, seconds)
            slow, other = timed("plain", engine, widths, seconds)
            if found and fast <= seconds:
                largest["structured"] = widths
            if other and slow <= seconds:
                largest["plain"] = widths
            formed = not math.isnan(slow)
            bound = "" if other else "> "
            ratio = f"{bound}{slow / fast:.1f}" if found and formed else "" if found else "not decided"
            shown = f"{bound}{slow:.2f}" if formed else "not run"
            agree = "" if not (found and other) or found == other else " DIFFERENT"
            print(
                f"{widths:>10} {fast:13.2f} {shown:>9} {ratio:>17}  {found or other}{agree}",
                flush=True,
            )
    for way, widths in largest.items():
        print(f"largest in {seconds:.0f} s by the {way} way, in the order listed: d = ({widths})")


if __name__ == "__main__":
    main()
