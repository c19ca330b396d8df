"""Entries of recorded arrays at other places: NumPy rearranges the array of flat places, and says what goes where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from m2bridge.programs.contractions import transposed
from m2bridge.programs.instructions import AxisSlice, Shape
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import wrong_input


@lru_cache(maxsize=64)
def _flat_places(shape: Shape) -> np.ndarray:
    places = np.arange(prod(shape)).reshape(shape)
    places.setflags(write=False)
    return places


def rearranged(recorder: Recorder, place: int, rule: Callable[[Any], Any]) -> Any:
    """The entries that `rule` takes out of an array of this shape; several arrays where NumPy makes several."""
    try:
        found = rule(_flat_places(recorder.shape(place)))
    except (IndexError, ValueError, TypeError) as error:
        raise wrong_input(f"{type(error).__name__}: {error}") from None
    if isinstance(found, (list, tuple)):
        return [_taken(recorder, place, part) for part in found]
    return _taken(recorder, place, np.asarray(found))


def _taken(recorder: Recorder, place: int, indices: np.ndarray) -> int:
    """The entries at flat places: slices and a transpose where `indices` is a view of all of them, else a gather."""
    shape = recorder.shape(place)
    if indices.size and indices.shape and np.may_share_memory(indices, _flat_places(shape)):
        found = _slices(shape, indices)
        if found is not None:
            parts, order = found
            moved = recorder.slice(place, parts)
            if order != sorted(order):
                moved = transposed(recorder, moved, [*order, *sorted(set(range(len(shape))) - set(order))])
            return recorder.reshape(moved, indices.shape)
    return recorder.gather(place, indices)


def _slices(shape: Shape, indices: np.ndarray) -> tuple[tuple[AxisSlice, ...], list[int]] | None:
    """Start, count and step on each axis, and the axes in the order in which a view has them; None for other views."""
    starts = np.unravel_index(indices.flat[0], shape)
    parts: list[AxisSlice] = [(int(start), 1, 1) for start in starts]
    order: list[int] = []
    for count, stride in zip(indices.shape, indices.strides, strict=True):
        if count == 1:
            continue
        for axis, length in enumerate(shape):
            step, rest = divmod(stride // indices.itemsize, prod(shape[axis + 1 :]))
            start = parts[axis][0]
            if rest == 0 and step and 0 <= start + (count - 1) * step < length and axis not in order:
                parts[axis] = (start, count, step)
                order.append(axis)
                break
        else:
            return None
    return tuple(parts), order


def entries(recorder: Recorder, place: int, key: Any) -> int:
    """``array[key]`` for integers, slices, Ellipsis, None, integer arrays and boolean masks."""
    parts = tuple(_plain(part) for part in (key if isinstance(key, tuple) else (key,)))
    found: int = rearranged(recorder, place, lambda indices: indices[parts])
    return found


def _plain(part: Any) -> Any:
    """An index without recorded numbers in it; object arrays of integers become arrays of integers."""
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


def stacked_numbers(recorder: Recorder, places: Sequence[int], shape: Shape) -> int:
    """An array of single numbers; numbers taken out of the same array are gathered from it at once."""
    taken: dict[int, dict[int, int]] = {}
    constants: dict[Any, int] = {}
    found: list[tuple[int, int]] = []
    for place in places:
        value = recorder.value(place)
        if value is not None:
            found.append((-1, constants.setdefault(value.flat[0], len(constants))))
            continue
        root, flat = recorder.traced_back(place, np.zeros(1, dtype=np.int64))
        used = taken.setdefault(root, {})
        found.append((root, used.setdefault(int(flat[0]), len(used))))
    if len(taken) == 1 and not constants:
        ((root, used),) = taken.items()
        return recorder.gather(root, np.array([list(used)[k] for _, k in found]).reshape(shape))
    pieces = {root: recorder.gather(root, np.array(list(used))) for root, used in taken.items()}
    if constants:
        pieces[-1] = recorder.constant(list(constants))
    lengths = [recorder.shape(piece)[0] for piece in pieces.values()]
    starts = dict(zip(pieces, np.cumsum([0, *lengths]).tolist(), strict=False))
    joined = recorder.concatenate(0, list(pieces.values()))
    return recorder.gather(joined, np.array([starts[root] + k for root, k in found]).reshape(shape))
