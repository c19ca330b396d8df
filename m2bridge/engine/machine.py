"""Engine stage: what this machine lets us use: cores, memory, directories, and what its processes do.

A container, a batch system or systemd may allow less than the machine has. On Linux that limit stands in a control group
(cgroup) of version 2. :func:`allowed_cores` and :func:`allowed_memory` return the smallest of all limits that hold; where
no control group can be read, what the machine has.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from m2bridge.engine.keeping.warm import children_of, state_of

_SHARE = 0.8
"""The share of memory that computations may take; the rest is for Python, for an idle Macaulay2 and for the kernel."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def allowed_cores(root: Path = Path("/")) -> int:
    """The number of cores that this process may keep busy: of its CPU affinity and of every quota above it, at least 1.

    A quota of 2.5 cores gives 2, so that no computation is throttled while its clock runs.
    """

    def quota(group: Path) -> float:
        microseconds, period = (group / "cpu.max").read_text().split()
        return int(microseconds) / int(period)

    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([machine, *_limits(root, quota)])))


def allowed_memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process and its children may use together: of the machine and of every limit above it."""

    def memory(group: Path) -> float:
        return int((group / "memory.max").read_text())

    return int(min([_PAGE * os.sysconf("SC_PHYS_PAGES"), *_limits(root, memory)]))


def memory_share(parts: int = 1) -> int:
    """Bytes for each of `parts` computations side by side, so that together they leave room for the rest."""
    return int(_SHARE * allowed_memory()) // max(parts, 1)


class Mount(NamedTuple):
    """A line of mountinfo: the directory that is mounted, where, the kind of file system, the options of both."""

    mounted: str
    point: str
    kind: str
    options: str


def mounts(mountinfo: Path) -> list[Mount]:
    """What is mounted; nothing where that cannot be read."""
    found = []
    with contextlib.suppress(OSError):
        for line in mountinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            words, kinds = before.split(), after.split()
            if len(words) > 5 and len(kinds) > 2:
                point = words[4].encode().decode("unicode_escape")
                found.append(Mount(words[3], point, kinds[0], f"{words[5]},{kinds[2]}"))
    return found


def _limits(root: Path, limit_of: Callable[[Path], float]) -> Iterator[float]:
    """The limits of our control group and of every group above it.

    ``/proc/self/cgroup`` names our group; mountinfo says where the tree is mounted, and from which group on: in a container the
    mount point is often our own group. "No limit" is the word max.
    """
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for mount in mounts(root / "proc/self/mountinfo"):
        for line in memberships:
            names, _, ours = line.partition(":")[2].partition(":")
            is_here = mount.kind == "cgroup2" and not names
            for group in _groups(root / mount.point.lstrip("/"), mount.mounted, ours) if is_here else ():
                with contextlib.suppress(OSError, ValueError):  # a file that is not there sets no limit
                    limit = limit_of(group)
                    if limit > 0:
                        yield limit


def _groups(mount: Path, mounted: str, ours: str) -> list[Path]:
    """Directories from our group up to the mount point. A group outside of what is mounted leaves the mount point alone."""
    top = mounted.rstrip("/")
    below = ours[len(top) :].strip("/") if ours == top or ours.startswith(f"{top}/") else ""
    directory = mount / below if ".." not in below.split("/") else mount
    above = [directory, *directory.parents]
    return above[: above.index(mount) + 1]


def data_directory() -> Path:
    """``$XDG_DATA_HOME/m2bridge``; without the variable the platform's usual place."""
    return _directory("XDG_DATA_HOME", "Library/Application Support", ".local/share")


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/m2bridge``; without the variable the platform's usual place."""
    return _directory("XDG_CACHE_HOME", "Library/Caches", ".cache")


def _directory(variable: str, on_macos: str, elsewhere: str) -> Path:
    named = os.environ.get(variable, "")
    usual = Path(os.path.expanduser("~")) / (on_macos if sys.platform == "darwin" else elsewhere)
    return (Path(named) if named.startswith("/") else usual) / "m2bridge"


def resident(pid: int) -> int:
    """Bytes of physical memory of one process; 0 where there is no /proc."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory, on this machine and in its control groups."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def living(pid: int) -> bool:
    """Whether a process runs; one that ended but that its parent has not asked after does not."""
    return state_of(pid) not in "ZX"


def descendants(pid: int) -> list[int]:
    """The processes below one."""
    found = queue = children_of(pid)
    while queue:
        queue = [child for parent in queue for child in children_of(parent)]
        found = found + queue
    return found


def resident_tree(pid: int) -> int:
    """Bytes of physical memory of a process and all below it; pages that they share are counted for each."""
    return resident(pid) + sum(resident(child) for child in descendants(pid))
