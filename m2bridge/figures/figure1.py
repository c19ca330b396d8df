"""Figure 1, a slice of M(2,1,2): the surface, its singular curve solid and dotted, its boundary points; also interactive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.figures import plotting
from m2bridge.figures.crosscheck import Check, compare
from m2bridge.figures.slices import AXES, Polynomial, Slice, closure_equation, restrict, text_of
from m2bridge.figures.surface import Curve, Patch, singular_curves, surface

SURFACE = "surface: reachable functions"
SOLID = "singular, in the image"
DOTTED = "only in the Zariski closure"
MARKS = "boundary points"
_DIAMOND = {"color": plotting.YELLOW, "marker": "D", "markeredgecolor": "k", "linestyle": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSection:
    """Everything that is drawn of one slice, and how its two descriptions compare."""

    cut: Slice
    polynomial: Polynomial
    patches: tuple[Patch, ...]
    curves: tuple[Curve, ...]
    boundary_points: np.ndarray
    check: Check


def section(cut: Slice, equations: Sequence[str], *, grid: int = 24) -> PlaneSection:
    """The section of the neuromanifold by a slice.

    Parameters
    ----------
    equations
        The closure's equations as Macaulay2 computed them, from a record.

    Raises
    ------
    DisagreementError
        The surface drawn from the parametrization and the equation are not the same surface.
    """
    polynomial = restrict(closure_equation(equations), cut)
    patches = tuple(surface(cut))
    curves, marks = singular_curves(cut)
    check = compare(cut, polynomial, patches, curves, grid=grid)
    check.require()
    return PlaneSection(
        cut=cut,
        polynomial=polynomial,
        patches=patches,
        curves=tuple(curves),
        boundary_points=marks,
        check=check,
    )


def draw(part: PlaneSection, path: Path) -> None:
    """Write the picture; the ending of `path` chooses the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(interactive(part), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 3.6)
        axes = figure.add_axes((-0.02, 0.175, 0.98, 0.865), projection=projection())
        paint(axes, part)
        legend(figure, [part], (0.5, 0.065))
        _caption(figure, part.cut)
        plotting.save_figure(figure, path)


def projection() -> str:
    """The name of matplotlib's three-dimensional axes, which importing the toolkit makes known."""
    plotting.library("mpl_toolkits.mplot3d")
    return "3d"


def legend(figure: Any, parts: Sequence[PlaneSection], place: tuple[float, float]) -> None:
    """The legend of everything that occurs in the sections, its lower middle at `place`."""
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    handles = [
        patch(facecolor=plotting.SKY, edgecolor="none", label=SURFACE),
        lines([], [], color=plotting.VERMILION, linewidth=2, label=SOLID),
        lines([], [], color=plotting.VERMILION, linewidth=2, linestyle=(0, (1, 1.2)), label=DOTTED),
        lines([], [], markersize=5, label=MARKS, **_DIAMOND),
    ]
    curves = [curve for part in parts for curve in part.curves]
    kinds = [True, any(c.in_image for c in curves), any(not c.in_image for c in curves)]
    kinds.append(any(len(part.boundary_points) for part in parts))
    present = [handle for handle, kind in zip(handles, kinds, strict=True) if kind]
    plotting.legend_below(figure, present, place, ncols=2, handlelength=2.2)


def _caption(figure: Any, cut: Slice) -> None:
    """What the axes mean: the two quadrics as functions of x, y, z."""
    text = f"$\\alpha_1\\nu$ = {cut.quadric_text(0)},  $\\alpha_2\\nu$ = {cut.quadric_text(1)}"
    size = 6.5 if len(text) < 75 else 5
    figure.text(0.5, 0.022, text.replace("-", "\N{MINUS SIGN}"), ha="center", va="bottom", fontsize=size)


def paint(axes: Any, part: PlaneSection, *, small: bool = False) -> None:
    """Draw a section on three-dimensional axes."""
    paint_surface(axes, part.cut, _polygons(part.patches), small=small)
    for curve in part.curves:
        points = curve.points[:: max(1, len(curve.points) // 400)]
        points = np.concatenate([points, curve.points[-1:]])
        style: Any = {"linestyle": "-" if curve.in_image else (0, (1, 1.2)), "solid_capstyle": "butt"}
        axes.plot(*points.T, color=plotting.VERMILION, linewidth=1.4 if small else 2.0, zorder=5, **style)
    if len(part.boundary_points):
        size = 4 if small else 5.5
        axes.plot(*part.boundary_points.T, markersize=size, markeredgewidth=0.8, zorder=6, **_DIAMOND)


def paint_surface(axes: Any, cut: Slice, polygons: np.ndarray, *, small: bool = False) -> None:
    """Polygons (count, corners, 3) of a surface in a slice, lit from beside the eye, on the axes of the slice's box."""
    collection = plotting.library("mpl_toolkits.mplot3d.art3d").Poly3DCollection
    normals = np.cross(polygons[:, 2] - polygons[:, 0], polygons[:, -1] - polygons[:, 1])
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-12
    colours = _shaded(normals[keep] / length[keep, None], cut)
    words = {"edgecolors": "none", "linewidths": 0, "antialiased": False, "zsort": "average"}
    mesh = collection(polygons[keep], facecolors=colours, **words)
    mesh.set_rasterized(True)
    axes.computed_zorder = False
    axes.add_collection3d(mesh)
    low, high = cut.limits.T
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    zoom = 1.0 if small else 0.98
    plotting.frame_3d(axes, aspect=(1, 1, 1), zoom=zoom, focal_length=0.6, view=cut.view, small=small)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.line.set_linewidth(0.6)
        axis._axinfo["grid"].update(color=(0.85, 0.85, 0.85, 1.0), linewidth=0.4)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.15)


def _polygons(patches: Sequence[Patch]) -> np.ndarray:
    """Quadrilaterals (count, 4, 3) of all patches."""
    quads = []
    for patch in patches:
        p = patch.points
        quads.append(np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 4, 3))
    return np.concatenate(quads)


def _eye(cut: Slice) -> np.ndarray:
    """The direction from which a slice is looked at."""
    elevation, azimuth = np.radians(cut.view)
    flat = np.cos(elevation)
    return np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


def _shaded(normals: np.ndarray, cut: Slice) -> np.ndarray:
    """Colours of both sides under a light beside the eye: one tint a side, so that crossing sheets are told apart."""
    eye = _eye(cut)
    light = eye + np.array([0.25, -0.1, 0.75])
    light /= np.linalg.norm(light)
    facing = normals @ eye
    towards = np.where(facing[:, None] >= 0, normals, -normals)
    diffuse = np.clip(towards @ light, 0, 1)
    half = (light + eye) / np.linalg.norm(light + eye)
    gloss = np.clip(towards @ half, 0, 1) ** 30
    to_rgb = plotting.library("matplotlib.colors").to_rgb
    tint = np.where((facing >= 0)[:, None], np.array(to_rgb("#56B4E9")), np.array(to_rgb("#9FC6DE")))
    colour = np.clip(tint * (0.5 + 0.55 * diffuse[:, None]) + 0.18 * gloss[:, None], 0, 1)
    return np.concatenate([colour, np.ones((len(colour), 1))], axis=1)


# -- interactive ---------------------------------------------------------------------------------------------------------------


def interactive(part: PlaneSection) -> Any:
    """A plotly figure with the weights (A, V) of each point under the pointer."""
    go = plotting.library("plotly.graph_objects")
    traces = []
    for number, patch in enumerate(part.patches):
        light = {"ambient": 0.72, "diffuse": 0.5, "specular": 0.1, "roughness": 0.7}
        words = {"name": SURFACE, "showlegend": number == 0, "legendgroup": "surface", "opacity": 0.82}
        traces.append(
            _solid(go, patch.points, plotting.SKY, np.array(_hover(patch)), lighting=light, **words)
        )
    traces += _interactive_curves(part, go)
    if len(part.boundary_points):
        marker = {
            "color": plotting.YELLOW,
            "size": 6,
            "symbol": "diamond",
            "line": {"color": "black", "width": 2},
        }
        texts = [f"boundary point ({a:.4g}, {b:.4g}, {c:.4g})" for a, b, c in part.boundary_points.round(6)]
        traces.append(beads(go, part.boundary_points, marker, texts, name=MARKS))
    where = f"α₁ν = {part.cut.quadric_text(0)}, α₂ν = {part.cut.quadric_text(1)}"
    title = f"A slice of M(2,1,2), t = 2<br><sub>{where}; closure: {text_of(part.polynomial)} = 0</sub>"
    return go.Figure(data=traces, layout=layout(part.cut, title))


def layout(cut: Slice, title: str) -> dict[str, Any]:
    """Plotly's layout of a slice of three dimensions."""
    box = {"backgroundcolor": "#f7f7f7", "gridcolor": "#d9d9d9"}
    axes = {
        f"{label}axis": {"range": side.tolist(), "title": {"text": label}, **box}
        for label, side in zip(AXES, cut.limits, strict=True)
    }
    eye = dict(zip("xyz", (2.15 * _eye(cut)).round(4).tolist(), strict=True))
    camera = {"eye": eye, "center": {"x": 0, "y": 0, "z": -0.12}}
    return {
        "title": {"text": title, "x": 0.5},
        "scene": {**axes, "aspectmode": "cube", "camera": camera},
        "template": "plotly_white",
        "legend": {"x": 0.02, "y": 0.98, "yanchor": "top", "bgcolor": "rgba(255,255,255,0.8)"},
        "margin": {"l": 0, "r": 0, "t": 70, "b": 0},
        "font": {"size": 14},
    }


def _solid(go: Any, points: np.ndarray, colour: str, text: np.ndarray, **words: Any) -> Any:
    """A surface of one colour through a grid of points, with a text for each."""
    x, y, z = np.moveaxis(points, -1, 0).round(5).tolist()
    return go.Surface(
        x=x, y=y, z=z, surfacecolor=np.zeros(points.shape[:2]).tolist(), colorscale=[[0, colour], [1, colour]],
        showscale=False, text=text, hoverinfo="text", contours={axis: {"highlight": False} for axis in "xyz"}, **words,
    )  # fmt: skip


def beads(go: Any, points: np.ndarray, marker: dict[str, Any], texts: list[str], **words: Any) -> Any:
    x, y, z = points.T.round(6).tolist()
    return go.Scatter3d(
        x=x, y=y, z=z, mode="markers", marker=marker, text=texts, hoverinfo="text", **words
    )  # fmt: skip


def _interactive_curves(part: PlaneSection, go: Any) -> list[Any]:
    """The singular curve: a tube where it is in the image (a line would drown in the surface), beads where it is not."""
    traces: list[Any] = []
    size = float(np.linalg.norm(part.cut.limits[:, 1] - part.cut.limits[:, 0]))
    seen: set[str] = set()
    for curve in sorted(part.curves, key=lambda curve: not curve.in_image):
        name = SOLID if curve.in_image else DOTTED
        words = {"name": name, "showlegend": name not in seen, "legendgroup": name}
        seen.add(name)
        if curve.in_image:
            tube = _tube(curve.points, 0.006 * size)
            text = np.full(tube.shape[:2], f"{SOLID}<br>two pairs of real weights")
            light = {"ambient": 0.9, "diffuse": 0.2}
            traces.append(_solid(go, tube, plotting.VERMILION, text, lighting=light, **words))
        else:
            length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve.points, axis=0), axis=1))])
            stops = np.arange(0.011 * size, length[-1], 0.018 * size)
            points = np.stack([np.interp(stops, length, curve.points[:, k]) for k in range(3)], axis=1)
            texts = [f"{DOTTED}<br>no real weights: a complex-conjugate pair"] * len(points)
            marker = {"color": plotting.VERMILION, "size": 3.5}
            traces.append(beads(go, points, marker, texts, **words))
    return traces


def _tube(points: np.ndarray, radius: float, around: int = 10) -> np.ndarray:
    """A tube around a curve: points (along, around + 1, 3)."""
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
    """For each point its coordinates and the weights that reach it."""
    text = "x, y, z = {:.3g}, {:.3g}, {:.3g}<br>A = [[{:.3g}, {:.3g}], [{:.3g}, {:.3g}]]<br>V = [[{:.3g}, {:.3g}]]"
    return [[text.format(*entries) for entries in row] for row in _entries(patch)]


# -- data ----------------------------------------------------------------------------------------------------------------------

COLUMNS = ("kind", "x", "y", "z", "A11", "A12", "A21", "A22", "V11", "V12")


def _entries(patch: Patch) -> np.ndarray:
    """For each point of a patch x, y, z and the entries of A and V that reach it."""
    flat = (part.reshape(*patch.points.shape[:2], -1) for part in (patch.points, patch.A, patch.V))
    return np.concatenate(list(flat), axis=-1)


def data(part: PlaneSection) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn: a JSON document, and a table of a tenth of the points with their weights."""
    curves = [
        {"in_image": c.in_image, "from": c.points[0].round(6).tolist(), "to": c.points[-1].round(6).tolist()}
        for c in part.curves
    ]
    check = part.check
    document = {
        "figure": "1",
        "model": "lightning(d=2,dp=1,a=2,t=2)",
        "slice": part.cut.document(),
        "equation": text_of(part.polynomial),
        "boundary_points": part.boundary_points.round(6).tolist(),
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
        rows.extend([kind, *map(_number, point), *[""] * (9 - len(point))] for point in points)

    for patch in part.patches:
        add("surface", _entries(patch)[::3, ::5].reshape(-1, 9))
    for curve in part.curves:
        thinned = curve.points[:: max(1, len(curve.points) // 40)]
        add("singular" if curve.in_image else "closure-only", thinned)
    add("boundary", part.boundary_points)
    return document, rows


def _number(value: float) -> str:
    text = f"{value:.6f}"
    return "0.000000" if float(text) == 0 else text
