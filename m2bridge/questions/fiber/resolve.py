"""The point that a user names: weights, a file of them, a stratum, or none (random)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import DeepLightning, Lightning, Model, checkpoints
from m2bridge.questions import over_q
from m2bridge.questions.fiber.points import Point, draw, fractions_of, given_point, random_point
from m2bridge.questions.kernel import Option
from m2bridge.questions.singular_locus.orbits import Orbit

StratumOption = Annotated[
    str | None,
    Option(
        "Random weights of given ranks: rank_a=1,rank_v=1[,meet=1] for one layer; m1=skew for virtual weights."
    ),
]


def one_of(at: Any, stratum: str | None, rationalize: int | None = None) -> Any:
    """The point that one of the two options names; `rationalize` rounds a file's numbers."""
    if at is not None and stratum is not None:
        raise InputError("--at and --stratum name different points; give one of them")
    if rationalize is not None:
        if not isinstance(at, Path):
            raise InputError("--rationalize rounds the numbers of a file: give one with --at")
        return checkpoints.CheckpointFile(at, rationalize)
    return stratum if at is None else at


def resolve(model: Model, at: Any, seed: int) -> Point:
    """The point that the argument `at` of :func:`~m2bridge.questions.fiber.fiber` names."""
    if at is None or at == "random":
        return random_point(model, seed)
    if isinstance(at, Point):
        if at.model != model:
            raise InputError(f"the point belongs to {at.model.spec}, not to {model.spec}")
        return replace(at)
    if isinstance(at, (Path, checkpoints.CheckpointFile)):
        found = checkpoints.read(at, model.parameters)
        return given_point(model, found.weights, detail=found.note)
    if isinstance(at, str):
        return stratum_point(model, at, seed)
    if isinstance(at, Mapping):
        return given_point(model, at)
    raise InputError(
        f"at={at!r} is no point: give weights, a stratum such as 'rank_a=1,rank_v=1', a path, or None"
    )


def stratum_point(model: Model, text: str, seed: int = 0) -> Point:
    """The point that a text such as ``rank_a=1,rank_v=1,meet=1`` or ``m1=skew,m2=rank1`` names."""
    wanted: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value or key in wanted:
            raise _refusal(text, "write it as rank_a=1,rank_v=1 or, for virtual weights, m1=skew")
        wanted[key] = value
    if isinstance(model, Lightning):
        return _one_layer_stratum(model, text, wanted)
    if isinstance(model, DeepLightning) and model.parametrization == "virtual":
        return _virtual_stratum(model, text, wanted, seed)
    raise InputError(
        f"--stratum is for one layer of attention and for virtual weights; {model.spec} is neither: use --at"
    )


def _refusal(text: str, message: str) -> InputError:
    return InputError(f"--stratum {text!r}: {message}")


def _one_layer_stratum(model: Lightning, text: str, wanted: dict[str, str]) -> Point:
    unknown = sorted(set(wanted) - {"rank_a", "rank_v", "meet"})
    if unknown or not {"rank_a", "rank_v"} <= set(wanted):
        raise _refusal(text, "one layer of attention has rank_a=, rank_v= and, if you like, meet=")
    try:
        numbers = {key: int(value) for key, value in wanted.items()}
    except ValueError:
        raise _refusal(text, "ranks are integers") from None
    r, s = numbers["rank_a"], numbers["rank_v"]
    largest = (model.attention_rank, min(model.d, model.dp))
    if not 0 <= r <= largest[0] or not 0 <= s <= largest[1]:
        most = f"rank_a is at most {largest[0]} and rank_v at most {largest[1]}"
        raise _refusal(text, f"for {model.spec} {most}")
    least = max(0, r + s - model.d)
    meet = numbers.get("meet", least)
    if not least <= meet <= min(r, s):
        raise _refusal(text, f"with these ranks meet, dim(col A ∩ row V), is from {least} to {min(r, s)}")
    A, V = Orbit(r, s, meet).representative(model.d, model.dp)
    weights = {"A": A, "V": V}
    if model.parametrization == "weights":
        Q, K = over_q.factors(A, model.a)
        weights = {"Q": Q, "K": K, "V": V}
    found = {name: fractions_of(value) for name, value in weights.items()}
    return Point(model=model, kind="stratum", weights=found, detail=f"rank_a={r},rank_v={s},meet={meet}")


def _virtual_stratum(model: DeepLightning, text: str, wanted: dict[str, str], seed: int) -> Point:
    names = {name.lower(): name for name in model.parameters}
    if model.constrained:
        raise InputError(
            f"--stratum: the virtual weights of {model.spec} satisfy equations; give a point with --at"
        )
    rng = np.random.default_rng([seed, 92])
    weights = {name: draw(rng, shape) for name, shape in model.parameters.items()}
    for key, value in wanted.items():
        if key.lower() not in names:
            raise _refusal(text, f"there is no weight {key!r}; there are {', '.join(names)}")
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
        left, right = rng.integers(1, 10, size=(rows, bound)), rng.integers(1, 10, size=(bound, columns))
        return fractions_of(left @ right)
    raise _refusal(text, f"{kind!r} is not known; write generic, skew, symmetric, rank1, rank2, ...")
