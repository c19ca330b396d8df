"""The point whose fiber is asked for: given weights, a stratum's representative, or small random integers; exact over QQ.

A point is kept as Fractions and reduced modulo a prime when a computation needs it. A prime that divides a denominator, makes a
non-zero entry vanish or lowers a rank would ask about another point: then another prime is taken, and said so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpz

from m2bridge.analyses.fiber import gauge
from m2bridge.analyses.singular_locus.orbits import Orbit
from m2bridge.errors import InputError
from m2bridge.models import DeepLightning, Lightning, Mod, Model
from m2bridge.models.arrays import object_array
from m2bridge.models.virtual import virtual_weights
from m2bridge.rank.integer import rank_over_q
from m2bridge.rank.modular import rank_mod

DEFAULT_PRIME = 32003
SMALLEST_PRIME = 101
LARGEST_PRIME = 32749
"""Macaulay2 1.21 computes Groebner bases over ZZ/p for p up to this one."""
SPREAD = 60
"""Random weights are integers from -SPREAD to SPREAD, never 0: small enough to be read, and to be real points too."""
_LARGEST_FILE = 4 * 2**20


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
        return {name: Mod(_residues(array, p), p) for name, array in self.weights.items()}

    def floats(self) -> dict[str, np.ndarray]:
        return {name: array.astype(np.float64) for name, array in self.weights.items()}

    @cached_property
    def vector(self) -> np.ndarray:
        """All weights, flattened in the order of the model."""
        return np.concatenate([self.weights[name].ravel() for name in self.model.parameters])

    def matrix(self, name: str) -> gauge.Matrix:
        return gauge.exact(self.weights[name].tolist(), name)

    def document(self, prime: int | None) -> dict[str, Any]:
        """The point as JSON values."""
        shown = {name: _texts(array.tolist()) for name, array in self.weights.items()}
        return {"kind": self.kind, "detail": self.detail, "prime": prime, "weights": shown}


def _residues(array: np.ndarray, p: int) -> np.ndarray:
    flat = [int(x.numerator * pow(x.denominator, -1, p) % p) for x in array.ravel()]
    return np.array(flat, dtype=np.int64).reshape(array.shape)


def _texts(value: Any) -> Any:
    return [_texts(item) for item in value] if isinstance(value, list) else str(value)


def _fractions(array: Any) -> np.ndarray:
    plain = np.asarray(array, dtype=object)
    return object_array(
        [Fraction(int(x)) if not isinstance(x, Fraction) else x for x in plain.ravel()], plain.shape
    )


# -- random ----------------------------------------------------------------------------------------------------------------------


def random_point(model: Model, seed: int) -> Point:
    """Random small integers for the model's weights (for those of its free parametrization when there are constraints)."""
    rng = np.random.default_rng([seed, 91])
    if model.input_shape is None and bool(getattr(model, "constraints", False)):
        raise InputError(
            f"{model.spec}: the source has equations, and a rational point of it is not known; give one with --at weights.json"
        )
    drawn = {name: _draw(rng, shape) for name, shape in model.free.parameters.items()}
    return Point(model=model, kind="random", weights=_constrained(model, drawn))


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    signs = rng.choice([-1, 1], size=shape)
    return _fractions(rng.integers(1, SPREAD + 1, size=shape) * signs)


def _constrained(model: Model, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights of the model itself from those of its free parametrization, exactly."""
    if model.free is model:
        return dict(drawn)
    if isinstance(model, Lightning):
        return {"A": drawn["K"].T @ drawn["Q"], "V": drawn["V"]}
    layers = range(1, model.layers + 1)  # type: ignore[attr-defined]
    A = [np.swapaxes(drawn[f"K{i}"], -1, -2) @ drawn[f"Q{i}"] for i in layers]
    V = [drawn[f"V{i}"] for i in layers]
    if getattr(model, "parametrization", "") == "virtual":
        M, L = virtual_weights(A, V)
        return {f"M{i}": M[i - 1] for i in layers} | {"L": L}
    return {name: part for i in layers for name, part in ((f"A{i}", A[i - 1]), (f"V{i}", V[i - 1]))}


# -- given weights ---------------------------------------------------------------------------------------------------------------


def read_weights(path: Path) -> dict[str, Any]:
    """The object in a ``weights.json``: parameter names to matrices of integers or fractions as strings."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} is larger than {_LARGEST_FILE // 2**20} MB; that is no file of weights")
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{path} should hold an object that maps weights to matrices, not a {type(found).__name__}"
        )
    return found


def given_point(model: Model, weights: Mapping[str, Any], *, detail: str | None = None) -> Point:
    """A point from matrices of integers, Fractions or fraction strings; shapes, names and ranks are checked."""
    names = list(model.parameters)
    missing = [name for name in names if name not in weights]
    unknown = [str(name) for name in weights if name not in names]
    if missing or unknown:
        said = [f"lack {', '.join(missing)}"] * bool(missing) + [
            f"have {', '.join(unknown)} too much"
        ] * bool(unknown)
        raise InputError(f"the weights {' and '.join(said)}; {model.spec} has {_described(model)}")
    arrays = {name: _array(name, weights[name], shape) for name, shape in model.parameters.items()}
    _check_ranks(model, arrays)
    return Point(model=model, kind="weights", weights=arrays, detail=detail)


def _described(model: Model) -> str:
    return ", ".join(f"{name} of shape {_shape(shape)}" for name, shape in model.parameters.items())


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape) if shape else "one number"


def _array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    found = _shape_of(value)
    if found != shape:
        given = "no list" if not found else "rows of different lengths" if -1 in found else _shape(found)
        raise InputError(f"{name} should have shape {_shape(shape)}; the weights give {given}")
    flat: list[Fraction] = []
    _collect(name, value, flat)
    return object_array(flat, shape)


def _shape_of(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    inner = {_shape_of(item) for item in value}
    return (len(value), *inner.pop()) if len(inner) == 1 else (-1,)


def _collect(name: str, value: Any, flat: list[Fraction]) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _collect(name, item, flat)
        return
    if isinstance(value, (float, np.floating)):
        raise InputError(
            f'{name} has the entry {value!r}; weights are exact: write an integer or a fraction such as "1/2"'
        )
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, str, Fraction, np.integer)):
        raise InputError(f"{name} has the entry {value!r}; weights are integers or fractions as strings")
    try:
        flat.append(
            Fraction(value) if isinstance(value, (str, Fraction)) and _plain(value) else Fraction(int(value))
        )
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f'{name} has the entry {value!r}; write an integer or a fraction such as "1/2"'
        ) from None


def _plain(value: str | Fraction) -> bool:
    """Fractions as ``a/b``; decimals and exponents are refused, because they hide a rounded number."""
    if isinstance(value, str) and ("." in value or "e" in value.lower() or len(value) > 4000):
        raise ValueError(value)
    return True


def _check_ranks(model: Model, arrays: Mapping[str, np.ndarray]) -> None:
    for name, bound in rank_bounds(model).items():
        found = rank_over_q(_integers(arrays[name]))
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


def _integers(array: np.ndarray) -> np.ndarray:
    """A matrix of Fractions times a common denominator."""
    common = int(np.lcm.reduce([x.denominator for x in array.ravel()] or [1], dtype=object))
    return object_array([int(x * common) for x in array.ravel()], array.shape)


# -- strata ----------------------------------------------------------------------------------------------------------------------

_KINDS = ("generic", "skew", "symmetric")


def stratum_point(model: Model, text: str, seed: int = 0) -> Point:
    """The point that a text such as ``rank_a=1,rank_v=1,meet=1`` or ``m1=skew,m2=rank1`` names."""
    wanted: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value or key in wanted:
            raise InputError(
                f"--stratum {text!r}: write it as rank_a=1,rank_v=1 or, for virtual weights, m1=skew"
            )
        wanted[key] = value
    if isinstance(model, Lightning):
        return _one_layer_stratum(model, text, wanted)
    if isinstance(model, DeepLightning) and model.parametrization == "virtual":
        return _virtual_stratum(model, text, wanted, seed)
    raise InputError(
        f"--stratum is for one layer of attention and for virtual weights; {model.spec} is neither: use --at"
    )


def _one_layer_stratum(model: Lightning, text: str, wanted: dict[str, str]) -> Point:
    unknown = sorted(set(wanted) - {"rank_a", "rank_v", "meet"})
    if unknown or not {"rank_a", "rank_v"} <= set(wanted):
        raise InputError(
            f"--stratum {text!r}: one layer of attention has rank_a=, rank_v= and, if you like, meet="
        )
    try:
        numbers = {key: int(value) for key, value in wanted.items()}
    except ValueError:
        raise InputError(f"--stratum {text!r}: ranks are integers") from None
    r, s = numbers["rank_a"], numbers["rank_v"]
    if not 0 <= r <= model.attention_rank or not 0 <= s <= min(model.d, model.dp):
        raise InputError(
            f"--stratum {text!r}: for {model.spec} rank_a is at most {model.attention_rank} "
            f"and rank_v at most {min(model.d, model.dp)}"
        )
    least, most = max(0, r + s - model.d), min(r, s)
    meet = numbers.get("meet", least)
    if not least <= meet <= most:
        raise InputError(
            f"--stratum {text!r}: with these ranks meet, dim(col A ∩ row V), is from {least} to {most}"
        )
    A, V = Orbit(r, s, meet).representative(model.d, model.dp)
    weights = {"A": A, "V": V}
    if model.parametrization == "weights":
        K = np.zeros((model.a, model.d), dtype=np.int64)
        K[:r] = np.eye(r, model.d, dtype=np.int64)
        weights = {"Q": K.copy(), "K": K, "V": V}
    found = {name: _fractions(value) for name, value in weights.items()}
    return Point(model=model, kind="stratum", weights=found, detail=f"rank_a={r},rank_v={s},meet={meet}")


def _virtual_stratum(model: DeepLightning, text: str, wanted: dict[str, str], seed: int) -> Point:
    names = {name.lower(): name for name in model.parameters}
    if model.constrained:
        raise InputError(
            f"--stratum: the virtual weights of {model.spec} satisfy equations; give a point with --at"
        )
    rng = np.random.default_rng([seed, 92])
    weights = {name: _draw(rng, shape) for name, shape in model.parameters.items()}
    for key, value in wanted.items():
        if key.lower() not in names:
            raise InputError(f"--stratum {text!r}: there is no weight {key!r}; there are {', '.join(names)}")
        name = names[key.lower()]
        weights[name] = _special(weights[name], value, text, rng)
    return Point(model=model, kind="stratum", weights=weights, detail=text)


def _special(matrix: np.ndarray, kind: str, text: str, rng: np.random.Generator) -> np.ndarray:
    rows, columns = matrix.shape
    if kind in _KINDS[1:] and rows != columns:
        raise InputError(f"--stratum {text!r}: only a square matrix can be {kind}")
    if kind == "generic":
        return matrix
    if kind == "skew":
        upper = np.triu(matrix, 1)
        return _fractions(upper - upper.T)
    if kind == "symmetric":
        upper = np.triu(matrix)
        return _fractions(upper + np.triu(matrix, 1).T)
    if kind.startswith("rank") and kind[4:].isdigit() and 0 <= int(kind[4:]) <= min(rows, columns):
        bound = int(kind[4:])
        left, right = rng.integers(1, 10, size=(rows, bound)), rng.integers(1, 10, size=(bound, columns))
        return _fractions(left @ right) if bound else _fractions(np.zeros((rows, columns), dtype=np.int64))
    raise InputError(
        f"--stratum {text!r}: {kind!r} is not known; write generic, skew, symmetric, rank1, rank2, ..."
    )


# -- primes ----------------------------------------------------------------------------------------------------------------------


def good_prime(point: Point, p: int) -> tuple[int, str | None]:
    """`p`, or the next smaller prime at which the point keeps its entries and ranks, with a note that says so."""
    if not fmpz(p).is_prime() or not SMALLEST_PRIME <= p <= LARGEST_PRIME:
        raise InputError(
            f"--prime {p}: fibers are computed modulo a prime from {SMALLEST_PRIME} to {LARGEST_PRIME}"
        )
    first = _objection(point, p)
    if first is None:
        return p, None
    for candidate in range(p - 1, SMALLEST_PRIME - 1, -1):
        if fmpz(candidate).is_prime() and _objection(point, candidate) is None:
            return candidate, f"modulo {p} {first}: computed modulo {candidate} instead"
    for candidate in range(LARGEST_PRIME, p, -1):
        if fmpz(candidate).is_prime() and _objection(point, candidate) is None:
            return candidate, f"modulo {p} {first}: computed modulo {candidate} instead"
    raise InputError(
        f"modulo {p} {first}, and no other prime up to {LARGEST_PRIME} keeps the point: use smaller weights"
    )


def other_primes(point: Point, p: int, count: int) -> list[int]:
    """Other primes at which the point keeps its entries and ranks, the largest first."""
    below = (q for q in range(LARGEST_PRIME, SMALLEST_PRIME, -1) if q != p and fmpz(q).is_prime())
    return list(islice((q for q in below if _objection(point, q) is None), count))


def second_prime(point: Point, p: int) -> int | None:
    """Another prime at which the point keeps its entries and ranks."""
    return next(iter(other_primes(point, p, 1)), None)


def _objection(point: Point, p: int) -> str | None:
    for name, array in point.weights.items():
        for index, x in np.ndenumerate(array):
            place = f"{name}{[i + 1 for i in index]}"
            if x.denominator % p == 0:
                return f"the entry {place} = {x} does not exist"
            if x and x.numerator % p == 0:
                return f"the entry {place} = {x} vanishes"
        if (
            array.ndim == 2
            and array.size <= 400
            and rank_mod(_residues(array, p), p) != rank_over_q(_integers(array))
        ):
            return f"the rank of {name} is smaller"
    return None


def resolve(model: Model, at: Any, seed: int) -> Point:
    """The point that the argument `at` of :func:`~m2bridge.analyses.fiber.fiber` names."""
    if at is None or at == "random":
        return random_point(model, seed)
    if isinstance(at, Point):
        if at.model != model:
            raise InputError(f"the point belongs to {at.model.spec}, not to {model.spec}")
        return replace(at)
    if isinstance(at, Path):
        return given_point(model, read_weights(at), detail=at.name)
    if isinstance(at, str):
        return stratum_point(model, at, seed)
    if isinstance(at, Mapping):
        return given_point(model, at)
    raise InputError(
        f"at={at!r} is no point: give weights, a stratum such as 'rank_a=1,rank_v=1', a path, or None"
    )


def virtual_point(point: Point) -> Point:
    """The virtual weights (Equation 8) of a point of a deep network."""
    model = point.model
    assert isinstance(model, DeepLightning)
    layers = range(1, model.layers + 1)
    if model.parametrization == "weights":
        A = [point.weights[f"K{i}"].T @ point.weights[f"Q{i}"] for i in layers]
    else:
        A = [point.weights[f"A{i}"] for i in layers]
    M, L = virtual_weights(A, [point.weights[f"V{i}"] for i in layers])
    virtual = replace(model, parametrization="virtual")
    weights = {f"M{i}": M[i - 1] for i in layers} | {"L": L}
    return Point(model=virtual, kind=point.kind, weights=weights, detail="virtual weights of the point")


__all__ = [
    "DEFAULT_PRIME",
    "Point",
    "bound_weights",
    "given_point",
    "good_prime",
    "other_primes",
    "random_point",
    "rank_bounds",
    "read_weights",
    "resolve",
    "second_prime",
    "stratum_point",
    "virtual_point",
]
