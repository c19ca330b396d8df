"""Vector fields with standard names: those of groups that a model names, candidates, and names of those that were found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from math import prod

import numpy as np

from m2bridge.families import Model
from m2bridge.families.symbolic import sparse, symbolic_weights
from m2bridge.families.symmetries import Symmetry
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.layers import powered_layer
from m2bridge.programs.program import Program, Shape
from m2bridge.symmetry.fields import VectorField

MOST_NAMED_WEIGHTS = 1500  # weights of a model whose fields are compared with known groups

Index = tuple[int, ...]
Move = tuple[Index, Index, int]
"""An entry of an array, the entry by which it moves, and the factor."""


# -- fields that are stated ------------------------------------------------------------------------------


def known_fields(model: Model) -> list[tuple[str, VectorField]]:
    """Return the infinitesimal generators of the groups that a model names, each with the name of its group."""
    if model.parameter_count > MOST_NAMED_WEIGHTS:
        return []
    return [
        (f"{symmetry.group}: {symmetry.name}", field)
        for symmetry in model.knowledge.symmetries
        for field in _generators(model, symmetry)
    ]


def _generators(model: Model, symmetry: Symmetry) -> list[VectorField]:
    """Return a basis of the Lie algebra of a group, as vector fields."""
    fields = []
    for row in symmetry.generators(symbolic_weights(model)[0]):
        terms = [
            (i, int(c), tuple(j for j, e in enumerate(exponents) for _ in range(e)))
            for i, entry in enumerate(row)
            if not isinstance(entry, int) and entry != 0
            for exponents, c in sparse(entry).items()
        ]
        if terms:
            fields.append(VectorField(tuple(terms)))
    return fields


def rotations(program: Program) -> Iterator[VectorField]:
    """Yield dw_i = v_j w_j, dw_j = -v_i w_i, rotations of a quadratic form, where a program computes sum_i v_i (w_i . h)^2."""
    items = program.instructions
    starts = {program.weights[name]: entries.start for name, _, entries in flat_parts(program.parameters)}
    for item in items:
        if item.operation != "einsum" or len(item.operands) != 2 or item.size != 1:
            continue
        for v, q in (item.operands, item.operands[::-1]):
            square = powered_layer(program, q) if v in starts else None
            if square is None or square[1] != 2 or items[v].size != square[0].rows:
                continue
            matrix, n, width = square[0].weight, square[0].rows, square[0].width
            for i, j in combinations(range(n), 2):
                terms = []
                for k in range(width):
                    at_i, at_j = (starts[matrix] + row * width + k for row in (i, j))
                    terms.append((at_i, 1, tuple(sorted((starts[v] + j, at_j)))))
                    terms.append((at_j, -1, tuple(sorted((starts[v] + i, at_i)))))
                yield VectorField(tuple(sorted(terms)))


# -- names of fields and entries -------------------------------------------------------------------------


def entry(program: Program, flat: int) -> tuple[str, Index]:
    """Return the array and the index of a flat weight."""
    for name, shape, entries in flat_parts(program.parameters):
        if flat < entries.stop:
            return name, tuple(int(k) for k in np.unravel_index(flat - entries.start, shape)) if shape else ()
    raise IndexError(flat)


def entry_name(name: str, index: Index) -> str:
    """Return an entry as people write it: ``W[0,1]``."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def slice_name(shape: Shape, indices: list[Index]) -> str | None:
    """Return the slice of an array that these entries fill: all of it, or one index on some axes."""
    fixed = [{index[axis] for index in indices} for axis in range(len(shape))]
    words = [
        str(next(iter(values))) if len(values) == 1 and n > 1 else ":"
        for values, n in zip(fixed, shape, strict=True)
    ]
    count = prod(n for word, n in zip(words, shape, strict=True) if word == ":")
    if count != len(indices):
        return None
    return "" if all(word == ":" for word in words) else f"[{','.join(words)}]"


def field_name(program: Program, field: VectorField) -> str | None:
    """Return what people call this field, or None."""
    if all(not monomial for _, _, monomial in field.terms):
        where = ", ".join(entry_name(*entry(program, i)) for i in field.moved[:3])
        return f"{where} is not used" if len(field.moved) == 1 else f"translation of {where}"
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


def _scaling(program: Program, moves: dict[str, list[Move]]) -> str | None:
    words = []
    for name, moved in moves.items():
        by_factor: dict[int, list[Index]] = defaultdict(list)
        for target, _, c in moved:
            by_factor[c].append(target)
        for c, indices in by_factor.items():
            where = slice_name(program.parameters[name], indices)
            if where is None:
                return "scaling of several entries"
            words.append(f"{name}{where} by s^{c}" if c != 1 else f"{name}{where} by s")
    return "scaling: " + ", ".join(words)


def _mixing(program: Program, moves: dict[str, list[Move]]) -> str | None:
    """Name E_ij along one axis of each array: GL(k) between layers, or a rotation where i and j change places in one array."""
    words, rotated = [], False
    for name, moved in moves.items():
        pairs: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for target, source, c in moved:
            axes = [k for k, (a, b) in enumerate(zip(target, source, strict=True)) if a != b]
            if len(axes) != 1:
                return None
            pairs[axes[0], target[axes[0]], source[axes[0]]].append(c)
        for (axis, i, j), factors in pairs.items():
            rest = prod(n for k, n in enumerate(program.parameters[name]) if k != axis)
            if len(factors) != rest or len(set(factors)) != 1:
                return None
            rotated |= (axis, j, i) in pairs
            words.append(f"{name} axis {axis}: {i} from {j}")
    kind = "rotation, O(n)" if rotated else "GL between " + " and ".join(moves)
    return f"{kind} ({', '.join(words)})"


def _rotation(program: Program, field: VectorField) -> str | None:
    """Name dw_i = v_j w_j, dw_j = -v_i w_i."""
    rows: set[tuple[str, int]] = set()
    for i, _, monomial in field.terms:
        name, target = entry(program, i)
        indices = [index for other, index in (entry(program, j) for j in monomial) if other == name]
        if len(monomial) != 2 or len(indices) != 1 or len(target) != 2 or indices[0][1] != target[1]:
            return None
        rows |= {(name, target[0]), (name, indices[0][0])}
    if len(rows) != 2 or len({name for name, _ in rows}) != 1:
        return None
    (name, i), (_, j) = sorted(rows)
    return f"rotation, O(n), of rows {i} and {j} of {name}"
