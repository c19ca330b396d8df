"""Verdicts, slices and predictions, without Macaulay2."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from m2bridge.certainty import Certainty
from m2bridge.families import Lightning, parse_spec
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.papers.lightning_attention.comments import hypotheses_37, one_layer_orbit, predicted_dims
from m2bridge.programs.program import degree_in
from m2bridge.questions.fiber import judged
from m2bridge.questions.fiber.coarser import coarsest
from m2bridge.questions.fiber.computed import ComputedFiber
from m2bridge.questions.fiber.model_symmetries import finite_symmetries, slice_of, symmetry_dim
from m2bridge.questions.fiber.ranks import Dimensions, generic_ranks, kernel_dim
from m2bridge.questions.fiber.request import equation_span, estimated_terms
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.point import random_point, stratum_point

VIRTUAL = parse_spec("deep-lightning(d=[2,2,2],t=3,parametrization=virtual)")
MLP = parse_spec("mlp(widths=[2,2,2],r=2)")


def component(dim: int, orbit: bool | None, orbit_dim: int | None = 2) -> FiberComponent:
    return FiberComponent(
        dim=dim,
        degree=5,
        reduced=True,
        multiplicity=1,
        absolute=True,
        conjugates=1,
        orbit=orbit,
        orbit_dim=orbit_dim,
        tangent_dim=dim,
        point=None,
        equations=None,
    )


def dims(generic: int = 2, orbit: int = 2, tangent: int | None = None) -> Dimensions:
    return Dimensions(
        image_dim=6,
        generic_fiber_dim=generic,
        generic_orbit_dim=2,
        probability=0.999,
        orbit_dim=orbit,
        tangent_upper=tangent,
        evidence=(),
    )


@pytest.mark.parametrize(
    ("components", "full", "orbits", "word"),
    [
        ([(2, True)], True, 1, "identifiable-up-to-symmetry"),
        ([(2, True)], False, None, "open-orbit"),  # smaller orbits in the closure of the orbit
        ([(2, True)], None, None, "open-orbit"),  # not asked
        ([(2, True), (2, False)], True, 2, "finite-up-to-symmetry"),
        ([(2, True), (2, False)], True, None, "finite-up-to-symmetry"),  # not counted over the closure
        ([(2, True), (2, True)], True, 2, "identifiable-up-to-symmetry"),  # permutations
        ([(3, False)], None, None, "not-identifiable"),
        ([(2, True), (3, False)], None, None, "not-identifiable"),
    ],
)
def test_verdicts_from_components(components, full, orbits, word):
    found = tuple(component(dim, orbit) for dim, orbit in components)
    outcome = ComputedFiber(
        method="plain",
        components=found,
        fiber_dim=max(c.dim for c in found),
        dim_at_point=2,
        orbits_full=full,
        orbits=orbits,
    )
    verdict = judged(MLP, outcome, None, dims())
    assert (verdict.word, verdict.orbits) == (word, orbits)


def test_dimensions_show_an_open_orbit_and_nothing_more():
    nothing = ComputedFiber(method="jacobian")
    assert (
        judged(MLP, nothing, None, dims()).word == "undecided"
    )  # generic dimensions are not those at the point
    assert judged(MLP, nothing, None, dims(tangent=3)).word == "undecided"
    shown = judged(MLP, nothing, None, dims(tangent=2))
    assert (shown.word, shown.certainty, shown.orbits) == ("open-orbit", Certainty.PROVED, None)
    large = judged(MLP, nothing, None, dims(generic=3))
    assert (large.word, large.certainty, large.probability) == ("not-identifiable", Certainty.PROBABLE, 0.999)


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=2,dp=1,parametrization=attention)",
        "deep-lightning(d=[2,2,2,2],t=2,parametrization=virtual)",
        "mlp(widths=[2,3,2],r=3)",
        "mlp(widths=[2,2,2,2],r=2)",
        "convolution(filters=[2,3,2],r=2)",
    ],
)
def test_moving_onto_a_slice_keeps_the_function(spec):
    """Exactly over QQ; the moved point satisfies every equation of the slice."""
    model = parse_spec(spec)
    point = random_point(model, 4)
    affine_slice = slice_of(model, 4)
    assert affine_slice is not None
    moved = affine_slice.move(point.vector)
    for form, value in affine_slice.forms:
        assert sum(c * x for c, x in zip(form, moved, strict=True)) == value
    X = np.arange(1, 1 + int(np.prod(model.input_shape))).reshape(model.input_shape).astype(object)
    assert (model.forward(model.unflatten(moved), X) == model.forward(dict(point.weights), X)).all()
    assert affine_slice.dim == symmetry_dim(point)


def test_families_without_known_scalings_are_not_cut():
    assert slice_of(parse_spec("linear(widths=[2,2,2])"), 0) is None


def test_permutations_of_neurons_keep_the_function():
    vector = random_point(MLP, 2).vector
    images = [element(vector) for element in finite_symmetries(MLP)]
    assert len(images) == 2
    X = np.array([3, 5], dtype=object)
    outputs = [MLP.forward(MLP.unflatten(vector), X).tolist() for vector in images]
    assert outputs[0] == outputs[1]
    assert images[0].tolist() != images[1].tolist()


def test_permutations_of_heads_keep_the_function():
    model = parse_spec("multi-head(d=2,dp=2,a=1,heads=2)")
    images = [element(random_point(model, 2).vector) for element in finite_symmetries(model)]
    X = np.array([[3, 5], [1, 2]], dtype=object)
    outputs = [model.forward(model.unflatten(vector), X).tolist() for vector in images]
    assert len(images) == 2
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("spec", "image", "symmetric"),
    [
        ("lightning(d=2,dp=1)", 5, 5),  # Equation 7: 5; 10 weights
        ("lightning(d=3,dp=1,a=2,parametrization=attention)", 10, 1),  # Equation 7: 2*2*3 + 3 - 4 - 1
        ("mlp(widths=[2,2,2],r=2)", 6, 2),
        ("map:s,t->s*t", 1, 0),
    ],
)
def test_image_rank_and_symmetries(spec, image, symmetric):
    assert generic_ranks(parse_spec(spec), 0, LARGE_PRIME) == (image, symmetric)


def test_the_tangent_space_respects_the_rank_bound():
    """rk A <= 1 < d: along the fiber of a generic (A, V) with d' = 2 only the scaling is left; without the bound as well."""
    model = Lightning(d=2, dp=2, a=1, parametrization="attention")
    point = random_point(model, 0)
    assert kernel_dim(model, point.mod(8388593), 8388593, np.random.default_rng(0)) == 1


def test_predictions_of_theorem_32():
    model = Lightning(d=3, dp=2, parametrization="attention")
    expected = {(1, 1, 0): [1, 1], (1, 1, 1): [1], (2, 1, 0): [1], (0, 0, 0): [9, 6]}
    for (r, s, c), dims in expected.items():
        orbit = one_layer_orbit(stratum_point(model, f"rank_a={r},rank_v={s},meet={c}").weights)
        assert predicted_dims(model, orbit) == dims
    finer = Lightning(d=3, dp=2, a=1)
    assert predicted_dims(finer, one_layer_orbit(random_point(finer, 0).weights)) == [2]


def test_hypotheses_of_theorem_37():
    held = hypotheses_37(VIRTUAL, stratum_point(VIRTUAL, "m1=skew").weights)
    assert held == {
        "t >= 3": True,
        "L != 0": True,
        "all rk M_i >= 2": True,
        "M_i not skew for i > 1": True,
        "M_1 not skew": False,
    }


def lemmas(spec: str) -> list[str]:
    step = coarsest(random_point(parse_spec(spec), 0))
    assert step is not None
    return step.lemmas


def test_which_equations_are_lifted():
    step = coarsest(random_point(parse_spec("deep-lightning(d=[2,2,2],t=2)"), 0))
    assert step is not None
    assert step.lemmas == ["Lemma 3.5", "Lemma 3.1"]
    assert step.added == 4 + 8  # Lemma 3.5: delta^2; Lemma 3.1: 2^2 + 2^2
    assert lemmas("deep-lightning(d=[2,3,2],t=2)") == []  # widening: no bottleneck
    assert lemmas("lightning(d=2,dp=1,a=3)") == []  # a > d
    assert lemmas(VIRTUAL.spec) == []
    assert coarsest(random_point(parse_spec("deep-lightning(d=[2,2,2],t=2,skip=true)"), 0)) is None


def test_terms_and_degrees():
    degrees = {name: degree_in(VIRTUAL.program, "weight", only=name) for name in VIRTUAL.parameters}
    assert degrees == {"M1": 3, "M2": 1, "L": 1}
    assert estimated_terms(VIRTUAL) == 20 * 4 * 4
    assert equation_span(parse_spec("lightning(d=2,dp=1,parametrization=attention)"), 32003, 0)[0] == 6
    assert (
        equation_span(parse_spec("map:s,t->s^2+1;s*t;2*s*t"), 32003, 0)[0] == 2
    )  # the constant is no equation


def test_fractions_stay_exact_on_a_slice():
    affine_slice = slice_of(VIRTUAL, 0)
    assert affine_slice is not None
    assert all(isinstance(x, Fraction) for x in affine_slice.move(random_point(VIRTUAL, 0).vector))
