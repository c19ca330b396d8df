"""The three regions of the closure as sets: equations, inequalities, and dimensions from several sides.

The real group GL_d x GL_d x GL_d' acts linearly on the Segre coordinates. The points that lie only in the closure are one orbit
(h, q and a definite S of rank 2 can be moved anywhere), and so are the boundary points that are not zero, so their dimensions are
ranks over QQ of the Lie algebra's action at one rational point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Attention
from m2bridge.families.attention_strata import Orbit, all_orbits, differential, orbit_closure
from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions import over_q
from m2bridge.questions.boundary.criterion import decide, quadric_matrix, table_of
from m2bridge.questions.boundary.points import separated
from m2bridge.questions.boundary.result import OrbitLocation, Region

_MOST_LISTED = 60  # terms of an equation that is written out


def orbit_locations(model: Attention) -> tuple[OrbitLocation, ...]:
    """Return the location of every orbit of weights by the criterion, one orbit of the zero function per pair of ranks.

    Orbits have weights, so that an undecided one lies in the image.
    """
    d, dp = model.d, model.dp

    def differential_rank(orbit: Orbit) -> int:
        """Return the rank over QQ of the differential of (A, V) -> network, with A in all d x d matrices."""
        return rank_over_q(differential(model, *orbit.representative(d, dp)))

    generic = max(map(differential_rank, all_orbits(d, dp, d)))
    orbits = [o for o in all_orbits(d, dp, model.a) if not o.is_zero]
    orbits += [Orbit(r, 0, 0) for r in range(min(model.a, d) + 1)]
    orbits += [Orbit(0, s, 0) for s in range(1, min(d, dp) + 1)]
    locations = []
    for o in sorted(orbits, key=lambda o: (o.rank_a, o.rank_v, o.meet)):
        A, V = o.representative(d, dp)
        where = decide(model, model.coordinates({"A": A, "V": V}).tolist()).where
        where = "image" if where == "undecided" else where
        critical = differential_rank(o) < generic
        locations.append(
            OrbitLocation(rank_a=o.rank_a, rank_v=o.rank_v, meet=o.meet, where=where, critical=critical)
        )
    return tuple(locations)


def orbit_rank(model: Attention, coordinates: Sequence[Fraction]) -> int:
    """Return the dimension of the orbit of a rational point under the real group: rank over QQ of the Lie algebra's action."""
    d, dp = model.d, model.dp
    z = table_of(model, coordinates)
    S = over_q.integral([[quadric_matrix(z[n, m], d) for m in range(d)] for n in range(dp)])
    moves = []
    for e in np.eye(d * d, dtype=int).reshape(-1, d, d):
        moves += [e @ S + S @ e.T, np.einsum("ml,nmij->nlij", e, S)]
    moves += [np.einsum("kn,nmij->kmij", e, S) for e in np.eye(dp * dp, dtype=int).reshape(-1, dp, dp)]
    return over_q.rank([move.ravel() for move in moves])


def sample_points(model: Attention) -> dict[str, tuple[Fraction, ...]]:
    """Return a rational point of each of the two orbits: S = x_1^2, and S = x_1^2 + x_2^2; none when d = 1."""
    if model.d < 2:
        return {}
    h, q = np.eye(model.dp, dtype=int)[0], np.eye(model.d, dtype=int)[0]
    rank_one, rank_two = np.zeros((2, model.d, model.d), dtype=int)
    rank_one[0, 0] = rank_two[0, 0] = rank_two[1, 1] = 2
    return {
        "boundary_dim": separated(model, h, q, rank_one),
        "closure_only_dim": separated(model, h, q, rank_two),
    }


def dimensions(
    model: Attention, values: Mapping[str, Any], seed: int
) -> tuple[dict[str, int], list[Evidence]]:
    """Return boundary_dim and closure_only_dim, -1 for the empty set, with their evidence."""
    dims = {"boundary_dim": -1, "closure_only_dim": -1}
    evidence: list[Evidence] = []
    orbits = {"boundary_dim": Orbit(1, 1, 1), "closure_only_dim": Orbit(1, 1, 0)}
    for quantity, point in sample_points(model).items():
        dims[quantity] = orbit_rank(model, point)
        proved = partial(Evidence, quantity, certainty=Certainty.PROVED)
        method = "rank over QQ of the real group's infinitesimal action at a rational point"
        evidence.append(proved(dims[quantity], "orbits", method))
        differential_rank = generic_rank(
            orbit_closure(model, orbits[quantity]).program, p=LARGE_PRIME, seed=seed
        ).rank
        method = "rank of the differential of (k, v, q, h) -> point at a random point"
        evidence.append(proved(differential_rank, "modular", method, relation=">=", prime=LARGE_PRIME))
        tag = "boundary_dim" if quantity == "boundary_dim" else "rank_one_dim"
        if tag in values:
            method = "dimension of the ideal of minors of flattenings, over QQ"
            evidence.append(
                Evidence(quantity, values[tag], "macaulay2", method, certainty=Certainty.COMPUTED)
            )
    return dims, evidence


def regions(
    model: Attention, image_dim: int, dims: dict[str, int], values: Mapping[str, Any]
) -> tuple[Region, ...]:
    """Return the image, its boundary and the rest of the closure, as sets in the coordinates z0, z1, ..."""
    separate = (
        "z = h (x) q (x) S: the flattenings along the outputs and along the first token have rank at most one"
    )
    nonempty = model.d >= 2
    empty = "" if nonempty else " (empty: with d = 1 all factors are real)"

    def region(name: str, dim: int, tag: str, description: str, inequality: str | None = None) -> Region:
        degree = values.get(f"{tag}degree") if nonempty else None
        equations = _listed(values, f"{tag}equations")
        return Region(
            name=name, description=description, dim=dim, degree=degree if tag else None,
            equations=equations if nonempty or not tag else (), inequality=inequality if nonempty else None,
        )  # fmt: skip

    ranks = f"z[n,m] = alpha_m * nu_n with complex forms, rk A <= {model.attention_rank}"
    image_text = f"the closure ({ranks}) without the closure-only part"
    boundary_text = f"{separate}, S of rank at most one: A = k (x) q, V = h (x) k{empty}"
    closure_only_text = f"{separate}, S of rank two and definite: A = k (x) q, V = h (x) conj(k){empty}"
    return (
        region("image", image_dim, "", image_text),
        region("boundary", dims["boundary_dim"], "boundary_", boundary_text),
        region(
            "closure-only", dims["closure_only_dim"], "rank_one_", closure_only_text, f"{e2_text(model)} > 0"
        ),
    )


def e2_text(model: Attention) -> str:
    """Return 4 e2(S), summed over all quadrics of the point: positive exactly where S is definite of rank two."""
    pairs = list(combinations_with_replacement(range(model.d), 2))
    terms = []
    for block in range(0, model.coordinate_count, len(pairs)):
        for i, j in combinations(range(model.d), 2):
            ii, jj, ij = (block + pairs.index(pair) for pair in ((i, i), (j, j), (i, j)))
            terms.append(f"4*z{ii}*z{jj}-z{ij}^2")
    if len(terms) > _MOST_LISTED:
        return "sum over n, m, i<j of 4*z[n,m,ii]*z[n,m,jj]-z[n,m,ij]^2"
    return "+".join(terms)


def _listed(values: Mapping[str, Any], tag: str) -> tuple[str, ...]:
    texts = values.get(tag, ())
    return tuple(texts) if len(texts) <= _MOST_LISTED else ()
