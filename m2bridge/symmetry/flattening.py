"""Upper bounds for perceptrons with one hidden layer, from flattenings.

The network x -> W_2 (W_1 x)^r has coordinate functions f_j = sum_i c_ji l_i(x)^r, a sum of k terms c_i (x) l_i^r. A
flattening is a matrix F(f) linear in f; if a single term has F of rank rho, then F has rank at most k rho on the whole image.
At a point where that rank is met, the image lies in a determinantal variety whose conormal space contains the forms
f -> n' F(f) n, n and n' in the kernels of F and of its transpose. Their number, computed modulo p, is a proved number of
independent equations:

    dim image <= coordinates - rank {n' F(e) n}.

Flattenings used: catalecticants (C^m (x) S^s)* -> S^(r-s); for r odd the Koszul flattening that shows Clebsch's and Palatini's
seven-summand cubics in five variables (G. Ottaviani, *An invariant regarding Waring's problem for cubic polynomials*, 2009);
and for three quadrics Strassen's block matrix, by which eight terms in six variables do not fill.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.linear.modular import kernel_mod, rank_mod, rank_over_q
from m2bridge.linear.residues import Mod
from m2bridge.programs.points import integers

MOST_ENTRIES = 4_000_000
MOST_COORDINATES = 2000

Flattening = NDArray[np.int64]
"""Shape (coordinates, rows, columns): the matrix of each coordinate function, entries integers."""


@dataclass(frozen=True, slots=True)
class FlatteningBound:
    """Coordinates minus independent equations from one flattening, at one point modulo p."""

    value: int
    name: str
    rank: int
    weights: tuple[int, ...]
    p: int

    @property
    def document(self) -> dict[str, Any]:
        """The bound as certificates write it."""
        degree = re.search(r"S\^(\d+)\)\*", self.name)
        return {
            "kind": "flattening",
            "flattening": ["catalecticant", int(degree[1])] if degree else [self.name.split()[0].lower()],
            "prime": self.p,
            "weights": {"entries": list(self.weights)},
        }


@lru_cache(maxsize=512)
def flattening_bound(n: int, k: int, m: int, r: int, *, p: int, seed: int) -> FlatteningBound | None:
    """The best flattening bound of x -> W_2 (W_1 x)^r with n inputs, k hidden neurons and m outputs; None when none applies."""
    count = comb(n + r - 1, r) * m
    if r < 2 or p <= r or count > MOST_COORDINATES:
        return None
    drawn = integers(seed, 6, k * (n + m), p)
    forms, outer = drawn[: k * n].reshape(k, n), drawn[k * n :].reshape(m, k)
    powers = np.stack([_power_coordinates(form, 1, r, p) for form in forms])
    point = (Mod(outer, p) @ Mod(powers, p)).values.reshape(-1)
    one = np.zeros(n, dtype=np.int64)
    one[0] = 1
    best: FlatteningBound | None = None
    for name, table in flattenings(n, m, r):
        rho = rank_over_q(_apply(table, _power_coordinates(one, m, r)))  # exact: it bounds from above
        matrix = _apply(table, point) % p
        if k * rho >= min(matrix.shape) or rank_mod(matrix, p) != k * rho:
            continue
        equations = _conormal_rank(table, matrix, p)
        if equations and (best is None or count - equations < best.value):
            best = FlatteningBound(count - equations, name, k * rho, tuple(drawn.tolist()), p)
    return best


def flattenings(n: int, m: int, r: int) -> list[tuple[str, Flattening]]:
    """Catalecticants and Koszul flattenings of m forms of degree r in n variables, coefficients as coordinates."""
    found = []
    for s in range(1, r):
        name = f"catalecticant (C^{m} x S^{s})* -> S^{r - s}"
        table = _catalecticant(n, m, r, s)
        if table is not None:
            found.append((name, table))
    if m == 1 and r % 2 == 1 and r >= 3 and n % 2 == 1 and n >= 3:
        koszul = _koszul(n, r)
        if koszul is not None:
            found.append((f"Koszul flattening with Lambda^{(n - 1) // 2}", koszul))
    if m == 3 and r == 2:
        strassen = _strassen(n)
        if strassen is not None:
            found.append(("Strassen flattening", strassen))
    return found


def monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    """Exponents of degree `degree`, in descending lexicographic order: the order of a model's coordinates."""
    tuples = []
    for choice in combinations_with_replacement(range(n), degree):
        exponents = [0] * n
        for i in choice:
            exponents[i] += 1
        tuples.append(tuple(exponents))
    return sorted(tuples, reverse=True)


def _catalecticant(n: int, m: int, r: int, s: int) -> Flattening | None:
    """Rows: output and differential operators of degree s; columns: of degree r - s. Entry: the coefficient divided by
    its multinomial, cleared of denominators: times r!.
    """
    rows, columns, all_of = monomials(n, s), monomials(n, r - s), monomials(n, r)
    place = {e: i for i, e in enumerate(all_of)}
    if m * len(all_of) * m * len(rows) * len(columns) > MOST_ENTRIES:
        return None
    table = np.zeros((m * len(all_of), m * len(rows), len(columns)), dtype=np.int64)
    for j in range(m):
        for a, row in enumerate(rows):
            for b, column in enumerate(columns):
                total = tuple(x + y for x, y in zip(row, column, strict=True))
                table[j * len(all_of) + place[total], j * len(rows) + a, b] = _factorials(total)
    return table


def _koszul(n: int, r: int) -> Flattening | None:
    """S^s* (x) Lambda^q -> S^(r-1-s) (x) Lambda^(q+1), s = (r-1)/2, q = (n-1)/2: differentiate, then wedge."""
    s, q = (r - 1) // 2, (n - 1) // 2
    rows, columns, all_of = monomials(n, s), monomials(n, r - 1 - s), monomials(n, r)
    place = {e: i for i, e in enumerate(all_of)}
    small, large = list(combinations(range(n), q)), list(combinations(range(n), q + 1))
    where = {c: i for i, c in enumerate(large)}
    height, width = len(columns) * len(large), len(rows) * len(small)
    if len(all_of) * height * width > 4 * MOST_ENTRIES:
        return None
    table = np.zeros((len(all_of), height, width), dtype=np.int64)
    for a, row in enumerate(rows):
        for c, chosen in enumerate(small):
            for i in range(n):
                if i in chosen:
                    continue
                sign = (-1) ** sum(1 for other in chosen if other < i)
                target = where[tuple(sorted((*chosen, i)))]
                for b, column in enumerate(columns):
                    total = tuple(x + y + (v == i) for v, (x, y) in enumerate(zip(row, column, strict=True)))
                    table[place[total], b * len(large) + target, a * len(small) + c] += sign * _factorials(
                        total
                    )
    return table


def _strassen(n: int) -> Flattening | None:
    """V* (x) C^3 -> V (x) Lambda^2 C^3 of three quadrics: the block matrix with A_i in the places of a skew 3 x 3 matrix."""
    all_of = monomials(n, 2)
    if 3 * len(all_of) * 9 * n * n > 4 * MOST_ENTRIES:
        return None
    table = np.zeros((3 * len(all_of), 3 * n, 3 * n), dtype=np.int64)
    for i, j, k, sign in (
        (0, 1, 2, 1),
        (1, 2, 0, 1),
        (2, 0, 1, 1),
        (1, 0, 2, -1),
        (2, 1, 0, -1),
        (0, 2, 1, -1),
    ):
        for place, exponents in enumerate(all_of):
            a, b = [v for v, e in enumerate(exponents) for _ in range(e)]
            for row, column in {(a, b), (b, a)}:
                table[i * len(all_of) + place, j * n + row, k * n + column] = sign * _factorials(exponents)
    return table


def _factorials(exponents: tuple[int, ...]) -> int:
    return prod(factorial(e) for e in exponents)


def _power_coordinates(form: NDArray[np.int64], m: int, r: int, p: int = 0) -> NDArray[np.int64]:
    """Coefficients of e_1 (x) l^r, modulo p when that is given: by the action of GL(n) x GL(m), every term has flattenings of
    the same rank.
    """
    values = [
        factorial(r) // _factorials(e) * prod(int(x) ** k for x, k in zip(form, e, strict=True))
        for e in monomials(len(form), r)
    ]
    values = [value % p for value in values] if p else values
    return np.array(values + [0] * (len(values) * (m - 1)), dtype=np.int64)


def _apply(table: Flattening, point: NDArray[np.int64]) -> NDArray[np.int64]:
    flat = table.reshape(len(point), -1)
    used = np.flatnonzero(point)
    total = np.zeros(flat.shape[1], dtype=object)
    for i in used:
        entries = np.flatnonzero(flat[i])
        total[entries] += flat[i][entries].astype(object) * int(point[i])
    return total.reshape(table.shape[1:])


def _conormal_rank(table: Flattening, matrix: NDArray[np.int64], p: int) -> int:
    right = kernel_mod(matrix, p)[0]
    left = kernel_mod(np.ascontiguousarray(matrix.T), p)[0]
    rows = []
    for e in table:
        nonzero = np.argwhere(e)
        if not len(nonzero):
            rows.append(np.zeros(len(left) * len(right), dtype=np.int64))
            continue
        total = np.zeros((len(left), len(right)), dtype=np.int64)
        for a, b in nonzero:
            term = left[:, a, None] * right[None, :, b] % p
            total = (total + term * (int(e[a, b]) % p)) % p
        rows.append(total.ravel())
    return rank_mod(np.array(rows), p)
