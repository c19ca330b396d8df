"""Engine stage, outside the caller's process: the warm Macaulay2, which forks a child for each job.

A job enters, the process identifier of a child that waits at the gate leaves. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2bridge.engine.keeping.__main__ import Keeper

FIFOS = ("next", "gate")
PAUSE = 0.001  # seconds between two looks, when a job waits
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


class WarmMacaulay2:
    """A Macaulay2 that has started and loaded packages, and forks a child for each job."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.server: int | None = None
        self.died = False
        self.loaded: set[str] = set()  # packages that scripts have asked for

    def start(self, job: dict[str, Any]) -> tuple[int, int]:
        """Let the warm Macaulay2 fork a child for the job; start it first if need be, and let it load missing packages.

        Return the process identifier of the child, which waits at the gate, and the gate's writing end.
        """
        missing = sorted(set(job["packages"]) - self.loaded)
        is_ready = self.server is not None and not missing
        deadline = time.monotonic() + (SERVER_PATIENCE if is_ready else START_PATIENCE)
        if self.server is None and not self.died:
            self.server = self.keeper.spawn(job, None)
        # held open for reading too: the warm Macaulay2 opens the gate before it forks, and does not wait there
        gate = os.open(self.keeper.root / "gate", os.O_RDWR)
        try:
            self.order(missing, deadline)
            return self.new_child(deadline), gate
        except BaseException:
            os.close(gate)
            raise

    def order(self, packages: list[str], deadline: float) -> None:
        """Tell the warm Macaulay2 to load packages and to fork."""
        while (fifo := self.keeper.writing_end("next")) is None:
            self.wait(deadline)
        os.write(fifo, " ".join(packages).encode())
        os.close(fifo)
        self.loaded.update(packages)

    def new_child(self, deadline: float) -> int:
        """Wait for the child of the warm Macaulay2 to become the keeper's; it is the only one, because each job is swept away."""
        while True:
            for pid in self.keeper.children():
                if os.getpgid(pid) == pid:
                    return pid
            self.wait(deadline)

    def wait(self, deadline: float) -> None:
        """Wait a little for the warm Macaulay2, unless there is nothing to wait for."""
        if self.died:
            raise ServerLostError("the warm Macaulay2 died")
        if time.monotonic() >= deadline or self.keeper.asked_to_kill:
            raise ServerLostError("the warm Macaulay2 does not answer")
        self.keeper.listen(PAUSE)

    def note_end(self, pid: int) -> None:
        """A child of the keeper ended."""
        if pid == self.server:
            self.server, self.died = None, True

    def kill(self) -> None:
        """End the warm Macaulay2; a child that it forked is left to the keeper's sweep."""
        if self.server is not None:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.server, signal.SIGKILL)
            self.server = None
