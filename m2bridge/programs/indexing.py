"""Indexing of recorded arrays with constants, by NumPy's rules, and arrays made of single recorded numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from m2bridge.programs.program import Shape, Slice
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import wrong_input


def rearranged(recorder: Recorder, place: int, rule: Callable[[Any], Any]) -> int:
    """The entries that `rule` takes out of an array of this shape: NumPy applies it to the array of flat places."""
    shape = recorder.shape(place)
    try:
        indices = rule(np.arange(prod(shape)).reshape(shape))
    except (IndexError, ValueError, TypeError) as error:
        raise wrong_input(f"{type(error).__name__}: {error}") from None
    return recorder.gather(place, np.asarray(indices))


def entries(recorder: Recorder, place: int, key: Any) -> int:
    """``array[key]`` for integers, slices, Ellipsis, None, integer arrays and boolean masks."""
    parts = key if isinstance(key, tuple) else (key,)
    if all(_is_basic(part) for part in parts):
        return _basic(recorder, place, parts)
    plain = tuple(_plain(part) for part in parts)
    return rearranged(recorder, place, lambda indices: indices[plain])


def _is_basic(part: Any) -> bool:
    return (
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, (int, np.integer)) and not isinstance(part, bool))
    )


def _plain(part: Any) -> Any:
    """An index without recorded numbers in it; object arrays of integers become arrays of integers."""
    if _is_basic(part):
        return part
    array = np.asarray(part)
    if array.dtype == object and all(isinstance(k, (int, np.integer)) for k in array.flat):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise wrong_input(
            "an array is indexed by integers, slices, None, Ellipsis, and constant arrays of integers or booleans"
        )
    return array


def _basic(recorder: Recorder, place: int, parts: Sequence[Any]) -> int:
    shape = recorder.shape(place)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    ellipses = sum(part is Ellipsis for part in parts)
    if used > len(shape) or ellipses > 1:
        raise wrong_input(f"{used} indices of an array with {len(shape)} axes")
    missing = [slice(None)] * (len(shape) - used)
    where = next((k for k, part in enumerate(parts) if part is Ellipsis), len(parts))
    full = [*parts[:where], *missing, *parts[where + 1 :]]
    cuts: list[Slice] = []
    result: list[int] = []
    for part in full:
        if part is None:
            result.append(1)
            continue
        length = shape[len(cuts)]
        if isinstance(part, slice):
            cuts.append(_cut(part, length))
            result.append(cuts[-1][1])
        else:
            index = int(part)
            if not -length <= index < length:
                raise wrong_input(f"index {index} of an axis of length {length}")
            cuts.append((index % length, 1, 1))
    if cuts and not result:
        flat = np.ravel_multi_index([start for start, _, _ in cuts], shape)
        return recorder.gather(place, np.asarray(flat))
    return recorder.reshape(recorder.slice(place, tuple(cuts)), tuple(result))


def _cut(part: slice, length: int) -> Slice:
    try:
        start, stop, step = part.indices(length)
    except (TypeError, ValueError) as error:
        raise wrong_input(f"slice: {error}") from None
    count = len(range(start, stop, step))
    return start, count, step if count > 1 else 1


def stacked_numbers(recorder: Recorder, places: Sequence[int], shape: Shape) -> int:
    """An array of single numbers; numbers taken out of the same array are gathered from it at once."""
    roots: dict[int, dict[int, int]] = {}
    found: list[tuple[int, int]] = []
    constants: dict[Any, int] = {}
    for place in places:
        value = recorder.value(place)
        if value is not None:
            found.append((-1, constants.setdefault(value.flat[0], len(constants))))
            continue
        root, flat = recorder.traced_back(place, np.zeros(1, dtype=np.int64))
        used = roots.setdefault(root, {})
        found.append((root, used.setdefault(int(flat[0]), len(used))))
    pieces = [recorder.gather(root, np.array(list(used))) for root, used in roots.items()]
    counts = {root: len(used) for root, used in roots.items()}
    if constants:
        pieces.append(recorder.constant(list(constants)))
        counts[-1] = len(constants)
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    if len(roots) == 1 and not constants:
        (root,) = roots
        inside = list(roots[root])
        return recorder.gather(root, np.array([inside[k] for _, k in found]).reshape(shape))
    joined = recorder.concatenate(0, pieces)
    return recorder.gather(joined, np.array([starts[root] + k for root, k in found]).reshape(shape))
