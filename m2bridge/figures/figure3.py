"""Figure 3, estimated and expected dimension against the width, from records of ``dimension``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError
from m2bridge.figures import plotting
from m2bridge.models import DeepLightning, Softmax, parse_spec
from m2bridge.questions.dimension.result import Dimension
from m2bridge.results import Certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One width: what was computed, how sure it is, what the formula says, what the paper's method measures."""

    delta: int
    estimated: int
    certainty: Certainty
    agreement: bool | None
    expected: int | None
    measured: int | None


def rows_of(results: Sequence[Dimension], measured: Mapping[int, int] | None = None) -> tuple[Row, ...]:
    """The drawn series, by width. `estimated` is the record's computed dimension and nothing else."""
    found: dict[int, Row] = {}
    for result in results:
        model = parse_spec(result.model)
        if not isinstance(model, (Softmax, DeepLightning)) or len(set(model.d)) != 1:
            raise InputError(f"Figure 3 is about deep attention of one width; {result.model} is not")
        delta = model.d[0]
        if delta in found:
            raise InputError(f"two records have width {delta}; give one for each")
        found[delta] = Row(
            delta=delta,
            estimated=result.image_dim,
            certainty=result.certainty,
            agreement=result.agreement,
            expected=None if result.formula is None else result.formula.value,
            measured=(measured or {}).get(delta),
        )
    if not found:
        raise InputError("there is nothing to draw: no width was given")
    return tuple(found[delta] for delta in sorted(found))


_MARKER = {
    Certainty.PROVED: ("o", plotting.BLUE, "estimated, proved"),
    Certainty.PROBABLE: ("s", plotting.SKY, "estimated, probable"),
    Certainty.NUMERIC: ("^", plotting.PURPLE, "estimated, numeric"),
}


def draw(rows: Sequence[Row], path: Path, *, title: str, citation: str, measured_label: str = "") -> None:
    """Write the picture; the ending of `path` chooses the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(_interactive(rows, title, citation, measured_label), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 2.7)
        axes = figure.add_axes((0.145, 0.15, 0.835, 0.75))
        expected = [(row.delta, row.expected) for row in rows if row.expected is not None]
        if expected:
            axes.plot(
                *zip(*expected, strict=True),
                color=plotting.ORANGE,
                linewidth=1.6,
                zorder=1,
                label=f"expected ({citation})",
            )
        for certainty, (marker, colour, label) in _MARKER.items():
            points = [(row.delta, row.estimated) for row in rows if row.certainty is certainty]
            if points:
                axes.plot(
                    *zip(*points, strict=True), linestyle="none", marker=marker, markersize=6.5, color=colour,
                    markeredgecolor="white", markeredgewidth=0.6, zorder=3, label=label,
                )  # fmt: skip
        wrong = [(r.delta, r.estimated) for r in rows if r.expected is not None and r.estimated != r.expected]
        if wrong:
            axes.plot(
                *zip(*wrong, strict=True), linestyle="none", marker="o", markersize=12, markerfacecolor="none",
                markeredgecolor=plotting.VERMILION, markeredgewidth=1.6, zorder=4, label="differs from expected",
            )  # fmt: skip
        _measured(axes, rows, measured_label)
        axes.set_xlabel("width $\\delta$")
        axes.set_ylabel("dimension")
        axes.set_xticks([row.delta for row in rows] if len(rows) <= 20 else [])
        if len(rows) > 20:
            axes.set_xticks(range(rows[0].delta, rows[-1].delta + 1, max(1, len(rows) // 8)))
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#E3E3E3", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(title)
        axes.legend(loc="upper left", frameon=False)
        plotting.save_figure(figure, path)


def _measured(axes: Any, rows: Sequence[Row], label: str) -> None:
    """The paper's numerical method: small crosses, large ones where it misses the computed dimension."""
    for fails, size, colour, text in (
        (False, 5, plotting.BLACK, label),
        (True, 8, plotting.VERMILION, f"{label}, misses"),
    ):
        points = [
            (r.delta, r.measured)
            for r in rows
            if r.measured is not None and (r.measured != r.estimated) == fails
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True), linestyle="none", marker="x", markersize=size, markeredgewidth=1.3,
                color=colour, zorder=5, label=text,
            )  # fmt: skip


def _interactive(rows: Sequence[Row], title: str, citation: str, label: str) -> Any:
    go = plotting.library("plotly.graph_objects")
    deltas = [row.delta for row in rows]
    traces = [
        go.Scatter(
            x=deltas, y=[row.expected for row in rows], mode="lines", name=f"expected ({citation})",
            line={"color": plotting.ORANGE, "width": 3},
        ),
        go.Scatter(
            x=deltas, y=[row.estimated for row in rows], mode="markers", name="estimated",
            text=[row.certainty.value for row in rows], hovertemplate="δ = %{x}: %{y} (%{text})<extra></extra>",
            marker={
                "size": 12,
                "color": [_MARKER[row.certainty][1] for row in rows],
                "symbol": [{"o": "circle", "s": "square", "^": "triangle-up"}[_MARKER[row.certainty][0]] for row in rows],
            },
        ),
    ]  # fmt: skip
    if any(row.measured is not None for row in rows):
        traces.append(
            go.Scatter(
                x=deltas, y=[row.measured for row in rows], mode="markers", name=label,
                marker={"symbol": "x-thin-open", "size": 12, "color": plotting.BLACK},
            )
        )  # fmt: skip
    return go.Figure(
        data=traces,
        layout={
            "title": title,
            "xaxis": {"title": "width δ", "dtick": 1},
            "yaxis": {"title": "dimension", "rangemode": "tozero"},
            "template": "plotly_white",
        },
    )


COLUMNS = ("delta", "estimated", "certainty", "agreement", "expected", "measured")


def data(rows: Sequence[Row], *, title: str, models: Sequence[str]) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn, as a JSON document and a table."""
    table = [
        [row.delta, row.estimated, row.certainty.value, row.agreement, row.expected, row.measured]
        for row in rows
    ]
    document = {
        "figure": "3",
        "title": title,
        "models": list(models),
        "rows": [dict(zip(COLUMNS, row, strict=True)) for row in table],
    }
    return document, [["" if value is None else value for value in row] for row in table]
