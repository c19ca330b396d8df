"""Supplements: short Macaulay2 scripts whose asserts hold, run by Macaulay2 itself without m2bridge."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m2bridge.cli import main
from m2bridge.engine import EngineInfo
from m2bridge.errors import InputError
from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import dimension
from m2bridge.report.supplement import WRITERS, supplement
from tests.running import PATIENCE

LAYER = ("--d", "2", "--dp", "1")
COMMANDS = {
    "dimension": ("dimension", *LAYER),
    "closure": ("closure", *LAYER, "--field", "QQ"),
    "closure-map": ("closure", "map:s,t->s^2;s*t;t^2;s+t"),
    "closure-bounded-rank": ("closure", "--d", "2", "--dp", "2", "--a", "1"),
    "singular-locus": ("singular-locus", *LAYER),
    "fiber": ("fiber", *LAYER),
    "critical-points": ("critical-points", *LAYER),
    "membership": ("membership", *LAYER, "--point", "1,0,0,0,0,0"),
    "real-member": ("membership", "map:s,t->s^3+t;s*t", "--point", "3/7,-5"),
    "complex-member": ("membership", "map:s,t->s^2;s*t;t^2", "--point=-1,0,0"),
    "not-a-member": ("membership", *LAYER, "--point", "1,0,0,0,0,1"),
}


def run_m2(info: EngineInfo, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(info.path), "--script", str(file)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_asserts_hold(name: str, engine_info: EngineInfo, tmp_path: Path) -> None:
    file = tmp_path / "supplement.m2"
    assert main([*COMMANDS[name], "--engine", str(engine_info.path), "--supplement", str(file)]) == 0
    done = run_m2(engine_info, file)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["complete"]), done.stderr
    text = file.read_text()
    assert text.count("assert(") >= 1
    assert max(map(len, text.splitlines())) <= 120
    assert "m2b" not in text.replace("m2bridge", "")


def test_a_wrong_claim_fails(engine_info: EngineInfo, answered: Any, tmp_path: Path) -> None:
    right = answered(closure, "lightning(d=2,dp=1)", equations=True)
    file = tmp_path / "wrong.m2"
    file.write_text(supplement(replace(right, degree=5)))
    assert run_m2(engine_info, file).returncode == 1


def test_answers_without_a_supplement(answered: Any) -> None:
    big = replace(answered(dimension, "lightning(d=2,dp=1)"), model="lightning(d=9,dp=9)")
    with pytest.raises(InputError, match="large"):
        supplement(big)
    bounded = replace(big, model="lightning(d=2,dp=2,a=1,parametrization=attention)")
    with pytest.raises(InputError, match="bounded ranks"):
        supplement(bounded)
    assert len(WRITERS) == 6
