"""Virtual weights of deep attention (Henry, Marchetti, Kohn, Equations 8, 10, 11 and 12).

M_i = L_{i-1}^T A_i L_{i-1} with L_i = V_i ... V_1 and L = L_l determine a deep network without skip
connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from m2bridge.frontends.recording import record_call
from m2bridge.programs.ranks import generic_rank

if TYPE_CHECKING:
    from m2bridge.families.attention import AttentionNetwork


def virtual_weights(A: Sequence[Any], V: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return (M_1, ..., M_l) and L of Equation 8, from attention matrices and values."""
    M, L = [A[0]], V[0]
    for attention, value in zip(A[1:], V[1:], strict=True):
        M.append(L.mT @ attention @ L)
        L = value @ L
    return M, L


@lru_cache(maxsize=64)
def virtual_dim(model: AttentionNetwork) -> int:
    """Return the dimension of the variety of virtual weights of a model: the rank of (Q, K, V) -> (M, L).

    The rank is taken at a random point over F_p: a lower bound, and the dimension unless the point is special.
    """
    recording = record_call(lambda w, _: model.from_weights(w), model.by_weights.parameters)
    return generic_rank(recording.program).rank


def equation_11(M: Sequence[Any], L: Any, X: Any) -> Any:
    """Return the network by the recursion D_i = D X^T M_i X D X^T M_i^T X D (Equation 10) and Equation 11."""
    # With G_i = X^T M_i X: the factors are D_(i-1) G_i, and D_i = D_(i-1) G_i D_(i-1) G_i^T D_(i-1). D_0 is the identity.
    D = None
    factors = []
    for matrix in M:
        G = X.mT @ (matrix @ X)
        step = G if D is None else D @ G
        factors.append(step)
        D = step @ G.mT if D is None else step @ D @ G.mT @ D
    result = L @ X
    for factor in reversed(factors):
        result = result @ factor
    return result


def ternary_factor(j: int) -> tuple[int, bool]:
    """Return the virtual weight at position j >= 1 of Equation 12: (layer from 1, whether transposed).

    The layer is one more than the number of factors 3 in j; the last non-zero ternary digit 2 means
    transposed.

    >>> [ternary_factor(j) for j in (1, 2, 3, 6)]
    [(1, False), (1, True), (2, False), (2, True)]
    """
    layer = 1
    while j % 3 == 0:
        j //= 3
        layer += 1
    return layer, j % 3 == 2


def equation_12(M: Sequence[Any], L: Any, X: Any, k: int) -> Any:
    """Return column k of the output by the explicit sum of Equation 12, one term for each choice of tokens.

    The printed last factor reads x_l~^T A_1 x_k; the token index meant is k_l~. A sum of t^((3^l - 1)/2)
    terms: for small sizes only, over arrays without batch axes.
    """
    length = (3 ** len(M) - 1) // 2
    tokens = range(X.shape[-1])
    x = [X[..., i : i + 1] for i in tokens]
    chain = []
    for j in range(1, length):
        layer, transposed = ternary_factor(j)
        chain.append(M[layer - 1].mT if transposed else M[layer - 1])
    score = [[[x[i].mT @ matrix @ x[j] for j in tokens] for i in tokens] for matrix in chain]
    last = [x[i].mT @ M[0] @ x[k] for i in tokens]
    total = None
    for choice in product(tokens, repeat=length):
        factor = last[choice[-1]]
        for position, table in enumerate(score):
            factor = table[choice[position]][choice[position + 1]] * factor
        term = (L @ x[choice[0]]) * factor
        total = term if total is None else total + term
    return total
