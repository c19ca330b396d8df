"""Two weights with one function: by orbits made with known elements."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from m2bridge import checker, cli
from m2bridge.cli.records import verify_file
from m2bridge.errors import InputError
from m2bridge.families import from_callable, parse_spec
from m2bridge.programs.arithmetics import object_array
from m2bridge.questions.dimension import dimension
from m2bridge.questions.normal_form import acted, normal_form
from m2bridge.questions.point import random_point
from m2bridge.questions.same import same
from m2bridge.records import dumps, load, save, to_document

SPECS = [
    "lightning(d=3,dp=2,a=2)",
    "deep-lightning(d=[2,2,2],a=[2,2],t=2)",
    "linear(widths=[3,2,3])",
    "mlp(widths=[2,3,2],r=2)",
    "mlp(widths=[2,3,2,1],r=2)",
    "convolution(filters=[2,2],r=2)",
    "softmax(d=[3,3,3],a=[2,2],t=3)",
]


def moved(model, weights, seed: int):
    """Weights moved by a random element of every group that the model names."""
    rng = np.random.default_rng(seed)
    for group in model.knowledge.symmetries:
        shape = (group.copies, group.size, group.size) if group.kind == "gl" else (group.size,)
        element = object_array(
            [Fraction(int(k), 3) for k in rng.integers(1, 50, size=int(np.prod(shape)))], shape
        )
        weights = acted(group, element, weights)
    return weights


@pytest.mark.parametrize("spec", SPECS)
def test_weights_on_one_orbit_have_one_normal_form(spec):
    model = parse_spec(spec)
    weights = random_point(model, 3).weights
    other = moved(model, weights, 5)
    answer = same(model, at=weights, other=other, engine=False)
    assert (answer.verdict, answer.carried) == ("same", True)
    first, second = (normal_form(model, w, 0) for w in (weights, other))
    assert all((first.weights[name] == second.weights[name]).all() for name in model.parameters)
    assert first.left == ()
    assert normal_form(model, first.weights, 0).moves == (), "a normal form stays where it is"


@pytest.mark.parametrize("spec", SPECS)
def test_other_weights_are_distinguished(spec):
    model = parse_spec(spec)
    answer = same(
        model, at=random_point(model, 3).weights, other=random_point(model, 4).weights, engine=False
    )
    assert (answer.verdict, answer.carried) == ("different", None)
    assert (answer.certainty.value == "proved") == (answer.certificate is not None) == model.polynomial
    if model.polynomial:
        assert answer.example["first"] != answer.example["second"]
        document = to_document(answer)
        assert checker.verify(dumps(document))[0] == 0
        document["certificate"]["statement"]["input"] = [0] * len(
            document["certificate"]["statement"]["input"]
        )
        assert checker.verify(dumps(document))[0] == 7, "both outputs are 0 there"


def test_neurons_that_changed_places_are_found():
    model = parse_spec("mlp(widths=[2,3,2],r=2)")
    weights = random_point(model, 1).weights
    turned = {"W1": weights["W1"][[2, 0, 1]], "W2": weights["W2"][:, [2, 0, 1]]}
    answer = same(model, at=weights, other=turned, engine=False)
    assert (answer.verdict, answer.carried) == ("same", True)
    assert any(move.group.startswith("permutation") for move in (*answer.first_moves, *answer.second_moves))


def test_one_function_that_no_named_symmetry_explains():
    """9 x^2 + 4 x^2 = 12 x^2 + x^2."""
    a, b = {"W1": [[3], [2]], "W2": [[1, 1]]}, {"W1": [[1], [1]], "W2": [[12, 1]]}
    answer = same("mlp(widths=[1,2,1],r=2)", at=a, other=b, engine=False)
    assert (answer.verdict, answer.carried, answer.certainty.value) == ("same", False, "proved")


def test_special_weights_leave_groups_over():
    """With Q and K of rank 1, a change of basis is left that they do not see."""
    weights = {"Q": [[1, 2], [3, 6]], "K": [[1, 2], [2, 4]], "V": [[1, 1]]}
    model = parse_spec("lightning(d=2,dp=1)")
    exact = {name: np.array(rows) * Fraction(1) for name, rows in weights.items()}
    assert normal_form(model, exact, 0).left
    assert same(model, at=weights, other=weights, engine=False).verdict == "same"


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("softmax")])
def test_the_certificate_of_a_pair_is_checked(spec, tmp_path, capsys):
    model = parse_spec(spec)
    weights = random_point(model, 2).weights
    answer = same(model, at=weights, other=moved(model, weights, 5), engine=False)
    path = save(answer, tmp_path)
    assert verify_file(str(path))[0] == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    document["certificate"]["statement"]["weights"][0][0] = 12345
    path.write_text(json.dumps(document), encoding="utf-8")
    assert verify_file(str(path))[0] == 7


def test_the_command_line(tmp_path, capsys):
    for name, weights in (
        ("a", {"W1": [[3], [2]], "W2": [[1, 1]]}),
        ("b", {"W1": [[1.5], [2]], "W2": [[4, 1]]}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(weights), encoding="utf-8")
    files = ["--at", str(tmp_path / "a.json"), "--and", str(tmp_path / "b.json")]
    assert cli.main(["same", "mlp(widths=[1,2,1],r=2)", *files, "--no-engine"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("same")
    assert "Symmetries" in text


def test_missing_weights_are_an_error():
    with pytest.raises(InputError, match="--and"):
        same("mlp(widths=[1,2,1],r=2)", at={"W1": [[3], [2]], "W2": [[1, 1]]}, engine=False)


def test_the_record_of_weights_that_a_symmetry_carries_over_is_read_again(tmp_path: Path) -> None:
    weights = {"Q": [[1, 0], [0, 1]], "K": [[1, 2], [0, 1]], "V": [[1, 1]]}
    answer = same("lightning(d=2,dp=1)", at=weights, other=weights)
    assert answer.agreement is True
    assert load(save(answer, tmp_path)) == answer


@pytest.mark.parametrize(("change", "verdict"), [(1e-12, "same"), (1e-7, "undecided"), (1e-3, "different")])
def test_small_differences_of_analytic_networks(change: float, verdict: str) -> None:
    """The derivative of the output with respect to the weight is of size one: outputs differ by about `change`."""
    network = from_callable(
        lambda x, W1, W2: W2 @ np.tanh(W1 @ x), {"W1": (2, 2), "W2": (1, 2)}, inputs={"x": (2,)}
    )
    first = {"W1": np.array([[0.5, -0.25], [1.0, 0.75]]), "W2": np.array([[1.0, -0.5]])}
    second = {**first, "W2": np.array([[1.0 + change, -0.5]])}
    answer = same(network, first, second, engine=False)
    word = "undecided" if verdict == "undecided" else "probable"
    assert (answer.verdict, answer.certainty.value, answer.sure) == (verdict, word, word)
    assert ("--tolerance 1e-06" in " ".join(answer.view().notes)) == (verdict == "undecided")
    if verdict == "undecided":
        assert same(network, first, second, tolerance=1e-6, engine=False).verdict == "same"


def test_a_proof_decides_what_float64_does_not(monkeypatch) -> None:
    model = parse_spec("softmax(d=[3,3,3],a=[2,2],t=3)")
    weights = random_point(model, 3).weights
    monkeypatch.setattr("m2bridge.questions.equal.relative_distance", lambda *_: 1e-8)
    answer = same(model, at=weights, other=moved(model, weights, 5), engine=False)
    assert (answer.verdict, answer.carried, answer.certainty.value) == ("same", True, "computed")


def test_checkpoints_that_differ_by_rounding_are_the_same_up_to_a_tolerance() -> None:
    """A hidden unit is scaled by 0.7 in float64 and undone: other fractions, and outputs that agree to 15 digits."""
    rng = np.random.default_rng(3)
    first = {"W1": rng.normal(size=(3, 2)), "W2": rng.normal(size=(2, 3))}
    factors = np.array([3.0, 0.7, 1.0])
    second = {"W1": first["W1"] * factors[:, None], "W2": first["W2"] / factors**2}
    exact = same("mlp(widths=[2,3,2],r=2)", first, second)
    assert (exact.verdict, exact.certainty.value) == ("different", "proved")
    assert exact.distance is not None
    assert 0 < exact.distance < 1e-12
    assert "--tolerance" in " ".join(exact.view().notes)
    near = same("mlp(widths=[2,3,2],r=2)", first, second, tolerance=1e-9)
    assert (near.verdict, near.certainty.value) == ("same", "numeric")
    assert near.relation is not None
    network = from_callable(
        lambda x, W1, W2: W2 @ np.tanh(W1 @ x), {"W1": (3, 2), "W2": (2, 3)}, inputs={"x": (2,)}
    )
    swapped = {"W1": first["W1"][[1, 0, 2]], "W2": first["W2"][:, [1, 0, 2]]}
    answer = same(network, first, swapped, engine=False)
    assert answer.relation
    assert "symmetry above" in answer.view().to_prove
    assert [text.split(":")[0] for text in near.relation] == ["3 scalings"]
    far = same("mlp(widths=[2,3,2],r=2)", first, {**second, "W2": second["W2"] * 1.01}, tolerance=1e-9)
    assert far.verdict == "different"
    for tolerance in (-1.0, 1.0):
        with pytest.raises(InputError, match=f"less than 1, not {tolerance}"):
            same("mlp(widths=[2,3,2],r=2)", first, second, tolerance=tolerance)


def test_what_would_prove_it_names_the_reason_that_applies() -> None:
    """Different functions of an analytic network are not proved different by coefficients, which it does not have."""
    model = parse_spec("softmax(d=[2,2],a=1,t=2)")
    a, b = ({name: np.full(shape, k) for name, shape in model.parameters.items()} for k in (1, 2))
    different = same(model, at=a, other=b)
    assert different.verdict == "different"
    assert "coefficients" not in different.view().to_prove


def test_weights_outside_of_the_range_of_float64_are_not_called_different() -> None:
    huge = {"W1": [[10**400], [1]], "W2": [[1, 1]]}
    small = {"W1": [[2], [1]], "W2": [[1, 1]]}
    spec = "mlp(widths=[1,2,1],r=2)"
    assert same(spec, huge, small, engine=False).verdict == "different"
    assert same(spec, huge, huge, tolerance=1e-6, engine=False).verdict == "undecided"
    assert dimension(spec, at=huge, engine=False).at_point.rank == 1
    with pytest.raises(InputError, match="range of float64"):
        dimension("softmax(d=[1,1],t=2)", at={"Q1": [[10**400]], "K1": [[1]], "V1": [[1]]}, engine=False)


@pytest.mark.parametrize("first_row", [[0, 0], [1, 1], [2, -1]])
def test_permuted_neurons_with_biases_have_one_normal_form(first_row: list[int]) -> None:
    """Biases move with their neurons; they tell neurons apart whose other weights are equal or zero."""
    rows, biases, columns = [first_row, [1, 1], [2, 3]], [5, 7, -1], [1, 2, 3]
    order = [2, 0, 1]
    first = {"W1": rows, "b1": biases, "W2": [columns], "b2": [4]}
    second = {
        "W1": [rows[k] for k in order],
        "b1": [biases[k] for k in order],
        "W2": [[columns[k] for k in order]],
        "b2": [4],
    }
    answer = same("mlp(widths=[2,3,1],r=2,bias=true)", first, second, engine=False)
    assert (answer.verdict, answer.carried) == ("same", True)
