"""A template of one's own: a ``.m2.j2`` file enters, the values it emits leave as a result.

The contract, which is that of the package's own templates:

* default values come first, one assignment a line at column 0 (``n = 3;``); they name the parameters;
* then the line ``--% include "_params.m2.j2"``, where the caller's values are put;
* values are sent with ``emit("tag", value)`` as soon as they are known: integers, booleans, null, one-line strings, and lists of
  these (anything else as ``toString``); a tag is a lower-case letter, then lower-case letters, digits and underscores, and is
  sent once; ``announce "text"`` names a step; ``emitEnd()`` is the last line;
* ``emit("field", "QQ")`` and ``emit("certainty", "numeric")`` declare what the values are: the field, and whether they are
  ``computed``, ``probable`` or ``numeric``;
* with a model, the script also has ``R``, ``weights`` and ``coordinates`` of that model.

For example::

    n = 3;
    --% include "_params.m2.j2"
    S = ZZ/32003[vars(0..n-1)];
    emit("hilbert", apply(5, k -> hilbertFunction(k, S)));
    emitEnd();

A script can do what Macaulay2 can: run only templates that you trust.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from m2bridge.certainty import Certainty
from m2bridge.engine.base import Engine
from m2bridge.errors import InputError, OutputError, ScriptError
from m2bridge.families.base import Model
from m2bridge.limits import Clock, Limits
from m2bridge.literals import NAME
from m2bridge.questions.kernel import Context
from m2bridge.results import Result, register_result
from m2bridge.scripts import declare_text, declared_parameters, declared_text, line_in_template
from m2bridge.views import View, shorten

BY_SCRIPT = "computed by your script"
DECLARABLE = ("computed", "probable", "numeric")
"""The certainties that a template may emit about its values."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template given by its name and its text, without a file."""

    name: str
    text: str


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateValues(Result):
    """What a user's template emitted, by tag, in the order of emission; `complete` when it reached its last line.

    m2bridge has checked nothing about these values but their form. Two tags have a meaning: ``field`` names the field (``QQ``),
    and ``certainty`` is ``computed``, ``probable`` or ``numeric``.
    """

    ANALYSIS: ClassVar[str] = "template"
    VERSION: ClassVar[int] = 1

    template: str
    complete: bool
    values: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Return the name of the object that the values describe."""
        return f"template {self.template}" + ("" if self.model == "none" else f" with the model {self.model}")

    @property
    def sure(self) -> str:
        """Return the certainty that the template declares, otherwise that its values were computed by it."""
        declared = _declared_certainty(self.values)
        return BY_SCRIPT if declared is None else f"{declared.value}, as your script declares"

    def view(self) -> View:
        end = "complete" if self.complete else "incomplete: stopped before the last line"
        facts = tuple((tag, shorten(json.dumps(value), 400)) for tag, value in self.values.items())
        note = "m2bridge checked only the form of these values."
        proof = "a template has no second witness; a question can have one (CONTRIBUTING.md)"
        return View(answer=f"{len(self.values)} values, {end}", facts=facts, notes=(note,), to_prove=proof)

    def repeated(self) -> list[str]:
        """Return how to run the template again: the record contains its name and the sha256 of the script, not its text."""
        command = ["m2bridge", "template", self.template]
        if self.model != "none":
            command += ["--model", self.model]
        for name, value in self.options.items():
            command += ["--set", f"{name}={json.dumps(value)}"]
        if self.seed:
            command += ["--seed", str(self.seed)]
        ran = ", ".join(f"sha256 {used.sha256[:12]}" for used in self.scripts) or "no script"
        return [
            f"The record does not contain the text of the template. With the file: `{shlex.join(command)}`.",
            f"The script that ran has {ran}; `--keep DIRECTORY` saves it as a file with this hash in its name.",
        ]


def run_template(  # noqa: PLR0913 -- what every question takes, as users write it
    template: Path | Template, parameters: Mapping[str, object] | None = None, *, model: Model | None = None,
    prime: int | None = None, engine: Engine | None = None, seed: int = 0, limits: Limits | None = None, keep: Path | None = None,
    progress: Callable[[str], None] | None = None, clock: Clock | None = None,
) -> TemplateValues:  # fmt: skip
    """Run a template of one's own and return what it emitted.

    Parameters
    ----------
    template: the ``.m2.j2`` file, or a template without a file.
    parameters: values for the parameters it declares. If it declares ``seed`` or ``p``, these are the seed and the prime.
    model: a model whose ``R``, ``weights`` and ``coordinates`` the script gets; `prime` is then the field's characteristic
        (32003 unless given).

    Raises
    ------
    InputError
        The template cannot be rendered, Macaulay2 stops in it (fields `line`, in the file, and `run`), or what it prints is not
        what :mod:`m2bridge.protocol` reads.
    """
    path = _path_of(template)
    text = declared_text(template) if isinstance(template, Path) else template.text
    settings = dict(parameters or {})
    declared = declared_parameters(text)
    if "seed" in declared and seed:
        settings.setdefault("seed", seed)
    if model is not None or ("p" in declared and prime is not None):
        settings.setdefault("p", 32003 if prime is None else prime)
    context = Context(
        engine=engine,
        prime=prime,
        seed=seed,
        limits=limits or Limits(),
        keep=keep,
        progress=progress,
        clock=clock,
    )
    try:
        values, limit = context.run_template(path, settings, model)
    except (ScriptError, OutputError) as error:
        raise mistake_in(f"template {path.name}", text, error) from error
    finally:
        context.close()
    return context.build_result(
        TemplateValues, model="none" if model is None else model.spec, options=json.loads(json.dumps(settings, default=str)),
        certainty=_declared_certainty(values) or Certainty.COMPUTED, limit=limit, template=path.name,
        complete=values.complete, values=dict(values),
    )  # fmt: skip


def _path_of(template: Path | Template) -> Path:
    """Return the path by which the template is rendered."""
    if isinstance(template, Template):
        return declare_text(template.name, template.text)
    if not template.name.endswith(".m2.j2"):
        raise InputError(f"template {template}: the name of a template ends in .m2.j2")
    if not template.is_file():
        raise InputError(f"template {template} does not exist")
    return template


def _declared_certainty(values: Mapping[str, Any]) -> Certainty | None:
    """Return the certainty that a template emits about its values; proofs and theorems need more than its word."""
    word = values.get("certainty")
    return Certainty(word) if word in DECLARABLE else None


def mistake_in(name: str, text: str, error: ScriptError | OutputError) -> InputError:
    """Return an error in a user-written template or script, with the line in its file if known."""
    line, told = None, f"{name}: {error.message}"
    if isinstance(error, ScriptError) and error.line:
        line = line_in_template(text, error.run.script.text, error.line)
        if line:
            position = f"line {line} (line {error.line} of the rendered script, saved by --keep), column {error.column}"
            told = f"{name}, {position}: Macaulay2 stopped: {error.details}"
    return InputError(told, line=line, run=error.run)


def parse_setting(text: str) -> tuple[str, object]:
    """Return a parameter from ``name=value``, the value in JSON.

    >>> parse_setting("n=[1,2]"), parse_setting('kind="odd"')
    (('n', [1, 2]), ('kind', 'odd'))
    """
    name, equals, value = (token.strip() for token in text.partition("="))
    if not equals or not NAME.fullmatch(name):
        raise InputError(f"--set {text!r}: write name=value")

    def refuse(_: object) -> NoReturn:
        raise InputError(f"--set {text!r}: only exact values, no decimal fractions or objects")

    try:
        parsed = json.loads(value, parse_float=refuse, parse_constant=refuse, object_hook=refuse)
    except (ValueError, RecursionError):
        how = ": write an integer, true, false, null, a list of these, or a string in double quotes"
        if NAME.fullmatch(value):
            how = f"; a string is written --set {name}='\"{value[:40]}\"'"
        raise InputError(f"--set {name}={value[:40]}: the value is not JSON{how}") from None
    return name, parsed
