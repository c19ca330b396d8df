"""The same batch through a real Slurm with two nodes, all of it on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.store import Store
from tests.running import run_command

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm")]

SRUN = "srun -N1 -n1 --exact"
Make = Callable[..., Any]


def test_two_nodes_give_the_records_that_one_machine_gives(trial: Make, left: Make) -> None:
    run = trial(0)
    output = run.answered(run.start("srun", "--launcher", SRUN))
    assert "workers on n1: Macaulay2" in output
    assert run.records("srun") == run.local()
    left()


def test_dask_on_slurm_shows_its_script_and_gives_the_same_records(trial: Make, left: Make) -> None:
    pytest.importorskip("dask_jobqueue")
    run = trial(0)
    config = run.directory / "slurm.toml"
    config.write_text('memory = "1 GB"\ninterface = "lo"\n')
    output = run.answered(run.start("dask", "--dask-slurm", str(config)))
    assert output.index("#SBATCH") < output.index("workers on n")
    assert run.records("dask") == run.local()
    left()
    assert not list(run.directory.glob(".m2bridge-dask-*"))  # certificates
    assert not run_command(["squeue", "--noheader"]).stdout


def test_a_job_that_slurm_would_not_take_is_bad_input(trial: Make) -> None:
    pytest.importorskip("dask_jobqueue")
    run = trial(0)
    config = run.directory / "slurm.toml"
    config.write_text('queue = "nowhere"\ninterface = "lo"\n')
    process = run.start("dask", "--dask-slurm", str(config))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Slurm does not accept this job" in err


def test_an_array_of_shards_writes_one_store(trial: Make) -> None:
    run = trial(0)
    command = f"{sys.executable} -m m2bridge batch {run.jobs} --store {run.directory}/array --workers 1"
    run_command(
        ["sbatch", "--wait", "--array=1-3", "-n1", f"--output={run.directory}/%a.log",
         f"--wrap={command} --shard $SLURM_ARRAY_TASK_ID/3"],
    )  # fmt: skip
    logs = [Path(run.directory / f"{i}.log").read_text() for i in (1, 2, 3)]
    assert ["4 of 4 jobs" in log for log in logs] == [True] * 3, logs
    assert run.records("array") == run.local()


def test_a_lost_node_is_an_end_of_file(slurm: Any, trial: Make, left: Make) -> None:
    run = trial(5)
    running = run.start("srun", "--launcher", SRUN, workers=4)  # of which a node takes two
    run.wait_until_on("srun", "n2", running)
    slurm.lose("n2")
    output = run.answered(running)
    slurm.start_node("n2")
    assert "workers on n1" in output
    assert run.records("srun") == run.local()
    left()


def test_a_node_without_macaulay2_is_excluded(trial: Make, left: Make) -> None:
    run = trial(1)  # the other node is slow, or it would have answered everything before
    spoil = 'case $SLURMD_NODENAME in n1) sleep 30;; n2) export M2BRIDGE_M2=/nonexistent/M2;; esac; exec "$@"'
    output = run.answered(run.start("srun", "--launcher", f"{SRUN} sh -c '{spoil}' sh", workers=4))
    assert re.search(r"n2: .*M2BRIDGE_M2 .*/nonexistent/M2", output)
    assert run.records("srun") == run.local()
    left()


def test_a_launcher_that_does_not_exist_is_bad_input(trial: Make) -> None:
    process = trial(0).start("store", "--launcher", "no-such-launcher -n1")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no-such-launcher" in err


def test_a_killed_batch_of_a_template_is_continued(trial: Make, left: Make) -> None:
    """Two hundred jobs of a user's template: the runner is killed, and the second run answers the rest."""
    run = trial(0)
    (run.directory / "own.m2.j2").write_text(
        'n = 3;\nseed = 0;\nrendered = false;\n--% include "_params.m2.j2"\nsetRandomSeed seed;\n'
        'S = QQ[vars(0..n-1)];\nemit("deg", degree ideal random(S^1, S^{n-1:-2}));\nemitEnd();\n'
    )
    run.jobs.write_text(
        '[[grid]]\nanalysis = "template"\ntemplate = "own.m2.j2"\nn = "2..5"\nseed = "1..50"\n'
    )
    killed = run.start("srun", "--launcher", SRUN)
    run.wait_for("srun", 40, killed)
    killed.kill()
    killed.wait()
    left()
    before = len(run.keys("srun"))
    assert 40 <= before < 200
    output = run.answered(run.start("srun", "--launcher", SRUN))
    assert f"200 of 200 jobs: 200 complete; {before} from the store" in output
    degrees = {(row["n"], row["deg"]) for row in Store.open(run.directory / "srun").rows(None)}
    assert degrees == {(2, 2), (3, 4), (4, 8), (5, 16)}
    left()
