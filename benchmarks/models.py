"""Values and Jacobian of deep lightning attention modulo p, against the plain float64 matrix products they
need.

Run with ``python benchmarks/models.py``; ``--points`` and ``--json`` as wanted. The plain products are
written out by hand for two layers by (Q, K, V): the same sums of products, no reduction modulo p, no tape.
Each figure is the best of five.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from m2bridge.families import DeepLightning, jacobian

PRIME = 8388593
BLOCK_BYTES = 1 << 22


def plain_products(weights: dict[str, np.ndarray], inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and Jacobian of two layers Y = V X X^T K^T Q X in float64, by the chain rule written out."""
    count, _, t = inputs.shape
    outputs = weights["V2"].shape[0] * t
    columns = sum(weights[name].size for name in weights)
    matrix = np.empty((count, outputs, columns))
    values = np.empty((count, outputs))
    block = max(1, BLOCK_BYTES // (8 * outputs * columns))
    for start in range(0, count, block):
        part = slice(start, min(count, start + block))
        _block(weights, inputs[part], values[part], matrix[part])
    return values.reshape(-1), matrix.reshape(count * outputs, columns)


def _block(weights: dict[str, np.ndarray], X: np.ndarray, values: np.ndarray, matrix: np.ndarray) -> None:
    states = []
    for layer in "12":
        Q, K, V = weights["Q" + layer], weights["K" + layer], weights["V" + layer]
        q, k, v = Q @ X, K @ X, V @ X
        score = k.swapaxes(-1, -2) @ q
        states.append((X, q, k, v, score, Q, K, V))
        X = v @ score
    values[:] = X.reshape(len(X), -1)
    outputs = values.shape[1]
    cotangent = np.eye(outputs).reshape(outputs, 1, *X.shape[1:])
    parts: list[np.ndarray] = []
    for X, q, k, v, score, Q, K, V in reversed(states):
        bar_v = cotangent @ score.swapaxes(-1, -2)
        bar_score = v.swapaxes(-1, -2) @ cotangent
        bar_q, bar_k = k @ bar_score, q @ bar_score.swapaxes(-1, -2)
        transposed = X.swapaxes(-1, -2)
        parts = [bar_q @ transposed, bar_k @ transposed, bar_v @ transposed, *parts]
        cotangent = Q.T @ bar_q + K.T @ bar_k + V.T @ bar_v
    column = 0
    for part in parts:
        size = part.shape[-1] * part.shape[-2]
        target = matrix[:, :, column : column + size].swapaxes(0, 1)
        target.reshape(part.shape)[...] = part
        column += size


def best(functions: dict[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    """The shortest time of each function; they take turns, so that a busy machine is busy for all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


def measure(d: int, points: int) -> dict[str, Any]:
    """Seconds for one width d, and their ratio."""
    model = DeepLightning(d=(d, d, d), t=3)
    rng = np.random.default_rng(0)
    residues = model.draw_weights(rng, PRIME)
    inputs = rng.integers(0, PRIME, (points, d, 3))
    real = model.draw_real_weights(rng)
    real_inputs = rng.standard_normal((points, d, 3))
    check, matrix = plain_products(real, real_inputs[:2])
    expected, derivative = jacobian(model, real, real_inputs[:2])
    assert np.allclose(check, expected)
    assert np.allclose(matrix, derivative)
    seconds = best(
        {
            "modular": lambda: jacobian(model, residues, inputs, PRIME),
            "float": lambda: jacobian(model, real, real_inputs),
            "plain": lambda: plain_products(real, real_inputs),
        }
    )
    return {
        "d": d,
        "points": points,
        "parameters": model.parameter_count,
        **{f"{name}_seconds": round(taken, 4) for name, taken in seconds.items()},
        "ratio": round(seconds["modular"] / seconds["plain"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--widths", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(d, options.points) for d in options.widths]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"two layers, t = 3, p = {PRIME}: values and Jacobian at {options.points} inputs")
    print(f"{'d':>4} {'weights':>8} {'mod p':>9} {'float':>9} {'products':>9} {'ratio':>6}")
    for row in rows:
        print(
            f"{row['d']:4} {row['parameters']:8} {row['modular_seconds']:9.3f} {row['float_seconds']:9.3f} "
            f"{row['plain_seconds']:9.3f} {row['ratio']:6.2f}"
        )


if __name__ == "__main__":
    main()
