"""The ways to find equations: interpolation until the account is settled, and the kernel of the ring map inside Macaulay2.

Each is the other's second witness.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families.base import Model
from m2bridge.families.lightning import Lightning
from m2bridge.protocol import Values
from m2bridge.questions.closure import accounting
from m2bridge.questions.closure.accounting import Account
from m2bridge.questions.closure.interpolation import Interpolation
from m2bridge.questions.closure.lifting import compare_primes, lift_forms, reduce_polynomial, substitute
from m2bridge.questions.closure.result import KERNEL

if TYPE_CHECKING:
    from m2bridge.questions.closure import Work

HILBERT_DEGREES = 6
"""How far the Hilbert function is computed unless the caller knows better."""
_DEGREE_CAP = 12
_DEGREE_CAP_UNKNOWN = 6
_LARGE_SPACE = 250
_SHARE_FOR_KERNEL = 0.9
"""The kernel is the last step; the rest of the time is for the certificate."""


def by_interpolation(work: Work, max_degree: int | None) -> None:
    """Interpolate until the account is settled, conclude, compare with other primes, and lift to QQ."""
    with work.image.watched(work.context.clock.check):  # nothing is known before the span is
        found = work.interpolation(work.prime)
    work.interpolated = True
    accounting.measure(work, found.span)
    account = None
    with work.keeping("equations of higher degree"):
        accounting.count_degree(work)
        account = _advance(work, found, max_degree)
    with work.keeping("an account of the equations"):
        _take(work, found)
        if account is None and work.limit is None:
            account = accounting.account(work)
        accounting.conclude(work, account)
    if work.drops:
        # what holds over F_p then says nothing about QQ, and gradings over QQ are not all there are over F_p
        work.lacks(f"anything over F_{work.prime}: the image may have a smaller dimension there than over QQ")
        work.complete = work.proved = False
        work.unlucky = True
    compared = False
    with work.keeping("agreement with other primes"):
        compare_primes(work, found)
        compared = True
    if not compared:  # a lift that was not checked is none
        work.lifted = work.lifted_forms = None
        work.proved = False


def _advance(work: Work, found: Interpolation, max_degree: int | None) -> Account | None:
    """Go on to `max_degree`, or until a degree brings nothing new and dimension and degree are those of the image.

    Macaulay2 is asked only when the equations already define the image near a general point, and not before a degree
    without new generators, unless the next degree is large.
    """
    known = work.known_degree
    bound = max_degree or (min(known + 1, _DEGREE_CAP) if known is not None else _DEGREE_CAP_UNKNOWN)
    points = work.image.points(np.random.default_rng([work.context.seed, 2]), 1, work.prime)[
        :, work.span.basis
    ]
    asked = -1
    while found.degree_reached < bound and work.codim:
        work.context.report_progress(f"equations of degree {found.degree_reached + 1}")
        if not found.advance():
            work.limit = found.limit
            if found.few_points:
                work.few_points = True
                reason = work.image.too_few_points(found.degree_reached + 1, work.prime)
                work.lacks(f"equations of higher degree: {reason}")
            return None
        if max_degree is not None:
            continue
        _take(work, found)
        fresh = bool(found.generators[found.degree_reached])
        early = fresh and found.largest <= _LARGE_SPACE and found.degree_reached < bound
        if early or asked == len(work.polynomials) or not accounting.smooth_at_image(work, points):
            continue
        asked = len(work.polynomials)
        values, limit = account = accounting.account(work)
        right_degree = values.get("degree") == known if known is not None else not fresh
        if limit is not None or (values.get("codim") == work.codim and right_degree):
            return account
    return None


def _take(work: Work, found: Interpolation) -> None:
    work.polynomials, work.counts = found.polynomials, found.counts
    work.hilbert_function, work.degree_bound = found.hilbert_function, found.degree_reached


# -- inside Macaulay2 ------------------------------------------------------------------------------------------------


def best_source(model: Model) -> Model:
    """The parametrization that makes `ker` fastest: (A, V), in R/minors(a+1, A) when 1 < a < d; (Q, K, V) for a = 1."""
    if isinstance(model, Lightning):
        return replace(model, parametrization="weights" if model.a == 1 and model.d > 1 else "attention")
    return model


def generator_counts(values: Values) -> dict[int, int]:
    """Degree -> number of minimal generators, of a template that emits their degrees."""
    return dict(sorted(Counter(values.integers("generator_degrees")).items()))


def _kernel(work: Work, p: int, hilbert_degrees: int | None, share: float | None = None) -> Account:
    """The ideal of the closure as the kernel of the ring map, over F_p or (p = 0) QQ."""
    work.context.report_progress("kernel")
    request = {
        "p": p, "hilbertDegrees": hilbert_degrees or HILBERT_DEGREES, "imageIsCone": not work.image.padded
    }  # fmt: skip
    source = best_source(work.model) if work.model.polynomial else work.image.source
    return work.context.run_template("closure_kernel", request, source, share=share)


def by_kernel(work: Work, max_degree: int | None, *, alone: bool = False) -> None:
    """The kernel of the ring map; unless it is `alone`, interpolation up to its generators' degrees is the second witness."""
    accounting.measure(work, work.image.span(np.random.default_rng(work.context.seed), work.prime))
    p = 0 if work.rational else work.prime
    values, work.limit = _kernel(work, p, max_degree)
    work.kernel_used = True
    if "generators" not in values:
        work.lacks(
            f"{KERNEL}, and so anything about equations: {work.limit or 'Macaulay2 did not finish it'}"
        )
        return
    work.span = replace(work.span, basis=values.integers("span"))
    work.counts, work.complete = generator_counts(values), True
    work.degree_bound = max([max_degree or 1, *work.counts])
    if "hilbert_function" in values:
        work.hilbert_function = values.integers("hilbert_function")
    work.shows(f"the ideal is the kernel of the ring map over {'QQ' if work.rational else f'F_{work.prime}'}")
    work.polynomials = found = values.polynomials(values["generators"], work.span.dim, p)
    if work.rational:
        work.polynomials = [reduce_polynomial(f, work.prime) for f in found]
        work.lifted_forms = lift_forms(work)
        work.lifted = None if work.lifted_forms is None else found
        if work.lifted is None:
            work.lacks("the linear forms over QQ: six primes did not determine them")
        exact = substitute(work)
        work.proved = bool(exact) or (exact is None and work.lifted is not None and not work.lifted_forms)
    if "degree" not in values:
        work.lacks("codimension and degree: Macaulay2 reached a limit")
    work.say("vanishing", True, "kernel", "kernel of the ring map")
    accounting.count_degree(work)
    work.degree = values.get("degree", work.degree)
    _say_kernel(work, values, p)
    accounting.vanish_at_fresh_points(work, work.polynomials, work.prime)
    if not alone:
        _witness_interpolation(work)


def compare_with_kernel(work: Work) -> None:
    """Compute the kernel too: the same generators and Hilbert function make the interpolated ideal complete."""
    p = 0 if work.rational and work.span.dim <= 6 else work.prime
    values, stopped = _kernel(work, p, work.degree_bound, _SHARE_FOR_KERNEL)
    if "hilbert_function" not in values:
        work.lacks(f"{KERNEL}: {stopped or 'Macaulay2 did not finish it'}")
        return
    work.kernel_used = True
    _say_kernel(work, values, p)
    same_counts = generator_counts(values) == work.counts
    if same_counts and values.integers("hilbert_function") == work.hilbert_function:
        work.complete = True
        work.shows("the kernel of the ring map has as many generators in each degree: the ideals are equal")


def _say_kernel(work: Work, values: Values, p: int) -> None:
    work.take_series(values, p)
    method, over = "kernel of the ring map" + ("" if p else " over QQ"), p or None
    sure = {"certainty": Certainty.PROBABLE if p else Certainty.COMPUTED, "prime": over}
    counts = generator_counts(values)
    counts = {k: v for k, v in counts.items() if k <= work.degree_bound or work.complete}
    work.say_counts("macaulay2", method, counts, over)
    if "hilbert_function" in values:
        ranks = list(values.integers("hilbert_function"))[: len(work.hilbert_function)]
        work.say("hilbert_function", ranks, "macaulay2", method, prime=over, seconds=values.run.seconds)
    if "degree" in values:
        work.say("degree", values["degree"], "macaulay2", method, **sure)
    if "codim" in values:
        dim = values.integer("span_dim") - values.integer("codim") - work.image.homogenized
        work.say("image_dim", dim, "macaulay2", method, **sure)


def _witness_interpolation(work: Work) -> None:
    """Interpolation up to the degrees of the generators at hand."""
    other = work.interpolation(work.prime)
    top = max(work.counts, default=1)
    if not other.reach(top):
        reason = "a limit came first"
        if other.few_points:
            reason = work.image.too_few_points(other.degree_reached + 1, work.prime)
        work.lacks(f"agreement with interpolation: {reason}")
        return
    work.say_counts("modular", f"interpolation up to degree {top}", other.counts, work.prime)
    ranks = other.hilbert_function[: len(work.hilbert_function)]
    if ranks != work.hilbert_function[: len(ranks)]:
        work.say("hilbert_function", list(ranks), "modular", accounting.MONOMIAL_RANKS)
