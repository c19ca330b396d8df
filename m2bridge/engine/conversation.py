"""Engine stage: one job's exchange with the keeper. Bytes enter, output and a `Fate` leave."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from typing import TYPE_CHECKING, Any

from m2bridge.engine.base import Limits, Listener
from m2bridge.engine.outcome import SEGMENTATION_FAULT, Fate

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
                    if key.data is not None:
                        if not self.read(key.data):
                            selector.unregister(key.fileobj)
                        continue
                    for report in self.reports():
                        fate = self.hear(report)
                        if fate is not None:
                            return fate

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
            self.keeper.note_version(self.buffers[0].decode("utf-8", "replace"))
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
