"""How sure a statement is."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Certainty(StrEnum):
    """How sure a number is, from strongest to weakest."""

    PROVED = "proved"
    """Holds over QQ (or RR); the record has certificates with which ``m2bridge check`` verifies its first line."""
    THEOREM = "theorem"
    """Follows from exact computations and a named theorem whose hypotheses were checked."""
    COMPUTED = "computed"
    """Computed exactly over QQ, by Macaulay2 or here, without a certificate of all of it."""
    PROBABLE = "probable"
    """Exact over F_p, or at random points; wrong with a probability that is stated."""
    NUMERIC = "numeric"
    """Floating point with a visible gap."""
    UNDECIDED = "undecided"
    """Nothing was decided; of an answer, not of a statement."""

    @property
    def rank(self) -> int:
        """Return the position in this order: 0 is the strongest."""
        return list(Certainty).index(self)

    @property
    def exact(self) -> bool:
        """Tell whether the statement is about QQ (or RR) and rests on no probability and no rounding."""
        return self.rank <= Certainty.COMPUTED.rank

    @staticmethod
    def weakest(items: Iterable[Certainty]) -> Certainty:
        """Return the certainty of a conclusion that needs all of `items`."""
        return max(items, key=lambda item: item.rank, default=Certainty.NUMERIC)
