"""The command line: argument parsing and printing only. Files with ``register(app)`` hold the commands.

The list of commands is printed without the option parser and the libraries that it prints with, which take longer to import than
everything else that it needs.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from m2bridge._version import __version__
from m2bridge.cli import first_process
from m2bridge.errors import DisagreementError, InputError, M2BridgeError, in_ascii, visible

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "figure": "figure", "models": "models", "verify": "verify", "explain": "records", "cite": "records", "report": "records",
    "template": "template", "check": "records", "batch": "batch", "worker": "worker", "status": "status", "results": "results",
    "schema": "records", "doctor": "doctor", "engine": "engine", "licenses": "licenses", "mcp": "mcp", "describe": "models",
}  # fmt: skip
"""Commands that are no questions, in the order of ``--help``, and the modules of this package that register them."""

EXIT_CODES = """\
Exit codes: 0 answered (a theorem that fails is an answer); 1 unexpected error; 2 usage or bad input; 3 witnesses disagree; \
4 no Macaulay2; 5 a limit was reached, what was found is printed; 6 a recorded verdict changed; 7 a certificate was rejected; \
8 nothing is proved, or not known to the checker; 130 interrupted."""


SUMMARY = "From a polynomial network to its geometry, with proof."
_OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "-h, --help": "Show this message and exit.",
}


def listing() -> str:
    """What ``m2bridge --help`` prints: every question and command with its sentence, as wide as the terminal."""
    import shutil
    import textwrap

    from m2bridge.questions import sentences

    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    commands = {name: _sentence_of(name) for name in COMMANDS}
    groups = {"Options": _OPTIONS, "Questions": sentences(), "Commands": commands}
    column = 4 + max(len(name) for names in groups.values() for name in names)

    def wrapped(text: str, first: str = "", rest: str = "") -> str:
        return textwrap.fill(text, max(width, 40), initial_indent=first, subsequent_indent=rest)

    lines = ["Usage: m2bridge [OPTIONS] COMMAND [ARGS]...", "", SUMMARY]
    for group, names in groups.items():
        lines += ["", f"{group}:"]
        lines += [
            wrapped(text or name, f"  {name}".ljust(column), " " * column) for name, text in names.items()
        ]
    return "\n".join([*lines, "", wrapped(EXIT_CODES)])


def build_app(wanted: str | None = None, *, whole: bool = False) -> typer.Typer:
    """The application with one command, or with all; unless `whole`, all of them are their names and sentences only.

    Importing everything takes a second, which a single command should not cost.
    """
    import typer

    from m2bridge.questions import sentences

    app = typer.Typer(
        name="m2bridge",
        help=SUMMARY,
        epilog=EXIT_CODES,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root() -> None:
        """From a polynomial network to its geometry, with proof."""

    if whole or wanted in COMMANDS:
        for module in dict.fromkeys(COMMANDS.values() if whole else [COMMANDS[str(wanted)]]):
            importlib.import_module(f"m2bridge.cli.{module}").register(app)
    if whole or wanted in sentences():
        for name in sentences() if whole else [str(wanted)]:
            importlib.import_module("m2bridge.cli.questions").register(app, name)
    elif wanted not in COMMANDS:
        for name, sentence in {**sentences(), **{name: _sentence_of(name) for name in COMMANDS}}.items():
            app.command(name, help=sentence)(lambda: None)
    return app


def _sentence_of(command: str) -> str:
    """What a command does, read from its file."""
    text = (Path(__file__).parent / f"{COMMANDS[command]}.py").read_text(encoding="utf-8")
    named = re.search(rf'command\("{command}"\).*?"""(.+?)(?:"""|\n)', text, re.DOTALL)
    found = named or re.search(r'Typer\(\s*help=f?"(.+?\.)(?=[ "])', text)
    return found[1] if found else ""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; 141 when a reader has closed the pipe, as for other programs."""
    streams = sys.stdout, sys.stderr
    codecs.register_error("m2bridge", in_ascii)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors="m2bridge")
    try:
        code = _run(arguments)
        for stream in streams:
            stream.flush()
        return code
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        sys.stdout, sys.stderr = streams  # the option parser has wrapped them
        for stream in streams:
            _drop_if_closed(stream)
        return 141


def _drop_if_closed(stream: TextIO) -> None:
    """Nothing more is written where nobody reads, not even at the end of the process."""
    try:
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["render"]:  # the older name of --script
        given = [*given[1:], "--script"]
    try:
        if given[-1:] == ["--script"] and given[0].startswith("-"):
            raise InputError("render needs a question: m2bridge render singular-locus --d 2 --dp 1")
        completing = any(name.startswith("_M2BRIDGE_COMPLETE") for name in os.environ)
        if not completing and (not given or given[0] in ("-h", "--help")):
            print(listing())
            return 0 if given else 2
        if given[:1] == ["--version"]:
            print(f"m2bridge {__version__}")
            return 0
        import typer

        command = typer.main.get_command(build_app(given[0] if given else None, whole=completing))
        code = command.main(args=given, prog_name="m2bridge", standalone_mode=False)
        if code == 130:  # the option parser turns an interrupt into this code, without a word
            _complain("interrupted")
        return code if isinstance(code, int) else 0
    except M2BridgeError as error:
        _complain(str(error))
        if isinstance(error, DisagreementError):
            for conflict in error.fields.get("conflicts", ()):
                _complain(str(conflict))
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if type(error).__name__ == "Abort":  # of the option parser
            _complain("interrupted")
            return 130
        if hasattr(error, "format_message") and hasattr(
            error, "exit_code"
        ):  # a usage error of the option parser
            message = error.format_message()
            if not message:  # no arguments at all: the parser has printed the help of a group
                return 2
            _complain(f"{message.rstrip('.')}{_known_commands(error)} (see m2bridge --help)")
            return int(error.exit_code)
        if os.environ.get("M2BRIDGE_DEBUG"):
            raise
        _complain(
            f"unexpected error: {type(error).__name__}: {error} (set M2BRIDGE_DEBUG=1 for the traceback)"
        )
        return 1


def _known_commands(error: Exception) -> str:
    """For a command that does not exist, the nearest one, or all of a small group."""
    context = getattr(error, "ctx", None)
    wrong = re.fullmatch(r"No such command '(.*)'\.", str(getattr(error, "message", "")))
    if context is None or wrong is None:
        return ""

    from m2bridge.models.spec import suggestion

    return f"; {suggestion(wrong[1], context.command.list_commands(context))}"


def _complain(message: str) -> None:
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    print("m2bridge: " + visible(" | ".join(lines)), file=sys.stderr)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def entry() -> None:
    """The console script; as the first process of a container it is in charge of the others.

    Told to end, a command ends like any program. Its environment may hold secrets, which a script in Macaulay2 has no
    business to read.
    """
    if os.getpid() == 1:
        first_process.stay_in_charge()
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    if not all(
        word.startswith("-") for word in sys.argv[1:]
    ):  # not for --help, which runs nothing and shall be quick
        from m2bridge.engine.keeping.sandbox import hide_environment

        hide_environment()
    code = main()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # an interrupt now would only turn the exit code into a death
    sys.exit(code)
