"""A proof that the Jacobian of an analytic program has full column rank at a dyadic point, in balls.

At a point whose coordinates are dyadic rationals the Jacobian is enclosed in balls; a float64 approximate left inverse then
shows that every matrix in the enclosure has full column rank (:func:`m2bridge.linear.balls.full_rank_residual`). The rank of
an analytic map at one point is a lower bound of its generic rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from m2bridge.linear.balls import Ball, ball_of_arb, full_rank_residual
from m2bridge.programs.arithmetics import elementwise
from m2bridge.programs.balls import ARB, Balls, arb_number, precision
from m2bridge.programs.blocks import LastLayer, columns_by_weight, jacobian_block
from m2bridge.programs.lettered import Lettered
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Program

FLOAT_BITS = 53
BITS = 20
"""Weights and inputs are integers divided by 2^20."""

Report = Callable[[str], None]


def dyadic(array: np.ndarray, bits: int = BITS) -> Integers:
    """Real numbers rounded to integers over 2^bits: the numerators."""
    return np.asarray(np.rint(array * (1 << bits)), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class DyadicPoint:
    """Weights by name and inputs by name (with a leading axis over samples), all integers to be divided by 2^`bits`."""

    weights: dict[str, Integers]
    inputs: dict[str, Integers]
    bits: int = BITS

    @property
    def samples(self) -> int:
        return len(next(iter(self.inputs.values())))

    def floats(self) -> dict[str, Lettered]:
        """The point in float64, exactly."""
        one = 1 << self.bits
        plain = {name: Lettered("", value / one) for name, value in self.weights.items()}
        return plain | {name: Lettered("N", value / one) for name, value in self.inputs.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BallProof:
    """Full column rank of a block of the Jacobian.

    Attributes
    ----------
    rank: the proved lower bound of the dimension.
    columns: flat weights, without those of the last layer.
    layer, outputs: the last layer, if there is one, and how many of its rows the block looks at.
    residual: the proved bound of the largest row sum of |I - C T|, below 1.
    precision: bits of the midpoints.
    """

    rank: int
    columns: tuple[int, ...]
    layer: LastLayer | None
    outputs: int
    residual: float
    precision: int
    point: DyadicPoint
    seconds: float


def prove_rank(
    program: Program,
    point: DyadicPoint,
    columns: Sequence[int],
    *,
    layer: LastLayer | None = None,
    outputs: int = 0,
    precisions: Sequence[int] = (FLOAT_BITS, 128, 256),
    most_operations: float = 3e8,
    report: Report | None = None,
) -> BallProof | None:
    """Prove that the chosen columns (and those of the last layer) are independent at a dyadic point.

    Returns None when the enclosure was too wide: nothing is then known about the rank. `most_operations` bounds the work of
    higher precision; 10^8 take about 20 s.
    """
    start = time.perf_counter()
    if report:
        report(f"balls: {len(columns)} columns, {point.samples} samples")
    chosen = columns_by_weight(program, np.array(sorted(columns), dtype=np.int64))
    rows = point.samples * (outputs * layer.columns if layer else program.output_count)
    cost = rows * sum(item.size for item in program.instructions)
    for bits in precisions:
        if bits > FLOAT_BITS and cost > most_operations:
            return None
        try:
            block = enclosure(program, point, chosen, layer=layer, outputs=outputs, bits=bits)
            residual = full_rank_residual(block)
        except (ArithmeticError, np.linalg.LinAlgError):
            continue
        if residual < 1:
            own = layer.outputs * layer.width if layer else 0
            return BallProof(
                rank=own + len(columns),
                columns=tuple(sorted(columns)),
                layer=layer,
                outputs=outputs,
                residual=residual,
                precision=bits,
                point=point,
                seconds=time.perf_counter() - start,
            )
    return None


def enclosure(
    program: Program,
    point: DyadicPoint,
    columns: dict[str, np.ndarray],
    *,
    layer: LastLayer | None,
    outputs: int,
    bits: int = FLOAT_BITS,
) -> Ball:
    """Balls around a block of the Jacobian (:func:`m2bridge.programs.blocks.jacobian_block`) at a dyadic point."""
    floats = point.floats()
    if bits == FLOAT_BITS:
        given = {name: Lettered(v.lead, Ball.exact(v.array)) for name, v in floats.items()}
        found: Ball = jacobian_block(program, Balls(), given, columns, layer=layer, outputs=outputs)
        return found
    with precision(bits):
        given = {
            name: Lettered(v.lead, elementwise(lambda x: arb_number(Fraction(x)), v.array))
            for name, v in floats.items()
        }
        return ball_of_arb(jacobian_block(program, ARB, given, columns, layer=layer, outputs=outputs))
