"""A slice of any hypersurface: the real points of a closure's equation in two or three dimensions, its singular points marked.

The equation and the components of the singular locus come from a record of `singular-locus`; both are restricted to the slice
exactly. The curve or surface is where the restriction changes its sign on a grid of simplices; parts where it does not, such as
the handle of Whitney's umbrella, are singular, and are found from the components' equations by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Model, parse_spec
from m2bridge.figures import figure1, plotting
from m2bridge.figures.slices import (
    AXES,
    Polynomial,
    Slice,
    closure_equation,
    evaluate,
    on_slice,
    random_slice,
    restrict,
    text_of,
)
from m2bridge.frontends.polynomials import derivative, parse_polynomial
from m2bridge.questions.least_squares import descended
from m2bridge.questions.singular_locus.result import SingularLocus

_CELLS = {2: 300, 3: 44}
"""Cells of the grid a side, by dimension."""
_STARTS = {2: 300, 3: 1500}
_BISECTIONS = 12
_CLOSE = 1e-3
"""Singular points that are nearer than this, in sides of the box, are one."""
_LONGEST = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class HypersurfaceSection:
    """What is drawn: segments (count, 2, 2) of a curve, or triangles (count, 3, 3) of a surface, and singular points (rows).

    `singular` is None when the components of the singular locus are not known.
    """

    model: str
    cut: Slice
    polynomial: Polynomial
    cells: np.ndarray
    singular: np.ndarray | None

    @property
    def dim(self) -> int:
        return len(self.cut.directions)


def chosen_slice(locus: SingularLocus, *, dims: int | None, window: float, seed: int) -> Slice:
    """The whole space where the equation has two or three variables; else a slice through a singular point, where one is known.

    Raises
    ------
    InputError
        The closure is no hypersurface in its span, or the equation has too few variables.
    """
    model = parse_spec(locus.model)
    used = used_coordinates(locus, model)
    size = dims or min(3, len(used))
    if not 2 <= size <= min(3, len(used)):
        raise InputError(
            f"a slice has two or three dimensions, and the equation of {model} has {len(used)} variables"
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
    """The numbers of the coordinates in the one equation of the closure; refused where there is not exactly one."""
    if len(locus.equations) != 1 or locus.codim != 1:
        what = "fills its span" if locus.codim == 0 else "has no single equation in its span"
        raise InputError(
            f"{model} {what}, and a slice is drawn of a hypersurface: drop or add coordinates (map:s,t->...), or ask "
            "`closure` for the equations; `report` draws a projected surface of every image"
        )
    names = [f"z{i}" for i in range(model.coordinate_count)]
    terms = parse_polynomial(locus.equations[0], names)
    return [i for i in range(len(names)) if any(e[i] for e in terms)]


def _singular_image(locus: SingularLocus, model: Model) -> tuple[Fraction, ...] | None:
    """The function, up to a factor, of the largest stratum of weights that is singular; None where the closure is no cone."""
    names = [f"z{i}" for i in range(model.coordinate_count)]
    if len({sum(e) for e in parse_polynomial(locus.equations[0], names)}) > 1:
        return None
    candidates: list[tuple[int, Model, Any]] = [
        (p.image_dim, model.free, p.weights) for p in locus.places if p.verdict == "singular"
    ]
    candidates += [(s.orbit_dim, model, s.representative) for s in locus.strata if s.verdict == "singular"]
    for _, source, given in sorted(candidates, key=lambda item: -item[0]):
        flat = [Fraction(c) for part in given.values() for c in np.ravel(np.array(part, dtype=object))]
        weights = source.unflatten(np.array(flat, dtype=object))
        image = np.asarray(source.coordinates(weights)).ravel().tolist()
        if any(image):
            largest = max(map(abs, image))
            return tuple(Fraction(c) / largest for c in image)
    return None


def section(locus: SingularLocus, cut: Slice) -> HypersurfaceSection:
    """The section of a hypersurface by a slice.

    Raises
    ------
    DisagreementError
        The equation does not vanish on the image of the model's own definition.
    """
    model = parse_spec(locus.model)
    used_coordinates(locus, model)
    polynomial = restrict(closure_equation(locus.equations, model), cut)
    cells = zero_set(polynomial, cut.limits)
    singular = None
    if locus.components is not None:
        names = [f"z{i}" for i in range(model.coordinate_count)]
        rng = np.random.default_rng([locus.seed, 41])
        parts = [
            [on_slice(parse_polynomial(t, names), cut) for t in c.equations or ()] for c in locus.components
        ]
        found = [_common_zeros(part, cut, rng) for part in parts]
        singular = np.concatenate([np.empty((0, len(cut.directions))), *found])
    if not len(cells) and (singular is None or not len(singular)):
        raise InputError(
            f"slice {cut.name} is empty: no real point of the closure lies in its box; a larger --window"
        )
    return HypersurfaceSection(
        model=model.spec, cut=cut, polynomial=polynomial, cells=cells, singular=singular
    )


def zero_set(polynomial: Polynomial, limits: np.ndarray) -> np.ndarray:
    """Simplices (count, n, n) on which a polynomial in n = 2 or 3 variables vanishes at the corners, where it changes its sign.

    Every cube of a grid is cut into the n! simplices of Kuhn's triangulation; a simplex whose corners have both signs is met in
    a segment, a triangle or a quadrilateral, whose corners are found by bisection on the simplex's edges.
    """
    n = len(limits)
    sides = [np.linspace(low, high, _CELLS[n] + 1) for low, high in limits]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
    value = evaluate(polynomial, grid.reshape(-1, n))[0].reshape(grid.shape[:-1])
    found: list[np.ndarray] = []
    for order in permutations(range(n)):
        corners = [np.zeros(n, dtype=int)]
        for axis in order:
            corners.append(corners[-1] + np.eye(n, dtype=int)[axis])
        parts = [tuple(slice(c, c + _CELLS[n]) for c in corner) for corner in corners]
        signs = np.stack([value[part].ravel() > 0 for part in parts], axis=1)
        points = np.stack([grid[part].reshape(-1, n) for part in parts], axis=1)
        mixed = signs.any(axis=1) & ~signs.all(axis=1)
        signs, points = signs[mixed], points[mixed]
        for pattern in product((False, True), repeat=n + 1):
            above = [i for i in range(n + 1) if pattern[i]]
            below = [i for i in range(n + 1) if not pattern[i]]
            here = points[(signs == pattern).all(axis=1)]
            if not above or not below or not len(here):
                continue
            edges = [(i, j) for i in above for j in below]
            if len(edges) == 4:  # a quadrilateral, its corners one after the other
                edges = [edges[0], edges[1], edges[3], edges[2]]
            met = [_crossings(polynomial, here[:, i], here[:, j]) for i, j in edges]
            if n == 2:
                found.append(np.stack(met, axis=1))
            else:
                found += [np.stack([met[0], a, b], axis=1) for a, b in pairwise(met[1:])]
    cells = np.concatenate(found) if found else np.empty((0, n, n))
    return cells if n == 2 else _oriented(cells, polynomial)


def _oriented(triangles: np.ndarray, polynomial: Polynomial) -> np.ndarray:
    """The triangles with their corners in the order that makes all normals point to where the polynomial is positive."""
    centres = triangles.mean(axis=1)
    gradient = np.stack([evaluate(derivative(polynomial, v), centres)[0] for v in range(3)], axis=1)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    backwards = (normals * gradient).sum(axis=1) < 0
    return np.where(backwards[:, None, None], triangles[:, ::-1], triangles)


def _crossings(polynomial: Polynomial, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A zero on each of the segments from points where the polynomial is positive to points where it is not."""
    for _ in range(_BISECTIONS):
        middle = (above + below) / 2
        positive = (evaluate(polynomial, middle)[0] > 0)[:, None]
        above, below = np.where(positive, middle, above), np.where(positive, below, middle)
    return np.asarray((above + below) / 2)


def _common_zeros(equations: list[Polynomial], cut: Slice, rng: np.random.Generator) -> np.ndarray:
    """Real common zeros in the box by least squares from random starts: all of them when they are few, many of a curve."""
    n, (low, high) = len(cut.directions), cut.limits.T
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


# -- pictures --------------------------------------------------------------------------------------------------------------------

_CLOSURE, _SINGULAR = "real points of the closure", "singular points of the closure"


def draw(part: HypersurfaceSection, path: Path) -> None:
    """Write the picture; the ending of `path` chooses the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(interactive(part), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 3.7)
        if part.dim == 3:
            axes = figure.add_axes((-0.02, 0.16, 0.98, 0.8), projection=figure1.projection())
            cells = part.cells if len(part.cells) else np.zeros((1, 3, 3))
            figure1.paint_surface(axes, part.cut, cells)
        else:
            axes = figure.add_axes((0.17, 0.24, 0.78, 0.68))
            lines = plotting.library("matplotlib.collections").LineCollection
            axes.add_collection(lines(part.cells, colors=plotting.BLUE, linewidths=1.3, capstyle="round"))
            axes.set(xlim=part.cut.limits[0], ylim=part.cut.limits[1], xlabel="$x$", ylabel="$y$")
        points = np.empty((0, part.dim)) if part.singular is None else part.singular
        dots = {"color": plotting.VERMILION, "marker": "o", "linestyle": "none", "zorder": 6}
        size = 5.0 if len(points) <= 12 else 1.6
        axes.plot(*points.T, markersize=size, markeredgewidth=0, **dots)
        _legend(figure, part, dots)
        figure.text(0.5, 0.99, part.model, ha="center", va="top", fontsize=8)
        text = text_of(part.polynomial)
        caption = f"{part.cut.title}: {text} = 0" if len(text) <= _LONGEST else part.cut.title
        size = 6.5 if len(caption) < 75 else 5
        figure.text(
            0.5,
            0.02,
            caption.replace("-", "\N{MINUS SIGN}"),
            ha="center",
            va="bottom",
            fontsize=size,
            parse_math=False,
        )
        plotting.save_figure(figure, path)


def _legend(figure: Any, part: HypersurfaceSection, dots: dict[str, Any]) -> None:
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    handles = [patch(facecolor=plotting.SKY, edgecolor="none", label=_CLOSURE)]
    if part.dim == 2:
        handles = [lines([], [], color=plotting.BLUE, linewidth=1.3, label=_CLOSURE)]
    if part.singular is not None and len(part.singular):
        handles.append(lines([], [], markersize=4, label=_SINGULAR, **{**dots, "zorder": None}))
    plotting.legend_below(figure, handles, (0.5, 0.065), ncols=2)


def interactive(part: HypersurfaceSection) -> Any:
    """A plotly figure of the section."""
    go = plotting.library("plotly.graph_objects")
    points = np.empty((0, part.dim)) if part.singular is None else part.singular
    title = f"{part.model}<br><sub>{part.cut.title}: {text_of(part.polynomial)[:400]} = 0</sub>"
    marker = {"color": plotting.VERMILION, "size": 3}
    if part.dim == 3:
        corners = part.cells.reshape(-1, 3).round(5)
        i, j, k = np.arange(len(corners)).reshape(-1, 3).T.tolist()
        x, y, z = corners.T.tolist()
        mesh = go.Mesh3d(
            x=x, y=y, z=z, i=i, j=j, k=k, color=plotting.SKY, name=_CLOSURE, showlegend=True, hoverinfo="skip"
        )
        texts = [f"singular: {', '.join(f'{c:.4g}' for c in point)}" for point in points]
        beads = figure1.beads(go, points, marker, texts, name=_SINGULAR)
        return go.Figure(data=[mesh, beads], layout=figure1.layout(part.cut, title))
    broken = np.concatenate([part.cells, np.full((len(part.cells), 1, 2), np.nan)], axis=1).reshape(-1, 2)
    curve = go.Scatter(
        x=broken[:, 0],
        y=broken[:, 1],
        mode="lines",
        line={"color": plotting.BLUE},
        name=_CLOSURE,
        hoverinfo="skip",
    )
    dots = go.Scatter(
        x=points[:, 0], y=points[:, 1], mode="markers", marker={**marker, "size": 9}, name=_SINGULAR
    )
    layout = {"title": {"text": title, "x": 0.5}, "template": "plotly_white"}
    return go.Figure(data=[curve, dots], layout=layout)


COLUMNS = ("kind", *AXES)


def data(part: HypersurfaceSection) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn: a JSON document, and a table of corners of a curve, or of some of a surface, and of singular points."""
    marked = np.empty((0, part.dim)) if part.singular is None else part.singular
    singular = None if part.singular is None else part.singular.round(6).tolist()
    document = {
        "figure": "slice", "model": part.model, "slice": part.cut.document(), "equation": text_of(part.polynomial),
        "singular_points": singular if singular is None or len(singular) <= 12 else len(singular),
    }  # fmt: skip
    corners = part.cells[:: 1 if part.dim == 2 else 20, 0]
    rows = [
        [kind, *(f"{c:.6f}" for c in point.round(6) + 0.0), *[""] * (3 - part.dim)]
        for kind, points in (("closure", corners), ("singular", marked))
        for point in points
    ]
    return document, rows
