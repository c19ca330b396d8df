"""Where ranks in floating point are computed: points at which a network is well conditioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from m2bridge.families.base import Model

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sampling:
    """Points for ranks of one model: normal numbers. A family that knows better points overrides the methods.

    Any point is allowed: a bad choice costs time, or leaves the rank in floating point undecided.
    """

    model: Model

    def samples_needed(self) -> int | None:
        """Estimate how many inputs show the generic rank; None leaves it to the rank."""
        return None

    def real_point(self, samples: int, seed: int) -> tuple[Arrays, Arrays]:
        """Draw real weights and inputs, by name, for a float64 rank."""
        rng = np.random.default_rng([seed, 8])
        return self.model.draw_real_weights(rng), self.draw_inputs(rng, samples)

    def draw_inputs(self, rng: np.random.Generator, samples: int) -> Arrays:
        """Draw normal numbers for the inputs, by name, with one leading axis over samples."""
        shapes = self.model.program.input_shapes.items()
        return {name: rng.normal(size=(samples, *shape)) for name, shape in shapes}


def normal_matrix(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw normal numbers, scaled so that products with unit vectors are of order one."""
    return np.asarray(rng.normal(size=shape) / np.sqrt(shape[-1]))
