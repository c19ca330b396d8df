"""Exchanges that are found by trying: slices of arrays permuted together, the other weights answering by an affine map.

The two parts of a mixture can be exchanged if the mixing weight w becomes 1 - w; nothing in the program says so. For the slices
along axes of one length, permuted at random weights over F_p, the other weights that give the same function are computed; an
affine map is fitted to them, and the identity is verified as one of polynomials. That is a proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import factorial, prod
from typing import Any

import numpy as np
from flint import nmod_mat

from m2bridge.errors import OutOfReachError
from m2bridge.linear.residues import DEFAULT_PRIME, Mod
from m2bridge.models.own import OwnNetwork
from m2bridge.models.symbolic import symbolic_weights
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.program import Program
from m2bridge.symmetry.finite import FiniteSymmetry

MOST_WEIGHTS = 24
"""Weights up to which exchanges are tried; polynomials are expanded to verify them."""
_P = DEFAULT_PRIME
_LARGEST = 1000

Affine = tuple[np.ndarray, np.ndarray]
"""An integer matrix M and a vector c: the other weights r become M r + c."""


def exchanges(program: Program, known: Sequence[FiniteSymmetry] = ()) -> tuple[FiniteSymmetry, ...]:
    """Symmetric groups on slices that are not among the known ones, with what they do to the other weights."""
    if not program.polynomial or program.vanishing or program.parameter_count > MOST_WEIGHTS:
        return ()
    model, found = OwnNetwork(recorded=program), []
    shapes = model.parameters
    for n in sorted({length for shape in shapes.values() for length in shape if length > 1}):
        axes = {name: shape.index(n) for name, shape in shapes.items() if shape.count(n) == 1}
        words = tuple(f"{name} axis {axis}" for name, axis in axes.items())
        if not axes or any(set(words) <= set(item.acts_on) for item in known):
            continue
        swap, cycle = [1, 0, *range(2, n)], [*range(1, n), 0]
        try:
            maps = [_answer(model, axes, order) for order in ([swap] if n == 2 else [swap, cycle])]
        except OutOfReachError:
            continue
        if all(item is not None for item in maps):
            acts = (*words, *_answers(model, axes, maps[0]))
            found.append(FiniteSymmetry(group=f"S_{n}", order=factorial(n), acts_on=acts, verified=True))
    return tuple(found)


def _answer(model: OwnNetwork, axes: Mapping[str, int], order: list[int]) -> Affine | None:
    """How the other weights answer a permutation; None if no affine map does."""
    rng, pairs = np.random.default_rng(0), []
    count = sum(prod(shape) for name, shape in model.parameters.items() if name not in axes)
    for _ in range(count + 1):
        weights = model.draw_weights(rng, _P)
        rest = _rest(model, axes, weights)
        base = _moved(model, axes, order, weights, rest)
        columns = [
            _moved(model, axes, order, weights, rest + unit) - base for unit in np.eye(count, dtype=int)
        ]
        target = _coordinates(model, weights) - base
        step = _solved(np.stack([*columns, target], axis=1))
        if step is None:
            return None
        pairs.append(([*rest, 1], (rest + step) % _P))
    table = np.concatenate([np.array([a for a, _ in pairs]), np.stack([b for _, b in pairs])], axis=1)
    fitted = _solved(table, right=count)
    if fitted is None:
        return None
    balanced = np.where(fitted > _P // 2, fitted - _P, fitted).reshape(count + 1, count)
    answer = (balanced[:-1].T, balanced[-1])
    small = not balanced.size or np.abs(balanced).max() <= _LARGEST
    return answer if small and _verified(model, axes, order, answer) else None


def _rest(model: OwnNetwork, axes: Mapping[str, int], weights: Mapping[str, Any]) -> Any:
    parts = [weights[name].reshape(-1) for name in model.parameters if name not in axes]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _permuted(
    model: OwnNetwork, axes: Mapping[str, int], order: list[int], weights: Mapping[str, Any], rest: Any
) -> dict[str, Any]:
    found, start = {}, 0
    for name, shape in model.parameters.items():
        if name in axes:
            found[name] = np.take(weights[name], order, axis=axes[name])
        else:
            found[name] = rest[start : start + prod(shape)].reshape(shape)
            start += prod(shape)
    return found


def _moved(
    model: OwnNetwork, axes: Mapping[str, int], order: list[int], weights: Any, rest: Any
) -> np.ndarray:
    return _coordinates(model, _permuted(model, axes, order, weights, rest))


def _coordinates(model: OwnNetwork, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    lifted = {name: Mod(np.asarray(array) % _P, _P) for name, array in weights.items()}
    return np.asarray(model.coordinates(lifted).values).reshape(-1)


def _solved(table: np.ndarray, right: int = 1) -> np.ndarray | None:
    """The only solution of a linear system over F_p, its right sides in the last columns; None if there is not exactly one."""
    unknowns = table.shape[1] - right
    entries = [int(x) % _P for x in table.reshape(-1)]
    reduced, rank = nmod_mat(*table.shape, entries, _P).rref()
    rows = np.array([[int(x) for x in row] for row in reduced.table()], dtype=np.int64)
    unique = rank == unknowns and (rows[:unknowns, :unknowns] == np.eye(unknowns, dtype=int)).all()
    found = rows[:unknowns, unknowns:]
    return (found[:, 0] if right == 1 else found) if unique else None


def _verified(model: OwnNetwork, axes: Mapping[str, int], order: list[int], answer: Affine) -> bool:
    """Whether the exchange leaves every coordinate alone, as polynomials in the weights."""
    weights, _ = symbolic_weights(model)
    one = next(iter(weights.values())).reshape(-1)[0] * 0 + 1
    rest = _rest(model, axes, weights)
    moved = [
        sum((int(m) * r for m, r in zip(row, rest, strict=True)), one * int(c))
        for row, c in zip(*answer, strict=True)
    ]
    after = _permuted(model, axes, order, weights, object_array(moved, (len(moved),)))
    pairs = zip(model.coordinates(weights).reshape(-1), model.coordinates(after).reshape(-1), strict=True)
    return all(a == b for a, b in pairs)


def _answers(model: OwnNetwork, axes: Mapping[str, int], answer: Affine | None) -> list[str]:
    """What happens to the other weights, in words: ``weight -> 1 - weight``."""
    assert answer is not None
    matrix, shift = answer
    words, start = [], 0
    for name, shape in model.parameters.items():
        if name in axes:
            continue
        part = slice(start, start + prod(shape))
        start += prod(shape)
        unit = np.zeros_like(matrix[part])
        unit[:, part] = np.eye(prod(shape), dtype=int)
        if (matrix[part] == unit).all() and not shift[part].any():
            continue
        if (
            prod(shape) == 1
            and not matrix[part.start, : part.start].any()
            and not matrix[part.start, part.stop :].any()
        ):
            m, c = int(matrix[part.start, part.start]), int(shift[part.start])
            term = {1: name, -1: f"-{name}"}.get(m, f"{m} {name}")
            words.append(f"{name} -> {f'{c} - {name}' if m == -1 else f'{c} + {term}' if c else term}")
        else:
            words.append(f"{name} by an affine map")
    return words
