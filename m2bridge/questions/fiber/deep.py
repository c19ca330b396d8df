"""Fibers of deep attention: in virtual weights by unique factorization, and in finer weights from those in coarser ones.

See the header of the template ``fiber_deep`` for the mathematics. A solution is one orbit of the scalings of Equation 13.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from m2bridge.errors import OutputError
from m2bridge.models import DeepLightning, Lightning, Mod, Model
from m2bridge.models.evaluation import input_derivative
from m2bridge.protocol import Values
from m2bridge.questions import over_q
from m2bridge.questions.fiber.arguments import widths_are_rank
from m2bridge.questions.fiber.computed import ComputedFiber, compare_dims, compare_outputs, over_the_closure
from m2bridge.questions.fiber.ranks import kernel_dim, symmetry_rank_mod
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.kernel import Asking
from m2bridge.questions.point import Point, other_primes, virtual_point

TEMPLATE = "fiber_deep"
_MOST_MONOMIALS = 2100
"""Interpolation solves a linear system of this size at most."""
_MORE_PRIMES, _CANDIDATES = 5, 60
"""A factor that is irreducible over F_p but not over its closure splits over every second prime or so."""


def wants_factors(model: Model) -> bool:
    """Virtual weights for which one Groebner basis is slow and factoring is not."""
    if not isinstance(model, DeepLightning) or model.parametrization != "virtual":
        return False
    if model.skip or model.multi_head or model.t < 2:
        return False
    return (model.d[0] >= 3 or model.layers >= 3) and _monomial_count(model) <= _MOST_MONOMIALS


def _monomial_count(model: DeepLightning) -> int:
    degree = 3**model.layers
    return comb(model.d[0] + degree - 1, degree)


def _parameters(point: Point, p: int, seed: int) -> dict[str, Any]:
    """Values for the template: inputs with one token, with two, and general ones, and the forward pass's outputs there."""
    model = point.model
    assert isinstance(model, DeepLightning)
    d, t = model.d[0], model.t
    weights = point.mod(p)
    rng = np.random.default_rng([seed, 98])
    single = rng.integers(0, p, size=(_monomial_count(model) + 10, d))
    alone = np.zeros((len(single), d, t), dtype=np.int64)
    alone[:, :, 0] = single
    two = rng.integers(0, p, size=(d * d + 4, 2 * d))
    base, direction = np.zeros((2, len(two), d, t), dtype=np.int64)
    base[:, :, 1], direction[:, :, 0] = two[:, d:], two[:, :d]
    general = rng.integers(0, p, size=(d * d + 4, d, t))
    derivative = input_derivative(model, weights, Mod(base, p), Mod(direction, p)).values
    return {
        "p": p,
        "layers": model.layers,
        "d": d,
        "dl": model.d[-1],
        "t": t,
        "form": rng.integers(1, p, size=model.d[-1]),
        "oneToken": single,
        "oneTokenOutputs": model.forward(weights, Mod(alone, p)).values[:, :, 0],
        "twoTokens": two,
        "twoTokenOutputs": derivative[:, :, 0],
        "inputs": general.reshape(len(general), -1),
        "outputs": model.forward(weights, Mod(general, p)).values.reshape(len(general), -1),
    }


def _promising(primes: list[int], point: Point) -> list[int]:
    """The primes in an order that tries those first over which binary quadratic forms x^T M_i x split (d_0 = 2)."""
    if point.model.input_shape is None or point.model.input_shape[0] != 2:
        return primes
    matrices = [M for name, M in point.weights.items() if name != "L"]
    found = [(M[0, 1] + M[1, 0]) ** 2 - 4 * M[0, 0] * M[1, 1] for M in matrices]
    discriminants = [D.numerator * D.denominator for D in found]
    return sorted(primes, key=lambda p: any(pow(D % p, (p - 1) // 2, p) == p - 1 for D in discriminants))


@dataclass(frozen=True, slots=True)
class Solution:
    """Solutions of one way to distribute the factors: dimension, number of them when finite, one of them over F_p."""

    dim: int
    count: int
    point: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Factored:
    """The fiber up to scalings, or why this way does not describe it; `final` when another prime would not help."""

    obstacle: str | None
    final: bool = False
    solutions: tuple[Solution, ...] = ()


def read(values: Values, p: int) -> Factored:
    """What the template found; an obstacle when the run was cut off or the factors do not decide."""
    if values.get("interpolates") is False:
        return Factored(obstacle="the outputs at single tokens are not those of a form of this degree")
    if values.get("vanishes"):
        return Factored(
            obstacle="the network vanishes at single tokens: some M_i is skew or L = 0", final=True
        )
    if values.get("absolute") is False:
        return Factored(obstacle=f"a factor is irreducible over F_{p} but not over its closure")
    if "solutions" not in values:
        return Factored(obstacle="the computation was cut off")
    found = []
    for entry in values["solutions"]:
        if entry is None:
            continue
        if entry == "undetermined":
            return Factored(obstacle="the two-token terms do not determine M_1")
        if not isinstance(entry, list) or len(entry) != 3:
            message = f"a solution should be [dimension, count, point], not {entry!r}"
            raise OutputError(message, run=values.run)
        dim, count, point = entry
        found.append(Solution(dim, count, None if point is None else tuple(int(x) % p for x in point)))
    return Factored(obstacle=None, solutions=tuple(found))


def factored(ask: Asking, point: Point, p: int, seed: int) -> ComputedFiber:
    """The fiber in virtual weights by unique factorization; no components when several primes do not decide."""
    assert isinstance(point.model, DeepLightning)
    result = ComputedFiber(method="structured")
    for prime in _promising([p, *other_primes(point, p, _CANDIDATES)], point)[: 1 + _MORE_PRIMES]:
        sent = _parameters(point, prime, seed)
        start = time.perf_counter()
        values, result.limit = ask.ask(TEMPLATE, sent)
        seconds = time.perf_counter() - start
        found = read(values, prime)
        if found.obstacle is None or result.limit is not None:
            break
        result.notes.append(f"unique factorization does not decide over F_{prime}: {found.obstacle}")
        if found.final:
            break
    if found.obstacle is not None:
        return result
    if prime != p:
        result.notes.append(f"computed over F_{prime}")
    result.inputs = sum(len(sent[name]) for name in ("oneToken", "twoTokens", "inputs"))
    rng = np.random.default_rng([seed, 103])
    components = [_component(result, point, prime, s, rng, seed, i) for i, s in enumerate(found.solutions)]
    own = [component for component in components if component.orbit]
    if not own and all(s.point is not None and s.count == 1 for s in found.solutions):
        quantity, how = "the point is in its fiber", "the point itself"
        result.compare(quantity, prime, macaulay2=False, modular=True, method=how)
    result.dim_at_point = own[0].dim if own else None
    compare_dims(result, point, prime, seed)
    result.components = tuple(c for component in components for c in over_the_closure(component))
    result.fiber_dim = result.least_dim = max((c.dim for c in components), default=None)
    how = "unique factorization, then a Groebner basis of the skew parts"
    result.say("fiber_dim", how, result.fiber_dim, prime, seconds)
    # Each solution is one orbit: f != 0 makes every M_i and L non-zero on the whole fiber, so that the torus acts with finite
    # stabilizers, and each q_i is normalized exactly. Different ways give q_i that are not proportional.
    if components and all(s.dim == 0 for s in found.solutions):
        result.orbits_full = True
        result.orbits = result.component_count = sum(s.count for s in found.solutions)
        result.say("orbits", how, result.orbits, prime)
    if point.model.constrained and not result.one_orbit:  # only a single orbit is surely the fiber
        result.notes.append(
            "the virtual weights satisfy equations that were not imposed: the fiber may be smaller"
        )
        result.forget("fiber_dim", "orbits", "dim_at_point")
    return result


def _component(
    result: ComputedFiber, point: Point, p: int, solution: Solution, rng: np.random.Generator, seed: int, i: int
) -> FiberComponent:  # fmt: skip
    """The orbits that a solution stands for, with the second witness at a point of them."""
    model = point.model
    assert isinstance(model, DeepLightning)
    dim, single = solution.dim + model.layers, solution.dim == 0 and solution.count == 1
    tangent = orbit = orbit_dim = None
    if solution.point is not None:
        weights = compare_outputs(result, point, solution.point, p, seed, i)
        tangent = kernel_dim(model, weights, p, rng)
        orbit_dim = symmetry_rank_mod(model, weights, p)
        orbit = single and _rescaled(weights, point.mod(p), p)
    reduced = True if tangent == dim else None
    return FiberComponent(
        dim=dim, degree=None, reduced=reduced, multiplicity=1 if reduced else None, absolute=single,
        conjugates=solution.count if solution.dim == 0 else None, orbit=orbit, orbit_dim=orbit_dim,
        tangent_dim=tangent, point=solution.point, equations=None,
    )  # fmt: skip


def _rescaled(first: Mapping[str, Mod], second: Mapping[str, Mod], p: int) -> bool:
    """Whether two virtual weights over F_p are rescalings of each other: every matrix proportional."""
    for name in first:
        a, b = (w[name].values.ravel().astype(object) for w in (first, second))
        if not a.any() or not b.any() or ((np.outer(a, b) - np.outer(b, a)) % p).any():
            return False
    return True


# -- from coarser weights to finer ones ------------------------------------------------------------------------------------------


def coarser(point: Point) -> tuple[Point, int, list[str]] | None:
    """Coarser weights that the network factors through, the dimension of the fibers of that step, and the lemmas used.

    (Q, K, V) -> (A, V) has fibers GL_a where rk A = a <= d (Lemma 3.1). (A_i, V_i) -> (M, L) has fibers GL_delta^(l-1) where the
    hidden widths are delta <= d_0, d_l and rk L = delta (Lemma 3.5). None when a hypothesis fails at the point.
    """
    model, weights = point.model, point.weights
    if isinstance(model, Lightning) and model.parametrization == "weights":
        A = weights["K"].T @ weights["Q"]
        if over_q.rank(A) != model.a or model.a > model.d:
            return None
        below = replace(model, parametrization="attention")
        return replace(point, model=below, weights={"A": A, "V": weights["V"]}), model.a**2, ["Lemma 3.1"]
    if not isinstance(model, DeepLightning) or model.skip or model.multi_head or model.layers < 2:
        return None
    if model.parametrization == "virtual":
        return None
    virtual = virtual_point(point)
    if not widths_are_rank(model.d, virtual.weights["L"]):
        return None
    added, lemmas = (model.layers - 1) * model.d[1] ** 2, ["Lemma 3.5"]
    if model.parametrization == "weights":
        ranks = [over_q.rank(weights[f"K{i}"].T @ weights[f"Q{i}"]) for i in range(1, model.layers + 1)]
        if ranks != list(model.a):
            return None
        added, lemmas = added + sum(a * a for a in model.a), [*lemmas, "Lemma 3.1"]
    return virtual, added, lemmas


def lifted(found: ComputedFiber, added: int, lemmas: list[str], *, orbits_only: bool) -> ComputedFiber:
    """The fiber in finer weights from that in coarser ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    how = f"lifted by {' and '.join(lemmas)}"
    notes = [*found.notes, f"computed in coarser weights and {how}, which adds {added} dimensions"]
    result = replace(found, method="lifted", degree=None, dim_at_point=None, notes=notes)
    # these are others in finer weights; the number of orbits is the same
    result.retract("fiber_dim", "dim_at_point", "degree", "components")
    if found.components is None or (orbits_only and not found.one_orbit):
        result.forget()
        if found.components is not None:
            notes.append("the fiber in coarser weights was not shown to be one orbit: it was not lifted")
        return result
    unknown: Any = dict.fromkeys(("degree", "orbit_dim", "tangent_dim", "point", "equations"))
    result.components = tuple(replace(c, dim=c.dim + added, **unknown) for c in found.components)
    result.fiber_dim = result.least_dim = None if found.fiber_dim is None else found.fiber_dim + added
    result.dim_at_point = max((c.dim for c in result.components if c.orbit), default=None)
    p = next((e.prime for e in found.evidence if e.prime), None) or 0
    result.say("fiber_dim", f"in coarser weights, {how}", result.fiber_dim, p)
    return result
