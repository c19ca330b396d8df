"""Claims: the ledger of a paper's statements, each a file with a ``CLAIM`` or a tuple ``CLAIMS``.

Papers are subpackages; importing :func:`all_claims` reads every file in them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from m2bridge.claims.base import Claim
from m2bridge.errors import InputError

PAPERS = ("lightning_attention", "polynomial_networks", "loss_landscape")
"""Subpackages with claims; the first is what ``m2bridge verify`` checks unless told."""


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """Every claim of a paper, in the order that its package gives its files, then by name."""
    if paper not in PAPERS:
        raise InputError(f"there is no ledger of {paper!r}; there are: {', '.join(PAPERS)}", argument="paper")
    package = importlib.import_module(f"{__name__}.{paper}")
    order = getattr(package, "ORDER", ())
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    claims: list[Claim] = []
    for name in sorted(names, key=lambda n: order.index(n) if n in order else len(order)):
        found = importlib.import_module(f"{package.__name__}.{name}")
        claims += getattr(found, "CLAIMS", ())
    return tuple(claims)


def all_claims() -> tuple[Claim, ...]:
    """The claims of all papers."""
    return tuple(item for paper in PAPERS for item in claims_of(paper))


def claim(identifier: str) -> Claim:
    """The claim with this id, or the claims' ids in the error."""
    for item in all_claims():
        if item.id == identifier:
            return item
    names = ", ".join(item.id for item in all_claims())
    raise InputError(f"there is no claim {identifier!r}; there are: {names}")
