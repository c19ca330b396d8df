"""Models stage: a forward pass that remembers itself, for vectorised reverse-mode Jacobians over any
arithmetic.

A :class:`Node` behaves like one array, however many inputs are evaluated at once: `batch` axes are hidden in
front, so that a function written for a single input (``X.T``, ``X[0]``, ``Q @ X`` with a stack of matrices
Q) means the same for a thousand. Only polynomial operations are defined; anything else is a
:class:`~m2bridge.errors.NotPolynomialError` that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.arrays import exp, lift, mT, object_array, power, stabilised, zeros
from m2bridge.models.constants import constant_array
from m2bridge.models.pullbacks import Pullback, add_at, summed_to


class Node:
    """An array in a computation.

    Attributes
    ----------
    value: array of shape (N, *core) when `batched`, else core; of one of the plain arithmetics.
    parents: the nodes it was made from, each with the pullback of cotangents.
    """

    __slots__ = ("analytic", "batched", "parents", "value")

    def __init__(
        self,
        value: Any,
        *,
        batched: bool = False,
        parents: Sequence[tuple[Node, Pullback]] = (),
        analytic: bool = False,
    ) -> None:
        if not hasattr(value, "shape"):  # NumPy takes a single object out of its array
            value = object_array([value], ())
        self.value, self.batched, self.parents, self.analytic = value, batched, tuple(parents), analytic

    # -- shape --------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape[1:] if self.batched else self.value.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def _made(self, value: Any, batched: bool, *parents: tuple[Node, Pullback]) -> Node:
        return Node(value, batched=batched, parents=parents, analytic=self.analytic)

    def _lead(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (self.value.shape[0], *shape) if self.batched else tuple(shape)

    def _aligned(self, ndim: int) -> Any:
        """The value with ones after the batch axis, so that the core broadcasts against `ndim` axes."""
        missing = ndim - self.ndim
        return self.value.reshape(self._lead((1,) * missing + self.shape)) if missing > 0 else self.value

    def reshape(self, *shape: Any) -> Node:
        core = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        value, mine = self.value.reshape(self._lead(core)), self.shape
        return self._made(value, self.batched, (self, lambda c: c.reshape(*c.shape[:2], *mine)))

    @property
    def mT(self) -> Node:
        if self.ndim < 2:
            return self
        return self._made(mT(self.value), self.batched, (self, mT))

    @property
    def T(self) -> Node:
        if self.ndim > 2:
            raise NotPolynomialError("'.T' of an array with more than two axes is ambiguous here; use '.mT'")
        return self.mT

    def transpose(self, *axes: int) -> Node:
        if axes not in ((), (1, 0)):
            raise NotPolynomialError(f"transpose{axes} is not supported; use '.mT'")
        return self.T

    def __getitem__(self, key: Any) -> Node:
        key = key if isinstance(key, tuple) else (key,)
        mine = (slice(None), *key) if self.batched else key
        shape = self.shape

        def scatter(cotangent: Any) -> Any:
            spread = zeros((*cotangent.shape[:2], *shape), cotangent)
            return add_at(spread, (slice(None), slice(None), *key), cotangent)

        return self._made(self.value[mine], self.batched, (self, scatter))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def sum(self, axis: int | None = None) -> Node:
        if axis is None:
            return self.reshape(int(np.prod(self.shape))).sum(axis=-1)
        axis = axis - self.ndim if axis >= 0 else axis
        shape = self.shape

        def spread(cotangent: Any) -> Any:
            place = cotangent.ndim + 1 + axis
            widened = cotangent.reshape(*cotangent.shape[:place], 1, *cotangent.shape[place:])
            return widened + zeros((1, 1, *shape), cotangent)

        return self._made(self.value.sum(axis=axis), self.batched, (self, spread))

    # -- arithmetic ---------------------------------------------------------------------------------

    def _other(self, other: Any) -> Node:
        """Another node, or a constant as one."""
        return other if isinstance(other, Node) else Node(constant_array(other, self.value))

    def __add__(self, other: Any) -> Node:
        other = self._other(other)
        ndim = max(self.ndim, other.ndim)
        value = self._aligned(ndim) + other._aligned(ndim)
        return self._made(
            value,
            self.batched or other.batched,
            (self, summed_to(self.shape)),
            (other, summed_to(other.shape)),
        )

    __radd__ = __add__

    def __neg__(self) -> Node:
        return self._made(-self.value, self.batched, (self, lambda c: -c))

    def __pos__(self) -> Node:
        return self

    def __sub__(self, other: Any) -> Node:
        return self + (-self._other(other))

    def __rsub__(self, other: Any) -> Node:
        return -self + self._other(other)

    def __mul__(self, other: Any) -> Node:
        other = self._other(other)
        ndim = max(self.ndim, other.ndim)
        left, right = self._aligned(ndim), other._aligned(ndim)
        mine, its = summed_to(self.shape), summed_to(other.shape)
        return self._made(
            left * right,
            self.batched or other.batched,
            (self, lambda c: mine(c * right)),
            (other, lambda c: its(c * left)),
        )

    __rmul__ = __mul__

    def __matmul__(self, factor: Any) -> Node:
        other = self._other(factor)
        if self.ndim == 1:
            result: Node = (
                (self[None, :] @ other)[..., 0, :] if other.ndim > 1 else (self * other).sum(axis=-1)
            )
            return result
        if other.ndim == 1:
            return (self @ other[:, None])[..., 0]
        ndim = max(self.ndim, other.ndim)
        left, right = self._aligned(ndim), other._aligned(ndim)
        mine, its = summed_to(self.shape), summed_to(other.shape)
        return self._made(
            left @ right,
            self.batched or other.batched,
            (self, lambda c: mine(c @ mT(right))),
            (other, lambda c: its(mT(left) @ c)),
        )

    def __rmatmul__(self, other: Any) -> Node:
        return self._other(other) @ self

    def __pow__(self, exponent: int) -> Any:
        return power(self, exponent)

    def exp(self) -> Node:
        if not self.analytic:
            raise NotPolynomialError("exp is not polynomial")
        value = exp(self.value)
        return self._made(value, self.batched, (self, lambda c: c * value))

    def stabilised(self) -> Node:
        return self._made(stabilised(self.value), self.batched, (self, lambda c: c))

    def __truediv__(self, other: Any) -> Node:
        if not self.analytic:
            if isinstance(other, (int, np.integer)):
                raise NotPolynomialError("a division: multiply by Fraction(1, n) instead of dividing by n")
            raise NotPolynomialError("a division is not polynomial")
        other = self._other(other)
        ndim = max(self.ndim, other.ndim)
        right = other._aligned(ndim)
        value = self._aligned(ndim) / right
        mine, its = summed_to(self.shape), summed_to(other.shape)
        return self._made(
            value,
            self.batched or other.batched,
            (self, lambda c: mine(c / right)),
            (other, lambda c: its(-(c * value) / right)),
        )

    def __rtruediv__(self, other: Any) -> Node:
        return self._other(other) / self if self.analytic else self.__truediv__(other)

    # -- what NumPy asks ----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc in _UFUNCS:
            first, *rest = inputs
            first = first if isinstance(first, Node) else self._other(first)
            return _UFUNCS[ufunc](first, *rest)
        raise NotPolynomialError(
            f"numpy.{ufunc.__name__} is not polynomial or not supported in a traced network"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.concatenate, np.stack):
            from m2bridge.models.tape_numpy import joined

            return joined(function, *args, **kwargs)
        from m2bridge.models.tape_einsum import FUNCTIONS

        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **kwargs)
        if function is np.sum:
            return self.sum(*args[1:], **kwargs)
        if function is np.transpose and len(args) == 1:
            return self.T
        raise NotPolynomialError(
            f"NumPy's {function.__name__} is not supported in a traced network; use {_SUPPORTED}",
            unsupported=True,
        )

    def _refuse(self, *_: Any) -> Any:
        raise NotPolynomialError(
            "a traced network asks for the value of an array: branching is not polynomial"
        )

    __float__ = __int__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __floordiv__ = _refuse
    __abs__ = __round__ = __rpow__ = _refuse

    def lift(self, integers: Any) -> Node:
        return Node(lift(integers, self.value), analytic=self.analytic)


_SUPPORTED = "+ - * @ **, .T, indexing, reshape, and NumPy's sum, concatenate, stack, einsum, dot, inner, outer, tensordot, trace"
_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.matmul: lambda a, b: a @ b,
    np.negative: lambda a: -a,
    np.positive: lambda a: a,
    np.square: lambda a: a * a,
    np.power: power,
    np.exp: lambda a: a.exp(),
    np.true_divide: lambda a, b: a / b,
}
