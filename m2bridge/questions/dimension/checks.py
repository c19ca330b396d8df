"""What is checked on every run: that the two rules of differentiation agree, and that the stated symmetries are symmetries."""

from __future__ import annotations

import numpy as np

from m2bridge.models import Model
from m2bridge.programs.checks import Probe
from m2bridge.results import Certainty, Evidence


def checked(model: Model, *, p: int, seed: int) -> tuple[Evidence, ...]:
    """Pairs of evidence that contradict each other when a derivative or a stated symmetry is wrong."""
    program = model.program
    probe = Probe(program, p, seed, model.draw_weights(np.random.default_rng([seed, 13]), p))
    pushed, pulled = probe.both_ways()
    found = [
        Evidence(
            quantity="derivative_by_two_rules",
            witness="modular",
            method=f"derivative in a random direction, by the {rule} rules",
            value=value,
            certainty=Certainty.PROVED,
            prime=p,
            scope="at-point",
            field=f"F_{p}",
        )
        for rule, value in (("forward", pushed), ("reverse", pulled))
    ]
    rng = np.random.default_rng([seed, 14])
    symmetries = model.symmetries
    changes = probe.changes([symmetry.direction(probe.weights, rng, p) for symmetry in symmetries])
    for symmetry, changed in zip(symmetries, changes, strict=True):
        found += [
            Evidence(
                quantity=f"function_changes_under: {symmetry.name}",
                witness=witness,
                method=method,
                value=value,
                certainty=Certainty.PROVED if witness == "symmetry" else Certainty.PROBABLE,
                prime=p,
                field=f"F_{p}",
                ancestry="program",  # it may contradict, but that a symmetry holds does not support the answer
            )
            for witness, method, value in (
                ("symmetry", symmetry.citation, False),
                ("modular", "derivative along a random element of its Lie algebra", changed),
            )
        ]
    return tuple(found)
