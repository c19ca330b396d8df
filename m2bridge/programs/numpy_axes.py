"""NumPy's functions that move, select, join and split entries of recorded arrays.

Functions that only move entries around are applied to the array of flat places, so they mean what NumPy means by them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from m2bridge.programs.indexing import rearranged
from m2bridge.programs.recorded import Recorded, as_recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial, wrong_input


def moved(function: Any) -> Callable[..., Any]:
    """A function that only moves entries around."""

    def record(recorder: Recorder, array: Any, *args: Any, **kwargs: Any) -> Recorded:
        place = place_of(recorder, array)
        return Recorded(recorder, rearranged(recorder, place, lambda flat: function(flat, *args, **kwargs)))

    return record


def moveaxis(recorder: Recorder, array: Any, source: Any, destination: Any) -> Recorded:
    a = as_recorded(recorder, array)
    start = [a.axis(k) for k in np.atleast_1d(source)]
    stop = [a.axis(k) for k in np.atleast_1d(destination)]
    order = [k for k in range(a.ndim) if k not in start]
    if len(start) != len(stop):
        raise wrong_input("moveaxis: as many axes as places to move them to")
    for goal, k in sorted(zip(stop, start, strict=True)):
        order.insert(goal, k)
    return a.transpose(order)


def expand_dims(recorder: Recorder, array: Any, axis: Any) -> Recorded:
    a = as_recorded(recorder, array)
    return a.reshape(list(np.expand_dims(np.empty(a.shape, dtype=bool), axis).shape))


def broadcast_to(recorder: Recorder, array: Any, shape: Any) -> Recorded:
    a = as_recorded(recorder, array)
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return Recorded(recorder, recorder.broadcast(a.place, wanted))


def flip(recorder: Recorder, array: Any, axis: Any = None) -> Recorded:
    a = as_recorded(recorder, array)
    axes = range(a.ndim) if axis is None else [a.axis(k) for k in np.atleast_1d(axis)]
    return a[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(a.ndim))]


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(recorder, result, shape)


def triangle(upper: bool) -> Callable[..., Any]:
    def record(recorder: Recorder, array: Any, k: int = 0) -> Recorded:
        a = as_recorded(recorder, array)
        rows, columns = a.shape[-2:] if a.ndim > 1 else (a.size, a.size)
        below = np.tri(rows, columns, k - 1 if upper else k, dtype=bool)
        return a * (~below if upper else below)

    return record


def diag(recorder: Recorder, array: Any, k: int = 0) -> Recorded:
    a = as_recorded(recorder, array)
    if a.ndim != 1:
        return a.diagonal(k)
    long = pad(recorder, a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(
    recorder: Recorder, array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0
) -> Recorded:
    a = as_recorded(recorder, array)
    if mode != "constant":
        return Recorded(recorder, rearranged(recorder, a.place, lambda flat: np.pad(flat, pad_width, mode)))  # type: ignore[call-overload]
    flat = np.pad(np.arange(a.size).reshape(a.shape), pad_width, constant_values=a.size)
    if flat.size == a.size:
        return a
    if a.ndim == 1:
        before, after = int(np.argmin(flat)), len(flat) - a.size - int(np.argmin(flat))
        ends = [np.full(n, constant_values, dtype=object) for n in (before, after)]
        return concatenate(recorder, [part for part in (ends[0], a, ends[1]) if len(part)])
    longer = concatenate(recorder, [a.ravel(), np.array([constant_values], dtype=object)])
    return longer[flat]


def filled(value: int) -> Callable[..., Any]:
    """zeros_like, ones_like: arrays of objects, so that recorded numbers may be assigned into them."""
    return lambda recorder, array, *args, **kwargs: np.full(array.shape, value, dtype=object)


def full_like(recorder: Recorder, array: Any, value: Any, **_: Any) -> Any:
    return np.full(array.shape, value, dtype=object)


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    parts = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return Recorded(recorder, recorder.concatenate(parts[0].axis(axis), [part.place for part in parts]))


def append(recorder: Recorder, array: Any, values: Any, axis: int | None = None) -> Recorded:
    return concatenate(recorder, [array, values], axis)


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    joined = as_recorded(recorder, list(arrays))
    return moveaxis(recorder, joined, 0, axis)


def joined(at_least: Callable[..., Any], axis: Callable[[int], int]) -> Callable[..., Any]:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Recorded:
        wide = [at_least(recorder, array) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def at_least(ndim: int) -> Callable[..., Any]:
    example = {1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}[ndim]

    def record(recorder: Recorder, *arrays: Any) -> Any:
        parts = [as_recorded(recorder, array) for array in arrays]
        wide = [part.reshape(list(example(np.empty(part.shape, dtype=bool)).shape)) for part in parts]
        return wide[0] if len(wide) == 1 else wide

    return record


def column(recorder: Recorder, array: Any) -> Recorded:
    a = as_recorded(recorder, array)
    return a.reshape(-1, 1) if a.ndim < 2 else a


def block(recorder: Recorder, arrays: Any) -> Recorded:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def widest(part: Any) -> int:
        return max(map(widest, part)) if isinstance(part, list) else as_recorded(recorder, part).ndim

    ndim = max(depth(arrays), widest(arrays))

    def joined(part: Any, level: int) -> Recorded:
        if isinstance(part, list):
            return concatenate(recorder, [joined(item, level - 1) for item in part], -level)
        a = as_recorded(recorder, part)
        return a.reshape([1] * (ndim - a.ndim) + list(a.shape))

    return joined(arrays, depth(arrays))


def split(function: Any, fixed_axis: int | None = None) -> Callable[..., Any]:
    def record(recorder: Recorder, array: Any, sections: Any, axis: int = 0) -> list[Recorded]:
        a = as_recorded(recorder, array)
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
