"""F_p: its arithmetic on plain arrays, and :class:`Mod`, an array that knows its prime.

Integers enter, balanced residues leave: float64 numbers that are integers of absolute value at most
:attr:`Field.bound`, a little over p/2. A product of two of them is below 2^45 for p < 2^23, so that BLAS
adds several hundred products without rounding; longer sums are cut into pieces that are reduced in between.
Nothing here can overflow silently: the length of each piece is computed from p, and a prime for which no
piece fits is refused.
"""

from __future__ import annotations

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
_CHUNK = 1 << 16

FloatArray = NDArray[np.float64]


def residue(value: int | Fraction, p: int) -> int:
    """A rational number modulo p; InputError when p divides the denominator."""
    if value.denominator % p == 0:
        raise InputError(f"the number {value} does not exist modulo {p}; choose another prime")
    return int(value.numerator * pow(int(value.denominator), -1, p) % p)


def integer_matrix(matrix: Any) -> NDArray[Any]:
    """A two-dimensional array of exact integers (int64 or Python integers); floats and other inexact entries are refused."""
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise InputError(f"a matrix has two axes, this array has {array.ndim}")
    if array.dtype == object:
        if not all(isinstance(entry, (int, np.integer)) for entry in array.flat):
            raise InputError("an exact rank needs integer entries")
        return array
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"an exact rank needs integer entries, not {array.dtype}")
    return array.astype(object if array.dtype == np.uint64 else np.int64)


@dataclass(frozen=True)
class Field:
    """F_p for a prime p < 2^23, on float64 arrays of balanced residues.

    >>> field = Field(7)
    >>> field.matmul(field.residues([[3, 5]]), field.residues([[4], [6]])).tolist()
    [[0.0]]
    """

    p: int

    def __post_init__(self) -> None:
        if not 2 <= self.p < BLAS_BELOW:
            raise InputError(f"a prime below 2^{BLAS_BELOW.bit_length() - 1} is needed here, not {self.p}")

    @property
    def bound(self) -> int:
        """Largest absolute value that :meth:`reduce` leaves.

        The quotient of a number below 2^53 by p is found with an absolute error of at most 2/p, so that the
        remainder misses p/2 by at most 2; a multiple of p leaves exactly 0.
        """
        return self.p // 2 + 4

    @cached_property
    def terms(self) -> int:
        """How many products of two residues can be added to a residue before the sum may round."""
        return min(int((_EXACT - 2 * self.p - self.bound) // self.bound**2), 1 << 16)

    def residues(self, array: Any) -> Any:
        """Residues of an array of integers of any size."""
        values = np.asarray(array)
        if values.dtype.kind not in "iub" and values.dtype != object and values.size:
            raise InputError(f"residues need integers, not {values.dtype}")
        return self.reduce(np.asarray(values % self.p if values.size else values).astype(np.float64))

    def reduce(self, array: Any) -> Any:
        """Bring integers of absolute value below 2^53 - 2p to balanced residues, in place where it can be."""
        pieces = [array]
        if array.size > _CHUNK:  # pieces that stay near the processor
            flat = array.reshape(-1) if array.flags.c_contiguous else array
            rows = max(1, _CHUNK * len(flat) // flat.size)
            pieces = [flat[start : start + rows] for start in range(0, len(flat), rows)]
        for piece in pieces:
            quotient = np.rint(piece * (1.0 / self.p))
            quotient *= self.p
            np.subtract(piece, quotient, out=piece)
        return array

    def matmul(self, left: Any, right: Any) -> Any:
        """Product of residue arrays (leading axes are batches, as in ``numpy.matmul``), reduced."""
        inner, terms = left.shape[-1], self.terms
        if inner <= terms:
            return self.reduce(np.asarray(np.matmul(left, right)))
        total = self.reduce(np.matmul(left[..., :terms], right[..., :terms, :]))
        for start in range(terms, inner, terms):
            stop = min(start + terms, inner)
            total += np.matmul(left[..., start:stop], right[..., start:stop, :])
            self.reduce(total)
        return total

    def subtract_product(self, target: FloatArray, left: FloatArray, right: FloatArray) -> None:
        """target -= left @ right, reduced, for matrices; temporary memory is bounded by a band of rows."""
        inner = left.shape[1]
        band = max(64, (1 << 21) // max(1, target.shape[1]))
        for top in range(0, target.shape[0], band):
            rows = target[top : top + band]
            for start in range(0, inner, self.terms):
                stop = min(start + self.terms, inner)
                rows -= np.matmul(left[top : top + band, start:stop], right[start:stop])
                self.reduce(rows)

    def inverse(self, x: float) -> float:
        """1/x for a non-zero residue, balanced."""
        value = pow(int(x) % self.p, -1, self.p)
        return float(value - self.p if value > self.p // 2 else value)

    def inverses(self, array: Any) -> Any:
        """1/x of each entry; all are non-zero."""
        return self.residues(np.array([pow(int(x), -1, self.p) for x in array.flat]).reshape(array.shape))

    def canonical(self, array: Any) -> NDArray[np.int64]:
        """Residues in 0..p-1 as int64."""
        return np.asarray(array.astype(np.int64) % self.p)


@lru_cache(maxsize=256)
def field_of(p: int) -> Field:
    """F_p for a prime p < 2^23."""
    return Field(check_prime(p, "the prime"))


def rational(residue: int, modulus: int) -> Fraction | None:
    """The fraction a/b with a = residue * b mod modulus and |a|, b <= sqrt(modulus/2), or None; it is unique.

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
    """An exact array over F_p, for a prime p < 2^23, with + - * @ and indexing: what weights and results of programs travel in.

    >>> x = Mod([[1, 2], [3, 4]], 7)
    >>> (x @ x - 3 * x).values.tolist()
    [[4, 4], [6, 3]]
    >>> x.mT.values.tolist()
    [[1, 3], [2, 4]]
    """

    __slots__ = ("data", "field")

    def __init__(self, values: Any, p: int) -> None:
        if isinstance(values, Mod):
            raise InputError("these values are already residues")
        self.field = field_of(p)
        self.data: Any = self.field.residues(values)

    @classmethod
    def wrap(cls, data: Any, p: int) -> Mod:
        """A Mod around residues as the field of p keeps them (:func:`field_of`)."""
        made = object.__new__(cls)
        made.data, made.field = np.asarray(data), field_of(p)
        return made

    def _wrapped(self, data: Any) -> Mod:
        made = object.__new__(Mod)
        made.data, made.field = np.asarray(data), self.field
        return made

    @property
    def p(self) -> int:
        return self.field.p

    @property
    def values(self) -> NDArray[np.int64]:
        """The residues in [0, p), as int64."""
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
        return self._wrapped(function([self._residues(part) for part in args[0]], *args[1:], **kwargs))

    def _residues(self, other: Any) -> Any:
        if isinstance(other, int):  # balanced: an array for it would take longer than the product
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
