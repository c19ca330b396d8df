"""Where does a rational point lie: in the real image, on its boundary, only in the closure, or outside? Exactly.

In Segre coordinates (Proposition A.5) a point of the closure is a table of quadrics z[n, m] = alpha_m * nu_n with complex linear
forms, alpha_m the columns of A and nu_n the rows of V. Its flattenings along m and n have ranks rk A and rk V.

* rk A * rk V >= 2. If rk V >= 2 the nu_n have no common factor, so z[n0, m0] nu_n = z[n, m0] nu_n0 determines V up to a
  factor, by linear algebra over the field of z; the alpha_m are then quotients. Likewise from A when rk A >= 2. So a rational
  (or real) point has rational (or real) weights: it lies in the image, not on the boundary: ranks do not jump up.
* rk A = rk V = 1. z = h (x) q (x) S, S the matrix of a product of two linear forms, so rk S <= 2. By Sylvester's law S = l1 l2
  with real forms exactly when e2(S) <= 0; when e2(S) > 0 the factors are a complex-conjugate pair. Points with e2(S) > 0
  accumulate in the image exactly at rk S <= 1: S + eps p p^T for S = k k^T; and e2 >= 0 survives in a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd, isqrt
from typing import Any, Literal

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Lightning
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions import over_q

Where = Literal["image", "boundary", "closure-only", "outside"]
Table = np.ndarray
"""Fractions with axes (n, m, ij): the quadric alpha_m * nu_n by its coefficients of x_i x_j, i <= j."""
_TRIAL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where a point lies and why.

    Attributes
    ----------
    A, V: weights of the point, exact; complex when it lies only in the closure, None outside.
    rank_a, rank_v: ranks of the flattenings; for a point of the closure, of A and of V.
    rank_s, e2: of the quadric S where both ranks are one, else None.
    reason: the argument, in a sentence.
    """

    where: Where
    reason: str
    A: np.ndarray | None = None
    V: np.ndarray | None = None
    rank_a: int = 0
    rank_v: int = 0
    rank_s: int | None = None
    e2: Fraction | None = None


def decide(model: Lightning, coordinates: Sequence[Fraction]) -> Decision:
    """Where the point with these Segre coordinates lies.

    Examples
    --------
    >>> model = Lightning(d=2, dp=1, parametrization="attention")
    >>> [decide(model, z).where for z in ((1, 0, -1, 0, 0, 0), (1, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 1))]
    ['image', 'closure-only', 'boundary', 'outside']
    """
    if len(coordinates) != model.coordinate_count:
        raise InputError(
            f"a point of {model.spec} has {model.coordinate_count} coordinates, not {len(coordinates)}"
        )
    z = table_of(model, coordinates)
    rank_a = over_q.rank(np.moveaxis(z, 1, 0).reshape(model.d, -1))
    rank_v = over_q.rank(z.reshape(model.dp, -1))
    if rank_a == 0:
        where: Where = "boundary" if model.d >= 2 else "image"
        reason = "the zero function, a limit of multiples of any point that is only in the closure"
        A, V = (np.zeros((rows, model.d), dtype=object) for rows in (model.d, model.dp))
        return Decision(where=where, reason=reason, A=A, V=V)
    decision = _rank_one(model, z) if rank_a * rank_v == 1 else _unique(model, z, rank_a, rank_v)
    if decision.A is not None:  # the network's own definition takes (A, V) to the point, exactly
        point = model.coordinates({"A": as_surds(decision.A), "V": as_surds(decision.V)})
        if any(ours != Fraction(c) for ours, c in zip(point, coordinates, strict=True)):
            raise AssertionError(f"weights found for {list(map(str, coordinates))} do not give it back")
    return replace(decision, rank_a=rank_a, rank_v=rank_v)


def as_surds(matrix: np.ndarray | None) -> np.ndarray:
    """The matrix with all entries as :class:`Surd`, so that one arithmetic runs through."""
    return elementwise(as_surd, np.asarray(matrix, dtype=object))


def _unique(model: Lightning, z: Table, rank_a: int, rank_v: int) -> Decision:
    """rk A * rk V >= 2: one of V, A from the kernel of a linear map, the other by division."""
    d, dp = model.d, model.dp
    if rank_a > model.attention_rank:
        reason = f"weights would need rk A = {rank_a}, above {model.attention_rank}"
        return Decision(where="outside", reason=reason)
    by_value = rank_v >= 2
    rows = z if by_value else np.moveaxis(z, 1, 0)  # the factor that is found first has one row a form
    name, other = ("V", "A") if by_value else ("A", "V")
    first = _common_forms(rows, d)
    if first is None:
        reason = f"no {name}, not even a complex one, makes the quadrics multiples of its forms"
        return Decision(where="outside", reason=reason)
    system = np.concatenate([multiplication(form, 1, d) for form in first])
    right = np.concatenate([row.T for row in rows])
    second = over_q.solve(system, right)
    if second is None:
        reason = f"the only possible {name} leaves a linear system for {other} without a solution"
        return Decision(where="outside", reason=reason)
    # columns of `second` are the forms of the other factor: columns of A, or rows of V
    A, V = (second, first) if by_value else (first.T, second.T)
    reason = f"rk A = {rank_a}, rk V = {rank_v}: the weights are unique up to scaling, hence real"
    return Decision(where="image", reason=reason, A=A, V=V.reshape(dp, d))


def _common_forms(rows: np.ndarray, d: int) -> np.ndarray | None:
    """Linear forms l_r, one a row, with rows[r, c] a multiple of l_r by the same form for every r; None if not unique."""
    count = len(rows)
    r0, c0 = next((r, c) for r, c in np.ndindex(rows.shape[:2]) if rows[r, c].any())
    straight = multiplication(rows[r0, c0], 2, d)
    blocks = []
    for r in range(count):
        if r != r0:
            block = np.zeros((len(straight), count, d), dtype=object)
            block[:, r] = straight
            block[:, r0] = -multiplication(rows[r, c0], 2, d)
            blocks.append(block.reshape(len(block), -1))
    found = over_q.kernel(np.concatenate(blocks))
    return primitive(found[0]).reshape(count, d) if len(found) == 1 else None


def _rank_one(model: Lightning, z: Table) -> Decision:
    """rk A = rk V = 1: z = h (x) q (x) S, and S is factored over QQ(√D)."""
    n0, m0 = next((n, m) for n, m in np.ndindex(z.shape[:2]) if z[n, m].any())
    pivot = int(np.flatnonzero(z[n0, m0])[0])
    h = z[:, m0, pivot] / z[n0, m0, pivot]
    q = z[n0, :, pivot] / z[n0, m0, pivot]
    S = quadric_matrix(z[n0, m0], model.d)
    rank_s, second = over_q.rank(S), e2(S)
    if rank_s > 2:
        reason = f"the quadric has rank {rank_s}: it is no product of linear forms"
        return Decision(where="outside", reason=reason, rank_s=rank_s)
    k, v = split(S)
    A, V = k[:, None] * q[None, :], h[:, None] * v[None, :]
    if rank_s == 1:
        where: Where = "boundary" if model.d >= 2 else "image"
        reason = "A = k (x) q and V = h (x) k: the two factors of the quadric coincide, e2 = 0"
    elif second < 0:
        where, reason = "image", f"e2 = {second} < 0: the quadric is a product of two real linear forms"
    else:
        where = "closure-only"
        reason = f"e2 = {second} > 0: the factors of the quadric are a complex-conjugate pair"
    return Decision(where=where, reason=reason, A=A, V=V, rank_s=rank_s, e2=second)


def split(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors k, v with x^T S x = (k x)(v x), for a symmetric matrix of rank one or two; over QQ(√D)."""
    d = len(S)
    unit = np.eye(d, dtype=int).astype(object)
    candidates = [unit[i] for i in range(d)]
    candidates += [unit[i] + unit[j] for i in range(d) for j in range(i)]
    u = next(u for u in candidates if u @ S @ u != 0)
    c1 = u @ S @ u
    l1 = (S @ u) / c1
    rest = S - c1 * l1[:, None] * l1[None, :]
    if not rest.any():
        return c1 * l1, l1
    i = next(i for i in range(d) if rest[i, i] != 0)
    c2, l2 = rest[i, i], rest[i] / rest[i, i]
    root = square_root(-c2 / c1)
    k = np.array([Surd(x) + root * y for x, y in zip(l1, l2, strict=True)], dtype=object)
    v = np.array([Surd(x) - root * y for x, y in zip(l1, l2, strict=True)], dtype=object)
    return c1 * k, v


# -- quadrics --------------------------------------------------------------------------------------------------------------------


def table_of(model: Lightning, coordinates: Sequence[Fraction]) -> Table:
    """The coordinates of a point as quadrics z[n, m]."""
    pairs = model.d * (model.d + 1) // 2
    return object_array([Fraction(c) for c in coordinates], (model.dp, model.d, pairs))


def quadric_matrix(quadric: Iterable[Any], d: int) -> np.ndarray:
    """The symmetric matrix S of a quadric x^T S x given by its coefficients; off the diagonal S_ij = c_ij / 2."""
    S = np.empty((d, d), dtype=object)
    for c, i, j in zip(quadric, *np.triu_indices(d), strict=True):
        S[i, j] = S[j, i] = Fraction(c) / (1 if i == j else 2)
    return S


def e2(S: np.ndarray) -> Fraction:
    """The second elementary symmetric function of the eigenvalues: the sum of the principal 2-minors."""
    pairs = zip(*np.triu_indices(len(S), 1), strict=True)
    return sum((S[i, i] * S[j, j] - S[i, j] ** 2 for i, j in pairs), Fraction(0))


def primitive(vector: Sequence[Any]) -> np.ndarray:
    """The primitive integer vector on the line of a vector that is not zero, its first non-zero entry positive."""
    whole = over_q.integral(vector)
    content = gcd(*whole.tolist()) * (1 if next(c for c in whole if c) > 0 else -1)
    return np.array([c // content for c in whole], dtype=object)


def multiplication(polynomial: Iterable[Any], degree: int, d: int) -> np.ndarray:
    """The matrix of linear form -> polynomial * linear form, from d coefficients to those of degree + 1.

    `polynomial` is linear (degree 1) or a quadric by its coefficients of x_i x_j, i <= j (degree 2).
    """
    source, target = _monomials(d, degree), _monomials(d, degree + 1)
    place = {monomial: row for row, monomial in enumerate(target)}
    matrix = np.zeros((len(target), d), dtype=object)
    for monomial, coefficient in zip(source, polynomial, strict=True):
        for k in range(d):
            matrix[place[tuple(sorted((*monomial, k)))], k] += coefficient
    return matrix


def _monomials(d: int, degree: int) -> list[tuple[int, ...]]:
    """Indices i <= j <= ... of the monomials, lexicographically: the order of the Segre coordinates in degree 2."""
    return list(combinations_with_replacement(range(d), degree))


# -- numbers of a quadratic field ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Surd:
    """The number rational + surd * √radicand, rational and surd in QQ and the radicand in ZZ.

    A rational point whose A and V both have rank one is the product of two linear forms that are defined over QQ(√D): real when
    D > 0, a complex-conjugate pair when D < 0. The network's one definition runs over object arrays of these.

    Examples
    --------
    >>> w = Surd(1, 2, 5)
    >>> str(w), str(w * w), w * w.conjugate() == -19
    ('1+2*sqrt(5)', '21+4*sqrt(5)', True)
    """

    rational: int | Fraction
    surd: int | Fraction = 0
    radicand: int = 0

    def _common(self, other: Surd) -> int:
        if not self.surd or not other.surd or self.radicand == other.radicand:
            return self.radicand if self.surd else other.radicand
        raise ValueError(f"√{self.radicand} and √{other.radicand} are not in one quadratic field")

    def __add__(self, other: Any) -> Surd:
        other = as_surd(other)
        return Surd(self.rational + other.rational, self.surd + other.surd, self._common(other))

    def __mul__(self, other: Any) -> Surd:
        other = as_surd(other)
        radicand = self._common(other)
        return Surd(
            self.rational * other.rational + self.surd * other.surd * radicand,
            self.rational * other.surd + self.surd * other.rational,
            radicand,
        )

    def __neg__(self) -> Surd:
        return Surd(-self.rational, -self.surd, self.radicand)

    def __sub__(self, other: Any) -> Surd:
        return self + -as_surd(other)

    def __rsub__(self, other: Any) -> Surd:
        return as_surd(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Fraction, Surd)):
            return NotImplemented
        other = as_surd(other)
        if self.rational != other.rational or self.surd != other.surd:
            return False
        return not self.surd or self.radicand == other.radicand

    def __hash__(self) -> int:
        return hash((self.rational, self.surd, self.radicand if self.surd else 0))

    def conjugate(self) -> Surd:
        """rational - surd * √radicand; the complex conjugate when the radicand is negative."""
        return Surd(self.rational, -self.surd, self.radicand)

    @property
    def is_real(self) -> bool:
        return not self.surd or self.radicand >= 0

    def __str__(self) -> str:
        if not self.surd:
            return str(self.rational)
        size = abs(self.surd)
        root = f"{'' if size == 1 else f'{size}*'}sqrt({self.radicand})"
        sign = "-" if self.surd < 0 else "+" if self.rational else ""
        return f"{self.rational if self.rational else ''}{sign}{root}"


def as_surd(value: Any) -> Surd:
    """A rational number, or a surd, as a surd."""
    return value if isinstance(value, Surd) else Surd(value)


def square_root(value: int | Fraction) -> Surd:
    """A square root of a rational number, as a multiple of √D with an integer D free of small square factors.

    >>> str(square_root(Fraction(8, 9))), str(square_root(Fraction(4, 9))), str(square_root(-12))
    ('2/3*sqrt(2)', '2/3', '2*sqrt(-3)')
    """
    value = Fraction(value)
    radicand, factor = abs(value.numerator * value.denominator), Fraction(1, value.denominator)
    for prime in range(2, _TRIAL):  # composite trial divisors find nothing that their factors left
        while radicand and radicand % (prime * prime) == 0:
            radicand //= prime * prime
            factor *= prime
    root = isqrt(radicand)
    if root * root == radicand:
        radicand, factor = 1, factor * root
    if value < 0:
        return Surd(0, factor, -radicand)
    return Surd(0, factor, radicand) if radicand != 1 else Surd(factor)
