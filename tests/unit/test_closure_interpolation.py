"""Interpolation without Macaulay2: the answer does not depend on seed, prime, symmetry or coordinates; limits hold."""

from __future__ import annotations

import time

import numpy as np
import pytest

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.families import parse_spec
from m2bridge.families.polynomial_map import from_text
from m2bridge.limits import Clock
from m2bridge.questions.closure import interpolate
from m2bridge.questions.closure.image import coordinate_permutations, image_of, torus_weights
from m2bridge.questions.closure.interpolation import evaluate
from m2bridge.questions.closure.stages import LimitStop, TooFewPoints


def test_equations_vanish_at_fresh_points() -> None:
    model = parse_spec("lightning(d=3,dp=1,a=2)")
    interpolation = interpolate(model, 4)
    points = image_of(model).points(np.random.default_rng(77), 10, 32003)[:, list(interpolation.span.basis)]
    assert all(
        not evaluate(f, points, 32003).any() for group in interpolation.generators.values() for f in group
    )


@pytest.mark.parametrize("options", [{"symmetric": False}, {"seed": 5}, {"prime": 8388593}])
def test_the_answer_does_not_depend_on_the_way(options: dict[str, int]) -> None:
    model = parse_spec("lightning(d=2,dp=2,a=2)")
    reference, other = interpolate(model, 4), interpolate(model, 4, **options)  # type: ignore[arg-type]
    assert other.counts == reference.counts == {2: 5, 4: 10}
    assert other.hilbert_function == reference.hilbert_function


def test_full_coordinates_split_off_their_linear_forms() -> None:
    """All 40 coefficients of (2,1,2) at t=2: 34 linear forms and the quartic of the Segre coordinates."""
    interpolation = interpolate(parse_spec("lightning(d=2,dp=1,a=2,coordinates=full)"), 4)
    assert (interpolation.span.ambient, interpolation.span.dim, len(interpolation.span.linear_forms)) == (
        40,
        6,
        34,
    )
    assert interpolation.counts == {4: 1}


def test_the_maximal_torus_is_found_without_a_declaration() -> None:
    """GL_d x GL_d x GL_d' acts on the Segre coordinates; two scalings of its maximal torus act trivially or alike."""
    model = parse_spec("lightning(d=3,dp=2,a=2,coordinates=full)")
    image = image_of(model)
    rng = np.random.default_rng(0)
    span = image.span(rng, 32003)
    grading = torus_weights(image, span, rng)
    assert np.linalg.matrix_rank(grading) == 3 + 3 + 2 - 2


def test_permutations_preserve_the_image() -> None:
    model = parse_spec("lightning(d=2,dp=2,a=2)")
    image = image_of(model)
    rng = np.random.default_rng(0)
    span = image.span(rng, 32003)
    found = coordinate_permutations(image, span, torus_weights(image, span, rng), rng)
    quadrics = interpolate(model, 2, symmetric=False).generators[2]
    points = image.points(rng, 5, 32003)[:, list(span.basis)]
    assert found
    for s in found:
        assert all(not evaluate(f, points[:, s], 32003).any() for f in quadrics)


def test_a_map_that_is_no_cone_is_made_one() -> None:
    interpolation = interpolate(from_text("cusp", ["t"], ["t^2", "t^3"]), 3)
    assert interpolation.counts == {3: 1}
    assert set(interpolation.generators[3][0]) == {(3, 0, 0), (0, 2, 1)}  # z0^3 - z1^2 * 1


def test_a_limit_inside_a_degree_returns_the_degrees_before() -> None:
    started = time.monotonic()
    interpolation = interpolate(parse_spec("lightning(d=3,dp=3,a=2)"), 6, clock=Clock(seconds=0.7))
    assert time.monotonic() - started < 5
    assert isinstance(interpolation.stop, LimitStop)
    assert "0.7 s" in interpolation.stop.reason
    assert interpolation.degree_reached < 6
    assert max(interpolation.generators, default=1) <= interpolation.degree_reached


def test_a_memory_limit_is_kept() -> None:
    interpolation = interpolate(parse_spec("lightning(d=3,dp=2,a=2)"), 4, clock=Clock(memory_bytes=2_000_000))
    assert isinstance(interpolation.stop, LimitStop)
    assert "MB" in interpolation.stop.reason
    assert "--memory" in interpolation.stop.reason


def test_degrees_that_points_do_not_determine_are_not_done() -> None:
    """Over F_3 the polynomials x^3 - x vanish at every point: cubics are not interpolated there."""
    model = parse_spec("lightning(d=2,dp=2,a=2)")
    small, large = interpolate(model, 4, prime=3), interpolate(model, 4)
    assert (small.degree_reached, small.stop) == (2, TooFewPoints(3))
    assert (large.degree_reached, large.stop) == (4, None)
    assert small.hilbert_function == large.hilbert_function[:3]


@pytest.mark.parametrize(
    ("spec", "degree", "p"),
    [
        ("map:s,t->s^2;s*t;t^2;s+t", 2, 7),
        ("map:t->t;t^2;t^3", 3, 11),
        ("map:s,t->s;t;s^2*t", 3, 11),
        ("mlp(widths=[2,2,1],r=2)", 2, 11),
        ("lightning(d=2,dp=1)", 4, 5),
    ],
)
def test_points_of_a_small_field_give_the_ranks_of_a_large_one(spec: str, degree: int, p: int) -> None:
    """More points than unknowns are needed there: many of them coincide or give no new condition."""
    small, large = (interpolate(parse_spec(spec), degree, prime=q, seed=3) for q in (p, 32003))
    assert small.degree_reached == degree
    assert small.hilbert_function == large.hilbert_function


def test_refusals() -> None:
    with pytest.raises(InputError):
        interpolate(parse_spec("lightning(d=2,dp=1)"), 2, prime=32004)
    with pytest.raises(NotPolynomialError):
        interpolate(parse_spec("softmax(d=[2,2])"), 2)
