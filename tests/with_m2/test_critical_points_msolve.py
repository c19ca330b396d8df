"""Critical points with msolve beside Macaulay2: counts that agree, counts that Macaulay2 does not reach, and damaged output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flint import acb, arb, fmpq

from m2bridge import critical_points
from m2bridge.engine import Engine
from m2bridge.questions.critical_points import real
from m2bridge.questions.critical_points.counting import Count, Counter, generic_ed_degree
from m2bridge.questions.critical_points.verified import verified_ball
from tests.altering import damaged_msolve
from tests.answering import Answers

SMALL = "linear(widths=[2,1,2])"


def by_msolve(found: object) -> list[tuple[object, int | None]]:
    return [(item.value, item.prime) for item in found.evidence if item.witness == "msolve"]  # type: ignore[attr-defined]


def test_both_engines_count(msolve: Engine, answered: Answers) -> None:
    """2 x 2 matrices of rank 1: 6, by Chern classes of P^1 x P^1. The input of msolve is in the record."""
    found = answered(critical_points, SMALL)
    assert found.regular == 6
    assert [value for value, _ in by_msolve(found)] == [6]
    assert found.agreement is True
    inputs = [script for script in found.scripts if "msolve" in script.values]
    assert {script.values["msolve"] for script in inputs} == {msolve.info.version}
    assert found.final_script not in inputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "regular"),
    [
        # matrices of corank 1 of these sizes; the ED degree for a general quadric is that of the dual variety, of rank 1
        ("mlp(widths=[2,2,3],r=2)", generic_ed_degree((2, 2), (1, 1))),
        ("linear(widths=[4,2,3])", generic_ed_degree((3, 2), (1, 1))),
    ],
)
def test_families_of_critical_points_are_left_out(msolve: Engine, spec: str, regular: int) -> None:
    """Critical weights where the differential drops form families, which no engine should compute."""
    found = critical_points(spec, timeout=300)
    assert found.regular == regular
    assert [value for value, _ in by_msolve(found)] == [regular]
    assert found.limit is None


def test_msolve_counts_where_macaulay2_stops(
    msolve: Engine, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    """Over two primes; the answer names the limit, because it misses its second witness."""
    count = Counter.count

    def stopped(self: Counter, *args: object, **more: object) -> Count:
        found = count(self, *args, **more)  # type: ignore[arg-type]
        return replace(found, points=None, drop_dim=None, values=None, limit="stopped by its time limit")

    monkeypatch.setattr(Counter, "count", stopped)
    found = critical_points(SMALL, engine=engine)
    assert (found.regular, found.limit) == (6, "stopped by its time limit")
    assert len({prime for value, prime in by_msolve(found) if value == 6}) == 2


@pytest.mark.parametrize("change", ["head -c -4", "kill -SEGV $$", "head -c 0"])
def test_a_damaged_output_is_no_witness(
    msolve: Engine, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setenv("M2BRIDGE_MSOLVE", damaged_msolve(tmp_path, msolve, change))
    found = critical_points(SMALL, engine=engine)
    assert [value for value, _ in by_msolve(found)] == [None]
    assert found.regular == 6
    assert found.agreement is True


def test_a_lost_solution_is_a_contradiction(
    msolve: Engine, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leading monomial of a lower degree leaves fewer points."""
    change = "sed 's/\\^3/^2/'"
    monkeypatch.setenv("M2BRIDGE_MSOLVE", damaged_msolve(tmp_path, msolve, change))
    found = critical_points(SMALL, engine=engine)
    assert found.agreement is False


def test_without_msolve_everything_works(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M2BRIDGE_MSOLVE", "/nonexistent/msolve")
    found = critical_points(SMALL, engine=engine)
    assert found.regular == 6
    assert by_msolve(found) == []
    assert found.agreement is True


# -- real points -----------------------------------------------------------------------------------------


def test_the_real_points_of_both_engines_are_the_same(
    msolve: Engine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The losses to 12 digits, and the index of every point; each of msolve's points is verified in ball arithmetic."""
    by_macaulay2 = critical_points(SMALL, real=True, engine=engine)
    monkeypatch.setattr(real, "MOST_POINTS", 1)
    found = critical_points(SMALL, real=True, engine=engine)
    assert (found.real, found.index) == (by_macaulay2.real, by_macaulay2.index)
    assert {point.loss for point in found.real_points} == {point.loss for point in by_macaulay2.real_points}
    bounds = [item for item in found.evidence if item.witness == "Krawczyk"]
    assert [(item.value, item.relation) for item in bounds] == [(found.real, ">=")]
    assert found.agreement is True


@pytest.mark.parametrize(
    ("change", "agreement"),
    [
        # the first box of the list is left out: the polynomial has one real root more
        (r"sed 's/^\[\[\[[^]]*\], \[[^]]*\], \[[^]]*\]\], /[/'", False),
        ("head -c -9", True),
        ("kill -SEGV $$", True),
    ],
)
def test_a_lost_real_point_is_caught(
    msolve: Engine,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    agreement: bool,
) -> None:
    """A lost box contradicts the isolation by FLINT; without an answer of msolve nothing is said about real points."""
    monkeypatch.setattr(real, "MOST_POINTS", 1)
    monkeypatch.setenv("M2BRIDGE_MSOLVE", damaged_msolve(tmp_path, msolve, change))
    found = critical_points(SMALL, real=True, engine=engine)
    assert found.agreement is agreement
    if agreement:
        assert found.real is None
        assert any("real points" in remark for remark in found.remarks)


def test_two_points_of_the_chart_with_one_function(msolve: Engine, engine: Engine) -> None:
    """All binary cubics: only the target is critical, a real minimum; the order of two hidden units is not fixed by the chart."""
    found = critical_points("mlp(widths=[2,2,1],r=3)", real=True, engine=engine)
    assert (found.fiber_degree, found.real, found.index) == (2, 1, {"minimum": 1})
    assert found.agreement is True


def test_index_at_a_complex_point_with_a_real_function() -> None:
    """y = x^2 is -1 at x = i. Half of (y + 1)^2 has the second derivative 6 x^2 + 2 = -4 there by x, and 1 by y."""
    hessian = {(0, 0): {(2,): fmpq(6), (0,): fmpq(2)}}
    assert real.index_at(hessian, [acb(0, 1)], [[acb(0, 2)]]) == 0
    concave = {(0, 0): {(2,): fmpq(-6), (0,): fmpq(-2)}}
    assert real.index_at(concave, [acb(0, 1)], [[acb(0, 2)]]) == 1


def test_krawczyk_accepts_a_zero_and_nothing_else() -> None:
    """The gradient (x^2 - 2, y) has one zero near (1.4142, 0), none near (1, 0)."""
    gradient = [{(2, 0): fmpq(1), (0, 0): fmpq(-2)}, {(0, 1): fmpq(1)}]
    hessian = {(0, 0): {(1, 0): fmpq(2)}, (0, 1): {}, (1, 1): {(0, 0): fmpq(1)}}
    near = verified_ball(gradient, hessian, [arb("1.41421356"), arb(0)], arb("1e-6"))
    assert near is not None
    assert near[0].contains(arb(2).sqrt())
    assert verified_ball(gradient, hessian, [arb(1), arb(0)], arb("1e-6")) is None


@pytest.mark.slow
def test_all_real_points_of_284(msolve: Engine) -> None:
    """M(2, 2, 2): 284 by Chern classes of P^3 x P^3; the real ones are isolated, and each is verified."""
    found = critical_points("lightning(d=2,dp=2)", real=True, timeout=3600)
    assert found.regular == generic_ed_degree((3, 3), (1, 1)) == 284
    assert found.real == len(found.real_points)
    assert found.real is not None
    assert found.real % 2 == 0
    assert found.agreement is True
