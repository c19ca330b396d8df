"""The three parts of the closure as sets: equations, inequalities, and dimensions from several sides.

The real group GL_d x GL_d x GL_d' acts linearly on the Segre coordinates. The points that lie only in the closure are one orbit
(h, q and a definite S of rank 2 can be moved anywhere), and so are the boundary points that are not zero, so their dimensions are
ranks over QQ of the Lie algebra's action at one rational point.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models import Lightning
from m2bridge.protocol import Values
from m2bridge.questions.boundary import forms
from m2bridge.questions.boundary.examples import separated
from m2bridge.questions.boundary.result import Part
from m2bridge.results import Certainty, Evidence

RANK_PRIME = 8_388_593
_MOST_LISTED = 60


def orbit_rank(model: Lightning, coordinates: Sequence[Fraction]) -> int:
    """Dimension of the orbit of a rational point under the real group: rank over QQ of the Lie algebra's action."""
    d, dp = model.d, model.dp
    z = forms.table_of(model, coordinates)
    S = np.array([[forms.quadric_matrix(z[n, m], d) for m in range(d)] for n in range(dp)], dtype=object)
    moves = []
    for i, j in np.ndindex(d, d):
        e = np.zeros((d, d), dtype=int)
        e[i, j] = 1
        moves += [e @ S + S @ e.T, np.einsum("ml,nmij->nlij", e, S)]
    for i, j in np.ndindex(dp, dp):
        e = np.zeros((dp, dp), dtype=int)
        e[i, j] = 1
        moves.append(np.einsum("kn,nmij->kmij", e, S))
    return forms.rank(np.array([move.ravel() for move in moves], dtype=object))


def sample_points(model: Lightning) -> dict[str, tuple[Fraction, ...]]:
    """A rational point of each of the two orbits: S = x_1^2, and S = x_1^2 + x_2^2; none when d = 1."""
    if model.d < 2:
        return {}
    h, q = np.eye(model.dp, dtype=int)[0], np.eye(model.d, dtype=int)[0]
    one, two = np.zeros((2, model.d, model.d), dtype=int)
    one[0, 0] = two[0, 0] = two[1, 1] = 2
    return {"boundary_dim": separated(model, h, q, one), "closure_only_dim": separated(model, h, q, two)}


def parametrized_rank(model: Lightning, forms_count: int, seed: int) -> int:
    """Rank mod p of the differential of (h, q, k_1, ..) -> h (x) q (x) sum k_i k_i^T at a random point: a lower bound."""
    rng = np.random.default_rng([seed, 12])
    p = RANK_PRIME
    h, q = rng.integers(0, p, model.dp), rng.integers(0, p, model.d)
    k = rng.integers(0, p, (forms_count, model.d))
    i, j = np.triu_indices(model.d)
    weight = np.where(i == j, 1, 2)

    def point(h: np.ndarray, q: np.ndarray, quadric: np.ndarray) -> np.ndarray:
        left = (h[:, None] * q[None, :]) % p
        return np.asarray((left.reshape(-1, 1) * quadric[None, :]) % p).ravel()

    quadric = (sum((k[f, i] * k[f, j]) % p for f in range(forms_count)) * weight) % p
    rows = [point(e, q, quadric) for e in np.eye(model.dp, dtype=np.int64)]
    rows += [point(h, e, quadric) for e in np.eye(model.d, dtype=np.int64)]
    for form in k:
        for e in np.eye(model.d, dtype=np.int64):
            rows.append(point(h, q, (form[i] * e[j] + e[i] * form[j]) % p * weight % p))
    return rank_mod(np.array(rows), p)


def dimensions(model: Lightning, values: Values, seed: int) -> tuple[dict[str, int], list[Evidence]]:
    """boundary_dim and closure_only_dim, with evidence; -1 for the empty set."""
    dims = {"boundary_dim": -1, "closure_only_dim": -1}
    evidence: list[Evidence] = []
    for quantity, point in sample_points(model).items():
        dims[quantity] = orbit_rank(model, point)
        factors, tag = (1, "boundary_dim") if quantity == "boundary_dim" else (2, "rank_one_dim")
        evidence += [
            Evidence(
                quantity=quantity,
                witness="orbits",
                method="rank over QQ of the real group's infinitesimal action at a rational point",
                value=dims[quantity],
                certainty=Certainty.PROVED,
            ),
            Evidence(
                quantity=quantity,
                witness="modular",
                method="rank of the differential of (h, q, k) -> point at a random point",
                value=parametrized_rank(model, factors, seed),
                relation=">=",
                certainty=Certainty.PROVED,
                prime=RANK_PRIME,
            ),
        ]
        if tag in values:
            evidence.append(
                Evidence(
                    quantity=quantity,
                    witness="macaulay2",
                    method="dimension of the ideal of minors of flattenings, over QQ",
                    value=values.integer(tag),
                    certainty=Certainty.PROVED,
                )
            )
    return dims, evidence


def parts(model: Lightning, image_dim: int, dims: dict[str, int], values: Values) -> tuple[Part, ...]:
    """The image, its boundary and the rest of the closure, as sets in the coordinates z0, z1, ..."""
    inequality = e2_text(model)
    separate = (
        "z = h (x) q (x) S: the flattenings along the outputs and along the first token have rank at most one"
    )
    empty = " (empty: with d = 1 all factors are real)" if model.d < 2 else ""
    closure_only = _listed(values, "rank_one_equations")
    return (
        Part(
            name="image",
            description=f"the closure (z[n,m] = alpha_m * nu_n with complex forms, rk A <= {model.attention_rank}) "
            "without the closure-only part",
            dim=image_dim,
            degree=None,
            equations=_listed(values, "equations"),
            inequality=None,
        ),
        Part(
            name="boundary",
            description=f"{separate}, S of rank at most one: A = k (x) q, V = h (x) k{empty}",
            dim=dims["boundary_dim"],
            degree=values.get("boundary_degree") if model.d >= 2 else None,
            equations=_listed(values, "boundary_equations") if model.d >= 2 else (),
            inequality=None,
        ),
        Part(
            name="closure-only",
            description=f"{separate}, S of rank two and definite: A = k (x) q, V = h (x) conj(k){empty}",
            dim=dims["closure_only_dim"],
            degree=values.get("rank_one_degree") if model.d >= 2 else None,
            equations=closure_only if model.d >= 2 else (),
            inequality=f"{inequality} > 0" if model.d >= 2 else None,
        ),
    )


def e2_text(model: Lightning) -> str:
    """4 e2(S), summed over all quadrics of the point: positive exactly where S is definite of rank two."""
    pairs = [(i, j) for i in range(model.d) for j in range(i, model.d)]
    place = {pair: index for index, pair in enumerate(pairs)}
    terms = []
    for block in range(model.dp * model.d):
        for i in range(model.d):
            for j in range(i + 1, model.d):
                ii, jj, ij = (block * len(pairs) + place[pair] for pair in ((i, i), (j, j), (i, j)))
                terms.append(f"4*z{ii}*z{jj}-z{ij}^2")
    if len(terms) > _MOST_LISTED:
        return "sum over n, m, i<j of 4*z[n,m,ii]*z[n,m,jj]-z[n,m,ij]^2"
    return "+".join(terms)


def _listed(values: Values, tag: str) -> tuple[str, ...]:
    texts = values.strings(tag) if tag in values else ()
    return texts if len(texts) <= _MOST_LISTED else ()
