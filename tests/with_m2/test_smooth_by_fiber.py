"""Orbits that a finite map with a one-point fiber decides, and those that it must leave alone."""

from __future__ import annotations

import pytest

from m2bridge import protocol, scripts
from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.families import Lightning
from m2bridge.limits import Limits
from m2bridge.questions import find
from m2bridge.questions.kernel import Context
from m2bridge.questions.orbits import Orbit
from m2bridge.questions.singular_locus import Stratum
from m2bridge.questions.singular_locus.strata import decided_by_fibers


def undecided(orbit: Orbit) -> Stratum:
    return Stratum(
        rank_a=orbit.rank_a, rank_v=orbit.rank_v, meet=orbit.meet, orbit_dim=0, tangent_lower=0, tangent_upper=None,
        verdict="undecided", certainty=Certainty.PROBABLE, representative={}, closure_contains=(),
    )  # fmt: skip


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
    model = Lightning(d=d, dp=dp, a=a, parametrization="attention", coordinate_system="segre")
    context = Context(engine=engine, prime=None, seed=0, limits=Limits(), keep=None, progress=None)
    (found,) = decided_by_fibers(context, model, [Orbit(*orbit)], [undecided(Orbit(*orbit))], 32003)
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
    assert values["fiber_dims"] == [1, 1, 1, 1]
    assert values["fiber_degrees"] == [2, 2, 4, 4]


@pytest.mark.slow
def test_every_orbit_at_4_2_2_is_decided(engine: Engine) -> None:
    result = find("singular-locus")("lightning(d=4,dp=2,a=2)", engine=engine)
    assert all(s.verdict != "undecided" and s.certainty.exact for s in result.strata)
    # repaired Theorem 3.4: singular exactly when rk A rk V <= 1, or a < d and rk A < a
    assert all((s.verdict == "singular") == (s.rank_a * s.rank_v <= 1 or s.rank_a < 2) for s in result.strata)
