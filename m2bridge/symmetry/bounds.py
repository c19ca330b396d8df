"""Upper bounds of the dimension of any program, each with the argument that a checker verifies.

The arguments, tried in this order until a lower bound is met: the weights; the coordinates; the weights minus the rank of
verified vector fields; equations; a last linear layer; and for every cut of the program the sum of the bounds of its parts
minus the rank with which fields of the whole move the pair of parts: at a generic point the differential of g(f(x), x) is a
linear map of those of f and g, and zero on what a symmetry moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import eliminate
from m2bridge.programs.arithmetics import ObjectArithmetic, object_array
from m2bridge.programs.instructions import ANALYTIC
from m2bridge.programs.layers import one_hidden_layer, output_layer
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Degrees, Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.programs.work import OF_ANALYTIC, WorkBudget, of_cut
from m2bridge.symmetry.equations import Bound, equations_bound, flattening_bound
from m2bridge.symmetry.fields import VectorField, jacobian_at, product_mod
from m2bridge.symmetry.parts import Cut, Part, cuts, pieces, rank_of, relaxed
from m2bridge.symmetry.search import Search

MOST_RELAXED_WEIGHTS = 2500
MOST_WEIGHTS_OF_A_PIECE = 700
"""Larger pieces are not searched for symmetries: all their weights count."""

Document = dict[str, Any]
Fields = Mapping[VectorField, frozenset[int]]
"""Verified fields, each with the instructions that were looked at to verify it; none if that was the whole program."""
Argument = tuple[int, Callable[[], Bound | None]]
"""The least value that an argument can give, and how its bound is computed."""


class Bounds:
    """Upper bounds of a program and its parts; those of a part are computed once."""

    def __init__(self, *, p: int, seed: int = 0, work: WorkBudget | None = None) -> None:
        self.p, self.seed = p, seed
        self.work = work or WorkBudget()
        self._known: dict[tuple[str, tuple[VectorField, ...]], Bound] = {}

    def best(self, program: Program, fields: Fields, lower: int = 0) -> Bound:
        """The least upper bound that is found, given verified fields of the program; a bound that meets `lower` is final."""
        key = (program.text, tuple(fields))
        if key not in self._known:
            best = Bound(
                value=program.parameter_count, method="number of weights", document={"kind": "parameters"}
            )
            for least, argument in self._arguments(program, fields, lower):
                if best.value <= lower:
                    break
                found = argument() if least < best.value else None
                if found is not None and found.value < best.value:
                    best = found
            self._known[key] = best
        return self._known[key]

    def _arguments(self, program: Program, fields: Fields, lower: int) -> Iterator[Argument]:
        """The arguments in the order in which they are tried, each with the least value that it can give."""
        if not program.parameters:
            return
        over: dict[str, int] = {"p": self.p, "seed": self.seed}
        yield 0, partial(_by_coordinates, program)
        if fields:
            yield program.parameter_count - len(fields), partial(self._by_fields, program, list(fields))
        if not program.inputs:
            yield 0, partial(equations_bound, program, lower=lower, **over)
        if (shape := one_hidden_layer(program)) is not None:
            yield 0, partial(flattening_bound, *shape, **over)
        yield 0, partial(_span, program)
        for cut in cuts(program):
            if not self.work.spend(of_cut(program)):
                return
            yield from self._at_cut(program, fields, cut)

    def _by_fields(self, program: Program, fields: Sequence[VectorField]) -> Bound:
        at = self._point(program)
        used, rank = self._independent(fields, np.stack([field.at(at, self.p) for field in fields]))
        return Bound(
            value=program.parameter_count - rank,
            method=f"weights minus the rank of {rank} verified vector fields",
            document={"kind": "fields", **self._ranked(used)},
        )

    def _point(self, program: Program) -> Integers:
        """The point at which fields are ranked; a certificate names it by its seed."""
        return integers(self.seed, WEIGHTS, program.parameter_count, self.p)

    def _ranked(self, fields: Sequence[VectorField]) -> Document:
        """What certificates say of fields whose rank is used."""
        where = {"seed": self.seed, "stream": WEIGHTS, "fixed": []}
        written = [field.document for field in fields]
        return {"groups": [], "fields": written, "prime": self.p, "weights": where}

    def _independent(self, fields: Sequence[VectorField], rows: Integers) -> tuple[list[VectorField], int]:
        """Fields whose rows are independent modulo p, and how many they are."""
        if not fields:
            return [], 0
        found = eliminate(rows, self.p)
        return [fields[k] for k in sorted(found.pivot_rows)], found.rank

    # -- cuts ---------------------------------------------------------------------------------------------

    def _at_cut(self, program: Program, fields: Fields, cut: Cut) -> Iterator[Argument]:
        parts = (cut.first, cut.second)
        first, second = (self.best(part.program, _restricted(part, fields)) for part in parts)
        across = [
            field for field, seen in fields.items() if not any(_lives_in(part, field, seen) for part in parts)
        ]
        behind = _behind_hypersurface(program, cut)
        for bound, moving, moved in ((behind, list(fields), parts[:1]), (second, across, parts)):
            if bound is not None:
                least = first.value + bound.value - len(moving)
                yield least, partial(self._composed, program, cut, first, bound, moving, moved)

    def _composed(
        self,
        program: Program,
        cut: Cut,
        first: Bound,
        second: Bound,
        fields: Sequence[VectorField],
        parts: Sequence[Part],
    ) -> Bound:
        """The sum of the bounds of both sides minus the rank with which the fields move these parts."""
        moved, samples = self._moved(program, fields, parts)
        used, rank = self._independent(fields, moved)
        document = None
        if first.document is not None and second.document is not None:
            sides = {"cut": cut.place, "first": first.document, "second": second.document}
            document = {"kind": "composition", **sides, **self._ranked(used), "samples": samples}
        sizes = f"{first.value} + {second.value} - {rank}"
        method = f"({first.method}) + ({second.method}) - {rank} at %{cut.place}: {sizes}"
        return Bound(value=first.value + second.value - rank, method=method, document=document)

    def _moved(
        self, program: Program, fields: Sequence[VectorField], parts: Sequence[Part]
    ) -> tuple[Integers, int]:
        """How the fields move the functions of the parts, at the point and at some inputs: one row a field."""
        columns = [np.zeros((len(fields), 0), dtype=np.int64)]
        samples = max(1 - (-len(fields) // part.program.output_count) for part in parts)
        at = self._point(program)
        directions = [field.at(at, self.p) for field in fields]
        for number, part in enumerate(parts if fields else ()):
            flat, width = list(part.flat), part.program.input_count
            if not flat:
                continue
            count = samples if width else 1
            inputs = integers(self.seed + 1 + number, INPUTS, count * width, self.p).reshape(count, width)
            table = jacobian_at(part.program, self.p, at[None, flat], inputs)
            columns.append(product_mod(np.stack(directions)[:, flat], table.reshape(-1, len(flat)).T, self.p))
        return np.concatenate(columns, axis=1), samples


def _lives_in(part: Part, field: VectorField, carried: frozenset[int]) -> bool:
    """Whether a field is a symmetry of a part: all that was looked at to verify it is in the part."""
    return bool(carried) and field.involved.issubset(part.flat) and carried.issubset(part.places)


def _restricted(part: Part, fields: Fields) -> Fields:
    """The fields that are symmetries of a part, on its weights and places."""
    weight = {flat: k for k, flat in enumerate(part.flat)}
    place = {whole: k for k, whole in enumerate(part.places) if whole is not None}
    found = {}
    for field, carried in fields.items():
        if _lives_in(part, field, carried):
            terms = tuple((weight[i], c, tuple(weight[j] for j in m)) for i, c, m in field.terms)
            found[VectorField(terms)] = frozenset(place[k] for k in carried)
    return found


def _behind_hypersurface(program: Program, cut: Cut) -> Bound | None:
    """Behind a cut with one entry more than the network has inputs, the second part matters modulo one equation.

    n + 1 forms of degree d in n variables satisfy an equation F of degree D <= d^(n-1) (Bezout). Two second parts of degree e
    that differ by a multiple of F give the same function, so that each output counts C(e+n, n) - C(e-D+n, n).
    """
    n, second = program.input_count, cut.second.program
    if n < 2 or second.input_count != n + 1 or len(second.inputs) != 1:
        return None
    d, e = common_degree(cut.first.program), common_degree(second)
    if not d or not e or e < d ** (n - 1):
        return None
    degree = d ** (n - 1)
    return Bound(
        value=second.output_count * (comb(e + n, n) - comb(e - degree + n, n)),
        method=f"forms of degree {e} modulo one of degree {degree}",
        document={"kind": "hypersurface"},
    )


# -- arguments without a search --------------------------------------------------------------------------


def _by_coordinates(program: Program) -> Bound:
    value = coordinate_count(program)
    return Bound(value=value, method="number of coordinates", document={"kind": "coordinates"})


def _span(program: Program) -> Bound | None:
    """A last linear layer V z: its m outputs are in the span of the n entries of z, an m x M matrix of rank at most n."""
    layer = output_layer(program)
    if layer is None or layer.columns is not None or not program.inputs:
        return None
    m, n, each = layer.rows, layer.width, coordinate_count(program) // layer.rows
    if n >= min(m, each):
        return None
    return Bound(
        value=n * (m + each - n), method=f"{m} outputs in the span of {n} forms", document={"kind": "span"}
    )


def _output_degrees(program: Program) -> list[list[int]]:
    """For each flat output, the degrees in the input entries that can occur."""
    given = {}
    for shapes, bits in ((program.parameters, 1), (program.input_shapes, 2)):
        for name, shape in shapes.items():
            given[name] = Lettered("", object_array([Degrees(bits)] * prod(shape), shape))
    values = evaluate(program, ObjectArithmetic(lambda q: Degrees(1 if q else 0)), given)
    return [entry.members for _, place in program.outputs for entry in values[place].array.reshape(-1)]


def coordinate_count(program: Program) -> int:
    """How many coefficients the outputs can have: monomials in the inputs of all degrees that can occur."""
    n = program.input_count
    if not n:
        return program.output_count
    return sum(comb(n + d - 1, d) for members in _output_degrees(program) for d in members)


def common_degree(program: Program) -> int | None:
    """The one degree in which all outputs are homogeneous, or None."""
    found = {d for members in _output_degrees(program) for d in members}
    return found.pop() if len(found) == 1 else None


# -- analytic programs -----------------------------------------------------------------------------------


def relaxed_bound(
    program: Program, *, lower: int, p: int, seed: int, work: WorkBudget | None = None
) -> Bound | None:
    """An upper bound for an analytic program, through the pieces of a polynomial one; None for large ones.

    `lower` is a lower bound: where the pieces' ranks add up to it, cutting loses nothing.
    """
    if program.parameter_count > MOST_RELAXED_WEIGHTS:
        return None
    work = work or WorkBudget(OF_ANALYTIC)
    analytic = {k for k, item in enumerate(program.instructions) if item.operation in ANALYTIC}
    parts = pieces(relaxed(program, analytic), rank=lower, p=p, seed=seed, work=work)
    different = list(dict.fromkeys(parts))
    bounds: dict[Program, int] = {}
    for number, part in enumerate(different):
        bounds[part] = _piece_bound(part, p=p, seed=seed, work=work.share(1 / (len(different) - number)))
    count = f"{len(parts)} pieces that share no weights, " if len(parts) > 1 else ""
    method = f"{count}new inputs in the place of analytic steps: weights minus verified vector fields"
    return Bound(value=sum(bounds[part] for part in parts), method=method, document=None)


def _piece_bound(part: Program, *, p: int, seed: int, work: WorkBudget) -> int:
    if part.parameter_count > MOST_WEIGHTS_OF_A_PIECE or work.left <= 0:
        return part.parameter_count
    rank = rank_of(part, p, seed)
    search = Search(part, p=p, seed=seed, work=work.share(0.9), corank=part.parameter_count - rank).run(1)
    return Bounds(p=p, seed=seed, work=work).best(part, search.fields, rank).value
