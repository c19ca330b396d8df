"""The real critical points of rational data: counted exactly, enclosed in proved intervals, with the index of the Hessian.

Macaulay2 gives the algebra of the critical points over QQ (:data:`TEMPLATE`). A random form of the functions generates the
subalgebra of the functions; the real roots of its least polynomial are the real critical functions, isolated by FLINT, and every
coordinate is a polynomial of the root. Signs of the Hessian are decided in ball arithmetic.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, fmpq, fmpq_mat, fmpq_poly

from m2bridge.models import Model
from m2bridge.questions.critical_points.charts import Chart, Source
from m2bridge.questions.critical_points.hessian import Hessian
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.critical_points.result import RealPoint
from m2bridge.questions.kernel import Asking

TEMPLATE = "critical_points_real"
MOST_POINTS = 60
"""Exact linear algebra over QQ with more critical points than this takes minutes."""
_PRECISIONS = (128, 256, 512, 1024, 2048, 4096)


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
    ask: Asking, model: Model, chart: Chart, loss: Loss, *, saturating: bool = False
) -> tuple[Algebra | None, str | None]:
    """The algebra of the critical points in a chart; None with a reason when it is not finite, not reduced or not reached."""
    rng = np.random.default_rng([ask.seed, 61])
    values = {k: v for k, v in loss.modulo(0).items() if not k.startswith("residual")} | chart.parameters
    values |= {"p": 0, "form": [int(x) for x in rng.integers(-9, 10, size=model.coordinate_count)]}
    multipliers = [int(x) for x in rng.integers(1, 20, size=chart.unknowns)]
    values |= {"saturating": saturating, "multipliers": multipliers}
    found, limit = ask.ask(TEMPLATE, values, model)
    if limit is not None:
        return None, limit
    if found.get("real_dim") == -1:
        return Algebra(minimal=fmpq_poly([1]), functions=(), places=()), None
    if found.get("real_dim") != 0:
        return None, "the critical points of these data are not finitely many"
    return _from_vectors(found["multiplication"], found["functions"], found["places"])


def _from_vectors(
    columns: Sequence[Any], functions: Sequence[Any], places: Sequence[Any]
) -> tuple[Algebra | None, str | None]:
    size = len(columns)
    matrix = fmpq_mat(size, size, [_rational(columns[j][i]) for i in range(size) for j in range(size)])
    vector = fmpq_mat(size, 1, [fmpq(int(i == 0)) for i in range(size)])
    krylov = [vector]
    while _rank(krylov) == len(krylov):
        krylov.append(matrix * krylov[-1])
    relation = _solved(krylov[:-1], krylov[-1])
    if relation is None:
        return None, "the powers of a form are dependent in an unexpected way"
    minimal = fmpq_poly([*(-c for c in relation), fmpq(1)])
    if minimal.gcd(minimal.derivative()).degree() > 0:
        return None, "some critical points of these data are multiple: they are degenerate"
    own = [_solved(krylov[:-1], _column(v)) for v in functions]
    if any(v is None for v in own):
        return None, "the random form does not separate the critical functions; another --seed"
    inside = [_solved(krylov[:-1], _column(v)) for v in places]
    return Algebra(
        minimal=minimal,
        functions=tuple(fmpq_poly(v) for v in own if v is not None),
        places=None
        if any(v is None for v in inside)
        else tuple(fmpq_poly(v) for v in inside if v is not None),
    ), None


def _rational(text: str) -> fmpq:
    value = Fraction(text)
    return fmpq(value.numerator, value.denominator)


def _column(texts: Sequence[str]) -> fmpq_mat:
    return fmpq_mat(len(texts), 1, [_rational(text) for text in texts])


def _rank(columns: Sequence[fmpq_mat]) -> int:
    size = columns[0].nrows()
    return int(fmpq_mat(len(columns), size, [c[i, 0] for c in columns for i in range(size)]).rref()[1])


def _solved(columns: Sequence[fmpq_mat], right: fmpq_mat) -> list[fmpq] | None:
    """The combination of independent columns that is `right`; None when there is none."""
    size, count = right.nrows(), len(columns)
    table = fmpq_mat(size, count + 1, [c[i, 0] for i in range(size) for c in [*columns, right]])
    reduced, rank = table.rref()
    if rank > count:
        return None
    return [reduced[i, count] for i in range(count)]


def real_roots(polynomial: fmpq_poly) -> list[Any]:
    """The real roots of a squarefree polynomial, in proved balls at the present precision."""
    if polynomial.degree() < 1:
        return []
    return [root.real for root, _ in polynomial.numer().complex_roots() if root.imag == 0]


def signature(polynomial: fmpq_poly) -> int:
    """The number of real roots of a squarefree polynomial as the signature of its trace form (Hermite), by exact pivots.

    >>> signature(fmpq_poly([-2, 0, 1])), signature(fmpq_poly([2, 0, 1]))
    (2, 0)
    """
    size = polynomial.degree()
    monic = [polynomial[i] / polynomial[size] for i in range(size)]
    sums = [fmpq(size)]
    for k in range(1, 2 * size - 1):  # Newton's identities
        total = sum((monic[size - i] * sums[k - i] for i in range(1, min(k - 1, size) + 1)), fmpq(0))
        sums.append(-total - (k * monic[size - k] if k <= size else 0))
    rows = [[sums[i + j] for j in range(size)] for i in range(size)]
    found = 0
    while rows:
        places = range(len(rows))
        place = next((r for r in places if rows[r][r] != 0), None)
        if place is None:  # add a row and column so that a diagonal entry is not zero
            i, j = next((r, c) for r in places for c in places if rows[r][c] != 0)
            rows[i] = [x + y for x, y in zip(rows[i], rows[j], strict=True)]
            for row in rows:
                row[i] += row[j]
            continue
        pivot = rows[place][place]
        found += 1 if pivot > 0 else -1
        rest = [i for i in places if i != place]
        rows = [[rows[i][j] - rows[i][place] * rows[place][j] / pivot for j in rest] for i in rest]
    return found


def enclosed(values: Algebra, source: Source, chart: Chart, loss: Loss, digits: int) -> tuple[RealPoint, ...]:
    """All real critical functions with coordinates, loss and index, to so many digits."""
    radius = arb(10) ** (-digits)
    before = flint.ctx.prec
    hessian = Hessian(source, chart, loss) if values.places is not None else None
    try:
        for bits in _PRECISIONS:
            flint.ctx.prec = bits
            points = [_point(root, values, hessian, loss, digits) for root in real_roots(values.minimal)]
            widths = [ball.rad() for _, balls in points for ball in balls]
            if all(width < radius for width in widths) and all(
                p.index is not None or hessian is None for p, _ in points
            ):
                break
        return tuple(point for point, _ in points)
    finally:
        flint.ctx.prec = before


def _point(
    root: Any, values: Algebra, hessian: Hessian | None, loss: Loss, digits: int
) -> tuple[RealPoint, list[Any]]:
    functions = [_at(f, root) for f in values.functions]
    residual = [
        sum((_ball(e) * y for e, y in zip(row, functions, strict=True) if e), arb(0)) - _ball(b)
        for row, b in zip(loss.matrix, loss.target, strict=True)
    ]
    value = sum((_ball(w) * r * r for w, r in zip(loss.weights, residual, strict=True)), arb(0))
    index = (
        None
        if hessian is None or values.places is None
        else hessian.index([_at(f, root) for f in values.places])
    )
    dim = 0 if hessian is None else hessian.size
    kind = (
        "degenerate"
        if index is None
        else "minimum"
        if index == 0
        else "maximum"
        if index == dim
        else "saddle"
    )
    point = RealPoint(
        coordinates=tuple(_interval(y, digits) for y in functions),
        loss=_interval(value, digits),
        kind=kind,
        index=index,
    )
    return point, [*functions, value]


def _ball(number: Any) -> Any:
    value = Fraction(number)
    return arb(value.numerator) / value.denominator


def _at(polynomial: fmpq_poly, root: Any) -> Any:
    total = arb(0)
    for i in range(polynomial.degree(), -1, -1):
        total = total * root + arb(polynomial[i])
    return total


def _interval(ball: Any, digits: int) -> tuple[str, str]:
    """Decimals below and above all numbers of the ball."""
    scale = 10**digits
    low, high = (ball.lower() * scale).floor().unique_fmpz(), (ball.upper() * scale).ceil().unique_fmpz()
    if low is None or high is None:
        low, high = (
            (ball.lower() * scale).floor().lower().floor().unique_fmpz(),
            (ball.upper() * scale).ceil().upper().ceil().unique_fmpz(),
        )
    return _decimal(int(low), digits), _decimal(int(high), digits)


def _decimal(number: int, digits: int) -> str:
    sign, text = "-" if number < 0 else "", str(abs(number)).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}" if digits else f"{sign}{text}"


def kinds(points: Sequence[RealPoint]) -> dict[str, int]:
    """How many there are of each kind."""
    tally = Tally(point.kind for point in points)
    return {kind: tally[kind] for kind in ("minimum", "saddle", "maximum", "degenerate") if tally[kind]}
