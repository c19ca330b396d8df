"""What a person sees while a question called from Python takes long: its step and the seconds, in a notebook or on a terminal.

Nothing is shown in the first second, elsewhere, or when the caller listens to the steps; at the end the line goes away.
"""

from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

_PATIENCE = 1.0
"""Seconds before anything is shown."""


class Steps:
    """Shows the step that runs now; called with each step as it begins, closed at the end."""

    def __init__(self, put: Callable[[str | None], None]) -> None:
        self._put, self._start, self._shown = put, time.monotonic(), False

    def __call__(self, step: str) -> None:
        seconds = time.monotonic() - self._start
        if seconds >= _PATIENCE:
            self._shown = True
            self._put(f"{step} ({seconds:.0f} s)")

    def close(self) -> None:
        if self._shown:
            self._put(None)


def _on_terminal(words: str | None) -> None:
    line = "" if words is None else "".join(c if c.isprintable() else "?" for c in words)[:78]
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()


def _in_notebook(display: Any) -> Callable[[str | None], None]:
    handle: Any = None

    def put(words: str | None) -> None:
        nonlocal handle
        shown = "" if words is None else f"<progress></progress> {html.escape(words)}"
        data = {"text/plain": words or "", "text/html": shown}
        if handle is None:
            handle = display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    return put


def suitable_steps() -> Steps | None:
    """What suits where Python runs: a bar in a notebook, a line on a terminal where somebody types, nothing elsewhere."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return Steps(_in_notebook(importlib.import_module("IPython.display").display))
    typed = shell is not None or hasattr(sys, "ps1")
    return Steps(_on_terminal) if typed and sys.stderr.isatty() else None
