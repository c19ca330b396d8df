"""Expand deep normalised attention at the origin as power series over QQ, and recover virtual weights from the series.

``docs/conjecture-3.10.md`` proves that a network of normalised attention with t >= 2 tokens determines its virtual weights
(M, L): along the inputs s (x 1^T + U) with U 1 = 0, the weight M_i first enters the mean of the outputs at order 2 * 3^(i-1) + 1
in s, by the term (k / t) L C M_i^T x, where k = S'(0) / S(0) and C = U_(i-1) U_(i-1)^T depends on the earlier layers only. This
module evaluates a network over truncated power series, exactly, with any kernel S that is given by its Taylor series; it
computes the terms that the theorem predicts; and it recovers (M, L) from the series of a function, without using the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

import flint
import numpy as np

from m2bridge.families import Attention, Softmax
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.over_q import fmpq, fraction

Matrix = np.ndarray
"""An array of exact numbers (integers or Fractions), dtype object."""
Germ = Callable[[Matrix, Matrix, int], Matrix]
"""A function near the origin: (x, U, order) -> coefficients of s^0, ..., s^order of the mean output along s (x 1^T + U)."""

KERNELS: dict[str, Callable[[int], list[Fraction]]] = {
    "exp(x)": lambda n: _cumulated(Fraction(1, k) for k in range(1, n)),
    "exp(-x/3)": lambda n: _cumulated(Fraction(-1, 3 * k) for k in range(1, n)),
    "1/(1-x)": lambda n: [Fraction(1)] * n,
    "sqrt(1+4x)": lambda n: _cumulated(4 * (Fraction(3, 2) - k) / k for k in range(1, n)),
}
"""The first n Taylor coefficients of kernels S with S(0) = 1 and S'(0) != 0, injective and positive near 0."""


def _cumulated(factors: Iterable[Fraction]) -> list[Fraction]:
    return list(accumulate(factors, mul, initial=Fraction(1)))


@contextmanager
def _precision(terms: int) -> Iterator[None]:
    before = flint.ctx.cap
    flint.ctx.cap = terms
    try:
        yield
    finally:
        flint.ctx.cap = before


@dataclass(frozen=True, slots=True, eq=False)
class Kernelled:
    """A rational number or a power series of FLINT whose ``exp`` is a kernel S: NumPy calls it for ``np.exp`` of objects."""

    value: Any
    kernel: Callable[[Any], Any]

    def _with(self, value: Any) -> Kernelled:
        return Kernelled(value, self.kernel)

    def __add__(self, other: Any) -> Kernelled:
        return self._with(self.value + _value(other))

    def __mul__(self, other: Any) -> Kernelled:
        return self._with(self.value * _value(other))

    def __truediv__(self, other: Any) -> Kernelled:
        return self._with(self.value / _value(other))

    def __pow__(self, exponent: int) -> Kernelled:
        return self._with(self.value**exponent)

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> Kernelled:
        return self._with(self.kernel(self.value))


def _value(other: Any) -> Any:
    return other.value if isinstance(other, Kernelled) else fmpq(other)


def _composed(S: Any) -> Callable[[Any], Any]:
    """Return the composition with a power series; FLINT does not compose with zero."""
    return lambda terms: S(terms) if len(terms) else flint.fmpq_series([S[0]])


def germ(model: Attention, weights: dict[str, Matrix], kernel: str) -> Germ:
    """Return the program of a model, with the kernel in place of the exponential function, as a function near the origin."""

    def coefficients(x: Matrix, U: Matrix, order: int) -> Matrix:
        with _precision(order + 1):
            S = _composed(flint.fmpq_series([fmpq(c) for c in KERNELS[kernel](order + 1)]))
            s = flint.fmpq_series([0, 1])
            X = elementwise(lambda entry: Kernelled(fmpq(entry) * s, S), U + x[:, None])
            mean = model.network(weights, X).sum(axis=1) / U.shape[1]
            rows = [[fraction(m.value[k]) for k in range(order + 1)] for m in mean]
        return np.array(rows, dtype=object)

    return coefficients


def virtual_germ(M: Sequence[Matrix], L: Matrix, t: int, kernel: str) -> Germ:
    """Return the network of virtual weights: the same program with hidden layers of full width and identities for values."""
    d = L.shape[1]
    model = Softmax(d=(d,) * len(M) + (len(L),), a=(d,) * len(M), t=t, parametrization="attention")
    values = [*[np.eye(d, dtype=int).astype(object)] * (len(M) - 1), L]
    layers = list(enumerate(zip(M, values, strict=True), start=1))
    weights = {f"A{i}": m for i, (m, _) in layers} | {f"V{i}": v for i, (_, v) in layers}
    return germ(model, weights, kernel)


def order_of(layer: int) -> int:
    """Return the order in s at which M_i first enters the mean output: 3, 7, 19, 55, ..."""
    return 2 * int(3 ** (layer - 1)) + 1


def slope(kernel: str) -> Fraction:
    """Return S'(0) / S(0)."""
    return KERNELS[kernel](2)[1]


def leading_deviations(M: Sequence[Matrix], U: Matrix, k: Fraction) -> Matrix:
    """Return the leading coefficient, that of s^(3^i), of the deviations of the tokens from their mean after M_1, ..., M_i."""
    for m in M:
        U = U @ (U.T @ (m.T @ U)) * (k / U.shape[1])
    return U


def first_term(M: Sequence[Matrix], L: Matrix, U: Matrix, k: Fraction) -> Matrix:
    """Return the matrix B = (k / t) L C for which B M_i^T x is the first term of M_i in the mean output; M are the layers
    before.
    """
    deviations = leading_deviations(M, U, k)
    first: Matrix = L @ deviations @ deviations.T * (k / U.shape[1])
    return first


def drawn_inputs(rng: np.random.Generator, d: int, t: int) -> Matrix:
    """Draw integer deviations: a matrix whose rows sum to zero."""
    U = rng.integers(-3, 4, (d, t)).astype(object)
    U[:, -1] = -U[:, :-1].sum(axis=1)
    return U


class NotDeterminedError(Exception):
    """The first terms leave a weight undetermined, or the function is not that of any virtual weights."""


def recovered(
    function: Germ, *, d: int, t: int, layers: int, kernel: str, seed: int = 0
) -> tuple[list[Matrix], Matrix]:
    """Return (M, L) computed from the Taylor coefficients of the mean output only.

    Order 1 gives L. Given M_1, ..., M_(i-1), the coefficients of order below 2 * 3^(i-1) + 1 are compared with those of the
    network with M_i = ... = M_l = 0, and the difference at that order is B M_i^T x, linear in M_i.
    """
    rng = np.random.default_rng([seed, 310])
    unit = np.eye(d, dtype=int).astype(object)
    zero = np.zeros((d, d), dtype=int).astype(object)
    L = np.stack([function(e, zero[:, :1].repeat(t, axis=1), 1)[:, 1] for e in unit], axis=1)
    M: list[Matrix] = []
    for i in range(1, layers + 1):
        order = order_of(i)
        partial_germ = virtual_germ([*M, *[zero] * (layers - len(M))], L, t, kernel)
        draws = [drawn_inputs(rng, d, t) for _ in range(2 * d + 2)]
        columns = []
        for e in unit:
            differences = [function(e, U, order) - partial_germ(e, U, order) for U in draws]
            if any(x for difference in differences for x in difference[:, :order].ravel()):
                raise NotDeterminedError(
                    f"a coefficient of order below {order} is not explained by M_1, ..., M_{i - 1}"
                )
            first = np.concatenate([first_term(M, L, U, slope(kernel)) for U in draws])
            coefficients = np.concatenate([difference[:, order] for difference in differences])
            columns.append(_solution(first, coefficients, f"M_{i}"))
        M.append(np.stack(columns))  # M_i^T e_j is row j of M_i
    return M, L


def _solution(B: Matrix, y: Matrix, name: str) -> Matrix:
    """Return the w with B w = y; raise an error unless there is exactly one."""
    if over_q.rank(B) < B.shape[1]:
        raise NotDeterminedError(f"the first terms of {name} do not determine it")
    w = over_q.solve(B, y[:, None])
    if w is None:
        raise NotDeterminedError(f"no {name} explains the coefficients at its order")
    return w[:, 0]
