"""Tables of results: they fit their width, fold the model last, and name what they leave out."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from m2bridge.batch import listing
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


def lines(fitted: listing.Fitted) -> list[str]:
    console = Console(width=fitted.width)
    with console.capture() as captured:
        console.print(fitted.table)
    return [line.rstrip() for line in captured.get().splitlines()]


ROWS = [
    row("lightning(d=2,dp=1,a=2,t=2)", image_dim=5, generic_fiber_dim=5),
    row(DEEP, analysis="singular-locus", image_dim=23, generic_fiber_dim=19),
    row("mlp(widths=[2,2,1],r=2)", outcome="bad-job", message="this question is about one layer of lightning attention"),
]  # fmt: skip
DEFAULT = ("analysis", "model", "outcome", "image_dim", "generic_fiber_dim", "codim", "certainty", "seconds")


@pytest.mark.parametrize("width", [60, 70, 80, 90, 100, 130])
def test_a_table_fits_and_names_what_it_leaves_out(width: int) -> None:
    fitted = listing.fit(ROWS, DEFAULT, width, asked=False)
    printed = lines(fitted)
    assert fitted.width == width
    assert max(map(len, printed)) <= width
    header = " ".join(" ".join(printed[: next(i for i, line in enumerate(printed) if "━" in line)]).split())
    for name in DEFAULT:
        missing = name == "codim" or name in fitted.left_out
        assert (name.split("_")[0] in header) is not missing, name
    assert not {"analysis", "model", "outcome", "certainty"} & set(fitted.left_out)
    assert "deep-lightning(" in "\n".join(printed)


def test_the_model_is_folded_last_and_between_its_arguments() -> None:
    wide = "\n".join(lines(listing.fit(ROWS, DEFAULT, 120, asked=False)))
    assert DEEP in wide
    narrow = "\n".join(lines(listing.fit(ROWS, DEFAULT, 80, asked=False)))
    assert "d=[3,3,3],a=[2,2]," in narrow
    room = listing.fit(ROWS[:1], ("analysis", "model", "message", "codim"), 50, asked=False)
    assert "lightning(d=2,dp=1,a=2,t=2)" in "\n".join(lines(room))  # empty columns take no room
    assert doctest.testmod(listing).failed == 0


def test_what_was_asked_for_is_shown_whole_and_words_are_on_the_left() -> None:
    names = ("model", "codim", "message", "image_dim")
    printed = lines(listing.fit(ROWS, names, 30, asked=True))
    assert "codim" in "\n".join(printed)
    assert any(line.split("│")[2].startswith(" this question is") for line in printed if "│" in line)
    assert any(line.endswith("     5") for line in printed)
    assert listing.fit(ROWS, names, 30, asked=True).left_out == ()


def test_nothing_to_show() -> None:
    assert any("analysis" in line for line in lines(listing.fit([], DEFAULT, 80, asked=False)))


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
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["results", str(store)]) == 0
    assert "no room for: " in capsys.readouterr().out


def test_a_condition_on_what_no_record_has_is_refused(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for condition in ("foo > 2", "seed == 7 and foo == null", "image_dim > 2 or foo"):
        assert main(["results", str(store), "--where", condition]) == 2
        assert "--where: no record has foo; there are: a, analysis, " in capsys.readouterr().err
    for condition in ("seed == 7 and image_dim > 2", "image_dim > 99", "codim == 1"):
        assert main(["results", str(store), "--where", condition]) == 0
