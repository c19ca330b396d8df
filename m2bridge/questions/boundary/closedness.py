"""Is the image closed in the Euclidean topology? An experiment with convergent sequences; Corollary A.1 is the proof."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from m2bridge.models import Lightning
from m2bridge.questions.boundary.decide import decide
from m2bridge.questions.boundary.examples import separated
from m2bridge.questions.boundary.points import Coordinates
from m2bridge.questions.boundary.result import Convergence, Experiment
from m2bridge.questions.boundary.search import search

_TERMS = (1, 10, 100, 1000)
_HALVINGS = 4


def experiment(model: Lightning, seed: int, *, sequences: int = 3) -> Experiment:
    """Sequences of networks whose weights grow without bound while the functions converge; and closure-only points that
    converge to the boundary, with their distance to the image.
    """
    rng = np.random.default_rng([seed, 13])
    found = [_growing(model, rng, index) for index in range(sequences)]
    if model.d >= 2:
        found.append(_towards_boundary(model, rng))
    return Experiment(
        label="experiment",
        description="functions that converge while their weights grow, and closure-only points that converge to the boundary: "
        "distances to the limit, or to the image; the limits are decided exactly",
        sequences=tuple(found),
        limits_in_image=all(s.limit in ("image", "boundary") for s in found),
    )


def _growing(model: Lightning, rng: np.random.Generator, index: int) -> Convergence:
    """A_i = i A + A', V_i = V / i + V' / i^2: the functions tend to that of (A, V)."""
    r = model.attention_rank
    left, right, more_left = (
        rng.integers(-3, 4, shape) for shape in ((model.d, r), (r, model.d), (model.d, r))
    )
    V, more_V = rng.integers(-3, 4, (2, model.dp, model.d))
    if index % 2:  # towards a point of lower rank
        left[:, 1:] = 0
        V[1:] = 0
    limit: Coordinates = tuple(Fraction(int(c)) for c in model.coordinates({"A": left @ right, "V": V}))
    distances, norms = [], []
    for i in _TERMS:
        A = (i * left + more_left) @ right
        scaled = V / i + more_V / i**2
        point = np.asarray(model.coordinates({"A": A.astype(float), "V": scaled}))
        distances.append(float(np.linalg.norm(point - np.array(limit, dtype=float))))
        norms.append(float(np.linalg.norm(A)))
    return Convergence(
        name=f"weights grow {index + 1}",
        distances=tuple(distances),
        weight_norms=tuple(norms),
        limit=decide(model, limit).where,
    )


def _towards_boundary(model: Lightning, rng: np.random.Generator) -> Convergence:
    """h (x) q (x) (x_1^2 + eps x_2^2), eps = 1, 1/4, 1/16, ...: only in the closure; how far from the image?"""
    h, q = rng.integers(1, 4, model.dp), rng.integers(1, 4, model.d)
    hessian = np.zeros((model.d, model.d), dtype=int)
    distances = []
    for power in range(_HALVINGS):
        hessian[0, 0], hessian[1, 1] = 2 * 4**power, 2
        distances.append(search(model, separated(model, h, q, hessian), rng, starts=12).distance)
    hessian[0, 0], hessian[1, 1] = 2, 0
    return Convergence(
        name="closure-only points towards the boundary",
        distances=tuple(distances),
        weight_norms=None,
        limit=decide(model, separated(model, h, q, hessian)).where,
    )
