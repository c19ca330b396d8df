"""Checker: models read from their specs, run on dual numbers modulo p. Standard library only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any


class Rejected(ValueError):  # noqa: N818 - it is a verdict
    """A certificate does not hold; the message says where."""


Vector = list[Any]
Matrix = list[list[Any]]


class Dual:
    """A residue modulo p with its derivatives in several directions (an empty list: all zero)."""

    __slots__ = ("d", "p", "x")

    def __init__(self, x: int, d: list[int], p: int) -> None:
        self.x, self.d, self.p = x % p, d, p

    def __add__(self, other: Dual) -> Dual:
        if not self.d or not other.d:
            return Dual(self.x + other.x, self.d or other.d, self.p)
        return Dual(self.x + other.x, [a + b for a, b in zip(self.d, other.d, strict=True)], self.p)

    def __mul__(self, other: Dual) -> Dual:
        p, x, y = self.p, self.x, other.x
        if not self.d:
            return Dual(x * y, [x * b % p for b in other.d], p)
        if not other.d:
            return Dual(x * y, [y * a % p for a in self.d], p)
        return Dual(x * y, [(y * a + x * b) % p for a, b in zip(self.d, other.d, strict=True)], p)


def total(terms: list[Any]) -> Any:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def product(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[total([a * b for a, b in zip(row, column, strict=True)]) for column in columns] for row in left]


def transpose(matrix: Matrix) -> Matrix:
    return [list(row) for row in zip(*matrix, strict=True)]


def power(x: Any, r: int) -> Any:
    result = x
    for _ in range(r - 1):
        result = result * x
    return result


@dataclass(frozen=True)
class Network:
    """What a spec says: its family and its arguments."""

    family: str
    arguments: dict[str, Any]

    # -- sizes ------------------------------------------------------------------------------------------

    @property
    def widths(self) -> list[int]:
        if self.family == "lightning":
            return [self.arguments["d"], self.arguments["dp"]]
        key = "d" if self.attention else "widths"
        return list(self.arguments[key])

    @property
    def attention(self) -> bool:
        return self.family in ("lightning", "deep-lightning", "softmax")

    @property
    def ranks(self) -> list[int]:
        a = self.arguments["a"]
        return [a] if isinstance(a, int) else list(a)

    @property
    def tokens(self) -> int:
        return int(self.arguments["t"])

    @property
    def heads(self) -> list[int]:
        heads = self.arguments.get("heads", 1)
        return [heads] * len(self.ranks) if isinstance(heads, int) else list(heads)

    @property
    def skip(self) -> bool:
        return bool(self.arguments.get("skip", False))

    @property
    def parametrization(self) -> str:
        return str(self.arguments.get("parametrization", "weights"))

    @property
    def plain_attention(self) -> bool:
        """Attention with one head a layer and no skip connections: what slices and virtual weights are for."""
        return self.attention and not self.skip and max(self.heads) == 1

    def shapes(self, parametrization: str | None = None) -> dict[str, tuple[int, ...]]:
        """Names and shapes of free weights, in order; those of (Q, K, V) unless (A, V) is asked for."""
        if self.family in ("mlp", "linear"):
            w = self.widths
            return {f"W{i}": (w[i], w[i - 1]) for i in range(1, len(w))}
        if self.family == "convolution":
            return {f"w{i}": (size,) for i, size in enumerate(self.arguments["filters"], start=1)}
        if self.family == "map":
            return {"x": (len(self.arguments["variables"]),)}
        found: dict[str, tuple[int, ...]] = {}
        w, last = self.widths, len(self.ranks)
        for i, (a, h) in enumerate(zip(self.ranks, self.heads, strict=True), start=1):
            lead = (h,) if h > 1 else ()
            mark = "" if self.family == "lightning" else str(i)
            if parametrization == "attention":
                found[f"A{mark}"] = (*lead, w[i - 1], w[i - 1])
            else:
                found[f"Q{mark}"] = found[f"K{mark}"] = (*lead, a, w[i - 1])
            found[f"V{mark}"] = (*lead, w[i], w[i - 1])
        assert last == len(w) - 1
        return found

    @property
    def free_parametrization(self) -> str:
        """(A, V) itself when nothing constrains it, (Q, K, V) otherwise."""
        free = all(a >= d for a, d in zip(self.ranks, self.widths, strict=False)) if self.attention else True
        return "attention" if self.attention and self.parametrization == "attention" and free else "weights"

    def parameter_dim(self) -> int:
        """Dimension of the space of weights as the spec parametrizes it."""
        if self.attention and self.parametrization == "attention":
            w = self.widths
            ranks = [min(a, d) for a, d in zip(self.ranks, w, strict=False)]
            layers = zip(ranks, self.heads, w, w[1:], strict=False)
            return sum(h * (r * (2 * d - r) + d * e) for r, h, d, e in layers)
        return sum(size(shape) for shape in self.shapes().values())

    def coordinate_count(self) -> int:
        """Number of coefficients of the functions of this kind, in the coordinates of the spec."""
        if self.family == "map":
            return len(self.arguments["polynomials"])
        if self.family == "softmax":
            raise Rejected("softmax networks have no coordinates")
        if self.attention:
            w, t, depth = self.widths, self.tokens, len(self.ranks)
            segre = depth == 1 and not self.skip and t > 1
            if self.arguments.get("coordinates", "segre" if segre else "full") == "segre":
                return w[0] * w[1] * comb(w[0] + 1, 2)
            degrees = range(1, 3**depth + 1, 2) if self.skip else [3**depth]
            return w[-1] * t * sum(comb(w[0] * t + k - 1, k) for k in degrees)
        if self.family == "convolution":
            n, m, depth = self.layer_sizes()[0], 1, len(self.arguments["filters"])
        else:
            n, m, depth = self.widths[0], self.widths[-1], len(self.widths) - 1
        degree = self.activation ** (depth - 1)
        return m * comb(n + degree - 1, degree)

    @property
    def activation(self) -> int:
        return int(self.arguments.get("r", 1 if self.family == "linear" else 2))

    def layer_sizes(self) -> list[int]:
        sizes = [1]
        strides = self.strides()
        for k, s in reversed(list(zip(self.arguments["filters"], strides, strict=True))):
            sizes.append((sizes[-1] - 1) * s + k)
        return sizes[::-1]

    def strides(self) -> list[int]:
        strides = self.arguments.get("strides", 1)
        return [strides] * len(self.arguments["filters"]) if isinstance(strides, int) else list(strides)

    # -- the map ----------------------------------------------------------------------------------------

    def outputs(self, weights: dict[str, Any], x: Any) -> Vector:
        """All output entries, row by row, at one input; the weights are nested lists of numbers of one kind."""
        if self.family in ("mlp", "linear"):
            value = [[v] for v in x]
            for i in range(1, len(self.widths)):
                if i > 1:
                    value = [[power(v[0], self.activation)] for v in value]
                value = product(weights[f"W{i}"], value)
            return [row[0] for row in value]
        if self.family == "convolution":
            value = list(x)
            sizes, r = self.layer_sizes(), self.activation
            for i, stride in enumerate(self.strides(), start=1):
                if i > 1:
                    value = [power(v, r) for v in value]
                w = weights[f"w{i}"]
                value = [
                    total([w[j] * value[n * stride + j] for j in range(len(w))]) for n in range(sizes[i])
                ]
            return value
        for i, h in enumerate(self.heads, start=1):
            mark = "" if self.family == "lightning" else str(i)
            value = []
            for k in range(h):
                own = {
                    name[0]: weights[name][k] if h > 1 else weights[name]
                    for name in weights
                    if name[1:] == mark
                }
                if "A" in own:
                    scores = product(transpose(x), product(own["A"], x))
                else:
                    scores = product(transpose(product(own["K"], x)), product(own["Q"], x))
                out = product(own["V"], product(x, scores))
                value = add(value, out) if value else out
            x = add(x, value) if self.skip else value
        return [entry for row in x for entry in row]


def add(left: Matrix, right: Any) -> Matrix:
    return [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(left, right, strict=True)]


def size(shape: tuple[int, ...]) -> int:
    result = 1
    for n in shape:
        result *= n
    return result


# -- specs ------------------------------------------------------------------------------------------------


def read_spec(spec: str) -> Network:
    """The model that a spec names."""
    if spec.startswith("map:"):
        return _read_map(spec[4:])
    match = re.fullmatch(r"([a-z-]+)\((.*)\)", spec)
    families = ("lightning", "deep-lightning", "softmax", "mlp", "linear", "convolution")
    if not match or match[1] not in families:
        raise Rejected(f"the model {spec!r} is not one that this checker knows")
    arguments: dict[str, Any] = {}
    for item in re.findall(r"[a-z]+=(?:\[[\d,]*\]|[^,\[\]]+)", match[2]):
        key, text = item.split("=")
        if text.startswith("["):
            arguments[key] = [int(n) for n in text[1:-1].split(",")]
        elif re.fullmatch(r"\d+", text):
            arguments[key] = int(text)
        else:
            arguments[key] = {"true": True, "false": False}.get(text, text)
    if arguments.get("parametrization") == "virtual":
        raise Rejected("virtual weights are not checked; use the network by its weights")
    network = Network(match[1], arguments)
    network.shapes()
    return network


def _read_map(text: str) -> Network:
    left, _, right = text.partition("->")
    names = [name.strip() for name in left.split(",")]
    polynomials = [ast.parse(part.strip().replace("^", "**"), mode="eval").body for part in right.split(";")]
    return Network("map", {"variables": names, "polynomials": polynomials})


def evaluate(node: ast.expr, values: dict[str, Dual], p: int) -> Dual:
    """A polynomial with rational coefficients at dual numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Dual(node.value, [], p)
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return evaluate(node.operand, values, p) * Dual(sign, [], p)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            exponent = node.right.value
            if not isinstance(exponent, int) or exponent < 0:
                raise Rejected("an exponent is not a natural number")
            return power(evaluate(node.left, values, p), exponent) if exponent else Dual(1, [], p)
        first, second = evaluate(node.left, values, p), evaluate(node.right, values, p)
        if isinstance(node.op, ast.Add):
            return first + second
        if isinstance(node.op, ast.Sub):
            return first + second * Dual(-1, [], p)
        if isinstance(node.op, ast.Mult):
            return first * second
        if isinstance(node.op, ast.Div) and not second.d and second.x:
            return first * Dual(int(Fraction(1)) * pow(second.x, -1, p), [], p)
    raise Rejected("a polynomial of the map cannot be read")
