"""Vector fields that leave a program's function as it is: found, lifted, verified, and refused when they are none."""

from __future__ import annotations

import pytest

from m2bridge.families import parse_spec
from m2bridge.families.user_network import from_callable
from m2bridge.symmetry.fields import VectorField
from m2bridge.symmetry.identities import Verifier
from m2bridge.symmetry.search import Search
from tests.networks import NETWORKS

P = 8388593


def own(name: str):  # type: ignore[no-untyped-def]
    _, function, shapes, inputs = next(item for item in NETWORKS if item[0] == name)
    return from_callable(function, shapes, inputs=inputs or None)


# Fibers of these are known: GL(2) x GL(2) on a tensor train's bonds; O(2) on the columns of U; the scaling of each of two terms
# of a CP decomposition by two numbers; signs and O(1) do not count.
@pytest.mark.parametrize(
    ("name", "dim"),
    [("tensor train", 8), ("gram matrix", 1), ("cp decomposition", 4), ("cross-attention", 5)],
)
def test_known_gauge_groups_are_found(name: str, dim: int) -> None:
    found = Search(own(name).program, p=P).run()
    assert found.rank == dim
    assert found.explains_fiber


@pytest.mark.parametrize("item", NETWORKS, ids=lambda item: item[0])
def test_fields_of_every_network_explain_no_more_than_the_fiber(item) -> None:  # type: ignore[no-untyped-def]
    found = Search(own(item[0]).program, p=P).run()
    assert found.rank <= found.corank
    assert found.unverified == 0


def test_quadratic_fields_of_the_last_hidden_layer() -> None:
    """sum_i v_i (w_i . h)^2 has O(n), n = 3: three more than the scalings, of degree 2."""
    program = parse_spec("mlp(widths=[5,4,3,1],r=2)").program
    affine, quadratic = (Search(program, p=P).run(d) for d in (1, 2))
    assert (affine.rank, quadratic.rank, quadratic.corank) == (7, 10, 10)
    assert max(field.degree for field in quadratic.fields) == 2


def test_the_same_fields_come_from_the_same_network_written_by_hand() -> None:
    def network(W1, W2, W3, x):  # type: ignore[no-untyped-def]
        return W3 @ (W2 @ (W1 @ x) ** 2) ** 2

    mine = from_callable(network, {"W1": (4, 5), "W2": (3, 4), "W3": (1, 3)}, inputs={"x": (5,)})
    theirs = parse_spec("mlp(widths=[5,4,3,1],r=2)")
    assert Search(mine.program, p=P).run(2).rank == Search(theirs.program, p=P).run(2).rank


def test_a_wrong_symmetry_is_refused() -> None:
    program = parse_spec("mlp(widths=[2,3,2],r=2)").program
    verifier = Verifier(program, P)
    right = [(i, 1, (i,)) for i in (0, 1)] + [(i, -2, (i,)) for i in (6, 9)]
    assert verifier.is_symmetry(VectorField(tuple(right))) is True
    assert verifier.is_symmetry(VectorField(tuple([*right[:3], (9, -1, (9,))]))) is False


def test_a_coefficient_that_vanishes_modulo_the_prime_is_seen_by_expansion() -> None:
    """w -> 101 w moves under d/dw, but not modulo 101: samples cannot see it, the identity can."""
    model = from_callable(lambda w: 101 * w, {"w": (2,)})
    verifier = Verifier(model.program, 101)
    assert verifier.is_symmetry(VectorField(((0, 1, ()),))) is False


def test_a_prime_that_is_too_small_finds_no_false_field() -> None:
    """w^p - w vanishes at all points of F_p: what samples accept there, the expansion refuses."""
    model = from_callable(lambda w: w**4, {"w": (1,)})
    found = Search(model.program, p=2, seed=0, corank=1).run(1)
    assert found.rank == 0


def test_fields_are_written_with_exponents() -> None:
    field = VectorField(((0, 1, (1, 1)), (3, -2, ())))
    assert field.document == [[0, 1, [[1, 2]]], [3, -2, []]]
