"""Engine stage: one job's exchange with the keeper. Bytes enter; the output, a `Fate` and what it means leave."""

from __future__ import annotations

import contextlib
import json
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
    from m2bridge.engine.keeper import KeeperProcess

_CHUNK = 1 << 16
_SILENCE = 5.0
"""After so many seconds without a word the keeper is told to go on, in case that somebody stopped it."""
_GRACE = 8.0
"""Seconds after the time limit at which a keeper that has not ended the job counts as stuck."""
_START_PATIENCE = 150.0
VERSION_LINE = "@m2b-engine "
"""Every Macaulay2 says its version in a line of this form before it takes a script."""
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
SEGMENTATION_FAULT = re.compile(rb"^-- SIGSEGV\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The end of a job as the keeper saw it.

    `status` is the status of waitpid; `stopped` says why the keeper killed the job (``wall``, ``asked``), if
    it did; `passed_gate` is false when the process ended before it came to the script.
    """

    status: int
    seconds: float
    stopped: str | None = None
    cpu: float | None = None
    cpu_limit: int | None = None
    maxrss: int | None = None
    passed_gate: bool = True


def outcome(
    fate: Fate, stdout: str, stderr: str, *, output_limit_reached: bool
) -> tuple[Outcome, int | None, int | None]:
    """The outcome of a run, its exit status and the signal it died of.

    Macaulay2 installs a handler for SIGSEGV that prints a trace and exits, or hangs, and its garbage collector
    swallows SIGXCPU, so neither shows in the status: the first is known by its trace, and the CPU limit kills with
    SIGKILL, known by the CPU time used.
    """
    exit_status = os.WEXITSTATUS(fate.status) if os.WIFEXITED(fate.status) else None
    died_of = os.WTERMSIG(fate.status) if os.WIFSIGNALED(fate.status) else None
    crashing = SEGMENTATION_FAULT.search(stderr.encode()) is not None
    cpu_used_up = fate.cpu_limit is not None and fate.cpu is not None and fate.cpu >= fate.cpu_limit - 0.5
    lacked_memory = _OUT_OF_MEMORY.search(stderr) or (
        died_of == signal.SIGABRT and _FLINT_OUT_OF_MEMORY.search(stdout[-1000:])
    )
    if output_limit_reached:
        result = Outcome.TOO_MUCH_OUTPUT
    elif fate.stopped == "wall":
        result = Outcome.CRASHED if crashing else Outcome.TIMED_OUT
    elif exit_status == 0:
        result = Outcome.FINISHED
    elif died_of in (signal.SIGXCPU, signal.SIGKILL) and cpu_used_up:
        result = Outcome.TIMED_OUT
    elif lacked_memory:
        result = Outcome.OUT_OF_MEMORY
    elif died_of is not None or crashing:
        result = Outcome.CRASHED
    else:
        result = Outcome.SCRIPT_ERROR
    if result is Outcome.CRASHED and crashing and (died_of is None or fate.stopped == "wall"):
        died_of = int(signal.SIGSEGV)
    return result, exit_status, died_of


class KeeperLostError(Exception):
    """The keeper, or the warm Macaulay2 under it, is dead or stuck.

    `started` when the script had begun; `overdue` when the script has outlasted its time limit and the keeper does not act.
    """

    def __init__(self, message: str, *, started: bool, overdue: bool = False) -> None:
        super().__init__(message)
        self.started, self.overdue = started, overdue


class Conversation:
    """One job's exchange with the keeper: reads pipes and socket until the keeper reports the end."""

    def __init__(
        self, keeper: KeeperProcess, limits: Limits, listener: Listener | None, *, forget_startup: bool
    ) -> None:
        self.keeper, self.limits, self.listener = keeper, limits, listener
        self.forget_startup = forget_startup
        self.buffers = (bytearray(), bytearray())
        self.told = 0
        self.last_call = time.monotonic() + max(_START_PATIENCE, (limits.wall_seconds or 0.0) + _GRACE)
        self.started = self.crashing = False
        self.output_limit_reached = False

    def follow(self) -> Fate:
        keeper = self.keeper
        with selectors.DefaultSelector() as selector:
            selector.register(keeper.caller, selectors.EVENT_READ, None)
            for index, pipe in enumerate(keeper.pipes):
                selector.register(pipe, selectors.EVENT_READ, index)
            while True:
                ready = selector.select(_SILENCE)
                if not ready:
                    self.nudge()
                for key, _ in ready:
                    if key.data is None:
                        for report in self.reports():
                            if (fate := self.hear(report)) is not None:
                                return fate
                    elif not self.read(key.data):
                        selector.unregister(key.fileobj)

    def nudge(self) -> None:
        """The keeper is silent: wake it if it was stopped, and do not wait for it for ever."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.keeper.pid, signal.SIGCONT)
        if time.monotonic() > self.last_call:
            raise KeeperLostError(
                "the keeper of Macaulay2 does not answer", started=self.started, overdue=self.started
            )

    def reports(self) -> list[dict[str, Any]]:
        keeper = self.keeper
        try:
            data = keeper.caller.recv(_CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            raise self.lost("the keeper of Macaulay2 died")
        *lines, keeper.received = (keeper.received + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def hear(self, report: dict[str, Any]) -> Fate | None:
        event = report.pop("event")
        if event == "hello":
            self.keeper.directory = report["directory"]
            return None
        if event == "ready":
            self.drain()
            for line in self.buffers[0].decode("utf-8", "replace").splitlines():
                if line.startswith(VERSION_LINE):
                    self.keeper.version = line.removeprefix(VERSION_LINE).strip()
            self.buffers[0].clear()
            if self.forget_startup:
                self.buffers[1].clear()
            self.keeper.job_pid = report["pid"]
            self.started = True
            wall = self.limits.wall_seconds
            self.last_call = float("inf") if wall is None else time.monotonic() + wall + _GRACE
            self.keeper.send(request="go")
            return None
        if event == "lost":
            self.started = report["begun"]
            raise self.lost(report["reason"])
        self.keeper.job_pid = None
        self.drain()
        return Fate(**report)

    def lost(self, reason: str) -> KeeperLostError:
        """The error, with the last line on standard error, which may say why."""
        self.drain()
        said = self.buffers[1].decode("utf-8", "replace").strip().splitlines()[-1:]
        return KeeperLostError(": ".join([reason, *said]), started=self.started)

    def drain(self) -> None:
        for index in (0, 1):
            while self.read(index) and self.more:
                pass

    def read(self, index: int) -> bool:
        """Read what one pipe holds; False at its end."""
        self.more = False
        try:
            data = os.read(self.keeper.pipes[index].fileno(), _CHUNK)
        except BlockingIOError:
            return True
        self.more = bool(data)
        room = self.limits.output_bytes - len(self.buffers[0]) - len(self.buffers[1])
        if len(data) > room and not self.output_limit_reached:
            self.output_limit_reached = True
            self.keeper.kill()
        self.buffers[index].extend(data[: max(room, 0)])
        if index == 1 and not self.crashing and SEGMENTATION_FAULT.search(self.buffers[1]):
            self.crashing = True  # its handler may hang while it prints the trace
            with contextlib.suppress(KeeperLostError):
                self.keeper.send(request="crashing")
        if index == 0 and self.listener is not None and self.started:
            self.tell(self.listener)
        return bool(data)

    def tell(self, listener: Listener) -> None:
        while (end := self.buffers[0].find(b"\n", self.told)) >= 0:
            line = self.buffers[0][self.told : end].decode("utf-8", "replace")
            self.told = end + 1
            listener(line)

    def text(self) -> tuple[str, str]:
        stdout, stderr = (buffer.decode("utf-8", "replace") for buffer in self.buffers)
        return stdout, stderr
