"""Engine stage: the caller's side of the keeper, the small process that stands between Python and Macaulay2.

A script, limits and the command that starts Macaulay2 enter, a :class:`Run` leaves. The socket to the keeper is held by this
process alone; when it closes, the keeper kills all that it started. :class:`ProcessEngine` has a keeper for each script.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.conversation import VERSION_LINE, Conversation, Fate, KeeperLostError, outcome
from m2bridge.engine.keeping import warm
from m2bridge.errors import InputError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

log = logging.getLogger(__name__)

PYTHON = sys.executable
_PROGRAM = Path(__file__).with_name("keeping")
FIXED_SEED = "setRandomSeed 0;"
"""Both engines begin every script with Macaulay2's random numbers in the same state."""
TAKE_SCRIPT = 'm2bridgeScript := get @GATE@; if m2bridgeScript != "" then load m2bridgeScript; exit 0'
"""How Macaulay2 is told its script at the gate; it is told nothing when the keeper is gone."""
_WARM_HEAP = 160 * 2**20
"""Heap of a warm Macaulay2 from its start. With room left in it, a child fills new pages instead of copying its parent's, and
does not begin by collecting its parent's garbage."""
_WARM_ENVIRONMENT = {"GC_INITIAL_HEAP_SIZE": str(_WARM_HEAP), "LD_BIND_NOW": "1"}
"""The functions of libraries are found before any child is forked: else each child finds those it calls, and copies the pages
in which that is noted."""
UNKNOWN = "unknown"
"""The version of a Macaulay2 that is still to be proved."""
ATTEMPTS = 3
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
        version = f'<< "{VERSION_LINE}" << version#"VERSION" << endl << flush; '
        return [str(self.path), *flags, "-e", version + self.expression]

    def environment(self) -> dict[str, str]:
        """Nothing of the caller's environment; Macaulay2's starter script needs a path to the shell."""
        environment = {
            "PATH": os.pathsep.join((str(self.path.parent), "/usr/local/bin", "/usr/bin", "/bin")),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        return environment | _WARM_ENVIRONMENT if self.warm else environment


def file_name(script: Script) -> str:
    """The name under which Macaulay2 sees the script, and names it in its errors."""
    return f"{script.name if _FILE_NAME.fullmatch(script.name) else 'script'}.m2"


class KeeperProcess:
    """One keeper process. Not thread-safe but for :meth:`kill`: one job at a time."""

    def __init__(self) -> None:
        # A copy of the caller that is forked meanwhile would hold both ends of the socket, and no end would ever close.
        with _no_fork:
            self._start()

    def _start(self) -> None:
        self.caller, theirs = socket.socketpair()
        kept = {key: os.environ[key] for key in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if key in os.environ}
        try:
            self._process = subprocess.Popen(
                [PYTHON, "-I", "-S", "-B", str(_PROGRAM)], stdin=theirs.fileno(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, env=kept,
            )  # fmt: skip
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
        self.version: str | None = None
        _living.add(self)

    @property
    def closed(self) -> bool:
        return self.caller.fileno() < 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(
        self, command: Command, script: Script, limits: Limits, *, listener: Listener | None, info: EngineInfo
    ) -> Run:
        """Run one job; on any exception the keeper is closed, and with it all that it started."""
        conversation = Conversation(self, limits, listener, forget_startup=command.warm)
        begun = time.monotonic()
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
            fate = conversation.follow()
        except KeeperLostError as error:
            self.close(at_once=error.overdue)
            if not error.overdue:
                raise
            fate = Fate(status=int(signal.SIGKILL), seconds=time.monotonic() - begun, stopped="wall")
        except BaseException:
            self.close()
            raise
        stdout, stderr = conversation.text()
        result, exit_status, signal_number = outcome(
            fate, stdout, stderr, output_limit_reached=conversation.output_limit_reached
        )
        unit = 1 if sys.platform == "darwin" else 1024
        return Run(
            script=script, engine=info, outcome=result, stdout=stdout, stderr=stderr, seconds=fate.seconds, limits=limits,
            peak_memory_bytes=fate.maxrss * unit if fate.maxrss else None, exit_status=exit_status, signal=signal_number,
            began=fate.passed_gate or fate.stopped is not None,
        )  # fmt: skip

    def kill(self) -> None:
        """Ask the keeper to end the current job; callable from any thread."""
        with contextlib.suppress(KeeperLostError):
            self.send(request="kill")

    def close(self, *, at_once: bool = False) -> None:
        """End everything below the keeper and wait until it is gone; `at_once` when it does not answer."""
        if self.closed:  # or abandoned: in a forked copy of the caller all keepers are
            return
        self.caller.close()
        try:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
            self._process.wait(timeout=0.5 if at_once else 15)
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
            warm.remove(Path(self.directory))


def attempted(
    keeper: Callable[[], KeeperProcess], command: Command, script: Script, limits: Limits, listener: Listener | None,
    info: EngineInfo, *, keep: bool = False,
) -> Run:  # fmt: skip
    """Run a script; a keeper that is lost before the script has begun is replaced, a few times. In the end nothing is known of
    a script that was lost with its keeper, or (not `began`) that no Macaulay2 took.

    `keeper` gives one that is ready. It is closed afterwards, unless one is to `keep` that did well.
    """
    reason, began = "", False
    for _ in range(ATTEMPTS):
        own = keeper()
        well = False
        try:
            run = own.run(command, script, limits, listener=listener, info=info)
            well = info.version == UNKNOWN or own.version in (None, info.version)
            if well:
                return run
            reason = f"the Macaulay2 at {info.path} is of version {own.version} now, and was of version {info.version}"
            break
        except KeeperLostError as error:
            reason, began = str(error), error.started
            if began:
                break
            log.warning("%s; starting another", reason)
        finally:
            if not (well and keep):
                own.close()
    return Run(
        script=script, engine=info, outcome=Outcome.CRASHED, stdout="", stderr=f"{reason}\n", seconds=0.0, limits=limits,
        began=began,
    )  # fmt: skip


class ProcessEngine(Engine):
    """Runs each script in a Macaulay2 of its own; any number of threads may run scripts at once."""

    def __init__(self, info: EngineInfo) -> None:
        self._info, self._path = info, path_of(info)

    @property
    def info(self) -> EngineInfo:
        return self._info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe."""
        expression = FIXED_SEED + TAKE_SCRIPT.replace("@GATE@", '"../gate"')
        command = Command(path=self._path, preload=script.preload, expression=expression)
        return attempted(KeeperProcess, command, script, limits or Limits(), listener, self._info)


def path_of(info: EngineInfo) -> Path:
    """The path of a Macaulay2, which it must have."""
    if info.path is None:
        raise InputError("an engine that runs Macaulay2 needs its path")
    return info.path


_living: weakref.WeakSet[KeeperProcess] = weakref.WeakSet()
_no_fork = threading.RLock()


def _forget_in_forked_copy() -> None:
    for keeper in list(_living):
        keeper.abandon()
    _no_fork.release()


os.register_at_fork(
    before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_forget_in_forked_copy
)
