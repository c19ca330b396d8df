"""Compare answers to `singular-locus`, `boundary` and `fiber` with the statements of the paper.

The statements are predictions. They are not used to compute the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.families import Attention, Model
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.attention_strata import Orbit, matrix_dim
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.orbits import orbit_of
from m2bridge.questions.over_q import is_skew
from m2bridge.results import TheoremCheck

if TYPE_CHECKING:
    from m2bridge.questions.boundary.result import Boundary, OrbitLocation
    from m2bridge.questions.fiber.result import Fiber
    from m2bridge.questions.singular_locus.result import SingularLocus, Stratum

_HYPOTHESES = "for t >= 2 and (d, d' >= 2 or d, a >= 2)"
THEOREM_32 = "Theorem 3.2 (fibers of one layer)"
STATEMENT_32 = (
    "for t >= 2 the fiber is, up to rescaling, one point; two points (k q^T, h v^T) and (v q^T, h k^T) when rk A = rk V = 1; "
    "{A = 0} and {V = 0} for the zero function"
)
THEOREM_37 = "Theorem 3.7 (fibers of deep networks)"
STATEMENT_37 = "for t >= 3, L != 0, all rk M_i >= 2 and M_i not skew-symmetric for i > 1, the fiber consists of rescalings"

Weights = Mapping[str, np.ndarray]


def applies(model: Attention) -> bool:
    """Return whether the hypotheses of Theorem 3.4 and Corollary A.6 hold."""
    return model.t >= 2 and model.d >= 2 and (model.dp >= 2 or model.a >= 2)


def predicts_singular(orbit: Stratum) -> bool:
    """Return whether Theorem 3.4 as printed predicts that an orbit is singular."""
    return orbit.ranks["A"] * orbit.ranks["V"] <= 1


def singular_points(model: Model, answer: SingularLocus) -> dict[str, Any]:
    """Compare Theorem 3.4 on singular points with the decided verdicts."""
    if model.knowledge.layer is None or not answer.exhaustive:
        return {}
    decided = [s for s in answer.strata if s.verdict != "undecided"]
    failure = next((s for s in decided if (s.verdict == "singular") != predicts_singular(s)), None)
    holds = applies(model.knowledge.layer)
    agrees = failure is None if holds and (failure or len(decided) == len(answer.strata)) else None
    check = TheoremCheck(
        name="Theorem 3.4 (singular points)",
        statement=f"{_HYPOTHESES}, the point of (A, V) is singular exactly when rk A * rk V <= 1",
        applies=holds,
        agrees=agrees,
        witness=_singular_witness(failure, answer.image_dim) if holds and failure else None,
    )
    return {"theorem": check}


def _singular_witness(stratum: Stratum, image_dim: int) -> dict[str, Any]:
    reason = (
        f"curves in the image through this point span {stratum.tangent_lower} > {image_dim} dimensions"
        if stratum.verdict == "singular"
        else f"equations leave a tangent space of {stratum.tangent_upper} = {image_dim} dimensions"
    )
    printed = "singular" if predicts_singular(stratum) else "smooth"
    comparison = {"printed": printed, "computed": stratum.verdict, "certainty": stratum.certainty.value}
    return {**written_stratum(stratum, image_dim), **comparison, "reason": reason}


def written_stratum(stratum: Stratum, image_dim: int) -> dict[str, Any]:
    """Return an orbit with its representative and the bounds of its tangent space, as JSON."""
    ranks = {"rank_a": stratum.ranks["A"], "rank_v": stratum.ranks["V"], "meet": stratum.ranks["meet"]}
    width = isqrt(len(stratum.representative["A"]))
    matrices = {
        name: np.array(list(map(int, entries))).reshape(-1, width).tolist()
        for name, entries in stratum.representative.items()
    }
    bounds = {"tangent_lower": stratum.tangent_lower, "tangent_upper": stratum.tangent_upper}
    return {**ranks, **bounds, **matrices, "image_dim": image_dim}


def boundary_points(model: Model, answer: Boundary) -> dict[str, Any]:
    """Compare Theorem 3.4 and Corollary A.6 on boundary points with the location of every orbit."""
    layer = model.knowledge.layer
    assert layer is not None
    return {
        "theorem": _about_boundary(
            layer, answer.orbits, "Theorem 3.4 (boundary points)",
            "boundary points are exactly those with A = k (x) q and V = h (x) k",
            # k, q, h may be zero, so that the zero function is of this form for all of its weights
            lambda p: p.rank_a * p.rank_v == 0 or (p.rank_a, p.rank_v, p.meet) == (1, 1, 1),
        ),
        "corollary": _about_boundary(
            layer, answer.orbits, "Corollary A.6",
            "a point is on the boundary exactly when its weights are critical for (A, V) -> network",
            lambda p: p.critical,
        ),
    }  # fmt: skip


def _about_boundary(
    model: Attention,
    locations: Sequence[OrbitLocation],
    name: str,
    statement: str,
    predicts: Callable[[OrbitLocation], bool],
) -> TheoremCheck:
    failure = next((p for p in locations if (p.where == "boundary") != predicts(p)), None)
    holds = applies(model)
    witness = None
    if holds and failure is not None:
        printed = "boundary" if predicts(failure) else "not on the boundary"
        witness = {**_ranks(failure), "printed": printed, "computed": failure.where}
    return TheoremCheck(
        name=name,
        statement=f"{_HYPOTHESES}, {statement}",
        applies=holds,
        agrees=failure is None if holds else None,
        witness=witness,
    )


def _ranks(orbit: Any) -> dict[str, int]:
    return {name: getattr(orbit, name) for name in ("rank_a", "rank_v", "meet")}


def fibers(model: Model, answer: Fiber) -> dict[str, Any]:
    """Compare Theorem 3.2 or 3.7 with the components and orbits computed by Macaulay2."""
    layer, network = model.knowledge.layer, model.knowledge.attention
    if layer is not None:
        return {"theorem": _theorem_32(layer, weights_of(answer), answer)}
    if network is not None and network.parametrization == "virtual" and network.layers > 1:
        return _theorem_37(network, answer)
    return {}


def weights_of(answer: Fiber) -> dict[str, np.ndarray]:
    """Return the weights through which a fiber goes, as exact numbers."""
    weights = answer.at["weights"]
    return {name: elementwise(Fraction, np.array(rows, dtype=object)) for name, rows in weights.items()}


def one_layer_orbit(weights: Weights) -> Orbit:
    """Return (rk A, rk V, meet) of weights of one layer of attention, exactly."""
    return orbit_of(weights["A"] if "A" in weights else weights["K"].T @ weights["Q"], weights["V"])


def zero_fiber_dims(model: Attention) -> list[int]:
    """Return the dimensions of {V = 0} and {A = 0}, which are the fiber of the zero function in (A, V), the larger one first."""
    return sorted([matrix_dim(model.d, model.d, model.attention_rank), model.d * model.dp], reverse=True)


def predicted_dims(model: Attention, orbit: Orbit) -> list[int] | None:
    """Return the dimensions of the components that Theorem 3.2 and Lemma 3.1 predict; None if they predict none.

    In (Q, K, V) a component lifts with GL_a when rk A = a <= d on it; the zero fiber and smaller ranks are not described.
    """
    lift = 0
    if model.parametrization == "weights":
        if orbit.is_zero or orbit.rank_a != model.a:
            return None
        lift = model.a**2
    if orbit.is_zero:
        return zero_fiber_dims(model)
    two_components = (orbit.rank_a, orbit.rank_v, orbit.meet) == (1, 1, 0)
    return [1 + lift] * (2 if two_components else 1)


def _theorem_32(model: Attention, weights: Weights, answer: Fiber) -> TheoremCheck:
    orbit = one_layer_orbit(weights)
    expected = predicted_dims(model, orbit)
    holds = model.t >= 2 and expected is not None
    dims = None
    if answer.components is not None and all(c.absolute for c in answer.components):
        dims = [c.dim for c in answer.components]
    agrees = None if not holds or dims is None else dims == expected
    witness = {**_ranks(orbit), "printed": expected, "computed": dims} if agrees is False else None
    return TheoremCheck(
        name=THEOREM_32, statement=STATEMENT_32, applies=holds, agrees=agrees, witness=witness
    )


def hypotheses_37(model: AttentionNetwork, weights: Weights) -> dict[str, bool]:
    """Return the printed hypotheses at a point in virtual weights, and the one that is missing."""
    M = [weights[f"M{i}"] for i in range(1, model.layers + 1)]
    return {
        "t >= 3": model.t >= 3,
        "L != 0": bool(weights["L"].any()),
        "all rk M_i >= 2": all(over_q.rank(m) >= 2 for m in M),
        "M_i not skew for i > 1": not any(is_skew(m) for m in M[1:]),
        "M_1 not skew": not is_skew(M[0]),
    }


def macaulay2_orbits(answer: Fiber) -> int | None:
    """Return the number of orbits that Macaulay2 counted; None if it did not, or if the numbers over two fields differ."""
    numbers = {e.value for e in answer.evidence if (e.quantity, e.witness) == ("orbits", "macaulay2")}
    return numbers.pop() if len(numbers) == 1 and answer.components is not None else None


def _theorem_37(model: AttentionNetwork, answer: Fiber) -> dict[str, Any]:
    hypotheses = hypotheses_37(model, weights_of(answer))
    counter = answer.counterexample
    orbits = macaulay2_orbits(answer)
    missing = "M_1 not skew"
    holds = all(truth for name, truth in hypotheses.items() if name != missing)
    refuted = counter is not None and counter["verified"] is True
    agrees = orbits == 1 and not refuted if holds and (orbits is not None or refuted) else None
    witness = None
    if agrees is False:
        witness = {"orbits": orbits, "missing hypothesis": missing, "M_1 skew": not hypotheses[missing]}
        if counter is not None:
            witness |= {"other weights": counter["other"], "verified over QQ": counter["verified"]}
    check = TheoremCheck(
        name=THEOREM_37, statement=STATEMENT_37, applies=holds, agrees=agrees, witness=witness
    )
    if counter is None:
        return {"theorem": check}
    statement = "Theorem 3.7 as printed: the fiber consists of rescalings of the weights"
    repair = "require that no M_i is skew, M_1 included"
    return {"theorem": check, "counterexample": {"statement": statement, **counter, "repair": repair}}


_ABOUT: dict[str, Callable[[Model, Any], dict[str, Any]]] = {
    "singular-locus": singular_points,
    "boundary": boundary_points,
    "fiber": fibers,
}


def comments_on(question: str, subject: Any, answer: Any) -> dict[str, Any]:
    """Return the statements of the paper about an answer and whether it agrees, as fields of the answer."""
    return _ABOUT[question](subject, answer) if question in _ABOUT else {}
