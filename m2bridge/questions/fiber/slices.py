"""Slices of the scalings: linear equations that meet almost every orbit of a torus in exactly one point.

Each scaling lambda multiplies one block of weights (a matrix M_i, a filter, a neuron's row) by lambda itself. A random linear
form on that block is put to a random value: an orbit on which the form does not vanish has exactly one point there, so that
an open dense part of each component that meets the slice is the torus times its slice, reducedness included. Points at which a
block is zero are on no slice; whether there are such points in a fiber is asked separately (`orbits_full` of the template).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Model

_LARGEST = 30_000
"""Coefficients of the forms are below this: one of `n` orbits lies on a form's zeros with a probability of at most n / 30000."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """A one-parameter scaling: characters of all weights; those with character 1 in `block` carry the slice's form."""

    block: tuple[int, ...]
    characters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Linear equations (coefficients, value), one for each scaling, in an order in which they can be solved one by one."""

    scalings: tuple[Scaling, ...]
    forms: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def dim(self) -> int:
        """Dimension of the torus that was cut away."""
        return len(self.forms)

    def move(self, vector: Any) -> np.ndarray:
        """The point of the slice on the orbit of a vector of Fractions."""
        moved = [Fraction(x) for x in vector]
        for scaling, (form, value) in zip(self.scalings, self.forms, strict=True):
            found = sum((c * x for c, x in zip(form, moved, strict=True) if c), Fraction(0))
            if found == 0:
                raise InputError("the slice's form vanishes at the point; use another --seed")
            factor = Fraction(value) / found
            moved = [x * factor**k if k else x for x, k in zip(moved, scaling.characters, strict=True)]
        return np.array(moved, dtype=object)


def slice_of(model: Model, seed: int) -> Slice | None:
    """A random slice of the model's scalings; None for a family whose scalings are not cut."""
    found = _scalings(model)
    if not found:
        return None
    rng = np.random.default_rng([seed, 97])
    forms = []
    for scaling in found:
        coefficients = [0] * model.parameter_count
        for i in scaling.block:
            coefficients[i] = int(rng.integers(1, _LARGEST))
        forms.append((tuple(coefficients), int(rng.integers(1, _LARGEST))))
    return Slice(scalings=tuple(found), forms=tuple(forms))


def _scalings(model: Model) -> list[Scaling]:
    """The scalings among the known symmetries; none where other groups act too. At weights that are all 1 they move each weight
    by its character.
    """
    if any(symmetry.kind == "gl" for symmetry in model.symmetries):
        return []
    ones = {name: np.ones(shape, dtype=np.int64) for name, shape in model.parameters.items()}
    rows = [row.tolist() for symmetry in model.symmetries for row in symmetry.generators(ones)]
    return [
        Scaling(block=tuple(i for i, k in enumerate(row) if k == 1), characters=tuple(row)) for row in rows
    ]
