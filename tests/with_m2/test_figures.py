"""Figures with the real Macaulay2: from the command to the files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.families import Lightning
from m2bridge.papers.lightning_attention.figures import orbit_diagram
from m2bridge.questions.boundary import Boundary, boundary
from m2bridge.questions.singular_locus import SingularLocus, singular_locus


@pytest.fixture(scope="module")
def locus(engine: Engine) -> SingularLocus:
    return singular_locus(Lightning(d=2, dp=1), engine=engine)


@pytest.fixture(scope="module")
def edge(engine: Engine) -> Boundary:
    return boundary(Lightning(d=2, dp=1), engine=engine)


def test_figure_1_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "figure-1.svg"
    assert main(["figure", "1", "-o", str(picture)]) == 0
    assert "satisfy" in capsys.readouterr().out
    document = json.loads(picture.with_suffix(".json").read_text())
    assert document["equation"] == "x^2+4*y^2*z^2-y^2"  # by hand from the resultant, see test_named_slices
    assert document["check"]["agrees"] is True
    with picture.with_suffix(".csv").open() as file:
        kinds = {row["kind"] for row in csv.DictReader(file)}
    assert kinds == {"surface", "singular", "closure-only", "boundary"}


def test_figure_1_from_a_record_and_a_wrong_one(
    locus: SingularLocus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(locus, tmp_path)
    assert (
        main(["figure", "1", "-o", str(tmp_path / "f.png"), "--record", str(path), "--slice", "umbrella"])
        == 0
    )
    text = path.read_text()
    (equation,) = locus.equations
    assert equation in text
    path.write_text(text.replace(equation, equation.replace("2*z0*z2*z3*z5", "4*z0*z2*z3*z5")))
    capsys.readouterr()
    assert main(["figure", "1", "-o", str(tmp_path / "g.png"), "--record", str(path)]) == 3
    assert not (tmp_path / "g.png").exists()


def test_figure_1_needs_the_right_record(edge: Boundary, engine: Engine, tmp_path: Path) -> None:
    path = records.save(edge, tmp_path)
    assert main(["figure", "1", "-o", str(tmp_path / "f.png"), "--record", str(path)]) == 2
    other = records.save(singular_locus(Lightning(d=2, dp=1, a=1), engine=engine), tmp_path)
    assert main(["figure", "1", "-o", str(tmp_path / "f.png"), "--record", str(other)]) == 2


def test_orbits_of_212(locus: SingularLocus, edge: Boundary, tmp_path: Path) -> None:
    nodes = orbit_diagram.nodes(locus, edge)
    assert [(n.orbit_dim, n.verdict, n.boundary, n.fails) for n in nodes] == [
        # dimensions by hand: the zero function, q (x) k^2 (2 + 2 - 1), q (x) S (2 + 3 - 1), the image (4 + 2 - 1)
        (0, "singular", True, False),
        (3, "singular", True, False),
        (4, "singular", False, False),
        (5, "smooth", False, False),
    ]
    assert [n.covers for n in nodes] == [(), (0,), (1,), (2,)]
    saved = [str(records.save(result, tmp_path)) for result in (locus, edge)]
    picture = tmp_path / "orbits.png"
    arguments = ["figure", "theorem-3.4", "-o", str(picture), "--record", saved[0], "--record", saved[1]]
    assert main(arguments) == 0
    assert picture.stat().st_size > 50_000


def test_a_changed_verdict_is_marked(locus: SingularLocus, edge: Boundary) -> None:
    wrong = replace(locus, strata=(*locus.strata[:-1], replace(locus.strata[-1], verdict="singular")))
    assert [n.fails for n in orbit_diagram.nodes(wrong, edge)] == [False, False, False, True]


def test_records_of_different_models_are_refused(engine: Engine, locus: SingularLocus) -> None:
    other = boundary(Lightning(d=2, dp=1, a=1), engine=engine)
    with pytest.raises(InputError, match="models"):
        orbit_diagram.nodes(locus, other)


@pytest.mark.slow
def test_the_printed_theorem_fails(tmp_path: Path) -> None:
    """(3,2,2): rk A = 1 < a = 2 is singular although rk A * rk V = 2 (the determinantal variety is singular there)."""
    picture = tmp_path / "orbit_diagram.svg"
    assert main(["figure", "theorem-3.4", "--d", "3", "--dp", "2", "--a", "2", "-o", str(picture)]) == 0
    document = json.loads(picture.with_suffix(".json").read_text())
    failing = {(o["rank_a"], o["rank_v"], o["meet"]) for o in document["orbits"] if o["fails"]}
    assert failing == {(1, 2, 0), (1, 2, 1)}
    assert "fails" in picture.read_text(encoding="utf-8")


SLICES = [
    # the equation on the slice, and its singular points, by hand
    ("map:t->t^2;t^3", ".svg", "x^3-y^2", [[0, 0]]),  # a cusp
    ("map:t->t^2-1;t^3-t", ".html", "x^3+x^2-y^2", [[0, 0]]),  # a node, at t = 1 and t = -1
    ("map:s,t->s^2;s*t;t^2", ".png", "x*z-y^2", [[0, 0, 0]]),  # a cone
]


@pytest.mark.parametrize(("spec", "ending", "equation", "points"), SLICES)
def test_a_slice_of_any_hypersurface(
    spec: str, ending: str, equation: str, points: list[list[int]], tmp_path: Path
) -> None:
    picture = tmp_path / f"slice{ending}"
    assert main(["figure", "slice", spec, "-o", str(picture)]) == 0
    assert picture.stat().st_size > 5000
    document = json.loads(picture.with_suffix(".json").read_text())
    assert document["equation"] == equation
    assert np.allclose(np.reshape(document["singular_points"], np.shape(points)), points, atol=1e-5)


@pytest.mark.slow
def test_a_slice_marks_a_singular_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whitney's umbrella x^2 = y^2 z is singular along x = y = 0; its handle, z < 0, is on no sheet."""
    assert main(["figure", "slice", "map:s,t->s*t;s;t^2", "-o", str(tmp_path / "u.html")]) == 0
    with (tmp_path / "u.csv").open() as file:
        rows = list(csv.DictReader(file))
    line = [row for row in rows if row["kind"] == "singular"]
    assert len(line) > 100
    assert all(abs(float(row["x"])) < 1e-5 and abs(float(row["y"])) < 1e-5 for row in line)
    assert min(float(row["z"]) for row in line) < -0.9
    for row in rows:
        x, y, z = (float(row[axis]) for axis in "xyz")
        assert abs(x * x - y * y * z) < 1e-2


@pytest.mark.slow
def test_a_slice_through_a_singular_point_from_a_record(locus: SingularLocus, tmp_path: Path) -> None:
    path = records.save(locus, tmp_path)
    for dims in ("2", "3"):
        picture = tmp_path / f"s{dims}.png"
        assert main(["figure", "slice", "--record", str(path), "--dims", dims, "-o", str(picture)]) == 0
        document = json.loads(picture.with_suffix(".json").read_text())
        assert len(document["slice"]["directions"]) == int(dims)
        assert "singular point" in document["slice"]["title"]
    given = tmp_path / "given.json"
    given.write_text(
        json.dumps(
            {
                "origin": [1, 0, 0, 0, 0, 0],
                "directions": [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]],
            }
        )
    )
    picture = tmp_path / "g.png"
    assert main(["figure", "slice", "--record", str(path), "--slice", str(given), "-o", str(picture)]) == 0
    # a = (1, 0, z), b = (0, y, x): the umbrella, by hand from the resultant
    assert json.loads(picture.with_suffix(".json").read_text())["equation"] == "x^2+y^2*z"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", "hypersurface"),
        ("map:s,t->s;t", "hypersurface"),
        ("softmax(d=[2,2],t=2)", "polynomial"),
    ],
)
def test_models_without_a_slice_are_refused(
    spec: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "slice", spec, "-o", str(tmp_path / "x.png")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1
