"""Fibers of deep attention in virtual weights through unique factorization: what is sent to ``fiber_deep`` and how it is read.

See the template's header for the mathematics. A solution is one orbit of the scalings of Equation 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from m2bridge.errors import OutputError
from m2bridge.models import DeepLightning, Mod
from m2bridge.models.evaluation import input_derivative
from m2bridge.protocol import Values
from m2bridge.questions.fiber.points import Point
from m2bridge.scripts import Script, render

TEMPLATE = "fiber_deep"
MOST_MONOMIALS = 2100
"""Interpolation solves a linear system of this size at most."""


def monomial_count(model: DeepLightning) -> int:
    degree = 3**model.layers
    return comb(model.d[0] + degree - 1, degree)


def applies(model: Any) -> bool:
    """Whether a model's virtual weights can be asked for in this way."""
    return isinstance(model, DeepLightning) and not model.skip and not model.multi_head and model.t >= 2


def parameters(point: Point, p: int, seed: int) -> dict[str, object]:
    """Values for the template: inputs with one token, with two, and general ones, and the forward pass's outputs there."""
    model = point.model
    assert isinstance(model, DeepLightning)
    d, t = model.d[0], model.t
    weights = point.mod(p)
    rng = np.random.default_rng([seed, 98])
    single = rng.integers(0, p, size=(monomial_count(model) + 10, d))
    alone = np.zeros((len(single), d, t), dtype=np.int64)
    alone[:, :, 0] = single
    two = rng.integers(0, p, size=(d * d + 4, 2 * d))
    base, direction = np.zeros((2, len(two), d, t), dtype=np.int64)
    base[:, :, 1], direction[:, :, 0] = two[:, d:], two[:, :d]
    general = rng.integers(0, p, size=(d * d + 4, d, t))
    derivative = input_derivative(model, weights, Mod(base, p), Mod(direction, p)).values
    return {
        "p": p,
        "layers": model.layers,
        "d": d,
        "dl": model.d[-1],
        "t": t,
        "form": rng.integers(1, p, size=model.d[-1]),
        "oneToken": single,
        "oneTokenOutputs": model.forward(weights, Mod(alone, p)).values[:, :, 0],
        "twoTokens": two,
        "twoTokenOutputs": derivative[:, :, 0],
        "inputs": general.reshape(len(general), -1),
        "outputs": model.forward(weights, Mod(general, p)).values.reshape(len(general), -1),
    }


def promising(primes: list[int], point: Point) -> list[int]:
    """The primes in an order that tries those first over which binary quadratic forms x^T M_i x split (d_0 = 2)."""
    if point.model.input_shape is None or point.model.input_shape[0] != 2:
        return primes
    discriminants = []
    for name, M in point.weights.items():
        if name != "L":
            found = (M[0, 1] + M[1, 0]) ** 2 - 4 * M[0, 0] * M[1, 1]
            discriminants.append(found.numerator * found.denominator)
    return sorted(primes, key=lambda p: any(pow(D % p, (p - 1) // 2, p) == p - 1 for D in discriminants))


def script(point: Point, p: int, seed: int) -> Script:
    return render(TEMPLATE, parameters(point, p, seed))


def inputs_used(values: Mapping[str, Any]) -> int:
    """Number of inputs behind the equations."""
    return len(values["oneToken"]) + len(values["twoTokens"]) + len(values["inputs"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Solutions of one way to distribute the factors: dimension, number of them when finite, one of them over F_p."""

    dim: int
    count: int
    point: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Factored:
    """The fiber up to scalings, or why this way does not describe it; `final` when another prime would not help."""

    obstacle: str | None
    final: bool = False
    solutions: tuple[Solution, ...]
    ways: int


def read(values: Values, p: int) -> Factored:
    """What the template found; an obstacle when the run was cut off or the factors do not decide."""
    if values.get("interpolates") is False:
        return Factored(
            obstacle="the outputs at single tokens are not those of a form of this degree",
            solutions=(),
            ways=0,
        )
    if values.get("vanishes"):
        return Factored(
            obstacle="the network vanishes at single tokens: some M_i is skew or L = 0",
            final=True,
            solutions=(),
            ways=0,
        )
    if values.get("absolute") is False:
        return Factored(
            obstacle=f"a factor is irreducible over F_{p} but not over its closure", solutions=(), ways=0
        )
    if "solutions" not in values:
        return Factored(obstacle="the computation was cut off", solutions=(), ways=values.get("ways", 0))
    found = []
    for entry in values["solutions"]:
        if entry is None:
            continue
        if entry == "undetermined":
            return Factored(
                obstacle="the two-token terms do not determine M_1", solutions=(), ways=values["ways"]
            )
        if not isinstance(entry, list) or len(entry) != 3:
            raise OutputError(
                f"a solution should be [dimension, count, point], not {entry!r}", run=values.run
            )
        dim, count, point = entry
        residues = None if point is None else tuple(int(x) % p for x in point)
        found.append(Solution(dim=dim, count=count, point=residues))
    return Factored(obstacle=None, solutions=tuple(found), ways=values["ways"])


def same_orbit(model: DeepLightning, first: Mapping[str, Mod], second: Mapping[str, Mod], p: int) -> bool:
    """Whether two virtual weights over F_p are rescalings of each other: every matrix proportional."""
    return all(_proportional(first[name].values, second[name].values, p) for name in model.parameters)


def _proportional(a: np.ndarray, b: np.ndarray, p: int) -> bool:
    flat, other = a.ravel().astype(object), b.ravel().astype(object)
    cross = (np.outer(flat, other) - np.outer(other, flat)) % p
    return bool(np.any(flat) and np.any(other) and not np.any(cross))
