"""The Hilbert series of the Zariski closure of the image: how many functions of each degree there are on it.

The coefficient of T^s counts the polynomials of degree at most s on the closure modulo those of degree less than s. For a cone
this is the Hilbert series of the homogeneous coordinate ring. Two witnesses: Macaulay2's kernel of the map of rings, and the
ranks of all monomials of low degree at random points of the image, which the network's own program computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import InputError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, MACAULAY2_PRIME, given_numbers, prime_for
from m2bridge.models import Model
from m2bridge.models.evaluation import random_image_points
from m2bridge.questions.closure import Equation
from m2bridge.questions.closure.interpolation import monomial_values, monomials_of_degree
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.results import Certainty, Result
from m2bridge.views import View

TEMPLATE = "hilbert_series"
LEAST_PRIME = 1009  # over smaller fields, monomials that differ agree at too many points
_SPARE_POINTS = 5
_TO_PROVE = "equations that are complete over QQ (m2bridge closure --field QQ) determine the series"


@dataclass(frozen=True, slots=True, kw_only=True)
class HilbertSeries(Result):
    """numerator(T) / (1 - T)^closure_dim, None when a limit came first, and its coefficients where points were evaluated."""

    ANALYSIS: ClassVar[str] = "hilbert-series"
    VERSION: ClassVar[int] = 1

    numerator: tuple[int, ...] | None
    closure_dim: int | None
    hilbert_function: tuple[int, ...]

    @property
    def series(self) -> str | None:
        """The series as a fraction, e.g. ``(1 + 2*T)/(1 - T)^2``."""
        if self.numerator is None or self.closure_dim is None:
            return None
        top = polynomial_text(self.numerator)
        top = f"({top})" if self.closure_dim and " " in top else top
        return top + {0: "", 1: "/(1 - T)"}.get(self.closure_dim, f"/(1 - T)^{self.closure_dim}")

    def view(self) -> View:
        begins = f"{polynomial_text(self.hilbert_function)} + ..."
        if self.series is None:
            return View(answer=f"the Hilbert series begins {begins}", to_prove=_TO_PROVE)
        facts = (("begins", begins),)
        return View(answer=f"the Hilbert series is {self.series}", facts=facts, to_prove=_TO_PROVE)


@question(
    asks="The Hilbert series of the Zariski closure of the image: how many functions of each degree it has.",
    templates=(TEMPLATE,),
    quantities={"hilbert_function": "the first coefficients of the Hilbert series"},
    primes=(LEAST_PRIME, LARGE_PRIME),
    example="m2bridge hilbert-series 'lightning(d=2,dp=1)'",
)
def hilbert_series(
    ask: Asking,
    model: Model,
    *,
    max_degree: Annotated[int, Option("Largest degree of monomials at points.", least=1)] = 4,
    max_monomials: Annotated[int, Option("Largest number of monomials at points.", least=1)] = 1000,
) -> HilbertSeries:
    """The Hilbert series of the Zariski closure of the image of a polynomial model.

    Examples
    --------
    >>> hilbert_series("linear(widths=[3,1,3])").series  # doctest: +SKIP
    '(1 + 4*T + T^2)/(1 - T)^5'
    """
    if model.constraints:
        raise InputError(
            f"{model}: its variables satisfy equations, and random points see only a part of such a source; "
            "give a parametrization of it instead"
        )
    p = prime_for(given_numbers(model), chosen=ask.prime, default=MACAULAY2_PRIME)
    ask.require_engine()
    ask.announce("points")
    source = model.free
    count = source.coordinate_count
    top = max([1, *(s for s in range(2, max_degree + 1) if comb(count + s, s) <= max_monomials)])
    rng = np.random.default_rng(ask.seed)
    points = random_image_points(source, rng, comb(count + top, top) + _SPARE_POINTS, p)
    counted = hilbert_function_at(points, top, p)
    ask.say("hilbert_function", list(counted), "modular", "ranks of monomials at random points", prime=p)
    values, limit = ask.ask(TEMPLATE, {"p": p}, source)
    dim, numerator = values.get("closure_dim"), values.get("numerator")
    if numerator is not None:
        series = expanded(numerator, dim, top)
        ask.say("hilbert_function", list(series), "macaulay2", "leading monomials of the kernel", prime=p)
    return ask.answer(
        HilbertSeries,
        model=model.spec,
        options={"prime": p, "max_degree": max_degree, "max_monomials": max_monomials},
        certainty=Certainty.PROBABLE,
        limit=limit,
        numerator=None if numerator is None else tuple(numerator),
        closure_dim=dim,
        hilbert_function=counted,
    )


def hilbert_function_at(points: NDArray[np.int64], top: int, p: int) -> tuple[int, ...]:
    """How much each degree up to `top` adds to the rank of the monomials at points (rows) over F_p.

    >>> hilbert_function_at(np.array([[s**2, s**3] for s in range(9)]), 3, 10007)  # y^2 = x^3
    (1, 2, 3, 3)
    """
    table, ranks = np.zeros((len(points), 0), dtype=np.int64), [0]
    for degree in range(top + 1):
        monomials = monomials_of_degree(points.shape[1], degree)
        table = np.concatenate([table, monomial_values(points % p, monomials, p)], axis=1)
        ranks.append(rank_mod(table, p))
    return tuple(np.diff(ranks).tolist())


def expanded(numerator: Sequence[int], dim: int, top: int) -> tuple[int, ...]:
    """The coefficients of T^0, ..., T^top of numerator(T) / (1 - T)^dim.

    >>> expanded([1, 2], 2, 4)
    (1, 4, 7, 10, 13)
    """
    series = [*numerator, *[0] * top][: top + 1]
    for _ in range(dim):
        series = list(accumulate(series))
    return tuple(series)


def polynomial_text(coefficients: Sequence[int]) -> str:
    """A polynomial in T, lowest degree first.

    >>> polynomial_text([1, 0, 2, -1])
    '1 + 2*T^2 - T^3'
    """
    terms = {(0,) * k: c for k, c in enumerate(coefficients) if c}
    return Equation(degree=0, coefficients=tuple(terms.values()), monomials=tuple(terms)).text(name="T")
