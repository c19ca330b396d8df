"""Analyses stage, closure: what found equations are worth.

Equations over F_p enter; evidence leaves. Let I be the ideal of the equations and P the prime ideal of the closure. Macaulay2
computes I's codimension, degree and Hilbert function, and evaluates the equations at image points from its own copy of
the network; the rank of the parametrization's Jacobian and evaluation ranks bound the same numbers for P from the other side.

I inside P, dim I = dim P and deg I = deg P make P the only component of I of maximal dimension, with multiplicity one;
when I is unmixed besides, I = P. A Cohen-Macaulay coordinate ring is unmixed, and it is Cohen-Macaulay iff a general
linear section of complementary dimension has length deg I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models.polynomials import derivative
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import evaluate
from m2bridge.questions.closure.wire import Polynomial, to_lists
from m2bridge.questions.kernel import Asking
from m2bridge.results import Evidence, said

MONOMIAL_RANKS = "ranks of all monomials at random image points"
_POINTS = 2
_FRESH_POINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Macaulay2's word on given equations; None where a limit came first."""

    evidence: tuple[Evidence, ...]
    codim: int | None = None
    degree: int | None = None
    hilbert_function: tuple[int, ...] | None = None
    h_vector: tuple[int, ...] | None = None
    section_length: int | None = None
    limit: str | None = None

    @property
    def cohen_macaulay(self) -> bool | None:
        """Whether the equations define a Cohen-Macaulay ring; None when not computed."""
        if self.h_vector is not None and min(self.h_vector) < 0:
            return False
        if self.section_length is None or self.degree is None:
            return None
        return self.section_length == self.degree


def smooth_at_image(polynomials: Sequence[Polynomial], points: np.ndarray, codim: int, p: int) -> bool:
    """Whether the equations' Jacobian has rank `codim` at the first of `points`: then I defines P near a general point.

    A cheap necessary condition for dim I = dim P with multiplicity one.
    """
    if codim == 0:
        return True
    variables, point = range(points.shape[1]), points[:1]
    rows = [[int(evaluate(derivative(f, i), point, p)[0]) for i in variables] for f in polynomials]
    return bool(rows) and rank_mod(np.array(rows, dtype=np.int64), p) == codim


def vanish_at_fresh_points(
    polynomials: Sequence[Polynomial], image: Image, span: Span, p: int, seed: int
) -> Evidence:
    """Whether all equations vanish at random image points that were not used to find them."""
    rng = np.random.default_rng([seed, 99])
    points = image.points(rng, _FRESH_POINTS, p)[:, list(span.basis)]
    value = all(not evaluate(f, points, p).any() for f in polynomials)
    bound = None
    if image.polynomials is not None and polynomials:
        # a wrong equation of degree D in the weights vanishes at a random point with probability at most D/p
        inner = max(int(sum(m)) for f in image.polynomials for m in f.monoms())
        degree = inner * max(sum(next(iter(f))) for f in polynomials)
        bound = min(1.0, len(polynomials) * (degree / p) ** _FRESH_POINTS)
    method = f"all equations at {_FRESH_POINTS} fresh image points"
    return said("vanishing", value, "modular", method, prime=p, error_probability=bound if value else None)


def account(
    asking: Asking, image: Image, span: Span, polynomials: Sequence[Polynomial], *,
    p: int, seed: int, image_dim: int, hilbert_degrees: int, section: bool = True, seconds: float | None = None,
) -> Account:  # fmt: skip
    """Ask Macaulay2 about equations over F_p.

    Parameters
    ----------
    image_dim: rank of the parametrization over F_p: dimension of the image cone.
    hilbert_degrees: how far to compute the ideal's Hilbert function.
    section: whether to test for Cohen-Macaulay by a linear section.
    """
    rng = np.random.default_rng([seed, 5])
    weights = image.draw(rng, _POINTS, p)
    flat = np.concatenate([w.reshape(_POINTS, -1) for w in weights.values()], axis=1)
    codim = span.dim - image_dim
    request = {
        "p": p, "points": flat.tolist(), "chosen": list(span.basis), "equations": to_lists(polynomials, p),
        "section": _section(rng, span.dim, codim, p) if section and codim else [],
        "hilbertDegrees": hilbert_degrees,
    }  # fmt: skip
    values, limit = asking.ask("closure_accounting", request, image.source, seconds=seconds)
    own = image.at(weights, p)[:, : image.source.coordinate_count]
    length = values.get("section_length") if codim else values.get("degree")
    return Account(
        evidence=_evidence(values, own, p, span, image, asking.last_seconds),
        codim=values.get("codim"), degree=values.get("degree"),
        hilbert_function=tuple(values.integers("hilbert_function")) if "hilbert_function" in values else None,
        h_vector=tuple(values.integers("h_vector")) if "h_vector" in values else None,
        section_length=length, limit=limit,
    )  # fmt: skip


def _section(rng: np.random.Generator, dim: int, codim: int, p: int) -> list[list[int]]:
    """A random linear space of dimension `codim`, as a graph over some of the coordinates: these stay single variables.

    A general space is such a graph; equations restricted to it stay sparser than in a random basis (5 times faster for M(4,1,1)).
    """
    space = rng.integers(0, p, size=(dim, codim))
    space[rng.permutation(dim)[:codim]] = np.eye(codim, dtype=np.int64)
    return space.tolist()  # type: ignore[no-any-return]


def _evidence(
    values: Values, own: np.ndarray, p: int, span: Span, image: Image, seconds: float
) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    shown = [i for i in span.basis if i < own.shape[1]][:12]
    if "image_points" in values:
        theirs = [[int(x) % p for x in row] for row in values["image_points"]]
        same = theirs == own.tolist()
        method = f"coordinates of {len(own)} image points from the network's definition"
        for witness, rows in (("modular", own.tolist()), ("macaulay2", theirs)):
            sample = [row[i] for row in rows for i in (shown if same else range(own.shape[1]))]
            found.append(said("image_points", sample, witness, method, prime=p))
    if "vanishing" in values:
        method = "all equations at its own image points"
        found.append(said("vanishing", values["vanishing"], "macaulay2", method, prime=p))
    if "codim" in values:
        dim = span.dim - values.integer("codim") - image.homogenized
        # the equations cut out at least the image: their dimension is an upper bound of its dimension
        method = "dimension of the equations' ideal (Groebner basis)"
        found.append(said("image_dim", dim, "macaulay2", method, relation="<=", prime=p, seconds=seconds))
    return tuple(found)


def hilbert_evidence(account_: Account, ranks: Sequence[int], p: int) -> list[Evidence]:
    """The Hilbert function of the ideal beside evaluation ranks, in the degrees that both know."""
    ours = said("hilbert_function", list(ranks), "modular", MONOMIAL_RANKS, prime=p)
    theirs = account_.hilbert_function
    if theirs is None or len(theirs) < len(ranks):
        return [ours]
    method = "Hilbert function of the equations' ideal (Groebner basis)"
    return [said("hilbert_function", list(theirs[: len(ranks)]), "macaulay2", method, prime=p), ours]


def unmixed(
    asking: Asking, span: Span, polynomials: Sequence[Polynomial], p: int, seconds: float
) -> bool | None:
    """Whether the ideal of the equations is unmixed, by Macaulay2; None when it took too long."""
    request = {"p": p, "variableCount": span.dim, "equations": to_lists(polynomials, p)}
    values, limit = asking.ask("closure_unmixed", request, seconds=seconds)
    return None if limit is not None else bool(values["unmixed"])
