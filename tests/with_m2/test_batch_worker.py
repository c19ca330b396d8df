"""``m2bridge worker`` with pipes, and batches from Python: in threads, stopped, in a notebook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

import m2bridge
from m2bridge.batch.display import Display, Notebook, suitable_display
from m2bridge.batch.entry import BatchResult
from tests.running import PATIENCE, run_command

COMMAND = Path(sys.executable).with_name("m2bridge")
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "batch.md"
JOB = {"id": 7, "analysis": "dimension", "model": "lightning(d=2,dp=1)"}
JOBS = {"grid": [{"analysis": "dimension", "model": "lightning", "d": 2, "dp": [1, 2], "seed": "1..6"}]}


def events_of_a_worker(*lines: str) -> list[dict[str, Any]]:
    done = run_command([COMMAND, "worker"], input="\n".join(lines) + "\n")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_worker_finishes_its_jobs_at_the_end_of_its_input() -> None:
    found = events_of_a_worker(json.dumps(JOB), json.dumps({**JOB, "id": "b", "parameters": {"seed": 3}}))
    (ready,) = [event for event in found if event["event"] == "ready"]
    assert {"digest", "versions", "engine", "host", "pid", "protocol"} <= set(ready)
    attempts = {event["id"]: event for event in found if event["event"] == "attempt"}
    assert {name: event["outcome"] for name, event in attempts.items()} == {7: "complete", "b": "complete"}
    assert attempts[7]["result"]["image_dim"] == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "JSON"),
        ("[" * 100_000 + "]" * 100_000, "RecursionError"),
        ("[1]", "a JSON object"),
        ('{"id": 1, "analysis": "dimension"}', "missing: model"),
        ('{"id": 1, "analysis": 3, "model": "x", "limits": []}', "missing: analysis, limits"),
        ('{"id": 1, "analysis": "dimensoin", "model": "lightning(d=2,dp=1)"}', "dimension"),
        ('{"id": 1, "analysis": "dimension", "model": "lightning(d=0,dp=1)"}', "100000"),
        ('{"id": 1, "analysis": "dimension", "model": "lightning(d=2,dp=1)", "parameters": {"x": 1}}', "x"),
    ],
)
def test_an_invalid_line_is_a_bad_job(line: str, message: str) -> None:
    (attempt,) = [event for event in events_of_a_worker(line) if event["event"] == "attempt"]
    assert attempt["outcome"] == "bad-job"
    assert message in attempt["message"]


def test_an_idle_worker_runs_until_its_output_is_closed() -> None:
    with subprocess.Popen([COMMAND, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        while (event := json.loads(worker.stdout.readline())["event"]) != "ready":
            assert event == "alive"  # on a busy machine it beats before Macaulay2 is warm
        assert json.loads(worker.stdout.readline())["event"] == "alive"
        worker.stdout.close()
        assert worker.wait(timeout=PATIENCE) == 0


@pytest.mark.slow
def test_the_pipe_of_the_tutorial_runs_as_written(tmp_path: Path) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?m2bridge worker.*?)```", text, re.DOTALL)
    environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu"], input=block, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "complete 5" in done.stdout
    assert len(block.strip().splitlines()) <= 10


@pytest.mark.slow
def test_a_batch_in_a_thread_can_be_stopped_and_continued(tmp_path: Path) -> None:
    stop, results = threading.Event(), list[BatchResult]()
    jobs = {"grid": [{**JOBS["grid"][0], "seed": "1..400"}]}

    def work() -> None:
        results.append(m2bridge.run_batch(jobs, tmp_path / "store", workers=1, stop=stop, display=Display()))

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("store/records/*/*.json"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stop.set()
    thread.join(30)
    (result,) = results
    assert result.interrupted
    assert result.exit_code == 130
    assert 3 <= result.outcomes["complete"] < 800
    again = m2bridge.run_batch(JOBS, tmp_path / "store", workers=1)
    assert (again.exit_code, again.outcomes) == (0, {"complete": 12})
    assert again.state.cached.total() > 0
    assert {row["image_dim"] for row in again.rows("dp == 2 and seed <= 6")} == {7}
    assert len(list(again.records())) >= 12


@pytest.mark.slow
def test_the_progress_bar_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            shown.append(data)

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        shown.append(data)
        return Handle()

    python = types.ModuleType("IPython")
    python.get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})  # type: ignore[attr-defined]
    inside = types.ModuleType("IPython.display")
    inside.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    assert isinstance(suitable_display(), Notebook)
    m2bridge.run_batch(JOBS, tmp_path / "store", workers=2)
    assert shown[0]["text/plain"].startswith("0/12")
    assert shown[-1]["text/plain"].startswith("12/12: 12 complete")
    assert '<progress max="12" value="12">' in shown[-1]["text/html"]
