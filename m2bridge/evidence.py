"""Evidence for the quantities of an answer, and its comparison.

Each quantity of an answer is supported by :class:`Evidence` from witnesses that share no code. :func:`weigh` compares the
witnesses and reports every conflict; there is no decision by majority.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from m2bridge.certainty import Certainty

if TYPE_CHECKING:
    from m2bridge.linear.numeric import NumericRank

Value = Any
"""A JSON value: int, bool, None, str, list or dict of such. Floats only where the quantity is a real number."""
Relation = Literal["=", ">=", "<="]
Scope = Literal["generic", "at-point"]
Ancestry = Literal["program", "template", "formula", "construction", "literature"]
RELATION_WORDS = {"=": "is", ">=": "is at least", "<=": "is at most"}
RELATION_SIGNS = {"=": "=", ">=": "≥", "<=": "≤"}
AGREEMENT_WORDS = {True: "witnesses agree", False: "witnesses disagree", None: "no second witness"}

_ANCESTRY: dict[str, Ancestry] = {
    "modular": "program",
    "numpy": "program",
    "substitution": "program",
    "interpolation": "program",
    "msolve": "program",
    "macaulay2": "template",
    "formula": "formula",
    "literature": "literature",
    "orbits": "formula",
    "Proposition A.5": "formula",
}
"""The ancestry of the usual witnesses; all others are constructions (a curve, a symmetry, a slice).

``formula`` is a count that this package derives; ``literature`` is a formula or table that a paper prints.
"""

ENGINE_FAILED = "Macaulay2 failed"
"""Prefix of the method of evidence without a value, if the script had an error; it is printed with the answer."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement of one witness about one quantity.

    >>> Evidence("image_dim", 5, "modular", "rank at a random point", relation=">=", prime=32003).how
    'rank at a random point over F_32003'

    Attributes
    ----------
    quantity: the name of the quantity, as in the JSON output (``image_dim``).
    value: the value, or None for "undecided".
    witness: ``macaulay2``, ``modular`` (exact linear algebra over F_p), ``numpy`` (float64), ``symmetry``, ...
    method: how it was computed, in a few words.
    relation: whether the quantity equals the value or is only bounded by it.
    certainty: how sure the statement is. ``proved`` is for exact statements that a certificate can carry; in a record without one
        they become ``computed`` (:func:`m2bridge.results.vouched`).
    prime: the characteristic it was computed in, if any.
    error_probability: an upper bound of the probability that the statement is wrong, or None.
    seconds: how long it took.
    detail: further data for the reader (singular value gap, number of samples), JSON values only.
    scope: whether the quantity refers to a generic point or to the point in question; None if neither applies.
    field: the field to which the quantity refers, e.g. ``QQ`` or ``F_32003``; None if the quantity has only one.
        Quantities of different scope or field are different quantities.
    ancestry: the definition that the statement was computed from; by default that of the witness. Two pieces of evidence can
        support each other only if their ancestries differ: a mistake in the program affects both ``modular`` and ``numpy``.
        Evidence from the ``literature`` can contradict other statements and never supports one.
    """

    quantity: str
    value: Value
    witness: str
    method: str
    _: KW_ONLY
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
        """Return the ancestry, by default that of the witness."""
        return self.ancestry or _ANCESTRY.get(self.witness, "construction")

    @property
    def decides(self) -> bool:
        """Return whether it may determine a value; a statement of the literature does only as a theorem with checked
        hypotheses.
        """
        return self.stands_on != "literature" or self.certainty is Certainty.THEOREM

    @property
    def word(self) -> str:
        """Return its certainty as a word; ``compared`` if it decides nothing."""
        return self.certainty.value if self.decides else "compared"

    @property
    def subject(self) -> tuple[str, str | None, str | None]:
        """Return the subject of the statement: quantity, scope and field."""
        return self.quantity, self.scope, self.field

    @property
    def how(self) -> str:
        """Return the method, with the finite field if there is one."""
        named = not self.prime or f"F_{self.prime}" in self.method
        return self.method if named else f"{self.method} over F_{self.prime}"


def evidence_of_rank(
    quantity: str, numeric: NumericRank, method: str, *, corank_of: int | None = None, **fields: Any
) -> Evidence:
    """Return evidence of a rank in float64, or of the corank among `corank_of` columns; the value is None without a gap."""
    value = numeric.rank if numeric.rank is None or corank_of is None else corank_of - numeric.rank
    gap = float(numeric.gap) if isfinite(numeric.gap) else None
    return Evidence(
        quantity, value, "numpy", method, certainty=Certainty.NUMERIC, detail={"gap": gap}, **fields
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two pieces of evidence that cannot both be true."""

    quantity: str
    first: Evidence
    second: Evidence

    def __str__(self) -> str:
        a, b = self.first, self.second
        return (
            f"{self.quantity}: {a.witness} ({a.method}): {a.relation} {a.value}; "
            f"{b.witness} ({b.method}): {b.relation} {b.value}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The comparison of the witnesses.

    Attributes
    ----------
    verdict: False if two statements contradict each other; True if two statements of different ancestry determine every quantity
        of the answer's first line; None otherwise.
    conflicts: the pairs that contradict each other.
    twice, once: the quantities of the first line with and without a second, independent statement.
    """

    verdict: bool | None
    conflicts: tuple[Conflict, ...] = ()
    twice: tuple[str, ...] = ()
    once: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the verdict in words, with the quantities that have a second witness where others have none."""
        if self.verdict is None and self.twice:
            return f"two independent computations: {', '.join(self.twice)}; one only: {', '.join(self.once)}"
        return AGREEMENT_WORDS[self.verdict]


def contradicts(first: Evidence, second: Evidence) -> bool:
    """Return whether two statements about one quantity cannot both hold.

    >>> lower = Evidence("image_dim", 6, "modular", "rank at a random point", relation=">=")
    >>> contradicts(lower, Evidence("image_dim", 5, "symmetry", "weights minus symmetries", relation="<="))
    True
    """
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
    """Return whether two statements of different ancestry determine the same value of one quantity.

    Two lower bounds do not, nor do a lower and an upper bound that differ: these could not have contradicted each other.
    """
    if first.subject != second.subject or first.stands_on == second.stands_on:
        return False
    if "literature" in (first.stands_on, second.stands_on):
        return False
    opposite = "=" in (first.relation, second.relation) or first.relation != second.relation
    return opposite and first.value is not None and bool(first.value == second.value)


def weigh(evidence: Iterable[Evidence], headline: Mapping[str, Value] | None = None) -> Agreement:
    """Compare all evidence, quantity by quantity.

    `headline` contains the quantities of the answer's first line with their reported values (None: any value); without it, every
    quantity that has evidence counts. Other quantities can contradict each other, but do not contribute to an agreement.
    """
    groups = by_quantity(item for item in evidence if item.value is not None)
    pairs = {name: list(combinations(items, 2)) for name, items in groups.items()}
    conflicts = tuple(
        Conflict(quantity=name, first=a, second=b)
        for name, statements in pairs.items()
        for a, b in statements
        if contradicts(a, b)
    )
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
    """Fill in scope and field where they are determined; quantities that begin with a word of `at_point` refer to a point.

    The field of a quantity is QQ when all its statements are exact, F_p when all are computed modulo one p and none is exact.
    If there are statements of both kinds about one quantity, its field is left open, so that they are compared.
    """
    items = list(evidence)
    common_fields = {
        quantity: _common_field(statements) for quantity, statements in by_quantity(items).items()
    }

    def scope(item: Evidence) -> Scope:
        return "at-point" if item.quantity.startswith(at_point) else "generic"

    return tuple(
        replace(i, scope=i.scope or scope(i), field=i.field or common_fields[i.quantity]) for i in items
    )


def _common_field(items: Iterable[Evidence]) -> str | None:
    used = (i for i in items if i.decides)
    fields_used = {"QQ" if i.certainty.exact else f"F_{i.prime}" if i.prime else None for i in used}
    return fields_used.pop() if len(fields_used) == 1 else None


def by_quantity(evidence: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    """Group evidence by quantity, in the order of first occurrence."""
    groups: dict[str, list[Evidence]] = {}
    for item in evidence:
        groups.setdefault(item.quantity, []).append(item)
    return groups


class Settled(NamedTuple):
    """The value that all evidence on one quantity determines (None: undecided), its certainty and the witnesses."""

    value: Value
    certainty: Certainty
    witnesses: tuple[str, ...]


def settle(evidence: Iterable[Evidence]) -> dict[str, Settled]:
    """Return the value of each quantity and the strongest certainty that the evidence gives it.

    A value has that certainty if one witness states it, or if a lower and an upper bound are equal to it. Statements of the
    literature are not used. Conflicts are found by :func:`weigh`, not here.
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
        as_sure = [item for item in used if item.certainty.rank <= certainty.rank]
        exact, low, high = ([i.value for i in as_sure if i.relation == sign] for sign in ("=", ">=", "<="))
        if exact:
            return exact[0], certainty
        if low and high and max(low) == min(high):
            return max(low), certainty
    return None, Certainty.PROBABLE


def strongest(items: Iterable[Evidence]) -> list[Evidence]:
    """Select one decided statement for each relation and ancestry: the surest, and among bounds the sharpest."""
    best: dict[tuple[str, str], Evidence] = {}
    for item in items:
        key = (item.relation, item.stands_on if item.relation == "=" else "")
        if item.value is not None and (key not in best or _better(item, best[key])):
            best[key] = item
    return list(best.values())


def _better(item: Evidence, reference: Evidence) -> bool:
    if item.relation != "=" and item.value != reference.value and item.certainty == reference.certainty:
        return bool(item.value > reference.value if item.relation == ">=" else item.value < reference.value)
    return item.certainty.rank < reference.certainty.rank
