"""Models stage: infinitesimal symmetries as data, over any arithmetic.

A symmetry is stored by the derivative of its action at given weights, one tangent vector for each element of
a basis of its Lie algebra. The basis of gl(n) is the elementary matrices E_ij, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from m2bridge.models.arrays import lift, mT, zeros
from m2bridge.models.base import Model, Symmetry, Weights

Action = Callable[[Any, Weights], Mapping[str, Any]]
"""(basis of the Lie algebra, weights) -> derivative of each weight that moves, with a leading axis over the
basis.
"""


def gl(model: Model, n: int, action: Action, *, name: str, citation: str) -> Symmetry:
    """The action of GL(n) by the derivative `action`, linear in an n x n matrix."""
    basis = np.eye(n * n, dtype=np.int64).reshape(n * n, n, n)
    return Symmetry(
        name=name,
        citation=citation,
        group=f"GL({n})",
        dim=n * n,
        generators=_Generators(model, basis, action),
    )


def gl_each_head(model: Model, n: int, heads: int, action: Action, *, name: str, citation: str) -> Symmetry:
    """One GL(n) for each head, on weights with a leading axis over the heads."""
    single = np.eye(n * n, dtype=np.int64).reshape(1, n * n, 1, n, n)
    which = np.eye(heads, dtype=np.int64).reshape(heads, 1, heads, 1, 1)
    basis = (which * single).reshape(heads * n * n, heads, n, n)
    return Symmetry(
        name=name,
        citation=citation,
        group=f"GL({n})^{heads}",
        dim=len(basis),
        generators=_Generators(model, basis, action),
    )


def torus(model: Model, weights_of: Mapping[str, np.ndarray], *, name: str, citation: str) -> Symmetry:
    """A torus acting on each scalar weight by a character.

    `weights_of[name]` has shape (rank of the torus, *shape of the weight): the integer characters.
    """
    rank = next(iter(weights_of.values())).shape[0]

    def action(_: Any, weights: Weights) -> Mapping[str, Any]:
        return {key: lift(table, weights[key]) * weights[key] for key, table in weights_of.items()}

    basis = np.zeros((rank, 1, 1), dtype=np.int64)
    group = "GL(1)" if rank == 1 else f"GL(1)^{rank}"
    return Symmetry(
        name=name, citation=citation, group=group, dim=rank, generators=_Generators(model, basis, action)
    )


class _Generators:
    """Flattened tangent vectors of an action, zero on the weights that it leaves alone."""

    def __init__(self, model: Model, basis: np.ndarray, action: Action) -> None:
        self.model, self.basis, self.action = model, basis, action

    def __call__(self, weights: Weights) -> Any:
        like = weights[next(iter(self.model.parameters))]
        moved = self.action(lift(self.basis, like), weights)
        count = len(self.basis)
        parts = [
            (moved[name] if name in moved else zeros((count, *shape), like)).reshape(
                count, int(np.prod(shape))
            )
            for name, shape in self.model.parameters.items()
        ]
        return np.concatenate(parts, axis=-1)


def query_key_action(query: str, key: str) -> Action:
    """K -> C K, Q -> C^-T Q, which leaves K^T Q alone (Lemma 3.1 of Henry, Marchetti, Kohn)."""
    return lambda E, w: {query: -(mT(E) @ w[query]), key: E @ w[key]}
