"""The torus and the coordinate permutations that preserve an image.

Both are found from the model itself and checked at random points over a large prime, so they serve every family. The torus:
a diagonal vector field d is tangent to the image iff (d_i x_i) lies in the tangent space at x, a linear condition on d
for each point x. The permutations: permuting equal axes of the weight arrays either permutes the coordinates or does not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.residues import rational
from m2bridge.questions.closure.image import Image, Matrix, Span
from m2bridge.questions.closure.monomials import Ints

_MOST_AXES = 8


def torus_weights(image: Image, span: Span, rng: np.random.Generator) -> Ints:
    """A grading of the coordinates of the span for which the ideal of the image is homogeneous: one row a grading.

    A basis of all diagonal vector fields tangent to the image, so the maximal torus; the model's own grading when it
    states one of the same rank, and a SpecError when it states one that the image does not have. The standard grading is
    always the first row.
    """
    ones, p = np.ones((1, span.dim), dtype=np.int64), image.large_prime
    conditions = _conditions(image, span, rng, p)
    basis, _, _ = kernel_mod(conditions, p)
    rows = [_integral(row, p) for row in basis]
    kept = [row for row in rows if row is not None]
    found = np.array(kept, dtype=np.int64).reshape(len(kept), span.dim)
    grading = np.concatenate([ones, found])
    if not preserves(image, span, grading, rng, image.second_prime):
        grading = ones
    stated = image.model.grading
    if stated is None or image.homogenized or stated.shape[1] != image.count:
        return grading
    given = np.concatenate([ones, np.asarray(stated, dtype=np.int64)[:, list(span.basis)]])
    if not preserves(image, span, given, rng, p):
        raise SpecError(
            f"{image.model.spec}: the image is not homogeneous for the grading that the model states"
        )
    return given if rank_mod(given % p, p) >= rank_mod(grading % p, p) else grading


def preserves(image: Image, span: Span, grading: Ints, rng: np.random.Generator, p: int) -> bool:
    """Whether each row of the grading is tangent to the image at random points over F_p."""
    conditions = _conditions(image, span, rng, p)
    return all(not np.any((conditions * (row % p) % p).sum(axis=1) % p) for row in grading)


def _conditions(image: Image, span: Span, rng: np.random.Generator, p: int) -> Matrix:
    """Rows n_i x_i, n normal to the image at x: a diagonal field d is tangent iff all of them kill d."""
    rows: list[Matrix] = [np.zeros((0, span.dim), dtype=np.int64)]
    known = 0
    for _ in range(span.dim + 3):
        point, tangents = image.tangents(rng, p)
        place = list(span.basis)
        normals, _, _ = kernel_mod(tangents[:, place], p)
        rows.append(normals * point[place] % p)
        if not len(normals):
            break
        total = rank_mod(np.concatenate(rows), p)
        if total == known:
            break
        known = total
    return np.concatenate(rows)


def _integral(row: Matrix, p: int) -> Ints | None:
    """The integer multiple of a vector of small fractions given modulo a large prime."""
    fractions: list[Fraction] = []
    for residue in row.tolist():
        value = rational(residue, p)
        if value is None or abs(value.numerator) > 100 or value.denominator > 100:
            return None
        fractions.append(value)
    common = lcm(*(f.denominator for f in fractions))
    return np.array([int(f * common) for f in fractions], dtype=np.int64)


def coordinate_permutations(image: Image, span: Span, grading: Ints, rng: np.random.Generator) -> list[Ints]:
    """Permutations s of the span's coordinates that preserve the image and the grading.

    Found by exchanging two neighbours along axes of equal length of the weight arrays; replacing variable i by
    variable s[i] maps the ideal of the image to itself.
    """
    if image.constrained:  # exchanged weights need not satisfy the constraints
        return []
    axes = [
        (name, axis, size)
        for name, shape in image.source.parameters.items()
        for axis, size in enumerate(shape)
    ]
    found: list[Ints] = []
    seen = {tuple(range(span.dim))}
    samples = [image.draw(rng, 1, image.large_prime) for _ in range(2)]
    for size in sorted({s for _, _, s in axes if s > 1}):
        equal = [(name, axis) for name, axis, s in axes if s == size]
        most = len(equal) if len(equal) <= _MOST_AXES else 2
        for chosen in (c for k in range(1, most + 1) for c in combinations(equal, k)):
            for neighbour in range(size - 1):
                s = _permutation(image, span, samples, chosen, neighbour)
                if s is None:
                    break
                if tuple(s.tolist()) not in seen and _normalises(s, grading, image.large_prime):
                    seen.add(tuple(s.tolist()))
                    found.append(s)
    return found


def _permutation(
    image: Image,
    span: Span,
    samples: list[dict[str, Matrix]],
    axes: tuple[tuple[str, int], ...],
    neighbour: int,
) -> Ints | None:
    result: Ints | None = None
    for weights in samples:
        swapped = dict(weights)
        for name, axis in axes:
            order = np.arange(swapped[name].shape[axis + 1])
            order[[neighbour, neighbour + 1]] = order[[neighbour + 1, neighbour]]
            swapped[name] = np.take(swapped[name], order, axis=axis + 1)
        before = image.at(weights, image.large_prime)[0, list(span.basis)]
        after = image.at(swapped, image.large_prime)[0, list(span.basis)]
        order_before, order_after = np.argsort(before), np.argsort(after)
        if len(np.unique(before)) != len(before) or np.any(before[order_before] != after[order_after]):
            return None
        s = np.empty(span.dim, dtype=np.int64)
        s[order_after] = order_before
        if result is not None and np.any(result != s):
            return None
        result = s
    return result


def _normalises(s: Ints, grading: Ints, p: int) -> bool:
    both = np.concatenate([grading, grading[:, s]]) % p
    return rank_mod(both, p) == rank_mod(grading % p, p)
