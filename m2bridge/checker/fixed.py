"""Checker: rigorous real numbers with integers only. Standard library only.

A ball (m, r) stands for all reals within r / 2^P of m / 2^P. Every operation rounds outward. The exponential is
summed from its series after halving the argument; its remainder is below the last term.
"""

from __future__ import annotations

from math import frexp
from typing import Any

from m2bridge.checker.networks import Network, Rejected, product, total, transpose

Pair = tuple[int, int]


class Balls:
    """Fixed-point balls with P bits after the point."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.one = 1 << bits

    def dyadic(self, numerator: int, bits: int) -> Pair:
        return numerator << (self.bits - bits), 0

    def multiply(self, x: Pair, y: Pair) -> Pair:
        (a, r), (b, s) = x, y
        rad = abs(a) * s + abs(b) * r + r * s if r or s else 0
        return (a * b) >> self.bits, (rad >> self.bits) + 2

    def divide(self, x: Pair, y: Pair) -> Pair:
        (a, r), (b, s) = x, y
        least = abs(b) - s
        if least <= 0:
            raise Rejected("a ball contains zero: the precision does not suffice")
        mid = (a << self.bits) // b
        # |x/y - a/b| <= (r |b| + |a| s) / (|b| least)
        return mid, ((r * abs(b) + abs(a) * s) << self.bits) // (abs(b) * least) + 2

    def exponential(self, x: Pair) -> Pair:
        a, r = x
        if r >= self.one >> 2 or abs(a) > self.one << 12:
            raise Rejected("an exponent is too wide or too large")
        halvings = max(0, abs(a).bit_length() - self.bits + 8)
        extra = self.bits + 32 + halvings
        small = (a << (extra - self.bits)) >> halvings
        one = 1 << extra
        term, result, k = one, one, 0
        while term not in (0, -1):
            k += 1
            term = (term * small >> extra) // k
            result += term
        value, error = result, 2 * k + 4
        for _ in range(halvings):
            error = (2 * abs(value) * error + error * error >> extra) + 2
            value = value * value >> extra
        mid = value >> (extra - self.bits)
        rad = (error >> (extra - self.bits)) + 2
        # e^(a +- r) lies within e^a (e^r - 1) <= e^a 2 r for r <= 1/4
        return mid, rad + (2 * r * (abs(mid) + rad + 1) >> self.bits) + 1


class Jet:
    """A ball with derivatives that are balls (None: all zero)."""

    __slots__ = ("balls", "d", "x")

    def __init__(self, balls: Balls, x: Pair, d: list[Pair] | None = None) -> None:
        self.balls, self.x, self.d = balls, x, d

    def __add__(self, other: Jet) -> Jet:
        x = (self.x[0] + other.x[0], self.x[1] + other.x[1])
        if self.d is None or other.d is None:
            return Jet(self.balls, x, self.d or other.d)
        return Jet(self.balls, x, [(a + b, r + s) for (a, r), (b, s) in zip(self.d, other.d, strict=True)])

    def __mul__(self, other: Jet) -> Jet:
        balls = self.balls
        mul = balls.multiply
        x = mul(self.x, other.x)
        if self.d is None and other.d is None:
            return Jet(balls, x)
        if other.d is None:
            return Jet(balls, x, [mul(d, other.x) if d != (0, 0) else d for d in self.d or []])
        if self.d is None:
            return Jet(balls, x, [mul(d, self.x) if d != (0, 0) else d for d in other.d])
        found = []
        for u, v in zip(self.d, other.d, strict=True):
            a, b = mul(u, other.x) if u != (0, 0) else u, mul(v, self.x) if v != (0, 0) else v
            found.append((a[0] + b[0], a[1] + b[1]))
        return Jet(balls, x, found)


def softmax_columns(balls: Balls, scores: list[list[Jet]]) -> list[list[Jet]]:
    """Columns of exp(scores) divided by their sums."""
    powers = []
    for row in scores:
        new = []
        for s in row:
            e = balls.exponential(s.x)
            new.append(Jet(balls, e, [balls.multiply(e, d) for d in s.d] if s.d else None))
        powers.append(new)
    inverses = []
    for column in zip(*powers, strict=True):
        sum_ = total(list(column))
        inverse = balls.divide((balls.one, 0), sum_.x)
        square = balls.multiply(inverse, inverse)
        slope = (-square[0], square[1])
        inverses.append(Jet(balls, inverse, [balls.multiply(slope, d) for d in sum_.d] if sum_.d else None))
    return [[x * inverses[j] for j, x in enumerate(row)] for row in powers]


def check_minor(
    balls: Balls,
    network: Network,
    layers: Any,
    inputs: Any,
    bits: int,
    outputs: int,
    free: Any,
    rows: list[int],
    recorded: Any,
) -> None:
    """The chosen minor does not contain zero, and its value is the recorded one."""
    w, t = network.widths, network.tokens
    width = outputs * w[-2] + len(free)
    place = {entry: outputs * w[-2] + k for k, entry in enumerate(free)}
    place |= {(len(layers) - 1, 2, i, j): i * w[-2] + j for i in range(outputs) for j in range(w[-2])}

    def jet(key: tuple[int, int, int, int] | None, numerator: int) -> Jet:
        seed = None
        if key in place:
            seed = [(0, 0)] * width
            seed[place[key]] = (balls.one, 0)
        return Jet(balls, balls.dyadic(numerator, bits), seed)

    weights = [
        [
            [[jet((k, which, i, j), x) for j, x in enumerate(row)] for i, row in enumerate(matrix)]
            for which, matrix in enumerate(layer)
        ]
        for k, layer in enumerate(layers)
    ]
    count = len(inputs) * t
    wanted = {divmod(row, count) for row in rows}
    found: dict[int, list[Pair]] = {}
    for n in sorted({token // t for _, token in wanted}):
        x: Any = [[jet(None, v) for v in row] for row in inputs[n]]
        for k, (query, key, value) in enumerate(weights):
            scores = product(transpose(product(key, x)), product(query, x))
            use = value[:outputs] if k == len(weights) - 1 else value
            x = product(use, product(x, softmax_columns(balls, scores)))
        for i in range(outputs):
            for s in range(t):
                if (i, n * t + s) in wanted:
                    found[i * count + n * t + s] = x[i][s].d or [(0, 0)] * width
    mantissa, exponent = _determinant(balls, [found[row] for row in rows])
    first, second = recorded
    if not isinstance(first, str) or not isinstance(second, int) or isinstance(second, bool):
        raise Rejected("the recorded determinant is malformed")
    said = int(first) * 2.0 ** max(-1000, min(1000, second - exponent))
    if not abs(said - mantissa) <= 1e-12 * abs(mantissa):
        raise Rejected("the determinant of the minor is another one")


def _determinant(balls: Balls, matrix: list[list[Pair]]) -> tuple[float, int]:
    """Determinant as mantissa and exponent of two; rejected when a pivot's ball contains zero."""
    n = len(matrix)
    mantissa, exponent = 1.0, 0
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(matrix[i][k][0]) - matrix[i][k][1])
        if pivot != k:
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            mantissa = -mantissa
        mid, rad = matrix[k][k]
        if abs(mid) <= rad:
            raise Rejected("the minor's ball contains zero: nothing is proved")
        shift = max(0, abs(mid).bit_length() - 60)
        mantissa, more = frexp(mantissa * (mid >> shift))
        exponent += more + shift - balls.bits
        top = matrix[k]
        for i in range(k + 1, n):
            if matrix[i][k] == (0, 0):
                continue
            factor = balls.divide(matrix[i][k], (mid, rad))
            row = matrix[i]
            for j in range(k + 1, n):
                if top[j] != (0, 0):
                    m, r = balls.multiply(factor, top[j])
                    a, s = row[j]
                    row[j] = (a - m, s + r)
    return mantissa, exponent
