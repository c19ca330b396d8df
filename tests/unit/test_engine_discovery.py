"""The choice of a Macaulay2, and the reasons for skipping others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from m2bridge.engine import candidates, discovery, find_engine
from m2bridge.engine.install import MACAULAY2, wheel_available
from m2bridge.errors import InputError, NoEngineError

FAKE = """#!/bin/sh
echo run >> "$(dirname "$0")/count" 2>/dev/null
cat ../gate > /dev/null
echo "@m2b-probe {version} 3 3"
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Macaulay2, with its own data and cache directories."""
    for name in ("bin", "data", "cache", "site"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("M2BRIDGE_M2", raising=False)
    monkeypatch.setattr(discovery.sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    return tmp_path


def fake(path: Path, text: str = FAKE.format(version="1.24")) -> Path:
    """Write a program that answers the probe as Macaulay2 does, or the program `text`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_error_lists_ways_to_install_macaulay2() -> None:
    with pytest.raises(NoEngineError) as caught:
        find_engine()
    for way in (
        "m2bridge engine install",
        "apt-get install macaulay2",
        "brew install",
        "m2bridge[macaulay2]",
    ):
        assert way in str(caught.value)
    assert caught.value.exit_code == 4
    assert caught.value.candidates == ()


def test_order_of_choice(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = (
        machine / "data/m2bridge/engines" / f"{MACAULAY2.package}-{MACAULAY2.version}" / MACAULAY2.binary
    )
    expected = []
    for origin, path in (
        ("installed", installed),
        ("wheel", machine / "site" / MACAULAY2.binary),
        ("path", machine / "bin/M2"),
    ):
        fake(path)
        assert (find_engine().origin, find_engine().path) == (origin, path)
        expected.insert(0, origin)
    assert [candidate.origin for candidate in candidates()] == expected
    named = fake(machine / "mine/M2")
    monkeypatch.setenv("M2BRIDGE_M2", str(named))
    assert (find_engine().origin, find_engine().path) == ("option", named)
    other = fake(machine / "other/M2")
    assert find_engine(str(other)).path == other


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\nkill -ILL $$\n", "SIGILL"),
        ("#!/bin/sh\nexec /nonexistent/M2-binary\n", "not found"),
        ("#!/bin/sh\necho hello\n", "Macaulay2"),
        (FAKE.format(version="1.20.0.1"), "1.20.0.1"),
        (FAKE.format(version="banana"), "banana"),
        (FAKE.format(version="1.24").replace("3 3", "4 3"), "4 elements"),
        ("#!/nonexistent/interpreter\n", "started"),
        ("#!/bin/sh\nsleep 60\n", "response"),
    ],
)
def test_a_broken_macaulay2_is_skipped_with_a_reason(
    machine: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    limits = discovery.Limits(wall_seconds=4.0, memory_bytes=None, output_bytes=2**16)
    monkeypatch.setattr(discovery, "PROBE_LIMITS", limits)
    fake(machine / "bin/M2", text)
    good = fake(machine / "site" / MACAULAY2.binary)
    assert find_engine().path == good
    first, second = candidates()
    assert not first.works
    assert reason in (first.reason or "")
    assert second.works


@pytest.mark.parametrize("missing", [True, False])
def test_an_explicit_macaulay2_must_work(machine: Path, missing: bool) -> None:
    fake(machine / "bin/M2")
    path = machine / "mine/M2"
    if not missing:
        fake(path, "#!/bin/sh\nexit 3\n")
    with pytest.raises(InputError, match="--engine") as caught:
        find_engine(str(path))
    assert caught.value.exit_code == 2


def test_a_successful_test_is_cached_until_the_file_changes(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake(machine / "bin/M2")
    probes = []
    real = discovery._probe
    monkeypatch.setattr(discovery, "_probe", lambda where: probes.append(where) or real(where))
    for _ in range(3):
        assert find_engine().version == "1.24"
    assert len(probes) == 1
    before = path.stat()
    fake(path, FAKE.format(version="1.25"))  # the same size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # and the same time of change
    assert path.stat().st_size == before.st_size
    assert find_engine().version == "1.25"
    fake(path, "#!/bin/sh\nexit 1\n")
    with pytest.raises(NoEngineError):
        find_engine()
    assert len(probes) == 3


def test_a_damaged_cache_is_ignored(machine: Path) -> None:
    fake(machine / "bin/M2")
    find_engine()
    for file in (machine / "cache").rglob("*.json"):
        file.write_text("{")
    assert find_engine().version == "1.24"


def test_a_link_is_followed(machine: Path) -> None:
    """The wheel's start script finds its libraries relative to its own path, so it is called by its real path."""
    real = fake(machine / "elsewhere/M2")
    (machine / "bin/M2").symlink_to(real)
    assert find_engine().path == real


@pytest.mark.parametrize(
    ("system", "machine_name", "libc", "available"),
    [
        ("Linux", "x86_64", ("glibc", "2.36"), True),
        ("Linux", "aarch64", ("glibc", "2.28"), True),
        ("Linux", "x86_64", ("glibc", "2.17"), False),
        ("Linux", "x86_64", ("", ""), False),
        ("Linux", "riscv64", ("glibc", "2.36"), False),
        ("FreeBSD", "amd64", ("", ""), False),
    ],
)
def test_which_platforms_have_a_wheel(
    monkeypatch: pytest.MonkeyPatch, system: str, machine_name: str, libc: tuple[str, str], available: bool
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine_name)
    monkeypatch.setattr("platform.libc_ver", lambda: libc)
    is_available, text = wheel_available()
    assert is_available is available
    assert text
