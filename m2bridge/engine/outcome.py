"""Engine stage: how a run ended, from the process's status and what it wrote on standard error.

A :class:`Fate` (reported by the keeper) enters, an outcome with exit status and signal leaves.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass

from m2bridge.engine.base import Outcome

_OUT_OF_MEMORY = re.compile(
    r"^(?: \*\*\* out of memory trying to allocate \d+ bytes, exiting \*\*\*$|GC Warning: Out of Memory"
    r"|\*\*\*Emergency Exit: Out of Memory|GNU MP: Cannot (?:re)?allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_a"
    r"|.*: error: (?:out of memory|std::bad_alloc)\s*$)",
    re.MULTILINE,
)
_FLINT_OUT_OF_MEMORY = re.compile(
    r"^(?:Exception \(FLINT.*|    )Unable to allocate memory \(\d+\)\.$", re.MULTILINE
)
SEGMENTATION_FAULT = re.compile(rb"^-- SIGSEGV\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The end of a job as the keeper saw it.

    `status` is the status of waitpid; `stopped` says why the keeper killed the job (``wall``, ``asked``), if
    it did; `passed_gate` is false when the process ended before it came to the script.
    """

    status: int
    seconds: float
    stopped: str | None = None
    cpu: float | None = None
    cpu_limit: int | None = None
    maxrss: int | None = None
    passed_gate: bool = True


def outcome(
    fate: Fate, stdout: str, stderr: str, *, output_limit_reached: bool
) -> tuple[Outcome, int | None, int | None]:
    """The outcome of a run, its exit status and the signal it died of.

    Macaulay2 installs a handler for SIGSEGV that prints a trace and exits, or hangs, and its garbage collector
    swallows SIGXCPU, so neither shows in the status: the first is known by its trace, and the CPU limit kills with
    SIGKILL, known by the CPU time used.
    """
    exit_status = os.WEXITSTATUS(fate.status) if os.WIFEXITED(fate.status) else None
    signal_number = os.WTERMSIG(fate.status) if os.WIFSIGNALED(fate.status) else None
    if output_limit_reached:
        return Outcome.TOO_MUCH_OUTPUT, exit_status, signal_number
    crashing = SEGMENTATION_FAULT.search(stderr.encode()) is not None
    if fate.stopped == "wall" and crashing:
        return Outcome.CRASHED, exit_status, int(signal.SIGSEGV)
    if fate.stopped == "wall":
        return Outcome.TIMED_OUT, exit_status, signal_number
    if exit_status == 0:
        return Outcome.FINISHED, exit_status, None
    if signal_number in (signal.SIGXCPU, signal.SIGKILL) and _cpu_limit_reached(fate):
        return Outcome.TIMED_OUT, exit_status, signal_number
    if _OUT_OF_MEMORY.search(stderr):
        return Outcome.OUT_OF_MEMORY, exit_status, signal_number
    if signal_number == signal.SIGABRT and _FLINT_OUT_OF_MEMORY.search(stdout[-1000:]):
        return Outcome.OUT_OF_MEMORY, exit_status, signal_number
    if signal_number is not None:
        return Outcome.CRASHED, exit_status, signal_number
    if crashing:
        return Outcome.CRASHED, exit_status, int(signal.SIGSEGV)
    return Outcome.SCRIPT_ERROR, exit_status, None


def _cpu_limit_reached(fate: Fate) -> bool:
    return fate.cpu_limit is not None and fate.cpu is not None and fate.cpu >= fate.cpu_limit - 0.5
