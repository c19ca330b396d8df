"""The tutorial on families, every block is run in order, and its output is that of the page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "families.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it prints among others."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    names: dict[str, object] = {}
    for kind, text in BLOCKS:
        if kind == "toml":
            (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif kind == "console":
            for command, lines in commands(text):
                program = f"{sys.executable} -m {command}"
                done = subprocess.run(
                    program, shell=True, capture_output=True, text=True, timeout=PATIENCE, check=False
                )
                assert done.returncode == 0, done.stderr
                for line in (line for line in lines if line != "..."):
                    assert line in done.stdout, (command, done.stdout)
        else:
            exec(compile(text, f"{kind} block", "exec"), names)
    frame, found = names["frame"], names["found"]
    assert list(frame["image_dim"]) == [3, 6, 6, 6, 6]  # type: ignore[index]
    assert found.at_point.loss == 2  # type: ignore[attr-defined]
