"""The symmetry between two checkpoints: random elements of all groups are found again, and other weights are not related."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import from_callable
from m2bridge.programs.program import Program
from m2bridge.symmetry.alignment import alignment
from m2bridge.symmetry.finite import permuted_axes
from m2bridge.symmetry.structure import structure
from tests.unit.test_structure import USER


def layer_norm(U, a, g, b, W, c, x):
    """Two features behind a norm with gains and a bias."""
    z = U @ x + a
    z = z - z.mean(0, keepdims=True)
    return W @ (g * z / np.sqrt((z * z).mean(0, keepdims=True) + 1) + b) + c


CASES = {name: network for name, network in USER.items() if name != "linear layers"} | {
    "layer norm": from_callable(
        layer_norm,
        {"U": (2, 3), "a": (2,), "g": (2,), "b": (2,), "W": (3, 2), "c": (3,)},
        inputs={"x": (3,)},
    ),
}
"""In the linear layers GL(3) acts on matrices with two columns, which do not determine its element."""


def moved(program: Program, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move weights by a random element of each group by structure, each shift and each symmetric group."""
    at = weights.copy()
    for n, axes in permuted_axes(program):
        order, before = rng.permutation(n), at.copy()
        for axis in axes:
            at[axis.entries] = before[axis.entries[order]]
    for group in structure(program).groups:
        for copy in range(group.copies):
            matrix = np.diag(rng.uniform(0.5, 2, group.size))
            if group.kind == "gl":
                matrix = rng.normal(size=matrix.shape)
            for action in group.actions:
                power = np.linalg.matrix_power(matrix, action.label)
                own = power if group.kind == "torus" or action.label > 0 else power.T
                at[action.entries[copy]] = own @ at[action.entries[copy]]
    for shift in structure(program).shifts:
        for field in shift.fields():
            amount, before = rng.normal(), at.copy()
            for i, c, monomial in field.terms:
                at[i] += amount * c * np.prod(before[list(monomial)])
    return at


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_random_symmetry_is_found_again(name: str) -> None:
    program, rng = CASES[name].program, np.random.default_rng(7)
    first = rng.normal(size=program.parameter_count)
    second = moved(program, first, rng)
    assert alignment(program, first, second, 1e-7)
    second[0] += 0.5
    assert alignment(program, first, second, 1e-7) is None
