"""The dimension of a model's image, from all witnesses.

Lower bounds come from exact ranks, upper bounds from symmetries, slices and equations; when they meet, the
dimension is proved. Float64 and Macaulay2 are further witnesses; the literature's formula is compared, never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from m2bridge.bounds.lower import MOST_COLUMNS_BESIDE_THEOREM, LowerBounds, lower_bounds
from m2bridge.bounds.model_upper import ambient_dim, span_bound, symmetry_rank, upper_bounds
from m2bridge.bounds.searched import searched_bound
from m2bridge.bounds.upper_bound import least_argument
from m2bridge.bounds.virtual_weights import virtual_evidence
from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import certificate_for
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence, settle
from m2bridge.families import Model
from m2bridge.families.attention import AttentionNetwork
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.programs.program import degrees
from m2bridge.questions.dimension.checks import checked, float_witness
from m2bridge.questions.dimension.macaulay2 import ask_macaulay2
from m2bridge.questions.dimension.result import Dimension, FormulaCheck, NumericWitness, rank_at
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.questions.point import AtOption, RationalizeOption

__all__ = ["Dimension", "FormulaCheck", "NumericWitness", "dimension"]

_NEVER_TOO_SMALL = 100  # a prime above this is always accepted
_SHARE_FOR_A_CERTIFICATE = 0.2
"""Of the work of a search, where only the literature closes the gap, because that has no certificate."""


@question(
    asks="Dimension of the neuromanifold and of the generic fiber, by lower and upper bounds.",
    templates=("dimension",),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "rank_at_point": "the rank of the differential at the given weights",
    },
    example="m2bridge dimension 'softmax(d=[8,8,8],a=2,t=3)'",
    needs_engine=False,
    primes=(2, LARGE_PRIME),
)
def dimension(  # noqa: C901, PLR0915 -- bounds from the cheapest on; each uses those before it
    context: Context,
    model: Model,
    *,
    certify: Annotated[bool, Option("Include the certificate in a proved answer.")] = True,
    at: AtOption = None,
    rationalize: RationalizeOption = None,
) -> Dimension:
    """Dimension of the image of a parametrization and of its generic fiber, affine; with `at`, the rank at those weights too.

    Macaulay2 is a further witness: it compares its own definition of the network with the program at a random point. Without
    one the other witnesses answer. A certificate costs about as much time as the proof.

    Examples
    --------
    >>> found = dimension("deep-lightning(d=[3,3,3],a=[2,2],t=3)", engine=False)
    >>> found.image_dim, found.generic_fiber_dim, found.certainty.value
    (23, 19, 'proved')
    """
    p = _large_enough(prime_for(given_numbers(model), chosen=context.prime, default=LARGE_PRIME), model)
    bounds = upper_bounds(model, p=p, seed=context.seed)
    softmax = _softmax(model)
    virtual = () if softmax is None else virtual_evidence(softmax, p=p, seed=context.seed)
    above = [e for e in (*(bound.evidence for bound in bounds), *virtual) if e.relation == "<=" and _exact(e)]
    upper = min(e.value for e in above)
    found: LowerBounds | None = None
    numeric: NumericWitness | None = None
    numeric_evidence: tuple[Evidence, ...] = ()
    if not virtual or upper <= MOST_COLUMNS_BESIDE_THEOREM:
        try:
            found = lower_bounds(context, model, p=p, upper=upper)
        except LimitReached:
            context.add_evidence(*(bound.evidence for bound in bounds))
            raise
        with context.keep_partial("the rank in float64"):
            context.clock.check()
            numeric, numeric_evidence = float_witness(
                model, found.rank, seed=context.seed, report=context.progress
            )
    searched = None
    if found and found.likely < min(e.value for e in above if e.witness != "literature"):
        # also, but not for long, where only the literature closes the gap, because it has no certificate
        context.report_progress("searching symmetries")
        share = 1.0 if found.likely < upper else _SHARE_FOR_A_CERTIFICATE
        with context.keep_partial("the search for symmetries"):
            context.clock.check()
            searched = searched_bound(context, model, p=p, lower=found.likely, share=share)
    if searched is not None:
        bounds.append(searched.bound)
        upper = min(upper, searched.bound.value)
    if found and found.likely < upper:
        with context.keep_partial("the span of the coordinates"):
            context.clock.check()
            if (spanned := span_bound(model)) is not None:
                bounds.append(spanned)
                upper = min(upper, spanned.value)
    below = found.evidence if found else ()
    uppers = [bound.evidence for bound in bounds]
    others: list[Evidence] = []
    with context.keep_partial("Macaulay2's definition of the network"):
        context.clock.check()
        others += ask_macaulay2(context, model, p)
    with context.keep_partial("the checks of the program"):
        context.clock.check()
        others += checked(model, p=p, seed=context.seed)
    said = *below, *uppers, *virtual, *numeric_evidence, *others
    context.add_evidence(*(replace(e, scope="generic") if e.quantity == "image_dim" else e for e in said))
    formula = model.knowledge.formula
    if formula is not None and formula.applies and formula.value is not None:
        context.add_evidence(
            Evidence(
                "image_dim",
                formula.value,
                "formula",
                formula.citation,
                ancestry="literature",
                scope="generic",
            )
        )
    lower = max((e.value for e in context.evidence if _exact_below(e)), default=0)
    met = lower == upper
    answer = lower if met or found is None else max(lower, found.likely)
    here = None
    if at is not None or rationalize is not None:
        here = rank_at(context, model, at, rationalize, image_dim=answer, met=met)
    # what rests on a theorem, or on a count of virtual weights, is nothing that a certificate has words for
    shown = max((e.value for e in below if _exact_below(e)), default=0)
    certificate = None
    argument = least_argument(bounds)
    if certify and found and argument and met and lower == shown and upper == min(e.value for e in uppers):
        with context.keep_partial("the certificate"):
            context.clock.check()
            certificate = certificate_for(model, upper, found.rank, argument)
    parameters, span = model.parameter_dim, ambient_dim(model)
    symmetry = _orbit_dim(model, uppers, p=p, seed=context.seed)
    if searched is not None and not model.knowledge.symmetries:
        symmetry = max(symmetry, searched.orbit_dim)
    expected = parameters - symmetry if span is None else min(parameters - symmetry, span)
    return context.build_result(
        Dimension,
        model=model.spec,
        options={"prime": p} | ({} if here is None else {"weights": here.at["weights"]}),
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
            heuristic=found.rank.heuristic if found and lower < upper else None,
        ),
        certificate=certificate,
        at_point=here,
    )


def _orbit_dim(model: Model, uppers: list[Evidence], *, p: int, seed: int) -> int:
    """Return the rank of the symmetries, from the upper bound that used it if there is one, otherwise from the slice."""
    if not model.knowledge.symmetries:
        return max(
            (int(item.detail.get("orbit_dim", 0)) for item in uppers if item.witness == "found"), default=0
        )
    for item in uppers:
        if item.witness == "symmetry" and item.detail.get("source") == model.spec:
            return int(item.detail["orbit_dim"])
    rank = symmetry_rank(model, p=p, seed=seed)
    return model.knowledge.gauge.count if rank is None else rank


def _large_enough(p: int, model: Model) -> int:
    """p, unless most points over so small a field may be special: then ranks at random points mean nothing."""
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
    about = [e for e in evidence if e.quantity == "image_dim" and e.value == answer and _exact(e)]
    found: list[str] = []
    for relation in (">=", "<="):
        own = [e for e in about if e.relation == relation]
        if own and all(e.certainty is Certainty.THEOREM for e in own):
            found.append(str(own[0].detail.get("theorem", own[0].method)))
    return found


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
    """What is shown and what is not, in a sentence or two; `theorems` are those that the bounds need.

    `heuristic` is why the rank of a network with exponentials is no lower bound, where it is needed.
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
    text += " Both are in the certificate." if certified else " There is no certificate."
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
