"""What is checked and proved about a program's derivatives at a point.

:class:`Probe` compares derivatives that are computed in two ways, over F_p, on every run. :func:`prove_rank` proves that the
Jacobian of an analytic program has full column rank at a dyadic point: the Jacobian is enclosed in balls, and a float64
approximate left inverse shows that every matrix in the enclosure has full column rank. The rank of an analytic map at one point
is a lower bound of its generic rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.linear.numeric import Ball, ball_of_arb, full_rank_residual
from m2bridge.programs.arithmetics import ARB, BallArithmetic, precision
from m2bridge.programs.jacobians import LastLayer, form_seeds, jacobian_block, jacobian_rows
from m2bridge.programs.points import Integers, draw_inputs, draw_weights, entered, residues_for
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate, flat_outputs, tangents

_SAMPLES = 2


class Probe:
    """A program with its values at random weights and two random inputs over F_p."""

    def __init__(
        self, program: Program, p: int, seed: int, weights: Mapping[str, Integers] | None = None
    ) -> None:
        self.program, self.p, self.seed = program, p, seed
        self.arithmetic = residues_for(program, p, seed)
        self.weights = draw_weights(program, p, seed) if weights is None else dict(weights)
        self.inputs = draw_inputs(program, p, seed + 1, _SAMPLES)
        given = entered(self.arithmetic, self.weights) | entered(self.arithmetic, self.inputs, "N")
        self.values = evaluate(program, self.arithmetic, given)
        self._samples = _SAMPLES if program.inputs else 1

    def outputs(self) -> list[list[int]]:
        """The flat outputs at each input; one list for a map without inputs."""
        listed: list[list[int]] = self._flat(self.values, {}).tolist()
        return listed

    def derivatives(self, direction: Mapping[str, Integers]) -> list[list[int]]:
        """The derivative of the flat outputs in a direction of the weights, at each input, by the forward rules."""
        listed: list[list[int]] = self.moved([direction])[0].tolist()
        return listed

    def moved(self, directions: Sequence[Mapping[str, Integers]]) -> Integers:
        """For each direction of the weights, and each input, how the flat outputs move, by the forward rules."""
        tables = {}
        for name, shape in self.program.parameters.items():
            if any(name in direction for direction in directions):
                zero = np.zeros(shape, dtype=np.int64)
                tables[name] = np.stack([direction.get(name, zero) for direction in directions])
        moved = entered(self.arithmetic, tables, "T")
        found = tangents(self.program, self.arithmetic, self.values, moved)
        return self._flat(found, {"T": len(directions)})

    def _flat(self, items: Sequence[Lettered | None], sizes: dict[str, int]) -> Integers:
        found = flat_outputs(self.program, self.arithmetic, items, sizes | {"N": self._samples})
        return self.arithmetic.field.canonical(found)

    def random_direction(self) -> dict[str, Integers]:
        rng = np.random.default_rng([self.seed, self.p, 11])
        return {name: rng.integers(0, self.p, size=shape) for name, shape in self.program.parameters.items()}

    def both_ways(self, moved: Integers | None = None) -> tuple[list[int], list[int]]:
        """A random form of the derivative in the random direction, by the forward and by the reverse rules.

        `moved` is how the outputs move in that direction, if it is known already.
        """
        program, field, direction = self.program, self.arithmetic.field, self.random_direction()
        moved = self.moved([direction])[0] if moved is None else moved
        form = np.random.default_rng([self.seed, self.p, 12]).integers(
            0, self.p, size=(1, program.output_count)
        )
        seeds = form_seeds(program, self.arithmetic, "R", form)
        every = np.arange(program.parameter_count)
        rows = jacobian_rows(program, self.arithmetic, self.values, seeds, every)[:, 0]
        flat = np.concatenate([direction[name].reshape(-1) for name in program.parameters])
        pushed = field.matmul(field.residues(moved), field.residues(form.T))
        pulled = field.matmul(rows, field.residues(flat[:, None]))
        return field.canonical(pushed[:, 0]).tolist(), field.canonical(pulled[:, 0]).tolist()


FLOAT_BITS = 53
BITS = 20
"""Weights and inputs are integers divided by 2^20."""

Report = Callable[[str], None]


def dyadic(array: np.ndarray) -> Integers:
    """Real numbers rounded to integers over 2^20: the numerators."""
    return np.asarray(np.rint(array * (1 << BITS)), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class DyadicPoint:
    """Weights by name and inputs by name (with a leading axis over samples), all integers to be divided by 2^`bits`."""

    weights: dict[str, Integers]
    inputs: dict[str, Integers]
    bits: int = BITS

    @property
    def samples(self) -> int:
        """Return the number of samples; a map without inputs has one."""
        return min((len(values) for values in self.inputs.values()), default=1)

    def floats(self) -> dict[str, Lettered]:
        """The point in float64, exactly."""
        one = 1 << self.bits
        plain = {name: Lettered("", value / one) for name, value in self.weights.items()}
        return plain | {name: Lettered("N", value / one) for name, value in self.inputs.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BallProof:
    """Full column rank of a block of the Jacobian.

    `rank` is the proved lower bound of the dimension; `columns` are flat weights, without those of the last layer `layer`, of
    which the block looks at `outputs` rows. `residual` bounds the largest row sum of |I - C T| and is below 1; `precision` are
    the bits of the midpoints.
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
    chosen = np.array(sorted(columns), dtype=np.int64)
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


def more_by_rounding(
    program: Program, given: Mapping[str, Lettered], columns: np.ndarray, **block: Any
) -> bool:
    """Whether rounding errors may add to the float64 rank of a block of the Jacobian: what cancels leaves lines of them."""
    return _enclosed(program, given, columns, FLOAT_BITS, **block).has_lines_around_zero


def enclosure(
    program: Program, point: DyadicPoint, columns: np.ndarray, *, bits: int = FLOAT_BITS, **block: Any
) -> Ball:
    """Balls around a block of the Jacobian (:func:`m2bridge.programs.jacobians.jacobian_block`) at a dyadic point."""
    return _enclosed(program, point.floats(), columns, bits, **block)


def _enclosed(
    program: Program, floats: Mapping[str, Lettered], columns: np.ndarray, bits: int, **block: Any
) -> Ball:
    arithmetic = BallArithmetic() if bits == FLOAT_BITS else ARB
    with precision(bits):
        given = {name: Lettered(v.lead, arithmetic.enter(v.array)) for name, v in floats.items()}
        found = jacobian_block(program, arithmetic, given, columns, **block)
        return found if isinstance(found, Ball) else ball_of_arb(found)
