"""CLI: ``m2bridge figure 1``, ``theorem-3.4``, ``3``, ``slice`` and ``landscape``.

A figure is written to a file, with its data in JSON and CSV files beside it, or without data to standard output (``-o -``).
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from m2bridge import records
from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.errors import DisagreementError, InputError
from m2bridge.families import DeepLightning, Softmax, parse_spec
from m2bridge.figures import charts, figure1, landscape, landscape_pictures, plotting, section, slices
from m2bridge.papers.lightning_attention import orbit_diagram
from m2bridge.questions.boundary import Boundary, boundary
from m2bridge.questions.boundary import check_model as check_boundary
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.critical_points.losses import read_target
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.singular_locus import SingularLocus, singular_locus
from m2bridge.results import Result
from m2bridge.views import cut

_FILE = (
    "Output file; its suffix selects the format: {}. The data are written beside it as JSON and CSV. "
    "With - the figure alone is written to standard output, see --format."
)
StaticOption = Annotated[Path, typer.Option("-o", "--output", help=_FILE.format("png, pdf or svg"))]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help=_FILE.format("png, pdf, svg or html"))]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Format on standard output (-o -); default: png.")
]
RecordOption = Annotated[
    list[Path] | None,
    typer.Option("--record", help="Draw a saved record instead of computing; may be repeated."),
]
_ALL = (*plotting.STATIC, ".html")
_PANELS = {
    "pinch point": "umbrella",
    "two pinch points": "conoid",
    "two sheets crossing": "crossing",
    "closure-only handle": "handle",
}
_R = TypeVar("_R", bound=Result)


def register(app: typer.Typer) -> None:
    figures = common.group_of(
        app,
        "figure",
        "Draw the figures of the paper from computed data (1, theorem-3.4, 3), slices and loss landscapes.",
    )
    figures.command("1")(figure1_command)
    figures.command("theorem-3.4")(orbits_command)
    figures.command("3")(widths_command)
    figures.command("slice")(slice_command)
    figures.command("landscape")(landscape_command)


class Destination:
    """Output file of a figure, or standard output; checked before any computation.

    `picture` is the value of ``--format``, which is valid for standard output only; `allowed` are the possible file suffixes.
    """

    def __init__(self, output: Path, picture: str | None, allowed: Sequence[str] = _ALL) -> None:
        self.path = None if output == Path("-") else output
        if self.path is not None:
            if picture is not None:
                raise InputError(f"--format is only for -o -; the suffix of {output} selects the format")
            plotting.check_output(self.path, allowed)
            return
        self.ending = f".{(picture or 'png').lower()}"
        if self.ending not in allowed:
            formats = ", ".join(ending.lstrip(".") for ending in allowed)
            raise InputError(f"--format {picture}: use one of {formats}")
        if sys.stdout.isatty():
            raise InputError(
                "-o - writes a picture to standard output, which is a terminal; redirect it to a file with >"
            )
        plotting.check_output(Path(tempfile.gettempdir()) / f"picture{self.ending}", allowed)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Yield the path to draw into. A figure for standard output is drawn into a temporary file and then copied."""
        if self.path is not None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="m2bridge-") as directory:
            path = Path(directory) / f"picture{self.ending}"
            yield path
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()

    def add_data(
        self, document: Mapping[str, Any], rows: Sequence[Sequence[Any]], columns: Sequence[str]
    ) -> None:
        """Write the data beside the figure and report the file names; do nothing for standard output."""
        if self.path is not None:
            data_files = plotting.write_data(self.path, document, columns, rows)
            self.report(f"{self.path} (data: {', '.join(path.name for path in data_files)})")

    def report(self, message: str) -> None:
        """Print a message on standard output, or on standard error if the figure goes to standard output."""
        typer.echo(message, err=self.path is None)


def figure1_command(
    output: OutputOption,
    slice_name: Annotated[
        str | None,
        typer.Option(
            "--slice", help=f"Slice: {', '.join(slices.SLICES)}, or a JSON file with origin and directions."
        ),
    ] = None,
    random_slice: Annotated[
        bool, typer.Option("--random-slice", help="Use a random slice, chosen by --seed.")
    ] = False,
    grid: Annotated[
        int, typer.Option("--grid", min=4, max=200, help="Number of grid lines per direction.")
    ] = 24,
    record: RecordOption = None,
    picture: FormatOption = None,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
) -> None:
    """Draw Figure 1, a slice of M(2,1,2): image, singular curve, points in the closure only, boundary points.

    The surface is drawn from the parametrization and compared with the equation of Macaulay2; exit code 3 if they disagree.

    Example: m2bridge figure 1 -o figure-1.pdf
    """
    target = Destination(output, picture)
    if slice_name is not None and random_slice:
        raise InputError("give either --slice or --random-slice, not both")
    chosen = slices.random_slice(seed) if random_slice else slices.read_slice(slice_name or slices.DEFAULT)
    if record:
        locus = _one(_load(record, SingularLocus), SingularLocus)
    else:
        limits = common.parse_limits(timeout, memory)
        with open_engine(engine) as opened:
            locus = singular_locus(slices.MODEL, engine=opened, prime=prime, seed=seed, limits=limits)
    if parse_spec(locus.model) != slices.MODEL:
        raise InputError(f"Figure 1 is a slice of M(2,1,2); the record is of {locus.model}")
    _check_agreement(locus)
    computed_slice = figure1.section(chosen, locus.equations, grid=grid)
    with target.file() as file:
        figure1.draw(computed_slice, file)
    target.add_data(*figure1.data(computed_slice), figure1.COLUMNS)
    check = computed_slice.check
    equation = slices.text_of(computed_slice.polynomial)
    target.report(
        f"{check.drawn} drawn points satisfy the equation {equation} = 0, and {check.roots} real roots of it have real weights"
    )


def orbits_command(
    output: StaticOption,
    spec: Annotated[
        str | None, typer.Argument(help="Model with one layer, e.g. 'lightning(d=2,dp=1)'.")
    ] = None,
    record: RecordOption = None,
    panels: Annotated[
        bool, typer.Option("--panels/--no-panels", help="Draw slices beside the diagram of M(2,1,2).")
    ] = True,
    picture: FormatOption = None,
    d: common.WidthOption = None,
    dp: common.OutputWidthOption = None,
    a: common.RankOption = None,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
    force: common.ForceOption = False,
) -> None:
    """Draw the orbits of one layer ordered by closure, with dimension, tangent dimension, and where Theorem 3.4 fails.

    Example: m2bridge figure theorem-3.4 --d 3 --dp 2 --a 2 -o orbits.pdf
    """
    target = Destination(output, picture, plotting.STATIC)
    boundary_result: Boundary | None
    if record:
        loaded = _load(record, SingularLocus, Boundary)
        locus = _one(loaded, SingularLocus)
        boundary_result = next((result for result in loaded if isinstance(result, Boundary)), None)
    else:
        model = common.model_from(spec, d, dp, a, None)
        check_boundary(model, force=force)
        options: dict[str, Any] = {
            "seed": seed,
            "limits": common.parse_limits(timeout, memory),
            "force": force,
        }
        with common.shown_steps(quiet=False) as progress, open_engine(engine) as opened:
            options |= {"engine": opened, "progress": progress}
            locus = singular_locus(model, prime=prime, **options)
            boundary_result = boundary(model, **options)
    _check_agreement(locus, boundary_result)
    draw_panels = panels and parse_spec(locus.model) == slices.MODEL
    sections = {
        title: figure1.section(slices.SLICES[name], locus.equations, grid=12)
        for title, name in _PANELS.items()
        if draw_panels
    }
    with target.file() as file:
        orbit_diagram.draw(locus, boundary_result, file, sections)
    target.add_data(*orbit_diagram.data(locus, boundary_result), orbit_diagram.COLUMNS)


def slice_command(
    output: OutputOption,
    spec: Annotated[
        str | None,
        typer.Argument(
            help="Model whose closure is a hypersurface in its linear span, e.g. 'map:s,t->s*t;s;t^2'."
        ),
    ] = None,
    slice_file: Annotated[
        Path | None,
        typer.Option(
            "--slice", help="JSON file with origin and two or three directions (default: random, by --seed)."
        ),
    ] = None,
    dims: Annotated[
        int | None, typer.Option("--dims", min=2, max=3, help="2 for a curve, 3 for a surface.")
    ] = None,
    window: Annotated[
        float, typer.Option("--window", min=0.01, help="Draw coordinates from -WINDOW to WINDOW.")
    ] = 1.0,
    record: RecordOption = None,
    picture: FormatOption = None,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
    force: common.ForceOption = False,
) -> None:
    """Draw a slice of a hypersurface: the real points of its computed equation, with the singular points of the closure.

    Example: m2bridge figure slice 'map:s,t->s*t;s;t^2' -o umbrella.png
    """
    target = Destination(output, picture)
    if (spec is None) == (not record):
        raise InputError("give a model, or a record of singular-locus with --record")
    if record:
        locus = _one(_load(record, SingularLocus), SingularLocus)
    else:
        with common.shown_steps(quiet=False) as progress, open_engine(engine, warm=True) as opened:
            options: dict[str, Any] = {"limits": common.parse_limits(timeout, memory), "force": force}
            options |= {"engine": opened, "progress": progress, "prime": prime, "seed": seed}
            locus = singular_locus(parse_spec(str(spec)), **options)
    _check_agreement(locus)
    if slice_file is None:
        chosen = section.chosen_slice(locus, dims=dims, window=window, seed=seed)
    else:
        chosen = slices.slice_file(slice_file, parse_spec(locus.model))
    computed_slice = section.section(locus, chosen)
    with target.file() as file:
        section.draw(computed_slice, file)
    target.add_data(*section.data(computed_slice), section.COLUMNS)
    singular = "not computed" if computed_slice.singular is None else str(len(computed_slice.singular))
    equation = cut(slices.text_of(computed_slice.polynomial), 200)
    target.report(f"{chosen.title}; singular points: {singular}; {equation} = 0")


def widths_command(
    output: StaticOption,
    family: Annotated[str, typer.Option("--model", help="Family: softmax or lightning.")] = "softmax",
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers.")] = 2,
    t: Annotated[int, typer.Option("--t", min=1, help="Number of tokens.")] = 3,
    a: Annotated[int, typer.Option("--a", min=1, help="Rows of Q and K in each layer.")] = 2,
    widths: Annotated[str, typer.Option("--widths", help="Range of widths FIRST..LAST.")] = "3..10",
    paper_method: Annotated[
        str | None,
        typer.Option(
            "--paper-method",
            help="Add the estimate of the paper from 250 inputs, in float32 (as in its code) or float64.",
        ),
    ] = None,
    record: RecordOption = None,
    picture: FormatOption = None,
    save: common.SaveOption = None,
    seed: common.SeedOption = 0,
) -> None:
    """Draw Figure 3: computed and expected dimension of deep attention as functions of the width.

    Example: m2bridge figure 3 -o figure-3.pdf --paper-method float32
    """
    target = Destination(output, picture, plotting.STATIC)
    common.check_directories(save=save)
    if paper_method is not None and paper_method not in charts.PRECISIONS:
        raise InputError(f"--paper-method {paper_method!r}: use {' or '.join(charts.PRECISIONS)}")
    results = _load(record, Dimension)
    if not results:
        if family not in ("softmax", "lightning"):
            raise InputError(f"--model {family!r}: use softmax or lightning")
        kind = Softmax if family == "softmax" else DeepLightning
        models = [kind(d=(delta,) * (layers + 1), a=(a,) * layers, t=t) for delta in _range(widths)]
        with common.shown_steps(quiet=False) as progress:
            for model in models:
                progress(f"dimension of {model}")
                results.append(dimension(model, engine=False, seed=seed))
    _check_agreement(*results)
    if save is not None:
        for result in results:
            records.save(result, save)
    measured = {}
    if paper_method is not None:
        for result in results:
            network: Any = parse_spec(result.model)
            measured[network.widths[0]] = charts.measured_rank(network, seed=seed, precision=paper_method)
    rows = charts.rows_of(results, measured)
    title, citation = _title(results[0].model)
    label = f"250 inputs, {paper_method}" if paper_method else ""
    with target.file() as file:
        charts.draw_widths(rows, file, title=title, citation=citation, measured=label)
    drawn = [result.model for result in results]
    target.add_data(*charts.width_data(rows, title=title, models=drawn), charts.WIDTH_COLUMNS)
    proved = sum(row.certainty in ("proved", "theorem", "computed") for row in rows)
    equal = sum(row.estimated == row.expected for row in rows)
    target.report(f"{len(rows)} widths: {proved} proved, {equal} equal to the formula")


def landscape_command(
    output: StaticOption,
    spec: Annotated[
        str,
        typer.Argument(
            help="Model, e.g. 'lightning(d=2,dp=1)'; a slice is drawn if it has more than two weights."
        ),
    ],
    target: Annotated[
        str | None, typer.Option("--target", help="Coordinates of the target, e.g. 1/2,3/5,-1/2.")
    ] = None,
    window: Annotated[
        float, typer.Option("--window", min=0.1, help="Draw weights from -WINDOW to WINDOW.")
    ] = 1.4,
    picture: FormatOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
) -> None:
    """Draw a loss landscape: critical points by type and gradient flow, in weight space and in function space.

    Example: m2bridge figure landscape 'lightning(d=2,dp=1)' -o landscape.png
    """
    destination = Destination(output, picture, plotting.STATIC)
    plane, title = landscape.plane_of(parse_spec(spec), seed)
    goal = landscape.target_of(plane, seed) if target is None else read_target(target)
    limits = common.parse_limits(timeout, memory)
    with common.shown_steps(quiet=False) as progress, open_engine(engine) as opened:
        answer = critical_points(
            plane, metric="euclidean", target=goal, real=True, engine=opened, seed=seed, limits=limits,
            progress=progress,
        )  # fmt: skip
    _check_agreement(answer)
    scene = landscape.scene(plane, goal, answer, window=window)
    with destination.file() as file:
        landscape_pictures.draw(scene, file, title)
    destination.add_data(*landscape.data(scene), landscape.COLUMNS)
    destination.report(
        f"{answer.view().answer}; {scene.ending} of {len(scene.flows)} flow lines end in a minimum"
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


def _load(paths: list[Path] | None, *kinds: type[_R]) -> list[_R]:
    """Load records and check that they are results of the given types."""
    loaded = []
    for path in paths or ():
        result = records.load(path)
        if not isinstance(result, kinds):
            expected = " or ".join(kind.ANALYSIS for kind in kinds)
            raise InputError(
                f"--record {path} is a record of {result.ANALYSIS}; this figure requires {expected}"
            )
        loaded.append(result)
    return loaded


def _one(results: Sequence[Result], kind: type[_R]) -> _R:
    matching = [result for result in results if isinstance(result, kind)]
    if len(matching) != 1:
        raise InputError(f"this figure requires one record of {kind.ANALYSIS}, not {len(matching)}")
    return matching[0]


def _check_agreement(*results: Result | None) -> None:
    """Raise DisagreementError if the witnesses of a result disagree."""
    for result in results:
        if result is not None and result.agreement is False:
            raise DisagreementError(
                f"the witnesses of {result.ANALYSIS} {result.model} disagree: nothing is drawn",
                conflicts=result.conflicts,
            )
