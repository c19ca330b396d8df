"""The type of all results, and the checks of an answer against its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from m2bridge.boxes import box
from m2bridge.certainty import Certainty
from m2bridge.evidence import AGREEMENT_WORDS, Agreement, Conflict, Evidence, Value, settle, weigh
from m2bridge.views import View, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremCheck:
    """A published statement compared with the computed answer.

    Attributes
    ----------
    name, statement: its name, and a paraphrase of it.
    applies: whether its hypotheses hold here.
    agrees: whether every decided verdict is the one it predicts; None when its hypotheses fail, or nothing contradicts it but
        some verdict is undecided.
    witness: for a failure, a point and the bounds that show it; None otherwise.
    """

    name: str
    statement: str
    applies: bool
    agrees: bool | None
    witness: Mapping[str, Any] | None

    def sentence(self) -> str:
        """Return the statement and the result of the comparison in one sentence."""
        if not self.applies:
            comparison = "not applicable (its hypotheses do not hold)"
        elif self.agrees is None:
            comparison = "its hypotheses hold; no contradiction, but some predictions are undecided"
        elif self.agrees:
            comparison = "its hypotheses hold, and it agrees"
        else:
            details = self.witness or {}
            keys = [
                k for k in ("rank_a", "rank_v", "meet", "printed", "computed") if details.get(k) is not None
            ]
            location = ", ".join(f"{key} = {details[key]}" for key in keys)
            comparison = f"its hypotheses hold, and it FAILS{' at ' if location else ''}{location}"
        return f"{self.name}: {self.statement}; {comparison}."


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """The Macaulay2 that a result used: its version and its origin, without machine paths."""

    version: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptUse:
    """A script that a result used: the template's name, the sha256 of the rendered text, and the values that it emitted.

    For an input of msolve the values are its version (``msolve``), origin and arguments. The text itself is not in the record:
    :func:`m2bridge.records.save` writes it beside the record, under that hash. Long values, such as lists of equations, are
    omitted.
    """

    name: str
    sha256: str
    values: Mapping[str, Value] = field(default_factory=dict)
    text: str | None = field(default=None, compare=False, repr=False, metadata={"key": None})

    @property
    def suffix(self) -> str:
        """Return the suffix of its file name."""
        return ".ms" if "msolve" in self.values else ".m2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The common fields of all answers. Subclasses add the quantities of their question.

    Attributes
    ----------
    model: the spec string; `options`: the other arguments of the answer (prime, bounds, method).
    name: the name of a user-defined model; None for families.
    certainty: of the answer as a whole: the weakest of the statements that it needs, or undecided.
    agreement: of the witnesses (:func:`weigh`).
    limit: None, or the limit that stopped the computation; then the answer contains the results up to it.
    """

    ANALYSIS: ClassVar[str]
    VERSION: ClassVar[int]
    FINAL_TEMPLATE: ClassVar[str | None] = None
    """The template that computes the first line of the answer, if the question also uses other questions."""
    HEADLINE: ClassVar[tuple[str, ...]] = ()
    """The quantities that the first line states, by their names in the evidence."""
    AT_POINT: ClassVar[tuple[str, ...] | None] = None
    """Prefixes of quantities at a point, if all others are generic; None if the evidence already has its scope."""
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ()
    """Fields for comments: statements of papers about the answer (:mod:`m2bridge.questions.comments`)."""

    model: str
    options: Mapping[str, Value] = field(default_factory=dict)
    certainty: Certainty
    agreement: bool | None
    evidence: tuple[Evidence, ...]
    engine: EngineUse | None = None
    scripts: tuple[ScriptUse, ...] = ()
    seed: int
    seconds: float
    peak_memory_bytes: int | None = None
    limit: str | None = None
    name: str | None = None

    @property
    def macaulay2(self) -> str | None:
        """Return the version of the Macaulay2 that ran a script for it."""
        return self.engine.version if self.engine and self.scripts else None

    @property
    def final_script(self) -> ScriptUse | None:
        """Return the script whose values are those of the answer; of several the last one, or the last script if none has any.

        A computation may run a template several times, for example with more equations each time. Only the final run agrees with
        the answer. Runs of :attr:`FINAL_TEMPLATE` are preferred to those of other questions.
        """
        names = {item.name for item in fields(self)}

        def equal_values(script: ScriptUse) -> int:
            shared = [tag for tag in script.values if tag in names]
            equal = [tag for tag in shared if script.values[tag] == _as_json(getattr(self, tag))]
            return 2 * len(equal) - len(shared)

        named = [script for script in self.scripts if script.name == self.FINAL_TEMPLATE]
        templates = [script for script in self.scripts if script.suffix == ".m2"]
        return max(reversed(named or templates), key=equal_values, default=None)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Return pairs of evidence that contradict each other; empty unless `agreement` is False."""
        return weigh(self.evidence).conflicts

    @property
    def headline(self) -> tuple[str, ...]:
        """Return the quantities stated in the first line; those of :meth:`view` if the type declares none."""
        if self.HEADLINE:
            return self.HEADLINE
        return tuple(name for name, item in settle(self.evidence).items() if item.value is not None)[:3]

    @property
    def weighed(self) -> Agreement:
        """Return the comparison of the witnesses, with the quantities of the answer that have a second witness."""
        return weigh(self.evidence, {name: _field_value(self, name) for name in self.headline})

    @property
    def agreement_words(self) -> str:
        """Return whether witnesses agree, in words; the verdict is the recorded one."""
        comparison = self.weighed
        return comparison.words if self.agreement is comparison.verdict else AGREEMENT_WORDS[self.agreement]

    @property
    def words(self) -> dict[str, Certainty]:
        """Return the certainty of each quantity that the evidence determines."""
        return {
            name: item.certainty for name, item in settle(self.evidence).items() if item.value is not None
        }

    def certified(self) -> frozenset[str]:
        """Return the quantities whose values the certificates of the record prove; none for types without certificates."""
        return frozenset()

    @property
    def sure(self) -> str:
        """Return the certainty of the answer in one word, ``undecided`` without a value."""
        no_value = self.evidence and all(item.value is None for item in self.evidence)
        return (Certainty.UNDECIDED if no_value or not self.view().decided else self.certainty).value

    def view(self) -> View:
        """Return the text for the user; subclasses override it."""
        settled = settle(self.evidence)
        facts = [(name, str(item.value)) for name, item in settled.items() if item.value is not None]
        return View(
            answer=", ".join(f"{name} {value}" for name, value in facts[:3]) or "no result",
            facts=tuple(facts),
        )

    def save(self, directory: Path | str = ".") -> Path:
        """Write the record into a directory and return its path, like ``--save``."""
        path: Path = import_module("m2bridge.records").save(self, directory)
        return path

    def cite(self) -> str:
        """Return a LaTeX sentence that states the answer, and the BibTeX entries that it cites, like ``m2bridge cite``."""
        text: str = import_module("m2bridge.report.cite").citation(self)
        return text

    def __repr__(self) -> str:
        """Return one line: type, model, answer, certainty, and whether the witnesses agree."""
        stopped = "" if self.limit is None else ", stopped by a limit"
        head = f"{shorten(self.name or self.model, 80)!r}: {self.view().answer}"
        return f"{type(self).__name__}({head}; {self.sure}, {self.agreement_words}{stopped})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: answer, certainty, seed, witnesses, and facts."""
        prime = "" if self.options.get("prime") is None else f", prime {self.options['prime']}"
        stopped = "" if self.limit is None else f"; a limit was reached: {self.limit}"
        ground = f"seed {self.seed}{prime}; {self.agreement_words}; {self.seconds:.1f} s{stopped}"
        network = f"user-defined network, program of {self.model.count(';') + 1} lines"
        return box(
            self.view(),
            certainty=self.sure,
            agreement=self.agreement,
            ground=ground,
            title=network if self.model.startswith("program:") else self.model,
        )


def _as_json(value: Any) -> Any:
    """Return a value as JSON represents it: tuples, also nested ones, are lists."""
    return [_as_json(item) for item in value] if isinstance(value, tuple | list) else value


RESULT_TYPES: dict[str, type[Result]] = {}
"""Result types by the name of their analysis, as in the CLI: filled by :func:`register_result`."""

_R = TypeVar("_R", bound=Result)


def register_result(kind: type[_R]) -> type[_R]:
    """Register a result type for records by its ``ANALYSIS`` name, and give it the repr of all results; a class decorator."""
    RESULT_TYPES[kind.ANALYSIS] = kind
    kind.__repr__ = Result.__repr__  # type: ignore[method-assign] # in place of the dataclass's, which prints all evidence
    return kind


def whole_number(result: Result, quantity: str) -> int | None:
    """Return the field of this name if it is a whole number; None otherwise."""
    value = _field_value(result, quantity)
    return value if type(value) is int else None


def _field_value(result: Result, quantity: str) -> Any:
    """Return the field of this name as evidence states it, or None.

    Properties are not read: ``Closure.generators`` needs equations, which a record may not hold.
    """
    return _as_json(getattr(result, quantity)) if quantity in {item.name for item in fields(result)} else None


def vouched(result: _R) -> _R:
    """Return the result with the certainties that its certificates justify.

    Only quantities that a certificate of the record proves are ``proved``; other exact evidence is ``computed``. The certainty of
    the answer is the weakest one among the quantities of its first line, or undecided.
    """
    certified = result.certified()
    settled = settle(result.evidence)

    def justified(name: str, certainty: Certainty) -> Certainty:
        unproved = certainty is Certainty.PROVED and name not in certified
        return Certainty.COMPUTED if unproved else certainty

    reported = [name for name in result.headline if name in settled and settled[name].value is not None]
    certainties = {
        name: justified(name, item.certainty) for name, item in settled.items() if item.value is not None
    }
    answer_certainty = result.certainty
    if answer_certainty is Certainty.PROVED and not (certified and certified.issuperset(result.headline)):
        answer_certainty = Certainty.COMPUTED
    evidence = (replace(item, certainty=justified(item.quantity, item.certainty)) for item in result.evidence)
    weakest = Certainty.weakest([answer_certainty, *(certainties[name] for name in reported)])
    return replace(
        result,
        certainty=Certainty.UNDECIDED if result.sure == "undecided" else weakest,
        evidence=tuple(evidence),
    )


def altered(result: Result) -> str | None:
    """Return a sentence if an answer contradicts its evidence, or is proved without a certificate: the record was altered.

    This detects mistakes, not manipulation: the evidence can be edited like the answer. Only certificates are verified.
    """
    if result.agreement is False:
        return None
    problem = next(filter(None, map(partial(_other_value, result), result.evidence)), _unproved(result))
    return None if problem is None else f"{problem}: it was altered. Do not use it."


def _unproved(result: Result) -> str | None:
    """Name the quantities of an answer called proved that no certificate in the record shows; None if there are none."""
    if result.certainty is not Certainty.PROVED:
        return None
    try:
        missing = [name for name in result.headline if name not in result.certified()]
    except (KeyError, TypeError, ValueError):  # no certificate of the record has this form
        missing = list(result.headline)
    return (
        f"The record states the certainty proved but has no certificate for {', '.join(missing)}"
        if missing
        else None
    )


def _other_value(result: Result, item: Evidence) -> str | None:
    """Describe the difference between a field and evidence that is exact or about the first line; None if there is none."""
    stated, value = _field_value(result, item.quantity), item.value
    comparable = isinstance(stated, int) and type(value) is type(stated)  # numbers, or yes and no
    counts = item.decides and (item.certainty.exact or item.quantity in result.headline)
    if not comparable or not counts or item.certainty is Certainty.NUMERIC:
        return None
    if {"=": stated == value, ">=": stated >= value, "<=": stated <= value}[item.relation]:
        return None
    return f"The record states {item.quantity} {stated}, but its evidence states {item.relation} {value} ({item.word})"
