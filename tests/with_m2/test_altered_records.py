"""Altered records of the questions that use Macaulay2: check, cite, explain and report reject them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m2bridge.engine import Engine
from m2bridge.questions import QUESTIONS
from m2bridge.questions.boundary import boundary
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points import critical_points
from m2bridge.questions.fiber import fiber
from m2bridge.questions.ideal import ideal
from m2bridge.questions.membership import membership
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_point import singular_point
from tests.altering import (
    COUNT,
    Commands,
    alterations,
    assert_not_confirmed,
    assert_only_certified,
    document_of,
)

ASKED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "closure": (closure, "lightning(d=2,dp=1)", {"field": "QQ"}),
    "closure over F_p": (closure, "map:s,t->s^3;s^2*t;s*t^2;t^3", {}),
    "singular-locus": (singular_locus, "lightning(d=2,dp=1)", {}),
    "singular-locus of a map": (singular_locus, "map:t->t^2;t^3", {}),
    "singular-point": (singular_point, "lightning(d=2,dp=1,a=1)", {}),
    "fiber": (fiber, "map:s,t->s^2+t^2", {"at": {"s": 1, "t": 2}}),
    "boundary": (boundary, "lightning(d=2,dp=1)", {"point": [1, 0, 1, 0, 0, 0]}),
    "ideal": (ideal, "y^2*z - x^3 - x^2*z", {}),
    "critical-points": (critical_points, "linear(widths=[2,1,2])", {}),
    "membership": (membership, "linear(widths=[2,1,2])", {"point": [1, 2, 2, 4]}),
    "membership outside": (membership, "lightning(d=2,dp=1)", {"point": [1, 0, 0, 0, 0, 1]}),
}
WITHOUT_ENGINE = {"dimension", "identifiable", "same", "symmetries"}
"""Questions of unit/test_altered_records.py."""


def test_every_question_has_a_record_to_alter() -> None:
    assert set(QUESTIONS) <= set(ASKED) | WITHOUT_ENGINE


@pytest.mark.parametrize("name", ASKED)
def test_an_altered_record_is_rejected(
    name: str,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    question, subject, options = ASKED[name]
    result = question(subject, engine=engine, **options)
    document = document_of(result)
    commands = Commands(tmp_path, monkeypatch, capsys)
    cases = list(alterations(document, result.HEADLINE))
    assert len(cases) == COUNT
    for what, altered in cases:
        assert_not_confirmed(commands, what, altered)
        assert_only_certified(commands, what, altered, document)
