"""Models stage: sums of products of nodes: NumPy's einsum, dot, inner, outer, tensordot and trace.

Everything is made of a gather (which transposes and takes diagonals), products and sums, so it is exact in every arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models.tape import Node

_LETTERS = re.compile(r"[A-Za-z]*(?:,[A-Za-z]*)*(?:->[A-Za-z]*)?")


def einsum(subscripts: Any, *operands: Any, optimize: Any = False) -> Node:
    """``np.einsum`` with letters, e.g. ``"ij,jk->ik"``; an ellipsis or lists of axes are refused."""
    if not isinstance(subscripts, str) or not _LETTERS.fullmatch(subscripts.replace(" ", "")):
        raise InputError("einsum in a traced network takes letters, as in 'ij,jk->ik'; no ellipsis")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        letters = "".join(terms)
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    nodes = _nodes(operands)
    if len(terms) != len(nodes) or len(set(output)) != len(output) or not set(output) <= set("".join(terms)):
        raise InputError(f"einsum: {subscripts!r} does not fit {len(nodes)} arrays")
    _check_lengths(terms, nodes)
    letters, total = "", None
    for place, (term, node) in enumerate(zip(terms, nodes, strict=True)):
        later = set(output).union(*terms[place + 1 :])
        own = "".join(dict.fromkeys(term))
        every = letters + "".join(c for c in own if c not in letters)
        factor = _spread(_gathered(node, term, own), own, every)
        total = factor if total is None else _spread(total, letters, every) * factor
        for c in every:
            if c not in later:
                total = total.sum(axis=every.index(c))
                every = every.replace(c, "")
        letters = every
    assert total is not None
    return _gathered(total, letters, output)


def _check_lengths(terms: Sequence[str], nodes: Sequence[Node]) -> None:
    lengths: dict[str, int] = {}
    for term, node in zip(terms, nodes, strict=True):
        if len(term) != node.ndim:
            raise InputError(f"einsum: {term!r} does not fit an array of shape {node.shape}")
        for c, length in zip(term, node.shape, strict=True):
            if lengths.setdefault(c, length) != length:
                raise InputError(f"einsum: the axes {c!r} have lengths {lengths[c]} and {length}")


def _nodes(operands: Sequence[Any]) -> list[Node]:
    first = next(operand for operand in operands if isinstance(operand, Node))
    return [first._other(operand) for operand in operands]


def _gathered(node: Node, term: str, letters: str) -> Node:
    """The node with one axis a letter, in this order: axes with the same letter become a diagonal."""
    if term == letters:
        return node
    sizes = dict(zip(term, node.shape, strict=True))
    grid = dict(zip(letters, np.indices([sizes[c] for c in letters]), strict=True))
    flat = np.ravel_multi_index([grid[c] for c in term], node.shape)
    return node.reshape(int(np.prod(node.shape)))[flat]


def _spread(node: Node, own: str, letters: str) -> Node:
    """The node with an axis of length 1 for each letter that it does not have; its own come in the same order."""
    order = "".join(c for c in letters if c in own)
    sizes = dict(zip(own, node.shape, strict=True))
    return _gathered(node, own, order).reshape(tuple(sizes.get(c, 1) for c in letters))


def dot(left: Any, right: Any) -> Node:
    """``np.dot``: the last axis of the first, the last but one of the second; a product where one is a number."""
    a, b = _nodes([left, right])
    return a * b if not (a.ndim and b.ndim) else tensordot(a, b, axes=([-1], [-2 if b.ndim > 1 else -1]))


def inner(left: Any, right: Any) -> Node:
    """``np.inner``: the last axes of both; a product where one is a number."""
    a, b = _nodes([left, right])
    return a * b if not (a.ndim and b.ndim) else tensordot(a, b, axes=([-1], [-1]))


def outer(left: Any, right: Any) -> Node:
    """``np.outer``: all products of an entry of the first and an entry of the second, as a matrix."""
    a, b = _nodes([left, right])
    return a.reshape(int(np.prod(a.shape)), 1) * b.reshape(1, int(np.prod(b.shape)))


def tensordot(left: Any, right: Any, axes: Any = 2) -> Node:
    """``np.tensordot``: `axes` of the first against axes of the second, or how many of them."""
    a, b = _nodes([left, right])
    if isinstance(axes, int):
        axes = (list(range(a.ndim - axes, a.ndim)), list(range(axes)))
    mine, its = (
        [int(k) % node.ndim for k in np.atleast_1d(part)] for part, node in zip(axes, (a, b), strict=True)
    )
    if len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise InputError("tensordot: an axis is named twice")
    first = list(ascii_letters[: a.ndim])
    second = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(mine, its, strict=True):
        second[j] = first[i]
    rest = [c for c in (*first, *second) if (c in first) != (c in second)]
    return einsum(f"{''.join(first)},{''.join(second)}->{''.join(rest)}", a, b)


def trace(matrix: Node) -> Node:
    """``np.trace`` of a matrix."""
    return einsum("ii->", matrix)


FUNCTIONS: dict[Any, Any] = {
    np.einsum: einsum,
    np.dot: dot,
    np.inner: inner,
    np.outer: outer,
    np.tensordot: tensordot,
    np.trace: trace,
}
