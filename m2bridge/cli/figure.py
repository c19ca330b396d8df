"""CLI: build the commands of ``m2bridge figure`` from the declared figures.

A figure is written to a file, with its data in JSON and CSV files beside it, or without data to standard output (``-o -``).
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from m2bridge import records
from m2bridge.cli import COMMANDS, common
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.figures import plotting
from m2bridge.figures.declaration import (
    GROUP,
    Drawing,
    Figure,
    FigureRequest,
    check_agreement,
    load_results,
)
from m2bridge.results import Result

_ORDER = ("1", "theorem-3.4", "3", "slice", "landscape")
_FILE = (
    "Output file; its suffix selects the format: {}. The data are written beside it as JSON and CSV. "
    "With - the figure alone is written to standard output, see --format."
)
_SPEC = "Model, e.g. 'lightning(d=2,dp=1)' or 'map:s,t->s*t;s;t^2'."
_RECORD = "Draw a saved record instead of computing; may be repeated."
_SHARED: dict[str, tuple[Any, Any]] = {
    "picture": (
        Annotated[str | None, typer.Option("--format", help="Format on standard output; default: png.")],
        None,
    ),
    "spec": (Annotated[str | None, typer.Argument(help=_SPEC)], None),
    "record": (Annotated[list[Path] | None, typer.Option("--record", help=_RECORD)], None),
    "force": (common.ForceOption, False),
}
_OPTIONS = {"model": ("spec", "d", "dp", "a"), "engine": ("timeout", "memory", "engine")}
"""The options that stand for one entry of `takes`; others stand for themselves."""


def register(app: typer.Typer) -> None:
    figures = common.group_of(app, "figure", COMMANDS["figure"])
    points = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted(
        points, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
    ):
        figures.command(name)(_command(points[name].load()))


def _command(figure: Figure) -> Any:
    """Return the command of a figure: its own options, then those that it shares with others."""

    def command(**arguments: Any) -> None:
        _run(figure, {name: arguments.pop(name) for name in figure_options}, arguments)

    figure_options = dict(inspect.signature(figure.compute, eval_str=True).parameters)
    del figure_options[next(iter(figure_options))]  # the request
    parameters = {
        name: (parameter.annotation, parameter.default) for name, parameter in figure_options.items()
    }
    names = [suffix.lstrip(".") for suffix in figure.formats]
    output = typer.Option("-o", "--output", help=_FILE.format(f"{', '.join(names[:-1])} or {names[-1]}"))
    shared: dict[str, tuple[Any, Any]] = {"output": (Annotated[Path, output], inspect.Parameter.empty)}
    wanted = ["record"] * bool(figure.kinds) + ["picture", "seed"]
    wanted += [name for entry in sorted(figure.takes) for name in _OPTIONS.get(entry, (entry,))]
    shared |= {name: _SHARED.get(name) or common.OPTIONS[name] for name in wanted}
    command.__doc__ = figure.compute.__doc__
    return common.with_parameters(command, {**shared, **parameters})


def _run(figure: Figure, figure_options: dict[str, Any], shared: dict[str, Any]) -> None:
    """Compute a figure, draw it, write its data and report what it shows."""
    destination = Destination(shared["output"], shared["picture"], figure.formats)
    common.check_directories(save=shared.get("save"))
    with ExitStack() as stack:
        request = _request(figure, shared, stack)
        drawing = figure.compute(request, **figure_options)
    with destination.file() as file:
        drawing.draw(file)
    destination.add_data(drawing)
    if drawing.message is not None:
        destination.report(drawing.message)


def _request(figure: Figure, shared: dict[str, Any], stack: ExitStack) -> FigureRequest:
    recorded = load_results(shared.get("record") or (), figure.kinds)
    model = None
    if "model" in figure.takes:
        if recorded and shared["spec"] is not None:
            raise InputError("give either a model or --record, not both")
        if not recorded:
            model = common.model_from(shared["spec"], shared["d"], shared["dp"], shared["a"], None)
    options: dict[str, Any] = {name: shared[name] for name in ("seed", "prime", "force") if name in shared}
    if "engine" in figure.takes:
        options["limits"] = common.parse_limits(shared["timeout"], shared["memory"])

    def answer(question: Any, subject: Any, **more: Any) -> Result:
        if "engine" in figure.takes and "engine" not in options:
            options["engine"] = stack.enter_context(open_engine(shared["engine"], warm=True))
        if "progress" not in options:
            options["progress"] = stack.enter_context(common.shown_steps(quiet=False))
        allowed = {"prime": question.takes_prime, "force": "force" in question.options}
        accepted = {name: value for name, value in options.items() if allowed.get(name, True)}
        result: Result = question(subject, **accepted, **more)
        check_agreement(result)
        if shared.get("save") is not None:
            records.save(result, shared["save"])
        return result

    return FigureRequest(model=model, recorded=recorded, seed=shared["seed"], answer=answer)


class Destination:
    """Output file of a figure, or standard output; checked before any computation.

    `picture` is the value of ``--format``, which is valid for standard output only; `allowed` are the possible file suffixes.
    """

    def __init__(self, output: Path, picture: str | None, allowed: Sequence[str]) -> None:
        self.path = None if output == Path("-") else output
        if self.path is not None:
            if picture is not None:
                raise InputError(f"--format is only for -o -; the suffix of {output} selects the format")
            plotting.check_output(self.path, allowed)
            return
        self.ending = f".{(picture or 'png').lower()}"
        if self.ending not in allowed:
            formats = ", ".join(ending.lstrip(".") for ending in allowed)
            raise InputError(f"--format {picture}: use one of {formats}")
        if sys.stdout.isatty():
            raise InputError(
                "-o - writes a picture to standard output, which is a terminal; redirect it to a file with >"
            )
        plotting.check_output(Path(tempfile.gettempdir()) / f"picture{self.ending}", allowed)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Yield the path to draw into. A figure for standard output is drawn into a temporary file and then copied."""
        if self.path is not None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="m2bridge-") as directory:
            path = Path(directory) / f"picture{self.ending}"
            yield path
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()

    def add_data(self, drawing: Drawing) -> None:
        """Write the data beside the figure and report the file names; do nothing for standard output."""
        if self.path is not None:
            data_files = plotting.write_data(self.path, drawing.document, drawing.columns, drawing.rows)
            self.report(f"{self.path} (data: {', '.join(path.name for path in data_files)})")

    def report(self, message: str) -> None:
        """Print a message on standard output, or on standard error if the figure goes to standard output."""
        typer.echo(message, err=self.path is None)
