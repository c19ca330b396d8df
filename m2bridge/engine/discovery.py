"""Engine stage: which Macaulay2 to use. Nothing but the machine enters, an :class:`EngineInfo` leaves.

The order is: the one named by ``--engine`` or ``M2BRIDGE_M2``, ``M2`` on PATH, the one of the PyPI wheel in
this Python's site-packages, the one that ``m2bridge engine install`` put into the user's data directory. Each
is proved by running it before it is used; what is broken is passed over, with a reason. Success is remembered in the user's
cache, for as long as the file stays the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from m2bridge.engine.base import EngineInfo, Outcome, Run
from m2bridge.engine.install import WHEEL_BINARY, installed
from m2bridge.engine.keeper import UNKNOWN, ProcessEngine
from m2bridge.engine.machine import cache_directory
from m2bridge.errors import InputError, NoEngineError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

VARIABLE = "M2BRIDGE_M2"
OLDEST = (1, 21)
PROBE_LIMITS = Limits(wall_seconds=60.0, memory_bytes=None, output_bytes=2**16)
PROBE = Script(
    name="probe",
    text="""-- Proves that this is a Macaulay2 that works: its version and two Groebner bases.
R = ZZ/101[x,y,z];
I = ideal(x^2-y*z, y^2-x*z, z^2-x*y);
S = QQ[x,y];
J = ideal(x^2-y, x*y-1);
<< "@m2b-probe " << version#"VERSION" << " " << numcols gens gb I << " " << degree J << endl << flush;
""",
)
_LONGEST_PATH = 4096
ONE_LINE = (
    "no working Macaulay2 was found; get one with `m2bridge engine install` (75 MB), "
    '`pip install "m2bridge[macaulay2]"`, `apt-get install macaulay2` (Debian, Ubuntu) or '
    "`brew install Macaulay2/tap/M2` (macOS), or name one with --engine or M2BRIDGE_M2; "
    "`m2bridge doctor` says what was tried"
)
ADVICE = """no working Macaulay2 was found. Any of these gives one:
  m2bridge engine install               downloads one into your data directory (75 MB)
  pip install "m2bridge[macaulay2]"     the same with its dependencies (1.6 GB)
  apt-get install macaulay2             Debian, Ubuntu
  brew install Macaulay2/tap/M2         macOS
or name one with --engine PATH or the variable M2BRIDGE_M2. `m2bridge doctor` says what was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A place where a Macaulay2 might be, and what came of running it: `info`, or the `reason` why not."""

    path: Path
    origin: str
    info: EngineInfo | None = None
    reason: str | None = None

    @property
    def works(self) -> bool:
        return self.info is not None


def places(explicit: str | None = None) -> Iterator[tuple[str, Path]]:
    """Where to look, as (origin, path), the first choice first; an explicit choice is the only one."""
    named = explicit or os.environ.get(VARIABLE)
    if named:
        yield "option", Path(shutil.which(named) or named).absolute()
        return
    on_path = shutil.which("M2")
    if on_path:
        yield "path", Path(on_path).absolute()
    for directory in dict.fromkeys(sysconfig.get_path(key) for key in ("platlib", "purelib")):
        binary = Path(directory) / WHEEL_BINARY
        if binary.exists():
            yield "wheel", binary
            break
    for binary in installed():
        yield "installed", binary


def origin_of(info: EngineInfo) -> str:
    """Where a Macaulay2 is from, also when it was named by its path."""
    return next((origin for origin, path in places() if path.resolve() == info.path), info.origin)


def prove(origin: str, path: Path, *, fresh: bool = False) -> Candidate:
    """Run the candidate, or read what came of it the last time if the file is still the same one."""
    try:
        real = path.resolve(strict=True)
        if not real.is_file() or not os.access(real, os.X_OK):
            return Candidate(path=path, origin=origin, reason="not an executable file")
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Candidate(path=path, origin=origin, reason=reason.lower())
    # Macaulay2's starter finds its libraries beside itself, so it must not be called through a symbolic link.
    version: str | None = None if fresh else _recall(real)
    why: str | None = None
    if version is None:
        version, why = _probe(real)
        if version is not None:
            _remember(real, version)
    info = EngineInfo(version=version, origin=origin, path=real) if version is not None else None
    return Candidate(path=path, origin=origin, info=info, reason=why)


def _probe(path: Path) -> tuple[str | None, str | None]:
    run = ProcessEngine(EngineInfo(version=UNKNOWN, origin="option", path=path)).run(PROBE, PROBE_LIMITS)
    if run.outcome is not Outcome.FINISHED:
        return None, _why(run)
    said = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("@m2b-probe ")]
    words = said[0] if said else []
    if len(words) != 3:
        return None, "not a Macaulay2: it ended without running the test script"
    version, gb_size, degree = words
    try:
        number = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return None, f"not a Macaulay2 that is known: it says its version is {version[:40]!r}"
    if number < OLDEST:
        return None, f"version {version} is too old; 1.21 or newer is needed"
    if (gb_size, degree) != ("3", "3"):
        wrong = f"a Groebner basis of {gb_size} elements and degree {degree}, not 3 and 3"
        return None, f"it computes wrongly: {wrong}"
    return version, None


def _why(run: Run) -> str:
    said = [
        line for line in run.stderr.strip().splitlines() if line.strip() and "setting random seed" not in line
    ]
    tail = f" ({said[0][:160]})" if said else ""
    if run.outcome is Outcome.TIMED_OUT:
        return f"it did not answer within {run.seconds:.0f} s"
    if run.outcome is Outcome.CRASHED:
        name = signal.Signals(run.signal).name if run.signal else "a signal"
        hint = ": built for another kind of CPU" if name == "SIGILL" else ""
        return f"it died of {name}{hint}{tail}"
    if run.outcome is Outcome.SCRIPT_ERROR:
        return f"it stopped with exit status {run.exit_status}{tail}"
    return f"it failed the test script: {run.outcome}{tail}"


def _note_of(path: Path) -> Path:
    """Where it is noted that a Macaulay2 works: under a hash of what tells its starter and its program from replacements."""
    parts: list[list[str | int]] = []
    for file in (path, path.with_name("M2-binary")):
        with contextlib.suppress(OSError):
            stat = file.stat()
            parts.append([str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    parts.append([*os.uname()[1:]])  # in a home directory that machines share, another one may not run it
    return cache_directory() / "engines" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.json"


def _recall(path: Path) -> str | None:
    """The version of the Macaulay2 at `path` if this very file was seen to work."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        entry = json.loads(_note_of(path).read_text(encoding="utf-8"))
        if entry["path"] == str(path) and isinstance(entry["version"], str):
            return str(entry["version"])
    return None


def _remember(path: Path, version: str) -> None:
    """Note that the Macaulay2 at `path` works; a cache that cannot be written is no error."""
    note = _note_of(path)
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=note.parent) as scratch:
            part = Path(scratch) / "note"
            part.write_text(json.dumps({"path": str(path), "version": version}), encoding="utf-8")
            part.replace(note)


def candidates(explicit: str | None = None, *, fresh: bool = False) -> tuple[Candidate, ...]:
    """Every candidate in the order of choice, each proved by running it (what `m2bridge doctor` shows)."""
    return tuple(prove(origin, path, fresh=fresh) for origin, path in places(explicit))


def find_engine(explicit: str | None = None) -> EngineInfo:
    """The first Macaulay2 that works.

    Raises
    ------
    InputError
        The Macaulay2 named by `explicit` does not work; no other is tried in its place.
    NoEngineError
        None works, or the one that ``M2BRIDGE_M2`` names does not; the field ``candidates`` says what was tried.
    """
    if explicit is not None and ("\0" in explicit or len(explicit) > _LONGEST_PATH):
        raise InputError(f"--engine {explicit[:60]!r} is not the path of a file")
    tried: list[Candidate] = []
    for origin, path in places(explicit):
        candidate = prove(origin, path)
        if candidate.info is not None:
            return candidate.info
        tried.append(candidate)
        if origin == "option":
            if explicit:
                raise InputError(
                    f"{path} (--engine) is not a Macaulay2 that works: {candidate.reason}", path=path
                )
            raise NoEngineError(
                f"the variable {VARIABLE} names {path}, which is not a Macaulay2 that works: {candidate.reason}; "
                "name another one, or unset it",
                candidates=(candidate,),
            )
    passed_over = "".join(f"; passed over {c.path}: {c.reason}" for c in tried)
    raise NoEngineError(ONE_LINE + passed_over, candidates=tuple(tried))
