"""Analyses stage, closure: the ideal of the Zariski closure of a model's image, with what is shown about it.

A model enters, a :class:`~m2bridge.analyses.closure.result.Closure` leaves. Three methods stand behind one
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

from m2bridge.analyses.clock import Clock
from m2bridge.analyses.closure import inside
from m2bridge.analyses.closure.asking import Asking
from m2bridge.analyses.closure.comparing import compare_primes
from m2bridge.analyses.closure.image import LARGE_PRIME, Image, image_of
from m2bridge.analyses.closure.primes import DEFAULT_PRIME, LARGEST_M2_PRIME, check_prime, primes_below
from m2bridge.analyses.closure.result import Closure
from m2bridge.analyses.closure.work import Work
from m2bridge.analyses.workbench import model_of
from m2bridge.engine import open_engine
from m2bridge.engine.base import Engine, Limits
from m2bridge.errors import InputError
from m2bridge.models.base import Model
from m2bridge.results import weigh

METHODS = ("auto", "interpolation", "kernel", "graded-kernel")
_GRADED_DEGREE = 4


def closure(
    model: Model | str,
    *,
    method: str = "auto",
    max_degree: int | None = None,
    field: int | Literal["QQ"] = DEFAULT_PRIME,
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
    field: a prime below 2^23, or ``"QQ"``: then equations are lifted and checked by exact substitution.
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
    prime = DEFAULT_PRIME if field == "QQ" else int(field)
    check_prime(prime)
    started = time.monotonic()
    limits = limits or Limits()
    clock = Clock(limits.wall_seconds, limits.memory_bytes)
    model = model_of(model)
    image = image_of(model)
    if field == "QQ":
        prime = _lucky_prime(image, seed)
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
        if method == "kernel":
            inside.by_kernel(work, max_degree)
        elif method == "graded-kernel":
            inside.by_graded_kernel(work, max_degree or _GRADED_DEGREE)
        else:
            compare_primes(work, work.by_interpolation(max_degree))
            if cross_check or (method == "auto" and inside.kernel_may_settle(work)):
                inside.compare_with_kernel(work, None if cross_check else work.patience)
        agreement = weigh(work.evidence)
        return work.result(
            method=method if method != "auto" else "interpolation" if not work.kernel_used else "interpolation+kernel",
            agreement=agreement.verdict, equations=equations, seconds=time.monotonic() - started,
            options={
                "method": method, "max_degree": max_degree, "field": "QQ" if field == "QQ" else f"F_{prime}",
                "cross_check": cross_check,
            },
        )  # fmt: skip


def _lucky_prime(image: Image, seed: int) -> int:
    """A prime over which the image spans as much as over a large one: the user, who asked for QQ, has chosen none."""
    wanted = image.span(np.random.default_rng(seed), LARGE_PRIME).dim
    for p in (DEFAULT_PRIME, *primes_below(LARGEST_M2_PRIME, count=8, without=DEFAULT_PRIME)):
        if image.span(np.random.default_rng(seed), p).dim == wanted:
            return p
    return DEFAULT_PRIME
