"""Draw Figure 3 (computed and expected dimension against the width) and sweeps of a store. Markers show the certainty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Model, parse_spec
from m2bridge.figures import plotting
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension.result import Dimension

MARKERS = {"proved": "o", "theorem": "D", "computed": "h", "probable": "s", "numeric": "^"}
"""Markers of the certainties."""
_OTHER = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Data of a line, or of markers; `look` holds further arguments of matplotlib's ``plot``."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    marker: str | None = None
    look: Mapping[str, Any] | None = None


def draw(series: Sequence[Series], path: Path, *, x: str, y: str, title: str = "") -> None:
    """Write a chart; the suffix of `path` selects the format."""
    drawn = [one for one in series if one.points]
    with plotting.style():
        figure = plotting.new_figure(3.5, 2.7)
        axes = figure.add_axes((0.15, 0.15, 0.83, 0.75))
        for one in drawn:
            look = {"linestyle": "-" if one.marker is None else "none", **(one.look or {})}
            across, up = zip(*one.points, strict=True)
            axes.plot(across, up, marker=one.marker, color=one.colour, label=one.name, **look)
        axes.set(xlabel=x, ylabel=y, title=title)
        ticks = sorted({point[0] for one in drawn for point in one.points})
        axes.set_xticks(ticks if len(ticks) <= 20 else ticks[:: max(1, len(ticks) // 8)])
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#E3E3E3", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(loc="best", frameon=False)
        plotting.save_figure(figure, path)


# -- Figure 3 ------------------------------------------------------------------------------------------------------------------

PRECISIONS = ("float32", "float64")


def measured_rank(model: Model, *, seed: int, precision: str = "float32", inputs: int = 250) -> int:
    """Return the rank of the Jacobian as the paper estimates it. It is drawn for comparison and is never evidence.

    Inputs and weights are normally distributed, all outputs are used, and the tolerance is the default largest * size * epsilon
    (Section 4; the code of the authors computes in float32).
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision {precision!r}: use {' or '.join(PRECISIONS)}")
    if model.input_shape is None:
        raise InputError(f"{model} has no inputs")
    rng = np.random.default_rng([seed, 31])
    kind: Any = np.dtype(precision)
    weights = {name: rng.standard_normal(shape).astype(kind) for name, shape in model.parameters.items()}
    arguments = {name: Lettered("", value) for name, value in weights.items()}
    samples = rng.standard_normal((inputs, *model.input_shape)).astype(kind)
    arguments[next(iter(model.program.inputs))] = Lettered("N", samples)
    every = np.arange(model.parameter_count)
    return int(np.linalg.matrix_rank(jacobian_block(model.program, FloatArithmetic(kind), arguments, every)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Values for one width: computed dimension with its certainty, value of the formula, estimate by the method of the paper."""

    delta: int
    estimated: int
    certainty: str
    agreement: bool | None
    expected: int | None
    measured: int | None


WIDTH_COLUMNS = tuple(field.name for field in fields(Row))


def rows_of(results: Sequence[Dimension], measured: Mapping[int, int] | None = None) -> tuple[Row, ...]:
    """Return one row per width, sorted. `estimated` is the computed dimension of the record."""
    by_width: dict[int, Row] = {}
    for result in results:
        model = parse_spec(result.model)
        network = model.knowledge.attention
        if network is None or len(set(network.widths)) != 1:
            raise InputError(
                f"Figure 3 requires deep attention with one width in all layers, not {result.model}"
            )
        delta = network.widths[0]
        if delta in by_width:
            raise InputError(f"two records have width {delta}; give one record per width")
        by_width[delta] = Row(
            delta=delta, estimated=result.image_dim, certainty=result.certainty.value, agreement=result.agreement,
            expected=None if result.formula is None else result.formula.value, measured=(measured or {}).get(delta),
        )  # fmt: skip
    if not by_width:
        raise InputError("nothing to draw: no width was given")
    return tuple(by_width[delta] for delta in sorted(by_width))


def draw_widths(rows: Sequence[Row], path: Path, *, title: str, citation: str, measured: str = "") -> None:
    """Draw Figure 3: the formula as a line, computed dimensions as markers, rings where they differ.

    Crosses are the estimates by the method of the paper; they are large where they differ from the computed dimension.
    """
    line = [(row.delta, row.expected) for row in rows if row.expected is not None]
    series = [
        Series(name=f"expected ({citation})", points=line, colour=plotting.ORANGE, look={"linewidth": 1.6})
    ]
    edge = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 3}
    exact = dict.fromkeys(("proved", "theorem", "computed"), plotting.BLUE)
    colours = {**exact, "probable": plotting.SKY, "numeric": plotting.PURPLE}
    for word, colour in colours.items():
        points = [(row.delta, row.estimated) for row in rows if row.certainty == word]
        name = f"estimated, {word}"
        series.append(Series(name=name, points=points, colour=colour, marker=MARKERS[word], look=edge))
    differs = [(row.delta, row.estimated) for row in rows if row.expected not in (None, row.estimated)]
    ring = {"markersize": 12, "markerfacecolor": "none", "markeredgewidth": 1.6, "zorder": 4}
    series.append(
        Series(name="differs from expected", points=differs, colour=plotting.VERMILION, marker="o", look=ring)
    )
    for misses, size, colour in ((False, 5, plotting.BLACK), (True, 8, plotting.VERMILION)):
        points = [
            (row.delta, row.measured)
            for row in rows
            if row.measured is not None and (row.measured != row.estimated) == misses
        ]
        cross = {"markersize": size, "markeredgewidth": 1.3, "zorder": 5}
        name = f"{measured}, differs" if misses else measured
        series.append(Series(name=name, points=points, colour=colour, marker=_OTHER, look=cross))
    draw(series, path, x="width $\\delta$", y="dimension", title=title)


def width_data(rows: Sequence[Row], *, title: str, models: Sequence[str]) -> tuple[dict[str, Any], list[Any]]:
    """Return the data of the figure as a JSON document and a table."""
    table = [astuple(row) for row in rows]
    named = [dict(zip(WIDTH_COLUMNS, row, strict=True)) for row in table]
    document = {"figure": "3", "title": title, "models": list(models), "rows": named}
    return document, [["" if value is None else value for value in row] for row in table]


# -- a sweep -------------------------------------------------------------------------------------------------------------------

_COLOURS = (plotting.BLUE, plotting.VERMILION, plotting.GREEN, plotting.PURPLE, plotting.ORANGE, plotting.SKY)
_INDEXED = re.compile(r"([A-Za-z_]\w*)\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One record: its coordinates in the figure, its certainty and its model."""

    series: str
    x: float
    y: float
    certainty: str
    model: str


SWEEP_COLUMNS = tuple(field.name for field in fields(SweepPoint))


def points_of(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str | None = None
) -> tuple[SweepPoint, ...]:
    """Return the records in which `x` and `y` are numbers; ``widths[1]`` is the second entry of a list.

    Raises
    ------
    InputError
        No record has both numbers, or two records of one series have the same x and different y.
    """
    points: dict[tuple[str, float], SweepPoint] = {}
    for row in rows:
        across, up = _value(row, x), _value(row, y)
        if not (_is_number(across) and _is_number(up)):
            continue
        series = "" if by is None else f"{by} = {_value(row, by)}"
        model = str(row.get("name") or row["model"])
        point = SweepPoint(series=series, x=across, y=up, certainty=str(row.get("certainty")), model=model)
        before = points.setdefault((series, across), point)
        if before.y != up:
            raise InputError(
                f"{x} = {across} has two values of {y}, for {before.model[:80]} and {point.model[:80]}: "
                "select records with --where, or separate series with --by"
            )
    if not points:
        names = sorted({name for row in rows for name, value in row.items() if _is_number(value)})
        raise InputError(f"no record has numbers {x} and {y}; available: {', '.join(names) or 'no records'}")
    return tuple(sorted(points.values(), key=lambda point: (point.series, point.x)))


def _value(row: Mapping[str, Any], name: str) -> Any:
    indexed = _INDEXED.fullmatch(name)
    if indexed is None:
        return row.get(name)
    values = row.get(indexed[1])
    index = int(indexed[2])
    return values[index] if isinstance(values, list) and index < len(values) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def draw_sweep(points: Sequence[SweepPoint], path: Path, *, x: str, y: str) -> None:
    """Draw a thin line per series and a marker per record."""
    drawn = []
    for number, name in enumerate(dict.fromkeys(point.series for point in points)):
        colour = _COLOURS[number % len(_COLOURS)]
        members = [point for point in points if point.series == name]
        faint = {"linewidth": 1, "alpha": 0.5}
        drawn.append(Series(name="_line", points=[(p.x, p.y) for p in members], colour=colour, look=faint))
        for word in dict.fromkeys(point.certainty for point in members):
            of_certainty = [point for point in members if point.certainty == word]
            label = ", ".join(filter(None, (name, word)))
            marker = MARKERS.get(word, _OTHER)
            drawn.append(
                Series(name=label, points=[(p.x, p.y) for p in of_certainty], colour=colour, marker=marker)
            )
    draw(drawn, path, x=x.replace("_", " "), y=y.replace("_", " "))


def sweep_data(points: Sequence[SweepPoint], *, x: str, y: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the data of the figure as a JSON document and a table."""
    table = [list(astuple(point)) for point in points]
    rows = [dict(zip(SWEEP_COLUMNS, row, strict=True)) for row in table]
    return {"figure": "sweep", "x": x, "y": y, "rows": rows}, table
