"""What is checked on every run: that the two rules of differentiation agree, and that the stated symmetries are symmetries."""

from __future__ import annotations

from functools import partial

import numpy as np

from m2bridge.models import Model
from m2bridge.programs.proofs import Probe
from m2bridge.results import Certainty, Evidence, said


def checked(model: Model, *, p: int, seed: int) -> tuple[Evidence, ...]:
    """Pairs of evidence that contradict each other when a derivative or a stated symmetry is wrong."""
    program = model.program
    probe = Probe(program, p, seed, model.draw_weights(np.random.default_rng([seed, 13]), p))
    pushed, pulled = probe.both_ways()
    found = [
        said(
            "derivative_by_two_rules", value, "modular", f"derivative in a random direction, by the {rule} rules",
            certainty=Certainty.PROVED, prime=p, scope="at-point", field=f"F_{p}",
        )
        for rule, value in (("forward", pushed), ("reverse", pulled))
    ]  # fmt: skip
    rng = np.random.default_rng([seed, 14])
    symmetries = model.symmetries
    changes = probe.changes([symmetry.direction(probe.weights, rng, p) for symmetry in symmetries])
    for symmetry, changed in zip(symmetries, changes, strict=True):
        # both of one ancestry: they may contradict, but that a symmetry holds does not support the answer
        say = partial(
            said, f"function_changes_under: {symmetry.name}", prime=p, field=f"F_{p}", ancestry="program"
        )
        found += [
            say(False, "symmetry", symmetry.citation, certainty=Certainty.PROVED),
            say(changed, "modular", "derivative along a random element of its Lie algebra"),
        ]
    return tuple(found)
