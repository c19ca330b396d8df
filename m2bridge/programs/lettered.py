"""Arrays with named leading axes, so that one set of rules serves values, tangents and cotangents of many inputs at once.

A :class:`Lettered` is an array whose first axes are named by capital letters: N for the samples, R for the rows of a Jacobian,
T for tangent directions. The axes behind them are those that the program knows. Operations align axes by their letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from m2bridge.programs.arithmetics import Array, Floats
from m2bridge.programs.program import Shape, broadcast_shape


@dataclass(frozen=True, slots=True)
class Lettered:
    """An array of shape (one axis for each letter of `lead`, *core)."""

    lead: str
    array: Array

    @property
    def core(self) -> Shape:
        return tuple(self.array.shape[len(self.lead) :])

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.lead, self.array.shape, strict=False))


def joined(first: str, second: str) -> str:
    """The letters of both, those of the first in front."""
    return first + "".join(letter for letter in second if letter not in first)


def aligned(item: Lettered, lead: str, ndim: int) -> Array:
    """The array with an axis for each letter of `lead` (of length 1 where it has none) and `ndim` core axes."""
    sizes, core = item.sizes, item.core
    order = [item.lead.index(letter) for letter in lead if letter in sizes]
    array = item.array
    if order != sorted(order):
        array = array.transpose(*order, *range(len(order), len(array.shape)))
    shape = (*(sizes.get(letter, 1) for letter in lead), *(1,) * (ndim - len(core)), *core)
    return array.reshape(shape) if tuple(array.shape) != shape else array


def add(arithmetic: Floats, left: Lettered, right: Lettered) -> Lettered:
    """The sum, both axes and letters broadcast."""
    lead, ndim = joined(left.lead, right.lead), max(len(left.core), len(right.core))
    return Lettered(lead, arithmetic.add(aligned(left, lead, ndim), aligned(right, lead, ndim)))


def multiply(arithmetic: Floats, left: Lettered, right: Lettered) -> Lettered:
    """The entrywise product, both axes and letters broadcast."""
    lead, ndim = joined(left.lead, right.lead), max(len(left.core), len(right.core))
    return Lettered(lead, arithmetic.multiply(aligned(left, lead, ndim), aligned(right, lead, ndim)))


def contract(
    arithmetic: Floats, left: Lettered, left_term: str, right: Lettered, right_term: str, result: str
) -> Lettered:
    """The einsum of two arrays; letters of the leads are kept, and those of both are matched.

    Everything is brought to one product of (stacks of) matrices, which is where the time goes.
    """
    lead = joined(left.lead, right.lead)
    a, b, out = left.lead + left_term, right.lead + right_term, lead + result
    x, a = _summed(arithmetic, left.array, a, set(b) | set(out))
    y, b = _summed(arithmetic, right.array, b, set(a) | set(out))
    sizes = dict(zip(a, x.shape, strict=True)) | dict(zip(b, y.shape, strict=True))
    stack = [letter for letter in a if letter in b and letter in out]
    inner = [letter for letter in a if letter in b and letter not in out]
    rows = [letter for letter in a if letter not in b]
    columns = [letter for letter in b if letter not in a]
    if not inner:
        order = "".join(stack + rows + columns)
        product = arithmetic.multiply(_ordered(x, a, order, sizes), _ordered(y, b, order, sizes))
    else:
        order = "".join(stack + rows + columns)
        x = _matrices(x, a, stack, rows, inner, sizes)
        y = _matrices(y, b, stack, inner, columns, sizes)
        product = arithmetic.matmul(x, y).reshape(tuple(sizes[letter] for letter in order))
    permutation = tuple(order.index(letter) for letter in out)
    if permutation != tuple(range(len(out))):
        product = product.transpose(*permutation)
    return Lettered(lead, product)


def _summed(arithmetic: Floats, array: Array, term: str, kept: set[str]) -> tuple[Array, str]:
    """The array summed over letters that occur nowhere else."""
    axes = tuple(k for k, letter in enumerate(term) if letter not in kept)
    if not axes:
        return array, term
    return arithmetic.sum(array, axes), "".join(letter for letter in term if letter in kept)


def _ordered(array: Array, term: str, order: str, sizes: dict[str, int]) -> Array:
    """The array with one axis for each letter of `order`, of length 1 where it does not have the letter."""
    permutation = tuple(term.index(letter) for letter in order if letter in term)
    if permutation != tuple(range(len(term))):
        array = array.transpose(*permutation)
    return array.reshape(tuple(sizes[letter] if letter in term else 1 for letter in order))


def _matrices(
    array: Array, term: str, stack: list[str], first: list[str], second: list[str], sizes: dict[str, int]
) -> Array:
    """The array as a stack of matrices: (stack, first, second), or a single one when the stack is empty."""
    permutation = tuple(term.index(letter) for letter in (*stack, *first, *second))
    if permutation != tuple(range(len(term))):
        array = array.transpose(*permutation)
    m, n = (prod(sizes[letter] for letter in group) for group in (first, second))
    depth = prod(sizes[letter] for letter in stack)
    return array.reshape((depth, m, n) if stack else (m, n))


def single(arithmetic: Floats, item: Lettered, term: str, result: str) -> Lettered:
    """The einsum of one array: a sum over the letters that the result does not have, then a transpose."""
    lead = item.lead
    array, term = _summed(arithmetic, item.array, lead + term, set(lead + result))
    permutation = tuple(term.index(letter) for letter in lead + result)
    return Lettered(lead, array if permutation == tuple(range(len(term))) else array.transpose(*permutation))


def reshaped(item: Lettered, shape: Shape) -> Lettered:
    return Lettered(item.lead, item.array.reshape((*item.array.shape[: len(item.lead)], *shape)))


def indexed(item: Lettered, key: tuple[object, ...]) -> Lettered:
    """The array with an index on its core axes only."""
    return Lettered(item.lead, item.array[(*(slice(None),) * len(item.lead), *key)])


def summed_to(arithmetic: Floats, item: Lettered, core: Shape) -> Lettered:
    """The transpose of broadcasting: sums over core axes that an operand of shape `core` did not have."""
    extra = len(item.core) - len(core)
    offset = len(item.lead)
    axes = tuple(
        offset + k for k, size in enumerate(item.core) if k < extra or (core[k - extra] == 1 and size != 1)
    )
    if not axes:
        return item
    return reshaped(Lettered(item.lead, arithmetic.sum(item.array, axes)), core)


def repeated(arithmetic: Floats, item: Lettered, core: Shape) -> Lettered:
    """The array broadcast to a core shape."""
    shape = broadcast_shape(item.core, core)
    array = aligned(item, item.lead, len(shape))
    return Lettered(item.lead, arithmetic.broadcast(array, (*array.shape[: len(item.lead)], *shape)))
