"""Batch: the Dask clusters that a batch can run on: local processes, a scheduler at an address, Slurm by dask-jobqueue.

Whoever reaches a scheduler may run anything in our name: so it is TLS, or this machine alone.
``python -m m2bridge.batch.dask_clusters DIR`` writes a new key and certificate into a private directory.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import LocalCluster, Security

from m2bridge.batch.dask_launcher import DaskLauncher
from m2bridge.engine.machine import allowed_cores
from m2bridge.errors import InputError
from m2bridge.models.spec import suggestion

_OPTIONS: dict[str, type] = {
    "queue": str, "account": str, "walltime": str, "cores": int, "memory": str, "interface": str,
    "job_extra_directives": list, "job_script_prologue": list, "shared_directory": str,
}  # fmt: skip


@contextlib.contextmanager
def opened(
    address: str | None,
    slurm: Path | None,
    certificates: Path | None,
    engine: str | None,
    workers: int | None,
    show: Callable[[str], None],
) -> Iterator[DaskLauncher]:
    """A launcher on ``local`` processes, on the scheduler at an address, or on Slurm by dask-jobqueue; closed in the end."""
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by the batch
    with contextlib.ExitStack() as stack, dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = None
        if slurm is not None:
            workers = workers or 1
            cluster = stack.enter_context(slurm_cluster(slurm, workers, show))
        elif address == "local":
            workers = workers or allowed_cores()
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None, security=True,
                    host="127.0.0.1", memory_limit=None,
                )
            )  # fmt: skip
        if cluster is None:
            assert address is not None
            launcher = DaskLauncher(address, security_of(address, certificates), engine, workers)
        else:
            launcher = DaskLauncher(cluster.scheduler_address, cluster.security, engine, workers, cluster)
        yield stack.enter_context(contextlib.closing(launcher))


# -- certificates ------------------------------------------------------------------------------------------------


def security_of(address: str, certificates: Path | None) -> Security | None:
    """How to talk to the scheduler at an address; an InputError when the address is none, would be talked to in the clear, or
    the certificates are missing or open to others.
    """
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
    try:
        for file in (certificates, *(certificates / name for name in ("ca.pem", "cert.pem", "key.pem"))):
            if file.stat().st_mode & 0o077 and file.name not in ("ca.pem", "cert.pem"):
                raise InputError(f"--dask-tls: {file} is open to others; chmod go= {file}")
    except OSError as error:
        raise InputError(f"--dask-tls: {error.filename}: {error.strerror}") from None
    return _security_from(certificates)


def _security_from(directory: Path) -> Security:
    """One key and certificate for every part of a cluster."""
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    return Security(
        require_encryption=True, tls_ca_file=str(directory / "ca.pem"),
        tls_client_cert=cert, tls_client_key=key, tls_worker_cert=cert, tls_worker_key=key,
        tls_scheduler_cert=cert, tls_scheduler_key=key,
    )  # fmt: skip


def make_certificates(directory: Path) -> Security:
    """Write a new key and certificate into a private directory, for one run."""
    new = Security.temporary()
    texts = {"ca.pem": new.tls_ca_file, "cert.pem": new.tls_client_cert, "key.pem": new.tls_client_key}
    for name, text in texts.items():
        file = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as writing:
            writing.write(text)
    return _security_from(directory)


# -- Slurm -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def slurm_cluster(path: Path, workers: int, show: Callable[[str], None]) -> Iterator[Any]:
    """A cluster of `workers` Slurm jobs, one Dask worker each. `show` is given the job script before anything is submitted.

    The scheduler runs here. Everything is TLS, by certificates made for this run in a private directory that the nodes see, and
    removed with it.
    """
    options = options_of(path)
    shared = Path(options.pop("shared_directory", path.resolve().parent)).expanduser()
    try:
        private = Path(tempfile.mkdtemp(prefix=".m2bridge-dask-", dir=shared))  # mode 0700
    except OSError as error:
        raise InputError(f"{path}: shared_directory {shared}: {error.strerror}") from None
    from dask_jobqueue import SLURMCluster

    try:
        cluster = SLURMCluster(
            **{"cores": 1, "memory": "4 GB", **options}, processes=1, n_workers=0, security=make_certificates(private),
            protocol="tls://", log_directory=str(private / "log"),
            python=sys.executable, scheduler_options={"dashboard_address": None},
        )  # fmt: skip
        with cluster:
            show(f"{workers} times by sbatch:\n{cluster.job_script()}")
            _try(cluster.job_script())
            cluster.scale(jobs=workers)
            yield cluster
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _try(script: str) -> None:
    """Ask Slurm whether it would take a job, for what sbatch says later is not heard."""
    try:
        done = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"--dask-slurm: sbatch cannot be used: {error}") from None
    if done.returncode:
        raise InputError(f"--dask-slurm: Slurm would not take this job: {done.stderr.strip()[-500:]}")


def options_of(path: Path) -> dict[str, Any]:
    """The options in a configuration file; an InputError when it cannot be read, or an option is unknown or of the wrong kind."""
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--dask-slurm {path}: {why}") from None
    for name, value in options.items():
        if name not in _OPTIONS:
            known = suggestion(name, sorted(_OPTIONS))
            raise InputError(f"--dask-slurm {path}: there is no option {name!r}; {known}")
        if type(value) is not _OPTIONS[name]:
            raise InputError(f"--dask-slurm {path}: {name} cannot be {value!r}")
    return options


if __name__ == "__main__":
    make_certificates(Path(sys.argv[1]))
