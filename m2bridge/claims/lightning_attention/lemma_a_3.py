"""Lemma A.3: the critical points of (A, V) -> network, as printed and completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Correction,
    Kind,
    Size,
    Verdict,
    disagreement,
    fails,
    holds,
    sizes,
)
from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.numeric import numeric_rank
from m2bridge.models import Lightning
from m2bridge.results import Certainty

Ranks = tuple[int, int, int]
"""rk A, rk V and dim(col A, row V meeting)."""


def orbits(d: int, dp: int, a: int | None = None) -> Iterator[Ranks]:
    """Every orbit of pairs (A, V) with rk A <= a, also those that map to zero."""
    for r in range(min(d, a or d) + 1):
        for s in range(min(d, dp) + 1):
            for c in range(max(0, r + s - d), min(r, s) + 1):
                yield r, s, c


def representative(d: int, dp: int, ranks: Ranks) -> dict[str, np.ndarray]:
    """Matrices of zeros and ones in the orbit."""
    r, s, c = ranks
    A, V = np.zeros((d, d), dtype=np.int64), np.zeros((dp, d), dtype=np.int64)
    A[range(r), range(r)] = 1
    for n in range(s):
        V[n, n if n < c else r + n - c] = 1
    return {"A": A, "V": V}


def printed(ranks: Ranks) -> bool:
    """A = k q^T and V = h k^T for some q, k, h: both of rank at most one, sharing k unless one of them is zero."""
    r, s, c = ranks
    return r <= 1 and s <= 1 and (r * s == 0 or c == 1)


def completed(ranks: Ranks) -> bool:
    """The same, or A = 0, or V = 0."""
    r, s, _ = ranks
    return r == 0 or s == 0 or printed(ranks)


def differential(d: int, dp: int, weights: dict[str, np.ndarray]) -> np.ndarray:
    """The Jacobian of (A, V) -> network in Segre coordinates, by the program."""
    model = Lightning(d=d, dp=dp, a=d, parametrization="attention")
    return np.asarray(model.coordinate_jacobian(weights)).T


def generic_rank(d: int, dp: int) -> int:
    """The largest rank of the differential at the orbits, which is that at a dense one."""
    return max(rank_over_q(differential(d, dp, representative(d, dp, ranks))) for ranks in orbits(d, dp))


def critical(d: int, dp: int, ranks: Ranks) -> bool:
    """Whether the differential drops its rank at the orbit, over QQ."""
    return rank_over_q(differential(d, dp, representative(d, dp, ranks))) < generic_rank(d, dp)


def _check(predicts: Callable[[Ranks], bool]) -> Callable[[Size, Context], Verdict]:
    def check(size: Size, context: Context) -> Verdict:
        d, dp = size["d"], size["dp"]
        rng = np.random.default_rng(context.seed)
        generic = generic_rank(d, dp)
        for ranks in orbits(d, dp):
            weights = representative(d, dp, ranks)
            exact = rank_over_q(differential(d, dp, weights))
            g, h, k = rng.standard_normal((d, d)), rng.standard_normal((d, d)), rng.standard_normal((dp, dp))
            moved = {"A": g @ weights["A"] @ h, "V": k @ weights["V"] @ g.T}
            numeric = numeric_rank(differential(d, dp, moved)).rank
            if numeric is not None and numeric != exact:
                return disagreement([f"float64 says rank {numeric}, QQ says {exact}, at {ranks}"])
            if (exact < generic) != predicts(ranks):
                witness = {n: w.tolist() for n, w in weights.items()} | {
                    "rank": exact,
                    "generic_rank": generic,
                }
                word = "critical" if exact < generic else "not critical"
                return fails(Certainty.PROVED, witness, f"{word} at rk A = {ranks[0]}, rk V = {ranks[1]}")
        return holds(Certainty.PROVED, generic_rank=generic)

    return check


_SIZES = sizes("d dp", (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2))
_WITNESSES = {
    "program": ("rank over QQ of the differential at every orbit", "float64 rank at a randomly moved point"),
    "construction": ("the orbits of GL_d x GL_d x GL_d'",),
}

CLAIMS = (
    Claim(
        id="lemma-a.3",
        number="Lemma A.3",
        statement="(A, V) is critical for the parametrization exactly when A = k q^T and V = h k^T for some q, k, h.",
        checked="the rank of the differential at every orbit of pairs (A, V), A of any rank",
        witnesses=_WITNESSES,
        sizes=_SIZES,
        quick=_SIZES[:2],
        run=_check(printed),
        correction=Correction(
            smallest="(d, d') = (2, 1), A the identity, V = 0",
            witness="At V = 0 the differential is (A', V') -> V' X X^T A X: it kills all (A', 0), a space of dimension 4 > 1.",
            macaulay2="""\
R = QQ[a_0..a_3,v_0,v_1]; A = genericMatrix(R,a_0,2,2); V = matrix{{v_0,v_1}};
f = flatten apply(2,m -> {A_(0,m)*v_0, A_(0,m)*v_1+A_(1,m)*v_0, A_(1,m)*v_1});
J = jacobian matrix{f};
<< rank J << " generically, " << rank sub(J,{a_0=>1,a_1=>0,a_2=>0,a_3=>1,v_0=>0,v_1=>0}) << " at A = 1, V = 0" << endl;
""",
            reason="The proof treats A = 0 and V = 0, and finds them critical; the statement does not list them when the other matrix has rank >= 2.",
            unaffected=(
                "The zero function is a singular point and a boundary point anyway, so Theorem 3.4 and Corollary A.6 do not change "
                "as statements about functions."
            ),
            repaired="(A, V) is critical exactly when A = 0, or V = 0, or A = k q^T and V = h k^T for some q, k, h.",
            claim="lemma-a.3-completed",
        ),
    ),
    Claim(
        id="lemma-a.3-completed",
        number="Lemma A.3, completed",
        statement="(A, V) is critical exactly when A = 0, or V = 0, or A = k q^T and V = h k^T for some q, k, h.",
        checked="the rank of the differential at every orbit of pairs (A, V), A of any rank",
        witnesses=_WITNESSES,
        sizes=_SIZES,
        quick=_SIZES[:2],
        run=_check(completed),
        kind=Kind.REPAIRED,
    ),
)
