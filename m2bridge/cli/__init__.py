"""The command line: argument parsing and printing only. Files with ``register(app)`` hold the commands.

The list of commands is printed without the option parser, which takes longer to import than everything else that it needs.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from m2bridge._version import __version__
from m2bridge.errors import DisagreementError, InputError, M2BridgeError, in_ascii, visible

if TYPE_CHECKING:
    import typer

COMMANDS = {
    "figure": (
        "figure",
        "Draw the paper's figures from computed data: 1, theorem-3.4, 3; slices, loss landscapes, a sweep of your own.",
    ),
    "models": ("models", "List the families of models by kind, with an example of each."),
    "verify": (
        "verify",
        "Check every statement of the paper by computation, with an exact witness for each that fails.",
    ),
    "explain": (
        "records",
        "Explain a record: what was asked, what was found, what it rests on, and a Macaulay2 script that asks again.",
    ),
    "cite": (
        "records",
        "Cite a record: one LaTeX sentence that says what it holds, and BibTeX for what the sentence names.",
    ),
    "report": (
        "records",
        "Write records as one self-contained HTML page: answers, how each was obtained, scripts, how to cite.",
    ),
    "template": ("template", "Run a Macaulay2 template of your own and print the values it emits."),
    "check": (
        "records",
        "Verify the certificate in a record.",
    ),
    "batch": (
        "batch",
        "Run a thousand jobs: cached, limited, resumable. Running the same command again continues.",
    ),
    "worker": (
        "worker",
        "Read job documents on standard input, write attempt documents on standard output, one JSON object a line.",
    ),
    "status": (
        "status",
        "What the batches of a store are doing now, and how many records of each outcome it has.",
    ),
    "results": (
        "results",
        "List what a store holds. Names in --where: columns, the model's arguments, the quantities of the results, tags.",
    ),
    "schema": ("records", "Print the JSON Schema of what an analysis prints with --json."),
    "doctor": ("engine", "Say which Macaulay2 is used, what else was tried, and why it was passed over."),
    "engine": ("engine", "Install, list or remove a Macaulay2 in your data directory."),
    "mcp": (
        "mcp",
        "Offer every question as a tool of the Model Context Protocol, on standard input and output.",
    ),
    "describe": (
        "models",
        "Say what is known about a model: parameters, target, symmetries, formula and hypotheses.",
    ),
}
"""Commands that are no questions, in the order of ``--help``: the module of this package that registers each, and what it does. A
test compares the sentences with the commands' own."""

REPLACED = {
    "hilbert-series": "the Hilbert series is a field of closure: m2bridge closure SPEC",
    "canonical": "m2bridge same compares two sets of weights, and m2bridge symmetries lists the symmetries",
    "licenses": "the container image holds the list of its licences in /opt/m2bridge/LICENSES.txt",
    "render": "the option --script of a question prints its Macaulay2 script: m2bridge QUESTION SPEC --script",
}
"""Removed commands, and what to use instead; a name counts as removed once no question and no command has it."""

REPLACED_OPTIONS = {
    "--estimate": "the option --timeout bounds the time, and what was found before is printed"
}
"""Removed options of commands, and what to use instead."""

EXIT_CODES = """\
Exit codes: 0 answered (a theorem that fails is an answer); 1 unexpected error; 2 usage or bad input; 3 witnesses disagree; \
4 no Macaulay2; 5 a limit was reached, what was found is printed; 6 a recorded verdict changed; 7 a certificate was rejected; \
8 nothing is proved, or not known to the checker; 130 interrupted."""

HELP = Path(__file__).parents[1] / "data" / "help"
"""The help of every question of this package as a text; :mod:`m2bridge.cli.help` writes it."""
SUMMARY = "From a polynomial network to its geometry, with proof."
_OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "-h, --help": "Show this message and exit.",
}


def command_sentences() -> dict[str, str]:
    """What each command that is no question does."""
    return {name: sentence for name, (_, sentence) in COMMANDS.items()}


def listing() -> str:
    """What ``m2bridge --help`` prints: every question and command with its sentence, as wide as the terminal."""
    import shutil
    import textwrap

    from m2bridge.questions import sentences

    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120))
    groups = {
        "Options": _OPTIONS,
        "Questions": sentences(),
        "Commands": command_sentences(),
    }
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
    """The application with the commands of these names; with all of them, whose import takes a second, unless they are given."""
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
    wanted = [*sentences(), *COMMANDS] if names is None else list(names)
    for module in dict.fromkeys(COMMANDS[name][0] for name in wanted if name in COMMANDS):
        importlib.import_module(f"m2bridge.cli.{module}").register(app)
    for name in wanted:
        if name not in COMMANDS:
            importlib.import_module("m2bridge.cli.questions").register(app, name)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; 141 when a reader has closed the pipe, as for other programs."""
    nowhere = open(os.devnull, "r+")  # noqa: SIM115 # in place of a closed stream, until the end
    sys.stdin = sys.stdin or nowhere
    sys.stdout, sys.stderr = streams = sys.stdout or nowhere, sys.stderr or nowhere
    codecs.register_error("m2bridge", in_ascii)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors="m2bridge")
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
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


def _run(given: list[str]) -> int:
    """Run what was given; whatever goes wrong becomes a line on standard error and an exit code."""
    try:
        return _dispatch(given)
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
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # of the option parser, too
            return _complain_of_usage(error)
        if os.environ.get("M2BRIDGE_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror:  # a full disk, a directory that is gone
            _complain(": ".join(map(str, filter(None, (error.filename, error.strerror)))))
            return 1
        what = f"{type(error).__name__}: {error}"
        _complain(f"unexpected error: {what} (set M2BRIDGE_DEBUG=1 for the traceback)")
        return 1


def _dispatch(given: list[str]) -> int:
    from m2bridge.questions import QUESTIONS, sentences

    completing = any(name.startswith("_M2BRIDGE_COMPLETE") for name in os.environ)
    if not completing and (not given or given[0] in ("-h", "--help")):
        print(listing())
        return 0 if given else 2
    if given[:1] == ["--version"]:
        print(f"m2bridge {__version__}")
        return 0
    named = [given[0]] if given and not given[0].startswith("-") else []
    if not completing and _asks_help(given) and given[0] in QUESTIONS:
        print((HELP / f"{given[0]}.txt").read_text(encoding="utf-8"), end="")
        return 0
    ours = {*QUESTIONS, *COMMANDS}
    if not completing and named and named[0] not in ours and named[0] not in sentences():
        if named[0] in REPLACED:
            raise InputError(f"There is no command {named[0]!r}: {REPLACED[named[0]]}")
        from m2bridge.errors import suggestion

        raise InputError(
            f"No such command {named[0]!r}; {suggestion(named[0], sorted({*ours, *sentences()}))} (see m2bridge --help)"
        )
    import typer

    command = typer.main.get_command(build_app(None if completing else named))
    code = command.main(args=given, prog_name="m2bridge", standalone_mode=False)
    if code == 130:  # the option parser turns an interrupt into this code, without a word
        _complain("interrupted")
    return code if isinstance(code, int) else 0


def _asks_help(given: list[str]) -> bool:
    """Whether nothing is asked but the help of a command; more words could make ``--help`` the value of an option."""
    return given[1:] in (["-h"], ["--help"])


def _complain_of_usage(error: Exception) -> int:
    """A line about what the option parser refused: where the help is, and for a group of commands which there are."""
    message, context = getattr(error, "format_message")(), getattr(error, "ctx", None)  # noqa: B009
    if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help of a group of commands
        print(message)
        return 2
    where = "m2bridge" if context is None else context.command_path
    if message.startswith("No such command") and "Did you mean" not in message and context is not None:
        message = f"{message.rstrip('.')}; there are: {', '.join(context.command.list_commands(context))}"
    option = getattr(error, "option_name", "")
    if option in REPLACED_OPTIONS:
        message = f"No such option: {option}; {REPLACED_OPTIONS[option]}"
    _complain(f"{message.rstrip('.')} (see {where} --help)")
    return int(getattr(error, "exit_code"))  # noqa: B009


def _complain(message: str) -> None:
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    print("m2bridge: " + visible(" | ".join(lines)), file=sys.stderr)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def entry() -> None:
    """The console script.

    Told to end, a command ends like any program. Its environment may hold secrets, which a script in Macaulay2 has no
    business to read; the list of commands runs nothing and is quicker without hiding it.
    """
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    try:
        if not all(word.startswith("-") for word in sys.argv[1:]) and not _asks_help(sys.argv[1:]):
            from m2bridge.engine.keeping.sandbox import hide_environment

            hide_environment()
        code = main()
    except KeyboardInterrupt:  # before or after everything that a command does
        _complain("interrupted")
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # now it would only turn the exit code into a death
    sys.exit(code)
