"""Run a command in a test: a wrong exit code fails with all that the command printed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

PATIENCE = 900
"""Seconds until a command that does not end fails its test: far more than any takes on a loaded machine."""


def run_command(
    words: Sequence[str | os.PathLike[str]], *, code: int = 0, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return it with its output as text.

    `code` is the exit code that is expected. Other settings are those of `subprocess.run`.
    """
    if "stdout" not in settings:
        settings["capture_output"] = True
    done = subprocess.run(words, text=True, check=False, **{"timeout": PATIENCE, **settings})
    assert done.returncode == code, (
        f"exit code {done.returncode}, not {code}: {' '.join(map(str, words))[:500]}\n"
        f"stdout:\n{(done.stdout or '')[-4000:]}\nstderr:\n{(done.stderr or '')[-4000:]}"
    )
    return done
