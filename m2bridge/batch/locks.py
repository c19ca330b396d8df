"""Batch: who is at work on what. Names enter; at most one living process holds each.

All locks of a store are bytes of one file, the byte chosen by a hash of the name, locked with the kernel's record locks. The
kernel frees them when their holder dies, however it dies: no clock, no process id and no left-over file is ever trusted, and a
million jobs need no million lock files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import struct
from pathlib import Path

from m2bridge.engine.machine import mounts
from m2bridge.errors import InputError

_FLOCK = struct.Struct("hhqqi4x")  # struct flock on 64-bit Linux
_BUSY = (errno.EACCES, errno.EAGAIN)
_BETWEEN_HOSTS = {
    "nfs": True, "nfs4": True, "lustre": True, "gpfs": True, "ceph": True, "beegfs": False, "cifs": False, "smb3": False,
    "9p": False, "fuse.sshfs": False, "fuse.glusterfs": True, "afs": False,
}  # fmt: skip
"""File systems that several hosts may share, and whether their record locks do so as they are usually mounted."""
_ONLY_HERE = re.compile(r"\b(?:nolock|localflock|noflock|local_lock=(?:all|posix))\b")
_OPEN_FILE_LOCKS = hasattr(fcntl, "F_OFD_SETLK")


class Locks:
    """Locks by name on one file; those of one object belong to it alone, and end with it or with the process."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        flags = os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT
        self._file = os.open(path, flags | os.O_CLOEXEC, 0o644)
        self._held: set[int] = set()

    def take(self, name: str) -> bool:
        """Take a lock; False when another holds it."""
        offset = _offset(name)
        if offset in self._held or not self._lock(offset, fcntl.F_WRLCK):
            return False
        self._held.add(offset)
        return True

    def release(self, name: str) -> None:
        offset = _offset(name)
        if offset in self._held:
            self._held.discard(offset)
            self._lock(offset, fcntl.F_UNLCK)

    def is_held(self, name: str) -> bool:
        """Whether a living process (or this object) holds the lock."""
        offset = _offset(name)
        if offset in self._held:
            return True
        if _OPEN_FILE_LOCKS:
            request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
            answer = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, request)
            return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
        free = self._lock(offset, fcntl.F_RDLCK)
        if free:
            self._lock(offset, fcntl.F_UNLCK)
        return not free

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)
        self._held.clear()

    def _lock(self, offset: int, kind: int) -> bool:
        try:
            if _OPEN_FILE_LOCKS:
                request = _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0)
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
            else:  # locks of the process: fine for one runner a process
                words = {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_RDLCK: fcntl.LOCK_SH}
                fcntl.lockf(self._file, words.get(kind, fcntl.LOCK_UN) | fcntl.LOCK_NB, 1, offset)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
                raise InputError(
                    "the file system of the store has no locks; use a local directory, or run one batch at a time"
                ) from None
            raise
        return True


def _offset(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def scope_of(directory: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Whether locks below a directory hold between hosts, by its file system; nothing to say about one of this machine alone."""
    here = f"{directory.resolve()}/"
    around = [mount for mount in mounts(mountinfo) if here.startswith(f"{mount.point.rstrip('/')}/")]
    mount = max(reversed(around), key=lambda mount: len(mount.point), default=None)
    if mount is None or mount.kind not in _BETWEEN_HOSTS:
        return ""
    if _ONLY_HERE.search(mount.options) or not _BETWEEN_HOSTS[mount.kind]:
        return f"do not hold between hosts ({mount.kind}): run one batch at a time, or give each its shard"
    return f"hold between hosts ({mount.kind})"
