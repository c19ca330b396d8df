"""Coarser weights of attention: those of a point, and the fiber in finer weights from that in coarser ones.

(Q, K) -> A = K^T Q is a linear network of widths d, a, d. (A_i, V_i) -> (M, L), Equation 8, forgets the bases between the layers;
where all hidden widths are rk L it forgets nothing else (Lemma 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m2bridge.families.virtual import virtual_weights
from m2bridge.questions import over_q
from m2bridge.questions.fiber.computed import ComputedFiber, by_macaulay2
from m2bridge.questions.point import Point

Product = tuple[tuple[int, ...], int]
"""The fiber {W_l ... W_1 = W} of a linear network: its widths and rk W."""
_CHANGED_BY_LIFTING = ("fiber_dim", "dim_at_point", "degree", "components")
"""Quantities with other values in finer weights; the number of orbits is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarser:
    """A point in the coarsest weights, and what stands above its orbit in the weights that were given.

    Attributes
    ----------
    point, tokens: in (A, V), or in virtual weights; the number of tokens of the network.
    bases: dimension of the changes of basis between layers; None where they do not explain (A, V) -> (M, L) at this point.
    products: the fibers {K_i^T Q_i = A_i}.
    """

    point: Point
    tokens: int
    bases: int | None = 0
    products: tuple[Product, ...] = ()

    @property
    def lemmas(self) -> list[str]:
        """Return the lemmas which show that one orbit lies over the orbit of the point; none if their hypotheses fail."""
        full = all(widths[1] == rank for widths, rank in self.products)
        if self.bases is None or not full:
            return []
        return ["Lemma 3.5"] * bool(self.bases) + ["Lemma 3.1"] * bool(self.products)

    @property
    def added(self) -> int:
        """Return the dimension of that orbit over the orbit of the point, by the lemmas: that of GL_a and GL_delta."""
        return (self.bases or 0) + sum(widths[1] ** 2 for widths, _ in self.products)


def coarsest(point: Point) -> Coarser | None:
    """Return the coarsest weights of a network of attention with one head in each layer; None for other networks."""
    model, weights = point.model.knowledge.attention, point.weights
    if model is None or model.multi_head:
        return None
    several = model.layers > 1
    if several and (model.skip or model.softmax):
        return None
    if model.parametrization == "virtual":
        return Coarser(point=point, tokens=model.t)
    A = [model.attention(weights, i) for i in model.layer_numbers]
    V = [weights[model.weight_name("V", i)] for i in model.layer_numbers]
    products: tuple[Product, ...] = ()
    if model.parametrization == "weights":
        sizes = zip(model.widths, model.ranks, A, strict=False)
        products = tuple(((d, a, d), over_q.rank(matrix)) for d, a, matrix in sizes)
    names = [model.weight_name(letter, 1) for letter in "AV"]
    below, bases = dict(zip(names, (A[0], V[0]), strict=True)), None if several else 0
    if several:
        M, L = virtual_weights(A, V)
        below = {f"M{i}": matrix for i, matrix in enumerate(M, start=1)} | {"L": L}
        if set(model.widths[1:-1]) == {over_q.rank(L)}:
            bases = sum(n * n for n in model.widths[1:-1])
    coarse = model.by_virtual_weights if several else model.by_attention
    coarse_point = replace(point, model=coarse, weights={name: np.asarray(below[name]) for name in below})
    return Coarser(point=coarse_point, tokens=model.t, bases=bases, products=products)


def lifted(fiber: ComputedFiber, coarse: Coarser, *, orbits_only: bool) -> ComputedFiber:
    """Return the fiber in finer weights from that in the coarsest ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    how, added = f"lifted by {' and '.join(coarse.lemmas)}", coarse.added
    note = f"computed in coarser weights and {how}, which adds {added} dimensions"
    evidence = tuple(e for e in fiber.evidence if e.quantity not in _CHANGED_BY_LIFTING)
    result = replace(fiber, method="lifted", degree=None, dim_at_point=None, evidence=evidence).with_note(
        note
    )
    if fiber.components is None:
        return result.without_values()
    if orbits_only and not fiber.one_orbit:
        return result.without_values().with_note(
            "the fiber in coarser weights was not shown to be one orbit: it was not lifted"
        )
    unknown: Any = dict.fromkeys(("degree", "orbit_dim", "tangent_dim", "point", "equations"))
    components = tuple(replace(c, dim=c.dim + added, **unknown) for c in fiber.components)
    fiber_dim = None if fiber.fiber_dim is None else fiber.fiber_dim + added
    p = next((e.prime for e in fiber.evidence if e.prime), None) or 0
    of_dim = by_macaulay2("fiber_dim", fiber_dim, f"in coarser weights, {how}", p)
    return replace(
        result, components=components, fiber_dim=fiber_dim, least_dim=fiber_dim,
        dim_at_point=max((c.dim for c in components if c.orbit), default=None), evidence=(*evidence, of_dim),
    )  # fmt: skip
