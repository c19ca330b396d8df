"""Batch: the entry from Python, ``m2bridge.run_batch(...)``, which the command ``m2bridge batch`` uses too."""

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
    """What came of a batch: where its records are, how many jobs ended how, and whether it was stopped before its end."""

    store: Path
    state: RunState
    interrupted: bool
    duplicates: int = 0

    @property
    def outcomes(self) -> dict[str, int]:
        """How many jobs ended how, those answered from the store included."""
        return dict(self.state.cached + self.state.done)

    @property
    def exit_code(self) -> int:
        """What ``m2bridge batch`` would exit with."""
        return 130 if self.interrupted else exit_code(self.outcomes)

    def rows(self, where: str | None = None) -> list[dict[str, Any]]:
        """One flat dictionary for each record of the store, as ``m2bridge results`` lists them."""
        return Store.open(self.store).rows(where)

    def records(self) -> Iterator[dict[str, Any]]:
        """Every record of the store."""
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
    """The plan of a job file, or of its content as a mapping; `timeout` and `memory` are for jobs that name none.

    Without a `memory` so many jobs as there are `workers` fit into the machine, with at most 4 GB each: Macaulay2 and Python may
    each use as much, rarely both at once. With a `shard`, such as ``2/8``, every eighth job from the second on.
    """
    part = slice(None) if shard is None else parse_shard(shard)
    usual = min(4 * 2**30, memory_share(workers))
    allowed = usual if memory is None else parse_bytes(memory, "--memory")
    limits = Limits(wall_seconds=parse_seconds(timeout, "--timeout"), memory_bytes=allowed)
    inline = json.dumps(jobs) if isinstance(jobs, Mapping) else None
    file = jobfile.read(Path(str(jobs))) if inline is None else jobfile.read_text(inline, Path("jobs.json"))
    plan = expand(file, limits=limits, most_jobs=most_jobs)
    return replace(plan, jobs=plan.jobs[part])


def parse_shard(text: str) -> slice:
    """Which jobs are in a part, written ``i/n`` with i from 1 to n. Every job is in exactly one of the n parts.

    >>> [list("abcdefg")[parse_shard(f"{i}/3")] for i in (1, 2, 3)]
    [['a', 'd', 'g'], ['b', 'e'], ['c', 'f']]
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(
            f"--shard {text!r}: write i/n with i from 1 to n, e.g. 2/8; sbatch --array=1-8 counts so"
        )
    return slice(int(match[1]) - 1, None, int(match[2]))


def run_batch(
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
    """Run many questions about many models; running the same again continues.

    Parameters
    ----------
    jobs
        A job file (``.toml`` or ``.json``), or its content: ``{"grid": [{"analysis": "dimension", ...}]}``.
    store
        The directory of the records; made if missing.
    workers
        Jobs at once; one for each core that this process may use, if not given.
    timeout, memory
        Limits of jobs that name none, as on the command line.
    retry, escalate
        When to try again what is recorded and has no answer.
    engine
        The path of a Macaulay2; the first that works, if not given.
    launcher
        Who starts the workers; on this machine, if not given.
    display
        Who shows progress: a picture on a terminal, a bar in a notebook, nothing elsewhere, if not given.
    stop
        Set it in another thread to stop once what runs has finished; in the main thread an interrupt does that.
    plan
        The plan of `jobs`, by somebody who has made it already.
    shard
        Which part of the jobs to run, written ``2/8``; runners of other parts may share the store.

    Raises
    ------
    InputError
        The job file is wrong, or the store cannot be used.
    NoEngineError
        There is no Macaulay2 that works, or it was lost while the batch ran.
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
