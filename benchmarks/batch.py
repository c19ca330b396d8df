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
from pathlib import Path
from statistics import median
from typing import Any

from measuring import ObservedEngine, print_heading, table_row, timed

from m2bridge.batch import jobfile
from m2bridge.batch.job import Job
from m2bridge.batch.plan import expand
from m2bridge.batch.rows import read_rows
from m2bridge.batch.store import STORE_VERSION, Store, encode
from m2bridge.engine import find_engine, open_engine
from m2bridge.questions import find

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


def catch_scripts(jobs: tuple[Job, ...], directory: Path) -> list[Path]:
    """The scripts of every job, as files; one job may send several."""
    paths: list[Path] = []
    with open_engine(warm=True) as engine:
        for job in jobs:
            observed = ObservedEngine(engine)
            find(job.analysis)(job.spec, **job.parameters, engine=observed)
            for script in observed.scripts:
                paths.append(directory / f"{len(paths):05d}.m2")
                paths[-1].write_text(script.text)
    return paths


def shell_loops(m2: str, scripts: list[Path], loops: int) -> None:
    """Run `loops` concurrent shell loops, each over its share of the scripts."""
    program = 'for f in "$@"; do "$M2" --script "$f" > "$f.out" 2>/dev/null || exit 1; done'
    environment = {"M2": m2, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    running = [
        subprocess.Popen(["sh", "-c", program, "sh", *map(str, scripts[i::loops])], env=environment)
        for i in range(loops)
    ]
    if any(process.wait() for process in running):
        raise SystemExit("a script failed in a shell loop")


def batch(jobs: Path, store: Path, workers: int) -> dict[str, Any]:
    """Run a whole ``m2bridge batch`` command, start of Python and engines included; return what it prints."""
    options = ["--store", str(store), "--workers", str(workers), "--json"]
    words = [sys.executable, "-m", "m2bridge", "batch", str(jobs), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the batch failed: {done.stderr}{done.stdout}")
    return dict(json.loads(done.stdout))


def compare(count: int, rounds: int, scratch: Path) -> None:
    """Print the table of loops and batches, with one and with two processes."""
    jobs = job_file(scratch, count)
    plan = expand(jobfile.read(jobs))
    (scratch / "scripts").mkdir()
    scripts = catch_scripts(plan.jobs, scratch / "scripts")
    m2 = str(find_engine().path)
    loops: dict[int, list[float]] = {1: [], 2: []}
    batches: dict[int, list[float]] = {1: [], 2: []}
    for number in range(rounds):
        for processes in (2, 1):
            took, _ = timed(lambda n=number, p=processes: shell_loops(m2, scripts[n::rounds], p))
            loops[processes].append(took.wall)
            store = scratch / f"{processes}-{number}"
            took, printed = timed(lambda s=store, p=processes: batch(jobs, s, p))
            assert printed["done"] == {"complete": count}, printed
            batches[processes].append(took.wall)
    print(f"{count} jobs, {len(scripts)} scripts, Macaulay2 {find_engine().version}\n")
    whole = {p: sum(seconds) for p, seconds in loops.items()}
    median_batch = {p: median(seconds) for p, seconds in batches.items()}
    print_heading("", "one", "two", "scaling")
    for name, seconds in (
        ("shell loops over M2 --script, seconds", whole),
        ("m2bridge batch, workers, seconds", median_batch),
        ("times faster", {p: whole[p] / median_batch[p] for p in whole}),
    ):
        print(table_row(name, f"{seconds[1]:.1f}", f"{seconds[2]:.1f}", f"{seconds[1] / seconds[2]:.2f}"))
    print(f"\nall batches, seconds: {batches}")
    again, second = timed(lambda: batch(jobs, store, 2))
    assert second["cached"] == {"complete": count}, second
    keys = [job.key(find_engine().version) for job in plan.jobs]
    opened = Store.open(store)
    hits, _ = timed(lambda: [opened.read(key) for key in keys])
    print(f"second run, from the store: {again.wall:.1f} s")
    print(f"one hit (read, checksum, compare): {1000 * hits.wall / len(keys):.3f} ms")


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

    def measure(name: str, work: Any, per: int) -> Any:
        took, value = timed(work)
        print(f"{name:46}{took.wall:9.2f} s{1e6 * took.wall / per:12.1f} us each")
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
    measure(f"write {durable:,} records durably", write_durably, durable)
    if count > durable:
        measure(f"write {count - durable:,} more without fsync", write_plainly, count - durable)
    measure("read all records", lambda: read_rows(store), count)
    words = [sys.executable, "-m", "m2bridge", "results", str(store.directory), "--format", "csv"]
    listing = measure(
        "m2bridge results --format csv, whole command",
        lambda: subprocess.run(words, capture_output=True, check=True),
        count,
    )
    assert listing.stdout.count(b"\n") == count + 1
    words += ["--where", "outcome == 'timed-out' and image_dim == null and d > 3"]
    measure(
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
