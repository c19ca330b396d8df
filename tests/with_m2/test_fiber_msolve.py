"""Fibers with msolve beside Macaulay2: the number of points of a slice, and damaged output."""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge.engine import Engine
from m2bridge.questions.fiber import Fiber, fiber
from tests.altering import damaged_msolve

SLICED = "mlp(widths=[3,3,2],r=2)"
QUANTITY = "degree of the slice"


def degrees(found: Fiber) -> dict[str, object]:
    return {item.witness: item.value for item in found.evidence if item.quantity == QUANTITY}


def test_both_engines_count_the_points_of_a_slice(msolve: Engine, engine: Engine) -> None:
    """Three hidden units can be permuted: 3! points."""
    found = fiber(SLICED, engine=engine)
    assert degrees(found) == {"macaulay2": 6, "msolve": 6}
    assert found.agreement is not False


def test_whole_fibers_of_finitely_many_points(msolve: Engine, engine: Engine) -> None:
    """(s + t, s t) has the two orders of its roots as weights; s^2 = 0 counts twice."""
    for spec, at, degree in (("map:s,t->s+t;s*t", [[1, 2]], 2), ("map:s->s^2", [[0]], 2)):
        found = fiber(spec, at={"x": at[0]}, engine=engine)
        by_msolve = [item.value for item in found.evidence if item.witness == "msolve"]
        assert (found.degree, by_msolve) == (degree, [degree])
        assert found.agreement is not False


@pytest.mark.parametrize("change", ["head -c -4", "kill -SEGV $$", "head -c 0", "tr 0-9 a-j"])
def test_a_damaged_output_is_no_witness(
    msolve: Engine, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setenv("M2BRIDGE_MSOLVE", damaged_msolve(tmp_path, msolve, change))
    found = fiber(SLICED, engine=engine)
    assert degrees(found) == {"macaulay2": 6}
    assert found.verdict == "identifiable-up-to-symmetry"
    assert found.agreement is not False


def test_a_lost_point_is_a_contradiction(
    msolve: Engine, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leading monomial of a lower degree leaves fewer points."""
    monkeypatch.setenv("M2BRIDGE_MSOLVE", damaged_msolve(tmp_path, msolve, "sed 's/\\^2/^1/'"))
    assert fiber(SLICED, engine=engine).agreement is False
