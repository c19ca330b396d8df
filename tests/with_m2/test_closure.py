"""Closures with the real Macaulay2: methods agree, wrong algebra is caught, limits and fields."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import scripts
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError, LimitError
from m2bridge.evidence import AGREEMENT_WORDS, weigh
from m2bridge.families import attention_knowledge, parse_spec
from m2bridge.families.polynomial_map import from_text
from m2bridge.families.user_network import from_callable
from m2bridge.limits import LimitReached, Limits
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.closure.completeness import account_evidence, account_of, fresh_points_evidence
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import interpolate
from m2bridge.questions.closure.size import measure
from m2bridge.questions.closure.stages import Setting
from m2bridge.questions.kernel import Context
from m2bridge.records import from_document, to_document
from tests.answering import Answers

SMALL = [
    ("lightning(d=2,dp=1,a=1)", {2: 3}, 2, 3),
    ("lightning(d=2,dp=1,a=2)", {4: 1}, 1, 4),
    ("lightning(d=2,dp=2,a=1)", {2: 15, 4: 5}, 6, 20),
    pytest.param("lightning(d=2,dp=2,a=2)", {2: 5, 4: 10}, 5, 20, marks=pytest.mark.slow),
    pytest.param("lightning(d=3,dp=1,a=1)", {2: 45, 3: 10}, 11, 45, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("spec", "generators", "codim", "degree"), SMALL)
def test_interpolation_is_complete_and_agrees_with_the_kernel(
    each_engine: Engine, spec: str, generators: dict[int, int], codim: int, degree: int
) -> None:
    for method in ("interpolation", "kernel"):
        answer = closure(parse_spec(spec), method=method, engine=each_engine)
        assert (dict(answer.generator_counts), answer.codim, answer.degree) == (generators, codim, degree)
        assert (answer.completeness, answer.agreement, answer.certainty) == (
            "complete",
            True,
            Certainty.PROBABLE,
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "generators", "codim", "degree"), [(2, {3: 30, 4: 90}, 8, 108), (3, {3: 20, 4: 90}, 7, 45)]
)
def test_three_tokens_wide(
    each_engine: Engine, a: int, generators: dict[int, int], codim: int, degree: int
) -> None:
    answer = closure(
        parse_spec(f"lightning(d=3,dp=1,a={a})"), engine=each_engine, method="interpolation", cross_check=True
    )
    assert (dict(answer.generator_counts), answer.codim, answer.degree) == (generators, codim, degree)
    assert (answer.completeness, answer.agreement) == ("complete", True)


@pytest.mark.slow
def test_the_default_method_has_no_budget_but_the_timeout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["closure", "lightning(d=3,dp=1,a=2)", "--timeout", "600", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["completeness"], document["degree"], document["limit"]) == ("complete", 108, None)


@pytest.mark.parametrize(
    ("spec", "image_dim", "degree"),
    [
        ("mlp(widths=[2,2,3],r=2)", 8, 3),  # three quadrics in the span of two squares: a 3x3 determinant
        ("mlp(widths=[2,2,1],r=4)", 4, 3),  # secants of rational normal curves: degree C(r-1, 2)
        ("mlp(widths=[2,2,1],r=6)", 4, 10),
        # filters in P^1 x P^1, of degrees 2 and 1 in them, birational: degree (2a + b)^2 = 4ab = 4
        ("convolution(filters=[2,2],r=2)", 3, 4),
    ],
)
def test_other_families(answered: Answers, spec: str, image_dim: int, degree: int) -> None:
    answer = answered(closure, parse_spec(spec))
    assert (answer.image_dim, answer.degree, answer.agreement) == (image_dim, degree, True)


def test_over_qq_the_answer_is_proved_and_equals_macaulay2s(answered: Answers) -> None:
    model = parse_spec("lightning(d=2,dp=1,a=2)")
    lifted = answered(closure, model, field="QQ")
    kernel = answered(closure, model, field="QQ", method="kernel")
    assert lifted.certainty is kernel.certainty is Certainty.COMPUTED
    assert lifted.equations == kernel.equations
    assert lifted.contains([1, 0, 0, 0, 0, 0])
    assert from_document(json.loads(json.dumps(to_document(lifted)))) == lifted


@pytest.mark.parametrize(
    ("spec", "degree"),
    [
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", 3),  # the twisted cubic
        ("map:s,t->s^4;s^3*t;s*t^3;t^4", 4),  # the rational quartic, not Cohen-Macaulay
        ("map:a,b,c,d,e->a*c;a*d;a*e;b*c;b*d;b*e", 3),  # P^1 x P^2
        ("map:s,t->s^4;s^3*t;s^2*t^2;s*t^3;t^4", 4),
        ("map:s,t->s^2;s*t^2;t^3;s^3", 9),  # no cone; toric, twice the area of the triangle of its exponents
        ("convolution(filters=[2,2],r=2)", 4),
    ],
)
def test_over_qq_a_degree_is_proved_by_points_of_a_section(
    each_engine: Engine, spec: str, degree: int
) -> None:
    answer = closure(spec, field="QQ", engine=each_engine)
    assert (answer.degree, answer.completeness, answer.certainty) == (degree, "complete", Certainty.COMPUTED)
    assert any("degree" in sentence for sentence in answer.shown)
    assert answer.agreement


def test_too_few_points_of_a_section_prove_no_degree(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    render = scripts.render

    def fewer(name: str, *args: Any, **kwargs: Any) -> scripts.Script:
        script = render(name, *args, **kwargs)
        text = script.text.replace("r - first degree gcd", "r - 1 - first degree gcd")
        return replace(script, text=text)

    monkeypatch.setattr(scripts, "render", fewer)
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", engine=engine)
    assert (answer.degree, answer.certainty) == (3, Certainty.PROBABLE)


def test_a_map_with_large_coefficients_is_lifted(engine: Engine) -> None:
    answer = closure(
        from_text("large", ["s", "t"], ["1000003*s^2", "s*t", "1/70001*t^2"]), field="QQ", engine=engine
    )
    assert answer.certainty is Certainty.COMPUTED
    assert [f.text() for f in answer.equations or ()] == ["70001*z0*z2 - 1000003*z1^2"]


def test_an_affine_curve_and_a_dense_image(answered: Answers) -> None:
    cusp = answered(closure, from_text("cusp", ["t"], ["t^2", "t^3"]), field="QQ")
    assert (cusp.image_dim, cusp.codim, cusp.degree, cusp.homogenized) == (1, 1, 3, True)
    assert [f.text() for f in cusp.equations or ()] == ["z0^3 - z1^2"]
    assert cusp.contains([4, 8])
    plane = answered(closure, from_text("plane", ["s", "t"], ["s^2", "s*t"]))
    assert (plane.codim, plane.degree, plane.completeness, dict(plane.generator_counts)) == (
        0,
        1,
        "complete",
        {},
    )


SEGRE = "map:a,b,c,d,e,f->a*c*e;a*c*f;a*d*e;a*d*f;b*c*e;b*c*f;b*d*e;b*d*f"
MINORS = "map:a,b,c,d,e,f,g,h->a*f-b*e;a*g-c*e;a*h-d*e;b*g-c*f;b*h-d*f;c*h-d*g"


@pytest.mark.parametrize(
    ("spec", "dim", "degree", "counts"),
    [
        # dimensions are those of affine cones (Harris, Algebraic Geometry)
        (SEGRE, 4, 6, {2: 9}),  # P^1 x P^1 x P^1: degree 3!, S^2(C^8) - S^2(C^2)^3 = 36 - 27 quadrics
        (
            "map:x,y,z->x^2;x*y;x*z;y^2;y*z;z^2",
            3,
            4,
            {2: 6},
        ),  # the Veronese surface: 2-minors of a symmetric matrix
        (MINORS, 5, 2, {2: 1}),  # G(2,4): the Pluecker relation
        # secants of the rational normal quintic: 3-minors of a 3 x 4 catalecticant, degree C(4, 2)
        (
            "map:a,b,c,d->a^5+c^5;a^4*b+c^4*d;a^3*b^2+c^3*d^2;a^2*b^3+c^2*d^3;a*b^4+c*d^4;b^5+d^5",
            4,
            6,
            {3: 4},
        ),
        # tangents of the twisted cubic: the discriminant of a binary cubic
        ("map:a,b,c,d->a^2*c;2*a*b*c+a^2*d;b^2*c+2*a*b*d;b^2*d", 3, 4, {4: 1}),
        ("map:s,t->s^4;s^3*t;s*t^3;t^4", 2, 4, {2: 1, 3: 3}),  # the rational quartic in P^3
        ("map:a,b,s,t->a*s;a*t;b*s^2;b*s*t;b*t^2", 3, 3, {2: 3}),  # the cubic scroll
        ("map:x,y,z->y*z;x*z;x*y;x^2+y^2+z^2", 3, 4, {4: 1}),  # Steiner's surface
        ("map:s->s^2;s^2;7;s^3", 1, 3, {3: 1}),  # a cusp, with a coordinate that repeats and a constant one
    ],
)
def test_known_varieties(answered: Answers, spec: str, dim: int, degree: int, counts: dict[int, int]) -> None:
    answer = answered(closure, spec, field="QQ")
    assert (answer.image_dim, answer.degree, dict(answer.generator_counts)) == (dim, degree, counts)
    assert (answer.completeness, answer.agreement) == ("complete", True)


@pytest.mark.parametrize(("field", "distinct"), [(None, None), ("QQ", 3)])
def test_points_of_a_section_are_separated_only_for_a_proof(
    answered: Answers, field: Any, distinct: Any
) -> None:
    answer = answered(closure, "map:s,t->s^3;s^2*t;s*t^2;t^3", field=field)
    counted = [e.detail["distinct"] for e in answer.evidence if e.witness == "parametrization"]
    assert counted == [distinct]


def test_a_section_with_a_double_point_proves_no_degree(
    each_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form s^2*t - 2*s*t^2 + t^3 = t*(s - t)^2 vanishes at two points of the cubic, and the length is 3."""
    basis, forms = np.array([[0, -2], [2, -1], [1, 0], [0, 1]]), np.array([[0, 1, -2, 1], [1, 0, 0, 2]])
    for module in ("size", "completeness"):
        monkeypatch.setattr(f"m2bridge.questions.closure.{module}.random_section", lambda *_: (basis, forms))
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", engine=each_engine)
    (counted,) = [e.detail for e in answer.evidence if e.witness == "parametrization"]
    assert (counted["section"] // counted["fiber"], counted["distinct"]) == (3, 2)
    assert (answer.completeness, answer.certainty) == ("complete", Certainty.PROBABLE)


# -- wrong algebra is caught ------------------------------------------------------------------------------------


def judge(engine: Engine, spec: str, change: Any) -> bool | None:
    """The verdict of the account on interpolated equations after a change."""
    model = parse_spec(spec)
    image = image_of(model)
    interpolation = interpolate(image, 4)
    context = Context(engine=engine, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    setting = Setting(context=context, model=model, image=image, prime=32003, rational=False)
    size = measure(setting, interpolation.span)  # the other statement on the dimension of the image
    polynomials = tuple(change([dict(f) for group in interpolation.generators.values() for f in group]))
    equations = replace(interpolation.equations, polynomials=polynomials)
    evidence = [
        *size.evidence,
        setting.statement("vanishing", True, "interpolation", "its own word"),
        fresh_points_evidence(setting, size, polynomials, 32003),
        *account_evidence(setting, size, equations, account_of(setting, size, equations).values),
    ]
    return weigh(evidence).verdict


@pytest.mark.parametrize("spec", ["lightning(d=2,dp=1,a=1)", "lightning(d=2,dp=2,a=2)"])
def test_dropping_any_generator_or_changing_a_sign_is_caught(engine: Engine, spec: str) -> None:
    assert judge(engine, spec, lambda fs: fs) is True
    assert judge(engine, spec, lambda fs: fs[1:]) is False
    assert judge(engine, spec, lambda fs: fs[:-1]) is False

    def flipped(fs: list[dict[tuple[int, ...], int]]) -> list[dict[tuple[int, ...], int]]:
        monomial = next(iter(fs[0]))
        return [{**fs[0], monomial: -fs[0][monomial] % 32003}, *fs[1:]]

    assert judge(engine, spec, flipped) is False


def test_a_transposed_matrix_in_the_template_is_caught(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    render = scripts.render

    def transposed(*args: Any, **options: Any) -> scripts.Script:
        script = render(*args, **options)
        changed = script.text.replace("transpose W#1 * W#0", "transpose W#0 * W#1")
        assert changed != script.text or "attentionMatrix = " not in script.text
        return replace(script, text=changed)

    monkeypatch.setattr(scripts, "render", transposed)
    answer = closure(parse_spec("lightning(d=2,dp=1,a=1)"), engine=engine)
    assert answer.agreement is False
    assert {c.quantity for c in answer.conflicts} >= {"image_points"}
    assert closure("lightning(d=2,dp=1,a=1)", field=97, engine=engine).agreement is False
    assert main(["closure", "--d", "2", "--dp", "1", "--a", "1"]) == 3
    assert AGREEMENT_WORDS[False] in capsys.readouterr().err


def test_no_equations_are_interpolated_that_points_do_not_determine(engine: Engine) -> None:
    """Over F_3 the cubics x^3 - x vanish at all points: degree 3 is not done there."""
    answer = closure(
        parse_spec("lightning(d=2,dp=2,a=2)"), field=3, max_degree=4, method="interpolation", engine=engine
    )
    assert (answer.degree_bound, answer.completeness) == (2, "up-to-degree")
    assert answer.agreement is not False
    assert any(re.search(r"F_3 .*degree 3\b", sentence) for sentence in answer.not_shown)


# -- the command line -------------------------------------------------------------------------------------------


def test_the_command_prints_a_document_that_fits_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema

    from m2bridge.schemas import schema

    assert main(["closure", "--d", "2", "--dp", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema("closure"))
    assert (document["ambient_dim"], document["span_dim"], document["image_dim"]) == (40, 6, 5)
    assert document["generators"] == {"4": 1}
    assert [f["degree"] for f in document["equations"]] == [4]  # a single short one is always there
    assert main(["closure", "--d", "2", "--dp", "2", "--a", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["equations"] is None  # many are not, unless asked for


def test_a_limit_gives_a_partial_answer_and_exit_5(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["closure", "--d", "3", "--dp", "3", "--a", "2", "--timeout", "2", "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert document["completeness"] == "partial"
    assert document["limit"]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (None, "_advance"),
        (None, "conclude"),
        (None, "lift_equations"),
        ("findings", "closure_certificates"),
    ],
)
def test_a_limit_at_any_step_keeps_what_was_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, place: str | None, name: str
) -> None:
    def ring(*_: Any, **__: Any) -> None:
        raise LimitReached("the reason")

    monkeypatch.setattr(".".join(filter(None, ("m2bridge.questions.closure", place, name))), ring)
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", engine=engine)
    assert (answer.image_dim, answer.limit) == (2, "the reason")
    assert any("limit" in line for line in answer.not_shown)
    assert dict(answer.generator_counts) == ({} if name == "_advance" else {2: 3})
    if name == "lift_equations":  # nothing that was not lifted and checked is said of QQ
        assert (answer.field, answer.certainty) == ("F_32003", Certainty.PROBABLE)


def test_formats_and_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert (
        main(["closure", "--d", "2", "--dp", "1", "--a", "1", "--format", "m2", "--save", str(tmp_path)]) == 0
    )
    assert capsys.readouterr().out.startswith("S = ZZ/32003[z0, z1, z2, z3, z4, z5];\nI = ideal(")
    assert len(list(tmp_path.glob("closure-*.json"))) == 1
    for bad in (
        ["--prime", "32004"],
        ["--field", "RR"],
        ["--format", "word"],
        ["--method", "guess"],
        ["--max-degree", "0"],
    ):
        assert main(["closure", "--d", "2", "--dp", "1", *bad]) == 2


@pytest.mark.parametrize(
    ("spec", "forms"),
    [
        ("map:s,t->s;t;s+t", ["z0 + z1 - z2"]),
        ("map:s,t->s^2;t^2;0;2*s^2-3*t^2", ["z2", "2*z0 - 3*z1 - z3"]),
    ],
)
def test_linear_forms_over_the_rationals_by_the_kernel(
    answered: Answers, spec: str, forms: list[str]
) -> None:
    answer = answered(closure, spec, method="kernel", field="QQ")
    assert [f.text() for f in answer.equations or ()] == forms
    assert answer.certainty is Certainty.COMPUTED
    # nothing is counted on the parametrization of a linear space: its degree has one statement, the kernel's
    assert (answer.agreement, answer.weighed.twice) == (None, ("image_dim", "codim"))


@pytest.mark.parametrize(
    ("spec", "counts", "image_dim"),
    [
        ("map:s->s^2;s^3", {3: 1}, 1),  # no cone
        ("map:t->t^2-1;t^3-t", {3: 1}, 1),
        ("map:s->1;2", {}, 0),
        ("map:s->0;0", {}, 0),
    ],
)
def test_both_methods_where_the_image_is_no_cone_or_a_point(
    answered: Answers, spec: str, counts: dict[int, int], image_dim: int
) -> None:
    for method in ("kernel", "interpolation"):
        answer = answered(closure, spec, method=method)
        assert (dict(answer.generator_counts), answer.image_dim) == (counts, image_dim)
        # nothing is counted on the parametrization of a point: its degree has one statement, Macaulay2's
        assert (answer.agreement, answer.weighed.once) == ((True, ()) if image_dim else (None, ("degree",)))


def test_a_prime_that_shrinks_the_span_is_refused_and_not_chosen(answered: Answers) -> None:
    spec = "map:s,t->s+32003*t;s+64006*t;s"
    with pytest.raises(InputError, match=r"32003 .*--prime 31991"):
        answered(closure, spec, field=32003)
    assert answered(closure, spec).span_dim == 2
    hidden = "map:s,t->s+t;s+32004*t"  # the determinant, and no coefficient, is divisible by 32003
    with pytest.raises(InputError, match="prime"):
        answered(closure, hidden, field=32003)
    assert answered(closure, hidden).span_dim == 2
    answer = answered(closure, spec, field="QQ")
    assert [f.text() for f in answer.equations or ()] == ["2*z0 - z1 - z2"]


@pytest.mark.parametrize(
    ("spec", "p", "degree"),
    [  # graphs of polynomials and curves (t^a, t^b) with coprime exponents, whose degrees are the highest exponents
        ("map:t->t+1;t^8+t", 7, 8),
        ("map:t->t^2+t+1;t^15+t", 13, 15),
        ("map:t->t;t^103", 101, 103),
        ("map:t->t+3;t^12-t^2", 11, 12),
        ("map:t->t^2;t^9", 7, 9),
        ("map:t->t^3;t^8", 7, 8),
        ("map:t->t^2;t^27", 23, 27),
        ("map:t->t;t^2;t^6", 5, 6),
        ("map:t->t;t^9+2*t^4", 11, 9),
        ("map:t->t^4;t^31", 29, 31),
        ("map:s->s;s^2;s^3;s^4", 5, 4),
        ("map:s,t->s;t;s^6*t", 5, 7),
        ("map:s,t->s;t;s^8+t^9", 7, 9),
        ("map:s,t->s+t;s*t;s^4+t^4", 3, 4),  # e1^4 - 4 e1^2 e2 + 2 e2^2
        ("map:s,t->t;s^2;s^7*t", 5, 9),  # z2^2 = z0^2 z1^7
    ],
)
def test_maps_of_a_degree_above_the_prime_have_their_true_degree(
    spec: str, p: int, degree: int, answered: Answers
) -> None:
    """At the points of F_p t^p equals t: a curve of degree 8 satisfies equations of degree 2 at all points of F_7."""
    answer = answered(closure, spec, field=p)
    assert (answer.degree, answer.completeness, answer.field) == (degree, "complete", f"F_{p}")


@pytest.mark.parametrize(("spec", "p"), [("map:t->t+1;t^8+t", 7), ("map:t->t;t^103", 101)])
def test_interpolation_alone_names_the_degree_that_a_small_field_allows(
    spec: str, p: int, answered: Answers
) -> None:
    answer = answered(closure, spec, field=p, method="interpolation")
    assert (answer.completeness, answer.generator_counts, answer.degree_bound) == ("up-to-degree", {}, 1)
    assert any("prime" in line for line in answer.not_shown)


def test_a_degree_above_the_default_prime(engine: Engine) -> None:
    """Networks are compositions, and their degrees in the weights are products."""

    def network(x: np.ndarray, w: np.ndarray, u: np.ndarray, power: int) -> np.ndarray:
        for _ in range(3):
            w = w**power
        return w * x + u

    def asked(power: int) -> Closure:
        model = from_callable(partial(network, power=power), {"w": (1,), "u": (1,)}, inputs={"x": (1,)})
        return closure(model, method="interpolation", engine=engine)

    assert asked(33).codim == 0  # 33^3 is above 32003: the span is read off the coefficients
    with pytest.raises(InputError, match=f"degree {45**3}"):
        asked(45)


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize(
    ("spec", "degree", "counts"), [("lightning(d=2,dp=1)", 4, {4: 1}), ("lightning(d=2,dp=2,a=2)", 20, None)]
)
def test_over_fields_with_few_points_the_kernel_is_computed(
    p: int, spec: str, degree: int, counts: dict[int, int] | None, answered: Answers
) -> None:
    """Cubics such as x^2 y - x y^2 vanish at all points of F_2: values there do not determine polynomials."""
    answer = answered(closure, spec, field=p)
    assert (answer.degree, answer.completeness, answer.field) == (degree, "complete", f"F_{p}")
    assert counts in (None, answer.generator_counts)
    assert answer.agreement is not False
    assert any("points" in line for line in answer.not_shown)


def test_the_kernel_gives_the_degree_where_no_other_method_does(answered: Answers) -> None:
    answer = answered(closure, "map:s->s;s^2;s^3;s^4", field=5, method="kernel")
    assert (answer.degree, answer.completeness) == (4, "complete")


def test_a_kernel_that_does_not_vanish_on_the_map_is_not_proved(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of another map, as a mistake in the template would give."""
    wrong = from_text("another", ["s", "t"], ["s^3", "s^2*t", "s*t^2", "2*t^3"])
    monkeypatch.setattr("m2bridge.questions.closure.ring_kernel.best_source", lambda _: wrong)
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", method="kernel", field="QQ", engine=engine)
    assert (answer.certainty, answer.agreement) == (Certainty.PROBABLE, False)


def test_a_prime_at_which_the_image_drops_dimension_is_not_used(answered: Answers) -> None:
    """Modulo 32003 the two forms are proportional, and the image is a curve; over QQ it is the surface z0 z1 = z2."""
    spec = "map:s,t->s+t;(s-32002*t)^4;(s+t)*(s-32002*t)^4"
    answer = answered(closure, spec, field="QQ")
    assert (answer.degree, answer.agreement, answer.certainty) == (2, True, Certainty.COMPUTED)
    chosen = answered(closure, spec, prime=32003)
    assert chosen.completeness != "complete"
    assert chosen.certainty is Certainty.PROBABLE
    assert any("dimension" in sentence for sentence in chosen.not_shown)


def test_a_special_point_of_the_parametrization_counts_no_degree(answered: Answers) -> None:
    """With this seed a weight of the first point is 0 modulo 32003: the differential loses rank there."""
    spec = "map:s,t->s^6;s^4*t^2;s^2*t^4;t^6"
    answer = answered(closure, spec, field="QQ", method="interpolation", seed=11025)
    assert (answer.degree, answer.completeness, answer.certainty) == (3, "complete", Certainty.COMPUTED)


def test_the_clock_holds_while_image_points_are_computed(engine: Engine) -> None:
    def network(x: np.ndarray, A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
        return C @ (B @ (A @ x) ** 2) ** 2

    shapes = {"A": (8, 8), "B": (8, 8), "C": (8, 8)}
    start = time.monotonic()
    with pytest.raises(LimitError):
        closure(from_callable(network, shapes, inputs={"x": (8,)}), engine=engine, timeout=3)
    assert time.monotonic() - start < 200


def test_a_damaged_formula_of_the_degree_is_a_conflict_and_never_taken(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = attention_knowledge.layer_degree
    monkeypatch.setattr(attention_knowledge, "layer_degree", lambda layer: replace(right(layer), value=32))
    answer = closure("lightning(d=2,dp=1)", field="QQ", engine=engine)
    assert (answer.degree, answer.agreement) == (4, False)


@pytest.mark.parametrize(("timeout", "completeness"), [("10m", "up-to-degree"), ("2h", "complete")])
def test_steps_that_are_rarely_in_reach_run_if_the_user_allows_hours(
    timeout: str, completeness: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bounds on the number of coordinates below the 12 of M(2,2,2), only the time decides."""
    monkeypatch.setattr("m2bridge.questions.closure.completeness._SMALL_SPAN", 4)
    monkeypatch.setattr("m2bridge.questions.closure._KERNEL_SPAN", 4)
    answer = closure("lightning(d=2,dp=2)", engine=engine, timeout=timeout)
    assert answer.completeness == completeness
    attempted = not any("needs a --timeout of at least 1h" in sentence for sentence in answer.not_shown)
    assert attempted == (completeness == "complete")
