"""The errors that m2bridge raises, with their exit codes.

::

    M2BridgeError                        exit 1
    ├── InputError                       exit 2   invalid input
    │   ├── SpecError                             a model specification
    │   ├── ParseError                            polynomial text or a file, with its position
    │   └── OutOfReachError                       too large to compute; `--force` tries anyway
    ├── NotPolynomialError               exit 2   an algebraic question about a map that is not polynomial
    ├── RecordError                      exit 2   a record that cannot be read
    ├── NoEngineError                    exit 4   no working Macaulay2
    ├── EngineError                      exit 1   a run of Macaulay2 failed; field `run`
    │   ├── ScriptError                           Macaulay2 reported an error (file, line, column)
    │   ├── CrashError                            the process was terminated by a signal
    │   ├── OutputError                           truncated or malformed output
    │   └── LimitError                   exit 5   a limit was reached
    │       ├── TimeLimitError                    wall clock or CPU
    │       ├── MemoryLimitError                  memory
    │       └── OutputLimitError                  output size
    ├── DisagreementError                exit 3   independent witnesses contradict each other
    └── CertificateError                 exit 7   a certificate was rejected

Errors have fields and can be pickled. The message names what is wrong, the value, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from m2bridge.engine.base import Run


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return a hint for an error message: the most similar of the `known` words, or a list of them."""
    from difflib import get_close_matches

    if near := get_close_matches(word, known, n=1):
        return f"did you mean {near[0]}?"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"available: {shown}" if known else "none are available"


def visible(text: str, but: str = "") -> str:
    """Escape the characters that are not printable, except those in `but`, so that a text cannot control the terminal.

    >>> print(visible("red: " + chr(27) + "[31m"))
    red: \\x1b[31m
    """
    plain = text
    for character in but:
        plain = plain.replace(character, "")
    if plain.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text)


_IN_ASCII = str.maketrans({
    "≥": ">=", "≤": "<=", "→": "->", "↦": "->", "…": "...", "–": "-", "—": "-", "×": "x", "⊗": "(x)", "∩": "meet", "·": "*",
    "─": "-", "│": "|",
})  # fmt: skip


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Handle encoding errors of streams without Unicode: replace characters by ASCII text or by their escape sequence.

    >>> import codecs
    >>> codecs.register_error("m2bridge", in_ascii)
    >>> "≥ 5 → é".encode("ascii", "m2bridge")
    b'>= 5 -> \\\\xe9'
    """
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_IN_ASCII)
    return text.encode("ascii", "backslashreplace").decode(), error.end


class M2BridgeError(Exception):
    """Base class of all errors of m2bridge.

    The positional argument is the message; keyword arguments are the fields, which are also attributes.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)

    def __str__(self) -> str:
        return self.message


def _rebuild(kind: type[M2BridgeError], message: str, fields: dict[str, Any]) -> M2BridgeError:
    return kind(message, **fields)


class InputError(M2BridgeError):
    """The input is invalid."""

    exit_code = 2


class SpecError(InputError):
    """A model specification cannot be parsed or has invalid sizes."""


class ParseError(InputError):
    """A text could not be parsed; fields `source`, `line`, `column`."""


class OutOfReachError(InputError):
    """The computation is too large; field `estimate`."""


class NotPolynomialError(M2BridgeError):
    """An algebraic question was asked of a map that is not polynomial."""

    exit_code = 2


class RecordError(M2BridgeError):
    """A record is damaged or has an unknown schema version."""

    exit_code = 2


class NoEngineError(M2BridgeError):
    """No working Macaulay2 was found; field `candidates` lists those that were tested."""

    exit_code = 4


class EngineError(M2BridgeError):
    """A run of Macaulay2 failed; field `run` is the :class:`~m2bridge.engine.base.Run`."""

    run: Run


class ScriptError(EngineError):
    """Macaulay2 reported an error; fields `file`, `line`, `column`, `error`."""


class CrashError(EngineError):
    """The process was terminated by a signal; field `signal`."""


class OutputError(EngineError):
    """The output is truncated or malformed; field `line_number`, if known."""


class LimitError(EngineError):
    """A limit was reached, also one of Macaulay2 (recursion, exponents); the output until then is in `run.stdout`."""

    exit_code = 5


class TimeLimitError(LimitError):
    """The time limit was reached; field `seconds`."""


class MemoryLimitError(LimitError):
    """The memory limit was reached; field `bytes`."""


class OutputLimitError(LimitError):
    """The limit of the size of the output was reached; field `bytes`."""


class DisagreementError(M2BridgeError):
    """Independent witnesses contradict each other; field `conflicts`."""

    exit_code = 3


class CertificateError(M2BridgeError):
    """A certificate was rejected; field `reason`."""

    exit_code = 7
