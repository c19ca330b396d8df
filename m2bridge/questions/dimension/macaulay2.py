"""Compare Macaulay2's definition of a network with the program at a random point, as a further witness of a dimension.

Both compute the outputs at the same weights and inputs over F_p, and their derivatives in the same direction: a dropped
transpose, a wrong sign or a missing head in either is a contradiction. With few weights Macaulay2 also computes the
whole Jacobian.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import EngineError, NoEngineError, NotPolynomialError
from m2bridge.evidence import ENGINE_FAILED, Ancestry, Evidence
from m2bridge.families import Model
from m2bridge.programs.points import draw_inputs
from m2bridge.programs.probe import Probe
from m2bridge.programs.program import Instruction, Program, multiplications
from m2bridge.protocol import Values
from m2bridge.questions.kernel import Context
from m2bridge.scripts import Script, render

TEMPLATE = "dimension"
_SHARE_FOR_RANK = 0.5
"""Of the time left; the counts below keep the script to seconds (1.3 s for a deep attention of 3,072 weights)."""
MOST_WEIGHTS = 20_000  # weights of a point that a script lists
MOST_JACOBIAN_WEIGHTS = 60  # weights up to which the symbolic Jacobian is formed
MOST_JACOBIAN_WORK = 20_000_000
"""Multiplications for a whole Jacobian: inputs times weights times those of the network."""
MOST_INTERPRETED = 1_000_000
"""Multiplications of a user-defined network, which Macaulay2 interprets entry by entry."""
MOST_EXPONENTS = 500_000
"""Exponents of all terms of a polynomial map, which a script lists."""
MOST_LISTED_NUMBERS = 64
"""More numbers than this are compared by a hash of them."""


def _for_macaulay2(program: Program) -> dict[str, object]:
    """Write the instructions as words and integers for the partial ``_program``: no name of a user is copied into a script."""
    if not program.polynomial:
        raise NotPolynomialError("Macaulay2 interprets polynomial programs only")
    return {
        "instructions": [
            [item.operation, item.shape, item.operands, _constants(item)] for item in program.instructions
        ],
        "outputPlaces": [index for _, index in program.outputs],
    }


def _constants(item: Instruction) -> list[object]:
    if item.operation in ("weight", "input"):
        return []
    if item.operation == "einsum":
        terms, result = item.constants
        return [[ord(letter) - ord("a") for letter in word] for word in (*terms, result)]
    return [[c.numerator, c.denominator] if isinstance(c, Fraction) else c for c in item.constants]


def _script(free: Model, probe: Probe) -> Script:
    """Render the script at the same weights, direction and inputs; the whole Jacobian uses further inputs."""
    program = free.program
    whole_jacobian = _whole_jacobian(free)
    shown_inputs = len(probe.outputs())
    samples = free.parameter_count + 1 if whole_jacobian else shown_inputs
    drawn = draw_inputs(program, probe.p, probe.seed + 1, max(samples, shown_inputs)).values()
    inputs: list[object] = [
        np.concatenate([array[k].reshape(-1) for array in drawn]) for k in range(samples) if drawn
    ]
    by_program = free.user.is_program
    partial = "_program" if by_program else free.m2_partial
    sizes = _for_macaulay2(program) if by_program else free.m2_parameters
    values = {
        "p": probe.p,
        "point": free.flatten(probe.weights),
        "direction": free.flatten(probe.random_direction()),
        "inputs": inputs or [[]],
        "shownInputs": shown_inputs,
        "wholeJacobian": whole_jacobian,
    }
    return render(TEMPLATE, {**sizes, **values}, partial=partial)


def _whole_jacobian(free: Model) -> bool:
    """Return whether the model is small enough for Macaulay2 to compute the rank of the Jacobian."""
    program, count = free.program, free.parameter_count
    samples = 2 + count // program.output_count if program.inputs else 1
    work = samples * count * multiplications(program)
    return count <= MOST_JACOBIAN_WEIGHTS and work <= MOST_JACOBIAN_WORK


def _reason_not_to_ask(free: Model) -> str | None:
    """Return the reason why Macaulay2 is not used for a model, or None if it is used."""
    if not free.polynomial:
        return "no second definition in Macaulay2: the network is not polynomial"
    if free.parameter_count > MOST_WEIGHTS:
        return f"not used: more than {MOST_WEIGHTS} weights"
    if free.user.is_program and multiplications(free.program) > MOST_INTERPRETED:
        return f"not used: more than {MOST_INTERPRETED} multiplications to interpret"
    if free.user.polynomials is not None:
        exponents = len(free.user.variables) * sum(map(len, free.user.polynomials))
        if exponents > MOST_EXPONENTS:
            return f"not used: more than {MOST_EXPONENTS} exponents to send"
    return None


def macaulay2_evidence(context: Context, model: Model, p: int) -> list[Evidence]:
    """Return the values and ranks that Macaulay2 computes at a random point, beside those of the program."""
    if context.engine_disabled:
        return [_nothing("not used")]
    free = model.free
    if (reason := _reason_not_to_ask(free)) is not None:
        return [_nothing(reason)]
    probe = Probe(
        free.program, p, context.seed, free.draw_weights(np.random.default_rng([context.seed, 9]), p)
    )
    try:
        values, stopped = context.run_script(_script(free, probe), share=_SHARE_FOR_RANK)
    except NoEngineError:
        return [_nothing("no Macaulay2 found; the answer uses the other witnesses")]
    except EngineError as error:
        if context.engine_required:
            raise
        return [_nothing(f"{ENGINE_FAILED}: {error}")]
    ancestry: Ancestry = "program" if free.user.is_program else "template"
    return [
        *_ranks(values, p, values.run.seconds, ancestry, stopped=stopped is not None),
        *_meetings(values, probe, ancestry),
    ]


def _ranks(values: Values, p: int, spent: float, ancestry: Ancestry, *, stopped: bool) -> list[Evidence]:
    if "jacobian_rank" not in values:
        large = "too many weights to compute the whole Jacobian"
        return [_nothing("stopped by its limit" if stopped else large, seconds=spent)]
    rank = values.integer("jacobian_rank")
    fields: dict[str, Any] = {"prime": p, "ancestry": ancestry}
    bound = "rank of the Jacobian at a random point"
    generic = "rank of the Jacobian at a random point; equal to the generic rank unless the point is special"
    return [
        Evidence(
            "image_dim", rank, "macaulay2", bound, relation=">=", certainty=Certainty.COMPUTED, seconds=spent, **fields
        ),
        Evidence("image_dim", rank, "macaulay2", generic, field=f"F_{p}", **fields),
    ]  # fmt: skip


def _meetings(values: Values, probe: Probe, ancestry: Ancestry) -> list[Evidence]:
    """Return values and derivatives by both definitions, as pairs of evidence that must agree."""
    by_program = {
        "network_values": probe.outputs(),
        "directional_derivative": probe.derivatives(probe.random_direction()),
    }
    definition = "Macaulay2's definition of the network"
    definition = definition if ancestry == "template" else "the program run by Macaulay2"
    evidence = []
    for quantity, program_values in by_program.items():
        if quantity not in values:
            continue
        pair: list[tuple[str, Ancestry, str, list[list[int]]]] = [
            ("macaulay2", ancestry, definition, values[quantity]),
            ("modular", "program", "the recorded program", program_values),
        ]
        for witness, stands_on, method, listed in pair:
            evidence.append(Evidence(
                quantity, _condensed(listed), witness, f"{method}, at random weights and inputs", certainty=Certainty.PROVED,
                prime=probe.p, scope="at-point", field=f"F_{probe.p}", ancestry=stands_on,
            ))  # fmt: skip
    return evidence


def _condensed(listed: list[list[int]]) -> list[int] | str:
    """Return the numbers, or their count and a hash if there are many."""
    flat = [int(number) for row in listed for number in row]
    if len(flat) <= MOST_LISTED_NUMBERS:
        return flat
    return f"{len(flat)} numbers, sha256 {sha256(repr(flat).encode()).hexdigest()[:16]}"


def _nothing(reason: str, seconds: float = 0.0) -> Evidence:
    return Evidence("image_dim", None, "macaulay2", reason, relation=">=", seconds=seconds)
