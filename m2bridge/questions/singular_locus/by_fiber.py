"""Smooth without equations: where the finite projectivised map has one reduced point over a point of the image.

The map PP{rk A <= a} x PP(V) -> PP(coordinates) is defined everywhere and finite. Where its fiber is one reduced point of the
smooth part of the source, it is a closed immersion nearby, and the image is smooth; the argument is in
docs/decisions/0018-smooth-by-a-finite-map.md. The fiber is taken among all A, which can only make it larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from m2bridge.linear.modular import rank_over_q
from m2bridge.models import Lightning
from m2bridge.questions.kernel import Asking
from m2bridge.questions.singular_locus.orbits import Orbit, differential
from m2bridge.questions.singular_locus.result import Stratum
from m2bridge.questions.testimony import compared, proves
from m2bridge.results import Certainty

TEMPLATE = "fiber_length"


def decided_by_fibers(
    ask: Asking, model: Lightning, orbits: Sequence[Orbit], strata: Sequence[Stratum], prime: int
) -> list[Stratum]:
    """The strata, with undecided ones decided smooth where the length of the fiber shows it."""
    reached = min(model.a, model.d)
    source_dim = reached * (2 * model.d - reached) + model.dp * model.d - 1
    asked = [
        i
        for i, (o, s) in enumerate(zip(orbits, strata, strict=True))
        if s.verdict == "undecided" and o.rank_a == reached and o.rank_v
    ]
    found = list(strata)
    if not asked:
        return found
    pairs = [orbits[i].representative(model.d, model.dp) for i in asked]
    places = [[A.ravel(), V.ravel()] for A, V in pairs]
    values, _ = ask.ask(TEMPLATE, {"p": prime, "places": places}, replace(model, a=model.d))
    sizes = zip(values.get("fiber_dims") or (), values.get("fiber_degrees") or (), strict=True)
    for i, (A, V), (dim, degree) in zip(asked, pairs, sizes, strict=False):
        orbit = orbits[i]
        # a fiber of length one is reduced: the differential has the scaling (A, -V) in its kernel and nothing else
        kernel = model.d**2 + model.dp * model.d - rank_over_q(differential(model, A, V))
        one = (dim, degree) == (1, 2)
        ask.evidence += compared(
            f"one reduced point over {orbit}", ("macaulay2", "degree of the affine fiber is 2", one),
            ("modular", "kernel of the differential over QQ", False if kernel > 1 else one), prime=prime,
        )  # fmt: skip
        if one and kernel == 1:
            method = "finite map whose fiber has length one modulo p, hence over QQ"
            ask.evidence.append(
                proves(f"tangent {orbit}", source_dim, "finite map", method, relation="<=", prime=prime)
            )
            found[i] = replace(
                found[i], verdict="smooth", certainty=Certainty.PROVED, tangent_upper=source_dim
            )
    return found
