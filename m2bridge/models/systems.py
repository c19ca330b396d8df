"""Models stage: lists of sparse polynomials, evaluated and differentiated at many points at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models.arrays import Mod, lift, object_array, zeros
from m2bridge.models.jets import Jet
from m2bridge.models.polynomials import Polynomial, derivative

_MOST_DENSE = 20_000_000


def residue(value: int | Fraction, p: int) -> int:
    """A rational number modulo p; InputError when p divides the denominator."""
    if isinstance(value, Fraction):
        if value.denominator % p == 0:
            raise InputError(f"the coefficient {value} does not exist modulo {p}; choose another prime")
        return value.numerator * pow(value.denominator, -1, p) % p
    return int(value) % p


class PolynomialSystem:
    """Polynomials f_1, ..., f_m in n variables over QQ.

    Examples
    --------
    >>> system = PolynomialSystem([{(2, 0): 1, (0, 1): -3}, {(1, 1): 2}], 2)
    >>> system(Mod([[1, 2], [5, 3]], 101)).values.tolist()
    [[96, 4], [16, 30]]
    >>> system.jacobian(Mod([1, 2], 101)).values.tolist()
    [[2, 98], [4, 2]]
    """

    def __init__(self, polynomials: Sequence[Polynomial], variables: int) -> None:
        self.polynomials = tuple(polynomials)
        self.variables = variables
        place: dict[tuple[int, ...], int] = {}
        rows, columns, values = [], [], []
        for row, polynomial in enumerate(self.polynomials):
            for exponents, coefficient in polynomial.items():
                columns.append(place.setdefault(exponents, len(place)))
                rows.append(row)
                values.append(coefficient)
        self.exponents = np.array(list(place), dtype=np.int64).reshape(len(place), variables)
        self._rows, self._columns, self._values = rows, columns, values

    def __len__(self) -> int:
        return len(self.polynomials)

    def __call__(self, points: Any) -> Any:
        """Values at points, over any arithmetic: the last axis of `points` has length n, of the result
        length m.
        """
        if not self._values:
            return zeros((*points.shape[:-1], len(self)), points)
        monomials = self._monomials(points)
        if isinstance(points, Mod):
            return self._combine(monomials, points.p)
        return self._combine_any(monomials, points)

    def _monomials(self, points: Any) -> Any:
        """Values of the monomials, last axis over them; one variable at a time, where it occurs."""
        batch = points.shape[:-1]
        result = lift(np.ones((*batch, len(self.exponents)), dtype=np.int64), points)
        for variable in range(self.variables):
            degrees = self.exponents[:, variable]
            top = int(degrees.max(initial=0))
            if top == 0:
                continue
            base = points[..., variable : variable + 1]
            powers = [lift(np.ones((*batch, 1), dtype=np.int64), points), base]
            while len(powers) <= top:
                powers.append(powers[-1] * base)
            table = np.concatenate(powers, axis=-1)
            where = np.flatnonzero(degrees)
            result[..., where] = result[..., where] * table[..., degrees[where]]
        return result

    def _combine(self, monomials: Mod, p: int) -> Mod:
        coefficients = np.array([residue(value, p) for value in self._values], dtype=np.int64)
        if len(self.exponents) * len(self) <= _MOST_DENSE:
            matrix = np.zeros((len(self.exponents), len(self)), dtype=np.int64)
            matrix[self._columns, self._rows] = coefficients
            return monomials @ Mod(matrix, p)  # type: ignore[no-any-return]
        terms = monomials[..., np.array(self._columns)] * Mod(coefficients, p)
        total = np.zeros((len(self), *monomials.shape[:-1]), dtype=np.int64)
        np.add.at(total, np.array(self._rows), np.moveaxis(terms.values, -1, 0))
        return Mod(np.moveaxis(total, 0, -1), p)

    def _combine_any(self, monomials: Any, points: Any) -> Any:
        total = zeros((*points.shape[:-1], len(self)), points)
        for row, column, value in zip(self._rows, self._columns, self._values, strict=True):
            term = scaled(monomials[..., column : column + 1], value)
            total[..., row : row + 1] = total[..., row : row + 1] + term
        return total

    @cached_property
    def derivatives(self) -> PolynomialSystem:
        """All partial derivatives, polynomial by polynomial, then variable by variable."""
        parts = [derivative(f, v) for f in self.polynomials for v in range(self.variables)]
        return PolynomialSystem(parts, self.variables)

    def jacobian(self, points: Any) -> Any:
        """The matrix of partial derivatives: the last two axes have lengths m and n."""
        flat = self.derivatives(points)
        return flat.reshape(*points.shape[:-1], len(self), self.variables)

    def homogeneous_gradings(self) -> np.ndarray:
        """A basis of the integer weights of the variables for which every polynomial is homogeneous, as
        rows.
        """
        from flint import fmpz_mat

        differences = []
        for polynomial in self.polynomials:
            first, *others = list(polynomial) or [(0,) * self.variables]
            differences += [[b - a for a, b in zip(first, other, strict=True)] for other in others]
        if not differences:
            return np.eye(self.variables, dtype=np.int64)
        kernel, rank = fmpz_mat(differences).nullspace()
        columns = [[int(kernel[i, j]) for i in range(self.variables)] for j in range(rank)]
        rows = [[v // np.gcd.reduce(column) for v in column] for column in columns]
        return np.array(rows, dtype=np.int64).reshape(rank, self.variables)


def scaled(array: Any, value: int | Fraction) -> Any:
    """An array times a rational number, in the array's arithmetic."""
    if isinstance(array, Mod):
        return array * residue(value, array.p)
    if isinstance(array, np.ndarray):
        if array.dtype == object:
            from flint import fmpq

            factor = fmpq(value.numerator, value.denominator) if isinstance(value, Fraction) else value
            entries = [e * (value if isinstance(e, (int, Fraction)) else factor) for e in array.reshape(-1)]
            return object_array(entries, array.shape)
        return array * float(value)
    if isinstance(value, int):
        return array * value
    if isinstance(array, Jet):
        return Jet(scaled(array.value, value), scaled(array.tangents, value))
    own: Any = array.scaled
    return own(value)
