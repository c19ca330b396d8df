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
    """Every claim of every paper, in the order that the paper's package gives its files, then by name."""
    claims: list[Claim] = []
    for paper in PAPERS:
        package = importlib.import_module(f"{__name__}.{paper}")
        order = getattr(package, "ORDER", ())
        names = [module.name for module in pkgutil.iter_modules(package.__path__)]
        for name in sorted(names, key=lambda n: order.index(n) if n in order else len(order)):
            found = importlib.import_module(f"{package.__name__}.{name}")
            claims += getattr(found, "CLAIMS", ())
    return tuple(claims)


def claim(identifier: str) -> Claim:
    """The claim with this id, or the claims' ids in the error."""
    for item in all_claims():
        if item.id == identifier:
            return item
    names = ", ".join(item.id for item in all_claims())
    raise InputError(f"there is no claim {identifier!r}; there are: {names}")
