"""Sweeps: names in lists, user-defined networks by name, frames of a store."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import m2bridge
from m2bridge.batch import jobfile
from m2bridge.batch.plan import Plan, expand
from m2bridge.batch.policy import Attempt, JobOutcome, Task, record_of
from m2bridge.batch.store import Store
from m2bridge.errors import InputError, ParseError
from m2bridge.limits import Limits
from m2bridge.records import save
from m2bridge.report.cite import sentence


def planned(text: str, directory: Path) -> Plan:
    path = directory / "jobs.toml"
    path.write_text(text)
    return expand(jobfile.read(path))


GRID = """
[[grid]]
analysis = "dimension"
model = "mlp"
widths = "[2, h, 2*h - 1]"
h = "1..3"
r = [2, 3]
when = "h + r < 6"
"""


def test_a_name_in_a_list_is_swept_and_kept(tmp_path: Path) -> None:
    jobs = planned(GRID, tmp_path).jobs
    assert [(job.spec, dict(job.sweep)) for job in jobs[::2]] == [
        ("mlp(widths=[2,1,1],r=2)", {"h": 1}),
        ("mlp(widths=[2,2,3],r=2)", {"h": 2}),
        ("mlp(widths=[2,3,5],r=2)", {"h": 3}),
    ]
    assert jobs[0].document()["sweep"] == {"h": 1}
    assert "sweep" not in jobs[0].question("")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("h = ", "k = "), "grid[0].widths"),
        (('"[2, h, 2*h - 1]"', '"[2, h, 2*]"'), "grid[0].widths: expression"),
        (('"[2, h, 2*h - 1]"', '"[2, h - 1, 1]"'), "between 1"),
        (('h = "1..3"', 'h = "1..3"\nj = "1..3"'), "'j'"),
        (('"1..3"', '"1..r"\nq = 1'), "'q'"),
    ],
)
def test_errors_are_reported_before_anything_runs(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(ParseError, match=r"jobs\.toml") as error:
        planned(GRID.replace(*change), tmp_path)
    assert said in str(error.value)


def own(tmp_path: Path) -> m2bridge.families.UserNetwork:
    network = m2bridge.from_callable(lambda X, A: A @ X, {"A": (2, 2)}, inputs={"X": (2,)}, name="my gate")
    network.save(tmp_path / "net.toml")
    return network


def test_a_user_defined_network_keeps_its_name(tmp_path: Path) -> None:
    network = own(tmp_path)
    (job,) = planned('[[job]]\nanalysis = "dimension"\nspec = "file:net.toml"', tmp_path).jobs
    assert (job.spec, job.name, job.title) == (network.spec, "my gate", "dimension my gate")
    result = m2bridge.dimension(network, engine=False)
    assert save(result, tmp_path).name.startswith("dimension-my-gate-")
    assert repr(result).startswith("Dimension('my gate': ")
    assert "my gate, " in sentence(result)


def stored(tmp_path: Path) -> Path:
    """A store with the records of a small sweep, written as a batch writes them."""
    own(tmp_path)
    text = GRID + '[[job]]\nanalysis = "dimension"\nspec = "file:net.toml"'
    store = Store.open_for_writing(tmp_path / "store")
    for job in planned(text, tmp_path).jobs:
        result = m2bridge.dimension(job.spec, engine=False, certify=False)
        document = json.loads(m2bridge.records.dumps(m2bridge.records.to_document(result)))
        task = Task(job=job, key=job.key("1.21"), limits=Limits())
        attempt = Attempt(outcome=JobOutcome.COMPLETE, result=document, seconds=0.1, limits=Limits())
        store.write(task.key, record_of(task, [attempt], "1.21", None))
    store.close()
    return tmp_path / "store"


@pytest.fixture
def sweep_store(tmp_path: Path) -> Path:
    return stored(tmp_path)


def test_without_pandas_a_frame_names_the_package_to_install(
    sweep_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'm2bridge\[pandas\]'"):
        m2bridge.Store(sweep_store).frame()


def test_a_frame_has_the_names_of_the_grid(sweep_store: Path) -> None:
    pytest.importorskip("pandas")
    frame = m2bridge.Store(sweep_store).frame('family == "mlp" and r == 2')
    assert list(frame["h"]) == [1, 2, 3]
    assert list(frame["image_dim"]) == [2, 8, 15]  # weights minus scalings, and all 5 x 3 coefficients
    assert r"\toprule" in frame[["h", "image_dim"]].to_latex()
    assert m2bridge.Store(str(sweep_store)).rows('name == "my gate"')[0]["image_dim"] == 4
