"""Upper bounds from equations: coordinates minus the number of independent equations at one image point.

**Small maps.** A polynomial in the coordinates that vanishes on random image points modulo p is a candidate; it is an equation
once it vanishes identically after the coordinates are expanded as polynomials in the weights.

**Perceptrons with one hidden layer.** The network x -> W_2 (W_1 x)^r has coordinate functions f_j = sum_i c_ji l_i(x)^r, a sum
of k terms c_i (x) l_i^r. A flattening is a matrix F(f) linear in f; if a single term has F of rank rho, then F has rank at most
k rho on the whole image. At a point where that rank is met, the image lies in a determinantal variety whose conormal space
contains the forms f -> n' F(f) n, n and n' in the kernels of F and of its transpose. Their number, computed modulo p, is a
proved number of independent equations:

    dim image <= coordinates - rank {n' F(e) n}.

Flattenings used: catalecticants (C^m (x) S^s)* -> S^(r-s); for r odd the Koszul flattening that shows Clebsch's and Palatini's
seven-summand cubics in five variables (G. Ottaviani, *An invariant regarding Waring's problem for cubic polynomials*, 2009);
and for three quadrics Strassen's block matrix, by which eight terms in six variables do not fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, permutations
from math import comb, factorial, prod
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from m2bridge.bounds.upper_bound import UpperBound
from m2bridge.families.symbolic import rational_variables, variable_array
from m2bridge.linear.modular import kernel_mod, rank_mod, rank_over_q
from m2bridge.programs.coefficients import monomials
from m2bridge.programs.evaluation import run
from m2bridge.programs.points import WEIGHTS, Integers, integers
from m2bridge.programs.program import Program
from m2bridge.symmetry.fields import monomial_at, outputs_at, product_mod, small_integers

MOST_SAMPLED_MONOMIALS = 700  # columns of a matrix whose kernel is the space of equations
MOST_SAMPLED_WEIGHTS = 40  # weights of a map without inputs whose equations are interpolated
HIGHEST_EQUATION_DEGREE = 4  # of equations that bound a dimension from above
MOST_FLATTENING_ENTRIES = 4_000_000  # entries of a matrix of coordinates
MOST_SAMPLED_COORDINATES = 2000  # coordinates of which matrices are formed

Equation = list[tuple[int, tuple[int, ...]]]
"""Coefficients and monomials: flat outputs in ascending order, repeated."""
Flattening = NDArray[np.int64]
"""Shape (coordinates, rows, columns): the matrix of each coordinate function, entries integers."""


# -- equations of small maps -----------------------------------------------------------------------------


def equations_bound(program: Program, *, p: int, seed: int, lower: int) -> UpperBound | None:
    """Bound the dimension of a map without inputs by the number of outputs minus the rank of the differentials of equations.

    The degree of the equations is increased until the bound meets `lower`.
    """
    point = integers(seed, WEIGHTS, program.parameter_count, p)
    best: UpperBound | None = None
    for degree in range(1, HIGHEST_EQUATION_DEGREE + 1):
        verified = equations(program, p=p, seed=seed, degree=degree)
        if not verified:
            continue
        image = outputs_at(program, p, point[None])[0]
        value = program.output_count - rank_mod(np.stack([_differential(f, image, p) for f in verified]), p)
        if best is None or value < best.value:
            document = [[[c, [[i, m.count(i)] for i in sorted(set(m))]] for c, m in f] for f in verified]
            point_document = {"seed": seed, "stream": WEIGHTS, "fixed": []}
            best = UpperBound(
                value=value,
                method=f"coordinates minus the rank of {len(verified)} verified equations",
                argument={"kind": "equations", "equations": document, "prime": p, "weights": point_document},
            )
        if best.value <= lower:
            break
    return best


def equations(program: Program, *, p: int, seed: int, degree: int) -> list[Equation]:
    """Find and verify equations of one degree (with all lower monomials) of the image of a program without inputs."""
    count, free = program.output_count, program.polynomial
    if program.inputs or not free or program.parameter_count > MOST_SAMPLED_WEIGHTS:
        return []
    if comb(count + degree, degree) > MOST_SAMPLED_MONOMIALS:
        return []
    all_monomials = [m for d in range(degree + 1) for m in combinations_with_replacement(range(count), d)]
    points = len(all_monomials) + 12
    drawn = integers(seed, WEIGHTS + 32, points * program.parameter_count, p).reshape(points, -1)
    values = outputs_at(program, p, drawn)
    table = np.stack([monomial_at(monomial, values, p) for monomial in all_monomials], axis=-1)
    variables = rational_variables([f"w{i}" for i in range(program.parameter_count)])
    weights = {name: variable_array(variables, shape) for name, shape in program.parameters.items()}
    expanded = run(program, weights).reshape(-1)
    verified = []
    for row in kernel_mod(table, p)[0]:
        indices = np.flatnonzero(row)
        coefficients = small_integers(row[indices], p) or []
        equation = [(c, all_monomials[k]) for k, c in zip(indices, coefficients, strict=False)]
        if equation and sum((c * prod((expanded[i] for i in m), start=fmpq(1)) for c, m in equation)) == 0:
            verified.append(equation)
    return verified


def _differential(equation: Equation, image: Integers, p: int) -> Integers:
    row = np.zeros(len(image), dtype=np.int64)
    for c, monomial in equation:
        for k, i in enumerate(monomial):
            cofactor = monomial_at(monomial[:k] + monomial[k + 1 :], image, p)
            row[i] = (row[i] + c % p * int(cofactor)) % p
    return row


# -- flattenings -----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def flattening_bound(n: int, k: int, m: int, r: int, *, p: int, seed: int) -> UpperBound | None:
    """Compute the best bound of x -> W_2 (W_1 x)^r with n inputs, k hidden neurons and m outputs; None if none applies."""
    count = comb(n + r - 1, r) * m
    if r < 2 or p <= r or count > MOST_SAMPLED_COORDINATES:
        return None
    drawn = integers(seed, 6, k * (n + m), p)
    forms, outer = drawn[: k * n].reshape(k, n), drawn[k * n :].reshape(m, k)
    powers = np.stack([_power_coordinates(form, 1, r, p) for form in forms])
    point = product_mod(outer, powers, p).reshape(-1)
    unit = np.zeros(n, dtype=np.int64)
    unit[0] = 1
    best: UpperBound | None = None
    for name, document, table in _flattenings(n, m, r):
        rho = rank_over_q(_apply(table, _power_coordinates(unit, m, r)))  # exact: it bounds from above
        matrix = _apply(table, point) % p
        if k * rho >= min(matrix.shape) or rank_mod(matrix, p) != k * rho:
            continue
        independent = _conormal_rank(table, matrix, p)
        if independent and (best is None or count - independent < best.value):
            entries = {"entries": drawn.tolist()}
            best = UpperBound(
                value=count - independent,
                method=f"coordinates minus independent equations: {name} of rank <= {k * rho}",
                argument={"kind": "flattening", "flattening": document, "prime": p, "weights": entries},
            )
    return best


def _flattenings(n: int, m: int, r: int) -> Iterator[tuple[str, list[Any], Flattening]]:
    """Yield flattenings of m forms of degree r in n variables: description, name in certificates, and coefficients."""
    for s in range(1, r):
        if (
            m * comb(n + r - 1, r) * m * comb(n + s - 1, s) * comb(n + r - s - 1, r - s)
            <= MOST_FLATTENING_ENTRIES
        ):
            name = f"catalecticant (C^{m} x S^{s})* -> S^{r - s}"
            yield name, ["catalecticant", s], _catalecticant(n, m, r, s)
    if m == 1 and r % 2 == 1 and r >= 3 and n % 2 == 1 and n >= 3:
        koszul = _koszul(n, r)
        if koszul is not None:
            yield f"Koszul flattening with Lambda^{(n - 1) // 2}", ["koszul"], koszul
    if m == 3 and r == 2 and 27 * n * n * comb(n + 1, 2) <= 4 * MOST_FLATTENING_ENTRIES:
        yield "Strassen flattening", ["strassen"], _strassen(n)


def _monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    """List exponents of degree `degree`, in descending lexicographic order: the order of a model's coordinates."""
    return [tuple(row) for row in monomials(n, degree).tolist()]


def _catalecticant(n: int, m: int, r: int, s: int) -> Flattening:
    """Return the catalecticant: rows are outputs and differential operators of degree s, columns operators of degree r - s.

    An entry is the coefficient divided by its multinomial coefficient, times r! to have integers.
    """
    rows = _monomials(n, s)
    columns = _monomials(n, r - s)
    all_of = _monomials(n, r)
    index = {e: i for i, e in enumerate(all_of)}
    table = np.zeros((m * len(all_of), m * len(rows), len(columns)), dtype=np.int64)
    for j in range(m):
        for a, row in enumerate(rows):
            for b, column in enumerate(columns):
                total = tuple(x + y for x, y in zip(row, column, strict=True))
                table[j * len(all_of) + index[total], j * len(rows) + a, b] = _factorials(total)
    return table


def _koszul(n: int, r: int) -> Flattening | None:
    """Return the map S^s* (x) Lambda^q -> S^(r-1-s) (x) Lambda^(q+1), s = (r-1)/2, q = (n-1)/2: differentiate, then wedge."""
    s, q = (r - 1) // 2, (n - 1) // 2
    rows = _monomials(n, s)
    columns = _monomials(n, r - 1 - s)
    all_of = _monomials(n, r)
    index = {e: i for i, e in enumerate(all_of)}
    small = list(combinations(range(n), q))
    large = list(combinations(range(n), q + 1))
    where = {c: i for i, c in enumerate(large)}
    height, width = len(columns) * len(large), len(rows) * len(small)
    if len(all_of) * height * width > 4 * MOST_FLATTENING_ENTRIES:
        return None
    table = np.zeros((len(all_of), height, width), dtype=np.int64)
    # The basis element d^row (x) e_chosen is mapped to the sum over i of d^row d_i f (x) (e_i wedge e_chosen).
    for a, row in enumerate(rows):
        for c, chosen in enumerate(small):
            for i in set(range(n)) - set(chosen):
                sign = (-1) ** sum(smaller < i for smaller in chosen)
                target = where[tuple(sorted((*chosen, i)))]
                for b, column in enumerate(columns):
                    total = tuple(x + y + (v == i) for v, (x, y) in enumerate(zip(row, column, strict=True)))
                    entry = index[total], b * len(large) + target, a * len(small) + c
                    table[entry] += sign * _factorials(total)
    return table


def _strassen(n: int) -> Flattening:
    """Return V* (x) C^3 -> V (x) Lambda^2 C^3 of three quadrics: the skew 3 x 3 block matrix with blocks A_i."""
    all_of = _monomials(n, 2)
    table = np.zeros((3 * len(all_of), 3 * n, 3 * n), dtype=np.int64)
    for i, j, k in permutations(range(3)):
        sign = 1 if (j - i) % 3 == 1 else -1
        for index, exponents in enumerate(all_of):
            a, b = [v for v, e in enumerate(exponents) for _ in range(e)]
            for row, column in {(a, b), (b, a)}:
                table[i * len(all_of) + index, j * n + row, k * n + column] = sign * _factorials(exponents)
    return table


def _factorials(exponents: tuple[int, ...]) -> int:
    return prod(factorial(e) for e in exponents)


def _power_coordinates(form: NDArray[np.int64], m: int, r: int, p: int = 0) -> NDArray[np.int64]:
    """Return the coefficients of e_1 (x) l^r, modulo p if p > 0.

    By the action of GL(n) x GL(m), the flattenings of all terms e (x) l^r have the same rank.
    """
    values = [
        factorial(r) // _factorials(e) * prod(int(x) ** k for x, k in zip(form, e, strict=True))
        for e in _monomials(len(form), r)
    ]
    values = [value % p for value in values] if p else values
    return np.array(values + [0] * (len(values) * (m - 1)), dtype=np.int64)


def _apply(table: Flattening, point: NDArray[np.int64]) -> NDArray[np.int64]:
    flat = table.reshape(len(point), -1)
    total = np.zeros(flat.shape[1], dtype=object)
    for i in np.flatnonzero(point):
        entries = np.flatnonzero(flat[i])
        total[entries] += flat[i][entries].astype(object) * int(point[i])
    return total.reshape(table.shape[1:])


def _conormal_rank(table: Flattening, matrix: NDArray[np.int64], p: int) -> int:
    """Return the rank modulo p of the forms n' F(e) n, one row for each coordinate e."""
    right = kernel_mod(matrix, p)[0]
    left = kernel_mod(np.ascontiguousarray(matrix.T), p)[0]
    rows = np.zeros((len(table), len(left), len(right)), dtype=np.int64)
    for total, e in zip(rows, table, strict=True):
        for a, b in np.argwhere(e):
            term = left[:, a, None] * right[None, :, b] % p
            total[:] = (total + term * (int(e[a, b]) % p)) % p
    return rank_mod(rows.reshape(len(table), -1), p)
