"""Shifts of arrays inside exponentials that scalings outside undo: v exp(A x + b) with b -> b + t, v -> exp(-t) v.

Beside its label, the exponent of its scaling (:mod:`m2bridge.symmetry.tori`), each tensor has a shift, a number that is added
to its entries. Sums add shifts, and an exponential of a shifted tensor has the shift as its label; products, reciprocals, roots
and outputs admit none. All of this is linear, for each tuple of indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np

from m2bridge.symmetry.axis_groups import Labels, Node, entries_of
from m2bridge.symmetry.factored import FactoredProgram, Tensor
from m2bridge.symmetry.fields import Term, VectorField
from m2bridge.symmetry.shifts import Shift
from m2bridge.symmetry.tori import (
    axis_spaces,
    axis_tuples,
    chosen_spaces,
    common_kernel,
    independent_of,
    label_equations,
    multiple_of,
    nodes_by_letters,
    projected,
    total_of,
)

Form = dict[Node, Fraction]
"""A linear form in the unknown labels and shifts of weights."""


@dataclass(frozen=True, eq=False, slots=True)
class WeightMotion:
    """How a weight moves: `entries` are flat weights with axes (index, rest), with (label w + shift) t_i at index i."""

    name: str
    entries: np.ndarray
    label: int
    shift: int


@dataclass(frozen=True, eq=False, slots=True)
class ExponentShift:
    """Shifts of weights in exponents, undone by scalings: for each index one number t_i. Shifted weights come first."""

    motions: tuple[WeightMotion, ...]

    @property
    def dim(self) -> int:
        return len(self.motions[0].entries)

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the weights that move."""
        return tuple(dict.fromkeys(motion.name for motion in self.motions))

    @property
    def name(self) -> str:
        return f"R^{self.dim}"

    @property
    def text(self) -> str:
        """The shift in words."""
        count = "1 shift in an exponent" if self.dim == 1 else f"{self.dim} shifts in exponents"
        shifted = [f"{m.name} by {_multiple(m.shift)}" for m in self.motions if m.shift]
        scaled = [f"{m.name} by exp({_multiple(m.label)})" for m in self.motions if m.label]
        undone = f", undone by scaling {', '.join(scaled)}" if scaled else ""
        return f"{count}: {', '.join(shifted)}{undone}"

    def entries(self) -> list[np.ndarray]:
        """Return the flat weights that move, for each weight."""
        return [motion.entries for motion in self.motions]

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields, one for each index."""
        for index in range(self.dim):
            terms: list[Term] = []
            for motion in self.motions:
                for i in motion.entries[index].tolist():
                    terms += [(i, motion.label, (i,))] if motion.label else []
                    terms += [(i, motion.shift, ())] if motion.shift else []
            yield VectorField(tuple(sorted(terms)))


def exponent_shifts(program: FactoredProgram, shifts: Sequence[Shift]) -> list[ExponentShift]:
    """Return what is no combination of scalings, of shifts that no exponential sees, and of given shifts; large ones first."""
    if not any(item.operation == "exp" for item in program.tensors):
        return []
    spaces, found = axis_spaces(program), list[ExponentShift]()
    before = [_shift_labels(program, shift) for shift in shifts if shift.is_by_numbers]
    for choice in chosen_spaces(program, spaces):
        for motion in _solutions(program, spaces, choice, before):
            before.append(motion)
            found.append(_exponent_shift(program, motion))
    return found


def _shift_labels(program: FactoredProgram, shift: Shift) -> Labels:
    """Return the shift of one weight as the solution of the equations that it is."""
    k = shift.parts[0][0]
    axes = tuple(a for a in range(len(program.tensors[k].shape)) if a not in shift.along)
    return {(k + len(program.tensors), axes): Fraction(1)}


def _solutions(
    program: FactoredProgram,
    spaces: Sequence[Sequence[object]],
    choice: tuple[object, ...],
    before: Sequence[Labels],
) -> list[Labels]:
    """Solve for labels and shifts of weights at tuples of axes; node k + (number of tensors) is the shift of tensor k."""
    count = len(program.tensors)
    forms: dict[Node, Form] = {}
    labels: list[Node] = []
    shifts: list[Node] = []
    equations: list[Form] = []
    for index, item in enumerate(program.tensors):
        nodes = [(index, axes) for axes in axis_tuples(spaces[index], choice)]
        weight = item.operation == "weight"
        for _, axes in nodes:
            pair = (index, axes), (index + count, axes)
            forms |= {node: {node: Fraction(1)} if weight else {} for node in pair}
            labels += [pair[0]] if weight else []
            shifts += [pair[1]] if weight else []
        results = {tuple(item.result[a] for a in axes): (index, axes) for _, axes in nodes}
        for letters, sources in nodes_by_letters(item, spaces, choice).items():
            equations += _step(program, item, letters, results.get(letters), sources, forms)
    for k in program.outputs:
        equations += [forms[m, axes] for m in (k, k + count) for axes in axis_tuples(spaces[k], choice)]
    solutions = common_kernel(equations, [*shifts, *labels])
    powers = [
        forms[k, axes]
        for k, item in enumerate(program.tensors)
        for axes in (axis_tuples(spaces[k], choice) if item.operation == "exp" else ())
    ]
    scalings = [{node: Fraction(1)} for node in shifts]
    unseen = [*powers, *({node: Fraction(1)} for node in labels)]
    simpler = [
        solution
        for others in (scalings, unseen)
        for solution in common_kernel([*equations, *others], [*shifts, *labels])
    ]
    doubled = [*spaces, *spaces]
    return independent_of(solutions, [*simpler, *(projected(motion, doubled, choice) for motion in before)])


def _step(
    program: FactoredProgram,
    item: Tensor,
    letters: tuple[int, ...],
    result: Node | None,
    sources: Sequence[Node],
    forms: dict[Node, Form],
) -> list[Form]:
    """Set the label and the shift of a result, and return the forms that must vanish, for one tuple of letters of a step."""
    count = len(program.tensors)
    labels = [forms[node] for node in sources]
    shifts = [forms[k + count, axes] for k, axes in sources]
    if item.operation == "exp":
        assert result is not None, "exponentials keep all axes"
        forms[result] = total_of(shifts)
        return labels
    if not set(letters).isdisjoint(item.along):
        return [*labels, *shifts]
    equations = label_equations(item, result, sources, forms)
    if item.operation in ("softmax", "centred"):  # these do not see what is constant along their axes
        return equations
    factor = _factor_of_shifts(program, item)
    if result is None or factor is None:
        return [*equations, *shifts]
    forms[result[0] + count, result[1]] = multiple_of(total_of(shifts), factor)
    return equations


def _factor_of_shifts(program: FactoredProgram, item: Tensor) -> Fraction | int | None:
    """Return by what a step multiplies the shift of an operand; None if the result is not shifted by a number."""
    if item.operation == "add":
        return 1
    if item.operation == "scale":
        return item.number
    if item.operation == "einsum" and len(item.operands) == 1:
        sizes = dict(zip(item.letters[0], program.tensors[item.operands[0]].shape, strict=True))
        return prod(n for letter, n in sizes.items() if letter not in item.result)
    return None


def _exponent_shift(program: FactoredProgram, motion: Labels) -> ExponentShift:
    """Return the motion with integers without a common denominator, shifted weights first."""
    count, common = len(program.tensors), lcm(*(c.denominator for c in motion.values()))
    motions = []
    for k, axes in dict.fromkeys((k % count, axes) for k, axes in motion):
        item = program.tensors[k]
        entries = np.moveaxis(entries_of(item), axes, range(len(axes)))
        size = prod(item.shape[a] for a in axes)
        label, shift = (int(common * motion.get((m, axes), 0)) for m in (k, k + count))
        motions.append(WeightMotion(item.name, entries.reshape(size, -1), label, shift))
    return ExponentShift(
        tuple(sorted(motions, key=lambda m: (m.shift == 0, m.label != 0, int(m.entries.min()))))
    )


def _multiple(factor: int) -> str:
    return "t" if factor == 1 else "-t" if factor == -1 else f"{factor} t"
