"""Singular and smooth points of networks with inputs, and records that hold several certificates."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import fuzz
import makers as M  # noqa: N812
import numpy as np
import pytest
from makers import closure_certificate, singular_certificate

from m2bridge import checker, checker_further, records
from m2bridge.certainty import Certainty
from m2bridge.certificates.points import coordinate_indices
from m2bridge.cli.records import verify_file
from m2bridge.families import Mod, parse_spec
from m2bridge.questions.dimension import dimension
from m2bridge.questions.symmetries import symmetries

POOL = dict(fuzz.pool())


def certificate(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(POOL[name])
    return found


def outcome(document: Any) -> tuple[int, str]:
    code, said = checker.verify(json.dumps(document))
    return code, " ".join(said)


# -- coordinates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "linear(widths=[2,1,3])", "mlp(widths=[2,2,2],r=2)", "convolution(filters=[2,2],r=2)", "map:x,y->x^2;x*y;0*x",
        "lightning(d=2,dp=2,a=1,t=2)", "lightning(d=2,dp=1,a=2,t=2,coordinates=full)",
        "deep-lightning(d=[2,2],a=[1],t=2,skip=true)", "deep-lightning(d=[2,1],a=[2],t=1)",
    ],
)  # fmt: skip
def test_coordinates_are_numbered_as_the_checker_numbers_them(spec: str) -> None:
    """The model's coordinates at a point, put in order, are the values of the checker's polynomials there."""
    model, p = parse_spec(spec), 8388593
    program = model.coordinate_program or model.program
    rng = random.Random(1)
    weights = [rng.randrange(p) for _ in range(model.parameter_count)]
    named = {name: Mod(value, p) for name, value in model.unflatten(np.array(weights)).items()}
    own = model.coordinates(named).values.tolist()
    expected: dict[int, int] = {}
    for value, place in zip(own, coordinate_indices(model), strict=True):
        assert place is not None or value == 0
        expected |= {} if place is None else {place: value}
    found = checker_further.coordinates(checker.read_program(program.text), checker.Polynomials())
    assert checker_further.evaluated(found, p, [weights]) == [[expected[k] for k in range(len(found))]]
    assert len(expected) == len(found)


def test_coordinates_of_a_product_of_a_column_and_a_row() -> None:
    """(W2 W1 x)_i = sum_j W2_i W1_j x_j: output by output, inputs in order."""
    circuit = checker.read_program(M.mlp_text([2, 1, 2], 1))
    own = checker_further.coordinates(circuit, checker.Polynomials())
    assert own == [{(0, 2): 1}, {(1, 2): 1}, {(0, 3): 1}, {(1, 3): 1}]
    mixed = M.Text()
    w, x = mixed("weight w [2]"), mixed("input x [2]")
    square = mixed("power 2", mixed("einsum a,a->", w, x))
    text = mixed.done(mixed("add", square, mixed("einsum a->", x)))
    own = checker_further.coordinates(checker.read_program(text), checker.Polynomials())
    assert own == [{(): 1}, {(): 1}, {(0, 0): 1}, {(0, 1): 2}, {(1, 1): 1}]
    empty = checker.read_program("m2bridge program 1\n%0 = weight w [1]\n%1 = scale 0 %0\noutput y %1\n")
    assert checker_further.coordinates(empty, checker.Polynomials()) == [{}]


# -- points -----------------------------------------------------------------------------------------------


def test_points_of_a_network_with_inputs() -> None:
    """2 x 2 matrices of rank at most one: singular at zero only."""
    assert outcome(certificate("smooth matrix"))[0] == 0
    assert outcome(certificate("singular matrix"))[0] == 0
    for name, weights in (("smooth matrix", [0, 0, 0, 0]), ("singular matrix", [1, 2, 3, 4])):
        document = certificate(name)
        document["statement"]["weights"] = weights
        assert outcome(document)[0] == 7
    half = certificate("smooth matrix")
    half["statement"]["weights"] = ["1/2", 2, 3, "-4/3"]
    assert outcome(half)[0] == 0
    for wrong in (
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        [1, 2, 3, "4"],
        [1, 2, 3, "8/2"],
        [1, 2, 3, 4.0],
        [1, 2, 3, True],
        7,
    ):
        half["statement"]["weights"] = wrong
        assert outcome(half)[0] == 7


def test_same_functions_of_different_weights() -> None:
    text = "m2bridge program 1\n%0 = weight x [2]\n%1 = power 2 %0\noutput y %1\n"
    assert outcome(M.same_function_certificate(text, [[1, 0], [-1, 0]]))[0] == 0
    assert "different functions" in outcome(M.same_function_certificate(text, [[2, 0], [1, 0]]))[1]
    assert "the two weights are one" in outcome(M.same_function_certificate(text, [[1, 0], [1, 0]]))[1]


def test_equations_of_a_record_have_the_degrees_that_they_say() -> None:
    text = "m2bridge program 1\n%0 = weight w [2]\n%1 = scale 0 %0\noutput y %1\n"
    own = closure_certificate(text, [{(1, 0): 1}, {(0, 1): 1}], 1, prime=M.SMALL)
    written = [{"degree": 1, "coefficients": [1], "monomials": [[k]]} for k in (0, 1)]
    model = "program:" + ";".join(text.splitlines()[1:])
    record = {"analysis": "closure", "model": model, "equations": written, "certificate": own}
    assert "Not covered: the answer." in outcome(record)[1]  # its dimension is not stated
    assert outcome(record)[0] == 9
    written[1]["degree"] = 2
    assert "another degree" in outcome(record)[1]


def test_an_equation_of_another_coordinate_is_rejected() -> None:
    document = certificate("smooth matrix")
    document["argument"]["equations"] = [[[1, [[0, 1], [1, 1]]], [-1, [[2, 1], [3, 1]]]]]
    assert "does not vanish identically" in outcome(document)[1]
    document["argument"]["equations"] = [[[1, [[0, 1], [4, 1]]]]]
    assert outcome(document)[0] == 7


def test_the_first_coefficient_of_an_arc_counts_for_all_coordinates() -> None:
    """Arcs whose image moves in the second order; a coordinate that moves in the third order is not taken for it."""
    document = certificate("singular matrix")
    fast = [[0, 1], [0, 0, 1], [0, 1], [0]]  # W1 = (t, t^2), W2 = (t, 0): moves (t^2, t^3, 0, 0)
    for arcs, count in (([fast], 1), ([fast, [[0, 1], [0], [0, 1], [0]]], 1)):
        document["argument"]["arcs"] = arcs
        assert f"span {count} dimensions only" in outcome(document)[1]
    document["argument"]["arcs"] = [[[0, 1], [0], [0], [0]]]  # does not move the image
    assert "does not move" in outcome(document)[1]


def test_as_many_tangent_vectors_as_the_dimension_show_nothing() -> None:
    """At a smooth point: four arcs, one for each weight, span the tangent space, of the dimension 3."""
    document = certificate("singular matrix")
    weights = [1, 2, 3, 4]
    document["statement"]["weights"] = weights
    document["argument"]["arcs"] = [[[w, int(i == k)] for i, w in enumerate(weights)] for k in range(4)]
    assert "span 3 dimensions only" in outcome(document)[1]


def test_equations_of_high_degree_cost_nothing() -> None:
    """A coordinate that is zero to a high power vanishes; its multiples are never written down. Beyond 1000 it is not read."""
    text = "m2bridge program 1\n%0 = weight w [2]\n%1 = scale 0 %0\n%2 = concatenate 0 %0 %1\noutput y %2\n"
    high = [[[1, [[2, 800]]], [1, [[2, 799], [3, k]]]] for k in range(1, 200)]
    for degree in (1, 2):
        document = closure_certificate(text, [{(0, 0, 1, 0): 1}, {(0, 0, 0, 1): 1}], degree, prime=M.SMALL)
        document["statement"]["equations"] += high if degree == 1 else []
        assert outcome(document)[0] == 0
        del document["statement"]["equations"][0]
        assert outcome(document)[0] == 7
        document["statement"]["equations"].append([[1, [[2, 10**6]]]])
        assert outcome(document)[0] == 8


def test_dependent_equations_do_not_stand_for_another() -> None:
    """Of three coordinates that are zero, the closure names two and their sum."""
    lines = ["weight w [2]", "gather [3] 0,0,1 %0", "scale 0 %1", "concatenate 0 %0 %2"]
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    text = f"m2bridge program 1\n{body}output y %3\n"
    zero: list[dict[tuple[int, ...], int]] = [
        {(0, 0, 1, 0, 0): 1},
        {(0, 0, 0, 1, 0): 1},
        {(0, 0, 0, 0, 1): 1},
    ]
    for degree in (1, 2):
        assert outcome(closure_certificate(text, zero, degree, prime=M.SMALL))[0] == 0
        short = closure_certificate(text, [zero[0], zero[1], zero[0] | zero[1]], degree, prime=M.SMALL)
        assert "more polynomials of degree at most 1 may vanish" in outcome(short)[1]


@pytest.mark.parametrize(("degree", "outcome_code"), [(15, 5), (20, 8)], ids=["time", "size"])
def test_very_many_equations_end_within_a_limit(tmp_path: Path, degree: int, outcome_code: int) -> None:
    """Repeat one equation a hundred thousand times: too long up to degree 15, too large up to degree 20."""
    text = "m2bridge program 1\n%0 = weight w [2]\n%1 = scale 0 %0\n%2 = concatenate 0 %0 %1\noutput y %2\n"
    both: list[dict[tuple[int, ...], int]] = [{(0, 0, 1, 0): 1}, {(0, 0, 0, 1): 1}]
    document = closure_certificate(text, both, degree, prime=M.SMALL)
    document["statement"]["equations"] *= 50_000
    path = tmp_path / "many.json"
    path.write_text(json.dumps(document))
    assert verify_file(str(path), seconds=2 if outcome_code == 5 else 60)[0] == outcome_code


# -- records ----------------------------------------------------------------------------------------------


def point_record(name: str, **changes: Any) -> dict[str, Any]:
    own = certificate(name)
    w = own["statement"]["weights"]
    given = {"W1": [[str(x) for x in w[:2]]], "W2": [[str(x)] for x in w[2:]]}
    record = {
        "analysis": "singular-point", "model": "linear(widths=[2,1,2])", "verdict": own["statement"]["kind"],
        "at": {"kind": "weights", "weights": given}, "image_dim": 3, "certificate": [own],
    }  # fmt: skip
    return record | changes


@pytest.mark.parametrize("name", ["smooth matrix", "singular matrix"])
def test_records_of_a_point(name: str) -> None:
    good = point_record(name)
    code, said = outcome(good)
    assert code == 0
    assert said.endswith("Not covered by the certificate: analysis, image_dim.")
    both = [certificate(name), dimension_of_matrices()]
    code, said = outcome({**good, "certificate": both})
    assert code == 0
    assert said.endswith("Not covered by the certificate: analysis.")
    assert outcome({**good, "certificate": both, "image_dim": 4})[0] == 7
    other = {"smooth": "singular", "singular": "smooth"}[good["verdict"]]
    moved = copy.deepcopy(good["at"])
    moved["weights"]["W1"][0][0] = "9"
    for key, value in (
        ("verdict", other), ("verdict", "undecided"), ("at", None), ("at", {}), ("at", moved), ("at", {"weights": []}),
        ("model", "linear(widths=[2,2,2])"), ("analysis", "same"), ("analysis", "dimension"),
        ("analysis", ["same"]), ("certificate", [certificate(name), certificate("same")]),
        ("certificate", [certificate(name), None]), ("certificate", [[certificate(name)]]),
    ):  # fmt: skip
        assert outcome({**good, key: value})[0] == 7, (key, value)
    silent = {key: value for key, value in good.items() if key != "verdict"}
    assert "no verdict" in outcome(silent)[1]
    assert outcome({**good, "certificate": []})[0] == 8
    assert outcome({**good, "certificate": [certificate(name)] * 1001})[0] == 8


def dimension_of_matrices() -> dict[str, Any]:
    """Of 2 x 2 matrices of rank at most one."""
    text = M.mlp_text([2, 1, 2], 1)
    gl = {"group": "gl", "size": 1, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    lower, n = M.minor(text)
    return M.document(text, "linear(widths=[2,1,2])", n, lower, M.symmetries(text, [gl]))


def test_a_certificate_of_one_statement_does_not_cover_another() -> None:
    """A record that says `singular` with a certificate of the dimension alone: the verdict is named as not covered."""
    code, said = outcome(point_record("singular matrix", certificate=[dimension_of_matrices()]))
    assert code == 9
    assert "Not covered: verdict. " in said
    assert "Not covered by the certificate: analysis, verdict, at." in said


def locus_record(**changes: Any) -> dict[str, Any]:
    """lightning(d=2,dp=1): the zero function, and A = 1 with V = (1, 0), as strata."""
    spec = "lightning(d=2,dp=1,a=2,t=2,parametrization=attention)"
    strata = [
        {"representative": {"A": [[0, 0], [0, 0]], "V": [[0, 0]]}, "verdict": "singular"},
        {"representative": {"A": [[1, 2], [3, 5]], "V": [[7, 11]]}, "verdict": "smooth"},
        {"representative": {"A": [[1, 0], [0, 0]], "V": [[1, 0]]}, "verdict": "singular"},
    ]
    both = [certificate("singular"), certificate("smooth")]
    return {"analysis": "singular-locus", "model": spec, "strata": strata, "certificate": both} | changes


def test_records_of_a_singular_locus_name_the_strata_that_are_covered() -> None:
    code, said = outcome(locus_record())
    assert (code, "Not covered: strata." in said) == (9, True), said
    assert outcome(locus_record(certainty="proved"))[0] == 7
    for rest in ([], [{"verdict": "undecided"}]):
        assert outcome(locus_record(strata=[*locus_record()["strata"][:2], *rest]))[0] == 0
    numbers = [f"the verdict of number {k} at its representative" for k in (0, 1)]
    assert said.endswith(f"Not covered by the certificate: analysis, strata but for {', '.join(numbers)}.")
    turned = copy.deepcopy(locus_record()["strata"])
    turned[1]["verdict"] = "singular"
    transposed = copy.deepcopy(locus_record()["strata"])
    transposed[1]["representative"]["A"] = [[1, 3], [2, 5]]
    flat = copy.deepcopy(locus_record()["strata"])
    for stratum in flat:
        whole = stratum["representative"]
        stratum["representative"] = {
            name: [str(x) for row in rows for x in row] for name, rows in whole.items()
        }
    assert outcome(locus_record(strata=flat)) == (code, said)
    flat[1]["representative"]["A"] = ["1", "3", "2", "5"]
    inexact = copy.deepcopy(locus_record()["strata"])
    inexact[0]["representative"]["A"] = [[False, 0.0], [0, 0]]
    for strata in (turned, transposed, flat, inexact, [], None, [1, 2, 3]):
        assert outcome(locus_record(strata=strata))[0] == 7, strata
    assert outcome(locus_record(certificate=[certificate("singular matrix")]))[0] == 7
    no_spec = {**certificate("singular"), "spec": None}
    assert outcome(locus_record(model=None, certificate=[no_spec]))[0] == 7


def singular_locus(
    text: str, spec: str | None, weights: list[Any], arcs: Any, upper: Any, strata: list[Any]
) -> Any:
    """A record of one singular point."""
    model = "program:" + ";".join(text.splitlines()[1:]) if spec is None else spec
    document = singular_certificate(text, weights, arcs, upper, prime=M.SMALL, spec=spec)
    return {"analysis": "singular-locus", "model": model, "strata": strata, "certificate": document}


def test_strata_of_virtual_weights_are_compared_with_all_of_them() -> None:
    """The function l m x^3 has no singular points; a stratum without l is not that of the certificate."""
    lines = [
        "weight M1 [1,1]",
        "weight L [1,1]",
        "input x [1,1]",
        "einsum ab,bc->ac %0 %2",
        "einsum ab,ac->bc %2 %3",
    ]
    lines += ["einsum ab,bc->ac %2 %4", "einsum ab,bc->ac %1 %5"]
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    text = f"m2bridge program 1\n{body}output y %6\n"
    spec = "deep-lightning(d=[1,1],a=[1],t=1,parametrization=virtual)"
    document = M.smooth_certificate(text, [2, 3], [], M.minor(text)[0], prime=M.SMALL, spec=spec)
    record = {"analysis": "singular-locus", "model": spec, "certificate": document}
    for representative, code in (
        ({"M1": ["2"], "L": ["3"]}, 0), ({"M1": ["2"], "L": ["1"]}, 7), ({"A": [["2"]], "V": []}, 7), ({"A": ["2"], "V": []}, 7),
    ):  # fmt: skip
        strata = [{"representative": representative, "verdict": "smooth"}]
        assert outcome(record | {"strata": strata})[0] == code, representative


def test_strata_of_queries_and_keys_with_product_zero() -> None:
    spec, text = "deep-lightning(d=[1,1],a=[1],t=1)", M.attention_text([1, 1], [1], 1)
    document = M.smooth_certificate(text, [0, 2, 3], [], M.minor(text)[0], prime=M.SMALL, spec=spec)
    record = {"analysis": "singular-locus", "model": spec, "certificate": document}
    for entry, code in (("0", 0), ("1", 7)):
        strata = [{"representative": {"A": [entry], "V": ["3"]}, "verdict": "smooth"}]
        assert outcome(record | {"strata": strata})[0] == code


def test_strata_of_scalar_weights_and_of_huge_ones() -> None:
    """Products of a and b with c and d, at zero; and weights whose product has more digits than Python writes."""
    lines = [*(f"weight {x} []" for x in "abcd"), *(f"multiply %{i} %{j}" for i in (0, 1) for j in (2, 3))]
    numbered = [f"%{k} = {line}" for k, line in enumerate(lines)]
    text = "\n".join(["m2bridge program 1", *numbered, *(f"output y{k} %{k}" for k in range(4, 8)), ""])
    arcs = [[[0, int(k == i)] if k < 2 else [int(k == j)] for k in range(4)] for i in (0, 1) for j in (2, 3)]
    groups = [{"group": "scaling", "weights": {"a": 1, "b": 1, "c": -1, "d": -1}}]
    strata = [{"representative": {name: ["0"] for name in "abcd"}, "verdict": "singular"}]
    record = singular_locus(text, None, [0] * 4, arcs, M.symmetries(text, groups), strata)
    assert outcome(record)[0] == 0
    spec = "lightning(d=2,dp=1,a=1,t=2)"
    document = dimension(spec, engine=False).certificate
    assert document is not None
    text = document["program"]
    order = [line.split()[3][0] for line in text.splitlines() if " = weight " in line]
    arcs = [
        [{"K": [0, int(i == n)], "Q": [int(j == n)], "V": [int(k == n)]}[name] for name in order for n in (0, 1)]
        for i in (0, 1)
        for j in (0, 1)
        for k in (0, 1)
    ]  # fmt: skip
    huge = [0 if name == "V" else 10**4000 for name in order for _ in (0, 1)]
    record = singular_locus(text, spec, huge, arcs, document["upper"], [{"verdict": "singular"}])
    assert outcome(record)[0] == 8


def test_records_of_symmetries() -> None:
    """Each identity is verified; a field that is not in the certificate is not counted."""
    document = json.loads(records.dumps(records.to_document(symmetries("mlp(widths=[2,2,1],r=2)"))))
    code, said = outcome(document)
    assert code == 0, said
    assert "fields but for the identities of 3 of 3" in said
    assert not {"symmetry_dim", "upper_bound", "parameters", "generic_fiber_dim"} & set(
        said.rstrip(".").split(", ")
    )
    for key in ("upper_bound", "parameters", "generic_fiber_dim", "symmetry_dim"):
        assert outcome({**document, key: document[key] + 1})[0] == 7
    changed = copy.deepcopy(document)
    changed["fields"][0]["coefficients"][0][1] += 1
    code, said = outcome(changed)
    assert code == 9  # the record is not the one that was written
    assert "fields but for the identities of 2 of 3" in said
    changed["certificate"][0]["statement"]["fields"][0][0][1] += 1
    assert outcome(changed)[0] == 7


def test_symmetries_that_do_not_explain_the_fiber_are_not_proved() -> None:
    """Fibers of dimension 6 are proved, orbits of dimension 3 only from below: that there are no others was searched."""
    answer = symmetries("mlp(widths=[2,3,2],r=2)")
    assert (answer.symmetry_dim, answer.generic_fiber_dim, answer.certainty) == (3, 6, Certainty.COMPUTED)
    code, said = outcome(json.loads(records.dumps(records.to_document(answer))))
    assert (code, "Not covered: symmetry_dim." in said) == (9, True), said


@pytest.mark.parametrize("s", [1, 2, 5, 1000])
def test_differentials_of_equations_are_derivatives(s: int) -> None:
    """The twisted cubic: three equations whose differentials have rank two at each of its points."""
    lines = [
        "%0 = weight s [1]",
        "%1 = power 2 %0",
        "%2 = power 3 %0",
        "%3 = concatenate 0 %0 %1 %2",
        "output y %3",
    ]
    circuit = checker.read_program("\n".join(["m2bridge program 1", *lines, ""]))
    equations: list[Any] = [
        [[1, [[1, 1]]], [-1, [[0, 2]]]],
        [[1, [[2, 1]]], [-1, [[0, 3]]]],
        [[1, [[0, 1], [2, 1]]], [-1, [[1, 2]]]],
    ]
    for chosen, bound in (([0], 2), ([1], 2), ([2], 2), ([0, 1], 1), ([1, 2], 1), ([0, 1, 2], 1)):
        values = [equations[k] for k in chosen]
        assert checker_further.equations_bound(circuit, 10007, [s], values) == bound
