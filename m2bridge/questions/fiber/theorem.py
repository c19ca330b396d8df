"""Theorems 3.2 and 3.7 of Henry, Marchetti, Kohn as printed, compared with computed fibers. Predictions, never checks."""

from __future__ import annotations

from typing import Any

from m2bridge.models import DeepLightning, Lightning
from m2bridge.questions import over_q
from m2bridge.questions.fiber import skew
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.singular_locus.orbits import Orbit, orbit_of
from m2bridge.results import TheoremCheck

THEOREM_32 = "Theorem 3.2 (fibers of one layer)"
STATEMENT_32 = (
    "for t >= 2 the fiber is, up to rescaling, one point; two points (k q^T, h v^T) and (v q^T, h k^T) when rk A = rk V = 1; "
    "{A = 0} and {V = 0} for the zero function"
)
THEOREM_37 = "Theorem 3.7 (fibers of deep networks)"
STATEMENT_37 = "for t >= 3, L != 0, all rk M_i >= 2 and M_i not skew-symmetric for i > 1, the fiber consists of rescalings"


def one_layer_orbit(point: Point) -> Orbit:
    """(rk A, rk V, meet) of a point of one layer of attention, exactly."""
    weights = point.weights
    return orbit_of(weights["A"] if "A" in weights else weights["K"].T @ weights["Q"], weights["V"])


def predicted_dims(model: Lightning, orbit: Orbit) -> list[int] | None:
    """Dimensions of the components that Theorem 3.2 and Lemma 3.1 predict; None where they say nothing.

    In (Q, K, V) a component lifts with GL_a when rk A = a <= d on it; the zero fiber and smaller ranks are not described.
    """
    lift = 0
    if model.parametrization == "weights":
        if orbit.is_zero or orbit.rank_a != model.a:
            return None
        lift = model.a**2
    if orbit.is_zero:
        bounded = model.attention_rank * (2 * model.d - model.attention_rank)
        return sorted([bounded, model.d * model.dp], reverse=True)
    two = (orbit.rank_a, orbit.rank_v, orbit.meet) == (1, 1, 0)
    return [1 + lift] * (2 if two else 1)


def compare(
    point: Point, components: tuple[FiberComponent, ...] | None, orbits: int | None, counterexample: Any
) -> TheoremCheck | None:
    """The theorem about this kind of network against Macaulay2's components and orbits; None when there is no theorem."""
    model = point.model
    if isinstance(model, Lightning):
        known = components is not None and all(c.absolute for c in components)
        return _theorem_32(model, point, [c.dim for c in components or ()] if known else None)
    if isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.layers > 1:
        return _theorem_37(point, orbits, counterexample)
    return None


def _theorem_32(model: Lightning, point: Point, dims: list[int] | None) -> TheoremCheck:
    orbit = one_layer_orbit(point)
    expected = predicted_dims(model, orbit)
    applies = model.t >= 2 and expected is not None
    agrees = None if not applies or dims is None else dims == expected
    witness = None
    if agrees is False:
        ranks = {name: getattr(orbit, name) for name in ("rank_a", "rank_v", "meet")}
        witness = {**ranks, "printed": expected, "computed": dims}
    return TheoremCheck(
        name=THEOREM_32, statement=STATEMENT_32, applies=applies, agrees=agrees, witness=witness
    )


def hypotheses_37(point: Point) -> dict[str, bool]:
    """The printed hypotheses at a point in virtual weights, and the one that is missing."""
    model = point.model
    assert isinstance(model, DeepLightning)
    M = [point.weights[f"M{i}"] for i in range(1, model.layers + 1)]
    return {
        "t >= 3": model.t >= 3,
        "L != 0": bool(point.weights["L"].any()),
        "all rk M_i >= 2": all(over_q.rank(m) >= 2 for m in M),
        "M_i not skew for i > 1": not any(skew.is_skew(m) for m in M[1:]),
        "M_1 not skew": not skew.is_skew(M[0]),
    }


def _theorem_37(point: Point, orbits: int | None, counterexample: Any) -> TheoremCheck:
    held = hypotheses_37(point)
    applies = all(truth for name, truth in held.items() if name != "M_1 not skew")
    refuted = counterexample is not None and counterexample["verified"] is True
    agrees = orbits == 1 and not refuted if applies and (orbits is not None or refuted) else None
    witness = None
    if agrees is False:
        missing = "M_1 not skew"
        witness = {"orbits": orbits, "missing hypothesis": missing, "M_1 skew": not held[missing]}
        if counterexample is not None:
            witness["other weights"] = counterexample["other"]
            witness["verified over QQ"] = counterexample["verified"]
    return TheoremCheck(
        name=THEOREM_37, statement=STATEMENT_37, applies=applies, agrees=agrees, witness=witness
    )
