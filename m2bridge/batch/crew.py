"""Batch: the runner's side of a worker process. Jobs leave on a socket, events come back on it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Any

from m2bridge.batch.limits import JobLimits
from m2bridge.batch.plan import Job

GRACE = 5.0
"""Seconds after its time limit at which a worker that does not answer is killed."""
_CHUNK = 1 << 18
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "FLINT_NUM_THREADS"), "1"
)


@dataclass(slots=True)
class Task:
    """A job on its way: its key, the limits and the number of this attempt, since when, at which step."""

    job: Job
    key: str
    limits: JobLimits
    attempt: int = 1
    started: float = 0.0
    step: str = "starting"
    estimate: float | None = None
    previous: dict[str, Any] | None = None

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def overdue(self) -> bool:
        wall = self.limits.wall_seconds
        return wall is not None and self.elapsed > wall + GRACE


class WorkerHandle:
    """One worker process, from its start to its end."""

    def __init__(self, engine: str | None) -> None:
        self.socket, theirs = socket.socketpair()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the handle
        program = "import sys; from m2bridge.batch.worker import main; main()"
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, str(theirs.fileno()), str(os.getpid()), engine or ""],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **_ONE_THREAD},
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            theirs.close()
        self.socket.setblocking(False)
        self.ready = False
        self.task: Task | None = None
        self.killed_for: str | None = None
        self._received = bytearray()

    @property
    def idle(self) -> bool:
        return self.ready and self.task is None

    def give(self, task: Task) -> None:
        """Send a job; it fits into the socket's buffer."""
        task.started, task.step = time.monotonic(), "starting"
        self.task = task
        request = {**task.job.document(), "limits": task.limits.document(), "id": task.key}
        with contextlib.suppress(OSError):  # a dead worker is noticed by the end of its socket
            self.socket.setblocking(True)
            self.socket.sendall(json.dumps(request).encode() + b"\n")
        self.socket.setblocking(False)

    def events(self) -> list[dict[str, Any]] | None:
        """What the worker said since; None when it is gone."""
        while True:
            try:
                data = self.socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                return None
            self._received += data
            if len(data) < _CHUNK:
                break
        *lines, rest = self._received.split(b"\n")
        self._received = bytearray(rest)
        return [json.loads(line) for line in lines]

    def kill(self, reason: str | None = None) -> None:
        """End the worker at once; Macaulay2's keeper sees it go and ends what is below."""
        self.killed_for = self.killed_for or reason
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)

    def close(self) -> int:
        """Wait for the end of the process; its exit status."""
        self.socket.close()
        try:
            status = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.process.wait()
        return status

    def last_words(self) -> str:
        """The last line that the worker wrote on standard error."""
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, self._errors.tell() - 4000))
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            return lines[-1][:500] if lines else ""
        return ""

    def forget(self) -> None:
        self._errors.close()
