"""NumPy's functions that mask, fill and join recorded arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from m2bridge.programs.recorded import Recorded, as_recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial, wrong_input


def broadcast_to(a: Recorded, shape: Any) -> Recorded:
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return Recorded(a.recorder, a.recorder.broadcast(a.place, wanted))


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(result, shape)


def triangle(function: Any) -> Callable[..., Any]:
    """triu and tril: a product with a mask of the same function."""
    return lambda a, k=0: a * function(np.ones(a.shape[-2:], dtype=bool), k)


def diag(a: Recorded, k: int = 0) -> Any:
    if a.ndim != 1:
        return a.diagonal(k)
    long = pad(a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(a: Recorded, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    if mode != "constant":
        return a.moved(np.pad, pad_width, mode)
    flat = np.pad(np.arange(a.size).reshape(a.shape), pad_width, constant_values=a.size)
    if flat.size == a.size:
        return a
    if a.ndim == 1:
        before, after = int(np.argmin(flat)), len(flat) - a.size - int(np.argmin(flat))
        ends = [np.full(n, constant_values, dtype=object) for n in (before, after)]
        return concatenate(a.recorder, [part for part in (ends[0], a, ends[1]) if len(part)])
    return concatenate(a.recorder, [a.ravel(), np.array([constant_values], dtype=object)])[flat]


def filled(a: Recorded, value: Any, **_: Any) -> Any:
    """An array of objects, so that recorded numbers may be assigned into it."""
    return np.full(a.shape, value, dtype=object)


# -- joined arrays -------------------------------------------------------------------------------------


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    parts = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return Recorded(recorder, recorder.concatenate(parts[0].axes(axis)[0], [part.place for part in parts]))


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    return as_recorded(recorder, list(arrays)).permuted(np.moveaxis, 0, axis)


def joined(widened: Callable[[Recorded], Recorded], axis: Callable[[int], int]) -> Callable[..., Recorded]:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Recorded:
        wide = [widened(as_recorded(recorder, array)) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def at_least(example: Any) -> Callable[..., Any]:
    def record(recorder: Recorder, *arrays: Any) -> Any:
        wide = [as_recorded(recorder, array).moved(example) for array in arrays]
        return wide[0] if len(wide) == 1 else wide

    return record


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
