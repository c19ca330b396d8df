"""The point that a user gives, points over number fields, and the least distance of real weights to a point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError, ParseError
from m2bridge.exact_numbers import exact_json, exact_number
from m2bridge.families import Model, PolynomialMap
from m2bridge.families.symbolic import rational_variables, sparse
from m2bridge.frontends.polynomials import Polynomial, parse_polynomial, terms_of
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions import over_q
from m2bridge.questions.least_squares import descended
from m2bridge.questions.over_q import fmpq
from m2bridge.questions.point import point_from_weights

_HOW = (
    "write a list of coordinates such as 1,0,-1/2, polynomials in the inputs such as x[1]^2 - 3*x[1]*x[2], one per output and "
    'separated by semicolons, or {"inputs": [...], "outputs": [...]}, or {"weights": {...}}'
)
_VARIABLE = re.compile(r"[A-Za-z]\[")
_INDEX = re.compile(r"\[([0-9, ]+)\]")
_SUBSCRIPT = re.compile(r"_\(([0-9, ]+)\)")
_LONGEST_POINT = 1_000_000
"""Characters of a point on the command line or in a file."""
_ARB_BITS = 200
"""Precision of the balls around real weights."""
_DESCENT_STARTS, _DESCENT_STEPS = 12, 120
"""Random starts of the least squares, and steps of each."""
REACHED = 1e-9
"""A point is reached numerically if it is closer than this, relative to 1 + its norm."""
_LARGEST_COORDINATE = 10**100
"""Larger points are not tried in float64: squares of residuals would overflow."""


@dataclass(frozen=True, slots=True)
class Target:
    """The map whose image is asked, and the point.

    The map is the model by few weights or, `of_pairs`, its outputs at the given inputs. `weights` are those of the map that the
    point was given by, flat.
    """

    model: Model
    point: tuple[Fraction, ...]
    of_pairs: bool = False
    weights: tuple[Fraction, ...] | None = None


def target_of(model: Model, point: Any) -> Target:
    """Return the target that a point as users write it states for a model."""
    weights = None
    if isinstance(point, str) and _is_polynomial(point):
        point = _coefficients(model, point)
    value, source = written_point(point, _HOW) if isinstance(point, str) else (point, "the point")
    if isinstance(value, Mapping):
        if "weights" in value:
            weight_point = point_from_weights(model, value["weights"])
            value = np.asarray(model.coordinates(weight_point.weights)).ravel()
            weights = tuple(Fraction(w) for name in model.parameters for w in weight_point.weights[name].flat)
        elif {"inputs", "outputs"} <= set(value):
            return _pairs(model, value["inputs"], value["outputs"], source)
        else:
            value = value.get("coordinates", value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{source} is not a point; {_HOW}")
    numbers = tuple(exact_number(entry, source) for entry in value)
    if len(numbers) != model.coordinate_count:
        raise InputError(
            f"{source} has {len(numbers)} coordinates; {model} has {model.coordinate_count}, in the order that "
            "`m2bridge describe` prints"
        )
    lean = model.leanest
    return Target(lean, numbers, weights=weights if lean == model else None)


def _is_polynomial(text: str) -> bool:
    """Return whether a point is given by polynomials: it is neither JSON nor the name of a file, and has a variable x[...]."""
    json_or_file = text.lstrip()[:1] in ("[", "{") or text.endswith(".json") or _is_file(text)
    return not json_or_file and _VARIABLE.search(text) is not None


def _is_file(text: str) -> bool:
    """Return whether a text is the path of a file; a text that cannot be a path is none."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _coefficients(model: Model, text: str) -> list[Fraction]:
    """Return the coordinates of a function that is given by its outputs, polynomials in the inputs."""
    source = f"--point {text[:60]!r}"
    names = [name.partition(": ") for name in model.coordinate_names]
    if not model.program.inputs or len(names) != model.with_all_coefficients.coordinate_count:
        raise InputError(f"{source}: the coordinates of {model} are not all coefficients; {_HOW}")
    outputs = list(dict.fromkeys(entry for entry, _, _ in names))
    texts = [piece.strip() for piece in text.split(";")]
    if len(texts) != len(outputs):
        raise InputError(f"{source} has {len(texts)} polynomials; {model} has {len(outputs)} outputs")
    terms = [_INDEX.sub(r"_(\1)", term) for _, _, term in names]
    variables = sorted({factor.partition("^")[0] for term in terms for factor in term.split("*")} - {"1"})
    index = {}
    for k, ((entry, _, _), term) in enumerate(zip(names, terms, strict=True)):
        ((exponents, _),) = parse_polynomial(term, variables).items()
        index[entry, exponents] = k
    point = [Fraction(0)] * len(names)
    for entry, polynomial in zip(outputs, texts, strict=True):
        for exponents, coefficient in _parsed(polynomial, variables, source).items():
            if (entry, exponents) not in index:
                degrees = ", ".join(map(str, sorted({sum(e) for _, e in index})))
                raise InputError(
                    f"{source}: a term has degree {sum(exponents)}; the functions of {model} have terms of degrees {degrees}"
                )
            point[index[entry, exponents]] = Fraction(coefficient)
    return point


def _parsed(text: str, variables: Sequence[str], source: str) -> Polynomial:
    """Parse a polynomial in x[1], x[2], ...; the parser writes x_(1) for x[1]."""
    try:
        return parse_polynomial(_INDEX.sub(r"_(\1)", text), variables, source=source)
    except ParseError as error:
        raise InputError(_SUBSCRIPT.sub(r"[\1]", error.message)) from None


def written_point(text: str, how: str) -> tuple[Any, str]:
    """Read a JSON value or a comma-separated list from a file or an inline text; also return its name for messages.

    `how` is the advice where it is no JSON.
    """
    source = f"--point {text[:60]!r}"
    if _is_file(text):
        path = Path(text)
        source = f"--point {path}"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source} cannot be read: {error}") from None
    elif text.endswith(".json"):
        raise InputError(f"{source}: no such file")
    if len(text) > _LONGEST_POINT:
        raise InputError(f"{source} is longer than {_LONGEST_POINT} characters")
    stripped = text.strip()
    if stripped[:1] not in ("[", "{"):
        return [entry.strip() for entry in stripped.split(",")], source
    try:
        return exact_json(stripped, source), source
    except InputError as error:
        raise InputError(f"{error}; {how}") from None


def _pairs(model: Model, inputs: Any, outputs: Any, source: str) -> Target:
    """Return the outputs at some inputs as a polynomial map of the weights, and the outputs that are wanted."""
    if model.input_shape is None or model.output_shape is None:
        raise InputError(f"{source}: {model} has no inputs; give its coordinates")
    if model.free is not model:
        raise InputError(f"{source}: {model} has constrained weights; use {model.free.spec}")
    X, Y = _array(inputs, model.input_shape, source), _array(outputs, model.output_shape, source)
    if len(X) != len(Y):
        raise InputError(f"{source}: {len(X)} inputs and {len(Y)} outputs")
    names = [f"w{i}" for i in range(model.parameter_count)]
    variables = rational_variables(names)
    weights = model.unflatten(object_array(variables, (len(names),)))
    values = [np.asarray(model.forward(weights, x), dtype=object) for x in elementwise(fmpq, X)]
    forms = [variables[0] * 0 + entry for value in values for entry in value.ravel()]
    asked = PolynomialMap(
        name=f"{model.spec} at {len(X)} inputs", variables=tuple(names),
        polynomials=tuple(terms_of(sparse(f)) for f in forms),
    )  # fmt: skip
    return Target(asked, tuple(Y.ravel().tolist()), of_pairs=True)


def _array(value: Any, shape: tuple[int, ...], source: str) -> np.ndarray:
    array = np.array(value, dtype=object)
    if array.shape[1:] != shape:
        raise InputError(f"{source}: each should have shape {list(shape)}, in a list of them")
    return elementwise(lambda entry: exact_number(entry, source), array)


def fiber_equations(model: Model, weights: Mapping[str, Any], values: Sequence[Fraction]) -> list[Any]:
    """Return the values that vanish at weights of the fiber: coordinates minus the point's."""
    image = np.asarray(model.coordinates(weights), dtype=object).ravel()
    return [f - fmpq(v) for f, v in zip(image, values, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgebraicPoint:
    """Weights as polynomials in u modulo `modulus`; coefficients from the constant term up, as texts of fractions."""

    modulus: tuple[str, ...]
    variables: tuple[tuple[str, ...], ...]

    @property
    def rational(self) -> tuple[Fraction, ...] | None:
        """Return the weights, when the field is QQ."""
        return tuple(Fraction(v[0]) for v in self.variables) if len(self.modulus) == 2 else None

    def maps_to(self, model: Model, values: Sequence[Fraction]) -> bool:
        """Return whether the model's program gives these values at the point, exactly in QQ[u]/(m)."""
        elements = [flint.fmpq_poly([fmpq(c) for c in v]) for v in self.variables]
        weights = model.unflatten(object_array(elements, (len(elements),)))
        zero, modulus = flint.fmpq_poly([0]), self.polynomial
        return all((zero + f) % modulus == 0 for f in fiber_equations(model, weights, values))

    @property
    def polynomial(self) -> flint.fmpq_poly:
        return flint.fmpq_poly([fmpq(c) for c in self.modulus])

    def real_roots(self) -> list[flint.arb]:
        """Return enclosures of the real roots of the modulus, isolated from all others."""
        with flint.ctx.workprec(_ARB_BITS):
            return over_q.real_roots(self.polynomial)

    def sign_change(self) -> tuple[Fraction, Fraction]:
        """Return two dyadic numbers close to a real root, with as few bits as possible, where the modulus has different signs."""
        root, bits = self.real_roots()[0], 0
        while True:
            low = int((root * 2**bits).floor().unique_fmpz() or 0)
            ends = Fraction(low, 2**bits), Fraction(low + 1, 2**bits)
            if self.polynomial(fmpq(ends[0])) * self.polynomial(fmpq(ends[1])) < 0:
                return ends
            bits += 1

    def intervals(self, root: flint.arb) -> list[list[str]]:
        """Return for each weight an interval of fractions that contains its value at the root, as texts."""
        with flint.ctx.workprec(_ARB_BITS):
            values = [flint.arb_poly([flint.arb(fmpq(c)) for c in v])(root) for v in self.variables]
            return [[_fraction(v.lower()), _fraction(v.upper())] for v in values]


def _fraction(ball: Any) -> str:
    """Return the text of the fraction represented by an exact ball."""
    mantissa, exponent = ball.mid().man_exp()
    return str(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def least_distance(model: Model, values: Sequence[Fraction], rng: np.random.Generator) -> float:
    """Return the least distance found between an image of real weights and the point, relative to 1 + its norm.

    Least squares in float64 from random starts (Levenberg and Marquardt); infinite where the point is too large for floats.
    """
    if max(map(abs, values)) > _LARGEST_COORDINATE:
        return float("inf")
    goal = np.array([float(v) for v in values])
    scale = 1 + float(np.linalg.norm(goal))

    def residuals(flat: np.ndarray) -> np.ndarray:
        return np.asarray(model.coordinates(model.unflatten(flat)) - goal, dtype=float)

    def jacobian(flat: np.ndarray) -> np.ndarray:
        derivatives = model.coordinate_jacobian(model.unflatten(flat))
        return np.swapaxes(np.asarray(derivatives, dtype=float), 1, 2)

    starts = np.array([model.flatten(model.draw_real_weights(rng)) for _ in range(_DESCENT_STARTS)])
    floor = (REACHED * scale * 1e-2) ** 2
    with np.errstate(all="ignore"):
        _, cost = descended(residuals, jacobian, starts, floor=floor, steps=_DESCENT_STEPS, all_of_them=False)
    return float(np.sqrt(cost.min())) / scale
