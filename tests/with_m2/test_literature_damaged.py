"""No formula or table of the literature decides an answer of closure, membership, singular-locus or critical-points.

Each is damaged, one at a time; the headline of every answer keeps its values. The dimension: unit/test_literature.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from m2bridge.engine import Engine
from m2bridge.evidence import settle
from m2bridge.families.knowledge import Knowledge
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.membership import membership
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.results import Result
from tests.answering import Answers
from tests.unit.test_literature import damage

ASKED: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "closure of attention": (closure, "lightning(d=2,dp=1)", {"field": "QQ"}),
    "closure of attention of rank 1": (closure, "lightning(d=2,dp=2,a=1)", {}),
    "closure of a convolution": (closure, "convolution(filters=[2,2],r=2)", {"field": "QQ"}),
    "closure of a perceptron": (closure, "mlp(widths=[2,2,1],r=4)", {"field": "QQ"}),
    "closure of matrices": (closure, "linear(widths=[3,2,3])", {"field": "QQ"}),
    "closure of tensors": (closure, "cp(sizes=[2,2,3],rank=2)", {"field": "QQ"}),
    "a point of the image": (membership, "linear(widths=[2,1,2])", {"point": [1, 2, 2, 4]}),
    "a point outside": (membership, "lightning(d=2,dp=1)", {"point": [1, 0, 0, 0, 0, 1]}),
    "singular locus of attention": (singular_locus, "lightning(d=2,dp=1)", {}),
    "singular locus of matrices": (singular_locus, "linear(widths=[2,1,2])", {}),
    "critical points of attention": (critical_points, "lightning(d=2,dp=1)", {}),
    "critical points of matrices": (critical_points, "linear(widths=[2,1,2])", {}),
}
FORMULAS = tuple(item.name for item in fields(Knowledge) if "Formula" in str(item.type))
CRITICAL = "m2bridge.questions.critical_points.counting"


def headline(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.HEADLINE}


def exact(result: Result) -> dict[str, Any]:
    """The quantities that the answer calls proved, theorem or computed, unless its witnesses disagree."""
    if result.agreement is False:
        return {}
    settled = settle(result.evidence).items()
    return {name: item.value for name, item in settled if item.value is not None and item.certainty.exact}


def ask_all(answered: Answers, names: list[str]) -> None:
    """Have the undamaged answers computed."""
    for name in names:
        question, spec, options = ASKED[name]
        answered(question, spec, **options)


def compare(engine: Engine, answered: Answers, names: list[str]) -> list[bool | None]:
    """Ask again, compare with the undamaged answers, and return the verdicts of the witnesses.

    An answer may be left open where its witnesses disagree; it is never another one.
    """
    verdicts = []
    for name in names:
        question, spec, options = ASKED[name]
        truth, damaged = answered(question, spec, **options), question(spec, engine=engine, **options)
        left_open = (None,) if damaged.agreement is False else ()
        for key, value in headline(truth).items():
            assert headline(damaged)[key] in (value, *left_open), (name, key)
        right = exact(truth)
        for key, value in exact(damaged).items():
            assert value == right.get(key, value), (name, key)
        verdicts.append(damaged.agreement)
    return verdicts


@pytest.mark.parametrize("change", [1, pytest.param(-1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_damaged_formula_decides_nothing(
    formula: str, change: int, engine: Engine, answered: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_all(answered, list(ASKED))
    damage(monkeypatch, formula, lambda known: replace(known, value=(known.value or 0) + change))
    verdicts = compare(engine, answered, list(ASKED))
    if formula != "dimension_bound":  # a bound that is one too large contradicts nothing
        assert False in verdicts


def less(right: Callable[..., Any]) -> Callable[..., Any]:
    """A count that is one too small, or a table without its first row."""

    def wrong(*given: Any, **more: Any) -> Any:
        found = right(*given, **more)
        return found[1:] if isinstance(found, tuple) else found if found is None else found - 1

    return wrong


@pytest.mark.parametrize("name", ["generic_ed_degree", "known_strata", "orbit_pairs_dim"])
def test_a_damaged_count_of_critical_points_decides_nothing(
    name: str, engine: Engine, answered: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in ASKED if name.startswith("critical")]
    ask_all(answered, names)
    module = __import__(CRITICAL, fromlist=[name])
    monkeypatch.setattr(f"{CRITICAL}.{name}", less(getattr(module, name)))
    verdicts = compare(engine, answered, names)
    if name == "generic_ed_degree":
        assert False in verdicts
