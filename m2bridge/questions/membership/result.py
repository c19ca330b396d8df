"""The result of the question `membership`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import eq
from typing import Any, ClassVar

from m2bridge.evidence import Value
from m2bridge.limits import limit_advice
from m2bridge.questions.membership.points import AlgebraicPoint
from m2bridge.results import Result, register_result
from m2bridge.views import View, shorten

_FORMS_IN_A_VECTOR = re.compile(r"linear\(.*\)|(mlp|convolution)\(.*,r=\d+\)")
"""Canonical specs of the families that the checker knows as networks with one vector as input."""
_WORDS = {True: "yes", False: "no", None: "not decided"}


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMembership(Result):
    """Whether a point lies in the Zariski closure, in the complex image and in the real image of a model.

    Attributes
    ----------
    point: the coordinates asked for, or the outputs at the given inputs.
    closure, complex_image, real_image: true, false, or null where that was not decided.
    weights: real weights of `parametrization`, each flattened: exact numbers, or pairs of an interval's ends.
    algebraic: the same, or complex weights where there are no real ones, over QQ[u]/(m), when the field is not QQ.
    fiber_dim, fiber_degree: of the complex fiber, -1 and 0 when it is empty.
    failing_equation: an equation of the closure that the point violates, and its value there.
    reasons: what each answer rests on, in sentences.
    certificate: exact weights, or the equation that fails, for `m2bridge check`; empty where there is none.
    """

    ANALYSIS: ClassVar[str] = "membership"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("closure", "complex_image", "real_image")

    point: tuple[Fraction, ...]
    closure: bool | None
    complex_image: bool | None
    real_image: bool | None
    parametrization: str
    weights: Mapping[str, Any] | None
    algebraic: AlgebraicPoint | None
    fiber_dim: int | None
    fiber_degree: int | None
    failing_equation: tuple[str, Fraction] | None
    reasons: tuple[str, ...]
    certificate: tuple[Mapping[str, Value], ...] = ()

    def certified(self) -> frozenset[str]:
        """Return all three if the certificate numbers coordinates as the record does: those of a map, or of forms in a vector."""
        alike = all(_same_coordinates(document, self.point) for document in self.certificate)
        return frozenset(self.HEADLINE if self.certificate and alike else ())

    def view(self) -> View:
        held = [
            ("closure", self.closure),
            ("complex image", self.complex_image),
            ("real image", self.real_image),
        ]
        facts = [("point", shorten(", ".join(map(str, self.point)), 100))]
        if self.fiber_dim is not None:
            size = (
                "empty" if self.fiber_dim < 0 else f"dimension {self.fiber_dim}, degree {self.fiber_degree}"
            )
            facts.append(("complex fiber", size))
        facts += [(name, shorten(_shown(value), 100)) for name, value in (self.weights or {}).items()]
        return View(
            answer=", ".join(f"in the {name}: {_WORDS[value]}" for name, value in held),
            decided=any(value is not None for _, value in held),
            facts=tuple(facts),
            notes=tuple(f"+ {reason}" for reason in self.reasons),
            to_prove=limit_advice(self.limit, "complete equations of the closure over QQ"),
        )


def _same_coordinates(certificate: Mapping[str, Any], point: Sequence[Fraction]) -> bool:
    """Return whether a certificate states this point, coordinate by coordinate, for a checker that supports the spec.

    The checker compares the coefficients of a function only where it is a plain network with a vector as its input: those of a
    matrix, be it of one column, of a network with biases and of an own function it may number in another way.
    """
    stated, spec = certificate["statement"]["point"], certificate["spec"]
    same = len(stated) == len(point) and all(map(eq, map(Fraction, stated), point))
    takes_inputs = re.search(r"^%\d+ = input ", certificate["program"], re.MULTILINE)
    return same and (not takes_inputs or bool(spec and _FORMS_IN_A_VECTOR.fullmatch(spec)))


def _shown(values: Any) -> str:
    if values and isinstance(values[0], (tuple, list)):
        ends = [(Fraction(a), Fraction(b)) for a, b in values]
        return ", ".join(f"{float((a + b) / 2):.12g} ± {float((b - a) / 2):.1g}" for a, b in ends)
    return ", ".join(map(str, values))
