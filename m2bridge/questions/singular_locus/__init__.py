"""Where is the neuromanifold of one layer of attention singular? Every orbit is asked, from both sides.

Equations bound tangent spaces from above and show smoothness; curves bound them from below and show singularity. The
group makes one point an orbit enough. Macaulay2 gives the equations and, where it is small, the singular scheme itself;
everything else is computed here from the network's own definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.models import Lightning, Model
from m2bridge.protocol import Values
from m2bridge.questions.closure import closure
from m2bridge.questions.kernel import Asking, ForceOption, question
from m2bridge.questions.singular_locus import equations as equations_of
from m2bridge.questions.singular_locus import theorem, witnesses
from m2bridge.questions.singular_locus.components import orbit_components, top_degree
from m2bridge.questions.singular_locus.orbits import Orbit, all_orbits
from m2bridge.questions.singular_locus.result import Component, SingularLocus, Stratum
from m2bridge.questions.singular_locus.strata import examine
from m2bridge.results import Certainty, Evidence, labelled, settle

__all__ = ["Component", "Sent", "SingularLocus", "Stratum", "singular_locus"]

TEMPLATE = "singular_locus"
DEFAULT_PRIME = 32003
LARGEST_PRIME = 32749
"""Macaulay2 1.21 computes Groebner bases over ZZ/p for p up to this one."""
_MOST_COORDINATES = 2500
_KERNEL_COORDINATES = 12
_IDEAL_COORDINATES = 18
_INTERPOLATION_DEGREES = ((60, 4), (90, 3), (200, 2))
"""(most coordinates, degree): equations are sought up to the degree where their number stays moderate."""


def check_model(model: Model, prime: int, *, force: bool = False) -> Lightning:
    """The one-layer model in the coordinates this analysis uses, or a clear refusal."""
    if not isinstance(model, Lightning):
        raise InputError(f"singular-locus is about one layer of lightning attention; {model.spec} is not")
    if model.t < 2:
        raise InputError(
            "singular-locus needs t >= 2: with one token the Segre coordinates do not determine the network"
        )
    equations_of.check_prime(prime, LARGEST_PRIME)
    model = Lightning(
        d=model.d, dp=model.dp, a=model.a, t=model.t, parametrization="attention", coordinate_system="segre"
    )
    if model.coordinate_count > _MOST_COORDINATES and not force:
        raise OutOfReachError(
            f"{model.spec} has {model.coordinate_count} coordinates; beyond {_MOST_COORDINATES} the exact ranks take "
            "hours; --force tries anyway",
            estimate=model.coordinate_count,
        )
    return model


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
        return 5 if self.model.coordinate_count <= 6 else 4

    def parameters(self, given: Sequence[equations_of.Equation] = ()) -> dict[str, object]:
        """Values for the template; `given` equations are used instead of Macaulay2's kernel."""
        return {
            "p": self.prime,
            "point": [self.weights["A"].ravel(), self.weights["V"].ravel()],
            "inputs": self.inputs.ravel(),
            "strata": [[A.ravel(), V.ravel()] for A, V in self.representatives],
            "hilbertDegrees": self.hilbert_degrees,
            "given": [equation.as_lists() for equation in given],
            "invariants": self.wants_ideal,
            "scheme": self.wants_scheme and not given,
        }

    def given_equations(self) -> tuple[equations_of.Equation, ...]:
        """Equations found by interpolation where Macaulay2's kernel is slow; all, or the few that matter."""
        if self.wants_kernel:
            return ()
        degree = next((k for size, k in _INTERPOLATION_DEGREES if self.model.coordinate_count <= size), None)
        if degree is None:
            return ()
        found = equations_of.interpolated(self.model, self.prime, self.seed, degree)
        if self.wants_ideal:
            return found
        points = [
            self.model.coordinates(dict(zip("AV", pair, strict=True))).tolist()
            for pair in self.representatives
        ]
        return equations_of.decisive(found, points, self.prime)

    @property
    def representatives(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [orbit.representative(self.model.d, self.model.dp) for orbit in self.orbits]

    @property
    def wants_scheme(self) -> bool:
        """Whether Jacobian minors are few: (2,1,a), hypersurfaces, and little else."""
        return self.model.coordinate_count <= 6

    @property
    def wants_ideal(self) -> bool:
        """Whether the whole ideal is asked for, with its invariants, and not only bounds of tangent spaces."""
        return self.model.coordinate_count <= _IDEAL_COORDINATES

    @property
    def wants_kernel(self) -> bool:
        """Whether Macaulay2's plain elimination is quick."""
        return self.model.coordinate_count <= _KERNEL_COORDINATES


@question(
    asks="Where the neuromanifold of one layer of attention is singular: orbits, tangent spaces, equations.",
    templates=("singular_locus", *closure.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "singular_dim": "the dimension of the singular locus",
        "singular_degree": "the degree of the singular locus",
        "codim": "the codimension of the closure in its span",
        "degree": "the degree of the closure",
    },
    example="m2bridge singular-locus --d 2 --dp 1",
)
def singular_locus(ask: Asking, model: Model, *, force: ForceOption = False) -> SingularLocus:
    """The singular points of the neuromanifold of one layer of lightning attention.

    The model is a :class:`~m2bridge.models.Lightning` with t >= 2; its parametrization and coordinates do not matter.
    """
    prime, seed = DEFAULT_PRIME if ask.prime is None else ask.prime, ask.seed
    checked = check_model(model, prime, force=force)
    ask.require_engine()
    sent = Sent.draw(checked, prime, seed)
    ask.announce("dimension")
    image_dim, evidence = witnesses.image_dim(checked, seed)
    given = sent.given_equations()
    values, limit = ask.ask(TEMPLATE, sent.parameters(given), checked)
    evidence += witnesses.of_the_script(sent, values, ask.last_seconds)
    ask.announce("witnesses")
    if sent.wants_scheme and limit is None:
        ask.announce("the same over QQ")
        over_q, limit = ask.ask(TEMPLATE, {**sent.parameters(), "p": 0}, checked)
        evidence += witnesses.over_the_rationals(checked, over_q)
    found = equations_of.read(checked, values.get("equations"), prime) or given
    evidence += witnesses.of_the_closure(sent, found, values)
    lifted = equations_of.lifted(checked, found)
    ask.announce("tangent spaces")
    tangent_dims = values.integers("tangent_dims") if "tangent_dims" in values else None
    strata, more = examine(
        checked, sent.orbits, image_dim, found, lifted, tangent_dims, prime=prime, seed=seed
    )
    evidence += more
    singular_dim, more = _singular_dim(strata, values, prime)
    evidence += more
    whole = sent.wants_ideal and "equations" in values
    components = _scheme_components(values, "components")
    singular_degree = values.get("singular_degree")
    if components is None:
        ask.announce("components")
        components = orbit_components(
            ask, checked, sent.orbits, strata, prime, equations=sent.wants_ideal and limit is None
        )
        singular_degree = top_degree(components)
        if singular_degree is not None:
            method = "degrees of the closures of the maximal singular orbits"
            ask.say("singular_degree", singular_degree, "orbits", method, prime=prime)
    said = labelled(
        [*evidence, *ask.evidence], ("tangent", "curves at", "Jacobian rank at", "ranks", "singular ")
    )
    return ask.answer(
        SingularLocus,
        model=checked.spec,
        options={"prime": prime},
        image_dim=image_dim.lower,
        ambient_dim=checked.ambient_dim,
        span_dim=values.get("span_dim", checked.coordinate_count),
        codim=values.get("codim"),
        degree=values.get("degree"),
        generators=equations_of.degrees(found) if whole else None,
        equations=tuple(str(e) for e in found) if whole else (),
        singular_dim=singular_dim,
        singular_degree=singular_degree,
        singular_equations=values.strings("singular_equations") if "singular_equations" in values else None,
        components=components,
        embedded=_scheme_components(values, "embedded"),
        strata=tuple(strata),
        theorem=theorem.compare(checked, image_dim.lower, strata),
        certainty=_certainty(strata, evidence),
        evidence=said,
        limit=limit,
    )


_REPORTED = ("image_dim", "span_dim", "codim", "degree", "generators", "singular_dim", "singular_degree")


def _certainty(strata: Sequence[Stratum], evidence: Sequence[Evidence]) -> Certainty:
    """The weakest of what is reported: every verdict and every quantity that has evidence."""
    settled = settle(evidence)
    quantities = [settled[name].certainty for name in _REPORTED if name in settled]
    return Certainty.weakest([s.certainty for s in strata] + quantities)


def _singular_dim(strata: Sequence[Stratum], values: Values, prime: int) -> tuple[int | None, list[Evidence]]:
    """Dimension of the singular locus: of the largest singular orbit, and of Macaulay2's singular scheme."""
    decided = all(s.verdict != "undecided" for s in strata)
    largest = max((s.orbit_dim for s in strata if s.verdict == "singular"), default=-1) if decided else None
    evidence = [
        Evidence(
            quantity="singular_dim",
            witness="orbits",
            method="largest singular orbit",
            value=largest,
            certainty=Certainty.weakest(s.certainty for s in strata),
        )
    ]
    if "singular_dim" in values:
        evidence.append(
            Evidence(
                quantity="singular_dim",
                witness="macaulay2",
                method="radical of the Jacobian minors",
                value=values.integer("singular_dim"),
                prime=prime,
            )
        )
    if "singular_degree" in values:
        evidence.append(
            Evidence(
                quantity="singular_degree",
                witness="macaulay2",
                method="radical of the Jacobian minors",
                value=values.integer("singular_degree"),
                prime=prime,
            )
        )
    if "singular_at" in values:
        verdicts = [None if s.verdict == "undecided" else s.verdict == "singular" for s in strata]
        evidence += [
            Evidence(
                quantity=f"singular {s.rank_a},{s.rank_v},{s.meet}",
                witness=witness,
                method=method,
                value=value,
            )
            for s, ours, theirs in zip(strata, verdicts, values["singular_at"], strict=True)
            for witness, method, value in (
                ("macaulay2", "in the radical of the singular scheme", theirs),
                ("orbits", "tangent bounds", ours),
            )
        ]
    return (values.get("singular_dim") if largest is None else largest), evidence


def _scheme_components(values: Values, tag: str) -> tuple[Component, ...] | None:
    if tag not in values:
        return None
    return tuple(Component(dim=c[0], degree=c[1], equations=tuple(c[2])) for c in values[tag])
