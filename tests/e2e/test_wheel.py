"""The built distributions: what is in them, and that the wheel works away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import m2bridge
from m2bridge._version import __version__
from tests.running import PATIENCE

CHECKOUT = Path(m2bridge.__file__).parent.parent


def run(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    done = run("-m", "build", "--no-isolation", "--outdir", out, CHECKOUT, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel alone in a directory of its own."""
    (wheel,) = built.glob("*.whl")
    target = tmp_path_factory.mktemp("site")
    done = run(
        "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel, cwd=target
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


def away(installed: Path, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``python -m m2bridge`` from the installed wheel; -S and -P keep the checkout off the path."""
    dependencies = os.pathsep.join(dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib")))
    path = os.pathsep.join([str(installed), dependencies])
    return run("-S", "-P", "-m", "m2bridge", *arguments, cwd=directory, PYTHONPATH=path)


def test_wheel_holds_the_package_its_templates_and_its_types(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    templates = {path.name for path in (CHECKOUT / "m2_templates").glob("*.m2.j2")}
    assert {f"m2bridge/m2_templates/{name}" for name in templates} <= names
    assert len(templates) > 4
    assert {
        "m2bridge/py.typed",
        "m2bridge/__main__.py",
        "m2bridge/questions/singular_locus/__init__.py",
    } <= names
    sources = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "m2bridge").rglob("*.py")}
    assert sources <= names
    shipped = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "m2bridge").rglob("*.json")}
    assert shipped <= names
    assert not [name for name in names if name.startswith("tests") or "__pycache__" in name]


def test_sdist_holds_what_the_wheel_and_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for path in (CHECKOUT / "m2_templates").glob("*.m2.j2"):
        assert f"m2_templates/{path.name}" in names
    assert {"pyproject.toml", "README.md", "LICENSE", "m2bridge/py.typed", "tests/conftest.py"} <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


def test_wheel_has_metadata(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
        (points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "m2bridge = m2bridge.cli:entry" in archive.read(points).decode()
    assert f"Version: {__version__}" in metadata
    assert "Requires-Python: >=3.11" in metadata


@pytest.mark.slow
def test_the_installed_wheel_is_the_one_that_runs(installed: Path, tmp_path: Path) -> None:
    done = away(installed, tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"m2bridge {__version__}\n", "")
    path = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    where = run(
        "-S", "-P", "-c", "import m2bridge.scripts as s; print(s.__file__); print(s.template_directory())",
        cwd=tmp_path, PYTHONPATH=path,
    )  # fmt: skip
    assert where.stdout.splitlines() == [
        str(installed / "m2bridge" / "scripts.py"),
        str(installed / "m2bridge" / "m2_templates"),
    ]


@pytest.mark.slow
def test_the_installed_wheel_renders_the_script_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    arguments = ("singular-locus", "--d", "2", "--dp", "1", "--script")
    done = away(installed, tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("-m", "m2bridge", *arguments, cwd=CHECKOUT).stdout


@pytest.mark.slow
def test_the_installed_wheel_answers_with_macaulay2(installed: Path, tmp_path: Path) -> None:
    done = away(installed, tmp_path, "singular-locus", "--d", "2", "--dp", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["image_dim"], document["singular_dim"], document["agreement"]) == (5, 4, True)
    assert document["package_version"] == __version__
    assert not list(tmp_path.iterdir())
