"""Batch: a Dask cluster on Slurm, by dask-jobqueue. A configuration enters; a cluster whose jobs are submitted leaves."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from m2bridge.batch.dask_tls import make_certificates
from m2bridge.errors import InputError
from m2bridge.models.spec import suggestion

_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "queue": str, "account": str, "walltime": str, "cores": int, "memory": str, "interface": str,
    "job_extra_directives": list, "job_script_prologue": list, "shared_directory": str,
}  # fmt: skip


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
    """The options in a configuration file, which has no others.

    Raises
    ------
    InputError
        The file cannot be read, or an option is unknown or of the wrong kind.
    """
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--dask-slurm {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"--dask-slurm {path}: {error}") from None
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InputError(
                f"--dask-slurm {path}: there is no option {name!r}; {suggestion(name, sorted(_OPTIONS))}"
            )
        if not isinstance(value, _OPTIONS[name]) or isinstance(value, bool):
            raise InputError(f"--dask-slurm {path}: {name} cannot be {value!r}")
    return options
