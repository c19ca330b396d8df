"""The search for polynomial vector fields that leave a program's function as it is.

Unknown are the coefficients of monomial * d/dw_i. The equations J(w) xi(w) = 0 at random points modulo p are linear in them, and
split by the gradings of the program into many small systems. The samples grow until a kernel is also killed by fresh
ones. A kernel is written in a basis of fields that move few arrays and lifted to integers; each field is verified.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from m2bridge.linear.modular import echelon_mod, kernel_mod, rank_mod
from m2bridge.programs.gradings import Gradings, gradings
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import generic_rank
from m2bridge.symmetry.fields import Monomial, Samples, VectorField, product_mod, small_integers
from m2bridge.symmetry.guesses import rotations
from m2bridge.symmetry.identities import Verifier

MOST_UNKNOWNS = 2600
"""A graded part with more unknowns is left out: its kernel takes more than a few seconds."""
MOST_CANDIDATES = 4_000_000
_FRESH = 12

Unknowns = list[tuple[int, Monomial]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The fields that were found and verified.

    Attributes
    ----------
    fields: verified fields that are independent at a generic point, each with the instructions that were looked at to verify it;
        none where that was the whole program.
    rank: their rank at a point modulo p, a proved lower bound of the dimension of generic orbits.
    corank: number of weights minus the rank of the Jacobian at random points, which no symmetry can exceed (probable).
    unverified: how many fields were found modulo p whose identity was out of reach.
    complete: whether all graded parts up to the degree were searched.
    """

    fields: dict[VectorField, frozenset[int]]
    rank: int
    corank: int
    unverified: int
    complete: bool

    @property
    def explains_fiber(self) -> bool:
        return self.rank == self.corank


class Search:
    """A search under way: samples, gradings and the fields found so far.

    With `all_affine` every affine field is kept, not only those that make generic orbits larger.
    """

    def __init__(
        self,
        program: Program,
        *,
        p: int,
        seed: int = 0,
        seconds: float = 10.0,
        corank: int | None = None,
        all_affine: bool = False,
    ) -> None:
        self.program, self.p, self.all_affine = program, p, all_affine
        self.samples = Samples(program, p, seed)
        self.verifier = Verifier(program, p, seed)
        self.until = time.monotonic() + seconds
        self.characters = _keys(gradings(program), program.parameter_count, p, seed)
        self.samples.draw(4)
        self.point = self.samples.weights[0]
        self.corank = self._corank() if corank is None else corank
        self.fields: list[VectorField] = []
        self._values: list[Integers] = []
        self.rank, self.unverified, self.complete = 0, 0, True

    def _corank(self) -> int:
        """Weights minus the rank of the Jacobian at one point; rows of several inputs are needed there."""
        return (
            self.program.parameter_count - generic_rank(self.program, p=self.p, seed=self.samples.seed).rank
        )

    def run(self, degree: int = 1, first: int = 1) -> Found:
        """Search degree by degree from `first` on, until the fiber is explained."""
        for d in range(0 if first == 1 else first, degree + 1):
            if d == 2:
                self.guess()
            for unknowns in self._parts(d):
                if self.rank == self.corank and not self._wants(d):
                    break
                if time.monotonic() > self.until:
                    self.complete = False
                    break
                if len(unknowns) > MOST_UNKNOWNS:
                    self.complete = False
                    continue
                for field in self._kernel(unknowns):
                    self.take(field)
        return self.found()

    def guess(self) -> Found:
        """Try fields that are known to occur."""
        for field in rotations(self.program):
            if self.rank == self.corank:
                break
            self.take(field)
        return self.found()

    def found(self) -> Found:
        """What was found so far."""
        carried = {field: self.verifier.carried.get(field, frozenset()) for field in self.fields}
        return Found(
            fields=carried,
            rank=self.rank,
            corank=self.corank,
            unverified=self.unverified,
            complete=self.complete,
        )

    def _wants(self, degree: int) -> bool:
        """Whether fields are kept that do not make orbits larger. Multiples of a constant field by functions never are."""
        return self.all_affine and degree == 1 and all(field.degree for field in self.fields)

    def take(self, field: VectorField) -> bool | None:
        """Verify a field and keep it where it makes orbits larger; None where it does not, or the identity is out of reach."""
        value = field.at(self.point, self.p)
        raised = rank_mod(np.stack([*self._values, value]), self.p)
        if raised == self.rank and not self._wants(field.degree):
            return None
        verdict = self.verifier.is_symmetry(field)
        if verdict is None:
            self.unverified += 1
        if verdict:
            if raised > self.corank:
                raise ArithmeticError("fields with a rank above the corank cannot all be symmetries")
            self.fields.append(field)
            if raised > self.rank:
                self._values.append(value)
            self.rank = raised
        return verdict

    # -- the parts ----------------------------------------------------------------------------------------

    def _parts(self, degree: int) -> Iterator[Unknowns]:
        """Unknowns up to this degree, by their character, small parts first; smaller degrees alone were searched before."""
        count = self.program.parameter_count
        degrees = range(degree, -1, -1)
        monomials: list[Monomial] = [
            m for k in degrees for m in combinations_with_replacement(range(count), k)
        ]
        if len(monomials) * count > MOST_CANDIDATES:
            self.complete = False
            return
        table = np.full((len(monomials), max(1, degree)), count, dtype=np.int64)
        for row, monomial in enumerate(monomials):
            table[row, : len(monomial)] = monomial
        extended = np.concatenate([self.characters, np.zeros((2, 1), dtype=np.int64)], axis=1)
        weights = extended[:, table].sum(axis=2)
        high, low = (weights[:, :, None] - self.characters[:, None, :]) % self.p
        keys = (high * self.p + low).reshape(-1)
        order = np.argsort(keys, kind="stable")
        bounds = np.concatenate([[0], np.flatnonzero(np.diff(keys[order])) + 1, [len(order)]])
        sizes, starts = np.diff(bounds), bounds[:-1]
        alone = (sizes == 1) & self._seen()[order[starts] % count]
        for which in np.argsort(np.where(alone, 0, sizes), kind="stable")[int(alone.sum()) :]:
            chosen = order[starts[which] : starts[which] + sizes[which]]
            unknowns = [(int(k % count), monomials[k // count]) for k in chosen]
            if any(len(monomial) == degree for _, monomial in unknowns):
                yield unknowns

    def _seen(self) -> Integers:
        """Whether each weight is seen by the function at all, at the samples."""
        return np.asarray(self.samples.rows.reshape(-1, self.program.parameter_count).any(axis=0))

    def _columns(self, unknowns: Unknowns, start: int, stop: int) -> Integers:
        """The equations of these unknowns at some samples."""
        p, weights = self.p, self.samples.weights[start:stop]
        places = np.array([i for i, _ in unknowns])
        values = np.ones((len(weights), len(unknowns)), dtype=np.int64)
        for column, (_, monomial) in enumerate(unknowns):
            for j in monomial:
                values[:, column] = values[:, column] * weights[:, j] % p
        table = self.samples.rows[start:stop][:, :, places] * values[:, None, :] % p
        return table.reshape(-1, len(unknowns))

    def _kernel(self, unknowns: Unknowns) -> list[VectorField]:
        """Fields in the kernel of the equations of one part, once it is stable."""
        if self._one_point_is_enough(unknowns):
            return []
        needed = -(-(len(unknowns) + 2) // self.samples.height) + 2
        while True:
            self.samples.draw(needed + _FRESH)
            basis = kernel_mod(self._columns(unknowns, 0, needed), self.p)[0]
            if not len(basis):
                return []
            fresh = self._columns(unknowns, needed, needed + _FRESH)
            if not product_mod(fresh, basis.T, self.p).any():
                break
            needed = 2 * needed
        return [_lifted(unknowns, row, self.p) for row in self._sparse(unknowns, basis)]

    def _one_point_is_enough(self, unknowns: Unknowns) -> bool:
        """Whether the columns of the moved weights are independent in the rows of some samples: then no field moves them."""
        places = sorted({i for i, _ in unknowns})
        if len(places) > self.samples.height:
            return False
        return rank_mod(self.samples.rows[0][:, places], self.p) == len(places)

    def _sparse(self, unknowns: Unknowns, basis: Integers) -> list[Integers]:
        """A basis of the kernel in which fields that move few weight arrays come first."""
        names = [self.verifier.name_of(i)[0] for i, _ in unknowns]
        arrays = list(dict.fromkeys(names))
        chosen: list[Integers] = []
        for size in range(1, min(3, len(arrays)) + 1):
            for group in combinations(arrays, size):
                if len(chosen) == len(basis):
                    return chosen
                outside = [k for k, name in enumerate(names) if name not in group]
                inside = (
                    basis
                    if not outside
                    else product_mod(kernel_mod(basis[:, outside].T, self.p)[0], basis, self.p)
                )
                chosen = self._extended(chosen, inside)
        return self._extended(chosen, basis)

    def _extended(self, chosen: list[Integers], more: Integers) -> list[Integers]:
        """Chosen vectors with those of an echelon form of `more` that are independent of them."""
        if not len(more):
            return chosen
        reduced = echelon_mod(more[:, ::-1], self.p)[0][:, ::-1]
        for row in reduced:
            if rank_mod(np.stack([*chosen, row]), self.p) > len(chosen):
                chosen = [*chosen, row]
        return chosen


def search(program: Program, *, p: int, seed: int = 0, degree: int = 1, seconds: float = 10.0) -> Found:
    """Verified infinitesimal symmetries of a polynomial program, of degree at most `degree`."""
    return Search(program, p=p, seed=seed, seconds=seconds).run(degree)


def _keys(found: Gradings | None, weights: int, p: int, seed: int) -> Integers:
    """Two numbers modulo p for each weight that tell its character; a clash joins two parts, which costs time alone."""
    if found is None or not len(found.weights):
        return np.zeros((2, weights), dtype=np.int64)
    factors = np.random.default_rng([seed, 32]).integers(0, p, size=(2, len(found.weights)))
    return product_mod(factors, found.weights % p, p)


def _lifted(unknowns: Unknowns, row: Integers, p: int) -> VectorField:
    """The field with small integer coefficients that is proportional to a vector modulo p, or with its residues."""
    places = np.flatnonzero(row)
    whole = small_integers(row[places], p) or [int(c) if c <= p // 2 else int(c) - p for c in row[places]]
    return VectorField(
        tuple(sorted((unknowns[k][0], c, unknowns[k][1]) for k, c in zip(places, whole, strict=True)))
    )
