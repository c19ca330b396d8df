"""Batches with the real Macaulay2: answers, outcomes and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from m2bridge import cli, records
from m2bridge.batch.entry import run_batch
from m2bridge.batch.store import Store
from m2bridge.engine import Engine
from m2bridge.families import parse_spec
from m2bridge.questions.dimension import dimension
from tests.comparing import stable
from tests.running import PATIENCE

Run = Callable[..., subprocess.CompletedProcess[str]]

JOBS = """\
[defaults]
timeout = "2m"
[[grid]]
analysis = "dimension"
model = "lightning"
d = 2
dp = [1, 2]
a = "1..d"
tags = ["small"]
[[job]]
analysis = "singular-locus"
spec = "lightning(d=2,dp=1,a=1)"
priority = 1
"""

PLUGIN = '''
"""An analysis that fails in the way that its option names."""
import os, signal, time
from dataclasses import dataclass
from typing import ClassVar, Literal
from m2bridge import protocol
from m2bridge.questions.kernel import Context, question
from m2bridge.families import Model
from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.results import Result
from m2bridge.errors import InputError
from m2bridge.scripts import Script

@dataclass(frozen=True, slots=True, kw_only=True)
class Toy(Result):
    ANALYSIS: ClassVar[str] = "toy"
    VERSION: ClassVar[int] = 1
    image_dim: int

@question(asks="Does as it is told.")
def toy(context: Context, model: Model, *, seconds: float = 0.0,
        act: Literal["none", "m2-memory", "m2-time", "python-memory", "python-time", "segfault", "abort", "exit",
                     "disagree", "refuse", "error", "m2-kill"] = "none") -> Toy:
    context.report_progress("thinking")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    text = '<< "@m2b number " << 2+%d << endl << flush;\\n' % context.seed
    if act == "m2-memory":
        text += "L = {}; while true do L = append(L, new MutableList from 10^6:1);\\n"
    if act == "m2-time":
        text += "while true do sleep 1;\\n"
    if act == "m2-kill":
        text += "kill processID();\\n"
    values, limit = context.run_script(Script(name="toy", text=text + '<< "@m2b-end 1" << endl << flush;\\n'))
    if act == "m2-memory":
        protocol.read(values.run)  # a question that can do nothing with a part
    hoard = []
    while act == "python-memory":
        hoard.append(bytearray(16 * 2**20))
    while act == "python-time":
        pass
    if act == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if act == "abort":
        os.abort()
    if act == "exit":
        os._exit(7)
    if act == "refuse":
        raise InputError("not this one")
    if act == "error":
        raise RuntimeError("a mistake in the analysis")
    found = values.integer("number")
    context.add_evidence(Evidence("image_dim", found, "macaulay2", "toy"))
    context.add_evidence(Evidence("image_dim", found + (act == "disagree"), "numpy", "toy"))
    return context.build_result(Toy, model=model.spec, certainty=Certainty.PROBABLE, image_dim=found, limit=limit)
'''


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "toy_plugin.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("M2BRIDGE_PLUGINS", "toy_plugin")

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        if arguments[0] != "batch":  # needs no process of its own
            code = cli.main([str(a) for a in arguments])
            out, err = capsys.readouterr()
            return subprocess.CompletedProcess(arguments, code, out, err)
        words = [sys.executable, "-m", "m2bridge", *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)

    return call


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def all_records(store: Path) -> list[dict[str, Any]]:
    opened = Store.open(store)
    return [found for key in opened.all_keys() if (found := opened.read(key)) is not None]


def test_answers_of_a_batch_and_of_its_store(run: Run, tmp_path: Path, engine: Engine) -> None:
    jobs, store = write(tmp_path / "jobs.toml", JOBS), tmp_path / "store"
    dry = run("batch", jobs, "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    assert len(json.loads(dry.stdout)["to_run"]) == 5
    assert not store.exists()
    first = run("batch", jobs, "--store", store)
    assert first.returncode == 0, first.stderr
    assert "5 of 5 jobs: 5 complete" in first.stdout
    assert any(word in first.stderr for word in ("singular-locus", "dimension"))
    found = {(r["job"]["analysis"], r["job"]["model"]): r for r in all_records(store)}
    spec = "lightning(d=2,dp=2,a=1,t=2)"
    direct = records.to_document(dimension(parse_spec(spec), engine=engine))
    direct = json.loads(json.dumps(direct))
    assert stable(found["dimension", spec]["result"]) == stable(direct)
    assert records.from_document(found["dimension", spec]["result"]).model == spec
    second = run("batch", jobs, "--store", store, "--json")
    assert second.returncode == 0
    assert json.loads(second.stdout)["cached"] == {"complete": 5}
    rows = json.loads(
        run("results", store, "--where", '"small" in tags and d == 2', "--format", "json").stdout
    )
    assert sorted((row["dp"], row["a"], row["image_dim"]) for row in rows) == [
        (1, 1, 4), (1, 2, 5), (2, 1, 6), (2, 2, 7)
    ]  # fmt: skip
    assert run("results", store, "--format", "csv").stdout.count("\n") == 6
    assert run("results", store, "--verify").returncode == 0
    status = json.loads(run("status", store, "--json").stdout)
    assert status == {"runners": [], "records": {"complete": 5}}


def toys(*acts: str, more: str = "") -> str:
    start = '[[job]]\nanalysis = "toy"\nspec = "lightning(d=2,dp=1)"\n'
    return "".join(f'{start}act = "{act}"\n{more}' for act in acts)


@pytest.mark.slow
def test_every_failure_is_an_outcome(run: Run, tmp_path: Path) -> None:
    wanted = {
        "none": "complete",
        "m2-time": "partial",
        "python-time": "timed-out",
        "segfault": "crashed",
        "abort": "crashed",
        "exit": "crashed",
        "error": "crashed",
        "disagree": "disagreement",
        "refuse": "bad-job",
    }
    limited = toys("m2-time", "python-time", more='timeout = "2s"\n')
    quick = toys(*(act for act in wanted if act not in ("m2-time", "python-time")), more='timeout = "1m"\n')
    jobs, store = write(tmp_path / "jobs.toml", limited + quick), tmp_path / "store"
    done = run("batch", jobs, "--store", store)
    assert done.returncode == 3, done.stderr
    found = {r["job"]["parameters"]["act"]: r for r in all_records(store)}
    assert {act: r["outcome"] for act, r in found.items()} == wanted
    assert found["m2-time"]["result"]["image_dim"] == 2
    assert found["refuse"]["message"] == "not this one"
    assert [a["outcome"] for a in found["segfault"]["attempts"]] == ["crashed", "crashed"]
    assert "disagreement" in run("results", store, "--where", 'outcome != "complete"').stdout


@pytest.mark.slow
def test_a_job_without_memory_does_not_affect_others(run: Run, tmp_path: Path) -> None:
    text = toys("m2-memory", "python-memory", more='memory = "300M"\npriority = 1\n')
    text += '[[grid]]\nanalysis = "toy"\nmodel = "lightning"\nd = 2\ndp = 1\nseed = "1..12"\n'
    jobs, store = write(tmp_path / "jobs.toml", text), tmp_path / "store"
    done = run("batch", jobs, "--store", store, "--json", "--workers", 2)
    assert done.returncode == 5, done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"complete": 12, "out-of-memory": 2}


@pytest.mark.slow
def test_jobs_are_repeated_with_larger_limits_only(run: Run, tmp_path: Path) -> None:
    text = '[[job]]\nanalysis = "toy"\nspec = "lightning(d=2,dp=1)"\nseconds = 2.5\ntimeout = "1s"\n'
    jobs, store = write(tmp_path / "jobs.toml", text), tmp_path / "store"
    assert run("batch", jobs, "--store", store).returncode == 5
    again = run("batch", jobs, "--store", store, "--json")
    assert (again.returncode, json.loads(again.stdout)["cached"]) == (5, {"timed-out": 1})
    escalated = run("batch", jobs, "--store", store, "--escalate", 8)
    assert escalated.returncode == 0, escalated.stderr
    (record,) = all_records(store)
    assert [a["outcome"] for a in record["attempts"]] == ["timed-out", "complete"]
    assert record["limits"]["wall_seconds"] == 8.0


def test_wrong_files_and_directories_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write(tmp_path / "bad.toml", '[[grid]]\nanalysis = "dimensio"\nmodel = "lightnin"\n')
    assert cli.main(["batch", str(bad), "--store", str(tmp_path / "store")]) == 2
    err = capsys.readouterr().err
    assert "grid[0].analysis: " in err
    assert "grid[0].model: " in err
    assert not (tmp_path / "store").exists()
    jobs = write(tmp_path / "jobs.toml", '[[job]]\nanalysis = "dimension"\nspec = "lightning(d=2,dp=1)"\n')
    for arguments in (
        ("batch", jobs),
        ("batch", jobs, "--store", tmp_path),
        ("batch", tmp_path / "none.toml", "--store", tmp_path / "s"),
        ("results", tmp_path),
        ("status", tmp_path),
        ("batch", jobs, "--store", tmp_path / "s", "--timeout", "soon"),
        ("batch", jobs, "--store", tmp_path / "s", "--engine", "/bin/true"),
    ):
        assert cli.main([str(word) for word in arguments]) == 2, arguments
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, arguments
    assert not (tmp_path / "s").exists()


def test_a_batch_of_a_template_and_of_ideals(tmp_path: Path) -> None:
    """A sweep over a user's template and files with ideals: values are columns, and a second run computes nothing."""
    (tmp_path / "own.m2.j2").write_text(
        'n = 3;\np = 32003;\nseed = 0;\nrendered = false;\n--% include "_params.m2.j2"\n--% include "helper.m2.j2"\n'
        'setRandomSeed seed;\nemit("field", if p == 0 then "QQ" else "F_" | toString p);\n'
        'emit("deg", degree quadrics((if p == 0 then QQ else ZZ/p)[vars(0..n-1)], n));\nemit("seed_used", seed);\nemitEnd();\n'
    )
    (tmp_path / "helper.m2.j2").write_text("quadrics = (S, n) -> ideal random(S^1, S^{n-1:-2});\n")
    (tmp_path / "curve.m2").write_text("ideal(x*y - z^2)\n")
    (tmp_path / "jobs.toml").write_text(
        '[[grid]]\nanalysis = "template"\ntemplate = "own.m2.j2"\nn = "2..3"\np = [0, 101]\nseed = [1, 2]\n'
        '[[grid]]\nanalysis = "ideal"\nideal = "curve.m2"\nfield = ["QQ", 101]\n'
    )
    result = run_batch(tmp_path / "jobs.toml", tmp_path / "store", workers=1)
    assert result.outcomes == {"complete": 10}
    rows = result.rows('analysis == "template"')
    assert [(row["n"], row["deg"], row["field"]) for row in rows if row["seed"] == 1] == [
        (2, 2, "QQ"), (2, 2, "F_101"), (3, 4, "QQ"), (3, 4, "F_101"),
    ]  # fmt: skip
    assert all(row["seed_used"] == row["seed"] for row in rows)
    assert {row["certainty"] for row in rows} == {"computed by your script"}
    ideals = [(row["degree"], row["field"]) for row in result.rows('analysis == "ideal"')]
    assert sorted(ideals) == [(2, "F_101"), (2, "QQ")]
    again = run_batch(tmp_path / "jobs.toml", tmp_path / "store", workers=1)
    assert sum(again.state.cached.values()) == 10


def test_an_error_in_a_template_of_a_batch_is_a_bad_job(tmp_path: Path) -> None:
    (tmp_path / "own.m2.j2").write_text('rendered = false;\n--% include "_params.m2.j2"\nerror "wrong";\n')
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nanalysis = "template"\ntemplate = "own.m2.j2"\n')
    result = run_batch(jobs, tmp_path / "store", workers=1)
    assert result.outcomes == {"bad-job": 1}
    assert "line 3" in result.rows()[0]["message"]
