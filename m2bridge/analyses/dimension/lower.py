"""Analyses stage: exact lower bounds of the dimension. A model and a seed enter, ranks at recorded points leave.

The rank over F_p of the Jacobian at one integer point is at most its rank over QQ there, which is at most the
dimension. More samples, other seeds and other primes can only raise it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import Elimination, eliminate, rank_mod
from m2bridge.linear.primes import is_prime
from m2bridge.linear.residues import is_prime
from m2bridge.models import DeepLightning, Lightning, Mod, Model, Softmax
from m2bridge.models.derivatives import jacobian
from m2bridge.rank.slices import AttentionSlice

MOST_COORDINATES = 2_000
_GROWTHS = 2

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRank:
    """Rank of the Jacobian at one point, with all that is needed to compute it again."""

    rank: int
    p: int
    weights: dict[str, NDArray[np.int64]]
    inputs: NDArray[np.int64] | None
    elimination: Elimination | None
    settled: bool
    constrained: bool = False
    """On a variety of weights the point is known modulo p only, and the rank is then no proof over QQ."""


def attention_shape(model: Model) -> AttentionSlice | None:
    """The sizes of a deep attention network with one head a layer and no skip connections; None for other models."""
    if isinstance(model, Lightning):
        return AttentionSlice(widths=(model.d, model.dp), ranks=(model.a,), tokens=model.t, softmax=False)
    if isinstance(model, Softmax):
        return AttentionSlice(widths=model.d, ranks=model.a, tokens=model.t, softmax=True)
    if isinstance(model, DeepLightning) and not model.skip and not model.multi_head:
        return AttentionSlice(widths=model.d, ranks=model.a, tokens=model.t, softmax=False)
    return None


def point_rank(
    model: Model,
    *,
    p: int,
    seed: int,
    upper: int,
    memory_limit: int | None = None,
    report: Report | None = None,
) -> PointRank:
    """Rank of the Jacobian of a polynomial model at a random point over F_p.

    A model with few coordinates is differentiated in its coordinates; otherwise in its outputs at random inputs, whose
    number grows until the rank meets `upper` or two growths in a row leave it as it is.
    """
    free = model.free
    rng = np.random.default_rng([seed, p])
    weights = free.draw_weights(rng, p)
    if free.input_shape is None or _few_coordinates(free):
        _, matrix = jacobian(free, weights, p=p)
        constraints = free.constraint_jacobian({name: Mod(value, p) for name, value in weights.items()})
        if constraints is not None:
            rows = constraints.values
            both = rank_mod(np.concatenate([matrix, rows]), p)
            rank = both - rank_mod(rows, p)
            return PointRank(
                rank=rank, p=p, weights=weights, inputs=None, elimination=None, settled=True, constrained=True
            )
        found = eliminate(matrix, p)
        return PointRank(rank=found.rank, p=p, weights=weights, inputs=None, elimination=found, settled=True)
    outputs = math.prod(free.output_shape or ())
    columns = free.parameter_count
    samples = math.ceil(min(columns, upper) * 1.05 / outputs) + 2
    best: PointRank | None = None
    unchanged = 0
    while True:
        bytes_needed = 3 * 8 * samples * outputs * columns
        if memory_limit is not None and bytes_needed > memory_limit:
            if best is not None:
                return best
            raise OutOfReachError(
                f"the Jacobian of {model.spec} needs about {bytes_needed / 2**30:.1f} GB; allow more with --memory",
                estimate=bytes_needed,
            )
        if report:
            report(f"rank over F_{p}: {samples * outputs} x {columns}, {bytes_needed / 2**20:.0f} MB")
        inputs = np.random.default_rng([seed, p, 2]).integers(0, p, size=(samples, *(free.input_shape or ())))
        _, matrix = jacobian(free, weights, inputs, p)
        found = eliminate(matrix, p)
        unchanged = unchanged + 1 if best is not None and found.rank <= best.rank else 0
        settled = found.rank >= min(upper, columns) or unchanged >= _GROWTHS
        if best is None or found.rank > best.rank or settled:
            best = PointRank(
                rank=found.rank, p=p, weights=weights, inputs=inputs, elimination=found, settled=settled
            )
        if settled:
            return best
        samples = math.ceil(1.5 * samples) + 1


def primes_below(p: int, count: int) -> tuple[int, ...]:
    """The `count` largest primes below p."""
    found: list[int] = []
    candidate = p - 1
    while len(found) < count and candidate > 2:
        if is_prime(candidate):
            found.append(candidate)
        candidate -= 1
    return tuple(found)


def weight_degree(model: Model) -> int | None:
    """Degree of the map in the weights, for the families where it is plain; None otherwise."""
    name = model.family
    if isinstance(model, (Lightning, DeepLightning)):
        layers = 1 if isinstance(model, Lightning) else model.layers
        own = (
            3
            if model.free.parameters.get("Q1" if layers > 1 else "Q") or "Q1" in model.free.parameters
            else 2
        )
        degree = 0
        for _ in range(layers):
            degree = own + 3 * degree
        return degree
    if name in ("mlp", "convolution", "linear"):
        degree = 0
        for _ in range(len(model.parameters)):
            degree = 1 + getattr(model, "r", 1) * degree
        return degree
    return None


def _few_coordinates(model: Model) -> bool:
    try:
        return model.coordinate_count <= MOST_COORDINATES and model.parameter_count <= MOST_COORDINATES
    except (OutOfReachError, NotImplementedError):
        return False
