"""Define recorded arrays, which have a shape and no values, and record the operations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided

from m2bridge.frontends.contractions import transposed
from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.refusals import WithoutValues, not_polynomial, wrong_input
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.instructions import AxisSlice, Shape

_METHODS = (
    "sum", "mean", "prod", "var", "std", "max", "dot", "trace", "cumsum", "cumprod", "diagonal", "ravel", "repeat", "take",
    "squeeze", "swapaxes", "copy", "conjugate",
)  # fmt: skip
"""Methods of NumPy's arrays that are recorded as the function of the same name."""
_ENTRY_FUNCTIONS = (
    "exp", "tanh", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh",
    "arctanh", "exp2", "expm1", "log", "log2", "log10", "log1p", "fabs", "rint", "degrees", "radians",
)  # fmt: skip
"""Functions that NumPy calls as methods of the entries of an array of objects, such as np.array([w[0], w[1]])."""
_REFUSED_METHODS = (
    "min", "ptp", "argmin", "argmax", "sort", "argsort", "partition", "argpartition", "searchsorted", "clip", "round",
    "all", "any", "nonzero", "put",
)  # fmt: skip
"""Methods of NumPy's arrays that the function of the same name refuses, with what to write instead."""


def _method(name: str) -> Any:
    """Make a method of NumPy's function `name`."""
    function = getattr(np, name)

    def method(self: Recorded, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


class Recorded(WithoutValues, NDArrayOperatorsMixin):
    """An array of a network that is being recorded.

    It stands for weights, inputs, and everything computed from them. It has a shape but no values; whatever needs values is
    refused with the line where it stands. Operators call NumPy's ufuncs, and most methods its functions of the same name
    (:mod:`m2bridge.frontends.numpy_functions`).
    """

    __slots__ = ("index", "recorder")
    _op_priority = 10**6  # SymPy's numbers leave their products with a recorded array to it

    def __init__(self, recorder: Recorder, index: int) -> None:
        self.recorder, self.index = recorder, index

    def new(self, index: int) -> Recorded:
        return Recorded(self.recorder, index)

    def __repr__(self) -> str:
        return f"<recorded array of shape {self.shape}>"

    @property
    def shape(self) -> Shape:
        return self.recorder.shape(self.index)

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
        """Return one axis, several or all (None), counted from the front."""
        if axis is None:
            return list(range(self.ndim))
        listed = axis if isinstance(axis, (tuple, list, range, np.ndarray)) else (axis,)
        for number in listed:
            if not isinstance(number, (int, np.integer)) or not -self.ndim <= number < self.ndim:
                raise wrong_input(f"axis {number} of an array with {self.ndim} axes")
        return [int(number) % self.ndim for number in listed]

    # -- entries moved -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Recorded:
        indices = tuple(_index(item) for item in (key if isinstance(key, tuple) else (key,)))
        entries: Recorded = self.moved(lambda positions: positions[indices])
        return entries

    def moved(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy that only moves entries; return a list if it returns several arrays.

        NumPy rearranges the array of flat positions, which shows where each entry goes.
        """
        try:
            positions = function(_flat_positions(self.shape), *args, **kwargs)
        except (IndexError, ValueError, TypeError) as error:
            raise wrong_input(f"{type(error).__name__}: {error}") from None
        if isinstance(positions, (list, tuple)):
            return [self._taken(array) for array in positions]
        return self._taken(np.asarray(positions))

    def _taken(self, positions: np.ndarray) -> Recorded:
        """Take the entries at flat positions: by slices and a transpose if these are a view of all, else by a gather."""
        recorder, shape = self.recorder, self.shape
        if not positions.size:
            return positions.astype(object)  # type: ignore[return-value] # NumPy's own: nothing in it is recorded
        if positions.shape and np.may_share_memory(positions, _flat_positions(shape)):
            view = _slices(shape, positions)
            if view is not None:
                bounds, order = view
                index = recorder.slice(self.index, bounds)
                if order != sorted(order):
                    index = transposed(
                        recorder, index, [*order, *sorted(set(range(len(shape))) - set(order))]
                    )
                return self.new(recorder.reshape(index, positions.shape))
        return self.new(recorder.gather(self.index, positions))

    def permuted(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Recorded:
        """Apply a function of NumPy that permutes axes: strides of an example show the order."""
        try:
            example = function(as_strided(np.zeros(1), (1,) * self.ndim, range(self.ndim)), *args, **kwargs)
        except (ValueError, TypeError) as error:
            raise wrong_input(f"{type(error).__name__}: {error}") from None
        return self.new(transposed(self.recorder, self.index, example.strides))

    def reshape(self, *shape: Any, order: str = "C") -> Recorded:
        if order not in ("C", "A"):
            found: Recorded = self.moved(np.ndarray.reshape, *shape, order=order)
            return found
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)) else shape
        lengths = [int(n) for n in wanted]
        if lengths.count(-1) == 1:
            known = -prod(lengths)
            lengths[lengths.index(-1)] = self.size // known if known > 0 else 0
        return self.new(self.recorder.reshape(self.index, tuple(lengths)))

    def flatten(self, order: str = "C") -> Recorded:
        return self.reshape(self.size, order=order)

    @property
    def flat(self) -> Recorded:
        return self.reshape(self.size)

    def __copy__(self, *_: Any) -> Recorded:
        return self

    __deepcopy__ = view = __copy__  # a recorded array is never changed

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Recorded:
        if np.dtype(dtype).kind in "biu":
            raise not_polynomial("rounding to integers is not polynomial; remove the conversion")
        return self

    def tolist(self) -> Any:
        return [row.tolist() for row in self] if self.shape else self

    def item(self, *index: Any) -> Any:
        return self.moved(np.ndarray.item, *index)

    def transpose(self, *axes: Any) -> Recorded:
        return self.permuted(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Recorded:
        return self.transpose()

    @property
    def mT(self) -> Recorded:
        if self.ndim < 2:
            raise wrong_input("'.mT' of an array with fewer than two axes")
        return self.permuted(np.swapaxes, -1, -2)

    def __pow__(self, exponent: Any) -> Recorded:
        if isinstance(exponent, Recorded):
            raise not_polynomial("the exponent depends on the network; exponents must be constant integers")
        powers = self.recorder.constant(exponent)
        values: Any = self.recorder.value(powers)
        if any(n.denominator > 2 for n in values.flat):
            raise not_polynomial(
                "the exponent is not an integer or half of one; of roots, square roots are supported"
            )
        if any(n.denominator == 2 for n in values.flat):
            return np.sqrt(self) ** (2 * values)  # type: ignore[no-any-return]
        shape = self.recorder.common_shape(self.index, powers)
        distinct = sorted({int(n) for n in values.flat})
        if len(distinct) == 1:
            return self.new(self.recorder.broadcast(self.recorder.power(self.index, distinct[0]), shape))
        total = self.new(self.recorder.zeros(shape))
        for n in distinct:
            total = total + self.new(self.recorder.power(self.index, n)) * np.equal(values, n)
        return total

    # -- the protocols of NumPy ----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from m2bridge.frontends.numpy_functions import call_ufunc

        return call_ufunc(self.recorder, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from m2bridge.frontends.numpy_functions import call_function

        return call_function(self.recorder, function, args, kwargs)

    @property
    def real(self) -> Recorded:
        return self

    def conj(self) -> Recorded:
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a recorded array has no {name!r}; it has + - * @ / **, .T, indexing, reshape, sum, mean, and NumPy's functions "
            "that are polynomial"
        )


for _name in (*_METHODS, *_ENTRY_FUNCTIONS, *_REFUSED_METHODS):
    setattr(Recorded, _name, _method(_name))


# -- indices -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _flat_positions(shape: Shape) -> np.ndarray:
    positions = np.arange(prod(shape)).reshape(shape)
    positions.setflags(write=False)
    return positions


def _slices(shape: Shape, positions: np.ndarray) -> tuple[tuple[AxisSlice, ...], list[int]] | None:
    """Return start, count and step on each axis, and the order of the axes in a view; None for other views."""
    bounds: list[AxisSlice] = [(int(start), 1, 1) for start in np.unravel_index(positions.flat[0], shape)]
    order: list[int] = []
    for count, stride in zip(positions.shape, positions.strides, strict=True):
        if count == 1:
            continue
        for axis, length in enumerate(shape):
            step, rest = divmod(stride // positions.itemsize, prod(shape[axis + 1 :]))
            start = bounds[axis][0]
            if rest == 0 and step and 0 <= start + (count - 1) * step < length and axis not in order:
                bounds[axis] = (start, count, step)
                order.append(axis)
                break
        else:
            return None
    return tuple(bounds), order


def _index(part: Any) -> Any:
    """Convert a part of an index to what NumPy takes; object arrays of integers become arrays of integers."""
    if part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer)):
        return part
    array = np.asarray(part)
    if array.dtype == object and all(isinstance(k, (int, np.integer)) for k in array.flat):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise wrong_input(
            "an array is indexed by integers, slices, None, Ellipsis, and constant arrays of integers or booleans"
        )
    return array


# -- arrays from lists and constants --------------------------------------------------------------------


def as_recorded(recorder: Recorder, value: Any) -> Recorded:
    """Convert a recorded array, a constant, or a list of both to a recorded array."""
    is_recorded = isinstance(value, Recorded) and value.recorder is recorder
    return value if is_recorded else Recorded(recorder, index_of(recorder, value))


def index_of(recorder: Recorder, value: Any) -> int:
    """Return the index of a recorded array, a constant, or a nested list or object array of both."""
    if isinstance(value, Recorded):
        if value.recorder is not recorder:
            raise wrong_input("this array belongs to another recording; record each network separately")
        return value.index
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        raise wrong_input(
            f"a constant of the class {type(value).__name__}, whose operators differ from those of arrays;"
            " convert it with np.asarray(...)"
        )
    if not isinstance(value, (list, tuple)) and not (isinstance(value, np.ndarray) and value.dtype == object):
        return recorder.constant(value)
    shape, leaves = _leaves(value)
    if not any(isinstance(leaf, Recorded) for leaf in leaves):
        if any(isinstance(leaf, np.ndarray) for leaf in leaves):
            return recorder.constant(np.array(value))
        return recorder.constant(object_array(leaves, shape))
    indices = [index_of(recorder, leaf) for leaf in leaves]
    inner = recorder.shape(indices[0])
    if any(recorder.shape(k) != inner for k in indices):
        raise wrong_input("a list of arrays of different shapes is not an array")
    if not inner:
        return _stacked_numbers(recorder, indices, shape)
    rows = [recorder.reshape(index, (1, *inner)) for index in indices]
    return recorder.reshape(recorder.concatenate(0, rows), (*shape, *inner))


def _leaves(value: Any) -> tuple[Shape, list[Any]]:
    """Return the shape of a nested list, and its items: numbers, recorded arrays, constant arrays."""
    if type(value) is np.ndarray and value.dtype == object:
        return value.shape, list(value.flat)
    if not isinstance(value, (list, tuple)):
        return (), [value]
    nested = [_leaves(item) for item in value]
    if not nested:
        raise wrong_input("an empty list is not an array of a network")
    if any(shape != nested[0][0] for shape, _ in nested):
        raise wrong_input("a list of lists of different lengths is not an array")
    return (len(nested), *nested[0][0]), [leaf for _, leaves in nested for leaf in leaves]


def _stacked_numbers(recorder: Recorder, indices: Sequence[int], shape: Shape) -> int:
    """Join single numbers to an array; numbers taken out of the same array are gathered from it at once."""
    taken: dict[int, dict[int, int]] = {}
    constants: dict[Any, int] = {}
    origins: list[tuple[int, int]] = []
    for index in indices:
        value = recorder.value(index)
        if value is not None:
            origins.append((-1, constants.setdefault(value.flat[0], len(constants))))
            continue
        root, flat = recorder.traced_back(index, np.zeros(1, dtype=np.int64))
        used = taken.setdefault(root, {})
        origins.append((root, used.setdefault(int(flat[0]), len(used))))
    pieces = {root: recorder.gather(root, np.array(list(used))) for root, used in taken.items()}
    if constants:
        pieces[-1] = recorder.constant(list(constants))
    lengths = [recorder.shape(piece)[0] for piece in pieces.values()]
    starts = dict(zip(pieces, np.cumsum([0, *lengths]).tolist(), strict=False))
    joined = recorder.concatenate(0, list(pieces.values()))
    return recorder.gather(joined, np.array([starts[root] + k for root, k in origins]).reshape(shape))
