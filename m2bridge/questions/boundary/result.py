"""Results of the question `boundary`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from m2bridge.questions.boundary.criterion import Where
from m2bridge.results import Result, TheoremCheck, register_result
from m2bridge.views import Rows, View, shorten

_LONGEST_SHOWN_POINT = 320  # characters of equations in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedPoint:
    """A point of the span and its location.

    Attributes
    ----------
    name: ``point`` for the user's, a kind for an example.
    coordinates: Segre coordinates.
    where: image, boundary (in the image, and a limit of points that are not), closure-only, outside of the closure, or undecided
        where `membership` reached a limit.
    rank_a, rank_v: ranks of the flattenings (of A and V for a point of the closure); rank_s, e2: of the quadric where both are 1.
    reason: the argument in a sentence.
    """

    name: str
    coordinates: tuple[Fraction, ...]
    where: Where
    rank_a: int
    rank_v: int
    rank_s: int | None
    e2: Fraction | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A semialgebraic subset of the closure: description, affine dimension (-1 when empty), equations and inequalities.

    `degree` is that of the complex closure, None when not computed; `equations` are empty where they are too many to list.
    """

    name: str
    description: str
    dim: int
    degree: int | None
    equations: tuple[str, ...]
    inequality: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitLocation:
    """An orbit of weights (rk A, rk V, meet), the location of its image, and whether (A, V) -> network is critical on it."""

    rank_a: int
    rank_v: int
    meet: int
    where: Where
    critical: bool


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(Result):
    """Image, boundary and closure of one layer of attention over the real numbers. All dimensions are affine, -1 means empty.

    Attributes
    ----------
    image_dim, boundary_dim, closure_only_dim: of the image, of its relative boundary, and of the closure without the image.
    parts: these three as sets, with equations and inequalities.
    examples: exact random points of each kind; point: the user's.
    orbits: the location of the image of each orbit of weights.
    theorem, corollary: a paper's statement about these orbits, and whether it holds (:mod:`m2bridge.questions.comments`).
    """

    ANALYSIS: ClassVar[str] = "boundary"
    VERSION: ClassVar[int] = 3
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ("theorem", "corollary")
    HEADLINE: ClassVar[tuple[str, ...]] = ("image_dim", "boundary_dim", "closure_only_dim")
    AT_POINT: ClassVar[tuple[str, ...]] = ("where", "real weights")

    image_dim: int
    boundary_dim: int
    closure_only_dim: int
    point: LocatedPoint | None
    parts: tuple[Region, ...]
    examples: tuple[LocatedPoint, ...]
    orbits: tuple[OrbitLocation, ...]
    theorem: TheoremCheck | None = None
    corollary: TheoremCheck | None = None

    @property
    def headline(self) -> tuple[str, ...]:
        """Return the location of the user's point, or the three dimensions; empty sets have no evidence."""
        if self.point is not None:
            return ("where: point",)
        return tuple(name for name in self.HEADLINE if getattr(self, name) >= 0)

    def view(self) -> View:
        dims = (self.image_dim, self.boundary_dim, self.closure_only_dim)
        named = zip(("image", "boundary", "closure only"), dims, strict=True)
        sizes = ", ".join(f"{name} {'empty' if dim < 0 else f'of dimension {dim}'}" for name, dim in named)
        answer, facts, decided = sizes, [], True
        if self.point is not None:
            decided = self.point.where != "undecided"
            answer = f"the point is: {self.point.where}"
            facts = [("because", self.point.reason), ("parts", sizes)]
        notes = [f"  {p.name}: {shorten(', '.join(map(str, p.coordinates)), 80)}" for p in self.examples]
        for region in self.parts:
            text = ", ".join(f"{equation} = 0" for equation in region.equations)
            inequality = "" if region.inequality is None else f"; {region.inequality}"
            if region.equations and len(text + inequality) <= _LONGEST_SHOWN_POINT:
                notes.append(f"  {region.name}: {text}{inequality}")
        notes += [check.sentence() for check in (self.theorem, self.corollary) if check is not None]
        sets = [
            (p.name, "empty" if p.dim < 0 else str(p.dim), "" if p.degree is None else str(p.degree), p.description)
            for p in self.parts
        ]  # fmt: skip
        located = []
        for p in self.examples:
            ranks = (str(p.rank_a), str(p.rank_v), "" if p.e2 is None else shorten(p.e2, 10))
            located.append((p.name, p.where, *ranks))
        columns = ("example", "where", "rk A", "rk V", "e2")
        tables = (
            Rows(
                title="Parts of the closure",
                columns=("part", "dim", "degree", "what it is"),
                cells=tuple(sets),
            ),
            Rows(title="Examples", columns=columns, cells=tuple(located)),
        )
        return View(answer=answer, decided=decided, facts=tuple(facts), tables=tables, notes=tuple(notes))
