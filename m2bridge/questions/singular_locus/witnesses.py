"""The second witnesses: everything that Macaulay2 says, computed again from the network's own forward pass.

Nothing here reads a template. Macaulay2's equations are used only to check that they vanish on points of the image that the
forward pass produced, and that ranks of their Jacobians were computed rightly: those are checks of the equations and of the rank.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.models import Lightning, Mod
from m2bridge.protocol import Values
from m2bridge.questions.closure import Equation, interpolate
from m2bridge.questions.closure.accounting import formula_degree
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.singular_locus.equations import degree_counts, read
from m2bridge.questions.testimony import compared, proves, says
from m2bridge.results import Evidence

if TYPE_CHECKING:
    from m2bridge.questions.singular_locus import Sent

_FRESH_POINTS = 20


def network_evidence(sent: Sent, values: Values, seconds: float) -> list[Evidence]:
    """Macaulay2's network against ours: value at one input, image point, dimension, span, ranks at the representatives."""
    model, p = sent.model, sent.prime
    evidence: list[Evidence] = []
    weights = {name: Mod(value, p) for name, value in sent.weights.items()}
    output = model.forward(weights, Mod(sent.inputs, p)).values.ravel().tolist()
    point = model.coordinates(weights).values.tolist()
    for quantity, tag, ours in (("network output", "output", output), ("image point", "image_point", point)):
        if tag in values:
            theirs = [int(v) % p for v in values.strings(tag)]
            evidence += compared(
                quantity, ("macaulay2", "the script's network at a random point", theirs),
                ("modular", "the forward pass at the same point", ours), prime=p,
            )  # fmt: skip
    if "jacobian_rank" in values:
        rank, method = values.integer("jacobian_rank"), "rank of the coordinates' Jacobian at a random point"
        evidence.append(
            proves("image_dim", rank, "macaulay2", method, relation=">=", prime=p, seconds=seconds)
        )
    if "span_dim" in values:
        evidence.append(
            says("span_dim", values.integer("span_dim"), "macaulay2", "independent coordinates", prime=p)
        )
    method, most = "number of Segre coordinates, which determine the network", model.coordinate_count
    evidence += [
        proves(
            "span_dim", function_span(model, sent.seed), "modular", "rank of outputs at random weights and inputs",
            relation=">=", prime=LARGE_PRIME,
        ),
        proves("span_dim", most, "Proposition A.5", method, relation="<="),
    ]  # fmt: skip
    listed = values.get("stratum_ranks")
    for orbit, theirs in zip(sent.orbits, listed, strict=True) if listed else ():
        evidence += compared(
            f"ranks {orbit}", ("macaulay2", "rk A, rk V, rk [A | V^T] at the representative", theirs),
            ("orbits", "the ranks that define the orbit", [orbit.rank_a, orbit.rank_v, orbit.joint_rank]), prime=p,
        )  # fmt: skip
    return evidence


@lru_cache(maxsize=8)
def function_span(model: Lightning, seed: int) -> int:
    """Dimension of the linear span of all networks as functions of X, from the forward pass with t tokens."""
    rng, p = np.random.default_rng([seed, 2]), LARGE_PRIME
    count = model.coordinate_count + 8
    inputs = Mod(rng.integers(0, p, size=(count, model.d, model.t)), p)
    rows = []
    for _ in range(count):
        weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
        rows.append(model.forward(weights, inputs).values.ravel())
    return rank_mod(np.array(rows), p)


def rational_evidence(model: Lightning, values: Values) -> list[Evidence]:
    """What the same script finds over QQ: exact, so proved as far as Macaulay2 is right."""
    names = [name for name in ("codim", "degree", "singular_dim", "singular_degree") if name in values]
    found = [proves(name, values.integer(name), "macaulay2", "over QQ") for name in names]
    if "equations" in values:
        counts = degree_counts(read(values, model.coordinate_count, 0))
        found.append(proves("generators", counts, "macaulay2", "over QQ"))
    return found


def closure_evidence(
    sent: Sent, found: tuple[Equation, ...], values: Values, image_dim: tuple[int, int]
) -> list[Evidence]:
    """The equations against points of the image: vanishing, generators, Hilbert function, dimension, degree."""
    if "equations" not in values:
        return []
    model, p = sent.model, sent.prime
    source = "kernel of the coordinate map" if sent.wants_kernel else "ideal of the interpolated equations"
    points = image_of(model).points(np.random.default_rng([sent.seed, 3]), _FRESH_POINTS, p)
    columns = list(points.astype(object).T)
    vanish = sum(not np.any(equation.at(columns) % p) for equation in found)
    evidence = compared(
        "vanishing equations", ("macaulay2" if sent.wants_kernel else "interpolation", source, len(found)),
        ("modular", f"{_FRESH_POINTS} fresh points of the image", vanish), prime=p,
    )  # fmt: skip
    if sent.wants_ideal:
        evidence += _invariants(sent, found, values, source) + _sizes(sent, values, source, image_dim)
    return evidence


def _invariants(sent: Sent, found: tuple[Equation, ...], values: Values, source: str) -> list[Evidence]:
    """Minimal generators and Hilbert function, by Macaulay2 and by interpolation."""
    start = time.perf_counter()
    interpolation = interpolate(sent.model, sent.hilbert_degrees, prime=sent.prime, seed=sent.seed)
    more = {"prime": sent.prime, "seconds": time.perf_counter() - start}
    reached = interpolation.degree_reached
    theirs = {k: n for k, n in degree_counts(found).items() if int(k) <= reached}
    ours = {str(k): n for k, n in interpolation.counts.items()}
    evidence = compared(
        "generators", ("macaulay2", f"minimal generators, {source}", theirs),
        ("interpolation", f"points of the image, up to degree {reached}", ours), **more,
    )  # fmt: skip
    if "hilbert_function" in values:
        theirs_too = list(values.integers("hilbert_function"))[:reached]
        how, ranks = "ranks of monomials at image points", list(interpolation.hilbert_function[1:])
        sayings = ("macaulay2", source, theirs_too), ("interpolation", how, ranks)
        evidence += compared("Hilbert function", *sayings, **more)
    return evidence


def _sizes(sent: Sent, values: Values, source: str, image_dim: tuple[int, int]) -> list[Evidence]:
    """Codimension and degree of Macaulay2's ideal; our codimension is proved when span and dimension are known."""
    model, p = sent.model, sent.prime
    evidence: list[Evidence] = []
    if "codim" in values:
        codim, n = values.integer("codim"), model.coordinate_count
        span = function_span(model, sent.seed)
        say = proves if span == n and image_dim[0] == image_dim[1] else says
        evidence += [
            says("codim", codim, "macaulay2", source, prime=p),
            say("codim", span - image_dim[0], "modular", "span minus dimension of the image"),
            says("image_dim", n - codim, "macaulay2", f"dimension, {source}", prime=p),
        ]
    if "degree" in values:
        evidence.append(says("degree", values.integer("degree"), "macaulay2", source, prime=p))
        if (counted := formula_degree(model)) is not None:
            evidence.append(counted)
    return evidence
