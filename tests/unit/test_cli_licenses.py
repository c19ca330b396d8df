"""``m2bridge licenses``: every part has a licence, and a library that nobody described is not passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from m2bridge.cli import licenses, main


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine laid out as the wheel lays it out, found by discovery."""
    binary = tmp_path / licenses.WHEEL_BINARY
    binary.parent.mkdir(parents=True)
    binary.touch()
    (tmp_path / "passagemath_macaulay2.libs").mkdir()
    monkeypatch.setattr(licenses, "places", lambda: iter([("wheel", binary)]))
    return tmp_path / "passagemath_macaulay2.libs"


def test_python_packages_declare_their_licences() -> None:
    parts = {part.name.lower(): part for part in licenses.python_parts()}
    assert {"python", "m2bridge", "numpy", "sympy", "jinja2", "markupsafe", "typer", "rich"} <= set(parts)
    assert parts["m2bridge"].license == "MIT"
    assert "BSD-3-Clause" in parts["numpy"].license
    assert parts["numpy"].texts
    assert all(part.license not in ("", licenses.UNKNOWN) for part in parts.values())


def test_pytest_is_no_part_of_what_is_run() -> None:
    assert "pytest" not in {part.name for part in licenses.python_parts()}


def test_libraries_of_the_wheel_are_named(wheel: Path) -> None:
    for name in (
        "libgmp-ef80bda1.so.10.5.0",
        "libopenblasp-r0-bb232149.3.34.so",
        "libfactory-4-f5c7250b.4.1.so",
    ):
        (wheel / name).touch()
    parts = {part.name: part for part in licenses.engine_parts()}
    assert set(parts) == {"Macaulay2", "GMP", "OpenBLAS", "Singular factory"}
    assert parts["GMP"].version == "so 10.5.0"
    assert parts["Macaulay2"].license.startswith("GPL-2.0")


def test_a_library_that_is_not_described_is_listed_as_unknown(wheel: Path) -> None:
    (wheel / "libnovel-00000000.so.1").touch()
    assert [p.name for p in licenses.engine_parts() if p.license == licenses.UNKNOWN] == [
        "libnovel-00000000.so.1"
    ]


def test_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["licenses", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert {part["kind"] for part in parts} >= {"python"}
    assert main(["licenses", "--text"]) == 0
    out = capsys.readouterr().out
    assert "m2bridge" in out
    assert "==== numpy" in out
