"""The definition by the user of a model that belongs to no family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from m2bridge.frontends.polynomials import Terms
from m2bridge.linear.primes import NOTHING, GivenNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDefinition:
    """A map by its coordinates, or a program; empty for a model that belongs to a family.

    Attributes
    ----------
    name: the user's name for the model; None if there is none.
    is_program: whether the model is a recorded program, which has no second definition in Macaulay2.
    variables: names of the flat weights of a map.
    polynomials: the coordinates of a polynomial map, as the user wrote them; None for other models.
    numbers: coefficients, constants and exponents.
    constants: entries of a PyTorch module's state that are not weights: their values, or the entry to which one is tied.
    """

    name: str | None = None
    is_program: bool = False
    variables: tuple[str, ...] = ()
    polynomials: tuple[Terms, ...] | None = None
    numbers: GivenNumbers = NOTHING
    constants: Mapping[str, Any] = field(default_factory=dict, compare=False)


NOTHING_WRITTEN = UserDefinition()
