"""Equations written for other systems, and ideals read from their texts: the same polynomials, nothing evaluated."""

from __future__ import annotations

import json

import pytest

from m2bridge.errors import ParseError
from m2bridge.frontends.ideals import read_ideal
from m2bridge.questions.closure import Equation
from m2bridge.questions.closure.formats import written

CONIC = Equation(degree=2, coefficients=(1, -3), monomials=((0, 2), (1, 1)))
LINE = Equation(degree=1, coefficients=(2, -1), monomials=((0,), (2,)))


@pytest.mark.parametrize("form", ["m2", "mrdi"])
@pytest.mark.parametrize("p", [0, 101])
def test_written_values_are_read_back(form: str, p: int) -> None:
    parsed = read_ideal(written([CONIC, LINE], 3, p, form))
    assert parsed.variables == ("z0", "z1", "z2")
    assert parsed.characteristic == p
    found = [{m: c % p if p else c for m, c in f.items()} for f in parsed.polynomials]
    expected = [{(1, 0, 1): 1, (0, 2, 0): -3}, {(1, 0, 0): 2, (0, 0, 1): -1}]
    assert found == [{m: c % p if p else c for m, c in f.items()} for f in expected]


@pytest.mark.parametrize(
    "text",
    [
        "ring R = 0, (x, y), dp;\nideal I = x^2 - y, x*y;",
        "ring R=QQ,(x,y),dp; // a ring\nideal J=x^2-y,\n  x*y;",
    ],
)
def test_singular_texts(text: str) -> None:
    parsed = read_ideal(text)
    assert (parsed.variables, parsed.characteristic) == (("x", "y"), 0)
    assert parsed.texts() == ("x^2-y", "x*y")


@pytest.mark.parametrize(
    ("field", "coefficient", "p"),
    [({"_type": "QQField"}, "-3", 0), ({"_type": "FiniteField", "data": "101"}, "98", 101)],
)
def test_an_ideal_of_oscar(field: object, coefficient: str, p: int) -> None:
    label = "c417ef57-0188-4dcb-9ec1-e2e9bdd27e2b"
    document = {
        "_ns": {"Oscar": ["https://github.com/oscar-system/Oscar.jl", "1.6.0"]},
        "_type": {"name": "MPolyIdeal", "params": label},
        "data": [[[["1", "0", "1"], "1"], [["0", "2", "0"], coefficient]]],
        "_refs": {
            label: {"_type": {"name": "MPolyRing", "params": field}, "data": {"symbols": ["z0", "z1", "z2"]}}
        },
    }
    parsed = read_ideal(json.dumps(document))
    assert (parsed.variables, parsed.characteristic) == (("z0", "z1", "z2"), p)
    assert [dict(f) for f in parsed.polynomials] == [{(1, 0, 1): 1, (0, 2, 0): int(coefficient)}]


GOOD = json.loads(written([CONIC], 3, 0, "mrdi"))


@pytest.mark.parametrize(
    "damage",
    [
        {"_type": {"name": "Matrix", "params": "x"}},
        {"_refs": {}},
        {"data": [[[["1", "0"], ["1", "1"]]]]},
        {"data": [[[["-1", "0", "0"], ["1", "1"]]]]},
        {"data": [[[["1", "0", "0"], ["1", "0"]]]]},
        {"data": [[[["1", "0", "0"], "system(1)"]]]},
        {"data": [[[["1", "0", "9999999"], ["1", "1"]]]]},
        {"data": 3},
    ],
)
def test_a_damaged_mrdi_file_is_a_parse_error(damage: dict[str, object]) -> None:
    with pytest.raises(ParseError, match=r"\.mrdi"):
        read_ideal(json.dumps(GOOD | damage))


@pytest.mark.parametrize(
    "text",
    [
        'ring R = 0, (x), dp; ideal I = system("sh", "ls");',
        "ring R = 0, (x(1..3)), dp; ideal I = x(1);",
        "ring R = 0, (x,y), dp; ideal I = x2y +* 1;",
    ],
)
def test_singular_that_is_no_list_of_polynomials_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read_ideal(text)
