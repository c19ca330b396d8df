"""Models stage: exact arrays over F_p, fast enough to stand beside float64.

Integers enter, residues leave; no intermediate number is ever rounded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from flint import fmpz

from m2bridge.errors import InputError, NotPolynomialError

LARGEST_PRIME = 2**31
_FLOAT_BELOW = 2**26  # below it a product of two residues is exact in float64
_EXACT = 2**53
_SHORTEST_BLOCK = 8  # with fewer terms in an exact float64 sum, splitting a factor is cheaper
_CACHED = 1 << 13  # entries reduced at a time, so that the passes stay in the cache
_SPLIT = 1 << 16


@lru_cache(maxsize=256)
def checked_prime(p: int) -> int:
    """`p` itself when it is a prime that :class:`Mod` supports.

    Raises
    ------
    InputError
        `p` is not a prime, or not below 2^31.
    """
    if not 2 <= p < LARGEST_PRIME:
        raise InputError(f"the prime {p} is not between 2 and 2^31")
    if not fmpz(p).is_prime():
        raise InputError(f"{p} is not a prime number")
    return p


class Mod:
    """An exact array over F_p, for a prime p < 2^31.

    Parameters
    ----------
    values
        Integers of any size and sign, as an array or nested lists.
    p
        The prime.

    Notes
    -----
    Residues below 2^26 are kept as float64, so that products of matrices are float64 products whose sums are
    cut into blocks that stay below 2^53: every intermediate number is an exactly represented integer. For
    larger primes residues are int64 and a factor is split into two 16-bit halves.

    Examples
    --------
    >>> x = Mod([[1, 2], [3, 4]], 7)
    >>> (x @ x - 3 * x).values.tolist()
    [[4, 4], [6, 3]]
    >>> x.mT.values.tolist()
    [[1, 3], [2, 4]]
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operation to Mod
    __slots__ = ("data", "p")

    def __init__(self, values: Any, p: int) -> None:
        self.p = checked_prime(p)
        if isinstance(values, Mod):
            raise InputError("these values are already residues")
        array = np.asarray(values)
        if array.dtype == object:
            array = np.vectorize(lambda v: int(v) % p, otypes=[np.int64])(array) if array.size else array
        elif array.size and array.dtype.kind not in "iub":
            raise InputError(f"residues modulo {p} are made of integers, not of {array.dtype}")
        if array.dtype.kind == "u":
            array = array % np.uint64(p)
        residues = array.astype(np.int64) % p
        self.data: np.ndarray = residues.astype(np.float64) if p < _FLOAT_BELOW else residues

    @classmethod
    def wrap(cls, data: np.ndarray, p: int) -> Mod:
        """A Mod around residues that are already reduced and of the right type."""
        self = object.__new__(cls)
        self.data, self.p = data, p
        return self

    @property
    def values(self) -> np.ndarray:
        """The residues in [0, p), as int64."""
        return self.data.astype(np.int64)

    # -- shape -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        return self.data.size

    def __len__(self) -> int:
        return len(self.data)

    @property
    def mT(self) -> Mod:
        return Mod.wrap(np.swapaxes(self.data, -1, -2), self.p)

    T = mT

    def reshape(self, *shape: Any) -> Mod:
        return Mod.wrap(self.data.reshape(*shape), self.p)

    def swapaxes(self, first: int, second: int) -> Mod:
        return Mod.wrap(np.swapaxes(self.data, first, second), self.p)

    def __getitem__(self, key: Any) -> Mod:
        return Mod.wrap(np.asarray(self.data[key]), self.p)

    def __setitem__(self, key: Any, part: Any) -> None:
        self.data[key] = self._residues(part)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            return NotImplemented
        parts = [self._residues(part) for part in args[0]]
        return Mod.wrap(function(parts, *args[1:], **kwargs), self.p)

    # -- arithmetic --------------------------------------------------------------------------------------

    def _residues(self, other: Any) -> np.ndarray:
        if isinstance(other, Mod):
            if other.p != self.p:
                raise InputError(f"residues modulo {self.p} and modulo {other.p} cannot be combined")
            return other.data
        return Mod(other, self.p).data

    def __add__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        total = self.data + self._residues(other)
        total -= (total >= self.p) * total.dtype.type(self.p)
        return Mod.wrap(total, self.p)

    __radd__ = __add__

    def __neg__(self) -> Mod:
        return Mod.wrap((self.p - self.data) * (self.data != 0), self.p)

    def __sub__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        difference = self.data - self._residues(other)
        difference += (difference < 0) * difference.dtype.type(self.p)
        return Mod.wrap(difference, self.p)

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_plain(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        return Mod.wrap(_reduced(self.data * self._residues(other), self.p), self.p)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        return Mod.wrap(_matmul(self.data, self._residues(other), self.p), self.p)

    def __rmatmul__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        return Mod.wrap(_matmul(self._residues(other), self.data, self.p), self.p)

    def __pow__(self, exponent: int) -> Any:
        return power(self, exponent)

    def __truediv__(self, other: Any) -> Any:
        raise NotPolynomialError("a division is not polynomial: the network divides by a value")

    __rtruediv__ = __truediv__

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Mod:
        """Sum over axes, exactly: fewer than 2^27 entries, each below 2^26 (or 2^31 in int64)."""
        return Mod.wrap(_reduced(np.asarray(self.data.sum(axis=axis)), self.p), self.p)

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Mod) and self.p == other.p and np.array_equal(self.data, other.data)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Mod({self.values.tolist()}, {self.p})"


def _is_plain(other: Any) -> bool:
    return isinstance(other, (Mod, int, np.integer, np.ndarray))


def _reduced(array: np.ndarray, p: int) -> np.ndarray:
    """Residues of an array of our own, in place: integers from 0, in int64 or exact in float64 (below 2^53 -
    2^32).

    In float64 the quotient is taken a little too small, so that it is right or one too small: the remainder
    is exact and in [0, 2p), and one comparison settles it.
    """
    if array.dtype != np.float64:
        return np.asarray(array % p)
    flat = _flat_view(array)
    inverse = (1.0 / p) * (1.0 - 2.0**-51)
    shape = flat[:_CACHED].shape
    quotient, above = np.empty(shape), np.empty(shape, dtype=bool)
    for start in range(0, flat.shape[0], _CACHED):
        part = flat[start : start + _CACHED]
        q, over = quotient[: len(part)], above[: len(part)]
        np.multiply(part, inverse, out=q)
        np.floor(q, out=q)
        q *= p
        part -= q
        np.greater_equal(part, p, out=over)
        np.multiply(over, float(p), out=q)
        part -= q
    return array


def _flat_view(array: np.ndarray) -> np.ndarray:
    """One axis over the memory of an array of our own, whatever order its axes are in."""
    for view in (array, np.swapaxes(array, -1, -2) if array.ndim > 1 else array):
        if view.flags.c_contiguous:
            return view.reshape(-1)
    return array[None]


def _matmul(left: np.ndarray, right: np.ndarray, p: int) -> np.ndarray:
    """The product modulo p of two arrays of residues, through float64 products of exact blocks."""
    block = (_EXACT - 2 * LARGEST_PRIME) // (p - 1) ** 2 if p > 2 else _EXACT
    if p < _FLOAT_BELOW and block >= _SHORTEST_BLOCK:
        return _blocked(left, right, p, block)
    # left = high * 2^16 + low with high < 2^15 and low < 2^16: sums of 32 products stay below 2^52
    high, low = np.divmod(left.astype(np.int64), _SPLIT)
    dense = right.astype(np.float64)
    top = _blocked(high.astype(np.float64), dense, p, 32).astype(np.int64)
    bottom = _blocked(low.astype(np.float64), dense, p, 32).astype(np.int64)
    return ((top * _SPLIT + bottom) % p).astype(left.dtype)


def _blocked(left: np.ndarray, right: np.ndarray, p: int, block: int) -> np.ndarray:
    inner = left.shape[-1]
    if inner <= block:
        return _reduced(np.asarray(_product(left, right)), p)
    total: Any = 0
    for start in range(0, inner, block):
        window = slice(start, start + block)
        rows = right[window] if right.ndim == 1 else right[..., window, :]
        total = _reduced(np.asarray(total + _product(left[..., window], rows)), p)
    return np.asarray(total)


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``left @ right``; a batch against one matrix becomes one large product instead of many small ones."""
    if left.ndim > 2 and right.ndim == 2:
        rows = np.ascontiguousarray(left).reshape(-1, left.shape[-1])
        return np.asarray((rows @ right).reshape(*left.shape[:-1], right.shape[-1]))
    if left.ndim == 2 and right.ndim > 2:
        return np.swapaxes(_product(np.swapaxes(right, -1, -2), left.T), -1, -2)
    return np.asarray(left @ right)


def power(array: Any, exponent: int) -> Any:
    """The entrywise power ``array ** exponent`` by repeated multiplication, over any arithmetic; exponent >=
    1.
    """
    if isinstance(exponent, bool) or not isinstance(exponent, (int, np.integer)) or exponent < 1:
        raise NotPolynomialError(f"the power {exponent!r} is not polynomial: exponents are integers from 1")
    result = None
    while exponent:
        if exponent & 1:
            result = array if result is None else result * array
        exponent >>= 1
        if exponent:
            array = array * array
    return result
