"""Batch: the runner. A plan and a store enter; afterwards every job has its record.

The runner alone writes records, and only while it holds the job's lock; a worker that outlives it for a moment can therefore
not disturb a runner that comes after. Time is measured by the monotonic clock only.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from m2bridge.batch import memory
from m2bridge.batch.crew import Task, WorkerHandle
from m2bridge.batch.display import Display
from m2bridge.batch.estimates import Estimates
from m2bridge.batch.index import Index
from m2bridge.batch.outcomes import (
    ATTEMPTS_AFTER_A_CRASH,
    ATTEMPTS_AFTER_A_KILL,
    Attempt,
    JobOutcome,
    new_limits,
)
from m2bridge.batch.plan import Plan
from m2bridge.batch.recording import record_of
from m2bridge.batch.state import Running, RunState, publish
from m2bridge.batch.store import Store
from m2bridge.batch.triage import Settings, triage
from m2bridge.errors import M2BridgeError, NoEngineError

_TICK = 0.2
_LOOK_AGAIN = 0.5
_MOST_FAILED_STARTS = 3
_MEMORY_SLACK = 256 * 2**20
_NO_MEMORY = re.compile(r"allocat|out of memory|bad_alloc|MemoryError", re.IGNORECASE)
_STOP_NOW = (signal.SIGTERM, signal.SIGHUP)


class Runner:
    """Runs a plan into a store. Use :meth:`run` once."""

    def __init__(self, plan: Plan, store: Store, settings: Settings, display: Display) -> None:
        if store.locks is None:
            raise M2BridgeError("the runner needs a store that was opened for writing")
        self.store, self.locks, self.settings, self.display = store, store.locks, settings, display
        self.index = Index(store)
        self.estimates = Estimates(self.index.seconds())
        self.state = RunState(source=settings.source, total=len(plan.jobs), workers=settings.workers)
        found = triage(plan, store, self.estimates, settings)
        for _, outcome in found.standing:
            self.state.cached[outcome] += 1
        self.queue: deque[Task] = deque(found.tasks)
        self.elsewhere: list[Task] = []
        self.workers: list[WorkerHandle] = []
        self.history: dict[str, list[Attempt]] = {}
        self.unindexed: list[dict[str, Any]] = []
        self.engine: dict[str, Any] | None = None
        self.interrupts = 0
        self.failed_starts = 0
        self._selector = selectors.DefaultSelector()
        self._begun = time.monotonic()
        self._next_look = self._next_tick = self._next_publish = 0.0

    @property
    def interrupted(self) -> bool:
        return self.interrupts > 0 and self.state.finished < self.state.total

    # -- the loop --------------------------------------------------------------------------------------------

    def run(self) -> RunState:
        """Run until every job has its record, or until asked to stop.

        Raises
        ------
        NoEngineError
            No worker finds a Macaulay2.
        M2BridgeError
            The store cannot be written to, or workers cannot be started.
        """
        with self._signals(), self.display.shown(self.state):
            try:
                self._loop()
            finally:
                self._end_workers()
                self._tick(force=True)
                self.index.close()
        return self.state

    def _loop(self) -> None:
        while self.interrupts < 2:
            self._look_elsewhere()
            self._assign()
            busy = any(worker.task for worker in self.workers)
            if not busy and (self.interrupts or not (self.queue or self.elsewhere)):
                return
            for key, _ in self._selector.select(_TICK):
                if isinstance(key.data, WorkerHandle):
                    self._hear(key.data)
                else:
                    os.read(key.fd, 4096)
            if time.monotonic() >= self._next_tick:
                self._next_tick = time.monotonic() + _TICK
                self._watch()
                self._tick()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C once finishes what runs, twice stops now; being told to end stops now."""
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        self._selector.register(reading, selectors.EVENT_READ)
        wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, *_STOP_NOW)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            self._selector.close()
            os.close(reading)
            os.close(writing)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.interrupts += 1 if number == signal.SIGINT else 2
        stop_now = self.interrupts > 1
        self.state.stopping = "stopping now" if stop_now else "finishing what runs; Ctrl-C again stops now"

    # -- giving out jobs -------------------------------------------------------------------------------------

    def _assign(self) -> None:
        if self.interrupts:
            return
        wanted = min(self.settings.workers, len(self.queue) + sum(w.task is not None for w in self.workers))
        while len(self.workers) < wanted:
            self._start_worker()
        for worker in self.workers:
            if worker.idle and (task := self._claim()) is not None:
                worker.give(task)

    def _start_worker(self) -> None:
        worker = WorkerHandle(self.settings.engine)
        self.workers.append(worker)
        self._selector.register(worker.socket, selectors.EVENT_READ, worker)

    def _claim(self) -> Task | None:
        """The next job that no other runner holds and that has no record yet; its lock is then ours."""
        while self.queue:
            task = self.queue.popleft()
            if task.key in self.history:  # another attempt: the lock is ours already
                return task
            if not self.locks.take(f"job:{task.key}"):
                self.elsewhere.append(task)
                continue
            record = self.store.read_or_set_aside(task.key)
            if record is not None:
                again = new_limits(
                    record, task.job.limits, retry=self.settings.retry, escalate=self.settings.escalate
                )
                if again is None:  # another runner has done it since we looked
                    self.locks.release(f"job:{task.key}")
                    self.state.cached[record["outcome"]] += 1
                    continue
                task.limits, task.previous = again, record
            self.history[task.key] = []
            return task
        return None

    def _look_elsewhere(self) -> None:
        """Whether jobs that another runner held are free again (it finished them, or died)."""
        now = time.monotonic()
        if not self.elsewhere or now < self._next_look:
            return
        self._next_look = now + _LOOK_AGAIN
        free = [task for task in self.elsewhere if not self.locks.is_held(f"job:{task.key}")]
        self.elsewhere = [task for task in self.elsewhere if task not in free]
        self.queue.extend(free)
        if not self.workers and free and self.settings.workers:
            self._claim_finished()

    def _claim_finished(self) -> None:
        """With no worker at hand, take out what needs none: jobs finished elsewhere."""
        if (task := self._claim()) is not None:
            self.queue.appendleft(task)

    # -- hearing of them -------------------------------------------------------------------------------------

    def _hear(self, worker: WorkerHandle) -> None:
        events = worker.events()
        for event in events or ():
            if event["event"] == "ready":
                worker.ready, self.engine, self.failed_starts = True, event["engine"], 0
                if event["engine"]["version"] != self.settings.engine_version:
                    raise M2BridgeError(
                        "the Macaulay2 changed its version while the batch was starting; run it again"
                    )
            elif event["event"] == "step":
                if worker.task is not None and worker.task.key == event["id"]:
                    worker.task.step = event["text"]
            elif event["event"] == "unable":
                raise (NoEngineError if event["exit_code"] == 4 else M2BridgeError)(event["message"])
            elif event["event"] == "done" and worker.task is not None:
                task, worker.task = worker.task, None
                if event.get("retire"):
                    worker.ready = False
                    worker.kill("retired")
                self._assign()  # first, so that the worker need not wait for the disk
                self._finish(task, _attempt(task, event))
        if events is None:
            self._bury(worker)

    def _bury(self, worker: WorkerHandle) -> None:
        """A worker is gone: what that means for its job, and for the batch."""
        self._selector.unregister(worker.socket)
        self.workers.remove(worker)
        status = worker.close()
        words = worker.last_words()
        worker.forget()
        task = worker.task
        if task is None:
            if not worker.ready and worker.killed_for is None:
                self.failed_starts += 1
                if self.failed_starts >= _MOST_FAILED_STARTS:
                    raise M2BridgeError(f"workers cannot be started: {words or f'exit status {status}'}")
            return
        outcome, killed = JobOutcome.CRASHED, status == -signal.SIGKILL
        message = f"the worker died with status {status}" + (f": {words}" if words else "")
        if worker.killed_for == "time":
            outcome, message, killed = JobOutcome.TIMED_OUT, f"stopped after {task.elapsed:.0f} s", False
        elif worker.killed_for == "memory" or (not killed and _NO_MEMORY.search(words)):
            outcome, message = JobOutcome.OUT_OF_MEMORY, "Python used more memory than allowed"
            killed = False
        self._finish(
            task,
            Attempt(
                outcome=outcome, seconds=task.elapsed, limits=task.limits, message=message, killed=killed
            ),
        )

    def _finish(self, task: Task, attempt: Attempt) -> None:
        """Record an attempt, or try once more after a crash."""
        attempts = self.history[task.key]
        attempts.append(attempt)
        if attempt.outcome is JobOutcome.CRASHED:
            most = ATTEMPTS_AFTER_A_KILL if attempt.killed else ATTEMPTS_AFTER_A_CRASH
            if task.attempt < most:
                task.attempt += 1
                self.queue.appendleft(task)
                return
        record = record_of(task, attempts, self.settings.engine_version, self.engine)
        self.store.write(task.key, record)
        self.locks.release(f"job:{task.key}")
        del self.history[task.key]
        self.unindexed.append(record)
        self.state.done[record["outcome"]] += 1
        if attempt.outcome is JobOutcome.COMPLETE:
            self.estimates.learn(task.job.analysis, task.job.spec, task.job.size, attempt.seconds)
        self.display.finished(task.job, record, self.state)

    # -- watching --------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Kill workers that outlast their job's time or outgrow its memory and do not notice themselves."""
        for worker in self.workers:
            task = worker.task
            if task is None or worker.killed_for is not None:
                continue
            if task.overdue:
                worker.kill("time")
            elif (
                task.limits.memory_bytes is not None
                and memory.resident(worker.process.pid) > task.limits.memory_bytes + 2 * _MEMORY_SLACK
            ):
                worker.kill("memory")

    def _tick(self, *, force: bool = False) -> None:
        state = self.state
        state.seconds = time.monotonic() - self._begun
        state.elsewhere = len(self.elsewhere)
        state.running = [
            Running(w.task.job.title, w.task.elapsed, w.task.step, w.task.attempt)
            for w in self.workers
            if w.task
        ]
        self.display.update(state)
        if force or time.monotonic() >= self._next_publish:
            self._next_publish = time.monotonic() + 1.0
            state.memory_bytes = memory.resident_tree(os.getpid())
            state.eta_seconds = self._eta()
            publish(self.store, state)
            if self.unindexed:
                self.index.add(self.unindexed)
                self.unindexed = []

    def _eta(self) -> float | None:
        """Seconds that the rest may take: from estimates, and the mean of this run where there is none."""
        done = self.state.done.total()
        mean = self.state.seconds * self.settings.workers / done if done else None
        rest = 0.0
        for task in (*self.queue, *(w.task for w in self.workers if w.task)):
            expected = task.estimate if task.estimate is not None else mean
            if expected is None:
                return None
            rest += max(0.0, expected - (task.elapsed if task.started else 0.0))
        return rest / max(self.settings.workers, 1)

    def _end_workers(self) -> None:
        """End every worker and wait until nothing of theirs is left."""
        below = [pid for worker in self.workers for pid in memory.descendants(worker.process.pid)]
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.close()
            worker.forget()
        self.workers.clear()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and any(map(memory.living, below)):
            time.sleep(0.02)


def _attempt(task: Task, event: dict[str, Any]) -> Attempt:
    return Attempt(
        outcome=JobOutcome(event["outcome"]),
        seconds=event["seconds"],
        limits=task.limits,
        message=event.get("message"),
        result=event.get("result"),
        killed=event.get("killed", False),
        peak_memory_bytes=event.get("peak_memory_bytes"),
    )
