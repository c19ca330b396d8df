"""Generators that can be named: minors of matrices of a network's coefficients, resultants, binomials.

A network whose outputs are forms in its inputs is an array of coefficients: an axis of outputs, and for each token as many
axes as the degree in it, symmetric in these. Grouping the axes into rows and columns gives a matrix that is linear in the
coordinates (a flattening). So does the array of some general combinations of the outputs on a general subspace of the inputs. A
rank r at random points of the image makes all minors of size r + 1 vanish there, whatever the combinations and the subspace; when
two binary forms are left, a common factor makes their resultant vanish.

How many independent generators a family gives is a rank at random points of a linear subspace of the coordinates, modulo the
generators of lower degree: a lower bound, over F_p. A family is the span of all such functions, so general members suffice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, factorial, prod

import numpy as np

from m2bridge.errors import M2BridgeError
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.residues import Mod
from m2bridge.models.base import Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import monomial_values, monomials_of_degree
from m2bridge.questions.closure.result import Equation

_MOST_COORDINATES = 40
_MOST_FORMS = 800
_MOST_MULTIPLES = 2000
_LARGEST_MINOR = 5
_SPARE = 4
_SMALLEST_PRIME = 1000
"""Over smaller fields ranks at random points are too often small by chance."""
_COORDINATE = re.compile(r"(y\[[\d,]+\]): (.+)")
_FACTOR = re.compile(r"x\[([\d,]+)\](?:\^(\d+))?")

Sizes = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Outputs that are forms of one multidegree: an array of places of coordinates and the integers they are multiplied with.

    The first axis are the outputs; then come `degrees[j]` axes for the inputs of token j. Entries are derivatives.
    """

    places: np.ndarray
    factors: np.ndarray
    degrees: Sizes

    @property
    def sizes(self) -> Sizes:
        """The number of outputs, and of inputs in each token."""
        starts = np.cumsum([1, *self.degrees[:-1]])
        return (self.places.shape[0], *(self.places.shape[i] for i in starts))

    def at(self, points: np.ndarray, p: int) -> np.ndarray:
        """The array at each point, one a row of `points`."""
        return np.asarray(points[:, self.places] * self.factors % p)

    def restricted(self, array: np.ndarray, sizes: Sizes, rng: np.random.Generator, p: int) -> np.ndarray:
        """The array, at each point, of general combinations of outputs on general subspaces of the tokens, of these sizes."""
        axis = 1
        for whole, size, count in zip(self.sizes, sizes, (1, *self.degrees), strict=True):
            chosen = rng.integers(0, p, size=(whole, size))
            for place in range(axis, axis + count) if size < whole else ():
                array = np.moveaxis(np.tensordot(array, chosen, axes=(place, 0)) % p, -1, place)
            axis += count
        return array


def coefficients_of(names: Sequence[str]) -> Coefficients | None:
    """The array of a network with coordinates of these names; None when the outputs are not forms of one multidegree."""
    read = [match for name in names if (match := _COORDINATE.fullmatch(name))]
    if not names or len(read) < len(names):
        return None

    def variables(text: str) -> list[Sizes]:
        powers = [
            (tuple(map(int, label.split(","))), int(power or 1)) for label, power in _FACTOR.findall(text)
        ]
        return [label for label, power in powers for _ in range(power)]

    monomials = [variables(match[2]) for match in read]
    labels = sorted({label for m in monomials for label in m})
    coordinates = {
        (match[1], tuple(sorted(map(labels.index, m)))): i
        for i, (match, m) in enumerate(zip(read, monomials, strict=True))
    }
    outputs = list(dict.fromkeys(output for output, _ in coordinates))
    for blocks in ([label[1:] for label in labels], [()] * len(labels)):  # by tokens, or all inputs alike
        parts = [[v for v, block in enumerate(blocks) if block == token] for token in sorted(set(blocks))]
        degrees = {tuple(sum(v in part for v in m) for part in parts) for _, m in coordinates}
        if len(degrees) == 1:
            return _array(coordinates, outputs, parts, degrees.pop())
    return None


def _array(
    coordinates: Mapping[tuple[str, Sizes], int], outputs: list[str], parts: list[list[int]], degrees: Sizes
) -> Coefficients | None:
    axes = [part for part, k in zip(parts, degrees, strict=True) for _ in range(k)]
    keys = [(o, tuple(sorted(m))) for o in outputs for m in product(*axes)]
    shape = (len(outputs), *map(len, axes))
    if not axes or any(key not in coordinates for key in keys):
        return None
    factors = [prod(factorial(m.count(v)) for v in set(m)) for _, m in keys]
    return Coefficients(
        places=np.array([coordinates[key] for key in keys]).reshape(shape),
        factors=np.array(factors).reshape(shape), degrees=degrees,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class EquationFamily:
    """Functions of the coordinates that vanish on the image: minors of a matrix with rows of degree `left` in each token.

    `sizes` says how many combinations of outputs there are, and how large the subspace of each token is. For the resultant of two
    binary forms, those of the token `binary`, there are no rows.
    """

    form: Coefficients
    sizes: Sizes
    left: Sizes = ()
    binary: int | None = None

    def matrices(self, array: np.ndarray, rng: np.random.Generator, p: int) -> np.ndarray:
        """The matrix, or Sylvester's, of a general member at each point."""
        array = self.form.restricted(array, self.sizes, rng, p)
        if self.binary is not None:
            return self._sylvester(array, p)
        rows, axis = [1], 2
        columns: list[int] = []
        for k, i in zip(self.form.degrees, self.left, strict=True):
            rows += range(axis, axis + i)
            columns += range(axis + i, axis + k)
            axis += k
        height = prod(array.shape[i] for i in rows)
        return array.transpose(0, *rows, *columns).reshape(len(array), height, -1)

    def _sylvester(self, array: np.ndarray, p: int) -> np.ndarray:
        assert self.binary is not None
        k, start = self.form.degrees[self.binary], 2 + sum(self.form.degrees[: self.binary])
        forms = np.moveaxis(array, range(start, start + k), range(-k, 0)).reshape(len(array), 2, 2**k)
        table = np.zeros((len(array), 2 * k, 2 * k), dtype=np.int64)
        for i in range(k + 1):  # the coefficient with i factors y: its place has i ones in binary
            coefficient = forms[:, :, 2**i - 1] * comb(k, i) % p
            for shift in range(k):
                table[:, [shift, k + shift], shift + i] = coefficient
        return table

    def minors(self, array: np.ndarray, size: int, rng: np.random.Generator, p: int) -> np.ndarray:
        """A general combination of the minors of one size of a general member, at each point."""
        found = self.matrices(array, rng, p)
        if self.binary is None:
            found = np.tensordot(found, rng.integers(0, p, size=(found.shape[2], size)), axes=(2, 0)) % p
            found = np.tensordot(found, rng.integers(0, p, size=(found.shape[1], size)), axes=(1, 0)) % p
        return _determinants(found, p)

    @property
    def words(self) -> str:
        """What the functions are, without the size of the minors."""
        where, single = "", len(self.sizes) == 2
        for token, (whole, size) in enumerate(zip(self.form.sizes, self.sizes, strict=True)):
            what = "outputs" if token == 0 else "the inputs" if single else f"token {token}"
            if size < whole and token == 0:
                where += f", of every {f'{size} combinations' if size > 1 else 'combination'} of {what}"
            elif size < whole:
                where += (
                    f", {f'on every {size}-dimensional space' if size > 1 else 'at every value'} of {what}"
                )
        if self.binary is not None:
            return f"resultants of two binary forms of degree {self.form.degrees[self.binary]}{where}"
        right = tuple(k - i for k, i in zip(self.form.degrees, self.left, strict=True))
        (rows, named), (columns, others) = self._side(self.left, self.sizes[0]), self._side(right, 1)
        return f"minors of the {rows} x {columns} matrix of {named} by {others}{where}"

    def _side(self, degrees: Sizes, outputs: int) -> tuple[int, str]:
        """How many rows or columns there are, each monomial once, and what they are."""
        count, said = outputs, ["outputs"] * (outputs > 1)
        for token, (k, size) in enumerate(zip(degrees, self.sizes[1:], strict=True), start=1):
            count *= comb(size + k - 1, k)
            if k and size > 1:
                where = f" in token {token}" if len(degrees) > 1 else ""
                said.append(f"monomials of degree {k}{where}" if k > 1 else f"inputs{where}")
        return count, " and ".join(said) or "one"


def families(form: Coefficients) -> Iterator[EquationFamily]:
    """All families, those without combinations and subspaces first."""
    whole = form.sizes
    choices = product(*(range(n, 0, -1) for n in whole))
    for sizes in sorted(choices, key=lambda sizes: sum(map(int.__ne__, sizes, whole))):
        for left in product(*(range(k + 1) for k in form.degrees)):
            rows = sizes[0] * prod(n**i for n, i in zip(sizes[1:], left, strict=True))
            entries = sizes[0] * prod(n**k for n, k in zip(sizes[1:], form.degrees, strict=True))
            if 1 < rows < entries:
                yield EquationFamily(form=form, sizes=sizes, left=left)
        for token, k in enumerate(form.degrees):
            others = prod(
                n**i for j, (n, i) in enumerate(zip(sizes[1:], form.degrees, strict=True)) if j != token
            )
            if k > 1 and sizes[token + 1] == 2 and sizes[0] * others == 2:
                yield EquationFamily(form=form, sizes=sizes, binary=token)


def named_generators(
    model: Model, equations: Sequence[Equation], counts: Mapping[int, int], p: int, seed: int
) -> tuple[str, ...]:
    """Sentences such as ``9 of degree 2 = 2-minors of the 3 x 3 matrix of outputs by inputs``, as far as they are recognised."""
    free = model.free
    if isinstance(free, PolynomialMap) and all(len(terms) == 1 for terms in free.polynomials):
        return tuple(f"{n} of degree {k} = binomials of a toric ideal" for k, n in sorted(counts.items()))
    if not counts or p < _SMALLEST_PRIME or model.coordinate_count > _MOST_COORDINATES:
        return ()
    try:
        form = coefficients_of(model.coordinate_names)
    except M2BridgeError:
        form = None
    if form is None:
        return ()
    rng = np.random.default_rng([seed, 61])
    points = image_of(model).points(rng, model.coordinate_count + 3, p)[:, : model.coordinate_count]
    on_image = form.at(points[:3], p)
    vanishing: dict[int, list[EquationFamily]] = {}
    for family in families(form):
        matrices = family.matrices(on_image, rng, p)
        size = 1 + max(rank_mod(m, p) for m in matrices)
        if size <= min(*matrices.shape[1:], _LARGEST_MINOR):
            vanishing.setdefault(size, []).append(family)
    found: list[str] = []
    for degree, count in sorted(counts.items()):
        lower = [f for f in equations if 1 < f.degree < degree]
        if degree in vanishing:
            found += _named(form, vanishing[degree], degree, count, lower, points, rng, p)
    return tuple(found)


def _named(
    form: Coefficients, candidates: Sequence[EquationFamily], degree: int, count: int, lower: Sequence[Equation],
    points: np.ndarray, rng: np.random.Generator, p: int,
) -> Iterator[str]:  # fmt: skip
    """What the `count` generators of one degree are, modulo those of lower degree, on a subspace with few enough monomials."""
    dim = max(m for m in range(1, len(points)) if comb(m + degree - 1, degree) <= _MOST_FORMS)
    multiples = sum(comb(dim + degree - f.degree - 1, degree - f.degree) for f in lower)
    if multiples > _MOST_MULTIPLES:
        return
    enough = min(comb(dim + degree - 1, degree), multiples + count + 2 * _SPARE) + _SPARE  # points
    inside = rng.integers(0, p, size=(enough, dim))
    section = inside @ (rng.integers(0, p, size=(dim, len(points))) @ points % p) % p
    known, array = _multiples(lower, degree, inside, section, p), form.at(section, p)
    tests = _annihilators(known, count + _SPARE, rng, p)
    for family in candidates:
        if not (tests @ Mod(family.minors(array, degree, rng, p), p)).values.any():
            continue
        members = np.stack([family.minors(array, degree, rng, p) for _ in range(count + _SPARE)])
        new = rank_mod((tests @ Mod(members.T.copy(), p)).values, p)
        if new <= count:
            size = "" if family.binary is not None else f"{degree}-"
            yield f"{new} of degree {degree} = {size}{family.words}"
            count -= new
            if not count:
                return
            known = np.concatenate([known, members])
            tests = _annihilators(known, count + _SPARE, rng, p)


def _annihilators(functions: np.ndarray, count: int, rng: np.random.Generator, p: int) -> Mod:
    """General linear forms on values at the points that vanish on some functions (rows): they see what is new beside these."""
    forms = kernel_mod(functions, p)[0]
    return Mod(rng.integers(0, p, size=(count, len(forms))), p) @ Mod(forms, p)


def _multiples(
    equations: Sequence[Equation], degree: int, inside: np.ndarray, points: np.ndarray, p: int
) -> np.ndarray:
    """Values at points of a subspace, a row for each product of an equation and a monomial in the coordinates `inside` of it."""
    rows = [np.zeros((0, len(points)), dtype=np.int64)]
    for f in equations:
        terms = monomial_values(points, np.array(f.monomials), p)
        value = (terms * (np.array(f.coefficients) % p) % p).sum(axis=1) % p
        shifts = monomials_of_degree(inside.shape[1], degree - f.degree)
        rows.append(monomial_values(inside, shifts, p).T * value % p)
    return np.concatenate(rows)


def _determinants(matrices: np.ndarray, p: int) -> np.ndarray:
    """Determinants modulo p of a batch of small matrices, by expansion along the first row."""
    if matrices.shape[1] == 1:
        return np.asarray(matrices[:, 0, 0] % p)
    total = np.zeros(len(matrices), dtype=np.int64)
    for j in range(matrices.shape[1]):
        rest = np.delete(matrices[:, 1:], j, axis=2)
        total = (total + (-1) ** j * matrices[:, 0, j] * _determinants(rest, p)) % p
    return total
