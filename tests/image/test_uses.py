"""What the product was made for, in the image, and the same answers as outside of it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Options = Callable[..., tuple[str, ...]]
pytestmark = pytest.mark.image

ENVIRONMENT = ("seconds", "engine", "peak_memory_bytes", "planned_memory_bytes", "memory_bytes", "digest")
"""Fields that say how long an answer took and on which machine, and the digest, which covers them; all others must be equal."""

FIFTY = """
[[grid]]
analysis = "dimension"
model = "lightning"
d = [2, 3]
dp = [1, 2, 3]
a = [1, 2]
t = 2
seed = "0..3"

[[job]]
analysis = "singular-locus"
spec = "lightning(d=2,dp=1)"

[[job]]
analysis = "closure"
spec = "lightning(d=2,dp=1)"
"""


def settled(document: Any) -> Any:
    """A document without times and without the place it was computed at."""
    if isinstance(document, dict):
        return {key: settled(value) for key, value in document.items() if key not in ENVIRONMENT}
    return [settled(item) for item in document] if isinstance(document, list) else document


def outside(engine: Path, *arguments: str, cwd: Path | None = None) -> str:
    """What the command prints on the host."""
    done = subprocess.run(
        [sys.executable, "-m", "m2bridge", *arguments],
        env={"M2BRIDGE_M2": str(engine), "PATH": "/usr/bin:/bin", "HOME": str(cwd or "/tmp")},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "question",
    [
        ("singular-locus", "--d", "2", "--dp", "1"),
        ("singular-locus", "--d", "2", "--dp", "2", "--a", "1", "--seed", "5", "--prime", "31991"),
        ("dimension", "lightning(d=3,dp=2,a=2)", "--seed", "7"),
        ("dimension", "softmax(d=[3,3,3],a=[2,2],t=3)"),
        ("closure", "lightning(d=2,dp=1)", "--seed", "2"),
        ("fiber", "lightning(d=2,dp=1)", "--seed", "3"),
        ("boundary", "lightning(d=2,dp=1)"),
        ("singular-point", "mlp(widths=[2,2,1],r=2)", "--seed", "4"),
    ],
    ids=lambda question: question[0],
)
def test_an_answer_is_the_same_as_outside(
    image: Any, outside_engine: Path, question: tuple[str, ...]
) -> None:
    inside = json.loads(image(*question, "--json").stdout)
    expected = json.loads(outside(outside_engine, *question, "--json"))
    assert settled(inside) == settled(expected)
    assert inside["agreement"] is not False


def test_theorem_3_4_in_a_mounted_directory_and_on_standard_output(
    image: Any, shared: Path, mount: Options, outside_engine: Path, tmp_path: Path
) -> None:
    question = ("figure", "theorem-3.4", "--d", "2", "--dp", "1")
    image(*question, "-o", "orbits.svg", options=mount(shared))
    assert sorted(path.name for path in shared.iterdir()) == ["orbits.csv", "orbits.json", "orbits.svg"]
    piped = image.raw(*question, "-o", "-", "--format", "svg")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == (shared / "orbits.svg").read_bytes()
    outside(outside_engine, *question, "-o", "orbits.svg", cwd=tmp_path)
    for name in ("orbits.json", "orbits.csv"):
        assert (shared / name).read_text() == (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "opening"),
    [
        (("figure", "theorem-3.4", "--d", "3", "--dp", "2", "--a", "2", "-o", "-"), b"\x89PNG\r\n\x1a\n"),
        (("figure", "1", "-o", "-", "--format", "pdf"), b"%PDF-"),
        (("figure", "1", "-o", "-", "--format", "html"), b"<!doctype html>"),
        (("figure", "3", "-o", "-", "--format", "svg", "--widths", "3..5"), b"<?xml"),
    ],
)
def test_every_figure_can_be_piped(image: Any, arguments: tuple[str, ...], opening: bytes) -> None:
    done = image.raw(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(opening)
    assert len(done.stdout) > 5_000
    assert b"arning" not in done.stderr


def results(text: str) -> list[dict[str, str]]:
    """The rows of a table of results, without times and what depends on them, in a fixed order."""
    rows = [
        {
            key: value
            for key, value in row.items()
            if not re.search("second|time|memory|engine|record|finished|started|when|host|digest|key", key)
        }
        for row in csv.DictReader(io.StringIO(text))
    ]
    return sorted(rows, key=lambda row: sorted(row.items()))


def test_a_batch_of_50_jobs_with_a_mounted_store(
    image: Any, shared: Path, mount: Options, outside_engine: Path, tmp_path: Path
) -> None:
    for directory in (shared, tmp_path):
        (directory / "jobs.toml").write_text(FIFTY)
    first = json.loads(
        image("batch", "jobs.toml", "--store", "store", "--json", options=mount(shared)).stdout
    )
    assert first["outcomes"] == {"complete": 50}
    planned = image(
        "batch", "jobs.toml", "--store", "store", "--dry-run", "--json", options=mount(shared)
    ).stdout
    assert json.loads(planned)["to_run"] == []
    again = json.loads(
        image("batch", "jobs.toml", "--store", "store", "--json", options=mount(shared)).stdout
    )
    assert again["outcomes"] == {"complete": 50}
    image("status", "store", options=mount(shared, "ro"))
    inside = image("results", "store", "--format", "csv", "--verify", options=mount(shared)).stdout
    outside(outside_engine, "batch", "jobs.toml", "--store", "store", cwd=tmp_path)
    expected = outside(outside_engine, "results", "store", "--format", "csv", cwd=tmp_path)
    assert len(results(inside)) == 50
    # rows are in the order of the keys of their jobs, which depend on the engine's version
    assert sorted(results(inside), key=json.dumps) == sorted(results(expected), key=json.dumps)


def test_verify_quick(image: Any) -> None:
    """Exit code 0: every verdict is the recorded one (6 otherwise)."""
    assert "Theorem 3.4" in image("verify", "--quick").stdout


def test_records_made_outside_are_checked_inside(
    image: Any, shared: Path, mount: Options, outside_engine: Path
) -> None:
    outside(outside_engine, "dimension", "lightning(d=3,dp=2,a=2)", "--save", str(shared))
    (record,) = shared.glob("*.json")
    assert "Verified: " in image("check", record.name, options=mount(shared, "ro")).stdout
    image("explain", record.name, options=mount(shared, "ro"))
    document = json.loads(record.read_text())
    document["image_dim"] += 1
    (shared / "wrong.json").write_text(json.dumps(document))
    assert image.raw("check", "wrong.json", options=mount(shared, "ro")).returncode == 7


@pytest.mark.parametrize(
    "arguments",
    [
        ("models",),
        ("describe", "lightning(d=2,dp=1)"),
        ("singular-locus", "--d", "2", "--dp", "1", "--script"),
        ("schema", "dimension"),
        ("doctor",),
        ("engine", "library"),
        ("--help",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_other_commands(image: Any, arguments: tuple[str, ...]) -> None:
    done = image(*arguments)
    assert done.stdout.strip()
    assert not done.stderr


def test_an_ideal_on_standard_input(image: Any) -> None:
    done = subprocess.run(
        image.words("ideal", "-", "--json", options=("-i",)),
        input="QQ[x,y,z]\nx*z - y^2\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["analysis"] == "ideal"


def test_python_and_the_html_of_notebooks(image: Any) -> None:
    code = "import m2bridge; print(m2bridge.dimension('lightning(d=2,dp=1)')._repr_html_())"
    assert "<table" in image("-c", code, program="python").stdout
