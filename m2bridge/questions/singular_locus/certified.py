"""What `m2bridge check` verifies of a singular locus: the dimension, and the verdict at the representative of each orbit.

That a verdict holds on the whole orbit rests on the group, and what is known by semicontinuity rests on another orbit: neither
has a certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.certificates.points import Arc, singular_point_certificate, smooth_point_certificate
from m2bridge.models import Lightning
from m2bridge.questions import over_q
from m2bridge.questions.closure import Equation
from m2bridge.questions.singular_locus.result import Stratum
from m2bridge.questions.singular_locus.strata import fiber_points
from m2bridge.questions.singular_locus.tangents import Line, spanning_lines
from m2bridge.results import Certainty

MOST_COORDINATES = 100
"""Beyond this the curves of every orbit would take long to write down and to check."""


def certificates(
    model: Lightning, strata: Sequence[Stratum], lifted: Sequence[Equation] | None,
    size: Mapping[str, Any] | None, *, seed: int,
) -> tuple[Mapping[str, Any], ...]:  # fmt: skip
    """Certificates of the dimension and of the proved verdicts, each at its representative."""
    found = [] if size is None else [dict(size)]
    for index, stratum in enumerate(strata):
        if stratum.certainty is not Certainty.PROVED or model.coordinate_count > MOST_COORDINATES:
            continue
        A, V = (np.array(stratum.representative[name]) for name in "AV")
        weights = _flat(model, A, V)
        own = None
        if stratum.verdict == "singular":
            rng = np.random.default_rng([seed, 4, index])
            lines = spanning_lines(replace(model, parametrization="weights"), fiber_points(model, A, V), rng)
            own = singular_point_certificate(model, weights, [_arc(model, line) for line in lines], size)
        elif stratum.verdict == "smooth" and lifted is not None:
            image = model.coordinates({"A": A, "V": V}).tolist()
            own = smooth_point_certificate(model, weights, image, lifted, seed=seed)
        found += [own] if own is not None else []
    return tuple(found)


def _flat(model: Lightning, A: np.ndarray, V: np.ndarray) -> list[Any]:
    """Flat weights of ``model.free`` with these A and V."""
    if model.free is model:
        return [*A.flat, *V.flat]
    Q, K = over_q.factors(A, model.a)
    return [*Q.flat, *K.flat, *V.flat]


def _arc(model: Lightning, line: Line) -> Arc:
    """A line of (Q, K, V) as an arc of the weights of ``model.free``: K^T Q is of degree two."""
    base, direction, vector = line
    if model.free is not model:
        return np.stack([base, direction], axis=1).tolist(), vector
    parts = replace(model, parametrization="weights").unflatten(np.stack([base, direction]))
    (Q, dQ), (K, dK), (V, dV) = (parts[name] for name in "QKV")
    A = np.stack([K.T @ Q, dK.T @ Q + K.T @ dQ, dK.T @ dQ], axis=-1)
    paths = [*A.reshape(-1, 3).tolist(), *np.stack([V, dV], axis=-1).reshape(-1, 2).tolist()]
    return paths, vector
