"""What NumPy asks of recorded arrays: its entrywise functions, its other functions, and the sentences for what is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.errors import NotPolynomialError
from m2bridge.programs import numpy_axes as axes
from m2bridge.programs import numpy_products as products
from m2bridge.programs.contractions import product
from m2bridge.programs.divisions import quotient
from m2bridge.programs.recorded import Recorded, as_recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import not_polynomial


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
    **{function: axes.triangle(function) for function in (np.triu, np.tril)},
    np.amax: Recorded.max,
    np.reshape: _reshape,
    np.linalg.matrix_power: products.matrix_power,
    np.cumsum: products.cumsum,
    np.cumprod: products.cumprod,
    np.diff: products.diff,
    np.polyval: products.polyval,
    np.vander: products.vander,
    np.broadcast_to: axes.broadcast_to,
    np.diag: axes.diag,
    np.pad: axes.pad,
    np.zeros_like: lambda a, *_, **__: axes.filled(a, 0),
    np.empty_like: lambda a, *_, **__: axes.filled(a, 0),
    np.ones_like: lambda a, *_, **__: axes.filled(a, 1),
    np.full_like: axes.filled,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: np.size(np.broadcast_to(0, a.shape), axis),
}
BINARY: dict[Any, Callable[..., Any]] = {
    np.dot: products.dot,
    np.vdot: lambda a, b: products.dot(a.ravel(), b.ravel()),
    np.inner: products.inner,
    np.outer: products.outer,
    np.tensordot: products.tensordot,
    np.kron: products.kron,
    np.convolve: products.convolve,
    np.correlate: products.correlate,
    np.append: lambda a, b, axis=None: axes.concatenate(a.recorder, [a, b], axis),
}
GENERAL: dict[Any, Callable[..., Any]] = {
    **{function: axes.at_least(function) for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.einsum: products.einsum,
    np.linalg.multi_dot: lambda r, arrays: reduce(lambda x, y: x @ y, [as_recorded(r, a) for a in arrays]),
    np.concatenate: axes.concatenate,
    np.stack: axes.stack,
    np.block: axes.block,
    np.vstack: axes.joined(lambda a: a.moved(np.atleast_2d), lambda _: 0),
    np.hstack: axes.joined(lambda a: a.moved(np.atleast_1d), lambda n: min(n - 1, 1)),
    np.dstack: axes.joined(lambda a: a.moved(np.atleast_3d), lambda _: 2),
    np.column_stack: axes.joined(lambda a: a.reshape(-1, 1) if a.ndim < 2 else a, lambda _: 1),
    np.where: axes.where,
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
