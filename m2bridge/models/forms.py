"""Models stage: arrays of polynomials in the network's inputs, with coefficients in any arithmetic.

Running a forward pass on the generic input (:func:`generic_input`) gives the network as a polynomial
function: its coefficients are the target coordinates. The coefficients may be residues, floats, jets or
polynomials in the weights.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.arrays import lift, mT, power, zeros


class Forms:
    """An array of polynomials on one common support.

    Attributes
    ----------
    exponents: integer matrix, one row a monomial of the support, one column a variable.
    coefficients: array of shape (number of monomials, *shape), in some arithmetic.
    """

    __array_ufunc__ = None
    __slots__ = ("coefficients", "exponents")

    def __init__(self, exponents: np.ndarray, coefficients: Any) -> None:
        self.exponents = exponents
        self.coefficients = coefficients

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.coefficients.shape[1:])

    @property
    def ndim(self) -> int:
        return int(self.coefficients.ndim) - 1

    def _aligned(self, ndim: int) -> Any:
        count, *shape = self.coefficients.shape
        missing = ndim - len(shape)
        return self.coefficients.reshape(count, *(1,) * missing, *shape) if missing > 0 else self.coefficients

    def __neg__(self) -> Forms:
        return Forms(self.exponents, -self.coefficients)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Forms):
            other = Forms(np.zeros((1, self.exponents.shape[1]), dtype=np.int64), _constant(other)[None])
        ndim = max(self.ndim, other.ndim)
        left, right = self._aligned(ndim), other._aligned(ndim)
        shape = np.broadcast_shapes(left.shape[1:], right.shape[1:])
        support, place = _support(np.concatenate([self.exponents, other.exponents]))
        total = zeros((len(support), *shape), self.coefficients)
        for part, rows in ((left, place[: len(self.exponents)]), (right, place[len(self.exponents) :])):
            total[rows] = total[rows] + part
        return Forms(support, total)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Forms):
            ndim = max(self.ndim, other.ndim)
            left, right = self._aligned(ndim), other._aligned(ndim)
            shape = np.broadcast_shapes(left.shape[1:], right.shape[1:])
            return self._product(other, shape, lambda i: left[i] * right)
        return Forms(self.exponents, self._aligned(_constant(other).ndim) * other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Forms):
            ndim = max(self.ndim, other.ndim)
            left, right = self._aligned(ndim), other._aligned(ndim)
            batch = np.broadcast_shapes(left.shape[1:-2], right.shape[1:-2])
            shape = (*batch, left.shape[-2], right.shape[-1])
            return self._product(other, shape, lambda i: left[i] @ right)
        return Forms(self.exponents, self._aligned(other.ndim) @ other)

    def __rmatmul__(self, other: Any) -> Any:
        return Forms(self.exponents, other @ self._aligned(other.ndim))

    def _product(self, other: Forms, shape: tuple[int, ...], term: Any) -> Forms:
        """Sum over the left support of `term(i)`, the i-th left coefficient times all right ones.

        For one i the products are distinct monomials, so that a plain indexed addition collects them.
        """
        sums = self.exponents[:, None, :] + other.exponents[None, :, :]
        support, place = _support(sums.reshape(-1, sums.shape[-1]))
        place = place.reshape(sums.shape[:2])
        total = zeros((len(support), *shape), self.coefficients)
        for i in range(len(self.exponents)):
            total[place[i]] = total[place[i]] + term(i)
        return Forms(support, total)

    def __pow__(self, exponent: int) -> Any:
        return power(self, exponent)

    def __truediv__(self, other: Any) -> Any:
        raise NotPolynomialError("a division is not polynomial: the network divides by a value")

    __rtruediv__ = __truediv__

    @property
    def mT(self) -> Forms:
        return Forms(self.exponents, mT(self.coefficients))

    T = mT

    def sum(self, axis: int) -> Forms:
        """Sum over one axis, counted from the end (a negative number)."""
        return Forms(self.exponents, self.coefficients.sum(axis=axis))

    def __getitem__(self, key: Any) -> Forms:
        key = key if isinstance(key, tuple) else (key,)
        key = key if key and key[0] is Ellipsis else (slice(None), *key)
        return Forms(self.exponents, self.coefficients[key])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is not np.concatenate or kwargs.get("axis", 0) >= 0:
            return NotImplemented
        support, place = _support(np.concatenate([part.exponents for part in args[0]]))
        spread, start = [], 0
        for part in args[0]:
            stop = start + len(part.exponents)
            total = zeros((len(support), *part.shape), part.coefficients)
            total[place[start:stop]] = part.coefficients
            spread.append(total)
            start = stop
        return Forms(support, np.concatenate(spread, **kwargs))

    def lift(self, integers: Any) -> Any:
        return lift(integers, self.coefficients)

    def gather(self, exponents: np.ndarray) -> Any:
        """Coefficients of the given monomials, which must contain the support: shape (len(exponents),
        *shape).
        """
        row = {
            monomial.tobytes(): i
            for i, monomial in enumerate(np.ascontiguousarray(exponents, dtype=np.int64))
        }
        place = np.array([row[monomial.tobytes()] for monomial in np.ascontiguousarray(self.exponents)])
        total = zeros((len(exponents), *self.shape), self.coefficients)
        total[place] = self.coefficients
        return total


def _constant(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, (int, float, np.generic)) else value


def _support(exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct monomials, and where each given one went."""
    if exponents.shape[1] == 0:
        return exponents[:1], np.zeros(len(exponents), dtype=np.int64)
    support, place = np.unique(exponents, axis=0, return_inverse=True)
    return support, place.reshape(-1)


def monomials(variables: int, degree: int) -> np.ndarray:
    """Exponents of all monomials of one degree, in descending lexicographic order.

    >>> monomials(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    chosen = list(combinations_with_replacement(range(variables), degree))
    exponents = np.zeros((len(chosen), variables), dtype=np.int64)
    for row, factors in enumerate(chosen):
        for variable in factors:
            exponents[row, variable] += 1
    return exponents


def generic_input(shape: tuple[int, ...], like: Any) -> Forms:
    """The input whose entries are variables; a matrix is numbered column by column (the first token
    first).
    """
    count = int(np.prod(shape))
    unit = np.eye(count, dtype=np.int64).reshape(count, *reversed(shape))
    unit = unit.transpose(0, *range(len(shape), 0, -1))
    return Forms(np.eye(count, dtype=np.int64), lift(unit, like))
