"""Compute the intersection of a slice with M(2,1,2) from the parametrization.

A point of the slice has the quadrics a = alpha_1 nu and b = alpha_2 nu; both vanish at the root rho of nu. For a direction rho
of the real plane, a(rho) = b(rho) = 0 are two affine equations in (x, y, z): a line. So the surface is ruled, one line for
each value matrix V = nu up to scaling, and the columns of A are the quotients a / nu and b / nu: weights for every drawn point.
Its singular points are those where a and b are proportional, q (x) S: for each q the point (or line) where q_2 a = q_1 b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m2bridge.errors import InputError
from m2bridge.figures.slices import Slice

_ACROSS = 33  # points on each ruling
_COARSE = 1440  # rulings before refinement
_MOST_SUBDIVISIONS = 9
"""Times that a row of cells is refined."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Ruled part of the surface: `points` (rulings, across, 3), with the weights A (.., 2, 2) and V (.., 1, 2) of each."""

    points: np.ndarray
    A: np.ndarray
    V: np.ndarray


@dataclass(frozen=True, slots=True)
class Curve:
    """Part of the singular curve: points (count, 3); `in_image` if they have real weights (dotted otherwise)."""

    points: np.ndarray
    in_image: bool


def planes(affine_slice: Slice, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return normals (.., 2, 3) and offsets (.., 2) of the planes a(rho) = 0 and b(rho) = 0, for directions rho (.., 2)."""
    monomials = np.stack([rho[..., 0] ** 2, rho[..., 0] * rho[..., 1], rho[..., 1] ** 2], axis=-1)
    origin = np.array(affine_slice.origin, dtype=float).reshape(2, 3)
    directions = np.array(affine_slice.directions, dtype=float).reshape(3, 2, 3)
    normals = np.einsum("...m,dqm->...qd", monomials, directions)
    return normals, -np.einsum("...m,qm->...q", monomials, origin)


def rulings(affine_slice: Slice, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the end points (.., 2, 3) of the rulings for angles of rho, and whether each ruling meets the box."""
    rho = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    normals, offsets = planes(affine_slice, rho)
    along = np.cross(normals[..., 0, :], normals[..., 1, :])
    length = np.linalg.norm(along, axis=-1)
    fine = length > 1e-9 * np.linalg.norm(normals, axis=(-2, -1)) ** 2 + 1e-300
    along = along / np.where(fine, length, 1.0)[..., None]
    base = np.einsum("...dq,...q->...d", np.linalg.pinv(normals), offsets)
    near, far = np.full(angles.shape, -np.inf), np.full(angles.shape, np.inf)
    for axis, (low, high) in enumerate(affine_slice.limits):
        slope, start = along[..., axis], base[..., axis]
        flat = np.abs(slope) < 1e-12
        safe = np.where(flat, 1.0, slope)
        first, second = (low - start) / safe, (high - start) / safe
        outside = (start < low) | (start > high)
        near = np.maximum(near, np.where(flat, np.where(outside, np.inf, -np.inf), np.minimum(first, second)))
        far = np.minimum(far, np.where(flat, np.where(outside, -np.inf, np.inf), np.maximum(first, second)))
    fine &= far >= near
    ends = np.stack(
        [
            base + np.where(fine, near, 0.0)[..., None] * along,
            base + np.where(fine, far, 0.0)[..., None] * along,
        ],
        axis=-2,
    )
    return ends, fine


def surface(affine_slice: Slice) -> list[Patch]:
    """Return the real surface in the box, divided into patches where it leaves the box.

    Raises
    ------
    InputError
        No point of the surface lies in the box.
    """
    step = 0.02 * float(np.linalg.norm(affine_slice.limits[:, 1] - affine_slice.limits[:, 0]))
    # the offset avoids the coordinate axes, where slices are often not generic
    angles = np.linspace(0.0, np.pi, _COARSE, endpoint=False) + 1e-4
    angles = np.append(angles, angles[0] + np.pi)
    ends, fine = rulings(affine_slice, angles)
    for _ in range(_MOST_SUBDIVISIONS):
        jump = np.linalg.norm(np.diff(ends, axis=0), axis=-1).max(axis=-1)
        rough = np.flatnonzero((jump > step) & (fine[:-1] | fine[1:]) | (fine[:-1] != fine[1:]))
        if not len(rough):
            break
        middle = (angles[rough] + angles[rough + 1]) / 2
        angles = np.insert(angles, rough + 1, middle)
        ends, fine = rulings(affine_slice, angles)
    jump = np.linalg.norm(np.diff(ends, axis=0), axis=-1).max(axis=-1)
    breaks = ~fine[:-1] | ~fine[1:] | (jump > 4 * step)
    pieces = np.split(np.arange(len(angles)), np.flatnonzero(breaks) + 1)
    patches = [
        _patch(affine_slice, angles[kept], ends[kept])
        for piece in pieces
        if len(piece) > 1 and fine[piece].all()
        for kept in [_thinned(ends, piece, step)]
    ]
    if not patches:
        raise InputError(f"slice {affine_slice.name} is empty: no point of the neuromanifold lies in its box")
    return patches


def _thinned(ends: np.ndarray, piece: np.ndarray, step: float) -> np.ndarray:
    """Select rulings of a piece that are about half a step apart."""
    kept = [piece[0]]
    for index in piece[1:]:
        if np.linalg.norm(ends[index] - ends[kept[-1]], axis=-1).max() > step / 2 or index == piece[-1]:
            kept.append(index)
    return np.array(kept)


def _patch(affine_slice: Slice, angles: np.ndarray, ends: np.ndarray) -> Patch:
    across = np.linspace(0.0, 1.0, _ACROSS)[None, :, None]
    points = ends[:, None, 0] * (1 - across) + ends[:, None, 1] * across
    nu = np.stack([np.sin(angles), -np.cos(angles)], axis=-1)  # vanishes at rho = (cos, sin)
    A, V = weights_at(affine_slice, points, np.broadcast_to(nu[:, None, :], (*points.shape[:2], 2)))
    return Patch(points, A, V)


def weights_at(affine_slice: Slice, points: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A and V = nu for points of the slice whose quadrics are divisible by nu: the columns of A are the quotients."""
    quadrics = affine_slice.points(points.reshape(-1, 3)).reshape(*points.shape[:-1], 2, 3)
    n0, n1 = nu[..., 0], nu[..., 1]
    zero = np.zeros_like(n0)
    # (k0 x1 + k1 x2)(n0 x1 + n1 x2) = quadric, solved in the least squares sense
    rows = [np.stack(pair, axis=-1) for pair in ((n0, zero), (n1, n0), (zero, n1))]
    quotients = np.linalg.pinv(np.stack(rows, axis=-2))
    A = np.einsum("...kc,...qc->...kq", quotients, quadrics)
    return A, nu[..., None, :]


def singular_curves(affine_slice: Slice) -> tuple[list[Curve], np.ndarray]:
    """Return the parts of the singular curve in the box, and the boundary points (rows) on it."""
    samples = [_cubic(affine_slice), *_lines(affine_slice)]
    curves: list[Curve] = []
    marks: list[np.ndarray] = []
    for points in samples:
        pieces, boundary = _pieces(affine_slice, points)
        curves += pieces
        marks += boundary
    distinct: list[np.ndarray] = []
    for mark in marks:
        if all(np.linalg.norm(mark - other) > 1e-3 for other in distinct):
            distinct.append(mark)
    return curves, np.array(distinct).reshape(-1, 3)


def _system(affine_slice: Slice, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the three affine equations q_2 a = q_1 b in (x, y, z), for directions q (.., 2)."""
    mixed = np.stack([q[..., 1], -q[..., 0]], axis=-1)
    origin = np.array(affine_slice.origin, dtype=float).reshape(2, 3)
    directions = np.array(affine_slice.directions, dtype=float).reshape(3, 2, 3)
    return np.einsum("...q,dqc->...cd", mixed, directions), -np.einsum("...q,qc->...c", mixed, origin)


def _cubic(affine_slice: Slice) -> np.ndarray:
    """Return the points for those q where the system has exactly one solution: a twisted cubic, or no points."""
    angles = np.linspace(0.0, np.pi, 20001)[:-1] + 1e-5
    matrix, right = _system(affine_slice, np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    values = np.linalg.svd(matrix, compute_uv=False)
    fine = values[:, -1] > 1e-7 * values[:, 0]
    if not fine.any():
        return np.empty((0, 3))
    points = np.full((len(angles), 3), np.nan)
    points[fine] = np.linalg.solve(matrix[fine], right[fine][..., None])[..., 0]
    return np.concatenate([points, points[:1]])


def _lines(affine_slice: Slice) -> list[np.ndarray]:
    """Return the lines of solutions for those q where the system is singular and solvable."""
    angles = np.linspace(0.0, np.pi, 7)[:4]
    determinants = np.linalg.det(
        _system(affine_slice, np.stack([np.cos(angles), np.sin(angles)], axis=-1))[0]
    )
    basis = np.stack([np.cos(angles) ** (3 - k) * np.sin(angles) ** k for k in range(4)], axis=-1)
    cubic = np.linalg.solve(basis, determinants)  # the determinant as a binary cubic in q
    if np.abs(cubic).max() < 1e-12:
        candidates = np.linspace(0, np.pi, 720, endpoint=False)
    else:
        cubic = np.where(np.abs(cubic) < 1e-12 * np.abs(cubic).max(), 0.0, cubic)
        # roots in u = q_2 / q_1, and q_1 = 0 when the leading coefficient vanishes
        roots = np.roots(cubic[::-1])
        real = roots[np.abs(roots.imag) < 1e-5 * (1 + np.abs(roots))].real
        candidates = np.concatenate([np.arctan(real), [np.pi / 2] if cubic[3] == 0 else []])
    lines: list[np.ndarray] = []
    seen: list[np.ndarray] = []
    for angle in candidates:
        q = np.array([np.cos(angle), np.sin(angle)])
        matrix, right = _system(affine_slice, np.where(np.abs(q) < 1e-5, 0.0, q))
        _, values, rows = np.linalg.svd(matrix)
        if values[0] == 0 or values[2] > 1e-6 * values[0] or values[1] < 1e-6 * values[0]:
            continue  # a point, or a plane
        base = np.linalg.lstsq(matrix, right, rcond=1e-6)[0]
        if np.linalg.norm(matrix @ base - right) > 1e-6 * (1 + np.linalg.norm(right)):
            continue  # no solution
        along = rows[-1]
        key = np.concatenate([along * np.sign(along[np.argmax(np.abs(along))]), base])
        if any(np.linalg.norm(key - other) < 1e-4 for other in seen):
            continue
        seen.append(key)
        reach = float(np.linalg.norm(affine_slice.limits)) + float(np.linalg.norm(base))
        lines.append(base + np.linspace(-reach, reach, 8001)[:, None] * along)
    return lines


def _pieces(affine_slice: Slice, points: np.ndarray) -> tuple[list[Curve], list[np.ndarray]]:
    """Divide a sampled curve at the box and at the sign changes of e2, which are boundary points."""
    if not len(points):
        return [], []
    low, high = affine_slice.limits.T
    slack = 1e-9 * (high - low)
    with np.errstate(invalid="ignore"):
        inside = ((points >= low - slack) & (points <= high + slack)).all(axis=1)
    sign = np.where(inside, e2_sign(affine_slice, np.where(inside[:, None], points, 0.0)), np.nan)
    far = np.linalg.norm(np.diff(points, axis=0), axis=1) > 0.2 * np.linalg.norm(high - low)
    curves, marks, start = [], [], 0
    for i in range(1, len(points) + 1):
        ends = i == len(points) or not inside[i] or not inside[i - 1] or bool(far[i - 1])
        turns = not ends and (sign[i] > 0) != (sign[i - 1] > 0)
        if not ends and not turns:
            continue
        stop = i
        if turns:
            t = sign[i - 1] / (sign[i - 1] - sign[i])
            mark = points[i - 1] + t * (points[i] - points[i - 1])
            marks.append(mark)
        piece = points[start:stop]
        if len(piece) > 1 and inside[start]:
            tail = [mark[None]] if turns else []
            curves.append(
                Curve(np.concatenate([piece, *tail]), in_image=bool(sign[(start + stop - 1) // 2] <= 0))
            )
        start = i
    return curves, marks


def e2_sign(affine_slice: Slice, points: np.ndarray) -> np.ndarray:
    """Return 4 e2 summed over both quadrics, scaled; it is positive if a singular point lies only in the closure."""
    z = affine_slice.points(points)
    value = 4 * z[:, 0] * z[:, 2] - z[:, 1] ** 2 + 4 * z[:, 3] * z[:, 5] - z[:, 4] ** 2
    return np.asarray(value / np.maximum((z**2).sum(axis=1), 1e-300))
