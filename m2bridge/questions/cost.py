"""What a question may cost before it is asked: seconds and memory from the size of its subject.

A cost is a law fitted to measurements (``benchmarks/estimate.py`` prints it beside reality). It is a prediction of the usual
case: a Groebner basis may take much longer, and the limits hold whatever was predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from m2bridge.models.base import Model
from m2bridge.programs.program import multiplications

Cost = Callable[[Any, Mapping[str, Any]], "Expense"]
"""The cost of a subject with a question's options, as a declaration gives it by ``cost=``."""
_MEGABYTE = 2**20
_OUT_OF_REACH = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """Seconds, megabytes, and from what they were predicted."""

    seconds: float
    megabytes: float
    rests_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a question will probably need, and what it, or another one, still proves where there is no Macaulay2."""

    question: str
    seconds: float
    memory_bytes: int
    rests_on: str
    without_engine: str

    @property
    def need(self) -> str:
        """Time and memory in words."""
        if self.seconds > _OUT_OF_REACH:
            return "out of reach, years at least"
        return f"about {_duration(self.seconds)} and {self.memory_bytes / _MEGABYTE:.0f} MB"


def _duration(seconds: float) -> str:
    """Seconds in a unit in which they are a small number."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.2g} s"


_JACOBIAN_SECONDS = 2e-6
"""For each weight and multiplication of the program; 1.9 million, lightning(d=16,dp=16), took 4 to 16 s on two busy cores."""
_START_SECONDS = {True: 3.5, False: 1.2}
"""Macaulay2's start and the small scripts of a question that needs it, or of one that only asks it for a further witness."""
_SEARCH_SECONDS, _MOST_SEARCH_SECONDS = 4.5e-5, 120.0
"""For the square of the number of weights, where symmetries are searched because none are known: 1.6 s of one core at 189."""
_PYTHON_MEGABYTES = 95.0


def from_program(needs_engine: bool) -> Cost:
    """The cost of a question about a model in which Jacobians of its program dominate: the default."""

    def cost(model: Any, _: Mapping[str, Any]) -> Expense:
        if not isinstance(model, Model):
            start = "nothing but the start of Macaulay2"
            return Expense(seconds=_START_SECONDS[True], megabytes=_PYTHON_MEGABYTES, rests_on=start)
        free = model.free
        weights, work = free.parameter_count, multiplications(free.program)
        search = 0.0 if free.symmetries else min(_SEARCH_SECONDS * weights**2, _MOST_SEARCH_SECONDS)
        return Expense(
            seconds=_START_SECONDS[needs_engine] + _JACOBIAN_SECONDS * weights * work + search,
            megabytes=_PYTHON_MEGABYTES + 24 * weights**2 / _MEGABYTE,
            rests_on=f"{weights} weights and {work} multiplications of the network",
        )

    return cost


def from_coordinates(model: Any, _: Mapping[str, Any]) -> Expense:
    """The cost of equations: monomials of low degree in the coordinates, and a Groebner basis in as many variables."""
    count = model.free.coordinate_count
    return Expense(
        seconds=1.4 + 1.2e-3 * float(count) ** 2.7,
        megabytes=_PYTHON_MEGABYTES + 0.1 * float(count) ** 2,
        rests_on=f"{count} coordinates",
    )
