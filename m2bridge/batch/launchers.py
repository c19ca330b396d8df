"""Launchers, which start workers on this or other machines, and the runner's connections to workers.

A launcher is an object with the method :meth:`Launcher.start`. :class:`CommandLauncher` starts ``m2bridge worker`` on this
machine, or through a command that forwards standard input and output, such as ``srun -n1`` or ``ssh node``. The runner
communicates with the worker through these two pipes; the end of the worker's output is the end of the worker.
:mod:`m2bridge.batch.dask_workers` has the launcher for Dask. :func:`open_launcher` makes the launcher that the options of a
command select.

A batch has one slot for each simultaneous job; a launcher may distribute the slots to several machines. :class:`WorkerSlots`
records which slots are usable.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from m2bridge.batch import registry
from m2bridge.batch.policy import Task, limits_document
from m2bridge.batch.worker import PROTOCOL
from m2bridge.engine import machine
from m2bridge.errors import InputError, M2BridgeError, NoEngineError
from m2bridge.limits import Clock

_EVENT_BYTES = 1 << 18  # bytes of the output of a worker that are read at once
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "FLINT_NUM_THREADS"), "1"
)
_ERROR_BYTES = 4000
"""How much of a worker's standard error is read at its end."""
MOST_FAILURES = 3
"""A slot is closed after this many workers in succession could not start or lost Macaulay2. One may be killed by accident."""


class Launcher(Protocol):
    """Starts a worker in a slot of a batch. Slots are numbered from 0."""

    def start(self, slot: int) -> WorkerHandle: ...


class CommandLauncher:
    """Starts workers as processes on this machine, or through a `prefix` command.

    `engine` is the path of Macaulay2 for the workers; None means the first working one on their machine. `prefix` is the command
    before ``m2bridge worker``, e.g. ``("srun", "-N1", "-n1")``.
    """

    def __init__(self, engine: str | None, prefix: Sequence[str] = ()) -> None:
        self._command = [*prefix, sys.executable, "-P", "-m", "m2bridge", "worker"]
        if engine is not None:
            self._command += ["--engine", engine]
        self._is_local = not prefix

    def start(self, slot: int) -> ProcessHandle:
        """Start a worker; the command is the same for all slots."""
        parent = ["--parent", str(os.getpid())] if self._is_local else []
        return ProcessHandle([*self._command, *parent])


@contextlib.contextmanager
def open_launcher(
    engine: str | None,
    *,
    command: str | None = None,
    dask: str | None = None,
    dask_slurm: Path | None = None,
    tls_directory: Path | None = None,
    workers: int | None = None,
    show: Callable[[str], None] = print,
) -> Iterator[tuple[Launcher | None, int | None]]:
    """Open the launcher that the options select; yield it (None for this machine) and the number of workers (None: default).

    `engine` is the path of Macaulay2 for the workers; None means the first working one on their machine. `command`, `dask`,
    `dask_slurm` and `tls_directory` are the values of ``--launcher``, ``--dask``, ``--dask-slurm`` and ``--dask-tls``.
    `workers` is the requested number of workers. None means one per core on this machine and with ``--launcher`` or ``--dask
    local``, all workers of a scheduler, and one Slurm job. `show` is called with the job script before submission.
    """
    if sum(option is not None for option in (command, dask, dask_slurm)) > 1:
        raise InputError("--launcher, --dask and --dask-slurm exclude each other; give one of them")
    if tls_directory is not None and dask is None:
        raise InputError(
            "--dask-tls requires --dask tls://HOST:PORT, the scheduler for which it has the certificates"
        )
    if dask is not None or dask_slurm is not None:
        try:
            from m2bridge.batch import dask_workers
        except ImportError as error:
            raise InputError(f"Dask is not installed ({error}): pip install 'm2bridge[dask]'") from None
        with dask_workers.opened(dask, dask_slurm, tls_directory, engine, workers, show) as launcher:
            yield launcher, launcher.slots
    elif command is not None:
        yield CommandLauncher(engine, prefix=_split_command(command)), workers
    else:
        yield None, workers


def _split_command(command: str) -> list[str]:
    """Split the value of ``--launcher`` into words; check that the command exists."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--launcher {command!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        program = words[0] if words else ""
        raise InputError(
            f"--launcher {command!r}: command {program!r} not found; install it or give its path"
        )
    return words


class WorkerHandle(ABC):
    """The runner's connection to one worker."""

    def __init__(self) -> None:
        self.slot = 0
        self.ready = False
        self.host = ""
        self.engine: dict[str, Any] | None = None
        self.task: Task | None = None
        self.killed_for: str | None = None

    @property
    def idle(self) -> bool:
        return self.ready and self.task is None

    @property
    def pid(self) -> int | None:
        """Return the process identifier of a worker on this machine; None otherwise."""
        return None

    def assign(self, task: Task) -> None:
        """Send a job to the worker and start the clock of the task."""
        task.clock = Clock.of(task.limits)
        task.step = "starting"
        task.oom_kills = machine.oom_kills()
        self.task = task
        self.send({**task.job.document(), "limits": limits_document(task.limits), "id": task.key})

    def kill(self, reason: str | None = None) -> None:
        """Kill the worker; `killed_for` keeps the first reason. Macaulay2's supervisor ends Macaulay2 after its worker."""
        self.killed_for = self.killed_for or reason
        self._end()

    @abstractmethod
    def fileno(self) -> int:
        """Return a file descriptor that is readable when there are events, for a selector."""

    @abstractmethod
    def send(self, request: dict[str, Any]) -> None:
        """Send a job document."""

    @abstractmethod
    def events(self) -> list[dict[str, Any]] | None:
        """Return the new events of the worker; None if the worker has ended."""

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def close(self) -> tuple[int, str]:
        """Wait for the end of the worker; return its exit status and the last part of its standard error."""


class ProcessHandle(WorkerHandle):
    """A worker that is a child process, or runs behind a child process that forwards its input and output."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the handle
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env={**os.environ, **_ONE_THREAD},
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._received = b""

    def fileno(self) -> int:
        return self._output.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the end of a worker is detected by the end of its output
            self._input.write(json.dumps(request).encode() + b"\n")
            self._input.flush()

    def events(self) -> list[dict[str, Any]] | None:
        """Return the new events of the worker. A worker that writes an invalid line is killed."""
        while True:
            try:
                data = os.read(self._output.fileno(), _EVENT_BYTES)
            except BlockingIOError:
                break
            if not data:
                return None
            self._received += data
            if len(data) < _EVENT_BYTES:
                break
        *lines, self._received = self._received.split(b"\n")
        try:
            documents = [json.loads(line) for line in lines]
            return [event for event in documents if isinstance(event.get("event"), str)]
        except (ValueError, RecursionError, AttributeError):
            self.kill("invalid output")
            return []

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    def close(self) -> tuple[int, str]:
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            status = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        with self._errors:
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, self._errors.tell() - _ERROR_BYTES))
            return status, self._errors.read().decode("utf-8", "replace").strip()


class Mismatch(NamedTuple):
    """A difference between a worker and its batch; `of_engine` if it is the version of Macaulay2, or its absence."""

    message: str
    of_engine: bool = False


class WorkerSlots:
    """The usable slots of a batch.

    A slot whose workers cannot be used is closed. When the last slot is closed the batch ends, and nothing is recorded about the
    remaining jobs.
    """

    def __init__(self, count: int, engine_version: str) -> None:
        self.usable = set(range(count))
        self._engine_version = engine_version
        self._failures: Counter[int] = Counter()

    def mismatch(self, ready: dict[str, Any]) -> Mismatch | None:
        """Compare the event ``ready`` of a worker with this batch; return the difference, None if there is none.

        The answers of a worker with another version of m2bridge or Macaulay2 would not match the keys of this batch.
        """
        host = ready.get("host")
        engine = ready.get("engine") or {}
        if ready.get("protocol") != PROTOCOL:
            protocol = ready.get("protocol")
            return Mismatch(
                f"protocol mismatch: the worker on {host} has protocol {protocol!r}, not {PROTOCOL}; install the same version "
                "of m2bridge there"
            )
        if engine.get("version") != self._engine_version:
            version = engine.get("version")
            return Mismatch(
                f"version mismatch: {host} has Macaulay2 {version}, this batch uses {self._engine_version}; install this "
                "version there, or give its path with --engine",
                of_engine=True,
            )
        if ready.get("digest") == registry.digest():
            return None
        versions = registry.versions()
        worker_versions = ready.get("versions") or {}
        different = [name for name in versions if versions[name] != worker_versions.get(name)]
        return Mismatch(
            f"version mismatch: the worker on {host} has different {', '.join(different)}; install the same versions there"
        )

    def record_success(self, slot: int) -> None:
        """Record that a worker in this slot has answered."""
        self._failures[slot] = 0

    def record_failure(self, slot: int) -> bool:
        """Record that a worker could not start or lost Macaulay2; return whether its slot must be closed."""
        self._failures[slot] += 1
        return self._failures[slot] >= MOST_FAILURES

    def close(self, slot: int, reason: str, *, no_engine: bool) -> None:
        """Close a slot. Raises M2BridgeError (NoEngineError if `no_engine`) if it was the last one."""
        self.usable.discard(slot)
        if not self.usable:
            message = (
                f"{reason}; no usable worker is left; nothing was recorded about the remaining jobs; the same command "
                "continues with them"
            )
            raise (NoEngineError(message, candidates=()) if no_engine else M2BridgeError(message))
