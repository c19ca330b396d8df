"""Batch: ``m2bridge worker``. Job documents enter on standard input, attempt documents leave on standard output, as JSON lines.

::

    in   {"id": 1, "analysis": "dimension", "model": "lightning(d=2,dp=1)", "parameters": {...}, "limits": {...}}
    out  {"event": "ready", "digest": ..., "versions": {...}, "engine": {...}, "host": ..., "pid": ...}
         {"event": "alive", "id": 1, "step": "..."}                  about once a second, also while nothing runs
         {"event": "attempt", "id": 1, "outcome": "complete", "result": {...}, "seconds": 0.02, ...}
         {"event": "unable", "message": "...", "exit_code": 4}       instead of "ready"

At the end of its input the worker finishes the jobs that it has and ends. When nobody reads its output any more it ends at
once, and so does Macaulay2's supervisor below it. It writes no files. What an analysis prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from m2bridge.batch import registry
from m2bridge.batch.attempts import attempt, keep_peak_resettable
from m2bridge.engine import EngineInfo, ForkServerEngine, ProcessEngine, find_engine
from m2bridge.engine.discovery import origin_of
from m2bridge.engine.supervisor.sandbox import hide_environment
from m2bridge.errors import M2BridgeError
from m2bridge.scripts import Script

PROTOCOL = 1
LONGEST_LINE = 16 * 2**20
HEARTBEAT = 1.0
_STEPS_EVERY = 0.25
_PR_SET_PDEATHSIG = 1
_OOM_SCORE = "600"


class Worker:
    """Answers jobs one after another until its input ends."""

    def __init__(self, jobs: BinaryIO, answers: BinaryIO) -> None:
        self._input, self._output = jobs, answers
        self._jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._step: tuple[Any, str] | None = None
        for task in (self._listen, self._beat):
            threading.Thread(target=task, daemon=True).start()

    def _listen(self) -> None:
        """Put what arrives into the queue; None at the end."""
        with contextlib.suppress(OSError, ValueError):
            while line := self._input.readline(LONGEST_LINE):
                if line.strip():
                    self._jobs.put(job_of(line))
        self._jobs.put(None)

    def say(self, event: str, **fields: Any) -> None:
        """Write one document; the end of the reader is the end of the worker."""
        data = json.dumps({"event": event, **fields}, allow_nan=False).encode() + b"\n"
        try:
            with self._sending:
                self._output.write(data)
                self._output.flush()
        except OSError:
            os._exit(0)  # nobody is there to be told; Macaulay2's supervisor sees us go

    def _beat(self) -> None:
        """Say that the worker lives, and which step the job has reached: soon when it is a new one."""
        told: tuple[Any, str] | None = None
        last = time.monotonic()
        while True:
            time.sleep(_STEPS_EVERY)
            step, now = self._step, time.monotonic()
            if (step is not None and step != told) or now - last >= HEARTBEAT:
                told, last = step, now
                job, text = step or (None, "idle")
                self.say("alive", id=job, step=text[:200])

    def _reach(self, job: Any, step: str) -> None:
        self._step = (job, step)

    def serve(self, info: EngineInfo) -> None:
        """Say who we are, then answer until the input ends."""
        with ForkServerEngine(info) if sys.platform == "linux" else ProcessEngine(info) as engine:
            warm_up = engine.run(Script(name="warm", text="exit 0;\n", preload=False))
            if not warm_up.began:
                self.say("unable", message=f"{host_name()}: {warm_up.stderr.strip()}", exit_code=4)
                return
            self.say(
                "ready", protocol=PROTOCOL, digest=registry.digest(), versions=registry.versions(),
                engine={"version": info.version, "origin": info.origin}, host=host_name(), pid=os.getpid(),
            )  # fmt: skip
            while (job := self._jobs.get()) is not None:
                name = job.get("id")
                if "refused" in job:
                    answer = {"outcome": "bad-job", "message": job["refused"], "result": None, "seconds": 0.0}
                else:
                    self._reach(name, "starting")
                    answer = attempt(job, engine, functools.partial(self._reach, name))
                self._step = None
                self.say("attempt", id=name, **answer)


def host_name() -> str:
    """Of this machine; where Slurm has another name for it, that one."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def job_of(line: bytes) -> dict[str, Any]:
    """The job document in a line; one with the reason in ``refused`` for anything else."""
    try:
        job = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"refused": f"this line is not a JSON document: {type(error).__name__}"}
    if not isinstance(job, dict):
        return {"refused": "a job is a JSON object with analysis and model"}
    wrong = [word for word in ("analysis", "model") if not isinstance(job.get(word), str)]
    wrong += [word for word in ("parameters", "limits") if not isinstance(job.get(word, {}), dict)]
    if wrong:
        why = f"a job is a JSON object; wrong or missing: {', '.join(wrong)}"
        return {"id": job.get("id"), "refused": why}
    return job


def settle_in(parent: int | None) -> None:
    """Let Ctrl-C be for the runner and SIGTERM end us, also as the first process of a container; go before the runner when
    memory is short; and die with `parent`, if it is given.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    if sys.platform == "linux":
        hide_environment(hidden=False)  # for a moment: what is hidden cannot write these files of its own
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
        keep_peak_resettable()
        hide_environment()
        if parent is not None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(0)


def main(engine: str | None, parent: int | None = None) -> None:
    """The command: `engine` is the path of a Macaulay2 or None for the first that works."""
    settle_in(parent)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an analysis prints must not stand between the documents
    worker = Worker(os.fdopen(os.dup(0), "rb"), answers)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        registry.jobs()
        info = find_engine(engine)
        worker.serve(dataclasses.replace(info, origin=origin_of(info)))
    except M2BridgeError as error:
        worker.say("unable", message=f"{host_name()}: {error}", exit_code=error.exit_code)
