"""Claims: the ledger of a paper's statements. A paper is a module with a tuple ``CLAIMS``, or a package of such modules."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from m2bridge.claims.base import Claim
from m2bridge.claims.lightning_attention.said import said_about
from m2bridge.errors import InputError

__all__ = ["PAPERS", "all_claims", "claim", "claims_of", "misprints_in", "said_about"]

PAPERS = ("lightning_attention", "polynomial_networks", "loss_landscape")
"""Papers with claims; the first is what ``m2bridge verify`` checks unless told."""


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """Every claim of a paper, in the order that its package gives them."""
    if paper not in PAPERS:
        raise InputError(f"there is no ledger of {paper!r}; there are: {', '.join(PAPERS)}", argument="paper")
    package = importlib.import_module(f"{__name__}.{paper}")
    files = [module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))]
    modules = [package, *(importlib.import_module(f"{package.__name__}.{name}") for name in files)]
    claims = [claim for module in modules for claim in getattr(module, "CLAIMS", ())]
    order: tuple[str, ...] = getattr(package, "ORDER", ())

    def place(claim: Claim) -> int:
        begins = [name for name in order if claim.id.startswith(name)]
        return order.index(max(begins, key=len)) if begins else len(order)

    return tuple(replace(claim, paper=claim.paper or package.PAPER) for claim in sorted(claims, key=place))


def misprints_in(citation: str) -> tuple[tuple[str, str], ...]:
    """The places where the paper with this citation prints something else than it means, and how each is read."""
    packages = [importlib.import_module(f"{__name__}.{paper}") for paper in PAPERS]
    return next((getattr(p, "MISPRINTS", ()) for p in packages if citation == p.PAPER), ())


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
