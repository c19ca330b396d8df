"""The dimension of a model's image, from all witnesses.

Lower bounds come from exact ranks, upper bounds from symmetries, slices and equations; when they meet, the
dimension is proved. Float64 and Macaulay2 are further witnesses; the literature's formula is compared, never used.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from m2bridge.certificates.produce import certificate_for
from m2bridge.engine import Engine, Limits
from m2bridge.errors import InputError, NotPolynomialError, OutOfReachError
from m2bridge.linear.primes import given_numbers, prime_for
from m2bridge.linear.residues import DEFAULT_PRIME, check_prime
from m2bridge.models import Model, Softmax
from m2bridge.programs.degrees import degrees
from m2bridge.questions.dimension.checks import checked
from m2bridge.questions.dimension.constrained import constrained_dimension
from m2bridge.questions.dimension.lower import float_witness, lower_bounds
from m2bridge.questions.dimension.macaulay2 import ask_macaulay2
from m2bridge.questions.dimension.result import Dimension, FormulaCheck
from m2bridge.questions.dimension.upper import found_bounds, symmetry_rank, upper_bounds
from m2bridge.questions.source import constrained_map
from m2bridge.questions.workbench import model_of
from m2bridge.results import Certainty, Evidence, weigh

_NEVER_TOO_SMALL = 100

Report = Callable[[str], None]


def dimension(
    model: Model | str,
    *,
    engine: Engine | bool | None = None,
    prime: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    keep: Path | None = None,
    progress: Report | None = None,
    certify: bool = True,
) -> Dimension:
    """Dimension of the image of a parametrization and of its generic fiber, affine.

    Parameters
    ----------
    model
        A model or its spec string.
    engine
        A Macaulay2 to ask as a further witness, which compares its own definition of the network with the program at a random
        point; None opens the first that works, and goes on without when there is none; False asks none.
    prime
        For exact ranks; below 2^23 they use BLAS. By default the largest below 2^23 that divides no coefficient of the model.
    seed
        Of all random points.
    limits
        For Macaulay2, and the memory for the exact ranks.
    certify
        Whether a proved answer carries its certificate, which costs about as much time as the proof.

    Examples
    --------
    >>> found = dimension("deep-lightning(d=[3,3,3],a=[2,2],t=3)", engine=False)
    >>> found.image_dim, found.generic_fiber_dim, found.certainty.value
    (23, 19, 'proved')
    """
    start = time.perf_counter()
    model = model_of(model)
    chosen = None if prime is None else check_prime(prime)
    p = _large_enough(prime_for(given_numbers(model), chosen=chosen, default=DEFAULT_PRIME), model)
    limits = limits or Limits()
    if (given := constrained_map(model)) is not None:
        return constrained_dimension(
            given, engine, p=p, seed=seed, limits=limits, keep=keep, progress=progress, start=start
        )
    uppers = upper_bounds(model, p=p, seed=seed)
    upper = min(item.value for item in uppers if _proved(item))
    found = lower_bounds(model, p=p, seed=seed, upper=upper, limits=limits, report=progress)
    shown = min(item.value for item in uppers if _proved(item) and item.witness != "literature")
    searched = None
    if found.likely < shown:  # what the literature says has no certificate
        if progress:
            progress("searching symmetries")
        searched = found_bounds(model, p=p, seed=seed, lower=found.likely)
    if searched is not None:
        uppers.append(searched.evidence)
        upper = min(upper, searched.evidence.value)
    numeric, numeric_evidence = float_witness(model, found.rank, seed=seed, report=progress)
    asked = ask_macaulay2(model, engine, p=p, seed=seed, limits=limits, keep=keep, report=progress)
    evidence = tuple(
        replace(item, scope="generic") if item.quantity == "image_dim" else item
        for item in (
            *found.evidence,
            *uppers,
            *numeric_evidence,
            *asked.evidence,
            *checked(model, p=p, seed=seed),
        )
    )
    lower = max((item.value for item in evidence if _proved_lower(item)), default=0)
    proved = lower == upper
    answer = lower if proved else max(lower, found.likely)
    parameters = model.parameter_dim
    orbit = _orbit_dim(model, uppers, p=p, seed=seed)
    symmetry = orbit if orbit is not None else model.gauge.count
    if searched is not None and not model.symmetries:
        symmetry = searched.orbit_dim
    span = _span(model)
    expected = parameters - symmetry if span is None else min(parameters - symmetry, span)
    agreement = weigh(evidence)
    return Dimension(
        model=model.spec,
        options={"prime": p},
        certainty=Certainty.PROVED if proved else Certainty.PROBABLE,
        agreement=agreement.verdict,
        evidence=evidence,
        engine=asked.engine,
        scripts=asked.scripts,
        seed=seed,
        seconds=time.perf_counter() - start,
        peak_memory_bytes=_peak_memory(),
        limit=None,
        parameters=parameters,
        image_dim=answer,
        generic_fiber_dim=parameters - answer,
        lower_bound=lower,
        upper_bound=upper,
        symmetry_dim=symmetry,
        span_dim=span,
        expected_dim=expected,
        defect=expected - answer if model.symmetries or expected == answer else None,
        formula=_formula(model, answer),
        numeric_rank=numeric.rank if numeric else None,
        numeric=numeric,
        statement=statement(model, lower=lower, upper=upper, answer=answer),
        certificate=certificate_for(model, found, uppers, searched.argument if searched else None)
        if proved and certify
        else None,
    )


def _orbit_dim(model: Model, uppers: list[Evidence], *, p: int, seed: int) -> int | None:
    """The rank of the symmetries, from the upper bound that was found with it where there is one."""
    for item in uppers:
        if item.witness == "symmetry" and item.detail.get("source") == model.spec:
            return int(item.detail["orbit_dim"])
    return symmetry_rank(model, p=p, seed=seed)


def _large_enough(p: int, model: Model) -> int:
    """p, unless most points over so small a field may be special: then ranks at random points mean nothing."""
    least = min(2 * model.parameter_count * degrees(model.program)[0], _NEVER_TOO_SMALL)
    if p < least:
        raise InputError(
            f"the prime {p} is too small for this model: over F_{p} a random point may be special; take one above {least}",
            argument="prime",
        )
    return p


def statement(model: Model, *, lower: int, upper: int, answer: int) -> str:
    """What is proved and what is not, in a sentence or two."""
    if lower == upper:
        text = f"The dimension is {answer}: a lower and an upper bound meet, both proved."
    elif isinstance(model, Softmax):
        text = (
            f"The dimension is proved to be at most {upper}; {answer} rests on a heuristic (random units in place of "
            "exponentials over F_p), and balls did not prove it at this size."
        )
    else:
        text = (
            f"The dimension is proved to lie between {lower} and {upper}; {answer} is probable, being the rank at several "
            "random points."
        )
    if isinstance(model, Softmax) and lower == upper and model.layers > 1:
        text += (
            " So the virtual weights (M, L) have finite generic fibers; that these are single points (Conjecture 3.10) "
            "is not proved by this."
        )
    return text


def _proved(item: Evidence) -> bool:
    return item.certainty is Certainty.PROVED


def _proved_lower(item: Evidence) -> bool:
    return (
        item.quantity == "image_dim"
        and item.relation == ">="
        and item.certainty is Certainty.PROVED
        and item.value is not None
    )


def _formula(model: Model, answer: int) -> FormulaCheck | None:
    formula = model.formula
    if formula is None:
        return None
    value = formula.value if formula.applies else None
    return FormulaCheck(
        value=value,
        citation=formula.citation,
        hypotheses=formula.hypotheses,
        agrees=None if value is None else value == answer,
    )


def _span(model: Model) -> int | None:
    try:
        return model.coordinate_count
    except (NotPolynomialError, OutOfReachError):
        return None


def _peak_memory() -> int:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
