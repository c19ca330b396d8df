"""Checks of a program's derivatives that are made on every run: each compares two computations that could differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from m2bridge.linear.residues import field_of
from m2bridge.programs import lettered
from m2bridge.programs.arithmetics import Residues
from m2bridge.programs.lettered import Lettered
from m2bridge.programs.points import Integers, draw_inputs, draw_weights
from m2bridge.programs.program import Program
from m2bridge.programs.reverse import cotangents
from m2bridge.programs.run import evaluate, tangents

_SAMPLES = 2


class Probe:
    """A program with its values at random weights and two random inputs over F_p."""

    def __init__(
        self, program: Program, p: int, seed: int, weights: Mapping[str, Integers] | None = None
    ) -> None:
        self.program, self.p, self.seed = program, p, seed
        rng = None if program.polynomial else np.random.default_rng([seed, 3])
        self.arithmetic = Residues(field_of(p), rng)
        self.weights = draw_weights(program, p, seed) if weights is None else dict(weights)
        inputs = draw_inputs(program, p, seed + 1, _SAMPLES)
        self.inputs = inputs
        given = {name: Lettered("", self.arithmetic.integers(value)) for name, value in self.weights.items()}
        given |= {name: Lettered("N", self.arithmetic.integers(value)) for name, value in inputs.items()}
        self.values = evaluate(program, self.arithmetic, given)

    def changes(self, directions: Sequence[Mapping[str, Integers]]) -> list[bool]:
        """For each direction of the weights, whether an output moves in it, by the forward rules: one pass for all of them."""
        if not directions:
            return []
        moved = {}
        for name, shape in self.program.parameters.items():
            if any(name in direction for direction in directions):
                zero = np.zeros(shape, dtype=np.int64)
                table = np.stack([direction.get(name, zero) for direction in directions])
                moved[name] = Lettered("T", self.arithmetic.integers(table))
        found = tangents(self.program, self.arithmetic, self.values, moved)
        changed = np.zeros(len(directions), dtype=bool)
        for _, place in self.program.outputs:
            item = found[place]
            if item is not None:
                array = lettered.aligned(item, "TN", len(item.core))
                changed |= self.arithmetic.field.canonical(array).reshape(len(array), -1).any(axis=1)
        return [bool(change) for change in changed]

    def outputs(self) -> list[list[int]]:
        """The flat outputs at each input; one list for a map without inputs."""
        return self._by_input(self.values)

    def derivatives(self, direction: Mapping[str, Integers]) -> list[list[int]]:
        """The derivative of the flat outputs in a direction of the weights, at each input, by the forward rules."""
        moved = {name: Lettered("", self.arithmetic.integers(value)) for name, value in direction.items()}
        return self._by_input(tangents(self.program, self.arithmetic, self.values, moved))

    def _by_input(self, items: Sequence[Lettered | None]) -> list[list[int]]:
        samples = _SAMPLES if self.program.inputs else 1
        parts = []
        for _, place in self.program.outputs:
            item, size = items[place], self.program.instructions[place].size
            flat = np.zeros((1, size), dtype=np.int64)
            if item is not None:
                array = lettered.aligned(item, "N", len(item.core))
                flat = self.arithmetic.field.canonical(array).reshape(-1, size)
            parts.append(np.broadcast_to(flat, (samples, size)))
        listed: list[list[int]] = np.concatenate(parts, axis=1).tolist()
        return listed

    def random_direction(self) -> dict[str, Integers]:
        rng = np.random.default_rng([self.seed, self.p, 11])
        return {name: rng.integers(0, self.p, size=shape) for name, shape in self.program.parameters.items()}

    def both_ways(self) -> tuple[list[int], list[int]]:
        """A random form of the derivative in a random direction, by the forward and by the reverse rules."""
        field, arithmetic = self.arithmetic.field, self.arithmetic
        direction = self.random_direction()
        rng = np.random.default_rng([self.seed, self.p, 12])
        seeds: dict[int, Lettered] = {}
        pushed = arithmetic.zeros((1,))
        moved = {name: Lettered("", arithmetic.integers(value)) for name, value in direction.items()}
        found = tangents(self.program, arithmetic, self.values, moved)
        for _, place in self.program.outputs:
            shape = self.program.instructions[place].shape
            form = Lettered("R", arithmetic.integers(rng.integers(0, self.p, size=(1, *shape))))
            seeds[place] = form if place not in seeds else lettered.add(arithmetic, seeds[place], form)
            item = found[place]
            if item is not None:
                letters = "abcdefghijklmnopqrst"[: len(shape)]
                pushed = arithmetic.add(
                    pushed, _by_sample(lettered.contract(arithmetic, item, letters, form, letters, ""))
                )
        pulled = arithmetic.zeros((1,))
        for name, cotangent in cotangents(
            self.program, arithmetic, self.values, seeds, list(self.program.weights)
        ).items():
            if cotangent is not None:
                letters = "abcdefghijklmnopqrst"[: len(self.program.parameters[name])]
                part = lettered.contract(arithmetic, cotangent, letters, moved[name], letters, "")
                pulled = arithmetic.add(pulled, _by_sample(part))
        size = max(pushed.size, pulled.size)
        return (
            np.broadcast_to(field.canonical(pushed), (size,)).tolist(),
            np.broadcast_to(field.canonical(pulled), (size,)).tolist(),
        )


def _by_sample(item: Lettered) -> np.ndarray:
    """A number for each sample (one number where they do not depend on it)."""
    array: np.ndarray = lettered.aligned(item, "NR", 0)
    return array.reshape(prod(array.shape))
