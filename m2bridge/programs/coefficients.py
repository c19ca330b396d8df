"""The coordinates of a network: coefficients of its outputs as polynomials in its inputs, over any arithmetic.

Every value is a polynomial in the input entries with arrays as coefficients (:class:`Form`). The rules are those of
:func:`m2bridge.programs.run.apply` on coefficients: linear instructions pass through, products collect monomials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.programs import lettered
from m2bridge.programs.arithmetics import Array, Floats
from m2bridge.programs.lettered import Lettered
from m2bridge.programs.program import ANALYTIC, Instruction, Program
from m2bridge.programs.run import LINEAR, apply, linear

_MULTIPLY = Instruction("multiply", (), (0, 1), ())


@dataclass(frozen=True, slots=True)
class Form:
    """A polynomial in the inputs: one row of `exponents` and one place on the axis M of `coefficients` for each monomial."""

    exponents: np.ndarray
    coefficients: Lettered


def monomials(variables: int, degree: int) -> np.ndarray:
    """Exponents of all monomials of one degree, in descending lexicographic order.

    >>> monomials(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    chosen = list(combinations_with_replacement(range(variables), degree))
    exponents = np.zeros((len(chosen), variables), dtype=np.int64)
    for row, factors in enumerate(chosen):
        for variable in factors:
            exponents[row, variable] += 1
    return exponents


def input_count(program: Program) -> int:
    """Number of input entries, which are the variables of the coordinates."""
    return sum(prod(shape) for shape in program.input_shapes.values())


def output_forms(
    program: Program,
    arithmetic: Floats,
    weights: Mapping[str, Lettered],
    directions: Mapping[str, Lettered] | None = None,
) -> tuple[list[Form], list[Form | None]]:
    """The outputs as polynomials in the input entries, and their derivatives in the directions given for weights.

    Entries of inputs are numbered input by input; those of a matrix column by column, so that the first token comes first.
    """
    forms: list[Form] = []
    moves: list[Form | None] = []
    variables, start = input_count(program), 0
    for item in program.instructions:
        move: Form | None = None
        if item.operation == "weight":
            name = str(item.constants[0])
            form = _constant(weights[name], variables)
            if directions is not None and name in directions:
                move = _constant(directions[name], variables)
        elif item.operation == "input":
            form = _generic(arithmetic, item, start, variables)
            start += item.size
        elif item.operation == "constant":
            form = _constant(apply(arithmetic, item, []), variables)
        else:
            operands = [forms[k] for k in item.operands]
            form = _apply(arithmetic, item, operands)
            if directions is not None:
                move = _derivative(arithmetic, item, operands, [moves[k] for k in item.operands])
        forms.append(form)
        moves.append(move)
    return [forms[place] for _, place in program.outputs], [moves[place] for _, place in program.outputs]


def coefficient_table(
    arithmetic: Floats,
    forms: Sequence[Form | None],
    exponents: np.ndarray,
    shapes: Sequence[tuple[int, ...]],
    lead: str,
) -> Lettered:
    """Coefficients of the given monomials, output entry by output entry, monomial by monomial, behind the axes `lead`."""
    row = {monomial.tobytes(): i for i, monomial in enumerate(np.ascontiguousarray(exponents))}
    sizes = {"M": len(exponents)}
    for form in forms:
        if form is not None:
            sizes |= {letter: n for letter, n in form.coefficients.sizes.items() if letter != "M"}
    outer = tuple(sizes.get(letter, 1) for letter in lead)
    parts = []
    for form, shape in zip(forms, shapes, strict=True):
        size = prod(shape)
        table = arithmetic.zeros((len(exponents), *outer, size))
        if form is not None:
            array = lettered.aligned(form.coefficients, "M" + lead, len(shape))
            array = arithmetic.broadcast(
                array.reshape((*array.shape[: 1 + len(lead)], size)), (len(array), *outer, size)
            )
            table[[row[m.tobytes()] for m in np.ascontiguousarray(form.exponents)]] = array
        parts.append(table.transpose(*range(1, len(outer) + 2), 0).reshape((*outer, size * len(exponents))))
    return Lettered(lead, arithmetic.concatenate(parts, -1))


def support(forms: Sequence[Form]) -> np.ndarray:
    """All monomials that occur in the forms, by degree, then in descending lexicographic order."""
    found = {tuple(int(e) for e in row) for form in forms for row in form.exponents}
    ordered = sorted(found, key=lambda m: (sum(m), tuple(-e for e in m)))
    width = forms[0].exponents.shape[1]
    return np.array(ordered, dtype=np.int64).reshape(len(ordered), width)


def _constant(value: Lettered, variables: int) -> Form:
    return Form(np.zeros((1, variables), dtype=np.int64), Lettered("M" + value.lead, value.array[None]))


def _generic(arithmetic: Floats, item: Instruction, start: int, variables: int) -> Form:
    """An input whose entries are variables."""
    count, shape = item.size, item.shape
    unit = np.eye(count, dtype=np.int64).reshape(count, *reversed(shape))
    unit = unit.transpose(0, *range(len(shape), 0, -1))
    exponents = np.zeros((count, variables), dtype=np.int64)
    exponents[np.arange(count), start + np.arange(count)] = 1
    return Form(exponents, Lettered("M", arithmetic.integers(unit)))


def _apply(arithmetic: Floats, item: Instruction, operands: Sequence[Form]) -> Form:
    operation = item.operation
    if operation in ANALYTIC:
        raise NotPolynomialError(f"a network with {operation} in it has no coefficients")
    if operation == "add":
        return _sum(arithmetic, operands, item)
    if operation == "concatenate":
        whole = _support(np.concatenate([form.exponents for form in operands]))[0]
        spread = [_on_support(arithmetic, form, whole) for form in operands]
        return Form(whole, linear(arithmetic, item, spread))
    if operation == "power":
        return _power(arithmetic, operands[0], int(item.constants[0]))
    if operation == "multiply" or len(operands) == 2:
        return _product(arithmetic, item, operands[0], operands[1])
    (form,) = operands
    return Form(form.exponents, linear(arithmetic, item, [form.coefficients]))


def _derivative(
    arithmetic: Floats, item: Instruction, operands: Sequence[Form], moves: Sequence[Form | None]
) -> Form | None:
    if all(move is None for move in moves):
        return None
    operation = item.operation
    if operation == "power":
        n, (form,), (move,) = int(item.constants[0]), operands, moves
        assert move is not None
        lower = form if n == 2 else _power(arithmetic, form, n - 1)
        scaled = Lettered(lower.coefficients.lead, arithmetic.scale(Fraction(n), lower.coefficients.array))
        return _product(arithmetic, _MULTIPLY, Form(lower.exponents, scaled), move)
    if operation == "concatenate":
        zero = [
            move or Form(form.exponents[:1], Lettered("M", arithmetic.zeros((1, *form.coefficients.core))))
            for form, move in zip(operands, moves, strict=True)
        ]
        return _apply(arithmetic, item, zero)
    if operation in LINEAR and len(operands) == 1:
        (move,) = moves
        return None if move is None else _apply(arithmetic, item, [move])
    parts = []
    for k, move in enumerate(moves):
        if move is not None and operation == "add":
            spread = lettered.repeated(arithmetic, move.coefficients, item.shape)
            parts.append(Form(move.exponents, spread))
        elif move is not None:
            pair = [move if place == k else form for place, form in enumerate(operands)]
            parts.append(_product(arithmetic, item, pair[0], pair[1]))
    return parts[0] if len(parts) == 1 else _sum(arithmetic, parts, item)


def _power(arithmetic: Floats, form: Form, exponent: int) -> Form:
    result: Form | None = None
    while exponent:
        if exponent & 1:
            result = form if result is None else _product(arithmetic, _MULTIPLY, result, form)
        exponent >>= 1
        if exponent:
            form = _product(arithmetic, _MULTIPLY, form, form)
    assert result is not None
    return result


def _sum(arithmetic: Floats, forms: Sequence[Form], item: Instruction) -> Form:
    whole = _support(np.concatenate([form.exponents for form in forms]))[0]
    total: Lettered | None = None
    for form in forms:
        part = _on_support(arithmetic, form, whole)
        total = part if total is None else lettered.add(arithmetic, total, part)
    assert total is not None
    return Form(
        whole, lettered.repeated(arithmetic, total, item.shape) if item.shape != total.core else total
    )


def _on_support(arithmetic: Floats, form: Form, whole: np.ndarray) -> Lettered:
    """Coefficients on a larger support."""
    if len(whole) == len(form.exponents):
        return form.coefficients if np.array_equal(whole, form.exponents) else _moved(arithmetic, form, whole)
    return _moved(arithmetic, form, whole)


def _moved(arithmetic: Floats, form: Form, whole: np.ndarray) -> Lettered:
    row = {monomial.tobytes(): i for i, monomial in enumerate(whole)}
    array = lettered.aligned(form.coefficients, _first_m(form.coefficients.lead), len(form.coefficients.core))
    table = arithmetic.zeros((len(whole), *array.shape[1:]))
    table[[row[m.tobytes()] for m in np.ascontiguousarray(form.exponents)]] = array
    return Lettered(_first_m(form.coefficients.lead), table)


def _first_m(lead: str) -> str:
    return "M" + lead.replace("M", "")


def _product(arithmetic: Floats, item: Instruction, left: Form, right: Form) -> Form:
    """A product of two operands: for one monomial of the smaller one, all its products are distinct monomials."""
    flipped = len(left.exponents) > len(right.exponents)
    small, large = (right, left) if flipped else (left, right)
    sums = small.exponents[:, None, :] + large.exponents[None, :, :]
    whole, place = _support(sums.reshape(-1, sums.shape[-1]))
    place = place.reshape(sums.shape[:2])
    lead = _first_m(small.coefficients.lead)
    array = lettered.aligned(small.coefficients, lead, len(small.coefficients.core))
    total: Array = None
    letters = ""
    for i in range(len(small.exponents)):
        one = Lettered(lead[1:], array[i, ...])
        pair = [large.coefficients, one] if flipped else [one, large.coefficients]
        part = apply(arithmetic, item, pair)
        if total is None:
            letters = _first_m(part.lead)

            outer = [part.sizes[letter] for letter in letters[1:]]
            total = arithmetic.zeros((len(whole), *outer, *part.core))
        rows = place[i]
        total[rows] = arithmetic.add(total[rows], lettered.aligned(part, letters, len(part.core)))
    return Form(whole, Lettered(letters, total))


def _support(exponents: np.ndarray) -> tuple[np.ndarray, Any]:
    """Distinct monomials, and where each given one went."""
    if exponents.shape[1] == 0:
        return exponents[:1], np.zeros(len(exponents), dtype=np.int64)
    found, place = np.unique(exponents, axis=0, return_inverse=True)
    return found, place.reshape(-1)
