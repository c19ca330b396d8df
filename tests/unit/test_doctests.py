"""Run the examples in all docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import m2bridge

ROOT = Path(m2bridge.__file__).parent


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = [_module(path) for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    done = doctest.testmod(module)
    assert done.failed == 0
    assert done.attempted > 0 or "+SKIP" in Path(str(module.__file__)).read_text(encoding="utf-8")
