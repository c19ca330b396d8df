"""Macaulay2 and msolve on the same critical points, in one run: which engine counts in how many seconds.

For each network: the number by a formula; Macaulay2's count in a chart as it was, where critical weights at which the
differential drops are computed and removed (cold and warm); Macaulay2's count with a minor inverted; and msolve's, from the
program's polynomials. Wall seconds with Python included; `-` means that the limit was reached::

    python benchmarks/engines.py --seconds 60 > benchmarks/RESULTS-engines.md

The formulas: Chern classes of products of projective spaces. Matrices of rank at most k have the generic ED degree of the dual
variety, matrices of corank at least k; for corank 1 these are products of two projective spaces. A perceptron with 2 inputs, 2
hidden units and quadratic activation maps to all matrices of rank at most 2 with three columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from m2bridge.engine import Engine, open_engine, open_msolve
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.linear.primes import LARGE_PRIME, MACAULAY2_PRIME
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.counting import Counter, generic_ed_degree
from m2bridge.questions.critical_points.losses import metric_loss
from m2bridge.questions.critical_points.solving import count_by_msolve
from m2bridge.questions.kernel import Context

CASES = {
    "lightning(d=2,dp=1)": generic_ed_degree((3, 1), (1, 1)),
    "lightning(d=2,dp=2)": generic_ed_degree((3, 3), (1, 1)),
    "linear(widths=[3,2,3])": generic_ed_degree((2, 2), (1, 1)),
    "mlp(widths=[3,2,1],r=2)": generic_ed_degree((2,), (2,)),
    "mlp(widths=[2,2,3],r=2)": generic_ed_degree((2, 2), (1, 1)),
    "linear(widths=[4,2,3])": generic_ed_degree((3, 2), (1, 1)),
    "linear(widths=[3,2,4])": generic_ed_degree((3, 2), (1, 1)),
    "mlp(widths=[2,2,4],r=2)": generic_ed_degree((3, 2), (1, 1)),
    "mlp(widths=[2,2,2],r=3)": None,
    "linear(widths=[5,2,3])": generic_ed_degree((4, 2), (1, 1)),
    "linear(widths=[3,2,5])": generic_ed_degree((4, 2), (1, 1)),
    "linear(widths=[4,3,4])": generic_ed_degree((3, 3), (1, 1)),
    "linear(widths=[6,2,3])": generic_ed_degree((5, 2), (1, 1)),
    "mlp(widths=[2,2,5],r=2)": generic_ed_degree((4, 2), (1, 1)),
    "mlp(widths=[2,2,6],r=2)": generic_ed_degree((5, 2), (1, 1)),
    "linear(widths=[5,3,4])": generic_ed_degree((4, 3), (1, 1)),
    "mlp(widths=[2,2,1],r=4)": None,
}
"""Specs with the number of regular critical points by a formula; None where only the engines are compared."""


def context_of(engine: Engine, seconds: float) -> Context:
    limits = Limits(wall_seconds=seconds)
    return Context(engine=engine, prime=None, seed=0, limits=limits, keep=None, progress=None)


def plain(spec: str, engine: Engine, seconds: float) -> int | None:
    """Macaulay2's count with a saturation where the differential drops."""
    model = parse_spec(spec).leanest
    source = ExpandedMap(model, MACAULAY2_PRIME, 0)
    loss = metric_loss(model, "generic", 0, 0, small=False)
    counter = Counter(context_of(engine, seconds), loss, MACAULAY2_PRIME)
    return counter.count(model, source.chart_for(special=False, general=False)).points


def localized(spec: str, engine: Engine, seconds: float) -> int | None:
    """Macaulay2's count as `critical-points` does it: by Chern classes' hypotheses or with a minor inverted."""
    model = parse_spec(spec).leanest
    loss = metric_loss(model, "generic", 0, 0, small=False)
    counter = Counter(context_of(engine, seconds), loss, MACAULAY2_PRIME)
    return counter.first(ExpandedMap(model, MACAULAY2_PRIME, 0))[1].points


def by_msolve(spec: str, engine: Engine, seconds: float) -> int | None:
    """msolve's count over another prime."""
    model = parse_spec(spec).leanest
    loss = metric_loss(model, "generic", 0, 0, small=False)
    source = ExpandedMap(model, LARGE_PRIME, 0)
    immersed = spec.startswith("lightning")  # the hypotheses of Chern classes hold
    # a job of msolve has half of the time that is left
    found = count_by_msolve(context_of(engine, 2 * seconds), source, loss, LARGE_PRIME, immersed=immersed)
    return found.points


def timed(run: Callable[[], int | None]) -> str:
    start = time.perf_counter()
    points = run()
    return f"{'-' if points is None else points} ({time.perf_counter() - start:.1f} s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plain-seconds", type=float, help="the limit of the count as it was")
    parser.add_argument("--engine", default=None)
    parser.add_argument("specs", nargs="*", default=list(CASES))
    given = parser.parse_args()
    solver = open_msolve()
    if solver is None:
        parser.error("there is no msolve; install one with `m2bridge engine install --msolve`")
    with open_engine(given.engine) as cold, open_engine(given.engine, warm=True) as warm:
        print(f"Macaulay2 {cold.info.version}, msolve {solver.info.version}; limit {given.seconds:.0f} s.\n")
        print(
            "| network | formula | Macaulay2, as it was | the same, warm | Macaulay2, minor inverted | msolve |"
        )
        print("|---|---|---|---|---|---|")
        short = given.plain_seconds or given.seconds
        for spec in given.specs:
            cells = [
                timed(lambda s=spec: plain(s, cold, short)),
                timed(lambda s=spec: plain(s, warm, short)),
                timed(lambda s=spec: localized(s, warm, given.seconds)),
                timed(lambda s=spec: by_msolve(s, warm, given.seconds)),
            ]
            print(f"| `{spec}` | {CASES.get(spec) or ''} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
