"""Divisions in a recording: by constants, by network values, and the softmax that people write by hand.

``e = np.exp(S); e / e.sum(axis, keepdims=True)`` becomes the one instruction ``softmax``. The largest entries that are
subtracted from S so that exp does not overflow change nothing and are dropped.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from m2bridge.programs.contractions import summed, transposed
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
    """The softmax that a quotient is, if its numerator is an exponential, perhaps times a constant mask, and its denominator the
    sum of the same numbers along one axis.
    """
    numbers, axes = _permuted(recorder, first)
    axis = _summed_axis(recorder, first, second, numbers, axes)
    if axis is None:
        return None
    item = recorder.instruction(numbers)
    masks = [place for place in item.operands if recorder.value(place) is not None]
    if item.operation == "multiply" and masks:
        (exponential,) = (place for place in item.operands if place not in masks)
        scores = _without_maxima(recorder, exponential, axis)
        if scores is None or recorder.shape(exponential) != item.shape:
            return None
        masked = recorder.multiply(recorder.exp(scores), masks[0])
        total = summed(recorder, masked, [axis])
        wide = tuple(1 if k == axis else n for k, n in enumerate(item.shape))
        quotients = recorder.multiply(masked, recorder.reciprocal(recorder.reshape(total, wide)))
        return transposed(recorder, quotients, axes)
    scores = _without_maxima(recorder, numbers, axis)
    return None if scores is None else transposed(recorder, recorder.write("softmax", (scores,), axis), axes)


def _summed_axis(recorder: Recorder, first: int, second: int, numbers: int, axes: list[int]) -> int | None:
    """The axis along which the denominator is the sum of the numerator; None if it is anything else."""
    total = second
    while recorder.instruction(total).operation == "reshape":
        total = recorder.instruction(total).operands[0]
    single = recorder.single_term(total)
    if single is None or recorder.instruction(total).operands != (numbers,):
        return None
    term, result = single
    summed_axes = [k for k, letter in enumerate(term) if letter not in result]
    if len(summed_axes) != 1:
        return None
    # each entry has to be divided by the sum that it belongs to: number the sums, and compare
    sums = np.arange(prod(recorder.shape(total))).reshape(recorder.shape(total))
    own = np.expand_dims(
        np.einsum(f"{result}->{term.replace(term[summed_axes[0]], '')}", sums), summed_axes[0]
    )
    wanted = np.broadcast_to(own, recorder.shape(numbers)).transpose(axes)
    given = sums.reshape(recorder.shape(second))
    aligned = given.ndim <= wanted.ndim and np.array_equal(np.broadcast_to(given, wanted.shape), wanted)
    return summed_axes[0] if aligned else None


def _without_maxima(recorder: Recorder, exponential: int, axis: int) -> int | None:
    """The scores of an exponential, without maxima that are the same along the axis; None if it is no exponential."""
    item = recorder.instruction(exponential)
    return _scores(recorder, item.operands[0], axis) if item.operation == "exp" else None


def _scores(recorder: Recorder, place: int, axis: int) -> int:
    """Scores without a maximum that is subtracted from them and is the same along the axis of the softmax."""
    item = recorder.instruction(place)
    if item.operation == "scale":
        factor = item.constants[0]
        assert isinstance(factor, Fraction)
        return recorder.scale(factor, _scores(recorder, item.operands[0], axis))
    if item.operation == "add":
        for kept, dropped in (item.operands, item.operands[::-1]):
            if recorder.shape(kept) == item.shape and _is_maximum(recorder, dropped):
                own = (1,) * (len(item.shape) - len(recorder.shape(dropped))) + recorder.shape(dropped)
                if own[axis] == 1:
                    return _scores(recorder, kept, axis)
    return place


def _is_maximum(recorder: Recorder, place: int) -> bool:
    item = recorder.instruction(place)
    while item.operation in ("scale", "reshape"):
        item = recorder.instruction(item.operands[0])
    return item.operation == "maximum"
