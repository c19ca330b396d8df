"""What found equations are worth.

Let I be the ideal of equations over F_p and P the prime ideal of the closure. Macaulay2 computes I's codimension, degree and
Hilbert function, and evaluates the equations at image points from its own copy of the network; the rank of the parametrization's
Jacobian, evaluation ranks and a count of the degree without equations give the same numbers for P.

I inside P, dim I = dim P and deg I = deg P make P the only component of I of maximal dimension, with multiplicity one;
when I is unmixed besides, I = P. A Cohen-Macaulay coordinate ring is unmixed, and it is Cohen-Macaulay iff a linear
section of complementary dimension that is finite has length deg I.

deg P is at most deg I. It is at least the number of lines in which a linear space L of codimension dim P - 1 meets the cone over
the image, when it meets the zeros of I in finitely many (Bezout's inequality). The section above is a hyperplane of L: where
it is finite, L meets the zeros of I in finitely many lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models.base import Model
from m2bridge.models.lightning import Lightning
from m2bridge.models.polynomials import Polynomial, derivative, for_macaulay2
from m2bridge.protocol import Values
from m2bridge.questions.asking import Asking
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import evaluate
from m2bridge.questions.source import moving_weights
from m2bridge.results import Certainty, Evidence, said

if TYPE_CHECKING:
    from m2bridge.questions.closure.work import Work

MONOMIAL_RANKS = "ranks of all monomials at random image points"
_SMALL_SPAN = 14
_POINTS = 2
_FRESH_POINTS = 20
_DRAWS = 3


# -- the degree, counted without equations ---------------------------------------------------------------------------


def determinantal_degree(d: int, a: int) -> int:
    """The degree of the variety of d x d matrices of rank at most a (Harris, *Algebraic Geometry*, Example 19.10).

    >>> determinantal_degree(3, 2), determinantal_degree(3, 1), determinantal_degree(4, 2)
    (3, 6, 20)
    """
    numerator = denominator = 1
    for i in range(d - min(a, d)):
        numerator *= comb(d + i, a)
        denominator *= comb(a + i, a)
    return numerator // denominator


def formula_degree(model: Model) -> Evidence | None:
    """The degree of one-layer lightning attention in closed form.

    The image is that of PD_a x P^(dd'-1), PD_a the projective variety of d x d matrices of rank <= a, under the map given by
    the bilinear products alpha_m nu_n. It has no base points (a product of non-zero linear forms is not zero), so it is
    finite and pulls O(1) back to O(1,1): degree of the map times degree of the image = (h + k)^n = C(n, dd'-1) deg D_a with
    n = dim PD_a + dd' - 1. The map is birational by unique factorization, but for a = d' = 1, d >= 2, where the two linear
    forms can be exchanged and it has degree 2. Holds for t >= 2, where the Segre coordinates determine the function.
    """
    if not isinstance(model, Lightning) or model.t < 2:
        return None
    d, dp, a = model.d, model.dp, min(model.a, model.d)
    n = a * (2 * d - a) - 1 + d * dp - 1
    total = determinantal_degree(d, a) * comb(n, d * dp - 1)
    value = total // 2 if a == 1 and dp == 1 and d >= 2 else total
    method = "intersection number of O(1,1) on PD_a x P^(dd'-1)"
    return said("degree", value, "formula", method, certainty=Certainty.PROVED)


class LinearSection(NamedTuple):
    """A linear space: a basis, one vector a column, and the linear forms that vanish on it, one a row."""

    basis: np.ndarray
    forms: np.ndarray


def random_section(dim: int, codim: int, p: int, seed: int) -> LinearSection:
    """A random linear space of dimension `codim`, as a graph over some of the coordinates.

    These stay single variables: equations restricted to it stay sparser than in a random basis (5 times faster for M(4,1,1)).
    """
    rng = np.random.default_rng([seed, 6])
    order = rng.permutation(dim)
    free, bound = order[:codim], order[codim:]
    graph = rng.integers(0, p, size=(dim - codim, codim))
    basis, forms = np.zeros((dim, codim), dtype=np.int64), np.zeros((dim - codim, dim), dtype=np.int64)
    basis[free], basis[bound] = np.eye(codim, dtype=np.int64), graph
    forms[:, bound], forms[:, free] = np.eye(dim - codim, dtype=np.int64), -graph
    return LinearSection(basis, rng.integers(0, p, size=(dim - codim, dim - codim)) @ forms % p)


def section_degree(
    asking: Asking, image: Image, span: Span, section: LinearSection, p: int, seed: int, seconds: float, *, apart: bool
) -> Evidence | None:  # fmt: skip
    """The degree as the number of points in a random linear section of the parametrization, over that of the map.

    The linear space contains `section` as a hyperplane. `distinct` in the detail is the number of image points that were told
    apart in it, if they are to be. None when Macaulay2 reached its limit, the random choice was special, or the weights satisfy
    constraints.
    """
    if image.constrained:
        return None
    rng, count = np.random.default_rng(seed + 1), image.source.parameter_count
    for _ in range(_DRAWS):
        weights = {name: w[0] for name, w in image.draw(rng, 1, p).items()}
        moving = moving_weights(image.tangents_at(weights, p)[1][:count].T, p)
        if len(moving) == len(section.forms) - image.homogenized:
            break
    else:  # every point was special, or the image has a smaller dimension over F_p
        return None
    request = {
        "p": p, "point": [int(x) for w in weights.values() for x in w.reshape(-1)],
        "fixed": sorted(set(range(count)) - set(moving)), "chosen": list(span.basis),
        "forms": section.forms[: len(moving)].tolist(), "homogenized": image.homogenized,
        "wantDistinct": apart,
    }  # fmt: skip
    values, _ = asking.ask("closure_section", request, image.source, seconds=seconds)
    met, fiber = values.get("section"), values.get("fiber")
    if not met or not fiber or met % fiber:
        return None
    return said(
        "degree", met // fiber, "parametrization",
        "points of a random linear section of the parametrization, over the degree of the map",
        prime=p, seconds=asking.last_seconds, detail={"section": met, "fiber": fiber, "distinct": values.get("distinct")},
    )  # fmt: skip


# -- the account of given equations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Macaulay2's word on given equations; None where a limit came first, or what was not computed."""

    evidence: tuple[Evidence, ...]
    codim: int | None
    degree: int | None
    hilbert_function: tuple[int, ...] | None
    finite_section: bool
    cohen_macaulay: bool | None
    limit: str | None


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
    points = image.points(np.random.default_rng([seed, 99]), _FRESH_POINTS, p)[:, span.basis]
    value = all(not evaluate(f, points, p).any() for f in polynomials)
    bound = None
    if value and image.polynomials is not None and polynomials:
        # a wrong equation of degree D in the weights vanishes at a random point with probability at most D/p
        inner = max(int(sum(m)) for f in image.polynomials for m in f.monoms())
        degree = inner * max(sum(next(iter(f))) for f in polynomials)
        bound = min(1.0, len(polynomials) * (degree / p) ** _FRESH_POINTS)
    method = f"all equations at {_FRESH_POINTS} fresh image points"
    return said("vanishing", value, "modular", method, prime=p, error_probability=bound)


def account(
    asking: Asking, image: Image, span: Span, section: LinearSection, polynomials: Sequence[Polynomial], *,
    p: int, seed: int, hilbert_degrees: int,
) -> Account:  # fmt: skip
    """Ask Macaulay2 about equations over F_p, and about their zeros in a linear space that should meet the image in 0 only."""
    weights = image.draw(np.random.default_rng([seed, 5]), _POINTS, p)
    codim = section.basis.shape[1]
    request = {
        "p": p, "points": np.concatenate([w.reshape(_POINTS, -1) for w in weights.values()], axis=1).tolist(),
        "chosen": list(span.basis), "equations": _balanced(polynomials, p), "section": section.basis.tolist() if codim else [],
        "hilbertDegrees": hilbert_degrees, "smallSpan": _SMALL_SPAN,
    }  # fmt: skip
    values, limit = asking.ask("closure_accounting", request, image.source)
    own = image.at(weights, p)[:, : image.source.coordinate_count]
    degree = values.get("degree")
    length = values.get("section_length") if codim else degree
    cohen_macaulay = None if length is None or degree is None else bool(length == degree)
    if min(values.get("h_vector") or [0]) < 0:
        cohen_macaulay = False
    return Account(
        evidence=_evidence(values, own, p, span, image, asking.last_seconds), codim=values.get("codim"), degree=degree,
        hilbert_function=values.integers("hilbert_function") if "hilbert_function" in values else None,
        finite_section=length is not None, cohen_macaulay=cohen_macaulay, limit=limit,
    )  # fmt: skip


def _balanced(polynomials: Sequence[Polynomial], p: int) -> list[list[list[object]]]:
    """Polynomials over F_p for a template, with residues around 0."""
    return [for_macaulay2({m: c if 2 * c <= p else c - p for m, c in f.items()}) for f in polynomials]


def _evidence(
    values: Values, own: np.ndarray, p: int, span: Span, image: Image, seconds: float
) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if "image_points" in values:
        theirs = [[int(x) % p for x in row] for row in values["image_points"]]
        shown = list(range(own.shape[1]))
        if theirs == own.tolist():
            shown = [i for i in span.basis if i in shown][:12]
        method = f"coordinates of {len(own)} image points from the network's definition"
        for witness, rows in (("modular", own.tolist()), ("macaulay2", theirs)):
            sample = [row[i] for row in rows for i in shown]
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


# -- the conclusion --------------------------------------------------------------------------------------------------


def conclude(work: Work, account_: Account | None) -> None:
    """Weigh Macaulay2's account: what is shown, what is not."""
    p, known = work.prime, work.known_degree
    method = "solutions of linear equations at random image points"  # its own word, for others to contradict
    work.say("vanishing", True, "interpolation", method)
    work.evidence.append(vanish_at_fresh_points(work.polynomials, work.image, work.span, p, work.seed))
    if not work.drops:
        work.shows(f"every equation of degree at most {work.degree_bound} over F_{p} is generated by these")
    if account_ is None:
        work.lacks("codimension and degree of the equations' ideal: a limit came first")
        return
    work.evidence += account_.evidence
    work.evidence += hilbert_evidence(account_, work.hilbert_function, p)
    if account_.codim is None or account_.degree is None:
        work.limit = work.limit or account_.limit
        work.lacks("codimension and degree of the equations' ideal: Macaulay2 reached a limit")
        return
    dims = account_.codim == work.codim
    same_degree = dims and account_.degree == known
    if dims:
        work.shows("the equations' ideal has the dimension of the image")
        work.degree = account_.degree
    else:
        work.lacks(
            f"the equations found so far define a larger set, of codimension {account_.codim}: more exist in higher degree"
        )
    if known is not None:
        work.degree = known
    if same_degree:
        work.shows("the equations' ideal has the degree of the image, counted independently")
    elif dims and known is not None:
        work.lacks(f"the equations' ideal has degree {account_.degree}, the image {known}")
    if not _settle_hypersurface(work) and same_degree:
        _settle_unmixedness(work, account_)
        work.proved = work.complete and _degree_is_shown(work, account_)
    if dims:  # an upper bound of the closure's degree, because the dimensions agree
        relation = "=" if work.complete else "<="
        method = "degree of the equations' ideal (Groebner basis)"
        work.say("degree", account_.degree, "macaulay2", method, relation=relation)


def _settle_hypersurface(work: Work) -> bool:
    """A prime ideal of codimension one is generated by its element of lowest degree, whatever the degree of the image."""
    if work.codim == 0:
        work.shows("the image is dense in its linear span")
        work.degree = 1
    elif work.codim == 1 and sum(work.counts.values()) == 1:
        work.shows(
            "the closure is a hypersurface, and its ideal is generated by its equation of lowest degree"
        )
        work.degree = next(iter(work.counts))
    else:
        return False
    work.complete = work.proved = True
    return True


def _settle_unmixedness(work: Work, account_: Account) -> None:
    """Dimension and degree are those of the closure: the ideal is its prime ideal when it is unmixed."""
    if account_.cohen_macaulay:
        work.shows(
            "its coordinate ring is Cohen-Macaulay, so the ideal is unmixed and equals the prime ideal of the closure"
        )
        work.complete = True
        return
    verdict = None
    if work.span.dim <= _SMALL_SPAN:
        work.tell("unmixedness")
        request = {
            "p": work.prime,
            "variableCount": work.span.dim,
            "equations": _balanced(work.polynomials, work.prime),
        }
        values, _ = work.asking.ask("closure_unmixed", request, seconds=work.patience)
        verdict = values.get("unmixed")
    if verdict:
        work.shows("the ideal is unmixed (topComponents), so it equals the prime ideal of the closure")
        work.complete = True
    elif verdict is False:
        work.lacks("the ideal has embedded or smaller components: equations of higher degree exist")
    else:
        work.lacks(
            "that the ideal is unmixed (not Cohen-Macaulay; the general test was not tried or took too long)"
        )


def _degree_is_shown(work: Work, account_: Account) -> bool:
    """Whether the closure has the degree of the equations' ideal: by a proved formula, or by as many points of a section."""
    counted = work.evidence_of("degree")
    if any(e.certainty is Certainty.PROVED for e in counted):
        return True
    if not account_.finite_section or account_.degree not in [e.detail.get("distinct") for e in counted]:
        return False
    work.shows(
        f"a linear space meets the image in {account_.degree} points and the zeros of the equations in finitely many: "
        "the degree is not smaller"
    )
    return True


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
