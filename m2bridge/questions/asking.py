"""What a question has at hand while it is answered: Macaulay2 under one clock, limits, a seed, and the trail for the record."""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from m2bridge import protocol, scripts
from m2bridge.engine import Engine, Limits, Run, open_engine
from m2bridge.errors import InputError, LimitError, M2BridgeError, NoEngineError, TimeLimitError
from m2bridge.linear.primes import check_prime, is_prime
from m2bridge.models import Model
from m2bridge.protocol import Values
from m2bridge.results import EngineUse, Evidence, Result, ScriptUse, Value, compared, proves, said, weigh
from m2bridge.scripts import Script

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

R = TypeVar("R", bound=Result)
S = TypeVar("S")
Progress = Callable[[str], None]
"""Called with the name of each step of a computation as it begins."""
_LEAST_SECONDS = 1.0


class LimitReached(BaseException):
    """Time or memory ran out inside a computation of ours; `reason` says which.

    Like an interrupt it is no Exception: the bell may ring inside a network that is being recorded, or a question of another
    package, where every Exception is taken for the author's mistake.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def prime_between(p: int, least: int, most: int) -> int:
    """The prime that a user chose, when a question can use it.

    Over too few points forms like x^3 y - x y^3 vanish everywhere, and ranks at random points mean little.
    """
    if least <= 2:
        return check_prime(p, below=most + 1)
    if not least <= p <= most or not is_prime(p):
        wrong = "too small" if p < least else "too large" if p > most else "not prime"
        raise InputError(
            f"--prime {p}: give a prime number from {least} to {most}; this one is {wrong}", argument="prime"
        )
    return p


@dataclass(slots=True)
class Clock:
    """A deadline and a memory budget that long computations ask about."""

    seconds: float | None = None
    memory_bytes: int | None = None
    started: float = field(default_factory=time.monotonic)
    whole: float | None = None
    """The seconds that the user allowed, where `seconds` are a part of them."""

    @property
    def limit_text(self) -> str:
        """The time limit as the user knows it."""
        return f"the time limit of {self.whole or self.seconds or 0:g} s"

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.seconds is None else self.seconds - self.elapsed

    def check(self) -> None:
        """Raise :class:`LimitReached` when the time is over."""
        if self.seconds is not None and self.elapsed > self.seconds:
            raise LimitReached(f"{self.limit_text} was reached")

    def reserve(self, count: int, what: str) -> None:
        """Raise :class:`LimitReached` when `count` bytes are more than the budget."""
        if self.memory_bytes is not None and count > self.memory_bytes:
            raise LimitReached(
                f"{what} needs {count / 2**20:.0f} MB, the limit is {self.memory_bytes / 2**20:.0f} MB"
            )


# -- a bell for code that forgets the time ---------------------------------------------------------------------------
#
# It raises an exception in it, as Ctrl-C does, some seconds after the limit.
# Computations look at their clock and Macaulay2 has limits of its own; the bell is for what does neither: a loop over orbits, a
# library's function, a question of another package. It needs the main thread and a SIGALRM that nobody else uses; elsewhere
# there is none.

GRACE = 10.0
"""Seconds after the limit, and between two rings: who looks at the clock has the first word, and writes a partial answer."""


class _Bell:
    """A handler of SIGALRM that does what it is told, unless it is silent."""

    def __init__(self, ring: Callable[[], None], grace: float) -> None:
        self.ring, self.grace, self.silent = ring, grace, False
        self.raised: BaseException | None = None

    def wind(self, seconds: float) -> float:
        """Ring after so many seconds, and again and again; how many were left before."""
        return signal.setitimer(signal.ITIMER_REAL, seconds, self.grace if seconds else 0.0)[0]

    def __call__(self, *_: object) -> None:
        if self.silent:
            return
        try:
            self.ring()
        except BaseException as error:
            self.raised = error
            raise


def _ringable() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL or _ringing() is not None


def _ringing() -> _Bell | None:
    handler = signal.getsignal(signal.SIGALRM)
    return handler if isinstance(handler, _Bell) else None


@contextmanager
def bell(seconds: float | None, ring: Callable[[], None], grace: float | None = None) -> Iterator[None]:
    """Call `ring`, which raises, in what lasts longer here. Of a bell inside another the one that is due first rings."""
    grace = GRACE if grace is None else grace
    outer = _ringing() if _ringable() else None
    due = max(seconds or 0.0, 0.0) + grace
    if seconds is None or not _ringable() or (outer and signal.getitimer(signal.ITIMER_REAL)[0] <= due):
        yield
        return
    own = _Bell(ring, grace)
    before = signal.signal(signal.SIGALRM, own)
    left, start = own.wind(due), time.monotonic()
    try:
        try:
            yield
        except SystemError:
            # a loop of NumPy over objects goes on after the exception, and Python complains of that
            if own.raised is None:
                raise
            raise own.raised from None
        finally:
            own.silent = True
    finally:  # also when it rang between the two
        own.wind(0.0)
        signal.signal(signal.SIGALRM, before)
        if outer is not None:
            outer.wind(max(left - (time.monotonic() - start), outer.grace))


@contextmanager
def silence() -> Iterator[None]:
    """No bell while Macaulay2, which has its own limit, starts and runs; what follows has as long for a partial answer."""
    own = _ringing() if threading.current_thread() is threading.main_thread() else None
    if own is None or own.silent:
        yield
        return
    own.silent, left, start = True, own.wind(0.0), time.monotonic()
    try:
        yield
    finally:
        own.wind(max(left - (time.monotonic() - start), own.grace))
        own.silent = False


# -- what a question has at hand --------------------------------------------------------------------------------------


class Asking:
    """What a question has at hand while it is answered: Macaulay2 under one clock, a seed, and the trail for the record.

    `prime` is None when the user has chosen none. Macaulay2 is not to be asked where it is `refused`; where it is `required`,
    because the user has named one, its failure is an error and not only a missing witness. Each run gets what is left of
    the `clock`.
    """

    def __init__(
        self, *, engine: Engine | bool | None, prime: int | None, seed: int, limits: Limits, keep: Path | None,
        progress: Progress | None, warm: bool = False, opener: Callable[..., Any] = open_engine,
        whole_seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.seed, self.prime, self.limits, self.keep, self.progress = seed, prime, limits, keep, progress
        self.clock = Clock(limits.wall_seconds, limits.memory_bytes, whole=whole_seconds)
        self.evidence: list[Evidence] = []
        self.scripts: list[ScriptUse] = []
        self.peak_memory_bytes: int | None = None
        self.last_seconds = 0.0
        self.last_run: Run | None = None
        self.refused = engine is False
        self.required = engine is not None and engine is not False
        self._given = engine if not isinstance(engine, bool) else None
        self._warm, self._opener, self._opened = warm, opener, ExitStack()

    @property
    def engine(self) -> Engine:
        """Macaulay2: the user's, or the first that works, opened when it is first needed."""
        if self.refused:
            raise NoEngineError("Macaulay2 is not asked here, as was wished")
        if self._given is None:
            with silence():
                self._given = self._opened.enter_context(self._opener(warm=self._warm))
        return self._given

    def require_engine(self) -> None:
        """Fail now when there is no Macaulay2, not after minutes of other work."""
        _ = self.engine

    def close(self) -> None:
        self._opened.close()

    @property
    def engine_use(self) -> EngineUse | None:
        if self._given is None:
            return None
        return EngineUse(version=self._given.info.version, origin=self._given.info.origin)

    def announce(self, step: str) -> None:
        """Tell who listens what begins now."""
        if self.progress is not None:
            self.progress(step)

    def ask(
        self, template: str | Path, parameters: Mapping[str, object], model: Model | None = None, *, seconds: float | None = None
    ) -> tuple[Values, str | None]:  # fmt: skip
        """The values a template emits, and which limit stopped it, if any; what was emitted before is there.

        `model` gives its partial and sizes; `seconds` allows less than what is left of the question's time.
        """
        if model is None:
            return self.run(scripts.render(template, parameters), seconds=seconds)
        script = scripts.render(template, {**model.m2_parameters, **parameters}, partial=model.m2_partial)
        return self.run(script, seconds=seconds)

    def run(self, script: Script, *, seconds: float | None = None) -> tuple[Values, str | None]:
        """Like :meth:`ask`, for a script that is rendered already."""
        least = min(_LEAST_SECONDS, self.limits.wall_seconds or _LEAST_SECONDS)
        with silence():
            run = self.engine.run(script, self._limits_left(seconds, least), self._listen)
        self._remember(run)
        try:
            return protocol.read(run), None
        except LimitError as error:
            return error.fields.get("values") or Values({}, False, run), self._why_stopped(error)

    def _why_stopped(self, error: LimitError) -> str:
        """Which limit stopped a script; a part of the time is named as a part of what the user allowed."""
        if not isinstance(error, TimeLimitError) or self.clock.remaining is None:
            return str(error)
        over = f"when {self.clock.limit_text} was over"
        if self.clock.remaining > _LEAST_SECONDS:
            over = f"its part of {self.clock.limit_text}"
        name, seconds = error.run.script.name, error.run.seconds
        return f"script {name} was stopped after {seconds:.1f} s, {over}; allow more with --timeout"

    def _limits_left(self, seconds: float | None, least: float) -> Limits:
        """The limits with what is left of the time, `seconds` at most and `least` at least."""
        allowed = [s for s in (self.clock.remaining, seconds) if s is not None]
        return replace(self.limits, wall_seconds=max(least, min(allowed)) if allowed else None)

    def _remember(self, run: Run) -> None:
        script = run.script
        self.scripts.append(ScriptUse(name=script.name, sha256=script.sha256, text=script.text))
        self.last_seconds, self.last_run = run.seconds, run
        if run.peak_memory_bytes is not None:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, run.peak_memory_bytes)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            stem = self.keep / f"{script.name}-{script.sha256[:12]}"
            try:
                for ending, text in ((".m2", script.text), (".out", run.stdout), (".err", run.stderr)):
                    stem.with_suffix(ending).write_text(text, encoding="utf-8")
            except OSError as error:
                raise M2BridgeError(f"--keep {self.keep} cannot be written to: {error.strerror}") from None

    def _listen(self, line: str) -> None:
        if self.progress is not None and (step := protocol.step_of(line)) is not None:
            self.progress(step)

    def say(self, quantity: str, value: Value, witness: str, method: str, **more: Any) -> None:
        """Add a witness's word; `more` are the other fields of :class:`~m2bridge.results.Evidence`."""
        self.evidence.append(said(quantity, value, witness, method, **more))

    def prove(self, quantity: str, value: Value, witness: str, method: str, **more: Any) -> None:
        """Add what a witness proves."""
        self.evidence.append(proves(quantity, value, witness, method, **more))

    def compare(self, quantity: str, *sayings: tuple[str, str, Value], **more: Any) -> None:
        """Add one quantity from several witnesses, each with its method and its value."""
        self.evidence += compared(quantity, *sayings, **more)

    def also(
        self, other: Question[S, R], subject: S | str, *, seconds: float | None = None, **options: Any
    ) -> R:
        """The answer to another question, within what is left of this one's time, with the same engine and seed.

        What that question ran is remembered. Of its evidence only what contradicts itself is taken over: it must not be believed
        here either.
        """
        limits = self._limits_left(seconds, _LEAST_SECONDS)
        given = {"seed": self.seed, "limits": limits, "keep": self.keep, "progress": self.progress, **options}
        given["whole_seconds"] = self.clock.whole or self.clock.seconds
        if given.get("engine") is None:
            given["engine"] = self.engine
        answer = other(subject, **given)
        self.scripts += answer.scripts
        self.evidence += [item for c in answer.conflicts for item in (c.first, c.second)]
        return answer

    def answer(self, kind: type[R], **found: Any) -> R:
        """The result, with everything that all results have filled in from what was done here."""
        evidence = tuple(found.pop("evidence", self.evidence))
        own = {"evidence": evidence, "agreement": weigh(evidence).verdict, "seed": self.seed, **found}
        done = {
            "engine": self.engine_use,
            "scripts": tuple(self.scripts),
            "seconds": self.clock.elapsed,
            "peak_memory_bytes": max(self.peak_memory_bytes or 0, _peak_of_python()),
        }
        return kind(**{**done, **own})


def _peak_of_python() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
