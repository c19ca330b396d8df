"""Batch: workers on a Dask cluster. A scheduler's address enters; handles of the workers behind it leave.

Each Dask worker keeps one ``m2bridge worker`` (:mod:`m2bridge.batch.companion`); a job is one task of Dask, bound to that Dask
worker and never retried by Dask. A Dask worker or a scheduler that is lost is the end of a worker, as a lost node is for
``srun``: the runner decides what that means.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from distributed import Client, Future, Security

from m2bridge.batch import companion
from m2bridge.batch.launchers import MOST_FAILURES, WorkerHandle
from m2bridge.errors import M2BridgeError

PATIENCE = 120.0
"""Seconds for which a scheduler may be away, for instance because it is started again."""
_LOOK = 0.5
_STAY = companion.IDLE_SECONDS / 3
_CONNECT = 10.0
_START_AGAIN = 30.0


class DaskLauncher:
    """Gives each place of a batch a Dask worker of its own, when there is one. Use it for one batch, and close it."""

    def __init__(
        self, address: str, security: Security | None, engine: str | None, places: int | None = None,
        cluster: Any = None,
    ) -> None:  # fmt: skip
        self._address, self._security, self.engine, self._cluster = address, security, engine, cluster
        self.runner = f"m2bridge-{secrets.token_hex(8)}"
        self._handles: list[DaskHandle] = []
        self._refused: dict[str, str] = {}
        self._failures: Counter[str] = Counter()
        self._changing = threading.RLock()
        self._ended = threading.Event()
        self._seen = self._scaled = time.monotonic()
        self._client: Client | None = None
        try:
            there = self._workers()
        except (OSError, TimeoutError) as error:
            raise M2BridgeError(f"there is no Dask scheduler at {address}: {error}") from None
        self.places = places or max(1, len(there))
        self._thread = threading.Thread(target=self._attend, daemon=True, name="m2bridge-dask")
        self._thread.start()

    def start(self, place: int) -> DaskHandle:
        """A handle that waits for a Dask worker which no other place has."""
        handle = DaskHandle(self)
        with self._changing:
            self._handles.append(handle)
        return handle

    # -- looking after them ----------------------------------------------------------------------------------

    def _workers(self) -> set[str]:
        """The addresses of the Dask workers that are there."""
        if self._client is None or self._client.status != "running":
            self._disconnect()
            options: dict[str, Any] = {
                "security": self._security,
                "timeout": _CONNECT,
                "set_as_default": False,
            }
            self._client = Client(self._address, **options)
            self._client.subscribe_topic(self.runner, self._hear)
        return set(self._client.nthreads(callback_timeout=_CONNECT))

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=2)

    def _attend(self) -> None:
        while not self._ended.wait(_LOOK):
            try:
                there = self._workers()
            except Exception as error:  # whatever Dask raises when its scheduler is away
                self._lose_all(f"{type(error).__name__}: {error}")
                continue
            self._seen = time.monotonic()
            with self._changing:
                self._match(there)
            overdue = self._seen > self._scaled + _START_AGAIN
            if self._cluster is not None and len(there) < self.places and overdue:
                self._scaled = self._seen
                self._cluster.scale(self.places)  # a job of the cluster that ended is submitted again

    def _match(self, there: set[str]) -> None:
        for handle in self._handles:
            if handle.address is not None and handle.address not in there:
                handle.end(-9, f"the Dask worker {handle.address} is gone")
        waiting = [handle for handle in self._handles if handle.address is None]
        free = sorted(there - {handle.address for handle in self._handles} - set(self._refused))
        for handle, address in zip(waiting, free, strict=False):
            handle.meet(address)
        refused = there & set(self._refused)
        if refused == there and len(refused) >= (self.places if self._cluster is not None else 1):
            for handle in waiting:
                handle.say({"event": "unable", "exit_code": 4, "message": self._refused[min(refused)]})
        for handle in self._handles:
            handle.stay()

    def _lose_all(self, why: str) -> None:
        away = time.monotonic() - self._seen
        with self._changing:
            for handle in list(self._handles):
                if handle.address is not None:
                    handle.end(-9, f"the Dask scheduler at {self._address} is gone: {why}")
                elif away > PATIENCE:
                    message = f"there was no Dask scheduler at {self._address} for {away:.0f} s: {why}"
                    handle.say({"event": "unable", "exit_code": 1, "message": message})

    def _hear(self, event: Any) -> None:
        """What a worker said while it is at work."""
        _, message = event
        with self._changing:
            for handle in self._handles:
                if handle.task is not None and handle.task.key == message.get("id"):
                    handle.say(message)

    def leave(self, handle: DaskHandle) -> None:
        """A handle has ended; a Dask worker that cannot be used is not used again."""
        with self._changing:
            if handle in self._handles:
                self._handles.remove(handle)
            if handle.address is not None and handle.killed_for in ("excluded", "failed"):
                self._failures[handle.address] += 1
                if handle.killed_for == "excluded" or self._failures[handle.address] >= MOST_FAILURES:
                    self._refused[handle.address] = handle.why or "a Dask worker cannot be used"

    def submit(
        self, handle: DaskHandle, name: str, function: Callable[..., Any], *arguments: Any
    ) -> Future | None:
        """A task for the handle's Dask worker and no other; None when there is no scheduler."""
        client, key = self._client, f"{name}-{secrets.token_hex(8)}"
        with contextlib.suppress(Exception):  # whatever Dask raises when its scheduler has just gone
            if client is not None:
                where = [handle.address]
                return client.submit(function, self.runner, *arguments, workers=where, key=key, retries=0)
        return None

    def close(self) -> None:
        """End what is kept for us in the Dask workers, and leave the scheduler."""
        self._ended.set()
        self._thread.join(_CONNECT)
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.run(companion.dismiss, self.runner, on_error="ignore", callback_timeout=_CONNECT)
        self._disconnect()


class DaskHandle(WorkerHandle):
    """The runner's side of the ``m2bridge worker`` that a Dask worker keeps."""

    def __init__(self, launcher: DaskLauncher) -> None:
        super().__init__()
        self._launcher = launcher
        self.address: str | None = None
        self.why: str | None = None
        self._said: deque[dict[str, Any]] = deque()
        self._future: Future | None = None
        self._stayed = time.monotonic()
        self._writing = threading.Lock()
        self._reader, self._writer = os.pipe()
        self._status: tuple[int, str] | None = None

    def fileno(self) -> int:
        return self._reader

    def meet(self, address: str) -> None:
        """Wait no longer: ask the Dask worker for its ``m2bridge worker``."""
        self.address = address
        self._ask("introduction", companion.answer, self._launcher.engine)

    def send(self, request: dict[str, Any]) -> None:
        assert self.task is not None
        self.task.queued = True  # another batch may be at work on that Dask worker
        self._ask(request["analysis"], companion.answer, self._launcher.engine, request)

    def stay(self) -> None:
        """Say now and then that an idle worker is still wanted."""
        if self.idle and time.monotonic() > self._stayed + _STAY:
            self._ask("stay", companion.stay)

    def _ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        self._stayed = time.monotonic()
        self._future = future = self._launcher.submit(self, name, function, *arguments)
        if future is None:
            self.end(-9, "the Dask scheduler is gone")
        else:
            future.add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        """An answer has come, or the end of the Dask worker (KilledWorker), or of the scheduler (cancelled)."""
        if self._future is None or future.key != self._future.key:
            return
        try:
            answer = future.result(timeout=_CONNECT)
        except ImportError as error:
            self.say({"event": "unable", "exit_code": 1, "message": f"{self.address}: {error}"})
        except BaseException as error:
            self.end(-9, f"{type(error).__name__}: {error}")
        else:
            if answer is not None and answer["event"] == companion.GONE:
                self.end(answer["status"], answer["words"])
            elif answer is not None:
                self.say(answer)

    def say(self, event: dict[str, Any]) -> None:
        """An event for the runner, from another thread."""
        if event["event"] == "unable":
            self.why = event["message"]
        with self._writing:
            self._said.append(event)
            if self._status is None:
                os.write(self._writer, b".")

    def end(self, status: int, words: str) -> None:
        """The worker is gone; said once."""
        with self._writing:
            if self._status is None:
                self._status = (status, words)
                os.close(self._writer)

    def events(self) -> list[dict[str, Any]] | None:
        with self._writing:
            events = list(self._said)
            self._said.clear()
            if self._status is None:
                os.read(self._reader, 1 << 16)
            elif not events:
                return None
        for event in events:
            if event["event"] == "alive" and self.task is not None and self.task.queued:
                self.task.queued, self.task.started = False, time.monotonic()
        return events

    def _end(self) -> None:
        """Lose interest: the companion sees that its task was cancelled, and kills."""
        future, self._future = self._future, None
        if future is not None:
            future.release()
        self.end(-9, "killed")

    def close(self) -> tuple[int, str]:
        self._end()
        self._launcher.leave(self)
        with contextlib.suppress(OSError):
            os.close(self._reader)
        assert self._status is not None
        return self._status
