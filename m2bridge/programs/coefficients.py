"""The coordinates of a network: coefficients of its outputs as polynomials in its inputs, over any arithmetic.

Polynomials in the inputs are one more arithmetic in which programs are interpreted (:class:`InputPolynomials`): an array of
them is a table of coefficient arrays (:class:`Form`). Sums and linear instructions pass through, products collect monomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any, NoReturn

import numpy as np

from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.programs.arithmetics import Arithmetic, Array
from m2bridge.programs.instructions import Shape, flat_parts
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate, flat_outputs, tangents


@dataclass(frozen=True, slots=True)
class Form:
    """An array of polynomials in the inputs: `coefficients[k]` is the array of coefficients of the monomial `exponents[k]`."""

    exponents: np.ndarray
    coefficients: Array

    @property
    def shape(self) -> Shape:
        return tuple(self.coefficients.shape[1:])

    def like(self, coefficients: Array) -> Form:
        return Form(self.exponents, coefficients)

    def reshape(self, shape: Shape) -> Form:
        return self.like(self.coefficients.reshape((len(self.exponents), *shape)))

    def transpose(self, *axes: int) -> Form:
        return self.like(self.coefficients.transpose(0, *(axis + 1 for axis in axes)))

    def __getitem__(self, key: Any) -> Form:
        """Return some of the polynomials, without monomials that do not occur in them."""
        chosen = self.coefficients[(slice(None), *(key if isinstance(key, tuple) else (key,)))]
        kept = _nonzero(chosen)
        kept[:1] |= not kept.any()  # zero has a monomial too
        return Form(self.exponents[kept], chosen[kept])


def _nonzero(coefficients: Array) -> np.ndarray:
    """Return of which monomials some coefficient is not zero."""
    occurring: np.ndarray = coefficients.astype(bool).any(axis=tuple(range(1, coefficients.ndim)))
    return occurring


class InputPolynomials(Arithmetic):
    """Polynomials in `variables` variables, with coefficients in another arithmetic.

    An operation with more than `most_products` products of terms is an OutOfReachError, raised before the computation.
    """

    def __init__(self, over: Arithmetic, variables: int, most_products: int | None = None) -> None:
        self.over, self.variables, self.most_products, self.spent = over, variables, most_products, 0

    def lift(self, array: Array) -> Form:
        """Convert an array of the coefficients' arithmetic to constant polynomials."""
        return Form(np.zeros((1, self.variables), dtype=np.int64), array[None])

    def generic(self, shape: Shape, start: int) -> Form:
        """Variables from number `start` on; those of a matrix column by column, so that the first token comes first."""
        count = prod(shape)
        unit = np.eye(count, dtype=np.int64).reshape(count, *reversed(shape))
        exponents = np.zeros((count, self.variables), dtype=np.int64)
        exponents[np.arange(count), start + np.arange(count)] = 1
        return Form(exponents, self.over.integers(unit.transpose(0, *range(len(shape), 0, -1))))

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Form:
        return self.lift(self.over.constant(values, shape))

    def integers(self, array: Any) -> Form:
        return self.lift(self.over.integers(array))

    def zeros(self, shape: Shape) -> Form:
        return Form(np.zeros((0, self.variables), dtype=np.int64), self.over.zeros((0, *shape)))

    def scale(self, factor: Fraction, array: Form) -> Form:
        return array.like(self.over.scale(factor, array.coefficients))

    def sum(self, array: Form, axes: tuple[int, ...]) -> Form:
        return array.like(self.over.sum(array.coefficients, tuple(axis + 1 for axis in axes)))

    def broadcast(self, array: Form, shape: Shape) -> Form:
        return array.like(self.over.broadcast(array.coefficients, (len(array.exponents), *shape)))

    def add(self, left: Form, right: Form) -> Form:
        shape = np.broadcast_shapes(left.shape, right.shape)
        whole, tables = self._together([self.broadcast(left, shape), self.broadcast(right, shape)])
        return Form(whole, self.over.add(*tables))

    def concatenate(self, arrays: Sequence[Form], axis: int) -> Form:
        whole, tables = self._together(arrays)
        return Form(whole, self.over.concatenate(tables, axis))

    def _together(self, forms: Sequence[Form]) -> tuple[np.ndarray, list[Array]]:
        """Return the monomials of all forms, and the coefficients of each form for these monomials."""
        self._spend(sum(form.coefficients.size for form in forms))
        whole, positions = _distinct(np.concatenate([form.exponents for form in forms]))
        tables, start = [], 0
        for form in forms:
            table, stop = self.over.zeros((len(whole), *form.shape)), start + len(form.exponents)
            table[positions[start:stop]] = form.coefficients
            tables.append(table)
            start = stop
        return whole, tables

    def _spend(self, terms: int) -> None:
        """Count the terms of an instruction; raise OutOfReachError if they, or all terms so far, are too many."""
        self.spent += terms
        if self.most_products is not None and max(terms, self.spent // 4) > self.most_products:
            raise OutOfReachError(
                f"sums and products of coefficients have {self.spent} terms, more than {self.most_products} at once or four "
                "times as many in all",
                estimate=self.spent,
            )

    def multiply(self, left: Form, right: Form) -> Form:
        return self._product(self.over.multiply, left, right)

    def matmul(self, left: Form, right: Form) -> Form:
        return self._product(self.over.matmul, left, right)

    def _product(self, product: Callable[[Array, Array], Array], left: Form, right: Form) -> Form:
        """Multiply two forms, one monomial of the smaller factor at a time: its products are distinct monomials."""
        flipped = len(left.exponents) > len(right.exponents)
        small, large = (right, left) if flipped else (left, right)
        needed = len(small.exponents) * len(large.exponents) * max(prod(left.shape), prod(right.shape))
        self._spend(needed)
        sums = small.exponents[:, None, :] + large.exponents[None, :, :]
        whole, positions = _distinct(sums.reshape(-1, self.variables))
        total: Array = None
        for k, rows in enumerate(positions.reshape(len(small.exponents), -1)):
            factor = small.coefficients[k, ...]  # an array also where it is a single number
            products = product(large.coefficients, factor) if flipped else product(factor, large.coefficients)
            if total is None:
                total = self.over.zeros((len(whole), *products.shape[1:]))
            total[rows] = self.over.add(total[rows], products)
        return Form(whole, total)

    def exp(self, array: Form, axis: int = 0) -> NoReturn:
        raise NotPolynomialError(
            "a network with exponentials, divisions or square roots in it has no coefficients"
        )

    reciprocal = softmax = sqrt = exp


def _distinct(exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct monomials, and the position of each given monomial among them."""
    if exponents.shape[1] == 0:
        return exponents[:1], np.zeros(len(exponents), dtype=np.int64)
    factors = np.random.default_rng(0).integers(2**62, size=exponents.shape[1])
    _, first, positions = np.unique(exponents @ factors, return_index=True, return_inverse=True)
    if not np.array_equal(
        exponents[first][positions], exponents
    ):  # two monomials with one number, modulo 2^64
        monomials, positions = np.unique(exponents, axis=0, return_inverse=True)
        return monomials, positions.reshape(-1)
    return exponents[first], positions


def monomials(variables: int, degree: int) -> np.ndarray:
    """Return the exponents of all monomials of one degree, in descending lexicographic order.

    >>> monomials(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    chosen = combinations_with_replacement(range(variables), degree)
    rows = [np.bincount(np.array(factors, dtype=np.int64), minlength=variables) for factors in chosen]
    return np.array(rows, dtype=np.int64).reshape(len(rows), variables)


def output_form(
    program: Program,
    over: Arithmetic,
    weights: Mapping[str, Lettered],
    sizes: Mapping[str, int],
    directions: Mapping[str, Lettered] | None = None,
    *,
    most_products: int | None = None,
) -> Form:
    """Return all outputs, or their derivatives in `directions`, as one vector of polynomials in the input entries.

    The leading axes have the lengths `sizes`. An instruction that would multiply more than `most_products` coefficients is
    an OutOfReachError.
    """
    polynomials = InputPolynomials(over, program.input_count, most_products)
    arrays = {name: Lettered(value.lead, polynomials.lift(value.array)) for name, value in weights.items()}
    for name, shape, entries in flat_parts(program.input_shapes):
        arrays[name] = Lettered("", polynomials.generic(shape, entries.start))
    values = evaluate(program, polynomials, arrays)
    results: Sequence[Lettered | None] = values
    if directions is not None:
        moves = {name: Lettered(move.lead, polynomials.lift(move.array)) for name, move in directions.items()}
        results = tangents(program, polynomials, values, moves)
    form: Form = flat_outputs(program, polynomials, results, sizes)
    return form


def coefficient_table(over: Arithmetic, form: Form, exponents: np.ndarray) -> Array:
    """Return the coefficients of the given monomials, for each entry of the last axis, monomial by monomial.

    The given monomials include those that occur in the form.
    """
    row = {monomial.tobytes(): i for i, monomial in enumerate(np.ascontiguousarray(exponents))}
    table = over.zeros((len(exponents), *form.shape))
    occur = _nonzero(form.coefficients)  # a form that is zero at these weights has some monomial all the same
    monomials = np.ascontiguousarray(form.exponents[occur])
    table[[row[monomial.tobytes()] for monomial in monomials]] = form.coefficients[occur]
    last = (*form.shape[:-1], form.shape[-1] * len(exponents))
    return table.transpose(*range(1, len(last) + 1), 0).reshape(last)


def support(form: Form) -> np.ndarray:
    """Return the monomials that occur in a form, by degree, then in descending lexicographic order."""
    ordered = sorted(form.exponents.tolist(), key=lambda m: (sum(m), [-e for e in m]))
    return np.array(ordered, dtype=np.int64).reshape(form.exponents.shape)
