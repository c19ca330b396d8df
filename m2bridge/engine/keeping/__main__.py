"""Engine stage, outside the caller's process: the keeper, parent of every Macaulay2 that m2bridge starts.

It is run as ``python -I -S DIRECTORY``, so it imports the standard library and its neighbours only. Its standard input is a
socket: requests enter on it as JSON lines, reports leave on it the same way; standard output and standard error belong to
Macaulay2.

The other end of the socket is held by the caller alone: when the caller dies, however it dies, the socket
closes, and the keeper kills everything below it and removes its directory. It is a child subreaper, so a
process that Macaulay2 started and lost is handed to the keeper and cannot outlive the job, even in a session
of its own.

A job waits at the gate until its limits are in place: a FIFO, from which Macaulay2 reads the name of the script that it loads.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import math
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2bridge.engine.keeping import sandbox, warm
else:  # run as `python -I -S DIRECTORY`: the package is not imported, only its neighbours
    import sandbox
    import warm

PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
CRASH_PATIENCE = 5.0  # seconds that Macaulay2 may take to print the trace of its crash
SWEEP_PATIENCE = 10.0


class CallerGoneError(Exception):
    """The caller closed the socket or died."""


class Keeper:
    """One caller, one directory, one job at a time."""

    def __init__(self, caller: socket.socket) -> None:
        self.caller = caller
        self.received = b""
        self.exits: dict[int, tuple[int, Any]] = {}
        self.deadline = math.inf
        self.warm = warm.WarmMacaulay2(self)
        self.group: int | None = None
        self.asked_to_kill = self.go = self.begun = False
        self.root, self.lock = warm.own_directory()
        self.work = self.root / "work"
        self.work.mkdir()
        for name in warm.FIFOS:
            os.mkfifo(self.root / name, 0o600)
        self.lifeline, self.held = os.pipe()
        os.set_inheritable(self.lifeline, True)
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    # -- talking to the caller ------------------------------------------------------------------------------

    def report(self, event: str, **fields: object) -> None:
        try:
            self.caller.sendall(json.dumps({"event": event, **fields}).encode() + b"\n")
        except OSError:
            raise CallerGoneError from None

    def listen(self, seconds: float | None) -> dict[str, Any] | None:
        """Wait for a request, a child's end or the time to pass; the job that was asked for, if one was."""
        ready, _, _ = select.select([self.caller.fileno(), self.wake], [], [], seconds)
        if self.wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, 4096)
        lines: list[bytes] = []
        if self.caller.fileno() in ready:
            try:
                data = self.caller.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                raise CallerGoneError
            *lines, self.received = (self.received + data).split(b"\n")
        job = None
        for request in map(json.loads, lines):
            if request["request"] == "kill":
                self.asked_to_kill = True
            elif request["request"] == "go":
                self.go = True
            elif request["request"] == "crashing":
                self.deadline = min(self.deadline, time.monotonic() + CRASH_PATIENCE)
            else:
                job = request
        self.reap()
        return job

    # -- processes ------------------------------------------------------------------------------------------

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.exits[pid] = (status, usage)
            self.warm.note_end(pid)

    def children(self) -> set[int]:
        """The processes whose parent is the keeper, without the warm Macaulay2."""
        return set(warm.children_of(os.getpid())) - {self.warm.server} if LINUX else set()

    def sweep(self) -> None:
        """Kill the job and all that it started; orphans come to the keeper and are killed in turn."""
        deadline = time.monotonic() + SWEEP_PATIENCE
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        while time.monotonic() < deadline:
            self.reap()
            alive = self.children()
            if not alive and (LINUX or self.group in self.exits or self.group is None):
                break
            for pid in alive:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        self.group = None

    def tie(self, group: int) -> None:
        """Let the kernel kill a process group when this process is gone, which alone holds the other end of the lifeline.

        Macaulay2 and all that it forks have inherited the reading end, on which a signal was asked for: it comes with the end.
        """
        if LINUX:
            with contextlib.suppress(ProcessLookupError):
                fcntl.fcntl(self.lifeline, fcntl.F_SETOWN, -group)
            fcntl.fcntl(self.lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(self.lifeline, fcntl.F_SETFL, fcntl.FASYNC)

    def spawn(self, job: dict[str, Any], cpu_seconds: int | None) -> int:
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            sandbox.become(job["command"], job["environment"], self.work, cpu_seconds, keeper)
        return pid

    def shutdown(self) -> None:
        self.warm.kill()
        self.sweep()
        shutil.rmtree(self.root, ignore_errors=True)

    # -- jobs -----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Take jobs until the caller is gone."""
        try:
            self.report("hello", directory=str(self.root))
            while True:
                job = self.listen(None)
                try:
                    if job is not None:
                        self.job(job)
                except (warm.ServerLostError, OSError, ValueError) as error:
                    self.report("lost", reason=str(error), begun=self.begun)
        except CallerGoneError:
            pass
        finally:
            self.shutdown()

    def job(self, job: dict[str, Any]) -> None:
        """Run one job from the empty directory to the empty directory."""
        wall = math.inf if job["wall_seconds"] is None else job["wall_seconds"]
        begun = time.monotonic()
        self.deadline = begun + wall
        self.prepare(job)
        gate: int | None
        if job["warm"]:
            self.deadline = math.inf  # the time that a warm Macaulay2 takes to start is not the script's
            self.group, gate = self.warm.start(job)
            begun = time.monotonic()
            self.deadline = begun + wall
        else:
            gate = self.start_fresh(job)
        pid = self.group
        assert pid is not None
        cpu_limit = None
        if gate is not None:
            cpu_limit = self.limit(pid, job)
            self.tie(pid)
            self.report("ready", pid=pid)
            while not (self.go or self.must_end(pid)):
                self.listen(self.time_left())
            os.write(gate, f"./{job['file']}".encode())
            os.close(gate)
            self.begun = True
        while not self.must_end(pid):
            self.listen(self.time_left())
        stopped = None if pid in self.exits else "asked" if self.asked_to_kill else "wall"
        seconds = time.monotonic() - begun
        self.sweep()
        status, usage = self.exits.get(pid, (signal.SIGKILL, None))
        self.report(
            "done", status=status, stopped=stopped, seconds=seconds, cpu_limit=cpu_limit, passed_gate=gate is not None,
            cpu=usage and usage.ru_utime + usage.ru_stime, maxrss=usage and usage.ru_maxrss,
        )  # fmt: skip

    def time_left(self) -> float:
        return max(0.0, min(self.deadline - time.monotonic(), 60.0))

    def must_end(self, pid: int) -> bool:
        return pid in self.exits or self.asked_to_kill or time.monotonic() >= self.deadline

    def prepare(self, job: dict[str, Any]) -> None:
        """An empty directory with the script in it, whatever the job before left there."""
        for old in list(self.work.iterdir()):
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        (self.work / job["file"]).write_text(job["text"], encoding="utf-8", newline="")
        self.exits.clear()
        self.asked_to_kill = self.go = self.begun = False

    def start_fresh(self, job: dict[str, Any]) -> int | None:
        """Start a Macaulay2 of its own for the job; its gate held open, none when it ended before."""
        self.group = pid = self.spawn(job, None if LINUX else job["cpu_seconds"])
        while (gate := self.writing_end("gate")) is None and not self.must_end(pid):
            self.listen(warm.PAUSE)
        return gate

    def writing_end(self, fifo: str) -> int | None:
        """The FIFO's writing end if somebody reads it."""
        try:
            return os.open(self.root / fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None

    def limit(self, pid: int, job: dict[str, Any]) -> int | None:
        """Limits on what the script uses, on top of what the idle Macaulay2 already has."""
        cpu_limit: int | None = job["cpu_seconds"]
        if not LINUX:
            return cpu_limit
        if job["memory_bytes"] is not None:
            mapped, resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[:3])
            page = resource.getpagesize()
            room = max(0, job["heap_bytes"] - (resident - shared) * page)  # mapped, and not used yet
            allowed = mapped * page + max(0, job["memory_bytes"] - room)
            _limit(pid, resource.RLIMIT_AS, allowed)
        if cpu_limit is not None:
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            used = sum(map(int, ticks)) // os.sysconf("SC_CLK_TCK")
            cpu_limit += used
            _limit(pid, resource.RLIMIT_CPU, cpu_limit)
        return cpu_limit


def _limit(pid: int, kind: int, most: int) -> None:
    resource.prlimit(pid, kind, sandbox.limits(most, resource.prlimit(pid, kind)))


def main() -> None:
    caller = socket.socket(
        fileno=os.dup(0)
    )  # a small number however many files the caller has open: select needs that
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # Macaulay2 reads nothing from its standard input
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Keeper(caller).serve()


if __name__ == "__main__":
    main()
