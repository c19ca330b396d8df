"""Matrices around the gains of norms: they act on weights multiplied by the gains.

If linear maps W_k alone use g n + b, with gains g and a bias b, then W_k (g n + b) = V_k (n + c) with V_k = W_k diag(g) and
c = b / g. In these weights the program has no gains, and matrices act along the axis. On the weights themselves their vector
fields are rational; they are multiplied by gains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from m2bridge.symmetry.axis_groups import AxisGroup, entries_of
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor
from m2bridge.symmetry.fields import VectorField, without_denominators
from m2bridge.symmetry.matrix_groups import matrix_groups

Gains = dict[int, tuple[int, int]]
"""For a flat weight the flat gain by which it is multiplied (1) or divided (-1)."""


@dataclass(frozen=True, eq=False, slots=True)
class GainedGroup:
    """A group that acts on weights multiplied or divided by gains."""

    group: AxisGroup
    gains: Mapping[int, tuple[int, int]]

    @property
    def dim(self) -> int:
        return self.group.dim

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the weights that move."""
        return self.group.moved

    @property
    def text(self) -> str:
        """The group in words."""
        return f"{self.group.text}, multiplied by the gains between them"

    def entries(self) -> list[np.ndarray]:
        """Return the flat weights that move, for each weight."""
        return [action.entries for action in self.group.actions]

    def factors(self, weights: np.ndarray) -> np.ndarray:
        """Return for each flat weight by what it is multiplied."""
        found = np.ones_like(weights)
        for flat, (gain, exponent) in self.gains.items():
            found[flat] = weights[gain] ** exponent
        return found

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields of a basis of the Lie algebra."""
        return (self._in_weights(field) for field in self.group.fields())

    def _in_weights(self, field: VectorField) -> VectorField:
        """Return a field on weights multiplied by gains as one on the weights, multiplied by the least product of gains."""
        terms = []
        for i, c, monomial in field.terms:
            powers: Counter[int] = Counter()
            for flat, sign in [(i, -1), *((j, 1) for j in monomial)]:
                if flat in self.gains:
                    gain, exponent = self.gains[flat]
                    powers[gain] += sign * exponent
            terms.append((i, c, monomial, powers))
        return without_denominators(terms)


def gained_groups(program: FactoredProgram, groups: Sequence[AxisGroup]) -> list[GainedGroup]:
    """Return the groups of matrices that act on weights multiplied by gains, other than `groups` of the program itself."""
    search = _Gains(program)
    without_gains = replace(program, tensors=search.tensors_without_gains())
    if not search.gains:
        return []
    before = {_axes(group) for group in groups}
    others = [group for group, _ in matrix_groups(without_gains) if _axes(group) not in before]
    return [GainedGroup(group, search.gains) for group in others if group.size > 1]


def _axes(group: AxisGroup) -> frozenset[tuple[int, Letters]]:
    """Return the axes along which a group acts."""
    return frozenset((id(action.tensor), action.index) for action in group.actions)


class _Gains:
    """Finds products with gains that linear maps alone use, and the weights that are multiplied or divided by them."""

    def __init__(self, program: FactoredProgram) -> None:
        self.tensors, self.outputs = program.tensors, program.outputs
        self.gains: Gains = {}
        self.users: dict[int, list[int]] = {}
        for place, item in enumerate(self.tensors):
            for k in dict.fromkeys(item.operands):
                self.users.setdefault(k, []).append(place)

    def is_own_weight(self, k: int) -> bool:
        """Return whether a tensor is a weight that one instruction uses, once."""
        users = self.users.get(k, [])
        once = len(users) == 1 and self.tensors[users[0]].operands.count(k) == 1
        return self.tensors[k].operation == "weight" and once and k not in self.outputs

    def tensors_without_gains(self) -> tuple[Tensor, ...]:
        """Return the steps with an array in the place of its product with gains."""
        tensors = list(self.tensors)
        for place, item in enumerate(self.tensors):
            sides = self.tensors[place].sides
            if item.operation != "einsum" or len(sides) != 2:
                continue
            for (gain, axes), (array, letters) in (sides, sides[::-1]):
                if self.is_own_weight(gain) and set(letters) == set(item.result) >= set(axes):
                    found = self._moved(place, gain, axes)
                    if found is not None and not found.keys() & self.gains.keys():
                        self.gains |= found
                        tensors[place] = replace(item, operands=(array,), letters=(letters,))
                        break
        return tuple(tensors)

    def _moved(self, place: int, gain: int, axes: Letters) -> Gains | None:
        """Return the weights that gains at these letters of an array move to; None if not all its uses are linear."""
        result = self.tensors[place].result
        positions = tuple(result.index(a) for a in axes)
        readers = self._readers(place, gain, positions)
        if readers is not None:
            return readers
        users = self.users.get(place, [])
        single = len(users) == 1 and place not in self.outputs
        passed = self._passed(place, positions, users[0]) if single else None
        if passed is not None:
            return self._moved(users[0], gain, tuple(self.tensors[users[0]].result[k] for k in passed))
        if not single or self.tensors[users[0]].operation != "add":
            return None
        sides = self.tensors[users[0]].sides
        named = dict(sides)[place]
        wanted = tuple(named[k] for k in positions)
        biases = [k for k, own in sides if own == wanted and self.is_own_weight(k)]
        if len(sides) != 2 or not biases:
            return None
        total = self.tensors[users[0]].result
        readers = self._readers(users[0], gain, tuple(total.index(a) for a in wanted))
        if readers is None:
            return None
        gains = self._paired(biases[0], tuple(range(len(axes))), gain, -1)
        return readers | gains

    def _readers(self, place: int, gain: int, positions: Letters) -> Gains | None:
        """Return the weights that multiply an array along axes at these positions, each entry with its gain."""
        found: Gains = {}
        for user in self.users.get(place, []):
            item, sides = self.tensors[user], self.tensors[user].sides
            passed = self._passed(place, positions, user)
            if passed is not None:
                readers = self._readers(user, gain, passed)
                if readers is None:
                    return None
                found |= readers
                continue
            others = [side for side in sides if side[0] != place]
            if item.operation != "einsum" or len(sides) != 2 or len(others) != 1:
                return None
            (weight, letters), own = others[0], dict(sides)[place]
            wanted = [own[k] for k in positions]
            if not self.is_own_weight(weight) or not set(wanted) <= set(letters) - set(item.result):
                return None
            found |= self._paired(weight, tuple(letters.index(a) for a in wanted), gain, 1)
        return found if found and place not in self.outputs else None

    def _passed(self, place: int, positions: Letters, user: int) -> Letters | None:
        """Return where axes of an array are in its product with something constant along them, as g n by 1 / |n|."""
        item = self.tensors[user]
        own = dict(item.sides)[place]
        wanted = tuple(own[k] for k in positions)
        others = [letters for k, letters in item.sides if k != place]
        if item.operation not in ("einsum", "scale") or len(others) != len(item.sides) - 1:
            return None
        if not set(wanted) <= set(item.result) or any(set(wanted) & set(letters) for letters in others):
            return None
        return tuple(item.result.index(a) for a in wanted)

    def _paired(self, weight: int, positions: Letters, gain: int, sign: int) -> Gains:
        """Pair each entry of a weight with the gain that has its index at these positions."""
        entries = np.moveaxis(entries_of(self.tensors[weight]), positions, range(len(positions)))
        gains = entries_of(self.tensors[gain])
        ones = (1,) * (entries.ndim - gains.ndim)
        factors = np.broadcast_to(gains.reshape((*gains.shape, *ones)), entries.shape)
        pairs = zip(entries.reshape(-1).tolist(), factors.reshape(-1).tolist(), strict=True)
        return {flat: (factor, sign) for flat, factor in pairs}
