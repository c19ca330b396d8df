"""A question and a family from outside the package: blocks of CONTRIBUTING.md, copied into a directory, are full citizens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from m2bridge.evidence import AGREEMENT_WORDS
from tests.running import PATIENCE

Run = Callable[..., subprocess.CompletedProcess[str]]
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
JOBS = """\
[[grid]]
analysis = "linear-span"
model = "lightning"
d = 2
dp = [1, 2]
extra = 3
"""


def blocks() -> dict[str, str]:
    """The templates and the Python files that CONTRIBUTING.md shows as a new question and as a new family."""
    files = {}
    for heading, name, template in (
        ("question", "linear_span", "linear_span"),
        ("family", "gated", "_gated"),
    ):
        section = CONTRIBUTING.read_text().partition(f"## A new {heading}")[2].partition("\n## ")[0]
        found = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
        files |= {f"{template}.m2.j2": found["macaulay2"], f"{name}.py": found["python"]}
    return files


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    site = tmp_path / "site"
    site.mkdir()
    for name, text in blocks().items():
        (site / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("M2BRIDGE_PLUGINS", "linear_span,gated")

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "m2bridge", *map(str, arguments)]
        return subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path
        )

    return call


def test_it_is_listed_described_and_answers(run: Run) -> None:
    assert "linear-span" in run("--help").stdout
    assert "--extra" in run("linear-span", "--help").stdout
    done = run("linear-span", "--d", 2, "--dp", 1)
    assert done.returncode == 0, done.stderr
    # 2 choices of x_1's coordinate times 3 monomials of x_2, and no linear relation among their coefficients
    assert done.stdout.startswith("the linear span has dimension 6; probable")
    assert AGREEMENT_WORDS[True] in done.stdout
    assert "to prove it: the coefficients over QQ" in done.stdout


@pytest.mark.slow
def test_its_json_fits_the_schema_made_from_its_type(run: Run) -> None:
    schema = json.loads(run("schema", "linear-span").stdout)
    done = run("linear-span", "lightning(d=2,dp=2)", "--json", "--seed", 3)
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema)
    assert (document["span_dim"], document["agreement"], document["seed"]) == (12, True, 3)


@pytest.mark.slow
def test_it_is_rendered_saved_and_explained(run: Run, tmp_path: Path) -> None:
    script = run("linear-span", "--d", 3, "--dp", 1, "--script").stdout
    assert "d = 3;" in script
    assert "rank lift(last coefficients coordinates, kk)" in script
    assert run("linear-span", "--d", 2, "--dp", 1, "--save", tmp_path / "records").returncode == 0
    (record,) = (tmp_path / "records").glob("*.json")
    explained = run("explain", record)
    assert explained.returncode == 0, explained.stderr
    assert "the linear span has dimension 6" in explained.stdout
    assert "emit(" in explained.stdout


@pytest.mark.slow
def test_it_runs_in_a_batch_and_its_template_is_part_of_the_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(JOBS)
    first = run("batch", "jobs.toml", "--store", "store", "--workers", 1)
    assert first.returncode == 0, first.stderr
    listed = json.loads(run("results", "store", "--format", "json").stdout)
    assert sorted(row["span_dim"] for row in listed) == [6, 12]
    assert "0 to run" in run("batch", "jobs.toml", "--store", "store", "--dry-run").stdout
    template = tmp_path / "site" / "linear_span.m2.j2"
    template.write_text(template.read_text() + "-- a later thought\n")
    assert "2 to run" in run("batch", "jobs.toml", "--store", "store", "--dry-run").stdout


@pytest.mark.slow
def test_limits_and_mistakes_have_their_exit_codes(run: Run, tmp_path: Path) -> None:
    large = run("linear-span", "--d", 9, "--dp", 9, "--timeout", "1s")
    assert large.returncode == 5, large.stdout + large.stderr
    assert "undecided" in large.stdout.splitlines()[0]  # and not "probable", which nothing is here
    assert "--timeout" in large.stderr
    assert run("linear-span", "--d", 2, "--dp", 1, "--extra", -1).returncode == 2
    template = tmp_path / "site" / "linear_span.m2.j2"
    template.write_text(template.read_text().replace("rank lift", "1 + rank lift"))
    wrong = run("linear-span", "--d", 2, "--dp", 1)
    assert wrong.returncode == 3
    assert AGREEMENT_WORDS[False] in wrong.stderr


@pytest.mark.slow
def test_a_family_answers_every_question(run: Run, tmp_path: Path) -> None:
    assert "gated(d=3,h=1)" in run("models").stdout
    assert "gated" in run("dimension", "gatd(d=3,h=1)").stderr
    # the quadrics of rank at most 2 in 3 variables: the determinant's hypersurface, of dimension 5 and degree 3, in 6 dimensions
    found = run("dimension", "gated(d=3,h=1)", "--save", "records")
    assert found.stdout.startswith("dimension 5, affine"), found.stderr
    assert "macaulay2: " in found.stdout
    closure = json.loads(run("closure", "gated:d=3,h=1", "--json").stdout)
    assert (closure["codim"], closure["degree"], closure["agreement"]) == (1, 3, True)
    assert run("linear-span", "gated(d=3,h=1)").stdout.startswith("the linear span has dimension 6")
    (record,) = (tmp_path / "records").glob("*.json")
    assert run("explain", record).returncode == 0
    assert run("report", "records", "-o", "page.html").returncode == 0


@pytest.mark.slow
def test_a_family_runs_in_a_batch_and_its_two_files_are_part_of_the_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(
        '[[grid]]\nanalysis = "dimension"\nmodel = "gated"\nd = [2, 3]\nh = 1\n'
    )
    done = run("batch", "jobs.toml", "--store", "store", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 to run" in run("batch", "jobs.toml", "--store", "store", "--dry-run").stdout
    source = tmp_path / "site" / "gated.py"
    text = source.read_text()
    source.write_text(text.replace('weights["V"] @ ((', '2 * weights["V"] @ (('))
    assert "2 to run" in run("batch", "jobs.toml", "--store", "store", "--dry-run").stdout
    source.write_text(text)
    partial = tmp_path / "site" / "_gated.m2.j2"
    partial.write_text(
        partial.read_text().replace("(W#0 * x)^{i}", "(W#1 * x)^{i}")
    )  # another network: x -> V (W x)^2
    assert "2 to run" in run("batch", "jobs.toml", "--store", "store", "--dry-run").stdout
    assert run("dimension", "gated(d=3,h=1)").returncode == 3


@pytest.mark.slow
def test_entry_points_are_listed_by_their_package_and_not_imported(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "site" / "spans"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "site" / "linear_span.py").rename(package / "linear_span.py")
    points = tmp_path / "site" / "spans-1.dist-info"
    points.mkdir()
    (points / "METADATA").write_text("Metadata-Version: 2.1\nName: spans\nVersion: 1\n")
    (points / "entry_points.txt").write_text(
        "[m2bridge.questions]\nlinear-span = spans.linear_span:linear_span\n"
    )
    listed = run("--help")
    assert listed.returncode == 0, listed.stderr
    assert "linear-span A question of the package spans." in " ".join(listed.stdout.split())
    broken = run("linear-span", "--d", 2, "--dp", 1)
    assert broken.returncode == 2
    assert "spans.linear_span" in broken.stderr
