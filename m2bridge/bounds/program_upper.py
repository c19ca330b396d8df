"""Upper bounds of the dimension of any program, each with the argument that a checker verifies.

The arguments, tried in this order until a lower bound is met: the weights; the coordinates; the weights minus the rank of
verified vector fields; equations; a last linear layer; compositions. Of an analytic program only weights and fields are used.
For a composition g(f(x), x) the bound is the sum of the bounds of both sides, minus the rank of the action of the program's
symmetries on the pair (f, g): at a generic point the differential of g(f(x), x) is a linear function of those of f and g, and it
vanishes on the tangent vectors of symmetries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import comb, prod

import numpy as np

from m2bridge.bounds.compositions import Composition, Side, compositions
from m2bridge.bounds.equations import equations_bound, flattening_bound
from m2bridge.bounds.upper_bound import Argument, UpperBound
from m2bridge.linear.modular import eliminate
from m2bridge.programs.arithmetics import ObjectArithmetic, object_array
from m2bridge.programs.layers import one_hidden_layer, output_layer
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Degrees, Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.programs.work import WorkBudget, of_cut
from m2bridge.symmetry.fields import VectorField, jacobian_at, product_mod

Fields = Mapping[VectorField, frozenset[int]]
"""Verified fields, each with the instructions that were used to verify it; none if that was the whole program."""
Attempt = tuple[int, Callable[[], UpperBound | None]]
"""The least value that an argument can give, and the function that computes its bound."""


class UpperBounds:
    """Upper bounds of a program and of the sides of its compositions; each program is bounded once."""

    def __init__(self, *, p: int, seed: int = 0, work: WorkBudget | None = None) -> None:
        self.p = p
        self.seed = seed
        self.work = work or WorkBudget()
        self._computed: dict[tuple[str, tuple[VectorField, ...]], UpperBound] = {}

    def best(self, program: Program, fields: Fields, lower: int = 0) -> UpperBound:
        """Return the least upper bound, given verified fields of the program; a bound that meets `lower` is final."""
        key = (program.text, tuple(fields))
        if key not in self._computed:
            best = UpperBound(
                value=program.parameter_count, method="number of weights", argument={"kind": "parameters"}
            )
            for least, attempt in self._attempts(program, fields, lower):
                if best.value <= lower:
                    break
                bound = attempt() if least < best.value else None
                if bound is not None and bound.value < best.value:
                    best = bound
            self._computed[key] = best
        return self._computed[key]

    def _attempts(self, program: Program, fields: Fields, lower: int) -> Iterator[Attempt]:
        """List the arguments in the order in which they are tried, each with the least value that it can give."""
        if not program.parameters:
            return
        settings: dict[str, int] = {"p": self.p, "seed": self.seed}
        if program.polynomial:
            yield 0, partial(_by_coordinates, program)
        if fields:
            yield program.parameter_count - len(fields), partial(self._by_fields, program, list(fields))
        if not program.polynomial:
            return
        if not program.inputs:
            yield 0, partial(equations_bound, program, lower=lower, **settings)
        if (shape := one_hidden_layer(program)) is not None:
            yield 0, partial(flattening_bound, *shape, **settings)
        yield 0, partial(_span, program)
        for composition in compositions(program):
            if not self.work.spend(of_cut(program)):
                return
            yield from self._at_composition(program, fields, composition)

    def _by_fields(self, program: Program, fields: Sequence[VectorField]) -> UpperBound:
        at = self._point(program)
        used = self._independent(fields, np.stack([field.at(at, self.p) for field in fields]))
        return UpperBound(
            value=program.parameter_count - len(used),
            method=f"weights minus the rank of {len(used)} verified vector fields",
            argument={"kind": "fields", **self._ranked(used)},
        )

    def _point(self, program: Program) -> Integers:
        """Draw the point at which fields are ranked; a certificate names it by its seed."""
        return integers(self.seed, WEIGHTS, program.parameter_count, self.p)

    def _ranked(self, fields: Sequence[VectorField]) -> Argument:
        """Return the entries of an argument that uses the rank of fields."""
        where = {"seed": self.seed, "stream": WEIGHTS, "fixed": []}
        written = [field.document for field in fields]
        return {"groups": [], "fields": written, "prime": self.p, "weights": where}

    def _independent(self, fields: Sequence[VectorField], rows: Integers) -> list[VectorField]:
        """Select as many fields as possible whose rows are independent modulo p."""
        return [fields[k] for k in sorted(eliminate(rows, self.p).pivot_rows)] if fields else []

    # -- compositions -------------------------------------------------------------------------------------

    def _at_composition(
        self, program: Program, fields: Fields, composition: Composition
    ) -> Iterator[Attempt]:
        sides = (composition.first, composition.second)
        first, second = (self.best(side.program, _restricted(side, fields)) for side in sides)
        across = [
            field
            for field, used in fields.items()
            if not any(_is_symmetry_of(side, field, used) for side in sides)
        ]
        behind = _behind_hypersurface(program, composition)
        for bound, moving, moved in ((behind, list(fields), sides[:1]), (second, across, sides)):
            if bound is not None:
                least = first.value + bound.value - len(moving)
                yield least, partial(self._composed, program, composition, first, bound, moving, moved)

    def _composed(
        self,
        program: Program,
        composition: Composition,
        first: UpperBound,
        second: UpperBound,
        fields: Sequence[VectorField],
        sides: Sequence[Side],
    ) -> UpperBound:
        """Add the bounds of both sides, and subtract the rank with which the fields move these sides."""
        moved, samples = self._moved(program, fields, sides)
        used = self._independent(fields, moved)
        argument = None
        if first.argument is not None and second.argument is not None:
            arguments = {"cut": composition.index, "first": first.argument, "second": second.argument}
            argument = {"kind": "composition", **arguments, **self._ranked(used), "samples": samples}
        sizes = f"{first.value} + {second.value} - {len(used)}"
        method = f"({first.method}) + ({second.method}) - {len(used)} at %{composition.index}: {sizes}"
        return UpperBound(value=first.value + second.value - len(used), method=method, argument=argument)

    def _moved(
        self, program: Program, fields: Sequence[VectorField], sides: Sequence[Side]
    ) -> tuple[Integers, int]:
        """Compute how the fields move the functions of the sides, at the point and at some inputs: one row per field."""
        columns = [np.zeros((len(fields), 0), dtype=np.int64)]
        samples = max(1 - (-len(fields) // side.program.output_count) for side in sides)
        at = self._point(program)
        directions = [field.at(at, self.p) for field in fields]
        for number, side in enumerate(sides if fields else ()):
            flat, width = list(side.flat), side.program.input_count
            if not flat:
                continue
            count = samples if width else 1
            inputs = integers(self.seed + 1 + number, INPUTS, count * width, self.p).reshape(count, width)
            table = jacobian_at(side.program, self.p, at[None, flat], inputs)
            columns.append(product_mod(np.stack(directions)[:, flat], table.reshape(-1, len(flat)).T, self.p))
        return np.concatenate(columns, axis=1), samples


def _is_symmetry_of(side: Side, field: VectorField, carried: frozenset[int]) -> bool:
    """Return whether a field is a symmetry of a side: every instruction that verified it is in the side."""
    return bool(carried) and field.involved.issubset(side.flat) and carried.issubset(side.indices)


def _restricted(side: Side, fields: Fields) -> Fields:
    """Restrict the fields that are symmetries of a side to its weights and instructions."""
    weight = {flat: k for k, flat in enumerate(side.flat)}
    index = {program_index: k for k, program_index in enumerate(side.indices) if program_index is not None}
    restricted = {}
    for field, carried in fields.items():
        if _is_symmetry_of(side, field, carried):
            terms = tuple((weight[i], c, tuple(weight[j] for j in m)) for i, c, m in field.terms)
            restricted[VectorField(terms)] = frozenset(index[k] for k in carried)
    return restricted


def _behind_hypersurface(program: Program, composition: Composition) -> UpperBound | None:
    """Bound the second side modulo one equation, if it has one input more than the network.

    n + 1 forms of degree d in n variables satisfy an equation F of degree D <= d^(n-1) (Bezout). Two second sides of degree e
    that differ by a multiple of F give the same function, so that each output counts C(e+n, n) - C(e-D+n, n).
    """
    n, second = program.input_count, composition.second.program
    if n < 2 or second.input_count != n + 1 or len(second.inputs) != 1:
        return None
    d, e = common_degree(composition.first.program), common_degree(second)
    if not d or not e or e < d ** (n - 1):
        return None
    degree = d ** (n - 1)
    return UpperBound(
        value=second.output_count * (comb(e + n, n) - comb(e - degree + n, n)),
        method=f"forms of degree {e} modulo one of degree {degree}",
        argument={"kind": "hypersurface"},
    )


# -- arguments without a search --------------------------------------------------------------------------


def _by_coordinates(program: Program) -> UpperBound:
    value = coordinate_count(program)
    return UpperBound(value=value, method="number of coordinates", argument={"kind": "coordinates"})


def _span(program: Program) -> UpperBound | None:
    """Bound a last linear layer V z: its m outputs are in the span of the n entries of z, an m x M matrix of rank at most n."""
    layer = output_layer(program)
    if layer is None or layer.columns is not None or not program.inputs:
        return None
    m = layer.rows
    n = layer.width
    coordinates_per_row = coordinate_count(program) // layer.rows
    if n >= min(m, coordinates_per_row):
        return None
    return UpperBound(
        value=n * (m + coordinates_per_row - n),
        method=f"{m} outputs in the span of {n} forms",
        argument={"kind": "span"},
    )


def _output_degrees(program: Program) -> list[list[int]]:
    """List for each flat output the degrees in the input entries that can occur."""
    arrays = {}
    for shapes, bits in ((program.parameters, 1), (program.input_shapes, 2)):
        for name, shape in shapes.items():
            arrays[name] = Lettered("", object_array([Degrees(bits)] * prod(shape), shape))
    values = evaluate(program, ObjectArithmetic(lambda q: Degrees(1 if q else 0)), arrays)
    return [entry.members for _, index in program.outputs for entry in values[index].array.reshape(-1)]


def coordinate_count(program: Program) -> int:
    """Count the coefficients that the outputs can have: monomials in the inputs of all degrees that can occur."""
    n = program.input_count
    if not n:
        return program.output_count
    return sum(comb(n + d - 1, d) for members in _output_degrees(program) for d in members)


def common_degree(program: Program) -> int | None:
    """Return the one degree in which all outputs are homogeneous, or None."""
    degrees = {d for members in _output_degrees(program) for d in members}
    return degrees.pop() if len(degrees) == 1 else None
