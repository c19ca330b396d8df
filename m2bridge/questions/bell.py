"""A bell for code that forgets the time: it raises an exception in it, as Ctrl-C does, some seconds after the limit.

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

GRACE = 10.0
"""Seconds after the limit, and between two rings: who looks at the clock has the first word, and writes a partial answer."""


class _Bell:
    """A handler of SIGALRM that does what it is told, unless it is silent."""

    def __init__(self, ring: Callable[[], None], grace: float) -> None:
        self.ring, self.grace, self.silent = ring, grace, False

    def wind(self, seconds: float) -> float:
        """Ring after so many seconds, and again and again; how many were left before."""
        return signal.setitimer(signal.ITIMER_REAL, seconds, self.grace if seconds else 0.0)[0]

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


@contextlib.contextmanager
def bell(seconds: float | None, ring: Callable[[], None], grace: float | None = None) -> Iterator[None]:
    """Call `ring`, which raises, in what lasts longer here. Of a bell inside another the one that is due first rings."""
    grace = GRACE if grace is None else grace
    outer = _ringing() if _ringable() else None
    due = max(seconds or 0.0, 0.0) + grace
    if seconds is None or not _ringable() or (outer and signal.getitimer(signal.ITIMER_REAL)[0] <= due):
        yield
        return
    own = _Bell(ring, grace)
    before = signal.signal(signal.SIGALRM, own)
    left, start = own.wind(due), time.monotonic()
    try:
        try:
            yield
        finally:
            own.silent = True
    finally:  # also when it rang between the two
        own.wind(0.0)
        signal.signal(signal.SIGALRM, before)
        if outer is not None:
            outer.wind(max(left - (time.monotonic() - start), outer.grace))


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """No bell while Macaulay2, which has its own limit, starts and runs; what follows has as long for a partial answer."""
    own = _ringing() if threading.current_thread() is threading.main_thread() else None
    if own is None or own.silent:
        yield
        return
    own.silent, left, start = True, own.wind(0.0), time.monotonic()
    try:
        yield
    finally:
        own.wind(max(left - (time.monotonic() - start), own.grace))
        own.silent = False
