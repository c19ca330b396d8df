"""Claims: the ledger of a paper's statements, each a file with a ``CLAIM`` or a tuple ``CLAIMS``.

Papers are subpackages; importing :func:`all_claims` reads every file in them.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from typing import Any

from m2bridge.claims import lightning_attention
from m2bridge.claims.base import Claim
from m2bridge.errors import InputError

PAPERS = ("lightning_attention", "polynomial_networks")
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
        claims += [replace(c, paper=c.paper or package.PAPER) for c in getattr(found, "CLAIMS", ())]
    return tuple(claims)


def all_claims() -> tuple[Claim, ...]:
    """The claims of all papers."""
    return tuple(item for paper in PAPERS for item in claims_of(paper))


def said_about(question: str, subject: Any, answer: Any) -> dict[str, Any]:
    """Fields of an answer that say what a paper printed about it, and whether it is so; empty where no paper says anything."""
    if question not in lightning_attention.SAID_ABOUT:
        return {}
    from m2bridge.claims.lightning_attention import said  # reads the results of questions, which ask for it

    return said.ABOUT[question](subject, answer)


def claim(identifier: str) -> Claim:
    """The claim with this id, or the claims' ids in the error."""
    for item in all_claims():
        if item.id == identifier:
            return item
    names = ", ".join(item.id for item in all_claims())
    raise InputError(f"there is no claim {identifier!r}; there are: {names}")
