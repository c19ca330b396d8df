"""Finite symmetries: permutations of equal slices (neurons, heads, channels).

A permutation of one index passes through a program when every instruction treats its axes alike: axes that an einsum, a sum or a
product ties together are permuted together. So the axes of all instructions fall into classes, and a class in which no axis
belongs to an input, an output or a constant, and none is cut or reshaped, carries a full symmetric group. This is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

from m2bridge.programs.program import Instruction, Program

Axis = tuple[int, int]
"""An instruction and an axis of its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteSymmetry:
    """A finite group acting on the weights: its name, order, which axes or arrays it acts on, and that it was verified."""

    group: str
    order: int
    acts_on: tuple[str, ...]
    verified: bool


def permutations(program: Program) -> list[FiniteSymmetry]:
    """Symmetric groups that permute equal slices."""
    parents: dict[Axis, Axis] = {}

    def root(axis: Axis) -> Axis:
        while parents.setdefault(axis, axis) != axis:
            axis = parents[axis]
        return axis

    pinned: set[Axis] = set()
    for place, item in enumerate(program.instructions):
        own = [(place, k) for k in range(len(item.shape))]
        if item.operation in ("input", "constant") or place in {k for _, k in program.outputs}:
            pinned.update(own)
        ties, held = _ties(program, place, item)
        pinned.update(held)
        for a, b in ties:
            parents[root(a)] = root(b)
    classes: dict[Axis, list[str]] = {}
    lengths: dict[Axis, int] = {}
    for name, place in program.weights.items():
        for k, n in enumerate(program.instructions[place].shape):
            if n > 1:
                classes.setdefault(root((place, k)), []).append(f"{name} axis {k}")
                lengths[root((place, k))] = n
    fixed = {root(axis) for axis in pinned}
    found = []
    for axis, names in classes.items():
        if axis not in fixed:
            n = lengths[axis]
            found.append(
                FiniteSymmetry(group=f"S_{n}", order=factorial(n), acts_on=tuple(names), verified=True)
            )
    return found


def _ties(program: Program, place: int, item: Instruction) -> tuple[list[tuple[Axis, Axis]], list[Axis]]:
    """Axes that are permuted together in one instruction, and axes that it does not let be permuted."""
    shapes = [program.instructions[k].shape for k in item.operands]
    axes = [[(k, a) for a in range(len(shape))] for k, shape in zip(item.operands, shapes, strict=True)]
    own = [(place, a) for a in range(len(item.shape))]
    if item.operation == "einsum":
        terms, result = item.constants
        by_letter: dict[str, list[Axis]] = {}
        for term, part in (*zip(terms, axes, strict=True), (result, own)):
            for letter, axis in zip(term, part, strict=True):
                by_letter.setdefault(letter, []).append(axis)
        return [(same[0], other) for same in by_letter.values() for other in same[1:]], []
    if item.operation in ("add", "multiply"):
        ties: list[tuple[Axis, Axis]] = []
        for shape, part in zip(shapes, axes, strict=True):
            shift = len(item.shape) - len(shape)
            for a, axis in enumerate(part):
                if shape[a] == item.shape[a + shift]:
                    ties.append((axis, own[a + shift]))
        return ties, []
    if item.operation in ("scale", "power", "exp", "reciprocal", "softmax"):
        return list(zip(axes[0], own, strict=True)), []
    if item.operation == "slice":
        kept = [c == (0, n, 1) for c, n in zip(item.constants, shapes[0], strict=True)]
        ties = [(a, b) for a, b, keep in zip(axes[0], own, kept, strict=True) if keep]
        return ties, [x for a, b, keep in zip(axes[0], own, kept, strict=True) if not keep for x in (a, b)]
    if item.operation == "reshape":
        before = [axis for axis, n in zip(axes[0], shapes[0], strict=True) if n > 1]
        after = [axis for axis, n in zip(own, item.shape, strict=True) if n > 1]
        if [n for n in shapes[0] if n > 1] == [n for n in item.shape if n > 1]:
            return list(zip(before, after, strict=True)), []
    return [], [axis for part in (*axes, own) for axis in part] if item.operands else []
