"""CLI: ``m2bridge figure 1``, ``theorem-3.4``, ``3``, ``landscape``, and ``sweep`` of a store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from m2bridge import records
from m2bridge.batch.store import Store
from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.cli.target import Target
from m2bridge.engine import open_engine
from m2bridge.errors import DisagreementError, InputError
from m2bridge.figures import figure1, figure3, finite_elements, landscape, orbits, plotting, slices, sweep
from m2bridge.models import DeepLightning, Softmax, parse_spec
from m2bridge.questions.boundary import Boundary, boundary
from m2bridge.questions.boundary import check_model as check_boundary
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.critical_points.losses import read_target
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.singular_locus import DEFAULT_PRIME, SingularLocus, check_model, singular_locus
from m2bridge.results import Result

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
_PANELS = {
    "pinch point": "umbrella",
    "two pinch points": "conoid",
    "two sheets crossing": "crossing",
    "closure-only handle": "handle",
}


def register(app: typer.Typer) -> None:
    figures = typer.Typer(
        help="Draw the paper's figures from computed data: 1, theorem-3.4, 3; loss landscapes; a sweep of your own.",
        no_args_is_help=True,
    )
    app.add_typer(figures, name="figure")
    figures.command("1")(slice_command)
    figures.command("theorem-3.4")(orbits_command)
    figures.command("3")(widths_command)
    figures.command("sweep")(sweep_command)
    figures.command("landscape")(landscape_command)


def slice_command(
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
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = "10m",
    memory: common.MemoryOption = "4G",
    engine: common.EngineOption = None,
    picture: FormatOption = None,
) -> None:
    """A slice of M(2,1,2): reachable functions, singular curve, closure-only part, boundary points.

    The equation is Macaulay2's, the surface the parametrization's; exit code 3 when they disagree.

    Example: m2bridge figure 1 -o figure-1.pdf
    """
    target = Target(output, picture, (*plotting.STATIC, ".html"))
    if cut is not None and random_slice:
        raise InputError("give either --slice or --random-slice, not both")
    chosen = slices.random_slice(seed) if random_slice else slices.read_slice(cut or slices.DEFAULT)
    loaded = _load(record, (SingularLocus,))
    if not loaded:
        model = check_model(slices.MODEL, prime or DEFAULT_PRIME)
        with open_engine(engine) as opened:
            limits = common.parse_limits(timeout, memory)
            loaded = [singular_locus(model, engine=opened, prime=prime, seed=seed, limits=limits)]
    locus = _one(loaded, SingularLocus)
    if parse_spec(locus.model) != slices.MODEL:
        raise InputError(f"Figure 1 is a slice of M(2,1,2); the record is of {locus.model}")
    _trusted(locus)
    part = figure1.section(chosen, locus.equations, grid=grid)
    with target.file() as file:
        figure1.draw(part, file)
    target.add_data(*figure1.data(part), figure1.COLUMNS)
    check = part.check
    target.say(
        f"{check.drawn} drawn points satisfy the equation, {check.roots} real roots have real weights: "
        f"{slices.text_of(part.polynomial)} = 0"
    )


def orbits_command(
    output: StaticOption,
    spec: Annotated[str | None, typer.Argument(help="A one-layer model, e.g. 'lightning(d=2,dp=1)'.")] = None,
    d: common.DOption = None,
    dp: common.DpOption = None,
    a: common.AOption = None,
    record: RecordOption = None,
    panels: Annotated[
        bool, typer.Option("--panels/--no-panels", help="Slices beside the diagram of M(2,1,2).")
    ] = True,
    prime: common.PrimeOption = None,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = "10m",
    memory: common.MemoryOption = "4G",
    engine: common.EngineOption = None,
    force: common.ForceOption = False,
    picture: FormatOption = None,
) -> None:
    """The orbits of one layer ordered by closure: dimension, tangent dimension, singular, boundary, where Theorem 3.4 fails.

    Example: m2bridge figure theorem-3.4 --d 3 --dp 2 --a 2 -o orbits.pdf
    """
    target = Target(output, picture, plotting.STATIC)
    loaded = _load(record, (SingularLocus, Boundary))
    edge: Boundary | None
    if loaded:
        locus = _one(loaded, SingularLocus)
        edges = [result for result in loaded if isinstance(result, Boundary)]
        edge = edges[0] if edges else None
    else:
        model = model_from(spec, d, dp, a, None)
        check_model(model, prime or DEFAULT_PRIME, force=force)
        check_boundary(model, force=force)
        limits = common.parse_limits(timeout, memory)
        with common.Progress(quiet=False).shown() as progress, open_engine(engine) as opened:
            locus = singular_locus(
                model, engine=opened, prime=prime, seed=seed, limits=limits, progress=progress, force=force
            )
            edge = boundary(model, engine=opened, seed=seed, limits=limits, progress=progress, force=force)
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


def widths_command(
    output: OutputOption,
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
    save: common.SaveOption = None,
    seed: common.SeedOption = 0,
    picture: FormatOption = None,
) -> None:
    """Estimated and expected dimension of deep attention against its width; estimated is what `dimension` proves.

    Example: m2bridge figure 3 -o figure-3.pdf --paper-method float32
    """
    target = Target(output, picture, (*plotting.STATIC, ".html"))
    common.check_directory("--save", save)
    if paper_method is not None and paper_method not in finite_elements.PRECISIONS:
        raise InputError(f"--paper-method {paper_method!r}: use {' or '.join(finite_elements.PRECISIONS)}")
    results = [result for result in _load(record, (Dimension,)) if isinstance(result, Dimension)]
    if not results:
        models = [_deep(family, delta, layers, a, t) for delta in _range(widths)]
        with common.Progress(quiet=False).shown() as progress:
            for model in models:
                progress(f"dimension of {model.spec}")
                results.append(dimension(model, engine=False, seed=seed))
    for result in results:
        _trusted(result)
        if save is not None:
            records.save(result, save)
    measured = {}
    if paper_method is not None:
        for result in results:
            network = parse_spec(result.model)
            width = network.d[0]  # type: ignore[attr-defined]
            measured[width] = finite_elements.measured_rank(network, seed=seed, precision=paper_method)
    rows = figure3.rows_of(results, measured)
    title, citation = _title(results[0].model)
    label = f"250 inputs, {paper_method}" if paper_method else ""
    with target.file() as file:
        figure3.draw(rows, file, title=title, citation=citation, measured_label=label)
    models_drawn = [result.model for result in results]
    target.add_data(*figure3.data(rows, title=title, models=models_drawn), figure3.COLUMNS)
    proved = sum(row.certainty.value == "proved" for row in rows)
    equal = sum(row.estimated == row.expected for row in rows)
    target.say(f"{len(rows)} widths: {proved} proved, {equal} equal to the formula")


def sweep_command(
    store: Annotated[Path, typer.Argument(help="The store of a batch.")],
    output: OutputOption,
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
    target = Target(output, picture, (*plotting.STATIC, ".html"))
    points = sweep.points_of(Store.open(store).rows(where), x, y, by)
    with target.file() as file:
        sweep.draw(points, file, x=x, y=y)
    target.add_data(*sweep.data(points, x=x, y=y), sweep.COLUMNS)
    target.say(f"{len(points)} records")


def landscape_command(
    output: OutputOption,
    spec: Annotated[
        str, typer.Argument(help="A model, e.g. 'lightning(d=2,dp=1)'; with more than two weights, a slice.")
    ],
    target: Annotated[
        str | None, typer.Option("--target", help="The target as coordinates, e.g. 1/2,3/5,-1/2.")
    ] = None,
    window: Annotated[float, typer.Option("--window", min=0.1, help="Weights from -WINDOW to WINDOW.")] = 1.4,
    seed: common.SeedOption = 0,
    timeout: common.TimeoutOption = "10m",
    memory: common.MemoryOption = "4G",
    engine: common.EngineOption = None,
    picture: FormatOption = None,
) -> None:
    """A loss landscape: critical points by kind and gradient flow, among weights and among functions.

    Example: m2bridge figure landscape 'lightning(d=2,dp=1)' -o landscape.png
    """
    place = Target(output, picture, (*plotting.STATIC, ".html"))
    plane, title = landscape.plane_of(parse_spec(spec), seed)
    goal = landscape.target_of(plane, seed) if target is None else read_target(target)
    limits = common.parse_limits(timeout, memory)
    with common.Progress(quiet=False).shown() as progress, open_engine(engine) as opened:
        answer = critical_points(
            plane,
            metric="euclidean",
            target=goal,
            real=True,
            engine=opened,
            seed=seed,
            limits=limits,
            progress=progress,
        )
    _trusted(answer)
    part = landscape.scene(plane, goal, answer, window=window)
    with place.file() as file:
        landscape.draw(part, file, title)
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


def _deep(family: str, delta: int, layers: int, a: int, t: int) -> Softmax | DeepLightning:
    if family not in ("softmax", "lightning"):
        raise InputError(f"--model {family!r}: use softmax or lightning")
    kind = Softmax if family == "softmax" else DeepLightning
    return kind(d=(delta,) * (layers + 1), a=(a,) * layers, t=t)


def _title(spec: str) -> tuple[str, str]:
    model = parse_spec(spec)
    softmax = isinstance(model, Softmax)
    layers = f"l={len(model.a)}, t={model.t}, a={model.a[0]}"  # type: ignore[attr-defined]
    name = "softmax" if softmax else "lightning"
    if model.formula is None or not model.formula.applies:
        return f"{name} attention, {layers}", "no formula"
    number = re.search(r"Equation (\d+)|Theorem [\d.]+", model.formula.citation)
    citation = "formula" if number is None else number[0].replace("Equation", "Eq.")
    return f"{name} attention, {layers}", citation


def _load(paths: list[Path] | None, kinds: tuple[type[Result], ...]) -> list[Result]:
    found = []
    for path in paths or ():
        result = records.load(path)
        if not isinstance(result, kinds):
            wanted = " or ".join(kind.ANALYSIS for kind in kinds)
            raise InputError(f"--record {path} is a record of {result.ANALYSIS}; this picture needs {wanted}")
        found.append(result)
    return found


def _one(results: list[Result], kind: type[SingularLocus]) -> SingularLocus:
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
