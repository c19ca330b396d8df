"""Compute the dimension of the image of a model by lower and upper bounds.

Lower bounds come from exact ranks, upper bounds from symmetries, slices and equations; when they meet, the
dimension is proved. Float64 and Macaulay2 are further witnesses; the literature's formula is compared, never used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from m2bridge.bounds.lower import MOST_COLUMNS_BESIDE_THEOREM, LowerBounds, lower_bounds
from m2bridge.bounds.model_upper import ambient_dim, span_bound, symmetry_rank, trivial_bounds, upper_bounds
from m2bridge.bounds.searched import searched_bound
from m2bridge.bounds.upper_bound import ModelBound, least_argument
from m2bridge.bounds.virtual_weights import virtual_evidence
from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import certificate_for
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence, Value, settle
from m2bridge.families import Model
from m2bridge.families.attention import AttentionNetwork
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.programs.program import degrees
from m2bridge.questions.dimension.checks import float_witness, program_checks
from m2bridge.questions.dimension.macaulay2 import macaulay2_evidence
from m2bridge.questions.dimension.result import (
    SINGULAR_VALUES,
    Dimension,
    FormulaCheck,
    NumericWitness,
    rank_at,
)
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.questions.point import RationalizeOption, weights_option

__all__ = ["Dimension", "FormulaCheck", "NumericWitness", "dimension"]

_NEVER_TOO_SMALL = 100  # a prime above this is always accepted
_SHARE_FOR_A_CERTIFICATE = 0.2
"""Of the work of a search, if only a formula of the literature closes the gap: it has no certificate."""


@question(
    asks="Dimension of the neuromanifold and of the generic fiber, by lower and upper bounds.",
    templates=("dimension",),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "rank_at_point": "the rank of the differential at the given weights",
        SINGULAR_VALUES: "the number of singular values at the given weights that are not small, in float64",
    },
    example="m2bridge dimension 'softmax(d=[8,8,8],a=2,t=3)'",
    needs_engine=False,
    primes=(2, LARGE_PRIME),
)
def dimension(
    context: Context,
    model: Model,
    *,
    certify: Annotated[bool, Option("Include the certificate in a proved answer.")] = True,
    at: Annotated[Any, weights_option("Also compute the rank at these weights")] = None,
    rationalize: RationalizeOption = None,
) -> Dimension:
    """Compute the dimension of the image of a parametrization and of its generic fiber, affine; with `at`, also the rank there.

    Macaulay2 is a further witness: its definition of the network is compared with the program at a random point. Without
    Macaulay2 the answer uses the other witnesses. A certificate takes about as much time as the proof.

    Examples
    --------
    >>> answer = dimension("deep-lightning(d=[3,3,3],a=[2,2],t=3)", engine=False)
    >>> answer.image_dim, answer.generic_fiber_dim, answer.certainty.value
    (23, 19, 'proved')
    """
    p = _large_enough(prime_for(given_numbers(model), chosen=context.prime, default=LARGE_PRIME), model)
    softmax = _softmax(model)
    try:
        bounds = upper_bounds(model, p=p, seed=context.seed)
        virtual = () if softmax is None else virtual_evidence(softmax, p=p, seed=context.seed)
    except LimitReached:
        context.add_evidence(*trivial_bounds(model))
        raise
    uppers = [e for e in (*(b.evidence for b in bounds), *virtual) if e.relation == "<=" and _exact(e)]
    upper = min(e.value for e in uppers)
    ranks, numeric, searched_orbit_dim = None, None, 0
    numeric_evidence: tuple[Evidence, ...] = ()
    if not virtual or upper <= MOST_COLUMNS_BESIDE_THEOREM:
        ranks, numeric, numeric_evidence = _ranks(context, model, p, bounds, upper)
        searched, searched_orbit_dim = _searched_bounds(context, model, p, uppers, ranks.rank.rank)
        bounds += searched
        upper = min([upper, *(bound.value for bound in searched)])
    checks = _macaulay2_and_program_checks(context, model, p)
    evidence = (
        *(ranks.evidence if ranks else ()),
        *(b.evidence for b in bounds),
        *virtual,
        *numeric_evidence,
        *checks,
    )
    context.add_evidence(*(replace(e, scope="generic") if e.quantity == "image_dim" else e for e in evidence))
    context.add_evidence(*_formula_evidence(model))
    lower = max((e.value for e in context.evidence if _exact_below(e)), default=0)
    met = lower == upper
    answer = lower if met or ranks is None else max(lower, ranks.rank.rank)
    at_point = None
    if at is not None or rationalize is not None:
        at_point = rank_at(context, model, at, rationalize, image_dim=answer, met=met)
    certificate = _certificate(context, model, bounds, ranks, answer) if certify and met else None
    parameters, span = model.parameter_dim, ambient_dim(model)
    symmetry = _orbit_dim(model, bounds, searched_orbit_dim, p=p, seed=context.seed)
    expected = parameters - symmetry if span is None else min(parameters - symmetry, span)
    return context.build_result(
        Dimension,
        model=model.spec,
        options={"prime": p} | ({} if at_point is None else {"weights": at_point.at["weights"]}),
        certainty=settle(context.evidence)["image_dim"].certainty if met else Certainty.PROBABLE,
        parameters=parameters,
        image_dim=answer,
        generic_fiber_dim=parameters - answer,
        lower_bound=lower,
        upper_bound=upper,
        symmetry_dim=symmetry,
        span_dim=span,
        expected_dim=expected,
        defect=expected - answer if model.knowledge.symmetries or expected == answer else None,
        formula=_formula(model, answer),
        numeric_rank=numeric.rank if numeric else None,
        numeric=numeric,
        statement=_statement(
            model,
            lower=lower,
            upper=upper,
            answer=answer,
            theorems=_theorems(context.evidence, answer),
            certified=certificate is not None,
            heuristic=ranks.rank.heuristic if ranks and lower < upper else None,
        ),
        certificate=certificate,
        at_point=at_point,
    )


def _ranks(
    context: Context, model: Model, p: int, bounds: Sequence[ModelBound], upper: int
) -> tuple[LowerBounds, NumericWitness | None, tuple[Evidence, ...]]:
    """Return the exact rank and the rank in float64; if a limit is reached before the first, keep the upper bounds."""
    try:
        ranks = lower_bounds(context, model, p=p, upper=upper)
    except LimitReached:
        context.add_evidence(*(bound.evidence for bound in bounds))
        raise
    numeric: NumericWitness | None = None
    evidence: tuple[Evidence, ...] = ()
    with context.keep_partial("the rank in float64"):
        context.clock.check()
        numeric, evidence = float_witness(model, ranks.rank, seed=context.seed, report=context.progress)
    return ranks, numeric, evidence


def _certificate(
    context: Context, model: Model, bounds: Sequence[ModelBound], ranks: LowerBounds | None, answer: int
) -> Mapping[str, Value] | None:
    """Return the certificate of the dimension; None if one of its bounds needs a theorem or a count of virtual weights."""
    argument = least_argument(bounds)
    if ranks is None or argument is None or min(bound.value for bound in bounds) != answer:
        return None
    if max((e.value for e in ranks.evidence if _exact_below(e)), default=0) != answer:
        return None
    with context.keep_partial("the certificate"):
        context.clock.check()
        return certificate_for(model, answer, ranks.rank, argument)
    return None


def _searched_bounds(
    context: Context, model: Model, p: int, upper_evidence: Sequence[Evidence], likely: int
) -> tuple[list[ModelBound], int]:
    """Search symmetries, then the linear span, while the least upper bound exceeds the likely dimension.

    Return the new bounds and the rank of the symmetries.
    """
    upper = min(e.value for e in upper_evidence)
    bounds: list[ModelBound] = []
    orbit_dim = 0
    if likely < min(e.value for e in upper_evidence if e.witness != "literature"):
        context.report_progress("searching symmetries")
        share = 1.0 if likely < upper else _SHARE_FOR_A_CERTIFICATE
        with context.keep_partial("the search for symmetries"):
            context.clock.check()
            searched = searched_bound(context, model, p=p, lower=likely, share=share)
            if searched is not None:
                bounds.append(searched.bound)
                orbit_dim = searched.orbit_dim
                upper = min(upper, searched.bound.value)
    if likely < upper:
        with context.keep_partial("the span of the coordinates"):
            context.clock.check()
            if (spanned := span_bound(model)) is not None:
                bounds.append(spanned)
    return bounds, orbit_dim


def _macaulay2_and_program_checks(context: Context, model: Model, p: int) -> list[Evidence]:
    """Return the evidence of Macaulay2 and of the checks of the program, as far as the limits allow."""
    evidence: list[Evidence] = []
    with context.keep_partial("Macaulay2's definition of the network"):
        context.clock.check()
        evidence += macaulay2_evidence(context, model, p)
    with context.keep_partial("the checks of the program"):
        context.clock.check()
        evidence += program_checks(model, p=p, seed=context.seed)
    return evidence


def _formula_evidence(model: Model) -> list[Evidence]:
    """Return the value of the literature's formula as evidence to compare with, if the formula is applicable."""
    formula = model.knowledge.formula
    if formula is None or not formula.applies or formula.value is None:
        return []
    return [
        Evidence(
            "image_dim", formula.value, "formula", formula.citation, ancestry="literature", scope="generic"
        )
    ]


def _orbit_dim(model: Model, bounds: Sequence[ModelBound], searched: int, *, p: int, seed: int) -> int:
    """Return the rank of the symmetries, from the upper bound that used it if there is one, otherwise from the slice.

    Without declared symmetries it is the rank of those that were found, by structure or by the search (`searched`).
    """
    uppers = [bound.evidence for bound in bounds]
    if not model.knowledge.symmetries:
        by_structure = [int(item.detail.get("orbit_dim", 0)) for item in uppers if item.witness == "found"]
        return max([searched, *by_structure])
    for item in uppers:
        if item.witness == "symmetry" and item.detail.get("source") == model.spec:
            return int(item.detail["orbit_dim"])
    rank = symmetry_rank(model, p=p, seed=seed)
    return model.knowledge.gauge.count if rank is None else rank


def _large_enough(p: int, model: Model) -> int:
    """Return p; refuse it if most points over so small a field may be special, where ranks at random points mean nothing."""
    least = min(2 * model.parameter_count * degrees(model.program)[0], _NEVER_TOO_SMALL)
    if p < least:
        raise InputError(
            f"the prime {p} is too small for this model: over F_{p} a random point may be special; use a prime above {least}",
            argument="prime",
        )
    return p


def _exact(item: Evidence) -> bool:
    return item.certainty.exact


def _exact_below(item: Evidence) -> bool:
    return item.quantity == "image_dim" and item.relation == ">=" and _exact(item) and item.value is not None


def _theorems(evidence: Sequence[Evidence], answer: int) -> list[str]:
    """Return the theorems used by the answer: those of the equal bounds, unless bounds without a theorem are also equal."""
    at_answer = [e for e in evidence if e.quantity == "image_dim" and e.value == answer and _exact(e)]
    theorems: list[str] = []
    for relation in (">=", "<="):
        on_one_side = [e for e in at_answer if e.relation == relation]
        if on_one_side and all(e.certainty is Certainty.THEOREM for e in on_one_side):
            theorems.append(str(on_one_side[0].detail.get("theorem", on_one_side[0].method)))
    return theorems


def _softmax(model: Model) -> AttentionNetwork | None:
    """Return the network itself if it is softmax attention with one head in each layer and no skip connections."""
    network = model.knowledge.attention
    return network if network is not None and network.softmax else None


def _statement(
    model: Model,
    *,
    lower: int,
    upper: int,
    answer: int,
    theorems: Sequence[str],
    certified: bool,
    heuristic: str | None,
) -> str:
    """State in one or two sentences what is proved and what is not; `theorems` are those that the bounds need.

    `heuristic` is the reason why the rank of a network with exponentials is not a lower bound, or None.
    """
    if lower > upper:
        return f"The bounds contradict each other: at least {lower}, at most {upper}. Do not use this answer."
    softmax = _softmax(model)
    if heuristic is not None:
        return (
            f"The dimension is at most {upper}; {answer} is heuristic "
            f"(random units in place of exponentials over F_p): {heuristic}."
        )
    if lower < upper:
        return f"The dimension lies between {lower} and {upper}; {answer} is the rank at several random points (probable)."
    text = f"The dimension is {answer}: a lower and an upper bound meet."
    if theorems:
        return f"{text} They use a theorem: {'; '.join(theorems)}. There is no certificate."
    in_certificate = " The certificate contains both; `m2bridge check` names their arguments."
    text += in_certificate if certified else " There is no certificate."
    if softmax is not None and softmax.layers > 1 and softmax.t > 1:
        text += (
            " So the virtual weights (M, L) have finite generic fibers; this does not prove that they are single points "
            "for t >= 2 (Conjecture 3.10); docs/conjecture-3.10.md does."
        )
    return text


def _formula(model: Model, answer: int) -> FormulaCheck | None:
    formula = model.knowledge.formula
    if formula is None:
        return None
    value = formula.value if formula.applies else None
    agrees = None if value is None else value == answer
    return FormulaCheck(value=value, citation=formula.citation, hypotheses=formula.hypotheses, agrees=agrees)
