"""CLI: ``m2bridge singular-locus``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.engine import open_engine
from m2bridge.questions.singular_locus import Component, SingularLocus, singular_locus
from m2bridge.questions.singular_locus.analysis import DEFAULT_PRIME, check_model

_LONGEST = 160
"""Equations are printed when they are not longer than this."""


def register(app: typer.Typer) -> None:
    @app.command("singular-locus")
    def command(
        spec: Annotated[
            str | None, typer.Argument(help="A one-layer model, e.g. 'lightning(d=2,dp=1)'.")
        ] = None,
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
        """Where the neuromanifold of one layer of attention is singular: orbits, tangent spaces, equations.

        Example: m2bridge singular-locus --d 2 --dp 1
        """
        model = check_model(model_from(spec, d, dp, a, t), prime, force=force)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        with common.Progress(quiet=as_json).shown() as progress, open_engine(engine) as opened:
            result = singular_locus(
                model,
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


def _show(result: SingularLocus, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Singular locus[/]  {escape(title)}", highlight=False)
    console.print(_facts(result))
    console.print(_strata(result))
    _theorem(result, console)
    common.print_grounds(result, console, evidence=evidence, over=f"p={result.options['prime']}")


def _facts(result: SingularLocus) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row(
        "ambient space", f"dimension {result.ambient_dim}; the network spans {result.span_dim} of them"
    )
    table.add_row("dimension", f"{result.image_dim} (affine)")
    if result.codim is not None:
        table.add_row(
            "closure", f"codimension {result.codim} in its span, degree {common.maybe(result.degree)}"
        )
    if result.generators is not None:
        counts = ", ".join(f"{n} of degree {k}" for k, n in result.generators.items()) or "none"
        table.add_row("equations", counts)
        for equation in result.equations:
            if len(equation) <= _LONGEST and len(result.equations) <= 6:
                table.add_row("", escape(f"{equation} = 0"))
    elif result.codim is None:
        table.add_row(
            "closure", "not computed whole at this size; equations up to degree 4 serve as upper bounds"
        )
    degree = "" if result.singular_degree is None else f", degree {result.singular_degree}"
    table.add_row("singular locus", f"dimension {common.maybe(result.singular_dim)}{degree}")
    for name, components in (("components", result.components), ("embedded", result.embedded)):
        if components is not None:
            table.add_row(f"  {name}", escape("; ".join(_component(c) for c in components)) or "none")
    return table


def _component(component: Component) -> str:
    text = f"dimension {component.dim}, degree {common.maybe(component.degree)}"
    if component.orbit is not None:
        text += f", closure of the orbit {component.orbit}"
    equations = ", ".join(component.equations or ())
    return f"{text}: {equations}" if equations and len(equations) <= _LONGEST else text


def _strata(result: SingularLocus) -> Table:
    table = Table(title="Strata", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("rk A", "rk V", "meet", "orbit dim", "tangent ≥", "tangent ≤"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    table.add_column("certainty")
    colour = {"singular": "red", "smooth": "blue", "undecided": "yellow"}
    for s in result.strata:
        ranks = ("0", "0", "") if s.rank_a * s.rank_v == 0 else (str(s.rank_a), str(s.rank_v), str(s.meet))
        verdict = f"[{colour[s.verdict]}]{s.verdict}[/]"
        table.add_row(
            *ranks,
            str(s.orbit_dim),
            str(s.tangent_lower),
            common.maybe(s.tangent_upper),
            verdict,
            common.certainty_text(s.certainty) if s.verdict != "undecided" else "",
        )
    return table


def _theorem(result: SingularLocus, console: Console) -> None:
    check = result.theorem
    console.print(f"\n{check.name}: {check.statement}.", markup=False)
    if not check.applies:
        console.print("Its hypotheses do not hold here: it says nothing about this size.")
    elif check.agrees:
        console.print("Its hypotheses hold, and it [green]agrees[/] with every stratum.")
    elif check.agrees is None:
        console.print("Its hypotheses hold; nothing contradicts it, but some strata are undecided.")
    elif check.witness is not None:
        w = check.witness
        console.print(
            f"Its hypotheses hold, and it [bold red]fails[/] at rk A = {w['rank_a']}, rk V = {w['rank_v']}, meet {w['meet']}: "
            f"printed {w['printed']}, computed {w['computed']} ({w['certainty']}).",
        )
        console.print(f"Witness: A = {w['A']}, V = {w['V']}: {w['reason']}.", markup=False)
