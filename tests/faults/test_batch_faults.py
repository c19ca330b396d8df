"""Batches that are killed, starved and lied to, with real processes.

After each fault: running the command again completes, every job has exactly one valid record, none differs from an undisturbed
run, and no process is left.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.store import Store
from m2bridge.engine import machine
from tests.comparing import stable
from tests.running import run_command

pytestmark = pytest.mark.faults

COUNT = 32
JOBS = f"""\
[[grid]]
analysis = "dimension"
model = "lightning"
d = 2
dp = [1, 2]
a = "1..d"
seed = "1..{COUNT // 4}"
"""


@pytest.fixture(scope="module", autouse=True)
def _orphans_come_to_us() -> None:
    """Whatever a killed process leaves behind becomes a child of this one, where it can be seen."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jobs") / "jobs.toml"
    path.write_text(JOBS)
    return path


@pytest.fixture(scope="module")
def undisturbed(jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The records of a run that nothing disturbed."""
    store = tmp_path_factory.mktemp("undisturbed") / "store"
    assert finish(jobs, store).returncode == 0
    stored = records_of(store)
    assert len(stored) == COUNT
    return stored


@pytest.fixture
def finished(
    jobs: Path, undisturbed: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> Path:
    """A copy of the undisturbed store, to be damaged."""
    source = next(p for p in tmp_path_factory.getbasetemp().glob("undisturbed*/store"))
    return Path(shutil.copytree(source, tmp_path / "copy"))


def start(jobs: Path, store: Path, *options: str, **more: Any) -> subprocess.Popen[bytes]:
    words = [
        sys.executable,
        "-m",
        "m2bridge",
        "batch",
        str(jobs),
        "--store",
        str(store),
        "--workers",
        "2",
        *options,
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def finish(jobs: Path, store: Path, *options: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    with start(jobs, store, *options, **more) as process:
        out, err = process.communicate(timeout=150)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def records_of(store: Path) -> dict[str, Any]:
    """Every record without times; a damaged one raises."""
    opened = Store.open(store)
    return {key: stable(opened.read(key)) for key in opened.all_keys()}


def alive() -> list[int]:
    """Processes below this one that are not dead."""
    found = []
    for pid in machine.descendants(os.getpid()):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found


def assert_no_orphan(seconds: float = 4.0) -> None:
    deadline = time.monotonic() + seconds
    while (left := alive()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:150] for pid in left]


def assert_completes(jobs: Path, store: Path, undisturbed: dict[str, Any], count: int = COUNT) -> None:
    """The batch completes; it has `count` records, those of the undisturbed run among them."""
    done = finish(jobs, store)
    assert done.returncode == 0, done.stderr.decode()
    stored = records_of(store)
    assert len(stored) == count
    assert {key: stored.get(key) for key in undisturbed} == undisturbed
    assert list((store / "tmp").iterdir()) == []
    assert list((store / "runners").iterdir()) == []
    assert_no_orphan()


def wait_for_records(store: Path, count: int, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if len(list(store.glob("records/*/*.json"))) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} records after {seconds} s")


@pytest.mark.slow
def test_the_runner_is_killed_at_random_moments(
    jobs: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    rng = random.Random(11)
    store = tmp_path / "store"
    for moment in range(20):
        process = start(jobs, store)
        if (
            moment >= 4
        ):  # four times anywhere from the start of Python on, then while jobs run and are recorded
            before = len(list(store.glob("records/*/*.json"))) if store.exists() else 0
            if before < COUNT:
                wait_for_records(store, min(before + 1, COUNT))
        time.sleep(rng.uniform(0.0, 1.5 if moment < 4 else 0.25))
        process.kill()
        process.communicate()
        assert_no_orphan()
        for path in store.glob("records/*/*.json"):
            assert Store.open(store).read(path.stem) is not None
    assert_completes(jobs, store, undisturbed)


def test_engines_and_workers_are_killed(jobs: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    rng = random.Random(5)
    store = tmp_path / "store"
    process = start(jobs, store)
    wait_for_records(store, 1)
    killed = 0
    while process.poll() is None and killed < 12:
        below = [pid for pid in machine.descendants(process.pid) if pid != process.pid]
        if below:
            try:
                os.kill(rng.choice(below), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(rng.uniform(0.02, 0.12))
    _, err = process.communicate(timeout=120)
    assert killed >= 5
    assert process.returncode in (0, 1), err.decode()
    done = finish(jobs, store, "--retry")
    assert done.returncode == 0, done.stderr.decode()
    assert_completes(jobs, store, undisturbed)


def test_a_second_runner_is_refused(jobs: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    store = tmp_path / "store"
    first = start(jobs, store)
    wait_for_records(store, 1)
    first.send_signal(signal.SIGSTOP)  # it lives, and cannot finish before the second has started
    second = finish(jobs, store)
    assert second.returncode == 2, second.stderr.decode()
    assert b"another batch" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    first.kill()
    first.communicate()
    assert_completes(jobs, store, undisturbed)


@pytest.mark.slow
def test_one_of_two_shards_dies(jobs: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    store = tmp_path / "store"
    first, second = (start(jobs, store, "--shard", f"{i}/2") for i in (1, 2))
    wait_for_records(store, 3)
    first.kill()
    first.communicate()
    _, err = second.communicate(timeout=150)
    assert second.returncode == 0, err.decode()
    again = finish(jobs, store, "--shard", "1/2")
    assert again.returncode == 0, again.stderr.decode()
    assert records_of(store) == undisturbed
    assert_completes(jobs, store, undisturbed)


def test_ctrl_c_once_finishes_what_runs_twice_stops(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    count = 8 * COUNT  # so many that some are left when the signal arrives
    jobs, store = tmp_path / "jobs.toml", tmp_path / "store"
    jobs.write_text(JOBS.replace(f"1..{COUNT // 4}", f"1..{count // 4}"))
    process = start(jobs, store)
    wait_for_records(store, 2)
    status = subprocess.run(
        [sys.executable, "-m", "m2bridge", "status", str(store)], capture_output=True, check=False
    )
    assert f"of {count} jobs".encode() in status.stdout, status
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"run the same command again" in err
    assert len(records_of(store)) < count
    assert_no_orphan()
    process = start(jobs, store)
    wait_for_records(store, len(records_of(store)) + 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert_no_orphan()
    assert_completes(jobs, store, undisturbed, count)


def test_corrupted_records_are_set_aside_and_computed_again(
    jobs: Path, finished: Path, undisturbed: dict[str, Any]
) -> None:
    paths = sorted(finished.glob("records/*/*.json"))
    data = paths[0].read_bytes()
    paths[0].write_bytes(data[: len(data) // 2])
    paths[1].write_bytes(b"")
    paths[2].write_bytes(paths[3].read_bytes())
    paths[4].write_bytes(paths[4].read_bytes().replace(b'"image_dim": ', b'"image_dim": 1'))
    assert_completes(jobs, finished, undisturbed)
    assert len(list((finished / "damaged").iterdir())) == 4


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        run_command(["umount", "-l", str(place)])


def test_a_full_disk_loses_nothing(small_disk: Path, jobs: Path, undisturbed: dict[str, Any]) -> None:
    store = small_disk / "store"
    process = start(jobs, store)
    wait_for_records(store, 5)
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err.decode()
    assert b"the disk is full" in err
    assert_no_orphan()
    done = len(records_of(store))
    assert 5 <= done < COUNT
    refused = finish(jobs, store)
    assert refused.returncode in (1, 2)
    assert b"Traceback" not in refused.stderr
    ballast.unlink()
    assert_completes(jobs, store, undisturbed)


def test_a_read_only_store_can_be_listed_and_refuses_work(
    small_disk: Path, finished: Path, jobs: Path
) -> None:
    store = small_disk / "store"
    shutil.copytree(finished, store)
    next(store.glob("records/*/*.json")).unlink()
    run_command(["mount", "-o", "remount,ro", str(small_disk)])
    refused = finish(jobs, store)
    assert refused.returncode == 2
    assert b"cannot be written to" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    for command in ("results", "status"):
        words = [sys.executable, "-m", "m2bridge", command, str(store)]
        shown = subprocess.run(words, capture_output=True, check=False)
        assert shown.returncode == 0, shown.stderr
        assert b"complete" in shown.stdout
    assert_no_orphan()


JUMPING = """\
import random, time
_real, _rng = time.time, random.Random(3)
_state = {"at": 0.0}
def jumping():
    if _rng.random() < 0.3:
        _state["at"] = _rng.choice([-1e9, 1e9, 0.0, 3600.0, -86400.0])
    return _real() + _state["at"]
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
"""


@pytest.mark.slow
def test_a_clock_that_jumps(jobs: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """In every Python process the time of day jumps by years, and files get times from the past and the future."""
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    store = tmp_path / "store"
    process = start(jobs, store, env=environment)
    wait_for_records(store, 4)
    for number, path in enumerate(sorted(store.glob("records/*/*.json"))):
        os.utime(path, (10**9 * (number % 3), 10**9 * (number % 3)))
        os.utime(path.parent, (10**9 * (number % 4), 10**9 * (number % 4)))
    process.kill()
    process.communicate()
    done = finish(jobs, store, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    assert_completes(jobs, store, undisturbed)
    listed = run_command([sys.executable, "-m", "m2bridge", "results", str(store), "--format", "json"])
    assert len(json.loads(listed.stdout)) == COUNT
