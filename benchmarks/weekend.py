"""A weekend in an hour: many small jobs, every hundredth hostile, while everything that can go wrong does.

Random processes of the batch are killed, now and then the runner itself; the file system of the store fills up; the time of day
jumps by years; Macaulay2 is replaced by another version for a while; at the end it is removed for good. After each end of the
batch the same command is run again, as a person would. Then every claim is checked, and the exit code is 1 if one is false::

    python benchmarks/weekend.py                       # 20,000 jobs; about an hour on two cores
    python benchmarks/weekend.py --jobs 2000           # some minutes
    python benchmarks/weekend.py --other /path/to/M2   # the other version; without it that part is left out, and it is said

Needs Linux; as root the store is on a tmpfs of its own that fills up, else that part is left out, and it is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import IO, Any

from m2bridge.batch.store import Store
from m2bridge.engine import find_engine, machine

HOSTILE = {
    "m2-endless": {"partial"}, "m2-memory": {"out-of-memory"}, "m2-flood": {"timed-out", "out-of-memory"},
    "m2-crash": {"crashed"}, "m2-error": {"crashed"}, "python-endless": {"timed-out"}, "python-memory": {"out-of-memory"},
    "python-exit": {"crashed"}, "python-abort": {"crashed"}, "python-error": {"crashed"},
}  # fmt: skip
"""What a hostile job does, and the outcome that its record must have. A flood meets its own limit, or Python's."""
PLUGIN = '''
"""Jobs that do what they should not."""
import os, time
from dataclasses import dataclass
from typing import ClassVar
from m2bridge import protocol
from m2bridge.families import Model
from m2bridge.questions.kernel import Context, question
from m2bridge.certainty import Certainty
from m2bridge.results import Result
from m2bridge.scripts import Script

@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile(Result):
    ANALYSIS: ClassVar[str] = "hostile"
    VERSION: ClassVar[int] = 1

SCRIPTS = {
    "m2-endless": "while true do sleep 1;", "m2-memory": "L = {}; while true do L = append(L, new MutableList from 10^6:1);",
    "m2-flood": 'while true do << "flood" << endl;', "m2-crash": "recursionLimit = 10^9; f = x -> 1 + f(x+1); f 0;",
    "m2-error": "1/0;",
}

@question(asks="Does what it should not.")
def hostile(context: Context, model: Model, *, act: str = "none") -> Hostile:
    _, limit = context.run_script(Script(name="hostile", text=SCRIPTS.get(act, "") + '<< "@m2b-end 0" << endl;'))
    if act in ("m2-memory", "m2-flood"):
        protocol.read(context.last_run)  # can do nothing with a part
    kept = []
    while act == "python-endless":
        time.sleep(0.1)
    while act == "python-memory":
        kept.append(bytearray(2**24))
    if act == "python-exit":
        os._exit(7)
    if act == "python-abort":
        os.abort()
    if act == "python-error":
        raise RuntimeError("a mistake")
    return context.build_result(Hostile, model=model.spec, certainty=Certainty.PROVED, limit=limit)
'''
JUMPING = """
import random, time
_real, _rng = time.time, random.Random()
def jumping():
    return _real() + (_rng.choice([-1e9, 1e9, 3600.0, -86400.0]) if _rng.random() < 0.2 else 0.0)
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
"""
BETWEEN_BLOWS = (5, 35)
"""So many jobs are finished between two blows, however slow the machine is; an hour of 20,000 jobs has a blow every 3 seconds."""
LINE = re.compile(r"^\[\d+/\d+\] (\S+)  (.*)  \d+\.\d\d s")


class Weekend:
    """The batch, and all that befalls it."""

    def __init__(self, scratch: Path, jobs: int, seed: int, other: str | None) -> None:
        self.scratch, self.jobs, self.rng = scratch, jobs, random.Random(seed)
        real = find_engine()
        self.real, self.version, self.other = str(real.path), real.version, other
        self.engine = scratch / "M2"
        self.disk = scratch / "disk"
        self.disk.mkdir()
        self.small_disk = _mounted(self.disk, jobs)
        self.store = self.disk / "store"
        (scratch / "site").mkdir()
        (scratch / "site" / "hostile_plugin.py").write_text(PLUGIN)
        (scratch / "site" / "sitecustomize.py").write_text(JUMPING)
        self.happened: Counter[str] = Counter()
        self.exits: Counter[int] = Counter()
        self.finished: Counter[str] = Counter()
        self.resident: list[tuple[float, int]] = []
        self.wrong: list[str] = []

    def job_file(self, name: str, seeds: range, *, hostile: bool) -> Path:
        """Dimensions of four small models over many seeds; with every hundredth job a hostile one."""
        grid: dict[str, Any] = {
            "analysis": "dimension",
            "model": "lightning",
            "d": 2,
            "dp": [1, 2],
            "a": [1, 2],
        }
        document: dict[str, Any] = {"grid": [{**grid, "seed": f"{seeds.start}..{seeds.stop - 1}"}]}
        if hostile:
            common = {"analysis": "hostile", "spec": "lightning(d=2,dp=1)", "memory": "200M"}
            acts = [list(HOSTILE)[number % len(HOSTILE)] for number in range(self.jobs // 100)]
            document["job"] = [
                {**common, "act": act, "seed": number, "timeout": "2s" if "endless" in act else "60s"}
                for number, act in enumerate(acts)
            ]
        path = self.scratch / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    def put_engine(self, path: str) -> None:
        fresh = self.scratch / "fresh"
        fresh.write_text(f'#!/bin/sh\nexec "{path}" "$@"\n')
        fresh.chmod(0o755)
        fresh.replace(self.engine)

    def run(self, jobs: Path, *options: str, disturb: bool) -> int:
        """Run the command once; its exit code."""
        with (self.scratch / "said").open("wb") as said, (self.scratch / "said").open() as heard:
            process = self.start(jobs, *options, stderr=said)
            until_blow = self.rng.randint(*BETWEEN_BLOWS)
            while process.poll() is None:
                time.sleep(0.25)
                self.resident.append((time.monotonic(), machine.resident(process.pid)))
                until_blow -= self.note(heard)
                if disturb and until_blow <= 0:
                    self.blow(process)
                    until_blow = self.rng.randint(*BETWEEN_BLOWS)
            self.note(heard)
        self.exits[process.returncode] += 1
        return process.returncode

    def start(self, jobs: Path, *options: str, **pipes: Any) -> subprocess.Popen[bytes]:
        """The command that a person would run."""
        command = [sys.executable, "-m", "m2bridge", "batch", str(jobs), "--store", str(self.store)]
        paths = [str(self.scratch / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        site = {"PYTHONPATH": os.pathsep.join(paths), "M2BRIDGE_PLUGINS": "hostile_plugin"}
        return subprocess.Popen(
            [*command, "--engine", str(self.engine), *options],
            env={**os.environ, **site},
            **{"stdout": subprocess.DEVNULL, **pipes},
        )

    def note(self, heard: IO[str]) -> int:
        """Note which jobs the batch says that it finished since; how many."""
        found = [match[2] for line in heard if (match := LINE.match(line))]
        self.finished.update(found)
        return len(found)

    def blow(self, process: subprocess.Popen[bytes]) -> None:
        """One thing that goes wrong."""
        what = self.rng.choices(["kill", "runner", "disk", "version"], [20, 1, 1, 1])[0]
        below = machine.descendants(process.pid)
        if what == "kill" and below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(below), signal.SIGKILL)
        elif what == "runner":
            process.kill()
            process.wait()
        elif what == "disk" and self.small_disk:
            ballast = self.disk / "ballast"
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            ballast.unlink()
        elif what == "version" and self.other is not None:
            self.put_engine(self.other)
            for pid in below:
                with contextlib.suppress(OSError):
                    if "supervisor" in Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=90)
            self.put_engine(self.real)
        else:
            return
        self.happened[what] += 1

    def until_done(self, jobs: Path) -> None:
        """Run the same command until it has nothing left to do; then once more for what was killed too often."""
        for _ in range(1000):
            code = self.run(jobs, disturb=True)
            if code != -signal.SIGKILL and self.complete(jobs):
                break
        else:
            self.wrong.append("the batch did not come to its end")
        self.run(jobs, "--retry", disturb=False)

    def complete(self, jobs: Path) -> bool:
        process = self.start(jobs, "--dry-run", "--json", stdout=subprocess.PIPE)
        said, _ = process.communicate()
        return not json.loads(said)["to_run"]

    # -- what must be true afterwards --------------------------------------------------------------------------

    def claim(self, words: str, holds: bool, detail: object = "") -> None:
        print(f"{'yes' if holds else 'NO ':4}{words}{f': {detail}' if detail != '' else ''}")
        if not holds:
            self.wrong.append(words)

    def check(self, expected: int) -> None:
        store = Store.open(self.store)
        records = [record for key in store.all_keys() if (record := store.read(key)) is not None]
        good = [record for record in records if record["job"]["analysis"] == "dimension"]
        bad = [record for record in records if record["job"]["analysis"] == "hostile"]
        self.claim("nothing lost: one valid record for each job", len(records) == expected, len(records))
        self.claim(
            "every good job is answered",
            {r["outcome"] for r in good} == {"complete"},
            Counter(r["outcome"] for r in good),
        )
        answers = Counter((r["job"]["model"], r["result"]["image_dim"]) for r in good if r["result"])
        self.claim("all answers of a model are the same", len(answers) == 4, dict(answers))
        versions = {r["question"]["engine_version"] for r in records}
        self.claim("no other version has answered", versions == {self.version}, versions)
        other = Counter(
            (r["job"]["parameters"]["act"], r["outcome"])
            for r in bad
            if r["outcome"] not in HOSTILE[r["job"]["parameters"]["act"]]
        )
        self.claim("every hostile job has the outcome that it deserves", not other, dict(other))
        twice = {
            title: count
            for title, count in self.finished.items()
            if count > 1 and title.startswith("dimension")
        }
        self.claim("nothing doubled: no good job was finished twice", not twice, len(twice))
        alive = [pid for pid in machine.descendants(os.getpid()) if machine.living(pid)]
        self.claim("no process is left", not alive, len(alive))
        sizes = [size for _, size in self.resident if size > 2**20]
        quarter = max(1, len(sizes) // 4)
        first, last = median(sizes[quarter : 2 * quarter]) / 2**20, median(sizes[-quarter:]) / 2**20
        self.claim(
            "memory of the runner is flat", last < 1.3 * first + 20, f"{first:.0f} MB, then {last:.0f} MB"
        )

    def last_hour(self) -> None:
        """Macaulay2 is removed for good: the batch ends with exit 4 and has recorded nothing about what is left."""
        jobs = self.job_file("last", range(10**6, 10**6 + 500), hostile=False)
        before = len(list(Store.open(self.store).all_keys()))
        process = self.start(jobs, stderr=subprocess.DEVNULL)
        while len(list(Store.open(self.store).all_keys())) < before + 5 and process.poll() is None:
            time.sleep(0.1)
        self.engine.unlink()
        for pid in machine.descendants(process.pid):
            with contextlib.suppress(OSError):
                if "supervisor" in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)
        code = process.wait(timeout=300)
        store = Store.open(self.store)
        late = [
            r
            for key in store.all_keys()
            if (r := store.read(key)) and r["job"]["parameters"].get("seed", 0) >= 10**6
        ]
        self.claim(
            "an engine that dies for good ends the batch with exit 4",
            code == 4,
            f"exit {code}, {len(late)} of 2000 answered",
        )
        self.claim("and nothing false is recorded", {r["outcome"] for r in late} == {"complete"})


def _mounted(place: Path, jobs: int) -> bool:
    """Whether a file system of its own could be put there: room for the records, and little more."""
    size = f"size={40 + jobs * 10 // 1024 * 2}m"
    words = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)]
    return os.getuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--other", help="a Macaulay2 of another version")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="m2bridge-weekend-"))
    weekend = Weekend(scratch, options.jobs, options.seed, options.other)
    try:
        weekend.put_engine(weekend.real)
        hostile = options.jobs // 100
        seeds = (options.jobs - hostile) // 4
        begun = time.monotonic()
        weekend.until_done(weekend.job_file("jobs", range(1, seeds + 1), hostile=True))
        print(
            f"Macaulay2 {weekend.version}; {4 * seeds} good jobs, {hostile} hostile, {time.monotonic() - begun:.0f} s"
        )
        print(f"blows: {dict(weekend.happened)}; exit codes of the runs: {dict(weekend.exits)}")
        for left_out, why in (
            (not weekend.small_disk, "full disk (not root)"),
            (not options.other, "other version (no --other)"),
        ):
            if left_out:
                print(f"left out: {why}")
        weekend.check(4 * seeds + hostile)
        weekend.last_hour()
    finally:
        if weekend.small_disk:
            subprocess.run(["umount", "-l", str(weekend.disk)], check=False)
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(1 if weekend.wrong else 0)


if __name__ == "__main__":
    main()
