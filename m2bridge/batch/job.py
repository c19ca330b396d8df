"""A job: one question about one model, with its limits and the key of its record."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from m2bridge.batch import registry
from m2bridge.limits import Limits
from m2bridge.questions import find
from m2bridge.records import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file of the user that a job is about: a Macaulay2 template or an ideal."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One question about one model, or one file of the user.

    The key is computed from the analysis, the spec, the parameters and all versions. Limits, tags and priority do not change the
    answer and are not part of the key.

    `script_sha256` is the hash of the templates that the analysis may use. `size` is the number of parameters of the model.
    `name` is the name of a user-defined network. `sweep` contains the values of names from which a grid computes its entries, and
    of the arguments of a function in a file.
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
    file: UserFile | None = None

    def question(self, engine_version: str) -> dict[str, Any]:
        """Return everything that determines the answer."""
        return {
            "analysis": self.analysis,
            "analysis_version": self.analysis_version,
            "engine_version": engine_version,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "schema_version": SCHEMA_VERSION,
            "script_sha256": self.script_sha256,
            **({"file": self.file.text} if self.file else {}),
            **({"msolve_version": registry.msolve_version()} if self._uses_msolve else {}),
        }

    @property
    def _uses_msolve(self) -> bool:
        return self.analysis != "template" and find(self.analysis).uses_msolve

    def key(self, engine_version: str) -> str:
        """Return the sha256 of the canonical JSON of :meth:`question`."""
        question = self.question(engine_version)
        text = json.dumps(question, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return the job as a JSON document, for the record and for the worker."""
        return {
            "analysis": self.analysis,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "size": self.size,
            "tags": list(self.tags),
            **({"name": self.name} if self.name else {}),
            **({"sweep": dict(self.sweep)} if self.sweep else {}),
            **({"file": dataclasses.asdict(self.file)} if self.file else {}),
        }

    @property
    def title(self) -> str:
        """Return one line that identifies the job; parameters with default values are omitted."""
        is_template = self.analysis == "template"
        defaults = {"seed": 0} if is_template else registry.parameters_of(find(self.analysis), {})
        parameters = [f"{k}={v}" for k, v in self.parameters.items() if k not in defaults or defaults[k] != v]
        return " ".join([self.analysis, self.name or self.spec, *parameters])
