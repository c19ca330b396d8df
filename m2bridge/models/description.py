"""What is known about a model before any question is asked, as one document."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.models.base import Formula, Model

MOST_SPAN_COORDINATES = 2_000
_SHOWN_COORDINATES = 12


def span_dim(model: Model, p: int | None = None, seed: int = 0) -> int | None:
    """Dimension of the linear span of the image: the rank of its coordinates at random points over F_p.

    Points are added until their number passes the rank: a lower bound, and the dimension unless the points are special.
    None above 2,000 coordinates.

    >>> from m2bridge.models import parse_spec
    >>> span_dim(parse_spec("lightning(d=2,dp=1,coordinates=full)"))
    6
    """
    if model.coordinate_count > MOST_SPAN_COORDINATES:
        return None
    if p is None:
        p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    rng = np.random.default_rng(seed)
    rows = np.zeros((0, model.coordinate_count), dtype=np.int64)
    size = 32
    while True:
        drawn = [model.draw_weights(rng, p) for _ in range(size)]
        weights = {name: Mod(np.stack([w[name] for w in drawn]), p) for name in model.parameters}
        rows = np.concatenate([rows, model.coordinates(weights).values])
        rank = rank_mod(rows, p)
        if rank < len(rows) or rank == model.coordinate_count:
            return rank
        size = len(rows)


def describe(model: Model) -> dict[str, Any]:
    """Parameters, target, symmetries, gradings, formula and bound of a model, as JSON values."""
    document: dict[str, Any] = {
        "spec": model.spec,
        "title": model.title,
        "family": model.family,
        "polynomial": model.polynomial,
        "parameters": {name: list(shape) for name, shape in model.parameters.items()},
        "variables": list(getattr(model, "variables", ())) or None,
        "parameter_count": model.parameter_count,
        "parameter_dim": model.parameter_dim,
        "free": model.free.spec if model.free is not model else None,
        "input_shape": _listed(model.input_shape),
        "output_shape": _listed(model.output_shape),
    }
    document |= _target(model)
    document["symmetries"] = [
        {"name": item.name, "group": item.group, "dim": item.dim, "citation": item.citation}
        for item in model.symmetries
    ]
    document["formula"] = _formula(model.formula)
    document["dimension_bound"] = _formula(model.dimension_bound)
    return document


def _listed(shape: tuple[int, ...] | None) -> list[int] | None:
    return None if shape is None else list(shape)


def _target(model: Model) -> dict[str, Any]:
    keys = ("ambient_dim", "coordinate_count", "coordinates", "span_dim", "grading_rank")
    if not model.polynomial:
        return dict.fromkeys(keys)
    count = model.coordinate_count
    small = count <= MOST_SPAN_COORDINATES
    grading = model.grading if small else None
    return {
        "ambient_dim": model.ambient_dim,
        "coordinate_count": count,
        "coordinates": list(model.coordinate_names[:_SHOWN_COORDINATES]) if small else None,
        "span_dim": span_dim(model),
        "grading_rank": None if grading is None else int(np.linalg.matrix_rank(grading)),
    }


def _formula(formula: Formula | None) -> dict[str, Any] | None:
    if formula is None:
        return None
    return {
        "value": formula.value,
        "citation": formula.citation,
        "hypotheses": [{"statement": text, "holds": holds} for text, holds in formula.hypotheses],
    }
