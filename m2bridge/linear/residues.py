"""Arithmetic in F_p: :class:`Field` on float64 arrays of residues, and :class:`Mod`, an array with its prime.

Elements of F_p are represented by balanced residues: integers stored as float64, of absolute value at most
:attr:`Field.bound`, which is slightly more than p/2. For p < 2^23 a product of two of them is below 2^45, so BLAS
adds several hundred products without rounding (float64 represents all integers up to 2^53). Longer sums are split
into blocks, and the partial sums are reduced after each block. The length of a block is computed from p
(:attr:`Field.terms`), so no sum can round unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd, isqrt
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from m2bridge.errors import InputError
from m2bridge.linear.primes import BLAS_BELOW, check_prime

_EXACT = 2**53
"""Float64 represents all integers up to this absolute value."""
_BLOCK_ENTRIES = 1 << 14
"""The number of entries reduced at once, so that they stay in the processor's cache."""

FloatArray = NDArray[np.float64]


def residue(value: int | Fraction, p: int) -> int:
    """Reduce a rational number modulo p. Raises InputError if p divides the denominator."""
    if value.denominator % p == 0:
        raise InputError(f"{value} is not defined modulo {p}; choose another prime")
    return int(value.numerator * pow(int(value.denominator), -1, p) % p)


def reduce_polynomial(
    polynomial: Mapping[tuple[int, ...], int | Fraction], p: int
) -> dict[tuple[int, ...], int]:
    """Reduce the coefficients of a polynomial, exponents -> coefficient, modulo a prime that divides no denominator."""
    return {exponents: r for exponents, value in polynomial.items() if (r := residue(value, p))}


def integer_matrix(matrix: Any) -> NDArray[Any]:
    """Convert to a two-dimensional array of int64 or Python integers. Raises InputError if an entry is not an integer."""
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise InputError(f"expected a matrix (two axes), not an array with {array.ndim} axes")
    if array.dtype == object:
        if not all(isinstance(entry, (int, np.integer)) for entry in array.flat):
            raise InputError("an exact rank requires integer entries")
        return array
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"an exact rank requires integer entries, not {array.dtype}")
    return array.astype(object if array.dtype == np.uint64 else np.int64)


@dataclass(frozen=True)
class Field:
    """Arithmetic in F_p for a prime p < 2^23, on float64 arrays of balanced residues.

    >>> field = Field(7)
    >>> field.matmul(field.residues([[3, 5]]), field.residues([[4], [6]])).tolist()
    [[0.0]]
    """

    p: int

    def __post_init__(self) -> None:
        if not 2 <= self.p < BLAS_BELOW:
            raise InputError(f"a prime below 2^{BLAS_BELOW.bit_length() - 1} is required, not {self.p}")

    @property
    def bound(self) -> int:
        """Return the largest absolute value of a result of :meth:`reduce`.

        The quotient of a number below 2^53 by p is computed with an absolute error of at most 2/p. So the
        remainder exceeds p/2 by at most 2, and a multiple of p is reduced to exactly 0.
        """
        return self.p // 2 + 4

    @cached_property
    def terms(self) -> int:
        """Return the number of products of two residues that can be added to a residue before the sum may round."""
        return min(int((_EXACT - 2 * self.p - self.bound) // self.bound**2), 1 << 16)

    def residues(self, array: Any) -> Any:
        """Return the balanced residues of an array of integers of any size."""
        values = np.asarray(array)
        if values.dtype.kind not in "iub" and values.dtype != object and values.size:
            raise InputError(f"residues are defined for integers, not for {values.dtype}")
        return self.reduce(np.asarray(values % self.p if values.size else values).astype(np.float64))

    def reduce(self, array: Any) -> Any:
        """Reduce integers of absolute value below 2^53 - 2p to balanced residues, in place: x <- x - p round(x / p)."""
        blocks = [array]
        if array.size > _BLOCK_ENTRIES:
            flat = array.reshape(-1) if array.flags.c_contiguous else array
            rows = max(1, _BLOCK_ENTRIES * len(flat) // flat.size)
            blocks = [flat[start : start + rows] for start in range(0, len(flat), rows)]
        for block in blocks:
            quotient = np.rint(block * (1.0 / self.p))
            quotient *= self.p
            np.subtract(block, quotient, out=block)
        return array

    def matmul(self, left: Any, right: Any) -> Any:
        """Return the reduced product of arrays of residues. Leading axes are batch axes, as in ``numpy.matmul``."""
        inner = left.shape[-1]
        terms = self.terms
        if inner <= terms:
            return self.reduce(np.asarray(np.matmul(left, right)))
        total = self.reduce(np.matmul(left[..., :terms], right[..., :terms, :]))
        for start in range(terms, inner, terms):
            stop = min(start + terms, inner)
            total += np.matmul(left[..., start:stop], right[..., start:stop, :])
            self.reduce(total)
        return total

    def subtract_product(self, target: FloatArray, left: FloatArray, right: FloatArray) -> None:
        """Compute target -= left @ right in place, reduced. Rows are processed in bands, which bounds the temporary memory."""
        inner = left.shape[1]
        band = max(512, (1 << 21) // max(1, target.shape[1]))  # fewer rows are slower in BLAS
        for top in range(0, target.shape[0], band):
            rows = target[top : top + band]
            for start in range(0, inner, self.terms):
                stop = min(start + self.terms, inner)
                rows -= np.matmul(left[top : top + band, start:stop], right[start:stop])
                self.reduce(rows)

    def inverse(self, x: float) -> float:
        """Return the balanced residue of 1/x for a non-zero residue x."""
        value = pow(int(x) % self.p, -1, self.p)
        return float(value - self.p if value > self.p // 2 else value)

    def inverses(self, array: Any) -> Any:
        """Return the inverses of the entries, all of which must be non-zero."""
        return self.residues(np.array([pow(int(x), -1, self.p) for x in array.flat]).reshape(array.shape))

    def canonical(self, array: Any) -> NDArray[np.int64]:
        """Return the residues in 0..p-1 as int64."""
        return np.asarray(array.astype(np.int64) % self.p)


@lru_cache(maxsize=256)
def field_of(p: int) -> Field:
    """Return the field F_p for a prime p < 2^23; fields are cached."""
    return Field(check_prime(p, "the prime"))


def rational(residue: int, modulus: int) -> Fraction | None:
    """Return the fraction a/b with a = residue * b mod modulus and |a|, |b| <= sqrt(modulus/2), or None.

    This is rational reconstruction; there is at most one such fraction. The extended Euclidean algorithm keeps
    r = t * residue mod modulus in each step, and is stopped at the first remainder r of size at most sqrt(modulus/2).

    >>> rational(pow(3, -1, 10007) * -2 % 10007, 10007)
    Fraction(-2, 3)
    """
    bound = isqrt(modulus // 2)
    r0, r1, t0, t1 = modulus, residue % modulus, 0, 1
    while r1 > bound:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if t1 == 0 or abs(t1) > bound or gcd(r1, abs(t1)) != 1:
        return None
    return Fraction(r1, t1)


class Mod(NDArrayOperatorsMixin):
    """An exact array over F_p, for a prime p < 2^23, with + - * @ and indexing. Programs take and return such arrays.

    >>> x = Mod([[1, 2], [3, 4]], 7)
    >>> (x @ x - 3 * x).values.tolist()
    [[4, 4], [6, 3]]
    >>> x.mT.values.tolist()
    [[1, 3], [2, 4]]
    """

    __slots__ = ("data", "field")

    def __init__(self, values: Any, p: int) -> None:
        if isinstance(values, Mod):
            raise InputError("the values are already an array over F_p (Mod)")
        self.field = field_of(p)
        self.data: Any = self.field.residues(values)

    @classmethod
    def wrap(cls, data: Any, p: int) -> Mod:
        """Make a Mod from an array of balanced residues without reducing it."""
        result = object.__new__(cls)
        result.data = np.asarray(data)
        result.field = field_of(p)
        return result

    def _wrapped(self, data: Any) -> Mod:
        result = object.__new__(Mod)
        result.data = np.asarray(data)
        result.field = self.field
        return result

    @property
    def p(self) -> int:
        return self.field.p

    @property
    def values(self) -> NDArray[np.int64]:
        """Return the residues in [0, p), as int64."""
        return self.field.canonical(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mT(self) -> Mod:
        return self._wrapped(np.swapaxes(self.data, -1, -2))

    T = mT

    def __len__(self) -> int:
        return len(self.data)

    def reshape(self, *shape: Any) -> Mod:
        return self._wrapped(self.data.reshape(*shape))

    def transpose(self, *axes: int) -> Mod:
        return self._wrapped(self.data.transpose(*axes))

    def __getitem__(self, key: Any) -> Mod:
        return self._wrapped(self.data[key])

    def sum(self, axis: Any = None) -> Mod:
        return self._wrapped(self.field.reduce(np.asarray(self.data.sum(axis=axis))))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        data = [self._residues(value) for value in inputs]
        if ufunc is np.matmul:
            return self._wrapped(self.field.matmul(*data))
        if ufunc in (np.add, np.subtract, np.multiply, np.negative):
            return self._wrapped(self.field.reduce(np.asarray(ufunc(*data))))
        return NotImplemented

    def __matmul__(self, other: Any) -> Mod:
        return self._wrapped(self.field.matmul(self.data, self._residues(other)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            return NotImplemented
        return self._wrapped(function([self._residues(array) for array in args[0]], *args[1:], **kwargs))

    def _residues(self, other: Any) -> Any:
        if isinstance(
            other, int
        ):  # a scalar needs no array, which would take longer to make than the product
            return (other + self.p // 2) % self.p - self.p // 2
        if not isinstance(other, Mod):
            return self.field.residues(other)
        if other.p != self.p:
            raise InputError(f"residues modulo {self.p} and modulo {other.p} cannot be combined")
        return other.data

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Mod) and self.p == other.p and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Mod({self.values.tolist()}, {self.p})"
