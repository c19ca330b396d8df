"""Vector fields of networks with exponentials, reciprocals and square roots: searched with units, verified, and certified."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from m2bridge import checker, dimension, from_callable, identifiable, symmetries
from m2bridge.errors import OutOfReachError
from m2bridge.families import parse_spec
from m2bridge.limits import LimitReached
from m2bridge.programs.gradings import gradings
from m2bridge.programs.program import parse_program
from m2bridge.symmetry.fields import VectorField
from m2bridge.symmetry.identities import Verifier
from m2bridge.symmetry.search import Search
from m2bridge.symmetry.structure import structure

P = 8388593


def logistic(z):
    return 1 / (1 + np.exp(-z))


def quotient(v, c, A, b, x):
    e = np.exp(A @ x + b)
    return v @ e / (c @ e)


def linear_attention(Q, K, V, x):
    queries, keys = np.exp(Q @ x), np.exp(K @ x)
    return (V @ x) @ keys.T @ queries / (keys.sum(axis=1) @ queries)


def product_in_exponent(T, S, V, A, x):
    return np.exp(T * S) * (V @ np.tanh(A @ x))


def factor_of_inputs(v, A, B, x):
    return v @ np.exp(A @ x) * np.exp(B @ x)


def one_of_two(W, s, x):
    first, second = np.exp(W @ x)
    return s * first / (first + second)


def normalised(V, W, x):
    h = W @ x
    return V @ (h / np.sqrt((h * h).sum()))


NETWORKS = {
    # per neuron b; v and c together; one vector added to all rows of A, for each of two inputs
    "quotient": (quotient, {"v": (3,), "c": (3,), "A": (3, 2), "b": (3,)}, {"x": (2,)}, 3 + 1 + 2),
    # one vector added to all rows of Q: numerator and denominator have the same factor
    "linear attention": (linear_attention, {"Q": (3, 2), "K": (3, 2), "V": (2, 2)}, {"x": (2, 3)}, 2),
    # T, S -> T s, S / s; S -> S + t, V -> V exp(-T t)
    "product in exponent": (
        product_in_exponent,
        {"T": (), "S": (), "V": (2, 3), "A": (3, 2)},
        {"x": (2,)},
        2,
    ),
    # one vector added to all rows of A and subtracted from B
    "factor of inputs": (factor_of_inputs, {"v": (3,), "A": (3, 2), "B": (2,)}, {"x": (2,)}, 2),
    "one of two": (one_of_two, {"W": (2, 2), "s": ()}, {"x": (2,)}, 2),
    # V W / sqrt(x'W'W x): W has the rank 2 of the input, V W 4 and W'W up to scale 2
    "normalised": (normalised, {"V": (2, 3), "W": (3, 2)}, {"x": (2,)}, 12 - 4 - 2),
}


@pytest.mark.parametrize(("function", "shapes", "inputs", "orbits"), NETWORKS.values(), ids=NETWORKS)
def test_fields_found_with_units_prove_the_dimension(
    function, shapes, inputs, orbits, tmp_path: Path
) -> None:
    model = from_callable(function, shapes, inputs=inputs)
    answer = dimension(model, engine=False)
    assert answer.certainty.value == "proved"
    assert answer.image_dim == answer.numeric_rank == model.parameter_count - orbits
    assert checker.verify(json.dumps(answer.certificate))[0] == 0
    listed = symmetries(model)
    assert (listed.symmetry_dim, listed.explains_fiber, listed.unverified) == (orbits, True, 0)
    assert checker.verify(listed.save(tmp_path).read_bytes())[0] == 0


@pytest.mark.parametrize(("function", "shapes", "inputs", "_"), NETWORKS.values(), ids=NETWORKS)
def test_other_fields_are_not_verified(function, shapes, inputs, _) -> None:
    """A coefficient of a symmetry is changed, or a term is left out; what remains is verified only if it is in the kernel."""
    program = from_callable(function, shapes, inputs=inputs).program
    search = Search(program, p=P)
    search.add_verified(structure(program).fields())
    search.run(2)
    assert search.explains_fiber
    for field in search.fields:
        assert search.verifier.is_symmetry(field)
        (i, c, monomial), *others = field.terms
        changed = [VectorField(((i, 2 * c, monomial), *others))]
        changed += [VectorField(tuple(others))] if others else []
        changed += [VectorField(((i, c, (*monomial, i)), *others))]
        for other in changed:
            rows = search.samples.rows[:, :, :] * other.at(search.samples.weights, P)[:, None, :] % P
            is_zero = not (rows.sum(axis=2) % P).any()
            assert search.verifier.is_symmetry(other) is (True if is_zero else None)


def test_rows_that_sum_to_one_are_used() -> None:
    """A softmax is seen with all its entries: their sum does not change with the weights."""

    def network(A, V, x):
        e = np.exp(A @ x)
        shares = e / e.sum()
        return V @ shares + (shares.sum() - 1) * A[0]

    model = from_callable(network, {"A": (3, 2), "V": (2, 3)}, inputs={"x": (2,)})
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (12 - 2, "proved")


def test_stated_symmetries_of_softmax_attention_are_verified() -> None:
    model = parse_spec("softmax(d=[2,2,2],a=1,t=2)")
    fields = list(structure(model.program).fields())
    verifier = Verifier(model.program, P)
    assert fields
    assert all(verifier.is_symmetry(field) for field in fields)
    wrong = VectorField(tuple((i, c + (n == 0), m) for n, (i, c, m) in enumerate(fields[0].terms)))
    assert verifier.is_symmetry(wrong) is None


def test_exponentials_that_cancel_need_no_relation() -> None:
    def network(v, a, x):
        return v * np.exp(a @ x) * np.exp(-(a @ x))

    answer = dimension(from_callable(network, {"v": (), "a": (2,)}, inputs={"x": (2,)}), engine=False)
    assert (answer.image_dim, answer.certainty.value) == (1, "proved")


def test_fields_that_only_relations_of_exponentials_allow_are_not_found() -> None:
    """silu(u) - silu(-u) = u: units in the place of e^u and e^(-u) do not show it, and the search is not called complete."""

    def network(v, A, b, x):
        u = A @ x + b
        return v @ (u * logistic(u) - -u * logistic(-u))

    model = from_callable(network, {"v": (2,), "A": (2, 2), "b": (2,)}, inputs={"x": (2,)})
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.lower_bound, answer.certainty.value) == (3, 3, "probable")
    listed = symmetries(model)
    assert (listed.complete, listed.symmetry_dim, listed.symmetry_lower_bound) == (False, None, 0)


def bias_used_twice(v, A, b, x):
    return v @ np.exp(A @ x + b) + b @ A @ x


def test_a_network_without_symmetries() -> None:
    model = from_callable(bias_used_twice, {"v": (2,), "A": (2, 2), "b": (2,)}, inputs={"x": (2,)})
    assert dimension(model, engine=False).image_dim == 8
    search = Search(model.program, p=P, corank=8).run(1)  # as if there were fields to find
    assert (search.rank, search.complete) == (0, True)


def test_a_field_of_degree_three() -> None:
    """With three neurons b -> b + t, v -> v exp(-t) is a symmetry for t A = 0: t consists of the minors of A."""
    model = from_callable(bias_used_twice, {"v": (3,), "A": (3, 2), "b": (3,)}, inputs={"x": (2,)})
    assert symmetries(model).symmetry_lower_bound == 0
    listed = symmetries(model, degree=3)
    assert (listed.symmetry_dim, listed.certainty.value) == (1, "proved")
    assert checker.verify(json.dumps(listed.certificate[0]))[0] == 0


def test_scalings_and_shifts_alone_where_all_fields_are_too_many() -> None:
    """136 weights of character zero have 18,496 linear terms; the biases from the third on are seen by exponentials alone."""

    def network(W1, b1, W2, b2, V, x):
        return V @ np.exp(W2 @ np.tanh(W1 @ x + b1) + b2) + b2[:2]

    shapes = {"W1": (8, 6), "b1": (8,), "W2": (10, 8), "b2": (10,), "V": (2, 10)}
    model = from_callable(network, shapes, inputs={"x": (6,)})
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (model.parameter_count - 8, "proved")
    assert checker.verify(json.dumps(answer.certificate))[0] == 0


def test_identifiable_uses_the_fields_that_were_found(tmp_path: Path) -> None:
    function, shapes, inputs, _ = NETWORKS["factor of inputs"]
    model = from_callable(function, shapes, inputs=inputs)
    verdicts = {row.function: row.verdict for row in identifiable(model).functions}
    assert verdicts["v"] == "determined"
    assert (verdicts["A"], verdicts["B"]) == ("not determined", "not determined")
    answer = identifiable(model, function="A[0] + B")
    assert answer.verdict == "determined"
    assert checker.verify(answer.save(tmp_path).read_bytes())[0] == 0


def test_a_root_whose_derivative_is_no_multiple_by_a_number() -> None:
    """e^(A x) / ||e^(A x)||: one vector added to all rows of A is a symmetry that certificates cannot express."""

    def network(A, x):
        e = np.exp(A @ x)
        return e / np.sqrt((e * e).sum())

    model = from_callable(network, {"A": (3, 2)}, inputs={"x": (2,)})
    answer = dimension(model, engine=False)
    assert (answer.lower_bound, answer.upper_bound, answer.certainty.value) == (4, 6, "probable")
    assert symmetries(model).unverified >= 2


def test_many_square_roots_end_the_search() -> None:
    """Sixteen roots exist at one of 2^16 points: nothing is searched, and the answer says so."""

    def network(A, v, x):
        return v @ (np.sqrt((A @ x) ** 2 + 1) + np.exp(A @ x)) * np.exp(v[0] * 0)

    model = from_callable(network, {"A": (16, 2), "v": (16,)}, inputs={"x": (2,)})
    with pytest.raises(OutOfReachError):
        Search(model.program, p=P, corank=1)


def test_gradings_have_a_character_for_each_exponential() -> None:
    text = """m2bridge program 1
%0 = weight a [2]
%1 = weight v [2]
%2 = exp %0
%3 = einsum a,a-> %1 %2
%4 = sqrt %3
output y %4
"""
    found = gradings(parse_program(text))
    assert found is not None
    # a has character zero; e^a_i has that of the output minus that of v_i, so v_1 and v_2 are free
    assert not found.weights[:, :2].any()
    assert np.linalg.matrix_rank(found.weights[:, 2:]) == 2


def test_a_limit_in_a_later_degree_leaves_the_search_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields of degree two are needed: without them the orbits are not known to have the dimension of those of degree one."""

    def network(W, V, x):
        h = W @ x
        return V @ (h / np.sqrt((h * h).mean() + 1))

    model = from_callable(network, {"W": (3, 2), "V": (2, 3)}, inputs={"x": (2,)})
    run = Search.run

    def stopped_at_two(search: Search, degree: int, *, first: int = 0) -> None:
        if degree == 2:
            raise LimitReached("the time is over")
        run(search, degree, first=first)

    monkeypatch.setattr(Search, "run", stopped_at_two)
    answer = symmetries(model)
    assert (answer.symmetry_dim, answer.symmetry_lower_bound, answer.complete) == (None, 3, False)
