"""Identifiable functions of the weights: known answers, and no answer without all symmetries."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import m2bridge
from m2bridge.checker import verify
from m2bridge.cli import main
from m2bridge.errors import InputError
from m2bridge.records import load, save, to_document
from m2bridge.symmetry.structure import Structure

LIGHTNING = "lightning(d=3,dp=3,a=2,t=3)"
TWO_HEADS = "attention(d=[3,3],a=[2],t=2,heads=2,softmax=true)"


def verdicts(found: m2bridge.Identifiable) -> dict[str, str]:
    return {row.function: row.verdict for row in found.functions}


def test_what_lightning_attention_determines() -> None:
    """K^T Q and V up to one scale, as Henry, Marchetti and Kohn derive: (K^T Q, V) -> (s K^T Q, V/s) is the only relation."""
    assert verdicts(m2bridge.identifiable(LIGHTNING)) == {
        "Q": "up to a change of basis of the rows",
        "K": "up to a change of basis of the rows",
        "V": "determined up to scale",
        "Q.T @ K": "determined up to scale",
    }


def test_what_softmax_attention_determines() -> None:
    """Softmax fixes the scale: GL(2) is the only connected symmetry, and it keeps Q^T K and V."""
    answer = m2bridge.identifiable("softmax(d=[3,3],a=2,t=3)")
    assert verdicts(answer)["Q1.T @ K1"] == verdicts(answer)["V1"] == "determined"


def test_products_of_heads_in_one_array_are_listed_for_each_head() -> None:
    """Each head's Q^T K is determined, and its Q and K up to GL(2). With one row a head, Q and K have no product of matrices."""
    found = verdicts(m2bridge.identifiable("attention(d=[3,3],a=2,t=2,heads=2,softmax=true)"))
    assert found["Q1.T @ K1 for each head"] == "determined"

    def thin(Q, K, X):
        scores = np.exp(np.einsum("hai,ij,hak,kl->hjl", K, X, Q, X))
        return np.einsum("ij,hjl->il", X, scores / scores.sum(axis=1, keepdims=True))

    network = m2bridge.from_callable(thin, {"Q": (2, 2, 1), "K": (2, 2, 1)}, inputs={"X": (1, 2)})
    assert verdicts(m2bridge.identifiable(network)) == {"Q": "not determined", "K": "not determined"}


def test_hidden_units_are_determined_up_to_scale() -> None:
    found = verdicts(m2bridge.identifiable("mlp(widths=[4,3,4],r=3,bias=true)"))
    assert (found["W1"], found["W2"], found["b2"]) == (
        "each row up to scale",
        "each column up to scale",
        "determined",
    )


def test_a_missing_symmetry_leaves_it_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the scaling and without a search the fiber is not explained, and V is not called determined."""
    monkeypatch.setattr(Structure, "families", property(lambda self: self.groups[:1]))
    monkeypatch.setattr("m2bridge.questions.identifiable.MOST_SEARCHED_WEIGHTS", 0)
    answer = m2bridge.identifiable(LIGHTNING, function="V")
    assert not answer.explains_fiber
    assert verdicts(answer) == {"V": "not moved by the symmetries found"}
    assert (answer.certainty.value, to_document(answer)["certainty"], answer.sure) == ("undecided",) * 3
    [method] = [item.method for item in answer.evidence if item.quantity == "verdict"]
    assert "do not explain the generic fiber" in method


def test_a_python_function_and_a_text_agree() -> None:
    written = m2bridge.identifiable(LIGHTNING, function="K.T @ Q")
    called = m2bridge.identifiable(LIGHTNING, function=lambda Q, K, V: K.T @ Q)
    assert [row.verdict for row in written.functions] == [row.verdict for row in called.functions]


def test_the_example_is_one_function_with_two_values() -> None:
    answer = m2bridge.identifiable(LIGHTNING, function="V")
    assert answer.example is not None
    model = m2bridge.parse_spec(LIGHTNING)
    first, second = (
        {name: np.vectorize(Fraction)(np.array(value)) for name, value in weights.items()}
        for weights in answer.example.values()
    )
    x = np.array([[Fraction(i + 2 * j + 1) for j in range(3)] for i in range(3)])
    assert (model.forward(first, x) == model.forward(second, x)).all()
    assert (first["V"] != second["V"]).any()


@pytest.mark.parametrize(
    ("spec", "function", "verdict"),
    [
        (LIGHTNING, "K.T @ Q", "determined up to scale"),
        (LIGHTNING, "Q", "up to a change of basis of the rows"),
        (LIGHTNING, "Q[0, 0]", "not determined"),
        ("softmax(d=[3,3],a=2,t=3)", "K1.T @ Q1", "determined"),
        ("mlp(widths=[4,3,4],r=3,bias=true)", "W1", "each row up to scale"),
        ("mlp(widths=[4,3,4],r=3,bias=true)", "W2", "each column up to scale"),
        ("map:s,t->s*t", "s*t", "determined"),
        (TWO_HEADS, "K1[0].T @ Q1[0]", "determined"),
        (TWO_HEADS, "V1[1]", "determined"),
        (TWO_HEADS, "Q1[1]", "up to a change of basis of the rows"),
        ("mlp(widths=[4,3,4],r=3)", "W1[1]", "determined up to scale"),
        ("mlp(widths=[4,3,4],r=3)", "W2[:, 1:]", "each column up to scale"),
        ("map:a->a", "a", "determined"),
    ],
)
def test_a_verdict_has_a_certificate_that_the_checker_verifies(
    spec: str, function: str, verdict: str
) -> None:
    answer = m2bridge.identifiable(spec, function=function, engine=False)
    assert (answer.verdict, answer.certainty.value) == (verdict, "proved")
    assert verify(json.dumps(to_document(answer)))[0] == 0


@pytest.mark.parametrize(
    ("spec", "function", "code"),
    [
        (LIGHTNING, "(K.T @ Q)**999", 0),
        (LIGHTNING, "(K.T @ Q)**1000", 9),
        (LIGHTNING, "(K.T @ Q)**100000", 8),
        (LIGHTNING, "((K.T @ Q)**999)**30", 8),
        (LIGHTNING, "V[0:1] * V", 9),
        (LIGHTNING, "V[:, :1].T * V[0, 0]", 0),
        (LIGHTNING, "Q[0] @ K.T", 9),
        (LIGHTNING, "V[0].T", 9),
        (LIGHTNING, "V**(1 + 1)", 9),
        (LIGHTNING, "+".join(["V"] * 320), 8),
        (TWO_HEADS, "V1[0] * V1", 9),
        (TWO_HEADS, "V1[-1, ::2].T - 3 * V1[0, 1:].T @ V1[1, 1:, 1:]", 0),
        ("map:s,t->s*t", "(s*t)**900", 0),
        ("map:s,t->s*t", "(s*t)**1000", 9),
    ],
)
def test_a_verdict_is_proved_only_if_the_checker_reads_the_function(
    spec: str, function: str, code: int
) -> None:
    answer = m2bridge.identifiable(spec, function=function)
    assert verify(json.dumps(to_document(answer)))[0] == code
    assert answer.certainty.value == ("proved" if code == 0 else "computed")


def test_the_checker_rejects_other_verdicts_and_functions() -> None:
    """V is not determined, Q is not determined up to scale, and K^T Q and Q^T V are not one function."""
    by_function = {
        function: m2bridge.identifiable(LIGHTNING, function=function, engine=False).certificate[0]
        for function in ("K.T @ Q", "V", "Q", "V[0, 0]")
    }
    scaled, moved = by_function["K.T @ Q"], by_function["V[0, 0]"]
    statement, argument = scaled["statement"], scaled["argument"]
    other = by_function["Q"]["statement"]
    forged = [
        {**scaled, "statement": {**statement, "verdict": "determined"}},
        {**scaled, "statement": {**statement, "verdict": "each row up to scale"}},
        {**scaled, "statement": {**statement, "function": other["function"]}},
        {**scaled, "statement": {**other, "verdict": "determined up to scale"}},
        {**scaled, "argument": {**argument, "fields": argument["fields"][1:]}},
        {**scaled, "argument": {**argument, "lower": {**argument["lower"], "rows": [], "columns": []}}},
        {**moved, "statement": {**moved["statement"], "verdict": "determined"}},
        {**moved, "argument": {**moved["argument"], "fields": [[[0, 1, []]]]}},
        {**moved, "argument": {**moved["argument"], "fields": []}},
        {**moved, "argument": {**moved["argument"], "fields": argument["fields"][:1]}},
    ]
    assert verify(json.dumps(scaled))[0] == verify(json.dumps(moved))[0] == 0
    assert {verify(json.dumps(document))[0] for document in forged} == {7}


def test_the_checker_rejects_a_record_with_another_verdict() -> None:
    record = to_document(m2bridge.identifiable(LIGHTNING, function="V", engine=False))
    del record["digest"]
    assert verify(json.dumps(record))[0] == 0
    assert verify(json.dumps(record | {"verdict": "determined"}))[0] == 7


@pytest.mark.parametrize("text", ["Q + Z", "exit()", "Q @", "Q.shape", "Q[K]", "0.5 * Q"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        m2bridge.identifiable(LIGHTNING, function=text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Q[9]", "out of bounds"),
        ("Q @ Q", "do not fit together"),
        ("Q**99999999", "an exponent above"),
        ("2**99999999999 * Q", "very large exponent"),
        ("-" * 5000 + "Q", "recursion"),
    ],
)
def test_an_error_names_the_text_of_the_function(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        m2bridge.identifiable(LIGHTNING, function=text)
    assert str(caught.value).startswith(f"the function {text!r}")


def test_the_command_and_its_record(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identifiable", LIGHTNING, "--function", "K.T @ Q", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["functions"][0]["verdict"] == "determined up to scale"
    answer = m2bridge.identifiable(LIGHTNING)
    assert load(save(answer, tmp_path)) == answer


def test_unused_weights_are_not_determined() -> None:
    """The function of the map (a, b) -> (a, a) fixes a and leaves b free, alone and in a product."""
    answer = m2bridge.identifiable("map:a,b->a;a")
    assert verdicts(answer) == {"a": "determined", "b": "not determined"}
    assert "does not use" in str(answer.functions[1].moved_by)
    product = m2bridge.identifiable("map:a,b->a;a", function="a*b")
    assert verdicts(product) == {"a*b": "not determined"}
    assert product.example is not None
    assert product.example["weights"]["b"] != product.example["same function"]["b"]


def test_an_unused_matrix_is_not_determined() -> None:
    """Every entry of U is free, also where a scale per column would describe that; u W is W up to a scale."""
    shapes = {"W": (1, 2), "U": (1, 2), "u": ()}
    network = m2bridge.from_callable(lambda W, U, u, x: W @ x, shapes, inputs={"x": (2,)})
    found = verdicts(m2bridge.identifiable(network))
    assert found == {"W": "determined", "U": "not determined", "u": "not determined"}
    scaled = m2bridge.identifiable(network, function="u * W")
    assert verdicts(scaled) == {"u * W": "determined up to scale"}


def test_a_number_is_never_determined_up_to_scale() -> None:
    """s and t are free in s t, each alone; s t is determined. Variables have the names that the user gave."""
    answer = m2bridge.identifiable("map:s,t->s*t")
    assert verdicts(answer) == {"s": "not determined", "t": "not determined"}
    assert answer.functions[0].moved_by == "1 scaling: s by lambda, t by lambda^-1"
    assert verdicts(m2bridge.identifiable("map:s,t->s*t", function="s*t")) == {"s*t": "determined"}


def test_symmetries_that_explain_the_fiber_are_not_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("m2bridge.questions.identifiable._MOST_VERIFIED_FIELDS", 0)
    answer = m2bridge.identifiable("map:s,t->s*t", function="s*t")
    assert answer.explains_fiber
    assert verdicts(answer) == {"s*t": "not moved by the symmetries found"}
    assert "explain" not in answer.view().to_prove
