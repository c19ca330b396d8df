"""The dimension analysis without Macaulay2: witnesses, intervals, disagreement, records, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from m2bridge.models.derivatives import jacobian
from m2bridge.rank import attention, slices
from m2bridge.rank.block import assemble, lay_out
from m2bridge.rank.rings import FieldRing

from m2bridge import records
from m2bridge.analyses.dimension import Dimension, dimension
from m2bridge.analyses.dimension.lower import attention_shape
from m2bridge.cli import main
from m2bridge.engine import Limits
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import DEFAULT_PRIME, Field
from m2bridge.models import Mod, from_callable, parse_spec
from m2bridge.results import Certainty, weigh


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
def test_the_fast_route_has_the_rank_of_the_models_own_jacobian(spec: str) -> None:
    """The slice, the elimination of V and few outputs change nothing: the model's own forward pass agrees."""
    model = parse_spec(spec)
    shape = attention_shape(model)
    assert shape is not None
    fast = attention.attention_rank(shape)
    p = DEFAULT_PRIME
    rng = np.random.default_rng(3)
    weights = model.draw_weights(rng, p)
    inputs = rng.integers(0, p, size=(60, *(model.input_shape or ())))
    _, matrix = jacobian(model, weights, inputs, p)
    assert fast.settled
    assert fast.rank == rank_mod(matrix, p)


def test_the_block_is_a_part_of_the_models_own_jacobian() -> None:
    """Entry by entry: derivatives written by hand against those of the model's forward pass."""
    model = parse_spec("deep-lightning(d=[4,3,3,5],a=[2,3,2],t=2)")
    shape = attention_shape(model)
    assert shape is not None
    p, outputs, samples = DEFAULT_PRIME, 2, 4
    field = Field(p)
    layers = attention.draw(shape, p, 5)
    inputs = attention.draw_inputs(shape, p, 5, samples)
    blocks, z = assemble(shape, FieldRing(field), field.residues, layers, inputs, outputs, 1)
    block = field.canonical(lay_out(shape, blocks, z, outputs, range(shape.inner_count)))
    weights = {f"{name}{k + 1}": layers[k][j] for k in range(3) for j, name in enumerate("QKV")}
    _, matrix = jacobian(model, weights, inputs, p)
    full = matrix.reshape(samples, 5, 2, -1)[:, :outputs]  # (sample, output row, token, weight)
    full = full.swapaxes(0, 1).reshape(outputs * samples * 2, -1)
    columns, start = [], 0
    last: list[int] = []
    for k, masks in enumerate(shape.masks):
        for j, mask in enumerate(masks):
            places = start + np.flatnonzero(mask.ravel())
            if k == 2 and j == 2:
                last = list(places[: outputs * 3])
            else:
                columns += list(places)
            start += mask.size
    assert (full[:, last + columns] % p == block).all()


def test_samples_grow_until_the_rank_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first guess that is far too small must not be the answer."""
    monkeypatch.setattr(attention, "_least_samples", lambda shape, outputs: 2)
    shape = slices.AttentionSlice(widths=(8, 8, 8), ranks=(2, 2), tokens=3, softmax=False)
    found = attention.attention_rank(shape)
    assert found.rank == shape.free_count
    assert found.samples > 2


def test_memory_is_bounded_before_it_starts() -> None:
    shape = slices.AttentionSlice(widths=(512,) * 3, ranks=(64, 64), tokens=3, softmax=False)
    with pytest.raises(OutOfReachError, match="GB"):
        attention.attention_rank(shape, memory_limit=2**30)
    with pytest.raises(OutOfReachError):
        answer("mlp(widths=[40,80,40],r=2)", limits=Limits(memory_bytes=2**20))


def test_softmax_statement_says_what_is_not_proved() -> None:
    found = answer("softmax(d=[3,3,3],a=[2,2],t=3)")
    assert found.certainty is Certainty.PROVED
    assert "finite generic fibers" in found.statement
    assert "not proved" in found.statement
    heuristic = [item for item in found.evidence if item.detail.get("heuristic")]
    assert heuristic
    assert all(item.certainty is Certainty.PROBABLE for item in heuristic)


def test_bounds_that_do_not_meet_give_an_interval() -> None:
    """Five cubic powers summed twice: the flattening bounds known here leave a gap for some networks."""
    found = answer("mlp(widths=[2,2,2,1],r=2)")
    assert found.lower_bound <= found.image_dim <= found.upper_bound
    if found.lower_bound < found.upper_bound:
        assert found.certainty is Certainty.PROBABLE
        assert any(item.error_probability is not None for item in found.evidence)


def test_disagreement_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer("lightning(d=2,dp=1)")
    wrong = replace(found.evidence[0], witness="other", relation="<=", value=4)
    assert weigh((*found.evidence, wrong)).verdict is False


def test_a_wrong_slice_is_caught_by_the_other_witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upper bound that is one too small contradicts the exact rank: exit 3."""
    original = slices.AttentionSlice.free_count.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        "m2bridge.analyses.dimension.upper.slice_bound",
        lambda shape: replace(_slice_evidence(shape), value=original(shape) - 1),
    )
    found = answer("deep-lightning(d=[3,3,3],a=[2,2],t=3)")
    assert found.agreement is False
    assert main(["dimension", "deep-lightning(d=[3,3,3],a=[2,2],t=3)", "--no-engine", "--json"]) == 3


def _slice_evidence(shape: slices.AttentionSlice):  # type: ignore[no-untyped-def]
    from m2bridge.analyses.dimension.upper import _bound

    return _bound("slice", "free weights of the gauge slice", shape.free_count)


@pytest.mark.parametrize("prime", [8388594, 1, 0, -7, 2**64 + 13])
def test_bad_primes(prime: int) -> None:
    with pytest.raises(InputError):
        answer("lightning(d=2,dp=1)", prime=prime)


@pytest.mark.parametrize("prime", [101, 32003, 2147483647])
def test_other_primes_give_the_same_dimension(prime: int) -> None:
    """Beyond 2^23 the BLAS route is not exact: another, slower one is taken."""
    assert answer("deep-lightning(d=[3,3,3],a=[2,2],t=3)", prime=prime).image_dim == 23
    assert answer("mlp(widths=[3,5,1],r=4)", prime=prime).image_dim == 14


def test_records_come_back_equal(tmp_path: Path) -> None:
    found = dimension("softmax(d=[3,3,3],a=[2,2],t=3)", engine=False)
    assert records.load(records.save(found, tmp_path)) == found


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
    assert "witnesses agree" in out


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
    p = DEFAULT_PRIME
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
        for symmetry in model.symmetries:
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
    found = dimension(spec, engine=False)
    assert found.agreement is not False
    assert dim is None or found.image_dim == dim
    if dim is None:  # rows are exchanged in a narrow elimination
        assert dimension(spec, engine=False, prime=101).lower_bound <= found.image_dim
