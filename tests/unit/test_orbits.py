"""Orbits of (A, V) under A -> g A h, V -> k V g^T: number, invariants, dimension and closures, each by brute force."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.families import Attention, Lightning
from m2bridge.families.attention_strata import Orbit, all_orbits, orbit_dim
from m2bridge.questions.orbits import orbit_of

Matrix = tuple[tuple[int, ...], ...]
SIZES = [
    (1, 1, 1),
    (1, 2, 1),
    (2, 1, 1),
    (2, 1, 2),
    (2, 2, 1),
    (2, 2, 2),
    (3, 1, 2),
    (3, 2, 2),
    (3, 3, 3),
    (4, 2, 3),
]


def attention(d: int, dp: int, a: int) -> Attention:
    return Lightning(d=d, dp=dp, a=a, t=2, parametrization="attention")


def times(left: Matrix, right: Matrix, p: int) -> Matrix:
    return tuple(
        tuple(sum(x * y for x, y in zip(row, c, strict=True)) % p for c in zip(*right, strict=True))
        for row in left
    )


def transposed(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


def rank_over(matrix: Matrix, p: int) -> int:
    rows, rank = [list(row) for row in matrix], 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column] % p), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, p)
        for i in range(len(rows)):
            if i != rank and rows[i][column] % p:
                factor = rows[i][column] * inverse
                rows[i] = [(x - factor * y) % p for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def generators(n: int, p: int) -> list[Matrix]:
    """Generators of GL_n(F_p): transvections, and a scaling by a generator of the units (p = 2, 3 here)."""
    found = []
    for i, j in product(range(n), repeat=2):
        if i != j:
            found.append(tuple(tuple(int(r == c or (r, c) == (i, j)) for c in range(n)) for r in range(n)))
    if p == 3:
        found.append(tuple(tuple((2 if r == 0 else 1) if r == c else 0 for c in range(n)) for r in range(n)))
    return found


def all_matrices(rows: int, columns: int, p: int) -> list[Matrix]:
    entries = product(range(p), repeat=rows * columns)
    return [tuple(e[i * columns : (i + 1) * columns] for i in range(rows)) for e in entries]


def group_orbits(d: int, dp: int, p: int) -> list[set[tuple[Matrix, Matrix]]]:
    """Orbits of pairs of matrices over F_p, found by applying generators until nothing new comes."""
    waiting = set(product(all_matrices(d, d, p), all_matrices(dp, d, p)))
    orbits = []
    while waiting:
        orbit = {waiting.pop()}
        edge = list(orbit)
        while edge:
            A, V = edge.pop()
            moved = [(times(g, A, p), times(V, transposed(g), p)) for g in generators(d, p)]
            moved += [(times(A, h, p), V) for h in generators(d, p)]
            moved += [(A, times(k, V, p)) for k in generators(dp, p)]
            for pair in moved:
                if pair not in orbit:
                    orbit.add(pair)
                    edge.append(pair)
        waiting -= orbit
        orbits.append(orbit)
    return orbits


@pytest.mark.parametrize(
    ("d", "dp", "p"), [(1, 1, 3), (1, 2, 3), (2, 1, 2), (2, 1, 3), (2, 2, 2), (2, 3, 2), (3, 1, 2)]
)
def test_every_orbit_is_listed_once(d: int, dp: int, p: int) -> None:
    """Orbits over F_p by brute force; the classification of representations of this quiver is the same over every field."""
    found = []
    for orbit in group_orbits(d, dp, p):
        kinds = {
            (
                rank_over(A, p),
                rank_over(V, p),
                rank_over(A, p)
                + rank_over(V, p)
                - rank_over(tuple(a + v for a, v in zip(A, transposed(V), strict=True)), p),
            )
            for A, V in orbit
        }
        assert len(kinds) == 1, "the invariants change along an orbit"
        found += kinds
    assert len(found) == len(set(found)), "the invariants do not tell two orbits apart"
    nonzero = {kind for kind in found if kind[0] * kind[1] > 0}
    for a in range(1, d + 1):
        listed = all_orbits(d, dp, a)
        assert listed[0] == Orbit(0, 0, 0)
        assert {(o.rank_a, o.rank_v, o.meet) for o in listed[1:]} == {
            kind for kind in nonzero if kind[0] <= a
        }
        assert len(set(listed)) == len(listed)


def float_rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix))


@pytest.mark.parametrize(("d", "dp", "a"), SIZES)
def test_representatives_are_in_their_orbits(d: int, dp: int, a: int) -> None:
    for orbit in all_orbits(d, dp, a):
        A, V = orbit.representative(d, dp)
        assert (A.shape, V.shape) == ((d, d), (dp, d))
        assert set(np.unique(A)) | set(np.unique(V)) <= {0, 1}
        r, s = float_rank(A), float_rank(V)
        assert (r, s, r + s - float_rank(np.hstack([A, V.T]))) == (orbit.rank_a, orbit.rank_v, orbit.meet)
        assert orbit_of(A, V) == orbit


def test_orbit_of_moved_points() -> None:
    rng = np.random.default_rng(5)
    for orbit in all_orbits(3, 2, 3):
        A, V = orbit.representative(3, 2)
        g, h, k = (np.tril(rng.integers(-3, 4, (n, n)), -1) + np.eye(n, dtype=int) for n in (3, 3, 2))
        assert orbit_of(g @ A @ h, k @ V @ g.T) == orbit


@pytest.mark.parametrize(
    "orbit", [Orbit(3, 1, 1), Orbit(1, 2, 1), Orbit(1, 1, 2), Orbit(1, 1, -1), Orbit(2, 1, 0)], ids=str
)
def test_impossible_ranks_are_refused(orbit: Orbit) -> None:
    with pytest.raises(InputError, match=r"d=2, d'=1"):
        orbit.representative(2, 1)


def group_rank(A: np.ndarray, V: np.ndarray, d: int, dp: int) -> int:
    """Rank in float64 of the group's action on the network as a function, by derivatives along complex steps."""
    rng = np.random.default_rng(11)
    inputs = rng.standard_normal((30, d, 2))
    step, columns = 1e-30, []
    for which, n in (("g", d), ("h", d), ("k", dp)):
        for i, j in product(range(n), repeat=2):
            move = {name: np.eye(size, dtype=complex) for name, size in (("g", d), ("h", d), ("k", dp))}
            move[which][i, j] += 1j * step
            B, W = move["g"] @ A @ move["h"], move["k"] @ V @ move["g"].T
            value = W @ inputs @ np.swapaxes(inputs, 1, 2) @ B @ inputs
            columns.append(value.imag.ravel() / step)
    return int(np.linalg.matrix_rank(np.array(columns), tol=1e-6))


@pytest.mark.parametrize(("d", "dp", "a"), SIZES)
def test_orbit_dim_is_the_rank_of_the_group_action(d: int, dp: int, a: int) -> None:
    for orbit in all_orbits(d, dp, a):
        A, V = orbit.representative(d, dp)
        assert orbit_dim(attention(d, dp, a), A, V) == group_rank(A, V, d, dp), orbit


@pytest.mark.parametrize(("d", "dp"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 2)])
def test_orbit_dim_at_rank_one_by_hand(d: int, dp: int) -> None:
    """A = k q^T, V = h v^T: the function is q (x) h (x) k v, four vectors with three scalings lost; with v = k three with two."""
    model = attention(d, dp, d)
    assert orbit_dim(model, *Orbit(1, 1, 0).representative(d, dp)) == 3 * d + dp - 3
    assert orbit_dim(model, *Orbit(1, 1, 1).representative(d, dp)) == 2 * d + dp - 2


@pytest.mark.parametrize(("d", "dp", "a"), [size for size in SIZES if size[0] >= 2])
def test_the_largest_orbit_is_dense(d: int, dp: int, a: int) -> None:
    """Its dimension is that of Corollary 3.3, except for a = d' = 1, where it is 3d - 2 by the count above."""
    model = attention(d, dp, a)
    largest = max(orbit_dim(model, *o.representative(d, dp)) for o in all_orbits(d, dp, a))
    assert largest == (3 * d - 2 if a == dp == 1 else 2 * a * d - a * a + d * dp - 1)


def reachable(orbit: Orbit, orbits: tuple[Orbit, ...], d: int, dp: int, entries: int) -> set[Orbit]:
    """Orbits of (A + e B, V + e C) for 0/1 matrices B, C with few entries and a small generic e."""
    A, V = orbit.representative(d, dp)

    def sparse(rows: int, columns: int) -> np.ndarray:
        chosen = [c for n in range(entries + 1) for c in combinations(range(rows * columns), n)]
        out = np.zeros((len(chosen), rows * columns))
        for i, places in enumerate(chosen):
            out[i, list(places)] = 1
        return out.reshape(-1, rows, columns)

    e = 0.0314159
    left, right = sparse(d, d), sparse(dp, d)
    B = np.repeat(left, len(right), axis=0)
    C = np.tile(right, (len(left), 1, 1))
    moved_a, moved_v = A + e * B, V + e * C
    r, s, joint = (
        np.linalg.matrix_rank(m, tol=1e-7)
        for m in (moved_a, moved_v, np.concatenate([moved_a, np.swapaxes(moved_v, 1, 2)], axis=2))
    )
    kinds = {Orbit(int(x), int(y), int(x + y - z)) for x, y, z in zip(r, s, joint, strict=True)}
    return kinds & set(orbits)


@pytest.mark.parametrize(("d", "dp", "entries"), [(2, 1, 2), (2, 2, 2), (3, 1, 2), (3, 2, 2)])
def test_closure_order_is_the_one_of_explicit_degenerations(d: int, dp: int, entries: int) -> None:
    """One orbit lies in the closure of another exactly when a chain of explicit families leads from one to the other."""
    orbits = all_orbits(d, dp, d)
    nonzero = orbits[1:]
    above = {orbit: reachable(orbit, orbits, d, dp, entries) for orbit in nonzero}
    for _ in nonzero:
        above = {orbit: set().union(*(above[o] for o in found)) for orbit, found in above.items()}
    for orbit in nonzero:
        assert above[orbit] == {other for other in nonzero if orbit.in_closure_of(other)}, orbit
    assert all(orbits[0].in_closure_of(other) for other in orbits)
    assert not any(other.in_closure_of(orbits[0]) for other in nonzero)


@pytest.mark.parametrize(("d", "dp", "a"), SIZES)
def test_closure_order_is_an_order_and_dimensions_grow(d: int, dp: int, a: int) -> None:
    model, orbits = attention(d, dp, a), all_orbits(d, dp, a)
    dims = {orbit: orbit_dim(model, *orbit.representative(d, dp)) for orbit in orbits}
    for first, second in product(orbits, repeat=2):
        if first != second and first.in_closure_of(second):
            assert not second.in_closure_of(first)
            assert dims[first] < dims[second]
        for third in orbits:
            if first.in_closure_of(second) and second.in_closure_of(third):
                assert first.in_closure_of(third)
