"""The second witnesses: everything that Macaulay2 says, computed again from the network's own forward pass.

Nothing here reads a template. Macaulay2's equations are used only to check that they vanish on points of the image that the
forward pass produced, and that ranks of their Jacobians were computed rightly: those are checks of the equations and of the rank.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.numeric import numeric_rank
from m2bridge.models import Lightning, Mod
from m2bridge.models.evaluation import output_jacobian
from m2bridge.protocol import Values
from m2bridge.questions.closure.degrees import formula_degree
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import interpolate
from m2bridge.questions.samples import inputs_for
from m2bridge.questions.singular_locus.equations import Equation, read
from m2bridge.questions.singular_locus.equations import degrees as count_degrees
from m2bridge.results import Certainty, Evidence

if TYPE_CHECKING:
    from m2bridge.questions.singular_locus import Sent

RANK_PRIME = 8_388_593
_FRESH_POINTS = 20


@dataclass(frozen=True, slots=True)
class ImageDim:
    """Proved bounds of the dimension of the image over QQ; equal when it is known."""

    lower: int
    upper: int

    @property
    def known(self) -> bool:
        return self.lower == self.upper


def image_dim(model: Lightning, seed: int) -> tuple[ImageDim, list[Evidence]]:
    """Dimension of the image of (Q, K, V) -> network, bounded from both sides exactly and estimated in float64."""
    free = replace(model, parametrization="weights")
    rng = np.random.default_rng([seed, 1])
    start = time.perf_counter()
    weights = {name: Mod(value, RANK_PRIME) for name, value in free.draw_weights(rng, RANK_PRIME).items()}
    samples = inputs_for(free, free.parameter_count, spare=2)
    inputs = Mod(rng.integers(0, RANK_PRIME, size=(samples, free.d, free.t)), RANK_PRIME)
    lower = rank_mod(output_jacobian(free, weights, inputs).values, RANK_PRIME)
    middle = time.perf_counter()
    moves = np.concatenate([symmetry.generators(weights).values for symmetry in free.symmetries])
    upper = free.parameter_count - rank_mod(moves, RANK_PRIME)
    after = time.perf_counter()
    J = float_jacobian(free, _float_weights(free, rng), rng.standard_normal((samples, free.d, free.t)))
    numeric = numeric_rank(J)
    done = time.perf_counter()
    evidence = [
        Evidence(
            quantity="image_dim",
            witness="modular",
            method="rank of the forward pass's Jacobian at a random point",
            value=lower,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=RANK_PRIME,
            seconds=middle - start,
            detail={"inputs": samples},
        ),
        Evidence(
            quantity="image_dim",
            witness="symmetry",
            method="weights minus rank of the symmetries' infinitesimal action",
            value=upper,
            relation="<=",
            certainty=Certainty.PROVED,
            prime=RANK_PRIME,
            seconds=after - middle,
        ),
        Evidence(
            quantity="image_dim",
            witness="numpy",
            method="singular values of the forward pass's Jacobian",
            value=numeric.rank,
            certainty=Certainty.NUMERIC,
            seconds=done - after,
            detail={"gap": finite(numeric.gap)},
        ),
    ]
    return ImageDim(lower, upper), evidence


def finite(number: float) -> float | None:
    """A float that JSON can hold; None for an infinite gap."""
    return float(number) if np.isfinite(number) else None


def _float_weights(model: Lightning, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.standard_normal(shape) for name, shape in model.parameters.items()}


def float_jacobian(model: Lightning, weights: dict[str, np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """Jacobian of the outputs at all inputs with respect to the weights, a column a weight."""
    return np.asarray(output_jacobian(model, weights, inputs))


def of_the_script(sent: Sent, values: Values, seconds: float) -> list[Evidence]:
    """Macaulay2's network against ours: value at one input, image point, dimension, span, degree."""
    model, p = sent.model, sent.prime
    evidence: list[Evidence] = []

    def said(quantity: str, method: str, value: Any, **fields: Any) -> Evidence:
        return Evidence(
            quantity=quantity,
            witness="macaulay2",
            method=method,
            value=value,
            prime=p,
            seconds=seconds,
            **fields,
        )

    weights = {name: Mod(value, p) for name, value in sent.weights.items()}
    output = model.forward(weights, Mod(sent.inputs, p)).values.ravel().tolist()
    point = model.coordinates(weights).values.tolist()
    for quantity, tag, ours in (("network output", "output", output), ("image point", "image_point", point)):
        if tag in values:
            theirs = [int(v) % p for v in values.strings(tag)]
            evidence += [
                said(quantity, "the script's network at a random point", theirs),
                Evidence(
                    quantity=quantity,
                    witness="modular",
                    method="the forward pass at the same point",
                    value=ours,
                    prime=p,
                ),
            ]
    if "jacobian_rank" in values:
        method = "rank of the coordinates' Jacobian at a random point"
        rank = values.integer("jacobian_rank")
        evidence.append(said("image_dim", method, rank, relation=">=", certainty=Certainty.PROVED))
    if "span_dim" in values:
        evidence.append(said("span_dim", "independent coordinates", values.integer("span_dim")))
    evidence.append(
        Evidence(
            quantity="span_dim",
            witness="modular",
            method="rank of outputs at random weights and inputs",
            value=function_span(model, sent.seed),
            relation=">=",
            certainty=Certainty.PROVED,
            prime=RANK_PRIME,
        )
    )
    evidence.append(
        Evidence(
            quantity="span_dim",
            witness="Proposition A.5",
            method="number of Segre coordinates, which determine the network",
            value=model.coordinate_count,
            relation="<=",
            certainty=Certainty.PROVED,
        )
    )
    return evidence + _representatives(sent, values)


def _representatives(sent: Sent, values: Values) -> list[Evidence]:
    """The point that stands for each orbit: Macaulay2's ranks of A, V and [A | V^T] against those that define the orbit."""
    if "stratum_ranks" not in values:
        return []
    return [
        Evidence(
            quantity=f"ranks {orbit}",
            witness=witness,
            method=method,
            value=ranks,
            prime=sent.prime,
        )
        for orbit, theirs in zip(sent.orbits, values["stratum_ranks"], strict=True)
        for witness, method, ranks in (
            ("macaulay2", "rk A, rk V, rk [A | V^T] at the representative", theirs),
            ("orbits", "the ranks that define the orbit", [orbit.rank_a, orbit.rank_v, orbit.joint_rank]),
        )
    ]


def over_the_rationals(model: Lightning, values: Values) -> list[Evidence]:
    """What the same script finds over QQ: exact, so proved as far as Macaulay2 is right."""
    evidence = []
    for quantity in ("codim", "degree", "singular_dim", "singular_degree"):
        if quantity in values:
            evidence.append(_proved_by_macaulay2(quantity, values.integer(quantity)))
    if "equations" in values:
        counts = count_degrees(read(model, values.strings("equations"), None))
        evidence.append(_proved_by_macaulay2("generators", counts))
    return evidence


def _proved_by_macaulay2(quantity: str, value: Any) -> Evidence:
    return Evidence(
        quantity=quantity, witness="macaulay2", method="over QQ", value=value, certainty=Certainty.PROVED
    )


def _codim(model: Lightning, seed: int) -> Evidence:
    """Span minus dimension: proved when the span has all coordinates and the bounds of the dimension meet."""
    span = function_span(model, seed)
    bounds, _ = image_dim(model, seed)
    sure = span == model.coordinate_count and bounds.known
    return Evidence(
        quantity="codim",
        witness="modular",
        method="span minus dimension of the image",
        value=span - bounds.lower,
        certainty=Certainty.PROVED if sure else Certainty.PROBABLE,
    )


def function_span(model: Lightning, seed: int) -> int:
    """Dimension of the linear span of all networks as functions of X, from the forward pass with t tokens."""
    rng = np.random.default_rng([seed, 2])
    count = model.coordinate_count + 8
    inputs = Mod(rng.integers(0, RANK_PRIME, size=(count, model.d, model.t)), RANK_PRIME)
    rows = []
    for _ in range(count):
        weights = {
            name: Mod(value, RANK_PRIME) for name, value in model.draw_weights(rng, RANK_PRIME).items()
        }
        rows.append(model.forward(weights, inputs).values.ravel())
    return rank_mod(np.array(rows), RANK_PRIME)


def of_the_closure(sent: Sent, found: tuple[Equation, ...], values: Values) -> list[Evidence]:
    """The equations against points of the image: vanishing, generators, Hilbert function, dimension, degree."""
    model, p = sent.model, sent.prime
    evidence: list[Evidence] = []
    if "equations" not in values:
        return evidence
    source = "kernel of the coordinate map" if sent.wants_kernel else "ideal of the interpolated equations"
    start = time.perf_counter()
    fresh = image_of(model).points(np.random.default_rng([sent.seed, 3]), _FRESH_POINTS, p).astype(object)
    vanish = sum(1 for equation in found if not equation.at(fresh).any())
    evidence += [
        Evidence(
            quantity="vanishing equations",
            witness="macaulay2" if sent.wants_kernel else "interpolation",
            method=source,
            value=len(found),
            prime=p,
        ),
        Evidence(
            quantity="vanishing equations",
            witness="modular",
            method=f"{_FRESH_POINTS} fresh points of the image",
            value=vanish,
            prime=p,
            seconds=time.perf_counter() - start,
        ),
    ]
    if not sent.wants_ideal:
        return evidence
    start = time.perf_counter()
    interpolation = interpolate(model, sent.hilbert_degrees, prime=p, seed=sent.seed)
    seconds = time.perf_counter() - start
    reached = interpolation.degree_reached
    evidence += [
        Evidence(
            quantity="generators",
            witness="macaulay2",
            method=f"minimal generators, {source}",
            value={k: n for k, n in count_degrees(found).items() if int(k) <= reached},
            prime=p,
        ),
        Evidence(
            quantity="generators",
            witness="interpolation",
            method=f"points of the image, up to degree {reached}",
            value={str(k): n for k, n in interpolation.counts.items()},
            prime=p,
            seconds=seconds,
        ),
    ]
    if "hilbert_function" in values:
        evidence += [
            Evidence(
                quantity="Hilbert function",
                witness="macaulay2",
                method=source,
                value=list(values.integers("hilbert_function"))[:reached],
                prime=p,
            ),
            Evidence(
                quantity="Hilbert function",
                witness="interpolation",
                method="ranks of monomials at image points",
                value=list(interpolation.hilbert_function[1:]),
                prime=p,
                seconds=seconds,
            ),
        ]
    if "codim" in values:
        evidence += [
            Evidence(
                quantity="codim",
                witness="macaulay2",
                method=source,
                value=values.integer("codim"),
                prime=p,
            ),
            _codim(model, sent.seed),
        ]
        evidence.append(
            Evidence(
                quantity="image_dim",
                witness="macaulay2",
                method=f"dimension, {source}",
                value=model.coordinate_count - values.integer("codim"),
                prime=p,
            )
        )
    if "degree" in values:
        evidence += [
            Evidence(
                quantity="degree",
                witness="macaulay2",
                method=source,
                value=values.integer("degree"),
                prime=p,
            ),
        ]
        if (counted := formula_degree(model)) is not None:
            evidence.append(counted)
    return evidence
