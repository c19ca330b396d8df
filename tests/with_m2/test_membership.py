"""Membership in closure, complex and real image: known answers, with weights that are checked and proofs that can fail."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import records, scripts
from m2bridge.certainty import Certainty
from m2bridge.checker import verify
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.families import from_callable, parse_spec
from m2bridge.questions.membership import membership
from m2bridge.questions.membership.points import AlgebraicPoint
from m2bridge.questions.over_q import sturm_count
from tests.answering import Answers

LAYER = "lightning(d=2,dp=1)"
KNOWN: list[tuple[str, Any, tuple[bool, bool, bool]]] = [
    # a square is real only when it is not negative
    ("map:t->t^2", [-1], (True, True, False)),
    ("map:t->t^2", [2], (True, True, True)),
    ("map:t->t^2", ["9/4"], (True, True, True)),
    # larger than any float
    ("map:t->t^2", [10**400], (True, True, True)),
    # s^2 + t^2 >= 2 |s t| for real numbers
    ("map:s,t->s^2+t^2;s*t", [1, 1], (True, True, False)),
    ("map:s,t->s^2+t^2;s*t", [2, 1], (True, True, True)),
    # the plane without the punctured line s = 0
    ("map:s,t->s;s*t", [0, 1], (True, False, False)),
    ("map:s,t->s;s*t", [0, 0], (True, True, True)),
    # the cusp y^2 = x^3: x is a square of a real number on it
    ("map:t->t^2;t^3", [1, 2], (False, False, False)),
    ("map:t->t^2;t^3", [4, -8], (True, True, True)),
    # so near to it that floats cannot tell
    ("map:t->t^2;t^3", [4, f"{8 * 10**30 + 1}/{10**30}"], (False, False, False)),
    # fibers of positive dimension: a circle of imaginary radius, and two conjugate lines that meet in a real point
    ("map:s,t->s^2+t^2", [-1], (True, True, False)),
    ("map:s,t->s^2+t^2", [0], (True, True, True)),
    # one quadric as a sum of two multiples of squares, every form is one; of one multiple, only those of rank one
    ("mlp(widths=[2,2,1],r=2)", [1, 0, 1], (True, True, True)),
    ("mlp(widths=[2,1,1],r=2)", [1, 0, 1], (False, False, False)),
    # rk A = rk V = 1, z = q (x) S with S = x^2 + y^2 definite: a product of complex linear forms, not of real ones (Theorem 3.4)
    (LAYER, [1, 0, 1, 0, 0, 0], (True, True, False)),
    (LAYER, [1, 0, -1, 0, 0, 0], (True, True, True)),
    # Whitney's umbrella x^2 = y^2 z: its handle x = y = 0 is real for z >= 0 only
    ("map:s,t->s*t;s;t^2", [0, 0, -1], (True, True, False)),
    ("map:s,t->s*t;s;t^2", [0, 0, "1/4"], (True, True, True)),
    # the cone x z = y^2 without a line
    ("map:s,t->s;s*t;s*t^2", [0, 0, 1], (True, False, False)),
    # x^2 + (x y - 1)^2 is positive for real x, y, and takes every positive value
    ("map:x,y->x^2+(x*y-1)^2", [0], (True, True, False)),
    ("map:x,y->x^2+(x*y-1)^2", ["1/100"], (True, True, True)),
    # a point, a constant coordinate, coordinates that repeat
    ("map:s->3;5", [3, 5], (True, True, True)),
    ("map:s->3;5", [3, 6], (False, False, False)),
    ("map:s->s^2;7", [-1, 7], (True, True, False)),
    ("map:s,t->s*t;s*t;s^2", [1, 1, 0], (True, False, False)),
    # sums of two cubes of binary linear forms: x^2 y is a limit of such; x^3 - 3 x y^2, with 3 real zeros, is one over CC only
    ("map:a,b,c,d->a^3+c^3;3*a^2*b+3*c^2*d;3*a*b^2+3*c*d^2;b^3+d^3", [0, 1, 0, 0], (True, False, False)),
    ("map:a,b,c,d->a^3+c^3;3*a^2*b+3*c^2*d;3*a*b^2+3*c*d^2;b^3+d^3", [1, 0, -3, 0], (True, True, False)),
    # the real part of (e1 + i e2)^(x 3): two complex terms, three real ones (its hyperdeterminant is negative); each term has two
    # scalings of its own, which no block of weights as a whole has
    ("cp(sizes=[2,2,2],rank=2)", [1, 0, 0, -1, 0, -1, -1, 0], (True, True, False)),
    # the tangent e1 e1 e2 + e1 e2 e1 + e2 e1 e1, a limit of sums of two terms and no such sum
    ("cp(sizes=[2,2,2],rank=2)", [0, 1, 1, 0, 1, 0, 0, 0], (True, False, False)),
    # a term of even weight: a scaling by s multiplies W2 by s^(-2), and cannot make -1 of 1
    ("mlp(widths=[2,1,1],r=2)", [-1, 0, 0], (True, True, True)),
    ("map:a,b->a^2*b;b", [-1, 1], (True, True, False)),
    ("map:a,b->a^2*b^2", [-1], (True, True, False)),
    # sum and product of two numbers with x^2 + y^2 = 1: u^2 = 1 + 2 v, real for u^2 <= 2
]  # fmt: skip


@pytest.mark.parametrize(("spec", "point", "expected"), KNOWN)
def test_known_answers(
    answered: Answers, spec: str, point: list[Any], expected: tuple[bool, bool, bool]
) -> None:
    answer = answered(membership, spec, point=point)
    assert (answer.closure, answer.complex_image, answer.real_image) == expected
    assert answer.certainty.exact
    assert answer.agreement is not False, answer.conflicts
    assert records.from_document(records.to_document(answer)) == answer
    if expected[2] and max(map(Fraction, point)) < 10**300:  # the weights are what they are said to be
        model, found = parse_spec(answer.parametrization), answer.weights
        assert found is not None
        flat = [np.mean([float(Fraction(e)) for e in np.ravel(w)]) for part in found.values() for w in part]
        image = np.asarray(model.coordinates(model.unflatten(np.array(flat)))).ravel()
        assert np.allclose(image, [float(Fraction(c)) for c in point])


ONE_TOKEN = "lightning(d=2,dp=1,a=2,t=1,parametrization=attention)"


@pytest.mark.parametrize(
    ("spec", "point", "certainty", "code"),
    [
        ("map:t->t^2;t^3", [4, -8], Certainty.PROVED, 0),
        ("map:t->t^2;t^3", [4, -7], Certainty.PROVED, 0),
        ("linear(widths=[2,1,2])", [1, 0, 0, 0], Certainty.PROVED, 0),
        ("mlp(widths=[2,1,1],r=2)", [1, 0, 1], Certainty.PROVED, 0),
        # a matrix of one column, biases, an own function: the checker may number their coefficients in another way
        (ONE_TOKEN, [0, 0, 0, 0], Certainty.COMPUTED, 9),
        (ONE_TOKEN, {"weights": {"A": [[1, 1], [1, 1]], "V": [[1, 1]]}}, Certainty.COMPUTED, 9),
        ("mlp(widths=[1,1,1],r=2,bias=true)", [1, 2, 1], Certainty.COMPUTED, 9),
        (
            from_callable(lambda w, x: w[0] * x**2, {"w": (1,)}, inputs={"x": (1,)}),
            [3],
            Certainty.COMPUTED,
            9,
        ),
    ],
)
def test_only_what_the_checker_verifies_is_proved(
    engine: Engine, spec: Any, point: Any, certainty: Certainty, code: int
) -> None:
    answer = membership(spec, point=point, engine=engine)
    found, said = verify(json.dumps(records.to_document(answer)))
    assert (answer.certainty, found) == (certainty, code), said


def test_a_real_root_is_enclosed_in_an_interval_of_fractions(answered: Answers) -> None:
    answer = answered(membership, "map:t->t^2", point=[2])
    ((low, high),) = [tuple(map(Fraction, pair)) for pair in answer.weights["x"]]  # type: ignore[index]
    assert min(low**2, high**2) <= 2 <= max(low**2, high**2)
    assert high - low < Fraction(1, 10**20)


def test_complex_weights_are_given_over_a_number_field(answered: Answers) -> None:
    # x^2 + y^2 = (x + i y)(x - i y): two pairs of weights, up to the rescaling that makes an entry of V one
    answer = answered(membership, LAYER, point=[1, 0, 1, 0, 0, 0])
    assert answer.weights is None
    assert answer.algebraic is not None
    assert answer.algebraic.maps_to(parse_spec(answer.parametrization), answer.point)
    assert (len(answer.algebraic.modulus), sturm_count(answer.algebraic.polynomial)) == (3, 0)
    assert answer.algebraic.variables[4] == ("1", "0")


def test_rational_weights_stay_rational_where_weights_are_rescaled(answered: Answers) -> None:
    # x^3 + 3 x y^2 = ((x + y)^3 + (x - y)^3) / 2; with the factors 1 instead of 1/2 cube roots of 2 would be needed
    answer = answered(membership, "mlp(widths=[2,2,1],r=3)", point=[1, 0, 3, 0])
    assert answer.algebraic is None
    assert answer.weights is not None
    assert sorted(answer.weights["W2"]) == ["1/2", "1/2"]


def test_an_undecided_quantity_names_the_limit(engine: Engine) -> None:
    # not real, by |abcd| <= (a^4 + b^4 + c^4 + d^4) / 4; a distance from it has 4 * 3^5 critical points, more than are waited for
    quartic = "map:a,b,c,d,e,f->a^4+b^4+c^4+d^4+e^4+f^4+a*b*c*d"
    answer = membership(quartic, point=[-1], engine=engine, timeout=12)
    assert (answer.complex_image, answer.real_image) == (True, None)
    assert answer.limit is not None


def test_a_closed_image_needs_no_equation(answered: Answers) -> None:
    """The Veronese surface is the image of a plane without base points: what has no weights is not in its closure."""
    veronese = "map:s,t,u->s^2;s*t;s*u;t^2;t*u;u^2"
    answer = answered(membership, veronese, point=[1, 0, 0, 0, 0, 1])
    assert (answer.closure, answer.complex_image) == (False, False)
    assert any("without base points" in reason for reason in answer.reasons)
    result = answered(membership, "map:s,t->s;s*t;s*t^2", point=[0, 0, 1])  # base points where s = 0
    assert not any("without base points" in reason for reason in result.reasons)


def test_input_output_pairs(answered: Answers) -> None:
    # a x^2 = y at x = 1, 2: the outputs are in the ratio 1 : 4
    one = "mlp(widths=[1,1,1],r=2)"
    for outputs, expected in (([[3], [12]], True), ([[3], [11]], False)):
        answer = answered(membership, one, point={"inputs": [[1], [2]], "outputs": outputs})
        assert answer.real_image is expected
    with pytest.raises(InputError, match=r"2 inputs .*1 outputs"):
        answered(membership, one, point={"inputs": [[1], [2]], "outputs": [[1]]})


def test_weights_are_in_the_image_of_themselves(engine: Engine) -> None:
    answer = membership(
        "linear(widths=[2,1,2])", point={"weights": {"W1": [[1, 2]], "W2": [[3], ["1/2"]]}}, engine=engine
    )
    assert answer.real_image is True
    assert answer.point == (3, 6, Fraction(1, 2), 1)


def test_weights_are_in_the_image_where_the_script_is_stopped(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("m2bridge.questions.membership._Search._fiber", lambda *_, **__: ({}, "stopped"))
    weights = {"W1": [[1, 2]], "W2": [[3], ["1/2"]]}
    answer = membership("linear(widths=[2,1,2])", point={"weights": weights}, engine=engine)
    assert (answer.closure, answer.complex_image, answer.real_image) == (True, True, True)
    assert answer.weights == {"W1": ["1", "2"], "W2": ["3", "1/2"]}
    assert (answer.certainty, answer.limit) == (Certainty.PROVED, None)
    assert answer.agreement is not False


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "point.json"
    file.write_text("[1, 1]")
    assert main(["membership", "map:s,t->s^2+t^2;s*t", "--point", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [document[key] for key in ("closure", "complex_image", "real_image")] == [True, True, False]


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("1,2,3", "has 3 coordinates"),
        ("0.1e,2", "0.1e"),
        ("nothing.json", "nothing.json"),
        ([float("nan"), 2], "nan"),
        ('{"inputs": [1]}', "inputs"),
    ],
)
def test_points_that_are_refused(answered: Answers, point: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        answered(membership, "map:s,t->s;s*t", point=point)


def test_non_polynomial_models_are_refused(answered: Answers) -> None:
    with pytest.raises(NotPolynomialError):
        answered(membership, "softmax(d=[2,2])", point=[1])


def test_a_wrong_point_of_the_fiber_is_a_contradiction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = scripts.render

    def damaged(template: Any, *arguments: Any, **more: Any) -> Any:
        script = original(template, *arguments, **more)
        text = script.text.replace("f - numberMatrix(ring f, {c})", "f + numberMatrix(ring f, {c})")
        return type(script)(name=script.name, text=text) if template == "membership" else script

    monkeypatch.setattr(scripts, "render", damaged)
    assert membership("map:t->t^2", point=[1], engine=engine).agreement is False
    assert membership("map:s,t->s;s*t", point=[0, 1], engine=engine).agreement is False


def test_a_point_over_a_number_field_is_evaluated_exactly() -> None:
    root = AlgebraicPoint(modulus=("-2", "0", "1"), variables=(("0", "1"),))
    square = parse_spec("map:t->t^2")
    assert root.maps_to(square, [Fraction(2)])
    assert not root.maps_to(square, [Fraction(3)])
    assert len(root.real_roots()) == sturm_count(root.polynomial) == 2
