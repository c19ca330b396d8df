"""Engine stage, outside the caller's process: the warm Macaulay2 and the child that it forks ahead of each job.

A job enters, the process identifier of a child at its gate leaves. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import termios
import time
from pathlib import Path
from typing import Any, Protocol

FIFOS = ("next", "acknowledge", "gate", "other_gate")
PAUSE = 0.0005
START_PATIENCE = 120.0  # seconds until a Macaulay2 that starts counts as stuck
SERVER_PATIENCE = 10.0  # and one that is warm


class ServerLostError(Exception):
    """The warm Macaulay2 died or does not answer."""


def children_of(pid: int) -> set[int]:
    """The children of a process, whichever of its threads forked them."""
    try:
        lists = [task.joinpath("children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return {int(child) for text in lists for child in text.split()}
    except OSError:  # a kernel without these lists
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                    found.add(int(stat.parent.name))
        return found


def unread(descriptor: int) -> int:
    """How many bytes in a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4), sys.byteorder)


class Keeper(Protocol):
    """What the warm Macaulay2 needs of its keeper."""

    asked_to_kill: bool

    def spawn(self, job: dict[str, Any], cpu_seconds: int | None) -> int: ...

    def listen(self, seconds: float | None) -> list[dict[str, Any]]: ...

    def writing_end(self, fifo: str) -> int | None: ...


class WarmMacaulay2:
    """A Macaulay2 that forks: its process, and the spare child that waits at its gate for the next job."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.server: int | None = None
        self.died = False
        self.forking = False
        self.spare: int | None = None
        self.spare_gate: int | None = None
        self.gate_name = "gate"

    def start(self, job: dict[str, Any]) -> tuple[int, int]:
        """The spare child of the warm Macaulay2, and its gate held open; each is made first if need be."""
        deadline = time.monotonic() + (SERVER_PATIENCE if self.server is not None else START_PATIENCE)
        if self.server is None and not self.died:
            self.server = self.keeper.spawn(job, None)
        while time.monotonic() < deadline and not self.keeper.asked_to_kill:
            self.tend()
            if self.spare is not None and self.spare_gate is not None:
                pid, gate = self.spare, self.spare_gate
                self.spare = self.spare_gate = None
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "SRD":
                    return pid, gate
                os.close(gate)  # stopped by somebody: it is no use, and is swept away with the server
            elif self.died:
                raise ServerLostError("the warm Macaulay2 died")
            self.keeper.listen(PAUSE)
        raise ServerLostError("the warm Macaulay2 does not answer")

    def tend(self) -> bool:
        """One step towards a spare child of the warm Macaulay2; whether there are more to take.

        The warm one is told to fork; it forks a process that forks the child and waits to be acknowledged, so that the
        child is known by its ancestry; then the one in between goes and the child is the keeper's. The two gates take
        turns, because the child before may still be on its way through its own.
        """
        if self.spare is None:
            if self.server is None:
                return False
            fifo = self.keeper.writing_end("acknowledge" if self.forking else "next")
            if fifo is not None:
                if self.forking:
                    (between,) = children_of(self.server)
                    (self.spare,) = children_of(between)
                else:
                    self.gate_name = "other_gate" if self.gate_name == "gate" else "gate"
                    os.write(fifo, f"../{self.gate_name}".encode())
                self.forking = not self.forking
                os.close(fifo)
        elif self.spare_gate is None:
            self.spare_gate = self.keeper.writing_end(self.gate_name)
        return self.spare_gate is None

    def drop_spare(self) -> None:
        self.spare = None
        if self.spare_gate is not None:
            os.close(self.spare_gate)
            self.spare_gate = None

    def note_end(self, pid: int) -> None:
        """A child of the keeper ended."""
        if pid == self.server:
            self.server, self.died = None, True
        if pid == self.spare:
            self.drop_spare()

    def kill(self) -> None:
        """End the warm Macaulay2; its spare child is left to the keeper's sweep."""
        if self.server is not None:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.server, signal.SIGKILL)
            self.server = None
        self.drop_spare()
