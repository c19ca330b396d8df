"""Batch, in a worker: one attempt at a job. A job document and an engine enter; how it ended, as a document, leaves."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from m2bridge import records
from m2bridge.alarm import alarm
from m2bridge.batch import registry
from m2bridge.batch.policy import NO_ENGINE, JobOutcome, limits_of
from m2bridge.engine import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.discovery import check_candidate
from m2bridge.engine.machine import oom_kills
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
from m2bridge.families import parse_spec
from m2bridge.limits import Clock, LimitReached, Limits
from m2bridge.scripts import Script

LINUX = sys.platform == "linux"
_STOPPED = (Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY, Outcome.TOO_MUCH_OUTPUT)
_LONGEST_MESSAGE = 2000
_peak_files: list[int] = []


class JobEngine(Engine):
    """The worker's engine as one job sees it: no run outlasts the job, and Python's memory limit is lifted while Macaulay2,
    which has its own, is at work. It remembers runs that were stopped or never began, whatever the analysis makes of them.
    """

    def __init__(self, engine: Engine, clock: Clock, memory: MemoryLimit) -> None:
        self._engine, self._clock, self._memory = engine, clock, memory
        self.stopped: Run | None = None
        self.lost: str | None = None
        self.peak_memory_bytes = 0

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        limits = limits or Limits()
        if (remaining := self._clock.remaining) is not None:
            left = max(0.001, remaining)
            limits = replace(limits, wall_seconds=min(left, limits.wall_seconds or left))
        with self._memory.lifted():
            run = self._engine.run(script, limits, listener)
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes or 0)
        if run.outcome in _STOPPED:
            self.stopped = run
        if not run.began:
            self.lost = run.stderr.strip() or "no Macaulay2 takes scripts"
        return run


class MemoryLimit:
    """A limit of what Python may map on top of what it has mapped (Linux)."""

    def __init__(self, allowed: int | None) -> None:
        _, self._hard = resource.getrlimit(resource.RLIMIT_AS)
        self._soft = self._hard
        if LINUX and allowed is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            wanted = pages * resource.getpagesize() + allowed
            self._soft = wanted if self._hard == resource.RLIM_INFINITY else min(wanted, self._hard)

    def begin(self) -> None:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (self._soft, self._hard))

    def end(self) -> None:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (self._hard, self._hard))

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        self.end()
        try:
            yield
        finally:
            self.begin()


def attempt(job: dict[str, Any], engine: Engine, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run one job; whatever happens becomes an outcome.

    Beside the outcomes of jobs there is :data:`~m2bridge.batch.policy.NO_ENGINE`: nothing is known about the job, because
    no Macaulay2 works here any more. After every crash a fresh Macaulay2 is asked whether it still computes, so that a broken
    engine is never taken for a property of a job.
    """
    limits = limits_of(job.get("limits", {}))
    clock = Clock.of(limits)
    kills = oom_kills()
    _forget_peak()
    memory = MemoryLimit(limits.memory_bytes)
    job_engine = JobEngine(engine, clock, memory)
    try:
        with alarm(clock.remaining, clock.check):
            memory.begin()
            answer = _answer(job, job_engine, limits, clock, progress)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        memory.end()
        answer = _failure(error)
        if answer.get("killed") and oom_kills() > kills:
            message = "the machine or its control group ran out of memory and the kernel killed Macaulay2"
            answer = {"outcome": JobOutcome.OUT_OF_MEMORY, "message": message}
    finally:
        memory.end()
    if job_engine.lost is not None or answer["outcome"] == JobOutcome.CRASHED:
        answer = _after_a_probe(answer, job_engine)
    answer["seconds"] = clock.elapsed
    answer["peak_memory_bytes"] = max(job_engine.peak_memory_bytes, _peak()) or None
    return answer


def _after_a_probe(answer: dict[str, Any], engine: JobEngine) -> dict[str, Any]:
    """What a crash means, now that a fresh Macaulay2 has been tried: something about the job, or that there is none."""
    info = engine.info
    if info.path is None:  # an engine of a test
        return answer
    candidate = check_candidate(info.origin, info.path, fresh=True)
    why = candidate.reason
    if candidate.info is not None and candidate.info.version != info.version:
        why = f"it is of version {candidate.info.version} now, and was of version {info.version}"
    if why is not None:
        return {"outcome": NO_ENGINE, "message": f"the Macaulay2 at {info.path} is gone: {why}"}
    if engine.lost is not None:  # it was away for a moment
        return {"outcome": JobOutcome.CRASHED, "message": engine.lost[:_LONGEST_MESSAGE], "killed": True}
    return answer


def _answer(
    job: dict[str, Any], engine: JobEngine, limits: Limits, clock: Clock, progress: Callable[[str], None]
) -> dict[str, Any]:
    question = registry.job(job["analysis"])
    result = question(
        parse_spec(job["model"]), **registry.parameters_of(question, job.get("parameters", {})), engine=engine,
        limits=limits, clock=clock, progress=progress,
    )  # fmt: skip
    document = json.loads(json.dumps(records.to_document(result), allow_nan=False))
    if result.agreement is False:
        message = "; ".join(str(conflict) for conflict in result.conflicts[:5])
        return {"outcome": JobOutcome.DISAGREEMENT, "message": message, "result": document}
    limit = result.limit
    if limit is None and engine.stopped is not None:
        limit = f"script {engine.stopped.script.name} was stopped by a limit ({engine.stopped.outcome.value})"
    outcome = JobOutcome.COMPLETE if limit is None else JobOutcome.PARTIAL
    return {"outcome": outcome, "message": limit, "result": document}


_OUTCOMES: tuple[tuple[tuple[type[M2BridgeError], ...], JobOutcome], ...] = (
    ((MemoryLimitError,), JobOutcome.OUT_OF_MEMORY),
    ((LimitError,), JobOutcome.TIMED_OUT),
    ((InputError, NotPolynomialError), JobOutcome.BAD_JOB),
    ((DisagreementError,), JobOutcome.DISAGREEMENT),
)
"""What an error means for the job, the first kind that fits; anything else is a crash."""


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, LimitReached):  # outside of the question: while its answer was written
        error = TimeLimitError(error.reason)
    if not isinstance(error, (TimeLimitError, MemoryLimitError)) and _python_lacked_memory(error):
        # what Python did not give back is better left behind with the process
        return {"outcome": JobOutcome.OUT_OF_MEMORY, "message": "Python ran out of memory", "retire": True}
    outcome = next((outcome for kinds, outcome in _OUTCOMES if isinstance(error, kinds)), JobOutcome.CRASHED)
    message = str(error) if isinstance(error, M2BridgeError) else f"{type(error).__name__}: {error}"
    answer = {"outcome": outcome, "message": " ".join(message.split())[:_LONGEST_MESSAGE]}
    if outcome is JobOutcome.CRASHED:
        signal_number = error.fields.get("signal") if isinstance(error, CrashError) else -1
        return answer | {"killed": signal_number in (None, signal.SIGKILL)}
    return answer


def _python_lacked_memory(error: BaseException | None) -> bool:
    """Whether a lack of memory is behind an error: itself, what it was raised from, or a thread that could not start."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or "can't start new thread" in str(error):
            return True
        if isinstance(error, OSError) and error.errno == 12:  # ENOMEM
            return True
        error = error.__cause__ or error.__context__
    return False


def keep_peak_resettable() -> None:
    """Open the file by which the kernel forgets our peak of memory while that is still allowed."""
    with contextlib.suppress(OSError):
        _peak_files.append(os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC))


def _forget_peak() -> None:
    for file in _peak_files:
        with contextlib.suppress(OSError):
            os.write(file, b"5")


def _peak() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
