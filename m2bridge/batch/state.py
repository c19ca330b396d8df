"""Batch: what a runner is doing, for its display and for ``m2bridge status``: a file that is replaced as a whole.

The file is a heartbeat for people. Whether its runner lives is told by the runner's lock, not by a clock or a process id.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from m2bridge.batch.locks import Locks
from m2bridge.batch.store import Store


@dataclass(slots=True)
class Running:
    """One job that is at work."""

    job: str
    seconds: float
    step: str
    attempt: int


@dataclass(slots=True)
class Host:
    """A machine on which workers run: its Macaulay2, how many workers are there now, how many jobs they answered."""

    engine: str = ""
    workers: int = 0
    jobs: int = 0


@dataclass(slots=True)
class RunState:
    """Where a run stands.

    Attributes
    ----------
    total: jobs of the plan; cached: answered from the store; done: outcomes of this run.
    elsewhere: jobs that another runner of the store is at work on.
    stopping: why no new job is begun, if so.
    hosts: where workers run, by name; excluded: workers that are not used, each with the reason;
    locks: whether they hold between hosts.
    """

    source: str
    total: int
    workers: int
    cached: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    elsewhere: int = 0
    running: list[Running] = field(default_factory=list)
    seconds: float = 0.0
    memory_bytes: int = 0
    eta_seconds: float | None = None
    stopping: str | None = None
    hosts: dict[str, Host] = field(default_factory=dict)
    excluded: list[str] = field(default_factory=list)
    locks: str = ""

    @property
    def finished(self) -> int:
        return self.cached.total() + self.done.total()

    @property
    def failed(self) -> int:
        both = self.cached + self.done
        return sum(count for outcome, count in both.items() if outcome != "complete")

    def document(self) -> dict[str, Any]:
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "running": [asdict(running) for running in self.running],
            "hosts": {name: asdict(host) for name, host in self.hosts.items()},
            "waiting": self.total - self.finished - len(self.running) - self.elsewhere,
            "seconds": round(self.seconds, 1),
            "eta_seconds": None if self.eta_seconds is None else round(self.eta_seconds, 1),
            "host": socket.gethostname(),
            "beat": time.monotonic_ns(),
        }


def publish(store: Store, state: RunState) -> None:
    """Replace the runner's file; a full disk is no reason to stop."""
    path = store.runners / f"{store.runner_id}.json"
    temporary = store.directory / "tmp" / f"{store.runner_id}.state"
    with contextlib.suppress(OSError):
        temporary.write_text(json.dumps(state.document(), ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, path)


def living(store: Store) -> list[dict[str, Any]]:
    """The state of every runner that is alive, read from another process."""
    found = []
    try:
        locks = Locks(store.directory / "locks", readonly=True)
    except OSError:
        return []
    try:
        for path in sorted(store.runners.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, RecursionError):
                state = json.loads(path.read_text(encoding="utf-8"))
                if locks.is_held(f"runner:{path.stem}"):
                    found.append(state)
    finally:
        locks.close()
    return found
