"""Limits of cores and memory by control groups, read from simulated /proc and /sys directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from m2bridge.cli.common import parse_limits
from m2bridge.engine import machine

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V2 = "31 23 0:28 {root} /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate"


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def tree(root: Path, memberships: str, mounts: list[str], files: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(memberships)
    (root / "proc/self/mountinfo").write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + "\n".join(mounts) + "\n"
    )
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_without_control_groups_the_machine_is_the_limit(tmp_path: Path) -> None:
    assert machine.allowed_cores(tmp_path) == 8
    assert machine.allowed_memory(tmp_path) == MACHINE


def test_version_2_in_a_container(tmp_path: Path) -> None:
    files = {"memory.max": str(300 << 20), "cpu.max": "250000 100000"}
    root = tree(tmp_path, "0::/\n", [V2.format(root="/")], files)
    assert machine.allowed_memory(root) == 300 << 20
    assert machine.allowed_cores(root) == 2


def test_version_2_takes_the_smallest_limit_above(tmp_path: Path) -> None:
    files = {
        "a/memory.max": str(200 << 20),
        "a/cpu.max": "max 100000",
        "a/b/memory.max": str(300 << 20),
        "a/b/cpu.max": "50000 100000",
    }
    root = tree(tmp_path, "0::/a/b\n", [V2.format(root="/")], files)
    assert machine.allowed_memory(root) == 200 << 20
    assert machine.allowed_cores(root) == 1, "half a core is still one worker"


def test_version_2_without_limits(tmp_path: Path) -> None:
    files = {"a/memory.max": "max", "a/cpu.max": "max 100000"}
    root = tree(tmp_path, "0::/a\n", [V2.format(root="/")], files)
    assert (machine.allowed_cores(root), machine.allowed_memory(root)) == (8, MACHINE)


def test_a_group_outside_of_the_mount_reads_the_mount_point(tmp_path: Path) -> None:
    files = {"memory.max": str(100 << 20)}
    root = tree(tmp_path, "0::/../../elsewhere\n", [V2.format(root="/")], files)
    assert machine.allowed_memory(root) == 100 << 20


@pytest.mark.parametrize("junk", ["", "x", "0:", "::::", "0::/\n\n4:memory"])
def test_unreadable_files_set_no_limit(tmp_path: Path, junk: str) -> None:
    root = tree(
        tmp_path, junk, ["", "a b - cgroup2", V2.format(root="/")], {"memory.max": "?", "cpu.max": "1"}
    )
    assert (machine.allowed_cores(root), machine.allowed_memory(root)) == (8, MACHINE)


def test_a_memory_limit_never_exceeds_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "allowed_memory", lambda: 1000 << 20)
    assert machine.memory_share() == 800 << 20
    assert machine.memory_share(4) == 200 << 20
    assert parse_limits("10m", "4G").memory_bytes == 800 << 20
    assert parse_limits("10m", "512M").memory_bytes == 512 << 20
    assert parse_limits("10m", "none").memory_bytes is None
