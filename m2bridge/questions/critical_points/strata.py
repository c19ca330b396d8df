"""Strata of the singular locus, where they are known, each as a map into the same coordinates.

One layer of attention: singular where rk A * rk V <= 1, and for 1 < a < d where rk A < a (Theorem 3.4 of arXiv:2408.17221 as
`m2bridge verify` repairs it); linear networks: matrices of rank below the narrowest width. The origin is the vertex of the cone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models import Lightning, Linear, Mod, Model
from m2bridge.models.custom import PolynomialMap, terms_of
from m2bridge.models.symbolic import rational_variables, sparse, variable_array
from m2bridge.questions.orbits import all_orbits
from m2bridge.questions.source import leanest


def known_strata(model: Model) -> tuple[tuple[str, Model], ...] | None:
    """Names and maps of the closures of the strata but the origin, largest first; None where none are known."""
    if isinstance(model, Lightning) and model.coordinate_system == "segre" and model.d >= 2:
        return _attention(model)
    if isinstance(model, Linear):
        ends, narrow = (model.widths[0], model.widths[-1]), min(model.widths)
        ranks = range(narrow - 1, 0, -1) if narrow < min(ends) else range(0)
        return tuple((f"rank {s}", replace(model, widths=(ends[0], s, ends[1]))) for s in ranks)
    return None


def orbit_pairs_dim(model: Model, p: int) -> int | None:
    """For one layer by (A, V): the dimension of pairs (point of P(A) x P(V), idle direction up to scale), orbit by orbit.

    On an orbit of dimension o in the product where the differential of the cone loses k >= 1 there are o + k - 1 dimensions of
    them; -1 when it never loses. There are finitely many orbits, so this settles every size. None for other models.
    """
    if not isinstance(model, Lightning) or model.parametrization != "attention" or model.a < model.d:
        return None
    d, dp, full = model.d, model.dp, model.d**2 + model.d * model.dp - 1
    found = -1
    for orbit in all_orbits(d, dp, d):
        if orbit.is_zero:
            continue
        A, V = orbit.representative(d, dp)
        lost = full - rank_mod(model.coordinate_jacobian({"A": Mod(A, p), "V": Mod(V, p)}).values, p)
        if lost:
            unit = np.eye(d * d, dtype=np.int64).reshape(-1, d, d)
            moves = [np.append(g @ A, V @ g.T) for g in unit]
            moves += [np.append(A @ h, 0 * V) for h in unit]
            moves += [np.append(0 * A, k @ V) for k in np.eye(dp * dp, dtype=np.int64).reshape(-1, dp, dp)]
            found = max(found, rank_mod(np.stack(moves), p) - 2 + lost - 1)
    return found


def _attention(model: Lightning) -> tuple[tuple[str, Model], ...]:
    a = model.attention_rank
    found: list[tuple[str, Model]] = []
    if 1 < a < model.d:
        found += [
            (f"rk A <= {s}", leanest(replace(model, a=s, parametrization="weights")))
            for s in range(a - 1, 0, -1)
        ]
    if (a, model.dp) != (1, 1) and not (1 < a < model.d and model.dp == 1):
        found.append(("rk A = rk V = 1", _rank_one(model)))
    if model.d >= 3:
        found.append(("rk A = rk V = 1, the same direction", _rank_one(model, square=True)))
    return tuple(found)


def _rank_one(model: Lightning, *, square: bool = False) -> PolynomialMap:
    """p (x) q (x) S in Segre coordinates, S a product of two linear forms of the second token, or the square of one."""
    d, dp = model.d, model.dp
    forms = {"s": 3} if d == 2 and not square else {"k": d} if square else {"k": d, "h": d}
    names = [f"{name}{i}" for name, n in {"q": d, "r": dp, **forms}.items() for i in range(n)]
    variables = rational_variables(names)
    one = variables[0] ** 0
    q, r = variable_array(variables, (d,)), variable_array(variables, (dp,))
    quadric = _quadric({name: variable_array(variables, (n,)) for name, n in forms.items()}, d)
    # the order of the coordinates: output row, variable of the first token, monomials x_i x_j with i <= j of the second
    terms = [one * r[n] * q[m] * c for n in range(dp) for m in range(d) for c in quadric]
    return PolynomialMap(
        name=f"rank one stratum of {model.spec}",
        variables=tuple(names),
        polynomials=tuple(terms_of(sparse(f)) for f in terms),
    )


def _quadric(forms: Mapping[str, np.ndarray], d: int) -> list[Any]:
    if "s" in forms:
        return list(forms["s"])
    k, h = forms["k"], forms.get("h", forms["k"])
    return [k[i] * h[j] + (k[j] * h[i] if i != j else 0) for i in range(d) for j in range(i, d)]
