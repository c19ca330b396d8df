"""Make results/certificates: facts with everything that is needed to see that they are true, and README.md, the list of them.

Run ``python results/certificates/make.py``, or with ``--list`` to write the list alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
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

HERE = Path(__file__).parent
LIST = """# Certificates

Each file proves one statement, and is checked with Python's standard library alone. In a checkout, for the first file:

    python -I m2bridge/checker.py results/certificates/{first}

It exits with 0, and the first line of its output is in the table. `sha256sum` prints the digest.

| model | first line of the output | file | sha256 |
|---|---|---|---|
"""


def main() -> None:
    if sys.argv[1:] != ["--list"]:
        make_certificates()
    (HERE / "README.md").write_text(list_of_certificates(), encoding="utf-8")


def list_of_certificates() -> str:
    """Return the list in Markdown: model, output of the checker, file and digest of each certificate."""
    paths = sorted(HERE.glob("*.json"))
    return LIST.format(first=paths[0].name) + "".join(f"{_row(path)}\n" for path in paths)


def _row(path: Path) -> str:
    checker = HERE.parents[1] / "m2bridge" / "checker.py"
    command = [sys.executable, "-I", str(checker), str(path)]
    output = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    text = path.read_bytes()
    spec = json.loads(text)["spec"]
    return f"| `{spec}` | {output.splitlines()[0]} | `{path.name}` | `{hashlib.sha256(text).hexdigest()}` |"


def make_certificates() -> None:
    for name, (question, spec, options) in FACTS.items():
        certificate = find(question)(spec, **options).certificate
        if certificate is None:
            raise SystemExit(f"{question} of {spec} has no certificate")
        several = certificate if isinstance(certificate, list | tuple) else [certificate]
        for number, own in enumerate(several):
            ending = f"-{number + 1}" if len(several) > 1 else ""
            (HERE / f"{name}{ending}.json").write_text(json.dumps(own, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
