"""The outcome of a run, determined from the end of its process."""

from __future__ import annotations

import signal

import pytest

from m2bridge.engine import Outcome
from m2bridge.engine.job_exchange import JobEnd, outcome


def exited(status: int, **fields: object) -> JobEnd:
    return JobEnd(status=status << 8, seconds=1.0, **fields)  # type: ignore[arg-type]


def killed(number: int, **fields: object) -> JobEnd:
    return JobEnd(status=number, seconds=1.0, **fields)  # type: ignore[arg-type]


OUT_OF_MEMORY = "\n\n *** out of memory trying to allocate 16 bytes, exiting ***\n"
SEGMENTATION = "-- SIGSEGV\n-* stack trace, pid: 7\n"
FLINT_1_21 = "begin\nException (FLINT memory_manager). Unable to allocate memory (8).\n"
FLINT_1_26 = "begin\nFLINT exception (General error):\n    Unable to allocate memory (8).\n"


@pytest.mark.parametrize(
    ("end", "stdout", "stderr", "expected"),
    [
        (exited(0), "", "", Outcome.FINISHED),
        (exited(0), "", SEGMENTATION, Outcome.FINISHED),
        (exited(1), "", "x.m2:1:1:(3): error: no", Outcome.SCRIPT_ERROR),
        (exited(1), "", OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY),
        (exited(1), "", 'x.m2:1:1:(3): error: "*** out of memory ***"', Outcome.SCRIPT_ERROR),
        (exited(1), "", SEGMENTATION, Outcome.CRASHED),
        (killed(signal.SIGABRT), "", "GNU MP: Cannot allocate memory (size=8)\n", Outcome.OUT_OF_MEMORY),
        (killed(signal.SIGABRT), FLINT_1_21, "", Outcome.OUT_OF_MEMORY),
        (killed(signal.SIGABRT), FLINT_1_26, "", Outcome.OUT_OF_MEMORY),
        (exited(1), FLINT_1_21, "", Outcome.SCRIPT_ERROR),
        (killed(signal.SIGABRT), "", "", Outcome.CRASHED),
        (killed(signal.SIGILL), "", "", Outcome.CRASHED),
        (killed(signal.SIGKILL), "", "", Outcome.CRASHED),
        (killed(signal.SIGKILL, stopped="wall"), "", "", Outcome.TIMED_OUT),
        (killed(signal.SIGKILL, stopped="wall"), "", SEGMENTATION, Outcome.CRASHED),
        (killed(signal.SIGKILL, cpu=4.9, cpu_limit=5), "", "", Outcome.TIMED_OUT),
        (killed(signal.SIGKILL, cpu=52.0, cpu_limit=60), "", "", Outcome.TIMED_OUT),  # by whole clock ticks
        (killed(signal.SIGKILL, cpu=1.0, cpu_limit=5), "", "", Outcome.CRASHED),
    ],
)
def test_outcome_of_each_kind_of_end(end: JobEnd, stdout: str, stderr: str, expected: Outcome) -> None:
    assert outcome(end, stdout, stderr, output_limit_reached=False)[0] is expected


def test_too_much_output_has_precedence() -> None:
    end = killed(signal.SIGKILL, stopped="request")
    assert outcome(end, "", OUT_OF_MEMORY, output_limit_reached=True) == (
        Outcome.TOO_MUCH_OUTPUT,
        None,
        signal.SIGKILL,
    )


def test_a_handled_segmentation_fault_is_reported_as_the_signal() -> None:
    result = outcome(exited(1), "", SEGMENTATION, output_limit_reached=False)
    assert result == (Outcome.CRASHED, 1, signal.SIGSEGV)
