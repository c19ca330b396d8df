"""The list of licences in the image: a library without a description ends the build."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

IMAGE = Path(__file__).parents[2] / "image"
PARTS = IMAGE / "engine_parts.json"


@pytest.fixture
def licenses():
    spec = importlib.util.spec_from_file_location("image_licenses", IMAGE / "licenses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_python_packages_declare_their_licences(licenses) -> None:
    lines = list(licenses.python_parts())
    assert any(line.startswith("m2bridge ") and line.endswith(": MIT") for line in lines)
    assert any(line.startswith("numpy ") and "BSD-3-Clause" in line for line in lines)


def test_libraries_of_the_wheel_are_named(licenses, tmp_path: Path) -> None:
    libraries = tmp_path / "passagemath_macaulay2.libs"
    libraries.mkdir()
    for name in ("libgmp-ef80bda1.so.10.5.0", "libopenblasp-r0-bb232149.3.34.so"):
        (libraries / name).touch()
    assert [line.partition(":")[0] for line in licenses.engine_parts(tmp_path, PARTS)] == ["GMP", "OpenBLAS"]
    (libraries / "libnovel-00000000.so.1").touch()
    with pytest.raises(SystemExit, match="no licence is known for libnovel"):
        list(licenses.engine_parts(tmp_path, PARTS))
