"""What an analysis answers, and what each number rests on.

An answer is a set of quantities; each quantity is supported by :class:`Evidence` from witnesses that share no
code. :func:`weigh` compares the witnesses: it never decides by majority, it reports a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import partial
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from m2bridge.boxes import box
from m2bridge.views import View, cut

if TYPE_CHECKING:
    from m2bridge.linear.numeric import NumericRank

Value = Any
"""A JSON value: int, bool, None, str, list or dict of such. Floats only where the quantity is a real number."""


class Certainty(StrEnum):
    """How sure a number is, from strongest to weakest."""

    PROVED = "proved"
    """Holds over QQ (or RR); the record has a certificate that ``m2bridge check`` verifies."""
    THEOREM = "theorem"
    """Follows from exact computations and a named theorem whose hypotheses were checked."""
    COMPUTED = "computed"
    """Computed exactly over QQ, by Macaulay2 or here, without a certificate."""
    PROBABLE = "probable"
    """Exact over F_p, or at random points; wrong with a probability that is stated."""
    NUMERIC = "numeric"
    """Floating point with a visible gap."""

    @property
    def place(self) -> int:
        """Its place in this order: 0 is the strongest."""
        return list(Certainty).index(self)

    @property
    def exact(self) -> bool:
        """Whether it is about QQ (or RR) and rests on no probability and no rounding."""
        return self.place <= Certainty.COMPUTED.place

    @staticmethod
    def weakest(items: Iterable[Certainty]) -> Certainty:
        """The certainty of a conclusion that needs all of `items`."""
        return max(items, key=lambda item: item.place, default=Certainty.NUMERIC)


Relation = Literal["=", ">=", "<="]
Scope = Literal["generic", "at-point"]
Ancestry = Literal["program", "template", "formula", "construction", "literature"]
RELATION_WORDS = {"=": "is", ">=": "is at least", "<=": "is at most"}
RELATION_SIGNS = {"=": "=", ">=": "≥", "<=": "≤"}
AGREEMENT_WORDS = {True: "witnesses agree", False: "witnesses disagree", None: "no second witness"}

_ANCESTRY: dict[str, Ancestry] = {
    "modular": "program",
    "numpy": "program",
    "ball": "program",
    "substitution": "program",
    "interpolation": "program",
    "macaulay2": "template",
    "formula": "formula",
    "literature": "literature",
    "orbits": "formula",
    "Proposition A.5": "formula",
}
"""What the usual witnesses stand on; all others are constructions (a curve, a symmetry, a slice).

``formula`` is a count that this package derives; ``literature`` is a formula or table that a paper prints.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One witness's word on one quantity.

    Attributes
    ----------
    quantity: the name of the quantity, as in the JSON output (``image_dim``).
    witness: who says it: ``macaulay2``, ``modular`` (exact F_p linear algebra), ``numpy`` (float64), ``symmetry``, ``ball``.
    ancestry: the definition that the statement was computed from. Two pieces of evidence can support each other only when their
        ancestries differ: one mistake in the program moves ``modular``, ``numpy`` and ``ball`` alike. What is of the
        ``literature`` can contradict other statements and never supports one. Unless given, that of the witness.
    scope: whether the quantity is meant at a generic point or at the point in question; None where that makes no sense.
    field: the field over which the quantity is meant, e.g. ``QQ`` or ``F_32003``; None where the quantity has only one.
        Quantities of different scope or field are different quantities.
    method: how, in a few words.
    value: the value, or None for "undecided".
    relation: whether the quantity equals the value or is only bounded by it.
    certainty: how sure the witness is of this statement.
    prime: the characteristic it was computed in, if any.
    error_probability: an upper bound of the probability that the statement is wrong, where one is known.
    seconds: how long it took.
    detail: what a reader needs to judge it (singular value gap, number of samples), JSON values only.
    """

    quantity: str
    witness: str
    method: str
    value: Value
    relation: Relation = "="
    certainty: Certainty = Certainty.PROBABLE
    prime: int | None = None
    error_probability: float | None = None
    seconds: float = 0.0
    detail: Mapping[str, Value] = field(default_factory=dict)
    scope: Scope | None = None
    field: str | None = None
    ancestry: Ancestry | None = None

    @property
    def stands_on(self) -> Ancestry:
        """The ancestry that was given, or that of the witness."""
        return self.ancestry or _ANCESTRY.get(self.witness, "construction")

    @property
    def decides(self) -> bool:
        """Whether it may settle a value: what a paper prints does so only as a theorem whose hypotheses were checked."""
        return self.stands_on != "literature" or self.certainty is Certainty.THEOREM

    @property
    def word(self) -> str:
        """Its certainty in a word; what decides nothing is ``compared``."""
        return self.certainty.value if self.decides else "compared"

    @property
    def subject(self) -> tuple[str, str | None, str | None]:
        """What the statement is about: quantity, scope and field."""
        return self.quantity, self.scope, self.field

    @property
    def how(self) -> str:
        """The method, and the finite field where there is one."""
        named = not self.prime or f"F_{self.prime}" in self.method
        return self.method if named else f"{self.method} over F_{self.prime}"


def said(quantity: str, value: Value, witness: str, method: str, **more: Any) -> Evidence:
    """A witness's word, probable unless `more` says otherwise: the other fields of :class:`Evidence`."""
    return Evidence(quantity=quantity, value=value, witness=witness, method=method, **more)


def proves(quantity: str, value: Value, witness: str, method: str, **more: Any) -> Evidence:
    """Make exact evidence that a certificate can carry; in a record without one it is ``computed`` (:func:`vouched`)."""
    return said(quantity, value, witness, method, certainty=Certainty.PROVED, **more)


def printed(quantity: str, value: Value, citation: str, **more: Any) -> Evidence:
    """Make evidence of what a paper prints: it is compared, and decides nothing."""
    return said(quantity, value, "formula", citation, ancestry="literature", **more)


def floats(
    quantity: str, found: NumericRank, method: str, *, corank_of: int | None = None, **more: Any
) -> Evidence:
    """A rank in float64, or the corank of so many columns, with its gap; the value is None where floats do not decide."""
    value = found.rank if found.rank is None or corank_of is None else corank_of - found.rank
    gap = float(found.gap) if isfinite(found.gap) else None
    return said(quantity, value, "numpy", method, certainty=Certainty.NUMERIC, detail={"gap": gap}, **more)


def compared(quantity: str, *sayings: tuple[str, str, Value], **more: Any) -> list[Evidence]:
    """One quantity from several witnesses, each with its method and its value."""
    return [said(quantity, value, witness, method, **more) for witness, method, value in sayings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two pieces of evidence that cannot both be true."""

    quantity: str
    first: Evidence
    second: Evidence

    def __str__(self) -> str:
        a, b = self.first, self.second
        return (
            f"{self.quantity}: {a.witness} ({a.method}) says {a.relation} {a.value}, "
            f"{b.witness} ({b.method}) says {b.relation} {b.value}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whether the witnesses agree.

    Attributes
    ----------
    verdict: False when two statements contradict each other; True when every quantity of the answer's first line is pinned by two
        statements of different ancestry; None otherwise.
    conflicts: the pairs that contradict each other.
    twice, once: the quantities of the first line with and without a second, independent statement.
    """

    verdict: bool | None
    conflicts: tuple[Conflict, ...] = ()
    twice: tuple[str, ...] = ()
    once: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdict in words; where some quantities have a second witness and others have none, which."""
        if self.verdict is None and self.twice:
            return f"two independent computations: {', '.join(self.twice)}; one only: {', '.join(self.once)}"
        return AGREEMENT_WORDS[self.verdict]


def contradicts(first: Evidence, second: Evidence) -> bool:
    """Whether two statements about one quantity cannot both hold."""
    if first.value is None or second.value is None or first.subject != second.subject:
        return False
    if first.relation == second.relation:
        return first.relation == "=" and bool(first.value != second.value)
    if "=" in (first.relation, second.relation):
        exact, bound = (first, second) if first.relation == "=" else (second, first)
        return bool(exact.value < bound.value if bound.relation == ">=" else exact.value > bound.value)
    low, high = (first, second) if first.relation == ">=" else (second, first)
    return bool(low.value > high.value)


def supports(first: Evidence, second: Evidence) -> bool:
    """Whether two statements pin the same value of one quantity from different definitions.

    Two lower bounds never do, nor do bounds that leave room between them: they could not have contradicted each other.
    """
    if first.subject != second.subject or first.stands_on == second.stands_on:
        return False
    if "literature" in (first.stands_on, second.stands_on):
        return False
    opposite = "=" in (first.relation, second.relation) or first.relation != second.relation
    return opposite and first.value is not None and bool(first.value == second.value)


def weigh(evidence: Iterable[Evidence], headline: Mapping[str, Value] | None = None) -> Agreement:
    """Compare all evidence, quantity by quantity.

    `headline` are the quantities of the answer's first line with the values that it reports (None: whatever the evidence says);
    without it, every quantity that has evidence counts. Helper quantities can contradict, and never make an answer agree.
    """
    groups = by_quantity(item for item in evidence if item.value is not None)
    pairs = {name: list(combinations(items, 2)) for name, items in groups.items()}
    conflicts = tuple(
        Conflict(quantity=name, first=a, second=b) for name, two in pairs.items() for a, b in two if contradicts(a, b)
    )  # fmt: skip
    stated = dict.fromkeys(groups) if headline is None else headline
    supported = {
        name: any(supports(a, b) and value in (None, a.value) for a, b in pairs.get(name, ()))
        for name, value in stated.items()
    }
    twice = tuple(name for name, holds in supported.items() if holds)
    once = tuple(name for name, holds in supported.items() if not holds)
    verdict = False if conflicts else True if twice and not once else None
    return Agreement(verdict=verdict, conflicts=conflicts, twice=twice, once=once)


def labelled(evidence: Iterable[Evidence], at_point: tuple[str, ...] = ()) -> tuple[Evidence, ...]:
    """Evidence with scope and field where these are plain: quantities that begin with a word of `at_point` are meant at a point.

    The field of a quantity is QQ when all its statements are exact, F_p when all are computed modulo one p and none is exact.
    Where statements of both kinds are made about one quantity, they stay comparable, and the field stays open.
    """
    items = list(evidence)
    only = {quantity: _common_field(said) for quantity, said in by_quantity(items).items()}

    def scope(item: Evidence) -> Scope:
        return "at-point" if item.quantity.startswith(at_point) else "generic"

    return tuple(replace(i, scope=i.scope or scope(i), field=i.field or only[i.quantity]) for i in items)


def _common_field(items: Iterable[Evidence]) -> str | None:
    used = (i for i in items if i.decides)
    overs = {"QQ" if i.certainty.exact else f"F_{i.prime}" if i.prime else None for i in used}
    return overs.pop() if len(overs) == 1 else None


def by_quantity(evidence: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    """The evidence on each quantity, in the order in which they are first spoken of."""
    found: dict[str, list[Evidence]] = {}
    for item in evidence:
        found.setdefault(item.quantity, []).append(item)
    return found


class Settled(NamedTuple):
    """What all evidence on one quantity amounts to: a value (None: undecided), how sure, and who says so."""

    value: Value
    certainty: Certainty
    witnesses: tuple[str, ...]


def settle(evidence: Iterable[Evidence]) -> dict[str, Settled]:
    """The value of each quantity and the strongest certainty that the evidence gives it.

    Of that certainty is what one witness says, or what bounds from below and from above meet in. What a paper prints decides
    nothing. Conflicts are not looked for: see :func:`weigh`.
    """
    settled = {}
    for name, items in by_quantity(evidence).items():
        decided = [item for item in items if item.value is not None]
        witnesses = tuple(dict.fromkeys(item.witness for item in decided))
        settled[name] = Settled(*_strongest_value(decided), witnesses)
    return settled


def _strongest_value(decided: list[Evidence]) -> tuple[Value, Certainty]:
    used = [item for item in decided if item.decides]
    for certainty in Certainty:
        known = [item for item in used if item.certainty.place <= certainty.place]
        exact, low, high = ([i.value for i in known if i.relation == sign] for sign in ("=", ">=", "<="))
        if exact:
            return exact[0], certainty
        if low and high and max(low) == min(high):
            return max(low), certainty
    return None, Certainty.PROBABLE


def strongest(items: Iterable[Evidence]) -> list[Evidence]:
    """Of what was decided, one statement for each relation and ancestry: the surest, and among bounds the sharpest."""
    best: dict[tuple[str, str], Evidence] = {}
    for item in items:
        key = (item.relation, item.stands_on if item.relation == "=" else "")
        if item.value is not None and (key not in best or _better(item, best[key])):
            best[key] = item
    return list(best.values())


def _better(item: Evidence, than: Evidence) -> bool:
    if item.relation != "=" and item.value != than.value and item.certainty == than.certainty:
        return bool(item.value > than.value if item.relation == ">=" else item.value < than.value)
    return item.certainty.place < than.certainty.place


def whole_number(result: Result, quantity: str) -> int | None:
    """What the answer says of a quantity where that is a whole number and a field of its own; None otherwise."""
    value = _said(result, quantity)
    return value if type(value) is int else None


def _said(result: Result, quantity: str) -> Any:
    """The field of this name, or None.

    Properties are not asked: that of a closure which is called like the quantity ``generators`` needs equations, and a record may
    hold none.
    """
    return getattr(result, quantity) if quantity in {item.name for item in fields(result)} else None


def vouched(result: _R) -> _R:
    """The result with the words that its certificates bear out.

    Only what a certificate of the record shows is ``proved``; exact evidence about anything else is ``computed``. The answer is
    as sure as the weakest quantity of its first line.
    """
    shown, settled = result.certified(), settle(result.evidence)

    def word(name: str, certainty: Certainty) -> Certainty:
        unproved = certainty is Certainty.PROVED and name not in shown
        return Certainty.COMPUTED if unproved else certainty

    reported = [name for name in result.headline if name in settled and settled[name].value is not None]
    words = {name: word(name, item.certainty) for name, item in settled.items() if item.value is not None}
    own = result.certainty
    if own is Certainty.PROVED and not (shown and shown.issuperset(result.headline)):
        own = Certainty.COMPUTED
    evidence = (replace(item, certainty=word(item.quantity, item.certainty)) for item in result.evidence)
    return replace(
        result,
        certainty=Certainty.weakest([own, *(words[name] for name in reported)]),
        evidence=tuple(evidence),
    )


def altered(result: Result) -> str | None:
    """A sentence where an answer contradicts its own evidence, as in a record that was edited; None otherwise.

    This finds mistakes, not malice: who edits the answer can edit its evidence. Certificates are what is checked.
    """
    if result.agreement is False:
        return None
    wrong = next(filter(None, map(partial(_other_value, result), result.evidence)), None)
    return None if wrong is None else f"{wrong}: it was altered. Do not use anything in it."


def _other_value(result: Result, item: Evidence) -> str | None:
    """What the record says against exact evidence, or against what its first line rests on."""
    said, shown = _said(result, item.quantity), item.value
    comparable = isinstance(said, int) and type(shown) is type(said)  # numbers, or yes and no
    counts = item.decides and (item.certainty.exact or item.quantity in result.headline)
    if not comparable or not counts or item.certainty is Certainty.NUMERIC:
        return None
    if {"=": said == shown, ">=": said >= shown, "<=": said <= shown}[item.relation]:
        return None
    return f"The record says {item.quantity} {said}, but its own evidence says {item.relation} {shown} ({item.word})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremCheck:
    """A published statement compared with what was computed.

    Attributes
    ----------
    name, statement: which, and in our words what it says.
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
        """What it states, and what was found of it here."""
        if not self.applies:
            found = "its hypotheses do not hold here, it says nothing"
        elif self.agrees is None:
            found = "its hypotheses hold; nothing contradicts it, but not all that it predicts was decided"
        elif self.agrees:
            found = "its hypotheses hold, and it agrees"
        else:
            told = self.witness or {}
            keys = [k for k in ("rank_a", "rank_v", "meet", "printed", "computed") if told.get(k) is not None]
            place = ", ".join(f"{key} = {told[key]}" for key in keys)
            found = f"its hypotheses hold, and it FAILS{' at ' if place else ''}{place}"
        return f"{self.name}: {self.statement}; {found}."


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """Which Macaulay2 a result used: its version and where it came from, without machine paths."""

    version: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptUse:
    """A script that a result used: the template's name, the sha256 of the rendered text, and the values that it emitted.

    The text itself is not in the record: :func:`m2bridge.records.save` leaves it beside the record, under that hash. Long values,
    such as lists of equations, are left out.
    """

    name: str
    sha256: str
    values: Mapping[str, Value] = field(default_factory=dict)
    text: str | None = field(default=None, compare=False, repr=False, metadata={"key": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What every answer carries, whatever was asked. Subclasses add the quantities of their question.

    Attributes
    ----------
    model: the spec string; `options`: what else determines the answer (prime, bounds, method).
    name: what the user calls a model of their own; None for families.
    certainty: of the answer as a whole: the weakest of what it needs.
    agreement: of the witnesses among themselves (:func:`weigh`).
    limit: None, or which limit stopped the computation: then the answer holds what was found before.
    """

    ANALYSIS: ClassVar[str]
    VERSION: ClassVar[int]
    HEADLINE: ClassVar[tuple[str, ...]] = ()
    """The quantities that the first line states, by their names in the evidence."""

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
        """The version of the Macaulay2 that ran a script for it."""
        return self.engine.version if self.engine and self.scripts else None

    @property
    def final_script(self) -> ScriptUse | None:
        """The script whose values are those of the answer; of several the last one, or the last script if none has any.

        A computation may run a template several times, for example with more equations each time. Only the final run agrees with
        the answer.
        """
        own = {item.name for item in fields(self)}

        def equal_values(script: ScriptUse) -> int:
            shared = [tag for tag in script.values if tag in own]
            equal = [tag for tag in shared if script.values[tag] == _as_json(getattr(self, tag))]
            return 2 * len(equal) - len(shared)

        return max(reversed(self.scripts), key=equal_values, default=None)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Pairs of evidence that contradict each other; empty unless `agreement` is False."""
        return weigh(self.evidence).conflicts

    @property
    def headline(self) -> tuple[str, ...]:
        """The quantities that the first line states; those of :meth:`view` where the type declares none."""
        if self.HEADLINE:
            return self.HEADLINE
        return tuple(name for name, item in settle(self.evidence).items() if item.value is not None)[:3]

    @property
    def weighed(self) -> Agreement:
        """The comparison of the witnesses, with the quantities of the first line that have a second one."""
        return weigh(self.evidence, {name: _said(self, name) for name in self.headline})

    @property
    def agreement_words(self) -> str:
        """Whether witnesses agree, in words; the verdict is the recorded one."""
        found = self.weighed
        return found.words if self.agreement is found.verdict else AGREEMENT_WORDS[self.agreement]

    @property
    def words(self) -> dict[str, Certainty]:
        """How sure each quantity is that the evidence settles."""
        return {
            name: item.certainty for name, item in settle(self.evidence).items() if item.value is not None
        }

    def certified(self) -> frozenset[str]:
        """The quantities whose values the certificates of the record show; types without certificates have none."""
        return frozenset()

    @property
    def sure(self) -> str:
        """How sure the answer is, in one word: its certainty, or ``undecided`` where no witness said anything."""
        silent = self.evidence and all(item.value is None for item in self.evidence)
        return "undecided" if silent or not self.view().decided else self.certainty.value

    def view(self) -> View:
        """What a person reads of it; subclasses say it in their own words."""
        settled = settle(self.evidence)
        facts = [(name, str(item.value)) for name, item in settled.items() if item.value is not None]
        return View(
            answer=", ".join(f"{name} {value}" for name, value in facts[:3]) or "nothing was found",
            facts=tuple(facts),
        )

    def __repr__(self) -> str:
        """One line: type, model, the answer, how sure it is, whether the witnesses agree."""
        stopped = "" if self.limit is None else ", stopped by a limit"
        head = f"{cut(self.name or self.model, 80)!r}: {self.view().answer}"
        return f"{type(self).__name__}({head}; {self.sure}, {self.agreement_words}{stopped})"

    def _repr_html_(self) -> str:
        """A box for notebooks: the answer, how sure it is, seed and witnesses, then what was found."""
        over = "" if self.options.get("prime") is None else f", prime {self.options['prime']}"
        stopped = "" if self.limit is None else f"; a limit was reached: {self.limit}"
        ground = f"seed {self.seed}{over}; {self.agreement_words}; {self.seconds:.1f} s{stopped}"
        own = f"your own network, {self.model.count(';') + 1} lines of program"
        return box(
            self.view(),
            certainty=self.sure,
            agreement=self.agreement,
            ground=ground,
            title=own if self.model.startswith("program:") else self.model,
        )


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


RESULT_TYPES: dict[str, type[Result]] = {}
"""Result types by the name of their analysis, as in the CLI: filled by :func:`register_result`."""

_R = TypeVar("_R", bound=Result)


def register_result(kind: type[_R]) -> type[_R]:
    """Class decorator: make a result type known to records by its ``ANALYSIS`` name, and give it the repr of all results."""
    RESULT_TYPES[kind.ANALYSIS] = kind
    kind.__repr__ = Result.__repr__  # type: ignore[method-assign] # in place of the dataclass's, which prints all evidence
    return kind
