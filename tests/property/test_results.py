"""Weighing evidence: order does not matter, and more evidence never heals a conflict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence, contradicts, settle, weigh

evidences = st.builds(
    Evidence,
    quantity=st.sampled_from(["image_dim", "codim"]),
    witness=st.sampled_from(["macaulay2", "numpy", "modular"]),
    method=st.just("m"),
    value=st.none() | st.integers(0, 4),
    relation=st.sampled_from(["=", ">=", "<="]),
    certainty=st.sampled_from(list(Certainty)),
)
bodies = st.lists(evidences, max_size=6)


@given(bodies, bodies)
def test_more_evidence_never_heals_a_conflict(before: list[Evidence], more: list[Evidence]) -> None:
    stated = {
        item.quantity: None for item in before if item.value is not None
    }  # the first line asks for no more
    first, both = weigh(before, stated), weigh(before + more, stated)
    if first.verdict is False:
        assert both.verdict is False
        assert set(map(str, first.conflicts)) <= set(map(str, both.conflicts))
    if first.verdict is True:
        assert both.verdict is not None


@given(bodies, st.randoms(use_true_random=False))
def test_order_does_not_matter(body: list[Evidence], random: object) -> None:
    shuffled = list(body)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert weigh(shuffled).verdict is weigh(body).verdict
    assert len(weigh(shuffled).conflicts) == len(weigh(body).conflicts)


@given(evidences, evidences)
def test_contradiction_means_that_no_number_satisfies_both(first: Evidence, second: Evidence) -> None:
    """Against the definition: search every integer that the values here could need."""

    def allows(item: Evidence, x: int) -> bool:
        return {"=": x == item.value, ">=": x >= item.value, "<=": x <= item.value}[item.relation]

    if first.quantity != second.quantity or first.value is None or second.value is None:
        assert not contradicts(first, second)
    else:
        possible = any(allows(first, x) and allows(second, x) for x in range(-1, 6))
        assert contradicts(first, second) is contradicts(second, first) is (not possible)


@given(bodies)
def test_without_conflict_the_settled_value_satisfies_all_evidence(body: list[Evidence]) -> None:
    if weigh(body).verdict is False:
        return
    for quantity, settled in settle(body).items():
        if settled.value is None:
            continue
        claim = Evidence(quantity, settled.value, "settled", "m")
        assert not any(contradicts(claim, item) for item in body)


@given(bodies)
def test_without_conflict_nothing_is_proved_without_a_proof(body: list[Evidence]) -> None:
    for quantity, settled in settle(body).items():
        if settled.certainty is Certainty.PROVED:
            assert any(item.quantity == quantity and item.certainty is Certainty.PROVED for item in body)
