"""Pearson's mixture of two Gaussians: 18 weights have the same five moments, two of them the same six.

Améndola, Faugère, Sturmfels, Moment varieties of Gaussian mixtures, arXiv:1510.04654: nine mixtures up to the exchange of the two
parts for five moments, one for six.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge import dimension, fiber, symmetries
from m2bridge.families.user_code import model_from_code

FILE = Path(__file__).parents[2] / "examples" / "pearson.py"


@pytest.mark.parametrize(("name", "points"), [("five_moments", 18), ("six_moments", 2)])
def test_how_many_mixtures_have_the_same_moments(name, points, engine):
    model = model_from_code(f"python:{FILE}:{name}")
    assert (dimension(model, engine=False).image_dim, model.parameter_count) == (5, 5)
    answer = fiber(model, engine=engine)
    assert (answer.dim_at_point, answer.degree) == (0, points)


@pytest.mark.parametrize("name", ["five_moments", "six_moments"])
def test_the_exchange_of_the_two_parts_is_found(name):
    """The symmetry that maps the weight w to 1 - w is not declared in the file."""
    answer = symmetries(model_from_code(f"python:{FILE}:{name}"), engine=False)
    exchange = ("means axis 0", "variances axis 0", "weight -> 1 - weight")
    assert [(item.group, item.acts_on, item.verified) for item in answer.finite] == [("S_2", exchange, True)]
