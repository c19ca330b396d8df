"""Models stage: the arithmetics over which a network's one definition is run.

A forward pass is written with ``+ - * @``, :func:`mT`, :func:`power` and indexing that leaves batches alone
(``[..., None, :, :]``). It then runs over

* float64 ``ndarray``,
* :class:`Mod`, exact arrays over F_p,
* object arrays of python-flint polynomials or balls (:mod:`m2bridge.models.symbolic`),
* :class:`~m2bridge.models.jets.Jet`, values with tangent vectors over any of these,
* :class:`~m2bridge.models.forms.Forms`, polynomials in the inputs with coefficients in any of these.

The last two axes are rows and columns, the axes before them are batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.residues import LARGEST_PRIME, Mod, checked_prime, power

__all__ = [
    "LARGEST_PRIME",
    "Mod",
    "checked_prime",
    "elementwise",
    "exp",
    "lift",
    "mT",
    "object_array",
    "power",
    "stabilised",
    "zeros",
]


def mT(array: Any) -> Any:
    """The transpose of the last two axes, over any arithmetic."""
    return np.swapaxes(array, -1, -2) if isinstance(array, np.ndarray) else array.mT


def exp(array: Any) -> Any:
    """The entrywise exponential of floats, of balls, or of anything that knows its own."""
    if isinstance(array, np.ndarray):
        if array.dtype == object:
            return elementwise(lambda entry: entry.exp(), array)
        return np.exp(array)
    own: Callable[[], Any] | None = getattr(array, "exp", None)
    if own is None:
        raise NotPolynomialError("an exponential is not polynomial")
    return own()


def stabilised(array: Any) -> Any:
    """Floats minus the largest entry of their last axis, so that an exponential cannot overflow; others as
    they are.

    The shift is a constant to differentiation: for a quotient of exponentials neither value nor derivative
    changes.
    """
    if isinstance(array, np.ndarray):
        return array if array.dtype == object else array - array.max(axis=-1, keepdims=True)
    own: Callable[[], Any] | None = getattr(array, "stabilised", None)
    return array if own is None else own()


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """`function` of each entry, as an object array of the same shape."""
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = function(array[index])
    return result


def object_array(entries: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Entries in row-major order as an object array; NumPy must not look inside them."""
    flat = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        flat[position] = entry
    return flat.reshape(shape)


def lift(integers: Any, like: Any) -> Any:
    """Integers in the arithmetic of `like`."""
    if isinstance(like, Mod):
        return Mod(integers, like.p)
    if isinstance(like, np.ndarray):
        if like.dtype == object and like.size:
            zero = like.flat[0] * 0
            return elementwise(lambda entry: zero + int(entry), np.asarray(integers))
        return np.asarray(integers).astype(like.dtype)
    own: Callable[[Any], Any] = like.lift
    return own(integers)


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """An array of zeros in the arithmetic of `like`."""
    return lift(np.zeros(shape, dtype=np.int64), like)
