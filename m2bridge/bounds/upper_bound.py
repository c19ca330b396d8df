"""An upper bound of the dimension of a program's image, with its argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Argument = dict[str, Any]
"""An argument as certificates write it; docs/certificates.md lists the kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """An upper bound: its value, its method in words, and its argument; None if certificates cannot express it."""

    value: int
    method: str
    argument: Argument | None
