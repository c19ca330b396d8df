"""Containers for the tests: ``make image-test`` passes the command that runs one, in two variables.

``M2BRIDGE_IMAGE_RUN`` is the command up to the image's name (``docker run --rm --network none --read-only --tmpfs /tmp ...``),
``M2BRIDGE_IMAGE`` the image. The command must run containers read-only, without a network and without capabilities: the tests
take that from it, and one test looks whether it is so.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from m2bridge.engine import find_engine
from m2bridge.engine.install import installed


@dataclass(frozen=True)
class Image:
    """An image and how to run it."""

    run_words: tuple[str, ...]
    name: str

    def words(self, *arguments: str, options: tuple[str, ...] = (), program: str | None = None) -> list[str]:
        """The command that runs m2bridge, or another `program` of the image, with `arguments`."""
        entry = ("--entrypoint", program) if program else ()
        return [*self.run_words, *options, *entry, self.name, *arguments]

    def start(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """A running container, with pipes."""
        return subprocess.Popen(
            self.words(*arguments, **settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def raw(self, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
        """A container that has ended; its output as bytes."""
        return subprocess.run(
            self.words(*arguments, **settings), capture_output=True, timeout=900, check=False
        )

    def __call__(self, *arguments: str, code: int = 0, **settings: Any) -> subprocess.CompletedProcess[str]:
        """A container that has ended with the exit code that was expected; its output as text."""
        done = self.raw(*arguments, **settings)
        text = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert text.returncode == code, (
            f"{arguments}: exit code {text.returncode}\n{text.stdout}\n{text.stderr}"
        )
        return text


@pytest.fixture(scope="session")
def image() -> Image:
    """The image under test."""
    run, name = os.environ.get("M2BRIDGE_IMAGE_RUN"), os.environ.get("M2BRIDGE_IMAGE")
    if not run or not name:
        pytest.fail("these tests run containers: use `make image-test`", pytrace=False)
    return Image(tuple(shlex.split(run)), name)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory on the host that any user of a container may write to."""
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o777)
    return directory


@pytest.fixture
def mount() -> Callable[..., tuple[str, ...]]:
    """Options that mount a directory of the host at /work, where the image's commands start."""

    def options(directory: Path, mode: str = "rw") -> tuple[str, ...]:
        return ("-v", f"{directory}:/work:{mode}")

    return options


@pytest.fixture(scope="session")
def outside_engine() -> Path:
    """A Macaulay2 on the host: the wheel's, which is the image's too, or else the default one."""
    found = next(iter(installed()), None) or find_engine().path
    assert found is not None
    return found
