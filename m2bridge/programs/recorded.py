"""An array that records what is done with it, with the operators and methods of a NumPy array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided

from m2bridge.programs.contractions import summed, transposed
from m2bridge.programs.indexing import entries, rearranged, stacked_numbers
from m2bridge.programs.instructions import Shape
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import WithoutValues, not_polynomial, wrong_input


def place_of(recorder: Recorder, value: Any) -> int:
    """The place of a recorded array, a constant, or a nested list or object array of both."""
    if isinstance(value, Recorded):
        if value.recorder is not recorder:
            raise wrong_input("an array of another recording; a network is recorded by itself")
        return value.place
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        return _place_of_list(recorder, value)
    return recorder.constant(value)


def _place_of_list(recorder: Recorder, value: Any) -> int:
    shape, leaves = _leaves(value)
    if not any(isinstance(leaf, Recorded) for leaf in leaves):
        if any(isinstance(leaf, (list, tuple, np.ndarray)) for leaf in leaves):
            return recorder.constant(np.array(value))
        return recorder.reshape(recorder.constant(leaves), shape)
    places = [place_of(recorder, leaf) for leaf in leaves]
    inner = recorder.shape(places[0])
    if any(recorder.shape(k) != inner for k in places):
        raise wrong_input("a list of arrays of different shapes is not an array")
    if not inner:
        return stacked_numbers(recorder, places, shape)
    rows = [recorder.reshape(place, (1, *inner)) for place in places]
    return recorder.reshape(recorder.concatenate(0, rows), (*shape, *inner))


def _leaves(value: Any) -> tuple[Shape, list[Any]]:
    """The shape of a nested list, and what it holds: numbers, recorded arrays, constant arrays."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.shape, list(value.flat)
    if not isinstance(value, (list, tuple)):
        return (), [value]
    parts = [_leaves(item) for item in value]
    if not parts:
        raise wrong_input("an empty list is not an array of a network")
    if any(shape != parts[0][0] for shape, _ in parts):
        raise wrong_input("a list of lists of different lengths is not an array")
    return (len(parts), *parts[0][0]), [leaf for _, leaves in parts for leaf in leaves]


class Recorded(WithoutValues, NDArrayOperatorsMixin):
    """An array of a network that is being recorded.

    It stands for weights, inputs, and everything computed from them. It has a shape but no values; whatever needs
    values is refused with the line where it stands. Operators are NumPy's ufuncs (:mod:`m2bridge.programs.numpy_functions`).
    """

    __slots__ = ("place", "recorder")
    _op_priority = 10**6  # SymPy's numbers leave their products with a recorded array to it

    def __init__(self, recorder: Recorder, place: int) -> None:
        self.recorder, self.place = recorder, place

    def _new(self, place: int) -> Recorded:
        return Recorded(self.recorder, place)

    def __repr__(self) -> str:
        return f"<recorded array of shape {self.shape}>"

    # -- shape --------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.recorder.shape(self.place)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def dtype(self) -> Any:
        """Objects: an array of this type may hold recorded numbers."""
        return np.dtype(object)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Recorded]:
        return (self[k] for k in range(len(self)))

    def axes(self, axis: Any) -> list[int]:
        """One axis, several or all (None), counted from the front."""
        if axis is None:
            return list(range(self.ndim))
        listed = axis if isinstance(axis, (tuple, list, range, np.ndarray)) else (axis,)
        for number in listed:
            if not isinstance(number, (int, np.integer)) or not -self.ndim <= number < self.ndim:
                raise wrong_input(f"axis {number} of an array with {self.ndim} axes")
        return [int(number) % self.ndim for number in listed]

    # -- the same entries elsewhere -----------------------------------------------------------------

    def __getitem__(self, key: Any) -> Recorded:
        return self._new(entries(self.recorder, self.place, key))

    def moved(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a function of NumPy that only moves entries around makes of the array; a list where it makes several."""
        found = rearranged(self.recorder, self.place, lambda flat: function(flat, *args, **kwargs))
        return [self._new(place) for place in found] if isinstance(found, list) else self._new(found)

    def permuted(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Recorded:
        """What a function of NumPy that permutes axes makes of the array: strides of an example show the order."""
        try:
            example = function(as_strided(np.zeros(1), (1,) * self.ndim, range(self.ndim)), *args, **kwargs)
        except (ValueError, TypeError) as error:
            raise wrong_input(f"{type(error).__name__}: {error}") from None
        return self._new(transposed(self.recorder, self.place, example.strides))

    def reshape(self, *shape: Any, order: str = "C") -> Recorded:
        if order != "C":
            raise wrong_input("reshape keeps the order of rows; use .T before it")
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)) else shape
        lengths = [int(n) for n in wanted]
        if lengths.count(-1) == 1:
            known = -prod(lengths)
            lengths[lengths.index(-1)] = self.size // known if known > 0 else 0
        return self._new(self.recorder.reshape(self.place, tuple(lengths)))

    def ravel(self) -> Recorded:
        return self.reshape(self.size)

    flatten = ravel

    def copy(self, *_: Any, **__: Any) -> Recorded:
        return self

    conj = conjugate = astype = copy

    def transpose(self, *axes: Any) -> Recorded:
        return self.permuted(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Recorded:
        return self.transpose()

    @property
    def mT(self) -> Recorded:
        if self.ndim < 2:
            raise wrong_input("'.mT' of an array with fewer than two axes")
        return self.swapaxes(-1, -2)

    def swapaxes(self, axis1: int, axis2: int) -> Recorded:
        return self.permuted(np.swapaxes, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        return self.moved(np.squeeze, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.moved(np.diagonal, offset, axis1, axis2)

    # -- sums and products --------------------------------------------------------------------------

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Recorded:
        axes = self.axes(axis)
        total = self._new(summed(self.recorder, self.place, axes))
        return total.reshape(self._reduced(axes, keepdims))

    def _reduced(self, axes: Sequence[int], keepdims: bool) -> list[int]:
        return [1 if k in axes else n for k, n in enumerate(self.shape) if keepdims or k not in axes]

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        count = prod(self.shape[k] for k in self.axes(axis))
        return self.sum(axis, keepdims=keepdims) * Fraction(1, count)

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Recorded:
        axes = self.axes(axis)
        rest = [k for k in range(self.ndim) if k not in axes]
        factors = self.transpose([*axes, *rest]).reshape([-1, *(self.shape[k] for k in rest)])
        return reduce(lambda a, b: a * b, factors).reshape(self._reduced(axes, keepdims))

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.diagonal(offset, axis1, axis2).sum(-1)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Recorded:
        axes = self.axes(axis)
        shape = tuple(self._reduced(axes, keepdims))
        return self._new(self.recorder.maximum(self.place, tuple(sorted(axes)), shape))

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)

    def __pow__(self, exponent: Any) -> Recorded:
        if isinstance(exponent, Recorded):
            raise not_polynomial("an exponent that depends on the network; exponents are constant integers")
        powers = self.recorder.constant(exponent)
        values = self.recorder.value(powers)
        assert values is not None
        if any(n.denominator != 1 for n in values.flat):
            raise not_polynomial("an exponent that is not an integer; a root is not a polynomial")
        shape = self.recorder.common_shape(self.place, powers)
        distinct = sorted({int(n) for n in values.flat})
        if len(distinct) == 1:
            return self._new(self.recorder.broadcast(self._power(distinct[0]), shape))
        total = self._new(self.recorder.zeros(shape))
        for n in distinct:
            total = total + self._new(self._power(n)) * np.equal(values, n)
        return total

    def _power(self, exponent: int) -> int:
        base = self.place if exponent >= 0 else self.recorder.reciprocal(self.place)
        return self.recorder.power(base, abs(exponent))

    # -- what NumPy asks ----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from m2bridge.programs.numpy_functions import entrywise

        return entrywise(self.recorder, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from m2bridge.programs.numpy_functions import called

        return called(self.recorder, function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Other methods of NumPy's arrays are its functions of the same name, recorded or refused with what to write instead."""
        function = getattr(np, name, None)
        if hasattr(np.ndarray, name) and callable(function):
            return partial(function, self)
        raise AttributeError(
            f"a recorded array has no {name!r}; it has + - * @ / **, .T, indexing, reshape, sum, mean, and NumPy's functions "
            "that are polynomial"
        )


def as_recorded(recorder: Recorder, value: Any) -> Recorded:
    """A recorded array, a constant, or a list of both, as a recorded array."""
    return value if isinstance(value, Recorded) else Recorded(recorder, place_of(recorder, value))
