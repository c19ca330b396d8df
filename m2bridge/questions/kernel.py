"""What a question is, and the one way in which every question is answered.

A question is a function ``name(ask, subject, *, option, ...)`` under the decorator :func:`question`, which declares what it asks,
its templates and its quantities. The function finds witnesses and returns ``ask.answer(ResultType, ...)``. Everything that
questions have in common is done here: the engine, the clock, limits, progress, evidence, agreement. The command line, batches,
schemas, explanations and the documentation read the declaration.
"""

from __future__ import annotations

import functools
import inspect
import resource
import sys
import typing
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Concatenate, Generic, TypeVar

from m2bridge import protocol, scripts
from m2bridge.engine import Engine, Limits, Run, open_engine
from m2bridge.engine.base import parse_bytes, parse_seconds
from m2bridge.errors import InputError, LimitError, NoEngineError
from m2bridge.models import Model, parse_spec
from m2bridge.models.spec import suggestion
from m2bridge.protocol import Values
from m2bridge.questions.clock import Clock, LimitReached
from m2bridge.questions.cost import Cost, Estimate, estimate_of, from_program
from m2bridge.questions.steps import suitable_steps
from m2bridge.results import (
    RESULT_TYPES,
    EngineUse,
    Evidence,
    Result,
    ScriptUse,
    Value,
    register_result,
    said,
    weigh,
)
from m2bridge.scripts import Script

R = TypeVar("R", bound=Result)
S = TypeVar("S")
Progress = Callable[[str], None]
"""Called with the name of each step of a computation as it begins."""
COMMON = ("engine", "prime", "seed", "limits", "keep", "progress")
"""What every question takes beside its own options."""
_LEAST_SECONDS = 1.0
_COMMON_OPTIONS = """Like every question it also takes `engine` (a Macaulay2, or False for none), `prime`, `seed`, `limits` (or
`timeout` and `memory`, as "10m" and "4G"), `keep` (a directory for scripts and raw output) and `progress` (told each step)."""


@dataclass(frozen=True, slots=True)
class Option:
    """What stands beside a question's own option: ``degree: Annotated[int, Option("How far to look.")] = 2``.

    Attributes
    ----------
    help: a sentence for people.
    flag: its name on the command line; by default the option's own name.
    least: the smallest number allowed.
    read: makes the value from the text on the command line; by default the option's type.
    unasked: its value on the command line when it is not given, where that is not what it is in Python.
    """

    help: str
    flag: str | None = None
    least: int | None = None
    read: Callable[[str], Any] | None = None
    unasked: Any = None


ForceOption = Annotated[bool, Option("Try even what is certainly out of reach.")]


@dataclass(frozen=True, slots=True)
class OwnOption:
    """An option as declared: name, type, default and what :class:`Option` says."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def unasked(self) -> Any:
        """The value on the command line when it is not given."""
        return self.default if self.option.unasked is None else self.option.unasked


class Asking:
    """What a question has at hand while it is answered: Macaulay2 under one clock, a seed, and the trail for the record.

    Attributes
    ----------
    seed, prime, limits: as asked; `prime` is None when the user has chosen none.
    refused, required: whether Macaulay2 is not to be asked; whether the user has named one, so that its failure is an error and
        not only a missing witness.
    clock: of the whole question; each run of Macaulay2 gets what is left of it.
    evidence: what witnesses have said so far.
    """

    def __init__(
        self, *, engine: Engine | bool | None, prime: int | None, seed: int, limits: Limits, keep: Path | None,
        progress: Progress | None, warm: bool = False,
    ) -> None:  # fmt: skip
        self.seed, self.prime, self.limits, self.keep, self.progress = seed, prime, limits, keep, progress
        self.clock = Clock(limits.wall_seconds, limits.memory_bytes)
        self.evidence: list[Evidence] = []
        self.scripts: list[ScriptUse] = []
        self.peak_memory_bytes: int | None = None
        self.last_seconds = 0.0
        self.last_run: Run | None = None
        self.refused = engine is False
        self.required = engine is not None and engine is not False
        self._given = engine if not isinstance(engine, bool) else None
        self._warm, self._opened = warm, ExitStack()

    @property
    def engine(self) -> Engine:
        """Macaulay2: the user's, or the first that works, opened when it is first needed."""
        if self.refused:
            raise NoEngineError("Macaulay2 is not asked here, as was wished")
        if self._given is None:
            self._given = self._opened.enter_context(open_engine(warm=self._warm))
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
        allowed = [s for s in (self.clock.remaining, seconds) if s is not None]
        least = min(s for s in (_LEAST_SECONDS, self.limits.wall_seconds) if s is not None)
        wall = max(least, min(allowed)) if allowed else None
        run = self.engine.run(script, replace(self.limits, wall_seconds=wall), self._listen)
        self._remember(run)
        try:
            return protocol.read(run), None
        except LimitError as error:
            return error.fields.get("values") or Values({}, False, run), str(error)

    def _remember(self, run: Run) -> None:
        script = run.script
        self.scripts.append(ScriptUse(name=script.name, sha256=script.sha256, text=script.text))
        self.last_seconds, self.last_run = run.seconds, run
        if run.peak_memory_bytes is not None:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, run.peak_memory_bytes)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            stem = self.keep / f"{script.name}-{script.sha256[:12]}"
            for ending, text in ((".m2", script.text), (".out", run.stdout), (".err", run.stderr)):
                stem.with_suffix(ending).write_text(text, encoding="utf-8")

    def _listen(self, line: str) -> None:
        if self.progress is not None and (step := protocol.step_of(line)) is not None:
            self.progress(step)

    def say(self, quantity: str, value: Value, witness: str, method: str, **more: Any) -> None:
        """Add a witness's word; `more` are the other fields of :class:`~m2bridge.results.Evidence`."""
        self.evidence.append(said(quantity, value, witness, method, **more))

    def also(
        self, other: Question[S, R], subject: S | str, *, seconds: float | None = None, **options: Any
    ) -> R:
        """The answer to another question, within what is left of this one's time, with the same engine and seed.

        What that question ran is remembered; its evidence is not taken over.
        """
        remaining = [s for s in (self.clock.remaining, seconds) if s is not None]
        limits = replace(self.limits, wall_seconds=max(_LEAST_SECONDS, min(remaining)) if remaining else None)
        engine = options.pop("engine", None)
        given = {"seed": self.seed, "limits": limits, "keep": self.keep, "progress": self.progress, **options}
        answer = other(subject, engine=self.engine if engine is None else engine, **given)
        self.scripts += answer.scripts
        return answer

    def answer(self, kind: type[R], **found: Any) -> R:
        """The result, with everything that all results have filled in from what was done here."""
        evidence = tuple(found.pop("evidence", self.evidence))
        own = {"evidence": evidence, "agreement": weigh(evidence).verdict, "seed": self.seed, **found}
        own.setdefault("engine", self.engine_use)
        own.setdefault("scripts", tuple(self.scripts))
        own.setdefault("seconds", self.clock.elapsed)
        own.setdefault("peak_memory_bytes", max(self.peak_memory_bytes or 0, _peak_of_python()))
        return kind(**own)


def _peak_of_python() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def model_of(model: Model | str) -> Model:
    """A model, given as itself or by its spec string; anything else is an InputError."""
    if isinstance(model, str):
        return parse_spec(model)
    if isinstance(model, Model):
        return model
    what = f"the {type(model).__name__} {str(model)[:40]!r}"
    if callable(model) and not isinstance(model, type):
        what = "a function; m2bridge.from_callable makes a model of it"
    raise InputError(f"a model or its spec, such as 'lightning(d=2,dp=1)', is needed here, not {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S]):
    """What questions are about: how it is understood in Python, how a text of the command line is read, and what that says."""

    of: Callable[[Any], S]
    read: Callable[[str], S]
    metavar: str
    help: str


MODEL = Subject(
    of=model_of,
    read=parse_spec,
    metavar="SPEC",
    help="A model, e.g. 'lightning(d=2,dp=1)'; see m2bridge models.",
)


@dataclass(kw_only=True, eq=False)
class Question(Generic[S, R]):
    """A declared question; call it with a subject to have it answered.

    Attributes
    ----------
    name: as on the command line.
    asks: what it asks, in one sentence.
    result: the type of its answer.
    templates: those of its scripts, by their names, or by the paths of files outside the package; with what they include they
        determine the answer.
    quantities: what is reported, a sentence each; grounds are shown for these, in this order.
    example: a command line.
    needs_engine: whether nothing can be answered without Macaulay2.
    takes_prime: whether it computes over a finite field that a user may choose.
    warm: whether it runs many scripts, for which a Macaulay2 is kept ready.
    subject: what it is about; a model, unless said.
    formats: other texts that the answer can be printed as.
    cost: predicts seconds and memory; by default from the size of the model's program (:mod:`m2bridge.questions.cost`).
    """

    name: str
    asks: str
    function: Callable[..., R]
    result: type[R]
    templates: tuple[str | Path, ...] = ()
    quantities: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    needs_engine: bool = True
    takes_prime: bool = True
    warm: bool = False
    subject: Subject[S] = MODEL  # type: ignore[assignment]
    formats: tuple[str, ...] = ()
    cost: Cost | None = None

    def __repr__(self) -> str:
        return f"<question {self.name}: {self.asks}>"

    @property
    def options(self) -> dict[str, OwnOption]:
        """The question's own options, by their names in Python."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kind, option = hints[name], Option("")
                if typing.get_origin(kind) is Annotated:
                    kind, option = typing.get_args(kind)
                found[name] = OwnOption(name, kind, parameter.default, option)
        return found

    def __call__(
        self, subject: S | str, *, engine: Engine | bool | None = None, prime: int | None = None, seed: int = 0,
        limits: Limits | None = None, timeout: float | str | None = None, memory: int | str | None = None,
        keep: Path | None = None, progress: Progress | None = None, **options: Any,
    ) -> R:  # fmt: skip
        """The answer.

        Parameters
        ----------
        subject: what the question is about: a model or its spec.
        engine: a Macaulay2 from :func:`m2bridge.open_engine`; None for the first that works; False for none.
        prime: characteristic for what is computed over a finite field; by default one that divides nothing in the subject.
        seed: of every random choice.
        limits: time and memory of the whole question; `timeout` and `memory` are a shorter way to say it: ``"10m"``, ``"4G"``.
        keep: a directory in which to leave every script with its raw output.
        progress: told each step as it begins; without one, notebooks and interactive terminals show the step themselves.
        """
        self._check(options, prime)
        allowed = limits or Limits()
        if timeout is not None:
            allowed = replace(allowed, wall_seconds=parse_seconds(timeout))
        if memory is not None:
            allowed = replace(allowed, memory_bytes=parse_bytes(memory))
        own = suitable_steps() if progress is None else None
        asking = Asking(
            engine=engine,
            prime=prime,
            seed=seed,
            limits=allowed,
            keep=keep,
            progress=progress or own,
            warm=self.warm,
        )
        try:
            return self.function(asking, self.subject.of(subject), **options)
        except LimitReached as error:
            raise LimitError(f"{self.name}: {error.reason}; nothing was found before") from None
        finally:
            asking.close()
            if own is not None:
                own.close()

    def _check(self, options: Mapping[str, Any], prime: int | None) -> None:
        if unknown := sorted(set(options) - set(self.options)):
            raise InputError(
                f"{self.name} has no option {unknown[0]!r}; {suggestion(unknown[0], [*self.options, *COMMON])}",
                argument=unknown[0],
            )
        if prime is not None and not self.takes_prime:
            raise InputError(f"{self.name} takes no prime: it computes over QQ", argument="prime")

    def estimate(self, subject: S | str, *, prime: int | None = None, **options: Any) -> Estimate:
        """What the answer will probably cost, from the subject's size alone; nothing is computed.

        >>> from m2bridge.questions import find
        >>> find("dimension").estimate("lightning(d=2,dp=1)").rests_on
        '10 weights and 50 multiplications of the network'
        """
        self._check(options, prime)
        expense = (self.cost or from_program(self.needs_engine))(self.subject.of(subject), options)
        return estimate_of(self.name, expense, self._without_engine())

    def _without_engine(self) -> str:
        if not self.needs_engine:
            return "the whole answer, with its proof where bounds meet; Macaulay2 is a further witness"
        if self.subject is MODEL:
            return (
                "nothing of this question; m2bridge dimension --no-engine still proves the image's dimension"
            )
        return "nothing of this question"

    def first_script(self, subject: S | str, **given: Any) -> Script:
        """The first script that the question would run; everything before it is computed."""
        seen = _Seen()
        try:
            self(subject, engine=typing.cast(Engine, seen), **given)
        except _ScriptSeen as found:
            return found.script
        except NoEngineError:
            pass
        raise InputError(f"{self.name} asks Macaulay2 nothing here")


class _ScriptSeen(BaseException):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script


class _Seen:
    """An engine that runs nothing: it stops at the first script."""

    @property
    def info(self) -> Any:
        raise NoEngineError("no engine")

    def run(self, script: Script, *_: Any) -> Run:
        raise _ScriptSeen(script)


def question(
    *, asks: str, **declared: Any
) -> Callable[[Callable[Concatenate[Asking, S, ...], R]], Question[S, R]]:
    """Declare a question; see :class:`Question` for the words. Its name is that of the function, with dashes."""

    def declare(function: Callable[Concatenate[Asking, S, ...], R]) -> Question[S, R]:
        result = typing.get_type_hints(function)["return"]
        made: Question[S, R] = Question(
            name=function.__name__.replace("_", "-"), asks=asks, function=function, result=result, **declared
        )
        for template in made.templates:
            if isinstance(template, Path):
                scripts.declare(template)
        if made.result.ANALYSIS not in RESULT_TYPES:
            register_result(made.result)
        functools.update_wrapper(made, function)
        made.__doc__ = f"{inspect.getdoc(function) or asks}\n\n{_COMMON_OPTIONS}"
        made.__signature__ = _signature(made)  # type: ignore[attr-defined]
        return made

    return declare


def _signature(made: Question[Any, Any]) -> inspect.Signature:
    """What ``help(question)`` shows: the subject, the question's own options, and the common ones."""
    call = inspect.signature(Question.__call__).parameters
    own = list(inspect.signature(made.function).parameters.values())
    common = [p for name, p in call.items() if name not in ("self", "subject", "options")]
    return inspect.Signature([own[1].replace(name="subject"), *own[2:], *common])
