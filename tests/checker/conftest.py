"""Tests of the stand-alone checker share `makers`, which makes programs, certificates and the truth without it."""

import sys
from pathlib import Path

import pytest

from m2bridge import checker

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def work() -> None:
    """Each test has as much work to spend as one document."""
    checker.work_left[0] = checker.MOST_WORK
