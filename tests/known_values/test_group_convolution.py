"""Group convolutional networks: dimensions in the tests of the package pgcnn, activations of degrees 2, 2, 1."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import dimension
from m2bridge.errors import SpecError
from m2bridge.models import parse_spec
from m2bridge.models.group_convolution import cayley_table


@pytest.mark.parametrize(("group", "expected"), [("C2", 4), ("C3", 7), ("D4", 22)])
def test_dimensions_of_three_layers(group, expected, engine):
    found = dimension(f"group-convolution(group={group},layers=3,r=2)", engine=engine)
    assert (found.image_dim, found.certainty.value, found.agreement) == (expected, "proved", True)


@pytest.mark.parametrize("group", ["C1", "C5", "D2", "D3", "D4"])
def test_the_tables_are_those_of_groups(group):
    table = cayley_table(group)
    n = len(table)
    assert (table[0] == np.arange(n)).all()
    assert (table[:, 0] == np.arange(n)).all()
    assert (np.sort(table, axis=1) == np.arange(n)).all(), "inverses"
    assert (table[table] == table[:, table]).all(), "associative"
    assert (table == table.T).all() == group.startswith(("C", "D2"))


def test_a_cyclic_convolution_is_written_out():
    """C2: y = (w1 + w2 s)^2 convolved with v, at the identity."""
    model = parse_spec("group-convolution(group=C2,layers=2,r=2)")
    w, v, x = np.array([2, 3]), np.array([5, 7]), np.array([1, 4])
    hidden = np.array([2 * 1 + 3 * 4, 2 * 4 + 3 * 1]) ** 2
    assert model.forward({"w1": w, "w2": v}, x).tolist() == [5 * hidden[0] + 7 * hidden[1]]


@pytest.mark.parametrize("group", ["E8", "C0", "D31", "C"])
def test_other_groups_are_refused(group):
    with pytest.raises(SpecError, match="C2, C3"):
        parse_spec(f"group-convolution(group={group},layers=2)")
