"""The point that a user gives, points over number fields, and the least distance of real weights to a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Model, PolynomialMap
from m2bridge.models.custom import terms_of
from m2bridge.models.symbolic import rational_variables, sparse
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions.boundary.points import number, written_point
from m2bridge.questions.point import given_point
from m2bridge.questions.source import constrained_map, leanest

_HOW = 'write a list of coordinates such as 1,0,-1/2, or {"inputs": [...], "outputs": [...]}, or {"weights": {...}}'
_BITS = 200
_STARTS, _STEPS, _STALLED = 12, 120, 1e-10
REACHED = 1e-9


def target_of(model: Model, point: Any) -> tuple[Model, tuple[Fraction, ...], bool]:
    """The map whose image is asked, the point, and whether they are of input-output pairs.

    The map is the model by few weights, or its outputs at the given inputs.
    """
    value, source = written_point(point, _HOW) if isinstance(point, str) else (point, "the point")
    if isinstance(value, Mapping):
        if "weights" in value:
            given = given_point(model, value["weights"])
            value = np.asarray(model.coordinates(given.weights)).ravel()
        elif {"inputs", "outputs"} <= set(value):
            return _pairs(model, value["inputs"], value["outputs"], source)
        else:
            value = value.get("coordinates", value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{source} is no point; {_HOW}")
    numbers = tuple(number(entry, source) for entry in value)
    if len(numbers) != model.coordinate_count:
        raise InputError(
            f"{source} has {len(numbers)} coordinates; {model.spec} has {model.coordinate_count}, in the order that "
            "`m2bridge describe` prints"
        )
    return leanest(model), numbers, False


def _pairs(model: Model, inputs: Any, outputs: Any, source: str) -> tuple[Model, tuple[Fraction, ...], bool]:
    """The outputs at some inputs as a polynomial map of the weights, and the outputs that are wanted."""
    if model.input_shape is None or model.output_shape is None:
        raise InputError(f"{source}: {model.spec} has no inputs; give its coordinates")
    if model.free is not model:
        raise InputError(f"{source}: {model.spec} has constrained weights; ask about {model.free.spec}")
    X, Y = _array(inputs, model.input_shape, source), _array(outputs, model.output_shape, source)
    if len(X) != len(Y):
        raise InputError(f"{source}: {len(X)} inputs and {len(Y)} outputs")
    names = [f"w{i}" for i in range(model.parameter_count)]
    variables = rational_variables(names)
    weights = model.unflatten(object_array(variables, (len(names),)))
    values = [np.asarray(model.forward(weights, x), dtype=object) for x in elementwise(_fmpq, X)]
    forms = [variables[0] * 0 + entry for value in values for entry in value.ravel()]
    asked = PolynomialMap(
        name=f"{model.spec} at {len(X)} inputs", variables=tuple(names),
        polynomials=tuple(terms_of(sparse(f)) for f in forms),
    )  # fmt: skip
    return asked, tuple(Y.ravel().tolist()), True


def _array(value: Any, shape: tuple[int, ...], source: str) -> np.ndarray:
    found = np.array(value, dtype=object)
    if found.shape[1:] != shape:
        raise InputError(f"{source}: each should have shape {list(shape)}, in a list of them")
    return elementwise(lambda entry: number(entry, source), found)


def fiber_equations(model: Model, weights: Mapping[str, Any], values: Sequence[Fraction]) -> list[Any]:
    """What vanishes at weights of the fiber: coordinates minus the point's, then the equations of a source that has some."""
    image = np.asarray(model.coordinates(weights), dtype=object).ravel()
    forms = [f - _fmpq(v) for f, v in zip(image, values, strict=True)]
    constrained = constrained_map(model)
    return forms if constrained is None else [*forms, *constrained.equations(weights["x"]).ravel().tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgebraicPoint:
    """Weights as polynomials in u modulo `modulus`; coefficients from the constant term up, as texts of fractions."""

    modulus: tuple[str, ...]
    variables: tuple[tuple[str, ...], ...]

    @property
    def rational(self) -> tuple[Fraction, ...] | None:
        """The weights, when the field is QQ."""
        return tuple(Fraction(v[0]) for v in self.variables) if len(self.modulus) == 2 else None

    def maps_to(self, model: Model, values: Sequence[Fraction]) -> bool:
        """Whether the model's program gives these values at the point, exactly in QQ[u]/(m); constraints of a map included."""
        modulus, *places = (flint.fmpq_poly([_fmpq(c) for c in v]) for v in (self.modulus, *self.variables))
        weights = model.unflatten(object_array(places, (len(places),)))
        zero = flint.fmpq_poly([0])
        return all((zero + f) % modulus == 0 for f in fiber_equations(model, weights, values))

    def real_roots(self) -> list[flint.arb]:
        """Enclosures of the real roots of the modulus, isolated from all others."""
        with _precise():
            roots = flint.fmpz_poly(self._integral).complex_roots()
            return [root.real for root, _ in roots if root.imag == 0]

    def sturm_count(self) -> int:
        """The number of real roots once more, by Sturm's theorem in SymPy."""
        import sympy

        return int(sympy.Poly(self._integral[::-1], sympy.Symbol("u")).count_roots())

    def intervals(self, root: flint.arb) -> list[list[str]]:
        """For each weight an interval of fractions that contains its value at the root, as texts."""
        with _precise():
            values = [flint.arb_poly([flint.arb(_fmpq(c)) for c in v])(root) for v in self.variables]
            return [[_fraction(v.lower()), _fraction(v.upper())] for v in values]

    @property
    def _integral(self) -> list[int]:
        scale = lcm(*(Fraction(c).denominator for c in self.modulus))
        return [int(Fraction(c) * scale) for c in self.modulus]


@contextmanager
def _precise() -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, _BITS
    try:
        yield
    finally:
        flint.ctx.prec = before


def _fmpq(value: Fraction | int | str) -> Any:
    exact = Fraction(value)
    return flint.fmpq(exact.numerator, exact.denominator)


def _fraction(ball: Any) -> str:
    """The text of the fraction that an exact ball is."""
    mantissa, exponent = ball.mid().man_exp()
    return str(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def least_distance(model: Model, values: Sequence[Fraction], rng: np.random.Generator) -> float:
    """The least distance found between an image of real weights and the point, relative to 1 + its norm.

    Least squares in float64 from random starts (Levenberg and Marquardt).
    """
    goal = np.array([float(v) for v in values])
    scale, best = 1 + float(np.linalg.norm(goal)), np.inf
    for _ in range(_STARTS):
        w = model.flatten(model.draw_real_weights(rng))
        damping, error = 1e-2, np.inf
        for _ in range(_STEPS):
            weights = model.unflatten(w)
            gap = np.asarray(model.coordinates(weights), dtype=float) - goal
            J = np.asarray(model.coordinate_jacobian(weights), dtype=float)
            step = np.linalg.solve(J.T @ J + damping * np.eye(len(w)), -J.T @ gap)
            trial = np.asarray(model.coordinates(model.unflatten(w + step)), dtype=float) - goal
            before, after = float(np.linalg.norm(gap)), float(np.linalg.norm(trial))
            if after < before:
                w, damping, error = w + step, max(damping / 5, 1e-14), after
            else:
                damping *= 4
            stalled = before * (1 - _STALLED) < after < before
            if error < REACHED * scale * 1e-2 or damping > 1e12 or stalled:
                break
        best = min(best, error / scale)
        if best < REACHED:
            break
    return float(best)
