"""Cores, memory and directories that this process may use, and the memory use of processes.

A container, a batch system or systemd may allow less than the machine has. On Linux such a limit is set in a control group
(cgroup version 2). :func:`allowed_cores` and :func:`allowed_memory` return the smallest limit that applies. If no control group
can be read, they return the resources of the machine.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from m2bridge.engine.supervisor.processes import children_of, state_of

_SHARE_OF_MEMORY = 0.8
"""The share of the memory for computations; the rest is for Python, an idle Macaulay2 and the kernel."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def allowed_cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use: the minimum of its CPU affinity and all quotas, at least 1.

    Quotas are rounded down (2.5 cores give 2), so that computations with a time limit are not throttled.
    """

    def quota(group: Path) -> float:
        microseconds, period = (group / "cpu.max").read_text().split()
        return int(microseconds) / int(period)

    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([machine, *_limits(root, quota)])))


def allowed_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process and its children may use: the minimum of the machine and all limits."""

    def memory(group: Path) -> float:
        return int((group / "memory.max").read_text())

    return int(min([_PAGE * os.sysconf("SC_PHYS_PAGES"), *_limits(root, memory)]))


def memory_share(computations: int = 1) -> int:
    """Return the bytes for each of several simultaneous computations, which together use _SHARE_OF_MEMORY of the memory."""
    return int(_SHARE_OF_MEMORY * allowed_memory()) // max(computations, 1)


def _limits(root: Path, limit_of: Callable[[Path], float]) -> Iterator[float]:
    """Yield the limits of the control group of this process and of all groups above it.

    ``/proc/self/cgroup`` contains the name of the group. The word ``max`` in a file means no limit.
    """
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for point, mounted in _mounted_trees(root / "proc/self/mountinfo"):
        for line in memberships:
            controllers, _, group_name = line.partition(":")[2].partition(":")
            if controllers:
                continue
            for group in _groups(root / point.lstrip("/"), mounted, group_name):
                with contextlib.suppress(OSError, ValueError):  # a missing file sets no limit
                    limit = limit_of(group)
                    if limit > 0:
                        yield limit


def _mounted_trees(mountinfo: Path) -> Iterator[tuple[str, str]]:
    """Yield the mount points of trees of control groups, each with the group at its root.

    In a container this is often the group of this process.
    """
    with contextlib.suppress(OSError):
        for line in mountinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            before, _, kind = line.partition(" - ")
            words = before.split()
            if kind.startswith("cgroup2 ") and len(words) > 4:
                yield words[4].encode().decode("unicode_escape"), words[3]


def _groups(mount: Path, mounted: str, group_name: str) -> list[Path]:
    """Return the directories from the group up to the mount point; only the mount point if the group is outside of the mount."""
    top = mounted.rstrip("/")
    relative = group_name[len(top) :].strip("/") if f"{group_name}/".startswith(f"{top}/") else ""
    directory = mount / relative if ".." not in relative.split("/") else mount
    ancestors = [directory, *directory.parents]
    return ancestors[: ancestors.index(mount) + 1]


def data_directory() -> Path:
    """Return ``$XDG_DATA_HOME/m2bridge``, or the default data directory of the platform without the variable."""
    return _directory("XDG_DATA_HOME", "Library/Application Support", ".local/share")


def cache_directory() -> Path:
    """Return ``$XDG_CACHE_HOME/m2bridge``, or the default cache directory of the platform without the variable."""
    return _directory("XDG_CACHE_HOME", "Library/Caches", ".cache")


def _directory(variable: str, on_macos: str, elsewhere: str) -> Path:
    value = os.environ.get(variable, "")
    default = Path(os.path.expanduser("~")) / (on_macos if sys.platform == "darwin" else elsewhere)
    return (Path(value) if value.startswith("/") else default) / "m2bridge"


def resident(pid: int) -> int:
    """Return the bytes of physical memory of a process; 0 without /proc."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def oom_kills() -> int:
    """Return the number of processes that the kernel has killed because memory was exhausted, since the machine started."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def living(pid: int) -> bool:
    """Return whether a process is running; a zombie, which has ended but was not waited for, is not."""
    return state_of(pid) not in "ZX"


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    generation = children_of(pid)
    result = list(generation)
    while generation:
        generation = [child for parent in generation for child in children_of(parent)]
        result += generation
    return result


def resident_tree(pid: int) -> int:
    """Return the bytes of physical memory of a process and its descendants. Shared pages are counted for each process."""
    return resident(pid) + sum(resident(child) for child in descendants(pid))
