"""Each check of the ledger can fail: for every claim a mutation of the implementation or of the input changes its verdict.

A mutation never touches what a statement predicts. It damages the network, the algebra or the question, and the verdict at one
quick size becomes another one; "disagreement" means that an independent witness noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from m2bridge.engine import Engine
from m2bridge.families import (
    Attention,
    DeepLightning,
    Model,
    Perceptron,
    attention,
    base,
    segre,
    self_attention,
    virtual,
)
from m2bridge.families.attention_strata import LayerStrata
from m2bridge.papers import all_claims, claim
from m2bridge.papers.base import CheckContext, Status, Verdict
from m2bridge.papers.lightning_attention import dimensions, fibers, singular
from m2bridge.papers.lightning_attention import virtual as virtual_claims
from m2bridge.programs import jacobians as reverse
from m2bridge.questions.boundary import criterion
from m2bridge.questions.critical_points import charts, counting, losses
from m2bridge.questions.fiber import fiber
from m2bridge.questions.singular_locus.equations import VanishingEquations

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """What is damaged, at which of the quick sizes, and the two verdicts."""

    damage: Callable[[Patch], None]
    size: int
    before: Status
    after: Status


def _network(patch: Patch, families: tuple[str, ...], network: Callable[..., Any]) -> None:
    """Families with another forward pass; programs of the damaged ones are not kept."""
    for kind in (Attention, Perceptron):
        original = kind.network

        def mutated(self: Any, weights: Any, X: Any, original: Any = original) -> Any:
            return (network if self.family in families else original)(self, weights, X)

        patch.setattr(kind, "network", mutated)
    _record_again(patch)


def _record_again(patch: Patch) -> None:
    """Programs are recorded each time they are asked for."""
    patch.setattr(base, "_recorded", getattr(base._recorded, "__wrapped__", base._recorded))


def _weights_changed(patch: Patch, families: tuple[str, ...], change: Callable[[str, Any], Any]) -> None:
    """Families of attention whose forward pass sees other weights than the ones it is given."""
    original = Attention.network

    def mutated(self: Any, weights: Any, X: Any) -> Any:
        return original(self, {name: change(name, value) for name, value in weights.items()}, X)

    _network(patch, families, mutated)


def _without_last_row(name: str, value: Any) -> Any:
    if not name.startswith("Q"):
        return value
    mask = np.ones((value.shape[0], 1), dtype=np.int64)
    mask[-1] = 0
    return value * mask


def smaller_rank(patch: Patch) -> None:
    """A wrong rank stratum: the last row of Q is not looked at."""
    _weights_changed(patch, ("lightning", "deep-lightning"), _without_last_row)


def larger_rank(patch: Patch) -> None:
    """A wrong rank stratum: a constant is added to Q."""
    _weights_changed(
        patch,
        ("lightning", "deep-lightning"),
        lambda name, value: value + 1 if name.startswith("Q") else value,
    )


def wider_input(patch: Patch) -> None:
    """Tokens whose first entry is not looked at."""
    original = Attention.network

    def mutated(self: Attention, weights: Any, X: Any) -> Any:
        mask = np.ones((X.shape[0], 1), dtype=np.int64)
        mask[0] = 0
        return original(self, weights, X * mask)

    _network(patch, ("deep-lightning",), mutated)


def no_normalisation(patch: Patch) -> None:
    """Attention that is not normalised."""
    _network(patch, ("softmax",), lambda self, weights, X: replace(self, softmax=False).network(weights, X))


def no_key_derivative(patch: Patch) -> None:
    """A product rule that forgets the keys of the first layer."""
    original = reverse.cotangents

    def mutated(*arguments: Any) -> Any:
        return original(*arguments) | {"K1": None}

    patch.setattr(reverse, "cotangents", mutated)


def dropped_layer(patch: Patch) -> None:
    """A network that is built with one layer less."""
    patch.setattr(dimensions, "DeepLightning", lambda d, t: DeepLightning(d=d[:-1], t=t))


def transposed_change_of_basis(patch: Patch) -> None:
    """C^T in place of C."""
    original = virtual_claims.change_of_basis
    patch.setattr(virtual_claims, "change_of_basis", lambda first, second: original(first, second).T)


def forgotten_inverse(patch: Patch) -> None:
    """The right inverse of V_1 from its Gram matrix without inverting that."""
    patch.setattr(virtual_claims, "inverse", lambda matrix: matrix)


def transposed_attention_in_equation_11(patch: Patch) -> None:
    """Equation 11 is given M_1^T, ..., M_l^T."""
    original = virtual_claims.virtual_weights

    def mutated(A: Any, V: Any) -> Any:
        M, L = original(A, V)
        return [m.mT for m in M], L

    patch.setattr(virtual_claims, "virtual_weights", mutated)


def dropped_transpose_in_equation_12(patch: Patch) -> None:
    original = virtual.ternary_factor
    patch.setattr(virtual, "ternary_factor", lambda j: (original(j)[0], False))


def exchanged_layers(patch: Patch) -> None:
    """M_1, ..., M_l in the opposite order."""
    original = attention.equation_11
    patch.setattr(attention, "equation_11", lambda M, L, X: original(list(reversed(M)), L, X))
    _record_again(patch)


def no_zero_orbits(patch: Patch) -> None:
    """Strata with A = 0 or V = 0 left out."""
    original = singular.orbits
    patch.setattr(
        singular, "orbits", lambda *sizes: (ranks for ranks in original(*sizes) if ranks[0] * ranks[1])
    )


def no_crossed_products(patch: Patch) -> None:
    """Products of linear forms without the second half of x_i x_j."""

    def mutated(A: Any, V: Any) -> Any:
        i, j = np.triu_indices(A.shape[-1])
        return A.T[None, :, i] * V[:, None, j]

    patch.setattr(segre, "segre_coordinates", mutated)
    patch.setattr(self_attention, "segre_program", segre.segre_program.__wrapped__)


def no_values(patch: Patch) -> None:
    """A layer with a skip connection from which V was left out."""
    _network(patch, ("deep-lightning",), lambda self, weights, X: X + X @ self.scores(weights, 1, X))


def dropped_head(patch: Patch) -> None:
    """The network of the first head alone."""
    original = Attention.network

    def mutated(self: Attention, weights: Any, X: Any) -> Any:
        if not self.multi_head:
            return original(self, weights, X)
        return weights["V1"][0] @ (X @ self.scores(weights, 1, X)[0])

    _network(patch, ("deep-lightning",), mutated)


def transposed_attention(patch: Patch) -> None:
    """X^T A^T X in place of X^T A X in the forward pass."""
    _weights_changed(patch, ("lightning",), lambda name, value: value.T if name == "A" else value)


def changed_sign_of_e2(patch: Patch) -> None:
    """Definite and indefinite quadrics exchanged."""
    original = criterion.e2
    patch.setattr(criterion, "e2", lambda S: -original(S))


def no_derivative_in_v(patch: Patch) -> None:
    """The differential of (A, V) -> network with V held fixed."""
    original = singular.differential
    patch.setattr(singular, "differential", lambda d, dp, weights: original(d, dp, weights)[:, : d * d])


def forgotten_entry(patch: Patch) -> None:
    """A layer that does not look at the first row of A, so that more weights give the zero function."""

    def mutated(name: str, value: Any) -> Any:
        if name != "A":
            return value
        mask = np.ones((value.shape[0], 1), dtype=np.int64)
        mask[0] = 0
        return value * mask

    _weights_changed(patch, ("lightning",), mutated)


def no_second_layer(patch: Patch) -> None:
    """Virtual weights that forget every layer but the first."""
    original = fibers.virtual_weights

    def mutated(A: Any, V: Any) -> Any:
        M, L = original(A, V)
        return [M[0], *(0 * m for m in M[1:])], L

    patch.setattr(fibers, "virtual_weights", mutated)


def identities_for_attention(patch: Patch) -> None:
    """Virtual weights that are identity matrices, whatever the weights are."""
    original = fibers.virtual_weights

    def mutated(A: Any, V: Any) -> Any:
        M, L = original(A, V)
        return [np.eye(len(m), dtype=int).astype(object) for m in M], L

    patch.setattr(fibers, "virtual_weights", mutated)


def dropped_neuron(patch: Patch) -> None:
    """A perceptron that does not look at the first neuron of its last hidden layer."""

    def mutated(self: Perceptron, weights: Any, x: Any) -> Any:
        value = weights["W1"] @ x
        for i in range(2, self.layers + 1):
            value = value**self.r
            if i == self.layers:
                mask = np.ones(self.widths[i - 1], dtype=np.int64)
                mask[0] = 0
                value = value * mask
            value = weights[f"W{i}"] @ value
        return value

    _network(patch, ("mlp",), mutated)


def no_closure_order(patch: Patch) -> None:
    """An order of the orbits in which the closure of each contains every other one."""
    patch.setattr(LayerStrata, "contains", lambda strata, larger, smaller: True)


def smaller_tangent_spaces(patch: Patch) -> None:
    """Tangent spaces by equations that have two dimensions too few."""
    original = VanishingEquations.tangent_upper

    def mutated(equations: VanishingEquations, point: Any) -> Any:
        upper, sure = original(equations, point)
        return (None if upper is None else upper - 2), sure

    patch.setattr(VanishingEquations, "tangent_upper", mutated)


def wrong_weights(patch: Patch) -> None:
    """A fiber through weights with skew M_1, where generic ones were asked for."""

    def mutated(model: Model, *, at: str, **options: Any) -> Any:
        return fiber(model, at=at.replace("m1=generic", "m1=skew"), **options)

    patch.setattr(fibers, "fiber", mutated)


def transposed_pairing(patch: Patch) -> None:
    """Softmax of x_j^T A x_i in place of x_i^T A x_j."""

    def mutated(self: Attention, weights: Any, X: Any) -> Any:
        kernel = np.exp(self.scores(weights, 1, X).T)
        return weights["V1"] @ X @ (kernel / kernel.sum(axis=1, keepdims=True)).T

    _network(patch, ("softmax",), mutated)


# -- losses and their critical points --------------------------------------------------------------------------------------------


def forgotten_target(patch: Patch) -> None:
    """The loss is the norm of the function itself."""
    original = losses.Loss.modulo

    def mutated(self: losses.Loss, p: int, **more: Any) -> dict[str, object]:
        result = original(self, p, **more)
        return result | {"covector": [0] * len(self.covector)}

    patch.setattr(losses.Loss, "modulo", mutated)


def squares_only(patch: Patch) -> None:
    """The rank one stratum has only squares of linear forms."""
    original = charts._rank_one
    patch.setattr(charts, "_rank_one", lambda model, **_: original(model, square=True))


def repeated_output(patch: Patch) -> None:
    """The loss of a sample compares its first output with every target."""
    original = losses.linear_in_coordinates

    def mutated(model: Model, values: Any) -> np.ndarray:
        result = original(model, values)
        return np.stack([result[0]] * len(result))

    patch.setattr(losses, "linear_in_coordinates", mutated)


def samples_as_a_general_quadric(patch: Patch) -> None:
    """Samples are taken for random linear forms of the coordinates."""

    def mutated(model: Model, samples: int, noise: float, seed: int) -> losses.Loss:
        kernel = model.coordinate_count - 2 * samples
        return losses.metric_loss(model, "generic", kernel, seed, small=False)

    patch.setattr(losses, "drawn_samples", mutated)


def weights_of_the_stratum(patch: Patch) -> None:
    """The critical points of the weights are looked for on the stratum only."""
    original = counting.Counter.values_in_weights

    def mutated(self: counting.Counter, model: Attention, *rest: Any) -> Any:
        return original(self, charts._rank_one(model), *rest)

    patch.setattr(counting.Counter, "values_in_weights", mutated)


def unequal_norm(patch: Patch) -> None:
    """Coefficients of the Bombieri norm that differ from one another."""

    def mutated(model: Model) -> Any:
        unit = np.eye(model.coordinate_count, dtype=np.int64).astype(object)
        return unit, np.arange(1, model.coordinate_count + 1).astype(object) ** 2 + 1

    patch.setattr(losses, "_bombieri", mutated)


def one_chern_class_more(patch: Patch) -> None:
    """The formula of Chern classes is off by one."""
    original = counting.generic_ed_degree
    patch.setattr(counting, "generic_ed_degree", lambda *arguments: original(*arguments) + 1)


def _of(
    damage: Callable[[Patch], None], after: Status, *, before: Status = Status.HOLDS, size: int = 0
) -> Mutation:
    return Mutation(damage=damage, size=size, before=before, after=after)


HOLDS, FAILS, OUT, DISAGREE = Status.HOLDS, Status.FAILS, Status.OUT_OF_REACH, Status.DISAGREEMENT
REPAIRED, TRUE, FALSE = Status.REPAIRED_HOLDS, Status.PROBE_TRUE, Status.PROBE_FALSE

MUTATIONS = {
    "alexander-hirschowitz": _of(dropped_neuron, DISAGREE, before=FALSE),
    "conjecture-3.10": _of(transposed_pairing, FAILS),
    "conjecture-3.10-dimension": _of(no_normalisation, DISAGREE),
    "conjecture-3.10-repaired": _of(no_normalisation, FAILS, before=REPAIRED),
    "conjecture-3.10-skew": _of(no_normalisation, TRUE, before=FALSE),
    "corollary-3.3": _of(smaller_rank, DISAGREE),
    "corollary-3.3-outside": _of(larger_rank, DISAGREE, before=TRUE),
    "corollary-3.8": _of(smaller_rank, DISAGREE),
    "corollary-3.8-outside": _of(wider_input, DISAGREE, before=FALSE),
    "corollary-3.8-two-tokens": _of(no_key_derivative, DISAGREE, before=TRUE),
    "corollary-a.2": _of(forgotten_entry, DISAGREE),
    "corollary-a.2-outside": _of(transposed_attention, DISAGREE, before=FALSE),
    "corollary-a.2-special": _of(transposed_attention, DISAGREE, before=TRUE, size=1),
    "corollary-a.6": _of(no_derivative_in_v, FAILS),
    "ed-eckart-young": _of(unequal_norm, FAILS),
    "ed-rank-general-metric": _of(one_chern_class_more, DISAGREE),
    "ed-rational-normal-curve": _of(one_chern_class_more, DISAGREE),
    "equation-12": _of(dropped_transpose_in_equation_12, FAILS),
    "equation-13": _of(exchanged_layers, FAILS, size=1),
    "figure-1": _of(smaller_rank, DISAGREE),
    "figure-3": _of(no_normalisation, DISAGREE),
    "filling": _of(dropped_neuron, DISAGREE, before=TRUE, size=1),
    "frwy-equal-widths": _of(dropped_neuron, DISAGREE),
    "ktb-high-degree": _of(dropped_neuron, DISAGREE),
    "ktb-low-degree": _of(dropped_neuron, DISAGREE, before=FALSE),
    "ktb-recursive-bound": _of(dropped_neuron, DISAGREE),
    "landscape-quadric-regular": _of(forgotten_target, DISAGREE),
    "landscape-quadric-singular": _of(squares_only, FAILS),
    "landscape-samples-are-general": _of(samples_as_a_general_quadric, TRUE, before=FALSE),
    "landscape-samples-regular": _of(repeated_output, FAILS),
    "landscape-samples-singular": _of(repeated_output, FAILS),
    "landscape-singular-in-weights": _of(weights_of_the_stratum, TRUE, before=FALSE),
    "lemma-3.1": _of(transposed_change_of_basis, FAILS),
    "lemma-3.5": _of(forgotten_inverse, DISAGREE),
    "lemma-3.6": _of(transposed_attention_in_equation_11, FAILS),
    "lemma-a.3": _of(no_zero_orbits, HOLDS, before=FAILS),
    "lemma-a.3-completed": _of(no_crossed_products, DISAGREE, before=REPAIRED),
    "parameter-count": _of(dropped_layer, HOLDS, before=FAILS),
    "proposition-a.5": _of(no_crossed_products, FAILS),
    "section-4-heads-only": _of(dropped_head, DISAGREE, before=TRUE),
    "section-4-skip": _of(no_values, TRUE, before=FALSE),
    "theorem-3.2": _of(transposed_attention, DISAGREE, size=2),
    "theorem-3.4-boundary": _of(changed_sign_of_e2, DISAGREE),
    "theorem-3.4-closed": _of(forgotten_entry, DISAGREE),
    "theorem-3.4-singular": _of(no_closure_order, DISAGREE),
    "theorem-3.4-singular-repaired": _of(smaller_tangent_spaces, DISAGREE, before=REPAIRED, size=1),
    "theorem-3.7": _of(exchanged_layers, DISAGREE),
    "theorem-3.7-generic": _of(no_second_layer, FAILS, size=1),
    "theorem-3.7-generic-outside": _of(identities_for_attention, TRUE, before=FALSE),
    "theorem-3.7-repaired": _of(wrong_weights, FAILS, before=REPAIRED),
    "theorem-3.9": _of(transposed_pairing, FAILS, size=1),
    "three-symmetries": _of(smaller_rank, DISAGREE),
    "three-symmetries-repaired": _of(no_key_derivative, DISAGREE, before=REPAIRED),
}


@pytest.fixture(scope="module")
def verdict(engine: Engine) -> Callable[[str, int], Verdict]:
    """Verdicts of the undamaged program at quick sizes, computed once."""
    context = CheckContext(engine=engine)

    @cache
    def found(identifier: str, place: int) -> Verdict:
        item = claim(identifier)
        return item.check(item.quick[place], context)

    return found


def test_every_claim_has_a_mutation() -> None:
    assert sorted(MUTATIONS) == sorted(item.id for item in all_claims())


@pytest.mark.slow
@pytest.mark.parametrize("identifier", MUTATIONS)
def test_a_mutation_changes_the_verdict(
    identifier: str,
    engine: Engine,
    verdict: Callable[[str, int], Verdict],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutation, item = MUTATIONS[identifier], claim(identifier)
    assert mutation.after is not mutation.before
    before = verdict(identifier, mutation.size)
    assert before.status is mutation.before
    mutation.damage(monkeypatch)
    after = item.check(item.quick[mutation.size], CheckContext(engine=engine))
    assert after.status is mutation.after, after


@pytest.mark.slow
@pytest.mark.parametrize("identifier", MUTATIONS)
def test_a_verdict_is_json_and_a_failure_has_a_witness_and_a_correction(
    identifier: str, verdict: Callable[[str, int], Verdict]
) -> None:
    found = verdict(identifier, MUTATIONS[identifier].size)
    assert found.computed or found.reason
    assert (found.witness is not None) == (found.status in (FAILS, FALSE))
    if found.status is FAILS:  # a printed statement has a correction; a probe that is false needs none
        assert claim(identifier).correction is not None
    for values in (found.computed, found.witness or {}):
        assert json.loads(json.dumps(values)) == values
