"""The context in which a question is answered: engine, clock, seed, evidence, and the scripts that were run."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from m2bridge import protocol, scripts
from m2bridge.alarm import suspended_alarm
from m2bridge.engine import Engine, Run, open_engine, open_msolve
from m2bridge.errors import EngineError, InputError, LimitError, M2BridgeError, NoEngineError, TimeLimitError
from m2bridge.evidence import Evidence, labelled
from m2bridge.families import Model
from m2bridge.limits import Clock, LimitReached, Limits
from m2bridge.linear.primes import check_prime, is_prime
from m2bridge.protocol import Values
from m2bridge.results import EngineUse, Result, ScriptUse, vouched
from m2bridge.scripts import Script

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

R = TypeVar("R", bound=Result)
S = TypeVar("S")
Progress = Callable[[str], None]
"""Called with the name of each step of a computation as it begins."""
_LONGEST_RECORDED_VALUE = 200
"""Characters; longer values of a script, such as its equations, are not recorded with it."""


def prime_between(p: int, least: int, most: int) -> int:
    """Check the prime that a user chose: a prime from `least` to `most`.

    Over too few points forms like x^3 y - x y^3 vanish everywhere, and ranks at random points mean little.
    """
    if least <= 2:
        return check_prime(p, below=most + 1)
    if not least <= p <= most or not is_prime(p):
        problem = "too small" if p < least else "too large" if p > most else "not prime"
        raise InputError(
            f"--prime {p}: give a prime number from {least} to {most}; this one is {problem}",
            argument="prime",
        )
    return p


class Context:
    """The context in which a question is answered: Macaulay2 under one clock, a seed, evidence, and the scripts that ran.

    `prime` is None if the user has chosen none. If `engine_disabled`, Macaulay2 is not used; if `engine_required`, because the
    user has named one, its failure is an error and not only a missing witness. Each run may take the remaining time of the
    `clock`, or a share of it. `limit` is the first limit because of which the answer is incomplete.
    """

    def __init__(  # noqa: PLR0913 -- the arguments that every question takes
        self, *, engine: Engine | bool | None, prime: int | None, seed: int, limits: Limits, keep: Path | None,
        progress: Progress | None, warm: bool = False, opener: Callable[..., Any] = open_engine,
        clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self.seed = seed
        self.prime = prime
        self.limits = limits
        self.keep = keep
        self.progress = progress
        self.clock = clock or Clock.of(limits)
        self._evidence: list[Evidence] = []
        self.scripts: list[ScriptUse] = []
        self.limit: str | None = None
        self.peak_memory_bytes: int | None = None
        self.engine_disabled = engine is False
        self.engine_required = engine is not None and engine is not False
        self._engine = engine if not isinstance(engine, bool) else None
        self._warm = warm
        self._opener = opener
        self._opened = ExitStack()

    @property
    def engine(self) -> Engine:
        """Return Macaulay2: the user's, or the first that works, opened when it is first needed."""
        if self.engine_disabled:
            raise NoEngineError("Macaulay2 is disabled (--no-engine)")
        if self._engine is None:
            with suspended_alarm():
                self._engine = self._opened.enter_context(self._opener(warm=self._warm))
        return self._engine

    @cached_property
    def msolve(self) -> Engine | None:
        """Return the first msolve that works; None without one, or if engines are disabled."""
        if self.engine_disabled:
            return None
        with suspended_alarm():
            return open_msolve()

    def require_engine(self) -> None:
        """Raise NoEngineError now if there is no Macaulay2, not after minutes of other work."""
        _ = self.engine

    def close(self) -> None:
        self._opened.close()

    @property
    def engine_use(self) -> EngineUse | None:
        if self._engine is None:
            return None
        return EngineUse(version=self._engine.info.version, origin=self._engine.info.origin)

    def report_progress(self, step: str) -> None:
        """Report that `step` begins."""
        if self.progress is not None:
            self.progress(step)

    def run_template(
        self, template: str | Path, parameters: Mapping[str, object], model: Model | None = None, *,
        share: float | None = None, decisive: bool = True,
    ) -> tuple[Values, str | None]:  # fmt: skip
        """Run a template; return the values that it emits and the limit that stopped it, or None.

        `model` provides its partial and sizes. `share` is the fraction of the remaining time that the script may take, by default
        all of it. A limit that stops it becomes the limit of the answer; with `decisive` False it does not, because no statement
        of the answer depends on the script.
        """
        if model is None:
            return self.run_script(scripts.render(template, parameters), share=share, decisive=decisive)
        script = scripts.render(template, {**model.m2_parameters, **parameters}, partial=model.m2_partial)
        return self.run_script(script, share=share, decisive=decisive)

    def run_script(
        self, script: Script, *, share: float | None = None, decisive: bool = True
    ) -> tuple[Values, str | None]:
        """Run a rendered script; see :meth:`run_template`."""
        with suspended_alarm():
            engine = self.engine
            run = engine.run(script, self.clock.limits(self.limits, share), self._report_step)
        self._record_run(run)
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

    def run_msolve(
        self, script: Script, read: Callable[[Run], S], *, share: float | None = None
    ) -> tuple[S | None, str | None]:
        """Run a job of msolve; return the result of `read` for the run, or None and the reason why there is none.

        A failure of msolve is neither an error nor a limit of the answer, because Macaulay2 can do the same computations.
        """
        if self.msolve is None:
            return None, "there is no msolve"
        with suspended_alarm():
            run = self.msolve.run(script, self.clock.limits(self.limits, share))
        self._record_run(run)
        use = {
            "msolve": run.engine.version,
            "origin": run.engine.origin,
            "arguments": " ".join(script.arguments),
        }
        self.scripts[-1] = replace(self.scripts[-1], values=use)
        try:
            return read(run), None
        except (EngineError, NoEngineError) as error:
            return None, str(error)

    def _why_stopped(self, error: LimitError) -> str:
        """Describe the limit that stopped a script; a share of the time is described as a share of the user's limit."""
        if not isinstance(error, TimeLimitError) or self.clock.remaining is None:
            return str(error)
        end = f"because {self.clock.limit_text} was reached"
        if self.clock.remaining > self.clock.overtime or self.clock.is_part:
            end = f"its share of {self.clock.limit_text}"
        name, seconds = error.run.script.name, error.run.seconds
        return f"script {name} was stopped after {seconds:.1f} s, {end}; increase --timeout"

    def note_limit(self, reason: str) -> None:
        """Record a limit because of which the answer is incomplete; the first one is kept."""
        self.limit = self.limit or reason

    @contextmanager
    def keep_partial(self, step: str) -> Iterator[None]:
        """Run a step that a limit may end: earlier evidence is kept, and the limit is recorded.

        A step that does not check the clock itself calls ``clock.check()`` first, so that it is skipped when no time is left.
        """
        try:
            yield
        except LimitReached as reached:
            self.note_limit(reached.at_step(step))

    def _record_run(self, run: Run) -> None:
        script = run.script
        self.scripts.append(ScriptUse(name=script.name, sha256=script.sha256, text=script.text))
        if run.peak_memory_bytes is not None:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, run.peak_memory_bytes)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            stem = self.keep / f"{script.name}-{script.sha256[:12]}"
            try:
                for ending, text in (
                    (script.suffix, script.text),
                    (".out", run.stdout),
                    (".err", run.stderr),
                ):
                    stem.with_suffix(ending).write_text(text, encoding="utf-8")
            except OSError as error:
                raise M2BridgeError(f"--keep {self.keep} cannot be written to: {error.strerror}") from None

    def _report_step(self, line: str) -> None:
        if self.progress is not None and (step := protocol.step_of(line)) is not None:
            self.progress(step)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return all evidence that was added, in that order."""
        return tuple(self._evidence)

    def add_evidence(self, *evidence: Evidence) -> None:
        """Add evidence for the answer. It is never removed: add it at the end of a stage."""
        self._evidence += evidence

    def ask_question(
        self, question: Question[S, R], subject: S | str, *, share: float | None = None, decisive: bool = True, **options: Any
    ) -> R:  # fmt: skip
        """Return the answer to another question, within a share of the remaining time, with the same engine and seed.

        Its scripts are recorded, and its limit if it is `decisive`; see :meth:`run_template`. Of its evidence only contradictions
        are added, so that an answer that uses a contradictory one is contradictory itself.
        """
        arguments = {"seed": self.seed, "keep": self.keep, "progress": self.progress, **options}
        arguments |= {"limits": self.limits, "clock": self.clock.part(share)}
        if arguments.get("engine") is None:
            arguments["engine"] = self.engine
        try:
            answer = question(subject, **arguments)
        except LimitError as error:
            if decisive:
                self.note_limit(str(error))
            raise
        if decisive and answer.limit is not None:
            self.note_limit(answer.limit)
        self.scripts += answer.scripts
        self.add_evidence(*(item for c in answer.conflicts for item in (c.first, c.second)))
        return answer

    def build_result(self, kind: type[R], **fields: Any) -> R:
        """Build the result from the fields of the question and the common ones, which include all evidence."""
        evidence = self.evidence if kind.AT_POINT is None else labelled(self.evidence, kind.AT_POINT)
        of_question = {"agreement": None, "seed": self.seed, **fields}
        of_question["limit"] = fields.get("limit") or self.limit
        common: dict[str, Any] = {
            "evidence": evidence,
            "engine": self.engine_use,
            "scripts": tuple(self.scripts),
            "seconds": self.clock.elapsed,
            "peak_memory_bytes": max(self.peak_memory_bytes or 0, _peak_of_python()),
        }
        result = vouched(kind(**common, **of_question))
        return replace(result, agreement=result.weighed.verdict)


def _peak_of_python() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
