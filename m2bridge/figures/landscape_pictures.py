"""Draw a loss landscape: weights with contours of the loss on the left, the surface of functions on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from m2bridge.figures import landscape, plotting
from m2bridge.figures.declaration import Drawing, Figure, FigureRequest
from m2bridge.figures.landscape import KINDS, Scene, basin_colour, losses_on
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.critical_points.losses import read_target

_EDGE = {"linestyle": "none", "markeredgecolor": "k", "markeredgewidth": 0.8}
_TARGET = {"marker": "*", "markersize": 12, "color": plotting.YELLOW, **_EDGE}
_BOUNDARY = {"marker": "D", "markersize": 5, "color": plotting.YELLOW, **_EDGE}
_DOTS = (0, (1, 1.2))
_PIXELS = 260  # per side of the depth buffer that hides flow lines


def draw(scene: Scene, path: Path, title: str) -> None:
    """Write the figure; the suffix of `path` selects the format."""
    plotting.library("mpl_toolkits.mplot3d")
    with plotting.style():
        figure = plotting.new_figure(7.4, 4.3)
        _paint_weights(figure.add_axes((0.07, 0.235, 0.40, 0.66)), scene)
        _paint_functions(figure.add_axes((0.47, 0.13, 0.55, 0.84), projection="3d"), scene)
        figure.text(0.27, 0.925, "weights", ha="center", fontsize=9.5, fontweight="bold")
        figure.text(0.75, 0.925, "functions", ha="center", fontsize=9.5, fontweight="bold")
        _legend(figure, scene)
        regular = scene.answer.regular
        real = scene.answer.real
        drawn = sum(len(preimages) > 0 for preimages in scene.weights)
        text = (
            f"{title[0].upper()}{title[1:]}: {regular} critical functions over the complex numbers, {real} real, "
            f"{drawn} in this window."
        )
        figure.text(0.5, 0.015, text.replace("-", "\N{MINUS SIGN}"), ha="center", fontsize=6.5)
        plotting.save_figure(figure, path)


def _marker(kind: str, size: float = 7) -> dict[str, Any]:
    shape, colour, _ = KINDS[kind]
    return {"marker": shape, "color": colour, "markersize": size, **_EDGE}


def _paint_weights(axes: Any, scene: Scene) -> None:
    grid, _, loss = losses_on(scene, 161)
    x, y, distance = grid[..., 0], grid[..., 1], np.sqrt(loss)
    levels = np.linspace(distance.min(), np.quantile(distance, 0.97), 18)
    axes.contourf(x, y, distance, levels=levels, cmap="Blues_r", alpha=0.6, extend="max")
    axes.contour(x, y, distance, levels=levels, colors="white", linewidths=0.5)
    for line, end in zip(scene.flows, scene.ends, strict=True):
        axes.plot(*line.T, color=basin_colour(scene, end), linewidth=0.55, alpha=0.75)
        axes.plot(*line[0], marker=".", markersize=2.2, color=basin_colour(scene, end))
    if scene.singular:
        axes.plot([0, 0], [-scene.window, scene.window], color=plotting.VERMILION, linewidth=1.8)
        axes.plot(0, 0, **_BOUNDARY)
    for kind, preimages in zip(scene.kinds, scene.weights, strict=True):
        axes.plot(*preimages.T, **_marker(kind))
    side = (-scene.window, scene.window)
    first, second = scene.plane.user.variables
    axes.set(xlim=side, ylim=side, xlabel=f"${first}$", ylabel=f"${second}$")
    axes.set_aspect("equal")
    axes.tick_params(length=2)


def _paint_functions(axes: Any, scene: Scene) -> None:
    _, values, loss = losses_on(scene)
    points = values @ scene.frame.T
    axes.computed_zorder = False
    look = {"rstride": 1, "cstride": 1, "linewidth": 0, "antialiased": False, "shade": False, "zorder": 1}
    colours = _shaded(points, np.sqrt(loss))
    axes.plot_surface(*np.moveaxis(points, -1, 0), facecolors=colours, **look).set_rasterized(True)
    functions, goal = scene.functions @ scene.frame.T, scene.frame @ scene.target
    for curve, solid in scene.singular:
        style = "-" if solid else _DOTS
        axes.plot(*curve.T, color=plotting.VERMILION, linewidth=2, linestyle=style, zorder=5)
    if len(scene.marks):
        axes.plot(*scene.marks.T, zorder=6, **_BOUNDARY)
    for kind, y, preimages in zip(scene.kinds, functions, scene.weights, strict=True):
        if not len(preimages):
            continue  # outside the window, often far away
        if kind == "minimum":
            axes.plot(*np.stack([goal, y]).T, color="k", linewidth=0.8, linestyle=(0, (3, 2)), zorder=7)
        axes.plot(*y[:, None], zorder=8, **_marker(kind))
    axes.plot(*goal[:, None], zorder=9, **_TARGET)
    plotting.frame_3d(axes, aspect=(1, 1, 0.95), zoom=0.95, focal_length=0.7, view=(18, -38))
    axes.grid(visible=True, linewidth=0.4)
    _paint_flows(axes, scene)


def _paint_flows(axes: Any, scene: Scene) -> None:
    """Draw flow lines on the surface, thin where another part of the surface hides them."""
    project = plotting.library("mpl_toolkits.mplot3d.proj3d").proj_transform
    limits = [getattr(axes, f"get_{name}lim")() for name in "xyz"]
    camera = axes.get_proj()
    _, values, _ = losses_on(scene, 321)
    u, v, depth = project(*(values @ scene.frame.T).reshape(-1, 3).T, camera)
    low, span = np.array([u.min(), v.min()]), np.array([np.ptp(u), np.ptp(v)])
    nearest = np.full((_PIXELS + 1, _PIXELS + 1), np.inf)
    np.minimum.at(nearest, tuple((_PIXELS * (np.stack([u, v], 1) - low) / span).astype(int).T), depth)
    slack = 0.03 * float(np.ptp(depth))
    for line, end in zip(scene.flows, scene.ends, strict=True):
        inside = line[np.abs(line).max(axis=1) <= scene.window]
        if len(inside) < 2:
            continue
        curve = np.asarray(scene.plane.coordinates({"x": inside})) @ scene.frame.T
        u, v, depth = project(*curve.T, camera)
        pixel = np.clip((_PIXELS * (np.stack([u, v], 1) - low) / span).astype(int), 0, _PIXELS)
        hidden = depth > nearest[tuple(pixel.T)] + slack
        for shown, alpha, order in ((~hidden, 0.85, 3), (hidden, 0.22, 2)):
            drawn = np.where(shown[:, None], curve, np.nan)
            axes.plot(*drawn.T, color=basin_colour(scene, end), linewidth=0.6, alpha=alpha, zorder=order)
    axes.set(xlim=limits[0], ylim=limits[1], zlim=limits[2])


def _shaded(points: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Return shaded colours of the surface by loss: darker near the target."""
    normal = np.cross(np.gradient(points, axis=0), np.gradient(points, axis=1))
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-12)
    light = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
    rank = np.searchsorted(np.sort(height.ravel()), height) / height.size
    tint = plotting.library("matplotlib").colormaps["Blues_r"](0.25 + 0.6 * rank)
    tint[..., :3] *= (0.72 + 0.28 * np.abs(normal @ light))[..., None]
    return np.asarray(np.clip(tint, 0, 1))


def _legend(figure: Any, scene: Scene) -> None:
    line = plotting.library("matplotlib.lines").Line2D
    handles = [
        line([], [], label=KINDS[kind][2], **_marker(kind, 6)) for kind in KINDS if kind in scene.kinds
    ]
    handles.append(line([], [], label="target", **{**_TARGET, "markersize": 9}))
    if scene.singular:
        red = {"color": plotting.VERMILION, "linewidth": 2}
        handles.append(line([], [], label="singular functions", **red))
        handles.append(line([], [], label="only in the closure", linestyle=_DOTS, **red))
        handles.append(line([], [], label="boundary", **_BOUNDARY))
    handles.append(
        line([], [], color=landscape.BASINS[0], linewidth=0.9, label="gradient flow, one colour per minimum")
    )
    plotting.legend_below(figure, handles, (0.5, 0.05), ncols=min(4, len(handles)), columnspacing=1.4)


# -- the command ----------------------------------------------------------------------------------------------------


def draw_landscape(
    request: FigureRequest,
    target: Annotated[
        str | None, typer.Option("--target", help="Coordinates of the target, e.g. 1/2,3/5,-1/2.")
    ] = None,
    window: Annotated[
        float, typer.Option("--window", min=0.1, help="Range of the plot: weights from -WINDOW to WINDOW.")
    ] = 1.4,
) -> Drawing:
    """Draw a loss landscape: critical points by type and gradient flow, in weight space and in function space.

    A model with more than two weights is restricted to a plane of weights.

    Example: m2bridge figure landscape 'lightning(d=2,dp=1)' -o landscape.png
    """
    assert request.model is not None
    plane, title = landscape.plane_of(request.model, request.seed)
    goal = landscape.target_of(plane, request.seed) if target is None else read_target(target)
    answer = request.answer(critical_points, plane, metric="euclidean", target=goal, real=True)
    computed = landscape.scene(plane, goal, answer, window=window)
    document, rows = landscape.data(computed)
    flows = f"{computed.ending} of {len(computed.flows)} flow lines end in a minimum"
    return Drawing(
        draw=lambda path: draw(computed, path, title),
        document=document,
        columns=landscape.COLUMNS,
        rows=rows,
        message=f"{answer.view().answer}; {flows}",
    )


LANDSCAPE = Figure(compute=draw_landscape, takes=frozenset({"model", "engine"}))
