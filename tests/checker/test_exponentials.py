"""Exponentials by units: certificates that the checker accepts, and dependent arguments that must not pass for independent."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import makers as M  # noqa: N812
import pytest

from m2bridge import checker, checker_further

Relations = Mapping[int, Mapping[int, Fraction]]


def outcome(document: Any) -> tuple[int, str]:
    code, lines = checker.verify(json.dumps(document))
    return code, "\n".join(lines)


def program(*lines: str) -> str:
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    return f"m2bridge program 1\n{body}output y %{len(lines) - 1}\n"


SIGMOID = program(
    "weight W [3,2]", "weight V [2,3]", "input x [2]", "einsum ab,b->a %0 %2", "exp %3", "constant [] 1", "add %4 %5",
    "reciprocal %6", "einsum ab,b->a %1 %7",
)  # fmt: skip
NESTED = program("weight w [2]", "input x [2]", "multiply %0 %1", "exp %2", "exp %3", "multiply %4 %0")
TEMPERATURE = program(
    "weight s []", "weight w [2]", "input x [2]", "multiply %1 %2", "exp %3", "exp %0", "multiply %4 %5"
)
DOUBLED = program(
    "weight w [2]", "weight v [2]", "input x [2]", "multiply %0 %2", "exp %3", "scale 2 %3", "exp %5", "multiply %1 %6",
    "add %4 %7",
)  # fmt: skip
RAW_INPUT = program("weight w [2]", "input x [2]", "exp %1", "multiply %0 %2")
SHIFTED = program(
    "weight w [2]", "weight b [2]", "input x [2]", "multiply %0 %2", "exp %3", "add %3 %1", "exp %5", "add %4 %6",
)  # fmt: skip
HALVED = program(
    "weight w []", "weight v []", "input x []", "multiply %0 %2", "scale 1/2 %3", "exp %4", "multiply %1 %5", "exp %3",
    "add %6 %7",
)  # fmt: skip
TIED = M.Text()
"""Keys that are also queries: scores are symmetric."""
_k, _v, _x = TIED("weight K [2,3]"), TIED("weight V [2,3]"), TIED("input X [3,2]")
_kx = TIED("einsum ab,bc->ac", _k, _x)
_scores = TIED("softmax 1", TIED("einsum ab,ac->bc", _kx, _kx))
TIED_TEXT = TIED.done(TIED("einsum ab,bc->ac", _v, TIED("einsum ab,cb->ac", _x, _scores)))

ONE = Fraction(1)
CASES: dict[str, tuple[str, int, Relations]] = {
    "sigmoid": (SIGMOID, 12, {}),
    "nested": (NESTED, 2, {}),
    # the argument s is the weight s itself: functions are 1, s, w0, w1, then the argument
    "temperature": (TEMPERATURE, 3, {4: {1: ONE}}),
    # 1, w0, w1, v0, v1, x0, x1, the arguments 7, 8 and their doubles 9, 10
    "doubled": (DOUBLED, 4, {9: {7: 2 * ONE}, 10: {8: 2 * ONE}}),
    "raw input": (RAW_INPUT, 2, {5: {3: ONE}, 6: {4: ONE}}),
    "shifted": (SHIFTED, 4, {9: {7: ONE, 3: ONE}, 10: {8: ONE, 4: ONE}}),
    # the first argument is half of the second: the second depends on the first
    "halved": (HALVED, 2, {5: {4: 2 * ONE}}),
    # 1, 12 weights, 6 inputs, scores 19, 20, 21, 22; a rotation of K changes nothing
    "tied": (TIED_TEXT, 11, {21: {20: ONE}}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_minor_is_verified_and_has_the_real_rank(name: str) -> None:
    text, n, relations = CASES[name]
    lower, found = M.unit_minor(text, relations=relations)
    assert found == n == M.real_rank(text, n + 1, size=0.6)
    assert checker.check_lower(checker.read_program(text), lower) == n


def test_a_relation_names_a_function_once() -> None:
    text, _, relations = CASES["doubled"]
    lower, _ = M.unit_minor(text, relations=relations)
    lower["exponentials"]["relations"][0][1] *= 2
    with pytest.raises(checker.Rejected, match="listed twice in one relation"):
        checker.check_lower(checker.read_program(text), lower)


def test_the_size_of_relations() -> None:
    """Arguments w x have degree 2 and height 1 (a sum of one product), doubles 2 and 3. The sum of four terms: 2 + (3 + 3);
    units: 1 + 2 (2 + 2); 4 * 9 * 8 < 2^9.
    """
    plain = checker_further.number_functions(checker.read_program(CASES["doubled"][0]))
    exponentials = checker_further.read_relations(plain, [[9, [[7, 2]]], [10, [[8, 2]]]])
    assert checker_further.relations_error(exponentials) == 4 * (61 - 9)


def test_what_relations_rest_on_is_printed() -> None:
    text, n, relations = CASES["doubled"]
    lower, _ = M.unit_minor(text, relations=relations)
    document = M.document(text, None, n, lower, {"kind": "parameters"})
    code, lines = checker.verify(json.dumps(document))
    assert code == 0
    assert re.search(
        "2 relations between arguments of exponentials are equal at .* below 2\\^-2[0-9]{2}", lines[-1]
    )


def test_a_relation_that_is_too_large_for_random_points() -> None:
    """Powers of degree 10^6, three times, have degree 10^18 and a height to match."""
    powers = [f"power 1000000 %{k}" for k in (2, 3, 4)]
    text = program(
        "weight w []", "input x []", "multiply %0 %1", *powers, "scale 2 %5", "exp %5", "exp %6", "add %7 %8"
    )
    exponentials = checker_further.read_relations(
        checker_further.number_functions(checker.read_program(text)), [[4, [[3, 2]]]]
    )
    with pytest.raises(checker.Unknown, match="too large for random points"):
        checker_further.check_relations(exponentials)


def test_radicands_that_are_equal_at_a_point_count() -> None:
    """x (sqrt v - sqrt(v + t^n)) and its negative pass as equal where t^n = 0: the probability grows with n. For n = 2 the sum
    of v and v + t^2 has degree 2 and height 2, that of the two terms of the relation 7; units: 1 + 2. 3 (2 * 7 + 4) < 2^6.
    """
    errors = []
    for n in (2, 10**6):
        text = program(
            "weight w []", "input x []", "input t []", "input v []", f"power {n} %2", "add %3 %4", "sqrt %3", "sqrt %5",
            "scale -1 %7", "add %6 %8", "multiply %1 %9", "scale -1 %10", "exp %10", "exp %11", "multiply %12 %13",
            "multiply %0 %14",
        )  # fmt: skip
        functions = checker_further.number_functions(checker.read_program(text))
        errors.append(
            checker_further.relations_error(checker_further.read_relations(functions, [[6, [[5, 1]]]]))
        )
    assert errors[0] == 4 * (61 - 6)
    assert errors[1] <= errors[0] - 4 * 14


def test_every_pair_of_radicands_counts() -> None:
    """24 entries of w x have degree 2 and height 0. Of 276 pairs each is equal with probability (2 + 23) / 2^61: 23 for the sum
    of all, which bounds a difference. The relation adds 2 (2 + 2); units: 1 + 2 2. Together 5 * (8 + 276 * 25) < 2^16.
    """
    text = program(
        "weight w [24]", "input x [24]", "input z []", "multiply %0 %1", "sqrt %3", "einsum a-> %4", "scale 2 %2", "exp %2",
        "exp %6", "multiply %7 %8", "multiply %5 %9",
    )  # fmt: skip
    functions = checker_further.number_functions(checker.read_program(text))
    first = functions.start + 25
    exponentials = checker_further.read_relations(functions, [[first + 1, [[first, 2]]]])
    assert checker_further.relations_error(exponentials) == 4 * (61 - 16)


@pytest.mark.parametrize("name", [name for name, (_, _, relations) in CASES.items() if relations])
def test_dependent_arguments_are_not_taken_for_independent(name: str) -> None:
    """Without the relation, or with another one, the same document is rejected."""
    text, _, relations = CASES[name]
    without, _ = M.unit_minor(text)
    with pytest.raises(checker.Rejected, match="not seen to be independent"):
        checker.check_lower(checker.read_program(text), without)
    other = {k: {j: c + 1 for j, c in terms.items()} for k, terms in relations.items()}
    wrong, _ = M.unit_minor(text, relations=other)
    with pytest.raises(checker.Rejected, match="does not hold"):
        checker.check_lower(checker.read_program(text), wrong)


def test_a_relation_that_hides_behind_an_exponential_of_the_weights() -> None:
    """e^(w x + e^(w^2)) / e^(w x) is a function of w alone: pairs of points have to share the unit of e^(w^2)."""
    text = program(
        "weight w []", "input x []", "multiply %0 %1", "power 2 %0", "exp %3", "add %2 %4", "exp %5", "exp %2",
        "reciprocal %7", "multiply %6 %8",
    )  # fmt: skip
    lower, _ = M.unit_minor(text)
    with pytest.raises(checker.Rejected, match="not seen to be independent"):
        checker.check_lower(checker.read_program(text), lower)


def test_a_false_dimension_with_units_of_dependent_exponentials() -> None:
    """e^(wx) e^(-wx) v + 0 u: with independent units w seems to matter, and the dimension is 1."""
    text = program(
        "weight w []", "weight v []", "input x []", "multiply %0 %2", "exp %3", "scale -1 %3", "exp %5", "multiply %4 %6",
        "multiply %7 %1",
    )  # fmt: skip
    lower, n = M.unit_minor(text)
    assert n == 1  # d(y y') = y y' (u' - u'), whatever the units are
    sums = program(
        "weight w []", "weight v []", "input x []", "multiply %0 %2", "exp %3", "scale 2 %3", "exp %5", "power 2 %4",
        "scale -1 %7", "add %6 %8", "multiply %9 %1",
    )  # fmt: skip
    lower, n = M.unit_minor(sums)  # e^(2u) - (e^u)^2 = 0
    assert n == 2
    assert outcome(M.document(sums, None, 2, lower, {"kind": "parameters"}))[0] == 7
    # 1, w, v, x, the arguments u and 2 u: with the relation the units satisfy it, and nothing moves
    lower, n = M.unit_minor(sums, relations={5: {4: 2 * ONE}})
    assert n == 0
    assert checker.check_lower(checker.read_program(sums), lower) == 0
    for column in (0, 1):
        with pytest.raises(checker.Rejected, match="the minor is zero"):
            checker.check_lower(checker.read_program(sums), lower | {"rows": [[0, 0]], "columns": [column]})


@pytest.mark.parametrize("order", [(5, 6), (6, 5)])
def test_relations_name_independent_functions(order: tuple[int, int]) -> None:
    """Of the arguments u, 2 u and 2 u the last is said to be the second, whose unit is that of u, squared."""
    text = program(
        "weight w []", "weight v []", "input x []", "multiply %0 %2", "exp %3", "scale 2 %3", "exp %5", "scale 2 %3", "exp %7",
        "scale -1 %8", "add %6 %9", "multiply %10 %1", "multiply %11 %4",
    )  # fmt: skip
    relations = {5: {4: 2 * ONE}, 6: {5: ONE}}
    lower, n = M.unit_minor(text, relations={k: relations[k] for k in order})
    assert n > 0  # the function is zero
    with pytest.raises(checker.Rejected, match="dependent itself"):
        checker.check_lower(checker.read_program(text), lower)
    lower, n = M.unit_minor(text, relations={5: {4: 2 * ONE}, 6: {4: 2 * ONE}})
    assert n == checker.check_lower(checker.read_program(text), lower) == 0


def test_relations_hold_for_all_values_of_exponentials() -> None:
    """Said of e^(e^(w x)): its argument e^(w x) is 1. This holds where all units are 1."""
    lower, _ = M.unit_minor(NESTED, relations={7: {0: ONE}, 8: {0: ONE}})
    with pytest.raises(checker.Rejected, match="does not hold"):
        checker.check_lower(checker.read_program(NESTED), lower)


def test_damaged_documents() -> None:
    text, _, relations = CASES["doubled"]
    lower, _ = M.unit_minor(text, relations=relations)
    circuit = checker.read_program(text)

    def rejected(change: Any) -> None:
        other = copy.deepcopy(lower)
        change(other["exponentials"])
        with pytest.raises(checker.Rejected):
            checker.check_lower(circuit, other)

    rejected(lambda e: e.update(seed=-1))
    rejected(lambda e: e["relations"].append(e["relations"][0]))
    rejected(lambda e: e["relations"][0].__setitem__(0, 5))  # an input is no argument
    rejected(lambda e: e["relations"][0].__setitem__(0, 99))
    rejected(lambda e: e["relations"][0][1].append([9, 1]))  # a function that comes later
    rejected(lambda e: e["relations"].pop())
    rejected(lambda e: e["test"].update(prime=8))
    rejected(lambda e: e["test"].update(weights=1, inputs=2))  # too few points for the rank
    rejected(lambda e: e["test"].update(inputs=1))
    rejected(lambda e: e.pop("test"))
    large = copy.deepcopy(lower)
    large["exponentials"]["relations"][0][1][0] = [7, "1/18446744073709551629"]
    with pytest.raises(checker.Unknown):
        checker.check_lower(circuit, large)
    del lower["exponentials"]
    with pytest.raises(checker.Rejected):
        checker.check_lower(circuit, lower)


def test_points_at_which_a_denominator_is_zero_are_left_out() -> None:
    """Modulo 3 every second point divides by zero; the test needs more of them, and then holds."""
    text = program("weight w []", "input x []", "multiply %0 %1", "reciprocal %2", "exp %3", "multiply %4 %0")
    lower, n = M.unit_minor(text)
    lower["exponentials"]["test"] |= {"prime": 5, "weights": 60, "inputs": 3}
    assert checker.check_lower(checker.read_program(text), lower) == n == 1
