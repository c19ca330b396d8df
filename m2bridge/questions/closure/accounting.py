"""What found equations are worth.

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
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models.polynomials import Polynomial, derivative, for_macaulay2
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import evaluate
from m2bridge.questions.kernel import Asking
from m2bridge.results import Certainty, Evidence, said

if TYPE_CHECKING:
    from m2bridge.questions.closure.work import Work

MONOMIAL_RANKS = "ranks of all monomials at random image points"
_SMALL_SPAN = 14
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
        "p": p, "points": flat.tolist(), "chosen": list(span.basis), "equations": _balanced(polynomials, p),
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


def _balanced(polynomials: Sequence[Polynomial], p: int) -> list[list[list[object]]]:
    """Polynomials over F_p for a template, with residues around 0."""
    return [for_macaulay2({m: c if 2 * c <= p else c - p for m, c in f.items()}) for f in polynomials]


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
    request = {"p": p, "variableCount": span.dim, "equations": _balanced(polynomials, p)}
    values, limit = asking.ask("closure_unmixed", request, seconds=seconds)
    return None if limit is not None else bool(values["unmixed"])


# -- the conclusion -------------------------------------------------------------------------------------


def conclude(work: Work, account_: Account | None) -> None:
    """Weigh Macaulay2's account: what is shown, what is not."""
    method = "solutions of linear equations at random image points"  # its own word, for others to contradict
    work.say("vanishing", True, "interpolation", method)
    work.evidence.append(
        vanish_at_fresh_points(work.polynomials, work.image, work.span, work.prime, work.seed)
    )
    work.shows(
        f"every equation of degree at most {work.degree_bound} over F_{work.prime} is generated by these"
    )
    if account_ is None:
        work.lacks("codimension and degree of the equations' ideal: a limit came first")
        return
    work.evidence += account_.evidence
    work.evidence += hilbert_evidence(account_, work.hilbert_function, work.prime)
    if account_.codim is None or account_.degree is None:
        work.limit = work.limit or account_.limit
        work.lacks("codimension and degree of the equations' ideal: Macaulay2 reached a limit")
        return
    dims = account_.codim == work.codim
    known = work.known_degree
    if dims:
        work.shows("the equations' ideal has the dimension of the image")
        if known is None or account_.degree == known:
            work.degree = account_.degree
    else:
        work.lacks(
            f"the equations found so far define a larger set, of codimension {account_.codim}: more exist in higher degree"
        )
    if known is not None:
        work.degree = known
    same_degree = dims and known is not None and account_.degree == known
    if same_degree:
        work.shows("the equations' ideal has the degree of the image, counted independently")
    elif dims and known is not None:
        work.lacks(f"the equations' ideal has degree {account_.degree}, the image {known}")
    if not _settle_hypersurface(work):
        _settle_unmixedness(work, account_, same_degree)
    if dims:  # an upper bound of the closure's degree, because the dimensions agree
        relation = "=" if work.complete else "<="
        method = "degree of the equations' ideal (Groebner basis)"
        work.say("degree", account_.degree, "macaulay2", method, relation=relation)


def _settle_hypersurface(work: Work) -> bool:
    """A prime ideal of codimension one is generated by its element of lowest degree, whatever the degree of the image."""
    if work.codim == 0:
        work.shows("the image is dense in its linear span")
        work.complete, work.degree = True, 1
        work.proved = True
        return True
    if work.codim != 1 or sum(work.counts.values()) != 1:
        return False
    work.shows("the closure is a hypersurface, and its ideal is generated by its equation of lowest degree")
    work.complete = work.proved = True
    work.degree = next(iter(work.counts))
    return True


def _settle_unmixedness(work: Work, account_: Account, same_degree: bool) -> None:
    if not same_degree:
        return
    if account_.cohen_macaulay:
        work.shows(
            "its coordinate ring is Cohen-Macaulay, so the ideal is unmixed and equals the prime ideal of the closure"
        )
        work.complete = True
        work.proved = any(e.quantity == "degree" and e.certainty is Certainty.PROVED for e in work.evidence)
        return
    verdict = None
    if work.span.dim <= _SMALL_SPAN:
        work.tell("unmixedness")
        verdict = unmixed(work.asking, work.span, work.polynomials, work.prime, work.patience)
    if verdict:
        work.shows("the ideal is unmixed (topComponents), so it equals the prime ideal of the closure")
        work.complete = True
    elif verdict is False:
        work.lacks("the ideal has embedded or smaller components: equations of higher degree exist")
    else:
        work.lacks(
            "that the ideal is unmixed (not Cohen-Macaulay; the general test was not tried or took too long)"
        )


def only_seen(work: Work) -> None:
    """Take back what would need all of a source with equations: the points lie on components that solving in turn met."""
    work.complete = work.proved = False
    work.seen_part_only = True
    work.degree = None
    work.evidence = [
        e for e in work.evidence
        if e.quantity not in ("degree", "image_dim") or (e.relation == ">=" and e.quantity == "image_dim")
    ]  # fmt: skip
    work.shown = [
        "the equations vanish at the points of the source that were found by solving its equations in turn"
    ]
    work.lacks(
        "that these points lie on every component of the source: the equations are not known to hold on all of it, "
        "dimension and degree are not known either, and the image may be larger; use --method kernel"
    )
