"""What is known of the image without equations, and what found equations are worth.

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
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence
from m2bridge.frontends.polynomials import Polynomial, derivative, for_macaulay2
from m2bridge.linear.modular import echelon_mod, rank_mod
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Matrix, Span
from m2bridge.questions.closure.interpolation import evaluate

if TYPE_CHECKING:
    from m2bridge.questions.closure import Work

_SHARE_FOR_DEGREE = 0.25
_SHARE_FOR_UNMIXEDNESS = 0.5
"""Shares of the time left. Completeness may rest on either, so what comes after needs time too."""
MONOMIAL_RANKS = "ranks of all monomials at random image points"
_SMALL_SPAN = 14
_POINTS = 2
_FRESH_POINTS = 20
_DRAWS = 3
_SMALLEST_SECTION_PRIME = 1000
"""Over a smaller field a random section is often special."""


Account = tuple[Values, str | None]
"""Macaulay2's word on equations, and the limit that cut it off, if one did."""


# -- dimension and degree, without equations -------------------------------------------------------------------------


def measure(work: Work, span: Span) -> None:
    """The dimension of the image: ranks at random points bound it from below; a formula of the literature is compared.

    Raises
    ------
    InputError
        The prime is unlucky: modulo p the span is smaller than the image over QQ.
    """
    image, own = work.image, work.prime
    primes = (image.large_prime, image.second_prime, own)
    ranks = {p: image.dim(np.random.default_rng([work.context.seed, 1]), p) for p in primes}
    best = max(primes, key=lambda p: ranks[p])  # each rank is a lower bound over QQ
    work.span, work.cone_dim = span, ranks[best]
    work.drops = ranks[own] < work.cone_dim
    method = "rank of the parametrization's Jacobian at a random point"
    for p, over in ((best, "QQ"), (own, f"F_{own}")):
        dim = ranks[p] - image.homogenized
        work.say(
            "image_dim",
            dim,
            "modular",
            method,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=p,
            field=over,
        )
    formula = work.model.formula
    if formula is not None and formula.applies and formula.value is not None:
        work.evidence.append(
            Evidence(
                "image_dim", formula.value, "formula", formula.citation, ancestry="literature", field="QQ"
            )
        )
    if span.dim < work.cone_dim:
        raise InputError(
            f"modulo {own} the image spans {span.dim} dimensions, over QQ it has {work.cone_dim}: use another prime"
        )
    work.codim = span.dim - work.cone_dim


def count_degree(work: Work) -> None:
    """The degree, counted without equations on the parametrization; a formula of the literature is compared and never taken.

    Not where nothing is to be counted: the span itself, a point.
    """
    if not work.codim or work.cone_dim == 0:
        return
    formula = work.model.closure_degree
    if formula is not None and formula.value is not None:
        for over in ("QQ", f"F_{work.prime}"):
            work.evidence.append(
                Evidence(
                    "degree", formula.value, "formula", formula.citation, ancestry="literature", field=over
                )
            )
    if work.prime < _SMALLEST_SECTION_PRIME:
        work.lacks(f"an independent count of the degree: {work.prime} is too small for random sections")
    elif not _count_on_parametrization(work):
        why = work.context.limit or "every random section of the parametrization was special"
        work.lacks(f"an independent count of the degree: {why}")
    work.degree = work.known_degree


def random_section(work: Work) -> tuple[Matrix, Matrix]:
    """A random linear space of the dimension `codim`, which should meet the closure in 0 only, as a graph over some coordinates.

    A basis, one vector a column, and the linear forms that vanish on it, one a row. The coordinates stay single variables:
    equations restricted to it stay sparser than in a random basis (5 times faster for M(4,1,1)).
    """
    dim, codim, p = work.span.dim, work.codim or 0, work.prime
    rng = np.random.default_rng([work.context.seed, 6])
    order = rng.permutation(dim)
    free, bound = order[:codim], order[codim:]
    graph = rng.integers(0, p, size=(dim - codim, codim))
    basis, forms = np.zeros((dim, codim), dtype=np.int64), np.zeros((dim - codim, dim), dtype=np.int64)
    basis[free], basis[bound] = np.eye(codim, dtype=np.int64), graph
    forms[:, bound], forms[:, free] = np.eye(dim - codim, dtype=np.int64), -graph
    return basis, rng.integers(0, p, size=(dim - codim, dim - codim)) @ forms % p


def moving_weights(jacobian: np.ndarray, p: int) -> tuple[int, ...]:
    """Weights whose differentials are a basis of all: when the others are held at general values, the map stays dominant.

    The remaining map is finite onto a dense part of the image. `jacobian` has one row a coordinate, at a random point over F_p;
    late weights are preferred.

    >>> moving_weights(np.array([[1, 2, 0], [2, 4, 1]]), 101)
    (1, 2)
    """
    last = jacobian.shape[1] - 1
    return tuple(sorted(last - i for i in echelon_mod(jacobian[:, ::-1], p)[1]))


def _count_on_parametrization(work: Work) -> bool:
    """The degree as the number of points in a random linear section of the parametrization, over that of the map.

    The linear space contains :func:`random_section` as a hyperplane. `distinct` in the detail is the number of image points that
    were told apart in it, which a proof over QQ needs. False when Macaulay2 reached its limit or the random choice was special.
    """
    work.context.report_progress("degree of the parametrization")
    image, p = work.image, work.prime
    rng, count, forms = (
        np.random.default_rng(work.context.seed + 1),
        image.source.parameter_count,
        random_section(work)[1],
    )
    for _ in range(_DRAWS):
        weights = image.source.draw_weights(rng, p)
        moving = moving_weights(image.tangents_at(weights, p)[1][:count].T, p)
        if len(moving) == len(forms) - image.padded:
            break
    else:  # every point was special, or the image has a smaller dimension over F_p
        return False
    request = {
        "p": p, "point": [int(x) for w in weights.values() for x in w.reshape(-1)],
        "fixed": sorted(set(range(count)) - set(moving)), "chosen": list(work.span.basis),
        "forms": forms[: len(moving)].tolist(), "homogenized": image.padded, "wantDistinct": work.rational,
    }  # fmt: skip
    values, _ = work.context.run_template("closure_section", request, image.source, share=_SHARE_FOR_DEGREE)
    met, fiber = values.get("section"), values.get("fiber")
    if not met or not fiber or met % fiber:
        return False
    method = "points of a random linear section of the parametrization, over the degree of the map"
    detail = {"section": met, "fiber": fiber, "distinct": values.get("distinct")}
    work.say("degree", met // fiber, "parametrization", method, seconds=values.run.seconds, detail=detail)
    return True


# -- the account of given equations ----------------------------------------------------------------------------------


def smooth_at_image(work: Work, points: Matrix) -> bool:
    """Whether the equations' Jacobian has rank `codim` at the first of `points`: then I defines P near a general point.

    A cheap necessary condition for dim I = dim P with multiplicity one.
    """
    variables, point, p = range(points.shape[1]), points[:1], work.prime
    rows = [[int(evaluate(derivative(f, i), point, p)[0]) for i in variables] for f in work.polynomials]
    return bool(rows) and rank_mod(np.array(rows, dtype=np.int64), p) == work.codim


def vanish_at_fresh_points(work: Work, polynomials: Sequence[Polynomial], p: int) -> bool:
    """Whether all equations vanish at random image points that were not used to find them."""
    image = work.image
    points = image.points(np.random.default_rng([work.context.seed, 99]), _FRESH_POINTS, p)[
        :, work.span.basis
    ]
    value = all(not evaluate(f, points, p).any() for f in polynomials)
    bound = None
    if value and image.polynomials is not None and polynomials:
        # a wrong equation of degree D in the weights vanishes at a random point with probability at most D/p
        inner = max(int(sum(m)) for f in image.polynomials for m in f.monoms())
        degree = inner * max(sum(next(iter(f))) for f in polynomials)
        bound = min(1.0, len(polynomials) * (degree / p) ** _FRESH_POINTS)
    method = f"all equations at {_FRESH_POINTS} fresh image points"
    work.say("vanishing", value, "modular", method, prime=p, error_probability=bound)
    return value


def account(work: Work) -> Account:
    """Ask Macaulay2 about equations over F_p, and about their zeros in a linear space that should meet the image in 0 only."""
    work.context.report_progress("accounting")
    weights = _tested_weights(work)
    request = {
        "p": work.prime, "points": np.concatenate([w.reshape(_POINTS, -1) for w in weights.values()], axis=1).tolist(),
        "chosen": list(work.span.basis), "equations": _balanced(work),
        "section": random_section(work)[0].tolist() if work.codim else [],
        "hilbertDegrees": work.degree_bound + 1, "smallSpan": _SMALL_SPAN,
    }  # fmt: skip
    return work.context.run_template("closure_accounting", request, work.image.source)


def _tested_weights(work: Work) -> dict[str, Matrix]:
    return work.image.source.draw_weights(np.random.default_rng([work.context.seed, 5]), work.prime, _POINTS)


def _balanced(work: Work) -> list[list[list[object]]]:
    """The equations for a template, with residues around 0."""
    p = work.prime
    return [for_macaulay2({m: c if 2 * c <= p else c - p for m, c in f.items()}) for f in work.polynomials]


def say_account(work: Work, values: Values) -> None:
    """Macaulay2's word on the equations, beside what the network's program and evaluation ranks say."""
    span, p = work.span, work.prime
    if "image_points" in values:
        ours = work.image.at(_tested_weights(work), p)[:, : work.image.source.coordinate_count].tolist()
        theirs = [[int(x) % p for x in row] for row in values["image_points"]]
        shown = list(range(len(ours[0])))
        if theirs == ours:
            shown = [i for i in span.basis if i in shown][:12]
        method = f"coordinates of {_POINTS} image points from the network's definition"
        for witness, rows in (("modular", ours), ("macaulay2", theirs)):
            work.say("image_points", [row[i] for row in rows for i in shown], witness, method)
    if "vanishing" in values:
        work.say("vanishing", values["vanishing"], "macaulay2", "all equations at its own image points")
    if "codim" in values:  # the equations cut out at least the image: their dimension is an upper bound
        dim = span.dim - values.integer("codim") - work.image.homogenized
        method = "dimension of the equations' ideal (Groebner basis)"
        work.say("image_dim", dim, "macaulay2", method, relation="<=", seconds=values.run.seconds)
    ranks = list(work.hilbert_function)
    found = list(values.integers("hilbert_function"))[: len(ranks)] if "hilbert_function" in values else []
    if len(found) == len(ranks):
        method = "Hilbert function of the equations' ideal (Groebner basis)"
        work.say("hilbert_function", found, "macaulay2", method)
    work.say("hilbert_function", ranks, "modular", MONOMIAL_RANKS)


# -- the conclusion --------------------------------------------------------------------------------------------------


def conclude(work: Work, found: Account | None) -> None:
    """Weigh Macaulay2's account: what is shown, what is not."""
    method = "solutions of linear equations at random image points"  # its own word, for others to contradict
    work.say("vanishing", True, "interpolation", method)
    vanish_at_fresh_points(work, work.polynomials, work.prime)
    if not work.drops:
        work.shows(
            f"every equation of degree at most {work.degree_bound} over F_{work.prime} is generated by these"
        )
    if found is None:
        work.lacks("codimension and degree of the equations' ideal: a limit came first")
        return
    values, limit = found
    say_account(work, values)
    if "degree" not in values:
        work.limit = work.limit or limit
        work.lacks("codimension and degree of the equations' ideal: Macaulay2 reached a limit")
        return
    _conclude_from_numbers(work, values, values.integer("codim"), values.integer("degree"))
    work.take_series(values, work.prime)


def _conclude_from_numbers(work: Work, values: Values, codim: int, degree: int) -> None:
    """Compare codimension and degree of the equations' ideal with those of the image."""
    known, same_dim = work.known_degree, codim == work.codim
    same_degree = same_dim and degree == known
    if same_dim:
        work.shows("the equations' ideal has the dimension of the image")
        work.degree = degree
    else:
        work.lacks(
            f"the equations found so far define a larger set, of codimension {codim}: more exist in higher degree"
        )
    if known is not None:
        work.degree = known
    if same_degree:
        work.shows("the equations' ideal has the degree of the image, counted independently")
    elif same_dim and known is not None:
        work.lacks(f"the equations' ideal has degree {degree}, the image {known}")
    if not _settle_hypersurface(work) and same_degree:
        length = values.get("section_length") if work.codim else degree
        _settle_unmixedness(work, cohen_macaulay=length == degree and min(values.get("h_vector") or [0]) >= 0)
        work.proved = work.complete and _degree_is_shown(work, degree, finite_section=length is not None)
    if same_dim:  # an upper bound of the closure's degree, because the dimensions agree
        relation = "=" if work.complete else "<="
        work.say(
            "degree",
            degree,
            "macaulay2",
            "degree of the equations' ideal (Groebner basis)",
            relation=relation,
        )


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


def _settle_unmixedness(work: Work, *, cohen_macaulay: bool) -> None:
    """Dimension and degree are those of the closure: the ideal is its prime ideal when it is unmixed."""
    if cohen_macaulay:
        work.shows(
            "its coordinate ring is Cohen-Macaulay, so the ideal is unmixed and equals the prime ideal of the closure"
        )
        work.complete = True
        return
    verdict, why = None, f"the general test was not attempted: {work.span.dim} coordinates > {_SMALL_SPAN}"
    if work.span.dim <= _SMALL_SPAN:
        work.context.report_progress("unmixedness")
        request = {"p": work.prime, "variableCount": work.span.dim, "equations": _balanced(work)}
        values, stopped = work.context.run_template("closure_unmixed", request, share=_SHARE_FOR_UNMIXEDNESS)
        verdict, why = values.get("unmixed"), stopped or "Macaulay2 gave no verdict"
    if verdict:
        work.shows("the ideal is unmixed (topComponents), so it equals the prime ideal of the closure")
        work.complete = True
    elif verdict is False:
        work.lacks("the ideal has embedded or smaller components: equations of higher degree exist")
    else:
        work.lacks(f"that the ideal is unmixed (not Cohen-Macaulay; {why})")


def _degree_is_shown(work: Work, degree: int, *, finite_section: bool) -> bool:
    """Whether the closure has the degree of the equations' ideal: by as many points of a section."""
    counted = [e for e in work.evidence if e.quantity == "degree"]
    if not finite_section or degree not in [e.detail.get("distinct") for e in counted]:
        return False
    work.shows(
        f"a linear space meets the image in {degree} points and the zeros of the equations in finitely many: "
        "the degree is not smaller"
    )
    return True
