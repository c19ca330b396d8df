"""CLI: ``m2bridge singular-point``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.models import parse_spec
from m2bridge.questions.singular_point import SingularPoint, singular_point


def register(app: typer.Typer) -> None:
    @app.command("singular-point")
    def command(
        spec: Annotated[
            str, typer.Argument(help="A model, e.g. 'mlp(widths=[2,2,3],r=2)' or 'map:t->t^2;t^3'.")
        ],
        at: Annotated[
            Path | None, typer.Option("--at", help="weights.json: parameter names to matrices.")
        ] = None,
        stratum: Annotated[
            str | None,
            typer.Option("--stratum", help="Random weights of given ranks: rank_a=1,rank_v=2 or m1=rank1."),
        ] = None,
        max_degree: Annotated[
            int | None, typer.Option("--max-degree", min=1, help="How far to look for equations.")
        ] = None,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = "10m",
        memory: common.MemoryOption = "4G",
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
        evidence: common.EvidenceOption = False,
    ) -> None:
        """Whether the function of some weights is a singular point of the closure, for any polynomial model.

        Example: m2bridge singular-point 'linear(widths=[2,1,2])'
        """
        if at is not None and stratum is not None:
            raise InputError("give either --at or --stratum, not both")
        model = parse_spec(spec)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        where: Any = at if at is not None else stratum
        with common.Progress(quiet=as_json).shown() as progress, open_engine(engine, warm=True) as opened:
            result = singular_point(
                model,
                at=where,
                engine=opened,
                max_degree=max_degree,
                seed=seed,
                limits=limits,
                keep=keep,
                progress=progress,
            )
        common.finish(
            result,
            as_json=as_json,
            save=save,
            show=lambda console: _show(result, model.title, console, evidence=evidence),
        )


def _show(result: SingularPoint, title: str, console: Console, *, evidence: bool) -> None:
    console.print(f"[bold]Singular point?[/]  {escape(title)}", highlight=False)
    table = Table.grid(padding=(0, 2))
    colour = {"singular": "red", "smooth": "blue", "undecided": "yellow"}[result.verdict]
    table.add_row("verdict", f"[{colour}]{result.verdict}[/], {common.certainty_text(result.certainty)}")
    local = (
        "" if result.local_dim == result.image_dim else f"; at this point {common.maybe(result.local_dim)}"
    )
    table.add_row("dimension", f"{result.image_dim} (affine){local}")
    if result.jacobian_rank is None:
        weights = "the equations of the source have dependent differentials there"
    else:
        known = {True: "critical: ", False: "not critical: ", None: ""}[result.critical]
        weights = f"{known}the differential has rank {result.jacobian_rank}"
    table.add_row("weights", f"{result.at['kind']}; {weights}")
    table.add_row(
        "tangent space", f"at least {result.tangent_lower}, at most {common.maybe(result.tangent_upper)}"
    )
    table.add_row("equations", common.maybe(result.completeness))
    console.print(table)
    common.print_grounds(result, console, evidence=evidence, over="over QQ")
