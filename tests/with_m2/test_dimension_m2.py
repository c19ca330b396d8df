"""The two definitions of a network meet at a random point: they agree at every size, and a mistake in either is a conflict."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import scripts
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.evidence import Evidence, weigh
from m2bridge.families import Attention, Convolution, Model, Perceptron
from m2bridge.families.user_network import from_callable
from m2bridge.limits import Limits
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.questions.dimension import dimension
from m2bridge.questions.dimension import macaulay2 as witness
from m2bridge.questions.dimension.macaulay2 import macaulay2_evidence
from m2bridge.questions.kernel import Context, model_of
from tests.networks import NETWORKS

MEETINGS = {"network_values", "directional_derivative"}


def asked(
    model: Model | str, engine: Engine, *, p: int = LARGE_PRIME, seed: int = 0, limits: Limits | None = None
) -> list[Evidence]:
    context = Context(engine=engine, prime=p, seed=seed, limits=limits or Limits(), keep=None, progress=None)
    return macaulay2_evidence(context, model_of(model), p)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("lightning(d=2,dp=1,a=2,t=2)", 5),
        ("mlp(widths=[3,5,1],r=4)", 14),
        ("linear(widths=[3,2,3])", 8),
        ("convolution(filters=[2,2],r=2)", 3),
        ("multi-head(d=2,dp=2,a=2,heads=2,t=2)", 12),
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", 2),
    ],
)
def test_macaulay2_agrees(engine: Engine, spec: str, expected: int) -> None:
    answer = dimension(spec, engine=engine, certify=False)
    said = [item for item in answer.evidence if item.witness == "macaulay2" and item.quantity == "image_dim"]
    assert [item.value for item in said] == [expected, expected]
    assert {item.quantity for item in answer.evidence} >= MEETINGS
    assert answer.agreement is True
    assert answer.engine is not None
    assert answer.scripts[0].name == "dimension"


@pytest.mark.parametrize(
    ("spec", "rank"),
    [
        ("lightning(d=3,dp=2,a=2,t=3)", 13),
        ("lightning(d=3,dp=2,a=2,t=3,parametrization=attention)", 13),
        ("lightning(d=3,dp=2,a=3,t=1)", 11),
        ("deep-lightning(d=[3,3,3],a=[2,2],t=3)", 23),
        ("deep-lightning(d=[2,2,2,1],t=2,parametrization=virtual)", 11),
        ("deep-lightning(d=[2,2,2,2],t=2,parametrization=attention,heads=2,skip=true)", 36),
        ("mlp(widths=[3,4,3,2],r=3)", 23),
        ("convolution(filters=[3,2,2],strides=[2,1,1],r=3)", 5),
        ("map:s,t->s^3;s^2*t;s*t^2;1/7*t^3+1", 2),
        ("deep-lightning(d=[8,8,8,8],t=4,heads=2,skip=true)", None),
        ("deep-lightning(d=[16,16,16,16],t=16)", None),
        ("deep-lightning(d=[12,8,8,5],a=[3,4,8],t=5,heads=[1,2,3])", None),
        ("mlp(widths=[20,30,10,5],r=5)", None),
        ("linear(widths=[60,40,50])", None),
    ],
)
def test_both_definitions_meet_at_every_size(each_engine: Engine, spec: str, rank: int | None) -> None:
    for seed in range(2):
        answer = asked(spec, each_engine, seed=seed)
        by_quantity = {item.quantity: item for item in answer if item.witness == "macaulay2"}
        assert set(by_quantity) == {*MEETINGS, "image_dim"}
        assert by_quantity["image_dim"].value == rank
        assert by_quantity["network_values"].value != by_quantity["directional_derivative"].value
        assert weigh(item for item in answer if item.quantity in MEETINGS).verdict is True


@pytest.mark.parametrize(("name", "function", "shapes", "inputs"), NETWORKS, ids=[n[0] for n in NETWORKS])
def test_user_defined_networks_are_interpreted_alike(
    each_engine: Engine, name: str, function: Callable[..., Any], shapes: Any, inputs: Any
) -> None:
    """Equal numbers, yet no agreement: Macaulay2 was sent the same definition."""
    model = from_callable(function, shapes, inputs=inputs or None, name=name)
    answer = asked(model, each_engine)
    assert {item.quantity for item in answer} == {*MEETINGS, "image_dim"}
    assert {item.stands_on for item in answer} == {"program"}
    for quantity in MEETINGS:
        first, second = (item.value for item in answer if item.quantity == quantity)
        assert first == second
        assert any(first)
    assert weigh(answer).verdict is None
    rank = next(item.value for item in answer if item.quantity == "image_dim")
    assert rank == dimension(model, engine=False, certify=False).image_dim


def test_several_outputs_and_all_instructions_of_a_user_defined_network(each_engine: Engine) -> None:
    def network(A: Any, b: Any, x: Any, Z: Any) -> dict[str, Any]:
        joined = np.concatenate([A, 2 * A[::-1, 1:2], Z], axis=1)
        spread = np.einsum("ij,ik->ijk", joined, Z).sum(axis=0)
        batch = np.einsum("ij,ij->i", A, A) * b[0] + np.einsum("ij,k->i", A, x)
        return {
            "first": (joined @ joined.T) ** 3 - b[:, None] / 3,
            "second": spread[:2, ::-1],
            "third": batch,
        }

    model = from_callable(network, {"A": (3, 2), "b": (3,)}, inputs={"x": (2,), "Z": (3, 2)})
    answer = asked(model, each_engine)
    assert weigh(answer).verdict is None
    assert len({item.quantity for item in answer} & MEETINGS) == 2


def test_a_large_prime_and_a_map_without_inputs_of_a_constant(each_engine: Engine) -> None:
    # Macaulay2's rank has no second statement here: the networks are what is compared
    answer = asked("lightning(d=3,dp=2)", each_engine, p=8388593)
    assert weigh(item for item in answer if item.quantity in MEETINGS).verdict is True
    answer = asked("map:s,t->7;s", each_engine)
    assert next(item.value for item in answer if item.quantity == "network_values")[0] == 7
    assert weigh(item for item in answer if item.quantity in MEETINGS).verdict is True


# -- mutations of the program ---------------------------------------------------------------------------


def transposed(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    X, V = inputs, weights["V"]
    return V @ (X @ ((weights["Q"] @ X).T @ (weights["K"] @ X)))


def negative_sign(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    X, V = inputs, weights["V"]
    return -(V @ (X @ ((weights["K"] @ X).T @ (weights["Q"] @ X))))


def missing_head(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    X = inputs
    for i in range(1, self.layers + 1):
        X = weights[f"V{i}"][0] @ X @ X.T @ weights[f"K{i}"][0].T @ weights[f"Q{i}"][0] @ X
    return X


def skipped_layer(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    X = inputs
    for i in (1, 3):
        X = weights[f"V{i}"] @ X @ X.T @ weights[f"K{i}"].T @ weights[f"Q{i}"] @ X
    return X


def deep_transposed(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    X = inputs
    for i in (1, 2, 3):
        query, key = ("Q", "K") if i != 2 else ("K", "Q")
        X = weights[f"V{i}"] @ X @ X.T @ weights[f"{key}{i}"].T @ weights[f"{query}{i}"] @ X
    return X


def early_activation(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    return weights["W2"] @ (weights["W1"] @ inputs**self.r)


def wrong_order(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    return weights["W1"] @ (weights["W2"] @ inputs)


def reversed_filter(self: Any, weights: Mapping[str, Any], inputs: Any) -> Any:
    x = np.stack([inputs[k : k + 2] @ weights["w1"][::-1] for k in range(2)]) ** self.r
    return (x @ weights["w2"]).reshape(1)


@pytest.mark.parametrize(
    ("family", "mutation", "spec"),
    [
        (Attention, transposed, "lightning(d=2,dp=1)"),
        (Attention, transposed, "lightning(d=40,dp=30,a=20,t=6)"),
        (Attention, negative_sign, "lightning(d=3,dp=2)"),
        (Attention, missing_head, "deep-lightning(d=[3,3,3],a=[2,2],t=3,heads=2)"),
        (Attention, skipped_layer, "deep-lightning(d=[16,16,16,16],t=4)"),
        (Attention, deep_transposed, "deep-lightning(d=[16,16,16,16],t=4)"),
        (Perceptron, early_activation, "mlp(widths=[3,4,2],r=2)"),
        (Perceptron, wrong_order, "linear(widths=[3,3,3])"),
        (Convolution, reversed_filter, "convolution(filters=[2,2],r=2)"),
    ],
)
def test_a_mistake_in_the_program_is_a_conflict(
    each_engine: Engine, monkeypatch: pytest.MonkeyPatch, fresh_recordings: None,
    family: type[Model], mutation: Callable[..., Any], spec: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(family, "network", mutation)
    verdict = weigh(asked(spec, each_engine))
    assert verdict.verdict is False
    assert {conflict.quantity for conflict in verdict.conflicts} >= MEETINGS


@pytest.fixture
def fresh_recordings() -> Iterator[None]:
    """Programs are remembered by model: a mutated network must be recorded anew, and forgotten afterwards."""
    from m2bridge.families import base

    base._recorded.cache_clear()
    yield
    base._recorded.cache_clear()


def test_a_conflict_ends_the_command_with_3(
    monkeypatch: pytest.MonkeyPatch, fresh_recordings: None, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Attention, "network", skipped_layer)
    assert main(["dimension", "deep-lightning(d=[2,2,2,2],t=2)"]) == 3
    assert "network_values" in "".join(capsys.readouterr())


# -- mutations of the templates -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partial", "right", "wrong", "spec"),
    [
        ("_lightning", "transpose W#1 * W#0", "transpose W#0 * W#1", "lightning(d=2,dp=1)"),
        ("_deep_lightning", "for i from 0 to l-1 do (", "for i from 0 to l-2 do (", "deep-lightning(d=[8,8,8,8],t=3)"),
        ("_deep_lightning", "apply(H, h -> {transpose", "apply(1, h -> {transpose", "multi-head(d=9,dp=4,a=3,heads=3,t=3)"),
        ("_deep_lightning", "then X + Y else Y", "then X - Y else Y", "deep-lightning(d=[8,8,8],t=3,skip=true)"),
        ("_mlp", "entrywisePower(y, r)", "entrywisePower(y, r+1)", "mlp(widths=[20,20,5],r=3)"),
        ("_convolution", "k * strides#i + j", "k * strides#i - j + 1", "convolution(filters=[2,2],r=2)"),
        ("_linear", "for i from 0 to l-1 do", "for i from 1 to l-1 do", "linear(widths=[4,4,3])"),
        ("_custom", "polynomialIn(R, f)", "sub(polynomialIn(R, f), matrix {reverse gens R})", "map:s,t->s^3;s^2*t"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_partial_is_a_conflict(
    each_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, partial: str, right: str, wrong: str, spec: str
) -> None:  # fmt: skip
    directory = shutil.copytree(scripts.template_directory(), tmp_path / "m2_templates")
    path = directory / f"{partial}.m2.j2"
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    monkeypatch.setattr(scripts, "template_directory", lambda: directory)
    verdict = weigh(asked(spec, each_engine))
    assert verdict.verdict is False
    assert {conflict.quantity for conflict in verdict.conflicts} >= {"network_values"}


# -- when Macaulay2 is not asked ------------------------------------------------------------------------


def test_skipped_computations_are_listed(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    (said,) = asked("softmax(d=[2,2],t=2)", engine)
    assert said.value is None
    (said,) = asked("lightning(d=90,dp=90)", engine)
    assert "20000" in said.method
    monkeypatch.setattr(witness, "MOST_INTERPRETED", 10)
    name, function, shapes, inputs = NETWORKS[0]
    (said,) = asked(from_callable(function, shapes, inputs=inputs, name=name), engine)
    assert "multiplications" in said.method


def test_a_stopped_run_keeps_its_output(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setattr("m2bridge.limits.MOST_OVERTIME", 0.01)
    answer = asked("lightning(d=64,dp=64,t=64)", engine, limits=Limits(wall_seconds=0.01))
    assert answer[0].value is None
    assert "limit" in answer[0].method


def test_no_engine_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from m2bridge.errors import NoEngineError

    def nothing(*_: object, **__: object) -> None:
        raise NoEngineError("none", candidates=())

    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", nothing)
    answer = dimension("lightning(d=2,dp=1)", certify=False)
    assert answer.image_dim == 5
    assert any("no Macaulay2" in item.method for item in answer.evidence)
