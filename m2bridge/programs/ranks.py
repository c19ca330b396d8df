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
from dataclasses import dataclass

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import Elimination, echelon_residues, eliminate, eliminate_residues
from m2bridge.linear.residues import DEFAULT_PRIME, LARGEST_BLAS_PRIME, field_of
from m2bridge.programs.arithmetics import Array, Residues
from m2bridge.programs.jacobians import (
    LastLayer,
    flat_columns,
    free_columns,
    jacobian_rows,
    last_layer,
    output_seeds,
    token_seeds,
)
from m2bridge.programs.points import NOTHING_HELD, Held, Integers, draw_inputs, draw_weights
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate

MEMORY_LIMIT = 6 * 2**30
_CHUNK_BYTES = 48 * 2**20
_GROWTHS = 2
_FEW_OUTPUTS = 16
"""So many output entries of each input are looked at first, chosen at random: an input with many outputs may say little."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericRank:
    """Rank of a program's Jacobian at one point over F_p, and the minor that shows it.

    Attributes
    ----------
    rank: a lower bound of the dimension of a polynomial program; for an analytic one a heuristic, because exponentials
        are replaced by random units.
    columns: flat weights of the minor (without those of the last layer, if that was eliminated).
    rows: (sample, flat output) pairs; with `layer`, (row of V, token), tokens counted through the samples.
    layer, token_pivots: the last layer that was eliminated, and independent columns of Z.
    samples, outputs: how many inputs, and output entries of each (or rows of V), were looked at.
    settled: whether the rank met the upper bound or did not grow with more samples.
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
    settled: bool
    heuristic: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempt: how many samples, how many output entries of each (or rows of the last layer)."""

    samples: int
    outputs: int


def generic_rank(
    program: Program,
    *,
    p: int = DEFAULT_PRIME,
    seed: int = 0,
    held: Held = NOTHING_HELD,
    upper: int | None = None,
    samples: int | None = None,
    grow: bool = True,
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
    memory_limit
        Bytes; a rank that needs more is refused before it starts.

    Raises
    ------
    OutOfReachError
        The elimination would need more memory than allowed; field `estimate` has the bytes.
    """
    start = time.perf_counter()
    most = program.parameter_count - held.count
    most = most if upper is None else min(upper, most)
    layer = last_layer(program, held) if p < LARGEST_BLAS_PRIME else None
    work = _RankWork(program, p, seed, held, layer)
    current = work.first_try(samples)
    best: tuple[_Pivots, _Try] | None = None
    unchanged = 0
    while True:
        needed = work.memory(current)
        if memory_limit is not None and needed > memory_limit:
            if best is not None:
                break
            raise OutOfReachError(
                f"the rank needs {needed / 2**30:.1f} GB, more than the {memory_limit / 2**30:.1f} GB allowed; "
                "allow more with --memory",
                estimate=needed,
            )
        if report:
            report(
                f"rank over F_{p}: {work.width} columns, {current.samples} samples, {needed / 2**20:.0f} MB"
            )
        found = work.pivots(current)
        if best is None or work.rank(found) > work.rank(best[0]):
            best, unchanged = (found, current), 0
        else:
            unchanged += 1
        if work.rank(best[0]) >= most or unchanged >= _GROWTHS or not (program.inputs and grow):
            break
        current = work.next_try(current)
    pivots, done = best
    return GenericRank(
        rank=work.rank(pivots),
        columns=pivots.columns,
        rows=pivots.rows,
        layer=layer,
        token_pivots=pivots.tokens,
        samples=done.samples,
        outputs=done.outputs,
        p=p,
        seed=seed,
        held=held,
        settled=work.rank(pivots) >= most or unchanged >= _GROWTHS or not program.inputs,
        heuristic=not program.polynomial,
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, slots=True)
class _Pivots:
    tokens: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]


class _RankWork:
    """A rank that is being computed: the point, and the columns that are asked for."""

    def __init__(self, program: Program, p: int, seed: int, held: Held, layer: LastLayer | None) -> None:
        self.program, self.p, self.seed, self.layer = program, p, seed, layer
        rng = None if program.polynomial else np.random.default_rng([seed, 3])
        self.arithmetic = Residues(field_of(p), rng)
        drawn = draw_weights(program, p, seed, held)
        self.weights = {name: Lettered("", self.lift(value)) for name, value in drawn.items()}
        self.chosen = free_columns(program, held, layer)
        self.columns = flat_columns(program, self.chosen)

    def lift(self, array: Integers) -> Array:
        return self.arithmetic.field.residues(array)

    @property
    def width(self) -> int:
        return len(self.columns)

    def rank(self, found: _Pivots) -> int:
        outputs = self.layer.outputs if self.layer else 0
        return outputs * len(found.tokens) + len(found.columns)

    # -- how many samples ---------------------------------------------------------------------------------

    def first_try(self, samples: int | None) -> _Try:
        if self.layer is None:
            rows = self.program.output_count
            if not self.program.inputs:
                return _Try(1, rows)
            rows = min(rows, _FEW_OUTPUTS)
            return _Try(samples or math.ceil(1.05 * self.width / rows) + 2, rows)
        tokens, outputs = self.layer.columns, self.layer.few(analytic=not self.program.polynomial)
        unknowns = self.width + outputs * self.layer.width
        return _Try(samples or max(2, math.ceil(1.03 * unknowns / (outputs * tokens)) + 2), outputs)

    def next_try(self, current: _Try) -> _Try:
        outputs = current.outputs
        if self.layer is not None:
            outputs = min(self.layer.outputs, self.layer.width, 2 * outputs)
        return _Try(math.ceil(1.5 * current.samples) + 1, outputs)

    def _rows(self, current: _Try) -> int:
        """Rows of the Jacobian for each sample."""
        return current.outputs * self.layer.columns if self.layer else current.outputs

    def memory(self, current: _Try) -> int:
        per_sample = self._per_sample(current)
        chunk = max(per_sample, min(_CHUNK_BYTES, current.samples * per_sample))
        passes = (
            8
            * current.samples
            * sum(
                item.size
                for item, seen in zip(self.program.instructions, self.program.sees_inputs, strict=True)
                if seen
            )
        )
        matrix = 8 * current.samples * self._rows(current) * max(1, self.width)
        return (1 if self.layer else 2) * matrix + 2 * chunk + passes + 48 * 2**20

    def _per_sample(self, current: _Try) -> int:
        """Bytes of the reverse pass for one sample; nothing is pulled back to constants."""
        largest = max(item.size for item in self.program.instructions if item.operation != "constant")
        return 8 * self._rows(current) * (2 * largest + 3 * max(1, self.width))

    # -- the work -----------------------------------------------------------------------------------------

    def pivots(self, current: _Try) -> _Pivots:
        inputs = draw_inputs(self.program, self.p, self.seed, current.samples)
        given = self.weights | {name: Lettered("N", self.lift(value)) for name, value in inputs.items()}
        values = evaluate(self.program, self.arithmetic, given)
        if self.layer is not None:
            return self._eliminated(values, current, self.layer)
        return self._plain(values, current)

    def _plain(self, values: list[Lettered], current: _Try) -> _Pivots:
        rows, outputs = current.outputs, self.program.output_count
        rng = np.random.default_rng([self.seed, self.p, 5])
        entries = np.stack([np.sort(rng.permutation(outputs)[:rows]) for _ in range(current.samples)])
        matrix = np.empty((current.samples, rows, self.width), dtype=self.arithmetic.zeros(()).dtype)
        for window in self._windows(current):
            seeds = output_seeds(self.program, self.arithmetic, entries[window])
            matrix[window] = self._block(values, seeds, window)
        found = self._eliminate(matrix.reshape(-1, self.width))
        chosen = tuple((row // rows, int(entries[row // rows, row % rows])) for row in found.pivot_rows)
        return _Pivots((), chosen, tuple(int(self.columns[k]) for k in found.pivot_columns))

    def _eliminate(self, matrix: Array) -> Elimination:
        if self.p < LARGEST_BLAS_PRIME:
            return eliminate_residues(matrix, self.arithmetic.field)
        return eliminate(matrix, self.p)

    def _windows(self, current: _Try) -> list[slice]:
        chunk = max(1, _CHUNK_BYTES // self._per_sample(current))
        return [slice(k, min(k + chunk, current.samples)) for k in range(0, current.samples, chunk)]

    def _block(self, values: Sequence[Lettered], seeds: dict[int, Lettered], window: slice) -> Array:
        """Rows of the Jacobian at some samples: (samples, rows, columns)."""
        part = [v.like(v.array[window]) if v.lead else v for v in values]
        return jacobian_rows(self.program, self.arithmetic, part, seeds, self.chosen)

    def _eliminated(self, values: list[Lettered], current: _Try, layer: LastLayer) -> _Pivots:
        """Independent tokens, and pivots of the rest modulo the columns of the last weight."""
        field = self.arithmetic.field
        tokens = values[layer.tokens].array.reshape(current.samples, layer.width, layer.columns)
        token_matrix = np.ascontiguousarray(np.moveaxis(tokens, 1, 0).reshape(layer.width, -1))
        total = token_matrix.shape[1]
        pivots, reduced = echelon_residues(token_matrix, field)
        if not self.width:
            return _Pivots(tuple(pivots), (), ())
        free = np.setdiff1d(np.arange(total), pivots)
        relations = np.ascontiguousarray(reduced[:, free].T)
        matrix = np.empty((current.outputs, len(free), self.width))
        bound = np.empty((current.outputs, len(pivots), self.width))
        place = np.empty(total, dtype=np.int64)
        place[free], place[pivots] = np.arange(len(free)), np.arange(len(pivots))
        is_pivot = np.zeros(total, dtype=bool)
        is_pivot[pivots] = True
        forms = self.weights[layer.weight].array[: current.outputs]
        seeds = {layer.tokens: token_seeds(self.program, self.arithmetic, layer, forms)}
        for window in self._windows(current):
            block = self._block(values, seeds, window)
            block = block.reshape(len(block), current.outputs, layer.columns, self.width).swapaxes(0, 1)
            block = block.reshape(current.outputs, -1, self.width)
            index = np.arange(window.start * layer.columns, window.stop * layer.columns)
            chosen = is_pivot[index]
            bound[:, place[index[chosen]]] = block[:, chosen]
            matrix[:, place[index[~chosen]]] = block[:, ~chosen]
        for output in range(current.outputs):
            field.subtract_product(matrix[output], relations, bound[output])
        del bound, values
        found = eliminate_residues(matrix.reshape(-1, self.width), field)
        rows_found = tuple((row // len(free), int(free[row % len(free)])) for row in found.pivot_rows)
        return _Pivots(tuple(pivots), rows_found, tuple(int(self.columns[k]) for k in found.pivot_columns))
