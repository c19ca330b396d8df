"""Draw Figure 3: computed and expected dimension against the width. Markers show the certainty."""

from __future__ import annotations

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
PRECISIONS = ("float32", "float64")
_SAMPLED_INPUTS = 250  # of the estimate in the paper


def measured_rank(model: Model, *, seed: int, precision: str = "float32") -> int:
    """Return the rank of the Jacobian as the paper estimates it. It is drawn for comparison and is never evidence.

    Inputs and weights are normally distributed, all outputs are used, and the tolerance is the default largest * size * epsilon
    (Section 4; the code of the authors computes in float32).
    """
    if model.input_shape is None:
        raise InputError(f"{model} has no inputs")
    rng = np.random.default_rng([seed, 31])
    kind: Any = np.dtype(precision)
    weights = {name: rng.standard_normal(shape).astype(kind) for name, shape in model.parameters.items()}
    arguments = {name: Lettered("", value) for name, value in weights.items()}
    samples = rng.standard_normal((_SAMPLED_INPUTS, *model.input_shape)).astype(kind)
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
    with plotting.style():
        figure = plotting.new_figure(3.5, 2.7)
        axes = figure.add_axes((0.15, 0.15, 0.83, 0.75))
        line = [(row.delta, row.expected) for row in rows if row.expected is not None]
        _plot(axes, line, f"expected ({citation})", plotting.ORANGE, linewidth=1.6)
        edge = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 3}
        exact = dict.fromkeys(("proved", "theorem", "computed"), plotting.BLUE)
        colours = {**exact, "probable": plotting.SKY, "numeric": plotting.PURPLE}
        for word, colour in colours.items():
            points = [(row.delta, row.estimated) for row in rows if row.certainty == word]
            _plot(axes, points, f"estimated, {word}", colour, MARKERS[word], **edge)
        differs = [(row.delta, row.estimated) for row in rows if row.expected not in (None, row.estimated)]
        ring = {"markersize": 12, "markerfacecolor": "none", "markeredgewidth": 1.6, "zorder": 4}
        _plot(axes, differs, "differs from expected", plotting.VERMILION, "o", **ring)
        for misses, size, colour in ((False, 5, plotting.BLACK), (True, 8, plotting.VERMILION)):
            estimates = [(row, row.measured) for row in rows if row.measured is not None]
            points = [(row.delta, rank) for row, rank in estimates if (rank != row.estimated) == misses]
            name = f"{measured}, differs" if misses else measured
            _plot(axes, points, name, colour, "x", markersize=size, markeredgewidth=1.3, zorder=5)
        axes.set(xlabel="width $\\delta$", ylabel="dimension", title=title)
        ticks = [row.delta for row in rows]
        axes.set_xticks(ticks if len(ticks) <= 20 else ticks[:: len(ticks) // 8])
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#E3E3E3", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(loc="best", frameon=False)
        plotting.save_figure(figure, path)


def _plot(
    axes: Any,
    points: Sequence[tuple[int, Any]],
    name: str,
    colour: str,
    marker: str | None = None,
    **look: Any,
) -> None:
    """Draw points as markers, or as a line without `marker`."""
    if points:
        style = "-" if marker is None else "none"
        axes.plot(
            *zip(*points, strict=True), marker=marker, color=colour, label=name, linestyle=style, **look
        )


def width_data(rows: Sequence[Row], *, title: str, models: Sequence[str]) -> tuple[dict[str, Any], list[Any]]:
    """Return the data of the figure as a JSON document and a table."""
    table = [astuple(row) for row in rows]
    named = [dict(zip(WIDTH_COLUMNS, row, strict=True)) for row in table]
    document = {"figure": "3", "title": title, "models": list(models), "rows": named}
    return document, [["" if value is None else value for value in row] for row in table]
