"""The point of a fiber: files of weights, strata, random points, primes; every refusal is one clear line."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.families import Lightning, parse_spec
from m2bridge.frontends import checkpoints
from m2bridge.papers.lightning_attention.comments import one_layer_orbit
from m2bridge.questions.fiber.coarser import coarsest
from m2bridge.questions.point import good_prime, other_primes, point_from_weights, random_point, stratum_point

LAYER = Lightning(d=2, dp=1, parametrization="attention")
DEEP = parse_spec("deep-lightning(d=[2,2,2],parametrization=virtual)")
GOOD = {"A": [[1, "2/3"], [0, 5]], "V": [[7, "-1/2"]]}
SCHEMA = json.loads(resources.files("m2bridge").joinpath("data/weights.schema.json").read_text())


def test_a_file_of_weights(tmp_path: Path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(GOOD))
    point = point_from_weights(LAYER, checkpoints.read(path, LAYER.parameters).weights)
    assert point.weights["A"][0, 1] == Fraction(2, 3)
    assert point.document(7)["weights"]["V"] == [["7", "-1/2"]]
    assert point.mod(7)["A"].values.tolist() == [[1, 3], [0, 5]]  # 2/3 = 2 * 5 modulo 7
    jsonschema.validate(GOOD, SCHEMA)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"A": [[1, 2]], "V": [[1, 1]]}, r"A .* 2 x 2.* 1 x 2"),
        ({"A": [[1, 2], [3]], "V": [[1, 1]]}, "lengths"),
        ({"A": [[1, 2], [3, 4]]}, r"missing .*V"),
        ({"A": [[1, 2], [3, 4]], "V": [[1, 1]], "W": []}, r"unexpected .*W"),
        ({"A": [[1, 2], [3, float("nan")]], "V": [[1, 1]]}, "nan"),
        ({"A": [[1, 2], [3, "0.5.1"]], "V": [[1, 1]]}, "'0.5.1'"),
        ({"A": [[1, 2], [3, "1/0"]], "V": [[1, 1]]}, "'1/0'"),
        ({"A": [[1, 2], [3, "x"]], "V": [[1, 1]]}, "'x'"),
        ({"A": [[1, 2], [3, True]], "V": [[1, 1]]}, "True"),
        ({"A": [[1, 2], [3, None]], "V": [[1, 1]]}, "None"),
    ],
)
def test_wrong_weights_are_refused_in_one_line(weights, message):
    with pytest.raises(InputError, match=message) as caught:
        point_from_weights(LAYER, weights)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([[1], [1, 2]], r"s .*\[1\]"),
        ([[1, 2], [1, 2]], r"s .*\[1, 2\]"),
        ([1], "1 numbers"),
        (np.array(3), r"missing .*s, t"),
    ],
)
def test_wrong_lists_of_variables_are_refused(listed, message):
    with pytest.raises(InputError, match=message):
        point_from_weights(parse_spec("map:s,t->s*t;s;t^2"), {"x": listed})


def test_the_schema_takes_what_is_read_and_nothing_else():
    for good in ({"A": [[0.5]]}, {"A": [["0.5"]]}, {"A": [["-1e-3"]]}, {"A": 0.5}):
        jsonschema.validate(good, SCHEMA)
    for bad in ({"A": [["1/0"]]}, {"A": [["0.5/2"]]}, {"A": [["x"]]}, {"A": {}}, {}, []):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"A": 1e999}'])
def test_files_that_are_no_weights(tmp_path: Path, text: str):
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(InputError):
        point_from_weights(LAYER, checkpoints.read(path, LAYER.parameters).weights)


def test_a_missing_file():
    with pytest.raises(InputError, match="no-such-weights"):
        checkpoints.read(Path("no-such-weights.json"), LAYER.parameters)


def test_a_rank_above_the_bound_is_refused():
    bounded = Lightning(d=2, dp=1, a=1, parametrization="attention")
    with pytest.raises(InputError, match=r"A .*rank 2"):
        point_from_weights(bounded, {"A": [[1, 0], [0, 1]], "V": [[1, 1]]})


@pytest.mark.parametrize("parametrization", ["attention", "weights"])
@pytest.mark.parametrize(("r", "s", "c"), [(0, 1, 0), (1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 2, 1), (3, 2, 2)])
def test_a_stratum_has_the_ranks_it_names(parametrization, r, s, c):
    model = Lightning(d=3, dp=2, parametrization=parametrization)
    orbit = one_layer_orbit(stratum_point(model, f"rank_a={r},rank_v={s},meet={c}").weights)
    assert (orbit.rank_a, orbit.rank_v, orbit.meet) == (r, s, c)


@pytest.mark.parametrize(
    "text",
    [
        "rank_a=3,rank_v=1",
        "rank_a=1,rank_v=2",
        "rank_a=2,rank_v=1,meet=0",
        "rank_a=1",
        "rank_b=1,rank_v=1",
        "rank_a=x,rank_v=1",
        "rank_a",
        "rank_a=1,rank_a=1,rank_v=1",
    ],
)
def test_strata_that_do_not_exist(text):
    with pytest.raises(InputError, match="--stratum"):
        stratum_point(LAYER, text)


def test_strata_of_virtual_weights():
    point = stratum_point(DEEP, "m1=skew,m2=rank1")
    M1, M2 = point.weights["M1"], point.weights["M2"]
    assert (M1 + M1.T == 0).all()
    assert M1.any()
    assert M2[0, 0] * M2[1, 1] == M2[0, 1] * M2[1, 0]
    for wrong in ("m3=skew", "m1=odd", "l=rank3", "rank_a=1"):
        with pytest.raises(InputError):
            stratum_point(DEEP, wrong)


def test_strata_of_other_models_are_refused():
    with pytest.raises(InputError, match="use --at"):
        stratum_point(parse_spec("mlp(widths=[2,2,2])"), "rank_a=1,rank_v=1")


def test_a_prime_at_which_an_entry_vanishes_is_replaced_with_a_note():
    point = point_from_weights(LAYER, {"A": [[32003, 1], [0, 1]], "V": [[1, 1]]})
    prime, note = good_prime(point, 32003)
    assert prime == 31991
    assert note is not None
    assert "A[1, 1] = 32003 vanishes" in note
    assert "31991" in note


def test_a_prime_in_a_denominator_or_that_lowers_a_rank_is_exchanged():
    fraction = point_from_weights(LAYER, {"A": [["1/101", 1], [0, 1]], "V": [[1, 1]]})
    assert "1/101" in (good_prime(fraction, 101)[1] or "")
    rank = point_from_weights(LAYER, {"A": [[1, 1], [1, 102]], "V": [[1, 1]]})
    prime, note = good_prime(rank, 101)
    assert prime > 101
    assert "rank" in (note or "")


def test_a_good_prime_is_kept():
    assert good_prime(point_from_weights(LAYER, GOOD), 32003) == (32003, None)
    assert other_primes(point_from_weights(LAYER, GOOD), 32003, 1) == [32749]


@pytest.mark.parametrize("p", [0, 1, 4, 97, 32761, 2**31 - 1])
def test_numbers_that_are_no_prime_of_the_engine(p):
    with pytest.raises(InputError, match="--prime"):
        good_prime(point_from_weights(LAYER, GOOD), p)


def test_random_points_are_small_integers_and_depend_on_the_seed():
    first, again, other = (random_point(DEEP, seed) for seed in (1, 1, 2))
    assert first.vector.tolist() == again.vector.tolist() != other.vector.tolist()
    assert all(x.denominator == 1 and 1 <= abs(x) <= 60 for x in first.vector)


def test_random_points_have_bounded_ranks():
    model = Lightning(d=3, dp=1, a=1, parametrization="attention")
    assert one_layer_orbit(random_point(model, 0).weights).rank_a == 1


def test_virtual_weights_compute_the_same_function():
    model = parse_spec("deep-lightning(d=[3,2,2],a=[2,2],t=2)")
    point = random_point(model, 3)
    step = coarsest(point)
    assert step is not None
    virtual = step.point
    X = np.array([[1, 2], [0, 3], [5, 1]], dtype=object)
    assert (model.forward(dict(point.weights), X) == virtual.model.forward(dict(virtual.weights), X)).all()


def test_a_map_takes_its_variables_by_name() -> None:
    umbrella = parse_spec("map:s,t->s;s*t;t^2")
    by_name = point_from_weights(umbrella, {"t": "1/2", "s": 3})
    assert by_name.weights["x"].tolist() == [3, Fraction(1, 2)]
    assert point_from_weights(umbrella, {"x": [3, "1/2"]}).weights["x"].tolist() == [3, Fraction(1, 2)]
    with pytest.raises(InputError, match=r"missing .*t; unexpected .*u; .* s, t"):
        point_from_weights(umbrella, {"s": 1, "u": 2})
    assert point_from_weights(umbrella, {"s": 1, "t": 0.5}).weights["x"].tolist() == [1, Fraction(1, 2)]
    with pytest.raises(InputError, match=r"t .*'x'"):
        point_from_weights(umbrella, {"x": [1, "x"]})
    with pytest.raises(InputError, match=r"3 numbers.* s, t"):
        point_from_weights(umbrella, {"x": [1, 2, 3]})
    assert "t = 32003" in (good_prime(point_from_weights(umbrella, {"s": 1, "t": 32003}), 32003)[1] or "")
    only = parse_spec("map:x->x^2")  # a variable may be called as the list is
    for value in ([3], np.array([3]), 3):
        assert point_from_weights(only, {"x": value}).weights["x"].tolist() == [3]
