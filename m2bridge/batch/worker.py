"""Batch, in a process of its own: a worker with a warm Macaulay2. Jobs enter on a socket, attempts leave on it.

The worker ends when the runner does: a thread waits for the socket to close, and on Linux the kernel sends SIGKILL besides.
Below the worker, Macaulay2's keeper ends with the worker in the same way, so that nothing outlives the runner.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from m2bridge import records
from m2bridge.batch import registry
from m2bridge.batch.limits import JobLimits
from m2bridge.batch.outcomes import JobOutcome
from m2bridge.engine import Engine, EngineInfo, Limits, Listener, Outcome, Run, open_engine
from m2bridge.errors import (
    CrashError,
    DisagreementError,
    InputError,
    LimitError,
    M2BridgeError,
    MemoryLimitError,
    NotPolynomialError,
    TimeLimitError,
)
from m2bridge.models import parse_spec
from m2bridge.scripts import Script

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_ALARM_AFTER = 1.0
"""Seconds after its limit at which Python code is interrupted: Macaulay2's own limit has the first word, and may leave a
partial answer."""
_OOM_SCORE = "600"
_STEPS_EVERY = 0.2
_STOPPED = (Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY, Outcome.TOO_MUCH_OUTPUT)


class JobEngine:
    """The worker's engine as one job sees it: no run outlasts the job, and Python's memory limit is lifted while
    Macaulay2, which has its own, is at work.
    """

    def __init__(self, engine: Engine, limits: JobLimits, memory: MemoryLimit) -> None:
        self._engine, self._memory = engine, memory
        self._end = None if limits.wall_seconds is None else time.monotonic() + limits.wall_seconds
        self.stopped: Run | None = None
        self.peak_memory_bytes = 0

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        limits = limits or Limits()
        if self._end is not None:
            left = self._end - time.monotonic()
            if left <= 0:
                self.stopped = Run(
                    script=script,
                    engine=self.info,
                    outcome=Outcome.TIMED_OUT,
                    stdout="",
                    stderr="",
                    seconds=0.0,
                    limits=limits,
                )
                return self.stopped
            limits = replace(limits, wall_seconds=min(left, limits.wall_seconds or left))
        with self._memory.lifted():
            run = self._engine.run(script, limits, listener)
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes or 0)
        if run.outcome in _STOPPED:
            self.stopped = run
        return run

    def close(self) -> None:
        """The worker closes the engine, not the job."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class MemoryLimit:
    """A limit of what Python may map on top of what it has mapped (Linux)."""

    def __init__(self, allowed: int | None) -> None:
        self._soft = resource.RLIM_INFINITY
        if LINUX and allowed is not None:
            self._soft = _mapped() + allowed
        _, self._hard = resource.getrlimit(resource.RLIMIT_AS)
        if self._hard != resource.RLIM_INFINITY:
            self._soft = self._hard if self._soft == resource.RLIM_INFINITY else min(self._soft, self._hard)

    def _put(self, soft: int) -> None:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (soft, self._hard))

    def __enter__(self) -> Self:
        self._put(self._soft)
        return self

    def __exit__(self, *_: object) -> None:
        self._put(self._hard)

    def end(self) -> None:
        """Lift the limit, also when it was interrupted while being lifted."""
        self._put(self._hard)

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        self._put(self._hard)
        try:
            yield
        finally:
            self._put(self._soft)


def _mapped() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


class Worker:
    """Takes jobs from the runner until the socket closes."""

    def __init__(self, runner: socket.socket) -> None:
        self.runner = runner
        self.jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.sending = threading.Lock()
        self.step: tuple[str, str] | None = None
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.tell_steps, daemon=True).start()

    def listen(self) -> None:
        with contextlib.suppress(OSError), self.runner.makefile("rb") as lines:
            for line in lines:
                self.jobs.put(json.loads(line))
        os._exit(0)  # the runner is gone; Macaulay2's keeper sees us go

    def say(self, event: str, **fields: Any) -> None:
        data = json.dumps({"event": event, **fields}, allow_nan=False).encode() + b"\n"
        with self.sending:
            self.runner.sendall(data)

    def tell_steps(self) -> None:
        """Tell now and then which step has been reached: most are over before anybody could read them."""
        told = None
        while True:
            time.sleep(_STEPS_EVERY)
            step = self.step
            if step is not None and step != told:
                with contextlib.suppress(OSError):
                    self.say("step", id=step[0], text=step[1][:200])
                told = step

    def reach(self, job: str, step: str) -> None:
        self.step = (job, step)

    def serve(self, explicit_engine: str | None) -> None:
        with open_engine(explicit_engine, warm=True) as engine:
            engine.run(Script(name="warm", text="exit 0;\n"))
            self.say("ready", engine={"version": engine.info.version, "origin": engine.info.origin})
            while True:
                job = self.jobs.get()
                answer = attempt(job, engine, functools.partial(self.reach, job["id"]))
                self.say("done", id=job["id"], **answer)


def attempt(job: dict[str, Any], engine: Engine, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run one job; whatever happens becomes an outcome."""
    limits = JobLimits.of(job["limits"])
    start = time.monotonic()
    oom_kills = _oom_kills()
    _forget_peak()
    memory = MemoryLimit(limits.memory_bytes)
    job_engine = JobEngine(engine, limits, memory)
    try:
        with _alarm(limits.wall_seconds), memory:
            answer = _answer(job, job_engine, limits, progress)
    except BaseException as error:
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise
        answer = _failure(error)
        if answer.get("killed") and _oom_kills() > oom_kills:
            answer |= {"outcome": JobOutcome.OUT_OF_MEMORY, "killed": False}
            answer["message"] = "the machine ran out of memory and the kernel killed Macaulay2"
    memory.end()
    answer["seconds"] = time.monotonic() - start
    answer["peak_memory_bytes"] = max(job_engine.peak_memory_bytes, _peak()) or None
    return answer


def _answer(
    job: dict[str, Any], engine: JobEngine, limits: JobLimits, progress: Callable[[str], None]
) -> dict[str, Any]:
    analysis = registry.find(job["analysis"])
    result = analysis.run(
        parse_spec(job["model"]),
        job["parameters"],
        engine=engine,
        limits=Limits(wall_seconds=limits.wall_seconds, memory_bytes=limits.memory_bytes),
        progress=progress,
    )
    document = json.loads(json.dumps(records.to_document(result), allow_nan=False))
    limit = result.limit
    if limit is None and engine.stopped is not None:
        limit = f"script {engine.stopped.script.name} was stopped by a limit ({engine.stopped.outcome.value})"
    if result.agreement is False:
        message = "; ".join(str(conflict) for conflict in result.conflicts[:5])
        return {"outcome": JobOutcome.DISAGREEMENT, "message": message, "result": document}
    outcome = JobOutcome.COMPLETE if limit is None else JobOutcome.PARTIAL
    return {"outcome": outcome, "message": limit, "result": document}


def _failure(error: BaseException) -> dict[str, Any]:
    message = f"{type(error).__name__}: {error}" if not isinstance(error, M2BridgeError) else str(error)
    message = " ".join(message.split())[:2000]
    if isinstance(error, TimeLimitError):
        return {"outcome": JobOutcome.TIMED_OUT, "message": message}
    if isinstance(error, MemoryLimitError):
        return {"outcome": JobOutcome.OUT_OF_MEMORY, "message": message}
    if isinstance(error, MemoryError):  # what Python did not give back is better left behind with the process
        return {"outcome": JobOutcome.OUT_OF_MEMORY, "message": "Python ran out of memory", "retire": True}
    if isinstance(error, LimitError):
        return {"outcome": JobOutcome.TIMED_OUT, "message": message}
    if isinstance(error, (InputError, NotPolynomialError)):
        return {"outcome": JobOutcome.BAD_JOB, "message": message}
    if isinstance(error, DisagreementError):
        return {"outcome": JobOutcome.DISAGREEMENT, "message": message}
    killed = isinstance(error, CrashError) and error.fields.get("signal") == signal.SIGKILL
    return {"outcome": JobOutcome.CRASHED, "message": message, "killed": killed}


@contextlib.contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Interrupt Python code that outlasts the job's time."""

    def ring(*_: object) -> None:
        raise TimeLimitError(f"stopped after {seconds:g} s by the time limit")

    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds + _ALARM_AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _oom_kills() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Entry point of the worker process: the number of its socket and the runner's process id are its arguments."""
    number, parent, engine = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] or None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the runner
    if LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)  # the runner should not be the one to go
    if os.getppid() != parent:
        return
    runner = socket.socket(fileno=number)
    runner.set_inheritable(False)
    worker = Worker(runner)
    try:
        registry.analyses()
        worker.serve(engine)
    except (BrokenPipeError, ConnectionError):
        return
    except M2BridgeError as error:
        worker.say("unable", message=str(error), exit_code=error.exit_code)


if __name__ == "__main__":
    main()
