"""Tangent spaces from both sides: spans of curves never exceed the truth, gradients of equations are gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError
from m2bridge.families import Attention, Lightning
from m2bridge.families.attention_strata import LayerStrata, Orbit, all_orbits, orbit_dim
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.limits import LimitReached, Limits
from m2bridge.questions.closure import Equation
from m2bridge.questions.closure.low_degree import lift_to_integers, low_degree_equations
from m2bridge.questions.closure.result import equation as equation_of
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Context
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_locus.components import maximal_singular
from m2bridge.questions.singular_locus.equations import TangentBounds, decisive
from m2bridge.questions.singular_locus.result import Stratum
from m2bridge.questions.singular_locus.strata import CurvesAt, curves_at_strata, verdicts
from m2bridge.questions.singular_locus.tangents import spanning_lines

P = 32003
RESULTANT = "z0^2*z5^2-z0*z1*z4*z5-2*z0*z2*z3*z5+z0*z2*z4^2+z1^2*z3*z5-z1*z2*z3*z4+z2^2*z3^2"
"""The resultant of the binary quadrics (z0, z1, z2) and (z3, z4, z5): zero exactly when they share a root (d=2, d'=1)."""


def layer(d: int, dp: int, a: int) -> Attention:
    return Lightning(d=d, dp=dp, a=a, t=2, parametrization="attention")


def span(model: Attention, orbit: Orbit, seed: int = 0) -> int:
    return len(spanning_lines(model.free, LayerStrata(model).fiber(orbit), np.random.default_rng(seed)))


@pytest.mark.parametrize(("d", "dp", "a"), [(1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_span_lies_between_the_orbit_and_the_coordinates(d: int, dp: int, a: int) -> None:
    model = layer(d, dp, a)
    for orbit in all_orbits(d, dp, a):
        found = span(model, orbit)
        assert orbit_dim(model, *orbit.representative(d, dp)) <= found <= model.coordinate_count
        assert found == span(model, orbit)  # the seed decides


@pytest.mark.parametrize(
    ("d", "dp", "a", "image_dim"),
    [
        (2, 1, 1, 4),  # q (x) k v: 3d - 2
        (2, 1, 2, 5),  # Corollary 3.3: 2ad - a^2 + dd' - 1
        (2, 2, 1, 6),
        (2, 2, 2, 7),
        (3, 1, 2, 10),
    ],
)
def test_span_at_generic_points_is_the_dimension(d: int, dp: int, a: int, image_dim: int) -> None:
    """A generic point is smooth, so the tangent space there has the dimension of the image, no more and no less."""
    model = layer(d, dp, a)
    rng = np.random.default_rng(3)
    weights = {
        "Q": rng.integers(-4, 5, (a, d)),
        "K": rng.integers(-4, 5, (a, d)),
        "V": rng.integers(-4, 5, (dp, d)),
    }
    free = replace(model, parametrization="weights")
    assert len(spanning_lines(free, [weights], np.random.default_rng(0))) == image_dim


def test_more_points_of_the_fiber_never_lower_the_span() -> None:
    model = layer(2, 1, 2)
    fiber = LayerStrata(model).fiber(Orbit(1, 1, 0))
    assert len(fiber) == 2
    one, both = (len(spanning_lines(model.free, fiber[:n], np.random.default_rng(0))) for n in (1, 2))
    assert one <= both <= model.coordinate_count


def test_span_at_the_resultant_hypersurface() -> None:
    """(2,1,2): smooth exactly where the two quadrics are not proportional, and there the tangent dimension is 5."""
    model = layer(2, 1, 2)
    found = {orbit: span(model, orbit) for orbit in all_orbits(2, 1, 2)}
    assert found[Orbit(2, 1, 1)] == 5
    assert found[Orbit(1, 1, 0)] == 6
    assert found[Orbit(0, 0, 0)] == 6


@pytest.mark.parametrize(("d", "dp", "a"), [(2, 1, 1), (2, 2, 2), (3, 1, 3), (3, 2, 2)])
def test_points_of_a_fiber_have_the_same_image(d: int, dp: int, a: int) -> None:
    model = layer(d, dp, a)
    strata = LayerStrata(model)
    for orbit in all_orbits(d, dp, a):
        fiber = strata.fiber(orbit)
        assert len(fiber) == (2 if orbit == Orbit(1, 1, 0) else 1)
        for weights in fiber:
            image = model.free.coordinates(weights)
            assert np.array_equal(image, model.coordinates(strata.representative(orbit)))


@pytest.mark.parametrize(("d", "dp", "a"), [(2, 1, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 2, 3)])
def test_directions_of_an_orbit_give_its_dimension(d: int, dp: int, a: int) -> None:
    """In (Q, K, V) and in (A, V): the rank of the Lie algebra's action on the image point."""
    model = layer(d, dp, a)
    strata = LayerStrata(model)
    for orbit in all_orbits(d, dp, a):
        exact = {name: value.astype(object) for name, value in strata.fiber(orbit)[0].items()}
        moved = strata.directions(orbit) @ np.asarray(model.free.coordinate_jacobian(exact)).T
        assert np.linalg.matrix_rank(moved.astype(float)) == orbit_dim(model, *orbit.representative(d, dp))


def test_spans_of_curves_are_lower_bounds() -> None:
    """Searches that stop at different counts do not contradict each other: no evidence of curves is an equality."""
    context, strata = context_without_engine(), LayerStrata(layer(2, 2, 2))
    strata.finite_map = lambda stratum: None  # type: ignore[method-assign]
    size = dimension(strata.model, engine=False)
    verdicts(context, strata, size, curves_at_strata(context, strata, size), None, P)
    of_curves = [item for item in context.evidence if item.witness == "curves"]
    assert len(of_curves) == len(strata.strata())
    assert {item.relation for item in of_curves} == {">="}


def context_without_engine(seconds: float | None = None) -> Context:
    limits = Limits(wall_seconds=seconds)
    return Context(engine=False, prime=None, seed=0, limits=limits, keep=None, progress=None)


def read(texts: list[str], prime: int) -> tuple[Equation, ...]:
    names = [f"z{i}" for i in range(6)]
    return tuple(equation_of(parse_polynomial(text, names), range(6), p=prime) for text in texts)


def as_sympy(text: str) -> sympy.Expr:
    return sympy.sympify(text.replace("^", "**"))


def test_reading_and_writing_an_equation() -> None:
    (equation,) = read([RESULTANT], P)
    assert equation.degree == 4
    assert sympy.expand(as_sympy(equation.text()) - as_sympy(RESULTANT)) == 0


@pytest.mark.parametrize(
    "point", [[1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 0, 1], [0] * 6, [1, 0, 0, 0, 0, 0], [0, 5, 0, 7, 0, 0]]
)
def test_values_and_gradients_are_those_of_sympy(point: list[int]) -> None:
    (equation,) = read([RESULTANT], 0)
    z = sympy.symbols("z:6")
    where = dict(zip(z, point, strict=True))
    expression = as_sympy(RESULTANT)
    expected = [int(expression.diff(v).subs(where)) for v in z]
    assert equation.gradient(point) == expected
    assert equation.at(point) == int(expression.subs(where))
    (modular,) = read([RESULTANT], 7)
    assert [value % 7 for value in modular.gradient(point)] == [value % 7 for value in expected]


def test_interpolated_equation_is_the_resultant() -> None:
    (found,), verified = low_degree_equations(layer(2, 1, 2), 4, list, prime=P, seed=0)
    assert verified
    ratio = sympy.Poly(as_sympy(found.text()), modulus=P).monic()
    assert ratio == sympy.Poly(as_sympy(RESULTANT), modulus=P).monic()


def test_lifting_proves_the_true_equation_and_refuses_a_false_one() -> None:
    model = layer(2, 1, 2)
    (true,) = read([RESULTANT], P)
    result = lift_to_integers(model, [true], P)
    assert result is not None
    assert sympy.expand(as_sympy(result[0].text()) - as_sympy(RESULTANT)) == 0
    false = read([RESULTANT.replace("-2*z0*z2*z3*z5", "+2*z0*z2*z3*z5")], P)
    assert lift_to_integers(model, false, P) is None
    assert lift_to_integers(model, [true, *false], P) is None
    assert lift_to_integers(model, [], P) == ()


@pytest.mark.parametrize("prime", [3, 5, 7, 11, 13, 101])
def test_a_prime_too_small_to_guess_from_gives_no_false_lift(prime: int) -> None:
    """Mod 3 the coefficient -2 looks like 1: the guess is wrong there, and substitution must notice."""
    model = layer(2, 1, 2)
    result = lift_to_integers(model, read([RESULTANT], prime), prime)
    if result is not None:
        assert sympy.expand(as_sympy(result[0].text()) - as_sympy(RESULTANT)) == 0
    assert result is not None or prime < 9  # |numerator|, |denominator| <= 2 needs 2 * 2^2 < p
    assert lift_to_integers(model, read(["z0"], prime), prime) is None


def test_a_few_equations_decide_what_all_decide() -> None:
    model = layer(2, 2, 2)
    found, _ = low_degree_equations(model, 4, list, prime=P, seed=0)
    points = [
        model.coordinates(dict(zip("AV", o.representative(2, 2), strict=True))).tolist()
        for o in all_orbits(2, 2, 2)
    ]
    few = decisive(found, points, P)
    assert set(few) <= set(found)

    def rank(equations: tuple[Equation, ...], point: list[int]) -> int:
        gradients = sympy.Matrix([e.gradient(point) for e in equations])
        return int(gradients.applyfunc(lambda x: x % P).to_DM().convert_to(sympy.GF(P)).rank())

    for point in points:
        assert rank(few, point) == rank(found, point)


@pytest.mark.parametrize("prime", [-3, 0, 1, 2, 3, 4, 97, 105, 32001, 32751, 32771, 2**31 - 1, 10**30])
def test_other_primes_are_refused(prime: int) -> None:
    with pytest.raises(InputError, match=f"--prime {prime}.*101 .*32749"):
        singular_locus(Lightning(d=2, dp=1), prime=prime, engine=False)


# -- verdicts from bounds ------------------------------------------------------------------------------------------------------


def by_curves(strata: LayerStrata, size: Dimension, seconds: float | None = None) -> list[Stratum]:
    """The strata as curves and the dense orbit alone decide them, without a finite map."""
    context = context_without_engine(seconds)
    curves: list[CurvesAt] = curves_at_strata(context, strata, size)
    strata.finite_map = lambda stratum: None  # type: ignore[method-assign]
    return verdicts(context, strata, size, curves, None, P)


def bounded(lower: int, upper: int) -> dict[str, str]:
    strata = LayerStrata(Lightning(d=3, dp=1, a=3))
    size = replace(dimension(strata.model, engine=False), lower_bound=lower, upper_bound=upper)
    return {s.name: s.verdict for s in by_curves(strata, size)}


def test_a_lower_bound_of_the_dimension_shows_no_singular_point():
    """M(3,1,3) has dimension 11, and curves span 11 at (2,1,0). With 9 as the lower bound that shows nothing."""
    known = bounded(11, 11)
    assert known["(1,1,0)"] == "singular"
    assert known["(3,1,1)"] == "smooth"  # the dense orbit
    loose = bounded(9, 11)
    assert {loose["(2,1,0)"], loose["(2,1,1)"]} == {"undecided"}
    assert loose["(1,1,0)"] == "singular"  # 15 > 11, the upper bound
    assert set(bounded(9, 18).values()) == {"undecided"}


def test_complete_equations_are_as_sure_as_their_completeness() -> None:
    size = replace(dimension(layer(2, 1, 2), engine=False), lower_bound=5, upper_bound=5)
    bounds = TangentBounds(lower=5, upper=6, sure=Certainty.PROVED)
    assert bounds.verdict(size)[0] == "undecided"  # equations up to a degree never make a point singular
    assert replace(bounds, complete=Certainty.COMPUTED).verdict(size) == ("singular", Certainty.COMPUTED)
    assert replace(bounds, upper=5).verdict(size) == ("smooth", Certainty.PROVED)
    assert replace(bounds, lower=6).verdict(size) == ("singular", Certainty.PROVED)


@pytest.mark.parametrize(("d", "dp", "a", "t"), [(2, 1, 2, 9), (3, 1, 3, 21), (3, 2, 2, 30), (4, 1, 4, 50)])
def test_more_tokens_than_entries_lose_no_rank(d, dp, a, t):
    """Equation 7 does not depend on t >= 2: the bounds at many tokens are those at two, and meet."""
    many, two = (dimension(Lightning(d=d, dp=dp, a=a, t=n), engine=False) for n in (t, 2))
    assert many.lower_bound == many.upper_bound == two.lower_bound == two.upper_bound


def test_no_stratum_is_examined_when_the_time_is_over() -> None:
    strata = LayerStrata(Lightning(d=3, dp=2))
    assert by_curves(strata, dimension(strata.model, engine=False), seconds=0.0) == []


def test_the_time_limit_ends_the_search_for_curves_at_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    """In many coordinates no stratum is examined after the limit: at d = d' = 6 the rest took minutes."""
    model = layer(4, 4, 4)
    size = dimension(model, engine=False)
    context = Context(engine=False, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    answers = iter([None, None])

    def check() -> None:
        if next(answers, "over") == "over":
            raise LimitReached("the reason")

    monkeypatch.setattr(type(context.clock), "check", lambda clock: check())
    examined = curves_at_strata(context, LayerStrata(model), size)
    assert len(examined) == 2
    assert (context.limit or "").startswith("the reason")


def test_strata_that_were_not_examined_leave_the_singular_locus_open() -> None:
    strata, size = LayerStrata(layer(2, 1, 2)), dimension(layer(2, 1, 2), engine=False)
    context = Context(engine=False, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    curves = curves_at_strata(context, strata, size)
    decided = [replace(s, verdict="singular") for s in verdicts(context, strata, size, curves, None, P)]
    assert maximal_singular(strata, curves, decided) is not None
    assert maximal_singular(strata, curves[:-1], decided[:-1]) is None
