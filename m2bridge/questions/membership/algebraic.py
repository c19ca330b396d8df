"""Points over a number field QQ[u]/(m): checked exactly by the network's program, real ones enclosed in intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import flint
import numpy as np

from m2bridge.models import Model
from m2bridge.programs.arithmetics import object_array

_BITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgebraicPoint:
    """Weights as polynomials in u modulo `modulus`; coefficients from the constant term up, as texts of fractions."""

    modulus: tuple[str, ...]
    variables: tuple[tuple[str, ...], ...]

    @property
    def rational(self) -> tuple[Fraction, ...] | None:
        """The weights, when the field is QQ."""
        return tuple(Fraction(v[0]) for v in self.variables) if len(self.modulus) == 2 else None

    def maps_to(self, model: Model, values: Sequence[Fraction]) -> bool:
        """Whether the model's program gives these values at the point, exactly in QQ[u]/(m); constraints of a map included."""
        m = _polynomial(self.modulus)
        flat = object_array([_polynomial(v) for v in self.variables], (len(self.variables),))
        weights = model.unflatten(flat)
        image = np.asarray(model.coordinates(weights), dtype=object).ravel().tolist()
        equations = getattr(model, "equations", None) if getattr(model, "constraints", ()) else None
        zeros = (
            [] if equations is None else np.asarray(equations(weights["x"]), dtype=object).ravel().tolist()
        )
        wanted = [*values, *([Fraction(0)] * len(zeros))]
        return all(_is_zero(f, v, m) for f, v in zip([*image, *zeros], wanted, strict=True))

    def real_roots(self) -> list[flint.arb]:
        """Enclosures of the real roots of the modulus, isolated from all others."""
        before, flint.ctx.prec = flint.ctx.prec, _BITS
        try:
            return [root.real for root, _ in self._integral().complex_roots() if root.imag == 0]
        finally:
            flint.ctx.prec = before

    def sturm_count(self) -> int:
        """The number of real roots once more, by Sturm's theorem in SymPy."""
        import sympy

        coefficients = [int(c) for c in self._integral().coeffs()][::-1]
        return int(sympy.Poly(coefficients, sympy.Symbol("u")).count_roots())

    def intervals(self, root: flint.arb) -> list[list[str]]:
        """For each weight an interval of fractions that contains its value at the root, as texts."""
        before, flint.ctx.prec = flint.ctx.prec, _BITS
        try:
            values = [flint.arb_poly([flint.arb(_fmpq(c)) for c in v])(root) for v in self.variables]
            return [[_fraction(v.lower()), _fraction(v.upper())] for v in values]
        finally:
            flint.ctx.prec = before

    def _integral(self) -> Any:
        scale = lcm(*(Fraction(c).denominator for c in self.modulus))
        return flint.fmpz_poly([int(Fraction(c) * scale) for c in self.modulus])


def _fmpq(text: str) -> Any:
    value = Fraction(text)
    return flint.fmpq(value.numerator, value.denominator)


def _polynomial(coefficients: Sequence[str]) -> Any:
    return flint.fmpq_poly([_fmpq(c) for c in coefficients])


def _is_zero(found: Any, wanted: Fraction, modulus: Any) -> bool:
    difference = flint.fmpq_poly([0]) + found - flint.fmpq(wanted.numerator, wanted.denominator)
    return bool(difference % modulus == 0)


def _fraction(ball: Any) -> str:
    """The text of the fraction that an exact ball is."""
    mantissa, exponent = ball.mid().man_exp()
    return str(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
