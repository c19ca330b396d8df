"""Define affine slices of dimension two or three of the function space, and restrict the equation of a closure to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.errors import DisagreementError, InputError
from m2bridge.exact_numbers import exact_json, exact_number
from m2bridge.families import Model
from m2bridge.families.symbolic import rational_variables, sparse
from m2bridge.frontends.polynomials import parse_polynomial, polynomial_text
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions import over_q

AXES = ("x", "y", "z")
Vector = tuple[Fraction, ...]
Polynomial = dict[tuple[int, ...], Fraction]
"""Polynomial in x, y, z or in x, y: exponents -> coefficient."""
Equation = dict[tuple[int, ...], int]
"""Polynomial in the coordinates of the model: exponents -> integer coefficient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Set of points origin + x u + y v (+ z w) of the function space with (x, y, z) in a box.

    The coordinates are those of the model.
    """

    name: str
    title: str
    origin: Vector
    directions: tuple[Vector, ...]
    box: tuple[tuple[Fraction, Fraction], ...] = ((Fraction(-1), Fraction(1)),) * 3
    view: tuple[float, float] = (22.0, -60.0)

    def __post_init__(self) -> None:
        if len({len(v) for v in (self.origin, *self.directions)}) > 1:
            raise InputError(
                f"slice {self.name}: the origin and the directions must have the same number of coordinates"
            )
        if over_q.rank(np.array(self.directions, dtype=object)) < len(self.directions):
            raise InputError(f"slice {self.name} is degenerate: its directions are linearly dependent")
        if len(self.box) != len(self.directions) or any(
            len(side) != 2 or side[0] >= side[1] for side in self.box
        ):
            raise InputError(
                f"slice {self.name}: the box must have one interval [low, high] with low < high per direction"
            )

    def points(self, xyz: np.ndarray) -> np.ndarray:
        """Return the coordinates, as floats, of points (rows) of the slice."""
        directions = np.array(self.directions, dtype=np.float64)
        return np.asarray(np.array(self.origin, dtype=np.float64) + xyz @ directions)

    @property
    def limits(self) -> np.ndarray:
        """Return the box as floats, one row per axis."""
        return np.array(self.box, dtype=np.float64)

    def document(self) -> dict[str, Any]:
        """Return the slice as a JSON document that :func:`slice_file` accepts."""
        return {
            "name": self.name,
            "title": self.title,
            "origin": [str(c) for c in self.origin],
            "directions": [[str(c) for c in u] for u in self.directions],
            "box": [[str(c) for c in side] for side in self.box],
            "view": list(self.view),
        }


def slice_file(path: Path, model: Model) -> Slice:
    """Read a slice from a JSON file with ``origin`` and two or three ``directions`` in the coordinates of the model."""
    source = f"--slice {path}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{source} is not JSON: {error}") from None
    value = exact_json(text, source)
    if not isinstance(value, Mapping) or not {"origin", "directions"} <= set(value):
        raise InputError(f"{source} should be an object with origin and directions")
    if not isinstance(value["directions"], list) or len(value["directions"]) not in (2, 3):
        raise InputError(f"{source}: directions should be a list of two or three vectors")
    box = value.get("box", [[-1, 1]] * len(value["directions"]))
    if not isinstance(box, list) or any(not isinstance(side, list) for side in box):
        raise InputError(f"{source}: box should be two or three intervals such as [[-1,1],[-1,1],[-1,1]]")
    view = value.get("view", [22, -60])
    if not isinstance(view, list) or len(view) != 2:
        raise InputError(f"{source}: view should be [elevation, azimuth] in degrees")
    return Slice(
        name=str(value.get("name", path.stem))[:60],
        title=str(value.get("title", ""))[:120],
        origin=_vector(model, value["origin"], f"{source}, origin"),
        directions=tuple(
            _vector(model, u, f"{source}, direction {i + 1}") for i, u in enumerate(value["directions"])
        ),
        box=tuple(tuple(exact_number(c, source) for c in side) for side in box),  # type: ignore[misc]
        view=(float(exact_number(view[0], source)), float(exact_number(view[1], source))),
    )


def _vector(model: Model, value: Any, source: str) -> Vector:
    if not isinstance(value, list) or len(value) != model.coordinate_count:
        raise InputError(f"{source} should be a list of the {model.coordinate_count} coordinates of {model}")
    return tuple(exact_number(entry, source) for entry in value)


def random_slice(seed: int, model: Model) -> Slice:
    """Return a slice through a random point of the image with random integer directions."""
    rng = np.random.default_rng([seed, 21])
    free = model.free
    tries = 0
    while True:
        tries += 1
        reach = 2 + tries // 20  # a map may vanish at all small integers
        drawn = {name: rng.integers(-reach, reach + 1, shape) for name, shape in free.parameters.items()}
        weights = {name: elementwise(lambda c: Fraction(int(c)), array) for name, array in drawn.items()}
        origin = tuple(Fraction(c) for c in np.asarray(free.coordinates(weights)).ravel())
        directions = rng.integers(-3, 4, (3, len(origin)))
        if any(origin) and over_q.rank(directions) == 3:
            vectors = tuple(tuple(Fraction(int(c)) for c in u) for u in directions)
            title = f"random slice, seed {seed}"
            return Slice(name=f"random-{seed}", title=title, origin=origin, directions=vectors)


def closure_equation(texts: Sequence[str], model: Model) -> Equation:
    """Return the equation of a hypersurface in its span, as computed by Macaulay2, with integer coefficients.

    Residues modulo p are lifted to the integers nearest to zero. The lift is verified: the equation must vanish identically when
    the coordinates of the network are substituted.

    Raises
    ------
    DisagreementError
        The equation does not vanish on the image.
    """
    if len(texts) != 1:
        raise InputError(
            f"the closure of {model} is not a hypersurface in its span: it has {len(texts)} equations there"
        )
    names = [f"z{i}" for i in range(model.coordinate_count)]
    equation = {e: int(c) for e, c in parse_polynomial(texts[0], names).items()}
    free = model.free
    variables = rational_variables([f"w{i}" for i in range(free.parameter_count)])
    weights = free.unflatten(object_array(variables, (len(variables),)))
    polynomials = [0 * variables[0] + f for f in np.asarray(free.coordinates(weights)).ravel()]
    if substituted(equation, polynomials) != 0:
        raise DisagreementError(
            "the equation of the closure, computed by Macaulay2, does not vanish on the image of the network",
            conflicts=[f"{texts[0]} is not zero after substitution of the coordinates of the network"],
        )
    return equation


def restrict(equation: Equation, affine_slice: Slice) -> Polynomial:
    """Restrict the equation to the slice: a polynomial in x, y, z (or x, y) with rational coefficients.

    Raises
    ------
    InputError
        The slice lies inside the closure (the polynomial is zero) or misses it (it is a constant).
    """
    total = on_slice(equation, affine_slice)
    if not total:
        raise InputError(f"slice {affine_slice.name} is degenerate: it is contained in the closure")
    if not any(map(any, total)):
        raise InputError(f"slice {affine_slice.name} is empty: it does not meet the closure")
    return total


def on_slice(equation: Mapping[tuple[int, ...], Any], affine_slice: Slice) -> Polynomial:
    """Restrict a polynomial in the coordinates to the slice; the result may be zero or constant."""
    x = rational_variables(list(AXES[: len(affine_slice.directions)]))
    affine = [
        sum(
            (over_q.fmpq(u[i]) * axis for u, axis in zip(affine_slice.directions, x, strict=True)),
            0 * x[0] + over_q.fmpq(o),
        )
        for i, o in enumerate(affine_slice.origin)
    ]
    restricted = sparse(substituted(equation, affine))
    return {tuple(e): Fraction(c) for e, c in sorted(restricted.items(), reverse=True)}


def substituted(polynomial: Mapping[tuple[int, ...], Any], values: Sequence[Any]) -> Any:
    """Substitute python-flint polynomials for the variables of a polynomial (exponents -> integer coefficient)."""
    total = 0 * values[0]
    for exponents, coefficient in polynomial.items():
        powers = (value**e for value, e in zip(values, exponents, strict=True) if e)
        total += prod(powers, start=0 * values[0] + over_q.fmpq(Fraction(coefficient)))
    return total


def evaluate(
    polynomial: Mapping[tuple[int, ...], int | Fraction], xyz: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values at points (rows) and the sums of the absolute values of the terms, the scale of rounding errors."""
    value = np.zeros(len(xyz))
    size = np.zeros(len(xyz))
    degree = max((max(exponents, default=0) for exponents in polynomial), default=0)
    powers = [list(accumulate([np.ones(len(xyz)), *[column] * degree], np.multiply)) for column in xyz.T]
    for exponents, coefficient in polynomial.items():
        term = np.full(len(xyz), float(coefficient))
        for power, e in zip(powers, exponents, strict=True):
            if e:
                term *= power[e]
        value += term
        size += np.abs(term)
    return value, size


def text_of(polynomial: Polynomial) -> str:
    """Return the primitive integer multiple of the polynomial as text."""
    coefficients = over_q.primitive(list(polynomial.values()))
    return polynomial_text(
        dict(zip(polynomial, coefficients, strict=True)), AXES[: len(next(iter(polynomial)))]
    )
