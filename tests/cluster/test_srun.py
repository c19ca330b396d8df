"""The same batch through a real Slurm: ``make test-cluster`` where ``sinfo`` knows at least two nodes.

``M2BRIDGE_LOSE_NODE`` may name a shell command that takes a node away while a batch runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.recording import stable
from m2bridge.batch.store import Store

pytestmark = pytest.mark.cluster

SRUN = "srun -N1 -n1 --exact"
JOBS = """
[[grid]]
analysis = "dimension"
model = "mlp"
widths = [[2,2,1],[2,3,2],[3,3,2],[2,2,2]]
r = [2,3,4]
seed = "0..{last}"
"""


def nodes() -> int:
    if shutil.which("sinfo") is None:
        return 0
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node"], capture_output=True, text=True, timeout=30, check=False
    )
    return len(done.stdout.splitlines())


@pytest.fixture(autouse=True)
def slurm() -> None:
    if nodes() < 2:
        pytest.skip("no Slurm with two nodes: set SLURM_CONF")


def batch(jobs: Path, store: Path, *more: str) -> subprocess.Popen[str]:
    words = [
        sys.executable,
        "-m",
        "m2bridge",
        "batch",
        str(jobs),
        "--store",
        str(store),
        "--workers",
        "2",
        *more,
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def all_records(store: Path) -> dict[str, Any]:
    opened = Store.open(store)
    return {key: stable(opened.read(key)) for key in opened.all_keys()}


def answered(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err


def test_two_nodes_give_the_records_that_one_machine_gives(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(JOBS.format(last=1))
    answered(batch(jobs, tmp_path / "local"))
    answered(batch(jobs, tmp_path / "srun", "--launcher", SRUN))
    here, there = all_records(tmp_path / "local"), all_records(tmp_path / "srun")
    assert len(here) == 24
    assert here == there


def test_a_lost_node_is_an_end_of_file(tmp_path: Path) -> None:
    lose = os.environ.get("M2BRIDGE_LOSE_NODE")
    if not lose:
        pytest.skip("M2BRIDGE_LOSE_NODE names no command that takes a node away")
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(JOBS.format(last=9))
    running = batch(jobs, tmp_path / "srun", "--launcher", SRUN)
    while not (tmp_path / "srun").exists() or len(list(Store.open(tmp_path / "srun").all_keys())) < 5:
        time.sleep(0.2)
        assert running.poll() is None
    subprocess.run(lose, shell=True, check=True, timeout=60)
    answered(running)
    assert len(all_records(tmp_path / "srun")) == 120


def test_a_launcher_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(JOBS.format(last=0))
    process = batch(jobs, tmp_path / "store", "--launcher", "no-such-launcher -n1")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "there is no command 'no-such-launcher'" in err
