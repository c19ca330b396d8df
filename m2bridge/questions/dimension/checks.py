"""Check every run: the rank in float64, both rules of differentiation, and the stated symmetries."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from m2bridge.bounds.lower import Report
from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.jacobians import LastLayer, free_columns, jacobian_block, last_layer
from m2bridge.programs.probe import Probe
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import GenericRank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension.result import NumericWitness

_image_dim = partial(Evidence, "image_dim", scope="generic")
MOST_NUMERIC_COLUMNS = 700  # columns of a matrix whose singular values are computed
_SCALES = (1.0, 0.5, 0.25)
"""Scales of a real point, tried until float64 attains the rank: with residuals, terms of high degree dominate at large points."""
_NOTHING = NumericRank(rank=None, gap=0.0, candidate=0)


def float_witness(
    model: Model, exact: GenericRank, *, seed: int, report: Report | None
) -> tuple[NumericWitness | None, tuple[Evidence, ...]]:
    """Return the numerical rank in float64 beside the rank `exact` over F_p; no evidence if the matrix is large."""
    free = model.free
    program, held = free.program, free.knowledge.gauge
    layer = last_layer(program, held)
    columns = free_columns(program, held, layer)
    outputs = _outputs_of(layer, exact, not program.polynomial, len(columns)) if layer else 0
    width = len(columns) + (outputs * layer.width if layer else 0)
    if width > MOST_NUMERIC_COLUMNS:
        return None, ()
    if report:
        report("float64 rank")
    start = time.perf_counter()
    samples = math.ceil(1.5 * exact.samples) + 1
    repeated = (layer.outputs - outputs) * layer.width if layer else 0
    entries = None
    if not layer and program.inputs:
        entries = _some_entries(program.output_count, exact.outputs, samples, seed)
    block: dict[str, Any] = {"layer": layer, "outputs": outputs, "entries": entries}
    rng = np.random.default_rng([seed, 8])
    weights = free.draw_real_weights(rng)
    inputs = {name: rng.normal(size=(samples, *shape)) for name, shape in program.input_shapes.items()}
    size, numeric, ranks = (0, width), _NOTHING, set[int | None]()
    # The matrix contains only some outputs of a last linear layer. Each of the others adds `layer.width` to the rank, `repeated`
    # in all, if the values before that layer have full rank. A rank above the exact one is rejected if it may be rounding noise.
    for scale in _SCALES:
        point = {name: Lettered("", scale * value) for name, value in weights.items()}
        point |= {name: Lettered("N", scale * value) for name, value in inputs.items()}
        try:
            with np.errstate(over="raise", under="raise", invalid="raise", divide="raise"):
                matrix = jacobian_block(program, FloatArithmetic(), point, columns, **block)
            size, numeric = matrix.shape, numeric_rank(matrix)
            larger = numeric.rank is not None and numeric.rank + repeated > exact.rank
            unsure = larger and rounding_noise(program, point, columns, matrix, **block)
        except FloatingPointError:  # out of float64's range: no contradiction, no answer
            unsure = True
        if unsure or (repeated and len(exact.token_pivots) < (layer.width if layer else 0)):
            numeric = replace(numeric, rank=None)
        ranks.add(numeric.rank)
        if numeric.rank is not None and numeric.rank + repeated >= exact.rank:
            break
    else:  # the rank is smaller at every scale: undecided unless it is always the same
        numeric = numeric if len(ranks) == 1 else replace(numeric, rank=None)
    rank = None if numeric.rank is None else numeric.rank + repeated
    gap = numeric.gap if math.isfinite(numeric.gap) else None
    item = _image_dim(
        rank, "numpy", "float64 rank of the Jacobian, rows and columns scaled",
        certainty=Certainty.NUMERIC, seconds=time.perf_counter() - start,
        detail={"gap": gap, "candidate": numeric.candidate + repeated, "rows": size[0], "columns": size[1]},
    )  # fmt: skip
    return NumericWitness(rank=rank, gap=gap, rows=size[0], columns=size[1]), (item,)


def _outputs_of(layer: LastLayer, exact: GenericRank, analytic: bool, columns: int) -> int:
    """Return how many rows of the last weight are used: those of the exact rank, or the usual ones if the matrix is large."""
    outputs = min(layer.outputs, layer.width, exact.outputs)
    few = layer.few(analytic)
    return outputs if outputs > few and columns + outputs * layer.width <= MOST_NUMERIC_COLUMNS else few


def rounding_noise(
    program: Program, point: Mapping[str, Lettered], columns: np.ndarray, matrix: np.ndarray, **block: Any
) -> bool:
    """Return whether a row or column of the Jacobian may consist of rounding errors: float32 changes it by its whole size."""
    single = FloatArithmetic(np.float32)
    single_point = {
        name: Lettered(value.lead, single.convert_input(value.array), single) for name, value in point.items()
    }
    with np.errstate(all="ignore"):
        change = jacobian_block(program, single, single_point, columns, **block).astype(np.float64) - matrix
    if not np.isfinite(change).all():
        return True
    norms = [(np.linalg.norm(matrix, axis=k), np.linalg.norm(change, axis=k)) for k in (0, 1)]
    return any(bool(((size > 0) & (size <= moved)).any()) for size, moved in norms)


def _some_entries(count: int, chosen: int, samples: int, seed: int) -> np.ndarray:
    """Draw output entries at random for each sample."""
    rng = np.random.default_rng([seed, 9])
    return np.stack([np.sort(rng.permutation(count)[:chosen]) for _ in range(samples)])


def program_checks(model: Model, *, p: int, seed: int) -> tuple[Evidence, ...]:
    """Return pairs of evidence that contradict each other when a derivative or a stated symmetry is wrong."""
    program = model.program
    probe = Probe(program, p, seed, model.draw_weights(np.random.default_rng([seed, 13]), p))
    rng = np.random.default_rng([seed, 14])
    symmetries = model.knowledge.symmetries
    stated = [symmetry.direction(probe.weights, rng, p) for symmetry in symmetries]
    first, *along_symmetries = probe.moved([probe.random_direction(), *stated])  # one pass for all of them
    pushed, pulled = probe.both_ways(first)
    evidence = [
        Evidence(
            "derivative_by_two_rules", value, "modular", f"derivative in a random direction, by the {rule} rules",
            certainty=Certainty.PROVED, prime=p, scope="at-point", field=f"F_{p}",
        )
        for rule, value in (("forward", pushed), ("reverse", pulled))
    ]  # fmt: skip
    for symmetry, moved in zip(symmetries, along_symmetries, strict=True):
        # Both have the same ancestry: they can contradict each other, but their agreement does not support the answer.
        evidence_of = partial(
            Evidence, f"function_changes_under: {symmetry.name}", prime=p, field=f"F_{p}", ancestry="program"
        )
        evidence += [
            evidence_of(False, "symmetry", symmetry.citation, certainty=Certainty.PROVED),
            evidence_of(bool(moved.any()), "modular", "derivative along a random element of its Lie algebra"),
        ]
    return tuple(evidence)
