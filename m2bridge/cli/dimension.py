"""CLI: ``m2bridge dimension``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.results import Certainty, Evidence


def register(app: typer.Typer) -> None:
    @app.command("dimension")
    def command(
        spec: Annotated[
            str | None, typer.Argument(help="A model, e.g. 'deep-lightning(d=[3,3,3],a=2,t=3)'.")
        ] = None,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        prime: Annotated[
            int | None,
            typer.Option(
                "--prime",
                help=f"Characteristic for exact ranks (default: {LARGE_PRIME}, or the next smaller prime that divides no "
                "coefficient of the model).",
            ),
        ] = None,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = "10m",
        memory: common.MemoryOption = "6G",
        engine: common.EngineOption = None,
        no_engine: Annotated[bool, typer.Option("--no-engine", help="Do not ask Macaulay2.")] = False,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
        evidence: common.EvidenceOption = False,
    ) -> None:
        """The dimension of the neuromanifold and of the generic fiber, proved from both sides where possible.

        Example: m2bridge dimension 'softmax(d=[8,8,8],a=2,t=3)'
        """
        if no_engine and engine is not None:
            raise InputError("give either --engine or --no-engine, not both")
        model = model_from(spec, d, dp, a, t)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        with common.Progress(quiet=as_json).shown() as progress:
            chosen = False if no_engine else None if engine is None else open_engine(engine)
            try:
                result = dimension(
                    model,
                    engine=chosen,
                    prime=prime,
                    seed=seed,
                    limits=limits,
                    keep=keep,
                    progress=progress,
                    certify=save is not None or as_json,
                )
            finally:
                if chosen is not None and not isinstance(chosen, bool):
                    chosen.close()
        common.finish(
            result,
            as_json=as_json,
            save=save,
            show=lambda console: _show(result, model.title, console, evidence=evidence),
        )


def _show(result: Dimension, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Dimension[/]  {escape(title)}", highlight=False)
    console.print(_facts(result))
    over = f"p={result.options['prime']}"
    if evidence or result.conflicts:
        common.print_grounds(result, console, evidence=evidence, over=over, detailed=True)
        return
    console.print()
    console.print(_bounds(result))
    common.print_closing_line(result, console, over=over)


def _bounds(result: Dimension) -> Table:
    """What the dimension rests on, one line each: the best bounds, what else was computed, and what was checked."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    said = [item for item in result.evidence if item.quantity == "image_dim" and item.value is not None]
    lower = max((item for item in said if item.relation == ">="), key=lambda item: item.value, default=None)
    upper = min((item for item in said if item.relation == "<="), key=lambda item: item.value, default=None)
    for word, item in (("at least", lower), ("at most", upper)):
        if item is not None:
            table.add_row(f"{word} {item.value}", escape(_ground(item)))
    for item in said:
        if item.relation == "=" and item.witness != "macaulay2":
            table.add_row(f"likely {item.value}", escape(_ground(item)))
    checks = dict.fromkeys(
        item.quantity.partition(":")[0] for item in result.evidence if item.quantity != "image_dim"
    )
    if checks:
        names = ", ".join(
            name.replace("_", " ").replace("function changes under", "symmetries") for name in checks
        )
        table.add_row("checked", escape(f"{names}: as they should be (--evidence shows them)"))
    if result.certainty is not Certainty.PROVED:
        table.add_row(
            "to prove it", "an upper bound is missing: more symmetries, or equations (m2bridge closure)"
        )
    return table


def _ground(item: Evidence) -> str:
    over = f" over F_{item.prime}" if item.prime else ""
    return f"{item.method}{over} ({item.certainty.value})"


def _facts(result: Dimension) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("parameters", str(result.parameters))
    bounds = (
        "" if result.lower_bound == result.upper_bound else f" ({result.lower_bound} to {result.upper_bound})"
    )
    table.add_row(
        "dimension", f"[bold]{result.image_dim}[/]{bounds}, affine; {common.certainty_text(result.certainty)}"
    )
    table.add_row(
        "generic fiber", f"dimension {result.generic_fiber_dim}, of which symmetries {result.symmetry_dim}"
    )
    span = "" if result.span_dim is None else f"; ambient space {result.span_dim}"
    table.add_row("expected", f"{result.expected_dim}, defect {common.maybe(result.defect)}{span}")
    if result.formula is None:
        table.add_row("formula", "none known")
    elif result.formula.value is None:
        failing = ", ".join(name for name, holds in result.formula.hypotheses if not holds)
        table.add_row("formula", f"does not apply ({escape(failing)}): {escape(result.formula.citation)}")
    else:
        verdict = "[green]agrees[/]" if result.formula.agrees else "[bold red]does not agree[/]"
        table.add_row("formula", f"{result.formula.value}, {verdict}: {escape(result.formula.citation)}")
    if result.numeric is not None:
        rank = "undecided" if result.numeric.rank is None else str(result.numeric.rank)
        gap = "" if result.numeric.gap is None else f", gap {result.numeric.gap:.1e}"
        table.add_row("float64", f"{rank}{gap}")
    table.add_row("", escape(result.statement))
    return table
