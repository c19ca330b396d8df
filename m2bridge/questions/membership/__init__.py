"""Is a function in the closure, in the complex image, in the real image of a model? For any polynomial model and an exact point.

The fiber over the point decides. Weights over a number field are checked by the network's program, exactly; an empty fiber comes
with cofactors that are multiplied out here; that a fiber has no real points is shown by points that meet all real components.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Annotated, Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.certificates.points import inside_certificates, outside_certificates
from m2bridge.errors import InputError, LimitError, NotPolynomialError
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.families.rational_cone import is_rational_map
from m2bridge.families.symbolic import rational_variables
from m2bridge.limits import LimitReached
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.instructions import flat_parts
from m2bridge.protocol import Values
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.closure.result import Equation
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.questions.membership.points import (
    REACHED,
    AlgebraicPoint,
    Target,
    fiber_equations,
    least_distance,
    target_of,
)
from m2bridge.questions.membership.result import ImageMembership
from m2bridge.questions.over_q import fmpq, sturm_count
from m2bridge.views import shorten

__all__ = ["ImageMembership", "membership"]

TEMPLATE = "membership"
_SHARE_FOR_POINTS = 1 / 3
"""Of the time left, for the fiber and for its real components; the closure gets what is left then."""
_MOST_COORDINATES_AGAIN = 12
"""Equations are looked for up to this many coordinates where it is known already that the point is not in the closure: 11 s for
lightning(d=2,dp=2), which has 12."""
_CLEAR = 1e-6
"""What an equation's value, beside the sum of its terms' sizes, must exceed before floats can tell the point from the closure."""


def _worth(point: AlgebraicPoint, root: Any) -> int:
    return 0 if root is None else 1 if point.rational is None else 2


@question(
    asks="Whether a function lies in the closure, the complex image and the real image of a model, with weights or a proof.",
    templates=("membership", *closure.templates),
    quantities={
        "closure": "whether the point is in the Zariski closure",
        "complex_image": "whether complex weights give the point",
        "real_image": "whether real weights give the point",
    },
    example="m2bridge membership 'map:s,t->s^2+t^2;s*t' --point 1,1",
    takes_prime=False,
    warm=True,
)
def membership(
    context: Context,
    model: Model,
    *,
    point: Annotated[
        Any,
        Option(
            "Point (required): polynomials in the inputs such as 'x[1]^2 - x[1]*x[2]', one per output, separated by semicolons; "
            "coordinates such as 1,0,-1/2 in the order printed by `describe`; a .json file; or an object with "
            '"inputs" and "outputs", or with "weights".'
        ),
    ] = None,
) -> ImageMembership:
    """Decide whether a point lies in the closure, in the complex image and in the real image of a polynomial model.

    Numbers are integers, Fractions or texts such as "1/3"; floats are refused. A yes comes with weights, a no with its reason.

    >>> answer = membership("map:t->t^2", point=[-1])  # doctest: +SKIP
    >>> answer.complex_image, answer.real_image  # doctest: +SKIP
    (True, False)
    """
    if is_rational_map(model):
        raise NotPolynomialError(
            f"{model} is a rational map; membership requires a polynomial map (`closure` computes equations of rational maps)"
        )
    if not model.polynomial:
        raise NotPolynomialError(
            f"{model} is not polynomial, which membership requires; use a polynomial network"
        )
    if point is None:
        raise InputError("membership requires a point: --point 1,0,-1/2, or a .json file", argument="point")
    target = target_of(model, point)
    context.require_engine()
    return _Search(context, model, target).answer()


class _Search:
    """One point on its way through fiber, real components, closure."""

    def __init__(self, context: Context, network: Model, target: Target) -> None:
        self.context, self.network = context, network
        self.model, self.point, self.of_pairs = target.model, target.point, target.of_pairs
        self.stated_weights = target.weights
        self.reasons: list[str] = []
        self.closure: bool | None = None
        self.complex: bool | None = None
        self.real: bool | None = None
        self.certainty = Certainty.PROVED
        self.best_point: tuple[AlgebraicPoint, Any] | None = None
        self.failing: tuple[str, Fraction] | None = None
        self.far = False
        self.certificate: tuple[Mapping[str, Value], ...] = ()

    def answer(self) -> ImageMembership:
        values, limit = self._fiber(prove=False)
        self._from_points(values)
        if self.real is None and self.stated_weights is not None:
            self._from_points({"points": [(["0", "1"], [[str(w)] for w in self.stated_weights])]})
        if self.complex is None and "fiber_dim" in values:
            self.complex = values["fiber_dim"] >= 0
            word = "not in" if self.complex else "in"
            method = f"1 is {word} the ideal of the fiber over QQ"
            self._add("complex_image", self.complex, "macaulay2", method, Certainty.COMPUTED)
        if self.complex is False:
            self.real = False
            self._from_cofactors(self._fiber(prove=True)[0])
        elif self.complex and self.real is None:
            components, limit = self._fiber(prove=True)
            self._from_points(components)
            if self.real is None and limit is None:
                limit = "the degrees of the points that meet all real components of the fiber are too large"
        if self.best_point is None and self.complex:
            self.reasons.append(
                "complex weights exist: 1 is not in the ideal of the fiber (Hilbert's Nullstellensatz)"
            )
        if self.complex:
            self.closure = True
            evidence = [e for e in self.context.evidence if e.quantity == "complex_image"]
            self.context.add_evidence(
                *(replace(e, quantity="closure", method=f"in the image: {e.method}") for e in evidence)
            )
        else:
            with self.context.keep_partial("equations of the closure"):
                self._from_closure(closed=bool(values.get("closed")))
        with suppress(LimitReached):
            self.context.clock.check()
            self._numeric()
        algebraic = self.best_point[0] if self.best_point else None
        exact = algebraic.rational if algebraic else None
        if exact is not None and not self.of_pairs:
            self.certificate = inside_certificates(self.network, self.model, exact, seed=self.context.seed)
        return self.context.build_result(
            ImageMembership, model=self.network.spec, options={"point": [str(c) for c in self.point]},
            point=self.point, closure=self.closure, complex_image=self.complex, real_image=self.real,
            parametrization=self.model.spec, weights=self._weights(), algebraic=algebraic if exact is None else None,
            fiber_dim=values.get("fiber_dim"), fiber_degree=values.get("fiber_degree"),
            failing_equation=self.failing, reasons=tuple(self.reasons), certainty=self.certainty, certificate=self.certificate,
            limit=limit if None in (self.closure, self.complex, self.real) else None,
        )  # fmt: skip

    def _add(
        self, quantity: str, value: Value, witness: str, method: str, sure: Certainty = Certainty.PROVED
    ) -> None:
        self.context.add_evidence(Evidence(quantity, value, witness, method, certainty=sure))

    def _fiber(self, *, prove: bool) -> tuple[Values, str | None]:
        """Compute the fiber by Macaulay2, with a proof that it is empty or points of all real components if `prove`."""
        numbers = np.random.default_rng([self.context.seed, 51, prove]).integers(-3, 4, size=97).tolist()
        blocks = [list(range(block.start, block.stop)) for _, _, block in flat_parts(self.model.parameters)]
        request = {"p": 0, "prove": prove, "numbers": numbers, "wanted": list(self.point), "blocks": blocks}
        return self.context.run_template(TEMPLATE, request, self.model, share=_SHARE_FOR_POINTS)

    def _from_points(self, values: Mapping[str, Any]) -> None:
        """Read points of the fiber, each checked by the program; the best is kept: rational before real before complex.

        Where they meet all real components of the fiber and none of them is real, there are no real weights.
        """
        for modulus, variables in values.get("points") or ():
            algebraic = AlgebraicPoint(modulus=tuple(modulus), variables=tuple(map(tuple, variables)))
            if not algebraic.maps_to(self.model, self.point):
                quantity = "a point of the fiber"
                self._add(quantity, True, "macaulay2", "a maximal ideal over the fiber", Certainty.PROBABLE)
                self._add(quantity, False, "modular", "the program", Certainty.PROBABLE)
                continue
            if self.complex is None:
                self.complex = True
                method = "weights over a number field, evaluated exactly by the program"
                self._add("complex_image", True, "substitution", method)
                self.reasons.append(f"complex weights exist: {method}")
            roots = algebraic.real_roots()
            quantity = (
                f"number of real roots of the minimal polynomial {shorten(' '.join(algebraic.modulus), 60)}"
            )
            self._add(quantity, len(roots), "flint", "isolated roots")
            self._add(quantity, sturm_count(algebraic.polynomial), "sturm", "Sturm's theorem")
            candidate = (algebraic, roots[0] if roots else None)
            if self.best_point is None or _worth(*candidate) > _worth(*self.best_point):
                self.best_point = candidate
        if self.best_point is not None and self.best_point[1] is not None:
            how = (
                "a real root of the minimal polynomial"
                if self.best_point[0].rational is None
                else "exact weights"
            )
            self.real = True
            self.reasons.append(f"real weights exist: {how}, checked by the program")
            self._add("real_image", True, "substitution", how)
        elif values.get("points_complete"):
            self.real, count = False, len(values["points"])
            points = f"{count} point{'s' * (count != 1)} over number fields"
            method = f"if the fiber had real points, at least one of these would be real: {points}; none is"
            self.reasons.append(f"no real weights: {method}")
            self._add("real_image", False, "macaulay2", method, Certainty.COMPUTED)

    def _from_cofactors(self, values: Values) -> None:
        """Prove that the fiber is empty: cofactors, if there are any, are multiplied out with the program's coordinates."""
        if "cofactors" not in values:
            self.reasons.append("no complex weights: 1 is in the ideal of the fiber over QQ")
            return
        count = self.model.parameter_count
        ring = rational_variables([f"w{i}" for i in range(count)])
        forms = fiber_equations(self.model, self.model.unflatten(object_array(ring, (count,))), self.point)
        total = ring[0] * 0
        for h, f in zip(values.polynomials(values["cofactors"], count), forms, strict=True):
            terms = {m: fmpq(c) for m, c in h.items()}
            total += ring[0].context().from_dict(terms) * f
        holds, method = bool(total == 1), "cofactors, multiplied out with the program's coordinates"
        quantity = "1 is a combination of the fiber's equations"
        self._add(quantity, True, "macaulay2", "cofactors over QQ")
        self._add(quantity, holds, "substitution", method)
        if holds:
            for name in ("complex_image", "real_image"):
                self._add(name, False, "substitution", method)
            self.reasons.append(
                f"no complex weights: 1 = sum of {len(forms)} cofactors times equations, multiplied out exactly"
            )

    def _from_closure(self, *, closed: bool) -> None:
        """Evaluate equations of the closure at the point: a second witness if the image is `closed` and the fiber empty."""
        if closed and self.complex is False:
            self.closure = False
            method = "the fiber is empty and the image closed: a map of products of projective spaces without base points"
            self._add("closure", False, "macaulay2", method, Certainty.COMPUTED)
            self.reasons.append(f"not in the closure: {method}")
        count = self.model.coordinate_count
        if self.closure is not None and count > _MOST_COORDINATES_AGAIN:
            method = f"not attempted: {count} coordinates > {_MOST_COORDINATES_AGAIN}"
            self._add("closure", None, "equations", method, Certainty.PROBABLE)
            return
        try:
            closure_result: Closure = self.context.ask_question(
                closure, self.model, field="QQ", equations=True
            )
        except LimitError:
            return
        if self.closure is None:
            self.certainty = closure_result.certainty
        if closure_result.characteristic or closure_result.equations is None:
            return
        failing = next((f for f in closure_result.equations if f.at(self.point)), None)
        if failing is not None:
            self._outside(closure_result, failing)
        elif closure_result.completeness == "complete":
            self.closure = True
            self._add("closure", True, "equations", "all equations vanish", closure_result.certainty)
            self.reasons.append(
                f"in the closure: all {len(closure_result.equations)} equations vanish, and they are complete"
            )

    def _outside(self, closure_result: Closure, failing: Equation) -> None:
        """State that the point is not in the closure, because an equation does not vanish at it."""
        value = Fraction(failing.at(self.point))
        substituted = any(e.witness == "substitution" and e.value is True for e in closure_result.evidence)
        if self.closure is None:
            self.certainty = Certainty.PROVED if substituted else closure_result.certainty
        self.closure, self.failing = False, (failing.text(), value)
        terms = zip(failing.coefficients, failing.monomials, strict=True)
        size = sum((abs(Fraction(c) * prod(self.point[i] for i in m)) for c, m in terms), Fraction(0))
        self.far = abs(value) > _CLEAR * size
        if substituted and not self.of_pairs:
            self.certificate = outside_certificates(self.network, failing, self.point, seed=self.context.seed)
        if self.complex is None:
            self.complex = self.real = False
        for name in ("complex_image", "real_image", "closure"):
            self._add(name, False, "equations", "an equation of the closure fails", self.certainty)
        self.reasons.append(f"not in the closure: {shorten(failing.text(), 80)} is {value} at the point")

    def _numeric(self) -> None:
        """Add a witness in float64. The distance is also small at limits of the image, so it is only evidence against."""
        quantity = "approached by real weights"
        distance = least_distance(self.model, self.point, np.random.default_rng([self.context.seed, 52]))
        if not np.isfinite(distance):
            return
        how = f"least squares from random starts; distance {distance:.1e}"
        reached, detail = True if distance < REACHED else None, {"distance": distance}
        self.context.add_evidence(
            Evidence(quantity, reached, "numpy", how, certainty=Certainty.NUMERIC, detail=detail)
        )
        if self.real:
            self._add(quantity, True, "weights", "real weights of the point")
        elif self.far:
            self._add(quantity, False, "closure", "an equation of the closure is far from zero at the point")

    def _weights(self) -> dict[str, Any] | None:
        if self.best_point is None or self.best_point[1] is None:
            return None
        algebraic, root = self.best_point
        exact = algebraic.rational
        flat: list[Any] = list(algebraic.intervals(root)) if exact is None else [str(c) for c in exact]
        return {name: flat[entries] for name, _, entries in flat_parts(self.model.parameters)}
