"""Refusals of a recording: each names the file, the line and the text of the line that cannot be recorded."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np

from m2bridge.errors import InputError, M2BridgeError, NotPolynomialError

_OWN = (str(Path(__file__).parent), str(Path(np.__file__).parent))
_LIBRARY = ("fractions.py", "functools.py", "numbers.py")
"""Modules of the standard library that call back into a recorded array."""


def _is_foreign(filename: str) -> bool:
    """Whether a frame of this file is the user's, and neither ours nor NumPy's."""
    return not (
        filename.startswith((*_OWN, "<__array_function__", "<frozen")) or Path(filename).name in _LIBRARY
    )


def _described(filename: str, line: int) -> str:
    source = linecache.getline(filename, line).strip()
    return f"{filename}, line {line}" + (f": {source}" if source else "")


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def current_line() -> str:
    """File, number and text of the line of the user's function that is being recorded."""
    for frame in _callers(sys._getframe(1)):
        if _is_foreign(frame.f_code.co_filename):
            return _described(frame.f_code.co_filename, frame.f_lineno)
    return "unknown line"


def _line_of(traceback: TracebackType | None) -> str:
    found = "unknown line"
    while traceback is not None:
        if _is_foreign(traceback.tb_frame.f_code.co_filename):
            found = _described(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def not_polynomial(message: str, line: str | None = None) -> NotPolynomialError:
    """The error for an operation that no polynomial or supported analytic network contains."""
    line = line or current_line()
    return NotPolynomialError(f"{line}\n{message}", line=line)


def wrong_input(message: str, line: str | None = None) -> InputError:
    """The error for shapes or values that do not fit."""
    line = line or current_line()
    return InputError(f"{line}\n{message}", line=line)


def located(error: Exception) -> M2BridgeError:
    """An error that came out of the user's function, as one of ours with its line.

    NumPy hides a refusal behind its own ValueError when numbers are asked of recorded values; the refusal is found again.
    """
    hidden: BaseException | None = error
    while hidden is not None:
        if isinstance(hidden, M2BridgeError):
            return hidden
        hidden = hidden.__cause__ or hidden.__context__
    line = _line_of(error.__traceback__)
    return InputError(f"{line}\n{type(error).__name__}: {error}", line=line)
