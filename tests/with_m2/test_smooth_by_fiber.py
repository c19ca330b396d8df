"""Orbits that a finite map with a one-point fiber decides, and those that it must leave alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from m2bridge import protocol, scripts
from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.families import Attention, Lightning
from m2bridge.families.attention_strata import LayerStrata, Orbit
from m2bridge.limits import Limits
from m2bridge.questions import find
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Context
from m2bridge.questions.singular_locus.strata import curves_at_strata, verdicts


class OneOrbit(LayerStrata):
    """One orbit of a layer, as if it were all strata."""

    def __init__(self, layer: Attention, orbit: Orbit) -> None:
        super().__init__(layer)
        self.orbit = orbit

    def strata(self) -> tuple[Orbit, ...]:
        return (self.orbit,)


@pytest.mark.parametrize(
    ("sizes", "orbit", "verdict"),
    [
        ((4, 2, 2), (2, 1, 1), "smooth"),
        ((5, 2, 2), (2, 2, 2), "smooth"),
        ((2, 1, 2), (2, 1, 1), "smooth"),
        ((4, 2, 4), (1, 2, 1), "smooth"),  # a = d: the source has no condition and is smooth everywhere
        ((4, 3, 4), (2, 1, 1), "smooth"),
        ((3, 2, 3), (1, 1, 0), "undecided"),  # two points
        (
            (2, 2, 1),
            (1, 1, 1),
            "undecided",
        ),  # one point, but not reduced: v q^T h k^T with v = k (Theorem 3.2)
        ((2, 2, 1), (1, 1, 0), "undecided"),  # two points: k and v exchanged
        ((3, 2, 2), (1, 2, 1), "undecided"),  # the source {rk A <= 2} is singular at rank one
    ],
)
def test_only_one_reduced_point_where_the_source_is_smooth_decides(
    engine: Engine, sizes: tuple[int, int, int], orbit: tuple[int, int, int], verdict: str
) -> None:
    d, dp, a = sizes
    strata = OneOrbit(Lightning(d=d, dp=dp, a=a), Orbit(*orbit))
    context = Context(engine=engine, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    size = dimension(strata.model, engine=False)
    (curves,) = curves_at_strata(context, strata, size)
    (found,) = verdicts(context, strata, size, [replace(curves, lines=(), image_dim=0)], None, 32003)
    assert found.verdict == verdict
    if verdict == "smooth":
        dim = a * (2 * d - a) + d * dp - 1  # of {rk A <= a} x V, projectivised twice, and of the cone over it
        assert (found.tangent_upper, found.certainty) == (dim, Certainty.THEOREM)


def test_lengths_of_fibers_by_theorem_3_2(engine: Engine) -> None:
    # rk A rk V >= 2: one point; rk = (1,1): two points, or one of length two when v is proportional to k (Henry, Marchetti, Kohn)
    model = Lightning(d=2, dp=2, a=2, parametrization="attention", coordinate_system="segre")
    orbits = [Orbit(2, 1, 1), Orbit(2, 2, 2), Orbit(1, 1, 0), Orbit(1, 1, 1)]
    places = [[M.ravel() for M in orbit.representative(2, 2)] for orbit in orbits]
    sent = {**model.m2_parameters, "p": 32003, "places": places}
    values = protocol.read(engine.run(scripts.render("fiber_length", sent, partial=model.m2_partial)))
    assert [values[f"fiber_{i}"] for i in range(4)] == [[1, 2], [1, 2], [1, 4], [1, 4]]


@pytest.mark.slow
def test_every_orbit_at_4_2_2_is_decided(engine: Engine) -> None:
    result = find("singular-locus")("lightning(d=4,dp=2,a=2)", engine=engine)
    assert all(s.verdict != "undecided" and s.certainty.exact for s in result.strata)
    # repaired Theorem 3.4: singular exactly when rk A rk V <= 1, or a < d and rk A < a
    assert all(
        (s.verdict == "singular") == (s.ranks["A"] * s.ranks["V"] <= 1 or s.ranks["A"] < 2)
        for s in result.strata
    )
