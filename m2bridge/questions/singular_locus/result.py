"""What the question "where is the neuromanifold singular?" answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from m2bridge.results import Certainty, Result, TheoremCheck, register_result

Verdict = Literal["singular", "smooth", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One orbit of the symmetry group of the variety and what is known of the points of its image.

    Attributes
    ----------
    rank_a, rank_v, meet: rk A, rk V and dim(col A ∩ row V); all zero for the zero function.
    orbit_dim: affine dimension of the image of the orbit, over QQ.
    tangent_lower: from curves in the image, over QQ: their span at this point or, by semicontinuity, at an orbit whose closure
        contains it.
    tangent_upper: coordinates minus the rank of the equations' Jacobian there; None without equations.
    verdict: singular (tangent_lower > image_dim), smooth (tangent_upper = image_dim) or undecided.
    certainty: of the verdict.
    representative: one pair (A, V) of the orbit, row by row.
    closure_contains: indices in the list of strata of those in this one's closure, itself left out.
    """

    rank_a: int
    rank_v: int
    meet: int
    orbit_dim: int
    tangent_lower: int
    tangent_upper: int | None
    verdict: Verdict
    certainty: Certainty
    representative: Mapping[str, tuple[tuple[int, ...], ...]]
    closure_contains: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component of the singular locus: affine dimension, degree, equations (over F_p).

    `orbit` is (rk A, rk V, meet) when the component is known as the closure of that orbit; degree and equations are None when
    they were not computed.
    """

    dim: int
    degree: int | None
    equations: tuple[str, ...] | None
    orbit: tuple[int, int, int] | None = None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class SingularLocus(Result):
    """The singular locus of a neuromanifold. All dimensions are affine.

    Attributes
    ----------
    image_dim: dimension of the neuromanifold.
    ambient_dim: of the space of all functions of this kind (Sym3); span_dim: of the linear span of the neuromanifold.
    codim, degree, generators: of the closure's ideal within the span; generators maps degree to count; equations as text.
        None where no complete ideal was computed.
    singular_dim, singular_degree: of the singular locus, -1 and 0 when it is empty; degree is None when not computed.
    singular_equations, embedded: of the singular scheme, when it was computed. components: of its radical, or closures of the
        maximal singular orbits.
    strata: every orbit with its tangent bounds and verdict.
    """

    ANALYSIS: ClassVar[str] = "singular-locus"
    VERSION: ClassVar[int] = 1

    image_dim: int
    ambient_dim: int
    span_dim: int
    codim: int | None
    degree: int | None
    generators: Mapping[str, int] | None
    equations: tuple[str, ...]
    singular_dim: int | None
    singular_degree: int | None
    singular_equations: tuple[str, ...] | None
    components: tuple[Component, ...] | None
    embedded: tuple[Component, ...] | None
    strata: tuple[Stratum, ...]
    theorem: TheoremCheck
