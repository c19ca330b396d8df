"""The search for polynomial vector fields that leave a program's function as it is.

Unknown are the coefficients of monomial * d/dw_i. The equations J(w) xi(w) = 0 at random points modulo p are linear in them, and
split by the gradings of the program into many small systems. The samples grow until a kernel is also killed by fresh
ones. A kernel is written in a basis of fields that move few arrays and lifted to integers; each field is verified. In an analytic
program independent units are in the place of exponentials; a field that only relations of exponentials allow is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, combinations_with_replacement

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import echelon_mod, kernel_mod, rank_mod
from m2bridge.programs.exponentials import formal_exponentials
from m2bridge.programs.gradings import gradings
from m2bridge.programs.jacobians import jacobian_rows, output_seeds
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.work import WorkBudget, of_kernel, of_verification
from m2bridge.symmetry.fields import (
    Monomial,
    VectorField,
    monomial_at,
    product_mod,
    small_integers,
)
from m2bridge.symmetry.identities import Verifier
from m2bridge.symmetry.names import rotations
from m2bridge.symmetry.random_points import RandomPoints, need_points

MOST_UNKNOWNS = 2600
"""A graded part with more unknowns is left out: its kernel takes more than a few seconds."""
MOST_CANDIDATES = 4_000_000  # monomials times weights of one search
MOST_ROWS = 24
"""This many output entries are used for each sample."""
_FRESH = 12  # samples beyond those that determine the fields

Unknowns = list[tuple[int, Monomial]]


class SearchPoints:
    """Rows of the Jacobian of a program at random weights, another point for each sample, over F_p.

    A vector field is a symmetry only if each of these rows kills its value at the same point. More samples are drawn on
    request, always the same ones for one seed.
    """

    def __init__(self, program: Program, p: int, seed: int) -> None:
        self.program, self.p, self.seed = program, p, seed
        self.height = min(program.output_count, MOST_ROWS)
        self.weights: Integers = np.zeros((0, program.parameter_count), dtype=np.int64)
        self.rows: Integers = np.zeros((0, self.height, program.parameter_count), dtype=np.int64)
        self._samples = RandomPoints(program, p, seed, WEIGHTS + 16, INPUTS + 16)
        self._drawn = 0

    def draw(self, count: int) -> None:
        """Have at least `count` samples."""
        size = max(1, (8 << 20) // max(1, self.height * self.program.parameter_count))
        while len(self.weights) < count:
            need_points(self._drawn)
            self._append(self._drawn, self._drawn + min(count - len(self.weights), size))

    def _append(self, start: int, stop: int) -> None:
        program, arithmetic = self.program, self._samples.arithmetic
        weights, _, values = self._samples.between(start, stop)
        self._drawn = stop
        rng = np.random.default_rng([self.seed, start])
        chosen = [np.sort(rng.permutation(program.output_count)[: self.height]) for _ in weights]
        if chosen:
            seeds = output_seeds(program, arithmetic, np.stack(chosen))
            rows = jacobian_rows(program, arithmetic, values, seeds, np.arange(program.parameter_count))
            self.weights = np.concatenate([self.weights, weights])
            self.rows = np.concatenate([self.rows, arithmetic.field.canonical(rows)])


class Search:
    """A search under way, and what it found so far.

    With `all_affine` every affine field is kept, not only those that make generic orbits larger. The search ends where
    its `work` is done.

    Attributes
    ----------
    fields: verified fields that are independent at a generic point, each with the instructions that were used to verify it;
        none where that was the whole program.
    rank: their rank at a point modulo p, a proved lower bound of the dimension of generic orbits.
    corank: number of weights minus the rank of the Jacobian at random points, which no symmetry can exceed (probable).
    unverified: how many fields were found modulo p whose identity was out of reach.
    complete: whether all graded parts up to the degree were searched, and no relations of exponentials can allow further fields.
    """

    def __init__(
        self,
        program: Program,
        *,
        p: int,
        seed: int = 0,
        work: WorkBudget | None = None,
        corank: int | None = None,
        all_affine: bool = False,
    ) -> None:
        self.program, self.p, self.all_affine = program, p, all_affine
        self.samples = SearchPoints(program, p, seed)
        self.verifier = Verifier(program, p, seed)
        self.work = work or WorkBudget()
        self._verification = of_verification(program)
        self.characters = _characters(program, p, seed)
        self.samples.draw(4)
        self.point = self.samples.weights[0]
        if corank is None:
            corank = program.parameter_count - generic_rank(program, p=p, seed=seed).rank
        self.corank = corank
        self.fields: dict[VectorField, frozenset[int]] = {}
        self._values: list[Integers] = []
        self.rank, self.unverified, self.complete = 0, 0, _exponentials_are_units(program, p, seed)

    @property
    def explains_fiber(self) -> bool:
        return self.rank == self.corank

    def run(self, degree: int = 1, first: int = 1) -> Search:
        """Search degree by degree from `first` on, until the fiber is explained."""
        for d in range(0 if first == 1 else first, degree + 1):
            if d == 1 and not self.program.polynomial:
                self._search(1, iter([self._scalings_and_shifts()]))
            if d == 2:
                self.guess()
            self._search(d, self._parts(d))
        return self

    def linear(self) -> Search:
        """Search homogeneous linear fields alone."""
        self._search(1, self._parts(1, least=1))
        return self

    def _search(self, degree: int, blocks: Iterator[Unknowns]) -> None:
        for unknowns in blocks:
            if self.explains_fiber and not self._wants(degree):
                break
            if len(unknowns) > MOST_UNKNOWNS:
                self.complete = False
                continue
            if not self.work.spend(of_kernel(len(unknowns))):
                self.complete = False
                break
            try:
                for field in self._kernel(unknowns):
                    self.take(field)
            except OutOfReachError:  # too few points at which square roots exist
                self.complete = False

    def guess(self) -> None:
        """Try rotations, which prove dimensions where fields of degree two are too many to be searched (above 200 weights)."""
        for field in rotations(self.program):
            if self.explains_fiber:
                break
            if self.work.left < self._verification:
                self.complete = False
                break
            self.take(field)

    def _wants(self, degree: int) -> bool:
        """Return whether fields are kept that do not make orbits larger. Multiples of a constant field by functions never are."""
        return self.all_affine and degree == 1 and all(field.degree for field in self.fields)

    def take(self, field: VectorField) -> bool | None:
        """Verify a field and keep it where it makes orbits larger; None where it does not, or the identity is out of reach."""
        value = field.at(self.point, self.p)
        raised = rank_mod(np.stack([*self._values, value]), self.p)
        if raised == self.rank and not self._wants(field.degree):
            return None
        self.work.charge(self._verification)
        verdict = self.verifier.is_symmetry(field)
        if verdict is None:
            self.unverified += 1
        if verdict:
            if raised > self.corank:
                raise ArithmeticError("fields with a rank above the corank cannot all be symmetries")
            self.fields[field] = self.verifier.carried.get(field, frozenset())
            if raised > self.rank:
                self._values.append(value)
            self.rank = raised
        return verdict

    def add_verified(self, fields: Iterable[VectorField]) -> None:
        """Keep those fields, which are known to be symmetries, that make orbits larger."""
        listed, known = list(fields), len(self._values)
        values = [*self._values, *(field.at(self.point, self.p) for field in listed)]
        if not values:
            return
        # pivot columns of the transpose are the rows that are independent of those before them
        for k in echelon_mod(np.stack(values, axis=1), self.p)[1][known:]:
            self.fields[listed[k - known]] = frozenset()
            self._values.append(values[k])
        self.rank = len(self._values)

    # -- the parts ----------------------------------------------------------------------------------------

    def _parts(self, degree: int, least: int = 0) -> Iterator[Unknowns]:
        """Unknowns of degree `least` to `degree`, by their character, small parts first; smaller degrees were searched before."""
        count = self.program.parameter_count
        monomials: list[Monomial] = [
            m for k in range(degree, least - 1, -1) for m in combinations_with_replacement(range(count), k)
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
        # one unknown alone is zero where the function sees its weight at all, at the samples
        seen = np.asarray(self.samples.rows.reshape(-1, count).any(axis=0))
        alone = (sizes == 1) & seen[order[starts] % count]
        for which in np.argsort(np.where(alone, 0, sizes), kind="stable")[int(alone.sum()) :]:
            chosen = order[starts[which] : starts[which] + sizes[which]]
            unknowns = [(int(k % count), monomials[k // count]) for k in chosen]
            if any(len(monomial) == degree for _, monomial in unknowns):
                yield unknowns

    def _scalings_and_shifts(self) -> Unknowns:
        """Unknowns of scalings and shifts of single weights, such as v -> exp(-t) v, b -> b + t in v exp(A x + b)."""
        return [(i, m) for i, w in enumerate(self.characters.T) for m in ((i,), ()) if m or not w.any()]

    def _columns(self, unknowns: Unknowns, start: int, stop: int) -> Integers:
        """Return the equations of these unknowns at some samples."""
        p, weights = self.p, self.samples.weights[start:stop]
        moved = np.array([i for i, _ in unknowns])
        values = np.stack([monomial_at(monomial, weights, p) for _, monomial in unknowns], axis=-1)
        table = self.samples.rows[start:stop][:, :, moved] * values[:, None, :] % p
        return table.reshape(-1, len(unknowns))

    def _kernel(self, unknowns: Unknowns) -> list[VectorField]:
        """Return fields in the kernel of the equations of one part, once it is stable."""
        moved, height = sorted({i for i, _ in unknowns}), self.samples.height
        if len(moved) <= height and rank_mod(self.samples.rows[0][:, moved], self.p) == len(moved):
            return []  # the columns of the moved weights are independent at one point: no field moves them
        needed = -(-(len(unknowns) + 2) // height) + 2
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

    def _sparse(self, unknowns: Unknowns, basis: Integers) -> list[Integers]:
        """Return a basis of the kernel in which fields that move few weight arrays come first."""
        names = [self.verifier.owners[i][0] for i, _ in unknowns]
        arrays = list(dict.fromkeys(names))
        chosen: list[Integers] = []
        for size in range(1, min(3, len(arrays)) + 1):
            for group in combinations(arrays, size):
                if len(chosen) == len(basis):
                    return chosen
                outside = [k for k, name in enumerate(names) if name not in group]
                inside = basis
                if outside:
                    inside = product_mod(kernel_mod(basis[:, outside].T, self.p)[0], basis, self.p)
                chosen = self._extended(chosen, inside)
        return self._extended(chosen, basis)

    def _extended(self, chosen: list[Integers], more: Integers) -> list[Integers]:
        """Chosen vectors with those of an echelon form of `more` that are independent of them."""
        if not len(more):
            return chosen
        rows = [*chosen, *echelon_mod(more[:, ::-1], self.p)[0][:, ::-1]]
        # pivot columns of the transpose are the rows that are independent of those before them
        return [rows[k] for k in echelon_mod(np.stack(rows, axis=1), self.p)[1]]


def _characters(program: Program, p: int, seed: int) -> Integers:
    """Return two numbers modulo p for each weight that tell its character; a clash joins two parts, which costs time alone."""
    grading = gradings(program)
    if grading is None or not len(grading.weights):
        return np.zeros((2, program.parameter_count), dtype=np.int64)
    factors = np.random.default_rng([seed, 32]).integers(0, p, size=(2, len(grading.weights)))
    return product_mod(factors, grading.weights % p, p)


def _exponentials_are_units(program: Program, p: int, seed: int) -> bool:
    """Return whether the exponentials of a program are known to satisfy no relation."""
    formal = formal_exponentials(program, p=p, seed=seed) if program.exponential else None
    return formal is None or (not isinstance(formal, str) and not formal.relations)


def _lifted(unknowns: Unknowns, row: Integers, p: int) -> VectorField:
    """Return the field with small integer coefficients that is proportional to a vector modulo p, or with its residues."""
    nonzero = np.flatnonzero(row)
    whole = small_integers(row[nonzero], p) or [int(c) if c <= p // 2 else int(c) - p for c in row[nonzero]]
    terms = ((unknowns[k][0], c, unknowns[k][1]) for k, c in zip(nonzero, whole, strict=True))
    return VectorField(tuple(sorted(terms)))
