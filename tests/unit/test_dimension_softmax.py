"""The dimension of softmax attention by its virtual weights: both counts, and the rank of the program, are equal."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge.bounds import virtual_weights as by_virtual_weights
from m2bridge.bounds.virtual_weights import virtual_dim_lower, virtual_dim_upper
from m2bridge.families import DeepLightning
from m2bridge.families.virtual import virtual_dim
from m2bridge.questions.dimension import dimension

P = 8388593


def random_sizes(seed: int, count: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        layers = int(rng.integers(1, 5))
        d, a = rng.integers(1, 6, layers + 1).tolist(), rng.integers(1, 5, layers).tolist()
        found.append((tuple(d), tuple(a)))
    return found


@pytest.mark.parametrize(("d", "a"), random_sizes(1, 40), ids=str)
def test_rank_at_the_special_point_and_count_meet_in_the_generic_rank(
    d: tuple[int, ...], a: tuple[int, ...]
) -> None:
    """The third number is the rank of (Q, K, V) -> (M, L) at a random point, by the recorded program of Equation 8."""
    low, high = virtual_dim_lower(d, a, p=P, seed=3), virtual_dim_upper(d, a)
    assert low == high == virtual_dim(DeepLightning(d=d, a=a, t=2, parametrization="virtual"))


def test_equation_16() -> None:
    """Henry, Marchetti, Kohn, Equation 16, by hand for d = (4, 3, 3, 5), a = (2, 3, 2): 12 + 3*9 - 9 + 9 + 8 = 47."""
    assert virtual_dim_upper((4, 3, 3, 5), (2, 3, 2)) == 2 * 2 * 4 - 4 + 3 * (5 + 4) - 9 + (2 * 3 * 3 - 9) + (
        2 * 2 * 3 - 4
    )


def test_a_model_too_large_for_a_rank_uses_the_theorem() -> None:
    """Equation 16: 4 layers of 2*8*64 - 8^2 and L with 64^2 entries."""
    value = 4 * (2 * 8 * 64 - 64) + 64 * 64
    answer = dimension("softmax(d=[64,64,64,64,64],a=[8,8,8,8],t=8)", engine=False)
    assert (answer.image_dim, answer.lower_bound, answer.upper_bound) == (value, value, value)
    assert answer.certainty == "theorem"
    assert answer.certificate is None
    assert "theorem" in answer.statement
    assert "certificate" in answer.statement


def test_a_wide_layer_is_proved_with_a_certificate() -> None:
    """M_1, M_2 of rank 3, and L with 20^2 entries; a layer has more rows than tokens can span."""
    answer = dimension("softmax(d=[20,24,20],a=[3,3],t=3)", engine=False)
    assert (answer.image_dim, answer.certainty) == (2 * (2 * 3 * 20 - 9) + 20 * 20, "proved")
    assert answer.certificate is not None


@pytest.mark.parametrize(
    "spec",
    [
        "softmax(d=[3,3,3],a=[2,2],t=3)",
        "softmax(d=[4,3,5],a=[2,3],t=2)",
        "softmax(d=[3,3,3,3],a=[2,2,2],t=3)",
        "softmax(d=[1,3,1],a=[1,1],t=2)",
        "softmax(d=[2,3,2],a=[2,2],t=2)",
    ],
)
def test_the_rank_and_virtual_weights_agree(spec: str) -> None:
    answer = dimension(spec, engine=False)
    said = {e.witness: e for e in answer.evidence if e.quantity == "image_dim"}
    assert said["modular"].value == said["virtual weights"].value == said["flags"].value == answer.image_dim
    assert {said[name].stands_on for name in ("modular", "virtual weights", "flags")} == {
        "program",
        "construction",
        "formula",
    }
    assert answer.certificate is not None


def test_the_theorem_does_not_apply_to_one_token() -> None:
    answer = dimension("softmax(d=[2,2,2],a=[2,2],t=1)", engine=False)
    assert not {"virtual weights", "flags"} & {e.witness for e in answer.evidence}
    assert answer.image_dim == 4  # the network is L x
    assert "Conjecture 3.10" not in answer.statement


def test_a_wrong_count_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_virtual_weights, "virtual_dim_upper", lambda d, a: virtual_dim_upper(d, a) - 1)
    assert dimension("softmax(d=[3,3,3],a=[2,2],t=3)", engine=False).agreement is False
