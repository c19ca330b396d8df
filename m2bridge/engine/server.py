"""Engine stage: a warm Macaulay2 that forks a child for each script. A script enters, a `Run` leaves.

The child is forked twice, so that its parent is the keeper: the keeper puts the limits on the child alone,
learns from the system how it ended, and kills what it left. Nothing that the script prints takes part in
that.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.keeper import FIXED_SEED, TAKE_SCRIPT, Command, KeeperProcess, attempted, path_of
from m2bridge.errors import EngineError, InputError, M2BridgeError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

SERVER = f"""-- A warm Macaulay2. It forks a child for each job; the child waits at the gate until it has its limits and is
-- told the script, which it loads as a fresh Macaulay2 would. A child that began by collecting its parent's garbage would copy
-- its parent's pages: so the parent collects it before.
collectGarbage(); {FIXED_SEED}
while true do (
    m2bridgePackages := select(separate(" ", get "../next"), name -> name != "");
    scan(m2bridgePackages, name -> try needsPackage name);
    if #m2bridgePackages > 0 then (collectGarbage(); {FIXED_SEED});
    m2bridgeGate := openIn "../gate";   -- opened before the fork: when the keeper is gone, the child reads to the end at once
    m2bridgeBetween := fork();
    if m2bridgeBetween == 0 then (
        if fork() != 0 then kill processID();   -- its child belongs to the keeper from now on
        setGroupID(0, 0);
        {TAKE_SCRIPT.replace("@GATE@", "m2bridgeGate")})
    else (close m2bridgeGate; wait m2bridgeBetween))
"""


class ForkServerEngine(Engine):
    """Runs each script in a child of one warm Macaulay2, one after another; thread-safe. In a forked or unpickled copy the
    engine begins afresh, with a Macaulay2 of its own.

    Parameters
    ----------
    info
        The Macaulay2 to keep warm.
        The packages that it loads for its prompt are there from the first script on that asks for them (:attr:`Script.preload`).
    recycle_after
        After so many jobs the warm Macaulay2 is replaced by a new one.
    """

    def __init__(self, info: EngineInfo, *, recycle_after: int = 1000) -> None:
        if sys.platform != "linux":
            raise InputError("the fork server needs Linux; elsewhere use the one-shot process (warm=False)")
        self._command = Command(path=path_of(info), expression=SERVER, preload=False, warm=True)
        self._info, self._recycle_after = info, recycle_after
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._keeper: KeeperProcess | None = None
        self._jobs = 0
        self._turn = threading.Lock()
        self._closed = False
        self._owner = os.getpid()

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def keeper_pid(self) -> int | None:
        """The process under which everything of this engine runs, once it is started."""
        return self._keeper.pid if self._keeper is not None else None

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe.

        Raises
        ------
        M2BridgeError
            The engine is closed; an EngineError when it was closed while the script ran.
        """
        limits = limits or Limits()
        if self._owner != os.getpid():  # in a forked copy, where another thread may have had the turn
            self._begin_afresh()
        with self._turn:
            if self._closed:
                raise M2BridgeError(f"script {script.name} was not run: the engine is closed")
            if script.preload and not self._command.preload:
                self._command = replace(self._command, preload=True)
                self._drop()
            run = attempted(
                self._ready_keeper, self._command, script, limits, listener, self._info, keep=True
            )
        if self._closed and run.outcome is Outcome.CRASHED:
            raise EngineError(f"script {script.name} was called off: the engine was closed", run=run)
        return run

    def _ready_keeper(self) -> KeeperProcess:
        """The keeper, or a new one when there is none or it has had its share of jobs."""
        if self._keeper is not None and (self._jobs >= self._recycle_after or self._keeper.closed):
            self._drop()
        if self._keeper is None:
            self._keeper, self._jobs = KeeperProcess(), 0
        self._jobs += 1
        return self._keeper

    def _drop(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def close(self) -> None:
        """End the warm Macaulay2; a job that still runs is stopped, one that waits is called off."""
        if self._owner != os.getpid():
            self._begin_afresh()
        self._closed = True
        keeper = self._keeper
        if keeper is not None and self._turn.locked():
            keeper.kill()
        with self._turn:
            self._drop()

    def __reduce__(self) -> tuple[Callable[..., ForkServerEngine], tuple[object, ...]]:
        return functools.partial(ForkServerEngine, recycle_after=self._recycle_after), (self._info,)
