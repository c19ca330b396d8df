"""Say what built-in networks and records of m2bridge have to do with the programs that checker.py checks.

The file checker.py verifies statements about programs. This file is optional beside it. It contains the definitions of the
built-in networks, written once more, and compares a program with the network that the spec of its certificate names; and it
compares the record that contains certificates with what they show. Lemma numbers are those of checker.py.
``docs/certificates.md``, sections 4 and 6, specifies specs and records.

Contents: 1 Specs   2 Definitions   3 Comparison   4 Upper bounds that rest on a spec   5 Records.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from hashlib import sha256
from itertools import combinations_with_replacement, pairwise
from math import comb, prod
from typing import Any

from m2bridge.checker import (
    EQUAL,
    EXPONENTIAL,
    LEAST_EXPONENT,
    MOST_ENTRIES,
    NATURAL,
    RATIONAL,
    REPEATS,
    Certified,
    Circuit,
    Evaluation,
    Gate,
    ModP,
    Numbers,
    Polynomials,
    RandomField,
    Rejected,
    Shape,
    bit_size,
    bound_size,
    field_at,
    group_fields,
    integers_in,
    load,
    need,
    printable,
    read_integer,
    read_integers,
    read_list,
    read_numbers,
    read_object,
    read_program,
    read_rational,
    report,
    sparse_rank,
    stream,
    transpose,
)  # fmt: skip

# == 1. Specs ============================================================================================

MERSENNE = 2**61 - 1  # a prime
N = r"[1-9][0-9]{0,4}"
L = rf"\[{N}(?:,{N})*\]"
FAMILIES = {  # the canonical spelling of their arguments
    "lightning": rf"d=(?P<d>{N}),dp=(?P<dp>{N}),a=(?P<a>{N}),t=(?P<t>{N})(?:,parametrization=(?P<way>attention))?"
    r"(?P<full>,coordinates=full)?",
    "deep-lightning": rf"d=(?P<d>{L}),a=(?P<a>{L}),t=(?P<t>{N})(?:,heads=(?P<heads>{N}|{L}))?(?P<skip>,skip=true)?"
    r"(?:,parametrization=(?P<way>attention|virtual))?(?P<full>,coordinates=full)?",
    "softmax": rf"d=(?P<d>{L}),a=(?P<a>{L}),t=(?P<t>{N})(?:,parametrization=(?P<way>attention))?",
    "mlp": rf"widths=(?P<d>{L}),r=(?P<r>{N})",
    "linear": rf"widths=(?P<d>{L})",
    "convolution": rf"filters=(?P<d>{L})(?:,strides=(?P<strides>{L}))?,r=(?P<r>{N})",
}


@dataclass
class Network:
    """What a spec says of a built-in network."""

    family: str
    widths: list[int]
    ranks: list[int] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    tokens: int = 1
    skip: bool = False
    parametrization: str = "weights"
    power: int = 1
    strides: list[int] = field(default_factory=list)
    segre: bool = False  # whether its coordinates are those of Proposition A.5

    @property
    def layers(self) -> list[tuple[int, int, int, int]]:
        """List rank, heads and both widths of each layer of attention."""
        return list(zip(self.ranks, self.heads, self.widths, self.widths[1:], strict=False))

    @property
    def narrow(self) -> bool:
        """Tell whether weights of this parametrization satisfy equations; then (Q, K, V), with the same image, stand for them."""
        if self.parametrization == "virtual":
            return min([*self.widths[1:-1], *self.ranks]) < self.widths[0]
        return self.parametrization == "attention" and any(a < d for a, _, d, _ in self.layers)

    @property
    def weights(self) -> dict[str, Shape]:
        """Return names and shapes of the free weights, in order."""
        w, way = self.widths, "weights" if self.narrow else self.parametrization
        if self.family == "convolution":
            return {f"w{i}": (k,) for i, k in enumerate(w, start=1)}
        if not self.ranks:
            return {f"W{i}": (w[i], w[i - 1]) for i in range(1, len(w))}
        if way == "virtual":
            return {**{f"M{i}": (w[0], w[0]) for i in range(1, len(w))}, "L": (w[-1], w[0])}
        shapes: dict[str, Shape] = {}
        for i, (a, h, d, e) in enumerate(self.layers, start=1):
            mark, lead = "" if self.family == "lightning" else str(i), (h,) if h > 1 else ()
            scores = {"A": (d, d)} if way == "attention" else {"Q": (a, d), "K": (a, d)}
            shapes |= {name + mark: (*lead, *shape) for name, shape in (scores | {"V": (e, d)}).items()}
        return shapes

    @property
    def input_shape(self) -> Shape:
        """Return the shape of the input."""
        if self.family != "convolution":
            return (self.widths[0], self.tokens) if self.ranks else (self.widths[0],)
        layers = zip(self.widths[::-1], self.strides[::-1], strict=True)
        return (reduce(lambda size, layer: (size - 1) * layer[1] + layer[0], layers, 1),)

    @property
    def parameter_dim(self) -> int | None:
        """Count the dimensions of the weights of the spec; None where no formula is known."""
        if self.parametrization == "attention":
            return sum(h * (matrices(d, a) + d * e) for a, h, d, e in self.layers)
        return None if self.narrow else sum(map(prod, self.weights.values()))


def family_of(spec: str) -> str:
    """Return the name of the family in a spec."""
    return re.split(r"[(:]", spec)[0].strip()


def read_spec(spec: str) -> Network | None:
    """Return the built-in network with this canonical spec; None for a spec of another kind."""
    family, canonical = family_of(spec), "the spec is not in canonical form"
    if family not in (*FAMILIES, "multi-head", "skip-lightning"):
        return None
    match = re.fullmatch(rf"{family}\({FAMILIES.get(family, '(?!)')}\)", spec)
    if match is None and of_further(spec):  # with options
        return None
    if match is None:
        raise Rejected(canonical)
    arguments = {key: text for key, text in match.groupdict().items() if text is not None}
    integers = {key: [int(n) for n in re.findall("[0-9]+", text)] for key, text in arguments.items()}
    widths, ranks = integers["d"] + integers.get("dp", []), integers.get("a", [])
    heads = integers.get("heads", [1])
    layers, several = len(widths) - 1, "[" in arguments.get("heads", "")
    need(layers > 0 or family == "convolution", "a network has a layer")
    need("heads" not in arguments or (len(set(heads)) > 1 if several else heads != [1]), canonical)
    heads = (heads if several else heads * layers) if ranks else []
    need(not ranks or len(ranks) == len(heads) == layers, "ranks or heads are not one for each layer")
    strides = integers.get("strides", [1] * len(widths))
    need(len(strides) == len(widths) and ("strides" not in arguments or set(strides) != {1}), canonical)
    skip, way, tokens = "skip" in arguments, arguments.get("way", "weights"), integers.get("t", [1])[0]
    need(not skip or len(set(widths)) == 1, "skip connections need equal widths")
    plain = not skip and max(heads, default=1) == 1
    need(way != "virtual" or plain, "virtual weights need one head and no skip")
    segre = layers == 1 and not skip and tokens > 1 and family != "softmax"
    need(segre or "full" not in arguments, canonical)
    power = integers.get("r", [1])[0]
    segre = segre and "full" not in arguments
    bound_size(max(widths) ** 2 if ranks else 0, MOST_ENTRIES)
    return Network(family, widths, ranks, heads, tokens, skip, way, power, strides, segre)


# == 2. Definitions ======================================================================================

Matrix = list[list[Any]]


def product(ring: Any, *factors: Matrix) -> Matrix:
    """Multiply matrices."""
    left, right, *more = factors
    result = [[ring.dot(row, column) for column in transpose(right)] for row in left]
    return product(ring, result, *more) if more else result


def sum_of(ring: Any, left: Matrix, right: Matrix) -> Matrix:
    """Add two matrices."""
    return [list(map(ring.add, *rows)) for rows in zip(left, right, strict=True)]


def nested(values: Numbers, shape: Shape) -> Any:
    """Arrange flat values as nested lists."""
    if not shape:
        return values[0]
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def arrays(circuit: Circuit, weights: Numbers) -> dict[str, Any]:
    """Return the weights by their names, as nested lists."""
    shapes = {name: circuit.gates[k].shape for name, k in circuit.weights.items()}
    return {name: nested([weights[i] for i in flat], shapes[name]) for name, flat in circuit.flat.items()}


def head(network: Network, ring: Any, w: dict[str, Any], layer: int, number: int) -> tuple[Matrix, Matrix]:
    """Return A and V of one head, where A may be given by Q and K, or be virtual; V is empty for virtual weights."""
    mark, several = "" if network.family == "lightning" else str(layer), network.heads[layer - 1] > 1
    of_head = {n[0]: value[number] if several else value for n, value in w.items() if n[1:] == mark}
    scores = of_head.get("A") or of_head.get("M") or product(ring, transpose(of_head["K"]), of_head["Q"])
    return scores, of_head.get("V", [])


def network_outputs(network: Network, ring: Any, w: dict[str, Any], x: Any) -> Numbers:
    """Compute the flat output of a built-in network at an input, by its definition; `w` and `x` are nested lists."""
    if not network.ranks:
        for i, weight in enumerate(w.values()):
            x = [ring.power(v, network.power) for v in x] if i > 0 else x
            if network.family == "convolution":  # (w * x)_n = sum_j w_j x_(n s + j)
                starts = range(0, len(x) - len(weight) + 1, network.strides[i])
                x = [ring.dot(weight, x[n : n + len(weight)]) for n in starts]
            else:  # W_l (... (W_1 x)^r ...)
                x = [ring.dot(row, x) for row in weight]
        return list(x)
    for i, heads in enumerate(network.heads, start=1):
        parts = [x] if network.skip else []
        for h in range(heads):
            A, V = head(network, ring, w, i, h)
            scores = product(ring, transpose(x), A, x)
            if network.family == "softmax":
                # Equation 15: token i attends to token j by exp(x_i^T A x_j)
                scores = transpose([ring.softmax(row) for row in scores])
            part = product(ring, x, scores)  # Equation 1: V X X^T A X; with virtual weights L comes last
            parts.append(product(ring, V, part) if V else part)
        x = reduce(lambda left, right: sum_of(ring, left, right), parts)
    return [v for row in (product(ring, w["L"], x) if "L" in w else x) for v in row]


def segre_outputs(network: Network, ring: Any, w: dict[str, Any]) -> Numbers:
    """Compute the coefficients of x_(m,1) x_(i,2) x_(j,2), i <= j, in output n of the first token: columns of A times rows of
    V.
    """
    (d, e), total = network.widths, Numbers()
    for h in range(network.heads[0]):
        A, V = head(network, ring, w, 1, h)
        V, part = V or w["L"], []
        for n in range(e):
            for m in range(d):
                for i, j in combinations_with_replacement(range(d), 2):
                    pairs = [(A[i][m], V[n][j]), (A[j][m], V[n][i])][: 1 + (i < j)]
                    part.append(ring.dot(*map(list, zip(*pairs, strict=True))))
        total = list(map(ring.add, total, part)) if total else part
    return total


Definition = tuple[str, Callable[[Any, Numbers, Numbers], Numbers]]
"""What a program is said to be, and the values by definition at flat weights and inputs, over one kind of numbers."""


def by_network(circuit: Circuit, network: Network) -> Definition:
    """Define a built-in network, for a program that has its weights and inputs."""
    shapes = [(name, circuit.gates[k].shape) for name, k in circuit.weights.items()]
    need(shapes == list(network.weights.items()), "the program has other weights than its spec")
    inputs = [circuit.gates[k].shape for k in circuit.inputs.values()]
    segre = network.segre and not inputs
    need(segre or inputs == [network.input_shape], "the program has other inputs than its spec")

    def values(ring: Any, weights: Numbers, x: Numbers) -> Numbers:
        """Compute the flat outputs by the definition."""
        named = arrays(circuit, weights)
        if segre:
            return segre_outputs(network, ring, named)
        return network_outputs(network, ring, named, nested(x, inputs[0]))

    return "gives the Segre coordinates" if segre else "is that", values


SYMBOL = r"[A-Za-z][A-Za-z0-9']*(?:_(?:[0-9]+|[A-Za-z][A-Za-z0-9]*|\([0-9]+(?:,[0-9]+)*\)))?"


def variables_of(spec: str) -> list[str]:
    """List the variables of a spec ``map:x,y->x^2;x*y``; none for other specs."""
    match = re.fullmatch(rf"map:({SYMBOL}(?:,{SYMBOL})*)->[^|]+", spec)
    return re.findall(rf"{SYMBOL}(?=,|$)", match[1]) if match else []


def by_map(circuit: Circuit, spec: str) -> Definition | None:
    """Define the polynomials in a spec ``map:x,y->x^2;x*y``; None for other specs."""
    bound_size(len(spec), 10**6)
    names = variables_of(spec)
    power = rf"{SYMBOL}(?:\^[1-9][0-9]{{0,5}})?"
    term = rf"(?:{RATIONAL.replace('-?', '')}|{power})(?:\*{power})*"
    polynomials = spec.partition("->")[2].split(";")
    if not names or not all(re.fullmatch(rf"-?{term}(?:[+-]{term})*", text) for text in polynomials):
        return None
    need(len(set(names)) == len(names) == circuit.parameters, "the program has other variables than its spec")
    need(not circuit.inputs, "the program has inputs, and its spec has none")
    need(
        circuit.size(*circuit.outputs) == len(polynomials),
        "the program has another number of outputs than its spec",
    )

    def values(ring: Any, weights: Numbers, _: Numbers) -> Numbers:
        """Compute the flat outputs by the definition."""
        at, results = dict(zip(names, weights, strict=True)), []
        for text in polynomials:
            total = ring.number(0)
            for part in re.findall(r"[+-]?[^+-]+", text):
                value = ring.number(-1 if part[0] == "-" else 1)
                for factor in part.strip("+-").split("*"):
                    base, _, exponent = factor.partition("^")
                    number = at[base] if base in at else ring.number(read_rational(base))
                    value = ring.multiply(value, ring.power(number, int(exponent or 1)))
                total = ring.add(total, value)
            results.append(total)
        return results

    return "is that", values


# Further families, of which only the definition is written here: no bound rests on them. Lists of integers and flags that a
# spec names enter; weights, the shape of the input (None for tensors) and the outputs leave.

Options = dict[str, list[int]]
Built = tuple[dict[str, Shape], Shape | None, Callable[[Any, dict[str, Any], Any], Numbers]]
HEADS = rf"(?:,heads=(?P<heads>{N}|{L}))?"
TOKENS = r"(?P<causal>,causal=true)?(?P<tied>,tied=true)?(?P<positions>,positions=true)?(?P<softmax>,softmax=true)?"
BIAS = r"(?P<bias>,bias=true)?"


def tokens_attend(options: Options) -> Built:
    """Define layers X -> V X w(X^T K^T Q X), w a power or softmax of each score, perhaps masked; in a transformer, with a layer
    Y -> Y + U (W Y)^r after each.
    """
    d, a, t, (r,) = options["d"], options["a"], options["t"][0], options.get("r", [1])
    hidden, layers = options.get("hidden", [0])[0], options.get("layers", [len(d) - 1])[0]
    if "layers" in options:
        bound_size(layers, 10**4)
        d, a = d * (layers + 1), a * layers
    heads = options.get("heads", [1])
    heads = heads * layers if len(heads) == 1 else heads
    need(len(d) > 1 and len(a) == len(heads) == layers, "ranks or heads are not one for each layer")
    skip, power = "skip" in options or bool(hidden), 1 if hidden else r
    need(not skip or len(set(d)) == 1, "skip connections need equal widths")
    need(power == 1 or "softmax" not in options, "scores of softmax have no power")
    weights: dict[str, Shape] = {"P": (d[0], t)} if "positions" in options else {}
    for i, (score_rank, h, n, m) in enumerate(zip(a, heads, d, d[1:], strict=False), start=1):
        lead = (h,) if h > 1 else ()
        of_layer = {} if "tied" in options else {"Q": (score_rank, n)}
        of_layer |= {"K": (score_rank, n), "V": (m, n)}
        of_layer |= {"W": (hidden, n), "U": (n, hidden)} if hidden else {}
        weights |= {f"{key}{i}": shape if key in "WU" else (*lead, *shape) for key, shape in of_layer.items()}

    def mixing(ring: Any, scores: Matrix) -> Matrix:
        """Compute the matrix by which tokens are mixed."""
        seen = [range(i + 1) if "causal" in options else range(t) for i in range(t)]
        if "softmax" in options:  # token i attends to token j by row i
            zero, rows = ring.number(0), [ring.softmax([scores[i][j] for j in seen[i]]) for i in range(t)]
            return transpose([row + [zero] * (t - len(row)) for row in rows])
        return [
            [ring.power(scores[j][i], power) if j in seen[i] else ring.number(0) for i in range(t)]
            for j in range(t)
        ]

    def outputs(ring: Any, w: dict[str, Any], x: Matrix) -> Numbers:
        """Compute the flat outputs."""
        x = sum_of(ring, x, w["P"]) if "P" in w else x
        for i, h in enumerate(heads, start=1):
            parts = [x] if skip else []
            for k in range(h):
                K, Q, V = (
                    (w[key + str(i)] if h == 1 else w[key + str(i)][k])
                    for key in ("K", "K" if "tied" in options else "Q", "V")
                )
                scores = product(ring, transpose(product(ring, K, x)), product(ring, Q, x))
                parts.append(product(ring, V, product(ring, x, mixing(ring, scores))))
            x = reduce(lambda left, right: sum_of(ring, left, right), parts)
            if hidden:
                inner = [[ring.power(y, r) for y in row] for row in product(ring, w[f"W{i}"], x)]
                x = sum_of(ring, x, product(ring, w[f"U{i}"], inner))
        return [y for row in x for y in row]

    return weights, (d[0], t), outputs


def perceptron(options: Options) -> Built:
    """Define W_l s(... s(W_1 x + b_1) ...) + b_l, s a power for each layer."""
    widths, r = options["widths"], options["r"]
    layers = len(widths) - 1
    need(layers > 0 and ("bias" in options or len(set(r)) > 1), "the spec is not in canonical form")
    need(len(r) == layers - 1, "exponents are not one for each hidden layer")
    bound_size(max(widths), MOST_ENTRIES)
    bound_size(layers, 10**5)
    weights: dict[str, Shape] = {}
    for i, (n, m) in enumerate(pairwise(widths), start=1):
        weights |= {f"W{i}": (m, n)} | ({f"b{i}": (m,)} if "bias" in options else {})

    def outputs(ring: Any, w: dict[str, Any], x: Numbers) -> Numbers:
        """Compute the flat outputs."""
        for i in range(1, layers + 1):
            x = [ring.dot(row, x) for row in w[f"W{i}"]]
            x = list(map(ring.add, x, w[f"b{i}"])) if f"b{i}" in w else x
            x = [ring.power(y, r[i - 1]) for y in x] if i < layers else x
        return x

    return weights, (widths[0],), outputs


def rank_one_sums(options: Options) -> Built:
    """Define T[i_1, ..., i_N] = sum over s of U_1[i_1, s] ... U_N[i_N, s], the last index fastest."""
    sizes, (rank,) = options["sizes"], options["rank"]

    def outputs(ring: Any, w: dict[str, Any], _: Any) -> Numbers:
        """Compute the flat outputs."""
        rows = [[ring.number(1)] * rank]
        for factor in w.values():
            rows = [list(map(ring.multiply, row, other)) for row in rows for other in factor]
        return [reduce(ring.add, row) for row in rows]

    return {f"U{k}": (n, rank) for k, n in enumerate(sizes, start=1)}, None, outputs


FURTHER: dict[str, tuple[Callable[[Options], Built], str]] = {
    "attention": (
        tokens_attend,
        rf"d=(?P<d>{L}),a=(?P<a>{L}),t=(?P<t>{N}){HEADS}(?:,r=(?P<r>{N}))?(?P<skip>,skip=true)?{TOKENS}",
    ),
    "transformer": (
        tokens_attend,
        rf"d=(?P<d>{N}),a=(?P<a>{N}),t=(?P<t>{N})(?:,heads=(?P<heads>{N}))?,hidden=(?P<hidden>{N}),r=(?P<r>{N}),"
        rf"layers=(?P<layers>{N})(?P<causal>,causal=true)?(?P<positions>,positions=true)?(?P<softmax>,softmax=true)?",
    ),
    "mlp": (perceptron, rf"widths=(?P<widths>{L}),r=(?P<r>\[\](?=,)|{L}(?=,)|\[{N}(?:,{N})+\]){BIAS}"),
    "cp": (rank_one_sums, rf"sizes=(?P<sizes>{L}),rank=(?P<rank>{N})"),
}


def of_further(spec: str) -> re.Match[str] | None:
    """Match a canonical spec of a further family."""
    family = family_of(spec)
    return re.fullmatch(rf"{family}\({FURTHER[family][1]}\)", spec) if family in FURTHER else None


def by_family(circuit: Circuit, spec: str) -> Definition | None:
    """Define a further family, for a program that has its weights and inputs; None for other specs."""
    family = family_of(spec)
    if family not in FURTHER:
        return None
    bound_size(len(spec), 10**5)
    match = of_further(spec)
    if match is None:
        raise Rejected("the spec is not in canonical form")
    weights, inputs, outputs = FURTHER[family][0](
        {k: list(integers_in(v)) for k, v in match.groupdict().items() if v is not None}
    )
    shapes = [(name, circuit.gates[k].shape) for name, k in circuit.weights.items()]
    need(shapes == list(weights.items()), "the program has other weights than its spec")
    input_shapes = [circuit.gates[k].shape for k in circuit.inputs.values()]
    need(input_shapes == ([] if inputs is None else [inputs]), "the program has other inputs than its spec")

    def values(ring: Any, flat: Numbers, x: Numbers) -> Numbers:
        """Compute the flat outputs by the definition."""
        return outputs(ring, arrays(circuit, flat), None if inputs is None else nested(x, inputs))

    return "is that", values


# == 3. Comparison =======================================================================================


@dataclass(frozen=True)
class Identity:
    """What is known of the spec of a certificate: that the program is that network, and bounds that rest on it."""

    sentence: str
    network: Network | None

    @property
    def bounds(self) -> dict[str, Callable[[], int]]:
        """Return the upper bounds that rest on the spec."""
        return {
            "virtual": lambda: virtual_bound(self.network),
            "layers": lambda: layers_bound(self.network),
        }


def identify(circuit: Circuit, spec: str) -> Identity | None:
    """Compare a program with what its spec names, at points that the checker draws [7]; None if the spec is not known."""
    network = read_spec(spec)
    definition = (
        by_network(circuit, network) if network else by_family(circuit, spec) or by_map(circuit, spec)
    )
    if definition is None:
        return None
    words, values = definition
    k = comparison_error(circuit, values)
    need_equal(circuit, values, "the program is not that of its spec")
    where = ", wherever both are defined" if circuit.uses(*EXPONENTIAL, "sqrt") else ""
    return Identity(f"The program {words} of {printable(spec)}{where}: both {EQUAL.format(k=k)}.", network)


def need_equal(circuit: Circuit, values: Callable[[Any, Numbers, Numbers], Numbers], reason: str) -> None:
    """Reject a program whose outputs are not these values at points that the checker draws [7]."""
    for _ in range(REPEATS):
        ring = RandomField()
        weights, inputs = ring.drawn(circuit.parameters), ring.drawn(circuit.input_size)
        outputs = Evaluation(circuit, ring).outputs(weights, inputs)
        need(outputs == values(ring, weights, inputs), reason)


def comparison_error(circuit: Circuit, values: Callable[[Any, Numbers, Numbers], Numbers]) -> int:
    """Return k if `need_equal` accepts other values with probability at most 2^-k [7].

    Either two outputs differ, or two arguments of exponentials, and these are equal at a random point.
    """
    further = load("further", "the comparison of a program with its spec")
    ring = further.Sizes()
    weights, inputs = [(1, 0, 0)] * circuit.parameters, [(1, 0, 0)] * circuit.input_size
    sizes = Evaluation(circuit, ring).outputs(weights, inputs) + values(ring, weights, inputs)
    pairs = 1 + len(ring.arguments) ** 2
    return int(further.error_exponent(pairs * ring.of_identity([*sizes, *ring.arguments])))


# == 4. Upper bounds that rest on a spec =================================================================


def matrices(d: int, a: int, symmetric: bool = False, most: int | None = None) -> int:
    """Count the dimension of d x d matrices of rank <= a [12], or bound that of their symmetric parts (of rank <= 2 a and <=
    most).
    """
    r, s = min(a, d), min(2 * a, d if most is None else most)
    return s * d - s * (s - 1) // 2 if symmetric else r * (2 * d - r)


def virtual_bound(network: Network | None) -> int:
    """Bound attention with one head and no skip connections. It is a function of A_i and V_i, and also of the matrices
    M_i = L_(i-1)^T A_i L_(i-1) and L_l, where L_i = V_i ... V_1. Both are counted, the second also with their common row
    spaces. After tokens of rank one (t = 1, or a layer with a = 1) scores x^T A x see the symmetric part of A only. For
    lightning M_i -> s M_i is undone by L (Equation 13). Softmax with t = 1 is L X.
    """
    if network is None or not network.ranks or network.skip or max(network.heads) > 1:
        raise Rejected("virtual weights rest on a spec of attention with one head and no skip connections")
    w, a, soft, depth = network.widths, network.ranks, network.family == "softmax", len(network.ranks)
    last = min(w) * (w[0] + w[-1] - min(w))
    if soft and network.tokens == 1:
        return last
    symmetric = [not soft and (network.tokens == 1 or 1 in a[:i] or 1 in w[:i]) for i in range(depth)]
    least = [min(w[: i + 1]) for i in range(depth)]
    sizes = [min(2 * rank, n) for rank, n in zip(a, least, strict=True)]
    virtual = [matrices(w[0], min(a[i], least[i]), symmetric[i], sizes[i]) for i in range(depth)]
    source = [matrices(w[i], a[i], symmetric[i]) + w[i] * w[i + 1] for i in range(depth)]
    scalings = 0 if soft else depth
    bounds = [last + sum(virtual) - scalings, flags_dim(w, a) - scalings]
    return min(*bounds, sum(source) - orbit_dim(network, symmetric))


def flags_dim(w: list[int], a: list[int]) -> int:
    """Bound the dimension of all (M, L) by the flag of their row spaces.

    Row and column space of M_(i+1) lie in the row space of L_i, of dimension at most the least width up to d_i, and these
    spaces are nested. Let E_l be the row space of L, and E_i be spanned by E_(i+1) and by rows and columns of M_(i+1). Its
    dimension is at most e_i. Counted are the flags E_l < ... < E_1 in K^d_0, matrices M_(i+1) of size e_i and rank at most
    a_(i+1), and L.
    """
    dims = [min(w)]
    for i in reversed(range(1, len(a))):
        dims.insert(0, min(*w[: i + 1], 2 * a[i] + dims[0]))
    dims.insert(0, w[0])
    flags = sum(smaller * (larger - smaller) for larger, smaller in pairwise(dims))
    return flags + sum(matrices(e, rank) for e, rank in zip(dims, a, strict=False)) + w[-1] * dims[-1]


def orbit_dim(network: Network, symmetric: list[bool]) -> int:
    """Bound from below the dimension of the orbits of GL(d_1) x ... x GL(d_(l-1)), and scalings, on (A_i, V_i): the rank of
    the infinitesimal action at a point [1].
    """
    w, ring, gates, at = network.widths, ModP(MERSENNE), list[Gate](), list[int]()
    bound_size(sum(d * d * (2 * d + 2 * max(w)) for d in w[1:-1]), MOST_ENTRIES)
    numbers = (x % MERSENNE for x in stream(1, 1, 10**9))
    for i, (a, _, d, e) in enumerate(network.layers):
        for name, shape in ((f"A{i}", (d, d)), (f"V{i}", (e, d))):
            gates.append(Gate("weight", [name], [], shape))
        K, Q = ([[next(numbers) for _ in range(d)] for _ in range(min(a, d))] for _ in "KQ")
        A = product(ring, transpose(K), Q)
        A = sum_of(ring, A, transpose(A)) if symmetric[i] else A
        at += [x for row in A for x in row] + [next(numbers) for _ in range(d * e)]
    groups: list[Any] = [
        {"group": "gl", "size": w[k], "axes": {f"V{k - 1}": [1, 0], f"V{k}": [0, -1], f"A{k}": [-1, -1]}}
        for k in range(1, len(w) - 1)
    ]
    if network.family != "softmax":
        groups += [{"group": "scaling", "weights": {f"A{k}": 1, f"V{k}": -1}} for k in range(len(w) - 1)]
    circuit = Circuit(gates, [])
    every = [v for group in groups for v in group_fields(circuit, group)[1]]
    vectors = [field_at(v, ring, at) for v in every]
    return sparse_rank([{i: x for i, x in vector.items() if x} for vector in vectors], MERSENNE)


def layers_bound(network: Network | None) -> int:
    """Bound lightning attention by the sum of the dimensions of its layers. Without skip connections a change of basis between
    two layers acts on both and leaves the network: its orbits are subtracted. There the width is e, so many dimensions as
    the outputs of a layer can span: they are combinations of the d rows of X X^T A X of each head, and forms. Of them
    min(e, d heads, d d) are independent for A = E_11, E_22, ..., and so in general.
    """
    if network is None or not network.ranks or network.family == "softmax":
        raise Rejected("a bound by layers rests on a spec of lightning attention")
    total, d, single = 0, network.widths[0], network.tokens == 1
    for number, (a, heads, _, rows) in enumerate(network.layers, start=1):
        e = rows
        if number < len(network.layers) and not network.skip:
            e = min(rows, heads * d, forms(d, d, single))
            total -= e * min(e, d * heads, d * d)
        total += one_layer(a, heads, d, e, single)
        # after outputs v u^T, layers act on v and keep u
        single |= heads == min(a, d) == 1 and not network.skip
        d = e
    return total


def forms(d: int, n: int, single: bool) -> int:
    """Count cubic forms in d variables in the ideal of n of them, for a single token; else d such quadratic forms."""
    return comb(d + 2, 3) - comb(d - n + 2, 3) if single else d * (comb(d + 1, 2) - comb(d - n + 1, 2))


def one_layer(a: int, heads: int, d: int, e: int, single: bool) -> int:
    """Bound one layer. It is linear in sum_h A_h (x) V_h, a matrix with d e columns of rank <= the number of heads, and is seen
    in the products of columns of A with rows of V in Sym^2 only; for a single token A is symmetric, and products are in Sym^3.
    With one output row they lie in the ideal of as many linear forms as there are heads.
    """
    entries, n = d * (d + 1) // 2 if single else d * d, min(heads, d)
    h = min(heads, entries, d * e)
    bounds = [
        heads * (matrices(d, a, single) + d * e - 1),
        h * (entries + d * e - h),
        e * forms(d, d, single),
    ]
    return min([*bounds, n * (d - n) + forms(d, n, single)] if e == 1 else bounds)


# == 5. Records ==========================================================================================


def identical(value: Any, other: Any) -> bool:
    """Tell whether two documents are the same; unlike for ==, 1 and true are not."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


BOUNDS = ("image_dim", "lower_bound", "upper_bound")
HEADLINE = {
    "dimension": ("image_dim",),
    "closure": ("image_dim", "codim", "degree", "completeness"),
    "singular-point": ("verdict",),
    "singular-locus": ("singular_dim", "singular_degree"),
    "symmetries": ("symmetry_dim", "symmetry_lower_bound", "generic_fiber_dim", *BOUNDS),
    "membership": ("closure", "complex_image", "real_image"),
    "same": ("verdict",),
    "identifiable": ("verdict",),
}
"""What the first line of each question's answer says. A record is verified when its certificates show all of it."""
VERDICTS = {kind: ("singular-point", kind) for kind in ("singular", "smooth")}
VERDICTS |= {"same function": ("same", "same"), "different functions": ("same", "different")}
"""For kinds of certificates about points: the question that they answer, and its verdict."""
PARTLY = ("singular-point", "singular-locus", "symmetries")
"""Questions whose records name dimensions that their certificates need not show; they are listed as not covered then."""


def not_shown(record: dict[str, Any], covered: set[str], partly: dict[str, list[str]]) -> list[str]:
    """List what the answer of a record says and no certificate shows."""
    analysis, at_least_partly = str(record.get("analysis")), {*covered, *partly}
    stated = [n for n in HEADLINE.get(analysis, ()) if record.get(n) not in (None, "undecided")]
    missing = [name for name in stated if name not in covered]
    if analysis == "singular-locus" and not stated and "strata" in partly:  # its answer lists singular strata
        rows = [s if type(s) is dict else {} for s in record["strata"]]
        decided = {verdict_of(k) for k, s in enumerate(rows) if s.get("verdict") != "undecided"}
        missing += [] if decided.issubset(partly["strata"]) else ["strata"]
    elif not stated:
        return ["the answer"]
    missing += ["functions"] if analysis == "identifiable" and "functions" not in at_least_partly else []
    return missing if "model" in record and "model" in covered else [*missing, "model"]


def altered(record: dict[str, Any]) -> bool:
    """Tell whether a record has the digest of another one. Who alters a record may write a new digest: this finds mistakes."""
    if "digest" not in record:
        return False
    rest = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return bool(record["digest"] != sha256(text.encode()).hexdigest())


BATCH = {
    "sha256",
    "store_version",
    "key",
    "question",
    "job",
    "outcome",
    "message",
    "result",
    "limits",
    "seconds",
}
BATCH |= {"peak_memory_bytes", "attempts", "engine", "package_version", "finished"}
"""Fields of the record of a batch."""


def check_batch(batch: dict[str, Any]) -> None:
    """Check that the record of a batch has no other fields than these, and that its answer is one to its job."""
    others = [field_name(name) for name in batch if name not in BATCH]
    need(not others, f"the record of a batch has no fields {', '.join(others[:9])}")
    answer = batch["result"]
    for name in ("job", "question"):
        asked = batch.get(name, {})
        need(type(asked) is dict, f"the {name} of a batch is an object")
        same = all(
            identical(asked.get(key, answer.get(key)), answer.get(key)) for key in ("analysis", "model")
        )
        need(same, f"the {name} of the batch has another analysis or model than the answer")


def check_record(
    record: dict[str, Any], certificates: list[Certified], batch: dict[str, Any] | None = None
) -> tuple[int, list[str]]:
    """Return the outcome for a record whose certificates are verified, and sentences that say why. It may be from a batch."""
    if batch is not None:
        check_batch(batch)
        code, lines = check_record(record, certificates)
        return code, [*lines, "Of the record of the batch only `result` was checked."]
    if not certificates:
        need(not altered(record), "the record was altered after it was written")
        need(record.get("certainty") != "proved", "the record calls itself proved and has no certificate")
        nothing = "Nothing was checked, and nothing is known to be wrong."
        if record.get("agreement") is False:
            nothing = "Nothing was checked; it says itself that its witnesses contradict each other."
        return 8, [f"Not proved: there is no certificate in this record. {nothing}"]
    covered, partly = compare_fields(record, certificates)
    missing = not_shown(record, covered, partly)
    unproved = record.get("certainty") == "proved" and not {"model", "functions"}.issuperset(missing)
    need(not unproved, f"the record calls itself proved, and no certificate shows {', '.join(missing)}")
    first, *sentences = report(certificates)
    first += f" Not covered: {', '.join(missing)}." if missing else ""
    if altered(record):
        first += " The record was altered after it was written: do not use anything else in it."
        missing = [*missing, "the rest"]
    rest = [field_name(name) for name in record if name not in {*covered, *partly}]
    rest += [f"{name} but for {', '.join(parts) or 'none'}" for name, parts in partly.items()]
    more = " and more" * (len(rest) > 60)
    last = [f"Not covered by the certificate: {', '.join(rest[:60])}{more}."] if rest else []
    if "functions" in {*covered, *partly}:
        sentences.append(f"The text of the function and its program {EQUAL.format(k=LEAST_EXPONENT)}.")
    return (9 if missing else 0), [first, *sentences, *last]


def field_name(name: str) -> str:
    """Return the name of a field, in quotes if it has other characters than names of fields have."""
    return name if re.fullmatch("[a-z_]{1,40}", name) else json.dumps(printable(name)[:40])


def need_one_network(analysis: Any, certificates: list[Certified]) -> None:
    """Reject certificates about different programs, unless these were compared with one spec.

    Dimensions and points of one network may have different programs: its function, and its coordinates. If its spec is not
    supported, `model` is not covered, and nothing follows from both together.
    """
    specs = {certified.spec for certified in certificates}
    compared = all(certified.identity is not None for certified in certificates)
    apart = specs != {None} and analysis in ("singular-point", "singular-locus")
    one = len(specs) == 1 and (compared or apart)
    one |= len({certified.text for certified in certificates}) == 1
    need(one, "the certificates are about different programs")


def compare_fields(
    record: dict[str, Any], certificates: list[Certified]
) -> tuple[set[str], dict[str, list[str]]]:
    """Compare a record with what its certificates show. Return the fields that follow, and those that follow in part."""
    analysis = record.get("analysis")
    shown, partly = dict[str, Any](), dict[str, list[str]]()
    need_one_network(analysis, certificates)
    rational = analysis in ("closure", "membership") or record.get("field", "QQ") == "QQ"
    need(rational, "the record is about another field than its certificate")
    for certified in certificates:
        follows, in_part = fields_that_follow(record, certified)
        if record.get("field", "QQ") != "QQ":
            follows.pop("span_dim", None)  # modulo a prime there may be other equations
        for name in sorted(set(record) & set(follows)):
            wrong = f"the record states {name} = {printable(record[name])}, the certificate shows {printable(follows[name])}"
            need(identical(record[name], follows[name]), wrong)
        shown |= follows
        for name, parts in in_part.items():
            partly[name] = [*partly.get(name, []), *parts]
    covered = {"certificate", *shown}
    if analysis == "symmetries" and symmetry_dim_follows(record, shown):
        covered.add("symmetry_dim")
    # a closure may state its dimension, and questions of PARTLY all bounds, without a certificate
    uncertified = {"closure": ("image_dim",), **dict.fromkeys(PARTLY, BOUNDS)}.get(str(analysis), ())
    stated = (set(BOUNDS) & set(record)).difference(uncertified)
    unshown = "image_dim" not in covered and (analysis == "dimension" or bool(stated))
    need(not unshown, "the record is about a dimension, and its certificate is not")
    unknown = any(certified.spec is not None and certified.identity is None for certified in certificates)
    return covered - ({"model"} if unknown else set()), partly


def symmetry_dim_follows(record: dict[str, Any], shown: dict[str, Any]) -> bool:
    """Tell whether certificates show symmetry_dim: orbits lie in fibers, so that it is known if both bounds are equal."""
    orbit, stated = shown.get("symmetry_lower_bound"), record.get("symmetry_dim")
    if orbit is None or stated is None:
        return False
    need(type(stated) is int and stated >= orbit, f"symmetry_dim: the certificate shows {orbit}")
    fiber = shown.get("generic_fiber_dim")
    need(fiber is None or stated <= fiber, f"symmetry_dim: the certificate shows at most {fiber}")
    return bool(orbit == fiber)


Fields = tuple[dict[str, Any], dict[str, list[str]]]
"""Fields of a record that follow from a certificate, with their values; and of fields that follow in part, these parts."""


def network_of(certified: Certified) -> Network | None:
    """Return the built-in network that the program of a certificate was compared with, if there is one."""
    return certified.identity.network if certified.identity else None


def facts(certified: Certified) -> dict[str, Any]:
    """Return fields of any record, with their values, that follow from a certificate."""
    program = "program:" + ";".join(certified.text.splitlines()[1:])
    follows: dict[str, Any] = {"model": program if certified.spec is None else certified.spec}
    numbers = certified.shown.numbers
    network = network_of(certified)
    parameters = network.parameter_dim if network else certified.circuit.parameters
    if certified.statement["kind"] in ("dimension", "symmetry") and parameters is not None:
        follows["parameters"] = parameters
    if certified.statement["kind"] == "dimension":
        n = numbers["dimension"]
        follows |= dict.fromkeys(BOUNDS, n)
        if parameters is not None:
            follows["generic_fiber_dim"] = parameters - n
    if certified.statement["kind"] == "symmetry" and not narrow(certified):
        follows["symmetry_lower_bound"] = numbers["orbit"]
    if "span" in numbers:
        follows["span_dim"] = numbers["span"]
    return follows


def narrow(certified: Certified) -> bool:
    """Tell whether the program has the weights (Q, K, V) in place of those of its spec: these have other symmetries."""
    network = network_of(certified)
    return network is not None and network.narrow


def fields_that_follow(record: dict[str, Any], certified: Certified) -> Fields:  # noqa: PLR0911 -- one case for each kind
    """Return fields of this record that follow from a certificate, with their values, and fields that follow in part."""
    follows, kind, analysis = facts(certified), certified.statement["kind"], record.get("analysis")
    if kind == "dimension" and analysis not in PARTLY:
        return follows | {"analysis": "dimension", "certainty": "proved"}, {}
    if kind in VERDICTS and analysis in ("same", "singular-point"):
        more, partly = about_points(record, certified)
        return follows | more, partly
    if kind in ("singular", "smooth") and analysis == "singular-locus":
        return follows, {"strata": about_strata(record, certified)}
    if kind == "dimension" and analysis == "symmetries" and not narrow(certified):
        return follows | ({} if follows.get("generic_fiber_dim", 1) else {"symmetry_lower_bound": 0}), {}
    if kind == "symmetry" and analysis == "symmetries":
        return follows, {"fields": about_fields(record, certified)}
    if kind == "identifiable" and analysis == "identifiable" and not narrow(certified):
        more, partly = about_function(record, certified)
        return follows | more, partly
    if kind == "closure" and analysis == "closure":
        more, partly = about_closure(record, certified)
        return follows | more, partly
    point = kind in ("inside", "outside") and "point" in record
    if point and numbered_alike(record, certified, "membership"):
        follows |= dict.fromkeys(("closure", "complex_image", "real_image"), kind == "inside")
        follows["point"] = texts(certified.statement["point"])
    return follows, {}


def texts(value: Any) -> list[str]:
    """List the entries of nested lists, one after the other, as texts."""
    entries = leaves(value)
    bound_size(max((bit_size(x) for x in entries if type(x) in (int, Fraction)), default=0), 10**4)
    return list(map(str, entries))


def shape_of(value: Any) -> Shape | None:
    """Return the shape of nested lists; None if they are not an array."""
    if type(value) is not list:
        return ()
    shapes = {shape_of(item) for item in value}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(value), *inner)


def about_points(record: dict[str, Any], certified: Certified) -> Fields:
    """Check that the weights that a record is about are those of its certificate, and return the fields that follow."""
    analysis, shows = VERDICTS[certified.statement["kind"]]
    need(record["analysis"] == analysis, "the record and its certificate are about different things")
    weights, circuit, partly = certified.statement["weights"], certified.circuit, dict[str, list[str]]()
    points = dict(zip(("first", "second"), weights, strict=True)) if analysis == "same" else {"at": weights}
    for name, flat in points.items():
        point = record.get(name)
        stated = point.get("weights") if type(point) is dict else None
        if type(point) is not dict or type(stated) is not dict or set(stated) != set(circuit.flat):
            raise Rejected(f"{name} does not name the weights of the program")
        rational = point.get("prime") is None and record.get("field", "QQ") == "QQ"
        need(rational, f"{name} is modulo a prime, and its certificate is not")
        shapes = [circuit.gates[k].shape for k in circuit.weights.values()]
        same = [shape_of(stated[weight]) for weight in circuit.weights] == shapes
        need(same, f"{name} has weights of another shape than the program")
        need(
            point.get("kind", "weights") in ("random", "stratum", "weights"),
            f"{name} has no kind that records have",
        )
        entries = [text for weight in circuit.weights for text in texts(stated[weight])]
        need(entries == texts(flat), f"{name} is not what the certificate is about")
        if any(point[key] is not None for key in set(point) - {"kind", "weights"}):
            partly[name] = ["the weights"]
    need("verdict" in record, "the record has no verdict")
    return {"verdict": shows, **{name: record[name] for name in points if name not in partly}}, partly


def about_function(record: dict[str, Any], certified: Certified) -> Fields:
    """Check that a record is about the function of its certificate, with the same verdict, and return what follows."""
    verdict, fiber = certified.shown.numbers["verdict"], certified.shown.numbers.get("fiber")
    (row,) = read_list(record.get("functions"), "functions", 1)
    need(type(row) is dict and row.get("verdict") == verdict, f"the certificate shows: {verdict}")
    follows = {"verdict": verdict, "parameters": certified.circuit.parameters}
    if fiber is not None:
        follows |= {"generic_fiber_dim": fiber, "symmetry_dim": fiber, "explains_fiber": True}
    if not is_function(row.get("function"), certified):
        return follows, {}
    if any(row[key] is not None for key in set(row) - {"function", "verdict"}):
        return follows, {"functions": ["the function and its verdict"]}
    return follows | {"functions": record["functions"]}, {}


def is_function(text: Any, certified: Certified) -> bool:
    """Compare the text of a function of the weights with the program of a certificate [7]: reject another function.

    Return False for a text of another form, which is not covered.
    """
    # no comments, which could say something else, and no letters that the parser takes for others
    plain = type(text) is str and len(text) <= 1000 and re.fullmatch(r"[A-Za-z0-9_ .,:@*+()\[\]-]*", text)
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip() if plain else "", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    if (certified.spec or "").startswith("map:") and certified.identity is None:
        return False  # the text may name its variables
    g, count = read_program(certified.statement["function"]), certified.circuit.parameters
    last = g.gates[g.outputs[0]]
    function = Circuit(g.gates, g.outputs if g.parameters == count else last.operands[1:])
    shape, variables = function.gates[function.outputs[0]].shape, variables_of(certified.spec or "")
    other = "the function of the record is not that of its certificate"

    def values(ring: Any, weights: Numbers, _: Numbers) -> Numbers:
        """Compute the flat function as its text says."""
        named = arrays(certified.circuit, weights[:count])
        if variables:
            named = dict(zip(variables, weights[:count], strict=True))
        value = value_of(tree, ring, named)
        need(shape_of(value) == shape, other)
        return leaves(value)

    try:
        comparison_error(function, values)
    except NotWritten:
        return False
    need_equal(function, values, other)
    return True


class NotWritten(Exception):  # noqa: N818 - a verdict
    """A text is not written as a function of the weights."""


def leaves(x: Any) -> Numbers:
    """List the entries of nested lists."""
    return [entry for item in x for entry in leaves(item)] if type(x) is list else [x]


def value_of(node: Any, ring: Any, named: dict[str, Any]) -> Any:  # noqa: PLR0911 -- one case for each kind
    """Compute a function of weights, which are nested lists, from its syntax tree: + - * @ **, .T, indices and integers."""
    match node:
        case ast.Name(id=name) if name in named:
            return named[name]
        case ast.Constant(value=n) if type(n) is int:
            return ring.number(n)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return entrywise(ring.multiply, ring.number(-1), value_of(x, ring, named))
        case ast.BinOp(left=x, op=ast.Pow(), right=ast.Constant(value=n)) if type(n) is int and 0 <= n < 1000:
            return entrywise(lambda _, y: ring.power(y, n), ring.number(0), value_of(x, ring, named))
        case ast.BinOp(left=x, op=ast.Add() | ast.Sub() | ast.Mult() | ast.MatMult() as op, right=y):
            left, right = value_of(x, ring, named), value_of(y, ring, named)
            if type(op) is ast.MatMult:
                return matrix_product(ring, left, right)
            right = entrywise(ring.multiply, ring.number(-1), right) if type(op) is ast.Sub else right
            return entrywise(ring.multiply if type(op) is ast.Mult else ring.add, left, right)
        case ast.Attribute(value=x, attr="T"):
            matrix = value_of(x, ring, named)
            if len(shape_of(matrix) or ()) == 2:
                return transpose(matrix)
        case ast.Subscript(value=x, slice=index):
            return entries_at(value_of(x, ring, named), index.elts if type(index) is ast.Tuple else [index])
    raise NotWritten


def entrywise(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Apply a function to the entries of two arrays of one shape, or to a number and those of an array."""
    if type(x) is list and type(y) is list:
        if shape_of(x) is None or shape_of(x) != shape_of(y):
            raise NotWritten
        return [entrywise(function, a, b) for a, b in zip(x, y, strict=True)]
    if type(x) is list:
        return [entrywise(function, a, y) for a in x]
    return [entrywise(function, x, b) for b in y] if type(y) is list else function(x, y)


def matrix_product(ring: Any, x: Any, y: Any) -> Any:
    """Multiply two matrices."""
    shapes = shape_of(x) or (), shape_of(y) or ()
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][1] != shapes[1][0]:
        raise NotWritten
    return product(ring, x, y)


def entries_at(x: Any, indices: list[Any]) -> Any:
    """Take the entries of nested lists at indices, which are syntax trees of integers and slices."""
    if not indices:
        return x
    first, *rest = indices
    if type(first) is ast.Slice:
        run = slice(*(None if n is None else index_in(n) for n in (first.lower, first.upper, first.step)))
        chosen = x[run] if type(x) is list and run.step != 0 else []
        return [entries_at(part, rest) for part in chosen]
    if type(x) is not list or not -len(x) <= index_in(first) < len(x):
        raise NotWritten
    return entries_at(x[index_in(first)], rest)


def index_in(node: Any) -> int:
    """Read an integer from its syntax tree."""
    match node:
        case ast.Constant(value=n) if type(n) is int:
            return n
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=n)) if type(n) is int:
            return -n
    raise NotWritten


def about_strata(record: dict[str, Any], certified: Certified) -> list[str]:
    """List the strata of a record whose representative is the certificate's point; its verdict is theirs.

    One layer of attention is represented by (A, V) unless it has virtual weights, another network by its weights.
    """
    network = network_of(certified)
    numbers = read_numbers(certified.statement["weights"], "weights")
    if network is None or not network.heads or "L" in certified.circuit.weights:
        rows = arrays(certified.circuit, numbers)
    elif network.heads != [1]:
        raise Rejected("strata are known for one layer of attention with one head")
    else:
        ring = Polynomials()
        weights = arrays(certified.circuit, [ring.number(x) for x in numbers])
        pair = zip("AV", head(network, ring, weights, 1, 0), strict=True)
        rows = {name: [[f.get((), 0) for f in row] for row in matrix] for name, matrix in pair}
    flat = {name: texts(matrix) for name, matrix in rows.items()}
    strata = [s if type(s) is dict else {} for s in read_list(record.get("strata"), "strata")]
    # up to version 3 records of singular loci have rows of integers, since then all entries as text
    matching = [k for k, s in enumerate(strata) if s.get("representative") in (rows, flat) and exact(s)]
    need(bool(matching), "no stratum of the record has the point of its certificate")
    agree = all(strata[k].get("verdict") == certified.statement["kind"] for k in matching)
    need(agree, "a stratum has another verdict than its certificate")
    return [verdict_of(k) for k in matching]


def exact(stratum: dict[str, Any]) -> bool:
    """Tell whether the representative of a stratum is written in integers and texts, not as 0.0 or false."""
    return all(type(x) in (int, str) for matrix in stratum["representative"].values() for x in leaves(matrix))


def verdict_of(number: int) -> str:
    """Say what is known of a stratum."""
    return f"the verdict of number {number} at its representative"


def about_fields(record: dict[str, Any], certified: Certified) -> list[str]:
    """Count the vector fields of a record that are among those of the certificate."""
    verified = {json.dumps(value) for value in certified.statement["fields"]}
    stated = [
        f.get("coefficients") if type(f) is dict else f for f in read_list(record.get("fields"), "fields")
    ]
    common = {json.dumps(value) for value in stated} & verified
    return [f"the identities of {len(common)} of {len(stated)}"]


def numbered_alike(record: dict[str, Any], certified: Certified, analysis: str) -> bool:
    """Tell whether a record of this question, over QQ, numbers coordinates as the certificate: they are outputs, or all
    coefficients of forms in a vector.
    """
    if record.get("analysis") != analysis or record.get("field", "QQ") != "QQ":
        return False
    network = network_of(certified)
    vector = network is not None and len(network.input_shape) == 1
    point = record.get("point")
    need(point is None or type(point) is list, "point is a list")
    count = len(point) if point is not None else record.get("coordinate_count")
    same = identical(count, certified.shown.numbers.get("coordinates"))
    return not certified.circuit.input_size or (vector and same)


def about_closure(record: dict[str, Any], certified: Certified) -> Fields:
    """Compare numbers of minimal generators by degree, and equations, of a closure over QQ; return the fields that follow."""
    values, k = certified.statement["equations"], certified.statement["degree"]
    equations, follows, partly = record.get("equations"), dict[str, Any](), dict[str, list[str]]()
    if record.get("field", "QQ") != "QQ":
        return {}, {}
    homogeneous = all(len({sum(e for _, e in powers) for _, powers in f}) == 1 for f in values)
    if "generators" in record and (
        homogeneous or len(values) == 1
    ):  # else equations may not be minimal generators
        need(type(record["generators"]) is dict, "generators is an object")
        bound = record.get("degree_bound")
        complete = bound is not None and read_integer(bound, 0, 100, "a degree") <= k
        numbers, most = certified.shown.numbers["generators"], bound if complete else k
        shows = {str(degree): n for degree, n in numbers.items() if n and 1 < degree <= most}
        need(all(re.fullmatch(NATURAL, d) for d in record["generators"]), "a degree is not written like this")
        higher = {d: n for d, n in record["generators"].items() if int(d) > k}
        if complete:
            follows = {"generators": shows, "degree_bound": bound}
        else:
            need(identical(record["generators"], shows | higher), "the closure has other generators")
            partly["generators"] = [f"those of degree at most {k}"]
    need(equations is None or type(equations) is list, "equations is a list")
    if equations and numbered_alike(record, certified, "closure"):
        listed = []
        for f in equations:
            degree, coefficients, factors = read_object(
                f, "an equation", "degree", "coefficients", "monomials"
            )
            number = len(read_list(coefficients, "coefficients"))
            need(number > 0, "an equation has terms")
            for monomial in read_list(factors, "monomials", number):
                read_integers(monomial, 0, 10**9, "a coordinate")
            terms = zip(coefficients, factors, strict=True)
            listed.append([[c, [list(power) for power in sorted(Counter(m).items())]] for c, m in terms])
            need(identical(degree, max(map(len, factors))), "an equation has another degree")
        need(identical(listed, values), "the closure has other equations")
        follows |= {"equations": equations, "field": "QQ"}
    return follows, partly
