"""Falsehoods that a mutant of the checker accepted while all other tests passed (SURVIVORS.md)."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import makers as M  # noqa: N812
import pytest
import test_lemmas

from m2bridge import checker, checker_families, checker_further


def read_text(*lines: str) -> str:
    """Write the program of these instructions; the last one is the output."""
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    return f"m2bridge program 1\n{body}output y %{len(lines) - 1}\n"


def read(*lines: str) -> checker.Circuit:
    """Read the program of these instructions."""
    return checker.read_program(read_text(*lines))


@pytest.mark.parametrize(
    ("weights", "keeps"),
    [({"a": 1, "b": -2}, True), ({"a": 1, "b": -3}, False), ({"b": 1}, False), ({"a": 1, "b": -1}, False)],
)
def test_a_root_moves_by_half_of_its_radicand(weights: dict[str, int], keeps: bool) -> None:
    """a sqrt(b) is kept if b is multiplied by t^-2 and a by t."""
    circuit = read("weight a []", "weight b []", "sqrt %1", "multiply %0 %2")
    generating, _ = checker.group_fields(circuit, {"group": "scaling", "weights": weights})
    if keeps:
        checker.check_fields(circuit, generating)
        return
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_fields(circuit, generating)


@pytest.mark.parametrize("p", [3, 5, 7, 17, 97, 101, 2**31 - 1, 2**61 - 1])
def test_roots_modulo_a_prime(p: int) -> None:
    """A wrong root is a point at which the program has other values."""
    ring = checker.ModP(p)
    for x in (n * n % p for n in range(1, min(p, 60))):
        root = ring.sqrt(x)
        assert root * root % p == x
        assert 0 < root <= p // 2
    with pytest.raises(checker.NoRoot):
        ring.sqrt(next(n for n in range(p) if pow(n, (p - 1) // 2, p) == p - 1))
    with pytest.raises(checker.Undefined):
        ring.sqrt(0)
    with pytest.raises(checker.Undefined):
        checker.ModP(2).sqrt(1)


ROOT_OF_INPUTS = ("weight w []", "input x []", "multiply %0 %1", "sqrt %2")


def root_of_inputs(**changes: Any) -> int:
    """Check the dimension of sqrt(w x) at the input 2 (a square modulo 7), with 3 as one at which there is no root."""
    draws = [x % 7 for x in checker.stream(1, 2, 40)]
    roots = {"draws": [draws.index(2)], "inputs": [draws.index(3)], "weights": []}
    argument = {
        "kind": "minor",
        "prime": 7,
        "samples": 1,
        "rows": [[0, 0]],
        "columns": [0],
        "weights": {"entries": [1]},
    }
    argument |= {"inputs": {"seed": 1, "stream": 2, "fixed": []}, "roots": roots | changes.pop("roots", {})}
    return checker.check_lower(read(*ROOT_OF_INPUTS), argument | changes)


def test_inputs_of_roots_are_the_drawn_ones() -> None:
    """Fixed entries are not looked at; they are refused."""
    assert root_of_inputs() == 1
    with pytest.raises(checker.Rejected, match="no fixed entries"):
        root_of_inputs(inputs={"seed": 1, "stream": 2, "fixed": [[0, [2]]]})


def test_symmetries_of_a_quotient_by_a_root() -> None:
    """a / sqrt(b): the random function in the place of the root has an inverse."""
    circuit = read("weight a []", "weight b []", "sqrt %1", "reciprocal %2", "multiply %0 %3")
    scaling = {"group": "scaling", "weights": {"a": 1, "b": 2}}
    assert checker.check_symmetry(circuit, None, [scaling], []).numbers == {"orbit": 1}


def test_a_verdict_is_a_text() -> None:
    """v w + c, with a further weight c, is no product with c: there is no verdict about it, and null is none."""
    document = test_lemmas.identifiable("determined", [[0, 1, [[0, 1]]], [1, -1, [[1, 1]]]])
    lines = ("weight v []", "weight w []", "weight c []", "multiply %0 %1", "add %2 %3")
    document["statement"] |= {"function": test_lemmas.program(*lines), "verdict": None}
    code, sentences = checker.verify(json.dumps(document))
    assert code == 7
    assert "a verdict is a text" in sentences[0]


def test_fields_of_a_second_part_behind_a_hypersurface_are_not_subtracted() -> None:
    """z = (a x^2, b x y, c y^2) satisfies b^2 z_0 z_2 = a c z_1^2, so that Q may move by it in z Q z; it is counted."""
    lines = ("weight w [3]", "weight Q [3,3]", "input x [2]", "gather [3] 0,0,1 %2", "gather [3] 0,1,1 %2")
    lines += ("multiply %3 %4", "multiply %0 %5", "einsum ab,b->a %1 %6", "einsum a,a-> %6 %7")
    equation = [[5, 1, [[1, 2]]], [7, -1, [[0, 1], [2, 1]]]]
    upper = {
        "kind": "composition",
        **test_lemmas.PLACE,
        "cut": 6,
        "samples": 5,
        "groups": [],
        "fields": [equation],
    }
    upper |= {"first": {"kind": "parameters"}, "second": {"kind": "hypersurface"}}
    assert checker.check_upper(read(*lines), upper) == 3 + 5


def test_rules_of_reciprocals_divide_by_the_coefficient() -> None:
    """r = 1 / (2 a): r a is 1/2."""
    rules = checker.rules_of_reciprocals(checker.Polynomials(), [{(0,): 2}], [{(1,): 1}])
    assert rules == {1: ((0,), {(): Fraction(1, 2)})}


def test_weights_beside_exponentials_of_weights_are_independent_functions() -> None:
    """Functions: 1, the entries of a, w, 2 w, x. The exponent 2 w and w are compared, and a is not."""
    circuit = read(
        "weight a [2]",
        "weight w []",
        "input x []",
        "scale 2 %1",
        "exp %3",
        "multiply %0 %4",
        "multiply %5 %2",
    )
    assert checker_further.number_functions(circuit).independent_functions() == ([0, 3, 4], [5])


def test_a_slice_has_a_run_for_each_axis() -> None:
    with pytest.raises(checker.Rejected, match="the shapes do not fit"):
        read("weight w [2,2]", "slice 0:1:1 %0")


def test_too_little_memory_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(checker, "check_document", exhausted)
    assert checker.verify("{}")[0] == 8


SCALING: list[Any] = [[0, 1, [[0, 1]]], [1, -1, [[1, 1]]]]
"""The vector field v d/dv - w d/dw, which keeps v w x."""


def about(verdict: str, function: str, *field: Any) -> dict[str, Any]:
    """A certificate about this function of v and w for the network v w x; terms of the field are added to the scaling."""
    document = test_lemmas.identifiable(verdict, [*SCALING, *field])
    document["statement"]["function"] = function
    return document


def test_a_number_is_not_determined_up_to_scale() -> None:
    """c v is kept if c is divided by what v is multiplied with; but v can be every number, so that this says nothing."""
    product = test_lemmas.program("weight v []", "weight w []", "weight c []", "einsum ,-> %2 %0")
    moves = [2, -1, [[2, 1]]]
    test_lemmas.refused(about("determined up to scale", product, moves), "as many entries")
    for verdict in ("determined", "not determined", "each row up to scale"):
        test_lemmas.refused(about(verdict, product, moves), "about another function")


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (("weight c []", "einsum ,ab->ab %2 %0"), "determined up to scale"),
        (("weight c [2]", "einsum a,ab->ab %2 %0"), "each row up to scale"),
        (("weight c [2]", "einsum a,abc->abc %2 %1"), "each block (head) up to scale"),
        (("weight c [3]", "einsum a,ba->ba %2 %0"), "each column up to scale"),
        (("weight c [2,2]", "einsum ab,bc->ac %2 %0"), "up to a change of basis of the rows"),
        (("weight c [4,4]", "einsum ab,cda->cdb %2 %1"), "up to a change of basis of the columns"),
        (("weight c []", "power 2 %0", "einsum ,ab->ab %2 %3"), "determined up to scale"),
        # one factor alone, and products that show less
        (("weight c []", "einsum -> %2"), None),
        (("weight c [1,2]", "einsum ab,bc->ac %2 %0"), None),
        (("weight c [2,3]", "einsum ab,ab->ab %2 %0"), None),
        (("weight c [3]", "einsum a,ba->b %2 %0"), None),
        (("weight c [2,2]", "einsum ab,bc->ca %2 %0"), None),
        # no product as the last instruction, or none with the further weight, or as its second factor
        (("weight c []", "multiply %2 %0"), None),
        (("weight c []", "einsum ,ab->ab %2 %0", "reshape [6] %3"), None),
        (("weight c [2]", "einsum a,bc->abc %2 %0", "einsum a,ab->ab %2 %0"), None),
        (("weight c [2,2]", "reshape [6] %0", "slice 0:2:1 %3", "einsum a,ab->ab %4 %2"), None),
        # a function of the further weight, and two further weights
        (("weight c []", "multiply %2 %0", "einsum ,ab->ab %2 %3"), None),
        (("weight c []", "weight d []", "multiply %3 %0", "einsum ,ab->ab %2 %4"), None),
    ],
)
def test_products_with_a_further_weight_and_their_verdicts(
    lines: tuple[str, ...], verdict: str | None
) -> None:
    assert checker_further.up_to(read("weight f [2,3]", "weight h [2,3,4]", *lines), 2) == verdict


def test_the_product_with_a_further_weight_is_the_output() -> None:
    """The product is computed, and the output is something else."""
    lines = ("weight f [2]", "weight c []", "power 2 %0", "einsum ,a->a %1 %2")
    text = test_lemmas.program(*lines)
    assert checker_further.up_to(checker.read_program(text), 1) == "determined up to scale"
    for outputs in ("output y %2", "output y %3\noutput z %2"):
        changed = checker.read_program(text.replace("output y %3", outputs))
        assert checker_further.up_to(changed, 1) is None


def test_a_function_of_the_weights_is_one_polynomial_of_them() -> None:
    """No other weights, no inputs, one output, no exponentials."""
    product = test_lemmas.program("weight v []", "weight w []", "multiply %0 %1")
    assert checker.verify(json.dumps(about("determined", product)))[0] == 0
    others = (
        product.replace("weight v", "weight u"),
        product.replace("%2\n", "%2\noutput z %2\n"),
        test_lemmas.program("weight v []", "weight w []", "input x []", "multiply %0 %1"),
        test_lemmas.program("weight v []", "weight w []", "multiply %0 %1", "exp %2"),
    )
    for function in others:
        test_lemmas.refused(about("determined", function), "not a polynomial one of the weights")


def test_a_weight_that_a_field_does_not_move_is_determined() -> None:
    """c in v w x + c x^2 is not moved by the scaling of v and w."""
    weights = ("weight v []", "weight w []", "weight c []")
    network = ("input x []", "multiply %0 %1", "multiply %4 %3", "power 2 %3", "multiply %2 %6", "add %5 %7")
    for function, code in (("scale 2 %0", 0), ("scale 2 %2", 7)):
        document = about("not determined", test_lemmas.program(*weights, function))
        document["program"] = test_lemmas.program(*weights, *network)
        document["argument"]["weights"] = {"entries": [1, 2, 3]}
        assert checker.verify(json.dumps(document))[0] == code
    document["argument"]["fields"] = []
    test_lemmas.refused(document, "one vector field moves the function")


def test_different_functions_have_different_outputs() -> None:
    """v w x has other outputs at (1, 2) and (1, 3), and the same at (1, 2) and (2, 1), and at the input 0."""
    document = about("determined", "")
    document["argument"] = None
    for pair, x, code in (([[1, 2], [1, 3]], 5, 0), ([[1, 2], [2, 1]], 5, 7), ([[1, 2], [1, 3]], 0, 7)):
        document["statement"] = {"kind": "different functions", "weights": pair, "input": [x]}
        assert checker.verify(json.dumps(document))[0] == code


def test_scores_of_softmax_have_no_power() -> None:
    """The definition of `attention` would ignore r beside softmax."""
    spec = {"d": [2, 2], "a": [1], "t": [2], "softmax": []}
    weights, _, _ = checker_families.tokens_attend(spec)
    assert list(weights) == ["Q1", "K1", "V1"]
    with pytest.raises(checker.Rejected, match="have no power"):
        checker_families.tokens_attend(spec | {"r": [2]})


def test_attention_has_ranks_and_heads_for_each_layer() -> None:
    with pytest.raises(checker.Rejected, match="not one for each layer"):
        checker_families.tokens_attend({"d": [2, 2], "a": [1, 1], "t": [2]})


def test_weights_of_several_heads() -> None:
    """For each of two heads: 3 x 3 matrices of rank at most 2, and 2 x 3 matrices."""
    spec = "deep-lightning(d=[3,2],a=[2],t=2,heads=2,parametrization=attention)"
    network = checker_families.read_spec(spec)
    assert network is not None
    assert network.parameter_dim == 2 * (8 + 6)


def test_perceptrons_of_further_families_have_biases_or_several_exponents() -> None:
    """Others are written as those of the first family; without a layer there is no network."""
    for widths, r in (([2, 2, 2], [2]), ([2], [])):
        with pytest.raises(checker.Rejected, match="canonical form"):
            checker_families.perceptron({"widths": widths, "r": r} | ({"bias": []} if not r else {}))


@pytest.mark.parametrize("axis", [0, 1])
def test_arrays_with_other_numbers_of_axes_are_not_joined(axis: int) -> None:
    with pytest.raises(checker.Rejected, match="shapes do not fit"):
        read("weight a [2,3]", "weight b [2]", f"concatenate {axis} %0 %1")


def test_units_of_weights_are_functions_of_weights() -> None:
    """exp(w + x) exp(-x) = exp(w), so that u = exp(w) + x^2 and v = x^2 are dependent over functions of weights (lemma 10, B)."""
    text = read_text(
        "weight w []", "input x []", "add %0 %1", "scale -1 %1", "exp %2", "exp %3", "multiply %4 %5", "power 2 %1",
        "add %6 %7", "exp %8", "exp %7", "multiply %9 %0", "add %11 %10",
    )  # fmt: skip
    relations = {"w + x": [3, [[1, 1], [2, 1]]], "-x": [4, [[2, -1]]]}
    lower, _ = M.unit_minor(text, relations={})
    lower["exponentials"]["relations"] = list(relations.values())
    with pytest.raises(checker.Rejected, match="not seen to be independent"):
        checker.check_lower(checker.read_program(text), lower)


def test_multiples_of_a_function_are_not_all_its_values() -> None:
    """s = u + v moves by a factor, as every function of rank one; so does (s, 0). That (u, v) does says something."""
    network = read_text("weight w [2]", "weight v []", "input x [2]", "einsum a,a-> %0 %2", "multiply %1 %3")
    lower, dim = M.minor(network)
    assert dim == 2
    scaling = [[0, 1, [[0, 1]]], [1, 1, [[1, 1]]], [2, -1, [[2, 1]]], [3, -1, [[3, 1]]]]
    head = ("weight w [2]", "weight v []", "weight c []")
    padded = read_text(
        *head,
        "reshape [1,2] %0",
        "einsum ab->a %3",
        "constant [1] 0",
        "concatenate 0 %4 %5",
        "einsum ,a->a %2 %6",
    )
    weights = {"entries": [3, 5, 7]}
    for function, code in ((padded, 7), (read_text(*head, "einsum ,a->a %2 %0"), 0)):
        document = {
            "format": "m2bridge certificate", "version": 2, "spec": None, "program": network,
            "statement": {"kind": "identifiable", "function": function, "verdict": "determined up to scale"},
            "argument": {"prime": M.P, "weights": weights, "fields": [scaling], "lower": lower},
        }  # fmt: skip
        found, lines = checker.verify(json.dumps(document))
        assert found == code, lines
