"""Arguments that count orbits, against orbits that are enumerated over small fields, and ranks at a point.

Over F_q the number of GL(F_q)-orbits among the F_q-points of a fiber with finitely many orbits does not depend on q, because the
classification by intervals and flags holds over every field; with moving flags it grows with q.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from m2bridge.evidence import weigh
from m2bridge.families import parse_spec
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.questions.fiber.arguments import all_orbits, finitely_many, orbit_count, two_layer_dim
from m2bridge.questions.fiber.ranks import dimensions_of, kernel_dim
from m2bridge.questions.point import good_prime, point_from_weights, random_point, rank_prime, stratum_point


def matrices(rows: int, columns: int, q: int) -> list[np.ndarray]:
    return [
        np.array(x, dtype=np.int64).reshape(rows, columns) for x in product(range(q), repeat=rows * columns)
    ]


def orbits_over(widths: tuple[int, ...], W: np.ndarray, q: int) -> int:
    """Orbits of the changes of basis on {W_l ... W_1 = W} over F_q, by enumeration."""
    inverses = []
    for n in widths[1:-1]:
        all_n = matrices(n, n, q)
        one = np.eye(n, dtype=np.int64)
        inverses.append([(g, h) for g in all_n for h in all_n if np.array_equal(g @ h % q, one)])
    fiber = {()}
    for below, above in pairwise(widths):
        fiber = {(*found, m.tobytes()) for found in fiber for m in matrices(above, below, q)}
    shapes = list(zip(widths[1:], widths, strict=False))

    def read(point: tuple[bytes, ...]) -> list[np.ndarray]:
        return [np.frombuffer(b, dtype=np.int64).reshape(s) for b, s in zip(point, shapes, strict=True)]

    def product_of(point: tuple[bytes, ...]) -> np.ndarray:
        found = np.eye(widths[0], dtype=np.int64)
        for matrix in read(point):
            found = matrix @ found % q
        return found

    left = {point for point in fiber if np.array_equal(product_of(point), W)}
    count = 0
    while left:
        point = read(next(iter(left)))
        count += 1
        for changes in product(*inverses):
            moved = list(point)
            for i, (g, h) in enumerate(changes):
                moved[i] = g @ moved[i] % q
                moved[i + 1] = moved[i + 1] @ h % q
            left.discard(tuple(m.tobytes() for m in moved))
    return count


CASES = [
    ((1, 1, 1), 0),
    ((1, 2, 1), 0),
    ((1, 2, 1), 1),
    ((2, 1, 2), 0),
    ((2, 1, 2), 1),
    ((2, 2, 1), 0),
    ((2, 2, 1), 1),
    ((2, 2, 2), 1),
    ((2, 2, 2), 2),
    ((3, 1, 1), 1),
    ((3, 2, 1), 1),
    ((1, 1, 1, 1), 0),
    ((1, 1, 2, 1), 0),
    ((2, 1, 1, 2), 1),
    ((1, 2, 1, 1), 1),
]


@pytest.mark.parametrize(("widths", "rank"), CASES)
def test_orbits_of_products_of_matrices(widths, rank):
    W = np.zeros((widths[-1], widths[0]), dtype=np.int64)
    W[range(rank), range(rank)] = 1
    over_two, over_three = (orbits_over(widths, W, q) for q in (2, 3))
    if finitely_many(widths, rank):
        assert over_two == over_three == orbit_count(widths, rank)
    else:
        assert over_two < over_three


@pytest.mark.parametrize(("widths", "rank"), [case for case in CASES if len(case[0]) == 3])
def test_dimension_of_a_product_of_two_matrices(widths, rank):
    """The number of points over F_q is q^dim times the number of components, up to lower powers of q."""
    W = np.zeros((widths[-1], widths[0]), dtype=np.int64)
    W[range(rank), range(rank)] = 1

    def points(q: int) -> int:
        products: dict[bytes, int] = {}
        key = W.tobytes()
        for first in matrices(widths[1], widths[0], q):
            for second in matrices(widths[2], widths[1], q):
                found = (second @ first % q).tobytes()
                products[found] = products.get(found, 0) + 1
        return products[key]

    dim = two_layer_dim(widths, rank)
    assert 0.2 * 3**dim <= points(3) <= 8 * 3**dim


def test_known_linear_cases():
    """[2,2,1]: W_1 invertible, or W_1 = u w^T with W_2 u = 1: two orbits. [6,6,1]: the row space of W_1 of rank 5 moves."""
    two = all_orbits(random_point(parse_spec("linear(widths=[2,2,1])"), 0))
    assert two is not None
    assert (two.finite, two.count, two.fiber_dim) == (True, 2, 4)
    many = all_orbits(random_point(parse_spec("linear(widths=[6,6,1])"), 0))
    assert many is not None
    assert (many.finite, many.count, many.fiber_dim) == (False, None, 36)
    bottleneck = all_orbits(random_point(parse_spec("linear(widths=[5,2,2,4])"), 0))
    assert bottleneck is not None
    assert bottleneck.count == 1
    assert (
        orbit_count([40] * 9, 3) is None
    )  # too many to count; finitely many or not is known without counting


def one_layer_orbits_over(q: int, d: int, dp: int, A: np.ndarray, V: np.ndarray, queries: int | None) -> int:
    """Orbits over F_q of scalings (and GL_a) on all weights with the same products of linear forms, by enumeration."""

    def key(A: np.ndarray, V: np.ndarray) -> bytes:
        table = np.einsum("im,nj->mnij", A, V)
        return ((table + np.swapaxes(table, 2, 3)) % q).tobytes()  # alpha_m nu_n as symmetric matrices, q odd

    goal = key(A % q, V % q)
    pairs = [(a, v) for a in matrices(d, d, q) for v in matrices(dp, d, q) if key(a, v) == goal]
    inverse = {s: pow(s, -1, q) for s in range(1, q)}
    if queries is None:
        left = {(a.tobytes(), v.tobytes()) for a, v in pairs}
        count = 0
        while left:
            a, v = (np.frombuffer(b, dtype=np.int64).reshape(-1, d) for b in next(iter(left)))
            count += 1
            left -= {((s * a % q).tobytes(), (t * v % q).tobytes()) for s, t in inverse.items()}
        return count
    group = [
        (g, h)
        for g in matrices(queries, queries, q)
        for h in matrices(queries, queries, q)
        if np.array_equal(g @ h % q, np.eye(queries))
    ]
    values = {(a.tobytes(), v.tobytes()) for a, v in pairs}
    all_v = {v for _, v in values}
    left3 = {
        (Q.tobytes(), K.tobytes(), v)
        for Q in matrices(queries, d, q)
        for K in matrices(queries, d, q)
        for v in all_v
        if ((K.T @ Q % q).tobytes(), v) in values
    }
    count = 0
    while left3:
        Q, K, v = (np.frombuffer(b, dtype=np.int64).reshape(-1, d) for b in next(iter(left3)))
        count += 1
        for g, h in group:
            for s, t in inverse.items():
                left3.discard(((s * h.T @ Q % q).tobytes(), (g @ K % q).tobytes(), (t * v % q).tobytes()))
    return count


@pytest.mark.parametrize(
    ("d", "dp", "a", "A", "V"),
    [
        (1, 1, None, [[1]], [[0]]),  # three orbits: {A = 0 = V}, {A = 0}, {V = 0}
        (1, 1, None, [[0]], [[0]]),
        (1, 1, None, [[2]], [[1]]),
        (1, 1, 1, [[1]], [[0]]),
        (1, 1, 2, [[0]], [[1]]),
        (1, 1, 2, [[1]], [[1]]),
        (2, 1, None, [[1, 0], [0, 1]], [[1, 1]]),
        (2, 1, None, [[1, 1], [0, 0]], [[0, 1]]),  # k and v not proportional: two
        (2, 1, None, [[1, 1], [0, 0]], [[2, 0]]),  # proportional: one
        (2, 2, None, [[1, 1], [0, 0]], [[0, 1], [1, 1]]),
        (2, 1, 1, [[1, 1], [0, 0]], [[0, 1]]),
        (2, 1, 2, [[1, 2], [1, 1]], [[0, 1]]),
    ],
)
def test_orbits_of_one_layer(d, dp, a, A, V):
    A, V = np.array(A), np.array(V)
    if a is None:
        point = point_from_weights(
            parse_spec(f"lightning(d={d},dp={dp},a={d},parametrization=attention)"), {"A": A, "V": V}
        )
    else:
        K = np.zeros((a, d), dtype=np.int64)
        Q = K.copy()
        for i in range(min(a, d)):
            K[i, i], Q[i] = 1, A[i]
        point = point_from_weights(parse_spec(f"lightning(d={d},dp={dp},a={a})"), {"Q": Q, "K": K, "V": V})
    orbits = all_orbits(point)
    assert orbits is not None
    assert orbits.count == one_layer_orbits_over(3, d, dp, A, V, a)


@pytest.mark.parametrize("dp", [1, 2])
def test_the_zero_function_of_wider_layers_has_infinitely_many_orbits(dp):
    orbits = all_orbits(
        stratum_point(parse_spec(f"lightning(d=2,dp={dp},parametrization=attention)"), "rank_a=2,rank_v=0")
    )
    assert orbits is not None
    assert not orbits.finite


@pytest.mark.parametrize(
    "spec",
    [
        "linear(widths=[3,2,3])",
        "linear(widths=[2,2,2,2])",
        "lightning(d=3,dp=2,a=2)",
        "lightning(d=2,dp=1,a=3)",
        "deep-lightning(d=[3,2,2],a=[2,2],t=2)",
        "deep-lightning(d=[2,2,2],t=2,parametrization=attention)",
        "deep-lightning(d=[3,2],a=[2],t=2,skip=false)",
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_one_orbit_has_the_dimension_of_the_kernel(spec, seed):
    """Compare an argument for one orbit with the rank of the differential: the orbit is open, so they are equal."""
    point = random_point(parse_spec(spec), seed)
    found, dims = all_orbits(point), dimensions_of(point, seed)
    assert found is not None
    assert found.count == 1
    assert dims.orbit_dim == dims.tangent_upper
    assert found.fiber_dim in (None, dims.orbit_dim)


def test_no_argument_where_a_hypothesis_fails():
    """[5,5,1]: rk L = 1 is not the hidden width; a skew M_i; widening layers; one token."""
    for spec, at in (
        ("deep-lightning(d=[5,5,1],a=[2,1],t=2)", None),
        ("deep-lightning(d=[2,3,2],t=2)", None),
        ("lightning(d=2,dp=1,t=1)", None),
        ("deep-lightning(d=[2,2,2],t=3,parametrization=virtual)", "m1=skew"),
        ("deep-lightning(d=[2,2,2],t=3,parametrization=virtual)", "m2=skew"),
        ("mlp(widths=[2,2,2],r=2)", None),
    ):
        model = parse_spec(spec)
        point = random_point(model, 0) if at is None else stratum_point(model, at)
        assert all_orbits(point) is None, spec


# -- ranks at the point ------------------------------------------------------------------------------------------------------


def test_ranks_look_at_the_point_itself():
    """(x - 2, (x - 2) y) at (2, 3): the differential is ((1, 0), (3, 0)), of rank 1; at (2/3, 1) it has rank 2."""
    point = point_from_weights(parse_spec("map:x,y->x-2;x*y-2*y"), {"x": 2, "y": 3})
    dims = dimensions_of(point, 0)
    assert dims.tangent_upper == 1
    assert weigh(dims.evidence).verdict is not False


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        ("map:s->s^900", {"s": 60}),
        ("map:s->s^900", {"s": "1/1000"}),
        ("map:s,t->s^300*t^300;t", {"s": "1/7", "t": "1/9"}),
        ("map:x,y->x*y-100000000000000000*y", {"x": 10**17 + 1, "y": 1}),
        ("map:x,y->x;3*x*y-y", {"x": "1/3", "y": 1}),
        ("mlp(widths=[1,1,1],r=2)", {"W1": [[10**200]], "W2": [["1/1000000"]]}),
        ("linear(widths=[1,1,1])", {"W1": [[10**400]], "W2": [[1]]}),
        ("lightning(d=1,dp=1,parametrization=attention)", {"A": [[f"1/{10**300}"]], "V": [[f"1/{10**300}"]]}),
    ],
)
def test_overflow_of_float64_is_not_a_contradiction(spec, at):
    point = point_from_weights(parse_spec(spec), at)
    assert weigh(dimensions_of(point, 0).evidence).verdict is not False


@pytest.mark.parametrize("seed", range(40))
def test_random_maps_at_special_points(seed):
    """Random polynomials at random rational points, often special: no two witnesses contradict each other."""
    rng = np.random.default_rng(seed)
    names = ("x", "y", "z")
    at = {n: str(Fraction(int(rng.integers(-4, 5)), int(rng.integers(1, 4)))) for n in names}
    terms = []
    for _ in range(3):
        u, v = rng.choice(names, 2)
        a, b, k = rng.integers(-9, 10), rng.integers(1, 9), rng.integers(1, 4)
        terms.append(f"({u}-{at[u]})*({v}^{k})*{b}+{a}".replace("--", "+"))
    point = point_from_weights(parse_spec("map:x,y,z->" + ";".join(terms)), at)
    assert weigh(dimensions_of(point, seed).evidence).verdict is not False


# -- samples and primes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "dp", "t"), [(2, 1, 9), (3, 1, 21), (3, 2, 17), (4, 1, 40)])
def test_enough_inputs_when_there_are_more_tokens_than_entries(d, dp, t):
    """The kernel at many tokens is that for t = d: inputs are added until the rank is stable."""
    model = parse_spec(f"lightning(d={d},dp={dp},a={d},t={t})")
    small = parse_spec(f"lightning(d={d},dp={dp},a={d},t={d})")
    weights = random_point(model, 0).mod(LARGE_PRIME)
    usual = kernel_dim(model, weights, LARGE_PRIME, np.random.default_rng(0))
    assert usual == kernel_dim(small, weights, LARGE_PRIME, np.random.default_rng(1)) == 1 + d * d


@pytest.mark.slow
def test_wide_layers_with_many_tokens_are_identifiable():
    dims = dimensions_of(random_point(parse_spec("lightning(d=8,dp=1,a=8,t=140)"), 0), 0)
    assert dims.generic_fiber_dim == dims.orbit_dim == dims.tangent_upper == 65


def test_primes_divide_nothing_that_was_given():
    model = parse_spec(f"map:x,y->{LARGE_PRIME}*x;y^2")
    assert rank_prime(model) < LARGE_PRIME
    assert dimensions_of(point_from_weights(model, {"x": LARGE_PRIME, "y": 1}), 0).tangent_upper == 0
    power = point_from_weights(parse_spec("map:x->x^101"), {"x": 1})
    assert good_prime(power, 101)[0] != 101
    assert (
        dimensions_of(
            point_from_weights(
                parse_spec("linear(widths=[2,2])"), {"W1": [[LARGE_PRIME, 0], [0, f"1/{LARGE_PRIME}"]]}
            ),
            0,
        ).tangent_upper
        == 0
    )
