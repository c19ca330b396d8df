"""Families: one definition, every arithmetic; derivatives, gradings, symmetries and the paper's equations."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, nmod_mat

from m2bridge.errors import InputError, NotPolynomialError, OutOfReachError
from m2bridge.families import (
    DeepLightning,
    Lightning,
    Mod,
    Model,
    Softmax,
    from_callable,
    jacobian,
    parse_spec,
    symbolic_map,
)
from m2bridge.families.catalogue import describe, span_dim
from m2bridge.families.symbolic import symbolic_weights
from m2bridge.families.target_grading import target_grading
from m2bridge.families.virtual import equation_11, equation_12, virtual_weights
from m2bridge.frontends.polynomial_programs import polynomial_program
from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import FloatArithmetic, PrimeFieldArithmetic
from m2bridge.programs.evaluation import GivenArrays, run, unit_directions
from m2bridge.programs.run import Lettered, aligned, evaluate, tangents
from tests.marking import slow_except

POLYNOMIAL = [
    "lightning(d=2,dp=1,a=2,t=2)",
    "lightning(d=3,dp=2,a=2,t=2)",
    "lightning(d=2,dp=2,a=1,t=3,coordinates=full)",
    "lightning(d=3,dp=2,a=2,t=2,parametrization=attention)",
    "lightning(d=2,dp=1,a=2,t=1)",
    "deep-lightning(d=[2,2,2],a=[2,1],t=2)",
    "deep-lightning(d=[2,2,1],a=[1,2],t=2,parametrization=attention)",
    "deep-lightning(d=[2,2,2],t=2,parametrization=virtual)",
    "deep-lightning(d=[3,2,2],t=1,parametrization=virtual)",
    "deep-lightning(d=[2,2,2],t=1,heads=[2,1])",
    "multi-head(d=2,dp=2,heads=2,a=1)",
    "multi-head(d=2,dp=2,heads=3,parametrization=attention)",
    "skip-lightning(d=[2,2,2],a=[1,2],t=1)",
    "skip-lightning(d=[2,2],t=2,parametrization=attention,heads=2)",
    "mlp(widths=[2,3,2],r=2)",
    "mlp(widths=[2,2,2,1],r=2)",
    "mlp(widths=[2,3,2],r=1)",
    "mlp(widths=[3,2],r=2)",
    "convolution(filters=[3,2,2],strides=[2,1,1],r=2)",
    "convolution(filters=[2,3],r=3)",
    "linear(widths=[3,2,3])",
]
PRIMES = (32003, 8388593)
QUICK = {
    "lightning(d=2,dp=1,a=2,t=2)",
    "lightning(d=3,dp=2,a=2,t=2,parametrization=attention)",
    "deep-lightning(d=[3,2,2],t=1,parametrization=virtual)",
    "multi-head(d=2,dp=2,heads=2,a=1)",
    "mlp(widths=[2,3,2],r=2)",
    "convolution(filters=[2,3],r=3)",
    "linear(widths=[3,2,3])",
}
"""One of each family whose expansion is small."""
FEW = slow_except(QUICK, POLYNOMIAL)


def residues(model: Model, p: int, seed: int = 0) -> dict[str, Mod]:
    drawn = model.draw_weights(np.random.default_rng(seed), p)
    return {name: Mod(value, p) for name, value in drawn.items()}


def forward_jacobian(model: Model, weights: dict[str, Mod], inputs: np.ndarray, p: int) -> np.ndarray:
    """The Jacobian of the outputs by the forward rules, one direction for each weight."""
    program, arithmetic = model.program, PrimeFieldArithmetic(field_of(p))
    given = {name: Lettered("", weight.data) for name, weight in weights.items()}
    given |= {name: Lettered("N", arithmetic.integers(inputs)) for name in program.inputs}
    values = evaluate(program, arithmetic, given)
    moved = tangents(program, arithmetic, values, unit_directions(program, arithmetic))
    output = moved[program.outputs[0][1]]
    assert output is not None
    array = arithmetic.field.canonical(aligned(output, "NT", len(output.core)))
    return (
        array.reshape(len(inputs), model.parameter_count, -1)
        .swapaxes(1, 2)
        .reshape(-1, model.parameter_count)
    )


def rank(table: np.ndarray, p: int) -> int:
    return int(nmod_mat(*table.shape, table.reshape(-1).tolist(), p).rank())


@pytest.mark.parametrize("spec", FEW)
def test_the_coordinates_are_the_coefficients_of_the_network(spec: str) -> None:
    """The full coordinates, summed with monomials of an input, give the network's output there."""
    model = parse_spec(spec)
    p = 32003
    weights = residues(model, p)
    assert model.coordinates(weights).shape == (model.coordinate_count,)
    assert len(model.coordinate_names) == len(set(model.coordinate_names)) == model.coordinate_count
    if getattr(model, "coordinate_system", "full") == "segre":
        return
    X = np.random.default_rng(1).integers(0, p, model.input_shape)
    flat = X.T.reshape(-1)
    monomials = [{tuple(int(e) for e in row): 1} for row in model.monomials]  # type: ignore[attr-defined]
    values = run(polynomial_program(monomials, {"x": (len(flat),)}), {"x": Mod(flat, p)})
    table = model.coordinates(weights).reshape(-1, len(monomials))
    assert (table @ values).values.tolist() == model.forward(weights, Mod(X, p)).values.reshape(-1).tolist()


@pytest.mark.parametrize("parametrization", ["weights", "attention"])
def test_segre_coordinates_are_coefficients_of_the_network(parametrization: str) -> None:
    sizes = {"d": 3, "dp": 2, "a": 2, "t": 2, "parametrization": parametrization}
    segre, full = Lightning(**sizes), Lightning(**sizes, coordinate_system="full")  # type: ignore[arg-type]
    weights = residues(segre, 32003)
    by_name = dict(zip(full.coordinate_names, full.coordinates(weights).values.tolist(), strict=True))
    assert [by_name[name] for name in segre.coordinate_names] == segre.coordinates(weights).values.tolist()


@pytest.mark.parametrize("spec", FEW)
def test_batches_of_weights_and_inputs(spec: str) -> None:
    model, p = parse_spec(spec), 101
    rng = np.random.default_rng(2)
    drawn = [model.draw_weights(rng, p) for _ in range(3)]
    batch = {name: Mod(np.stack([w[name] for w in drawn]), p) for name in model.parameters}
    rows = model.coordinates(batch).values
    flat = model.flatten(batch)
    assert flat.shape == (3, model.parameter_count)
    for i, weights in enumerate(drawn):
        single = {name: Mod(value, p) for name, value in weights.items()}
        assert model.coordinates(single).values.tolist() == rows[i].tolist()
        assert model.flatten(single) == flat[i]
        assert all(model.unflatten(flat[i])[name] == single[name] for name in single)


@pytest.mark.parametrize("constant", [0, 5])
def test_a_batch_of_weights_of_a_constant_network_has_a_point_for_each(constant: int) -> None:
    model = parse_spec(f"program:%0 = weight w [2];%1 = input x [2];%2 = constant [1] {constant};output y %2")
    weights = {"w": Mod(np.arange(6).reshape(3, 2), 101)}
    assert model.coordinates(weights).values.tolist() == [[constant]] * 3
    assert model.coordinate_jacobian(weights).values.tolist() == [[[0, 0]]] * 3


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("spec", FEW)
def test_jacobians_are_the_formal_derivatives(spec: str, p: int) -> None:
    """Reverse mode equals forward mode in F_p, for outputs and (below) for the symbolic derivatives of
    coordinates.
    """
    model = parse_spec(spec)
    weights = residues(model, p)
    X = np.random.default_rng(3).integers(0, p, (3, *(model.input_shape or ())))
    values, matrix = jacobian(model, weights, X, p)
    assert (model.forward(weights, Mod(X, p)).values.reshape(-1) == values).all()
    assert (matrix == forward_jacobian(model, weights, X, p)).all()


CHEAP = [spec for spec in POLYNOMIAL if "deep" not in spec] + [
    "deep-lightning(d=[1,2,1],t=1)",
    "deep-lightning(d=[2,1,1],a=[2,1],t=1,parametrization=attention)",
    "deep-lightning(d=[2,2,2],t=1,parametrization=virtual)",
    "deep-lightning(d=[1,1,1],t=2,heads=[2,1])",
]
FEW_CHEAP = slow_except({"deep-lightning(d=[1,2,1],t=1)"} | QUICK & set(CHEAP), CHEAP)


@pytest.mark.parametrize("spec", FEW_CHEAP)
def test_jacobians_agree_with_symbolic_derivatives(spec: str) -> None:
    model, p = parse_spec(spec), 32003
    weights = residues(model, p)
    system = polynomial_program(symbolic_map(model), model.parameters)
    values, matrix = jacobian(model, weights, p=p)
    assert (run(system, weights).values == values).all()
    arrays = GivenArrays(system, weights, derivative=True)
    assert (arrays.matrix(arrays.values()).values == matrix).all()


@pytest.mark.parametrize("spec", [*POLYNOMIAL, "softmax(d=[3,2,3],a=[2,1],t=3)", "softmax(d=[2,2],t=2)"])
def test_jacobians_agree_with_finite_differences(spec: str) -> None:
    model = parse_spec(spec)
    rng = np.random.default_rng(4)
    weights = model.draw_real_weights(rng)
    X = rng.standard_normal((3, *(model.input_shape or ())))
    values, matrix = jacobian(model, weights, X)
    point = model.flatten(weights)
    direction = rng.standard_normal(point.shape)
    direction /= np.linalg.norm(direction)
    step = 1e-5

    def at(s: float) -> np.ndarray:
        return np.asarray(model.forward(model.unflatten(point + s * direction), X)).reshape(-1)

    difference = (at(step) - at(-step)) / (2 * step)
    assert np.allclose(values, at(0))
    scale = np.abs(matrix).max() + np.abs(at(0)).max() + 1
    assert np.abs(matrix @ direction - difference).max() < 1e-5 * scale


@pytest.mark.parametrize("spec", FEW_CHEAP)
def test_symmetries_are_polynomial_identities(spec: str) -> None:
    """A proof for the size at hand: the derivative of every coordinate along every generator is the zero
    polynomial.
    """
    model = parse_spec(spec)
    weights, _ = symbolic_weights(model)
    coordinates = model.coordinates(weights)
    for symmetry in model.knowledge.symmetries:
        generators = symmetry.generators(weights)
        assert generators.shape == (symmetry.dim, model.parameter_count)
        for f in coordinates:
            gradient = [f.derivative(j) for j in range(model.parameter_count)]
            for vector in generators:
                assert sum(g * d for g, d in zip(vector, gradient, strict=True)) == 0, symmetry.name


@pytest.mark.parametrize("spec", FEW)
def test_symmetries_hold_at_random_points(spec: str) -> None:
    model, p = parse_spec(spec), 32003
    weights = residues(model, p)
    _, matrix = jacobian(model, weights, p=p)
    for symmetry in model.knowledge.symmetries:
        generators = symmetry.generators(weights)
        assert rank(generators.values, p) > 0
        assert not (Mod(matrix, p) @ generators.mT).values.any(), symmetry.name


def test_symmetries_of_softmax_leave_the_virtual_weights_alone() -> None:
    """The network depends on (M, L) only; their derivatives along the generators are zero polynomials."""
    model = Softmax(d=(2, 2, 1), a=(1, 2), t=2)
    weights, _ = symbolic_weights(model)
    attention = [model.attention(weights, i) for i in (1, 2)]
    M, L = virtual_weights(attention, [weights["V1"], weights["V2"]])
    entries = [entry for matrix in (*M, L) for entry in matrix.reshape(-1)]
    assert [symmetry.group for symmetry in model.knowledge.symmetries] == ["GL(1)", "GL(2)", "GL(2)"]
    for symmetry in model.knowledge.symmetries:
        for vector in symmetry.generators(weights):
            for f in entries:
                assert sum(g * f.derivative(j) for j, g in enumerate(vector)) == 0


@pytest.mark.parametrize("spec", FEW)
def test_gradings_move_coordinates_by_characters(spec: str) -> None:
    """Each row is a one-parameter group: some characters of the weights give every monomial of a coordinate its character."""
    model = parse_spec(spec)
    assert target_grading(model) is not None
    monomials = [(e, j) for j, f in enumerate(symbolic_map(model)) for e in f]
    exponents = np.array([e for e, _ in monomials], dtype=object)
    columns = [j for _, j in monomials]
    rank = rank_over_q(exponents)
    assert rank_over_q(np.hstack([exponents, target_grading(model)[:, columns].T.astype(object)])) == rank


def test_a_network_without_gradings_has_an_empty_one() -> None:
    model = from_callable(lambda W, x: W @ x + x + 1 + sum(W), {"W": (2, 2)}, inputs={"x": (2,)})
    assert target_grading(model) is not None
    assert target_grading(model).shape == (0, model.coordinate_count)


@pytest.mark.parametrize(("d", "t"), [((2, 2, 2), 2), ((2, 3, 1), 2), ((1, 2, 1, 2), 1), ((2, 1, 2), 3)])
def test_composition_equals_equations_11_and_12(d: tuple[int, ...], t: int) -> None:
    """At random points over F_p: degree at most 27 in few variables, so an accident has probability below 1e-5."""
    p = 8388593
    model = DeepLightning(d=d, t=t, parametrization="attention")
    weights = residues(model, p)
    X = Mod(np.random.default_rng(5).integers(0, p, (d[0], t)), p)
    layers = range(1, model.layers + 1)
    M, L = virtual_weights([weights[f"A{i}"] for i in layers], [weights[f"V{i}"] for i in layers])
    direct = model.forward(weights, X)
    assert equation_11(M, L, X) == direct
    for k in range(t):
        assert equation_12(M, L, X, k) == direct[:, k : k + 1]


def test_composition_equals_equations_11_and_12_as_polynomials() -> None:
    model = DeepLightning(d=(2, 1, 1), t=2, parametrization="attention")
    weights, extra = symbolic_weights(model, extra=4)
    X = np.array([None] * 4, dtype=object)
    X[:] = extra
    X = X.reshape(2, 2)
    M, L = virtual_weights([weights["A1"], weights["A2"]], [weights["V1"], weights["V2"]])
    direct = model.forward(weights, X)
    assert (equation_11(M, L, X) == direct).all()
    assert all((equation_12(M, L, X, k) == direct[:, k : k + 1]).all() for k in range(2))


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=3,dp=2,a=2,parametrization=attention)",
        "deep-lightning(d=[3,2,3],a=[2,1],parametrization=virtual)",
    ],
)
def test_constrained_weights_are_drawn_on_their_variety(spec: str) -> None:
    model, p = parse_spec(spec), 101
    assert model.free is not model
    assert model.parameter_dim < model.parameter_count
    weights = residues(model, p)
    attention = weights["A"] if "A" in weights else weights["M1"]
    assert rank(attention.values, p) == 2
    assert model.free.coordinate_count == model.coordinate_count
    real = model.draw_real_weights(np.random.default_rng(0))
    assert np.linalg.matrix_rank(real["A"] if "A" in real else real["M1"]) == 2


def test_dimension_of_virtual_weights_of_a_bottleneck() -> None:
    # Lemma 3.5: parameters of (A, V) minus GL(delta) between layers; d=(3,2,3), a=(3,2): 9+4+6+6-4 = 21
    assert parse_spec("deep-lightning(d=[3,2,3],parametrization=virtual)").parameter_dim == 21


def balls_of(values: np.ndarray) -> np.ndarray:
    return np.vectorize(arb, otypes=[object])(values)


def test_softmax_over_balls_contains_the_float_values_and_rows_are_averages() -> None:
    model = Softmax(d=(2, 2, 2), t=3)
    rng = np.random.default_rng(6)
    weights, X = model.draw_real_weights(rng), rng.standard_normal((2, 3))
    floats = model.forward(weights, X)
    balls = model.forward({name: balls_of(value) for name, value in weights.items()}, balls_of(X))
    assert np.allclose(floats, [[float(entry.mid()) for entry in row] for row in balls])
    same = np.repeat(X[:, :1], 3, axis=1)  # equal tokens: every average is the token itself
    assert np.allclose(model.forward(weights, same), weights["V2"] @ weights["V1"] @ same)


def test_softmax_pairs_tokens_as_equation_15_does() -> None:
    model = Softmax(d=(2, 1), t=2)
    weights = model.draw_real_weights(np.random.default_rng(7))
    X = np.random.default_rng(8).standard_normal((2, 2))
    A, V = weights["K1"].T @ weights["Q1"], weights["V1"]
    expected = np.zeros((1, 2))
    for i in range(2):
        scores = [np.exp(X[:, i] @ A @ X[:, j]) for j in range(2)]
        expected[:, i] = sum(s * (V @ X[:, j]) for j, s in enumerate(scores)) / sum(scores)
    assert np.allclose(model.forward(weights, X), expected)


def test_softmax_survives_large_scores() -> None:
    model = Softmax(d=(2, 2), t=2)
    weights = {name: 100 * value for name, value in model.draw_real_weights(np.random.default_rng(0)).items()}
    X = np.random.default_rng(1).standard_normal((1, 2, 2))
    assert np.isfinite(model.forward(weights, X)).all()
    values, matrix = jacobian(model, weights, X)
    assert np.allclose(values, model.forward(weights, X).reshape(-1))
    assert np.isfinite(matrix).all()
    given = {name: Lettered("", value) for name, value in weights.items()} | {"X": Lettered("N", X)}
    known = evaluate(model.program, FloatArithmetic(), given)
    moved = tangents(
        model.program, FloatArithmetic(), known, unit_directions(model.program, FloatArithmetic())
    )
    assert all(np.isfinite(item.array).all() for item in moved if item is not None)


def test_constrained_virtual_weights_have_no_macaulay2_twin() -> None:
    with pytest.raises(InputError, match="parametrization=weights"):
        parse_spec("deep-lightning(d=[3,2,3],parametrization=virtual)").m2_parameters  # noqa: B018


@pytest.mark.parametrize("question", ["coordinates", "coordinate_names", "m2_partial", "m2_parameters"])
def test_softmax_is_an_error_for_algebraic_questions(question: str) -> None:
    model = Softmax(d=(2, 2), t=2)
    with pytest.raises(NotPolynomialError, match="polynomial"):
        model.coordinates({}) if question == "coordinates" else getattr(model, question)
    with pytest.raises(NotPolynomialError, match="exp"):
        model.forward(residues(model, 101), Mod(np.ones((2, 2), dtype=int), 101))


def test_inputs_of_the_wrong_shape_and_huge_targets_are_refused() -> None:
    model = parse_spec("linear(widths=[3,2])")
    with pytest.raises(InputError, match="shape"):
        jacobian(model, residues(model, 101), np.ones((4, 2), dtype=int), 101)
    huge = parse_spec("deep-lightning(d=[8,8,8,8],t=8)")
    with pytest.raises(OutOfReachError, match="coordinates"):
        huge.coordinates({})
    cubic = parse_spec("map:s,t->s^2;t")
    with pytest.raises(InputError, match="inputs"):
        jacobian(cubic, residues(cubic, 101), np.ones((1, 2), dtype=int), 101)


def test_span_and_description() -> None:
    full = parse_spec("lightning(d=2,dp=1,coordinates=full)")
    assert (full.ambient_dim, span_dim(full)) == (40, 6)
    assert span_dim(parse_spec("deep-lightning(d=[3,3,3])")) is None
    document = describe(parse_spec("lightning(d=3,dp=1,a=2,parametrization=attention)"))
    assert (document["parameter_count"], document["parameter_dim"], document["formula"]["value"]) == (
        12,
        11,
        10,
    )
    assert describe(Softmax(d=(2, 2)))["ambient_dim"] is None
