"""Components of the singular locus as closures of strata, their degrees, and which components contain a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.errors import LimitError
from m2bridge.evidence import Evidence
from m2bridge.families.strata import Strata
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.closure.result import equation
from m2bridge.questions.kernel import Context
from m2bridge.questions.singular_locus.result import Component, Stratum
from m2bridge.questions.singular_locus.strata import CurvesAt

_CLOSURE_COORDINATES = 18
"""Up to this many coordinates the equations of the closures of strata are computed."""


def maximal_singular(
    strata: Strata, curves: Sequence[CurvesAt], verdicts: Sequence[Stratum]
) -> list[CurvesAt] | None:
    """Return the singular strata in the closure of no other singular one; None unless all strata of the closure are decided.

    The singular locus is closed and, for exhaustive strata, a union of strata, hence the union of the closures of these.
    """
    examined = len(verdicts) == len(strata.strata())
    if not strata.exhaustive or not examined or any(s.verdict == "undecided" for s in verdicts):
        return None
    singular = [at for at, s in zip(curves, verdicts, strict=True) if s.verdict == "singular"]
    return [
        at
        for at in singular
        if not any(c is not at and strata.contains(c.stratum, at.stratum) for c in singular)
    ]


def stratum_components(
    context: Context, strata: Strata, maximal: Sequence[CurvesAt], prime: int
) -> tuple[Component, ...]:
    """Return the closures of the maximal singular strata, with degrees and, if computing them is feasible, equations."""
    context.report_progress("components")
    components = []
    for number, at in enumerate(maximal):
        computed = _closure_of(context, strata, at, prime, share=1 / (len(maximal) - number))
        degree = strata.degree(at.stratum)
        component = Component(dim=at.image_dim, degree=None, equations=None, stratum=at.name)
        if degree is not None:
            component = replace(component, degree=degree.value)
        if computed is not None:
            texts = tuple(e.text() for e in computed.equations or ())
            component = replace(component, degree=component.degree or computed.degree, equations=texts)
            _add_degree_evidence(context, strata, maximal, at, computed)
        components.append(component)
    return tuple(components)


def _closure_of(
    context: Context, strata: Strata, at: CurvesAt, prime: int, *, share: float
) -> Closure | None:
    """Return the closure of a stratum; None unless it is complete and has the dimension of the stratum's image."""
    source = strata.parametrization(at.stratum)
    if source is None or strata.model.coordinate_count > _CLOSURE_COORDINATES:
        return None
    decisive = strata.degree(at.stratum) is None
    try:
        stratum_closure = context.ask_question(
            closure, source, prime=prime, equations=True, share=share, decisive=decisive
        )
    except LimitError:
        return None
    usable = stratum_closure.completeness == "complete" and stratum_closure.agreement is not False
    return stratum_closure if usable and stratum_closure.image_dim == at.image_dim else None


def _largest(maximal: Sequence[CurvesAt]) -> list[CurvesAt]:
    dim = max(at.image_dim for at in maximal)
    return [at for at in maximal if at.image_dim == dim]


def _add_degree_evidence(
    context: Context, strata: Strata, maximal: Sequence[CurvesAt], at: CurvesAt, computed: Closure
) -> None:
    """Add the degree by equations: of the singular locus if one stratum is the largest, otherwise of the stratum."""
    largest = _largest(maximal)
    whole_locus = len(largest) == 1 and largest[0] is at
    quantity = "singular_degree" if whole_locus else f"degree of {at.name}"
    method = f"equations of the closure of the stratum {at.name}"
    context.add_evidence(
        Evidence(quantity, computed.degree, "macaulay2", method, prime=computed.characteristic or None)
    )
    if not whole_locus and (degree := strata.degree(at.stratum)) is not None:
        context.add_evidence(
            Evidence(quantity, degree.value, "strata", degree.argument, certainty=Certainty.THEOREM)
        )


def add_size_evidence(
    context: Context, strata: Strata, maximal: Sequence[CurvesAt], verdicts: Sequence[Stratum]
) -> None:
    """Add dimension and degree of the singular locus: of the largest singular strata."""
    certainty = Certainty.weakest(s.certainty for s in verdicts)
    dim = max((at.image_dim for at in maximal), default=-1)
    context.add_evidence(
        Evidence("singular_dim", dim, "orbits", "largest singular stratum", certainty=certainty)
    )
    degrees = [strata.degree(at.stratum) for at in _largest(maximal)] if maximal else []
    stated = [degree for degree in degrees if degree is not None]
    if stated and len(stated) == len(degrees):
        argument = "; ".join(degree.argument for degree in stated)
        value = sum(degree.value for degree in stated)
        sure = Certainty.weakest([Certainty.THEOREM, certainty])
        method = "degree of the largest singular strata's closures"
        fields: dict[str, Any] = {"certainty": sure, "detail": {"theorem": argument}}
        context.add_evidence(Evidence("singular_degree", value, "orbits", method, **fields))


# -- points on components --------------------------------------------------------------------------------------------------------


def compare_with_components(
    context: Context, curves: Sequence[CurvesAt], verdicts: Sequence[Stratum], closed: Closure, components: Sequence[Component]
) -> list[Stratum]:  # fmt: skip
    """Return the strata with the numbers of the components that contain their points; compare these with the verdicts.

    The verdicts do not use the components, so that the two can contradict each other.
    """
    numbered = []
    for at, stratum in zip(curves, verdicts, strict=True):
        inside = _components_at(at, closed, components)
        singular = None if stratum.verdict == "undecided" else stratum.verdict == "singular"
        statements = (
            (bool(inside), "macaulay2", "on a component of the singular locus"),
            (singular, "modular", "tangent space at the image of these weights"),
        )
        context.add_evidence(*(Evidence(f"singular at {at.name}", *statement) for statement in statements))
        numbered.append(replace(stratum, components=tuple(inside)))
    return numbered


def _components_at(at: CurvesAt, closed: Closure, components: Sequence[Component]) -> list[int]:
    """Return the numbers of the components on which the image of the point lies."""
    p = closed.characteristic
    image = at.point.image(p)
    names = [f"z{i}" for i in range(len(image))]

    def vanishes(text: str) -> bool:
        terms = parse_polynomial(text, names, source="a component")
        return not equation(terms, range(len(names)), p=p).at(image, p)

    return [
        n for n, component in enumerate(components, start=1) if all(map(vanishes, component.equations or ()))
    ]
