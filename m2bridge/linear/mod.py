"""Arrays over F_p that behave like NumPy's: the carrier in which weights, inputs and results of programs travel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.primes import check_prime
from m2bridge.linear.residues import LARGEST_PRIME, Field, field_of


@lru_cache(maxsize=256)
def checked_field(p: int) -> Field:
    """F_p for a prime below 2^31, the largest that programs are interpreted with."""
    return field_of(check_prime(p, "the prime", below=LARGEST_PRIME))


class Mod:
    """An exact array over F_p, for a prime p < 2^31, with + - * @ and indexing.

    Examples
    --------
    >>> x = Mod([[1, 2], [3, 4]], 7)
    >>> (x @ x - 3 * x).values.tolist()
    [[4, 4], [6, 3]]
    >>> x.mT.values.tolist()
    [[1, 3], [2, 4]]
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operation to Mod
    __slots__ = ("data", "field")

    def __init__(self, values: Any, p: int) -> None:
        if isinstance(values, Mod):
            raise InputError("these values are already residues")
        self.field = checked_field(int(p))
        self.data: Any = self.field.residues(values)

    @classmethod
    def wrap(cls, data: Any, p: int) -> Mod:
        """A Mod around residues as the field of p keeps them (:func:`m2bridge.linear.residues.field_of`)."""
        self = object.__new__(cls)
        self.data, self.field = data, field_of(p)
        return self

    @property
    def p(self) -> int:
        return self.field.p

    @property
    def values(self) -> np.ndarray:
        """The residues in [0, p), as int64."""
        return self.field.canonical(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def ndim(self) -> int:
        return int(self.data.ndim)

    @property
    def size(self) -> int:
        return int(self.data.size)

    def __len__(self) -> int:
        return len(self.data)

    def _like(self, data: Any) -> Mod:
        return Mod.wrap(data, self.p)

    @property
    def mT(self) -> Mod:
        return self._like(np.swapaxes(self.data, -1, -2))

    T = mT

    def reshape(self, *shape: Any) -> Mod:
        return self._like(self.data.reshape(*shape))

    def __getitem__(self, key: Any) -> Mod:
        return self._like(np.asarray(self.data[key]))

    def _residues(self, other: Any) -> Any:
        if isinstance(other, Mod):
            if other.p != self.p:
                raise InputError(f"residues modulo {self.p} and modulo {other.p} cannot be combined")
            return other.data
        return self.field.residues(other)

    def __add__(self, other: Any) -> Mod:
        return self._like(self.field.reduce(self.data + self._residues(other)))

    __radd__ = __add__

    def __neg__(self) -> Mod:
        return self._like(self.field.reduce(-self.data))

    def __sub__(self, other: Any) -> Mod:
        return self._like(self.field.reduce(self.data - self._residues(other)))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Mod:
        return self._like(self.field.reduce(self.data * self._residues(other)))

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Mod:
        return self._like(self.field.matmul(self.data, self._residues(other)))

    def __rmatmul__(self, other: Any) -> Any:
        return self._like(self.field.matmul(self._residues(other), self.data))

    def sum(self, axis: Any = None) -> Mod:
        return self._like(self.field.reduce(np.asarray(self.data.sum(axis=axis))))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            return NotImplemented
        return self._like(function([self._residues(part) for part in args[0]], *args[1:], **kwargs))

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Mod) and self.p == other.p and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Mod({self.values.tolist()}, {self.p})"
