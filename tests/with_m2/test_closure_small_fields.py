"""Closures over fields with fewer elements than the degree of the map: no answer called complete has a wrong degree."""

from __future__ import annotations

import random
import re

import flint
import pytest

from m2bridge.engine import Engine
from m2bridge.questions.closure import closure

CURVES = 24


def random_polynomial(rng: random.Random, degree: int, p: int) -> dict[int, int]:
    """Exponent -> coefficient; p divides none of them, because a map with such a number is refused."""
    exponents = [e for e in range(1, degree) if e % p] or [0]
    terms = {rng.choice(exponents): rng.randint(1, 3) for _ in range(2)}
    return {**terms, degree + (degree % p == 0): rng.randrange(1, p)}


def text_of(terms: dict[int, int]) -> str:
    return "+".join(f"{c}*t^{e}" for e, c in sorted(terms.items()))


def degree_of_curve(f: dict[int, int], g: dict[int, int], p: int) -> int:
    """The degree of the closure of {(f(t), g(t))} over F_p.

    A line meets the curve in max(deg f, deg g) values of t. The degree of the map, separable or not, is the degree in T of the
    greatest common divisor of f(T) - f(t) and g(T) - g(t) over F_p(t).
    """
    ring = flint.nmod_mpoly_ctx.get(["T", "t"], p, "lex")

    def difference(terms: dict[int, int]) -> flint.nmod_mpoly:
        minus = {(0, e): -c % p for e, c in terms.items() if e}
        return ring.from_dict({**minus, **{(e, 0): c % p for e, c in terms.items() if e}})

    first, second = difference(f), difference(g)
    degree = max(first.degrees()[0], second.degrees()[0])
    return int(degree // first.gcd(second).degrees()[0])


@pytest.mark.parametrize("number", range(CURVES))
def test_a_random_curve_has_its_degree_or_is_not_complete(number: int, engine: Engine) -> None:
    rng = random.Random(number)
    p = rng.choice([5, 7, 11, 13, 31, 101])
    top = {5: 9, 7: 11, 11: 15, 13: 17, 31: 33, 101: 104}[p]  # above and below p
    f, g = random_polynomial(rng, rng.randint(1, 4), p), random_polynomial(rng, rng.randint(2, top), p)
    spec = f"map:t->{text_of(f)};{text_of(g)}"
    degree = degree_of_curve(f, g, p)
    for method in ("auto", "interpolation"):
        answer = closure(spec, field=p, method=method, engine=engine)
        assert answer.degree in ((degree,) if method == "auto" else (degree, None)), spec
        assert answer.completeness == "complete" or method == "interpolation", spec


@pytest.mark.parametrize("number", range(6))
def test_a_random_graph_has_the_degree_of_its_polynomial(number: int, engine: Engine) -> None:
    """The surface (s + a t, t, f(s, t)) is the graph of a polynomial of the degree of f."""
    rng = random.Random(number)
    p = rng.choice([3, 5, 7])
    first, second = rng.randrange(1, p), rng.choice([*range(1, p), p + 1])
    spec = f"map:s,t->s+{rng.randint(1, 2)}*t;t;s^{first}*t^{second}+s"
    answer = closure(spec, field=p, engine=engine)
    assert (answer.degree, answer.completeness) == (first + second, "complete"), spec


def test_an_upper_bound_is_no_degree(engine: Engine) -> None:
    """Five quadrics through the closure, which has degree 20, are a complete intersection of degree 32.

    F_997 is too small for random sections, so nothing counts the degree.
    """
    spec = "lightning(d=2,dp=2,a=2)"
    answer = closure(spec, field=997, max_degree=2, method="interpolation", engine=engine)
    assert (answer.degree, answer.completeness) == (None, "up-to-degree")
    assert any(re.search(r"\b32\b", sentence) for sentence in answer.not_shown)
