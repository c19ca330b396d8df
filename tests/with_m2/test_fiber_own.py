"""Fibers of networks that name no symmetries: what is found in their programs explains them."""

from __future__ import annotations

import numpy as np
import pytest

import m2bridge
from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.families import MLP, parse_spec
from m2bridge.symmetry.finite import finite_group


def perceptron() -> m2bridge.Model:
    def network(x: np.ndarray, W1: np.ndarray, W2: np.ndarray) -> np.ndarray:
        return W2 @ (W1 @ x) ** 2

    return m2bridge.from_callable(network, {"W1": (2, 3), "W2": (2, 2)}, inputs={"x": (3,)})


def attention() -> m2bridge.Model:
    def network(X: np.ndarray, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        return V @ X @ ((K @ X).T @ (Q @ X))

    return m2bridge.from_callable(network, {"Q": (1, 2), "K": (1, 2), "V": (2, 2)}, inputs={"X": (2, 2)})


def test_a_user_defined_perceptron_has_the_verdict_of_the_family(engine: Engine) -> None:
    """Two quadratic neurons: the fiber is two orbits of the scalings, exchanged by the swap of the neurons."""
    own, named = (
        m2bridge.fiber(perceptron(), engine=engine),
        m2bridge.fiber(MLP(widths=(3, 2, 2), r=2), engine=engine),
    )
    assert (own.verdict, own.orbits, own.known_symmetry_dim) == ("identifiable-up-to-symmetry", 2, 2)
    assert (own.verdict, own.orbits, own.known_symmetry_dim) == (
        named.verdict,
        named.orbits,
        named.known_symmetry_dim,
    )
    assert own.agreement is not False


def test_a_user_defined_attention_head_is_identifiable(engine: Engine) -> None:
    """Q, K, V up to two scalings (Theorem 3.2: a = 1, so that GL_a is a scaling too)."""
    answer = m2bridge.fiber(attention(), engine=engine)
    assert (answer.verdict, answer.known_symmetry_dim, answer.dim_at_point) == (
        "identifiable-up-to-symmetry",
        2,
        2,
    )


@pytest.mark.parametrize(
    ("spec", "orbits", "verdict"),
    [
        ("map:s,t->s^2;s*t;t^2", 2, "identifiable-up-to-symmetry"),  # a sign
        ("map:s->s^3+1", 3, "finite-up-to-symmetry"),  # roots of unity are no signs
        ("map:a,b,c,d->a*c;a*d;b*c;b*d", 1, "identifiable-up-to-symmetry"),  # a scaling
        ("map:a,b,c->(a+b)*c", None, "open-orbit"),  # linear fields, beside a translation
        ("map:a,b,c,d->a+b;a*b;c+d;a*c+b*d", 2, "identifiable-up-to-symmetry"),  # a <-> b with c <-> d
    ],
)
def test_maps(engine: Engine, spec: str, orbits: int | None, verdict: str) -> None:
    answer = m2bridge.fiber(spec, engine=engine)
    assert (answer.orbits, answer.verdict) == (orbits, verdict)


def test_symmetries_that_are_not_linear_are_mentioned(engine: Engine) -> None:
    """s + t^2 is constant along -2 t d/ds + d/dt, which is no linear field: the verdict is not the last word."""
    answer = m2bridge.fiber("map:s,t->s+t^2", engine=engine)
    assert answer.verdict == "not-identifiable"
    assert "linear symmetries" in answer.explanation
    assert "dimension 1" in answer.explanation


def test_permutations_of_neurons_are_known_in_every_family(engine: Engine) -> None:
    """Two cubes of affine forms are determined up to their order (Sylvester), with biases as without."""
    answer = m2bridge.fiber("mlp(widths=[2,2,1],r=3,bias=true)", engine=engine)
    assert (answer.orbits, answer.verdict) == (2, "identifiable-up-to-symmetry")


@pytest.mark.slow
def test_a_network_whose_fiber_no_symmetry_explains(engine: Engine) -> None:
    """Three quadratic neurons with biases reach all 12 coefficients: fibers of dimension 5, orbits of dimension 3."""

    def network(x: np.ndarray, W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray) -> np.ndarray:
        h = (W1 @ x + b1) ** 2
        return sum(W2[:, j] * h[j] for j in range(3)) + b2

    shapes = {"W1": (3, 2), "b1": (3,), "W2": (2, 3), "b2": (2,)}
    model = m2bridge.from_callable(network, shapes, inputs={"x": (2,)})
    answer = m2bridge.fiber(model, engine=engine, timeout=40)
    assert (answer.verdict, answer.dim_at_point, answer.known_symmetry_dim) == ("not-identifiable", 5, 3)
    assert answer.certainty is Certainty.PROBABLE


def test_symmetries_of_an_analytic_network_are_not_searched(engine: Engine) -> None:
    """Adding the same form to both gates changes no softmax: fibers of dimension 2, of which nothing is said."""

    def network(x: np.ndarray, gates: np.ndarray, experts: np.ndarray) -> np.ndarray:
        e = np.exp(gates @ x)
        return (e / e.sum()) @ (experts @ x)

    model = m2bridge.from_callable(network, {"gates": (2, 2), "experts": (2, 2)}, inputs={"x": (2,)})
    answer = m2bridge.fiber(model, engine=engine)
    assert (answer.verdict, answer.generic_fiber_dim) == ("undecided", 2)
    assert "polynomial" in answer.explanation
    read = m2bridge.dimension(model, engine=False).view()
    assert not any("m2bridge symmetries" in text for _, text in read.facts)
    assert "m2bridge closure" not in read.to_prove


def test_elements_of_the_finite_group_change_no_output() -> None:
    model = perceptron()
    elements = finite_group(model.program, most=24)
    assert len(set(elements)) == len(elements) == 8  # two signs and a swap
    rng = np.random.default_rng(0)
    weights = rng.integers(-9, 10, model.parameter_count)
    x = rng.integers(-9, 10, (1, 3))
    expected = model.forward(model.unflatten(weights), x)
    for element in elements:
        assert (model.forward(model.unflatten(element(weights)), x) == expected).all()
    assert len(finite_group(parse_spec("map:a,b->a;b").program, most=24)) == 1


def test_a_prime_of_bad_reduction_is_exchanged(engine: Engine) -> None:
    """t^2 - 32005 t is -32004 at t = 1 and at t = 32004: two points, one modulo 32003, which divides no number of the map."""
    answer = m2bridge.fiber("map:t->t^2-32005*t", at={"t": 1}, engine=engine, prime=32003)
    assert (answer.fiber_dim, answer.degree, answer.component_count) == (0, 2, 2)
    assert answer.agreement is not False
    assert any("32003" in note for note in answer.notes)


def test_components_that_do_not_decide_are_not_called_missing(engine: Engine) -> None:
    """s t = 0 is two lines; that their point of intersection is the only other orbit is not looked for."""
    answer = m2bridge.fiber("map:s,t->s*t", at={"s": 0, "t": 0}, engine=engine)
    assert (answer.verdict, answer.component_count) == ("undecided", 2)
    assert "were not computed" not in answer.explanation
