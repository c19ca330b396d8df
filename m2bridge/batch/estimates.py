"""Batch: how long a job may take, from what the store has seen. Records enter, seconds leave, or None."""

from __future__ import annotations

import math
from collections.abc import Iterable

from m2bridge.batch.plan import Job


class Estimates:
    """Mean seconds of the same analysis of the same model; else a power law in the number of parameters, fitted to the same
    analysis, when three sizes have been seen.
    """

    def __init__(self, history: Iterable[tuple[str, str, int, float]] = ()) -> None:
        self._same: dict[tuple[str, str], tuple[float, int]] = {}
        self._sizes: dict[str, dict[int, tuple[float, int]]] = {}
        self._laws: dict[str, tuple[float, float] | None] = {}
        for analysis, model, size, seconds in history:
            self.learn(analysis, model, size, seconds)

    def learn(self, analysis: str, model: str, size: int, seconds: float) -> None:
        total, count = self._same.get((analysis, model), (0.0, 0))
        self._same[analysis, model] = (total + seconds, count + 1)
        sizes = self._sizes.setdefault(analysis, {})
        total, count = sizes.get(size, (0.0, 0))
        sizes[size] = (total + math.log(max(seconds, 1e-3)), count + 1)
        self._laws.pop(analysis, None)

    def of(self, job: Job) -> float | None:
        """Seconds that the job may take."""
        if found := self._same.get((job.analysis, job.spec)):
            return found[0] / found[1]
        if job.analysis not in self._laws:
            self._laws[job.analysis] = _fit(self._sizes.get(job.analysis, {}))
        law = self._laws[job.analysis]
        return None if law is None else math.exp(min(law[0] + law[1] * math.log(max(job.size, 1)), 20.0))


def _fit(sizes: dict[int, tuple[float, int]]) -> tuple[float, float] | None:
    """Least squares of log seconds against log size, with a slope that is not negative."""
    points = [(math.log(max(size, 1)), total / count) for size, (total, count) in sizes.items()]
    if len(points) < 3:
        return None
    x0 = sum(x for x, _ in points) / len(points)
    y0 = sum(y for _, y in points) / len(points)
    spread = sum((x - x0) ** 2 for x, _ in points)
    slope = max(0.0, sum((x - x0) * (y - y0) for x, y in points) / spread) if spread else 0.0
    return y0 - slope * x0, slope
