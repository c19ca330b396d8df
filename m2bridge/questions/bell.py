"""A bell for code that forgets the time: it raises an exception in it, as Ctrl-C does, a second after the limit.

Computations look at their clock and Macaulay2 has limits of its own; the bell is for what does neither: a loop over orbits, a
library's function, a question of another package. It needs the main thread and a SIGALRM that nobody else uses; elsewhere
there is none.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

GRACE = 1.0
"""Seconds after the limit, and between two rings: who looks at the clock has the first word, and may have a partial answer."""


class _Bell:
    """A handler of SIGALRM that does what it is told, unless it is silent."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring, self.silent = ring, False

    def __call__(self, *_: object) -> None:
        if not self.silent:
            self.ring()


def _ringable() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL or _ringing() is not None


def _ringing() -> _Bell | None:
    handler = signal.getsignal(signal.SIGALRM)
    return handler if isinstance(handler, _Bell) else None


def _wind(seconds: float) -> float:
    """Ring after so many seconds, and again and again; how many were left before."""
    return signal.setitimer(signal.ITIMER_REAL, seconds, GRACE if seconds else 0.0)[0]


@contextlib.contextmanager
def bell(seconds: float | None, ring: Callable[[], None]) -> Iterator[None]:
    """Call `ring`, which raises, in what lasts longer here. A bell inside another takes its place until it is left."""
    if seconds is None or not _ringable():
        yield
        return
    own, outer = _Bell(ring), _ringing()
    before = signal.signal(signal.SIGALRM, own)
    left, start = _wind(max(seconds, 0.0) + GRACE), time.monotonic()
    try:
        try:
            yield
        finally:
            own.silent = True
    finally:  # also when it rang between the two
        _wind(max(left - (time.monotonic() - start), GRACE) if outer is not None else 0.0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """No bell while Macaulay2, which has its own limit, starts and runs; what follows has as long for a partial answer."""
    own = _ringing() if threading.current_thread() is threading.main_thread() else None
    if own is None:
        yield
        return
    own.silent, left, start = True, _wind(0.0), time.monotonic()
    try:
        yield
    finally:
        _wind(max(left - (time.monotonic() - start), GRACE))
        own.silent = False
