"""Checker: matrices with more than 300 columns, with NumPy.

Residues modulo p < 2^23 are eliminated in float64: blocks of 64 columns keep every sum below 64 p^2 < 2^53,
so that nothing rounds. Derivatives come from a backward pass, one output coordinate at a time. Softmax
networks use integers as fixed-point balls, rounded outward to float64 at the end, where an approximate
inverse shows full rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.checker.fixed import Balls
from m2bridge.checker.modular import eliminate
from m2bridge.checker.networks import Network, Rejected

_BLOCK = 64


def rank_and_determinant(matrix: Any, p: int) -> tuple[int, int]:
    """Rank, and determinant when the matrix is square and of full rank, modulo p."""
    if p >= 2**23:
        return eliminate([[int(x) for x in row] for row in matrix], p)
    work = np.asarray(matrix, dtype=np.int64) % p
    a = work.astype(np.float64)
    del work
    rows, columns = a.shape
    top, determinant = 0, 1
    for left in range(0, columns, _BLOCK):
        right = min(left + _BLOCK, columns)
        start = top
        found = []
        for c in range(left, right):
            nonzero = np.flatnonzero(a[top:, c])
            if not len(nonzero):
                continue
            pivot = top + int(nonzero[0])
            if pivot != top:
                a[[top, pivot]] = a[[pivot, top]]
                determinant = -determinant
            determinant = determinant * int(a[top, c]) % p
            inverse = pow(int(a[top, c]), -1, p)
            factors = a[top + 1 :, c] * inverse % p
            a[top + 1 :, c + 1 : right] = (
                a[top + 1 :, c + 1 : right] - np.outer(factors, a[top, c + 1 : right])
            ) % p
            a[top + 1 :, c] = factors  # kept for the columns to the right
            found.append(c)
            top += 1
        if not found or right == columns:
            continue
        lower = a[start:, found]
        block = a[start:top, right:]
        for i in range(1, len(found)):
            block[i] = (block[i] - lower[i, :i] @ block[:i]) % p
        for band in range(top, rows, 1024):
            part = a[band : band + 1024, right:]
            part -= lower[band - start : band - start + 1024] @ block
            part %= p
    return top, determinant % p if rows == columns == top else 0


# -- backward pass ----------------------------------------------------------------------------------------


class Residues:
    """Arrays of int64 modulo p < 2^23: sums of fewer than 2^17 products fit."""

    def __init__(self, p: int) -> None:
        if p >= 2**23:
            raise Rejected("above 300 columns the prime must be below 2^23")
        self.p = p

    def mul(self, x: Any, y: Any) -> Any:
        return (x @ y) % self.p

    def add(self, *terms: Any) -> Any:
        return sum(terms[1:], terms[0]) % self.p

    def turn(self, x: Any) -> Any:
        return x.T


class Fixed:
    """Pairs of object arrays (mid, rad) of integers: fixed-point balls."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def mul(self, x: Any, y: Any) -> Any:
        (a, r), (b, s) = x, y
        absolute = abs(a) @ s + r @ abs(b) + r @ s
        return (a @ b) >> self.bits, (absolute >> self.bits) + 2

    def times(self, x: Any, y: Any) -> Any:
        (a, r), (b, s) = x, y
        return (a * b) >> self.bits, ((abs(a) * s + r * abs(b) + r * s) >> self.bits) + 2

    def add(self, *terms: Any) -> Any:
        return sum(t[0] for t in terms), sum(t[1] for t in terms)

    def turn(self, x: Any) -> Any:
        return x[0].T, x[1].T


def _backward(ring: Any, layers: Any, passed: Any, adjoint: Any, kept: Any) -> list[Any]:
    """Derivatives of one output coordinate, a linear form of the last tokens, by Q, K, V of every layer."""
    found: list[Any] = [[None, None, None] for _ in layers]
    for k in reversed(range(len(layers))):
        query, key, _ = layers[k]
        x, queries, keys, weights, _ = passed[k]
        mixed = ring.mul(ring.turn(x), adjoint)
        if kept is not None:
            mixed = kept(weights, mixed)
        found[k][0] = ring.mul(ring.mul(keys, mixed), ring.turn(x))
        found[k][1] = ring.mul(ring.mul(queries, ring.turn(mixed)), ring.turn(x))
        if k:
            by_x = ring.add(
                ring.mul(adjoint, ring.turn(weights)),
                ring.mul(ring.turn(key), ring.mul(queries, ring.turn(mixed))),
                ring.mul(ring.turn(query), ring.mul(keys, mixed)),
            )
            found[k - 1][2] = ring.mul(by_x, ring.turn(passed[k - 1][4]))
            adjoint = ring.mul(ring.turn(layers[k - 1][2]), by_x)
    return found


def _forward(ring: Any, layers: Any, x: Any, weigh: Any) -> list[Any]:
    passed = []
    for k, (query, key, value) in enumerate(layers):
        queries, keys = ring.mul(query, x), ring.mul(key, x)
        weights = weigh(ring.mul(ring.turn(keys), queries))
        tokens = ring.mul(x, weights)
        passed.append((x, queries, keys, weights, tokens))
        if k < len(layers) - 1:
            x = ring.mul(value, tokens)
    return passed


def attention_matrix(
    network: Network, layers: Any, p: int, seed: int, outputs: int, chosen: Any, free: Any
) -> Any:
    """Rows (output i, token), columns V[i, :] for i < outputs and the chosen free weights."""
    ring = Residues(p)
    w, t = network.widths, network.tokens
    arrays = [[np.array(m, dtype=np.int64).reshape(len(m), -1) for m in layer] for layer in layers]
    samples = max(token for _, token in chosen) // t + 1
    stream = _stream(seed, samples * w[0] * t, p).reshape(samples, w[0], t)
    matrix = np.zeros((len(chosen), outputs * w[-2] + len(free)), dtype=np.int64)
    by_sample: dict[int, list[tuple[int, int, int]]] = {}
    for place, (i, token) in enumerate(chosen):
        by_sample.setdefault(token // t, []).append((place, i, token % t))
    picks = _picks(free)
    for n, wanted in by_sample.items():
        passed = _forward(ring, arrays, stream[n], lambda scores: scores)
        for place, i, s in wanted:
            adjoint = np.zeros((w[-2], t), dtype=np.int64)
            adjoint[:, s] = arrays[-1][2][i]
            found = _backward(ring, arrays, passed, adjoint, None)
            matrix[place, i * w[-2] : (i + 1) * w[-2]] = passed[-1][4][:, s]
            for (k, which), (targets, rows, columns) in picks.items():
                matrix[place, outputs * w[-2] + targets] = found[k][which][rows, columns]
    return matrix


def _picks(free: Any) -> dict[tuple[int, int], Any]:
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for target, (k, which, i, j) in enumerate(free):
        groups.setdefault((k, which), []).append((target, i, j))
    return {key: tuple(np.array(part) for part in zip(*group, strict=True)) for key, group in groups.items()}


def _stream(seed: int, count: int, p: int) -> Any:
    def mix(z: Any) -> Any:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    start = mix(np.array([((seed << 32) + 2) % 2**64], dtype=np.uint64))
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    return (mix(steps) % np.uint64(p)).astype(np.int64)


# -- softmax ----------------------------------------------------------------------------------------------


def softmax_full_rank(network: Network, layers: Any, inputs: Any, bits: int, outputs: int, free: Any) -> None:
    """All derivatives of the first output rows by their V and the chosen weights have full column rank, in balls."""
    w, t = network.widths, network.tokens
    precision = 128 + 64 * len(layers)
    ring, balls = Fixed(precision), Balls(precision)

    def exact(m: Any) -> Any:
        mid = np.array([[int(v) << (precision - bits) for v in row] for row in m], dtype=object)
        mid = mid.reshape(len(m), -1)
        return mid, np.zeros(mid.shape, dtype=object)

    def weigh(scores: Any) -> Any:
        mid, rad = np.empty((t, t), dtype=object), np.empty((t, t), dtype=object)
        powers = [[balls.exponential((scores[0][j, i], scores[1][j, i])) for i in range(t)] for j in range(t)]
        for i in range(t):
            column = (sum(powers[j][i][0] for j in range(t)), sum(powers[j][i][1] for j in range(t)))
            for j in range(t):
                mid[j, i], rad[j, i] = balls.divide(powers[j][i], column)
        return mid, rad

    def kept(weights: Any, adjoint: Any) -> Any:
        mean = ring.times(weights, adjoint)
        mean = (mean[0].sum(axis=0, keepdims=True), mean[1].sum(axis=0, keepdims=True))
        return ring.times(weights, (adjoint[0] - mean[0], adjoint[1] + mean[1]))

    numbers = [[exact(m) for m in layer] for layer in layers]
    rows = len(inputs) * t
    width = outputs * w[-2] + len(free)
    mid, rad = np.zeros((outputs, rows, width)), np.zeros((outputs, rows, width))
    picks = _picks(free)
    for n, x in enumerate(inputs):
        passed = _forward(ring, numbers, exact(x), weigh)
        for i in range(outputs):
            for s in range(t):
                adjoint = np.zeros((w[-2], t), dtype=object)
                adjoint[i, s] = 1 << precision
                found = _backward(ring, numbers, passed, (adjoint, np.zeros((w[-2], t), dtype=object)), kept)
                line = n * t + s
                tokens = passed[-1][4]
                _put(
                    mid,
                    rad,
                    (i, line, slice(i * w[-2], (i + 1) * w[-2])),
                    tokens[0][:, s],
                    tokens[1][:, s],
                    precision,
                )
                for (k, which), (targets, at, columns) in picks.items():
                    part = found[k][which]
                    where = (i, line, outputs * w[-2] + targets)
                    _put(mid, rad, where, part[0][at, columns], part[1][at, columns], precision)
    _require_full_rank(mid.reshape(-1, width), rad.reshape(-1, width))


def _put(mid: Any, rad: Any, where: Any, m: Any, r: Any, precision: int) -> None:
    """Fixed-point balls as float64 balls: both conversions are correctly rounded, which the radius makes up for."""
    mid[where] = [int(v) / (1 << precision) for v in m]
    widths = np.array([int(v) / (1 << precision) for v in r])
    rad[where] = widths * (1 + 1e-9) + np.abs(mid[where]) * 2.0**-52 + 1e-300


def _require_full_rank(mid: Any, rad: Any) -> None:
    rows, columns = mid.shape
    for axis in (1, 0):  # scaling by powers of two is exact
        norms = np.sqrt((mid**2).sum(axis=axis, keepdims=True))
        factor = 2.0 ** -np.round(np.log2(np.where(norms > 0, norms, 1.0)))
        mid, rad = mid * factor, rad * factor
    q, r = np.linalg.qr(mid)
    inverse = np.linalg.solve(r, q.T)
    error = np.abs(inverse @ mid - np.eye(columns)).sum(axis=1)
    unit = 2.0**-52 * (rows + columns + 16)
    spread = (rad + unit * np.abs(mid)).sum(axis=1)
    bound = (error + np.abs(inverse) @ spread) * (1 + 4 * unit) + columns * unit * 2.0**-20
    if not float(bound.max()) < 0.999:
        raise Rejected("the balls do not show that the matrix has full rank")
