"""Counted work: a limit of a search that is the same on every machine and under every load.

One unit is about 1 to 4 nanoseconds of processor time. The costs below were measured as processor time; they are part of the
definition of a search, so that two runs with one seed stop at the same place.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from m2bridge.programs.program import Program

OF_DIMENSION = 1e10
"""For one search, and for the cuts of one program, when bounds of a dimension leave a gap."""
OF_SYMMETRIES = 6e10
"""For the question that asks for symmetries."""
OF_ANALYTIC = 1.2e11
"""For an analytic network: nothing else bounds its dimension."""
_LEAST_OF_A_PART, _OF_AN_UNKNOWN = 1e6, 3.0  # work of a graded part: a constant, and a factor of unknowns^3
_OF_AN_ENTRY = 25_000.0  # work of one array entry of a program
_LEAST_OF_A_RANK, _OF_A_WEIGHT = 1e7, 1.7  # work of a rank: a constant, and a factor of weights^3


class WorkBudget:
    """Counts the work that may still be done; `check` is called whenever some is spent, and raises at the user's limit."""

    def __init__(self, units: float = OF_DIMENSION, check: Callable[[], None] | None = None) -> None:
        self.left, self._check = units, check

    def check(self) -> None:
        """Raise if the user's limit is reached."""
        if self._check is not None:
            self._check()

    def spend(self, units: float) -> bool:
        """Subtract `units` if as many are left; return whether they were."""
        self.check()
        if units > self.left:
            return False
        self.left -= units
        return True

    def charge(self, units: float) -> None:
        """Subtract `units`, also if fewer are left."""
        self.check()
        self.left -= units

    def share(self, fraction: float) -> WorkBudget:
        """Split off a fraction of what is left as a budget of its own."""
        units = max(0.0, fraction * self.left)
        self.left -= units
        return WorkBudget(units, self._check)


def entries(program: Program) -> int:
    """Return the number of entries of all arrays that a program computes."""
    return sum(prod(item.shape) for item in program.instructions)


def of_kernel(unknowns: int) -> float:
    """Return the work of a kernel of a graded part with this number of unknowns: 1 ms, and 3 to 8 s for 1000."""
    return _LEAST_OF_A_PART + _OF_AN_UNKNOWN * unknowns**3


def of_verification(program: Program) -> float:
    """Return the work of verifying that a vector field is a symmetry: 25 microseconds per entry."""
    return _OF_AN_ENTRY * entries(program)


def of_cut(program: Program) -> float:
    """Return the work of bounding the two parts of a program: 6 to 44 microseconds per entry."""
    return _OF_AN_ENTRY * entries(program)


def of_rank(program: Program) -> float:
    """Return the work of the rank of the Jacobian at a random point: 1 s for 830 weights."""
    return _LEAST_OF_A_RANK + _OF_A_WEIGHT * program.parameter_count**3
