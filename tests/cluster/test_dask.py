"""The same batch on Dask: a scheduler and two workers on loopback with TLS, and what may happen to them meanwhile."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.cluster
Make = Callable[..., Any]


def test_ten_jobs_on_local_processes(trial: Make, left: Make) -> None:
    pytest.importorskip("distributed")
    run = trial(0)
    output = run.answered(run.start("dask", "--dask", "local", workers=1))
    assert "Macaulay2" in output
    assert run.records("dask") == run.local()
    left()


def test_a_worker_is_killed(dask_cluster: Any, trial: Make, left: Make) -> None:
    run = trial(4)
    running = run.start("dask", *dask_cluster.options)
    run.wait_for("dask", 5, running)
    dask_cluster.workers[0].send_signal(signal.SIGKILL)
    run.wait_for("dask", 15, running)
    dask_cluster.start_workers(1)
    run.answered(running)
    assert run.records("dask") == run.local()
    left()


def test_the_scheduler_is_started_again(dask_cluster: Any, trial: Make, left: Make) -> None:
    run = trial(4)
    running = run.start("dask", *dask_cluster.options)
    run.wait_for("dask", 5, running)
    dask_cluster.scheduler.send_signal(signal.SIGKILL)
    dask_cluster.scheduler.wait()
    for worker in dask_cluster.workers:
        worker.wait(timeout=120)  # as Dask's workers do when their scheduler is gone
    dask_cluster.scheduler = dask_cluster.start_scheduler()
    dask_cluster.start_workers(2)
    run.answered(running)
    assert run.records("dask") == run.local()
    left()


def test_the_runner_is_killed_and_started_again(dask_cluster: Any, trial: Make, left: Make) -> None:
    run = trial(4)
    running = run.start("dask", *dask_cluster.options)
    run.wait_for("dask", 5, running)
    running.kill()
    running.wait()
    before = run.keys("dask")
    output = run.answered(run.start("dask", *dask_cluster.options))
    assert re.search(rf"\b{run.count} jobs, {len(before)}\b", output)
    assert run.records("dask") == run.local()
    left()  # what was kept for the runner that died, too


def test_a_worker_without_macaulay2_is_excluded(dask_cluster: Any, trial: Make, left: Make) -> None:
    run = trial(9)  # enough that the others are still at work when it has failed three times
    dask_cluster.start_workers(1, M2BRIDGE_M2="/nonexistent/M2")
    output = run.answered(run.start("dask", *dask_cluster.options, workers=3))
    assert "worker excluded:" in output
    assert "/nonexistent/M2" in output
    assert run.records("dask") == run.local()
    left()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--dask", "tcp://10.1.2.3:8786"], "requires TLS"),
        (["--dask", "tls://10.1.2.3:8786"], "--dask-tls DIR"),
        (["--dask", "somewhere"], "write local"),
        (["--dask", "local", "--launcher", "env"], "--dask"),
    ],
)
def test_refused_inputs(options: list[str], why: str, trial: Make) -> None:
    pytest.importorskip("distributed")
    process = trial(0).start("dask", *options)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert why in err
