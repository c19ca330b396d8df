"""Ball arithmetic: enclosures contain the exact value, and no false rank is proved."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest

from m2bridge.families import parse_spec
from m2bridge.linear.numeric import Ball, full_rank_residual
from m2bridge.programs.arithmetics import BallArithmetic
from m2bridge.programs.jacobians import free_columns, last_layer
from m2bridge.programs.proofs import enclosure, prove_rank
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.dimension.checks import float_witness


def contains(ball: Ball, index: tuple[int, ...], value: Fraction) -> bool:
    return abs(Fraction(float(ball.mid[index])) - value) <= Fraction(float(ball.rad[index]))


def test_products_and_sums_contain_the_exact_result() -> None:
    rng = np.random.default_rng(0)
    ring = BallArithmetic()
    a, b = rng.normal(size=(3, 40)) * 10.0 ** rng.integers(-8, 8, size=(3, 40)), rng.normal(size=(40, 2))
    left, right = Ball(a, np.abs(a) * 1e-12), Ball(b, np.abs(b) * 1e-13)
    product, total = ring.matmul(left, right), ring.add(left, left)
    corners = [(a + s * left.rad, b + u * right.rad) for s in (-1, 0, 1) for u in (-1, 0, 1)]
    for x, y in corners:
        exact = [
            [sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(r, c, strict=True)) for c in y.T]
            for r in x
        ]
        assert all(contains(product, (i, j), exact[i][j]) for i in range(3) for j in range(2))
    assert all(contains(total, (i, j), 2 * Fraction(float(a[i, j]))) for i in range(3) for j in range(40))


def test_exponentials_contain_the_exact_result() -> None:
    values = np.array([[-30.0, -1.5, 0.0], [1e-9, 2.25, 17.0]])
    enclosures = BallArithmetic().exp(Ball(values, np.full(values.shape, 1e-10)))
    before = flint.ctx.prec
    flint.ctx.prec = 200
    try:
        for index in np.ndindex(values.shape):
            for shift in (-1e-10, 0.0, 1e-10):
                exact = flint.arb(float(values[index])) + flint.arb(shift)
                error = (exact.exp() - flint.arb(float(enclosures.mid[index]))).abs_upper()
                assert float(error) <= enclosures.rad[index]
    finally:
        flint.ctx.prec = before


def test_no_proof_for_a_rank_deficient_matrix() -> None:
    rng = np.random.default_rng(1)
    low = rng.integers(-9, 9, size=(30, 7)) @ rng.integers(-9, 9, size=(7, 8))
    assert full_rank_residual(Ball.exact(low.astype(np.float64))) >= 1
    wide = rng.normal(size=(5, 9))
    assert full_rank_residual(Ball.exact(wide)) == float("inf")
    vague = rng.normal(size=(30, 8))
    assert full_rank_residual(Ball(vague, np.full(vague.shape, 0.5))) >= 1


def test_proof_for_a_matrix_of_full_rank() -> None:
    matrix = np.random.default_rng(2).normal(size=(30, 20)) * 2.0 ** np.arange(20)
    assert full_rank_residual(Ball.exact(matrix)) < 1e-6


def test_one_token_gives_no_proof_for_attention_weights() -> None:
    """For t = 1 the softmax is 1, so the derivatives by Q and K are zero and must not be proved non-zero."""
    model = parse_spec("softmax(d=[3,3,3],a=[2,2],t=1)")
    layer = last_layer(model.program, model.knowledge.gauge)
    assert layer is not None
    found = generic_rank(model.program, held=model.knowledge.gauge)
    assert found.rank == 9
    assert all(column >= 12 for column in found.columns)  # no entry of Q1 or K1
    point = model.sampling.dyadic_point(4, 0)
    for column in (0, 6):  # an entry of Q1, one of K1
        assert prove_rank(model.program, point, [column], layer=layer, outputs=1, most_operations=1e7) is None


def test_higher_precision_lies_inside_float_balls() -> None:
    model = parse_spec("softmax(d=[3,3,3],a=[2,2],t=3)")
    layer = last_layer(model.program, model.knowledge.gauge)
    assert layer is not None
    point = model.sampling.dyadic_point(4, 0)
    columns = free_columns(model.program, model.knowledge.gauge, layer)
    wide, narrow = (
        enclosure(model.program, point, columns, layer=layer, outputs=2, bits=bits) for bits in (53, 128)
    )
    assert (np.abs(wide.mid - narrow.mid) <= wide.rad + narrow.rad).all()
    assert narrow.rad.max() < wide.rad.max()


def test_deep_networks_are_proved_with_more_bits() -> None:
    model = parse_spec("softmax(d=[4,4,4,4,4],a=[2,2,2,2],t=3)")
    found = generic_rank(model.program, held=model.knowledge.gauge, samples=model.sampling.samples_needed())
    assert found.layer is not None
    proof = prove_rank(
        model.program,
        model.sampling.dyadic_point(found.samples, 0),
        found.columns,
        layer=found.layer,
        outputs=found.layer.few(analytic=True),
        precisions=model.sampling.precisions,
    )
    assert proof is not None
    assert proof.precision > 53
    assert (
        proof.rank == model.parameter_count - model.knowledge.gauge.count == 64
    )  # Eq. 16: 12 + 32 - 16 + 3 * 12


@pytest.mark.parametrize("family", ["deep-lightning", "softmax"])
def test_float_rank_of_deep_networks(family: str) -> None:
    for d in (3, 6, 10, 16):
        model = parse_spec(f"{family}(d=[{d},{d},{d}],a=[2,2],t=3)")
        free = model.parameter_count - model.knowledge.gauge.count
        found = generic_rank(
            model.program, held=model.knowledge.gauge, upper=free, samples=model.sampling.samples_needed()
        )
        numeric, _ = float_witness(model, found, seed=0, report=None)
        assert numeric is not None
        assert numeric.rank == free
