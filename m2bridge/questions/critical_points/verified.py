"""Real critical points from msolve: each one verified in ball arithmetic, and their number compared with an isolation by FLINT.

msolve's computation over QQ is probabilistic. So its boxes are only starting points: by Krawczyk's test on the derivatives of the
loss each verified ball contains exactly one real critical point of the chart. That no other exists rests on msolve's polynomial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
from flint import acb, acb_poly, arb, arb_mat, fmpq

from m2bridge import msolve
from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.questions.critical_points.charts import Chart, ExpandedMap
from m2bridge.questions.critical_points.counting import Count, Counter
from m2bridge.questions.critical_points.equations import (
    charted,
    inverted_polynomials,
    second_derivatives,
)
from m2bridge.questions.critical_points.solving import SHARE_FOR_MSOLVE
from m2bridge.questions.over_q import fmpq as rational
from m2bridge.questions.over_q import real_roots

Terms = Mapping[tuple[int, ...], fmpq]
MOST_REAL_POINTS = 400
"""Critical points, real or not, of which msolve finds the real ones (chosen; 284 take a minute)."""
_RADIUS_BITS = (60, 90, 120)
"""Krawczyk's test is tried with balls of these radii, 2^-60 and smaller."""
_NEWTON_STEPS = 3  # each doubles the number of correct digits
_PRECISIONS = (512, 1024, 2048, 4096, 8192)
_MOST_REFINEMENTS = 8
"""Each step at least doubles the number of correct digits."""
NAME = "critical_points_real"


def term_sum(terms: Terms, point: Sequence[Any]) -> Any:
    """Return the value of a polynomial at balls."""
    total = arb(0)
    for exponents, coefficient in terms.items():
        term = arb(coefficient)
        for x, power in zip(point, exponents, strict=True):
            if power:
                term *= x ** int(power)
        total += term
    return total


def verified_ball(
    gradient: Sequence[Terms], hessian: Mapping[tuple[int, int], Terms], center: Sequence[Any], radius: Any
) -> list[Any] | None:
    """Return balls that contain exactly one zero of the gradient, near the center; None if the test fails.

    Krawczyk's operator of the ball X with center x is x - C g(x) + (1 - C H(X)) (X - x), with C near the inverse of H(x). If it
    lies inside X, there is exactly one zero in X, and it is in the value of the operator.
    """
    n = len(center)
    wide = [x + arb(0, radius) for x in center]
    at_center, around = (arb_mat(hessian_at(hessian, point)) for point in (center, wide))
    try:
        inverse = at_center.inv()
    except ZeroDivisionError:
        return None
    inverse = arb_mat(n, n, [x.mid() for x in inverse.entries()])
    residual = inverse * arb_mat(n, 1, [term_sum(f, center) for f in gradient])
    contraction = arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)]) - inverse * around
    moved = contraction * arb_mat(n, 1, [arb(0, radius)] * n)
    image = [x - residual[i, 0] + moved[i, 0] for i, x in enumerate(center)]
    inside = all(outer.contains_interior(inner) for outer, inner in zip(wide, image, strict=True))
    return image if inside else None


def hessian_at(hessian: Mapping[tuple[int, int], Terms], point: Sequence[Any]) -> list[list[Any]]:
    """Return the symmetric matrix of the values at balls of polynomials that are given for i <= j."""
    n = range(len(point))
    values = {key: term_sum(terms, point) for key, terms in hessian.items()}
    return [[values[min(i, j), max(i, j)] for j in n] for i in n]


def _by_newton(
    derivatives: tuple[Sequence[Terms], Mapping[tuple[int, int], Terms]], center: list[Any]
) -> list[Any]:
    """Return a point nearer to a zero of the gradient, by Newton's method from the center; nothing is proved about it."""
    gradient, hessian = derivatives
    for _ in range(_NEWTON_STEPS):
        try:
            step = arb_mat(hessian_at(hessian, center)).solve(
                arb_mat(len(center), 1, [term_sum(f, center) for f in gradient])
            )
        except ZeroDivisionError:
            return center
        center = [(x - step[i, 0]).mid() for i, x in enumerate(center)]
    return center


def refined(
    derivatives: tuple[Sequence[Terms], Mapping[tuple[int, int], Terms]],
    box: Sequence[tuple[Fraction, Fraction]],
    digits: int,
) -> list[Any] | None:
    """Verify the box and shrink it to so many digits and as many spare ones; None if it is not verified."""
    gradient, hessian = derivatives
    center = _by_newton(derivatives, [arb(rational((low + high) / 2)).mid() for low, high in box])
    tried = (verified_ball(gradient, hessian, center, arb(2) ** -bits) for bits in _RADIUS_BITS)
    radius = arb(2) ** -_RADIUS_BITS[0]
    balls = next((ball for ball in tried if ball is not None), None)
    for _ in range(_MOST_REFINEMENTS):
        if balls is None or all(ball.rad() < arb(10) ** (-2 * digits) for ball in balls):
            break
        radius = 2 * max((ball.rad() for ball in balls), key=float)
        closer = verified_ball(gradient, hessian, [ball.mid() for ball in balls], radius)
        if closer is None:
            break
        balls = closer
    return balls


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedPoints:
    """Real critical functions: their coordinates `y` in balls, and for each a point of the `chart` with it, real or complex."""

    chart: Chart
    functions: tuple[list[Any], ...]
    places: tuple[list[Any], ...]


def solved_points(
    counter: Counter, source: ExpandedMap, count: Count, digits: int, *, immersed: bool
) -> tuple[SolvedPoints | None, str | None]:
    """Return the real critical functions from the solutions of msolve over QQ, or None and the reason why there are none.

    If `count.fiber_degree` points of the chart have one function, a real function may have only complex points there: then all
    complex solutions are grouped by their functions.
    """
    context, loss, copies = counter.context, counter.loss, count.fiber_degree or 1
    if not (loss.general or count.drop_dim == -1):
        return None, "the differential drops at critical points of these data"
    plain = immersed or not loss.general
    chart = source.chart_for(special=False, general=True) if immersed else source.chart(dense=False)
    equations = charted(source, chart, 0)
    inverted = [] if plain else inverted_polynomials(equations, context.seed)
    if inverted is None:
        return None, "no minor of the differential is short"
    system = equations.system(equations.critical(loss), inverted)
    solved, reason = context.run_msolve(
        msolve.parametrizing_script(NAME, system),
        lambda run: msolve.parametrization(run, system),
        share=SHARE_FOR_MSOLVE,
    )
    if solved is None or solved.degree != solved.solutions:
        return None, reason or "there are infinitely many solutions, or multiple ones"
    with flint.ctx.workprec(max(3 * _RADIUS_BITS[-1], 8 * digits + 128)):
        derivatives = second_derivatives(source, chart, loss)
        boxes = [box[: len(equations.names)] for box in solved.boxes]
        balls = [refined(derivatives, box, digits) for box in boxes]
        verified = [ball for ball in balls if ball is not None]
        y = [f.to_dict() for f in equations.y]
        functions = [[term_sum(f, point) for f in y] for point in verified]
        if copies == 1:
            real = len(real_roots(solved.minimal))
            points = SolvedPoints(chart=chart, functions=tuple(functions), places=tuple(verified))
        else:
            grouped = _grouped_by_function(solved, y, len(equations.names), copies)
            if grouped is None:
                return None, f"the solutions do not form groups of {copies} with one function"
            real = len(grouped)
            chosen, chart_points = zip(*grouped, strict=True) if grouped else ((), ())
            points = SolvedPoints(chart=chart, functions=chosen, places=chart_points)
    _add_evidence(counter, solved, copies, real, _different(functions))
    if len(verified) < len(boxes):
        return None, f"{len(boxes) - len(verified)} of {len(boxes)} real points were not verified"
    return points, None


def _grouped_by_function(
    solved: msolve.Parametrization, y: Sequence[Terms], unknowns: int, copies: int
) -> list[tuple[list[Any], list[Any]]] | None:
    """Return the real functions of all complex solutions, each with one of its points in the chart.

    The balls of the functions form disjoint groups of `copies`. A group that meets its complex conjugate is its own conjugate,
    and its function is real. None if the groups have other sizes at the largest precision.
    """
    for bits in _PRECISIONS:
        flint.ctx.prec = bits
        roots = [root for root, _ in solved.minimal.numer().complex_roots()]
        denominator = acb_poly(solved.denominator)
        numerators = [acb_poly(f) for f in solved.numerators[:unknowns]]
        chart_points = [[f(t) / denominator(t) for f in numerators] for t in roots]
        functions = [[acb(term_sum(f, point)) for f in y] for point in chart_points]
        groups: list[list[int]] = []
        for i, function in enumerate(functions):
            near = [group for group in groups if _meet(functions[group[0]], function)]
            groups = [group for group in groups if group not in near] + [
                [i, *(j for group in near for j in group)]
            ]
        if all(len(group) == copies for group in groups):
            representatives = [
                g[0] for g in groups if _meet(functions[g[0]], [x.conjugate() for x in functions[g[0]]])
            ]
            return [([x.real for x in functions[i]], chart_points[i]) for i in representatives]
    return None


def _meet(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return all(a.overlaps(b) for a, b in zip(first, second, strict=True))


def _different(points: Sequence[Sequence[Any]]) -> int:
    """Return the number of points that meet no earlier one."""
    kept: list[Sequence[Any]] = []
    for point in points:
        if not any(_meet(point, other) for other in kept):
            kept.append(point)
    return len(kept)


def _add_evidence(
    counter: Counter, solved: msolve.Parametrization, copies: int, real: int, verified: int
) -> None:
    """Add evidence of the complex and real functions: msolve's polynomial and boxes, roots by FLINT, and verified points."""
    here: dict[str, Any] = {"field": "QQ", "scope": "at-point"}
    isolated = "real roots of msolve's polynomial, by FLINT"
    if copies > 1:
        isolated = f"complex roots of msolve's polynomial in groups of {copies}, by FLINT"
    counter.context.add_evidence(
        Evidence(
            "regular", solved.solutions // copies, "msolve", "parametrization over QQ, verified modulo two primes"
        ),
        Evidence("real", real, "isolation", isolated, ancestry="construction", **here),
        Evidence(
            "real", verified, "Krawczyk", "critical points verified in ball arithmetic", relation=">=",
            certainty=Certainty.PROVED, ancestry="formula", **here,
        ),
    )  # fmt: skip
    if copies == 1:
        counter.context.add_evidence(
            Evidence("real", len(solved.boxes), "msolve", "boxes of real solutions", **here)
        )
