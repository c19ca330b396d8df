"""CLI: ``m2bridge engine install|list|remove``: the Macaulay2 that m2bridge keeps for itself."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from m2bridge.cli.common import JsonOption, console, print_json
from m2bridge.engine.discovery import Candidate, candidates
from m2bridge.engine.install import PLATFORMS, engines_directory, install, remove


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help=f"Install, list or remove a Macaulay2 in your data directory. There are wheels for {PLATFORMS}.",
        no_args_is_help=True,
    )
    app.add_typer(group, name="engine")

    @group.command("install")
    def install_command(
        again: Annotated[bool, typer.Option("--again", help="Download it even if one is installed.")] = False,
    ) -> None:
        """Download a Macaulay2 (75 MB), prove that it runs, and keep it in your data directory."""
        progress = console(stderr=True)
        path = install(lambda message: progress.print(message, markup=False), again=again)
        print(path)

    @group.command("list")
    def list_command(as_json: JsonOption = False) -> None:
        """List every Macaulay2 on this machine, the one in use first; each is run to see whether it works."""
        found = candidates(fresh=True)
        if as_json:
            print_json([candidate_document(candidate) for candidate in found])
        elif found:
            console().print(candidate_table(found))
        else:
            console().print("no Macaulay2 found; `m2bridge engine install` downloads one", markup=False)

    @group.command("remove")
    def remove_command() -> None:
        """Remove every Macaulay2 that `m2bridge engine install` put into your data directory."""
        gone = remove()
        for directory in gone:
            console().print(f"removed {directory}", markup=False)
        if not gone:
            console().print(f"nothing is installed in {engines_directory()}", markup=False)


def candidate_document(candidate: Candidate) -> dict[str, object]:
    """A candidate as it appears in JSON."""
    return {
        "path": str(candidate.path),
        "origin": candidate.origin,
        "works": candidate.works,
        "version": candidate.info.version if candidate.info is not None else None,
        "reason": candidate.reason,
    }


ORIGINS = {
    "option": "named by you",
    "path": "on PATH",
    "wheel": "site-packages",
    "installed": "engine install",
}


def candidate_table(found: tuple[Candidate, ...]) -> Table:
    """The candidates as a table: the one in use, its path, and the verdict."""
    table = Table(show_edge=False, pad_edge=False)
    for name in ("", "Macaulay2", "from", "verdict"):
        table.add_column(name, overflow="fold")
    used = next((candidate for candidate in found if candidate.works), None)
    for candidate in found:
        verdict = (
            f"[green]{escape(candidate.info.version)} works[/]"
            if candidate.info is not None
            else f"[yellow]passed over: {escape(candidate.reason or '')}[/]"
        )
        mark = "→" if candidate is used else ""
        origin = ORIGINS.get(candidate.origin, candidate.origin)
        table.add_row(mark, escape(str(candidate.path)), origin, verdict)
    return table
