"""Two orbits of deep networks with one function, where M_1 is skew, verified by an exact polynomial identity.

For J skew and S symmetric of size 2, S J S = det(S) J and
J S J^T = adj(S), so that with N invertible of size 2

    (M_1, M_2, L) = (J, N, L)    and    (N, J, L / det N)

are the same function. Both satisfy rk M_i = 2 and L != 0; in the first one only M_1 is skew. Zero rows and columns carry it to
every d_0 >= 2. Here the identity is checked over QQ with symbolic inputs, not believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.programs.arithmetics import object_array

Matrix = tuple[tuple[Fraction, ...], ...]


def exact(matrix: Any, name: str = "the matrix") -> Matrix:
    """A rectangular matrix of Fractions from integers, Fractions or strings such as ``"2/3"``; floats are refused."""
    rows = tuple(tuple(_number(entry, name) for entry in row) for row in matrix)
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"{name}: its rows have different lengths")
    return rows


def _number(entry: Any, name: str) -> Fraction:
    if isinstance(entry, (bool, float)):
        raise InputError(f"{name}: {entry!r} is not an exact number; write integers or fractions as strings")
    try:
        return Fraction(entry if isinstance(entry, (str, Fraction)) else int(entry))
    except (ValueError, ZeroDivisionError, TypeError):
        raise InputError(f"{name}: {entry!r} is not an integer or a fraction") from None


def is_skew(matrix: Any) -> bool:
    """Whether M^T = -M and M is not zero."""
    M = np.array(matrix, dtype=object)
    return bool(M.any()) and bool(np.all(M == -M.T))


def partner(M1: Any, M2: Any, L: Any) -> tuple[Matrix, Matrix, Matrix] | None:
    """Weights of another orbit with the same function, when M1 is skew of rank 2; None when the construction does not apply.

    M1 = c (u w^T - w u^T) lives on a plane. When M2 vanishes off the same two coordinates (always for d_0 = 2) and is invertible
    there and not skew, the partner exchanges the two and divides L by det(M2) / det(M1).
    """
    first, second, last = exact(M1, "M1"), exact(M2, "M2"), exact(L, "L")
    support = [i for i, row in enumerate(first) if any(row)]
    if not is_skew(first) or len(support) != 2 or is_skew(second):
        return None
    (a, b), (c, d) = ([second[i][j] for j in support] for i in support)
    determinant = a * d - b * c
    inside = sum(x != 0 for row in second for x in row) == sum(x != 0 for x in (a, b, c, d))
    if not inside or determinant == 0:
        return None
    scale = first[support[0]][support[1]] ** 2 / determinant
    return second, first, tuple(tuple(scale * x for x in row) for row in last)


def same_function(first: Sequence[Any], second: Sequence[Any], tokens: int) -> bool:
    """Whether two lists (M_1, ..., M_l, L) of virtual weights give the same polynomial map: all coefficients over QQ.

    The network is composed layer by layer with symbolic inputs: X -> X X^T M_i X, and L at the end.
    """
    d = len(exact(first[0]))
    names = [f"x{i}_{k}" for i in range(d) for k in range(tokens)]
    ring = flint.fmpq_mpoly_ctx.get(names, "lex")
    X = object_array(list(ring.gens()), (d, tokens))
    outputs = []
    for weights in (first, second):
        *M, L = [_constants(exact(matrix), ring) for matrix in weights]
        Y = X
        for matrix in M:
            Y = Y @ (Y.T @ (matrix @ Y))
        outputs.append(L @ Y)
    return all(a == b for a, b in zip(outputs[0].flat, outputs[1].flat, strict=True))


def _constants(matrix: Matrix, ring: Any) -> np.ndarray:
    entries = [ring.constant(flint.fmpq(x.numerator, x.denominator)) for row in matrix for x in row]
    return object_array(entries, (len(matrix), len(matrix[0])))


def counterexample(M1: Any, M2: Any, L: Any, tokens: int) -> dict[str, Any] | None:
    """The partner of (M1, M2, L) with the outcome of the exact comparison, as JSON values; None when there is none."""
    other = partner(M1, M2, L)
    if other is None:
        return None
    verified = same_function((M1, M2, L), other, tokens)
    return {
        "weights": _named((exact(M1), exact(M2), exact(L))),
        "other": _named(other),
        "verified": verified,
        "method": f"all coefficients of both polynomial maps over QQ, symbolic X with {tokens} tokens",
    }


def _named(weights: Sequence[Matrix]) -> dict[str, list[list[str]]]:
    names = [*(f"M{i}" for i in range(1, len(weights))), "L"]
    return {
        name: [list(map(str, row)) for row in matrix] for name, matrix in zip(names, weights, strict=True)
    }
