"""The image of a model as a cone in the space of its coordinates.

A model enters; random points of its image, tangent spaces there, its coordinates as polynomials, and the linear span
leave.
When the image is not stable under scaling, one more coordinate, equal to 1 on the image, makes it a cone: homogeneous
equations of that cone are the equations of the closure with powers of the new coordinate filled in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.linear.modular import kernel_mod, rank_mod, rank_over_q
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, primes_below
from m2bridge.linear.residues import Mod
from m2bridge.models.base import Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.questions.asking import Clock
from m2bridge.questions.source import constrained_map, leanest

Matrix = npt.NDArray[np.int64]
_SEED = 7
_MOST_TERMS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The linear span of the image.

    Attributes
    ----------
    basis: indices of coordinates that are linearly independent on the image; equations are written in these.
    linear_forms: one for each other coordinate: {coordinate index: coefficient mod p}, vanishing on the image.
    ambient: number of coordinates (the homogenizing one included).
    """

    basis: tuple[int, ...]
    linear_forms: tuple[dict[int, int], ...]
    ambient: int

    @property
    def dim(self) -> int:
        return len(self.basis)


class Image:
    """The image of a model, made a cone.

    `large_prime` and `second_prime` are for facts that do not depend on the user's prime; they divide nothing that was given.
    Points and tangent spaces of a source with equations are those of the components that solving in turn happens to meet.
    """

    def __init__(self, model: Model) -> None:
        if not model.polynomial:
            raise NotPolynomialError(f"{model.spec} is not polynomial: its image has no ideal of this kind")
        self.model = model
        self.source = model.free
        own = constrained_map(model)
        self.constrained = own is not None or self.source.parameter_dim < self.source.parameter_count
        self.numbers = given_numbers(model)
        self.large_prime, self.second_prime = primes_below(LARGE_PRIME, count=2, numbers=self.numbers)
        self.homogenized = False
        self.homogenized = not (self._is_cone() if own is None else graded_cone(own))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates; the homogenizing one is called ``1``."""
        return (
            (*self.source.coordinate_names, "1") if self.homogenized else tuple(self.source.coordinate_names)
        )

    @property
    def count(self) -> int:
        """Number of coordinates, the homogenizing one included."""
        return self.source.coordinate_count + self.homogenized

    def draw(self, rng: np.random.Generator, count: int, p: int) -> dict[str, Matrix]:
        """Random weights over F_p: arrays with a leading axis of length `count`."""
        if self.constrained:
            drawn = [self.source.draw_weights(rng, p) for _ in range(count)]
            return {n: np.stack([w[n] for w in drawn]) for n in self.source.parameters}
        return {
            n: rng.integers(0, p, size=(count, *s), dtype=np.int64) for n, s in self.source.parameters.items()
        }

    def at(self, weights: dict[str, Matrix], p: int) -> Matrix:
        """Image points of a batch of weights, mod p."""
        values: Matrix = self.source.coordinates({n: Mod(w, p) for n, w in weights.items()}).values
        return _with_column(values, 1) if self.homogenized else values

    def points(self, rng: np.random.Generator, count: int, p: int) -> Matrix:
        """Random points of the image over F_p, one a row."""
        chunk = max(1, 2_000_000 // max(1, self.count * max(1, self.source.parameter_count)))
        parts = [self.at(self.draw(rng, min(chunk, count - s), p), p) for s in range(0, count, chunk)]
        return np.concatenate(parts) if parts else np.zeros((0, self.count), dtype=np.int64)

    def tangents(self, rng: np.random.Generator, p: int) -> tuple[Matrix, Matrix]:
        """A random point of the image cone over F_p and vectors (rows) that span the tangent space there."""
        return self.tangents_at({n: w[0] for n, w in self.draw(rng, 1, p).items()}, p)

    def tangents_at(self, weights: dict[str, Matrix], p: int) -> tuple[Matrix, Matrix]:
        """The image point of given weights and the derivatives by each weight (rows); last the point itself when homogenized."""
        residues = {n: Mod(w, p) for n, w in weights.items()}
        point = self.source.coordinates(residues).values
        rows = self.source.coordinate_jacobian(residues).values.T
        if self.constrained:
            directions, _, _ = kernel_mod(self.source.constraint_jacobian(residues).values, p)
            rows = (Mod(directions, p) @ Mod(rows, p)).values
        if self.homogenized:
            point = np.append(point, 1)
            rows = np.concatenate([_with_column(rows, 0), point[None]])
        return point, rows

    def _is_cone(self) -> bool:
        """Whether the point itself is tangent, at random points over two large primes: then scaling preserves the closure."""
        for p in (self.large_prime, self.second_prime):
            point, rows = self.tangents(np.random.default_rng(_SEED), p)
            if rank_mod(np.concatenate([rows, point[None]]), p) > rank_mod(rows, p):
                return False
        return True

    def dim(self, rng: np.random.Generator, p: int) -> int:
        """Rank of the tangent space at a random point over F_p: a lower bound of the dimension of the cone over QQ."""
        return rank_mod(self.tangents(rng, p)[1], p)

    @cached_property
    def polynomials(self) -> tuple[Any, ...] | None:
        """The coordinates as polynomials in the weights (python-flint), or None: too many terms, or weights with constraints."""
        count = self.source.parameter_count
        if self.constrained or self.count * count > _MOST_TERMS:
            return None
        names = [f"w{i}" for i in range(count)]
        if isinstance(self.source, PolynomialMap):
            rational = flint.fmpq_mpoly_ctx.get(names, "degrevlex")
            found = tuple(
                rational.from_dict({m: flint.fmpq(c.numerator, c.denominator) for m, c in terms})
                for terms in self.source.polynomials
            )
            return (*found, rational.constant(1)) if self.homogenized else found
        context = flint.fmpz_mpoly_ctx.get(names, "degrevlex")
        flat = np.empty(count, dtype=object)
        flat[:] = context.gens()
        values = np.asarray(self.source.coordinates(self.source.unflatten(flat)), dtype=object).reshape(-1)
        zero = context.gens()[0] * 0
        found = tuple(zero + value for value in values)
        return (*found, zero + 1) if self.homogenized else found

    def span(self, rng: np.random.Generator, p: int, clock: Clock | None = None) -> Span:
        """The linear span of the image, with coordinates of few terms preferred as its basis."""
        order = np.arange(self.count)
        points = self.points(rng, self.count + 12, p)
        check = None if clock is None else clock.check
        basis, pivots, free = kernel_mod(points, p, check)
        if free and self.polynomials is not None:
            lengths = [len(f.monoms()) for f in self.polynomials]
            order = np.argsort(np.array(lengths), kind="stable")
            basis, pivots, free = kernel_mod(points[:, order], p, check)
        forms = tuple({int(order[i]): int(row[i]) for i in np.flatnonzero(row)} for row in basis)
        chosen = tuple(sorted(int(order[i]) for i in pivots))
        return Span(basis=chosen, linear_forms=forms, ambient=self.count)


def graded_cone(source: PolynomialMap) -> bool:
    """Whether a grading of the variables makes all constraints homogeneous and all coordinates homogeneous of one degree, not 0.

    Then the image is a cone on every component of the source. A random point would only speak for the component it lies on.
    """
    if source.grading is None:
        return False
    nonzero = [i for i, terms in enumerate(source.polynomials) if terms]
    rows = source.grading[:, nonzero].tolist()
    return rank_over_q([*rows, [1] * len(nonzero)]) == rank_over_q(rows) if nonzero and rows else not nonzero


def image_of(model: Model) -> Image:
    """The image of a polynomial model, by the parametrization with the fewest unconstrained weights that is known."""
    if model.polynomial and model.free.coordinate_count == 0:
        raise InputError(f"{model.spec} has no coordinates")
    return Image(leanest(model))


def _with_column(matrix: Matrix, value: int) -> Matrix:
    return np.concatenate([matrix, np.full((len(matrix), 1), value, dtype=np.int64)], axis=1)
