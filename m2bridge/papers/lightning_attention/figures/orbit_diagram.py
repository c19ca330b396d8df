"""Draw the orbits of one layer ordered by closure (Theorem 3.4), from records of singular-locus and boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError
from m2bridge.families import parse_spec
from m2bridge.figures import plotting, space
from m2bridge.papers.lightning_attention.comments import predicts_singular
from m2bridge.papers.lightning_attention.figures import figure1
from m2bridge.questions.boundary.result import Boundary
from m2bridge.questions.singular_locus.result import SingularLocus

_FILL = {"singular": plotting.ORANGE, "smooth": plotting.SKY, "undecided": "#DDDDDD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitNode:
    """One orbit of the diagram."""

    rank_a: int
    rank_v: int
    meet: int
    orbit_dim: int
    tangent: str
    verdict: str
    boundary: bool
    printed: str
    fails: bool
    covers: tuple[int, ...]

    @property
    def label(self) -> str:
        name = "0" if self.rank_a * self.rank_v == 0 else f"({self.rank_a},{self.rank_v},{self.meet})"
        return f"{name}\ndim {self.orbit_dim}, T {self.tangent}"


def nodes(locus: SingularLocus, boundary: Boundary | None) -> tuple[OrbitNode, ...]:
    """Combine the two records into one node per orbit, with the covering relations of the closure order."""
    if boundary is not None and _sizes(boundary.model) != _sizes(locus.model):
        raise InputError(f"the records are of different models: {locus.model} and {boundary.model}")
    positions = {} if boundary is None else {(o.rank_a, o.rank_v, o.meet): o.where for o in boundary.orbits}
    closures = [set(s.closure_contains) for s in locus.strata]
    applies = locus.theorem is not None and locus.theorem.applies
    orbit_nodes = []
    for index, s in enumerate(locus.strata):
        covers = {j for j in closures[index] if not any(j in closures[k] for k in closures[index])}
        printed = "singular" if predicts_singular(s) else "smooth"
        upper = "?" if s.tangent_upper is None else str(s.tangent_upper)
        tangent = upper if upper == str(s.tangent_lower) else f"{s.tangent_lower}–{upper}"
        ranks = s.ranks["A"], s.ranks["V"], s.ranks["meet"]
        orbit_nodes.append(
            OrbitNode(
                rank_a=ranks[0], rank_v=ranks[1], meet=ranks[2], orbit_dim=s.image_dim, tangent=tangent, verdict=s.verdict,
                boundary=positions.get(ranks) == "boundary", printed=printed,
                fails=applies and s.verdict not in ("undecided", printed), covers=tuple(sorted(covers)),
            )
        )  # fmt: skip
    return tuple(orbit_nodes)


def _sizes(spec: str) -> tuple[int, int, int]:
    model = parse_spec(spec)
    return model.d, model.dp, model.a  # type: ignore[attr-defined]


def draw(
    locus: SingularLocus,
    boundary: Boundary | None,
    path: Path,
    sections: Mapping[str, figure1.PlaneSection] | None = None,
) -> None:
    """Write the diagram, with one panel per section of `sections` beside it."""
    drawn = nodes(locus, boundary)
    panels = dict(sections or {})
    levels = _levels(drawn)
    positions = _positions(drawn, levels)
    columns = 1 + max(x for x, _ in positions.values()) - min(x for x, _ in positions.values())
    width = max(3.5, 0.95 * columns + 0.9)
    height = max(4.7 if panels else 3.0, 0.55 * len(levels) + 1.25)
    side = 4.9 if panels else 0.0
    total = width + side
    with plotting.style():
        figure = plotting.new_figure(total, height)
        axes = figure.add_axes((0.5 / total, 0.72 / height, (width - 0.6) / total, (height - 1.15) / height))
        _diagram(axes, drawn, levels, positions)
        middle = width / 2 / total
        figure.text(
            middle, 1 - 0.1 / height, _headline(locus), ha="center", va="top", fontsize=8, linespacing=1.4
        )
        _legend(figure, drawn, middle, height)
        if panels:
            figure1.legend(figure, list(panels.values()), ((width + side / 2) / total, 0.08 / height))
        for number, (title, section) in enumerate(panels.items()):
            row, column = divmod(number, 2)
            box = ((width + column * side / 2) / total, 0.57 - 0.45 * row, 0.96 * side / 2 / total, 0.40)
            panel = figure.add_axes(box, projection=space.projection())
            figure1.paint(panel, section, small=True)
            figure.text(box[0] + box[2] / 2, box[1] + 0.385, title, ha="center", va="bottom", fontsize=7.5)
        plotting.save_figure(figure, path)


def _headline(locus: SingularLocus) -> str:
    check, sizes = locus.theorem, _sizes(locus.model)
    if check is None or not check.applies:
        verdict = "outside the hypotheses of Theorem 3.4"
    elif check.agrees:
        verdict = "Theorem 3.4 agrees with every orbit"
    else:
        verdict = (
            "Theorem 3.4 as printed fails where marked" if check.agrees is False else "some orbits undecided"
        )
    return f"$\\mathcal{{M}}_{{{sizes[0]},{sizes[1]},{sizes[2]}}}$, dimension {locus.image_dim}\n{verdict}"


def _levels(drawn: Sequence[OrbitNode]) -> dict[int, list[int]]:
    """Return the orbits of each dimension, in ascending order."""
    levels: dict[int, list[int]] = {}
    for index in sorted(
        range(len(drawn)), key=lambda i: (drawn[i].orbit_dim, -drawn[i].meet, drawn[i].rank_a)
    ):
        levels.setdefault(drawn[index].orbit_dim, []).append(index)
    return levels


def _positions(drawn: Sequence[OrbitNode], levels: Mapping[int, list[int]]) -> dict[int, tuple[float, float]]:
    """Return positions: one row per dimension, columns by rk A - rk V, at least one unit apart within a row."""
    positions: dict[int, tuple[float, float]] = {}
    chain = all(len(members) == 1 for members in levels.values())
    unit = 0.0 if chain else 1.1
    for row, members in enumerate(levels.values()):
        ordered = sorted(members, key=lambda i: (drawn[i].rank_a - drawn[i].rank_v, drawn[i].meet))
        preferred = [unit * (drawn[i].rank_a - drawn[i].rank_v) for i in ordered]
        spread = preferred.copy()
        for k in range(1, len(spread)):
            spread[k] = max(spread[k], spread[k - 1] + 1.1)
        shift = sum(preferred) / len(preferred) - sum(spread) / len(spread)
        for i, x in zip(ordered, spread, strict=True):
            positions[i] = (x + shift, float(row))
    return positions


def _diagram(
    axes: Any,
    drawn: Sequence[OrbitNode],
    levels: Mapping[int, list[int]],
    positions: Mapping[int, tuple[float, float]],
) -> None:
    for i, node in enumerate(drawn):
        for j in node.covers:
            (x0, y0), (x1, y1) = positions[j], positions[i]
            axes.plot([x0, x1], [y0, y1], color=plotting.GREY, linewidth=0.8, zorder=1)
    for i, node in enumerate(drawn):
        x, y = positions[i]
        axes.text(
            x, y, node.label, ha="center", va="center", fontsize=6.5, zorder=3, linespacing=1.25,
            bbox={
                "boxstyle": "round,pad=0.32", "facecolor": _FILL[node.verdict], "linewidth": 2.2 if node.boundary else 0.7,
                "edgecolor": "black", "linestyle": "-",
            },
        )  # fmt: skip
        if node.fails:
            boxes = plotting.library("matplotlib.offsetbox")
            area = boxes.DrawingArea(14, 14, 0, 0)
            cross = {"marker": "X", "markersize": 9, "color": plotting.VERMILION, "markeredgecolor": "white"}
            area.add_artist(plotting.library("matplotlib.lines").Line2D([7], [7], **cross))
            beside = {
                "xybox": (28, 11),
                "boxcoords": "offset points",
                "frameon": False,
                "pad": 0,
                "zorder": 5,
            }
            axes.add_artist(boxes.AnnotationBbox(area, (x, y), **beside))
    xs = [x for x, _ in positions.values()]
    axes.set_xlim(min(xs) - 0.66, max(xs) + 0.66)
    axes.set_ylim(-0.5, len(levels) - 0.4)
    axes.set_yticks(range(len(levels)), [str(dim) for dim in levels])
    axes.set_xticks([])
    for name, spine in axes.spines.items():
        spine.set_visible(name == "left")
    axes.set_ylabel("dimension of the orbit")


def _legend(figure: Any, drawn: Sequence[OrbitNode], centre: float, height: float) -> None:
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    present = {node.verdict for node in drawn}
    handles = [
        patch(facecolor=_FILL[kind], edgecolor="k", linewidth=0.7, label=kind)
        for kind in _FILL
        if kind in present
    ]
    if any(node.boundary for node in drawn):
        handles.append(patch(facecolor="white", edgecolor="k", linewidth=2.2, label="boundary"))
    if any(node.fails for node in drawn):
        handles.append(
            lines([], [], marker="X", color=plotting.VERMILION, linestyle="none", label="printed theorem fails", markersize=8)
        )  # fmt: skip
    plotting.legend_below(
        figure, handles, (centre, 0.26 / height), ncols=2 if len(handles) == 4 else 3, handlelength=None
    )
    figure.text(
        centre, 0.08 / height, "(rk A, rk V, dim(col A ∩ row V)); dim of the orbit, T of its tangent spaces",
        ha="center", va="bottom", fontsize=6,
    )  # fmt: skip


COLUMNS = tuple(field.name for field in fields(OrbitNode))


def data(locus: SingularLocus, boundary: Boundary | None) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the data of the figure as a JSON document and a table."""
    rows = [
        [*(getattr(node, name) for name in COLUMNS[:-1]), " ".join(map(str, node.covers))]
        for node in nodes(locus, boundary)
    ]
    check = locus.theorem
    document = {
        "figure": "theorem-3.4",
        "model": locus.model,
        "image_dim": locus.image_dim,
        "theorem": None if check is None else {"applies": check.applies, "agrees": check.agrees},
        "orbits": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
    }
    return document, rows
