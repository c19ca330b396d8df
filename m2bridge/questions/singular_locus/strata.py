"""Each orbit asked from both sides: curves below, equations above, and the same curves in float64 at a moved point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from m2bridge.linear.modular import rank_mod, rank_over_q
from m2bridge.linear.numeric import NumericRank
from m2bridge.models import Lightning
from m2bridge.models.evaluation import output_jacobian
from m2bridge.questions import over_q
from m2bridge.questions.closure import Equation
from m2bridge.questions.singular_locus.equations import gradients
from m2bridge.questions.singular_locus.orbits import Orbit, exchanged, orbit_dim
from m2bridge.questions.singular_locus.result import Singularity, Stratum
from m2bridge.questions.singular_locus.tangents import exact_span, numeric_span
from m2bridge.questions.testimony import compared, floats, proves, says
from m2bridge.results import Certainty, Evidence

Weights = dict[str, np.ndarray]
Pair = tuple[np.ndarray, np.ndarray]


def fiber_points(model: Lightning, A: np.ndarray, V: np.ndarray) -> list[Weights]:
    """Integer (Q, K, V) that map to the point of a 0/1 representative (A, V) = orbit.representative(...).

    When both ranks are one, A = k q^T and V = h v^T, exchanging k and v gives the second point of the fiber (Theorem 3.2).
    """
    pairs = [(A, V)]
    other = exchanged(A, V)
    if other is not None and (other[0] != A).any():
        pairs.append((other[0].astype(np.int64), other[1].astype(np.int64)))
    found = [(*over_q.factors(attention, model.a), values) for attention, values in pairs]
    return [{"Q": Q.astype(np.int64), "K": K.astype(np.int64), "V": values} for Q, K, values in found]


def moved(point: Weights, rng: np.random.Generator) -> Weights:
    """The weights moved by a random real group element: A -> g A h, V -> k V g^T."""
    d, dp = point["Q"].shape[1], len(point["V"])
    g, h, k = (_well_conditioned(n, rng) for n in (d, d, dp))
    return {"Q": point["Q"] @ h, "K": point["K"] @ g.T, "V": k @ point["V"] @ g.T}


def _well_conditioned(n: int, rng: np.random.Generator) -> np.ndarray:
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return np.asarray(left @ np.diag(rng.uniform(0.7, 1.4, n)) @ right)


def numeric_tangent(model: Lightning, fiber: Sequence[Weights], seed: Sequence[int]) -> NumericRank:
    """Span of curves in float64, from the forward pass, at the fiber moved by one random group element.

    A layer is F(X X^T) X: at one input d' min(d, t) of its outputs are independent, and together they must show all coordinates.
    """
    free = replace(model, parametrization="weights")
    samples = -(-model.coordinate_count // (model.dp * min(model.d, model.t))) + 4
    inputs = np.random.default_rng([*seed, 1]).standard_normal((samples, model.d, model.t))

    def evaluate(flat: np.ndarray) -> np.ndarray:
        return np.asarray(free.forward(free.unflatten(flat), inputs)).ravel()

    def jacobian(flat: np.ndarray) -> np.ndarray:
        return np.asarray(output_jacobian(free, free.unflatten(flat), inputs))

    # one generator per point, seeded alike: every point of the fiber is moved by the same group element
    places = [free.flatten(moved(point, np.random.default_rng(list(seed)))) for point in fiber]
    rng = np.random.default_rng([*seed, 2])
    return numeric_span(evaluate, jacobian, places, rng, curves=model.coordinate_count + 8)


def examine(
    model: Lightning, orbits: Sequence[Orbit], image_dim: tuple[int, int], found: Sequence[Equation],
    lifted: Sequence[Equation] | None, macaulay2: Sequence[int] | None, *, prime: int, seed: int,
) -> tuple[list[Stratum], list[Evidence]]:  # fmt: skip
    """Tangent bounds and verdict of every orbit.

    A tangent space larger than the upper bound of the dimension shows a singular point, one that is not larger than the lower
    bound shows a smooth point: the dimension itself, and that of every tangent space, lies in between.

    Parameters
    ----------
    image_dim: proved bounds of the variety's dimension, the lower one first.
    found, lifted: equations over F_p, and the same over ZZ where they were verified by substitution.
    macaulay2: tangent dimensions that Macaulay2 computed from its equations at the representatives.
    """
    points = [orbit.representative(model.d, model.dp) for orbit in orbits]
    spans, evidence = _curve_spans(model, orbits, points, seed)
    strata: list[Stratum] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        lower, method = _lower(orbits, spans, index)
        evidence.append(proves(f"tangent {orbit}", lower, "curves", method, relation=">="))
        theirs = None if macaulay2 is None else macaulay2[index]
        upper, sure, more = _upper(model, orbit, (A, V), found, lifted, theirs, prime)
        evidence += more
        dim = orbit_dim(model, A, V)
        if dim == image_dim[1] and upper != dim:
            # a reduced variety is smooth on a dense open set, and an orbit of its dimension is dense
            upper, sure = dim, Certainty.PROVED
            method = "the dense orbit of a reduced variety"
            evidence.append(proves(f"tangent {orbit}", dim, "orbits", method, relation="<="))
        verdict, certainty = _verdict(image_dim, lower, upper, sure)
        below = (j for j, other in enumerate(orbits) if j != index and other.in_closure_of(orbit))
        strata.append(
            Stratum(
                rank_a=orbit.rank_a, rank_v=orbit.rank_v, meet=orbit.meet, orbit_dim=dim, tangent_lower=lower,
                tangent_upper=upper, verdict=verdict, certainty=certainty,
                representative={"A": _rows(A), "V": _rows(V)}, closure_contains=tuple(below),
            )
        )  # fmt: skip
    return strata, evidence


def _lower(orbits: Sequence[Orbit], spans: Sequence[int], index: int) -> tuple[int, str]:
    """Tangent dimensions are upper semicontinuous: a bound at an orbit holds at every orbit in its closure."""
    above = [j for j, other in enumerate(orbits) if orbits[index].in_closure_of(other)]
    best = max(above, key=lambda j: spans[j])
    if spans[best] <= spans[index]:
        return spans[index], "span over QQ of curves through the point"
    return spans[best], f"curves at {orbits[best]}, whose closure contains this orbit (semicontinuity)"


def _verdict(
    image_dim: tuple[int, int], lower: int, upper: int | None, sure: Certainty
) -> tuple[Singularity, Certainty]:
    if lower > image_dim[1]:
        return "singular", Certainty.PROVED
    if upper is not None and upper <= image_dim[0]:
        return "smooth", sure
    return "undecided", Certainty.PROBABLE


def _curve_spans(
    model: Lightning, orbits: Sequence[Orbit], points: Sequence[Pair], seed: int
) -> tuple[list[int], list[Evidence]]:
    """Span of curves through each representative: over QQ, and again in float64 at a point moved at random."""
    free = replace(model, parametrization="weights")
    spans: list[int] = []
    evidence: list[Evidence] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        fiber, quantity = fiber_points(model, A, V), f"curves at {orbit}"
        start = time.perf_counter()
        spans.append(exact_span(free, fiber, np.random.default_rng([seed, 4, index])))
        middle = time.perf_counter()
        numeric = numeric_tangent(model, fiber, (seed, 5, index))
        done = time.perf_counter()
        method = "span in float64 at a randomly moved point"
        evidence += [
            proves(quantity, spans[-1], "curves", "span over QQ", seconds=middle - start),
            floats(quantity, numeric, method, seconds=done - middle),
        ]
    return spans, evidence


def _upper(
    model: Lightning, orbit: Orbit, weights: Pair, found: Sequence[Equation], lifted: Sequence[Equation] | None,
    macaulay2: int | None, prime: int,
) -> tuple[int | None, Certainty, list[Evidence]]:  # fmt: skip
    """Upper bound of the tangent dimension from equations, how sure it is, and the evidence."""
    if macaulay2 is None and not found:
        return None, Certainty.PROBABLE, []
    quantity, n = f"tangent {orbit}", model.coordinate_count
    point = model.coordinates(dict(zip("AV", weights, strict=True))).tolist()
    evidence: list[Evidence] = []
    upper = n - rank_mod(gradients(found, point), prime)
    if macaulay2 is not None:
        method = "coordinates minus rank of the equations' Jacobian"
        evidence.append(says(quantity, macaulay2, "macaulay2", method, relation="<=", prime=prime))
        evidence += compared(
            f"Jacobian rank at {orbit}", ("macaulay2", "rank", n - macaulay2),
            ("macaulay2", "rank of the same equations in Python (checks the rank only)", n - upper), prime=prime,
        )  # fmt: skip
    if lifted is None:
        return upper, Certainty.PROBABLE, evidence
    exact = n - rank_over_q(gradients(lifted, point))
    method = "verified by substitution; rank over QQ"
    evidence.append(proves(quantity, exact, "equations over ZZ", method, relation="<="))
    return exact, Certainty.PROVED, evidence


def _rows(matrix: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(x) for x in row) for row in matrix)
