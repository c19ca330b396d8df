"""A program in which every axis is factored: reshapes and slices disappear, and each index space is visible.

An axis that a reshape or a slice divides is replaced by the factors of its length; axes of length one are dropped. Slices are
moved to the weights: a slice of a sum is the sum of slices. What is left are einsums (which include entrywise products), sums,
entrywise functions, softmax, and opaque steps, which keep some axes as they are and do anything along the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.program import Instruction, Program, Shape
from m2bridge.symmetry.axis_factors import AxisFactors
from m2bridge.symmetry.concatenations import without_concatenations

Box = tuple[tuple[int, int], ...]
"""For each factor of the axes of an instruction: first index and number of indices."""
Letters = tuple[int, ...]
"""One number for each axis; axes with the same number are indexed together, as letters in einsum."""
_STEPS = {
    "multiply": "einsum",
    "reshape": "opaque",
    "slice": "opaque",
    "gather": "opaque",
    "concatenate": "opaque",
}
"""The steps that instructions become; the others keep their names."""


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """One step: operands (places of earlier tensors) with letters on their axes, and the letters of the result.

    `operation` is weight, fixed (an input, a constant, or a weight that is used in overlapping boxes), einsum, add, scale, power,
    reciprocal, sqrt, exp, softmax, centred (an array minus its mean), or opaque. A letter that an operand of `add` lacks is
    broadcast. For a weight, also if fixed, `entries` are the flat weights; `number` is the exponent of a power or the factor of a
    scale; `along` are the letters that softmax sums over, or over which the mean of a centred array is taken.
    For a weight, `axes` are for each factor its axis, and which factor of several it is, in words; `weight` is the name of the
    whole array, and `box` the box of its `factors`.
    """

    operation: str
    shape: Shape
    result: Letters
    operands: tuple[int, ...] = ()
    letters: tuple[Letters, ...] = ()
    number: Fraction | int = 1
    entries: np.ndarray | None = None
    name: str = ""
    along: Letters = ()
    axes: tuple[tuple[int, str], ...] = ()
    weight: str = ""
    box: Box = ()
    factors: Shape = ()

    @property
    def sides(self) -> list[tuple[int, Letters]]:
        """Return the operands with their letters."""
        return list(zip(self.operands, self.letters, strict=True))

    def axis_text(self, position: int) -> str:
        """Return a weight and one of its axes in words, with the factor where the axis has several."""
        axis, factor = self.axes[position]
        return f"{self.name} axis {axis}{factor}"


@dataclass(frozen=True, eq=False, slots=True)
class FactoredProgram:
    """The steps of a factored program, and the places of its outputs."""

    tensors: tuple[Tensor, ...]
    outputs: tuple[int, ...]
    unused: tuple[int, ...]
    """Flat weights on which nothing depends."""

    def weights(self) -> Iterator[tuple[int, Tensor]]:
        """List the weights and their places."""
        return ((k, item) for k, item in enumerate(self.tensors) if item.operation == "weight")


def factored(program: Program) -> FactoredProgram:
    """Factor all axes of a program and move slices to its weights.

    >>> from m2bridge.programs import parse_program
    >>> text = "m2bridge program 1\\n%0 = weight W [4,1]\\n%1 = slice 2:2:1,0:1:1 %0\\noutput y %1\\n"
    >>> [(t.operation, t.shape, t.entries.tolist()) for t in factored(parse_program(text)).tensors]
    [('weight', (2,), [2, 3])]
    """
    return _Factoring(without_concatenations(program)).result()


class _Factoring:
    """Writes the factored program: first which boxes of each instruction are needed, then the steps that compute them."""

    def __init__(self, program: Program) -> None:
        self.program, self.items = program, program.instructions
        self.factors = AxisFactors(program)
        self.needed: list[dict[Box, None]] = [{} for _ in self.items]
        for _, index in program.outputs:
            self.needed[index][self._whole(index)] = None
        for index in reversed(range(len(self.items))):
            for box in list(self.needed[index]):
                self._need_operands(index, box)
        self.tensors: list[Tensor] = []
        self.places: dict[tuple[int, Box], int] = {}
        self.starts = {name: entries.start for name, _, entries in flat_parts(program.parameters)}

    def result(self) -> FactoredProgram:
        for index in range(len(self.items)):
            boxes = sorted(self.needed[index], key=lambda box: box != self._whole(index))
            for box in boxes:
                self._write(index, box)
        outputs = tuple(self.places[k, self._whole(k)] for _, k in self.program.outputs)
        used = {int(i) for item in self.tensors if item.entries is not None for i in item.entries.reshape(-1)}
        unused = tuple(i for i in range(self.program.parameter_count) if i not in used)
        return FactoredProgram(tuple(self.tensors), outputs, unused)

    def _write(self, index: int, box: Box) -> None:
        """Append the step that computes a box; a reshape or slice that only renames axes needs none."""
        made = self._tensor(index, box)
        self.places[index, box] = len(self.tensors)
        if self.items[index].operation in ("reshape", "slice") and made.letters == (made.result,):
            self.places[index, box] = made.operands[0]
        else:
            self.tensors.append(made)

    def _whole(self, index: int) -> Box:
        return tuple((0, n) for n in self.factors.of(index))

    # -- which boxes are needed ---------------------------------------------------------------------------

    def _need_operands(self, index: int, box: Box) -> None:
        boxes = self._operand_boxes(index, box)
        if boxes is None:  # the instruction is computed as a whole, and the box is an opaque step
            self.needed[index][self._whole(index)] = None
            boxes = [self._whole(k) for k in self._sources(index)]
        for k, operand_box in zip(self._sources(index), boxes, strict=True):
            self.needed[k][operand_box] = None

    def _sources(self, index: int) -> tuple[int, ...]:
        """Return the operands of an instruction; of a gather the array whose flat entries it takes."""
        item = self.items[index]
        return (self._gathered(item)[0],) if item.operation == "gather" else item.operands

    def _gathered(self, item: Instruction) -> tuple[int, int]:
        """Return the array that a gather takes entries of, behind reshapes and zeros that are appended, and its size."""
        source = item.operands[0]
        while True:
            before = self.items[source]
            if before.operation == "reshape" or _is_padded(self.items, before):
                source = before.operands[0]
            else:
                return source, before.size

    def _operand_boxes(self, index: int, box: Box) -> list[Box] | None:  # noqa: PLR0911 -- one case for each instruction
        """Return the boxes of the operands from which a box is computed by the same operation, or None."""
        item, whole = self.items[index], box == self._whole(index)
        spans = self.factors.spans(index)
        if not item.operands:
            return []
        if item.operation in ("add", "multiply"):
            return [self._broadcast_box(index, k, box) for k in item.operands]
        if item.operation == "einsum":
            terms, result = item.constants
            by_letter = {
                letter: box[span.start : span.stop] for letter, span in zip(result, spans, strict=True)
            }
            return [
                tuple(
                    bounds
                    for axis, letter in enumerate(term)
                    for bounds in by_letter.get(letter) or _full(self.factors.of_axis(k, axis))
                )
                for k, term in zip(item.operands, terms, strict=True)
            ]
        if item.operation in ("scale", "power", "exp", "reciprocal", "sqrt"):
            return [box]
        if item.operation == "softmax":
            along = spans[item.constants[0]]
            full = all(box[k] == (0, self.factors.of(index)[k]) for k in along)
            return [box] if full else None
        if item.operation == "reshape" and self.factors.of(index) == self.factors.of(item.operands[0]):
            return [box]
        if item.operation == "slice":
            return self._sliced_box(index, box)
        return [self._whole(k) for k in self._sources(index)] if whole else None

    def _broadcast_box(self, index: int, operand: int, box: Box) -> Box:
        shape, spans = self.items[operand].shape, self.factors.spans(index)
        shift = len(spans) - len(shape)
        ranges: list[tuple[int, int]] = []
        for axis, n in enumerate(shape):
            if n > 1:
                span = spans[axis + shift]
                ranges += box[span.start : span.stop]
        return tuple(ranges)

    def _sliced_box(self, index: int, box: Box) -> list[Box] | None:
        """Return the box of the operand of a slice that a box of its result is."""
        item = self.items[index]
        operand, ranges = item.operands[0], list[tuple[int, int]]()
        spans = self.factors.spans(index)
        for axis, bounds in enumerate(item.constants):
            outer = _box_of_slice(self.factors.of_axis(operand, axis), bounds)
            inner_ranges = iter(box[spans[axis].start : spans[axis].stop])
            sizes = [count for _, count in outer or () if count > 1]
            if outer is None or tuple(sizes) != self.factors.of_axis(index, axis):
                return None if box != self._whole(index) else [self._whole(operand)]
            for start, count in outer:
                inner = next(inner_ranges) if count > 1 else (0, 1)
                ranges.append((start + inner[0], inner[1]))
        return [tuple(ranges)]

    # -- steps --------------------------------------------------------------------------------------------

    def _tensor(self, index: int, box: Box) -> Tensor:
        item = self.items[index]
        shape = tuple(count for _, count in box if count > 1)
        result = tuple(k for k, (_, count) in enumerate(box) if count > 1)
        if item.operation == "weight":
            return self._weight(index, box, shape, result)
        if item.operation in ("input", "constant"):
            return Tensor("fixed", shape, result)
        boxes = self._operand_boxes(index, box)
        if boxes is None:
            kept = [
                k
                for k, (bounds, n) in enumerate(zip(box, self.factors.of(index), strict=True))
                if bounds == (0, n)
            ]
            source = self.places[index, self._whole(index)]
            kept_letters = tuple(k if k in kept else -1 - k for k in range(len(box)))
            return Tensor("opaque", shape, result, (source,), (kept_letters,))
        operands = tuple(
            self.places[k, operand_box] for k, operand_box in zip(self._sources(index), boxes, strict=True)
        )
        terms = self._letters(index, boxes)
        operation = _STEPS.get(item.operation, item.operation)
        number = item.constants[0] if operation in ("power", "scale") else 1
        if operation == "softmax":
            along = self.factors.spans(index)[item.constants[0]]
            return Tensor(
                "softmax", shape, result, operands, terms, along=tuple(k for k in along if k in result)
            )
        if operation == "einsum":
            operands, terms = self._without_squares(operands, terms)
        return Tensor(operation, shape, result, operands, terms, number)

    def _without_squares(
        self, operands: tuple[int, ...], letters: tuple[Letters, ...]
    ) -> tuple[tuple[int, ...], tuple[Letters, ...]]:
        """Write the sum of squares as a product of an array with itself, which rotations do not change."""
        if len(operands) > 1:
            return operands, letters
        square = self.tensors[operands[0]]
        if square.operation == "power" and square.number == 2:
            return square.operands * 2, letters * 2
        same = len(square.operands) == 2 and square.operands[0] == square.operands[1]
        if square.operation == "einsum" and same and set(square.letters) == {square.result}:
            return square.operands, letters * 2
        return operands, letters

    def _weight(self, index: int, box: Box, shape: Shape, result: Letters) -> Tensor:
        name = str(self.items[index].constants[0])
        factors = self.factors.of(index)
        entries = self.starts[name] + np.arange(prod(factors)).reshape(factors)
        indices = entries[tuple(slice(start, start + count) for start, count in box)].reshape(shape)
        others = [other for other in self.needed[index] if other != box]
        if any(_overlap(box, other) for other in others):
            return Tensor("fixed", shape, result, entries=indices)
        shown = f"{name}{self._ranges(index, box)}" if others else name
        return Tensor(
            "weight",
            shape,
            result,
            entries=indices,
            name=shown,
            weight=name,
            axes=self._axes(index, result, box),
            box=box,
            factors=factors,
        )

    def _ranges(self, index: int, box: Box) -> str:
        """Return a box of a weight as indices on its axes."""
        words = []
        for axis, span in enumerate(self.factors.spans(index)):
            factors = self.factors.of_axis(index, axis)
            entries = np.arange(prod(factors)).reshape(factors)
            indices = entries[
                tuple(slice(first, first + n) for first, n in box[span.start : span.stop])
            ].reshape(-1)
            step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
            full = len(indices) == prod(factors)
            words.append(
                ":" if full else f"{indices[0]}:{indices[-1] + 1}" + (f":{step}" if step > 1 else "")
            )
        while words[-1] == ":":
            words.pop()
        return f"[{', '.join(words)}]"

    def _axes(self, index: int, positions: Letters, box: Box) -> tuple[tuple[int, str], ...]:
        """Return the axis of each factor of a box, and in words which factor of several it is."""
        axes = {}
        for axis, span in enumerate(self.factors.spans(index)):
            sizes = [box[position][1] for position in span]
            for number, position in enumerate(span):
                axes[position] = (axis, _factor_text(sizes, number))
        return tuple(axes[position] for position in positions)

    def _letters(self, index: int, boxes: Sequence[Box]) -> tuple[Letters, ...]:
        """Return letters on the axes of the operands: those of the result are the positions of its factors."""
        spans, terms = self.factors.spans(index), []
        for number, (k, operand_box) in enumerate(zip(self._sources(index), boxes, strict=True)):
            named = self._operand_letters(index, number, k, spans)
            terms.append(
                tuple(letter for letter, (_, count) in zip(named, operand_box, strict=True) if count > 1)
            )
        return tuple(terms)

    def _operand_letters(self, index: int, number: int, k: int, spans: Sequence[range]) -> list[int]:
        item = self.items[index]
        if item.operation == "gather":
            return self._gather_letters(index, k)
        if item.operation == "reshape":
            same = self.factors.of(index) == self.factors.of(k)
            return [j if same else -1 - j for j in range(len(self.factors.of(k)))]
        letters: list[int] = []
        for axis in range(len(self.items[k].shape)):
            count = len(self.factors.of_axis(k, axis))
            letters += self._axis_letters(item, number, axis, count, spans)
        if item.operation == "slice":
            return self._slice_letters(index, k)
        return letters

    def _axis_letters(
        self, item: Instruction, number: int, axis: int, count: int, spans: Sequence[range]
    ) -> list[int]:
        if item.operation == "einsum":
            terms, result = item.constants
            letter = terms[number][axis]
            if letter in result:
                return list(spans[result.index(letter)])
            return [-1 - 100 * ord(letter) - j for j in range(count)]
        shape = self.items[item.operands[number]].shape
        shift = len(item.shape) - len(shape)
        if shape[axis] != item.shape[axis + shift]:
            return [-1 - 100 * axis - j for j in range(count)]
        if item.operation == "concatenate" and axis == item.constants[0]:
            return [-1 - 100 * axis - j for j in range(count)]
        return list(spans[axis + shift])

    def _slice_letters(self, index: int, operand: int) -> list[int]:
        item, spans = self.items[index], self.factors.spans(index)
        letters: list[int] = []
        for axis, bounds in enumerate(item.constants):
            factors = self.factors.of_axis(operand, axis)
            box = _box_of_slice(factors, bounds)
            sizes = tuple(count for _, count in box or () if count > 1)
            positions = iter(spans[axis])
            if box is None or sizes != self.factors.of_axis(index, axis):
                letters += [-1 - 100 * axis - j for j in range(len(factors))]
            else:
                letters += [
                    next(positions) if count > 1 else -1 - 100 * axis - j for j, (_, count) in enumerate(box)
                ]
        return letters

    def _gather_letters(self, position: int, source: int) -> list[int]:
        """Tie an axis of the source to one of the result if every slice along it is gathered in the same way."""
        item, size = self.items[position], self._gathered(self.items[position])[1]
        factors, shape = self.factors.of(source), self.factors.of(position)
        flat = np.array(item.constants, dtype=np.int64).reshape(shape)
        outside = flat >= size
        letters: list[int] = []
        for axis, n in enumerate(factors):
            step = prod(factors[axis + 1 :])
            index = flat // step % n
            rest = np.where(outside, -1, flat - index * step)
            kept = [
                other
                for other, m in enumerate(shape)
                if m == n and other not in letters and _passes(index, rest, outside, other)
            ]
            letters.append(kept[0] if kept else -1 - axis)
        return letters


def _passes(index: np.ndarray, rest: np.ndarray, outside: np.ndarray, axis: int) -> bool:
    """Return whether `index` counts along an axis and the other indices do not depend on it."""
    count = np.arange(index.shape[axis]).reshape([-1 if k == axis else 1 for k in range(index.ndim)])
    counts = bool(((index == count) | outside).all())
    return counts and bool((rest == np.take(rest, [0], axis=axis)).all())


def _is_padded(items: Sequence[Instruction], item: Instruction) -> bool:
    """Return whether an instruction appends zeros to a vector."""
    if item.operation != "concatenate" or len(item.operands) != 2 or len(item.shape) != 1:
        return False
    last = items[item.operands[1]]
    return last.operation == "constant" and not any(last.constants)


def _full(factors: Shape) -> Box:
    return tuple((0, n) for n in factors)


def _box_of_slice(factors: Shape, bounds: tuple[int, int, int]) -> Box | None:
    """Return the box of factors that a slice of their axis is, or None if it is none."""
    start, count, step = bounds
    if not factors:
        return ()
    indices = np.unravel_index(start + step * np.arange(count), factors)
    ranges = [(int(index.min()), int(index.max() - index.min() + 1)) for index in indices]
    if step < 0 or prod(n for _, n in ranges) != count:
        return None
    return tuple(ranges)


def _overlap(first: Box, second: Box) -> bool:
    return all(a < b + m and b < a + n for (a, n), (b, m) in zip(first, second, strict=True))


def _factor_text(sizes: Sequence[int], number: int) -> str:
    """Return in words which factor of an axis is meant; nothing if it is the only one.

    >>> [_factor_text((3, 2, 4), k) for k in range(3)]
    [' (3 blocks of 8)', ' (2 blocks of 4 in each of 3)', ' (4 entries in each of 6 blocks)']
    """
    outer, n, inner = prod(sizes[:number]), sizes[number], prod(sizes[number + 1 :])
    if inner > 1:
        return f" ({n} blocks of {inner}" + (f" in each of {outer})" if outer > 1 else ")")
    return f" ({n} entries in each of {outer} blocks)" if outer > 1 else ""
