"""Engine stage, outside the caller's process: the warm Macaulay2 and the children that it forks ahead of jobs.

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
from typing import Any, NamedTuple, Protocol

FEW_SPARES, MOST_FORKED = 1, 8  # with so few left, so many more are forked
GATES = ("gate", *(f"gate{number}" for number in range(FEW_SPARES + MOST_FORKED)))
FIFOS = ("next", "acknowledge", *GATES)
PAUSE = 0.0005  # seconds between two looks, when a job waits
UNHURRIED = 4 * PAUSE
START_PATIENCE = 120.0  # seconds until a Macaulay2 that starts counts as stuck
SERVER_PATIENCE = 10.0  # and one that is warm


class ServerLostError(Exception):
    """The warm Macaulay2 died or does not answer."""


def children_of(pid: int) -> set[int]:
    """The children of a process, whichever of its threads forked them."""
    found: set[int] = set()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                found.update(map(int, children.read().split()))
    except OSError:  # a kernel without these lists
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                    found.add(int(stat.parent.name))
    return found


def files_of(pid: int) -> list[str]:
    """The names of the files that a process has open, without their directories."""
    names = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"/proc/{pid}/fd/{number}").rpartition("/")[2])
    return names


def state_of(pid: int) -> str:
    """The letter by which the system tells a process that sleeps from one that was stopped; Z for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def unread(descriptor: int) -> int:
    """How many bytes in a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4), sys.byteorder)


class Keeper(Protocol):
    """What the warm Macaulay2 needs of its keeper."""

    asked_to_kill: bool

    def spawn(self, job: dict[str, Any], cpu_seconds: int | None) -> int: ...

    def listen(self, seconds: float | None) -> list[dict[str, Any]]: ...

    def writing_end(self, fifo: str) -> int | None: ...


class Spare(NamedTuple):
    """A child of the warm Macaulay2 that waits for a job: its process, its gate, the gate's writing end, its packages."""

    pid: int
    gate: str
    writing_end: int
    packages: frozenset[str]


class WarmMacaulay2:
    """A Macaulay2 that forks: its process, and the spare children that wait at their gates for the next jobs."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.server: int | None = None
        self.died = False
        self.gate = GATES[0]  # of the job that runs
        self.spares: list[Spare] = []
        self.forking = False
        self.litter = 1
        self.newborn: set[int] = set()  # children not seen at a gate yet
        self.awaited: dict[str, int | None] = {}  # gates where no child was seen yet, and their writing ends
        self.dropped: set[int] = set()  # children of no use, not yet gone from their gates
        self.packages: set[str] = set()  # that scripts have asked for
        self.loaded: set[str] = set()  # before the last fork

    def start(self, job: dict[str, Any]) -> tuple[int, int]:
        """A child of the warm Macaulay2, and its gate held open; both are made first if need be."""
        deadline = time.monotonic() + (SERVER_PATIENCE if self.server is not None else START_PATIENCE)
        self.packages.update(job["packages"])
        if self.server is None and not self.died:
            self.server = self.keeper.spawn(job, None)
        while time.monotonic() < deadline and not self.keeper.asked_to_kill:
            self.tend()
            if self.spares:
                spare = self.spares.pop(0)
                if self.packages <= spare.packages and state_of(spare.pid) in "SRD":
                    self.gate = spare.gate
                    return spare.pid, spare.writing_end
                self.drop(spare)  # it was forked before a package was loaded, or somebody stopped it
            elif self.died:
                raise ServerLostError("the warm Macaulay2 died")
            self.keeper.listen(PAUSE)
        raise ServerLostError("the warm Macaulay2 does not answer")

    def tend(self) -> bool:
        """One step towards spare children of the warm Macaulay2; whether there are more to take.

        The warm one is told to fork; it forks a process that forks the children and waits to be acknowledged, so that the
        children are known by their ancestry; then the one in between goes and they are the keeper's. The one in between costs
        more than a child, so it has several, each time twice as many; the first time one, for which a job is waiting. Packages
        that scripts have asked for are loaded before the fork.
        """
        if self.newborn:
            self.look_at_gates()
        elif self.server is not None and len(self.spares) <= FEW_SPARES and not self.dropped:
            fifo = self.keeper.writing_end("acknowledge" if self.forking else "next")
            if fifo is not None:
                if self.forking:
                    (between,) = children_of(self.server)
                    self.newborn = children_of(between)
                else:
                    self.close_gates()
                    taken = {self.gate, *(spare.gate for spare in self.spares)}
                    gates = [gate for gate in GATES if gate not in taken]
                    self.awaited = dict.fromkeys(gates[: self.litter])
                    self.litter = min(2 * self.litter, MOST_FORKED) if files_of(self.server) else 1
                    missing = sorted(self.packages - self.loaded)
                    self.loaded.update(missing)
                    os.write(fifo, f"{' '.join(self.awaited)};{' '.join(missing)}".encode())
                self.forking = not self.forking
                os.close(fifo)
        return bool(self.newborn) or (self.server is not None and len(self.spares) <= FEW_SPARES)

    def look_at_gates(self) -> None:
        """Open the gates at which somebody reads, and see who it is by the files that the newborn have open.

        Where the system does not show these, there is one child at a time.
        """
        for gate, end in self.awaited.items():
            if end is None:
                self.awaited[gate] = self.keeper.writing_end(gate)
        alone = len(self.newborn) == len(self.awaited) == 1
        for pid in list(self.newborn):
            for gate in list(self.awaited) if alone else files_of(pid):
                end = self.awaited.get(gate)
                if end is not None:
                    self.spares.append(Spare(pid, gate, end, frozenset(self.loaded)))
                    self.newborn.discard(pid)
                    del self.awaited[gate]

    def drop(self, spare: Spare) -> None:
        self.dropped.add(spare.pid)
        os.close(spare.writing_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(spare.pid, signal.SIGKILL)

    def close_gates(self) -> None:
        """Close the gates to which no child came, because it died before."""
        for end in self.awaited.values():
            if end is not None:
                os.close(end)
        self.awaited = {}

    def note_end(self, pid: int) -> None:
        """A child of the keeper ended."""
        if pid == self.server:
            self.server, self.died = None, True
        self.newborn.discard(pid)
        self.dropped.discard(pid)
        for spare in [spare for spare in self.spares if spare.pid == pid]:
            os.close(spare.writing_end)
            self.spares.remove(spare)

    def kill(self) -> None:
        """End the warm Macaulay2; its children are left to the keeper's sweep."""
        if self.server is not None:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.server, signal.SIGKILL)
            self.server = None
        for spare in self.spares:
            os.close(spare.writing_end)
        self.spares, self.newborn = [], set()
        self.close_gates()

    @property
    def processes(self) -> set[int | None]:
        """What belongs to the warm Macaulay2 and not to the job."""
        return {self.server, *self.newborn, *(spare.pid for spare in self.spares)}
