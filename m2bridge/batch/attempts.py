"""Run one attempt at a job in a worker process, with limits of time and memory; return its outcome as a document."""

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
from m2bridge.batch import registry, user_files
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
from m2bridge.results import Result
from m2bridge.scripts import Script

LINUX = sys.platform == "linux"
_STOPPED = (Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY, Outcome.TOO_MUCH_OUTPUT)
_LONGEST_MESSAGE = 2000  # characters of an error that a record keeps
_clear_refs_files: list[int] = []
"""File descriptors of /proc/self/clear_refs; writing 5 resets the peak of the resident memory (proc(5))."""


class JobEngine(Engine):
    """The engine of a worker, restricted to one job.

    A run ends at the latest at the time limit of the job. Python's memory limit is lifted while Macaulay2, which has its own
    limit, runs. The attributes `stopped` and `lost` record runs that reached a limit or never began, even if the analysis
    ignores them.
    """

    def __init__(self, engine: Engine, clock: Clock, memory: MemoryLimit) -> None:
        self._engine = engine
        self._clock = clock
        self._memory = memory
        self.stopped: Run | None = None
        self.lost: str | None = None
        self.peak_memory_bytes = 0

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        limits = limits or Limits()
        remaining = self._clock.remaining
        if remaining is not None:
            seconds_left = max(0.001, remaining)
            limits = replace(limits, wall_seconds=min(seconds_left, limits.wall_seconds or seconds_left))
        with self._memory.lifted():
            run = self._engine.run(script, limits, listener)
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes or 0)
        if run.outcome in _STOPPED:
            self.stopped = run
        if not run.began:
            self.lost = run.stderr.strip() or "no Macaulay2 could load the script"
        return run


class MemoryLimit:
    """A limit of the address space that Python may map in addition to what it has mapped already (Linux)."""

    def __init__(self, additional_bytes: int | None) -> None:
        _, self._hard = resource.getrlimit(resource.RLIMIT_AS)
        self._soft = self._hard
        if LINUX and additional_bytes is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + additional_bytes
            self._soft = limit if self._hard == resource.RLIM_INFINITY else min(limit, self._hard)

    def begin(self) -> None:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (self._soft, self._hard))

    def end(self) -> None:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (self._hard, self._hard))

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """Lift the limit inside the ``with`` statement."""
        self.end()
        try:
            yield
        finally:
            self.begin()


def attempt(job: dict[str, Any], engine: Engine, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run one job and return its outcome; exceptions of the analysis are converted to outcomes.

    The outcome :data:`~m2bridge.batch.policy.NO_ENGINE` means that Macaulay2 does not work on this machine any more; it contains
    no information about the job. After every crash Macaulay2 is tested, so that a broken engine is not recorded as a crash of
    the job.
    """
    limits = limits_of(job.get("limits", {}))
    clock = Clock.of(limits)
    kills_before = oom_kills()
    _reset_peak_memory()
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
        if answer.get("killed") and oom_kills() > kills_before:
            message = "the machine or its control group ran out of memory; the kernel killed Macaulay2"
            answer = {"outcome": JobOutcome.OUT_OF_MEMORY, "message": message}
    finally:
        memory.end()
    if job_engine.lost is not None or answer["outcome"] == JobOutcome.CRASHED:
        answer = _outcome_after_engine_test(answer, job_engine)
    answer["seconds"] = clock.elapsed
    answer["peak_memory_bytes"] = max(job_engine.peak_memory_bytes, _peak_memory()) or None
    return answer


def _outcome_after_engine_test(answer: dict[str, Any], engine: JobEngine) -> dict[str, Any]:
    """Test Macaulay2 after a crash: return NO_ENGINE if it does not work any more, else the outcome of the job."""
    info = engine.info
    if info.path is None:  # an engine of a test
        return answer
    candidate = check_candidate(info.origin, info.path, fresh=True)
    reason = candidate.reason
    if candidate.info is not None and candidate.info.version != info.version:
        reason = f"version mismatch: it is now version {candidate.info.version}, not {info.version}"
    if reason is not None:
        return {"outcome": NO_ENGINE, "message": f"the Macaulay2 at {info.path} cannot be used: {reason}"}
    if engine.lost is not None:  # Macaulay2 was not available for a short time
        return {"outcome": JobOutcome.CRASHED, "message": engine.lost[:_LONGEST_MESSAGE], "killed": True}
    return answer


def _answer(
    job: dict[str, Any], engine: JobEngine, limits: Limits, clock: Clock, progress: Callable[[str], None]
) -> dict[str, Any]:
    result: Result
    if "file" in job:
        result = user_files.answer(job, engine=engine, limits=limits, clock=clock, progress=progress)
    else:
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
"""The outcome for each class of errors; the first match counts. Any other error is a crash."""


def _failure(error: BaseException) -> dict[str, Any]:
    """Convert an exception to an outcome."""
    if isinstance(error, LimitReached):  # raised outside of the question, while its answer was written
        error = TimeLimitError(error.reason)
    if not isinstance(error, (TimeLimitError, MemoryLimitError)) and _caused_by_memory(error):
        # Python may not have released all memory, so the worker ends after this job ("retire").
        return {"outcome": JobOutcome.OUT_OF_MEMORY, "message": "Python ran out of memory", "retire": True}
    outcome = next((outcome for kinds, outcome in _OUTCOMES if isinstance(error, kinds)), JobOutcome.CRASHED)
    message = str(error) if isinstance(error, M2BridgeError) else f"{type(error).__name__}: {error}"
    answer = {"outcome": outcome, "message": " ".join(message.split())[:_LONGEST_MESSAGE]}
    if outcome is JobOutcome.CRASHED:
        signal_number = error.fields.get("signal") if isinstance(error, CrashError) else -1
        return answer | {"killed": signal_number in (None, signal.SIGKILL)}
    return answer


def _caused_by_memory(error: BaseException | None) -> bool:
    """Return whether an error, or an error that it was raised from, is due to a lack of memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or "can't start new thread" in str(error):
            return True
        if isinstance(error, OSError) and error.errno == 12:  # ENOMEM
            return True
        error = error.__cause__ or error.__context__
    return False


def open_clear_refs() -> None:
    """Open the file that resets the peak of the memory, while this process is still allowed to open it."""
    with contextlib.suppress(OSError):
        _clear_refs_files.append(os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC))


def _reset_peak_memory() -> None:
    for file in _clear_refs_files:
        with contextlib.suppress(OSError):
            os.write(file, b"5")


def _peak_memory() -> int:
    """Return the peak of the resident memory of this process in bytes; 0 without /proc."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
