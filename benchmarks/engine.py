"""What an isolated job costs: the scripts that templates become, through a fresh ``M2 --script`` and through our engines.

The scripts are those that the analyses really send (caught on their way), so the path is the one that templates take: without
the packages of the prompt. Everything is measured in one run, for each Macaulay2 given, and printed as a table; a whole job is
the analysis with its Python side, as a batch runs it::

    python benchmarks/engine.py --jobs 20 --engine /usr/bin/M2 --engine /path/to/another/M2
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from m2bridge.batch import registry
from m2bridge.engine import (
    Engine,
    EngineInfo,
    ForkServerEngine,
    Limits,
    Outcome,
    ProcessEngine,
    Run,
    find_engine,
)
from m2bridge.engine import server as fork_server
from m2bridge.models import parse_spec
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
    analysis = registry.find(name)
    analysis.run(parse_spec(spec), analysis.parameters({}), engine=engine, limits=Limits())


def measure(job: Callable[[], object], jobs: int) -> list[float]:
    """Milliseconds of each job after two that are not counted."""
    times = []
    for _ in range(jobs + 2):
        start = time.perf_counter()
        job()
        times.append(1000 * (time.perf_counter() - start))
    return times[2:]


def in_engine(engine: Engine, script: Script) -> Callable[[], None]:
    def job() -> None:
        run = engine.run(script)
        if run.outcome is not Outcome.FINISHED:
            raise SystemExit(f"the script failed: {run.stderr}")

    return job


def ways(info: EngineInfo, name: str, spec: str, jobs: int) -> dict[str, list[float]]:
    """Each way of running the last script of a question, and of the whole question; times in milliseconds."""
    times = {}
    with ForkServerEngine(info) as engine:
        catcher = Catcher(engine)
        ask(name, spec, catcher)
        script = catcher.scripts[-1]
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
    print(f"{options.jobs} jobs each; milliseconds for one; the ratio is against a fresh process\n")
    print(f"{'':10}{'':12}{'':34}{'median':>9}{'least':>9}{'most':>9}{'ratio':>9}")
    for info in engines:
        for name, spec in QUESTIONS:
            times = ways(info, name, spec, options.jobs)
            fresh = statistics.median(times["M2 --script, a fresh process"])
            for way, values in times.items():
                middle = statistics.median(values)
                numbers = f"{middle:9.1f}{min(values):9.1f}{max(values):9.1f}{f'1/{fresh / middle:.1f}':>9}"
                print(f"{info.version:10}{name:12}{way:34}{numbers}")


if __name__ == "__main__":
    main()
