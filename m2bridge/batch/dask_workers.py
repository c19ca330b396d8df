"""Run jobs on a Dask cluster: local processes, a scheduler at an address, or Slurm with dask-jobqueue.

Each job is one Dask task, :func:`answer`. The task starts an ``m2bridge worker`` as a child of the Dask worker, which answers
this job and ends. So m2bridge enforces the limits, and the process ends with its Dask worker. Anyone who can connect to a
scheduler can run code as its user; therefore the connection uses TLS or is local.
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

RECONNECT_TIMEOUT = 120.0
"""Seconds in which a lost scheduler must be available again, for instance after a restart."""
_CLUSTER_POLL_INTERVAL = 0.5  # seconds until a task looks again whether it was cancelled


def answer(request: dict[str, Any], engine: str | None, digest: str) -> dict[str, Any]:
    """Answer one job in a child process of this Dask worker; return its last event, with its first event as ``ready``.

    If the `digest` of the process is not that of the batch, its answers would not match the keys of the batch; the job is not
    sent. The process is killed if the job exceeds its limit or the task is cancelled, for instance because the runner has ended.
    """
    dask_worker = get_worker()
    task = dask_worker.get_current_task()
    address = dask_worker.address
    wall_seconds = request["limits"]["wall_seconds"]
    ready = None
    deadline = float("inf")
    process = CommandLauncher(engine).start(0)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                selector.select(_CLUSTER_POLL_INTERVAL)
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
                        if wall_seconds is not None:
                            deadline = time.monotonic() + wall_seconds + GRACE
                    elif event["event"] != "alive":
                        return {**event, "ready": ready, "address": address}
        return {"event": "late"}
    finally:
        process.kill()
        process.close()


class DaskLauncher:
    """Submits one Dask task at a time for each slot of a batch, to Dask workers that can answer.

    `rejected` contains the addresses of Dask workers with another version of m2bridge or Macaulay2.
    """

    def __init__(
        self, address: str, security: Security | None, engine: str | None, slots: int | None
    ) -> None:
        self.address = address
        self.engine = engine
        self._security = security
        self.rejected: set[str] = set()
        self._client = self._connect(10.0)
        self.slots = slots or max(1, sum(self._client.nthreads().values()))

    def start(self, slot: int) -> DaskHandle:
        return DaskHandle(self)

    def _connect(self, timeout: float) -> Client:
        try:
            return Client(self.address, security=self._security, timeout=timeout, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise M2BridgeError(f"no Dask scheduler at {self.address}: {error}") from None

    def submit(self, request: dict[str, Any]) -> Future:
        """Submit one job. If the scheduler was lost, wait until it is available again."""
        if self._client.status != "running":
            self.close()
            self._client = self._connect(RECONNECT_TIMEOUT)
        placement: dict[str, Any] = {}
        accepted = set(self._client.nthreads()) - self.rejected
        if self.rejected and accepted:
            # allow_other_workers lets Dask use another worker if none of these is available any more.
            placement = {"workers": sorted(accepted), "allow_other_workers": True}
        return self._client.submit(
            answer, request, self.engine, registry.digest(), pure=False, retries=0, **placement
        )

    def close(self) -> None:
        with contextlib.suppress(Exception):  # Dask may raise any exception if its scheduler has ended
            self._client.close(timeout=2)


class DaskHandle(WorkerHandle):
    """The runner's connection to one Dask task at a time; Dask chooses a worker for each task."""

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
        self.task.queued = True  # the Dask worker enforces the time limit
        self._future = self._launcher.submit(request)
        self._future.add_done_callback(self._notify)

    def _notify(self, _: Future | None = None) -> None:
        """Make the pipe readable, so that the runner's selector calls :meth:`events`."""
        with contextlib.suppress(OSError):  # the pipe was closed meanwhile
            os.write(self._writer, b".")

    def events(self) -> list[dict[str, Any]] | None:
        os.read(self._reader, 1)
        if self._future is None:
            return None
        future, self._future = self._future, None
        try:
            event = future.result(timeout=10)
        except (
            BaseException
        ) as error:  # KilledWorker, or cancelled with its scheduler, or no m2bridge on the worker
            event = {"event": "gone", "status": -9, "words": f"{type(error).__name__}: {error}"}
        if event["event"] in ("gone", "late"):
            self._status = event.get("status", -9), event.get("words", "")
            self.killed_for = "time" if event["event"] == "late" else self.killed_for
            return None
        ready = [event["ready"]] if event["ready"] is not None else []
        if event["event"] == "attempt":
            return [*ready, event]
        self._launcher.rejected.add(event["address"])
        return ready if event["event"] == "other" else [{**event, "exclude": True}]

    def _end(self) -> None:
        """Release the future. Dask then cancels the task, and :func:`answer` kills its process."""
        future, self._future = self._future, None
        if future is not None:
            future.release()
        self._notify()

    def close(self) -> tuple[int, str]:
        self._end()
        os.close(self._reader)
        os.close(self._writer)
        return self._status


# -- clusters ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(
    address: str | None, slurm: Path | None, tls_directory: Path | None, engine: str | None, workers: int | None,
    show: Callable[[str], None],
) -> Iterator[DaskLauncher]:  # fmt: skip
    """Open a launcher on ``local`` processes, on the scheduler at an address, or on Slurm; close it at the end."""
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the batch reports the errors that concern it
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
            cluster, security = None, security_of(str(address), tls_directory)
        if cluster is not None:
            address, security = cluster.scheduler_address, cluster.security
        launcher = DaskLauncher(str(address), security, engine, workers)
        yield stack.enter_context(contextlib.closing(launcher))


def security_of(address: str, tls_directory: Path | None) -> Security | None:
    """Return the certificates for the scheduler at an address: None for this machine; an InputError if they cannot be used."""
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls") or parts.hostname is None or parts.port is None:
        raise InputError(f"--dask {address!r}: write local, tcp://127.0.0.1:8786 or tls://host:8786")
    if parts.scheme == "tcp":
        with contextlib.suppress(ValueError):
            if parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname).is_loopback:
                return None
        raise InputError(
            f"--dask {address}: a scheduler on another machine requires TLS; write tls://, and --dask-tls DIR"
        )
    if tls_directory is None:
        raise InputError(f"--dask {address} requires ca.pem, cert.pem and key.pem: --dask-tls DIR")
    ca, cert, key = (tls_directory / name for name in ("ca.pem", "cert.pem", "key.pem"))
    try:
        for file in (ca, cert, key, tls_directory):
            if file in (key, tls_directory) and file.stat().st_mode & 0o077:
                raise InputError(f"--dask-tls: {file} is accessible to other users; chmod go= {file}")
            file.stat()
    except OSError as error:
        raise InputError(f"--dask-tls: {error.filename}: {error.strerror}") from None
    files = {"tls_ca_file": str(ca), "tls_client_cert": str(cert), "tls_client_key": str(key)}
    return Security(require_encryption=True, **files)


@contextlib.contextmanager
def _slurm_cluster(path: Path, workers: int, show: Callable[[str], None]) -> Iterator[Any]:
    """Open a cluster of `workers` Slurm jobs with one Dask worker each; `show` is called with the job script before submission.

    The file contains the options of ``dask_jobqueue.SLURMCluster``. The certificates of this run are written to a private
    directory that the nodes must be able to read, in ``shared_directory`` or else beside the file; it is removed at the end.
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
            show(f"submitted {workers} times with sbatch:\n{script}")
            _check_accepted(script)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"--dask-slurm {path}: {error}") from None
        cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)  # submits a job again when it has ended
        yield cluster


def _check_accepted(script: str) -> None:
    """Test whether Slurm accepts a job, because dask-jobqueue does not report the errors of sbatch."""
    words = ["sbatch", "--test-only"]
    done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise InputError(f"--dask-slurm: Slurm does not accept this job: {done.stderr.strip()[-500:]}")
