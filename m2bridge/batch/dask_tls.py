"""Batch: who may talk to a Dask cluster. Whoever reaches a scheduler may run anything in our name: TLS, or this machine alone."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from distributed import Security

from m2bridge.errors import InputError


def security_of(address: str, certificates: Path | None) -> Security | None:
    """How to talk to the scheduler at an address.

    Raises
    ------
    InputError
        The address is none, or would be talked to in the clear, or the certificates are missing or open to others.
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
            if file.name not in ("ca.pem", "cert.pem") and file.stat().st_mode & 0o077:
                raise InputError(f"--dask-tls: {file} is open to others; chmod go= {file}")
            file.stat()
    except OSError as error:
        raise InputError(f"--dask-tls: {error.filename}: {error.strerror}") from None
    return security_from(certificates)


def security_from(directory: Path) -> Security:
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
    for name, text in (
        ("ca.pem", new.tls_ca_file),
        ("cert.pem", new.tls_client_cert),
        ("key.pem", new.tls_client_key),
    ):
        file = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as writing:
            writing.write(text)
    return security_from(directory)


if __name__ == "__main__":  # python -m m2bridge.batch.dask_tls DIR
    make_certificates(Path(sys.argv[1]))
