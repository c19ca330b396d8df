"""Slices of M(2,1,2), one layer of attention: those of Figure 1 and of the panels beside the diagram of orbits.

Coordinates are (a0, a1, a2, b0, b1, b2), those of the two binary quadrics a = alpha_1 nu and b = alpha_2 nu.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from m2bridge.errors import InputError
from m2bridge.families import Lightning
from m2bridge.figures.slices import AXES, Slice, slice_file
from m2bridge.frontends.polynomials import polynomial_text

MODEL = Lightning(d=2, dp=1, a=2, t=2, parametrization="attention", coordinate_system="segre")


def _named(
    name: str, title: str, vectors: str, *, deep: str = "1", view: tuple[float, float] = (22.0, -60.0)
) -> Slice:
    """Parse a slice from its origin and directions, separated by semicolons; `deep` is half the height of its box."""
    origin, *directions = (tuple(Fraction(c) for c in vector.split()) for vector in vectors.split(";"))
    box = tuple((-Fraction(side), Fraction(side)) for side in ("1", "1", deep))
    return Slice(name=name, title=title, origin=origin, directions=tuple(directions), box=box, view=view)


_SLICES = (
    # a = (z, 1, z), b = (x-y, 0, x+y): x^2 = y^2 (1 - 4 z^2), solid between two pinch points, dotted beyond them
    _named(
        "conoid", "two pinch points, sheets crossing between them",
        "0 1 0 0 0 0; 0 0 0 1 0 1; 0 0 0 -1 0 1; 1 0 1 0 0 0", deep="9/10", view=(20.0, -58.0),
    ),
    # a = (1, 0, z), b = (0, y, x): x^2 + z y^2 = 0, Whitney's umbrella
    _named("umbrella", "pinch point", "1 0 0 0 0 0; 0 0 0 0 0 1; 0 0 0 0 1 0; 0 0 1 0 0 0"),
    # a = (1+z, 0, 1-z), b = (y, x, -y): 4 y^2 + (1 - z^2) x^2 = 0, dotted between two pinch points
    _named("handle", "closure-only handle", "1 0 1 0 0 0; 0 0 0 0 1 0; 0 0 0 1 0 -1; 1 0 -1 0 0 0", deep="2"),
    # a = (1, 2z, -1), b = (x/2, y, x/2): y^2 = (1 + z^2) x^2, the quadric a is always a product of two real forms
    _named(
        "crossing", "two sheets crossing", "1 0 -1 0 0 0; 0 0 0 1/2 0 1/2; 0 0 0 0 1 0; 0 2 0 0 0 0", view=(18.0, -35.0)
    ),
)  # fmt: skip
SLICES = {named.name: named for named in _SLICES}
DEFAULT = "conoid"


def read_slice(text: str) -> Slice:
    """Return a slice by name, or read it from a JSON file with ``origin``, ``directions`` and optionally ``box`` and ``view``.

    Vectors have 6 entries, the Segre coordinates.
    """
    if text in SLICES:
        return SLICES[text]
    if not Path(text).is_file():
        raise InputError(f"--slice {text}: neither a file nor one of the slices {', '.join(SLICES)}")
    from_file = slice_file(Path(text), MODEL)
    if len(from_file.directions) != 3:
        raise InputError(f"--slice {text}: directions should be three vectors")
    return from_file


def quadric_text(affine_slice: Slice, which: int) -> str:
    """Return the coefficients of a (0) or b (1) as affine functions of x, y, z."""
    monomials = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    vectors = (affine_slice.origin, *affine_slice.directions)
    entries = []
    for i in range(3 * which, 3 * which + 3):
        coefficients = zip(monomials, (vector[i] for vector in vectors), strict=True)
        entries.append(
            polynomial_text({monomial: c for monomial, c in coefficients if c}, AXES).replace("*", "")
        )
    return f"({', '.join(entries)})"
