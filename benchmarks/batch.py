"""A thousand mixed jobs: ``m2bridge batch`` against shell loops over ``M2 --script``, one and two at once.

Everything is measured in one run and printed as a table. A machine is not equally fast at all times, so loops and batches take
turns: in each round the loops run their share of the scripts, and the batch all of its jobs, of which the median counts::

    python benchmarks/batch.py                       # 1,000 jobs; a quarter of an hour, most of it in the loops
    python benchmarks/batch.py --jobs 100            # a tenth of it
    python benchmarks/batch.py --jobs 100 --records 1000000   # and a store of a million synthetic records

The jobs are dimensions, closures, singular loci and fibers of small networks of several families, over several seeds. The
loops run the very scripts that the batch sends to Macaulay2 (caught on their way), and nothing of what the batch computes
besides: the exact ranks in Python, the comparison of witnesses, the records. The batch therefore does strictly more than
the loops.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from m2bridge.batch import jobfile, registry
from m2bridge.batch.job import Job
from m2bridge.batch.plan import expand
from m2bridge.batch.rows import read_rows
from m2bridge.batch.store import STORE_VERSION, Store, encode
from m2bridge.engine import Engine, Listener, Run, find_engine, open_engine
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.scripts import Script

DIMENSIONS = (
    "lightning(d=2,dp=1,a=1)", "lightning(d=2,dp=1,a=2)", "lightning(d=2,dp=2,a=1)", "lightning(d=2,dp=2,a=2)",
    "lightning(d=3,dp=1,a=1)", "lightning(d=3,dp=1,a=2)", "mlp(widths=[2,2,1],r=2)", "mlp(widths=[2,2,2],r=2)",
    "convolution(filters=[2,2],r=2)", "linear(widths=[2,1,2])",
)  # fmt: skip
MIX = (
    ("dimension", DIMENSIONS, 0.70),
    (
        "closure",
        ("lightning(d=2,dp=1,a=1)", "mlp(widths=[2,2,1],r=2)", "convolution(filters=[2,2],r=2)"),
        0.15,
    ),
    ("singular-locus", ("lightning(d=2,dp=1,a=1)",), 0.10),
    ("fiber", ("lightning(d=2,dp=1,a=2)",), 0.05),
)
"""Analysis, models, share of the jobs; the seed tells jobs of one model apart."""


def job_file(directory: Path, count: int) -> Path:
    """A job file with `count` jobs."""
    blocks: list[dict[str, Any]] = []
    for analysis, specs, share in MIX:
        seeds, rest = divmod(round(count * share), len(specs))
        if seeds:
            blocks.append({"analysis": analysis, "spec": list(specs), "seed": f"1..{seeds}"})
        if rest:
            blocks.append({"analysis": analysis, "spec": list(specs[:rest]), "seed": seeds + 1})
    path = directory / "jobs.json"
    path.write_text(json.dumps({"grid": blocks}))
    return path


class Catcher:
    """An engine that keeps the scripts it runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.scripts = engine, list[Script]()

    @property
    def info(self) -> Any:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        self.scripts.append(script)
        return self._engine.run(script, limits, listener)

    def close(self) -> None:
        pass

    def __enter__(self) -> Catcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def catch_scripts(jobs: tuple[Job, ...], directory: Path) -> list[Path]:
    """The scripts of every job, as files; one job may send several."""
    paths = []
    with open_engine(warm=True) as engine:
        for job in jobs:
            catcher = Catcher(engine)
            registry.find(job.analysis).run(
                parse_spec(job.spec), job.parameters, engine=catcher, limits=Limits()
            )
            for script in catcher.scripts:
                paths.append(directory / f"{len(paths):05d}.m2")
                paths[-1].write_text(script.text)
    return paths


def shell_loops(m2: str, scripts: list[Path], loops: int) -> float:
    """Seconds of `loops` concurrent shell loops, each over its share of the scripts."""
    program = 'for f in "$@"; do "$M2" --script "$f" > "$f.out" 2>/dev/null || exit 1; done'
    start = time.perf_counter()
    environment = {"M2": m2, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    running = [
        subprocess.Popen(["sh", "-c", program, "sh", *map(str, scripts[i::loops])], env=environment)
        for i in range(loops)
    ]
    if any(process.wait() for process in running):
        raise SystemExit("a script failed in a shell loop")
    return time.perf_counter() - start


def batch(jobs: Path, store: Path, workers: int) -> tuple[float, dict[str, Any]]:
    """Seconds of a whole ``m2bridge batch`` command, start of Python and engines included, and what it says."""
    words = [
        sys.executable,
        "-m",
        "m2bridge",
        "batch",
        str(jobs),
        "--store",
        str(store),
        "--workers",
        str(workers),
        "--json",
    ]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"the batch failed: {done.stderr}{done.stdout}")
    return seconds, json.loads(done.stdout)


def compare(count: int, rounds: int, scratch: Path) -> None:
    jobs = job_file(scratch, count)
    plan = expand(jobfile.read(jobs))
    scripts_directory = scratch / "scripts"
    scripts_directory.mkdir()
    scripts = catch_scripts(plan.jobs, scripts_directory)
    m2 = str(find_engine().path)
    one_loop = two_loops = 0.0
    one_worker, two_workers = list[float](), list[float]()
    for number in range(rounds):
        share = scripts[number::rounds]
        two_loops += shell_loops(m2, share, 2)
        two_workers.append(whole_batch(jobs, scratch / f"two{number}", 2, count))
        one_loop += shell_loops(m2, share, 1)
        one_worker.append(whole_batch(jobs, scratch / f"one{number}", 1, count))
    again, second = batch(jobs, scratch / "two0", 2)
    assert second["cached"] == {"complete": count}, second
    report(count, scripts, (one_loop, two_loops), (median(one_worker), median(two_workers)))
    print(f"workers, one: {seconds_of(one_worker)}; two: {seconds_of(two_workers)}")
    print(f"{'second run, from the store, seconds':46}{'':9}{again:9.1f}")
    hit = time_of_a_hit(jobs, scratch / "two0")
    print(f"{'one hit (read, checksum, compare), ms':46}{'':9}{hit:9.3f}")


def whole_batch(jobs: Path, store: Path, workers: int, count: int) -> float:
    seconds, said = batch(jobs, store, workers)
    assert said["done"] == {"complete": count}, said
    return seconds


def seconds_of(runs: list[float]) -> str:
    return ", ".join(f"{seconds:.1f}" for seconds in runs)


def report(count: int, scripts: list[Path], loops: tuple[float, float], workers: tuple[float, float]) -> None:
    (one_loop, two_loops), (one_worker, two_workers) = loops, workers
    print(f"{count} jobs, {len(scripts)} scripts, Macaulay2 {find_engine().version}\n")
    print(f"{'':46}{'one':>9}{'two':>9}{'scaling':>9}")
    print(
        f"{'shell loops over M2 --script, seconds':46}{one_loop:9.1f}{two_loops:9.1f}{one_loop / two_loops:9.2f}"
    )
    print(
        f"{'m2bridge batch, workers, seconds':46}{one_worker:9.1f}{two_workers:9.1f}{one_worker / two_workers:9.2f}"
    )
    print(f"{'times faster':46}{one_loop / one_worker:9.1f}{two_loops / two_workers:9.1f}")
    ratio = (one_worker / two_workers) / (one_loop / two_loops)
    print(f"{'scaling against that of the loops':46}{'':9}{'':9}{ratio:9.2f}")


def time_of_a_hit(jobs: Path, directory: Path) -> float:
    store, version = Store.open(directory), find_engine().version
    keys = [job.key(version) for job in expand(jobfile.read(jobs)).jobs]
    start = time.perf_counter()
    assert all(store.read(key) for key in keys)
    return 1000 * (time.perf_counter() - start) / len(keys)


def synthetic(number: int) -> dict[str, Any]:
    """A record of the usual shape, without a computation behind it."""
    return {
        "store_version": STORE_VERSION,
        "key": f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" * 4,
        "question": {},
        "job": {
            "analysis": ("dimension", "closure", "singular-locus")[number % 3],
            "model": f"lightning(d={number % 5 + 1},dp={number % 3 + 1},a=1,t=2)",
            "parameters": {"prime": 32003, "seed": number},
            "size": number % 40,
            "tags": [],
        },
        "outcome": "complete" if number % 50 else "timed-out",
        "message": None,
        "result": {"image_dim": number % 17, "certainty": "proved", "agreement": True}
        if number % 50
        else None,
        "limits": {"wall_seconds": 600.0, "memory_bytes": 2**32},
        "seconds": 0.1,
        "peak_memory_bytes": 10**8,
        "attempts": [{}],
        "engine": {"version": "1.21", "origin": "path"},
        "package_version": "0",
        "finished": "2024-01-01T00:00:00+00:00",
    }


def large_store(count: int, scratch: Path) -> None:
    """Time of everything that grows with the number of records."""
    store = Store.open_for_writing(scratch / f"store{count}")
    durable = min(count, 1000)

    def timed(name: str, work: Any, per: int) -> Any:
        start = time.perf_counter()
        value = work()
        seconds = time.perf_counter() - start
        print(f"{name:46}{seconds:9.2f} s{1e6 * seconds / per:12.1f} us each")
        return value

    def write_durably() -> None:
        for number in range(durable):
            record = synthetic(number)
            store.write(record["key"], record)

    def write_plainly() -> None:
        for number in range(durable, count):
            record = synthetic(number)
            store.path_of(record["key"]).write_bytes(encode(record))

    print(f"\na store of {count:,} synthetic records")
    timed(f"write {durable:,} records durably", write_durably, durable)
    if count > durable:
        timed(f"write {count - durable:,} more without fsync", write_plainly, count - durable)
    timed("read all records", lambda: read_rows(store), count)
    words = [sys.executable, "-m", "m2bridge", "results", str(store.directory), "--format", "csv"]
    listing = timed(
        "m2bridge results --format csv, whole command",
        lambda: subprocess.run(words, capture_output=True, check=True),
        count,
    )
    assert listing.stdout.count(b"\n") == count + 1
    words += ["--where", "outcome == 'timed-out' and image_dim == null and d > 3"]
    timed(
        "the same with --where, whole command",
        lambda: subprocess.run(words, capture_output=True, check=True),
        count,
    )
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1000, help="jobs of the comparison; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3, help="into how many the comparison is divided")
    parser.add_argument(
        "--records", type=int, action="append", help="sizes of synthetic stores (default: 10000)"
    )
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="m2bridge-benchmark-"))
    try:
        if options.jobs:
            compare(options.jobs, options.rounds, scratch)
        for count in options.records or [10_000]:
            if count:
                large_store(count, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
