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
from fractions import Fraction

import numpy as np

from m2bridge.linear.numeric import Ball, ball_of_arb, full_rank_residual
from m2bridge.programs.arithmetics import ARB, Balls, arb_number, elementwise, precision
from m2bridge.programs.instructions import LETTERS
from m2bridge.programs.jacobians import LastLayer, columns_by_weight, cotangents, jacobian_block
from m2bridge.programs.points import Integers, draw_inputs, draw_weights, entered, residues_for
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, aligned, evaluate, tangents

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

    def changes(self, directions: Sequence[Mapping[str, Integers]]) -> list[bool]:
        """For each direction of the weights, whether an output moves in it, by the forward rules: one pass for all of them."""
        return [bool(moved.any()) for moved in self._moved(directions)] if directions else []

    def outputs(self) -> list[list[int]]:
        """The flat outputs at each input; one list for a map without inputs."""
        listed: list[list[int]] = self._flat(self.values, "N", (self._samples,)).tolist()
        return listed

    def derivatives(self, direction: Mapping[str, Integers]) -> list[list[int]]:
        """The derivative of the flat outputs in a direction of the weights, at each input, by the forward rules."""
        listed: list[list[int]] = self._moved([direction])[0].tolist()
        return listed

    def _moved(self, directions: Sequence[Mapping[str, Integers]]) -> Integers:
        tables = {}
        for name, shape in self.program.parameters.items():
            if any(name in direction for direction in directions):
                zero = np.zeros(shape, dtype=np.int64)
                tables[name] = np.stack([direction.get(name, zero) for direction in directions])
        moved = entered(self.arithmetic, tables, "T")
        found = tangents(self.program, self.arithmetic, self.values, moved)
        return self._flat(found, "TN", (len(directions), self._samples))

    def _flat(self, items: Sequence[Lettered | None], lead: str, sizes: tuple[int, ...]) -> Integers:
        """The flat outputs behind the axes `lead`."""
        parts = []
        for _, place in self.program.outputs:
            item, size = items[place], self.program.instructions[place].size
            table = np.zeros((1,) * len(lead) + (size,), dtype=np.int64)
            if item is not None:
                table = self.arithmetic.field.canonical(aligned(item, lead, len(item.core)))
            parts.append(np.broadcast_to(table.reshape(*table.shape[: len(lead)], size), (*sizes, size)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def random_direction(self) -> dict[str, Integers]:
        rng = np.random.default_rng([self.seed, self.p, 11])
        return {name: rng.integers(0, self.p, size=shape) for name, shape in self.program.parameters.items()}

    def both_ways(self) -> tuple[list[int], list[int]]:
        """A random form of the derivative in a random direction, by the forward and by the reverse rules."""
        program, arithmetic = self.program, self.arithmetic
        rng = np.random.default_rng([self.seed, self.p, 12])
        direction = self.random_direction()
        moved = entered(arithmetic, direction)
        found = tangents(program, arithmetic, self.values, moved)
        seeds: dict[int, Lettered] = {}
        pushed = pulled = Lettered("", arithmetic.zeros(()), arithmetic)
        for _, place in program.outputs:
            shape = program.instructions[place].shape
            form = Lettered("R", arithmetic.integers(rng.integers(0, self.p, size=(1, *shape))), arithmetic)
            seeds[place] = form if place not in seeds else seeds[place] + form
            item = found[place]
            if item is not None:
                letters = LETTERS[: len(shape)]
                pushed = pushed + item.contract(letters, form, letters, "")
        for name, item in cotangents(program, arithmetic, self.values, seeds, list(program.weights)).items():
            if item is not None:
                letters = LETTERS[: len(program.parameters[name])]
                pulled = pulled + item.contract(letters, moved[name], letters, "")
        both = [arithmetic.field.canonical(aligned(part, "NR", 0)).reshape(-1) for part in (pushed, pulled)]
        one, other = (part.tolist() for part in np.broadcast_arrays(*both))
        return one, other


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
    """Balls around a block of the Jacobian (:func:`m2bridge.programs.jacobians.jacobian_block`) at a dyadic point."""
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
