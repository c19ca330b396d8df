"""An engine that keeps one Macaulay2 running (warm) and forks a child process of it for each script.

Macaulay2 forks twice and the process in between ends, so the supervisor becomes the parent of the grandchild, which runs the
script. So the supervisor sets limits for that process alone, obtains its wait status from the kernel, and kills the processes
that it leaves. The output of the script has no influence on this.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.supervisor_process import (
    FIXED_SEED,
    LOAD_SCRIPT,
    Macaulay2Command,
    SupervisorProcess,
    path_of,
    run_with_retries,
)
from m2bridge.errors import EngineError, InputError, M2BridgeError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

SERVER = f"""-- A warm Macaulay2. It forks a child for each job. The child blocks on the gate while its limits are set. Then
-- it reads the name of the script from the gate and loads it as a new Macaulay2 would. The parent collects garbage before it
-- forks, because a garbage collection in the child would copy the parent's pages (children of versions before 1.25 are faster
-- without it). In a child, needsPackage does not look for changed files of a package that the parent has loaded and that is
-- visible (0.02 s per package in 1.26).
m2bridgeLoaded = new MutableHashTable;
m2bridgeLoad = lookup(needsPackage, String);
needsPackage String := o -> name -> (
    isVisible := m2bridgeLoaded#?name and member((m2bridgeLoaded#name).Dictionary, dictionaryPath);
    if isVisible then m2bridgeLoaded#name else (m2bridgeLoad o) name);
m2bridgePrepare = () -> (if version#"VERSION" >= "1.25" then collectGarbage(); {FIXED_SEED});
m2bridgePrepare();
while true do (
    m2bridgePackages := select(separate(" ", get "../next"), name -> name != "");
    scan(m2bridgePackages, name -> try m2bridgeLoaded#name = needsPackage name);
    if #m2bridgePackages > 0 then m2bridgePrepare();
    m2bridgeGate := openIn "../gate";   -- opened before the fork: if the supervisor has ended, the child reads an end of file
    m2bridgeBetween := fork();
    if m2bridgeBetween == 0 then (
        if fork() != 0 then kill processID();   -- the supervisor becomes the parent of the second child
        setGroupID(0, 0);
        {LOAD_SCRIPT.replace("@GATE@", "m2bridgeGate")})
    else (close m2bridgeGate; wait m2bridgeBetween))
"""


class ForkServerEngine(Engine):
    """Runs each script in a child of one warm Macaulay2, one script at a time; thread-safe.

    A forked or unpickled copy of the engine starts another Macaulay2.

    Parameters
    ----------
    info
        The Macaulay2 to run. The packages of its prompt are loaded by the first script that requires them
        (:attr:`Script.preload`).
    recycle_after
        The number of jobs after which the warm Macaulay2 is replaced by a new one.
    """

    def __init__(self, info: EngineInfo, *, recycle_after: int = 1000) -> None:
        if sys.platform != "linux":
            raise InputError("the fork server requires Linux; on other systems use warm=False")
        self._command = Macaulay2Command(path=path_of(info), expression=SERVER, preload=False, warm=True)
        self._info = info
        self._recycle_after = recycle_after
        self._initialize()

    def _initialize(self) -> None:
        """Set the state of an engine that has not started a supervisor in this process."""
        self._supervisor: SupervisorProcess | None = None
        self._jobs = 0
        self._job_lock = threading.Lock()
        self._closed = False
        self._process_id = os.getpid()

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def supervisor_pid(self) -> int | None:
        """Return the process id of the supervisor, the ancestor of all processes of this engine; None before the first run."""
        return self._supervisor.pid if self._supervisor is not None else None

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` until it ends or reaches a limit; thread-safe.

        Raises
        ------
        M2BridgeError
            The engine is closed; an EngineError if it was closed while the script ran.
        """
        limits = limits or Limits()
        # In a forked copy of the process the lock may be held by a thread that does not exist there.
        if self._process_id != os.getpid():
            self._initialize()
        with self._job_lock:
            if self._closed:
                raise M2BridgeError(f"script {script.name} was not run: the engine is closed")
            if script.preload and not self._command.preload:
                self._command = replace(self._command, preload=True)
                self._close_supervisor()
            run = run_with_retries(
                self._running_supervisor, self._command, script, limits, listener, self._info, keep=True
            )
        if self._closed and run.outcome is Outcome.CRASHED:
            raise EngineError(f"script {script.name} was stopped: the engine was closed", run=run)
        return run

    def _running_supervisor(self) -> SupervisorProcess:
        """Return the supervisor; start a new one if there is none or if it has run `recycle_after` jobs."""
        if self._supervisor is not None and (self._jobs >= self._recycle_after or self._supervisor.closed):
            self._close_supervisor()
        if self._supervisor is None:
            self._supervisor = SupervisorProcess()
            self._jobs = 0
        self._jobs += 1
        return self._supervisor

    def _close_supervisor(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def close(self) -> None:
        """End the warm Macaulay2. A running job is stopped; jobs that wait are not run."""
        if self._process_id != os.getpid():
            self._initialize()
        self._closed = True
        supervisor = self._supervisor
        if supervisor is not None and self._job_lock.locked():
            supervisor.kill()
        with self._job_lock:
            self._close_supervisor()

    def __reduce__(self) -> tuple[Callable[..., ForkServerEngine], tuple[object, ...]]:
        return functools.partial(ForkServerEngine, recycle_after=self._recycle_after), (self._info,)
