"""Theorem 3.9: one layer of normalised attention determines its weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from m2bridge.claims.base import Claim, Context, Size, Verdict, disagreement, fails, holds, out_of_reach
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.models import Softmax
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty

Network = Callable[[np.ndarray], np.ndarray]
_TOLERANCE = 1e-6


def recover(network: Network, d: int, t: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(A, V) from the values of the network alone, for V of rank at least one and S(x) = e^x.

    Equal tokens give V x. One token x and zeros give S(x^T A x) as a share of V x; one token x and t - 1 copies of y give
    S(x^T A y) as a share of V (y - x). Bilinear forms at two bases give A.
    """
    V = np.array([network(np.repeat(e[:, None], t, axis=1))[:, 0] for e in np.eye(d)]).T

    def share(value: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
        line = end - start
        return float((value - start) @ line / (line @ line))

    def score(x: np.ndarray, y: np.ndarray, own: float) -> float:
        tokens = np.column_stack([x, *([y] * (t - 1))])
        w = share(network(tokens)[:, 0], V @ x, V @ y)  # (t-1) S(xy) / (S(xx) + (t-1) S(xy))
        return float(np.log(w * np.exp(own) / ((t - 1) * (1 - w))))

    xs, ys = rng.uniform(-1, 1, (d, d)), rng.uniform(-1, 1, (d, d))
    forms = np.zeros((d, d))
    for i, x in enumerate(xs):
        kept = share(network(np.column_stack([x, *([np.zeros(d)] * (t - 1))]))[:, 0], np.zeros(len(V)), V @ x)
        own = float(np.log(kept * (t - 1) / (1 - kept)))
        forms[i] = [score(x, y, own) for y in ys]
    return np.linalg.solve(xs, np.linalg.solve(ys, forms.T).T), V


def check(size: Size, context: Context) -> Verdict:
    d, dp, t, rank = size["d"], size["dp"], size["t"], size["rank_v"]
    model = Softmax(d=(d, dp), a=(d,), t=t, parametrization="attention")
    result = dimension(model, engine=False, seed=context.seed, limits=context.limits)
    if result.agreement is False:
        return disagreement(result.conflicts)
    rng = np.random.default_rng([context.seed, d, dp, t])
    A = rng.uniform(-1, 1, (d, d))
    V = rng.uniform(-1, 1, (dp, rank)) @ rng.uniform(-1, 1, (rank, d))
    found_a, found_v = recover(lambda X: np.asarray(model.forward({"A1": A, "V1": V}, X)), d, t, rng)
    error = float(max(np.abs(found_a - A).max(), np.abs(found_v - V).max()))
    computed = {
        "image_dim": result.image_dim,
        "parameters": d * d + d * dp,
        "largest_error": float(f"{error:.1e}"),
    }
    if result.upper_bound < d * d + d * dp:
        return fails(Certainty.PROVED, computed, "generic fibers have positive dimension", **computed)
    if error > _TOLERANCE:
        return out_of_reach(f"the weights were recovered only up to {error:.1e}")
    return holds(
        Certainty.NUMERIC,
        f"the weights are recovered from the function's values alone, error {error:.0e}; generic finiteness "
        f"is {result.certainty.value}",
        **computed,
    )


_SIZES: tuple[Size, ...] = tuple(
    {"d": d, "dp": dp, "t": t, "rank_v": r}
    for d, dp, t, r in ((2, 1, 2, 1), (2, 2, 2, 2), (3, 2, 2, 1), (3, 2, 3, 2), (4, 3, 5, 2))
)

CLAIMS = (
    Claim(
        id="theorem-3.9",
        number="Theorem 3.9",
        paper=PAPER,
        statement="For t >= 2 one layer of normalised attention with V not zero determines its weights (A, V).",
        checked="the weights recovered from values of the network at chosen inputs; and the dimension of the image",
        witnesses=(
            "recovery of (A, V) in float64 from the function alone",
            "ball arithmetic and parameter count",
        ),
        sizes=_SIZES,
        quick=_SIZES[:2],
        run=check,
    ),
)
