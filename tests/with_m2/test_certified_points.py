"""Records of singular-point and singular-locus carry certificates, which the checker verifies."""

from __future__ import annotations

from typing import Any

import pytest

from m2bridge import checker, records
from m2bridge.engine import Engine
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_point import singular_point


def checked(result: Any) -> str:
    code, said = checker.verify(records.dumps(records.to_document(result)))
    assert code == 0, said
    assert records.from_document(records.to_document(result)) == result
    return " ".join(said)


@pytest.mark.parametrize(
    ("spec", "at", "verdict"),
    [
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", {"x": [0, 0]}, "singular"), ("map:t->t^2;t^3", {"x": ["1/2"]}, "smooth"),
        ("linear(widths=[2,1,2])", {"W1": [[0, 0]], "W2": [[0], [0]]}, "singular"), ("linear(widths=[2,1,2])", None, "smooth"),
        ("mlp(widths=[2,1,1],r=2)", None, "smooth"), ("lightning(d=2,dp=1,a=2,t=2)", None, "smooth"),
    ],
)  # fmt: skip
def test_a_proved_verdict_at_a_point_is_verified(engine: Engine, spec: str, at: Any, verdict: str) -> None:
    found = singular_point(spec, at=at, engine=engine)
    said = checked(found)
    assert found.verdict == verdict
    assert f"is {verdict} at the given point" in said
    assert "Its dimension is" in said
    assert " verdict" not in said.rpartition("Not covered by the certificate:")[2]


def test_a_verdict_that_rests_on_complete_equations_is_named_as_not_covered(engine: Engine) -> None:
    """The cusp at the origin: no curves in it have two tangent directions; it is singular because there is no other equation."""
    found = singular_point("map:t->t^2;t^3", at={"x": [0]}, engine=engine)
    assert found.verdict == "singular"
    assert ", verdict, " in checked(found).rpartition("Not covered by the certificate:")[2]


@pytest.mark.parametrize(("a", "strata"), [(2, [0, 2, 3]), (1, [0, 1, 2])])
def test_a_singular_locus_is_verified_at_its_strata(engine: Engine, a: int, strata: list[int]) -> None:
    """With a = 2 stratum 1 is singular because it is in the closure of another: no curves through it show that."""
    said = checked(singular_locus(f"lightning(d=2,dp=1,a={a},t=2)", engine=engine))
    for k in range(4):
        assert (f"the verdict of number {k} at its representative" in said) == (k in strata)
