"""Arrays with named leading axes, so that one set of rules serves values, tangents and cotangents of many inputs at once.

A :class:`Lettered` is an array whose first axes are named by capital letters: N for the samples, R for the rows of a Jacobian,
T for tangent directions. The axes behind them are those that the program knows. Operations align axes by their letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from m2bridge.programs.arithmetics import Array, Floats
from m2bridge.programs.instructions import Shape, broadcast_shape


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
    plan = _plan(left.lead + left_term, right.lead + right_term, lead + result)
    x, y = left.array, right.array
    x = arithmetic.sum(x, plan.left_sums) if plan.left_sums else x
    y = arithmetic.sum(y, plan.right_sums) if plan.right_sums else y
    x = x.transpose(*plan.left_order) if plan.left_order else x
    y = y.transpose(*plan.right_order) if plan.right_order else y
    stack, inner = plan.stack, plan.inner
    outer, rows, columns = x.shape[:stack], x.shape[stack : len(x.shape) - inner], y.shape[stack + inner :]
    if inner:
        m, k, n = prod(rows), prod(y.shape[stack : stack + inner]), prod(columns)
        depth = (prod(outer),) if stack else ()
        product = arithmetic.matmul(x.reshape((*depth, m, k)), y.reshape((*depth, k, n)))
        product = product.reshape((*outer, *rows, *columns))
    else:
        wide = x.reshape((*outer, *rows, *(1,) * len(columns)))
        product = arithmetic.multiply(wide, y.reshape((*outer, *(1,) * len(rows), *columns)))
    return Lettered(lead, product.transpose(*plan.out_order) if plan.out_order else product)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How an einsum of two arrays becomes a product of matrices; an empty order leaves the axes as they are.

    After sums over letters that occur once the left axes are (stack, rows, inner), the right ones (stack, inner, columns).
    """

    left_sums: tuple[int, ...]
    right_sums: tuple[int, ...]
    left_order: tuple[int, ...]
    right_order: tuple[int, ...]
    out_order: tuple[int, ...]
    stack: int
    inner: int


@lru_cache(maxsize=4096)
def _plan(a: str, b: str, out: str) -> _Plan:
    left_sums = tuple(k for k, letter in enumerate(a) if letter not in b and letter not in out)
    right_sums = tuple(k for k, letter in enumerate(b) if letter not in a and letter not in out)
    a = "".join(letter for letter in a if letter in b or letter in out)
    b = "".join(letter for letter in b if letter in a or letter in out)
    stack = [letter for letter in a if letter in b and letter in out]
    inner = [letter for letter in a if letter in b and letter not in out]
    rows = [letter for letter in a if letter not in b]
    columns = [letter for letter in b if letter not in a]
    return _Plan(
        left_sums,
        right_sums,
        _order(a, [*stack, *rows, *inner]),
        _order(b, [*stack, *inner, *columns]),
        _order([*stack, *rows, *columns], out),
        len(stack),
        len(inner),
    )


def _order(before: Sequence[str], after: Sequence[str]) -> tuple[int, ...]:
    """The permutation of axes from one order of letters to another; empty when nothing moves."""
    found = tuple(before.index(letter) for letter in after)
    return () if found == tuple(range(len(found))) else found


def _summed(arithmetic: Floats, array: Array, term: str, kept: set[str]) -> tuple[Array, str]:
    """The array summed over letters that occur nowhere else."""
    axes = tuple(k for k, letter in enumerate(term) if letter not in kept)
    if not axes:
        return array, term
    return arithmetic.sum(array, axes), "".join(letter for letter in term if letter in kept)


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
