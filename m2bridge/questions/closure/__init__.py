"""The ideal of the Zariski closure of a model's image, with what is shown about it.

Three methods stand behind one question: ``kernel`` (Macaulay2's ring map kernel, the reference), ``interpolation`` (exact linear
algebra over F_p in each multidegree, then Macaulay2 on what was found) and ``graded-kernel`` (Macaulay2's
MultigradedImplicitization). ``auto`` interpolates, and asks for the kernel when completeness could not be shown otherwise and
the kernel may be in reach.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import numpy as np

from m2bridge.certificates.points import closure_certificates
from m2bridge.errors import InputError, LimitError
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.models.base import Model
from m2bridge.questions.closure import accounting, inside
from m2bridge.questions.closure.comparing import compare_primes
from m2bridge.questions.closure.equations import Equation
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.image import Image, image_of
from m2bridge.questions.closure.interpolation import Interpolation, interpolate
from m2bridge.questions.closure.names import named_generators
from m2bridge.questions.closure.result import Closure, Membership
from m2bridge.questions.closure.union import by_components
from m2bridge.questions.closure.work import Work
from m2bridge.questions.cost import from_coordinates
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.questions.source import constrained_map

__all__ = [
    "FORMATS",
    "METHODS",
    "Closure",
    "Equation",
    "Interpolation",
    "Membership",
    "closure",
    "interpolate",
    "read_field",
]

Method = Literal["auto", "interpolation", "kernel", "graded-kernel"]
METHODS = ("auto", "interpolation", "kernel", "graded-kernel")
_GRADED_DEGREE = 4
_UNION_SECONDS = 60.0
"""For each question about a source with equations when points can answer a part of it instead."""


def read_field(text: str) -> int | Literal["QQ"]:
    """The field that a user names: QQ, or a prime as 32003, F_32003 or ZZ/32003."""
    if text.upper() == "QQ":
        return "QQ"
    try:
        p = int(text.removeprefix("F_").removeprefix("ZZ/"))
    except ValueError:
        raise InputError(f"--field {text!r} is neither QQ nor a prime") from None
    return check_prime(p, "--field")


@question(
    asks="The equations of the Zariski closure of a network's functions, with what is shown about them.",
    primes=(2, LARGE_PRIME),
    templates=(
        "closure_kernel",
        "closure_graded",
        "closure_accounting",
        "closure_unmixed",
        "closure_section",
        "closure_union",
        "source_components",
        "source_points",
    ),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "codim": "the codimension of the closure in its linear span",
        "degree": "the degree of the closure",
        "generators": "how many minimal generators of which degree",
    },
    example="m2bridge closure --d 2 --dp 1 --equations",
    warm=True,
    formats=FORMATS,
    cost=from_coordinates,
)
def closure(
    ask: Asking,
    model: Model,
    *,
    method: Annotated[
        Method, Option("How to find the equations: auto, interpolation, kernel or graded-kernel.")
    ] = "auto",
    max_degree: Annotated[
        int | None, Option("Look for generators up to this degree (default: until settled).", least=1)
    ] = None,
    field: Annotated[
        int | Literal["QQ"] | None, Option("QQ, or a prime (the same as --prime).", read=read_field)
    ] = None,
    cross_check: Annotated[bool, Option("Also compute the kernel, and compare.")] = False,
    equations: Annotated[
        bool, Option("Print and record the equations; a single short one always is.", unasked=False)
    ] = True,
) -> Closure:
    """The ideal of the Zariski closure of the image of a polynomial model.

    Over ``"QQ"`` equations are lifted and checked by exact substitution. When limits are reached, the degrees finished before are
    returned. `cross_check` also counts the degree on the parametrization.

    Examples
    --------
    >>> answer = closure("lightning(d=2, dp=1, a=2)")  # doctest: +SKIP
    >>> answer.generator_counts, answer.codim, answer.degree, answer.completeness  # doctest: +SKIP
    ({4: 1}, 1, 4, 'complete')
    """
    if method not in METHODS:
        raise InputError(f"--method {method!r} is not one of {', '.join(METHODS)}")
    if max_degree is not None and max_degree < 1:
        raise InputError(f"--max-degree {max_degree}: a positive degree is needed")
    field = ask.prime if field is None else field
    chosen = None if field is None or field == "QQ" else check_prime(int(field))
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    equations_of_source = constrained_map(image.source) is not None
    if chosen is None and not equations_of_source:
        prime = _lucky_prime(image, prime, ask.seed)
    ask.require_engine()
    work = Work(
        model=model, image=image, asking=ask, prime=prime, rational=field == "QQ", thorough=cross_check
    )
    if equations_of_source:
        _with_source_equations(work, method, max_degree, chosen=chosen is not None)
    elif method == "kernel":
        inside.by_kernel(work, max_degree)
    elif method == "graded-kernel":
        inside.by_graded_kernel(work, max_degree or _GRADED_DEGREE)
    else:
        compare_primes(work, work.by_interpolation(max_degree))
        if work.unlucky and chosen is None:  # once more with another prime, for a user who has chosen none
            work = _fresh(work, primes_below(prime - 1, count=1, numbers=image.numbers)[0])
            compare_primes(work, work.by_interpolation(max_degree))
        if cross_check or (method == "auto" and inside.kernel_may_settle(work)):
            inside.compare_with_kernel(work, None if cross_check else work.patience)
    answer = partial(
        work.result,
        method=_method(method, work, by_components=work.components is not None),
        options={
            "method": method,
            "max_degree": max_degree,
            "field": "QQ" if field == "QQ" else f"F_{work.prime}",
            "cross_check": cross_check,
        },
    )
    result = answer(equations=equations)
    if equations_of_source:
        return result
    whole = answer(equations=True)
    found, counts = whole.equations or (), dict(whole.generator_counts)
    certified = closure_certificates(model, found, whole.characteristic, whole.degree_bound, seed=ask.seed)
    names = () if result.homogenized else named_generators(model, found, counts, work.prime, ask.seed)
    return replace(result, names=names, certificate=certified)


def _fresh(work: Work, prime: int) -> Work:
    """The same computation from the start, with another prime."""
    return Work(
        model=work.model,
        image=work.image,
        asking=work.asking,
        prime=prime,
        rational=work.rational,
        thorough=work.thorough,
    )


def _method(method: str, work: Work, *, by_components: bool) -> str:
    if method != "auto":
        return method
    if by_components:
        return "kernel"
    return "interpolation+kernel" if work.kernel_used else "interpolation"


def _with_source_equations(work: Work, method: str, max_degree: int | None, *, chosen: bool) -> None:
    """The closure of the image of a source with equations: by its components, and by points only where those are out of reach."""
    patience = None
    if method == "auto":
        remaining = work.asking.clock.remaining
        patience = _UNION_SECONDS if remaining is None else min(_UNION_SECONDS, remaining / 4)
    if method in ("auto", "kernel"):
        if by_components(work, max_degree, seconds=patience, chosen=chosen):
            return
        if method == "kernel":
            raise LimitError(
                f"not found: {'; '.join(work.not_shown)}. Allow more time, or use --method interpolation, which sees only a part "
                "of the source",
                run=work.asking.last_run,
            )
    _ = (
        work.image.source.parameter_dim
    )  # refuses equations whose differentials are dependent: points say nothing then
    if method == "graded-kernel":
        inside.by_graded_kernel(work, max_degree or _GRADED_DEGREE)
    else:
        compare_primes(work, work.by_interpolation(max_degree))
    accounting.only_seen(work)


def _lucky_prime(image: Image, prime: int, seed: int) -> int:
    """A prime over which the image spans as much as over a large one, for a user who has chosen none."""
    if not image.numbers.numbers:
        return prime
    large = (image.large_prime, image.second_prime)
    wanted = max(image.span(np.random.default_rng(seed), p).dim for p in large)
    others = primes_below(LARGEST_MACAULAY2_PRIME, count=8, without=prime, numbers=image.numbers)
    for p in (prime, *others):
        if image.span(np.random.default_rng(seed), p).dim == wanted:
            return p
    return prime
