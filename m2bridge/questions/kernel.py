"""Declare questions and answer them.

A question is a function ``name(context, subject, *, option, ...)`` with the decorator :func:`question`, which declares its
description, templates and quantities. The function adds evidence and returns ``context.build_result(ResultType, ...)``. This
module does what all questions have in common: options, engine, clock, limits, progress. The command line, batches, schemas,
explanations and the documentation use the declaration.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Concatenate, Generic, TypeVar

from m2bridge import scripts
from m2bridge.alarm import alarm
from m2bridge.engine import Engine, open_engine
from m2bridge.errors import InputError, LimitError, suggestion
from m2bridge.families import Model, parse_spec
from m2bridge.limits import Clock, LimitReached, Limits, parse_bytes, parse_seconds
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.questions import SPEC, DeclaredOption, ForceOption, Option, Subject, check_number
from m2bridge.questions.comments import comments_on
from m2bridge.questions.context import Context, Progress, prime_between
from m2bridge.questions.steps import suitable_steps
from m2bridge.results import RESULT_TYPES, Result, register_result
from m2bridge.views import shorten

R = TypeVar("R", bound=Result)
S = TypeVar("S")
__all__ = [
    "COMMON",
    "MODEL",
    "Context",
    "DeclaredOption",
    "ForceOption",
    "Option",
    "Progress",
    "Question",
    "Subject",
    "model_of",
    "question",
]  # fmt: skip

COMMON = ("engine", "prime", "seed", "limits", "keep", "progress")
"""Arguments that every question takes in addition to its options."""
_COMMON_OPTIONS = """Like every question it also takes `engine` (a Macaulay2, or False for none), `prime`, `seed`, `limits` (or
`timeout` and `memory`, as "10m" and "4G"), `keep` (a directory for scripts and raw output) and `progress` (a function
that is called with each step)."""


def model_of(model: Model | str) -> Model:
    """Return a model from a model or a spec string; anything else is an InputError."""
    if isinstance(model, str):
        return parse_spec(model)
    if isinstance(model, Model):
        return model
    description = f"the {type(model).__name__} {str(model)[:40]!r}"
    if callable(model) and not isinstance(model, type):
        description = "a function; m2bridge.from_callable makes a model of it"
    raise InputError(f"expected a model or its spec, such as 'lightning(d=2,dp=1)', not {description}")


MODEL = Subject(
    of=model_of,
    read=parse_spec,
    metavar=SPEC.metavar,
    help=SPEC.help,
)


@dataclass(kw_only=True, eq=False)
class Question(Generic[S, R]):
    """A declared question; calling it with a subject returns the answer.

    Attributes
    ----------
    templates: of its scripts, by name, or by path for files outside the package.
    quantities: the reported quantities with a description of each; their evidence is shown in this order.
    primes: the smallest and the largest prime that a user may choose. Over a small field most points are special and ranks at
        random points mean little, so that a question that allows small primes checks them itself.
    warm: whether it runs many scripts, so that a Macaulay2 process is kept ready.
    uses_msolve: whether msolve may contribute to the answer; its version is then part of the key of a batch job.
    subject: the kind of its subject, by default a model.
    formats: further output formats of the answer.
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
    primes: tuple[int, int] = (101, LARGE_PRIME)
    warm: bool = False
    uses_msolve: bool = False
    subject: Subject[S] = MODEL  # type: ignore[assignment]
    formats: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<question {self.name}: {self.asks}>"

    @functools.cached_property
    def _option_parameters(self) -> list[inspect.Parameter]:
        """Return the parameters after the context and the subject."""
        return list(inspect.signature(self.function).parameters.values())[2:]

    @functools.cached_property
    def options(self) -> dict[str, DeclaredOption]:
        """Return the options of the question by their names in Python."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        options = {}
        for parameter in self._option_parameters:
            kind, option = hints[parameter.name], Option("")
            if typing.get_origin(kind) is Annotated:
                kind, option = typing.get_args(kind)
            options[parameter.name] = DeclaredOption(parameter.name, kind, parameter.default, option)
        return options

    def __call__(  # noqa: PLR0913 -- the arguments that every question takes
        self, subject: S | str, *positional: Any, engine: Engine | bool | None = None, prime: int | None = None, seed: int = 0,
        limits: Limits | None = None, timeout: float | str | None = None, memory: int | str | None = None,
        keep: Path | None = None, progress: Progress | None = None, clock: Clock | None = None, **options: Any,
    ) -> R:  # fmt: skip
        """Answer the question about `subject`, a model or its spec; `positional` are options of the question.

        Parameters
        ----------
        engine: a Macaulay2 from :func:`m2bridge.open_engine`, None for the first that works, False for none.
        prime: the characteristic of finite fields, by default a prime that divides no number of the subject.
        seed: of all random choices.
        limits: time and memory of the whole question; `timeout` and `memory` are the same as text: ``"10m"``, ``"4G"``.
        keep: a directory for all scripts and their raw output.
        progress: a function that is called when a step begins; by default notebooks and interactive terminals show the step.
        clock: that of the command, job or question to which this one belongs; by default a new one is started.
        """
        names = [p.name for p in self._option_parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(positional) > len(names) or set(names[: len(positional)]) & set(options):
            raise InputError(
                f"{self.name} takes {', '.join(['a model', *names])} as positional arguments, each once"
            )
        options |= zip(names, positional, strict=False)
        self.check(options, prime, seed)
        allowed = limits or Limits()
        if timeout is not None:
            allowed = replace(allowed, wall_seconds=parse_seconds(timeout))
        if memory is not None:
            allowed = replace(allowed, memory_bytes=parse_bytes(memory))
        steps = suitable_steps() if progress is None else None
        context = Context(
            engine=engine, prime=prime, seed=seed, limits=allowed, keep=keep, progress=progress or steps, warm=self.warm,
            opener=open_engine, clock=clock,
        )  # fmt: skip
        try:
            with alarm(context.clock.remaining, context.clock.check):
                subject_value = self.subject.of(subject)
                answer = self.function(context, subject_value, **options)
                return replace(answer, **self._envelope(subject_value, answer, options))
        except LimitReached as error:
            raise LimitError(f"{self.name}: {error.reason}; {_obtained(context)}") from None
        finally:
            context.close()
            if steps is not None:
                steps.close()

    def _envelope(self, subject: S, answer: R, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that the kernel adds to an answer: name of the model, chosen options, comments of papers."""
        chosen = dict(answer.options)
        for option, value in options.items():
            declared = self.options[option]
            if isinstance(value, str | int | float) and value not in (declared.default, declared.cli_default):
                chosen.setdefault(option, value)
        name = subject.user.name if isinstance(subject, Model) else answer.name
        return {"name": name, "options": chosen, **comments_on(self.name, subject, answer)}

    def check(self, options: Mapping[str, Any], prime: int | None, seed: int = 0) -> None:
        """Raise InputError, with the field `argument`, if an option is unknown or its value is not allowed."""
        if unknown := sorted(set(options) - set(self.options)):
            raise InputError(
                f"{self.name} has no option {unknown[0]!r}; {suggestion(unknown[0], [*self.options, *COMMON])}",
                argument=unknown[0],
            )
        for name, value in options.items():
            self.options[name].check(value)
        check_number("seed", seed, 0)
        if prime is not None and not self.takes_prime:
            raise InputError(f"{self.name} has no option prime: it computes over QQ", argument="prime")
        if prime is not None:
            prime_between(prime, *self.primes)


def _obtained(context: Context) -> str:
    """List the quantities that were computed before a limit was reached."""
    items = [e for e in context.evidence if e.value is not None]
    if not items:
        return "no quantity was obtained"
    texts = [f"{e.quantity} {e.relation} {shorten(str(e.value), 40)}" for e in items[:8]]
    return f"obtained: {', '.join(texts)}"


def question(
    *, asks: str, **declared: Any
) -> Callable[[Callable[Concatenate[Context, S, ...], R]], Question[S, R]]:
    """Declare a question; :class:`Question` documents the arguments. Its name is that of the function, with dashes."""

    def declare(function: Callable[Concatenate[Context, S, ...], R]) -> Question[S, R]:
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
        _, subject, *options = inspect.signature(function).parameters.values()
        parameters = inspect.signature(Question.__call__).parameters
        common = [parameters[name] for name in parameters if name in (*COMMON, "timeout", "memory")]
        signature = inspect.Signature([subject.replace(name="subject"), *options, *common])
        made.__signature__ = signature  # type: ignore[attr-defined]
        return made

    return declare
