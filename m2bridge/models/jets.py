"""Models stage: values with tangent vectors, so that a forward pass also gives its exact derivatives.

A :class:`Jet` is ``value + e_1 tangent_1 + ... + e_k tangent_k`` with ``e_i e_j = 0``, over any arithmetic of
:mod:`m2bridge.models.arrays`. Its operations are the Leibniz rule; over F_p the derivatives are the formal
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.arrays import Mod, exp, lift, mT, power, stabilised

_CONSTANTS = (np.ndarray, np.generic, int, float, Mod)


class Jet:
    """An array with `k` tangent vectors: `tangents` has the shape of `value` with one more leading axis, of
    length k.

    Examples
    --------
    >>> x = Jet(np.array([[2.0]]), np.array([[[1.0]]]))
    >>> (x @ x * 3).tangents.item()
    12.0
    """

    __array_ufunc__ = None
    __slots__ = ("tangents", "value")

    def __init__(self, value: Any, tangents: Any) -> None:
        self.value = value
        self.tangents = tangents

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        return int(self.value.ndim)

    def _aligned(self, ndim: int) -> Any:
        """The tangents with ones between their leading axis and the shape, as broadcasting to `ndim` axes
        needs.
        """
        missing = ndim - self.ndim
        if missing <= 0:
            return self.tangents
        count, *shape = self.tangents.shape
        return self.tangents.reshape(count, *(1,) * missing, *shape)

    def _spread(self, value: Any, tangents: Any) -> Jet:
        """Tangents broadcast to the value's shape (a sum with a constant may have enlarged it)."""
        if tuple(tangents.shape[1:]) != tuple(value.shape):
            tangents = tangents + lift(np.zeros((1, *value.shape), dtype=np.int64), value)
        return Jet(value, tangents)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            value = self.value + other.value
            return Jet(value, self._aligned(value.ndim) + other._aligned(value.ndim))
        if not isinstance(other, _CONSTANTS):
            return NotImplemented
        value = self.value + other
        return self._spread(value, self._aligned(value.ndim))

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.tangents)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            value = self.value * other.value
            left, right = self._aligned(value.ndim), other._aligned(value.ndim)
            return Jet(value, left * other.value + right * self.value)
        if not isinstance(other, _CONSTANTS):
            return NotImplemented
        value = self.value * other
        return Jet(value, self._aligned(value.ndim) * other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            value = self.value @ other.value
            left, right = self._aligned(value.ndim), other._aligned(value.ndim)
            return Jet(value, left @ other.value + self.value @ right)
        if not isinstance(other, _CONSTANTS):
            return NotImplemented
        value = self.value @ other
        return Jet(value, self._aligned(value.ndim) @ other)

    def __rmatmul__(self, other: Any) -> Any:
        value = other @ self.value
        return Jet(value, other @ self._aligned(value.ndim))

    def __pow__(self, exponent: int) -> Any:
        return power(self, exponent)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Jet):
            value = self.value / other.value
            left, right = self._aligned(value.ndim), other._aligned(value.ndim)
            return Jet(value, (left - right * value) / other.value)
        if not isinstance(other, _CONSTANTS):
            return NotImplemented
        value = self.value / other
        return Jet(value, self._aligned(value.ndim) / other)

    def __rtruediv__(self, other: Any) -> Jet:
        raise NotPolynomialError(
            "a constant divided by the weights: write the quotient of two arrays instead"
        )

    def exp(self) -> Jet:
        value = exp(self.value)
        return Jet(value, self.tangents * value)

    def stabilised(self) -> Jet:
        return Jet(stabilised(self.value), self.tangents)

    @property
    def mT(self) -> Jet:
        return Jet(mT(self.value), mT(self.tangents))

    T = mT

    def sum(self, axis: int) -> Jet:
        """Sum over one axis, counted from the end (a negative number)."""
        if axis >= 0:
            raise NotPolynomialError("sum over an axis counted from the end: axis=-1, -2, ...")
        return Jet(self.value.sum(axis=axis), self.tangents.sum(axis=axis))

    def reshape(self, *shape: Any) -> Jet:
        value = self.value.reshape(*shape)
        return Jet(value, self.tangents.reshape(self.tangents.shape[0], *value.shape))

    def __getitem__(self, key: Any) -> Jet:
        return Jet(self.value[key], self.tangents[_behind(key)])

    def __setitem__(self, key: Any, part: Jet) -> None:
        self.value[key] = part.value
        self.tangents[_behind(key)] = part.tangents

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            return NotImplemented
        axis = kwargs.get("axis", args[1] if len(args) > 1 else 0)
        tangent_axis = axis if axis < 0 else axis + 1
        value = function([part.value for part in args[0]], axis=axis)
        return Jet(value, function([part.tangents for part in args[0]], axis=tangent_axis))

    def lift(self, integers: Any) -> Jet:
        """Integers as jets with zero tangents."""
        value = lift(integers, self.value)
        count = self.tangents.shape[0]
        return Jet(value, lift(np.zeros((count, *value.shape), dtype=np.int64), self.value))


def _behind(key: Any) -> tuple[Any, ...]:
    """The same index behind one more leading axis."""
    key = key if isinstance(key, tuple) else (key,)
    return key if key and key[0] is Ellipsis else (slice(None), *key)


def seeded(weights: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Jet]:
    """Weights with one tangent for each scalar weight, in flattened order: outputs then carry the whole
    Jacobian.

    The weights may have leading batch axes; `shapes` tells their own shapes.
    """
    sizes = {name: int(np.prod(shape)) for name, shape in shapes.items()}
    count = sum(sizes.values())
    jets: dict[str, Jet] = {}
    start = 0
    for name, shape in shapes.items():
        value = weights[name]
        batch = value.ndim - len(shape)
        unit = np.zeros((count, sizes[name]), dtype=np.int64)
        unit[start + np.arange(sizes[name]), np.arange(sizes[name])] = 1
        unit = np.broadcast_to(unit.reshape(count, *(1,) * batch, *shape), (count, *value.shape))
        jets[name] = Jet(value, lift(unit, value))
        start += sizes[name]
    return jets
