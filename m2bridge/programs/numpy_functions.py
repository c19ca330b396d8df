"""NumPy's functions on recorded arrays: what each one records, and what is refused.

Functions that only move entries around are applied to the array of flat places, so they mean what NumPy means by them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.programs.contractions import contraction
from m2bridge.programs.contractions import einsum as sum_of_products
from m2bridge.programs.einsum_text import einsum
from m2bridge.programs.indexing import rearranged
from m2bridge.programs.recorded import Recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial, wrong_input
from m2bridge.programs.ufuncs import refusal


def called(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy makes of recorded arrays."""
    if function in FUNCTIONS:
        return FUNCTIONS[function](recorder, *args, **kwargs)
    module = getattr(function, "__module__", None) or "numpy"
    raise refusal(f"linalg.{function.__name__}" if "linalg" in module else function.__name__)


def _array(recorder: Recorder, value: Any) -> Recorded:
    return value if isinstance(value, Recorded) else Recorded(recorder, place_of(recorder, value))


def _method(name: str) -> Callable[..., Any]:
    """A function that is a method of the array as well."""
    return lambda recorder, array, *args, **kwargs: getattr(_array(recorder, array), name)(*args, **kwargs)


def _moved(function: Any) -> Callable[..., Any]:
    """A function that only moves entries around."""

    def record(recorder: Recorder, array: Any, *args: Any, **kwargs: Any) -> Recorded:
        place = place_of(recorder, array)
        return Recorded(recorder, rearranged(recorder, place, lambda flat: function(flat, *args, **kwargs)))

    return record


# -- products ------------------------------------------------------------------------------------------


def dot(recorder: Recorder, left: Any, right: Any) -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(recorder, a, b, ([-1], [-2 if b.ndim > 1 else -1]))


def inner(recorder: Recorder, left: Any, right: Any) -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    return a * b if not a.ndim or not b.ndim else tensordot(recorder, a, b, ([-1], [-1]))


def outer(recorder: Recorder, left: Any, right: Any) -> Recorded:
    a, b = _array(recorder, left).ravel(), _array(recorder, right).ravel()
    return tensordot(recorder, a, b, 0)


def tensordot(recorder: Recorder, left: Any, right: Any, axes: Any = 2) -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    mine, its = (
        [array.axis(k) for k in np.atleast_1d(part)] for array, part in zip((a, b), axes, strict=True)
    )
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise wrong_input("tensordot: as many axes of the first as of the second, each once")
    if [a.shape[k] for k in mine] != [b.shape[k] for k in its]:
        raise wrong_input(f"tensordot: arrays of shapes {a.shape} and {b.shape} do not fit along these axes")
    first = [f"a{k}" for k in range(a.ndim)]
    second = [f"a{mine[its.index(k)]}" if k in its else f"b{k}" for k in range(b.ndim)]
    rest = [n for k, n in enumerate(first) if k not in mine] + [n for n in second if n[0] == "b"]
    place = contraction(recorder, [tuple(first), tuple(second)], tuple(rest), [a.place, b.place])
    return Recorded(recorder, place)


def kron(recorder: Recorder, left: Any, right: Any) -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    ndim = max(a.ndim, b.ndim)
    a, b = (array.reshape([1] * (ndim - array.ndim) + list(array.shape)) for array in (a, b))
    first, second = tuple(f"a{k}" for k in range(ndim)), tuple(f"b{k}" for k in range(ndim))
    mixed = tuple(name for pair in zip(first, second, strict=True) for name in pair)
    place = sum_of_products(recorder, [first, second], mixed, [a.place, b.place])
    return Recorded(recorder, place).reshape([m * n for m, n in zip(a.shape, b.shape, strict=True)])


def matrix_power(recorder: Recorder, matrix: Any, exponent: int) -> Any:
    a = _array(recorder, matrix)
    if exponent < 0:
        raise not_polynomial("an inverse matrix; a program has no inverses of matrices")
    if exponent == 0:
        return Recorded(recorder, recorder.constant(np.broadcast_to(np.eye(a.shape[-1], dtype=int), a.shape)))
    return reduce(lambda x, y: x @ y, [a] * exponent)


def convolve(recorder: Recorder, left: Any, right: Any, mode: str = "full") -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    if a.size < b.size:
        a, b = b, a
    m, n = a.size, b.size
    padded = pad(recorder, a, n - 1)
    full = padded[np.arange(n - 1, n + m + n - 2)[:, None] - np.arange(n)] @ b
    start = {"full": 0, "same": (n - 1) // 2, "valid": n - 1}[mode]
    return full[start : len(full) - start if mode == "valid" else start + (m if mode == "same" else m + n)]


def correlate(recorder: Recorder, left: Any, right: Any, mode: str = "valid") -> Recorded:
    a, b = _array(recorder, left), _array(recorder, right)
    if a.size < b.size:
        return correlate(recorder, b, a, mode)[::-1]
    return convolve(recorder, a, b[::-1], mode)


# -- sums ----------------------------------------------------------------------------------------------


def cumsum(recorder: Recorder, array: Any, axis: int | None = None) -> Recorded:
    a = _array(recorder, array)
    a, k = (a.ravel(), 0) if axis is None else (a, a.axis(axis))
    names = tuple(map(str, range(a.ndim)))
    below = recorder.constant(np.triu(np.ones((a.shape[k], a.shape[k]), dtype=int)))
    result = (*names[:k], "sum", *names[k + 1 :])
    return Recorded(recorder, contraction(recorder, [names, (names[k], "sum")], result, [a.place, below]))


def cumprod(recorder: Recorder, array: Any, axis: int | None = None) -> Recorded:
    a = _array(recorder, array)
    a, k = (a.ravel(), 0) if axis is None else (a, a.axis(axis))
    products = [a[(slice(None),) * k + (0,)]]
    for j in range(1, a.shape[k]):
        products.append(products[-1] * a[(slice(None),) * k + (j,)])
    return stack(recorder, products, k)


def diff(recorder: Recorder, array: Any, n: int = 1, axis: int = -1) -> Recorded:
    a = _array(recorder, array)
    before = (slice(None),) * a.axis(axis)
    for _ in range(n):
        a = a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]
    return a


def polyval(recorder: Recorder, coefficients: Any, point: Any) -> Any:
    return reduce(lambda total, c: total * point + c, _array(recorder, coefficients))


# -- joining and splitting -----------------------------------------------------------------------------


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    parts = [_array(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return Recorded(recorder, recorder.concatenate(parts[0].axis(axis), [part.place for part in parts]))


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    joined = _array(recorder, list(arrays))
    return moveaxis(recorder, joined, 0, axis)


def _joined(at_least: Callable[..., Any], axis: Callable[[int], int]) -> Callable[..., Any]:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Recorded:
        wide = [at_least(recorder, array) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def _at_least(ndim: int) -> Callable[..., Any]:
    example = {1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}[ndim]

    def record(recorder: Recorder, *arrays: Any) -> Any:
        parts = [_array(recorder, array) for array in arrays]
        wide = [part.reshape(list(example(np.empty(part.shape, dtype=bool)).shape)) for part in parts]
        return wide[0] if len(wide) == 1 else wide

    return record


def _column(recorder: Recorder, array: Any) -> Recorded:
    a = _array(recorder, array)
    return a.reshape(-1, 1) if a.ndim < 2 else a


def block(recorder: Recorder, arrays: Any) -> Recorded:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def widest(part: Any) -> int:
        return max(map(widest, part)) if isinstance(part, list) else _array(recorder, part).ndim

    ndim = max(depth(arrays), widest(arrays))

    def joined(part: Any, level: int) -> Recorded:
        if isinstance(part, list):
            return concatenate(recorder, [joined(item, level - 1) for item in part], -level)
        a = _array(recorder, part)
        return a.reshape([1] * (ndim - a.ndim) + list(a.shape))

    return joined(arrays, depth(arrays))


def _split(function: Any, fixed_axis: int | None = None) -> Callable[..., Any]:
    def record(recorder: Recorder, array: Any, sections: Any, axis: int = 0) -> list[Recorded]:
        a = _array(recorder, array)
        k = a.axis(axis if fixed_axis is None else min(fixed_axis, a.ndim - 1))
        try:
            parts = function(np.arange(a.shape[k]), sections)
        except ValueError as error:
            raise wrong_input(f"{error}") from None
        return [
            a[(*(slice(None),) * k, slice(int(p[0]), int(p[-1]) + 1))] if len(p) else _empty() for p in parts
        ]

    return record


def _empty() -> Recorded:
    raise wrong_input("an empty part of an array; arrays of a network have at least one entry")


# -- axes and entries ----------------------------------------------------------------------------------


def moveaxis(recorder: Recorder, array: Any, source: Any, destination: Any) -> Recorded:
    a = _array(recorder, array)
    moved = np.moveaxis(np.empty([1] * a.ndim), source, destination)  # refuses axes that are not there
    assert moved.ndim == a.ndim
    start = [a.axis(k) for k in np.atleast_1d(source)]
    stop = [a.axis(k) for k in np.atleast_1d(destination)]
    order = [k for k in range(a.ndim) if k not in start]
    for where, k in sorted(zip(stop, start, strict=True)):
        order.insert(where, k)
    return a.transpose(order)


def expand_dims(recorder: Recorder, array: Any, axis: Any) -> Recorded:
    a = _array(recorder, array)
    return a.reshape(list(np.expand_dims(np.empty(a.shape, dtype=bool), axis).shape))


def broadcast_to(recorder: Recorder, array: Any, shape: Any) -> Recorded:
    a = _array(recorder, array)
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return Recorded(recorder, recorder.broadcast(a.place, wanted))


def flip(recorder: Recorder, array: Any, axis: Any = None) -> Recorded:
    a = _array(recorder, array)
    axes = range(a.ndim) if axis is None else [a.axis(k) for k in np.atleast_1d(axis)]
    return a[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(a.ndim))]


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = _array(recorder, yes) * chosen + _array(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(recorder, result, shape)


def _triangle(upper: bool) -> Callable[..., Any]:
    def record(recorder: Recorder, array: Any, k: int = 0) -> Recorded:
        a = _array(recorder, array)
        below = np.tri(*a.shape[-2:], k=k - 1 if upper else k, dtype=bool)
        return a * (~below if upper else below)

    return record


def diag(recorder: Recorder, array: Any, k: int = 0) -> Recorded:
    a = _array(recorder, array)
    if a.ndim != 1:
        return a.diagonal(k)
    long = pad(recorder, a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(
    recorder: Recorder, array: Any, width: Any, mode: str = "constant", constant_values: Any = 0
) -> Recorded:
    a = _array(recorder, array)
    if mode != "constant":
        return Recorded(recorder, rearranged(recorder, a.place, lambda flat: np.pad(flat, width, mode)))  # type: ignore[call-overload]
    flat = np.pad(np.arange(a.size).reshape(a.shape), width, constant_values=a.size)
    if flat.size == a.size:
        return a
    if a.ndim == 1:
        before, after = int(np.argmin(flat)), len(flat) - a.size - int(np.argmin(flat))
        ends = [np.full(n, constant_values, dtype=object) for n in (before, after)]
        return concatenate(recorder, [part for part in (ends[0], a, ends[1]) if len(part)])
    longer = concatenate(recorder, [a.ravel(), np.array([constant_values], dtype=object)])
    return longer[flat]


def _filled(value: int) -> Callable[..., Any]:
    """zeros_like, ones_like: arrays of objects, so that recorded numbers may be assigned into them."""
    return lambda recorder, array, *args, **kwargs: np.full(array.shape, value, dtype=object)


def full_like(recorder: Recorder, array: Any, value: Any, **_: Any) -> Any:
    return np.full(array.shape, value, dtype=object)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.einsum: einsum, np.dot: dot, np.vdot: lambda r, a, b: dot(r, _array(r, a).ravel(), _array(r, b).ravel()),
    np.inner: inner, np.outer: outer, np.tensordot: tensordot, np.kron: kron, np.convolve: convolve,
    np.correlate: correlate, np.linalg.matrix_power: matrix_power,
    np.linalg.multi_dot: lambda r, arrays: reduce(lambda x, y: x @ y, [_array(r, a) for a in arrays]),
    np.sum: _method("sum"), np.mean: _method("mean"), np.prod: _method("prod"), np.trace: _method("trace"),
    np.max: _method("max"), np.amax: _method("max"), np.cumsum: cumsum, np.cumprod: cumprod, np.diff: diff,
    np.polyval: polyval, np.reshape: _method("reshape"), np.ravel: _method("ravel"), np.copy: _method("copy"),
    np.transpose: _method("transpose"), np.swapaxes: _method("swapaxes"), np.squeeze: _method("squeeze"),
    np.diagonal: _method("diagonal"), np.moveaxis: moveaxis, np.expand_dims: expand_dims,
    np.broadcast_to: broadcast_to, np.concatenate: concatenate, np.stack: stack, np.block: block,
    np.vstack: _joined(_at_least(2), lambda _: 0), np.hstack: _joined(_at_least(1), lambda n: min(n - 1, 1)),
    np.dstack: _joined(_at_least(3), lambda _: 2), np.column_stack: _joined(_column, lambda _: 1),
    np.atleast_1d: _at_least(1), np.atleast_2d: _at_least(2), np.atleast_3d: _at_least(3),
    np.split: _split(np.split), np.array_split: _split(np.array_split), np.vsplit: _split(np.split, 0),
    np.hsplit: _split(np.split, 1), np.where: where, np.triu: _triangle(True), np.tril: _triangle(False),
    np.diag: diag, np.pad: pad, np.flip: flip, np.fliplr: lambda r, a: flip(r, a, 1), np.flipud: lambda r, a: flip(r, a, 0),
    np.zeros_like: _filled(0), np.empty_like: _filled(0), np.ones_like: _filled(1), np.full_like: full_like,
    np.shape: lambda r, a: _array(r, a).shape, np.ndim: lambda r, a: _array(r, a).ndim,
    np.size: lambda r, a, axis=None: prod(_array(r, a).shape) if axis is None else _array(r, a).shape[axis],
    **{f: _moved(f) for f in (np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, sliding_window_view)},
}  # fmt: skip
