"""The singular locus with the real Macaulay2; and wrong algebra is caught, each mistake by a witness that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import m2bridge
from m2bridge import records, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo, ProcessEngine
from m2bridge.errors import ScriptError
from m2bridge.evidence import AGREEMENT_WORDS
from m2bridge.families import Lightning
from m2bridge.families.attention_strata import Orbit
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.limits import Limits
from m2bridge.questions.closure.result import equation as equation_of
from m2bridge.questions.singular_locus import scheme, singular_locus
from m2bridge.schemas import schema
from tests.answering import Answers
from tests.marking import slow_except


@pytest.fixture
def command(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line on the session's Macaulay2, which is warm; returns the exit code."""
    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", lambda **_: nullcontext(engine))
    return lambda *arguments: main(["singular-locus", *map(str, arguments)])


OUTPUT = "transpose X * attentionMatrix W * X;"
IDEAL = "I = idealIn(S, polynomials);"
SIZES = 'emit("singular_components", apply(strata, (Q, r) -> {dim Q, degree Q, r, textsOf Q}));'

MISTAKES = {
    "a quadric is dropped": (
        (2, 1, 1), IDEAL, IDEAL + "\nI = ideal drop(first entries gens I, 1);", "singular_dim"
    ),
    "a sign is flipped in an equation": (
        (2, 1, 1), IDEAL,
        IDEAL + "\nL = first entries gens I; I = ideal {L#0 - 2*leadTerm L#0, L#1, L#2};", "singular",
    ),
    "a sign is flipped in the only equation": (
        (2, 1, 2), IDEAL, IDEAL + "\nL = first entries gens I; I = ideal {L#0 - 2*leadTerm L#0};", "singular",
    ),
    "an equation is invented": (
        (2, 1, 2), IDEAL, IDEAL + "\nI = I + ideal(S_0 - S_1);", "singular"
    ),
    "a component is lost": (
        (2, 1, 2), SIZES, "strata = {}; singularPrimes = {};\n" + SIZES, "singular_dim"
    ),
    "a degree is one too large": (
        (2, 1, 2), SIZES, SIZES.replace("degree Q", "1 + degree Q"), "singular_degree"
    ),
    "a rank is one too small": (
        (2, 1, 2), SIZES, SIZES.replace("Q, r,", "Q, r - 1,"), "rank at a point"
    ),
    "a skip connection is added in the coordinates": (
        (2, 1, 2), OUTPUT, "transpose X * attentionMatrix W * X + X^{0} * transpose X * X;", "vanishing"
    ),
}  # fmt: skip


SLOW = {"a sign is flipped in the only equation", "a sign is flipped in an equation"}


@pytest.mark.parametrize("mistake", slow_except(MISTAKES.keys() - SLOW, MISTAKES))
def test_wrong_algebra_is_caught(
    mistake: str,
    damage: Callable[[str, str], list[str]],
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (d, dp, a), right, wrong, quantity = MISTAKES[mistake]
    damaged = damage(right, wrong)
    code = command("--d", d, "--dp", dp, "--a", a, "--json")
    printed = capsys.readouterr()
    assert damaged
    assert code == 3, printed.err
    result = records.from_document(json.loads(printed.out))
    assert result.agreement is False
    assert any(conflict.quantity.startswith(quantity) for conflict in result.conflicts)
    assert any(line.startswith(f"{AGREEMENT_WORDS[False]}: ") for line in printed.err.splitlines())


@pytest.mark.parametrize("orbit", [Orbit(2, 1, 1), Orbit(1, 1, 0)], ids=str)
def test_a_wrong_representative_is_caught(
    orbit: Orbit,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The representative of an orbit is taken from another orbit."""
    right = Orbit.representative
    wrong = Orbit(1, 1, 0) if orbit != Orbit(1, 1, 0) else Orbit(2, 1, 1)
    monkeypatch.setattr(Orbit, "representative", lambda o, d, dp: right(wrong if o == orbit else o, d, dp))
    assert command("--d", 2, "--dp", 1, "--json") == 3
    assert f"{AGREEMENT_WORDS[False]}: " in capsys.readouterr().err


def test_a_broken_template_is_a_script_error(damage: Callable[[str, str], list[str]], engine: Engine) -> None:
    damage('announce "radical";', 'announce "radical"; nothing * nobody;')
    with pytest.raises(ScriptError, match="no method for binary operator") as caught:
        singular_locus(Lightning(d=2, dp=1), engine=engine)
    assert caught.value.line > 1


def test_every_engine_gives_the_same_answer(engine_info: EngineInfo) -> None:
    with ProcessEngine(engine_info) as opened:
        result = singular_locus(Lightning(d=2, dp=1), engine=opened)
    assert result.agreement is True  # dimension and degree have two definitions each
    assert (result.weighed.twice, result.weighed.once) == (("singular_dim", "singular_degree"), ())
    assert (result.image_dim, result.ambient_dim, result.span_dim) == (5, 40, 6)
    assert (result.codim, result.degree, result.generators) == (1, 4, {"4": 1})
    assert (result.singular_dim, result.singular_degree) == (4, 3)
    assert result.engine is not None
    assert result.engine.version == engine_info.version


@pytest.mark.slow
def test_the_answer_does_not_depend_on_seed_prime_tokens_or_parametrization(answered: Answers) -> None:
    first = answered(singular_locus, Lightning(d=2, dp=1))
    others = [
        answered(singular_locus, Lightning(d=2, dp=1, parametrization="attention"), seed=12, prime=101),
        answered(singular_locus, Lightning(d=2, dp=1, t=3, coordinate_system="full")),
        answered(singular_locus, Lightning(d=2, dp=1, a=5), prime=32749),
    ]
    for other in others:
        assert (other.agreement, other.weighed.twice) == (True, ("singular_dim", "singular_degree"))
        assert other.strata == first.strata
        assert (other.codim, other.degree, other.singular_dim, other.singular_degree) == (1, 4, 4, 3)


@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_prime_never_leads_to_a_wrong_answer(answered: Answers, seed: int) -> None:
    """A random point may be special mod 101; then a bound is weaker, but no witness contradicts and no verdict changes."""
    result = answered(singular_locus, Lightning(d=2, dp=1, a=1), prime=101, seed=seed)
    assert (result.agreement, result.weighed.twice) == (True, ("singular_dim", "singular_degree"))
    assert [s.verdict for s in result.strata] == ["singular", "smooth", "smooth"]


def test_the_record_of_a_run_round_trips_and_fits_its_schema(engine: Engine, tmp_path: Path) -> None:
    result = singular_locus(Lightning(d=2, dp=1, a=1), engine=engine, keep=tmp_path)
    document = json.loads(records.dumps(records.to_document(result)))
    assert records.from_document(document) == result
    validator = jsonschema.Draft202012Validator(schema("singular-locus"))
    validator.validate(document)
    for field in document:
        assert not validator.is_valid({key: value for key, value in document.items() if key != field}), field
    for script in result.scripts:
        kept = tmp_path / f"{script.name}-{script.sha256[:12]}"
        text = kept.with_suffix(".m2").read_text()
        assert scripts.Script(name=script.name, text=text).sha256 == script.sha256
        assert "@m2b-end" in kept.with_suffix(".out").read_text()


def test_a_time_limit_keeps_the_results_of_python(engine: Engine) -> None:
    result = singular_locus(Lightning(d=2, dp=1), engine=engine, limits=Limits(wall_seconds=0.002))
    assert result.limit is not None
    assert "--timeout" in result.limit
    assert result.agreement is not False
    assert result.image_dim == 5
    assert result.codim in (None, 1)  # a warm process reaches it in two milliseconds
    verdicts = {s.name: s.verdict for s in result.strata}
    assert verdicts["(1,1,0)"] == "singular"  # curves need no equations


def test_equations_of_components_vanish_on_their_orbit_and_not_on_a_smooth_one(answered: Answers) -> None:
    """(2,2,1): the singular locus is the closure of the orbit of q (x) h (x) k v."""
    result = answered(singular_locus, Lightning(d=2, dp=2, a=1))
    assert result.components is not None
    (component,) = result.components
    assert component.stratum == "(1,1,0)"
    assert component.equations
    model = Lightning(d=2, dp=2, a=1, parametrization="attention")
    names = [f"z{i}" for i in range(model.coordinate_count)]
    equations = [
        equation_of(parse_polynomial(t, names), range(len(names)), p=32003) for t in component.equations
    ]
    for stratum in result.strata:
        weights = model.unflatten(np.array([int(c) for w in stratum.representative.values() for c in w]))
        point = model.coordinates(weights).tolist()
        inside = not any(equation.at(point) % 32003 for equation in equations)
        assert inside is (stratum.verdict == "singular")


def test_steps_are_announced_in_order(engine: Engine) -> None:
    steps: list[str] = []
    singular_locus(Lightning(d=2, dp=1, a=1), engine=engine, progress=steps.append)
    wanted = ["dimension", "curves at strata", "equations of the closure", "singular locus"]
    assert [step for step in steps if step in wanted] == wanted


def test_the_command_without_mistakes_answers(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the exit code 3 above means the mistake and nothing else."""
    for sizes in ((2, 1, 1), (2, 1, 2), (2, 2, 1)):
        d, dp, a = sizes
        assert command("--d", d, "--dp", dp, "--a", a, "--json") == 0
        printed = capsys.readouterr()
        # beyond six coordinates the singular scheme is not computed, and the dimension has one definition
        assert json.loads(printed.out)["agreement"] is (True if dp == 1 else None)
        assert printed.err == ""


def test_the_example_in_the_package_docstring() -> None:
    result = m2bridge.singular_locus("lightning(d=2,dp=1)")
    assert (result.image_dim, result.singular_dim, result.certainty.value) == (5, 4, "computed")


def test_the_scheme_of_the_whitney_umbrella_hypersurface(answered: Answers) -> None:
    """(2,1,2): at a point of each stratum, the gradient of the equation vanishes exactly on the singular ones."""
    result = answered(singular_locus, Lightning(d=2, dp=1))
    names = [f"z{i}" for i in range(6)]
    for stratum in result.strata:
        model = Lightning(d=2, dp=1, parametrization="attention")
        weights = model.unflatten(np.array([int(c) for w in stratum.representative.values() for c in w]))
        point = model.coordinates(weights).tolist()
        where = dict(zip(names, point, strict=True))
        values = [eval(text.replace("^", "**"), {}, where) for text in result.singular_equations or ()]
        assert (not any(values)) is (stratum.verdict == "singular")


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_the_radical_of_the_scheme_does_not_rest_on_the_orbits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Primes are sought among closures of orbits; when some are forgotten the check of the radical notices it, and decomposes."""
    original = scheme._closures

    def forgetful(*arguments: Any) -> dict[str, Any]:
        return {name: values[: kept + 1] for name, values in original(*arguments).items()}

    monkeypatch.setattr(scheme, "_closures", forgetful)
    result = singular_locus(Lightning(d=2, dp=1), engine=engine)
    assert result.agreement is True
    assert [(c.dim, c.degree) for c in result.components or ()] == [(4, 3)]
    assert [(c.dim, c.degree) for c in result.embedded or ()] == [(3, 4)]
