"""Compare derivatives by the forward and by the reverse rules, at a random point over F_p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import PrimeFieldArithmetic
from m2bridge.programs.exponentials import Units
from m2bridge.programs.jacobians import form_seeds, jacobian_rows
from m2bridge.programs.points import Integers, draw_inputs, draw_weights, lettered
from m2bridge.programs.program import Program
from m2bridge.programs.roots import input_roots, seeds, weight_roots
from m2bridge.programs.run import Lettered, evaluate, flat_outputs, tangents

_SAMPLES = 2  # inputs at which derivatives are compared


class Probe:
    """A program with its values at random weights and two random inputs over F_p."""

    def __init__(
        self, program: Program, p: int, seed: int, weights: Mapping[str, Integers] | None = None
    ) -> None:
        self.program, self.p, self.seed = program, p, seed
        self.arithmetic = PrimeFieldArithmetic(field_of(p))
        of_weights = weight_roots(program, p=p, seed=seed)
        if weights is None or of_weights.roots:  # not all weights have square roots
            weights = draw_weights(program, p, seeds(seed, of_weights.first(1, witnesses=False))[0])
        self.weights = dict(weights)
        units = Units(program, {}, p=p, seed=seed)
        points = input_roots(program, self.weights, units.at, p=p, seed=seed + 1)
        draws = points.first(_SAMPLES, witnesses=False)
        self.inputs = draw_inputs(program, p, seed + 1, draws)
        arrays = lettered(self.arithmetic, self.weights) | lettered(self.arithmetic, self.inputs, "N")
        self.values = evaluate(program, self.arithmetic, arrays, units.at(draws))
        self._samples = _SAMPLES if program.inputs else 1

    def outputs(self) -> list[list[int]]:
        """Return the flat outputs at each input; one list for a map without inputs."""
        listed: list[list[int]] = self._flat(self.values, {}).tolist()
        return listed

    def derivatives(self, direction: Mapping[str, Integers]) -> list[list[int]]:
        """Return the derivative of the flat outputs in a direction of the weights, at each input, by the forward rules."""
        listed: list[list[int]] = self.moved([direction])[0].tolist()
        return listed

    def moved(self, directions: Sequence[Mapping[str, Integers]]) -> Integers:
        """Return the derivative of the flat outputs for each direction of the weights and each input, by the forward rules."""
        tables = {}
        for name, shape in self.program.parameters.items():
            if any(name in direction for direction in directions):
                zero = np.zeros(shape, dtype=np.int64)
                tables[name] = np.stack([direction.get(name, zero) for direction in directions])
        moved = lettered(self.arithmetic, tables, "T")
        derivatives = tangents(self.program, self.arithmetic, self.values, moved)
        return self._flat(derivatives, {"T": len(directions)})

    def _flat(self, items: Sequence[Lettered | None], sizes: dict[str, int]) -> Integers:
        outputs = flat_outputs(self.program, self.arithmetic, items, sizes | {"N": self._samples})
        return self.arithmetic.field.canonical(outputs)

    def random_direction(self) -> dict[str, Integers]:
        rng = np.random.default_rng([self.seed, self.p, 11])
        return {name: rng.integers(0, self.p, size=shape) for name, shape in self.program.parameters.items()}

    def both_ways(self, moved: Integers | None = None) -> tuple[list[int], list[int]]:
        """Return a random linear form of the derivative in a random direction, by the forward and by the reverse rules.

        `moved` is the derivative of the outputs in that direction, if it was computed before.
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
