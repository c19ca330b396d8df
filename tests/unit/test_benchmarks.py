"""The programs of benchmarks/ fit the package: their imports work, so that a renamed module is noticed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parents[2] / "benchmarks"
NEED_TORCH = {"pytorch", "pytorch_modules"}
PROGRAMS = sorted({path.stem for path in DIRECTORY.glob("*.py")} - NEED_TORCH)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_imports_of_a_benchmark_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DIRECTORY))
    monkeypatch.setattr(sys, "argv", [name])
    before = set(sys.modules)
    try:
        assert importlib.import_module(name).__doc__
    finally:
        for module in set(sys.modules) - before:
            if module in PROGRAMS:
                del sys.modules[module]
