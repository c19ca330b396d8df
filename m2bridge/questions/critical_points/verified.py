"""Real critical points from msolve: each one verified in ball arithmetic, and their number compared with an isolation by FLINT.

msolve's computation over QQ is probabilistic. So its boxes are only starting points: by Krawczyk's test on the derivatives of the
loss each verified ball contains exactly one real critical point of the chart. That no other exists rests on msolve's polynomial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
from flint import arb, arb_mat, fmpq

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
_RADIUS_BITS = 60
"""Krawczyk's test begins with balls of this radius around the midpoints of msolve's boxes, which have 128 bits."""
_MOST_REFINEMENTS = 8
"""Each step at least doubles the number of correct digits."""
NAME = "critical_points_real"


def term_sum(terms: Terms, place: Sequence[Any]) -> Any:
    """The value of a polynomial at balls."""
    total = arb(0)
    for exponents, coefficient in terms.items():
        term = arb(coefficient)
        for x, power in zip(place, exponents, strict=True):
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
    at_center, around = _hessian_at(hessian, center), _hessian_at(hessian, wide)
    try:
        inverse = at_center.inv()
    except ZeroDivisionError:
        return None
    inverse = arb_mat(n, n, [x.mid() for x in inverse.entries()])
    residual = inverse * arb_mat(n, 1, [term_sum(f, center) for f in gradient])
    contraction = arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)]) - inverse * around
    moved = contraction * arb_mat(n, 1, [arb(0, radius)] * n)
    found = [x - residual[i, 0] + moved[i, 0] for i, x in enumerate(center)]
    inside = all(outer.contains_interior(inner) for outer, inner in zip(wide, found, strict=True))
    return found if inside else None


def _hessian_at(hessian: Mapping[tuple[int, int], Terms], place: Sequence[Any]) -> Any:
    n = len(place)
    values = {key: term_sum(terms, place) for key, terms in hessian.items()}
    return arb_mat(n, n, [values[min(i, j), max(i, j)] for i in range(n) for j in range(n)])


def refined(
    derivatives: tuple[Sequence[Terms], Mapping[tuple[int, int], Terms]],
    box: Sequence[tuple[Fraction, Fraction]],
    digits: int,
) -> list[Any] | None:
    """Verify the box and shrink it to so many digits and as many spare ones; None if it is not verified."""
    gradient, hessian = derivatives
    center = [arb(rational((low + high) / 2)).mid() for low, high in box]
    radius = arb(2) ** -_RADIUS_BITS
    found = verified_ball(gradient, hessian, center, radius)
    for _ in range(_MOST_REFINEMENTS):
        if found is None or all(ball.rad() < arb(10) ** (-2 * digits) for ball in found):
            break
        radius = 2 * max((ball.rad() for ball in found), key=float)
        closer = verified_ball(gradient, hessian, [ball.mid() for ball in found], radius)
        if closer is None:
            break
        found = closer
    return found


def real_places(
    counter: Counter, source: ExpandedMap, count: Count, digits: int, *, immersed: bool
) -> tuple[tuple[Chart, list[list[Any]]] | None, str | None]:
    """Return a chart and the verified real critical points in it, or None and the reason why there are none."""
    context, loss = counter.context, counter.loss
    if count.fiber_degree != 1:
        return None, f"{count.fiber_degree} points of the chart have one function"
    if not (loss.general or count.drop_dim == -1):
        return None, "the differential drops at critical points of these data"
    plain = immersed or not loss.general
    chart = source.chart_for(special=False, general=True) if immersed else source.chart(dense=False)
    found = charted(source, chart, 0)
    inverted = [] if plain else inverted_polynomials(found, context.seed)
    if inverted is None:
        return None, "no minor of the differential is short"
    system = found.system(found.critical(loss), inverted)
    solved, reason = context.run_msolve(
        msolve.parametrizing_script(NAME, system),
        lambda run: msolve.parametrization(run, system),
        share=SHARE_FOR_MSOLVE,
    )
    if solved is None or solved.degree != solved.solutions:
        return None, reason or "there are infinitely many solutions, or multiple ones"
    before = flint.ctx.prec
    flint.ctx.prec = max(2 * _RADIUS_BITS, 8 * digits + 128)
    try:
        derivatives = second_derivatives(source, chart, loss)
        boxes = [box[: len(found.names)] for box in solved.boxes]
        balls = [refined(derivatives, box, digits) for box in boxes]
    finally:
        flint.ctx.prec = before
    places = [ball for ball in balls if ball is not None]
    _add_evidence(counter, solved, _different(places))
    if len(places) < len(boxes):
        return None, f"{len(boxes) - len(places)} of {len(boxes)} real points were not verified"
    return (chart, places), None


def _different(places: Sequence[Sequence[Any]]) -> int:
    """The number of places that meet no earlier one."""
    kept: list[Sequence[Any]] = []
    for place in places:
        if not any(all(a.overlaps(b) for a, b in zip(place, other, strict=True)) for other in kept):
            kept.append(place)
    return len(kept)


def _add_evidence(counter: Counter, solved: msolve.Parametrization, verified: int) -> None:
    """Evidence of the complex and real points: msolve's polynomial and boxes, its roots by FLINT, and verified points."""
    here: dict[str, Any] = {"field": "QQ", "scope": "at-point"}
    isolated = len(real_roots(solved.minimal))
    counter.context.add_evidence(
        Evidence("regular", solved.solutions, "msolve", "parametrization over QQ, verified modulo two primes"),
        Evidence("real", len(solved.boxes), "msolve", "boxes of real solutions", **here),
        Evidence("real", isolated, "isolation", "real roots of msolve's polynomial, by FLINT", ancestry="construction", **here),
        Evidence(
            "real", verified, "Krawczyk", "critical points verified in ball arithmetic", relation=">=",
            certainty=Certainty.PROVED, ancestry="formula", **here,
        ),
    )  # fmt: skip
