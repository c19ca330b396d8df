"""Programs and certificates made by hand for the tests of the checker, and the truth about them.

Nothing here uses the checker. Programs are written as text, read by the producer's parser, and run forwards with NumPy on dual
numbers modulo p (one direction for each weight); the checker runs its own reading of the same text backwards.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np

from m2bridge.certificates.produce import numbers, written
from m2bridge.programs import Program, parse_program

P = 2**61 - 1
SMALL = 8388593
Document = dict[str, Any]


class Text:
    """A program that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, words: str, *operands: str) -> str:
        self.lines.append(f"%{len(self.lines)} = " + " ".join([words, *operands]))
        return f"%{len(self.lines) - 1}"

    def done(self, *outputs: str) -> str:
        names = ["y", "z", "u"]
        tail = [f"output {name} {place}" for name, place in zip(names, outputs, strict=False)]
        return "\n".join(["m2bridge program 1", *self.lines, *tail]) + "\n"


def shape_text(shape: Sequence[int]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def attention_text(
    widths: Sequence[int],
    ranks: Sequence[int],
    t: int,
    *,
    heads: Sequence[int] | None = None,
    skip: bool = False,
    way: str = "weights",
    softmax: bool = False,
    single: bool = False,
) -> str:
    """Attention as people write it; `single` leaves the layer's number out of the names."""
    text, layers = Text(), len(ranks)
    heads = heads or [1] * layers
    names: list[dict[str, str]] = []
    for i in range(layers):
        mark, lead = "" if single else str(i + 1), [heads[i]] if heads[i] > 1 else []
        letters = {"A": [widths[i], widths[i]]} if way == "attention" else {}
        letters = letters or {"Q": [ranks[i], widths[i]], "K": [ranks[i], widths[i]]}
        letters["V"] = [widths[i + 1], widths[i]]
        names.append({c: text(f"weight {c}{mark} {shape_text(lead + s)}") for c, s in letters.items()})
    x = text(f"input X {shape_text([widths[0], t])}")
    for i in range(layers):
        w, h = names[i], heads[i] > 1
        if way == "attention":
            right = text("einsum abc,cd->abd" if h else "einsum ab,bc->ac", w["A"], x)
            scores = text("einsum ab,cad->cbd" if h else "einsum ab,ac->bc", x, right)
        else:
            form = "einsum abc,cd->abd" if h else "einsum ab,bc->ac"
            keys, queries = text(form, w["K"], x), text(form, w["Q"], x)
            scores = text("einsum abc,abd->acd" if h else "einsum ab,ac->bc", keys, queries)
        if softmax:
            scores = text("softmax 1", scores)
            mixed = text("einsum ab,cb->ac", x, scores)
        else:
            mixed = text("einsum ab,cbd->cad" if h else "einsum ab,bc->ac", x, scores)
        out = text("einsum abc,acd->bd" if h else "einsum ab,bc->ac", w["V"], mixed)
        x = text("add", x, out) if skip else out
    return text.done(x)


def mlp_text(widths: Sequence[int], r: int) -> str:
    text = Text()
    weights = [text(f"weight W{i} {shape_text([widths[i], widths[i - 1]])}") for i in range(1, len(widths))]
    x = text(f"input x {shape_text(widths[:1])}")
    for i, w in enumerate(weights):
        x = text(f"power {r}", x) if i and r > 1 else x
        x = text("einsum ab,b->a", w, x)
    return text.done(x)


def convolution_text(filters: Sequence[int], strides: Sequence[int], r: int) -> str:
    sizes = [1]
    for k, s in zip(filters[::-1], strides[::-1], strict=True):
        sizes.append((sizes[-1] - 1) * s + k)
    sizes = sizes[::-1]
    text = Text()
    weights = [text(f"weight w{i} {shape_text([k])}") for i, k in enumerate(filters, start=1)]
    x = text(f"input x {shape_text(sizes[:1])}")
    for i, (w, k, s) in enumerate(zip(weights, filters, strides, strict=True)):
        x = text(f"power {r}", x) if i and r > 1 else x
        places = ",".join(str(n * s + j) for n in range(sizes[i + 1]) for j in range(k))
        x = text("einsum ab,b->a", text(f"gather {shape_text([sizes[i + 1], k])} {places}", x), w)
    return text.done(x)


def segre_text(d: int, dp: int) -> str:
    """The Segre coordinates of one layer by (A, V), as a map without inputs."""
    text = Text()
    a, v = text(f"weight A {shape_text([d, d])}"), text(f"weight V {shape_text([dp, d])}")
    table = text("einsum ab,cd->cbad", a, v)  # n, m, i, j
    turned = text("einsum abcd->abdc", table)
    both = text("add", table, turned)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    places = [((n * d + m) * d + i) * d + j for n in range(dp) for m in range(d) for i, j in pairs]
    count = dp * d * len(pairs)
    gathered = text(f"gather {shape_text([dp * d, len(pairs)])} {','.join(map(str, places))}", both)
    half = " ".join("1/2" if i == j else "1" for i, j in pairs)
    scaled = text("multiply", gathered, text(f"constant {shape_text([len(pairs)])} {half}"))
    return text.done(text(f"reshape {shape_text([count])}", scaled))


# -- forward evaluation on dual numbers -------------------------------------------------------------------


class Dual:
    """An array modulo p with its derivatives; the first axis of `slope` is the direction. None: all zero."""

    def __init__(self, value: np.ndarray, slope: np.ndarray | None) -> None:
        self.value, self.slope = value, slope

    def moved(self, f: Callable[[np.ndarray], np.ndarray]) -> Dual:
        """A rearrangement of entries."""
        slope = (
            None
            if self.slope is None
            else np.stack([f(np.asarray(part, dtype=object)) for part in self.slope])
        )
        return Dual(f(self.value), slope)


def einsum(form: str, *parts: np.ndarray) -> np.ndarray:
    """numpy.einsum for objects, by loops over letters."""
    terms, result = form.split("->")
    letters = sorted(set(form) - set(",->"))
    lifted = []
    for term, part in zip(terms.split(","), parts, strict=True):
        order = [term.index(c) for c in sorted(term)]
        shape = [part.shape[term.index(c)] if c in term else 1 for c in letters]
        lifted.append(np.asarray(part, dtype=object).transpose(order).reshape(shape))
    total = lifted[0] if len(lifted) == 1 else lifted[0] * lifted[1]
    total = total.sum(axis=tuple(i for i, c in enumerate(letters) if c not in result), keepdims=True)
    kept = [c for c in letters if c in result]
    shape = [total.shape[letters.index(c)] for c in kept]
    return np.asarray(total, dtype=object).reshape(shape).transpose([kept.index(c) for c in result])


def run(
    program: Program, weights: Sequence[int], inputs: Sequence[int], p: int, slopes: bool = True,
    units: Sequence[int] = (),
) -> list[Dual]:  # fmt: skip
    """Values of all instructions modulo p; `units` are the values of all exponentials, in the order of the instructions."""
    count, at, start, exponentials = program.parameter_count, 0, 0, iter(units)
    found: list[Dual] = []
    for item in program.instructions:
        xs = [found[k] for k in item.operands]
        c = item.constants
        if item.operation == "weight":
            value = np.array(weights[at : at + item.size], dtype=object).reshape(item.shape)
            slope = np.zeros((count, item.size), dtype=object)
            slope[range(at, at + item.size), range(item.size)] = 1
            at += item.size
            value = np.asarray(value % p, dtype=object)  # NumPy makes numbers of arrays without axes
            found.append(Dual(value, slope.reshape(count, *item.shape) if slopes else None))
        elif item.operation == "input":
            value = np.array(inputs[start : start + item.size], dtype=object).reshape(item.shape)
            start += item.size
            found.append(Dual(np.asarray(value % p, dtype=object), None))
        elif item.operation == "constant":
            numbers = [q.numerator * pow(q.denominator, -1, p) % p for q in c]  # type: ignore[attr-defined]
            found.append(Dual(np.array(numbers, dtype=object).reshape(item.shape), None))
        elif item.operation in ("exp", "softmax"):
            drawn = np.array([next(exponentials) for _ in range(item.size)], dtype=object).reshape(item.shape)
            found.append(_exponential(item.operation, c, xs[0], drawn, p))
        elif item.operation == "sqrt":
            root = np.vectorize(lambda v: square_root(int(v), p), otypes=[object])(xs[0].value)
            half = np.vectorize(lambda v: pow(2 * int(v), -1, p), otypes=[object])(root)
            slope = xs[0].slope
            found.append(_reduced(Dual(root, None if slope is None else slope * half), p))
        elif item.operation == "reciprocal":
            inverse = np.vectorize(lambda v: pow(int(v), -1, p), otypes=[object])(xs[0].value)
            slope = xs[0].slope
            found.append(_reduced(Dual(inverse, None if slope is None else -slope * inverse**2), p))
        else:
            found.append(_reduced(_step(item.operation, c, xs, item.shape, p), p))
    return found


class NoRootError(Exception):
    """A radicand is zero or not a square modulo p."""


def square_root(x: int, p: int) -> int:
    """A square root modulo a prime p with p % 4 == 3."""
    assert p % 4 == 3
    root = pow(x, (p + 1) // 4, p)
    if x == 0 or (root * root - x) % p:
        raise NoRootError
    return root


def _exponential(operation: str, c: Any, x: Dual, y: np.ndarray, p: int) -> Dual:
    """exp or softmax where the exponentials are y: the derivative of e^u is e^u u'."""
    if operation == "exp":
        return _reduced(Dual(y, None if x.slope is None else x.slope * y), p)
    total = np.sum(y, axis=c[0], keepdims=True)
    y = y * np.vectorize(lambda v: pow(int(v), -1, p), otypes=[object])(total) % p
    if x.slope is None:
        return Dual(y, None)
    mean = np.sum(x.slope * y, axis=c[0] + 1, keepdims=True)
    return _reduced(Dual(y, (x.slope - mean) * y), p)


def _reduced(x: Dual, p: int) -> Dual:
    value = np.asarray(x.value % p, dtype=object)
    return Dual(value, None if x.slope is None else np.asarray(x.slope % p, dtype=object))


def _sum(parts: list[np.ndarray | None]) -> np.ndarray | None:
    kept = [part for part in parts if part is not None]
    return sum(kept[1:], kept[0]) if kept else None


def _step(operation: str, c: Any, xs: list[Dual], shape: Any, p: int) -> Dual:
    x = xs[0]
    if operation == "add":
        slopes = [_spread(y.slope, y.value.ndim, shape) for y in xs]
        return Dual(xs[0].value + xs[1].value, _sum(slopes))
    if operation == "multiply":
        y = xs[1]
        left, right = _spread(x.slope, x.value.ndim, shape), _spread(y.slope, y.value.ndim, shape)
        return Dual(
            x.value * y.value,
            _sum([None if left is None else left * y.value, None if right is None else x.value * right]),
        )
    if operation == "scale":
        q = c[0].numerator * pow(c[0].denominator, -1, p) % p
        return Dual(x.value * q, None if x.slope is None else x.slope * q)
    if operation == "power":
        power = np.vectorize(lambda v, n: pow(int(v), n, p), otypes=[object])
        slope = None if x.slope is None else x.slope * (power(x.value, c[0] - 1) * c[0] % p)
        return Dual(power(x.value, c[0]), slope)
    if operation == "einsum":
        terms, result = c
        if len(xs) == 1:
            return x.moved(lambda v: einsum(f"{terms[0]}->{result}", v))
        form, y = ",".join(terms) + "->" + result, xs[1]
        left = None if x.slope is None else np.stack([einsum(form, s, y.value) for s in x.slope])
        right = None if y.slope is None else np.stack([einsum(form, x.value, s) for s in y.slope])
        return Dual(einsum(form, x.value, y.value), _sum([left, right]))
    if operation == "reshape":
        return x.moved(lambda v: v.reshape(shape))
    if operation == "slice":
        grid = np.ix_(*[[s + i * step for i in range(n)] for s, n, step in c])
        return x.moved(lambda v: v[grid])
    if operation == "gather":
        return x.moved(lambda v: v.reshape(-1)[list(c)].reshape(shape))
    if operation == "concatenate":
        count = next((len(y.slope) for y in xs if y.slope is not None), 0)
        zeros = [
            y.slope if y.slope is not None else np.zeros((count, *y.value.shape), dtype=object) for y in xs
        ]
        slope = np.concatenate(zeros, axis=c[0] + 1) if count else None
        return Dual(np.concatenate([y.value for y in xs], axis=c[0]), slope)
    raise NotImplementedError(operation)


def _spread(slope: np.ndarray | None, ndim: int, shape: Any) -> np.ndarray | None:
    if slope is None:
        return None
    lifted = slope.reshape(len(slope), *[1] * (len(shape) - ndim), *slope.shape[1:])
    return np.broadcast_to(lifted, (len(slope), *shape))


# -- truth and certificates -------------------------------------------------------------------------------


def pivots(rows: Sequence[Sequence[int]], p: int) -> tuple[list[int], list[int]]:
    """Indices of rows and columns of a largest minor that is not zero modulo p."""
    kept: list[tuple[int, list[int]]] = []
    found: tuple[list[int], list[int]] = ([], [])
    for k, row in enumerate(rows):
        left = [int(x) % p for x in row]
        for column, other in kept:
            if left[column]:
                f = left[column]
                left = [(x - f * y) % p for x, y in zip(left, other, strict=True)]
        column = next((c for c, x in enumerate(left) if x), None)
        if column is not None:
            inverse = pow(left[column], -1, p)
            kept.append((column, [x * inverse % p for x in left]))
            found[0].append(k)
            found[1].append(column)
    return found


def jacobian(text: str, weights: Sequence[int], inputs: Sequence[Sequence[int]], p: int) -> list[list[int]]:
    """Rows (sample, flat output), columns flat weights."""
    program = parse_program(text)
    rows = []
    for x in inputs:
        values = run(program, weights, x, p)
        for _, place in program.outputs:
            slope = values[place].slope
            size = program.instructions[place].size
            flat = np.zeros((program.parameter_count, size)) if slope is None else slope.reshape(-1, size)
            rows += [[int(v) for v in column] for column in flat.T]
    return rows


def generic_rank(text: str, seed: int = 5, p: int = P) -> int:
    """The dimension, but for bad luck: the rank at random points, with samples until it is stable."""
    return len(generic_minor(text, seed, p)[3][0])


def generic_minor(text: str, seed: int = 5, p: int = P) -> tuple[list[int], list[list[int]], int, Any]:
    """Weights, inputs, the number of outputs, and the pivots of the Jacobian there; NoRootError if no roots are found."""
    program, rng = parse_program(text), random.Random(seed)
    size = sum(map(prod, program.input_shapes.values()))
    weights, inputs = [rng.randrange(p) for _ in range(program.parameter_count)], list[list[int]]()
    rows: list[list[int]] = []
    best, same = -1, 0
    roots = any(item.operation == "sqrt" for item in program.instructions)

    def exists(x: list[int]) -> bool:
        """Whether all square roots exist there."""
        try:
            return bool(run(program, weights, x, p, slopes=False))
        except NoRootError:
            return False

    for _ in range(30 if roots else 0):  # roots of weights alone exist at few weights
        if any(exists([rng.randrange(p) for _ in range(size)]) for _ in range(30)):
            break
        weights = [rng.randrange(p) for _ in range(program.parameter_count)]
    while True:
        more = [[rng.randrange(p) for _ in range(size)] for _ in range(2 if size else 1)]
        for _ in range(300 if roots else 0):
            if all(map(exists, more)):
                break
            more = [x if exists(x) else [rng.randrange(p) for _ in range(size)] for x in more]
        inputs += more
        rows += jacobian(text, weights, more, p)
        found = pivots(rows, p)
        same = same + 1 if len(found[0]) == best else 0
        best = len(found[0])
        if same >= 2 or best == program.parameter_count or not size:
            return weights, inputs, program.output_count, found


def minor(text: str, seed: int = 5, p: int = SMALL) -> tuple[Document, int]:
    weights, inputs, outputs, (rows, columns) = generic_minor(text, seed, p)
    samples = max([row // outputs for row in rows], default=0) + 1
    flat = [x for sample in inputs[:samples] for x in sample]
    return {
        "kind": "minor",
        "prime": p,
        "weights": {"entries": weights},
        "samples": samples,
        "inputs": {"entries": flat},
        "rows": [[row // outputs, row % outputs] for row in rows],
        "columns": columns,
    }, len(rows)


def document(text: str, spec: str | None, n: int, lower: Document, upper: Document) -> Document:
    return {
        "format": "m2bridge certificate",
        "version": 2,
        "statement": {"kind": "dimension", "dimension": n},
        "spec": spec,
        "program": text,
        "lower": lower,
        "upper": upper,
    }


def symmetries(
    text: str, groups: list[Document], seed: int = 3, p: int = SMALL, fixed: Any = None
) -> Document:
    weights = {"seed": seed, "stream": 1, "fixed": fixed or []}
    return {"kind": "symmetries", "groups": groups, "prime": p, "weights": weights}


def attention_groups(
    widths: Sequence[int],
    ranks: Sequence[int],
    *,
    heads: Sequence[int] | None = None,
    skip: bool = False,
    softmax: bool = False,
    single: bool = False,
) -> list[Document]:
    """GL(a_i) in each head, GL(d_i) between layers, scalings."""
    layers, groups = len(ranks), []
    heads = heads or [1] * layers
    marks = [""] if single else [str(i) for i in range(1, layers + 1)]
    for i, mark in enumerate(marks):
        star: list[Any] = ["*"] if heads[i] > 1 else []
        axes = {f"Q{mark}": [*star, 1, 0], f"K{mark}": [*star, -1, 0]}
        groups.append({"group": "gl", "size": ranks[i], "axes": axes})
        if softmax:
            continue
        if heads[i] > 1:
            axes = {f"Q{mark}": [1, 0, 0], f"V{mark}": [-1, 0, 0]}
            groups.append({"group": "torus", "size": heads[i], "axes": axes})
        else:
            groups.append({"group": "scaling", "weights": {f"Q{mark}": 1, f"V{mark}": -1}})
    for i in range(layers - 1):
        if not skip:
            before, after = [0] * (heads[i] > 1), [0] * (heads[i + 1] > 1)
            axes = {f"V{i + 1}": [*before, 1, 0], f"V{i + 2}": [*after, 0, -1]}
            axes |= {f"{c}{i + 2}": [*after, 0, -1] for c in "QK"}
            groups.append({"group": "gl", "size": widths[i + 1], "axes": axes})
    return groups


def dumped(value: Any) -> str:
    return json.dumps(value)


# -- large certificates -----------------------------------------------------------------------------------


def splitmix(seed: int, stream: int, count: int) -> list[int]:
    """The numbers of a stream, written with NumPy's wrapping integers."""

    def mix(z: np.ndarray) -> np.ndarray:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    start = mix(np.array([(seed << 32) + stream], dtype=np.uint64))
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    return [int(x) for x in mix(steps)]


def wide_attention(delta: int, a: int, t: int, seed: int = 7, p: int = SMALL) -> tuple[Document, int]:
    """A certificate of deep-lightning(d=[delta,delta,delta],a=[a,a],t=t) on the gauge slice, by its last layer."""
    text = attention_text([delta] * 3, [a, a], t)
    shapes = [(a, delta), (a, delta), (delta, delta)] * 2
    starts = np.cumsum([0, *[r * c for r, c in shapes]]).tolist()
    fixed: list[Any] = []
    for layer in range(2):
        query, key, value = starts[3 * layer : 3 * layer + 3]
        fixed.append([query, [1]])
        fixed += [[key + i * delta, [int(i == j) for j in range(a)]] for i in range(a)]
        fixed.append([value, np.eye(delta, dtype=int).ravel().tolist()])
    flat = [x % p for x in splitmix(seed, 1, starts[-1])]
    for start, values in fixed:
        flat[start : start + len(values)] = values
    Q1, K1, _, Q2, K2, _ = (
        np.array(flat[s : s + r * c], dtype=np.int64).reshape(r, c)
        for s, (r, c) in zip(starts, shapes, strict=False)
    )
    free = [
        start + i * delta + j
        for start, key in ((starts[0], 0), (starts[1], 1), (starts[3], 0), (starts[4], 1))
        for i in range(a)
        for j in range(delta)
        if (j >= a if key else (i, j) != (0, 0))
    ]
    rows_of_v = min(t, delta)
    samples = -(-(len(free) // rows_of_v + delta) // t) + 8
    X = np.array([x % p for x in splitmix(seed, 2, samples * delta * t)]).reshape(samples, delta, t)
    passed = []
    for Q, K in ((Q1, K1), (Q2, K2)):
        q, k = Q @ X % p, K @ X % p
        S = k.transpose(0, 2, 1) @ q % p
        passed.append((Q, K, X, q, k, S))
        X = X @ S % p
    seeds = np.zeros((rows_of_v, t, delta, t), dtype=np.int64)
    for r in range(rows_of_v):
        for c in range(t):
            seeds[r, c, r, c] = 1
    g = np.broadcast_to(seeds.reshape(1, -1, delta, t), (samples, rows_of_v * t, delta, t))
    parts = []
    for Q, K, *others in reversed(passed):
        y, q, k, S = (m[:, None] for m in others)
        gS = turn(y) @ g % p
        gq, gk = k @ gS % p, q @ turn(gS) % p
        parts = [gq @ turn(y) % p, gk @ turn(y) % p, *parts]
        g = (g @ turn(S) % p + turn(K) @ gk % p + turn(Q) @ gq % p) % p
    blocks = [part.reshape(samples, rows_of_v, t, -1) for part in parts]
    padding = np.zeros((samples, rows_of_v, t, delta * delta), dtype=np.int64)
    full = np.concatenate([*blocks[:2], padding, *blocks[2:], padding], axis=3)[..., free]
    table = full.transpose(1, 0, 2, 3).reshape(rows_of_v, samples * t, len(free))  # r, token, weight
    Z = X.transpose(1, 0, 2).reshape(delta, samples * t)
    tokens = _numpy_pivots(Z.T.copy(), p)
    basis = Z[:, tokens]
    coefficients = _solve(basis, Z, p)  # tokens x all
    reduced = table - np.stack([coefficients.T @ (part % p) % p for part in table[:, tokens]])
    candidates = [(r, x) for r in range(rows_of_v) for x in range(samples * t) if x not in set(tokens)]
    matrix = np.stack([reduced[r, x] for r, x in candidates]) % p
    rows = [candidates[i] for i in _numpy_pivots(matrix, p)]
    assert len(rows) == len(free), (len(rows), len(free))
    n = delta * delta + len(free)
    lower = {
        "kind": "last layer",
        "prime": p,
        "weights": {"seed": seed, "stream": 1, "fixed": fixed},
        "samples": samples,
        "inputs": {"seed": seed, "stream": 2, "fixed": []},
        "layer": "V2",
        "tokens": tokens,
        "rows": [list(row) for row in rows],
        "columns": free,
    }
    groups = attention_groups([delta] * 3, [a, a])
    upper = symmetries(text, groups, seed=seed, fixed=fixed)
    spec = f"deep-lightning(d=[{delta},{delta},{delta}],a=[{a},{a}],t={t})"
    return document(text, spec, n, lower, upper), n


def turn(m: np.ndarray) -> np.ndarray:
    return m.swapaxes(-1, -2)


def _numpy_pivots(matrix: np.ndarray, p: int) -> list[int]:
    """Rows that are independent, greedily by columns."""
    work, order, found = matrix % p, list(range(len(matrix))), 0
    for c in range(work.shape[1]):
        nonzero = np.flatnonzero(work[found:, c])
        if not len(nonzero):
            continue
        k = found + int(nonzero[0])
        work[[found, k]], (order[found], order[k]) = work[[k, found]], (order[k], order[found])
        work[found] = work[found] * pow(int(work[found, c]), -1, p) % p
        work[found + 1 :, c:] = (work[found + 1 :, c:] - np.outer(work[found + 1 :, c], work[found, c:])) % p
        found += 1
    return sorted(order[:found])


def _solve(basis: np.ndarray, targets: np.ndarray, p: int) -> np.ndarray:
    """x with basis x = targets modulo p, for an invertible basis."""
    n = len(basis)
    work = np.concatenate([basis, targets], axis=1) % p
    for c in range(n):
        k = c + int(np.flatnonzero(work[c:, c])[0])
        work[[c, k]] = work[[k, c]]
        work[c] = work[c] * pow(int(work[c, c]), -1, p) % p
        others = np.arange(n) != c
        work[others] = (work[others] - np.outer(work[others, c], work[c])) % p
    return work[:, n:]


# -- analytic programs ------------------------------------------------------------------------------------


def complex_outputs(program: Program, weights: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Flat outputs over the complex numbers, for derivatives by a tiny imaginary step."""
    found: list[np.ndarray] = []
    at = start = 0
    for item in program.instructions:
        xs, c = [found[k] for k in item.operands], item.constants
        if item.operation == "weight":
            value, at = weights[at : at + item.size].reshape(item.shape), at + item.size
        elif item.operation == "input":
            value, start = inputs[start : start + item.size].reshape(item.shape), start + item.size
        elif item.operation == "constant":
            value = np.array([float(q) for q in c], dtype=complex).reshape(item.shape)  # type: ignore[arg-type]
        elif item.operation == "softmax":
            powers = np.exp(xs[0])
            value = powers / powers.sum(axis=c[0], keepdims=True)  # type: ignore[call-overload]
        elif item.operation == "exp":
            value = np.exp(xs[0])
        elif item.operation == "reciprocal":
            value = 1 / xs[0]
        elif item.operation == "scale":
            value = xs[0] * float(c[0])  # type: ignore[arg-type]
        elif item.operation == "power":
            value = xs[0] ** c[0]  # type: ignore[operator]
        elif item.operation == "einsum":
            value = np.einsum(",".join(c[0]) + "->" + c[1], *xs)  # type: ignore[call-overload,operator,arg-type]
        else:
            value = _step(item.operation, c, [Dual(x, None) for x in xs], item.shape, 1).value
        found.append(np.asarray(value))
    return np.concatenate([found[place].reshape(-1) for _, place in program.outputs])


def real_rank(text: str, n: int, seed: int = 4, size: float = 1.2) -> int:
    """The rank of the Jacobian at a random real point by complex steps; `n` is the rank that is hoped for."""
    program, rng = parse_program(text), np.random.default_rng(seed)
    width = sum(map(prod, program.input_shapes.values()))
    samples = -(-n // program.output_count) + 6 if width else 1
    w = rng.uniform(-size, size, program.parameter_count)
    x = rng.uniform(-size, size, (samples, width)).astype(complex)
    columns = []
    for k in range(program.parameter_count):
        moved = w.astype(complex)
        moved[k] += 1e-30j
        columns.append(np.concatenate([complex_outputs(program, moved, row) for row in x]).imag / 1e-30)
    return len(_complete_pivots(np.array(columns).T, n)[0])


def numbered_arguments(program: Program) -> tuple[dict[int, int], int, int]:
    """The number of the first argument of each exponential instruction, of the first input, and how many functions there are."""
    places = [k for k, item in enumerate(program.instructions) if item.operation in ("exp", "softmax")]
    first, number = {}, 1 + program.parameter_count
    for k in places:
        if not program.sees_inputs[k]:
            first[k], number = number, number + program.instructions[k].size
    inputs = number
    number += program.input_count
    for k in places:
        if program.sees_inputs[k]:
            first[k], number = number, number + program.instructions[k].size
    return first, inputs, number


def unit_minor(
    text: str, *, seed: int = 3, p: int = SMALL, relations: Mapping[int, Mapping[int, Fraction]] | None = None,
    groups: int = 30, members: int = 6,
) -> tuple[Document, int]:  # fmt: skip
    """A minor with units in the place of exponentials, and the size of the test of independence."""
    program, related = parse_program(text), relations or {}
    first, inputs, count = numbered_arguments(program)
    denominators = [c.denominator for terms in related.values() for c in terms.values()]
    power = lcm(*denominators)
    samples = -(-program.parameter_count // program.output_count) + 6 if program.inputs else 1
    ours = [x % (p - 1) + 1 for x in splitmix(seed, 3, inputs)]
    others = [x % (p - 1) + 1 for x in splitmix(seed, 4, samples * (count - inputs))]
    weights = [x % p for x in splitmix(seed, 1, program.parameter_count)]
    points = [x % p for x in splitmix(seed, 2, samples * program.input_count)]
    rows: list[list[int]] = []
    for n in range(samples):
        drawn = ours + others[n * (count - inputs) : (n + 1) * (count - inputs)]
        units = []
        for k in sorted(first):
            for number in range(first[k], first[k] + program.instructions[k].size):
                value = 1
                for other, c in related.get(number, {number: Fraction(1)}).items():
                    value = value * pow(drawn[other], int(c * power), p) % p
                units.append(value)
        x = points[n * program.input_count : (n + 1) * program.input_count]
        values = run(program, weights, x, p, units=units)
        for _, place in program.outputs:
            slope, size = values[place].slope, program.instructions[place].size
            flat = np.zeros((program.parameter_count, size)) if slope is None else slope.reshape(-1, size)
            rows += [[int(v) for v in column] for column in flat.T]
    chosen, columns = pivots(rows, p)
    return {
        "kind": "minor",
        "prime": p,
        "weights": {"seed": seed, "stream": 1, "fixed": []},
        "samples": samples,
        "inputs": {"seed": seed, "stream": 2, "fixed": []} if program.inputs else {"entries": []},
        "rows": [[row // program.output_count, row % program.output_count] for row in chosen],
        "columns": columns,
        "exponentials": {
            "seed": seed,
            "relations": [
                [k, [[j, *numbers([c])] for j, c in terms.items()]] for k, terms in related.items()
            ],
            "test": {"seed": seed, "prime": p, "weights": groups, "inputs": members},
        },
    }, len(chosen)


def _complete_pivots(matrix: np.ndarray, n: int) -> tuple[list[int], list[int]]:
    work, rows, columns = matrix.copy(), [], []
    for _ in range(n):
        i, j = np.unravel_index(int(np.abs(work).argmax()), work.shape)
        if abs(work[i, j]) < 1e-11 * np.abs(matrix).max():
            break
        rows.append(int(i))
        columns.append(int(j))
        work = work - np.outer(work[:, j], work[i]) / work[i, j]
    return rows, columns


# -- statements and upper bounds as documents ---------------------------------------------------------------

Polynomial = Mapping[tuple[int, ...], int | Fraction]
"""Exponents, one for each coordinate, and coefficients."""
Field = Mapping[int, Mapping[tuple[tuple[int, int], ...], int]]
"""For each flat weight that moves, the polynomial by which: ((flat weight, exponent), ...) ascending, and coefficients."""


def closure_certificate(
    program: str,
    equations: Sequence[Polynomial],
    degree: int,
    *,
    prime: int,
    gradings: Sequence[Sequence[int]] = (),
    spec: str | None = None,
) -> Document:
    """These equations vanish on the image, and up to `degree` nothing does but combinations of their multiples.

    `gradings` are degrees of the flat weights for which every output is homogeneous; they split the work into blocks.
    """
    statement = {"kind": "closure", "equations": [written(f) for f in equations], "degree": degree}
    argument = {"prime": prime, "gradings": [[int(d) for d in grading] for grading in gradings]}
    return _document(program, statement, argument, spec)


def inside_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    point: Sequence[int | Fraction],
    *,
    spec: str | None = None,
) -> Document:
    """These weights have this image, in the coordinates of the program."""
    statement = {"kind": "inside", "weights": numbers(weights), "point": numbers(point)}
    return _document(program, statement, None, spec)


def outside_certificate(
    program: str, equation: Polynomial, point: Sequence[int | Fraction], *, spec: str | None = None
) -> Document:
    """The point is not in the closure of the image: an equation vanishes there, and not at the point."""
    statement = {"kind": "outside", "point": numbers(point), "equation": written(equation)}
    return _document(program, statement, None, spec)


def singular_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    arcs: Sequence[Sequence[Sequence[int | Fraction]]],
    upper: Document,
    *,
    prime: int,
    spec: str | None = None,
) -> Document:
    """The image is singular at the image of `weights`.

    An arc gives for each flat weight the coefficients of a polynomial in t, lowest first; at t = 0 it has the same image. `upper`
    is an argument for an upper bound of the dimension (section 4).
    """
    statement = {"kind": "singular", "weights": numbers(weights)}
    paths = [[numbers(path) for path in arc] for arc in arcs]
    return _document(program, statement, {"prime": prime, "upper": upper, "arcs": paths}, spec)


def smooth_certificate(
    program: str,
    weights: Sequence[int | Fraction],
    equations: Sequence[Polynomial],
    lower: Document | None,
    *,
    prime: int,
    spec: str | None = None,
) -> Document:
    """The closure of the image is smooth at the image of `weights`: equations of the right rank, and a lower bound."""
    statement = {"kind": "smooth", "weights": numbers(weights)}
    argument = {"prime": prime, "lower": lower, "equations": [written(f) for f in equations]}
    return _document(program, statement, argument, spec)


def symmetry_certificate(
    program: str, groups: Sequence[Document] = (), fields: Sequence[Field] = (), *, spec: str | None = None
) -> Document:
    """Groups of section 4, and polynomial vector fields, do not change the function."""
    statement = {"kind": "symmetry", "groups": list(groups), "fields": [written_field(f) for f in fields]}
    return _document(program, statement, None, spec)


def fields_bound(
    groups: Sequence[Document], fields: Sequence[Field], *, prime: int, weights: Document
) -> Document:
    """The upper bound by groups and vector fields; `weights` is a POINT at which their rank is counted."""
    parts = [written_field(field) for field in fields]
    return {"kind": "fields", "groups": list(groups), "fields": parts, "prime": prime, "weights": weights}


def composition_bound(
    cut: int,
    first: Document,
    second: Document,
    *,
    prime: int,
    weights: Document,
    groups: Sequence[Document] = (),
    fields: Sequence[Field] = (),
    samples: int = 4,
) -> Document:
    """The upper bound of a program cut at instruction number `cut`: those of both parts, minus what symmetries of the whole move.

    `first` and `second` are upper bounds of the parts (section 4), `weights` a POINT of the whole program.
    """
    own = fields_bound(groups, fields, prime=prime, weights=weights)
    return own | {"kind": "composition", "cut": cut, "first": first, "second": second, "samples": samples}


def narrow_matrices(program: Program) -> Document:
    """The upper bound of a product W_l ... W_1 x: matrices of at most the rank that its narrowest place allows.

    It is cut there into two matrices, with GL between them; where no place inside is narrow, coordinates are counted.
    """
    chain = [k for k, item in enumerate(program.instructions) if item.operation == "einsum"]
    sizes = [program.instructions[k].size for k in chain]
    both, width = {"kind": "coordinates"}, min(sizes)
    if width >= min(sizes[-1], *map(prod, program.input_shapes.values())):
        return both
    before, names = sizes.index(width), list(program.parameters)
    axes = {names[before]: [1, 0], names[before + 1]: [0, -1]}
    between, point = {"group": "gl", "size": width, "axes": axes}, {"seed": 0, "stream": 0, "fixed": []}
    return composition_bound(
        chain[before], both, both, prime=2**61 - 1, weights=point, groups=[between], samples=width
    )


def written_field(field: Field) -> list[Any]:
    """A vector field as the format writes it.

    >>> written_field({0: {(): 2}, 1: {((0, 1), (2, 3)): -1}})
    [[0, 2, []], [1, -1, [[0, 1], [2, 3]]]]
    """
    return [
        [i, int(c), [[j, e] for j, e in monomial]]
        for i, polynomial in sorted(field.items())
        for monomial, c in polynomial.items()
        if c
    ]


def same_function_certificate(
    program: str, weights: Sequence[Sequence[int | Fraction]], *, spec: str | None = None
) -> Document:
    """Two different weights (flat, exact) give one function."""
    points = [numbers(point) for point in weights]
    return _document(program, {"kind": "same function", "weights": points}, None, spec)


def _document(program: str, statement: Document, argument: Document | None, spec: str | None) -> Document:
    return {
        "format": "m2bridge certificate",
        "version": 2,
        "statement": statement,
        "spec": spec,
        "program": program,
        "argument": argument,
    }
