"""The generic rank of a program's Jacobian over F_p: the one function that draws inputs until the rank is stable.

What makes it fast, each step exact:

1. held weights (a gauge slice) leave few columns;
2. where the output is V Z with a weight V that occurs nowhere else, the columns of V are eliminated by hand: they are the
   tokens Z, and with U the linear relations among the tokens, rank J = rows(V) * rank(Z) + rank(V dZ U);
3. a few output coordinates often suffice: fewer rows can only lower the rank;
4. rows are added in blocks to a row space modulo p < 2^23, in BLAS (:mod:`m2bridge.linear.row_space`). What was reached after
   any block is a rank, so that a limit of time leaves a lower bound, and the elimination ends at a proved upper bound.

Samples are added until the rank meets the upper bound, or fresh samples with more output coordinates leave it as it is: a
random row that lies in the row space shows that all of them do, but for a chance of degree / p.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.limits import LimitReached
from m2bridge.linear.modular import Interruption
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import field_of
from m2bridge.linear.row_space import RowSpace
from m2bridge.programs.arithmetics import ZeroDenominatorError
from m2bridge.programs.exponentials import FormalExponentials, Units, formal_exponentials
from m2bridge.programs.jacobian_blocks import JacobianRows, RowName, SampleRange
from m2bridge.programs.jacobians import LastLayer
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.program import Program
from m2bridge.programs.roots import SquareRoots, seeds, weight_roots

MEMORY_LIMIT = 6 * 2**30  # bytes, if the caller sets no limit; the default of --memory
_DRAWS = 20  # points that are tried where a denominator is zero
_FEW_OUTPUTS = 16
"""This many output entries of each input are used first, chosen at random: outputs of one input may be dependent."""
_MANY_OUTPUTS = 256
"""This many output entries of a fresh sample are used to test whether the rank is stable."""
_FRESH_SAMPLES = 2  # inputs that a stable rank must not grow with
_LEAST_SHARE_FOR_ESTIMATE = 0.1  # of the work, before the time left is estimated

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericRank:
    """Rank of a program's Jacobian at one point over F_p, and the minor that shows it.

    Attributes
    ----------
    rank: a lower bound of the dimension, unless it is `heuristic`.
    columns: flat weights of the minor (without those of the last layer, if that was eliminated).
    rows: (sample, flat output) pairs; with `layer`, (row of V, token), tokens counted through the samples.
    layer, token_pivots: the last layer that was eliminated, and independent columns of Z.
    samples, outputs: the number of inputs, and of output entries of each (or rows of V), that were used.
    settled: whether the rank met the upper bound or did not grow with more samples.
    stopped: the limit that ended the elimination; the rank is that of the rows before.
    exponentials: the test that allows units in place of exponentials; None for a program without them.
    roots: points that show that square roots are independent; None for a program without them.
    heuristic: why the rank is not a proved bound (dependent arguments of exponentials); None if it is one.
    space: the factors of the minor, which solve its equations; without the columns of `layer`.
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
    space: RowSpace = field(repr=False, compare=False)
    settled: bool = False
    stopped: LimitReached | None = None
    exponentials: FormalExponentials | None = None
    roots: SquareRoots | None = None
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
    check: Interruption | None = None,
) -> GenericRank:
    """Return the rank over F_p of the Jacobian of a program at a random point, with as many random inputs as it takes.

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
    report, check
        Functions that are called after each block of rows: with a sentence, and to look at the clock. With `check`,
        a LimitReached ends the elimination and the rank that was reached is returned; the field `stopped` has the limit.

    Raises
    ------
    OutOfReachError
        The elimination would need more memory than allowed; field `estimate` has the bytes.
    InputError
        A denominator is zero at all points that were drawn.
    """
    free = program.parameter_count - held.count
    progress = _Progress(
        report, check, most=free if upper is None else min(upper, free), start=time.perf_counter()
    )
    of_weights = weight_roots(program, p=p, seed=seed, held=held)
    for point_seed in seeds(seed, of_weights.first(_DRAWS)):
        with suppress(ZeroDenominatorError):
            work = _RankWork(program, p, point_seed, held, whole=whole)
            _require_memory(work.memory(work.first_size(samples)), memory_limit)
            settled, stopped = _add_rows(work, progress, samples=samples, grow=grow)
            result = work.result(tuple(seeds(seed, of_weights.witnesses)))
            seconds = time.perf_counter() - progress.start
            return replace(result, settled=settled, stopped=stopped, seconds=seconds)
    raise InputError(f"a denominator is zero at {_DRAWS} random points modulo {p}: this divides by zero")


def _add_rows(
    work: _RankWork, progress: _Progress, *, samples: int | None, grow: bool
) -> tuple[bool, LimitReached | None]:
    """Add samples until the rank is final; return whether it is, and the limit that ended this before."""
    size, with_inputs = work.first_size(samples), bool(work.program.inputs)
    try:
        work.add_samples(size, progress)
        while with_inputs and grow and work.rank < progress.most:
            before, size = work.rank, work.fresh_samples(size)
            work.add_samples(size, progress)
            if work.rank == before:
                return True, None
            size = work.more_samples(size)
            work.add_samples(size, progress)
    except LimitReached as reached:
        if progress.check is None or not work.rank:
            raise
        return work.rank >= progress.most, reached
    return work.rank >= progress.most or not with_inputs, None


def _require_memory(needed: int, limit: int | None) -> None:
    if limit is not None and needed > limit:
        raise OutOfReachError(
            f"the rank needs {needed / 2**30:.2g} GB, more than the {limit / 2**30:.2g} GB allowed; "
            f"use --memory {math.ceil(needed / 2**30)}G on a machine that has as much",
            estimate=needed,
        )


@dataclass(frozen=True, slots=True)
class _Progress:
    """What a rank reports after each block: its share of `most`, and the time that it still takes; `check` may end it."""

    report: Report | None
    check: Interruption | None
    most: int
    start: float

    def step(self, rank: int, rows: int) -> None:
        """Report how far the elimination is. With x = rank / most it has done (3 x^2 - x^3) / 2 of its operations."""
        if self.check is not None:
            self.check()
        if self.report is None:
            return
        text = f"rank over F_p: {rank} of at most {self.most} after {rows} rows"
        x = rank / max(1, self.most)
        seconds = time.perf_counter() - self.start
        if x > _LEAST_SHARE_FOR_ESTIMATE and seconds > 1:
            text += f", about {seconds * (2 / (3 * x**2 - x**3) - 1):.0f} s left"
        self.report(text)


class _RankWork:
    """A rank that is being computed: the point, the columns, and the space of the rows so far, each with its name.

    Rows are named as in :class:`GenericRank`.
    """

    def __init__(self, program: Program, p: int, seed: int, held: Held, *, whole: bool) -> None:
        self.program, self.p, self.seed, self.held = program, p, seed, held
        formal = formal_exponentials(program, p=p, seed=seed) if program.exponential else None
        self.heuristic = formal if isinstance(formal, str) else None
        self.exponentials = None if isinstance(formal, str) else formal
        relations = {} if self.exponentials is None else self.exponentials.relations
        self.jacobian = JacobianRows(program, Units(program, relations, p=p, seed=seed), held, whole=whole)
        self.layer, self.width = self.jacobian.layer, self.jacobian.width
        self.space = RowSpace(field_of(p), self.width)
        self.rows: list[RowName] = []
        self.size = SampleRange(0, 0, 0)

    @property
    def rank(self) -> int:
        return self.space.rank + (self.layer.outputs * len(self.jacobian.tokens) if self.layer else 0)

    def result(self, rejected_weights: tuple[int, ...]) -> GenericRank:
        """Return the rank of the rows so far, with its pivots."""
        return GenericRank(
            rank=self.rank,
            columns=tuple(self.jacobian.columns[list(self.space.pivot_columns)].tolist()),
            rows=tuple(self.rows[row] for row in self.space.pivot_rows),
            layer=self.layer,
            token_pivots=tuple(self.jacobian.tokens),
            samples=self.size.stop,
            outputs=self.size.outputs,
            p=self.p,
            seed=self.seed,
            held=self.held,
            space=self.space,
            exponentials=self.exponentials,
            roots=self._roots(rejected_weights) if self.program.roots else None,
            heuristic=self.heuristic,
        )

    def _roots(self, rejected_weights: tuple[int, ...]) -> SquareRoots:
        points = self.jacobian.points
        draws = points.first(max(1, self.size.stop))
        return SquareRoots(tuple(draws.tolist()), points.witnesses, rejected_weights)

    # -- how many samples ---------------------------------------------------------------------------------

    def first_size(self, samples: int | None) -> SampleRange:
        if self.layer is None:
            rows = self.program.output_count
            if not self.program.inputs:
                return SampleRange(0, 1, rows)
            rows = min(rows, _FEW_OUTPUTS)
            return SampleRange(0, samples or math.ceil(1.05 * self.width / rows) + 2, rows)
        tokens, outputs = self.layer.columns, self.layer.few(analytic=not self.program.polynomial)
        unknowns = self.width + outputs * self.layer.width
        return SampleRange(0, samples or max(2, math.ceil(1.03 * unknowns / (outputs * tokens)) + 2), outputs)

    def fresh_samples(self, size: SampleRange) -> SampleRange:
        """Two more samples with more output entries of each: whether they raise the rank shows whether others would."""
        if self.layer is None:
            outputs = min(self.program.output_count, max(size.outputs, _MANY_OUTPUTS))
        else:
            outputs = min(self.layer.outputs, self.layer.width, 2 * size.outputs)
        return SampleRange(size.stop, size.stop + _FRESH_SAMPLES, outputs)

    def more_samples(self, size: SampleRange) -> SampleRange:
        outputs = size.outputs if self.layer else min(size.outputs, _FEW_OUTPUTS)
        return SampleRange(size.stop, math.ceil(1.5 * size.stop) + 1, outputs)

    def memory(self, size: SampleRange) -> int:
        """Bytes of the factors of the row space in float32, of some blocks of rows in float64, and of what makes them."""
        rows = min(self.width, size.count * self.jacobian.per_sample(size))
        entries = 4 * rows + 8 * 5 * min(rows, self.space.block_rows)
        return entries * max(1, self.width) + self.jacobian.memory(size) + 48 * 2**20

    # -- the work -----------------------------------------------------------------------------------------

    def add_samples(self, size: SampleRange, progress: _Progress) -> None:
        """Add the rows of some samples, until the rank is as large as it can be."""
        blocks = self.jacobian.blocks(size, self.space.block_rows)
        self.size = size
        if self.rank >= progress.most:
            return
        for names, block in blocks:
            self.rows += names
            self.space.add(block)
            if self.rank >= progress.most:
                return
            if len(names) == self.space.block_rows:  # a shorter block is the last one, or takes no time
                progress.step(self.rank, self.space.added)
