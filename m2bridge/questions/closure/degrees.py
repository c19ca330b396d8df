"""The degree of a closure, counted without its equations."""

from __future__ import annotations

from math import comb

import numpy as np

from m2bridge.models.base import Model
from m2bridge.models.lightning import Lightning
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.kernel import Asking
from m2bridge.questions.source import moving_weights
from m2bridge.results import Certainty, Evidence, said


def determinantal_degree(d: int, a: int) -> int:
    """The degree of the variety of d x d matrices of rank at most a (Harris, *Algebraic Geometry*, Example 19.10).

    >>> determinantal_degree(3, 2), determinantal_degree(3, 1), determinantal_degree(4, 2)
    (3, 6, 20)
    """
    numerator = denominator = 1
    for i in range(d - min(a, d)):
        numerator *= comb(d + i, a)
        denominator *= comb(a + i, a)
    return numerator // denominator


def formula_degree(model: Model) -> Evidence | None:
    """The degree of one-layer lightning attention in closed form.

    The image is that of PD_a x P^(dd'-1), PD_a the projective variety of d x d matrices of rank <= a, under the map given by
    the bilinear products alpha_m nu_n. It has no base points (a product of non-zero linear forms is not zero), so it is
    finite and pulls O(1) back to O(1,1): degree of the map times degree of the image = (h + k)^n = C(n, dd'-1) deg D_a with
    n = dim PD_a + dd' - 1. The map is birational by unique factorization, but for a = d' = 1, d >= 2, where the two linear
    forms can be exchanged and it has degree 2. Holds for t >= 2, where the Segre coordinates determine the function.
    """
    if not isinstance(model, Lightning) or model.t < 2:
        return None
    d, dp, a = model.d, model.dp, min(model.a, model.d)
    n = a * (2 * d - a) - 1 + d * dp - 1
    total = determinantal_degree(d, a) * comb(n, d * dp - 1)
    value = total // 2 if a == 1 and dp == 1 and d >= 2 else total
    method = "intersection number of O(1,1) on PD_a x P^(dd'-1)"
    return said("degree", value, "formula", method, certainty=Certainty.PROVED)


def section_degree(
    asking: Asking, image: Image, span: Span, p: int, seed: int, seconds: float
) -> Evidence | None:
    """The degree as the number of points in a random linear section of the parametrization, over that of the map.

    None when Macaulay2 reached its limit, the random choice was special, or the weights satisfy constraints.
    """
    if image.constrained:
        return None
    rng = np.random.default_rng(seed + 1)
    weights, jacobian = _jacobian(image, rng, p)
    moving = moving_weights(jacobian.T, p)
    fixed = sorted(set(range(image.source.parameter_count)) - set(moving))
    forms = rng.integers(0, p, size=(len(moving), span.dim))
    request = {
        "p": p, "point": weights, "fixed": fixed, "chosen": list(span.basis), "forms": forms.tolist(),
        "homogenized": image.homogenized,
    }  # fmt: skip
    values, limit = asking.ask("closure_section", request, image.source, seconds=seconds)
    section, fiber = values.get("section"), values.get("fiber")
    if limit is not None or not section or not fiber or section % fiber:
        return None
    return said(
        "degree", section // fiber, "parametrization",
        "points of a random linear section of the parametrization, over the degree of the map",
        prime=p, seconds=asking.last_seconds, detail={"section": section, "fiber": fiber},
    )  # fmt: skip


def _jacobian(image: Image, rng: np.random.Generator, p: int) -> tuple[list[int], np.ndarray]:
    """A random point of the parameter space, flattened, and the Jacobian there (one row a weight)."""
    weights = {name: w[0] for name, w in image.draw(rng, 1, p).items()}
    rows = image.tangents_at(weights, p)[1]
    flat = [int(x) for w in weights.values() for x in w.reshape(-1)]
    return flat, rows[: image.source.parameter_count]
