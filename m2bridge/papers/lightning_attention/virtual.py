"""Factorizations and virtual weights: changes of basis, computed exactly over QQ (Lemmas 3.1 and 3.5), and deep networks by their
virtual weights (Lemma 3.6, Equations 11 to 13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, DeepLightning, Mod
from m2bridge.families.symbolic import rational_variables, variable_array
from m2bridge.families.virtual import equation_11, equation_12, virtual_weights
from m2bridge.papers.base import Check, CheckContext, Claim, Size, Verdict, sizes
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q
from m2bridge.questions.over_q import inverse

Matrix = np.ndarray
"""An array of Fractions, dtype object."""
_TRIALS = 5  # random instances of one statement


# -- Lemmas 3.1 and 3.5 --------------------------------------------------------------------------------------------------------


def _drawn(rng: np.random.Generator, *shape: int) -> Matrix:
    return elementwise(Fraction, rng.integers(-5, 6, shape).astype(object))


def _text(matrix: Matrix) -> list[list[str]]:
    return [[str(x) for x in row] for row in matrix]


def change_of_basis(first: Matrix, second: Matrix) -> Matrix:
    """Solve ``second = C first`` for C in as many independent columns; `first` has full row rank, so that C is unique."""
    pivots, _ = over_q.echelon(first)
    solution = over_q.solve(first[:, pivots].T, second[:, pivots].T)
    assert solution is not None, "the first matrix does not have full row rank"
    return solution.T


def check_attention(size: Size, context: CheckContext) -> Verdict:
    """Take a second factorization of A from its echelon form, solve K' = C K for C, and verify both equations."""
    rng = np.random.default_rng([context.seed, 31])
    done = 0
    while done < _TRIALS:
        Q, K = (_drawn(rng, size["a"], size["d"]) for _ in range(2))
        A = K.T @ Q
        pivots, reduced = over_q.echelon(A)
        if len(pivots) != size["a"]:
            continue  # rk A < a: the lemma's hypothesis fails, draw again
        other_Q, other_K = reduced[: len(pivots)], A[:, pivots].T
        C = change_of_basis(K, other_K)
        if not (np.array_equal(C @ K, other_K) and np.array_equal(C.T @ other_Q, Q)):
            reason = "no C carries one factorization into the other"
            return Verdict.fails(Certainty.PROVED, {"Q": _text(Q), "K": _text(K)}, reason)
        done += 1
    reason = f"C was found and is unique in {_TRIALS} random instances over QQ"
    return Verdict.holds(Certainty.PROBABLE, reason, instances=_TRIALS)


def second_network(A: list[Matrix], V: list[Matrix]) -> tuple[list[Matrix], list[Matrix]] | None:
    """Build another network with the same (M, L): V'_1 the echelon rows of L, the middle layers identities, A' solved from M.

    None if rk L is below the hidden width.
    """
    M, L = virtual_weights(A, V)
    delta = len(V[0])
    pivots, reduced = over_q.echelon(L)
    if len(pivots) != delta:
        return None
    first, last = reduced[:delta], L[:, pivots]  # L = last * first
    right = first.T @ inverse(first @ first.T)  # first * right = 1
    middle = [elementwise(Fraction, np.eye(delta, dtype=int).astype(object))] * (len(V) - 2)
    return [A[0], *(right.T @ m @ right for m in M[1:])], [first, *middle, last]


def changes_between_layers(V: list[Matrix], other_V: list[Matrix]) -> list[Matrix]:
    """Solve for C_1, ..., C_(l-1), where C_i carries V_i ... V_1 into V'_i ... V'_1; the last one is the identity."""
    changes = []
    product, other_product = V[0], other_V[0]
    for value, other_value in zip(V[1:], other_V[1:], strict=True):
        changes.append(change_of_basis(product, other_product))
        product, other_product = value @ product, other_value @ other_product
    return changes


def carries_layers(C: list[Matrix], network: list[list[Matrix]], other: list[list[Matrix]]) -> bool:
    """Verify Equation 9: V'_i C_(i-1) = C_i V_i and C_i^T A'_(i+1) C_i = A_(i+1), with C_0 and C_l the identity."""
    (A, V), (other_A, other_V) = network, other
    before = [np.eye(V[0].shape[1], dtype=int), *C]
    after = [*C, np.eye(len(V[-1]), dtype=int)]
    values = all(np.array_equal(other_V[i] @ before[i], after[i] @ V[i]) for i in range(len(V)))
    return values and all(np.array_equal(before[i].T @ other_A[i] @ before[i], A[i]) for i in range(len(A)))


def check_layers(size: Size, context: CheckContext) -> Verdict:
    """Build a second network with the same virtual weights from (M, L) alone, solve for the C_i and verify Equation 9."""
    rng = np.random.default_rng([context.seed, 35])
    d = size["d"]
    done = 0
    while done < _TRIALS:
        A = [_drawn(rng, n, n) for n in d[:-1]]
        V = [_drawn(rng, *shape) for shape in zip(d[1:], d[:-1], strict=True)]
        second = second_network(A, V)
        if second is None:
            continue  # rk L below the hidden width: the lemma's hypothesis fails, draw again
        (M, L), (N, K) = virtual_weights(A, V), virtual_weights(*second)
        if not all(np.array_equal(m, n) for m, n in zip((*M, L), (*N, K), strict=True)):
            return Verdict.disagreement(["the network that was built from (M, L) has other virtual weights"])
        if not carries_layers(changes_between_layers(V, second[1]), [A, V], list(second)):
            reason = "no changes of basis carry one network into the other"
            return Verdict.fails(Certainty.PROVED, {"A": [*map(_text, A)], "V": [*map(_text, V)]}, reason)
        done += 1
    reason = f"all C_i were found in {_TRIALS} random instances over QQ"
    return Verdict.holds(Certainty.PROBABLE, reason, instances=_TRIALS)


# -- Lemma 3.6, Equations 12 and 13 ----------------------------------------------------------------------------------------------

_PRIMES = (8_388_593, 32_003)


def _points(model: Attention, seed: int) -> Iterator[tuple[int, Any, Any, Any, Any]]:
    """Yield random (A, V, X) over several primes, and the network composed layer by layer at each."""
    for p in _PRIMES:
        rng = np.random.default_rng([seed, p])
        for _ in range(_TRIALS):
            weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
            X = Mod(rng.integers(0, p, size=model.input_shape), p)
            A, V = ([weights[f"{name}{i}"] for i in range(1, model.layers + 1)] for name in "AV")
            yield p, A, V, X, model.forward(weights, X)


def check_formula(formula: Callable[[Any, Any, Any], Any]) -> Check:
    """Return a check that a formula in (M, L) and X is equal to the composed network."""

    def check(size: Size, context: CheckContext) -> Verdict:
        model = DeepLightning(**size, parametrization="attention")
        for p, A, V, X, composed in _points(model, context.seed):
            by_formula = formula(*virtual_weights(A, V), X)
            if not np.array_equal(by_formula.values, composed.values):
                sides = {"X": X, "composed": composed, "formula": by_formula}
                witness = {"prime": p, **{name: side.values.tolist() for name, side in sides.items()}}
                return Verdict.fails(
                    Certainty.PROVED, witness, "the two sides differ at a point over a finite field"
                )
        reason = f"identical at {_TRIALS} random points over each of {len(_PRIMES)} primes"
        return Verdict.holds(Certainty.PROBABLE, reason, trials=_TRIALS * len(_PRIMES))

    return check


def all_columns(M: Any, L: Any, X: Any) -> Any:
    """Return Equation 12 for every token."""
    return np.concatenate([equation_12(M, L, X, k) for k in range(X.shape[-1])], axis=-1)


def check_equation_13(size: Size, _: CheckContext) -> Verdict:
    """Check that M_i has degree 3^(l-i) and L degree 1, as an identity of polynomials in all weights, X and a factor s."""
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
            return Verdict.fails(Certainty.PROVED, {"weight": name, "degree": degree}, reason)
    return Verdict.holds(Certainty.PROVED, "an identity of polynomials", degrees=degrees)


# -- the statements ------------------------------------------------------------------------------------------------------------

_ATTENTION = sizes("d a", (2, 2), (4, 3))
_LAYERS = sizes("d", ((3, 2, 2),), ((4, 3, 3, 5),))
_DEEP = sizes("d a t",
    ([2, 2, 2], [2, 2], 2), ([3, 2, 4], [2, 2], 3), ([2, 2, 2, 2], [2, 2, 2], 2), ([3, 4, 2, 3], [1, 3, 2], 3),
    ([2, 2, 2, 2, 2], [2, 2, 2, 2], 3),
)  # fmt: skip
_SHALLOW = sizes("d a t", ([2, 2, 2], [2, 2], 2), ([3, 2, 2], [2, 1], 3), ([2, 2, 2, 2], [2, 2, 2], 1))
_SCALED = sizes("d layers t", (2, 1, 2), (2, 2, 1), (1, 3, 2))
_COMPOSED = "the forward pass, composed layer by layer from Definition 1"

CLAIMS = (
    Claim(
        id="lemma-3.1",
        number="Lemma 3.1",
        statement="Two factorizations K^T Q = K'^T Q' of one matrix of rank a are related by a unique C in GL_a.",
        checked="C solved for over QQ, and K' = C K, Q' = C^-T Q verified, for a second factorization that was made without any C",
        witnesses={"construction": ("a second factorization, by echelon form",), "formula": ("C solved for over QQ",)},
        sizes=_ATTENTION,
        run=check_attention,
    ),
    Claim(
        id="lemma-3.5",
        number="Lemma 3.5",
        statement="With hidden widths delta <= d_0, d_l and rk L = delta, two networks with the same virtual weights are related by unique "
        "changes of basis C_i between the layers.",
        checked="C_i solved for over QQ, and Equation 9 verified, for a second network that was built from (M, L) alone",
        witnesses={
            "construction": ("a second network built from (M, L), by echelon form",), "formula": ("C_i solved for over QQ",),
        },
        sizes=_LAYERS,
        run=check_layers,
    ),
    Claim(
        id="lemma-3.6",
        number="Lemma 3.6 (Equations 10 and 11)",
        statement="A deep network is determined by its virtual weights (M, L), by the recursion of Equation 10 and Equation 11.",
        checked="both sides at random weights and inputs over two finite fields",
        witnesses={"program": (_COMPOSED,), "formula": ("the recursion of Equation 10",)},
        sizes=_DEEP,
        quick=_DEEP[:2],
        run=check_formula(equation_11),
    ),
    Claim(
        id="equation-12",
        number="Equation 12",
        statement="The same without recursion, as a sum over tokens of products of bilinear forms in the ternary order of Figure 2. (The "
        "last printed index x_l~ is read as x_(k_l~).)",
        checked="both sides at random weights and inputs over two finite fields",
        witnesses={"program": (_COMPOSED,), "formula": ("the explicit sum of Equation 12",)},
        sizes=_SHALLOW,
        run=check_formula(all_columns),
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
)  # fmt: skip
