"""The replay engine returns captured runs, and the protocol raises a different error for each kind of failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge import protocol
from m2bridge.engine import Outcome
from m2bridge.errors import (
    CrashError,
    InputError,
    MemoryLimitError,
    OutputError,
    ScriptError,
    TimeLimitError,
)
from m2bridge.scripts import Script
from tests.replay import ReplayEngine, Transcript


def test_by_name_and_by_sha256(replay: ReplayEngine) -> None:
    script = Script(name="good", text="anything")
    lines: list[str] = []
    run = replay.run(script, listener=lines.append)
    assert run.outcome is Outcome.FINISHED
    assert dict(protocol.read(run)) == {"dim": 1, "degree": 3}
    assert lines[-1] == "@m2b-end 2"
    special = ReplayEngine(
        [Transcript(script=script.sha256, stdout="@m2b-end 0\n"), Transcript(script="good")]
    )
    assert special.run(script).stdout == "@m2b-end 0\n"
    with pytest.raises(InputError, match="no transcript"):
        replay.run(Script(name="unknown", text=""))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("truncated", OutputError),
        ("crashed", CrashError),
        ("timed_out", TimeLimitError),
        ("out_of_memory", MemoryLimitError),
        ("script_error", ScriptError),
    ],
)
def test_error_class_of_each_failure(replay: ReplayEngine, name: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        protocol.read(replay.run(Script(name=name, text="")))
    assert type(caught.value) is error


def test_a_transcript_can_be_saved_and_loaded(replay: ReplayEngine, tmp_path: Path) -> None:
    transcript = Transcript.of(replay.run(Script(name="crashed", text="")))
    transcript.save(tmp_path / "one.json")
    assert Transcript.load(tmp_path / "one.json") == transcript
