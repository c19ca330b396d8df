"""Making a program: instructions are added one by one, repeated ones are found again, dead ones are left out."""

from __future__ import annotations

from collections.abc import Sequence

from m2bridge.programs.program import Instruction, Program, Shape, check_program, instruction


class Builder:
    """A program that is being written. Places returned by :meth:`add` are final only after :meth:`finished`."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._known: dict[tuple[object, ...], int] = {}

    def shape(self, place: int) -> Shape:
        return self.instructions[place].shape

    def add(self, operation: str, operands: Sequence[int] = (), *constants: object, shape: Shape = ()) -> int:
        """The place of an instruction, which is made unless the same one is there already."""
        shapes = tuple(self.instructions[k].shape for k in operands)
        made = instruction(operation, constants, tuple(operands), shapes, shape)
        key = (made.operation, made.constants, made.operands, made.shape)
        if key not in self._known:
            self._known[key] = len(self.instructions)
            self.instructions.append(made)
        return self._known[key]

    def finished(self, outputs: Sequence[tuple[str, int]], vanishing: Sequence[int] = ()) -> Program:
        """The program of what was added, with declarations first and nothing that no output needs."""
        needed = set(vanishing) | {place for _, place in outputs}
        for place in reversed(range(len(self.instructions))):
            if place in needed:
                needed.update(self.instructions[place].operands)
        order = [
            k for kind in ("weight", "input") for k, i in enumerate(self.instructions) if i.operation == kind
        ]
        order += [k for k in sorted(needed) if self.instructions[k].operation not in ("weight", "input")]
        moved = {old: new for new, old in enumerate(order)}
        program = Program(
            tuple(_renumbered(self.instructions[k], moved) for k in order),
            tuple((name, moved[place]) for name, place in outputs),
            tuple(moved[place] for place in vanishing),
        )
        check_program(program)
        return program


def _renumbered(item: Instruction, moved: dict[int, int]) -> Instruction:
    return Instruction(item.operation, item.constants, tuple(moved[k] for k in item.operands), item.shape)
