"""Processes in /proc, and the temporary directory of a supervisor. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

HAS_CHILDREN_FILES = Path(f"/proc/self/task/{os.getpid()}/children").exists()
"""Whether the kernel lists the children of each thread in /proc (CONFIG_PROC_CHILDREN)."""


def children_of(pid: int) -> list[int]:
    """Return the children of a process, of all its threads.

    If the kernel lists children, those of one thread are in the order in which they were forked.
    """
    children: list[int] = []
    if not HAS_CHILDREN_FILES:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                if parent == pid:
                    children.append(int(stat.parent.name))
        return children
    tasks: list[str] = []
    with contextlib.suppress(OSError):  # the process has ended
        tasks = os.listdir(f"/proc/{pid}/task")
    for task in tasks:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
            children += map(int, file.read().split())
    return children


def state_of(pid: int) -> str:
    """Return the state letter of a process (see proc(5): S for sleeping, T for stopped); Z if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def kill_processes_in(directory: Path) -> int:
    """Kill the processes whose working directory is below `directory`; return their number."""
    count = 0
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"{directory}/"):
                os.kill(int(link.parent.name), signal.SIGKILL)
                count += 1
    return count


def remove_directory(directory: Path, timeout: float = 5.0) -> None:
    """Kill the processes that run in the directory of a killed supervisor, and remove the directory."""
    deadline = time.monotonic() + timeout
    # Repeat until no process is left: a process that was forked during the search is found by the next one.
    while kill_processes_in(directory) and time.monotonic() < deadline:
        time.sleep(0.001)
    with contextlib.suppress(OSError):
        empty_directory(directory)
    shutil.rmtree(directory, ignore_errors=True)


def empty_directory(directory: Path, keep: str = "") -> None:
    """Remove everything in a directory except subdirectories that match the pattern `keep`, whatever their permissions are.

    Raises
    ------
    NotADirectoryError
        The path is a symbolic link, whose target may belong to something else.
    """
    if directory.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    directory.chmod(0o700)
    for path, names, _ in os.walk(directory):
        for subdirectory in (os.path.join(path, name) for name in names):
            if not os.path.islink(subdirectory):
                os.chmod(subdirectory, 0o700)
    for entry in list(directory.iterdir()):
        if not entry.is_dir() or entry.is_symlink():
            entry.unlink()
        elif not (keep and entry.match(keep)):
            shutil.rmtree(entry, ignore_errors=True)


def create_locked_directory() -> tuple[Path, int]:
    """Create a temporary directory and lock it; return it with the file descriptor of the lock.

    The kernel releases the lock when this process ends. Directories of earlier supervisors that are not locked any more are
    removed; symbolic links and directories of other users are not touched. The name contains the host, because on some network
    file systems a lock is visible on one host only.
    """
    prefix = f"m2bridge-{os.uname().nodename}-"
    for stale in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            lock = os.open(stale, _OPEN_DIRECTORY)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_directory(stale)
            finally:
                os.close(lock)
    while True:
        directory = Path(tempfile.mkdtemp(prefix=prefix))
        # Another supervisor may remove the directory before it is locked; then create another one.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(directory, _OPEN_DIRECTORY)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if directory.exists():
                return directory, lock
            os.close(lock)
