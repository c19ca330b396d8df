"""The Python interface of batches, ``m2bridge.run_batch(...)``, which the command ``m2bridge batch`` also uses."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from m2bridge.batch import jobfile
from m2bridge.batch.display import Display, RunState, suitable_display
from m2bridge.batch.launchers import CommandLauncher, Launcher
from m2bridge.batch.plan import MOST_JOBS, Plan, expand
from m2bridge.batch.policy import Settings, exit_code
from m2bridge.batch.runner import Runner
from m2bridge.batch.runner_lock import WHOLE
from m2bridge.batch.store import Store
from m2bridge.engine import find_engine
from m2bridge.engine.machine import allowed_cores, memory_share
from m2bridge.errors import InputError
from m2bridge.limits import Limits, parse_bytes, parse_seconds

Jobs = Path | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch: the directory of its records, the state at the end, and whether the run was interrupted."""

    store: Path
    state: RunState
    interrupted: bool
    duplicates: int = 0

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the number of jobs for each outcome, including those answered from the store."""
        return dict(self.state.outcomes)

    @property
    def exit_code(self) -> int:
        """Return the exit code of ``m2bridge batch`` for this result."""
        return 130 if self.interrupted else exit_code(self.outcomes)

    def rows(self, where: str | None = None) -> list[dict[str, Any]]:
        """Return one flat dictionary for each record of the store, as listed by ``m2bridge results``."""
        return Store.open(self.store).rows(where)

    def records(self) -> Iterator[dict[str, Any]]:
        """Iterate over all records of the store."""
        store = Store.open(self.store)
        return (record for key in store.all_keys() if (record := store.read(key)) is not None)


def plan_of(
    jobs: Jobs,
    *,
    workers: int,
    timeout: Any = "10m",
    memory: Any = None,
    most_jobs: int = MOST_JOBS,
    shard: str | None = None,
) -> Plan:
    """Make the plan of a job file, or of its content as a mapping. `timeout` and `memory` apply to jobs that set no limits.

    The default of `memory` lets `workers` jobs run at the same time, with at most 4 GB each. The limit holds for Macaulay2 and
    for Python separately; both rarely reach it at the same time. With a `shard` such as ``2/8`` the plan contains every eighth
    job, beginning with the second.
    """
    shard_jobs = slice(None) if shard is None else parse_shard(shard)
    default_memory = min(4 * 2**30, memory_share(workers))
    memory_bytes = default_memory if memory is None else parse_bytes(memory, "--memory")
    limits = Limits(wall_seconds=parse_seconds(timeout, "--timeout"), memory_bytes=memory_bytes)
    inline = json.dumps(jobs) if isinstance(jobs, Mapping) else None
    file = jobfile.read(Path(str(jobs))) if inline is None else jobfile.parse(inline, Path("jobs.json"))
    plan = expand(file, limits=limits, most_jobs=most_jobs)
    return replace(plan, jobs=plan.jobs[shard_jobs])


def parse_shard(text: str) -> slice:
    """Return the slice of jobs in a shard, written ``i/n`` with i from 1 to n. Every job is in exactly one of the n shards.

    >>> [list("abcdefg")[parse_shard(f"{i}/3")] for i in (1, 2, 3)]
    [['a', 'd', 'g'], ['b', 'e'], ['c', 'f']]
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(
            f"--shard {text!r}: write i/n with i from 1 to n, e.g. 2/8 (i is the index of sbatch --array=1-8)"
        )
    return slice(int(match[1]) - 1, None, int(match[2]))


def run_batch(  # noqa: PLR0913 -- the public function of batches; all but two are keywords with defaults
    jobs: Jobs,
    store: Path | str,
    *,
    workers: int | None = None,
    timeout: str | float = "10m",
    memory: str | int | None = None,
    retry: bool = False,
    escalate: float | None = None,
    engine: str | None = None,
    most_jobs: int = MOST_JOBS,
    launcher: Launcher | None = None,
    display: Display | None = None,
    stop: threading.Event | None = None,
    plan: Plan | None = None,
    shard: str | None = None,
) -> BatchResult:
    """Run many questions about many models. Running the same batch again continues it.

    Parameters
    ----------
    jobs
        A job file (``.toml`` or ``.json``), or its content: ``{"grid": [{"analysis": "dimension", ...}]}``.
    store
        The directory of the records; created if it does not exist.
    workers
        The number of simultaneous jobs; default: the number of cores that this process may use.
    timeout, memory
        The limits of jobs that set none, as on the command line.
    retry, escalate
        Which recorded jobs without a complete answer are run again: `retry` all of them; `escalate` those that reached a
        limit, with their limits multiplied by this factor.
    engine
        The path of Macaulay2; default: the first one that works.
    launcher
        The launcher of the workers; default: processes on this machine.
    display
        The display of progress; default: a live view on a terminal, a bar in a notebook, otherwise none.
    stop
        Set this event in another thread to stop after the running jobs; in the main thread an interrupt does the same.
    plan
        The plan of `jobs`, if it was made before.
    shard
        The shard of the jobs to run, written ``2/8``; runners of other shards may use the same store.

    Raises
    ------
    InputError
        The job file is invalid, or the store cannot be used.
    NoEngineError
        No Macaulay2 works, or it was lost during the batch.
    """
    count = workers or allowed_cores()
    plan = plan or plan_of(
        jobs, workers=count, timeout=timeout, memory=memory, most_jobs=most_jobs, shard=shard
    )
    info = find_engine(engine)
    source = "jobs" if isinstance(jobs, Mapping) else Path(jobs).name
    settings = Settings(
        engine_version=info.version, workers=count, retry=retry, escalate=escalate, source=source, stop=stop
    )
    launcher = launcher or CommandLauncher(str(info.path))
    name = WHOLE if shard is None else shard.strip().replace("/", "-of-")
    with contextlib.closing(Store.open_for_writing(Path(store), name)) as opened:
        runner = Runner(plan, opened, settings, launcher, display or suitable_display())
        state = runner.run()
    return BatchResult(Path(store), state, runner.interrupted, plan.duplicates)
