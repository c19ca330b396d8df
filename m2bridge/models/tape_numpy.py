"""Models stage: concatenation and stacking of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m2bridge.models.arrays import zeros
from m2bridge.models.pullbacks import Pullback
from m2bridge.models.tape import Node


def joined(function: Any, arrays: Sequence[Any], axis: int = 0) -> Node:
    """``np.concatenate`` or ``np.stack`` of nodes and constants along a core axis."""
    first = next(array for array in arrays if isinstance(array, Node))
    nodes = [first._other(array) for array in arrays]
    ndim = first.ndim + (function is np.stack)
    axis = axis - ndim if axis >= 0 else axis  # counted from the end, batches do not matter
    if function is np.stack:
        place = first.ndim + 1 + axis
        nodes = [node.reshape(*node.shape[:place], 1, *node.shape[place:]) for node in nodes]
    batched = any(node.batched for node in nodes)
    count = next((node.value.shape[0] for node in nodes if node.batched), 1)
    values = [
        node.value if node.batched or not batched else node.value + zeros((count, *node.shape), node.value)
        for node in nodes
    ]
    parents: list[tuple[Node, Pullback]] = []
    start = 0
    for node in nodes:
        stop = start + node.shape[axis]
        parents.append((node, _window(axis, start, stop)))
        start = stop
    return Node(np.concatenate(values, axis=axis), batched=batched, parents=parents, analytic=first.analytic)


def _window(axis: int, start: int, stop: int) -> Pullback:
    after = (slice(None),) * (-axis - 1)
    return lambda cotangent: cotangent[(Ellipsis, slice(start, stop), *after)]
