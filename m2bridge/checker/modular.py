"""Checker: elimination modulo a prime, in plain Python. Standard library only."""

from __future__ import annotations

from m2bridge.checker.networks import Rejected


def require_prime(p: int) -> int:
    """p, when it is a prime below 2^63 (Miller and Rabin with the first twelve primes decides that)."""
    if not isinstance(p, int) or isinstance(p, bool) or not 2 <= p < 2**63:
        raise Rejected(f"{p!r} is not a prime below 2^63")
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if p in bases:
        return p
    if any(p % q == 0 for q in bases):
        raise Rejected(f"{p} is not prime")
    odd, twos = p - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
        x = pow(base, odd, p)
        if x not in (1, p - 1) and all((x := x * x % p) != p - 1 for _ in range(twos - 1)):
            raise Rejected(f"{p} is not prime")
    return p


def eliminate(matrix: list[list[int]], p: int) -> tuple[int, int]:
    """Rank, and the determinant when the matrix is square, modulo p."""
    rows = [[x % p for x in row] for row in matrix]
    rank, determinant = 0, 1
    width = len(rows[0]) if rows else 0
    for column in range(width):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        if pivot != rank:
            rows[rank], rows[pivot] = rows[pivot], rows[rank]
            determinant = -determinant
        top = rows[rank]
        determinant = determinant * top[column] % p
        inverse = pow(top[column], -1, p)
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] * inverse % p
            if factor:
                row = rows[i]
                rows[i] = [0] * column + [
                    (a - factor * b) % p for a, b in zip(row[column:], top[column:], strict=True)
                ]
        rank += 1
    square = len(rows) == width
    return rank, determinant % p if square and rank == width else 0


def kernel(matrix: list[list[int]], p: int, width: int) -> list[list[int]]:
    """Basis of {x : matrix x = 0} modulo p."""
    rows = [[x % p for x in row] for row in matrix]
    pivots: list[int] = []
    for column in range(width):
        pivot = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        k = len(pivots)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        inverse = pow(rows[k][column], -1, p)
        rows[k] = [x * inverse % p for x in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [(a - factor * b) % p for a, b in zip(rows[i], rows[k], strict=True)]
        pivots.append(column)
    basis = []
    for column in range(width):
        if column in pivots:
            continue
        vector = [0] * width
        vector[column] = 1
        for k, pivot in enumerate(pivots):
            vector[pivot] = -rows[k][column] % p
        basis.append(vector)
    return basis
