"""The figures of the paper, drawn from computed data: Figure 1, the orbits of Theorem 3.4, and Figure 3."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from m2bridge.errors import InputError
from m2bridge.families import DeepLightning, Softmax, parse_spec
from m2bridge.figures.declaration import Drawing, Figure, FigureRequest
from m2bridge.figures.plotting import STATIC
from m2bridge.figures.slices import random_slice as slice_by_seed
from m2bridge.figures.slices import text_of
from m2bridge.papers.lightning_attention.figures import figure1, orbit_diagram, widths
from m2bridge.papers.lightning_attention.figures.named_slices import DEFAULT, MODEL, SLICES, read_slice
from m2bridge.questions.boundary import Boundary, boundary
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.singular_locus import SingularLocus, singular_locus

_PANELS = {
    "pinch point": "umbrella",
    "two pinch points": "conoid",
    "two sheets crossing": "crossing",
    "closure-only handle": "handle",
}


def draw_slice(
    request: FigureRequest,
    slice_name: Annotated[
        str | None,
        typer.Option(
            "--slice", help=f"Slice: {', '.join(SLICES)}, or a JSON file with origin and directions."
        ),
    ] = None,
    random_slice: Annotated[
        bool, typer.Option("--random-slice", help="Use a random slice, chosen by --seed.")
    ] = False,
    grid: Annotated[
        int, typer.Option("--grid", min=4, max=200, help="Number of grid lines per direction.")
    ] = 24,
) -> Drawing:
    """Draw Figure 1, a slice of M(2,1,2): image, singular curve, points in the closure only, boundary points.

    The surface is drawn from the parametrization and compared with the equation of Macaulay2; exit code 3 if they disagree.

    Example: m2bridge figure 1 -o figure-1.pdf
    """
    if slice_name is not None and random_slice:
        raise InputError("give either --slice or --random-slice, not both")
    chosen = slice_by_seed(request.seed, MODEL) if random_slice else read_slice(slice_name or DEFAULT)
    locus = request.result(SingularLocus) if request.recorded else request.answer(singular_locus, MODEL)
    if parse_spec(locus.model) != MODEL:
        raise InputError(f"Figure 1 is a slice of M(2,1,2); the record is of {locus.model}")
    section = figure1.section(chosen, locus.equations, grid=grid)
    document, rows = figure1.data(section)
    points = f"{section.check.drawn} drawn points satisfy the equation {text_of(section.polynomial)} = 0"
    return Drawing(
        draw=lambda path: figure1.draw(section, path),
        document=document,
        columns=figure1.COLUMNS,
        rows=rows,
        message=f"{points}, and {section.check.roots} real roots of it have real weights",
    )


def draw_orbits(
    request: FigureRequest,
    panels: Annotated[
        bool, typer.Option("--panels/--no-panels", help="Draw slices beside the diagram of M(2,1,2).")
    ] = True,
) -> Drawing:
    """Draw the orbits of one layer ordered by closure, with dimension, tangent dimension, and where Theorem 3.4 fails.

    Example: m2bridge figure theorem-3.4 --d 3 --dp 2 --a 2 -o orbits.pdf
    """
    edge: Boundary | None
    if request.recorded:
        locus = request.result(SingularLocus)
        edge = next((result for result in request.recorded if isinstance(result, Boundary)), None)
    else:
        edge = request.answer(boundary, request.model)
        locus = request.answer(singular_locus, request.model)
    sections = {
        title: figure1.section(SLICES[name], locus.equations, grid=12)
        for title, name in _PANELS.items()
        if panels and parse_spec(locus.model) == MODEL
    }
    document, rows = orbit_diagram.data(locus, edge)
    return Drawing(
        draw=lambda path: orbit_diagram.draw(locus, edge, path, sections),
        document=document,
        columns=orbit_diagram.COLUMNS,
        rows=rows,
    )


def draw_widths(
    request: FigureRequest,
    family: Annotated[str, typer.Option("--model", help="Family: softmax or lightning.")] = "softmax",
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers.")] = 2,
    t: Annotated[int, typer.Option("--t", min=1, help="Number of tokens.")] = 3,
    a: Annotated[int, typer.Option("--a", min=1, help="Rows of Q and K in each layer.")] = 2,
    widths_text: Annotated[str, typer.Option("--widths", help="Range of widths FIRST..LAST.")] = "3..10",
    paper_method: Annotated[
        str | None,
        typer.Option(
            "--paper-method",
            help="Add the estimate of the paper from 250 inputs, in float32 (as in its code) or float64.",
        ),
    ] = None,
) -> Drawing:
    """Draw Figure 3: computed and expected dimension of deep attention as functions of the width.

    Example: m2bridge figure 3 -o figure-3.pdf --paper-method float32
    """
    if paper_method is not None and paper_method not in widths.PRECISIONS:
        raise InputError(f"--paper-method {paper_method!r}: use {' or '.join(widths.PRECISIONS)}")
    results: list[Any] = list(request.recorded)
    if not results:
        if family not in ("softmax", "lightning"):
            raise InputError(f"--model {family!r}: use softmax or lightning")
        kind = Softmax if family == "softmax" else DeepLightning
        models = [kind(d=(n,) * (layers + 1), a=(a,) * layers, t=t) for n in _range(widths_text)]
        results = [request.answer(dimension, model, engine=False) for model in models]
    measured = {}
    for result in results if paper_method is not None else ():
        network: Any = parse_spec(result.model)
        rank = widths.measured_rank(network, seed=request.seed, precision=str(paper_method))
        measured[network.widths[0]] = rank
    rows = widths.rows_of(results, measured)
    title, citation = _title(results[0].model)
    label = f"250 inputs, {paper_method}" if paper_method else ""
    document, table = widths.width_data(rows, title=title, models=[result.model for result in results])
    proved = sum(row.certainty in ("proved", "theorem", "computed") for row in rows)
    equal = sum(row.estimated == row.expected for row in rows)
    return Drawing(
        draw=lambda path: widths.draw_widths(rows, path, title=title, citation=citation, measured=label),
        document=document,
        columns=widths.WIDTH_COLUMNS,
        rows=table,
        message=f"{len(rows)} widths: {proved} proved, {equal} equal to the formula",
    )


def _range(text: str) -> list[int]:
    first, dots, last = text.partition("..")
    try:
        low = int(first)
        high = int(last) if dots else low
    except ValueError:
        raise InputError(f"--widths {text!r}: write a range such as 3..10") from None
    if not 1 <= low <= high:
        raise InputError(f"--widths {text!r}: widths are positive and in ascending order, such as 3..10")
    return list(range(low, high + 1))


def _title(spec: str) -> tuple[str, str]:
    """Return the title of Figure 3 and the citation of its formula."""
    model: Any = parse_spec(spec)
    name = "lightning" if model.polynomial else "softmax"
    title = f"{name} attention, l={model.layers}, t={model.t}, a={model.ranks[0]}"
    if model.knowledge.formula is None or not model.knowledge.formula.applies:
        return title, "no formula"
    number = re.search(r"Equation (\d+)|Theorem [\d.]+", model.knowledge.formula.citation)
    return title, "formula" if number is None else number[0].replace("Equation", "Eq.")


FIGURE_1 = Figure(
    compute=draw_slice,
    kinds=(SingularLocus,),
    takes=frozenset({"prime", "engine"}),
    formats=(*STATIC, ".html"),
)
THEOREM_34 = Figure(
    compute=draw_orbits,
    kinds=(SingularLocus, Boundary),
    takes=frozenset({"model", "prime", "engine", "force"}),
)
FIGURE_3 = Figure(compute=draw_widths, kinds=(Dimension,), takes=frozenset({"save"}))
