"""The user's own maps: from files, from SymPy, from programs; what is refused, and how."""

from __future__ import annotations

import json
import math
import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from m2bridge import symmetries
from m2bridge.errors import (
    InputError,
    M2BridgeError,
    NotPolynomialError,
    OutOfReachError,
    ParseError,
    SpecError,
)
from m2bridge.families import (
    Lightning,
    Mod,
    from_callable,
    from_sympy,
    jacobian,
    parse_spec,
    read_map,
)
from m2bridge.families.polynomial_map import by_variable, in_variables
from m2bridge.families.target_grading import target_grading
from m2bridge.frontends.polynomials import polynomial_text
from m2bridge.programs import ProgramError

CUBIC = 'name = "twisted cubic"\nvariables = ["s", "t"]\npolynomials = ["s^3", "s^2*t", "s*t^2", "t^3"]\n'


def test_a_toml_and_a_json_file(tmp_path: Path) -> None:
    toml, other = tmp_path / "cubic.toml", tmp_path / "cubic.json"
    toml.write_text(CUBIC)
    other.write_text(json.dumps({"variables": ["s", "t"], "polynomials": ["s^3", "s^2*t", "s*t^2", "t^3"]}))
    model = parse_spec(f"file:{toml}")
    assert model.spec == "map:s,t->s^3;s^2*t;s*t^2;t^3"  # not the file: a record must not depend on it
    assert parse_spec(model.spec) == model
    assert model.title == "twisted cubic, 4 polynomials in 2 variables"
    assert model.coordinate_names == ("s^3", "s^2*t", "s*t^2", "t^3")
    assert read_map(other).polynomials == model.polynomials  # type: ignore[attr-defined]
    assert model.coordinates({"x": Mod([2, 3], 101)}).values.tolist() == [8, 12, 18, 27]
    assert target_grading(model) is not None
    assert np.linalg.matrix_rank(target_grading(model)) == 2


@pytest.mark.parametrize(
    ("name", "text", "message", "line"),
    [
        ("a.toml", CUBIC.replace("s^2*t", "s^2*__import__('os')"), "'_'", 3),
        ("a.toml", CUBIC.replace("s^2*t", "s^2*u"), "'u'", 3),
        ("a.toml", CUBIC.replace("s^2*t", "s^2*(t"), "'('", 3),
        ("a.toml", CUBIC.replace("t^3", "t^1000000000"), "above 1000", 3),
        ("a.toml", CUBIC.replace("t^3", "t^(1/2)"), "sign", 3),
        ("a.toml", CUBIC.replace("polynomials", "polynomial"), "polynomials", 3),
        ("a.toml", CUBIC.replace('"s", "t"', '"s", "s"'), "twice", 2),
        ("a.toml", CUBIC.replace('"s", "t"', '"s", "t+1"'), "name", 2),
        ("a.toml", CUBIC.replace('["s", "t"]', "3"), "variables", 2),
        ("a.toml", 'variables = ["s"]\n', "'polynomials'", 1),
        ("a.json", '{"variables": ["s"],\n "polynomials": [s]}', "Expecting value", 2),
        ("a.json", "[1]", "object", None),
        ("a.json", "[" * 100_000, "nested", 1),
        ("a.toml", "variables = [\n", "end", None),
    ],
)
def test_bad_files_are_one_line_errors_with_a_place(
    tmp_path: Path, name: str, text: str, message: str, line: int | None
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ParseError) as caught:
        read_map(file)
    assert message in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    if line is not None:
        assert caught.value.line == line


def test_large_missing_and_foreign_files(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * 10_000_000)
    with pytest.raises(InputError, match="10,000,000 bytes"):
        read_map(large)
    with pytest.raises(InputError, match="file"):
        read_map(tmp_path / "none.toml")
    (tmp_path / "code.py").write_text("print(1)")
    with pytest.raises(InputError, match=r"\.toml"):
        read_map(tmp_path / "code.py")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(ParseError, match="UTF-8"):
        read_map(tmp_path / "latin.toml")


def test_sympy_polynomials() -> None:
    s, t = sympy.symbols("s t")
    model = from_sympy([s**3, (s + t) ** 2 / 2, sympy.Integer(1)], [s, t])
    assert model.spec == "map:s,t->s^3;1/2*s^2+s*t+1/2*t^2;1"
    assert parse_spec(model.spec) == model


@pytest.mark.parametrize(
    "expression",
    [
        sympy.exp(sympy.Symbol("s")),
        sympy.sqrt(2) * sympy.Symbol("s"),
        sympy.Symbol("u"),
        0.1 * sympy.Symbol("s"),
        "s^2",
    ],
)
def test_other_sympy_expressions_are_refused(expression: Any) -> None:
    with pytest.raises(M2BridgeError, match="polynomial 1") as caught:
        from_sympy([expression], [sympy.Symbol("s")])
    assert isinstance(caught.value, (NotPolynomialError, InputError))
    assert "\n" not in str(caught.value)


def test_a_quotient_of_sympy_is_a_rational_map() -> None:
    s = sympy.Symbol("s")
    assert from_sympy([1 / s], [s]).spec == "map:s->1/s"


def attention(X: Any, Q: Any, K: Any, V: Any) -> Any:
    """A network as people write it."""
    scores = (K @ X).T @ (Q @ X)
    return V @ X @ scores


def test_a_traced_network_equals_the_family() -> None:
    traced = from_callable(attention, {"Q": (2, 3), "K": (2, 3), "V": (1, 3)}, inputs={"X": (3, 2)})
    family = Lightning(d=3, dp=1, a=2, coordinate_system="full")
    p, rng = 32003, np.random.default_rng(1)
    weights = {name: Mod(value, p) for name, value in family.draw_weights(rng, p).items()}
    ours = dict(zip(traced.coordinate_names, traced.coordinates(weights).values.tolist(), strict=True))
    theirs = dict(zip(family.coordinate_names, family.coordinates(weights).values.tolist(), strict=True))
    assert ours.items() <= theirs.items()
    assert all(theirs[name] == 0 for name in theirs.keys() - ours.keys())
    X = rng.integers(0, p, (2, 5, 3, 2))
    assert traced.forward(weights, Mod(X, p)) == family.forward(weights, Mod(X, p))
    flat = X.reshape(10, 3, 2)
    for ours_, theirs_ in zip(
        jacobian(traced, weights, flat, p), jacobian(family, weights, flat, p), strict=True
    ):
        assert (ours_ == theirs_).all()
    real = family.draw_real_weights(rng)
    Y = rng.standard_normal((4, 3, 2))
    assert np.allclose(traced.forward(real, Y), family.forward(real, Y))


def many_operations(X: Any, W: Any, b: Any) -> Any:
    """Stacks of matrices, indices, slices, sums, constants and concatenation: what must not be mixed up with
    batches.
    """
    heads = W @ X  # (3, 2, 2) @ (2, 2): a stack against one input
    first, *others = heads
    total = first * Fraction(1, 2) + sum(others) ** 2
    row = np.concatenate([total[0], X[1]]) - 0.5 * np.concatenate([b, b])
    column = np.stack([X[:, 0], b], axis=1) @ np.array([1, -2])
    return np.concatenate([row, np.square(column), (W * W).sum(axis=0)[1], W[0, 0] @ X, np.sum(X).reshape(1)])


def test_a_traced_network_gets_one_input_at_a_time() -> None:
    shapes = {"W": (3, 2, 2), "b": (2,)}
    model = from_callable(many_operations, shapes, inputs={"X": (2, 2)})
    assert model.output_shape == (11,)
    rng = np.random.default_rng(2)
    real = model.draw_real_weights(rng)
    X = rng.standard_normal(
        (3, 2, 2)
    )  # as many inputs as matrices in the stack: a batch must not meet the stack
    expected = [many_operations(x, real["W"], real["b"]) for x in X]
    assert np.allclose(model.forward(real, X), np.array(expected, dtype=float))
    p = 10007
    weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
    points = rng.integers(0, p, (3, 2, 2))
    values, matrix = jacobian(model, weights, points, p)
    assert (model.forward(weights, Mod(points, p)).values.reshape(-1) == values).all()
    # the coordinates and their formal derivatives, summed with monomials, are the same values and Jacobian
    from m2bridge.frontends.polynomial_programs import polynomial_program
    from m2bridge.programs.evaluation import run

    system = polynomial_program([{tuple(map(int, m)): 1} for m in model.monomials], {"x": (4,)})
    monomials = run(system, {"x": Mod(points.swapaxes(1, 2).reshape(3, 4), p)})
    coefficients = model.coordinates(weights).reshape(11, -1)
    assert ((coefficients @ monomials.mT).values.T.reshape(-1) == values).all()
    derivative = Mod(jacobian(model, weights, p=p)[1].reshape(11, len(model.monomials), 14), p)
    for i in range(3):
        slice_ = (monomials[i : i + 1] @ derivative).values[:, 0]
        assert (slice_ == matrix[11 * i : 11 * (i + 1)]).all()


def test_a_function_without_inputs_gives_coordinates() -> None:
    model = from_callable(lambda u, v: u @ v.T, {"u": (2, 1), "v": (2, 1)}, name="rank one")
    assert model.coordinate_names == ("y[1,1]", "y[1,2]", "y[2,1]", "y[2,2]")
    weights = {"u": Mod([[1], [2]], 101), "v": Mod([[3], [4]], 101)}
    assert model.coordinates(weights).values.tolist() == [3, 4, 6, 8]
    with pytest.raises(TypeError, match="inputs"):
        model.forward(weights, Mod([1], 101))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, A: math.exp(X[0, 0]) * A, "use NumPy's functions"),
        (lambda X, A: np.cbrt(A @ X), "np.cbrt"),
        (lambda X, A: X / 0, "zero"),
        (lambda X, A: np.maximum(A @ X, 0), "maximum"),
        (lambda X, A: X if X[0, 0] > 0 else A, "branch"),
        (lambda X, A: X**0.3, "exponent"),
        (lambda X, A: np.linalg.inv(X), "inv"),
        (lambda X, A: math.inf * X, "inf"),
        (lambda X, A: X @ np.ones((7, 7)), "fit"),
        (lambda X, A: None, "return"),
        (lambda X: X, "keyword"),
    ],
)
def test_programs_that_are_not_polynomial_are_refused(function: Any, message: str) -> None:
    with pytest.raises((NotPolynomialError, InputError)) as caught:
        from_callable(function, {"A": (2, 2)}, inputs={"X": (2, 2)})
    assert (
        message in caught.value.message.rpartition("\n")[2]
    )  # the line before quotes the source, and so `message`


@pytest.mark.parametrize(
    ("function", "by_hand", "polynomial"),
    [
        (lambda X, A: np.exp(A @ X), lambda X, A: np.exp(A @ X), False),
        (lambda X, A: X / A, lambda X, A: X / A, False),
        (lambda X, A: 1 / (X * A), lambda X, A: 1 / (X * A), False),
        (lambda X, A: A * X**-1, lambda X, A: A / X, False),
        (lambda X, A: A @ X / 2, lambda X, A: A @ X / 2, True),
        (lambda X, A: 0.1 * A @ X, lambda X, A: 0.1 * A @ X, True),
        (lambda X, A: 3, lambda X, A: 3, True),
    ],
)
def test_divisions_exponentials_and_floats_are_recorded(
    function: Any, by_hand: Any, polynomial: bool
) -> None:
    model = from_callable(function, {"A": (2, 2)}, inputs={"X": (2, 2)})
    assert model.polynomial is polynomial
    rng = np.random.default_rng(0)
    A, X = rng.uniform(1, 2, (2, 2)), rng.uniform(1, 2, (3, 2, 2))
    assert np.allclose(model.forward({"A": A}, X), [by_hand(x, A) for x in X])


def test_a_float_is_converted_exactly_with_a_note() -> None:
    model = from_callable(lambda x, c: 0.1 * c * x, {"c": ()}, inputs={"x": ()})
    p = 10007
    found = model.forward({"c": Mod(np.array(1), p)}, Mod(np.array(1), p)).values
    assert int(found) == 3602879701896397 * pow(2, -55, p) % p
    assert "3602879701896397/36028797018963968" in model.notes[0]
    assert from_callable(lambda x, c: 0.5 * c * x, {"c": ()}, inputs={"x": ()}).notes == ()


def test_several_inputs_are_one_vector() -> None:
    model = from_callable(
        lambda X, Y, A: X @ A @ Y, {"A": (2, 3)}, inputs={"X": (2, 2), "Y": (3, 1)}, name="pairing"
    )
    assert (model.input_shape, model.output_shape) == ((7,), (2, 1))
    rng = np.random.default_rng(1)
    A, X, Y = rng.standard_normal((2, 3)), rng.standard_normal((5, 2, 2)), rng.standard_normal((5, 3, 1))
    both = np.concatenate([X.reshape(5, 4), Y.reshape(5, 3)], axis=1)
    assert np.allclose(model.forward({"A": A}, both), X @ A @ Y)
    assert model.coordinate_count == 2 * len(model.monomials)


def test_single_weights_are_coefficients_too() -> None:
    """A weight w[0] is a single polynomial, which NumPy would take apart if it were not kept in an array."""
    model = from_callable(lambda w, x: w[0] * x + w[1] * x[::-1] ** 2, {"w": (2,)}, inputs={"x": (2,)})
    shown = [polynomial_text(dict(terms), ["a", "b"]) for terms in model.polynomials]
    found = dict(zip(model.coordinate_names, shown, strict=True))
    assert {name: text for name, text in found.items() if text != "0"} == {
        "y[1]: x[1]": "a", "y[1]: x[2]^2": "b", "y[2]: x[2]": "a", "y[2]: x[1]^2": "b",
    }  # fmt: skip


def test_shapes_of_a_recorded_network_are_checked() -> None:
    with pytest.raises(InputError, match="'Y'"):
        from_callable(attention, {"Q": (2, 2)}, inputs={"X": (2, 2), "Y": (1, 1)})
    with pytest.raises(ProgramError, match="empty"):
        from_callable(attention, {"Q": (0, 2)}, inputs={"X": (2, 2)})
    large = from_callable(lambda W: W, {"W": (30, 30)})
    with pytest.raises(OutOfReachError, match="900 variables"):
        large.m2_parameters  # noqa: B018
    with pytest.raises(InputError, match=r"missing.* W"):
        large.coordinates({})
    assert large.coordinates({"W": np.arange(900).reshape(30, 30)}).tolist() == list(range(900))


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "traced_network.py"
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert "dimension: 10" in printed
    assert "softmax" in printed
    assert "np.maximum" in printed


def test_an_inline_map_has_limits_and_subscripts() -> None:
    assert parse_spec("map: x_(0,1) , y ->x_(0,1)*y").coordinate_names == ("x_(0,1)*y",)
    with pytest.raises(SpecError, match="characters"):
        parse_spec("map:x->" + "x+" * 600_000 + "x")


def test_answers_about_a_map_call_its_variables_by_their_names() -> None:
    answer = symmetries("map:p,q,r,s->p*r+q*s;p*r*q*s")
    assert {field.name for field in answer.fields} == {
        "scaling: p by lambda, r by lambda^-1",
        "scaling: q by lambda, s by lambda^-1",
    }
    assert ("p", "r") in {group.acts_on for group in answer.finite}
    assert symmetries("map:u,v->u*v;u+v").finite[0].acts_on == ("u, v",)
    assert by_variable("map:x_(0,1),y->y", {"x": [3, 4]}) == {"x_(0,1)": 3, "y": 4}
    assert in_variables("mlp(widths=[2,2])", "x[0]") == "x[0]"


def test_a_user_defined_model_is_called_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "moments.toml"
    file.write_text('name = "two moments"\nvariables = ["m", "s"]\npolynomials = ["m", "m^2+s"]\n')
    model = read_map(file)
    assert model.user.name == "two moments"
    assert parse_spec(model.spec).user.name is None
    assert parse_spec("lightning(d=2,dp=1)").user.name is None
    assert from_callable(lambda w: w**2, {"w": (2,)}, name="squares").user.name == "squares"
