"""The families of this package, installed as a third party would, against published values and plain definitions with loops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import m2bridge
from m2bridge import checker, records
from m2bridge.errors import SpecError
from m2bridge.families import parse_spec
from m2bridge.families.catalogue import families

PACKAGE = Path(__file__).parents[1]
Plain = Callable[[dict[str, np.ndarray], np.ndarray], Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a directory of its own, without network."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(target)]
    done = subprocess.run([*pip, *options, str(PACKAGE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module", autouse=True)
def installed(site: Path) -> Iterator[None]:
    """Let this process find the entry points of the installed package."""
    sys.path.insert(0, str(site))
    families.cache_clear()
    yield
    sys.path.remove(str(site))
    families.cache_clear()


@pytest.fixture
def run(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the command line where the package is installed, and return what it prints."""
    monkeypatch.setenv("PYTHONPATH", str(site))

    def call(*arguments: str) -> str:
        words = [sys.executable, "-m", "m2bridge", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


# -- definitions ------------------------------------------------------------------------------------------


def cross(w: dict[str, np.ndarray], x: np.ndarray) -> Any:
    X, Y = [x[0:2], x[2:4]], [x[4:7], x[7:10], x[10:13]]
    columns = [sum((w["V"] @ y) * ((w["K"] @ y) @ (w["Q"] @ x)) for y in Y) for x in X]
    return np.stack(columns, axis=1)


def on_path3(w: dict[str, np.ndarray], X: np.ndarray) -> Any:
    near = {0: (0, 1), 1: (0, 1, 2), 2: (1, 2)}
    hidden = {v: (w["W1"] @ sum(X[:, u] for u in near[v])) ** 2 for v in near}
    return np.stack([w["W2"] @ sum(hidden[u] for u in near[v]) for v in near], axis=1)


def over_c2(w: dict[str, np.ndarray], x: np.ndarray) -> Any:
    (w0, w1), (v0, v1) = w["w1"], w["w2"]
    return [v0 * (w0 * x[0] + w1 * x[1]) ** 2 + v1 * (w0 * x[1] + w1 * x[0]) ** 2]


def train(w: dict[str, np.ndarray], _: Any) -> Any:
    entry = lambda i, j, k: (w["G1"][:, i, :] @ w["G2"][:, j, :] @ w["G3"][:, k, :])[0, 0]  # noqa: E731
    return np.array([[[entry(i, j, k) for k in range(2)] for j in range(3)] for i in range(2)])


def given_activation(w: dict[str, np.ndarray], x: np.ndarray) -> Any:
    y = w["W1"] @ x + w["b1"]
    return w["W2"] @ (1 - 2 * y + 3 * y**3) + w["b2"]


def learned_activation(w: dict[str, np.ndarray], x: np.ndarray) -> Any:
    y = w["W1"] @ x
    return w["W2"] @ (w["c1_0"] + w["c1_1"] * y + w["c1_2"] * y**2)


CASES: list[tuple[str, Plain]] = [
    ("cross-attention(d=2,e=3,dp=2,a=2,t=2,s=3)", cross),
    ("graph-convolution(edges=[1,2,2,3],widths=[2,3,2],r=2)", on_path3),
    ("group-convolution(group=C2,layers=2,r=2)", over_c2),
    ("tensor-train(sizes=[2,3,2],ranks=[2,2])", train),
    ("polynomial-mlp(widths=[2,2,2],coefficients=[1,-2,0,3],bias=true)", given_activation),
    ("polynomial-mlp(widths=[2,3,2],degree=2)", learned_activation),
]


@pytest.mark.parametrize(("spec", "plain"), CASES, ids=[spec for spec, _ in CASES])
def test_a_family_is_its_plain_definition(spec: str, plain: Plain) -> None:
    model, rng = parse_spec(spec), np.random.default_rng(1)
    assert parse_spec(model.spec) == model
    for _ in range(3):
        weights = {name: rng.integers(1, 9, size=shape) for name, shape in model.parameters.items()}
        x = rng.integers(1, 9, size=model.input_shape or ())
        ours = model.coordinates(weights) if model.input_shape is None else model.forward(weights, x)
        assert np.asarray(ours).reshape(-1).tolist() == np.asarray(plain(weights, x)).reshape(-1).tolist()


# -- published values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # Holtz, Rohwedder, Schneider, 2012: the entries of the cores minus those of GL(r_k) between them
        ("tensor-train(sizes=[2,2,2,2],ranks=[2,2,2])", 4 + 8 + 8 + 4 - 3 * 4),
        ("tensor-train(sizes=[3,3,3],ranks=[2,2])", 6 + 12 + 6 - 2 * 4),
        # arXiv:2603.29566: the weights minus the rescalings between layers
        ("group-convolution(group=C2,layers=3,r=2)", 3 * 2 - 2),
        ("group-convolution(group=C3,layers=3,r=2)", 3 * 3 - 2),
        # arXiv:2408.17221, Corollary 3.3: for d = e the coefficients of y_i y_j x_m are the coordinates of one layer
        ("cross-attention(d=2,dp=2,t=1)", 4 + 4 - 1),
        # X -> W X S in one layer
        ("graph-convolution(edges=[1,2,2,3],widths=[2,2],r=2)", 4),
        # f(X S) S with f(x) = v (w x)^2, v and w up to one scaling
        ("graph-convolution(edges=[1,2,2,3],widths=[2,1,2],r=2)", 2 + 2 - 1),
        # pairs of all polynomials of degree two in two variables
        ("polynomial-mlp(widths=[2,3,2],degree=2)", 2 * 6),
    ],
)
def test_dimensions_are_proved_and_macaulay2_agrees(spec: str, expected: int) -> None:
    found = m2bridge.dimension(spec)
    assert (found.image_dim, found.certainty.value, found.agreement) == (expected, "proved", True)
    assert "macaulay2" in {item.witness for item in found.evidence}


@pytest.mark.parametrize(("group", "points"), [("C2", 4), pytest.param("C3", 9, marks=pytest.mark.slow)])
def test_generic_fibers_of_group_convolutions_up_to_rescaling(group: str, points: int) -> None:
    """arXiv:2603.29566: one orbit of G x G, |G|^2 points; by Macaulay2 components of the fiber, each one orbit of rescalings.

    The number of orbits has one definition only: ranks, which stand on the program, do not count orbits.
    """
    found = m2bridge.fiber(f"group-convolution(group={group},layers=3,r=2)")
    assert (found.orbits, found.fiber_dim, found.dim_at_point) == (points, 2, 2)
    assert found.agreement is not False


@pytest.mark.parametrize("group", ["C1", "C5", "D2", "D3", "D4"])
def test_the_tables_are_those_of_groups(group: str) -> None:
    from example_families.group_convolution import cayley_table

    table = cayley_table(group)
    n = len(table)
    assert (table[0] == np.arange(n)).all()
    assert (table[:, 0] == np.arange(n)).all()
    assert (np.sort(table, axis=1) == np.arange(n)).all(), "inverses"
    assert (table[table] == table[:, table]).all(), "associative"
    assert (table == table.T).all() == group.startswith(("C", "D2"))


# -- as a third party -------------------------------------------------------------------------------------


def test_the_families_are_listed_and_answer_on_the_command_line(run: Callable[..., str]) -> None:
    listed = {item["name"]: item["kind"] for item in json.loads(run("models", "--json"))}
    for name in (
        "cross-attention",
        "graph-convolution",
        "group-convolution",
        "polynomial-mlp",
        "tensor-train",
    ):
        assert listed[name] == "other packages"
    assert run("dimension", "tensor-train(sizes=[2,2,2],ranks=[2,2])").startswith(
        "dimension 8, affine; proved"
    )


def test_the_checker_verifies_the_program_and_not_the_family() -> None:
    spec = "tensor-train(sizes=[2,2,2],ranks=[2,2])"
    document = records.to_document(m2bridge.dimension(spec, engine=False))
    code, lines = checker.verify(records.dumps(document))
    text = " ".join(lines)
    assert code == 9  # the dimension of the program is verified, that the program is this network is not
    assert lines[0] == "Verified: the dimension is 8. Not covered: model."
    assert "This is about the program with hash" in text
    assert f'not supported by this checker, and nothing is verified about it: "{spec}"' in text


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("cross-attention(d=2)", "dp="),
        ("graph-convolution(edges=[1,2,3],widths=[2,1])", "two of at most"),
        ("graph-convolution(edges=[1,1],widths=[2,1])", "two different"),
        ("group-convolution(group=E8,layers=2)", "C2, C3"),
        ("group-convolution(group=D31,layers=2)", "C2, C3"),
        ("tensor-train(sizes=[2,2,2],ranks=[2])", "one between two cores"),
        ("polynomial-mlp(widths=[2,2])", "degree="),
        ("polynomial-mlp(widths=[2,2],coefficients=[0,1,0])", "not zero"),
    ],
)
def test_inconsistent_arguments_are_refused(spec: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_spec(spec)
