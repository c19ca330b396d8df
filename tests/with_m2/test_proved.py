"""An answer is called proved exactly if ``m2bridge check`` verifies its record: the questions that need Macaulay2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from m2bridge.questions.boundary import boundary
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.fiber import fiber
from m2bridge.questions.membership import membership
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_point import singular_point
from tests.answering import Answers
from tests.unit.test_proved import assert_proved_exactly_if_verified, model_of

POLYNOMIAL = (
    "lightning(d=2,dp=1)",
    "linear(widths=[2,1,2])",
    "mlp(widths=[2,2,1],r=2,bias=true)",
    "convolution(filters=[2,2],r=2)",
    "cp(sizes=[2,2,2],rank=2)",
    "map:t->t^2;0;t^3",
    "squares",
    "no inputs",
)


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_points(name: str, answered: Answers) -> None:
    """Points with weights, one without, and outputs at an input; singular, smooth and undecided points."""
    model, rng = model_of(name), np.random.default_rng(0)
    weights: dict[str, Any] = {key: rng.integers(-3, 4, size=s) for key, s in model.parameters.items()}
    at = {key: value.tolist() for key, value in weights.items()}
    zero = {key: (0 * value).tolist() for key, value in weights.items()}
    for point in ({"weights": at}, [1] * model.coordinate_count):
        assert_proved_exactly_if_verified(answered(membership, model, point=point))
    for options in ({"at": at}, {"at": zero}, {"max_degree": 1}):
        assert_proved_exactly_if_verified(answered(singular_point, model, **options))


@pytest.mark.parametrize("name", [*POLYNOMIAL, "tanh"])
def test_sets(name: str, answered: Answers) -> None:
    model = model_of(name)
    assert_proved_exactly_if_verified(answered(fiber, model))
    if model.polynomial:
        for question in (closure, singular_locus):
            assert_proved_exactly_if_verified(answered(question, model))


def test_layers(answered: Answers) -> None:
    for question in (boundary, critical_points):
        assert_proved_exactly_if_verified(answered(question, "lightning(d=2,dp=1)"))
