"""What one witness says, in one line: constructors of evidence that know how sure their witness is."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.linear.numeric import NumericRank
from m2bridge.results import Certainty, Evidence, Value, said

says = said
"""What a witness computed, probable unless `more` says otherwise; with a prime, over F_p."""


def proves(quantity: str, value: Value, witness: str, method: str, **more: Any) -> Evidence:
    """What a witness proves."""
    return says(quantity, value, witness, method, certainty=Certainty.PROVED, **more)


def floats(
    quantity: str, found: NumericRank, method: str, *, corank_of: int | None = None, **more: Any
) -> Evidence:
    """A rank in float64, or the corank of so many columns, with its gap; the value is None where floats do not decide."""
    value = found.rank if found.rank is None or corank_of is None else corank_of - found.rank
    gap = float(found.gap) if np.isfinite(found.gap) else None
    return says(quantity, value, "numpy", method, certainty=Certainty.NUMERIC, detail={"gap": gap}, **more)


def compared(quantity: str, *sayings: tuple[str, str, Value], **more: Any) -> list[Evidence]:
    """One quantity from several witnesses, each with its method and its value."""
    return [says(quantity, value, witness, method, **more) for witness, method, value in sayings]
