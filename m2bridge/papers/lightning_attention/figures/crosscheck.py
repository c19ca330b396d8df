"""Compare the drawn surface with the implicit equation on grids.

The two witnesses are the parametrization and the kernel computed by Macaulay2:

1. Every drawn point satisfies the equation, up to rounding.
2. Every real root of the equation on a grid of lines has real weights, found without the parametrization of the drawing: columns
   alpha_1, alpha_2 of A with alpha_2 a = alpha_1 b span the kernel of a 4 x 4 matrix. Where a and b are proportional the sign of
   e2 decides; roots that lie only in the closure are the dotted part, and are counted apart.
3. Every such root with real weights lies near a drawn point, so that no part of the surface is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.errors import DisagreementError
from m2bridge.figures.slices import Polynomial, Slice, evaluate
from m2bridge.papers.lightning_attention.figures.surface import Curve, Patch, e2_sign

_ON_EQUATION = 1e-9
"""A point lies on the surface if the equation's value is below this, relative to its terms."""
_FAR_FROM_WEIGHTS = 1e-4
"""A root of the equation further than this from every image of real weights has none."""
_LARGEST_HOLE = 0.03
"""Diagonals of the box from a real root with real weights to the nearest drawn point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Numbers of compared points and largest deviations; `failures` is empty if surface and equation agree.

    `gap` is the largest distance of a root with real weights to the drawn points, relative to the diagonal of the box.
    """

    drawn: int
    roots: int
    closure_only_roots: int
    gap: float
    failures: tuple[str, ...]

    def require(self) -> None:
        """Raise DisagreementError if there are failures."""
        if self.failures:
            raise DisagreementError(
                "the surface of the parametrization and the equation computed by Macaulay2 disagree",
                conflicts=list(self.failures),
            )


def compare(
    affine_slice: Slice,
    polynomial: Polynomial,
    patches: Sequence[Patch],
    curves: Sequence[Curve],
    *,
    grid: int = 24,
) -> Check:
    """Compare surface and equation in both directions for one slice."""
    drawn = np.concatenate(
        [patch.points.reshape(-1, 3) for patch in patches] + [curve.points for curve in curves]
    )
    value, size = evaluate(polynomial, drawn)
    # near the origin of the slice all terms may be small, so the scale includes the coefficients
    scale = size + 1e-3 * max(abs(float(c)) for c in polynomial.values())
    residual = np.abs(value) / scale
    failures = []
    if (bad := int((residual > _ON_EQUATION).sum())) > 0:
        failures.append(
            f"{bad} of {len(drawn)} drawn points do not satisfy the equation (residual {residual.max():.1e})"
        )
    roots = real_roots(affine_slice, polynomial, grid)
    distances, only = _distances_to_weights(affine_slice, roots)
    if (bad := int((distances > _FAR_FROM_WEIGHTS).sum())) > 0:
        failures.append(f"{bad} of {len(roots)} real roots of the equation have no real weights")
    gap = _largest_gap(affine_slice, roots[~only], drawn)
    if gap > _LARGEST_HOLE:
        failures.append(
            f"a real root of the equation with real weights is {gap:.2f} diagonals from the drawn points"
        )
    return Check(
        drawn=len(drawn),
        roots=len(roots),
        closure_only_roots=int(only.sum()),
        gap=gap,
        failures=tuple(failures),
    )


def _largest_gap(affine_slice: Slice, roots: np.ndarray, drawn: np.ndarray) -> float:
    diagonal = float(np.linalg.norm(affine_slice.limits[:, 1] - affine_slice.limits[:, 0]))
    nearest = [float(((drawn - root) ** 2).sum(axis=1).min()) for root in roots]
    return float(np.sqrt(max(nearest, default=0.0))) / diagonal


def real_roots(affine_slice: Slice, polynomial: Polynomial, grid: int) -> np.ndarray:
    """Return the real roots in the box on a grid of lines parallel to each axis."""
    points = []
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        # The lines avoid the symmetry planes.
        boxes = affine_slice.limits[others]
        sides = [np.linspace(low, high, grid) * 0.987 + 0.0031 for low, high in boxes]
        for first in sides[0]:
            for second in sides[1]:
                coefficients = np.zeros(5)
                for exponents, c in polynomial.items():
                    factor = first ** exponents[others[0]] * second ** exponents[others[1]]
                    coefficients[4 - exponents[axis]] += float(c) * factor
                if not coefficients[:4].any():
                    continue
                roots = np.roots(np.trim_zeros(coefficients, "f"))
                real = roots[np.abs(roots.imag) <= 1e-9 * (1 + np.abs(roots))].real
                for root in real[
                    (real >= affine_slice.limits[axis, 0]) & (real <= affine_slice.limits[axis, 1])
                ]:
                    point = np.empty(3)
                    point[axis], point[others[0]], point[others[1]] = root, first, second
                    points.append(point)
    return np.array(points).reshape(-1, 3)


def _distances_to_weights(affine_slice: Slice, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the relative distance of each point to the image, and whether the point lies only in the closure (distance 0)."""
    if not len(points):
        return np.zeros(0), np.zeros(0, dtype=bool)
    z = affine_slice.points(points)
    a, b = z[:, :3], z[:, 3:]
    norm = np.linalg.norm(z, axis=1)
    # unknown forms alpha_1, alpha_2: alpha_2 a - alpha_1 b = 0, four coefficients of degree 3
    system = np.zeros((len(z), 4, 4))
    for column in range(2):
        system[:, column : column + 3, column] = -b
        system[:, column : column + 3, 2 + column] = a
    _, values, rows = np.linalg.svd(system)
    proportional = values[:, 2] < 1e-6 * values[:, 0]
    kernel = rows[:, 3]
    products = np.zeros((len(z), 6, 2))  # nu -> (alpha_1 nu, alpha_2 nu)
    for block, form in enumerate((kernel[:, :2], kernel[:, 2:])):
        products[:, 3 * block, 0] = form[:, 0]
        products[:, 3 * block + 1, 0] = form[:, 1]
        products[:, 3 * block + 1, 1] = form[:, 0]
        products[:, 3 * block + 2, 1] = form[:, 1]
    nu = np.einsum("pij,pj->pi", np.linalg.pinv(products), z)
    distances = np.linalg.norm(np.einsum("pij,pj->pi", products, nu) - z, axis=1) / norm
    only = proportional & (e2_sign(affine_slice, points) > 0)
    return np.where(proportional, 0.0, distances), only
