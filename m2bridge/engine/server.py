"""Engine stage: a warm Macaulay2 that forks a child for each script. A script enters, a `Run` leaves.

The child is forked twice, so that its parent is the keeper: the keeper puts the limits on the child alone,
learns from the system how it ended, and kills what it left. Nothing that the script prints takes part in
that.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from m2bridge.engine.base import EngineInfo, Limits, Listener, Run
from m2bridge.engine.conversation import KeeperLostError
from m2bridge.engine.keeper import Command, Keeper, lost_run
from m2bridge.engine.process import FIXED_SEED
from m2bridge.engine.queueing import CalledOffError, Cancellation, FairQueue
from m2bridge.errors import EngineError, InputError, M2BridgeError
from m2bridge.literals import literal
from m2bridge.scripts import Script

log = logging.getLogger(__name__)

SERVER = """-- A warm Macaulay2. It forks a child for each job, ahead of time; the child waits at the
-- gate until it has its limits and is told the script, which it loads as a fresh Macaulay2 would.
scan(@PACKAGES@, name -> needsPackage name);
while true do (
    -- from the keeper: names of gates, one for each child; packages to load first
    m2bridgeWords := apply(separate(";", get "../next"), part -> select(separate(" ", part), word -> word != ""));
    (m2bridgeGates, m2bridgePackages) := toSequence m2bridgeWords;
    scan(m2bridgePackages, name -> try needsPackage name);
    m2bridgeChild := fork();
    if m2bridgeChild == 0 then (
        scan(m2bridgeGates, m2bridgeGate -> if fork() == 0 then (
            setGroupID(0, 0);
            m2bridgeJob := get("../" | m2bridgeGate);
            @SEED@
            if m2bridgeJob != "" then load m2bridgeJob;     -- nothing to do: the keeper is gone
            flush stdio; flush stderr;
            try exec {"/bin/true"};         -- gone at once; to take the heap apart costs milliseconds
            exit 0));
        get "../acknowledge";       -- the one in between goes, and its children belong to the keeper
        kill processID())
    else wait m2bridgeChild)
"""

ATTEMPTS = 3


class ForkServerEngine:
    """Runs each script in a child of one warm Macaulay2, one after another; thread-safe, first come, first
    served.

    Parameters
    ----------
    info
        The Macaulay2 to keep warm.
    packages
        Packages to load before the first fork. Their symbols are visible to every script, so a script must
        load what it needs by itself nevertheless, or it will not run in a fresh process. The packages that Macaulay2
        loads for its prompt are there from the first script on that asks for them (:attr:`Script.preload`).
    recycle_after
        After so many jobs the warm Macaulay2 is replaced by a new one.
    """

    def __init__(
        self, info: EngineInfo, *, packages: tuple[str, ...] = (), recycle_after: int = 1000
    ) -> None:
        if info.path is None:
            raise InputError("an engine that runs Macaulay2 needs its path")
        if sys.platform != "linux":
            raise InputError("the fork server needs Linux; elsewhere use the one-shot process (warm=False)")
        expression = SERVER.replace("@PACKAGES@", literal(packages)).replace("@SEED@", FIXED_SEED)
        self._command = Command(path=info.path, expression=expression, preload=False, warm=True)
        self._info, self._packages, self._recycle_after = info, packages, recycle_after
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._owner = os.getpid()
        self._keeper: Keeper | None = None
        self._jobs = 0
        self._turn: FairQueue[bool] = FairQueue([True])
        self._running: Cancellation | None = None
        self._closed = False

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def keeper_pid(self) -> int | None:
        """The process under which everything of this engine runs, once it is started."""
        return self._keeper.pid if self._keeper is not None else None

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe."""
        return self.run_cancellable(script, limits, listener, Cancellation())

    def run_cancellable(
        self, script: Script, limits: Limits | None, listener: Listener | None, cancellation: Cancellation
    ) -> Run:
        """As :meth:`run`; `cancellation` lets another thread end the job, which is then an EngineError."""
        if os.getpid() != self._owner:  # a forked copy of the caller, and the server is the original's
            self._begin_afresh()
        limits = limits or Limits()
        try:
            turn = self._turn.take(cancellation)
        except CalledOffError:
            raise M2BridgeError(f"script {script.name} was called off before it began") from None
        try:
            self._running = cancellation
            return self._attempt(script, limits, listener, cancellation)
        finally:
            self._running = None
            self._turn.give(turn)

    def _attempt(
        self, script: Script, limits: Limits, listener: Listener | None, cancellation: Cancellation
    ) -> Run:
        reason = ""
        if script.preload and not self._command.preload:
            self._command = replace(self._command, preload=True)
            self._drop()
        for _ in range(ATTEMPTS):
            if self._keeper is not None and self._jobs >= self._recycle_after:
                self._drop()
            if self._keeper is None:
                if self._closed:
                    raise M2BridgeError(f"script {script.name} was not run: the engine is closed")
                self._keeper, self._jobs = Keeper(), 0
            self._jobs += 1
            try:
                return self._keeper.run(
                    self._command,
                    script,
                    limits,
                    listener=listener,
                    info=self._info,
                    cancellation=cancellation,
                )
            except KeeperLostError as error:
                self._drop()
                reason = str(error)
                if cancellation.cancelled:
                    run = lost_run(script, self._info, limits, "called off")
                    raise EngineError(f"script {script.name} was called off", run=run) from None
                if error.started:
                    break
                log.warning("%s; starting another", reason)
            except EngineError:
                raise
            except BaseException:
                self._drop()
                raise
        return lost_run(script, self._info, limits, reason)

    def _drop(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def close(self) -> None:
        """End the warm Macaulay2; a job that still runs is stopped, one that waits is called off."""
        if os.getpid() != self._owner:
            self._begin_afresh()
        self._closed = True
        self._turn.close()
        running = self._running
        if running is not None:
            running.cancel()
        self._turn.wait_until_idle()
        self._drop()

    def __reduce__(self) -> tuple[Callable[..., ForkServerEngine], tuple[object, ...]]:
        return _rebuild, (self._info, self._packages, self._recycle_after)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rebuild(info: EngineInfo, packages: tuple[str, ...], recycle_after: int) -> ForkServerEngine:
    return ForkServerEngine(info, packages=packages, recycle_after=recycle_after)
