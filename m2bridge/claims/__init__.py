"""Claims: the ledger of a paper's statements, each a file with a ``CLAIM`` or a tuple ``CLAIMS``.

Papers are subpackages; importing :func:`all_claims` reads every file in them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from m2bridge.claims.base import Claim
from m2bridge.errors import InputError

PAPERS = ("lightning_attention",)


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim of every paper, in the order of the files' names."""
    claims: list[Claim] = []
    for paper in PAPERS:
        package = importlib.import_module(f"{__name__}.{paper}")
        for module in pkgutil.iter_modules(package.__path__):
            found = importlib.import_module(f"{package.__name__}.{module.name}")
            claims += getattr(found, "CLAIMS", ())
    return tuple(claims)


def claim(identifier: str) -> Claim:
    """The claim with this id, or the claims' ids in the error."""
    for item in all_claims():
        if item.id == identifier:
            return item
    names = ", ".join(item.id for item in all_claims())
    raise InputError(f"there is no claim {identifier!r}; there are: {names}")
