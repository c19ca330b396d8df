"""The published figures are what the commands beside them make, within the tolerance that their README states."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from m2bridge.cli import main

PUBLISHED = Path(__file__).parents[2] / "results" / "figures"
TOLERANCE = 1e-5


def commands() -> dict[str, list[str]]:
    """The arguments that make each file."""
    found = {}
    for line in (PUBLISHED / "commands.txt").read_text().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "m2bridge"
        found[arguments[arguments.index("-o") + 1]] = arguments
    return found


def same(first: Any, second: Any) -> bool:
    if isinstance(first, float) or isinstance(second, float):
        return abs(first - second) <= TOLERANCE
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)


def test_every_published_picture_has_its_command_and_data() -> None:
    pictures = {p.name for p in PUBLISHED.iterdir() if p.suffix in (".png", ".pdf", ".svg", ".html")}
    assert pictures == set(commands())
    for name in pictures:
        for ending in (".json", ".csv"):
            assert (PUBLISHED / name).with_suffix(ending).is_file()


@pytest.mark.parametrize(
    "name",
    [
        "figure-1.png",
        "figure-3.svg",
        pytest.param("figure-1-random.png", marks=pytest.mark.slow),
        pytest.param("theorem-3.4-d2-dp1-a2.png", marks=pytest.mark.slow),
        pytest.param("theorem-3.4-d3-dp2-a2.png", marks=pytest.mark.slow),
        pytest.param("figure-3-lightning.png", marks=pytest.mark.slow),
    ],
)
def test_data_made_again_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(commands()[name]) == 0
    made, published = (
        json.loads((directory / name).with_suffix(".json").read_text()) for directory in (tmp_path, PUBLISHED)
    )
    assert same(made, published)
