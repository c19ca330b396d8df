"""What an isolated job costs: the scripts that templates become, through a fresh ``M2 --script`` and through our engines.

The scripts are those that the analyses really send (caught on their way), so the path is the one that templates take: without
the packages of the prompt. Everything is measured in one run, for each Macaulay2 given, and printed as a table; a whole job is
the analysis with its Python side, as a batch runs it::

    python benchmarks/engine.py --jobs 20 --engine /usr/bin/M2 --engine /path/to/another/M2
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.batch import registry
from m2bridge.engine import (
    Engine,
    EngineInfo,
    ForkServerEngine,
    Outcome,
    ProcessEngine,
    Run,
    find_engine,
    machine,
)
from m2bridge.engine import server as fork_server
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.scripts import Script

QUESTIONS = (("dimension", "lightning(d=2,dp=1)"), ("closure", "lightning(d=2,dp=1,a=1)"))


class Catcher:
    """An engine that keeps the scripts it runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.scripts = engine, list[Script]()

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, *rest: Any, **more: Any) -> Run:
        self.scripts.append(script)
        return self._engine.run(script, *rest, **more)


def ask(name: str, spec: str, engine: Any) -> None:
    """One whole job."""
    question = registry.job(name)
    question(parse_spec(spec), **registry.parameters_of(question, {}), engine=engine, limits=Limits())


@dataclass(frozen=True)
class Measured:
    """Milliseconds of each job; mean processor time of one, which hardly depends on what else the machine does."""

    wall: list[float]
    cpu: float


def measure(job: Callable[[], object], jobs: int) -> Measured:
    """Times of jobs after two that are not counted."""
    times, cpu = [], 0.0
    for number in range(jobs + 2):
        if number == 2:
            cpu = processor_milliseconds()
        start = time.perf_counter()
        job()
        times.append(1000 * (time.perf_counter() - start))
    return Measured(times[2:], (processor_milliseconds() - cpu) / jobs)


def processor_milliseconds() -> float:
    """What this process, all processes below it and those that ended there have used."""
    ticks = 0
    for pid in (os.getpid(), *machine.descendants(os.getpid())):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def in_engine(engine: Engine, script: Script) -> Callable[[], None]:
    def job() -> None:
        run = engine.run(script)
        if run.outcome is not Outcome.FINISHED:
            raise SystemExit(f"the script failed: {run.stderr}")

    return job


def ways(info: EngineInfo, name: str, spec: str, jobs: int) -> dict[str, Measured]:
    """Each way of running the last script of a question, and of the whole question; times in milliseconds."""
    times: dict[str, Measured] = {}
    with ForkServerEngine(info) as engine:
        catcher = Catcher(engine)
        ask(name, spec, catcher)
        script = catcher.scripts[-1]
        empty = Script(name="empty", text="", preload=script.preload)
        times["fork server, empty script"] = measure(in_engine(engine, empty), jobs)
        times["fork server"] = measure(in_engine(engine, script), jobs)
        times["fork server, whole job"] = measure(lambda: ask(name, spec, engine), jobs)
    collects, fork_server.COLLECT_SINCE = fork_server.COLLECT_SINCE, (99,)
    with ForkServerEngine(info) as engine:
        times["fork server, heap not collected"] = measure(in_engine(engine, script), jobs)
    fork_server.COLLECT_SINCE = (0,)
    with ForkServerEngine(info) as engine:
        times["fork server, heap collected"] = measure(in_engine(engine, script), jobs)
    fork_server.COLLECT_SINCE = collects
    with ProcessEngine(info) as fresh:
        times["one-shot process"] = measure(in_engine(fresh, script), max(3, jobs // 4))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "benchmark.m2"
        file.write_text(script.text)
        command = [str(info.path), "--script", str(file)]
        times["M2 --script, a fresh process"] = measure(
            lambda: subprocess.run(command, capture_output=True, check=True), max(3, jobs // 4)
        )
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--engine", action="append", default=[])
    options = parser.parse_args()
    engines = [find_engine(path) for path in options.engine] or [find_engine()]
    print(
        f"{options.jobs} jobs each; milliseconds for one; load average {os.getloadavg()[0]:.1f}; the ratio is of\n"
        "processor time, against a fresh process\n"
    )
    print(f"{'':10}{'':12}{'':34}{'median':>9}{'least':>9}{'most':>9}{'CPU':>9}{'ratio':>9}")
    for info in engines:
        for name, spec in QUESTIONS:
            times = ways(info, name, spec, options.jobs)
            fresh = times["M2 --script, a fresh process"].cpu
            for way, found in times.items():
                values = found.wall
                numbers = (
                    f"{statistics.median(values):9.1f}{min(values):9.1f}{max(values):9.1f}{found.cpu:9.1f}"
                )
                numbers += f"{f'1/{fresh / found.cpu:.1f}':>9}"
                print(f"{info.version:10}{name:12}{way:34}{numbers}")


if __name__ == "__main__":
    main()
