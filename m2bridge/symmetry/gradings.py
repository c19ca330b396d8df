"""Tori that act on weights, inputs and outputs of a program: the gradings by which a search is split.

A torus that multiplies weight i by s^(d_i), input j by s^(e_j) and output k by s^(o_k), and under which the program is
equivariant, maps symmetries to symmetries: a vector field is one if and only if its homogeneous parts are. The exponents solve
J_w (d w) + J_x (e x) = o y at every point, a linear system that is sampled modulo p. A wrong grading could only hide a field.
"""

from __future__ import annotations

from math import prod

import numpy as np

from m2bridge.linear.modular import kernel_mod
from m2bridge.linear.residues import field_of
from m2bridge.linear.stream import integers
from m2bridge.programs.arithmetics import Residues
from m2bridge.programs.blocks import output_seeds
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Instruction, Program
from m2bridge.programs.reverse import jacobian_rows
from m2bridge.programs.run import evaluate
from m2bridge.symmetry.fields import arrays_at, flat_values

_ROWS = 16


def weight_gradings(program: Program, *, p: int, seed: int) -> Integers:
    """Characters of a maximal torus of diagonal equivariances on the flat weights, modulo p: one row a character of the torus."""
    joint = Program(
        tuple(_as_weight(item) for item in program.instructions), program.outputs, program.vanishing
    )
    count, outputs = joint.parameter_count, joint.output_count
    width = count + outputs
    rows = min(outputs, _ROWS)
    samples = -(-width // rows) + 8
    arithmetic = Residues(field_of(p))
    points = integers(seed, 31, samples * count, p).reshape(samples, count)
    rng = np.random.default_rng([seed, 31])
    entries = np.stack([np.sort(rng.permutation(outputs)[:rows]) for _ in range(samples)])
    values = evaluate(joint, arithmetic, arrays_at(joint.parameters, points, arithmetic))
    columns = {name: np.arange(prod(shape)) for name, shape in joint.parameters.items()}
    block = jacobian_rows(joint, arithmetic, values, output_seeds(joint, arithmetic, entries), columns)
    block = arithmetic.field.canonical(np.asarray(block))
    flat = np.concatenate(
        [flat_values(values[place], samples, arithmetic) for _, place in joint.outputs], axis=1
    )
    table = np.zeros((samples, rows, width), dtype=np.int64)
    table[:, :, :count] = block * points[:, None, :] % p
    picked = np.take_along_axis(flat, entries, axis=1)
    at = count + entries
    table[np.arange(samples)[:, None], np.arange(rows)[None, :], at] = (-picked) % p
    basis = kernel_mod(table.reshape(-1, width), p)[0]
    return basis[:, : program.parameter_count]


def _as_weight(item: Instruction) -> Instruction:
    return Instruction("weight", item.constants, (), item.shape) if item.operation == "input" else item
