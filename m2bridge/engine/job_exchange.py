"""The client's side of the supervisor's protocol for one job, and the outcome of the job.

The protocol is described in :mod:`m2bridge.engine.supervisor.__main__`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import selectors
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m2bridge.engine.base import Listener, Outcome
from m2bridge.limits import Limits

if TYPE_CHECKING:
    from m2bridge.engine.supervisor_process import SupervisorProcess

_READ_BYTES = 1 << 16
"""Bytes that are read from a pipe at once."""
_IDLE_INTERVAL = 5.0
"""After this many seconds without an event the supervisor is sent SIGCONT, in case it was stopped."""
_SUPERVISOR_GRACE = 8.0
"""If the supervisor has not ended the job this many seconds after the time limit, it is considered stuck."""
_SUPERVISOR_START_TIMEOUT = 150.0
"""If Macaulay2 is not ready after this many seconds (or the time limit, if that is longer), it is considered stuck."""
VERSION_LINE = "@m2b-engine "
"""The beginning of the line in which Macaulay2 prints its version before it loads a script."""
_OUT_OF_MEMORY = re.compile(
    r"^(?: \*\*\* out of memory trying to allocate \d+ bytes, exiting \*\*\*$|GC Warning: Out of Memory"
    r"|\*\*\*Emergency Exit: Out of Memory|GNU MP: Cannot (?:re)?allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_a"
    r"|.*: error: (?:out of memory|std::bad_alloc)\s*$)",
    re.MULTILINE,
)
_FLINT_OUT_OF_MEMORY = re.compile(
    r"^(?:Exception \(FLINT.*|    )Unable to allocate memory \(\d+\)\.$", re.MULTILINE
)
_TICK_SHARE = 0.75
"""Smallest ratio of the exact CPU time to the limit for a process that has reached the limit."""
SEGMENTATION_FAULT = re.compile(rb"^-- SIGSEGV\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a job ended: the fields of the supervisor's event ``done``.

    `status` is the wait status. `stopped` is the reason for which the supervisor killed the job: ``wall`` (the time limit),
    ``request`` (the client) or None. `passed_gate` is false if the process ended before it loaded the script.
    """

    status: int
    seconds: float
    stopped: str | None = None
    cpu: float | None = None
    cpu_limit: int | None = None
    maxrss: int | None = None
    passed_gate: bool = True


def outcome(
    end: JobEnd, stdout: str, stderr: str, *, output_limit_reached: bool
) -> tuple[Outcome, int | None, int | None]:
    """Return the outcome of a run, its exit status and the signal that ended it.

    Two signals do not appear in the wait status. Macaulay2 handles SIGSEGV: the handler prints a trace and exits, or hangs; a
    segmentation fault is recognized by the trace. Its garbage collector ignores SIGXCPU, so the CPU limit ends the process by
    SIGKILL; this is recognized by the CPU time used. The kernel counts whole clock ticks against the limit; on a busy machine
    they exceed the exact CPU time, by 11% in one measurement.
    """
    exit_status = os.WEXITSTATUS(end.status) if os.WIFEXITED(end.status) else None
    signal_number = os.WTERMSIG(end.status) if os.WIFSIGNALED(end.status) else None
    segmentation_fault = SEGMENTATION_FAULT.search(stderr.encode()) is not None
    limit = end.cpu_limit or math.inf
    cpu_limit_reached = (end.cpu or 0.0) >= min(limit - 0.5, _TICK_SHARE * limit)
    out_of_memory = _OUT_OF_MEMORY.search(stderr) or (
        signal_number == signal.SIGABRT and _FLINT_OUT_OF_MEMORY.search(stdout[-1000:])
    )
    if output_limit_reached:
        result = Outcome.TOO_MUCH_OUTPUT
    elif end.stopped == "wall":
        result = Outcome.CRASHED if segmentation_fault else Outcome.TIMED_OUT
    elif exit_status == 0:
        result = Outcome.FINISHED
    elif signal_number in (signal.SIGXCPU, signal.SIGKILL) and cpu_limit_reached:
        result = Outcome.TIMED_OUT
    elif out_of_memory:
        result = Outcome.OUT_OF_MEMORY
    elif signal_number is not None or segmentation_fault:
        result = Outcome.CRASHED
    else:
        result = Outcome.SCRIPT_ERROR
    if result is Outcome.CRASHED and segmentation_fault and (signal_number is None or end.stopped == "wall"):
        signal_number = int(signal.SIGSEGV)
    return result, exit_status, signal_number


class SupervisorLostError(Exception):
    """The supervisor, or its warm Macaulay2, has ended or does not respond.

    `script_began` is true if the script had begun. `overdue` is true if the script has exceeded its time limit and the supervisor
    has not ended it.
    """

    def __init__(self, message: str, *, script_began: bool, overdue: bool = False) -> None:
        super().__init__(message)
        self.script_began = script_began
        self.overdue = overdue


class JobExchange:
    """The exchange of messages and output with the supervisor for one job.

    `buffers` holds standard output and standard error of Macaulay2. `reported` is the number of bytes of standard output that
    were passed to the listener. `discard_startup` removes what Macaulay2 wrote to standard error before the script began.
    """

    def __init__(
        self,
        supervisor: SupervisorProcess,
        limits: Limits,
        listener: Listener | None,
        *,
        discard_startup: bool,
    ) -> None:
        self.supervisor = supervisor
        self.limits = limits
        self.listener = listener
        self.discard_startup = discard_startup
        self.buffers = (bytearray(), bytearray())
        self.reported = 0
        self.deadline = time.monotonic() + max(
            _SUPERVISOR_START_TIMEOUT, (limits.wall_seconds or 0.0) + _SUPERVISOR_GRACE
        )
        self.script_began = False
        self.segmentation_fault = False
        self.output_limit_reached = False
        self.pipe_has_more = False

    def wait_for_end(self) -> JobEnd:
        """Read the socket and the pipes until the supervisor sends the end of the job."""
        supervisor = self.supervisor
        with selectors.DefaultSelector() as selector:
            selector.register(supervisor.socket, selectors.EVENT_READ, None)
            for index, pipe in enumerate(supervisor.pipes):
                selector.register(pipe, selectors.EVENT_READ, index)
            while True:
                ready = selector.select(_IDLE_INTERVAL)
                if not ready:
                    self.resume_supervisor()
                for key, _ in ready:
                    if key.data is None:
                        for event in self.receive_events():
                            end = self.handle(event)
                            if end is not None:
                                return end
                    elif not self.read(key.data):
                        selector.unregister(key.fileobj)

    def resume_supervisor(self) -> None:
        """Send SIGCONT to a supervisor that may have been stopped. Raises SupervisorLostError after the deadline."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.supervisor.pid, signal.SIGCONT)
        if time.monotonic() > self.deadline:
            raise SupervisorLostError(
                "the supervisor of Macaulay2 does not respond",
                script_began=self.script_began,
                overdue=self.script_began,
            )

    def receive_events(self) -> list[dict[str, Any]]:
        """Return the events that have arrived completely."""
        supervisor = self.supervisor
        try:
            data = supervisor.socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise self.lost("the supervisor of Macaulay2 has ended")
        *lines, supervisor.received = (supervisor.received + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def handle(self, event: dict[str, Any]) -> JobEnd | None:
        """Act on one event; return the end of the job if the event is ``done``."""
        kind = event.pop("event")
        if kind == "started":
            self.supervisor.directory = event["directory"]
            return None
        if kind == "ready":
            self.let_script_begin(event["pid"])
            return None
        if kind == "lost":
            self.script_began = event["script_began"]
            raise self.lost(event["reason"])
        self.supervisor.job_pid = None
        self.read_all()
        return JobEnd(**event)

    def let_script_begin(self, pid: int) -> None:
        """Read the version that Macaulay2 has printed, discard its other output so far, and send the request ``go``."""
        self.read_all()
        for line in self.buffers[0].decode("utf-8", "replace").splitlines():
            if line.startswith(VERSION_LINE):
                self.supervisor.version = line.removeprefix(VERSION_LINE).strip()
        self.buffers[0].clear()
        if self.discard_startup:
            self.buffers[1].clear()
        self.supervisor.job_pid = pid
        self.script_began = True
        wall_seconds = self.limits.seconds_left
        self.deadline = (
            float("inf") if wall_seconds is None else time.monotonic() + wall_seconds + _SUPERVISOR_GRACE
        )
        self.supervisor.send(request="go", wall_seconds=wall_seconds)

    def lost(self, reason: str) -> SupervisorLostError:
        """Make an error from `reason` and the last line on standard error, which may contain the cause."""
        self.read_all()
        last_line = self.buffers[1].decode("utf-8", "replace").strip().splitlines()[-1:]
        return SupervisorLostError(": ".join([reason, *last_line]), script_began=self.script_began)

    def read_all(self) -> None:
        """Read both pipes until they are empty."""
        for index in (0, 1):
            while self.read(index) and self.pipe_has_more:
                pass

    def read(self, index: int) -> bool:
        """Read once from a pipe (0: standard output, 1: standard error); return False at its end."""
        self.pipe_has_more = False
        try:
            data = os.read(self.supervisor.pipes[index].fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        self.pipe_has_more = bool(data)
        bytes_left = self.limits.output_bytes - len(self.buffers[0]) - len(self.buffers[1])
        if len(data) > bytes_left and not self.output_limit_reached:
            self.output_limit_reached = True
            self.supervisor.kill()
        self.buffers[index].extend(data[: max(bytes_left, 0)])
        if index == 1 and not self.segmentation_fault and SEGMENTATION_FAULT.search(self.buffers[1]):
            # Macaulay2's handler may hang while it prints the trace, so the supervisor shortens the time limit.
            self.segmentation_fault = True
            with contextlib.suppress(SupervisorLostError):
                self.supervisor.send(request="crashing")
        if index == 0 and self.listener is not None and self.script_began:
            self.report_lines(self.listener)
        return bool(data)

    def report_lines(self, listener: Listener) -> None:
        """Call the listener with each new complete line of standard output."""
        while (end := self.buffers[0].find(b"\n", self.reported)) >= 0:
            line = self.buffers[0][self.reported : end].decode("utf-8", "replace")
            self.reported = end + 1
            listener(line)

    def output(self) -> tuple[str, str]:
        """Return standard output and standard error as text."""
        stdout, stderr = (buffer.decode("utf-8", "replace") for buffer in self.buffers)
        return stdout, stderr
