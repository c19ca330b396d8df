"""The dimension analysis without Macaulay2: witnesses, intervals, disagreement, records, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from m2bridge import records
from m2bridge.bounds import model_upper
from m2bridge.bounds.upper_bound import ModelBound
from m2bridge.certainty import Certainty
from m2bridge.checker import verify
from m2bridge.cli import main
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.evidence import AGREEMENT_WORDS, weigh
from m2bridge.families import Mod, from_callable, jacobian, parse_spec
from m2bridge.limits import Limits
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import PrimeFieldArithmetic
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.jacobians import free_columns, jacobian_block, last_layer
from m2bridge.programs.points import draw_inputs, draw_weights
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension import Dimension, dimension


def answer(spec: str, **options: object) -> Dimension:
    return dimension(spec, engine=False, certify=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=3,dp=2,a=2,t=2)",
        "deep-lightning(d=[3,3,3],a=[2,2],t=3)",
        "deep-lightning(d=[4,3,3,2],a=[2,3,5],t=2)",
        "deep-lightning(d=[2,3,2],a=[2,2],t=3)",
        "deep-lightning(d=[3,3,3],a=[1,2],t=3)",
        "deep-lightning(d=[3,2,3],a=[2,2],t=1)",
    ],
)
def test_the_fast_method_has_the_rank_of_the_whole_jacobian(spec: str) -> None:
    """The slice, the elimination of V and few outputs change nothing: the model's own forward pass agrees."""
    model = parse_spec(spec)
    fast = generic_rank(model.program, held=model.knowledge.gauge, samples=model.knowledge.samples)
    assert fast.layer is not None
    assert fast.held.count > 0
    p = LARGE_PRIME
    rng = np.random.default_rng(3)
    weights = model.draw_weights(rng, p)
    inputs = rng.integers(0, p, size=(60, *(model.input_shape or ())))
    _, matrix = jacobian(model, weights, inputs, p)
    assert fast.settled
    assert fast.rank == rank_mod(matrix, p)


def test_the_block_is_a_part_of_the_whole_jacobian() -> None:
    """Entry by entry: a few rows of the last V and the free weights, against all derivatives."""
    model = parse_spec("deep-lightning(d=[4,3,3,5],a=[2,3,2],t=2)")
    p, outputs, samples = LARGE_PRIME, 2, 4
    program, held = model.program, model.knowledge.gauge
    layer = last_layer(program, held)
    assert layer is not None
    weights, inputs = draw_weights(program, p, 5, held), draw_inputs(program, p, 5, samples)
    arithmetic = PrimeFieldArithmetic(field_of(p))
    given = {name: Lettered("", arithmetic.integers(value)) for name, value in weights.items()}
    given |= {name: Lettered("N", arithmetic.integers(value)) for name, value in inputs.items()}
    columns = free_columns(program, held, layer)
    block = jacobian_block(program, arithmetic, given, columns, layer=layer, outputs=outputs)
    _, matrix = jacobian(model, weights, inputs["X"], p)
    full = matrix.reshape(samples, 5, 2, -1)[:, :outputs].reshape(samples * outputs * 2, -1)
    last = next(part.start for name, _, part in flat_parts(program.parameters) if name == "V3")
    chosen = [*range(last, last + outputs * 3), *columns.tolist()]
    assert (full[:, chosen] % p == arithmetic.field.canonical(block)).all()


@pytest.mark.parametrize("samples", [1, 2])
def test_samples_grow_until_the_rank_is_settled(samples: int) -> None:
    """A first guess that is far too small must not be the answer."""
    model = parse_spec("deep-lightning(d=[8,8,8],a=[2,2],t=3)")
    generic = generic_rank(model.program, held=model.knowledge.gauge, samples=samples)
    assert generic.rank == model.parameter_count - model.knowledge.gauge.count
    assert generic.samples > samples


def test_memory_is_bounded_before_it_starts() -> None:
    model = parse_spec("deep-lightning(d=[512,512,512],a=[64,64],t=3)")
    with pytest.raises(OutOfReachError, match="GB"):
        generic_rank(
            model.program,
            held=model.knowledge.gauge,
            samples=model.knowledge.samples,
            memory_limit=2**30,
        )
    with pytest.raises(OutOfReachError):
        answer("mlp(widths=[40,80,40],r=2)", limits=Limits(memory_bytes=2**20))


def test_softmax_statement_names_what_is_not_proved() -> None:
    result = answer("softmax(d=[3,3,3],a=[2,2],t=3)")
    assert result.certainty is Certainty.COMPUTED  # no certificate was wanted
    assert "Conjecture 3.10" in result.statement
    assert not any(item.detail.get("heuristic") for item in result.evidence)  # a rank with units is a bound


def test_bounds_that_do_not_meet_give_an_interval() -> None:
    """The squares of the entries of W^T (W x)^2, which is a gradient of binary cubics: dimension 4. No upper bound sees that."""
    model = from_callable(lambda x, W: (W.T @ (W @ x) ** 2) ** 2, {"W": (3, 2)}, inputs={"x": (2,)})
    result = dimension(model, engine=False)
    assert (result.lower_bound, result.image_dim, result.upper_bound) == (4, 4, 6)
    assert (result.certainty, result.certificate, result.defect) == (Certainty.PROBABLE, None, None)
    assert any(item.error_probability is not None for item in result.evidence)


def test_linear_relations_of_the_coordinates_bound_the_dimension() -> None:
    """W^T (W x)^2 is the gradient of a third of sum_k (w_k x)^3: all binary cubics, dimension 4 of 6 coordinates."""
    model = from_callable(lambda x, W: W.T @ (W @ x) ** 2, {"W": (3, 2)}, inputs={"x": (2,)})
    result = dimension(model, engine=False)
    assert (result.lower_bound, result.image_dim, result.upper_bound) == (4, 4, 4)
    assert (result.certainty, result.certificate) == (Certainty.COMPUTED, None)


def test_disagreement_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer("lightning(d=2,dp=1)")
    wrong = replace(result.evidence[0], witness="other", relation="<=", value=4)
    assert weigh((*result.evidence, wrong)).verdict is False


def test_a_wrong_slice_is_caught_by_the_other_witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upper bound that is one too small contradicts the exact rank: exit 3."""
    original = model_upper.slice_bound

    def one_less(bound: ModelBound) -> ModelBound:
        return replace(bound, evidence=replace(bound.evidence, value=bound.value - 1))

    monkeypatch.setattr(
        model_upper,
        "slice_bound",
        lambda model, **point: one_less(original(model, **point)),
    )
    result = answer("deep-lightning(d=[3,3,3],a=[2,2],t=3)")
    assert result.agreement is False
    assert main(["dimension", "deep-lightning(d=[3,3,3],a=[2,2],t=3)", "--no-engine", "--json"]) == 3


@pytest.mark.parametrize("prime", [8388594, 1, 0, -7, 2**64 + 13])
def test_bad_primes(prime: int) -> None:
    with pytest.raises(InputError):
        answer("lightning(d=2,dp=1)", prime=prime)


@pytest.mark.parametrize("prime", [101, 32003, 8388593])
def test_other_primes_give_the_same_dimension(prime: int) -> None:
    assert answer("deep-lightning(d=[3,3,3],a=[2,2],t=3)", prime=prime).image_dim == 23
    assert answer("mlp(widths=[3,5,1],r=4)", prime=prime).image_dim == 14


def test_a_prime_that_is_too_large_is_refused_with_the_limit() -> None:
    with pytest.raises(InputError, match=r"--prime 2147483647 .* below 8388594"):
        answer("lightning(d=2,dp=1)", prime=2147483647)


def test_records_come_back_equal(tmp_path: Path) -> None:
    result = dimension("softmax(d=[3,3,3],a=[2,2],t=3)", engine=False)
    assert records.load(records.save(result, tmp_path)) == result


def test_json_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["dimension", "--d", "2", "--dp", "1", "--no-engine", "--json", "--save", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["image_dim"] == document["lower_bound"] == document["upper_bound"] == 5
    assert document["generic_fiber_dim"] == document["symmetry_dim"] == 5
    assert document["expected_dim"] == 5
    assert document["defect"] == 0
    assert document["formula"]["agrees"] is True
    assert document["certainty"] == "proved"
    assert len(list(tmp_path.glob("dimension-*.json"))) == 1
    assert main(["dimension", "lightning(d=2,dp=1)", "--no-engine"]) == 0
    out = capsys.readouterr().out
    assert AGREEMENT_WORDS[True] in out


def test_command_line_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--d", "0", "--dp", "1"],
        ["nonsense(3)"],
        ["lightning(d=2,dp=1)", "--prime", "4"],
        ["lightning(d=2,dp=1)", "--prime", "2"],
        ["map:x,y->x*y", "--prime", "3"],
        ["lightning(d=2,dp=1)", "--save", "/dev/null/at/all"],
        ["lightning(d=2,dp=1)", "--engine", "/bin/true", "--no-engine"],
        [],
    ):
        assert main(["dimension", *arguments]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_a_network_that_does_not_look_at_its_input() -> None:
    network = from_callable(lambda X, A, B: A @ B, {"A": (2, 1), "B": (1, 2)}, inputs={"X": (2, 2)})
    assert dimension(network, engine=False).image_dim == 3


def test_symmetries_lie_in_the_kernel_of_the_jacobian() -> None:
    p = LARGE_PRIME
    for spec in (
        "deep-lightning(d=[3,2,3],a=[2,2],t=2)",
        "mlp(widths=[2,3,2],r=3)",
        "linear(widths=[2,3,2])",
    ):
        model = parse_spec(spec)
        rng = np.random.default_rng(0)
        weights = model.draw_weights(rng, p)
        inputs = rng.integers(0, p, size=(9, *(model.input_shape or ())))
        _, matrix = jacobian(model, weights, inputs, p)
        lifted = {name: Mod(value, p) for name, value in weights.items()}
        for symmetry in model.knowledge.symmetries:
            moved = matrix.astype(object) @ symmetry.generators(lifted).values.T.astype(object)
            assert not (moved % p).any()


@pytest.mark.parametrize(
    ("spec", "dim"),
    [
        ("softmax(d=[3,2,2],a=[1,1],t=1)", 6),  # one token: all 2 x 3 matrices
        ("softmax(d=[3,2,3],a=[1,1],t=1)", 8),  # 3 x 3 matrices of rank at most 2
        ("deep-lightning(d=[2,3,2],a=[3,2],t=2)", None),
    ],
)
def test_one_token_and_small_primes_do_not_confuse_the_witnesses(spec: str, dim: int | None) -> None:
    result = dimension(spec, engine=False)
    assert result.agreement is not False
    assert dim is None or result.image_dim == dim
    if dim is None:  # rows are exchanged in a narrow elimination
        assert dimension(spec, engine=False, prime=101).lower_bound <= result.image_dim


@pytest.mark.parametrize(
    ("weights", "rank"),
    [
        ({"W1": [[1, 2], [3, 5]], "W2": [[1, 1], [0, 3]]}, 6),  # regular
        (
            {"W1": [[1, 2], [2, 4]], "W2": [[1, 1], [0, 3]]},
            4,
        ),  # two neurons in one direction: W2 l^2 and the moves of l
        ({"W1": [[1, 2], [3, 5]], "W2": [[0, 0], [0, 0]]}, 4),  # no output: only W2 moves anything
        (
            {"W1": [[0, 0], [0, 0]], "W2": [[1, 1], [0, 3]]},
            0,
        ),  # squares of small numbers do not move at first
    ],
)
def test_the_rank_at_given_weights_beside_the_generic_one(weights, rank):
    result = dimension("mlp(widths=[2,2,2],r=2)", engine=False, at=weights)
    assert (result.image_dim, result.at_point.rank, result.at_point.loss) == (6, rank, 6 - rank)
    assert (result.at_point.certainty.value, result.agreement) == ("computed", True)
    assert str(6 - rank if rank < 6 else rank) in result.view().notes[0]


def test_the_rank_of_an_analytic_network_at_given_weights_is_numeric():
    zero = {"Q1": [[0, 0]], "K1": [[0, 0]], "V1": [[1, 2], [3, 4]]}
    result = dimension("softmax(d=[2,2],a=1,t=3)", engine=False, at=zero)
    assert result.at_point.certainty.value == "numeric"
    assert result.at_point.rank == 4  # A = K^T Q does not move at first


def test_weights_near_a_critical_point_have_a_smaller_numerical_rank():
    weights = {"W1": [[1, 2], [2, 4 + 1e-13]], "W2": [[1, 1], [0, 3]]}
    result = dimension("mlp(widths=[2,2,2],r=2)", engine=False, at=weights)
    assert (result.at_point.rank, result.agreement) == (6, True)
    (item,) = (e for e in result.evidence if e.quantity == "singular_values_at_point")
    assert item.value == 4
    values = item.detail["singular_values"]
    assert len(values) == 8
    assert values[3] > 1e-3 * values[0]
    assert values[4] < 1e-9 * values[0]


def test_weights_that_satisfy_equations_have_no_rank_here():
    model = "lightning(d=3,dp=1,a=1,parametrization=attention)"
    with pytest.raises(InputError, match="--at"):
        dimension(model, engine=False, at={"A": np.zeros((3, 3), dtype=int).tolist(), "V": [[1, 0, 0]]})


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ("d=[3,2,1],a=[2,1],t=3,heads=[1,2]", 15),
        ("d=[2,3,2],a=[2,3],t=2,heads=[3,3]", 45),
        ("d=[3,3,1],a=[3,3],t=1,heads=[2,1]", 25),
        ("d=[3,3,3],a=[1,2],t=1,heads=[3,2],skip=true", 56),
        ("d=[1,2,3],a=[3,3],t=3,heads=[2,3]", 3),
    ],
)
def test_several_heads_in_several_layers_are_proved(sizes: str, expected: int) -> None:
    """The bound of the layers meets the rank, and the checker, which counts for itself, agrees."""
    result = dimension(f"deep-lightning({sizes})", engine=False)
    assert (result.image_dim, result.certainty) == (expected, Certainty.PROVED)
    assert verify(json.dumps(result.certificate))[0] == 0


def test_parts_of_high_degree_do_not_drown_the_others() -> None:
    """At normal weights float64 saw 43 columns with a clear gap: outputs reach 10^51 there."""
    result = dimension("transformer(d=3,a=1,t=3,hidden=1,r=3,layers=2,positions=true)", engine=False)
    assert (result.image_dim, result.numeric_rank, result.agreement) == (45, 45, True)


@pytest.mark.parametrize(
    ("spec", "expected"), [("softmax(d=[2,3,3],a=1,t=1)", 6), ("softmax(d=[2,4,2,5],a=2,t=2)", 22)]
)
def test_wide_layers_of_softmax_are_proved(spec: str, expected: int) -> None:
    """Tokens before the last layer cannot have full rank there; with one token nothing else proves the lower bound."""
    result = dimension(spec, engine=False)
    assert (result.lower_bound, result.certainty) == (expected, Certainty.PROVED)
    assert verify(json.dumps(result.certificate))[0] == 0


def test_float64_uses_as_many_rows_of_the_last_weight_as_the_exact_rank_needed():
    """Sums over tokens with weights e^s, which are no averages: one row of U shows rank 20, two rows show 23."""

    def network(Q, K, V, W, b, U, x):
        scores = np.exp((K @ x).T @ (Q @ x))
        return U @ (W @ V @ x @ scores + b[:, None]) ** 2

    shapes = {"Q": (2, 3), "K": (2, 3), "V": (3, 3), "W": (3, 3), "b": (3,), "U": (2, 3)}
    result = dimension(from_callable(network, shapes, inputs={"x": (3, 2)}), engine=False)
    assert (result.image_dim, result.numeric_rank, result.certainty.value) == (23, 23, "proved")
