"""A sweep: one quantity of the records of a store against a name of its grid or an argument of its models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError
from m2bridge.figures import plotting

COLUMNS = ("series", "x", "y", "certainty", "model")
_COLOURS = (plotting.BLUE, plotting.VERMILION, plotting.GREEN, plotting.PURPLE, plotting.ORANGE, plotting.SKY)
_MARKERS = {"proved": ("o", "circle"), "probable": ("s", "square"), "numeric": ("^", "triangle-up")}
_INDEXED = re.compile(r"([A-Za-z_]\w*)\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One record: where it is drawn, how sure it is, and of which model it speaks."""

    series: str
    x: float
    y: float
    certainty: str
    model: str


def points_of(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str | None = None) -> tuple[Point, ...]:
    """The records that have both numbers; ``widths[1]`` is an entry of a list, counted from 0.

    Raises
    ------
    InputError
        No record has both, or two records of one series have the same x and different y: then `by` should tell them apart.
    """
    found: dict[tuple[str, float], Point] = {}
    for row in rows:
        across, up = _value(row, x), _value(row, y)
        if not (_is_number(across) and _is_number(up)):
            continue
        series = "" if by is None else f"{by} = {_value(row, by)}"
        point = Point(
            series=series,
            x=across,
            y=up,
            certainty=str(row.get("certainty")),
            model=str(row.get("name") or row["model"]),
        )
        before = found.setdefault((series, across), point)
        if before.y != up:
            raise InputError(
                f"{x} = {across} has two values of {y}, for {before.model[:80]} and {point.model[:80]}: "
                "choose records with --where, or tell series apart with --by"
            )
    if not found:
        names = sorted({name for row in rows for name, value in row.items() if _is_number(value)})
        raise InputError(f"no record has numbers {x} and {y}; there are: {', '.join(names) or 'no records'}")
    return tuple(sorted(found.values(), key=lambda point: (point.series, point.x)))


def _value(row: Mapping[str, Any], name: str) -> Any:
    indexed = _INDEXED.fullmatch(name)
    if indexed is None:
        return row.get(name)
    values, place = row.get(indexed[1]), int(indexed[2])
    return values[place] if isinstance(values, list) and place < len(values) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def draw(points: Sequence[Point], path: Path, *, x: str, y: str) -> None:
    """Write the picture; the ending of `path` chooses the format. Markers say how sure a value is."""
    if path.suffix.lower() == ".html":
        plotting.save_html(_interactive(points, x, y), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 2.7)
        axes = figure.add_axes((0.15, 0.15, 0.83, 0.78))
        for number, series in enumerate(dict.fromkeys(point.series for point in points)):
            colour = _COLOURS[number % len(_COLOURS)]
            own = [point for point in points if point.series == series]
            axes.plot([p.x for p in own], [p.y for p in own], color=colour, linewidth=1, alpha=0.5)
            for certainty in dict.fromkeys(point.certainty for point in own):
                there = [point for point in own if point.certainty == certainty]
                label = ", ".join(word for word in (series, certainty) if word)
                marker = _MARKERS.get(certainty, ("x", "x"))[0]
                axes.plot(
                    [p.x for p in there], [p.y for p in there], linestyle="none", marker=marker, color=colour, label=label,
                )  # fmt: skip
        axes.set_xlabel(x.replace("_", " "))
        axes.set_ylabel(y.replace("_", " "))
        ticks = sorted({point.x for point in points})
        if len(ticks) <= 20:
            axes.set_xticks(ticks)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#E3E3E3", linewidth=0.6)
        axes.legend(loc="best", frameon=False)
        plotting.save_figure(figure, path)


def _interactive(points: Sequence[Point], x: str, y: str) -> Any:
    go = plotting.library("plotly.graph_objects")
    traces = []
    for number, series in enumerate(dict.fromkeys(point.series for point in points)):
        own = [point for point in points if point.series == series]
        symbols = [_MARKERS.get(point.certainty, ("x", "x"))[1] for point in own]
        traces.append(
            go.Scatter(
                x=[p.x for p in own], y=[p.y for p in own], mode="lines+markers", name=series or y,
                text=[f"{p.model[:80]} ({p.certainty})" for p in own], hovertemplate="%{x}: %{y}<br>%{text}<extra></extra>",
                marker={"size": 11, "symbol": symbols, "color": _COLOURS[number % len(_COLOURS)]},
            )
        )  # fmt: skip
    layout = {"xaxis": {"title": x}, "yaxis": {"title": y, "rangemode": "tozero"}, "template": "plotly_white"}
    return go.Figure(data=traces, layout=layout)


def data(points: Sequence[Point], *, x: str, y: str) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn, as a JSON document and a table."""
    table = [[point.series, point.x, point.y, point.certainty, point.model] for point in points]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    return {"figure": "sweep", "x": x, "y": y, "rows": rows}, table
