"""A factored program with fewer steps: no permutations of axes, no sums of sums, softmax and centred arrays in one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor


def simplified(program: FactoredProgram) -> FactoredProgram:
    """Leave out permutations of axes, join sums of sums, write x - mean(x) as centred and normalised exponentials as softmax.

    The latter are exp(z) c / sum(exp(z) c) with a constant c, such as a mask; they are written as softmax of z. The softmax has
    no operand c: along its axes the result adds up to one, and it does not change if z is shifted there by something
    constant, for any c.
    """
    tensors = list[Tensor]()
    for item in program.tensors:
        tensors.append(_without_permutations(tensors, item))
    program = _needed(tensors, program)
    tensors = list(program.tensors)
    uses = Counter(k for item in tensors for k in item.operands) + Counter(program.outputs)
    for place, item in enumerate(tensors):
        if item.operation == "add":
            tensors[place] = _centred(tensors, item) or _joined(tensors, item, uses)
        elif item.operation == "einsum":
            tensors[place] = _normalised(tensors, item) or item
    return _needed(tensors, program)


def _without_permutations(tensors: Sequence[Tensor], item: Tensor) -> Tensor:
    """Replace operands that only permute the axes of a tensor by that tensor."""
    sides = item.sides
    for side, (k, own) in enumerate(sides):
        inner = tensors[k]
        single = inner.operation == "einsum" and len(inner.operands) == 1
        if single and sorted(inner.letters[0]) == sorted(inner.result):
            renamed = dict(zip(inner.result, own, strict=True))
            sides[side] = inner.operands[0], tuple(renamed[letter] for letter in inner.letters[0])
    return replace(item, operands=tuple(k for k, _ in sides), letters=tuple(own for _, own in sides))


def _joined(tensors: Sequence[Tensor], item: Tensor, uses: Mapping[int, int]) -> Tensor:
    """Replace operands that are sums, used only here, by their operands."""
    operands: list[int] = []
    letters: list[Letters] = []
    for k, own in item.sides:
        inner = tensors[k]
        if inner.operation != "add" or uses[k] > 1:
            operands.append(k)
            letters.append(own)
            continue
        renamed = dict(zip(inner.result, own, strict=True))
        operands += inner.operands
        letters += [tuple(renamed[letter] for letter in each) for each in inner.letters]
    return replace(item, operands=tuple(operands), letters=tuple(letters))


def _centred(tensors: Sequence[Tensor], item: Tensor) -> Tensor | None:
    """Return x - mean(x), along some axes, in one step; None if a sum is something else."""
    sides = item.sides
    for (x, letters), (mean, kept) in (sides, sides[::-1]) if len(sides) == 2 else ():
        axes = tuple(letter for letter in letters if letter not in kept)
        scaled = tensors[mean]
        if not axes or scaled.operation != "scale" or set(letters) != set(item.result):
            continue
        total = tensors[scaled.operands[0]]
        count = prod(tensors[x].shape[letters.index(letter)] for letter in axes)
        if total.operation != "einsum" or total.operands != (x,) or scaled.number != Fraction(-1, count):
            continue
        named = dict(zip(total.letters[0], letters, strict=True))
        renamed = dict(zip(scaled.letters[0], total.result, strict=True))
        if tuple(named[renamed[letter]] for letter in scaled.result) == kept:
            return Tensor("centred", item.shape, item.result, (x,), (letters,), along=axes)
    return None


def _normalised(tensors: Sequence[Tensor], item: Tensor) -> Tensor | None:
    """Return softmax in the place of a product of an array and the reciprocal of its sum; None if it is something else."""
    sides = item.sides
    if len(sides) != 2:
        return None
    for (array, letters), (other, kept) in (sides, sides[::-1]):
        total = _divisor(tensors, other)
        argument = _exponent(tensors, array)
        if total is None or argument is None or set(letters) != set(item.result):
            continue
        if total.operands != (array,) or len(set(letters)) < len(letters):
            continue
        named = dict(zip(total.letters[0], letters, strict=True))
        if tuple(named[letter] for letter in total.result) != kept:
            continue
        k, own = argument
        positions = dict(zip(tensors[array].result, letters, strict=True))
        along = tuple(letter for letter in item.result if letter not in kept)
        renamed = tuple(positions[letter] for letter in own)
        return Tensor("softmax", item.shape, item.result, (k,), (renamed,), along=along)
    return None


def _divisor(tensors: Sequence[Tensor], place: int) -> Tensor | None:
    """Return the sum of one array of which a tensor is the reciprocal."""
    item = tensors[place]
    if item.operation != "reciprocal" or item.letters != (item.result,):
        return None
    total = tensors[item.operands[0]]
    distinct = len(set(total.letters[0])) == len(total.letters[0]) if len(total.letters) == 1 else False
    return total if total.operation == "einsum" and distinct else None


def _exponent(tensors: Sequence[Tensor], place: int) -> tuple[int, Letters] | None:
    """Return z, and its letters, for a tensor exp(z) or exp(z) times something that does not depend on weights."""
    item = tensors[place]
    if item.operation == "exp":
        return item.operands[0], item.letters[0]
    if item.operation != "einsum":
        return None
    sides = item.sides
    moving = [(k, letters) for k, letters in sides if tensors[k].operation != "fixed"]
    if len(moving) != 1 or tensors[moving[0][0]].operation != "exp":
        return None
    k, letters = moving[0]
    if len(set(letters)) < len(letters) or set(letters) != set(item.result):
        return None
    named = dict(zip(tensors[k].result, letters, strict=True))
    return tensors[k].operands[0], tuple(named[letter] for letter in tensors[k].letters[0])


def _needed(tensors: Sequence[Tensor], program: FactoredProgram) -> FactoredProgram:
    """Drop the tensors that no output needs, but for weights, and number the others again."""
    needed = set(program.outputs)
    for place in reversed(range(len(tensors))):
        if place in needed:
            needed.update(tensors[place].operands)
    kept = [k for k, item in enumerate(tensors) if k in needed or item.operation == "weight"]
    numbers = {place: number for number, place in enumerate(kept)}
    items = [replace(tensors[k], operands=tuple(numbers[o] for o in tensors[k].operands)) for k in kept]
    return FactoredProgram(tuple(items), tuple(numbers[k] for k in program.outputs), program.unused)
