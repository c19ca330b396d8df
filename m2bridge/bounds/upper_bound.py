"""Upper bounds of the dimension of an image, each with its argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from m2bridge.evidence import Evidence

Argument = dict[str, Any]
"""An argument as certificates write it; docs/certificates.md lists the kinds."""
_SIMPLEST_FIRST = ("parameters", "ambient", "symmetry", "slice", "virtual", "layers", "found", "literature", "span")  # fmt: skip
"""Witnesses of bounds, in the order in which a certificate prefers their arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """An upper bound for a program: its value, its method in words, and its argument; None if certificates cannot express it."""

    value: int
    method: str
    argument: Argument | None


@dataclass(frozen=True, slots=True)
class ModelBound:
    """An upper bound for a model, as evidence, with its argument; None if certificates cannot express it."""

    evidence: Evidence
    argument: Argument | None = None

    @property
    def value(self) -> int:
        return int(self.evidence.value)


def least_argument(bounds: Sequence[ModelBound]) -> Argument | None:
    """Choose the simplest argument among those of the least bounds."""
    least = min(bound.value for bound in bounds)
    tight = [bound for bound in bounds if bound.value == least and bound.argument is not None]
    tight.sort(key=lambda bound: _SIMPLEST_FIRST.index(bound.evidence.witness))
    return tight[0].argument if tight else None
