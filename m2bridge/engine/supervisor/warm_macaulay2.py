"""A running Macaulay2 that forks a child process for each job. Standard library only.

:meth:`WarmMacaulay2.start` returns the process identifier of a child that is blocked on the FIFO `gate` (see ``__main__``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2bridge.engine.supervisor.__main__ import Supervisor

FIFOS = ("next", "gate")
POLL_INTERVAL = 0.001  # seconds between two polls while a job waits
LONGEST_POLL_INTERVAL = 0.016  # the same while Macaulay2 starts, which takes much longer than one poll
START_TIMEOUT = 120.0  # seconds after which a Macaulay2 that is starting is considered stuck
SERVER_TIMEOUT = 10.0  # the same for one that is already running


class ServerLostError(Exception):
    """The warm Macaulay2 has ended or does not respond."""


class WarmMacaulay2:
    """A Macaulay2 that has started and loaded packages, and forks a child for each job."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.server: int | None = None
        self.died = False
        self.loaded: set[str] = set()  # packages required by earlier scripts

    def start(self, job: dict[str, Any]) -> tuple[int, int]:
        """Make the warm Macaulay2 fork a child for the job; start Macaulay2 and load packages first if necessary.

        Return the process identifier of the child, which is blocked on the gate, and the writing end of the gate.
        """
        missing = sorted(set(job["packages"]) - self.loaded)
        is_ready = self.server is not None and not missing
        deadline = time.monotonic() + (SERVER_TIMEOUT if is_ready else START_TIMEOUT)
        if self.server is None and not self.died:
            self.server = self.supervisor.spawn(job, None)
        # Opened for reading and writing, so that the warm Macaulay2, which opens the gate before it forks, does not block there.
        gate = os.open(self.supervisor.root / "gate", os.O_RDWR)
        try:
            self.request_child(missing, deadline)
            return self.wait_for_child(deadline), gate
        except BaseException:
            os.close(gate)
            raise

    def request_child(self, packages: list[str], deadline: float) -> None:
        """Request through the FIFO `next` that the warm Macaulay2 loads packages and forks."""
        pause = POLL_INTERVAL
        while (fifo := self.supervisor.writing_end("next")) is None:
            self.wait(deadline, pause)
            pause = min(2 * pause, LONGEST_POLL_INTERVAL)
        os.write(fifo, " ".join(packages).encode())
        os.close(fifo)
        self.loaded.update(packages)

    def wait_for_child(self, deadline: float) -> int:
        """Wait until the child is reparented to the supervisor, and return its process identifier.

        The child is the only one: all processes of the previous job were killed.
        """
        while True:
            for pid in self.supervisor.children():
                if os.getpgid(pid) == pid:
                    return pid
            self.wait(deadline)

    def wait(self, deadline: float, seconds: float = POLL_INTERVAL) -> None:
        """Wait for `seconds`. Raises ServerLostError if the warm Macaulay2 has ended or the deadline has passed."""
        if self.died:
            raise ServerLostError("the warm Macaulay2 has ended")
        if time.monotonic() >= deadline or self.supervisor.kill_requested:
            raise ServerLostError("the warm Macaulay2 does not respond")
        self.supervisor.wait_for_event(seconds)

    def record_exit(self, pid: int) -> None:
        """Record that a child of the supervisor has ended."""
        if pid == self.server:
            self.server = None
            self.died = True

    def kill(self) -> None:
        """Kill the warm Macaulay2. A child that it forked is killed later, by :meth:`Supervisor.kill_job`."""
        if self.server is not None:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.server, signal.SIGKILL)
            self.server = None
