"""Certificates of statements other than the dimension, and upper bounds that are put together from parts.

Each function builds the document of ``docs/certificates.md`` (sections 4 and 5) from values that the caller has computed.
Nothing is verified here: ``m2bridge check`` does that.

>>> weights = [[1, 2, 3], [Fraction(1, 2), 4, 3]]
>>> text = "m2bridge program 1\\n%0 = weight w [3]\\noutput y %0\\n"
>>> same_function_certificate(text, weights)["statement"]["weights"][1]
['1/2', 4, 3]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any

from m2bridge.programs import Program

FORMAT = "m2bridge certificate"
VERSION = 2

Document = dict[str, Any]
Polynomial = Mapping[tuple[int, ...], int | Fraction]
"""Exponents, one for each coordinate, and coefficients."""
Field = Mapping[int, Mapping[tuple[tuple[int, int], ...], int]]
"""For each flat weight that moves, the polynomial by which: ((flat weight, exponent), ...) ascending, and coefficients."""


def closure_certificate(
    program: str,
    equations: Sequence[Polynomial],
    degree: int,
    *,
    prime: int,
    gradings: Sequence[Sequence[int]] = (),
    spec: str | None = None,
) -> Document:
    """These equations vanish on the image, and up to `degree` nothing does but combinations of their multiples.

    `gradings` are degrees of the flat weights for which every output is homogeneous; they split the work into blocks.
    """
    statement = {"kind": "closure", "equations": [written(f) for f in equations], "degree": degree}
    argument = {"prime": prime, "gradings": [[int(d) for d in grading] for grading in gradings]}
    return _document(program, statement, argument, spec)


def inside_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    point: Sequence[int | Fraction],
    *,
    spec: str | None = None,
) -> Document:
    """These weights have this image, in the coordinates of the program."""
    statement = {"kind": "inside", "weights": numbers(weights), "point": numbers(point)}
    return _document(program, statement, None, spec)


def outside_certificate(
    program: str, equation: Polynomial, point: Sequence[int | Fraction], *, spec: str | None = None
) -> Document:
    """The point is not in the closure of the image: an equation vanishes there, and not at the point."""
    statement = {"kind": "outside", "point": numbers(point), "equation": written(equation)}
    return _document(program, statement, None, spec)


def singular_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    arcs: Sequence[Sequence[Sequence[int | Fraction]]],
    upper: Document,
    *,
    prime: int,
    spec: str | None = None,
) -> Document:
    """The image is singular at the image of `weights`.

    An arc gives for each flat weight the coefficients of a polynomial in t, lowest first; at t = 0 it has the same image. `upper`
    is an argument for an upper bound of the dimension (section 4).
    """
    statement = {"kind": "singular", "weights": numbers(weights)}
    paths = [[numbers(path) for path in arc] for arc in arcs]
    return _document(program, statement, {"prime": prime, "upper": upper, "arcs": paths}, spec)


def smooth_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    equations: Sequence[Polynomial],
    lower: Document | None,
    *,
    prime: int,
    spec: str | None = None,
) -> Document:
    """The closure of the image is smooth at the image of `weights`: equations of the right rank, and a lower bound."""
    statement = {"kind": "smooth", "weights": numbers(weights)}
    argument = {"prime": prime, "lower": lower, "equations": [written(f) for f in equations]}
    return _document(program, statement, argument, spec)


def symmetry_certificate(
    program: str, groups: Sequence[Document] = (), fields: Sequence[Field] = (), *, spec: str | None = None
) -> Document:
    """Groups of section 4, and polynomial vector fields, do not change the function."""
    statement = {"kind": "symmetry", "groups": list(groups), "fields": [written_field(f) for f in fields]}
    return _document(program, statement, None, spec)


def fields_bound(
    groups: Sequence[Document], fields: Sequence[Field], *, prime: int, weights: Document
) -> Document:
    """The upper bound by groups and vector fields; `weights` is a POINT at which their rank is counted."""
    parts = [written_field(field) for field in fields]
    return {"kind": "fields", "groups": list(groups), "fields": parts, "prime": prime, "weights": weights}


def composition_bound(
    cut: int,
    first: Document,
    second: Document,
    *,
    prime: int,
    weights: Document,
    groups: Sequence[Document] = (),
    fields: Sequence[Field] = (),
    samples: int = 4,
) -> Document:
    """The upper bound of a program cut at instruction number `cut`: those of both parts, minus what symmetries of the whole move.

    `first` and `second` are upper bounds of the parts (section 4), `weights` a POINT of the whole program.
    """
    own = fields_bound(groups, fields, prime=prime, weights=weights)
    return own | {"kind": "composition", "cut": cut, "first": first, "second": second, "samples": samples}


def narrow_matrices(program: Program) -> Document:
    """The upper bound of a product W_l ... W_1 x: matrices of at most the rank that its narrowest place allows.

    It is cut there into two matrices, with GL between them; where no place inside is narrow, coordinates are counted.
    """
    chain = [k for k, item in enumerate(program.instructions) if item.operation == "einsum"]
    sizes = [program.instructions[k].size for k in chain]
    both, width = {"kind": "coordinates"}, min(sizes)
    if width >= min(sizes[-1], *map(prod, program.input_shapes.values())):
        return both
    before, names = sizes.index(width), list(program.parameters)
    axes = {names[before]: [1, 0], names[before + 1]: [0, -1]}
    between, point = {"group": "gl", "size": width, "axes": axes}, {"seed": 0, "stream": 0, "fixed": []}
    return composition_bound(
        chain[before], both, both, prime=2**61 - 1, weights=point, groups=[between], samples=width
    )


def written_field(field: Field) -> list[Any]:
    """A vector field as the format writes it.

    >>> written_field({0: {(): 2}, 1: {((0, 1), (2, 3)): -1}})
    [[0, 2, []], [1, -1, [[0, 1], [2, 3]]]]
    """
    return [
        [i, int(c), [[j, e] for j, e in monomial]]
        for i, polynomial in sorted(field.items())
        for monomial, c in polynomial.items()
        if c
    ]


def same_function_certificate(
    program: str, weights: Sequence[Sequence[int | Fraction]], *, spec: str | None = None
) -> Document:
    """Two different weights (flat, exact) give one function."""
    points = [numbers(point) for point in weights]
    return _document(program, {"kind": "same function", "weights": points}, None, spec)


def numbers(values: Sequence[int | Fraction]) -> list[int | str]:
    """Rational numbers as the format writes them: integers, and fractions as texts."""
    exact = map(Fraction, values)
    return [int(w) if w.denominator == 1 else f"{w.numerator}/{w.denominator}" for w in exact]


def written(polynomial: Polynomial) -> list[Any]:
    """A polynomial as the format writes it, with integer coefficients; denominators are multiplied away.

    >>> written({(1, 0): Fraction(1, 2), (0, 2): -3})
    [[1, [[0, 1]]], [-6, [[1, 2]]]]
    """
    common = lcm(*(Fraction(c).denominator for c in polynomial.values()))
    return [
        [int(c * common), [[i, int(e)] for i, e in enumerate(exponents) if e]]
        for exponents, c in polynomial.items()
        if c
    ]


def _document(program: str, statement: Document, argument: Document | None, spec: str | None) -> Document:
    return {
        "format": FORMAT,
        "version": VERSION,
        "statement": statement,
        "spec": spec,
        "program": program,
        "argument": argument,
    }
