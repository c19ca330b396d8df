"""The runner: it sends the jobs of a plan to workers and writes one record per job into the store.

A job passes through these states; a :class:`Task` is a job that is waiting or running::

    waiting (in `queue`) --assign--> running (`worker.task`) --event attempt, or end of the worker--> recorded
       ^                                |
       +------ crash, worker lost ------+

After a crash the job is repeated, up to the number of attempts in :mod:`m2bridge.batch.policy`; `attempts` contains the earlier
ones. If its worker has lost Macaulay2, the job returns to the queue and the attempt does not count.

A slot has at most one worker, which is starting, idle or busy. A worker that cannot be used is replaced by a new one in the
same slot; after several failures in succession the slot is closed. The batch ends when all jobs are recorded, when no slot is
left, or when it is interrupted: the first interrupt finishes the running jobs, the second one kills the workers.

Only the runner writes records, and only while it holds the lock of its store or shard. So a worker that ends later than its
runner cannot interfere with the next runner. All times are measured with the monotonic clock.
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
from m2bridge.batch.launchers import Launcher, WorkerHandle, WorkerSlots
from m2bridge.batch.plan import Plan
from m2bridge.batch.policy import NO_ENGINE, Attempt, JobOutcome, Settings, Task, record_of, triage
from m2bridge.batch.store import Store
from m2bridge.engine import machine

_WORKER_POLL_INTERVAL = 0.2  # seconds between two looks at the limits of running jobs
_NO_MEMORY = re.compile(r"allocat|out of memory|bad_alloc|MemoryError", re.IGNORECASE)


class Runner:
    """Runs the jobs of a plan. Call :meth:`run` once; :meth:`stop` may be called from any thread."""

    def __init__(
        self, plan: Plan, store: Store, settings: Settings, launcher: Launcher, display: Display
    ) -> None:
        self.store = store
        self.settings = settings
        self.launcher = launcher
        self.display = display
        self.finished_seconds: list[float] = []
        self.state = RunState(source=settings.source, total=len(plan.jobs), workers=settings.workers)
        self.state.cached, tasks = triage(plan, store, settings)
        self.queue: deque[Task] = deque(tasks)
        self.workers: list[WorkerHandle] = []
        self.slots = WorkerSlots(settings.workers, settings.engine_version)
        self.attempts: dict[str, list[Attempt]] = {}
        self.interrupts = 0
        self._selector = selectors.DefaultSelector()
        self._start = time.monotonic()
        self._next_update = 0.0
        self._next_publish = 0.0

    @property
    def interrupted(self) -> bool:
        return self.interrupts > 0 and self.state.finished < self.state.total

    # -- the loop --------------------------------------------------------------------------------------------

    def run(self) -> RunState:
        """Run until every job has a record, or until :meth:`stop` is called.

        Raises
        ------
        NoEngineError
            No worker has a working Macaulay2 any more; all records written before are valid.
        M2BridgeError
            The store cannot be written to, or workers cannot be started.
        """
        with self._signals(), self.display.shown(self.state):
            try:
                self._loop()
            finally:
                self._end_workers()
                self._update_state(publish=True)
        return self.state

    def _loop(self) -> None:
        while self.interrupts < 2:
            if not self.interrupts and self.settings.stop is not None and self.settings.stop.is_set():
                self.stop()
            self._assign()
            busy = any(worker.task for worker in self.workers)
            if not busy and (self.interrupts or not self.queue):
                return
            for key, _ in self._selector.select(_WORKER_POLL_INTERVAL):
                if isinstance(key.data, WorkerHandle):
                    self._handle_events(key.data)
                else:
                    os.read(key.fd, 4096)
            if time.monotonic() >= self._next_update:
                self._next_update = time.monotonic() + _WORKER_POLL_INTERVAL
                self._kill_overdue_workers()
                self._update_state()

    def stop(self, *, now: bool = False) -> None:
        """Start no new job and finish the running ones. If `now`, or on the second call, stop the running ones too."""
        self.interrupts += 2 if now else 1
        stop_now = self.interrupts > 1
        self.state.stopping = "stopping now" if stop_now else "finishing running jobs; Ctrl-C again stops now"

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: the first SIGINT finishes the running jobs, the second stops them; SIGTERM and SIGHUP stop them.

        Signals that are ignored when the runner starts (nohup) stay ignored. Only the main thread can handle signals.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        self._selector.register(reading, selectors.EVENT_READ)
        previous_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        previous_handlers = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(previous_fd)
            os.close(reading)
            os.close(writing)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.stop(now=number != signal.SIGINT)

    # -- assigning jobs to workers ---------------------------------------------------------------------------

    def _assign(self) -> None:
        """Start workers in free slots, as many as there are jobs, and send a job to each idle worker."""
        if self.interrupts:
            return
        needed = len(self.queue) + sum(w.task is not None for w in self.workers)
        for slot in sorted(self.slots.usable - {worker.slot for worker in self.workers}):
            if len(self.workers) < needed:
                worker = self.launcher.start(slot)
                worker.slot = slot
                self.workers.append(worker)
                self._selector.register(worker, selectors.EVENT_READ, worker)
        for worker in self.workers:
            if worker.idle and (task := self._next_task()) is not None:
                worker.assign(task)

    def _next_task(self) -> Task | None:
        """Return the next task without a valid record. A damaged record is moved away first."""
        while self.queue:
            task = self.queue.popleft()
            if task.key in self.attempts:  # a repetition after a crash
                return task
            record = self.store.read_or_set_aside(task.key)
            if record is not None:
                new_limits = self.settings.limits_again(record, task.job)
                # Without new limits the record is kept: another runner, of an overlapping shard, has written it meanwhile.
                if new_limits is None:
                    self.state.cached[record["outcome"]] += 1
                    continue
                task.limits = new_limits
                task.previous = record
            self.attempts[task.key] = []
            return task
        return None

    # -- events of workers -----------------------------------------------------------------------------------

    def _handle_events(self, worker: WorkerHandle) -> None:
        """Handle the new events of a worker, or its end."""
        events = worker.events()
        for event in events or ():
            kind = event["event"]
            task = worker.task
            if kind == "ready":
                mismatch = self.slots.mismatch(event)
                if mismatch is not None:
                    self._exclude(worker, mismatch.message, no_engine=mismatch.of_engine)
                    break
                self._count_host(worker, -1)  # the next task of Dask may run on another host
                worker.engine = event.get("engine")
                worker.ready = True
                worker.host = str(event.get("host"))
                self._count_host(worker, 1)
            elif kind == "unable":
                no_engine = event.get("exit_code") in (2, 4)
                if event.get("exclude"):
                    self._exclude(worker, event["message"], no_engine=no_engine)
                else:
                    self._replace(worker, event["message"], no_engine=no_engine)
            elif task is not None and event.get("id") == task.key:
                if kind == "alive":
                    task.step = str(event.get("step"))
                elif kind == "attempt":
                    self._handle_attempt(worker, task, event)
        if events is None:
            self._handle_end(worker)

    def _handle_attempt(self, worker: WorkerHandle, task: Task, event: dict[str, Any]) -> None:
        """Handle the event ``attempt``: a worker has finished an attempt at its job."""
        worker.task = None
        if event["outcome"] == NO_ENGINE:
            self.queue.appendleft(task)  # the job goes back into the queue; nothing is recorded about it
            self._replace(worker, event["message"], no_engine=True)
            return
        self.slots.record_success(worker.slot)
        self.state.hosts[worker.host].jobs += 1
        if event.get("retire"):
            worker.ready = False
            worker.kill("retired")
        self._assign()  # before the record is written, so that the worker does not wait for the disk
        fields = {
            name: event[name]
            for name in ("message", "result", "killed", "peak_memory_bytes")
            if name in event
        }
        outcome = JobOutcome(event["outcome"])
        attempt = Attempt(outcome=outcome, seconds=event["seconds"], limits=task.limits, **fields)
        self._finish(task, attempt, worker.engine)

    def _replace(self, worker: WorkerHandle, reason: str, *, no_engine: bool) -> None:
        """Kill a worker that cannot be used; another one is started in its slot, unless the slot has failed too often."""
        worker.ready = False
        worker.kill("failed")
        if self.slots.record_failure(worker.slot):
            self._exclude(worker, reason, no_engine=no_engine)

    def _exclude(self, worker: WorkerHandle, reason: str, *, no_engine: bool) -> None:
        """Kill a worker and close its slot. Its job, which has not started, goes back into the queue."""
        if worker.task is not None:
            self.queue.appendleft(worker.task)
            worker.task = None
        worker.ready = False
        worker.kill("excluded")
        self.state.excluded.append(reason)
        self.slots.close(worker.slot, reason, no_engine=no_engine)

    def _handle_end(self, worker: WorkerHandle) -> None:
        """Handle the end of a worker: determine the outcome of its job, or replace it if it could not start."""
        self._selector.unregister(worker)
        self.workers.remove(worker)
        self._count_host(worker, -1)
        status, errors = worker.close()
        task = worker.task
        last_line = errors.splitlines()[-1][:500] if errors else ""
        if task is None:
            if not worker.ready and worker.killed_for is None:
                reason = f"a worker cannot be started: {last_line or f'exit status {status}'}"
                self._replace(worker, reason, no_engine=False)
            return
        outcome = JobOutcome.CRASHED
        killed = status == -signal.SIGKILL
        message = f"the worker ended with status {status}" + (f": {last_line}" if last_line else "")
        if worker.killed_for == "time":
            outcome, message, killed = (
                JobOutcome.TIMED_OUT,
                f"stopped after {task.clock.elapsed:.0f} s",
                False,
            )
        elif not killed and _NO_MEMORY.search(errors):
            outcome, message, killed = JobOutcome.OUT_OF_MEMORY, "Python used more memory than allowed", False
        elif killed and machine.oom_kills() > task.oom_kills:
            outcome, killed = JobOutcome.OUT_OF_MEMORY, False
            message = "the machine or its control group ran out of memory; the kernel killed Python"
        attempt = Attempt(
            outcome=outcome, seconds=task.clock.elapsed, limits=task.limits, message=message, killed=killed
        )
        self._finish(task, attempt, worker.engine)

    def _count_host(self, worker: WorkerHandle, change: int) -> None:
        """Add `change` to the number of workers on the host of a worker."""
        if worker.host:
            host = self.state.hosts.setdefault(worker.host, Host())
            host.workers += change
            engine = worker.engine or {}
            host.engine = f"Macaulay2 {engine.get('version')} ({engine.get('origin')})"

    def _finish(self, task: Task, attempt: Attempt, engine: dict[str, Any] | None) -> None:
        """Write the record of a job, or put the job into the queue again after a crash."""
        attempts = self.attempts[task.key]
        attempts.append(attempt)
        if attempt.must_repeat(task.attempt):
            task.attempt += 1
            self.queue.appendleft(task)
            return
        record = record_of(task, attempts, self.settings.engine_version, engine)
        self.store.write(task.key, record)
        del self.attempts[task.key]
        self.state.done[record["outcome"]] += 1
        self.finished_seconds.append(attempt.seconds)
        self.display.finished(task.job, record, self.state)

    # -- time limits and state -------------------------------------------------------------------------------

    def _kill_overdue_workers(self) -> None:
        """Kill workers that have exceeded the time limit of their job and do not stop by themselves."""
        for worker in self.workers:
            if worker.task is not None and worker.killed_for is None and worker.task.overdue:
                worker.kill("time")

    def _update_state(self, *, publish: bool = False) -> None:
        """Update the state and the display; write the state to the store once a second, or now if `publish`."""
        state = self.state
        state.seconds = time.monotonic() - self._start
        state.running = [
            Running(w.task.job.title, round(w.task.clock.elapsed, 1), w.task.step, w.task.attempt)
            for w in self.workers
            if w.task
        ]
        self.display.update(state)
        if publish or time.monotonic() >= self._next_publish:
            self._next_publish = time.monotonic() + 1.0
            state.memory_bytes = machine.resident_tree(os.getpid())
            state.eta_seconds = self._eta()
            self.store.publish(state.document())

    def _eta(self) -> float | None:
        """Estimate the seconds left: each remaining job takes the median time of the jobs that this run has finished."""
        if not self.finished_seconds:
            return None
        median = statistics.median(self.finished_seconds)
        running = [worker.task for worker in self.workers if worker.task]
        left = median * len(self.queue) + sum(max(0.0, median - task.clock.elapsed) for task in running)
        return left / max(self.settings.workers, 1)

    def _end_workers(self) -> None:
        """Kill all workers and wait until all their processes have ended."""
        pids = [worker.pid for worker in self.workers if worker.pid is not None]
        descendants = [pid for parent in pids for pid in machine.descendants(parent)]
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.close()
        self.workers.clear()
        self._selector.close()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and any(map(machine.living, descendants)):
            time.sleep(0.02)
