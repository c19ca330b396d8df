"""The format of certificates, which ``m2bridge check`` verifies, and certificates of a proved dimension.

``docs/certificates.md`` specifies the format. The certificate of a dimension contains the network (as a program), a non-zero
minor of its Jacobian at a recorded point for the lower bound, and the argument of the upper bound. The checker shares no code
with this module or with the computation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from hashlib import sha256
from math import lcm, prod
from typing import Any

import numpy as np

from m2bridge.families import Model
from m2bridge.programs import Program
from m2bridge.programs.points import INPUTS, WEIGHTS, Held
from m2bridge.programs.ranks import GenericRank

Document = dict[str, Any]
Polynomial = Mapping[tuple[int, ...], int | Fraction]
"""A mapping from exponents, one for each coordinate, to coefficients."""

MOST_ELIMINATED = 600
"""Larger minors are verified by solutions of their equations; the checker eliminates smaller ones."""
MOST_CHECKED_INSTRUCTIONS = 300
"""The checker verifies vector fields on programs up to this length."""
_CHALLENGE_BITS = 100
"""A minor that is zero has solutions for the drawn right-hand sides with probability at most 2 to the power -_CHALLENGE_BITS."""


def certificate(
    program: Program, statement: Document, argument: Document | None = None, *, spec: str | None = None
) -> Document:
    """Return the certificate of a statement about a program, with its argument (section 5 of the format)."""
    return {
        "format": "m2bridge certificate",
        "version": 2,
        "statement": statement,
        "spec": spec,
        "program": program.text,
        "argument": argument,
    }


def numbers(values: Iterable[int | Fraction]) -> list[int | str]:
    """Encode rational numbers: integers as numbers, fractions as strings.

    >>> numbers([Fraction(1, 2), 4, Fraction(3)])
    ['1/2', 4, 3]
    """
    exact = map(Fraction, values)
    return [int(w) if w.denominator == 1 else f"{w.numerator}/{w.denominator}" for w in exact]


def written(polynomial: Polynomial) -> list[Any]:
    """Encode a polynomial with integer coefficients; it is multiplied by the common denominator first.

    >>> written({(1, 0): Fraction(1, 2), (0, 2): -3})
    [[1, [[0, 1]]], [-6, [[1, 2]]]]
    """
    common = lcm(*(Fraction(c).denominator for c in polynomial.values()))
    return [
        [int(c * common), [[i, int(e)] for i, e in enumerate(exponents) if e]]
        for exponents, c in polynomial.items()
        if c
    ]


# -- dimensions ------------------------------------------------------------------------------------------


def certificate_for(model: Model, value: int, rank: GenericRank, upper: Document) -> Document | None:
    """Return the certificate of a proved dimension, or None if `rank` is heuristic and proves no lower bound.

    `rank` proves the lower bound, `upper` is the argument of the upper bound.
    """
    program = model.free.program
    if (lower := lower_by_minor(program, rank)) is None:
        return None
    document = certificate(program, {"kind": "dimension", "dimension": value}, spec=spec_of(model))
    del document["argument"]
    return document | {"lower": lower, "upper": upper}


def spec_of(model: Model) -> str | None:
    """Return the spec for a certificate; None for a user-defined network, which is given by its program."""
    return None if model.free.user.is_program else model.spec


# -- lower bounds ----------------------------------------------------------------------------------------


def lower_by_minor(program: Program, rank: GenericRank) -> Document | None:
    """Return the argument of the lower bound, a minor that is non-zero modulo a prime; None if the rank is heuristic.

    Its kind is ``minor`` or, if the last layer was eliminated (`rank.layer`), ``last layer``.
    """
    if rank.heuristic:
        return None
    document: Document = {
        "kind": "minor",
        "prime": rank.p,
        "weights": stream_point(program, rank.seed, WEIGHTS, rank.held),
        "inputs": {"seed": rank.seed, "stream": INPUTS, "fixed": []} if program.inputs else {"entries": []},
        "rows": [list(pair) for pair in rank.rows],
        "columns": list(rank.columns),
    }
    if rank.exponentials is not None:
        document["exponentials"] = _exponentials(rank)
    if rank.layer is None:  # only the samples that the rows use
        document["samples"] = 1 + max((sample for sample, _ in rank.rows), default=0)
    else:
        tokens = [*rank.token_pivots, *(token for _, token in rank.rows)]
        document["samples"] = 1 + max(tokens, default=0) // rank.layer.columns
        document |= {"kind": "last layer", "layer": rank.layer.weight, "tokens": list(rank.token_pivots)}
    if rank.roots is not None:
        document["roots"] = {
            "draws": list(rank.roots.draws[: document["samples"]]),
            "inputs": list(rank.roots.rejected_inputs),
            "weights": [stream_point(program, k, WEIGHTS, rank.held) for k in rank.roots.rejected_weights],
        }
    if rank.layer is None and rank.rank > MOST_ELIMINATED:
        return document | _solutions(program, rank, document)
    return document


def _solutions(program: Program, rank: GenericRank, document: Document) -> Document:
    """Solve the equations of a minor for right-hand sides that are a hash of the program and the argument."""
    count, height = math.ceil(_CHALLENGE_BITS / math.log2(rank.p)), len(rank.rows)
    digest = sha256(program.text.encode()).hexdigest()
    key = sha256(json.dumps([digest, document], sort_keys=True, separators=(",", ":")).encode()).digest()
    hashes = (sha256(key + i.to_bytes(8, "little")).digest() for i in range(count * height))
    sides = np.array([int.from_bytes(x, "little") % rank.p for x in hashes]).reshape(count, height)
    field = rank.space.field
    return {"solutions": field.canonical(rank.space.solve(field.residues(sides.T))).T.tolist()}


def _exponentials(rank: GenericRank) -> Document:
    """Return the seed of the units, the relations between arguments, and the points at which the others are independent."""
    formal = rank.exponentials
    assert formal is not None
    relations = [
        [column, [[index, numbers([c])[0]] for index, c in sorted(relation.items())]]
        for column, relation in sorted(formal.relations.items())
    ]
    groups, members = formal.points
    test: Document = {"seed": formal.seed, "prime": formal.p, "weights": groups, "inputs": members}
    if formal.draws is not None:
        test["draws"] = list(formal.draws)
    return {"seed": rank.seed, "relations": relations, "test": test}


def stream_point(program: Program, seed: int, stream: int, held: Held) -> Document:
    """Describe a point by the seed of its random entries, and the fixed entries as runs [start, values]."""
    runs: list[list[Any]] = []
    start = 0
    for name, shape in program.parameters.items():
        if name in held.masks:
            values = held.values[name].reshape(-1)
            for index in np.flatnonzero(held.masks[name]).tolist():
                if runs and runs[-1][0] + len(runs[-1][1]) == start + index:
                    runs[-1][1].append(int(values[index]))
                else:
                    runs.append([start + index, [int(values[index])]])
        start += prod(shape)
    return {"seed": seed, "stream": stream, "fixed": runs}
