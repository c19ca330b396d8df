"""Engine stage: several warm Macaulay2 at once, for threads, asyncio and worker processes. Scripts enter,
runs leave.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

from m2bridge.engine.base import EngineInfo, Limits, Listener, Run
from m2bridge.engine.queueing import CalledOffError, Cancellation, FairQueue
from m2bridge.engine.server import ForkServerEngine
from m2bridge.errors import M2BridgeError
from m2bridge.scripts import Script


class EnginePool:
    """Runs up to `workers` scripts at once, each in a child of a warm Macaulay2; first come, first served.

    Thread-safe. In a forked or unpickled copy the pool begins afresh with servers of its own. A server starts
    when it is first needed.
    """

    def __init__(
        self,
        info: EngineInfo,
        *,
        workers: int = 1,
        packages: tuple[str, ...] = (),
        recycle_after: int = 1000,
    ) -> None:
        self._info, self._workers, self._packages = info, max(1, workers), packages
        self._recycle_after = recycle_after
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._owner = os.getpid()
        self._servers = [
            ForkServerEngine(self._info, packages=self._packages, recycle_after=self._recycle_after)
            for _ in range(self._workers)
        ]
        self._queue = FairQueue(reversed(self._servers))

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def workers(self) -> int:
        return self._workers

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe."""
        return self.run_cancellable(script, limits, listener, Cancellation())

    def run_cancellable(
        self, script: Script, limits: Limits | None, listener: Listener | None, cancellation: Cancellation
    ) -> Run:
        """As :meth:`run`; `cancellation` lets another thread end the job, which is then an EngineError."""
        if os.getpid() != self._owner:
            self._begin_afresh()
        try:
            server = self._queue.take(cancellation)
        except CalledOffError:
            raise M2BridgeError(f"script {script.name} was called off before it began") from None
        try:
            return server.run_cancellable(script, limits, listener, cancellation)
        finally:
            self._queue.give(server)

    async def arun(
        self, script: Script, limits: Limits | None = None, listener: Listener | None = None
    ) -> Run:
        """As :meth:`run`, for asyncio; cancelling the task ends the job. `listener` is called in another
        thread.
        """
        cancellation = Cancellation()
        job = asyncio.ensure_future(
            asyncio.to_thread(self.run_cancellable, script, limits, listener, cancellation)
        )
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            cancellation.cancel()
            await asyncio.wait([job])
            job.exception()  # it failed because it was called off; that is no news
            raise

    def close(self) -> None:
        """End every server; jobs that still run are stopped, those that wait are called off."""
        if os.getpid() != self._owner:
            self._begin_afresh()
        self._queue.close()
        for server in self._servers:
            server.close()

    def __reduce__(self) -> tuple[Callable[..., EnginePool], tuple[object, ...]]:
        return _rebuild, (self._info, self._workers, self._packages, self._recycle_after)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rebuild(info: EngineInfo, workers: int, packages: tuple[str, ...], recycle_after: int) -> EnginePool:
    return EnginePool(info, workers=workers, packages=packages, recycle_after=recycle_after)
