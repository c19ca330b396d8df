"""The groups that a model names, as vector fields: tried first, verified like all others, and found again by a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from m2bridge.errors import InputError
from m2bridge.models import Model
from m2bridge.models.symbolic import sparse, symbolic_weights
from m2bridge.models.symmetries import Symmetry
from m2bridge.symmetry.fields import VectorField, field_from

MOST_WEIGHTS = 1500


def known_fields(model: Model) -> list[tuple[str, VectorField]]:
    """The infinitesimal generators of the groups that a model names, each with the name of its group."""
    if model.parameter_count > MOST_WEIGHTS:
        return []
    return [
        (f"{symmetry.group}: {symmetry.name}", field)
        for symmetry in model.symmetries
        for field in generators(model, symmetry)
    ]


def generators(model: Model, symmetry: Symmetry) -> list[VectorField]:
    """A basis of the Lie algebra of a group, as vector fields."""
    weights, _ = symbolic_weights(model)
    found = []
    for row in symmetry.generators(weights):
        terms = []
        for i, entry in enumerate(row):
            if not isinstance(entry, int) and entry != 0:
                for exponents, c in sparse(entry).items():
                    monomial = tuple(j for j, e in enumerate(exponents) for _ in range(e))
                    terms.append((i, int(c), monomial))
        if terms:
            found.append(VectorField(tuple(terms)))
    return found


def declared_fields(model: Model, item: Mapping[str, Any]) -> list[VectorField]:
    """The vector fields of a symmetry as the user wrote it.

    Raises
    ------
    InputError
        It is not written as a group or a field of certificates, or does not fit the weights.
    """
    shapes, count = model.parameters, model.parameter_count
    try:
        if "field" in item:
            field = field_from(item["field"])
            if not field.terms or not all(0 <= i < count for i in field.involved):
                raise ValueError("a flat weight that does not exist")
            return [field]
        kind = item["group"]
        labels = item["weights"] if kind == "scaling" else item["axes"]
        axes = {name: (label,) if kind == "scaling" else tuple(label) for name, label in labels.items()}
        size = 1 if kind == "scaling" else int(item["size"])
        for name, label in axes.items():
            if kind not in ("gl", "torus", "scaling") or name not in shapes:
                raise ValueError(f"the group {kind!r} or the weight {name!r} does not exist")
            if kind != "scaling" and (
                len(label) != len(shapes[name])
                or any(k not in (0, "*") and n != size for k, n in zip(label, shapes[name], strict=True))
            ):
                raise ValueError(f"the labels of {name} do not fit its shape {shapes[name]}")
        group = Symmetry(name="declared", citation="the user", kind=kind, size=size, axes=axes, shapes=shapes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"a declared symmetry is not written like this: {error}", argument="symmetries"
        ) from None
    return generators(model, group)
