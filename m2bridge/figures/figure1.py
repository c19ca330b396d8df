"""Figure 1, a slice of M(2,1,2): the surface, its singular curve solid and dotted, the boundary points."""

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
        from m2bridge.figures.interactive import interactive

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
        _mark(lines, label=MARKS),
    ]
    curves = [curve for part in parts for curve in part.curves]
    kinds = [True, any(c.in_image for c in curves), any(not c.in_image for c in curves)]
    kinds.append(any(len(part.boundary_points) for part in parts))
    figure.legend(
        handles=[handle for handle, present in zip(handles, kinds, strict=True) if present],
        loc="lower center",
        ncols=2,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.2,
        borderaxespad=0,
        borderpad=0,
        bbox_to_anchor=place,
    )


def _caption(figure: Any, cut: Slice) -> None:
    """What the axes mean: the two quadrics as functions of x, y, z."""
    text = f"$\\alpha_1\\nu$ = {cut.quadric_text(0)},  $\\alpha_2\\nu$ = {cut.quadric_text(1)}"
    figure.text(0.5, 0.022, _minus(text), ha="center", va="bottom", fontsize=6.5 if len(text) < 75 else 5)


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _mark(lines: Any, **more: Any) -> Any:
    return lines(
        [], [], color=plotting.YELLOW, marker="D", markersize=5, markeredgecolor="k", linestyle="none", **more
    )


def paint(axes: Any, part: PlaneSection, *, small: bool = False) -> None:
    """Draw a section on three-dimensional axes."""
    collection = plotting.library("mpl_toolkits.mplot3d.art3d").Poly3DCollection
    polygons, normals = _polygons(part.patches)
    colours = _shaded(normals, part.cut)
    mesh = collection(
        polygons, facecolors=colours, edgecolors="none", linewidths=0, antialiased=False, zsort="average"
    )
    mesh.set_rasterized(True)
    axes.computed_zorder = False
    axes.add_collection3d(mesh)
    width = 1.4 if small else 2.0
    for curve in part.curves:
        points = curve.points[:: max(1, len(curve.points) // 400)]
        points = np.concatenate([points, curve.points[-1:]])
        style = "-" if curve.in_image else (0, (1, 1.2))
        axes.plot(
            *points.T,
            color=plotting.VERMILION,
            linewidth=width,
            linestyle=style,
            zorder=5,
            solid_capstyle="butt",
        )
    if len(part.boundary_points):
        size = 4 if small else 5.5
        axes.plot(
            *part.boundary_points.T, linestyle="none", marker="D", markersize=size, color=plotting.YELLOW,
            markeredgecolor="k", markeredgewidth=0.8, zorder=6,
        )  # fmt: skip
    _frame(axes, part.cut, small=small)


def _frame(axes: Any, cut: Slice, *, small: bool) -> None:
    low, high = cut.limits.T
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect((1, 1, 1.0), zoom=1.0 if small else 0.98)
    axes.set_proj_type("persp", focal_length=0.6)
    axes.view_init(*cut.view)
    pad = -8 if small else -6
    for name, label in zip(("xaxis", "yaxis", "zaxis"), AXES, strict=True):
        axis = getattr(axes, name)
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
        axis.line.set_linewidth(0.6)
        axis._axinfo["grid"].update(color=(0.85, 0.85, 0.85, 1.0), linewidth=0.4)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.15)
        axis.set_tick_params(pad=-4 if small else -3, labelsize=5.5 if small else 6.5)
        ticks = plotting.library("matplotlib.ticker")
        axis.set_major_locator(ticks.MaxNLocator(4, steps=[1, 5, 10], prune="both"))
        axis.set_label_text(f"${label}$", fontsize=7 if small else 9)
        axis.labelpad = pad


def _polygons(patches: Sequence[Patch]) -> tuple[np.ndarray, np.ndarray]:
    """Quadrilaterals (count, 4, 3) of all patches and their unit normals."""
    quads = []
    for patch in patches:
        p = patch.points
        quads.append(np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 4, 3))
    corners = np.concatenate(quads)
    normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-12
    return corners[keep], normals[keep] / length[keep, None]


def _shaded(normals: np.ndarray, cut: Slice) -> np.ndarray:
    """Colours of both sides under a light beside the eye: one tint a side, so that crossing sheets are told apart."""
    elevation, azimuth = np.radians(cut.view)
    eye = np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    )
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


COLUMNS = ("kind", "x", "y", "z", "A11", "A12", "A21", "A22", "V11", "V12")


def data(part: PlaneSection) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn: a JSON document, and a table of a tenth of the points with their weights."""
    document = {
        "figure": "1",
        "model": "lightning(d=2,dp=1,a=2,t=2)",
        "slice": part.cut.document(),
        "equation": text_of(part.polynomial),
        "boundary_points": part.boundary_points.round(6).tolist(),
        "singular_curve": [
            {
                "in_image": curve.in_image,
                "from": curve.points[0].round(6).tolist(),
                "to": curve.points[-1].round(6).tolist(),
            }
            for curve in part.curves
        ],
        "check": {
            "drawn_points": part.check.drawn,
            "roots_on_grid": part.check.roots,
            "closure_only_roots": part.check.closure_only_roots,
            "agrees": not part.check.failures,
        },
    }
    rows: list[list[Any]] = []
    for patch in part.patches:
        for i in range(0, patch.points.shape[0], 3):
            for j in range(0, patch.points.shape[1], 5):
                entries = (*patch.points[i, j], *patch.A[i, j].ravel(), *patch.V[i, j].ravel())
                rows.append(["surface", *(_number(c) for c in entries)])
    for curve in part.curves:
        kind = "singular" if curve.in_image else "closure-only"
        for point in curve.points[:: max(1, len(curve.points) // 40)]:
            rows.append([kind, *(_number(c) for c in point), *[""] * 6])
    for point in part.boundary_points:
        rows.append(["boundary", *(_number(c) for c in point), *[""] * 6])
    return document, rows


def _number(value: float) -> str:
    text = f"{value:.6f}"
    return "0.000000" if float(text) == 0 else text
