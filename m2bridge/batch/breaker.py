"""Batch: which workers are fit for use. What they say of themselves enters; how many may run, or the end of the batch, leaves."""

from __future__ import annotations

from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.worker import PROTOCOL
from m2bridge.errors import M2BridgeError, NoEngineError

_MOST_FAILED_STARTS = 3


class Breaker:
    """Counts the places where workers can run. A worker that cannot be used closes its place; with the last one the batch ends,
    and nothing is recorded about the jobs that it would have run.
    """

    def __init__(self, slots: int, engine_version: str) -> None:
        self.slots, self._engine_version = slots, engine_version
        self._failed_starts = 0

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

    def worked(self) -> None:
        """A worker has answered."""
        self._failed_starts = 0

    def failed_start(self, why: str) -> None:
        """A worker ended before it was ready; after three in a row its place is closed."""
        self._failed_starts += 1
        if self._failed_starts >= _MOST_FAILED_STARTS:
            self._failed_starts = 0
            self.exclude(f"workers cannot be started: {why}", no_engine=False)

    def exclude(self, why: str, *, no_engine: bool) -> None:
        """Close one place.

        Raises
        ------
        NoEngineError
            It was the last one, and for want of a Macaulay2.
        M2BridgeError
            It was the last one, for another reason.
        """
        self.slots -= 1
        if self.slots <= 0:
            message = f"{why}; no worker is left, and nothing was recorded about the jobs that are left"
            raise (NoEngineError(message, candidates=()) if no_engine else M2BridgeError(message))
