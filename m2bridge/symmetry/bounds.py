"""Upper bounds of the dimension of any program, each with the argument that a checker verifies.

A bound is the least of these: the weights; the coordinates; the weights minus the rank of verified vector fields; what is known
of perceptrons with one hidden layer; the rank of a last linear layer; and for every cut of the
program the sum of the bounds of its parts minus the rank with which fields of the whole move the pair of parts:
at a generic point the differential of g(f(x), x) is a linear map of those of f and g, and zero on what a symmetry moves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import eliminate
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Program
from m2bridge.symmetry.cuts import Cut, Part, cuts, place_in_part
from m2bridge.symmetry.degrees import common_degree, coordinate_count
from m2bridge.symmetry.equations import equations_bound
from m2bridge.symmetry.fields import VectorField, jacobian_at, product_mod
from m2bridge.symmetry.flattening import flattening_bound

Document = dict[str, Any]
Fields = Mapping[VectorField, frozenset[int]]
"""Verified fields, each with the instructions that were looked at to verify it; none if that was the whole program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An upper bound of the dimension: its value, how it was found in words, and the argument for a certificate.

    `document` is None where certificates have no words for an argument.
    """

    value: int
    method: str
    document: Document | None


class Bounds:
    """Upper bounds of a program and its parts; those of a part are computed once."""

    def __init__(self, *, p: int, seed: int = 0, seconds: float = 20.0) -> None:
        self.p, self.seed = p, seed
        self.until = time.monotonic() + seconds
        self._known: dict[tuple[str, tuple[VectorField, ...]], Bound] = {}

    def best(self, program: Program, fields: Fields, lower: int = 0) -> Bound:
        """The least upper bound that is found, given verified fields of the program; a bound that meets `lower` is final."""
        key = (program.text, tuple(fields))
        if key not in self._known:
            self._known[key] = self._best(program, fields, lower)
        return self._known[key]

    def _best(self, program: Program, fields: Fields, lower: int) -> Bound:
        best = self._plain(program, list(fields), lower)
        if best.value <= lower or not program.parameters:
            return best
        for cut in cuts(program):
            if time.monotonic() > self.until:
                break
            for found in (
                self._behind_hypersurface(program, fields, cut),
                self._composed(program, fields, cut, best),
            ):
                if found is not None and found.value < best.value:
                    best = found
            if best.value <= lower:
                break
        return best

    # -- bounds of a program as it stands -----------------------------------------------------------------

    def _plain(self, program: Program, fields: Sequence[VectorField], lower: int) -> Bound:
        count = program.parameter_count
        found = [Bound(value=count, method="number of weights", document={"kind": "parameters"})]
        if not count:
            return found[0]
        found.append(
            Bound(
                value=coordinate_count(program),
                method="number of coordinates",
                document={"kind": "coordinates"},
            )
        )
        if fields:
            found.append(self._by_fields(program, fields))
        if not program.inputs and min(bound.value for bound in found) > lower:
            found += self._equations(program, lower)
        found += [bound for bound in (self._perceptron(program), _span(program)) if bound]
        return min(found, key=lambda bound: (bound.value, bound.document is None))

    def point(self, program: Program) -> Integers:
        """The point at which fields are ranked; a certificate names it by its seed."""
        return integers(self.seed, WEIGHTS, program.parameter_count, self.p)

    def _named_point(self) -> Document:
        return {"seed": self.seed, "stream": WEIGHTS, "fixed": []}

    def _by_fields(self, program: Program, fields: Sequence[VectorField]) -> Bound:
        at = self.point(program)
        found = eliminate(np.stack([field.at(at, self.p) for field in fields]), self.p)
        used = [fields[k] for k in sorted(found.pivot_rows)]
        return Bound(
            value=program.parameter_count - found.rank,
            method=f"weights minus the rank of {len(used)} verified vector fields",
            document={
                "kind": "fields",
                "groups": [],
                "fields": [field.document for field in used],
                "prime": self.p,
                "weights": self._named_point(),
            },
        )

    def _equations(self, program: Program, lower: int) -> list[Bound]:
        """Equations of a map without inputs, where they are within reach."""
        found = equations_bound(program, p=self.p, seed=self.seed, lower=lower)
        if found is None:
            return []
        value, document = found
        count = len(document["equations"])
        method = f"coordinates minus the rank of {count} verified equations"
        return [Bound(value=value, method=method, document=document)]

    def _perceptron(self, program: Program) -> Bound | None:
        shape = one_hidden_layer(program)
        found = None if shape is None else flattening_bound(*shape, p=self.p, seed=self.seed)
        if found is None:
            return None
        method = f"coordinates minus independent equations: {found.name} of rank <= {found.rank}"
        return Bound(value=found.value, method=method, document=found.document)

    # -- bounds from cuts ---------------------------------------------------------------------------------

    def _part_bound(self, part: Part, fields: Fields) -> Bound:
        return self.best(part.program, self._restricted(part, fields))

    def _restricted(self, part: Part, fields: Fields) -> Fields:
        """The fields that live in a part and are symmetries of it: all that was looked at to verify them is in the part."""
        weight = {flat: k for k, flat in enumerate(part.flat)}
        place = {whole: k for k, whole in enumerate(part.places) if whole is not None}
        return {
            VectorField(
                tuple((weight[i], c, tuple(weight[j] for j in m)) for i, c, m in field.terms)
            ): frozenset(place[k] for k in carried)
            for field, carried in fields.items()
            if all(i in weight and all(j in weight for j in m) for i, _, m in field.terms)
            and carried
            and all(k in place for k in carried)
        }

    def _composed(self, program: Program, fields: Fields, cut: Cut, best: Bound) -> Bound | None:
        inner, second = self._part_bound(cut.inner, fields), self._part_bound(cut.second, fields)
        sides = [set(cut.inner.flat), set(cut.second.flat)]
        across = [field for field in fields if not any(side.issuperset(field.involved) for side in sides)]
        if inner.value + second.value - len(across) >= best.value:
            return None
        moved, samples = self._moved(program, across, [cut.inner, cut.second])
        found = eliminate(moved, self.p) if across else None
        rank = found.rank if found else 0
        used = [across[k] for k in sorted(found.pivot_rows)] if found else []
        document = None
        first = self._stripped(program, cut, inner)
        if first is not None and second.document is not None:
            document = self._composition(cut.late, first, second.document, used, samples)
        return Bound(
            value=inner.value + second.value - rank,
            method=f"({inner.method}) + ({second.method}) - {rank} at %{cut.late}: "
            f"{inner.value} + {second.value} - {rank}",
            document=document,
        )

    def _composition(
        self, cut: int, first: Document, second: Document, used: Sequence[VectorField], samples: int
    ) -> Document:
        return {
            "kind": "composition",
            "cut": cut,
            "first": first,
            "second": second,
            "groups": [],
            "fields": [field.document for field in used],
            "prime": self.p,
            "weights": self._named_point(),
            "samples": samples,
        }

    def _stripped(self, program: Program, cut: Cut, inner: Bound) -> Document | None:
        """The bound of the first part, which is its inner part with a function without weights behind it."""
        if inner.document is None or cut.early == cut.late:
            return inner.document
        place = place_in_part(program, [cut.late], cut.early)
        return self._composition(place, inner.document, {"kind": "parameters"}, [], 1)

    def _moved(
        self, program: Program, fields: Sequence[VectorField], parts: Sequence[Part]
    ) -> tuple[Integers, int]:
        """How the fields move the functions of the parts, at the point and at some inputs: one row a field."""
        at, columns = self.point(program), [np.zeros((len(fields), 0), dtype=np.int64)]
        samples = max(1 - (-len(fields) // part.program.output_count) for part in parts)
        directions = [field.at(at, self.p) for field in fields]
        for number, part in enumerate(parts if fields else ()):
            flat = list(part.flat)
            if not flat:
                continue
            width = sum(prod(shape) for shape in part.program.input_shapes.values())
            count = samples if width else 1
            inputs = integers(self.seed + 1 + number, INPUTS, count * width, self.p).reshape(count, width)
            table = jacobian_at(part.program, self.p, at[None, flat], inputs)
            columns.append(product_mod(np.stack(directions)[:, flat], table.reshape(-1, len(flat)).T, self.p))
        return np.concatenate(columns, axis=1), samples

    def _behind_hypersurface(self, program: Program, fields: Fields, cut: Cut) -> Bound | None:
        """Behind a cut with one entry more than the network has inputs, the second part matters modulo one equation.

        n + 1 forms of degree d in n variables satisfy an equation F of degree D <= d^(n-1) (Bezout). Two second parts of degree e
        that differ by a multiple of F give the same function, so that each output counts C(e+n, n) - C(e-D+n, n).
        """
        inputs = sum(prod(shape) for shape in program.input_shapes.values())
        entries = sum(prod(shape) for shape in cut.second.program.input_shapes.values())
        if inputs < 2 or entries != inputs + 1 or len(cut.second.program.inputs) != 1:
            return None
        d, e = common_degree(cut.first.program), common_degree(cut.second.program)
        if not d or not e or e < d ** (inputs - 1):
            return None
        n, degree = inputs, d ** (inputs - 1)
        behind = cut.second.program.output_count * (comb(e + n, n) - comb(e - degree + n, n))
        inner = self._part_bound(cut.inner, fields)
        moved, samples = self._moved(program, list(fields), [cut.inner])
        found = eliminate(moved, self.p) if fields else None
        rank = found.rank if found else 0
        used = [list(fields)[k] for k in sorted(found.pivot_rows)] if found else []
        first = self._stripped(program, cut, inner)
        second = {"kind": "hypersurface"}
        return Bound(
            value=inner.value + behind - rank,
            method=f"({inner.method}) + forms of degree {e} modulo one of degree {degree} - {rank} at %{cut.late}",
            document=None if first is None else self._composition(cut.late, first, second, used, samples),
        )


# -- programs of known forms -----------------------------------------------------------------------------


def one_hidden_layer(program: Program) -> tuple[int, int, int, int] | None:
    """(n, k, m, r) of a program x -> W_2 (W_1 x)^r, or None."""
    items = program.instructions
    if [item.operation for item in items] != ["weight", "weight", "input", "einsum", "power", "einsum"]:
        return None
    matrix = (("ab", "b"), "a")
    if items[3].constants != matrix or items[5].constants != matrix or len(program.outputs) != 1:
        return None
    if (items[3].operands, items[4].operands, items[5].operands) != ((0, 2), (3,), (1, 4)):
        return None
    (k, n), (m, _) = items[0].shape, items[1].shape
    return n, k, m, int(items[4].constants[0])


def _span(program: Program) -> Bound | None:
    """A last linear layer V z: its m outputs are in the span of the n entries of z, an m x M matrix of rank at most n."""
    if len(program.outputs) != 1 or not program.inputs:
        return None
    item = program.instructions[program.outputs[0][1]]
    if item.operation != "einsum" or item.constants != (("ab", "b"), "a"):
        return None
    weight = program.instructions[item.operands[0]]
    if weight.operation != "weight":
        return None
    (m, n), each = weight.shape, coordinate_count(program) // weight.shape[0]
    if n >= min(m, each):
        return None
    return Bound(
        value=n * (m + each - n), method=f"{m} outputs in the span of {n} forms", document={"kind": "span"}
    )
