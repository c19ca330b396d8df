"""Install Macaulay2 from a PyPI wheel into the user's data directory, list installed ones, and remove them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from m2bridge.engine.machine import data_directory
from m2bridge.errors import M2BridgeError, NoEngineError

PYTHON = sys.executable
PACKAGE, VERSION = "passagemath-macaulay2", "10.8.11"
HASHES = (
    "9df2ca62b716efa5a2abb9a8afbb658020f7ea2137294e27662f61e86dcf2d97",  # Linux x86_64, Python 3.11
    "5bf65d0f2107fce438828ce27179c5bcea45ae51d04e48a9f19ff68782f5d80b",  # and newer
    "9a52a733bccc83aa852fe772db8afacba2b8b5264fb225facc39f1341f4d3111",  # Linux aarch64
    "60fb5be759a96c8eb9832d5567f1ab0b628c982e4a95ff0629cb884412cfb0aa",
    "557a3643329d3643649aa29546f0a47c8373bd97399d46c121da1097e001e808",  # macOS x86_64
    "e0d57ebef262138c50530e4877abfbd3f3642371c1cdc1b40a0dc6b1e53a4030",
    "8fa6d8587820e715a13fc172f64b249c7ec398c720c7d2bb3791bbc9fa6979e9",  # macOS arm64
    "4f50dc700443877c20b36de9cbec6ab04c52d338910c3a81c8c77c3d5235f964",
)
"""The sha256 of each wheel of this version on PyPI; pip rejects any other file."""
WHEEL_BINARY = Path("sage_wheels/bin/M2")
PLATFORMS = "Linux x86_64 and aarch64 with glibc 2.28 or newer, macOS 13 or newer on x86_64 and arm64"
OTHER_WAYS = "other ways: apt-get install macaulay2, or brew install Macaulay2/tap/M2"

Progress = Callable[[str], None]


def engines_directory() -> Path:
    """Return the directory of installed engines, which has a subdirectory for each version of the wheel."""
    return data_directory() / "engines"


def installed() -> tuple[Path, ...]:
    """Return the installed executables, the pinned version first. They are not tested."""
    binaries = sorted(engines_directory().glob(f"{PACKAGE}-*/{WHEEL_BINARY}"), reverse=True)
    return tuple(sorted(binaries, key=lambda binary: VERSION not in str(binary)))


def wheel_available() -> tuple[bool, str]:
    """Return whether PyPI has a wheel for this platform, with the name of the wheel or the reason."""
    machine, system = platform.machine().lower(), platform.system()
    if system == "Linux":
        libc, release = platform.libc_ver()
        if machine not in ("x86_64", "aarch64"):
            return False, f"there is no wheel for Linux on {machine}; there are wheels for {PLATFORMS}"
        if libc != "glibc" or tuple(int(n) for n in release.split(".")[:2]) < (2, 28):
            here = f"{libc or 'another libc'} {release}".strip()
            return False, f"the wheel requires glibc 2.28 or newer; this system has {here}"
        return True, f"{PACKAGE} {VERSION} for Linux {machine}"
    if system == "Darwin":
        release = platform.mac_ver()[0]
        if int(release.split(".")[0] or 0) < 13:
            return False, f"the wheel requires macOS 13 or newer; this system has {release}"
        return True, f"{PACKAGE} {VERSION} for macOS {machine}"
    return False, f"there is no wheel for {system}; there are wheels for {PLATFORMS}"


def install(progress: Progress = lambda _: None, *, again: bool = False) -> Path:
    """Download the pinned wheel without its dependencies, unpack it and test it; return the path of its M2.

    An installed Macaulay2 that works is not changed, unless `again`. A new one is moved to its final directory only after a
    successful test.

    Raises
    ------
    NoEngineError
        There is no wheel for this platform, the download failed, or the downloaded Macaulay2 does not run.
    """
    from m2bridge.engine.discovery import check_candidate

    target = engines_directory() / f"{PACKAGE}-{VERSION}"
    if not again and (target / WHEEL_BINARY).exists():
        candidate = check_candidate("installed", target / WHEEL_BINARY, fresh=True)
        if candidate.works:
            progress(f"Macaulay2 {candidate.info and candidate.info.version} is already installed")
            return target / WHEEL_BINARY
        progress(f"the installed Macaulay2 does not work ({candidate.reason}); installing it again")
    available, reason = wheel_available()
    if not available:
        raise NoEngineError(f"{reason}; {OTHER_WAYS}", candidates=())
    try:
        engines_directory().mkdir(parents=True, exist_ok=True)
        with _scratch() as name:
            scratch = Path(name)
            wheel = _download(scratch, progress)
            progress(f"unpacking {wheel.stat().st_size >> 20} MB")
            _unpack(wheel, scratch / "engine")
            progress("testing Macaulay2")
            _tested_version(scratch / "engine", "downloaded")
            if target.exists():
                os.rename(target, scratch / "old")
            os.rename(scratch / "engine", target)
    except OSError as error:
        raise M2BridgeError(f"the engine cannot be installed in {engines_directory()}: {error}") from error
    progress(f"Macaulay2 {_tested_version(target, 'installed')} is installed in {target}")
    return target / WHEEL_BINARY


def _tested_version(directory: Path, adjective: str) -> str:
    """Test the Macaulay2 in a directory and return its version. `adjective` describes it in the error message."""
    from m2bridge.engine.discovery import check_candidate

    candidate = check_candidate("installed", directory / WHEEL_BINARY, fresh=True)
    if candidate.info is None:
        raise NoEngineError(
            f"the {adjective} Macaulay2 does not run: {candidate.reason}", candidates=(candidate,)
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
    return tuple(directory for directory in removed if directory.name.startswith(PACKAGE))


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".part-", dir=engines_directory(), ignore_cleanup_errors=True)


def _download(directory: Path, progress: Progress) -> Path:
    """Download the pinned wheel into `directory` with pip; return its path."""
    if importlib.util.find_spec("pip") is None:
        raise NoEngineError(f"no pip in this Python to download Macaulay2; {OTHER_WAYS}", candidates=())
    progress(f"downloading {PACKAGE} {VERSION} (75 MB, 330 MB unpacked)")
    requirements = directory / "requirements.txt"
    requirements.write_text(
        " ".join([f"{PACKAGE}=={VERSION}", *(f"--hash=sha256:{value}" for value in HASHES)])
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
            f"pip could not download {PACKAGE} {VERSION}: {reason}; {OTHER_WAYS}", candidates=()
        )
    return wheels[0]


def _unpack(wheel: Path, directory: Path) -> None:
    """Unpack the wheel and make its programs executable."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            path = directory / entry.filename
            if path.is_file() and (mode & 0o111 or path.parent == directory / WHEEL_BINARY.parent):
                path.chmod(0o755)
