"""All symmetries that follow from the structure of a program, and the dimension of their orbits.

Groups act along axes of the weights (:mod:`m2bridge.symmetry.axis_groups`), biases and weights around norms are shifted
(:mod:`m2bridge.symmetry.shifts`), also inside exponentials (:mod:`m2bridge.symmetry.exponent_shifts`), and some weights are not
used. Neither the search nor the dimension of the orbits becomes expensive for large widths, as long as each group moves some
weight alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, prime_for
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import WEIGHTS, Integers, integers
from m2bridge.programs.probe import Probe
from m2bridge.programs.program import Program
from m2bridge.symmetry.axis_groups import Action, AxisGroup
from m2bridge.symmetry.exponent_shifts import ExponentShift, exponent_shifts
from m2bridge.symmetry.factored import factored
from m2bridge.symmetry.fields import VectorField
from m2bridge.symmetry.gains import GainedGroup, gained_groups
from m2bridge.symmetry.matrix_groups import matrix_groups
from m2bridge.symmetry.shifts import Shift, shifts
from m2bridge.symmetry.simplified import simplified
from m2bridge.symmetry.tori import tori

Family = AxisGroup | GainedGroup | Shift | ExponentShift
F = TypeVar("F", bound=Family)
_MOST_PROBED_ENTRIES = 20_000_000
"""The fields of a family that are tried at a point have at most so many entries."""
_MOST_FIELD_ENTRIES = 50_000_000
"""A matrix of vector fields at a point has at most this many entries; fields beyond that are not counted."""


@dataclass(frozen=True, eq=False, slots=True)
class Structure:
    """The symmetries that follow from the structure of a program: groups, also around gains, shifts, and unused weights."""

    parameters: int
    groups: tuple[AxisGroup, ...]
    shifts: tuple[Shift, ...]
    unused: tuple[int, ...]
    gained: tuple[GainedGroup, ...] = ()
    exponent_shifts: tuple[ExponentShift, ...] = ()

    @property
    def families(self) -> tuple[Family, ...]:
        return (*self.groups, *self.gained, *self.shifts, *self.exponent_shifts)

    def fields(self) -> Iterator[VectorField]:
        """List all vector fields."""
        for family in self.families:
            yield from family.fields()
        yield from self.translations()

    def translations(self) -> Iterator[VectorField]:
        """List the vector fields that translate one unused weight each."""
        yield from (VectorField(((i, 1, ()),)) for i in self.unused)

    def rank(self, point: Integers, p: int) -> int:
        """Return the rank of the fields at flat weights modulo p, which the dimension of generic orbits is at least.

        A family that moves some weight alone, with full rank, is independent of the others and is counted first.
        """
        ordered = [
            family for family, _ in self.in_order(lambda group, action: group.is_free_on(action, point, p))
        ]
        count = len(self.unused) + sum(family.dim for family in ordered)
        return count + _dense_rank([family for family in self.families if family not in ordered], point, p)

    def in_order(self, is_free: Callable[[AxisGroup, Action], bool]) -> list[tuple[Family, Action | None]]:
        """List families, each with an action on a weight that no later family moves and on which it is free.

        Shifts have None: they are free on the weight that they shift. Families for which there is no such weight are left out.
        """
        left, ordered = list(self.families), list[tuple[Family, Action | None]]()
        while left:
            users = np.zeros(self.parameters, dtype=np.int64)
            for family in left:
                for entries in _blocks(family):
                    users[entries] += 1
            step = next((pair for family in left for pair in _alone(family, users, is_free)), None)
            if step is None:
                break
            ordered.append(step)
            left.remove(step[0])
        return ordered


@lru_cache(maxsize=32)
def structure(program: Program) -> Structure:
    """Return the symmetries that follow from the structure of a program.

    >>> from m2bridge.families import parse_spec
    >>> found = structure(parse_spec("mlp(widths=[3,5,2],r=2,bias=true)").program)
    >>> [(group.name, group.moved) for group in found.groups]
    [('GL(1)^5', ('W1', 'b1', 'W2'))]
    """
    steps = simplified(factored(program))
    matrices = matrix_groups(steps)
    groups = (*(group for group, _ in matrices), *tori(steps, [labels for _, labels in matrices]))
    shifted = tuple(shifts(steps))
    symmetries = Structure(
        program.parameter_count,
        groups,
        shifted,
        steps.unused,
        tuple(gained_groups(steps, [group for group, _ in matrices])),
        tuple(exponent_shifts(steps, shifted)),
    )
    return _without_contradictions(program, symmetries)


def _without_contradictions(program: Program, symmetries: Structure) -> Structure:
    """Drop what changes the outputs at a random point: a second computation, of derivatives, that the search did not use.

    Nothing is dropped unless the search has a mistake. One random combination of the fields of each family is tried; it is zero
    for a family that is no symmetry with probability of about the degree of the network divided by p.
    """
    p = prime_for(program.numbers, chosen=None, default=LARGE_PRIME)
    probe = Probe(program, p, 0)
    rng = np.random.default_rng([0, p, 13])

    def is_constant(fields: Iterator[VectorField]) -> bool:
        return not probe.moved([_combination(program, probe, fields, rng)]).any()

    def kept(families: Iterable[F]) -> tuple[F, ...]:
        return tuple(family for family in families if is_constant(_some_fields(family, program)))

    return replace(
        symmetries,
        groups=kept(symmetries.groups),
        shifts=kept(symmetries.shifts),
        unused=symmetries.unused if is_constant(symmetries.translations()) else (),
        gained=kept(symmetries.gained),
        exponent_shifts=kept(symmetries.exponent_shifts),
    )


def _some_fields(family: Family, program: Program) -> Iterator[VectorField]:
    """Return the fields of a family, or the first of them if there are very many."""
    return islice(family.fields(), max(1, _MOST_PROBED_ENTRIES // program.parameter_count))


def _combination(
    program: Program, probe: Probe, fields: Iterator[VectorField], rng: np.random.Generator
) -> dict[str, Integers]:
    """Return a random combination of fields at the point of a probe, as a direction of each weight."""
    flat = np.concatenate([probe.weights[name].reshape(-1) for name in program.parameters])
    total = np.zeros_like(flat)
    for field in fields:
        total = (total + int(rng.integers(1, probe.p)) * field.at(flat, probe.p)) % probe.p
    slices = flat_parts(program.parameters)
    return {name: total[entries].reshape(shape) for name, shape, entries in slices}


def structural_rank(program: Program, *, p: int, seed: int) -> int:
    """Return the dimension of orbits that the structure of a program shows; the image has at most the dimension that is left."""
    return structure(program).rank(integers(seed, WEIGHTS, program.parameter_count, p), p)


def _blocks(family: Family) -> list[np.ndarray]:
    """Return the flat weights that each action of a family moves."""
    if isinstance(family, AxisGroup):
        return [action.entries for action in family.actions]
    return family.entries()


def _alone(
    family: Family, users: np.ndarray, is_free: Callable[[AxisGroup, Action], bool]
) -> Iterator[tuple[Family, Action | None]]:
    """List the actions of a family on weights that nothing else moves and on which it is free."""
    if not isinstance(family, (AxisGroup, GainedGroup)):
        if (users[family.entries()[0]] == 1).all():
            yield family, None
        return
    group = family.group if isinstance(family, GainedGroup) else family
    for action in group.actions:
        if (users[action.entries] == 1).all() and is_free(group, action):
            yield family, action


def _dense_rank(families: list[Family], point: Integers, p: int) -> int:
    """Return the rank of the fields of families by elimination; families that make the matrix too large are left out."""
    rows: list[Integers] = []
    for family in families:
        if (len(rows) + family.dim) * len(point) <= _MOST_FIELD_ENTRIES:
            rows += [field.at(point, p) for field in family.fields()]
    return rank_mod(np.stack(rows), p) if rows else 0
