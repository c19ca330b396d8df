"""Which equations may define the source of a map."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from flint import fmpz_mpoly_ctx

from m2bridge.errors import InputError
from m2bridge.models.polynomials import Coefficient, Exponents, polynomial_text

_MOST_FACTORED_TERMS = 500
_MOST_FACTORED_DEGREE = 40


Terms = Sequence[tuple[Exponents, Coefficient]]


def factorable(terms: Terms) -> bool:
    """Whether a polynomial is small enough to be factored without asking."""
    return len(terms) <= _MOST_FACTORED_TERMS and max(sum(e) for e, _ in terms) <= _MOST_FACTORED_DEGREE


def expected_codimension(constraints: Sequence[Terms]) -> bool:
    """Whether so many constraints certainly cut out a source of that codimension, once :func:`refuse_products` let them pass.

    One does; two do that are irreducible and not proportional; more might meet in a component that is larger.
    """
    return len(constraints) <= 1 or (len(constraints) == 2 and all(map(factorable, constraints)))


def refuse_products(constraints: Sequence[Terms], variables: Sequence[str]) -> None:
    """Refuse a constraint that is constant or a product: its zeros are several sources, or one counted twice.

    One that is not :func:`factorable` passes unseen.

    Raises
    ------
    InputError
        With the factors, from which the user can choose.
    """
    for number, terms in enumerate(constraints, start=1):
        if not any(any(exponents) for exponents, _ in terms):
            raise InputError(f"constraint {number} is constant: it says nothing, or has no solution")
        if not factorable(terms):
            continue
        common = lcm(*(c.denominator for _, c in terms))
        context = fmpz_mpoly_ctx.get([f"x{i}" for i in range(len(variables))], "degrevlex")
        _, factors = context.from_dict({e: int(c * common) for e, c in terms}).factor()
        if len(factors) > 1 or factors[0][1] > 1:
            shown = " * ".join(
                f"({polynomial_text({tuple(map(int, e)): Fraction(int(c)) for e, c in f.to_dict().items()}, variables)})"
                + (f"^{power}" if power > 1 else "")
                for f, power in factors
            )
            raise InputError(
                f"constraint {number} is a product, {shown}: write the factor that vanishes on the source you mean"
            )
