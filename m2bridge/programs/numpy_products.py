"""NumPy's products and sums of recorded arrays: einsum in all its spellings, dot, tensordot, kron, convolve, cumsum."""

from __future__ import annotations

import re
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from m2bridge.programs.contractions import Term, contraction
from m2bridge.programs.contractions import einsum as sum_of_products
from m2bridge.programs.numpy_axes import pad, stack
from m2bridge.programs.recorded import Recorded, as_recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial, wrong_input

_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


def einsum(recorder: Recorder, *arguments: Any, optimize: Any = False) -> Recorded:
    """``np.einsum("ij,jk->ik", A, B)``, also with an ellipsis, or with lists of integers after each array."""
    if arguments and isinstance(arguments[0], str):
        left, arrow, right = arguments[0].replace(" ", "").partition("->")
        written, operands = left.split(","), list(arguments[1:])
        result = right if arrow else None
    else:
        pairs = len(arguments) // 2
        operands = list(arguments[: 2 * pairs : 2])
        written = [_letters(axes) for axes in arguments[1 : 2 * pairs : 2]]
        result = _letters(arguments[-1]) if len(arguments) % 2 else None
    if len(written) != len(operands) or not all(map(_TERM.fullmatch, [*written, result or ""])):
        raise wrong_input(f"einsum: {','.join(written)!r} does not fit {len(operands)} arrays")
    places = [place_of(recorder, operand) for operand in operands]
    dots = [_dots(term, len(recorder.shape(place))) for term, place in zip(written, places, strict=True)]
    most = max(dots)
    terms = [_names(term, count, most) for term, count in zip(written, dots, strict=True)]
    names = [name for term in terms for name in term]
    if result is None:
        once = sorted(name for name in set(names) if names.count(name) == 1 and name.isalpha())
        output: Term = (*(f"...{k}" for k in range(most)), *once)
    else:
        output = _names(result, most if "." in result else 0, most)
    if len(set(output)) < len(output) or not set(output) <= set(names):
        raise wrong_input(f"einsum: the result {''.join(output)!r} does not fit {','.join(written)!r}")
    return Recorded(recorder, sum_of_products(recorder, terms, output, places))


def _letters(axes: Any) -> str:
    """A list of integers (and Ellipsis) as letters in the same order."""
    every = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if k is Ellipsis else every[k] for k in axes)


def _dots(term: str, ndim: int) -> int:
    """How many axes the ellipsis of a term stands for."""
    named = len(term.replace(".", ""))
    if named > ndim or ("." not in term and named != ndim):
        raise wrong_input(f"einsum: {term!r} does not fit an array with {ndim} axes")
    return ndim - named


def _names(term: str, count: int, most: int) -> Term:
    before, dots, after = term.partition("...")
    middle = [f"...{k}" for k in range(most - count, most)] if dots else []
    return (*before, *middle, *after)


def dot(a: Recorded, b: Recorded) -> Any:
    return tensordot(a, b, ([-1], [-2 if b.ndim > 1 else -1])) if a.ndim and b.ndim else a * b


def inner(a: Recorded, b: Recorded) -> Any:
    return tensordot(a, b, ([-1], [-1])) if a.ndim and b.ndim else a * b


def outer(a: Recorded, b: Recorded) -> Recorded:
    return tensordot(a.ravel(), b.ravel(), 0)


def tensordot(a: Recorded, b: Recorded, axes: Any = 2) -> Recorded:
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    mine, its = (array.axes(part) for array, part in zip((a, b), axes, strict=True))
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise wrong_input("tensordot: as many axes of the first as of the second, each once")
    if [a.shape[k] for k in mine] != [b.shape[k] for k in its]:
        raise wrong_input(f"tensordot: arrays of shapes {a.shape} and {b.shape} do not fit along these axes")
    first = [f"a{k}" for k in range(a.ndim)]
    second = [f"a{mine[its.index(k)]}" if k in its else f"b{k}" for k in range(b.ndim)]
    rest = [n for k, n in enumerate(first) if k not in mine] + [n for n in second if n[0] == "b"]
    place = contraction(a.recorder, [tuple(first), tuple(second)], tuple(rest), [a.place, b.place])
    return Recorded(a.recorder, place)


def kron(a: Recorded, b: Recorded) -> Recorded:
    ndim = max(a.ndim, b.ndim)
    a, b = (array.reshape([1] * (ndim - array.ndim) + list(array.shape)) for array in (a, b))
    first, second = tuple(f"a{k}" for k in range(ndim)), tuple(f"b{k}" for k in range(ndim))
    mixed = tuple(name for pair in zip(first, second, strict=True) for name in pair)
    place = sum_of_products(a.recorder, [first, second], mixed, [a.place, b.place])
    return Recorded(a.recorder, place).reshape([m * n for m, n in zip(a.shape, b.shape, strict=True)])


def matrix_power(a: Recorded, exponent: int) -> Any:
    if exponent < 0:
        raise not_polynomial("an inverse matrix; a program has no inverses of matrices")
    if exponent == 0:
        return as_recorded(a.recorder, np.broadcast_to(np.eye(a.shape[-1], dtype=int), a.shape))
    return reduce(lambda x, y: x @ y, [a] * exponent)


def convolve(a: Recorded, b: Recorded, mode: str = "full") -> Any:
    if a.size < b.size:
        a, b = b, a
    m, n = a.size, b.size
    full = pad(a, n - 1)[np.arange(n - 1, n + m + n - 2)[:, None] - np.arange(n)] @ b
    start = {"full": 0, "same": (n - 1) // 2, "valid": n - 1}[mode]
    return full[start : len(full) - start if mode == "valid" else start + (m if mode == "same" else m + n)]


def correlate(a: Recorded, b: Recorded, mode: str = "valid") -> Any:
    return correlate(b, a, mode)[::-1] if a.size < b.size else convolve(a, b[::-1], mode)


# -- sums ----------------------------------------------------------------------------------------------


def cumsum(a: Recorded, axis: int | None = None) -> Recorded:
    a, (k,) = (a.ravel(), [0]) if axis is None else (a, a.axes(axis))
    names = tuple(map(str, range(a.ndim)))
    below = a.recorder.constant(np.triu(np.ones((a.shape[k], a.shape[k]), dtype=int)))
    result = (*names[:k], "sum", *names[k + 1 :])
    place = contraction(a.recorder, [names, (names[k], "sum")], result, [a.place, below])
    return Recorded(a.recorder, place)


def cumprod(a: Recorded, axis: int | None = None) -> Recorded:
    a, (k,) = (a.ravel(), [0]) if axis is None else (a, a.axes(axis))
    factors = (a[(slice(None),) * k + (j,)] for j in range(a.shape[k]))
    return stack(a.recorder, list(accumulate(factors, lambda x, y: x * y)), k)


def diff(a: Recorded, n: int = 1, axis: int = -1) -> Any:
    before = (slice(None),) * a.axes(axis)[0]
    for _ in range(n):
        a = a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]
    return a


def vander(x: Recorded, N: int | None = None, increasing: bool = False) -> Any:
    powers = np.arange(x.size if N is None else N)
    return x[:, None] ** (powers if increasing else powers[::-1])


def polyval(coefficients: Recorded, point: Any) -> Any:
    return reduce(lambda total, c: total * point + c, coefficients)
