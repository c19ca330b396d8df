"""Show the current step of a computation: a line in a terminal, a progress bar in a notebook."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_PROGRESS_DELAY = 1.0
"""Seconds before the current step is shown."""


class Steps:
    """Show the current step: call the object when a step begins, and close it at the end, which removes the line.

    Nothing is shown in the first second. A thread updates the seconds during a step.
    """

    def __init__(self, put: Callable[[str | None], None]) -> None:
        self._put = put
        self._start = time.monotonic()
        self._step = ""
        self._shown = False
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._clock.start()

    def __call__(self, step: str) -> None:
        self._step = step
        seconds = time.monotonic() - self._start
        if step and seconds >= _PROGRESS_DELAY:
            self._shown = True
            self._put(f"{step} ({seconds:.0f} s)")

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self(self._step)

    def close(self) -> None:
        self._over.set()
        self._clock.join()
        if self._shown:
            self._put(None)


def terminal_steps() -> Steps | None:
    """Return a progress line on standard error if this is a terminal."""

    def put(step: str | None) -> None:
        line = "" if step is None else "".join(c if c.isprintable() else "?" for c in step)[:78]
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    return Steps(put) if sys.stderr.isatty() else None


def suitable_steps() -> Steps | None:
    """Return a progress bar in a notebook, a progress line in an interactive terminal, and otherwise None."""
    show = notebook_display()
    if show is None:
        return terminal_steps() if _shell() is not None or hasattr(sys, "ps1") else None

    def put(step: str | None) -> None:
        show(step or "", "" if step is None else f"<progress></progress> {html.escape(step)}")

    return Steps(put)


def _shell() -> Any:
    """Return the shell of IPython in which this process runs, or None."""
    python = sys.modules.get("IPython")
    return python.get_ipython() if python is not None else None


def notebook_display() -> Callable[[str, str], None] | None:
    """Return a function that displays text, also as HTML, in place of what it displayed before; None outside of notebooks."""
    shell = _shell()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    display = importlib.import_module("IPython.display").display
    handle: Any = None

    def show(text: str, html_text: str) -> None:
        nonlocal handle
        data = {"text/plain": text, "text/html": html_text}
        if handle is None:
            handle = display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    return show
