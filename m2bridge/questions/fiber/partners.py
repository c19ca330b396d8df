"""Other weights with the same function: exact ones where a formula gives them, real ones by least squares from random starts.

Two orbits of deep networks have one function where M_1 is skew. For J skew and S symmetric of size 2, S J S = det(S) J and
J S J^T = adj(S), so that with N invertible of size 2

    (M_1, M_2, L) = (J, N, L)    and    (N, J, L / det N)

are the same function. Both satisfy rk M_i = 2 and L != 0; in the first one only M_1 is skew. Zero rows and columns carry it to
every d_0 >= 2. Here the identity is checked over QQ with symbolic inputs, not believed. Real weights that are found are evaluated
again in float64 at fresh inputs; what does not pass is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice, permutations, product
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import MLP, DeepLightning, Lightning, Model
from m2bridge.models.custom import OwnModel
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions.fiber.ranks import jacobian, outputs_at, sample_count
from m2bridge.questions.fiber.result import RealPoint
from m2bridge.questions.least_squares import descended
from m2bridge.questions.orbits import exchanged
from m2bridge.questions.point import Point

Matrix = tuple[tuple[Fraction, ...], ...]
Weights = Mapping[str, np.ndarray]
_MOST_PERMUTATIONS = 24
_MOST_SYMBOLS = 9
"""Symbolic inputs with at most this many entries are expanded over QQ."""
_TOLERANCE = 1e-7
_STARTS, _STEPS = 10, 160
_MOST_WEIGHTS = 24
_MOST_SHOWN = 4


# -- exact partners --------------------------------------------------------------------------------------------------------------


def partners(point: Point) -> list[tuple[str, np.ndarray]]:
    """Weights of other orbits with the same function: where they come from, and flattened Fractions."""
    model, found = point.model, []
    if isinstance(model, Lightning) and model.parametrization == "attention":
        swapped = exchanged(point.weights["A"], point.weights["V"])
        if swapped is not None:
            vector = model.flatten(dict(zip("AV", swapped, strict=True)))
            found.append(("Theorem 3.2: (v q^T, h k^T)", vector))
    counter = counterexample_at(point)
    if counter is not None and counter["verified"]:
        other = {name: elementwise(Fraction, np.array(rows)) for name, rows in counter["other"].items()}
        found.append(("the exact partner of a skew M_1", model.flatten(other)))
    return found


def known_points(point: Point) -> tuple[list[np.ndarray], str | None]:
    """The point and its images under the finite symmetries that are known: permutations of neurons and of heads, or found ones.

    Returns the flattened points (the point itself first) and what the permutations are, or None when there are none.
    """
    model = point.model
    if isinstance(model, MLP) and model.layers > 1 and model.r > 1:
        sizes, words = model.widths[1:-1], "permutations of the hidden neurons"
    elif isinstance(model, DeepLightning) and model.multi_head:
        sizes, words = model.heads, "permutations of the heads"
    elif isinstance(model, OwnModel) and len(model.found.finite) > 1:
        return [element(point.vector) for element in model.found.finite], "permutations and signs of weights"
    else:
        return [point.vector], None
    found = []
    for choice in islice(product(*(permutations(range(n)) for n in sizes)), _MOST_PERMUTATIONS):
        weights = dict(point.weights)
        for i, order in enumerate(map(list, choice), start=1):
            if isinstance(model, MLP):
                weights[f"W{i}"] = weights[f"W{i}"][order]
                weights[f"W{i + 1}"] = weights[f"W{i + 1}"][:, order]
            elif len(order) > 1:
                weights |= {name: w[order] for name, w in weights.items() if name[1:] == str(i)}
        found.append(model.flatten(weights))
    return found, words


# -- skew M_1 --------------------------------------------------------------------------------------------------------------------


def counterexample_at(point: Point) -> dict[str, Any] | None:
    """The exact partner of a point with skew M_1, two layers."""
    model = point.model
    if not (isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.layers == 2):
        return None
    if model.constrained or model.d[0] * model.t > _MOST_SYMBOLS:
        return None
    M1, M2, L = (point.weights[name].tolist() for name in ("M1", "M2", "L"))
    return counterexample(M1, M2, L, model.t)


def counterexample(M1: Any, M2: Any, L: Any, tokens: int) -> dict[str, Any] | None:
    """The partner of (M1, M2, L) with the outcome of the exact comparison, as JSON values; None when there is none."""
    other = partner(M1, M2, L)
    if other is None:
        return None
    texts = [
        {
            name: [list(map(str, row)) for row in exact(m)]
            for name, m in zip(("M1", "M2", "L"), w, strict=True)
        }
        for w in ((M1, M2, L), other)
    ]
    return {
        "weights": texts[0],
        "other": texts[1],
        "verified": same_function((M1, M2, L), other, tokens),
        "method": f"all coefficients of both polynomial maps over QQ, symbolic X with {tokens} tokens",
    }


def exact(matrix: Any, name: str = "the matrix") -> Matrix:
    """A rectangular matrix of Fractions from integers, Fractions or strings such as ``"2/3"``; floats are refused."""

    def number(entry: Any) -> Fraction:
        if isinstance(entry, (bool, float)):
            raise InputError(
                f"{name}: {entry!r} is not an exact number; write integers or fractions as strings"
            )
        try:
            return Fraction(entry if isinstance(entry, (str, Fraction)) else int(entry))
        except (ValueError, ZeroDivisionError, TypeError):
            raise InputError(f"{name}: {entry!r} is not an integer or a fraction") from None

    rows = tuple(tuple(map(number, row)) for row in matrix)
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"{name}: its rows have different lengths")
    return rows


def is_skew(matrix: Any) -> bool:
    """Whether M^T = -M and M is not zero."""
    M = np.array(matrix, dtype=object)
    return bool(M.any()) and bool(np.all(M == -M.T))


def partner(M1: Any, M2: Any, L: Any) -> tuple[Matrix, Matrix, Matrix] | None:
    """Weights of another orbit with the same function, when M1 is skew of rank 2; None when the construction does not apply.

    M1 = c (u w^T - w u^T) lives on a plane. When M2 vanishes off the same two coordinates (always for d_0 = 2) and is invertible
    there and not skew, the partner exchanges the two and divides L by det(M2) / det(M1).
    """
    first, second, last = exact(M1, "M1"), exact(M2, "M2"), exact(L, "L")
    support = [i for i, row in enumerate(first) if any(row)]
    if not is_skew(first) or len(support) != 2 or is_skew(second):
        return None
    (a, b), (c, d) = ([second[i][j] for j in support] for i in support)
    determinant = a * d - b * c
    inside = sum(x != 0 for row in second for x in row) == sum(x != 0 for x in (a, b, c, d))
    if not inside or determinant == 0:
        return None
    scale = first[support[0]][support[1]] ** 2 / determinant
    return second, first, tuple(tuple(scale * x for x in row) for row in last)


def same_function(first: Sequence[Any], second: Sequence[Any], tokens: int) -> bool:
    """Whether two lists (M_1, ..., M_l, L) of virtual weights give the same polynomial map: all coefficients over QQ.

    The network is composed layer by layer with symbolic inputs: X -> X X^T M_i X, and L at the end.
    """
    d = len(first[0])
    ring = flint.fmpq_mpoly_ctx.get([f"x{i}_{k}" for i in range(d) for k in range(tokens)], "lex")
    X = object_array(list(ring.gens()), (d, tokens))

    def constant(x: Fraction) -> Any:
        return ring.constant(flint.fmpq(x.numerator, x.denominator))

    outputs = []
    for weights in (first, second):
        *M, L = [elementwise(constant, np.array(exact(matrix), dtype=object)) for matrix in weights]
        Y = X
        for matrix in M:
            Y = Y @ (Y.T @ (matrix @ Y))
        outputs.append(L @ Y)
    return all(a == b for a, b in zip(outputs[0].flat, outputs[1].flat, strict=True))


# -- real points -----------------------------------------------------------------------------------------------------------------


def real_points(point: Point, seed: int) -> tuple[RealPoint, ...]:
    """Real points of the fiber, one for each orbit that was met; the exact partners first."""
    model = point.model
    try:
        start = point.floats()
    except OverflowError:
        return ()
    candidates = [(how, model.unflatten(vector.astype(np.float64))) for how, vector in partners(point)]
    if model.parameter_count <= _MOST_WEIGHTS and model.free is model:
        candidates += [("least squares from a random start", found) for found in _search(model, start, seed)]
    reported: list[RealPoint] = []
    signatures = [_signature(model, start)]
    for how, weights in candidates:
        error = _residual(model, start, weights, seed)
        if not error <= _TOLERANCE:
            continue
        own = _signature(model, weights)
        if own is not None and any(_close(own, other) for other in signatures[1:]):
            continue
        same = None if own is None or signatures[0] is None else _close(own, signatures[0])
        signatures.append(own)
        listed = {name: w.tolist() for name, w in weights.items()}
        reported.append(RealPoint(weights=listed, residual=error, found_by=how, same_orbit=same))
        if len(reported) == _MOST_SHOWN:
            break
    return tuple(reported)


def _residual(model: Model, first: Weights, second: Weights, seed: int) -> float:
    """The largest difference of outputs at fresh standard normal inputs, relative to the largest output."""
    rng, shape = np.random.default_rng([seed, 99]), model.input_shape
    inputs = rng.standard_normal((25, *shape)) if shape is not None else None
    with np.errstate(all="ignore"):
        a, b = (np.asarray(outputs_at(model, w, inputs), dtype=np.float64) for w in (first, second))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    size = float(np.abs(a).max(initial=0.0))
    return float(np.abs(a - b).max(initial=0.0)) / (size if size > 0 else 1.0)


def _search(model: Model, target: Weights, seed: int) -> list[dict[str, np.ndarray]]:
    """Solutions of ``forward(w) = forward(target)`` by least squares, at most `_STARTS`."""
    rng, shape = np.random.default_rng([seed, 100]), model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None

    def outputs(w: Weights) -> np.ndarray:
        return np.asarray(outputs_at(model, w, inputs), dtype=np.float64).ravel()

    with np.errstate(all="ignore"):
        goal = outputs(target)
        scale = float(np.abs(goal).max(initial=0.0))
        if scale == 0.0 or not np.isfinite(scale):
            return []

        def residuals(flat: np.ndarray) -> np.ndarray:
            return np.array([outputs(model.unflatten(w)) - goal for w in flat]) / scale

        def derivatives(flat: np.ndarray) -> np.ndarray:
            found = [jacobian(model, model.unflatten(w), inputs) for w in flat]
            return np.array([np.asarray(J, dtype=np.float64).T for J in found]) / scale

        typical = float(np.sqrt(np.mean(np.square(model.flatten(target)))))
        starts = typical * rng.standard_normal((_STARTS, model.parameter_count))
        flat, cost = descended(residuals, derivatives, starts, floor=1e-26, steps=_STEPS, all_of_them=True)
    return [model.unflatten(w) for w, size in zip(flat, cost, strict=True) if size < 1e-18]


def attention_and_values(weights: Weights) -> tuple[np.ndarray, np.ndarray, int | None]:
    """A and V of one layer, and a when the weights are (Q, K, V)."""
    *first, V = weights.values()
    return (first[0], V, None) if len(first) == 1 else (first[1].T @ first[0], V, len(first[0]))


def _signature(model: Model, weights: Weights) -> np.ndarray | None:
    """What scalings do not change: the line of each scaled block of weights; None for other families.

    Without known symmetries the weights themselves.
    """
    one = isinstance(model, DeepLightning) and model.layers == 1 and not model.multi_head
    if isinstance(model, Lightning) or one:
        blocks = list(attention_and_values(weights)[:2])
    elif isinstance(model, DeepLightning) and model.parametrization == "virtual":
        blocks = list(weights.values())
    elif isinstance(model, MLP) and model.r > 1 and model.layers == 2:
        blocks = list(weights["W1"])
    else:
        known = model.symmetries or (isinstance(model, OwnModel) and model.found.fields)
        return None if known else np.asarray(model.flatten(weights), dtype=np.float64)
    return np.concatenate([_projection(block) for block in blocks])


def _projection(array: np.ndarray) -> np.ndarray:
    """The projection onto the line of the entries: the same for an array and its multiples."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    norm = float(np.linalg.norm(flat))
    return np.outer(flat, flat).ravel() / (norm**2 if norm else 1.0)


def _close(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    return first is not None and second is not None and bool(np.abs(first - second).max(initial=0.0) < 1e-3)
