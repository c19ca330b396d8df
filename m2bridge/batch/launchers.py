"""Batch: who starts workers, and where. A launcher starts ``m2bridge worker``; the runner talks to it through two pipes.

A launcher is anything with :meth:`Launcher.start`. :class:`CommandLauncher` starts the worker on this machine, or through any
command that passes standard input and output on, such as ``srun -n1`` or ``ssh node``. The end of a worker's output is the end
of the worker, wherever it ran. :mod:`m2bridge.batch.dask_workers` has the launcher for Dask; :func:`chosen` knows them all.

A batch has as many places for workers as it runs jobs at once; a launcher may put them on different machines. The
:class:`Breaker` knows which places can be used.
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
from typing import IO, Any, Protocol

from m2bridge.batch import registry
from m2bridge.batch.policy import Task, limits_document
from m2bridge.batch.worker import PROTOCOL
from m2bridge.engine import machine
from m2bridge.errors import InputError, M2BridgeError, NoEngineError
from m2bridge.limits import Clock

_CHUNK = 1 << 18
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "FLINT_NUM_THREADS"), "1"
)
_LAST_WORDS = 4000
MOST_FAILURES = 3
"""So many workers in a row that cannot start, or lose their Macaulay2, close their place: one may be killed by accident."""


class Launcher(Protocol):
    """Starts a worker in one of the places of a batch, numbered from 0."""

    def start(self, place: int) -> WorkerHandle: ...


class CommandLauncher:
    """Starts workers as processes: on this machine, or behind a `prefix` command.

    `engine` is the path of the Macaulay2 that workers use, None for the first that works where they run; `prefix` has the words
    before ``m2bridge worker``, e.g. ``("srun", "-N1", "-n1")``.
    """

    def __init__(self, engine: str | None, prefix: Sequence[str] = ()) -> None:
        self._words = [*prefix, sys.executable, "-P", "-m", "m2bridge", "worker"]
        if engine is not None:
            self._words += ["--engine", engine]
        self._local = not prefix

    def start(self, place: int) -> ProcessHandle:
        """A worker; all places are alike."""
        parent = ["--parent", str(os.getpid())] if self._local else []
        return ProcessHandle([*self._words, *parent])


@contextlib.contextmanager
def chosen(
    engine: str | None,
    *,
    command: str | None = None,
    dask: str | None = None,
    dask_slurm: Path | None = None,
    certificates: Path | None = None,
    workers: int | None = None,
    show: Callable[[str], None] = print,
) -> Iterator[tuple[Launcher | None, int | None]]:
    """The launcher that was asked for, None for this machine, and how many workers it has, None when it has no opinion.

    `engine` is the path of the Macaulay2 that workers use, None for the first that works where they run; `command`, `dask`,
    `dask_slurm` and `certificates` are what stands after ``--launcher``, ``--dask``, ``--dask-slurm`` and ``--dask-tls``;
    `workers` is how many are wanted, None for as many as there are. `show` is told what is about to be submitted in the user's
    name.
    """
    if sum(choice is not None for choice in (command, dask, dask_slurm)) > 1:
        raise InputError("choose one of --launcher, --dask and --dask-slurm")
    if dask is not None or dask_slurm is not None:
        try:
            from m2bridge.batch import dask_workers
        except ImportError as error:
            raise InputError(f"Dask is not installed ({error}): pip install 'm2bridge[dask]'") from None
        with dask_workers.opened(dask, dask_slurm, certificates, engine, workers, show) as launcher:
            yield launcher, launcher.places
    elif command is not None:
        yield CommandLauncher(engine, prefix=_words(command)), workers
    else:
        yield None, workers


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--launcher {command!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise InputError(f"--launcher {command!r}: there is no command {words[0] if words else ''!r}")
    return words


class WorkerHandle(ABC):
    """The runner's side of one worker, from its start to its end."""

    def __init__(self) -> None:
        self.place = 0
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
        """Of the process on this machine, where there is one."""
        return None

    def give(self, task: Task) -> None:
        """Send a job; the worker reads at once, whatever it is doing."""
        task.clock, task.step, task.oom_kills = Clock.of(task.limits), "starting", machine.oom_kills()
        self.task = task
        self.send({**task.job.document(), "limits": limits_document(task.limits), "id": task.key})

    def kill(self, reason: str | None = None) -> None:
        """End the worker at once; Macaulay2's supervisor sees it go and ends what is below."""
        self.killed_for = self.killed_for or reason
        self._end()

    @abstractmethod
    def fileno(self) -> int:
        """Of a file that can be read when there are events; for a selector."""

    @abstractmethod
    def send(self, request: dict[str, Any]) -> None:
        """Hand a job document over."""

    @abstractmethod
    def events(self) -> list[dict[str, Any]] | None:
        """What the worker said since; None when it is gone."""

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def close(self) -> tuple[int, str]:
        """Wait for the end of the worker: its exit status, and the end of what it wrote on standard error."""


class ProcessHandle(WorkerHandle):
    """A worker that is a process of ours, or behind one that passes its input and output on."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the handle
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
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
        with contextlib.suppress(OSError):  # a dead worker is noticed by the end of its output
            self._input.write(json.dumps(request).encode() + b"\n")
            self._input.flush()

    def events(self) -> list[dict[str, Any]] | None:
        """What the worker said since; a line that is no document ends it."""
        while True:
            try:
                data = os.read(self._output.fileno(), _CHUNK)
            except BlockingIOError:
                break
            if not data:
                return None
            self._received += data
            if len(data) < _CHUNK:
                break
        *lines, self._received = self._received.split(b"\n")
        try:
            found = [json.loads(line) for line in lines]
            return [event for event in found if isinstance(event.get("event"), str)]
        except (ValueError, RecursionError, AttributeError):
            self.kill("nonsense")
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
            self._errors.seek(max(0, self._errors.tell() - _LAST_WORDS))
            return status, self._errors.read().decode("utf-8", "replace").strip()


class Breaker:
    """Knows the places where workers can run. A place whose workers cannot be used is closed; with the last one the batch ends,
    and nothing is recorded about the jobs that are left.
    """

    def __init__(self, places: int, engine_version: str) -> None:
        self.places = set(range(places))
        self._engine_version = engine_version
        self._failures: Counter[int] = Counter()

    def stranger(self, ready: dict[str, Any]) -> str | None:
        """Why a worker would answer other questions than the keys of this batch say; None when it is one of us."""
        host, engine = ready.get("host"), ready.get("engine") or {}
        if ready.get("protocol") != PROTOCOL:
            return f"the worker on {host} speaks protocol {ready.get('protocol')!r}, not {PROTOCOL}"
        if engine.get("version") != self._engine_version:
            return f"{host} has Macaulay2 {engine.get('version')}, the batch was begun with {self._engine_version}"
        if ready.get("digest") == registry.digest():
            return None
        ours, theirs = registry.versions(), ready.get("versions") or {}
        other = [name for name in ours if ours[name] != theirs.get(name)]
        return f"the worker on {host} has other {', '.join(other)} than this batch was begun with"

    def worked(self, place: int) -> None:
        """A worker in this place has answered."""
        self._failures[place] = 0

    def failed(self, place: int) -> bool:
        """A worker in this place could not start or lost its Macaulay2; whether the place is to be closed for that."""
        self._failures[place] += 1
        return self._failures[place] >= MOST_FAILURES

    def close(self, place: int, why: str, *, no_engine: bool) -> None:
        """Close one place; an M2BridgeError when it was the last one, a NoEngineError for want of a Macaulay2."""
        self.places.discard(place)
        if not self.places:
            message = f"{why}; no worker is left, and nothing was recorded about the jobs that are left"
            raise (NoEngineError(message, candidates=()) if no_engine else M2BridgeError(message))
