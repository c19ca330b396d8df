"""CLI: ``m2bridge symmetries SPEC``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.questions.symmetries import Symmetries, symmetries

_MOST_SHOWN = 24


def register(app: typer.Typer) -> None:
    @app.command("symmetries")
    def command(
        spec: Annotated[str | None, typer.Argument(help="A model, e.g. 'mlp(widths=[5,5,3,1],r=2)'.")] = None,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        degree: Annotated[
            int, typer.Option("--degree", help="Highest degree of vector fields: 1, 2 or 3.")
        ] = 2,
        prime: Annotated[int | None, typer.Option("--prime", help="Characteristic of the search.")] = None,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = "1m",
        memory: common.MemoryOption = "6G",
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        evidence: common.EvidenceOption = False,
    ) -> None:
        """Symmetries of a network: searched in its program, verified as identities, named where people know them.

        Example: m2bridge symmetries 'mlp(widths=[5,5,3,1],r=2)'
        """
        model = model_from(spec, d, dp, a, t)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        with common.Progress(quiet=as_json).shown() as progress:
            result = symmetries(
                model, prime=prime, seed=seed, limits=limits, progress=progress, degree=degree
            )
        common.finish(
            result,
            as_json=as_json,
            save=save,
            show=lambda console: _show(result, model.title, console, evidence=evidence),
        )


def _show(result: Symmetries, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Symmetries[/]  {escape(title)}", highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("generic orbits", f"[bold]{result.symmetry_dim}[/] of {result.parameters} weights")
    table.add_row("generic fiber", f"{result.generic_fiber_dim}")
    table.add_row("dimension", f"at most {result.upper_bound}")
    algebra = result.algebra
    if algebra is not None and algebra.closed:
        table.add_row(
            "Lie algebra",
            f"of the affine fields: dimension {algebra.dim}, semisimple part {algebra.semisimple_dim}, radical "
            f"{algebra.radical_dim}, center {algebra.center_dim}",
        )
    for field in result.fields[:_MOST_SHOWN]:
        words = field.name or f"degree {field.degree}: {common.short(list(field.coefficients), 90)}"
        table.add_row("new field" if field.new else "field", escape(words))
    if len(result.fields) > _MOST_SHOWN:
        table.add_row("", f"and {len(result.fields) - _MOST_SHOWN} more (--json shows all)")
    for group in result.finite:
        table.add_row("finite", escape(f"{group.group} on {', '.join(group.acts_on)}"))
    for item in (*result.known, *result.declared):
        again = "" if item.found is None else ", found again" if item.found else ", not found again"
        verdict = {True: "verified", False: "no symmetry", None: "not decided"}[item.verified]
        table.add_row("named", escape(f"{item.name}: {verdict}{again}"))
    table.add_row("", escape(result.statement))
    console.print(table)
    if evidence:
        console.print(common.evidence_table(result.evidence))
    common.print_closing_line(result, console, over=f"p={result.options['prime']}")
