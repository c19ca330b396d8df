"""The generic rank of a program, by every route, against dual numbers in plain Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge.errors import OutOfReachError
from m2bridge.families import Model, from_callable, parse_spec
from m2bridge.limits import LimitReached
from m2bridge.linear import row_space
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import Mod
from m2bridge.programs import jacobian_blocks
from m2bridge.programs.evaluation import input_form
from m2bridge.programs.jacobians import last_layer
from m2bridge.programs.points import Held
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.dimension import dimension
from tests.networks import ANALYTIC_NETWORKS, NETWORKS, Shapes
from tests.unit import dual_numbers

BY_NAME = {name: (function, weights, inputs) for name, function, weights, inputs in NETWORKS}


@pytest.mark.parametrize("name", BY_NAME)
def test_networks_have_the_dimension_of_the_independent_rank(name: str) -> None:
    function, weights, inputs = BY_NAME[name]
    expected = dual_numbers.rank(function, weights, inputs)
    answer = dimension(from_callable(function, weights, inputs=inputs or None), engine=False)
    assert answer.image_dim == expected
    assert answer.lower_bound <= expected <= answer.upper_bound
    assert answer.agreement is not False


def test_the_softmax_network_is_proved() -> None:
    """d = a = 2, t = 3: the four entries of K^T Q and of V, so 8 (Henry, Marchetti, Kohn, Equation 16)."""
    ((_, function, weights, inputs),) = ANALYTIC_NETWORKS
    answer = dimension(from_callable(function, weights, inputs=inputs), engine=False)
    assert (answer.image_dim, answer.lower_bound) == (8, 8)


def random_network(seed: int) -> tuple[Callable[..., Any], Shapes, Shapes]:
    """Layers of random widths and kinds between matrices with tokens as columns; the last layer is linear, or not."""
    rng = np.random.default_rng(seed)
    widths = [int(n) for n in rng.integers(1, 4, size=4)]
    tokens, kinds = int(rng.integers(1, 4)), [str(kind) for kind in rng.choice(["power", "mix", "skip"], 2)]
    shapes = {"W0": (widths[1], widths[0]), "W1": (widths[2], widths[1]), "A": (widths[1], widths[1])}
    linear = bool(rng.integers(0, 4))
    if linear:
        shapes["V"] = (widths[3], widths[2])

    def function(X: Any, W0: Any, W1: Any, A: Any, V: Any = None) -> Any:
        Y = W0 @ X
        for kind in kinds:
            if kind == "power":
                Y = Y**2
            elif kind == "mix":
                Y = Y @ (Y.T @ A @ Y)
            else:
                Y = Y + 3 * (A @ Y) * Y
        Z = W1 @ Y
        return V @ Z if linear else Z * Z

    return function, shapes, {"X": (widths[0], tokens)}


@pytest.mark.parametrize("seed", range(24))
def test_all_routes_have_one_rank(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without elimination of the last layer, from a bad and a good first guess."""
    function, weights, inputs = random_network(seed)
    program = from_callable(function, weights, inputs=inputs).program
    expected = dual_numbers.rank(function, weights, inputs, samples=25)
    assert generic_rank(program).rank == expected
    assert generic_rank(program, samples=1).rank == expected
    assert generic_rank(program, p=32003).rank == expected
    monkeypatch.setattr(jacobian_blocks, "last_layer", lambda *_: None)
    plain = generic_rank(program)
    assert plain.layer is None
    assert plain.rank == expected


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=3,dp=2,a=2,t=2)",
        "lightning(d=3,dp=4,a=1,t=3)",
        "deep-lightning(d=[3,3,3],a=[2,2],t=2)",
        "deep-lightning(d=[4,2,3],a=[2,3],t=3)",
        "deep-lightning(d=[3,2,2,2],a=[1,2,1],t=2)",
    ],
)
def test_held_weights_change_no_rank(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_spec(spec)
    assert model.knowledge.gauge.count > 0
    program = model.program
    whole = generic_rank(program).rank
    assert generic_rank(program, held=model.knowledge.gauge).rank == whole
    last = list(program.parameters)[-1]
    masks = {name: mask for name, mask in model.knowledge.gauge.masks.items() if name != last}
    more = Held(masks, {name: model.knowledge.gauge.values[name] for name in masks})
    assert generic_rank(program, held=more).rank == whole
    monkeypatch.setattr(jacobian_blocks, "last_layer", lambda *_: None)
    assert generic_rank(program, held=model.knowledge.gauge).rank == whole

    def network(X: Any, **weights: Any) -> Any:
        return model.network(weights, X)

    assert dual_numbers.rank(network, model.parameters, {"X": model.input_shape}) == whole


def test_a_last_layer_is_detected_only_if_it_is_one() -> None:
    def layer(function: Callable[..., Any]) -> Any:
        return last_layer(from_callable(function, {"V": (2, 2), "W": (2, 2)}, inputs={"X": (2, 2)}).program)

    assert layer(lambda V, W, X: V @ (W @ X) ** 2) is not None
    assert layer(lambda V, W, X: V @ (V @ X) ** 2) is None
    assert layer(lambda V, W, X: V @ (W @ W)) is None
    assert layer(lambda V, W, X: (V @ W) @ X) is None
    assert layer(lambda V, W, X: (W @ X) ** 2 @ V) is None


# -- too few inputs --------------------------------------------------------------------------------------


def quiet_outputs(W: Any, x: Any) -> Any:
    """A hundred dependent outputs: the Jacobian at a single input has rank one."""
    return np.ones((100, 1), dtype=int) @ (W[None] @ x**2)


def copies_of_a_square(W: Any, v: Any, x: Any) -> Any:
    """A hundred multiples of two numbers."""
    h = (W @ x) ** 2
    return np.concatenate([(k + 1) * h[:1] if k % 7 else v[None] @ h for k in range(100)])


QUIET: dict[str, tuple[Callable[..., Any], Shapes, Shapes]] = {
    "one number": (quiet_outputs, {"W": (12,)}, {"x": (12,)}),
    "two numbers": (copies_of_a_square, {"W": (3, 4), "v": (3,)}, {"x": (4,)}),
    "many tokens": (
        lambda A, V, X: V @ X @ (X.T @ A @ X),
        {"A": (2, 2), "V": (1, 2)},
        {"X": (2, 60)},
    ),
    "one among many": (lambda W, x: np.concatenate([W @ x**2, (W @ x) ** 2, x[:1] * np.ones(96, dtype=int)]),
                       {"W": (2, 3)}, {"x": (3,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_inputs_with_many_dependent_outputs(name: str) -> None:
    function, weights, inputs = QUIET[name]
    expected = dual_numbers.rank(function, weights, inputs)
    model = from_callable(function, weights, inputs=inputs)
    for samples in (None, 1, 2):
        assert generic_rank(model.program, samples=samples).rank == expected
    assert dimension(model, engine=False).image_dim == expected


@pytest.mark.parametrize(
    ("spec", "dim"),
    [
        ("lightning(d=8,dp=1,a=8,t=140)", 71),
        ("multi-head(d=6,dp=1,a=6,heads=2,t=40)", None),
        ("lightning(d=3,dp=1,a=3,t=20)", 11),
    ],
)
def test_more_tokens_than_entries_of_a_token(spec: str, dim: int | None) -> None:
    """An input of t > d tokens has d t numbers, but the rank is that of attention at d tokens."""
    model = parse_spec(spec)
    answer = dimension(model, engine=False, certify=False)
    short: Model = parse_spec(spec.replace("t=140", "t=3").replace("t=40", "t=3").replace("t=20", "t=3"))
    fewer = dimension(short, engine=False, certify=False)
    assert answer.image_dim == fewer.image_dim
    assert answer.agreement is not False
    if dim is not None:
        assert answer.image_dim == dim


def test_the_dimension_of_lightning_with_many_tokens_is_that_of_dual_numbers() -> None:
    """One layer by (A, V), d = 8, more tokens than d: 64 + 8 - 1 (Henry, Marchetti, Kohn, Corollary 3.3, and by rank)."""

    def attention(A: Any, V: Any, X: Any) -> Any:
        return V @ X @ (X.T @ A @ X)

    assert dual_numbers.rank(attention, {"A": (8, 8), "V": (1, 8)}, {"X": (8, 9)}, samples=16) == 71


# -- what float64 cannot hold -----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["map:s->s^900", "map:s,t->s^900*t^90;s*t^800", "map:s->s^1000;s^999"])
def test_overflow_leaves_float64_undecided(spec: str) -> None:
    answer = dimension(spec, engine=False, certify=False)
    assert answer.agreement is not False
    assert answer.numeric_rank is None
    assert answer.image_dim == len(spec.split("->", maxsplit=1)[0].removeprefix("map:").split(","))


@pytest.mark.parametrize("scale", [1, 10**40, -(10**40)])
def test_deep_powers_leave_float64_undecided(scale: int) -> None:
    """((s W x)^9)^9)^9: numbers far outside of float64 on either side are no contradiction."""
    factor = Fraction(scale) if scale > 0 else Fraction(1, -scale)
    model = from_callable(
        lambda W, v, x: v @ (((factor * (W @ x)) ** 9) ** 9) ** 9,
        {"W": (2, 2), "v": (2,)},
        inputs={"x": (2,)},
    )
    answer = dimension(model, engine=False, certify=False)
    assert answer.agreement is not False
    assert answer.image_dim == 4
    assert answer.numeric_rank is None


def test_a_large_table_of_constants_needs_no_memory_in_the_reverse_pass() -> None:
    table = np.random.default_rng(0).integers(-9, 10, size=(200, 1500))
    model = from_callable(lambda w: table @ np.tile(w, 500) ** 2, {"w": (3,)})
    assert generic_rank(model.program, memory_limit=2**28).rank == 3


def sum_of_scalars(w: Any, x: Any) -> Any:
    return sum(w[i] * w[j] * x[i] * x[j] ** 2 for i in range(8) for j in range(8))


def test_an_entry_of_the_input_is_one_monomial() -> None:
    """Its products with others have one term each; with 63 sums of k + 1 terms, at two points, that is 4,158 terms and some."""
    model = from_callable(sum_of_scalars, {"w": (8,)}, inputs={"x": (9,)})
    weights = {"w": Mod(np.arange(16).reshape(2, 8) + 1, LARGE_PRIME)}
    assert len(input_form(model.program, weights, most_products=2500).exponents) == 64
    assert model.coordinate_count == 64, "x[8] does not occur"
    with pytest.raises(OutOfReachError, match="terms"):
        input_form(model.program, weights, most_products=1000)


def test_a_rank_stopped_by_a_limit_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_space, "_ROWS_OF_A_BLOCK", 8)
    program = parse_spec("mlp(widths=[6,6,4],r=2)").program
    complete = generic_rank(program)
    looks = []

    def check() -> None:
        looks.append(None)
        if len(looks) == 3:
            raise LimitReached("the time limit of 1 s was reached")

    generic = generic_rank(program, whole=True, check=check)
    assert generic.rank == 24
    assert generic.rank < complete.rank
    assert not generic.settled
    assert generic.stopped is not None
    looks.clear()
    with pytest.raises(LimitReached):
        generic_rank(program, whole=True, report=lambda _: check())


def test_the_rank_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_space, "_ROWS_OF_A_BLOCK", 8)
    program = parse_spec("mlp(widths=[6,6,4],r=2)").program
    steps: list[str] = []
    generic_rank(program, upper=54, whole=True, report=steps.append)
    assert re.findall(r"\d+", steps[0]) == ["8", "54", "8"]
    assert len(steps) == 54 // 8  # the block that meets the upper bound is the last one
