"""Names of vector fields, where they are of a kind that people know: scalings, GL between layers, rotations, translations."""

from __future__ import annotations

from collections import defaultdict
from math import prod

import numpy as np

from m2bridge.programs.program import Program, Shape
from m2bridge.symmetry.fields import VectorField

Entry = tuple[str, tuple[int, ...]]
Move = tuple[tuple[int, ...], tuple[int, ...], int]
"""An entry of an array, the entry by which it moves, and the factor."""


def field_name(program: Program, field: VectorField) -> str | None:
    """What people call this field, or None."""
    if all(not monomial for _, _, monomial in field.terms):
        where = ", ".join(entry_name(entry(program, i)) for i in field.moved[:3])
        return f"{where} is not looked at" if len(field.moved) == 1 else f"translation of {where}"
    if field.degree == 2:
        return _rotation(program, field)
    if field.degree > 1 or any(not monomial for _, _, monomial in field.terms):
        return None
    moves: dict[str, list[Move]] = defaultdict(list)
    for i, c, (j,) in field.terms:
        (name, target), (other, source) = entry(program, i), entry(program, j)
        if name != other:
            return None
        moves[name].append((target, source, c))
    if all(target == source for moved in moves.values() for target, source, _ in moved):
        return _scaling(program, moves)
    return _mixing(program, moves)


def entry(program: Program, flat: int) -> Entry:
    """The array and the index of a flat weight."""
    for name, shape in program.parameters.items():
        if flat < prod(shape):
            return name, tuple(int(k) for k in np.unravel_index(flat, shape)) if shape else ()
        flat -= prod(shape)
    raise IndexError(flat)


def entry_name(found: Entry) -> str:
    """An entry as people write it: ``W[0,1]``."""
    name, index = found
    return f"{name}[{','.join(map(str, index))}]" if index else name


def slice_name(shape: Shape, indices: list[tuple[int, ...]]) -> str | None:
    """The slice of an array that these entries fill: all of it, or one index on some axes."""
    fixed = [{index[axis] for index in indices} for axis in range(len(shape))]
    words = [
        str(next(iter(values))) if len(values) == 1 and n > 1 else ":"
        for values, n in zip(fixed, shape, strict=True)
    ]
    count = prod(n for word, n in zip(words, shape, strict=True) if word == ":")
    if count != len(indices):
        return None
    return "" if all(word == ":" for word in words) else f"[{','.join(words)}]"


def _scaling(program: Program, moves: dict[str, list[Move]]) -> str | None:
    parts = []
    for name, moved in moves.items():
        by_factor: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for target, _, c in moved:
            by_factor[c].append(target)
        for c, indices in by_factor.items():
            where = slice_name(program.parameters[name], indices)
            if where is None:
                return "scaling of several entries"
            parts.append(f"{name}{where} by s^{c}" if c != 1 else f"{name}{where} by s")
    return "scaling: " + ", ".join(parts)


def _mixing(program: Program, moves: dict[str, list[Move]]) -> str | None:
    """E_ij along one axis of each array: GL(k) between layers, or a rotation where i and j change places in one array."""
    parts, rotated = [], False
    for name, moved in moves.items():
        pairs: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
        for target, source, c in moved:
            axes = [k for k, (a, b) in enumerate(zip(target, source, strict=True)) if a != b]
            if len(axes) != 1:
                return None
            (axis,) = axes
            pairs[axis, target[axis], source[axis]].append((*target, c))
        for (axis, i, j), entries in pairs.items():
            rest = prod(n for k, n in enumerate(program.parameters[name]) if k != axis)
            if len(entries) != rest or len({e[-1] for e in entries}) != 1:
                return None
            rotated |= (axis, j, i) in pairs
            parts.append(f"{name} axis {axis}: {i} from {j}")
    kind = "rotation, O(n)" if rotated else "GL between " + " and ".join(moves)
    return f"{kind} ({', '.join(parts)})"


def _rotation(program: Program, field: VectorField) -> str | None:
    """dw_i = v_j w_j, dw_j = -v_i w_i."""
    rows: set[tuple[str, int]] = set()
    for i, _, monomial in field.terms:
        name, target = entry(program, i)
        sources = [entry(program, j) for j in monomial]
        own = [index for other, index in sources if other == name]
        if len(monomial) != 2 or len(own) != 1 or len(target) != 2 or own[0][1] != target[1]:
            return None
        rows |= {(name, target[0]), (name, own[0][0])}
    if len(rows) != 2 or len({name for name, _ in rows}) != 1:
        return None
    (name, i), (_, j) = sorted(rows)
    return f"rotation, O(n), of rows {i} and {j} of {name}"
