"""The display of a running batch."""

from __future__ import annotations

import io
import re
from collections import Counter

from rich.console import Console

from m2bridge.batch.display import Lines, Running, RunState, live_view

STATE = RunState(
    source="jobs.toml",
    total=10,
    workers=2,
    cached=Counter({"complete": 3}),
    done=Counter({"complete": 2, "timed-out": 1}),
    running=[Running("dimension lightning(d=2,dp=1,a=2,t=2)", 75.2, "rank of the Jacobian", 2)],
    seconds=100.0,
    memory_bytes=3 * 2**30,
    eta_seconds=3725.0,
    stopping="finishing running jobs; Ctrl-C again stops now",
)


def test_the_live_view_shows_the_state() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(live_view(STATE))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for words in (
        "6/10 done",
        "1 running",
        "3 cached",
        "1 timed-out",
        "memory 3.0 GB",
        "1:40",
        "about 1:02:05 left",
        "1:15  dimension lightning(d=2,dp=1,a=2,t=2)  rank of the Jacobian (attempt 2)",
        "Ctrl-C again stops now",
    ):
        assert words in text, text
    assert text.count("\n") == 4


def test_the_live_view_fits_into_eighty_columns() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    console.print(live_view(STATE))
    assert max(map(len, console.file.getvalue().splitlines())) <= 80  # type: ignore[attr-defined]


def test_lines_for_logs() -> None:
    console = Console(file=io.StringIO(), width=80)
    lines = Lines(console)
    with lines.shown(STATE):
        lines.update(STATE)
        lines.update(STATE)
    started, stopping = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert re.findall(r"\d+", started) == ["10", "3", "2"]
    assert STATE.stopping in stopping
