"""The three regions of the closure as sets: equations, inequalities, and dimensions from several sides.

The real group GL_d x GL_d x GL_d' acts linearly on the Segre coordinates. The points that lie only in the closure are one orbit
(h, q and a definite S of rank 2 can be moved anywhere), and so are the boundary points that are not zero. Over CC these are the
orbits of weights of rank one with meet 0 and 1, so their dimensions are ranks over QQ of the Lie algebra's action there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Attention
from m2bridge.families.attention_strata import Orbit, all_orbits, differential, orbit_closure, orbit_dim
from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.boundary.criterion import decide
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


def dimensions(
    model: Attention, values: Mapping[str, Any], seed: int
) -> tuple[dict[str, int], list[Evidence]]:
    """Return boundary_dim and closure_only_dim, -1 for the empty set, with their evidence."""
    dims = {"boundary_dim": -1, "closure_only_dim": -1}
    evidence: list[Evidence] = []
    orbits = {"boundary_dim": Orbit(1, 1, 1), "closure_only_dim": Orbit(1, 1, 0)} if model.d >= 2 else {}
    for quantity, orbit in orbits.items():
        dims[quantity] = orbit_dim(model, *orbit.representative(model.d, model.dp))
        proved = partial(Evidence, quantity, certainty=Certainty.PROVED)
        method = "rank over QQ of the group's infinitesimal action at a rational point"
        evidence.append(proved(dims[quantity], "orbits", method))
        differential_rank = generic_rank(orbit_closure(model, orbit).program, p=LARGE_PRIME, seed=seed).rank
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
