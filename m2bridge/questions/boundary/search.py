"""The second witness: least squares over real weights, from many starts, in float64.

It knows nothing of quadrics or ranks. The target is a function of two tokens; the network is its own forward pass, and weights
are sought whose outputs match. The network is linear in each of its weight matrices, so its Jacobian is the forward pass at unit
matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from m2bridge.models import Lightning
from m2bridge.questions.boundary import exact
from m2bridge.questions.least_squares import descended

REACHED = 1e-7
MISSED = 1e-3
"""Relative distances below which a point counts as reached and above which as missed; between them nothing is said."""
LARGEST_HEIGHT = 2000
"""A point whose primitive integer multiple has larger entries may lie outside and yet nearer than floats can tell: then a
distance of zero says nothing."""
_STARTS = 20
_STEPS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RealSearch:
    """What the search found: the least distance to the point, relative to its norm, from how many starts, with which weights."""

    distance: float
    starts: int
    weights: dict[str, np.ndarray]
    height: int

    @property
    def reached(self) -> bool | None:
        """Whether real weights give the point; None where floats cannot tell."""
        if self.distance <= REACHED:
            return True if self.height <= LARGEST_HEIGHT else None
        return False if self.distance >= MISSED else None


def search(
    model: Lightning, coordinates: Sequence[Fraction], rng: np.random.Generator, *, starts: int = _STARTS
) -> RealSearch:
    """Real weights whose network comes closest to a point in the mean square over random inputs.

    Raises no error when nothing comes close: the distance says so.
    """
    free = model.free
    samples = model.coordinate_count // model.dp + 6
    tokens = rng.standard_normal((samples, model.d, 2)) / np.sqrt(model.d)
    both = np.zeros((samples, model.d, model.t))
    both[:, :, :2] = tokens
    alone = both.copy()
    alone[:, :, 1] = 0.0
    i, j = np.triu_indices(model.d)
    monomials = tokens[:, i, 1] * tokens[:, j, 1]
    table = exact.table_of(model, coordinates).astype(np.float64)
    target = np.einsum("nmp,sm,sp->sn", table, tokens[:, :, 0], monomials)
    norm = float(np.linalg.norm(target))

    def outputs(weights: dict[str, np.ndarray]) -> np.ndarray:
        """The first output token's part that is linear in token one and quadratic in token two; leading axes are batches."""
        batched = {name: value[..., None, :, :] for name, value in weights.items()}
        difference = np.asarray(free.forward(batched, both)[..., 0] - free.forward(batched, alone)[..., 0])
        return difference.reshape(*difference.shape[:-2], -1)

    def residuals(flat: np.ndarray) -> np.ndarray:
        return np.asarray(outputs(free.unflatten(flat)) - target.ravel())

    def jacobian(flat: np.ndarray) -> np.ndarray:
        weights = {name: value[:, None] for name, value in free.unflatten(flat).items()}
        units = {name: np.eye(prod(shape)).reshape(1, -1, *shape) for name, shape in free.parameters.items()}
        return np.concatenate([outputs({**weights, name: unit}) for name, unit in units.items()], axis=1)

    scale = np.cbrt(norm) if len(free.parameters) == 3 else np.sqrt(norm)
    flat = rng.standard_normal((starts, free.parameter_count)) * scale
    floor = (1e-11 * norm) ** 2
    flat, cost = descended(residuals, jacobian, flat, floor=floor, steps=_STEPS, all_of_them=False)
    best = int(np.argmin(cost))
    distance = float(np.sqrt(cost[best])) / norm if norm else 0.0
    height = max(abs(int(c)) for c in exact.primitive(coordinates)) if any(coordinates) else 0
    return RealSearch(distance=distance, starts=starts, weights=free.unflatten(flat[best]), height=height)
