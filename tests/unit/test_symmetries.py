"""The question "which symmetries?": fields with names, finite groups and known ones."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

import m2bridge
from m2bridge.checker import verify
from m2bridge.cli import main
from m2bridge.errors import InputError
from m2bridge.families.user_network import from_callable
from m2bridge.questions.symmetries import FoundField
from m2bridge.records import load, save, to_document
from m2bridge.symmetry.finite import permutations, signs
from tests.networks import NETWORKS


def own(name: str) -> m2bridge.Model:
    _, function, shapes, inputs = next(item for item in NETWORKS if item[0] == name)
    return from_callable(function, shapes, inputs=inputs or None)


def test_a_perceptron_with_one_output() -> None:
    answer = m2bridge.symmetries("mlp(widths=[2,2,1],r=2)")
    assert (answer.symmetry_dim, answer.generic_fiber_dim, answer.upper_bound, answer.explains_fiber) == (
        3,
        3,
        3,
        True,
    )
    assert [field.name for field in answer.fields] == [
        "scaling: W1[1,:] by s, W2[:,1] by s^-2",
        "scaling: W1[0,:] by s, W2[:,0] by s^-2",
        "rotation, O(n), of rows 0 and 1 of W1",
    ]
    assert [field.new for field in answer.fields] == [False, False, True]
    assert [(item.verified, item.found) for item in answer.known] == [(True, True)]


def test_gl_between_linear_layers_is_found_whole() -> None:
    """GL(3) between widths 2, 3, 2 has dimension 9; a generic pair has a stabilizer of dimension 1."""
    answer = m2bridge.symmetries("linear(widths=[2,3,2])")
    assert (len(answer.fields), answer.symmetry_dim) == (9, 8)
    assert sum(str(field.name).startswith("GL between W1 and W2") for field in answer.fields) == 6


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=3,dp=2,a=1,t=2,parametrization=attention)",
        "deep-lightning(d=[2,2,2],a=[1,1],t=2,parametrization=virtual)",
    ],
)
def test_fields_on_other_weights_than_those_of_the_spec_have_no_certificate(spec: str) -> None:
    """The program has Q, K, V; the checker counts A, V or virtual weights, and rejected the record."""
    answer = m2bridge.symmetries(spec)
    assert (answer.certificate, answer.certainty.value) == ((), "computed")
    assert verify(json.dumps(to_document(answer)))[0] == 8


@pytest.mark.parametrize(
    ("activation", "unused", "fiber"), [(np.tanh, 0, 0), (np.tanh, 3, 3), (np.exp, 0, 0), (np.square, 0, 3)]
)
def test_fibers_without_symmetries_are_certified(activation: Any, unused: int, fiber: int) -> None:
    """Two units determine their weights up to finitely many; with squares, quadratic forms in two variables have dimension 3."""
    shapes = {"W": (2, 2), "V": (1, 2)} | ({"U": (unused,)} if unused else {})
    network = from_callable(lambda x, W, V, **_: V @ activation(W @ x), shapes, inputs={"x": (2,)})
    answer = m2bridge.symmetries(network)
    dims = (answer.symmetry_dim, answer.generic_fiber_dim)
    assert (dims, answer.certainty.value) == ((fiber, fiber), "proved")
    assert verify(json.dumps(to_document(answer)))[0] == 0


def test_unused_weights() -> None:
    answer = m2bridge.symmetries(own("gaussian moments"))
    assert sorted(str(field.name) for field in answer.fields) == [
        f"L[{i}] is not used" for i in ("0,1", "0,2", "1,2")
    ]


def test_an_unexplained_fiber_is_reported() -> None:
    answer = m2bridge.symmetries("mlp(widths=[2,3,2],r=2)")
    assert not answer.explains_fiber
    assert (answer.symmetry_dim, answer.generic_fiber_dim, answer.upper_bound) == (3, 6, 6)


@pytest.mark.parametrize(("most", "searched", "at_least"), [(5, 0, 3), (200, 1, 3), (10_000, 2, None)])
@pytest.mark.parametrize("spec", ["mlp(widths=[2,3,2],r=2)", "mlp(widths=[3,2,3],r=3)"])
def test_the_headline_names_what_was_searched(
    spec: str, most: int, searched: int, at_least: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for networks that have too many vector fields: what was not searched may be there."""
    monkeypatch.setattr("m2bridge.symmetry.search.MOST_CANDIDATES", most)
    result = m2bridge.symmetries(spec)
    if result.explains_fiber:
        assert result.symmetry_dim == result.generic_fiber_dim
        return
    assert (result.searched_degree, result.complete) == (searched, searched == 2)
    assert result.symmetry_dim == (3 if at_least is None else None)
    if at_least is None:
        return
    assert result.symmetry_lower_bound == at_least
    answer = result.view().answer
    assert re.findall(r"\d+", answer)[:3] == [str(at_least), str(result.generic_fiber_dim), "12"]
    assert "symmetry_dim" not in {*result.headline, *result.certified()}


def test_dimension_and_symmetries_do_not_send_the_user_to_each_other() -> None:
    for question in (m2bridge.dimension, m2bridge.symmetries):
        view = question(
            "mlp(widths=[2,3,2],r=2)", **({"engine": False} if question is m2bridge.dimension else {})
        ).view()
        text = str(view)
        assert "m2bridge dimension" not in text
        assert "m2bridge symmetries" not in text


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("tensor train", {("S_2", ("G1 axis 1", "G2 axis 0")), ("S_2", ("G2 axis 2", "G3 axis 0"))}),
        ("cp decomposition", {("S_2", ("A axis 1", "B axis 1", "C axis 1"))}),
        ("mixed degrees", set()),
        ("biases", {("S_2", ("W1 axis 0", "b1 axis 0", "W2 axis 1"))}),
        (
            "transformer block",
            {("S_3", ("W1 axis 0", "b1 axis 0", "W2 axis 1")), ("S_2", ("Q axis 0", "K axis 0"))},
        ),
    ],
)
def test_permutations(name: str, groups: set[Any]) -> None:
    listed = permutations(own(name).program)
    assert {(item.group, item.acts_on) for item in listed} == groups


@pytest.mark.parametrize(
    ("spec", "generators"),
    [
        ("lightning(d=2,dp=1,a=2,t=2)", {("Q", "V"), ("K", "V"), ("Q[1,:]", "K[1,:]")}),
        ("mlp(widths=[2,3,1],r=2)", {("W1",), ("W1[0,:]",), ("W1[1,:]",)}),
        ("mlp(widths=[2,2,1],r=3)", {("W1", "W2"), ("W1[0,:]", "W2[:,0]")}),
        ("mlp(widths=[2,2,1],r=2,bias=true)", {("W1", "b1"), ("W1[0,:]", "b1[0]")}),
        ("softmax(d=[2,2],a=2,t=2)", {("Q1", "K1"), ("Q1[0,:]", "K1[0,:]")}),
        ("map:x,y->x^2+y^2;x*y;x^4", {("x",)}),
        ("map:x,y->x+y^2", {("x[1]",)}),
        ("map:x,y->x+y", set()),
    ],
)
def test_signs(spec: str, generators: set[tuple[str, ...]]) -> None:
    assert {item.acts_on for item in signs(m2bridge.parse_spec(spec).program)} == generators


def test_signs_of_rows_of_a_larger_network() -> None:
    """Each of the 20 rows of W1 (20 x 20) may change its sign; 19 of them and all together generate the same group."""
    found = {item.acts_on for item in signs(m2bridge.parse_spec("mlp(widths=[20,20,1],r=2)").program)}
    assert len(found) == 20
    assert found <= {("W1",), *((f"W1[{i},:]",) for i in range(20))}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda item: item[0])
def test_signs_change_no_output(network: Any) -> None:
    """The generators leave the values of the user's own function, and they generate what brute force finds."""
    name, function, shapes, inputs = network
    rng = np.random.default_rng(5)
    weights = {key: rng.standard_normal(shape) for key, shape in shapes.items()}
    given = {key: rng.standard_normal(shape) for key, shape in inputs.items()}

    def value(at: dict[str, Any]) -> Any:
        found = function(**at, **given)
        parts = found.values() if isinstance(found, dict) else [found]
        return np.concatenate([np.ravel(part).astype(float) for part in parts])

    def unchanged(moved: dict[str, Any]) -> bool:
        return np.allclose(value(weights), value(moved))

    found = signs(own(name).program)
    for item in found:
        moved = {key: array.copy() for key, array in weights.items()}
        for place in item.acts_on:
            key, _, index = place.rstrip("]").partition("[")
            moved[key][tuple(slice(None) if k == ":" else int(k) for k in index.split(",") if k)] *= -1
        assert unchanged(moved), item
    flat = [(key, index) for key, shape in shapes.items() for index in np.ndindex(*shape)]
    if len(flat) <= 12:
        count = 0
        for choice in product((1, -1), repeat=len(flat)):
            moved = {key: array.copy() for key, array in weights.items()}
            for (key, index), sign in zip(flat, choice, strict=True):
                moved[key][index] *= sign
            count += unchanged(moved)
        assert count == 2 ** len(found)


def test_bad_questions() -> None:
    with pytest.raises(InputError, match="degree"):
        m2bridge.symmetries("mlp(widths=[2,2,1],r=2)", degree=0)
    with pytest.raises(InputError, match="small"):
        m2bridge.symmetries("mlp(widths=[2,2,1],r=2)", prime=7)


def test_records_and_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["symmetries", "mlp(widths=[2,2,1],r=2)", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["symmetry_dim"], document["upper_bound"], document["explains_fiber"]) == (3, 3, True)
    assert main(["symmetries", "linear(widths=[2,3,2])"]) == 0
    assert "GL(3) between W1 and W2" in " ".join(capsys.readouterr().out.split())
    answer = m2bridge.symmetries("mlp(widths=[2,2,1],r=2)")
    path = save(answer, tmp_path)
    assert load(path) == answer


def test_a_field_without_a_name_is_written_as_polynomials() -> None:
    terms = ([0, 2, [[2, 1]]], [2, 1, [[1, 2]]], [2, -1, [[0, 1]]], [1, -3, []])
    field = FoundField(degree=2, coefficients=terms, name=None, verified=True, new=True)
    assert field.written() == "dw0 = 2*w2, dw2 = w1^2-w0, dw1 = -3"


@pytest.mark.parametrize(
    ("activation", "generators"),
    [
        (np.tanh, 3),
        (lambda z: np.tanh(z) ** 3 - 2 * np.tanh(z), 3),
        (lambda z: np.tanh(z) ** 2, 3),
        (lambda z: np.exp(z) / (1 + np.exp(z)) ** 2, 3),
        (lambda z: 1 / (1 + np.exp(-z)), 0),
        (lambda z: z / (1 + np.exp(-z)), 0),
        (lambda z: np.tanh(z) + 1, 0),
    ],
)
def test_neurons_with_an_odd_or_even_activation_change_signs(activation: Any, generators: int) -> None:
    """Each of three neurons has a sign if the activation is odd or even, as the derivative of the sigmoid."""
    shapes = {"A": (3, 2), "b": (3,), "B": (2, 3), "c": (2,)}
    network = from_callable(lambda A, b, B, c, x: B @ activation(A @ x + b) + c, shapes, inputs={"x": (2,)})
    found = signs(network.program)
    assert len(found) == generators
    rng = np.random.default_rng(7)
    weights, x = {name: rng.normal(size=shape) for name, shape in shapes.items()}, rng.normal(size=2)
    for change in found:
        moved = {name: value.copy() for name, value in weights.items()}
        for text in change.acts_on:
            name, _, index = text.partition("[")
            where = eval(f"np.s_[{index}") if index else ...
            moved[name][where] *= -1
        assert np.allclose(network.forward(moved, x), network.forward(weights, x))
    assert any("A[0,:]" in change.acts_on for change in found) == bool(found)


def test_groups_around_square_roots_are_meant_near_the_identity() -> None:
    """W x / |W x| changes its sign if W does; W2 W1 x is the same for all of GL(1)."""

    def normalized(W, x):
        h = W @ x
        return h / np.sqrt((h * h).sum())

    answer = m2bridge.symmetries(from_callable(normalized, {"W": (3, 2)}, inputs={"x": (2,)}))
    assert "near the identity" in answer.statement
    assert "near the identity" not in m2bridge.symmetries("linear(widths=[2,1,2])").statement
