"""Altered records of the questions that need no Macaulay2: check, cite, explain and report reject them.

The other questions: with_m2/test_altered_records.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from m2bridge import checker, records
from m2bridge.questions.dimension import dimension
from m2bridge.questions.identifiable import identifiable
from m2bridge.questions.same import same
from m2bridge.questions.symmetries import symmetries
from m2bridge.results import Result
from tests.altering import (
    COUNT,
    Commands,
    alterations,
    assert_not_confirmed,
    assert_only_certified,
    changed,
    document_of,
)

FIRST, SECOND = {"W1": [[1, 2]], "W2": [[1], [2]]}, {"W1": [[2, 4]], "W2": [["1/2"], [1]]}
ANSWERS: dict[str, Callable[[], Result]] = {
    "dimension": lambda: dimension("lightning(d=2,dp=1)", engine=False),
    "dimension by a theorem": lambda: dimension("cp(sizes=[3,3,3],rank=4)", engine=False),
    "symmetries": lambda: symmetries("mlp(widths=[2,2,1],r=2)"),
    "identifiable": lambda: identifiable("mlp(widths=[2,2,1],r=2)", engine=False),
    "same": lambda: same("linear(widths=[2,1,2])", at=FIRST, other=SECOND, engine=False),
}


@cache
def answer(name: str) -> Result:
    return ANSWERS[name]()


@pytest.mark.parametrize("name", ANSWERS)
def test_an_altered_record_is_rejected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answer(name)
    document = document_of(result)
    commands = Commands(tmp_path, monkeypatch, capsys)
    cases = list(alterations(document, result.HEADLINE))
    assert len(cases) == COUNT
    for what, altered in cases:
        assert_not_confirmed(commands, what, altered)
        assert_only_certified(commands, what, altered, document)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_field_is_under_the_digest(name: str) -> None:
    document = document_of(answer(name))
    for field, value in document.items():
        code, said = checker.verify(json.dumps({**document, field: changed(value)}))
        assert code in (7, 9), (field, said)


def test_a_new_digest_does_not_replace_a_certificate() -> None:
    """A record with an altered field and a new digest is rejected if the certificate contradicts it or is missing."""
    document = records.to_document(dimension("lightning(d=2,dp=1)", engine=False))
    own = json.loads(records.dumps(document))
    own["image_dim"] += 1
    own["digest"] = records.digest_of(own)
    assert checker.verify(json.dumps(own))[0] == 7
    own = json.loads(records.dumps({**document, "certificate": None}))
    own["digest"] = records.digest_of(own)
    code, said = checker.verify(json.dumps(own))
    assert (code, "proved" in said[0]) == (7, True)
