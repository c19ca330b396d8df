"""What an isolated job costs: the scripts that templates become, through a fresh ``M2 --script`` and through our engines.

The scripts are those that the questions really send, so the path is the one that templates take: without
the packages of the prompt. Everything is measured in one run, for each Macaulay2 given, and printed as a table; a whole job is
the question with its Python side, as a batch runs it::

    python benchmarks/engine.py --jobs 20 --engine /usr/bin/M2 --engine /path/to/another/M2
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from measuring import ObservedEngine, Took, plain_macaulay2, print_heading, table_row, timed

from m2bridge.engine import Engine, EngineInfo, ForkServerEngine, Outcome, ProcessEngine, find_engine, machine
from m2bridge.questions import find
from m2bridge.scripts import Script

QUESTIONS = (("dimension", "lightning(d=2,dp=1)"), ("closure", "lightning(d=2,dp=1,a=1)"))
MOST_SECONDS = 600


def living_processor_seconds() -> float:
    """Return what this process, all processes below it and those that ended there have used."""
    ticks = 0
    for pid in (os.getpid(), *machine.descendants(os.getpid())):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(job: Callable[[], object], jobs: int) -> list[Took]:
    """Return the times of jobs after two that are not counted; the processor time is the mean of all."""
    for _ in range(2):
        job()
    before = living_processor_seconds()
    walls = [timed(job)[0].wall for _ in range(jobs)]
    cpu = (living_processor_seconds() - before) / jobs
    return [Took(wall, cpu) for wall in walls]


def run_in(engine: Engine, script: Script) -> None:
    run = engine.run(script)
    if run.outcome is not Outcome.FINISHED:
        raise SystemExit(f"the script failed: {run.stderr}")


def ways(info: EngineInfo, name: str, spec: str, jobs: int) -> dict[str, list[Took]]:
    """Return the times of each way of running the last script of a question, and of the whole question."""
    question, few = find(name), max(3, jobs // 4)
    times = {}
    with ForkServerEngine(info) as engine, ProcessEngine(info) as fresh:
        observed = ObservedEngine(engine)
        question(spec, engine=observed)
        script = observed.scripts[-1]
        empty = replace(script, name="empty", text="")
        times["fork server, empty script"] = measure(lambda: run_in(engine, empty), jobs)
        times["fork server"] = measure(lambda: run_in(engine, script), jobs)
        times["fork server, whole job"] = measure(lambda: question(spec, engine=engine), jobs)
        times["one-shot process"] = measure(lambda: run_in(fresh, script), few)
    times["M2 --script, a fresh process"] = measure(
        lambda: plain_macaulay2(str(info.path), script.text, MOST_SECONDS), few
    )
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--engine", action="append", default=[])
    options = parser.parse_args()
    print(
        f"{options.jobs} jobs each; milliseconds for one; load average {os.getloadavg()[0]:.1f}; the ratio is of"
    )
    print("processor time, against a fresh process\n")
    print_heading("Macaulay2", "question", "way", "median", "least", "most", "CPU", "ratio")
    for info in [find_engine(path) for path in options.engine or [None]]:
        for name, spec in QUESTIONS:
            times = ways(info, name, spec, options.jobs)
            fresh = times["M2 --script, a fresh process"][0].cpu
            for way, took in times.items():
                walls = [1000 * each.wall for each in took]
                numbers = (median(walls), min(walls), max(walls), 1000 * took[0].cpu)
                ratio = f"1/{fresh / took[0].cpu:.1f}"
                print(table_row(info.version, name, way, *(f"{n:.1f}" for n in numbers), ratio), flush=True)


if __name__ == "__main__":
    main()
