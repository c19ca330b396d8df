"""NumPy's functions on recorded arrays: the table of those that can be recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from m2bridge.programs import numpy_axes as axes
from m2bridge.programs import numpy_products as products
from m2bridge.programs.einsum_text import einsum
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


def _reshape(
    recorder: Recorder, array: Any, shape: Any = None, order: str = "C", *, newshape: Any = None
) -> Any:
    return as_recorded(recorder, array).reshape(shape if shape is not None else newshape, order=order)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.einsum: einsum,
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
    np.sum: _method("sum"),
    np.mean: _method("mean"),
    np.prod: _method("prod"),
    np.trace: _method("trace"),
    np.max: _method("max"),
    np.amax: _method("max"),
    np.cumsum: products.cumsum,
    np.cumprod: products.cumprod,
    np.diff: products.diff,
    np.polyval: products.polyval,
    np.vander: products.vander,
    np.reshape: _reshape,
    np.ravel: _method("ravel"),
    np.copy: _method("copy"),
    np.transpose: lambda r, a, axes=None: as_recorded(r, a).transpose(axes),
    np.swapaxes: _method("swapaxes"),
    np.squeeze: _method("squeeze"),
    np.diagonal: _method("diagonal"),
    np.moveaxis: axes.moveaxis,
    np.expand_dims: axes.expand_dims,
    np.broadcast_to: axes.broadcast_to,
    np.concatenate: axes.concatenate,
    np.stack: axes.stack,
    np.append: axes.append,
    np.block: axes.block,
    np.vstack: axes.joined(axes.at_least(2), lambda _: 0),
    np.hstack: axes.joined(axes.at_least(1), lambda n: min(n - 1, 1)),
    np.dstack: axes.joined(axes.at_least(3), lambda _: 2),
    np.column_stack: axes.joined(axes.column, lambda _: 1),
    np.atleast_1d: axes.at_least(1),
    np.atleast_2d: axes.at_least(2),
    np.atleast_3d: axes.at_least(3),
    np.split: axes.split(np.split),
    np.array_split: axes.split(np.array_split),
    np.vsplit: axes.split(np.split, 0),
    np.hsplit: axes.split(np.split, 1),
    np.where: axes.where,
    np.triu: axes.triangle(True),
    np.tril: axes.triangle(False),
    np.diag: axes.diag,
    np.pad: axes.pad,
    np.flip: axes.flip,
    np.fliplr: lambda r, a: axes.flip(r, a, 1),
    np.flipud: lambda r, a: axes.flip(r, a, 0),
    np.zeros_like: axes.filled(0),
    np.empty_like: axes.filled(0),
    np.ones_like: axes.filled(1),
    np.full_like: axes.full_like,
    np.shape: lambda r, a: as_recorded(r, a).shape,
    np.ndim: lambda r, a: as_recorded(r, a).ndim,
    np.size: lambda r, a, axis=None: (
        prod(as_recorded(r, a).shape) if axis is None else as_recorded(r, a).shape[axis]
    ),
    **{
        f: axes.moved(f)
        for f in (np.roll, np.repeat, np.tile, np.rot90, np.take, np.delete, sliding_window_view)
    },
}
if hasattr(np, "matrix_transpose"):  # since NumPy 2
    FUNCTIONS[np.matrix_transpose] = lambda r, a: as_recorded(r, a).mT
    FUNCTIONS[np.linalg.trace] = lambda r, a, offset=0: as_recorded(r, a).trace(offset, -2, -1)
    FUNCTIONS[np.linalg.matmul] = lambda r, a, b: as_recorded(r, a) @ as_recorded(r, b)
