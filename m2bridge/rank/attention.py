"""Rank stage: the Jacobian rank of deep attention networks with up to millions of weights. Sizes and a seed enter, an
:class:`AttentionRank` leaves.

What makes it fast, each step exact:

1. the gauge slice (:mod:`m2bridge.rank.slices`) leaves few columns;
2. the last V is eliminated by hand. The outputs are V Z with Z the last tokens, so that its columns are known, and with
   U the matrix of linear relations among the tokens, rank J = d_l rank(Z) + rank(dZ U);
3. a few output coordinates suffice (t of them, t - 1 for softmax): fewer rows can only lower the rank;
4. elimination modulo p < 2^23 in BLAS (:mod:`m2bridge.linear.modular`).

The number of samples grows until the rank meets the slice's upper bound or does not grow any more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import echelon_residues, eliminate_residues
from m2bridge.linear.residues import DEFAULT_PRIME, Field, Floats
from m2bridge.linear.stream import integers
from m2bridge.rank.backward import backward, forward
from m2bridge.rank.rings import FieldRing
from m2bridge.rank.slices import AttentionSlice

MEMORY_LIMIT = 6 * 2**30
_CHUNK_BYTES = 48 * 2**20
_GROWTHS = 2

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many samples and output coordinates a rank uses, and how much memory that needs."""

    samples: int
    outputs: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRank:
    """Rank of the network's Jacobian at one point of the slice.

    Attributes
    ----------
    rank: d_l * `token_rank` + `inner_rank`, a lower bound of the dimension (over F_p at an integer point; for softmax
        a heuristic, because exponentials are replaced by random units).
    upper_bound: the number of free entries of the slice.
    pivot_columns: the free weights (without the last V) whose columns are independent modulo those of the last V.
    pivot_rows: pairs (output row, token) that make a non-zero minor with them; tokens are counted through the samples.
    token_pivots: independent columns of Z, as many as `token_rank`.
    settled: whether the rank met the upper bound or did not grow with more samples.
    """

    rank: int
    upper_bound: int
    token_rank: int
    inner_rank: int
    pivot_columns: tuple[int, ...]
    pivot_rows: tuple[tuple[int, int], ...]
    token_pivots: tuple[int, ...]
    samples: int
    outputs: int
    p: int
    seed: int
    settled: bool
    heuristic: bool
    memory_bytes: int
    seconds: float


def plan(shape: AttentionSlice, *, samples: int | None = None, outputs: int | None = None) -> Plan:
    """The least number of samples that can reach the upper bound, and the memory that the elimination will need."""
    tokens, before = shape.tokens, shape.widths[-2]
    available = min(before, shape.widths[-1])
    if outputs is None:
        enough = max(1, tokens - 1 if shape.softmax else tokens)
        outputs = (
            available if tokens == 1 else min(available, enough)
        )  # one token: rows of V see different weights
    columns = shape.inner_count
    if samples is None:
        samples = _least_samples(shape, outputs)
    rows = samples * tokens * outputs
    largest = max(a * d for a, d in zip(shape.effective_ranks, shape.widths[:-1], strict=True))
    per_sample = 8 * outputs * tokens * (4 * max(shape.widths) * tokens + 2 * largest + columns)
    chunk = max(per_sample, min(_CHUNK_BYTES, samples * per_sample))
    passes = (
        8 * samples * tokens * (sum(shape.widths) + 2 * sum(shape.effective_ranks) + 2 * shape.depth * tokens)
    )
    memory = 8 * rows * columns + 2 * chunk + passes + 48 * 2**20
    return Plan(samples=samples, outputs=outputs, memory_bytes=memory)


def _least_samples(shape: AttentionSlice, outputs: int) -> int:
    """A guess of how many samples suffice; a wrong one costs time, never the answer.

    A sample shows at most outputs * t numbers. With ranks a < t in two lightning layers or more, all that later layers
    see of X_0 is X_0^T K_1^T and Q_1 X_0, so that a sample shows 2 a t - a^2 numbers, and a^2 to the later layers.
    """
    unknowns = shape.inner_count + outputs * shape.widths[-2]
    least = unknowns / (outputs * shape.tokens)
    rank = min(*shape.effective_ranks, shape.tokens)
    if not shape.softmax and shape.depth >= 2 and rank < shape.tokens:
        first = sum(int(mask.sum()) for mask in shape.masks[0])
        least = 1.2 * max(
            unknowns / (2 * rank * shape.tokens - rank**2), (shape.inner_count - first) / rank**2
        )
    return max(2, math.ceil(1.03 * least) + 2)


def draw(shape: AttentionSlice, p: int, seed: int) -> list[tuple[NDArray[np.int64], ...]]:
    """Weights of a random point of the slice, entries in 0..p-1; the last V is [I; 0] when it has that many rows.

    The numbers are stream (seed, 1) of :mod:`m2bridge.linear.stream`: Q_1, K_1, V_1, Q_2, ... row by row, entries that
    the slice fixes included and then overwritten.
    """
    sizes = [mask.shape for masks in shape.masks for mask in masks]
    numbers = integers(seed, 1, sum(rows * columns for rows, columns in sizes), p)
    parts = np.split(numbers, np.cumsum([rows * columns for rows, columns in sizes])[:-1])
    matrices = [part.reshape(size) for part, size in zip(parts, sizes, strict=True)]
    layers: list[tuple[NDArray[np.int64], ...]] = [
        tuple(matrices[k : k + 3]) for k in range(0, len(matrices), 3)
    ]
    after, before = shape.widths[-1], shape.widths[-2]
    if after >= before:
        layers[-1] = (*layers[-1][:2], np.eye(after, before, dtype=np.int64))
    return shape.place(layers)


def draw_inputs(shape: AttentionSlice, p: int, seed: int, samples: int) -> NDArray[np.int64]:
    """The first `samples` inputs of a seed, shape (samples, d_0, t): stream (seed, 2), row by row."""
    size = (samples, shape.widths[0], shape.tokens)
    return integers(seed, 2, math.prod(size), p).reshape(size)


def attention_rank(
    shape: AttentionSlice,
    *,
    p: int = DEFAULT_PRIME,
    seed: int = 0,
    memory_limit: int | None = MEMORY_LIMIT,
    report: Report | None = None,
) -> AttentionRank:
    """Rank of the Jacobian of a deep attention network at a random point over F_p.

    Parameters
    ----------
    shape
        Sizes of the network.
    p
        A prime below 2^23.
    memory_limit
        Bytes; a request that needs more is refused before it starts.
    report
        Called with a line of text at each stage.

    Raises
    ------
    OutOfReachError
        The elimination would need more memory than allowed; field `estimate` has the bytes.

    Examples
    --------
    >>> attention_rank(AttentionSlice(widths=(3, 3, 3), ranks=(2, 2), tokens=3, softmax=False)).rank
    23
    """
    start = time.perf_counter()
    field = Field(p)
    layers = [tuple(field.residues(w) for w in layer) for layer in draw(shape, p, seed)]
    current = plan(shape)
    available = min(shape.widths[-2], shape.widths[-1])
    best: _Pivots | None = None
    unchanged = 0
    while True:
        if memory_limit is not None and current.memory_bytes > memory_limit:
            if best is not None:
                break
            raise OutOfReachError(
                f"the rank needs {current.memory_bytes / 2**30:.1f} GB, more than the {memory_limit / 2**30:.1f} GB "
                "allowed; allow more with --memory",
                estimate=current.memory_bytes,
            )
        if report:
            report(
                f"rank over F_{p}: {shape.inner_count} columns, {current.samples} samples, "
                f"{current.memory_bytes / 2**20:.0f} MB"
            )
        found = _rank_once(shape, layers, field, seed, current)
        unchanged = unchanged + 1 if best is not None and _total(shape, found) <= _total(shape, best) else 0
        if best is None or _total(shape, found) > _total(shape, best):
            best, done = found, current
        if _total(shape, best) >= shape.free_count or unchanged >= _GROWTHS:
            break
        current = plan(
            shape, samples=math.ceil(1.5 * current.samples) + 1, outputs=min(available, 2 * current.outputs)
        )
    assert best is not None
    return AttentionRank(
        rank=_total(shape, best),
        upper_bound=shape.free_count,
        token_rank=len(best.tokens),
        inner_rank=len(best.columns),
        pivot_columns=best.columns,
        pivot_rows=best.rows,
        token_pivots=best.tokens,
        samples=done.samples,
        outputs=done.outputs,
        p=p,
        seed=seed,
        settled=_total(shape, best) >= shape.free_count or unchanged >= _GROWTHS,
        heuristic=shape.softmax,
        memory_bytes=done.memory_bytes,
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, slots=True)
class _Pivots:
    tokens: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]


def _total(shape: AttentionSlice, found: _Pivots) -> int:
    return shape.widths[-1] * len(found.tokens) + len(found.columns)


def _rank_once(
    shape: AttentionSlice, layers: list[tuple[Any, ...]], field: Field, seed: int, current: Plan
) -> _Pivots:
    """Independent tokens, and pivots of the rest modulo the columns of the last V."""
    ring = FieldRing(field, np.random.default_rng([seed, 3]) if shape.softmax else None)
    inputs = field.residues(draw_inputs(shape, field.p, seed, current.samples))
    triples = [(q, k, v) for q, k, v in layers]
    passed = forward(ring, triples, inputs, softmax=shape.softmax)
    tokens = passed[-1].tokens  # (N, d, t)
    token_matrix = np.ascontiguousarray(np.moveaxis(tokens, 1, 0).reshape(tokens.shape[1], -1))
    pivots, reduced = echelon_residues(token_matrix, field)
    free = np.setdiff1d(np.arange(token_matrix.shape[1]), pivots)
    relations = np.ascontiguousarray(reduced[:, free].T)
    matrix = np.empty((current.outputs, len(free), shape.inner_count))
    bound = np.empty((current.outputs, len(pivots), shape.inner_count))
    place = np.empty(token_matrix.shape[1], dtype=np.int64)
    place[free], place[pivots] = np.arange(len(free)), np.arange(len(pivots))
    is_pivot = np.zeros(token_matrix.shape[1], dtype=bool)
    is_pivot[pivots] = True
    if shape.inner_count == 0:  # the slice fixes all weights but V_l, as for tokens of width one
        return _Pivots(tuple(pivots), (), ())
    forms = _forms(shape, layers[-1][2], current.outputs)
    per_sample = 8 * forms.shape[0] * (4 * max(shape.widths) * shape.tokens + 3 * shape.inner_count)
    chunk = max(1, _CHUNK_BYTES // per_sample)
    for first in range(0, current.samples, chunk):
        window = slice(first, min(first + chunk, current.samples))
        part = [_window(layer, window) for layer in passed]
        count = window.stop - window.start
        adjoint = np.broadcast_to(forms, (count, *forms.shape))
        rows = np.concatenate(backward(ring, triples, part, adjoint, shape), axis=-1)
        rows = rows.reshape(count, current.outputs, shape.tokens, -1).swapaxes(0, 1)
        rows = rows.reshape(current.outputs, count * shape.tokens, -1)
        index = np.arange(window.start * shape.tokens, window.stop * shape.tokens)
        chosen = is_pivot[index]
        bound[:, place[index[chosen]]] = rows[:, chosen]
        matrix[:, place[index[~chosen]]] = rows[:, ~chosen]
    for output in range(current.outputs):
        field.subtract_product(matrix[output], relations, bound[output])
    del bound, passed
    found = eliminate_residues(matrix.reshape(-1, shape.inner_count), field)
    chosen_rows = tuple((row // len(free), int(free[row % len(free)])) for row in found.pivot_rows)
    return _Pivots(tuple(pivots), chosen_rows, found.pivot_columns)


def _forms(shape: AttentionSlice, last: Floats, outputs: int) -> Floats:
    """Output coordinates as linear forms of Z: (outputs * t, d_(l-1), t), entry (i, s) is row i of V in column s."""
    before, tokens = shape.widths[-2], shape.tokens
    rows = np.eye(outputs, before) if shape.widths[-1] >= before else last[:outputs]
    forms = np.zeros((outputs, tokens, before, tokens))
    for s in range(tokens):
        forms[:, s, :, s] = rows
    return forms.reshape(outputs * tokens, before, tokens)


def _window(layer: Any, window: slice) -> Any:
    names = ("inputs", "queries", "keys", "weights", "tokens")
    return type(layer)(**{name: getattr(layer, name)[window] for name in names})
