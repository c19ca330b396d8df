"""A network by its target coordinates, expanded as polynomials in the weights; the symmetries of its family are kept."""

from __future__ import annotations

from dataclasses import dataclass

from m2bridge.models.base import Model, Symmetry
from m2bridge.models.own import OwnNetwork


@dataclass(frozen=True, kw_only=True)
class Expanded(OwnNetwork):
    """The map from the weights of `origin` to its coordinates: same fibers, same image.

    Raises OutOfReachError, when it is made by :meth:`of`, where the coordinates are too many to be expanded.
    """

    origin: Model

    __hash__ = OwnNetwork.__hash__

    @classmethod
    def of(cls, model: Model) -> Expanded:
        own = model if isinstance(model, OwnNetwork) else OwnNetwork(recorded=model.program, name=model.title)
        return cls(recorded=own.as_map.recorded, name=own.name, notes=own.notes, origin=model)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return self.origin.symmetries
