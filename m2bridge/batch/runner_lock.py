"""The lock of a runner on its store.

A runner of a whole job file holds an exclusive lock on ``DIR/lock``. Runners of shards hold a shared lock on it, and each holds
an exclusive lock on its file, such as ``DIR/shards/2-of-8``. Shards of the same number n are disjoint, so no two runners work
on the same job. The kernel releases the locks when a process ends, for whatever reason; the files remain and have no meaning
without a lock.

The locks are those of ``flock``. On NFS they are valid between hosts, unless it is mounted with ``local_lock``; Lustre requires
the mount option ``flock``.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path

from m2bridge.errors import InputError

WHOLE = "all"
"""The name of the runner of a whole job file; the name of a shard is for example ``2-of-8``."""
_ATTEMPTS = 10  # times to lock a file that another runner may remove in between
_RETRY_INTERVAL = 0.05
"""Locking is tried several times, because :func:`is_held` holds the lock for a short time."""


class RunnerLock:
    """The locks of one runner, held until :meth:`release` or the end of the process."""

    def __init__(self, directory: Path, name: str) -> None:
        self._files: list[int] = []
        try:
            if name == WHOLE:
                self._take(directory / "lock", fcntl.LOCK_EX)
            else:
                (directory / "shards").mkdir(exist_ok=True)
                self._take(directory / "lock", fcntl.LOCK_SH)
                self._take(directory / "shards" / name, fcntl.LOCK_EX)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path, kind: int) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._files.append(file)
        for _ in range(_ATTEMPTS):
            if _flock(file, kind):
                break
            time.sleep(_RETRY_INTERVAL)
        else:
            holder = os.pread(file, 200, 0).decode("utf-8", "replace").strip()
            raise InputError(
                f"another batch is running in this store ({holder or 'on another host'}); wait for its end, or run both "
                "with --shard 1/2 and --shard 2/2"
            )
        if kind == fcntl.LOCK_EX:
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode(), 0)

    def release(self) -> None:
        """Release the locks. The files are kept, because another runner may be opening them."""
        for file in self._files:
            os.close(file)
        self._files.clear()


def is_held(directory: Path, name: str) -> bool:
    """Return whether a runner of this name is running."""
    path = directory / "lock" if name == WHOLE else directory / "shards" / name
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _flock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def _flock(file: int, kind: int) -> bool:
    """Try to lock a file; return whether the lock was obtained."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise InputError(
                "the file system of the store does not support locks (flock); use another directory"
            ) from None
        raise
    return True
