"""Normalised attention: one layer determines its weights (Theorem 3.9), deep networks their virtual weights (Conjecture 3.10).

Theorem 3.9 asks only that S: R -> R_{>0} is injective with S(0) = 1. Two kernels with rational values make the recovery exact:
1 + x for x >= 0 and 1 / (1 - x) below, and the same of x^3, whose derivative at 0 vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, Softmax
from m2bridge.families.virtual import virtual_weights
from m2bridge.papers import expansion
from m2bridge.papers.base import CheckContext, Claim, Correction, Kind, Size, Verdict, sizes
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.over_q import fmpq, fraction

# -- Theorem 3.9 ---------------------------------------------------------------------------------------------------------------

_RECOVERY_TOLERANCE = 1e-6
"""Weights count as recovered up to this error in float64."""
_INPUT_DRAWS = 20
"""Random sets of inputs that are tried for one that is not special for the weights."""


def _above_and_below(x: Fraction) -> Fraction:
    return 1 + x if x >= 0 else 1 / (1 - x)


def _below_and_above(y: Fraction) -> Fraction:
    return y - 1 if y >= 1 else 1 - 1 / y


def _cube_root(x: Fraction) -> Fraction:
    """Return the cube root of the cube of a rational number; for other numbers a rational number that is not the root."""

    def root(n: int) -> int:
        return int(round(float(abs(n)) ** (1 / 3)) * (1 if n >= 0 else -1))

    return Fraction(root(x.numerator), root(x.denominator))


@dataclass(frozen=True)
class AttentionKernel:
    """S and its inverse, on floats or on Fractions."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    exact: bool = True


KERNELS = {
    "exp(x)": AttentionKernel(np.exp, np.log, exact=False),
    "1+x, 1/(1-x)": AttentionKernel(_above_and_below, _below_and_above),
    "1+x^3, 1/(1-x^3)": AttentionKernel(
        lambda x: _above_and_below(x**3), lambda y: _cube_root(_below_and_above(y))
    ),
}


def values(
    model: Attention, weights: dict[str, np.ndarray], kernel: AttentionKernel
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the program of a model, with the kernel in place of the exponential function, as a function of its inputs."""
    if not kernel.exact:
        return lambda X: np.asarray(model.forward(weights, X))

    def score(s: Any) -> Any:
        return fmpq(kernel.forward(fraction(s)))

    def run(X: np.ndarray) -> np.ndarray:
        outputs = model.network(weights, elementwise(lambda x: expansion.Kernelled(fmpq(x), score), X))
        return elementwise(lambda y: fraction(y.value), outputs)

    return run


def recover(
    network: Callable[[np.ndarray], np.ndarray], d: int, t: int, points: np.ndarray, kernel: AttentionKernel
) -> tuple[Any, Any]:
    """Return (A, V) computed from the values of the network only, for V != 0.

    If all tokens are x, the output is V x. One token x and t - 1 zeros determine S(x^T A x), from the ratio of the output to V x;
    one token x and t - 1 copies of y determine S(x^T A y), from the ratio of the output minus V x to V (y - x). The values of
    the bilinear form A at two bases determine A.
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
        diagonal_score = kept * (t - 1) / (1 - kept)  # S(x^T A x)
        for j, y in enumerate(ys):
            w = share(network(tokens(x, y))[:, 0], V @ x, V @ y)  # (t-1) S(xy) / (S(xx) + (t-1) S(xy))
            forms[i, j] = kernel.inverse(w * diagonal_score / ((t - 1) * (1 - w)))
    return _solution(xs, _solution(ys, forms.T).T), V


def _solution(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return matrix^-1 right, exactly for exact numbers."""
    if matrix.dtype != object:
        return np.linalg.solve(matrix, right)
    solution = over_q.solve(matrix, right)
    if solution is None:
        raise ZeroDivisionError("the points are not a basis")
    return solution


def check_one_layer(size: Size, context: CheckContext) -> Verdict:
    d = size["d"]
    dp = size["dp"]
    t = size["t"]
    rank = size["rank_v"]
    kernel = KERNELS[size["S"]]
    model = Softmax(d=(d, dp), a=(d,), t=t, parametrization="attention")
    rng = np.random.default_rng([context.seed, d, dp, t])

    def draw(*shape: int) -> np.ndarray:
        if not kernel.exact:
            return rng.uniform(-1, 1, shape)
        return elementwise(Fraction, rng.integers(-3, 4, shape).astype(object))

    A, V = draw(d, d), draw(dp, rank) @ draw(rank, d)
    for _ in range(_INPUT_DRAWS):
        try:
            computed = recover(values(model, {"A1": A, "V1": V}, kernel), d, t, draw(2, d, d), kernel)
        except ZeroDivisionError:
            continue  # these inputs are special for the weights
        return _verdict(
            kernel, float(max(np.abs(x - y).max() for x, y in zip(computed, (A, V), strict=True)))
        )
    return Verdict.out_of_reach(f"{_INPUT_DRAWS} random sets of inputs were special for the weights")


def _verdict(kernel: AttentionKernel, error: float) -> Verdict:
    computed = {"largest_error": float(f"{error:.1e}")}
    statement = "the weights are recovered from values of the function"
    if kernel.exact:
        otherwise = "the recovery gives other weights"
        return Verdict.decided(
            not error, Certainty.PROVED, f"{statement}, exactly over QQ", otherwise, **computed
        )
    if error > _RECOVERY_TOLERANCE:
        return Verdict.out_of_reach(f"the weights were recovered only up to {error:.1e}")
    return Verdict.holds(Certainty.NUMERIC, f"{statement}, error {error:.0e}", **computed)


# -- Conjecture 3.10 -----------------------------------------------------------------------------------------------------------


def _drawn(rng: np.random.Generator, *shape: int) -> Any:
    entries = rng.integers(-3, 4, shape).astype(object)
    return entries if entries.any() else entries + 1


def check_singleton(size: Size, context: CheckContext) -> Verdict:
    """Check that (M, L) is recovered from the Taylor coefficients of the function at 0.

    With one token the function does not depend on M, as two networks show.
    """
    d, t, kernel = size["d"], size["t"], size["S"]
    layers = len(d) - 1
    model = Softmax(d=tuple(d), a=tuple(d[:-1]), t=t, parametrization="attention")
    rng = np.random.default_rng([context.seed, 310, t, *d])
    weights = {name: _drawn(rng, *shape) for name, shape in model.parameters.items()}
    M, L = virtual_weights(*([weights[f"{name}{i}"] for i in range(1, layers + 1)] for name in "AV"))
    function = expansion.germ(model, weights, kernel)
    try:
        matrices, last = expansion.recovered(
            function, d=d[0], t=t, layers=layers, kernel=kernel, seed=context.seed
        )
    except expansion.NotDeterminedError as error:
        x, U = _drawn(rng, d[0]), expansion.drawn_inputs(rng, d[0], t)
        other = expansion.germ(model, {**weights, "A1": weights["A1"] + 1}, kernel)
        if np.array_equal(function(x, U, 9), other(x, U, 9)):
            witness = {"A1": weights["A1"].tolist(), "other": (weights["A1"] + 1).tolist()}
            return Verdict.fails(Certainty.PROVED, witness, "two values of M_1 give the same function")
        return Verdict.fails(
            Certainty.PROBABLE, {"weights": {n: w.tolist() for n, w in weights.items()}}, str(error)
        )
    if all(np.array_equal(a, b) for a, b in zip([*matrices, last], [*M, L], strict=True)):
        reason = "(M, L) recovered exactly from Taylor coefficients of the function"
        return Verdict.holds(Certainty.PROVED, reason, orders=layers)
    return Verdict.fails(
        Certainty.PROVED, {"M": [m.tolist() for m in M]}, "the recovery gives other virtual weights"
    )


def check_skew(size: Size, context: CheckContext) -> Verdict:
    """Check whether M_2 is determined if M_1 is skew."""
    d, t, kernel = size["d"], size["t"], size["S"]
    rng = np.random.default_rng([context.seed, 311, d, t])
    B = _drawn(rng, d, d)
    M1 = B - B.T
    M1[0, 1], M1[1, 0] = M1[0, 1] or 1, M1[1, 0] or -1
    M2, L = _drawn(rng, d, d), _drawn(rng, d, d)
    function = expansion.virtual_germ([M1, M2], L, t, kernel)
    try:
        matrices, _ = expansion.recovered(function, d=d, t=t, layers=2, kernel=kernel, seed=context.seed)
        if np.array_equal(matrices[1], M2):
            return Verdict.holds(Certainty.PROVED, "M_2 is recovered exactly behind a skew M_1")
    except expansion.NotDeterminedError:
        pass
    x, U, order = _drawn(rng, d), expansion.drawn_inputs(rng, d, t), 25
    other = expansion.virtual_germ([M1, M2 + 1], L, t, kernel)
    if np.array_equal(function(x, U, order), other(x, U, order)):
        witness = {"M1": M1.tolist(), "M2": M2.tolist(), "M2'": (M2 + 1).tolist()}
        reason = "both tokens become equal behind a skew M_1, and M_2 cannot be recovered (docs/conjecture-3.10.md)"
        return Verdict.fails(Certainty.PROVED, witness, reason)
    return Verdict.holds(Certainty.PROBABLE, f"two M_2 differ in a Taylor coefficient of order <= {order}")


# -- the statements ------------------------------------------------------------------------------------------------------------

_LAYER = sizes("d dp t rank_v S", *(
    (*shape, name) for name in KERNELS for shape in ((2, 1, 2, 1), (3, 2, 2, 1), (3, 2, 3, 2), (4, 3, 5, 2))
))  # fmt: skip
_DEEP = sizes("d t S",
    ((3, 2), 2, "exp(x)"), ((2, 2, 2), 2, "exp(x)"), ((2, 2, 2, 2), 2, "exp(x)"), ((2, 2, 2), 2, "1/(1-x)"),
    ((3, 2, 3), 3, "sqrt(1+4x)"), ((2, 3, 2, 1), 2, "exp(-x/3)"), ((3, 2, 2, 3), 4, "1/(1-x)"), ((1, 3, 1), 2, "exp(x)"),
    ((2, 2, 2, 2, 2), 2, "exp(x)"),
)  # fmt: skip
_ONE_TOKEN = sizes("d t S", ((2, 2, 2), 1, "exp(x)"))
_SKEW = sizes(
    "d t S", (2, 2, "exp(x)"), (3, 2, "exp(x)"), (2, 3, "exp(x)"), (3, 3, "exp(x)"), (2, 2, "1/(1-x)")
)

_CONJECTURE = Claim(
    id="conjecture-3.10",
    number="Conjecture 3.10",
    statement="For deep networks of normalised attention, generic fibers of the parametrization by (M, L) are single points.",
    quote="the generic fibers of the parametrization via (M, L) are singletons",
    checked="(M, L) recovered exactly from the function; the conjecture has no hypothesis on t, and is false for one token",
    witnesses={
        "program": ("the forward pass over power series over QQ",),
        "construction": ("the recovery of (M, L) from coefficients, which does not use the weights",),
        "formula": ("the first term of each M_i (docs/conjecture-3.10.md)",),
    },
    sizes=_DEEP + _ONE_TOKEN,
    quick=_DEEP[:3] + _ONE_TOKEN,
    run=check_singleton,
    correction=Correction(
        smallest="t = 1, any widths and depth",
        witness="With one token every attention weight is S(x^T A x) / S(x^T A x) = 1, and the network is x -> L x whatever M is.",
        macaulay2="R = frac(QQ[s,v,x]); << (s/s*v*x == v*x) << endl;  -- s stands for S(x^T A x)\n",
        reason="Normalisation makes a single attention weight equal to 1.",
        unaffected="Theorem 3.9, which requires t >= 2, and Figure 3, which has t = 3.",
        repaired="For t >= 2 and S that is C^2 near 0 with S'(0) != 0 it is a theorem, at every depth: the fiber of (M, L) is a single point "
        "when L != 0 and M_1, ..., M_(l-1) are not skew-symmetric. Proof in docs/conjecture-3.10.md.",
        claim="conjecture-3.10-repaired",
    ),
)  # fmt: skip
CLAIMS = (
    Claim(
        id="theorem-3.9",
        number="Theorem 3.9",
        statement="For t >= 2 and an injective kernel S with S(0) = 1, one layer of normalised attention with V not zero determines (A, V).",
        quote="a map S: R -> R_{>0} that is injective and such that S(0) = 1",
        checked="the weights recovered from values of the network at chosen inputs, for three kernels; the third has S'(0) = 0",
        witnesses={"program": ("values of the forward pass",), "construction": ("the recovery, which does not use the weights",)},
        sizes=_LAYER,
        quick=(_LAYER[0], _LAYER[4], _LAYER[8]),
        run=check_one_layer,
    ),
    _CONJECTURE,
    _CONJECTURE.also(
        id="conjecture-3.10-repaired",
        number="Conjecture 3.10 for t >= 2, a theorem",
        statement="For t >= 2, S twice continuously differentiable near 0 with S'(0) != 0, L != 0 and M_1, ..., M_(l-1) not skew-symmetric, the "
        "fiber of (M, L) is a single point. (The proof is in docs/conjecture-3.10.md; the rows check its expansion at random weights.)",
        checked="(M, L) recovered exactly from the terms of order 1, 3, 7, 19, 55 of the function, and that lower orders do not depend on M_i",
        sizes=_DEEP,
        quick=_DEEP[:3],
        kind=Kind.REPAIRED,
    ),
    _CONJECTURE.also(
        id="conjecture-3.10-skew",
        number="Conjecture 3.10 behind a skew-symmetric M_1",
        statement="Is M_2 still determined when M_1 is skew-symmetric? Not for two tokens and S(x) S(-x) = 1, such as the exponential function: "
        "both tokens become equal. For three tokens it is.",
        quote="generic fibers",
        checked="whether M_2 can be recovered, or two M_2 give the same function",
        sizes=_SKEW,
        quick=(_SKEW[0], _SKEW[2]),
        run=check_skew,
        kind=Kind.PROBE,
    ),
)  # fmt: skip
