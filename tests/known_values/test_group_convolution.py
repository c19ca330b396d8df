"""Group convolutional networks: dimensions and fibers in the tests of the package pgcnn, activations of degrees 2, 2, 1.

*The Geometry of Polynomial Group Convolutional Neural Networks*, arXiv:2603.29566: generic fibers are one orbit of G x G, up to
rescaling (a conjecture for this parametrization): |G|^2 points.
"""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import dimension, fiber
from m2bridge.errors import SpecError
from m2bridge.models import parse_spec
from m2bridge.models.convolution import cayley_table


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


@pytest.mark.parametrize(("group", "points"), [("C2", 4), ("C3", 9)])
def test_generic_fibers_up_to_rescaling(group, points, engine):
    """By Macaulay2: components of the fiber over the closure, each one orbit of the rescalings."""
    found = fiber(f"group-convolution(group={group},layers=3,r=2)", engine=engine)
    assert (found.orbits, found.fiber_dim, found.agreement) == (points, 2, True)


class Network:
    """Three layers over a group at many inputs, with derivatives, for complex weights."""

    def __init__(self, group: str, inputs: np.ndarray) -> None:
        self.table = cayley_table(group)
        self.seen = inputs[:, self.table]

    def __call__(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        T = self.table
        w1, w2, w3 = weights.reshape(3, len(T))
        y = self.seen @ w1
        squares = (y**2)[:, T]
        z = squares @ w2
        by_z = 2 * z * w3
        by_y = np.zeros_like(y)
        for h in range(len(T)):
            by_y[:, T[:, h]] += by_z * w2[h]
        parts = [
            np.einsum("nu,nuk->nk", 2 * y * by_y, self.seen),
            np.einsum("ng,ngh->nh", by_z, squares),
            z**2,
        ]
        return z**2 @ w3, np.concatenate(parts, axis=1)


def translates(weights: np.ndarray, T: np.ndarray) -> list[np.ndarray]:
    """(w1(a .), w2(b . a^-1), w3(. b^-1)) for all a and b."""
    n = len(T)
    w1, w2, w3 = weights.reshape(3, n)
    inverse = [int(np.flatnonzero(row == 0)[0]) for row in T]
    return [
        np.concatenate([w1[T[a]], w2[T[T[b], inverse[a]]], w3[T[:, inverse[b]]]])
        for a in range(n)
        for b in range(n)
    ]


def solution(network: Network, goal: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """Weights with these outputs by Levenberg and Marquardt; None where the method does not arrive."""
    weights, damping = start, 1.0
    values, slopes = network(weights)
    error = np.linalg.norm(values - goal)
    for _ in range(300):
        normal = slopes.conj().T @ slopes
        damped = normal + damping * np.diag(normal.diagonal() + 1e-12)
        step = np.linalg.solve(damped, slopes.conj().T @ (values - goal))
        moved, derivative = network(weights - step)
        if np.linalg.norm(moved - goal) < error:
            weights, values, slopes = weights - step, moved, derivative
            error, damping = np.linalg.norm(moved - goal), max(damping / 5, 1e-15)
        else:
            damping *= 4
        if error < 1e-9 * np.linalg.norm(goal):
            return weights
    return None


@pytest.mark.slow
def test_the_fiber_over_d4_has_64_points_as_far_as_newton_sees():
    """24 weights are out of reach of a Groebner basis: every solution that is found is one of the 64 translates."""
    rng = np.random.default_rng(0)
    network = Network("D4", rng.normal(size=(340, 8)))
    true = rng.normal(size=24)
    goal, _ = network(true)
    known = translates(true, network.table)
    for point in known:
        np.testing.assert_allclose(network(point)[0], goal)

    def rescaled(w):
        return np.concatenate([w[:8] / w[0], w[8:16] / w[8]])

    points = np.array([rescaled(point) for point in known])
    assert min(np.abs(points[i] - points[j]).max() for i in range(64) for j in range(i)) > 1e-3
    found = [solution(network, goal, rng.normal(size=24) + 1j * rng.normal(size=24)) for _ in range(8)]
    arrived = [rescaled(w) for w in found if w is not None]
    nearest = [np.abs(points - w).max(axis=1).argmin() for w in arrived]
    assert len(arrived) >= 4
    assert len(set(nearest)) >= 3, "different points are found"
    for w, k in zip(arrived, nearest, strict=True):
        np.testing.assert_allclose(w, points[k], atol=1e-4 * np.abs(points).max())
