"""Groups that act on the weights, as data: which axes of which weights they act on.

The same labels stand in certificates (``docs/certificates.md``, section 4), where a checker carries them through the program to
show that the function does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from m2bridge.linear.mod import Mod
from m2bridge.programs.instructions import Shape

Label = int | Literal["*"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """A group acting on the weights without changing the function.

    Attributes
    ----------
    name, citation: what it is and where it is stated.
    kind: ``gl``, ``torus`` or ``scaling``.
    size: n for GL(n) or a torus of rank n; 1 for a scaling.
    axes: labels of the axes of each weight that moves. For ``gl``: 1 where g acts, -1 where its inverse transpose acts, ``"*"``
        on an axis that counts copies of the group. For ``torus``: entry i along an axis with label k is multiplied by s_i^k.
        For ``scaling`` one label: all entries are multiplied by s^k.
    shapes: shapes of all weights of the model, in order.
    """

    name: str
    citation: str
    kind: Literal["gl", "torus", "scaling"]
    size: int
    axes: Mapping[str, tuple[Label, ...]]
    shapes: Mapping[str, Shape]

    @property
    def copies(self) -> int:
        """Number of copies of the group; 1 unless an axis counts them."""
        for name, labels in self.axes.items():
            if "*" in labels:
                return self.shapes[name][labels.index("*")]
        return 1

    @property
    def dim(self) -> int:
        return self.copies * (self.size**2 if self.kind == "gl" else self.size)

    @property
    def group(self) -> str:
        """Its name, e.g. ``GL(2)^3``."""
        n = self.size if self.kind == "gl" else 1
        power = self.copies if self.kind == "gl" else self.size
        return f"GL({n})" if power == 1 else f"GL({n})^{power}"

    @property
    def document(self) -> dict[str, Any]:
        """The group as certificates write it."""
        if self.kind == "scaling":
            return {"group": "scaling", "weights": {name: labels[0] for name, labels in self.axes.items()}}
        axes = {name: list(labels) for name, labels in self.axes.items()}
        return {"group": self.kind, "size": self.size, "axes": axes}

    def generators(self, weights: Mapping[str, Any]) -> Any:
        """The infinitesimal action of a basis of the Lie algebra at given weights: shape (dim, number of flat weights).

        The weights are Mod arrays, floats, integers or objects; the result is of the same kind. The basis of gl(n) is the
        elementary matrices E_ij, row by row, copy by copy.
        """
        residue = next((w for w in weights.values() if isinstance(w, Mod)), None)
        parts = []
        for name, shape in self.shapes.items():
            weight = weights[name]
            plain = weight.values if isinstance(weight, Mod) else np.asarray(weight)
            parts.append(self._moved(name, plain).reshape(self.dim, prod(shape)))
        table = np.concatenate(parts, axis=-1)
        return table if residue is None else Mod(table, residue.p)

    def direction(
        self, weights: Mapping[str, np.ndarray], rng: np.random.Generator, p: int
    ) -> dict[str, np.ndarray]:
        """How a random element of the Lie algebra moves integer weights modulo p: one direction for each weight that moves."""
        n = self.size
        square = (
            rng.integers(0, p, size=(self.copies, n, n)) if self.kind == "gl" else rng.integers(0, p, size=n)
        )
        moved = {}
        for name, labels in self.axes.items():
            total = Mod(np.zeros(self.shapes[name], dtype=np.int64), p)
            weight = Mod(weights[name], p)
            for axis, label in enumerate(labels):
                if self.kind == "scaling":
                    total = total + weight * int(square[0]) * int(label)
                elif label not in (0, "*"):
                    total = total + _acted(weight, axis, square, int(label), labels, p)
            moved[name] = total.values
        return moved

    def _moved(self, name: str, weight: np.ndarray) -> np.ndarray:
        moved = np.zeros((self.dim, *weight.shape), dtype=weight.dtype)
        labels = self.axes.get(name)
        if labels is None:
            return moved
        if self.kind == "scaling":
            return np.asarray(weight[None] * labels[0])
        if self.kind == "torus":
            for axis, label in enumerate(labels):
                if label:
                    for i in range(self.size):
                        place = (slice(None),) * axis + (i,)
                        moved[(i, *place)] += weight[place] * label
            return moved
        copy_axis = labels.index("*") if "*" in labels else None
        for axis, label in enumerate(labels):
            if label in (1, -1):
                self._add_elementary(moved, weight, axis, int(label), copy_axis)
        return moved

    def _add_elementary(
        self, moved: np.ndarray, weight: np.ndarray, axis: int, label: int, copy_axis: int | None
    ) -> None:
        """Add E_ij along an axis (label 1: entry i becomes entry j; label -1: minus the transpose)."""
        n = self.size
        for copy in range(self.copies):
            for i in range(n):
                for j in range(n):
                    row = (copy * n + i) * n + j
                    target: list[Any] = [slice(None)] * weight.ndim
                    source: list[Any] = [slice(None)] * weight.ndim
                    if copy_axis is not None:
                        target[copy_axis] = source[copy_axis] = copy
                    target[axis], source[axis] = (i, j) if label == 1 else (j, i)
                    moved[(row, *target)] += label * weight[tuple(source)]


def _acted(weight: Mod, axis: int, element: np.ndarray, label: int, labels: tuple[Label, ...], p: int) -> Mod:
    """An element of the Lie algebra acting along one axis: a matrix (or minus its transpose), or multiples of the entries."""
    data = weight.values
    if element.ndim == 1:
        shape = [1] * data.ndim
        shape[axis] = len(element)
        return weight * Mod(element * label % p, p).values.reshape(shape)
    copies = labels.index("*") if "*" in labels else None
    order = [*([] if copies is None else [copies]), axis]
    rest = [k for k in range(data.ndim) if k not in order]
    moved = np.transpose(data, (*order, *rest))
    lead = moved.shape[0] if copies is not None else 1
    flat = moved.reshape(lead, data.shape[axis], -1)
    matrices = element if label == 1 else -np.swapaxes(element, -1, -2)
    product = (Mod(matrices, p) @ Mod(flat, p)).values.reshape(moved.shape)
    return Mod(np.transpose(product, np.argsort((*order, *rest))), p)
