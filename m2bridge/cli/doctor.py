"""CLI: ``m2bridge doctor``: which Macaulay2 is used here, which are passed over, and why."""

from __future__ import annotations

import platform
import sys
from typing import Annotated, Any

import typer

from m2bridge._version import __version__
from m2bridge.cli.common import EngineOption, JsonOption, console, print_json
from m2bridge.cli.engine import candidate_document, candidate_table
from m2bridge.engine import machine
from m2bridge.engine.discovery import ADVICE, candidates
from m2bridge.engine.install import wheel_available
from m2bridge.engine.keeping.sandbox import measured
from m2bridge.errors import NoEngineError


def register(app: typer.Typer) -> None:
    @app.command("doctor")
    def command(
        engine: EngineOption = None,
        as_json: JsonOption = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing, only exit 0 or 4.")] = False,
    ) -> None:
        """Say which Macaulay2 is used, what else was tried, and why it was passed over."""
        found = candidates(engine, fresh=True)
        used = next((candidate for candidate in found if candidate.works), None)
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
            "candidates": [candidate_document(candidate) for candidate in found],
            "used": candidate_document(used) if used is not None else None,
            "wheel": {"available": available, "detail": wheel},
        }
        if as_json:
            print_json(document)
        elif not quiet:
            out = console()
            out.print(f"m2bridge {__version__}, Python {platform.python_version()}", markup=False)
            out.print(platform.platform(), markup=False)
            cores, memory = document["allowed_cores"], machine.allowed_memory() / 2**30
            out.print(f"may use: cores {cores}, memory {memory:.1f} GB", markup=False)
            if sys.platform != "linux":
                out.print(
                    "no fork server and no memory limit on this platform; both need Linux", style="yellow"
                )
            out.print(f"wheel: {wheel}", markup=False)
            out.print(f"sandbox: {_sandbox_text(document['sandbox'])}", markup=False, soft_wrap=True)
            out.print()
            out.print(candidate_table(found) if found else "no Macaulay2 in any of the usual places")
        if used is None:
            if quiet or as_json:
                raise typer.Exit(NoEngineError.exit_code)
            out.print()
            out.print(ADVICE, markup=False)
            raise typer.Exit(NoEngineError.exit_code)


_HOLDS = {
    "files_cannot_be_written": "cannot write files",
    "no_tcp_sockets": "cannot open TCP sockets",
    "no_udp_sockets": "cannot open UDP sockets",
    "no_unix_sockets": "cannot open Unix sockets",
    "environment_hidden": "cannot read this process's environment",
}


def _sandbox_text(sandbox: dict[str, int]) -> str:
    """What a script in Macaulay2 cannot do here and what it can, as it was just tried."""
    version = sandbox.get("landlock")
    name = f"Landlock {version}" if sandbox.get("landlock_on") else "no Landlock"
    filtered = "seccomp" if sandbox.get("seccomp_on") else "no seccomp filter"
    holds = [text for key, text in _HOLDS.items() if sandbox.get(key)]
    open_ = [text.replace("cannot", "CAN") for key, text in _HOLDS.items() if not sandbox.get(key)]
    return f"{name}, {filtered}; a script {', '.join([*holds, *open_])}"
