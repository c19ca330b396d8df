"""Analyses stage, closure: questions to Macaulay2 that share one time limit, and how polynomials travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from m2bridge.engine.base import Engine, Limits, Run
from m2bridge.errors import LimitError, OutputError
from m2bridge.models.base import Model
from m2bridge.protocol import Values
from m2bridge.questions.clock import Clock
from m2bridge.questions.workbench import Workbench
from m2bridge.results import EngineUse, ScriptUse

Polynomial = Mapping[tuple[int, ...], Any]
_LEAST_SECONDS = 1.0


class Asking:
    """Macaulay2 under one clock: each run gets what is left of the time, or less when asked to."""

    def __init__(
        self, engine: Engine, limits: Limits, clock: Clock, *,
        keep: Path | None = None, progress: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self._engine, self._limits, self.clock = engine, limits, clock
        self._keep, self._progress = keep, progress
        self.scripts: list[ScriptUse] = []
        self.peak_memory_bytes: int | None = None
        self.last_seconds = 0.0
        self.last_run: Run | None = None

    @property
    def engine_use(self) -> EngineUse:
        return EngineUse(version=self._engine.info.version, origin=self._engine.info.origin)

    def ask(
        self,
        template: str | Path,
        parameters: Mapping[str, object],
        model: Model | None = None,
        *,
        seconds: float | None = None,
    ) -> tuple[Values, str | None]:
        """The values a template emits, and which limit stopped it, if any; what was emitted before is there."""
        remaining = self.clock.remaining
        allowed = [s for s in (remaining, seconds) if s is not None]
        wall = max(_LEAST_SECONDS, min(allowed)) if allowed else None
        bench = Workbench(
            self._engine,
            limits=replace(self._limits, wall_seconds=wall),
            keep=self._keep,
            progress=self._progress,
        )
        values, error = bench.ask_within_limits(template, parameters, model)
        self.scripts += bench.scripts
        self.last_seconds, self.last_run = bench.seconds, values.run
        if bench.peak_memory_bytes is not None:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, bench.peak_memory_bytes)
        return values, _reason(error)


def _reason(error: LimitError | None) -> str | None:
    return None if error is None else str(error)


def to_lists(polynomials: Sequence[Polynomial], p: int) -> list[list[object]]:
    """Polynomials over F_p as integer lists: coefficients (balanced), monomials as lists of variable indices."""
    return [
        [
            [c if 2 * c <= p else c - p for c in f.values()],
            [[i for i, e in enumerate(m) for _ in range(e)] for m in f],
        ]
        for f in polynomials
    ]


def from_lists(values: Values, tag: str, count: int, p: int) -> list[dict[tuple[int, ...], Any]]:
    """Polynomials that a script emitted as such lists, coefficients as text; residues for p > 0, fractions for p = 0."""
    found: list[dict[tuple[int, ...], Any]] = []
    try:
        for coefficients, monomials in values[tag]:
            polynomial: dict[tuple[int, ...], Any] = {}
            for text, variables in zip(coefficients, monomials, strict=True):
                exponents = [0] * count
                for i in variables:
                    exponents[i] += 1
                polynomial[tuple(exponents)] = int(text) % p if p else Fraction(text)
            found.append(polynomial)
    except (ValueError, TypeError, IndexError) as error:
        raise OutputError(f"{tag} holds no list of polynomials: {error}", run=values.run) from None
    return found
