"""Start a supervisor, the process between Python and an engine (Macaulay2, msolve), and run scripts through it.

Only this process holds the socket to the supervisor. When the socket closes, the supervisor kills all processes that it started.
:class:`ProcessEngine` starts a supervisor for each script.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.job_exchange import VERSION_LINE, JobEnd, JobExchange, SupervisorLostError, outcome
from m2bridge.engine.supervisor import processes
from m2bridge.errors import InputError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

log = logging.getLogger(__name__)

PYTHON = sys.executable
_SUPERVISOR_DIRECTORY = Path(__file__).with_name("supervisor")
FIXED_SEED = "setRandomSeed 0;"
"""Both engines begin every script with Macaulay2's random numbers in the same state."""
LOAD_SCRIPT = 'm2bridgeScript := get @GATE@; if m2bridgeScript != "" then load m2bridgeScript; exit 0'
"""Read the name of the script from the gate and load it. The name is empty if the supervisor has ended."""
_WARM_HEAP = 160 * 2**20
"""The initial heap of a warm Macaulay2, in bytes. Free space in it lets a child use new pages instead of copying its parent's,
and avoids a garbage collection at the start of each child."""
_WARM_ENVIRONMENT = {"GC_INITIAL_HEAP_SIZE": str(_WARM_HEAP), "LD_BIND_NOW": "1"}
"""LD_BIND_NOW resolves the functions of shared libraries before the first fork. Otherwise each child resolves those that it calls
and copies the pages that contain the table of addresses."""
UNKNOWN = "unknown"
"""The version of a Macaulay2 that was not tested yet."""
MOST_SUPERVISORS = 3
"""How often a script is tried if the supervisor or the warm Macaulay2 is lost before the script has begun."""
_FILE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(ABC):
    """The command that starts an engine. `warm` marks one that keeps running and forks a child for each script."""

    path: Path
    warm: bool = False

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the program and its arguments. It prints its version, reads the name of the script from the gate and runs it."""

    def environment(self) -> dict[str, str]:
        """Return the environment of the engine, without any variable of the caller. Macaulay2's start script needs PATH."""
        environment = {
            "PATH": os.pathsep.join((str(self.path.parent), "/usr/local/bin", "/usr/bin", "/bin")),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        return environment | _WARM_ENVIRONMENT if self.warm else environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Macaulay2Command(Command):
    """The command that starts Macaulay2: `expression` is evaluated; `preload` loads the packages of its prompt."""

    expression: str
    preload: bool = True

    def arguments(self) -> list[str]:
        flags = ["-q", "--silent", "--stop", "--no-debug"]
        if not self.preload:
            flags.append("--no-preload")
        version = f'<< "{VERSION_LINE}" << version#"VERSION" << endl << flush; '
        return [str(self.path), *flags, "-e", version + self.expression]


@dataclass(frozen=True, slots=True, kw_only=True)
class MsolveCommand(Command):
    """The command that starts msolve. It has no gate of its own: a shell waits there and is replaced by msolve."""

    options: tuple[str, ...]

    def arguments(self) -> list[str]:
        wait = f'printf "{VERSION_LINE}%s\\n" "$("$0" -V)"; read -r file < ../gate; test -n "$file" || exit 0'
        return ["/bin/sh", "-c", f'{wait}; exec "$0" "$@" -f "$file"', str(self.path), *self.options]


def file_name(script: Script) -> str:
    """Return the file name of the script, which Macaulay2 prints in its error messages."""
    return f"{script.name if _FILE_NAME.fullmatch(script.name) else 'script'}{script.suffix}"


class SupervisorProcess:
    """A supervisor process, which runs one job at a time. Only :meth:`kill` may be called from other threads."""

    def __init__(self) -> None:
        # If another thread forked this process now, the copy would hold both ends of the socket, which would then never close.
        with _fork_lock:
            self._start()

    def _start(self) -> None:
        self.socket, supervisor_end = socket.socketpair()
        variables = ("PATH", "TMPDIR", "LD_LIBRARY_PATH")
        environment = {name: os.environ[name] for name in variables if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [PYTHON, "-I", "-S", "-B", str(_SUPERVISOR_DIRECTORY)], stdin=supervisor_end.fileno(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, env=environment,
            )  # fmt: skip
        except BaseException:
            self.socket.close()
            raise
        finally:
            supervisor_end.close()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pipes = (self._process.stdout, self._process.stderr)
        for pipe in self.pipes:
            os.set_blocking(pipe.fileno(), False)
        self.received = b""
        self.job_pid: int | None = None
        self.directory: str | None = None
        self.version: str | None = None
        _running.add(self)

    @property
    def closed(self) -> bool:
        return self.socket.fileno() < 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(
        self, command: Command, script: Script, limits: Limits, *, listener: Listener | None, info: EngineInfo
    ) -> Run:
        """Run one job. On any exception the supervisor is closed, and all processes that it started are killed."""
        exchange = JobExchange(self, limits, listener, discard_startup=command.warm)
        start = time.monotonic()
        try:
            self.send(
                request="job",
                file=file_name(script),
                text=script.text,
                command=command.arguments(),
                environment=command.environment(),
                warm=command.warm,
                packages=script.packages,
                heap_bytes=_WARM_HEAP if command.warm else 0,
                wall_seconds=limits.wall_seconds,
                memory_bytes=limits.memory_bytes,
                cpu_seconds=None if limits.cpu_seconds is None else max(1, math.ceil(limits.cpu_seconds)),
            )
            end = exchange.wait_for_end()
        except SupervisorLostError as error:
            self.close(at_once=error.overdue)
            if not error.overdue:
                raise
            end = JobEnd(status=int(signal.SIGKILL), seconds=time.monotonic() - start, stopped="wall")
        except BaseException:
            self.close()
            raise
        stdout, stderr = exchange.output()
        result, exit_status, signal_number = outcome(
            end, stdout, stderr, output_limit_reached=exchange.output_limit_reached
        )
        maxrss_unit = 1 if sys.platform == "darwin" else 1024
        return Run(
            script=script, engine=info, outcome=result, stdout=stdout, stderr=stderr, seconds=end.seconds, limits=limits,
            processor_seconds=end.cpu,
            peak_memory_bytes=end.maxrss * maxrss_unit if end.maxrss else None, exit_status=exit_status,
            signal=signal_number, began=end.passed_gate or end.stopped is not None,
        )  # fmt: skip

    def kill(self) -> None:
        """Request that the supervisor ends the current job; callable from any thread."""
        with contextlib.suppress(SupervisorLostError):
            self.send(request="kill")

    def close(self, *, at_once: bool = False) -> None:
        """End the supervisor and all processes below it, and wait for its end; `at_once` if it does not respond."""
        if self.closed:  # closed before, or abandoned in a forked copy of the caller
            return
        self.socket.close()
        try:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
            self._process.wait(timeout=0.5 if at_once else 15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._clean_up()
        self.abandon()

    def abandon(self) -> None:
        """Close the socket and the pipes without ending the supervisor, which belongs to the process that was forked."""
        _running.discard(self)
        self.socket.close()
        for pipe in self.pipes:
            pipe.close()

    def send(self, **request: Any) -> None:
        """Send a request to the supervisor."""
        try:
            self.socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise SupervisorLostError("the supervisor of Macaulay2 has ended", script_began=False) from None

    def _clean_up(self) -> None:
        """Kill the processes and remove the directory of a supervisor that was killed and could not do it."""
        if self.job_pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.job_pid, signal.SIGKILL)
            self.job_pid = None
        if self.directory is not None and Path(self.directory).exists():
            processes.remove_directory(Path(self.directory))


def run_with_retries(
    make_supervisor: Callable[[], SupervisorProcess], command: Command, script: Script, limits: Limits,
    listener: Listener | None, info: EngineInfo, *, keep: bool = False,
) -> Run:  # fmt: skip
    """Run a script, at most MOST_SUPERVISORS times while the supervisor is lost before the script has begun.

    If the supervisor is lost after the script has begun, the script is not repeated; the outcome is CRASHED. If no Macaulay2
    could load the script, or if its version has changed, the outcome is CRASHED and `began` is false.

    `make_supervisor` returns a running supervisor. It is closed after the run, unless `keep` is true and the run succeeded.
    """
    reason = ""
    began = False
    for _ in range(MOST_SUPERVISORS):
        supervisor = make_supervisor()
        succeeded = False
        try:
            run = supervisor.run(command, script, limits, listener=listener, info=info)
            if info.version == UNKNOWN and supervisor.version is not None:
                run = replace(run, engine=replace(info, version=supervisor.version))
            succeeded = info.version == UNKNOWN or supervisor.version in (None, info.version)
            if succeeded:
                return run
            reason = f"version mismatch: {info.path} is now version {supervisor.version}, not {info.version}"
            break
        except SupervisorLostError as error:
            reason = str(error)
            began = error.script_began
            if began:
                break
            log.warning("%s; starting another", reason)
        finally:
            if not (succeeded and keep):
                supervisor.close()
    return Run(
        script=script, engine=info, outcome=Outcome.CRASHED, stdout="", stderr=f"{reason}\n", seconds=0.0, limits=limits,
        began=began,
    )  # fmt: skip


class ProcessEngine(Engine):
    """Runs each script in a new process, by default of Macaulay2. Several threads may run scripts at the same time."""

    def __init__(self, info: EngineInfo) -> None:
        self._info = info
        self._path = path_of(info)

    @property
    def info(self) -> EngineInfo:
        return self._info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` until it ends or reaches a limit; thread-safe."""
        return run_with_retries(
            SupervisorProcess, self.command(script), script, limits or Limits(), listener, self._info
        )

    def command(self, script: Script) -> Command:
        """Return the command that runs `script`."""
        expression = FIXED_SEED + LOAD_SCRIPT.replace("@GATE@", '"../gate"')
        return Macaulay2Command(path=self._path, preload=script.preload, expression=expression)


class MsolveEngine(ProcessEngine):
    """Runs each script in a new msolve, with the arguments of the script."""

    def command(self, script: Script) -> Command:
        return MsolveCommand(path=self._path, options=script.arguments)


def path_of(info: EngineInfo) -> Path:
    """Return the path of a Macaulay2. Raises InputError if there is none."""
    if info.path is None:
        raise InputError("an engine that runs Macaulay2 requires its path")
    return info.path


_running: weakref.WeakSet[SupervisorProcess] = weakref.WeakSet()
_fork_lock = threading.RLock()
"""Held while this process forks, and while a supervisor is started."""


def _abandon_in_forked_child() -> None:
    for supervisor in list(_running):
        supervisor.abandon()
    _fork_lock.release()


os.register_at_fork(
    before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_abandon_in_forked_child
)
