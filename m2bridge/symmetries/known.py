"""The groups that a model names, as vector fields: tried first, verified like all others, and found again by a search."""

from __future__ import annotations

from m2bridge.models import Model
from m2bridge.models.symbolic import sparse, symbolic_weights
from m2bridge.symmetries.fields import VectorField

MOST_WEIGHTS = 1500


def known_fields(model: Model) -> list[tuple[str, VectorField]]:
    """The infinitesimal generators of the groups that a model names, each with the name of its group."""
    if not model.symmetries or model.parameter_count > MOST_WEIGHTS:
        return []
    weights, _ = symbolic_weights(model)
    found = []
    for symmetry in model.symmetries:
        for row in symmetry.generators(weights):
            terms = []
            for i, entry in enumerate(row):
                if isinstance(entry, int) or entry == 0:
                    continue
                for exponents, c in sparse(entry).items():
                    monomial = tuple(j for j, e in enumerate(exponents) if e for _ in range(e))
                    terms.append((i, int(c), monomial))
            if terms:
                found.append((f"{symmetry.group}: {symmetry.name}", VectorField(tuple(terms))))
    return found
