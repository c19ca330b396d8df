"""The scripts of the corrections of the ledger show the stated values, in every Macaulay2.

What a script should print is derived beside it, by hand.
"""

from __future__ import annotations

import pytest

from m2bridge.engine import Engine, Outcome
from m2bridge.papers import all_claims, claim
from m2bridge.scripts import Script

PRINTED = {
    # Q, K, V are 2 x 2: 3 * 4 entries; the printed count is 3/2 * 4 * 1
    "parameter-count": "12 entries, printed 6",
    # generically only (sA, V/s) is lost, 6 - 1; at V = 0 the differential is (A', V') -> V' X X^T X, of the rank of V'
    "lemma-a.3": "5 generically, 2 at A = 1, V = 0",
    # one attention weight over the sum of one attention weight
    "conjecture-3.10": "true",
    # M_1, M_2 and L are arbitrary 2 x 2 matrices
    "three-symmetries": "12 virtual weights, up to 2 scalings",
    # V/2 X X^T 2A X = V X X^T A X, whatever is added to it
    "section-4-skip": "true",
    # (B, C) goes to b_m x_n for m = 2, 3, which is injective in b_2 and b_3, and to b_1 x_n + x_1 c_n for m = 1, which vanishes
    # exactly for b_1 = s x_1, c_n = -s x_n: 6 + 9 - 1
    "theorem-3.4-singular": "14",
    # S J S = det(S) J and J S J^T = adj(S) for symmetric S of size 2
    "theorem-3.7": "true",
}

# what to damage, and what is printed then: the scripts compute, they do not recite
DAMAGED = {
    "parameter-count": ("3*d^2", "2*d^2", "8 entries, printed 6"),
    "lemma-a.3": ("v_0=>0", "v_0=>1", "5 generically, 5 at A = 1, V = 0"),
    "conjecture-3.10": ("s/s*v*x", "s/(s+1)*v*x", "false"),
    # V^T V is symmetric, 3 entries, and with W V, 4 entries, free: 4 + 3 + 4
    "three-symmetries": ("transpose V*A*V", "transpose V*V", "11 virtual weights, up to 2 scalings"),
    "section-4-skip": ("X*transpose X*A*X", "X*transpose X*A*X*A", "false"),
    # V = [e1, 0]^T: b_m x_1 for m = 2, 3, and (b_1 + c_1) x_1, c_2 x_1 for m = 1: 6 + 6
    "theorem-3.4-singular": ("{{1,0,0},{0,1,0}}", "{{1,0,0},{0,0,0}}", "12"),
    "theorem-3.7": ("J = matrix{{0,1},{-1,0}}", "J = matrix{{0,1},{1,0}}", "false"),
}


def printed_by(engine: Engine, name: str, text: str) -> str:
    run = engine.run(Script(name=name.replace(".", "_"), text=text))
    assert run.outcome is Outcome.FINISHED, run.stderr
    return run.stdout.strip()


def test_every_correction_has_a_known_output() -> None:
    corrected = {item.id for item in all_claims() if item.correction is not None}
    assert corrected == set(PRINTED) == set(DAMAGED)


@pytest.mark.parametrize("identifier", PRINTED)
def test_the_script_of_a_correction_prints_the_stated_values(each_engine: Engine, identifier: str) -> None:
    correction = claim(identifier).correction
    assert correction is not None
    assert printed_by(each_engine, identifier, correction.macaulay2) == PRINTED[identifier]


@pytest.mark.parametrize("identifier", DAMAGED)
def test_the_script_of_a_correction_computes_what_it_prints(each_engine: Engine, identifier: str) -> None:
    correction = claim(identifier).correction
    assert correction is not None
    right, wrong, printed = DAMAGED[identifier]
    assert correction.macaulay2.count(right) == 1
    damaged = correction.macaulay2.replace(right, wrong)
    assert printed_by(each_engine, identifier, damaged) == printed


def test_the_dimension_that_a_tangent_space_exceeds() -> None:
    """Corollary 3.3: (d, d', a) = (3, 2, 2) has dimension 2*2*3 + 3*2 - 2^2 - 1 = 13, which the script's comment states."""
    correction = claim("theorem-3.4-singular").correction
    assert correction is not None
    dimension = 2 * 2 * 3 + 3 * 2 - 2**2 - 1
    assert correction.macaulay2.rstrip().endswith(f"-- {PRINTED['theorem-3.4-singular']} > {dimension}")
