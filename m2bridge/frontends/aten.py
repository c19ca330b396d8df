"""The operations of PyTorch as functions of arrays, by their names in ATen.

The arrays are recorded ones and constant NumPy arrays; this module needs no PyTorch. Operations in :data:`MOVING` and
:data:`PLACING` only move entries: PyTorch itself moves the numbers of their positions. What is in :data:`REFUSED` is neither
polynomial nor built from exp and division; the message names an alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, pi, prod, sqrt
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.frontends.recording import Recorded

Array = Any
"""A recorded array or a constant one."""


@dataclass(frozen=True, slots=True)
class Masked:
    """Scores of which some are -infinity, as before a softmax: the finite scores, and a mask of these."""

    scores: Array
    kept: np.ndarray


def _add(a: Array, b: Array, alpha: float = 1) -> Array:
    for scores, other in ((a, b), (b, a)):
        if isinstance(scores, Masked):
            return Masked(scores.scores + other, scores.kept)
        if type(other) is np.ndarray and np.isneginf(other).any():
            masked = np.isneginf(other)
            return Masked(scores + np.where(masked, 0, other), ~masked)
    return a + b * alpha


def _scaled(operation: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Make a product or quotient; masked scores may be scaled by positive numbers, which leave -infinity as it is."""

    def scaled(a: Array, b: Array, rounding_mode: str | None = None) -> Array:
        if rounding_mode is not None:
            raise NotPolynomialError(
                "a division that rounds is not a polynomial; divide without rounding_mode"
            )
        if isinstance(b, Masked) and not isinstance(a, Masked):
            a, b = b, a
        if not isinstance(a, Masked):
            return operation(a, b)
        if isinstance(b, (Masked, Recorded)) or not np.all(np.asarray(b) > 0):
            raise NotPolynomialError(
                "-infinity is supported only before a softmax, scaled by positive numbers"
            )
        return Masked(operation(a.scores, b), a.kept)

    return scaled


def _power(a: Array, exponent: Any) -> Array:
    if isinstance(exponent, float) and 2 * exponent != int(2 * exponent):
        raise NotPolynomialError(
            f"the power {exponent} is not supported; use an integer exponent, or half of one"
        )
    negative = isinstance(exponent, (int, float)) and exponent < 0
    return 1 / a**-exponent if negative else a**exponent


def _where(mask: Array, yes: Array, no: Array) -> Array:
    for keep, chosen, other in ((mask, yes, no), (~mask, no, yes)):
        if type(other) is np.ndarray and np.isneginf(other).any():
            bias = np.where(np.isneginf(other), 0, other)
            shape = np.broadcast_shapes(chosen.shape, mask.shape, other.shape)
            kept = np.broadcast_to(keep | ~np.isneginf(other), shape)
            scores = np.where(keep, chosen, bias) if (kept & ~keep).any() else np.broadcast_to(chosen, shape)
            return Masked(scores, kept)
    return np.where(mask, yes, no)


def _reduced(name: str) -> Callable[..., Array]:
    """Make a sum, mean or product along axes."""

    def reduced(a: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
        axes = None if dim is None or dim == [] else tuple(dim) if isinstance(dim, Sequence) else dim
        return getattr(a, name)(axes, keepdims=keepdim)

    return reduced


def _variance(
    a: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: Any = None
) -> Array:
    ddof = int(unbiased) if correction is None else correction
    return np.var(a, axis=None if dim is None else tuple(dim), ddof=ddof, keepdims=keepdim)


def _vector_norm(a: Array, order: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
    if order != 2:
        raise NotPolynomialError(f"the norm of order {order} is not supported; use the Euclidean norm")
    return np.sqrt(_reduced("sum")(a**2, dim, keepdim))


def _layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5, *_: Any
) -> Array:  # fmt: skip
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return _rms_norm(x - x.mean(axes, keepdims=True), shape, weight, eps) + (0 if bias is None else bias)


def _rms_norm(x: Array, shape: Sequence[int], weight: Array | None = None, eps: float | None = None) -> Array:
    """Divide by the root of the mean square; without `eps` it is that of float64, in which the module is read."""
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    added = Fraction(float(np.finfo(np.float64).eps) if eps is None else eps)
    y = x / np.sqrt((x**2).mean(axes, keepdims=True) + added)
    return y if weight is None else y * weight


def _group_norm(
    x: Array, groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5, *_: Any
) -> Array:  # fmt: skip
    parts = x.reshape(x.shape[0], groups, -1)
    y = _layer_norm(parts, parts.shape[2:], eps=eps).reshape(x.shape)
    column = (-1, *(1,) * (x.ndim - 2))
    return _biased(y if weight is None else y * weight.reshape(column), bias, column)


def _biased(y: Array, bias: Array | None, shape: tuple[int, ...] = (-1,)) -> Array:
    return y if bias is None else y + bias.reshape(shape)


def _expand(a: Array, sizes: Sequence[int], **_: Any) -> Array:
    old = (1,) * (len(sizes) - a.ndim) + tuple(a.shape)
    return np.broadcast_to(a, tuple(o if s == -1 else s for s, o in zip(sizes, old, strict=True)))


def _pad(a: Array, pad: Sequence[int], value: float = 0) -> Array:
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    widths = [(0, 0)] * (a.ndim - len(pairs)) + pairs
    if any(n < 0 for pair in widths for n in pair):
        raise NotPolynomialError("padding by a negative number is not supported; use a slice")
    return np.pad(a, widths, constant_values=value)


def _exp_of(a: Array) -> Array:
    return np.exp(a.scores) * a.kept if isinstance(a, Masked) else np.exp(a)


def _softmax(a: Array, dim: int, *_: Any, **__: Any) -> Array:
    if isinstance(a, Masked) and not np.broadcast_to(a.kept, a.scores.shape).any(axis=dim).all():
        raise NotPolynomialError(
            "a softmax of scores that are all masked has no value; leave one unmasked in each row"
        )
    e = _exp_of(a)
    return e / e.sum(dim, keepdims=True)


def _sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def _max(a: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """Take the largest entries, which cancel in a softmax; as in PyTorch a tuple with an axis, but without the indices."""
    return np.max(a) if dim is None else (_amax(a, dim, keepdim),)


def _amax(a: Array, dim: Any = (), keepdim: bool = False) -> Array:
    axes = None if dim in ((), []) else tuple(dim) if isinstance(dim, Sequence) else dim
    return np.max(a, axis=axes, keepdims=keepdim)


def _gelu(a: Array, approximate: str = "none") -> Array:
    """Compute x (1 + tanh z) / 2 = x sigmoid(2 z) for z = sqrt(2 / pi) (x + 0.044715 x^3), with the numbers of PyTorch's code."""
    if approximate != "tanh":
        raise NotPolynomialError(
            "gelu with the error function cannot be recorded; use nn.GELU(approximate='tanh'), which is analytic, or x**2"
        )
    return a * _sigmoid((a + a**3 * 0.044715) * (2 * sqrt(2 / pi)))


def _repeated_heads(a: Array, times: int) -> Array:
    """Repeat each head, in blocks; a reshape shows to which head a query belongs."""
    *outer, heads, tokens, width = a.shape
    repeated = np.broadcast_to(a[..., None, :, :], (*outer, heads, times, tokens, width))
    return repeated.reshape(*outer, heads * times, tokens, width)


def _attention(  # noqa: PLR0913 -- the arguments that PyTorch's operator has
    q: Array, k: Array, v: Array, attn_mask: Array | None = None, dropout_p: float = 0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> Array:  # fmt: skip
    """Compute softmax(q k^T / sqrt(width)) v, with masks; the root is exact if it is rational."""
    if dropout_p:
        raise NotPolynomialError(f"dropout with probability {dropout_p} is random; set dropout_p=0.0")
    if enable_gqa:
        k, v = (_repeated_heads(a, q.shape[-3] // a.shape[-3]) for a in (k, v))
    width, root = q.shape[-1], isqrt(q.shape[-1])
    exact = Fraction(1, root) if root**2 == width else 1 / sqrt(width)
    scores = q @ k.swapaxes(-1, -2) * (exact if scale is None else scale)
    if is_causal:
        scores = Masked(scores, np.tril(np.ones(scores.shape[-2:], dtype=bool)))
    elif attn_mask is not None and getattr(attn_mask, "dtype", None) == np.bool_:
        scores = Masked(scores, attn_mask)
    elif attn_mask is not None:
        scores = _add(scores, attn_mask)
    return _softmax(scores, -1) @ v


def _windows(
    x: Array, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Array:
    """Take the parts of an image under a moving window: axes of `x`, the last ones being positions, then axes of the window."""
    n, lead = len(kernel), x.ndim - len(kernel)
    if any(padding):
        x = np.pad(x, [(0, 0)] * lead + [(p, p) for p in padding])
    keys = []
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        count = (x.shape[lead + axis] - d * (k - 1) - 1) // s + 1
        index = s * np.arange(count)[:, None] + d * np.arange(k)[None, :]
        shape = [1] * (2 * n)
        shape[axis], shape[n + axis] = index.shape
        keys.append(index.reshape(shape))
    return x[(slice(None),) * lead + tuple(keys)]


def _convolution(  # noqa: PLR0913 -- the arguments that PyTorch's operator has
    x: Array, weight: Array, bias: Array | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, _output_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    if transposed:
        raise NotPolynomialError(
            "a transposed convolution is not supported; write it as a matrix, or pad and use conv"
        )
    n = weight.ndim - 2
    batched = x if x.ndim == n + 2 else x[None]
    seen = _windows(batched, weight.shape[2:], stride, padding, dilation)
    positions, window = "XYZ"[:n], "klm"[:n]
    out = seen.shape[2 : 2 + n]
    if groups == 1:
        y = np.einsum(f"bc{positions}{window},oc{window}->bo{positions}", seen, weight)
    else:
        parts = seen.reshape(seen.shape[0], groups, -1, *seen.shape[2:])
        filters = weight.reshape(groups, -1, *weight.shape[1:])
        y = np.einsum(f"bgc{positions}{window},goc{window}->bgo{positions}", parts, filters)
        y = y.reshape(seen.shape[0], weight.shape[0], *out)
    y = _biased(y, bias, (-1, *(1,) * n))
    return y if x.ndim == n + 2 else y[0]


def _avg_pool2d(
    x: Array, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    if ceil_mode or (any(padding) and not count_include_pad):
        raise NotPolynomialError(
            "average pooling is supported with ceil_mode=False and count_include_pad=True"
        )
    kernel, padding = list(kernel) * (3 - len(kernel)), list(padding) * (3 - len(padding))
    step = list(stride) * (3 - len(stride)) if stride else kernel
    seen = _windows(x, kernel, step, padding, (1, 1))
    return seen.sum((-2, -1)) * Fraction(1, divisor_override or prod(kernel))


def _batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, _: float, eps: float
) -> tuple[Array, ...]:
    """Normalise a batch in evaluation mode, which is affine: mean and variance are constants."""
    column = (-1, *(1,) * (x.ndim - 2))
    y = (x - mean.reshape(column)) * (1 / np.sqrt(variance + eps)).reshape(column)
    y = y if weight is None else y * weight.reshape(column)
    return (_biased(y, bias, column),)


# -- operations that only move entries ----------------------------------------------------------------------


MOVING = (
    "select", "slice", "squeeze", "unsqueeze", "split_with_sizes", "unbind", "roll", "index", "index_select", "diagonal",
    "repeat", "unfold", "gather",
)  # fmt: skip
"""Operations that move the entries of their first argument."""
PLACING = {"slice_scatter": 1, "select_scatter": 1, "index_put": 2, "scatter": 3}
"""Operations that put entries of one array into the first one, and which argument it is."""
Moves = Callable[[dict[int, np.ndarray]], Any]
"""The operation with other arrays for some of its arguments, by their positions."""


def _placed(a: Array, b: Array, argument: int, moves: Moves) -> Array:
    """Put entries of `b`, an argument of the operation, into `a`: the entries of both are numbered one after the other."""
    of_a, of_b = np.split(np.arange(prod(a.shape) + prod(b.shape)), [prod(a.shape)])
    moved = moves({0: of_a.reshape(a.shape), argument: of_b.reshape(b.shape)})
    return np.concatenate([a.reshape(-1), b.reshape(-1)])[moved]


REARRANGING: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), lambda a, shape: a.reshape(tuple(shape))),
    "permute": lambda a, dims: a.transpose(tuple(dims)),
    "transpose": lambda a, i, j: a.swapaxes(i, j),
    "t": lambda a: a.T,
    "flip": lambda a, dims: np.flip(a, tuple(dims)),
    "expand": _expand,
    **dict.fromkeys(("clone", "alias", "detach", "lift_fresh_copy", "_to_copy"), lambda a, *_, **__: a),
}  # fmt: skip
"""Operations on whole axes; they keep what is masked masked, as those in MOVING do."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    **REARRANGING,
    "add": _add,
    "sub": lambda a, b, alpha=1: _add(a, -b * alpha),
    "rsub": lambda a, b, alpha=1: b - a * alpha,
    "mul": _scaled(lambda a, b: a * b),
    "div": _scaled(lambda a, b: a / b),
    "neg": lambda a: -a,
    "reciprocal": lambda a: 1 / a,
    "square": lambda a: a**2,
    "pow": _power,
    **{name: _reduced(name) for name in ("sum", "mean", "prod")},
    "var": _variance,
    "std": lambda a, *args, **kwargs: np.sqrt(_variance(a, *args, **kwargs)),
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "linalg_vector_norm": _vector_norm,
    "layer_norm": _layer_norm,
    "native_layer_norm": lambda *args: (_layer_norm(*args),),
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "cumsum": lambda a, dim, **_: np.cumsum(a, dim),
    "cumprod": lambda a, dim, **_: np.cumprod(a, dim),
    "_linalg_det": lambda a: (np.linalg.det(a),),
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "matmul"), lambda a, b: a @ b),
    "einsum": lambda text, arrays, **_: np.einsum(text.replace(" ", ""), *arrays),
    "linear": lambda x, weight, bias=None: _biased(x @ weight.T, bias),
    **dict.fromkeys(
        ("addmm", "baddbmm", "addmv"), lambda bias, x, y, beta=1, alpha=1: _add(x @ y * alpha, bias * beta)
    ),
    "lerp": lambda a, b, weight: a + (b - a) * weight,
    "addcmul": lambda a, b, c, value=1: a + b * c * value,
    "bilinear": lambda x, y, weight, bias=None: _biased(np.einsum("...i,oij,...j->...o", x, weight, y), bias),
    "cat": lambda arrays, dim=0: np.concatenate(list(arrays), axis=dim),
    "stack": lambda arrays, dim=0: np.stack(list(arrays), axis=dim),
    "embedding": lambda table, indices, *_: table[indices],
    "tril": lambda a, diagonal=0: np.tril(a, diagonal),
    "triu": lambda a, diagonal=0: np.triu(a, diagonal),
    "where": _where,
    "masked_fill": lambda a, mask, value: _where(mask, np.asarray(value), a),
    "constant_pad_nd": _pad,
    "copy": lambda old, new, *_: np.broadcast_to(new, old.shape),
    "exp": _exp_of,
    "sigmoid": _sigmoid,
    "tanh": lambda a: 1 - 2 / (1 + np.exp(2 * a)),
    "sinh": lambda a: (np.exp(a) - np.exp(-a)) * Fraction(1, 2),
    "cosh": lambda a: (np.exp(a) + np.exp(-a)) * Fraction(1, 2),
    "expm1": lambda a: np.exp(a) - 1,
    "max": _max,
    "amax": _amax,
    "silu": lambda a: a * _sigmoid(a),
    "gelu": _gelu,
    **dict.fromkeys(("softmax", "_softmax"), _softmax),
    "scaled_dot_product_attention": _attention,
    "convolution": _convolution,
    "avg_pool2d": _avg_pool2d,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "zeros_like": lambda a, **_: np.zeros(a.shape),
    "ones_like": lambda a, **_: np.ones(a.shape),
    "full_like": lambda a, value, **_: np.full(a.shape, float(value)),
}  # fmt: skip

_ACTIVATION = "use a polynomial, for instance x**2, or SiLU, GELU(approximate='tanh'), sigmoid or tanh, which are analytic"
_VALUES = "its result depends on a comparison of values; use a constant mask"
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("relu", "leaky_relu", "hardtanh", "clamp", "elu", "abs", "prelu", "hardsigmoid",
         "hardswish", "softplus", "erf", "_prelu_kernel", "mish", "log_sigmoid"), _ACTIVATION
    ),
    "clamp_min": "it is piecewise; for functional.normalize or cosine_similarity, divide by x.norm(dim=-1, keepdim=True)",
    **dict.fromkeys(("cdist", "_cdist_forward", "_euclidean_dist"),
                    "write the distances as (x[:, None] - y[None]).norm(dim=-1)"),
    "instance_norm": "write it as nn.GroupNorm with one channel in each group",
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool2d", "max_pool3d_with_indices", "adaptive_max_pool2d"),
                    "use average pooling, which is linear"),
    **dict.fromkeys(("native_dropout", "bernoulli", "rand", "randn", "rand_like", "randn_like", "rrelu_with_noise"),
                    "it is random; call module.eval() first"),
    **dict.fromkeys(("_native_batch_norm_legit_functional", "_native_batch_norm_legit"),
                    "in training mode it divides by the standard deviation of the batch; call module.eval() first"),
    **dict.fromkeys(("log", "log_softmax", "_log_softmax", "logsumexp", "log1p", "log2"),
                    "logarithms are not supported; return the scores or the softmax itself"),
    **dict.fromkeys(("inverse", "linalg_inv", "linalg_inv_ex", "linalg_pinv", "linalg_solve", "_linalg_solve_ex",
                     "linalg_solve_triangular"), "make the inverse a weight of the network, and multiply by it"),
    **dict.fromkeys(("linalg_eig", "linalg_eigvals", "linalg_eigh", "linalg_eigvalsh", "_linalg_eigh", "linalg_svd",
                     "linalg_svdvals", "_linalg_svd", "linalg_qr", "linalg_cholesky", "linalg_cholesky_ex"),
                    "make the factors weights of the network, and multiply them"),
    **dict.fromkeys(("logdet", "slogdet", "linalg_slogdet", "_linalg_slogdet"),
                    "torch.linalg.det is a polynomial; its logarithm is not"),
    **dict.fromkeys(("sin", "cos"), "sines and cosines of weights or inputs are not supported; keep them in a buffer"),
    **dict.fromkeys(("min", "amin", "maximum", "minimum", "sort", "topk", "argmax", "argmin", "gt", "lt",
                     "ge", "le", "eq", "ne", "sign", "round", "floor", "ceil", "_local_scalar_dense", "item"), _VALUES),
}  # fmt: skip
"""Operations that no recorded network has, with what to do instead."""


def applied(base: str, args: list[Any], kwargs: dict[str, Any], moves: Moves) -> Any:
    """Apply an operation to recorded arrays; `moves` is the operation of PyTorch."""
    if base in REFUSED:
        raise NotPolynomialError(f"{base} cannot be recorded; {REFUSED[base]}")
    if base not in OPERATIONS and base not in MOVING and base not in PLACING:
        raise NotPolynomialError(f"{base} is not a supported operation; write it with +, *, @, ** and sums")
    dtype = str(kwargs.get("dtype") or "torch.float64")
    if dtype not in ("torch.float64", "torch.double"):
        raise NotPolynomialError(
            f"a conversion to {dtype.removeprefix('torch.')} rounds values, which is not a polynomial; take it out of forward"
        )
    array, rest = args[0], args[1:]
    if base in MOVING:
        if not isinstance(array, Masked):
            return array.moved(lambda positions: moves({0: positions}))
        kept = np.ascontiguousarray(np.broadcast_to(array.kept, array.scores.shape))
        return Masked(array.scores.moved(lambda positions: moves({0: positions})), moves({0: kept}))
    if base in REARRANGING and isinstance(array, Masked):
        kept = np.broadcast_to(array.kept, array.scores.shape)
        return Masked(REARRANGING[base](array.scores, *rest), REARRANGING[base](kept, *rest))
    understood = ("add", "mul", "div", "exp", "softmax", "_softmax")
    if any(isinstance(item, Masked) for item in args) and base not in understood:
        raise NotPolynomialError(f"-infinity is supported only before a softmax, not in {base}")
    if base in PLACING:
        if base == "index_put" and True in (*args[3:], kwargs.get("accumulate")):
            raise NotPolynomialError(
                "index_put with accumulate=True is not supported; add with + and constant masks"
            )
        return _placed(array, args[PLACING[base]], PLACING[base], moves)
    return OPERATIONS[base](*args, **kwargs)
