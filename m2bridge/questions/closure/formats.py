"""Equations as text for Macaulay2, Singular, SymPy, LaTeX, JSON, and as SymPy polynomials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from m2bridge.errors import InputError
from m2bridge.models.polynomials import exponents_of
from m2bridge.questions.closure.equations import Equation
from m2bridge.questions.closure.exports import EXPORTS

FORMATS = ("m2", "sympy", "latex", "json", "singular", *EXPORTS)


def written(equations: Sequence[Equation], count: int, p: int, form: str) -> str:
    """The equations as text in one of :data:`FORMATS`; `count` variables, characteristic `p`."""
    names = [f"z{i}" for i in range(count)]
    if form in EXPORTS:
        return EXPORTS[form](equations, names, p)
    if form == "m2":
        body = ",\n  ".join(f.text() for f in equations)
        ring = f"S = {f'ZZ/{p}' if p else 'QQ'}[{', '.join(names)}];"
        return f"{ring}\nI = ideal({f'{chr(10)}  {body}' if equations else '0_S'});\n"
    if form == "singular":
        body = ",\n  ".join(f.text() for f in equations) or "0"
        return f"ring S = {p}, ({', '.join(names)}), dp;\nideal I =\n  {body};\n"
    if form == "sympy":
        body = ",\n    ".join(f.text(power="**") for f in equations)
        symbols = f'{", ".join(names)} = symbols("{" ".join(names)}")' if count > 1 else 'z0 = symbols("z0")'
        note = f"modulus = {p}  # the coefficients are residues\n" if p else ""
        return f"from sympy import symbols\n\n{symbols}\n{note}equations = [\n    {body},\n]\n"
    if form == "latex":
        return "".join(f"{f.latex()} {latex_zero(p)} \\\\\n" for f in equations)
    if form == "json":
        document = [
            {
                "degree": f.degree,
                "coefficients": list(f.coefficients),
                "monomials": [list(m) for m in f.monomials],
            }
            for f in equations
        ]
        return json.dumps({"characteristic": p, "variables": names, "equations": document}) + "\n"
    raise InputError(f"--format {form!r} is not one of {', '.join(FORMATS)}")


def sympy_polynomials(equations: Sequence[Equation], count: int, p: int) -> tuple[Any, ...]:
    """SymPy polynomials in z0, z1, ..., over QQ or the finite field with p elements."""
    import sympy

    symbols = sympy.symbols([f"z{i}" for i in range(count)])
    options = {"modulus": p} if p else {"domain": sympy.QQ}
    found = []
    for f in equations:
        places = (exponents_of(monomial, count) for monomial in f.monomials)
        terms = dict(zip(places, f.coefficients, strict=True))
        found.append(sympy.Poly(terms, *symbols, **options))
    return tuple(found)


def latex_zero(p: int) -> str:
    """What an equation says: that it vanishes, or that it does modulo p."""
    return rf"\equiv 0 \pmod{{{p}}}" if p else "= 0"


def latex_text(text: str) -> str:
    """Plain text, safe inside a LaTeX text command."""
    special = {
        "\\": r"\textbackslash{}",
        "_": r"\_",
        "^": r"\^{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
    }
    return "".join(special.get(c, c) for c in text)
