"""Theorem 3.2 and Corollary A.2: the fibers of one layer."""

from __future__ import annotations

from typing import Any

from m2bridge.claims.base import Claim, Context, Size, Verdict, disagreement, fails, holds, out_of_reach
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.models import Lightning
from m2bridge.questions.fiber import Fiber, fiber
from m2bridge.results import Certainty


def predicted(size: Size) -> list[tuple[int, int]]:
    """Dimension and number of the components that the theorem says: rescalings are curves, so every orbit has dimension one."""
    d, dp, r, s = size["d"], size["dp"], size["rank_a"], size["rank_v"]
    if r * s == 0:
        rank = min(size["a"], d)
        matrices = rank * (2 * d - rank)
        return sorted([(matrices, 1), (d * dp, 1)]) if matrices != d * dp else [(matrices, 2)]
    if r == s == 1 and size["meet"] == 0:
        return [(1, 2)]
    return [(1, 1)]


def check(size: Size, context: Context) -> Verdict:
    model = Lightning(d=size["d"], dp=size["dp"], a=size["a"], parametrization="attention")
    stratum = ",".join(f"{name}={size[name]}" for name in ("rank_a", "rank_v", "meet"))
    result = context.once(fiber, model, at=stratum)
    return verdict_on(result, predicted(size))


def verdict_on(result: Fiber, printed: list[tuple[int, int]]) -> Verdict:
    """Whether the fiber's components are the predicted ones."""
    if result.agreement is False:
        return disagreement(result.conflicts)
    if result.limit is not None:
        return out_of_reach(result.limit)
    if result.components is None or not all(c.absolute for c in result.components):
        return out_of_reach("the components over the algebraic closure were not computed")
    dims = [component.dim for component in result.components]
    found = sorted((dim, dims.count(dim)) for dim in set(dims))
    computed: dict[str, Any] = {
        "components": [[c.dim, c.degree, c.reduced] for c in result.components],
        "printed": [list(pair) for pair in printed],
    }
    over_q = [e.certainty for e in result.evidence if (e.quantity, e.field) == ("components", "QQ")]
    certainty = Certainty.weakest(over_q) if over_q else Certainty.PROBABLE
    if found == printed:
        return holds(certainty, **computed)
    return fails(
        certainty, computed, f"components (dimension, number): {found}, printed {printed}", **computed
    )


def _sizes(d: int, dp: int, a: int, *ranks: tuple[int, int, int]) -> tuple[Size, ...]:
    return tuple({"d": d, "dp": dp, "a": a, "rank_a": r, "rank_v": s, "meet": c} for r, s, c in ranks)


_SIZES = (
    *_sizes(2, 1, 2, (2, 1, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0)),
    *_sizes(2, 1, 1, (1, 1, 0), (1, 1, 1)),
    *_sizes(2, 2, 1, (1, 2, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0)),
    *_sizes(2, 2, 2, (2, 2, 2), (1, 2, 1), (2, 1, 1)),
    *_sizes(3, 1, 2, (2, 1, 0), (2, 1, 1), (1, 1, 0)),
)

CLAIMS = (
    Claim(
        id="theorem-3.2",
        number="Theorem 3.2 (Corollary A.2)",
        paper=PAPER,
        statement=(
            "For t >= 2 the fiber through (A, V) consists of rescalings; through rk A = rk V = 1 also of rescalings of (v q^T, h k^T); "
            "the zero function comes from A = 0 or V = 0. Up to rescaling the map is one-to-one generically and two-to-one where "
            "both ranks are one."
        ),
        checked="dimension and number of the components of the fiber through a representative of each orbit",
        witnesses=(
            "Macaulay2: components of the fiber's ideal",
            "kernel of the forward pass's Jacobian",
            "orbits of the symmetries",
        ),
        sizes=_SIZES,
        quick=_SIZES[:3],
        run=check,
    ),
)
