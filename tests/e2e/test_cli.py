"""The whole command with the real Macaulay2, as a person or a program runs it: pipes, widths, limits, records, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from m2bridge import records
from m2bridge.engine import find_engine
from m2bridge.report.readable_script import readable
from m2bridge.schemas import schema
from tests.running import PATIENCE

LAYER = ("singular-locus", "--d", "2", "--dp", "1")


def command(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "m2bridge", *arguments],
        cwd=cwd,
        env=clean(environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def clean(environment: dict[str, str]) -> dict[str, str]:
    dropped = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "M2BRIDGE_DEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, **environment}


@pytest.fixture(scope="module")
def answered(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run with --json, --save and --keep."""
    home = tmp_path_factory.mktemp("answered")
    (home / "records").mkdir()
    (home / "kept").mkdir()
    return command(*LAYER, "--json", "--save", "records", "--keep", "kept", cwd=home), home


def test_json_is_one_document_and_nothing_else(
    answered: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, _ = answered
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)  # json.loads refuses anything after the document
    assert done.stdout.startswith("{\n")
    assert done.stdout.endswith("}\n")
    assert document["agreement"] is True  # by the singular scheme, and by orbits
    # Proposition A.5 and Corollary 3.3: 40 = 2 C(6,3) cubics, 6 Segre coordinates, dimension 5; the resultant, degree 4
    assert (document["ambient_dim"], document["span_dim"], document["image_dim"]) == (40, 6, 5)
    assert (document["codim"], document["degree"], document["generators"]) == (1, 4, {"4": 1})
    assert (document["singular_dim"], document["singular_degree"]) == (4, 3)
    assert [s["verdict"] for s in document["strata"]] == ["singular", "singular", "singular", "smooth"]
    assert document["theorem"]["applies"] is document["theorem"]["agrees"] is True


def test_the_document_fits_its_schema_and_a_damaged_one_does_not(
    answered: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    document = json.loads(answered[0].stdout)
    validator = jsonschema.Draft202012Validator(schema("singular-locus"))
    validator.validate(document)
    for field in document:
        assert not validator.is_valid({key: value for key, value in document.items() if key != field}), field
    for stratum in document["strata"]:
        del stratum["verdict"]
    assert not validator.is_valid(document)


def test_the_saved_record_is_the_document_and_loads_back(
    answered: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, home = answered
    (path,) = (home / "records").glob("*.json")
    assert json.loads(path.read_text()) == json.loads(done.stdout)
    result = records.load(path)
    assert json.loads(records.dumps(records.to_document(result))) == json.loads(done.stdout)
    assert done.stderr == f"record: records/{path.name}\n"
    assert str(home) not in path.read_text()  # no machine path in a record
    assert str(find_engine().path) not in path.read_text()


def test_scripts_and_raw_output_are_kept_and_run_again_by_hand(
    answered: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, home = answered
    used = json.loads(done.stdout)["scripts"]
    names = sorted(path.name for path in (home / "kept").iterdir())
    assert names == sorted(
        f"{s['name']}-{s['sha256'][:12]}.{suffix}" for s in used for suffix in ("err", "m2", "out")
    )
    *heading, by_hand = command(*LAYER, "--script", cwd=home).stdout.split("\n", 4)
    assert all(line.startswith("-- ") for line in heading)
    (same,) = [path for path in (home / "kept").glob("*.m2") if readable(path.read_text()) == by_hand]
    script = home / "by_hand.m2"
    script.write_text(by_hand)
    run = [str(find_engine().path), "--script", str(script)]
    again = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert tagged(again.stdout) == tagged(same.with_suffix(".out").read_text())
    assert any(line.startswith("@m2b singular_components") for line in tagged(again.stdout))


def tagged(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("@m2b")]


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="pipe"),
        pytest.param({"NO_COLOR": "1", "TERM": "xterm-256color"}, id="NO_COLOR", marks=pytest.mark.slow),
    ],
)
def test_a_pipe_gets_plain_text_of_80_columns(tmp_path: Path, environment: dict[str, str]) -> None:
    done = command(*LAYER, cwd=tmp_path, COLUMNS="80", **environment)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    too_long = [line for line in done.stdout.splitlines() if len(line.rstrip()) > 80]
    assert all("http" in line or "z0" in line for line in too_long), too_long
    text = " ".join(done.stdout.split())
    for words in ("dimension 40", "dimension 5", "degree 4", "codimension 1", "singular", "smooth", "agrees",
                  "witnesses agree", "proved", "Macaulay2", "p=32003", "seed=0"):  # fmt: skip
        assert words in text or words.replace("dimension 5", "5 (affine)") in text, words


@pytest.mark.slow
def test_all_the_evidence_fits_in_a_pipe_too(tmp_path: Path) -> None:
    done = command(*LAYER, "--a", "1", "--evidence", cwd=tmp_path, COLUMNS="80")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 80
    assert "coordinates minus the rank of the Jacobian of the equations" in " ".join(done.stdout.split())


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m m2bridge {' '.join(LAYER)} --script | head -n 1"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout.startswith("-- ")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_time_limit_prints_a_partial_answer(tmp_path: Path) -> None:
    done = command(*LAYER, "--timeout", "0.05", "--json", cwd=tmp_path)
    assert done.returncode == 5
    assert re.fullmatch(r".*\b0\.05 s.*\n", done.stderr)
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema("singular-locus")).validate(document)
    assert document["limit"]
    assert document["image_dim"] == 5
    assert document["codim"] is None
    assert document["agreement"] is not False
    for_people = command(*LAYER, "--timeout", "0.05", cwd=tmp_path)
    assert for_people.returncode == 5
    assert "singular locus" in for_people.stdout
    assert "Traceback" not in for_people.stderr


def test_no_engine_is_exit_code_4(tmp_path: Path) -> None:
    """An empty PATH, no wheel in site-packages and an empty data directory."""
    program = (
        "import sysconfig, sys; from m2bridge.cli import main; sysconfig.get_path = lambda _: sys.argv[1]; "
        "sys.exit(main(sys.argv[2:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *LAYER],
        env=clean(
            {"PATH": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "M2BRIDGE_M2": ""}
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for way in ("m2bridge engine install", "pip install", "apt-get install", "--engine", "M2BRIDGE_M2"):
        assert way in done.stderr


def descendants(pid: int) -> set[int]:
    """Processes below `pid`, from /proc."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), set()).add(int(entry.name))
    found, waiting = set(), [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def arguments_of(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("to_all", [False, True], ids=["command", "terminal"])
def test_an_interrupt_leaves_no_process_and_no_record(tmp_path: Path, to_all: bool) -> None:
    """SIGINT while the script runs in Macaulay2: to the command alone, and to its whole group as a terminal's Ctrl-C does."""
    (tmp_path / "records").mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "m2bridge",
            "singular-locus",
            "--d",
            "3",
            "--dp",
            "1",
            "--json",
            "--save",
            "records",
        ],
        cwd=tmp_path,
        env=clean({"TMPDIR": str(temporary)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        started: set[int] = set()
        running = False
        deadline = time.monotonic() + 120
        while not running and time.monotonic() < deadline and process.poll() is None:
            started |= descendants(process.pid)
            handed_over = any(temporary.glob("*/work/*.m2"))
            running = handed_over and any("m2bridgeScript" in arguments_of(pid) for pid in started)
            time.sleep(0.01)
        assert process.poll() is None, "the command ended before it could be interrupted"
        assert running, "no Macaulay2 with the script was seen"
        time.sleep(1)  # it starts, and takes the script
        if to_all:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        started |= descendants(process.pid)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == ""
    assert err == "m2bridge: interrupted\n"
    assert not list((tmp_path / "records").iterdir())
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in started if alive(pid)]
