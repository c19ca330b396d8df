"""What a batch met on its weekends: each of these stopped one, or put something false into its store."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.store import Store, encode
from m2bridge.engine import EngineInfo, ForkServerEngine, Outcome, ProcessEngine, Run, find_engine, machine
from m2bridge.engine.install import installed
from m2bridge.limits import Limits
from m2bridge.scripts import Script
from tests.running import run_command

pytestmark = pytest.mark.faults

COMMAND = str(Path(sys.executable).with_name("m2bridge"))
JOBS = '[[grid]]\nanalysis = "dimension"\nmodel = "lightning"\nd = 2\ndp = [1, 2]\na = "1..d"\nseed = "1..{seeds}"\n'
PLUGIN = '''
"""Jobs that sleep, or allocate as much memory as their options state."""
import time
from dataclasses import dataclass
from typing import ClassVar, Literal
from m2bridge.families import Model
from m2bridge.questions.kernel import Context, question
from m2bridge.certainty import Certainty
from m2bridge.results import Result
from m2bridge.scripts import Script

@dataclass(frozen=True, slots=True, kw_only=True)
class Hoard(Result):
    ANALYSIS: ClassVar[str] = "hoard"
    VERSION: ClassVar[int] = 1

@question(asks="Hoards as it is told.")
def hoard(context: Context, model: Model, *, seconds: float = 0.0,
          act: Literal["none", "touch", "wrapped", "thread"] = "none") -> Hoard:
    context.run_script(Script(name="hoard", text='<< "@m2b-end 0" << endl;'))
    time.sleep(seconds)
    kept = []
    while act == "touch":
        kept.append(b"x" * 2**22)
    if act == "wrapped":
        try:
            while True:
                kept.append(bytearray(2**24))
        except MemoryError as error:
            raise RuntimeError("the library gave up") from error
    if act == "thread":
        raise RuntimeError("can't start new thread")
    return context.build_result(Hoard, model=model.spec, certainty=Certainty.PROVED)
'''


@pytest.fixture(scope="module", autouse=True)
def _orphans_come_to_us() -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "hoard_plugin.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plugins"))
    monkeypatch.setenv("M2BRIDGE_PLUGINS", "hoard_plugin")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def start(jobs: Path, store: Path, *options: str, **more: Any) -> subprocess.Popen[str]:
    words = [COMMAND, "batch", str(jobs), "--store", str(store), "--workers", "2", *options]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def finish(jobs: Path, store: Path, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    with start(jobs, store, *options, **more) as process:
        out, err = process.communicate(timeout=180)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def all_records(store: Path) -> list[dict[str, Any]]:
    opened = Store.open(store)
    return [record for key in opened.all_keys() if (record := opened.read(key)) is not None]


def outcomes(store: Path) -> set[str]:
    return {record["outcome"] for record in all_records(store)}


def wait_for_records(store: Path, count: int, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while len(list(store.glob("records/*/*.json"))) < count:
        assert time.monotonic() < deadline, f"no {count} records after {seconds} s"
        time.sleep(0.02)


def kill_below(process: subprocess.Popen[str], word: str) -> int:
    """Kill the processes below a batch whose command line has a word; how many there were."""
    found = 0
    for pid in machine.descendants(process.pid):
        try:
            if word in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
                found += 1
        except OSError:
            continue
    return found


def wrapper(path: Path, engine: Path) -> Path:
    """A Macaulay2 that can be taken away: a script that starts the real one."""
    fresh = path.with_suffix(".new")
    fresh.write_text(f'#!/bin/sh\nexec "{engine}" "$@"\n')
    fresh.chmod(0o755)
    return fresh.replace(path)


@pytest.fixture
def real() -> Path:
    path = find_engine().path
    assert path is not None
    return path


@pytest.fixture
def other(real: Path) -> Path:
    """A Macaulay2 of another version."""
    ours = find_engine().version
    named = [Path(p) for p in os.environ.get("M2BRIDGE_TEST_ENGINES", "").split(os.pathsep) if p]
    for path in (*named, *installed(), Path("/usr/bin/M2")):
        if path.exists() and path != real and find_engine(str(path)).version != ours:
            return path
    pytest.skip("there is one version of Macaulay2 here only")


# -- survive -------------------------------------------------------------------------------------------------


def test_nohup(tmp_path: Path) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=30)), tmp_path / "store"
    process = start(jobs, store, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for_records(store, 3)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert len(all_records(store)) == 120


def test_an_engine_that_is_removed_stops_the_batch_and_nothing_false_is_recorded(
    tmp_path: Path, real: Path
) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=100)), tmp_path / "store"
    engine = wrapper(tmp_path / "M2", real)
    process = start(jobs, store, "--engine", str(engine))
    wait_for_records(store, 5)
    engine.unlink()
    while process.poll() is None and len(all_records(store)) < 400:
        kill_below(process, "supervisor")
        time.sleep(0.2)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err
    assert "recorded" in err
    assert outcomes(store) == {"complete"}
    assert len(all_records(store)) < 400
    wrapper(engine, real)
    assert finish(jobs, store, "--engine", str(engine)).returncode == 0
    assert len(all_records(store)) == 400


def test_an_engine_that_computes_no_more_is_no_property_of_a_job(tmp_path: Path, real: Path) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=100)), tmp_path / "store"
    engine = wrapper(tmp_path / "M2", real)
    process = start(jobs, store, "--engine", str(engine))
    wait_for_records(store, 5)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nkill -SEGV $$\n")
    broken.chmod(0o755)
    broken.replace(engine)
    while process.poll() is None and len(all_records(store)) < 400:
        kill_below(process, "supervisor")
        time.sleep(0.2)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err
    assert outcomes(store) == {"complete"}


def test_an_engine_replaced_by_another_version_answers_nothing(
    tmp_path: Path, real: Path, other: Path
) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=100)), tmp_path / "store"
    engine = wrapper(tmp_path / "M2", real)
    process = start(jobs, store, "--engine", str(engine))
    wait_for_records(store, 5)
    wrapper(engine, other)
    while process.poll() is None and len(all_records(store)) < 400:
        kill_below(process, "supervisor")
        time.sleep(4)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err
    assert "version" in err
    found = all_records(store)
    assert {record["question"]["engine_version"] for record in found} == {find_engine(str(real)).version}
    assert {record["outcome"] for record in found} == {"complete"}


def test_another_macaulay2_on_the_path_is_not_used_in_mid_run(
    tmp_path: Path, real: Path, other: Path
) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=60)), tmp_path / "store"
    (tmp_path / "bin").mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    process = start(jobs, store, env=environment)
    wait_for_records(store, 5)
    wrapper(tmp_path / "bin" / "M2", other)
    for worker in machine.descendants(process.pid)[:1]:
        os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert len(all_records(store)) == 240


def test_a_template_edited_in_mid_run_answers_nothing(tmp_path: Path) -> None:
    import m2bridge

    package = Path(m2bridge.__file__).parent
    copy = tmp_path / "copy"
    shutil.copytree(package, copy / "m2bridge", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package.parent / "m2_templates", copy / "m2_templates")
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=60)), tmp_path / "store"
    process = start(jobs, store, env=environment)
    wait_for_records(store, 5)
    for template in (copy / "m2_templates").glob("*.m2.j2"):
        template.write_text(template.read_text() + "\n-- edited\n")
    for worker in machine.descendants(process.pid)[:1]:
        os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=180)
    assert process.returncode in (0, 1), err
    clean = tmp_path / "clean"
    assert finish(jobs, clean).returncode == 0
    expected = {record["key"]: record["result"]["scripts"] for record in all_records(clean)}
    found = {record["key"]: record["result"]["scripts"] for record in all_records(store)}
    assert len(found) >= 5
    wrong = [key for key in found if _hashes(found[key]) != _hashes(expected.get(key, []))]
    assert wrong == [], f"{len(wrong)} of {len(found)} records hold answers of another script"


def _hashes(scripts: list[dict[str, Any]]) -> list[str]:
    return [script["sha256"] for script in scripts]


def test_a_record_without_its_job_is_damaged_and_no_more(tmp_path: Path) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=1)), tmp_path / "store"
    assert finish(jobs, store).returncode == 0
    paths = sorted(store.glob("records/*/*.json"))
    record = json.loads(paths[0].read_text())
    for name in ("sha256", "job"):
        del record[name]
    paths[0].write_bytes(encode(record))
    deep = {**json.loads(paths[1].read_text()), "result": "@"}
    del deep["sha256"]
    text = encode(deep)
    paths[1].write_bytes(_with_checksum(text.replace(b'"@"', b"[" * 100_000 + b"]" * 100_000)))
    for command in (["results"], ["status"]):
        shown = subprocess.run([COMMAND, *command, str(store)], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, (command, shown.stderr)
        assert "Traceback" not in shown.stderr
    done = finish(jobs, store)
    assert done.returncode == 0, done.stderr
    assert len(all_records(store)) == 4
    assert len(list((store / "damaged").iterdir())) == 2


def _with_checksum(data: bytes) -> bytes:
    import hashlib

    rest = data.split(b"\n", 1)[1]
    return b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest


@pytest.mark.parametrize(
    "limited",
    [
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); "
        "kept = [os.open('/dev/null', os.O_RDONLY) for _ in range(2000)]",
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); resource.setrlimit(resource.RLIMIT_CPU, (60, 60))",
    ],
    ids=["two thousand open files", "less memory and time than the default limits"],
)
def test_a_caller_may_pass_other_limits(limited: str, engine_info: EngineInfo) -> None:
    program = f"""
import os, resource, sys
from pathlib import Path
from m2bridge.engine import EngineInfo, ForkServerEngine, ProcessEngine
from m2bridge.limits import Limits
from m2bridge.scripts import Script
{limited}
info = EngineInfo(version=sys.argv[2], origin="option", path=Path(sys.argv[1]))
for kind in (ProcessEngine, ForkServerEngine):
    with kind(info) as engine:
        print(engine.run(Script(name="two", text="<< 1+1;"), Limits(wall_seconds=60, cpu_seconds=90)).stdout)
"""
    words = [sys.executable, "-c", program, str(engine_info.path), engine_info.version]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == ["2", "2"], done.stderr


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group with 1.5 GB of memory, of version 1 or 2."""
    base = next((p for p in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if p.is_dir()), None)
    group = (base or Path("/nonexistent")) / f"m2bridge-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        limit = next(
            (group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()),
            None,
        )
        if limit is None:
            pytest.skip("no control group with a memory limit can be made here")
        limit.write_text(str(1536 * 2**20))
        yield group
    finally:
        deadline = time.monotonic() + 10
        while group.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                group.rmdir()
            time.sleep(0.05)


def inside(group: Path) -> Any:
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


def test_limits_fit_into_the_control_group(tmp_path: Path, small_group: Path) -> None:
    if not (small_group / "memory.max").exists():
        pytest.skip("control groups have version 1 here; m2bridge reads those of version 2")
    jobs = written(tmp_path / "jobs.toml", JOBS.format(seeds=1))
    words = [COMMAND, "batch", str(jobs), "--dry-run", "--json", "--workers", "2"]
    done = run_command(words, preexec_fn=inside(small_group))
    limits = {task["limits"]["memory_bytes"] for task in json.loads(done.stdout)["to_run"]}
    assert max(limits) <= 768 * 2**20


@pytest.mark.usefixtures("plugin")
def test_python_that_the_kernel_kills_for_want_of_memory_is_no_crash(
    tmp_path: Path, small_group: Path
) -> None:
    text = '[[job]]\nanalysis = "hoard"\nspec = "lightning(d=2,dp=1)"\nact = "touch"\nmemory = "none"\n'
    jobs, store = written(tmp_path / "jobs.toml", text), tmp_path / "store"
    done = finish(jobs, store, preexec_fn=inside(small_group))
    assert done.returncode == 5, done.stderr
    (record,) = all_records(store)
    assert record["outcome"] == "out-of-memory", record
    assert len(record["attempts"]) == 1


@pytest.mark.usefixtures("plugin")
def test_a_memory_error_of_python_is_not_a_crash(tmp_path: Path) -> None:
    start_of_job = '[[job]]\nanalysis = "hoard"\nspec = "lightning(d=2,dp=1)"\nmemory = "300M"\n'
    text = "".join(f'{start_of_job}act = "{act}"\n' for act in ("touch", "wrapped", "thread"))
    jobs, store = written(tmp_path / "jobs.toml", text), tmp_path / "store"
    done = finish(jobs, store)
    assert done.returncode == 5, done.stderr
    assert {r["job"]["parameters"]["act"]: r["outcome"] for r in all_records(store)} == dict.fromkeys(
        ("touch", "wrapped", "thread"), "out-of-memory"
    )


def command_of(pid: int) -> str:
    """The command line of a process; nothing for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("kind", [ProcessEngine, ForkServerEngine])
def test_limits_hold_when_the_supervisor_is_stopped(engine_info: EngineInfo, kind: Any) -> None:
    found: list[Run] = []
    script = Script(name="job", text='<< "on" << endl << flush; while true do sleep 1;')
    before = set(machine.descendants(os.getpid()))
    begun = threading.Event()

    def work() -> None:
        with kind(engine_info) as engine:
            found.append(engine.run(script, Limits(wall_seconds=15), lambda _: begun.set()))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(60)
    supervisors = [
        pid for pid in set(machine.descendants(os.getpid())) - before if "supervisor" in command_of(pid)
    ]
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    thread.join(60)
    hanging = thread.is_alive()
    for pid in supervisors if hanging else ():
        os.kill(pid, signal.SIGCONT)
    assert supervisors
    assert not hanging
    assert found[0].outcome is Outcome.TIMED_OUT


def test_a_macaulay2_that_cannot_start_did_not_die_of_a_signal(tmp_path: Path) -> None:
    info = EngineInfo(version="1.21", origin="option", path=tmp_path / "gone")
    for kind in (ProcessEngine, ForkServerEngine):
        with kind(info) as engine:
            run = engine.run(Script(name="job", text="<< 1;"), Limits(wall_seconds=60))
        assert (run.began, run.signal) == (False, None)
        assert "started" in run.stderr


@pytest.mark.parametrize("what", ["template", "batch"])
def test_as_the_first_process_of_a_container_sigterm_is_heard(tmp_path: Path, what: str) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-pf", "true"], check=False).returncode:
        pytest.skip("no namespace of processes can be made here")
    text = 'n = 1;\n--% include "_params.m2.j2"\nwhile true do sleep 1;\n'
    endless = written(tmp_path / "endless.m2.j2", text)
    jobs = written(tmp_path / "jobs.toml", JOBS.format(seeds=1000))
    words = {
        "template": ["template", str(endless)],
        "batch": ["batch", str(jobs), "--store", str(tmp_path / "s")],
    }
    unshare = ["unshare", "--pid", "--fork", "--kill-child", COMMAND, *words[what]]
    process = subprocess.Popen(unshare, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(6)
    (first,) = machine.descendants(process.pid)[:1]
    os.kill(first, signal.SIGTERM)
    try:
        process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("SIGTERM was not heard")


def test_forked_copies_that_share_an_engine_do_not_hang(engine_info: EngineInfo) -> None:
    program = """
import os, sys, threading
from pathlib import Path
from m2bridge.engine import EngineInfo, ForkServerEngine, ProcessEngine
from m2bridge.limits import Limits
from m2bridge.scripts import Script
info = EngineInfo(version=sys.argv[2], origin="option", path=Path(sys.argv[1]))
shared, fresh = ForkServerEngine(info), ProcessEngine(info)
quick = Script(name="quick", text="<< 1+1;")
stop = threading.Event()
def work(engine):
    while not stop.is_set():
        engine.run(quick, Limits(wall_seconds=60))
threads = [threading.Thread(target=work, args=(engine,)) for engine in (shared, shared, fresh, fresh)]
for thread in threads:
    thread.start()
children = []
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if shared.run(quick, Limits(wall_seconds=60)).stdout == "2" else 1)
    children.append(pid)
codes = [os.waitpid(pid, 0)[1] for pid in children]
stop.set()
for thread in threads:
    thread.join()
shared.close()
print(codes)
"""
    words = [sys.executable, "-c", program, str(engine_info.path), engine_info.version]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=150)
    except subprocess.TimeoutExpired:
        for pid in (*machine.descendants(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        pytest.fail("a forked copy hangs")
    assert out.split() == str([0] * 12).split(), err


def test_a_process_forked_while_an_engine_starts_does_not_block(engine_info: EngineInfo) -> None:
    """Such a copy holds the pipe by which the start of a process is heard of, for as long as the copy lives."""
    program = """
import os, signal, sys, threading, time
from pathlib import Path
from m2bridge.engine import EngineInfo, ProcessEngine
from m2bridge.limits import Limits
from m2bridge.scripts import Script
real, calls = os.pipe, []
def forking():
    if os.fork() == 0:
        time.sleep(100)
        os._exit(0)
def pipe():
    ends = real()
    calls.append(ends)
    if len(calls) == 3:
        thread = threading.Thread(target=forking)
        thread.start()
        thread.join(1)
    return ends
os.pipe = pipe
info = EngineInfo(version=sys.argv[2], origin="option", path=Path(sys.argv[1]))
run = ProcessEngine(info).run(Script(name="job", text="<< 1+1;"), Limits(wall_seconds=300))
print(run.stdout, len(calls), flush=True)
os.killpg(0, signal.SIGKILL)
"""
    words = [sys.executable, "-c", program, str(engine_info.path), engine_info.version]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    timer = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        assert process.stdout.readline().split()[:1] == ["2"]
    finally:
        timer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_blanks_in_a_job_file_take_no_time(tmp_path: Path) -> None:
    for blanks, rest in ((2_000, ""), (1_900, ".."), (1_900, "1..")):
        value = " " * blanks + rest
        text = f'[[grid]]\nanalysis = "dimension"\nmodel = "lightning"\nd = "{value}"\ndp = 1\n'
        jobs = written(tmp_path / "jobs.toml", text)
        done = subprocess.run(
            [COMMAND, "batch", str(jobs), "--dry-run"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
        assert done.returncode == 2
        assert "grid[0].d" in done.stderr


def test_one_bad_node_is_excluded_and_the_batch_goes_on(tmp_path: Path, real: Path) -> None:
    import m2bridge
    from m2bridge.batch.display import Display
    from m2bridge.batch.launchers import CommandLauncher

    class Nodes:
        """Of two nodes one has no Macaulay2, another's templates differ; the third is slow to start."""

        def __init__(self) -> None:
            stale = written(tmp_path / "stale.py", STALE)
            wait = f'while [ ! -e "{tmp_path}/go" ]; do sleep 0.1; done; exec "$@"'
            self._launchers = [
                CommandLauncher(str(real), prefix=("sh", "-c", wait, "sh")),
                CommandLauncher(str(tmp_path / "nothing"), prefix=("env", "A=1")),
                CommandLauncher(
                    str(real), prefix=("env", f"PYTHONPATH={stale.parent}", "M2BRIDGE_PLUGINS=stale")
                ),
            ]

        def start(self, place: int) -> Any:
            return self._launchers[place].start(place)

    class Watching(Display):
        """Lets the third node begin when the others are excluded: it alone would have answered everything before."""

        def update(self, state: Any) -> None:
            if len(state.excluded) == 2:
                (tmp_path / "go").touch()

    jobs = {"grid": [{"analysis": "dimension", "model": "lightning", "d": 2, "dp": 1, "seed": "1..20"}]}
    done = m2bridge.run_batch(jobs, tmp_path / "store", workers=3, launcher=Nodes(), display=Watching())
    assert done.outcomes == {"complete": 20}
    assert len(done.state.excluded) == 2
    assert any("plugins" in why for why in done.state.excluded)


STALE = '"""A plugin that the runner does not have."""\n'


# -- safe ----------------------------------------------------------------------------------------------------


def test_a_template_runs_nothing_in_python(tmp_path: Path) -> None:
    attack = "@{ ''.__class__.__mro__[1].__subclasses__()|length }@"
    popen = "@{ lipsum.__globals__['os'].popen('echo RAN$((40+2))').read() }@"
    for text in (attack, popen):
        template = written(
            tmp_path / "own.m2.j2",
            f'n = 1;\n--% include "_params.m2.j2"\n-- {text}\n<< "@m2b-end 0" << endl;\n',
        )
        done = subprocess.run(
            [COMMAND, "template", str(template)], capture_output=True, text=True, check=False
        )
        direct = subprocess.run(
            [sys.executable, "-c", f"from pathlib import Path; from m2bridge.scripts import render\n"
             f"print(render(Path({str(template)!r}), {{}}).text)"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "RAN42" not in done.stdout + direct.stdout
        assert direct.returncode != 0
        assert "unsafe" in direct.stderr


def test_workers_import_nothing_from_where_they_are_started(tmp_path: Path) -> None:
    written(tmp_path / "jinja2.py", "open('pwned', 'w').close()\nraise SystemExit(9)\n")
    jobs = written(tmp_path / "jobs.toml", JOBS.format(seeds=1))
    done = finish(jobs, tmp_path / "store", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()


SECRET = "M2BRIDGE_TEST_SECRET"


def test_a_script_cannot_read_the_environment_of_the_command(tmp_path: Path) -> None:
    """The command is the grandparent of the process that tries; a template of one's own may say anything."""
    spy = "for p in /proc/[0-9]*; do tr '\\\\000' ' ' < $p/environ; done 2>/dev/null | grep -c hunter2"
    text = f'n = 1;\n--% include "_params.m2.j2"\nrun "{spy}";\n<< "@m2b-end 0" << endl;\n'
    template = written(tmp_path / "own.m2.j2", text)
    environment = {**os.environ, SECRET: "hunter2"}
    words = [COMMAND, "template", str(template), "--keep", str(tmp_path / "kept")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = "".join(path.read_text() for path in (tmp_path / "kept").iterdir() if "out" in path.name)
    assert said.split("\n")[0] == "0", said


def test_a_command_of_any_user_hides_its_environment() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    program = """
import os
from m2bridge.engine.supervisor.sandbox import hide_environment
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for hidden in (False, True):
    hide_environment(hidden)
    if os.fork() == 0:
        try:
            print(len(open(f"/proc/{os.getppid()}/environ").read()) > 0, flush=True)
        except OSError as error:
            print(type(error).__name__, flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "PermissionError"], done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    ],
    ids=["udp", "unix", "tcp6"],
)
def test_a_script_has_no_sockets(engine_info: EngineInfo, code: str) -> None:
    from m2bridge.engine.supervisor.sandbox import measured

    if not measured().get("seccomp_on"):
        pytest.skip("the kernel has no seccomp filters")
    text = f'run "{sys.executable} -c \'import socket; {code}; print(42)\'"; << "done" << endl;'
    for kind in (ProcessEngine, ForkServerEngine):
        with kind(engine_info) as engine:
            run = engine.run(Script(name="sockets", text=text), Limits(wall_seconds=60))
        assert run.stdout == "done\n"
        assert "PermissionError" in run.stderr


def test_landlock_is_used_if_the_kernel_supports_it() -> None:
    done = run_command([COMMAND, "doctor", "--json"])
    sandbox = json.loads(done.stdout)["sandbox"]
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(444, None, 0, 1)
    assert sandbox["landlock"] == max(version, 0)
    if version >= 1:
        assert sandbox["landlock_on"]
        assert sandbox["files_cannot_be_written"]
    assert sandbox["environment_hidden"]
    shown = run_command([COMMAND, "doctor"])
    assert "sandbox:" in shown.stdout


def test_escape_sequences_in_records_are_shown(tmp_path: Path) -> None:
    jobs, store = written(tmp_path / "jobs.toml", JOBS.format(seeds=1)), tmp_path / "store"
    assert finish(jobs, store).returncode == 0
    path = sorted(store.glob("records/*/*.json"))[0]
    record = json.loads(path.read_text())
    del record["sha256"]
    record |= {"outcome": "crashed", "message": "\x1b]0;owned\x07\x9b31m red"}
    path.write_bytes(encode(record))
    for form in ("table", "csv", "json"):
        words = [COMMAND, "results", str(store), "--format", form, "--columns", "model,message"]
        shown = run_command(words).stdout
        assert not {"\x1b", "\x07", "\x9b"} & set(shown), form
        assert "owned" in shown
