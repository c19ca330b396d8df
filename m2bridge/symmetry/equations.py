"""Equations of small degree that hold on the image of a small map, found over F_p, lifted to integers, and verified.

A polynomial in the coordinates that vanishes on random image points modulo p is a candidate; it is an equation once it vanishes
identically after the coordinates are expanded as polynomials in the weights.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any

import numpy as np
from flint import Ordering, fmpq, fmpq_mpoly_ctx

from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import Objects, Residues, object_array
from m2bridge.programs.points import WEIGHTS, Integers, integers
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.symmetry.fields import arrays_at, flat_values, small_integers

MOST_MONOMIALS = 700
MOST_WEIGHTS = 40
HIGHEST_DEGREE = 4

Equation = list[tuple[int, tuple[int, ...]]]
"""Coefficients and monomials: flat outputs in ascending order, repeated."""


def equations(program: Program, *, p: int, seed: int, degree: int) -> list[Equation]:
    """Verified equations of one degree (with all lower monomials) of the image of a program without inputs."""
    count = program.output_count
    if (
        program.inputs
        or program.vanishing
        or not program.polynomial
        or program.parameter_count > MOST_WEIGHTS
    ):
        return []
    if comb(count + degree, degree) > MOST_MONOMIALS:
        return []
    monomials = [m for d in range(degree + 1) for m in combinations_with_replacement(range(count), d)]
    values = _images(program, p, seed, len(monomials) + 12)
    table = np.ones((len(values), len(monomials)), dtype=np.int64)
    for column, monomial in enumerate(monomials):
        for i in monomial:
            table[:, column] = table[:, column] * values[:, i] % p
    expanded = _expanded(program)
    found = []
    for row in kernel_mod(table, p)[0]:
        places = np.flatnonzero(row)
        whole = small_integers(row[places], p) or []
        equation = [(c, monomials[k]) for k, c in zip(places, whole, strict=False)]
        if equation and _vanishes(equation, expanded):
            found.append(equation)
    return found


def equations_bound(program: Program, *, p: int, seed: int, lower: int) -> tuple[int, dict[str, Any]] | None:
    """Coordinates minus the rank of the differentials of equations at an image point, and the argument of a certificate."""
    point = integers(seed, WEIGHTS, program.parameter_count, p)
    best: tuple[int, dict[str, Any]] | None = None
    for degree in range(1, HIGHEST_DEGREE + 1):
        found = equations(program, p=p, seed=seed, degree=degree)
        if not found:
            continue
        image = _evaluated(program, point[None], p)[0]
        value = program.output_count - rank_mod(np.stack([_differential(f, image, p) for f in found]), p)
        if best is None or value < best[0]:
            document = {
                "kind": "equations",
                "equations": [[[c, [[i, m.count(i)] for i in sorted(set(m))]] for c, m in f] for f in found],
                "prime": p,
                "weights": {"seed": seed, "stream": WEIGHTS, "fixed": []},
            }
            best = value, document
        if best[0] <= lower:
            break
    return best


def _images(program: Program, p: int, seed: int, count: int) -> Integers:
    drawn = integers(seed, WEIGHTS + 32, count * program.parameter_count, p)
    return _evaluated(program, drawn.reshape(count, program.parameter_count), p)


def _evaluated(program: Program, points: Integers, p: int) -> Integers:
    """Flat outputs at flat weights, one point a row."""
    arithmetic = Residues(field_of(p))
    values = evaluate(program, arithmetic, arrays_at(program.parameters, points, arithmetic))
    rows = [flat_values(values[place], len(points), arithmetic) for _, place in program.outputs]
    return np.concatenate(rows, axis=1)


def _expanded(program: Program) -> list[Any]:
    """The flat outputs as polynomials in the flat weights over QQ."""
    ring = fmpq_mpoly_ctx.get([f"w{i}" for i in range(program.parameter_count)], Ordering.lex)
    variables, given, start = list(ring.gens()), {}, 0
    for name, shape in program.parameters.items():
        given[name] = Lettered("", object_array(variables[start : start + prod(shape)], shape))
        start += prod(shape)
    values = evaluate(program, Objects(lambda q: fmpq(q.numerator, q.denominator)), given)
    return [entry for _, place in program.outputs for entry in values[place].array.reshape(-1)]


def _vanishes(equation: Equation, expanded: list[Any]) -> bool:
    total = fmpq(0)
    for c, monomial in equation:
        term = fmpq(c)
        for i in monomial:
            term = term * expanded[i]
        total = total + term
    return bool(total == 0)


def _differential(equation: Equation, image: Integers, p: int) -> Integers:
    row = np.zeros(len(image), dtype=np.int64)
    for c, monomial in equation:
        for place, i in enumerate(monomial):
            value = c % p
            for j in monomial[:place] + monomial[place + 1 :]:
                value = value * int(image[j]) % p
            row[i] = (row[i] + value) % p
    return row
