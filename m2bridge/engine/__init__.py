"""Find Macaulay2 and msolve, and run scripts in them under limits. Running a script returns a :class:`Run`.

>>> from m2bridge.engine import open_engine
>>> from m2bridge.scripts import Script
>>> with open_engine() as engine:  # doctest: +SKIP
...     engine.run(Script(name="two", text='<< 1+1 << endl;')).stdout
'2\\n'
"""

from __future__ import annotations

import logging
import sys

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.engine.discovery import Candidate, candidates, find_engine, find_msolve
from m2bridge.engine.fork_server import ForkServerEngine
from m2bridge.engine.supervisor_process import MsolveEngine, ProcessEngine

log = logging.getLogger(__name__)

__all__ = [
    "Candidate", "Engine", "EngineInfo", "ForkServerEngine", "Listener", "MsolveEngine", "Outcome", "ProcessEngine",
    "Run", "candidates", "find_engine", "find_msolve", "open_engine", "open_msolve",
]  # fmt: skip


def open_engine(explicit: str | None = None, *, warm: bool = False) -> Engine:
    """Return an engine that runs the first working Macaulay2.

    Parameters
    ----------
    explicit
        The path of a Macaulay2. If it is given, no other Macaulay2 is tried.
    warm
        Keep a Macaulay2 running and fork it for each script, one script at a time.
    """
    info = find_engine(explicit)
    if not warm:
        return ProcessEngine(info)
    if sys.platform != "linux":
        log.warning("the warm engine requires Linux; each script starts a new Macaulay2")
        return ProcessEngine(info)
    return ForkServerEngine(info)


def open_msolve() -> Engine | None:
    """Return an engine that runs the first working msolve; None if there is none."""
    info = find_msolve()
    return None if info is None else MsolveEngine(info)
