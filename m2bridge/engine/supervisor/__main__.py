"""The supervisor: the parent process of every Macaulay2 that m2bridge starts.

It is run as ``python -I -S DIRECTORY``, so it imports the standard library and the modules of this directory only. Its standard
input is a socket, connected to the process that started it (the client, :mod:`m2bridge.engine.supervisor_process`). Its
standard output and standard error are those of Macaulay2.

The protocol
------------
Both directions of the socket carry JSON objects, one per line. The client sends requests, the supervisor sends events:

1. event ``started``: the temporary directory of the supervisor.
2. request ``job``: script, command, environment and limits. The supervisor starts a Macaulay2, or the warm one forks a child.
   Macaulay2 opens a FIFO, the gate, and blocks. While it is blocked, the supervisor sets the limits of the process.
3. event ``ready``: the process is blocked at the gate and has its limits. The client reads what Macaulay2 has printed so far.
4. request ``go``, with the seconds that are left: the supervisor writes the name of the script to the gate. Macaulay2 reads the
   name and loads the script.
5. event ``done``: wait status, times and peak memory of the process; or event ``lost``: the warm Macaulay2 has ended.

At any time the client may send ``kill``, which ends the job, or ``crashing``, which shortens the time limit because Macaulay2 has
begun to print the trace of a crash.

How processes are ended
-----------------------
Only the client holds the other end of the socket. When the client ends, for whatever reason, the socket closes; the supervisor
then kills all its descendants and removes its directory. It is a child subreaper, so a process whose parent has ended becomes
a child of the supervisor and cannot outlive the job, even in another session.
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
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2bridge.engine.supervisor import processes, sandbox, warm_macaulay2
else:  # with `python -I -S DIRECTORY` the package m2bridge cannot be imported, only the modules of this directory
    import processes
    import sandbox
    import warm_macaulay2

PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
LINUX = sys.platform == "linux"
CRASH_TRACE_TIMEOUT = 5.0  # seconds in which Macaulay2 may print the trace of a crash
KILL_TIMEOUT = 10.0  # seconds in which killed processes must have ended


class ClientGoneError(Exception):
    """The client closed the socket or has ended."""


class Supervisor:
    """Runs the jobs of one client in one directory, one job at a time."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.received = b""
        self.exits: dict[int, tuple[int, Any]] = {}
        self.deadline = math.inf
        self.warm = warm_macaulay2.WarmMacaulay2(self)
        self.group: int | None = None
        self.kill_requested = False
        self.go_requested = False
        self.script_began = False
        self.root, self.lock = processes.create_locked_directory()
        self.work = self.root / "work"
        self.work.mkdir()
        self.temporary = self.root / "tmp"
        self.temporary.mkdir()
        for name in warm_macaulay2.FIFOS:
            os.mkfifo(self.root / name, 0o600)
        self.lifeline, self.lifeline_write = os.pipe()
        os.set_inheritable(self.lifeline, True)
        # The kernel writes to this pipe when a child ends (SIGCHLD), so that `select` returns.
        self.signal_pipe, signal_pipe_write = os.pipe()
        os.set_blocking(self.signal_pipe, False)
        os.set_blocking(signal_pipe_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signal_pipe_write, warn_on_full_buffer=False)

    # -- communication with the client ----------------------------------------------------------------------

    def send(self, event: str, **fields: object) -> None:
        """Send an event to the client."""
        try:
            self.client.sendall(json.dumps({"event": event, **fields}).encode() + b"\n")
        except OSError:
            raise ClientGoneError from None

    def wait_for_event(self, seconds: float | None) -> dict[str, Any] | None:
        """Wait for a request, the end of a child or the end of `seconds`; return the job if one was requested."""
        ready, _, _ = select.select([self.client.fileno(), self.signal_pipe], [], [], seconds)
        if self.signal_pipe in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.signal_pipe, 4096)
        lines = self.receive_lines() if self.client.fileno() in ready else []
        job = None
        for request in map(json.loads, lines):
            kind = request["request"]
            if kind == "kill":
                self.kill_requested = True
            elif kind == "go":
                self.go_requested = True
                # If the start of Macaulay2 took long, less time is left than the job was sent with.
                if request["wall_seconds"] is not None:
                    self.deadline = min(self.deadline, time.monotonic() + request["wall_seconds"])
            elif kind == "crashing":
                self.deadline = min(self.deadline, time.monotonic() + CRASH_TRACE_TIMEOUT)
            else:
                job = request
        self.reap()
        return job

    def receive_lines(self) -> list[bytes]:
        """Return the complete lines that have arrived from the client; the rest of the data is stored."""
        try:
            data = self.client.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            raise ClientGoneError
        *lines, self.received = (self.received + data).split(b"\n")
        return lines

    # -- processes ------------------------------------------------------------------------------------------

    def reap(self) -> None:
        """Store the wait status and the resource usage of all children that have ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.exits[pid] = (status, usage)
            self.warm.record_exit(pid)

    def children(self) -> set[int]:
        """Return the children of the supervisor without the warm Macaulay2."""
        if not LINUX:
            return set()
        return set(processes.children_of(os.getpid())) - {self.warm.server}

    def kill_job(self) -> None:
        """Kill the job and all processes that it started.

        When a process is killed, its children become children of the supervisor. So the loop repeats until there are none.
        """
        deadline = time.monotonic() + KILL_TIMEOUT
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        while time.monotonic() < deadline:
            self.reap()
            children = self.children()
            if not children and (LINUX or self.group in self.exits or self.group is None):
                break
            for pid in children:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        self.group = None

    def kill_group_at_exit(self, group: int) -> None:
        """Make the kernel kill a process group when the supervisor ends, even if the supervisor is killed itself.

        Macaulay2 and its children inherit the reading end of the pipe `lifeline`; only the supervisor holds the writing end. When
        the supervisor ends, the writing end closes, and the kernel sends the signal set by F_SETSIG to the owner set by F_SETOWN.
        """
        if LINUX:
            with contextlib.suppress(ProcessLookupError):
                fcntl.fcntl(self.lifeline, fcntl.F_SETOWN, -group)
            fcntl.fcntl(self.lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(self.lifeline, fcntl.F_SETFL, fcntl.FASYNC)

    def spawn(self, job: dict[str, Any], cpu_seconds: int | None) -> int:
        """Start Macaulay2 in the sandbox; return its process identifier."""
        supervisor_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            environment = job["environment"] | {"TMPDIR": str(self.temporary)}
            sandbox.exec_macaulay2(job["command"], environment, self.work, cpu_seconds, supervisor_pid)
        return pid

    def shut_down(self) -> None:
        """Kill all processes and remove the directory."""
        self.warm.kill()
        self.kill_job()
        processes.remove_directory(self.root)

    # -- jobs -----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Run jobs until the client closes the socket."""
        try:
            self.send("started", directory=str(self.root))
            while True:
                job = self.wait_for_event(None)
                try:
                    if job is not None:
                        self.run_job(job)
                except (warm_macaulay2.ServerLostError, OSError, ValueError) as error:
                    self.send("lost", reason=str(error), script_began=self.script_began)
        except ClientGoneError:
            pass
        finally:
            self.shut_down()

    def run_job(self, job: dict[str, Any]) -> None:
        """Run one job and send the event ``done``."""
        wall_seconds = math.inf if job["wall_seconds"] is None else job["wall_seconds"]
        start = time.monotonic()
        self.deadline = start + wall_seconds
        self.prepare(job)
        gate: int | None
        if job["warm"]:
            self.deadline = (
                math.inf
            )  # the script's time limit does not include the start of the warm Macaulay2
            self.group, gate = self.warm.start(job)
            start = time.monotonic()
            self.deadline = start + wall_seconds
        else:
            gate = self.start_macaulay2(job)
        pid = self.group
        assert pid is not None
        cpu_limit = None
        if gate is not None:
            cpu_limit = self.set_limits(pid, job)
            self.open_gate(gate, pid, job["file"])
        while not self.must_end(pid):
            self.wait_for_event(self.seconds_left())
        stopped = None
        if pid not in self.exits:
            stopped = "request" if self.kill_requested else "wall"
        seconds = time.monotonic() - start
        self.kill_job()
        self.remove_temporary_files()
        status, usage = self.exits.get(pid, (signal.SIGKILL, None))
        self.send(
            "done", status=status, stopped=stopped, seconds=seconds, cpu_limit=cpu_limit, passed_gate=gate is not None,
            cpu=usage and usage.ru_utime + usage.ru_stime, maxrss=usage and usage.ru_maxrss,
        )  # fmt: skip

    def open_gate(self, gate: int, pid: int, file: str) -> None:
        """Send the event ``ready``, wait for the request ``go``, and write the name of the script to the gate."""
        self.kill_group_at_exit(pid)
        self.send("ready", pid=pid)
        while not (self.go_requested or self.must_end(pid)):
            self.wait_for_event(self.seconds_left())
        os.write(gate, f"./{file}".encode())
        os.close(gate)
        self.script_began = True

    def seconds_left(self) -> float:
        """Return the seconds until the deadline, at most 60."""
        return max(0.0, min(self.deadline - time.monotonic(), 60.0))

    def must_end(self, pid: int) -> bool:
        """Return whether the job has ended, was killed by request or has reached its deadline."""
        return pid in self.exits or self.kill_requested or time.monotonic() >= self.deadline

    def prepare(self, job: dict[str, Any]) -> None:
        """Empty the working directory, write the script into it, and reset the state of the previous job."""
        processes.empty_directory(self.work)
        (self.work / job["file"]).write_text(job["text"], encoding="utf-8", newline="")
        self.exits.clear()
        self.kill_requested = False
        self.go_requested = False
        self.script_began = False

    def remove_temporary_files(self) -> None:
        """Remove what the job has left in the temporary directory; the directory of the warm Macaulay2 in it is emptied."""
        of_server = f"M2-{self.warm.server}-*"
        processes.empty_directory(self.temporary, keep=of_server)
        for directory in self.temporary.glob(of_server):
            processes.empty_directory(directory)

    def start_macaulay2(self, job: dict[str, Any]) -> int | None:
        """Start a new Macaulay2 for the job; return the writing end of its gate, None if it ended before it opened the gate."""
        self.group = pid = self.spawn(job, None if LINUX else job["cpu_seconds"])
        while (gate := self.writing_end("gate")) is None and not self.must_end(pid):
            self.wait_for_event(warm_macaulay2.POLL_INTERVAL)
        return gate

    def writing_end(self, fifo: str) -> int | None:
        """Open a FIFO for writing; None if no process has opened it for reading."""
        try:
            return os.open(self.root / fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None

    def set_limits(self, pid: int, job: dict[str, Any]) -> int | None:
        """Limit the memory and CPU time of the script; return the limit of CPU time in seconds.

        The limits of the system count from the start of the process. So the memory that the idle Macaulay2 has mapped and the CPU
        time that it has used are added to the limits of the job. A warm Macaulay2 has reserved a heap in advance; the part of it
        that is not used yet is available to the script and is subtracted.
        """
        cpu_limit: int | None = job["cpu_seconds"]
        if not LINUX:
            return cpu_limit
        if job["memory_bytes"] is not None:
            mapped, resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[:3])
            page = resource.getpagesize()
            unused_heap = max(0, job["heap_bytes"] - (resident - shared) * page)
            address_space = mapped * page + max(0, job["memory_bytes"] - unused_heap)
            _set_limit(pid, resource.RLIMIT_AS, address_space)
        if cpu_limit is not None:
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            cpu_limit += sum(map(int, ticks)) // os.sysconf("SC_CLK_TCK")
            cpu_limit = _set_limit(pid, resource.RLIMIT_CPU, cpu_limit)
        return cpu_limit


def _set_limit(pid: int, kind: int, value: int) -> int:
    """Set a limit of a process; return the one that holds, which is lower if the process has inherited a lower one."""
    limits = sandbox.soft_and_hard_limit(value, resource.prlimit(pid, kind))
    resource.prlimit(pid, kind, limits)
    return limits[1]


def main() -> None:
    """Run the supervisor for the client on standard input."""
    # `select` requires file descriptors below 1024; dup returns the smallest free one.
    client = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # standard input of Macaulay2
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Supervisor(client).serve()


if __name__ == "__main__":
    main()
