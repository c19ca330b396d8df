"""Fibers of deep attention: in virtual weights by unique factorization, and in finer weights from those in coarser ones.

See the header of the template ``fiber_deep`` for the mathematics. A solution is one orbit of the scalings of Equation 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from m2bridge.models import DeepLightning, Mod, Model
from m2bridge.models.evaluation import input_derivative
from m2bridge.protocol import Values
from m2bridge.questions.fiber.arguments import Coarser
from m2bridge.questions.fiber.computed import ComputedFiber, compare_dims, examined, over_the_closure
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.kernel import Asking
from m2bridge.questions.point import Point, other_primes

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


def obstacle(values: Values, p: int) -> str | None:
    """Why the factors do not describe the fiber, or that the run was cut off; None when they do."""
    if values.get("interpolates") is False:
        return "the outputs at single tokens are not those of a form of this degree"
    if values.get("vanishes"):
        return "the network vanishes at single tokens: some M_i is skew or L = 0"
    if values.get("absolute") is False:
        return f"a factor is irreducible over F_{p} but not over its closure"
    if "solutions" not in values:
        return "the computation was cut off"
    return "the two-token terms do not determine M_1" if "undetermined" in values["solutions"] else None


def factored(ask: Asking, point: Point, p: int, seed: int) -> ComputedFiber:
    """The fiber in virtual weights by unique factorization; no components when several primes do not decide."""
    model = point.model
    assert isinstance(model, DeepLightning)
    result = ComputedFiber(method="structured")
    for prime in _promising([p, *other_primes(point, p, _CANDIDATES)], point)[: 1 + _MORE_PRIMES]:
        sent = _parameters(point, prime, seed)
        values, result.limit = ask.ask(TEMPLATE, sent)
        reason = obstacle(values, prime)
        if reason is None or result.limit is not None:
            break
        result.notes.append(f"unique factorization does not decide over F_{prime}: {reason}")
        if values.get("vanishes"):  # and so it does over other primes
            break
    if reason is not None:
        return result
    if prime != p:
        result.notes.append(f"computed over F_{prime}")
    result.inputs = sum(len(sent[name]) for name in ("oneToken", "twoTokens", "inputs"))
    solutions = [solution for solution in values["solutions"] if solution is not None]
    components = [_component(result, point, prime, s, seed, i) for i, s in enumerate(solutions)]
    own = [component for component in components if component.orbit]
    if not own and all(one is not None and count == 1 for _, count, one in solutions):
        quantity, how = "the point is in its fiber", "the point itself"
        result.compare(quantity, prime, macaulay2=False, modular=True, method=how)
    result.dim_at_point = own[0].dim if own else None
    compare_dims(result, point, prime, seed)
    result.components = tuple(c for component in components for c in over_the_closure(component))
    result.fiber_dim = result.least_dim = max((c.dim for c in components), default=None)
    how = "unique factorization, then a Groebner basis of the skew parts"
    result.say("fiber_dim", how, result.fiber_dim, prime, ask.last_seconds)
    # Each solution is one orbit: f != 0 makes every M_i and L non-zero on the whole fiber, so that the torus acts with finite
    # stabilizers, and each q_i is normalized exactly. Different ways give q_i that are not proportional.
    if components and all(dim == 0 for dim, _, _ in solutions):
        result.orbits_full = True
        result.orbits = result.component_count = sum(count for _, count, _ in solutions)
        result.say("orbits", how, result.orbits, prime)
    if model.constrained and not result.one_orbit:  # only a single orbit is surely the fiber
        result.notes.append(
            "the virtual weights satisfy equations that were not imposed: the fiber may be smaller"
        )
        result.forget("fiber_dim", "orbits", "dim_at_point")
    return result


def _component(
    result: ComputedFiber, point: Point, p: int, solution: list[Any], seed: int, i: int
) -> FiberComponent:
    """The orbits that a solution stands for (its dimension, number, and weights over F_p), with the second witness there."""
    model, (skew_dim, count, there) = point.model, solution
    assert isinstance(model, DeepLightning)
    single = skew_dim == 0 and count == 1
    one = FiberComponent(
        dim=skew_dim + model.layers, degree=None, reduced=None, multiplicity=None, absolute=single,
        conjugates=count if skew_dim == 0 else None, orbit=None, orbit_dim=None, tangent_dim=None,
        point=None if there is None else tuple(int(x) % p for x in there), equations=None,
    )  # fmt: skip
    if one.point is None:
        return one
    one = examined(result, point, p, seed, one, i)
    if one.tangent_dim == one.dim:
        one = replace(one, reduced=True, multiplicity=1)
    return replace(one, orbit=single and _rescaled(model.unflatten(np.array(one.point)), point.mod(p), p))


def _rescaled(first: Mapping[str, np.ndarray], second: Mapping[str, Mod], p: int) -> bool:
    """Whether two virtual weights over F_p are rescalings of each other: every matrix proportional."""
    for name in first:
        a, b = (w.ravel().astype(object) for w in (first[name], second[name].values))
        if not a.any() or not b.any() or ((np.outer(a, b) - np.outer(b, a)) % p).any():
            return False
    return True


# -- from coarser weights to finer ones ------------------------------------------------------------------------------------------


def lifted(found: ComputedFiber, coarse: Coarser, *, orbits_only: bool) -> ComputedFiber:
    """The fiber in finer weights from that in the coarsest ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    how, added = f"lifted by {' and '.join(coarse.lemmas)}", coarse.added
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
