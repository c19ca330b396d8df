"""An alarm for code that does not look at the clock.

It raises an exception in that code, as Ctrl-C does, some time after the limit. Computations look at their clock and Macaulay2
has limits of its own; the alarm is for what does neither: a loop over orbits, a library function, a question of another package.
It needs the main thread and exclusive use of SIGALRM; otherwise there is no alarm.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GRACE_SHARE, LEAST_GRACE, MOST_GRACE = 0.05, 1.0, 10.0
"""The alarm is due this share of the limit after the limit, and again after the same time, but between these numbers of seconds.
A computation that checks the clock stops before, so that a partial answer can be written."""


def _grace(seconds: float | None) -> float:
    return min(MOST_GRACE, max(LEAST_GRACE, GRACE_SHARE * (seconds or 0.0)))


class _Handler:
    """A handler of SIGALRM that calls `raise_limit`, unless it is suspended."""

    def __init__(self, raise_limit: Callable[[], None], grace: float) -> None:
        self.raise_limit, self.grace, self.suspended = raise_limit, grace, False
        self.raised: BaseException | None = None

    def set(self, seconds: float) -> float:
        """Call after this many seconds, and again every `grace` seconds; return how many were left before."""
        return signal.setitimer(signal.ITIMER_REAL, seconds, self.grace if seconds else 0.0)[0]

    def __call__(self, *_: object) -> None:
        if self.suspended:
            return
        try:
            self.raise_limit()
        except BaseException as error:
            self.raised = error
            raise


def _installed() -> _Handler | None:
    handler = signal.getsignal(signal.SIGALRM)
    return handler if isinstance(handler, _Handler) else None


def _available() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL or _installed() is not None


@contextmanager
def alarm(
    seconds: float | None, raise_limit: Callable[[], None], grace: float | None = None
) -> Iterator[None]:
    """Call `raise_limit` in what lasts longer here. Of two nested alarms the one that is due first is set."""
    grace = _grace(seconds) if grace is None else grace
    outer = _installed() if _available() else None
    due = max(seconds or 0.0, 0.0) + grace
    if seconds is None or not _available() or (outer and signal.getitimer(signal.ITIMER_REAL)[0] <= due):
        yield
        return
    handler = _Handler(raise_limit, grace)
    before = signal.signal(signal.SIGALRM, handler)
    left, start = handler.set(due), time.monotonic()
    try:
        try:
            yield
        except SystemError:
            # a loop of NumPy over objects goes on after the exception, and Python complains of that
            if handler.raised is None:
                raise
            raise handler.raised from None
        finally:
            handler.suspended = True
    finally:  # also when it was raised between the two
        handler.set(0.0)
        signal.signal(signal.SIGALRM, before)
        if outer is not None:
            outer.set(max(left - (time.monotonic() - start), outer.grace))


@contextmanager
def suspended_alarm() -> Iterator[None]:
    """Suspend the alarm while Macaulay2, which has its own limit, starts and runs; then leave time for a partial answer."""
    handler = _installed() if threading.current_thread() is threading.main_thread() else None
    if handler is None or handler.suspended:
        yield
        return
    handler.suspended, left, start = True, handler.set(0.0), time.monotonic()
    try:
        yield
    finally:
        handler.set(max(left - (time.monotonic() - start), handler.grace))
        handler.suspended = False
