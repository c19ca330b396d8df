"""The ideal of the Zariski closure of a model's image, with what is shown about it.

Two methods stand behind one question: ``kernel`` (Macaulay2's ring map kernel, the reference) and ``interpolation`` (exact linear
algebra over F_p in each multidegree, then Macaulay2 on what was found). ``auto`` interpolates, and asks for the kernel when
completeness could not be shown otherwise and the kernel may be in reach.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, get_args

import numpy as np

from m2bridge.certificates.points import closure_certificates
from m2bridge.errors import InputError
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.models.base import Model
from m2bridge.questions.closure import methods
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.image import Image, image_of
from m2bridge.questions.closure.interpolation import interpolate
from m2bridge.questions.closure.names import named_generators
from m2bridge.questions.closure.result import Closure, Equation
from m2bridge.questions.closure.union import with_source_equations
from m2bridge.questions.closure.work import PATIENCE, Work
from m2bridge.questions.cost import from_coordinates
from m2bridge.questions.kernel import Asking, Option, question

__all__ = ["FORMATS", "Closure", "Equation", "closure", "interpolate", "read_field"]

Method = Literal["auto", "interpolation", "kernel"]
_KERNEL_SPAN = 20
_FEW_POINTS = 5
"""Over a smaller field polynomials such as x^p - x vanish at all points: nothing is interpolated unless a user asks for it."""


def read_field(text: str) -> int | Literal["QQ"]:
    """The field that a user names: QQ, or a prime as 32003, F_32003 or ZZ/32003."""
    if text.upper() == "QQ":
        return "QQ"
    try:
        p = int(text.removeprefix("F_").removeprefix("ZZ/"))
    except ValueError:
        raise InputError(f"--field {text!r} is neither QQ nor a prime") from None
    return check_prime(p, "--field")


_TEMPLATES = (
    "closure_kernel", "closure_accounting", "closure_unmixed", "closure_section", "closure_union",
    "source_components", "source_points",
)  # fmt: skip


@question(
    asks="The equations of the Zariski closure of a network's functions, with what is shown about them.",
    primes=(2, LARGE_PRIME),
    templates=_TEMPLATES,
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
    method: Annotated[Method, Option("How to find the equations: auto, interpolation or kernel.")] = "auto",
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
    if method not in get_args(Method):
        raise InputError(f"--method {method!r} is not one of {', '.join(get_args(Method))}")
    if max_degree is not None and max_degree < 1:
        raise InputError(f"--max-degree {max_degree}: a positive degree is needed")
    field = ask.prime if field is None else field
    chosen = None if field is None or field == "QQ" else check_prime(int(field))
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    equations_of_source = bool(image.source.constraints)
    if chosen is None and not equations_of_source:
        with image.watched(ask.clock.check):
            prime = _lucky_prime(image, prime, ask.seed)
    ask.require_engine()
    begin = partial(Work, ask=ask, model=model, image=image, rational=field == "QQ", thorough=cross_check)
    work = begin(prime=prime)
    if equations_of_source:
        with_source_equations(work, method, max_degree, chosen=chosen is not None)
    elif method != "interpolation" and prime < _FEW_POINTS:
        methods.by_kernel(work, max_degree, alone=True)
        work.lacks(f"agreement with interpolation: F_{prime} has too few points to tell polynomials apart")
    elif method == "kernel":
        methods.by_kernel(work, max_degree)
    else:
        methods.by_interpolation(work, max_degree)
        if work.unlucky and chosen is None:  # once more with another prime, for a user who has chosen none
            work = begin(prime=primes_below(prime - 1, count=1, numbers=image.numbers)[0])
            methods.by_interpolation(work, max_degree)
        if cross_check or (method == "auto" and _kernel_may_settle(work)):
            methods.compare_with_kernel(work, None if cross_check else PATIENCE)
    done: str = method
    if method == "auto":
        done = "interpolation+kernel" if work.kernel_used else "interpolation"
        done = "kernel" if work.components is not None else done
    over = "QQ" if field == "QQ" else f"F_{work.prime}"
    options = {"method": method, "max_degree": max_degree, "field": over, "cross_check": cross_check}
    result = work.result(method=done, equations=equations, options=options)
    if equations_of_source:
        return result
    found, p = work.equations(), result.characteristic
    certificate = closure_certificates(model, found, p, work.degree_bound, seed=ask.seed)
    names = () if result.homogenized else named_generators(model, found, work.counts, work.prime, ask.seed)
    return replace(result, names=names, certificate=certificate)


def _lucky_prime(image: Image, prime: int, seed: int) -> int:
    """A prime over which the image spans as much as over a large one, for a user who has chosen none."""
    if not image.numbers:
        return prime

    def spans(p: int) -> int:
        return image.span(np.random.default_rng(seed), p).dim

    wanted = max(spans(image.large_prime), spans(image.second_prime))
    if spans(prime) == wanted:
        return prime
    tried = primes_below(LARGEST_MACAULAY2_PRIME, count=8, without=prime, numbers=image.numbers)
    return next((p for p in tried if spans(p) == wanted), prime)


def _kernel_may_settle(work: Work) -> bool:
    """Whether completeness is still open and the kernel may be in reach."""
    open_ = not work.complete and work.limit is None
    return open_ and work.span.dim <= _KERNEL_SPAN and not work.image.homogenized
