"""Rows of a program's Jacobian at a random point over F_p, in blocks, sample after sample; a last layer is eliminated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.linear.modular import echelon_residues
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import Array, PrimeFieldArithmetic
from m2bridge.programs.exponentials import Units
from m2bridge.programs.jacobians import (
    LastLayer,
    free_columns,
    jacobian_rows,
    last_layer,
    output_seeds,
    token_seeds,
)
from m2bridge.programs.points import Held, draw_inputs, draw_weights, lettered
from m2bridge.programs.program import Program
from m2bridge.programs.roots import input_roots
from m2bridge.programs.run import Lettered, evaluate

_CHUNK_BYTES = 48 * 2**20  # bytes of the values of samples that are held at once

RowName = tuple[int, int]
"""(sample, flat output); where a last layer is eliminated, (row of V, token), tokens counted through the samples."""
Block = tuple[list[RowName], Array]


@dataclass(frozen=True, slots=True)
class SampleRange:
    """Samples start..stop-1, and how many output entries of each (or rows of the last layer)."""

    start: int
    stop: int
    outputs: int

    @property
    def count(self) -> int:
        return self.stop - self.start


class JacobianRows:
    """The Jacobian by the weights that are not held, at the point of a seed.

    Attributes
    ----------
    layer: the last layer V Z whose weight has no columns, or None. Then rows are combined such that V does not matter.
    columns: the flat weights of the columns.
    tokens: independent columns of Z, after blocks were asked for.
    points: the inputs at which all square roots exist.
    """

    def __init__(self, program: Program, units: Units, held: Held, *, whole: bool) -> None:
        self.program, self.units = program, units
        self.layer: LastLayer | None = None if whole else last_layer(program, held)
        self.arithmetic = PrimeFieldArithmetic(field_of(units.p))
        weights = draw_weights(program, units.p, units.seed, held)
        self.weights = lettered(self.arithmetic, weights)
        self.points = input_roots(program, weights, units.at, p=units.p, seed=units.seed)
        self.columns = free_columns(program, held, self.layer)
        self.tokens: Sequence[int] = ()
        self._random = np.random.default_rng([units.seed, units.p, 5])

    @property
    def width(self) -> int:
        return len(self.columns)

    def per_sample(self, size: SampleRange) -> int:
        """Return the number of rows for each sample."""
        return size.outputs * self.layer.columns if self.layer else size.outputs

    def memory(self, size: SampleRange) -> int:
        """Return the bytes of a block of the reverse pass, of the values, and of the rows at independent tokens."""
        per_sample = self._bytes_per_sample(size)
        chunk = max(per_sample, min(_CHUNK_BYTES, size.count * per_sample))
        pairs = zip(self.program.instructions, self.program.sees_inputs, strict=True)
        values = 8 * size.stop * sum(item.size for item, seen in pairs if seen)
        independent = 8 * size.outputs * self.layer.width * self.width if self.layer else 0
        return 2 * chunk + values + independent

    def _bytes_per_sample(self, size: SampleRange) -> int:
        """Bytes of the reverse pass for one sample; nothing is pulled back to constants."""
        largest = max(item.size for item in self.program.instructions if item.operation != "constant")
        return 8 * self.per_sample(size) * (2 * largest + 3 * max(1, self.width))

    def blocks(self, size: SampleRange, rows: int) -> Iterator[Block]:
        """Return the rows of some samples in blocks of `rows`, the last one shorter. Sets `tokens` before the first block."""
        values = self._values(size.stop)
        blocks = self._rows_modulo_layer(values, size) if self.layer else self._output_rows(values, size)
        return _joined(blocks, rows)

    def _values(self, stop: int) -> Sequence[Lettered]:
        """Evaluate the program at the first samples."""
        draws = self.points.first(stop)
        inputs = draw_inputs(self.program, self.units.p, self.units.seed, draws)
        point = self.weights | lettered(self.arithmetic, inputs, "N")
        return evaluate(self.program, self.arithmetic, point, self.units.at(draws))

    def _output_rows(self, values: Sequence[Lettered], size: SampleRange) -> Iterator[Block]:
        """Yield the Jacobian of a few random output entries of each sample."""
        every, n = self.program.output_count, size.outputs
        entries = np.stack([np.sort(self._random.permutation(every)[:n]) for _ in range(size.count)])
        for window in self._windows(size):
            chosen = entries[window.start - size.start : window.stop - size.start]
            seeds = output_seeds(self.program, self.arithmetic, chosen)
            block = self._block(values, seeds, window)
            samples = range(window.start, window.stop)
            names = [
                (k, int(entry))
                for k, sample_entries in zip(samples, chosen, strict=True)
                for entry in sample_entries
            ]
            yield names, block.reshape(-1, self.width)

    def _rows_modulo_layer(self, values: Sequence[Lettered], size: SampleRange) -> Iterator[Block]:
        """Return the derivatives of rows of V at each token, minus those at the independent tokens of which it is a combination.

        Independent tokens are the first ones, so that those of earlier samples stay.
        """
        layer = self.layer
        assert layer is not None
        table = values[layer.tokens].array.reshape(size.stop, layer.width, layer.columns).swapaxes(0, 1)
        pivots, reduced = echelon_residues(
            np.ascontiguousarray(table).reshape(layer.width, -1), self.arithmetic.field
        )
        self.tokens = pivots
        if not self.width:
            return iter(())
        return self._combined_rows(values, size, np.array(pivots, dtype=np.int64), reduced)

    def _combined_rows(
        self, values: Sequence[Lettered], size: SampleRange, pivots: np.ndarray, reduced: Array
    ) -> Iterator[Block]:
        layer, field, outputs = self.layer, self.arithmetic.field, size.outputs
        assert layer is not None
        n = layer.columns
        forms = self.weights[layer.weight].array[:outputs]
        seeds = {layer.tokens: token_seeds(self.program, self.arithmetic, layer, forms)}

        def derivatives(window: slice) -> Array:
            block = self._block(values, seeds, window).reshape(-1, outputs, n, self.width)
            return block.swapaxes(1, 2).reshape(-1, outputs * self.width)

        independent = np.empty((len(pivots), outputs * self.width))
        for sample in np.unique(pivots // n).tolist():
            of_sample = pivots // n == sample
            independent[of_sample] = derivatives(slice(sample, sample + 1))[pivots[of_sample] % n]
        for window in self._windows(size):
            tokens = np.arange(window.start * n, window.stop * n)
            free = ~np.isin(tokens, pivots)
            block = np.ascontiguousarray(derivatives(window)[free])
            field.subtract_product(block, np.ascontiguousarray(reduced[:, tokens[free]].T), independent)
            names = [(row, int(token)) for token in tokens[free] for row in range(outputs)]
            yield names, block.reshape(-1, self.width)

    def _windows(self, size: SampleRange) -> list[slice]:
        chunk = max(1, _CHUNK_BYTES // self._bytes_per_sample(size))
        return [slice(k, min(k + chunk, size.stop)) for k in range(size.start, size.stop, chunk)]

    def _block(self, values: Sequence[Lettered], seeds: dict[int, Lettered], window: slice) -> Array:
        """Return rows of the Jacobian at some samples: (samples, rows, columns)."""
        window_values = [v.like(v.array[window]) if v.lead else v for v in values]
        return jacobian_rows(self.program, self.arithmetic, window_values, seeds, self.columns)


def _joined(blocks: Iterator[Block], rows: int) -> Iterator[Block]:
    """Yield the same rows in blocks of `rows`, but for the last one."""
    names: list[RowName] = []
    waiting: list[Array] = []
    for block_names, block in blocks:
        names += block_names
        waiting.append(block)
        if len(names) < rows:
            continue
        joined = np.concatenate(waiting)
        full = len(names) - len(names) % rows
        for start in range(0, full, rows):
            yield names[start : start + rows], joined[start : start + rows]
        names, waiting = names[full:], [joined[full:]]
    if names:
        yield names, np.concatenate(waiting)
