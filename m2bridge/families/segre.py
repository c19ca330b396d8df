"""Segre coordinates of one layer of lightning attention (Henry, Marchetti, Kohn, arXiv:2408.17221, Proposition A.5).

The coefficients of x_(m,1) x_(i,2) x_(j,2) in the first token's output are the products of the m-th column of A with the
n-th row of V in Sym2. For t >= 2 all other coefficients are linear in them. Order: n, then m, then i <= j lexicographically.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.frontends.recording import record_call
from m2bridge.programs.program import Program

if TYPE_CHECKING:
    from m2bridge.families.attention import AttentionNetwork


def segre_coordinates(A: Any, V: Any) -> Any:
    """Return the products of columns of A with rows of V in Sym2: axes are n, m and (i, j), i <= j."""
    i, j = np.triu_indices(A.shape[-1])
    columns = A.T  # the m-th row is the linear form alpha_m
    straight = columns[None, :, i] * V[:, None, j]
    crossed = columns[None, :, j] * V[:, None, i]
    return straight + crossed * (i < j).astype(np.int64)


@lru_cache(maxsize=128)
def segre_program(network: AttentionNetwork) -> Program:
    """Return the program of the Segre coordinates of one layer, a vector; heads (a leading axis) are added up."""

    def coordinates(weights: Mapping[str, Any], _: Any) -> Any:
        A, V = _factors(network, weights)
        if len(A.shape) == 2:
            return segre_coordinates(A, V).reshape(-1)
        return sum(segre_coordinates(A[h], V[h]) for h in range(A.shape[0])).reshape(-1)

    return record_call(coordinates, network.parameters).program


def _factors(network: AttentionNetwork, weights: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return A and V of the layer, on which the coordinates depend."""
    if network.parametrization == "virtual":
        return weights["M1"], weights["L"]
    return network.attention(weights), weights[network.weight_name("V", 1)]


def segre_names(d: int, dp: int) -> tuple[str, ...]:
    """Return the name of each coordinate: an output entry and a monomial."""
    pairs = zip(*np.triu_indices(d), strict=True)
    squares = [f"x[{i + 1},2]^2" if i == j else f"x[{i + 1},2]*x[{j + 1},2]" for i, j in pairs]
    entries = [(n, m, square) for n in range(dp) for m in range(d) for square in squares]
    return tuple(f"y[{n + 1},1]: x[{m + 1},1]*{square}" for n, m, square in entries)


def segre_description(*, multi_head: bool) -> str:
    """Describe the coordinates in words."""
    coefficients = "the coefficients of x[m,1]*x[i,2]*x[j,2] in the outputs y[n,1]"
    if multi_head:
        return f"{coefficients} (Segre coordinates, Proposition A.5, added up over the heads)"
    return (
        f"{coefficients}, that is of x_i*x_j in the product of the linear forms alpha_m(x) = x^T A e_m and nu_n, row n of V "
        "(Segre coordinates, Proposition A.5)"
    )
