"""Exact points of the space of weights over QQ: those of the user, of a stratum, or small random integers.

A point is kept as Fractions and reduced modulo a prime when a computation needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.exact_numbers import exact_number
from m2bridge.families import Attention, Mod, Model
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.attention_strata import Orbit
from m2bridge.families.rational_cone import is_rational_map
from m2bridge.frontends import checkpoints
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, LARGEST_MACAULAY2_PRIME, given_numbers, is_prime
from m2bridge.linear.residues import residue
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.context import prime_between
from m2bridge.questions.kernel import Option


def weights_or_path(text: str) -> Any:
    """Read the value of ``--at``: the weights as a JSON object, or the path of an existing file."""
    if text.lstrip().startswith("{"):
        return checkpoints.read_json(text, "the object")
    path = Path(text)
    if not path.exists():
        raise InputError(f"{path} cannot be read: no such file", argument="at")
    return path


def weights_option(purpose: str) -> Option:
    """Return the option ``--at``; its help begins with `purpose`."""
    return Option(
        f"{purpose}: a JSON object, or a .json, .npz, .safetensors or .pt file. Numbers are converted exactly: "
        "0.1 in JSON is 1/10; a binary float keeps its exact value.",
        read=weights_or_path,
    )


AtOption = Annotated[Any, weights_option("Weights of the point (default: random integers)")]
RationalizeOption = Annotated[
    int | None,
    Option(
        "Round the numbers of files of weights to fractions with denominators up to 2^N, N the value of this option; JSON "
        "objects are not rounded and are rejected.",
        least=1,
    ),
]
StratumOption = Annotated[
    str | None,
    Option(
        "A point of a stratum instead of --at: rank_a=1,rank_v=1[,meet=1] for one attention layer (the ranks of A and V, and "
        "the dimension of the intersection of col A and row V); m1=skew for virtual weights (also symmetric, generic, rank1, "
        "rank2, ...)."
    ),
]
SPREAD = 60
"""Random weights are non-zero integers from -SPREAD to SPREAD: readable, and also usable as floats."""
PRIMES = (101, LARGEST_MACAULAY2_PRIME)
"""The smallest and the largest prime modulo which fibers are computed."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Weights over QQ. `kind` is random, weights or stratum; `detail` is the name of the stratum or the source of the weights."""

    model: Model
    kind: str
    weights: Mapping[str, np.ndarray]
    detail: str | None = None

    @property
    def generic(self) -> bool:
        return self.kind == "random"

    def mod(self, p: int) -> dict[str, Mod]:
        return {name: Mod(residues(array, p), p) for name, array in self.weights.items()}

    def floats(self) -> dict[str, np.ndarray]:
        return {name: array.astype(np.float64) for name, array in self.weights.items()}

    def image(self, p: int = 0) -> list[Any]:
        """Return the coordinates of the function: Fractions, or residues modulo p."""
        coordinates = self.model.coordinates(self.mod(p) if p else self.weights)
        values: list[Any] = (coordinates.values if p else np.asarray(coordinates)).ravel().tolist()
        return values

    @cached_property
    def vector(self) -> np.ndarray:
        """Return all weights, flattened in the order of the model."""
        return np.concatenate([self.weights[name].ravel() for name in self.model.parameters])

    def document(self, prime: int | None) -> dict[str, Any]:
        """Return the point as JSON values."""
        weights = {name: elementwise(str, array).tolist() for name, array in self.weights.items()}
        return {"kind": self.kind, "detail": self.detail, "prime": prime, "weights": weights}


def residues(array: np.ndarray, p: int) -> np.ndarray:
    return np.array([residue(x, p) for x in array.ravel()], dtype=np.int64).reshape(array.shape)


def fractions_of(array: Any) -> np.ndarray:
    return elementwise(
        lambda x: x if isinstance(x, Fraction) else Fraction(int(x)), np.asarray(array, dtype=object)
    )


# -- points from arguments -------------------------------------------------------------------------------------------------------


def one_of(at: Any, stratum: str | None, rationalize: int | None = None) -> Any:
    """Return the point that one of the two options names; `rationalize` rounds a file's numbers."""
    if at is not None and stratum is not None:
        raise InputError("--at and --stratum name different points; give one of them")
    if rationalize is not None:
        if not isinstance(at, Path):
            raise InputError(
                "--rationalize rounds the numbers of files: give the weights as a file (--at, and --and of same)"
            )
        return checkpoints.CheckpointFile(at, rationalize)
    return stratum if at is None else at


def resolve(model: Model, at: Any, seed: int) -> Point:
    """Return the point that `at` specifies: weights, a file of weights, the text of a stratum, or None for random weights."""
    if at is None or at == "random":
        return random_point(model, seed)
    if isinstance(at, Point):
        if at.model != model:
            raise InputError(f"the point belongs to {at.model.spec}, not to {model}")
        return replace(at)
    if isinstance(at, (Path, checkpoints.CheckpointFile)):
        checkpoint = checkpoints.read(at, model.parameters, model.user.constants)
        return point_from_weights(model, checkpoint.weights, detail=checkpoint.note)
    if isinstance(at, str):
        return stratum_point(model, at, seed)
    if isinstance(at, Mapping):
        return point_from_weights(model, at)
    raise InputError(
        f"at={at!r} is not a point: give weights, a stratum such as 'rank_a=1,rank_v=1', a path, or None"
    )


def random_point(model: Model, seed: int) -> Point:
    """Draw random small integers for the weights (for those of the free parametrization if ranks are bounded)."""
    rng = np.random.default_rng([seed, 91])
    drawn = {name: _draw(rng, shape) for name, shape in model.free.parameters.items()}
    while not _has_value(model, drawn):
        drawn = {name: _draw(rng, shape) for name, shape in model.parameters.items()}
    return Point(model=model, kind="random", weights=model.constraints.from_free(drawn))


def _has_value(model: Model, weights: Mapping[str, Any]) -> bool:
    """Return whether no denominator of a rational map is zero at these weights; true for other models."""
    if not is_rational_map(model):
        return True
    try:
        model.coordinates(dict(weights))
    except ZeroDivisionError:
        return False
    return True


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    signs = rng.choice([-1, 1], size=shape)
    return fractions_of(rng.integers(1, SPREAD + 1, size=shape) * signs)


def point_from_weights(model: Model, weights: Mapping[str, Any], *, detail: str | None = None) -> Point:
    """Make a point from matrices of numbers, which are read exactly; shapes, names and ranks are checked.

    The weights of a polynomial map are a list ``x``, or one number for each variable under its own name.
    """
    names = list(model.parameters)
    described = ", ".join(f"{name} of shape {_shape(shape)}" for name, shape in model.parameters.items())
    variables = model.user.variables
    if variables:
        names = list(variables)
        described = f"one number for each of {', '.join(variables)}"
        entries = weights["x"] if list(weights) == ["x"] else None
        entries = entries.tolist() if isinstance(entries, np.ndarray) else entries
        if isinstance(entries, (list, tuple)):
            if len(entries) != len(names):
                raise InputError(f"the weights are a list of {len(entries)} numbers; {model} has {described}")
            weights = dict(zip(names, entries, strict=True))
    missing = [name for name in names if name not in weights]
    unknown = [str(name) for name in weights if name not in names]
    if missing or unknown:
        problems = [f"missing weight {', '.join(missing)}"] * bool(missing)
        problems += [f"unexpected weight {', '.join(unknown)}"] * bool(unknown)
        raise InputError(f"{'; '.join(problems)}; {model} has {described}")
    if variables:
        weights = {"x": [exact_number(weights[name], name) for name in names]}
    arrays = {name: exact_array(name, weights[name], shape) for name, shape in model.parameters.items()}
    for name, bound in model.constraints.rank_bounds.items():
        matrices = arrays[name].reshape(-1, *arrays[name].shape[-2:])  # one for each head
        if (rank := max(map(over_q.rank, matrices))) > bound:
            raise InputError(f"{name} has rank {rank}; {model} bounds it by a = {bound}")
    if not _has_value(model, arrays):
        raise InputError(f"a denominator of {model} is zero at these weights")
    return Point(model=model, kind="weights", weights=arrays, detail=detail)


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape) if shape else "one number"


def exact_array(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Convert to an array of Fractions (:func:`m2bridge.exact_numbers.exact_number`); other shapes are refused."""
    array = np.array(value, dtype=object)
    ragged = any(isinstance(entry, (list, tuple)) for entry in array.flat)
    if ragged or shape not in (None, array.shape):
        actual = (
            "rows of different lengths"
            if ragged
            else _shape(array.shape)
            if array.ndim
            else "a single number"
        )
        requirement = "be a matrix" if shape is None else f"have shape {_shape(shape)}"
        raise InputError(f"{name} should {requirement}; the weights give {actual}")
    return elementwise(lambda entry: exact_number(entry, name), array)


# -- strata ----------------------------------------------------------------------------------------------------------------------


def stratum_point(model: Model, text: str, seed: int = 0) -> Point:
    """Return the point of a stratum such as ``rank_a=1,rank_v=1,meet=1`` or ``m1=skew,m2=rank1``."""
    properties: dict[str, str] = {}
    for assignment in text.split(","):
        key, equals, value = assignment.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value or key in properties:
            raise _refusal(text, "write it as rank_a=1,rank_v=1 or, for virtual weights, m1=skew")
        properties[key] = value
    layer, network = model.knowledge.layer, model.knowledge.attention
    if layer is not None:
        return _one_layer_stratum(layer, text, properties)
    if network is not None and network.parametrization == "virtual":
        return _virtual_stratum(network, text, properties, seed)
    raise InputError(
        f"--stratum is for one layer of attention and for virtual weights; {model} is neither: use --at"
    )


def _refusal(text: str, message: str) -> InputError:
    return InputError(f"--stratum {text!r}: {message}")


def _one_layer_stratum(model: Attention, text: str, properties: dict[str, str]) -> Point:
    unknown = sorted(set(properties) - {"rank_a", "rank_v", "meet"})
    if unknown or not {"rank_a", "rank_v"} <= set(properties):
        raise _refusal(text, "one layer of attention takes rank_a=, rank_v= and optionally meet=")
    try:
        numbers = {key: int(value) for key, value in properties.items()}
    except ValueError:
        raise _refusal(text, "ranks must be integers") from None
    r, s = numbers["rank_a"], numbers["rank_v"]
    largest = (model.attention_rank, min(model.d, model.dp))
    if not 0 <= r <= largest[0] or not 0 <= s <= largest[1]:
        most = f"rank_a is at most {largest[0]} and rank_v at most {largest[1]}"
        raise _refusal(text, f"for {model} {most}")
    least = max(0, r + s - model.d)
    meet = numbers.get("meet", least)
    if not least <= meet <= min(r, s):
        raise _refusal(text, f"with these ranks meet, dim(col A ∩ row V), is from {least} to {min(r, s)}")
    A, V = Orbit(r, s, meet).representative(model.d, model.dp)
    weights = {"A": A, "V": V}
    if model.parametrization == "weights":
        weights = {**dict(zip("QK", over_q.factors(A, model.a), strict=True)), "V": V}
    exact = {name: fractions_of(value) for name, value in weights.items()}
    return Point(model=model, kind="stratum", weights=exact, detail=f"rank_a={r},rank_v={s},meet={meet}")


def _virtual_stratum(model: AttentionNetwork, text: str, properties: dict[str, str], seed: int) -> Point:
    names = {name.lower(): name for name in model.parameters}
    if model.constrained:
        raise InputError(
            f"--stratum: the virtual weights of {model} satisfy equations; give a point with --at"
        )
    rng = np.random.default_rng([seed, 92])
    weights = {name: _draw(rng, shape) for name, shape in model.parameters.items()}
    for key, value in properties.items():
        if key.lower() not in names:
            raise _refusal(text, f"no weight {key!r}; choose from {', '.join(names)}")
        name = names[key.lower()]
        weights[name] = _special(weights[name], value, text, rng)
    return Point(model=model, kind="stratum", weights=weights, detail=text)


def _special(matrix: np.ndarray, kind: str, text: str, rng: np.random.Generator) -> np.ndarray:
    rows, columns = matrix.shape
    if kind in ("skew", "symmetric") and rows != columns:
        raise _refusal(text, f"only a square matrix can be {kind}")
    if kind == "generic":
        return matrix
    upper = np.triu(matrix, 1)
    if kind == "skew":
        return fractions_of(upper - upper.T)
    if kind == "symmetric":
        return fractions_of(np.triu(matrix) + upper.T)
    if kind.startswith("rank") and kind[4:].isdigit() and 0 <= int(kind[4:]) <= min(rows, columns):
        bound = int(kind[4:])
        left = rng.integers(1, 10, size=(rows, bound))
        right = rng.integers(1, 10, size=(bound, columns))
        return fractions_of(left @ right)
    raise _refusal(text, f"{kind!r} is not valid; use generic, skew, symmetric, rank1, rank2, ...")


# -- primes of good reduction of a point ----------------------------------------------------------------------------------------
#
# Modulo a prime that divides a denominator, makes a non-zero entry vanish or lowers a rank, the point would have other
# properties. Then another prime is used, and a note in the answer states this.


def good_prime(point: Point, p: int) -> tuple[int, str | None]:
    """Return `p` or, with a note, the next smaller prime modulo which the point keeps its entries and ranks."""
    prime_between(p, *PRIMES)
    first = _objection(point, p)
    if first is None:
        return p, None
    smaller, larger = range(p - 1, PRIMES[0] - 1, -1), range(PRIMES[1], p, -1)
    for q in _kept(point, chain(smaller, larger)):
        return q, f"modulo {p} {first}: computed modulo {q} instead"
    raise InputError(
        f"modulo {p} {first}, and no other prime up to {PRIMES[1]} is usable at this point: use smaller weights"
    )


def other_primes(point: Point, p: int, count: int) -> list[int]:
    """Return other primes modulo which the point keeps its entries and ranks, the largest first."""
    return list(islice((q for q in _kept(point, range(PRIMES[1], PRIMES[0], -1)) if q != p), count))


def rank_prime(model: Model, point: Point | None = None) -> int:
    """Return the largest prime up to `LARGE_PRIME` with good reduction of the model and of the point."""
    numbers = given_numbers(model)
    for p in range(LARGE_PRIME, PRIMES[0], -2):
        if is_prime(p) and numbers.divided_by(p) is None and (point is None or _objection(point, p) is None):
            return p
    raise InputError("no prime below 2^23 is usable at this point: use smaller weights")


def _kept(point: Point, numbers: Any) -> Iterator[int]:
    return (q for q in numbers if is_prime(q) and _objection(point, q) is None)


def _objection(point: Point, p: int) -> str | None:
    """State why the point has bad reduction modulo p; None if the reduction is good."""
    if (divided := given_numbers(point.model).divided_by(p)) is not None:
        return f"the coefficient {divided} of the map is zero or undefined"
    for name, array in point.weights.items():
        for index, x in np.ndenumerate(array):
            if x and (x.numerator % p == 0 or x.denominator % p == 0):
                problem = "vanishes" if x.numerator % p == 0 else "does not exist"
                entry = f"{name}{[i + 1 for i in index]}"
                if point.model.user.variables:
                    entry = point.model.user.variables[index[0]]
                return f"the entry {entry} = {x} {problem}"
        matrix = array.ndim == 2 and array.size <= 400
        if matrix and rank_mod(residues(array, p), p) != over_q.rank(array):
            return f"the rank of {name} is smaller"
    return None
