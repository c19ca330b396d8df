"""The command ``m2bridge worker``: it reads jobs from standard input and writes events to standard output, as JSON lines.

::

    in   {"id": 1, "analysis": "dimension", "model": "lightning(d=2,dp=1)", "parameters": {...}, "limits": {...}}
    out  {"event": "ready", "digest": ..., "versions": {...}, "engine": {...}, "host": ..., "pid": ...}
         {"event": "alive", "id": 1, "step": "..."}                  about once a second, also while idle
         {"event": "attempt", "id": 1, "outcome": "complete", "result": {...}, "seconds": 0.02, ...}
         {"event": "unable", "message": "...", "exit_code": 4}       instead of "ready"

At the end of its input the worker finishes the jobs that it has received and ends. When its output is closed it ends
immediately, and Macaulay2's supervisor ends with it. The worker writes no files. The output of an analysis goes to standard
error.
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
from m2bridge.batch.attempts import attempt, open_clear_refs
from m2bridge.engine import EngineInfo, ForkServerEngine, ProcessEngine, find_engine
from m2bridge.engine.discovery import origin_of
from m2bridge.engine.supervisor.sandbox import PR_SET_PDEATHSIG, hide_environment
from m2bridge.errors import M2BridgeError
from m2bridge.scripts import Script

PROTOCOL = 1  # version of the messages between runner and worker
LONGEST_LINE = 16 * 2**20  # bytes of one message
HEARTBEAT_INTERVAL = 1.0  # seconds between two messages that the worker is alive
_STEP_INTERVAL = 0.25  # seconds between two looks for a new step
_OOM_SCORE = "600"


class Worker:
    """Answers jobs one after another until its input ends.

    One thread reads the input, one sends the event ``alive``, and the main thread runs the jobs.
    """

    def __init__(self, jobs: BinaryIO, events: BinaryIO) -> None:
        self._input = jobs
        self._output = events
        self._jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._output_lock = threading.Lock()
        self._step: tuple[Any, str] | None = None
        for target in (self._read_jobs, self._send_heartbeats):
            threading.Thread(target=target, daemon=True).start()

    def _read_jobs(self) -> None:
        """Read jobs from the input into the queue, and None at the end of the input."""
        with contextlib.suppress(OSError, ValueError):
            while line := self._input.readline(LONGEST_LINE):
                if line.strip():
                    self._jobs.put(job_of(line))
        self._jobs.put(None)

    def send(self, event: str, **fields: Any) -> None:
        """Write one event. If the output is closed, end the process."""
        data = json.dumps({"event": event, **fields}, allow_nan=False).encode() + b"\n"
        try:
            with self._output_lock:
                self._output.write(data)
                self._output.flush()
        except OSError:
            os._exit(0)  # the runner has ended; Macaulay2's supervisor ends with this process

    def _send_heartbeats(self) -> None:
        """Send the event ``alive`` once a second, and sooner if the job has begun a new step."""
        sent_step: tuple[Any, str] | None = None
        sent_time = time.monotonic()
        while True:
            time.sleep(_STEP_INTERVAL)
            step = self._step
            now = time.monotonic()
            if (step is not None and step != sent_step) or now - sent_time >= HEARTBEAT_INTERVAL:
                sent_step = step
                sent_time = now
                job, text = step or (None, "idle")
                self.send("alive", id=job, step=text[:200])

    def _set_step(self, job: Any, step: str) -> None:
        self._step = (job, step)

    def serve(self, info: EngineInfo) -> None:
        """Send the event ``ready``, then answer jobs until the input ends."""
        with ForkServerEngine(info) if sys.platform == "linux" else ProcessEngine(info) as engine:
            warm_up = engine.run(Script(name="warm", text="exit 0;\n", preload=False))
            if not warm_up.began:
                self.send("unable", message=f"{host_name()}: {warm_up.stderr.strip()}", exit_code=4)
                return
            self.send(
                "ready", protocol=PROTOCOL, digest=registry.digest(), versions=registry.versions(),
                engine={"version": info.version, "origin": info.origin}, host=host_name(), pid=os.getpid(),
            )  # fmt: skip
            while (job := self._jobs.get()) is not None:
                job_id = job.get("id")
                if "invalid" in job:
                    answer = {"outcome": "bad-job", "message": job["invalid"], "result": None, "seconds": 0.0}
                else:
                    self._set_step(job_id, "starting")
                    answer = attempt(job, engine, functools.partial(self._set_step, job_id))
                self._step = None
                self.send("attempt", id=job_id, **answer)


def host_name() -> str:
    """Return the name of this machine, in a Slurm job the name that Slurm uses."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def job_of(line: bytes) -> dict[str, Any]:
    """Parse a line of the input; the result for an invalid line has the reason in the field ``invalid``."""
    try:
        job = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"invalid": f"the line is not a JSON document: {type(error).__name__}"}
    if not isinstance(job, dict):
        return {"invalid": "a job is a JSON object with analysis and model"}
    wrong = [name for name in ("analysis", "model") if not isinstance(job.get(name), str)]
    wrong += [name for name in ("parameters", "limits") if not isinstance(job.get(name, {}), dict)]
    if wrong:
        reason = f"a job is a JSON object; wrong or missing: {', '.join(wrong)}"
        return {"id": job.get("id"), "invalid": reason}
    return job


def configure_process(parent: int | None) -> None:
    """Configure signals, memory and lifetime of the worker process.

    SIGINT is ignored, because the runner handles Ctrl-C. SIGTERM ends the worker, even if it is the first process of a
    container. If memory is exhausted, the kernel kills the worker rather than the runner. The worker ends with the process
    `parent`, if given.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    if sys.platform == "linux":
        # A process whose environment is hidden cannot write these files in /proc/self, so hiding is switched off meanwhile.
        hide_environment(hidden=False)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
        open_clear_refs()
        hide_environment()
        if parent is not None:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(0)


def main(engine: str | None, parent: int | None = None) -> None:
    """Run the worker. `engine` is the path of Macaulay2, or None for the first one that works."""
    configure_process(parent)
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of an analysis goes to standard error, not between the events
    worker = Worker(os.fdopen(os.dup(0), "rb"), events)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        registry.jobs()
        info = find_engine(engine)
        worker.serve(dataclasses.replace(info, origin=origin_of(info)))
    except M2BridgeError as error:
        worker.send("unable", message=f"{host_name()}: {error}", exit_code=error.exit_code)
