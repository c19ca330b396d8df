"""Do two weights of a model compute one function? By an input where they differ, by all coefficients, or by sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from m2bridge.certificates.produce import certificate, numbers
from m2bridge.errors import M2BridgeError
from m2bridge.linear.residues import DEFAULT_PRIME, Mod
from m2bridge.models import Model
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions.fiber.points import fractions_of, residues
from m2bridge.results import Certainty, Value

_TRIES = 3
_SAMPLES = 20
_FAR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was found: `same` is None when nothing decides; `example` is an input at which the outputs differ, exact."""

    same: bool | None
    certainty: Certainty
    witness: str
    method: str
    example: Mapping[str, Any] | None = None

    @property
    def proved_same(self) -> bool:
        return self.same is True and self.certainty is Certainty.PROVED


def compared(model: Model, a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], seed: int) -> Comparison:
    """Compare the functions of two exact weights."""
    if all((a[name] == b[name]).all() for name in model.parameters):
        return Comparison(
            same=True, certainty=Certainty.PROVED, witness="exact", method="the weights are equal"
        )
    if not model.polynomial:
        return _by_floats(model, a, b, seed)
    if model.input_shape is not None and (example := _differing_input(model, a, b, seed)) is not None:
        return Comparison(
            same=False, certainty=Certainty.PROVED, witness="exact", method="outputs at an input, over QQ", example=example
        )  # fmt: skip
    try:
        equal = bool(np.all(model.coordinates(dict(a)) == model.coordinates(dict(b))))
        return Comparison(
            same=equal, certainty=Certainty.PROVED, witness="exact", method="all coefficients of the functions, over QQ"
        )  # fmt: skip
    except M2BridgeError:
        return _by_residues(model, a, b, seed)


def _differing_input(
    model: Model, a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], seed: int
) -> dict[str, Any] | None:
    rng = np.random.default_rng([seed, 71])
    for _ in range(_TRIES):
        x = fractions_of(rng.integers(-3, 4, size=_size(model)))
        outputs = [np.asarray(model.forward(dict(weights), x)) for weights in (a, b)]
        if (outputs[0] != outputs[1]).any():
            texts = [elementwise(str, y).tolist() for y in (x, *outputs)]
            return dict(zip(("input", "first", "second"), texts, strict=True))
    return None


def _size(model: Model) -> tuple[int, ...]:
    return tuple(model.input_shape or ())


def _by_residues(
    model: Model, a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], seed: int
) -> Comparison:
    p, rng = DEFAULT_PRIME, np.random.default_rng([seed, 72])
    x = Mod(rng.integers(0, p, size=(_SAMPLES, *_size(model))), p)
    method = f"outputs at {_SAMPLES} random inputs over F_{p}"
    try:
        first, second = (
            model.forward({name: Mod(residues(array, p), p) for name, array in weights.items()}, x).values
            for weights in (a, b)
        )
    except ValueError:  # a denominator is divisible by p
        return Comparison(same=None, certainty=Certainty.PROBABLE, witness="modular", method=method)
    same = bool((first == second).all())
    sure = Certainty.PROBABLE if same else Certainty.PROVED
    return Comparison(same=same, certainty=sure, witness="modular", method=method)


def _by_floats(
    model: Model, a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], seed: int
) -> Comparison:
    rng = np.random.default_rng([seed, 73])
    x = rng.normal(size=(_SAMPLES, *_size(model)))
    first, second = (
        np.asarray(model.forward({name: w.astype(np.float64) for name, w in weights.items()}, x))
        for weights in (a, b)
    )
    gap = float(np.abs(first - second).max() / max(1.0, float(np.abs(first).max())))
    return Comparison(
        same=gap < _FAR,
        certainty=Certainty.PROBABLE,
        witness="float64",
        method=f"outputs at {_SAMPLES} random inputs, relative difference {gap:.1e}",
    )


def same_certificate(model: Model, first: np.ndarray, second: np.ndarray) -> dict[str, Value] | None:
    """Two different flat weights with one function, as a certificate; None when they are equal or no polynomials."""
    if not model.polynomial or (first == second).all() or prod(first.shape) > 10_000:
        return None
    statement = {"kind": "same function", "weights": [numbers(first), numbers(second)]}
    return certificate(model.program, statement, spec=model.spec)
