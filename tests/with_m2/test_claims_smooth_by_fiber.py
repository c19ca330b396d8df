"""Undecided orbits that one reduced fiber shows to be smooth, and singular ones that it must leave alone."""

from __future__ import annotations

from dataclasses import fields

import pytest

from m2bridge.claims.base import Context
from m2bridge.claims.lightning_attention.theorem_3_4_singular import smooth_by_its_fiber
from m2bridge.engine import Engine
from m2bridge.models import Lightning
from m2bridge.questions.singular_locus import Stratum


@pytest.mark.parametrize(
    ("sizes", "orbit", "verdict"),
    [
        ((4, 2, 2), (2, 1, 1), "smooth"),
        ((2, 1, 2), (2, 1, 1), "smooth"),
        ((2, 2, 1), (1, 1, 1), "undecided"),  # the fiber is one point, but not reduced: singular
        ((2, 2, 1), (1, 1, 0), "undecided"),  # two points: singular
        ((3, 2, 2), (1, 2, 1), "undecided"),  # one reduced point, but the source is singular there
    ],
)
def test_only_a_reduced_point_where_the_source_is_smooth_shows_smoothness(
    sizes: tuple[int, int, int], orbit: tuple[int, int, int], verdict: str, engine: Engine
) -> None:
    d, dp, a = sizes
    known = dict(zip(("rank_a", "rank_v", "meet"), orbit, strict=True)) | {"verdict": "undecided"}
    stratum = Stratum(**{item.name: known.get(item.name) for item in fields(Stratum)})
    found = smooth_by_its_fiber(Lightning(d=d, dp=dp, a=a), stratum, Context(engine=engine))
    assert found.verdict == verdict
