"""Engine stage: the caller's side of the keeper, the small process that stands between Python and Macaulay2.

A script, limits and the command that starts Macaulay2 enter; output and
:class:`~m2bridge.engine.outcome.Fate` leave. The socket to the keeper is held by this process alone; when it
closes, the keeper kills all that it started.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.engine.base import EngineInfo, Limits, Listener, Outcome, Run
from m2bridge.engine.conversation import Conversation, KeeperLostError
from m2bridge.engine.outcome import outcome
from m2bridge.engine.queueing import Cancellation
from m2bridge.errors import EngineError
from m2bridge.scripts import Script

PYTHON = sys.executable
_PROGRAM = Path(__file__).with_name("keeping")
_CHUNK = 1 << 16
_WARM_HEAP = 160 * 2**20
"""Heap of a warm Macaulay2 from its start. With room left in it, a child fills new pages instead of copying its parent's, and
does not begin by collecting its parent's garbage."""
_PATIENCE = 5.0
_FILE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How Macaulay2 is started: path, expression, with its usual packages or without, warm (it stays and forks) or once."""

    path: Path
    expression: str
    preload: bool = True
    warm: bool = False

    def words(self) -> list[str]:
        flags = ["-q", "--silent", "--stop", "--no-debug", "--read-only-files"]
        if not self.preload:
            flags.append("--no-preload")
        return [str(self.path), *flags, "-e", self.expression]

    def environment(self) -> dict[str, str]:
        """Nothing of the caller's environment; Macaulay2's starter script needs a path to the shell."""
        environment = {
            "PATH": os.pathsep.join((str(self.path.parent), "/usr/local/bin", "/usr/bin", "/bin")),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        return environment | {"GC_INITIAL_HEAP_SIZE": str(_WARM_HEAP)} if self.warm else environment


def file_name(script: Script) -> str:
    """The name under which Macaulay2 sees the script, and names it in its errors."""
    return f"{script.name if _FILE_NAME.fullmatch(script.name) else 'script'}.m2"


class Keeper:
    """One keeper process. Not thread-safe but for :meth:`kill`: one job at a time."""

    def __init__(self) -> None:
        self.caller, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [PYTHON, "-I", "-S", "-B", str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={
                    key: value
                    for key, value in os.environ.items()
                    if key in ("PATH", "TMPDIR", "LD_LIBRARY_PATH")
                },
            )
        except BaseException:
            self.caller.close()
            raise
        finally:
            theirs.close()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pipes = (self._process.stdout, self._process.stderr)
        for pipe in self.pipes:
            os.set_blocking(pipe.fileno(), False)
        self.received = b""
        self.job_pid: int | None = None
        self.directory: str | None = None
        self.owner = os.getpid()
        _living.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(
        self,
        command: Command,
        script: Script,
        limits: Limits,
        *,
        listener: Listener | None,
        info: EngineInfo,
        cancellation: Cancellation | None = None,
    ) -> Run:
        """Run one job; on any exception the keeper is closed, and with it all that it started."""
        conversation = Conversation(self, limits, listener, forget_startup=command.warm)
        try:
            self.send(
                request="job",
                file=file_name(script),
                text=script.text,
                command=command.words(),
                environment=command.environment(),
                warm=command.warm,
                packages=script.packages,
                heap_bytes=_WARM_HEAP if command.warm else 0,
                wall_seconds=limits.wall_seconds,
                memory_bytes=limits.memory_bytes,
                cpu_seconds=None if limits.cpu_seconds is None else max(1, math.ceil(limits.cpu_seconds)),
            )
            if cancellation is not None:
                cancellation.stop_with(self.kill)
            fate = conversation.follow()
        except BaseException:
            self.close()
            raise
        finally:
            if cancellation is not None:
                cancellation.stop_with(None)
        stdout, stderr = conversation.text()
        result, exit_status, signal_number = outcome(
            fate, stdout, stderr, output_limit_reached=conversation.output_limit_reached
        )
        run = Run(
            script=script,
            engine=info,
            outcome=result,
            stdout=stdout,
            stderr=stderr,
            seconds=fate.seconds,
            limits=limits,
            peak_memory_bytes=_bytes(fate.maxrss),
            exit_status=exit_status,
            signal=signal_number,
        )
        if cancellation is not None and cancellation.cancelled and fate.stopped == "asked":
            raise EngineError(f"script {script.name} was called off after {fate.seconds:.1f} s", run=run)
        return run

    def kill(self) -> None:
        """Ask the keeper to end the current job; callable from any thread."""
        with contextlib.suppress(KeeperLostError):
            self.send(request="kill")

    def close(self) -> None:
        """End everything below the keeper and wait until it is gone."""
        if os.getpid() != self.owner:
            self.abandon()
            return
        self.caller.close()
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._clean_up_after()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the keeper without a word: in a forked copy of the caller it belongs to the original."""
        _living.discard(self)
        self.caller.close()
        for pipe in self.pipes:
            pipe.close()

    def send(self, **request: Any) -> None:
        try:
            self.caller.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise KeeperLostError("the keeper of Macaulay2 died", started=False) from None

    def _clean_up_after(self) -> None:
        """For the case that the keeper was killed itself: end its processes and remove its directory."""
        if self.job_pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.job_pid, signal.SIGKILL)
            self.job_pid = None
        if self.directory is not None and Path(self.directory).exists():
            deadline = time.monotonic() + _PATIENCE
            while _kill_all_in(f"{self.directory}/") and time.monotonic() < deadline:
                time.sleep(0.001)  # one that was being forked is found next time
            shutil.rmtree(self.directory, ignore_errors=True)


def _kill_all_in(directory: str) -> int:
    """Kill the processes that work in a directory (which ends with a slash); how many there were."""
    found = 0
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(directory):
                os.kill(int(link.parent.name), signal.SIGKILL)
                found += 1
    return found


def lost_run(script: Script, info: EngineInfo, limits: Limits, reason: str) -> Run:
    """The run of a script that was lost with its keeper, or that no keeper could start."""
    return Run(
        script=script,
        engine=info,
        outcome=Outcome.CRASHED,
        stdout="",
        stderr=f"{reason}\n",
        seconds=0.0,
        limits=limits,
        signal=int(signal.SIGKILL),
    )


def _bytes(maxrss: int | None) -> int | None:
    if not maxrss:
        return None
    return maxrss if sys.platform == "darwin" else maxrss * 1024


_living: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _forget_in_forked_copy() -> None:
    for keeper in list(_living):
        keeper.abandon()


os.register_at_fork(after_in_child=_forget_in_forked_copy)
