"""Equations for Sage, for spreadsheets, and as ``.mrdi`` files (plain JSON) that Macaulay2 from 1.26 on and OSCAR load."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from m2bridge.models.polynomials import exponents_of
from m2bridge.questions.closure.equations import Equation

_MACAULAY2 = ("Macaulay2", "https://macaulay2.com", "1.26.06")
_OSCAR = ("Oscar", "https://github.com/oscar-system/Oscar.jl", "1.6.0")


def sage(equations: Sequence[Equation], names: Sequence[str], p: int) -> str:
    """SageMath source that defines a ring and an ideal."""
    body = ",\n    ".join(f.text() for f in equations) or "0"
    ring = f"R = PolynomialRing({f'GF({p})' if p else 'QQ'}, {json.dumps(list(names))})"
    return f"{ring}\n{', '.join(names)}, = R.gens()\nI = R.ideal([\n    {body},\n])\n"


def csv(equations: Sequence[Equation], names: Sequence[str], p: int) -> str:
    """One row a term: the number of its equation, its coefficient (a residue when `p` is not 0), and its exponents."""
    lines = [",".join(["equation", f"coefficient_mod_{p}" if p else "coefficient", *names])]
    for number, f in enumerate(equations, start=1):
        for c, m in zip(f.coefficients, f.monomials, strict=True):
            lines.append(",".join(map(str, (number, c, *exponents_of(m, len(names))))))
    return "\n".join(lines) + "\n"


def mrdi(equations: Sequence[Equation], names: Sequence[str], p: int) -> str:
    """An ideal in the namespace of Macaulay2: its package MRDI loads it, and checks it against the schema of the format."""
    field: Any = {"_type": "QuotientRing", "data": str(p)} if p else {"_type": "Ring", "data": "QQ"}
    ring = {"_type": {"name": "PolynomialRing", "params": field}, "data": {"variables": list(names)}}
    number: Callable[[int], Any] = str if p else lambda c: [str(c), "1"]
    return _document(_MACAULAY2, "Ideal", ring, _terms(equations, len(names), number))


def oscar(equations: Sequence[Equation], names: Sequence[str], p: int) -> str:
    """The same in the namespace of OSCAR, as its version 1.6 writes an ideal of a multivariate polynomial ring."""
    field: Any = {"_type": "FiniteField", "data": str(p)} if p else {"_type": "QQField"}
    ring = {"_type": {"name": "MPolyRing", "params": field}, "data": {"symbols": list(names)}}
    return _document(
        _OSCAR, "MPolyIdeal", ring, _terms(equations, len(names), lambda c: str(c % p if p else c))
    )


def _terms(equations: Sequence[Equation], count: int, number: Callable[[int], Any]) -> list[Any]:
    return [
        [[[str(e) for e in exponents_of(m, count)], number(c)] for c, m in zip(f.coefficients, f.monomials, strict=True)]
        for f in equations
    ]  # fmt: skip


def _document(namespace: tuple[str, str, str], kind: str, ring: Any, data: Any) -> str:
    """The ring stands under an identifier that is made of what the ring is, so that one file has one text."""
    name, url, version = namespace
    label = str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([url, ring])))
    label = f"{label[:14]}4{label[15:]}"  # both systems expect identifiers of version 4
    document = {
        "_ns": {name: [url, version]},
        "_type": {"name": kind, "params": label},
        "data": data,
        "_refs": {label: ring},
    }
    return json.dumps(document) + "\n"


EXPORTS = {"sage": sage, "csv": csv, "mrdi": mrdi, "oscar": oscar}
