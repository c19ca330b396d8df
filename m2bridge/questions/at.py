"""Options that name weights, for all questions about a point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from m2bridge.questions.kernel import Option

AtOption = Annotated[
    Any,
    Option(
        "Weights: .json, .npz, .safetensors or .pt; binary floats as exact dyadics, decimals in JSON as they are.",
        read=Path,
    ),
]
RationalizeOption = Annotated[
    int | None, Option("Round the numbers of --at to fractions with denominators up to 2^BITS.", least=1)
]
