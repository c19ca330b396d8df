"""Certificates, producer side: a proved dimension becomes a document that ``m2bridge check`` verifies.

A certificate holds a claim, a reason why the dimension is at least the claimed one (a non-zero minor of the Jacobian at a
recorded point) and a reason why it is at most that (slice, virtual weights, symmetries, coordinates, equations). The
checker (:mod:`m2bridge.checker`) shares no code with this module or with what computed the numbers.

Format, version 1
-----------------
``model``  the spec; ``claim``  {image_dim, parameters}; ``lower``, ``upper``: see below; ``sha256`` of the
rest, as JSON with sorted keys and no spaces.

lower.kind
    ``jacobian``: prime, weights (name -> nested lists), inputs (list, or null for a map given by its
    coordinates), rows, columns, determinant. Row n * outputs + j is output entry j (row by row) at input n.
    ``attention``: prime, seed, samples, outputs, tokens, rows, columns, determinant. Point and inputs are
    streams (seed, 1) and (seed, 2) of splitmix64 on the gauge slice; the matrix has the rows (i, token) for
    the output rows i < outputs, the columns V[i, :] for them, and the chosen free weights. ``ball``: bits,
    weights (Q, K, V of each layer) and inputs as integers to be divided by 2^bits, outputs, columns, rows
    (or null: all), and for chosen rows the determinant as [mantissa, exponent of 2].
upper.kind
    ``slice``, ``virtual``, ``layers``, ``coordinates``, ``parameters``: value. ``symmetry``: value, orbit_dim,
    parametrization, prime, weights. ``equations``: value, flattening, rank, equations, prime, weights.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import flint
import numpy as np

from m2bridge.linear.modular import eliminate
from m2bridge.linear.residues import Field
from m2bridge.models import DeepLightning, Model
from m2bridge.models.derivatives import jacobian
from m2bridge.rank.attention import AttentionRank, draw, draw_inputs
from m2bridge.rank.ball import draw_dyadic, enclosure, minor_determinant
from m2bridge.rank.block import assemble, lay_out
from m2bridge.rank.rings import FieldRing
from m2bridge.rank.slices import AttentionSlice
from m2bridge.results import Evidence

if TYPE_CHECKING:
    from m2bridge.analyses.dimension.witnesses import Found

VERSION = 1
_PLAIN_MAP = re.compile(r"map:(?!.*@)[\w,\s]+->[\w\s+*^/;()-]+", re.ASCII)
"""Maps that are written out in their spec, with plain names: what the checker can read."""
LARGEST_DETERMINANT = 1200
_LARGEST_PLAIN = 300

Document = dict[str, Any]


def certificate_for(
    model: Model, shape: AttentionSlice | None, found: Found, uppers: list[Evidence], *, seed: int
) -> Document | None:
    """The certificate of a proved dimension, or None where the format has no words for its proof."""
    value = min(item.value for item in uppers)
    if getattr(model, "parametrization", None) == "virtual":
        return None
    if found.ball is not None and shape is not None:
        lower: Document | None = _ball(shape, found, seed)
    elif found.attention is not None and shape is not None:
        lower = _attention(shape, found)
    else:
        lower = _jacobian(model, found, seed)
    upper = next(
        (u for item in _by_simplicity(uppers) if item.value == value and (u := _upper(model, item))), None
    )
    if lower is None or upper is None:
        return None
    body: Document = {
        "version": VERSION,
        "model": model.spec,
        "claim": {"image_dim": value, "parameters": model.parameter_dim},
        "lower": lower,
        "upper": upper,
    }
    return {**body, "sha256": digest(body)}


def digest(body: Document) -> str:
    """sha256 of a document as JSON with sorted keys and no spaces."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


_ORDER = ("parameters", "ambient", "slice", "virtual", "layers", "symmetry", "equations")


def _by_simplicity(uppers: list[Evidence]) -> list[Evidence]:
    known = [item for item in uppers if item.witness in _ORDER]
    return sorted(known, key=lambda item: _ORDER.index(item.witness))


def _upper(model: Model, item: Evidence) -> Document | None:
    if item.witness in ("parameters", "slice", "virtual", "layers"):
        return {"kind": item.witness, "value": item.value}
    if item.witness == "ambient":
        return {"kind": "coordinates", "value": item.value}
    if item.witness == "symmetry":
        source = (
            "attention" if item.method.endswith("(A, V)") else getattr(model.free, "parametrization", None)
        )
        return {
            "kind": "symmetry",
            "value": item.value,
            "orbit_dim": item.detail["orbit_dim"],
            "parametrization": source,
            "prime": item.prime,
            "weights": item.detail["weights"],
        }
    if item.witness == "equations":
        names = ("flattening", "rank", "equations", "weights")
        return {
            "kind": "equations",
            "value": item.value,
            "prime": item.prime,
            **{name: item.detail[name] for name in names},
        }
    return None


def _jacobian(model: Model, found: Found, seed: int) -> Document | None:
    """A minor of the Jacobian; a network is differentiated at inputs even if its coordinates were used before."""
    point = found.point
    free = model.free
    if (
        point is None
        or point.elimination is None
        or (isinstance(free, DeepLightning) and free.parametrization == "virtual")
    ):
        return None
    inputs, pivots = point.inputs, point.elimination
    if inputs is None and free.input_shape is not None:
        outputs = math.prod(free.output_shape or ())
        count = math.ceil(point.rank / outputs) + 2
        for _ in range(8):
            rng = np.random.default_rng([seed, point.p, 3])
            inputs = rng.integers(0, point.p, size=(count, *free.input_shape))
            values, matrix = jacobian(free, point.weights, inputs, point.p)
            pivots = eliminate(matrix, point.p)
            if pivots.rank >= point.rank:
                break
            count = 2 * count
        else:
            return None
    else:
        values, matrix = jacobian(free, point.weights, inputs, point.p)
    rows, columns = list(pivots.pivot_rows), list(pivots.pivot_columns)
    minor = matrix[np.ix_(rows, columns)]
    if inputs is not None:
        rows, used = _compress(rows, math.prod(free.output_shape or ()))
        inputs = inputs[used]
    if free.input_shape is None and not _PLAIN_MAP.fullmatch(free.spec):
        return None
    return {
        "kind": "jacobian",
        "prime": point.p,
        "weights": {name: value.tolist() for name, value in point.weights.items()},
        "inputs": None if inputs is None else inputs.tolist(),
        "rows": rows,
        "columns": columns,
        "values": [int(values[row]) % point.p for row in pivots.pivot_rows],
        "determinant": determinant(minor, point.p),
    }


def _compress(rows: list[int], per_input: int) -> tuple[list[int], list[int]]:
    """Rows counted through the inputs that they use, and these inputs: a certificate holds nothing it does not need."""
    used = sorted({row // per_input for row in rows})
    place = {n: k for k, n in enumerate(used)}
    return [place[row // per_input] * per_input + row % per_input for row in rows], used


def determinant(minor: np.ndarray, p: int) -> int | None:
    """Determinant modulo p, in 0..p-1; None for large ones, whose rank alone is checked."""
    if len(minor) > LARGEST_DETERMINANT:
        return None
    if len(minor) == 0:
        return 1
    return int(flint.nmod_mat(*minor.shape, [int(x) % p for x in minor.ravel()], p).det())


def _attention(shape: AttentionSlice, found: Found) -> Document:
    rank = found.attention
    assert rank is not None
    value = None
    if len(rank.pivot_columns) + rank.outputs * rank.token_rank <= LARGEST_DETERMINANT:
        value = _attention_determinant(shape, rank)
    return {
        "kind": "attention",
        "prime": rank.p,
        "seed": rank.seed,
        "samples": 1
        + max(last for last in (*rank.token_pivots, *(t for _, t in rank.pivot_rows))) // shape.tokens,
        "outputs": rank.outputs,
        "tokens": list(rank.token_pivots),
        "rows": [list(pair) for pair in rank.pivot_rows],
        "columns": list(rank.pivot_columns),
        "determinant": value,
    }


def _attention_determinant(shape: AttentionSlice, rank: AttentionRank) -> int | None:
    """Determinant of the minor: rows (i, token pivot), then the chosen rows; columns V[i, :], then the chosen ones."""
    if rank.token_rank < shape.widths[-2]:
        return None
    inputs = draw_inputs(shape, rank.p, rank.seed, rank.samples)
    field = Field(rank.p)
    weights = draw(shape, rank.p, rank.seed)
    blocks, z = assemble(shape, FieldRing(field), field.residues, weights, inputs, rank.outputs, 1)
    matrix = lay_out(shape, blocks, z, rank.outputs, rank.pivot_columns)
    count = rank.samples * shape.tokens
    rows = [i * count + token for i in range(rank.outputs) for token in rank.token_pivots]
    rows += [i * count + token for i, token in rank.pivot_rows]
    return determinant(field.canonical(matrix[rows]), rank.p)


def _ball(shape: AttentionSlice, found: Found, seed: int) -> Document:
    proof = found.ball
    assert proof is not None
    point = draw_dyadic(shape, proof.samples, proof.seed, proof.bits)
    width = len(proof.columns) + proof.outputs * shape.widths[-2]
    rows, value = None, None
    if width <= _LARGEST_PLAIN:
        bits = proof.precision
        mid = enclosure(shape, point, proof.outputs, proof.columns, bits).mid
        rows = _minor(mid)
        count = len(point.inputs) * shape.tokens
        tokens, used = _compress([row % count for row in rows], shape.tokens)
        kept = len(used) * shape.tokens
        rows = [row // count * kept + token for row, token in zip(rows, tokens, strict=True)]
        point = replace(point, inputs=point.inputs[used])
        mantissa, exponent = minor_determinant(shape, point, proof.outputs, proof.columns, rows)
        value = [str(mantissa), exponent]
    weights = [[matrix.tolist() for matrix in layer] for layer in point.layers]
    if shape.widths[-1] < shape.widths[-2]:
        weights[-1][2][proof.outputs :] = [[0] * shape.widths[-2]] * (shape.widths[-1] - proof.outputs)
    return {
        "kind": "ball",
        "bits": proof.bits,
        "weights": weights,
        "inputs": point.inputs.tolist(),
        "outputs": proof.outputs,
        "columns": list(proof.columns),
        "rows": rows,
        "determinant": value,
    }


def _minor(matrix: np.ndarray) -> list[int]:
    """Rows of a well conditioned square minor, by elimination with row pivoting."""
    work = matrix.copy()
    order = np.arange(len(work))
    columns = work.shape[1]
    largest = np.maximum(np.abs(matrix).max(axis=1), 1e-300)
    for k in range(columns):
        pivot = k + int(np.argmax(np.abs(work[k:, k]) / largest[order[k:]]))
        if pivot != k:
            work[[k, pivot]], order[[k, pivot]] = work[[pivot, k]], order[[pivot, k]]
        work[k + 1 :, k:] -= np.outer(work[k + 1 :, k] / work[k, k], work[k, k:])
    return sorted(int(i) for i in order[:columns])
