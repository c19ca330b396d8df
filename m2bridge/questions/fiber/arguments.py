"""All orbits in the fiber through a point, where an argument counts them: no computation but exact ranks at the point.

Each function answers with an :class:`Orbits` or None when its argument says nothing. The arguments stand beside the code; they
do not use the statements of a paper that ``m2bridge verify`` checks, and the claims do not use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models import MLP, DeepLightning, Lightning, Linear
from m2bridge.models.softmax import Softmax
from m2bridge.questions import over_q
from m2bridge.questions.fiber.partners import attention_and_values, is_skew
from m2bridge.questions.point import Point, residues, virtual_point


@dataclass(frozen=True, slots=True, kw_only=True)
class Orbits:
    """All orbits of the known connected symmetries in one fiber, over the algebraic closure.

    Attributes
    ----------
    finite: whether they are finitely many; `count` how many, None when infinitely many or not counted.
    fiber_dim: dimension of the fiber where the argument gives it.
    reason: the argument in a sentence.
    """

    finite: bool
    count: int | None
    fiber_dim: int | None
    reason: str


Rank = Callable[[np.ndarray], int]


def all_orbits(point: Point) -> Orbits | None:
    """The orbits in the fiber through the point over the closure of QQ (over RR for softmax), where an argument counts them."""
    model = point.model
    if isinstance(model, Softmax):
        return _softmax(point)
    if isinstance(model, DeepLightning) and not model.multi_head and model.layers > 1:
        return _deep(point, model)
    return _over_any_field(point, over_q.rank)


def all_orbits_mod(point: Point, p: int) -> Orbits | None:
    """The same for the fiber over the closure of F_p through the point modulo p, where the argument holds over every field."""
    return _over_any_field(point, lambda matrix: rank_mod(residues(matrix, p), p))


def _over_any_field(point: Point, rank_of: Rank) -> Orbits | None:
    model = point.model
    if isinstance(model, Linear) or (isinstance(model, MLP) and model.r == 1):
        return _linear(point, model.widths, rank_of)
    if isinstance(model, Lightning) or (
        isinstance(model, DeepLightning) and not model.multi_head and model.layers == 1
    ):
        return _one_layer(point, model, rank_of)
    return None


def _linear(point: Point, widths: tuple[int, ...], rank_of: Rank) -> Orbits:
    """Products of matrices: the argument stands at the end of this file."""
    product = point.weights["W1"]
    for i in range(2, len(widths)):
        product = point.weights[f"W{i}"] @ product
    rank = rank_of(product)
    finite = finitely_many(widths, rank)
    count = orbit_count(widths, rank) if finite else None
    dim = two_layer_dim(widths, rank) if len(widths) == 3 else None
    if finite:
        how = f"the product has rank {rank}: intervals of the quiver 0 -> ... -> {len(widths) - 1} count the orbits"
    else:
        how = f"the product has rank {rank}: kernels or images of partial products move in the fiber, and no symmetry moves them"
    return Orbits(finite=finite, count=count, fiber_dim=0 if len(widths) == 2 else dim, reason=how)


# -- one layer of attention ------------------------------------------------------------------------------------------------------


def _one_layer(point: Point, model: Lightning | DeepLightning, rank_of: Rank) -> Orbits | None:
    """One layer, t >= 2, by unique factorization.

    The part of output n that is linear in token j and quadratic in token i != j is nu_n(x_i) (x_i^T A x_j), so that the
    function determines, and is determined by, all products alpha_m nu_n, alpha_m(x) = x^T A e_m and nu_n the rows of V. (A skip
    connection adds X, which does not depend on the weights.) Let alpha_m nu_n != 0, and let (A', V') have the same products.
    Either alpha'_m = c alpha_m and nu'_n = nu_n / c: then alpha'_k nu'_n = alpha_k nu_n and alpha'_m nu'_k = alpha_m nu_k give
    A' = c A and V' = V / c. Or alpha'_m = c nu_n, nu'_n = alpha_m / c, the two not proportional: then alpha_m divides
    alpha_k nu_n, hence every alpha_k, so that rk A = 1, and rk V = 1 likewise; (A', V') is then (v q^T, h k^T) up to scaling
    for A = k q^T and V = h v^T, and this is another orbit exactly when k and v are not proportional.
    The fiber of the zero function is {A = 0} and {V = 0}, where only scalings act: infinitely many orbits unless d = d' = 1.
    In (Q, K, V) the matrices with K^T Q = A are the fiber of a linear network with widths d, a, d; scalings keep kernels
    and images, so each orbit in (A, V) with A, V != 0 has as many orbits above it as that fiber has.
    """
    if model.t < 2:
        return None
    A, V, a = attention_and_values(point.weights)
    d, dp = A.shape[0], V.shape[0]
    r, s = rank_of(A), rank_of(V)
    if r * s == 0:
        return _zero_layer(d, dp, a)
    below = 1
    if r == s == 1:
        meet = 2 - rank_of(np.hstack([A, V.T]))
        below = 1 if meet else 2
    left = "k and v to be exchanged" if below == 2 else "the scalings"
    how = f"rk A = {r} and rk V = {s}: unique factorization leaves {left}"
    found = Orbits(finite=True, count=below, fiber_dim=1, reason=how)
    return found if a is None else _with_queries(found, [((d, a, d), r)])


def _zero_layer(d: int, dp: int, a: int | None) -> Orbits:
    how = "the zero function: {A = 0} and {V = 0}, on which only the symmetries of (A, V) act"
    if d > 1 or dp > 1:
        return Orbits(finite=False, count=None, fiber_dim=None, reason=how)
    if a is None:
        return Orbits(finite=True, count=3, fiber_dim=1, reason=how)
    # K^T Q != 0 with V = 0; K^T Q = 0 with V = 0 or V != 0
    flat = orbit_count((1, a, 1), 0) or 0
    return Orbits(finite=True, count=1 + 2 * flat, fiber_dim=None, reason=how)


def _with_queries(below: Orbits, factors: list[tuple[tuple[int, ...], int]]) -> Orbits:
    """Orbits in (Q, K, V) from those in (A, V): for each A_i the orbits of {K^T Q = A_i}, given by widths and rank."""
    finite = all(finitely_many(*factor) for factor in factors)
    counts = [orbit_count(*factor) for factor in factors] if finite else [None]
    known = [count for count in [below.count, *counts] if count is not None]
    dims = [two_layer_dim(*factor) for factor in factors]
    how = ""
    if not finite:
        widths, rank = next(factor for factor in factors if not finitely_many(*factor))
        how = f"; the rank of an attention matrix is {rank} < a = {widths[1]}, and row spaces of Q and K move in the fiber"
    count = prod(known) if len(known) == 1 + len(counts) else None
    dim = None if below.fiber_dim is None else below.fiber_dim + sum(dims)
    return Orbits(finite=finite, count=count, fiber_dim=dim, reason=below.reason + how)


# -- several layers --------------------------------------------------------------------------------------------------------------


def _deep(point: Point, model: DeepLightning) -> Orbits | None:
    """Several layers, t >= 2, no skip connections: one orbit when L != 0, all rk M_i >= 2 and no M_i is skew.

    In virtual weights the layers are Y -> Y Y^T M_i Y, and L at the end. Let (M', L') be the same function.
    1. At a single token x it is L x times a product of powers of q_i(x) = x^T M_i x: not zero, because no M_i is skew.
    2. The part of the first column that is linear in x_1, at the tokens (x_1, x_2, 0, ...), is
       (L x_2) g(x_2) (x_2^T M_1 x_1) with g != 0 by 1. A bilinear form of rank >= 2 is irreducible and the only
       factor here that contains x_1; so M_1' is a multiple of M_1, and after a scaling M_1' = M_1.
    3. For a generic d x 2 matrix P, N = P^T M_1 P is invertible: else q_1(u) q_1(w) = (u^T M_1 w) (w^T M_1 u) for all u and w. So
       for each u with q_1(u) != 0 the linear form w -> u^T M_1 w is, up to a number, one of the at most two factors of q_1, the
       same one for almost all u, and rk M_1 = 1.
    4. At two tokens X = P Z the first layer gives P W with W = Z Z^T N Z, and these W are dense in the 2 x 2 matrices: the map is
       equivariant under O(2) from the right, so it is enough that S -> S N S N^T S is dominant on symmetric S = Z Z^T, and
       the coefficients of its Jacobian determinant, as polynomials in N, have the radical (det N).
    5. So the remaining layers are the same function of two tokens. Induct down to one layer, where rk M_l >= 2 leaves scalings.
    (A, V) and (Q, K, V) follow where the hidden widths are all equal to rk L: changes of basis C_i are then determined by
    V_i ... V_1 of full row rank (Lemma 3.5's argument), and each K_i^T Q_i = A_i is the fiber of a linear network.
    """
    if model.t < 2 or model.skip:
        return None
    virtual = point if model.parametrization == "virtual" else virtual_point(point)
    *M, L = virtual.weights.values()
    if not L.any() or any(over_q.rank(m) < 2 or is_skew(m) for m in M):
        return None
    how = "L != 0, all rk M_i >= 2 and no M_i is skew: stripping the layers one by one leaves the scalings"
    below = Orbits(finite=True, count=1, fiber_dim=model.layers, reason=how)
    if model.parametrization == "virtual":
        return below
    if not widths_are_rank(model.d, L):
        return None
    how += " and, rk L being the hidden width, changes of basis between layers"
    dim = model.layers + (model.layers - 1) * model.d[1] ** 2
    hidden = Orbits(finite=True, count=1, fiber_dim=dim, reason=how)
    if model.parametrization == "attention":
        return hidden
    weights = point.weights
    ranks = [over_q.rank(weights[f"K{i}"].T @ weights[f"Q{i}"]) for i in range(1, model.layers + 1)]
    return _with_queries(hidden, [((d, a, d), r) for d, a, r in zip(model.d, model.a, ranks, strict=False)])


def _softmax(point: Point) -> Orbits | None:
    """One layer of softmax attention, t >= 2, V != 0: (A, V) is determined by the function.

    Put X = s (m 1^T + u c^T) with c orthogonal to 1 and |c| = 1. Up to what does not depend on b, the score of tokens a and b is
    s^2 c_b u^T B (m + c_a u), where B is A or A^T divided by the temperature. So output a is
    s V m + (s^3 / t) (V u) (u^T B (m + c_a u)) + O(s^5), and the mean over a is s V m + (s^3 / t) (V u) (u^T B m) + O(s^5).
    Order s gives V; order s^3 gives (V u) (u^T B m) for all u and m, hence B. In (Q, K, V) the fiber of a linear network
    stands above it.
    """
    model = point.model
    assert isinstance(model, Softmax)
    if model.layers > 1 or model.t < 2:
        return None
    A, V, a = attention_and_values(point.weights)
    if not V.any():
        return None
    how = "V != 0: the first orders at small inputs determine V and then A"
    below = Orbits(finite=True, count=1, fiber_dim=0, reason=how)
    return below if a is None else _with_queries(below, [((len(A), a, len(A)), over_q.rank(A))])


# -- products of matrices --------------------------------------------------------------------------------------------------------
#
# All (W_1, ..., W_l) with W_l ... W_1 = W, up to changes of basis in between.
#
# GL(d_1) x ... x GL(d_(l-1)) acts by W_i -> C_i W_i C_(i-1)^-1 with C_0 and C_l the identity. The matrices are a representation
# of the quiver 0 -> 1 -> ... -> l, a direct sum of intervals [i, j] (Gabriel): the interval lives at the vertices i, ..., j.
# Here the two ends are not up to a change of basis, and this is what the numbers of intervals leave open:
#
#     the flag of the kernels of W_i ... W_1 inside ker W, and the flag of the images of W_l ... W_i that contain im W.
#
# Claim: the numbers of intervals and the two flags determine the orbit. Proof: representations with the same numbers are
# carried into each other by some (g_0, ..., g_l); the orbits among those with the product W are therefore the cosets of the
# ends of Aut(R) in {(g_0, g_l) : g_l W = W g_0}. An endomorphism of R has a part [0,j] -> [0,i] for each i <= j, which for i <
# l moves the first end only, a part [i,l] -> [j,l] for each j <= i, which for i > 0 moves the last end only, and [0,l] ->
# [0,l], which moves both alike. So the ends of automorphisms are exactly the pairs with g_l W = W g_0 that keep the two flags,
# and the cosets are the pairs of flags of the same dimensions.
#
# Let r = rk W. A flag in ker W can move only when it has a proper step, that is when dim ker W = d_0 - r >= 2 and one of its
# directions outlives W_1 while another does not; for that one interval [0, j] with 1 <= j < l needs a place at the vertex 1
# beside the r intervals [0, l]: d_1 > r. The same at the other end. Hence
#
#     there are finitely many orbits exactly when (d_0 - r <= 1 or d_1 = r) and (d_l - r <= 1 or d_(l-1) = r),
#
# and then they are as many as there are numbers of intervals with the dimensions d_0, ..., d_l and r times [0, l]. Everything
# holds over every field.


_MOST_STATES = 20_000
"""Counting stops here; that there are finitely many orbits is known without it."""


def finitely_many(widths: Sequence[int], rank: int) -> bool:
    """Whether {W_l ... W_1 = W} with rk W = `rank` is a finite union of orbits."""
    if len(widths) == 2:
        return True
    first = widths[0] - rank <= 1 or widths[1] == rank
    last = widths[-1] - rank <= 1 or widths[-2] == rank
    return first and last


def orbit_count(widths: Sequence[int], rank: int) -> int | None:
    """Number of ways to write the dimensions as sums of intervals, `rank` of them from end to end; None when it is too large.

    That is the number of orbits where :func:`finitely_many` holds.

    Examples
    --------
    >>> orbit_count([2, 2, 1], 1)
    2
    """
    last = len(widths) - 1
    states = 0

    @cache
    def ways(vertex: int, through: int, others: tuple[int, ...]) -> int:
        """Continuations when `through` intervals from 0 and `others[k - 1]` intervals from k are alive at `vertex`."""
        nonlocal states
        states += 1
        if states > _MOST_STATES:
            raise OverflowError
        if vertex == last:
            return int(through == rank)
        total = 0
        for kept in _choices((through, *others), widths[vertex + 1]):
            if kept[0] >= rank:
                born = widths[vertex + 1] - sum(kept)
                total += ways(vertex + 1, kept[0], (*kept[1:], born))
        return total

    try:
        return ways(0, widths[0], ())
    except OverflowError:
        return None


def _choices(alive: tuple[int, ...], room: int) -> list[tuple[int, ...]]:
    """All ways to keep some of the intervals alive, at most `room` of them together."""
    found: list[tuple[int, ...]] = [()]
    for count in alive:
        found = [(*kept, n) for kept in found for n in range(min(count, room - sum(kept)) + 1)]
        if len(found) > _MOST_STATES:
            raise OverflowError
    return found


def two_layer_dim(widths: Sequence[int], rank: int) -> int:
    """Dimension of {W_2 W_1 = W} for rk W = `rank`: the largest family of orbits.

    With rk W_1 = r + x and rk W_2 = r + y the kernel of W_1 is a point of Gr(n_0 - x, n_0), n_0 = d_0 - r, the image of W_2 one
    of Gr(y, n_2), and the stabilizer has dimension (h - rk W_1)(h - rk W_2): maps that vanish on im W_1 and land in ker W_2.
    """
    first, h, last = (widths[0] - rank, widths[1], widths[2] - rank)
    return max(
        h * h - (h - rank - x) * (h - rank - y) + x * (first - x) + y * (last - y)
        for x in range(min(first, h - rank) + 1)
        for y in range(min(last, h - rank - x) + 1)
    )


def widths_are_rank(widths: Sequence[int], L: np.ndarray) -> bool:
    """Whether all hidden widths are rk L: then the changes of basis between layers are determined (Lemma 3.5)."""
    return set(widths[1:-1]) == {over_q.rank(L)}
