"""What the tests of launchers share: a batch, its records, a Dask cluster with TLS on loopback, a Slurm if there is one."""

from __future__ import annotations

import contextlib
import json
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

from m2bridge.batch.store import Store
from tests.comparing import stable
from tests.running import run_command

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

    def wait_until_on(self, store: str, host: str, process: subprocess.Popen[str]) -> None:
        """Until a batch has answered jobs on a host."""

        def answers() -> bool:
            states = [json.loads(p.read_text()) for p in (self.directory / store / "runners").glob("*.json")]
            return any(state["hosts"].get(host, {}).get("jobs") for state in states)

        until(lambda: answers() or process.poll() is not None)
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
        run_command(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=m2bridge",
             "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=self.certificates,
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


SLURM_CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={here}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmUser=root
SlurmdUser=root
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool-%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/%n.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/%n.log
SlurmdTimeout=10
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=8000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=8000
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


class LoopbackSlurm:
    """A real Slurm on this machine alone: a controller and two nodes; needs root, slurm-wlm and munge."""

    def __init__(self, here: Path) -> None:
        self.here = here
        with contextlib.ExitStack() as sockets:
            free = [sockets.enter_context(socket.socket()) for _ in range(3)]
            for one in free:
                one.bind(("127.0.0.1", 0))
            ports = [one.getsockname()[1] for one in free]
        for directory in (here, here / "state"):
            directory.mkdir(exist_ok=True, mode=0o755)
        (here / "munge.key").write_bytes(os.urandom(1024))
        (here / "munge.key").chmod(0o400)
        (here / "slurm.conf").write_text(
            SLURM_CONF.format(here=here, ports=ports, host=socket.gethostname().split(".")[0])
        )
        os.environ["SLURM_CONF"] = str(here / "slurm.conf")
        files = [f"--{name}-file={here}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._run("munged", "--force", f"--socket={here}/munge.socket", *files)
        self._run("slurmctld", "-c")
        self.start_node("n1")
        self.start_node("n2")
        until(lambda: self.idle() == 2, 60)

    @staticmethod
    def _run(*words: str) -> str:
        return run_command(words, timeout=60).stdout

    def idle(self) -> int:
        done = subprocess.run(["sinfo", "-hN", "-o", "%T"], capture_output=True, text=True, check=False)
        return done.stdout.split().count("idle")

    def start_node(self, name: str) -> None:
        self._run("slurmd", "-N", name)

    def lose(self, name: str) -> None:
        """A node is gone at once, with everything that ran there; its power was cut."""
        for job in self._run("squeue", "-h", "-w", name, "-o", "%A").split():
            for step in processes(f"slurmstepd: [{job}."):
                for task in Path(f"/proc/{step}/task/{step}/children").read_text().split():
                    _kill(int(task))
                _kill(step)
        _kill(int((self.here / f"{name}.pid").read_text()))

    def close(self) -> None:
        for name in ("n1", "n2", "slurmctld", "munge"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self.here / f"{name}.pid").read_text()), signal.SIGTERM)
        del os.environ["SLURM_CONF"]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackSlurm]:
    missing = [name for name in ("munged", "slurmctld", "slurmd", "srun") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"no Slurm of our own: {', '.join(missing) or 'needs root'}")
    here = tmp_path_factory.mktemp("slurm")
    try:
        own = LoopbackSlurm(here)
    except (OSError, subprocess.SubprocessError, AssertionError) as error:
        said = getattr(error, "stderr", None) or error
        pytest.skip(f"Slurm does not start here: {said}")
    yield own
    own.close()
