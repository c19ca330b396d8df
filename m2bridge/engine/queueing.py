"""Engine stage: who is next. A queue that lends things out in the order in which they were asked for.

Threads enter, each leaves with one of the things; :class:`Cancellation` lets another thread call a job off.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class CalledOffError(Exception):
    """The job was called off before it began."""


class Cancellation:
    """Lets another thread call a job off, while it waits or while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Call the job off; harmless when it is over."""
        with self._lock:
            self.cancelled = True
            if self._stop is not None:
                self._stop()

    def stop_with(self, stop: Callable[[], None] | None) -> None:
        """How to stop what is happening now; called at once if the job was called off already."""
        with self._lock:
            self._stop = stop
            if stop is not None and self.cancelled:
                stop()


class _Ticket(Generic[Item]):
    def __init__(self) -> None:
        self.called = threading.Event()
        self.item: Item | None = None


class FairQueue(Generic[Item]):
    """Lends out `items`, first come, first served."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._lock = threading.Lock()
        self._idle = list(items)
        self._waiting: deque[_Ticket[Item]] = deque()
        self._lent = 0
        self._closed = False
        self._quiet = threading.Condition(self._lock)

    def take(self, cancellation: Cancellation) -> Item:
        """The next free item. Raises :class:`CalledOffError` when cancelled, or when the queue is closed."""
        with self._lock:
            if self._closed or cancellation.cancelled:
                raise CalledOffError
            if self._idle and not self._waiting:
                self._lent += 1
                return self._idle.pop()
            ticket: _Ticket[Item] = _Ticket()
            self._waiting.append(ticket)
        try:
            cancellation.stop_with(ticket.called.set)
            ticket.called.wait()
            cancellation.stop_with(None)
        except BaseException:
            self._leave(ticket)
            raise
        if ticket.item is None or cancellation.cancelled:
            self._leave(ticket)
            raise CalledOffError
        return ticket.item

    def give(self, item: Item) -> None:
        """Return an item; it goes to whoever has waited longest."""
        with self._lock:
            if self._waiting:
                ticket = self._waiting.popleft()
                ticket.item = item
                ticket.called.set()
            else:
                self._idle.append(item)
                self._lent -= 1
                self._quiet.notify_all()

    def close(self) -> None:
        """Send everybody who waits away."""
        with self._lock:
            self._closed = True
            for ticket in self._waiting:
                ticket.called.set()
            self._waiting.clear()

    def wait_until_idle(self) -> None:
        """Wait until everything lent out has come back."""
        with self._lock:
            self._quiet.wait_for(lambda: self._lent == 0)

    def _leave(self, ticket: _Ticket[Item]) -> None:
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        if ticket.item is not None:
            self.give(ticket.item)
