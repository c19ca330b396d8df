"""Declare a figure: a function from a request to a drawing. The command line adds the options that figures share.

A figure is announced by an entry point of the group ``m2bridge.figures``, those of m2bridge as those of other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from m2bridge import records
from m2bridge.errors import DisagreementError, InputError
from m2bridge.families import Model
from m2bridge.figures.plotting import STATIC
from m2bridge.results import Result

GROUP = "m2bridge.figures"
R = TypeVar("R", bound=Result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A computed figure: how it is drawn into a file, its data as a document and as a table, and a sentence about it."""

    draw: Callable[[Path], None]
    document: Mapping[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRequest:
    """The request of a user: a model, or records to draw instead of computing.

    `answer` asks a question with the engine, the limits and the seed of the request: ``answer(dimension, model)``.
    """

    model: Model | None
    recorded: tuple[Result, ...]
    seed: int
    answer: Callable[..., Any]

    def result(self, kind: type[R]) -> R:
        """Return the recorded result of this type; raise InputError unless there is one."""
        matching = [result for result in self.recorded if isinstance(result, kind)]
        if len(matching) != 1:
            raise InputError(f"this figure requires one record of {kind.ANALYSIS}, not {len(matching)}")
        return matching[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the command line.

    Attributes
    ----------
    compute: takes a request and the options of this figure, which are parameters with annotations of typer; its docstring is
        the help text.
    kinds: results that ``--record`` accepts; empty if the figure is always computed.
    takes: further options of questions: ``model``, ``prime``, ``engine`` (with the limits), ``force``, ``save``.
    formats: suffixes of files that it can be written to.
    """

    compute: Callable[..., Drawing]
    kinds: tuple[type[Result], ...] = ()
    takes: frozenset[str] = frozenset()
    formats: tuple[str, ...] = STATIC


def load_results(paths: Sequence[Path], kinds: tuple[type[Result], ...]) -> tuple[Result, ...]:
    """Load records and check that they are results of the given types."""
    loaded = []
    for path in paths:
        result = records.load(path)
        if not isinstance(result, kinds):
            expected = " or ".join(kind.ANALYSIS for kind in kinds)
            raise InputError(
                f"--record {path} is a record of {result.ANALYSIS}; this figure requires {expected}"
            )
        check_agreement(result)
        loaded.append(result)
    return tuple(loaded)


def check_agreement(result: Result) -> None:
    """Raise DisagreementError if the witnesses of a result disagree."""
    if result.agreement is False:
        raise DisagreementError(
            f"the witnesses of {result.ANALYSIS} {result.model} disagree: nothing is drawn",
            conflicts=result.conflicts,
        )
