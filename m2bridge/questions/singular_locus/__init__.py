"""Where is the closure of a network's functions singular? One layer of attention orbit by orbit, other models by equations.

Equations bound tangent spaces from above and show smoothness; curves bound them from below and show singularity. The group of
one layer makes one point an orbit enough. Macaulay2 gives the equations and, where it is small, the singular scheme itself;
everything else is computed here from the network's own definition.
"""

from __future__ import annotations

from collections.abc import Sequence

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence, labelled, settle
from m2bridge.families import Attention, Model
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME, MACAULAY2_PRIME
from m2bridge.protocol import Values
from m2bridge.questions.closure import closure
from m2bridge.questions.context import prime_between
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Context, ForceOption, question
from m2bridge.questions.singular_locus import layer, strata
from m2bridge.questions.singular_locus.general import general_locus
from m2bridge.questions.singular_locus.layer import Sent, layer_of
from m2bridge.questions.singular_locus.result import Component, Place, SingularLocus, Stratum

__all__ = ["Component", "Place", "SingularLocus", "Stratum", "check_model", "singular_locus"]

TEMPLATE = "singular_locus"
DEFAULT_PRIME = MACAULAY2_PRIME
PRIMES = (101, LARGEST_MACAULAY2_PRIME)
_MOST_COORDINATES = 2500
_REPORTED = ("image_dim", "span_dim", "codim", "degree", "generators", "singular_dim", "singular_degree")


def check_model(model: Model, prime: int, *, force: bool = False) -> Attention:
    """The one-layer model as this question uses it, and a prime that it can compute with, or a clear refusal."""
    checked = layer_of(model, "singular-locus", _MOST_COORDINATES, "the exact ranks take hours", force=force)
    prime_between(prime, *PRIMES)
    return checked


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
def singular_locus(context: Context, model: Model, *, force: ForceOption = False) -> SingularLocus:
    """The singular points of the closure of the image of a polynomial model.

    For one layer of lightning attention with t >= 2 every orbit of its group is decided; parametrization and coordinates do not
    matter then. For every other model see :mod:`m2bridge.questions.singular_locus.general`.
    """
    if model.knowledge.layer is None:
        return general_locus(context, model, force=force)
    prime, seed = DEFAULT_PRIME if context.prime is None else context.prime, context.seed
    checked = check_model(model, prime, force=force)
    context.require_engine()
    sent = Sent.draw(checked, prime, seed)
    size = layer.ask_dimension(context, checked)
    image_dim = size.lower_bound, size.upper_bound
    given = sent.given_equations()
    values, limit = context.run_template(TEMPLATE, sent.parameters(given), checked)
    context.add_evidence(*layer.network_evidence(sent, values, context.last_seconds))
    found = layer.read(values, checked.coordinate_count, sent.p) or given
    context.report_progress("witnesses")
    context.add_evidence(*layer.closure_evidence(sent, found, values, image_dim))
    context.report_progress("tangent spaces")
    lifted = layer.lifted(checked, found, sent.p)
    tangents = values.integers("tangent_dims") if "tangent_dims" in values else None
    orbits, more, lines = strata.examine(
        checked, sent.orbits, image_dim, found, lifted, tangents, prime=prime, seed=seed, clock=context.clock
    )
    context.add_evidence(*more)
    if context.clock.remaining is None or context.clock.remaining > 0:
        orbits = strata.decided_by_fibers(context, checked, sent.orbits, orbits, prime)
    elif any(s.verdict == "undecided" for s in orbits):
        limit = limit or f"{context.clock.limit_text} was reached before all orbits were decided"
    singular_dim = _singular_dim(context, sent, orbits, values)
    certainty = _certainty(context, orbits)
    components, singular_degree = _components(context, sent, orbits, values, equations=limit is None)
    whole = sent.whole_ideal and "equations" in values
    at_point = ("tangent", "curves at", "Jacobian rank at", "ranks", "singular ")
    certificate = size.certificate
    if size.model != checked.spec:
        certificate = context.ask_question(dimension, checked, engine=False).certificate
    certificates, named = strata.certificates(checked, orbits, lines, lifted, certificate, seed=seed)
    return context.build_result(
        SingularLocus, model=checked.spec, options={"prime": prime},
        image_dim=image_dim[0], ambient_dim=checked.ambient_dim,
        span_dim=values.get("span_dim", checked.coordinate_count), codim=values.get("codim"), degree=values.get("degree"),
        generators=layer.degree_counts(found) if whole else None,
        equations=tuple(e.text() for e in found) if whole else (),
        singular_dim=singular_dim, singular_degree=singular_degree,
        singular_equations=values.strings("singular_equations") if "singular_equations" in values else None,
        components=components, embedded=_scheme_components(values, "embedded"), strata=named,
        certainty=certainty, evidence=labelled(context.evidence, at_point), limit=limit,
        certificate=certificates,
    )  # fmt: skip


def _certainty(context: Context, orbits: Sequence[Stratum]) -> Certainty:
    """The weakest of what is reported: every verdict and every quantity that has evidence."""
    settled = settle(context.evidence)
    quantities = [settled[name].certainty for name in _REPORTED if name in settled]
    return Certainty.weakest([s.certainty for s in orbits] + quantities)


def _singular_dim(context: Context, sent: Sent, orbits: Sequence[Stratum], values: Values) -> int | None:
    """Dimension of the singular locus: of the largest singular orbit, and of Macaulay2's singular scheme."""
    decided = all(s.verdict != "undecided" for s in orbits)
    largest = max((s.orbit_dim for s in orbits if s.verdict == "singular"), default=-1) if decided else None
    sure = Certainty.weakest(s.certainty for s in orbits)
    context.add_evidence(
        Evidence("singular_dim", largest, "orbits", "largest singular orbit", certainty=sure)
    )
    for name in ("singular_dim", "singular_degree"):
        if name in values:
            context.add_evidence(sent.said(name, values.integer(name), "radical of the Jacobian minors"))
    listed = values.get("singular_at")
    for s, theirs in zip(orbits, listed, strict=True) if listed else ():
        ours = None if s.verdict == "undecided" else s.verdict == "singular"
        context.add_evidence(
            Evidence(
                f"singular {s.rank_a},{s.rank_v},{s.meet}",
                theirs,
                "macaulay2",
                "in the radical of the singular scheme",
            ),
            Evidence(f"singular {s.rank_a},{s.rank_v},{s.meet}", ours, "orbits", "tangent bounds"),
        )
    return values.get("singular_dim") if largest is None else largest


def _components(
    context: Context, sent: Sent, orbits: Sequence[Stratum], values: Values, *, equations: bool
) -> tuple[tuple[Component, ...] | None, int | None]:
    """The components and the degree: those of the singular scheme, or of the closures of the maximal singular orbits."""
    components = _scheme_components(values, "components")
    if components is not None:
        return components, values.get("singular_degree")
    context.report_progress("components")
    wanted = equations and sent.whole_ideal
    components = strata.orbit_components(
        context, sent.model, sent.orbits, orbits, sent.prime, equations=wanted
    )
    if not components:
        return components, None
    largest = max(component.dim for component in components)
    degrees = [component.degree for component in components if component.dim == largest]
    degree = None if None in degrees else sum(degree or 0 for degree in degrees)
    if degree is not None:
        method = "degrees of the closures of the maximal singular orbits"
        context.add_evidence(Evidence("singular_degree", degree, "orbits", method, prime=sent.prime))
    return components, degree


def _scheme_components(values: Values, tag: str) -> tuple[Component, ...] | None:
    if tag not in values:
        return None
    return tuple(Component(dim=c[0], degree=c[1], equations=tuple(c[2])) for c in values[tag])
