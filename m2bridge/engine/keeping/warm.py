"""Engine stage, outside the caller's process: the warm Macaulay2 and the children that it forks ahead of jobs.

A job enters, the process identifier of a child at its gate leaves. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from m2bridge.engine.keeping.__main__ import Keeper

FEW_SPARES, MOST_FORKED = 1, 8  # with so few left, so many more are forked
GATES = ("gate", *(f"gate{number}" for number in range(FEW_SPARES + MOST_FORKED)))
FIFOS = ("next", "acknowledge", *GATES)
PAUSE = 0.0005  # seconds between two looks, when a job waits
UNHURRIED = 4 * PAUSE
START_PATIENCE = 120.0  # seconds until a Macaulay2 that starts counts as stuck
SERVER_PATIENCE = 10.0  # and one that is warm
LISTS_OF_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


class ServerLostError(Exception):
    """The warm Macaulay2 died or does not answer."""


def children_of(pid: int) -> list[int]:
    """The children of a process, whichever of its threads forked them; those of one thread in the order of their birth, where the
    kernel has lists of them.
    """
    found: list[int] = []
    tasks: list[str] = []
    with contextlib.suppress(OSError):  # the process is gone
        tasks = os.listdir(f"/proc/{pid}/task")
    for task in tasks if LISTS_OF_CHILDREN else ():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as children:
            found += map(int, children.read().split())
    for stat in () if LISTS_OF_CHILDREN else Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def state_of(pid: int) -> str:
    """The letter by which the system tells a process that sleeps from one that was stopped; Z for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def kill_all_in(directory: Path) -> int:
    """Kill the processes that work below a directory; how many there were."""
    found = 0
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"{directory}/"):
                os.kill(int(link.parent.name), signal.SIGKILL)
                found += 1
    return found


def remove(directory: Path, patience: float = 5.0) -> None:
    """Remove the directory of a keeper that was killed, and end what still works there."""
    deadline = time.monotonic() + patience
    while kill_all_in(directory) and time.monotonic() < deadline:
        time.sleep(0.001)  # one that was being forked is found next time
    shutil.rmtree(directory, ignore_errors=True)


def own_directory() -> tuple[Path, int]:
    """A new directory, and the lock on it that ends with this process; directories that nobody has locked are removed.

    The host is in its name, because on some network file systems locks hold for one host alone.
    """
    prefix = f"m2bridge-{os.uname().nodename}-"
    for stale in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            lock = os.open(stale, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(stale)
            finally:
                os.close(lock)
    while True:
        own = Path(tempfile.mkdtemp(prefix=prefix))
        with contextlib.suppress(FileNotFoundError):  # another keeper found it before it was locked
            lock = os.open(own, os.O_RDONLY)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if own.exists():
                return own, lock


def unread(descriptor: int) -> int:
    """How many bytes in a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def write_quick_end(path: Path) -> None:
    """Write a program that does nothing but end, on x86-64: to load /bin/true takes a child half a millisecond."""
    if platform.machine() == "x86_64":
        code = bytes.fromhex("31ff b83c000000 0f05")  # exit(0)
        header = struct.pack(
            "<7s9x2HI3QI6H", b"\x7fELF\2\1\1", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0
        )
        size = len(header) + 56 + len(code)
        path.write_bytes(header + struct.pack("<2I6Q", 1, 5, 0, 0x400000, 0x400000, size, size, 4096) + code)
        path.chmod(0o700)


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
        self.awaited: dict[str, int] = {}  # gates for children that are being forked, and the writing ends
        self.acknowledge = -1  # the writing end for the process that forks them
        self.litter = 1
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
            if self.spares and os.getpgid(self.spares[0].pid) == self.spares[0].pid:
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
        wanted = self.server is not None and len(self.spares) <= FEW_SPARES
        if self.server is not None and self.awaited:
            self.meet_newborn(self.server)
        elif wanted and not self.dropped and (fifo := self.keeper.writing_end("next")) is not None:
            os.write(fifo, self.order().encode())
            os.close(fifo)
        return wanted

    def order(self) -> str:
        """What the warm Macaulay2 is told: a gate for each child, and packages to load first."""
        taken = {self.gate, *(spare.gate for spare in self.spares)}
        gates = [gate for gate in GATES if gate not in taken][: self.litter]
        self.awaited = {gate: self.held_open(gate) for gate in gates}
        self.acknowledge = self.held_open("acknowledge")
        self.litter = min(2 * self.litter, MOST_FORKED) if LISTS_OF_CHILDREN else 1
        missing = sorted(self.packages - self.loaded)
        self.loaded.update(missing)
        return f"{' '.join(gates)};{' '.join(missing)}"

    def held_open(self, fifo: str) -> int:
        """A writing end of a FIFO that nobody reads yet; whoever opens it for reading does not wait."""
        return os.open(self.keeper.root / fifo, os.O_RDWR)

    def meet_newborn(self, server: int) -> None:
        """The children were forked in the order of their gates; those that died meanwhile are in the list too."""
        newborn = [child for between in children_of(server) for child in children_of(between)]
        if len(newborn) == len(self.awaited):
            packages = frozenset(self.loaded)
            for pid, (gate, end) in zip(newborn, self.awaited.items(), strict=True):
                self.spares.append(Spare(pid, gate, end, packages))
            self.awaited = {}
            os.close(self.acknowledge)

    def drop(self, spare: Spare) -> None:
        self.dropped.add(spare.pid)
        os.close(spare.writing_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(spare.pid, signal.SIGKILL)

    def note_end(self, pid: int) -> None:
        """A child of the keeper ended."""
        if pid == self.server:
            self.server, self.died = None, True
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
        self.spares = []

    @property
    def processes(self) -> set[int | None]:
        """What belongs to the warm Macaulay2 and not to the job."""
        return {self.server, *(spare.pid for spare in self.spares)}
