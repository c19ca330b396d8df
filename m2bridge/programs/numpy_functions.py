"""NumPy's functions on recorded arrays: the table of those that can be recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.programs import numpy_axes as axes
from m2bridge.programs import numpy_products as products
from m2bridge.programs.recorded import as_recorded
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.ufuncs import refusal


def called(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy makes of recorded arrays."""
    if function in FUNCTIONS:
        return FUNCTIONS[function](recorder, *args, **kwargs)
    module = getattr(function, "__module__", None) or "numpy"
    raise refusal(f"linalg.{function.__name__}" if "linalg" in module else function.__name__)


def _method(name: str) -> Callable[..., Any]:
    """A function that is a method of the array as well."""
    return lambda recorder, array, *args, **kwargs: getattr(as_recorded(recorder, array), name)(
        *args, **kwargs
    )


def _moving(function: Any) -> Callable[..., Any]:
    """A function that only moves entries around."""
    return lambda recorder, array, *args, **kwargs: as_recorded(recorder, array).moved(
        function, *args, **kwargs
    )


def _permuting(function: Any) -> Callable[..., Any]:
    """A function that permutes the axes."""
    return lambda recorder, array, *args, **kwargs: as_recorded(recorder, array).permuted(
        function, *args, **kwargs
    )


def _reshape(
    recorder: Recorder, array: Any, shape: Any = None, order: str = "C", *, newshape: Any = None
) -> Any:
    return as_recorded(recorder, array).reshape(shape if shape is not None else newshape, order=order)


_METHODS = (
    np.sum, np.mean, np.prod, np.trace, np.max, np.ravel, np.copy, np.squeeze, np.diagonal, np.swapaxes,
)  # fmt: skip
_MOVING = (
    np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, np.flip, np.fliplr, np.flipud, np.expand_dims, np.split,
    np.array_split, np.vsplit, np.hsplit, np.dsplit, sliding_window_view,
)  # fmt: skip
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{function: _method(function.__name__) for function in _METHODS},
    **{function: _moving(function) for function in _MOVING},
    **{function: _permuting(function) for function in (np.transpose, np.moveaxis, np.rollaxis)},
    **{function: axes.triangle(function) for function in (np.triu, np.tril)},
    **{function: axes.at_least(function) for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.amax: _method("max"),
    np.reshape: _reshape,
    np.einsum: products.einsum,
    np.dot: products.dot,
    np.vdot: lambda r, a, b: products.dot(r, as_recorded(r, a).ravel(), as_recorded(r, b).ravel()),
    np.inner: products.inner,
    np.outer: products.outer,
    np.tensordot: products.tensordot,
    np.kron: products.kron,
    np.convolve: products.convolve,
    np.correlate: products.correlate,
    np.linalg.matrix_power: products.matrix_power,
    np.linalg.multi_dot: lambda r, arrays: reduce(lambda x, y: x @ y, [as_recorded(r, a) for a in arrays]),
    np.cumsum: products.cumsum,
    np.cumprod: products.cumprod,
    np.diff: products.diff,
    np.polyval: products.polyval,
    np.vander: products.vander,
    np.broadcast_to: axes.broadcast_to,
    np.concatenate: axes.concatenate,
    np.stack: axes.stack,
    np.append: axes.append,
    np.block: axes.block,
    np.vstack: axes.joined(axes.at_least(np.atleast_2d), lambda _: 0),
    np.hstack: axes.joined(axes.at_least(np.atleast_1d), lambda n: min(n - 1, 1)),
    np.dstack: axes.joined(axes.at_least(np.atleast_3d), lambda _: 2),
    np.column_stack: axes.joined(axes.column, lambda _: 1),
    np.where: axes.where,
    np.diag: axes.diag,
    np.pad: axes.pad,
    np.zeros_like: axes.filled(0),
    np.empty_like: axes.filled(0),
    np.ones_like: axes.filled(1),
    np.full_like: axes.full_like,
    np.shape: lambda r, a: as_recorded(r, a).shape,
    np.ndim: lambda r, a: as_recorded(r, a).ndim,
    np.size: lambda r, a, axis=None: np.size(np.broadcast_to(0, as_recorded(r, a).shape), axis),
}
if hasattr(np, "matrix_transpose"):  # since NumPy 2
    FUNCTIONS[np.matrix_transpose] = lambda r, a: as_recorded(r, a).mT
    FUNCTIONS[np.linalg.trace] = lambda r, a, offset=0: as_recorded(r, a).trace(offset, -2, -1)
    FUNCTIONS[np.linalg.matmul] = lambda r, a, b: as_recorded(r, a) @ as_recorded(r, b)
