"""CLI: ``m2bridge fiber``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.questions.fiber import Fiber, fiber
from m2bridge.questions.fiber.primes import DEFAULT_PRIME
from m2bridge.questions.fiber.resolve import resolve

_COLOUR = {
    "identifiable-up-to-symmetry": "green",
    "finite-up-to-symmetry": "blue",
    "open-orbit": "cyan",
    "not-identifiable": "red",
    "undecided": "yellow",
}
_LONGEST = 160


def register(app: typer.Typer) -> None:
    @app.command("fiber")
    def command(
        spec: Annotated[
            str | None, typer.Argument(help="A model, e.g. 'lightning(d=2,dp=1,parametrization=attention)'.")
        ] = None,
        at: Annotated[
            Path | None,
            typer.Option(
                "--at", help="JSON file: parameter names to matrices of integers or fractions as strings."
            ),
        ] = None,
        stratum: Annotated[
            str | None,
            typer.Option(
                "--stratum", help="rank_a=1,rank_v=1[,meet=1] for one layer; m1=skew for virtual weights."
            ),
        ] = None,
        random: Annotated[
            bool, typer.Option("--random", help="Random integer weights (the default).")
        ] = False,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        prime: common.PrimeOption = DEFAULT_PRIME,
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
        """Which weights compute the same function: the fiber through a point, and whether symmetries explain it.

        Example: m2bridge fiber 'lightning(d=2,dp=1,parametrization=attention)' --stratum rank_a=1,rank_v=1
        """
        model = model_from(spec, d, dp, a, t)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        point = resolve(model, _chosen(at, stratum, random), seed)
        with common.Progress(quiet=as_json).shown() as progress, open_engine(engine) as opened:
            result = fiber(
                model,
                at=point,
                engine=opened,
                prime=prime,
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


def _chosen(at: Path | None, stratum: str | None, random: bool) -> Any:
    given = [name for name, value in (("--at", at), ("--stratum", stratum), ("--random", random)) if value]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} name different points; give one of them")
    return at or stratum


def _show(result: Fiber, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Fiber[/]  {escape(title)}", highlight=False)
    console.print(_facts(result))
    if result.components:
        console.print(_components(result))
    if result.counterexample is not None:
        _counterexample(result, console)
    _theorem(result, console)
    for note in result.notes:
        console.print(f"Note: {note}.", markup=False)
    common.print_grounds(result, console, evidence=evidence, over=f"p={result.at['prime']}")


def _facts(result: Fiber) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    kind = {"random": "random integers", "weights": "given weights", "stratum": "stratum"}[result.at["kind"]]
    detail = f" {escape(result.at['detail'])}" if result.at["detail"] else ""
    table.add_row("point", f"{kind}{detail}: {escape(_weights(result.at['weights']))}")
    degree = "" if result.degree is None else f", degree {result.degree}"
    table.add_row("fiber", f"dimension {common.maybe(result.fiber_dim)}{degree} ({result.method})")
    table.add_row(
        "at the point",
        f"dimension {common.maybe(result.dim_at_point)}; the orbit of the known symmetries {result.known_symmetry_dim}",
    )
    over = "over the algebraic closure"
    table.add_row("components", f"{common.maybe(result.component_count)} {over}")
    table.add_row("orbits", f"{common.maybe(result.orbits)} {over}")
    table.add_row(
        "generic fibers",
        f"dimension {common.maybe(result.generic_fiber_dim)}; image {common.maybe(result.image_dim)}",
    )
    probability = "" if result.probability in (None, 1.0) else f", probability >= {result.probability:.6f}"
    verdict = f"[{_COLOUR[result.verdict]}]{result.verdict}[/] ({result.certainty.value}{probability})"
    table.add_row("verdict", verdict)
    table.add_row("", escape(result.explanation))
    for point in result.real_points:
        same = {True: "a rescaling", False: "not a rescaling", None: ""}[point.same_orbit]
        table.add_row(
            "real point",
            f"{escape(point.found_by)}, residual {point.residual:.0e}{', ' if same else ''}{same}",
        )
    return table


def _weights(weights: dict[str, Any]) -> str:
    text = ", ".join(f"{name} = {_matrix(value)}" for name, value in weights.items())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _matrix(value: Any) -> str:
    return (
        "[" + ", ".join(_matrix(item) for item in value) + "]"
        if isinstance(value, (list, tuple))
        else str(value)
    )


def _components(result: Fiber) -> Table:
    table = Table(title="Components", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("dim", "degree", "multiplicity", "tangent dim"):
        table.add_column(name, justify="right")
    table.add_column("reduced")
    table.add_column("closure of the point's orbit")
    table.add_column("over the closure")
    words = {True: "yes", False: "no", None: "?"}
    for c in result.components or ():
        table.add_row(
            str(c.dim),
            common.maybe(c.degree),
            common.maybe(c.multiplicity),
            common.maybe(c.tangent_dim),
            words[c.reduced],
            words[c.orbit],
            "one" if c.absolute else common.maybe(c.conjugates),
        )
    return table


def _counterexample(result: Fiber, console: Console) -> None:
    counter = result.counterexample
    assert counter is not None
    console.print(
        "\nM_1 is skew: these are the same function"
        + ("" if counter["verified"] else " (NOT verified)")
        + ":"
    )
    console.print(f"  {_weights(counter['weights'])}", markup=False)
    console.print(f"  {_weights(counter['other'])}", markup=False)
    console.print(
        f"  checked: {counter['method']}. Repair of Theorem 3.7: {counter['repair']}.", markup=False
    )


def _theorem(result: Fiber, console: Console) -> None:
    check = result.theorem
    if check is None:
        return
    console.print(f"\n{check.name}: {check.statement}.", markup=False)
    if not check.applies:
        console.print("Its hypotheses do not hold here: it says nothing about this point.")
    elif check.agrees is None:
        console.print("Its hypotheses hold; the fiber was not computed far enough to compare.")
    elif check.agrees:
        console.print("Its hypotheses hold, and it [green]agrees[/].")
    else:
        console.print("Its hypotheses hold, and it [bold red]fails[/] here.")
