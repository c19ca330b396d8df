"""Divisions in a recording: by constants, by network values, and the softmax that people write by hand.

``e = np.exp(S); e / e.sum(axis, keepdims=True)`` becomes the one instruction ``softmax``. The largest entries that are
subtracted from S so that exp does not overflow change nothing and are dropped.
"""

from __future__ import annotations

from fractions import Fraction

from m2bridge.programs.contractions import transposed
from m2bridge.programs.program import Shape
from m2bridge.programs.recorder import Recorder


def quotient(recorder: Recorder, first: int, second: int) -> int:
    """``first / second``, as a product with exact constants, a softmax, or a product with the reciprocal."""
    if recorder.value(second) is None:
        found = _softmax(recorder, first, second)
        if found is not None:
            return found
    return recorder.multiply(first, recorder.reciprocal(second))


def _permuted(recorder: Recorder, place: int) -> tuple[int, list[int]]:
    """The array of which this is a transpose, and the axis of it that each axis comes from."""
    term, result = recorder.single_term(place) or ("", "-")
    if len(term) != len(result):
        return place, list(range(len(recorder.shape(place))))
    return recorder.instruction(place).operands[0], [term.index(letter) for letter in result]


def _softmax(recorder: Recorder, first: int, second: int) -> int | None:
    exponential, axes = _permuted(recorder, first)
    if recorder.instruction(exponential).operation != "exp":
        return None
    denominator = recorder.shape(second)
    total = second
    while recorder.instruction(total).operation == "reshape":
        total = recorder.instruction(total).operands[0]
    single = recorder.single_term(total)
    if single is None or recorder.instruction(total).operands != (exponential,):
        return None
    term, result = single
    summed = [k for k, letter in enumerate(term) if letter not in result]
    if len(summed) != 1 or len(denominator) > len(axes):
        return None
    kept = [term.index(letter) for letter, n in zip(result, recorder.shape(total), strict=True) if n > 1]
    if not _aligned(recorder.shape(first), axes, denominator, kept, summed[0]):
        return None
    scores = _without_maxima(recorder, recorder.instruction(exponential).operands[0], summed[0])
    return transposed(recorder, recorder.write("softmax", (scores,), summed[0]), axes)


def _aligned(shape: Shape, axes: list[int], denominator: Shape, kept: list[int], summed: int) -> bool:
    """Whether each entry is divided by the sum that it belongs to.

    `axes[j]` is the axis of the exponential behind axis j of the numerator; `kept` are those behind the axes of the
    denominator that are longer than 1.
    """
    if [n for n in denominator if n > 1] != [shape[axes.index(k)] for k in kept]:
        return False
    behind = iter(kept)
    places: list[int | None] = [None] * (len(shape) - len(denominator))
    places += [next(behind) if n > 1 else None for n in denominator]
    return all(
        place is None if axis == summed else n == 1 or place == axis
        for n, axis, place in zip(shape, axes, places, strict=True)
    )


def _without_maxima(recorder: Recorder, place: int, axis: int) -> int:
    """Scores without a maximum that is subtracted from them and is the same along the axis of the softmax."""
    item = recorder.instruction(place)
    if item.operation == "scale":
        factor = item.constants[0]
        assert isinstance(factor, Fraction)
        return recorder.scale(factor, _without_maxima(recorder, item.operands[0], axis))
    if item.operation == "add":
        for kept, dropped in (item.operands, item.operands[::-1]):
            if recorder.shape(kept) == item.shape and _is_maximum(recorder, dropped):
                own = (1,) * (len(item.shape) - len(recorder.shape(dropped))) + recorder.shape(dropped)
                if own[axis] == 1:
                    return _without_maxima(recorder, kept, axis)
    return place


def _is_maximum(recorder: Recorder, place: int) -> bool:
    item = recorder.instruction(place)
    while item.operation in ("scale", "reshape"):
        item = recorder.instruction(item.operands[0])
    return item.operation == "maximum"
