"""Engine stage: remembers which Macaulay2 worked, so that a command need not try it again. Paths enter,
versions leave.

Only success is remembered, under a key made of the starter script and the program beside it: path, size, time
of change and inode. A replaced file has another key; a broken engine is tried anew each time. Anything wrong
with the cache means that the engine is tried.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

from m2bridge.engine.places import cache_directory


def _key(path: Path) -> str:
    parts = []
    for file in (path, path.with_name("M2-binary")):
        try:
            stat = file.stat()
        except OSError:
            continue
        parts.append([str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    # Another kernel, machine or CPU may not run what the last one ran (a home directory shared by several).
    parts.append([*os.uname()[1:]])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file(path: Path) -> Path:
    return cache_directory() / "engines" / f"{_key(path)}.json"


def recall(path: Path) -> str | None:
    """The version of the Macaulay2 at `path` if this very file was seen to work."""
    try:
        entry = json.loads(_file(path).read_text(encoding="utf-8"))
        if entry["path"] == str(path) and isinstance(entry["version"], str):
            return str(entry["version"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def remember(path: Path, version: str) -> None:
    """Note that the Macaulay2 at `path` works; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        file = _file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:
                json.dump({"path": str(path), "version": version}, stream)
            Path(temporary).replace(file)
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def forget(path: Path) -> None:
    """Drop what is known about the Macaulay2 at `path`."""
    with contextlib.suppress(OSError):
        _file(path).unlink(missing_ok=True)
