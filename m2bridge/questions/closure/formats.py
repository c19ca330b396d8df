"""Equations for other systems: Macaulay2 (as text or .mrdi), SymPy, LaTeX, JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from m2bridge.errors import InputError

if TYPE_CHECKING:
    from m2bridge.questions.closure.result import Equation

    Equations = Sequence[Equation]

_MACAULAY2_ADDRESS = "https://macaulay2.com"


def written(equations: Equations, count: int, p: int, form: str) -> str:
    """Write the equations in one of :data:`FORMATS`; `count` variables z0, z1, ..., characteristic `p`."""
    if form not in _WRITERS:
        raise InputError(f"--format {form!r} is not one of {', '.join(FORMATS)}")
    return _WRITERS[form](equations, [f"z{i}" for i in range(count)], p)


def _m2(equations: Equations, names: list[str], p: int) -> str:
    body = ",\n  ".join(f.text() for f in equations)
    ring = f"S = {f'ZZ/{p}' if p else 'QQ'}[{', '.join(names)}];"
    return f"{ring}\nI = ideal({f'{chr(10)}  {body}' if equations else '0_S'});\n"


def _sympy(equations: Equations, names: list[str], p: int) -> str:
    body = "".join(f"    {f.text(power='**')},\n" for f in equations)
    symbols = f'{", ".join(names)} = symbols("{" ".join(names)}")'
    note = f"modulus = {p}  # the coefficients are residues\n" if p else ""
    return f"from sympy import symbols\n\n{symbols}\n{note}equations = [\n{body}]\n"


def _latex(equations: Equations, _: list[str], p: int) -> str:
    return "".join(f"{f.latex()} {latex_zero(p)} \\\\\n" for f in equations)


def _json(equations: Equations, names: list[str], p: int) -> str:
    document = [
        {"degree": f.degree, "coefficients": list(f.coefficients), "monomials": [list(m) for m in f.monomials]}
        for f in equations
    ]  # fmt: skip
    return json.dumps({"characteristic": p, "variables": names, "equations": document}) + "\n"


def _mrdi(equations: Equations, names: list[str], p: int) -> str:
    """Write an ideal in the namespace of Macaulay2, whose package MRDI loads it and checks it against the schema.

    The ring stands under an identifier that is made of what the ring is, so that one file has one text.
    """
    field: Any = {"_type": "QuotientRing", "data": str(p)} if p else {"_type": "Ring", "data": "QQ"}
    ring = {"_type": {"name": "PolynomialRing", "params": field}, "data": {"variables": names}}
    label = str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([_MACAULAY2_ADDRESS, ring])))
    label = f"{label[:14]}4{label[15:]}"  # Macaulay2 expects identifiers of version 4
    number: Callable[[int], Any] = str if p else lambda c: [str(c), "1"]
    document = {
        "_ns": {"Macaulay2": [_MACAULAY2_ADDRESS, "1.26.06"]},
        "_type": {"name": "Ideal", "params": label},
        "data": [
            [[[str(e) for e in m], number(c)] for m, c in f.terms(len(names)).items()] for f in equations
        ],
        "_refs": {label: ring},
    }
    return json.dumps(document) + "\n"


_WRITERS: dict[str, Callable[[Equations, list[str], int], str]] = {
    "m2": _m2, "sympy": _sympy, "latex": _latex, "json": _json, "mrdi": _mrdi,
}  # fmt: skip
FORMATS = tuple(_WRITERS)


def sympy_polynomials(equations: Equations, count: int, p: int) -> tuple[Any, ...]:
    """Return SymPy polynomials in z0, z1, ..., over QQ or the field with p elements."""
    import sympy

    symbols = sympy.symbols([f"z{i}" for i in range(count)])
    options = {"modulus": p} if p else {"domain": sympy.QQ}
    return tuple(sympy.Poly(f.terms(count), *symbols, **options) for f in equations)


def latex_zero(p: int) -> str:
    """Return the right-hand side of an equation: zero, or zero modulo p."""
    return rf"\equiv 0 \pmod{{{p}}}" if p else "= 0"
