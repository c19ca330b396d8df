"""Read the values in the output of a Macaulay2 script.

A script prints each value in a line ``@m2b TAG JSON`` as soon as it is computed. ``@m2b-step TEXT`` names the current step.
``@m2b-end COUNT`` is the last line of a complete run, with the number of values before it. All other lines of standard output are
ignored. JSON is restricted to integers, booleans, null, strings and lists of these; other exact numbers are written as strings.
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
    LimitError,
    MemoryLimitError,
    NoEngineError,
    OutputError,
    OutputLimitError,
    ScriptError,
    TimeLimitError,
)
from m2bridge.frontends.polynomials import exponents_of
from m2bridge.views import shorten

TAGS = "a tag is a lower-case letter, then lower-case letters, digits and underscores"
_VALUE = re.compile(r"@m2b ([a-z][a-z0-9_]*) (.*)")
_BAD_TAG = re.compile(r"@m2b (\S+) .*")
_END = re.compile(r"@m2b-end ([0-9]{1,9})")
_STEP = re.compile(r"@m2b-step (.*)")
_ERROR = re.compile(
    r"^(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)[^\n]*?: error: (?P<error>.*)$", re.MULTILINE
)
_POSITION = re.compile(r"^(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)", re.MULTILINE)
_DETAIL = re.compile(r"\n(?:--|(?=  ))(?P<detail>.*)")
"""A continuation line of an error message: Macaulay2 1.21 begins it with two dashes, 1.26 indents it."""
_UNMATCHED = re.compile(
    r"\n(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+):\(\d+\)[^\n]*?: error:\s+\.\.\. to match this"
)
_LIMIT_OF_MACAULAY2 = re.compile(
    r"recursion limit of \d+ exceeded|alarm occurred|monomial exponent overflow.*|exponent too large"
)
_LONGEST_DETAIL = 300  # characters of an error of Macaulay2 in a message
_DEEPEST_VALUE = 16
"""The maximal depth of nested lists in a value that a script emits."""


class Values(dict[str, Any]):
    """The values that a script emitted, by tag; `complete` is true if the output has its last line."""

    def __init__(self, entries: Mapping[str, Any], complete: bool, run: Run) -> None:
        super().__init__(entries)
        self.complete = complete
        self.run = run

    def __missing__(self, tag: str) -> NoReturn:
        raise OutputError(f"script {self.run.script.name} did not emit {tag!r}", run=self.run)

    def get(self, tag: str, default: Any = None) -> Any:
        return super().get(tag, default)

    def _checked(self, tag: str, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        value = self[tag]
        if not is_valid(value):
            raise OutputError(f"{tag} must be {expected}; the script emitted {value!r}", run=self.run)
        return value

    def integer(self, tag: str) -> int:
        """Return the value of `tag`, which must be an integer."""
        return int(self._checked(tag, "an integer", lambda value: type(value) is int))

    def integers(self, tag: str) -> tuple[int, ...]:
        """Return the value of `tag`, which must be a list of integers."""
        return tuple(self._checked(tag, "a list of integers", lambda value: _is_list_of(int, value)))

    def strings(self, tag: str) -> tuple[str, ...]:
        """Return the value of `tag`, which must be a list of strings."""
        return tuple(self._checked(tag, "a list of strings", lambda value: _is_list_of(str, value)))

    def polynomials(self, listed: Any, count: int, p: int = 0) -> list[dict[tuple[int, ...], Any]]:
        """Convert the output of ``listsOf`` (partial _emit) to polynomials in `count` variables.

        The coefficients are residues for p > 0, else Fractions.
        """
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
                f"script {name} did not emit a list of polynomials: {error}", run=self.run
            ) from None


def _is_list_of(kind: type, value: Any) -> bool:
    """Return whether the value is a list whose entries have exactly this type; true is not an integer."""
    return isinstance(value, list) and all(type(item) is kind for item in value)


def step_of(line: str) -> str | None:
    """Return the step that a line of output names, or None."""
    match = _STEP.fullmatch(line)
    return match.group(1) if match else None


def parse(run: Run) -> Values:  # noqa: C901 -- one message for each way in which output can be wrong
    """Read the values in the output of a run, which may be incomplete.

    Raises
    ------
    OutputError
        A tagged line is malformed, a tag is emitted twice, or the count in the last line is wrong.
    """
    entries: dict[str, Any] = {}
    complete = False
    *lines, unfinished_line = run.stdout.split("\n")
    for number, line in enumerate(lines, start=1):

        def malformed(message: str, number: int = number) -> OutputError:
            return OutputError(message, run=run, line_number=number)

        if not line.startswith("@m2b"):
            continue
        if complete:
            raise malformed(f"output line {number} follows the end line")
        if match := _VALUE.fullmatch(line):
            tag, text = match.groups()
            if tag in entries:
                raise malformed(f"output line {number} emits {tag!r} a second time")
            try:
                entries[tag] = _exact_value(text)
            except (ValueError, RecursionError) as error:
                raise malformed(
                    f"output line {number} is not an exact value ({error}): {text[:80]!r}"
                ) from None
        elif match := _END.fullmatch(line):
            if int(match.group(1)) != len(entries):
                raise malformed(
                    f"the script emitted {match.group(1)} values, but the output has {len(entries)}"
                )
            complete = True
        elif not _STEP.fullmatch(line):
            hint = f"; {TAGS}" if _BAD_TAG.fullmatch(line) else ""
            raise malformed(f"output line {number} is malformed: {line[:80]!r}{hint}")
    if complete and unfinished_line.startswith("@m2b"):
        raise OutputError("the output continues after the end line", run=run, line_number=len(lines) + 1)
    return Values(entries, complete, run)


def _exact_value(text: str) -> Any:
    """Parse integers, booleans, nulls, strings and lists of these. Raises ValueError for anything else."""

    def refuse(_: str) -> NoReturn:
        raise ValueError("not an exact value")

    value = json.loads(text, parse_float=refuse, parse_constant=refuse)
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > _DEEPEST_VALUE:
            raise ValueError("nested too deeply")
        if isinstance(item, dict):
            raise ValueError("objects are not allowed")
        if isinstance(item, str):
            item.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
        if isinstance(item, list):
            stack += [(inner, depth + 1) for inner in item]
    return value


def read(run: Run) -> Values:
    """Read the values of a run. Raises an error whose class depends on the failure if the run is not complete.

    The values of a run that reached a limit are in the field ``values`` of the error.
    """
    if not run.began:
        raise NoEngineError(
            f"no {run.engine.program} could load script {run.script.name}: {run.stderr.strip()}", run=run
        )
    if run.outcome is not Outcome.FINISHED:
        raise failure(run)
    values = parse(run)
    if not values.complete:
        name = run.script.name
        raise OutputError(
            f"the output of script {name} is truncated: the end line is missing; a template must end with emitEnd()",
            run=run,
        )
    return values


def failure(run: Run) -> EngineError:
    """Return the error for a run that did not finish."""
    name = run.script.name
    after = f"after {run.seconds:.1f} s"
    try:
        values: Values | None = parse(run)
    except OutputError:
        values = None
    if run.outcome is Outcome.TIMED_OUT:
        message = f"script {name} was stopped {after} by its time limit; increase --timeout"
        return TimeLimitError(message, run=run, values=values, seconds=run.seconds)
    if run.outcome is Outcome.OUT_OF_MEMORY:
        message = f"script {name} ran out of memory {after}; increase --memory"
        return MemoryLimitError(message, run=run, values=values, bytes=run.limits.memory_bytes)
    if run.outcome is Outcome.TOO_MUCH_OUTPUT:
        message = f"script {name} was stopped {after}: it printed more than {run.limits.output_bytes} bytes"
        return OutputLimitError(message, run=run, values=values, bytes=run.limits.output_bytes)
    if run.outcome is Outcome.CRASHED:
        end = "was lost" if run.signal is None else f"was terminated by signal {run.signal}"
        return CrashError(f"{run.engine.program} {end} in script {name} {after}", run=run, signal=run.signal)
    if match := _ERROR.search(run.stderr):
        error = _script_error(run, match)
        reached = _LIMIT_OF_MACAULAY2.fullmatch(match["error"])
        return LimitError(error.message, run=run, values=values) if reached else error
    last_line = run.stderr.strip().splitlines()[-1:] or ["(no message on standard error)"]
    return ScriptError(
        f"{run.engine.program} stopped in script {name} with exit status {run.exit_status}: {last_line[0]}",
        run=run, error=last_line[0], file=None, line=None, column=None,
    )  # fmt: skip


def _script_error(run: Run, match: re.Match[str]) -> ScriptError:
    """Return the error with its position in the script.

    If a file of Macaulay2 itself raised the error, the position is that of the script in the back trace. If a bracket is not
    closed, it is the position of the bracket.
    """
    name = run.script.name
    positions = _POSITION.finditer(run.stderr, match.start())
    position = next((m for m in positions if m["file"].rpartition("/")[2] == f"{name}.m2"), match)
    raised = "" if position["file"] == match["file"] else f" (raised in {match['file'].rpartition('/')[2]})"
    details, end = [match["error"]], match.end()
    while detail := _DETAIL.match(run.stderr, end):
        details.append(detail["detail"])
        end = detail.end()
    if bracket := _UNMATCHED.match(run.stderr, end):
        position = bracket
        details.append("to match this")
    message = " ".join(" ".join(details).split())[:_LONGEST_DETAIL]
    line = _line_text(run.script.text, int(position["line"]))
    return ScriptError(
        f"Macaulay2 stopped in script {name}, line {position['line']}, column {position['column']}{raised}: {message}{line}",
        run=run, error=match["error"], details=message, file=position["file"], line=int(position["line"]),
        column=int(position["column"]),
    )  # fmt: skip


def _line_text(script: str, number: int) -> str:
    """Return the text of a line for a message: if it comes from an included file, it has another number there."""
    lines = script.splitlines()
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"; the line is: {shorten(text, 100)}" if text else ""
