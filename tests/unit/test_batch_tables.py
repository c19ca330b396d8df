"""Tables of results: they fit the width, and no text is truncated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from m2bridge.batch import tables
from m2bridge.batch.store import STORE_VERSION, Store
from m2bridge.cli import main

DEEP = "deep-lightning(d=[3,3,3],a=[2,2],t=3)"


def row(model: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "analysis": "dimension",
        "outcome": "complete",
        "certainty": "proved",
        "seconds": 0.25,
        "message": None,
    }
    return {"model": model, **plain, **changes}


def lines(columns: Sequence[str], width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(tables.as_table(ROWS, columns, width))
    return [line.rstrip() for line in captured.get().splitlines()]


ROWS = [
    row("lightning(d=2,dp=1,a=2,t=2)", image_dim=5, generic_fiber_dim=5),
    row(DEEP, analysis="singular-locus", image_dim=23, generic_fiber_dim=19),
    row("mlp(widths=[2,2,1],r=2)", outcome="bad-job", message="this question is about one layer of lightning attention"),
]  # fmt: skip
DEFAULT = ("analysis", "model", "outcome", "image_dim", "generic_fiber_dim", "codim", "certainty", "seconds")


@pytest.mark.parametrize("width", [60, 80, 100, 130])
def test_a_table_fits_and_no_text_is_truncated(width: int) -> None:
    printed = lines(DEFAULT, width)
    assert max(map(len, printed)) <= width
    below = printed[next(i for i, line in enumerate(printed) if "━" in line) + 1 :]
    for column, name in enumerate(DEFAULT):
        cells = "".join(line.split("│")[column].strip() for line in below)
        assert cells == "".join(tables.text_of(row.get(name)) for row in ROWS)
    assert "…" not in "".join(printed)


def test_long_cells_are_folded_first_and_words_are_on_the_left() -> None:
    assert DEEP in "\n".join(lines(DEFAULT, 120))
    narrow = "\n".join(lines(DEFAULT, 85))
    assert DEEP not in narrow
    assert "singular-locus" in narrow
    printed = lines(("model", "message", "image_dim"), 120)
    assert any(line.split("│")[1].startswith(" this question is") for line in printed if "│" in line)
    assert any(line.endswith("     5") for line in printed)


def test_a_user_defined_network_is_shown_by_its_name() -> None:
    table = tables.as_table([row("program:" + "x" * 500, name="my gate")], ["model"], 80)
    assert [str(cell) for cell in table.columns[0].cells] == ["my gate"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    opened = Store.open_for_writing(tmp_path / "store")
    for number in range(3):
        key = f"{number:064x}"
        job = {
            "analysis": "fiber", "model": DEEP, "parameters": {"prime": 32003 + number, "seed": 0},
            "size": 42, "tags": [],
        }  # fmt: skip
        opened.write(
            key,
            {
                "store_version": STORE_VERSION, "key": key, "question": {}, "job": job, "outcome": "complete",
                "message": None, "result": {"image_dim": 23, "codim": number}, "limits": {}, "seconds": 0.5,
                "peak_memory_bytes": None, "attempts": [{}], "engine": None, "package_version": "0",
                "finished": "2024-01-01T00:00:00+00:00",
            },
        )  # fmt: skip
    opened.close()
    return tmp_path / "store"


def test_the_command_fits_into_eighty_columns(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["results", str(store)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "32005" in printed


def test_other_formats_are_rejected(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(store), "--format", "xml"]) == 2
    assert "table, csv, json" in capsys.readouterr().err


def test_a_condition_on_an_unknown_name_is_rejected(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for condition in ("foo > 2", "seed == 7 and foo == null", "image_dim > 2 or foo"):
        assert main(["results", str(store), "--where", condition]) == 2
        assert re.search(r"--where: .*foo.* a, analysis, ", capsys.readouterr().err)
    for condition in ("seed == 7 and image_dim > 2", "image_dim > 99", "codim == 1"):
        assert main(["results", str(store), "--where", condition]) == 0
