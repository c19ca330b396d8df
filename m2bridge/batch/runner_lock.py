"""Batch: the lock that a runner holds on its store while it lives.

A runner of a whole job file holds ``DIR/lock`` alone. Runners of shards hold it together, and each holds ``DIR/shards/2-of-8``
alone: shards of one number are disjoint, so no two runners work on the same job. The kernel releases the locks when their
holder dies, however it dies; a file that is left behind means nothing.

The locks are those of ``flock``. On NFS they hold between hosts, unless it is mounted with ``local_lock``; Lustre needs
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
"""The name of the runner of a whole job file; that of a shard is written ``2-of-8``."""
_TRIES, _PAUSE = 10, 0.05
"""A reader that asks whether a runner lives holds the lock for a moment: so it is tried again."""


class RunnerLock:
    """The locks of one runner, until :meth:`release` or the end of the process."""

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
        for _ in range(_TRIES):
            if _flock(file, kind):
                break
            time.sleep(_PAUSE)
        else:
            holder = os.pread(file, 200, 0).decode("utf-8", "replace").strip()
            raise InputError(
                f"another batch runs in this store ({holder or 'on another host'}); wait for its end, or give each its "
                "--shard: 1/2, 2/2"
            )
        if kind == fcntl.LOCK_EX:
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode(), 0)

    def release(self) -> None:
        """Release the locks; the files stay, since removing them would race with a runner that opens them."""
        for file in self._files:
            os.close(file)
        self._files.clear()


def is_held(directory: Path, name: str) -> bool:
    """Tell whether a living runner has this name."""
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
    """Take a lock if it is free."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise InputError(
                "the file system of the store has no locks (flock); use another directory"
            ) from None
        raise
    return True
