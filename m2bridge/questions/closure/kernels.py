"""Analyses stage, closure: the methods that run inside Macaulay2: the kernel of the ring map, and its graded components."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from m2bridge.errors import InputError
from m2bridge.models.base import Model
from m2bridge.models.lightning import Lightning
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.monomials import Ints
from m2bridge.questions.closure.wire import Polynomial, polynomials_in
from m2bridge.questions.kernel import Asking

TEMPLATE = "closure_kernel"
UNION_TEMPLATE = "closure_union"
"""For a source with equations: one kernel for each of its components."""
HILBERT_DEGREES = 6
"""How far the Hilbert function is computed unless the caller knows better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Equations found inside Macaulay2, by degree, in coordinates `basis` (indices among all coordinates)."""

    basis: tuple[int, ...]
    polynomials: tuple[Polynomial, ...]
    codim: int | None = None
    degree: int | None = None
    hilbert_function: tuple[int, ...] | None = None
    seconds: float = 0.0

    @property
    def counts(self) -> dict[int, int]:
        return dict(sorted(Counter(sum(next(iter(f))) for f in self.polynomials).items()))


def best_source(model: Model) -> Model:
    """The parametrization that makes `ker` fastest: (A, V), in R/minors(a+1, A) when 1 < a < d; (Q, K, V) for a = 1."""
    if isinstance(model, Lightning):
        return replace(model, parametrization="weights" if model.a == 1 and model.d > 1 else "attention")
    return model


def kernel(
    asking: Asking,
    model: Model,
    *,
    p: int,
    hilbert_degrees: int = HILBERT_DEGREES,
    seconds: float | None = None,
) -> tuple[Kernel | None, str | None]:
    """The ideal of the closure as the kernel of the ring map, over F_p or (p = 0) QQ; None and the reason at a limit."""
    request = {"p": p, "hilbertDegrees": hilbert_degrees}
    values, limit = asking.ask(TEMPLATE, request, best_source(model), seconds=seconds)
    if "generators" not in values:
        return None, limit
    basis = values.integers("span")
    found = Kernel(
        basis=basis, polynomials=tuple(polynomials_in(values["generators"], len(basis), p, "generators", values)),
        codim=values.get("codim"), degree=values.get("degree"),
        hilbert_function=values.integers("hilbert_function") if "hilbert_function" in values else None,
        seconds=asking.last_seconds,
    )  # fmt: skip
    return found, limit


def graded_kernel(
    asking: Asking, image: Image, span: Span, grading: Ints, max_degree: int, *, p: int,
    seconds: float | None = None,
) -> tuple[Kernel | None, str | None]:  # fmt: skip
    """Generators up to a degree by Macaulay2's MultigradedImplicitization; None and the reason at a limit.

    Raises
    ------
    InputError
        The engine lacks the package (Macaulay2 before 1.24.11), or the image is no cone.
    """
    if image.homogenized:
        raise InputError(
            f"{image.model.spec}: the image is no cone; method graded-kernel needs one, use interpolation"
        )
    request = {
        "p": p,
        "chosen": list(span.basis),
        "grading": grading.tolist(),
        "maxDegree": max_degree,
    }
    values, limit = asking.ask("closure_graded", request, image.source, seconds=seconds)
    if values.get("available") is False:
        raise InputError(
            f"Macaulay2 {asking.engine.info.version} has no package MultigradedImplicitization (1.24.11 has it); "
            "use --method interpolation or kernel"
        )
    if "generators" not in values:
        return None, limit
    polynomials = tuple(polynomials_in(values["generators"], span.dim, p, "generators", values))
    return Kernel(basis=span.basis, polynomials=polynomials, seconds=asking.last_seconds), limit
