"""Batch, in a Dask worker: the one ``m2bridge worker`` that it keeps for a runner. A request enters, the answer leaves.

The computation is not done in the Dask worker itself but in a process below it, so that time and memory limits, and kills, are
m2bridge's own, and code that does not let go of Python's interpreter lock cannot make a Dask worker look dead.
"""

from __future__ import annotations

import contextlib
import selectors
import threading
from typing import Any

from distributed import get_worker

from m2bridge.batch.launchers import CommandLauncher, ProcessHandle

GONE = "gone"
"""The event by which the runner is told that the process ended, with its ``status`` and last ``words``."""
IDLE_SECONDS = 60.0
"""A process that was asked nothing for so long is ended: its runner may have been killed."""
_LOOK = 0.5

_kept: dict[str, ProcessHandle] = {}
_goodbyes: dict[str, threading.Timer] = {}
_changing = threading.Lock()
_one_at_a_time = threading.Lock()


def answer(runner: str, engine: str | None, request: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the process says to a request, or about itself when there is none. Runs as a task of Dask, in one of its threads.

    What it says meanwhile is published under the name of the runner. When the runner lost interest (the task was cancelled, or
    the runner is gone) the process is killed.
    """
    worker = get_worker()
    task = worker.get_current_task()
    with _one_at_a_time, selectors.DefaultSelector() as selector:
        process = _process(runner, engine, fresh=request is None)
        if process is None:
            return {"event": GONE, "status": -9, "words": "the worker was ended between two jobs"}
        selector.register(process, selectors.EVENT_READ)
        try:
            if request is not None:
                process.send(request)
            while True:
                selector.select(_LOOK)
                known = worker.state.tasks.get(task)
                if known is None or known.state == "cancelled":
                    return _gone(runner, kill=True)
                events = process.events()
                if events is None:
                    return _gone(runner)
                for event in events:
                    if event["event"] != "alive":
                        return event
                    if request is not None:
                        worker.log_event(runner, event)
        finally:
            _say_goodbye_later(runner)


def stay(runner: str) -> None:
    """Keep what is idle: its runner lives."""
    _say_goodbye_later(runner)


def dismiss(runner: str) -> None:
    """End what is kept for a runner."""
    _gone(runner, kill=True)


def _process(runner: str, engine: str | None, *, fresh: bool) -> ProcessHandle | None:
    """The process kept for a runner; started when a `fresh` one may be, for only the first event of a process tells who it is."""
    with _changing:
        if timer := _goodbyes.pop(runner, None):
            timer.cancel()
        if fresh:
            if old := _kept.pop(runner, None):
                old.kill()
                old.close()
            _kept[runner] = CommandLauncher(engine).start(0)
        return _kept.get(runner)


def _gone(runner: str, *, kill: bool = False) -> dict[str, Any]:
    with _changing:
        process = _kept.pop(runner, None)
    if process is None:
        return {"event": GONE, "status": -9, "words": ""}
    if kill:
        process.kill()
    status, words = process.close()
    return {"event": GONE, "status": status, "words": words}


def _say_goodbye_later(runner: str) -> None:
    with _changing, contextlib.suppress(RuntimeError):  # the interpreter is ending
        if timer := _goodbyes.pop(runner, None):
            timer.cancel()
        if runner in _kept:
            _goodbyes[runner] = timer = threading.Timer(IDLE_SECONDS, _gone, (runner,), {"kill": True})
            timer.daemon = True
            timer.start()
