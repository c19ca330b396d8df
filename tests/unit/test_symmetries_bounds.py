"""Upper bounds from fields, cuts and equations, and the certificates that the checker verifies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from m2bridge import checker, dimension
from m2bridge.bounds.compositions import compositions
from m2bridge.bounds.equations import equations
from m2bridge.bounds.program_upper import UpperBounds, coordinate_count
from m2bridge.families import MLP, parse_spec
from m2bridge.families.user_network import from_callable
from m2bridge.programs.layers import one_hidden_layer
from m2bridge.programs.ranks import generic_rank
from m2bridge.symmetry.search import Search
from tests.networks import NETWORKS

P = 8388593


def checked(certificate: Any) -> int:
    """The checker's word on a certificate: 0 verified, 7 rejected, 8 out of its reach."""
    return checker.verify(json.dumps(certificate))[0]


# Bounds (r = 2) that the completeness argument of daokevin06/MFA_PNNs takes from computations over finite fields.
@pytest.mark.parametrize(
    ("widths", "most"),
    [((5, 5, 3, 1), 32), ((3, 5, 6, 4, 3, 1), 58), ((4, 5, 5, 3, 1), 47), ((5, 4, 3, 1), 25)],
)
def test_bounds_that_a_completeness_argument_needs(widths: tuple[int, ...], most: int) -> None:
    answer = dimension(MLP(widths=widths, r=2), engine=False, certify=False)
    assert (answer.upper_bound, answer.certainty.value) == (most, "computed")


@pytest.mark.parametrize("item", NETWORKS, ids=lambda item: item[0])
def test_every_network_is_proved_from_both_sides(item: Any) -> None:
    _, function, shapes, inputs = item
    answer = dimension(from_callable(function, shapes, inputs=inputs or None), engine=False)
    assert answer.certainty.value == "proved"
    assert answer.defect == 0
    assert checked(answer.certificate) == 0


# by fields, compositions, the span of a last layer, a plane curve, and Strassen's flattening
@pytest.mark.parametrize(
    "widths",
    [
        (5, 5, 3, 1),
        (4, 5, 5, 3, 1),
        (3, 2, 4),
        (2, 3, 2, 3, 1),
        (3, 5, 6, 4, 3, 1),
        (2, 4, 3, 3, 5, 3, 1),
        (6, 8, 3),
    ],
)
def test_the_checker_verifies_every_kind_of_bound(widths: tuple[int, ...]) -> None:
    answer = dimension(MLP(widths=widths, r=2), engine=False)
    assert checked(answer.certificate) == 0


@pytest.mark.parametrize(
    ("widths", "upper"),
    [
        ((2, 3, 2, 3, 1), {"kind": "span"}),  # one output: nothing is saved
        (
            (6, 9, 3),
            {"kind": "flattening", "flattening": ["strassen"], "prime": P, "weights": {"entries": [1] * 81}},
        ),
        (
            (6, 8, 2),
            {"kind": "flattening", "flattening": ["strassen"], "prime": P, "weights": {"entries": [1] * 64}},
        ),
    ],
)
def test_the_checker_rejects_arguments_that_do_not_fit(widths: tuple[int, ...], upper: Any) -> None:
    certificate = dict(dimension(MLP(widths=widths, r=2), engine=False).certificate or {})
    assert checked({**certificate, "upper": upper}) == 7


def test_a_hypersurface_needs_its_hypotheses() -> None:
    """Widths 2, 3, 2, 3, 1. Behind the first squares: a conic (d = 2) for forms of degree e = 4, which count C(6,2) - C(4,2) = 9.
    The second squares have two entries; behind the third ones (d = 8) the degree is 1.
    """
    program = checker.read_program(MLP(widths=(2, 3, 2, 3, 1), r=2).program.text)
    squares = [k for k, item in enumerate(program.gates) if item.operation == "power"]
    upper = {
        "kind": "composition", "first": {"kind": "coordinates"}, "second": {"kind": "hypersurface"}, "groups": [],
        "fields": [], "prime": P, "weights": {"seed": 0, "stream": 1, "fixed": []}, "samples": 1,
    }  # fmt: skip
    first, second, third = ({**upper, "cut": cut} for cut in squares)
    assert checker.check_upper(program, first) == 9 + 9
    for wrong in (second, third):
        with pytest.raises(checker.Rejected):
            checker.check_upper(program, wrong)


def test_the_checker_rejects_a_composition_that_claims_too_much() -> None:
    certificate = dict(dimension(MLP(widths=(2, 3, 2, 3, 1), r=2), engine=False).certificate or {})
    upper = dict(certificate["upper"])
    assert upper["kind"] == "composition"
    doubled = [[[i, 2 * c if k else c, m] for k, (i, c, m) in enumerate(field)] for field in upper["fields"]]
    assert checked({**certificate, "upper": {**upper, "fields": doubled}}) == 7
    assert checked({**certificate, "upper": {**upper, "fields": upper["fields"][1:]}}) == 7
    assert checked({**certificate, "upper": {**upper, "cut": upper["cut"] + 1}}) == 7


@pytest.mark.parametrize(
    "widths",
    [(2, 2, 2, 1), (2, 3, 4, 2), (3, 2, 4, 1), (2, 4, 3, 3, 1), (4, 2, 2, 2), (2, 3, 5, 2, 1), (3, 4, 2, 3)],
)
@pytest.mark.parametrize("r", [2, 3])
def test_no_bound_is_below_the_rank(widths: tuple[int, ...], r: int) -> None:
    """Every upper bound, of the whole and of its parts, is at least the rank of the Jacobian, a lower bound."""
    program = MLP(widths=widths, r=r).program
    bounds = UpperBounds(p=P)
    bounds.best(program, Search(program, p=P).run(1).fields)
    parts = [part.program for cut in compositions(program) for part in (cut.first, cut.second)]
    for part in [program, *parts]:
        fields = Search(part, p=P).run().fields
        assert bounds.best(part, fields).value >= generic_rank(part, p=P).rank


def test_the_same_bound_comes_for_the_same_network_written_by_hand() -> None:
    def network(A: Any, B: Any, C: Any, x: Any) -> Any:
        return C @ (B @ (A @ x) ** 2) ** 2

    mine = from_callable(network, {"A": (5, 5), "B": (3, 5), "C": (1, 3)}, inputs={"x": (5,)})
    answer = dimension(mine, engine=False)
    assert (answer.image_dim, answer.certainty.value, answer.symmetry_dim, answer.defect) == (
        32,
        "proved",
        11,
        0,
    )


def test_equations_prove_the_segre_surface() -> None:
    """Rank-one 2 x 2 matrices: one quadric, so dimension 3 of 4."""
    answer = dimension("map:a,b,c,d->a*c;a*d;b*c;b*d", engine=False)
    assert (answer.image_dim, answer.certainty.value, answer.defect) == (3, "proved", 0)
    program = parse_spec("map:a,b,c,d->a*c;a*d;b*c;b*d").program
    assert equations(program, p=P, seed=0, degree=2) == [[(1, (0, 3)), (-1, (1, 2))]]


def test_a_polynomial_that_vanishes_modulo_the_prime_alone_is_no_equation() -> None:
    """(w, 101 w): the second coordinate is zero modulo 101, and not over QQ."""
    program = from_callable(lambda w: [w[0], 101 * w[0] * w[1]], {"w": (2,)}).program
    assert equations(program, p=101, seed=0, degree=1) == []


def test_no_weight_passes_a_cut() -> None:
    def tied(W: Any, x: Any) -> Any:
        return W @ (W @ x) ** 2

    def skip(A: Any, B: Any, x: Any) -> Any:
        return x + B @ (A @ x) ** 2

    assert compositions(from_callable(tied, {"W": (2, 2)}, inputs={"x": (2,)}).program) == []
    between, after = compositions(from_callable(skip, {"A": (2, 2), "B": (2, 2)}, inputs={"x": (2,)}).program)
    assert [list(part.program.parameters) for part in (between.first, between.second)] == [["A"], ["B"]]
    assert len(between.second.program.inputs) == 2
    assert [list(part.program.parameters) for part in (after.first, after.second)] == [["A", "B"], []]


def test_residual_blocks() -> None:
    """x + B (A x)^2 with three neurons in two variables is x plus any two quadrics: 6 numbers a block."""

    def blocks(A: Any, B: Any, C: Any, D: Any, x: Any) -> Any:
        h = x + B @ (A @ x) ** 2
        return h + D @ (C @ h) ** 2

    shapes = {"A": (3, 2), "B": (2, 3), "C": (3, 2), "D": (2, 3)}
    answer = dimension(from_callable(blocks, shapes, inputs={"x": (2,)}), engine=False)
    assert (answer.image_dim, answer.certainty.value, answer.defect) == (12, "proved", None)
    assert checked(answer.certificate) == 0


def test_a_symmetry_of_the_whole_counts_though_its_weights_are_in_one_part() -> None:
    """|V T'T x|^2 with two rows is a quadric of rank two in three variables, dimension 5: six entries of V T'T, and O(2)."""

    def quadric(T: Any, V: Any, x: Any) -> Any:
        return ((V @ (T.T @ (T @ x))) ** 2).sum()

    answer = dimension(from_callable(quadric, {"T": (3, 3), "V": (2, 3)}, inputs={"x": (3,)}), engine=False)
    assert (answer.image_dim, answer.certainty.value) == (5, "proved")
    assert checked(answer.certificate) == 0


def test_a_symmetry_of_the_first_part_counts_inside_it() -> None:
    """|V x|^2 times T'T w: three numbers of a quadric and two of a vector, up to a factor; O(2) is in the first part."""

    def quadric(V: Any, w: Any, T: Any, x: Any) -> Any:
        return T.T @ (T @ (w * ((V @ x) ** 2).sum()))

    shapes = {"V": (2, 2), "w": (2,), "T": (2, 2)}
    answer = dimension(from_callable(quadric, shapes, inputs={"x": (2,)}), engine=False)
    assert (answer.image_dim, answer.certainty.value) == (4, "proved")
    assert checked(answer.certificate) == 0


def test_forms_of_programs() -> None:
    assert one_hidden_layer(parse_spec("mlp(widths=[3,2,4],r=3)").program) == (3, 2, 4, 3)
    assert one_hidden_layer(parse_spec("mlp(widths=[3,2,4,1],r=3)").program) is None
    assert coordinate_count(parse_spec("mlp(widths=[2,3,2],r=2)").program) == 6


def test_rotations_are_found_where_fields_of_degree_two_are_too_many_to_be_searched() -> None:
    """Quadrics in 16 variables of rank at most 12: 12 * 16 - 66; the weights are 12 * 16 + 12, more than a search takes."""
    model = from_callable(lambda W, v, x: v @ (W @ x) ** 2, {"W": (12, 16), "v": (12,)}, inputs={"x": (16,)})
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (126, "proved")
