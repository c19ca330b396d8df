"""One point of any polynomial model: singular or smooth, with textbook answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import m2bridge.questions.singular_point as singular_points
from m2bridge import records
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError, LimitError, NotPolynomialError
from m2bridge.families import parse_spec
from m2bridge.questions.closure import closure
from m2bridge.questions.point import resolve
from m2bridge.questions.singular_locus.equations import equations_of, refuse_outside
from m2bridge.questions.singular_point import singular_point
from tests.answering import Answers


@pytest.mark.parametrize(
    ("spec", "at", "tangent", "verdict"),
    [
        # the cusp y^2 = x^3 is singular at the origin, where its tangent space is the plane, and smooth elsewhere
        ("map:t->t^2;t^3", {"x": [0]}, 2, "singular"),
        ("map:t->t^2;t^3", {"x": ["1/2"]}, 1, "smooth"),
        # the cone over the twisted cubic: its vertex has the whole space as tangent space
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", {"x": [0, 0]}, 4, "singular"),
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", None, 2, "smooth"),
        # 2 x 2 matrices of rank at most one: singular at zero only (Harris, Example 14.15)
        ("linear(widths=[2,1,2])", None, 3, "smooth"),
        ("linear(widths=[2,1,2])", {"W1": [[0, 0]], "W2": [[0], [0]]}, 4, "singular"),
        # a point of two sheets: A = e1 e1^T, V = e2^T of M(2,1,2) lies in the singular locus z1 z5 = z2 z4, ...
        ("lightning(d=2,dp=1,parametrization=attention)", "rank_a=1,rank_v=1,meet=0", 6, "singular"),
    ],
)
def test_textbook_points(answered: Answers, spec: str, at: Any, tangent: int, verdict: str) -> None:
    result = answered(singular_point, spec, at=at)
    assert (result.tangent_upper, result.verdict, result.certainty.exact) == (tangent, verdict, True)
    assert result.agreement is not False


def test_a_transposed_attention_matrix_is_caught(
    engine: Engine, damage: Callable[[str, str], list[str]]
) -> None:
    damaged = damage("transpose W#1 * W#0", "transpose W#0 * W#1")
    answer = singular_point("lightning(d=2,dp=1,a=1)", engine=engine)
    assert damaged
    assert answer.agreement is False


def test_the_bounds_differ_where_curves_do_not_span_the_tangent_space(answered: Answers) -> None:
    # the tangent cone of the cusp at the origin is a line: curves span one dimension, the tangent space has two
    result = answered(singular_point, "map:t->t^2;t^3", at={"x": [0]})
    assert (result.tangent_lower, result.tangent_upper, result.critical) == (1, 2, True)


def test_equations_up_to_a_degree_never_make_a_point_singular(engine: Engine) -> None:
    # cut below degree 4, M(2,1,2) has no equations at all; the point is then undecided, not singular
    result = singular_point(
        "lightning(d=2,dp=1,parametrization=attention)", at="rank_a=2,rank_v=1", max_degree=3, engine=engine
    )
    assert (result.verdict, result.certainty.value, result.sure) == ("undecided",) * 3


def test_a_point_that_is_not_on_the_variety_is_named(engine: Engine) -> None:
    cubic = parse_spec("map:s,t->s^3;s^2*t;s*t^2;t^3")
    answer = closure(cubic, field="QQ", equations=True, engine=engine)
    equations = equations_of(answer)
    assert equations is not None
    other = parse_spec("map:s,t->s^3;s^2*t;s*t^2;s*t^2")
    with pytest.raises(InputError, match="equation"):
        refuse_outside(equations, resolve(other, {"x": [2, 3]}, 0))


def test_models_without_a_zariski_tangent_space(answered: Answers) -> None:
    with pytest.raises(NotPolynomialError):
        answered(singular_point, "softmax(d=[2,2])")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({"x": [0]}))
    assert (
        main(["singular-point", "map:t->t^2;t^3", "--at", str(weights), "--json", "--save", str(tmp_path)])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "singular"
    (saved,) = tmp_path.glob("singular-point-*.json")
    assert records.to_document(records.load(saved)) == document
    assert main(["singular-point", "map:t->t^2;t^3", "--at", str(weights), "--stratum", "rank_a=1"]) == 2


@pytest.mark.parametrize(
    ("spec", "at", "verdict", "rank"),
    [
        ("map:s,t->s^2;s*t;t^2", {"s": 2, "t": 1}, "smooth", 2),
        ("map:s,t->s^2;s*t;t^2", {"s": 0, "t": 0}, "singular", 0),  # the vertex of a cone
        ("map:x,y->x;y", None, "smooth", 2),
        ("mlp(widths=[2,2,2],r=2)", None, "smooth", 6),
        ("map:x->1/2*x^2;x^3", {"x": 0}, "singular", 0),
        ("map:x->1/2*x^2;x^3", {"x": "1/3"}, "smooth", 1),
        ("map:s,t->s;s*t;t^2", {"s": 0, "t": 2}, "singular", 2),
    ],
)
def test_known_points_of_maps(
    answered: Answers, spec: str, at: dict[str, Any] | None, verdict: str, rank: int
) -> None:
    answer = answered(singular_point, spec, at=at)
    # curves are a second witness only where they span more than the dimension: at the vertex; equations alone decide the others
    twice = True if (verdict, rank) == ("singular", 0) and len(at or ()) == 2 else None
    assert (answer.verdict, answer.jacobian_rank, answer.agreement) == (verdict, rank, twice)
    assert answer.tangent_upper is not None
    assert answer.tangent_lower <= answer.tangent_upper


@pytest.fixture
def no_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every closure reach its limit."""

    def stopped(*_: Any, **__: Any) -> Any:
        raise LimitError("closure: the time limit of 1 s was reached")

    monkeypatch.setattr(singular_points, "closure", stopped)


@pytest.mark.usefixtures("no_closure")
def test_curves_through_other_weights_of_the_fiber_are_counted(engine: Engine) -> None:
    """The zero function is the vertex of a cone that spans 18 dimensions; V = 0 is one of many weights of it."""
    weights = {"Q": [[-1, 2, 2], [4, 3, 0]], "K": [[-1, -2, -2], [2, 4, -2]], "V": [[0, 0, 0]]}
    result = singular_point("lightning(d=3,dp=1,a=2)", at=weights, engine=engine)
    assert (result.verdict, result.certainty.value, result.tangent_lower) == ("singular", "proved", 11)


@pytest.mark.usefixtures("no_closure")
def test_a_limit_in_the_closure_leaves_what_curves_show(engine: Engine) -> None:
    weights = {"W1": [[0, 0]], "W2": [[0], [0]]}
    result = singular_point("linear(widths=[2,1,2])", at=weights, engine=engine)
    assert (result.verdict, result.tangent_lower, result.tangent_upper) == ("singular", 4, None)
    assert result.limit == "closure: the time limit of 1 s was reached"
    assert "--timeout" in result.view().to_prove
    assert "--timeout" not in replace(result, limit=None).view().to_prove
