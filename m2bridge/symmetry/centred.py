"""Shifts that a centred array does not see, as in LayerNorm.

Let c = x - mean(x) along some axes, and n = c r with r constant along them. Then the entries of n add up to zero along them.

* A linear map behind n may move by a number for each of its outputs: W n does not change if W_oi moves by t_o. Behind gains g and
  a bias b it moves by t_o / g_i, multiplied by the product of all gains, and a bias behind W undoes the change of W b.
* A weight that is added to x, or that computes x, may move by anything constant along the axes, if x is only centred. Where x is
  also passed on by a skip connection, a later bias undoes the shift of a bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from m2bridge.symmetry.axis_groups import entries_of
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor, Uses
from m2bridge.symmetry.fields import VectorField

_MOST_GAINS = 128
"""A field is multiplied by the product of at most this many gains."""


@dataclass(frozen=True, eq=False, slots=True)
class CentredShift:
    """A weight that may move by numbers that are constant along some axes, divided by gains.

    Attributes
    ----------
    weight, axes: the weight, and the positions of the axes along which it moves by a constant.
    gains: a weight with these axes, or None.
    shifted, answer: the bias b behind the gains, and the bias behind the weight that moves by the opposite of W b; or None.
    order: for each axis of the answer, the position of the axis of the weight.
    opposite: later biases that undo the shift of a bias.
    """

    weight: Tensor
    axes: Letters
    gains: Tensor | None = None
    shifted: Tensor | None = None
    answer: Tensor | None = None
    order: Letters = ()
    opposite: tuple[Tensor, ...] = ()

    @property
    def _tensors(self) -> list[Tensor]:
        return [item for item in (self.weight, self.answer, *self.opposite) if item is not None]

    @property
    def dim(self) -> int:
        return prod(n for k, n in enumerate(self.weight.shape) if k not in self.axes)

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the weights that move."""
        return tuple(item.name for item in self._tensors)

    @property
    def name(self) -> str:
        return f"R^{self.dim}"

    @property
    def text(self) -> str:
        """The shift in words."""
        axes = ", ".join(self.weight.axis_text(k) for k in self.axes)
        divided = "" if self.gains is None else f", divided by {self.gains.name}"
        undone = f", undone by {', '.join(self.moved[1:])}" if self.moved[1:] else ""
        return (
            f"shift of {self.weight.name}, constant along {axes}{divided}{undone}: the array there is centred"
        )

    def entries(self) -> list[np.ndarray]:
        """Return the flat weights that move, for each weight."""
        return [entries_of(item) for item in self._tensors]

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields, one for each index on the other axes."""
        entries = np.moveaxis(entries_of(self.weight), self.axes, range(-len(self.axes), 0))
        others = [k for k in range(len(self.weight.shape)) if k not in self.axes]
        gains = [] if self.gains is None else entries_of(self.gains).reshape(-1).tolist()
        for index in np.ndindex(entries.shape[: len(others)]):
            row = entries[index].reshape(-1).tolist()
            products = [tuple(sorted(gains[:k] + gains[k + 1 :])) for k in range(len(row))]
            terms = [(i, 1, monomial) for i, monomial in zip(row, products, strict=True)]
            if self.answer is not None and self.shifted is not None:
                undone = entries_of(self.answer)[tuple(index[others.index(k)] for k in self.order)]
                biases = entries_of(self.shifted).reshape(-1).tolist()
                terms += [
                    (int(undone), -1, tuple(sorted((b, *monomial))))
                    for b, monomial in zip(biases, products, strict=True)
                ]
            terms += [(int(i), -1, ()) for item in self.opposite for i in entries_of(item).reshape(-1)]
            yield VectorField(tuple(sorted(terms)))


def centred_shifts(program: FactoredProgram) -> list[CentredShift]:
    """List the weights that may move along axes of centred arrays."""
    centred = _Centred(program)
    return [*centred.readers(), *centred.writers()]


class _Centred(Uses):
    """Finds arrays that add up to zero along axes, the weights behind them, and those before them."""

    # -- arrays that add up to zero -----------------------------------------------------------------------

    def centring(self, place: int) -> tuple[int, Letters] | None:
        """Return x and the letters of the axes if a tensor is x - mean(x) along them."""
        sides = self.sides(place)
        if self.tensors[place].operation != "add" or len(sides) != 2:
            return None
        for (x, letters), (mean, kept) in (sides, sides[::-1]):
            axes = tuple(letter for letter in letters if letter not in kept)
            scaled = self.tensors[mean]
            if not axes or scaled.operation != "scale" or set(letters) != set(self.tensors[place].result):
                continue
            total = self.tensors[scaled.operands[0]]
            count = prod(self.tensors[x].shape[letters.index(letter)] for letter in axes)
            if total.operation != "einsum" or total.operands != (x,) or scaled.number != Fraction(-1, count):
                continue
            named = dict(zip(total.letters[0], letters, strict=True))
            renamed = dict(zip(scaled.letters[0], total.result, strict=True))
            if tuple(named[renamed[letter]] for letter in scaled.result) == kept:
                return x, axes
        return None

    def adds_up_to_zero(self, place: int, axes: Letters) -> bool:
        """Return whether the entries of a tensor add up to zero along the axes at these positions."""
        item = self.tensors[place]
        wanted = {item.result[k] for k in axes}
        found = self.centring(place)
        if found is not None and set(found[1]) == wanted:
            return True
        having = [(k, own) for k, own in self.sides(place) if wanted & set(own)]
        whole = all(wanted <= set(own) for _, own in having)
        single = item.operation in ("scale", "einsum") and len(having) == 1
        every = item.operation == "add" and len(having) == len(item.operands)
        return whole and (single or every) and all(
            self.adds_up_to_zero(k, tuple(own.index(letter) for letter in wanted)) for k, own in having
        )  # fmt: skip

    # -- weights behind them ------------------------------------------------------------------------------

    def readers(self) -> Iterator[CentredShift]:
        """List the weights that multiply an array that adds up to zero, or one with gains and a bias."""
        for place, item in enumerate(self.tensors):
            sides = self.sides(place)
            if item.operation == "einsum" and len(sides) == 2:
                for (k, own), (y, letters) in (sides, sides[::-1]):
                    axes = tuple(a for a in own if a in letters and a not in item.result)
                    kept = all(a in item.result for a in own if a not in axes)
                    if axes and kept and self.is_own_weight(k):
                        found = self._reader(place, k, y, axes)
                        if found is not None:
                            yield found

    def _reader(self, place: int, k: int, y: int, axes: Letters) -> CentredShift | None:
        own, letters = (dict(self.sides(place))[j] for j in (k, y))
        weight, at = self.tensors[k], tuple(letters.index(a) for a in axes)
        shifted, y, at = self._peeled(y, at, "add")
        gains, y, at = self._peeled(y, at, "einsum")
        if not self.adds_up_to_zero(y, at) or (gains is not None and prod(gains.shape) > _MOST_GAINS):
            return None
        positions = tuple(own.index(a) for a in axes)
        if shifted is None:
            return CentredShift(weight, positions, gains)
        outer = {a: position for position, a in enumerate(own) if a not in axes}
        answer = self._answer(place, outer)
        return None if answer is None else CentredShift(weight, positions, gains, shifted, *answer)

    def _peeled(self, y: int, axes: Letters, operation: str) -> tuple[Tensor | None, int, Letters]:
        """Take a weight along the axes at these positions off a sum or a product, if there is one."""
        item, sides = self.tensors[y], self.sides(y)
        if item.operation == operation and len(sides) == 2:
            wanted = tuple(item.result[a] for a in axes)
            for (k, own), (other, letters) in (sides, sides[::-1]):
                if own == wanted and self.is_own_weight(k) and set(letters) == set(item.result):
                    return self.tensors[k], other, tuple(letters.index(a) for a in wanted)
        return None, y, axes

    def _answer(self, place: int, outer: dict[int, int]) -> tuple[Tensor, Letters] | None:
        """Return a bias that is added to a product, with the positions of its axes in the weight."""
        users, result = self.users.get(place, []), self.tensors[place].result
        if len(users) != 1 or place in self.outputs or self.tensors[users[0]].operation != "add":
            return None
        sides = self.sides(users[0])
        named = next(dict(zip(own, result, strict=True)) for k, own in sides if k == place)
        for k, own in sides:
            if k != place and self.is_own_weight(k) and {named.get(a) for a in own} == set(outer):
                return self.tensors[k], tuple(outer[named[a]] for a in own)
        return None

    # -- weights before them ------------------------------------------------------------------------------

    def writers(self) -> Iterator[CentredShift]:
        """List the weights that compute an array, or are added to one, of which only the centred one is used."""
        for place, item in enumerate(self.tensors):
            if item.operation not in ("einsum", "add"):
                continue
            for number, (k, own) in enumerate(self.sides(place)):
                others = {a for j, letters in enumerate(item.letters) if j != number for a in letters}
                for axes, opposite in self._unseen_axes(place) if self.is_own_weight(k) else ():
                    alone = item.operation == "add" or not others & set(axes)
                    bias = item.operation == "add" and own == axes
                    if set(axes) <= set(own) and alone and (bias or not opposite):
                        positions = tuple(own.index(a) for a in axes)
                        yield CentredShift(self.tensors[k], positions, opposite=opposite)

    def _unseen_axes(self, place: int) -> Iterator[tuple[Letters, tuple[Tensor, ...]]]:
        """List axes of a tensor, by their letters, along which a constant shift is not seen, or is undone by biases."""
        result = self.tensors[place].result
        for size in sorted({len(axes) for _, axes in self._centred_arrays()}):
            for start in range(len(result) - size + 1):
                positions = tuple(range(start, start + size))
                opposite = self._opposite(place, positions)
                if opposite is not None:
                    yield tuple(result[k] for k in positions), tuple(self.tensors[k] for k in opposite)

    def _centred_arrays(self) -> Sequence[tuple[int, Letters]]:
        found = (self.centring(place) for place in range(len(self.tensors)))
        return [pair for pair in found if pair is not None]

    def _opposite(self, place: int, axes: Letters) -> list[int] | None:
        """Return the biases that undo a shift that is constant along axes, at these positions; None if outputs change."""
        if place in self.outputs or not self.users.get(place):
            return None
        found: list[int] = []
        for user in self.users[place]:
            item = self.tensors[user]
            own = dict(self.sides(user))[place]
            wanted = {own[k] for k in axes}
            centring = self.centring(user)
            if centring is not None and centring[0] == place and set(centring[1]) == wanted:
                continue
            if self._is_mean_of_centring(user, place):
                continue
            if item.operation != "add" or item.operands.count(place) != 1:
                return None
            letters = tuple(own[k] for k in axes)
            biases = [k for k, named in self.sides(user) if named == letters and self.is_own_weight(k)]
            later = self._opposite(user, tuple(item.result.index(letter) for letter in letters))
            if later is None and not biases:
                return None
            found += biases[:1] if later is None else later
        return found if len(set(found)) == len(found) else None

    def _is_mean_of_centring(self, total: int, x: int) -> bool:
        """Return whether a sum of x is used only to centre x."""
        users = self.users.get(total, [])
        if self.tensors[total].operation != "einsum" or len(users) != 1 or total in self.outputs:
            return False
        uses = self.users.get(users[0], [])
        return len(uses) == 1 and (self.centring(uses[0]) or (None,))[0] == x
