"""Sums of products in a recording: ``einsum`` with any number of operands, and the matrix product.

Operands are contracted two at a time. A transpose, or a sum that is taken further, becomes part of the einsum that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from m2bridge.programs.instructions import LETTERS, Shape
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import wrong_input

Term = tuple[str, ...]
"""Names of the axes of one operand; any hashable names do, they become letters when the instruction is written."""


def contraction(recorder: Recorder, terms: Sequence[Term], result: Term, operands: Sequence[int]) -> int:
    """The einsum of one or two operands, no axis of which occurs twice in a term."""
    moved = [_without_transpose(recorder, term, place) for term, place in zip(terms, operands, strict=True)]
    if len(moved) == 1:
        moved = [_with_inner_sum(recorder, *moved[0])]
        if moved[0][0] == result:
            return moved[0][1]
    if any(recorder.uniform(place) == 0 for _, place in moved):
        lengths = {n: k for term, place in moved for n, k in zip(term, recorder.shape(place), strict=True)}
        return recorder.zeros(tuple(lengths[name] for name in result))
    names = list(dict.fromkeys(name for term, _ in moved for name in term))
    if len(names) > len(LETTERS):
        raise wrong_input(f"a sum of products over {len(names)} axes; at most {len(LETTERS)} are possible")
    letter = dict(zip(names, LETTERS, strict=False))
    written = tuple("".join(letter[name] for name in term) for term, _ in moved)
    return recorder.write(
        "einsum", tuple(place for _, place in moved), written, "".join(letter[name] for name in result)
    )


def _without_transpose(recorder: Recorder, term: Term, place: int) -> tuple[Term, int]:
    inner, result = recorder.single_term(place) or ("", "-")
    if len(inner) != len(result):
        return term, place
    source = recorder.instruction(place).operands[0]
    return tuple(term[result.index(letter)] for letter in inner), source


def _with_inner_sum(recorder: Recorder, term: Term, place: int) -> tuple[Term, int]:
    single = recorder.single_term(place)
    if single is None:
        return term, place
    inner, result = single
    kept = dict(zip(result, term, strict=True))
    source = recorder.instruction(place).operands[0]
    return tuple(kept.get(letter, f"summed {letter}") for letter in inner), source


def transposed(recorder: Recorder, place: int, axes: Sequence[int]) -> int:
    names = tuple(map(str, range(len(recorder.shape(place)))))
    return contraction(recorder, [names], tuple(names[k] for k in axes), [place])


def summed(recorder: Recorder, place: int, axes: Sequence[int]) -> int:
    """The sum over some axes, which vanish."""
    names = tuple(map(str, range(len(recorder.shape(place)))))
    return contraction(recorder, [names], tuple(n for k, n in enumerate(names) if k not in axes), [place])


def product(recorder: Recorder, first: int, second: int) -> int:
    """``first @ second`` by NumPy's rules: vectors, matrices, and stacks of matrices that are repeated where needed."""
    m, n = recorder.shape(first), recorder.shape(second)
    if not m or not n:
        raise wrong_input("@ of a number; write * instead")
    if m[-1] != n[-2 if len(n) > 1 else 0]:
        raise wrong_input(f"@: arrays of shapes {m} and {n} do not fit together")
    left = ("row", "k") if len(m) > 1 else ("k",)
    right = ("k", "column") if len(n) > 1 else ("k",)
    depth = max(len(m) - 2, len(n) - 2, 0)
    terms: list[Term] = [(*_stack_names(m, depth), *left), (*_stack_names(n, depth), *right)]
    result = (*(f"stack {k}" for k in range(depth)), *left[:-1], *right[1:])
    return einsum(recorder, terms, result, [first, second])


def _stack_names(shape: Shape, depth: int) -> list[str]:
    own = max(len(shape) - 2, 0)
    return [f"stack {k}" for k in range(depth - own, depth)]


def einsum(recorder: Recorder, terms: Sequence[Term], result: Term, operands: Sequence[int]) -> int:
    """The sum over all axes that are not in `result` of the product of the operands, as ``np.einsum`` computes it.

    A name that occurs twice in a term takes a diagonal; an axis of length 1 is repeated where another operand is longer. Of
    all pairs the one with the fewest products is contracted first, the earliest of these.
    """
    lengths = _lengths(recorder, terms, operands)
    waiting = [_simple(recorder, term, place, lengths) for term, place in zip(terms, operands, strict=True)]
    while len(waiting) > 2:
        i, j = min(
            combinations(range(len(waiting)), 2),
            key=lambda pair: prod(lengths[n] for n in {*waiting[pair[0]][0], *waiting[pair[1]][0]}),
        )
        others = set(result).union(*(term for k, (term, _) in enumerate(waiting) if k not in (i, j)))
        pair = [waiting[i], waiting[j]]
        names = dict.fromkeys(pair[0][0] + pair[1][0])
        kept = tuple(name for name in names if name in others)
        waiting[i] = (kept, contraction(recorder, [t for t, _ in pair], kept, [p for _, p in pair]))
        del waiting[j]
    return contraction(recorder, [t for t, _ in waiting], result, [p for _, p in waiting])


def _lengths(recorder: Recorder, terms: Sequence[Term], operands: Sequence[int]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for term, place in zip(terms, operands, strict=True):
        shape = recorder.shape(place)
        if len(shape) != len(term):
            raise wrong_input(f"a sum of products: an array of shape {shape} has not {len(term)} axes")
        for name, length in zip(term, shape, strict=True):
            before = lengths.get(name, 1)
            if before != length and 1 not in (before, length):
                raise wrong_input(f"a sum of products: an axis has the lengths {before} and {length}")
            lengths[name] = max(before, length)
    return lengths


def _simple(recorder: Recorder, term: Term, place: int, lengths: dict[str, int]) -> tuple[Term, int]:
    """The operand without axes that are to be repeated, and with a diagonal for names that occur twice."""
    shape = recorder.shape(place)
    kept = [k for k, name in enumerate(term) if shape[k] == lengths[name]]
    if len(kept) < len(term):
        term = tuple(term[k] for k in kept)
        place = recorder.reshape(place, tuple(shape[k] for k in kept))
    names = tuple(dict.fromkeys(term))
    if len(names) == len(term):
        return term, place
    grid = dict(zip(names, np.indices([lengths[name] for name in names], sparse=True), strict=True))
    shape = recorder.shape(place)
    steps = [prod(shape[k + 1 :]) for k in range(len(shape))]
    flat: Any = sum(grid[name] * step for name, step in zip(term, steps, strict=True))
    return names, recorder.gather(place, flat)


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
