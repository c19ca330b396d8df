"""Both engines, on every Macaulay2: the same outcomes, limits that hold, nothing shared between jobs."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from m2bridge import protocol, scripts
from m2bridge.engine import Engine, EngineInfo, ForkServerEngine, Outcome, ProcessEngine, Run
from m2bridge.engine.helper_programs import PROGRAMS, missing_programs
from m2bridge.engine.supervisor.sandbox import LARGEST_TEMPORARY_FILE
from m2bridge.errors import EngineError, M2BridgeError, ScriptError
from m2bridge.limits import Limits
from m2bridge.scripts import Script
from tests.marking import slow_except

MB = 2**20
QUICK = Limits(wall_seconds=300, memory_bytes=600 * MB)
KINDS = {"one-shot": ProcessEngine, "fork-server": ForkServerEngine}


@pytest.fixture(scope="module", params=slow_except({"fork-server"}, KINDS))
def any_engine(request: pytest.FixtureRequest, engine_info: EngineInfo) -> Iterator[Engine]:
    with KINDS[request.param](engine_info) as engine:
        yield engine


@pytest.fixture(scope="module")
def warm(engine_info: EngineInfo) -> Iterator[ForkServerEngine]:
    with ForkServerEngine(engine_info) as engine:
        yield engine


def script(text: str, name: str = "job") -> Script:
    return Script(name=name, text=text)


def test_a_good_script_and_its_listener(any_engine: Engine) -> None:
    lines: list[tuple[str, float]] = []
    text = '<< "one" << endl << flush; sleep 1; << "two" << endl << "cut";'
    run = any_engine.run(script(text), QUICK, lambda line: lines.append((line, time.monotonic())))
    assert (run.outcome, run.exit_status, run.signal) == (Outcome.FINISHED, 0, None)
    assert run.stdout == "one\ntwo\ncut"
    assert [line for line, _ in lines] == ["one", "two"]
    assert lines[1][1] - lines[0][1] > 0.7
    assert run.peak_memory_bytes is not None
    assert 20 * MB < run.peak_memory_bytes < 600 * MB
    assert run.seconds > 1


def test_an_error_names_file_and_line(any_engine: Engine) -> None:
    run = any_engine.run(script("x = 1;\ny = x/0;\n", "division"), QUICK)
    assert run.outcome is Outcome.SCRIPT_ERROR
    with pytest.raises(ScriptError) as caught:
        protocol.read(run)
    assert (caught.value.file, caught.value.line) == ("division.m2", 2)
    assert "division by zero" in caught.value.error


def test_a_syntax_error(any_engine: Engine) -> None:
    run = any_engine.run(script("x = 1;\n(]\n"), QUICK)
    assert run.outcome is Outcome.SCRIPT_ERROR
    assert "job.m2:2" in run.stderr


def test_wall_limit(any_engine: Engine) -> None:
    wall = 5.0
    start = time.monotonic()
    text = '<< "before" << endl << flush; while true do sleep 1;'
    run = any_engine.run(script(text), Limits(wall_seconds=wall))
    assert run.outcome is Outcome.TIMED_OUT
    assert run.stdout == "before\n"
    assert wall - 0.1 < time.monotonic() - start < wall + 100


def test_cpu_limit(any_engine: Engine) -> None:
    run = any_engine.run(script("while true do 1;"), Limits(wall_seconds=300, cpu_seconds=0.8))
    assert run.outcome is Outcome.TIMED_OUT
    assert run.seconds < 200


OUT_OF_MEMORY = {
    "lists": "L = new MutableList; i = 0; while true do (L#i = toList(0..1000000); i = i+1)",
    "matrices": "L = {}; while true do L = append(L, mutableMatrix(ZZ/101, 3000, 3000))",
    "integers": "x = 2^(2^20); while true do x = x*x",
}


@pytest.mark.parametrize("what", OUT_OF_MEMORY)
def test_memory_limit(any_engine: Engine, what: str) -> None:
    run = any_engine.run(script(OUT_OF_MEMORY[what]), Limits(wall_seconds=300, memory_bytes=100 * MB))
    assert run.outcome is Outcome.OUT_OF_MEMORY, (run.outcome, run.stderr[-300:])


def test_output_limit(any_engine: Engine) -> None:
    text = '<< "first" << endl; while true do << "a line that comes again and again" << endl;'
    run = any_engine.run(script(text), Limits(wall_seconds=300, output_bytes=MB))
    assert run.outcome is Outcome.TOO_MUCH_OUTPUT
    assert run.stdout.startswith("first\n")
    assert len(run.stdout) + len(run.stderr) == MB


CRASHES = {
    "stack": "recursionLimit = 10^9; f = x -> 1 + f(x+1); f 0",
    "signal": 'for i from 1 to 9 do run("kill -SEGV " | toString processID())',
}


@pytest.mark.parametrize("how", CRASHES)
def test_a_crash(any_engine: Engine, how: str) -> None:
    run = any_engine.run(script(CRASHES[how]), QUICK)
    assert (run.outcome, run.signal) == (Outcome.CRASHED, signal.SIGSEGV)


def test_processes_of_a_script_end_with_it(any_engine: Engine) -> None:
    text = """run "sleep 4321 &"; run "setsid sh -c 'sleep 4322; echo late' &"; << "done" << endl;"""
    run = any_engine.run(script(text), QUICK)
    assert run.stdout == "done\n"
    assert not living("sleep\x004321", "sleep\x004322")


def living(*needles: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_text()
        except OSError:
            continue
        found += [text for needle in needles if needle in text]
    return found


def living_pid(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text() != ""
    except OSError:
        return False


def test_macaulay2_has_no_variable_of_the_caller(any_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    text = 'run "env"; << get "/proc/self/environ" << endl; run "ls -A"; << get "/dev/stdin" << "|" << endl;'
    run = any_engine.run(script(text), QUICK)
    assert run.outcome is Outcome.FINISHED
    assert "hunter2" not in run.stdout
    assert {"job.m2", "|"} <= set(run.stdout.split("\n")), "an empty directory, nothing on standard input"


def test_files_cannot_be_written(any_engine: Engine, tmp_path: Path) -> None:
    """Macaulay2 refuses to write; the kernel prevents a shell that it starts from writing more than empty files."""
    canary = tmp_path / "canary"
    run = any_engine.run(script(f'"{canary}" << "x" << close;'), QUICK)
    assert run.outcome is Outcome.SCRIPT_ERROR
    any_engine.run(script(f'run "echo x > {canary}"; run "echo x > here";'), QUICK)
    assert not canary.exists() or canary.read_text() == ""


WRITE_TEMPORARY = """f = temporaryFileName(); f << "text" << close; << get f << "|" << getenv "TMPDIR" << endl;
run "mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; chmod 0 $TMPDIR/a/b $TMPDIR/a";"""


@pytest.mark.parametrize("ending", ["", 'error "stopped";', "while true do 1;"])
def test_each_run_has_a_temporary_directory_that_is_emptied(any_engine: Engine, ending: str) -> None:
    """A finished, a failed and a killed run leave no file, whatever the permissions are."""
    run = any_engine.run(script(WRITE_TEMPORARY + ending), Limits(wall_seconds=20 if not ending else 5))
    written, directory = run.stdout.strip().split("|")
    assert written == "text"
    assert not [path for path in Path(directory).rglob("*") if not path.match("M2-*-*")]
    listed = any_engine.run(script('run "cd $TMPDIR && find . -type f";'), QUICK)
    assert listed.stdout == ""


def test_a_temporary_file_has_a_largest_size(any_engine: Engine) -> None:
    command = (
        "truncate -s 1G $TMPDIR/large; head -c 300000000 /dev/zero > $TMPDIR/large; stat -c %s $TMPDIR/large"
    )
    run = any_engine.run(script(f'run "{command}";'), QUICK)
    assert int(run.stdout.split()[-1]) <= LARGEST_TEMPORARY_FILE


@pytest.mark.parametrize(
    "package", ["NumericalImplicitization", "NumericalAlgebraicGeometry", "Bertini", "MonodromySolver"]
)
def test_packages_that_need_temporary_files_load(any_engine: Engine, package: str) -> None:
    run = any_engine.run(script(f'needsPackage "{package}"; << "loaded" << endl;'), Limits(wall_seconds=60))
    assert (run.outcome, run.stdout) == (Outcome.FINISHED, "loaded\n")


def test_the_programs_that_packages_need_are_searched(engine_info: EngineInfo) -> None:
    missing = missing_programs(ProcessEngine(engine_info))
    assert set(missing) <= set(PROGRAMS)
    assert ("polymake" in missing) == (shutil.which("polymake") is None)


def test_computations_that_use_threads_and_libraries(any_engine: Engine) -> None:
    """F4, resolutions, factorization and decomposition run under the limits, in a forked child too."""
    text = """R = ZZ/32003[a..d]; f = () -> ideal(a*b-c*d, a^2-b*c, b^3-d^3);
    << numcols gens gb(f(), Algorithm => LinearAlgebra) << " " << length freeResolution f() << " "
    << #decompose f() << " " << #factor(a^3-b^3) << endl;"""
    if any_engine.info.version.startswith("1.21"):
        text = text.replace("freeResolution", "res")
    run = any_engine.run(script(text), QUICK)
    assert run.outcome is Outcome.FINISHED, run.stderr
    assert len(run.stdout.split()) == 4


def test_user_scripts_have_the_packages_of_the_prompt(any_engine: Engine) -> None:
    text = 'R = ZZ/101[x,y]; << "@m2b parts " << #decompose ideal(x*y) << endl; << "@m2b-end 1" << endl;'
    assert "@m2b parts 2" in any_engine.run(script(text)).stdout


@pytest.mark.parametrize("jobs_before", range(2))
def test_required_packages_are_loaded_before_later_forks(
    engine_info: EngineInfo, caplog: pytest.LogCaptureFixture, jobs_before: int
) -> None:
    def loaded(engine: Engine, text: str) -> bool:
        run = engine.run(Script(name="job", text=text + "<< loadedPackages << endl;\n", preload=False), QUICK)
        assert run.outcome is Outcome.FINISHED, run.stderr
        return "PrimaryDecomposition" in run.stdout

    with ForkServerEngine(engine_info) as engine:
        assert not any(loaded(engine, "") for _ in range(jobs_before))
        assert loaded(engine, 'needsPackage "PrimaryDecomposition";\n')
        assert [loaded(engine, "") for _ in range(3)] == [True] * 3
    assert caplog.text == "", "the warm Macaulay2 was not started anew"


def test_a_missing_package_is_an_error_of_the_script_only(warm: ForkServerEngine) -> None:
    missing = Script(name="job", text='needsPackage "NoSuchPackage";\n', preload=False)
    assert warm.run(missing, QUICK).outcome is Outcome.SCRIPT_ERROR
    assert warm.run(script("<< 1;"), QUICK).stdout == "1"


def test_jobs_share_nothing(warm: ForkServerEngine) -> None:
    assert (
        warm.run(script("secret = 42; R = QQ[x]; << random 1000000;"), QUICK).stdout
        == warm.run(script("<< random 1000000;"), QUICK).stdout
    )
    run = warm.run(script('<< class symbol secret << " " << secret === symbol secret << endl;'), QUICK)
    assert run.stdout.endswith("true\n"), run


@pytest.mark.parametrize("name", slow_except({"dimension"}, scripts.template_names()))
def test_both_engines_give_the_same_output_for_every_template(
    engine_info: EngineInfo, warm: ForkServerEngine, name: str
) -> None:
    rendered = scripts.render(name, {})
    with ProcessEngine(engine_info) as fresh:
        one, other = (tagged(engine.run(rendered, Limits(wall_seconds=600))) for engine in (fresh, warm))
    assert one == other
    assert one[-1].startswith("@m2b-end")


def tagged(run: Run) -> list[str]:
    assert run.outcome is Outcome.FINISHED, (run.script.name, run.stderr[:300])
    return [line for line in run.stdout.split("\n") if line.startswith("@m2b")]


def test_a_server_that_ended_is_replaced_and_logged(
    warm: ForkServerEngine, caplog: pytest.LogCaptureFixture
) -> None:
    assert warm.run(script("<< 1;"), QUICK).stdout == "1"
    supervisor = warm.supervisor_pid
    server = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0]
    os.kill(int(server), signal.SIGKILL)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            assert warm.run(script(f"<< {number};"), QUICK).stdout == str(number)
    assert caplog.text.count("starting another") == 1


def test_the_server_ends_when_the_supervisor_is_killed(engine_info: EngineInfo) -> None:
    with ForkServerEngine(engine_info) as engine:
        engine.run(script("<< 1;"), QUICK)
        supervisor = engine.supervisor_pid
        assert supervisor is not None
        below = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        directory = Path(os.readlink(f"/proc/{below[0]}/cwd")).parent
        os.kill(supervisor, signal.SIGKILL)
        assert engine.run(script("<< 2;"), QUICK).stdout == "2"
        assert not any(living_pid(int(pid)) for pid in below)
        assert not directory.exists()
        assert not living(str(directory))


def test_the_supervisor_is_killed_while_processes_are_forked(engine_info: EngineInfo) -> None:
    with ForkServerEngine(engine_info) as engine:
        engine.run(script("<< 1;"), QUICK)
        supervisor = engine.supervisor_pid
        assert supervisor is not None
        server = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0]
        work = Path(os.readlink(f"/proc/{server}/cwd"))
        forking = "for i in $(seq 600); do sleep 60 & done"
        with subprocess.Popen(["sh", "-c", forking], cwd=work, start_new_session=True) as shell:
            os.kill(supervisor, signal.SIGKILL)
            try:
                assert engine.run(script("<< 2;"), QUICK).stdout == "2"
                assert at_work_in(work.parent) == []
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)


def at_work_in(directory: Path) -> list[str]:
    """Return the processes whose working directory is, or was, below `directory`."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"{directory}/"):
                found.append(link.parent.name)
    return found


def test_recycling(engine_info: EngineInfo) -> None:
    with ForkServerEngine(engine_info, recycle_after=2) as engine:
        supervisors = []
        for _ in range(3):
            assert engine.run(script("<< 1;"), QUICK).stdout == "1"
            supervisors.append(engine.supervisor_pid)
    assert supervisors[0] == supervisors[1] != supervisors[2]


def test_one_engine_from_many_threads(warm: ForkServerEngine) -> None:
    with ThreadPoolExecutor(8) as threads:
        runs = list(threads.map(lambda n: warm.run(script(f"<< {n}^2;"), QUICK), range(40)))
    assert [run.stdout for run in runs] == [str(n**2) for n in range(40)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_one_engine_in_worker_processes(engine_info: EngineInfo, method: str) -> None:
    with ForkServerEngine(engine_info) as pool:
        assert pool.run(script("<< 1;"), QUICK).stdout == "1"
        context = multiprocessing.get_context(method)
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=_in_worker, args=(pool, send))
        worker.start()
        assert receive.recv() == "7"
        worker.join(20)
        assert worker.exitcode == 0
        assert pool.run(script("<< 2;"), QUICK).stdout == "2"
        assert pickle.loads(pickle.dumps(pool)).info == pool.info


def _in_worker(pool: ForkServerEngine, send: object) -> None:
    with pool:
        send.send(pool.run(script("<< 7;"), QUICK).stdout)  # type: ignore[attr-defined]


def test_closing_stops_the_running_job_and_rejects_waiting_ones(engine_info: EngineInfo) -> None:
    pool = ForkServerEngine(engine_info)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            pool.run(script('<< "on" << endl << flush; while true do 1;'), QUICK, lambda _: begun.set())
        except BaseException as error:
            errors.append(error)

    begun = threading.Event()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    time.sleep(0.2)
    pool.close()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 3
    assert sum(isinstance(error, EngineError) for error in errors) == 1
    assert all(isinstance(error, M2BridgeError) for error in errors)
    with pytest.raises(M2BridgeError):
        pool.run(script("<< 1;"), QUICK)


def test_a_listener_that_raises_ends_the_job(any_engine: Engine) -> None:
    def refuse(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match="one"):
        any_engine.run(script('<< "one" << endl << flush; sleep 4323;'), QUICK, refuse)
    assert any_engine.run(script("<< 5;"), QUICK).stdout == "5"
