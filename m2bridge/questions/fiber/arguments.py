"""All orbits in the fiber through a point, where an argument counts them: no computation but exact ranks at the point.

The arguments stand beside the code; they do not use the statements of a paper that ``m2bridge verify`` checks, and the claims do
not use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.questions import over_q
from m2bridge.questions.fiber.coarser import Coarser, Product, coarsest
from m2bridge.questions.over_q import is_skew
from m2bridge.questions.point import Point, residues

Rank = Callable[[np.ndarray], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orbits:
    """All orbits of the known connected symmetries in one fiber, over the algebraic closure.

    `finite` says whether they are finitely many, and `count` how many, None when infinitely many or not counted. `fiber_dim` is
    the dimension of the fiber where the argument gives it, `reason` the argument in a sentence.
    """

    finite: bool = True
    count: int | None
    fiber_dim: int | None
    reason: str


def all_orbits(point: Point, p: int = 0) -> Orbits | None:
    """Count the orbits in the fiber through the point by an argument, over the closure of QQ (over RR for softmax).

    With a prime `p`, those of the fiber over the closure of F_p, where the argument holds over every field.
    """
    model = point.model

    def rank_of(matrix: np.ndarray) -> int:
        return rank_mod(residues(matrix, p), p) if p else over_q.rank(matrix)

    if (widths := model.knowledge.matrix_product) is not None:
        return _linear(point, widths, rank_of)
    coarse = coarsest(point)
    if coarse is None or coarse.tokens < 2:
        return None
    if len(coarse.point.weights) > 2:
        return None if p else _several_layers(coarse)
    if not model.polynomial:
        return None if p else _softmax(coarse)
    return _one_layer(coarse, rank_of)


def _linear(point: Point, widths: tuple[int, ...], rank_of: Rank) -> Orbits:
    """Products of matrices: the argument stands at the end of this file."""
    product = point.weights["W1"]
    for i in range(2, len(widths)):
        product = point.weights[f"W{i}"] @ product
    rank = rank_of(product)
    finite = finitely_many(widths, rank)
    dim = 0 if len(widths) == 2 else two_layer_dim(widths, rank) if len(widths) == 3 else None
    how = "kernels or images of partial products move in the fiber, and no symmetry moves them"
    if finite:
        how = f"intervals of the quiver 0 -> ... -> {len(widths) - 1} count the orbits"
    return Orbits(
        finite=finite,
        count=orbit_count(widths, rank) if finite else None,
        fiber_dim=dim,
        reason=f"the product has rank {rank}: {how}",
    )


def _above(below: Orbits, products: Sequence[Product]) -> Orbits:
    """Compute orbits in the given weights from those in the coarsest ones: for each A_i those of {K_i^T Q_i = A_i}.

    Scalings and changes of basis keep kernels and images, so that each orbit below has as many orbits above it.
    """
    moving = next((product for product in products if not finitely_many(*product)), None)
    counts = [below.count, *(orbit_count(*product) for product in products)]
    how = below.reason
    if moving is not None:
        widths, rank = moving
        how += f"; the rank of an attention matrix is {rank} < a = {widths[1]}, and row spaces of Q and K move in the fiber"
    dim = None
    if below.fiber_dim is not None:
        dim = below.fiber_dim + sum(two_layer_dim(*product) for product in products)
    countable = moving is None and None not in counts
    return Orbits(
        finite=moving is None,
        count=prod(count or 0 for count in counts) if countable else None,
        fiber_dim=dim,
        reason=how,
    )


# -- one layer of attention ------------------------------------------------------------------------------------------------------


def _one_layer(coarse: Coarser, rank_of: Rank) -> Orbits:
    """Count the orbits of one layer, t >= 2, by unique factorization.

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
    A, V = coarse.point.weights.values()
    r, s = rank_of(A), rank_of(V)
    products = [(widths, r) for widths, _ in coarse.products]
    if r * s == 0:
        how = "the zero function: {A = 0} and {V = 0}, on which only the symmetries of (A, V) act"
        if max(A.shape + V.shape) > 1:
            return Orbits(finite=False, count=None, fiber_dim=None, reason=how)
        # K^T Q != 0 with V = 0; K^T Q = 0 with V = 0 or V != 0
        flat = orbit_count(products[0][0], 0) if products else 1
        return Orbits(count=1 + 2 * (flat or 0), fiber_dim=None if products else 1, reason=how)
    two = r == s == 1 and rank_of(np.hstack([A, V.T])) == 2
    left = "the exchange of k and v" if two else "the scalings"
    how = f"rk A = {r} and rk V = {s}: by unique factorization only {left} can change the weights"
    return _above(Orbits(count=2 if two else 1, fiber_dim=1, reason=how), products)


# -- several layers --------------------------------------------------------------------------------------------------------------


def _several_layers(coarse: Coarser) -> Orbits | None:
    """Several layers, t >= 2, no skip connections: one orbit when L != 0, no M_i is skew, rk M_i >= 2 and rk M_l rk L >= 2.

    The condition rk M_i >= 2 is for the layers i < l before the last.

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
    5. So the remaining layers are the same function of two tokens. Induct down to one layer with A = M_l and V = L, where
       rk M_l rk L >= 2 leaves scalings (:func:`_one_layer`).
    (A, V) and (Q, K, V) follow where the hidden widths are all equal to rk L: changes of basis C_i are then determined by
    V_i ... V_1 of full row rank (Lemma 3.5's argument), and each K_i^T Q_i = A_i is the fiber of a linear network.

    When rk M_i = 1 for some i < l, the tokens after layer i are u w^T, and a later layer multiplies them by (w^T w) (u^T M_j u).
    So skew matrices can be added to M_(i+1), ..., M_l, whose symmetric parts are not zero: infinitely many orbits of scalings.
    """
    *M, L = coarse.point.weights.values()
    if not L.any() or any(is_skew(m) for m in M) or coarse.bases is None:
        return None
    *before, last = (over_q.rank(m) for m in M)
    if 1 in before and len(L.T) > 1:
        if coarse.bases or coarse.products or getattr(coarse.point.model, "constrained", False):
            return None
        how = f"rk M_{before.index(1) + 1} = 1: a skew matrix can be added to the M_i of later layers"
        return Orbits(finite=False, count=None, fiber_dim=None, reason=how)
    if min(before) < 2 or last * over_q.rank(L) < 2:
        return None
    condition = "all rk M_i >= 2" if last > 1 else "rk M_i >= 2 before the last layer, rk L >= 2"
    how = f"L != 0, {condition} and no M_i is skew: the layers are determined one by one, up to the scalings"
    if coarse.bases:
        how += " and, rk L being the hidden width, changes of basis between layers"
    return _above(Orbits(count=1, fiber_dim=len(M) + coarse.bases, reason=how), coarse.products)


def _softmax(coarse: Coarser) -> Orbits | None:
    """Count the orbits of one layer of softmax attention, t >= 2, V != 0: the function determines (A, V).

    Put X = s (m 1^T + u c^T) with c orthogonal to 1 and |c| = 1. Up to what does not depend on b, the score of tokens a and b is
    s^2 c_b u^T B (m + c_a u), where B is A or A^T. So output a is
    s V m + (s^3 / t) (V u) (u^T B (m + c_a u)) + O(s^5), and the mean over a is s V m + (s^3 / t) (V u) (u^T B m) + O(s^5).
    Order s gives V; order s^3 gives (V u) (u^T B m) for all u and m, hence B. In (Q, K, V) the fiber of a linear network
    stands above it.
    """
    _, V = coarse.point.weights.values()
    if not V.any():
        return None
    how = "V != 0: the first orders at small inputs determine V and then A"
    return _above(Orbits(count=1, fiber_dim=0, reason=how), coarse.products)


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

_MOST_STATES = 100_000
"""Counting stops here; that there are finitely many orbits is known without it."""


def finitely_many(widths: Sequence[int], rank: int) -> bool:
    """Return whether {W_l ... W_1 = W} with rk W = `rank` is a finite union of orbits."""
    if len(widths) == 2:
        return True
    first = widths[0] - rank <= 1 or widths[1] == rank
    last = widths[-1] - rank <= 1 or widths[-2] == rank
    return first and last


def orbit_count(widths: Sequence[int], rank: int) -> int | None:
    """Count the ways to write the dimensions as sums of intervals, `rank` of them from end to end; None if too many.

    That is the number of orbits where :func:`finitely_many` holds.

    Examples
    --------
    >>> orbit_count([2, 2, 1], 1)
    2
    """
    sizes = [n - rank + 1 for n in widths]  # the dimensions that other intervals fill are from 0 to n - rank
    if prod(sizes) > _MOST_STATES:
        return None
    ways = np.zeros(sizes, dtype=object)
    ways[(0,) * len(sizes)] = 1
    for i, j in combinations_with_replacement(range(len(sizes)), 2):
        # the interval [i, j], but for the whole [0, l], any number of times: one more where its vertices have room
        if j - i < len(sizes) - 1:
            below, above = ([slice(None)] * len(sizes) for _ in range(2))
            below[i + 1 : j + 1], above[i + 1 : j + 1] = [slice(-1)] * (j - i), [slice(1, None)] * (j - i)
            for n in range(1, sizes[i]):
                below[i], above[i] = slice(n - 1, n), slice(n, n + 1)
                ways[tuple(above)] += ways[tuple(below)]
    return int(ways[(-1,) * len(sizes)])


def two_layer_dim(widths: Sequence[int], rank: int) -> int:
    """Return the dimension of {W_2 W_1 = W} for rk W = `rank`: the largest family of orbits.

    With rk W_1 = r + x and rk W_2 = r + y the kernel of W_1 is a point of Gr(n_0 - x, n_0), n_0 = d_0 - r, the image of W_2 one
    of Gr(y, n_2), and the stabilizer has dimension (h - rk W_1)(h - rk W_2): maps that vanish on im W_1 and land in ker W_2.
    """
    first, h, last = (widths[0] - rank, widths[1], widths[2] - rank)
    return max(
        h * h - (h - rank - x) * (h - rank - y) + x * (first - x) + y * (last - y)
        for x in range(min(first, h - rank) + 1)
        for y in range(min(last, h - rank - x) + 1)
    )
