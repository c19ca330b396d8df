"""Equations for other systems: Macaulay2, Singular, SageMath, SymPy, OSCAR, LaTeX, JSON, spreadsheets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from m2bridge.errors import InputError

if TYPE_CHECKING:
    from m2bridge.questions.closure.result import Equation

    Equations = Sequence[Equation]

_MACAULAY2 = ("Macaulay2", "https://macaulay2.com", "1.26.06")
_OSCAR = ("Oscar", "https://github.com/oscar-system/Oscar.jl", "1.6.0")


def written(equations: Equations, count: int, p: int, form: str) -> str:
    """The equations as text in one of :data:`FORMATS`; `count` variables z0, z1, ..., characteristic `p`."""
    if form not in _WRITERS:
        raise InputError(f"--format {form!r} is not one of {', '.join(FORMATS)}")
    return _WRITERS[form](equations, [f"z{i}" for i in range(count)], p)


def _m2(equations: Equations, names: list[str], p: int) -> str:
    body = ",\n  ".join(f.text() for f in equations)
    ring = f"S = {f'ZZ/{p}' if p else 'QQ'}[{', '.join(names)}];"
    return f"{ring}\nI = ideal({f'{chr(10)}  {body}' if equations else '0_S'});\n"


def _singular(equations: Equations, names: list[str], p: int) -> str:
    body = ",\n  ".join(f.text() for f in equations) or "0"
    return f"ring S = {p}, ({', '.join(names)}), dp;\nideal I =\n  {body};\n"


def _sage(equations: Equations, names: list[str], p: int) -> str:
    body = ",\n    ".join(f.text() for f in equations) or "0"
    ring = f"R = PolynomialRing({f'GF({p})' if p else 'QQ'}, {json.dumps(names)})"
    return f"{ring}\n{', '.join(names)}, = R.gens()\nI = R.ideal([\n    {body},\n])\n"


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


def _csv(equations: Equations, names: list[str], p: int) -> str:
    """One row a term: the number of its equation, its coefficient (a residue when `p` is not 0), and its exponents."""
    lines = [",".join(["equation", f"coefficient_mod_{p}" if p else "coefficient", *names])]
    for number, f in enumerate(equations, start=1):
        for m, c in f.terms(len(names)).items():
            lines.append(",".join(map(str, (number, c, *m))))
    return "\n".join(lines) + "\n"


def _mrdi(equations: Equations, names: list[str], p: int) -> str:
    """An ideal in the namespace of Macaulay2: its package MRDI loads it, and checks it against the schema of the format."""
    field: Any = {"_type": "QuotientRing", "data": str(p)} if p else {"_type": "Ring", "data": "QQ"}
    ring = {"_type": {"name": "PolynomialRing", "params": field}, "data": {"variables": names}}
    number: Callable[[int], Any] = str if p else lambda c: [str(c), "1"]
    return _document(_MACAULAY2, "Ideal", ring, equations, len(names), number)


def _oscar(equations: Equations, names: list[str], p: int) -> str:
    """The same in the namespace of OSCAR, as its version 1.6 writes an ideal of a multivariate polynomial ring."""
    field: Any = {"_type": "FiniteField", "data": str(p)} if p else {"_type": "QQField"}
    ring = {"_type": {"name": "MPolyRing", "params": field}, "data": {"symbols": names}}
    return _document(_OSCAR, "MPolyIdeal", ring, equations, len(names), lambda c: str(c % p if p else c))


def _document(
    system: tuple[str, str, str], kind: str, ring: Any, equations: Equations, count: int, number: Callable[[int], Any]
) -> str:  # fmt: skip
    """The ring stands under an identifier that is made of what the ring is, so that one file has one text."""
    name, url, version = system
    label = str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([url, ring])))
    label = f"{label[:14]}4{label[15:]}"  # both systems expect identifiers of version 4
    document = {
        "_ns": {name: [url, version]},
        "_type": {"name": kind, "params": label},
        "data": [[[[str(e) for e in m], number(c)] for m, c in f.terms(count).items()] for f in equations],
        "_refs": {label: ring},
    }
    return json.dumps(document) + "\n"


_WRITERS: dict[str, Callable[[Equations, list[str], int], str]] = {
    "m2": _m2, "sympy": _sympy, "latex": _latex, "json": _json, "singular": _singular, "sage": _sage, "csv": _csv,
    "mrdi": _mrdi, "oscar": _oscar,
}  # fmt: skip
FORMATS = tuple(_WRITERS)


def sympy_polynomials(equations: Equations, count: int, p: int) -> tuple[Any, ...]:
    """SymPy polynomials in z0, z1, ..., over QQ or the finite field with p elements."""
    import sympy

    symbols = sympy.symbols([f"z{i}" for i in range(count)])
    options = {"modulus": p} if p else {"domain": sympy.QQ}
    return tuple(sympy.Poly(f.terms(count), *symbols, **options) for f in equations)


def latex_zero(p: int) -> str:
    """What an equation says: that it vanishes, or that it does modulo p."""
    return rf"\equiv 0 \pmod{{{p}}}" if p else "= 0"
