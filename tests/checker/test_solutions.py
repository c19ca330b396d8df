"""Minors that are verified by solutions of their equations: right ones pass, changed ones are rejected."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from makers import smooth_certificate

import m2bridge
from m2bridge import checker, from_callable
from m2bridge.certificates import produce


def network(W, b, V, x):
    return V @ (1 / (1 + np.exp(-(W @ x + b))))


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(produce, "MOST_ELIMINATED", 0)
    shapes = {"W": (3, 2), "b": (3,), "V": (2, 3)}
    outputs = from_callable(lambda W, b, V, x: network(W, b, V, x) + x, shapes, inputs={"x": (2,)})
    return dict(m2bridge.dimension(outputs, engine=False).certificate or {})


def outcome(document: dict[str, Any]) -> int:
    return checker.verify(json.dumps(document))[0]


def test_solutions_of_a_minor_are_verified(document: dict[str, Any]) -> None:
    lower = document["lower"]
    assert len(lower["solutions"]) == 5
    assert lower["prime"] ** 5 >= 2**100 > lower["prime"] ** 4
    assert outcome(document) == 0


@pytest.mark.parametrize(("most_eliminated", "printed"), [(0, True), (600, False)])
def test_the_probability_is_printed_for_a_smooth_point(
    most_eliminated: int, printed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MOST_ELIMINATED", most_eliminated)
    cone = m2bridge.dimension("map:s,t->s^2;s*t;t^2", engine=False).certificate or {}
    equation = {(1, 0, 1): 1, (0, 2, 0): -1}
    smooth = smooth_certificate(str(cone["program"]), [1, 2], [equation], dict(cone["lower"]), prime=32003)
    code, lines = checker.verify(json.dumps(smooth))
    text = "\n".join(lines)
    assert code == 0
    assert "smooth" in text
    assert ("2^-100" in text) is printed


def test_without_solutions_the_minor_is_eliminated(document: dict[str, Any]) -> None:
    del document["lower"]["solutions"]
    assert outcome(document) == 0


@pytest.mark.parametrize("number", range(5))
def test_every_solution_is_checked(document: dict[str, Any], number: int) -> None:
    solution = document["lower"]["solutions"][number]
    for index in range(len(solution)):
        changed = copy.deepcopy(document)
        changed["lower"]["solutions"][number][index] = (solution[index] + 1) % document["lower"]["prime"]
        assert outcome(changed) == 7


def test_few_solutions_are_rejected(document: dict[str, Any]) -> None:
    document["lower"]["solutions"].pop()
    assert outcome(document) == 7


def test_sides_depend_on_rows_columns_point_and_program(document: dict[str, Any]) -> None:
    lower = document["lower"]
    rows = {**lower, "rows": lower["rows"][::-1]}
    columns = {**lower, "columns": lower["columns"][::-1], "solutions": [x[::-1] for x in lower["solutions"]]}
    more = {**lower, "samples": lower["samples"] + 1}
    for changed in (rows, columns, more):
        assert outcome({**document, "lower": changed}) == 7
    renamed = document["program"].replace("output y", "output z")
    assert renamed != document["program"]
    assert outcome({**document, "program": renamed}) == 7


def test_a_singular_minor_has_no_solutions(document: dict[str, Any]) -> None:
    """A row twice: the same derivative should have two different values."""
    lower = copy.deepcopy(document["lower"])
    lower["rows"][1] = lower["rows"][0]
    assert outcome({**document, "lower": lower}) == 7
