"""Which functions of the weights do symmetries keep, and up to what?

A function g is added to the outputs of a program. The symmetries of the new program are those that keep g too: if their orbits
have the dimension of the old ones, no symmetry moves g. With a new weight c and the output c g, they are those that scale g.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import PrimeFieldArithmetic
from m2bridge.programs.instructions import LETTERS, instruction
from m2bridge.programs.points import WEIGHTS, Integers, integers
from m2bridge.programs.program import Program, Shape, arranged
from m2bridge.programs.run import evaluate, tangents
from m2bridge.symmetry.axis_groups import Action
from m2bridge.symmetry.exponent_shifts import ExponentShift
from m2bridge.symmetry.fields import (
    VectorField,
    arrays_at,
    flat_values,
    jacobian_at,
    product_mod,
    small_integers,
)
from m2bridge.symmetry.shifts import Shift
from m2bridge.symmetry.structure import Family, Structure, structure

DETERMINED = "determined"
NOT_DETERMINED = "not determined"
_FIELDS_AT_ONCE = 64  # fields along which a function is differentiated together
_FREEDOM = "freedom"
"""The name of the weight that multiplies a function."""


@dataclass(frozen=True, slots=True)
class Freedom:
    """Up to what a function is determined: in words, the shape of the new weight, and the einsum with the function."""

    text: str
    shape: Shape
    terms: tuple[str, str]

    def motions(self, start: int) -> list[VectorField]:
        """List linear vector fields on the new weight, whose flat entries begin at `start`: those of the group of factors."""
        entries = start + np.arange(prod(self.shape)).reshape(self.shape)
        if len(self.shape) < 2:
            return [VectorField(((int(i), 1, (int(i),)),)) for i in entries.reshape(-1)]
        lines = entries.T if self.terms[0][0] in self.terms[1] else entries
        return [
            VectorField(tuple((int(i), 1, (int(j),)) for i, j in zip(to, source, strict=True)))
            for to in lines
            for source in lines
        ]


def freedoms(shape: Shape) -> list[Freedom]:
    """List what a function of a shape can be determined up to, from little to much.

    A freedom with as many parameters as the function has entries is not listed: its generic orbits are open, so that nothing
    of the function is determined.

    >>> [freedom.text for freedom in freedoms((2, 2))]
    ['determined up to scale', 'each row up to scale', 'each column up to scale']
    """
    letters = LETTERS[1 : len(shape) + 1]
    listed = [Freedom("determined up to scale", (), ("", letters))]
    if len(shape) < 2:
        return listed if prod(shape) > 1 else []
    (n, first), (m, last) = (shape[0], letters[0]), (shape[-1], letters[-1])
    listed += [
        Freedom(
            "each row up to scale" if len(shape) == 2 else "each block (head) up to scale",
            (n,),
            (first, letters),
        ),
        Freedom("each column up to scale", (m,), (last, letters)),
        Freedom("up to a change of basis of the rows", (n, n), ("a" + first, "a" + letters[1:])),
        Freedom("up to a change of basis of the columns", (m, m), (last + "a", letters[:-1] + "a")),
    ]
    return [freedom for freedom in listed if prod(freedom.shape) < prod(shape)]


def with_function(program: Program, function: Program) -> Program:
    """Add a function of the weights to the outputs of a program; weights that only the function has come last.

    >>> from m2bridge.programs import parse_program
    >>> f = parse_program("m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 2 %0\\noutput y %1\\n")
    >>> g = parse_program("m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 3 %0\\noutput function %1\\n")
    >>> with_function(f, g).text.splitlines()[3:]
    ['%2 = power 3 %0', 'output y %1', 'output function %2']
    """
    items = dict(enumerate(program.instructions))
    renamed: dict[int, int] = {}
    for index, item in enumerate(function.instructions):
        if item.operation == "weight" and item.constants[0] in program.weights:
            renamed[index] = program.weights[str(item.constants[0])]
        else:
            renamed[index] = len(items)
            items[len(items)] = replace(item, operands=tuple(renamed[k] for k in item.operands))
    return arranged(items, [*program.outputs, ("function", renamed[function.outputs[0][1]])])[0]


def multiplied(function: Program, freedom: Freedom) -> Program:
    """Multiply a function of the weights by a new weight, which comes last."""
    items = dict(enumerate(function.instructions))
    output, weight = function.outputs[0][1], len(items)
    items[weight] = instruction("weight", (_FREEDOM,), (), (), freedom.shape)
    shape = items[output].shape
    terms, result = (freedom.terms[0], LETTERS[1 : len(shape) + 1]), freedom.terms[1]
    order = dict(zip(dict.fromkeys("".join(terms)), LETTERS, strict=False))
    renamed = ["".join(order[a] for a in word) for word in (*terms, result)]
    items[weight + 1] = instruction(
        "einsum", (tuple(renamed[:2]), renamed[2]), (weight, output), (freedom.shape, shape)
    )
    return arranged(items, [("function", weight + 1)])[0]


def kept_rank(program: Program, function: Program, *, p: int, seed: int) -> int:
    """Return the dimension of orbits, in the weights of a program, of the symmetries that keep a function.

    The function may have further weights, which the symmetries may move.
    """
    symmetries = structure(with_function(program, function))
    count = program.parameter_count
    groups = []
    for group in symmetries.groups:
        actions = tuple(action for action in group.actions if (action.entries < count).all())
        if actions:
            groups.append(replace(group, actions=actions))
    shifts = tuple(shift for shift in symmetries.shifts if _is_within(shift, count))
    in_exponents = tuple(shift for shift in symmetries.exponent_shifts if _is_within(shift, count))
    unused = tuple(i for i in symmetries.unused if i < count)
    restricted = Structure(count, tuple(groups), shifts, unused, exponent_shifts=in_exponents)
    return restricted.rank(integers(seed, WEIGHTS, count, p), p)


def _is_within(shift: Shift | ExponentShift, count: int) -> bool:
    """Return whether only the first `count` weights move."""
    return all(bool((entries < count).all()) for entries in shift.entries())


def extended(
    fields: Sequence[VectorField], product: Program, motions: Sequence[VectorField], *, p: int, seed: int
) -> list[VectorField] | None:
    """Add motions of a new weight c to symmetries of a network, so that they do not move c g; None if that is not possible.

    The constant factors of the motions are solved at a random point modulo p and lifted to small integers. What is returned
    must be verified.
    """
    point = integers(seed, WEIGHTS, product.parameter_count, p)
    moved, factors = slopes(product, fields, point, p), np.zeros((len(fields), 0), dtype=np.int64)
    if motions:
        by_motions = slopes(product, motions, point, p)
        pivots = list(echelon_mod(by_motions, p)[1])
        if len(pivots) < len(motions):
            return None
        square = np.concatenate([by_motions[:, pivots], np.eye(len(pivots), dtype=np.int64)], axis=1)
        inverse = echelon_mod(square, p)[0][:, len(pivots) :]
        factors = product_mod(-moved[:, pivots] % p, inverse, p)
        moved = (moved + product_mod(factors, by_motions, p)) % p
    if moved.any():
        return None
    combined = []
    for field, row in zip(fields, factors, strict=True):
        lifted = small_integers([1, *row], p)
        if lifted is None:
            return None
        terms = [(i, lifted[0] * c, m) for i, c, m in field.terms]
        pairs = zip(lifted[1:], motions, strict=True)
        combined.append(VectorField((*terms, *((i, f * c, m) for f, e in pairs if f for i, c, m in e.terms))))
    return combined


def entries_read(function: Program, *, p: int, seed: int) -> frozenset[int]:
    """Return the flat weights on which a function depends at a random point modulo p."""
    point = integers(seed, WEIGHTS, function.parameter_count, p)[None, :]
    return frozenset(np.flatnonzero(jacobian_at(function, p, point, point[:, :0])[0].any(axis=0)).tolist())


def first_moving(program: Program, function: Program, *, p: int, seed: int) -> tuple[str, VectorField] | None:
    """Return the text and a field of a symmetry by structure that moves the function at a random point modulo p, or None."""
    point = integers(seed, WEIGHTS, program.parameter_count, p)
    symmetries = structure(program)
    for family in symmetries.families:
        for field in _some_fields(family):
            if moves(function, field, point, p):
                return family.text, field
    for field in symmetries.translations():
        if moves(function, field, point, p):
            return "weights that the network does not use", field
    return None


def _some_fields(family: Family, most: int = 64) -> Iterator[VectorField]:
    """List the first fields of a family."""
    for _, field in zip(range(most), family.fields(), strict=False):
        yield field


def moves(function: Program, field: VectorField, point: Integers, p: int) -> bool:
    """Return whether a function of all weights has a derivative along a field at a point modulo p that is not zero."""
    return bool(slopes(function, [field], point, p).any())


def slopes(function: Program, fields: Sequence[VectorField], point: Integers, p: int) -> Integers:
    """Return the derivatives of a function of all weights along fields at a point modulo p: one row for each field."""
    arithmetic = PrimeFieldArithmetic(field_of(p))
    output = function.outputs[0][1]
    rows = [np.zeros((0, function.instructions[output].size), dtype=np.int64)]
    for start in range(0, len(fields), _FIELDS_AT_ONCE):
        several = [field.at(point, p) for field in fields[start : start + _FIELDS_AT_ONCE]]
        nothing = np.zeros((len(several), 0), dtype=np.int64)
        repeated = np.repeat(point[None, :] % p, len(several), axis=0)
        arrays = arrays_at(function, repeated, nothing, arithmetic)
        directions = arrays_at(function, np.stack(several), nothing, arithmetic)
        values = evaluate(function, arithmetic, arrays)
        slope = tangents(function, arithmetic, values, directions)[output]
        zero = np.zeros((len(several), rows[0].shape[1]), dtype=np.int64)
        rows.append(zero if slope is None else flat_values(slope, len(several), arithmetic))
    return np.concatenate(rows)


def finite_move(field: VectorField, weights: Sequence[int]) -> list[Fraction] | None:
    """Move flat weights by an element of the group that a field generates; None if that is not rational.

    A scaling multiplies by powers of two; a field that moves no weight by which others move is added once.

    >>> finite_move(VectorField(((0, 1, (0,)), (1, -2, (1,)))), [3, 4])
    [Fraction(6, 1), Fraction(1, 1)]
    """
    moved = [Fraction(w) for w in weights]
    if all(monomial == (i,) for i, _, monomial in field.terms):
        for i, c, _ in field.terms:
            moved[i] *= Fraction(2) ** c
        return moved
    if {i for i, _, _ in field.terms} & {j for _, _, monomial in field.terms for j in monomial}:
        return None
    for i, c, monomial in field.terms:
        moved[i] += c * prod(weights[j] for j in monomial)
    return moved


# -- products of neighbouring weights ------------------------------------------------------------------------


def neighbouring_products(program: Program) -> dict[str, Program]:
    """Return the products of two matrices along an index on which a symmetry acts oppositely, by their names.

    >>> from m2bridge.families import parse_spec
    >>> list(neighbouring_products(parse_spec("lightning(d=3,dp=3,a=2,t=3)").program))
    ['Q.T @ K']
    >>> list(neighbouring_products(parse_spec("attention(d=[3,3],a=2,t=2,heads=2,softmax=true)").program))
    ['Q1.T @ K1 for each head']
    """
    products: dict[str, Program] = {}
    axes = {name: len(program.instructions[k].shape) for name, k in program.weights.items()}
    for group in structure(program).groups:
        matrices = [
            action
            for action in group.actions
            if _is_matrix(action, axes[action.tensor.weight], group.kind == "torus")
        ]
        for first, second in combinations(matrices, 2):
            if first.label * second.label < 0 and first.tensor is not second.tensor:
                ends = [_axis(action) == axes[action.tensor.weight] - 1 for action in (first, second)]
                pair, last = ((second, first), ends[::-1]) if ends[1] else ((first, second), ends)
                products.setdefault(_product_name(*pair, *last), _product(program, *pair))
    return products


def _axis(action: Action) -> int:
    """Return the axis of the weight along which the group acts."""
    return action.tensor.axes[action.index[0]][0]


def _is_matrix(action: Action, axes: int, whole: bool) -> bool:
    """Return whether a group acts along an axis (if `whole`, not a factor of one) of a matrix, or of some rows or columns.

    The weight has this number of axes; the first of three numbers copies (heads), each a matrix.
    """
    copies = {action.tensor.axes[position][0] for position in action.copies}
    if {axis for axis, _ in action.tensor.axes} != set(range(axes)) or len(action.index) != 1:
        return False
    if axes != 2 and (axes != 3 or copies != {0}):
        return False
    return not whole or not action.tensor.axes[action.index[0]][1]


def _product_name(left: Action, right: Action, left_last: bool, right_last: bool) -> str:
    """Name the product; each side is transposed unless the group acts on the last axis of the left or the first of the right."""
    first = left.name if left_last else f"{left.name}.T"
    second = f"{right.name}.T" if right_last else right.name
    return f"{first} @ {second}" + (" for each head" if left.copies else "")


def _product(program: Program, left: Action, right: Action) -> Program:
    """Write the product of two weights, with one block for each copy, as a program without inputs."""
    items = {k: item for k, item in enumerate(program.instructions) if item.operation == "weight"}
    count = len(program.instructions)

    def write(operation: str, operands: tuple[int, ...], *constants: Any, shape: Shape = ()) -> int:
        index = count + len(items)
        shapes = tuple(items[k].shape for k in operands)
        items[index] = instruction(operation, constants, operands, shapes, shape)
        return index

    sides, words = [], []
    for number, action in enumerate((left, right)):
        tensor = action.tensor
        index = write("reshape", (program.weights[tensor.weight],), shape=tensor.factors)
        index = write("slice", (index,), *((start, n, 1) for start, n in tensor.box))
        sides.append(write("reshape", (index,), shape=tensor.shape))
        words.append(_product_letters(action, number))
    order = dict(zip(dict.fromkeys([*words[0], *words[1]]), LETTERS, strict=False))
    terms = tuple("".join(order[a] for a in word) for word in words)
    copies = [a for a in words[0] if a.isdigit()]
    rests = [[a for a in word if a.isupper()] for word in words]
    result = "".join(order[a] for a in (*copies, *rests[0], *rests[1]))
    product = write("einsum", tuple(sides), terms, result)
    sizes = dict(zip([*words[0], *words[1]], [*left.tensor.shape, *right.tensor.shape], strict=True))
    blocks = prod(sizes[a] for a in copies)
    shape = (*([blocks] if copies else []), *(prod(sizes[a] for a in rest) for rest in rests))
    output = write("reshape", (product,), shape=shape)
    return arranged(items, [("function", output)])[0]


def _product_letters(action: Action, number: int) -> list[str]:
    """Name the axes of one side: digits for copies, "i" for the index that is summed over, capitals for the others."""
    names = iter("ABCDEFGHKLMNPQRST"[8 * number :])
    letters = []
    for axis in range(len(action.tensor.shape)):
        if axis in action.copies:
            letters.append(str(action.copies.index(axis)))
        else:
            letters.append("i" if axis in action.index else next(names))
    return letters
