"""Batch: one question about one model, with its limits, and the key under which its answer is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from m2bridge.batch import registry
from m2bridge.limits import Limits
from m2bridge.records import SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One question about one model. The analysis, the spec, the parameters and the versions of everything make the key; limits,
    tags and priority say how and when to run it, do not change the answer and are not in the key.

    `script_sha256` is of the templates it may use; `size` is the number of parameters of the model; `name` is what
    the user calls a network of their own; `sweep` has the values of the names that a grid computes its entries from.
    """

    analysis: str
    analysis_version: int
    spec: str
    parameters: Mapping[str, Any]
    script_sha256: str
    size: int
    limits: Limits = field(default_factory=Limits)
    tags: tuple[str, ...] = ()
    priority: int = 0
    name: str | None = None
    sweep: Mapping[str, Any] = field(default_factory=dict)

    def question(self, engine_version: str) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {
            "analysis": self.analysis,
            "analysis_version": self.analysis_version,
            "engine_version": engine_version,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "schema_version": SCHEMA_VERSION,
            "script_sha256": self.script_sha256,
        }

    def key(self, engine_version: str) -> str:
        """The sha256 of the canonical JSON of the question."""
        question = self.question(engine_version)
        text = json.dumps(question, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """For the record and for the worker."""
        return {
            "analysis": self.analysis,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "size": self.size,
            "tags": list(self.tags),
            **({"name": self.name} if self.name else {}),
            **({"sweep": dict(self.sweep)} if self.sweep else {}),
        }

    @property
    def title(self) -> str:
        """One line for people; the parameters where they are not the usual ones."""
        defaults = registry.parameters_of(registry.job(self.analysis), {})
        unusual = [f"{k}={v}" for k, v in self.parameters.items() if k not in defaults or defaults[k] != v]
        return " ".join([self.analysis, self.name or self.spec, *unusual])
