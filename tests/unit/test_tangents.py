"""Tangent spaces from both sides: spans of curves never exceed the truth, gradients of equations are gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from m2bridge.errors import InputError
from m2bridge.families import Attention, Lightning
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.limits import Clock
from m2bridge.questions.closure import Equation
from m2bridge.questions.closure.result import equation as equation_of
from m2bridge.questions.dimension import dimension
from m2bridge.questions.orbits import Orbit, all_orbits, orbit_dim
from m2bridge.questions.singular_locus import check_model, tangents
from m2bridge.questions.singular_locus import strata as strata_of
from m2bridge.questions.singular_locus.layer import (
    decisive,
    degree_counts,
    interpolated,
    lifted,
)
from m2bridge.questions.singular_locus.strata import examine
from m2bridge.questions.singular_locus.tangents import exact_span

P = 32003
RESULTANT = "z0^2*z5^2-z0*z1*z4*z5-2*z0*z2*z3*z5+z0*z2*z4^2+z1^2*z3*z5-z1*z2*z3*z4+z2^2*z3^2"
"""The resultant of the binary quadrics (z0, z1, z2) and (z3, z4, z5): zero exactly when they share a root (d=2, d'=1)."""


def layer(d: int, dp: int, a: int) -> Attention:
    return Lightning(d=d, dp=dp, a=a, t=2, parametrization="attention")


def span(model: Attention, A: np.ndarray, V: np.ndarray, seed: int = 0) -> int:
    free = replace(model, parametrization="weights")
    return exact_span(free, strata_of.fiber_points(model, A, V), np.random.default_rng(seed))


@pytest.mark.parametrize(("d", "dp", "a"), [(1, 1, 1), (2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_span_lies_between_the_orbit_and_the_coordinates(d: int, dp: int, a: int) -> None:
    model = layer(d, dp, a)
    for orbit in all_orbits(d, dp, a):
        A, V = orbit.representative(d, dp)
        found = span(model, A, V)
        assert orbit_dim(model, A, V) <= found <= model.coordinate_count
        assert found == span(model, A, V)  # the seed decides


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
    assert exact_span(free, [weights], np.random.default_rng(0)) == image_dim


def test_more_points_of_the_fiber_never_lower_the_span() -> None:
    model = layer(2, 1, 2)
    free = replace(model, parametrization="weights")
    fiber = strata_of.fiber_points(model, *Orbit(1, 1, 0).representative(2, 1))
    assert len(fiber) == 2
    one, both = (exact_span(free, fiber[:n], np.random.default_rng(0)) for n in (1, 2))
    assert one <= both <= model.coordinate_count


def test_span_at_the_resultant_hypersurface() -> None:
    """(2,1,2): smooth exactly where the two quadrics are not proportional, and there the tangent dimension is 5."""
    model = layer(2, 1, 2)
    found = {orbit: span(model, *orbit.representative(2, 1)) for orbit in all_orbits(2, 1, 2)}
    assert found[Orbit(2, 1, 1)] == 5
    assert found[Orbit(1, 1, 0)] == 6
    assert found[Orbit(0, 0, 0)] == 6


@pytest.mark.parametrize(("d", "dp", "a"), [(2, 1, 1), (2, 2, 2), (3, 1, 3), (3, 2, 2)])
def test_points_of_a_fiber_have_the_same_image(d: int, dp: int, a: int) -> None:
    model = layer(d, dp, a)
    free = replace(model, parametrization="weights")
    for orbit in all_orbits(d, dp, a):
        A, V = orbit.representative(d, dp)
        fiber = strata_of.fiber_points(model, A, V)
        assert len(fiber) == (2 if orbit == Orbit(1, 1, 0) else 1)
        for weights in fiber:
            assert np.array_equal(free.coordinates(weights), model.coordinates({"A": A, "V": V}))


def test_moving_a_fiber_moves_its_image_once() -> None:
    """Both points of a fiber, moved by the same group element, still have one image."""
    model = layer(3, 2, 3)
    free = replace(model, parametrization="weights")
    fiber = strata_of.fiber_points(model, *Orbit(1, 1, 0).representative(3, 2))
    images = [free.coordinates(strata_of.moved(w, np.random.default_rng(1))) for w in fiber]
    assert np.allclose(images[0], images[1])
    assert not np.allclose(images[0], free.coordinates(fiber[0]))


def test_float_and_exact_spans_agree() -> None:
    model = layer(2, 2, 2)
    for index, orbit in enumerate(all_orbits(2, 2, 2)):
        A, V = orbit.representative(2, 2)
        numeric = strata_of.numeric_tangent(model, strata_of.fiber_points(model, A, V), (0, 5, index))
        assert numeric.rank == span(model, A, V)


def test_the_search_for_curves_goes_on_below_what_floats_suggest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that gives up at once finds less than the span; the expected dimension makes it try again."""
    monkeypatch.setattr(tangents, "_IDLE_CURVES", 0)
    model = layer(3, 3, 3)
    A, V = Orbit(1, 2, 1).representative(3, 3)
    fiber = strata_of.fiber_points(model, A, V)
    expected = strata_of.numeric_tangent(model, fiber, (0, 5, 0)).rank
    free = replace(model, parametrization="weights")
    early = tangents.spanning_lines(free, fiber, np.random.default_rng(0))
    whole = tangents.spanning_lines(free, fiber, np.random.default_rng(0), expected=expected)
    assert len(early) < len(whole) == expected


def test_counts_of_random_curves_are_lower_bounds() -> None:
    """Two searches that stop at different counts do not contradict each other."""
    orbits = all_orbits(2, 2, 2)
    points = [orbit.representative(2, 2) for orbit in orbits]
    _, evidence = strata_of._curves(layer(2, 2, 2), orbits, points, 0, Clock())
    assert {item.relation for item in evidence} == {">="}


def read(texts: list[str], prime: int) -> tuple[Equation, ...]:
    names = [f"z{i}" for i in range(6)]
    return tuple(equation_of(parse_polynomial(text, names), range(6), p=prime) for text in texts)


def as_sympy(text: str) -> sympy.Expr:
    return sympy.sympify(text.replace("^", "**"))


def test_reading_and_writing_an_equation() -> None:
    (equation,) = read([RESULTANT], P)
    assert equation.degree == 4
    assert sympy.expand(as_sympy(equation.text()) - as_sympy(RESULTANT)) == 0
    assert degree_counts([equation]) == {"4": 1}


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
    (found,) = interpolated(layer(2, 1, 2), P, 0, 4)
    ratio = sympy.Poly(as_sympy(found.text()), modulus=P).monic()
    assert ratio == sympy.Poly(as_sympy(RESULTANT), modulus=P).monic()


def test_lifting_proves_the_true_equation_and_refuses_a_false_one() -> None:
    model = layer(2, 1, 2)
    (true,) = read([RESULTANT], P)
    result = lifted(model, [true], P)
    assert result is not None
    assert sympy.expand(as_sympy(result[0].text()) - as_sympy(RESULTANT)) == 0
    false = read([RESULTANT.replace("-2*z0*z2*z3*z5", "+2*z0*z2*z3*z5")], P)
    assert lifted(model, false, P) is None
    assert lifted(model, [true, *false], P) is None
    assert lifted(model, [], P) == ()


@pytest.mark.parametrize("prime", [3, 5, 7, 11, 13, 101])
def test_a_prime_too_small_to_guess_from_gives_no_false_lift(prime: int) -> None:
    """Mod 3 the coefficient -2 looks like 1: the guess is wrong there, and substitution must notice."""
    model = layer(2, 1, 2)
    result = lifted(model, read([RESULTANT], prime), prime)
    if result is not None:
        assert sympy.expand(as_sympy(result[0].text()) - as_sympy(RESULTANT)) == 0
    assert result is not None or prime < 9  # |numerator|, |denominator| <= 2 needs 2 * 2^2 < p
    assert lifted(model, read(["z0"], prime), prime) is None


def test_a_few_equations_decide_what_all_decide() -> None:
    model = layer(2, 2, 2)
    found = interpolated(model, P, 0, 4)
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


@pytest.mark.parametrize("prime", [101, 103, 32003, 32749])
def test_primes_that_macaulay2_takes(prime: int) -> None:
    check_model(Lightning(d=2, dp=1), prime)


@pytest.mark.parametrize("prime", [-3, 0, 1, 2, 3, 4, 97, 105, 32001, 32751, 32771, 2**31 - 1, 10**30])
def test_other_primes_are_refused(prime: int) -> None:
    with pytest.raises(InputError, match=f"--prime {prime}: give a prime number from 101 to 32749"):
        check_model(Lightning(d=2, dp=1), prime)


# -- verdicts from bounds ------------------------------------------------------------------------------------------------------


def verdicts(lower: int, upper: int) -> dict[tuple[int, int, int], str]:
    model = Lightning(d=3, dp=1, a=3, t=2, parametrization="attention", coordinate_system="segre")
    orbits = all_orbits(3, 1, 3)
    strata, *_ = examine(model, orbits, (lower, upper), (), None, None, prime=32003, seed=0)
    return {(s.rank_a, s.rank_v, s.meet): s.verdict for s in strata}


def test_a_lower_bound_of_the_dimension_shows_no_singular_point():
    """M(3,1,3) has dimension 11, and curves span 11 at (2,1,0). With 9 as the lower bound that says nothing."""
    known = verdicts(11, 11)
    assert known[1, 1, 0] == "singular"
    assert known[3, 1, 1] == "smooth"  # the dense orbit
    loose = verdicts(9, 11)
    assert {loose[r, 1, c] for r, c in ((2, 0), (2, 1))} == {"undecided"}
    assert loose[1, 1, 0] == "singular"  # 15 > 11, the upper bound
    assert set(verdicts(9, 18).values()) == {"undecided"}


@pytest.mark.parametrize(("d", "dp", "a", "t"), [(2, 1, 2, 9), (3, 1, 3, 21), (3, 2, 2, 30), (4, 1, 4, 50)])
def test_more_tokens_than_entries_lose_no_rank(d, dp, a, t):
    """Equation 7 does not depend on t >= 2: the bounds at many tokens are those at two, and meet."""
    many, two = (dimension(Lightning(d=d, dp=dp, a=a, t=n), engine=False) for n in (t, 2))
    assert many.lower_bound == many.upper_bound == two.lower_bound == two.upper_bound


def test_no_curves_are_looked_for_when_the_time_is_over() -> None:
    # M(3,2,3) in 36 coordinates: 9 + 6 - 1 = 14 dimensions
    model = Lightning(d=3, dp=2, parametrization="attention")
    orbits = all_orbits(3, 2, 3)
    strata, _, lines = examine(
        model, orbits, (14, 14), (), None, None, prime=32003, seed=0, clock=Clock(seconds=0.0)
    )
    assert lines == [[]] * len(orbits)
    # the dense orbit of a reduced variety is smooth without curves, the others are left open
    assert [s.verdict for s in strata] == ["undecided"] * (len(orbits) - 1) + ["smooth"]
