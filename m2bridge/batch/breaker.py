"""Batch: which workers are fit for use. What they say of themselves enters; where workers may run leaves.

A batch has as many places for workers as it runs jobs at once; a launcher may put them on different machines.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.worker import PROTOCOL
from m2bridge.errors import M2BridgeError, NoEngineError

MOST_FAILURES = 3
"""So many workers in a row that cannot start, or lose their Macaulay2, close their place: one may be killed by accident."""


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

    def failed(self, place: int, why: str, *, no_engine: bool) -> bool:
        """A worker in this place could not start or lost its Macaulay2; whether the place was closed for that."""
        self._failures[place] += 1
        if self._failures[place] < MOST_FAILURES:
            return False
        self.close(place, why, no_engine=no_engine)
        return True

    def close(self, place: int, why: str, *, no_engine: bool) -> None:
        """Close one place.

        Raises
        ------
        NoEngineError
            It was the last one, and for want of a Macaulay2.
        M2BridgeError
            It was the last one, for another reason.
        """
        self.places.discard(place)
        if not self.places:
            message = f"{why}; no worker is left, and nothing was recorded about the jobs that are left"
            raise (NoEngineError(message, candidates=()) if no_engine else M2BridgeError(message))
