"""Engines for the tests.

`engine` is an open engine on the default Macaulay2, shared by the session. `engine_info` runs a test once for
each Macaulay2 that is to be supported: the default one, and those named in ``M2BRIDGE_TEST_ENGINES``
(separated as PATH is). No Macaulay2 at all is a failure, never a skip.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from m2bridge.engine import Engine, EngineInfo, find_engine, open_engine
from m2bridge.errors import M2BridgeError
from tests.replay import ReplayEngine

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def pytest_configure() -> None:
    """A shell starts what runs in its background with interrupts ignored; commands under test must hear them."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _engines() -> list[EngineInfo | str]:
    """The engines to test with; for one that does not work, why."""
    named = [path for path in os.environ.get("M2BRIDGE_TEST_ENGINES", "").split(os.pathsep) if path]
    found: dict[Path | str, EngineInfo | str] = {}
    for explicit in [None, *named]:
        try:
            info = find_engine(explicit)
            found.setdefault(info.path or "default", info)
        except M2BridgeError as error:
            found[explicit or "default"] = str(error)
    return list(found.values())


def _name(engine: EngineInfo | str) -> str:
    return f"M2-{engine.version}" if isinstance(engine, EngineInfo) else "no-engine"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_info" in metafunc.fixturenames:
        metafunc.parametrize("engine_info", _engines(), ids=_name, indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine_info(request: pytest.FixtureRequest) -> EngineInfo:
    """Each Macaulay2 to be supported, in turn."""
    if not isinstance(request.param, EngineInfo):
        pytest.fail(f"tests with Macaulay2 need one: {request.param}", pytrace=False)
    return request.param


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An open warm engine on the default Macaulay2."""
    try:
        opened = open_engine(warm=True)
    except M2BridgeError as error:
        pytest.fail(f"tests with Macaulay2 need one: {error}", pytrace=False)
    with opened:
        yield opened


@pytest.fixture
def replay() -> ReplayEngine:
    """An engine that serves the transcripts in ``tests/transcripts``."""
    return ReplayEngine.from_directory(TRANSCRIPTS)
