"""Engine stage, outside the caller's process: the keeper, parent of every Macaulay2 that m2bridge starts.

It is run as a script with ``python -I -S``, so it imports the standard library only. Requests enter as JSON
lines on a socket, reports leave on it the same way; standard output and standard error belong to Macaulay2.

The other end of the socket is held by the caller alone: when the caller dies, however it dies, the socket
closes, and the keeper kills everything below it and removes its directory. It is a child subreaper, so a
process that Macaulay2 started and lost is handed to the keeper and cannot outlive the job, even in a session
of its own.

A job waits at a gate (a FIFO that Macaulay2 reads before it loads the script) until its limits are in place.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
START_PATIENCE = 120.0  # seconds until a Macaulay2 that starts counts as stuck
SERVER_PATIENCE = 10.0  # and one that is warm
SWEEP_PATIENCE = 10.0


class CallerGoneError(Exception):
    """The caller closed the socket or died."""


class ServerLostError(Exception):
    """The warm Macaulay2 died or does not answer."""


class Keeper:
    """One caller, one directory, one job at a time."""

    def __init__(self, caller: socket.socket) -> None:
        self.caller = caller
        self.received = b""
        self.exits: dict[int, tuple[int, Any]] = {}
        self.server: int | None = None
        self.group: int | None = None
        self.asked_to_kill = False
        self.go = False
        self.root = Path(tempfile.mkdtemp(prefix="m2bridge-"))
        self.work = self.root / "work"
        self.work.mkdir()
        for name in ("gate", "jobs"):
            os.mkfifo(self.root / name, 0o600)
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

    def requests(self) -> Iterator[dict[str, Any]]:
        while b"\n" in self.received:
            line, _, self.received = self.received.partition(b"\n")
            yield json.loads(line)

    def listen(self, seconds: float | None) -> list[dict[str, Any]]:
        """Wait for a request, a child's end or the time to pass; notes the requests `kill` and `go`."""
        ready, _, _ = select.select([self.caller.fileno(), self.wake], [], [], seconds)
        if self.wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, 4096)
        if self.caller.fileno() in ready:
            try:
                data = self.caller.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                raise CallerGoneError
            self.received += data
        others = []
        for request in self.requests():
            if request["request"] == "kill":
                self.asked_to_kill = True
            elif request["request"] == "go":
                self.go = True
            else:
                others.append(request)
        self.reap()
        return others

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
            if pid == self.server:
                self.server = None

    def children(self) -> set[int]:
        """The processes whose parent is the keeper, the warm Macaulay2 left out."""
        if not LINUX:
            return set()
        me = os.getpid()
        try:
            found = {int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()}
        except OSError:
            found = set()
            for stat in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    if int(stat.read_text().rpartition(")")[2].split()[1]) == me:
                        found.add(int(stat.parent.name))
        return found - {self.server}

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

    def spawn(self, job: dict[str, Any], cpu_seconds: int | None) -> int:
        pid = os.fork()
        if pid == 0:
            become = runpy.run_path(str(Path(__file__).with_name("_sandbox.py")))["become"]
            become(job["command"], job["environment"], self.work, cpu_seconds)
        return pid

    def shutdown(self) -> None:
        if self.server is not None:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.server, signal.SIGKILL)
            self.server = None
        self.sweep()
        shutil.rmtree(self.root, ignore_errors=True)

    # -- jobs -----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Take jobs until the caller is gone."""
        try:
            while True:
                for request in self.listen(None):
                    try:
                        self.job(request)
                    except (ServerLostError, OSError) as error:
                        self.report("lost", reason=str(error))
        except CallerGoneError:
            pass
        finally:
            self.shutdown()

    def job(self, job: dict[str, Any]) -> None:
        """Run one job from the empty directory to the empty directory."""
        begun = time.monotonic()
        deadline = begun + job["wall_seconds"] if job["wall_seconds"] is not None else float("inf")
        self.prepare(job)
        if job["warm"]:
            pid, gate = self.start_warm(job)
            deadline += time.monotonic() - begun  # the time that a warm Macaulay2 takes is not the script's
            begun = time.monotonic()
        else:
            pid, gate = self.start_fresh(job, deadline)
        cpu_limit = None
        if gate is not None:
            cpu_limit = self.limit(pid, job)
            self.report("ready", pid=pid, directory=str(self.root))
            while not (self.go or self.must_end(pid, deadline)):
                self.listen(max(0.0, min(deadline - time.monotonic(), 60.0)))
            os.close(gate)
        while not self.must_end(pid, deadline):
            self.listen(max(0.0, min(deadline - time.monotonic(), 60.0)))
        stopped = None if pid in self.exits else "asked" if self.asked_to_kill else "wall"
        seconds = time.monotonic() - begun
        self.sweep()
        status, usage = self.exits.get(pid, (signal.SIGKILL, None))
        self.report(
            "done", status=status, stopped=stopped, seconds=seconds, cpu_limit=cpu_limit, passed_gate=gate is
            not None, cpu=usage and usage.ru_utime + usage.ru_stime, maxrss=usage and usage.ru_maxrss,
        )  # fmt: skip

    def must_end(self, pid: int | None, deadline: float) -> bool:
        return pid in self.exits or self.asked_to_kill or time.monotonic() >= deadline

    def prepare(self, job: dict[str, Any]) -> None:
        """An empty directory with the script in it, whatever the job before left there."""
        for old in list(self.work.iterdir()):
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        (self.work / job["file"]).write_text(job["text"], encoding="utf-8", newline="")
        self.exits.clear()
        self.asked_to_kill = self.go = False

    def start_fresh(self, job: dict[str, Any], deadline: float) -> tuple[int, int | None]:
        """A Macaulay2 of its own for the job, and its gate held open; no gate when it ended before."""
        pid = self.group = self.spawn(job, None if LINUX else job["cpu_seconds"])
        return pid, self.reader_of("gate", pid, deadline, 0.002)

    def start_warm(self, job: dict[str, Any]) -> tuple[int, int | None]:
        """A child forked by the warm Macaulay2, which is started first if need be."""
        deadline = time.monotonic() + (SERVER_PATIENCE if self.server is not None else START_PATIENCE)
        if self.server is None:
            self.server = self.spawn(job, None)
        server = self.server
        jobs = self.reader_of("jobs", server, deadline, 0.0005)
        if jobs is not None:
            os.write(jobs, f"./{job['file']}".encode())
            os.close(jobs)
            gate = self.reader_of("gate", server, deadline, 0.0005)
            while gate is not None and time.monotonic() < deadline:
                if len(found := self.children()) == 1:
                    return found.pop(), gate
                self.listen(0.0005)
        raise ServerLostError("the warm Macaulay2 " + ("died" if server in self.exits else "does not answer"))

    def reader_of(self, fifo: str, reader: int, deadline: float, pause: float) -> int | None:
        """The FIFO's writing end, as soon as `reader` (or its child) reads it; None if it ended or time is
        up.
        """
        while True:
            try:
                return os.open(self.root / fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            if self.must_end(reader, deadline):
                return None
            self.listen(pause)

    def limit(self, pid: int, job: dict[str, Any]) -> int | None:
        """Limits on what the script uses, on top of what the idle Macaulay2 already has."""
        cpu_limit: int | None = job["cpu_seconds"]
        if not LINUX:
            return cpu_limit
        if job["memory_bytes"] is not None:
            mapped = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (mapped + job["memory_bytes"],) * 2)
        if cpu_limit is not None:
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            used = sum(map(int, ticks)) // os.sysconf("SC_CLK_TCK")
            cpu_limit += used
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
        return cpu_limit


def main() -> None:
    caller = socket.socket(fileno=int(sys.argv[1]))
    caller.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Keeper(caller).serve()


if __name__ == "__main__":
    main()
