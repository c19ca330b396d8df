"""``--script`` prints the text whose values are those of the answer, below lines that describe it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m2bridge.cli import main
from m2bridge.report.readable_script import readable

LAYER = "lightning(d=2,dp=1)"
QUESTIONS: list[tuple[str, ...]] = [
    ("boundary", LAYER),
    ("closure", LAYER, "--method", "kernel"),
    ("closure", "mlp(widths=[2,2,2],r=2)", "--method", "kernel"),
    ("closure", "map:s,t->s^3;s^2*t;s*t^2;t^3", "--method", "kernel"),
    ("dimension", LAYER),
    ("dimension", "mlp(widths=[2,2,1],r=2)"),
    ("fiber", LAYER),
    ("fiber", "mlp(widths=[2,1,1],r=2)"),
    ("singular-locus", LAYER),
]


OPTIONS: list[tuple[str, ...]] = [(), ("--seed", "5"), ("--prime", "101")]
ASKED = [
    (arguments, options)
    for arguments in QUESTIONS
    for options in OPTIONS
    if arguments[0] != "boundary" or "--prime" not in options  # a boundary is over QQ
]


QUICK = ("closure", "dimension")


def param(arguments: tuple[str, ...], options: tuple[str, ...]) -> Any:
    """Each question is run twice; those with long scripts are run by `make test-m2`."""
    marks = () if arguments[0] in QUICK else (pytest.mark.slow,)
    return pytest.param(arguments, options, marks=marks, id=" ".join([*arguments, *options]))


HEADING_LINES = 4


def split_heading(printed: str) -> tuple[list[str], str]:
    """Return the comment lines that --script adds, and the script."""
    *heading, text = printed.split("\n", HEADING_LINES)
    assert all(line.startswith("-- ") for line in heading)
    return heading, text


@pytest.mark.parametrize(("arguments", "options"), [param(*asked) for asked in ASKED])
def test_the_script_is_one_that_the_question_runs(
    arguments: tuple[str, ...], options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, *options, "--keep", str(tmp_path), "--json"]) == 0
    capsys.readouterr()
    assert main([*arguments, *options, "--script"]) == 0
    ran = [readable(path.read_text()) for path in tmp_path.glob("*.m2")]
    heading, text = split_heading(capsys.readouterr().out)
    assert text in ran
    assert all(len(line) <= 120 for line in heading)


def test_a_closure_by_the_kernel_is_explained_with_its_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for field in ("QQ", "101"):
        saved = tmp_path / field
        saved.mkdir()
        command = ["closure", LAYER, "--method", "kernel", "--field", field, "--json"]
        assert main([*command, "--save", str(saved)]) == 0
        capsys.readouterr()
        (record,) = saved.glob("*.json")
        assert main(["explain", str(record)]) == 0
        assert f"p = {0 if field == 'QQ' else field};" in capsys.readouterr().out
