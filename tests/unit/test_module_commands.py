"""Commands `python -m m2bridge.X` in files that no other test runs: the modules exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATTERNS = (
    "Makefile", "*.md", "*.yaml", "*.yml", ".ci/*", ".github/**/*.yml", "image/*", "docs/**/*.md", "packaging/**/*.yaml",
    "results/*.md", "examples/**/*.md",
)  # fmt: skip
COMMAND = re.compile(r"python[0-9.]* -m (m2bridge(?:\.\w+)*)")


def commands() -> list[tuple[str, str]]:
    files = {
        path
        for pattern in PATTERNS
        for path in ROOT.glob(pattern)
        if path.is_file() and "_build" not in path.parts
    }
    return sorted(
        {
            (str(path.relative_to(ROOT)), module)
            for path in files
            for module in COMMAND.findall(path.read_text(errors="replace"))
        }
    )


def test_commands_are_found() -> None:
    assert ("Makefile", "m2bridge.schemas") in commands()


@pytest.mark.parametrize(("file", "module"), commands())
def test_modules_of_commands_exist(file: str, module: str) -> None:
    assert find_spec(module) is not None, file
