"""A second interpreter of programs for tests: NumPy on object arrays of Fractions, written from docs/certificates.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.programs import Program


def softmax(array: Any, axis: int) -> Any:
    powers = np.exp(array.astype(float))
    return powers / powers.sum(axis=axis, keepdims=True)


def values(program: Program, **arrays: Any) -> dict[str, Any]:
    """The outputs at these weights and inputs; exact unless the program is analytic."""
    made: list[Any] = []
    for item in program.instructions:
        constants: Any = item.constants
        a = [made[k] for k in item.operands]
        match item.operation:
            case "weight" | "input":
                value = np.array(arrays[constants[0]], dtype=object)
            case "constant":
                value = np.array([Fraction(c) for c in constants], dtype=object).reshape(item.shape)
            case "add":
                value = a[0] + a[1]
            case "scale":
                value = constants[0] * a[0]
            case "multiply":
                value = a[0] * a[1]
            case "power":
                value = a[0] ** constants[0]
            case "einsum":
                value = np.einsum(",".join(constants[0]) + "->" + constants[1], *a)
            case "reshape":
                value = a[0].reshape(item.shape)
            case "slice":
                value = a[0][np.ix_(*([s + i * p for i in range(c)] for s, c, p in constants))]
            case "gather":
                value = a[0].ravel()[list(constants)].reshape(item.shape)
            case "concatenate":
                value = np.concatenate(a, axis=constants[0])
            case "softmax":
                value = softmax(a[0], constants[0])
            case "exp":
                value = np.exp(a[0].astype(float))
            case "reciprocal":
                value = 1 / a[0].astype(float)
        made.append(np.asarray(value, dtype=object))
        assert made[-1].shape == item.shape, item
    return {name: made[place] for name, place in program.outputs}
