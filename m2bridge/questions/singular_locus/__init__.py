"""Where is the neuromanifold of one layer of attention singular? Every orbit is asked, from both sides.

Equations bound tangent spaces from above and show smoothness; curves bound them from below and show singularity. The
group makes one point an orbit enough. Macaulay2 gives the equations and, where it is small, the singular scheme itself;
everything else is computed here from the network's own definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME, MACAULAY2_PRIME
from m2bridge.models import Lightning, Model
from m2bridge.protocol import Values
from m2bridge.questions.asking import prime_between
from m2bridge.questions.closure import Equation, closure
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Asking, ForceOption, question
from m2bridge.questions.singular_locus import equations as equations_of
from m2bridge.questions.singular_locus import witnesses
from m2bridge.questions.singular_locus.by_fiber import decided_by_fibers
from m2bridge.questions.singular_locus.certified import certificates
from m2bridge.questions.singular_locus.components import orbit_components, top_degree
from m2bridge.questions.singular_locus.general import general_locus
from m2bridge.questions.singular_locus.orbits import Orbit, all_orbits
from m2bridge.questions.singular_locus.result import Component, SingularLocus, Stratum
from m2bridge.questions.singular_locus.strata import examine
from m2bridge.questions.testimony import compared, says
from m2bridge.results import Certainty, Evidence, labelled, settle

__all__ = ["Component", "Sent", "SingularLocus", "Stratum", "layer_of", "singular_locus"]

TEMPLATE = "singular_locus"
DEFAULT_PRIME = MACAULAY2_PRIME
PRIMES = (101, LARGEST_MACAULAY2_PRIME)
_MOST_COORDINATES = 2500
_KERNEL_COORDINATES = 12
_IDEAL_COORDINATES = 18
_SCHEME_COORDINATES = 6
_INTERPOLATION_DEGREES = ((60, 4), (90, 3), (200, 2))
"""(most coordinates, degree): equations are sought up to the degree where their number stays moderate."""
_REPORTED = ("image_dim", "span_dim", "codim", "degree", "generators", "singular_dim", "singular_degree")


def layer_of(model: Model, question: str, most: int, why: str, *, force: bool) -> Lightning:
    """The one-layer model in the coordinates that questions about orbits use, or a clear refusal."""
    if not isinstance(model, Lightning):
        raise InputError(f"{question} is about one layer of lightning attention; {model.spec} is not")
    if model.t < 2:
        raise InputError(
            f"{question} needs t >= 2: with one token the Segre coordinates do not determine the network"
        )
    model = replace(model, parametrization="attention", coordinate_system="segre")
    if model.coordinate_count > most and not force:
        raise OutOfReachError(
            f"{model.spec} has {model.coordinate_count} coordinates; beyond {most} {why}; --force tries anyway",
            estimate=model.coordinate_count,
        )
    return model


def check_model(model: Model, prime: int, *, force: bool = False) -> Lightning:
    """The model as this question uses it, and a prime that it can compute with, or a clear refusal."""
    checked = layer_of(model, "singular-locus", _MOST_COORDINATES, "the exact ranks take hours", force=force)
    prime_between(prime, *PRIMES)
    return checked


@dataclass(frozen=True, slots=True)
class Sent:
    """What is sent to Macaulay2, drawn from the seed in Python so that it is the same on every engine."""

    model: Lightning
    prime: int
    seed: int
    orbits: tuple[Orbit, ...]
    weights: dict[str, np.ndarray] = field(hash=False)
    inputs: np.ndarray = field(hash=False)

    @classmethod
    def draw(cls, model: Lightning, prime: int, seed: int) -> Sent:
        rng = np.random.default_rng(seed)
        weights = model.draw_weights(rng, prime)
        inputs = rng.integers(0, prime, size=(model.d, model.t))
        return cls(model, prime, seed, all_orbits(model.d, model.dp, model.a), weights, inputs)

    @property
    def hilbert_degrees(self) -> int:
        return 5 if self.model.coordinate_count <= _SCHEME_COORDINATES else 4

    def parameters(self, given: Sequence[Equation] = ()) -> dict[str, object]:
        """Values for the template; `given` equations are used instead of Macaulay2's kernel."""
        return {
            "p": self.prime,
            "point": [self.weights["A"].ravel(), self.weights["V"].ravel()],
            "inputs": self.inputs.ravel(),
            "strata": [[A.ravel(), V.ravel()] for A, V in self.representatives],
            "hilbertDegrees": self.hilbert_degrees,
            "given": equations_of.as_lists(given),
            "wantKernel": self.wants_kernel,
            "invariants": self.wants_ideal,
            "scheme": self.wants_scheme and not given,
        }

    def given_equations(self) -> tuple[Equation, ...]:
        """Equations found by interpolation where Macaulay2's kernel is slow; all, or the few that matter."""
        degree = next((k for size, k in _INTERPOLATION_DEGREES if self.model.coordinate_count <= size), None)
        if self.wants_kernel or degree is None:
            return ()
        found = equations_of.interpolated(self.model, self.prime, self.seed, degree)
        if self.wants_ideal:
            return found
        points = [self.model.coordinates({"A": A, "V": V}).tolist() for A, V in self.representatives]
        return equations_of.decisive(found, points, self.prime)

    @property
    def representatives(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [orbit.representative(self.model.d, self.model.dp) for orbit in self.orbits]

    @property
    def wants_scheme(self) -> bool:
        """Whether Jacobian minors are few: (2,1,a), hypersurfaces, and little else."""
        return self.model.coordinate_count <= _SCHEME_COORDINATES

    @property
    def wants_ideal(self) -> bool:
        """Whether the whole ideal is asked for, with its invariants, and not only bounds of tangent spaces."""
        return self.model.coordinate_count <= _IDEAL_COORDINATES

    @property
    def wants_kernel(self) -> bool:
        """Whether Macaulay2's plain elimination is quick."""
        return self.model.coordinate_count <= _KERNEL_COORDINATES


@question(
    asks="Where the closure of a network's functions is singular: components, equations, strata of the weights or orbits.",
    templates=("singular_locus", "singular_strata", "fiber_length", *closure.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "singular_dim": "the dimension of the singular locus",
        "singular_degree": "the degree of the singular locus",
        "codim": "the codimension of the closure in its span",
        "degree": "the degree of the closure",
    },
    primes=PRIMES,
    example="m2bridge singular-locus --d 2 --dp 1",
)
def singular_locus(ask: Asking, model: Model, *, force: ForceOption = False) -> SingularLocus:
    """The singular points of the closure of the image of a polynomial model.

    For one layer of lightning attention with t >= 2 every orbit of its group is decided; parametrization and coordinates do not
    matter then. For every other model see :mod:`m2bridge.questions.singular_locus.general`.
    """
    if not isinstance(model, Lightning):
        return general_locus(ask, model, force=force)
    prime, seed = DEFAULT_PRIME if ask.prime is None else ask.prime, ask.seed
    checked = check_model(model, prime, force=force)
    ask.require_engine()
    sent = Sent.draw(checked, prime, seed)
    image_dim = ask_dimension(ask, checked)
    given = sent.given_equations()
    values, limit = ask.ask(TEMPLATE, sent.parameters(given), checked)
    ask.evidence += witnesses.network_evidence(sent, values, ask.last_seconds)
    ask.announce("witnesses")
    if sent.wants_scheme and limit is None:
        ask.announce("the same over QQ")
        over_q, limit = ask.ask(TEMPLATE, {**sent.parameters(), "p": 0, "wantComponents": False}, checked)
        ask.evidence += witnesses.rational_evidence(checked, over_q)
    found = equations_of.read(values, checked.coordinate_count, prime) or given
    ask.evidence += witnesses.closure_evidence(sent, found, values, image_dim)
    ask.announce("tangent spaces")
    lifted = equations_of.lifted(checked, found, prime)
    tangents = values.integers("tangent_dims") if "tangent_dims" in values else None
    strata, more = examine(checked, sent.orbits, image_dim, found, lifted, tangents, prime=prime, seed=seed)
    ask.evidence += more
    strata = decided_by_fibers(ask, checked, sent.orbits, strata, prime)
    singular_dim = _singular_dim(ask, strata, values, prime)
    certainty = _certainty(strata, ask.evidence)
    components, singular_degree = _components(ask, sent, strata, values, equations=limit is None)
    whole = sent.wants_ideal and "equations" in values
    at_point = ("tangent", "curves at", "Jacobian rank at", "ranks", "singular ")
    return ask.answer(
        SingularLocus, model=checked.spec, options={"prime": prime},
        image_dim=image_dim[0], ambient_dim=checked.ambient_dim,
        span_dim=values.get("span_dim", checked.coordinate_count), codim=values.get("codim"), degree=values.get("degree"),
        generators=equations_of.degree_counts(found) if whole else None,
        equations=tuple(e.text() for e in found) if whole else (),
        singular_dim=singular_dim, singular_degree=singular_degree,
        singular_equations=values.strings("singular_equations") if "singular_equations" in values else None,
        components=components, embedded=_scheme_components(values, "embedded"), strata=tuple(strata),
        certainty=certainty, evidence=labelled(ask.evidence, at_point), limit=limit,
        certificate=certificates(checked, strata, lifted, ask.also(dimension, checked, engine=False).certificate, seed=seed),
    )  # fmt: skip


def ask_dimension(ask: Asking, model: Lightning) -> tuple[int, int]:
    """Proved bounds of the dimension of the image; the words of the question about it are kept."""
    ask.announce("dimension")
    size = ask.also(dimension, replace(model, parametrization="weights"), engine=False, certify=False)
    ask.evidence += [
        item for item in size.evidence if item.quantity == "image_dim" and item.value is not None
    ]
    return size.lower_bound, size.upper_bound


def _certainty(strata: Sequence[Stratum], evidence: Sequence[Evidence]) -> Certainty:
    """The weakest of what is reported: every verdict and every quantity that has evidence."""
    settled = settle(evidence)
    quantities = [settled[name].certainty for name in _REPORTED if name in settled]
    return Certainty.weakest([s.certainty for s in strata] + quantities)


def _singular_dim(ask: Asking, strata: Sequence[Stratum], values: Values, prime: int) -> int | None:
    """Dimension of the singular locus: of the largest singular orbit, and of Macaulay2's singular scheme."""
    decided = all(s.verdict != "undecided" for s in strata)
    largest = max((s.orbit_dim for s in strata if s.verdict == "singular"), default=-1) if decided else None
    sure = Certainty.weakest(s.certainty for s in strata)
    ask.say("singular_dim", largest, "orbits", "largest singular orbit", certainty=sure)
    method = "radical of the Jacobian minors"
    for name in ("singular_dim", "singular_degree"):
        if name in values:
            ask.evidence.append(says(name, values.integer(name), "macaulay2", method, prime=prime))
    listed = values.get("singular_at")
    for s, theirs in zip(strata, listed, strict=True) if listed else ():
        ours = None if s.verdict == "undecided" else s.verdict == "singular"
        ask.evidence += compared(
            f"singular {s.rank_a},{s.rank_v},{s.meet}",
            ("macaulay2", "in the radical of the singular scheme", theirs), ("orbits", "tangent bounds", ours),
        )  # fmt: skip
    return values.get("singular_dim") if largest is None else largest


def _components(
    ask: Asking, sent: Sent, strata: Sequence[Stratum], values: Values, *, equations: bool
) -> tuple[tuple[Component, ...] | None, int | None]:
    """The components and the degree: those of the singular scheme, or of the closures of the maximal singular orbits."""
    components = _scheme_components(values, "components")
    if components is not None:
        return components, values.get("singular_degree")
    ask.announce("components")
    wanted = equations and sent.wants_ideal
    components = orbit_components(ask, sent.model, sent.orbits, strata, sent.prime, equations=wanted)
    degree = top_degree(components)
    if degree is not None:
        method = "degrees of the closures of the maximal singular orbits"
        ask.say("singular_degree", degree, "orbits", method, prime=sent.prime)
    return components, degree


def _scheme_components(values: Values, tag: str) -> tuple[Component, ...] | None:
    if tag not in values:
        return None
    return tuple(Component(dim=c[0], degree=c[1], equations=tuple(c[2])) for c in values[tag])
