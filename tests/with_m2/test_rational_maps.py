"""Closures of rational maps. The truth is a classical equation, written beside each."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.families import from_callable
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.questions.closure import closure
from m2bridge.questions.fiber import fiber
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.questions.singular_point import singular_point

# dimension, degree, generators by degree, and the equation where it is one
KNOWN = [
    ("map:x,y,z->x/y;y/z;z/x", 2, 3, {3: 1}, "z0*z1*z2 - 1"),
    ("map:t->(1-t^2)/(1+t^2);2*t/(1+t^2)", 1, 2, {2: 1}, "z0^2 + z1^2 - 1"),
    ("map:x,y->x/y;y/x", 1, 2, {2: 1}, "z0*z1 - 1"),
    ("map:a,b,c->a/c;b/c;a*b/c^2", 2, 2, {2: 1}, "z0*z1 - z2"),
    ("map:x,y->x^2/y;x;y", 2, 2, {2: 1}, "z0*z2 - z1^2"),  # a cone
    # the folium of Descartes, x^3 + y^3 = 3 x y
    ("map:t->3*t/(1+t^3);3*t^2/(1+t^3)", 1, 3, {3: 1}, "z0^3 + z1^3 - 3*z0*z1"),
    # the lemniscate of Bernoulli, (x^2 + y^2)^2 = x^2 - y^2
    ("map:t->(t+t^3)/(1+t^4);(t-t^3)/(1+t^4)", 1, 4, {4: 1}, "z0^4 + 2*z0^2*z1^2 + z1^4 - z0^2 + z1^2"),
    # the unit sphere by stereographic projection
    ("map:s,t->2*s/(1+s^2+t^2);2*t/(1+s^2+t^2);(s^2+t^2-1)/(1+s^2+t^2)", 2, 2, {2: 1}, "z0^2 + z1^2 + z2^2 - 1"),
    # the cissoid of Diocles, y^2 (1 - x) = x^3
    ("map:t->t^2/(1+t^2);t^3/(1+t^2)", 1, 3, {3: 1}, "z0^3 + z0*z1^2 - z1^2"),
    # Cremona: 1/x, 1/y, 1/z is dominant
    ("map:x,y,z->1/x;1/y;1/z", 3, 1, {}, None),
    # reciprocals of points of the plane x + y + z = 0: z1 z2 + z0 z2 + z0 z1 = 0
    ("map:x,y->1/x;1/y;1/(-x-y)", 2, 2, {2: 1}, "z0*z1 + z0*z2 + z1*z2"),
    # a rational normal curve of degree 3 with a pole: 2 by 2 minors of a scroll
    ("map:t->1/t;t;t^2", 1, 3, {2: 3}, None),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "dim", "degree", "counts", "equation"), KNOWN)
def test_known_closures(
    engine: Engine, spec: str, dim: int, degree: int, counts: dict[int, int], equation: str | None
) -> None:
    answer = closure(spec, field="QQ", engine=engine)
    assert (answer.image_dim, answer.degree, dict(answer.generator_counts)) == (dim, degree, counts)
    # no certificate shows a degree; that of the whole space, 1, has no second definition
    agreement = True if counts else None
    assert (answer.completeness, answer.agreement, answer.certainty) == (
        "complete",
        agreement,
        Certainty.COMPUTED,
    )
    if equation is not None:
        (own,) = answer.known_equations
        names = [f"z{i}" for i in range(answer.coordinate_count)]
        assert parse_polynomial(own.text(), names) == parse_polynomial(equation, names)


@pytest.mark.parametrize("spec", ["map:x,y,z->x/y;y/z;z/x", "map:x,y->x^2/y;x;y", "map:t->1/t;t;t^2"])
def test_the_kernel_and_interpolation_agree(engine: Engine, spec: str) -> None:
    first, second = (closure(spec, method=method, engine=engine) for method in ("kernel", "interpolation"))
    assert first.generator_counts == second.generator_counts
    assert (first.agreement, second.agreement, first.degree) == (True, True, second.degree)


def test_a_cone_that_is_not_homogeneous_in_its_variables(engine: Engine) -> None:
    """s (1, t, t^2): the quadric cone, by monomials of different degrees."""
    answer = closure("map:s,t->s;s*t;s*t^2", method="kernel", engine=engine)
    assert (dict(answer.generator_counts), answer.homogenized, answer.agreement) == ({2: 1}, False, True)


FOLIUM, CISSOID = "map:t->3*t/(1+t^3);3*t^2/(1+t^3)", "map:t->t^2/(1+t^2);t^3/(1+t^2)"


@pytest.mark.parametrize("spec", [FOLIUM, CISSOID])  # a node and a cusp at the origin
def test_singular_loci(engine: Engine, spec: str) -> None:
    answer = singular_locus(spec, engine=engine)
    assert [(c.dim, c.degree, set(c.equations or ())) for c in answer.components or ()] == [
        (0, 1, {"z0", "z1"})
    ]
    assert answer.agreement is not False


def test_singular_points(engine: Engine) -> None:
    for spec, t, verdict in ((FOLIUM, 0, "singular"), (FOLIUM, 1, "smooth"), (CISSOID, 0, "singular")):
        assert singular_point(spec, at={"t": t}, engine=engine).verdict == verdict
    with pytest.raises(InputError, match="denominator"):
        singular_point(FOLIUM, at={"t": -1}, engine=engine)


def test_the_dimension_of_a_fiber(engine: Engine) -> None:
    """x/y, y/z, z/x are constant on lines through the origin, and on nothing more."""
    answer = fiber("map:x,y,z->x/y;y/z;z/x", engine=engine)
    assert (answer.generic_fiber_dim, answer.dim_at_point, answer.image_dim) == (1, 1, 2)


def test_a_python_function_that_divides(engine: Engine) -> None:
    model = from_callable(lambda w: np.stack([w[0] / w[1], w[1] / w[0]]), {"w": (2,)})
    assert [f.text() for f in closure(model, engine=engine).known_equations] == ["z0*z1 - 1"]
