"""Critical points by msolve: counts over F_p from the program's polynomials, without any code of Macaulay2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from m2bridge import msolve
from m2bridge.evidence import Evidence
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.counting import NOT_COUNTED, Count, Counter
from m2bridge.questions.critical_points.equations import ChartedMap, charted, inverted_polynomials
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.kernel import Context

SHARE_FOR_MSOLVE = 0.5
"""Of the time left, for each of its jobs."""
MOST_POINTS_BY_MSOLVE = 1000
"""Points of the chart up to which they are counted beside Chern classes (chosen; 543 take ten seconds, 284 less than one)."""
NAME = "critical_points_count"


def count_by_msolve(
    context: Context, source: ExpandedMap, loss: Loss, p: int, *, immersed: bool
) -> tuple[Count, str]:
    """Count the regular critical points of a general loss in a chart over F_p; return also how, or why there is no count.

    `immersed`: the differential drops at no critical point. Otherwise a minor of it is inverted.
    """
    again = ExpandedMap(source.model, p, context.seed + 1)
    fitting = again.chart_for(special=False, general=True)
    map_in_chart = charted(again, fitting if immersed else again.chart(dense=False, scaled=False), p)
    inverted = [] if immersed else inverted_polynomials(map_in_chart, context.seed)
    if inverted is None:
        return NOT_COUNTED, "no count: no minor of the differential is short"
    fiber, reason, _ = _solutions(context, map_in_chart, map_in_chart.fiber(context.seed), inverted)
    if not fiber:
        return NOT_COUNTED, f"no count: {reason or 'the chart does not meet fibers in finitely many points'}"
    degree, reason, seconds = _solutions(context, map_in_chart, map_in_chart.critical(loss), inverted)
    if degree is None or degree % fiber:
        return (
            NOT_COUNTED,
            f"no count: {reason or 'not finitely many points, or not a multiple of the fiber'}",
        )
    count = Count(points=degree // fiber, fiber_degree=fiber, seconds=seconds)
    return count, "F4 on the program's polynomials, with another gauge"


def _solutions(
    context: Context, map_in_chart: ChartedMap, equations: Sequence[Any], inverted: Sequence[Any]
) -> tuple[int | None, str | None, float]:
    """Count solutions, with multiplicities; return None with a reason if there is no count, or if they are infinitely many."""
    system = map_in_chart.system(equations, inverted)
    answer, reason = context.run_msolve(
        msolve.counting_script(NAME, system),
        lambda run: (msolve.leading_monomials(run, system), run.seconds),
        share=SHARE_FOR_MSOLVE,
    )
    if answer is None:
        return None, reason, 0.0
    return msolve.standard_monomials(answer[0]), None, answer[1]


def again_by_msolve(
    counter: Counter, source: ExpandedMap, count: Count, *, immersed: bool, expected: int | None
) -> tuple[Count, bool]:
    """Count the regular points of a general loss by msolve; return the count to use, and whether msolve counted.

    Where Macaulay2 reached a limit, the count is that of msolve, over two primes; the answer still names the limit. `expected` is
    the number by Chern classes.
    """
    context, loss = counter.context, counter.loss
    if not loss.general or context.msolve is None or (expected or 0) > MOST_POINTS_BY_MSOLVE:
        return count, False
    context.report_progress("critical points by msolve")
    alone = count.points is None
    counts = []
    for p in counter.other_primes(source, LARGE_PRIME, 2 if alone else 1):
        solved, method = count_by_msolve(context, source, loss, p, immersed=immersed)
        counts.append(solved)
        more: dict[str, Any] = {"prime": p, "seconds": solved.seconds}
        context.add_evidence(Evidence("regular", solved.points, "msolve", method, **more))
    first, last = counts[0], counts[-1]
    if not alone or first.points is None or first.points != last.points:
        return count, first.points is not None
    degree = first.fiber_degree
    return replace(count, points=first.points, fiber_degree=degree, localized=not immersed), True
