"""CLI: ``m2bridge boundary``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.engine import open_engine
from m2bridge.questions.boundary import Boundary, Point, boundary
from m2bridge.questions.boundary.analysis import check_model
from m2bridge.questions.boundary.points import read_point
from m2bridge.results import TheoremCheck

_LONGEST = 160
_COLOUR = {"image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red"}


def register(app: typer.Typer) -> None:
    @app.command("boundary")
    def command(
        spec: Annotated[
            str | None, typer.Argument(help="A one-layer model, e.g. 'lightning(d=2,dp=1)'.")
        ] = None,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        point: Annotated[
            str | None,
            typer.Option(
                "--point",
                help="A point to place: a JSON file, coordinates such as 1,0,-1/2,0,0,0, or weights such as "
                '\'{"A": [[1,0],[0,1]], "V": [[1,2]]}\'.',
            ),
        ] = None,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = "10m",
        memory: common.MemoryOption = "4G",
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
        evidence: common.EvidenceOption = False,
        force: common.ForceOption = False,
    ) -> None:
        """What one layer of attention can reach: image, boundary, what only the closure adds; and where a point lies.

        Example: m2bridge boundary --d 2 --dp 1 --point 1,0,1,0,0,0
        """
        model = check_model(model_from(spec, d, dp, a, t), force=force)
        place = None if point is None else read_point(model, point)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        with common.Progress(quiet=as_json).shown() as progress, open_engine(engine) as opened:
            result = boundary(
                model,
                engine=opened,
                point=place,
                seed=seed,
                limits=limits,
                keep=keep,
                progress=progress,
                force=force,
            )
        common.finish(
            result,
            as_json=as_json,
            save=save,
            show=lambda console: _show(result, model.title, console, evidence=evidence),
        )


def _show(result: Boundary, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Boundary[/]  {escape(title)}", highlight=False)
    if result.point is not None:
        _point(result.point, console)
    console.print(_parts(result))
    for part in result.parts:
        text = ", ".join(f"{equation} = 0" for equation in part.equations)
        inequality = "" if part.inequality is None else f"; {part.inequality}"
        if part.equations and len(text + inequality) <= 2 * _LONGEST:
            console.print(f"  {part.name}: {text}{inequality}", markup=False)
    console.print(_examples(result))
    for check in (result.theorem, result.corollary):
        _statement(check, console)
    _experiment(result, console)
    common.print_grounds(result, console, evidence=evidence, over="over QQ")


def _point(point: Point, console: Console) -> None:
    console.print(f"the point is: [bold {_COLOUR[point.where]}]{point.where}[/]")
    console.print(f"  {point.reason}", markup=False)
    names = {"closure-only": ("complex weights", "conjugate weights")}
    first, second = names.get(point.where, ("real weights", "and also"))
    for label, weights in ((first, point.weights), (second, point.conjugate)):
        if weights is not None:
            console.print(
                f"  {label}: A = {_matrix(weights['A'])}, V = {_matrix(weights['V'])}", markup=False
            )
    if point.weights is not None:
        console.print("  evaluated back exactly: they give the point")
    if point.distance is not None:
        console.print(f"  nearest network that the search found: at relative distance {point.distance:.1e}")


def _matrix(rows: tuple[tuple[str, ...], ...]) -> str:
    return "[" + ", ".join("[" + ", ".join(row) + "]" for row in rows) + "]"


def _parts(result: Boundary) -> Table:
    table = Table(title="Parts of the closure", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("part")
    table.add_column("dim", justify="right")
    table.add_column("degree", justify="right")
    table.add_column("what it is", overflow="fold")
    for part in result.parts:
        dim = "empty" if part.dim < 0 else str(part.dim)
        degree = "" if part.degree is None else str(part.degree)
        table.add_row(f"[{_COLOUR[part.name]}]{part.name}[/]", dim, degree, escape(part.description))
    return table


def _examples(result: Boundary) -> Group:
    table = Table(title="\nExamples", title_justify="left", show_edge=False, pad_edge=False)
    for name, justify in (("example", "left"), ("where", "left"), ("rk A", "right"), ("rk V", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("e2", justify="right")
    table.add_column("search", justify="right")
    places = Table.grid(padding=(0, 2))
    places.add_column(max_width=30)
    places.add_column(overflow="fold")
    for point in result.examples:
        table.add_row(
            escape(point.name),
            f"[{_COLOUR[point.where]}]{point.where}[/]",
            str(point.rank_a),
            str(point.rank_v),
            "" if point.e2 is None else common.short(point.e2, 10),
            "" if point.distance is None else f"{point.distance:.0e}",
        )
        places.add_row(escape(point.name), common.short(", ".join(map(str, point.coordinates)), _LONGEST))
    return Group(table, "\ncoordinates", places)


def _statement(check: TheoremCheck, console: Console) -> None:
    console.print(f"\n{check.name}: {check.statement}.", markup=False)
    if not check.applies:
        console.print("Its hypotheses do not hold here: it says nothing about this size.")
    elif check.agrees:
        console.print("Its hypotheses hold, and it [green]agrees[/] with every orbit.")
    elif check.witness is not None:
        w = check.witness
        console.print(
            f"Its hypotheses hold, and it [bold red]fails[/] at rk A = {w['rank_a']}, rk V = {w['rank_v']}, meet {w['meet']}: "
            f"printed {w['printed']}, computed {w['computed']}."
        )


def _experiment(result: Boundary, console: Console) -> None:
    console.print(f"\nEuclidean closedness, an {result.closedness.label} (Corollary A.1 is the proof):")
    for sequence in result.closedness.sequences:
        steps = ", ".join(f"{x:.1e}" for x in sequence.distances)
        console.print(f"  {sequence.name}: distances {steps}; limit: {sequence.limit}", markup=False)
