"""Parameters of tests of which `make test` runs a few."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_except(quick: Collection[Any], parameters: Iterable[Any]) -> list[Any]:
    """Mark as slow those of `parameters`, single values, that are not in `quick`; an unknown quick one is an error."""
    listed = list(parameters)
    missing = [value for value in quick if value not in listed]
    if missing:
        raise ValueError(f"not among the parameters: {missing}")
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow, id=str(value))
        for value in listed
    ]
