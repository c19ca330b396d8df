"""No formula or table of the literature decides what is proved: each is damaged, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from m2bridge import families
from m2bridge.certainty import Certainty
from m2bridge.families.base import Formula, Knowledge, Model
from m2bridge.questions.dimension import Dimension, dimension

SPECS = (
    "lightning(d=3,dp=2,a=2,t=2)", "deep-lightning(d=[2,2,2],a=[2,2],t=3)", "softmax(d=[2,2],t=2)", "linear(widths=[3,2,3])",
    "mlp(widths=[2,3,2],r=2)", "mlp(widths=[3,4,1],r=2)", "convolution(filters=[2,2],r=2)", "cp(sizes=[2,2,2,2],rank=3)",
    "cp(sizes=[2,2,2],rank=2)", "deep-lightning(d=[3,3],a=[1],t=2,heads=[2])",
)  # fmt: skip
NAMES = ("formula", "closure_degree", "dimension_bound")
COUNTS = (
    "m2bridge.bounds.model_upper.attention_dim",
    "m2bridge.bounds.virtual_weights.attention_dim",
    "m2bridge.bounds.virtual_weights.virtual_dim_upper",
)
"""Counts that upper bounds use."""


def families_with_knowledge() -> Iterator[type[Model]]:
    """Every class of models that states what is known."""
    classes, left = set[type[Model]](), [Model]
    while left:
        classes.add(one := left.pop())
        left += one.__subclasses__()
    yield from (one for one in classes if one is not Model and "knowledge" in vars(one))


def damage(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[[Formula], Formula]) -> None:
    """Change one formula of every family."""
    for one in families_with_knowledge():
        right = vars(one)["knowledge"]

        def knowledge(model: Any, right: Any = right) -> Knowledge:
            known: Knowledge = (right.fget if isinstance(right, property) else right.func)(model)
            formula: Formula | None = getattr(known, name)
            applies = formula is not None and formula.value is not None
            return replace(known, **{name: wrong(formula) if applies and formula else None})

        monkeypatch.setattr(one, "knowledge", property(knowledge))


def asked(spec: str) -> Dimension:
    return dimension(spec, engine=False)


def is_proved(found: Dimension) -> bool:
    return found.certainty is Certainty.PROVED and found.agreement is not False


@pytest.fixture(scope="module")
def truths() -> dict[str, Dimension]:
    return {spec: asked(spec) for spec in SPECS}


def test_there_are_formulas_to_damage() -> None:
    for spec in SPECS:
        known = families.parse_spec(spec).knowledge
        assert any(getattr(known, name) is not None for name in NAMES), spec


@pytest.mark.parametrize("change", [-1, 1, 7])
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_formula_changes_nothing_that_is_proved(
    name: str, change: int, truths: dict[str, Dimension], monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(monkeypatch, name, lambda formula: replace(formula, value=(formula.value or 0) + change))
    for spec, truth in truths.items():
        answer = asked(spec)
        if is_proved(answer):
            assert answer.image_dim == truth.image_dim, spec


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("place", COUNTS)
def test_a_damaged_count_changes_nothing_that_is_proved(
    place: str, change: int, truths: dict[str, Dimension], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = place.rpartition(".")
    right = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(place, lambda *given, **more: right(*given, **more) + change)
    for spec, truth in truths.items():
        answer = asked(spec)
        if is_proved(answer):
            assert answer.image_dim == truth.image_dim, spec


def test_a_bound_of_the_literature_makes_a_theorem_and_no_second_witness() -> None:
    answer = asked("cp(sizes=[2,2,2,2],rank=3)")
    assert (answer.image_dim, answer.certainty, answer.certificate) == (14, Certainty.THEOREM, None)
    assert answer.agreement is None
    assert "Catalisano" in answer.statement
    assert {e.word for e in answer.evidence if e.witness == "formula"} == {"compared"}


def test_a_formula_that_contradicts_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "formula", lambda formula: replace(formula, value=99))
    assert asked("lightning(d=2,dp=1)").agreement is False
