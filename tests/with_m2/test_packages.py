"""Every package that the distribution of Macaulay2 ships is loaded in the sandbox."""

from __future__ import annotations

import pytest

from m2bridge.engine import EngineInfo, ForkServerEngine, Outcome, Run
from m2bridge.limits import Limits
from m2bridge.scripts import Script

CANNOT_LOAD: dict[str, str] = {}
"""Packages that a working Macaulay2 does not load, with the reason."""


@pytest.mark.slow
def test_every_package_loads(engine_info: EngineInfo) -> None:
    failed = {}
    with ForkServerEngine(engine_info) as engine:

        def run(text: str) -> Run:
            return engine.run(Script(name="job", text=text), Limits(wall_seconds=120))

        names = run('<< version#"packages" << endl;').stdout.split()
        assert len(names) > 200
        for name in names:
            result = run(f'needsPackage "{name}"; << "loaded" << endl;')
            if result.outcome is not Outcome.FINISHED or "loaded" not in result.stdout:
                failed[name] = f"{result.outcome}: {result.stderr[-200:]}"
    assert sorted(failed) == sorted(set(failed) & set(CANNOT_LOAD)), failed
