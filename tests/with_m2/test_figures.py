"""Figures with the real Macaulay2: from the command to the files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.figures import orbits
from m2bridge.models import Lightning
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
    assert "satisfy the equation" in capsys.readouterr().out
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
    assert "disagree" in capsys.readouterr().err
    assert not (tmp_path / "g.png").exists()


def test_figure_1_needs_the_right_record(edge: Boundary, engine: Engine, tmp_path: Path) -> None:
    path = records.save(edge, tmp_path)
    assert main(["figure", "1", "-o", str(tmp_path / "f.png"), "--record", str(path)]) == 2
    other = records.save(singular_locus(Lightning(d=2, dp=1, a=1), engine=engine), tmp_path)
    assert main(["figure", "1", "-o", str(tmp_path / "f.png"), "--record", str(other)]) == 2


def test_orbits_of_212(locus: SingularLocus, edge: Boundary, tmp_path: Path) -> None:
    nodes = orbits.nodes(locus, edge)
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
    assert [n.fails for n in orbits.nodes(wrong, edge)] == [False, False, False, True]


def test_records_of_different_models_are_refused(engine: Engine, locus: SingularLocus) -> None:
    other = boundary(Lightning(d=2, dp=1, a=1), engine=engine)
    with pytest.raises(InputError, match="different models"):
        orbits.nodes(locus, other)


@pytest.mark.slow
def test_where_the_printed_theorem_fails(tmp_path: Path) -> None:
    """(3,2,2): rk A = 1 < a = 2 is singular although rk A * rk V = 2 (the determinantal variety is singular there)."""
    picture = tmp_path / "orbits.svg"
    assert main(["figure", "theorem-3.4", "--d", "3", "--dp", "2", "--a", "2", "-o", str(picture)]) == 0
    document = json.loads(picture.with_suffix(".json").read_text())
    failing = {(o["rank_a"], o["rank_v"], o["meet"]) for o in document["orbits"] if o["fails"]}
    assert failing == {(1, 2, 0), (1, 2, 1)}
    assert "printed theorem fails" in picture.read_text(encoding="utf-8")
