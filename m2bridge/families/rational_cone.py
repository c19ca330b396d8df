"""Convert rational maps to polynomial ones: the cone over the image, and the coordinates as fractions.

Let f be a rational map and Q a common denominator. The closure of the image of the polynomial map (l, x) -> (l Q f, l Q) is the
cone over the closure of the image of f: its points with last coordinate 1 are the latter, and its dimension is larger by one. A
symmetry of this map fixes l Q and l Q f, hence also f.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mpoly

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.families.base import Model
from m2bridge.families.polynomial_map import PolynomialMap, RationalMap
from m2bridge.families.symbolic import sparse, symbolic_weights
from m2bridge.frontends.rational_functions import Quotient, cleared, lowest_terms

_MOST_CONE_WEIGHTS = 400  # weights of a rational map whose cone is written as polynomials


def is_rational_map(model: Model) -> bool:
    """Return whether the coordinates are rational functions of the weights, and at least one of them has a denominator."""
    return not model.polynomial and model.program.rational and not model.program.inputs


def symbolic_fractions(model: Model) -> tuple[Quotient, ...]:
    """Return the coordinates as fractions in the flat weights.

    >>> from m2bridge.families import from_callable, from_text
    >>> inverse = from_callable(lambda w: 1 / w, {"w": (2,)})
    >>> symbolic_fractions(inverse) == from_text("", ["a", "b"], ["1/a", "1/b"]).fractions
    True
    """
    if isinstance(model, RationalMap):
        return model.fractions
    if model.parameter_count > _MOST_CONE_WEIGHTS:
        raise OutOfReachError(
            f"{model} has {model.parameter_count} weights, too many to expand", estimate=model.parameter_count
        )
    weights, _ = symbolic_weights(model)
    fractions = {
        name: np.vectorize(lambda w: _Fraction(w, w * 0 + 1), otypes=[object])(array)
        for name, array in weights.items()
    }
    zero = next(iter(fractions.values())).reshape(-1)[0] * 0
    entries = [zero + entry for entry in np.asarray(model.coordinates(fractions)).reshape(-1)]
    return tuple(lowest_terms(sparse(entry.numerator), sparse(entry.denominator)) for entry in entries)


def cone_map(model: Model) -> PolynomialMap:
    """Return the polynomial map onto the cone over the image of a rational map; the last coordinate is that of the cone.

    >>> from m2bridge.families import from_text
    >>> cone_map(from_text("", ["t"], ["1/t", "t"])).spec
    'map:w0,w1->w1;w0^2*w1;w0*w1'
    """
    polynomials = cleared(symbolic_fractions(model))
    scaled = tuple(tuple(((*exponents, 1), c) for exponents, c in f) for f in polynomials)
    names = tuple(f"w{i}" for i in range(model.parameter_count + 1))
    return PolynomialMap(name=f"cone over {model}", variables=names, polynomials=scaled)


class _Fraction:
    """A quotient of polynomials over QQ, in lowest terms."""

    def __init__(self, numerator: fmpq_mpoly, denominator: fmpq_mpoly) -> None:
        common = numerator.gcd(denominator) if numerator != 0 else denominator
        self.numerator = numerator / common
        self.denominator = denominator / common

    def _converted(self, value: Any) -> _Fraction:
        if isinstance(value, _Fraction):
            return value
        number = fmpq(value.numerator, value.denominator) if isinstance(value, Fraction) else value
        one = self.denominator * 0 + 1
        return _Fraction(one * number, one)

    def __add__(self, other: Any) -> _Fraction:
        right = self._converted(other)
        return _Fraction(
            self.numerator * right.denominator + right.numerator * self.denominator,
            self.denominator * right.denominator,
        )

    def __mul__(self, other: Any) -> _Fraction:
        right = self._converted(other)
        return _Fraction(self.numerator * right.numerator, self.denominator * right.denominator)

    def __rtruediv__(self, other: Any) -> _Fraction:
        if self.numerator == 0:
            raise InputError("a division by zero: a denominator is identically 0")
        return self._converted(other) * _Fraction(self.denominator, self.numerator)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> _Fraction:
        return self * -1
