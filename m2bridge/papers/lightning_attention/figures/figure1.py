"""Draw Figure 1, a slice of M(2,1,2): the surface, its singular curve (solid in the image, dotted outside), boundary points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.figures import plotting, space
from m2bridge.figures.slices import Polynomial, Slice, closure_equation, restrict, text_of
from m2bridge.papers.lightning_attention.figures.crosscheck import Check, compare
from m2bridge.papers.lightning_attention.figures.named_slices import MODEL, quadric_text
from m2bridge.papers.lightning_attention.figures.surface import Curve, Patch, singular_curves, surface

SURFACE = "image (real weights)"
SOLID = "singular, in the image"
DOTTED = "only in the Zariski closure"
MARKS = "boundary points"
_DIAMOND = {"color": plotting.YELLOW, "marker": "D", "markeredgecolor": "k", "linestyle": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSection:
    """Surface, singular curves and boundary points of one slice, and the comparison of surface and equation."""

    affine_slice: Slice
    polynomial: Polynomial
    patches: tuple[Patch, ...]
    curves: tuple[Curve, ...]
    boundary_points: np.ndarray
    check: Check


def section(affine_slice: Slice, equations: Sequence[str], *, grid: int = 24) -> PlaneSection:
    """Compute the section of the neuromanifold by a slice.

    Parameters
    ----------
    equations
        The equations of the closure computed by Macaulay2, from a record.

    Raises
    ------
    DisagreementError
        The surface of the parametrization and the equation do not agree.
    """
    polynomial = restrict(closure_equation(equations, MODEL), affine_slice)
    patches = tuple(surface(affine_slice))
    curves, marks = singular_curves(affine_slice)
    check = compare(affine_slice, polynomial, patches, curves, grid=grid)
    check.require()
    return PlaneSection(
        affine_slice=affine_slice,
        polynomial=polynomial,
        patches=patches,
        curves=tuple(curves),
        boundary_points=marks,
        check=check,
    )


def draw(plane_section: PlaneSection, path: Path) -> None:
    """Write the figure; the suffix of `path` selects the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(interactive(plane_section), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 3.6)
        axes = figure.add_axes((-0.02, 0.175, 0.98, 0.865), projection=space.projection())
        paint(axes, plane_section)
        legend(figure, [plane_section], (0.5, 0.065))
        _caption(figure, plane_section.affine_slice)
        plotting.save_figure(figure, path)


def legend(figure: Any, sections: Sequence[PlaneSection], anchor: tuple[float, float]) -> None:
    """Draw the legend of all elements that occur in the sections, with the middle of its lower edge at `anchor`."""
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    handles = [
        patch(facecolor=plotting.SKY, edgecolor="none", label=SURFACE),
        lines([], [], color=plotting.VERMILION, linewidth=2, label=SOLID),
        lines([], [], color=plotting.VERMILION, linewidth=2, linestyle=(0, (1, 1.2)), label=DOTTED),
        lines([], [], markersize=5, label=MARKS, **_DIAMOND),
    ]
    curves = [curve for plane_section in sections for curve in plane_section.curves]
    kinds = [True, any(c.in_image for c in curves), any(not c.in_image for c in curves)]
    kinds.append(any(len(plane_section.boundary_points) for plane_section in sections))
    present = [handle for handle, kind in zip(handles, kinds, strict=True) if kind]
    plotting.legend_below(figure, present, anchor, ncols=2, handlelength=2.2)


def _caption(figure: Any, affine_slice: Slice) -> None:
    """Write the two quadrics as functions of x, y, z below the figure, and what their factors are."""
    meaning = "$\\alpha_m(x) = x^T A e_m$, a column of the attention matrix; $\\nu$: the row of $V$"
    figure.text(0.5, 0.0, meaning, ha="center", va="bottom", fontsize=5.5)
    text = f"$\\alpha_1\\nu$ = {quadric_text(affine_slice, 0)},  $\\alpha_2\\nu$ = {quadric_text(affine_slice, 1)}"
    size = 6.5 if len(text) < 75 else 5
    figure.text(0.5, 0.028, text.replace("-", "\N{MINUS SIGN}"), ha="center", va="bottom", fontsize=size)


def paint(axes: Any, plane_section: PlaneSection, *, small: bool = False) -> None:
    """Draw a section on three-dimensional axes."""
    space.paint_surface(axes, plane_section.affine_slice, _polygons(plane_section.patches), small=small)
    for curve in plane_section.curves:
        points = curve.points[:: max(1, len(curve.points) // 400)]
        points = np.concatenate([points, curve.points[-1:]])
        style: Any = {"linestyle": "-" if curve.in_image else (0, (1, 1.2)), "solid_capstyle": "butt"}
        axes.plot(*points.T, color=plotting.VERMILION, linewidth=1.4 if small else 2.0, zorder=5, **style)
    if len(plane_section.boundary_points):
        size = 4 if small else 5.5
        axes.plot(
            *plane_section.boundary_points.T, markersize=size, markeredgewidth=0.8, zorder=6, **_DIAMOND
        )


def _polygons(patches: Sequence[Patch]) -> np.ndarray:
    """Return the quadrilaterals (count, 4, 3) of all patches."""
    quads = []
    for patch in patches:
        p = patch.points
        quads.append(np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 4, 3))
    return np.concatenate(quads)


# -- interactive ---------------------------------------------------------------------------------------------------------------


def interactive(plane_section: PlaneSection) -> Any:
    """Return a plotly figure whose hover texts show the weights (A, V) of each point."""
    go = plotting.library("plotly.graph_objects")
    traces = []
    for number, patch in enumerate(plane_section.patches):
        light = {"ambient": 0.72, "diffuse": 0.5, "specular": 0.1, "roughness": 0.7}
        settings = {"name": SURFACE, "showlegend": number == 0, "legendgroup": "surface", "opacity": 0.82}
        traces.append(
            _solid(go, patch.points, plotting.SKY, np.array(_hover(patch)), lighting=light, **settings)
        )
    traces += _interactive_curves(plane_section, go)
    if len(plane_section.boundary_points):
        marker = {
            "color": plotting.YELLOW,
            "size": 6,
            "symbol": "diamond",
            "line": {"color": "black", "width": 2},
        }
        texts = [
            f"boundary point ({a:.4g}, {b:.4g}, {c:.4g})"
            for a, b, c in plane_section.boundary_points.round(6)
        ]
        traces.append(space.beads(go, plane_section.boundary_points, marker, texts, name=MARKS))
    quadrics = f"α₁ν = {quadric_text(plane_section.affine_slice, 0)}, α₂ν = {quadric_text(plane_section.affine_slice, 1)}"
    title = f"A slice of M(2,1,2), t = 2<br><sub>{quadrics}; closure: {text_of(plane_section.polynomial)} = 0</sub>"
    return go.Figure(data=traces, layout=space.layout(plane_section.affine_slice, title))


def _solid(go: Any, points: np.ndarray, colour: str, text: np.ndarray, **settings: Any) -> Any:
    """Return a surface of one colour through a grid of points, with a hover text for each."""
    x, y, z = np.moveaxis(points, -1, 0).round(5).tolist()
    return go.Surface(
        x=x, y=y, z=z, surfacecolor=np.zeros(points.shape[:2]).tolist(), colorscale=[[0, colour], [1, colour]],
        showscale=False, text=text, hoverinfo="text", contours={axis: {"highlight": False} for axis in "xyz"}, **settings,
    )  # fmt: skip


def _interactive_curves(plane_section: PlaneSection, go: Any) -> list[Any]:
    """Return the singular curve as a tube in the image (a line would be hidden by the surface) and as points outside it."""
    traces: list[Any] = []
    size = float(
        np.linalg.norm(plane_section.affine_slice.limits[:, 1] - plane_section.affine_slice.limits[:, 0])
    )
    seen: set[str] = set()
    for curve in sorted(plane_section.curves, key=lambda curve: not curve.in_image):
        name = SOLID if curve.in_image else DOTTED
        settings = {"name": name, "showlegend": name not in seen, "legendgroup": name}
        seen.add(name)
        if curve.in_image:
            tube = _tube(curve.points, 0.006 * size)
            text = np.full(tube.shape[:2], f"{SOLID}<br>two pairs of real weights")
            light = {"ambient": 0.9, "diffuse": 0.2}
            traces.append(_solid(go, tube, plotting.VERMILION, text, lighting=light, **settings))
        else:
            length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve.points, axis=0), axis=1))])
            stops = np.arange(0.011 * size, length[-1], 0.018 * size)
            points = np.stack([np.interp(stops, length, curve.points[:, k]) for k in range(3)], axis=1)
            texts = [f"{DOTTED}<br>no real weights: a complex-conjugate pair"] * len(points)
            marker = {"color": plotting.VERMILION, "size": 3.5}
            traces.append(space.beads(go, points, marker, texts, **settings))
    return traces


def _tube(points: np.ndarray, radius: float, around: int = 10) -> np.ndarray:
    """Return points (along, around + 1, 3) of a tube around a curve."""
    centre = points[:: max(1, len(points) // 60)]
    centre = np.concatenate([centre, points[-1:]]) if not np.array_equal(centre[-1], points[-1]) else centre
    along = np.gradient(centre, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    helper = np.where(np.abs(along[:, :1]) < 0.8, np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]]))
    first = np.cross(along, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(along, first)
    angle = np.linspace(0, 2 * np.pi, around + 1)[None, :, None]
    ring = np.cos(angle) * first[:, None] + np.sin(angle) * second[:, None]
    return np.asarray(centre[:, None] + radius * ring)


def _hover(patch: Patch) -> list[list[str]]:
    """Return for each point a text with its coordinates and its weights."""
    text = "x, y, z = {:.3g}, {:.3g}, {:.3g}<br>A = [[{:.3g}, {:.3g}], [{:.3g}, {:.3g}]]<br>V = [[{:.3g}, {:.3g}]]"
    return [[text.format(*entries) for entries in row] for row in _entries(patch)]


# -- data ----------------------------------------------------------------------------------------------------------------------

COLUMNS = ("kind", "x", "y", "z", "A11", "A12", "A21", "A22", "V11", "V12")


def _entries(patch: Patch) -> np.ndarray:
    """Return x, y, z and the entries of A and V for each point of a patch."""
    flat = (
        plane_section.reshape(*patch.points.shape[:2], -1)
        for plane_section in (patch.points, patch.A, patch.V)
    )
    return np.concatenate(list(flat), axis=-1)


def data(plane_section: PlaneSection) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the data of the figure: a JSON document, and a table of a fifteenth of the points with their weights."""
    curves = [
        {"in_image": c.in_image, "from": c.points[0].round(6).tolist(), "to": c.points[-1].round(6).tolist()}
        for c in plane_section.curves
    ]
    check = plane_section.check
    document = {
        "figure": "1",
        "model": "lightning(d=2,dp=1,a=2,t=2)",
        "slice": plane_section.affine_slice.document(),
        "equation": text_of(plane_section.polynomial),
        "boundary_points": plane_section.boundary_points.round(6).tolist(),
        "singular_curve": curves,
        "check": {
            "drawn_points": check.drawn,
            "roots_on_grid": check.roots,
            "closure_only_roots": check.closure_only_roots,
            "agrees": not check.failures,
        },
    }
    rows: list[list[Any]] = []

    def add(kind: str, points: np.ndarray) -> None:
        # "z" writes no minus sign before zero
        rows.extend([kind, *(f"{x:z.6f}" for x in point), *[""] * (9 - len(point))] for point in points)

    for patch in plane_section.patches:
        add("surface", _entries(patch)[::3, ::5].reshape(-1, 9))
    for curve in plane_section.curves:
        thinned = curve.points[:: max(1, len(curve.points) // 40)]
        add("singular" if curve.in_image else "closure-only", thinned)
    add("boundary", plane_section.boundary_points)
    return document, rows
