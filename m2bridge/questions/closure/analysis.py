"""Analyses stage, closure: the ideal of the Zariski closure of a model's image, with what is shown about it.

A model enters, a :class:`~m2bridge.questions.closure.result.Closure` leaves. Three methods stand behind one
function: ``kernel`` (Macaulay2's ring map kernel, the reference), ``interpolation`` (exact linear algebra over F_p in
each multidegree, then Macaulay2 on what was found) and ``graded-kernel`` (Macaulay2's MultigradedImplicitization).
``auto`` interpolates, and asks for the kernel when completeness could not be shown otherwise and the kernel may be in reach.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import numpy as np

from m2bridge.engine import open_engine
from m2bridge.engine.base import Engine, Limits
from m2bridge.errors import InputError, LimitError
from m2bridge.linear.primes import (
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.models.base import Model
from m2bridge.questions.clock import Clock
from m2bridge.questions.closure import inside
from m2bridge.questions.closure.asking import Asking
from m2bridge.questions.closure.comparing import compare_primes
from m2bridge.questions.closure.image import Image, image_of
from m2bridge.questions.closure.result import Closure
from m2bridge.questions.closure.union import by_components
from m2bridge.questions.closure.work import Work, with_fields
from m2bridge.questions.source import constrained_map
from m2bridge.questions.workbench import model_of
from m2bridge.results import weigh

METHODS = ("auto", "interpolation", "kernel", "graded-kernel")
_GRADED_DEGREE = 4
_UNION_SECONDS = 60.0
"""For each question about a source with equations when points can answer a part of it instead."""


def closure(
    model: Model | str,
    *,
    method: str = "auto",
    max_degree: int | None = None,
    field: int | Literal["QQ"] | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    cross_check: bool = False,
    equations: bool = True,
    keep: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Closure:
    """The ideal of the Zariski closure of the image of a polynomial model.

    Parameters
    ----------
    method: one of ``auto``, ``interpolation``, ``kernel``, ``graded-kernel``.
    max_degree: how far to look for generators; by default until dimension and degree are those of the image.
    field: a prime below 2^23 that divides nothing in the model, or ``"QQ"``: then equations are lifted and checked by exact
        substitution. By default F_32003, or the next smaller prime that divides nothing in the model.
    engine: the Macaulay2 to use; the first one found by default.
    limits: of the whole computation; when they are reached, the degrees finished before are returned.
    cross_check: also compute the kernel, and count the degree on the parametrization, and compare.
    equations: whether the result carries the equations themselves.

    Examples
    --------
    >>> from m2bridge.models import parse_spec
    >>> answer = closure(parse_spec("lightning(d=2, dp=1, a=2)"))  # doctest: +SKIP
    >>> answer.generator_counts, answer.codim, answer.degree, answer.completeness  # doctest: +SKIP
    ({4: 1}, 1, 4, 'complete')
    """
    if method not in METHODS:
        raise InputError(f"--method {method!r} is not one of {', '.join(METHODS)}")
    if max_degree is not None and max_degree < 1:
        raise InputError(f"--max-degree {max_degree}: a positive degree is needed")
    chosen = None if field is None or field == "QQ" else check_prime(int(field))
    started = time.monotonic()
    limits = limits or Limits()
    clock = Clock(limits.wall_seconds, limits.memory_bytes)
    model = model_of(model)
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    equations_of_source = constrained_map(image.source) is not None
    if chosen is None and not equations_of_source:
        prime = _lucky_prime(image, prime, seed)
    with open_engine(warm=True) if engine is None else nullcontext(engine) as opened:
        asking = Asking(opened, limits, clock, keep=keep, progress=progress)
        work = Work(
            model=model,
            image=image,
            asking=asking,
            prime=prime,
            rational=field == "QQ",
            seed=seed,
            progress=progress,
            thorough=cross_check,
        )
        if equations_of_source:
            _with_source_equations(work, method, max_degree, chosen=chosen is not None)
        elif method == "kernel":
            inside.by_kernel(work, max_degree)
        elif method == "graded-kernel":
            inside.by_graded_kernel(work, max_degree or _GRADED_DEGREE)
        else:
            compare_primes(work, work.by_interpolation(max_degree))
            if (
                work.unlucky and chosen is None
            ):  # once more with another prime, for a user who has chosen none
                work = _fresh(work, primes_below(prime - 1, count=1, numbers=image.numbers)[0])
                compare_primes(work, work.by_interpolation(max_degree))
            if cross_check or (method == "auto" and inside.kernel_may_settle(work)):
                inside.compare_with_kernel(work, None if cross_check else work.patience)
        agreement = weigh(with_fields(work.evidence, work.prime))
        return work.result(
            method=_method(method, work, by_components=work.components is not None),
            agreement=agreement.verdict, equations=equations, seconds=time.monotonic() - started,
            options={
                "method": method, "max_degree": max_degree, "field": "QQ" if field == "QQ" else f"F_{work.prime}",
                "cross_check": cross_check,
            },
        )  # fmt: skip


def _fresh(work: Work, prime: int) -> Work:
    """The same computation from the start, with another prime."""
    return Work(
        model=work.model, image=work.image, asking=work.asking, prime=prime, rational=work.rational, seed=work.seed,
        progress=work.progress, thorough=work.thorough,
    )  # fmt: skip


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
    work.only_seen()


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
