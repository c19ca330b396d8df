"""One test for each lemma that the checker cites: what it allows is verified, and a falsehood beyond it is refused."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import fuzz
import makers as M  # noqa: N812
import pytest

from m2bridge import checker, checker_families, checker_further

POINT = {"seed": 3, "stream": 1, "fixed": []}
PLACE = {"prime": M.SMALL, "weights": POINT}


def program(*lines: str) -> str:
    """The text of a program whose last line is the output."""
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    return f"m2bridge program 1\n{body}output y %{len(lines) - 1}\n"


def read(*lines: str) -> checker.Circuit:
    return checker.read_program(program(*lines))


def refused(document: dict[str, Any], reason: str) -> None:
    code, lines = checker.verify(json.dumps(document))
    assert code == 7, lines
    assert re.search(reason, lines[0]), lines[0]


def certificate(name: str) -> dict[str, Any]:
    return dict(json.loads(dict(fuzz.pool())[name]))


def test_every_lemma_is_cited_and_tested() -> None:
    core, further = (ast.parse(Path(str(m.__file__)).read_text()) for m in (checker, checker_further))
    heads = "\n".join(ast.get_docstring(tree, clean=False) or "" for tree in (core, further))
    listed = {int(n) for n in re.findall(r"^ ?\[(\d+)\] ", heads, re.M)}
    nodes = [
        n
        for tree in (core, further)
        for n in ast.walk(tree)
        if isinstance(n, (ast.FunctionDef, ast.ClassDef))
    ]
    texts = " ".join(ast.get_docstring(n) or "" for n in nodes)
    cited = {int(n) for n in re.findall(r"\[(\d+)\]", texts)}
    tested = {int(m[1]) for name in globals() if (m := re.match(r"test_lemma_(\d+)_", name))}
    assert listed == cited == tested == set(range(1, max(listed) + 1))


@pytest.mark.parametrize("module", [checker, checker_further, checker_families])
def test_every_function_has_a_docstring_and_no_name_is_shadowed(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    assert [f.name for f in functions if not ast.get_docstring(f)] == []
    tops = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names = {
        n.id
        for f in functions
        for n in ast.walk(f)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    arguments = {n.arg for f in functions for n in ast.walk(f) if isinstance(n, ast.arg)}
    assert tops & (names | arguments) == set()


def test_lemma_1_a_minor_that_is_zero_shows_nothing() -> None:
    """The function v w x has one coefficient; two samples give a minor of size two, which is zero."""
    text = program("weight v []", "weight w []", "input x []", "multiply %0 %1", "multiply %3 %2")
    lower = {
        "kind": "minor",
        "prime": M.SMALL,
        "weights": {"entries": [2, 3]},
        "samples": 2,
        "inputs": {"entries": [5, 7]},
    }
    refused(
        M.document(
            text, None, 2, lower | {"rows": [[0, 0], [1, 0]], "columns": [0, 1]}, {"kind": "parameters"}
        ),
        "minor is zero",
    )
    assert checker.check_lower(checker.read_program(text), lower | {"rows": [[0, 0]], "columns": [1]}) == 1


@pytest.mark.parametrize("change", [-1, 1])
def test_lemma_2_both_bounds_are_the_dimension(change: int) -> None:
    document = certificate("lightning")
    document["statement"]["dimension"] += change
    refused(document, "the lower bound shows")


def test_lemma_3_degrees_that_can_occur_are_counted() -> None:
    """A linear and a quadratic form in two inputs have 2 and 3 coefficients; a sum of both has 5."""
    linear = ("weight w [2]", "input x [2]", "einsum a,a-> %0 %1")
    assert checker.check_upper(read(*linear), {"kind": "coordinates"}) == 2
    assert checker.check_upper(read(*linear, "power 2 %2"), {"kind": "coordinates"}) == 3
    assert checker.check_upper(read(*linear, "power 2 %2", "add %2 %3"), {"kind": "coordinates"}) == 5


def test_lemma_4_a_field_that_changes_the_function_is_not_in_the_kernel() -> None:
    circuit = read("weight v []", "weight w []", "input x []", "multiply %0 %1", "multiply %3 %2")
    upper = {"kind": "fields", **PLACE, "groups": []}
    assert checker.check_upper(circuit, upper | {"fields": [[[0, 1, [[0, 1]]], [1, -1, [[1, 1]]]]]}) == 1
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_upper(circuit, upper | {"fields": [[[0, 1, [[0, 1]]], [1, 1, [[1, 1]]]]]})


def test_lemma_5_diagonal_matrices_do_not_generate_gl() -> None:
    """Between the layers entries are multiplied by 1 and 2: diagonal matrices commute with that, others do not."""
    layers = ("weight W1 [2,2]", "weight W2 [1,2]", "input x [2]", "einsum ab,b->a %0 %2")
    plain = read(*layers, "einsum ab,b->a %1 %3")
    scaled = read(*layers, "constant [2] 1 2", "multiply %3 %4", "einsum ab,b->a %1 %5")
    axes = {"size": 2, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    gl, torus = (
        {"kind": "symmetries", **PLACE, "groups": [{"group": name, **axes}]} for name in ("gl", "torus")
    )
    assert checker.check_upper(plain, gl) == 6 - 4
    assert checker.check_upper(scaled, torus) == 6 - 2
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_upper(scaled, gl)


def test_lemma_5_square_roots_are_kept_by_elements_near_the_identity() -> None:
    """sqrt(w^2) / w is the sign of w: scaling by -1 changes it. Its vector field does not."""
    text = program("weight w []", "power 2 %0", "sqrt %1", "reciprocal %0", "multiply %2 %3")
    scaling = {"group": "scaling", "weights": {"w": 1}}
    shown = checker.check_symmetry(checker.read_program(text), None, [scaling], [])
    assert "near the identity" in shown.summary
    assert "near the identity" in shown.sentences[0]
    shown = checker.check_symmetry(checker.read_program(text), None, [], [[[0, 1, [[0, 1]]]]])
    assert "near the identity" not in shown.summary
    assert (
        "near"
        not in checker.check_symmetry(
            read("weight w []", "reciprocal %0", "multiply %0 %1"), None, [scaling], []
        ).summary
    )


def test_lemma_5_brackets_separate_the_matrices_of_a_sum() -> None:
    """(2 u1 u3 - u2^2) (2 v1 v3 - v2^2), v dual to u, is kept by the sums of all E_(i,i+1) and of all E_(i+1,i), and by diag(1,
    2, 3), which generate a copy of gl(2); not by gl(3).
    """
    forms = []
    for k in (0, 1):
        forms += [f"gather [2] 0,1 %{k}", f"gather [2] 2,1 %{k}"]
    lines = ("weight u [3]", "weight v [3]", *forms, "multiply %2 %3", "multiply %4 %5", "constant [2] 2 -1")
    circuit = read(*lines, "einsum a,a-> %6 %8", "einsum a,a-> %7 %8", "multiply %9 %10")
    generating, _ = checker.group_fields(circuit, {"group": "gl", "size": 3, "axes": {"u": [1], "v": [-1]}})
    checker.check_fields(circuit, generating[1:])
    checker.check_field(circuit, {i: {(i,): (i % 3 + 1) * (1 if i < 3 else -1)} for i in range(6)})
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_fields(circuit, generating)


def test_lemma_6_only_a_line_of_softmax_adds_up_to_one() -> None:
    """The same number added to all scores changes exponentials, and not their quotients."""
    scores = ("weight w [1]", "input x [3]", "add %0 %1")
    shift = {"kind": "fields", **PLACE, "groups": [], "fields": [[[0, 1, []]]]}
    assert checker.check_upper(read(*scores, "softmax 0 %2"), shift) == 0
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_upper(read(*scores, "exp %2"), shift)


EXPONENTS = program(
    "weight w []",
    "weight v []",
    "input x []",
    "multiply %0 %2",
    "exp %3",
    "scale 2 %3",
    "exp %5",
    "multiply %1 %6",
    "add %4 %7",
)
"""e^(w x) + v e^(2 w x). Functions: 1, w, v, x, w x, 2 w x."""


def test_lemma_7_a_relation_that_does_not_hold_is_refused() -> None:
    circuit = checker.read_program(EXPONENTS)
    lower, n = M.unit_minor(EXPONENTS, relations={5: {4: M.Fraction(2)}})
    assert checker.check_lower(circuit, lower) == n == 2
    lower["exponentials"]["relations"] = [[5, [[4, 3]]]]
    with pytest.raises(checker.Rejected, match="a relation between arguments of exponentials does not hold"):
        checker.check_lower(circuit, lower)


def test_lemma_7_a_program_is_compared_with_its_spec() -> None:
    document = certificate("mlp")
    document["program"] = document["program"].replace("power 4", "power 5")
    refused(document, "not that of its spec")


def test_lemma_10_dependent_arguments_are_no_units() -> None:
    lower, _ = M.unit_minor(EXPONENTS, relations={5: {4: M.Fraction(2)}})
    lower["exponentials"]["relations"] = []
    with pytest.raises(checker.Rejected, match="not seen to be independent"):
        checker.check_lower(checker.read_program(EXPONENTS), lower)


def test_lemma_8_tokens_of_a_last_layer_are_independent() -> None:
    """V z with z = w x of two entries: a token at two samples with proportional inputs is no second one."""
    circuit = read("weight w []", "weight V [3,2]", "input x [2]", "multiply %0 %2", "einsum ab,b->a %1 %3")
    lower = {
        "kind": "last layer", "prime": M.SMALL, "weights": {"entries": [1] * 7}, "samples": 2, "rows": [], "columns": [],
        "layer": "V", "tokens": [0, 1],
    }  # fmt: skip
    assert checker.check_lower(circuit, lower | {"inputs": {"entries": [1, 2, 3, 4]}}) == 6
    with pytest.raises(checker.Rejected, match="the tokens are dependent"):
        checker.check_lower(circuit, lower | {"inputs": {"entries": [1, 2, 2, 4]}})


def test_lemma_8_rows_of_the_minor_are_outputs_of_their_own_row() -> None:
    """V w x with two rows of V and two tokens has dimension 2: the outputs of one row are proportional."""
    circuit = read(
        "weight w []", "weight V [2,1]", "input x [1,2]", "multiply %0 %2", "einsum ab,bc->ac %1 %3"
    )
    lower = {
        "kind": "last layer", "prime": M.SMALL, "weights": {"entries": [2, 3, 5]}, "samples": 1, "inputs": {"entries": [7, 11]},
        "layer": "V", "tokens": [0], "rows": [], "columns": [],
    }  # fmt: skip
    assert checker.check_lower(circuit, lower) == 2
    for row in (0, 1):
        with pytest.raises(checker.Rejected, match="the minor is zero"):
            checker.check_lower(circuit, lower | {"rows": [[row, 1]], "columns": [0]})


def test_lemma_11_only_symmetries_of_the_whole_are_subtracted() -> None:
    """W2 W1 has GL(1) between its layers; with W2 (W1 x)^2 this scales the function."""
    gl = {"group": "gl", "size": 1, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    bounds = {
        "first": {"kind": "coordinates"},
        "second": {"kind": "coordinates"},
        "samples": 5,
        "groups": [gl],
        "fields": [],
    }
    upper = {"kind": "composition", **PLACE, **bounds, "cut": 3}
    assert checker.check_upper(checker.read_program(M.mlp_text([3, 1, 2], 1)), upper) == 3 + 2 - 1
    assert (
        checker.check_upper(checker.read_program(M.mlp_text([3, 1, 2], 2)), upper | {"groups": []}) == 3 + 2
    )
    with pytest.raises(checker.Rejected, match="changes the function"):
        checker.check_upper(checker.read_program(M.mlp_text([3, 1, 2], 2)), upper)


def test_lemma_12_matrices_of_bounded_rank_need_a_last_linear_layer() -> None:
    circuit = checker.read_program(M.mlp_text([3, 1, 2], 1))
    assert checker.check_upper(circuit, {"kind": "span"}) == 1 * (2 + 3 - 1)
    squared = read(
        "weight V [2,1]",
        "weight W [1,3]",
        "input x [3]",
        "einsum ab,b->a %1 %2",
        "einsum ab,b->a %0 %3",
        "power 2 %4",
    )
    with pytest.raises(checker.Rejected, match="does not end in a weight times a vector"):
        checker.check_upper(squared, {"kind": "span"})


def test_lemma_13_the_equation_has_at_most_the_degree_of_the_second_part() -> None:
    """Three quadratic forms in two variables satisfy a quadric: of 6 quadrics 5 matter, and all 3 linear forms."""
    lines = (
        "weight W [3,2]",
        "weight V [1,3]",
        "input x [2]",
        "einsum ab,b->a %0 %2",
        "power 2 %3",
        "einsum ab,b->a %1 %4",
    )
    upper = {"kind": "composition", **PLACE, "cut": 4, "samples": 5, "groups": [], "fields": []}
    upper |= {"first": {"kind": "parameters"}, "second": {"kind": "hypersurface"}}
    assert checker.check_upper(read(*lines, "power 2 %5"), upper) == 6 + 5
    with pytest.raises(checker.Rejected, match="too small a degree"):
        checker.check_upper(read(*lines), upper)


@pytest.mark.parametrize(
    "value", ["add %3 %4", "add %4 %7", "multiply %6 %7"], ids=["mixed", "shifted", "constant"]
)
def test_lemma_13_both_parts_are_homogeneous(value: str) -> None:
    """Polynomials of several degrees, or constants, are no forms: their equations have other degrees."""
    lines = (
        "weight W [3,2]",
        "weight V [1,3]",
        "input x [2]",
        "einsum ab,b->a %0 %2",
        "power 2 %3",
        "scale 0 %3",
    )
    lines += ("einsum ab->a %0", "constant [3] 1 1 1", value, "einsum ab,b->a %1 %8", "power 4 %9")
    upper = {"kind": "composition", **PLACE, "cut": 8, "samples": 5, "groups": [], "fields": []}
    upper |= {"first": {"kind": "parameters"}, "second": {"kind": "hypersurface"}}
    with pytest.raises(checker.Rejected, match=r"not homogeneous|bypass|one entry more"):
        checker.check_upper(read(*lines), upper)


def test_lemma_14_equations_vanish_on_the_whole_image() -> None:
    """The matrices W2 W1 of rank one: their determinant vanishes, one of their entries does not."""
    circuit = checker.read_program(M.mlp_text([2, 1, 2], 1))
    upper = {"kind": "equations", **PLACE}
    assert (
        checker.check_upper(circuit, upper | {"equations": [[[1, [[0, 1], [3, 1]]], [-1, [[1, 1], [2, 1]]]]]})
        == 3
    )
    with pytest.raises(checker.Rejected, match="does not vanish identically"):
        checker.check_upper(circuit, upper | {"equations": [[[1, [[0, 1]]]]]})


def test_lemma_15_a_flattening_of_smaller_rank_bounds_nothing() -> None:
    """At a point where two terms are proportional the kernels are too large."""
    circuit = checker.read_program(M.mlp_text([3, 2, 1], 2))
    upper = {"kind": "flattening", "flattening": ["catalecticant", 1], **PLACE}
    assert checker.check_upper(circuit, upper) == 5
    with pytest.raises(checker.Rejected, match="does not have the rank"):
        checker.check_upper(circuit, upper | {"weights": {"entries": [1, 2, 3, 1, 2, 3, 1, 1]}})


def test_lemma_16_a_tangent_space_of_the_right_dimension_is_not_singular() -> None:
    document = certificate("singular matrix")
    document["argument"]["arcs"].pop()
    refused(document, "the arcs span 3 dimensions only")


def test_lemma_17_an_equation_that_is_missing_is_noticed() -> None:
    document = certificate("closure")
    document["statement"]["equations"] = []
    refused(document, "more polynomials of degree at most 4 may vanish")


def test_lemma_17_blocks_are_those_of_a_grading() -> None:
    """The curve (a, a + a^2): its equation mixes the blocks of a grading for which the second coordinate is not homogeneous."""
    text = program("weight a [1]", "power 2 %0", "add %0 %1", "concatenate 0 %0 %2")
    refused(
        M.closure_certificate(text, [], 2, prime=M.SMALL, gradings=[[1]]), "not homogeneous for a grading"
    )
    refused(
        M.closure_certificate(text, [], 2, prime=M.SMALL), "more polynomials of degree at most 2 may vanish"
    )
    equation = {(0, 1): 1, (1, 0): -1, (2, 0): -1}
    assert checker.verify(json.dumps(M.closure_certificate(text, [equation], 2, prime=M.SMALL)))[0] == 0


def test_lemma_18_a_singular_minor_has_no_solutions() -> None:
    """y = w (x, x): of the sides (b1, b2) of the minor with one row twice none but b1 = b2 has a solution."""
    text = "m2bridge program 1\n%0 = weight w [2]\n%1 = input x [2]\n%2 = multiply %0 %1\noutput y %2\n"
    circuit, p = checker.read_program(text), 8388593
    samples = checker.Samples(checker.Evaluation(circuit, checker.ModP(p)), [1, 1], [[2, 3]])
    samples.need_solutions([[0, 0], [0, 1]], [[5, 7]], [[10, 21]])
    argument = {"rows": [[0, 0], [0, 0]], "solutions": []}
    ((first, second),) = checker.draw_sides(circuit, argument, p, 1)
    assert first != second
    half = pow(2, -1, p)
    with pytest.raises(checker.Rejected):
        samples.need_solutions([[0, 0], [0, 0]], [[first * half % p, 0]], [[first, second]])


def identifiable(verdict: str, field: list[Any], function: str = "multiply %0 %1") -> dict[str, Any]:
    """A certificate about a function of the weights v and w of the network v w x, whose rank is one at (1, 2)."""
    weights = ("weight v []", "weight w []")
    text = program(*weights, "input x []", "multiply %0 %1", "multiply %3 %2")
    lower = {
        "kind": "minor", "prime": 101, "weights": {"entries": [1, 2]}, "samples": 1, "inputs": {"entries": [1]},
        "rows": [[0, 0]], "columns": [0],
    }  # fmt: skip
    argument = {"prime": 101, "weights": {"entries": [1, 2]}, "fields": [field], "lower": lower}
    if verdict == "not determined":
        del argument["lower"]
    statement = {"kind": "identifiable", "function": program(*weights, function), "verdict": verdict}
    return {
        "format": "m2bridge certificate", "version": 2, "statement": statement, "spec": None, "program": text,
        "argument": argument,
    }  # fmt: skip


def test_lemma_20_fields_keep_the_function_and_span_the_kernel() -> None:
    """The scaling of v w keeps v w; it moves v^2; a scaling of v alone is no symmetry, nor is the field 1 dv."""
    scaling: list[Any] = [[0, 1, [[0, 1]]], [1, -1, [[1, 1]]]]
    assert checker.verify(json.dumps(identifiable("determined", scaling)))[0] == 0
    assert checker.verify(json.dumps(identifiable("not determined", scaling, "power 2 %0")))[0] == 0
    refused(identifiable("determined", scaling, "power 2 %0"), "changes the function")
    refused(identifiable("determined", scaling[:1]), "changes the function")
    refused(identifiable("not determined", scaling), "does not move the function")
    refused(identifiable("determined up to scale", scaling), "another function")
    refused(identifiable("not determined", [[0, 1, []]], "power 2 %0"), "changes the function")
    without = identifiable("determined", scaling)
    without["argument"]["fields"] = []
    refused(without, "the rank is at least 1, the symmetries show that it is at most 2")


def test_lemma_9_composite_numbers_are_no_primes() -> None:
    """2047 is a strong pseudoprime to the base 2, 3825123056546413051 to the first nine primes; 561 is Carmichael's."""
    assert not any(map(checker.is_prime, (0, 1, 561, 2047, 3825123056546413051)))
    assert all(map(checker.is_prime, (2, 37, 41, M.SMALL, M.P)))
    document = certificate("lightning")
    document["lower"]["prime"] = 2047
    refused(document, "2047 is not a prime")


def test_lemma_19_an_absolute_value_is_not_a_root() -> None:
    """a - sqrt(a^2) is zero for a = 1 + w^2, but modulo p the root may be -a. Modulo 7, sqrt(w) exists at 4 and not at 3."""
    lines = (
        "weight w []", "constant [] 1", "power 2 %0", "add %1 %2", "power 2 %3", "sqrt %4", "scale -1 %5", "add %3 %6",
    )  # fmt: skip
    argument = {
        "kind": "minor",
        "prime": 7,
        "samples": 1,
        "inputs": {"entries": []},
        "rows": [[0, 0]],
        "columns": [0],
    }
    points = [{"entries": [n]} for n in range(7)]
    roots = {"draws": [0], "inputs": [], "weights": [points[3]]}
    assert (
        checker.check_lower(read("weight w []", "sqrt %0"), argument | {"weights": points[4], "roots": roots})
        == 1
    )
    for n in range(1, 7):
        with pytest.raises(checker.Rejected, match="all square roots exist"):
            checker.check_lower(read(*lines), argument | {"weights": points[n], "roots": roots})
