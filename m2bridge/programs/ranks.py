"""The generic rank of a program's Jacobian over F_p: the one function that draws inputs until the rank is stable.

What makes it fast, each step exact:

1. held weights (a gauge slice) leave few columns;
2. where the output is V Z with a weight V that occurs nowhere else, the columns of V are eliminated by hand: they are the
   tokens Z, and with U the linear relations among the tokens, rank J = rows(V) * rank(Z) + rank(V dZ U);
3. a few output coordinates often suffice: fewer rows can only lower the rank;
4. elimination modulo p < 2^23 in BLAS (:mod:`m2bridge.linear.modular`).

The number of samples grows until the rank meets the upper bound or two growths in a row leave it as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.linear.modular import echelon_residues, eliminate_residues
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import Array, PrimeFieldArithmetic, ZeroDenominatorError
from m2bridge.programs.exponentials import FormalExponentials, Units, formal_exponentials
from m2bridge.programs.jacobians import (
    LastLayer,
    free_columns,
    jacobian_rows,
    last_layer,
    output_seeds,
    token_seeds,
)
from m2bridge.programs.points import NOTHING_HELD, Held, draw_inputs, draw_weights, entered
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate

MEMORY_LIMIT = 6 * 2**30
_CHUNK_BYTES = 48 * 2**20
_GROWTHS = 2
_DRAWS = 20
_STEP = 1_000_003
"""From the seed of a point to the next one, where a denominator was zero."""
_FEW_OUTPUTS = 16
"""So many output entries of each input are looked at first, chosen at random: an input with many outputs may say little."""

Report = Callable[[str], None]
_Pivots = tuple[Sequence[int], list[tuple[int, int]], Sequence[int]]
"""Pivot columns, pivot rows as GenericRank has them, and independent tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericRank:
    """Rank of a program's Jacobian at one point over F_p, and the minor that shows it.

    Attributes
    ----------
    rank: a lower bound of the dimension, unless it is `heuristic`.
    columns: flat weights of the minor (without those of the last layer, if that was eliminated).
    rows: (sample, flat output) pairs; with `layer`, (row of V, token), tokens counted through the samples.
    layer, token_pivots: the last layer that was eliminated, and independent columns of Z.
    samples, outputs: how many inputs, and output entries of each (or rows of V), were looked at.
    settled: whether the rank met the upper bound or did not grow with more samples.
    exponentials: why units may stand in the place of exponentials; None for a rational program.
    heuristic: why the rank is no bound: the arguments of exponentials were not seen to be independent. None if it is one.
    """

    rank: int
    columns: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    layer: LastLayer | None
    token_pivots: tuple[int, ...]
    samples: int
    outputs: int
    p: int
    seed: int
    held: Held
    settled: bool = False
    exponentials: FormalExponentials | None = None
    heuristic: str | None = None
    seconds: float = 0.0


def generic_rank(  # noqa: PLR0913 -- options of one computation, all keywords with defaults
    program: Program,
    *,
    p: int = LARGE_PRIME,
    seed: int = 0,
    held: Held = NOTHING_HELD,
    upper: int | None = None,
    samples: int | None = None,
    grow: bool = True,
    whole: bool = False,
    memory_limit: int | None = MEMORY_LIMIT,
    report: Report | None = None,
) -> GenericRank:
    """Rank over F_p of the Jacobian of a program at a random point, with as many random inputs as it takes.

    Parameters
    ----------
    held
        Weight entries that are held constant; they have no columns.
    upper
        A proved upper bound of the dimension: a rank that meets it is final.
    samples
        How many inputs to begin with; a bad guess costs time, never the answer.
    grow
        Whether to go on with more inputs; without, the rank is only that of the first ones.
    whole
        Whether the columns of a last layer stay in the matrix, and are not eliminated.
    memory_limit
        Bytes; a rank that needs more is refused before it starts.

    Raises
    ------
    OutOfReachError
        The elimination would need more memory than allowed; field `estimate` has the bytes.
    InputError
        A denominator is zero at all points that were drawn.
    """
    for own in range(seed, seed + _DRAWS * _STEP, _STEP):
        try:
            return _rank_of_seed(
                program, p=p, seed=own, held=held, upper=upper, samples=samples, grow=grow, whole=whole,
                memory_limit=memory_limit, report=report,
            )  # fmt: skip
        except ZeroDenominatorError:
            continue
    raise InputError(f"a denominator is zero at {_DRAWS} random points modulo {p}: this divides by zero")


def _rank_of_seed(  # noqa: PLR0913 -- options of one computation, all keywords with defaults
    program: Program, *, p: int, seed: int, held: Held, upper: int | None, samples: int | None, grow: bool, whole: bool,
    memory_limit: int | None, report: Report | None,
) -> GenericRank:  # fmt: skip
    """The rank at the point of one seed; ZeroDenominatorError where a denominator is zero there."""
    start = time.perf_counter()
    free = program.parameter_count - held.count
    most = free if upper is None else min(upper, free)
    work = _RankWork(program, p, seed, held, whole=whole)
    size = work.first_size(samples)
    best: GenericRank | None = None
    unchanged = 0
    while True:
        needed = work.memory(size)
        if memory_limit is not None and needed > memory_limit:
            if best is not None:
                break
            raise OutOfReachError(
                f"the rank needs {needed / 2**30:.1f} GB, more than the {memory_limit / 2**30:.1f} GB allowed; "
                "increase --memory",
                estimate=needed,
            )
        if report:
            report(f"rank over F_{p}: {work.width} columns, {size.samples} samples, {needed / 2**20:.0f} MB")
        found = work.rank(size)
        better = best is None or found.rank > best.rank
        best, unchanged = (found, 0) if better or best is None else (best, unchanged + 1)
        if best.rank >= most or unchanged >= _GROWTHS or not (program.inputs and grow):
            break
        size = work.next_size(size)
    settled = best.rank >= most or unchanged >= _GROWTHS or not program.inputs
    return replace(best, settled=settled, seconds=time.perf_counter() - start)


class _Size(NamedTuple):
    """How many samples, how many output entries of each (or rows of the last layer)."""

    samples: int
    outputs: int


class _RankWork:
    """A rank that is being computed: the point, and the columns that are asked for."""

    def __init__(self, program: Program, p: int, seed: int, held: Held, *, whole: bool) -> None:
        self.program, self.p, self.seed, self.held = program, p, seed, held
        self.layer = None if whole else last_layer(program, held)
        self.arithmetic = PrimeFieldArithmetic(field_of(p))
        formal = None if program.rational else formal_exponentials(program, p=p, seed=seed)
        self.heuristic = formal if isinstance(formal, str) else None
        self.exponentials = None if isinstance(formal, str) else formal
        relations = {} if self.exponentials is None else self.exponentials.relations
        self.units = Units(program, relations, p=p, seed=seed)
        self.weights = entered(self.arithmetic, draw_weights(program, p, seed, held))
        self.columns = free_columns(program, held, self.layer)
        self.width = len(self.columns)

    # -- how many samples ---------------------------------------------------------------------------------

    def first_size(self, samples: int | None) -> _Size:
        if self.layer is None:
            rows = self.program.output_count
            if not self.program.inputs:
                return _Size(1, rows)
            rows = min(rows, _FEW_OUTPUTS)
            return _Size(samples or math.ceil(1.05 * self.width / rows) + 2, rows)
        tokens, outputs = self.layer.columns, self.layer.few(analytic=not self.program.polynomial)
        unknowns = self.width + outputs * self.layer.width
        return _Size(samples or max(2, math.ceil(1.03 * unknowns / (outputs * tokens)) + 2), outputs)

    def next_size(self, size: _Size) -> _Size:
        most = min(self.layer.outputs, self.layer.width, 2 * size.outputs) if self.layer else size.outputs
        return _Size(math.ceil(1.5 * size.samples) + 1, most)

    def memory(self, size: _Size) -> int:
        """Bytes of the matrix (and a copy of it), of a block of the reverse pass, and of the values."""
        per_sample = self._per_sample(size)
        chunk = max(per_sample, min(_CHUNK_BYTES, size.samples * per_sample))
        pairs = zip(self.program.instructions, self.program.sees_inputs, strict=True)
        values = 8 * size.samples * sum(item.size for item, seen in pairs if seen)
        matrix = 8 * size.samples * self._rows(size) * max(1, self.width)
        return (1 if self.layer else 2) * matrix + 2 * chunk + values + 48 * 2**20

    def _rows(self, size: _Size) -> int:
        """Rows of the Jacobian for each sample."""
        return size.outputs * self.layer.columns if self.layer else size.outputs

    def _per_sample(self, size: _Size) -> int:
        """Bytes of the reverse pass for one sample; nothing is pulled back to constants."""
        largest = max(item.size for item in self.program.instructions if item.operation != "constant")
        return 8 * self._rows(size) * (2 * largest + 3 * max(1, self.width))

    # -- the work -----------------------------------------------------------------------------------------

    def rank(self, size: _Size) -> GenericRank:
        """The rank at so many samples, with its pivots."""
        inputs = draw_inputs(self.program, self.p, self.seed, size.samples)
        point = self.weights | entered(self.arithmetic, inputs, "N")
        values = evaluate(self.program, self.arithmetic, point, self.units)
        columns, rows, tokens = (self._eliminated if self.layer else self._plain)(values, size)
        own = self.layer.outputs * len(tokens) if self.layer else 0
        return GenericRank(
            rank=own + len(columns),
            columns=tuple(self.columns[list(columns)].tolist()),
            rows=tuple(rows),
            layer=self.layer,
            token_pivots=tuple(tokens),
            samples=size.samples,
            outputs=size.outputs,
            p=self.p,
            seed=self.seed,
            held=self.held,
            exponentials=self.exponentials,
            heuristic=self.heuristic,
        )

    def _plain(self, values: Sequence[Lettered], size: _Size) -> _Pivots:
        """Pivots of the Jacobian of a few random output entries of each sample."""
        rng = np.random.default_rng([self.seed, self.p, 5])
        every, n = self.program.output_count, size.outputs
        entries = np.stack([np.sort(rng.permutation(every)[:n]) for _ in range(size.samples)])
        matrix = np.empty((size.samples, n, self.width))
        for window in self._windows(size):
            seeds = output_seeds(self.program, self.arithmetic, entries[window])
            matrix[window] = self._block(values, seeds, window)
        found = eliminate_residues(matrix.reshape(-1, self.width), self.arithmetic.field)
        rows = [(row // n, int(entries[row // n, row % n])) for row in found.pivot_rows]
        return found.pivot_columns, rows, ()

    def _eliminated(self, values: Sequence[Lettered], size: _Size) -> _Pivots:
        """Pivots modulo the columns of the last weight V, and independent tokens."""
        layer, field, outputs = self.layer, self.arithmetic.field, size.outputs
        assert layer is not None
        tokens = values[layer.tokens].array.reshape(size.samples, layer.width, layer.columns)
        table = np.array(tokens.swapaxes(0, 1), order="C")  # a copy: it is overwritten
        pivots, reduced = echelon_residues(table.reshape(layer.width, -1), field)
        if not self.width:
            return (), [], pivots
        rank, total = len(pivots), reduced.shape[1]
        free = np.setdiff1d(np.arange(total), pivots)
        place = np.empty(total, dtype=np.int64)
        place[np.concatenate([pivots, free]).astype(np.int64)] = np.arange(total)
        # derivatives of the rows of V at each token, those at independent tokens first
        matrix = np.empty((total, outputs, self.width))
        forms = self.weights[layer.weight].array[:outputs]
        seeds = {layer.tokens: token_seeds(self.program, self.arithmetic, layer, forms)}
        for window in self._windows(size):
            block = self._block(values, seeds, window).reshape(-1, outputs, layer.columns, self.width)
            own = place[window.start * layer.columns : window.stop * layer.columns]
            matrix[own] = block.swapaxes(1, 2).reshape(-1, outputs, self.width)
        rest, relations = matrix[rank:], np.ascontiguousarray(reduced[:, free].T)
        wide = outputs * self.width
        field.subtract_product(rest.reshape(-1, wide), relations, matrix[:rank].reshape(-1, wide))
        found = eliminate_residues(rest.reshape(-1, self.width), field)
        rows = [(row % outputs, int(free[row // outputs])) for row in found.pivot_rows]
        return found.pivot_columns, rows, pivots

    def _windows(self, size: _Size) -> list[slice]:
        chunk = max(1, _CHUNK_BYTES // self._per_sample(size))
        return [slice(k, min(k + chunk, size.samples)) for k in range(0, size.samples, chunk)]

    def _block(self, values: Sequence[Lettered], seeds: dict[int, Lettered], window: slice) -> Array:
        """Rows of the Jacobian at some samples: (samples, rows, columns)."""
        part = [v.like(v.array[window]) if v.lead else v for v in values]
        return jacobian_rows(self.program, self.arithmetic, part, seeds, self.columns)
