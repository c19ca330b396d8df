"""Groups that act on the weights, as data: the axes of the weights on which they act.

Certificates contain the same labels (``docs/certificates.md``, section 4). A checker propagates them through the program to show
that the function does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Protocol

import numpy as np

from m2bridge.linear.residues import Mod
from m2bridge.programs.instructions import Shape

Label = int | Literal["*"]


class Moving(Protocol):
    """An infinitesimal action on weights that does not change the function: of a group, or a linear vector field."""

    def generators(self, weights: Mapping[str, Any]) -> Any:
        """Return the action of a basis on given weights (Mod arrays, integers or objects): one row per element."""


@dataclass(frozen=True, slots=True)
class SignedPermutation:
    """Flat weight i becomes ``signs[i]`` times flat weight ``order[i]``, and the function stays the same."""

    order: tuple[int, ...]
    signs: tuple[int, ...]

    def __call__(self, vector: Any) -> Any:
        return np.asarray(vector)[list(self.order)] * np.array(self.signs)

    def after(self, first: SignedPermutation) -> SignedPermutation:
        """Return the composition: `first`, then this permutation.

        >>> swap = SignedPermutation((1, 0), (1, -1))
        >>> swap.after(swap)
        SignedPermutation(order=(0, 1), signs=(-1, -1))
        """
        order = tuple(first.order[i] for i in self.order)
        signs = tuple(s * first.signs[i] for s, i in zip(self.signs, self.order, strict=True))
        return SignedPermutation(order, signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedSymmetries:
    """Symmetries that were searched and verified: linear vector fields, and elements of a finite group, the identity first.

    `complete` is true if these are all linear fields.
    """

    complete: bool = True
    fields: tuple[Moving, ...] = ()
    finite: tuple[SignedPermutation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """A group acting on the weights without changing the function.

    Attributes
    ----------
    name, citation: a description, and where it is stated.
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
        """Return the number of copies of the group; 1 unless an axis counts them."""
        for name, labels in self.axes.items():
            if "*" in labels:
                return self.shapes[name][labels.index("*")]
        return 1

    @property
    def dim(self) -> int:
        return self.copies * (self.size**2 if self.kind == "gl" else self.size)

    @property
    def group(self) -> str:
        """Return the name of the group, e.g. ``GL(2)^3``."""
        n = self.size if self.kind == "gl" else 1
        power = self.copies if self.kind == "gl" else self.size
        return f"GL({n})" if power == 1 else f"GL({n})^{power}"

    @property
    def document(self) -> dict[str, Any]:
        """Return the group as certificates write it."""
        if self.kind == "scaling":
            return {"group": "scaling", "weights": {name: labels[0] for name, labels in self.axes.items()}}
        axes = {name: list(labels) for name, labels in self.axes.items()}
        return {"group": self.kind, "size": self.size, "axes": axes}

    def generators(self, weights: Mapping[str, Any]) -> Any:
        """Return the infinitesimal action of a basis of the Lie algebra at given weights: shape (dim, number of flat weights).

        The weights are Mod arrays, floats, integers or objects; the result is of the same kind. The basis of gl(n) is the
        elementary matrices E_ij, row by row, copy by copy.
        """
        basis = np.eye(self.dim, dtype=np.int64)
        blocks = []
        for name, shape in self.shapes.items():
            weight = weights[name] if isinstance(weights[name], Mod) else np.asarray(weights[name])
            if name in self.axes:
                moved = self._moved(weight, self.axes[name], basis)
            else:
                moved = (weight.reshape(1, prod(shape)) * 0)[[0] * self.dim]
            blocks.append(moved.reshape(self.dim, prod(shape)))
        return np.concatenate(blocks, axis=-1)

    def direction(
        self, weights: Mapping[str, np.ndarray], rng: np.random.Generator, p: int
    ) -> dict[str, np.ndarray]:
        """Return the action of a random element of the Lie algebra on integer weights modulo p: one direction per weight."""
        element = rng.integers(0, p, size=(1, self.dim))
        moved = {
            name: self._moved(Mod(weights[name], p), labels, element) for name, labels in self.axes.items()
        }
        return {name: action[0].values for name, action in moved.items()}

    def _moved(self, weight: Any, labels: tuple[Label, ...], elements: np.ndarray) -> Any:
        """Return the action of elements of the Lie algebra on one weight; the leading axis is the element."""
        if self.kind == "scaling":
            labels = (labels[0],) + (0,) * (weight.ndim - 1)
        summands = [
            self._moved_along(weight, axis, int(label), labels, elements)
            for axis, label in enumerate(labels)
            if label not in (0, "*")
        ]
        return sum(summands[1:], summands[0])

    def _moved_along(
        self, weight: Any, axis: int, label: int, labels: tuple[Label, ...], elements: np.ndarray
    ) -> Any:
        """Return the action along one axis: by a matrix (label -1: minus its transpose), or by multiples of the entries."""
        if self.kind != "gl":
            shape = [len(elements), *(1,) * weight.ndim]
            shape[1 + axis] = self.size
            return weight * (elements * label).reshape(shape)
        # Move the axis of the copies and the axis of the group to the front, multiply by the matrices, and move them back.
        copies = [labels.index("*")] if "*" in labels else []
        order = [*copies, axis, *(k for k in range(weight.ndim) if k not in (*copies, axis))]
        arranged = weight.transpose(*order)
        matrices = elements.reshape(-1, self.copies, self.size, self.size)
        matrices = matrices if label == 1 else -np.swapaxes(matrices, -1, -2)
        product = matrices @ arranged.reshape(self.copies, self.size, -1)
        back = [0, *(1 + k for k in np.argsort(order))]
        return product.reshape(len(elements), *arranged.shape).transpose(*back)
