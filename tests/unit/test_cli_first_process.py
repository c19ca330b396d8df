"""The first process of a container: signals are passed on, orphans waited for, the exit code is the command's.

The function is called in an ordinary process here; a child subreaper stands in for the real first process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = """
import ctypes, os, sys, time, signal
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process, as they come to the first one
from m2bridge.cli import first_process
first_process.stay_in_charge()
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers are Linux")


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("code", [0, 3, 130])
def test_the_exit_code_is_the_commands(code: int) -> None:
    process = start(f"sys.exit({code})")
    process.communicate(timeout=30)
    assert process.returncode == code


def test_a_signal_that_kills_the_command_is_told() -> None:
    process = start("os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_reach_the_command_at_once(number: signal.Signals, code: int) -> None:
    # Short naps, because a signal that comes just before a sleep begins is seen only when it ends; and a handler of its own,
    # because a caller may have started the tests with SIGINT ignored.
    process = start(
        "signal.signal(signal.SIGINT, signal.default_int_handler)\ntry:\n    print('here', flush=True)\n"
        "    while True:\n        time.sleep(0.05)\nexcept KeyboardInterrupt:\n    sys.exit(130)"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    begun = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == code
    assert time.monotonic() - begun < 2


def test_each_signal_arrives_once() -> None:
    process = start(
        "seen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\nprint('here', flush=True)\n"
        "end = time.monotonic() + 1\nwhile time.monotonic() < end: time.sleep(0.05)\nsys.exit(len(seen))"
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 1


def test_orphans_are_waited_for(tmp_path: Path) -> None:
    """An orphan that tidies up after the command, as the keeper of Macaulay2 does, is given the time."""
    mark = tmp_path / "tidied"
    process = start(
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(1)\n"
        f"    open({str(mark)!r}, 'w').close()\n    os._exit(0)\nsys.exit(0)"
    )
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert mark.exists()


def test_an_orphan_that_never_ends_does_not_hold_the_container() -> None:
    begun = time.monotonic()
    process = start(
        "pid = os.fork()\nif pid == 0:\n    os.setsid(); os.close(1); os.close(2); time.sleep(60); os._exit(0)\n"
        "print(pid, flush=True)\nsys.exit(0)"
    )
    out, _ = process.communicate(timeout=30)
    assert 4 < time.monotonic() - begun < 15
    os.kill(int(out), signal.SIGKILL)
