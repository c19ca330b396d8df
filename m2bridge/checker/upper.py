"""Checker: upper bounds, counted again. Standard library only.

slice       K = [I | *], lightning: one entry of Q is 1; for equal hidden widths not above d_0 also V_1 = [I | *] and
            V_2 = ... = V_(l-1) = I. Symmetries move a dense set of weights there; the free entries are counted.
virtual     M_i is d_0 x d_0 of rank <= min(a_i, d_0..d_(i-1)) and L is d_l x d_0 of rank <= the least width; after tokens of
            rank one (t = 1, or a layer with a = 1) only symmetric parts are seen. The same saving applies to the slice.
layers      a layer is sum_h A_h (x) V_h; its variety has the least of three dimensions (see :func:`layers_count`).
symmetry    derivatives of the group action at a point; each is verified to lie in the kernel of the Jacobian there.
equations   a flattening has rank <= k rho on sums of k powers; its conormal forms are counted where that rank is met.
"""

from __future__ import annotations

import itertools
import re
from math import factorial, prod
from typing import Any

from m2bridge.checker.modular import eliminate, kernel, require_prime
from m2bridge.checker.networks import Dual, Network, Rejected, product, size, total

Numbers = dict[str, list[int]]


def check_upper(network: Network, claim: Any) -> int:
    """The upper bound that a claim proves."""
    kind, value = claim["kind"], claim["value"]
    fields = {
        "symmetry": {"orbit_dim", "parametrization", "prime", "weights"},
        "equations": {"prime", "flattening", "rank", "equations", "weights"},
    }
    if set(claim) != {"kind", "value"} | fields.get(kind, set()):
        raise Rejected(f"the upper bound by {kind} has other fields than these")
    if kind == "parameters":
        found = network.parameter_dim()
    elif kind == "coordinates":
        found = network.coordinate_count()
    elif kind == "slice":
        found = slice_count(network)
    elif kind == "virtual":
        found = virtual_count(network)
    elif kind == "layers":
        found = layers_count(network)
    elif kind == "symmetry":
        found = _symmetry(network, claim)
    elif kind == "equations":
        found = _equations(network, claim)
    else:
        raise Rejected(f"an upper bound by {kind!r} is not known")
    if found != value or isinstance(value, bool):
        raise Rejected(f"the upper bound by {kind} is {found}, the certificate says {value}")
    return found


# -- slices and virtual weights ---------------------------------------------------------------------------


def _plain(network: Network) -> tuple[list[int], list[int], int, bool]:
    if not network.plain_attention:
        raise Rejected("slices and virtual weights are for attention with one head and no skip connections")
    w = network.widths
    return (
        w,
        [min(a, d) for a, d in zip(network.ranks, w, strict=False)],
        len(w) - 1,
        network.family == "softmax",
    )


def slice_count(network: Network) -> int:
    w, ranks, depth, softmax = _plain(network)
    count = sum(r * (d - r) + r * d - (0 if softmax else 1) for r, d in zip(ranks, w, strict=False))
    hidden = w[1:-1]
    if depth >= 2 and all(h == hidden[0] for h in hidden) and w[0] >= hidden[0]:
        return count + hidden[0] * (w[0] - hidden[0]) + w[-1] * w[-2]
    return count + sum(a * b for a, b in itertools.pairwise(w))


def virtual_count(network: Network) -> int:
    w, ranks, depth, softmax = _plain(network)
    least = min(w)
    last = least * (w[0] + w[-1] - least)
    if softmax and network.tokens == 1:
        return last
    count, saved = last - (0 if softmax else depth), 0
    for i in range(depth):
        one = not softmax and (network.tokens == 1 or 1 in ranks[:i])
        count += _matrices(w[0], min(network.ranks[i], *w[: i + 1]), one)
        saved += _matrices(w[i], ranks[i], False) - _matrices(w[i], ranks[i], one)
    return min(count, slice_count(network) - saved)


def layers_count(network: Network) -> int:
    """Each layer is sum_h A_h (x) V_h: H pairs up to scaling, or a matrix of rank <= H, or what Sym^2 shows of it."""
    if network.family not in ("lightning", "deep-lightning"):
        raise Rejected("layers are counted for lightning attention")
    count = 0
    for a, heads, (d, e) in zip(
        network.ranks, network.heads, itertools.pairwise(network.widths), strict=True
    ):
        h = min(heads, d * d, d * e)
        pairs = heads * (_matrices(d, min(a, d), network.tokens == 1) + d * e - 1)
        count += min(pairs, h * (d * d + d * e - h), d * e * d * (d + 1) // 2)
    return count


def _matrices(d: int, r: int, symmetric: bool) -> int:
    s = min(2 * r, d)
    full = r * (2 * d - r)
    return min(full, s * d - s * (s - 1) // 2) if symmetric else full


# -- symmetries -------------------------------------------------------------------------------------------


def _symmetry(network: Network, claim: Any) -> int:
    p = require_prime(claim["prime"])
    way = claim["parametrization"]
    if network.attention:
        if way not in ("weights", "attention"):
            raise Rejected("attention is parametrized by weights or by attention matrices")
        if way == "attention" and any(a < d for a, d in zip(network.ranks, network.widths, strict=False)):
            raise Rejected("(A, V) has the same image only when every a_i >= d_(i-1)")
    elif way is not None:
        raise Rejected("this family has one parametrization")
    shapes = network.shapes(way if network.attention else None)
    point = {name: flat(claim["weights"][name], shape, p) for name, shape in shapes.items()}
    if set(claim["weights"]) != set(shapes):
        raise Rejected("the weights of the symmetry's point have other names")
    vectors = list(_generators(network, point, shapes, p))
    _verify_kernel(network, point, shapes, vectors, p)
    rank = eliminate(vectors, p)[0] if vectors else 0
    if rank != claim["orbit_dim"]:
        raise Rejected(f"the orbit has dimension {rank} modulo p, the certificate says {claim['orbit_dim']}")
    return sum(size(shape) for shape in shapes.values()) - rank


def flat(value: Any, shape: tuple[int, ...], p: int | None = None) -> list[int]:
    """A nested list of integers, checked against its shape, as one list."""
    if not shape:
        if not isinstance(value, int) or isinstance(value, bool) or (p is not None and not 0 <= value < p):
            raise Rejected(f"{value!r} is not a residue")
        return [value]
    if not isinstance(value, list) or len(value) != shape[0]:
        raise Rejected("an array has another shape than the model says")
    return [entry for part in value for entry in flat(part, shape[1:], p)]


def nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    """The inverse of :func:`flat`."""
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _generators(network: Network, w: Numbers, shapes: dict[str, tuple[int, ...]], p: int) -> Any:
    """Derivatives of the group actions at the point, as flat vectors."""

    def vector(moved: Numbers) -> list[int]:
        parts = [moved.get(name, [0] * size(shape)) for name, shape in shapes.items()]
        return [x % p for part in parts for x in part]

    def row(name: str, h: int, to: int, source: int, factor: int) -> list[int]:
        """factor * E_(to, source) applied from the left to head h of a weight."""
        rows, columns = shapes[name][-2:]
        result = [0] * len(w[name])
        start = h * rows * columns
        for j in range(columns):
            result[start + to * columns + j] = factor * w[name][start + source * columns + j]
        return result

    def column(name: str, to: int, source: int, factor: int) -> list[int]:
        """factor * (weight * E_(source, to)) in every head."""
        columns = shapes[name][-1]
        result = [0] * len(w[name])
        for i in range(0, len(w[name]), columns):
            result[i + to] = factor * w[name][i + source]
        return result

    if network.family in ("mlp", "linear", "convolution"):
        names = list(shapes)
        r = network.activation
        for first, second in itertools.pairwise(names):
            if network.family == "convolution":
                yield vector({first: w[first], second: [-r * x for x in w[second]]})
                continue
            n = shapes[first][0]
            pairs = itertools.product(range(n), repeat=2) if r == 1 else ((i, i) for i in range(n))
            for i, j in pairs:
                yield vector({first: row(first, 0, i, j, 1), second: column(second, j, i, -r)})
        return
    marks = [""] if network.family == "lightning" else [str(i) for i in range(1, len(network.ranks) + 1)]
    for k, mark in enumerate(marks):
        heads = network.heads[k]
        V = f"V{mark}"
        if f"Q{mark}" in shapes:
            Q, K, a = f"Q{mark}", f"K{mark}", network.ranks[k]
            for h, i, j in itertools.product(range(heads), range(a), range(a)):
                yield vector({K: row(K, h, i, j, 1), Q: row(Q, h, j, i, -1)})
        scaled = f"Q{mark}" if f"Q{mark}" in shapes else f"A{mark}"
        if network.family != "softmax":
            block, other = len(w[scaled]) // heads, len(w[V]) // heads
            mixed = scaled.startswith("A")
            for h, g in itertools.product(range(heads), repeat=2):
                if h != g and not mixed:
                    continue
                moved = [0] * len(w[scaled])
                moved[h * block : (h + 1) * block] = w[scaled][g * block : (g + 1) * block]
                back = [0] * len(w[V])
                back[g * other : (g + 1) * other] = [-x for x in w[V][h * other : (h + 1) * other]]
                yield vector({scaled: moved, V: back})
    if network.skip:
        return
    for k in range(len(marks) - 1):
        V, after = f"V{marks[k]}", marks[k + 1]
        for i, j in itertools.product(range(network.widths[k + 1]), repeat=2):
            moved_v = [
                sum(parts)
                for parts in zip(*(row(V, h, i, j, 1) for h in range(network.heads[k])), strict=True)
            ]
            changed: Numbers = {V: moved_v, f"V{after}": column(f"V{after}", j, i, -1)}
            for letter in "QK":
                if f"{letter}{after}" in shapes:
                    changed[f"{letter}{after}"] = column(f"{letter}{after}", j, i, -1)
            if f"A{after}" in shapes:
                A = f"A{after}"
                left = [
                    sum(parts)
                    for parts in zip(*(row(A, h, j, i, -1) for h in range(network.heads[k + 1])), strict=True)
                ]
                changed[A] = [x + y for x, y in zip(left, column(A, j, i, -1), strict=True)]
            yield vector(changed)


def _verify_kernel(
    network: Network, w: Numbers, shapes: dict[str, tuple[int, ...]], vectors: list[list[int]], p: int
) -> None:
    """Each derivative of the action leaves the outputs at two inputs unchanged to first order."""
    if network.family == "softmax" or not vectors:
        return
    duals: dict[str, Any] = {}
    start = 0
    for name, shape in shapes.items():
        count = size(shape)
        numbers = [Dual(w[name][i], [v[start + i] for v in vectors], p) for i in range(count)]
        duals[name] = nested(numbers, shape)
        start += count
    for shift in (3, 11):
        x = test_input(network, p, shift)
        for output in network.outputs(duals, x):
            if any(d % p for d in output.d):
                raise Rejected("a derivative of the symmetries moves the function: the action is another one")


def test_input(network: Network, p: int, shift: int) -> Any:
    """An input without special structure."""
    if network.attention:
        n, t = network.widths[0], network.tokens
        return [
            [Dual((i + shift) ** 3 + 7 * (j + 1) ** 2 + i * j * shift, [], p) for j in range(t)]
            for i in range(n)
        ]
    n = network.layer_sizes()[0] if network.family == "convolution" else network.widths[0]
    return [Dual((i + shift) ** 3 + i, [], p) for i in range(n)]


# -- equations --------------------------------------------------------------------------------------------


def _equations(network: Network, claim: Any) -> int:
    p = require_prime(claim["prime"])
    if network.family in ("linear", "mlp") and network.activation == 1:
        return _matrix(network, claim, p)
    if (
        network.family != "mlp"
        or len(network.widths) != 3
        or network.activation < 2
        or p <= network.activation
    ):
        raise Rejected("flattenings are for perceptrons with one hidden layer")
    n, k, m = network.widths
    r = network.activation
    shapes = network.shapes()
    if set(claim["weights"]) != set(shapes):
        raise Rejected("the weights of the equations' point have other names")
    first, second = (flat(claim["weights"][name], shape, p) for name, shape in shapes.items())
    table, height, width = _flattening(claim["flattening"], n, m, r)
    exps = _monomials(n, r)
    point = []
    for j in range(m):
        for e in exps:
            binomial = factorial(r) // prod(factorial(x) for x in e)
            terms = [
                second[j * k + i] * prod(pow(first[i * n + v], e[v], p) for v in range(n)) % p
                for i in range(k)
            ]
            point.append(binomial * sum(terms) % p)
    single = [0] * len(point)
    single[0] = 1  # x_1^r in the first output: every term is equivalent to it
    big = (
        2**61 - 1
    )  # a term's flattening has entries 0, +-1 times factorials: its rank over QQ is found by minors
    rho = _rank_of_single(table, single, height, width, big)
    matrix = _evaluate(table, point, height, width, p)
    if claim["rank"] != k * rho or eliminate(matrix, p)[0] != k * rho or k * rho >= min(height, width):
        raise Rejected("the flattening does not have the rank that the certificate says")
    right = kernel(matrix, p, width)
    left = kernel([list(column) for column in zip(*matrix, strict=True)], p, height)
    forms = []
    for c in range(len(point)):
        entries = table.get(c, [])
        forms.append([sum(u[a] * v[b] * s for a, b, s in entries) % p for u in left for v in right])
    found = eliminate(forms, p)[0]
    if found != claim["equations"]:
        raise Rejected(f"there are {found} independent equations, the certificate says {claim['equations']}")
    return len(point) - found


def _matrix(network: Network, claim: Any, p: int) -> int:
    """A linear network is a product of matrices: of rank at most the least width, where (m - r)(n - r) minors are
    independent; they are counted at the point.
    """
    shapes = network.shapes()
    if set(claim["weights"]) != set(shapes) or claim["flattening"] != "matrix":
        raise Rejected("the weights of the equations' point have other names, or the flattening is not known")
    value: list[list[int]] = []
    for name, shape in shapes.items():
        matrix = nested(flat(claim["weights"][name], shape, p), shape)
        value = [[x % p for x in row] for row in product(matrix, value)] if value else matrix
    n, m, rank = network.widths[0], network.widths[-1], min(network.widths)
    if claim["rank"] != rank or eliminate(value, p)[0] != rank:
        raise Rejected("the product does not have the rank that the certificate says")
    right = kernel(value, p, n)
    left = kernel([list(column) for column in zip(*value, strict=True)], p, m)
    found = len(left) * len(right)  # tensor products of bases are independent
    if found != claim["equations"]:
        raise Rejected(f"there are {found} independent equations, the certificate says {claim['equations']}")
    return n * m - found


def _rank_of_single(table: Any, single: list[int], height: int, width: int, p: int) -> int:
    """Rank over QQ of the flattening of x_1^r. Only its first coordinate is used, and then each row and each column has
    at most one non-zero entry, so that the rank is the number of entries.
    """
    entries = table.get(0, [])
    rows, columns = [a for a, _, _ in entries], [b for _, b, _ in entries]
    if len(set(rows)) != len(rows) or len(set(columns)) != len(columns):
        raise Rejected("the flattening of a single term is not a permutation matrix")
    return len(entries)


def _evaluate(table: Any, point: list[int], height: int, width: int, p: int) -> list[list[int]]:
    matrix = [[0] * width for _ in range(height)]
    for c, entries in table.items():
        for a, b, s in entries:
            matrix[a][b] = (matrix[a][b] + s * point[c]) % p
    return matrix


def _monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    choices = itertools.combinations_with_replacement(range(n), degree)
    return sorted((tuple(c.count(v) for v in range(n)) for c in choices), reverse=True)


def _flattening(name: str, n: int, m: int, r: int) -> tuple[dict[int, list[tuple[int, int, int]]], int, int]:
    """Coordinate -> entries (row, column, integer); number of rows and of columns."""
    exps = {e: i for i, e in enumerate(_monomials(n, r))}
    table: dict[int, list[tuple[int, int, int]]] = {}

    def put(coordinate: int, a: int, b: int, e: tuple[int, ...], sign: int) -> None:
        table.setdefault(coordinate, []).append((a, b, sign * prod(factorial(x) for x in e)))

    match = re.fullmatch(r"catalecticant \(C\^(\d+) x S\^(\d+)\)\* -> S\^(\d+)", name)
    if match:
        s = int(match[2])
        if int(match[1]) != m or not 0 < s < r or int(match[3]) != r - s:
            raise Rejected(f"{name} is not a catalecticant of this network")
        rows, columns = _monomials(n, s), _monomials(n, r - s)
        for j, (a, u), (b, v) in itertools.product(range(m), enumerate(rows), enumerate(columns)):
            e = tuple(x + y for x, y in zip(u, v, strict=True))
            put(j * len(exps) + exps[e], j * len(rows) + a, b, e, 1)
        return table, m * len(rows), len(columns)
    q, s = (n - 1) // 2, (r - 1) // 2
    if name != f"Koszul flattening with Lambda^{q}" or m != 1 or r % 2 == 0 or r < 3 or n % 2 == 0:
        raise Rejected(f"the flattening {name!r} is not known")
    rows, columns = _monomials(n, s), _monomials(n, r - 1 - s)
    small, large = list(itertools.combinations(range(n), q)), list(itertools.combinations(range(n), q + 1))
    for (a, u), (c, chosen), i in itertools.product(enumerate(rows), enumerate(small), range(n)):
        if i in chosen:
            continue
        target = large.index(tuple(sorted((*chosen, i))))
        sign = (-1) ** sum(other < i for other in chosen)
        for b, v in enumerate(columns):
            e = tuple(x + y + (k == i) for k, (x, y) in enumerate(zip(u, v, strict=True)))
            put(exps[e], b * len(large) + target, a * len(small) + c, e, sign)
    return table, len(columns) * len(large), len(rows) * len(small)


__all__ = ["check_upper", "flat", "nested", "slice_count", "total", "virtual_count"]
