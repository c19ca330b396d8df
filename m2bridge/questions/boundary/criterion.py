"""Locate a rational point by ranks and one sign: in the image, on its boundary, only in the closure, or outside.

In Segre coordinates (Proposition A.5) a point of the closure is a table of quadrics z[n, m] = alpha_m * nu_n with complex linear
forms, alpha_m the columns of A and nu_n the rows of V. Its flattenings along m and n have ranks rk A and rk V.

* rk A * rk V >= 2. If rk V >= 2 the nu_n have no common factor, so z[n0, m0] nu_n = z[n, m0] nu_n0 determines V up to a
  factor, by linear algebra over the field of z; the alpha_m are then quotients. Likewise from A when rk A >= 2. So a rational
  (or real) point has rational (or real) weights or none: it lies in the image or outside, and not on the boundary, because ranks
  do not jump up.
* rk A = rk V = 1. z = h (x) q (x) S, S the matrix of a product of two linear forms, so rk S <= 2. By Sylvester's law S = l1 l2
  with real forms exactly when e2(S) <= 0; when e2(S) > 0 the factors are a complex-conjugate pair. A point
  of the image is a limit of points with e2 > 0 exactly if rk S <= 1. If: for S = ±k k^T take S ± eps p p^T with eps > 0 and p
  not a multiple of k. Only if: a limit has e2 >= 0 and a point of the image e2 <= 0, so e2 = 0, and with rk S <= 2 this means
  rk S <= 1.

This module does not search weights. The question `membership` does, and its answer can contradict the criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Attention
from m2bridge.programs.arithmetics import object_array
from m2bridge.questions import over_q

Where = Literal["image", "boundary", "closure-only", "outside", "undecided"]
Table = np.ndarray
"""Fractions with axes (n, m, ij): the quadric alpha_m * nu_n by its coefficients of x_i x_j, i <= j."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """Location of a point and the reason; ``undecided`` where only weights distinguish the image from the outside.

    Attributes
    ----------
    rank_a, rank_v: ranks of the flattenings; for a point of the closure, of A and of V.
    rank_s, e2: of the quadric S where both ranks are one, else None.
    reason: the argument, in a sentence.
    """

    where: Where
    reason: str
    rank_a: int = 0
    rank_v: int = 0
    rank_s: int | None = None
    e2: Fraction | None = None


def decide(model: Attention, coordinates: Sequence[Fraction]) -> Criterion:
    """Locate the point with these Segre coordinates by its ranks and e2.

    Examples
    --------
    >>> from m2bridge.families import parse_spec
    >>> model = parse_spec("lightning(d=2,dp=1,parametrization=attention)")
    >>> [decide(model, z).where for z in ((1, 0, -1, 0, 0, 0), (1, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 1))]
    ['image', 'closure-only', 'boundary', 'undecided']
    """
    if len(coordinates) != model.coordinate_count:
        raise InputError(
            f"a point of {model} has {model.coordinate_count} coordinates, not {len(coordinates)}"
        )
    z = table_of(model, coordinates)
    rank_a = over_q.rank(np.moveaxis(z, 1, 0).reshape(model.d, -1))
    rank_v = over_q.rank(z.reshape(model.dp, -1))
    boundary: Where = "boundary" if model.d >= 2 else "image"
    if rank_a == 0:
        limit = "a limit of multiples of any point that is only in the closure"
        reason = f"the zero function, {limit if model.d >= 2 else 'which A = 0 gives'}"
        return Criterion(where=boundary, reason=reason)
    if rank_a * rank_v > 1:
        where: Where = "undecided" if rank_a <= model.attention_rank else "outside"
        reason = f"rk A = {rank_a}, rk V = {rank_v}: the weights are unique up to scaling, hence real"
        if where == "outside":
            reason = f"weights would need rk A = {rank_a}, above {model.attention_rank}"
        return Criterion(where=where, reason=reason, rank_a=rank_a, rank_v=rank_v)
    quadric = next(z[n, m] for n, m in np.ndindex(z.shape[:2]) if z[n, m].any())
    return replace(_rank_one(quadric_matrix(quadric, model.d), boundary), rank_a=rank_a, rank_v=rank_v)


def _rank_one(S: np.ndarray, boundary: Where) -> Criterion:
    rank_s, second = over_q.rank(S), e2(S)
    if rank_s > 2:
        reason = f"the quadric has rank {rank_s}: it is not a product of linear forms"
        return Criterion(where="outside", reason=reason, rank_s=rank_s)
    where = boundary
    reason = "A = k (x) q and V = h (x) k: the two factors of the quadric coincide, e2 = 0"
    if second < 0:
        where = "image"
        reason = f"e2 = {second} < 0: the quadric is a product of two real linear forms"
    elif second > 0:
        where = "closure-only"
        reason = f"e2 = {second} > 0: the factors of the quadric are a complex-conjugate pair"
    return Criterion(where=where, reason=reason, rank_s=rank_s, e2=second)


def table_of(model: Attention, coordinates: Sequence[Fraction]) -> Table:
    """Return the coordinates of a point as quadrics z[n, m]."""
    pairs = model.d * (model.d + 1) // 2
    return object_array([Fraction(c) for c in coordinates], (model.dp, model.d, pairs))


def quadric_matrix(quadric: Iterable[Any], d: int) -> np.ndarray:
    """Return the symmetric matrix S of a quadric x^T S x given by its coefficients; off the diagonal S_ij = c_ij / 2."""
    S = np.empty((d, d), dtype=object)
    for c, i, j in zip(quadric, *np.triu_indices(d), strict=True):
        S[i, j] = S[j, i] = Fraction(c) / (1 if i == j else 2)
    return S


def e2(S: np.ndarray) -> Fraction:
    """Return the second elementary symmetric function of the eigenvalues: the sum of the principal 2-minors."""
    pairs = zip(*np.triu_indices(len(S), 1), strict=True)
    return sum((S[i, i] * S[j, j] - S[i, j] ** 2 for i, j in pairs), Fraction(0))
