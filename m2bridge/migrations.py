"""Records stage: older documents as those of today: of schema version 1, or of an older version of one analysis.

What version 1 recorded is kept where it means the same. What means something else now is not taken over: agreement under the
old rule, verdicts about fibers, counts of orbits. A migrated result says so in ``migrated_from``.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Union

from m2bridge.results import Evidence, Result

Document = dict[str, Any]

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
            if isinstance(kept.get(key), list):
                kept[key] = [{**_ADDED_TO_COMPONENTS, **c} if isinstance(c, dict) else c for c in kept[key]]
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
    found = _reworded(found, kind.ANALYSIS)
    found["analysis_version"], found["migrated_from"] = kind.VERSION, 1
    hints = typing.get_type_hints(kind)
    names = {str(f.metadata.get("key", f.name)): hints[f.name] for f in dataclasses.fields(kind)}
    envelope = ("schema_version", "analysis", "analysis_version", "package_version")
    kept = {key: value for key, value in found.items() if key in names or key in envelope}
    for key, hint in names.items():
        if key not in kept and _nullable(hint):
            kept[key] = None
    if isinstance(kept.get("evidence"), list):
        kept["evidence"] = [_evidence(item) for item in kept["evidence"]]
    return kept


def _nullable(hint: Any) -> bool:
    union = typing.get_origin(hint) in (Union, types.UnionType)
    return union and type(None) in typing.get_args(hint)


def _evidence(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    new = {f.name: None for f in dataclasses.fields(Evidence) if f.name in ("scope", "field", "ancestry")}
    return {**new, **item}


def _reworded(document: Document, analysis: str) -> Document:
    change = _CHANGES.get(analysis)
    return document if change is None else change(document)


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
    if isinstance(found.get("components"), list):
        found["components"] = [_component(item) for item in found["components"]]
    return found


def _component(item: Any) -> Any:
    """A prime over F_p, of which it is not known what it is over the closure."""
    if not isinstance(item, dict):
        return item
    return {"absolute": False, "conjugates": None, "orbit_dim": None, **item}


def _ledger(document: Document) -> Document:
    """Version 1 named its witnesses for a whole statement, and wrote 0 seconds where an answer was known already."""
    if not isinstance(document.get("entries"), list):
        return document
    new = {"witnesses": {}, "cached": False}
    return {**document, "entries": [{**new, **e} if isinstance(e, dict) else e for e in document["entries"]]}


_CHANGES: dict[str, Callable[[Document], Document]] = {"fiber": _fiber, "verify": _ledger}
