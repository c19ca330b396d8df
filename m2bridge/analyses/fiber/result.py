"""What the question "which weights compute the same function?" answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from m2bridge.results import Result, TheoremCheck, register_result

Verdict = Literal["identifiable-up-to-symmetry", "finite-up-to-symmetry", "not-identifiable", "undecided"]
Method = Literal["plain", "sliced", "structured", "lifted", "jacobian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberComponent:
    """An irreducible component of the fiber over the field of computation.

    Attributes
    ----------
    dim, degree: affine, in the space of the weights; degree is None where only a slice of it was computed.
    reduced: whether the scheme of the equations is generically reduced along it; `multiplicity` how often it counts.
    orbit: whether it is the closure of an orbit of the known symmetries through the point.
    tangent_dim: dimension of the kernel of the forward pass's Jacobian at a point of it found by Macaulay2.
    point: those weights over F_p, flattened; None when no point with coordinates in the field was found.
    equations: as text, variables w0, w1, ... in flattened order, when they are short.
    """

    dim: int
    degree: int | None
    reduced: bool | None
    multiplicity: int | None
    orbit: bool | None
    tangent_dim: int | None
    point: tuple[int, ...] | None
    equations: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPoint:
    """Real weights that compute the same function, with what a second evaluation in floating point says.

    Attributes
    ----------
    weights: name -> nested lists of float64.
    residual: the largest difference of outputs at fresh inputs, relative to the largest output.
    found_by: how it was found.
    same_orbit: whether it is a rescaling of the given weights; None where that is not decided.
    """

    weights: Mapping[str, Any]
    residual: float
    found_by: str
    same_orbit: bool | None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Fiber(Result):
    """The fiber of a parametrization through one point. All dimensions are affine, in the space of the weights.

    Attributes
    ----------
    at: which point: ``kind`` (random, weights, stratum), ``weights`` (exact, as strings), ``prime`` it was reduced by.
    fiber_dim, degree, components: of the fiber through that point; None where they were not computed.
    symmetry_dim: dimension of the orbit of the known symmetries through the point.
    orbits: number of orbits of the known connected symmetries in the fiber when they are finitely many and counted.
    generic_fiber_dim: dimension of the fiber through almost every point; `image_dim` that of the image.
    verdict: ``identifiable-up-to-symmetry`` when the fiber is one orbit of the known symmetries (scalings, changes of basis,
        permutations of neurons or heads); ``finite-up-to-symmetry`` when it is a finite union of orbits and not known to be
        one; ``not-identifiable`` when it has a component that is larger than an orbit.
    explanation: the verdict's reason in a sentence.
    probability: a lower bound of the probability that the verdict holds over QQ, where one is known.
    method: plain (one Groebner basis), sliced (scalings cut), structured (unique factorization), lifted (virtual weights and
        Lemmas 3.1 and 3.5), jacobian (dimensions only).
    inputs: number of random inputs behind the equations, the fresh ones that changed nothing included.
    real_points: real weights with the same function; counterexample: a published statement's exact failure at this point.
    notes: what a reader should know, such as a prime that was exchanged.
    """

    ANALYSIS: ClassVar[str] = "fiber"
    VERSION: ClassVar[int] = 1

    at: Mapping[str, Any]
    fiber_dim: int | None
    degree: int | None
    components: tuple[FiberComponent, ...] | None
    symmetry_dim: int
    orbits: int | None
    generic_fiber_dim: int | None
    image_dim: int | None
    verdict: Verdict
    explanation: str
    probability: float | None
    method: Method
    inputs: int | None
    real_points: tuple[RealPoint, ...]
    theorem: TheoremCheck | None
    counterexample: Mapping[str, Any] | None
    notes: tuple[str, ...]
