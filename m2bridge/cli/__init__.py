"""Parse the arguments of the command line and print results. Each module with a function ``register(app)`` adds commands.

``m2bridge --help`` is printed without importing the option parser, because that import takes most of the time.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from m2bridge._version import __version__
from m2bridge.errors import DisagreementError, InputError, M2BridgeError, in_ascii, visible

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "figure": "Draw the figures of the paper from computed data (1, theorem-3.4, 3), slices and loss landscapes.",
    "models": "List the families of models, with an example of each.",
    "verify": "Check the statements of a paper by computation; print an exact counterexample for each that fails.",
    "explain": "Explain a record: the question, the answer, its evidence, and a Macaulay2 script that reproduces it.",
    "cite": "Print a LaTeX sentence that states the result of a record, and the BibTeX entries that it cites.",
    "report": "Write records as one self-contained HTML page: answers, evidence, scripts and citations.",
    "template": "Run a user-written Macaulay2 template and print the values that it emits.",
    "check": "Verify the certificate in a record.",
    "batch": "Run the jobs of a job file. Results are cached; running the same command again continues.",
    "worker": "Read jobs from standard input and write their results to standard output, one JSON object per line.",
    "status": "Show the progress of the batches of a store, and its number of records per outcome.",
    "results": "List the records of a store as a table, CSV or JSON.",
    "schema": "Print the JSON Schema of the --json output of a question.",
    "doctor": "Show which Macaulay2 and msolve are used, which others were found, and why they are not used.",
    "engine": "Install or remove Macaulay2 and msolve; print the directory of the Macaulay2 library.",
    "describe": "Describe a model: parameters, coordinates, symmetries, and the dimension formula with its hypotheses.",
}
"""Commands other than questions, in the order of ``--help``, and their descriptions. A test compares these with the docstrings of
the commands."""
_MODULES = dict.fromkeys(("explain", "cite", "report", "check", "schema"), "records")
_MODULES |= {"doctor": "engine", "describe": "models"}
"""The module that registers a command, if it has another name than the command."""

EXIT_CODES = """\
Exit codes: 0 answered (also if `verify` finds a statement false); 1 unexpected error; 2 usage or bad input; \
3 witnesses disagree; 4 no Macaulay2; 5 a limit was reached, partial results are printed; 6 a recorded verdict changed; \
7 a certificate was rejected; 8 no certificate, or not supported by the checker; 9 a certificate covers only \
a part of the answer; 130 interrupted; 141 the reader of the output closed the pipe; 143 terminated (SIGTERM)."""

HELP_DIRECTORY = Path(__file__).parents[1] / "data" / "help"
"""Directory of the help texts of the questions, written by :mod:`m2bridge.cli.help`."""
SUMMARY = "Compute the geometry of the functions of a neural network, with evidence for each number."
_OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "-h, --help": "Show this message and exit.",
}


def help_text() -> str:
    """Return what ``m2bridge --help`` prints: every question and command with its description, wrapped to the terminal."""
    import shutil
    import textwrap

    from m2bridge.questions import sentences

    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120))
    groups = {"Options": _OPTIONS, "Questions": sentences(), "Commands": COMMANDS}
    column = 4 + max(len(name) for names in groups.values() for name in names)
    lines = ["Usage: m2bridge [OPTIONS] COMMAND [ARGS]...", "", SUMMARY]
    for group, names in groups.items():
        lines += ["", f"{group}:"]
        for name, text in names.items():
            first = f"  {name}".ljust(column)
            lines.append(
                textwrap.fill(text or name, width, initial_indent=first, subsequent_indent=" " * column)
            )
    return "\n".join([*lines, "", textwrap.fill(EXIT_CODES, width)])


def build_app(names: Iterable[str] | None = None) -> typer.Typer:
    """Return the application with the commands `names`, by default all of them. (Importing all takes about a second.)"""
    import typer

    from m2bridge.questions import sentences

    app = typer.Typer(
        name="m2bridge",
        help=SUMMARY,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help is read at 80 columns, and printed in a third of the time
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    app.callback()(lambda: None)
    names = [*sentences(), *COMMANDS] if names is None else list(names)
    for module in dict.fromkeys(_MODULES.get(name, name) for name in names if name in COMMANDS):
        importlib.import_module(f"m2bridge.cli.{module}").register(app)
    for name in names:
        if name not in COMMANDS:
            importlib.import_module("m2bridge.cli.questions").register(app, name)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, which is 141 if the reader of the output closed the pipe."""
    started = time.monotonic()
    null = open(os.devnull, "r+")  # noqa: SIM115 # replaces a closed standard stream until the process ends
    sys.stdin = sys.stdin or null
    sys.stdout = sys.stdout or null
    sys.stderr = sys.stderr or null
    streams = (sys.stdout, sys.stderr)
    codecs.register_error("m2bridge", in_ascii)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors="m2bridge")
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments), started)
        for stream in streams:
            stream.flush()
        return code
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        sys.stdout, sys.stderr = streams  # the option parser replaced them by wrappers
        for stream in streams:
            _redirect_if_closed(stream)
        return 141


def _redirect_if_closed(stream: TextIO) -> None:
    """Redirect a stream whose reader is gone to the null device, so that flushing it at exit does not fail."""
    try:
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str], started: float) -> int:  # noqa: C901, PLR0911 -- one case for each kind of error, with its exit code
    """Run a command that began at `started`. Report every error as one line on standard error and return its exit code."""
    try:
        return _dispatch(arguments, started)
    except M2BridgeError as error:
        _report_error(str(error))
        if isinstance(error, DisagreementError):
            for conflict in error.fields.get("conflicts", ()):
                _report_error(str(conflict))
        return error.exit_code
    except KeyboardInterrupt:
        _report_error("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if type(error).__name__ == "Abort":  # raised by the option parser
            _report_error("interrupted")
            return 130
        # Usage errors of the option parser have these attributes.
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            return _report_usage_error(error)
        if os.environ.get("M2BRIDGE_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror:  # for example a full disk
            _report_error(": ".join(map(str, filter(None, (error.filename, error.strerror)))))
            return 1
        description = f"{type(error).__name__}: {error}"
        _report_error(f"unexpected error: {description} (set M2BRIDGE_DEBUG=1 for the traceback)")
        return 1


def _dispatch(arguments: list[str], started: float) -> int:
    """Print a help text without the option parser if that suffices; otherwise build the named command and run it."""
    from m2bridge.questions import QUESTIONS, sentences

    completing = any(name.startswith("_M2BRIDGE_COMPLETE") for name in os.environ)
    if not completing and (not arguments or arguments[0] in ("-h", "--help")):
        print(help_text())
        return 0 if arguments else 2
    if arguments[:1] == ["--version"]:
        print(f"m2bridge {__version__}")
        return 0
    names = [arguments[0]] if arguments and not arguments[0].startswith("-") else []
    if not completing and _is_help_request(arguments) and arguments[0] in QUESTIONS:
        print((HELP_DIRECTORY / f"{arguments[0]}.txt").read_text(encoding="utf-8"), end="")
        return 0
    builtin = {*QUESTIONS, *COMMANDS}
    if not completing and names and names[0] not in builtin and names[0] not in sentences():
        from m2bridge.errors import suggestion

        raise InputError(
            f"No such command {names[0]!r}; {suggestion(names[0], sorted({*builtin, *sentences()}))} (see m2bridge --help)"
        )
    import typer

    command = typer.main.get_command(build_app(None if completing else names))
    code = command.main(args=arguments, prog_name="m2bridge", standalone_mode=False, obj=started)
    if code == 130:  # the option parser returns this code after an interrupt, without a message
        _report_error("interrupted")
    return code if isinstance(code, int) else 0


def _is_help_request(arguments: list[str]) -> bool:
    """Return whether ``--help`` is the only argument after the command; elsewhere it could be the value of an option."""
    return arguments[1:] in (["-h"], ["--help"])


def _report_usage_error(error: Exception) -> int:
    """Report a usage error of the option parser in one line, with a pointer to the help or the list of subcommands."""
    message = getattr(error, "format_message")()  # noqa: B009
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help text of a group of commands
        print(message)
        return 2
    command_path = "m2bridge" if context is None else context.command_path
    if message.startswith("No such command") and "Did you mean" not in message and context is not None:
        message = f"{message.rstrip('.')}; choose from: {', '.join(context.command.list_commands(context))}"
    _report_error(f"{message.rstrip('.')} (see {command_path} --help)")
    return int(getattr(error, "exit_code"))  # noqa: B009


def _report_error(message: str) -> None:
    """Print an error on standard error as a single line without control characters."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    print("m2bridge: " + visible(" | ".join(lines)), file=sys.stderr)


def _exit_on_signal(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def entry() -> None:
    """Run the console script.

    SIGTERM ends a command with exit code 143. The environment, which may hold secrets, is hidden from Macaulay2 scripts; help
    texts run no script and are printed sooner without this step.
    """
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        if not all(word.startswith("-") for word in sys.argv[1:]) and not _is_help_request(sys.argv[1:]):
            from m2bridge.engine.supervisor.sandbox import hide_environment

            hide_environment()
        code = main()
    except KeyboardInterrupt:  # before or after the command itself
        _report_error("interrupted")
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt must not replace the exit code now
    sys.exit(code)
