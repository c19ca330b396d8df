"""Where ranks in floating point and in balls are computed: points at which a network is well conditioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.programs.proofs import BITS, DyadicPoint, dyadic

if TYPE_CHECKING:
    from m2bridge.families.base import Model

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sampling:
    """Points for ranks of one model: normal numbers. A family that knows better points overrides the methods.

    Any point is allowed, because a proof is about one point, whichever it is. A bad choice costs time, never the answer.
    """

    model: Model

    @property
    def precisions(self) -> tuple[int, ...]:
        """Bits of balls to try in turn for an analytic network."""
        return (53, 128, 256)

    def samples_needed(self) -> int | None:
        """Estimate how many inputs show the generic rank; None leaves it to the rank."""
        return None

    def real_point(self, samples: int, seed: int) -> tuple[Arrays, Arrays]:
        """Draw real weights and inputs, by name, for a float64 rank."""
        rng = np.random.default_rng([seed, 8])
        return self.model.draw_real_weights(rng), self.draw_inputs(rng, samples)

    def dyadic_point(self, samples: int, seed: int) -> DyadicPoint:
        """Draw dyadic weights and inputs for a rank in balls."""
        rng = np.random.default_rng([seed, 4])
        scaled = {
            name: rng.normal(size=shape) / np.sqrt(shape[-1] if shape else 1)
            for name, shape in self.model.parameters.items()
        }
        inputs = self.draw_inputs(rng, samples)
        gauge = self.model.knowledge.gauge
        weights = {name: gauge.place(name, dyadic(array), 1 << BITS) for name, array in scaled.items()}
        return DyadicPoint(weights=weights, inputs={name: dyadic(array) for name, array in inputs.items()})

    def draw_inputs(self, rng: np.random.Generator, samples: int) -> Arrays:
        """Draw normal numbers for the inputs, by name, with one leading axis over samples."""
        shapes = self.model.program.input_shapes.items()
        return {name: rng.normal(size=(samples, *shape)) for name, shape in shapes}


def normal_matrix(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw normal numbers, scaled so that products with unit vectors are of order one."""
    return np.asarray(rng.normal(size=shape) / np.sqrt(shape[-1]))
