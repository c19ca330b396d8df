"""Degrees of polynomial convolutional networks, counted by weights over a random linear section.

Shahverdi, Marchetti, Kohn, arXiv:2410.00722: the degree is (|k| - L)! times the product of r^((L-j-1)(k_j-1)) / (k_j - 1)!, and
the parametrization is one to one up to scalings, generically.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge import closure
from m2bridge.families import Convolution
from m2bridge.protocol import read
from m2bridge.scripts import render

TEMPLATE = Path(__file__).with_name("degree_by_weights.m2.j2")


@pytest.mark.parametrize(("filters", "degree"), [((2, 2), 4), ((2, 2, 2), 48), ((3, 3), 24), ((3, 2), 12)])
def test_the_degree_is_weights_over_a_section_by_weights_over_a_point(filters, degree, engine):
    model = Convolution(filters=filters, r=2)
    script = render(TEMPLATE, {**model.m2_parameters, "blocks": filters}, partial=model.m2_partial)
    found = read(engine.run(script))
    assert found["fiber"] == 1
    assert found["section"] == degree * found["fiber"]


def test_the_equations_have_that_degree_too(engine):
    assert closure("convolution(filters=[2,2],r=2)", engine=engine).degree == 4
