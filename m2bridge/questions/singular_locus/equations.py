"""Compute equations that vanish on a closure, and the bounds of tangent spaces that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, LimitError
from m2bridge.families.strata import Strata
from m2bridge.linear.modular import eliminate, rank_mod
from m2bridge.linear.primes import given_numbers
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, Equation, closure
from m2bridge.questions.closure.low_degree import low_degree_equations
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point
from m2bridge.questions.singular_locus.result import Singularity

_SHARE_FOR_CLOSURE = 0.5
"""Of the time left, for the closure."""
_SHARE_FOR_KERNEL = 0.25
"""Of the time left, for the kernel over QQ, on which the certainty rests."""
_MOST_KERNEL_COORDINATES = 12
"""The kernel over QQ is computed up to this many coordinates: the closure over QQ of lightning(d=2,dp=2), which has 12, takes
11 s with everything."""
_LOW_DEGREES = ((60, 4), (90, 3), (200, 2))
"""(largest number of coordinates, largest degree of equations), such that the number of equations is moderate."""


@dataclass(frozen=True, kw_only=True)
class VanishingEquations:
    """Equations that vanish on a closure.

    Attributes
    ----------
    characteristic: 0 for equations over QQ.
    certainty: that they vanish on the closure over QQ.
    complete: how sure it is that they generate the whole ideal; None if unknown.
    extent: the same as text: ``complete``, ``partial``, or the largest degree of the equations.
    """

    equations: tuple[Equation, ...]
    characteristic: int
    certainty: Certainty
    complete: Certainty | None
    extent: str

    def at(self, point: Point) -> list[Any] | None:
        """Return the image of a point over the field of the equations; None if the prime divides a denominator."""
        p = self.characteristic
        if p and given_numbers(None, point.weights).divided_by(p) is not None:
            return None
        return point.image(p)

    def tangent_upper(self, point: Point) -> tuple[int | None, Certainty]:
        """Return coordinates minus the rank of the Jacobian at the image of the point, and how sure that bound is."""
        image = self.at(point)
        if image is None:
            return None, Certainty.PROBABLE
        rows = [equation.gradient(image) for equation in self.equations]
        if not rows:
            return len(image), Certainty.PROVED
        p = self.characteristic
        rank = rank_mod(np.array(rows, dtype=object), p) if p else over_q.rank(rows)
        return len(image) - rank, self.certainty


def equations_of(image_closure: Closure) -> VanishingEquations | None:
    """Return the equations of a closure; None if it has none."""
    if image_closure.equations is None:
        return None
    complete = (
        image_closure.certainty
        if image_closure.completeness == "complete" and image_closure.agreement is not False
        else None
    )
    certainty = Certainty.PROBABLE
    if not image_closure.characteristic:
        substituted = any(e.witness == "substitution" and e.value is True for e in image_closure.evidence)
        if substituted:
            certainty = Certainty.PROVED
        elif image_closure.completeness == "complete" and image_closure.certainty.exact:
            certainty = image_closure.certainty
    return VanishingEquations(
        equations=image_closure.equations, characteristic=image_closure.characteristic, certainty=certainty, complete=complete,
        extent=image_closure.completeness,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TangentBounds:
    """Bounds of the Zariski tangent space at a point of a closure.

    Attributes
    ----------
    lower: by curves, proved.
    upper: by equations or another argument, as sure as `sure`; None without.
    complete: how sure it is that `upper` is the dimension of the tangent space itself, because the equations are complete; None
        where that is not known.
    """

    lower: int
    upper: int | None = None
    sure: Certainty = Certainty.PROBABLE
    complete: Certainty | None = None

    @classmethod
    def at(cls, point: Point, lower: int, equations: VanishingEquations | None) -> TangentBounds:
        """Return the bounds that curves, which gave `lower`, and equations give at a point."""
        if equations is None:
            return cls(lower=lower)
        upper, sure = equations.tangent_upper(point)
        return cls(lower=lower, upper=upper, sure=sure, complete=equations.complete)

    def verdict(self, size: Dimension) -> tuple[Singularity, Certainty]:
        """Return the verdict that follows from the bounds and the proved bounds of the variety's dimension.

        Let n be the dimension of the variety, with proved bounds L <= n <= U. Every tangent space has dimension at least n. A
        tangent space of dimension > U shows a singular point, one of dimension <= L a smooth point.
        """
        if self.lower > size.upper_bound:
            return "singular", Certainty.PROVED
        if self.upper is not None and self.upper <= size.lower_bound:
            return "smooth", self.sure
        if self.upper is None or self.complete is None:
            return "undecided", Certainty.PROBABLE
        certainty = Certainty.weakest([self.sure, self.complete])
        if self.upper > size.upper_bound:
            return "singular", certainty
        # singular only if the dimension is the lower bound, which is probable
        return "singular", Certainty.weakest([certainty, Certainty.PROBABLE])


def refuse_outside(equations: VanishingEquations, point: Point) -> None:
    """Refuse a point that is not on the variety, with the equation that it violates and its value there."""
    image, p = equations.at(point), equations.characteristic
    if image is None:
        return
    for index, equation in enumerate(equations.equations):
        if value := equation.at(image, p):
            where = f"modulo {p}" if p else "exactly"
            raise InputError(
                f"the point is not on the variety: equation {index} ({equation.text()[:60]}) is {value} there, {where}"
            )


# -- computation of the equations ------------------------------------------------------------------------------------------------


def closure_for_strata(context: Context, strata: Strata, prime: int, *, force: bool) -> Closure | None:
    """Return the closure, over QQ unless the user chose a prime; None if computing all of its equations is infeasible.

    Exhaustive strata are decided without the whole closure. In many coordinates it is then computed over F_p, which takes a tenth
    of the time. A limit that is reached after the equations are complete loses nothing.
    """
    model = strata.model
    if model.coordinate_count > strata.closure_coordinates and not force:
        return None
    context.report_progress("equations of the closure")
    options: dict[str, Any] = {"field": "QQ"} if context.prime is None else {"prime": context.prime}
    if context.prime is None and strata.exhaustive and model.coordinate_count > _MOST_KERNEL_COORDINATES:
        options = {"prime": prime}
    try:
        image_closure = context.ask_question(
            closure, model, equations=True, share=_SHARE_FOR_CLOSURE, decisive=False, **options
        )
    except LimitError as error:
        context.note_limit(str(error))
        return None
    if image_closure.limit is not None and image_closure.completeness != "complete":
        context.note_limit(image_closure.limit)
    retry_over_q = (
        image_closure.completeness == "complete"
        and not image_closure.certainty.exact
        and context.prime is None
    )
    if retry_over_q and model.coordinate_count <= _MOST_KERNEL_COORDINATES:
        try:  # the kernel over QQ is the whole ideal; at this size it takes seconds
            options |= {"method": "kernel", "share": _SHARE_FOR_KERNEL}
            kernel = context.ask_question(closure, model, equations=True, **options)
            if kernel.completeness == "complete" and kernel.certainty.exact:
                image_closure = kernel
        except LimitError:
            pass
    return image_closure


def vanishing_equations(
    context: Context, strata: Strata, points: Sequence[Point], image_closure: Closure | None, prime: int
) -> VanishingEquations | None:
    """Return equations for bounds at the points: those of the closure, or equations of low degree where these may decide.

    If the strata are exhaustive, equations of low degree are computed unless those of the closure hold over QQ.
    """
    equations = None if image_closure is None else equations_of(image_closure)
    if not strata.exhaustive or (equations is not None and equations.certainty.exact):
        return equations
    count = strata.model.coordinate_count
    degree = next((k for most, k in _LOW_DEGREES if count <= most), None)
    if degree is None:
        return equations
    with context.keep_partial("equations of low degree"):
        context.clock.check()
        context.report_progress(f"equations up to degree {degree}")
        images = [point.image(prime) for point in points]
        low_degree, verified = low_degree_equations(
            strata.model,
            degree,
            lambda listed: decisive(listed, images, prime),
            prime=prime,
            seed=context.seed,
        )
        equations = VanishingEquations(
            equations=low_degree, characteristic=0 if verified else prime, complete=None,
            certainty=Certainty.PROVED if verified else Certainty.PROBABLE, extent=f"up to degree {degree}",
        )  # fmt: skip
    return equations


def decisive(
    equations: Sequence[Equation], images: Sequence[Sequence[int]], prime: int
) -> tuple[Equation, ...]:
    """Return a few of the equations whose Jacobians have, at each image point, the rank that all of them have."""
    kept = {i for image in images for i in eliminate(gradients(equations, image), prime).pivot_rows}
    return tuple(equations[i] for i in sorted(kept))


def gradients(equations: Sequence[Equation], image: Sequence[int]) -> np.ndarray:
    """Return the Jacobian at a point, one row per equation."""
    return np.array([e.gradient(image) for e in equations], dtype=object).reshape(-1, len(image))
