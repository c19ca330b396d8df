"""Every question about models refuses, by name, a thing that is neither a model nor a spec."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import m2bridge
from m2bridge.errors import InputError
from m2bridge.questions import QUESTIONS, find
from m2bridge.questions.kernel import MODEL
from tests.replay import ReplayEngine

ABOUT_MODELS = [question for question in map(find, QUESTIONS) if question.subject is MODEL]


@pytest.mark.parametrize("question", ABOUT_MODELS, ids=lambda question: question.name)
@pytest.mark.parametrize(
    "thing", [5, None, Fraction(1, 2), ["lightning(d=2,dp=1)"], b"lightning", m2bridge.Lightning]
)
def test_an_object_that_is_not_a_model_is_bad_input(
    question: Callable[..., Any], thing: object, replay: ReplayEngine
) -> None:
    with pytest.raises(InputError, match="spec") as caught:
        question(thing, engine=replay)
    assert type(thing).__name__ in str(caught.value)


def test_a_function_is_an_error_that_names_from_callable() -> None:
    with pytest.raises(InputError, match="from_callable"):
        m2bridge.dimension(lambda W: W)  # type: ignore[arg-type]


@pytest.mark.parametrize("thing", [5, None, {"x"}, ["x", 5]])
def test_an_object_that_is_not_an_ideal_is_bad_input(thing: Any, replay: ReplayEngine) -> None:
    with pytest.raises(InputError, match=r"ideal .* (int|NoneType|set|list) "):
        m2bridge.ideal(thing, engine=replay)


def test_an_object_that_is_not_a_spec_is_bad_input() -> None:
    with pytest.raises(InputError, match="int '5'"):
        m2bridge.parse_spec(5)  # type: ignore[arg-type]
