"""Orbits and components over the algebraic closure, by Macaulay2, against counts by other means."""

from __future__ import annotations

from itertools import product
from math import comb, factorial

import numpy as np
import pytest
import sympy

from m2bridge.engine import Engine
from m2bridge.questions.fiber import Fiber, fiber


def ask(engine: Engine, spec: str, at: object = None, seed: int = 0) -> Fiber:
    result = fiber(spec, at=at, engine=engine, seed=seed)
    assert result.agreement is not False, result.conflicts
    return result


# -- convolutions with r = 1: products of polynomials, so orbits are ways to distribute the roots -------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_convolution_has_three_orbits_for_every_seed(engine, seed):
    """Linear times quadratic: any of the three roots over the closure, however the cubic factors over F_p."""
    result = ask(engine, "convolution(filters=[2,3],r=1)", seed=seed)
    assert (result.orbits, result.component_count, len(result.components or ())) == (3, 3, 3)
    assert result.verdict == "finite-up-to-symmetry"
    assert all(c.absolute and (c.dim, c.degree) == (1, 2) for c in result.components or ())


@pytest.mark.parametrize(
    ("filters", "orbits"),
    [
        ((2, 2), comb(2, 1)),
        pytest.param((3, 3), comb(4, 2), marks=pytest.mark.slow),
        ((2, 2, 2), factorial(3)),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_products_of_polynomials(engine, filters, orbits, seed):
    result = ask(engine, f"convolution(filters={list(filters)},r=1)".replace(" ", ""), seed=seed)
    assert (result.orbits, result.component_count) == (orbits, orbits)


@pytest.mark.parametrize("seed", range(4))
def test_products_with_repeated_roots(engine, seed):
    """Orbits are the divisors of degree k_1 - 1 of the product up to scalars: multisets of the roots given."""
    rng = np.random.default_rng(seed)
    roots = [int(x) for x in rng.integers(1, 3, size=4)]
    x = sympy.Symbol("x")
    parts = (roots[:2], roots[2:])
    at = {}
    for name, part in zip(("w1", "w2"), parts, strict=True):
        polynomial = sympy.Poly(sympy.prod([x - r for r in part]), x)
        at[name] = [int(c) for c in polynomial.all_coeffs()]
    expected = sum(
        1 for chosen in product(*(range(roots.count(r) + 1) for r in sorted(set(roots)))) if sum(chosen) == 2
    )
    result = ask(engine, "convolution(filters=[3,3],r=1)", at)
    assert result.orbits == expected


# -- maps of one variable, and maps without symmetries -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_points_of_a_zero_dimensional_fiber_are_counted_over_the_closure(engine, seed):
    """x -> f(x) at an integer: as many points as f - f(x_0) has different roots, from its square-free part over QQ."""
    rng = np.random.default_rng(seed)
    x = sympy.Symbol("x")
    f = sympy.Poly([int(c) for c in rng.integers(1, 9, size=rng.integers(3, 7))], x)
    start = int(rng.integers(-3, 4))
    difference = f - f.eval(start)
    expected = sympy.Poly(sympy.quo(difference, sympy.gcd(difference, difference.diff(x))), x).degree()
    result = ask(engine, f"map:x->{str(f.as_expr()).replace('**', '^').replace(' ', '')}", {"x": start})
    assert (result.fiber_dim, result.orbits, result.component_count) == (0, expected, expected)
    assert result.verdict == ("identifiable-up-to-symmetry" if expected == 1 else "finite-up-to-symmetry")


@pytest.mark.parametrize(
    ("form", "lines"), [("x^2-2*y^2", 2), ("x^2+y^2", 2), ("x^3-2*y^3", 3), ("x^2-9*y^2", 2), ("x^2", 1)]
)
@pytest.mark.parametrize("prime", [32003, 31991, 101])
def test_lines_that_are_conjugate_over_the_field_are_counted(engine, form, lines, prime):
    """A binary form at the origin is that many lines, whatever splits over F_p.

    On those of a cubic form every point is an orbit. On those of a quadratic form linear symmetries move the points, but not
    the origin: that there are finitely many orbits is not shown.
    """
    result = fiber(f"map:x,y->{form}", at={"x": 0, "y": 0}, engine=engine, prime=prime)
    assert result.agreement is not False, result.conflicts
    assert (result.component_count, len(result.components or ())) == (lines, lines)
    assert (result.verdict, result.orbits) == ("not-identifiable" if "^3" in form else "undecided", None)


# -- small orbits in the closure of large ones --------------------------------------------------------------------------------


def test_three_orbits_in_two_components(engine):
    """A V = 0 with one number each: the two axes, and the origin is an orbit too."""
    for at in ({"A": [[1]], "V": [[0]]}, {"A": [[0]], "V": [[0]]}, {"A": [[0]], "V": [[5]]}):
        result = ask(engine, "lightning(d=1,dp=1,a=1,t=2,parametrization=attention)", at)
        assert (result.orbits, result.component_count, result.verdict) == (3, 2, "finite-up-to-symmetry")
        assert result.certainty.value == "theorem"


@pytest.mark.parametrize(
    ("spec", "orbits", "verdict"),
    [
        ("linear(widths=[2,2,1])", 2, "finite-up-to-symmetry"),
        ("linear(widths=[2,1,2])", 1, "identifiable-up-to-symmetry"),
        (
            "linear(widths=[3,2,1])",
            None,
            "not-identifiable",
        ),  # dim 5 with orbits of dim 4: ker W_1, a line in ker W, moves
        ("linear(widths=[6,6,1])", None, "open-orbit"),
        ("deep-lightning(d=[5,5,1],a=[2,1],t=2)", None, "open-orbit"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_open_orbits_are_not_taken_for_the_fiber(engine, spec, orbits, verdict, seed):
    """[2,2,1] and [6,6,1]: where W_1 loses rank its row space is one, respectively infinitely many, of those that contain W."""
    result = ask(engine, spec, seed=seed)
    assert (result.orbits, result.verdict) == (orbits, verdict)


def test_a_perceptron_with_a_superfluous_neuron(engine):
    """W_1 = 1, W_2 = (1, 0), r = 3: the second neuron's row is arbitrary where its weight is zero, a line's worth of orbits."""
    result = ask(engine, "mlp(widths=[2,2,1],r=3)", {"W1": [[1, 0], [0, 1]], "W2": [[1, 0]]})
    assert result.verdict == "not-identifiable"
    generic = ask(
        engine, "mlp(widths=[2,2,1],r=3)"
    )  # Sylvester: two cubes of a generic binary cubic, 2! orders
    assert (generic.orbits, generic.verdict) == (2, "identifiable-up-to-symmetry")


def test_a_vanishing_filter(engine):
    """The zero function of a convolution: a filter is zero and the other is arbitrary."""
    result = ask(engine, "convolution(filters=[2,2],r=2)", {"w1": [1, 2], "w2": [0, 0]})
    assert (result.verdict, result.orbits) == ("not-identifiable", None)


@pytest.mark.parametrize("seed", range(3))
def test_macaulay2_and_the_argument_count_alike(engine, seed):
    """One layer by (A, V) at every rank one stratum and at random: components over the closure against unique factorization."""
    rng = np.random.default_rng(seed)
    k, v, q, h = (rng.integers(1, 9, size=2) for _ in range(4))
    result = ask(
        engine,
        "lightning(d=2,dp=2,parametrization=attention)",
        {"A": np.outer(k, q).tolist(), "V": np.outer(h, v).tolist()},
    )
    values = {e.value for e in result.evidence if e.quantity == "orbits" and e.relation == "="}
    witnesses = {e.witness for e in result.evidence if e.quantity == "orbits" and e.relation == "="}
    assert values == {1 if k[0] * v[1] == k[1] * v[0] else 2}
    assert witnesses == {"argument", "macaulay2"}


FIBERS = [
    # finite maps: powers, elementary symmetric functions (3! orders), complex squaring (each of x + iy, x - iy has two roots)
    ("map:x->x^4", None, 0, [(0, 1, 1)] * 4),
    ("map:x->x^5-5*x^3+5*x", None, 0, [(0, 1, 1)] * 5),
    ("map:x,y->x^2;y^3", None, 0, [(0, 1, 1)] * 6),
    ("map:x,y,z->x+y+z;x*y+y*z+x*z;x*y*z", None, 0, [(0, 1, 1)] * 6),
    ("map:x,y->x^2-y^2;2*x*y", None, 0, [(0, 1, 1)] * 4),
    # a sphere; three planes; a double line; two conjugate lines; a cuspidal cubic
    ("map:x,y,z->x^2+y^2+z^2", None, 2, [(2, 2, 1)]),
    ("map:x,y,z->x*y*z", {"x": 0, "y": 1, "z": 1}, 2, [(2, 1, 1)] * 3),
    ("map:x,y->x^2", {"x": 0, "y": 1}, 1, [(1, 1, 2)]),
    ("map:x,y->x^2-2*y^2", {"x": 0, "y": 0}, 1, [(1, 1, 1)] * 2),
    ("map:x,y->x^3-y^2", {"x": 0, "y": 0}, 1, [(1, 3, 1)]),
    # components of different dimension, an embedded point, multiplicities 2 and 3 (x^2 = y z and x z = 0: degree 4 = 1 + 3)
    ("map:x,y,z->x*y;x*z", {"x": 0, "y": 0, "z": 0}, 2, [(1, 1, 1), (2, 1, 1)]),
    ("map:x,y->x^2;x*y", {"x": 0, "y": 0}, 1, [(1, 1, 1)]),
    ("map:x,y->x^2*(x-1);y*(x-1)", {"x": 1, "y": 5}, 1, [(0, 1, 2), (1, 1, 1)]),
    ("map:x,y,z->x^2-y*z;x*z", {"x": 0, "y": 0, "z": 0}, 1, [(1, 1, 1), (1, 1, 3)]),
]


@pytest.mark.parametrize(("spec", "at", "dim", "components"), FIBERS)
def test_fibers_of_maps_by_hand(
    engine: Engine, spec: str, at: dict | None, dim: int, components: list
) -> None:
    result = fiber(spec, at=at, engine=engine)
    assert result.agreement is not False, result.conflicts
    assert (result.fiber_dim, result.component_count) == (dim, len(components))
    assert sorted((c.dim, c.degree, c.multiplicity) for c in result.components or ()) == components
