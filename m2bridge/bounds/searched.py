"""Upper bounds from vector fields and compositions that are searched in a model's program."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from m2bridge.bounds.analytic import relaxed_bound
from m2bridge.bounds.model_upper import listed_fields, proved_bound
from m2bridge.bounds.program_upper import UpperBounds
from m2bridge.bounds.upper_bound import ModelBound, UpperBound
from m2bridge.errors import OutOfReachError
from m2bridge.families import Model
from m2bridge.families.rational_cone import cone_map, is_rational_map
from m2bridge.limits import Clock
from m2bridge.programs.program import Program
from m2bridge.programs.work import OF_ANALYTIC, OF_DIMENSION, WorkBudget
from m2bridge.symmetry.names import known_fields
from m2bridge.symmetry.search import Search

MOST_SEARCHED_WEIGHTS = 1500  # weights of a program in which vector fields are searched


class SearchContext(Protocol):
    """The context of the question that runs a search: a seed, the clock, and steps that a limit may end."""

    seed: int
    clock: Clock
    limit: str | None

    def keep_partial(self, step: str) -> AbstractContextManager[None]:
        """Run a step that a limit may end; afterwards `limit` is that limit, or None."""


class SearchedBound(NamedTuple):
    """The best upper bound from symmetries that were searched, and the rank of the fields."""

    bound: ModelBound
    orbit_dim: int


def searched_bound(
    context: SearchContext, model: Model, *, p: int, lower: int, share: float = 1.0
) -> SearchedBound | None:
    """Search vector fields and compositions of the program, cheap arguments first, until a bound meets `lower`.

    The search ends after counted work (:mod:`m2bridge.programs.work`), of which `share` can be less than all. At the user's limit
    the best bound so far is returned. None if nothing can be searched: too many weights. If fields do not suffice, an analytic
    program is searched through a polynomial one (:mod:`m2bridge.bounds.analytic`), which certificates cannot express.
    """
    if is_rational_map(model):
        with suppress(OutOfReachError):
            return _bound_by_cone(context, model, p=p, lower=lower, share=share)
    start, program = time.perf_counter(), model.free.program
    bounds: list[UpperBound] = []
    orbit_dim, detail = 0, dict[str, Any]()
    with suppress(OutOfReachError):  # in a program with many square roots
        if program.parameter_count <= MOST_SEARCHED_WEIGHTS:
            best, search = _bound_by_fields(context, model, p=p, lower=lower, share=share)
            bounds.append(best)
            orbit_dim = search.rank
            detail = {"fields": len(search.fields), "orbit_dim": orbit_dim, "unverified": search.unverified}
    if not program.polynomial and not any(bound.value <= lower for bound in bounds):
        by_pieces = _bound_by_pieces(context, program, p=p, lower=lower)
        if by_pieces is not None and all(by_pieces.value < bound.value for bound in bounds):
            bounds.append(by_pieces)
            orbit_dim, detail = program.parameter_count - by_pieces.value, {}
    if not bounds:
        return None
    best = bounds[-1]
    # The ancestry is that of the rank: both are statements about the recorded program.
    evidence = replace(
        proved_bound("found", best.method, best.value, **detail),
        prime=p,
        seconds=time.perf_counter() - start,
        ancestry="program",
    )
    return SearchedBound(ModelBound(evidence, best.argument), orbit_dim)


def _bound_by_fields(
    context: SearchContext, model: Model, *, p: int, lower: int, share: float
) -> tuple[UpperBound, Search]:
    """Search fields of degree 0, 1 and 2, and bound the program by them and its compositions after each degree."""
    program = model.free.program
    seed = context.seed
    check = context.clock.check
    work = WorkBudget(share * OF_DIMENSION, check)
    search = Search(program, p=p, seed=seed, work=work, corank=program.parameter_count - lower)
    if program.polynomial:
        for _, field in known_fields(model.free):
            search.take(field)
    else:
        search.add_verified(listed_fields(program))
    bounds: list[UpperBound] = []
    for degree in (0, 1, 2) if model.knowledge.symmetries else (1, 2):
        with context.keep_partial(f"symmetries of degree {degree}"):
            context.clock.check()
            search.run(degree, degree or 1).guess()
        with context.keep_partial("compositions of the program"):
            context.clock.check()
            upper = UpperBounds(p=p, seed=seed, work=WorkBudget(share * OF_DIMENSION, check))
            bounds.append(upper.best(program, search.fields, lower))
        if context.limit or bounds[-1].value <= lower or work.left <= 0:
            break
    if context.limit:  # a bound by the fields alone, without compositions, is fast
        upper = UpperBounds(p=p, seed=seed, work=WorkBudget(0.0))
        bounds.append(upper.best(program, search.fields, lower))
    return min(bounds, key=lambda bound: bound.value), search


def _bound_by_pieces(context: SearchContext, program: Program, *, p: int, lower: int) -> UpperBound | None:
    """Bound an analytic program by its pieces; None if it is too large or the user's limit is reached."""
    work = WorkBudget(OF_ANALYTIC, context.clock.check)
    with context.keep_partial("bounds of the pieces of an analytic network"):
        context.clock.check()
        return relaxed_bound(program, lower=lower, p=p, seed=context.seed, work=work)
    return None


def _bound_by_cone(
    context: SearchContext, model: Model, *, p: int, lower: int, share: float
) -> SearchedBound | None:
    """Bound a rational map by the polynomial map onto the cone over its image, which certificates cannot express."""
    cone = searched_bound(context, cone_map(model), p=p, lower=lower + 1, share=share)
    if cone is None:
        return None
    evidence = cone.bound.evidence
    method = f"cone over the image: {evidence.method}"
    return SearchedBound(
        ModelBound(replace(evidence, value=evidence.value - 1, method=method)), cone.orbit_dim
    )
