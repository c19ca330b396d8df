"""Batch: which processes live and how much memory they use, read from /proc; none and zero where there is none."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from m2bridge.engine.keeping.warm import children_of, state_of

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> int:
    """Bytes of physical memory of one process."""
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
    found: list[int] = []
    queue = [pid]
    while queue:
        children = children_of(queue.pop())
        found += children
        queue += children
    return found


def resident_tree(pid: int) -> int:
    """Bytes of physical memory of a process and all below it; pages that they share are counted for each."""
    return resident(pid) + sum(resident(child) for child in descendants(pid))
