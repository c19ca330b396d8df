"""What must survive: a server through 200 jobs of which every tenth goes wrong, and a machine on which we are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from m2bridge.engine import EngineInfo, ForkServerEngine, Outcome, ProcessEngine
from m2bridge.limits import Limits
from m2bridge.scripts import Script
from tests.marking import slow_except

pytestmark = pytest.mark.faults

FAILURES = {
    Outcome.SCRIPT_ERROR: ("1/0", Limits(wall_seconds=30)),
    Outcome.TIMED_OUT: ("while true do 1;", Limits(wall_seconds=0.5)),
    Outcome.CRASHED: ("recursionLimit = 10^9; f = x -> 1 + f(x+1); f 0", Limits(wall_seconds=30)),
    Outcome.TOO_MUCH_OUTPUT: (
        'while true do << "flood" << endl;',
        Limits(wall_seconds=30, output_bytes=2**20),
    ),
    Outcome.OUT_OF_MEMORY: (
        "L = new MutableList; i = 0; while true do (L#i = toList(0..1000000); i = i+1)",
        Limits(wall_seconds=30, memory_bytes=60 * 2**20),
    ),
}


def processes(mark: str) -> list[str]:
    """Return the command lines of running processes whose environment or command line contains `mark`."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            text = (directory / "cmdline").read_text()
            if text and mark in text + (directory / "environ").read_text():
                found.append(f"{directory.name} {text[:120]!r}")
        except OSError:
            continue
    return found


def leftovers(directory: Path) -> list[str]:
    """List the files below a directory, which other processes may be removing."""
    return [
        os.path.join(place, name) for place, below, files in os.walk(directory) for name in (*below, *files)
    ]


def descendants(pid: int) -> list[int]:
    """Return the running descendants of `pid`, by their current parents."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - {pid})


def wait_for_descendants(pid: int, at_least: int) -> list[int]:
    deadline = time.monotonic() + 30
    while len(below := descendants(pid)) < at_least:
        assert time.monotonic() < deadline, f"only {len(below)} processes came"
        time.sleep(0.05)
    return below


def wait_until_gone(pids: list[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(alive(pid) for pid in pids):
        time.sleep(0.02)
    return [pid for pid in pids if alive(pid)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_200_jobs_of_which_every_tenth_fails(
    engine_info: EngineInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    kinds = list(FAILURES)
    with ForkServerEngine(engine_info) as engine:
        for number in range(200):
            if number % 10 == 9:
                expected = kinds[(number // 10) % len(kinds)]
                text, limits = FAILURES[expected]
            else:
                expected, limits = Outcome.FINISHED, Limits(wall_seconds=30)
                text = f'x = {number}; R = ZZ/101[a,b]; << x^2 << " " << degree ideal(a^{number % 7 + 1}, b) << endl;'
            run = engine.run(Script(name="job", text=text), limits)
            assert run.outcome is expected, (number, run.outcome, run.stderr[-300:])
            if expected is Outcome.FINISHED:
                assert run.stdout == f"{number**2} {number % 7 + 1}\n"
            if number == 0:
                supervisor = engine.supervisor_pid
                assert supervisor is not None
            assert len(descendants(supervisor)) == 1, "a job left a process beside the warm Macaulay2"
        assert engine.supervisor_pid == supervisor, "one server served all jobs"
        below = descendants(supervisor)
    assert wait_until_gone([supervisor, *below], 2) == []
    assert leftovers(tmp_path) == []
    assert caplog.text == ""


CALLER = """
import signal, sys, threading
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it, or SIGINT
signal.signal(signal.SIGINT, signal.default_int_handler)
from m2bridge.engine import EngineInfo, ForkServerEngine, ProcessEngine
from m2bridge.limits import Limits
from m2bridge.scripts import Script
from pathlib import Path
info = EngineInfo(version="unknown", origin="option", path=Path(sys.argv[1]))
engines = [ForkServerEngine(info), ForkServerEngine(info), ProcessEngine(info)]
quick = Script(name="quick", text='<< 1 << endl;')
long = Script(name="long", text='run "sleep 7654 &"; run "setsid sleep 7655 &"; << "x" << endl << flush; while true do 1;')
def work(engine, script):
    while True:
        engine.run(script, Limits(wall_seconds=60))
for engine in engines:
    for script in (quick, long):
        threading.Thread(target=work, args=(engine, script), daemon=True).start()
print("ready", flush=True)
while True:
    threading.Event().wait(0.1)  # a signal may be delivered to another thread: look now and then
"""


def start_caller(engine_info: EngineInfo, directory: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(directory)}
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(engine_info.path)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "ready\n"
    return caller


@pytest.mark.parametrize("moment", slow_except({3, 10, 17}, range(20)))
def test_no_process_remains_2_seconds_after_sigkill(
    engine_info: EngineInfo, tmp_path: Path, moment: int
) -> None:
    delay = random.Random(moment).uniform(0.0, 2.5)
    killed_with_nothing_left(engine_info, tmp_path, delay, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_no_process_remains_after_other_signals(
    engine_info: EngineInfo, tmp_path: Path, number: signal.Signals
) -> None:
    killed_with_nothing_left(engine_info, tmp_path, 0.2, number, at_least=10)


def killed_with_nothing_left(
    info: EngineInfo, directory: Path, delay: float, number: signal.Signals, at_least: int = 0
) -> None:
    caller = start_caller(info, directory)
    time.sleep(delay)
    below = wait_for_descendants(caller.pid, at_least)
    os.killpg(caller.pid, number)
    try:
        caller.wait(10)
    finally:
        caller.kill()
    assert caller.stdout is not None
    caller.stdout.close()
    deadline = time.monotonic() + 2.0
    while (remains := what_remains(below, directory)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert remains == []


@pytest.mark.parametrize("moment", slow_except({1, 6}, range(8)))
def test_no_process_remains_when_supervisors_and_caller_are_killed(
    engine_info: EngineInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """All processes are stopped first, so that none reacts to the end of another; children are forked meanwhile."""
    caller = start_caller(engine_info, tmp_path)
    time.sleep(random.Random(moment).uniform(0.0, 4.0))
    killed: set[int] = set()
    while new := {caller.pid, *supervisors(caller.pid)} - killed:
        for pid in new:
            os.kill(pid, signal.SIGSTOP)
        killed |= new
    below = descendants(caller.pid)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    caller.wait(10)
    assert caller.stdout is not None
    caller.stdout.close()
    deadline = time.monotonic() + 5.0
    while (left := working_in(tmp_path, below)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [
        command for command in left if "sleep\0007655" not in command
    ] == []  # a script's, in a session of its own
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ProcessEngine(engine_info) as engine:  # whoever starts next finds what was left
        assert engine.run(Script(name="next", text="<< 2;")).stdout == "2"
    assert working_in(tmp_path, below) == []
    assert leftovers(tmp_path) == []


def supervisors(pid: int) -> list[int]:
    found = []
    for child in descendants(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if "/supervisor\0" in Path(f"/proc/{child}/cmdline").read_text():
                found.append(child)
    return found


def working_in(directory: Path, known: list[int]) -> list[str]:
    """Return the command lines of running processes that are listed, or that run in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            here = str((process / "cwd").readlink()).startswith(str(directory))
            if (here or int(process.name) in known) and alive(int(process.name)):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def what_remains(below: list[int], directory: Path) -> list[str]:
    """Return remaining processes (by their identifier, or by their environment if they are newer) and files."""
    known = [f"process {pid}" for pid in below if alive(pid)]
    return known + processes(str(directory)) + leftovers(directory)


def test_ctrl_c_in_a_run(engine_info: EngineInfo, tmp_path: Path) -> None:
    program = CALLER.split("def work", maxsplit=1)[0] + "print('ready', flush=True)\nengines[0].run(long)\n"
    caller = subprocess.Popen(
        [sys.executable, "-c", program, str(engine_info.path)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert caller.stdout is not None
    caller.stdout.readline()
    below = wait_for_descendants(caller.pid, 5)
    os.killpg(caller.pid, signal.SIGINT)
    _, stderr = caller.communicate(timeout=10)
    assert "KeyboardInterrupt" in stderr
    assert [pid for pid in below if alive(pid)] == []
    assert leftovers(tmp_path) == []


def test_server_killed_while_a_job_runs(engine_info: EngineInfo) -> None:
    """The job is a child of the supervisor, so it continues; the next job gets a new server."""
    with ForkServerEngine(engine_info) as engine:
        engine.run(Script(name="first", text="<< 1;"))
        supervisor = engine.supervisor_pid
        assert supervisor is not None
        server = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])

        def kill(line: str) -> None:
            os.kill(server, signal.SIGKILL)

        run = engine.run(
            Script(name="job", text='<< "on" << endl << flush; sleep 1; << "off";'), listener=kill
        )
        assert (run.outcome, run.stdout) == (Outcome.FINISHED, "on\noff")
        assert engine.run(Script(name="next", text="<< 2;")).stdout == "2"


def test_a_stuck_server_is_replaced(engine_info: EngineInfo, caplog: pytest.LogCaptureFixture) -> None:
    with ForkServerEngine(engine_info) as engine:
        engine.run(Script(name="first", text="<< 1;"))
        supervisor = engine.supervisor_pid
        assert supervisor is not None
        for pid in descendants(supervisor):
            os.kill(pid, signal.SIGSTOP)
        assert engine.run(Script(name="next", text="<< 2;")).stdout == "2"
    assert "respond" in caplog.text
    assert wait_until_gone([supervisor], 2) == []


def test_a_server_without_file_descriptors_is_replaced(engine_info: EngineInfo) -> None:
    resource = pytest.importorskip("resource")
    with ForkServerEngine(engine_info) as engine:
        engine.run(Script(name="first", text="<< 1;"))
        supervisor = engine.supervisor_pid
        assert supervisor is not None
        server = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
        resource.prlimit(server, resource.RLIMIT_NOFILE, (3, 3))
        for number in range(3):
            assert engine.run(Script(name="next", text=f"<< {number};")).stdout == str(number)
