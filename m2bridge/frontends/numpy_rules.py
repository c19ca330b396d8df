"""Rules of NumPy's functions on whole recorded arrays: sums, products, contractions, masks and joined arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from operator import matmul, mul
from typing import Any

import numpy as np

from m2bridge.frontends import contractions
from m2bridge.frontends.contractions import Term, summed
from m2bridge.frontends.recorded_array import Recorded, as_recorded, index_of
from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.refusals import not_polynomial, wrong_input

# -- sums and products ---------------------------------------------------------------------------------


def _reduced(a: Recorded, axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(a.shape) if keepdims or k not in axes)


def total(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    axes = a.axes(axis)
    return a.new(summed(a.recorder, a.index, axes)).reshape(_reduced(a, axes, keepdims))


def mean(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Any:
    sums = total(a, axis, keepdims=keepdims)
    return sums * Fraction(sums.size, a.size)


def variance(a: Recorded, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    sums = total((a - mean(a, axis, keepdims=True)) ** 2, axis, keepdims=keepdims)
    return sums / (a.size // sums.size - ddof)


def norm(a: Recorded, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Record the Euclidean norm, and that of Frobenius."""
    several = axis is None and a.ndim > 1
    if ord not in (None, "fro") and (ord != 2 or several):
        raise not_polynomial("of norms, the Euclidean one and that of Frobenius are supported")
    return np.sqrt(total(a**2, axis, keepdims=keepdims))


def product(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    axes = a.axes(axis)
    rest = [k for k in range(a.ndim) if k not in axes]
    factors = a.transpose([*axes, *rest]).reshape([-1, *(a.shape[k] for k in rest)])
    return reduce(mul, factors).reshape(_reduced(a, axes, keepdims))


def largest(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    """Take the largest entries, which only a softmax may use, where they cancel."""
    axes = a.axes(axis)
    return a.new(a.recorder.maximum(a.index, tuple(sorted(axes)), _reduced(a, axes, keepdims)))


def trace(a: Recorded, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return total(a.moved(np.diagonal, offset, axis1, axis2), -1)


def matrix_power(a: Recorded, exponent: int) -> Any:
    if exponent < 0:
        raise not_polynomial("an inverse matrix; a program has no inverses of matrices")
    if exponent == 0:
        return as_recorded(a.recorder, np.broadcast_to(np.eye(a.shape[-1], dtype=int), a.shape))
    return reduce(matmul, [a] * exponent)


def determinant(a: Recorded) -> Any:
    """Use the algorithm of R. S. Bird (Information Processing Letters 111, 2011): n - 1 products of matrices, no division."""
    n, power = a.shape[-1], a
    if a.ndim < 2 or a.shape[-2] != n:
        raise wrong_input(f"linalg.det: an array of shape {a.shape} is not a square matrix")
    above, unit = np.triu(np.ones((n, n), dtype=int), 1), np.eye(n, dtype=int)
    for _ in range(n - 1):
        below = einsum(
            a.recorder, "...jj,ij,ik->...ik", power, above, unit
        )  # sums of the diagonal below each entry
        power = (below - power * above) @ a
    return power[..., 0, 0]


def dot(a: Recorded, b: Recorded, *, axis: int = -2) -> Any:
    """Sum over the last axis of the first, and over the second to last of the second unless it is a vector."""
    return tensordot(a, b, ([-1], [axis if b.ndim > 1 else -1])) if a.ndim and b.ndim else a * b


def tensordot(a: Recorded, b: Recorded, axes: Any = 2) -> Recorded:
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    mine, its = (array.axes(part) for array, part in zip((a, b), axes, strict=True))
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise wrong_input("tensordot: the two lists of axes must have equal length, without repetition")
    if [a.shape[k] for k in mine] != [b.shape[k] for k in its]:
        raise wrong_input(f"tensordot: arrays of shapes {a.shape} and {b.shape} do not fit along these axes")
    second = [mine[its.index(k)] if k in its else a.ndim + k for k in range(b.ndim)]
    rest = [k for k in (*range(a.ndim), *second) if k not in mine]
    return einsum(a.recorder, a, range(a.ndim), b, second, rest)


def kron(a: Recorded, b: Recorded) -> Recorded:
    n = max(a.ndim, b.ndim)
    a, b = (array.reshape([1] * (n - array.ndim) + list(array.shape)) for array in (a, b))
    mixed = einsum(a.recorder, a, range(0, 2 * n, 2), b, range(1, 2 * n, 2), range(2 * n))
    return mixed.reshape(np.multiply(a.shape, b.shape))


_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(recorder: Recorder, *arguments: Any, optimize: Any = False) -> Recorded:
    """Record ``np.einsum("ij,jk->ik", A, B)``, also with an ellipsis, or with lists of integers after each array."""
    if arguments and isinstance(arguments[0], str):
        left, arrow, result = arguments[0].replace(" ", "").partition("->")
        written, operands = left.split(","), arguments[1:]
    else:
        lists = [*arguments[1::2], *(arguments[-1:] if len(arguments) % 2 else ())]
        letters = ["".join("..." if k is Ellipsis else _ALPHABET[k] for k in axes) for axes in lists]
        written, operands = letters[: len(arguments) // 2], arguments[: len(arguments) // 2 * 2 : 2]
        arrow, result = ("->", letters[-1]) if len(arguments) % 2 else ("", "")
    if len(written) != len(operands) or not all(map(_TERM.fullmatch, [*written, result])):
        raise wrong_input(f"einsum: {','.join(written)!r} does not fit {len(operands)} arrays")
    indices = [index_of(recorder, operand) for operand in operands]
    dots = []  # how many axes the ellipsis of each term stands for
    for term, index in zip(written, indices, strict=True):
        ndim = len(recorder.shape(index))
        dots.append(ndim - len(term.replace(".", "")))
        if dots[-1] < 0 or (dots[-1] and "." not in term):
            raise wrong_input(f"einsum: {term!r} does not fit an array with {ndim} axes")
    terms = [_names(term, count, max(dots)) for term, count in zip(written, dots, strict=True)]
    names = [name for term in terms for name in term]
    if not arrow:
        result = "..." + "".join(sorted(name for name in names if names.count(name) == 1 and name.isalpha()))
    output = _names(result, max(dots), max(dots))
    if len(set(output)) < len(output) or not set(output) <= set(names):
        raise wrong_input(f"einsum: the result {''.join(output)!r} does not fit {','.join(written)!r}")
    return Recorded(recorder, contractions.einsum(recorder, terms, output, indices))


def _names(term: str, count: int, most: int) -> Term:
    """Name each axis: by a letter, or for those of an ellipsis by the number counted from the left of the longest one."""
    before, dots, after = term.partition("...")
    return (*before, *(f"...{k}" for k in range(most - count, most) if dots), *after)


# -- masks and joined arrays ---------------------------------------------------------------------------


def broadcast_to(a: Recorded, shape: Any) -> Recorded:
    wanted = tuple(int(n) for n in np.atleast_1d(np.array(shape, dtype=int)))
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be broadcast to {wanted}")
    return a.new(a.recorder.broadcast(a.index, wanted))


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(index_of(recorder, operand) for operand in (chosen, yes, no)))
    return broadcast_to(result, shape)


def pad(a: Recorded, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    if mode != "constant":
        return a.moved(np.pad, pad_width, mode)
    flat = np.pad(np.arange(a.size).reshape(a.shape), pad_width, constant_values=a.size)
    return concatenate(a.recorder, [a.ravel(), np.array([constant_values], dtype=object)])[flat]


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    recorded = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        recorded, axis = [part.ravel() for part in recorded], 0
    return recorded[0].new(recorder.concatenate(recorded[0].axes(axis)[0], [part.index for part in recorded]))


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    return as_recorded(recorder, list(arrays)).permuted(np.moveaxis, 0, axis)


def joined(at_least: Callable[..., Any], axis: int | None) -> Callable[..., Recorded]:
    """Make the rule of hstack, vstack, dstack or column_stack: give the arrays enough axes, then join them along one.

    `axis` None is the second axis, or the first of vectors.
    """

    def record(recorder: Recorder, arrays: Sequence[Any]) -> Recorded:
        wide = [as_recorded(recorder, array).moved(at_least) for array in arrays]
        return concatenate(recorder, wide, min(wide[0].ndim - 1, 1) if axis is None else axis)

    return record


def block(recorder: Recorder, arrays: Any) -> Recorded:
    """Record np.block: move entries as NumPy moves the numbers of the entries."""
    recorded: list[Recorded] = []

    def numbers(value: Any) -> Any:
        if isinstance(value, list):
            return [numbers(item) for item in value]
        array = as_recorded(recorder, value)
        start = sum(earlier.size for earlier in recorded)
        recorded.append(array)
        return start + np.arange(array.size).reshape(array.shape)

    positions = np.block(numbers(arrays))
    return concatenate(recorder, recorded, None)[positions]


def cumsum(a: Recorded, axis: int | None = None) -> Recorded:
    """Record np.cumsum as a product with a triangular matrix of ones."""
    a, (k,) = (a.ravel(), [0]) if axis is None else (a, a.axes(axis))
    axes, ones = list(range(a.ndim)), np.triu(np.ones((a.shape[k], a.shape[k]), dtype=int))
    return einsum(a.recorder, a, axes, ones, [k, a.ndim], [*axes[:k], a.ndim, *axes[k + 1 :]])


def convolve(a: Recorded, b: Recorded, mode: str = "full") -> Any:
    """Record np.convolve as a product of shifted copies with the shorter array."""
    if a.size < b.size:
        a, b = b, a
    m, n = a.size, b.size
    full = pad(a, n - 1)[np.arange(n - 1, n + m + n - 2)[:, None] - np.arange(n)] @ b
    start, stop = {
        "full": (0, m + n - 1),
        "same": ((n - 1) // 2, (n - 1) // 2 + m),
        "valid": (n - 1, m),
    }[mode]
    return full[start:stop]
