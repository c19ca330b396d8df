"""Symmetries by structure: known groups of known networks, and every field is in the kernel of the Jacobian."""

from __future__ import annotations

import json

import numpy as np
import pytest

import m2bridge
from m2bridge import checker, from_callable
from m2bridge.bounds.model_upper import symmetry_rank
from m2bridge.families import parse_spec
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.programs.points import integers
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import generic_rank
from m2bridge.symmetry.fields import each_in_span, jacobian_at, product_mod
from m2bridge.symmetry.finite import permutations
from m2bridge.symmetry.search import Search
from m2bridge.symmetry.structure import Structure, structural_rank, structure
from tests.networks import NETWORKS

P = LARGE_PRIME


def attention(Q, K, V, O, bQ, bK, bV, bO, x):  # noqa: E741
    """Attention with two heads in one axis, as PyTorch modules write it."""
    tokens, width = x.shape
    q, k, v = ((x @ w.T + b).reshape(tokens, 2, width // 2) for w, b in ((Q, bQ), (K, bK), (V, bV)))
    scores = np.einsum("thi,shi->hts", q, k)
    mixed = np.einsum("hts,shi->thi", scores, v).reshape(tokens, width)
    return mixed @ O.T + bO


def fused(W, b, V, x):
    """A gated layer whose two halves are slices of one linear map."""
    h = W @ x + b
    return V @ (h[:3] * h[3:])


def convolution(c1, c2, L, x):
    """Two one-dimensional convolutions with squares, flattened into a linear layer."""
    h = np.stack([c1 @ x[i : i + 2] for i in range(4)], axis=1) ** 2
    g = np.stack([np.einsum("oki,ki->o", c2, h[:, i : i + 2]) for i in range(3)], axis=1) ** 2
    return L @ g.reshape(-1)


def two_linear_layers(A, a, B, b, x):
    return B @ (A @ x + a) + b


ATTENTION = {**dict.fromkeys("QKVO", (4, 4)), "bQ": (4,), "bK": (4,), "bV": (4,), "bO": (4,)}
USER = {
    "attention with heads": from_callable(attention, ATTENTION, inputs={"x": (3, 4)}),
    "fused gate": from_callable(fused, {"W": (6, 2), "b": (6,), "V": (2, 3)}, inputs={"x": (2,)}),
    "convolution": from_callable(
        convolution, {"c1": (3, 2), "c2": (2, 3, 2), "L": (2, 6)}, inputs={"x": (5,)}
    ),
    "linear layers": from_callable(
        two_linear_layers, {"A": (3, 2), "a": (3,), "B": (2, 3), "b": (2,)}, inputs={"x": (2,)}
    ),
}


def names(found: Structure) -> set[tuple[str, frozenset[str]]]:
    return {(group.name, frozenset(name.split("[")[0] for name in group.moved)) for group in found.groups}


def moves_nothing(program: Program) -> bool:
    """Whether the Jacobian at random points kills every field by structure."""
    weights = integers(1, 1, program.parameter_count, P).reshape(1, -1)
    inputs = integers(2, 2, 4 * program.input_count, P).reshape(4, -1)
    table = jacobian_at(program, P, weights, inputs).reshape(-1, program.parameter_count)
    rows = np.stack([field.at(weights[0], P) for field in structure(program).fields()])
    return not product_mod(rows, table.T, P).any()


def test_heads_in_one_axis_have_a_group_each() -> None:
    found = structure(USER["attention with heads"].program)
    assert ("GL(2)^2", frozenset({"Q", "bQ", "K", "bK"})) in names(found)
    assert ("GL(2)^2", frozenset({"V", "bV", "O"})) in names(found)


def test_halves_of_a_linear_map_are_scaled_apart() -> None:
    program = USER["fused gate"].program
    assert structural_rank(program, p=P, seed=0) == 6  # h_i and h_(i+3) are scaled, and V undoes both


def test_channels_are_scaled_through_convolutions_and_a_flattening() -> None:
    program = USER["convolution"].program
    assert structural_rank(program, p=P, seed=0) == 3 + 2  # one scaling for each channel


@pytest.mark.parametrize("name", USER)
def test_no_field_of_a_user_network_moves_the_function(name: str) -> None:
    assert moves_nothing(USER[name].program)


@pytest.mark.parametrize("item", NETWORKS, ids=lambda item: item[0])
def test_no_field_of_a_network_moves_the_function(item) -> None:
    program = from_callable(item[1], item[2], inputs=item[3] or None).program
    if any(True for _ in structure(program).fields()):
        assert moves_nothing(program)


@pytest.mark.parametrize(
    "spec",
    [
        "mlp(widths=[5,4,3],r=2,bias=true)",
        "transformer(d=4,a=2,t=2,heads=2,hidden=3,r=2,layers=1)",
        "deep-lightning(d=[3,3,3],a=[2,2],t=3)",
    ],
)
def test_structure_shows_the_symmetries_of_families(spec: str) -> None:
    model = parse_spec(spec)
    assert moves_nothing(model.program)
    assert structural_rank(model.program, p=P, seed=0) == symmetry_rank(model, p=P, seed=0)


def test_two_linear_layers_shift_the_inner_bias() -> None:
    program = USER["linear layers"].program
    found = structure(program)
    assert [(item.moved, item.dim) for item in found.shifts] == [(("a", "b"), 3)]
    # all affine maps from 2 to 2 coordinates are reached, 6 dimensions of 17; GL(3) and the shift have rank 12 with one relation
    assert structural_rank(program, p=P, seed=0) == 11


def causal_block(Q, K, V, bQ, bK, bV, W, bW, U, bU, x):
    """Causal attention by exponentials and a mask, then a layer with a skip connection; all maps have biases."""
    weights = np.exp((x @ Q.T + bQ) @ (x @ K.T + bK).T / 3) * np.tril(np.ones((3, 3)))
    mixed = x + (weights / weights.sum(axis=1, keepdims=True)) @ (x @ V.T + bV)
    return mixed + np.tanh(mixed @ W.T + bW) @ U.T + bU


def test_biases_are_shifted_through_masks_and_skip_connections() -> None:
    """The checker verifies the fields: a mask is inside a softmax, and the bias of the values is undone twice."""
    square = dict.fromkeys(("Q", "K", "V", "W", "U"), (2, 2))
    biases = dict.fromkeys(("bQ", "bK", "bV", "bW", "bU"), (2,))
    order = ("Q", "K", "V", "bQ", "bK", "bV", "W", "bW", "U", "bU")
    shapes = {name: {**square, **biases}[name] for name in order}
    network = from_callable(causal_block, shapes, inputs={"x": (3, 2)})
    texts = [shift.text for shift in structure(network.program).shifts]
    assert texts == ["shift of bK, which changes nothing", "shift of bV, undone by bW, bU"]
    answer = m2bridge.dimension(network, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (30 - 4 - 4, "proved")
    assert checker.verify(json.dumps(answer.certificate))[0] == 0


def softmax_layer(W, a, V, b, x):
    """A hidden layer of four neurons that add up to one."""
    weights = np.exp(W @ x + a)
    return V @ (weights / weights.sum(axis=0, keepdims=True)) + b


def test_a_softmax_layer_does_not_see_shifts_along_its_axis() -> None:
    """All rows of W may move by one vector (3), all entries of a by one number (1); b undoes a shift of the columns of V (2)."""
    network = from_callable(
        softmax_layer, {"W": (4, 3), "a": (4,), "V": (2, 4), "b": (2,)}, inputs={"x": (3,)}
    )
    found = structure(network.program).shifts
    assert [(item.moved, item.along, item.dim) for item in found] == [
        (("W",), (0,), 3),
        (("a",), (0,), 1),
        (("V", "b"), (1,), 2),
    ]
    assert found[2].text == "shift of V along axis 1, undone by b"
    assert next(iter(found[2].fields())).terms == (*((i, 1, ()) for i in range(16, 20)), (24, -1, ()))
    answer = m2bridge.dimension(network, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (26 - 6, "proved")
    assert checker.verify(json.dumps(answer.certificate))[0] == 0


def test_shifts_have_rational_factors() -> None:
    def scaled(A, a, B, b, x):
        return B * ((A @ x + a) / 3) + b

    network = from_callable(scaled, {"A": (2, 2), "a": (2,), "B": (2,), "b": (2,)}, inputs={"x": (2,)})
    (shift,) = structure(network.program).shifts
    assert [field.terms for field in shift.fields()] == [
        ((4, 3, ()), (8, -1, (6,))),
        ((5, 3, ()), (9, -1, (7,))),
    ]


def test_rank_is_that_of_all_fields() -> None:
    program = USER["attention with heads"].program
    point = integers(0, 1, program.parameter_count, P)
    rows = np.stack([field.at(point, P) for field in structure(program).fields()])
    assert structure(program).rank(point, P) == rank_mod(rows, P)


def test_heads_in_separate_arrays_have_a_group_each() -> None:
    def network(Q1, K1, V1, Q2, K2, V2, O, x):  # noqa: E741
        heads = [(x @ V.T).T @ ((x @ K.T) @ (x @ Q.T).T) for Q, K, V in ((Q1, K1, V1), (Q2, K2, V2))]
        return O @ np.concatenate(heads, axis=0)

    shapes = {name + n: (2, 3) for n in "12" for name in "QKV"} | {"O": (3, 4)}
    program = from_callable(network, shapes, inputs={"x": (3, 3)}).program
    found = names(structure(program))
    assert {("GL(2)", frozenset({"V1", "O"})), ("GL(2)", frozenset({"V2", "O"}))} <= found
    assert (
        structural_rank(program, p=P, seed=0) == 4 * 4 + 2
    )  # and a scaling of queries by values in each head


def test_heads_and_channels_are_permuted_through_reshapes() -> None:
    heads = permutations(USER["attention with heads"].program)
    assert any(item.order == 2 and len(item.acts_on) == 7 for item in heads)  # Q, K, V, O and three biases
    channels = permutations(USER["convolution"].program)
    assert sorted(item.order for item in channels) == [2, 6]


def test_symmetries_of_softmax_attention_are_groups() -> None:
    answer = m2bridge.symmetries("softmax(d=[2,2],a=2,t=2)")
    assert [(group.name, group.acts_on) for group in answer.groups] == [("GL(2)", ("Q1", "K1"))]
    assert (answer.symmetry_dim, answer.explains_fiber, answer.certainty.value) == (4, True, "proved")


def test_symmetries_of_a_wide_network_are_few_groups() -> None:
    answer = m2bridge.symmetries("mlp(widths=[40,40,4],r=2,bias=true)")
    assert [(group.name, group.dim) for group in answer.groups] == [("GL(1)^40", 40)]
    assert answer.explains_fiber
    assert len([key for key, _ in answer.view().facts if key in ("group", "field", "new field")]) == 1


MISSED = {"learnable activation", "gaussian moments", "rope"}
"""Networks with affine symmetries that depend on the number of an index: a power, a mask or a rotation for each."""


@pytest.mark.parametrize("item", NETWORKS, ids=lambda item: item[0])
def test_structure_misses_no_affine_symmetry_of_the_search(item) -> None:
    program = from_callable(item[1], item[2], inputs=item[3] or None).program
    searched = list(Search(program, p=P, all_affine=True).run(1).fields)
    inside = each_in_span(searched, list(structure(program).fields()), P)
    assert all(inside) == (item[0] not in MISSED)


def test_shifts_that_centred_arrays_do_not_see() -> None:
    """LayerNorm with gains g and a bias b: W behind it (2), b (3), g (3), and a rotation; weights before it, U (2) and a (1)."""

    def layer(x, U, a, g, b, W, c):
        z = U @ x + a
        z = z - z.mean(0, keepdims=True)
        n = z / np.sqrt((z * z).mean(0, keepdims=True) + 1)
        return W @ (g * n + b) + c

    shapes = {"U": (3, 2), "a": (3,), "g": (3,), "b": (3,), "W": (2, 3), "c": (2,)}
    program = from_callable(layer, shapes, inputs={"x": (2,)}).program
    found = structure(program)
    texts = [family.text for family in found.families]
    assert sum("the array there is centred" in text for text in texts) == 3
    assert sum(family.dim for family in found.families) == 2 + 3 + 3 + 1 + 2 + 1
    assert structural_rank(program, p=8388593, seed=0) == 23 - generic_rank(program).rank == 12


def test_shifts_before_norms_of_channels() -> None:
    """Instance norm sees no bias of a channel (4); group norm sees none that is the same in a group, of which there are two."""

    def network(x, C, c, groups):
        h = np.einsum("oc,cl->ol", C, x) + c[:, None]
        z = h.reshape(groups, 4 // groups, 4)
        z = z - z.mean((1, 2), keepdims=True)
        return z / np.sqrt((z * z).mean((1, 2), keepdims=True) + 1)

    for groups in (4, 2):
        program = from_callable(
            lambda x, C, c, n=groups: network(x, C, c, n), {"C": (4, 2), "c": (4,)}, inputs={"x": (2, 4)}
        ).program
        (shift,) = structure(program).shifts
        assert (shift.moved, shift.dim) == (("c",), groups)
        assert structural_rank(program, p=P, seed=0) == program.parameter_count - generic_rank(program).rank


def norm(x, centred: bool):
    z = x - x.mean(0, keepdims=True) if centred else x
    return z / np.sqrt((z * z).mean(0, keepdims=True) + 1)


@pytest.mark.parametrize("centred", [False, True])
def test_rotations_behind_a_norm_with_gains(centred: bool) -> None:
    """Four features: O(4), of dimension 6, or its subgroup O(3) that fixes ones; the skip connection is rotated too."""

    def network(x, U, A, B, g, h, V):
        z = U @ x
        z = z + B @ (A @ (g * norm(z, centred))) ** 3
        return V @ (h * norm(z, centred))

    shapes = {"U": (4, 4), "A": (4, 4), "B": (4, 4), "g": (4,), "h": (4,), "V": (3, 4)}
    program = from_callable(network, shapes, inputs={"x": (4,)}).program
    (group,) = structure(program).gained
    assert (group.dim, set(group.moved)) == (3 if centred else 6, {"U", "A", "B", "V"})
    rank = structural_rank(program, p=P, seed=0)
    assert rank == program.parameter_count - generic_rank(program).rank


def test_rotations_move_the_bias_of_a_norm() -> None:
    def network(x, U, g, b, V):
        return V @ (g * norm(U @ x, False) + b)

    program = from_callable(
        network, {"U": (4, 4), "g": (4,), "b": (4,), "V": (4, 4)}, inputs={"x": (4,)}
    ).program
    (group,) = structure(program).gained
    assert (group.dim, set(group.moved)) == (6, {"U", "b", "V"})
    assert structural_rank(program, p=P, seed=0) == program.parameter_count - generic_rank(program).rank


def test_matrices_that_fix_ones() -> None:
    """A sum over hidden units is kept by the matrices of GL(3) that fix ones; a product with a constant vector is not."""

    def network(x, U, V):
        h = U @ x
        return V @ h * h.sum()

    def still(x, U, V):
        h = U @ x
        return V @ h * (h @ np.array([1, 2, 4]))

    def matrices(f):
        groups = structure(from_callable(f, shapes, inputs={"x": (4,)}).program).groups
        return [(group.kind, group.dim, group.fixes_ones) for group in groups if group.kind != "torus"]

    shapes = {"U": (3, 4), "V": (2, 3)}
    assert matrices(network) == [("gl", 4, True)]
    assert matrices(still) == []


def test_a_centred_array_that_is_also_used_otherwise_is_seen() -> None:
    def layer(x, U):
        z = U @ x
        return (z - z.mean(0, keepdims=True)) * z

    program = from_callable(layer, {"U": (3, 2)}, inputs={"x": (2,)}).program
    assert not structure(program).shifts


def test_a_weight_that_is_an_output_is_not_shifted() -> None:
    """(A x, b) determines all of A and b."""
    model = m2bridge.from_callable(lambda A, b, x: (A @ x, b), {"A": (2, 2), "b": (2,)}, inputs={"x": (2,)})
    assert m2bridge.dimension(model, engine=False).image_dim == 6


def layer_norm(W, U, g, x):
    u = W @ x
    y = u - u.mean()
    return U @ (g * y / np.sqrt((y * y).mean() + 1))


def rms_norm(W, U, g, x):
    u = W @ x
    return U @ (3 * (g * u / np.sqrt((u * u).mean() + 1)))


def gain_read_twice(W, U, g, x):
    return rms_norm(W, U, g, x) + g[:2]


# Rotations of three features, those that fix (1, 1, 1) for LayerNorm, and 3 scalings of U and g; LayerNorm has shifts of the
# columns of W by one number, and of each row of U by a number divided by g.
@pytest.mark.parametrize(
    ("network", "orbits"), [(layer_norm, 1 + 3 + 3 + 2), (rms_norm, 3 + 3), (gain_read_twice, 0)]
)
def test_gains_that_are_multiplied_before_the_division_by_the_norm(network, orbits) -> None:
    model = from_callable(network, {"W": (3, 3), "U": (2, 3), "g": (3,)}, inputs={"x": (3,)})
    assert structural_rank(model.program, p=P, seed=0) == orbits
    if orbits:
        answer = m2bridge.dimension(model, engine=False)
        assert answer.image_dim == answer.numeric_rank == 18 - orbits
        assert checker.verify(json.dumps(answer.certificate))[0] == 0
