"""Make the errors of a recording, which name the file, the line and the text of the line that cannot be recorded."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar, NoReturn

import numpy as np

from m2bridge.errors import InputError, M2BridgeError, NotPolynomialError

_FOLDER = Path(__file__).parent
_OWN = (
    *(
        str(_FOLDER / f"{module}.py")
        for module in (
            "recording",
            "recorded_array",
            "recorder",
            "contractions",
            "numpy_functions",
            "numpy_rules",
            "refusals",
        )
    ),
    str(_FOLDER.with_name("programs")) + os.sep,
    str(Path(np.__file__).parent) + os.sep,
    "<__array_function__",
    "<frozen",
)
_LIBRARY = ("fractions.py", "functools.py", "numbers.py")
"""Modules of the standard library that call back into a recorded array."""


def _is_foreign(filename: str) -> bool:
    """Return whether a frame of this file is the user's, and neither of this package nor of NumPy."""
    return not (filename.startswith(_OWN) or Path(filename).name in _LIBRARY)


def _described(filename: str, line: int) -> str:
    source = linecache.getline(filename, line).strip()
    return f"{filename}, line {line}" + (f": {source}" if source else "")


RETURNED: ContextVar[CodeType | None] = ContextVar("returned", default=None)
"""The function whose result is being read: errors name its first line."""


def current_line(*, short: bool = False) -> str:
    """Return file, number and text of the line that is being recorded; with `short`, file name and number."""
    code, frame = RETURNED.get(), sys._getframe(1)
    location = (code.co_filename, code.co_firstlineno) if code else None
    while location is None and frame is not None:
        if _is_foreign(frame.f_code.co_filename):
            location = frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    if location is None:
        return "unknown line"
    return f"{Path(location[0]).name}, line {location[1]}" if short else _described(*location)


def not_polynomial(message: str, line: str | None = None) -> NotPolynomialError:
    """Make the error for an operation that is neither polynomial nor a supported analytic one."""
    line = line or current_line()
    return NotPolynomialError(f"{line}\n{message}", line=line)


def wrong_input(message: str) -> InputError:
    """Make the error for shapes or values that do not fit."""
    line = current_line()
    return InputError(f"{line}\n{message}", line=line)


def located(error: Exception) -> M2BridgeError:
    """Convert an error that the user's function raised, and add its line.

    If NumPy converts recorded values to numbers, it raises a ValueError with the refusal as its cause; the refusal is returned.
    """
    hidden: BaseException | None = error
    while hidden is not None:
        if isinstance(hidden, M2BridgeError):
            return hidden
        hidden = hidden.__cause__ or hidden.__context__
    line = "the function of the network"
    for frame, number in traceback.walk_tb(error.__traceback__):
        if _is_foreign(frame.f_code.co_filename):
            line = _described(frame.f_code.co_filename, number)
    message = f"{type(error).__name__}: {error}"
    if "dtype('O')" in message:
        message += (
            "\nfor this function, join single recorded numbers by np.block([...]) and not by np.array([...])"
        )
    return InputError(f"{line}\n{message}", line=line)


def _refusing(message: str) -> Callable[..., NoReturn]:
    """Make a method that raises the error with this message."""

    def method(*_: Any) -> NoReturn:
        raise not_polynomial(message)

    return method


class WithoutValues:
    """Operations that need the values of an array, which a recorded array does not have."""

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    __setitem__ = _refusing(
        "an assignment into a recorded array; make a new one with np.stack, np.concatenate or np.where"
    )
    __float__ = __int__ = __index__ = __complex__ = _refusing(
        "a recorded value is converted to a number, by float() or int() or by an assignment into a numeric array; "
        "use NumPy's functions on it, build arrays with np.array([...]) or np.stack, or begin with "
        "np.zeros(shape, dtype=object)"
    )
    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __contains__ = _refusing(
        "a comparison of recorded values or a branch on one; branch on shapes and constants, and use "
        "np.where with a constant mask; the max in a softmax is taken of np.block([...]), not of np.array([...])"
    )
    __abs__ = __round__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rpow__ = (
        _refusing(
            "an absolute value, rounding, remainder or recorded exponent is not a polynomial; write the square instead of "
            "the absolute value, and a polynomial activation with * and **"
        )
    )
    __floor__ = __ceil__ = __trunc__ = __round__
