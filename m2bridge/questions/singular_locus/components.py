"""Components of the singular locus where its scheme is too large: closures of the maximal singular orbits.

The singular locus is closed and stable under the group, so it is the union of the closures of the singular orbits, and its
components are the closures of the maximal ones. Each is the image of a polynomial map: A = U B, V = C W^T with U and W columns
of one matrix of r + s - meet columns, about which the question of the closure is asked like about any other model.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from m2bridge.models import Lightning, PolynomialMap
from m2bridge.models.custom import terms_of
from m2bridge.models.symbolic import rational_variables, sparse, variable_array
from m2bridge.questions.closure import closure
from m2bridge.questions.kernel import Asking
from m2bridge.questions.singular_locus.orbits import Orbit
from m2bridge.questions.singular_locus.result import Component, Stratum

_PATIENCE = 60.0
"""Seconds for the degree and equations of one component; they are left out when this is not enough."""


def orbit_closure(layer: Lightning, orbit: Orbit) -> PolynomialMap:
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


def maximal_singular(orbits: Sequence[Orbit], strata: Sequence[Stratum]) -> list[tuple[Orbit, int]]:
    """Singular orbits that lie in the closure of no other singular orbit, with their dimensions."""
    singular = {o: s.orbit_dim for o, s in zip(orbits, strata, strict=True) if s.verdict == "singular"}
    inside = {o for o in singular for other in singular if o != other and o.in_closure_of(other)}
    return [(o, dim) for o, dim in singular.items() if o not in inside]


def orbit_components(
    ask: Asking,
    model: Lightning,
    orbits: Sequence[Orbit],
    strata: Sequence[Stratum],
    prime: int,
    *,
    equations: bool,
) -> tuple[Component, ...] | None:
    """Components of the singular locus; None when an orbit is undecided.

    With `equations` their degrees and equations are computed too, as far as that succeeds within a minute each.
    """
    if any(s.verdict == "undecided" for s in strata):
        return None
    components = []
    for orbit, dim in maximal_singular(orbits, strata):
        degree = texts = None
        if equations and not orbit.is_zero:
            image = orbit_closure(model, orbit)
            found = ask.also(closure, image, prime=prime, equations=True, seconds=_PATIENCE)
            if found.completeness == "complete" and found.agreement is not False and found.image_dim == dim:
                degree, texts = found.degree, tuple(e.text() for e in found.equations or ())
        ranks = (orbit.rank_a, orbit.rank_v, orbit.meet)
        components.append(Component(dim=dim, degree=degree, equations=texts, orbit=ranks))
    return tuple(components)


def top_degree(components: Sequence[Component] | None) -> int | None:
    """The degree of the union: the sum over the components of largest dimension; None when one is unknown."""
    if not components:
        return None
    largest = max(component.dim for component in components)
    degrees = [component.degree for component in components if component.dim == largest]
    return None if None in degrees else sum(degree for degree in degrees if degree is not None)
