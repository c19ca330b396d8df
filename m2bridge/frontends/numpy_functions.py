"""Record functions of NumPy: explicit tables, a fallback entry by entry, and the errors for functions that are refused.

A method of a recorded array is NumPy's function of the same name, and an operator is its ufunc; all of them end in
:func:`call_function`. A function that is in no table runs on arrays of single recorded numbers, so a rule is needed only where
that would be refused, or where an array is better recorded as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from inspect import signature
from operator import matmul
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.errors import M2BridgeError, NotPolynomialError
from m2bridge.frontends import contractions
from m2bridge.frontends import numpy_rules as rules
from m2bridge.frontends.contractions import quotient
from m2bridge.frontends.recorded_array import Recorded, as_recorded
from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.refusals import not_polynomial, wrong_input
from m2bridge.programs.arithmetics import object_array

Rule = Callable[..., Any]
MOST_UNROLLED_ENTRIES = 4096
"""This many entries are recorded one by one, for functions of NumPy without a rule."""


def call_function(recorder: Recorder, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy with recorded arrays.

    A floating-point `dtype` is ignored, because programs are exact; an integer or boolean one is passed on.
    """
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").lstrip("._")
    name = f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__
    options = _without_floating_dtype(kwargs)
    table, count = next((entry for entry in _TABLES if function in entry[0]), (None, 0))
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


def _without_floating_dtype(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if k != "dtype" or np.dtype(v).kind in "biu"}


_signature = lru_cache(maxsize=256)(signature)


def _is_empty(value: Any, *, listed: bool) -> bool:
    """Return whether an array, or one in a list of arrays, has no entries; with `listed`, also [] is an array."""
    if isinstance(value, (list, tuple)):
        empty = (isinstance(item, np.ndarray) and not item.size for item in value)
        return (listed and not value) or any(empty)
    return isinstance(value, np.ndarray) and not value.size


def _by_entries(
    recorder: Recorder, function: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Call NumPy's own function with arrays of single recorded numbers.

    This is for functions without a rule, and for arrays without entries, whose results have the shapes that NumPy computes.
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
        if count <= MOST_UNROLLED_ENTRIES:
            return whole(function(*given, **options))
    except M2BridgeError:
        raise
    except Exception:  # whatever NumPy finds wrong with objects that are no numbers
        raise refusal(name) from None
    raise refusal(name)


def call_ufunc(
    recorder: Recorder, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Call a ufunc, its reduction, its accumulation or its outer product with recorded arrays; see call_function for `dtype`."""
    kwargs = _without_floating_dtype(kwargs)
    (target,) = kwargs.pop("out", (None,))
    if (ufunc, method) in FOLDS:
        axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
        result = call_function(recorder, FOLDS[ufunc, method], [inputs[0], axis], kwargs)
    elif method == "outer" and ufunc in BINARY and not kwargs:
        first, second = (as_recorded(recorder, array) for array in inputs)
        result = BINARY[ufunc](first.reshape([*first.shape, *([1] * second.ndim)]), second)
    elif method == "__call__" and not kwargs:
        result = call_function(recorder, ufunc, inputs, {})
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


# -- the tables ----------------------------------------------------------------------------------------


def _moving(function: Any) -> Rule:
    """Make the rule of a function that only moves entries."""
    return lambda a, *args, **kwargs: a.moved(function, *args, **kwargs)


def _permuting(function: Any) -> Rule:
    """Make the rule of a function that permutes the axes."""
    return lambda a, *args, **kwargs: a.permuted(function, *args, **kwargs)


def _triangle(function: Any) -> Rule:
    """Make the rule of triu or tril: multiply by a mask of the same function."""
    return lambda a, k=0: a * function(np.ones(a.shape[-2:], dtype=bool), k)


def _written(rule: Callable[..., int]) -> Rule:
    """Make the rule of an operation of the recorder."""
    return lambda a, *others: a.new(rule(a.recorder, a.index, *(b.index for b in others)))


def _full_like(
    a: Recorded, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    """Return an array of constants; only an integer or boolean `dtype` is used, and `order` and `subok` are ignored."""
    integral = dtype is not None and np.dtype(dtype).kind in "biu"
    return np.full(a.shape if shape is None else shape, fill_value, dtype=dtype if integral else None)


def _constant_like(value: int) -> Rule:
    """Make the rule of zeros_like or ones_like."""
    return lambda a, dtype=None, order="K", subok=True, shape=None: _full_like(
        a, value, dtype, order, subok, shape
    )


_MOVING = (
    np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, np.flip, np.fliplr, np.flipud, np.expand_dims, np.split,
    np.array_split, np.vsplit, np.hsplit, np.dsplit, np.squeeze, np.diagonal, np.atleast_1d, np.atleast_2d, np.atleast_3d,
    sliding_window_view,
)  # fmt: skip
UNARY: dict[Any, Rule] = {
    **{function: _moving(function) for function in _MOVING},
    **{function: _permuting(function) for function in (np.transpose, np.moveaxis, np.rollaxis, np.swapaxes)},
    **{function: _triangle(function) for function in (np.triu, np.tril)},
    **dict.fromkeys((np.positive, np.conjugate, np.copy), lambda a, *_, **__: a),
    **dict.fromkeys((np.zeros_like, np.empty_like), _constant_like(0)),
    np.ones_like: _constant_like(1),
    np.full_like: _full_like,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    **dict.fromkeys((np.power, np.float_power), lambda a, b: a**b),
    np.negative: _written(Recorder.negative),
    np.square: lambda a: a**2,
    np.reciprocal: _written(Recorder.reciprocal),
    np.exp: _written(Recorder.exp),
    np.sqrt: _written(Recorder.sqrt),
    np.tanh: lambda a: 1 - 2 / (1 + np.exp(2 * a)),
    np.sum: rules.total,
    np.cumsum: rules.cumsum,
    np.mean: rules.mean,
    np.average: rules.mean,
    np.prod: rules.product,
    np.var: rules.variance,
    np.std: lambda a, axis=None, *, ddof=0, keepdims=False: np.sqrt(
        rules.variance(a, axis, ddof=ddof, keepdims=keepdims)
    ),
    np.linalg.norm: rules.norm,
    np.linalg.det: rules.determinant,
    np.max: rules.largest,
    np.amax: rules.largest,
    np.trace: rules.trace,
    np.linalg.trace: lambda a, offset=0: rules.trace(a, offset, -2, -1),
    np.matrix_transpose: lambda a: a.mT,
    np.vander: lambda a, N=None, increasing=False: (
        a[:, None] ** np.arange(a.size if N is None else N)[:: 1 if increasing else -1]
    ),
    np.linalg.matrix_power: rules.matrix_power,
    np.ravel: lambda a, order="C": a.reshape(a.size, order=order),
    np.reshape: lambda a, shape=None, order="C", *, newshape=None: a.reshape(
        newshape if shape is None else shape, order=order
    ),
    np.broadcast_to: rules.broadcast_to,
    np.pad: rules.pad,
}
BINARY: dict[Any, Rule] = {
    np.add: _written(Recorder.add),
    np.subtract: _written(Recorder.subtract),
    np.multiply: _written(Recorder.multiply),
    np.divide: _written(quotient),
    **dict.fromkeys((np.matmul, np.linalg.matmul), _written(contractions.matrix_product)),
    np.vecdot: lambda a, b: (a * b).sum(-1),
    np.dot: rules.dot,
    np.vdot: lambda a, b: rules.dot(a.ravel(), b.ravel()),
    np.inner: lambda a, b: rules.dot(a, b, axis=-1),
    np.outer: lambda a, b: rules.tensordot(a.ravel(), b.ravel(), 0),
    np.tensordot: rules.tensordot,
    np.kron: rules.kron,
    np.convolve: rules.convolve,
    np.append: lambda a, b, axis=None: rules.concatenate(a.recorder, [a, b], axis),
}
GENERAL: dict[Any, Rule] = {
    np.einsum: rules.einsum,
    np.linalg.multi_dot: lambda r, arrays: reduce(matmul, [as_recorded(r, a) for a in arrays]),
    np.concatenate: rules.concatenate,
    np.hstack: rules.joined(np.atleast_1d, None),
    np.vstack: rules.joined(np.atleast_2d, 0),
    np.dstack: rules.joined(np.atleast_3d, 2),
    np.column_stack: rules.joined(lambda a: a.reshape(-1, 1) if a.ndim < 2 else a, 1),
    np.block: rules.block,
    np.stack: rules.stack,
    np.where: rules.where,
}
if hasattr(np, "matvec"):  # newer than the oldest NumPy that is supported
    BINARY[np.matvec] = lambda a, b: (a @ b[..., None])[..., 0]
    BINARY[np.vecmat] = lambda a, b: (a[..., None, :] @ b)[..., 0, :]
_TABLES = ((GENERAL, 0), (UNARY, 1), (BINARY, 2))
FOLDS: dict[tuple[Any, str], Any] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
}

_POLYNOMIAL = "a polynomial activation is written with * and **, for example x**2 or a*x**2 + b*x"
_HINTS = {
    "cbrt hypot": "of roots, np.sqrt is supported",
    "absolute fabs abs sign tan log log2 arctan": _POLYNOMIAL,
    "maximum minimum fmax fmin clip": "relu is not a polynomial; " + _POLYNOMIAL,
    "sin cos": "make sine and cosine two weights, or rotate by constant angles with math.cos",
    "sinh cosh exp2 expm1": "write it with np.exp, or use a polynomial activation",
    "linalg.inv linalg.solve linalg.pinv": "make the inverse a weight of the network",
    "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.svd linalg.qr linalg.cholesky":
        "make the factors weights of the network, and multiply them",
    "linalg.slogdet": "np.linalg.det is a polynomial; its logarithm is not",
    "polymul": "np.convolve multiplies polynomials",
    "fft.fft fft.ifft fft.rfft imag": "complex numbers are two real ones; use constant matrices of math.cos and math.sin",
    "sort argsort argmax argmin min amin median unique partition ptp": "a comparison of recorded values is not polynomial",
    "less greater equal not_equal less_equal greater_equal array_equal allclose":
        "compare shapes and constants only; use np.where with a constant mask",
}  # fmt: skip
_HINT = {name: hint for names, hint in _HINTS.items() for name in names.split()}
_SUPPORTED = (
    "+ - * / @ **, indexing, sum, mean, prod, einsum, dot, tensordot, inner, outer, kron, trace, reshape, transpose, "
    "concatenate, stack, where with a constant mask, triu, tril, diag, roll, sqrt, exp and softmax are supported"
)


def refusal(name: str) -> NotPolynomialError:
    """Make the error for a function of NumPy that cannot be recorded, with what to write instead."""
    return not_polynomial(f"np.{name} cannot be recorded; {_HINT.get(name, _SUPPORTED)}")
