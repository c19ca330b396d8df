"""Compute a slice of a hypersurface in two or three dimensions, with its real points and its singular points.

The equation and the components of the singular locus come from a record of `singular-locus`; both are restricted to the slice
exactly. The curve or surface is the set where the restriction changes its sign. Points where it vanishes without a change of
sign, such as the handle of the Whitney umbrella, are singular; they are computed from the equations of the
components by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Model, parse_spec
from m2bridge.figures.slices import (
    Polynomial,
    Slice,
    closure_equation,
    evaluate,
    on_slice,
    random_slice,
    restrict,
)
from m2bridge.figures.zero_sets import zero_set
from m2bridge.frontends.polynomials import derivative, parse_polynomial
from m2bridge.questions.least_squares import descended
from m2bridge.questions.singular_locus import SingularLocus

_STARTS = {2: 300, 3: 1500}
_CLOSE = 1e-3
"""Singular points closer than this, relative to the sides of the box, are identified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HypersurfaceSection:
    """Segments (count, 2, 2) of a curve or triangles (count, 3, 3) of a surface, and the singular points (rows).

    `singular` is None if the components of the singular locus are not known. `name` is that of the map, or its spec.
    """

    model: str
    name: str
    affine_slice: Slice
    polynomial: Polynomial
    cells: np.ndarray
    singular: np.ndarray | None

    @property
    def dim(self) -> int:
        return len(self.affine_slice.directions)


def chosen_slice(locus: SingularLocus, *, dims: int | None, window: float, seed: int) -> Slice:
    """Return the whole space if the equation has two or three variables, else a slice through a singular point if one is known.

    Raises
    ------
    InputError
        The closure is not a hypersurface in its span, or the equation has too few variables.
    """
    model = parse_spec(locus.model)
    used = used_coordinates(locus, model)
    size = dims or min(3, len(used))
    if not 2 <= size <= min(3, len(used)):
        raise InputError(
            f"a slice has dimension two or three, but the equation of {model} has {len(used)} variables"
        )
    half = Fraction(window).limit_denominator(1000)
    box = ((-half, half),) * size
    if size == len(used):
        units = np.eye(model.coordinate_count, dtype=int).tolist()
        directions = tuple(tuple(map(Fraction, units[i])) for i in used)
        origin = (Fraction(0),) * model.coordinate_count
        return Slice(name="whole", title="all coordinates", origin=origin, directions=directions, box=box)
    drawn = random_slice(seed, model)
    origin, through = drawn.origin, "a point of the image"
    if (point := _singular_image(locus, model)) is not None:
        origin, through = point, "a singular point"
    scale = max(map(abs, origin)) / 3
    directions = tuple(tuple(scale * c for c in u) for u in drawn.directions[:size])
    title = f"a slice through {through}, seed {seed}"
    return replace(drawn, title=title, origin=origin, directions=directions, box=box)


def used_coordinates(locus: SingularLocus, model: Model) -> list[int]:
    """Return the indices of the coordinates in the equation of the closure; raise InputError unless there is one equation."""
    if len(locus.equations) != 1 or locus.codim != 1:
        reason = "is equal to its span" if locus.codim == 0 else "is not defined by one equation in its span"
        raise InputError(
            f"slices are drawn of hypersurfaces, but the closure of {model} {reason}; project the map to other coordinates "
            "(map:s,t->...). `closure` computes the equations"
        )
    names = [f"z{i}" for i in range(model.coordinate_count)]
    terms = parse_polynomial(locus.equations[0], names)
    return [i for i in range(len(names)) if any(e[i] for e in terms)]


def _singular_image(locus: SingularLocus, model: Model) -> tuple[Fraction, ...] | None:
    """Return a point of the largest singular stratum, up to a factor; None if the closure is not a cone."""
    names = [f"z{i}" for i in range(model.coordinate_count)]
    if len({sum(e) for e in parse_polynomial(locus.equations[0], names)}) > 1:
        return None
    source = model if locus.exhaustive else model.free
    singular = [s for s in locus.strata if s.verdict == "singular"]
    for stratum in sorted(singular, key=lambda s: -s.image_dim):
        flat = [Fraction(entry) for entries in stratum.representative.values() for entry in entries]
        weights = source.unflatten(np.array(flat, dtype=object))
        image = np.asarray(source.coordinates(weights)).ravel().tolist()
        if any(image):
            largest = max(map(abs, image))
            return tuple(Fraction(c) / largest for c in image)
    return None


def section(locus: SingularLocus, affine_slice: Slice, name: str | None = None) -> HypersurfaceSection:
    """Compute the section of a hypersurface by a slice; `name` is that of the map, which a record does not contain.

    Raises
    ------
    DisagreementError
        The equation does not vanish on the image of the model.
    """
    model = parse_spec(locus.model)
    used_coordinates(locus, model)
    polynomial = restrict(closure_equation(locus.equations, model), affine_slice)
    singular = None
    component_equations = [component.equations for component in locus.components or ()]
    # The singular points are unknown (None) if the components, or the equations of one of them, were not computed.
    if locus.components is not None and None not in component_equations:
        names = [f"z{i}" for i in range(model.coordinate_count)]
        rng = np.random.default_rng([locus.seed, 41])
        components = [
            [on_slice(parse_polynomial(t, names), affine_slice) for t in equations or ()]
            for equations in component_equations
        ]
        points = [_common_zeros(equations, affine_slice, rng) for equations in components]
        singular = np.concatenate([np.empty((0, len(affine_slice.directions))), *points])
    cells = zero_set(polynomial, affine_slice.limits)
    if not len(cells) and (singular is None or not len(singular)):
        raise InputError(
            f"slice {affine_slice.name} is empty: no real point of the closure lies in its box; try a larger --window"
        )
    return HypersurfaceSection(
        model=model.spec, name=name or str(model), affine_slice=affine_slice, polynomial=polynomial, cells=cells,
        singular=singular,
    )  # fmt: skip


def _common_zeros(equations: list[Polynomial], affine_slice: Slice, rng: np.random.Generator) -> np.ndarray:
    """Compute real common zeros in the box by least squares from random starts."""
    n = len(affine_slice.directions)
    low, high = affine_slice.limits.T
    equations = [f for f in equations if f]
    if not equations or any(not any(map(any, f)) for f in equations):
        return np.empty((0, n))
    scaled = [{e: c / max(map(abs, f.values())) for e, c in f.items()} for f in equations]
    gradients = [[derivative(f, v) for v in range(n)] for f in scaled]

    def residuals(points: np.ndarray) -> np.ndarray:
        return np.stack([evaluate(f, points)[0] for f in scaled], axis=1)

    def jacobian(points: np.ndarray) -> np.ndarray:
        rows = [[evaluate(f, points)[0] for f in column] for column in zip(*gradients, strict=True)]
        return np.moveaxis(np.array(rows), 2, 0)

    starts = low + (high - low) * rng.random((_STARTS[n], n))
    points, cost = descended(residuals, jacobian, starts, floor=1e-24, steps=60, all_of_them=True)
    inside = ((points >= low - 1e-9) & (points <= high + 1e-9)).all(axis=1) & (cost < 1e-18)
    kept: list[np.ndarray] = []
    for point in points[inside]:
        if all(np.abs((point - other) / (high - low)).max() > _CLOSE for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, n)
