"""What the tests of launchers share: a batch, its records, a Dask cluster with TLS on loopback, a Slurm if there is one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.recording import stable
from m2bridge.batch.store import Store

JOBS = """
[[grid]]
analysis = "dimension"
model = "mlp"
widths = [[2,2,1],[2,3,2],[3,3,2],[2,2,2]]
r = [2,3,4]
seed = "0..{last}"
"""
PATIENCE = 600


class Trial:
    """Batches over the same jobs, in a directory of their own."""

    def __init__(self, directory: Path, last: int) -> None:
        self.directory = directory
        self.jobs = directory / "jobs.toml"
        self.jobs.write_text(JOBS.format(last=last))
        self.count = 12 * (last + 1)
        self._begun: list[subprocess.Popen[str]] = []

    def start(self, store: str, *more: str, workers: int = 2, **environment: str) -> subprocess.Popen[str]:
        words = [
            sys.executable,
            "-m",
            "m2bridge",
            "batch",
            str(self.jobs),
            "--store",
            str(self.directory / store),
        ]
        process = subprocess.Popen(
            [*words, "--workers", str(workers), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        self._begun.append(process)
        return process

    def answered(self, process: subprocess.Popen[str]) -> str:
        """What a batch said; it answered every job."""
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, out + err
        return out + err

    def records(self, store: str) -> dict[str, Any]:
        opened = Store.open(self.directory / store)
        return {key: stable(opened.read(key)) for key in opened.all_keys()}

    def local(self) -> dict[str, Any]:
        """The records of an undisturbed run on this machine."""
        self.answered(self.start("local"))
        return self.records("local")

    def wait_for(self, store: str, count: int, process: subprocess.Popen[str]) -> None:
        """Until a batch has so many records."""
        until(lambda: len(self.keys(store)) >= count or process.poll() is not None)
        assert process.poll() is None, process.communicate()

    def keys(self, store: str) -> set[str]:
        if not (self.directory / store / "store.json").exists():
            return set()
        return set(Store.open(self.directory / store).all_keys())

    def close(self) -> None:
        for process in self._begun:
            if process.poll() is None:
                process.kill()
                process.wait()


def until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def processes(*words: str) -> list[int]:
    """The processes whose command line has all of these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().decode("utf-8", "replace").split("\0")
            if all(any(word in part for part in line) for word in words):
                found.append(int(path.parent.name))
    return found


def no_worker_left(seconds: float = 90.0) -> None:
    """No ``m2bridge worker`` of this environment runs any more."""
    until(lambda: not processes(sys.executable, "m2bridge", "worker"), seconds)


class DaskCluster:
    """A scheduler and two workers on loopback, talking TLS with certificates made for this test."""

    def __init__(self, directory: Path) -> None:
        self.certificates = directory / "certificates"
        self.certificates.mkdir(mode=0o700)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=m2bridge",
             "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=self.certificates, check=True, capture_output=True,
        )  # fmt: skip
        shutil.copy(self.certificates / "cert.pem", self.certificates / "ca.pem")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tls://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._log = (directory / "dask.log").open("wb")
        self.scheduler = self.start_scheduler()
        self.start_workers(2)

    @property
    def options(self) -> list[str]:
        return ["--dask", self.address, "--dask-tls", str(self.certificates)]

    def _start(self, command: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        tls = [
            w
            for n in ("ca-file", "cert", "key")
            for w in (f"--tls-{n}", f"{self.certificates}/{n[:4].strip('-f')}.pem")
        ]
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{command}", *words, *tls, "--protocol", "tls"],
            stdout=self._log, stderr=subprocess.STDOUT,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0", **environment},
        )  # fmt: skip

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        return self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")

    def start_workers(self, count: int, **environment: str) -> None:
        for _ in range(count):
            self.workers.append(
                self._start(
                    "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1",
                    **environment,
                )
            )  # fmt: skip

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._log.close()


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    pytest.importorskip("distributed", reason="pip install 'm2bridge[dask]'")
    cluster = DaskCluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Callable[[int], Trial]]:
    begun: list[Trial] = []

    def make(last: int = 0) -> Trial:
        begun.append(Trial(tmp_path, last))
        return begun[-1]

    yield make
    for one in begun:
        one.close()


@pytest.fixture
def left() -> Callable[[], None]:
    return no_worker_left


@pytest.fixture
def slurm() -> None:
    if shutil.which("sinfo") is not None:
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node"], capture_output=True, text=True, timeout=30, check=False
        )
        if len(done.stdout.splitlines()) >= 2:
            return
    pytest.skip("no Slurm with two nodes: set SLURM_CONF")
