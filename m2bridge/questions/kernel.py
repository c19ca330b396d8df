"""What a question is, and the one way in which every question is answered.

A question is a function ``name(context, subject, *, option, ...)`` under the decorator :func:`question`, which declares its
question, templates and quantities. The function adds evidence and returns ``context.build_result(ResultType, ...)``. What all
questions have in common is done here: the engine, the clock, limits, progress, evidence, agreement. The command line, batches,
schemas, explanations and the documentation read the declaration.
"""

from __future__ import annotations

import functools
import html
import importlib
import inspect
import sys
import threading
import time
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
from m2bridge.questions import SPEC, ForceOption, Option, OwnOption, Subject, check_number
from m2bridge.questions.comments import comments_on
from m2bridge.questions.context import Context, Progress, prime_between
from m2bridge.results import RESULT_TYPES, Result, register_result
from m2bridge.views import shorten

R = TypeVar("R", bound=Result)
S = TypeVar("S")
__all__ = [
    "COMMON", "MODEL", "Context", "ForceOption", "Option", "OwnOption", "Progress", "Question", "Subject", "model_of", "question",
]  # fmt: skip

COMMON = ("engine", "prime", "seed", "limits", "keep", "progress")
"""What every question takes beside its own options."""
_COMMON_OPTIONS = """Like every question it also takes `engine` (a Macaulay2, or False for none), `prime`, `seed`, `limits` (or
`timeout` and `memory`, as "10m" and "4G"), `keep` (a directory for scripts and raw output) and `progress` (a function
that is called with each step)."""


def model_of(model: Model | str) -> Model:
    """Return a model from a model or a spec string; anything else is an InputError."""
    if isinstance(model, str):
        return parse_spec(model)
    if isinstance(model, Model):
        return model
    what = f"the {type(model).__name__} {str(model)[:40]!r}"
    if callable(model) and not isinstance(model, type):
        what = "a function; m2bridge.from_callable makes a model of it"
    raise InputError(f"expected a model or its spec, such as 'lightning(d=2,dp=1)', not {what}")


MODEL = Subject(
    of=model_of,
    read=parse_spec,
    metavar=SPEC.metavar,
    help=SPEC.help,
)


@dataclass(kw_only=True, eq=False)
class Question(Generic[S, R]):
    """A declared question; call it with a subject to have it answered.

    Attributes
    ----------
    templates: those of its scripts, by their names, or by the paths of files outside the package; with what they include they
        determine the answer.
    quantities: what is reported, a sentence each; grounds are shown for these, in this order.
    primes: the smallest and the largest prime that a user may choose. Over a smaller field than the default's, most points are
        special and ranks at random points mean little: a question that allows it has a guard of its own.
    warm: whether it runs many scripts, for which a Macaulay2 is kept ready.
    subject: what it is about; a model, unless said.
    formats: other texts that the answer can be printed as.
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
    subject: Subject[S] = MODEL  # type: ignore[assignment]
    formats: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<question {self.name}: {self.asks}>"

    @functools.cached_property
    def _own_parameters(self) -> list[inspect.Parameter]:
        """Those after the context and the subject."""
        return list(inspect.signature(self.function).parameters.values())[2:]

    @functools.cached_property
    def options(self) -> dict[str, OwnOption]:
        """Return the question's own options, by their names in Python."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        found = {}
        for own in self._own_parameters:
            kind, option = hints[own.name], Option("")
            if typing.get_origin(kind) is Annotated:
                kind, option = typing.get_args(kind)
            found[own.name] = OwnOption(own.name, kind, own.default, option)
        return found

    def __call__(  # noqa: PLR0913 -- what every question takes, as users write it
        self, subject: S | str, *given: Any, engine: Engine | bool | None = None, prime: int | None = None, seed: int = 0,
        limits: Limits | None = None, timeout: float | str | None = None, memory: int | str | None = None,
        keep: Path | None = None, progress: Progress | None = None, clock: Clock | None = None, **options: Any,
    ) -> R:  # fmt: skip
        """Answer the question about `subject`, a model or its spec; `given` are positional options of the question.

        `engine` is a Macaulay2 from :func:`m2bridge.open_engine`, None for the first that works, False for none. `prime` is the
        characteristic of finite fields, by default one that divides nothing in the subject; `seed` that of every random choice.
        `limits` are time and memory of the whole question; `timeout` and `memory` say the same: ``"10m"``, ``"4G"``. `keep` is a
        directory in which to leave every script with its raw output. `progress` is told each step as it begins; without one,
        notebooks and interactive terminals show the step themselves. `clock` is that of the command, job or question of which
        this one is a part; by default a new one is started.
        """
        places = [p.name for p in self._own_parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(given) > len(places) or set(places[: len(given)]) & set(options):
            raise InputError(
                f"{self.name} takes {', '.join(['a model', *places])} as positional arguments, each once"
            )
        options |= zip(places, given, strict=False)
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
                about = self.subject.of(subject)
                answer = self.function(context, about, **options)
                return replace(answer, **self._envelope(about, answer, options))
        except LimitReached as error:
            raise LimitError(f"{self.name}: {error.reason}; {_found_before(context)}") from None
        finally:
            context.close()
            if steps is not None:
                steps.close()

    def _envelope(self, about: S, answer: R, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the kernel adds to an answer: the model's name, options that were chosen, comments of papers."""
        chosen = dict(answer.options)
        for option, value in options.items():
            own = self.options[option]
            if isinstance(value, str | int | float) and value not in (own.default, own.unasked):
                chosen.setdefault(option, value)
        name = about.user.name if isinstance(about, Model) else answer.name
        return {"name": name, "options": chosen, **comments_on(self.name, about, answer)}

    def check(self, options: Mapping[str, Any], prime: int | None, seed: int = 0) -> None:
        """An InputError, with the field `argument`, where an option is unknown or its value is impossible."""
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


def _found_before(context: Context) -> str:
    """What is known where a limit came before an answer could be made."""
    known = [e for e in context.evidence if e.value is not None]
    if not known:
        return "no quantity was obtained"
    return "obtained: " + ", ".join(
        f"{e.quantity} {e.relation} {shorten(str(e.value), 40)}" for e in known[:8]
    )


def question(
    *, asks: str, **declared: Any
) -> Callable[[Callable[Concatenate[Context, S, ...], R]], Question[S, R]]:
    """Declare a question; see :class:`Question` for the words. Its name is that of the function, with dashes."""

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
        _, subject, *own = inspect.signature(function).parameters.values()
        words = inspect.signature(Question.__call__).parameters
        common = [word for name, word in words.items() if name in (*COMMON, "timeout", "memory")]
        made.__signature__ = inspect.Signature([subject.replace(name="subject"), *own, *common])  # type: ignore[attr-defined]
        return made

    return declare


# -- what a person sees while a question takes long ------------------------------------------------------------------

_PROGRESS_PATIENCE = 1.0
"""Seconds before a person sees the step that runs."""


class Steps:
    """Shows a person the step that runs now; called as it begins, closed at the end, when the line goes away.

    Nothing is shown in the first second. Where it is `ticking`, the seconds go on within a step.
    """

    def __init__(self, put: Callable[[str | None], None], *, ticking: bool = False) -> None:
        self._put, self._start, self._step, self._shown = put, time.monotonic(), "", False
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True) if ticking else None
        if self._clock is not None:
            self._clock.start()

    def __call__(self, step: str) -> None:
        self._step = step
        seconds = time.monotonic() - self._start
        if step and seconds >= _PROGRESS_PATIENCE:
            self._shown = True
            self._put(f"{step} ({seconds:.0f} s)")

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self(self._step)

    def close(self) -> None:
        self._over.set()
        if self._clock is not None:
            self._clock.join()
        if self._shown:
            self._put(None)


def terminal_steps() -> Steps | None:
    """Return a progress line on standard error if this is a terminal."""

    def put(words: str | None) -> None:
        line = "" if words is None else "".join(c if c.isprintable() else "?" for c in words)[:78]
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    return Steps(put, ticking=True) if sys.stderr.isatty() else None


def _notebook_steps(display: Any) -> Steps:
    """Return a progress bar in a notebook."""
    handle: Any = None

    def put(words: str | None) -> None:
        nonlocal handle
        shown = "" if words is None else f"<progress></progress> {html.escape(words)}"
        data = {"text/plain": words or "", "text/html": shown}
        if handle is None:
            handle = display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    return Steps(put, ticking=True)


def suitable_steps() -> Steps | None:
    """What suits where Python runs: a bar in a notebook, a line on a terminal where somebody types, nothing elsewhere."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return _notebook_steps(importlib.import_module("IPython.display").display)
    return terminal_steps() if shell is not None or hasattr(sys, "ps1") else None
