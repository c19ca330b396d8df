"""Compare the functions of two weights of a model: by an input where they differ, by all coefficients, or by sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import certificate, numbers, spec_of
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.families.base import MOST_COORDINATES
from m2bridge.families.symbolic import rational_variables, variable_array
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import Mod
from m2bridge.programs.arithmetics import elementwise
from m2bridge.programs.program import degree_in
from m2bridge.questions import over_q
from m2bridge.questions.point import fractions_of, residues

Weights = Mapping[str, np.ndarray]
_EXAMPLE_DRAWS = 3
"""Number of small random inputs that are tried as examples of different outputs."""
_COMPARED_INPUTS = 20
"""Random inputs at which two functions are compared."""
_MOST_CERTIFIED_WEIGHTS = 10_000
"""Weights that a certificate lists."""
ROUNDING = 1e-9
"""Relative differences of outputs in float64 below this value are attributed to rounding."""
SINGLE_ROUNDING = 1e-6
"""Below this value they may be the rounding of weights in float32; from it on, two functions are different."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a comparison: `same` is None if it is undecided; `example` is an exact input at which the outputs differ."""

    same: bool | None
    certainty: Certainty
    witness: str
    method: str
    example: Mapping[str, Any] | None = None

    @property
    def proved_same(self) -> bool:
        return self.same is True and self.certainty is Certainty.PROVED

    @property
    def evidence(self) -> Evidence:
        return Evidence(
            "same_function", self.same, self.witness, self.method, certainty=self.certainty, scope="at-point",
            ancestry="program",
        )  # fmt: skip


def comparison(model: Model, a: Weights, b: Weights, seed: int) -> Comparison:
    """Compare the functions of two sets of exact weights."""
    proved, size = Certainty.PROVED, tuple(model.input_shape or ())
    if all((a[name] == b[name]).all() for name in model.parameters):
        return Comparison(True, proved, "exact", "the weights are equal")
    if not model.polynomial:
        gap = relative_distance(model, a, b, seed)
        same = None if gap is None or ROUNDING <= gap < SINGLE_ROUNDING else gap < ROUNDING
        return Comparison(same, Certainty.PROBABLE, "float64", _compared_outputs(gap))
    if model.input_shape is not None and (example := _differing_input(model, a, b, seed)) is not None:
        return Comparison(False, proved, "exact", "outputs at an input, over QQ", example)
    if (equal := _same_polynomials(model, a, b)) is not None:
        return Comparison(equal, proved, "exact", "all coefficients of the functions, over QQ")
    p = LARGE_PRIME
    method = f"outputs at {_COMPARED_INPUTS} random inputs over F_{LARGE_PRIME}"
    inputs = Mod(np.random.default_rng([seed, 72]).integers(0, p, size=(_COMPARED_INPUTS, *size)), p)
    try:
        over_p = [{name: Mod(residues(w, p), p) for name, w in weights.items()} for weights in (a, b)]
    except ValueError:  # a denominator is divisible by p
        return Comparison(None, Certainty.PROBABLE, "modular", method)
    first, second = (model.forward(weights, inputs).values for weights in over_p)
    equal = bool((first == second).all())
    return Comparison(equal, Certainty.PROBABLE if equal else proved, "modular", method)


def comparison_up_to(model: Model, a: Weights, b: Weights, seed: int, tolerance: float) -> Comparison:
    """Compare the functions of two weights in float64: they are the same if outputs differ by at most a relative tolerance."""
    gap = relative_distance(model, a, b, seed)
    method = f"{_compared_outputs(gap)}, tolerance {tolerance:.1e}"
    return Comparison(None if gap is None else gap <= tolerance, Certainty.NUMERIC, "float64", method)


def _compared_outputs(gap: float | None) -> str:
    difference = "not in the range of float64" if gap is None else f"relative difference {gap:.1e}"
    return f"outputs at {_COMPARED_INPUTS} random inputs, {difference}"


def relative_distance(model: Model, a: Weights, b: Weights, seed: int) -> float | None:
    """Return the largest difference of outputs at random inputs, relative to the largest output (or to one).

    None if a weight or an output leaves the range of float64.
    """
    size = () if model.input_shape is None else (_COMPARED_INPUTS, *model.input_shape)
    x = np.random.default_rng([seed, 73]).normal(size=size)
    try:
        floats = [{name: w.astype(np.float64) for name, w in weights.items()} for weights in (a, b)]
    except OverflowError:
        return None
    with np.errstate(all="ignore"):
        if model.input_shape is None:
            first, second = (np.asarray(model.coordinates(weights)) for weights in floats)
        else:
            first, second = (np.asarray(model.forward(weights, x)) for weights in floats)
        gap = float(np.abs(first - second).max() / max(1.0, float(np.abs(first).max())))
    return gap if np.isfinite(gap) else None


def _same_polynomials(model: Model, a: Weights, b: Weights) -> bool | None:
    """Return whether the outputs at symbolic inputs are equal; None if they have too many coefficients."""
    if model.input_shape is None:
        return bool(np.all(model.coordinates(dict(a)) == model.coordinates(dict(b))))
    variables = prod(model.input_shape)
    degree = degree_in(model.program, "input")
    if model.program.output_count * comb(variables + degree, degree) > MOST_COORDINATES:
        return None
    X = variable_array(rational_variables([f"x{i}" for i in range(variables)]), model.input_shape)
    outputs = [
        model.forward({name: elementwise(over_q.fmpq, w) for name, w in weights.items()}, X).reshape(-1)
        for weights in (a, b)
    ]
    return all(first == second for first, second in zip(*outputs, strict=True))


def _differing_input(model: Model, a: Weights, b: Weights, seed: int) -> dict[str, Any] | None:
    rng = np.random.default_rng([seed, 71])
    for _ in range(_EXAMPLE_DRAWS):
        x = fractions_of(rng.integers(-3, 4, size=tuple(model.input_shape or ())))
        outputs = [np.asarray(model.forward(dict(weights), x)) for weights in (a, b)]
        if (outputs[0] != outputs[1]).any():
            texts = [elementwise(str, y).tolist() for y in (x, *outputs)]
            return dict(zip(("input", "first", "second"), texts, strict=True))
    return None


def comparison_certificate(
    model: Model, first: np.ndarray, second: np.ndarray, compared: Comparison
) -> dict[str, Value] | None:
    """Return a certificate that two flat weights define the same function, or different ones at an input.

    None if this is not proved, if the weights are equal, large or dependent, or if no such input was found.
    """
    proved = compared.same is not None and compared.certainty is Certainty.PROVED
    if (
        not model.polynomial
        or not proved
        or model.free is not model
        or (first == second).all()
        or prod(first.shape) > _MOST_CERTIFIED_WEIGHTS
    ):
        return None
    statement: dict[str, Any] = {"kind": "same function", "weights": [numbers(first), numbers(second)]}
    if not compared.same:
        if compared.example is None and model.input_shape is not None:
            return None
        x = compared.example["input"] if compared.example else []
        statement |= {"kind": "different functions", "input": numbers(np.array(x, dtype=object).reshape(-1))}
    return certificate(model.program, statement, spec=spec_of(model))
