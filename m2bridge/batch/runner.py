"""Batch: the runner. A plan, a store and a launcher of workers enter; afterwards every job has its record.

The runner alone writes records, and only while it holds the lock of its store or shard; a worker that outlives it for a moment
can therefore not disturb a runner that comes after. Time is measured by the monotonic clock only.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from m2bridge.batch.display import Display, Host, Running, RunState
from m2bridge.batch.launchers import Breaker, Launcher, WorkerHandle
from m2bridge.batch.plan import Plan
from m2bridge.batch.policy import NO_ENGINE, Attempt, JobOutcome, Settings, Task, record_of, triage
from m2bridge.batch.store import Store
from m2bridge.engine import machine

_TICK = 0.2
_NO_MEMORY = re.compile(r"allocat|out of memory|bad_alloc|MemoryError", re.IGNORECASE)


class Runner:
    """Runs a plan into a store. Use :meth:`run` once; :meth:`stop` may be called from any thread."""

    def __init__(
        self, plan: Plan, store: Store, settings: Settings, launcher: Launcher, display: Display
    ) -> None:
        self.store, self.settings = store, settings
        self.launcher, self.display = launcher, display
        self.finished_seconds: list[float] = []
        self.state = RunState(source=settings.source, total=len(plan.jobs), workers=settings.workers)
        self.state.cached, tasks = triage(plan, store, settings)
        self.queue: deque[Task] = deque(tasks)
        self.workers: list[WorkerHandle] = []
        self.breaker = Breaker(settings.workers, settings.engine_version)
        self.history: dict[str, list[Attempt]] = {}
        self.interrupts = 0
        self._selector = selectors.DefaultSelector()
        self._begun = time.monotonic()
        self._next_tick = self._next_publish = 0.0

    @property
    def interrupted(self) -> bool:
        return self.interrupts > 0 and self.state.finished < self.state.total

    # -- the loop --------------------------------------------------------------------------------------------

    def run(self) -> RunState:
        """Run until every job has its record, or until asked to stop.

        Raises
        ------
        NoEngineError
            No worker has a Macaulay2 that works, or it was lost everywhere; every record written before is valid.
        M2BridgeError
            The store cannot be written to, or workers cannot be started.
        """
        with self._signals(), self.display.shown(self.state):
            try:
                self._loop()
            finally:
                self._end_workers()
                self._tick(force=True)
        return self.state

    def _loop(self) -> None:
        while self.interrupts < 2:
            if not self.interrupts and self.settings.stop is not None and self.settings.stop.is_set():
                self.stop()
            self._assign()
            busy = any(worker.task for worker in self.workers)
            if not busy and (self.interrupts or not self.queue):
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

    def stop(self, *, now: bool = False) -> None:
        """Begin no new job and finish what runs; `now`, or said twice, end what runs too."""
        self.interrupts += 2 if now else 1
        stop_now = self.interrupts > 1
        self.state.stopping = "stopping now" if stop_now else "finishing what runs; Ctrl-C again stops now"

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C once finishes what runs, twice stops now; being told to end stops now.

        A signal that whoever started us has set to be ignored (nohup) stays ignored. Only the main thread hears signals.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        self._selector.register(reading, selectors.EVENT_READ)
        wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        before = {
            number: signal.signal(number, self._signalled)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            os.close(reading)
            os.close(writing)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self.stop(now=number != signal.SIGINT)

    # -- giving out jobs -------------------------------------------------------------------------------------

    def _assign(self) -> None:
        if self.interrupts:
            return
        needed = len(self.queue) + sum(w.task is not None for w in self.workers)
        for place in sorted(self.breaker.places - {worker.place for worker in self.workers}):
            if len(self.workers) < needed:
                worker = self.launcher.start(place)
                worker.place = place
                self.workers.append(worker)
                self._selector.register(worker, selectors.EVENT_READ, worker)
        for worker in self.workers:
            if worker.idle and (task := self._claim()) is not None:
                worker.give(task)

    def _claim(self) -> Task | None:
        """Return the next job that has no record yet; a damaged record is set aside first."""
        while self.queue:
            task = self.queue.popleft()
            if task.key in self.history:  # another attempt
                return task
            record = self.store.read_or_set_aside(task.key)
            if record is not None:
                again = self.settings.limits_again(record, task.job)
                if again is None:  # recorded since we looked, by the runner of a shard that overlaps
                    self.state.cached[record["outcome"]] += 1
                    continue
                task.limits, task.previous = again, record
            self.history[task.key] = []
            return task
        return None

    # -- hearing of them -------------------------------------------------------------------------------------

    def _hear(self, worker: WorkerHandle) -> None:
        events = worker.events()
        for event in events or ():
            kind, task = event["event"], worker.task
            if kind == "ready":
                if (why := self.breaker.stranger(event)) is None:
                    self._note_host(worker, -1)  # a task of Dask may run on another host than the last one
                    worker.engine = event.get("engine")
                    worker.ready, worker.host = True, str(event.get("host"))
                    self._note_host(worker, 1)
                else:
                    self._exclude(worker, why, no_engine="Macaulay2" in why)
                    break
            elif kind == "unable":
                no_engine = event.get("exit_code") in (2, 4)
                if event.get("exclude"):
                    self._exclude(worker, event["message"], no_engine=no_engine)
                else:
                    self._failed(worker, event["message"], no_engine=no_engine)
            elif task is not None and event.get("id") == task.key:
                if kind == "alive":
                    task.step = str(event.get("step"))
                elif kind == "attempt":
                    self._attempted(worker, task, event)
        if events is None:
            self._bury(worker)

    def _attempted(self, worker: WorkerHandle, task: Task, event: dict[str, Any]) -> None:
        worker.task = None
        if event["outcome"] == NO_ENGINE:
            self.queue.appendleft(task)  # it stays ours, and nothing is noted about it
            self._failed(worker, event["message"], no_engine=True)
            return
        self.breaker.worked(worker.place)
        self.state.hosts[worker.host].jobs += 1
        if event.get("retire"):
            worker.ready = False
            worker.kill("retired")
        self._assign()  # first, so that the worker need not wait for the disk
        said = {
            name: event[name]
            for name in ("message", "result", "killed", "peak_memory_bytes")
            if name in event
        }
        outcome, seconds = JobOutcome(event["outcome"]), event["seconds"]
        attempt = Attempt(outcome=outcome, seconds=seconds, limits=task.limits, **said)
        self._finish(task, attempt, worker.engine)

    def _failed(self, worker: WorkerHandle, why: str, *, no_engine: bool) -> None:
        """A worker cannot be used. Another is tried in its place, until the place is closed; the other places go on."""
        worker.ready = False
        worker.kill("failed")
        if self.breaker.failed(worker.place):
            self._exclude(worker, why, no_engine=no_engine)

    def _exclude(self, worker: WorkerHandle, why: str, *, no_engine: bool) -> None:
        """Use the place of a worker no more; a job that it has is not begun, and goes back into the queue."""
        if worker.task is not None:
            self.queue.appendleft(worker.task)
            worker.task = None
        worker.ready = False
        worker.kill("excluded")
        self.state.excluded.append(why)
        self.breaker.close(worker.place, why, no_engine=no_engine)

    def _bury(self, worker: WorkerHandle) -> None:
        """A worker is gone: what that means for its job, and for the batch."""
        self._selector.unregister(worker)
        self.workers.remove(worker)
        self._note_host(worker, -1)
        status, words = worker.close()
        task = worker.task
        last = words.splitlines()[-1][:500] if words else ""
        if task is None:
            if not worker.ready and worker.killed_for is None:
                why = f"a worker cannot be started: {last or f'exit status {status}'}"
                self._failed(worker, why, no_engine=False)
            return
        outcome, killed = JobOutcome.CRASHED, status == -signal.SIGKILL
        message = f"the worker died with status {status}" + (f": {last}" if last else "")
        if worker.killed_for == "time":
            outcome, message, killed = (
                JobOutcome.TIMED_OUT,
                f"stopped after {task.clock.elapsed:.0f} s",
                False,
            )
        elif not killed and _NO_MEMORY.search(words):
            outcome, message, killed = JobOutcome.OUT_OF_MEMORY, "Python used more memory than allowed", False
        elif killed and machine.oom_kills() > task.oom_kills:
            outcome, killed = JobOutcome.OUT_OF_MEMORY, False
            message = "the machine or its control group ran out of memory and the kernel killed Python"
        attempt = Attempt(
            outcome=outcome, seconds=task.clock.elapsed, limits=task.limits, message=message, killed=killed
        )
        self._finish(task, attempt, worker.engine)

    def _note_host(self, worker: WorkerHandle, change: int) -> None:
        """Keep the list of hosts: a worker has come or gone."""
        if worker.host:
            host = self.state.hosts.setdefault(worker.host, Host())
            host.workers += change
            engine = worker.engine or {}
            host.engine = f"Macaulay2 {engine.get('version')} ({engine.get('origin')})"

    def _finish(self, task: Task, attempt: Attempt, engine: dict[str, Any] | None) -> None:
        """Record an attempt, or try once more after a crash."""
        attempts = self.history[task.key]
        attempts.append(attempt)
        if attempt.calls_for_another(task.attempt):
            task.attempt += 1
            self.queue.appendleft(task)
            return
        record = record_of(task, attempts, self.settings.engine_version, engine)
        self.store.write(task.key, record)
        del self.history[task.key]
        self.state.done[record["outcome"]] += 1
        self.finished_seconds.append(attempt.seconds)
        self.display.finished(task.job, record, self.state)

    # -- watching --------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Kill workers that outlast their job's time and do not notice themselves."""
        for worker in self.workers:
            if worker.task is not None and worker.killed_for is None and worker.task.overdue:
                worker.kill("time")

    def _tick(self, *, force: bool = False) -> None:
        state = self.state
        state.seconds = time.monotonic() - self._begun
        state.running = [
            Running(w.task.job.title, round(w.task.clock.elapsed, 1), w.task.step, w.task.attempt)
            for w in self.workers
            if w.task
        ]
        self.display.update(state)
        if force or time.monotonic() >= self._next_publish:
            self._next_publish = time.monotonic() + 1.0
            state.memory_bytes = machine.resident_tree(os.getpid())
            state.eta_seconds = self._eta()
            self.store.publish(state.document())

    def _eta(self) -> float | None:
        """Estimate the seconds that are left: the median time of the jobs that this run has finished, for each one left."""
        if not self.finished_seconds:
            return None
        median = statistics.median(self.finished_seconds)
        running = [worker.task for worker in self.workers if worker.task]
        left = median * len(self.queue) + sum(max(0.0, median - task.clock.elapsed) for task in running)
        return left / max(self.settings.workers, 1)

    def _end_workers(self) -> None:
        """End every worker and wait until nothing of theirs is left."""
        pids = [worker.pid for worker in self.workers if worker.pid is not None]
        below = [pid for parent in pids for pid in machine.descendants(parent)]
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.close()
        self.workers.clear()
        self._selector.close()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and any(map(machine.living, below)):
            time.sleep(0.02)
