"""Evidence is compared, never outvoted: conflicts both ways, bounds, undecided witnesses, and what a quantity settles to."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from m2bridge import records
from m2bridge.certainty import Certainty
from m2bridge.errors import CertificateError, InputError
from m2bridge.evidence import AGREEMENT_WORDS, Evidence, contradicts, labelled, settle, weigh
from m2bridge.questions.dimension import dimension
from m2bridge.results import RESULT_TYPES, Result


def says(
    value: Any, relation: str = "=", witness: str = "modular", quantity: str = "image_dim", **more: Any
) -> Evidence:
    return Evidence(quantity, value, witness, "m", relation=relation, **more)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("=", 5), ("=", 5), False),
        (("=", 5), ("=", 6), True),
        (("=", 5), (">=", 5), False),
        (("=", 5), (">=", 6), True),
        (("=", 5), (">=", 4), False),
        (("=", 5), ("<=", 5), False),
        (("=", 5), ("<=", 4), True),
        (("=", 5), ("<=", 6), False),
        ((">=", 5), ("<=", 5), False),
        ((">=", 6), ("<=", 5), True),
        ((">=", 4), ("<=", 5), False),
        ((">=", 4), (">=", 9), False),
        (("<=", 4), ("<=", 9), False),
        (("=", [1, 2]), ("=", [1, 2]), False),
        (("=", [1, 2]), ("=", [2, 1]), True),
        (("=", {"2": 3}), ("=", {"2": 2}), True),
        (("=", True), ("=", False), True),
        (("=", None), ("=", 5), False),
        ((">=", None), ("<=", 5), False),
    ],
)
def test_contradiction_is_symmetric(first: tuple[str, Any], second: tuple[str, Any], expected: bool) -> None:
    a, b = says(first[1], first[0]), says(second[1], second[0], witness="macaulay2")
    assert contradicts(a, b) is contradicts(b, a) is expected


def test_different_quantities_never_contradict() -> None:
    assert not contradicts(says(1), says(2, quantity="codim"))
    assert weigh([says(1), says(2, quantity="codim", witness="macaulay2")]).verdict is None


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ([], None),
        ([says(5)], None),
        ([says(5), says(5)], None),  # one witness saying it twice is still one witness
        ([says(5), says(None, witness="macaulay2")], None),
        ([says(None), says(None, witness="macaulay2")], None),
        ([says(5), says(5, witness="macaulay2")], True),
        (
            [says(5, ">="), says(7, "<=", witness="macaulay2")],
            None,
        ),  # room between them: they could not contradict
        ([says(5, ">="), says(5, "<=", witness="macaulay2")], True),
        ([says(5, ">="), says(5, ">=", witness="macaulay2")], None),  # two lower bounds
        ([says(5), says(5, ">=", witness="macaulay2")], True),
        ([says(5), says(4, ">=", witness="macaulay2")], None),
        (
            [says(5), says(5, witness="numpy"), says(5, witness="substitution")],
            None,
        ),  # one program under three names
        ([says(5, field="QQ"), says(6, witness="macaulay2", field="F_101")], None),  # two quantities
        ([says(5, scope="generic"), says(6, witness="macaulay2", scope="at-point")], None),
        ([says(5), says(6, witness="macaulay2")], False),
        ([says(5), says(6)], False),  # a witness that contradicts itself
        ([says(5), says(5, witness="macaulay2"), says(6, witness="formula")], False),  # no majority
        (
            [
                says(5),
                says(5, witness="macaulay2"),
                says(1, quantity="codim"),
                says(2, quantity="codim", witness="macaulay2"),
            ],
            False,
        ),
    ],
)
def test_verdict(evidence: list[Evidence], verdict: bool | None) -> None:
    assert weigh(evidence).verdict is verdict
    assert weigh(reversed(evidence)).verdict is verdict
    assert bool(weigh(evidence).conflicts) is (verdict is False)


def test_a_conflict_names_both_sides() -> None:
    (conflict,) = weigh([says(5), says(5, witness="macaulay2"), says(6, ">=", witness="curves")]).conflicts[
        :1
    ]
    text = str(conflict)
    assert conflict.quantity == "image_dim"
    assert "modular (m): = 5" in text
    assert "curves (m): >= 6" in text


def test_all_pairs_in_conflict_are_reported() -> None:
    assert len(weigh([says(1, witness="a"), says(2, witness="b"), says(3, witness="c")]).conflicts) == 3


def test_weakest_certainty() -> None:
    proved, theorem, computed, probable, numeric, undecided = Certainty
    assert Certainty.weakest([theorem, proved]) is theorem
    assert Certainty.weakest([computed, theorem]) is computed
    assert [word.exact for word in Certainty] == [True, True, True, False, False, False]
    assert Certainty.weakest([proved, numeric, probable]) is numeric
    assert Certainty.weakest([proved, probable]) is probable
    assert Certainty.weakest([proved]) is proved
    assert Certainty.weakest([numeric, undecided]) is undecided
    assert Certainty.weakest([]) is numeric


@pytest.mark.parametrize(
    ("evidence", "value", "certainty"),
    [
        ([says(5)], 5, "probable"),
        ([says(5), says(5, certainty=Certainty.PROVED)], 5, "proved"),
        ([says(5, ">=", certainty=Certainty.PROVED), says(5, "<=", certainty=Certainty.PROVED)], 5, "proved"),
        ([says(5, ">=", certainty=Certainty.PROVED), says(5, "<=")], 5, "probable"),
        ([says(4, ">=", certainty=Certainty.PROVED), says(5, certainty=Certainty.NUMERIC)], 5, "numeric"),
        ([says(4, ">="), says(6, "<=")], None, "probable"),
        ([says(4, ">=", certainty=Certainty.PROVED)], None, "probable"),
        ([says(None)], None, "probable"),
        ([says(5, certainty=Certainty.NUMERIC), says(6, certainty=Certainty.PROVED)], 6, "proved"),
    ],
)
def test_settled_value_and_certainty(evidence: list[Evidence], value: int | None, certainty: str) -> None:
    for order in (evidence, evidence[::-1]):
        settled = settle(order)["image_dim"]
        assert (settled.value, settled.certainty.value) == (value, certainty)


def test_settled_names_only_witnesses_that_decided() -> None:
    settled = settle([says(5, witness="a"), says(None, witness="b"), says(5, witness="a")])["image_dim"]
    assert settled.witnesses == ("a",)


def test_results_have_a_short_repr_and_a_table() -> None:
    """Nothing else changes: they are equal, pickled and recorded as before."""
    answer = dimension("lightning(d=2,dp=1)", engine=False)
    assert repr(answer) == (
        f"Dimension('lightning(d=2,dp=1,a=2,t=2)': {answer.view().answer}; proved, {AGREEMENT_WORDS[True]})"
    )
    table = answer._repr_html_()
    assert "<span class='answer'>dimension 5, affine</span>" in table
    assert (
        table.index("dimension 5")
        < table.index(">proved<")
        < table.index("seed 0")
        < table.index("parameters")
    )
    assert AGREEMENT_WORDS[True] in table
    assert ">parameters</th><td>10</td>" in table
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert replace(answer, image_dim=4) != answer
    assert records.from_document(records.to_document(answer)) == answer


def test_a_repr_is_one_bounded_line_that_names_a_limit() -> None:
    answer = dimension("lightning(d=2,dp=1)", engine=False)
    stopped = replace(answer, model="map:<x>" + "+x" * 500, limit="time", agreement=False)
    assert len(repr(stopped)) < 250
    assert "\n" not in repr(stopped)
    assert f"; proved, {AGREEMENT_WORDS[False]}, " in repr(stopped)
    assert "limit" in repr(stopped)
    assert "map:&lt;x&gt;" in stopped._repr_html_()
    assert len(stopped._repr_html_()) < 3000


@pytest.mark.parametrize("kind", RESULT_TYPES.values(), ids=lambda kind: kind.__name__)
def test_every_result_type_has_the_short_repr(kind: type[Result]) -> None:
    assert kind.__repr__ is Result.__repr__
    assert callable(kind._repr_html_)


def test_labels_are_put_where_they_are_plain() -> None:
    proved = {"certainty": Certainty.PROVED}
    found = labelled(
        [
            says(1, quantity="degree", prime=101),
            says(2, quantity="codim", **proved),
            says(2, quantity="codim", witness="macaulay2", prime=101),
            says(3, quantity="tangent (1,1,1)", **proved),
        ],
        ("tangent",),
    )
    assert [item.field for item in found] == ["F_101", None, None, "QQ"]
    assert [item.scope for item in found] == ["generic", "generic", "generic", "at-point"]
    assert (
        weigh(found, {"codim": 2}).verdict is True
    )  # what is said of one quantity in two ways is still compared


def test_witnesses_agree_only_where_every_quantity_of_the_first_line_has_two() -> None:
    pair = [says(5, quantity="codim"), says(5, quantity="codim", witness="macaulay2")]
    helper = [says(1, quantity="helper"), says(1, quantity="helper", witness="macaulay2")]
    alone = says(7, quantity="degree")
    comparison = weigh([*pair, *helper, alone], {"codim": 5, "degree": 7})
    assert (comparison.verdict, comparison.twice, comparison.once) == (None, ("codim",), ("degree",))
    assert comparison.words.index("codim") < comparison.words.index("degree")
    assert weigh([*helper, alone], {"degree": 7}).words == AGREEMENT_WORDS[None]
    assert weigh([*pair, *helper], {"codim": 5}).words == AGREEMENT_WORDS[True]
    assert weigh(pair, {"codim": 6}).verdict is None  # they agree on another value than the answer's
    assert weigh([*pair, *helper, alone, says(2, quantity="helper")], {"codim": 5}).verdict is False


def test_printed_formulas_are_compared_but_never_evidence() -> None:
    formula = Evidence("degree", 32, "formula", "a paper", ancestry="literature")
    assert weigh([says(20, quantity="degree"), formula], {"degree": 20}).verdict is False
    agreeing = [
        says(20, quantity="degree"),
        Evidence("degree", 20, "formula", "a paper", ancestry="literature"),
    ]
    assert weigh(agreeing, {"degree": 20}).verdict is None
    assert settle([formula])["degree"].value is None


@pytest.mark.parametrize("name", sorted(records.result_types()))
def test_every_question_without_a_second_definition_reports_it(name: str) -> None:
    kind = records.result_types()[name]
    for quantity in kind.HEADLINE:
        comparison = weigh(
            [says(3, quantity=quantity), says(3, quantity=quantity, witness="numpy")], {quantity: 3}
        )
        assert comparison.words == AGREEMENT_WORDS[None]  # two ranks of one program are one witness
    if len(kind.HEADLINE) > 1:
        first, *rest = kind.HEADLINE
        both = [says(3, quantity=first), says(3, quantity=first, witness="macaulay2")]
        told = weigh(both, dict.fromkeys(kind.HEADLINE)).words
        assert told.index(first) < told.index(", ".join(rest))


def test_a_field_that_is_a_tuple_is_compared_with_evidence_that_is_a_list() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Degrees(Result):
        HEADLINE = ("degrees",)
        degrees: tuple[tuple[int, ...], ...]

    evidence = tuple(
        says([[1, 2], [3]], quantity="degrees", witness=name) for name in ("modular", "macaulay2")
    )
    answer = Degrees(
        model="m", certainty=Certainty.PROBABLE, agreement=None, evidence=evidence, seed=0, seconds=0.0, degrees=((1, 2), (3,))
    )  # fmt: skip
    assert answer.weighed.verdict is True
    assert replace(answer, degrees=((1, 2), (4,))).weighed.verdict is None


def test_a_result_saves_and_cites_itself(tmp_path: Path) -> None:
    answer = dimension("lightning(d=2,dp=1)", engine=False)
    path = answer.save(tmp_path / "records")
    assert records.load(path) == answer
    assert answer.image_dim == 5
    text = answer.cite()
    assert "@" in text
    assert "proved" in text
    false = replace(answer, certificate={**answer.certificate, "claim": "nothing"})
    with pytest.raises((CertificateError, InputError)):
        false.cite()
