"""Record sums of products and quotients: einsum with any number of operands, the matrix product, division, softmax.

Operands are contracted two at a time. A transpose, or a sum that is taken further, becomes part of the einsum that uses it.
``e = np.exp(S); e / e.sum(axis, keepdims=True)`` becomes the one instruction ``softmax``; largest entries
that are subtracted from S, so that exp does not overflow, cancel and are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.refusals import wrong_input
from m2bridge.programs.instructions import LETTERS

Term = tuple[str, ...]
"""Names of the axes of one operand; any names do, they become letters when the instruction is written."""


def contraction(recorder: Recorder, terms: Sequence[Term], result: Term, operands: Sequence[int]) -> int:
    """Write the einsum of one or two operands, no axis of which occurs twice in a term."""
    pairs = zip(terms, operands, strict=True)
    moved = [_further_in(recorder, term, index, sums=len(terms) == 1) for term, index in pairs]
    if len(moved) == 1 and moved[0][0] == result:
        return moved[0][1]
    lengths = {n: k for term, index in moved for n, k in zip(term, recorder.shape(index), strict=True)}
    if any(recorder.uniform(index) == 0 for _, index in moved):
        return recorder.zeros(tuple(lengths[name] for name in result))
    if len(lengths) > len(LETTERS):
        raise wrong_input(f"a sum of products over {len(lengths)} axes; at most {len(LETTERS)} are possible")
    letter = dict(zip(lengths, LETTERS, strict=False))
    *written, output = ("".join(letter[n] for n in term) for term in (*(term for term, _ in moved), result))
    return recorder.write("einsum", [index for _, index in moved], tuple(written), output)


def _further_in(recorder: Recorder, term: Term, index: int, *, sums: bool) -> tuple[Term, int]:
    """Return the axes and the array of which the operand is a transpose, or with `sums` a sum."""
    item = recorder.instructions[index]
    summed = sums and item.operation == "einsum" and len(item.operands) == 1
    if not summed and not recorder.is_transpose(item):
        return term, index
    (inner,), outer = item.constants
    names = dict(zip(outer, term, strict=True))
    return tuple(names.get(letter, f"summed {letter}") for letter in inner), item.operands[0]


def transposed(recorder: Recorder, index: int, axes: Sequence[int]) -> int:
    names = tuple(map(str, range(len(recorder.shape(index)))))
    return contraction(recorder, [names], tuple(names[k] for k in axes), [index])


def summed(recorder: Recorder, index: int, axes: Sequence[int]) -> int:
    """Sum over `axes` and remove them."""
    return transposed(recorder, index, [k for k in range(len(recorder.shape(index))) if k not in axes])


def matrix_product(recorder: Recorder, first: int, second: int) -> int:
    """Write ``first @ second`` by NumPy's rules: vectors, matrices, and stacks of matrices that are repeated where needed."""
    m, n = recorder.shape(first), recorder.shape(second)
    if not m or not n:
        raise wrong_input("@ of a number; write * instead")
    if m[-1] != n[-2 if len(n) > 1 else 0]:
        raise wrong_input(f"@: arrays of shapes {m} and {n} do not fit together")
    left = ("row", "k") if len(m) > 1 else ("k",)
    right = ("k", "column") if len(n) > 1 else ("k",)
    stacks = [f"stack {k}" for k in range(max(len(m), len(n), 2) - 2)]
    terms = [
        (*stacks[len(stacks) - max(len(shape) - 2, 0) :], *end) for shape, end in ((m, left), (n, right))
    ]
    return einsum(recorder, terms, (*stacks, *left[:-1], *right[1:]), [first, second])


def einsum(recorder: Recorder, terms: Sequence[Term], result: Term, operands: Sequence[int]) -> int:
    """Sum the product of the operands over all axes that are not in `result`, as ``np.einsum`` does.

    A name that occurs twice in a term takes a diagonal; an axis of length 1 is repeated where another operand is longer. Of
    all pairs the one with the fewest products is contracted first, the earliest of these.
    """
    lengths: dict[str, int] = {}
    for term, index in zip(terms, operands, strict=True):
        for name, length in zip(term, recorder.shape(index), strict=True):
            before = lengths.get(name, 1)
            if before != length and 1 not in (before, length):
                raise wrong_input(f"a sum of products: an axis has the lengths {before} and {length}")
            lengths[name] = max(before, length)
    waiting = [_simple(recorder, term, index, lengths) for term, index in zip(terms, operands, strict=True)]
    while len(waiting) > 2:
        i, j = min(
            combinations(range(len(waiting)), 2),
            key=lambda pair: prod(lengths[n] for n in {*waiting[pair[0]][0], *waiting[pair[1]][0]}),
        )
        others = set(result).union(*(term for k, (term, _) in enumerate(waiting) if k not in (i, j)))
        (left, first), (right, second) = waiting[i], waiting.pop(j)
        kept = tuple(name for name in dict.fromkeys(left + right) if name in others)
        waiting[i] = kept, contraction(recorder, [left, right], kept, [first, second])
    return contraction(recorder, [term for term, _ in waiting], result, [index for _, index in waiting])


def _simple(recorder: Recorder, term: Term, index: int, lengths: dict[str, int]) -> tuple[Term, int]:
    """Remove axes that are to be repeated, and take the diagonal for names that occur twice."""
    kept = [k for k, n in enumerate(recorder.shape(index)) if n == lengths[term[k]]]
    term, shape = tuple(term[k] for k in kept), tuple(recorder.shape(index)[k] for k in kept)
    index = recorder.reshape(index, shape)
    names = tuple(dict.fromkeys(term))
    if names == term:
        return term, index
    grid = dict(zip(names, np.indices([lengths[name] for name in names], sparse=True), strict=True))
    flat: Any = sum(grid[name] * prod(shape[k + 1 :]) for k, name in enumerate(term))
    return names, recorder.gather(index, flat)


# -- quotients -----------------------------------------------------------------------------------------


def quotient(recorder: Recorder, first: int, second: int) -> int:
    """Divide: write a product with exact constants, a softmax, or a product with the reciprocal."""
    softmax = _softmax(recorder, first, second) if recorder.value(second) is None else None
    return recorder.multiply(first, recorder.reciprocal(second)) if softmax is None else softmax


def _softmax(recorder: Recorder, first: int, second: int) -> int | None:
    """Write a quotient as a softmax if its numerator is an exponential, perhaps times a constant mask, and its denominator is the
    sum of the same numbers along one axis; else return None.
    """
    item, numbers, axes = recorder.instructions[first], first, list(range(len(recorder.shape(first))))
    if recorder.is_transpose(item):
        (term,), result = item.constants
        numbers, axes = item.operands[0], [term.index(letter) for letter in result]
        item = recorder.instructions[numbers]
    axis = _summed_axis(recorder, second, numbers, axes)
    masks = [index for index in item.operands if recorder.value(index) is not None]
    masked = item.operation == "multiply" and masks
    exponential = next(index for index in item.operands if index not in masks) if masked else numbers
    inner = recorder.instructions[exponential]
    if axis is None or inner.operation != "exp" or inner.shape != item.shape:
        return None
    scores = _scores(recorder, inner.operands[0], axis)
    if not masked:
        return transposed(recorder, recorder.write("softmax", (scores,), axis), axes)
    terms = recorder.multiply(recorder.exp(scores), masks[0])
    wide = tuple(1 if k == axis else n for k, n in enumerate(item.shape))
    total = recorder.reshape(summed(recorder, terms, [axis]), wide)
    return transposed(recorder, recorder.multiply(terms, recorder.reciprocal(total)), axes)


def _summed_axis(recorder: Recorder, divisor: int, numbers: int, axes: list[int]) -> int | None:
    """Find the axis along which the divisor is the sum of the numbers, each of which is divided by its own sum; else None.

    `axes` is the order in which the numerator has the axes of the numbers.
    """
    total = recorder.instructions[divisor]
    while total.operation == "reshape":
        total = recorder.instructions[total.operands[0]]
    if total.operation != "einsum" or total.operands != (numbers,):
        return None
    (term,), result = total.constants
    summed = [k for k, letter in enumerate(term) if letter not in result]
    if len(summed) != 1:
        return None
    # number the sums, and compare: each entry has to be divided by the sum that it belongs to
    sums = np.arange(total.size).reshape(total.shape)
    sum_of_entry = np.expand_dims(
        np.einsum(f"{result}->{term.replace(term[summed[0]], '')}", sums), summed[0]
    )
    wanted = np.broadcast_to(sum_of_entry, recorder.shape(numbers)).transpose(axes)
    divisors = sums.reshape(recorder.shape(divisor))
    aligned = divisors.ndim <= wanted.ndim and np.array_equal(np.broadcast_to(divisors, wanted.shape), wanted)
    return summed[0] if aligned else None


def _scores(recorder: Recorder, index: int, axis: int) -> int:
    """Remove a maximum that is subtracted from the scores and is the same along the axis of the softmax."""
    item = recorder.instructions[index]
    if item.operation == "scale":
        return recorder.scale(item.constants[0], _scores(recorder, item.operands[0], axis))
    if item.operation == "add":
        for kept, dropped in (item.operands, item.operands[::-1]):
            if recorder.shape(kept) == item.shape and _is_maximum(recorder, dropped):
                padded = (1,) * (len(item.shape) - len(recorder.shape(dropped))) + recorder.shape(dropped)
                if padded[axis] == 1:
                    return _scores(recorder, kept, axis)
    return index


def _is_maximum(recorder: Recorder, index: int) -> bool:
    item = recorder.instructions[index]
    while item.operation in ("scale", "reshape"):
        item = recorder.instructions[item.operands[0]]
    return item.operation == "maximum"
