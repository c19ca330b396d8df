"""Theorem 3.9: one layer of normalised attention determines its weights, for the exponential function and for other kernels.

The paper asks only that S: R -> R_{>0} is injective with S(0) = 1. Two kernels with rational values make the recovery exact:
1 + x for x >= 0 and 1 / (1 - x) below, and the same of x^3, whose derivative at 0 vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.claims.base import Claim, Context, Size, Verdict, fails, holds, out_of_reach
from m2bridge.claims.expansion import Kernelled, exact, fraction
from m2bridge.models import Softmax
from m2bridge.results import Certainty

_TOLERANCE = 1e-6
_DRAWS = 20


def _above_and_below(x: Fraction) -> Fraction:
    return 1 + x if x >= 0 else 1 / (1 - x)


def _below_and_above(y: Fraction) -> Fraction:
    return y - 1 if y >= 1 else 1 - 1 / y


def _cube_root(x: Fraction) -> Fraction:
    """The cube root of the cube of a rational number; the nearest rational otherwise, which then is not the root."""

    def root(n: int) -> int:
        return int(round(float(abs(n)) ** (1 / 3)) * (1 if n >= 0 else -1))

    return Fraction(root(x.numerator), root(x.denominator))


@dataclass(frozen=True)
class AttentionKernel:
    """S and its inverse, on floats or on Fractions."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    exact: bool


KERNELS = {
    "exp(x)": AttentionKernel(np.exp, np.log, exact=False),
    "1+x, 1/(1-x)": AttentionKernel(_above_and_below, _below_and_above, exact=True),
    "1+x^3, 1/(1-x^3)": AttentionKernel(
        lambda x: _above_and_below(x**3), lambda y: _cube_root(_below_and_above(y)), exact=True
    ),
}


def rational(array: np.ndarray) -> np.ndarray:
    """The same numbers as Fractions."""
    found: np.ndarray = np.array([Fraction(int(x)) for x in array.ravel()], dtype=object)
    return found.reshape(array.shape)


def values(
    model: Softmax, weights: dict[str, np.ndarray], kernel: AttentionKernel
) -> Callable[[np.ndarray], np.ndarray]:
    """The program of a model with the kernel in place of the exponential function, as a function of its inputs."""
    if not kernel.exact:
        return lambda X: np.asarray(model.forward(weights, X))

    def run(X: np.ndarray) -> np.ndarray:
        entries = [
            Kernelled(exact(x), lambda score: exact(kernel.forward(fraction(score)))) for x in X.ravel()
        ]
        outputs = model.network(weights, np.array(entries, dtype=object).reshape(X.shape))
        return np.array([fraction(y.value) for y in outputs.ravel()], dtype=object).reshape(outputs.shape)

    return run


def recover(
    network: Callable[[np.ndarray], np.ndarray], d: int, t: int, points: np.ndarray, kernel: AttentionKernel
) -> tuple[Any, Any]:
    """(A, V) from the values of the network alone, for V != 0.

    Equal tokens give V x. One token x and zeros give S(x^T A x) as a share of V x; one token x and t - 1 copies of y give
    S(x^T A y) as a share of V (y - x). Bilinear forms at two bases give A.
    """
    unit = np.eye(d, dtype=int).astype(points.dtype)
    V = np.array([network(np.repeat(e[:, None], t, axis=1))[:, 0] for e in unit]).T

    def share(value: np.ndarray, start: np.ndarray, end: np.ndarray) -> Any:
        line = end - start
        return (value - start) @ line / (line @ line)

    def tokens(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.column_stack([x, *([y] * (t - 1))])

    xs, ys = points
    forms = np.zeros((d, d), dtype=points.dtype)
    for i, x in enumerate(xs):
        kept = share(network(tokens(x, unit[0] * 0))[:, 0], V @ unit[0] * 0, V @ x)
        own = kept * (t - 1) / (1 - kept)  # S(x^T A x)
        for j, y in enumerate(ys):
            w = share(network(tokens(x, y))[:, 0], V @ x, V @ y)  # (t-1) S(xy) / (S(xx) + (t-1) S(xy))
            forms[i, j] = kernel.inverse(w * own / ((t - 1) * (1 - w)))
    return _divided(xs, forms, ys.T), V


def _divided(left: np.ndarray, middle: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left^-1 middle right^-1, exactly where the numbers are."""
    if left.dtype != object:
        return np.linalg.solve(left, np.linalg.solve(right.T, middle.T).T)
    found: np.ndarray = _inverse(left) @ middle @ _inverse(right)
    return found


def _inverse(matrix: np.ndarray) -> np.ndarray:
    rows = flint.fmpq_mat(flint.fmpz_mat([[int(x) for x in row] for row in matrix])).inv().tolist()
    return np.array([[fraction(x) for x in row] for row in rows], dtype=object)


def check(size: Size, context: Context) -> Verdict:
    d, dp, t, rank, kernel = size["d"], size["dp"], size["t"], size["rank_v"], KERNELS[size["S"]]
    model = Softmax(d=(d, dp), a=(d,), t=t, parametrization="attention")
    rng = np.random.default_rng([context.seed, d, dp, t])

    def draw(*shape: int) -> np.ndarray:
        return rational(rng.integers(-3, 4, shape)) if kernel.exact else rng.uniform(-1, 1, shape)

    A, V = draw(d, d), draw(dp, rank) @ draw(rank, d)
    for _ in range(_DRAWS):
        try:
            found = recover(values(model, {"A1": A, "V1": V}, kernel), d, t, draw(2, d, d), kernel)
        except ZeroDivisionError:
            continue  # these inputs are special for the weights
        return _verdict(kernel, float(max(np.abs(x - y).max() for x, y in zip(found, (A, V), strict=True))))
    return out_of_reach(f"{_DRAWS} random sets of inputs were special for the weights")


def _verdict(kernel: AttentionKernel, error: float) -> Verdict:
    computed = {"largest_error": float(f"{error:.1e}")}
    said = "the weights are recovered from values of the function"
    if not kernel.exact:
        if error > _TOLERANCE:
            return out_of_reach(f"the weights were recovered only up to {error:.1e}")
        return holds(Certainty.NUMERIC, f"{said}, error {error:.0e}", **computed)
    if error:
        return fails(Certainty.PROVED, computed, "the recovery gives other weights", **computed)
    return holds(Certainty.PROVED, f"{said}, exactly over QQ", **computed)


_SIZES: tuple[Size, ...] = tuple(
    {"d": d, "dp": dp, "t": t, "rank_v": r, "S": name}
    for name in KERNELS
    for d, dp, t, r in ((2, 1, 2, 1), (3, 2, 2, 1), (3, 2, 3, 2), (4, 3, 5, 2))
)

CLAIMS = (
    Claim(
        id="theorem-3.9",
        number="Theorem 3.9",
        statement=(
            "For t >= 2 and an injective kernel S with S(0) = 1, one layer of normalised attention with V not zero determines (A, V)."
        ),
        quote="a map S: R -> R_{>0} that is injective and such that S(0) = 1",
        checked="the weights recovered from values of the network at chosen inputs, for three kernels; the third has S'(0) = 0",
        witnesses={
            "program": ("values of the forward pass",),
            "construction": ("the recovery, which sees no weights",),
        },
        sizes=_SIZES,
        quick=(_SIZES[0], _SIZES[4], _SIZES[8]),
        run=check,
    ),
)
