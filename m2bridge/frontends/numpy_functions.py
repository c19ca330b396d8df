"""What NumPy's functions make of recorded arrays: one table, and the sentences for what is refused.

A method of a recorded array is NumPy's function of the same name, and an operator is its ufunc, so all of them end in `called`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache, reduce
from inspect import signature
from itertools import accumulate
from operator import matmul, mul
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.errors import M2BridgeError, NotPolynomialError
from m2bridge.frontends import contractions
from m2bridge.frontends.contractions import Term, quotient, summed
from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.recording import Recorded, as_recorded, place_of
from m2bridge.frontends.refusals import not_polynomial, wrong_input
from m2bridge.programs.arithmetics import object_array

Rule = Callable[..., Any]
MOST_ENTRIES = 4096
"""So many entries are recorded one by one, for functions of NumPy without a rule."""


def called(recorder: Recorder, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy makes of recorded arrays; a `dtype` that does not round changes nothing."""
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").lstrip("._")
    name = f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__
    options = {k: v for k, v in kwargs.items() if k != "dtype" or np.dtype(v).kind in "biu"}
    table, count = next((found for found in _TABLES if function in found[0]), (None, 0))
    if name in _HINT or (table is None and isinstance(function, np.ufunc)):
        raise refusal(name)
    if table is None or any(_is_empty(array, listed=count > 0) for array in args[: count or None]):
        return _by_entries(recorder, function, name, args, options)
    rule = table[function]
    arrays = [as_recorded(recorder, array) for array in args[:count]] if count else [recorder]
    try:
        _signature(rule).bind(*arrays, *args[count:], **options)
    except TypeError as error:
        listed = ", ".join(parameter for parameter in _signature(rule).parameters if parameter != "recorder")
        other = wrong_input(f"np.{name}: {error}; it is recorded with the arguments {listed}")
        with suppress(M2BridgeError):
            return _by_entries(recorder, function, name, args, options)
        raise other from None
    return rule(*arrays, *args[count:], **options)


_signature = lru_cache(maxsize=256)(signature)


def _is_empty(value: Any, *, listed: bool) -> bool:
    """Whether an array, or one in a list of arrays, has no entries; with `listed`, also [] is an array."""
    if isinstance(value, (list, tuple)):
        parts = (isinstance(part, np.ndarray) and not part.size for part in value)
        return (listed and not value) or any(parts)
    return isinstance(value, np.ndarray) and not value.size


def _by_entries(
    recorder: Recorder, function: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What NumPy's own function makes of arrays of single recorded numbers.

    For functions that have no rule, and for arrays without entries, of which NumPy knows the shapes that come out.
    """
    count = 0

    def single(value: Any) -> Any:
        nonlocal count
        if isinstance(value, (list, tuple)):
            return type(value)(map(single, value))
        if not isinstance(value, Recorded):
            return value
        count += value.size
        entries = object_array([value.flat[k] for k in range(value.size)], value.shape)
        entries.setflags(write=False)  # what would be written into a copy is refused
        return entries

    def whole(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [whole(part) for part in value]
        recorded = isinstance(value, np.ndarray) and any(isinstance(entry, Recorded) for entry in value.flat)
        return as_recorded(recorder, value) if recorded else value

    given, options = single(list(args)), {key: single(value) for key, value in kwargs.items()}
    try:
        if count <= MOST_ENTRIES:
            return whole(function(*given, **options))
    except M2BridgeError:
        raise
    except Exception:  # whatever NumPy finds wrong with objects that are no numbers
        raise refusal(name) from None
    raise refusal(name)


def entrywise(
    recorder: Recorder, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What a ufunc, its reduction, its accumulation or its outer product makes of recorded arrays."""
    (target,) = kwargs.pop("out", (None,))
    kwargs.pop("dtype", None)
    if (ufunc, method) in FOLDS:
        axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
        result = called(recorder, FOLDS[ufunc, method], [inputs[0], axis], kwargs)
    elif method == "outer" and ufunc in BINARY and not kwargs:
        first, second = (as_recorded(recorder, array) for array in inputs)
        result = BINARY[ufunc](first.reshape([*first.shape, *([1] * second.ndim)]), second)
    elif method == "__call__" and not kwargs:
        result = called(recorder, ufunc, inputs, {})
    elif method != "__call__":
        name = f"{ufunc.__name__}.{method}"
        result = _by_entries(recorder, getattr(ufunc, method), name, inputs, kwargs)
    else:
        raise refusal(ufunc.__name__)
    if target is None or isinstance(target, Recorded):
        return result
    if isinstance(target, np.ndarray) and target.dtype == object:  # out=, and += on an array of objects
        target[...] = np.array(result, dtype=object)
        return target
    raise not_polynomial(
        "recorded values are written into an array of numbers; write a = a + b instead of a += b, or begin with "
        "np.zeros(shape, dtype=object)"
    )


# -- sums and products ---------------------------------------------------------------------------------


def _reduced(a: Recorded, axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(a.shape) if keepdims or k not in axes)


def total(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    axes = a.axes(axis)
    return a.new(summed(a.recorder, a.place, axes)).reshape(_reduced(a, axes, keepdims))


def mean(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Any:
    sums = total(a, axis, keepdims=keepdims)
    return sums * Fraction(sums.size, a.size)


def variance(a: Recorded, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    sums = total((a - mean(a, axis, keepdims=True)) ** 2, axis, keepdims=keepdims)
    return sums / (a.size // sums.size - ddof)


def product(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    axes = a.axes(axis)
    rest = [k for k in range(a.ndim) if k not in axes]
    factors = a.transpose([*axes, *rest]).reshape([-1, *(a.shape[k] for k in rest)])
    return reduce(mul, factors).reshape(_reduced(a, axes, keepdims))


def largest(a: Recorded, axis: Any = None, *, keepdims: bool = False) -> Recorded:
    """Understood in a softmax only, where it cancels."""
    axes = a.axes(axis)
    return a.new(a.recorder.maximum(a.place, tuple(sorted(axes)), _reduced(a, axes, keepdims)))


def trace(a: Recorded, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return total(a.moved(np.diagonal, offset, axis1, axis2), -1)


def cumsum(a: Recorded, axis: int | None = None) -> Recorded:
    a, (k,) = (a.ravel(), [0]) if axis is None else (a, a.axes(axis))
    axes, below = list(range(a.ndim)), np.triu(np.ones((a.shape[k], a.shape[k]), dtype=int))
    return einsum(a.recorder, a, axes, below, [k, a.ndim], [*axes[:k], a.ndim, *axes[k + 1 :]])


def cumprod(a: Recorded, axis: int | None = None) -> Recorded:
    a, (k,) = (a.ravel(), [0]) if axis is None else (a, a.axes(axis))
    factors = (a[(slice(None),) * k + (j,)] for j in range(a.shape[k]))
    return stack(a.recorder, list(accumulate(factors, mul)), k)


def diff(a: Recorded, n: int = 1, axis: int = -1) -> Any:
    before = (slice(None),) * a.axes(axis)[0]
    for _ in range(n):
        a = a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]
    return a


def matrix_power(a: Recorded, exponent: int) -> Any:
    if exponent < 0:
        raise not_polynomial("an inverse matrix; a program has no inverses of matrices")
    if exponent == 0:
        return as_recorded(a.recorder, np.broadcast_to(np.eye(a.shape[-1], dtype=int), a.shape))
    return reduce(matmul, [a] * exponent)


def determinant(a: Recorded) -> Any:
    """By the algorithm of R. S. Bird (Information Processing Letters 111, 2011): n - 1 products of matrices, no division."""
    n, power = a.shape[-1], a
    if a.ndim < 2 or a.shape[-2] != n:
        raise wrong_input(f"linalg.det: an array of shape {a.shape} is no square matrix")
    above, unit = np.triu(np.ones((n, n), dtype=int), 1), np.eye(n, dtype=int)
    for _ in range(n - 1):
        below = einsum(
            a.recorder, "...jj,ij,ik->...ik", power, above, unit
        )  # sums of the diagonal below each entry
        power = (below - power * above) @ a
    return power[..., 0, 0]


def dot(a: Recorded, b: Recorded, *, axis: int = -2) -> Any:
    """Sums over the last axis of the first, and over the second to last of the second unless it is a vector."""
    return tensordot(a, b, ([-1], [axis if b.ndim > 1 else -1])) if a.ndim and b.ndim else a * b


def tensordot(a: Recorded, b: Recorded, axes: Any = 2) -> Recorded:
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    mine, its = (array.axes(part) for array, part in zip((a, b), axes, strict=True))
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise wrong_input("tensordot: as many axes of the first as of the second, each once")
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


def convolve(a: Recorded, b: Recorded, mode: str = "full") -> Any:
    if a.size < b.size:
        a, b = b, a
    m, n = a.size, b.size
    full = pad(a, n - 1)[np.arange(n - 1, n + m + n - 2)[:, None] - np.arange(n)] @ b
    start = {"full": 0, "same": (n - 1) // 2, "valid": n - 1}[mode]
    return full[start : len(full) - start if mode == "valid" else start + (m if mode == "same" else m + n)]


def correlate(a: Recorded, b: Recorded, mode: str = "valid") -> Any:
    return correlate(b, a, mode)[::-1] if a.size < b.size else convolve(a, b[::-1], mode)


def cross(a: Recorded, b: Recorded) -> Any:
    if a.shape[-1:] != (3,) or b.shape[-1:] != (3,):
        raise wrong_input(f"cross: arrays of shapes {a.shape} and {b.shape} have no last axis of length 3")
    signs = np.cross(np.eye(3, dtype=int)[:, None], np.eye(3, dtype=int))
    return einsum(a.recorder, "...i,...j,ijk->...k", a, b, signs)


_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")
_EVERY = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(recorder: Recorder, *arguments: Any, optimize: Any = False) -> Recorded:
    """``np.einsum("ij,jk->ik", A, B)``, also with an ellipsis, or with lists of integers after each array."""
    if arguments and isinstance(arguments[0], str):
        left, arrow, result = arguments[0].replace(" ", "").partition("->")
        written, operands = left.split(","), arguments[1:]
    else:
        lists = [*arguments[1::2], *(arguments[-1:] if len(arguments) % 2 else ())]
        letters = ["".join("..." if k is Ellipsis else _EVERY[k] for k in axes) for axes in lists]
        written, operands = letters[: len(arguments) // 2], arguments[: len(arguments) // 2 * 2 : 2]
        arrow, result = ("->", letters[-1]) if len(arguments) % 2 else ("", "")
    if len(written) != len(operands) or not all(map(_TERM.fullmatch, [*written, result])):
        raise wrong_input(f"einsum: {','.join(written)!r} does not fit {len(operands)} arrays")
    places = [place_of(recorder, operand) for operand in operands]
    dots = []  # how many axes the ellipsis of each term stands for
    for term, place in zip(written, places, strict=True):
        ndim = len(recorder.shape(place))
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
    return Recorded(recorder, contractions.einsum(recorder, terms, output, places))


def _names(term: str, count: int, most: int) -> Term:
    """A name for each axis: a letter, or for those of an ellipsis the number counted from the left of the longest one."""
    before, dots, after = term.partition("...")
    return (*before, *(f"...{k}" for k in range(most - count, most) if dots), *after)


# -- masks and joined arrays ---------------------------------------------------------------------------


def broadcast_to(a: Recorded, shape: Any) -> Recorded:
    wanted = tuple(int(n) for n in np.atleast_1d(np.array(shape, dtype=int)))
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return a.new(a.recorder.broadcast(a.place, wanted))


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(result, shape)


def diag(a: Recorded, k: int = 0) -> Any:
    if a.ndim != 1:
        return a.moved(np.diagonal, k)
    long = pad(a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(a: Recorded, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    if mode != "constant":
        return a.moved(np.pad, pad_width, mode)
    flat = np.pad(np.arange(a.size).reshape(a.shape), pad_width, constant_values=a.size)
    if flat.size == a.size:
        return a
    if a.ndim == 1:
        before = int(np.argmin(flat))
        ends = [np.full(n, constant_values, dtype=object) for n in (before, len(flat) - a.size - before)]
        return concatenate(a.recorder, [part for part in (ends[0], a, ends[1]) if len(part)])
    return concatenate(a.recorder, [a.ravel(), np.array([constant_values], dtype=object)])[flat]


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    parts = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return parts[0].new(recorder.concatenate(parts[0].axes(axis)[0], [part.place for part in parts]))


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    return as_recorded(recorder, list(arrays)).permuted(np.moveaxis, 0, axis)


def joined(widened: Callable[[Recorded], Recorded], axis: Callable[[int], int]) -> Rule:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Recorded:
        wide = [widened(as_recorded(recorder, array)) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def block(recorder: Recorder, arrays: Any) -> Recorded:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def widest(part: Any) -> int:
        return max(map(widest, part)) if isinstance(part, list) else as_recorded(recorder, part).ndim

    ndim = max(depth(arrays), widest(arrays))

    def joined(part: Any, level: int) -> Recorded:
        if isinstance(part, list):
            return concatenate(recorder, [joined(item, level - 1) for item in part], -level)
        a = as_recorded(recorder, part)
        return a.reshape([1] * (ndim - a.ndim) + list(a.shape))

    return joined(arrays, depth(arrays))


# -- the table -----------------------------------------------------------------------------------------


def _moving(function: Any) -> Rule:
    """A function that only moves entries around."""
    return lambda a, *args, **kwargs: a.moved(function, *args, **kwargs)


def _permuting(function: Any) -> Rule:
    """A function that permutes the axes."""
    return lambda a, *args, **kwargs: a.permuted(function, *args, **kwargs)


def _triangle(function: Any) -> Rule:
    """triu and tril: a product with a mask of the same function."""
    return lambda a, k=0: a * function(np.ones(a.shape[-2:], dtype=bool), k)


def _widened(function: Any) -> Rule:
    """atleast_1d, atleast_2d, atleast_3d of one array or several."""
    return lambda a, *more: [function(array) for array in (a, *more)] if more else a.moved(function)


def _filled(a: Recorded, value: Any) -> Any:
    """An array of objects, so that recorded numbers may be assigned into it."""
    return np.full(a.shape, value, dtype=object)


def _written(rule: Callable[..., int]) -> Rule:
    """An operation of the recorder on places."""
    return lambda a, *others: a.new(rule(a.recorder, a.place, *(b.place for b in others)))


_MOVING = (
    np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, np.flip, np.fliplr, np.flipud, np.expand_dims, np.split,
    np.array_split, np.vsplit, np.hsplit, np.dsplit, np.squeeze, np.diagonal, sliding_window_view,
)  # fmt: skip
UNARY: dict[Any, Rule] = {
    **{function: _moving(function) for function in _MOVING},
    **{function: _permuting(function) for function in (np.transpose, np.moveaxis, np.rollaxis, np.swapaxes)},
    **{function: _triangle(function) for function in (np.triu, np.tril)},
    **{function: _widened(function) for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    **dict.fromkeys((np.positive, np.conjugate, np.real, np.copy), lambda a, *_, **__: a),
    **dict.fromkeys((np.power, np.float_power), lambda a, b: a**b),
    **dict.fromkeys((np.zeros_like, np.empty_like), lambda a, *_, **__: _filled(a, 0)),
    np.ones_like: lambda a, *_, **__: _filled(a, 1),
    np.full_like: lambda a, value, **_: _filled(a, value),
    np.negative: _written(Recorder.negative),
    np.square: lambda a: a**2,
    np.reciprocal: _written(Recorder.reciprocal),
    np.exp: _written(Recorder.exp),
    np.tanh: lambda a: 1 - 2 / (1 + np.exp(2 * a)),
    np.sum: total,
    np.mean: mean,
    np.average: mean,
    np.prod: product,
    np.var: variance,
    np.linalg.det: determinant,
    np.max: largest,
    np.amax: largest,
    np.trace: trace,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.diff: diff,
    np.polyval: lambda a, point: reduce(lambda value, c: value * point + c, a),
    np.vander: lambda a, N=None, increasing=False: (
        a[:, None] ** np.arange(N or a.size)[:: 1 if increasing else -1]
    ),
    np.linalg.matrix_power: matrix_power,
    np.ravel: lambda a, order="C": a.reshape(a.size, order=order),
    np.reshape: lambda a, shape=None, order="C", *, newshape=None: a.reshape(
        newshape if shape is None else shape, order=order
    ),
    np.broadcast_to: broadcast_to,
    np.diag: diag,
    np.pad: pad,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: np.size(np.broadcast_to(0, a.shape), axis),
}
BINARY: dict[Any, Rule] = {
    np.add: _written(Recorder.add),
    np.subtract: _written(Recorder.subtract),
    np.multiply: _written(Recorder.multiply),
    np.divide: _written(quotient),
    np.matmul: _written(contractions.matrix_product),
    np.dot: dot,
    np.vdot: lambda a, b: dot(a.ravel(), b.ravel()),
    np.inner: lambda a, b: dot(a, b, axis=-1),
    np.outer: lambda a, b: tensordot(a.ravel(), b.ravel(), 0),
    np.tensordot: tensordot,
    np.kron: kron,
    np.cross: cross,
    np.convolve: convolve,
    np.correlate: correlate,
    np.append: lambda a, b, axis=None: concatenate(a.recorder, [a, b], axis),
}
GENERAL: dict[Any, Rule] = {
    np.einsum: einsum,
    np.linalg.multi_dot: lambda r, arrays: reduce(matmul, [as_recorded(r, a) for a in arrays]),
    np.concatenate: concatenate,
    np.stack: stack,
    np.block: block,
    np.vstack: joined(lambda a: a.moved(np.atleast_2d), lambda _: 0),
    np.hstack: joined(lambda a: a.moved(np.atleast_1d), lambda n: min(n - 1, 1)),
    np.dstack: joined(lambda a: a.moved(np.atleast_3d), lambda _: 2),
    np.column_stack: joined(lambda a: a.reshape(-1, 1) if a.ndim < 2 else a, lambda _: 1),
    np.where: where,
}
for _name, _table, _rule in (  # newer than the oldest NumPy that is supported
    ("vecdot", BINARY, lambda a, b: (a * b).sum(-1)),
    ("matvec", BINARY, lambda a, b: (a @ b[..., None])[..., 0]),
    ("vecmat", BINARY, lambda a, b: (a[..., None, :] @ b)[..., 0, :]),
    ("matrix_transpose", UNARY, lambda a: a.mT),
):
    if hasattr(np, _name):
        _table[getattr(np, _name)] = _rule
if hasattr(np.linalg, "trace"):
    UNARY[np.linalg.trace] = lambda a, offset=0: trace(a, offset, -2, -1)
    BINARY[np.linalg.matmul] = lambda a, b: a @ b
_TABLES = ((GENERAL, 0), (UNARY, 1), (BINARY, 2))
FOLDS: dict[tuple[Any, str], Any] = {
    (np.add, "reduce"): np.sum,
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "reduce"): np.prod,
    (np.multiply, "accumulate"): np.cumprod,
    (np.maximum, "reduce"): np.max,
}

_POLYNOMIAL = "a polynomial activation is written with * and **, for example x**2 or a*x**2 + b*x"
_HINTS = {
    "sqrt cbrt hypot": "for the root of a constant use math.sqrt on the number itself",
    "absolute fabs abs sign tan log log2 arctan": _POLYNOMIAL,
    "maximum minimum fmax fmin clip": "relu is not a polynomial; " + _POLYNOMIAL,
    "sin cos": "make sine and cosine two weights, or rotate by constant angles with math.cos",
    "sinh cosh exp2 expm1": "write it with np.exp, or use a polynomial activation",
    "linalg.inv linalg.solve linalg.pinv": "make the inverse a weight of the network",
    "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.svd linalg.qr linalg.cholesky":
        "make the factors weights of the network, and multiply them",
    "linalg.slogdet": "np.linalg.det is a polynomial; its logarithm is not",
    "polymul": "np.convolve multiplies polynomials",
    "linalg.norm": "the squared norm is (x * x).sum()",
    "std": "a root is not a polynomial; the variance is np.var(x)",
    "fft.fft fft.ifft fft.rfft imag": "complex numbers are two real ones; use constant matrices of math.cos and math.sin",
    "sort argsort argmax argmin min amin median unique partition ptp": "an order of recorded values is not polynomial",
    "less greater equal not_equal less_equal greater_equal array_equal allclose":
        "compare shapes and constants only; use np.where with a constant mask",
}  # fmt: skip
_HINT = {name: hint for names, hint in _HINTS.items() for name in names.split()}
_SUPPORTED = (
    "+ - * / @ **, indexing, sum, mean, prod, einsum, dot, tensordot, inner, outer, kron, trace, reshape, transpose, "
    "concatenate, stack, where with a constant mask, triu, tril, diag, roll, exp and softmax are supported"
)


def refusal(name: str) -> NotPolynomialError:
    """The error for a function of NumPy that cannot be recorded, with what to write instead."""
    return not_polynomial(f"np.{name} cannot be recorded; {_HINT.get(name, _SUPPORTED)}")
