"""Upper bounds by polynomial vector fields and by compositions: verified where they hold, refused where they do not."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import makers as M  # noqa: N812
import pytest
from makers import (
    composition_bound,
    fields_bound,
    narrow_matrices,
    symmetry_certificate,
    written_field,
)

from m2bridge import checker, checker_further
from m2bridge.programs import parse_program

Field = dict[int, dict[Any, int]]
POINT = {"seed": 3, "stream": 1, "fixed": []}


def outcome(document: Any) -> tuple[int, str]:
    code, said = checker.verify(json.dumps(document))
    return code, " ".join(said)


def bound(text: str, upper: Any) -> int:
    return checker.check_upper(checker.read_program(text), json.loads(json.dumps(upper)), None)


def starts(text: str) -> dict[str, int]:
    """The first flat weight of each weight."""
    program = checker.read_program(text)
    found, at = {}, 0
    for name, place in program.weights.items():
        found[name], at = at, at + program.size(place)
    return found


def monomial(*places: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, places.count(i)) for i in sorted(set(places)))


def by_fields(text: str, groups: list[Any], fields: list[Field]) -> Any:
    return fields_bound(groups, fields, prime=M.P, weights=POINT)


def cross(v: int) -> list[dict[Any, int]]:
    """The cross product of the columns of a 3 x 2 weight that begins at v: what V1^T does not see."""
    return [{monomial(v + 2 * ((i + 1) % 3 if s > 0 else (i + 2) % 3), v + 2 * ((i + 2) % 3 if s > 0 else (i + 1) % 3) + 1): s
             for s in (1, -1)} for i in range(3)]  # fmt: skip


def widening() -> tuple[str, list[Any], list[Field]]:
    """d = (2, 3, 2): what the second layer does outside the image of V1 is not seen."""
    text = M.attention_text([2, 3, 2], [2, 2], 2)
    at = starts(text)
    normal = cross(at["V1"])
    fields = [
        {at[name] + 3 * row + i: normal[i] for i in range(3)}
        for name in ("Q2", "K2", "V2")
        for row in range(2)
    ]
    return text, M.attention_groups([2, 3, 2], [2, 2]), fields


def biases(softmax: bool = False) -> tuple[str, list[Field]]:
    """y = W2 (W1 x + b1) + b2: b1 can move if b2 follows. For softmax: a number added to all keys is not seen."""
    text = M.Text()
    if softmax:
        q, k, c, v = (
            text(f"weight {n} {s}")
            for n, s in (("Q", "[1,2]"), ("K", "[1,2]"), ("c", "[1,1]"), ("V", "[1,2]"))
        )
        x = text("input X [2,3]")
        keys = text("add", text("einsum ab,bc->ac", k, x), c)
        scores = text("softmax 1", text("einsum ab,ac->bc", text("einsum ab,bc->ac", q, x), keys))
        out = text("einsum ab,cb->ac", text("einsum ab,bc->ac", v, x), scores)
        return text.done(out), [{4: {(): 1}}]
    w1, b1, w2, b2 = (
        text(f"weight {n} {s}") for n, s in (("W1", "[2,2]"), ("b1", "[2]"), ("W2", "[2,2]"), ("b2", "[2]"))
    )
    x = text("input x [2]")
    hidden = text("add", text("einsum ab,b->a", w1, x), b1)
    out = text("add", text("einsum ab,b->a", w2, hidden), b2)
    fields: list[Field] = [
        {4 + i: {(): 1}, 10: {monomial(6 + i): -1}, 11: {monomial(8 + i): -1}} for i in range(2)
    ]
    return text.done(out), fields


def rank_one() -> tuple[str, list[Any], list[Field]]:
    """After a layer with a = 1 all tokens are proportional, and a skew part of A2 = K2^T Q2 is not seen: Q2 may move by J K2."""
    text = M.attention_text([3, 3, 3], [1, 2], 3)
    at = starts(text)
    fields: list[Field] = []
    for to, source in (("Q2", "K2"), ("K2", "Q2")):
        first: Field = {at[to] + j: {monomial(at[source] + 3 + j): 1} for j in range(3)}
        fields.append(first | {at[to] + 3 + j: {monomial(at[source] + j): -1} for j in range(3)})
    return text, M.attention_groups([3, 3, 3], [1, 2]), fields


def mixed_heads() -> tuple[str, list[Any], list[Field]]:
    """Two heads with a = d = 2: A_g += det(K_g) A_h is undone by V_h -= det(K_g) V_g, with Q_g += adj(K_g)^T K_h^T Q_h."""
    text = M.attention_text([2, 3], [2], 2, heads=[2])
    at, fields = starts(text), []
    for g, h in ((0, 1), (1, 0)):
        field: Field = {}
        k, keys, queries = [at[n] + 4 * head for n, head in (("K1", g), ("K1", h), ("Q1", h))]
        adjugate = [[(k + 3, 1), (k + 2, -1)], [(k + 1, -1), (k, 1)]]  # times K_g^T: det(K_g)
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            field[at["Q1"] + 4 * g + 2 * i + j] = {
                monomial(adjugate[i][m][0], keys + 2 * n + m, queries + 2 * n + j): adjugate[i][m][1]
                for m in range(2) for n in range(2)
            }  # fmt: skip
        for i in range(6):
            own = at["V1"] + 6 * g + i
            field[at["V1"] + 6 * h + i] = {monomial(k, k + 3, own): -1, monomial(k + 1, k + 2, own): 1}
        fields.append(field)
    return text, M.attention_groups([2, 3], [2], heads=[2]), fields


def powers() -> tuple[str, list[Field]]:
    """(a + b + 1)^40 + (a + b + 2)^41 + x: many terms; a - b does not matter."""
    text = M.Text()
    a, b, x = text("weight a []"), text("weight b []"), text("input x []")
    total = text("add", a, b)
    moved = [text("add", total, text(f"constant [] {n}")) for n in (1, 2)]
    parts = [text(f"power {n}", m) for n, m in zip((40, 41), moved, strict=True)]
    return text.done(text("add", text("add", *parts), x)), [{0: {(): 1}, 1: {(): -1}}]


@pytest.mark.parametrize("made", [widening, rank_one, mixed_heads])
def test_fields_meet_the_truth_where_groups_do_not(made: Any) -> None:
    text, groups, fields = made()
    lower, n = M.minor(text)
    assert bound(text, by_fields(text, groups, [])) > n
    document = M.document(text, None, n, lower, by_fields(text, groups, fields))
    assert outcome(document)[0] == 0
    for wrong in changed(fields[0]):
        other = {**document, "upper": by_fields(text, groups, [*fields[1:], wrong])}
        assert outcome(other)[0] == 7


def changed(field: Field) -> list[Field]:
    """Fields that differ a little: a sign, a factor, a part left out, a translation more."""
    i = min(field)
    rest = {k: v for k, v in field.items() if k != i}
    found = [rest, {**rest, i: {m: 2 * c for m, c in field[i].items()}}, {**rest, i: {**field[i], (): 5}}]
    return [*found, {**rest, i: {m: c + M.P for m, c in field[i].items()}}]  # equal modulo the prime only


def test_translations_and_biases() -> None:
    text, fields = biases()
    lower, n = M.minor(text)
    gl = {"group": "gl", "size": 2, "axes": {"W1": [1, 0], "b1": [1], "W2": [0, -1]}}
    assert n == 6
    assert outcome(M.document(text, None, n, lower, by_fields(text, [gl], fields)))[0] == 0
    assert bound(text, by_fields(text, [gl], [])) == 8
    for wrong in changed(fields[0]):
        assert outcome(symmetry_certificate(text, [], [wrong]))[0] == 7


def test_a_field_that_dies_in_a_softmax() -> None:
    """A line of softmax adds up to one: the same number added to all scores of a line is not seen."""
    text, fields = biases(softmax=True)
    assert outcome(symmetry_certificate(text, [], fields))[0] == 0
    for wrong in ({0: {(): 1}}, {2: {(): 1}}, {4: {(): 1}, 5: {(): 1}}):
        assert outcome(symmetry_certificate(text, [], [wrong]))[0] == 7
    turned = text.replace("softmax 1", "softmax 0")
    assert outcome(symmetry_certificate(turned, [], fields))[0] == 7


def test_values_that_do_not_move_are_unknowns() -> None:
    """GL(6) between two layers of attention is too much to expand; it dies at the layer where it acts."""
    text = M.attention_text([4, 4, 4, 4], [2, 2, 2], 3)
    at = starts(text)
    field: Field = {at["V2"] + j: {monomial(at["V2"] + 4 + j): 1} for j in range(4)}
    for name, rows in (("Q3", 2), ("K3", 2), ("V3", 4)):
        field |= {at[name] + 4 * r + 1: {monomial(at[name] + 4 * r): -1} for r in range(rows)}
    assert outcome(symmetry_certificate(text, [], [field]))[0] == 0
    for wrong in changed(field)[:2]:
        assert outcome(symmetry_certificate(text, [], [wrong]))[0] in (7, 8)


def test_values_that_move_together_need_no_expansion(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be expanded, and is not seen by unknowns, is not known."""
    text, fields = powers()
    monkeypatch.setattr(checker.Polynomials, "dot", _refuse)
    assert outcome(symmetry_certificate(text, [], fields))[0] == 0
    for wrong in ({0: {(): 1}}, {0: {(): 1}, 1: {(): -2}}, {0: {(): 1}, 1: {monomial(0): -1}}):
        assert outcome(symmetry_certificate(text, [], [wrong]))[0] == 7
    large = M.attention_text([3, 3, 3], [2, 2], 3)
    scaling: Field = {i: {monomial(i): 1 if i < 6 else -1} for i in range(12)}
    assert outcome(symmetry_certificate(large, [], [scaling]))[0] == 8


DOT = checker.Polynomials.dot


def _refuse(ring: Any, xs: Any, ys: Any) -> Any:
    """Numbers are multiplied, polynomials are not."""
    if any(monomial for f in (*xs, *ys) for monomial in f):
        raise checker.Unknown("no expansion here")
    return DOT(ring, xs, ys)


def test_fields_of_one_kind_are_tried_where_the_last_one_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second field needs fewer products than the first, and a wrong one is refused wherever it is tried."""
    text, _, fields = mixed_heads()
    circuit = checker.read_program(text)
    products = 0

    def counted(ring: Any, xs: Any, ys: Any) -> Any:
        nonlocal products
        products += 1
        return DOT(ring, xs, ys)

    monkeypatch.setattr(checker.Polynomials, "dot", counted)
    counts, last = [], None
    for field in (fields[0], fields[1]):
        products = 0
        last = checker.check_field(circuit, checker.read_field(circuit, written_field(field)), last)
        counts.append(products)
    assert counts[1] < counts[0] / 3
    for wrong in changed(fields[0]):
        with pytest.raises(checker.Rejected):
            checker.check_field(circuit, checker.read_field(circuit, written_field(wrong)), last)


def test_wide_networks_have_more_products_to_try() -> None:
    """Four layers of width 64: a change of basis between two layers takes about 300,000 products of terms."""
    circuit = checker.read_program(M.attention_text([64] * 5, [2] * 4, 3, softmax=True))
    axes = {"V1": [1, 0], "V2": [0, -1], "Q2": [0, -1], "K2": [0, -1]}
    fields, _ = checker.group_fields(circuit, {"group": "gl", "size": 64, "axes": axes})
    assert checker.check_field(circuit, fields[0]) == (len(circuit.gates) - 1, False)


@pytest.mark.parametrize(
    "field",
    [
        [], {}, [[0, 1]], [[0, 1, [], 0]], [[-1, 1, []]], [[6, 1, []]], [[0, 1.0, []]], [[0, True, []]], [[0, 1, [[0, 0]]]],
        [[0, 1, [[1, 1], [0, 1]]]], [[0, 1, [[0, 1], [0, 1]]]], [[0, 1, [[6, 1]]]], [[0, 1, [0, 1]]], [[0, "1", []]],
        [[0, 1, [[0, 10**9]]]], [[0, 0, 1]],
    ],
)  # fmt: skip
def test_fields_are_read_strictly(field: Any) -> None:
    text = M.mlp_text([2, 2, 1], 2)
    document = symmetry_certificate(text)
    document["statement"]["fields"] = [field]
    assert outcome(document)[0] == 7


# -- compositions -----------------------------------------------------------------------------------------


def linear_composition(widths: list[int]) -> tuple[str, Any]:
    text = M.mlp_text(widths, 1)
    return text, narrow_matrices(parse_program(text))


@pytest.mark.parametrize("widths", [[5, 2, 3, 4], [3, 1, 3], [4, 3, 2, 3, 4], [2, 2, 2], [2, 3]])
def test_linear_networks_by_composition(widths: list[int]) -> None:
    text, upper = linear_composition(widths)
    lower, n = M.minor(text)
    assert n == min(widths) * (widths[0] + widths[-1] - min(widths))
    assert outcome(M.document(text, None, n, lower, upper))[0] == 0
    if upper["kind"] == "coordinates":
        return
    few = {**upper, "samples": 1}
    assert bound(text, few) >= n
    assert bound(text, {**upper, "groups": []}) == n + min(widths) ** 2


def test_layers_by_composition() -> None:
    """Two layers of attention: both by their own symmetries, and GL between them; in three layers the second part again."""
    widths, ranks = [2, 2, 2, 1], [2, 1, 2]
    text = M.attention_text(widths, ranks, 2)
    _lower, n = M.minor(text)
    groups = M.attention_groups(widths, ranks)
    own = [
        [g for g in groups[: 2 * 3] if next(iter(g.get("axes", g.get("weights"))))[1:] == str(i)]
        for i in (1, 2, 3)
    ]
    between = groups[6:]
    single = [M.symmetries(text, g, p=M.P) for g in own]
    inner = composition_bound(
        11, single[1], single[2], prime=M.P, weights=POINT, groups=between[1:], samples=6
    )
    program = checker.read_program(text)
    places = [
        k for k, item in enumerate(program.gates) if item.shape == (2, 2) and item.words == ["ab", "bc", "ac"]
    ]
    first_cut = next(k for k in places if program.gates[k].operands[0] == program.weights["V1"])
    rest, _ = checker_further.subprogram(program, program.outputs, first_cut)
    second_cut = next(k for k, item in enumerate(rest.gates) if item.operands[:1] == [rest.weights["V2"]])
    inner["cut"] = second_cut
    whole = composition_bound(
        first_cut, single[0], inner, prime=M.P, weights=POINT, groups=between[:1], samples=6
    )
    assert bound(text, whole) >= n
    assert bound(text, whole) == bound(text, M.symmetries(text, groups, p=M.P))


def test_a_cut_of_weights_alone() -> None:
    """A = K^T Q as an instruction: matrices of rank at most a, then what is linear in V; a scaling between them."""
    text = M.Text()
    q, k, v, x = text("weight Q [1,3]"), text("weight K [1,3]"), text("weight V [2,3]"), text("input X [3,2]")
    a = text("einsum ab,ac->bc", k, q)
    scores = text("einsum ab,ac->bc", x, text("einsum ab,bc->ac", a, x))
    program = text.done(text("einsum ab,bc->ac", text("einsum ab,bc->ac", v, x), scores))
    gl = {"group": "gl", "size": 1, "axes": {"Q": [1, 0], "K": [-1, 0]}}
    scaling = {"group": "scaling", "weights": {"Q": 1, "V": -1}}
    upper = composition_bound(
        4,
        M.symmetries(program, [gl]),
        {"kind": "parameters"},
        prime=M.P,
        weights=POINT,
        groups=[scaling],
        samples=3,
    )
    lower, n = M.minor(program)
    assert n == 5 + 6 - 1
    assert outcome(M.document(program, None, n, lower, upper))[0] == 0


def test_forged_compositions_are_rejected() -> None:
    text, upper = linear_composition([5, 2, 3, 4])
    lower, n = M.minor(text)
    good = M.document(text, None, n, lower, upper)
    for key, value in (
        ("cut", 0), ("cut", 3), ("cut", 6), ("cut", 7), ("cut", -1), ("cut", True), ("samples", 0), ("prime", 4),
        ("groups", None), ("first", {"kind": "parameter"}), ("second", None), ("fields", [[]]), ("fields", [[[0, 1, []]]]),
        ("cut", 5),
        ("second", {"kind": "virtual"}), ("groups", [{"group": "gl", "size": 2, "axes": {"W1": [1, 0], "W2": [0, 1]}}]),
        ("groups", [{"group": "gl", "size": 2, "axes": {"W1": [1, 0]}}]),
    ):  # fmt: skip
        wrong = copy.deepcopy(good)
        wrong["upper"][key] = value
        assert outcome(wrong)[0] == 7, (key, value)
    for key in upper:
        wrong = copy.deepcopy(good)
        del wrong["upper"][key]
        assert outcome(wrong)[0] == 7, key
    twice = copy.deepcopy(good)
    twice["upper"]["groups"] *= 2  # the same symmetry counts once
    assert outcome(twice)[0] == 0


def test_weights_in_both_parts_and_inputs_after_the_cut() -> None:
    """W (W x) and x + W x: the bound of a cut is still above the truth."""
    text = M.Text()
    w, x = text("weight W [2,2]"), text("input x [2]")
    h = text("einsum ab,b->a", w, x)
    program = text.done(text("add", x, text("einsum ab,b->a", w, h)))
    upper = composition_bound(2, {"kind": "coordinates"}, {"kind": "parameters"}, prime=M.P, weights=POINT)
    assert M.generic_rank(program) == 4 <= bound(program, upper) == 8


def test_deep_nests_of_cuts_end() -> None:
    text, upper = linear_composition([2, 1, 2])
    nested: Any = {"kind": "parameters"}
    for _ in range(300):
        nested = {**upper, "first": nested}
    assert outcome(M.document(text, None, 3, M.minor(text)[0], nested))[0] == 7


def test_parts_are_programs_of_their_own() -> None:
    text = M.attention_text([2, 3, 2], [2, 1], 2)
    program = checker.read_program(text)
    cut = next(k for k, item in enumerate(program.gates) if item.operands[:1] == [program.weights["V1"]])
    first, one = checker_further.subprogram(program, [cut], None)
    second, two = checker_further.subprogram(program, program.outputs, cut)
    assert list(first.weights) == ["Q1", "K1", "V1"]
    assert list(second.weights) == ["Q2", "K2", "V2"]
    assert [*one, *two] == list(range(program.parameters))
    assert all(j < k for own in (first, second) for k, item in enumerate(own.gates) for j in item.operands)
    weights, x = [7 * i % 11 for i in range(program.parameters)], [3, 1, 4, 1]
    ring = checker.ModP(101)
    whole = checker.Evaluation(program, ring).outputs(weights, x)
    middle = checker.Evaluation(first, ring).outputs([weights[i] for i in one], x)
    end = checker.Evaluation(second, ring).outputs([weights[i] for i in two], middle)
    assert whole == end
    assert all(a < b for a, b in pairwise(one))


def test_the_operand_of_a_normalisation_is_soon_one_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Centred values add up to zero, whatever they are computed from: here from powers that are too long to expand."""
    lines = ["weight A [3,3]", "weight W [2,3]", "weight b []", "input x [3]", "einsum ab,b->a %0 %3", "power 60 %4",
             "einsum a-> %5", "scale -1/3 %6", "add %5 %7", "power 2 %8", "einsum a-> %9", "sqrt %10", "reciprocal %11",
             "multiply %8 %12", "einsum ab,b->a %1 %13"]  # fmt: skip
    text = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    circuit = checker.read_program(f"m2bridge program 1\n{text}output y %14\n")
    attempts, outputs_may_move = [], checker.outputs_may_move

    def counted(*arguments: Any) -> bool:
        attempts.append(arguments[3:5])
        return outputs_may_move(*arguments)

    monkeypatch.setattr(checker, "outputs_may_move", counted)
    row = {9: {(): 1}, 10: {(): 1}, 11: {(): 1}}
    assert checker.check_field(circuit, row) == (5, False)
    assert [last for last, solve in attempts if not solve] == [14, 0, 8, 5]
    assert checker.check_field(circuit, {15: {(): 1}}) == (14, False)  # no instruction reads b
    ring = checker.Polynomials()
    run, variables = checker.Evaluation(circuit, ring), ring.variables(19)
    assert outputs_may_move(run, variables, {**row, 11: {(): 2}}, 5, False)


def test_products_of_reciprocals_and_denominators_are_rewritten() -> None:
    """With r (2 a + 3 b) = 1, variables 0, 1 and 2: r b is 1/3 - 2/3 r a; terms without r b stay."""
    ring = checker.Polynomials()
    rules = checker.rules_of_reciprocals(ring, [{(0,): 2, (1,): 3}], [{(2,): 1}])
    assert rules == {2: ((1,), {(): Fraction(1, 3), (0, 2): Fraction(-2, 3)})}
    assert checker.rewritten(ring, {(1, 2): 3, (0, 2): 2}, rules) == {(): 1}
    assert checker.rewritten(ring, {(1, 1, 2): 3}, rules) == {
        (1,): 1,
        (0,): Fraction(-2, 3),
        (0, 0, 2): Fraction(4, 3),
    }
    for other in ({(0, 2): 1}, {(1,): 5}, {(2, 2): 1}, {}):
        assert checker.rewritten(ring, other, rules) == other
    assert checker.divided((0, 1, 1, 2), (1, 2)) == (0, 1)
    assert checker.divided((0, 1, 2), (1, 1)) is None
    assert checker.rules_of_reciprocals(ring, [{}], [{(2,): 1}]) == {}


@pytest.mark.parametrize("tail", [[], ["multiply %4 %2"], ["add %4 %2"], ["add %4 %3"], ["multiply %3 %3"]])
def test_a_quotient_of_equal_values_is_constant(tail: list[str]) -> None:
    """s/s does not change with the weights; s/s times s, s/s + s, s/s + 1/s and 1/s^2 do."""
    lines = ["weight w [2]", "input x [2]", "einsum a,a-> %0 %1", "reciprocal %2", "multiply %2 %3", *tail]
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    circuit = checker.read_program(f"m2bridge program 1\n{body}output y %{len(lines) - 1}\n")
    field = checker.read_field(circuit, [[0, 1, []]])
    if not tail:
        checker.check_field(circuit, field)
    else:
        with pytest.raises(checker.Rejected, match="changes the function"):
            checker.check_field(circuit, field)


def test_entries_that_move_by_multiples_of_entries() -> None:
    """2 a + 3 b moves by 4 a + 6 b: twice itself; 4 a + 5 b is no multiple, and nothing is zero times anything."""
    first, second = {(0,): 2, (1,): 3}, {(0, 1): 2}
    assert checker.multiples([{(0,): 4, (1,): 6}, {}], [first, second]) == [
        (2, 0),
        (0, 0),
    ]
    assert checker.multiples([{(0, 1): -1}, {(0,): 2, (1,): 3}], [first, second]) == [
        (Fraction(-1, 2), 1),
        (1, 0),
    ]
    for wrong in ({(0,): 4, (1,): 5}, {(0,): 4}, {(2,): 1}, {(): 1}, {(0,): 2, (1,): 3, (2,): 1}):
        assert checker.multiples([wrong, {}], [first, second]) is None
    assert checker.multiples([{(0,): 4}], [{}]) is None
    equal = [{(0,): 1, (1,): 1}] * 2  # as in a symmetric matrix
    assert checker.multiples(equal, equal) == [(1, 0), (1, 1)]


def test_scalings_around_a_symmetric_matrix_need_no_expansion() -> None:
    """V X (K X)^T (K X): K is multiplied by s, V by s^-2. Entries (i, j) and (j, i) of (K X)^T (K X) are one polynomial."""
    lines = (
        "weight K [2,2]", "weight V [1,2]", "input X [2,3]", "einsum ab,bc->ac %0 %2", "einsum ab,ac->bc %3 %3",
        "einsum ab,bc->ac %2 %4", "einsum ab,bc->ac %1 %5",
    )  # fmt: skip
    numbered = [f"%{k} = {line}" for k, line in enumerate(lines)]
    circuit = checker.read_program("\n".join(["m2bridge program 1", *numbered, "output y %6", ""]))
    scaling = {i: {(i,): 1 if i < 4 else -2} for i in range(6)}
    assert checker.check_field(circuit, scaling) == (6, False)
    with pytest.raises(checker.Rejected):
        checker.check_field(circuit, {**scaling, 5: {(5,): -1}})


def test_a_symmetry_inside_one_part_does_not_count() -> None:
    """GL(2) between W1 and W2 moves neither function of a cut after W2; GL(1) at the cut moves both."""
    text, upper = linear_composition([2, 2, 1, 2])
    inner = {"group": "gl", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    assert upper["cut"] == 5
    assert bound(text, {**upper, "groups": []}) == bound(text, {**upper, "groups": [inner]}) == 4
    assert bound(text, {**upper, "groups": [inner, *upper["groups"]]}) == 3 == M.generic_rank(text)


def test_the_degree_of_a_hypersurface_is_that_of_bezout() -> None:
    """Four cubics in three variables satisfy an equation of degree 3^2; nonics modulo its multiples have 220 - 1 coefficients."""

    def powers(outputs: int, inputs: int, degree: int, name: str) -> checker.Circuit:
        lines = [
            f"%0 = weight W [{outputs},{inputs}]",
            f"%1 = input x [{inputs}]",
            "%2 = einsum ab,b->a %0 %1",
        ]
        text = "\n".join(["m2bridge program 1", *lines, f"%3 = power {degree} %2", "output y %3", ""])
        circuit = checker.read_program(text)
        circuit.gates[1].words[0] = name
        return checker.Circuit(circuit.gates, circuit.outputs)

    assert checker_further.hypersurface_bound(powers(4, 3, 3, "x"), powers(1, 4, 9, "x%"), "x%") == 219
    assert checker_further.hypersurface_bound(powers(4, 3, 2, "x"), powers(2, 4, 4, "x%"), "x%") == 2 * 34
    with pytest.raises(checker.Rejected, match="too small a degree"):
        checker_further.hypersurface_bound(powers(4, 3, 3, "x"), powers(1, 4, 8, "x%"), "x%")


def test_zeros_behind_a_mask_do_not_hide_a_multiple(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cubes of masked scores are added up: those that are zero move by the same multiple as the others."""
    lines = (
        "weight K [1,3]", "weight V [3,3]", "input X [3,3]", "einsum ab,bc->ac %0 %2", "einsum ab,ac->bc %3 %3", "power 3 %4",
        "constant [3,3] 1 1 1 0 1 1 0 0 1", "multiply %5 %6", "einsum ab,bc->ac %2 %7",
        "einsum ab,bc->ac %8 %8", "power 9 %9", "einsum ab,bc->ac %1 %10",
    )  # fmt: skip
    text = "\n".join(
        ["m2bridge program 1", *(f"%{k} = {line}" for k, line in enumerate(lines)), "output y %11", ""]
    )
    scaling = {i: {monomial(i): 1 if i < 3 else -108} for i in range(12)}
    monkeypatch.setattr(checker, "MOST_TERMS", 10**5)
    assert bound(text, by_fields(text, [], [scaling])) == 11
