"""Engines for the tests.

`engine` is an open engine on the default Macaulay2, shared by the session. `engine_info` runs a test once for
each Macaulay2 that is to be supported: the default one, and those named in ``M2BRIDGE_TEST_ENGINES``
(separated as PATH is). No Macaulay2 at all is a failure, never a skip. `answered` asks a question once in a run.

`msolve` is the msolve of the machine; without one its tests are skipped.

`make test` leaves out what is marked `slow`. The mark `macaulay2` is given here, to every test that starts a Macaulay2.
"""

from __future__ import annotations

import os
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from m2bridge import scripts
from m2bridge.engine import Engine, EngineInfo, find_engine, open_engine, open_msolve
from m2bridge.errors import M2BridgeError
from tests.answering import Answers
from tests.replay import ReplayEngine

TRANSCRIPTS = Path(__file__).parent / "transcripts"
WITH_MACAULAY2 = ("with_m2", "known_values", "scripts", "e2e")
"""Directories whose tests run commands and questions that find a Macaulay2 themselves."""
ENGINES = frozenset({"engine", "engine_info", "each_engine", "answered"})
"""Fixtures that start a Macaulay2."""


# A busy machine takes long for an example; that is no failure.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def _check_entry_points() -> None:
    """Stop if the package was installed before its entry points changed: papers and comments would be missing."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, points in project["entry-points"].items():
        if missing := set(points) - {point.name for point in entry_points(group=group)}:
            name = missing.pop()
            pytest.exit(f"no entry point {name} of {group}: run pip install -e . --no-deps", returncode=2)


def pytest_configure() -> None:
    """A shell starts what runs in its background with interrupts ignored; commands under test must hear them."""
    _check_entry_points()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start a Macaulay2."""
    for item in items:
        if item.path.parent.name in WITH_MACAULAY2 or ENGINES & set(getattr(item, "fixturenames", ())):
            item.add_marker("macaulay2")


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


@pytest.fixture(scope="session")
def msolve() -> Engine:
    """The msolve of this machine, which is optional: `m2bridge engine install --msolve`."""
    opened = open_msolve()
    if opened is None:
        pytest.skip("no msolve on this machine")
    return opened


@pytest.fixture(scope="session")
def each_engine(engine_info: EngineInfo, engine: Engine) -> Iterator[Engine]:
    """An open warm engine on each Macaulay2 to be supported, in turn."""
    if engine_info.path == engine.info.path:
        yield engine
        return
    with open_engine(str(engine_info.path), warm=True) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _one_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give questions that open a Macaulay2 themselves the one of the session; in `e2e` commands start their own."""
    if request.path.parent.name not in ("with_m2", "known_values"):
        return

    def shared(explicit: str | None = None, *, warm: bool = False) -> Any:
        opened: Engine = request.getfixturevalue("engine")
        if explicit is None or Path(explicit) == opened.info.path:
            return nullcontext(opened)
        return open_engine(explicit, warm=warm)

    for module in ("questions.kernel", "cli.figure", "cli.template", "engine"):
        monkeypatch.setattr(f"m2bridge.{module}.open_engine", shared)


@pytest.fixture(scope="session")
def answered(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Asks each question about each model once, for all tests that look at the answer: ``answered(dimension, spec)``."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # that of all workers of this run
    return Answers(engine, shared / "answers")


Damage = Callable[[str, str], list[str]]


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> Damage:
    """Replaces a piece of every script that has it; the names of the damaged scripts are listed as they are made."""

    def damage(right: str, wrong: str) -> list[str]:
        render, damaged = scripts.render, []

        def render_wrong(*arguments: Any, **options: Any) -> scripts.Script:
            script = render(*arguments, **options)
            if right not in script.text:
                return script
            damaged.append(script.name)
            return replace(script, text=script.text.replace(right, wrong))

        monkeypatch.setattr(scripts, "render", render_wrong)
        return damaged

    return damage


@pytest.fixture
def replay() -> ReplayEngine:
    """An engine that serves the transcripts in ``tests/transcripts``."""
    return ReplayEngine.from_directory(TRANSCRIPTS)
