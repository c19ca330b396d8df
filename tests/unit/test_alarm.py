"""The alarm interrupts Python code that does not look at the clock, and nothing else."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from m2bridge import alarm as alarms
from m2bridge.alarm import alarm, suspended_alarm
from m2bridge.errors import LimitError
from m2bridge.families import Model
from m2bridge.frontends import record
from m2bridge.limits import Clock, LimitReached
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.kernel import Context, Question


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(alarms, "LEAST_GRACE", 0.05)
    yield
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def endless() -> None:
    for _ in range(6000):
        time.sleep(0.01)
    pytest.fail("no alarm for a minute")


def clock(seconds: float) -> Clock:
    return Clock(seconds)


def test_it_interrupts_what_does_not_look_at_the_clock() -> None:
    with pytest.raises(LimitReached, match=r"0\.05"), alarm(0.05, clock(0.05).check):
        endless()


def test_an_interrupt_is_not_reported_as_an_error_of_the_network() -> None:
    with pytest.raises(LimitReached), alarm(0.05, clock(0.05).check):
        record(lambda W: endless(), {"W": (2,)})


def test_a_loop_of_numpy_that_goes_on_after_the_ring_is_interrupted_all_the_same() -> None:
    """Loops over objects call the next multiplication with the exception set, and Python makes a SystemError of it."""

    def goes_on() -> None:
        try:
            endless()
        except LimitReached as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(LimitReached), alarm(0.05, clock(0.05).check):
        goes_on()
    with pytest.raises(SystemError), alarm(60, clock(60).check):
        raise SystemError("one that no alarm has caused")


def test_it_rings_again_where_the_first_ring_was_not_enough() -> None:
    rings = 0
    with alarm(0.05, clock(0.05).check):
        while rings < 3:
            try:
                endless()
            except LimitReached:
                rings += 1


def test_no_alarm_without_a_limit_or_before_it() -> None:
    with alarm(None, clock(0).check):
        time.sleep(0.2)
    with alarm(60, clock(0).check):
        time.sleep(0.2)


def test_the_outer_alarm_goes_on_after_the_inner_one() -> None:
    with pytest.raises(LimitReached, match="1 s"), alarm(0.1, Clock(0.1, allowed_seconds=1).check):  # noqa: PT012
        with pytest.raises(LimitReached, match="2 s"), alarm(0.05, Clock(0.05, allowed_seconds=2).check):
            endless()
        endless()


def test_an_inner_alarm_that_was_not_due_leaves_the_outer_one() -> None:
    with pytest.raises(LimitReached), alarm(0.1, clock(0.1).check):  # noqa: PT012
        with alarm(60, clock(60).check):
            pass
        endless()


def test_macaulay2_is_not_interrupted_and_its_answer_is_read() -> None:
    with pytest.raises(LimitReached), alarm(0.05, clock(0.05).check):  # noqa: PT012
        with suspended_alarm():
            time.sleep(0.3)  # many rings later
        read = "the answer"
        endless()
    assert read == "the answer"


def test_threads_and_the_alarm_of_others_are_left_alone() -> None:
    seen: list[object] = []

    def in_a_thread() -> None:
        with alarm(0.01, clock(0.01).check), suspended_alarm():
            time.sleep(0.2)
        seen.append("done")

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append("theirs"))
    try:
        with alarm(0.01, clock(0.01).check):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            time.sleep(0.2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == ["done", "theirs"]


def test_a_question_that_forgets_the_time_ends_with_its_limit() -> None:
    def forgetful(context: Context, model: Model) -> Dimension:
        endless()
        raise AssertionError

    asked: Question[Model, Dimension] = Question(
        name="forgetful", asks="Nothing.", function=forgetful, result=Dimension, needs_engine=False
    )
    with pytest.raises(LimitError, match=r"^forgetful: .*0\.1 s"):
        asked("lightning(d=2,dp=1)", timeout=0.1)
