"""Batch: jobs on a Dask cluster: local processes, a scheduler at an address, or Slurm by dask-jobqueue.

Each job is one task, :func:`answer`: it starts an ``m2bridge worker`` below the Dask worker, which answers this job and ends.
Limits and kills are therefore those of m2bridge, and the process dies with its Dask worker. Whoever reaches a scheduler can run
code as this user: the connection is TLS, or to this machine alone.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import selectors
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, Future, LocalCluster, Security, get_worker

from m2bridge.batch import registry
from m2bridge.batch.launchers import CommandLauncher, WorkerHandle
from m2bridge.batch.policy import GRACE
from m2bridge.engine.machine import allowed_cores
from m2bridge.errors import InputError, M2BridgeError

PATIENCE = 120.0
"""Seconds for which a scheduler may be away, for instance because it is started again."""
_LOOK = 0.5


def answer(request: dict[str, Any], engine: str | None, digest: str) -> dict[str, Any]:
    """Answer one job in a process below this Dask worker: its last event, and as ``ready`` its first one.

    A process with another `digest` would answer other questions than the keys of the batch say, and is not asked. The process is
    killed when the job outlasts its limit, or the task was cancelled, for instance because the runner is gone.
    """
    dask_worker, task = get_worker(), get_worker().get_current_task()
    address, wall, ready = dask_worker.address, request["limits"]["wall_seconds"], None
    deadline = float("inf")
    process = CommandLauncher(engine).start(0)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                selector.select(_LOOK)
                state = dask_worker.state.tasks.get(task)
                if state is None or state.state == "cancelled":
                    return {"event": "gone", "status": -9, "words": "cancelled"}
                events = process.events()
                if events is None:
                    status, words = process.close()
                    return {"event": "gone", "status": status, "words": words}
                for event in events:
                    if event["event"] == "ready":
                        ready = event
                        if ready["digest"] != digest:
                            return {"event": "other", "ready": ready, "address": address}
                        process.send(request)
                        deadline = time.monotonic() + wall + GRACE if wall is not None else deadline
                    elif event["event"] != "alive":
                        return {**event, "ready": ready, "address": address}
        return {"event": "late"}
    finally:
        process.kill()
        process.close()


class DaskLauncher:
    """Gives each place of a batch one task of Dask at a time, on Dask workers that can answer."""

    def __init__(
        self, address: str, security: Security | None, engine: str | None, places: int | None
    ) -> None:
        self.address, self.engine, self._security = address, engine, security
        self.refused: set[str] = set()
        self._client = self._connected(10.0)
        self.places = places or max(1, sum(self._client.nthreads().values()))

    def start(self, place: int) -> DaskHandle:
        return DaskHandle(self)

    def _connected(self, patience: float) -> Client:
        try:
            return Client(self.address, security=self._security, timeout=patience, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise M2BridgeError(f"there is no Dask scheduler at {self.address}: {error}") from None

    def submit(self, request: dict[str, Any]) -> Future:
        """Submit one job; after the loss of the scheduler, wait for its return."""
        if self._client.status != "running":
            self.close()
            self._client = self._connected(PATIENCE)
        where: dict[str, Any] = {}
        if self.refused and (good := set(self._client.nthreads()) - self.refused):
            where = {"workers": sorted(good), "allow_other_workers": True}  # others when these are gone
        return self._client.submit(
            answer, request, self.engine, registry.digest(), pure=False, retries=0, **where
        )

    def close(self) -> None:
        with contextlib.suppress(Exception):  # whatever Dask raises when its scheduler is gone
            self._client.close(timeout=2)


class DaskHandle(WorkerHandle):
    """The runner's side of one task at a time; Dask finds a worker for each."""

    def __init__(self, launcher: DaskLauncher) -> None:
        super().__init__()
        self.ready = True
        self._launcher = launcher
        self._future: Future | None = None
        self._status: tuple[int, str] = (0, "")
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def send(self, request: dict[str, Any]) -> None:
        assert self.task is not None
        self.task.queued = True  # its time is watched where it runs
        self._future = self._launcher.submit(request)
        self._future.add_done_callback(self._wake)

    def _wake(self, _: Future | None = None) -> None:
        with contextlib.suppress(OSError):  # closed since
            os.write(self._writer, b".")

    def events(self) -> list[dict[str, Any]] | None:
        os.read(self._reader, 1)
        if self._future is None:
            return None
        future, self._future = self._future, None
        try:
            said = future.result(timeout=10)
        except BaseException as error:  # KilledWorker, or cancelled with its scheduler, or no m2bridge there
            said = {"event": "gone", "status": -9, "words": f"{type(error).__name__}: {error}"}
        if said["event"] in ("gone", "late"):
            self._status = said.get("status", -9), said.get("words", "")
            self.killed_for = "time" if said["event"] == "late" else self.killed_for
            return None
        ready = [said["ready"]] if said["ready"] is not None else []
        if said["event"] == "attempt":
            return [*ready, said]
        self._launcher.refused.add(said["address"])
        return ready if said["event"] == "other" else [{**said, "exclude": True}]

    def _end(self) -> None:
        """Lose interest: :func:`answer` sees that its task was cancelled, and kills."""
        future, self._future = self._future, None
        if future is not None:
            future.release()
        self._wake()

    def close(self) -> tuple[int, str]:
        self._end()
        os.close(self._reader)
        os.close(self._writer)
        return self._status


# -- clusters ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(
    address: str | None, slurm: Path | None, certificates: Path | None, engine: str | None, workers: int | None,
    show: Callable[[str], None],
) -> Iterator[DaskLauncher]:  # fmt: skip
    """Open a launcher on ``local`` processes, on the scheduler at an address, or on Slurm; close it in the end."""
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by the batch
    with contextlib.ExitStack() as stack, dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        if slurm is not None:
            workers = workers or 1
            cluster = stack.enter_context(_slurm_cluster(slurm, workers, show))
        elif address == "local":
            workers = workers or allowed_cores()
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, security=True, host="127.0.0.1",
                memory_limit=None,
            )  # fmt: skip
            stack.enter_context(cluster)
        else:
            cluster, security = None, security_of(str(address), certificates)
        if cluster is not None:
            address, security = cluster.scheduler_address, cluster.security
        launcher = DaskLauncher(str(address), security, engine, workers)
        yield stack.enter_context(contextlib.closing(launcher))


def security_of(address: str, certificates: Path | None) -> Security | None:
    """Return the certificates for the scheduler at an address: None for this machine; an InputError if they cannot be used."""
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls") or parts.hostname is None or parts.port is None:
        raise InputError(f"--dask {address!r}: write local, tcp://127.0.0.1:8786 or tls://host:8786")
    if parts.scheme == "tcp":
        with contextlib.suppress(ValueError):
            if parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname).is_loopback:
                return None
        raise InputError(
            f"--dask {address}: off this machine Dask needs TLS; write tls://, and --dask-tls DIR"
        )
    if certificates is None:
        raise InputError(f"--dask {address}: say where ca.pem, cert.pem and key.pem are: --dask-tls DIR")
    ca, cert, key = (certificates / name for name in ("ca.pem", "cert.pem", "key.pem"))
    try:
        for file in (ca, cert, key, certificates):
            if file in (key, certificates) and file.stat().st_mode & 0o077:
                raise InputError(f"--dask-tls: {file} is open to others; chmod go= {file}")
            file.stat()
    except OSError as error:
        raise InputError(f"--dask-tls: {error.filename}: {error.strerror}") from None
    files = {"tls_ca_file": str(ca), "tls_client_cert": str(cert), "tls_client_key": str(key)}
    return Security(require_encryption=True, **files)


@contextlib.contextmanager
def _slurm_cluster(path: Path, workers: int, show: Callable[[str], None]) -> Iterator[Any]:
    """Open a cluster of `workers` Slurm jobs with one Dask worker each; `show` is given the job script before it is submitted.

    The file holds the options of ``dask_jobqueue.SLURMCluster``. The certificates of this run are in a private directory that
    the nodes must see, that of the file unless ``shared_directory`` names another, and are removed with it.
    """
    from dask_jobqueue import SLURMCluster

    with contextlib.ExitStack() as stack:
        try:
            options = tomllib.loads(path.read_text(encoding="utf-8"))
            shared = Path(options.pop("shared_directory", path.resolve().parent)).expanduser()
            private = stack.enter_context(tempfile.TemporaryDirectory(prefix=".m2bridge-dask-", dir=shared))
            cluster = SLURMCluster(
                **{"cores": 1, "memory": "4 GB", **options}, processes=1, n_workers=0, protocol="tls://",
                security=Security.temporary(), shared_temp_directory=private, log_directory=private,
                python=sys.executable, scheduler_options={"dashboard_address": None},
            )  # fmt: skip
            stack.enter_context(cluster)
            script = cluster.job_script()
            show(f"{workers} times by sbatch:\n{script}")
            _check_accepted(script)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"--dask-slurm {path}: {error}") from None
        cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)  # a job that ended is submitted again
        yield cluster


def _check_accepted(script: str) -> None:
    """Ask Slurm whether it accepts a job, since dask-jobqueue does not report what sbatch says."""
    words = ["sbatch", "--test-only"]
    done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise InputError(f"--dask-slurm: Slurm would not take this job: {done.stderr.strip()[-500:]}")
