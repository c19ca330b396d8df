"""The singular locus of any polynomial model: textbook answers, random maps by brute force, witnesses that disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import from_callable, records, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, find_engine
from m2bridge.errors import NotPolynomialError
from m2bridge.families import parse_spec
from m2bridge.families.weight_strata import WeightStrata
from m2bridge.questions.fiber.equivalent_weights import equivalent_weights
from m2bridge.questions.point import Point, fractions_of
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_locus.tangents import spanning_lines
from tests.answering import Answers
from tests.running import run_command

KNOWN = [
    # Generic determinantal varieties: Sing{rk <= r} = {rk <= r-1} (Bruns, Vetter, Determinantal Rings, Theorem 2.6). Rank <= 1 is
    # the cone over the Segre variety, of dimension m+n-1 and degree C(m+n-2, m-1) (Harris, Algebraic Geometry, Example 18.15).
    ("linear(widths=[2,1,2])", [(0, 1)]),
    ("linear(widths=[3,2,3])", [(5, 6)]),
    ("linear(widths=[3,2,2,3])", [(5, 6)]),
    ("linear(widths=[3,1,3])", [(0, 1)]),
    ("linear(widths=[4,2,3])", [(6, 10)]),
    # all matrices: smooth, also where the rank drops
    ("linear(widths=[3,4,2])", []),
    # The secant variety of the Veronese surface, symmetric 3 x 3 matrices of rank <= 2, is singular along the surface, whose cone
    # has dimension 3 and degree 4 (Harris, Exercise 11.28 and Example 18.13).
    ("mlp(widths=[3,2,1],r=2)", [(3, 4)]),
    # W2 (W1 x)^2: three binary quadrics in a plane that two squares span; every plane of binary quadrics is a limit of such, so
    # the closure is {3 x 3 matrices of rank <= 2}.
    pytest.param("mlp(widths=[2,2,3],r=2)", [(5, 6)], marks=pytest.mark.slow),
    # A smooth projective curve: the cone is singular at its vertex only (rational quartic in P^3, Hartshorne, Exercise I.3.18).
    ("map:s,t->s^4;s^3*t;s*t^3;t^4", [(0, 1)]),
    # Cubics with a double root: the discriminant, also the tangent developable of the twisted cubic, of degree 4. It is
    # singular along the cubes, the cone over the twisted cubic (Eisenbud, Harris, 3264, Section 7.5.3).
    ("map:a,b,c,d->a^2*c;a^2*d+2*a*b*c;2*a*b*d+b^2*c;b^2*d", [(2, 3)]),
    # The discriminant of x^2 + b x + c as the image of (s,t) -> (s+t, st) restricted to s = t: a parabola, smooth.
    ("map:s->2*s;s^2", []),
    # The Whitney umbrella is singular along a line; the cusp at a point; the graph of a function nowhere.
    ("map:s,t->s;s*t;t^2", [(1, 1)]),
    ("map:t->t^2;t^3", [(0, 1)]),
    ("map:s,t->s^2;t^2", []),
    # 1/x + 1/y + 1/z + 1/w = 0, Cayley's cubic surface with four nodes: a cone over it has four singular lines.
    ("map:a,b,c->-b*c*(a+b+c);-a*c*(a+b+c);-a*b*(a+b+c);a*b*c", [(1, 1)] * 4),
    # Steiner's Roman surface has three double lines; in the cone over it they are planes.
    ("map:x,y,z->x*y;y*z;x*z;x^2+y^2+z^2", [(2, 1)] * 3),
    # A product is singular where one factor is: the cuspidal cubic times itself.
    ("map:s,t->s^2;s^3;t^2;t^3", [(1, 3), (1, 3)]),
    # The discriminant of binary quartics: squares of quadrics (Veronese surface, degree 4) and triple roots, the tangent
    # developable of the rational normal quartic, of degree 2 * 4 - 2.
    ("map:a,b,c,d,e->a^2*c;a^2*d+2*a*b*c;a^2*e+2*a*b*d+b^2*c;2*a*b*e+b^2*d;b^2*e", [(3, 4), (3, 6)]),
    # That tangent developable is singular along its cuspidal edge, the cone over the rational normal quartic.
    ("map:a,b,c,d->a^3*c;a^3*d+3*a^2*b*c;3*a^2*b*d+3*a*b^2*c;3*a*b^2*d+b^3*c;b^3*d", [(2, 4)]),
    # z^6 = x^3 y^2: singular along both axes, of multiplicities 3 and 2.
    ("map:s,t->s^2;t^3;s*t", [(1, 1), (1, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "components"), KNOWN)
def test_textbook_answers(answered: Answers, spec: str, components: list[tuple[int, int]]) -> None:
    result = answered(singular_locus, spec)
    assert [(c.dim, c.degree) for c in result.components or ()] == components
    assert result.agreement is not False, result.conflicts
    assert result.completeness == "complete"
    assert records.from_document(records.to_document(result)) == result


KINDS = [
    # multiplicity, Milnor number, delta: for one branch with the semigroup <a, b> they are a, (a-1)(b-1) and half of that
    ("map:t->t^2;t^3", 2, 2, 1),
    ("map:t->t^2;t^5", 2, 4, 2),
    ("map:t->t^3;t^4", 3, 6, 3),
    ("map:t->t^3;t^5", 3, 8, 4),
    ("map:t->t^3;t^4;t^5", 3, None, 2),  # a space curve: the gaps of the semigroup are 1 and 2
    ("map:t->t^2-1;t^3-t", 2, 1, 1),  # a node
    ("map:s,t->s^2;s*t;t^2", 2, 1, None),  # a surface: A_1
    ("map:s,t->s^3;t^3;s*t", 2, 2, None),  # A_2
]


@pytest.mark.parametrize(("spec", "multiplicity", "milnor", "delta"), KINDS)
def test_kinds_of_isolated_singular_points(
    answered: Answers, spec: str, multiplicity: int, milnor: int | None, delta: int | None
) -> None:
    (point,) = answered(singular_locus, spec).components or ()
    assert (point.multiplicity, point.milnor_number, point.delta_invariant) == (multiplicity, milnor, delta)


def test_conjugate_nodes_are_counted_one_by_one(answered: Answers) -> None:
    # a polynomial curve of degrees 4 and 3 has (4-1)(3-1)/2 = 3 double points; these three are conjugate over QQ
    (nodes,) = answered(singular_locus, "map:t->t^4+t;t^3-2*t").components or ()
    assert (nodes.dim, nodes.degree, nodes.milnor_number, nodes.delta_invariant) == (0, 3, 1, 1)


def test_strata_not_examined_in_time_are_listed(engine: Engine) -> None:
    # thousands of coordinates, so that one stratum takes longer than the whole time; it went on for minutes without a word
    result = singular_locus("deep-lightning(d=[3,3,3],a=[2,2],t=2)", engine=engine, timeout=2)
    assert result.limit is not None
    assert "strata" in result.limit


def test_a_prime_of_bad_reduction_is_no_contradiction(answered: Answers) -> None:
    # x = t^2, y = t (x - 1)(x - 32004): a node at x = 1 and one at x = 32004, which come together modulo 32003; no number of
    # the map, t^5 - 32005 t^3 + 32004 t, is divisible by 32003
    result = answered(singular_locus, "map:t->t^2;t^5-32005*t^3+32004*t")
    assert [(c.dim, c.degree, c.multiplicity) for c in result.components or ()] == [(0, 1, 2)] * 2
    assert result.agreement is None, result.conflicts  # dimension and degree over QQ have one definition
    sizes = {e.field: e.value for e in result.evidence if e.quantity == "singular components"}
    assert sizes == {None: [[0, 2]], "F_32003": [[0, 1]]}


def test_the_convolution_is_singular_along_a_line_of_its_middle_coefficient(answered: Answers) -> None:
    # (a x + b y)^2 c + (a y + b z)^2 d: dimension 3 in 5 coordinates. A multiple of y^2 comes from a = d = 0 and from b = c = 0:
    # on this line the closure has two sheets.
    result = answered(singular_locus, "convolution(filters=[2,2],r=2)")
    (line,) = result.components or ()
    assert (line.dim, line.degree, line.multiplicity) == (1, 1, 2)
    assert (
        result.agreement is None
    )  # dimension and degree have one definition; a contradiction would be False
    verdicts = {place.name: place.verdict for place in result.strata}
    assert verdicts["random weights"] == "smooth"
    assert verdicts["w1 = 0"] == verdicts["all weights 0"] == "singular"


def test_matrices_of_each_rank_are_the_strata_of_a_linear_network(answered: Answers) -> None:
    result = answered(singular_locus, "linear(widths=[3,2,3])")
    assert result.exhaustive
    # matrices of rank k have dimension k(m + n - k); those of rank 1 are dense in the singular locus
    assert [(s.ranks["product"], s.image_dim, s.verdict) for s in result.strata] == [
        (0, 0, "singular"), (1, 5, "singular"), (2, 8, "smooth"),
    ]  # fmt: skip
    assert [s.components for s in result.strata] == [(1,), (1,), ()]
    assert {s.certainty.value for s in result.strata} == {"proved"}
    assert [s.closure_contains for s in result.strata] == [(), (0,), (0, 1)]
    assert (result.certainty.value, result.agreement) == ("computed", True)


@pytest.mark.parametrize(
    ("spec", "components"),
    [
        # rank <= 2 of 6 x 6 has dimension 2(12 - 2); the degree is the product of C(6+i, 2) / C(2+i, 2) for i = 0, ..., 3,
        # 15/1 * 21/3 * 28/6 * 36/10 (Harris, Example 19.10)
        ("linear(widths=[6,3,6])", [(20, 1764)]),
        ("linear(widths=[5,5,4])", []),
    ],
)
def test_ranks_decide_in_many_coordinates_without_equations(
    answered: Answers, spec: str, components: list[tuple[int, int]]
) -> None:
    result = answered(singular_locus, spec)
    assert result.completeness is None
    assert [(c.dim, c.degree) for c in result.components or ()] == components
    assert (result.undecided, result.limit) == ((), None)


def test_the_checker_verifies_the_strata_of_a_linear_network(answered: Answers, tmp_path: Path) -> None:
    path = records.save(answered(singular_locus, "linear(widths=[3,2,3])"), tmp_path)
    assert (
        main(["check", str(path)]) == 9
    )  # the dimension and the verdicts, not the degree of the singular locus
    document = json.loads(path.read_text())
    document["strata"][1]["verdict"] = "smooth"
    path.write_text(json.dumps(document))
    assert main(["check", str(path)]) == 7


@pytest.mark.slow
def test_strata_of_the_weights_show_which_ranks_map_into_the_singular_locus(answered: Answers) -> None:
    # W2 (W1 x)^2, three binary quadrics in a plane: 3 x 3 matrices of rank at most two, see KNOWN
    result = answered(singular_locus, "mlp(widths=[2,2,3],r=2)")
    places = {place.name: place for place in result.strata}
    assert places["rk W2 = 1"].verdict == "singular"
    assert places["rk W2 = 1"].components == (1,)
    # the image of {rk W2 = 1} is dense in the singular locus: both have dimension 5
    assert places["rk W2 = 1"].image_dim == result.singular_dim == 5
    assert places["random weights"].verdict == "smooth"
    assert result.certainty.value == "computed"


@pytest.mark.parametrize(
    ("spec", "multiplicity", "milnor"),
    [
        ("map:t->t^2;t^3", 2, 2),  # the cusp A2 has Milnor number 2
        ("map:t->t^2;t^5", 2, 4),  # A4
        ("map:t->t^3;t^4", 3, 6),  # E6: (3-1)(4-1)
        ("linear(widths=[2,1,2])", 2, 1),  # A1: a quadric cone
        ("map:s,t->s;s*t;t^2", 2, None),  # not isolated
    ],
)
def test_the_kind_of_singularity(answered: Answers, spec: str, multiplicity: int, milnor: int | None) -> None:
    # Milnor numbers of x^a = y^b: (a-1)(b-1) (Milnor, Singular Points of Complex Hypersurfaces, Section 9)
    (part,) = answered(singular_locus, spec).components or ()
    assert (part.multiplicity, part.milnor_number) == (multiplicity, milnor)


def random_maps() -> list[str]:
    rng = np.random.default_rng(2026)

    def polynomial(variables: str, degree: int) -> str:
        terms = []
        for _ in range(3):
            exponents = rng.multinomial(rng.integers(1, degree + 1), [1 / len(variables)] * len(variables))
            powers = "*".join(f"{v}^{e}" for v, e in zip(variables, exponents, strict=True) if e)
            terms.append(f"({rng.integers(1, 5) * rng.choice([-1, 1])})*{powers}")
        return "+".join(terms)

    shapes = [("t", 4, 2)] * 5 + [("t", 3, 3)] * 3 + [("st", 2, 3)] * 4
    return [f"map:{','.join(v)}->{';'.join(polynomial(v, k) for _ in range(n))}" for v, k, n in shapes]


BRUTE = """\
sizes = (R, forms) -> (
    T := QQ[apply(#forms, i -> getSymbol("z" | toString i))];
    I := ker map(R, T, forms);
    if I == 0 then return {};
    J := radical(I + minors(codim I, jacobian I));
    if J == 1 then return {};
    C := decompose J;
    dims := sort unique apply(C, dim);
    apply(dims, k -> {k, sum(select(C, c -> dim c == k), degree)}));
"""


@pytest.mark.slow
def test_twelve_random_maps_agree_with_all_minors_over_q(answered: Answers, tmp_path: Path) -> None:
    maps = random_maps()
    script = BRUTE
    for spec in maps:
        variables, _, polynomials = spec.removeprefix("map:").partition("->")
        script += f"R = QQ[{variables}]; << toString sizes(R, {{{polynomials.replace(';', ',')}}}) << endl;\n"
    path = tmp_path / "minors.m2"  # 1.26 does not read a script from a pipe
    path.write_text(script)
    done = run_command([str(find_engine().path), "--script", str(path)])
    expected = [eval_lists(line) for line in done.stdout.split("\n") if line]
    assert len(expected) == len(maps) == 12
    assert len({str(sizes) for sizes in expected}) >= 3
    for spec, sizes in zip(maps, expected, strict=True):
        result = answered(singular_locus, spec)
        total: dict[int, int] = {}
        for part in result.components or ():
            total[part.dim] = total.get(part.dim, 0) + (part.degree or 0)
        assert [[k, total[k]] for k in sorted(total)] == sizes, spec
        assert result.agreement is not False, result.conflicts


def eval_lists(text: str) -> Any:
    return json.loads(text.replace("{", "[").replace("}", "]"))


def test_a_damaged_elimination_contradicts_the_tangent_spaces_in_the_weights(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = scripts.render

    def damaged(template: Any, *arguments: Any, **more: Any) -> Any:
        script = original(template, *arguments, **more)
        if template != "singular_strata":
            return script
        text = script.text.replace("if r < c then singularPrimes", "if r < c - 1 then singularPrimes")
        assert text != script.text
        return type(script)(name=script.name, text=text)

    monkeypatch.setattr(scripts, "render", damaged)
    result = singular_locus("map:s,t->s;s*t;t^2", engine=engine, timeout=60)
    assert result.agreement is False


def test_without_equations_curves_show_singular_points_and_the_rest_is_undecided(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WeightStrata, "closure_coordinates", 8)
    result = singular_locus("mlp(widths=[2,2,3],r=2)", engine=engine)
    verdicts = {place.name: (place.verdict, place.tangent_upper) for place in result.strata}
    # the closure is that of the 3 x 3 matrices of rank <= 2, see KNOWN: the tangent space at 0 is everything
    assert verdicts["all weights 0"] == ("singular", None)
    assert verdicts["random weights"] == ("undecided", None)
    assert result.components is result.span_dim is None
    # each singular place is proved by curves, the whole locus is not
    assert {p.certainty.value for p in result.strata if p.verdict == "singular"} == {"computed"}
    assert result.certainty.value == "probable"
    assert result.singular_dim is None
    assert any("--force" in sentence for sentence in result.undecided)


@pytest.mark.slow
def test_two_layers_of_attention_are_singular_where_the_first_is_skew() -> None:
    # (J, N, L) and (N, J, L / det N) are one function for J skew: the images of both differentials lie in the tangent space
    # there, and together they have more than the 10 dimensions of the image (12 weights, two scalings)
    model = parse_spec("deep-lightning(d=[2,2,2],t=2,parametrization=virtual)")
    (skew,) = [s for s in WeightStrata(model, 0).strata() if s.name == "M1 skew-symmetric"]
    weights = {name: fractions_of(w) for name, w in skew.weights.items()}
    ((_, other),) = equivalent_weights(Point(model=model, kind="stratum", weights=weights))
    fiber = [weights, model.unflatten(other)]
    assert len(spanning_lines(model, fiber[:1], np.random.default_rng(0), enough=10)) == 10
    assert len(spanning_lines(model, fiber, np.random.default_rng(0), enough=10)) > 10


def test_models_without_a_closure_are_refused_with_advice(answered: Answers) -> None:
    with pytest.raises(NotPolynomialError, match="`dimension`"):
        answered(singular_locus, "softmax(d=[2,2])")


@pytest.mark.parametrize(
    "spec", ["map:t->t^2-1;t^3-t", "map:t->t^3-3*t;t^4-2*t^2", "map:s,t->s^2-1;s^3-s;t"], ids=str
)
@pytest.mark.parametrize("seed", [0, 2])
def test_random_weights_are_not_special(spec: str, seed: int, answered: Answers) -> None:
    """Singular points of these curves have small integers as parameters; a random point is smooth."""
    answer = answered(singular_locus, spec, seed=seed)
    assert answer.strata[0].name == "random weights"
    assert (answer.strata[0].verdict, answer.strata[0].critical) == ("smooth", False)


def test_weights_that_are_single_numbers(engine):
    """The cone a^2, a b, b^2: singular at its vertex."""

    def network(a, b):
        return np.array([a**2, a * b, b**2])

    answer = singular_locus(from_callable(network, {"a": (), "b": ()}), engine=engine)
    assert answer.singular_dim == 0


@pytest.mark.parametrize(
    ("spec", "dim", "degree"),
    [("map:t->t^2;1;t^3", 0, 1), ("map:t->t^2;5;t^3;0", 0, 1), ("map:s,t->s;t;1;s*t", -1, 0)],
)
def test_constant_coordinates_change_nothing(answered: Answers, spec, dim, degree):
    """A cusp, the same in another plane, and a smooth quadric, in an affine subspace."""
    answer = answered(singular_locus, spec)
    assert (answer.singular_dim, answer.singular_degree, answer.certainty.value) == (dim, degree, "computed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "p", "milnor"), [("map:t->t^2;t^103", 101, 102), ("map:t->t^3;t^104", 101, 206)]
)
def test_cusps_of_a_degree_above_the_prime(spec: str, p: int, milnor: int, answered: Answers) -> None:
    """The curve (t^a, t^b), a and b coprime, has the Milnor number (a - 1)(b - 1); over F_p that holds if p divides neither."""
    answer = answered(singular_locus, spec, prime=p)
    assert [c.milnor_number for c in answer.components or ()] == [milnor]
