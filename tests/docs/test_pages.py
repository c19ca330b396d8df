"""Run every example of the README and of the pages of the site, and compare its output."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.docs import pages

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]
NEEDS = {"pytorch.md": "torch", "small-gpt.md": "torch"}


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_output_on_a_page_is_the_real_output(page: Path, tmp_path: Path) -> None:
    if (needed := NEEDS.get(page.name)) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{page.name} needs {needed}, which is not installed")
    os.symlink(ROOT / "examples", tmp_path / "examples")
    pages.run(page, tmp_path)


def page_with(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo two\none\n```\n",
        "```console\n$ printf 'a\\nb\\nc\\n'\na\nc\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ true  # exit 3\n```\n",
        "```python\n1 + 1  # 3\n```\n",
        "```python\nraise ValueError\n```\n",
    ],
)
def test_a_wrong_page_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ValueError)):
        pages.run(page_with(tmp_path, text), tmp_path)


def test_a_right_page_passes(tmp_path: Path) -> None:
    text = (
        "```toml\n# a.toml\nx = 1\n```\n```console\n$ cat a.toml\n...\nx = 1\n$ exit 3  # exit 3\n```\n"
        "<!-- not run: it would fail -->\n```console\n$ false\n```\n```python\nx = 2\nx + 1  # 3, not 4\nx  # some words\n```\n"
    )
    assert pages.run(page_with(tmp_path, text), tmp_path) == 3
