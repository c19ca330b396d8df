"""Relations between arguments of exponentials, and ranks with units beside ranks in float64."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from m2bridge import from_callable
from m2bridge.certificates.produce import lower_by_minor
from m2bridge.checker import check_lower, read_program
from m2bridge.families import Model, parse_spec
from m2bridge.linear.numeric import numeric_rank
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.exponentials import columns_of, formal_exponentials
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension import dimension
from m2bridge.questions.dimension.checks import float_witness

P = 8388593


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def network(function: Callable[..., Any], weights: dict[str, Any], x: tuple[int, ...] = (3,)) -> Model:
    return from_callable(function, weights, inputs={"x": x})


NETWORKS: dict[str, tuple[Model, int]] = {
    "sigmoid perceptron": (
        network(
            lambda x, U, V, W: W @ sigmoid(V @ sigmoid(U @ x)), {"U": (4, 2), "V": (3, 4), "W": (2, 3)}, (2,)
        ),
        0,
    ),
    "SiLU": (network(lambda x, W, V: V @ ((W @ x) * sigmoid(W @ x)), {"W": (5, 3), "V": (2, 5)}), 0),
    "SiLU of the input": (network(lambda x, V: V @ (x * sigmoid(x)), {"V": (2, 3)}), 3),
    "tanh by hand": (
        network(
            lambda x, W, V: V @ ((np.exp(W @ x) - np.exp(-(W @ x))) / (np.exp(W @ x) + np.exp(-(W @ x)))),
            {"W": (5, 3), "V": (2, 5)},
        ),
        5,
    ),
    "e^u, e^(2u), e^(u/2)": (
        network(
            lambda x, W, V: V @ (np.exp(W @ x) + np.exp(2 * (W @ x)) + np.exp(W @ x / 2)),
            {"W": (4, 3), "V": (2, 4)},
        ),
        8,
    ),
    "temperature": (network(lambda x, W, s: np.exp(s) * np.exp(W @ x), {"W": (2, 3), "s": ()}), 1),
    "bias in one of two": (
        network(lambda x, W, b: np.exp(W @ x + b) + np.exp(W @ x), {"W": (2, 3), "b": (2,)}),
        2,
    ),
    "constant shift": (network(lambda x, W: np.exp(W @ x + 1) * np.exp(W @ x), {"W": (2, 3)}), 2),
    "exp of exp": (network(lambda x, W: np.exp(np.exp(W @ x)), {"W": (2, 3)}), 0),
    "tied attention": (
        network(lambda x, K, V: (V @ x) @ np.exp((K @ x).T @ (K @ x)), {"K": (2, 3), "V": (2, 3)}, (3, 3)),
        3,
    ),
    "an input that does not occur": (network(lambda x, w: np.exp(w * x[0]), {"w": ()}), 0),
}


def float_rank(model: Model, n: int) -> int | None:
    """The rank in float64 at a random point, with as many samples as it takes."""
    rng, program = np.random.default_rng(3), model.program
    given = {name: Lettered("", rng.normal(size=shape)) for name, shape in program.parameters.items()}
    samples = {name: rng.normal(size=(3 * n + 5, *shape)) for name, shape in program.input_shapes.items()}
    given |= {name: Lettered("N", array) for name, array in samples.items()}
    return numeric_rank(
        jacobian_block(program, FloatArithmetic(), given, np.arange(program.parameter_count))
    ).rank


@pytest.mark.parametrize("name", NETWORKS)
def test_relations_are_found_and_the_rank_is_that_of_float64(name: str) -> None:
    model, count = NETWORKS[name]
    formal = formal_exponentials(model.program, p=P, seed=1)
    assert not isinstance(formal, str), formal
    assert len(formal.relations) == count
    generic = generic_rank(model.program, p=P)
    assert generic.heuristic is None
    assert generic.rank == float_rank(model, generic.rank)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_checker_verifies_the_rank(name: str) -> None:
    program = NETWORKS[name][0].program
    generic = generic_rank(program, p=P)
    lower = lower_by_minor(program, generic)
    assert check_lower(read_program(program.text), json.loads(json.dumps(lower))) == generic.rank


def test_a_difference_that_is_a_function_of_the_weights_is_no_bound() -> None:
    """e^(w x + e^(w^2)) / e^(w x) depends on w alone. The relation is seen, and the rank is called a heuristic."""
    model = network(lambda x, w: np.exp(w * x + np.exp(w * w)) / np.exp(w * x), {"w": ()}, ())
    assert "weights" in str(formal_exponentials(model.program, p=P, seed=1))
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.certainty.value, answer.certificate) == (1, "probable", None)


def test_columns_are_numbered_by_what_they_depend_on() -> None:
    columns = columns_of(NETWORKS["temperature"][0].program)
    assert (columns.weights, columns.inputs) == (7, 3)
    assert columns.sample_start == 1 + 7 + 1
    assert columns.count == columns.sample_start + 3 + 2


@pytest.mark.parametrize("seed", range(6))
def test_the_rank_does_not_depend_on_the_units(seed: int) -> None:
    model = parse_spec("softmax(d=[3,3,3],a=[2,2],t=3)")
    assert generic_rank(model.program, held=model.knowledge.gauge, seed=seed).rank == 25  # Equation 16


def test_one_token_does_not_determine_keys_and_queries() -> None:
    """For t = 1 softmax is 1: the derivatives by Q and K are zero."""
    model = parse_spec("softmax(d=[3,3,3],a=[2,2],t=1)")
    generic = generic_rank(model.program, held=model.knowledge.gauge)
    assert generic.rank == 9
    assert all(column >= 12 for column in generic.columns)  # no entry of Q1 or K1


@pytest.mark.parametrize("family", ["deep-lightning", "softmax"])
def test_float_rank_of_deep_networks(family: str) -> None:
    for d in (3, 6, 10, 16):
        model = parse_spec(f"{family}(d=[{d},{d},{d}],a=[2,2],t=3)")
        free = model.parameter_count - model.knowledge.gauge.count
        generic = generic_rank(
            model.program, held=model.knowledge.gauge, upper=free, samples=model.knowledge.samples
        )
        numeric, _ = float_witness(model, generic, seed=0, report=None)
        assert numeric is not None
        assert numeric.rank == free
