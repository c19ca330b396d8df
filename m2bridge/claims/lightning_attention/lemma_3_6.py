"""Lemma 3.6 (Equation 11), Equation 12 and Equation 13: deep networks by virtual weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m2bridge.claims.base import Claim, Context, Size, Verdict, fails, holds, sizes
from m2bridge.models import DeepLightning, Mod
from m2bridge.models.symbolic import rational_variables, variable_array
from m2bridge.models.virtual import equation_11, equation_12, virtual_weights
from m2bridge.programs.arithmetics import elementwise
from m2bridge.results import Certainty

_PRIMES = (8_388_593, 32_003)
_TRIALS = 5


def _points(model: DeepLightning, seed: int) -> Any:
    """Random (A, V, X) over several primes, and the network composed layer by layer at each."""
    for p in _PRIMES:
        rng = np.random.default_rng([seed, p])
        for _ in range(_TRIALS):
            weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
            X = Mod(rng.integers(0, p, size=model.input_shape), p)
            A = [weights[f"A{i}"] for i in range(1, model.layers + 1)]
            V = [weights[f"V{i}"] for i in range(1, model.layers + 1)]
            yield p, A, V, X, model.forward(weights, X)


def _compare(size: Size, context: Context, formula: Callable[[Any, Any, Any], Any]) -> Verdict:
    model = DeepLightning(**size, parametrization="attention")
    for p, A, V, X, composed in _points(model, context.seed):
        M, L = virtual_weights(A, V)
        theirs = formula(M, L, X)
        if not np.array_equal(theirs.values, composed.values):
            witness = {
                "prime": p,
                "X": X.values.tolist(),
                "composed": composed.values.tolist(),
                "formula": theirs.values.tolist(),
            }
            return fails(Certainty.PROVED, witness, "the two sides differ at a point over a finite field")
    reason = f"identical at {_TRIALS} random points over each of {len(_PRIMES)} primes"
    return holds(Certainty.PROBABLE, reason, trials=_TRIALS * len(_PRIMES))


def check_equation_11(size: Size, context: Context) -> Verdict:
    return _compare(size, context, equation_11)


def check_equation_12(size: Size, context: Context) -> Verdict:
    def all_columns(M: Any, L: Any, X: Any) -> Any:
        return np.concatenate([equation_12(M, L, X, k) for k in range(X.shape[-1])], axis=-1)

    return _compare(size, context, all_columns)


def check_equation_13(size: Size, _: Context) -> Verdict:
    """Each M_i enters with degree 3^(l-i) and L with degree 1: an identity of polynomials in all weights, X and a factor s."""
    d, layers, t = size["d"], size["layers"], size["t"]
    model = DeepLightning(d=(d,) * (layers + 1), t=t, parametrization="virtual")
    names = [f"w{i}" for i in range(model.parameter_count)] + [f"x{i}" for i in range(d * t)] + ["s"]
    variables = rational_variables(names)
    s = variables[-1]
    weights = {name: variable_array(variables, shape) for name, shape in model.parameters.items()}
    X = variable_array(variables, (d, t))
    plain = model.forward(weights, X)
    degrees = {f"M{i}": 3 ** (layers - i) for i in range(1, layers + 1)} | {"L": 1}
    for name, degree in degrees.items():
        scaled = model.forward({**weights, name: elementwise(lambda entry: entry * s, weights[name])}, X)
        if any(a != b * s**degree for a, b in zip(scaled.ravel(), plain.ravel(), strict=True)):
            reason = f"{name} does not enter with degree {degree}"
            return fails(Certainty.PROVED, {"weight": name, "degree": degree}, reason)
    return holds(Certainty.PROVED, "an identity of polynomials", degrees=degrees)


_DEEP = sizes(
    "d a t",
    ([2, 2, 2], [2, 2], 2), ([3, 2, 4], [2, 2], 3), ([2, 2, 2, 2], [2, 2, 2], 2), ([3, 4, 2, 3], [1, 3, 2], 3),
    ([2, 2, 2, 2, 2], [2, 2, 2, 2], 3),
)  # fmt: skip
_SHALLOW = sizes("d a t", ([2, 2, 2], [2, 2], 2), ([3, 2, 2], [2, 1], 3), ([2, 2, 2, 2], [2, 2, 2], 1))
_SCALED = sizes("d layers t", (2, 1, 2), (2, 2, 1), (1, 3, 2))
_COMPOSED = "the forward pass, composed layer by layer from Definition 1"

CLAIMS = (
    Claim(
        id="lemma-3.6",
        number="Lemma 3.6 (Equations 10 and 11)",
        statement="A deep network is determined by its virtual weights (M, L), by the recursion of Equation 10 and Equation 11.",
        checked="both sides at random weights and inputs over two finite fields",
        witnesses={"program": (_COMPOSED,), "formula": ("the recursion of Equation 10",)},
        sizes=_DEEP,
        quick=_DEEP[:2],
        run=check_equation_11,
    ),
    Claim(
        id="equation-12",
        number="Equation 12",
        statement=(
            "The same without recursion, as a sum over tokens of products of bilinear forms in the ternary order of Figure 2. (The "
            "last printed index x_l~ is read as x_(k_l~).)"
        ),
        checked="both sides at random weights and inputs over two finite fields",
        witnesses={"program": (_COMPOSED,), "formula": ("the explicit sum of Equation 12",)},
        sizes=_SHALLOW,
        run=check_equation_12,
    ),
    Claim(
        id="equation-13",
        number="Equation 13",
        statement="Scaling M_i by lambda_i and L by rho leaves the network unchanged when the product of lambda_i^(3^(l-i)) is 1/rho.",
        checked="the degree with which each virtual weight enters, as an identity of polynomials in all weights and inputs",
        witnesses={"program": ("Equation 11 over polynomials",)},
        sizes=_SCALED,
        quick=(_SCALED[0], _SCALED[2]),
        run=check_equation_13,
    ),
)
