"""Boundary with the real Macaulay2: agreement of all witnesses, wrong algebra caught, records, the command."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from m2bridge import records, scripts
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo
from m2bridge.errors import InputError, LimitError, OutOfReachError
from m2bridge.families import Lightning, Softmax
from m2bridge.questions.boundary import Boundary, boundary, check_model
from m2bridge.questions.closure import Closure, closure
from m2bridge.schemas import schema
from m2bridge.scripts import template_directory
from tests.answering import Answers
from tests.marking import slow_except
from tests.running import run_command


@pytest.mark.parametrize("size", [(2, 1, 2), (2, 1, 1), (2, 2, 2), (1, 2, 1)])
def test_witnesses_agree(answered: Answers, size: tuple[int, int, int]) -> None:
    d, dp, a = size
    result = answered(boundary, Lightning(d=d, dp=dp, a=a))
    assert result.agreement is True, [str(c) for c in result.conflicts]
    assert result.certainty is Certainty.COMPUTED
    where = [e for e in result.evidence if e.quantity.startswith("where") and e.value is not None]
    assert {"criterion", "membership", "construction"} <= {e.witness for e in where}
    document = records.to_document(result)
    assert records.from_document(document) == result


def test_every_supported_engine_gives_the_same_answer(each_engine: Engine) -> None:
    result = boundary(Lightning(d=2, dp=1), engine=each_engine, point=[1, 0, 1, 0, 0, 0])
    assert result.agreement is True
    assert (result.image_dim, result.boundary_dim, result.closure_only_dim) == (5, 3, 4)
    parts = {part.name: part for part in result.parts}
    # degrees of the Segre-Veronese surface scroll P1 x v2(P1) in P5 (2 * 2) and of P1 x P2 in P5 (3): textbook values
    assert (parts["boundary"].degree, parts["closure-only"].degree) == (4, 3)
    assert result.point is not None
    assert result.point.where == "closure-only"


@pytest.mark.parametrize(
    ("size", "point", "where"),
    [
        # the slice a = (1, 0, z), b = (0, y, x) meets the closure in x^2 + z y^2 = 0 (Whitney's umbrella)
        ((2, 1, 2), [1, 0, -4, 0, 1, 2], "image"),
        ((2, 1, 2), [1, 0, -4, 0, 1, 1], "outside"),
        ((2, 1, 2), [1, 0, -4, 0, 0, 0], "image"),
        ((2, 1, 2), [1, 0, 0, 0, 0, 0], "boundary"),
        ((2, 1, 2), [1, 0, 4, 0, 0, 0], "closure-only"),
        ((2, 1, 2), [0, 0, 0, 0, 0, 0], "boundary"),
        # A of rank two where a = 1 allows one
        ((2, 1, 1), [1, 2, 0, 0, 1, 2], "outside"),
        # a point of the image that is equal to it in floating point
        ((2, 1, 2), [1, 2, f"1/{10**30}", 0, 1, 2], "outside"),
    ],
)
def test_places(answered: Answers, size: tuple[int, int, int], point: list[Any], where: str) -> None:
    d, dp, a = size
    result = answered(boundary, Lightning(d=d, dp=dp, a=a), point=point)
    assert result.agreement is not False, [str(c) for c in result.conflicts]
    assert result.certainty.exact
    assert result.point is not None
    assert result.point.where == where


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3, 1, 2), (3, 2, 2), (3, 3, 3), (4, 1, 2)])
def test_larger_sizes(answered: Answers, size: tuple[int, int, int]) -> None:
    d, dp, a = size
    result = answered(boundary, Lightning(d=d, dp=dp, a=a))
    assert result.agreement is True, [str(c) for c in result.conflicts]
    assert result.theorem.agrees is True
    assert result.corollary.agrees is True


WRONG = {
    "rank of one flattening forgotten": (
        "minors(2, alongOutput) + minors(2, alongInput)",
        "minors(2, alongOutput)",
    ),
    "off-diagonal entries of the quadric doubled": ("then 2 * c else c", "then c else c"),
    "one equation of the fiber forgotten": (
        "entries(f - numberMatrix(ring f, {c})) |",
        "entries(f - numberMatrix(ring f, {c}))_{0..4} |",
    ),
    "the wrong point": ("f - numberMatrix(ring f, {c})", "f + numberMatrix(ring f, {c})"),
    "another network": (
        "transpose X * attentionMatrix W * X;",
        "transpose X * (attentionMatrix W - transpose attentionMatrix W) * X;",
    ),
}


@pytest.mark.parametrize(
    "name", slow_except({"the wrong point", "one equation of the fiber forgotten"}, WRONG)
)
def test_wrong_algebra_is_caught(
    engine: Engine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = WRONG[name]
    copy = shutil.copytree(template_directory(), tmp_path / "m2_templates")
    changed = 0
    for name in ("Neuromanifolds/networks.m2", "Neuromanifolds/fibers.m2", "_lightning.m2.j2"):
        text = (copy / name).read_text()
        changed += text.count(right)
        (copy / name).write_text(text.replace(right, wrong))
    assert changed == 1
    monkeypatch.setattr(scripts, "template_directory", lambda: copy)
    result = boundary(Lightning(d=2, dp=1), engine=engine)
    assert result.agreement is False


def test_a_forgotten_equation_is_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_equations(*given: Any, **options: Any) -> Closure:
        return replace(closure(*given, **options), equations=())

    monkeypatch.setattr("m2bridge.questions.boundary.closure", without_equations)
    result = boundary(Lightning(d=2, dp=1), engine=engine)
    assert {c.quantity for c in result.conflicts} == {"in the closure: no factors"}


def test_wrong_decisions_are_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from m2bridge.questions.boundary import criterion

    true_e2 = criterion.e2
    monkeypatch.setattr(criterion, "e2", lambda S: -true_e2(S))
    result = boundary(Lightning(d=2, dp=1), engine=engine)
    assert result.agreement is False


def test_template_runs_as_it_stands(engine_info: EngineInfo) -> None:
    done = run_command([str(engine_info.path), "--script", "boundary.m2.j2"], cwd=template_directory())
    assert "@m2b on_rank_one [true,true,true,false,false]" in done.stdout
    assert "@m2b on_boundary [false,true,false,false,false]" in done.stdout
    assert done.stdout.strip().splitlines()[-1].startswith("@m2b-end")


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    point = ["--point", "1,0,-2,0,0,0"]
    assert main(["boundary", "--d", "2", "--dp", "1", *point, "--json", "--save", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema("boundary"))
    assert document["point"]["where"] == "image"
    assert document["theorem"]["agrees"] is True
    (saved,) = tmp_path.glob("boundary-*.json")
    assert isinstance(records.load(saved), Boundary)


def test_command_prints_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boundary", "--d", "2", "--dp", "1", "--point", "1,0,1,0,0,0"]) == 0
    text = capsys.readouterr().out
    assert "closure-only" in text
    assert "z[n,m]" in text
    assert "Corollary A.6" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--d", "2", "--dp", "1", "--point", "1,2"],
        ["--d", "2", "--dp", "1", "--t", "1"],
        ["--d", "0", "--dp", "1"],
        ["softmax(d=[3,3],t=3)"],
        ["--d", "12", "--dp", "12"],
    ],
)
def test_bad_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boundary", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1


def test_models_that_are_refused() -> None:
    with pytest.raises(InputError, match="membership"):
        check_model(Softmax(d=(3, 3), t=3))
    with pytest.raises(OutOfReachError):
        check_model(Lightning(d=12, dp=12))
    assert check_model(Lightning(d=12, dp=12), force=True).d == 12


def test_fractions_survive_the_record(answered: Answers) -> None:
    result = answered(boundary, Lightning(d=2, dp=1), point=["1/3", 0, "-1/7", 0, 0, 0])
    loaded = records.from_document(json.loads(records.dumps(records.to_document(result))))
    assert isinstance(loaded, Boundary)
    assert loaded.point is not None
    assert loaded.point.coordinates[:3] == (Fraction(1, 3), Fraction(0), Fraction(-1, 7))


def test_the_examples_can_be_read_in_eighty_columns(
    engine_info: EngineInfo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["boundary", "--d", "3", "--dp", "1", "--engine", str(engine_info.path)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    shown = printed.partition("Examples")[2].partition("Theorem 3.4")[0]
    header = next(line for line in shown.splitlines() if "rk V" in line)
    assert [word.strip() for word in header.split("┃")] == ["example", "where", "rk A", "rk V", "e2"]
    assert "irrational conjugate factors │ closure-only" in shown
    assert "37, 0, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 20, 46, 5, 45, 24, 36" in " ".join(shown.split())


def test_a_limit_in_membership_leaves_the_dimensions(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> Any:
        raise LimitError("membership: the time limit of 1 s was reached")

    monkeypatch.setattr(f"{boundary.function.__module__}.membership", stopped)
    result = boundary("lightning(d=2,dp=1)", engine=engine)
    assert result.limit == "membership: the time limit of 1 s was reached"
    assert (result.boundary_dim, result.examples) == (3, ())  # 2d + d' - 2
    assert result.orbits
