"""A command that fails in a test shows why."""

from __future__ import annotations

import sys

import pytest

from tests.running import run_command


def test_a_command_that_fails_shows_what_it_printed() -> None:
    code = "import sys; print('before'); print('the reason', file=sys.stderr); sys.exit(3)"
    with pytest.raises(AssertionError, match=r"exit code 3, not 0[\s\S]*before[\s\S]*the reason"):
        run_command([sys.executable, "-c", code])
    assert run_command([sys.executable, "-c", code], code=3).stderr == "the reason\n"
