"""NumPy's functions that mask, fill and join recorded arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.errors import NotPolynomialError
from m2bridge.programs.contractions import Term, contraction, product, quotient
from m2bridge.programs.contractions import einsum as sum_of_products
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.recording import Recorded, as_recorded, place_of
from m2bridge.programs.refusals import not_polynomial, wrong_input


def broadcast_to(a: Recorded, shape: Any) -> Recorded:
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise wrong_input(f"an array of shape {a.shape} cannot be repeated to {wanted}")
    return Recorded(a.recorder, a.recorder.broadcast(a.place, wanted))


def where(recorder: Recorder, mask: Any, yes: Any = None, no: Any = None) -> Recorded:
    if isinstance(mask, Recorded) or yes is None or no is None:
        raise not_polynomial(
            "np.where with a condition on recorded values; the mask has to be a constant array"
        )
    chosen = np.asarray(mask).astype(bool)
    result = as_recorded(recorder, yes) * chosen + as_recorded(recorder, no) * ~chosen
    shape = recorder.common_shape(*(place_of(recorder, part) for part in (chosen, yes, no)))
    return broadcast_to(result, shape)


def triangle(function: Any) -> Callable[..., Any]:
    """triu and tril: a product with a mask of the same function."""
    return lambda a, k=0: a * function(np.ones(a.shape[-2:], dtype=bool), k)


def diag(a: Recorded, k: int = 0) -> Any:
    if a.ndim != 1:
        return a.diagonal(k)
    long = pad(a, (0, abs(k)))
    return (long[:, None] if k >= 0 else long) * np.eye(long.size, k=k, dtype=int)


def pad(a: Recorded, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    if mode != "constant":
        return a.moved(np.pad, pad_width, mode)
    flat = np.pad(np.arange(a.size).reshape(a.shape), pad_width, constant_values=a.size)
    if flat.size == a.size:
        return a
    if a.ndim == 1:
        before, after = int(np.argmin(flat)), len(flat) - a.size - int(np.argmin(flat))
        ends = [np.full(n, constant_values, dtype=object) for n in (before, after)]
        return concatenate(a.recorder, [part for part in (ends[0], a, ends[1]) if len(part)])
    return concatenate(a.recorder, [a.ravel(), np.array([constant_values], dtype=object)])[flat]


def filled(a: Recorded, value: Any, **_: Any) -> Any:
    """An array of objects, so that recorded numbers may be assigned into it."""
    return np.full(a.shape, value, dtype=object)


# -- joined arrays -------------------------------------------------------------------------------------


def concatenate(recorder: Recorder, arrays: Sequence[Any], axis: int | None = 0) -> Recorded:
    parts = [as_recorded(recorder, array) for array in arrays]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    return Recorded(recorder, recorder.concatenate(parts[0].axes(axis)[0], [part.place for part in parts]))


def stack(recorder: Recorder, arrays: Sequence[Any], axis: int = 0) -> Recorded:
    return as_recorded(recorder, list(arrays)).permuted(np.moveaxis, 0, axis)


def joined(widened: Callable[[Recorded], Recorded], axis: Callable[[int], int]) -> Callable[..., Recorded]:
    """vstack, hstack, dstack: arrays with at least so many axes, joined along one of them."""

    def record(recorder: Recorder, arrays: Any) -> Recorded:
        wide = [widened(as_recorded(recorder, array)) for array in arrays]
        return concatenate(recorder, wide, axis(wide[0].ndim))

    return record


def at_least(example: Any) -> Callable[..., Any]:
    def record(recorder: Recorder, *arrays: Any) -> Any:
        wide = [as_recorded(recorder, array).moved(example) for array in arrays]
        return wide[0] if len(wide) == 1 else wide

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


def called(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy makes of recorded arrays."""
    if function in GENERAL:
        return GENERAL[function](recorder, *args, **kwargs)
    for count, table in ((1, UNARY), (2, BINARY)):
        if function in table:
            arrays = [as_recorded(recorder, array) for array in args[:count]]
            return table[function](*arrays, *args[count:], **kwargs)
    module = getattr(function, "__module__", None) or "numpy"
    raise refusal(f"linalg.{function.__name__}" if "linalg" in module else function.__name__)


def _moving(function: Any) -> Callable[..., Any]:
    """A function that only moves entries around."""
    return lambda a, *args, **kwargs: a.moved(function, *args, **kwargs)


def _permuting(function: Any) -> Callable[..., Any]:
    """A function that permutes the axes."""
    return lambda a, *args, **kwargs: a.permuted(function, *args, **kwargs)


def _reshape(a: Recorded, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Recorded:
    return a.reshape(shape if shape is not None else newshape, order=order)


_METHODS = (
    np.sum, np.mean, np.prod, np.trace, np.max, np.ravel, np.copy, np.squeeze, np.diagonal, np.swapaxes,
)  # fmt: skip
_MOVING = (
    np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, np.flip, np.fliplr, np.flipud, np.expand_dims, np.split,
    np.array_split, np.vsplit, np.hsplit, np.dsplit, sliding_window_view,
)  # fmt: skip
UNARY: dict[Any, Callable[..., Any]] = {
    **{function: getattr(Recorded, function.__name__) for function in _METHODS},
    **{function: _moving(function) for function in _MOVING},
    **{function: _permuting(function) for function in (np.transpose, np.moveaxis, np.rollaxis)},
    **{function: triangle(function) for function in (np.triu, np.tril)},
    np.amax: Recorded.max,
    np.reshape: _reshape,
    np.linalg.matrix_power: matrix_power,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.diff: diff,
    np.polyval: polyval,
    np.vander: vander,
    np.broadcast_to: broadcast_to,
    np.diag: diag,
    np.pad: pad,
    np.zeros_like: lambda a, *_, **__: filled(a, 0),
    np.empty_like: lambda a, *_, **__: filled(a, 0),
    np.ones_like: lambda a, *_, **__: filled(a, 1),
    np.full_like: filled,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: np.size(np.broadcast_to(0, a.shape), axis),
}
BINARY: dict[Any, Callable[..., Any]] = {
    np.dot: dot,
    np.vdot: lambda a, b: dot(a.ravel(), b.ravel()),
    np.inner: inner,
    np.outer: outer,
    np.tensordot: tensordot,
    np.kron: kron,
    np.convolve: convolve,
    np.correlate: correlate,
    np.append: lambda a, b, axis=None: concatenate(a.recorder, [a, b], axis),
}
GENERAL: dict[Any, Callable[..., Any]] = {
    **{function: at_least(function) for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.einsum: einsum,
    np.linalg.multi_dot: lambda r, arrays: reduce(lambda x, y: x @ y, [as_recorded(r, a) for a in arrays]),
    np.concatenate: concatenate,
    np.stack: stack,
    np.block: block,
    np.vstack: joined(lambda a: a.moved(np.atleast_2d), lambda _: 0),
    np.hstack: joined(lambda a: a.moved(np.atleast_1d), lambda n: min(n - 1, 1)),
    np.dstack: joined(lambda a: a.moved(np.atleast_3d), lambda _: 2),
    np.column_stack: joined(lambda a: a.reshape(-1, 1) if a.ndim < 2 else a, lambda _: 1),
    np.where: where,
}
if hasattr(np, "matrix_transpose"):  # since NumPy 2
    UNARY[np.matrix_transpose] = lambda a: a.mT
    UNARY[np.linalg.trace] = lambda a, offset=0: a.trace(offset, -2, -1)
    BINARY[np.linalg.matmul] = lambda a, b: a @ b

# -- entrywise functions -------------------------------------------------------------------------------

_UFUNCS: dict[str, Callable[..., int]] = {
    "add": Recorder.add,
    "subtract": Recorder.subtract,
    "multiply": Recorder.multiply,
    "matmul": product,
    "divide": quotient,
    "true_divide": quotient,
    "negative": Recorder.negative,
    "positive": lambda recorder, a: a,
    "conjugate": lambda recorder, a: a,
    "square": lambda recorder, a: recorder.power(a, 2),
    "reciprocal": Recorder.reciprocal,
    "exp": Recorder.exp,
}
_COMPOSED: dict[str, Callable[..., Recorded]] = {
    "power": lambda a, b: a**b,
    "float_power": lambda a, b: a**b,
    "vecdot": lambda a, b: (a * b).sum(-1),
    "matvec": lambda a, b: (a @ b[..., None])[..., 0],
    "vecmat": lambda a, b: (a[..., None, :] @ b)[..., 0, :],
}
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max"}
_UFUNC_METHODS: dict[str, Collection[str]] = {
    "__call__": _UFUNCS | _COMPOSED,
    "reduce": _REDUCTIONS,
    "outer": ("add", "subtract", "multiply", "divide", "true_divide"),
    "accumulate": ("add",),
}

_POLYNOMIAL = "a polynomial activation is written with * and **, for example x**2 or a*x**2 + b*x"
_HINTS = {
    **dict.fromkeys(["sqrt", "cbrt"], "for the root of a constant use math.sqrt on the number itself"),
    **dict.fromkeys(["absolute", "fabs", "abs", "sign"], _POLYNOMIAL),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin", "clip"], "relu is not a polynomial; " + _POLYNOMIAL),
    **dict.fromkeys(["sin", "cos"], "make sine and cosine two weights, or rotate by constant angles with math.cos"),
    **dict.fromkeys(["tan", "log", "log2", "arctan"], _POLYNOMIAL),
    **dict.fromkeys(
        ["tanh", "sinh", "cosh", "exp2", "expm1"], "write it with np.exp, or use a polynomial activation"
    ),
    **dict.fromkeys(["linalg.inv", "linalg.solve", "linalg.pinv"], "make the inverse a weight of the network"),
    **dict.fromkeys(["linalg.det", "linalg.slogdet"], "write the determinant out as a sum of products"),
    **dict.fromkeys(["linalg.norm"], "the squared norm is (x * x).sum()"),
    **dict.fromkeys(["var", "std"], "the variance is ((x - x.mean())**2).mean()"),
    **dict.fromkeys(["sort", "argsort", "argmax", "argmin", "min", "amin", "median", "unique", "partition"],
                    "an order of recorded values is not polynomial"),
    **dict.fromkeys(["less", "greater", "equal", "not_equal", "less_equal", "greater_equal", "array_equal", "allclose"],
                    "compare shapes and constants only; use np.where with a constant mask"),
}  # fmt: skip
_SUPPORTED = (
    "+ - * / @ **, indexing, sum, mean, prod, einsum, dot, tensordot, inner, outer, kron, trace, reshape, transpose, "
    "concatenate, stack, where with a constant mask, triu, tril, diag, roll, exp and softmax are supported"
)


def refusal(name: str) -> NotPolynomialError:
    """The error for a function of NumPy that cannot be recorded, with what to write instead."""
    return not_polynomial(f"np.{name} cannot be recorded; {_HINTS.get(name, _SUPPORTED)}")


def entrywise(
    recorder: Recorder, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a ufunc, its reduction or its outer product makes of recorded arrays."""
    name = ufunc.__name__
    (target,) = kwargs.pop("out", (None,))
    kwargs.pop("dtype", None)
    if name not in _UFUNC_METHODS.get(method, ()) or (kwargs and method in ("__call__", "outer")):
        raise refusal(name if method == "__call__" else f"{name}.{method}")
    first = as_recorded(recorder, inputs[0])
    if method == "reduce":
        axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
        result = getattr(first, _REDUCTIONS[name])(axis, keepdims=kwargs.pop("keepdims", False))
    elif method == "accumulate":
        result = np.cumsum(first, axis=kwargs.get("axis", inputs[1] if len(inputs) > 1 else 0))
    elif method == "outer":
        second = as_recorded(recorder, inputs[1])
        wide = first.reshape([*first.shape, *([1] * second.ndim)])
        result = Recorded(recorder, _UFUNCS[name](recorder, wide.place, second.place))
    elif name in _COMPOSED:
        rest = inputs[1:] if "power" in name else [as_recorded(recorder, x) for x in inputs[1:]]
        result = _COMPOSED[name](first, *rest)
    else:
        places = [place_of(recorder, x) for x in inputs[1:]]
        result = Recorded(recorder, _UFUNCS[name](recorder, first.place, *places))
    return result if target is None or isinstance(target, Recorded) else _assigned(target, result)


def _assigned(target: Any, result: Recorded) -> Any:
    """``out=`` and in-place operations on an array: recorded numbers go into arrays of objects only."""
    if isinstance(target, np.ndarray) and target.dtype == object:
        target[...] = np.array(result, dtype=object)
        return target
    raise not_polynomial(
        "recorded values are written into an array of numbers; write a = a + b instead of a += b, or begin with "
        "np.zeros(shape, dtype=object)"
    )
