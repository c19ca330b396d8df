"""Where is the image of any polynomial model singular? From the equations of its closure, and in its weights.

The equations come from the question about the closure. Macaulay2 finds the components of the singular locus by ranks of their
Jacobian (``singular_strata``), over F_p and again over QQ or a second prime. Points of declared strata of the weights (smaller
ranks, equal or zero neurons) are asked one by one from both sides, by curves and by equations; these verdicts never read what
the template found, so the two can contradict each other. Where equations are out of reach, curves alone show singular points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from m2bridge.errors import LimitError, NotPolynomialError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime, given_numbers, prime_for, primes_below
from m2bridge.models import Model
from m2bridge.models.polynomials import parse_polynomial, polynomial_text
from m2bridge.protocol import Values
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Asking
from m2bridge.questions.singular_locus.in_span import Equations, in_span
from m2bridge.questions.singular_locus.places import places_in_weights
from m2bridge.questions.singular_locus.result import Component, Place, SingularLocus
from m2bridge.questions.source import constrained_map
from m2bridge.questions.testimony import compared, says
from m2bridge.results import Certainty, labelled

TEMPLATE = "singular_strata"
_MOST_COORDINATES = 200
_PATIENCE = 60.0
"""Seconds for the closure, and for the components modulo p, unless the user's limit is shorter."""
_SECOND = 20.0
"""Seconds for the same components over QQ; then for a second prime."""


def general_locus(ask: Asking, model: Model, *, force: bool) -> SingularLocus:
    """The singular locus of the closure of the image of any polynomial model."""
    if not model.polynomial:
        raise NotPolynomialError(
            f"{model.spec} is not polynomial: its image has no Zariski closure with equations; ask for its dimension, or for the "
            "polynomial (lightning) network of the same sizes"
        )
    chosen = None if ask.prime is None else check_prime(ask.prime)
    prime = prime_for(given_numbers(model), chosen=chosen, default=MACAULAY2_PRIME)
    ask.require_engine()
    size, equations = _asked(ask, model, force=force)
    found = None if equations is None else equations.found
    whole = constrained_map(model) is None
    p = prime if found is None or not found.characteristic else found.characteristic
    components, radical, limit, settled = None, None, None, Certainty.PROBABLE
    if equations is not None and equations.complete:
        components, radical, limit, settled = _components(ask, model, equations, p, irreducible=whole)
    places = places_in_weights(ask, model, size, equations, components, p) if whole else ()
    undecided = _undecided(model, equations, components, places, whole=whole)
    ask.evidence += (
        [e for e in size.evidence if e.quantity == "image_dim" and e.value is not None] if whole else []
    )
    singular_dim = singular_degree = None
    if components is not None:
        singular_dim = max((c.dim for c in components), default=-1)
        singular_degree = sum(c.degree or 0 for c in components if c.dim == singular_dim)
    # without components the answer as a whole is not proved, even where each singular place is
    certainty = Certainty.weakest([size.certainty, settled]) if components is not None else Certainty.PROBABLE
    texts = () if equations is None else tuple(f.text() for f in equations.equations)
    return ask.answer(
        SingularLocus, model=model.spec, options={"prime": prime}, image_dim=size.image_dim,
        ambient_dim=model.ambient_dim, span_dim=None if found is None else found.span_dim,
        codim=None if found is None else found.codim, degree=None if found is None else found.degree,
        generators=None if found is None else {str(k): n for k, n in found.generator_counts.items()},
        equations=texts, singular_dim=singular_dim, singular_degree=singular_degree, singular_equations=radical,
        components=components, embedded=None, strata=(), theorem=None, places=places,
        completeness=None if found is None else found.completeness, undecided=undecided, certainty=certainty,
        evidence=labelled(ask.evidence, ("tangent", "singular at", "rank at")),
        limit=limit or (found.limit if found is not None else None),
    )  # fmt: skip


def _asked(ask: Asking, model: Model, *, force: bool) -> tuple[Dimension, Equations | None]:
    """The dimension, and the closure's equations over QQ where they are in reach."""
    ask.announce("dimension")
    whole = constrained_map(model) is None
    size = ask.also(dimension, model, engine=False if whole else ask.engine, certify=False)
    if model.coordinate_count > _MOST_COORDINATES and not force:
        return size, None
    ask.announce("equations of the closure")
    remaining = ask.clock.remaining
    seconds = _PATIENCE if remaining is None else min(_PATIENCE, remaining / 2)
    options: dict[str, Any] = {"field": "QQ"} if ask.prime is None else {"prime": ask.prime}
    found = ask.also(closure, model, equations=True, seconds=seconds, **options)
    if found.completeness == "complete" and found.certainty is not Certainty.PROVED and ask.prime is None:
        found = _proved_kernel(ask, model) or found
    ask.evidence += [item for c in found.conflicts for item in (c.first, c.second)]
    return size, in_span(found)


def _proved_kernel(ask: Asking, model: Model) -> Closure | None:
    """The kernel over QQ, which is all of the ideal, where it takes seconds."""
    try:
        found = ask.also(closure, model, field="QQ", method="kernel", equations=True, seconds=_SECOND)
    except LimitError:
        return None
    return found if found.completeness == "complete" and found.certainty is Certainty.PROVED else None


def _components(
    ask: Asking, model: Model, equations: Equations, p: int, *, irreducible: bool
) -> tuple[tuple[Component, ...] | None, tuple[str, ...] | None, str | None, Certainty]:
    """Components of the singular locus, its radical, which limit was reached, and how sure they are.

    They are computed over F_p and once more over QQ, or else over a second prime.
    """
    minors = equations.minors(model, p, ask.seed) if irreducible else []
    send = equations.request(p, minors, irreducible=irreducible, seed=ask.seed)
    ask.announce("singular locus")
    remaining = ask.clock.remaining
    values, limit = ask.ask(TEMPLATE, send, seconds=_PATIENCE if remaining is None else remaining / 2)
    if "singular_components" not in values:
        return None, None, limit, Certainty.PROBABLE
    best, certainty = values, Certainty.PROBABLE
    say = "components by ranks of the equations' Jacobian"
    if not equations.found.characteristic:
        over_q_values, _ = ask.ask(TEMPLATE, {**send, "p": 0, "wantPoints": False}, seconds=_SECOND)
        if "singular_components" in over_q_values:
            best, certainty = over_q_values, equations.found.certainty
            ask.evidence.append(replace(
                says("singular components", _sizes(over_q_values), "macaulay2", f"{say}, over QQ"), certainty=certainty
            ))  # fmt: skip
        else:
            other = primes_below(p - 1, count=1, numbers=given_numbers(model))[0]
            second, _ = ask.ask(TEMPLATE, {**send, "p": other, "wantPoints": False}, seconds=_SECOND)
            if "singular_components" in second:
                ask.say("singular components", _sizes(second), "macaulay2", say, prime=other)
    ask.say("singular components", _sizes(values), "macaulay2", say, prime=p)
    _witness_points(ask, equations, values, p)
    components = _read(best, values, equations)
    radical = tuple(_renamed(f, equations) for f in best.strings("radical")) if "radical" in best else None
    return components, radical, limit, certainty


def _sizes(values: Values) -> list[list[int]]:
    """Dimension and degree of the union in each dimension: the same over every field, where components may split."""
    total: dict[int, int] = {}
    for dim, degree, *_ in values["singular_components"]:
        total[dim] = total.get(dim, 0) + degree
    return [[dim, total[dim]] for dim in sorted(total)]


def _read(best: Values, modular: Values, equations: Equations) -> tuple[Component, ...]:
    """The components, with the kind of singularity at a point over F_p where both lists have the same sizes."""
    listed = sorted(best["singular_components"], key=lambda c: (-c[0], c[1], c[3]))
    beside = sorted(
        zip(modular["singular_components"], modular.get("kinds") or [None] * len(modular["singular_components"]), strict=True),
        key=lambda pair: (-pair[0][0], pair[0][1], pair[0][3]),
    )  # fmt: skip
    same = [c[:3] for c in listed] == [c[:3] for c, _ in beside]
    found = []
    for i, (dim, degree, rank, texts) in enumerate(listed):
        kind = beside[i][1] if same else None
        found.append(
            Component(
                dim=dim, degree=degree, equations=tuple(_renamed(text, equations) for text in texts),
                tangent_dim=None if rank is None else len(equations.basis) - rank,
                multiplicity=None if kind is None else kind[1], milnor_number=None if kind is None else kind[2],
            )
        )  # fmt: skip
    return tuple(found)


def _renamed(text: str, equations: Equations) -> str:
    """Macaulay2's polynomial in x0, x1, ... written in the coordinates z0, z1, ... of the closure."""
    internal = [f"x{i}" for i in range(len(equations.basis))]
    found = parse_polynomial(text, internal, source="Macaulay2's output")
    return polynomial_text(found, [f"z{i}" for i in equations.basis])


def _witness_points(ask: Asking, equations: Equations, values: Values, p: int) -> None:
    """The points of the components that Macaulay2 found, asked again here: on the closure, and of which rank."""
    points = values.get("component_points") or ()
    for number, (part, point) in enumerate(zip(values["singular_components"], points, strict=False), start=1):
        if point is None or part[2] is None:
            continue
        place = [0] * equations.found.coordinate_count
        for coordinate, text in zip(equations.basis, point, strict=True):
            place[coordinate] = int(text) % p
        on_closure = not any(f.at(place) % p for f in equations.equations)
        rank = rank_mod(equations.gradients(place, p), p) if equations.equations else 0
        sayings = (
            ("macaulay2", "generic rank on the component", part[2]),
            ("interpolation", "rank of the equations' Jacobian", rank),
        )
        ask.evidence += compared(f"rank at a point of component {number}", *sayings, prime=p)
        sayings2 = (
            ("macaulay2", "a point of the component", True),
            ("interpolation", "the equations vanish", on_closure),
        )
        ask.evidence += compared(f"point of component {number} on the closure", *sayings2, prime=p)


def _undecided(
    model: Model, equations: Equations | None, components: tuple[Component, ...] | None, places: Sequence[Place],
    *, whole: bool,
) -> tuple[str, ...]:  # fmt: skip
    """What this answer leaves open, in sentences that say what would settle it."""
    found = []
    if equations is None:
        found.append(
            f"all points outside the listed strata: no equations of the closure in {model.coordinate_count} coordinates were "
            "looked for or found; --force tries, or ask `singular-point` at weights of your own"
        )
    elif not equations.complete:
        found.append(
            f"all points outside the listed strata: the equations are {equations.found.completeness}; a longer --timeout, or "
            "`closure --max-degree`"
        )
    elif components is None:
        found.append("the components of the singular locus: Macaulay2 reached its limit; a longer --timeout")
    if not whole:
        found.append(
            "strata of the weights: the source has equations; ask `singular-point --at` at points of it"
        )
    found += [
        f"{place.name}: the bounds of the tangent space do not decide"
        for place in places
        if place.verdict == "undecided"
    ]
    return tuple(found)
