"""Maps whose critical points are counted: charts of their weights modulo gauge, and strata of the singular locus.

A chart is an affine space of weights that meets each general fiber in finitely many points. The directions that do not change a
function (for a cone: that change it by a factor) are the kernel of the Jacobian at a random point, so no symmetry has to be known
by name. Weights that all symmetries by scaling treat alike form a class (a matrix, a filter); a chart fixes as many entries, or
random linear forms, of each class as these directions move there, class after class: then the common gauges, scalings and GL
between layers, are fixed to a single point.

Strata are known for one layer of attention with t >= 2, d >= 2 and (d' >= 2 or a >= 2): singular where rk A * rk V <= 1, and for
1 < a < d where rk A < a (Theorem 3.4 of arXiv:2408.17221 as `m2bridge verify` repairs it). For d' = a = 1 the function is a
vector times a product of two linear forms: singular, if d >= 3, where the product is a square. For linear networks: matrices of
rank below the narrowest width. The origin is the vertex of the cone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.families import Attention, Linear, Model
from m2bridge.families.attention_strata import all_orbits, group_moves
from m2bridge.families.evaluation import random_image_points
from m2bridge.families.polynomial_map import PolynomialMap
from m2bridge.families.symbolic import rational_variables, sparse, symbolic_map, variable_array
from m2bridge.frontends.polynomials import terms_of
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.residues import Mod
from m2bridge.questions.over_q import kernel

Matrix = NDArray[np.int64]
_HELD = 30
"""Entries that a chart holds are random in 1..30: small, so that the same chart can be used over QQ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Weights base + s * directions, s in affine space; when `scaled`, the scale of the function is a further unknown.

    `fixed` says how many equations the chart has in each class of weights, in the order in which they were fixed.
    """

    base: tuple[int, ...]
    directions: tuple[tuple[int, ...], ...]
    scaled: bool
    fixed: tuple[int, ...]

    @property
    def parameters(self) -> dict[str, object]:
        """Values for the templates."""
        return {"base": self.base, "directions": self.directions, "scaled": self.scaled}

    @property
    def unknowns(self) -> int:
        return len(self.directions) + self.scaled


def whole_space(weights: int) -> Chart:
    """Return the chart of all weights, with no gauge fixed."""
    unit = np.eye(weights, dtype=np.int64)
    return Chart(base=(0,) * weights, directions=_rows(unit), scaled=False, fixed=())


@dataclass(frozen=True)
class ExpandedMap:
    """Map given by its polynomials, with the symmetries that follow from its monomials and one random point."""

    model: Model
    p: int
    seed: int

    @cached_property
    def polynomials(self) -> tuple[dict[tuple[int, ...], Any], ...]:
        return symbolic_map(self.model)

    @cached_property
    def as_map(self) -> PolynomialMap:
        """Expand the network's program to the same map by polynomials: for Macaulay2 another definition than its template."""
        variables = tuple(f"w{i}" for i in range(self.model.parameter_count))
        terms = tuple(terms_of(f) for f in self.polynomials)
        return PolynomialMap(name=self.model.spec, variables=variables, polynomials=terms)

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """Return exponents of all monomials of all coordinates, each once."""
        monomials = {monomial for f in self.polynomials for monomial in f}
        return np.array(sorted(monomials), dtype=np.int64).reshape(len(monomials), self.model.parameter_count)

    @cached_property
    def scalings(self) -> NDArray[np.object_]:
        """Return an integer basis of the gradings of the weights in which all coordinates have one degree."""
        if len(self.exponents) <= 1:
            return np.eye(self.model.parameter_count, dtype=np.int64).astype(object)
        return kernel(self.exponents[1:] - self.exponents[0])

    @cached_property
    def cone(self) -> bool:
        """Return whether some scaling of the weights multiplies the function by a factor."""
        return len(self.exponents) > 0 and bool(np.any(self.scalings @ self.exponents[0].astype(object)))

    @cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Return the weights in classes that all scalings treat alike, in their order."""
        by_scaling: dict[tuple[int, ...], list[int]] = {}
        for i, column in enumerate(self.scalings.T.tolist()):
            by_scaling.setdefault(tuple(column), []).append(i)
        return tuple(tuple(indices) for indices in by_scaling.values())

    @cached_property
    def point(self) -> tuple[Matrix, Matrix]:
        """Return the function of random weights over F_p, and the Jacobian there, with one row per coordinate."""
        weights = self.model.draw_weights(np.random.default_rng([self.seed, 21]), self.p)
        lifted = {name: Mod(array, self.p) for name, array in weights.items()}
        return self.model.coordinates(lifted).values, self.model.coordinate_jacobian(lifted).values

    @cached_property
    def image_dim(self) -> int:
        """Return the rank at that point: the dimension of the image over F_p, except with small probability."""
        return rank_mod(self.point[1], self.p)

    @cached_property
    def span_dim(self) -> int:
        """Return the dimension of the span of all functions, from random ones over F_p."""
        rng, count = np.random.default_rng([self.seed, 51]), self.model.coordinate_count + 5
        return rank_mod(random_image_points(self.model, rng, count, self.p), self.p)

    def idle(self, *, scaled: bool) -> Matrix:
        """Directions of the weights at the point that leave the function as it is, or (scaled) up to its scale; one per row."""
        value, jacobian = self.point
        table = np.concatenate([jacobian, -value[:, None]], axis=1) if scaled else jacobian
        return kernel_mod(table, self.p)[0][:, : jacobian.shape[1]]

    def class_degrees(self) -> tuple[int, ...] | None:
        """Return the degree of the map in each class; None where it is not homogeneous in one of them."""
        degrees = [set(self.exponents[:, list(indices)].sum(axis=1).tolist()) for indices in self.classes]
        return None if any(len(d) != 1 for d in degrees) else tuple(d.pop() for d in degrees)

    def product_of_projective_spaces(self, chart: Chart) -> bool:
        """Return whether the chart is one of a product of projective spaces, one for each class: every class has one equation."""
        return self.cone and set(chart.fixed) == {1} and self.class_degrees() is not None

    def chart_for(self, *, special: bool, general: bool) -> Chart:
        """Choose a random chart for a `special` loss, whose critical points may lie where entries vanish; else held entries.

        It has lower degree, without a scale, where a `general` loss is not critical at the zero function in it: a class in which
        the map is linear, with more weights than the rest of the product has dimensions.
        """
        chart = self.chart(dense=special)
        degrees = self.class_degrees()
        if not general or degrees is None or not self.product_of_projective_spaces(chart):
            return chart
        top = sum(len(indices) - 1 for indices in self.classes)
        large = [
            i for i, indices in enumerate(self.classes) if degrees[i] == 1 and 2 * len(indices) > top + 1
        ]
        if not large:
            return chart
        unscaled = self.chart(dense=False, scaled=False, last=large[0])
        # unknowns in which the equations are linear come last: a quarter faster on M(2,2,2)
        inside = set(self.classes[large[0]])
        rows = sorted(unscaled.directions, key=lambda row: next(i for i, x in enumerate(row) if x) in inside)
        return replace(unscaled, directions=tuple(rows))

    def chart(self, *, dense: bool, scaled: bool = True, last: int | None = None) -> Chart:
        """Return a chart that holds entries of the weights, or (dense) random linear forms of them.

        The scale of a cone is an unknown of its own unless `scaled` is False; the class `last` is fixed last.
        """
        rng, p = np.random.default_rng([self.seed, 22, dense]), self.p
        scaled = scaled and self.cone
        forms: list[Matrix] = []
        idle, fixed = self.idle(scaled=scaled), []
        for k in sorted(range(len(self.classes)), key=lambda i: i == last):
            indices = self.classes[k]
            inside = idle[:, list(indices)]
            # the last entries that the idle directions move independently
            pivots = kernel_mod(inside[:, ::-1], p)[1] if inside.size else ()
            class_forms = np.zeros((len(pivots), self.model.parameter_count), dtype=np.int64)
            if dense:
                class_forms[:, list(indices)] = rng.integers(1, p, size=(len(pivots), len(indices)))
            else:
                class_forms[np.arange(len(pivots)), [indices[len(indices) - 1 - i] for i in pivots]] = 1
            if pivots:
                left = kernel_mod((Mod(idle, p) @ Mod(class_forms.T.copy(), p)).values.T, p)[0]
                idle = (Mod(left, p) @ Mod(idle, p)).values if len(left) else idle[:0]
            forms += list(class_forms)
            fixed.append(len(pivots))
        return self._solutions(forms, rng, dense=dense, scaled=scaled, fixed=tuple(fixed))

    def _solutions(self, forms: list[Matrix], rng: np.random.Generator, *, dense: bool, **more: Any) -> Chart:
        """Return the weights at which the forms have some random values; entries that are held are small."""
        count, p = self.model.parameter_count, self.p
        if not forms:
            return replace(whole_space(count), **more)
        directions, pivots, free = kernel_mod(np.stack(forms), p)
        base = np.zeros(count, dtype=np.int64)
        if dense:
            # a random point, moved along the directions until its free entries are zero
            base = rng.integers(1, p, size=count)
            moved = (Mod(base[None, list(free)], p) @ Mod(directions, p)).values[0] if len(free) else 0
            base = (base - moved) % p
        else:
            base[list(pivots)] = rng.integers(1, _HELD, size=len(pivots))
        return Chart(base=tuple(base.tolist()), directions=_rows(directions), **more)


def _rows(matrix: Matrix) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


# -- strata ----------------------------------------------------------------------------------------------


def known_strata(model: Model) -> tuple[tuple[str, Model], ...] | None:
    """Names and maps of the closures of the strata but the origin, largest first; None where none are known."""
    layer, widths = model.knowledge.layer, model.knowledge.matrix_product
    if layer is not None and layer.coordinate_system == "segre" and layer.d >= 2:
        return _attention(layer)
    if widths is not None:
        ends, narrow = (widths[0], widths[-1]), min(widths)
        ranks = range(narrow - 1, 0, -1) if narrow < min(ends) else range(0)
        return tuple((f"rank {s}", Linear(widths=(ends[0], s, ends[1]))) for s in ranks)
    return None


def orbit_pairs_dim(model: Model, p: int) -> int | None:
    """Return for one layer by (A, V) the dimension of pairs (point of P(A) x P(V), idle direction up to scale), orbit by orbit.

    On an orbit of dimension o in the product where the differential of the cone loses k >= 1 there are o + k - 1 dimensions of
    them; -1 when it never loses. There are finitely many orbits, so this settles every size. None for other models.
    """
    layer = model.knowledge.layer
    if layer is None or layer.parametrization != "attention" or layer.a < layer.d:
        return None
    d, dp, full = layer.d, layer.dp, layer.d**2 + layer.d * layer.dp - 1
    largest = -1
    for orbit in all_orbits(d, dp, d):
        if orbit.is_zero:
            continue
        A, V = orbit.representative(d, dp)
        lost = full - rank_mod(model.coordinate_jacobian({"A": Mod(A, p), "V": Mod(V, p)}).values, p)
        if lost:
            largest = max(largest, rank_mod(group_moves(A, V), p) - 2 + lost - 1)
    return largest


def _attention(model: Attention) -> tuple[tuple[str, Model], ...]:
    a = model.attention_rank
    strata: list[tuple[str, Model]] = []
    if 1 < a < model.d:
        strata += [(f"rk A <= {s}", model.with_rank(s).by_weights.leanest) for s in range(a - 1, 0, -1)]
    if (a, model.dp) != (1, 1) and not (1 < a < model.d and model.dp == 1):
        strata.append(("rk A = rk V = 1", _rank_one(model)))
    if model.d >= 3:
        strata.append(("rk A = rk V = 1, the same direction", _rank_one(model, square=True)))
    return tuple(strata)


def _rank_one(model: Attention, *, square: bool = False) -> PolynomialMap:
    """Return p (x) q (x) S in Segre coordinates, S a product of two linear forms of the second token, or the square of one."""
    d, dp = model.d, model.dp
    forms = {"s": 3} if d == 2 and not square else {"k": d} if square else {"k": d, "h": d}
    names = [f"{name}{i}" for name, n in {"q": d, "r": dp, **forms}.items() for i in range(n)]
    variables = rational_variables(names)
    one = variables[0] ** 0
    q, r, *rest = (variable_array(variables, (n,)) for n in (d, dp, *forms.values()))
    k, h = rest[0], rest[-1]
    quadric = list(k)
    if "s" not in forms:
        quadric = [k[i] * h[j] + (k[j] * h[i] if i != j else 0) for i in range(d) for j in range(i, d)]
    # the order of the coordinates: output row, variable of the first token, monomials x_i x_j with i <= j of the second
    terms = [one * r[n] * q[m] * c for n in range(dp) for m in range(d) for c in quadric]
    return PolynomialMap(
        name=f"rank one stratum of {model.spec}",
        variables=tuple(names),
        polynomials=tuple(terms_of(sparse(f)) for f in terms),
    )
