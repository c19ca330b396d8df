"""Fibers whose shape is a theorem or follows from a short derivation, computed with the real Macaulay2.

Degrees of orbits. A torus orbit {(lambda^(e_1) w_1, ..., lambda^(e_n) w_n)} with all w_i != 0 has as degree the normalized volume
of the convex hull of 0 and the exponents e_i (Kushnirenko), when they span the lattice.
(A, V): exponents 1, -1: volume 2, a conic.
(M_1, M_2, L): (1,0), (0,1), (-3,-1): triangles with 0 of areas 1, 3, 1: volume 5 (Equation 13 with l = 2).
A neuron (row, column) = (lambda, lambda^-r): volume 1 + r; two neurons: a product of two such curves, of degree 2 * area of
the hull of (1,0), (-r,0), (0,1), (0,-r): (1 + r)^2.
Filters (2,2): lambda, lambda^-r: 1 + r; filters (2,2,2), r = 2: the hull of (1,0), (-2,1), (0,-2) and 0, volume 7.
"""

from __future__ import annotations

import pytest

from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.families import parse_spec
from m2bridge.families.attention_strata import all_orbits
from m2bridge.questions.fiber import Fiber, fiber
from tests.marking import slow_except


def ask(engine: Engine, spec: str, at: object = None, *, twice: bool = True) -> Fiber:
    """The answer; `twice`: the verdict has two definitions.

    It has one where an argument decides and components were not computed or do not decide, and where components decide: beside
    them stand ranks, which do not count orbits.
    """
    result = fiber(parse_spec(spec), at=at, engine=engine)
    assert result.agreement is (True if twice else None), result.conflicts
    return result


def shapes(result: Fiber) -> list[tuple[int, int | None, int | None]]:
    return [(c.dim, c.degree, c.multiplicity) for c in result.components or ()]


def strata_of(*sizes: tuple[int, int]) -> list[object]:
    return [
        pytest.param(d, dp, a, orbit, id=f"{d},{dp},{a}-{orbit}")
        for d, dp in sizes
        for a in range(1, d + 1)
        for orbit in all_orbits(d, dp, a)
    ]


def check_stratum(engine, d, dp, a, orbit):
    """Henry, Marchetti, Kohn, Theorem 3.2: one conic; two when rk A = rk V = 1; {A = 0} and {V = 0} for the zero function.

    When v and k are proportional the two conics merge with multiplicity d: up to scaling (k + x)(k + y) = k^2 in Sym2 with
    x, y modulo k gives y = -x to first order and then all x_i x_j = 0, a local ring with basis 1, x_1, ..., x_(d-1).
    """
    at = f"rank_a={orbit.rank_a},rank_v={orbit.rank_v},meet={orbit.meet}"
    result = ask(engine, f"lightning(d={d},dp={dp},a={a},parametrization=attention)", at)
    bounded = a * (2 * d - a)  # dimension of {rk A <= a}
    found = shapes(result)
    if orbit.is_zero:
        assert sorted(dim for dim, _, _ in found) == sorted([bounded, d * dp])
        assert result.verdict == "not-identifiable"
    elif (orbit.rank_a, orbit.rank_v, orbit.meet) == (1, 1, 0):
        assert found == [(1, 2, 1), (1, 2, 1)]
        assert result.verdict == "finite-up-to-symmetry"
    elif (orbit.rank_a, orbit.rank_v, orbit.meet) == (1, 1, 1):
        assert found == [(1, 2, d)]
        assert result.components is not None
        assert result.components[0].reduced is False
        assert result.verdict == "identifiable-up-to-symmetry"
    else:
        assert [shape[:2] for shape in found] == [(1, 2)]
        assert result.verdict == "identifiable-up-to-symmetry"
    assert result.certainty is Certainty.THEOREM
    assert result.theorem is not None
    assert result.theorem.agrees is True


@pytest.mark.parametrize(("d", "dp", "a", "orbit"), strata_of((2, 1)))
def test_every_stratum_of_the_smallest_layer(engine, d, dp, a, orbit):
    check_stratum(engine, d, dp, a, orbit)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "dp", "a", "orbit"), strata_of((2, 2), (3, 1), (3, 2), (3, 3)))
def test_every_stratum(engine, d, dp, a, orbit):
    check_stratum(engine, d, dp, a, orbit)


@pytest.mark.parametrize(("d", "dp", "a"), [(2, 1, 1), (2, 1, 2), (3, 2, 3)])
def test_queries_and_keys(engine, d, dp, a):
    """Theorem 3.2 and Lemma 3.1: 1 + a^2 for a <= d; for (2,1,1) rk A = rk V = 1 generically, hence two components."""
    result = ask(engine, f"lightning(d={d},dp={dp},a={a})")
    assert result.fiber_dim == result.generic_fiber_dim == 1 + a * a
    assert len(result.components or ()) == (2 if a == dp == 1 else 1)


def test_more_queries_than_columns(engine):
    """a > d: (Q, K) -> A is onto with fibers of dimension 2ad - d^2; with the scaling 1 + 2ad - d^2 = 9 for a = 3, d = 2."""
    assert ask(engine, "lightning(d=2,dp=1,a=3)", twice=False).fiber_dim == 9


DEEP = "deep-lightning(d=[2,2,2],a=[2,2],t={t},parametrization=virtual)"


@pytest.mark.parametrize("t", [2, 3])
def test_two_layers(engine, t):
    """Theorem 3.7 (t = 3): one orbit of the torus of Equation 13, of dimension 2 and degree 5."""
    result = ask(engine, DEEP.format(t=t))
    assert shapes(result) == [(2, 5, 1)]
    assert result.verdict == "identifiable-up-to-symmetry"


def test_a_skew_first_layer(engine):
    """(J, N, L) and (N, J, L / det N) are the same function, so there are two orbits, each of degree 5; the printed theorem
    says one.
    """
    at = {"M1": [[0, 1], [-1, 0]], "M2": [[3, 5], [2, 7]], "L": [[2, 3], [5, 11]]}
    result = ask(engine, DEEP.format(t=3), at, twice=False)
    assert shapes(result) == [(2, 5, 1), (2, 5, 1)]
    assert result.theorem is not None
    assert (result.theorem.applies, result.theorem.agrees) == (True, False)
    assert result.counterexample is not None
    assert result.counterexample["verified"] is True
    assert result.counterexample["other"]["L"] == [["2/11", "3/11"], ["5/11", "1"]]


def test_a_first_layer_of_rank_one(engine):
    """M_1 = k q^T: phi = L S k (q^T S q) (k^T S M_2 S k) q^T X with S = X X^T sees the symmetric part of M_2 only, so that the
    skew part, one parameter for d = 2, is free: dimension 2 + 1.
    """
    result = ask(
        engine, DEEP.format(t=2), {"M1": [[1, 2], [3, 6]], "M2": [[3, 5], [2, 7]], "L": [[2, 3], [5, 11]]}
    )
    assert result.fiber_dim == 3
    assert result.verdict == "not-identifiable"


@pytest.mark.parametrize("t", [2, 3])
def test_width_three(engine, t):
    """Theorem 3.7 for t = 3; the same at t = 2."""
    result = ask(engine, f"deep-lightning(d=[3,3,3],t={t},parametrization=virtual)", twice=False)
    assert (result.fiber_dim, result.orbits, result.component_count) == (2, 1, 1)
    assert (result.verdict, result.certainty.value) == ("identifiable-up-to-symmetry", "theorem")
    assert result.method == "argument"


@pytest.mark.parametrize(
    ("stratum", "verdict"),
    # M_1 = k q^T: see test_a_first_layer_of_rank_one; M_2 = k q^T with rk L = 3: Theorem 3.2 for the last layer
    [("m1=rank1", "not-identifiable"), ("m2=rank1", "identifiable-up-to-symmetry")],
)
def test_width_three_with_a_matrix_of_rank_one(engine, stratum, verdict):
    result = ask(engine, "deep-lightning(d=[3,3,3],t=2,parametrization=virtual)", stratum, twice=False)
    assert (result.verdict, result.certainty.value) == (verdict, "theorem")


def test_three_layers_of_width_two(engine):
    """Theorem 3.7 with l = 3 (its hypothesis t >= 3 is not needed here): one orbit of a torus of dimension 3."""
    result = ask(engine, "deep-lightning(d=[2,2,2,2],t=2,parametrization=virtual)", twice=False)
    assert (result.fiber_dim, result.orbits, result.component_count) == (3, 1, 1)
    assert (result.verdict, result.certainty.value) == ("identifiable-up-to-symmetry", "theorem")


@pytest.mark.parametrize("parametrization", slow_except({"attention"}, ["attention", "weights"]))
def test_deep_networks_in_finer_weights(engine, parametrization):
    """Lemma 3.5 adds (l-1) delta^2 = 4, Lemma 3.1 a_1^2 + a_2^2 = 8 to the two scalings."""
    result = ask(engine, f"deep-lightning(d=[2,2,2],a=[2,2],t=2,parametrization={parametrization})")
    assert result.fiber_dim == result.generic_fiber_dim == (6 if parametrization == "attention" else 14)
    assert result.verdict == "identifiable-up-to-symmetry"


@pytest.mark.parametrize("r", [2, 3])
def test_perceptrons(engine, r):
    """Two outputs, sums of r-th powers of the same two linear forms in two variables. For r = 2 they diagonalize a generic
    pencil of binary quadrics, for r = 3 Sylvester's theorem makes the two cubes of a generic cubic unique: in both
    cases the pair of forms is unique up to scalings and order, so that there are 2! orbits of degree (1 + r)^2.
    """
    result = ask(engine, f"mlp(widths=[2,2,2],r={r})", twice=False)
    assert shapes(result) == [(2, (1 + r) ** 2, 1)] * 2
    assert (result.orbits, result.verdict) == (2, "identifiable-up-to-symmetry")
    assert "2!" in result.explanation


@pytest.mark.parametrize(("filters", "degree"), [("[2,2]", 3), ("[3,3]", 3), ("[2,2,2]", 7)])
def test_convolutions(engine, filters, degree):
    """Shahverdi, Marchetti, Kohn, arXiv:2410.00722: for r > 1 generic fibers are orbits of the scalings."""
    result = ask(engine, f"convolution(filters={filters},r=2)", twice=False)
    assert result.verdict == "identifiable-up-to-symmetry"
    assert result.degree == degree
