"""What a question has at hand while it is answered: Macaulay2 under one clock, limits, a seed, and the trail for the record."""

from __future__ import annotations

import json
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
from m2bridge.families import Model
from m2bridge.linear.primes import check_prime, is_prime
from m2bridge.protocol import Values
from m2bridge.results import EngineUse, Evidence, Result, ScriptUse, Value, compared, proves, said, vouched
from m2bridge.scripts import Script

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

R = TypeVar("R", bound=Result)
S = TypeVar("S")
Progress = Callable[[str], None]
"""Called with the name of each step of a computation as it begins."""
_LEAST_SECONDS, _LEAST_SHARE = 1.0, 0.05
"""A run gets this much of the user's time limit at least, and at most so many seconds, also where the limit is over."""
_LONGEST_RECORDED_VALUE = 200
"""Characters; longer values of a script, such as its equations, are not recorded with it."""


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

GRACE_SHARE, LEAST_GRACE, MOST_GRACE = 0.05, 1.0, 10.0
"""The alarm rings this share of the limit after it, and again after as long, between so many seconds: a computation that looks at
the clock itself stops first, and a partial answer can be written."""


def _grace(seconds: float | None) -> float:
    return min(MOST_GRACE, max(LEAST_GRACE, GRACE_SHARE * (seconds or 0.0)))


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
    grace = _grace(seconds) if grace is None else grace
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
    the `clock`, or a share of it. `cut_short` is the first limit that left something out; it becomes the answer's `limit`.
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
        self.cut_short: str | None = None
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
        self, template: str | Path, parameters: Mapping[str, object], model: Model | None = None, *,
        share: float | None = None, decisive: bool = True,
    ) -> tuple[Values, str | None]:  # fmt: skip
        """The values a template emits, and which limit stopped it, if any; what was emitted before is there.

        `model` gives its partial and sizes. `share` is the fraction of the time left that the script may take, all of it unless
        given. A limit that stops it is remembered for the answer, unless nothing that is said can depend on the script: then the
        caller says that it is not `decisive`.
        """
        if model is None:
            return self.run(scripts.render(template, parameters), share=share, decisive=decisive)
        script = scripts.render(template, {**model.m2_parameters, **parameters}, partial=model.m2_partial)
        return self.run(script, share=share, decisive=decisive)

    def run(
        self, script: Script, *, share: float | None = None, decisive: bool = True
    ) -> tuple[Values, str | None]:
        """Like :meth:`ask`, for a script that is rendered already."""
        with silence():
            run = self.engine.run(script, self._limits_left(share), self._listen)
        self._remember(run)
        try:
            values, stopped = protocol.read(run), None
        except LimitError as error:
            values = error.fields.get("values") or Values({}, False, run)
            stopped = self._why_stopped(error)
            if decisive:
                self.note_limit(stopped)
        short = {
            tag: value for tag, value in values.items() if len(json.dumps(value)) <= _LONGEST_RECORDED_VALUE
        }
        self.scripts[-1] = replace(self.scripts[-1], values=short)
        return values, stopped

    def _why_stopped(self, error: LimitError) -> str:
        """Which limit stopped a script; a part of the time is named as a part of what the user allowed."""
        if not isinstance(error, TimeLimitError) or self.clock.remaining is None:
            return str(error)
        over = f"when {self.clock.limit_text} was over"
        if self.clock.remaining > _LEAST_SECONDS or self.clock.whole not in (None, self.clock.seconds):
            over = f"its part of {self.clock.limit_text}"
        name, seconds = error.run.script.name, error.run.seconds
        return f"script {name} was stopped after {seconds:.1f} s, {over}; allow more with --timeout"

    def _limits_left(self, share: float | None) -> Limits:
        """The limits with a share of the time that is left, or all of it."""
        remaining, whole = self.clock.remaining, self.clock.whole or self.clock.seconds
        if remaining is None or whole is None:
            return replace(self.limits, wall_seconds=None)
        least = min(_LEAST_SECONDS, _LEAST_SHARE * whole)
        return replace(
            self.limits, wall_seconds=max(least, remaining if share is None else share * remaining)
        )

    def note_limit(self, reason: str) -> None:
        """Remember that a limit left something out of the answer; the first one is kept."""
        self.cut_short = self.cut_short or reason

    @contextmanager
    def keeping(self, step: str) -> Iterator[None]:
        """Run a step that a limit may end: what was found before it is kept, and the limit is remembered.

        A step that does not look at the clock itself calls ``clock.check()`` first, so that it is left out when time is over.
        """
        try:
            yield
        except LimitReached as reached:
            self.note_limit(f"{reached.reason} at this step: {step}; allow more with --timeout")

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
        self, other: Question[S, R], subject: S | str, *, share: float | None = None, decisive: bool = True, **options: Any
    ) -> R:  # fmt: skip
        """The answer to another question, within a share of the time left, with the same engine and seed.

        What that question ran is remembered, and the limit that cut it short unless it is not `decisive`; see :meth:`ask`. Of its
        evidence only what contradicts itself is taken over: it must not be believed here either.
        """
        limits = self._limits_left(share)
        given = {"seed": self.seed, "limits": limits, "keep": self.keep, "progress": self.progress, **options}
        given["whole_seconds"] = self.clock.whole or self.clock.seconds
        if given.get("engine") is None:
            given["engine"] = self.engine
        try:
            answer = other(subject, **given)
        except LimitError as error:
            if decisive:
                self.note_limit(str(error))
            raise
        if decisive and answer.limit is not None:
            self.note_limit(answer.limit)
        self.scripts += answer.scripts
        self.evidence += [item for c in answer.conflicts for item in (c.first, c.second)]
        return answer

    def answer(self, kind: type[R], **found: Any) -> R:
        """The result, with everything that all results have filled in from what was done here."""
        evidence = tuple(found.pop("evidence", self.evidence))
        own = {"evidence": evidence, "agreement": None, "seed": self.seed, **found}
        own["limit"] = found.get("limit") or self.cut_short
        done = {
            "engine": self.engine_use,
            "scripts": tuple(self.scripts),
            "seconds": self.clock.elapsed,
            "peak_memory_bytes": max(self.peak_memory_bytes or 0, _peak_of_python()),
        }
        result = vouched(kind(**{**done, **own}))
        return replace(result, agreement=result.weighed.verdict)


def _peak_of_python() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
