"""Orbits of one layer, each asked from both sides: curves below, equations or a finite map above; and what follows from them.

The singular locus is closed and stable under the group, so it is the union of the closures of the singular orbits, and its
components are the closures of the maximal ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.certificates.points import Arc, singular_point_certificate, smooth_point_certificate
from m2bridge.evidence import Evidence, evidence_of_rank
from m2bridge.families import Attention, PolynomialMap
from m2bridge.families.evaluation import output_jacobian
from m2bridge.families.symbolic import rational_variables, sparse, variable_array
from m2bridge.frontends.polynomials import terms_of
from m2bridge.limits import Clock
from m2bridge.linear.modular import rank_mod, rank_over_q
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.questions import over_q
from m2bridge.questions.closure import Equation, closure
from m2bridge.questions.kernel import Context
from m2bridge.questions.orbits import Orbit, differential, exchanged, orbit_dim
from m2bridge.questions.singular_locus.layer import gradients
from m2bridge.questions.singular_locus.result import Component, Stratum
from m2bridge.questions.singular_locus.tangents import Line, spanning_lines, verdict_of

Weights = dict[str, np.ndarray]
_MOST_CERTIFIED = 100
"""Coordinates beyond which the curves of every orbit would take long to write down and to check."""
_QUICK = 30
"""Up to so many coordinates curves take a moment; they are found even where Macaulay2 has used all the time."""
_NO_LIMIT = Clock()
FINITE_MAP = "a finite map is a closed immersion near a fiber that is one reduced point (docs/decisions/0018)"


def fiber_points(model: Attention, A: np.ndarray, V: np.ndarray) -> list[Weights]:
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
    """The weights moved by a random well-conditioned real group element: A -> g A h, V -> k V g^T."""

    def element(n: int) -> np.ndarray:
        left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
        return np.asarray(left @ np.diag(rng.uniform(0.7, 1.4, n)) @ right)

    g, h, k = map(element, (point["Q"].shape[1], point["Q"].shape[1], len(point["V"])))
    return {"Q": point["Q"] @ h, "K": point["K"] @ g.T, "V": k @ point["V"] @ g.T}


def numeric_tangent(model: Attention, fiber: Sequence[Weights], seed: Sequence[int]) -> NumericRank:
    """Span of the tangent vectors of curves in float64, from the forward pass, at the fiber moved by one random group element.

    A layer is F(X X^T) X: at one input d' min(d, t) of its outputs are independent, and together they must show all coordinates.
    It is cubic in (Q, K, V), so that along a line in the kernel of the differential the terms of order two and three are all.
    """
    free = replace(model, parametrization="weights")
    samples = -(-model.coordinate_count // (model.dp * min(model.d, model.t))) + 4
    inputs = np.random.default_rng([*seed, 1]).standard_normal((samples, model.d, model.t))

    def outputs(flat: np.ndarray) -> np.ndarray:
        batched = {name: value[:, None] for name, value in free.unflatten(flat).items()}
        return np.asarray(free.forward(batched, inputs)).reshape(len(flat), -1)

    rng, vectors = np.random.default_rng([*seed, 2]), list[np.ndarray]()
    for point in fiber:
        # one generator per point, seeded alike: every point of the fiber is moved by the same group element
        weights = moved(point, np.random.default_rng(list(seed)))
        J = np.asarray(output_jacobian(free, weights, inputs))
        vectors += [column for column in J.T if np.linalg.norm(column) > 0]
        _, values, right = np.linalg.svd(J, full_matrices=True)
        largest = values[0] if len(values) and values[0] > 0 else 1.0
        kernel = right[int(np.sum(values > 1e-9 * largest)) :]
        if not len(kernel):
            continue
        steps = rng.standard_normal((model.coordinate_count + 8, len(kernel))) @ kernel
        value, plus, minus = (
            outputs(free.flatten(weights) + move) for move in (0 * steps[:1], steps, -steps)
        )
        scale = sum(np.linalg.norm(part, axis=1) for part in (plus, minus, value))
        second, third = (plus + minus) / 2 - value, (plus - minus) / 2
        flat = np.linalg.norm(second, axis=1) <= 1e-9 * scale
        leading = np.where(flat[:, None], third, second)
        vectors += list(leading[np.linalg.norm(leading, axis=1) > 1e-9 * scale])
    return numeric_rank(np.array(vectors))


# -- bounds and verdicts ---------------------------------------------------------------------------------------------------------


def examine(
    model: Attention, orbits: Sequence[Orbit], image_dim: tuple[int, int], found: Sequence[Equation],
    lifted: Sequence[Equation] | None, macaulay2: Sequence[int] | None, *, prime: int, seed: int, clock: Clock = _NO_LIMIT,
) -> tuple[list[Stratum], list[Evidence], list[list[Line]]]:  # fmt: skip
    """Tangent bounds and verdict of every orbit, the evidence, and the curves through each representative.

    Parameters
    ----------
    image_dim: proved bounds of the variety's dimension, the lower one first.
    found, lifted: equations over F_p, and the same over ZZ where they were verified by substitution.
    macaulay2: tangent dimensions that Macaulay2 computed from its equations at the representatives.
    clock: when it is over, no more curves are looked for in many coordinates, and the bounds from below are 0.
    """
    points = [orbit.representative(model.d, model.dp) for orbit in orbits]
    lines, evidence = _curves(model, orbits, points, seed, clock)
    strata: list[Stratum] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        lower, method = _lower(orbits, [len(part) for part in lines], index)
        evidence.append(
            Evidence(f"tangent {orbit}", lower, "curves", method, certainty=Certainty.PROVED, relation=">=")
        )
        point = model.coordinates({"A": A, "V": V}).tolist()
        theirs = None if macaulay2 is None else macaulay2[index]
        upper, sure, more = _upper(orbit, point, found, lifted, theirs, prime)
        evidence += more
        dim = orbit_dim(model, A, V)
        if dim == image_dim[1] and upper != dim:
            # a reduced variety is smooth on a dense open set, and an orbit of its dimension is dense
            upper, sure = dim, Certainty.PROVED
            method = "the dense orbit of a reduced variety"
            evidence.append(
                Evidence(f"tangent {orbit}", dim, "orbits", method, certainty=Certainty.PROVED, relation="<=")
            )
        verdict, certainty = verdict_of(image_dim, lower, upper, sure)
        below = (j for j, other in enumerate(orbits) if j != index and other.in_closure_of(orbit))
        rows = {name: tuple(tuple(map(int, row)) for row in M) for name, M in (("A", A), ("V", V))}
        strata.append(
            Stratum(
                rank_a=orbit.rank_a, rank_v=orbit.rank_v, meet=orbit.meet, orbit_dim=dim, tangent_lower=lower,
                tangent_upper=upper, verdict=verdict, certainty=certainty, representative=rows, closure_contains=tuple(below),
            )
        )  # fmt: skip
    return strata, evidence, lines


def _lower(orbits: Sequence[Orbit], spans: Sequence[int], index: int) -> tuple[int, str]:
    """Tangent dimensions are upper semicontinuous: a bound at an orbit holds at every orbit in its closure."""
    above = [j for j, other in enumerate(orbits) if orbits[index].in_closure_of(other)]
    best = max(above, key=lambda j: spans[j])
    if spans[best] <= spans[index]:
        return spans[index], "span over QQ of curves through the point"
    return spans[best], f"curves at {orbits[best]}, whose closure contains this orbit (semicontinuity)"


def _curves(
    model: Attention, orbits: Sequence[Orbit], points: Sequence[tuple[np.ndarray, np.ndarray]], seed: int, clock: Clock
) -> tuple[list[list[Line]], list[Evidence]]:  # fmt: skip
    """Curves through each representative with independent tangent vectors: over QQ, and again in float64 at a moved point."""
    free = replace(model, parametrization="weights")
    lines: list[list[Line]] = []
    evidence: list[Evidence] = []
    for index, (orbit, (A, V)) in enumerate(zip(orbits, points, strict=True)):
        if model.coordinate_count > _QUICK and clock.remaining is not None and clock.remaining < 0:
            lines.append([])
            continue
        fiber, quantity = fiber_points(model, A, V), f"curves at {orbit}"
        start = time.perf_counter()
        numeric = numeric_tangent(model, fiber, (seed, 5, index))
        middle = time.perf_counter()
        rng = np.random.default_rng([seed, 4, index])
        lines.append(spanning_lines(free, fiber, rng, expected=numeric.rank))
        # Both searches draw random curves and may miss some: each count bounds the span from below.
        method = "span in float64 at a randomly moved point"
        evidence += [
            Evidence(
                quantity, len(lines[-1]), "curves", "span over QQ", certainty=Certainty.PROVED, relation=">=",
                seconds=time.perf_counter() - middle,
            ),
            evidence_of_rank(quantity, numeric, method, relation=">=", seconds=middle - start),
        ]  # fmt: skip
    return lines, evidence


def _upper(
    orbit: Orbit, point: Sequence[int], found: Sequence[Equation], lifted: Sequence[Equation] | None,
    macaulay2: int | None, prime: int,
) -> tuple[int | None, Certainty, list[Evidence]]:  # fmt: skip
    """Upper bound of the tangent dimension from equations, how sure it is, and the evidence."""
    if macaulay2 is None and not found:
        return None, Certainty.PROBABLE, []
    quantity, n = f"tangent {orbit}", len(point)
    evidence: list[Evidence] = []
    upper = n - rank_mod(gradients(found, point), prime)
    if macaulay2 is not None:
        method = "coordinates minus rank of the equations' Jacobian"
        evidence.append(Evidence(quantity, macaulay2, "macaulay2", method, relation="<=", prime=prime))
        evidence += [
            Evidence(f"Jacobian rank at {orbit}", n - macaulay2, "macaulay2", "rank", prime=prime),
            Evidence(
                f"Jacobian rank at {orbit}",
                n - upper,
                "macaulay2",
                "rank of the same equations in Python (checks the rank only)",
                prime=prime,
            ),
        ]
    if lifted is None:
        return upper, Certainty.PROBABLE, evidence
    exact = n - rank_over_q(gradients(lifted, point))
    method = "verified by substitution; rank over QQ"
    evidence.append(
        Evidence(quantity, exact, "equations over ZZ", method, certainty=Certainty.PROVED, relation="<=")
    )
    return exact, Certainty.PROVED, evidence


def decided_by_fibers(
    context: Context, model: Attention, orbits: Sequence[Orbit], strata: Sequence[Stratum], prime: int
) -> list[Stratum]:
    """The strata, with undecided ones decided smooth where the length of the fiber shows it, without equations.

    The map PP{rk A <= a} x PP(V) -> PP(coordinates) is defined everywhere and finite. Where its fiber is one reduced point of the
    smooth part of the source, it is a closed immersion nearby, and the image is smooth; the argument is in
    docs/decisions/0018-smooth-by-a-finite-map.md. The source is smooth where
    rk A = a, and everywhere for a >= d. The fiber is taken among all A, which can only make it larger.
    """
    reached = min(model.a, model.d)
    source_dim = reached * (2 * model.d - reached) + model.dp * model.d - 1
    asked = [
        i
        for i, (o, s) in enumerate(zip(orbits, strata, strict=True))
        if s.verdict == "undecided" and o.rank_v and o.rank_a and reached in (o.rank_a, model.d)
    ]
    found = list(strata)
    if not asked:
        return found
    pairs = [orbits[i].representative(model.d, model.dp) for i in asked]
    places = [[A.ravel(), V.ravel()] for A, V in pairs]
    values, _ = context.run_template("fiber_length", {"p": prime, "places": places}, model.with_rank(model.d))
    sizes = zip(values.get("fiber_dims") or (), values.get("fiber_degrees") or (), strict=True)
    for i, (A, V), (dim, degree) in zip(asked, pairs, sizes, strict=False):
        orbit = orbits[i]
        # a fiber of length one is reduced: the differential has the scaling (A, -V) in its kernel and nothing else
        kernel = model.d**2 + model.dp * model.d - rank_over_q(differential(model, A, V))
        one = (dim, degree) == (1, 2)
        context.add_evidence(
            Evidence(
                f"one reduced point over {orbit}",
                one,
                "macaulay2",
                "degree of the affine fiber is 2",
                prime=prime,
            ),
            Evidence(
                f"one reduced point over {orbit}",
                False if kernel > 1 else one,
                "modular",
                "kernel of the differential over QQ",
                prime=prime,
            ),
        )
        if one and kernel == 1:
            method = "finite map whose fiber has length one modulo p, hence over QQ"
            more: dict[str, Any] = {"certainty": Certainty.THEOREM, "detail": {"theorem": FINITE_MAP}}
            context.add_evidence(
                Evidence(
                    f"tangent {orbit}", source_dim, "finite map", method, relation="<=", prime=prime, **more
                )
            )
            found[i] = replace(
                found[i], verdict="smooth", certainty=Certainty.THEOREM, tangent_upper=source_dim
            )
    return found


# -- components ------------------------------------------------------------------------------------------------------------------


def orbit_closure(layer: Attention, orbit: Orbit) -> PolynomialMap:
    """The closure of one orbit as the image of (P, B, C).

    P is d x (r + s - c); A = P[:, :r] B, and the rows of V are combinations, by C, of the first c and the last s - c columns
    of P.
    """
    d, dp, columns = layer.d, layer.dp, orbit.joint_rank
    shapes = {"p": (d, columns), "b": (orbit.rank_a, d), "c": (dp, orbit.rank_v)}
    names = [f"{letter}{i}" for letter, shape in shapes.items() for i in range(prod(shape))]
    variables = rational_variables(names)
    P, B, C = (variable_array(variables, shape) for shape in shapes.values())
    shared = [*range(orbit.meet), *range(orbit.rank_a, columns)]
    point = layer.coordinates({"A": P[:, : orbit.rank_a] @ B, "V": C @ P[:, shared].T})
    terms = tuple(terms_of(sparse(polynomial)) for polynomial in point)
    return PolynomialMap(name=f"closure of the orbit {orbit}", variables=tuple(names), polynomials=terms)


def orbit_components(
    context: Context, model: Attention, orbits: Sequence[Orbit], strata: Sequence[Stratum], prime: int, *, equations: bool
) -> tuple[Component, ...] | None:  # fmt: skip
    """Closures of the singular orbits that lie in the closure of no other; None when an orbit is undecided.

    With `equations` their degrees and equations are computed too, each in its part of the time that is left.
    """
    if any(s.verdict == "undecided" for s in strata):
        return None
    singular = {o: s.orbit_dim for o, s in zip(orbits, strata, strict=True) if s.verdict == "singular"}
    components = []
    maximal = {
        orbit: dim
        for orbit, dim in singular.items()
        if not any(orbit != other and orbit.in_closure_of(other) for other in singular)
    }
    for number, (orbit, dim) in enumerate(maximal.items()):
        degree = texts = None
        if equations and not orbit.is_zero:
            image = orbit_closure(model, orbit)
            share = 1 / (len(maximal) - number)
            found = context.ask_question(closure, image, prime=prime, equations=True, share=share)
            if found.completeness == "complete" and found.agreement is not False and found.image_dim == dim:
                degree, texts = found.degree, tuple(e.text() for e in found.equations or ())
        ranks = (orbit.rank_a, orbit.rank_v, orbit.meet)
        components.append(Component(dim=dim, degree=degree, equations=texts, orbit=ranks))
    return tuple(components)


# -- certificates ----------------------------------------------------------------------------------------------------------------


def certificates(
    model: Attention, strata: Sequence[Stratum], lines: Sequence[Sequence[Line]], lifted: Sequence[Equation] | None,
    size: Mapping[str, Any] | None, *, seed: int,
) -> tuple[tuple[Mapping[str, Any], ...], tuple[Stratum, ...]]:  # fmt: skip
    """What `m2bridge check` verifies: the dimension, and exact verdicts at representatives; and the strata with their words.

    A verdict is proved where there is a certificate of it. That it holds on the whole orbit rests on the group, and what is known
    by semicontinuity rests on another orbit: neither has a certificate.
    """
    found, named = [] if size is None else [dict(size)], []
    for stratum, curves in zip(strata, lines, strict=True):
        if stratum.certainty is not Certainty.PROVED:
            named.append(stratum)
            continue
        if model.coordinate_count > _MOST_CERTIFIED:
            named.append(replace(stratum, certainty=Certainty.COMPUTED))
            continue
        A, V = (np.array(stratum.representative[name]) for name in "AV")
        first = A.flat if model.free is model else np.concatenate(over_q.factors(A, model.a)).flat
        weights, own = [*first, *V.flat], None  # of model.free
        if stratum.verdict == "singular":
            own = singular_point_certificate(model, weights, [_arc(model, line) for line in curves], size)
        elif stratum.verdict == "smooth" and lifted is not None:
            image = model.coordinates({"A": A, "V": V}).tolist()
            own = smooth_point_certificate(model, weights, image, lifted, seed=seed)
        found += [own] if own is not None else []
        named.append(stratum if own is not None else replace(stratum, certainty=Certainty.COMPUTED))
    return tuple(found), tuple(named)


def _arc(model: Attention, line: Line) -> Arc:
    """A line of (Q, K, V) as an arc of the weights of ``model.free``: K^T Q is of degree two."""
    base, direction, vector = line
    if model.free is not model:
        return np.stack([base, direction], axis=1).tolist(), vector
    parts = replace(model, parametrization="weights").unflatten(np.stack([base, direction]))
    (Q, dQ), (K, dK), (V, dV) = (parts[name] for name in "QKV")
    A = np.stack([K.T @ Q, dK.T @ Q + K.T @ dQ, dK.T @ dQ], axis=-1)
    paths = [*A.reshape(-1, 3).tolist(), *np.stack([V, dV], axis=-1).reshape(-1, 2).tolist()]
    return paths, vector
