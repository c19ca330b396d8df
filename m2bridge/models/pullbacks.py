"""Models stage: how cotangents travel back through a recorded forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.models.arrays import Mod

if TYPE_CHECKING:
    from m2bridge.models.tape import Node

Pullback = Callable[[Any], Any]
"""Cotangent of a node, of shape (R, N, *core), -> cotangent of a parent, of shape (R, N, *its core)."""


def summed_to(core: tuple[int, ...]) -> Pullback:
    """Undo broadcasting: sum a cotangent over the axes that its parent does not have."""

    def pull(cotangent: Any) -> Any:
        while cotangent.ndim - 2 > len(core):
            cotangent = cotangent.sum(axis=2)
        for axis, size in enumerate(core, start=2 - len(core) - 2):
            if size == 1 and cotangent.shape[axis] > 1:
                cotangent = cotangent.sum(axis=axis)
                shape = list(cotangent.shape)
                shape.insert(len(shape) + 1 + axis, 1)
                cotangent = cotangent.reshape(*shape)
        return cotangent

    return pull


def add_at(total: Any, key: tuple[Any, ...], part: Any) -> Any:
    """``total[key] += part``, also where an index repeats."""
    if all(isinstance(k, (slice, int, type(None), type(Ellipsis))) for k in key):
        total[key] = part
        return total
    if isinstance(total, Mod):
        np.add.at(total.data, key, part.data)
        return total * 1  # reduced
    np.add.at(total, key, part)
    return total


def cotangents(output: Node, leaves: Sequence[Node], seed: Any) -> list[Any]:
    """Pull the cotangents `seed`, of shape (R, N, *core of the output), back to the leaves (None where
    unused).
    """
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(output, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(parent, False) for parent, _ in node.parents]
    needed = {id(leaf) for leaf in leaves}
    for node in order:
        if any(id(parent) in needed for parent, _ in node.parents):
            needed.add(id(node))
    pulled: dict[int, Any] = {id(output): seed}
    for node in reversed(order):
        cotangent = pulled.get(id(node))
        if cotangent is None:
            continue
        for parent, pull in node.parents:
            if id(parent) in needed:
                part = pull(cotangent)
                pulled[id(parent)] = pulled[id(parent)] + part if id(parent) in pulled else part
        if node.parents and node is not output:
            del pulled[id(node)]
    return [pulled.get(id(leaf)) for leaf in leaves]
