"""Upper bounds of analytic networks through polynomial ones."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import dimension, from_callable
from m2bridge.bounds.analytic import relaxed, relaxed_bound
from m2bridge.families import parse_spec
from m2bridge.programs.program import check_program
from m2bridge.programs.work import WorkBudget

P = 8388593


def block(X, Q, K, V, W, U):  # type: ignore[no-untyped-def]
    """Causal softmax attention and squares, each with a skip."""
    share = np.exp((K @ X).T @ (Q @ X)) * np.tril(np.ones((3, 3), dtype=int))
    Y = X + V @ X @ (share / share.sum(axis=1, keepdims=True)).T
    return Y + U @ (W @ Y) ** 2


SHAPES = {"Q": (2, 3), "K": (2, 3), "V": (3, 3), "W": (2, 3), "U": (3, 2)}


def test_a_user_defined_block_has_equal_lower_and_upper_bounds() -> None:
    """33 weights, GL(2) on queries and keys, two scalings of squared neurons."""
    answer = dimension(from_callable(block, SHAPES, inputs={"X": (3, 3)}), engine=False)
    assert (answer.lower_bound, answer.upper_bound, answer.certainty.value) == (27, 27, "proved")
    assert answer.certificate is not None
    relaxed = relaxed_bound(from_callable(block, SHAPES, inputs={"X": (3, 3)}).program, lower=27, p=P, seed=0)
    assert relaxed is not None
    assert relaxed.value == 27


@pytest.mark.parametrize(
    "spec", ["softmax(d=[2,2,2],a=[1,2],t=3)", "transformer(d=2,a=1,t=2,causal=true,softmax=true)"]
)
def test_the_bound_is_never_below_the_dimension(spec: str) -> None:
    model = parse_spec(spec)
    answer = dimension(model, engine=False)
    assert answer.certainty.value == "proved"
    bound = relaxed_bound(model.program, lower=answer.image_dim, p=P, seed=0)
    assert bound is not None
    assert answer.image_dim <= bound.value <= model.parameter_count


def test_new_inputs_and_outputs_at_every_place() -> None:
    program = from_callable(block, SHAPES, inputs={"X": (3, 3)}).program
    for place, item in enumerate(program.instructions):
        if item.operands:
            cut = relaxed(program, {place})
            check_program(cut)
            assert len(cut.inputs) == 2
            assert len(cut.outputs) == 2
            assert cut.parameter_count == program.parameter_count


def test_without_time_all_weights_count() -> None:
    program = from_callable(block, SHAPES, inputs={"X": (3, 3)}).program
    bound = relaxed_bound(program, lower=27, p=P, seed=0, work=WorkBudget(0.0))
    assert bound is not None
    assert bound.value == 33
