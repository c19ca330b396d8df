"""The Segre coordinates of one-layer attention (Henry, Marchetti, Kohn, Proposition A.5).

The coefficients of x_(m,1) x_(i,2) x_(j,2) in the first token's output are the products of the m-th column
of A with the n-th row of V in Sym2. For t >= 2 all other coefficients are linear in them. Order: n, then m,
then i <= j lexicographically.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.programs.program import Program
from m2bridge.programs.recording import record_call

if TYPE_CHECKING:
    from m2bridge.models.lightning import LightningNetwork


def segre_count(d: int, dp: int) -> int:
    """Number of Segre coordinates, d d' C(d+1, 2)."""
    return d * dp * comb(d + 1, 2)


def segre_coordinates(A: Any, V: Any) -> Any:
    """The products of columns of A with rows of V in Sym2: axes are n, m and (i, j), i <= j."""
    i, j = np.triu_indices(A.shape[-1])
    columns = A.T  # the m-th row is the linear form alpha_m
    straight = columns[None, :, i] * V[:, None, j]
    crossed = columns[None, :, j] * V[:, None, i]
    return straight + crossed * (i < j).astype(np.int64)


@lru_cache(maxsize=128)
def segre_program(model: LightningNetwork) -> Program:
    """The program of the Segre coordinates of a model, a vector; heads (a leading axis) are added up."""

    def coordinates(weights: Mapping[str, Any], _: Any) -> Any:
        A, V = model.tensor_factors(weights)
        if len(A.shape) == 2:
            return segre_coordinates(A, V).reshape(-1)
        return sum(segre_coordinates(A[h], V[h]) for h in range(A.shape[0])).reshape(-1)

    return record_call(coordinates, model.parameters).program


def segre_names(d: int, dp: int) -> tuple[str, ...]:
    """Readable names: which monomial of which output."""
    squares = [
        f"x[{i + 1},2]^2" if i == j else f"x[{i + 1},2]*x[{j + 1},2]"
        for i, j in zip(*np.triu_indices(d), strict=True)
    ]
    return tuple(
        f"y[{n + 1},1]: x[{m + 1},1]*{square}" for n in range(dp) for m in range(d) for square in squares
    )
