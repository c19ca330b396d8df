"""One's own network is a full citizen: dimension, record, check, explain, fiber, batch and file, like a built-in one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import m2bridge
from m2bridge import records
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.families import UserNetwork, from_callable, parse_spec
from m2bridge.limits import Limits
from m2bridge.report.explain import explain
from tests.marking import slow_except
from tests.networks import NETWORKS

SMALL = {
    "biases",
    "transformer block",
    "causal mask",
    "gram matrix",
    "group convolution",
    "hadamard products",
    "cross-attention",
}


def networks() -> dict[str, UserNetwork]:
    return {
        name: from_callable(f, weights, inputs=inputs, name=name) for name, f, weights, inputs in NETWORKS
    }


@pytest.mark.parametrize("name", [name for name, *_ in NETWORKS])
def test_a_record_holds_the_network(name: str, engine: Engine, tmp_path: Path) -> None:
    model = networks()[name]
    answer = m2bridge.dimension(model, engine=engine)
    assert answer.agreement is not False, [str(conflict) for conflict in answer.conflicts]
    assert parse_spec(answer.model) == model
    again = records.load(records.save(answer, tmp_path))
    assert again.model == answer.model
    text = explain(again)
    assert str(answer.image_dim) in text
    assert model.recorded.sha256[:12] in text


@pytest.mark.parametrize("name", slow_except({"biases", "gram matrix"}, sorted(SMALL)))
def test_its_fibers_are_those_of_its_coordinates(name: str, engine: Engine) -> None:
    model = networks()[name]
    result = m2bridge.fiber(model, engine=engine, limits=Limits(wall_seconds=20))
    answer = m2bridge.dimension(model, engine=False)
    assert result.model == model.spec
    assert result.agreement is not False
    assert result.generic_fiber_dim == answer.generic_fiber_dim


def test_a_proved_one_has_a_certificate_that_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = m2bridge.dimension(networks()["hadamard products"], engine=False)
    assert answer.certificate is not None
    assert answer.certificate["spec"] is None
    path = records.save(answer, tmp_path)
    assert main(["check", str(path)]) == 0
    assert answer.certificate["program"].split("\n")[1] in networks()["hadamard products"].recorded.text
    document = json.loads(path.read_text())
    capsys.readouterr()
    document["image_dim"] = 99
    path.write_text(json.dumps(document))
    assert main(["check", str(path)]) == 7


@pytest.mark.slow
def test_it_goes_through_a_file_and_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = networks()["biases"]
    file = tmp_path / "mine.toml"
    model.save(file)
    assert parse_spec(f"file:{file}") == model
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nanalysis = "dimension"\nspec = "file:mine.toml"\n')
    assert main(["batch", str(jobs), "--store", str(tmp_path / "store"), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["describe", "--program", f"file:{file}"]) == 0
    assert capsys.readouterr().out == model.recorded.text


@pytest.mark.slow
def test_matrices_of_fractions_are_constants_of_every_question(engine: Engine) -> None:
    """A rotation by a Pythagorean angle between keys and queries; its closure is the determinant of 3 x 3 matrices, rotated."""
    turn = np.array([[Fraction(3, 5), Fraction(-4, 5)], [Fraction(4, 5), Fraction(3, 5)]], dtype=object)
    model = from_callable(
        lambda X, Q, K: (turn @ K @ X).T @ (Q @ X), {"Q": (2, 3), "K": (2, 3)}, inputs={"X": (3, 2)}
    )
    dimension = m2bridge.dimension(model, engine=engine)
    assert (dimension.image_dim, dimension.certainty.value) == (8, "proved")
    closure = m2bridge.closure(model, engine=engine)
    assert (closure.codim, closure.degree) == (1, 3)
    singular = m2bridge.singular_locus(model, engine=engine)
    assert (singular.singular_dim, singular.singular_degree) == (5, 6)  # rank at most one
    assert (
        m2bridge.critical_points(model, engine=engine).regular == 39
    )  # generic ED degree of rank two, arXiv:1311.2376
    assert m2bridge.fiber(model, engine=engine).verdict == "identifiable-up-to-symmetry"


def test_floating_point_matrices_are_the_dyadic_numbers_that_they_are(engine: Engine) -> None:
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    model = from_callable(
        lambda X, Q, K: (turn @ K @ X).T @ (Q @ X), {"Q": (2, 3), "K": (2, 3)}, inputs={"X": (3, 2)}
    )
    assert m2bridge.dimension(model, engine=engine).image_dim == 8
