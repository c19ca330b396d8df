"""The families of everyday networks against plain definitions with loops, written here and nowhere else.

Each plain definition takes numbers of any kind. At integers it is the forward pass; its derivatives by complex steps have the
rank that the dimension question proves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from m2bridge import dimension
from m2bridge.errors import NotPolynomialError, SpecError
from m2bridge.families import FAMILIES, DeepLightning, Softmax, jacobian, parse_spec
from m2bridge.families.base import Model
from m2bridge.programs.ranks import generic_rank

Plain = Callable[[dict[str, np.ndarray], np.ndarray], Any]


def dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


def tokens_attended(
    Q: Any, K: Any, V: Any, X: Any, *, causal: bool = False, r: int = 1, softmax: bool = False
) -> Any:
    """One head, token by token; by softmax the token that asks is multiplied with K, as Equation 15 has it."""
    t = X.shape[1]
    columns = []
    for i in range(t):
        seen = range(i + 1) if causal else range(t)
        if softmax:
            shares = [np.exp(dot(K @ X[:, i], Q @ X[:, j])) for j in seen]
            shares = [share / sum(shares) for share in shares]
        else:
            shares = [dot(K @ X[:, j], Q @ X[:, i]) ** r for j in seen]
        columns.append(sum(share * (V @ X[:, j]) for share, j in zip(shares, seen, strict=True)))
    return np.stack(columns, axis=1)


def attention(**options: Any) -> Plain:
    return lambda w, X: tokens_attended(w.get("Q1", w["K1"]), w["K1"], w["V1"], X, **options)


def two_causal_layers(w: dict[str, np.ndarray], X: np.ndarray) -> Any:
    Y = tokens_attended(w["Q1"], w["K1"], w["V1"], X, causal=True)
    return tokens_attended(w["Q2"], w["K2"], w["V2"], Y, causal=True)


def two_causal_heads(w: dict[str, np.ndarray], X: np.ndarray) -> Any:
    return sum(tokens_attended(w["Q1"][h], w["K1"][h], w["V1"][h], X, causal=True, r=2) for h in (0, 1))


def two_softmax_layers(w: dict[str, np.ndarray], X: np.ndarray) -> Any:
    Y = tokens_attended(w["Q1"], w["K1"], w["V1"], X, causal=True, softmax=True)
    return tokens_attended(w["Q2"], w["K2"], w["V2"], Y, causal=True, softmax=True)


def block(heads: int, causal: bool, softmax: bool, r: int, layers: int) -> Plain:
    def network(w: dict[str, np.ndarray], X: np.ndarray) -> Any:
        X = X + w["P"] if "P" in w else X
        for i in range(1, layers + 1):
            Q, K, V = ([w[f"{c}{i}"]] if heads == 1 else list(w[f"{c}{i}"]) for c in "QKV")
            parts = [
                tokens_attended(Q[h], K[h], V[h], X, causal=causal, softmax=softmax) for h in range(heads)
            ]
            X = X + sum(parts)
            X = np.stack([x + w[f"U{i}"] @ np.array([y**r for y in w[f"W{i}"] @ x]) for x in X.T], axis=1)
        return X

    return network


def rank_ones(w: dict[str, np.ndarray], _: Any) -> Any:
    return np.einsum("is,js,ks->ijk", w["U1"], w["U2"], w["U3"])


CASES: list[tuple[str, Plain]] = [
    ("attention(d=[3,2],a=2,t=2,causal=true)", attention(causal=True)),
    ("deep-lightning(d=[2,2,2],a=[1,2],t=3,causal=true)", two_causal_layers),
    ("attention(d=[3,2],a=2,t=2,tied=true)", attention()),
    ("attention(d=[2,2],a=2,t=2,r=2)", attention(r=2)),
    ("attention(d=[2,3],a=1,t=2,heads=2,r=2,causal=true)", two_causal_heads),
    ("attention(d=[2,2],a=1,t=2,positions=true)", lambda w, X: attention()(w, X + w["P"])),
    ("softmax(d=[3,2],a=2,t=2,causal=true)", attention(causal=True, softmax=True)),
    ("softmax(d=[2,2,2],a=1,t=3,causal=true)", two_softmax_layers),
    ("transformer(d=2,a=1,t=2,hidden=3,r=2)", block(1, False, False, 2, 1)),
    (
        "transformer(d=2,a=1,t=2,heads=2,hidden=2,r=3,causal=true,positions=true)",
        block(2, True, False, 3, 1),
    ),
    ("transformer(d=2,a=2,t=3,layers=2,causal=true,softmax=true)", block(1, True, True, 2, 2)),
    ("cp(sizes=[2,3,2],rank=2)", rank_ones),
]
IDS = [spec for spec, _ in CASES]


def small(model: Model, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    numbers = np.array([-3, -2, -1, 1, 2, 3])
    weights = {name: rng.choice(numbers, size=shape) for name, shape in model.parameters.items()}
    return weights, rng.choice(numbers, size=model.input_shape or ())


def coordinates_at(model: Model, weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    found = model.coordinates(weights) if model.input_shape is None else model.forward(weights, x)
    return np.asarray(found)


@pytest.mark.parametrize(("spec", "plain"), CASES, ids=IDS)
def test_a_family_is_its_plain_definition(spec: str, plain: Plain) -> None:
    model, rng = parse_spec(spec), np.random.default_rng(1)
    for _ in range(3):
        weights, x = small(model, rng)
        if not model.polynomial:
            weights, x = {name: w / 4 for name, w in weights.items()}, x / 4
        ours, theirs = coordinates_at(model, weights, x), np.asarray(plain(weights, x))
        assert theirs.any()
        if model.polynomial:
            assert ours.reshape(-1).tolist() == theirs.reshape(-1).tolist()
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def complex_step_rank(model: Model, plain: Plain) -> int:
    """The rank of the plain definition's derivatives at a random point, with a gap of six digits."""
    rng, step = np.random.default_rng(2), 1e-30
    weights = {name: rng.normal(size=shape) for name, shape in model.parameters.items()}
    inputs = [rng.normal(size=model.input_shape or ()) for _ in range(model.parameter_count + 2)]
    columns = []
    for name, weight in weights.items():
        for place in np.ndindex(weight.shape):
            moved = weight.astype(complex)
            moved[place] += 1j * step
            outputs = [np.asarray(plain(weights | {name: moved}, x)).imag.reshape(-1) / step for x in inputs]
            columns.append(np.concatenate(outputs))
    values = np.linalg.svd(np.array(columns), compute_uv=False)
    rank = int((values > 1e-9 * values[0]).sum())
    assert rank == len(values) or values[rank] < 1e-6 * values[rank - 1]
    return rank


@pytest.mark.parametrize(("spec", "plain"), CASES, ids=IDS)
def test_the_dimension_is_the_rank_of_the_plain_definition(spec: str, plain: Plain) -> None:
    model = parse_spec(spec)
    answer = dimension(model, engine=False)
    assert answer.certainty.exact
    assert answer.image_dim == complex_step_rank(model, plain)
    assert answer.formula is None or answer.formula.agrees is not False


@pytest.mark.parametrize("spec", IDS)
def test_specs_are_canonical_and_symmetries_hold(spec: str) -> None:
    model, p = parse_spec(spec), 32003
    assert parse_spec(model.spec) == model
    assert FAMILIES[model.family].kind != "your own"
    if not model.polynomial:
        for ask in (lambda: model.degrees, lambda: model.m2_partial, lambda: model.coordinate_count):  # type: ignore[attr-defined]
            with pytest.raises(NotPolynomialError):
                ask()
        return
    weights = model.draw_weights(np.random.default_rng(3), p)
    _, matrix = jacobian(model, weights, p=p)
    for symmetry in model.knowledge.symmetries:
        moved = symmetry.generators(weights) % p
        assert moved.any()
        assert not (matrix.astype(object) @ moved.T.astype(object) % p).any(), symmetry.name


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("mlp(widths=[2,3,3,2],r=[2,3],bias=true)", (0, 1, 2, 3, 4, 5, 6)),
        ("deep-lightning(d=[2,2,2],skip=true,t=2)", (1, 3, 5, 7, 9)),
        ("transformer(d=2,a=1,t=2,hidden=2,r=1,positions=true)", (0, 1, 2, 3)),
    ],
)
def test_degrees_in_the_inputs_are_those_of_the_program(spec: str, expected: tuple[int, ...]) -> None:
    assert parse_spec(spec).degrees == expected  # type: ignore[attr-defined]


# -- values from elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("cp(sizes=[2,2,2],rank=2)", 8),  # a general tensor of format 2 x 2 x 2 has rank 2 (Sylvester)
        ("cp(sizes=[2,2,2,2],rank=3)", 14),  # defective: Catalisano, Geramita, Gimigliano, 2011
        ("cp(sizes=[2,2,2,2],rank=4)", 16),
        ("cp(sizes=[3,3,3],rank=4)", 26),  # a hypersurface of degree 9: Strassen, 1983
        ("cp(sizes=[3,3,3],rank=5)", 27),
        ("cp(sizes=[2,3,3],rank=3)", 18),  # perfect: Strassen, 1983
    ],
)
def test_dimensions_of_tensor_formats(spec: str, expected: int) -> None:
    answer = dimension(spec, engine=False)
    assert (answer.image_dim, answer.lower_bound) == (expected, expected)
    assert answer.agreement is not False


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("cp(sizes=[2,2,4],rank=3)", 15),  # flattenings are singular 4 x 4 matrices
        ("cp(sizes=[2,2,5],rank=3)", 18),  # 4 x 5 matrices of rank 3
        ("cp(sizes=[2,3,7],rank=5)", 40),  # 6 x 7 matrices of rank 5
        (
            "transformer(d=2,a=1,t=1,hidden=1,r=2,layers=2,heads=2)",
            22,
        ),  # one token: twice two cubic forms and one neuron
        ("transformer(d=3,a=2,t=1,hidden=1,r=3,heads=2,positions=true)", 26 + 5 + 3),
        (
            "transformer(d=2,a=1,t=2,hidden=2,r=1,layers=2,positions=true)",
            2 * (3 + 4 - 1) + 4 + 4,
        ),  # one matrix
        ("transformer(d=3,a=2,t=3,hidden=1,r=1,layers=2,causal=true)", 2 * (8 + 9 - 1) + 8),  # of rank 2
        ("cp(sizes=[4,3,4],rank=5)", 44),  # defective: Abo, Ottaviani, Peterson, 2009
        ("cp(sizes=[2,3,1,3,2],rank=5)", 34),
        ("cp(sizes=[3,3,3],rank=3)", 21),  # no flattening is smaller than three points and their scalings
    ],
)
def test_bounds_that_the_rank_meets(spec: str, expected: int) -> None:
    model = parse_spec(spec)
    bound = model.knowledge.dimension_bound
    assert bound is not None
    assert bound.value == expected
    assert generic_rank(model.program).rank == expected


@pytest.mark.parametrize(("d", "dp", "a"), [(2, 1, 2), (3, 1, 2), (3, 2, 1), (4, 2, 2)])
def test_a_mask_leaves_the_dimension_of_one_layer(d: int, dp: int, a: int) -> None:
    """The Segre coordinates of Proposition A.5 occur in both networks."""
    plain = dimension(f"lightning(d={d},dp={dp},a={a},t=2)", engine=False).image_dim
    assert dimension(f"attention(d=[{d},{dp}],a={a},t=2,causal=true)", engine=False).image_dim == plain


def test_without_options_attention_is_the_family_with_formulas() -> None:
    assert parse_spec("attention(d=[3,3],a=2)") == DeepLightning(d=(3, 3), a=(2,))
    assert parse_spec("attention(d=[3,3],a=2,softmax=true)") == Softmax(d=(3, 3), a=(2,))
    assert parse_spec("softmax(d=[2,2],causal=false)") == Softmax(d=(2, 2))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("attention(d=[2,3],skip=true)", "widths"),
        ("attention(d=[2,2],softmax=true,r=2)", "softmax"),
        ("attention(d=[2,2,2,2,2,2],r=9)", "2476099"),
        ("softmax(d=[2,2],causal=1)", "true"),
        ("lightning(d=2,dp=1,causal=true)", "'causal'"),
        ("transformer(d=2,heads=0)", "between 1"),
        ("transformer(a=2)", "d="),
        ("cp(sizes=[2],rank=1)", "sizes"),
    ],
)
def test_inconsistent_arguments_are_refused(spec: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_spec(spec)
