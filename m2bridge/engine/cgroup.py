"""Engine stage: how many cores and how much memory this process may use.

A container, a batch system or systemd may allow less than the machine has. On Linux that limit stands in a control group
(cgroup), of version 1 or 2. :func:`allowed_cores` and :func:`allowed_memory` return the smallest of all limits that hold; where
no control group can be read, what the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SHARE = 0.8
"""The share of memory that computations may take; the rest is for Python, for an idle Macaulay2 and for the kernel."""


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """One mounted tree of control groups: its version, its controllers, the directories from our group up to the mount point."""

    version: int
    controllers: frozenset[str]
    groups: tuple[Path, ...]


def allowed_cores(root: Path = Path("/")) -> int:
    """The number of cores that this process may keep busy: of its CPU affinity and of every quota above it, at least 1.

    A quota of 2.5 cores gives 2, so that no computation is throttled while its clock runs.
    """
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for tree in _hierarchies(root) for quota in _limits(tree, "cpu", _quota_v1, _quota_v2)]
    return max(1, int(min([machine, *quotas])))


def allowed_memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process and its children may use together: of the machine and of every limit above it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [size for tree in _hierarchies(root) for size in _limits(tree, "memory", _memory_v1, _memory_v2)]
    return int(min([machine, *limits]))


def memory_share(parts: int = 1) -> int:
    """Bytes for each of `parts` computations side by side, so that together they leave room for the rest."""
    return int(_SHARE * allowed_memory()) // max(parts, 1)


def _limits(
    tree: _Hierarchy,
    controller: str,
    v1: Callable[[Path], float | None],
    v2: Callable[[Path], float | None],
) -> Iterator[float]:
    """The limits of one controller in a tree: those of our group and of every group above it."""
    if tree.version == 1 and controller not in tree.controllers:
        return
    read = v1 if tree.version == 1 else v2
    for group in tree.groups:
        try:
            limit = read(group)
        except (OSError, ValueError, IndexError):
            continue  # a file that is not there sets no limit
        if limit is not None and limit > 0:
            yield limit


def _quota_v1(group: Path) -> float | None:
    quota = int((group / "cpu.cfs_quota_us").read_text())
    return quota / int((group / "cpu.cfs_period_us").read_text()) if quota > 0 else None


def _quota_v2(group: Path) -> float | None:
    quota, period = (group / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _memory_v1(group: Path) -> float | None:
    return int(
        (group / "memory.limit_in_bytes").read_text()
    )  # "no limit" is a number larger than any machine


def _memory_v2(group: Path) -> float | None:
    text = (group / "memory.max").read_text().strip()
    return None if text == "max" else int(text)


def _hierarchies(root: Path) -> list[_Hierarchy]:
    """The mounted trees of control groups that this process is in.

    ``/proc/self/cgroup`` names our group in each tree; ``/proc/self/mountinfo`` says where the tree is mounted, and from which
    group on: in a container the mount point is often our own group.
    """
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return []
    ours: dict[frozenset[str], str] = {}
    for line in memberships:
        _, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        ours[frozenset(names.split(",")) - {""}] = group
    found = []
    for line in mounts:
        before, _, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if len(words) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        version = 1 if kinds[0] == "cgroup" else 2
        options = set(kinds[2].split(","))
        for controllers, group in ours.items():
            if (controllers <= options and controllers) if version == 1 else not controllers:
                groups = _groups(root / words[4].lstrip("/"), words[3], group)
                found.append(_Hierarchy(version, controllers, groups))
    return found


def _groups(mount: Path, mounted: str, ours: str) -> tuple[Path, ...]:
    """Directories from our group up to the mount point. A group outside of what is mounted leaves the mount point alone."""
    top = mounted.rstrip("/")
    below = ours[len(top) :].strip("/") if ours == top or ours.startswith(f"{top}/") else ""
    directory = mount / below if ".." not in below.split("/") else mount
    above = [directory, *directory.parents]
    return tuple(above[: above.index(mount) + 1])
