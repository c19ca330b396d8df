"""NumPy's functions that mask, fill and join recorded arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from m2bridge.programs.recorded import Recorded, as_recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial, wrong_input


def broadcast_to(recorder: Recorder, array: Any, shape: Any) -> Any:
    a = as_recorded(recorder, array)
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return Recorded(recorder, recorder.broadcast(a.place, wanted))


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Any:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(recorder, result, shape)


def triangle(function: Any) -> Callable[..., Any]:
    def record(recorder: Recorder, array: Any, k: int = 0) -> Any:
        a = as_recorded(recorder, array)
        return a * function(np.ones(a.shape[-2:], dtype=bool), k)

    return record


def diag(recorder: Recorder, array: Any, k: int = 0) -> Any:
    a = as_recorded(recorder, array)
    if a.ndim != 1:
        return a.diagonal(k)
    long = pad(recorder, a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(
    recorder: Recorder, array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0
) -> Any:
    a = as_recorded(recorder, array)
    if mode != "constant":
        return a.moved(np.pad, pad_width, mode)
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


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Any:
    parts = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return Recorded(recorder, recorder.concatenate(parts[0].axes(axis)[0], [part.place for part in parts]))


def append(recorder: Recorder, array: Any, values: Any, axis: int | None = None) -> Any:
    return concatenate(recorder, [array, values], axis)


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Any:
    joined = as_recorded(recorder, list(arrays))
    return joined.permuted(np.moveaxis, 0, axis)


def joined(at_least: Callable[..., Any], axis: Callable[[int], int]) -> Callable[..., Any]:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Any:
        wide = [at_least(recorder, array) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def at_least(example: Any) -> Callable[..., Any]:
    def record(recorder: Recorder, *arrays: Any) -> Any:
        wide = [as_recorded(recorder, array).moved(example) for array in arrays]
        return wide[0] if len(wide) == 1 else wide

    return record


def column(recorder: Recorder, array: Any) -> Any:
    a = as_recorded(recorder, array)
    return a.reshape(-1, 1) if a.ndim < 2 else a


def block(recorder: Recorder, arrays: Any) -> Any:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def widest(part: Any) -> int:
        return max(map(widest, part)) if isinstance(part, list) else as_recorded(recorder, part).ndim

    ndim = max(depth(arrays), widest(arrays))

    def joined(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return concatenate(recorder, [joined(item, level - 1) for item in part], -level)
        a = as_recorded(recorder, part)
        return a.reshape([1] * (ndim - a.ndim) + list(a.shape))

    return joined(arrays, depth(arrays))
