"""Usevich, Borsoi, Dérand, Clausel, *Identifiability of Deep Polynomial Neural Networks*, arXiv:2506.17093.

With two layers and r >= (2 d1 - min(d1, d2)) / (min(d0, d1) - 1) weights are unique up to permutations and scalings of neurons,
so that the dimension is the number of weights minus that of the hidden neurons. How far that is from necessary: the least r with
this dimension, below which no weights are identifiable.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from m2bridge import dimension


def sufficient(d0: int, d1: int, d2: int) -> int:
    """The least r >= 2 that the condition allows."""
    return max(2, -(-(2 * d1 - min(d1, d2)) // (min(d0, d1) - 1)))


def found_dim(widths: tuple[int, ...], r: int, bias: bool = False) -> int:
    shown = ",".join(map(str, widths))
    answer = dimension(
        f"mlp(widths=[{shown}],r={r},bias={'true' if bias else 'false'})", engine=False, certify=False
    )
    assert answer.certainty.value == "computed"  # exact; certify=False asks for no certificate
    return answer.image_dim


def finite(widths: tuple[int, ...], bias: bool = False) -> int:
    """Weights, with their biases, minus scalings of hidden neurons."""
    return sum((a + bias) * b - b for a, b in pairwise(widths)) + widths[-1]


@pytest.mark.parametrize(
    ("widths", "condition", "least"),
    [
        ((2, 2, 1), 3, 3),
        ((2, 2, 2), 2, 2),
        ((3, 2, 1), 3, 3),
        ((3, 3, 2), 2, 2),
        ((2, 3, 1), 5, 5),
        ((2, 3, 2), 4, 4),
        ((2, 4, 3), 5, 5),
        ((3, 4, 2), 3, 3),
        ((3, 5, 1), 5, 5),
        ((4, 3, 3), 2, 2),
        ((3, 6, 2), 5, 4),
        ((4, 8, 2), 5, 3),
    ],
)
def test_the_condition_for_two_layers_and_how_far_it_is_from_necessary(
    widths: tuple[int, int, int], condition: int, least: int
) -> None:
    assert sufficient(*widths) == condition
    dims = {r: found_dim(widths, r) for r in {condition, least, max(2, least - 1)}}
    assert dims[condition] == dims[least] == finite(widths)
    assert least == 2 or dims[least - 1] < finite(widths)


@pytest.mark.parametrize("widths", [(3, 3, 2, 2), (3, 2, 2, 2), (4, 3, 3, 2), (2, 2, 2, 2, 2)])
def test_pyramidal_networks_are_identifiable_from_squares_on(widths: tuple[int, ...]) -> None:
    """Non-increasing widths, the last at least two: r >= 2 suffices."""
    assert found_dim(widths, 2) == finite(widths)


@pytest.mark.parametrize(
    ("widths", "r"),
    [((2, 2, 1), 3), ((2, 2, 2), 2), ((2, 3, 2), 3), ((3, 2, 1), 3), ((2, 2, 2, 1), 3), ((2, 2, 2, 2), 2)],
)
def test_biases_add_their_number(widths: tuple[int, ...], r: int) -> None:
    """With biases: (d_(i-1) + 1) d_i weights a layer, minus the scalings of hidden neurons."""
    assert found_dim(widths, r, bias=True) == finite(widths, bias=True)
