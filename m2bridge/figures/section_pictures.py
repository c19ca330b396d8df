"""Draw a slice of a hypersurface: its real points, and the singular points of the closure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from m2bridge.families import parse_spec
from m2bridge.figures import plotting, space
from m2bridge.figures.declaration import Drawing, Figure, FigureRequest
from m2bridge.figures.section import HypersurfaceSection, chosen_slice, section
from m2bridge.figures.slices import AXES, slice_file, text_of
from m2bridge.questions.singular_locus import SingularLocus, singular_locus
from m2bridge.views import shorten

_LONGEST_CAPTION = 90
"""Characters of an equation that fit below the figure."""
_CLOSURE, _SINGULAR = "real points of the closure", "singular points of the closure"


def draw(hypersurface: HypersurfaceSection, path: Path) -> None:
    """Write the figure; the suffix of `path` selects the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(interactive(hypersurface), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 3.7)
        if hypersurface.dim == 3:
            axes = figure.add_axes((-0.02, 0.16, 0.98, 0.8), projection=space.projection())
            cells = hypersurface.cells if len(hypersurface.cells) else np.zeros((1, 3, 3))
            space.paint_surface(axes, hypersurface.affine_slice, cells)
        else:
            axes = figure.add_axes((0.17, 0.24, 0.78, 0.68))
            lines = plotting.library("matplotlib.collections").LineCollection
            axes.add_collection(
                lines(hypersurface.cells, colors=plotting.BLUE, linewidths=1.3, capstyle="round")
            )
            axes.set(
                xlim=hypersurface.affine_slice.limits[0],
                ylim=hypersurface.affine_slice.limits[1],
                xlabel="$x$",
                ylabel="$y$",
            )
        points = np.empty((0, hypersurface.dim)) if hypersurface.singular is None else hypersurface.singular
        dots = {"color": plotting.VERMILION, "marker": "o", "linestyle": "none", "zorder": 6}
        size = 5.0 if len(points) <= 12 else 1.6
        axes.plot(*points.T, markersize=size, markeredgewidth=0, **dots)
        _legend(figure, hypersurface, dots)
        figure.text(0.5, 0.99, hypersurface.name, ha="center", va="top", fontsize=8)
        text = text_of(hypersurface.polynomial)
        caption = (
            f"{hypersurface.affine_slice.title}: {text} = 0"
            if len(text) <= _LONGEST_CAPTION
            else hypersurface.affine_slice.title
        )
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


def _legend(figure: Any, hypersurface: HypersurfaceSection, dots: dict[str, Any]) -> None:
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    handles = [patch(facecolor=plotting.SKY, edgecolor="none", label=_CLOSURE)]
    if hypersurface.dim == 2:
        handles = [lines([], [], color=plotting.BLUE, linewidth=1.3, label=_CLOSURE)]
    if hypersurface.singular is not None and len(hypersurface.singular):
        handles.append(lines([], [], markersize=4, label=_SINGULAR, **{**dots, "zorder": None}))
    plotting.legend_below(figure, handles, (0.5, 0.065), ncols=2)


def interactive(hypersurface: HypersurfaceSection) -> Any:
    """Return a plotly figure of the section."""
    go = plotting.library("plotly.graph_objects")
    points = np.empty((0, hypersurface.dim)) if hypersurface.singular is None else hypersurface.singular
    title = f"{hypersurface.name}<br><sub>{hypersurface.affine_slice.title}: {text_of(hypersurface.polynomial)[:400]} = 0</sub>"
    marker = {"color": plotting.VERMILION, "size": 3}
    if hypersurface.dim == 3:
        corners = hypersurface.cells.reshape(-1, 3).round(5)
        i, j, k = np.arange(len(corners)).reshape(-1, 3).T.tolist()
        x, y, z = corners.T.tolist()
        mesh = go.Mesh3d(
            x=x, y=y, z=z, i=i, j=j, k=k, color=plotting.SKY, name=_CLOSURE, showlegend=True, hoverinfo="skip"
        )
        texts = [f"singular: {', '.join(f'{c:.4g}' for c in point)}" for point in points]
        beads = space.beads(go, points, marker, texts, name=_SINGULAR)
        return go.Figure(data=[mesh, beads], layout=space.layout(hypersurface.affine_slice, title))
    broken = np.concatenate(
        [hypersurface.cells, np.full((len(hypersurface.cells), 1, 2), np.nan)], axis=1
    ).reshape(-1, 2)
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


def data(hypersurface: HypersurfaceSection) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the data of the figure: a JSON document, and a table of points of the closure and of singular points."""
    singular_points = (
        np.empty((0, hypersurface.dim)) if hypersurface.singular is None else hypersurface.singular
    )
    singular = None if hypersurface.singular is None else hypersurface.singular.round(6).tolist()
    document = {
        "figure": "slice",
        "model": hypersurface.model,
        "slice": hypersurface.affine_slice.document(),
        "equation": text_of(hypersurface.polynomial),
        "singular_points": singular if singular is None or len(singular) <= 12 else len(singular),
    }  # fmt: skip
    corners = hypersurface.cells[:: 1 if hypersurface.dim == 2 else 20, 0]
    rows = [
        [kind, *(f"{c:.6f}" for c in point.round(6) + 0.0), *[""] * (3 - hypersurface.dim)]
        for kind, points in (("closure", corners), ("singular", singular_points))
        for point in points
    ]
    return document, rows


def draw_hypersurface(
    request: FigureRequest,
    slice_path: Annotated[
        Path | None,
        typer.Option(
            "--slice", help="JSON file with origin and two or three directions (default: random, by --seed)."
        ),
    ] = None,
    dims: Annotated[
        int | None, typer.Option("--dims", min=2, max=3, help="2 for a curve, 3 for a surface.")
    ] = None,
    window: Annotated[
        float,
        typer.Option("--window", min=0.01, help="Range of the plot: coordinates from -WINDOW to WINDOW."),
    ] = 1.0,
) -> Drawing:
    """Draw a slice of a hypersurface: the real points of its computed equation, with the singular points of the closure.

    Example: m2bridge figure slice 'map:s,t->s*t;s;t^2' -o umbrella.png
    """
    recorded = bool(request.recorded)
    locus = request.result(SingularLocus) if recorded else request.answer(singular_locus, request.model)
    if slice_path is None:
        chosen = chosen_slice(locus, dims=dims, window=window, seed=request.seed)
    else:
        chosen = slice_file(slice_path, parse_spec(locus.model))
    name = None if recorded or request.model is None else str(request.model)
    hypersurface = section(locus, chosen, name)
    document, rows = data(hypersurface)
    singular = "not computed" if hypersurface.singular is None else str(len(hypersurface.singular))
    equation = shorten(text_of(hypersurface.polynomial), 200)
    return Drawing(
        draw=lambda path: draw(hypersurface, path),
        document=document,
        columns=COLUMNS,
        rows=rows,
        message=f"{chosen.title}; singular points: {singular}; {equation} = 0",
    )


SLICE = Figure(
    compute=draw_hypersurface,
    kinds=(SingularLocus,),
    takes=frozenset({"model", "prime", "engine", "force"}),
    formats=(*plotting.STATIC, ".html"),
)
