"""Upper bounds of the dimension, each by an exact argument or by a theorem.

* symmetry: the weights minus the dimension of an orbit of the proved symmetries, whose infinitesimal action has at
  one integer point modulo p a rank that a generic orbit can only exceed;
* slice: the free entries of the gauge slice (:func:`m2bridge.families.attention_knowledge.gauge_slice`);
* virtual: the virtual weights (M_i, L) of Henry, Marchetti and Kohn, Eq. 8, in their determinantal varieties;
* layers: the sum of bounds for the functions of the layers, up to changes of basis between layers; also for several heads and
  skip connections;
* found: the weights minus the rank of the symmetries by structure (:mod:`m2bridge.symmetry.structure`);
* ambient: the number of target coordinates;
* span: the dimension of the linear span of the coordinates, expanded over QQ, if that is cheap and the bounds do not meet;
* found: vector fields and compositions that are searched in the program (:mod:`m2bridge.bounds.searched`), if the other bounds do
  not meet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import comb, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.bounds.equations import flattening_bound
from m2bridge.bounds.program_upper import coordinate_count
from m2bridge.bounds.upper_bound import Argument, ModelBound
from m2bridge.bounds.virtual_weights import virtual_dim_upper
from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import stream_point
from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Mod, Model
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.attention_knowledge import attention_dim
from m2bridge.families.perceptron import Perceptron
from m2bridge.families.symbolic import coefficient_rank, symbolic_map
from m2bridge.linear.modular import rank_mod
from m2bridge.programs.points import WEIGHTS, Held
from m2bridge.programs.program import Program, degrees
from m2bridge.symmetry.fields import VectorField
from m2bridge.symmetry.structure import structural_rank, structure

MOST_SYMMETRY_ENTRIES = 10_000_000  # entries of the matrix of all generators at a point
MOST_FIELD_TERMS = 200_000
"""A certificate lists vector fields with at most this many terms."""
_MOST_EXPANDED, _MOST_MONOMIALS = 100, 20_000
"""Largest numbers of coordinates and of monomials that are expanded, in about a second."""


def proved_bound(witness: str, method: str, value: int, **detail: Any) -> Evidence:
    """State an upper bound that an exact argument proves."""
    return Evidence(
        "image_dim", value, witness, method, certainty=Certainty.PROVED, relation="<=", detail=detail
    )


def upper_bounds(model: Model, *, p: int, seed: int) -> list[ModelBound]:
    """List the upper bounds of a model that need no search."""
    bounds = [_parameters(model)]
    network = model.knowledge.attention
    if network is not None and not (network.skip or network.multi_head):
        gauge = model.free.knowledge.gauge
        bounds.append(slice_bound(model.free, p=p, seed=seed))
        bounds.append(virtual_bound(network.by_weights, gauge, analytic=network.softmax))
    bounds += symmetry_bounds(model, p=p, seed=seed)
    closed = model.knowledge.dimension_bound
    if closed is not None and closed.value is not None and closed.argument is not None:
        bounds.append(ModelBound(proved_bound("layers", closed.argument, closed.value), {"kind": "layers"}))
    if (ambient := ambient_dim(model)) is not None:
        evidence = proved_bound("ambient", "number of target coordinates", ambient)
        bounds.append(ModelBound(evidence, _ambient_argument(model, ambient)))
    if model.knowledge.perceptron is not None:
        bounds += _by_widths(model.knowledge.perceptron, p=p, seed=seed)
    structural = structural_bound(model, p=p, seed=seed)
    if structural.value < min((b.value for b in bounds if b.argument is not None), default=inf):
        bounds.append(structural)
    if closed is not None and closed.value is not None and closed.value < min(b.value for b in bounds):
        bounds.append(ModelBound(_by_theorem("closed upper bound", closed.value, closed.citation)))
    return bounds


def trivial_bounds(model: Model) -> list[Evidence]:
    """State the bounds that take no time: the numbers of weights and of target coordinates."""
    bounds = [proved_bound("parameters", "number of weights", model.free.parameter_count)]
    if (ambient := ambient_dim(model)) is not None:
        bounds.append(proved_bound("ambient", "number of target coordinates", ambient))
    return bounds


def _by_theorem(method: str, value: int, theorem: str) -> Evidence:
    """State a bound by a theorem that certificates cannot express; it never counts as a second witness."""
    return replace(proved_bound("literature", method, value, theorem=theorem), certainty=Certainty.THEOREM)


# -- counts ----------------------------------------------------------------------------------------------


def _ambient_argument(model: Model, count: int) -> Argument | None:
    """Name the argument of the number of coordinates; None if degrees alone, which the checker counts, show less."""
    if model.free.coordinate_system == "segre":
        return {"kind": "layers"}
    return {"kind": "coordinates"} if coordinate_count(model.free.program) <= count else None


def _parameters(model: Model) -> ModelBound:
    value = model.parameter_dim
    evidence = proved_bound("parameters", "dimension of the space of weights", value)
    argument = {"kind": "parameters"} if model.free.parameter_count == value else None
    if model.constraints.has_equations:
        return ModelBound(evidence, argument)
    # The dimension was computed at one point; another component might be larger.
    return ModelBound(replace(evidence, certainty=Certainty.PROBABLE), argument)


def ambient_dim(model: Model) -> int | None:
    """Return the number of target coordinates; None if the functions have none, or too many."""
    try:
        return model.coordinate_count
    except (NotPolynomialError, OutOfReachError):
        return None


def span_bound(model: Model) -> ModelBound | None:
    """Count linearly independent coordinates, as polynomials in the weights over QQ; None if these are large."""
    n, degree = model.parameter_count, degrees(model.program)[1]
    if not model.polynomial or ambient_dim(model) is None or model.coordinate_count > _MOST_EXPANDED:
        return None
    if comb(n + degree, degree) > _MOST_MONOMIALS:
        return None
    start = time.perf_counter()
    method = "linearly independent coordinates, expanded over QQ"
    evidence = proved_bound("span", method, coefficient_rank(symbolic_map(model)))
    return ModelBound(replace(evidence, seconds=time.perf_counter() - start, ancestry="program"))


def _by_widths(network: Perceptron, *, p: int, seed: int) -> Iterator[ModelBound]:
    """Bound by the widths alone: matrices of bounded rank, or sums of few powers; the program is not used."""
    widths, r = network.widths, network.r
    if r == 1:
        rank = min(widths)
        value = rank * (widths[0] + widths[-1] - rank)
        theorem = "dimension of determinantal varieties"
        yield ModelBound(_by_theorem(f"matrices of rank <= {rank}", value, theorem))
    elif len(widths) == 3 and (flat := flattening_bound(*widths, r, p=p, seed=seed)) is not None:
        evidence = _by_theorem(flat.method, flat.value, "ranks of flattenings bound sums of powers")
        yield ModelBound(replace(evidence, prime=p))


def slice_bound(model: Model, *, p: int, seed: int) -> ModelBound:
    """Count the free entries of the gauge slice, onto which the symmetries move a dense set of weights."""
    fixed = "K = [I | *]" + (", one entry of each Q" if model.polynomial else "")
    if any(name.startswith("V") for name in model.knowledge.gauge.masks):
        fixed += ", V_1 = [I | *], V_2, ..., V_(l-1) = I"
    free = model.parameter_count - model.knowledge.gauge.count
    evidence = proved_bound("slice", "free weights of the gauge slice", free, fixed=fixed)
    return ModelBound(evidence, _symmetry_argument(model, p, _slice_point(model, seed)))


def virtual_bound(sizes: AttentionNetwork, held: Held, *, analytic: bool) -> ModelBound:
    """Bound the dimension by that of the virtual weights (M_i, L) in determinantal varieties, up to scaling.

    M_i = L_(i-1)^T A_i L_(i-1) is d_0 x d_0 of rank at most min(a_i, d_0, ..., d_(i-1)), L is d_l x d_0 of
    rank at most the least width; l scalings (Eq. 13) act on them in the lightning case. When a token matrix
    before layer i has rank one, which is so for t = 1 and after a layer with a = 1, the scores are
    (y^T A_i y) v v^T and depend on the symmetric part of A_i only, of rank at most 2 a_i. The same count is
    made on the slice, where it gives better bounds for networks of decreasing widths.
    """
    widths, ranks, t = sizes.widths, sizes.ranks, sizes.t
    effective = [min(a, d) for a, d in zip(ranks, widths[:-1], strict=True)]
    least = min(widths)
    last = least * (widths[0] + widths[-1] - least)
    if analytic and t == 1:
        evidence = proved_bound("virtual", "one token: the network is the linear map L", last)
        return ModelBound(evidence, {"kind": "virtual"})
    on_virtual = last - (0 if analytic else len(ranks))
    saved = 0
    seen_symmetric = False
    for i, a in enumerate(ranks):
        only_symmetric = not analytic and (t == 1 or 1 in effective[:i])
        seen_symmetric |= only_symmetric
        on_virtual += attention_dim(min(a, *widths[: i + 1]), widths[0], symmetric=only_symmetric)
        full = attention_dim(a, widths[i])
        saved += full - attention_dim(a, widths[i], symmetric=only_symmetric)
    text = "virtual weights (M, L) in their determinantal varieties" + ("" if analytic else ", up to scaling")
    if seen_symmetric:
        text += "; symmetric parts where tokens have rank one"
    free = sizes.parameter_count - held.count
    by_flags = virtual_dim_upper(widths, ranks) - (0 if analytic else len(ranks))
    value = min(on_virtual, free - saved)
    if by_flags < value:
        text = text.replace("in their determinantal varieties", "counted by the flag of their row spaces")
    return ModelBound(proved_bound("virtual", text, min(value, by_flags)), {"kind": "virtual"})


# -- symmetries ------------------------------------------------------------------------------------------


def symmetry_bounds(model: Model, *, p: int, seed: int) -> Iterator[ModelBound]:
    """Subtract from the weights the rank of the infinitesimal symmetries at a random point over F_p.

    If every a_i >= d_(i-1), the parametrization by (A, V) has the same image and may have more symmetries (the
    mixing of heads); then it is also used.
    """
    sources: list[Model] = [model.free]
    network = model.knowledge.attention
    if (
        network is not None
        and network.numbered
        and network.polynomial
        and network.parametrization == "weights"
    ):
        by_matrices = network.by_attention
        sources += [] if by_matrices.constrained else [by_matrices]
    for source in sources:
        start = time.perf_counter()
        rank = symmetry_rank(source, p=p, seed=seed)
        if rank is None:
            continue
        point = symmetry_point(source, p=p, seed=seed)
        names = [f"{item.group}: {item.name}" for item in source.knowledge.symmetries]
        text = "weights minus rank of the infinitesimal symmetries"
        method = text if source is model.free else f"{text} of (A, V)"
        evidence = proved_bound(
            "symmetry", method, source.parameter_count - rank, symmetries=names, source=source.spec, orbit_dim=rank,
            parameters=source.parameter_count, weights={name: value.tolist() for name, value in point.items()},
        )  # fmt: skip
        evidence = replace(evidence, prime=p, seconds=time.perf_counter() - start)
        yield ModelBound(evidence, _ranked_at(source, p, point, rank, seed) if source is model.free else None)


def _ranked_at(
    model: Model, p: int, point: Mapping[str, NDArray[np.int64]], rank: int, seed: int
) -> Argument:
    """Return the argument by a rank of the symmetries; at a point of the slice, which is shorter, if the rank is attained
    there.
    """
    if model.knowledge.gauge.count == rank:
        return _symmetry_argument(model, p, _slice_point(model, seed))
    entries = [int(entry) for name in model.parameters for entry in point[name].reshape(-1)]
    return _symmetry_argument(model, p, {"entries": entries})


def _symmetry_argument(model: Model, p: int, point: Argument) -> Argument:
    """Name the groups and a point at which their generators have the needed rank; on the slice they are nearly triangular."""
    groups = [symmetry.document for symmetry in model.knowledge.symmetries]
    return {"kind": "symmetries", "groups": groups, "prime": p, "weights": point}


def _slice_point(model: Model, seed: int) -> Argument:
    return stream_point(model.program, seed, WEIGHTS, model.knowledge.gauge)


def structural_bound(model: Model, *, p: int, seed: int) -> ModelBound:
    """Subtract from the weights the rank of the symmetries that follow from the structure of the program."""
    start, program = time.perf_counter(), model.free.program
    rank = structural_rank(program, p=p, seed=seed)
    method = "weights minus the rank of symmetries by structure"
    evidence = proved_bound("found", method, program.parameter_count - rank, orbit_dim=rank)
    evidence = replace(evidence, prime=p, seconds=time.perf_counter() - start, ancestry="program")
    return ModelBound(evidence, _structural_argument(program, p, seed) if rank else {"kind": "parameters"})


def listed_fields(program: Program) -> list[VectorField]:
    """List the vector fields by structure; none if they have too many terms."""
    fields: list[VectorField] = []
    terms = 0
    for field in structure(program).fields():
        terms += len(field.terms)
        if terms > MOST_FIELD_TERMS:
            return []
        fields.append(field)
    return fields


def _structural_argument(program: Program, p: int, seed: int) -> Argument | None:
    """Name the vector fields and the point at which they have the needed rank; None if there are too many."""
    fields = [field.document for field in listed_fields(program)]
    if not fields:
        return None
    point = {"seed": seed, "stream": WEIGHTS, "fixed": []}
    return {"kind": "fields", "groups": [], "fields": fields, "prime": p, "weights": point}


def symmetry_rank(model: Model, *, p: int, seed: int) -> int | None:
    """Return the rank over F_p of the infinitesimal symmetries at a random point; None if there are too many of them."""
    size = sum(symmetry.dim for symmetry in model.knowledge.symmetries)
    if size * model.parameter_count > MOST_SYMMETRY_ENTRIES:
        return None
    if not model.knowledge.symmetries:
        return 0
    weights = {name: Mod(value, p) for name, value in symmetry_point(model, p=p, seed=seed).items()}
    rows = [item.generators(weights).values for item in model.knowledge.symmetries]
    return rank_mod(np.concatenate(rows, axis=0), p)


def symmetry_point(model: Model, *, p: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Draw the point at which the symmetries of a model are ranked."""
    return model.draw_weights(np.random.default_rng([seed, 5]), p)
