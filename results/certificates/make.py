"""Make results/certificates: facts with everything that is needed to see that they are true.

Run ``python results/certificates/make.py``; check one with Python's standard library alone, as a referee would:
``python -I m2bridge/checker.py results/certificates/dimension-lightning.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from m2bridge.questions import find

ORIGIN = {"A": [[0, 0], [0, 0]], "V": [[0, 0]]}
ROTATED = {"Q": [[0, 1], [-1, 0]], "K": [[0, 1], [-1, 0]], "V": [[1, 2]]}
IDENTITY = {"Q": [[1, 0], [0, 1]], "K": [[1, 0], [0, 1]], "V": [[1, 2]]}
FACTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dimension-lightning": ("dimension", "lightning(d=3,dp=3)", {}),
    "dimension-deep-lightning": ("dimension", "deep-lightning(d=[3,3,3],a=[2,2],t=3)", {}),
    "dimension-multi-head": ("dimension", "multi-head(d=3,dp=2,a=1,heads=2,t=2)", {}),
    "dimension-skip": ("dimension", "skip-lightning(d=[2,2,2],a=[2,2],t=2)", {}),
    "dimension-softmax": ("dimension", "softmax(d=[3,3,3],a=[2,2],t=3)", {}),
    "dimension-mlp": ("dimension", "mlp(widths=[3,4,3],r=2)", {}),
    "dimension-defective-mlp": ("dimension", "mlp(widths=[3,5,1],r=4)", {}),
    "dimension-transformer": ("dimension", "transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1,causal=true)", {}),
    "dimension-cp": ("dimension", "cp(sizes=[3,3,3],rank=2)", {}),
    "closure-lightning": ("closure", "lightning(d=2,dp=1)", {"field": "QQ"}),
    "singular-lightning": (
        "singular-point",
        "lightning(d=2,dp=1,a=2,t=2,parametrization=attention)",
        {"at": ORIGIN},
    ),
    "symmetries-mlp": ("symmetries", "mlp(widths=[2,3,2],r=2)", {}),
    "same-lightning": ("same", "lightning(d=2,dp=1)", {"at": ROTATED, "other": IDENTITY}),
}


def main() -> None:
    for name, (question, spec, options) in FACTS.items():
        certificate = find(question)(spec, **options).certificate
        if certificate is None:
            raise SystemExit(f"{question} of {spec} has no certificate")
        several = certificate if isinstance(certificate, list | tuple) else [certificate]
        for number, own in enumerate(several):
            ending = f"-{number + 1}" if len(several) > 1 else ""
            (Path(__file__).parent / f"{name}{ending}.json").write_text(
                json.dumps(own, sort_keys=True) + "\n"
            )


if __name__ == "__main__":
    main()
