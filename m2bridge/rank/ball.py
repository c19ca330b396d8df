"""Rank stage: a proof that the Jacobian of a softmax network has full column rank at a dyadic point. Sizes and a seed
enter, a :class:`BallProof` leaves, or None when no precision sufficed.

At a point whose coordinates are dyadic rationals the Jacobian is enclosed in balls. A float64 approximate left inverse C
turns it into a matrix C T close to the identity; when every row of |I - C T| is proved to sum to less than 1, C T is
invertible and T has full column rank, so that a minor of that size is not zero. The rank of an analytic map at one
point is a lower bound of its generic rank.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import InputError
from m2bridge.linear.balls import Ball, BallRing, Floats, gamma, outward
from m2bridge.rank.arbs import ArbRing, from_dyadic, precision, to_ball
from m2bridge.rank.attention import Plan, plan
from m2bridge.rank.block import assemble, lay_out
from m2bridge.rank.rings import FloatRing
from m2bridge.rank.slices import AttentionSlice

BITS = 20
"""Weights and inputs are integers divided by 2^20."""
_LARGEST_QR = 1500
_WIDEST = 1e-4
"""Balls wider than this, in a matrix with rows and columns of norm 1, are not worth an inverse."""
FLOAT_BITS = 53

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DyadicPoint:
    """Weights on the slice and inputs, all as integers to be divided by 2^`bits`."""

    layers: tuple[tuple[NDArray[np.int64], ...], ...]
    inputs: NDArray[np.int64]
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BallProof:
    """Full column rank of a matrix of derivatives, proved with balls.

    Attributes
    ----------
    rank: the proved lower bound of the dimension: d_l d_(l-1) + number of `columns`.
    columns: the free weights (without the last V), in the order of the slice, that the minor uses.
    residual: the proved bound of the largest row sum of |I - C T|, below 1.
    precision: bits of the midpoints.
    """

    rank: int
    columns: tuple[int, ...]
    residual: float
    precision: int
    samples: int
    outputs: int
    seed: int
    bits: int
    seconds: float


def draw_dyadic(shape: AttentionSlice, samples: int, seed: int, bits: int = BITS) -> DyadicPoint:
    """A random dyadic point at which the network is well conditioned.

    Tokens that attend alike become equal and then tell nothing about later layers. So keys and queries are drawn close
    to each other (a token attends to tokens like itself), queries are scaled until scores spread by a few units,
    and of many inputs those are kept whose tokens stay apart through all layers. Any choice is allowed: the proof is
    about one point, whichever it is.
    """
    rng = np.random.default_rng([seed, 4])
    one = 1 << bits
    ring = FloatRing()
    spread_wanted, noise, candidates = _how_to_draw(shape.depth)
    pool = _rounded(rng.normal(size=(samples * candidates, shape.widths[0], shape.tokens)), bits)
    x = pool / one
    apart = np.full(len(pool), np.inf)
    layers: list[tuple[NDArray[np.int64], ...]] = []
    for k, masks in enumerate(shape.masks):
        key, value = (rng.normal(size=mask.shape) / np.sqrt(mask.shape[1]) for mask in masks[1:])
        if k == shape.depth - 1 and shape.widths[-1] >= shape.widths[-2]:
            value = np.eye(*masks[2].shape)
        rounded = (np.zeros(masks[0].shape, dtype=np.int64), _rounded(key, bits), _rounded(value, bits))
        placed = shape.place_layer(k, rounded, one)
        key, value = placed[1] / one, placed[2] / one
        query = key + noise * rng.normal(size=key.shape) * np.linalg.norm(key) / np.sqrt(key.size)
        scores = ring.matmul(ring.transpose(key @ x), query @ x)
        centred = scores[np.argsort(-apart)[:samples]]
        spread = float((centred - centred.mean(axis=-2, keepdims=True)).std())
        factor = spread_wanted / spread if spread > 0 else 1.0
        rounded_query = _rounded(query * factor, bits)
        layers.append((rounded_query, placed[1], placed[2]))
        scores = ring.matmul(ring.transpose(key @ x), (rounded_query / one) @ x)
        x = value @ ring.matmul(x, ring.softmax(scores))
        apart = np.minimum(apart, _apart(x))
    kept = np.sort(np.argsort(-apart, kind="stable")[:samples])
    return DyadicPoint(layers=tuple(layers), inputs=pool[kept], bits=bits)


def _how_to_draw(depth: int) -> tuple[float, float, int]:
    """Spread of the scores, distance of queries from keys, candidates for each sample: what works, found by trying."""
    if depth <= 2:
        return 2.0, 0.3, 4
    return (4.0, 0.3, 16) if depth <= 8 else (8.0, 0.1, 48)


def _precisions(depth: int) -> tuple[int, ...]:
    """Bits to try in turn: every layer costs about 20 of them."""
    if depth <= 3:
        return FLOAT_BITS, 128, 256
    return (128, 256) if depth <= 7 else (256, 512)


def _apart(x: Floats) -> Floats:
    """How far from degenerate the tokens of each sample are: the least non-trivial eigenvalue of their scatter."""
    if x.shape[-1] == 1:
        return np.ones(len(x))
    centred = x - x.mean(axis=-1, keepdims=True)
    values = np.linalg.eigvalsh(np.swapaxes(centred, -1, -2) @ centred)
    return np.asarray(values[:, max(1, x.shape[-1] - x.shape[-2])])


def prove_rank(
    shape: AttentionSlice,
    *,
    columns: tuple[int, ...] | None = None,
    seed: int = 0,
    samples: int | None = None,
    most_operations: float = 3e8,
    report: Report | None = None,
) -> BallProof | None:
    """Prove that the chosen columns and those of the last V are independent at a dyadic point.

    Parameters
    ----------
    shape
        Sizes of a softmax network with d_l >= d_(l-1).
    columns
        Which free weights to use (all unless given), see :class:`BallProof`.
    most_operations
        How many operations of higher precision may be spent when 53 bits do not suffice; 10^8 take about 20 s.

    Returns
    -------
    BallProof or None
        None when the enclosure was too wide: nothing is then known about the rank.
    """
    if not shape.softmax:
        raise InputError("balls are for softmax networks; a polynomial network is decided exactly")
    start = time.perf_counter()
    current = plan(shape, samples=samples)
    if samples is None:
        more = 1.15 if shape.depth <= 2 else 2.0 if shape.depth <= 8 else 2.5
        current = plan(shape, samples=math.ceil(more * current.samples))
    chosen = tuple(range(shape.inner_count)) if columns is None else columns
    point = draw_dyadic(shape, current.samples, seed)
    residual, bits = float("inf"), FLOAT_BITS
    for bits in _precisions(shape.depth):
        if bits > FLOAT_BITS and _arb_operations(shape, current) > most_operations:
            return None
        if report:
            width = len(chosen) + current.outputs * shape.widths[-2]
            report(f"balls of {bits} bits: {width} columns, {current.samples} samples")
        try:
            residual = full_rank_residual(enclosure(shape, point, current.outputs, chosen, bits))
        except (ArithmeticError, np.linalg.LinAlgError):
            continue
        if residual < 1:
            break
    if not residual < 1:
        return None
    return BallProof(
        rank=shape.widths[-1] * shape.widths[-2] + len(chosen),
        columns=chosen,
        residual=residual,
        precision=bits,
        samples=current.samples,
        outputs=current.outputs,
        seed=seed,
        bits=point.bits,
        seconds=time.perf_counter() - start,
    )


def enclosure(
    shape: AttentionSlice, point: DyadicPoint, outputs: int, columns: tuple[int, ...], bits: int = 53
) -> Ball:
    """Balls around the block of :mod:`m2bridge.rank.block` at a dyadic point."""
    one = 1 << point.bits
    if bits == FLOAT_BITS:
        blocks, z = assemble(
            shape, BallRing(), lambda n: Ball.exact(n / one), point.layers, point.inputs, outputs, one
        )
    else:
        with precision(bits):
            found, tokens = _arb_parts(shape, point, outputs)
            blocks, z = [to_ball(block) for block in found], to_ball(tokens)
    return Ball(
        lay_out(shape, [b.mid for b in blocks], z.mid, outputs, columns),
        lay_out(shape, [b.rad for b in blocks], z.rad, outputs, columns),
    )


def _arb_parts(shape: AttentionSlice, point: DyadicPoint, outputs: int) -> tuple[list[Any], Any]:
    def number(numerators: NDArray[np.int64]) -> Any:
        return from_dyadic(numerators, point.bits)

    return assemble(shape, ArbRing(), number, point.layers, point.inputs, outputs, 1 << point.bits)


def minor_determinant(
    shape: AttentionSlice, point: DyadicPoint, outputs: int, columns: tuple[int, ...], rows: list[int]
) -> tuple[int, int]:
    """A minor of the block as (m, e), the determinant being m 2^e to 60 bits; for certificates."""
    for bits in (256, 512, 1024):
        with precision(bits):
            blocks, z = _arb_parts(shape, point, outputs)
            matrix = lay_out(shape, blocks, z, outputs, columns)[rows]
            value = flint.arb_mat([[flint.arb(x) for x in row] for row in matrix.tolist()]).det()
            if value.rel_accuracy_bits() >= 70:
                mantissa, exponent = value.mid().man_exp()
                shift = max(0, int(mantissa).bit_length() - 60)
                return int(mantissa) >> shift, int(exponent) + shift
    raise ArithmeticError("the determinant could not be enclosed")


def full_rank_residual(matrix: Ball) -> float:
    """A proved bound of the largest row sum of |I - C T| for every T in `matrix`; below 1 it proves full column rank."""
    mid, rad = _scaled(matrix)
    rows, columns = mid.shape
    if rows < columns or not np.isfinite(rad).all() or rad.max(initial=0.0) > _WIDEST:
        return float("inf")
    inverse = _left_inverse(mid)
    product = inverse @ mid
    product[np.arange(columns), np.arange(columns)] -= 1.0
    np.abs(product, out=product)
    sums = product.sum(axis=1) * (1 + 4 * gamma(columns)) + 4 * np.finfo(float).eps
    # error of the product and of the enclosure: |C| (gamma |T| + rad) e
    weight = outward((gamma(rows) * np.abs(mid) + rad).sum(axis=1), columns + 4)
    sums = sums + outward(np.abs(inverse) @ weight, rows + 4)
    worst = float(sums.max() * (1 + 2.0**-40))
    return worst if np.isfinite(worst) else float("inf")


def _arb_operations(shape: AttentionSlice, current: Plan) -> float:
    """About how many ball operations a backward pass takes."""
    t = shape.tokens
    layers = zip(shape.effective_ranks, shape.widths[:-1], strict=True)
    return float(
        current.samples * current.outputs * t * sum(2 * d * t * t + 6 * a * d * t for a, d in layers)
    )


def _left_inverse(mid: Floats) -> Floats:
    rows, columns = mid.shape
    if columns <= _LARGEST_QR or rows == columns:
        if rows == columns:
            return np.asarray(np.linalg.inv(mid))
        q, r = np.linalg.qr(mid)
        return np.asarray(np.linalg.solve(r, q.T))
    # normal equations of a well scaled matrix, then one Newton step: two products are cheaper than a QR
    guess = np.linalg.inv(mid.T @ mid) @ mid.T
    return np.asarray(guess + (np.eye(columns) - guess @ mid) @ guess)


def _scaled(matrix: Ball) -> tuple[Floats, Floats]:
    """Rows and columns scaled by powers of two, which is exact."""
    mid, rad = matrix.mid.copy(), matrix.rad.copy()
    for axis in (1, 0):
        norms = np.linalg.norm(mid, axis=axis, keepdims=True)
        factor = 2.0 ** -np.round(np.log2(np.where(norms > 0, norms, 1.0)))
        mid *= factor
        rad *= factor
    return mid, rad


def _rounded(array: Floats, bits: int) -> NDArray[np.int64]:
    return np.asarray(np.rint(array * (1 << bits)), dtype=np.int64)
