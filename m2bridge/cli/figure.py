"""CLI: ``m2bridge figure 1``, ``theorem-3.4``, ``3``, ``slice``, ``landscape``, and ``sweep`` of a store.

A picture goes into a file with its data beside it, or alone to standard output (``-o -``).
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
from m2bridge.batch.store import Store
from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.errors import DisagreementError, InputError
from m2bridge.families import DeepLightning, Softmax, parse_spec
from m2bridge.figures import charts, figure1, landscape, landscape_pictures, orbits, plotting, section, slices
from m2bridge.questions.boundary import Boundary, boundary
from m2bridge.questions.boundary import check_model as check_boundary
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.critical_points.losses import read_target
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.singular_locus import DEFAULT_PRIME, SingularLocus, check_model, singular_locus
from m2bridge.results import Result
from m2bridge.views import cut as cut_text

_FILE = (
    "The file; its ending chooses the format: {}. Data go beside it as JSON and CSV. "
    "- is standard output: the picture alone, see --format."
)
StaticOption = Annotated[Path, typer.Option("-o", "--output", help=_FILE.format("png, pdf or svg"))]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help=_FILE.format("png, pdf, svg or html"))]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="The format on standard output (-o -); png if not given.")
]
RecordOption = Annotated[
    list[Path] | None,
    typer.Option("--record", help="Draw from this saved record instead of computing; may be repeated."),
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
        "Draw the paper's figures from computed data: 1, theorem-3.4, 3; slices, loss landscapes, a sweep of your own.",
    )
    figures.command("1")(figure1_command)
    figures.command("theorem-3.4")(orbits_command)
    figures.command("3")(widths_command)
    figures.command("slice")(slice_command)
    figures.command("sweep")(sweep_command)
    figures.command("landscape")(landscape_command)


class Destination:
    """The place that ``-o`` names, checked before any work is done.

    `picture` is the text of ``--format``, which belongs to standard output only; `allowed` are the endings that can be drawn.
    """

    def __init__(self, output: Path, picture: str | None, allowed: Sequence[str] = _ALL) -> None:
        self.path = None if output == Path("-") else output
        if self.path is not None:
            if picture is not None:
                raise InputError(f"--format is for -o -; the ending of {output} chooses its format")
            plotting.check_output(self.path, allowed)
            return
        self.ending = f".{(picture or 'png').lower()}"
        if self.ending not in allowed:
            known = ", ".join(ending.lstrip(".") for ending in allowed)
            raise InputError(f"--format {picture}: use one of {known}")
        if sys.stdout.isatty():
            raise InputError(
                "-o - writes a picture to standard output, which is a terminal; send it to a file with >"
            )
        plotting.check_output(Path(tempfile.gettempdir()) / f"picture{self.ending}", allowed)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The file to draw into. What was drawn for standard output is sent there once it is complete."""
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
        """Write the data beside the picture and say what was written; nothing beside standard output."""
        if self.path is not None:
            beside = plotting.write_data(self.path, document, columns, rows)
            self.say(f"{self.path} (data: {', '.join(path.name for path in beside)})")

    def say(self, message: str) -> None:
        """A line for people, which keeps out of the way of a picture on standard output."""
        typer.echo(message, err=self.path is None)


def figure1_command(
    output: OutputOption,
    cut: Annotated[
        str | None,
        typer.Option(
            "--slice", help=f"A slice: {', '.join(slices.SLICES)}, or a JSON file with origin and directions."
        ),
    ] = None,
    random_slice: Annotated[
        bool, typer.Option("--random-slice", help="A random slice, from --seed.")
    ] = False,
    grid: Annotated[
        int, typer.Option("--grid", min=4, max=200, help="Lines of the comparison grid, a side.")
    ] = 24,
    record: RecordOption = None,
    picture: FormatOption = None,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
) -> None:
    """A slice of M(2,1,2): reachable functions, singular curve, closure-only part, boundary points.

    The equation is Macaulay2's, the surface the parametrization's; exit code 3 when they disagree.

    Example: m2bridge figure 1 -o figure-1.pdf
    """
    target = Destination(output, picture)
    if cut is not None and random_slice:
        raise InputError("give either --slice or --random-slice, not both")
    chosen = slices.random_slice(seed) if random_slice else slices.read_slice(cut or slices.DEFAULT)
    if record:
        locus = _one(_load(record, SingularLocus), SingularLocus)
    else:
        model, limits = (
            check_model(slices.MODEL, prime or DEFAULT_PRIME),
            common.parse_limits(timeout, memory),
        )
        with open_engine(engine) as opened:
            locus = singular_locus(model, engine=opened, prime=prime, seed=seed, limits=limits)
    if parse_spec(locus.model) != slices.MODEL:
        raise InputError(f"Figure 1 is a slice of M(2,1,2); the record is of {locus.model}")
    _trusted(locus)
    part = figure1.section(chosen, locus.equations, grid=grid)
    with target.file() as file:
        figure1.draw(part, file)
    target.add_data(*figure1.data(part), figure1.COLUMNS)
    check, equation = part.check, slices.text_of(part.polynomial)
    found = f"{check.drawn} drawn points satisfy the equation, {check.roots} real roots have real weights"
    target.say(f"{found}: {equation} = 0")


def orbits_command(
    output: StaticOption,
    spec: Annotated[str | None, typer.Argument(help="A one-layer model, e.g. 'lightning(d=2,dp=1)'.")] = None,
    record: RecordOption = None,
    panels: Annotated[
        bool, typer.Option("--panels/--no-panels", help="Slices beside the diagram of M(2,1,2).")
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
    """The orbits of one layer ordered by closure: dimension, tangent dimension, singular, boundary, where Theorem 3.4 fails.

    Example: m2bridge figure theorem-3.4 --d 3 --dp 2 --a 2 -o orbits.pdf
    """
    target = Destination(output, picture, plotting.STATIC)
    edge: Boundary | None
    if record:
        loaded = _load(record, SingularLocus, Boundary)
        locus = _one(loaded, SingularLocus)
        edge = next((result for result in loaded if isinstance(result, Boundary)), None)
    else:
        model = common.model_from(spec, d, dp, a, None)
        check_model(model, prime or DEFAULT_PRIME, force=force)
        check_boundary(model, force=force)
        words: dict[str, Any] = {"seed": seed, "limits": common.parse_limits(timeout, memory), "force": force}
        with common.shown_steps(quiet=False) as progress, open_engine(engine) as opened:
            words |= {"engine": opened, "progress": progress}
            locus, edge = singular_locus(model, prime=prime, **words), boundary(model, **words)
    _trusted(locus, edge)
    wanted = panels and parse_spec(locus.model) == slices.MODEL
    sections = {
        title: figure1.section(slices.SLICES[name], locus.equations, grid=12)
        for title, name in _PANELS.items()
        if wanted
    }
    with target.file() as file:
        orbits.draw(locus, edge, file, sections)
    target.add_data(*orbits.data(locus, edge), orbits.COLUMNS)


def slice_command(
    output: OutputOption,
    spec: Annotated[
        str | None,
        typer.Argument(
            help="A model whose closure is a hypersurface in its span, e.g. 'map:s,t->s*t;s;t^2'."
        ),
    ] = None,
    cut: Annotated[
        Path | None,
        typer.Option("--slice", help="A JSON file with origin and two or three directions; else by --seed."),
    ] = None,
    dims: Annotated[
        int | None, typer.Option("--dims", min=2, max=3, help="2 for a curve, 3 for a surface.")
    ] = None,
    window: Annotated[float, typer.Option("--window", min=0.01, help="From -WINDOW to WINDOW.")] = 1.0,
    record: RecordOption = None,
    picture: FormatOption = None,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
    force: common.ForceOption = False,
) -> None:
    """A slice of any hypersurface: the real points of its computed equation, singular points of the closure marked.

    Example: m2bridge figure slice 'map:s,t->s*t;s;t^2' -o umbrella.png
    """
    target = Destination(output, picture)
    if (spec is None) == (not record):
        raise InputError("give a model, or a record of singular-locus with --record")
    if record:
        locus = _one(_load(record, SingularLocus), SingularLocus)
    else:
        with common.shown_steps(quiet=False) as progress, open_engine(engine, warm=True) as opened:
            words: dict[str, Any] = {"limits": common.parse_limits(timeout, memory), "force": force}
            words |= {"engine": opened, "progress": progress, "prime": prime, "seed": seed}
            locus = singular_locus(parse_spec(str(spec)), **words)
    _trusted(locus)
    chosen = (
        section.chosen_slice(locus, dims=dims, window=window, seed=seed)
        if cut is None
        else slices.slice_file(cut, parse_spec(locus.model))
    )
    part = section.section(locus, chosen)
    with target.file() as file:
        section.draw(part, file)
    target.add_data(*section.data(part), section.COLUMNS)
    marked = "unknown" if part.singular is None else str(len(part.singular))
    equation = cut_text(slices.text_of(part.polynomial), 200)
    target.say(f"{chosen.title}; singular points marked: {marked}; {equation} = 0")


def widths_command(
    output: StaticOption,
    family: Annotated[str, typer.Option("--model", help="softmax or lightning.")] = "softmax",
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers, l.")] = 2,
    t: Annotated[int, typer.Option("--t", min=1, help="Number of tokens.")] = 3,
    a: Annotated[int, typer.Option("--a", min=1, help="Rows of Q and K in each layer.")] = 2,
    widths: Annotated[str, typer.Option("--widths", help="Range of widths, first..last.")] = "3..10",
    paper_method: Annotated[
        str | None,
        typer.Option(
            "--paper-method",
            help="Add the paper's measurement with 250 inputs, in float32 (as its code) or float64.",
        ),
    ] = None,
    record: RecordOption = None,
    picture: FormatOption = None,
    save: common.SaveOption = None,
    seed: common.SeedOption = 0,
) -> None:
    """Estimated and expected dimension of deep attention against its width; estimated is what `dimension` proves.

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
    _trusted(*results)
    if save is not None:
        for result in results:
            records.save(result, save)
    measured = {}
    if paper_method is not None:
        for result in results:
            network: Any = parse_spec(result.model)
            measured[network.d[0]] = charts.measured_rank(network, seed=seed, precision=paper_method)
    rows = charts.rows_of(results, measured)
    title, citation = _title(results[0].model)
    label = f"250 inputs, {paper_method}" if paper_method else ""
    with target.file() as file:
        charts.draw_widths(rows, file, title=title, citation=citation, measured=label)
    drawn = [result.model for result in results]
    target.add_data(*charts.width_data(rows, title=title, models=drawn), charts.WIDTH_COLUMNS)
    proved = sum(row.certainty in ("proved", "theorem", "computed") for row in rows)
    equal = sum(row.estimated == row.expected for row in rows)
    target.say(f"{len(rows)} widths: {proved} proved, {equal} equal to the formula")


def sweep_command(
    store: Annotated[Path, typer.Argument(help="The store of a batch.")],
    output: StaticOption,
    x: Annotated[str, typer.Option("--x", help="A name of the grid or an argument: h, d, 'widths[1]'.")],
    y: Annotated[str, typer.Option("--y", help="A quantity of the results.")] = "image_dim",
    by: Annotated[str | None, typer.Option("--by", help="One series for each value of this name.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", help="Which records, as for `m2bridge results`.")
    ] = None,
    picture: FormatOption = None,
) -> None:
    """One quantity of a store's records against a name of its grid; markers say how sure each value is.

    Example: m2bridge figure sweep STORE --x h --y image_dim -o sweep.png
    """
    target = Destination(output, picture, plotting.STATIC)
    points = charts.points_of(Store.open(store).rows(where), x, y, by)
    with target.file() as file:
        charts.draw_sweep(points, file, x=x, y=y)
    target.add_data(*charts.sweep_data(points, x=x, y=y), charts.SWEEP_COLUMNS)
    target.say(f"{len(points)} records")


def landscape_command(
    output: StaticOption,
    spec: Annotated[
        str, typer.Argument(help="A model, e.g. 'lightning(d=2,dp=1)'; with more than two weights, a slice.")
    ],
    target: Annotated[
        str | None, typer.Option("--target", help="The target as coordinates, e.g. 1/2,3/5,-1/2.")
    ] = None,
    window: Annotated[float, typer.Option("--window", min=0.1, help="Weights from -WINDOW to WINDOW.")] = 1.4,
    picture: FormatOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
    memory: common.MemoryOption = common.DEFAULT_MEMORY,
    engine: common.EngineOption = None,
) -> None:
    """A loss landscape: critical points by kind and gradient flow, among weights and among functions.

    Example: m2bridge figure landscape 'lightning(d=2,dp=1)' -o landscape.png
    """
    place = Destination(output, picture, plotting.STATIC)
    plane, title = landscape.plane_of(parse_spec(spec), seed)
    goal = landscape.target_of(plane, seed) if target is None else read_target(target)
    limits = common.parse_limits(timeout, memory)
    with common.shown_steps(quiet=False) as progress, open_engine(engine) as opened:
        answer = critical_points(
            plane, metric="euclidean", target=goal, real=True, engine=opened, seed=seed, limits=limits,
            progress=progress,
        )  # fmt: skip
    _trusted(answer)
    part = landscape.scene(plane, goal, answer, window=window)
    with place.file() as file:
        landscape_pictures.draw(part, file, title)
    place.add_data(*landscape.data(part), landscape.COLUMNS)
    place.say(f"{answer.view().answer}; {part.ending} of {len(part.flows)} flow lines end in a minimum")


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
    """What stands above Figure 3, and how its formula is cited."""
    model: Any = parse_spec(spec)
    name = "softmax" if isinstance(model, Softmax) else "lightning"
    title = f"{name} attention, l={len(model.a)}, t={model.t}, a={model.a[0]}"
    if model.formula is None or not model.formula.applies:
        return title, "no formula"
    number = re.search(r"Equation (\d+)|Theorem [\d.]+", model.formula.citation)
    return title, "formula" if number is None else number[0].replace("Equation", "Eq.")


def _load(paths: list[Path] | None, *kinds: type[_R]) -> list[_R]:
    """The records that a picture is drawn from, of the kinds that it needs."""
    found = []
    for path in paths or ():
        result = records.load(path)
        if not isinstance(result, kinds):
            wanted = " or ".join(kind.ANALYSIS for kind in kinds)
            raise InputError(f"--record {path} is a record of {result.ANALYSIS}; this picture needs {wanted}")
        found.append(result)
    return found


def _one(results: Sequence[Result], kind: type[_R]) -> _R:
    found = [result for result in results if isinstance(result, kind)]
    if len(found) != 1:
        raise InputError(f"this picture needs one record of {kind.ANALYSIS}, not {len(found)}")
    return found[0]


def _trusted(*results: Result | None) -> None:
    """Refuse to draw an answer whose witnesses contradict each other."""
    for result in results:
        if result is not None and result.agreement is False:
            raise DisagreementError(
                f"the witnesses of {result.ANALYSIS} {result.model} disagree: nothing is drawn",
                conflicts=result.conflicts,
            )
