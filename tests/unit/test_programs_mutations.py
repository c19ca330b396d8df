"""Damage to one rule of the interpreters is noticed: a conflict is reported, or the answer stays right; never a wrong one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, attention_knowledge, base, from_callable
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.symmetries import Symmetry
from m2bridge.programs import jacobians as reverse
from m2bridge.programs import run
from m2bridge.programs.probe import Probe
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension import dimension
from tests.networks import NETWORKS

Patch = pytest.MonkeyPatch
SPECS = {
    "lightning(d=3,dp=2,a=2,t=2)": 13,
    "deep-lightning(d=[3,3,3],a=[2,2],t=3)": 23,
    "softmax(d=[3,3,3],a=[2,2],t=3)": 25,
    "mlp(widths=[3,4,2],r=3)": 16,
}


def forget_a_head(patch: Patch) -> None:
    """Heads after the first one are multiplied by zero; nothing that was recorded before is used."""
    original = Attention.network

    def damaged(self: Any, weights: Any, inputs: Any) -> Any:
        first = {k: np.concatenate([w[:1], 0 * w[1:]]) if w.ndim == 3 else w for k, w in weights.items()}
        return original(self, first, inputs)

    patch.setattr(Attention, "network", damaged)
    patch.setattr(base, "_recorded", base._recorded.__wrapped__)


def dropped_transpose(patch: Patch) -> None:
    """The cotangent of a square operand of an einsum is transposed."""
    original = reverse._pull_einsum

    def damaged(item: Any, position: int, operands: Any, cotangent: Any) -> Lettered:
        result = original(item, position, operands, cotangent)
        core = result.core
        if position == 1 and len(core) == 2 and core[0] == core[1]:
            return result.single("ab", "ba")
        return result

    patch.setattr(reverse, "_pull_einsum", damaged)


def swapped_factors(patch: Patch) -> None:
    """The product rule of einsum forgets its second operand."""
    original = reverse.pull

    def damaged(item: Any, position: int, *rest: Any) -> Lettered:
        result = original(item, position, *rest)
        if item.operation == "einsum" and len(item.operands) == 2 and position == 1:
            return result.scaled(Fraction(2))
        return result

    patch.setattr(reverse, "pull", damaged)


def wrong_power(patch: Patch) -> None:
    """The derivative of x^n without its n, in both directions' common factor: n x^(n-1) becomes x^(n-1)."""
    original = reverse.slope

    def damaged(item: Any, operand: Any, value: Any) -> Lettered:
        result = original(item, operand, value)
        if item.operation == "power":
            return result.scaled(Fraction(1, item.constants[0]))
        return result

    patch.setattr(reverse, "slope", damaged)


def wrong_softmax(patch: Patch) -> None:
    """The derivative of a softmax without the part that keeps its sum."""
    original = reverse.pull

    def damaged(item: Any, position: int, operands: Any, value: Any, cotangent: Any) -> Lettered:
        if item.operation == "softmax":
            return cotangent * value
        return original(item, position, operands, value, cotangent)

    patch.setattr(reverse, "pull", damaged)


def wrong_sign(patch: Patch) -> None:
    """Every second cotangent that is added is subtracted."""
    patch.setattr(reverse, "accumulated", lambda known, part: known - part)


def wrong_forward(patch: Patch) -> None:
    """The forward rule of a product looks at one factor only."""
    original = run.tangent

    def damaged(arithmetic: Any, item: Any, operands: Any, value: Any, directions: Any) -> Any:
        if item.operation == "einsum" and len(operands) == 2:
            kept = [directions[0], None] if directions[0] is not None else directions
            return original(arithmetic, item, operands, value, kept)
        return original(arithmetic, item, operands, value, directions)

    patch.setattr(run, "tangent", damaged)


DAMAGES = [dropped_transpose, swapped_factors, wrong_power, wrong_softmax, wrong_sign, wrong_forward]
FEW_DAMAGES = [
    dropped_transpose,
    *(pytest.param(damage, marks=pytest.mark.slow, id=damage.__name__) for damage in DAMAGES[1:]),
]


@pytest.mark.parametrize("spec", SPECS)
def test_intact_records_raise_no_alarm(spec: str) -> None:
    answer = dimension(spec, engine=False, certify=False)
    assert answer.image_dim == SPECS[spec]
    assert answer.agreement is True


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("spec", SPECS)
def test_a_damaged_rule_is_noticed_or_harmless(spec: str, damage: Any, monkeypatch: Patch) -> None:
    damage(monkeypatch)
    answer = dimension(spec, engine=False, certify=False)
    assert answer.agreement is False or answer.image_dim == SPECS[spec]


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_is_noticed_somewhere(damage: Any, monkeypatch: Patch) -> None:
    """This shows that the test above can fail."""
    damage(monkeypatch)
    assert any(dimension(spec, engine=False, certify=False).agreement is False for spec in SPECS)


@pytest.mark.parametrize("damage", FEW_DAMAGES)
def test_a_damaged_rule_is_noticed_in_networks_without_symmetries(damage: Any, monkeypatch: Patch) -> None:
    """Programs of people have no stated symmetry: the two rules of differentiation are what is left."""
    chosen = [
        network for network in NETWORKS if network[0] in ("transformer block", "biases", "cross-attention")
    ]
    plain = [
        dimension(from_callable(f, w, inputs=x), engine=False, certify=False).image_dim
        for _, f, w, x in chosen
    ]
    damage(monkeypatch)
    for (_, f, w, x), right in zip(chosen, plain, strict=True):
        answer = dimension(from_callable(f, w, inputs=x), engine=False, certify=False)
        assert answer.agreement is False or answer.image_dim == right


@pytest.mark.parametrize("place", range(3))
def test_a_wrong_label_of_a_symmetry_is_noticed(place: int, monkeypatch: Patch) -> None:
    """K moves with the inverse transpose; moved like Q, the function changes."""
    original = attention_knowledge.attention_symmetries

    def damaged(network: AttentionNetwork) -> tuple[Symmetry, ...]:
        found = list(original(network))
        chosen = found[place]
        name, labels = list(chosen.axes.items())[-1]
        turned = tuple(-label if isinstance(label, int) else label for label in labels)
        found[place] = replace(chosen, axes={**chosen.axes, name: turned})
        return tuple(found)

    monkeypatch.setattr(attention_knowledge, "attention_symmetries", damaged)
    found = dimension("deep-lightning(d=[3,3,3],a=[2,2],t=3)", engine=False, certify=False)
    assert found.agreement is False


def test_a_symmetry_that_is_none_is_noticed(monkeypatch: Patch) -> None:
    """A scaling of V alone would lower the upper bound by one."""
    original = attention_knowledge.attention_symmetries

    def damaged(network: AttentionNetwork) -> tuple[Symmetry, ...]:
        false = Symmetry(
            name="V", citation="none", kind="scaling", size=1, axes={"V1": (1,)}, shapes=network.parameters
        )
        return (*original(network), false)

    monkeypatch.setattr(attention_knowledge, "attention_symmetries", damaged)
    assert dimension("deep-lightning(d=[3,3,3],a=[2,2],t=3)", engine=False, certify=False).agreement is False


def test_the_probe_compares_two_computations() -> None:
    for _, function, weights, inputs in NETWORKS:
        probe = Probe(from_callable(function, weights, inputs=inputs or None).program, 8388593, 1)
        pushed, pulled = probe.both_ways()
        assert pushed == pulled
        assert any(pushed)


def test_the_probe_adds_up_more_products_than_are_exact_at_once() -> None:
    model = from_callable(
        lambda V, W, x: V @ (W @ x) ** 2, {"V": (40, 20), "W": (20, 30)}, inputs={"x": (30,)}
    )
    pushed, pulled = Probe(model.program, 8388593, 1).both_ways()
    assert pushed == pulled
    assert all(pushed)


def test_a_missing_head_rests_on_the_program_alone(monkeypatch: Patch) -> None:
    """A network that forgets a head is another network: its rank does not meet the upper bounds of two heads.

    The two rules of differentiation agree about it, so that only Macaulay2's own definition contradicts it
    (tests/with_m2/test_models.py). Without it the dimension of the recorded program rests on bounds of the program alone, and no
    second definition agrees.
    """
    spec = "multi-head(d=3,dp=2,a=1,heads=2,t=3)"
    right = dimension(spec, engine=False, certify=False)
    assert (right.certainty, right.agreement, right.image_dim) == (
        Certainty.COMPUTED,
        True,
        20,
    )  # no certificate was asked for
    forget_a_head(monkeypatch)
    answer = dimension(spec, engine=False, certify=False)
    by_family = [item.value for item in answer.evidence if item.relation == "<=" and item.witness != "found"]
    assert answer.image_dim == 10 < min(by_family) == 20
    assert answer.agreement is None
