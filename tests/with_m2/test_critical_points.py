"""Critical points with the real Macaulay2: known ED degrees, real points, wrong inputs, and damage that the witnesses notice."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import scripts
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME
from m2bridge.questions.context import Context
from m2bridge.questions.critical_points import counting, critical_points
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.losses import metric_loss
from m2bridge.records import from_document, to_document
from tests.answering import Answers

KNOWN = [
    # P^3 x P^1 by O(1,1): the formula of arXiv:1309.0049, Theorem 5.8; its singular locus is P^1 x P^2, 10
    ("lightning(d=2,dp=1)", 14, [10, 1]),
    # (P^1 x P^1) by O(2,1): 7*4 - 3*6 + 4
    ("convolution(filters=[2,2],r=2)", 14, None),
    # 2 x 2 and 3 x 3 matrices in a general metric, arXiv:1311.2376; rank 1 and rank 2 are dual, so they have the same number
    ("linear(widths=[2,1,2])", 6, [1]),
    ("linear(widths=[3,2,3])", 39, [39, 1]),
    # rational normal curves, 3n - 2, arXiv:1309.0049
    ("map:s,t->s^3;s^2*t;s*t^2;t^3", 7, None),
    # P^1 x P^1 by O(1,1): 6
    ("map:a,b,c,d->a*c;a*d;b*c;b*d", 6, None),
    # the conic by a chart with a different name for the same curve: 3*2 - 2
    ("map:s,t->s^2;s*t;t^2", 4, None),
    # a plane curve that is no cone: y^2 = x^3; normals through a point of the plane are 3*3 - (cusp: 3 + 2) = 4
    ("map:s->s^2;s^3", 4, [1]),
    # all binary quadrics: the target itself
    ("mlp(widths=[2,2,1],r=2)", 1, None),
]


@pytest.mark.parametrize(("spec", "regular", "strata"), KNOWN)
def test_known_counts(answered: Answers, spec: str, regular: int, strata: list[int] | None) -> None:
    answer = answered(critical_points, spec)
    assert (answer.ed_degree, answer.regular, answer.agreement) == (regular, regular, True)
    assert (None if answer.singular is None else [s.count for s in answer.singular]) == strata
    assert from_document(to_document(answer)) == answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "regular"),
    [
        ("lightning(d=2,dp=2)", 284),
        ("convolution(filters=[3,2],r=2)", 79),
        ("convolution(filters=[2,2,2],r=2)", 404),
        ("linear(widths=[3,1,3])", 39),
    ],
)
def test_larger_counts_equal_chern_numbers(answered: Answers, spec: str, regular: int) -> None:
    answer = answered(critical_points, spec)
    assert (answer.regular, answer.agreement, answer.spurious) == (regular, True, 0)
    assert any(item.witness == "formula" for item in answer.evidence)


@pytest.mark.parametrize(
    ("spec", "regular", "spurious"),
    [
        # Eckart-Young: C(2, 1)
        ("linear(widths=[3,1,2])", 2, 0),
        # rank one binary quadrics in the Bombieri norm: 2 eigenvectors; with the origin 3 functions that only the weights see
        ("mlp(widths=[2,2,1],r=2)", 1, 3),
        # powers of one linear form of degree 3: 3
        ("mlp(widths=[2,1,1],r=3)", 3, 0),
    ],
)
def test_bombieri_metric(answered: Answers, spec: str, regular: int, spurious: int) -> None:
    answer = answered(critical_points, spec, metric="bombieri")
    assert (answer.regular, answer.spurious, answer.agreement) == (regular, spurious, True)


def test_spurious_functions_are_rank_one_forms_and_zero(answered: Answers) -> None:
    # in a general metric the conic of squares has ED degree 4; all are smooth points of the plane of quadrics
    assert answered(critical_points, "mlp(widths=[2,2,1],r=2)").spurious == 5


def test_user_defined_network(answered: Answers) -> None:
    from m2bridge import from_callable

    def network(u: Any, v: Any, x: Any) -> Any:  # a product of two linear forms of two inputs
        return (u @ x) * (v @ x)

    model = from_callable(network, {"u": (2,), "v": (2,)}, inputs={"x": (2,)})
    # every binary quadric is such a product over CC
    answer = answered(critical_points, model)
    assert (answer.regular, answer.fiber_degree, answer.agreement) == (1, 2, True)


def test_real_points_are_enclosed(answered: Answers) -> None:
    answer = answered(critical_points, "map:s,t->s^2;s*t;t^2", metric="euclidean", real=True, digits=20)
    assert answer.real == len(answer.real_points) == sum((answer.index or {}).values())
    for point in answer.real_points:
        (x0, x1), (y0, y1), (z0, z1) = [(Fraction(a), Fraction(b)) for a, b in point.coordinates]
        assert all(0 <= b - a <= Fraction(3, 10**20) for a, b in ((x0, x1), (y0, y1), (z0, z1)))
        products = [x * z for x in (x0, x1) for z in (z0, z1)]
        squares = [y0 * y0, y1 * y1, y0 * y1]
        assert min(products) <= max(squares)
        assert max(products) >= min(squares)  # x z = y^2 meets the box


def test_eckart_young_is_real_with_one_minimum(answered: Answers) -> None:
    # the critical points of the Frobenius loss on rank one 2 x 2 matrices are the two singular pairs: a minimum and a saddle
    answer = answered(critical_points, "linear(widths=[2,1,2])", metric="bombieri", real=True)
    assert (answer.real, answer.index) == (2, {"minimum": 1, "saddle": 1})


def test_histogram(answered: Answers) -> None:
    answer = answered(critical_points, "linear(widths=[2,1,2])", metric="bombieri", draws=3)
    assert answer.histogram == {"2": 3}


# -- degenerate losses and wrong inputs are answers --------------------------------------------------------


def test_too_few_samples_give_families(answered: Answers) -> None:
    answer = answered(critical_points, "lightning(d=2,dp=1)", samples=1)
    assert [(f.zero_loss, f.dim, f.degree) for f in answer.positive_dimensional] == [(True, 3, 4)]
    assert (answer.regular, answer.ed_degree, answer.agreement) == (None, None, True)
    assert any("samples" in remark for remark in answer.remarks)


def test_data_on_the_singular_locus(answered: Answers) -> None:
    # targets from A of rank one: the target is a singular point with zero loss; fewer regular points than for a general target
    model = parse_spec("lightning(d=2,dp=1)")
    inputs = np.random.default_rng(1).integers(-4, 5, size=(4, 2, 2))
    weights = {"Q": np.array([[1, 2], [0, 0]]), "K": np.array([[1, 1], [0, 0]]), "V": np.array([[1, 3]])}
    outputs = np.stack([model.forward(weights, x) for x in inputs])
    answer = answered(critical_points, model, data=(inputs, outputs))
    assert answer.agreement is not False
    assert answer.ed_degree is None
    # both branches pass through the target: (A, V) and its partner
    assert answer.zero_loss == 2


def test_data_files(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    np.savez(tmp_path / "X.npz", X=rng.integers(-5, 6, size=(5, 2)))
    np.savez(tmp_path / "Y.npz", rng.integers(-5, 6, size=(5, 2)))
    data = f"{tmp_path / 'X.npz'},{tmp_path / 'Y.npz'}"
    assert main(["critical-points", "linear(widths=[2,1,2])", "--data", data, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    keys = (
        "ed_degree",
        "regular",
        "singular",
        "spurious",
        "real",
        "index",
        "positive_dimensional",
        "agreement",
        "certainty",
    )
    assert all(key in answer for key in keys)
    # outputs W x with the same covariance of inputs for each row: two critical points, as in the Frobenius norm
    assert (answer["regular"], answer["agreement"]) == (2, True)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("map:s,t->s^2;t^2", {"metric": "bombieri"}, "bombieri needs"),
        ("map:s,t->s^2;t^2", {"samples": 3}, "--metric"),
        ("linear(widths=[2,1,2])", {"kernel": 4}, "--kernel 4"),
        ("linear(widths=[2,1,2])", {"samples": 3, "metric": "bombieri"}, "--samples"),
        ("linear(widths=[2,1,2])", {"data": (np.zeros((2, 3)), np.zeros((2, 2)))}, "X "),
        ("linear(widths=[2,1,2])", {"prime": 7}, "--prime 7"),
        ("linear(widths=[2,1,2])", {"target": "1,2"}, "--target has 2 numbers"),
        ("linear(widths=[2,1,2])", {"target": "1,x"}, "write numbers"),
        ("softmax(d=[2,2],t=2)", {}, "polynomial"),
    ],
)
def test_refusals(spec: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message) as error:
        critical_points(spec, **options)
    assert isinstance(error.value, InputError) or "polynomial" in message


# -- damage ------------------------------------------------------------------------------------------------


def _damaged(monkeypatch: pytest.MonkeyPatch, template: str, right: str, wrong: str) -> list[str]:
    original = scripts.render
    damage: list[str] = []

    def render(*arguments: Any, **options: Any) -> scripts.Script:
        script = original(*arguments, **options)
        if script.name != template or right not in script.text:
            return script
        damage.append(script.name)
        return replace(script, text=script.text.replace(right, wrong))

    monkeypatch.setattr(scripts, "render", render)
    return damage


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # a lost component: half of the critical points of a cone, those where a random factor is not zero
        ("critical = groebnerMatrix(", "critical = groebnerMatrix(ideal(S_0 - 3) + "),
        # the target forgotten
        ("numberMatrix(S, {covector})", "numberMatrix(S, {apply(covector, c -> 0)})"),
    ],
)  # fmt: skip
def test_lost_components_are_noticed(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, right: str, wrong: str
) -> None:
    damage = _damaged(monkeypatch, "critical_points", right, wrong)
    assert critical_points("lightning(d=2,dp=1)", engine=engine).agreement is False
    assert damage


def test_a_perturbed_formula_is_noticed(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    original = counting.generic_ed_degree
    monkeypatch.setattr(counting, "generic_ed_degree", lambda *a: original(*a) + 1)
    assert critical_points("linear(widths=[2,1,2])", engine=engine).agreement is False


def test_a_wrong_network_is_noticed(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    # the template sees only the symmetric part of A: fewer functions, and fibers of positive dimension in the chart
    right, wrong = "else W#0;", "else W#0 + transpose W#0;"
    damage = _damaged(monkeypatch, "critical_points", right, wrong)
    assert critical_points("lightning(d=2,dp=1)", engine=engine).agreement is False
    assert damage


def test_a_wrong_count_of_real_roots_is_noticed(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setattr("m2bridge.questions.critical_points.real.sturm_count", lambda polynomial: 1)
    answer = critical_points("linear(widths=[2,1,2])", metric="bombieri", real=True, engine=engine)
    assert answer.agreement is False


def test_the_second_prime_divides_nothing_given() -> None:
    model = parse_spec(f"map:x,y->{LARGEST_MACAULAY2_PRIME}*x;x*y;y")
    loss = metric_loss(model, "generic", 0, 0, small=True)
    context = Context(engine=False, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    counter = counting.Counter(context, loss, 32003)
    source = ExpandedMap(model, 32003, 0)
    assert counter.other_primes(source, LARGEST_MACAULAY2_PRIME)[0] < LARGEST_MACAULAY2_PRIME


def test_an_undecided_answer_is_called_undecided(answered: Answers) -> None:
    """Without a count, the answer is the number from Chern classes, if their hypotheses were checked, or undecided."""
    answer = answered(critical_points, "linear(widths=[2,1,2])")
    stopped = replace(answer, regular=None, limit="stopped by its time limit")
    assert stopped.view().answer.startswith("6 ")
    assert "Chern classes" in stopped.view().answer
    nothing = replace(stopped, evidence=()).view()
    assert f"({stopped.limit})" in nothing.answer
    assert not nothing.decided


@pytest.mark.parametrize(
    ("spec", "regular", "on_singular"),
    [
        ("map:t->t;t^2;t^3", 5, 0),  # the derivative of a general polynomial of degree 6
        ("map:t->t^2;t^3;t^4", 6, 1),  # of degree 8 and without a linear term: one root is the cusp
        ("map:t->t^2;1;t^3", 4, 1),
    ],
)
def test_curves_of_large_codimension(spec: str, regular: int, on_singular: int, answered: Answers) -> None:
    answer = answered(critical_points, spec)
    assert answer.regular == regular
    assert answer.singular is not None
    assert [stratum.count for stratum in answer.singular] == [on_singular]
