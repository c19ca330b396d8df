"""The degree of one layer's closure by intersection theory: a witness that needs neither equations nor Macaulay2.

The map (A, V) -> alpha_m nu_n from PD_a x P^(dd'-1) (D_a: matrices of rank <= a) to the projective span is given by forms
of bidegree (1, 1) without common zeros, so the degree of its image times the degree of the map is (h1 + h2)^n on the
source, n its dimension: deg(D_a) * C(n, dd'-1). The map is birational when a >= 2 or d' >= 2 (d >= 2), and of degree two
when a = d' = 1, where k and v in A = k q^T, V = v^T may be exchanged (Theorem 3.2). For d = 1 it is a bijection.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod

from m2bridge.models import Lightning

CITATION = "intersection number (h1+h2)^n on PD_a x P^(dd'-1); deg D_a from Harris, Algebraic Geometry, Example 19.10"


def determinantal_degree(d: int, a: int) -> int:
    """Degree of the variety of d x d matrices of rank at most a.

    >>> [determinantal_degree(3, a) for a in (1, 2, 3)]
    [6, 3, 1]
    """
    value = prod((Fraction(comb(d + i, a), comb(a + i, a)) for i in range(d - a)), start=Fraction(1))
    if value.denominator != 1:
        raise ArithmeticError(f"the degree of a variety is an integer, not {value}")
    return int(value)


def intersection_degree(model: Lightning) -> int:
    """Degree of the projective closure of the image of one layer."""
    rank = min(model.a, model.d)
    matrices_dim = rank * (2 * model.d - rank) - 1
    values_dim = model.d * model.dp - 1
    number = determinantal_degree(model.d, rank) * comb(matrices_dim + values_dim, values_dim)
    map_degree = 2 if rank == model.dp == 1 and model.d >= 2 else 1
    return number // map_degree
