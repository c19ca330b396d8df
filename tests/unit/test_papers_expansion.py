"""The proof of Conjecture 3.10, its expansion verified exactly over QQ: orders, coefficients, and what enters when."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge.families import Attention, Softmax
from m2bridge.families.virtual import virtual_weights
from m2bridge.papers import expansion
from m2bridge.papers.expansion import (
    KERNELS,
    NotDeterminedError,
    drawn_inputs,
    first_term,
    germ,
    leading_deviations,
    order_of,
    recovered,
    slope,
    virtual_germ,
)

SKEW = np.array([[0, 1], [-1, 0]], dtype=object)


def integers(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(-3, 4, shape).astype(object)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_normalised_with_a_slope(kernel: str) -> None:
    series = KERNELS[kernel](6)
    assert series[0] == 1
    assert slope(kernel) != 0
    known = {  # Taylor series by hand
        "exp(x)": [1, 1, Fraction(1, 2), Fraction(1, 6)],
        "exp(-x/3)": [1, Fraction(-1, 3), Fraction(1, 18), Fraction(-1, 162)],
        "1/(1-x)": [1, 1, 1, 1],
        "sqrt(1+4x)": [1, 2, -2, 4],
    }
    assert series[:4] == known[kernel]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("d", "dl", "t", "layers"), [(1, 1, 2, 2), (2, 1, 2, 3), (3, 2, 2, 2), (2, 2, 3, 3), (2, 3, 4, 2)]
)
def test_m_i_enters_at_its_order_with_its_coefficient_and_not_before(
    kernel: str, d: int, dl: int, t: int, layers: int
) -> None:
    """Two networks that differ in M_i, ..., M_l: the first difference is at order 3, 7, 19 and is (k/t) L C (M_i - M_i')^T x."""
    rng = np.random.default_rng([d, dl, t, layers, 12])
    L = integers(rng, dl, d)
    for i in range(1, layers + 1):
        M = [integers(rng, d, d) for _ in range(layers)]
        other = M[: i - 1] + [integers(rng, d, d) for _ in range(layers - i + 1)]
        x, U = integers(rng, d), drawn_inputs(rng, d, t)
        order = order_of(i)
        assert order == (3, 7, 19)[i - 1]
        plain, changed = (virtual_germ(m, L, t, kernel)(x, U, order) for m in (M, other))
        assert np.array_equal(plain[:, :order], changed[:, :order])
        expected = first_term(M[: i - 1], L, U, slope(kernel)) @ ((M[i - 1] - other[i - 1]).T @ x)
        assert expected.any()
        assert np.array_equal(plain[:, order] - changed[:, order], expected)
        assert list(plain[:, 1]) == list(L @ x)


@pytest.mark.parametrize("t", [2, 3])
def test_on_a_line_the_deviations_are_a_product_of_quadratic_forms(t: int) -> None:
    """U = u c^T: U_i is (k/t)^((3^i-1)/2) (c.c)^((3^i-1)/2) times the product of (u^T M_j u)^(3^(i-j)) times u c^T."""
    rng = np.random.default_rng(t)
    u, c, k = integers(rng, 3), drawn_inputs(rng, 1, t)[0], Fraction(2, 3)
    M = [integers(rng, 3, 3) for _ in range(3)]
    for i in range(4):
        factor = (k / t * (c @ c)) ** ((3**i - 1) // 2)
        for j in range(1, i + 1):
            factor *= (u @ M[j - 1] @ u) ** 3 ** (i - j)
        assert np.array_equal(leading_deviations(M[:i], np.outer(u, c), k), factor * np.outer(u, c))


def composed(d: list[int], t: int, seed: int) -> tuple[Attention, dict[str, Any], list[Any], Any]:
    rng = np.random.default_rng(seed)
    model = Softmax(d=tuple(d), a=tuple(d[:-1]), t=t, parametrization="attention")
    weights = {name: integers(rng, *shape) for name, shape in model.parameters.items()}
    places = range(1, len(d))
    M, L = virtual_weights([weights[f"A{i}"] for i in places], [weights[f"V{i}"] for i in places])
    return model, weights, M, L


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("d", "t"), [([3, 2], 2), ([2, 2, 2], 2), ([3, 2, 3], 3), ([2, 2, 2, 2], 2), ([1, 3, 2, 1], 2)]
)
def test_virtual_weights_are_recovered_from_the_function(kernel: str, d: list[int], t: int) -> None:
    model, weights, M, L = composed(d, t, 2)
    assert L.any()
    found, last = recovered(germ(model, weights, kernel), d=d[0], t=t, layers=len(M), kernel=kernel)
    assert np.array_equal(last, L)
    assert all(np.array_equal(a, b) for a, b in zip(found, M, strict=True))


def test_a_function_of_another_kernel_is_not_explained() -> None:
    model, weights, M, _ = composed([2, 2, 2], 2, 2)
    with pytest.raises(NotDeterminedError):
        recovered(germ(model, weights, "1/(1-x)"), d=2, t=2, layers=len(M), kernel="exp(x)")


def test_two_tokens_and_a_skew_m_1_hide_m_2() -> None:
    """Both tokens become x + tanh(x^T M_1 u) u, for inputs x + u and x - u: the second layer averages equal tokens."""
    rng = np.random.default_rng(8)
    L, x, U = integers(rng, 2, 2), integers(rng, 2), drawn_inputs(rng, 2, 2)
    one, other = (virtual_germ([SKEW, integers(rng, 2, 2)], L, 2, "exp(x)")(x, U, 30) for _ in range(2))
    assert np.array_equal(one, other)
    with pytest.raises(NotDeterminedError, match="M_2"):
        recovered(
            virtual_germ([SKEW, np.eye(2, dtype=int).astype(object)], L, 2, "exp(x)"),
            d=2,
            t=2,
            layers=2,
            kernel="exp(x)",
        )


def test_two_tokens_and_a_skew_m_1_show_m_2_for_another_kernel() -> None:
    """That tokens become equal needs S(x) S(-x) = 1, which 1/(1-x) does not satisfy."""
    rng = np.random.default_rng(8)
    L, x, U = integers(rng, 2, 2), integers(rng, 2), drawn_inputs(rng, 2, 2)
    one, other = (virtual_germ([SKEW, integers(rng, 2, 2)], L, 2, "1/(1-x)")(x, U, 30) for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kernel", ["exp(x)", "1/(1-x)"])
def test_three_tokens_show_m_2_behind_a_skew_m_1(kernel: str) -> None:
    rng = np.random.default_rng(9)
    M, L = [SKEW, integers(rng, 2, 2), integers(rng, 2, 2)], integers(rng, 1, 2)
    found, last = recovered(virtual_germ(M, L, 3, kernel), d=2, t=3, layers=3, kernel=kernel)
    assert np.array_equal(last, L)
    assert all(np.array_equal(a, b) for a, b in zip(found, M, strict=True))


def test_a_transposed_pairing_recovers_transposed_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The series come from the program: damage to it is seen."""
    model, weights, M, _ = composed([2, 2], 2, 2)
    damaged = {**weights, "A1": weights["A1"].T}
    found, _ = recovered(germ(model, damaged, "exp(x)"), d=2, t=2, layers=1, kernel="exp(x)")
    assert np.array_equal(found[0], M[0].T)
    monkeypatch.setattr(expansion, "order_of", lambda layer: 2 * layer + 1)
    model, weights, M, _ = composed([2, 2, 2], 2, 2)
    found, _ = recovered(germ(model, weights, "exp(x)"), d=2, t=2, layers=2, kernel="exp(x)")
    assert np.array_equal(found[0], M[0])
    assert not found[1].any()  # nothing of M_2 is seen at order 5
    assert M[1].any()
