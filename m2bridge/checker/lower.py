"""Checker: lower bounds, computed again at the recorded point. Standard library up to 300 columns, NumPy above."""

from __future__ import annotations

from typing import Any

from m2bridge.checker.fixed import Balls, check_minor
from m2bridge.checker.modular import eliminate, require_prime
from m2bridge.checker.networks import Dual, Network, Rejected, evaluate, product, size, transpose
from m2bridge.checker.upper import flat, nested

PLAIN = 300
"""Matrices with at most this many columns are handled without NumPy."""

FIELDS = {
    "jacobian": {"kind", "prime", "weights", "inputs", "rows", "columns", "values", "determinant"},
    "attention": {"kind", "prime", "seed", "samples", "outputs", "tokens", "rows", "columns", "determinant"},
    "ball": {"kind", "bits", "weights", "inputs", "outputs", "columns", "rows", "determinant"},
}


def check_lower(network: Network, claim: Any) -> int:
    """The lower bound that a claim proves."""
    kind = claim["kind"]
    if kind not in FIELDS or set(claim) != FIELDS[kind]:
        raise Rejected(f"the lower bound by {kind!r} is not known, or has other fields than these")
    if kind == "jacobian":
        return _jacobian(network, claim)
    if not network.plain_attention or (kind == "ball") != (network.family == "softmax"):
        raise Rejected(f"a lower bound by {kind} is not for this model")
    return _attention(network, claim) if kind == "attention" else _ball(network, claim)


def _indices(values: Any, below: int) -> list[int]:
    if not isinstance(values, list) or any(not isinstance(v, int) or isinstance(v, bool) for v in values):
        raise Rejected("rows and columns are lists of integers")
    if len(set(values)) != len(values) or any(not 0 <= v < below for v in values):
        raise Rejected("a row or a column is repeated or out of range")
    return values


def _natural(value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Rejected(f"{value!r} is not a number between 1 and {most}")
    return value


def _compare(found: int, recorded: Any, large: bool) -> None:
    if recorded is None and large:
        return
    if found != recorded or isinstance(recorded, bool):
        raise Rejected("the determinant of the minor is another one")


# -- any polynomial model ---------------------------------------------------------------------------------


def _jacobian(network: Network, claim: Any) -> int:
    p = require_prime(claim["prime"])
    if network.family == "softmax":
        raise Rejected("a softmax network has no Jacobian modulo p")
    shapes = network.shapes(network.free_parametrization)
    if set(claim["weights"]) != set(shapes):
        raise Rejected("the weights have other names than the model's")
    columns = _indices(claim["columns"], sum(size(shape) for shape in shapes.values()))
    place = {column: k for k, column in enumerate(columns)}
    duals: dict[str, Any] = {}
    start = 0
    for name, shape in shapes.items():
        numbers = []
        for i, x in enumerate(flat(claim["weights"][name], shape, p)):
            seed = [0] * len(columns) if start + i in place else []
            if seed:
                seed[place[start + i]] = 1
            numbers.append(Dual(x, seed, p))
        duals[name] = nested(numbers, shape)
        start += size(shape)
    rows = claim["rows"]
    if network.family == "map":
        if claim["inputs"] is not None:
            raise Rejected("a map has no inputs")
        names = dict(zip(network.arguments["variables"], duals["x"], strict=True))
        values: list[Any] = [evaluate(node, names, p) for node in network.arguments["polynomials"]]
    else:
        values = []
        wanted = {row // _output_count(network) for row in _indices(rows, 10**9)}
        for n, x in enumerate(claim["inputs"]):
            count = _output_count(network)
            if n not in wanted:
                values += [None] * count
                continue
            values += network.outputs(duals, _input(network, x, p))
    rows = _indices(rows, len(values))
    if len(rows) != len(columns):
        raise Rejected("a minor has as many rows as columns")
    if [values[row].x for row in rows] != claim["values"]:
        raise Rejected("the outputs at the recorded point are other ones")
    minor = [values[row].d or [0] * len(columns) for row in rows]
    if len(columns) > PLAIN:
        from m2bridge.checker.dense import rank_and_determinant

        rank, determinant = rank_and_determinant(minor, p)
    else:
        rank, determinant = eliminate(minor, p)
    if rank != len(columns):
        raise Rejected("the minor is zero modulo p")
    _compare(determinant, claim["determinant"], len(columns) > PLAIN)
    return rank


def _output_count(network: Network) -> int:
    if network.attention:
        return network.widths[-1] * network.tokens
    return 1 if network.family == "convolution" else network.widths[-1]


def _input(network: Network, x: Any, p: int) -> Any:
    if network.attention:
        shape: tuple[int, ...] = (network.widths[0], network.tokens)
    else:
        shape = (network.layer_sizes()[0] if network.family == "convolution" else network.widths[0],)
    return nested([Dual(v, [], p) for v in flat(x, shape, p)], shape)


# -- lightning attention on the slice ---------------------------------------------------------------------


def splitmix(seed: int, tag: int, count: int, p: int) -> list[int]:
    """The first numbers of stream (seed, tag), modulo p."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    start = mix(((seed << 32) + tag) & mask)
    return [mix((start + (k + 1) * 0x9E3779B97F4A7C15) & mask) % p for k in range(count)]


def slice_point(network: Network, p: int, seed: int) -> list[list[list[list[int]]]]:
    """Weights (Q, K, V) of each layer on the gauge slice, for a seed."""
    w = network.widths
    ranks = [min(a, d) for a, d in zip(network.ranks, w, strict=False)]
    depth = len(ranks)
    shapes = [s for a, d, e in zip(ranks, w, w[1:], strict=False) for s in ((a, d), (a, d), (e, d))]
    numbers = iter(splitmix(seed, 1, sum(r * c for r, c in shapes), p))
    matrices = [[[next(numbers) for _ in range(c)] for _ in range(r)] for r, c in shapes]
    layers = [matrices[k : k + 3] for k in range(0, len(matrices), 3)]
    hidden = w[1:-1]
    narrow = depth >= 2 and all(h == hidden[0] for h in hidden) and w[0] >= hidden[0]
    for k, (query, key, value) in enumerate(layers):
        query[0][0] = 1
        _unit(key, ranks[k])
        if narrow and k < depth - 1:
            _unit(value, w[k + 1])
        if k == depth - 1 and w[-1] >= w[-2]:
            layers[k][2] = [[int(i == j) for j in range(w[-2])] for i in range(w[-1])]
    return layers


def _unit(matrix: list[list[int]], columns: int) -> None:
    for i, row in enumerate(matrix):
        row[:columns] = [int(i == j) for j in range(columns)]


def free_weights(network: Network) -> list[tuple[int, int, int, int]]:
    """The free entries (layer, 0 Q | 1 K | 2 V, row, column) of the slice without the last V, in order."""
    w = network.widths
    ranks = [min(a, d) for a, d in zip(network.ranks, w, strict=False)]
    depth, softmax = len(ranks), network.family == "softmax"
    hidden = w[1:-1]
    narrow = depth >= 2 and all(h == hidden[0] for h in hidden) and w[0] >= hidden[0]
    found = []
    for k, r in enumerate(ranks):
        found += [(k, 0, i, j) for i in range(r) for j in range(w[k]) if softmax or (i, j) != (0, 0)]
        found += [(k, 1, i, j) for i in range(r) for j in range(r, w[k])]
        if k < depth - 1:
            first = (w[k + 1] if k == 0 else w[k]) if narrow else 0
            found += [(k, 2, i, j) for i in range(w[k + 1]) for j in range(first, w[k])]
    return found


def _attention(network: Network, claim: Any) -> int:
    p = require_prime(claim["prime"])
    w, t = network.widths, network.tokens
    samples, outputs = _natural(claim["samples"], 10**7), _natural(claim["outputs"], min(w[-1], w[-2]))
    seed = claim["seed"]
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise Rejected("the seed is not a natural number below 2^32")
    tokens = _indices(claim["tokens"], samples * t)
    free = free_weights(network)
    columns = _indices(claim["columns"], len(free))
    flat_rows = _indices([i * samples * t + token for i, token in claim["rows"]], outputs * samples * t)
    chosen = [(i, token) for i in range(outputs) for token in tokens]
    chosen += [divmod(row, samples * t) for row in flat_rows]
    if samples != 1 + max(token for _, token in chosen) // t:
        raise Rejected("the number of samples is not the one that the rows use")
    if len(set(chosen)) != len(chosen) or len(flat_rows) != len(columns):
        raise Rejected("the rows of the minor are repeated, or not as many as its columns")
    width = outputs * w[-2] + len(columns)
    layers = slice_point(network, p, seed)
    if width > PLAIN:
        from m2bridge.checker.dense import attention_matrix, rank_and_determinant

        minor = attention_matrix(network, layers, p, seed, outputs, chosen, [free[c] for c in columns])
        rank, determinant = rank_and_determinant(minor, p)
    else:
        minor = _attention_rows(network, layers, p, seed, outputs, chosen, [free[c] for c in columns])
        rank, determinant = eliminate(minor, p)
    if rank != len(chosen):
        raise Rejected("the minor is zero modulo p")
    square = len(chosen) == width
    _compare(determinant, claim["determinant"], large=width > 1200 or not square)
    # each further output row adds its rows of V, which nothing else sees
    return (w[-1] - outputs) * len(tokens) + len(chosen)


def _attention_rows(
    network: Network, layers: Any, p: int, seed: int, outputs: int, chosen: Any, free: Any
) -> list[list[int]]:
    w, t = network.widths, network.tokens
    place = {entry: outputs * w[-2] + k for k, entry in enumerate(free)}
    place |= {(len(layers) - 1, 2, i, j): i * w[-2] + j for i in range(outputs) for j in range(w[-2])}
    width = outputs * w[-2] + len(free)

    def dual(k: int, which: int, i: int, j: int, x: int) -> Dual:
        seed_vector = [0] * width if (k, which, i, j) in place else []
        if seed_vector:
            seed_vector[place[k, which, i, j]] = 1
        return Dual(x, seed_vector, p)

    weights = [
        [
            [[dual(k, which, i, j, x) for j, x in enumerate(row)] for i, row in enumerate(matrix)]
            for which, matrix in enumerate(layer)
        ]
        for k, layer in enumerate(layers)
    ]
    per = w[0] * t
    last = max(token for _, token in chosen) // t + 1
    stream = splitmix(seed, 2, last * per, p)
    rows: dict[tuple[int, int], list[int]] = {}
    wanted = set(chosen)
    for n in sorted({token // t for _, token in chosen}):
        x: Any = [[Dual(stream[n * per + i * t + s], [], p) for s in range(t)] for i in range(w[0])]
        for k, (query, key, value) in enumerate(weights):
            scores = product(transpose(product(key, x)), product(query, x))
            use = value[:outputs] if k == len(weights) - 1 else value
            x = product(use, product(x, scores))
        for i in range(outputs):
            for s in range(t):
                if (i, n * t + s) in wanted:
                    rows[i, n * t + s] = x[i][s].d
    return [rows[pair] for pair in chosen]


# -- softmax ----------------------------------------------------------------------------------------------


def _ball(network: Network, claim: Any) -> int:
    w, t = network.widths, network.tokens
    bits = _natural(claim["bits"], 200)
    outputs = _natural(claim["outputs"], min(w[-1], w[-2]))
    free = free_weights(network)
    columns = _indices(claim["columns"], len(free))
    samples = len(claim["inputs"])
    inputs = [nested(flat(x, (w[0], t)), (w[0], t)) for x in claim["inputs"]]
    layers = _slice_weights(network, claim["weights"], bits, outputs)
    width = outputs * w[-2] + len(columns)
    chosen = [free[c] for c in columns]
    if width > PLAIN:
        from m2bridge.checker.dense import softmax_full_rank

        if claim["rows"] is not None or claim["determinant"] is not None:
            raise Rejected("above 300 columns the whole matrix is used, and no determinant is recorded")
        softmax_full_rank(network, layers, inputs, bits, outputs, chosen)
    else:
        rows = _indices(claim["rows"], outputs * samples * t)
        if len(rows) != width:
            raise Rejected("a minor has as many rows as columns")
        balls = Balls(192 + 96 * len(layers))
        check_minor(balls, network, layers, inputs, bits, outputs, chosen, rows, claim["determinant"])
    return w[-1] * w[-2] + len(columns)


def _slice_weights(network: Network, weights: Any, bits: int, outputs: int) -> Any:
    """Weights of the right shapes; the last V must be [I; 0] when it has at least as many rows as columns.

    When it has fewer, its rows below the outputs are not used, and must be zero: nothing is free in a certificate.
    """
    w = network.widths
    ranks = [min(a, d) for a, d in zip(network.ranks, w, strict=False)]
    if len(weights) != len(ranks):
        raise Rejected("there are weights of another number of layers")
    layers = []
    for k, layer in enumerate(weights):
        query, key, value = layer
        shapes = ((ranks[k], w[k]), (ranks[k], w[k]), (w[k + 1], w[k]))
        layers.append([nested(flat(m, s), s) for m, s in zip((query, key, value), shapes, strict=True)])
    unit = [[(1 << bits) * int(i == j) for j in range(w[-2])] for i in range(w[-1])]
    if w[-1] >= w[-2] and layers[-1][2] != unit:
        raise Rejected("the last V is not [I; 0]")
    if w[-1] < w[-2] and any(any(row) for row in layers[-1][2][outputs:]):
        raise Rejected("rows of the last V that are not used are not zero")
    return layers
