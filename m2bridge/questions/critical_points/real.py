"""The real critical points of rational data: counted exactly, enclosed in proved intervals, with the index of the Hessian.

Macaulay2 gives the algebra of the critical points over QQ (:data:`TEMPLATE`). A random form of the functions generates the
subalgebra of the functions; the real roots of its least polynomial are the real critical functions, isolated by FLINT, and every
coordinate is a polynomial of the root.

At a critical point the Hessian by the unknowns of a chart where the differential is injective is that on the image, in other
coordinates: it has the same signs, which are decided in ball arithmetic.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from flint import acb, acb_mat, arb, arb_poly, fmpq, fmpq_mat, fmpq_poly

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence, Relation
from m2bridge.families import Model
from m2bridge.questions.critical_points.charts import Chart, ExpandedMap
from m2bridge.questions.critical_points.counting import Count, Counter
from m2bridge.questions.critical_points.equations import charted, second_derivatives
from m2bridge.questions.critical_points.losses import GivenLoss, Loss
from m2bridge.questions.critical_points.result import RealCriticalPoint
from m2bridge.questions.critical_points.verified import MOST_REAL_POINTS, hessian_at, solved_points, term_sum
from m2bridge.questions.kernel import Context
from m2bridge.questions.over_q import fmpq as rational
from m2bridge.questions.over_q import real_roots, sturm_count

TEMPLATE = "critical_points_real"
MOST_POINTS = 60
"""Exact linear algebra over QQ with more critical points than this takes minutes."""
_SHARE_BESIDE_MSOLVE = 0.3
"""Of the time left, for the exact algebra where msolve has found the points already."""
_PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
_KINDS = ("minimum", "saddle", "maximum", "degenerate")


# -- the algebra of the critical points ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Algebra:
    """The critical functions over QQ: the least polynomial of a form, and coordinates as polynomials in it.

    `places` are the unknowns of the chart in the same way; None when the form does not determine them.
    """

    minimal: fmpq_poly
    functions: tuple[fmpq_poly, ...]
    places: tuple[fmpq_poly, ...] | None

    @property
    def points(self) -> int:
        return int(self.minimal.degree())


def algebra(
    context: Context, model: Model, chart: Chart, loss: Loss, *, saturating: bool = False, **run: Any
) -> tuple[Algebra | None, str | None]:
    """Return the algebra of the critical points in a chart; None with a reason when it is not finite, not reduced or not reached.

    `run` is passed to :meth:`Context.run_template`.
    """
    rng = np.random.default_rng([context.seed, 61])
    values = loss.modulo(0, residual=False) | chart.parameters
    values |= {"p": 0, "form": [int(x) for x in rng.integers(-9, 10, size=model.coordinate_count)]}
    multipliers = [int(x) for x in rng.integers(1, 20, size=chart.unknowns)]
    values |= {"saturating": saturating, "multipliers": multipliers}
    answer, limit = context.run_template(TEMPLATE, values, model, **run)
    if limit is not None:
        return None, limit
    if answer.get("real_dim") == -1:
        return Algebra(minimal=fmpq_poly([1]), functions=(), places=()), None
    if answer.get("real_dim") != 0:
        return None, "the critical points of these data are not finitely many"
    return _from_vectors(answer["multiplication"], answer["functions"], answer["places"])


def _from_vectors(
    columns: Sequence[Any], functions: Sequence[Any], chart_coordinates: Sequence[Any]
) -> tuple[Algebra | None, str | None]:
    """Write the least polynomial and all vectors in the powers of the form, applied to 1, by one elimination."""
    size = len(columns)
    matrix = fmpq_mat(size, size, [rational(columns[j][i]) for i in range(size) for j in range(size)])
    powers = [fmpq_mat(size, 1, [fmpq(int(i == 0)) for i in range(size)])]
    for _ in range(size):
        powers.append(matrix * powers[-1])
    vectors = [power.entries() for power in powers]
    vectors += [[rational(x) for x in vector] for vector in (*functions, *chart_coordinates)]
    reduced, _ = fmpq_mat(size, len(vectors), [v[i] for i in range(size) for v in vectors]).rref()
    # powers are independent up to the degree of the least polynomial, and their columns are the first pivots
    degree = next((i for i in range(size) if reduced[i, i] != 1), size)
    minimal = fmpq_poly([*(-reduced[i, degree] for i in range(degree)), fmpq(1)])
    if minimal.gcd(minimal.derivative()).degree() > 0:
        return None, "some critical points of these data are multiple: they are degenerate"
    written = [
        None
        if any(reduced[i, column] != 0 for i in range(degree, size))
        else fmpq_poly([reduced[i, column] for i in range(degree)])
        for column in range(size + 1, len(vectors))
    ]
    function_polynomials, inside = written[: len(functions)], written[len(functions) :]
    if None in function_polynomials:
        return None, "the random form does not separate the critical functions; use another --seed"
    return Algebra(
        minimal=minimal,
        functions=tuple(function_polynomials),
        places=None if None in inside else tuple(inside),
    ), None


# -- the Hessian -----------------------------------------------------------------------------------------


Hessian = Mapping[tuple[int, int], Mapping[tuple[int, ...], fmpq]]
"""The second derivatives of the loss by the unknowns i <= j of a chart, as polynomials in them."""


def index_at(hessian: Hessian, point: Sequence[Any], tangent: Sequence[Sequence[Any]] = ()) -> int | None:
    """Return the number of negative eigenvalues at a point of the chart; None when a sign is not decided at this precision.

    At a complex point with a real function, the rows of `tangent`, the derivatives of the function there, span the complexified
    tangent space of the image; in its basis in reduced echelon form, which is real, the Hessian is a real matrix.
    """
    matrix, n = hessian_at(hessian, point), range(len(point))
    if tangent:
        inverse = _pivot_inverse(tangent)
        if inverse is None:
            return None
        product = inverse * acb_mat(matrix) * inverse.transpose()
        matrix = [[product[i, j].real for j in n] for i in n]
    return negative_pivots(matrix)


def _pivot_inverse(tangent: Sequence[Sequence[Any]]) -> Any:
    """Return the inverse of a square submatrix with columns that are chosen greedily; None if it may be singular."""
    midpoints = np.array([[complex(x) for x in row] for row in tangent])
    chosen: list[int] = []
    left = midpoints.copy()
    for _ in range(len(tangent)):
        column = int(np.argmax(np.linalg.norm(left, axis=0)))
        chosen.append(column)
        direction = left[:, column] / (np.linalg.norm(left[:, column]) or 1.0)
        left = left - np.outer(direction, direction.conj() @ left)
    try:
        return acb_mat([[acb(row[j]) for j in chosen] for row in tangent]).inv()
    except ZeroDivisionError:
        return None


def negative_pivots(matrix: list[list[Any]]) -> int | None:
    """Return the number of negative eigenvalues of a symmetric matrix of balls, by L D L^T; None when a pivot may vanish.

    >>> negative_pivots([[arb(1), arb(2)], [arb(2), arb(1)]])
    1
    """
    rows, negative = [list(row) for row in matrix], 0
    while rows:
        k = max(range(len(rows)), key=lambda i: float(abs(rows[i][i].mid())))
        pivot = rows[k][k]
        if not (pivot > 0 or pivot < 0):
            return None
        negative += bool(pivot < 0)
        rest = [i for i in range(len(rows)) if i != k]
        rows = [[rows[i][j] - rows[i][k] * rows[k][j] / pivot for j in rest] for i in rest]
    return negative


# -- enclosures ------------------------------------------------------------------------------------------


def enclosed(
    values: Algebra, source: ExpandedMap, chart: Chart, loss: Loss, digits: int
) -> tuple[RealCriticalPoint, ...]:
    """Return the real critical functions with coordinates, loss and index, to so many digits."""
    radius = arb(10) ** (-digits)
    hessian = None if values.places is None else second_derivatives(source, chart, loss)[1]
    for bits in _PRECISIONS:
        with flint.ctx.workprec(bits):
            points = [_point(root, values, hessian, loss, digits) for root in real_roots(values.minimal)]
            narrow = all(ball.rad() < radius for _, balls in points for ball in balls)
            if narrow and all(point.index is not None or hessian is None for point, _ in points):
                break
    return tuple(point for point, _ in points)


def _point(
    root: Any, values: Algebra, hessian: Hessian | None, loss: Loss, digits: int
) -> tuple[RealCriticalPoint, list[Any]]:
    functions = [arb_poly(f)(root) for f in values.functions]
    coordinates = [arb_poly(f)(root) for f in values.places or ()]
    index = None if hessian is None else index_at(hessian, coordinates)
    return described(functions, index, len(coordinates), loss, digits)


def described(
    functions: Sequence[Any], index: int | None, dim: int, loss: Loss, digits: int
) -> tuple[RealCriticalPoint, list[Any]]:
    """Return the point with coordinates, loss and index on an image of dimension `dim`, and the balls of coordinates and loss."""
    value = arb(0)
    for row, b, weight in zip(loss.matrix, loss.target, loss.weights, strict=True):
        residual = sum(
            (arb(rational(e)) * y for e, y in zip(row, functions, strict=True) if e), -arb(rational(b))
        )
        value += arb(rational(weight)) * residual * residual
    kind = "degenerate" if index is None else {0: "minimum", dim: "maximum"}.get(index, "saddle")
    coordinates = tuple(_interval(y, digits) for y in functions)
    point = RealCriticalPoint(coordinates=coordinates, loss=_interval(value, digits), kind=kind, index=index)
    return point, [*functions, value]


def _interval(ball: Any, digits: int) -> tuple[str, str]:
    """Decimals below and above all numbers of the ball."""
    low, high = (ball.lower() * 10**digits).floor(), (ball.upper() * 10**digits).ceil()
    ends = low.lower().floor().unique_fmpz(), high.upper().ceil().unique_fmpz()
    return _decimal(int(ends[0]), digits), _decimal(int(ends[1]), digits)


def _decimal(number: int, digits: int) -> str:
    text = str(abs(number)).rjust(digits + 1, "0")
    return f"{'-' if number < 0 else ''}{text[:-digits]}.{text[-digits:]}"


def kinds(points: Sequence[RealCriticalPoint]) -> dict[str, int]:
    """Count the points of each kind."""
    tally = Tally(point.kind for point in points)
    return {kind: tally[kind] for kind in _KINDS if tally[kind]}


# -- the answer ------------------------------------------------------------------------------------------


def points_by_msolve(
    counter: Counter, source: ExpandedMap, count: Count, digits: int, *, immersed: bool
) -> tuple[tuple[RealCriticalPoint, ...] | None, str | None]:
    """Return the real critical functions from solutions of msolve; None with a reason."""
    solved, reason = solved_points(counter, source, count, digits, immersed=immersed)
    if solved is None:
        return None, reason
    hessian = second_derivatives(source, solved.chart, counter.loss)[1]
    tangent = []
    if (count.fiber_degree or 1) > 1:
        y = charted(source, solved.chart, 0).y
        unknowns = range(solved.chart.unknowns)
        tangent = [[f.derivative(k).to_dict() for f in y] for k in unknowns]
    with flint.ctx.workprec(8 * digits + 128):
        points = []
        for functions, point in zip(solved.functions, solved.places, strict=True):
            at_place = [[term_sum(f, point) for f in row] for row in tangent]
            index = index_at(hessian, point, at_place)
            points.append(described(functions, index, len(point), counter.loss, digits)[0])
    return tuple(points), None


def real_points(
    counter: Counter, source: ExpandedMap, count: Count, digits: int, remarks: list[str], *, immersed: bool
) -> tuple[tuple[RealCriticalPoint, ...] | None, bool]:
    """Return the real critical functions, and whether they have an index: their weights in the chart are known.

    By msolve where there is one; by Macaulay2 if they are few, exactly over QQ.
    """
    context = counter.context
    copies = count.fiber_degree or 1
    few = count.points is not None and count.points <= MOST_POINTS
    solvable = count.points is not None and count.points * copies <= MOST_REAL_POINTS
    points, reason = None, None
    if solvable and context.msolve is not None:
        context.report_progress("real critical points by msolve")
        points, reason = points_by_msolve(counter, source, count, digits, immersed=immersed)
    if few:
        exact, indexed, stopped = _exact_real_points(counter, source, count, digits, alone=points is None)
        if exact is not None:
            return exact, indexed
        reason = stopped if reason is None else f"{stopped}; {reason}"
    elif reason is None:
        with_msolve = f"{MOST_REAL_POINTS} points of the chart with msolve"
        reason = f"this requires finitely many regular ones, at most {MOST_POINTS} ({with_msolve})"
    if points is None:
        remarks.append(f"The real points were not computed: {reason}.")
    return points, points is not None


def _exact_real_points(
    counter: Counter, source: ExpandedMap, count: Count, digits: int, *, alone: bool
) -> tuple[tuple[RealCriticalPoint, ...] | None, bool, str | None]:
    """Return the real critical functions by Macaulay2's algebra over QQ, and whether they have an index; None and the reason.

    Beside the answer of msolve it has a share of the time, and its limit is not one of the answer.
    """
    context, loss = counter.context, counter.loss
    context.report_progress("real critical points")
    chart = source.chart(dense=False)
    drops = (count.drop_dim or 0) >= 0 or count.localized
    if drops and not alone:
        method = "not attempted beside msolve: a saturation over QQ"
        context.add_evidence(Evidence("real", None, "rational", method))
        return None, False, method
    share = None if alone else _SHARE_BESIDE_MSOLVE
    critical_algebra, reason = algebra(
        context, source.model, chart, loss, saturating=drops, share=share, decisive=alone
    )
    if critical_algebra is None:
        return None, False, reason
    # held entries may miss critical points of special data, which were counted in a random chart
    relation: Relation = ">=" if loss.special else "="
    method = "the algebra of the critical points over QQ"
    context.add_evidence(
        Evidence(
            "regular", critical_algebra.points, "rational", method, ancestry="construction", relation=relation
        )
    )
    points = enclosed(critical_algebra, source, chart, loss, digits)
    here: dict[str, Any] = {"certainty": Certainty.PROVED, "field": "QQ", "scope": "at-point"}
    context.add_evidence(
        Evidence("real", len(points), "isolation", "real roots enclosed by FLINT", ancestry="construction", **here),
        Evidence("real", sturm_count(critical_algebra.minimal), "sturm", "Sturm's theorem over QQ", ancestry="formula", **here),
    )  # fmt: skip
    return points, critical_algebra.places is not None, None


def histogram(
    context: Context, source: ExpandedMap, loss_choice: GivenLoss, draws: int, remarks: list[str]
) -> dict[str, int]:
    """Count the random data sets by their number of real critical points."""
    tally: Tally[int] = Tally()
    for k in range(draws):
        context.report_progress(f"random data {k + 1} of {draws}")
        loss = loss_choice.loss(source.model, context.seed + 1000 + k)
        critical_algebra, reason = algebra(context, source.model, source.chart(dense=False), loss)
        if critical_algebra is None:
            remarks.append(f"Random data set {k + 1} was skipped: {reason}.")
            continue
        tally[len(real_roots(critical_algebra.minimal))] += 1
    return {str(n): tally[n] for n in sorted(tally)}
