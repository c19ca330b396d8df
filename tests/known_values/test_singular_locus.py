"""Singular strata, dimensions and degrees that can be derived by hand, for one layer of lightning attention.

Notation: (d, d', a) for X -> V X X^T A X, V of size d' x d, A of size d x d and rank <= a; a stratum is (rk A, rk V,
dim(col A meet row V)), (0, 0, 0) the zero function. "Paper" is Henry, Marchetti, Kohn, arXiv:2408.17221.

Which strata are singular. In Segre coordinates (Proposition A.5) the point of (A, V) is the list of products
alpha_m nu_n of the columns of A and the rows of V as linear forms.

1. rk A * rk V >= 2: two products share a factor and differ in the other, so by unique factorization the products give
   back all alpha_m and nu_n up to (s A, V / s): the fiber is one point, and the same argument to first order makes the
   differential injective modulo the scaling. The map from P{rk A <= a} x P^(dd'-1) is finite and birational, so near such
   a point the variety is {rk A <= a} x P^(dd'-1): smooth exactly when {rk A <= a} is smooth at A, that is a >= d or
   rk A = a (Harris, Algebraic Geometry, Example 14.16: the singular locus of a determinantal variety).
2. rk A * rk V = 1 and (a, d') != (1, 1): A = k q^T, V = h v^T has image q (x) h (x) k v, and (v q^T, h k^T) has the
   same: the fiber of the finite birational map has two points, or is not reduced when v = k. Over a smooth (hence
   normal) point such a map is an isomorphism (Zariski's main theorem): singular.
3. zero function: the variety is a cone that is not a linear space: singular.
4. a = d' = 1: the variety is q (x) S, S of rank <= 2 as a symmetric matrix. For d = 2 that is every S: the cone over the
   Segre variety P^1 x P^2, singular at 0 alone. For d >= 3, {rk S <= 2} is singular exactly where rk S <= 1, which is
   v = k (Harris, Example 22.31): the stratum (1, 1, 1).

So Theorem 3.4 as printed ("singular exactly when rk A * rk V <= 1") fails for 1 < a < d at rk A < a, rk V >= 2.
"""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.families import Lightning
from m2bridge.families.attention_strata import LayerStrata, Orbit
from m2bridge.limits import Limits
from m2bridge.questions.closure.low_degree import low_degree_equations
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Context
from m2bridge.questions.singular_locus import SingularLocus, singular_locus
from m2bridge.questions.singular_locus.equations import VanishingEquations
from m2bridge.questions.singular_locus.strata import curves_at_strata, verdicts

Size = tuple[int, int, int]
ZERO = (0, 0, 0)

SINGULAR: dict[Size, set[tuple[int, int, int]]] = {
    (2, 1, 1): {ZERO},  # 4
    (2, 1, 2): {ZERO, (1, 1, 0), (1, 1, 1)},  # 2: where the two binary quadrics are proportional
    (2, 2, 1): {ZERO, (1, 1, 0), (1, 1, 1)},
    (2, 2, 2): {ZERO, (1, 1, 0), (1, 1, 1)},
    (3, 1, 1): {ZERO, (1, 1, 1)},  # 4
    (3, 1, 2): {ZERO, (1, 1, 0), (1, 1, 1)},  # rk A < a means rk A * rk V <= 1 here
    (3, 1, 3): {ZERO, (1, 1, 0), (1, 1, 1)},
    (3, 2, 1): {ZERO, (1, 1, 0), (1, 1, 1)},
    (3, 2, 2): {ZERO, (1, 1, 0), (1, 1, 1), (1, 2, 0), (1, 2, 1)},  # 1 < a < d: rk A = 1 < a is singular too
    (3, 2, 3): {ZERO, (1, 1, 0), (1, 1, 1)},
    (3, 3, 2): {ZERO, (1, 1, 0), (1, 1, 1), (1, 2, 0), (1, 2, 1), (1, 3, 1)},
    (4, 2, 2): {ZERO, (1, 1, 0), (1, 1, 1), (1, 2, 0), (1, 2, 1)},
}
"""By the derivation above, written out; every other stratum is smooth."""

SLOW = {(3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2)}
SIZES = [
    pytest.param(size, marks=[pytest.mark.slow] if size in SLOW else [], id="-".join(map(str, size)))
    for size in SINGULAR
]
RESULTS: dict[Size, SingularLocus] = {}


def computed(size: Size, engine: Engine) -> SingularLocus:
    """The answer for a size, computed once a session."""
    if size not in RESULTS:
        d, dp, a = size
        RESULTS[size] = singular_locus(Lightning(d=d, dp=dp, a=a), engine=engine)
    return RESULTS[size]


def image_dim(d: int, dp: int, a: int) -> int:
    """Paper, Corollary 3.3: 2ad - a^2 + dd' - 1; for a = d' = 1 q (x) k v has three vectors less two scalings."""
    return 3 * d - 2 if a == dp == 1 else 2 * a * d - a * a + d * dp - 1


@pytest.mark.parametrize("size", SIZES)
def test_verdict_of_every_stratum(size: Size, engine: Engine) -> None:
    """Dimension and degree have two definitions where Macaulay2 finds the radical: by it, and by orbits and a finite map."""
    result = computed(size, engine)
    assert result.agreement is not False, result.conflicts
    if size in {(2, 1, 1), (2, 1, 2)}:
        assert result.weighed.twice == ("singular_dim", "singular_degree")
    verdicts = {tuple(s.ranks.values()): s.verdict for s in result.strata}
    assert {kind for kind, verdict in verdicts.items() if verdict == "singular"} == SINGULAR[size]
    assert "undecided" not in verdicts.values()


@pytest.mark.parametrize("size", SIZES)
def test_dimensions(size: Size, engine: Engine) -> None:
    """Ambient: dd' outputs' cubic forms in dt variables (t = 2). Span: d d' C(d+1, 2) Segre coordinates.

    Singular locus: rank (1,1) points q (x) h (x) k v, dimension 3d + d' - 3; for 1 < a < d it is the variety with a - 1
    in place of a; for a = d' = 1 it is 0 (d = 2) or q (x) k^2 of dimension 2d - 1.
    """
    d, dp, a = size
    result = computed(size, engine)
    assert result.ambient_dim == dp * 2 * comb(2 * d + 2, 3)
    assert result.span_dim == d * dp * comb(d + 1, 2)
    assert result.image_dim == image_dim(d, dp, a)
    if a == dp == 1:
        expected = 0 if d == 2 else 2 * d - 1
    elif 1 < a < d:
        expected = image_dim(d, dp, a - 1)
    else:
        expected = 3 * d + dp - 3
    assert result.singular_dim == expected


@pytest.mark.parametrize("size", SIZES)
def test_theorem_as_printed(size: Size, engine: Engine) -> None:
    """The theorem assumes d, d' >= 2 or d, a >= 2; its verdict is that points with rk A * rk V <= 1 are singular."""
    d, dp, a = size
    check = computed(size, engine).theorem
    assert check.applies is (d >= 2 and (dp >= 2 or a >= 2))
    fails = 1 < a < d and dp >= 2
    assert check.agrees is (None if not check.applies else not fails)
    if fails:
        assert check.witness is not None
        assert (check.witness["rank_a"], check.witness["printed"], check.witness["computed"]) == (
            1,
            "smooth",
            "singular",
        )
        assert check.witness["certainty"] == "proved"
        assert check.witness["tangent_lower"] > check.witness["image_dim"]


@pytest.mark.parametrize(
    ("size", "codim", "degree", "generators"),
    [
        # q (x) S with any binary quadric S: the cone over the Segre variety P^1 x P^2 in P^5, degree C(3,1) = 3, cut out by
        # the 2 x 2 minors of a 2 x 3 matrix (Harris, Algebraic Geometry, Examples 2.11 and 18.15)
        ((2, 1, 1), 2, 3, {"2": 3}),
        # two binary quadrics with a common factor: their resultant, of degree 2 + 2
        ((2, 1, 2), 1, 4, {"4": 1}),
        # q (x) (k nu_1, k nu_2): 2 x 2 minors of a 2 x 6 matrix are 15 quadrics; the resultant of the two quadrics, of degree 4
        # in q, gives C(5, 1) = 5 quartics. Degree: (h1 + h2)^5 on {det A = 0} x P^3, a quadric surface times P^3: 2 C(5, 2)
        ((2, 2, 1), 6, 20, {"2": 15, "4": 5}),
        # degree: (h1 + h2)^6 on P^3 x P^3 = C(6, 3)
        ((2, 2, 2), 5, 20, None),
        # q (x) S, rk S <= 2: P^2 times the cubic hypersurface det S = 0 in P^5, degree (h1 + h2)^6 there: 3 C(6, 2)
        ((3, 1, 1), 11, 45, None),
    ],
)  # fmt: skip
def test_closure(
    size: Size, codim: int, degree: int, generators: dict[str, int] | None, engine: Engine
) -> None:
    result = computed(size, engine)
    assert (result.codim, result.degree) == (codim, degree)
    if generators is not None:
        assert result.generators == generators


def test_singular_scheme_of_two_binary_quadrics(engine: Engine) -> None:
    """(2,1,2): the resultant is singular where the quadrics are proportional.

    That is the cone over P^1 x P^2: dimension 4, degree 3, the 2 x 2 minors of the coefficients. Where moreover the common
    quadric is a square, the cone over P^1 x conic (O(1,2) on P^1 x P^1: degree 2 * 1 * 2 = 4, dimension 3), the
    discriminant makes the scheme worse: that is its embedded component, the boundary's closure.
    """
    result = computed((2, 1, 2), engine)
    assert (result.singular_dim, result.singular_degree) == (4, 3)
    assert result.components is not None
    assert result.embedded is not None
    assert [(c.dim, c.degree, len(c.equations)) for c in result.components] == [(4, 3, 3)]
    assert [(c.dim, c.degree) for c in result.embedded] == [(3, 4)]


def test_singular_scheme_of_the_segre_cone(engine: Engine) -> None:
    """(2,1,1): a cone over a smooth variety; its only singular point is the origin, of dimension 0 and degree 1."""
    result = computed((2, 1, 1), engine)
    assert (result.singular_dim, result.singular_degree) == (0, 1)


@pytest.mark.parametrize("dp", [1, 3])
def test_one_dimensional_tokens_give_a_linear_space(dp: int, engine: Engine) -> None:
    """d = 1: X -> v a x x^T x, any vector v a of length d': all of K^d', smooth everywhere, the origin included."""
    result = computed((1, dp, 1), engine)
    assert result.agreement is True
    assert (result.image_dim, result.codim, result.degree, result.generators) == (dp, 0, 1, {})
    assert result.singular_dim == -1
    assert {s.verdict for s in result.strata} == {"smooth"}
    assert result.theorem.applies is False


@pytest.mark.parametrize("size", [(3, 2, 2), (3, 3, 2), (4, 2, 2)])
def test_counterexamples_to_the_printed_theorem(size: Size) -> None:
    """Curves alone show it, without equations and without Macaulay2.

    At rk A = 1 < a, A + s B has rank <= 2 <= a for every B of rank one, and such B span all matrices. So the tangent space
    holds every B V + A W: d^2 + dd' minus the kernel, which is one-dimensional for rk V >= 2 by unique factorization.
    """
    d, dp, a = size
    strata, context = LayerStrata(Lightning(d=d, dp=dp, a=a)), context_without_engine()
    dim = image_dim(d, dp, a)
    size = dimension(strata.model, engine=False)
    assert size.lower_bound == size.upper_bound == dim
    curves = [
        c for c in curves_at_strata(context, strata, size) if c.stratum.rank_a == 1 and c.stratum.rank_v == 2
    ]
    found = verdicts(context, strata, size, curves, None, 32003)
    for orbit, stratum in zip([c.stratum for c in curves], found, strict=True):
        A, V = orbit.representative(d, dp)
        by_hand = [np.einsum("im,nj->nmij", B, V) + np.einsum("im,nj->nmij", A, W) for B, W in moves(d, dp)]
        symmetric = np.array([(move + np.swapaxes(move, 2, 3)).ravel() for move in by_hand])
        tangent = int(np.linalg.matrix_rank(symmetric))
        assert tangent == d * d + d * dp - 1
        assert dim < tangent <= stratum.tangent_lower
        assert (stratum.verdict, stratum.certainty.value) == ("singular", "proved")


def context_without_engine() -> Context:
    return Context(engine=False, prime=None, seed=0, limits=Limits(), keep=None, progress=None)


def moves(d: int, dp: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Unit directions (B, 0) and (0, W)."""
    found = []
    for i, j in product(range(d), repeat=2):
        B = np.zeros((d, d))
        B[i, j] = 1
        found.append((B, np.zeros((dp, d))))
    for i, j in product(range(dp), range(d)):
        W = np.zeros((dp, d))
        W[i, j] = 1
        found.append((np.zeros((d, d)), W))
    return found


def test_too_few_equations_never_show_a_singularity() -> None:
    """(3,2,2) with the equations of degree <= 3 alone: their tangent spaces are too large at smooth points of rank (2,1).

    A verdict "singular" drawn from them would be false; without the quartics those points are undecided, or smooth.
    """
    strata, context = LayerStrata(Lightning(d=3, dp=2, a=2)), context_without_engine()
    strata.finite_map = lambda stratum: None  # type: ignore[method-assign]
    orbits = [Orbit(2, 1, 0), Orbit(2, 1, 1), Orbit(2, 2, 1)]
    size = dimension(strata.model, engine=False)
    curves = [c for c in curves_at_strata(context, strata, size) if c.stratum in orbits]
    listed, verified = low_degree_equations(strata.model, 3, list, prime=32003, seed=0)
    assert verified
    for number in (0, 5, len(listed)):
        equations = VanishingEquations(
            equations=listed[:number],
            characteristic=0,
            certainty=Certainty.PROVED,
            complete=None,
            extent="some",
        )
        found = verdicts(context, strata, size, curves, equations, 32003)
        assert all(stratum.verdict != "singular" for stratum in found)
        assert all(stratum.tangent_lower <= 13 for stratum in found)
        uppers = [stratum.tangent_upper for stratum in found if stratum.verdict == "undecided"]
        assert all(upper is None or upper > 13 for upper in uppers)
        assert all(item.relation == "<=" for item in context.evidence if item.witness == "interpolation")
