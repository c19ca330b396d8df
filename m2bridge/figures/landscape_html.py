"""The interactive loss landscape: weights on the left, the surface of functions on the right, in one file."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.figures import plotting
from m2bridge.figures.landscape import KINDS, Scene, basin_colour, losses_on

_SYMBOLS = {"o": "circle", "^": "triangle-up", "s": "square", "X": "x"}
_SOLIDS = {"o": "circle", "^": "diamond", "s": "square", "X": "x"}


def interactive(part: Scene, title: str) -> Any:
    """A plotly figure with weights and losses under the pointer."""
    go = plotting.library("plotly.graph_objects")
    subplots = plotting.library("plotly.subplots").make_subplots
    figure = subplots(
        rows=1, cols=2, specs=[[{"type": "xy"}, {"type": "scene"}]], subplot_titles=("weights", "functions")
    )
    grid, values, loss = losses_on(part)
    distance = np.sqrt(loss).round(5)
    ticks = grid[:, 0, 0].round(4).tolist()
    figure.add_trace(
        go.Contour(
            x=ticks, y=ticks, z=distance.T.tolist(), colorscale="Blues_r", showscale=False, ncontours=30,
            line={"width": 0.4, "color": "white"},
            hovertemplate="weights (%{x:.3f}, %{y:.3f}), distance %{z:.4f}<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip
    x, y, z = np.moveaxis(values @ part.frame.T, -1, 0).round(5).tolist()
    figure.add_trace(
        go.Surface(
            x=x, y=y, z=z, surfacecolor=distance.tolist(), colorscale="Blues_r", showscale=False, opacity=0.85,
            lighting={"ambient": 0.75, "diffuse": 0.5}, hoverinfo="skip",
        ),
        row=1, col=2,
    )  # fmt: skip
    for line, end in zip(part.flows, part.ends, strict=True):
        inside = line[np.abs(line).max(axis=1) <= part.window][::4]
        if len(inside) < 2:
            continue
        style = {"color": basin_colour(part, end), "width": 1}
        figure.add_trace(
            go.Scatter(
                x=inside[:, 0].tolist(),
                y=inside[:, 1].tolist(),
                mode="lines",
                line=style,
                showlegend=False,
                hoverinfo="skip",
            ),
            row=1,
            col=1,
        )
        curve = np.asarray(part.plane.coordinates({"x": inside})) @ part.frame.T
        figure.add_trace(
            go.Scatter3d(
                **_xyz(curve), mode="lines", line={**style, "width": 2}, showlegend=False, hoverinfo="skip"
            ),
            row=1,
            col=2,
        )
    _points(figure, go, part)
    found = part.answer.regular
    figure.update_layout(
        title={
            "text": f"{title}<br><sub>{found} critical functions over the complex numbers, {part.answer.real} real</sub>",
            "x": 0.5,
        },
        template="plotly_white",
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.02},
        margin={"l": 40, "r": 0, "t": 90, "b": 30},
    )
    figure.update_yaxes(
        scaleanchor="x", scaleratio=1, title=part.plane.variables[1], range=[-part.window, part.window]
    )
    figure.update_xaxes(title=part.plane.variables[0], range=[-part.window, part.window])
    return figure


def _xyz(points: np.ndarray) -> dict[str, Any]:
    return dict(zip("xyz", np.asarray(points).reshape(-1, 3).T.round(6).tolist(), strict=True))


def _points(figure: Any, go: Any, part: Scene) -> None:
    for number, (curve, solid) in enumerate(part.singular):
        style = {"color": plotting.VERMILION, "width": 6, "dash": "solid" if solid else "dot"}
        name = "singular functions" if solid else "only in the closure"
        figure.add_trace(
            go.Scatter3d(**_xyz(curve), mode="lines", line=style, name=name, legendgroup=str(number)),
            row=1,
            col=2,
        )
    if len(part.marks):
        marker = {
            "color": plotting.YELLOW,
            "size": 5,
            "symbol": "diamond",
            "line": {"color": "black", "width": 1},
        }
        figure.add_trace(
            go.Scatter3d(**_xyz(part.marks), mode="markers", marker=marker, name="boundary"), row=1, col=2
        )
    for kind in dict.fromkeys(part.kinds):
        shape, colour, label = KINDS[kind]
        chosen = [i for i, k in enumerate(part.kinds) if k == kind]
        weights = np.concatenate([part.weights[i] for i in chosen])
        look = {"color": colour, "line": {"color": "black", "width": 1}}
        figure.add_trace(
            go.Scatter(
                x=weights[:, 0].tolist(),
                y=weights[:, 1].tolist(),
                mode="markers",
                marker={**look, "size": 12, "symbol": _SYMBOLS[shape]},
                name=label,
                legendgroup=kind,
            ),
            row=1,
            col=1,
        )
        text = [f"{label}, loss {part.answer.real_points[i].loss[0]}" for i in chosen]
        figure.add_trace(
            go.Scatter3d(
                **_xyz(part.functions[chosen] @ part.frame.T),
                mode="markers",
                marker={**look, "size": 6, "symbol": _SOLIDS[shape]},
                text=text,
                hoverinfo="text",
                showlegend=False,
                legendgroup=kind,
            ),
            row=1,
            col=2,
        )
    goal = {"color": plotting.YELLOW, "size": 7, "symbol": "cross", "line": {"color": "black", "width": 1}}
    figure.add_trace(
        go.Scatter3d(**_xyz(part.frame @ part.target), mode="markers", marker=goal, name="target"),
        row=1,
        col=2,
    )
