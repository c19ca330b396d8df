"""What a launcher costs: the same jobs on this machine, through srun, through Dask and as an array; and sixty-four workers.

The first table runs small dimension jobs on each launcher in one run, with two workers each, and compares the records. Seconds
for one job are taken between the first and the last record, so that starting Python, Dask or Slurm is not in them; the start has
its own column. What a launcher adds is the difference to local. Processor time is that of the command and of all that it started
itself: with srun and on Slurm the workers are not in it. It is what can be compared when the machine does other things, too.

The second table has no computation: its workers are simulated by processes that speak the protocol and sleep, so that what is
left is the runner: its processor time and memory for one job. A line through several sizes says what a million jobs cost::

    python benchmarks/launchers.py --jobs 1000          # srun and array only where SLURM_CONF leads to a Slurm
    python benchmarks/launchers.py --jobs 0 --simulate 2000 8000
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import processor_seconds

from m2bridge.batch import registry
from m2bridge.batch.display import Display
from m2bridge.batch.entry import run_batch
from m2bridge.batch.launchers import ProcessHandle
from m2bridge.batch.store import Store
from m2bridge.batch.worker import PROTOCOL
from m2bridge.engine import find_engine
from tests.comparing import stable

WORKERS = 2
SLEEPER = """
import json, sys, time
ready, answer, seconds = json.loads(open(sys.argv[1]).read())
print(json.dumps(ready), flush=True)
for line in sys.stdin:
    time.sleep(seconds)
    print(json.dumps({**answer, "id": json.loads(line)["id"]}), flush=True)
"""
ONE = {"analysis": "dimension", "spec": "lightning(d=2,dp=1)"}


def job_file(directory: Path, jobs: int) -> Path:
    """So many dimensions of two small models."""
    grid = {
        "analysis": "dimension",
        "model": "lightning",
        "d": 2,
        "dp": [1, 2],
        "seed": f"0..{jobs // 2 - 1}",
    }
    path = directory / "jobs.json"
    path.write_text(json.dumps({"grid": [grid]}))
    return path


def ways(directory: Path, only: list[str]) -> dict[str, list[str]]:
    """Name of a launcher -> options of the command."""
    found: dict[str, list[str]] = {"local": []}
    slurm = (
        shutil.which("sinfo") and subprocess.run(["sinfo"], capture_output=True, check=False).returncode == 0
    )
    if slurm:
        config = directory / "slurm.toml"
        config.write_text('memory = "1 GB"\ninterface = "lo"\n')
        found |= {
            "srun": ["--launcher", "srun -N1 -n1 --exact"],
            "dask on slurm": ["--dask-slurm", str(config)],
            "array": [],
        }
    found["dask (TLS)"] = ["--dask", "local"]
    return {name: options for name, options in found.items() if not only or name in only}


def timed_batch(name: str, jobs: Path, store: Path, options: list[str]) -> tuple[float, float]:
    """Run the command; seconds of the whole, and of processor time below us."""
    before = processor_seconds()
    words = [sys.executable, "-m", "m2bridge", "batch", str(jobs), "--store", str(store), "--json"]
    start = time.perf_counter()
    if name == "array":
        command = " ".join([*words, "--workers 1", "--shard $SLURM_ARRAY_TASK_ID/2"])
        words = ["sbatch", "--wait", "--array=1-2", "-n1", f"--output={store}.%a", f"--wrap={command}"]
        subprocess.run(words, check=True, capture_output=True)
    else:
        subprocess.run([*words, "--workers", str(WORKERS), *options], check=True, capture_output=True)
    return time.perf_counter() - start, processor_seconds() - before


def launchers(directory: Path, jobs: int, only: list[str]) -> None:
    path = job_file(directory, jobs)
    print(
        f"{jobs} dimension jobs, {WORKERS} workers, Macaulay2 {find_engine().version}; one after another in one run\n"
    )
    print(f"{'':16}{'whole, s':>10}{'start, s':>10}{'ms a job':>10}{'more, ms':>10}{'CPU ms':>9}  records")
    base, records = 0.0, None
    for name, options in ways(directory, only).items():
        store = directory / name.replace(" ", "-")
        whole, used = timed_batch(name, path, store, options)
        times = sorted(file.stat().st_mtime for file in store.glob("records/*/*.json"))
        each = 1000 * (times[-1] - times[0]) / (len(times) - 1)
        opened = Store.open(store)
        found = {key: stable(opened.read(key)) for key in opened.all_keys()}
        base, records = base or each, records or found
        same = "the same" if found == records else "DIFFERENT"
        begun = whole - (times[-1] - times[0])
        print(
            f"{name:16}{whole:10.1f}{begun:10.1f}{each:10.1f}{each - base:10.1f}{1000 * used / len(found):9.1f}"
            f"  {len(found)} {same}",
            flush=True,
        )


class Sleepers:
    """A launcher of simulated workers."""

    def __init__(self, directory: Path, seconds: float) -> None:
        one = run_batch({"job": [ONE]}, directory / "one", workers=1, display=Display())
        record = next(one.records())
        info = find_engine()
        ready = {
            "event": "ready", "protocol": PROTOCOL, "digest": registry.digest(), "versions": registry.versions(),
            "engine": {"version": info.version, "origin": info.origin}, "host": "simulated", "pid": 0,
        }  # fmt: skip
        answer = {"event": "attempt", "outcome": "complete", "result": record["result"], "seconds": seconds}
        self.size = len(json.dumps(record["result"]))
        self._document = directory / "sleeper.json"
        self._document.write_text(json.dumps([ready, answer, seconds]))

    def start(self, place: int) -> ProcessHandle:
        return ProcessHandle([sys.executable, "-S", "-c", SLEEPER, str(self._document)])


def simulated(directory: Path, sizes: list[int], workers: int, seconds: float) -> None:
    """Each size in a process of its own, so that its peak of memory is its own."""
    print(f"\n{workers} simulated workers, jobs that sleep {seconds:g} s\n")
    print(f"{'jobs':>8}{'wall, s':>10}{'jobs/s':>8}{'CPU ms a job':>14}{'peak MB':>9}")
    points: list[dict[str, Any]] = []
    for size in sizes:
        words = [sys.executable, __file__, "--child", str(size), str(workers), str(seconds), str(directory)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        p = json.loads(done.stdout)
        points.append(p)
        print(
            f"{size:8}{p['wall']:10.1f}{size / p['wall']:8.0f}{1000 * p['cpu'] / size:14.2f}{p['peak']:9.0f}",
            flush=True,
        )
    if len(points) > 1:
        first, last = points[0], points[-1]
        cpu, memory = ((last[k] - first[k]) / (sizes[-1] - sizes[0]) for k in ("cpu", "peak"))
        print(
            f"\nby the line through the first and the last: {1000 * cpu:.2f} ms and {1000 * memory:.2f} kB of the runner a job;"
        )
        print(
            f"10^6 jobs: {cpu * 1e6 / 3600:.1f} h of one core, {first['peak'] / 1000 + memory * 1e3:.1f} GB"
        )


def child(size: int, workers: int, seconds: float, directory: Path) -> None:
    scratch = directory / f"simulated-{size}"
    scratch.mkdir()
    launcher = Sleepers(scratch, seconds)
    jobs = {"grid": [{**ONE, "seed": f"0..{size - 1}"}]}
    before, start = time.process_time(), time.perf_counter()
    done = run_batch(
        jobs, scratch / "store", workers=workers, launcher=launcher, display=Display(), most_jobs=10**7
    )
    wall, cpu = time.perf_counter() - start, time.process_time() - before
    assert done.outcomes == {"complete": size}, done.outcomes
    status = Path("/proc/self/status").read_text()  # ru_maxrss would remember the size of whoever started us
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[], help="launchers, by their name in the table")
    parser.add_argument("--simulate", type=int, nargs="*", default=[1000, 4000, 16000])
    parser.add_argument("--workers", type=int, default=64, help="simulated ones")
    parser.add_argument("--sleep", type=float, default=0.5)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        size, workers, seconds, directory = options.child
        child(int(size), int(workers), float(seconds), Path(directory))
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        print(f"load average at the start: {os.getloadavg()[0]:.1f}")
        if options.jobs:
            launchers(Path(name), options.jobs, options.only)
        if options.simulate:
            simulated(Path(name), options.simulate, options.workers, options.sleep)


if __name__ == "__main__":
    main()
