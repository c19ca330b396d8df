"""Proposition A.5 and the numbers around Figure 1: the Segre coordinates, and dimension 5 in 40."""

from __future__ import annotations

from itertools import product

import numpy as np

from m2bridge.claims.base import Claim, Context, Size, Verdict, decided, disagreement, fails, holds, sizes
from m2bridge.claims.dimensions import ABOUT, ONE_LAYER_WITNESSES
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import Lightning, Model
from m2bridge.models.symbolic import symbolic_map
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty


def _coefficients(model: Model) -> list[dict[tuple[int, ...], int]]:
    return [dict(polynomial) for polynomial in symbolic_map(model)]


def _rank(polynomials: list[dict[tuple[int, ...], int]]) -> int:
    columns = {e: i for i, e in enumerate(sorted({e for f in polynomials for e in f}))}
    table = np.zeros((len(polynomials), len(columns)), dtype=object)
    for row, polynomial in enumerate(polynomials):
        for exponents, coefficient in polynomial.items():
            table[row, columns[exponents]] = coefficient
    return rank_over_q(table)


def check_isomorphism(size: Size, _: Context) -> Verdict:
    """All coefficients of the network and the Segre coordinates span the same space of polynomials in the weights."""
    segre = _coefficients(Lightning(**size, coordinate_system="segre"))
    full = _coefficients(Lightning(**size, coordinate_system="full"))
    ranks = {"segre": _rank(segre), "full": _rank(full), "together": _rank(segre + full)}
    if len(set(ranks.values())) == 1:
        reason = "the same linear span over QQ"
        return holds(Certainty.PROVED, reason, **ranks, coordinates=len(segre), ambient=len(full))
    return fails(Certainty.PROVED, ranks, "the two sets of coordinates span different spaces", **ranks)


def check_figure_1(size: Size, context: Context) -> Verdict:
    """The dimension of the neuromanifold, and of the space of all cubic maps: its monomials counted, for each output entry."""
    model = Lightning(**size, coordinate_system="full")
    result = context.once(dimension, model)
    cubics = {tuple(sorted(c)) for c in product(range(model.d * model.t), repeat=3)}
    ambient, coefficients = len(cubics) * model.dp * model.t, _coefficients(model)
    computed = {"image_dim": result.image_dim, "ambient_dim": ambient, "span_dim": _rank(coefficients)}
    if len(coefficients) != ambient:
        return disagreement([f"{len(coefficients)} coefficients of the network, {ambient} monomials"])
    numbers = f"dimension {result.image_dim} in {ambient}, spanning {computed['span_dim']}"
    return decided((result.image_dim, ambient) == (5, 40), result.certainty, numbers, numbers, **computed)


_SIZES = sizes("d dp a t", (2, 1, 2, 2), (2, 2, 1, 2), (2, 1, 2, 3), (3, 1, 2, 2), (3, 2, 3, 2))

CLAIMS = (
    Claim(
        id="proposition-a.5",
        number="Proposition A.5",
        statement="The neuromanifold of one layer is linearly isomorphic to the set of all (alpha_m nu_n), products of linear forms.",
        checked="ranks over QQ of all coefficients of the network, of the products, and of both together",
        witnesses={
            "program": ("the forward pass over polynomials in X",),
            "formula": ("the products of linear forms",),
        },
        sizes=_SIZES,
        quick=_SIZES[:2],
        run=check_isomorphism,
    ),
    Claim(
        id="figure-1",
        number="Numbers around Figure 1",
        statement="M(2,1,2) for t = 2 has dimension 5 in the 40-dimensional space Sym3(R^4, R^2).",
        checked="the dimension of the image and of the ambient space",
        quote="has dimension 5 and is embedded in the 40-dimensional space",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_SIZES[:1],
        run=check_figure_1,
    ),
)
