"""The temporary directories of supervisors: stale ones are removed, and nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from m2bridge.engine.supervisor import processes

STALE = f"m2bridge-{os.uname().nodename}-abc"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def create_and_unlock() -> Path:
    directory, lock = processes.create_locked_directory()
    os.close(lock)
    return directory


def test_a_stale_directory_is_removed(temporary: Path) -> None:
    (temporary / STALE / "work").mkdir(parents=True)
    directory = create_and_unlock()
    assert list(temporary.iterdir()) == [directory]


def test_a_symbolic_link_is_not_followed(temporary: Path) -> None:
    target = temporary / "target"
    target.mkdir()
    (target / "file").write_text("kept")
    (temporary / STALE).symlink_to(target)
    create_and_unlock()
    assert (target / "file").read_text() == "kept"
    with pytest.raises(NotADirectoryError):
        processes.empty_directory(temporary / STALE)
    assert (target / "file").read_text() == "kept"


def test_a_directory_of_another_user_is_kept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / STALE).mkdir()
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    create_and_unlock()
    assert (temporary / STALE).is_dir()


def test_no_descriptor_is_left_of_a_directory_that_was_removed(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another supervisor removes the first directory after it is opened and before it is locked."""
    removed: list[int] = []

    def flock(descriptor: int, _: int) -> None:
        if not removed:
            (created,) = temporary.iterdir()
            created.rmdir()
            removed.append(descriptor)

    monkeypatch.setattr(processes.fcntl, "flock", flock)
    descriptors = len(os.listdir("/proc/self/fd"))
    directory, lock = processes.create_locked_directory()
    assert directory.is_dir()
    assert removed
    os.close(lock)
    assert len(os.listdir("/proc/self/fd")) == descriptors
