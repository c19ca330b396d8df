"""Fibers with the real Macaulay2; and wrong algebra is caught, each mistake by a witness that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from m2bridge import records, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo, ProcessEngine
from m2bridge.engine.base import Outcome
from m2bridge.errors import InputError
from m2bridge.evidence import AGREEMENT_WORDS
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.questions.fiber import Fiber, fiber, in_reach
from m2bridge.questions.fiber.request import script_values
from m2bridge.questions.point import random_point, stratum_point
from m2bridge.schemas import schema

LAYER = "lightning(d=2,dp=1,parametrization=attention)"
VIRTUAL = "deep-lightning(d=[2,2,2],t=2,parametrization=virtual)"
VIRTUAL3 = "deep-lightning(d=[3,3,3],t=2,parametrization=virtual)"


@pytest.fixture
def command(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line on the session's Macaulay2; returns the exit code."""
    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", lambda **_: nullcontext(engine))
    return lambda *arguments: main(["fiber", *map(str, arguments)])


def ask(engine: Engine, spec: str, at: object = None, **options: object) -> Fiber:
    return fiber(parse_spec(spec), at=at, engine=engine, **options)  # type: ignore[arg-type]


def quantities(result: Fiber) -> set[str]:
    return {conflict.quantity for conflict in result.conflicts}


# -- the command ---------------------------------------------------------------------------------------------


def test_json_follows_the_schema_and_loads_back(command, capsys):
    assert command(LAYER, "--stratum", "rank_a=1,rank_v=1", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema("fiber"))
    assert document["fiber_dim"] == 1
    assert document["degree"] == 4
    assert [(c["dim"], c["degree"], c["reduced"]) for c in document["components"]] == [
        (1, 2, True),
        (1, 2, True),
    ]
    assert document["known_symmetry_dim"] == 1
    assert document["verdict"] == "finite-up-to-symmetry"
    assert document["certainty"] == "theorem"
    assert document["agreement"] is True
    assert document["at"]["weights"] == {"A": [["1", "0"], ["0", "0"]], "V": [["0", "1"]]}
    result = records.from_document(document)
    assert isinstance(result, Fiber)
    assert records.to_document(result) == document


def test_text_output(command, capsys):
    assert command(VIRTUAL.replace("t=2", "t=3"), "--stratum", "m1=skew") == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "finite-up-to-symmetry",
        "M_1 is skew: these are the same function",
        "it FAILS",
        "no second witness",  # of the verdict: components show it alone
    ):
        assert words in text


def test_weights_from_a_file(command, capsys, tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"A": [[1, "2/3"], [0, 5]], "V": [[7, "-1/2"]]}))
    assert command(LAYER, "--at", path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["at"]["kind"] == "weights"
    assert document["verdict"] == "identifiable-up-to-symmetry"


def test_a_prime_that_divides_an_entry_is_replaced_with_a_note(command, capsys, tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"A": [[32003, 2], [3, 5]], "V": [[7, 1]]}))
    assert command(LAYER, "--at", path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["at"]["prime"] == 31991
    assert any("vanishes" in note for note in document["notes"])
    assert document["verdict"] == "identifiable-up-to-symmetry"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LAYER, "--stratum", "rank_a=7,rank_v=1"), "rank_a"),
        ((LAYER, "--stratum", "rank_a=1,rank_v=1", "--at", "{}"), "name different points"),
        ((LAYER, "--at", "nowhere.json"), "nowhere.json"),
        ((LAYER, "--prime", "32004"), "--prime 32004"),
        (("lightning(d=2,dp=0)",), "dp"),
        ((LAYER, "--timeout", "soon"), "--timeout"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(command, capsys, arguments, message):
    assert command(*arguments) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""
    assert len(output.err.strip().splitlines()) == 1


# -- wrong algebra is caught ---------------------------------------------------------------------------------


def test_a_transposed_attention_matrix_is_caught(engine, damage):
    damage("attentionMatrix W * X;", "transpose attentionMatrix W * X;")
    result = ask(engine, LAYER)
    assert result.agreement is False
    assert "outputs at the point" in quantities(result)


def test_exchanged_layers_are_caught(engine, damage):
    damage("transpose X * W#i * X", "transpose X * W#(l-1-i) * X")
    result = ask(engine, VIRTUAL)
    assert result.agreement is False
    assert "outputs at the point" in quantities(result)


def test_a_dropped_equation_is_caught(engine, damage):
    damage(
        "gathered = independentPolynomials flatten apply(used, equationsAt);",
        "gathered = drop(independentPolynomials flatten apply(used, equationsAt), 4); inputs = take(inputs, used);",
    )
    assert "independent equations" in quantities(ask(engine, LAYER))


def test_a_dropped_multiplicity_is_caught(engine, damage):
    damage("I = ideal G;\nemit", "I = radical ideal G;\nemit")
    result = ask(engine, LAYER, "rank_a=1,rank_v=1,meet=1")
    assert "component 1 is reduced" in quantities(result)


def test_the_command_exits_3_when_witnesses_disagree(command, damage, capsys):
    damage("attentionMatrix W * X;", "transpose attentionMatrix W * X;")
    assert command(LAYER) == 3
    assert AGREEMENT_WORDS[False] in capsys.readouterr().err


def test_tampered_weights_are_caught(engine, monkeypatch):
    """The outputs are those of the point, the weights sent along are not."""

    def tampered(*arguments: object, **options: object) -> dict[str, object]:
        sent = script_values(*arguments, **options)  # type: ignore[arg-type]
        sent["knownPoints"][0][0] += 1
        return sent

    monkeypatch.setattr("m2bridge.questions.fiber.computed.script_values", tampered)
    assert "the point is in its fiber" in quantities(ask(engine, LAYER))


def test_weights_of_another_stratum_give_another_fiber(engine):
    """A fiber computed at (1,1,0) does not pass for one at (1,1,1): the second has one conic, twice."""
    wrong = stratum_point(parse_spec(LAYER), "rank_a=1,rank_v=1,meet=0")
    result = ask(engine, LAYER, wrong)
    right = ask(engine, LAYER, "rank_a=1,rank_v=1,meet=1")
    assert [c.reduced for c in result.components or ()] == [True, True]
    assert [c.reduced for c in right.components or ()] == [False]
    with pytest.raises(InputError, match="point"):
        ask(engine, VIRTUAL, wrong)


def test_overlooked_small_orbits_are_caught(engine, damage):
    """W_2 W_1 = 0 with one number each has three orbits, and two components."""
    at = {"W1": [[1]], "W2": [[0]]}
    assert ask(engine, "linear(widths=[1,1,1])", at).agreement is not False
    damage("not dependentFields(wholeFiber, moves)", "true")
    damaged = ask(engine, "linear(widths=[1,1,1])", at)
    assert damaged.agreement is False
    assert "orbits" in quantities(damaged)


# -- limits --------------------------------------------------------------------------------------------------


def test_a_limit_gives_what_was_found_and_exit_5(engine, monkeypatch, capsys):
    """A run that is cut off before the components still has its dimension; the verdict rests on what needs no run."""
    real = ProcessEngine.run if isinstance(engine, ProcessEngine) else type(engine).run

    class CutOff:
        info = engine.info

        def run(self, text, limits=None, listener=None):
            run = real(engine, text, limits, listener)
            kept = run.stdout[: run.stdout.index("@m2b-step components")]
            return replace(run, stdout=kept, outcome=Outcome.TIMED_OUT)

    result = fiber(parse_spec(VIRTUAL), engine=CutOff())  # type: ignore[arg-type]
    assert result.limit is not None
    assert result.fiber_dim == 2
    assert result.components is None
    assert (result.verdict, result.certainty.value) == ("identifiable-up-to-symmetry", "theorem")
    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", lambda **_: nullcontext(CutOff()))
    assert main(["fiber", VIRTUAL]) == 5
    assert "--timeout" in capsys.readouterr().err


def test_a_real_time_limit(engine_info: EngineInfo):
    with ProcessEngine(engine_info) as engine:
        result = ask(engine, "mlp(widths=[2,2,2],r=2)", limits=Limits(wall_seconds=0.05))
    assert result.limit is not None
    assert result.verdict == "open-orbit"
    assert result.components is None


# -- both engines, --script ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        (LAYER, "rank_a=1,rank_v=1,meet=1"),
        pytest.param(VIRTUAL3, None, marks=pytest.mark.slow),
        pytest.param("mlp(widths=[2,2,2])", None, marks=pytest.mark.slow),
    ],
)
def test_every_engine_gives_the_same_answer(engine_info: EngineInfo, engine: Engine, spec, at):
    with ProcessEngine(engine_info) as other:
        first, second = ask(engine, spec, at), ask(other, spec, at)
    assert first.agreement is second.agreement is not False
    assert first.components == second.components
    assert first.verdict == second.verdict


def test_the_script_from_the_command_line(capsys):
    assert main(["fiber", LAYER, "--script"]) == 0
    assert "knownPoints = {{" in capsys.readouterr().out


# -- other families ------------------------------------------------------------------------------------------


def test_a_map_given_by_polynomials(engine):
    """(s, t) -> (s^2, s t, t^2) is two to one: (s, t) and (-s, -t), a sign that is found in the program."""
    result = ask(engine, "map:s,t->s^2;s*t;t^2", {"x": [2, 3]})
    assert (result.fiber_dim, result.degree, result.known_symmetry_dim, result.orbits) == (0, 2, 0, 2)
    assert result.verdict == "identifiable-up-to-symmetry"
    assert result.agreement is not False


def test_a_map_with_larger_fibers(engine):
    """A hyperbola is one orbit of a scaling that is found; a plane cubic has no symmetries."""
    assert ask(engine, "map:s,t->s*t").verdict == "identifiable-up-to-symmetry"
    result = ask(engine, "map:s,t->s^3+s*t^2+t^3+5*s*t")
    assert (result.fiber_dim, result.verdict) == (1, "not-identifiable")


def test_heads_with_attention_matrices_of_bounded_rank(engine):
    """Two heads with rk A <= 1: the tangent space of {rk A_h <= 1} is cut out head by head."""
    result = ask(engine, "deep-lightning(d=[2,2],a=[1],t=2,heads=2,parametrization=attention)")
    assert result.agreement is not False
    assert result.dim_at_point == result.known_symmetry_dim == 2
    wrong = {"A1": [[[1, 0], [0, 1]], [[1, 0], [0, 0]]], "V1": [[[1, 2], [3, 4]]] * 2}
    with pytest.raises(InputError, match=r"A1 .*rank 2"):
        ask(engine, "deep-lightning(d=[2,2],a=[1],t=2,heads=2,parametrization=attention)", wrong)


def test_softmax_has_dimensions_only(engine):
    result = ask(engine, "softmax(d=[2,2],a=[1],t=2)")
    assert result.method == "jacobian"
    assert result.components is None
    assert (result.verdict, result.orbits) == (
        "identifiable-up-to-symmetry",
        1,
    )  # V != 0: see arguments._softmax


def test_generic_ranks_are_not_used_at_a_point_of_deep_softmax(engine):
    result = ask(engine, "softmax(d=[2,2,2],a=[1,1],t=2)")
    assert result.generic_fiber_dim == 6
    assert (result.verdict, result.fiber_dim, result.dim_at_point) == ("undecided", None, None)


def test_a_fiber_of_21_weights_is_one_orbit(engine):
    """Three general combinations of three squares of linear forms: the squares are unique up to order and scale."""
    answer = ask(engine, "mlp(widths=[4,3,3],r=2)", timeout=60)
    assert (answer.verdict, answer.limit, answer.fiber_dim) == ("identifiable-up-to-symmetry", None, 3)


def test_a_large_model_has_only_dimensions_with_a_note(engine):
    result = ask(engine, "mlp(widths=[6,6,6],r=3)")
    assert result.method == "jacobian"
    assert (result.generic_fiber_dim, result.known_symmetry_dim) == (6, 6)
    assert (result.verdict, result.orbits, result.fiber_dim, result.dim_at_point) == (
        "open-orbit",
        None,
        None,
        6,
    )
    assert (result.certainty.value, result.probability) == ("computed", None)
    assert any("infeasible" in note for note in result.notes)


def test_a_given_point_of_a_large_model_is_examined_itself(engine):
    model = parse_spec("mlp(widths=[6,6,6],r=3)")
    weights = {name: w.tolist() for name, w in random_point(model, 0).weights.items()}
    result = fiber(model, at=weights, engine=engine)
    assert (result.verdict, result.fiber_dim) == ("open-orbit", None)
    weights["W1"] = [[0] * 6 for _ in range(6)]
    special = fiber(model, at=weights, engine=engine)
    assert (special.verdict, special.fiber_dim, special.dim_at_point) == ("undecided", None, None)
    assert (special.certainty.value, special.sure) == ("undecided", "undecided")
    assert special.generic_fiber_dim == 6


def test_reach_is_estimated(engine):
    assert in_reach(parse_spec(LAYER), 32003, 0)
    assert not in_reach(parse_spec(VIRTUAL3), 32003, 0)


def test_a_cone_that_splits_over_one_prime_only_is_no_contradiction(engine: Engine) -> None:
    answer = fiber("map:s,t->s^2+t^2", at={"s": 0, "t": 0}, engine=engine)
    assert (answer.fiber_dim, answer.degree) == (1, 2)
    assert answer.agreement is not False


def test_a_name_is_printed_as_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine_info: EngineInfo
) -> None:
    path = tmp_path / "map.toml"
    path.write_text('name = "x [/foo] [bold]b[/bold]"\nvariables = ["s", "t"]\npolynomials = ["s^2", "t"]\n')
    assert main(["fiber", f"file:{path}", "--engine", str(engine_info.path)]) == 0
    assert "x [/foo] [bold]b[/bold], 2 polynomials" in capsys.readouterr().out


@pytest.mark.parametrize(("spec", "dim"), [("map:x->0;0", 1), ("map:x,y->1/2;x", 1)])
def test_constant_coordinates_have_fibers(each_engine: Engine, spec: str, dim: int) -> None:
    """Zero and constants are elements of the ring of the weights, on every engine."""
    model = parse_spec(spec)
    at = {"x": 4, "y": 2} if "|" in spec else None
    result = fiber(model, engine=each_engine, at=at)
    assert (result.fiber_dim, result.generic_fiber_dim) == (dim, dim)
    assert result.agreement is not False


@pytest.mark.parametrize(
    ("spec", "right", "wrong", "agreement"),
    [  # not identifiable: shown by components and, from the program, by ranks; biases are forgotten
        ("mlp(widths=[1,2,1],r=[2],bias=true)", "y + W#(2*i+1)", "y", True),
        # one orbit: shown by components alone; the filter does not move
        ("convolution(filters=[2,2],r=2)", "* strides#i + j)", "* strides#i)", None),
    ],
)
def test_a_family_is_read_from_its_partial_and_a_wrong_one_is_noticed(
    spec: str, right: str, wrong: str, agreement: bool | None, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = fiber(spec, engine=engine)
    assert answer.agreement is agreement
    assert answer.weighed.once == (() if agreement else ("verdict",))
    original = scripts.render

    def damaged(template, *arguments, **more):
        script = original(template, *arguments, **more)
        text = script.text.replace(right, wrong)
        assert template != "fiber" or text != script.text
        return type(script)(name=script.name, text=text)

    monkeypatch.setattr(scripts, "render", damaged)
    assert fiber(spec, engine=engine).agreement is False
