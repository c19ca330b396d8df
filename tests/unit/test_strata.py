"""What a provider of exhaustive strata promises, for attention and linear networks: orbits, points, fibers, closure order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from m2bridge.families import parse_spec
from m2bridge.families.strata import Strata, strata_of
from m2bridge.linear.modular import rank_over_q
from m2bridge.questions import over_q
from m2bridge.questions.singular_locus.tangents import first_order_images

SPECS = [
    "lightning(d=2,dp=1)", "lightning(d=2,dp=2,a=1)", "lightning(d=3,dp=2,a=2)", "lightning(d=3,dp=1,a=3)",
    "linear(widths=[3,2,3])", "linear(widths=[4,2,3,3])", "linear(widths=[2,3])", "linear(widths=[3,4,2])",
]  # fmt: skip


@pytest.fixture(params=SPECS)
def strata(request: pytest.FixtureRequest) -> Strata:
    return strata_of(parse_spec(request.param), seed=0)


def exact(weights: Any) -> dict[str, Any]:
    return {name: np.asarray(w, dtype=object) for name, w in weights.items()}


def image(strata: Strata, stratum: Any) -> list[int]:
    """Return the image of the representative in the coordinates of the model."""
    return [int(c) for c in strata.model.coordinates(exact(strata.representative(stratum)))]


def image_dim(strata: Strata, stratum: Any) -> int:
    """Return the dimension of the stratum's image: the rank of the derivatives in the directions of the stratum."""
    weights = exact(strata.fiber(stratum)[0])
    return over_q.rank_of_product(strata.directions(stratum), first_order_images(strata.model.free, weights))


def test_all_weights_of_a_fiber_have_the_image_of_the_representative(strata: Strata) -> None:
    for stratum in strata.strata():
        for weights in strata.fiber(stratum):
            point = strata.model.free.coordinates(exact(weights))
            assert [int(c) for c in point] == image(strata, stratum)


def test_the_representative_has_the_ranks_of_its_stratum(strata: Strata) -> None:
    for stratum in strata.strata():
        weights, ranks = strata.representative(stratum), strata.ranks(stratum)
        if "product" in ranks:
            matrices = [weights[f"W{i}"] for i in range(1, len(weights) + 1)]
            product = matrices[0]
            for matrix in matrices[1:]:
                product = matrix @ product
            assert rank_over_q(product) == ranks["product"]
            continue
        A, V = weights["A"], weights["V"]
        assert [rank_over_q(A), rank_over_q(V)] == [ranks["A"], ranks["V"]]
        assert ranks["A"] + ranks["V"] - rank_over_q(np.hstack([A, V.T])) == ranks["meet"]


def test_no_two_strata_are_the_same_and_the_last_one_is_dense(strata: Strata) -> None:
    listed = list(strata.strata())
    assert (
        len({str(s) for s in listed}) == len({tuple(strata.ranks(s).items()) for s in listed}) == len(listed)
    )
    dims = [image_dim(strata, s) for s in listed]
    assert dims[0] == 0
    assert max(dims[:-1], default=0) < dims[-1]
    assert all(strata.contains(listed[-1], s) for s in listed)


def test_closures_contain_strata_of_smaller_dimension_only(strata: Strata) -> None:
    """The order is one: reflexive, transitive, and a stratum in the closure of another is smaller."""
    listed = list(strata.strata())
    for larger in listed:
        assert strata.contains(larger, larger)
        for smaller in listed:
            if smaller is not larger and strata.contains(larger, smaller):
                assert image_dim(strata, smaller) < image_dim(strata, larger)
                assert all(strata.contains(larger, s) for s in listed if strata.contains(smaller, s))


def test_a_parametrization_has_the_dimension_and_the_points_of_its_stratum(strata: Strata) -> None:
    rng = np.random.default_rng(0)
    for stratum in strata.strata():
        source = strata.parametrization(stratum)
        assert (source is None) == (image_dim(strata, stratum) == 0)
        if source is not None:
            flat = rng.integers(-50, 50, size=source.parameter_count).astype(object)
            rank = over_q.rank(first_order_images(source, source.unflatten(flat)))
            assert rank == image_dim(strata, stratum)
            assert source.coordinate_count == strata.model.coordinate_count


@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith("linear")])
def test_matrices_of_rank_k_have_the_dimension_of_their_orbit(spec: str) -> None:
    strata = strata_of(parse_spec(spec), seed=0)
    n, m = strata.model.widths[0], strata.model.widths[-1]  # type: ignore[attr-defined]
    for k, stratum in enumerate(strata.strata()):
        assert image_dim(strata, stratum) == k * (m + n - k)  # Harris, Proposition 12.2


def test_orbits_of_a_layer_are_all_ranks_that_occur() -> None:
    """(rk A, rk V, meet) of random pairs of 0/1 matrices are those of a stratum, and every stratum occurs."""
    strata = strata_of(parse_spec("lightning(d=2,dp=2)"), seed=0)
    every = {tuple(strata.ranks(s).values()) for s in strata.strata()}
    entries = np.array(np.meshgrid(*[[0, 1]] * 8)).reshape(8, -1).T
    occurring = set()
    for row in entries:
        A, V = row[:4].reshape(2, 2), row[4:].reshape(2, 2)
        r, s = rank_over_q(A), rank_over_q(V)
        occurring.add((r, s, r + s - rank_over_q(np.hstack([A, V.T]))) if r * s else (0, 0, 0))
    assert every == occurring
