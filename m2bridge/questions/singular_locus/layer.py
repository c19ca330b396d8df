"""One layer of lightning attention: what is sent to Macaulay2, its equations, and everything that it says computed again here.

The second witnesses come from the network's own forward pass; nothing here reads a template. Macaulay2's equations are used only
to check that they vanish on points of the image that the forward pass produced, and that ranks of their Jacobians are right.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Attention, Mod, Model
from m2bridge.linear.modular import eliminate, rank_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import rational
from m2bridge.protocol import Values
from m2bridge.questions.closure import Equation, equation, image_of, interpolate
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Context
from m2bridge.questions.orbits import Orbit, all_orbits

_KERNEL_COORDINATES = 12
_IDEAL_COORDINATES = 18
_SCHEME_COORDINATES = 6
_INTERPOLATION_DEGREES = ((60, 4), (90, 3), (200, 2))
"""(most coordinates, degree): equations are sought up to the degree where their number stays moderate."""
_FRESH_POINTS = 20


def layer_of(model: Model, question: str, most: int, why: str, *, force: bool) -> Attention:
    """The one-layer model in the coordinates that questions about orbits use, or a clear refusal."""
    layer = model.knowledge.layer
    if layer is None:
        raise InputError(
            f"{question} is about one layer of lightning attention; {model} is not: `m2bridge membership` places a point of "
            "any polynomial model in the closure, the complex image and the real image"
        )
    if layer.t < 2:
        raise InputError(
            f"{question} needs t >= 2: with one token the Segre coordinates do not determine the network; give --t 2, or ask "
            "`singular-point` at weights"
        )
    layer = replace(layer, parametrization="attention", coordinate_system="segre")
    if layer.coordinate_count > most and not force:
        raise OutOfReachError(
            f"{layer} has {layer.coordinate_count} coordinates; beyond {most} {why}; --force tries anyway",
            estimate=layer.coordinate_count,
        )
    return layer


def ask_dimension(context: Context, model: Attention) -> Dimension:
    """The dimension of the image from both sides; the words of the question about it are kept."""
    context.report_progress("dimension")
    size = context.ask_question(dimension, replace(model, parametrization="weights"), engine=False)
    context.add_evidence(*(e for e in size.evidence if e.quantity == "image_dim" and e.value is not None))
    return size


@dataclass(frozen=True, slots=True)
class Sent:
    """What is sent to Macaulay2, drawn from the seed in Python so that it is the same on every engine."""

    model: Attention
    prime: int
    seed: int
    orbits: tuple[Orbit, ...]
    weights: dict[str, np.ndarray] = field(hash=False)
    inputs: np.ndarray = field(hash=False)

    @classmethod
    def draw(cls, model: Attention, prime: int, seed: int) -> Sent:
        rng = np.random.default_rng(seed)
        drawn = replace(model, parametrization="weights").draw_weights(rng, prime)
        weights = {
            "A": drawn["K"].T @ drawn["Q"],
            "V": drawn["V"],
        }  # rk A <= a over ZZ, not only modulo the prime
        inputs = rng.integers(0, prime, size=(model.d, model.t))
        return cls(model, prime, seed, all_orbits(model.d, model.dp, model.a), weights, inputs)

    @property
    def scheme(self) -> bool:
        """Whether Jacobian minors are few: (2,1,a), hypersurfaces, and little else. All is computed over QQ then."""
        return self.model.coordinate_count <= _SCHEME_COORDINATES

    @property
    def whole_ideal(self) -> bool:
        """Whether the whole ideal is asked for, with its invariants, and not only bounds of tangent spaces."""
        return self.model.coordinate_count <= _IDEAL_COORDINATES

    @property
    def kernel(self) -> bool:
        """Whether Macaulay2's plain elimination is quick."""
        return self.model.coordinate_count <= _KERNEL_COORDINATES

    @property
    def p(self) -> int:
        """The characteristic of Macaulay2's computation."""
        return 0 if self.scheme else self.prime

    @property
    def hilbert_degrees(self) -> int:
        return 5 if self.scheme else 4

    @property
    def representatives(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [orbit.representative(self.model.d, self.model.dp) for orbit in self.orbits]

    def parameters(self, given: Sequence[Equation] = ()) -> dict[str, object]:
        """Values for the template; `given` equations are used instead of Macaulay2's kernel."""
        return {
            "p": self.p,
            "point": [self.weights["A"].ravel(), self.weights["V"].ravel()],
            "inputs": self.inputs.ravel(),
            "strata": [[A.ravel(), V.ravel()] for A, V in self.representatives],
            "hilbertDegrees": self.hilbert_degrees,
            "given": [[list(e.coefficients), [list(m) for m in e.monomials]] for e in given],
            "wantKernel": self.kernel,
            "invariants": self.whole_ideal,
            "scheme": self.scheme,
            "orbits": [[o.rank_a, o.rank_v, o.meet] for o in self.orbits[:-1]],  # the last one is dense
        }

    def given_equations(self) -> tuple[Equation, ...]:
        """Equations found by interpolation where Macaulay2's kernel is slow; all, or the few that matter."""
        degree = next((k for size, k in _INTERPOLATION_DEGREES if self.model.coordinate_count <= size), None)
        if self.kernel or degree is None:
            return ()
        found = interpolated(self.model, self.prime, self.seed, degree)
        if self.whole_ideal:
            return found
        points = [self.model.coordinates({"A": A, "V": V}).tolist() for A, V in self.representatives]
        return decisive(found, points, self.prime)

    def said(self, quantity: str, value: Any, method: str) -> Evidence:
        """What Macaulay2 said, exact over its field."""
        if self.p:
            return Evidence(quantity, value, "macaulay2", method, prime=self.p)
        return Evidence(quantity, value, "macaulay2", f"{method}, over QQ", certainty=Certainty.COMPUTED)


# -- equations -------------------------------------------------------------------------------------------------------------------


def read(values: Values, count: int, p: int) -> tuple[Equation, ...]:
    """The equations in `count` coordinates that the template emitted, over F_p, or over QQ for p = 0."""
    found = values.polynomials(values.get("equations") or (), count, p)
    return tuple(equation(terms, range(count), p=p) for terms in found)


def interpolated(model: Attention, prime: int, seed: int, degree: int) -> tuple[Equation, ...]:
    """Equations of the image up to a degree, found from its points over F_p."""
    found = interpolate(model, degree, prime=prime, seed=seed)
    listed = (terms for polynomials in found.generators.values() for terms in polynomials)
    return tuple(equation(terms, found.span.basis, p=prime) for terms in listed)


def gradients(equations: Sequence[Equation], point: Sequence[int]) -> np.ndarray:
    """The Jacobian at a point, one row an equation."""
    return np.array([e.gradient(point) for e in equations], dtype=object).reshape(-1, len(point))


def decisive(
    equations: Sequence[Equation], points: Sequence[Sequence[int]], prime: int
) -> tuple[Equation, ...]:
    """A few of the equations whose Jacobians have, at each of the points, the rank that all of them have."""
    kept = {i for point in points for i in eliminate(gradients(equations, point), prime).pivot_rows}
    return tuple(equations[i] for i in sorted(kept))


def degree_counts(equations: Iterable[Equation]) -> dict[str, int]:
    """Number of equations of each degree."""
    return {str(degree): count for degree, count in sorted(Counter(e.degree for e in equations).items())}


def lifted(model: Attention, equations: Sequence[Equation], p: int) -> tuple[Equation, ...] | None:
    """The equations over ZZ, each verified to vanish identically on the image by substitution; None if one cannot be.

    Coefficients over F_p are guessed by rational reconstruction; the substitution decides, so a wrong guess cannot pass.
    """
    polynomials = image_of(model).polynomials
    if polynomials is None:
        return None
    result = []
    for given in equations:
        guess = given
        if p:
            fractions = [rational(c, p) for c in given.coefficients]
            known = [f for f in fractions if f is not None]
            if len(known) < len(fractions):
                return None
            scale = lcm(*(f.denominator for f in known))
            guess = replace(given, coefficients=tuple(int(f * scale) for f in known))
        if guess.at(polynomials) != 0:
            return None
        result.append(guess)
    return tuple(result)


# -- witnesses -------------------------------------------------------------------------------------------------------------------


def network_evidence(sent: Sent, values: Values, seconds: float) -> list[Evidence]:
    """Macaulay2's network against ours: value at one input, image point, dimension, span, ranks at the representatives."""
    model, p = sent.model, sent.prime
    evidence: list[Evidence] = []
    weights = {name: Mod(value % p, p) for name, value in sent.weights.items()}
    output = model.forward(weights, Mod(sent.inputs, p)).values.ravel().tolist()
    point = model.coordinates(weights).values.tolist()
    for quantity, tag, ours in (("network output", "output", output), ("image point", "image_point", point)):
        if tag in values:
            theirs = [int(v) % p for v in values.strings(tag)]
            evidence += [
                Evidence(quantity, theirs, "macaulay2", "the script's network at a random point", prime=p),
                Evidence(quantity, ours, "modular", "the forward pass at the same point", prime=p),
            ]
    if "jacobian_rank" in values:
        method = "rank of the coordinates' Jacobian at a random point"
        more: dict[str, Any] = {"relation": ">=", "prime": sent.p or None, "seconds": seconds}
        more["certainty"] = Certainty.COMPUTED
        evidence.append(Evidence("image_dim", values.integer("jacobian_rank"), "macaulay2", method, **more))
    if "span_dim" in values:
        evidence.append(sent.said("span_dim", values.integer("span_dim"), "independent coordinates"))
    more = {"relation": ">=", "prime": LARGE_PRIME}
    method, least = "rank of outputs at random weights and inputs", function_span(model, sent.seed)
    evidence.append(Evidence("span_dim", least, "modular", method, certainty=Certainty.PROVED, **more))
    method, most = "number of Segre coordinates, which determine the network", model.coordinate_count
    evidence.append(
        Evidence("span_dim", most, "Proposition A.5", method, certainty=Certainty.PROVED, relation="<=")
    )
    listed = values.get("stratum_ranks")
    for orbit, theirs in zip(sent.orbits, listed, strict=True) if listed else ():
        evidence += [
            Evidence(
                f"ranks {orbit}",
                theirs,
                "macaulay2",
                "rk A, rk V, rk [A | V^T] at the representative",
                prime=p,
            ),
            Evidence(
                f"ranks {orbit}",
                [orbit.rank_a, orbit.rank_v, orbit.joint_rank],
                "orbits",
                "the ranks that define the orbit",
                prime=p,
            ),
        ]
    return evidence


@lru_cache(maxsize=8)
def function_span(model: Attention, seed: int) -> int:
    """Dimension of the linear span of all networks as functions of X, from the forward pass with t tokens."""
    rng, p = np.random.default_rng([seed, 2]), LARGE_PRIME
    count = model.coordinate_count + 8
    inputs = Mod(rng.integers(0, p, size=(count, model.d, model.t)), p)
    rows = []
    for _ in range(count):
        weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
        rows.append(model.forward(weights, inputs).values.ravel())
    return rank_mod(np.array(rows), p)


def closure_evidence(
    sent: Sent, found: tuple[Equation, ...], values: Values, image_dim: tuple[int, int]
) -> list[Evidence]:
    """The equations against points of the image: vanishing, generators, Hilbert function, dimension, degree."""
    if "equations" not in values:
        return []
    model, prime = sent.model, sent.prime
    source = "kernel of the coordinate map" if sent.kernel else "ideal of the interpolated equations"
    image = image_of(model)
    points = image.points(np.random.default_rng([sent.seed, 3]), _FRESH_POINTS, prime)
    columns = list(points.astype(object).T)
    vanish = sum(not np.any(equation.at(columns) % prime) for equation in found)
    evidence = [
        Evidence(
            "vanishing equations",
            len(found),
            "macaulay2" if sent.kernel else "interpolation",
            source,
            prime=prime,
        ),
        Evidence(
            "vanishing equations",
            vanish,
            "modular",
            f"{_FRESH_POINTS} fresh points of the image",
            prime=prime,
        ),
    ]
    if not sent.whole_ideal:
        return evidence
    start = time.perf_counter()
    ours = interpolate(image, sent.hilbert_degrees, prime=prime, seed=sent.seed)
    more: dict[str, Any] = {"prime": prime, "seconds": time.perf_counter() - start}
    reached = ours.degree_reached
    theirs = {k: n for k, n in degree_counts(found).items() if int(k) <= reached}
    counts = {str(k): n for k, n in ours.counts.items()}
    method = f"points of the image, up to degree {reached}"
    evidence += [
        sent.said("generators", theirs, f"minimal generators, {source}"),
        Evidence("generators", counts, "interpolation", method, **more),
    ]
    if "hilbert_function" in values:
        heights = list(values.integers("hilbert_function"))[:reached]
        ranks, method = list(ours.hilbert_function[1:]), "ranks of monomials at image points"
        evidence.append(sent.said("Hilbert function", heights, source))
        evidence.append(Evidence("Hilbert function", ranks, "interpolation", method, **more))
    if "codim" in values:
        codim, span = values.integer("codim"), function_span(model, sent.seed)
        # our codimension is proved when span and dimension are known
        proved = span == model.coordinate_count and image_dim[0] == image_dim[1]
        sure = Certainty.PROVED if proved else Certainty.PROBABLE
        evidence += [
            sent.said("codim", codim, source),
            Evidence(
                "codim", span - image_dim[0], "modular", "span minus dimension of the image", certainty=sure
            ),
            sent.said("image_dim", model.coordinate_count - codim, f"dimension, {source}"),
        ]
    if "degree" in values:
        evidence.append(sent.said("degree", values.integer("degree"), source))
        counted = model.knowledge.closure_degree
        if counted is not None and counted.value is not None:
            evidence.append(
                Evidence("degree", counted.value, "formula", counted.citation, ancestry="literature")
            )
    return evidence
