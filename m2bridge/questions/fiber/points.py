"""A point in the space of weights, given or small random integers; exact over QQ.

A point is kept as Fractions and reduced modulo a prime when a computation needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, LARGEST_MACAULAY2_PRIME, given_numbers, is_prime
from m2bridge.linear.residues import residue
from m2bridge.models import DeepLightning, Lightning, Mod, Model
from m2bridge.models.attention import Attention
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.virtual import virtual_weights
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.asking import prime_between

SPREAD = 60
"""Random weights are integers from -SPREAD to SPREAD, never 0: small enough to be read, and to be real points too."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Weights over QQ. `kind` is random, weights or stratum; `detail` says which stratum, or where the weights came from."""

    model: Model
    kind: str
    weights: Mapping[str, np.ndarray]
    detail: str | None = None

    @property
    def generic(self) -> bool:
        return self.kind == "random"

    def mod(self, p: int) -> dict[str, Mod]:
        """The weights over F_p."""
        return {name: Mod(residues(array, p), p) for name, array in self.weights.items()}

    def floats(self) -> dict[str, np.ndarray]:
        return {name: array.astype(np.float64) for name, array in self.weights.items()}

    @cached_property
    def vector(self) -> np.ndarray:
        """All weights, flattened in the order of the model."""
        return np.concatenate([self.weights[name].ravel() for name in self.model.parameters])

    def document(self, prime: int | None) -> dict[str, Any]:
        """The point as JSON values."""
        shown = {name: elementwise(str, array).tolist() for name, array in self.weights.items()}
        return {"kind": self.kind, "detail": self.detail, "prime": prime, "weights": shown}


def residues(array: np.ndarray, p: int) -> np.ndarray:
    return np.array([residue(x, p) for x in array.ravel()], dtype=np.int64).reshape(array.shape)


def fractions_of(array: Any) -> np.ndarray:
    return elementwise(
        lambda x: x if isinstance(x, Fraction) else Fraction(int(x)), np.asarray(array, dtype=object)
    )


# -- random ----------------------------------------------------------------------------------------------------------------------


def random_point(model: Model, seed: int) -> Point:
    """Random small integers for the model's weights (for those of its free parametrization when there are constraints)."""
    rng = np.random.default_rng([seed, 91])
    if model.input_shape is None and bool(getattr(model, "constraints", False)):
        raise InputError(
            f"{model.spec}: the source has equations, and a rational point of it is not known; give one with --at weights.json"
        )
    drawn = {name: draw(rng, shape) for name, shape in model.free.parameters.items()}
    return Point(model=model, kind="random", weights=_constrained(model, drawn))


def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    signs = rng.choice([-1, 1], size=shape)
    return fractions_of(rng.integers(1, SPREAD + 1, size=shape) * signs)


def _constrained(model: Model, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights of the model itself from those of its free parametrization, exactly."""
    if model.free is model:
        return dict(drawn)
    assert isinstance(model, Attention)
    return model.from_weights(drawn)


# -- given weights ---------------------------------------------------------------------------------------------------------------


def given_point(model: Model, weights: Mapping[str, Any], *, detail: str | None = None) -> Point:
    """A point from matrices of integers, Fractions or fraction strings; shapes, names and ranks are checked.

    The weights of a polynomial map are a list ``x``, or one number for each variable under its own name.
    """
    names, by_variable = list(model.parameters), False
    if isinstance(model, PolynomialMap) and not np.ndim(np.array(weights.get("x"), dtype=object)):
        names, by_variable = list(model.variables), True
    missing = [name for name in names if name not in weights]
    unknown = [str(name) for name in weights if name not in names]
    if missing or unknown:
        said = [f"lack {', '.join(missing)}"] * bool(missing)
        said += [f"have {', '.join(unknown)} too much"] * bool(unknown)
        raise InputError(f"the weights {' and '.join(said)}; {model.spec} has {_described(model)}")
    if by_variable:
        weights = {"x": [weights[name] for name in names]}
    arrays = {name: _array(name, weights[name], shape) for name, shape in model.parameters.items()}
    _check_ranks(model, arrays)
    if isinstance(model, PolynomialMap) and model.constraints:
        values = np.asarray(model.equations(arrays["x"])).tolist()
        for number, value in enumerate(values, start=1):
            if value:
                raise InputError(f"the point is not on the source: constraint {number} is {value} there")
    return Point(model=model, kind="weights", weights=arrays, detail=detail)


def _described(model: Model) -> str:
    if isinstance(model, PolynomialMap):
        return f"one number for each of {', '.join(model.variables)}"
    return ", ".join(f"{name} of shape {_shape(shape)}" for name, shape in model.parameters.items())


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape) if shape else "one number"


def _array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.array(value, dtype=object)
    ragged = any(isinstance(entry, (list, tuple)) for entry in found.flat)
    if found.shape != shape or ragged:
        given = "rows of different lengths" if ragged else _shape(found.shape) if found.ndim else "no list"
        raise InputError(f"{name} should have shape {_shape(shape)}; the weights give {given}")
    return elementwise(lambda entry: _number(name, entry), found)


def _number(name: str, value: Any) -> Fraction:
    """An exact number; decimals and exponents are refused, because they hide a rounded number."""
    rule = 'write an integer or a fraction such as "1/2"'
    if isinstance(value, (float, np.floating)):
        raise InputError(f"{name} has the entry {value!r}; weights are exact: {rule}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, str, Fraction, np.integer)):
        raise InputError(f"{name} has the entry {value!r}; weights are integers or fractions as strings")
    hidden = isinstance(value, str) and ("." in value or "e" in value.lower() or len(value) > 4000)
    try:
        return Fraction("" if hidden else value if isinstance(value, (str, Fraction)) else int(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name} has the entry {value!r}; {rule}") from None


def _check_ranks(model: Model, arrays: Mapping[str, np.ndarray]) -> None:
    for name, bound in rank_bounds(model).items():
        found = over_q.rank(arrays[name])
        if found > bound:
            raise InputError(f"{name} has rank {found}; {model.spec} bounds it by a = {bound}")


def rank_bounds(model: Model) -> dict[str, int]:
    """Weights whose rank is bounded below their size: attention matrices with a < d."""
    if getattr(model, "parametrization", "") != "attention":
        return {}
    if isinstance(model, Lightning):
        return {"A": model.a} if model.a < model.d else {}
    if isinstance(model, DeepLightning):
        pairs = zip(model.a, model.d[:-1], strict=True)
        return {f"A{i}": a for i, (a, d) in enumerate(pairs, start=1) if a < d}
    return {}


def bound_weights(model: Model) -> bool:
    """Whether the weights satisfy equations of their own."""
    return bool(rank_bounds(model)) or bool(getattr(model, "constraints", False))


def virtual_point(point: Point) -> Point:
    """The virtual weights (Equation 8) of a point of a deep network."""
    model, weights = point.model, point.weights
    assert isinstance(model, DeepLightning)
    if model.parametrization == "weights":
        found = replace(model, parametrization="virtual").from_weights(weights)
    else:
        layers = range(1, model.layers + 1)
        M, L = virtual_weights([weights[f"A{i}"] for i in layers], [weights[f"V{i}"] for i in layers])
        found = {f"M{i}": M[i - 1] for i in layers} | {"L": L}
    below = replace(model, parametrization="virtual")
    return Point(model=below, kind=point.kind, weights=found, detail="virtual weights of the point")


# -- primes at which a point stays the point it is ------------------------------------------------------------------------------
#
# A prime that divides a denominator, makes a non-zero entry vanish or lowers a rank would ask about another point: then another
# prime is taken, and said so.


PRIMES = (101, LARGEST_MACAULAY2_PRIME)
"""Fibers are computed modulo primes from here to there."""


def good_prime(point: Point, p: int) -> tuple[int, str | None]:
    """`p`, or the next smaller prime at which the point keeps its entries and ranks, with a note that says so."""
    largest = LARGEST_MACAULAY2_PRIME
    prime_between(p, *PRIMES)
    first = _objection(point, p)
    if first is None:
        return p, None
    for q in chain(range(p - 1, PRIMES[0] - 1, -1), range(largest, p, -1)):
        if is_prime(q) and _objection(point, q) is None:
            return q, f"modulo {p} {first}: computed modulo {q} instead"
    raise InputError(
        f"modulo {p} {first}, and no other prime up to {largest} keeps the point: use smaller weights"
    )


def other_primes(point: Point, p: int, count: int) -> list[int]:
    """Other primes at which the point keeps its entries and ranks, the largest first."""
    below = (q for q in range(LARGEST_MACAULAY2_PRIME, PRIMES[0], -1) if q != p and is_prime(q))
    return list(islice((q for q in below if _objection(point, q) is None), count))


def second_prime(point: Point, p: int) -> int | None:
    """Another prime at which the point keeps its entries and ranks."""
    return next(iter(other_primes(point, p, 1)), None)


def rank_prime(model: Model, point: Point | None = None) -> int:
    """The largest prime up to `LARGE_PRIME` that divides nothing in the model and leaves the point what it is."""
    numbers = given_numbers(model)
    for p in range(LARGE_PRIME, PRIMES[0], -2):
        if is_prime(p) and numbers.divided_by(p) is None and (point is None or _objection(point, p) is None):
            return p
    raise InputError("no prime below 2^23 keeps the point: use smaller weights")


def _objection(point: Point, p: int) -> str | None:
    if (found := given_numbers(point.model).divided_by(p)) is not None:
        return f"the number {found} of the map vanishes or does not exist"
    for name, array in point.weights.items():
        for index, x in np.ndenumerate(array):
            if x and (x.numerator % p == 0 or x.denominator % p == 0):
                what = "vanishes" if x.numerator % p == 0 else "does not exist"
                return f"the entry {name}{[i + 1 for i in index]} = {x} {what}"
        matrix = array.ndim == 2 and array.size <= 400
        if matrix and rank_mod(residues(array, p), p) != over_q.rank(array):
            return f"the rank of {name} is smaller"
    return None
