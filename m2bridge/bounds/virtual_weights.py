"""The dimension of deep normalised attention for any widths and t >= 2, as the dimension of its virtual weights.

A network of normalised attention is a function of its virtual weights (M, L) (Henry, Marchetti, Kohn, Equation 8), so that its
dimension is at most that of the variety Z of all (M, L). For t >= 2 the function determines (M, L) wherever L != 0 and no M_i
with i < l is skew-symmetric, which is a dense open subset of Z (``docs/conjecture-3.10.md``), so that it is also at least that.
It remains to compute the dimension of Z, the closure of the image of the polynomial map (Q, K, V) -> (M, L):

* from above, by counting: row and column space of M_(i+1) lie in the row space R_i of L_i = V_i ... V_1, and R_1, ..., R_l are
  nested. The bound is the dimension of the flags that the M_i and L determine, plus that of the matrices for a fixed flag.
* from below, by the rank of the map's differential at one point: V_i with ones on the diagonal and zeros elsewhere, Q_i and K_i
  random integers. There the differential is block triangular, so that matrices as small as the widths are ranked, at any size.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.attention_knowledge import attention_dim
from m2bridge.linear.modular import rank_mod

THEOREM = "for t >= 2 normalised attention determines its virtual weights (M, L), generically (docs/conjecture-3.10.md)"

EQUATION = "the network is a function of its virtual weights (M, L) (Henry, Marchetti, Kohn, Equation 8)"


def virtual_evidence(model: AttentionNetwork, *, p: int, seed: int) -> tuple[Evidence, ...]:
    """Bound the network's dimension by that of the virtual weights, from both sides; nothing for one token."""
    if model.t < 2:
        return ()
    start = time.perf_counter()
    lower = virtual_dim_lower(model.widths, model.ranks, p=p, seed=seed)
    ranked = "rank of (Q, K, V) -> (M, L) at a point modulo p"
    counted = "virtual weights (M, L) counted by the flag of their row spaces"
    return (
        Evidence(
            "image_dim", lower, "virtual weights", ranked, relation=">=", prime=p, seconds=time.perf_counter() - start,
            certainty=Certainty.THEOREM, ancestry="construction", detail={"theorem": THEOREM},
        ),
        Evidence(
            "image_dim", virtual_dim_upper(model.widths, model.ranks), "flags", counted, relation="<=", ancestry="formula",
            certainty=Certainty.THEOREM, detail={"theorem": EQUATION},
        ),
    )  # fmt: skip


def virtual_dim_upper(widths: tuple[int, ...], ranks: tuple[int, ...]) -> int:
    """Bound the dimension of the variety of (M, L) from above, by counting.

    L_i has rank at most r_i = min(d_0, ..., d_i). Later weights determine a subspace E_i of R_i: E_l is the row space
    of L, and E_i is spanned by E_(i+1) and by the rows and columns of M_(i+1), so that its dimension is at most
    e_i = min(r_i, 2 a_(i+1) + e_(i+1)). Given the flag E_l < ... < E_1 in K^d_0, M_(i+1) is an e_i x e_i matrix of rank at
    most a_(i+1), and L is a d_l x e_l matrix.

    >>> virtual_dim_upper((3, 3, 3), (2, 2)), virtual_dim_upper((1, 3, 1), (1, 1)), virtual_dim_upper((2, 3, 2), (2, 2))
    (25, 3, 12)
    """
    subspace_dims = [min(widths)]
    for i in range(len(ranks) - 1, 0, -1):
        subspace_dims.insert(0, min(*widths[: i + 1], 2 * ranks[i] + subspace_dims[0]))
    subspace_dims.insert(0, widths[0])
    flag = sum(smaller * (larger - smaller) for larger, smaller in pairwise(subspace_dims))
    attention = sum(attention_dim(a, e) for e, a in zip(subspace_dims, ranks, strict=False))
    return flag + attention + widths[-1] * subspace_dims[-1]


def virtual_dim_lower(widths: tuple[int, ...], ranks: tuple[int, ...], *, p: int, seed: int) -> int:
    """Return the rank of the differential of (Q, K, V) -> (M, L) at a point modulo p, a lower bound of the dimension.

    At the point, L_i is diagonal with r_i = min(d_0, ..., d_i) ones. The corner of M_(i+1) of size r_i moves with A_(i+1) in
    the variety of matrices of rank <= a_(i+1), and the other entries do not. Outside of the corner dM_(i+1) is
    (A dL_i, dL_i^T A): only column q of L and, if q > r_i, row and column q of M_(i+1) depend on column q of the
    differentials dV_j.
    """
    layers = len(ranks)
    least = [min(widths[: i + 1]) for i in range(layers + 1)]
    rng = np.random.default_rng([seed, 17])
    corners, total = [], 0
    for r, a in zip(least, ranks, strict=False):
        left, right = rng.integers(-99, 100, (2, r, min(a, r)))
        corners.append(left @ right.T)
        k, q = rank_mod(left, p), rank_mod(right, p)
        total += r * (k + q) - k * q  # of the changes left * anything + anything * right
    # Columns q with r_drop < q <= r_(drop-1); for drop = l + 1 those with q <= r_l.
    for drop in range(1, layers + 2):
        count = least[drop - 1] - (least[drop] if drop <= layers else 0)
        if count:
            total += count * rank_mod(_column(widths, least, corners, drop), p)
    return total


def _column(widths: tuple[int, ...], least: list[int], corners: list[np.ndarray], drop: int) -> np.ndarray:
    """Return the derivative of column q of L and of the M_i by column q of dV_1, dV_2, ..., for columns lost in layer `drop`."""
    layers = len(corners)
    moving = [widths[j] for j in range(1, min(drop, layers) + 1)]
    starts = np.cumsum([0, *moving])

    def change(k: int) -> np.ndarray:
        """Return column q of dL_k as a function of the columns: the sum of V_k ... V_(j+1) dV_j, each a truncation."""
        matrix = np.zeros((widths[k], starts[-1]), dtype=np.int64)
        for j, start in enumerate(starts[: min(k, len(moving))], start=1):
            kept = np.arange(min(widths[j : k + 1]))
            matrix[kept, start + kept] = 1
        return matrix

    rows = [change(layers)]
    for k in range(drop, layers):
        column_change = change(k)[: least[k]]
        rows += [corners[k] @ column_change, corners[k].T @ column_change]
    return np.concatenate(rows)
