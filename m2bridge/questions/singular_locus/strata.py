"""Each orbit asked from both sides: curves below, equations above, and the same curves in float64 at a moved point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from m2bridge.linear.integer import rank_over_q
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.numeric import NumericRank
from m2bridge.models import Lightning
from m2bridge.questions.samples import inputs_for
from m2bridge.questions.singular_locus.equations import Equation
from m2bridge.questions.singular_locus.orbits import Orbit, orbit_dim
from m2bridge.questions.singular_locus.result import Stratum, Verdict
from m2bridge.questions.singular_locus.tangents import exact_span, numeric_span
from m2bridge.questions.singular_locus.witnesses import ImageDim, finite, float_jacobian
from m2bridge.results import Certainty, Evidence

Weights = dict[str, np.ndarray]


def fiber_points(model: Lightning, A: np.ndarray, V: np.ndarray) -> list[Weights]:
    """Integer (Q, K, V) that map to the point of a 0/1 representative (A, V) = orbit.representative(...).

    A is the identity on its first rk A coordinates, so the unit vectors factor it; rows beyond the rank are zero. When
    both ranks are one, A = k q^T and V = h v^T, exchanging k and v gives the second point of the fiber (Theorem 3.2).
    """

    def factored(A: np.ndarray, V: np.ndarray) -> Weights:
        Q, K = np.zeros((2, model.a, model.d), dtype=np.int64)
        for row, i in enumerate(np.flatnonzero(A.any(axis=1))):
            K[row, i] = 1
            Q[row] = A[i]
        return {"Q": Q, "K": K, "V": V}

    points = [factored(A, V)]
    if np.count_nonzero(A) == np.count_nonzero(V) == 1:
        (k,), (q,) = np.nonzero(A)
        (h,), (v,) = np.nonzero(V)
        if k != v:
            A2, V2 = np.zeros_like(A), np.zeros_like(V)
            A2[v, q] = V2[h, k] = 1
            points.append(factored(A2, V2))
    return points


def moved(point: Weights, rng: np.random.Generator) -> Weights:
    """The weights moved by a random real group element: A -> g A h, V -> k V g^T."""
    d, dp = point["Q"].shape[1], len(point["V"])
    g, h, k = (_well_conditioned(n, rng) for n in (d, d, dp))
    return {"Q": point["Q"] @ h, "K": point["K"] @ g.T, "V": k @ point["V"] @ g.T}


def _well_conditioned(n: int, rng: np.random.Generator) -> np.ndarray:
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return np.asarray(left @ np.diag(rng.uniform(0.7, 1.4, n)) @ right)


def numeric_tangent(model: Lightning, fiber: Sequence[Weights], seed: Sequence[int]) -> NumericRank:
    """Span of curves in float64, from the forward pass, at the fiber moved by one random group element."""
    free = replace(model, parametrization="weights")
    samples = inputs_for(model, model.coordinate_count, spare=4)
    inputs = np.random.default_rng([*seed, 1]).standard_normal((samples, model.d, model.t))

    def evaluate(flat: np.ndarray) -> np.ndarray:
        return np.asarray(free.forward(free.unflatten(flat), inputs)).ravel()

    def jacobian(flat: np.ndarray) -> np.ndarray:
        return float_jacobian(free, free.unflatten(flat), inputs)

    # one generator per point, seeded alike: every point of the fiber is moved by the same group element
    places = [free.flatten(moved(point, np.random.default_rng(list(seed)))) for point in fiber]
    rng = np.random.default_rng([*seed, 2])
    return numeric_span(evaluate, jacobian, places, rng, curves=model.coordinate_count + 8)


def examine(
    model: Lightning,
    orbits: Sequence[Orbit],
    image_dim: ImageDim,
    found: Sequence[Equation],
    lifted: Sequence[Equation] | None,
    macaulay2: Sequence[int] | None,
    *,
    prime: int,
    seed: int,
) -> tuple[list[Stratum], list[Evidence]]:
    """Tangent bounds and verdict of every orbit.

    A tangent space larger than the upper bound of the dimension shows a singular point, one that is not larger than the lower
    bound shows a smooth point: the dimension itself, and that of every tangent space, lies in between.

    Parameters
    ----------
    image_dim
        Proved bounds of the variety's dimension.
    found, lifted
        Equations over F_p, and the same over ZZ where they were verified by substitution.
    macaulay2
        Tangent dimensions that Macaulay2 computed from its equations at the representatives.
    """
    points = [orbit.representative(model.d, model.dp) for orbit in orbits]
    spans, evidence = _curve_spans(model, orbits, points, seed)
    strata: list[Stratum] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        # tangent dimensions are upper semicontinuous: a bound at an orbit holds at every orbit in its closure
        larger = [j for j, other in enumerate(orbits) if orbit.in_closure_of(other)]
        best = max(larger, key=lambda j: spans[j])
        lower = max(spans[index], spans[best])
        method = "span over QQ of curves through the point"
        if lower > spans[index]:
            method = f"curves at {orbits[best]}, whose closure contains this orbit (semicontinuity)"
        evidence.append(
            Evidence(
                quantity=f"tangent {orbit}",
                witness="curves",
                method=method,
                value=lower,
                relation=">=",
                certainty=Certainty.PROVED,
            )
        )
        upper, sure, more = _upper(
            model, orbit, A, V, found, lifted, None if macaulay2 is None else macaulay2[index], prime
        )
        evidence += more
        dim = orbit_dim(model, A, V)
        if dim == image_dim.upper and upper != dim:
            # a reduced variety is smooth on a dense open set, and an orbit of its dimension is dense
            upper, sure = dim, Certainty.PROVED
            evidence.append(
                Evidence(
                    quantity=f"tangent {orbit}",
                    witness="orbits",
                    method="the dense orbit of a reduced variety",
                    value=dim,
                    relation="<=",
                    certainty=Certainty.PROVED,
                )
            )
        verdict: Verdict = "undecided"
        certainty = Certainty.PROBABLE
        if lower > image_dim.upper:
            verdict, certainty = "singular", Certainty.PROVED
        elif upper is not None and upper <= image_dim.lower:
            verdict, certainty = "smooth", sure
        strata.append(
            Stratum(
                rank_a=orbit.rank_a,
                rank_v=orbit.rank_v,
                meet=orbit.meet,
                orbit_dim=dim,
                tangent_lower=lower,
                tangent_upper=upper,
                verdict=verdict,
                certainty=certainty,
                representative={"A": _rows(A), "V": _rows(V)},
                closure_contains=tuple(
                    j for j, o in enumerate(orbits) if j != index and o.in_closure_of(orbit)
                ),
            )
        )
    return strata, evidence


def _curve_spans(
    model: Lightning, orbits: Sequence[Orbit], points: Sequence[tuple[np.ndarray, np.ndarray]], seed: int
) -> tuple[list[int], list[Evidence]]:
    """Span of curves through each representative: over QQ, and again in float64 at a point moved at random."""
    free = replace(model, parametrization="weights")
    spans: list[int] = []
    evidence: list[Evidence] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        fiber = fiber_points(model, A, V)
        start = time.perf_counter()
        spans.append(exact_span(free, fiber, np.random.default_rng([seed, 4, index])))
        middle = time.perf_counter()
        numeric = numeric_tangent(model, fiber, (seed, 5, index))
        done = time.perf_counter()
        evidence += [
            Evidence(
                quantity=f"curves at {orbit}",
                witness="curves",
                method="span over QQ",
                value=spans[-1],
                certainty=Certainty.PROVED,
                seconds=middle - start,
            ),
            Evidence(
                quantity=f"curves at {orbit}",
                witness="numpy",
                method="span in float64 at a randomly moved point",
                value=numeric.rank,
                certainty=Certainty.NUMERIC,
                seconds=done - middle,
                detail={"gap": finite(numeric.gap)},
            ),
        ]
    return spans, evidence


def _upper(
    model: Lightning,
    orbit: Orbit,
    A: np.ndarray,
    V: np.ndarray,
    found: Sequence[Equation],
    lifted: Sequence[Equation] | None,
    macaulay2: int | None,
    prime: int,
) -> tuple[int | None, Certainty, list[Evidence]]:
    """Upper bound of the tangent dimension from equations, how sure it is, and the evidence."""
    if macaulay2 is None and not found:
        return None, Certainty.PROBABLE, []
    quantity, n = f"tangent {orbit}", model.coordinate_count
    point = model.coordinates({"A": A, "V": V}).tolist()
    evidence: list[Evidence] = []
    upper = n - rank_mod(np.array([e.gradient(point) for e in found], dtype=object).reshape(-1, n), prime)
    if macaulay2 is not None:
        evidence.append(
            Evidence(
                quantity=quantity,
                witness="macaulay2",
                method="coordinates minus rank of the equations' Jacobian",
                value=macaulay2,
                relation="<=",
                prime=prime,
            )
        )
        evidence += [
            Evidence(
                quantity=f"Jacobian rank at {orbit}",
                witness="macaulay2",
                method=method,
                value=value,
                prime=prime,
            )
            for method, value in (
                ("rank", n - macaulay2),
                ("rank of the same equations in Python (checks the rank only)", n - upper),
            )
        ]
    if lifted is None:
        return upper, Certainty.PROBABLE, evidence
    exact = n - rank_over_q(np.array([e.gradient(point) for e in lifted], dtype=object).reshape(-1, n))
    evidence.append(
        Evidence(
            quantity=quantity,
            witness="equations over ZZ",
            method="verified by substitution; rank over QQ",
            value=exact,
            relation="<=",
            certainty=Certainty.PROVED,
        )
    )
    return exact, Certainty.PROVED, evidence


def _rows(matrix: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(x) for x in row) for row in matrix)
