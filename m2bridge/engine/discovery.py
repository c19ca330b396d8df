"""Find a working Macaulay2 and a working msolve.

The order of choice is: the path named by ``--engine`` or ``M2BRIDGE_M2``; ``M2`` on PATH; the PyPI wheel in the site-packages of
this Python; the Macaulay2 installed by ``m2bridge engine install`` in the user's data directory. Each candidate is tested by
running a script; one that fails is skipped, with a reason. A successful test is recorded in the user's cache and is valid while
the file is unchanged. msolve is found in the same way (variable ``M2BRIDGE_MSOLVE``); without it, Macaulay2 does its work.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from m2bridge.engine.base import EngineInfo, Outcome, Run
from m2bridge.engine.install import MACAULAY2, MSOLVE, Wheel, installed
from m2bridge.engine.machine import cache_directory
from m2bridge.engine.supervisor_process import UNKNOWN, MsolveEngine, ProcessEngine
from m2bridge.errors import InputError, NoEngineError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

VARIABLE = MACAULAY2.variable
OLDEST = (1, 21)
PROBE_LIMITS = Limits(wall_seconds=60.0, memory_bytes=None, output_bytes=2**16)
PROBE = Script(
    name="probe",
    text="""-- Tests Macaulay2: prints its version and properties of two Groebner bases.
R = ZZ/101[x,y,z];
I = ideal(x^2-y*z, y^2-x*z, z^2-x*y);
S = QQ[x,y];
J = ideal(x^2-y, x*y-1);
<< "@m2b-probe " << version#"VERSION" << " " << numcols gens gb I << " " << degree J << endl << flush;
""",
)
MSOLVE_PROBES = (
    (
        Script(name="probe", text="x,y,z\n65537\nx^2-x*y,\nx*z-x,\nx\n", arguments=("-S", "-g", "2")),
        "[1*z^1+65536,1*x^1+65536*y^1]:",
    ),
    (
        Script(name="probe", text="x,y\n0\nx^2+y^2-5,\nx*y-2\n", arguments=("-P", "2")),
        "[0,[0,2,4,['x','y'],[0,1],[1,[[4,[4,0,-5,0,1]],[3,[0,-10,0,4]],[[[3,[20,0,-8,0]],1]]]]]]:",
    ),
)
"""Tests of msolve, each with the end of its output: a saturation over a prime field, and a parametrization over QQ."""
_LONGEST_PATH = 4096  # characters, PATH_MAX of Linux
ONE_LINE = (
    "no working Macaulay2 found; install one with `m2bridge engine install` (75 MB), "
    '`pip install "m2bridge[macaulay2]"`, `apt-get install macaulay2` (Debian, Ubuntu) or '
    "`brew install Macaulay2/tap/M2` (macOS), or set its path with --engine or M2BRIDGE_M2; "
    "`m2bridge doctor` lists the candidates that were tested"
)
ADVICE = """no working Macaulay2 found. To install one, run one of:
  m2bridge engine install               download into your data directory (75 MB)
  pip install "m2bridge[macaulay2]"     the same with its dependencies (1.6 GB)
  apt-get install macaulay2             Debian, Ubuntu
  brew install Macaulay2/tap/M2         macOS
or set its path with --engine PATH or the variable M2BRIDGE_M2. `m2bridge doctor` lists the candidates that were tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible path of an engine and the result of its test: `info` if it works, else the `reason` why not."""

    path: Path
    origin: str
    program: str = MACAULAY2.program
    info: EngineInfo | None = None
    reason: str | None = None

    @property
    def works(self) -> bool:
        return self.info is not None


def candidate_paths(explicit: str | None = None, wheel: Wheel = MACAULAY2) -> Iterator[tuple[str, Path]]:
    """Yield the pairs (origin, path) to test, in the order of choice. An explicit path is the only candidate."""
    named = explicit or os.environ.get(wheel.variable)
    if named:
        yield "option", Path(shutil.which(named) or named).absolute()
        return
    on_path = shutil.which(wheel.binary.name)
    if on_path:
        yield "path", Path(on_path).absolute()
    for directory in dict.fromkeys(sysconfig.get_path(key) for key in ("platlib", "purelib")):
        binary = Path(directory) / wheel.binary
        if binary.exists():
            yield "wheel", binary
            break
    for binary in installed(wheel):
        yield "installed", binary


def origin_of(info: EngineInfo) -> str:
    """Return the origin of a Macaulay2, also if the user named it by its path."""
    return next((origin for origin, path in candidate_paths() if path.resolve() == info.path), info.origin)


def check_candidate(origin: str, path: Path, *, fresh: bool = False, wheel: Wheel = MACAULAY2) -> Candidate:
    """Test the program at `path`. Unless `fresh`, a successful test of the same file is read from the cache."""
    candidate = Candidate(path=path, origin=origin, program=wheel.program)
    try:
        real = path.resolve(strict=True)
        if not real.is_file() or not os.access(real, os.X_OK):
            return replace(candidate, reason="not an executable file")
    except (OSError, RuntimeError) as error:
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return replace(candidate, reason=message.lower())
    # Macaulay2's start script finds its libraries relative to its own path, so it must not be called through a symbolic link.
    version: str | None = None if fresh else _read_cache(real)
    reason: str | None = None
    if version is None:
        version, reason = _probe_msolve(real) if wheel is MSOLVE else _probe(real)
        if version is not None:
            _write_cache(real, version)
    info = None
    if version is not None:
        info = EngineInfo(version=version, origin=origin, path=real, program=wheel.program)
    return replace(candidate, info=info, reason=reason)


def _probe(path: Path) -> tuple[str | None, str | None]:
    """Run the test script; return the version of Macaulay2 and None, or None and the reason why it does not work."""
    run = ProcessEngine(EngineInfo(version=UNKNOWN, origin="option", path=path)).run(PROBE, PROBE_LIMITS)
    if run.outcome is not Outcome.FINISHED:
        return None, _failure_reason(run)
    answers = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("@m2b-probe ")]
    words = answers[0] if answers else []
    if len(words) != 3:
        return None, "not a Macaulay2: it ended without running the test script"
    version, gb_size, degree = words
    try:
        number = tuple(int(digits) for digits in version.split(".")[:2])
    except ValueError:
        return None, f"not a Macaulay2: unknown version {version[:40]!r}"
    if number < OLDEST:
        return None, f"version {version} is too old; 1.21 or newer is required"
    if (gb_size, degree) != ("3", "3"):
        return None, f"wrong result: a Groebner basis of {gb_size} elements and degree {degree}, not 3 and 3"
    return version, None


def _probe_msolve(path: Path) -> tuple[str | None, str | None]:
    """Run the tests of msolve; return its version and None, or None and the reason why it does not work."""
    engine = MsolveEngine(EngineInfo(version=UNKNOWN, origin="option", path=path, program=MSOLVE.program))
    for script, expected in MSOLVE_PROBES:
        run = engine.run(script, PROBE_LIMITS)
        if run.outcome is not Outcome.FINISHED:
            return None, _failure_reason(run)
        if not "".join(run.stdout.split()).endswith(expected):
            return None, f"wrong result of the test {' '.join(script.arguments)}: {run.stdout[-80:]!r}"
    version = run.engine.version
    if not re.fullmatch(r"\d+(\.\d+)+", version):
        return None, f"not an msolve: unknown version {version[:40]!r}"
    return version, None


def _failure_reason(run: Run) -> str:
    errors = [
        line for line in run.stderr.strip().splitlines() if line.strip() and "setting random seed" not in line
    ]
    detail = f" ({errors[0][:160]})" if errors else ""
    if run.outcome is Outcome.TIMED_OUT:
        return f"no response within {run.seconds:.0f} s"
    if run.outcome is Outcome.CRASHED:
        name = signal.Signals(run.signal).name if run.signal else "a signal"
        hint = ": built for another CPU" if name == "SIGILL" else ""
        return f"terminated by {name}{hint}{detail}"
    if run.outcome is Outcome.SCRIPT_ERROR:
        return f"failed with exit status {run.exit_status}{detail}"
    return f"failed the test script: {run.outcome}{detail}"


def _cache_file(path: Path) -> Path:
    """Return the cache file for the Macaulay2 at `path`.

    Its name is a hash of the metadata of the start script and of the program, so that it changes if one of them is replaced.
    """
    metadata: list[list[str | int]] = []
    for file in (path, path.with_name("M2-binary")):
        with contextlib.suppress(OSError):
            stat = file.stat()
            metadata.append([str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    metadata.append([*os.uname()[1:]])  # machines that share a home directory may not all be able to run it
    return cache_directory() / "engines" / f"{hashlib.sha256(json.dumps(metadata).encode()).hexdigest()}.json"


def _read_cache(path: Path) -> str | None:
    """Return the version of the Macaulay2 at `path` if the same file was tested successfully before."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        entry = json.loads(_cache_file(path).read_text(encoding="utf-8"))
        if entry["path"] == str(path) and isinstance(entry["version"], str):
            return str(entry["version"])
    return None


def _write_cache(path: Path, version: str) -> None:
    """Record that the Macaulay2 at `path` works. A cache that cannot be written is not an error."""
    target = _cache_file(path)
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written to a temporary directory and renamed, so that no reader sees an incomplete file.
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            temporary = Path(scratch) / "note"
            temporary.write_text(json.dumps({"path": str(path), "version": version}), encoding="utf-8")
            temporary.replace(target)


def candidates(
    explicit: str | None = None, *, fresh: bool = False, wheel: Wheel = MACAULAY2
) -> tuple[Candidate, ...]:
    """Test all candidates and return them in the order of choice (the output of `m2bridge doctor`)."""
    paths = candidate_paths(explicit, wheel)
    return tuple(check_candidate(origin, path, fresh=fresh, wheel=wheel) for origin, path in paths)


def find_msolve() -> EngineInfo | None:
    """Return the first working msolve; None if there is none."""
    for origin, path in candidate_paths(wheel=MSOLVE):
        candidate = check_candidate(origin, path, wheel=MSOLVE)
        if candidate.info is not None:
            return candidate.info
    return None


def find_engine(explicit: str | None = None) -> EngineInfo:
    """Return the first working Macaulay2.

    Raises
    ------
    InputError
        The Macaulay2 named by `explicit` does not work; no other one is tried.
    NoEngineError
        No Macaulay2 works, or the one named by ``M2BRIDGE_M2`` does not; the field ``candidates`` lists those that were tested.
    """
    if explicit is not None and ("\0" in explicit or len(explicit) > _LONGEST_PATH):
        raise InputError(f"--engine {explicit[:60]!r} is not the path of a file")
    tested: list[Candidate] = []
    for origin, path in candidate_paths(explicit):
        candidate = check_candidate(origin, path)
        if candidate.info is not None:
            return candidate.info
        tested.append(candidate)
        if origin == "option":
            if explicit:
                raise InputError(
                    f"{path} (--engine) is not a working Macaulay2: {candidate.reason}", path=path
                )
            raise NoEngineError(
                f"the variable {VARIABLE} names {path}, which is not a working Macaulay2: {candidate.reason}; "
                "set it to another path, or unset it",
                candidates=(candidate,),
            )
    skipped = "".join(f"; skipped {c.path}: {c.reason}" for c in tested)
    raise NoEngineError(ONE_LINE + skipped, candidates=tuple(tested))
