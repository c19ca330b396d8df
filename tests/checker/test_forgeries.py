"""Documents that would make the checker say something false, and documents that would make it fall over: all are refused."""

from __future__ import annotations

import copy
import json
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fuzz
import makers as M  # noqa: N812
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from makers import smooth_certificate, symmetry_certificate

from m2bridge import checker, checker_families, checker_further
from m2bridge.cli.records import verify_file
from m2bridge.families import parse_spec
from m2bridge.questions.dimension import dimension
from m2bridge.records import to_document
from tests.marking import slow_except

POOL = dict(fuzz.pool())
PARAMETERS = {"kind": "parameters"}


def certificate(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(POOL[name])
    return found


def outcome(document: Any) -> tuple[int, str]:
    code, said = checker.verify(document if isinstance(document, str) else json.dumps(document))
    return code, " ".join(said)


def rejected(document: Any, reason: str = "") -> None:
    code, said = outcome(document)
    assert code == 7, said
    assert reason in said, said


# -- specs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "deep-lightning(d=[2,1,9],a=[2,1],t=2,coordinates=segre)", "mlp(widths=[2,3,1],r =4)", "mlp(widths=[2,3,1],r=2,r=3)",
        "deep-lightning(d=[2,2],a=[2],t=2,skip=False)", "deep-lightning(d=[2,2],a=[2],t=2,skip=false)",
        "mlp(widths=[2,3,1],r=4,colour=red)", "mlp(r=4,widths=[2,3,1])", "mlp(widths=[2,3,1])", "mlp(widths=[2,3,1],r=04)",
        "mlp(widths=[2,3,1],r=4) ", "mlp (widths=[2,3,1],r=4)", "mlp(widths=[2,3,1],r=4\n)", "mlp:widths=2-3-1,r=4",
        "mlp(widths=[2,3,1],r=4,)", "mlp(widths=[2,3,1],,r=4)", "mlp(widths=[2,3,1,],r=4)", "mlp(widths=[],r=4)",
        "mlp(widths=[2,3,1],r=[4])", "mlp(widths=2,r=4)", "mlp(widths=[2],r=4)", "linear(widths=[2,2],r=1)",
        "lightning(d=2,dp=1,a=2)", "lightning(d=2,dp=1,a=[2],t=2)", "lightning(d=2,dp=1,a=2,t=2,parametrization=weights)",
        "lightning(d=2,dp=1,a=2,t=2,parametrization=virtual)", "lightning(d=2,dp=1,a=2,t=2,coordinates=segre)",
        "lightning(d=2,dp=1,a=2,t=1,coordinates=full)", "softmax(d=[2,2],a=[2],t=2,coordinates=full)",
        "softmax(d=[2,2],a=[2],t=2,temperature=2)", "softmax(d=[2,2],a=[2,2],t=2)",
        "deep-lightning(d=[2,2],a=[2],t=2,heads=1)", "deep-lightning(d=[2,2,2],a=[2,2],t=2,heads=[2,2])",
        "deep-lightning(d=[2,3],a=[2],t=2,skip=true)", "deep-lightning(d=[2,2],a=[2],t=2,heads=2,parametrization=virtual)",
        "convolution(filters=[2,2],strides=[1,1],r=2)", "convolution(filters=[2,2],strides=[2],r=2)",
        "multi-head(d=2,dp=2,a=2,heads=2,t=2)", "skip-lightning(d=[2,2],a=[2],t=2)", "mlp(widths=[2,3,1000000],r=4)",
    ],
)  # fmt: skip
def test_only_canonical_specs_are_read(spec: str) -> None:
    with pytest.raises(checker.Rejected):
        checker_families.read_spec(spec)
    rejected({**certificate("mlp"), "spec": spec})


@pytest.mark.parametrize(
    "spec", ["traced(f)", "file:x.toml", "Mlp(widths=[2,3,1],r=4)", "my net \x1b[31m\u202e", ""]
)
def test_a_spec_that_is_not_known_is_not_claimed(spec: str) -> None:
    code, said = outcome({**certificate("mlp"), "spec": spec})
    assert code == 0
    assert "is not supported by this checker" in said
    assert all(" " <= c <= "~" for c in said)


@pytest.mark.parametrize(
    "name", slow_except({"lightning", "closure"}, [name for name in POOL if json.loads(POOL[name])["spec"]])
)
def test_the_spec_of_another_network_is_rejected(name: str) -> None:
    for other in POOL:
        spec = certificate(other)["spec"]
        if spec not in (None, certificate(name)["spec"]):  # without a spec it is about the program alone
            rejected({**certificate(name), "spec": spec})


def test_segre_coordinates_are_for_two_tokens_and_one_layer() -> None:
    document = certificate("equations")
    for spec in (
        "lightning(d=2,dp=1,a=2,t=1,parametrization=attention)",
        "lightning(d=2,dp=1,a=2,t=2,parametrization=attention,coordinates=full)",
        "softmax(d=[2,1],a=[2],t=2,parametrization=attention)",
    ):
        assert checker_families.read_spec(spec) is not None
        rejected({**document, "spec": spec})


def perturbed(text: str, *lines: str) -> str:
    """The program with more instructions before its output; ``%n`` is the number of the first of them, ``%y`` the old output."""
    head, _, tail = text.rstrip("\n").rpartition("\noutput y ")
    count = head.count("\n")
    more = []
    for k, line in enumerate(lines):
        line = line.replace("%y", tail)  # noqa: PLW2901
        for back in range(k):
            line = line.replace(f"%<{k - back}>", f"%{count + back}")  # noqa: PLW2901
        more.append(f"%{count + k} = {line}")
    return "\n".join([head, *more, f"output y %{count + len(lines) - 1}"]) + "\n"


def test_what_vanishes_modulo_a_known_prime_is_seen() -> None:
    """A square times a multiple of primes that are known before; the checker draws its own."""
    text = M.mlp_text([2, 2], 1)
    for factor in (2**61 - 1, M.SMALL, 2**63 - 25, prime_product()):
        forged = perturbed(text, "power 2 %y", f"scale {factor} %<1>", "add %y %<1>")
        lower, n = M.minor(forged, p=2**31 - 1)
        document = M.document(forged, "linear(widths=[2,2])", n, lower, PARAMETERS)
        rejected(document, "not that of its spec")
        assert outcome({**document, "spec": None})[0] == 0


def prime_product() -> int:
    found, n = 1, 2**61
    for _ in range(200):
        n = next(k for k in range(n + 1, n + 10**4) if checker.is_prime(k))
        found *= n
    return found


def test_a_polynomial_that_vanishes_at_all_points_modulo_p_is_seen() -> None:
    """x^p - x for p = 2^61 - 1, by squaring; its degree alone refuses it."""
    text = M.mlp_text([1, 1], 1)
    lines, square = ["multiply %y %y"], 1
    for _ in range(59):
        lines.append("power 2 %<1>")
        square += 1
    forged = perturbed(text, *lines)
    code, said = outcome(M.document(forged, "linear(widths=[1,1])", 1, M.minor(text)[0], PARAMETERS))
    assert code == 8, said


def test_a_softmax_network_that_differs_by_very_little_is_seen() -> None:
    document = certificate("softmax")
    forged = perturbed(document["program"], "einsum ab,bc->ac %0 %3", f"scale 1/{2**900} %<1>", "add %y %<1>")
    rejected({**document, "program": forged}, "not that of its spec")


def test_the_pairing_of_softmax_is_that_of_equation_15() -> None:
    text = M.attention_text([2, 2], [1], 2, softmax=True)
    turned = text.replace("softmax 1", "softmax 0")
    assert turned != text
    rejected({**certificate("softmax"), "program": turned}, "not that of its spec")
    swapped = (
        text.replace("weight Q1", "weight T")
        .replace("weight K1", "weight Q1")
        .replace("weight T", "weight K1")
    )
    rejected({**certificate("softmax"), "program": swapped}, "other weights")


# -- symmetries -------------------------------------------------------------------------------------------


def sum_of(*lines: str) -> str:
    return (
        "\n".join(
            [
                "m2bridge program 1",
                *(f"%{k} = {line}" for k, line in enumerate(lines)),
                f"output y %{len(lines) - 1}",
            ]
        )
        + "\n"
    )


GL = {"group": "gl", "size": 2, "axes": {"U": [1], "V": [-1]}}
HEADS = {"group": "gl", "size": 2, "axes": {"U": ["*", 1], "V": ["*", -1]}}


@pytest.mark.parametrize(
    ("text", "group"),
    [
        # GL does not commute with an entrywise product by an unlabelled array
        (sum_of("weight U [2]", "weight V [2]", "input x [2]", "multiply %0 %2", "einsum a,a-> %3 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "input x [2]", "einsum a,a->a %0 %2", "einsum a,a-> %3 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "power 2 %0", "power 2 %1", "einsum a,a-> %2 %3"), GL),
        # labels that do not cancel, or are lost
        (sum_of("weight U [2]", "weight V [2]", "einsum a-> %0"), GL),
        (sum_of("weight U [2]", "weight V [2]", "einsum a,b->ab %0 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "slice 0:1:1 %0", "slice 0:1:1 %1", "multiply %2 %3"), GL),
        (sum_of("weight U [2]", "weight V [2]", "slice 1:2:-1 %0", "einsum a,a-> %2 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "gather [2] 1,0 %0", "einsum a,a-> %2 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "exp %0", "einsum a,a-> %2 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "input x [2]", "add %0 %2", "einsum a,a-> %3 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "concatenate 0 %0 %0", "einsum a-> %2"), GL),
        (sum_of("weight U [2]", "weight V [2]", "input x [2]", "reshape [2,1] %0", "concatenate 1 %3 %3", "einsum ab,a->b %4 %0"),
         GL),
        (sum_of("weight U [1,2]", "weight V [1,2]", "concatenate 0 %0 %1", "einsum ab,cb->ac %2 %1"),
         {**GL, "axes": {"U": [0, 1], "V": [0, -1]}}),
        (sum_of("weight U [2,2,3]", "weight V [2]", "reshape [6,2] %0", "einsum ab,b->a %2 %1"),
         {**GL, "axes": {"U": [0, 1, 0], "V": [-1]}}),
        (sum_of("weight U [1]", "reshape [] %0"), {"group": "gl", "size": 1, "axes": {"U": [1]}}),
        (sum_of("weight U [1]", "reshape [] %0"), {"group": "torus", "size": 1, "axes": {"U": [1]}}),
        (sum_of("weight U [1]", "input x [3]", "multiply %0 %1", "einsum a-> %2"),
         {"group": "torus", "size": 1, "axes": {"U": [1]}}),
        # copies of a group that are mixed
        (sum_of("weight U [2,2]", "weight V [2,2]", "einsum ab,cb->ac %0 %1"), HEADS),
        (sum_of("weight U [2,2]", "weight V [2,2]", "einsum ab->b %0", "einsum ab->b %1", "einsum a,a-> %2 %3"), HEADS),
        (sum_of("weight U [2,2]", "weight V [2,2]", "einsum ab->ba %0", "einsum ab,ab-> %2 %1"), HEADS),
        (sum_of("weight U [1,2]", "weight V [1,2]", "input x [3,2]", "weight W [3,2]"), HEADS),
        # each copy acts by itself: (1, 4) keeps U_0^4 V_1, other pairs do not
        (sum_of("weight U [2,1]", "weight V [2,1]", "gather [] 0 %0", "power 4 %2", "gather [] 1 %1", "multiply %3 %4"),
         {"group": "gl", "size": 1, "axes": {"U": ["*", 1], "V": ["*", -1]}}),
        # a diagonal of squares keeps U_0^4 V_1, and nothing else does
        (sum_of("weight U [2]", "weight V [2]", "gather [] 0 %0", "power 4 %2", "gather [] 1 %1", "multiply %3 %4"), GL),
        # tori and scalings with wrong exponents
        (M.mlp_text([2, 2, 1], 3), {"group": "torus", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -2]}}),
        (M.mlp_text([2, 2, 1], 3), {"group": "torus", "size": 2, "axes": {"W1": [0, 1], "W2": [0, -3]}}),
        (M.mlp_text([2, 2, 1], 3), {"group": "gl", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -1]}}),
        (M.mlp_text([2, 2, 1], 3), {"group": "scaling", "weights": {"W1": 1, "W2": -2}}),
        (M.mlp_text([2, 2, 1], 3), {"group": "scaling", "weights": {"W1": 1}}),
        (M.attention_text([2, 2], [2], 2, softmax=True), {"group": "scaling", "weights": {"Q1": 1, "V1": -1}}),
        (M.attention_text([2, 2, 2], [2, 2], 2, skip=True), M.attention_groups([2, 2, 2], [2, 2])[-1]),
    ],
)  # fmt: skip
def test_groups_that_change_the_function_are_rejected(text: str, group: dict[str, Any]) -> None:
    rejected(symmetry_certificate(text, [group]))


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (sum_of("weight U [2]", "weight V [2]", "einsum a,a-> %0 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "multiply %0 %1", "einsum a-> %2"), GL),
        (sum_of("weight U [2]", "weight V [2]", "input s []", "multiply %2 %0", "einsum a,a-> %3 %1"), GL),
        (sum_of("weight U [2]", "weight V [2]", "scale 2/3 %0", "reshape [1,2] %2", "einsum ab,b->a %3 %1"), GL),
        (sum_of("weight U [1,2]", "weight V [2]", "concatenate 0 %0 %0", "einsum ab,b->a %2 %1"),
         {**GL, "axes": {"U": [0, 1], "V": [-1]}}),
        (sum_of("weight U [3,2]", "weight V [2]", "slice 1:2:1,0:2:1 %0", "einsum ab,b->a %2 %1"),
         {**GL, "axes": {"U": [0, 1], "V": [-1]}}),
        (sum_of("weight U [2,2]", "weight V [2,2]", "einsum ab,ab->a %0 %1"), HEADS),
        (sum_of("weight U [2,2]", "weight V [2,2]", "einsum ab,ab-> %0 %1"), HEADS),
        (M.mlp_text([2, 2, 1], 3), {"group": "torus", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -3]}}),
    ],
)  # fmt: skip
def test_groups_that_do_not_are_verified(text: str, group: dict[str, Any]) -> None:
    assert outcome(symmetry_certificate(text, [group]))[0] == 0


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        (M.attention_text([2, 3, 2], [2, 2], 2), M.attention_groups([2, 3, 2], [2, 2])),
        (
            M.attention_text([2, 2, 2], [2, 1], 2, heads=[2, 3]),
            M.attention_groups([2, 2, 2], [2, 1], heads=[2, 3]),
        ),
        (M.mlp_text([2, 3, 2], 3), [{"group": "torus", "size": 3, "axes": {"W1": [1, 0], "W2": [0, -3]}}]),
    ],
)
def test_generators_are_those_of_another_writing(text: str, groups: list[Any]) -> None:
    program = checker.read_program(text)
    at = [random.Random(k).randrange(M.P) for k in range(program.parameters)]
    for group in groups:
        found = checker.symmetry_vectors(program, at, M.P, [group], [])
        expected = fuzz._generators(fuzz.parse_program(text), group, at)
        dense = [[vector.get(k, 0) for k in range(len(at))] for vector in found]
        assert dense[-len(expected) :] == [[x % M.P for x in vector] for vector in expected]


@pytest.mark.parametrize(
    "group",
    [
        {}, [], None, {"group": "gl"}, {"group": "sl", "size": 2, "axes": {"W1": [1, 0]}},
        {"group": "gl", "size": 3, "axes": {"W1": [1, 0], "W2": [0, -1]}}, {"group": "gl", "size": 2, "axes": {}},
        {"group": "torus", "size": 2, "axes": {"W1": [1], "W2": [0, -3]}},
        {"group": "torus", "size": 2, "axes": {"W9": [1, 0]}},
        {"group": "torus", "size": 2, "axes": {"W1": ["*", 1], "W2": [0, -3]}},
        {"group": "torus", "size": 2, "axes": {"W1": [0, 0]}},
        {"group": "torus", "size": 2, "axes": {"W1": [True, 0], "W2": [0, -3]}},
        {"group": "torus", "size": 2.0, "axes": {"W1": [1, 0]}},
        {"group": "scaling", "weights": {"W1": 1.0, "W2": -3}}, {"group": "scaling", "weights": {}},
        {"group": "scaling", "weights": []},
    ],
)  # fmt: skip
def test_groups_are_read_strictly(group: Any) -> None:
    rejected(symmetry_certificate(M.mlp_text([2, 2, 1], 3), [group]))


# -- minors, points, statements ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("lower", "prime"), M.SMALL - 2), (("lower", "prime"), 2**64 + 13), (("lower", "prime"), True),
        (("lower", "prime"), 2.0),
        (("lower", "columns", 0), -1), (("lower", "columns", 0), 10**6), (("lower", "rows", 0), [0, -1]),
        (("lower", "rows", 0), [-1, 0]),
        (("lower", "rows", 0), [0]), (("lower", "samples"), 0), (("lower", "samples"), 10**9), (("lower", "kind"), "Minor"),
        (("lower", "weights"), {"entries": [0] * 10}), (("lower", "weights"), {"entries": [1] * 9}), (("lower", "extra"), 0),
        (("lower", "weights"), {"seed": 0, "stream": 0}), (("lower", "weights"), {"seed": -1, "stream": 0, "fixed": []}),
        (("lower", "weights"), {"seed": 0, "stream": 0, "fixed": [[8, [1, 1, 1]]]}),
        (("lower", "inputs", "entries", 0), M.SMALL),
        (("lower", "weights"), {"seed": 0, "stream": 0, "fixed": [[2, [1, 1]], [3, [1]]]}), (("statement", "dimension"), 6),
        (("statement", "dimension"), True), (("statement", "dimension"), "5"), (("statement", "extra"), 1),
        (("statement", "kind"), "dim"),
        (("upper", "kind"), []), (("upper",), PARAMETERS), (("upper",), {"kind": "parameters", "value": 5}), (("upper",), None),
        (("upper", "weights"), {"entries": [0] * 10}), (("upper", "groups"), {}), (("format",), "m2bridge Certificate"),
        (("spec",), 5), (("program",), None), (("program",), "m2bridge program 1\n"), (("extra",), 1), (("lower",), [1]),
    ],
)  # fmt: skip
def test_fields_of_a_dimension(path: tuple[Any, ...], value: Any) -> None:
    document = certificate("lightning")
    target: Any = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    rejected(document)


@pytest.mark.parametrize("name", slow_except({"lightning", "closure", "singular"}, POOL))
def test_nothing_may_be_missing_or_added(name: str) -> None:
    document = certificate(name)
    for path in fuzz.leaves(document):
        target: Any = document
        for key in path:
            target = target[key]
        if isinstance(target, dict):
            for key in list(target):
                if (
                    path
                    and path[-1] in ("axes", "weights")
                    and key not in ("entries", "seed", "stream", "fixed")
                ):
                    continue  # names of weights: leaving one out is another group
                if key == "solutions":
                    continue  # without them the minor is eliminated
                kept = target.pop(key)
                assert outcome(document)[0] != 0, (path, key)
                target[key] = kept
            target["another"] = 1
            assert outcome(document)[0] != 0, path
            del target["another"]


HIDDEN = ["weight A [2,3]", "weight B [1,2]", "input x [3]"]


@pytest.mark.parametrize(
    "lines",
    [
        [*HIDDEN, "einsum ab,b->a %0 %2", "power 2 %3", "einsum ab,b->a %1 %4", "power 2 %5"],
        [*HIDDEN, "einsum ab,b->a %0 %2", "power 2 %3", "einsum ab,b->a %1 %4", "add %5 %5"],
        [*HIDDEN, "power 2 %2", "einsum ab,b->a %0 %3", "power 2 %4", "einsum ab,b->a %1 %5"],
        [*HIDDEN, "constant [3] 1 2 3", "einsum ab,b->a %0 %3", "power 2 %4", "einsum ab,b->a %1 %5"],
        [*HIDDEN, "power 2 %0", "einsum ab,b->a %3 %2", "power 2 %4", "einsum ab,b->a %1 %5"],
        ["weight B [1,2]", "weight A [2,3]", "input x [3]", "einsum ab,b->a %1 %2", "power 2 %3", "einsum ab,b->a %0 %4"],
        ["weight A [2,2]", "input x [2]", "einsum ab,b->a %0 %1", "power 2 %2", "einsum ab,b->a %0 %3"],
        ["weight A [2,3]", "weight B [1,2]", "weight C [1]", "input x [3]", "einsum ab,b->a %0 %3", "power 2 %4",
         "einsum ab,b->a %1 %5"],
    ],
)  # fmt: skip
def test_flattenings_are_for_perceptrons_with_one_hidden_layer(lines: list[str]) -> None:
    weights = {"seed": 1, "stream": 1, "fixed": []}
    argument = {
        "kind": "flattening",
        "flattening": ["catalecticant", 1],
        "prime": M.SMALL,
        "weights": weights,
    }
    with pytest.raises(checker.Rejected):
        checker.check_upper(checker.read_program(sum_of(*lines)), argument, None)


def test_a_row_that_is_listed_twice_does_not_count() -> None:
    document = certificate("lightning")
    lower, program = document["lower"], checker.read_program(document["program"])
    assert checker.check_lower(program, lower) == 5
    with pytest.raises(checker.Rejected, match="as many rows as columns"):
        checker.check_lower(program, {**lower, "rows": [*lower["rows"], lower["rows"][0]]})


def test_the_last_layer_is_read_off_the_program() -> None:
    document = certificate("wide")
    for key, value in (
        ("layer", "V1"),
        ("layer", "X"),
        ("layer", 3),
        ("tokens", [0, 0, 1]),
        ("tokens", [0, 1, 2, 3]),
        ("tokens", []),
    ):
        wrong = copy.deepcopy(document)
        wrong["lower"][key] = value
        rejected(wrong)
    shared = perturbed(document["program"], "einsum ab,bc->ac %5 %y", "add %y %<1>")  # V2 is used once more
    rejected({**document, "program": shared, "spec": None}, "V Z")
    column = copy.deepcopy(document)
    column["lower"]["columns"][0] = checker.read_program(document["program"]).parameters - 1
    rejected(column, "in the last layer")
    token = copy.deepcopy(document)
    token["lower"]["rows"][0][1] = token["lower"]["tokens"][0]
    rejected(token, "one of the independent ones")


def test_a_record_cannot_borrow_a_certificate() -> None:
    """The certificate of another network, of another statement, or of no network that it names."""
    good = {
        "analysis": "dimension",
        "model": "lightning(d=2,dp=1,a=2,t=2)",
        "image_dim": 5,
        "certificate": certificate("lightning"),
    }
    assert outcome(good)[0] == 0
    rejected({**good, "image_dim": 99}, "the certificate shows 5")
    rejected({**good, "model": "lightning(d=9,dp=9,a=9,t=9)"})
    rejected(
        {**good, "certificate": certificate("symmetry"), "model": certificate("symmetry")["spec"]},
        "is about a dimension",
    )
    nameless = {**certificate("lightning"), "spec": None}
    rejected({**good, "certificate": nameless}, "the certificate shows program:")
    rejected({**good, "certificate": nameless, "model": "map:x->x"}, "the certificate shows program:")
    rejected({**good, "certificate": nameless, "model": "traced(f)"}, "the certificate shows program:")
    own = "program:" + ";".join(nameless["program"].splitlines()[1:])
    assert outcome({**good, "certificate": nameless, "model": own})[0] == 0


def test_a_record_of_another_question() -> None:
    good = {
        "analysis": "closure",
        "model": certificate("closure")["spec"],
        "degree": 4,
        "certificate": certificate("closure"),
    }
    code, said = outcome(good)
    assert code == 9
    assert said.endswith("Not covered by the certificate: analysis, degree.")
    rejected({**good, "analysis": "dimension"})
    rejected({**good, "upper_bound": 4})


@pytest.mark.parametrize(
    "polynomial",
    [
        [],
        [[0, []]],
        [[1, [[0, 0]]]],
        [[1, [[6, 1]]]],
        [[1, [[1, 1], [0, 1]]]],
        [[1, [[0, 1], [0, 1]]]],
        [[1, []], [1, []]],
        [[True, []]],
        [1],
    ],
)
def test_polynomials_are_read_strictly(polynomial: Any) -> None:
    with pytest.raises(checker.Rejected):
        checker_further.read_equation(polynomial, 6)


def test_smooth_and_singular_need_the_right_bound() -> None:
    smooth, singular = certificate("smooth"), certificate("singular")
    rejected({**smooth, "statement": {"kind": "smooth", "weights": [0] * 6}}, "tangent space")
    rejected({**smooth, "statement": {"kind": "singular", "weights": [0] * 6}})
    rejected({**singular, "statement": {"kind": "singular", "weights": [1, 2, 3, 5, 7, 11]}}, "does not pass")
    fewer = copy.deepcopy(singular)
    del fewer["argument"]["arcs"][3:]
    rejected(fewer, "only")
    weak = copy.deepcopy(singular)
    weak["argument"]["upper"] = PARAMETERS
    rejected(weak, "only")
    still = copy.deepcopy(singular)
    still["argument"]["arcs"][0] = [[0]] * 6
    rejected(still, "does not move")
    lower = copy.deepcopy(smooth["argument"]["lower"])
    lower["rows"], lower["columns"] = lower["rows"][:-1], lower["columns"][:-1]
    text = smooth["program"]
    rejected(smooth_certificate(text, [1, 2, 3, 5, 7, 11], [fuzz.QUARTIC], lower, prime=M.SMALL))


# -- closures, points inside and outside, and their records --------------------------------------------------


def closure_record(**changes: Any) -> dict[str, Any]:
    """lightning(d=2,dp=1): one quartic in six coordinates, over QQ."""
    own = certificate("closure")
    terms = own["statement"]["equations"][0]
    quartic = {
        "degree": 4, "coefficients": [c for c, _ in terms], "monomials": [[i for i, e in m for _ in range(e)] for _, m in terms],
    }  # fmt: skip
    record = {
        "analysis": "closure", "model": own["spec"], "field": "QQ", "span_dim": 6, "generators": {"4": 1}, "degree_bound": 4,
        "coordinate_count": 6, "image_dim": 5, "codim": 1, "degree": 4, "completeness": "complete", "equations": [quartic],
        "certificate": [own],
    }  # fmt: skip
    return record | changes


def test_a_closure_says_what_needs_a_groebner_basis() -> None:
    code, said = outcome(closure_record())
    assert code == 9, said
    rest = "analysis, coordinate_count, image_dim, codim, degree, completeness"
    assert said.endswith(f"Not covered by the certificate: {rest}.")


def test_a_closure_cannot_say_more_than_its_certificate() -> None:
    """Numbers that are no numbers, other generators, other equations; an equation with a factor or another variable."""
    equation = closure_record()["equations"][0]
    doubled = {**equation, "coefficients": [2 * c for c in equation["coefficients"]]}
    moved = {**equation, "monomials": [[5 - i for i in m] for m in equation["monomials"]]}
    for key, value in (
        ("generators", {"4": True}), ("generators", {"4": 1, "3": 1}), ("generators", {"4": 1, "5": 2}), ("generators", {}),
        ("generators", {"04": 1}), ("generators", {"4": 1.0}), ("generators", [4]), ("degree_bound", True),
        ("span_dim", 5), ("span_dim", 6.0), ("equations", [doubled]), ("equations", [moved]),
        ("equations", [equation, equation]), ("equations", [{}]), ("equations", "z0"), ("upper_bound", 5),
        ("certificate", [certificate("closure"), certificate("outside matrix")]),
    ):  # fmt: skip
        rejected(closure_record(**{key: value}))


def test_of_a_closure_in_higher_degrees_nothing_is_covered() -> None:
    code, said = outcome(closure_record(degree_bound=6, generators={"4": 1, "6": 3}))
    assert code == 9
    assert "generators but for those of degree at most 4" in said
    assert "degree_bound" in said
    rejected(closure_record(degree_bound=6, generators={"4": 2, "6": 3}))
    said = outcome(closure_record(degree_bound=None))[1]
    assert "generators but for those of degree at most 4" in said


def test_a_redundant_equation_is_no_generator() -> None:
    """The quartic times a coordinate is an equation of degree five, but no minimal generator; whatever prime is named."""
    multiple = {(m[0] + 1, *m[1:]): c for m, c in fuzz.QUARTIC.items()}
    for prime in (2, M.SMALL):
        own = M.closure_certificate(
            M.segre_text(2, 1), [multiple, fuzz.QUARTIC], 5, prime=prime, spec=certificate("closure")["spec"], gradings=[[1] * 6]
        )  # fmt: skip
        record = closure_record(certificate=[own], degree_bound=5, equations=None)
        assert outcome(record)[0] == 9
        rejected({**record, "generators": {"4": 1, "5": 1}}, "generators")


def test_linear_generators_are_those_that_cut_the_span() -> None:
    """(w_0, w_1, w_0 + w_1): a plane in three coordinates; its linear form is no generator in the span."""
    text = sum_of("weight w [2]", "einsum a-> %0", "reshape [1] %1", "concatenate 0 %0 %2")
    own = M.closure_certificate(text, [{(1, 0, 0): 1, (0, 1, 0): 1, (0, 0, 1): -1}], 2, prime=M.SMALL)
    model = "program:" + ";".join(text.splitlines()[1:])
    record = {
        "analysis": "closure",
        "model": model,
        "generators": {},
        "degree_bound": 2,
        "span_dim": 2,
        "certificate": own,
    }
    code, said = outcome(record)  # nothing is stated of its dimension
    assert (code, "Not covered: the answer." in said) == (9, True)
    rejected({**record, "generators": {"1": 1}})
    rejected({**record, "span_dim": 3})
    code, said = outcome({**record, "field": "F_2", "span_dim": 3})
    assert code == 9
    assert said.endswith("analysis, generators, degree_bound, span_dim, field.")


def test_coefficients_of_a_matrix_are_numbered_in_another_way() -> None:
    """One token is a matrix with one column: its record is not compared, whatever it says of the point."""
    text = M.attention_text([2, 1], [2], 1, single=True, way="attention")
    spec = "lightning(d=2,dp=1,a=2,t=1,parametrization=attention)"
    own = M.inside_certificate(text, [1, 0, 0, 1, 1, 0], [1, 0, 1, 0], spec=spec)  # x_1 (x_1^2 + x_2^2)
    record = {
        "analysis": "membership",
        "model": spec,
        "point": ["7", "0", "0", "0"],
        "closure": False,
        "certificate": own,
    }
    code, said = outcome(record)
    assert code == 9
    assert said.endswith("Not covered by the certificate: analysis, point, closure.")


def member_record(name: str, **changes: Any) -> dict[str, Any]:
    own = certificate(name)
    inside = name.startswith("inside")
    verdicts = dict.fromkeys(("closure", "complex_image", "real_image"), inside)
    point = [str(x) for x in own["statement"]["point"]]
    return {
        "analysis": "membership",
        "model": own["spec"],
        "point": point,
        **verdicts,
        "certificate": own,
    } | changes


@pytest.mark.parametrize("name", ["inside", "outside", "inside matrix", "outside matrix"])
def test_records_of_a_point_inside_or_outside(name: str) -> None:
    """Also of a network with a vector as its input, whose coefficients are numbered alike."""
    good = member_record(name)
    code, said = outcome(good)
    assert code == 0, said
    assert said.endswith("Not covered by the certificate: analysis.")
    for key, value in (
        ("closure", not good["closure"]), ("complex_image", None), ("real_image", int(good["real_image"])),
        ("point", good["point"][::-1]), ("point", [*good["point"], "0"][1:]), ("model", "linear(widths=[2,2,2])"),
    ):  # fmt: skip
        rejected({**good, key: value})


def test_a_point_is_in_the_image_exactly() -> None:
    """Not modulo a prime, not up to a sign, not in other digits; and an equation that fails must be one."""
    inside, outside = certificate("inside"), certificate("outside")
    for k, value in ((0, 5 + M.P), (0, -5), (2, "3/4"), (0, "5/1"), (2, "\uff13/\uff12"), (0, "5"), (0, 5.0)):
        wrong = copy.deepcopy(inside)
        wrong["statement"]["point"][k] = value
        rejected(wrong)
    half = copy.deepcopy(inside)
    half["statement"]["weights"][5] = "2/4"
    rejected(half, "lowest terms")
    on_it = {**outside["statement"], "point": inside["statement"]["point"]}
    rejected({**outside, "statement": on_it}, "the equation vanishes at the point")
    linear = {**outside["statement"], "equation": [[1, [[0, 1]]]]}
    rejected({**outside, "statement": linear}, "does not vanish identically")
    rejected({**inside, "argument": {}}, "no argument")


def test_huge_powers_of_huge_numbers_are_answered_in_seconds() -> None:
    """A coordinate that is zero to the power 10^6 is an equation; its value at a number of 4000 digits is not computed."""
    text = "m2bridge program 1\n%0 = weight w [1]\n%1 = scale 0 %0\n%2 = concatenate 0 %0 %1\noutput y %2\n"
    began = time.process_time()
    for x in (10**3999, "1/" + "7" * 3999):
        document = M.outside_certificate(text, {(0, 1): 1}, [1, 1])
        assert outcome(document)[0] == 0
        document["statement"] |= {"equation": [[1, [[1, 10**6]]]], "point": [1, x]}
        assert outcome(document)[0] == 8
    assert time.process_time() - began < 10


def test_a_prime_that_divides_a_denominator_is_refused() -> None:
    """Of the program, and of weights."""
    text = f"m2bridge program 1\n%0 = weight w [1]\n%1 = scale 1/{M.SMALL} %0\noutput y %1\n"
    lower = {
        "kind": "minor", "prime": M.SMALL, "weights": {"entries": [1]}, "samples": 1, "inputs": {"entries": []},
        "rows": [[0, 0]], "columns": [0],
    }  # fmt: skip
    rejected(M.document(text, None, 1, lower, PARAMETERS), "divides a denominator")
    assert outcome(M.document(text, None, 1, {**lower, "prime": 101}, PARAMETERS))[0] == 0
    smooth = certificate("smooth matrix")
    smooth["statement"]["weights"][0] = f"1/{M.SMALL}"
    rejected(smooth, "divides a denominator")


def test_one_false_certificate_in_a_list_is_enough() -> None:
    own = certificate("lightning")
    false = copy.deepcopy(own)
    false["statement"]["dimension"] = 6
    record = {"analysis": "dimension", "model": own["spec"], "image_dim": 5}
    assert outcome({**record, "certificate": [own, own]})[0] == 0
    for several in (
        [own, false],
        [false, own],
        [own, {}],
        [own, certificate("deep")],
        [own, "Verified."],
        [own, []],
    ):
        assert outcome({**record, "certificate": several})[0] != 0


def test_a_program_that_differs_at_special_weights_only_is_seen() -> None:
    """A term with the factor W_11 W_22 - W_12 W_21 changes nothing where it is zero; one that is zero everywhere may be there."""
    text = M.mlp_text([2, 2], 1)
    left, right = ("gather [1] 0 %0", "gather [1] 3 %0"), ("gather [1] 1 %0", "gather [1] 2 %0")
    for pair, code in ((right, 7), (left, 0)):
        lines = [*left, "multiply %<2> %<1>", *pair, "multiply %<2> %<1>", "scale -1 %<1>", "add %<5> %<1>"]
        forged = perturbed(text, *lines, "multiply %y %<1>", "add %y %<1>")
        lower, n = M.minor(forged)
        document = M.document(forged, "linear(widths=[2,2])", n, lower, PARAMETERS)
        assert outcome(document)[0] == code


# -- more forgeries: hypotheses that somebody leaves out ---------------------------------------------------------


POINT = {"seed": 1, "stream": 1, "fixed": []}
EMPTY = {"entries": []}


def lines_of(*lines: str, tail: str = "") -> str:
    """A program with these instructions and last lines; by default the last instruction is the output."""
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    return f"m2bridge program 1\n{body}" + (tail or f"output y %{len(lines) - 1}\n")


def by_minor(rows: Any, columns: Any, weights: Any = POINT, p: int = 101) -> dict[str, Any]:
    own = {"prime": p, "weights": weights, "samples": 1, "inputs": EMPTY, "rows": rows, "columns": columns}
    return {"kind": "minor", **own}


def cut_at(k: Any, first: Any, second: Any, **changes: Any) -> dict[str, Any]:
    whole = {"groups": [], "fields": [], "prime": 101, "weights": POINT, "samples": 2}
    return {"kind": "composition", "cut": k, "first": first, "second": second, **whole, **changes}


def test_all_outputs_of_a_map_are_counted() -> None:
    text = lines_of("weight w [3]", "slice 0:1:1 %0")
    lower, n = M.minor(text)
    document = M.document(text, "map:x,y,z->x", n, lower, {"kind": "coordinates"})
    rejected({**document, "spec": "map:x,y,z->x;y;z"}, "another number of outputs")


def test_a_map_has_no_inputs() -> None:
    text = lines_of("weight w [1]", "input x [1]", "scale 0 %1", "add %0 %2")
    lower, n = M.minor(text)
    assert outcome(M.document(text, None, n, lower, PARAMETERS))[0] == 0
    rejected(M.document(text, "map:w->w", n, lower, PARAMETERS), "has inputs")


QUADRICS = ["einsum a,b->ab %1 %1", "gather [3] 0,1,3 %3"]  # all three quadrics in two variables, from %4


def test_a_hypersurface_is_in_the_cut() -> None:
    """Quadrics in z have six coefficients, also when three quadrics in x, which lie on a conic, are computed beside them."""
    quadrics = ["einsum a,b->ab %2 %2", "gather [6] 0,1,2,4,5,8 %5", "einsum a,a-> %0 %6"]
    text = lines_of("weight G [6]", "input x [2]", "input z [3]", *QUADRICS, *quadrics)
    assert M.generic_rank(text) == 6
    lower, _ = M.minor(text)
    fewer = {**lower, "rows": lower["rows"][:5], "columns": lower["columns"][:5]}
    upper = cut_at(4, PARAMETERS, {"kind": "hypersurface"})
    rejected(M.document(text, None, 5, fewer, upper), "bypass the cut")
    behind = lines_of(
        "weight G [6]", "input x [2]", "scale 1 %1", *QUADRICS,
        "einsum a,b->ab %4 %4", "gather [6] 0,1,2,4,5,8 %5", "einsum a,a-> %0 %6",
    )  # fmt: skip
    assert M.generic_rank(behind) == 5
    assert outcome(M.document(behind, None, 5, M.minor(behind)[0], upper))[0] == 0


def test_names_of_cuts_do_not_collide() -> None:
    """A second part is cut again: its two inputs, of the same length, are both there."""
    text = lines_of(
        "weight u [2]", "weight v [2]", "weight w [2]", "input x [2]", "multiply %0 %3", "multiply %1 %3", "multiply %2 %5",
        "multiply %4 %6",
    )  # fmt: skip
    truth = M.generic_rank(text)
    assert truth == 2  # u v w
    inner = cut_at(4, {"kind": "coordinates"}, {"kind": "coordinates"})
    program = checker.read_program(text)
    assert checker.check_upper(program, cut_at(4, {"kind": "coordinates"}, inner)) >= truth
    _, second = (checker_further.subprogram(program, k, c)[0] for k, c in (([4], None), ([7], 4)))
    again = checker_further.subprogram(second, second.outputs, 4)[0]
    assert again.input_size == sum(again.size(k) for k, g in enumerate(again.gates) if g.operation == "input")


def test_the_rank_of_symmetries_is_not_that_at_a_known_point() -> None:
    """Two fields have rank two. One of them has a factor that is zero at the point that was used once."""
    text = lines_of("weight w [3]", "gather [1] 2 %0")
    known = next(checker.stream(0, 0, 1)) % checker_families.MERSENNE
    fields = [[[0, 1, []]], [[1, 1, [[0, 1]]], [1, -known, []]]]
    own = M._document(text, {"kind": "symmetry", "groups": [], "fields": fields}, None, None)
    record = {"analysis": "symmetries", "certificate": own, "fields": []}
    rejected({**record, "symmetry_dim": 1}, "the certificate shows 2")
    assert outcome({**record, "symmetry_dim": 2})[0] == 9  # a lower bound: there may be further symmetries


def test_degrees_behind_reciprocals_are_added() -> None:
    """x -> 1/x + 1/(x + 1) doubles the degree; forty times are out of reach for random points."""
    lines, last = ["weight W1 [1,1]", "input x [1]", "einsum ab,b->a %0 %1", "constant [1] 1"], 2
    for _ in range(40):
        k = len(lines)
        lines += [f"add %{last} %3", f"reciprocal %{k}", f"reciprocal %{last}", f"add %{k + 1} %{k + 2}"]
        last = k + 3
    assert (
        outcome(M.document(lines_of(*lines), "linear(widths=[1,1])", 1, by_minor([], []), PARAMETERS))[0] == 8
    )


def size_of(*lines: str) -> int:
    """The bound for degree plus height of the difference of two outputs."""
    circuit, ring = checker.read_program(lines_of(*lines)), checker_further.Sizes()
    variables = [[(1, 0, 0)] * n for n in (circuit.parameters, circuit.input_size)]
    return ring.of_identity(checker.Evaluation(circuit, ring).outputs(*variables))


def test_sizes_of_numerators() -> None:
    """Degree plus height, by hand: w^3; 3 w (2 bits); w/5 (a variable for 1/5); w + 1/w = (w^2 + 1)/w; 1/(1 + 1/w)."""
    w = "weight w []"
    assert size_of(w, "power 3 %0") == 3
    assert size_of(w, "scale 3 %0") == 1 + 2
    assert size_of(w, "scale 1/5 %0") == (1 + 1) + (1 + 2 * 4)
    assert size_of(w, "scale 1/2 %0") == (1 + 1) + (1 + 2 * 3)
    # 1/w + 1/(2 w): degree and height 1; both denominators together have degree 2 and height 2
    assert size_of(w, "reciprocal %0", "scale 2 %0", "reciprocal %2", "add %1 %3") == 3 + (1 + 2)
    assert size_of(w, "reciprocal %0", "add %0 %1") == 2 + 1
    # 1 + 1/w has degree 1 and height 2 in w and r = 1/w, its reciprocal s degree 1: 1 + 1 and 0 + 2; then r: 2 + 2 and 2
    assert size_of(w, "reciprocal %0", "constant [] 1", "add %1 %2", "reciprocal %3") == (2 + 2) + 2


def test_probabilities_of_random_points() -> None:
    """(size / 2^61)^4, rounded up to a power of two; an error above 2^-40 is not accepted."""
    assert checker_further.error_exponent(1) == 240
    assert checker_further.error_exponent(2**51 - 1) == 40
    with pytest.raises(checker.Unknown, match="too large for random points"):
        checker_further.error_exponent(2**51)


def test_the_probability_is_printed() -> None:
    said = outcome(certificate("lightning"))[1]
    assert re.search(
        r"random primes above 2\^61 \(if they were not equal, .* probability below 2\^-2\d\d\)", said
    )
    said = outcome(certificate("closure"))[1]
    assert "is counted modulo a random prime above 2^61." in said


@pytest.mark.parametrize(
    "zero",
    [
        ["scale 0 %0", "reciprocal %2"],
        ["exp %0", "exp %0", "scale -1 %3", "add %2 %4", "reciprocal %5"],
        ["multiply %0 %1", "scale -1 %2", "add %2 %3", "reciprocal %4"],
    ],
)
def test_symmetries_of_a_program_that_is_defined_nowhere(zero: list[str]) -> None:
    """The second weight does not occur; a denominator is zero identically."""
    statement = {"kind": "symmetry", "groups": [], "fields": [[[1, 1, []]]]}
    own = M._document(lines_of("weight w [2]", "input x [2]", "gather [] 0 %0"), statement, None, None)
    assert outcome(own)[0] == 0
    lines = ["weight w [2]", "input x [2]", *zero]
    rejected({**own, "program": lines_of(*lines, f"gather [] 0 %{len(lines) - 1}")}, "a denominator is zero")


def test_a_denominator_may_be_zero_because_of_values_of_exp() -> None:
    """a b / (exp(0 a) - 1) is defined nowhere: this is not seen, and the sentence says so. For polynomials it does not."""
    head, product = ("weight a []", "weight b []"), "multiply %0 %1"
    zero = ("scale 0 %0", "exp %2", "constant [] -1", "add %3 %4", "reciprocal %5", product, "multiply %6 %7")
    statement = {
        "kind": "symmetry",
        "groups": [{"group": "scaling", "weights": {"a": 1, "b": -1}}],
        "fields": [],
    }
    where = "identically, wherever the program is defined (that it is defined somewhere was not verified);"
    for lines, analytic in (((*head, *zero), True), ((*head, product), False)):
        code, said = outcome(M._document(lines_of(*lines), statement, None, None))
        assert (code, where in said) == (0, analytic), said


def test_a_program_is_that_of_its_spec_where_both_are_defined() -> None:
    """W x + 0 / (exp(0) - 1) is defined nowhere, and equal to W x for a random function in place of exp."""
    plain = ("weight W1 [1,1]", "input x [1]", "einsum ab,b->a %0 %1")
    zero = (
        "scale 0 %2",
        "exp %3",
        "constant [1] -1",
        "add %4 %5",
        "reciprocal %6",
        "multiply %3 %7",
        "add %2 %8",
    )
    for lines, hedged in ((plain, False), ((*plain, *zero), True)):
        identity = checker_families.identify(checker.read_program(lines_of(*lines)), "linear(widths=[1,1])")
        assert identity is not None
        assert ("wherever both are defined" in identity.sentence) == hedged


def test_radicands_may_be_negative_at_all_real_points() -> None:
    """sqrt(-1 - w^2) has dimension one as an algebraic function; the output says that no real point was verified."""
    text = lines_of("weight a []", "power 2 %0", "constant [] -1", "scale -1 %1", "add %3 %2", "sqrt %4")
    lower = {
        "kind": "minor",
        "prime": 10007,
        "weights": {"entries": [2]},
        "samples": 1,
        "inputs": {"entries": []},
    }
    lower |= {"rows": [[0, 0]], "columns": [0]}
    lower |= {"roots": {"draws": [0], "inputs": [], "weights": [{"entries": [5]}]}}
    code, said = outcome(M.document(text, None, 1, lower, PARAMETERS))
    assert code == 0
    assert "That there is a real point at which all radicands are positive was not verified." in said


@pytest.mark.parametrize("s", [0, 4, 5])
def test_catalecticants_have_a_degree_inside(s: int) -> None:
    with pytest.raises(checker.Rejected, match="the degree of a catalecticant"):
        checker_further.flattening(["catalecticant", s], 2, 1, 4)


def test_forms_of_degree_zero_satisfy_no_equation_of_degree_zero() -> None:
    first = checker.read_program(lines_of("weight a [3]", "input x [2]", "scale 1 %0"))
    second = checker.read_program(lines_of("weight b [3]", "input c [3]", "einsum a,a-> %0 %1"))
    with pytest.raises(checker.Rejected, match="not homogeneous of one degree"):
        checker_further.hypersurface_bound(first, second, "c")


def test_a_statement_without_argument_and_entries_below_the_prime() -> None:
    rejected({**certificate("symmetry"), "argument": {}}, "it has no argument")
    assert checker.read_point({"entries": [100]}, 1, 101) == [100]
    with pytest.raises(checker.Rejected):
        checker.read_point({"entries": [101]}, 1, 101)


def test_very_large_flattenings_are_not_counted() -> None:
    """C(n + r - 1, r) for a thousand variables and a degree of a million is never computed."""
    for n, r in ((1000, 10**6), (2, 10**6), (10**5, 2)):
        text = lines_of(f"weight a [1,{n}]", "weight b [1,1]", f"input x [{n}]", "einsum ab,b->a %0 %2", f"power {r} %3",
                        "einsum ab,b->a %1 %4")  # fmt: skip
        upper = {"kind": "flattening", "prime": 101, "weights": POINT, "flattening": ["catalecticant", 1]}
        began = time.process_time()
        with pytest.raises(checker.Unknown):
            checker.check_upper(checker.read_program(text), upper)
        assert time.process_time() - began < 5


FORM = M.mlp_text([2, 2, 1], 3)
TORUS = {"group": "torus", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -3]}}


@pytest.mark.parametrize(
    "changes",
    [
        {"cut": 0}, {"cut": 2}, {"cut": 5}, {"cut": True}, {"cut": -1}, {"samples": 0}, {"samples": 1.0}, {"fields": None},
        {"second": {"kind": "hypersurface"}}, {"second": {"kind": "virtual"}}, {"first": {"kind": "layers"}},
        {"groups": [{**TORUS, "axes": {"W1": [1, 0], "W2": [0, -2]}}]}, {"groups": [{**TORUS, "axes": {"W1": [1, 0]}}]},
        {"fields": [[[0, 1, []]]]}, {"fields": [[[0, 1, [[0, 1]]]]]}, {"first": {"kind": "parameters", "x": 1}},
        {"second": {"kind": "hypersurface", "degree": 1}}, {"first": None}, {"weights": {"entries": [0] * 5}},
    ],
)  # fmt: skip
def test_compositions_that_leave_something_out(changes: dict[str, Any]) -> None:
    """Cuts at weights, inputs and outputs, symmetries of a part, bounds that need a spec."""
    upper = cut_at(3, {"kind": "coordinates"}, PARAMETERS, groups=[TORUS])
    program = checker.read_program(FORM)
    assert checker.check_upper(program, upper) == M.generic_rank(FORM) == 4  # 4 + 2 - 2 of 4 coefficients
    with pytest.raises((checker.Rejected, TypeError, AttributeError)):
        checker.check_upper(program, {**upper, **changes})


@pytest.mark.parametrize(
    "lines",
    [
        ["weight V [2,2]", "weight W [2,2]", "input x [2]", "einsum ab,b->a %1 %2", "slice 0:2:1,0:2:1 %0",
         "einsum ab,b->a %4 %3"],
        ["weight V [2,2]", "weight W [2,2]", "input x [2]", "einsum ab,b->a %0 %2", "einsum ab,b->a %0 %3"],
        ["weight V [2,2]", "weight W [2,2]", "input x [2]", "einsum ab,b->a %1 %2", "einsum ab,a->b %0 %3"],
        ["weight V [2,2]", "weight W [2,2]", "input x [2]", "einsum ab,b->a %1 %2", "einsum ab,b->a %0 %3", "scale 1 %4"],
        ["weight V [2,2]", "weight W [2,2]", "input x [2]", "einsum ab,b->a %1 %2", "multiply %0 %3"],
        ["weight W [2,2]", "input V [2,2]", "einsum ab,bc->ac %1 %0"],
    ],
)  # fmt: skip
def test_last_layers_that_are_none(lines: list[str]) -> None:
    """V is sliced, used twice, transposed, or an input; or something comes after it."""
    with pytest.raises(checker.Rejected, match=r"not V Z|not a weight"):
        checker.last_layer(checker.read_program(lines_of(*lines)), "V")


def test_more_tokens_than_rows_are_not_independent() -> None:
    document = certificate("wide")
    document["lower"]["tokens"] = list(range(4))
    rejected(document, "more tokens than rows")


@pytest.mark.parametrize(
    "change",
    [
        {"analysis": "Dimension"}, {"analysis": "dimension "}, {"analysis": "fiber"}, {"certainty": "certain"},
        {"image_dim": 5.0}, {"image_dim": True}, {"lower_bound": 4}, {"upper_bound": 6}, {"parameters": 9},
        {"generic_fiber_dim": 4},
        {"model": "lightning(d=2,dp=1,a=2,t=2) "}, {"model": "lightning(d=2,dp=1,a=2,t=2)\u200b"}, {"model": None},
    ],
)  # fmt: skip
def test_records_that_contradict_their_certificate(change: dict[str, Any]) -> None:
    own = certificate("lightning")
    record = {"analysis": "dimension", "model": own["spec"], "image_dim": 5, "certificate": own}
    assert outcome(record)[0] == 0
    rejected({**record, **change})


def test_records_of_points_say_no_more_than_the_weights() -> None:
    """Another weight, a field, or a description beside the weights; a point that is not named; a field that is not QQ."""
    own = certificate("same")
    circuit = checker.read_program(own["program"])
    given = [checker_families.arrays(circuit, list(map(str, ws))) for ws in own["statement"]["weights"]]
    first, second = ({"kind": "weights", "weights": each} for each in given)
    record = {
        "analysis": "same",
        "model": own["spec"],
        "verdict": "same",
        "first": first,
        "second": second,
        "certificate": own,
    }
    assert outcome(record)[1].endswith("Not covered by the certificate: analysis.")
    more = {**first, "detail": "rank_a=1"}
    assert outcome({**record, "first": more})[1].endswith("analysis, first but for the weights.")
    rejected({**record, "first": {"weights": given[0] | {"B": ["1"]}}})
    rejected({**record, "first": {**first, "kind": "over the field with 49 elements"}})
    rejected({**record, "verdict": "different"})
    changed = certificate("different")
    pair = [checker_families.arrays(circuit, list(map(str, ws))) for ws in changed["statement"]["weights"]]
    other = {**record, "verdict": "different", "first": {"weights": pair[0]}, "second": {"weights": pair[1]}}
    assert outcome({**other, "certificate": changed})[0] == 0
    rejected({**other, "certificate": changed, "verdict": "same"})
    rejected({**other, "certificate": changed, "second": {"weights": pair[0]}})
    rejected(
        {**changed, "statement": {**changed["statement"], "weights": own["statement"]["weights"]}},
        "one output",
    )
    reshaped = given[0] | {"V": [x for row in given[0]["V"] for x in row]}
    rejected({**record, "first": {**first, "weights": reshaped}}, "weights of another shape")
    member = member_record("inside matrix")
    nowhere = {key: value for key, value in member.items() if key != "point"} | {"coordinate_count": 4}
    for changed in (nowhere, {**member, "field": "F_7"}):
        assert " closure" in outcome(changed)[1].rpartition("Not covered")[2]
    rejected(closure_record(degree_bound=6, generators={"4": 1, "04": 2}), "is not written like this")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("lower", "prime"), 101.0), (("lower", "prime"), "101"), (("lower", "weights"), {"entries": [True] * 10}),
        (("lower", "weights", "entries", 0), 1.0), (("lower", "weights"), {"seed": True, "stream": 0, "fixed": []}),
        (("lower", "weights"), {"seed": 0, "stream": 0, "fixed": [[0, []]]}),
        (("lower", "weights"), {"seed": 0, "stream": 0, "fixed": [[4, [1]], [2, [1]]]}),
        (("lower", "weights"), {"entries": [1] * 10, "seed": 0}), (("lower", "rows"), {}), (("lower", "columns"), "01234"),
        (("upper", "groups", 0, "size"), True), (("upper", "\uff4bind"), "symmetries"), (("upper", "Kind"), "symmetries"),
        (("lower", "kind"), "minor\u0000"), (("version",), 2.0), (("version",), True), (("spec",), "\u2113ightning(d=2)"),
        (("spec",), " lightning(d=2,dp=1,a=2,t=2)"), (("spec",), "lightning\u00a0(d=2,dp=1,a=2,t=2)"),
        (("program",), ["m2bridge program 1"]), (("statement", "dimension"), 5.0), (("statement", "dimension"), -5),
    ],
)  # fmt: skip
def test_values_in_another_dress(path: tuple[Any, ...], value: Any) -> None:
    """Floats, booleans, letters that look alike: none of these is verified as what it looks like."""
    document = certificate("lightning")
    target: Any = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    code, said = outcome(document)
    assert code != 0 or "is not supported by this checker" in said


@pytest.mark.parametrize(
    ("lines", "n"),
    [
        (["weight A [3]", "input x [2]", "einsum a,b->ba %0 %1"], 3),
        (["weight A [3]", "input x [2]", "einsum a,b-> %0 %1"], 1), (["weight A [1,3]", "weight B [3,1]", "multiply %0 %1"], 5),
        (["weight A [1,3]", "weight B [2,1]", "add %0 %1"], 4), (["weight A [4]", "slice 3:2:-3 %0"], 2),
        (["weight A [2,3]", "slice 1:2:-1,0:1:1 %0"], 2), (["weight A [1]", "gather [3] 0,0,0 %0"], 1),
        (["weight A [2]", "einsum a->a %0", "einsum a,a->a %1 %0"], 2), (["weight A [2,1]", "einsum ab,cb->ac %0 %0"], 2),
        (["weight A [1,1,1]", "input x [1]", "multiply %0 %1"], 1), (["weight A [2]", "scale 0 %0"], 0),
        (["weight A [2]", "constant [2] 0 7", "multiply %0 %1"], 1), (["weight A [2]", "concatenate 0 %0 %0 %0"], 2),
        (["weight A [3]", "einsum a-> %0", "input x [1]"], -1),
    ],
)  # fmt: skip
def test_odd_shapes_have_the_dimension_of_another_program(lines: list[str], n: int) -> None:
    """Empty terms, axes of length one, repeated and reversed entries: n is counted by hand, and found by dual numbers."""
    text = lines_of(*lines)
    if n < 0:
        with pytest.raises(checker.Rejected):
            checker.read_program(text)
        return
    assert M.generic_rank(text) == n
    lower, _ = M.minor(text)
    program = checker.read_program(text)
    assert checker.check_lower(program, lower) == n
    for upper in (PARAMETERS, {"kind": "coordinates"}):
        assert checker.check_upper(program, upper) >= n
    code, _ = outcome(M.document(text, None, n + 1, lower, PARAMETERS))
    assert code == 7


def test_certificates_of_other_networks_do_not_join() -> None:
    """Two networks of dimensions 5 and 3 in one record without a model, and one with a closure of another."""
    own, other = certificate("lightning"), certificate("linear")
    assert other["statement"]["dimension"] != 5
    rejected({"analysis": "dimension", "image_dim": 5, "certificate": [own, other]})
    rejected(
        {
            "analysis": "dimension",
            "image_dim": 5,
            "model": own["spec"],
            "certificate": [own, certificate("closure")],
        }
    )


def test_an_equation_that_vanishes_modulo_the_prime_is_none() -> None:
    document = certificate("equations")
    document["upper"]["equations"] = [[[document["upper"]["prime"], [[0, 1]]]]]
    rejected(document, "does not vanish identically")
    arcs = certificate("singular matrix")
    arcs["argument"]["prime"] = 2
    arcs["argument"]["arcs"] = [[[2 * c for c in path] for path in arc] for arc in arcs["argument"]["arcs"]]
    rejected(arcs, "span 0 dimensions")


# -- hostile documents ------------------------------------------------------------------------------------


def _nested(depth: int) -> str:
    return '{"certificate": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 7), ("null", 7), ("3", 7), ('"x"', 7), ("[]", 7), ("{", 7), ("NaN", 7), ('{"certificate": NaN}', 7),
        ("\ufeff{}", 7),
        ('{"certificate": {}, "certificate": null}', 7), ('{"a": {"b": 1, "b": 1}}', 7), (_nested(10**5), 7), ("[" * 10**6, 7),
        ('{"image_dim": ' + "9" * 10**6 + "}", 7), ('{"certificate": 5}', 7), ('{"certificate": {}}', 8),
        ('{"certificate": null}', 8),
        ('{"format": 1, "version": 2}', 7), ('{"format": "m2bridge certificate", "version": 3}', 8), ('{"seconds": 1e999}', 8),
        ('{"\\u001b[31m": "\\ud800", "certificate": {"version": "\\u001b]0;x\\u0007"}}', 8),
    ],
)  # fmt: skip
def test_hostile_texts(text: str, code: int) -> None:
    began = time.process_time()
    found, said = checker.verify(text)
    assert found == code, said
    assert time.process_time() - began < 5
    assert all(" " <= c <= "~" for line in said for c in line)


@pytest.mark.parametrize(
    "lines",
    [
        ["weight W [2147483649]"], ["weight W [99999999999]"], ["weight W [0]"], ["weight W [02]"],
        ["weight W [2]", "power 0 %0"],
        ["weight W [2]", "power 1 %0"], ["weight W [2]", "power 1000001 %0"], ["weight W [2]", "add %0 %1"],
        ["weight W [2]", "add %0 %0 "],
        ["weight W [2]", "scale 2/4 %0"], ["weight W [2]", "scale 1/1 %0"], ["weight W [2]", "scale +1 %0"],
        ["weight W [2]", "scale -0 %0"],
        ["weight W [2]", "scale 1/0 %0"], ["weight W [2]", "scale 0/3 %0"], ["weight W [2]", "einsum b->b %0"],
        ["weight W [2]", "einsum aa->a %0"],
        ["weight W [2,2]", "einsum ab->c %0"], ["weight W [2,2]", "einsum ab->aa %0"], ["weight W [2]", "slice 0:3:1 %0"],
        ["weight W [2]", "slice 0:1:2 %0"], ["weight W [2]", "slice 1:2:1 %0"], ["weight W [2]", "slice 0:0:1 %0"],
        ["weight W [2]", "slice 2:2:-1 %0"],
        ["weight W [2]", "gather [1] 2 %0"],
        ["weight W [2]", "gather [2] 0 %0"], ["weight W [2]", "reshape [3] %0"], ["weight W [2]", "concatenate 0 %0"],
        ["weight W [2]", "concatenate 1 %0 %0"], ["weight W [1,2]", "weight V [1,3]", "concatenate 0 %0 %1"],
        ["weight W [2,1]", "weight V [3,1]", "concatenate 1 %0 %1"],
        ["weight W [2]", "softmax 1 %0"], ["weight W [2]", "constant [2] 1"], ["weight W [2]", "constant [1]"],
        ["weight W [2]", "constant [1] +1"], ["weight W [2]", "constant [1] 1_0"],
        ["weight W [2]", "constant [1] 01"], ["weight W [2]", "constant [1] 2/4"], ["input x [2]"],
        ["input x [2]", "weight W [2]"], ["weight W [2]", "weight W [2]"], ["weight W [2]", "negate %0"],
        ["weight \x1b[31m [2]"],
        ["weight W [2]", "add %0 %00"], ["weight W [2]", "input W [2]"], ["weight W [2]", "power 2 %0", "weight V [2]"],
        ["weight W [" + ",".join(["1"] * 21) + "]"], ["weight W [3]", "weight V [2]", "add %0 %1"],
    ],
)  # fmt: skip
def test_programs_are_read_strictly(lines: list[str]) -> None:
    """The producer's parser refuses the same."""
    text = sum_of(*lines)
    with pytest.raises((checker.Rejected, checker.Unknown)):
        checker.read_program(text)
    with pytest.raises(fuzz.ProgramError):
        fuzz.parse_program(text)
    assert outcome({**certificate("lightning"), "program": text})[0] in (7, 8)


@pytest.mark.parametrize(
    "lines",
    [
        ["weight W [3000,3000]"],
        ["weight W [100,100]", "einsum ab,cd->abcd %0 %0"],
        [
            "weight W [2,1]",
            "input x [1,1000]",
            *["multiply %0 %1"],
            *[f"multiply %{k} %{k}" for k in range(2, 200)],
        ],
        ["weight W [1]", *[f"power 1000000 %{k}" for k in range(500)]],
        [
            "weight W [1]",
            "constant [1] " + "9" * 3000,
            "multiply %0 %1",
            *[f"multiply %{k} %{k}" for k in range(2, 100)],
        ],
        ["weight W [9]", "einsum a-> %0", *[f"power 9 %{k}" for k in range(1, 9)]],
    ],
)
def test_programs_that_are_too_large_are_answered_in_seconds(lines: list[str]) -> None:
    text = sum_of(*lines)
    moving = {"kind": "symmetry", "groups": [], "fields": [[[0, 0, 1]]]}
    began = time.process_time()
    for document in (
        {**certificate("lightning"), "program": text, "spec": None, "upper": {"kind": "coordinates"}},
        {**certificate("closure"), "program": text, "spec": None},
        {**certificate("same"), "program": text, "spec": None, "statement": {"kind": "same function", "weights": [[1], [2]]}},
        {**certificate("symmetry"), "program": text, "spec": None, "statement": moving},
        {**certificate("softmax"), "program": text, "spec": None},
    ):  # fmt: skip
        assert outcome(document)[0] in (7, 8)
    assert time.process_time() - began < 30


def of_symmetries(text: str, groups: Any, fields: Any) -> dict[str, Any]:
    return M._document(text, {"kind": "symmetry", "groups": groups, "fields": fields}, None, None)


def of_dimension(text: str, upper: Any = PARAMETERS, spec: str | None = None, **lower: Any) -> dict[str, Any]:
    return M.document(text, spec, len(lower.get("rows", [0])), {**by_minor([[0, 0]], [0]), **lower}, upper)


def worst_documents() -> dict[str, Any]:
    """Short documents that take minutes, hours or all memory where their work is not counted before it is done."""
    square, wide = lines_of("weight W [300,300]", "einsum ab,ab-> %0 %0", "scale 0 %1"), {"inputs": POINT}
    layers = lines_of("weight W [40]", *(f"multiply %{k} %{k // 2}" for k in range(290)), "exp %290")
    test = {"seed": 1, "prime": 101, "weights": 10**5, "inputs": 10**5}
    exponentials = of_dimension(
        lines_of("weight W [999]", "exp %0"), exponentials={"seed": 1, "relations": [], "test": test}
    )
    ones = lines_of("weight W [1]", "constant [500] " + " ".join(["1"] * 500))
    products = [[[1, [[i, 1] for i in range(500)]], [-1, []]]] * 20
    zeros = [[[1, [[0, a], [1, b]]] for a in range(1, 150) for b in range(1, 150)]]
    attention = [f"weight {name}1 [1,1500]" for name in "QKV"]
    perceptron = [
        "weight A [9999,20]", "weight B [1,9999]", "input x [20]", "einsum ab,b->a %0 %2", "power 3 %3", "einsum ab,b->a %1 %4",
    ]  # fmt: skip
    flat = {"prime": 101, "weights": POINT}
    still = of_symmetries(lines_of("weight W [1]", "scale 0 %0"), [], [[[0, 1, []]]])
    fractions = [f"1/{10**80 + 2 * k + 1}" for k in range(40)]
    return {
        "contractions": of_dimension(lines_of("weight W [999,999]", *["einsum ab,ab-> %0 %0"] * 2000)),
        "outputs": of_dimension(
            lines_of("weight W [99999]", tail="".join(f"output y{k} %0\n" for k in range(9999)))
        ),
        "concatenations": of_dimension(lines_of("weight W [1]", *["concatenate 0" + " %0" * 999] * 200)),
        "a large minor": of_dimension(
            lines_of("weight W [3000]"), rows=[[0, k] for k in range(3000)], columns=list(range(3000))
        ),
        "large constants": of_dimension(
            lines_of("weight W [9999]", *(f"scale {'7' * 3990} %{k}" for k in range(30)), "einsum a-> %30"),
        ),
        "samples": of_dimension(
            lines_of("weight W [200]", "input x [40]", "einsum a,b->ab %0 %1"), samples=1000, **wide,
            rows=[[k, 37 * k] for k in range(200)], columns=list(range(200)),
        ),
        "exponentials": exponentials,
        "degrees": of_dimension(
            lines_of("weight W [99]", "input x [99]", "add %0 %1", "power 9998 %2"), {"kind": "coordinates"}, **wide
        ),
        "a torus": of_symmetries(square, [{"group": "torus", "size": 300, "axes": {"W": [1, -1]}}], []),
        "many axes": of_symmetries(
            lines_of("weight W [" + "1," * 18 + "100000]"),
            [{"group": "torus", "size": 1, "axes": {"W": [1] * 18 + [0]}}] * 200, [],
        ),
        "many tries": of_symmetries(layers, [], [[[0, 1, [[1, 1]]]]] * 50),
        "sums of fractions": M._document(
            lines_of("weight W [40]", "input x [1]", "einsum a-> %0", "power 30 %2", "multiply %3 %1"),
            {"kind": "same function", "weights": [fractions, [2] * 40]}, None, None,
        ),
        "long monomials": of_dimension(ones, {"kind": "equations", **flat, "equations": products}, rows=[], columns=[]),
        "powers of zero": of_dimension(
            lines_of("weight W [1]", "scale 0 %0", "concatenate 0 %1 %1"), {"kind": "equations", **flat, "equations": zeros},
            rows=[], columns=[],
        ),
        "gradings": M._document(
            lines_of("weight W [12]"), {"kind": "closure", "equations": [], "degree": 4},
            {"prime": 101, "gradings": [[1] * 12] * 2000}, None,
        ),
        "a definition": of_dimension(
            lines_of(*attention, "input X [1500,1500]", "einsum ab,bc->ac %2 %3"), {"kind": "virtual"},
            "deep-lightning(d=[1500,1],a=[1],t=1500)", **wide,
        ),
        "a large matrix": of_dimension(
            lines_of(*(line.replace("1500", "40000") for line in attention), "input X [40000,1]", "einsum ab,bc->ac %2 %3"),
            {"kind": "virtual"}, "deep-lightning(d=[40000,1],a=[1],t=1)", **wide,
        ),
        "a polynomial": of_dimension(
            lines_of("weight w [1]", "scale 200000 %0"), PARAMETERS, "map:x->" + "+".join(["x"] * 200000)
        ),
        "a flattening": of_dimension(
            lines_of(*perceptron), {"kind": "flattening", "flattening": ["catalecticant", 1], **flat}, **wide
        ),
        "arcs": M._document(
            lines_of("weight W [3]", "input x [999]", "einsum a-> %0", "multiply %2 %1"),
            {"kind": "singular", "weights": [0] * 3},
            {"prime": 101, "upper": PARAMETERS, "arcs": [[[0, 1], [0], [0]]] * 500}, None,
        ),
        "a record": {"analysis": "symmetries", "fields": [{"coefficients": []}] * 9999, "certificate": [still] * 999},
        "tokens": of_dimension(
            lines_of("weight W [999]", "weight V [999,999]", "input x [999]", "einsum ab,b->a %1 %2"), **wide,
            kind="last layer", layer="V", tokens=list(range(999)), samples=999, columns=list(range(999)),
            rows=[[k, 1000 + k] for k in range(999)],
        ),
    }  # fmt: skip


QUICK_HOSTILE = {"outputs", "a torus", "degrees", "long monomials"}


@pytest.mark.parametrize("name", slow_except(QUICK_HOSTILE, worst_documents()))
def test_hostile_documents_end_within_the_limit(name: str) -> None:
    """Whatever the outcome: a second of processor time, the interpreter's start, and at most five seconds in one operation."""
    text = json.dumps(worst_documents()[name])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-I", checker.__file__, "--seconds", "1", "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 5, 7, 8), done.stderr
    assert "Error of the checker" not in done.stdout
    assert (done.returncode == 5) == done.stdout.startswith("Stopped: the check did not end within 1 seconds")
    assert (done.returncode == 5) == done.stdout.endswith("; allow more with --seconds 10.\n")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 7


def test_an_error_of_the_checker_is_not_a_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    document = certificate("lightning")

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(checker, "read_program", broken)
    assert outcome(document)[0] == 1
    assert outcome(document)[1].startswith("Error of the checker (ZeroDivisionError)")


def test_the_limit_does_not_replace_an_outcome(tmp_path: Path) -> None:
    """The limit may be reached while the interpreter ends, when the outcome is printed already."""
    path = tmp_path / "certificate.json"
    path.write_text(POOL["lightning"])
    program = """
import os, signal, sys
from m2bridge import checker, checker_families
class Late:
    kill, us, number = os.kill, os.getpid(), int(signal.SIGXCPU)
    def __del__(self):
        type(self).kill(self.us, self.number)
late = Late()
sys.exit(checker.main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", program, "--seconds", "50", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Verified: ")
    assert "Stopped" not in done.stdout


def test_a_file_is_checked_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(worst_documents()["a torus"]))
    code, said = verify_file(str(path), seconds=1)
    assert (code, len(said)) == (5, 1)


def test_weights_satisfy_no_equations_and_arrays_are_added_up() -> None:
    head = "m2bridge program 1\n%0 = weight w [2]\n%1 = power 2 %0\n"
    checker.read_program(head + "output y %1\n")
    for tail in ("vanishing %0\noutput y %1\n", "output y %1\nvanishing %0\n"):
        with pytest.raises(checker.Rejected):
            checker.read_program(head + tail)
    large = [f"weight W{k} [{2**20}]" for k in range(5)]
    assert checker.read_program(sum_of(*large[:4])).parameters == 2**22
    with pytest.raises(checker.Unknown):
        checker.read_program(sum_of(*large))


@pytest.mark.parametrize(
    "text",
    [
        "%1 = weight w [2]\noutput y %0\n", "%0 weight w [2]\noutput y %0\n", "%0 = \noutput y %0\n", "output y %0\n",
        "%0 = weight w [2]\noutput y %1\n", "%0 = weight w [2]\n", "%0 = weight w [2]\noutput y %0",
        "%0 = weight w [2]\noutput %0\n",
        "%0 = weight w [2]\noutput y %0\noutput y %0\n", "%0 = weight w [2]\noutput y %0\n%1 = power 2 %0\n",
        "%0 = weight w [2]\n%1 = constant [0]\noutput y %0\n", "%0 = weight w [2]\n%1 = constant 1 1\noutput y %0\n",
        "%0 = weight w [2]\n%1 = constant [1] 1 2\noutput y %0\n", "%0 = weight w [2]\n\noutput y %0\n",
        "%0 = weight w [2]\n%1 = exp %0 %0\noutput y %1\n", "%0 = weight w [2]\n%1 = reciprocal\noutput y %0\n",
    ],
)  # fmt: skip
def test_lines_of_programs_are_read_strictly(text: str) -> None:
    for head, refused in (
        ("m2bridge program 1\n", text),
        ("m2bridge program 2\n", "%0 = weight w [2]\noutput y %0\n"),
    ):
        with pytest.raises(checker.Rejected):
            checker.read_program(head + refused)
        with pytest.raises(fuzz.ProgramError):
            fuzz.parse_program(head + refused)


def test_a_very_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.write(b"[")
        file.seek(100 * 2**20)
        file.write(b"]")
    began = time.process_time()
    assert verify_file(str(path))[0] == 8
    path.write_text('{"a": [' + "1," * (2 * 2**20) + "1]}")
    assert verify_file(str(path))[0] == 8  # 4 MB are read; there is no certificate
    path.write_bytes(b"\xff\xfe{}")
    assert verify_file(str(path))[0] == 7
    assert verify_file(str(tmp_path))[0] == 8
    assert time.process_time() - began < 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.text() | JSON.map(lambda value: json.dumps(value, allow_nan=True)))
def test_any_text_has_an_outcome(text: str) -> None:
    code, said = checker.verify(text)
    assert code in (7, 8)
    assert all(" " <= c <= "~" for line in said for c in line)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_value_in_any_place_has_an_outcome(data: st.DataObject) -> None:
    """Whatever stands in one place of a certificate: never an exception, and what is accepted is true."""
    name = data.draw(st.sampled_from(sorted(POOL)))
    document = certificate(name)
    path = data.draw(st.sampled_from([p for p in fuzz.leaves(document) if p]))
    target: Any = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = data.draw(JSON)
    code, said = checker.verify(json.dumps(document))
    assert code in (0, 7, 8)
    if code == 0:
        assert fuzz.is_true(document, said) is not False


def test_the_fuzzer_finds_no_accepted_falsehood() -> None:
    counts = fuzz.fuzz(600, 5, most=400)
    assert counts["accepted and compared"] > 20


@pytest.mark.slow
def test_the_fuzzer_for_two_minutes() -> None:
    fuzz.fuzz(120, 1)


# -- further families -------------------------------------------------------------------------------------

FURTHER = [
    ("attention(d=[2,2],a=[1],t=2,causal=true)", "deep-lightning(d=[2,2],a=[1],t=2)"),
    ("attention(d=[2,2],a=[1],t=2,causal=true,softmax=true)", "softmax(d=[2,2],a=[1],t=2)"),
    ("attention(d=[2,2,1],a=[1,2],t=3,heads=[2,1],tied=true)", "attention(d=[2,2,1],a=[1,2],t=3,heads=[2,1],r=2,tied=true)"),
    ("attention(d=[2,2],a=[2],t=2,heads=2,skip=true,causal=true)", "deep-lightning(d=[2,2],a=[2],t=2,heads=2,skip=true)"),
    ("attention(d=[2,1],a=[1],t=2,positions=true)", "attention(d=[2,1],a=[1],t=2,causal=true,positions=true)"),
    ("attention(d=[2,2],a=[1],t=2,r=2)", "attention(d=[2,2],a=[1],t=2,r=3)"),
    ("transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1)", "transformer(d=2,a=1,t=2,hidden=2,r=3,layers=1)"),
    (
        "transformer(d=2,a=1,t=2,heads=2,hidden=1,r=2,layers=2,causal=true,positions=true)",
        "transformer(d=2,a=1,t=2,heads=2,hidden=1,r=2,layers=2,positions=true)",
    ),
    ("mlp(widths=[2,2,2,1],r=[2,3])", "mlp(widths=[2,2,2,1],r=[3,2])"),
    ("mlp(widths=[2,2,1],r=[2],bias=true)", "mlp(widths=[2,2,1],r=[3],bias=true)"),
    ("cp(sizes=[2,2,3],rank=2)", "cp(sizes=[2,3,2],rank=2)"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "other"), FURTHER)
def test_definitions_of_further_families(spec: str, other: str) -> None:
    own, another = (checker.read_program(parse_spec(each).program.text) for each in (spec, other))
    assert checker_families.identify(own, spec) is not None
    with pytest.raises(checker.Rejected, match=r"other (weights|inputs) than its spec|not that of its spec"):
        checker_families.identify(another, spec)


@pytest.mark.parametrize(
    ("spec", "other"),
    [FURTHER[0], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in FURTHER[1:-2]), *FURTHER[-2:]],
)
def test_records_of_further_families(spec: str, other: str) -> None:
    own, forged = (
        json.loads(json.dumps(to_document(dimension(each, engine=False)))) for each in (spec, other)
    )
    if own["certificate"] is not None:
        code, said = outcome(own)
        assert (code, f"The program is that of {spec}" in said) == (0, True), said
    if forged["certificate"] is not None:
        forged["model"] = forged["certificate"]["spec"] = spec
        rejected(forged, "its spec")


def test_tensors_with_another_entry() -> None:
    spec = "cp(sizes=[2,2,2],rank=2)"
    text = parse_spec(spec).program.text
    lines = text.splitlines()
    k = next(n for n, line in enumerate(lines) if line.startswith("output"))
    swapped = [*lines[:k], f"%{k - 1} = gather [2,2,2] 0,1,2,3,4,5,7,6 %{k - 2}", f"output T %{k - 1}", ""]
    with pytest.raises(checker.Rejected, match="not that of its spec"):
        checker_families.identify(checker.read_program("\n".join(swapped)), spec)


@pytest.mark.parametrize(
    "spec",
    [
        "attention(d=[2,2],a=[1],t=2,tied=true,causal=true)", "attention(d=[2,2],a=[1,1],t=2,causal=true)",
        "attention(d=[2,2],a=[1],t=2,r=2,softmax=true)", "attention(d=[2,2],a=[1],t=2,causal=false)",
        "attention(d=[2,3],a=[1],t=2,skip=true,causal=true)", "attention (d=[2,2],a=[1],t=2,causal=true)",
        "transformer(d=2,t=2,hidden=2,r=2,layers=1)", "transformer(d=2,a=1,t=2,hidden=2,r=2,layers=99999)",
        "mlp(widths=[2,2,2,1],r=[2,2])", "mlp(widths=[2,2,1],r=[2,3])", "mlp(widths=[2,2,1],r=2,bias=true)",
        "cp(sizes=[2,2],rank=2,rank=3)", "cp:sizes=2-2,rank=2",
        " cp(sizes=[2,2],rank=2)",
        "cp(sizes=[99999,99999,99999,99999],rank=99999)",
    ],
)  # fmt: skip
def test_further_specs_are_read_strictly(spec: str) -> None:
    code, said = outcome({**certificate("mlp"), "spec": spec})
    assert code in (7, 8), said
    assert "Verified" not in said


def test_a_model_that_is_not_known_is_not_covered() -> None:
    record = json.loads(json.dumps(to_document(dimension("cp(sizes=[2,2,2],rank=1)", engine=False))))
    _, said = outcome(record)
    assert "The program is that of cp(sizes=[2,2,2],rank=1)" in said
    assert "Not covered by the certificate: model" not in said
    record["model"] = record["certificate"]["spec"] = "their-network(size=3)"
    code, said = outcome(record)
    assert code == 9  # the dimension of the program is verified, that the program is this network is not
    assert "Verified: the dimension is 4. Not covered: model. The record was altered" in said
    assert 'not supported by this checker, and nothing is verified about it: "their-network(size=3)"' in said
    assert "model" in said.partition("Not covered by the certificate: ")[2].split(", ")


def test_a_program_has_one_exponent_for_each_hidden_layer() -> None:
    circuit = checker.read_program(parse_spec("mlp(widths=[2,2,1],r=2)").program.text)
    with pytest.raises(checker.Rejected, match="one for each hidden layer"):
        checker_families.identify(circuit, "mlp(widths=[2,2,1],r=[2,3])")


@pytest.mark.parametrize("kind", ["sl", "GL", "", None, ["gl"]])
def test_groups_are_of_a_kind_that_is_known(kind: Any) -> None:
    circuit = checker.read_program(parse_spec("linear(widths=[2,2,2])").program.text)
    group = {"group": kind, "size": 2, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    with pytest.raises(checker.Rejected, match="no kind that the format knows"):
        list(checker.group_fields(circuit, group))
