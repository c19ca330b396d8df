"""Records stage: older documents as those of today: of schema version 1, or of an older version of one analysis.

What version 1 recorded is kept where it means the same. What means something else now is not taken over: agreement under the
old rule, verdicts about fibers, counts of orbits. A migrated result says so in ``migrated_from``.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from m2bridge.results import Result

Document = dict[str, Any]
ENVELOPE = ("schema_version", "analysis", "analysis_version", "package_version")
"""What stands in every document before the fields of its result."""

_RENAMED: dict[str, dict[str, str]] = {"fiber": {"symmetry_dim": "known_symmetry_dim"}}
"""Keys of version 1 by analysis, and what they are called now."""

_REMOVED: dict[tuple[str, int], tuple[str, ...]] = {("boundary", 1): ("closedness",)}
"""What an older version of an analysis recorded beside what the next one records, which means the same."""

_ADDED: dict[tuple[str, int], Document] = {
    ("closure", 1): {"names": [], "certificate": []},
    ("closure", 2): {"certificate": []},
    ("membership", 1): {"certificate": []},
    ("dimension", 1): {"at_point": None},
    ("singular-locus", 1): {"places": [], "completeness": None, "undecided": [], "certificate": []},
    ("singular-locus", 2): {},
    ("singular-point", 1): {"certificate": []},
    ("symmetries", 1): {"certificate": []},
}
"""What the next version of an analysis records besides, and what stands for it in an older document: nothing was recorded."""

_ADDED_TO_COMPONENTS: Document = dict.fromkeys(
    ("tangent_dim", "multiplicity", "milnor_number", "delta_invariant")
)
"""The same of each component in versions 1 and 2 of singular-locus."""


def of_present_version(document: Document, kind: type[Result]) -> Document:
    """A document of the version before `kind`'s, where the new version only records less, or more."""
    version = document.get("analysis_version")
    older = kind.ANALYSIS, version if type(version) is int else 0
    if older not in _REMOVED and older not in _ADDED:
        return document
    kept = {key: value for key, value in document.items() if key not in _REMOVED.get(older, ())}
    if kind.ANALYSIS == "singular-locus":
        for key in ("components", "embedded"):
            kept = _each(kept, key, _ADDED_TO_COMPONENTS)
    return {**deepcopy(_ADDED.get(older, {})), **kept, "analysis_version": kind.VERSION}


def from_version_1(document: Mapping[str, Any], kind: type[Result]) -> Document:
    """A document of version 1 of `kind`, with the keys of version 2.

    Keys that are new and may be null are null. Keys that no longer exist are left out. Anything else that is missing is left
    missing, and refused by whoever decodes the document.
    """
    found = of_present_version(dict(document), kind)
    for old, new in _RENAMED.get(kind.ANALYSIS, {}).items():
        if old in found and new not in found:
            found[new] = found.pop(old)
    if found.get("agreement") is True:
        found["agreement"] = None  # two bounds, or one program under two names, counted as agreement
    if change := _CHANGES.get(kind.ANALYSIS):
        found = change(found)
    found["analysis_version"], found["migrated_from"] = kind.VERSION, 1
    hints = typing.get_type_hints(kind)
    names = {str(f.metadata.get("key", f.name)): hints[f.name] for f in dataclasses.fields(kind)}
    nullable = {key: None for key, hint in names.items() if type(None) in typing.get_args(hint)}
    kept = {key: value for key, value in found.items() if key in names or key in ENVELOPE}
    return _each({**nullable, **kept}, "evidence", dict.fromkeys(("scope", "field", "ancestry")))


def _each(document: Document, key: str, new: Document) -> Document:
    """The document, with what is `new` put before what each object in one of its lists holds."""
    items = document.get(key)
    if not isinstance(items, list):
        return document
    return {**document, key: [{**new, **item} if isinstance(item, dict) else item for item in items]}


def _fiber(document: Document) -> Document:
    """Version 1 took equal dimensions for finitely many orbits, and components over F_p for orbits over its closure."""
    found = dict(document)
    said, why = found.get("verdict"), found.get("explanation")
    if isinstance(said, str) and said != "undecided":
        found["verdict"] = "undecided"
        found["explanation"] = f"version 1 said {said}: {why}; ask again"
    found["orbits"] = found["probability"] = None
    if found.get("method") == "jacobian":
        found["fiber_dim"] = None  # the generic dimension, not that of this fiber
    # a prime over F_p, of which it is not known what it is over the closure
    return _each(found, "components", {"absolute": False, "conjugates": None, "orbit_dim": None})


def _ledger(document: Document) -> Document:
    """Version 1 named its witnesses for a whole statement, and wrote 0 seconds where an answer was known already."""
    return _each(document, "entries", {"witnesses": {}, "cached": False})


_CHANGES: dict[str, Callable[[Document], Document]] = {"fiber": _fiber, "verify": _ledger}
