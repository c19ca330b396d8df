"""Records of singular-point, singular-locus, closure and membership carry certificates, which the checker verifies."""

from __future__ import annotations

from typing import Any

import pytest

from m2bridge import checker, records
from m2bridge.engine import Engine
from m2bridge.questions.closure import closure
from m2bridge.questions.membership import membership
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_point import singular_point


def checked(result: Any, expected: int = 0) -> str:
    """Return the sentences of the checker; it exits with 9 if the certificate covers a part of the first line only."""
    code, said = checker.verify(records.dumps(records.to_document(result)))
    assert code == expected, said
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
    answer = singular_point(spec, at=at, engine=engine)
    output = checked(answer)
    assert answer.verdict == verdict
    assert f"is {verdict} at the given point" in output
    assert "Its dimension is" in output
    assert " verdict" not in output.rpartition("Not covered by the certificate:")[2]


def test_a_verdict_that_rests_on_complete_equations_is_named_as_not_covered(engine: Engine) -> None:
    """The cusp at the origin: no curves in it have two tangent directions; it is singular because there is no other equation."""
    answer = singular_point("map:t->t^2;t^3", at={"x": [0]}, engine=engine)
    assert answer.verdict == "singular"
    assert ", verdict, " in checked(answer, 9).rpartition("Not covered by the certificate:")[2]


@pytest.mark.parametrize(("a", "strata"), [(2, [0, 2, 3]), (1, [0, 1, 2])])
def test_a_singular_locus_is_verified_at_its_strata(engine: Engine, a: int, strata: list[int]) -> None:
    """With a = 2 stratum 1 is singular because it is in the closure of another: no curves through it show that."""
    output = checked(singular_locus(f"lightning(d=2,dp=1,a={a},t=2)", engine=engine), 9)
    for k in range(4):
        assert (f"the verdict of number {k} at its representative" in output) == (k in strata)


def covered(said: str) -> set[str]:
    """Not one of the fields that the checker lists as not covered, of those that these tests ask about."""
    rest = said.rpartition("Not covered by the certificate: ")[2].rstrip(".").split(", ")
    names = {
        "generators",
        "degree_bound",
        "span_dim",
        "equations",
        "point",
        "closure",
        "complex_image",
        "real_image",
    }
    return names - set(rest)


@pytest.mark.parametrize(
    ("spec", "field", "degree"),
    [
        ("lightning(d=2,dp=1,a=2,t=2)", "QQ", 5), ("lightning(d=2,dp=1,a=1,t=2)", None, 3),
        ("map:s,t->s^2+t^2;s*t;s+t", "QQ", 3), ("linear(widths=[2,1,3])", "QQ", 3),
    ],
)  # fmt: skip
def test_the_equations_of_a_closure_are_verified(engine: Engine, spec: str, field: Any, degree: int) -> None:
    """By expansion over ZZ, and nothing else up to a degree. Of a record over F_p nothing follows."""
    answer = closure(spec, field=field, engine=engine)
    output = checked(answer, 9)
    assert "vanishes on its image identically, by expansion" in output
    assert f"Every polynomial of degree at most {degree}" in output
    follows = {"generators", "degree_bound", "span_dim"}
    assert covered(output) & follows == (follows if field == "QQ" else set())
    assert ("equations" in covered(output)) == (field == "QQ" and answer.equations is not None)
    document = records.to_document(answer)
    for key, value in (("generators", {"2": 7}), ("span_dim", answer.span_dim + 1), ("model", "map:t->t;t")):
        code = checker.verify(records.dumps({**document, key: value}))[0]
        assert code == (7 if field == "QQ" or key == "model" else 9), key
    if field == "QQ":
        other = {
            **document["equations"][0],
            "coefficients": [2 * c + 1 for c in document["equations"][0]["coefficients"]],
        }
        assert checker.verify(records.dumps({**document, "equations": [other]}))[0] == 7


@pytest.mark.parametrize(
    ("spec", "point", "inside"),
    [
        ("map:s,t->s^2+t^2;s*t", [5, 2], True), ("map:s,t->s^2;s*t;t^2", [1, 1, 2], False),
        ("lightning(d=2,dp=1,a=3,t=2)", [1, 0, 0, 0, 0, 0], True), ("lightning(d=2,dp=1,a=2,t=2)", [1, 0, 1, 1, 2, 3], False),
        ("linear(widths=[2,1,2])", [1, 2, 2, 4], True), ("linear(widths=[2,1,2])", [1, 2, 2, 5], False),
    ],
)  # fmt: skip
def test_points_inside_and_outside_are_verified(engine: Engine, spec: str, point: Any, inside: bool) -> None:
    answer = membership(spec, point=point, engine=engine)
    output = checked(answer)
    assert ("is in its image, by the given weights" in output) == inside
    assert ("is not in the closure of its image" in output) == (not inside)
    assert covered(output) >= {"point", "closure", "complex_image", "real_image"}
    document = records.to_document(answer)
    for key, value in (
        ("closure", not inside),
        ("real_image", None),
        ("point", [*document["point"][1:], "7"]),
    ):
        assert checker.verify(records.dumps({**document, key: value}))[0] == 7, key


def test_outputs_at_given_inputs_have_no_certificate(engine: Engine) -> None:
    """Such a record is about values, not coordinates: the checker reports that there is no certificate."""
    pairs = {"inputs": [[1, 0], [0, 1]], "outputs": [[1, 2], [2, 4]]}
    code, said = checker.verify(
        records.dumps(records.to_document(membership("linear(widths=[2,1,2])", point=pairs, engine=engine)))
    )
    assert code == 8
    assert "there is no certificate" in " ".join(said)
