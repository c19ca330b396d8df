"""The source of a map that is given by equations, cut into its irreducible components.

A map with constraints enters; its components over QQ (over F_p where QQ is out of reach) leave, with the word of a second
computation that together they are all of the source, and with points of each of them over extensions of F_p. Every question
about such a map answers for each component and for their union: points that are found by solving equations one after another
lie on some component, and say nothing about the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import fmpz_mod_ctx, fmpz_mod_poly_ctx, fq_default_ctx

from m2bridge.errors import InputError, OutputError
from m2bridge.linear.primes import given_numbers, numbers_in, primes_below
from m2bridge.linear.residues import residue
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.polynomials import Polynomial, derivative, for_macaulay2
from m2bridge.protocol import Values
from m2bridge.results import Certainty, Evidence, said

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Asking

_TRIED_PRIMES = 4
_RANDOM_NUMBERS = 307
SECONDS = 30.0
"""For the decomposition over QQ, unless the caller's limit is shorter; then as long once more over F_p."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceComponent:
    """An irreducible component of a source: its dimension (affine), degree, and generators of its prime ideal."""

    dim: int
    degree: int
    generators: tuple[Polynomial, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedPoint:
    """A point of a component over F_p[u]/(modulus); `variables` are polynomials in u, from the constant term up.

    `rank`: that of the map's differential on the component's tangent space there, by Macaulay2. `smooth`: of the component.
    """

    component: int
    prime: int
    modulus: tuple[int, ...]
    variables: tuple[tuple[int, ...], ...]
    smooth: bool
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The components of a source over `characteristic` (0 for QQ), and points of them.

    `covered`: a second computation (saturation) found nothing of the source outside these components; None when it was not
    finished.
    """

    characteristic: int
    components: tuple[SourceComponent, ...]
    covered: bool | None = None
    points: tuple[ClosedPoint, ...] = field(default=())

    @property
    def dim(self) -> int:
        return max(c.dim for c in self.components)

    @property
    def field(self) -> str:
        return f"F_{self.characteristic}" if self.characteristic else "QQ"

    @property
    def terms(self) -> list[list[object]]:
        """The components' generators, for a template."""
        return [[for_macaulay2(f) for f in part.generators] for part in self.components]

    @property
    def degrees(self) -> dict[int, int]:
        """Dimension -> sum of the degrees of the components of that dimension."""
        return {
            d: sum(c.degree for c in self.components if c.dim == d) for d in {c.dim for c in self.components}
        }

    @property
    def sentence(self) -> str:
        """What was found, in words that say over which field."""
        n = len(self.components)
        sizes = ", ".join(f"dimension {c.dim} and degree {c.degree}" for c in self.components[:8])
        said = f"over {self.field} the source has {n} component{'s' * (n != 1)}: {sizes}{' ...' * (n > 8)}"
        return f"{said} (over the algebraic closure a component may split into conjugate ones)"


def decomposed(
    model: PolynomialMap, asking: Asking, *, characteristic: int, seconds: float | None = SECONDS
) -> Source | None:
    """The components over one field, without points; None when Macaulay2 reached a limit.

    Raises
    ------
    InputError
        The constraints have no common zero.
    """
    request = {
        "p": characteristic, "variableCount": len(model.variables),
        "constraintTerms": model.m2_parameters["constraintTerms"],
    }  # fmt: skip
    values, _ = asking.ask("source_components", request, seconds=seconds)
    if "components" not in values:
        return None
    found = tuple(
        SourceComponent(
            dim=dim, degree=degree, generators=tuple(values.polynomials(generators, len(model.variables)))
        )
        for dim, degree, generators in values["components"]
    )
    if not found:
        closed = f"algebraic closure of F_{characteristic}" if characteristic else "complex numbers"
        raise InputError(
            f"{model.name}: the constraints have no common zero, not even over the {closed}; the source is empty"
        )
    return Source(characteristic=characteristic, components=found)


def source_of(model: PolynomialMap, asking: Asking, *, prime: int) -> Source | None:
    """The components over QQ, or over F_p where that takes too long, with points of each; None when both take too long."""
    over_q = decomposed(model, asking, characteristic=0)
    found = decomposed(model, asking, characteristic=prime) if over_q is None else over_q
    return None if found is None else with_points(model, found, asking, prime=prime)


def with_points(
    model: PolynomialMap, source: Source, asking: Asking, *, prime: int, seconds: float | None = SECONDS
) -> Source:
    """The source with points over extensions of F_p, and whether its components cover it.

    Another prime is taken when a component has another dimension or degree modulo `prime` than over its own field, or no smooth
    point.
    """
    primes = [source.characteristic]
    if not source.characteristic:
        coefficients = numbers_in(f for part in source.components for f in part.generators)
        primes = primes_below(prime, count=_TRIED_PRIMES, numbers=given_numbers(model) | coefficients)
    best = source
    for p in primes:
        numbers = np.random.default_rng([asking.seed, p]).integers(1, p, size=_RANDOM_NUMBERS).tolist()
        request = {
            "p": p, "coverCharacteristic": source.characteristic, "componentTerms": source.terms, "numbers": numbers,
            **model.m2_parameters,
        }  # fmt: skip
        values, limit = asking.ask("source_points", request, seconds=seconds)
        if "covered" in values:
            best = replace(best, covered=bool(values["covered"]) and bool(values["inside"]))
        same = [(c.dim, c.degree) for c in source.components] == list(
            zip(values.get("component_dims") or (), values.get("component_degrees") or (), strict=False)
        )
        listed = values.get("closed_points") if same else None
        points = tuple(_closed_point(values, item, p) for item in listed or ())
        if _met(points) > _met(best.points):
            best = replace(best, points=points)
        if _met(best.points) == len(source.components) or limit is not None:
            break
    return best


def _met(points: Sequence[ClosedPoint]) -> int:
    """How many components have a smooth point among these."""
    return len({point.component for point in points if point.smooth})


def _closed_point(values: Values, item: Any, p: int) -> ClosedPoint:
    try:
        number, modulus, variables, smooth, rank = item
        return ClosedPoint(
            component=int(number), prime=p, modulus=tuple(modulus), variables=tuple(tuple(v) for v in variables),
            smooth=bool(smooth), rank=int(rank),
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise OutputError(f"closed_points holds no points: {error}", run=values.run) from None


# -- the map at a closed point: arithmetic in F_p[u]/(modulus) ----------------------------------------------------------------


class PointField:
    """The residue field of a closed point, and the point's coordinates in it."""

    def __init__(self, point: ClosedPoint) -> None:
        self.p = point.prime
        if len(point.modulus) == 2:  # F_p itself
            self.context = fq_default_ctx(self.p, 1)
            self.variables = [self.context(v[0] if v else 0) for v in point.variables]
        else:
            modulus = fmpz_mod_poly_ctx(fmpz_mod_ctx(self.p))(list(point.modulus))
            self.context = fq_default_ctx(modulus=modulus)
            self.variables = [self.context(list(v)) for v in point.variables]

    def value(self, polynomial: Mapping[tuple[int, ...], Any], at: Sequence[Any] | None = None) -> Any:
        """A polynomial over QQ or F_p at the point, or at other elements of the field."""
        place = self.variables if at is None else at
        total = self.context(0)
        for exponents, c in polynomial.items():
            term = self.context(residue(c, self.p))
            for x, e in zip(place, exponents, strict=True):
                if e:
                    term = term * x**e
            total = total + term
        return total

    def differentials(self, polynomials: Sequence[Mapping[tuple[int, ...], Any]]) -> list[list[Any]]:
        """The Jacobian at the point, one row a polynomial."""
        count = len(self.variables)
        return [[self.value(derivative(dict(f), v)) for v in range(count)] for f in polynomials]


def field_rank(rows: Sequence[Sequence[Any]]) -> int:
    """Rank of a matrix over any field, by elimination."""
    left = [list(row) for row in rows]
    rank = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((i for i in range(rank, len(left)) if left[i][column] != 0), None)
        if pivot is None:
            continue
        left[rank], left[pivot] = left[pivot], left[rank]
        inverse = 1 / left[rank][column]
        for i in range(rank + 1, len(left)):
            if left[i][column] != 0:
                factor = left[i][column] * inverse
                left[i] = [a - factor * b for a, b in zip(left[i], left[rank], strict=True)]
        rank += 1
    return rank


RankAtPoint = tuple[ClosedPoint, int | None, bool]
"""A closed point; the rank of the differential on the component's tangent space there, None where that is not smooth; whether the
constraints have independent differentials there: by Hensel's lemma the point is then the reduction of a point in characteristic
zero, and the rank is a proved lower bound of the dimension over QQ."""


def ranks_at_points(model: PolynomialMap, source: Source) -> list[RankAtPoint]:
    """The ranks of the map at closed points, from the polynomials themselves: a second computation beside Macaulay2's."""
    constraints, coordinates = [dict(f) for f in model.constraints], [dict(f) for f in model.polynomials]
    found: list[RankAtPoint] = []
    for point in source.points:
        here, part = PointField(point), source.components[point.component]
        normals = here.differentials(part.generators)
        own = field_rank(normals)
        smooth = own == len(model.variables) - part.dim
        rank, lifts = None, False
        if smooth and all(here.value(f) == 0 for f in (*constraints, *part.generators)):
            rank = field_rank([*here.differentials(coordinates), *normals]) - own
            lifts = field_rank(here.differentials(constraints)) == len(constraints)
        found.append((point, rank, lifts))
    return found


def lost_component(over: str, p: int) -> list[Evidence]:
    """The contradiction between a decomposition and the saturation that found something outside its components."""
    say = partial(said, "components_cover_the_source", prime=p or None, field=over)
    return [
        say(True, "decomposition", f"minimal primes over {over}"),
        say(False, "saturation", "the source without the components"),
    ]


def rank_evidence(ranks: Sequence[RankAtPoint], field: str | None = None) -> list[Evidence]:
    """The image's dimension from below, by ranks at points of every component; and the same ranks by Macaulay2.

    `field`: over which the dimension is meant. Over QQ the bound is proved where the point lifts to characteristic zero.
    """
    usable = [(point, rank, lifts) for point, rank, lifts in ranks if rank is not None and point.smooth]
    if not usable:
        return []
    prime = usable[0][0].prime
    method = "rank of the differential at points of each component, over extensions of F_p"
    compare = partial(said, "ranks_at_closed_points", method=method, prime=prime, field=f"F_{prime}")
    found = [
        compare([rank for _, rank, _ in usable], "modular"), compare([q.rank for q, _, _ in usable], "macaulay2")
    ]  # fmt: skip
    lifted = [rank for _, rank, lifts in usable if lifts]
    say = partial(said, "image_dim", relation=">=", prime=prime, field=field)
    if lifted:
        hensel = f"{method}; the point lifts to characteristic zero (Hensel)"
        found.append(say(max(lifted), "modular", hensel, certainty=Certainty.PROVED))
    best = max(rank for _, rank, _ in usable)
    if not lifted or best > max(lifted):
        found.append(say(best, "modular", method))
    return found
