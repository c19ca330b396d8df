"""Protocol stage: a run's output becomes checked values, or a clear error.

A script says what it found in lines of the form ``@m2b TAG JSON``, one value a line, as soon as it is known;
``@m2b-step TEXT`` announces a step, and ``@m2b-end COUNT`` is the last word of a complete run, with the number of values
that came before. Everything else on standard output is ignored. JSON is restricted to integers, booleans, null,
strings and lists of these: exact numbers of other kinds travel as strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from m2bridge.engine.base import Outcome, Run
from m2bridge.errors import (
    CrashError,
    EngineError,
    MemoryLimitError,
    NoEngineError,
    OutputError,
    OutputLimitError,
    ScriptError,
    TimeLimitError,
)
from m2bridge.frontends.polynomials import exponents_of

TAGS = "a tag is a lower-case letter, then lower-case letters, digits and underscores"
_VALUE = re.compile(r"@m2b ([a-z][a-z0-9_]*) (.*)")
_BAD_TAG = re.compile(r"@m2b (\S+) .*")
_END = re.compile(r"@m2b-end ([0-9]{1,9})")
_STEP = re.compile(r"@m2b-step (.*)")
_ERROR = re.compile(
    r"^(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)[^\n]*?: error: (?P<error>.*)$", re.MULTILINE
)
_PLACE = re.compile(r"^(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)", re.MULTILINE)
_DETAIL = re.compile(r"\n(?:--|(?=  ))(?P<detail>.*)")
"""A further line of an error: 1.21 begins it with two dashes, 1.26 indents it."""
_UNMATCHED = re.compile(
    r"\n(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)[^\n]*?: error:\s+\.\.\. to match this"
)
_LONGEST_DETAIL = 300
_DEEPEST_VALUE = 16
"""Levels of nested lists in a value that a script emits."""


class Values(dict[str, Any]):
    """The values a script emitted, by tag; `complete` when the script reached its last line."""

    def __init__(self, entries: Mapping[str, Any], complete: bool, run: Run) -> None:
        super().__init__(entries)
        self.complete, self.run = complete, run

    def __missing__(self, tag: str) -> NoReturn:
        raise OutputError(f"script {self.run.script.name} did not emit {tag!r}", run=self.run)

    def get(self, tag: str, default: Any = None) -> Any:
        return super().get(tag, default)

    def _checked(self, tag: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
        value = self[tag]
        if not fits(value):
            raise OutputError(f"{tag} should be {wanted}, the script emitted {value!r}", run=self.run)
        return value

    def integer(self, tag: str) -> int:
        """The value of `tag`, which must be an integer."""
        return int(self._checked(tag, "an integer", lambda value: type(value) is int))

    def integers(self, tag: str) -> tuple[int, ...]:
        """The value of `tag`, which must be a list of integers."""
        return tuple(self._checked(tag, "a list of integers", lambda value: _is_list_of(int, value)))

    def strings(self, tag: str) -> tuple[str, ...]:
        """The value of `tag`, which must be a list of strings."""
        return tuple(self._checked(tag, "a list of strings", lambda value: _is_list_of(str, value)))

    def polynomials(self, listed: Any, count: int, p: int = 0) -> list[dict[tuple[int, ...], Any]]:
        """Polynomials in `count` variables, emitted by ``listsOf`` of the partial _emit: residues for p > 0, else Fractions."""
        try:
            return [
                {
                    exponents_of(variables, count): int(text) % p if p else Fraction(text)
                    for text, variables in zip(coefficients, monomials, strict=True)
                }
                for coefficients, monomials in listed
            ]
        except (ValueError, TypeError, IndexError) as error:
            name = self.run.script.name
            raise OutputError(
                f"script {name} emitted what is no list of polynomials: {error}", run=self.run
            ) from None


def _is_list_of(kind: type, value: Any) -> bool:
    """A list whose entries are of exactly this type: true is no integer."""
    return isinstance(value, list) and all(type(item) is kind for item in value)


def step_of(line: str) -> str | None:
    """The step that a line of output announces, or None."""
    match = _STEP.fullmatch(line)
    return match.group(1) if match else None


def parse(run: Run) -> Values:  # noqa: C901 -- one message for each way in which output can be wrong
    """Values in a run's output, complete or cut off.

    Raises
    ------
    OutputError
        A tagged line is malformed, a tag is emitted twice, or the count in the last line is wrong.
    """
    entries: dict[str, Any] = {}
    complete = False
    *lines, cut_off = run.stdout.split("\n")  # what follows the last newline is an unfinished line
    for number, line in enumerate(lines, start=1):

        def wrong(message: str, number: int = number) -> OutputError:
            return OutputError(message, run=run, line_number=number)

        if not line.startswith("@m2b"):
            continue
        if complete:
            raise wrong(f"output line {number} comes after the last one")
        if match := _VALUE.fullmatch(line):
            tag, text = match.groups()
            if tag in entries:
                raise wrong(f"output line {number} emits {tag!r} a second time")
            try:
                entries[tag] = _exact_value(text)
            except (ValueError, RecursionError) as error:
                raise wrong(f"output line {number} holds no exact value ({error}): {text[:80]!r}") from None
        elif match := _END.fullmatch(line):
            if int(match.group(1)) != len(entries):
                raise wrong(f"the script emitted {match.group(1)} values, {len(entries)} arrived")
            complete = True
        elif not _STEP.fullmatch(line):
            hint = f"; {TAGS}" if _BAD_TAG.fullmatch(line) else ""
            raise wrong(f"output line {number} is malformed: {line[:80]!r}{hint}")
    if complete and cut_off.startswith("@m2b"):
        raise OutputError("output goes on after the last line", run=run, line_number=len(lines) + 1)
    return Values(entries, complete, run)


def _exact_value(text: str) -> Any:
    """The integers, booleans, nulls, strings and lists of these that a text holds; anything else is a ValueError."""

    def refuse(_: str) -> NoReturn:
        raise ValueError("not an exact value")

    value = json.loads(text, parse_float=refuse, parse_constant=refuse)
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > _DEEPEST_VALUE:
            raise ValueError("nested too deeply")
        if isinstance(item, dict):
            raise ValueError("objects are not allowed")
        if isinstance(item, str):
            item.encode()  # a lone surrogate is no text: UnicodeEncodeError is a ValueError
        if isinstance(item, list):
            waiting += [(inner, depth + 1) for inner in item]
    return value


def read(run: Run) -> Values:
    """Values of a run that finished and said so; anything else is an error of its own type.

    The partial values of a run that reached a limit are in the error's field ``values``.
    """
    if not run.began:
        raise NoEngineError(f"no Macaulay2 took script {run.script.name}: {run.stderr.strip()}", run=run)
    if run.outcome is not Outcome.FINISHED:
        raise _failure(run)
    values = parse(run)
    if not values.complete:
        name = run.script.name
        raise OutputError(
            f"the output of script {name} is truncated: its last line is missing; a template should end with emitEnd()",
            run=run,
        )
    return values


def _failure(run: Run) -> EngineError:
    name, after = run.script.name, f"after {run.seconds:.1f} s"
    try:
        values: Values | None = parse(run)
    except OutputError:
        values = None
    if run.outcome is Outcome.TIMED_OUT:
        message = f"script {name} was stopped {after} by its time limit; allow more with --timeout"
        return TimeLimitError(message, run=run, values=values, seconds=run.seconds)
    if run.outcome is Outcome.OUT_OF_MEMORY:
        message = f"script {name} ran out of memory {after}; allow more with --memory"
        return MemoryLimitError(message, run=run, values=values, bytes=run.limits.memory_bytes)
    if run.outcome is Outcome.TOO_MUCH_OUTPUT:
        message = f"script {name} was stopped {after}: it printed more than {run.limits.output_bytes} bytes"
        return OutputLimitError(message, run=run, values=values, bytes=run.limits.output_bytes)
    if run.outcome is Outcome.CRASHED:
        what = "was lost" if run.signal is None else f"died of signal {run.signal}"
        return CrashError(f"Macaulay2 {what} in script {name} {after}", run=run, signal=run.signal)
    if match := _ERROR.search(run.stderr):
        return _script_error(run, match)
    tail = run.stderr.strip().splitlines()[-1:] or ["(nothing on standard error)"]
    return ScriptError(
        f"Macaulay2 stopped in script {name} with exit status {run.exit_status}: {tail[0]}",
        run=run, error=tail[0], file=None, line=None, column=None,
    )  # fmt: skip


def _script_error(run: Run, match: re.Match[str]) -> ScriptError:
    """The error at its place in the script.

    That is a line of the back trace when one of Macaulay2's own files raised the error, and the bracket that is not closed.
    """
    name = run.script.name
    places = _PLACE.finditer(run.stderr, match.start())
    place = next((m for m in places if m["file"].rpartition("/")[2] == f"{name}.m2"), match)
    raised = "" if place["file"] == match["file"] else f" (raised in {match['file'].rpartition('/')[2]})"
    details, end = [match["error"]], match.end()
    while detail := _DETAIL.match(run.stderr, end):
        details.append(detail["detail"])
        end = detail.end()
    if opened := _UNMATCHED.match(run.stderr, end):
        place = opened
        details.append("to match this")
    said = " ".join(" ".join(details).split())[:_LONGEST_DETAIL]
    return ScriptError(
        f"Macaulay2 stopped in script {name}, line {place['line']}, column {place['column']}{raised}: {said}",
        run=run, error=match["error"], said=said, file=place["file"], line=int(place["line"]), column=int(place["column"]),
    )  # fmt: skip
