"""Ledgers of papers: their statements, checked by the questions of m2bridge.

A paper is a module with the text ``PAPER``, its citation, and a tuple ``CLAIMS``, or a package of modules with such tuples. It is
announced by an entry point of the group ``m2bridge.papers``, like the papers of other packages. A paper with statements about
single answers announces a function in the group ``m2bridge.comments`` (:func:`m2bridge.questions.comments.comments_on`).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

from m2bridge.errors import InputError
from m2bridge.papers.base import Claim

GROUP = "m2bridge.papers"
DEFAULT_PAPER = "lightning_attention"
"""The paper that ``m2bridge verify`` checks by default."""


@cache
def papers() -> tuple[str, ...]:
    """Return the names of all papers with a ledger, the default one first."""
    names = {point.name for point in entry_points(group=GROUP)}
    return tuple(sorted(names, key=lambda name: (name != DEFAULT_PAPER, name)))


@cache
def _module(paper: str) -> ModuleType:
    modules = [point.value for point in entry_points(group=GROUP) if point.name == paper]
    if not modules:
        raise InputError(f"no ledger of {paper!r}; available: {', '.join(papers())}", argument="paper")
    return importlib.import_module(modules[0])


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """Return every claim of a paper, in the order of its tuple ``ORDER`` if it has one."""
    package = _module(paper)
    names = [module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))]
    modules = [package, *(importlib.import_module(f"{package.__name__}.{name}") for name in names)]
    claims = [claim for module in modules for claim in getattr(module, "CLAIMS", ())]
    order: tuple[str, ...] = getattr(package, "ORDER", ())

    def position(claim: Claim) -> int:
        prefixes = [name for name in order if claim.id.startswith(name)]
        return order.index(max(prefixes, key=len)) if prefixes else len(order)

    return tuple(replace(claim, paper=claim.paper or package.PAPER) for claim in sorted(claims, key=position))


def misprints_in(citation: str) -> tuple[tuple[str, str], ...]:
    """Return the misprints of the paper with this citation, and how each is read."""
    modules = map(_module, papers())
    return next((getattr(m, "MISPRINTS", ()) for m in modules if citation == m.PAPER), ())


def all_claims() -> tuple[Claim, ...]:
    """Return the claims of all papers."""
    return tuple(item for paper in papers() for item in claims_of(paper))


def claim(identifier: str) -> Claim:
    """Return the claim with this id; the error lists the ids."""
    for item in all_claims():
        if item.id == identifier:
            return item
    names = ", ".join(item.id for item in all_claims())
    raise InputError(f"no claim {identifier!r}; available: {names}")
