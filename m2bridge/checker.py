"""Check a certificate of m2bridge. Standard library only: ``python -I checker.py RECORD.json``.

A certificate states one fact about one network, for example its dimension, and holds everything that is needed to see that it
is true: the network as a program, a point, and arguments. ``docs/certificates.md`` specifies all of it. This file reads the
document strictly, computes everything again with exact integers, and prints what is shown, on what it rests, and which
fields of the record it says nothing about. It ends with one of five outcomes: 0 verified, 7 rejected (something in the
document is false or is not written as the format demands), 8 not known (no certificate, another format, too large, or an error
of this program), 9 partly verified (the certificates hold, but do not show all that the first line of the answer says), 5
stopped by the limit of processor time (a minute; ``--seconds N`` changes it).

Contents, in reading order. The few facts of mathematics that are used stand where they are used.

 1. Documents         what a JSON value may be: keys, integers, primes, points
 2. Programs          the text of a network, and the shape of each instruction
 3. Kinds of numbers  residues, polynomials, sets of degrees: what `add`, `multiply`, `dot` mean
 4. The evaluator     a program over one kind of numbers, and its derivatives in both directions
 5. Linear algebra    ranks modulo a prime
 6. Lower bounds      a minor of the Jacobian that is not zero
 7. Symmetries        groups and vector fields that do not change the function, verified as identities
 8. Upper bounds      parameters, coordinates, symmetries, compositions
 9. Equations         polynomials that vanish on the image, and flattenings
10. Built-in networks their definition once more, and counts that rest on the spec
11. Statements        dimension, closure, points inside, outside, singular and smooth, symmetry, same function
12. Records           which fields of a record follow, and the outcome
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from hashlib import sha256
from itertools import accumulate, chain, combinations, combinations_with_replacement, pairwise
from math import comb, factorial, gcd, lcm, prod
from operator import mul
from pathlib import Path
from typing import Any

Shape = tuple[int, ...]
Numbers = list[Any]

MOST_BYTES = 16 * 2**20
MOST_ENTRIES = 4 * 2**20  # of all arrays of a program together
MOST_SECONDS = 60  # of processor time, if --seconds does not say otherwise
MOST_MEMORY = 4 * 2**30  # bytes of address space
MOST_TERMS = 10**7  # products of terms in one expansion of polynomials
LARGE = 10**4000
BIG = 2**61 - 1  # a prime
RANDOM = random.SystemRandom()


class Rejected(Exception):  # noqa: N818 - a verdict
    """Something in the document is false, or is not written as the format demands."""


class ZeroDenominator(Rejected):
    """A point modulo a prime at which a denominator is zero."""


class Unknown(Exception):  # noqa: N818 - a verdict
    """The document may be true; this checker cannot tell."""


def need(condition: bool, reason: str) -> None:
    if not condition:
        raise Rejected(reason)


def limit(size: float, most: float) -> None:
    if size > most:
        raise Unknown(f"this has a size of about {size:.0e}; this checker stops at {most:.0e}")


# == 1. Documents ========================================================================================


def read_json(text: str) -> Any:
    """The document; keys that occur twice, NaN and numbers without end (more than 4300 digits) are refused."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key occurs twice in one object")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=table, parse_constant=int)  # int("NaN") is a ValueError
    except (ValueError, RecursionError):
        raise Rejected("the document is not JSON, or is nested too deeply") from None


def fields(value: Any, what: str, *names: str) -> list[Any]:
    """The values of an object that has exactly these keys."""
    exact = type(value) is dict and set(value) == set(names)
    need(exact, f"{what} has the keys {', '.join(names)} and no others")
    return [value[name] for name in names]


Kinds = dict[str, tuple[Callable[..., Any], tuple[str, ...]]]
"""For each kind of an object: who reads it, and its other keys."""


def by_kind(value: Any, what: str, kinds: Kinds, key: str = "kind") -> tuple[Callable[..., Any], list[Any]]:
    """Who reads an object of this kind, and the values of its other keys."""
    kind = value.get(key) if type(value) is dict else None
    if type(kind) is not str or kind not in kinds:
        raise Rejected(f"{what} is of no kind that the format knows")
    function, names = kinds[kind]
    return function, fields(value, f"{what}: {kind}", key, *names)[1:]


def integer(value: Any, low: int, high: int, what: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Rejected(f"{what} is an integer from {shown(low)} to {shown(high)}")
    return value


def listed(value: Any, what: str, length: int | None = None) -> list[Any]:
    need(type(value) is list and length in (None, len(value)), f"{what} is a list of {length or 'values'}")
    return list(value)


def integers(value: Any, low: int, high: int, what: str, length: int | None = None) -> list[int]:
    return [integer(x, low, high, what) for x in listed(value, what, length)]


def shown(value: Any) -> str:
    """A short text in which no control character survives."""
    text = str(value) if type(value) is not int or abs(value) < 10**30 else "..."
    return re.sub(r"[^ -~]", "?", text if len(text) <= 160 else text[:150] + "...")


def identical(value: Any, other: Any) -> bool:
    """Whether two documents are the same; unlike for ==, 1 and true are not."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def is_prime(n: int) -> bool:
    """Miller and Rabin's test; with these bases it makes no mistake below 3 * 10^23."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n <= bases[-1] or n % 2 == 0:
        return n in bases
    twos = (n - 1 & 1 - n).bit_length() - 1
    powers = ([pow(b, n - 1 >> k, n) for k in range(1, twos + 1)] for b in bases)
    return all(found[-1] == 1 or n - 1 in found for found in powers)


def prime(value: Any) -> int:
    p = integer(value, 2, 2**63 - 1, "a prime")
    need(is_prime(p), f"{p} is not a prime")
    return p


def stream(seed: int, number: int, count: int) -> Iterator[int]:
    """The numbers of a splitmix64 stream."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    start = mix(2**32 * seed + number & mask)
    return (mix(start + (i + 1) * 0x9E3779B97F4A7C15 & mask) for i in range(count))


def point(value: Any, count: int, p: int) -> list[int]:
    """A POINT: residues modulo p."""
    limit(count, MOST_ENTRIES)
    if type(value) is dict and set(value) == {"entries"}:
        return integers(value["entries"], 0, p - 1, "an entry of a point", count)
    seed, number, fixed = fields(value, "a point without entries", "seed", "stream", "fixed")
    seed, number = integer(seed, 0, 2**32 - 1, "a seed"), integer(number, 0, 2**32 - 1, "a stream")
    found, end = [x % p for x in stream(seed, number, count)], 0
    for run in listed(fixed, "fixed"):
        start, values = listed(run, "a run of fixed entries", 2)
        start, values = integer(start, end, count, "a start"), integers(values, 0, p - 1, "a fixed entry")
        end = start + len(values)
        need(bool(values) and end <= count, "a run of fixed entries leaves the point")
        found[start:end] = values
    return found


def rational(text: str) -> Fraction | int:
    need(bool(re.fullmatch(RATIONAL, text)), "a rational number is not written like this")
    above, _, below = text.partition("/")
    lowest = not below or (gcd(int(above), int(below)) == 1 and below != "1")
    need(lowest, "a fraction is not in lowest terms")
    return Fraction(int(above), int(below)) if below else int(above)


def exact(value: Any, what: str, length: int | None = None) -> Numbers:
    """Rational numbers: integers, or fractions as texts."""
    found = [rational(x) if type(x) is str and "/" in x else x for x in listed(value, what, length)]
    need(all(type(x) in (int, Fraction) for x in found), f"{what}: integers, or fractions as texts")
    return found


# == 2. Programs =========================================================================================

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
NATURAL = r"(?:0|[1-9][0-9]{0,9})"
RATIONAL = r"(?:0|-?[1-9][0-9]{0,3998})(?:/[1-9][0-9]{0,3998})?"
SHAPE = rf"\[(?:{NATURAL}(?:,{NATURAL})*)?\]"
PART = rf"{NATURAL}:{NATURAL}:-?{NATURAL}"
WORDS: dict[str, tuple[list[str], int | None]] = {  # words before the operands, and the number of operands
    "weight": ([NAME, SHAPE], 0), "input": ([NAME, SHAPE], 0), "add": ([], 2), "multiply": ([], 2), "scale": ([RATIONAL], 1),
    "power": ([NATURAL], 1), "einsum": ([r"[a-z]*(?:,[a-z]*)?->[a-z]*"], None), "reshape": ([SHAPE], 1),
    "slice": ([rf"{PART}(?:,{PART})*"], 1), "gather": ([SHAPE, rf"{NATURAL}(?:,{NATURAL})*"], 1),
    "concatenate": ([NATURAL], None), "softmax": ([NATURAL], 1), "exp": ([], 1), "reciprocal": ([], 1),
}  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz"
BILINEAR = ("einsum", "multiply")
EXPONENTIAL = ("softmax", "exp")
ANALYTIC = (*EXPONENTIAL, "reciprocal")
ORDER = {"weight": 0, "input": 1}  # everything else comes after them


@dataclass(slots=True)
class Gate:
    """One instruction of a program. Its plan is what is the same at every point: for einsum and multiply contractions for the
    value and for both transposes; for softmax its lines; else, for each operand, the place that each entry of the result reads
    there, or None.
    """

    operation: str
    words: list[Any]  # the constants, read
    operands: list[int]
    shape: Shape
    plan: Any = None


def grid(lengths: dict[str, int], term: str, letters: str) -> list[int]:
    """Flat places in an array whose axes are the letters of a term, while some letters run, the last one fastest."""
    step = dict(zip(term, row_major([lengths[c] for c in term]), strict=True))
    return offsets([lengths[c] for c in letters], [step.get(c, 0) for c in letters])


@dataclass
class Circuit:
    """A program. Weights come first, then inputs; flat weights are their entries, one weight after the other."""

    gates: list[Gate] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    unknowns_up_to: list[int] = field(default_factory=list)  # where the last field was seen to be a symmetry

    @cached_property
    def weights(self) -> dict[str, int]:
        return {g.words[0]: k for k, g in enumerate(self.gates) if g.operation == "weight"}

    @cached_property
    def inputs(self) -> dict[str, int]:
        return {g.words[0]: k for k, g in enumerate(self.gates) if g.operation == "input"}

    def size(self, *places: int) -> int:
        return sum(prod(self.gates[k].shape) for k in places)

    @cached_property
    def parameters(self) -> int:
        return self.size(*self.weights.values())

    @cached_property
    def input_size(self) -> int:
        return self.size(*self.inputs.values())

    @property
    def polynomial(self) -> bool:
        return not any(g.operation in ANALYTIC for g in self.gates)

    @cached_property
    def flat(self) -> dict[str, range]:
        """The flat weights of each weight."""
        found, start = {}, 0
        for name, place in self.weights.items():
            found[name] = range(start, start + self.size(place))
            start += self.size(place)
        return found

    def depends(self, places: set[int]) -> list[bool]:
        """For each instruction, whether its value depends on one of these places."""
        found: list[bool] = []
        for k, gate in enumerate(self.gates):
            found.append(k in places or any(found[j] for j in gate.operands))
        return found


def read_program(text: Any) -> Circuit:
    """The program with this canonical text."""
    need(type(text) is str and text.isascii(), "a program is ASCII text")
    lines = text.split("\n")
    limit(len(lines), 10**5)
    need(lines[0] == "m2bridge program 1" and lines[-1] == "", "a program has a header and ended lines")
    circuit, entries, products = Circuit(), 0, 0
    names: list[str] = []
    for line in lines[1:-1]:
        tail = re.fullmatch(rf"output ({NAME}) %({NATURAL})", line)
        if tail:
            need(int(tail[2]) < len(circuit.gates), "an output is not computed")
            circuit.outputs.append(int(tail[2]))
            names.append(f"output {tail[1]}")
            continue
        need(not names, "instructions come before outputs")
        circuit.gates.append(read_gate(line, circuit.gates))
        entries += prod(circuit.gates[-1].shape)
        limit(entries, MOST_ENTRIES)
        if circuit.gates[-1].operation in BILINEAR:  # the memory of their plans
            products += circuit.gates[-1].plan[0].products
            limit(products, 4 * MOST_ENTRIES)
    kinds = [ORDER.get(gate.operation, 2) for gate in circuit.gates]
    need(kinds == sorted(kinds) and 0 in kinds, "weights come first, then inputs, then the computation")
    names += [gate.words[0] for gate in circuit.gates if gate.operation in ORDER]
    need(len(set(names)) == len(names), "a name is used twice")
    need(bool(circuit.outputs), "a program has an output")
    limit(circuit.size(*circuit.outputs), MOST_ENTRIES)
    return circuit


def read_gate(line: str, before: list[Gate]) -> Gate:
    words, what = line.split(" "), f"instruction {len(before)}"
    need(len(words) > 2 and words[:2] == [f"%{len(before)}", "="], f"{what} is missing or has another number")
    operation, words = words[2], words[3:]
    if operation == "constant":
        need(len(words) > 1 and bool(re.fullmatch(SHAPE, words[0])), f"{what} is not a constant")
        gate = Gate(operation, [rational(word) for word in words[1:]], [], naturals(words[0]))
        need(prod(gate.shape) == len(gate.words), f"{what} has another number of entries than its shape")
    else:
        need(operation in WORDS, f"{what} is not one that the format knows")
        patterns, count = WORDS[operation]
        own, operands = words[: len(patterns)], words[len(patterns) :]
        written = len(own) == len(patterns) and all(map(re.fullmatch, patterns, own))
        written = written and all(re.fullmatch(f"%{NATURAL}", word) for word in operands)
        need(written, f"{what} is not written like this")
        places = [int(word[1:]) for word in operands]
        need(all(k < len(before) for k in places), f"{what}: an operand comes later")
        need(count is None or len(places) == count, f"{what}: {operation} has {count} operands")
        constants, shape, plan = typed(operation, own, [before[k].shape for k in places], what)
        gate = Gate(operation, constants, places, shape, plan)
    need(all(gate.shape) and len(gate.shape) <= 20, f"{what} has an empty axis or too many axes")
    return gate


def naturals(text: str) -> Shape:
    return tuple(map(int, re.findall("-?[0-9]+", text)))


def offsets(lengths: Sequence[int], steps: Sequence[int], start: int = 0) -> list[int]:
    """Flat places of a grid: a start plus the sums of index times step, last axis fastest."""
    limit(prod(lengths), MOST_ENTRIES)
    found = [start]
    for n, step in zip(lengths, steps, strict=True):
        found = [place + i * step for place in found for i in range(n)]
    return found


def row_major(shape: Sequence[int]) -> list[int]:
    return [prod(shape[k + 1 :]) for k in range(len(shape))]


class Contraction:
    """result[kept] = sum over summed letters of x[...] y[...]; a letter that an array lacks has step 0."""

    def __init__(self, lengths: dict[str, int], x: str, y: str, kept: str) -> None:
        summed = "".join(c for c in lengths if c not in kept and c in x + y)
        products = prod(lengths.values())
        limit(products, MOST_ENTRIES)
        self.products = products
        self.sides = [[grid(lengths, term, letters) for letters in (kept, summed)] for term in (x, y)]

    def __call__(self, ring: Any, x: Numbers, y: Numbers) -> Numbers:
        tables = []
        for values, (outer, inner) in zip((x, y), self.sides, strict=True):
            rows = {o: [values[o + i] for i in inner] for o in set(outer)}
            tables.append([rows[o] for o in outer])
        return list(map(ring.dot, *tables))


def contractions(lengths: dict[str, int], x: str, y: str, result: str) -> list[Contraction]:
    """A sum of products, and its transposes: a result's derivative times one array, summed to the shape of the other."""
    return [Contraction(lengths, *way) for way in ((x, y, result), (result, y, x), (result, x, y))]


def typed(operation: str, own: list[str], shapes: list[Shape], what: str) -> tuple[list[Any], Shape, Any]:  # noqa: C901, PLR0911, PLR0915 -- one case for each instruction
    """The constants of an instruction, the shape of its result, and its plan."""
    first, fits = shapes[0] if shapes else (), f"{what}: the shapes do not fit"
    if operation in ORDER:
        return [own[0]], naturals(own[1]), None
    if operation in ("add", "multiply"):
        letters = LETTERS[: max(map(len, shapes))]
        aligned = [(1,) * (len(letters) - len(s)) + s for s in shapes]
        pairs = list(zip(*aligned, strict=True))
        need(all(m == n or 1 in (m, n) for m, n in pairs), fits)
        shape = tuple(map(max, pairs))
        lengths = dict(zip(letters, shape, strict=True))
        x, y = ("".join(c for c, n in zip(letters, s, strict=True) if n > 1) for s in aligned)
        if operation == "multiply":
            return [], shape, contractions(lengths, x, y, letters)
        return [], shape, [grid(lengths, term, letters) for term in (x, y)]
    if operation == "einsum":
        left, _, result = own[0].partition("->")
        terms, lengths = left.split(","), dict[str, int]()
        need([len(t) for t in terms] == [len(s) for s in shapes], fits)
        order = "".join(dict.fromkeys("".join(terms)))
        need(LETTERS.startswith(order), f"{what}: letters do not come in order")
        once = all(len(set(t)) == len(t) for t in (*terms, result)) and set(result) <= set(order)
        need(once, f"{what}: a letter occurs twice in a term, or only in the result")
        for letter, n in zip("".join(terms), (n for s in shapes for n in s), strict=True):
            need(lengths.setdefault(letter, n) == n, fits)
        x, y = (*terms, "")[:2]
        shape = tuple(lengths[c] for c in result)
        return [x, y, result], shape, contractions(lengths, x, y, result)
    if operation == "slice":
        parts, steps = [naturals(part) for part in own[0].split(",")], row_major(first)
        need(len(parts) == len(first), fits)
        for (start, count, step), n in zip(parts, first, strict=True):
            inside = 0 <= start < n and 0 <= start + (count - 1) * step < n and count > 0
            need(inside and (step == 1 if count == 1 else step != 0), f"{what}: a slice leaves the array")
        starts, shape, jumps = zip(*parts, strict=True)
        return [], shape, [offsets(shape, list(map(mul, jumps, steps)), sum(map(mul, starts, steps)))]
    if operation == "gather":
        shape, places = naturals(own[0]), naturals(own[1])
        need(len(places) == prod(shape) and max(places) < prod(first), fits)
        return [], shape, [places]
    if operation in ("concatenate", "softmax"):
        axis = int(own[0])
        need(axis < len(first) and (operation == "softmax" or len(shapes) > 1), fits)
        need(len({(*s[:axis], 0, *s[axis + 1 :]) for s in shapes}) == 1, fits)
        shape, steps = (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :]), row_major(first)
        if operation == "softmax":
            lines = offsets(first[:axis] + first[axis + 1 :], steps[:axis] + steps[axis + 1 :])
            return [axis], shape, [range(o, o + first[axis] * steps[axis], steps[axis]) for o in lines]
        limit(prod(shape) * len(shapes), 4 * MOST_ENTRIES)
        blocks = [(side, prod(s[axis:])) for side, s in enumerate(shapes)]  # rows of the operands in turn
        read = [(side, o * n + i) for o in range(prod(first[:axis])) for side, n in blocks for i in range(n)]
        return [], shape, [[i if own == side else None for own, i in read] for side, _ in blocks]
    constants: list[Any] = [rational(word) for word in own] if operation in ("scale", "power") else []
    shape = naturals(own[0]) if operation == "reshape" else first
    need(prod(shape) == prod(first), fits)
    need(operation != "power" or 2 <= constants[0] <= 10**6, f"{what}: the exponent is out of range")
    return constants, shape, [range(prod(shape))]


# == 3. Kinds of numbers =================================================================================


class Ring:
    """What kinds of numbers share: sums of products and powers, made of `add` and `multiply`."""

    add: Callable[[Any, Any], Any]
    multiply: Callable[[Any, Any], Any]
    number: Callable[[Fraction | int], Any]
    exp: Callable[[Any], Any]  # this and the next not for all kinds
    reciprocal: Callable[[Any], Any]

    def dot(self, xs: Numbers, ys: Numbers) -> Any:
        return reduce(self.add, map(self.multiply, xs, ys), self.number(0))

    def power(self, x: Any, n: int) -> Any:
        result = self.number(1)
        for bit in f"{n:b}":
            result = self.multiply(result, result)
            result = self.multiply(result, x) if bit == "1" else result
        return result

    def softmax(self, xs: Numbers) -> Numbers:
        return self.normalised([self.exp(x) for x in xs])

    def normalised(self, xs: Numbers) -> Numbers:
        """Numbers divided by their sum."""
        total = self.reciprocal(reduce(self.add, xs))
        return [self.multiply(x, total) for x in xs]


class ModP(Ring):
    """Integers modulo a prime."""

    def __init__(self, p: int) -> None:
        self.p = p

    def number(self, q: Fraction | int) -> int:
        if type(q) is int:
            return q % self.p
        need(q.denominator % self.p != 0, "the prime divides a denominator")
        return int(q.numerator * pow(q.denominator, -1, self.p) % self.p)

    def add(self, x: int, y: int) -> int:
        return (x + y) % self.p

    def multiply(self, x: int, y: int) -> int:
        return x * y % self.p

    def dot(self, xs: list[int], ys: list[int]) -> int:
        return int(sum(map(mul, xs, ys)) % self.p)

    def power(self, x: int, n: int) -> int:
        return pow(x, n, self.p)

    def reciprocal(self, x: int) -> int:
        if x == 0:
            raise ZeroDenominator(f"a denominator is zero modulo {self.p}")
        return pow(x, -1, self.p)


class Symbols(ModP):
    """Integers modulo a random prime, with exp replaced by a random function: what is equal here is equal as an expression."""

    def __init__(self) -> None:
        super().__init__(next(n for n in iter(lambda: RANDOM.randrange(2**61, 2**63), 0) if is_prime(n)))
        self.key = RANDOM.randbytes(32)

    def drawn(self, count: int) -> list[int]:
        """Random numbers."""
        return [RANDOM.randrange(self.p) for _ in range(count)]

    def exp(self, x: int) -> int:
        return int.from_bytes(sha256(self.key + x.to_bytes(8, "little")).digest(), "little") % self.p


Polynomial = dict[Shape, Any]
"""Coefficients of monomials; a monomial is the sorted tuple of its variables."""


class Polynomials(Ring):
    """Polynomials with rational coefficients. Products of terms are counted and limited, with the lengths of their monomials."""

    def __init__(self, most: int = MOST_TERMS) -> None:
        self.count, self.terms, self.length, self.most = 0, 0, 0, most

    def number(self, q: Fraction | int) -> Polynomial:
        return {(): q} if q else {}

    def variables(self, count: int) -> list[Polynomial]:
        self.count += count
        limit(self.count, 2**20)
        return [{(i,): 1} for i in range(self.count - count, self.count)]

    def add(self, x: Polynomial, y: Polynomial) -> Polynomial:
        return self.dot([x, y], [{(): 1}] * 2) if x and y else x or y

    def minus(self, x: Polynomial) -> Polynomial:
        return self.multiply({(): -1}, x)

    def multiply(self, x: Polynomial, y: Polynomial) -> Polynomial:
        return self.dot([x], [y])

    def dot(self, xs: Numbers, ys: Numbers) -> Polynomial:
        pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x and y]
        products = sum(len(x) * len(y) for x, y in pairs)
        degree = max((len(max(x, key=len)) + len(max(y, key=len)) for x, y in pairs), default=0)
        limit(degree, 10**4)
        self.terms, self.length = self.terms + products, self.length + products * degree
        limit(self.terms, self.most)
        limit(self.length, 10 * MOST_TERMS)
        coefficients = [c for pair in pairs for f in pair for c in f.values()]
        whole = all(type(c) is int for c in coefficients)
        bits = 2 * max(map(bit_size, coefficients), default=0)
        limit(bits, 2**17)
        found: Polynomial = {}
        for x, y in pairs:
            for e, c in x.items():
                for f, d in y.items():
                    both = tuple(sorted(e + f)) if e and f else e or f
                    found[both] = found.get(both, 0) + c * d
                    if not whole:  # sums of fractions grow
                        limit(bit_size(found[both]), 2**16)
        limit(max(map(bit_size, found.values()), default=0), 2**16)
        return {e: c for e, c in found.items() if c}


def bit_size(q: Fraction | int) -> int:
    return q.numerator.bit_length() + q.denominator.bit_length()


class DegreeSets(Ring):
    """Sets of degrees that can occur, as bits of an integer; zero is the empty set."""

    def number(self, q: Fraction | int) -> int:
        return int(q != 0)

    def add(self, x: int, y: int) -> int:
        return x | y

    def multiply(self, x: int, y: int) -> int:
        return reduce(int.__or__, (x << k for k in range(y.bit_length()) if y >> k & 1), 0)


# == 4. The evaluator ====================================================================================


# the value of an entrywise instruction at x, and its derivative: at x, or for exp and reciprocal at the value y; n is an
# exponent, and for scale the factor as a number of the ring
ENTRYWISE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scale": (lambda ring, n, x: ring.multiply(n, x), lambda ring, n, x: n),
    "power": (
        lambda ring, n, x: ring.power(x, n),
        lambda ring, n, x: ring.multiply(ring.number(n), ring.power(x, n - 1)),
    ),
    "exp": (lambda ring, n, x: ring.exp(x), lambda ring, n, y: y),
    "reciprocal": (
        lambda ring, n, x: ring.reciprocal(x),
        lambda ring, n, y: ring.multiply(ring.number(-1), ring.multiply(y, y)),
    ),
}
Values = Callable[[int], Numbers]  # the flat value of an instruction, by its number


class Evaluation:
    """A program over one kind of numbers: values of all instructions, and derivatives in both directions.

    With `units`, exponentials are variables: their values follow the inputs, in the order of the instructions.
    """

    def __init__(self, circuit: Circuit, ring: Any, units: bool = False) -> None:
        self.circuit, self.ring, self.units = circuit, ring, units
        self.constants: dict[int, Numbers] = {}  # of instructions, in the ring

    def constant(self, k: int) -> Numbers:
        """The constants of an instruction; an exponent stays an integer."""
        if k not in self.constants:
            gate = self.circuit.gates[k]
            read = self.ring.number if gate.operation in ("constant", "scale") else int
            self.constants[k] = list(map(read, gate.words)) or [None]
        return self.constants[k]

    def values(self, weights: Numbers, inputs: Numbers) -> list[Numbers]:
        """The flat values of all instructions, for flat weights and inputs."""
        given, at = [*weights, *inputs], 0
        found: list[Numbers] = []
        for k, gate in enumerate(self.circuit.gates):
            if gate.operation in ORDER or (self.units and gate.operation in EXPONENTIAL):
                at, start = at + prod(gate.shape), at
                found.append(given[start:at])
                if gate.operation == "softmax":
                    found[-1] = self.lines(k, self.ring.normalised, found[-1])
            else:
                found.append(self.step(k, [found[j] for j in gate.operands]))
        need(at == len(given), "a point has another number of entries than the program")
        return found

    def outputs(self, weights: Numbers, inputs: Numbers) -> Numbers:
        values = self.values(weights, inputs)
        return [x for place in self.circuit.outputs for x in values[place]]

    def step(self, k: int, xs: list[Numbers]) -> Numbers:
        """The flat value of one instruction, for those of its operands."""
        gate, ring = self.circuit.gates[k], self.ring
        operation, plan = gate.operation, gate.plan
        if operation in ANALYTIC and not hasattr(ring, "reciprocal" if operation == "reciprocal" else "exp"):
            raise Unknown(f"a program with {operation} is not polynomial")
        if operation == "constant":
            return self.constant(k)
        if operation in BILINEAR:
            return list(plan[0](ring, *xs, *[[ring.number(1)]] * (2 - len(xs))))
        if operation in ENTRYWISE:
            value, n = ENTRYWISE[operation][0], self.constant(k)[0]
            return [value(ring, n, x) for x in xs[0]]
        if operation == "softmax":
            return self.lines(k, ring.softmax, xs[0])
        # add, slice, gather, reshape, concatenate: sums of what the entries read
        read = [
            [x[i] for x, i in zip(xs, entry, strict=True) if i is not None]
            for entry in zip(*plan, strict=True)
        ]
        return [reduce(ring.add, each) for each in read]

    def lines(self, k: int, function: Callable[[Numbers], Numbers], xs: Numbers) -> Numbers:
        """A function of each line of a softmax."""
        found: dict[int, Any] = {}
        for line in self.circuit.gates[k].plan:
            found |= zip(line, function([xs[i] for i in line]), strict=True)
        return [found[i] for i in range(len(found))]

    def along(self, k: int, side: int, value: Values, moved: Numbers, back: bool) -> Numbers:
        """The derivative of instruction k by one operand, applied to a vector; or its transpose, where `back`."""
        gate, ring = self.circuit.gates[k], self.ring
        zero, operation, plan = ring.number(0), gate.operation, gate.plan
        if operation in BILINEAR:
            other = value(gate.operands[1 - side]) if len(gate.operands) == 2 else [ring.number(1)]
            pair = [other, moved] if side == 1 and not back else [moved, other]
            return list(plan[1 + side if back else 0](ring, *pair))
        if operation == "softmax":  # d y_i = y_i (t_i - sum_j y_j t_j): a symmetric matrix
            y, found = value(k), [zero] * len(moved)
            for line in plan:
                mean = ring.dot([y[i] for i in line], [moved[i] for i in line])
                for i in line:
                    found[i] = ring.multiply(y[i], ring.add(moved[i], ring.multiply(ring.number(-1), mean)))
            return found
        if not back:
            moved = [zero if i is None else moved[i] for i in plan[side]]
        if operation in ENTRYWISE:
            slope, n = ENTRYWISE[operation][1], self.constant(k)[0]
            at = value(k if operation in ANALYTIC else gate.operands[0])
            moved = [ring.multiply(slope(ring, n, x), c) for x, c in zip(at, moved, strict=True)]
        if not back:
            return moved
        found = [zero] * self.circuit.size(gate.operands[side])
        for c, i in zip(moved, plan[side], strict=True):
            if i is not None:
                found[i] = ring.add(found[i], c)
        return found

    def gradient(
        self, values: list[Numbers], seeds: dict[int, Numbers], wanted: list[bool]
    ) -> dict[int, Numbers]:
        """Derivatives, by each weight, of the sum of seeds times values; places not wanted are passed over."""
        found = dict(seeds)
        for k in reversed(range(max(seeds) + 1)):
            operands = self.circuit.gates[k].operands
            if k in found and operands and wanted[k]:
                g = found.pop(k)
                for side, j in enumerate(operands):
                    if wanted[j]:
                        part = self.along(k, side, values.__getitem__, g, True)
                        found[j] = list(map(self.ring.add, found[j], part)) if j in found else part
        return found


# == 5. Linear algebra ====================================================================================


class Echelon:
    """Rows in echelon form modulo p. A row is one long integer with a slot for each entry, so that a row operation is one
    multiplication and one addition; slots are wide enough for width + 1 unreduced products.
    """

    def __init__(self, p: int, width: int, pivots: int | None = None) -> None:
        self.p, self.width, self.most = p, width, width if pivots is None else pivots
        self.bytes = (2 * p.bit_length() + (width + 1).bit_length()) // 8 + 1
        self.rows: list[tuple[int, int]] = []

    def reduced(self, row: list[int]) -> list[int]:
        """What is left of a row after subtracting multiples of the rows before."""
        p, size, mask = self.p, self.bytes, (1 << 8 * self.bytes) - 1
        packed = int.from_bytes(b"".join(x.to_bytes(size, "little") for x in row), "little")
        for shift, other in self.rows:
            if factor := (packed >> shift & mask) % p:
                packed += (p - factor) * other
        data = packed.to_bytes(size * self.width, "little")
        return [int.from_bytes(data[i : i + size], "little") % p for i in range(0, len(data), size)]

    def add(self, row: list[int]) -> bool:
        """Whether the row is independent of those before; then it is kept. Pivots are sought in the first columns."""
        left = self.reduced(row)
        column = next((c for c in range(self.most) if left[c]), None)
        if column is None:
            return False
        inverse = pow(left[column], -1, self.p)
        data = b"".join((x * inverse % self.p).to_bytes(self.bytes, "little") for x in left)
        self.rows.append((8 * self.bytes * column, int.from_bytes(data, "little")))
        return True


def rank(rows: Sequence[list[int]], p: int) -> int:
    echelon = Echelon(p, len(rows[0]) if rows else 0)
    return sum(echelon.add(row) for row in rows)


def sparse_rank(vectors: list[dict[Any, int]], p: int) -> int:
    """Rank of sparse vectors. A vector with a place of its own is independent of the others and is put aside first."""
    users: dict[Any, set[int]] = {}
    for v, vector in enumerate(vectors):
        for place in vector:
            users.setdefault(place, set()).add(v)
    aside: set[int] = set()
    waiting = [place for place, found in users.items() if len(found) == 1]
    while waiting:
        for v in list(users[waiting.pop()]):  # one, or none
            aside.add(v)
            for place in vectors[v]:
                users[place].discard(v)
                if len(users[place]) == 1:
                    waiting.append(place)
    rest = [vector for v, vector in enumerate(vectors) if v not in aside]
    columns = list({place: 0 for vector in rest for place in vector})
    limit(len(rest) * len(columns), 4 * MOST_ENTRIES)
    return len(aside) + rank([[vector.get(place, 0) for place in columns] for vector in rest], p)


def kernel(matrix: list[list[int]], p: int) -> list[list[int]]:
    """A basis of the vectors v with matrix v = 0: combinations of columns, read off an elimination beside the identity."""
    columns, height = list(zip(*matrix, strict=True)), len(matrix)
    echelon, found = Echelon(p, height + len(columns), height), []
    for k, column in enumerate(columns):
        row = [*column, *(int(i == k) for i in range(len(columns)))]
        if not echelon.add(row):
            found.append(echelon.reduced(row)[height:])
    return found


# == 6. Lower bounds =====================================================================================

Form = tuple[int, int, int]
"""An entry of a value: the number of a sample, the place of an instruction, the flat index in its value."""


def jacobian(
    run: Evaluation, weights: Numbers, samples: list[Numbers], rows: list[Form], columns: list[int]
) -> list[Numbers]:
    """Derivatives of entries of values by the flat weights in `columns`."""
    circuit, ring = run.circuit, run.ring
    home = {c: (circuit.weights[name], c - own.start) for name, own in circuit.flat.items() for c in own}
    homes = [home[c] for c in columns]
    wanted = circuit.depends({place for place, _ in homes})
    limit(len(rows) * len(columns), 4 * MOST_ENTRIES)
    table, current, values = [Numbers()] * len(rows), -1, list[Numbers]()
    for number in sorted(range(len(rows)), key=rows.__getitem__):
        sample, place, index = rows[number]
        if sample != current:
            current, values = sample, run.values(weights, samples[sample])
        seed = [ring.number(0)] * circuit.size(place)
        seed[index] = ring.number(1)
        found = run.gradient(values, {place: seed}, wanted)
        table[number] = [found[j][i] if j in found else ring.number(0) for j, i in homes]
    return table


def entry(circuit: Circuit, places: list[int], index: int) -> tuple[int, int]:
    """Place and flat index of one entry, by flat index, of the values at these places."""
    for k in places:
        if index < circuit.size(k):
            return k, index
        index -= circuit.size(k)
    raise Rejected("there is no such entry")


def different(values: Any, count: int, what: str) -> list[int]:
    found = integers(values, 0, count - 1, what)
    need(len(set(found)) == len(found), f"{what} is listed twice")
    return found


WEIGHT_UNITS, SAMPLE_UNITS, TEST_WEIGHTS, TEST_INPUTS = 3, 4, 5, 6  # streams


class Exponentials:
    """Units in the place of the exponentials of a program, and the test that makes a minor with them a lower bound (Ax).

    Functions are numbered: 1, the flat weights, the arguments of exponentials without inputs; from `start` on the inputs and the
    arguments with inputs. Relations express dependent arguments as rational combinations of independent functions.
    """

    def __init__(self, circuit: Circuit, value: Any) -> None:
        self.seed, relations, self.test = fields(value, "exponentials", "seed", "relations", "test")
        integer(self.seed, 0, 2**32 - 1, "a seed")
        self.circuit, sees = circuit, circuit.depends(set(circuit.inputs.values()))
        every = [k for k, gate in enumerate(circuit.gates) if gate.operation in EXPONENTIAL]
        free, bound = ([k for k in every if sees[k] is side] for side in (False, True))
        self.start = 1 + circuit.parameters + circuit.size(*free)
        self.arguments: dict[int, range] = {}  # the functions of each instruction with exponentials
        for places, before in ((free, 1 + circuit.parameters), (bound, self.start + circuit.input_size)):
            ends = list(accumulate((circuit.size(k) for k in places), initial=before))
            self.arguments |= {k: range(*ends[i : i + 2]) for i, k in enumerate(places)}
        self.count = self.start + circuit.input_size + circuit.size(*bound)
        limit(self.count - circuit.parameters, 10**4)
        self.relations: dict[int, dict[int, Any]] = {}
        for pair in listed(relations, "relations"):
            self.read_relation(*listed(pair, "a relation", 2))
        self.power = lcm(*(c.denominator for each in self.relations.values() for c in each.values()))
        need(self.power.bit_length() <= 64, "a relation has a large denominator")

    def read_relation(self, function: Any, terms: Any) -> None:
        """One dependent argument, and the functions before it that add up to it."""
        own = integer(function, 1 + self.circuit.parameters, self.count - 1, "an argument")
        inputs = range(self.start, self.start + self.circuit.input_size)
        need(
            own not in inputs and own not in self.relations,
            "a relation is not about an argument, or is listed twice",
        )
        found: dict[int, Any] = {}
        for term in listed(terms, "a sum of functions"):
            j, c = listed(term, "a term of a relation", 2)
            j = integer(j, 0, own - 1, "a function")
            need(
                j not in found and j not in self.relations,
                "a function is listed twice, or is dependent itself",
            )
            found[j] = exact([c], "a coefficient")[0]
            need(bit_size(found[j]) <= 64, "a coefficient is large")
        self.relations[own] = found

    def drawn(self, stream_number: int, p: int, points: int, seed: Any) -> list[list[int]]:
        """Units for the functions of weights, or for the others, at several points."""
        width = self.count - self.start if stream_number == SAMPLE_UNITS else self.start
        limit(points * width, 4 * MOST_ENTRIES)
        flat = [x % (p - 1) + 1 for x in stream(seed, stream_number, points * width)]
        return [flat[n * width : (n + 1) * width] for n in range(points)]

    def values(self, p: int, units: list[int]) -> list[int]:
        """All exponentials in the order of the instructions, from units for all functions."""
        found = []
        for k in sorted(self.arguments):
            for function in self.arguments[k]:
                terms = self.relations.get(function, {function: 1})
                powers = (pow(units[j], int(c * self.power), p) for j, c in terms.items())
                found.append(reduce(lambda x, y: x * y % p, powers, 1))
        return found

    def functions(self, run: Evaluation, w: list[int], x: list[int], units: list[int]) -> list[int]:
        """The values of all numbered functions at one point."""
        values = run.values(w, [*x, *self.values(run.ring.p, units)])
        found = [1, *w, *([0] * (self.start - 1 - len(w))), *x, *([0] * (self.count - self.start - len(x)))]
        for k, functions in self.arguments.items():
            found[functions.start : functions.stop] = values[self.circuit.gates[k].operands[0]]
        return found

    def check(self) -> None:
        """The relations hold, and the other functions are independent: together with 1 and the weights those of the weights, and
        up to functions of the weights the inputs and the other arguments.
        """
        self.check_relations()
        seed, p, groups, members = fields(self.test, "a test", "seed", "prime", "weights", "inputs")
        p, seed = prime(p), integer(seed, 0, 2**32 - 1, "a seed")
        groups, members = integer(groups, 1, 10**5, "a number"), integer(members, 2, 10**5, "a number")
        circuit, run = self.circuit, Evaluation(self.circuit, ModP(p), units=True)
        own, size = circuit.parameters, circuit.input_size
        limit(groups * (own + members * size), 4 * MOST_ENTRIES)
        weights = [x % p for x in stream(seed, TEST_WEIGHTS, groups * own)]
        inputs = [x % p for x in stream(seed, TEST_INPUTS, groups * members * size)]
        ours = self.drawn(WEIGHT_UNITS, p, groups, seed)
        others = self.drawn(SAMPLE_UNITS, p, groups * members, seed)
        first, rest = self.independent_functions()
        among_weights, among_samples = Echelon(p, len(first)), Echelon(p, len(rest))
        for g in range(groups):
            w, rows = weights[g * own : (g + 1) * own], list[list[int]]()
            try:
                for n in range(g * members, (g + 1) * members):
                    x = inputs[n * size : (n + 1) * size]
                    rows.append(self.functions(run, w, x, ours[g] + others[n]))
            except ZeroDenominator:
                continue  # the point is left out
            if len(among_weights.rows) < len(first):
                among_weights.add([rows[0][j] for j in first])
            for row in rows[1:]:
                if len(among_samples.rows) < len(rest):
                    among_samples.add([(row[j] - rows[0][j]) % p for j in rest])
        seen = len(among_weights.rows) == len(first) and len(among_samples.rows) == len(rest)
        need(seen, "the arguments of exponentials are not seen to be independent")

    def independent_functions(self) -> tuple[list[int], list[int]]:
        """Those of the weights, without weights on which no argument depends; and those of weights and inputs."""
        circuit = self.circuit
        free = [k for k, functions in self.arguments.items() if functions.start < self.start]
        used = [0]
        for name, place in circuit.weights.items():
            reached = circuit.depends({place})
            if any(reached[k] for k in free):
                used += [1 + i for i in circuit.flat[name]]
        arguments = range(1 + circuit.parameters, self.start)
        first = [*used, *(j for j in arguments if j not in self.relations)] if free else []
        return first, [j for j in range(self.start, self.count) if j not in self.relations]

    def check_relations(self) -> None:
        """Each relation is an identity: it holds at random points modulo random large primes."""
        for _ in range(4 if self.relations else 0):
            ring = Symbols()
            run = Evaluation(self.circuit, ring, units=True)
            w, x = ring.drawn(self.circuit.parameters), ring.drawn(self.circuit.input_size)
            values = self.functions(run, w, x, [u or 1 for u in ring.drawn(self.count)])
            for function, terms in self.relations.items():
                total = ring.dot([values[j] for j in terms], [ring.number(c) for c in terms.values()])
                need(total == values[function], "a relation between arguments of exponentials does not hold")


LOWER = {"minor": (), "last layer": ("layer", "tokens")}


def check_lower(circuit: Circuit, argument: Any) -> int:
    """The dimension that an argument shows to be reached: the size of a minor of the Jacobian that is not zero.

    Its rank modulo p at an integer point is at most the generic rank; so is that with units in the place of exponentials whose
    arguments are independent (:class:`Exponentials`). Where the output is V Z, rows of V that stand in no row and no column of
    the minor are seen by their own outputs only: with independent columns z of Z ("tokens") they add their number times that of
    the tokens.
    """
    kind = argument.get("kind") if type(argument) is dict else None
    need(type(kind) is str and kind in LOWER, "the lower bound is of no kind that the format knows")
    rational_program = not any(gate.operation in EXPONENTIAL for gate in circuit.gates)
    more = (*LOWER[str(kind)], *(() if rational_program else ("exponentials",)))
    names = ("prime", "weights", "samples", "inputs", "rows", "columns", *more)
    values = fields(argument, f"the lower bound: {kind}", "kind", *names)
    _, number, weights, samples, inputs, rows, columns, *layer = values
    p, size = prime(number), circuit.input_size
    count = integer(samples, 1, 10**6 if size else 1, "the number of samples")
    at, flat = point(weights, circuit.parameters, p), point(inputs, count * size, p)
    given: list[Numbers] = [flat[n * size : (n + 1) * size] for n in range(count)]
    if not rational_program:
        exponentials = Exponentials(circuit, layer.pop())
        exponentials.check()
        ours = exponentials.drawn(WEIGHT_UNITS, p, 1, exponentials.seed)[0]
        others = exponentials.drawn(SAMPLE_UNITS, p, count, exponentials.seed)
        given = [x + exponentials.values(p, ours + own) for x, own in zip(given, others, strict=True)]
    run = Evaluation(circuit, ModP(p), units=not rational_program)
    columns = integers(columns, 0, circuit.parameters - 1, "a column")
    need(len(set(columns)) == len(columns), "the minor is zero: a column is listed twice")
    pairs = [integers(row, 0, 10**9, "a row", 2) for row in listed(rows, "rows")]
    need(len(pairs) == len(columns), "a minor has as many rows as columns")
    added = 0
    if layer:
        added, pairs, columns = check_layer(run, at, given, layer, pairs, columns)
    need(all(n < count for n, _ in pairs), "there is no such sample")
    forms = [(n, *entry(circuit, circuit.outputs, e)) for n, e in pairs]
    if forms:
        need_independent(jacobian(run, at, given, forms, columns), p)
    return len(pairs) + added


def need_independent(rows: list[Numbers], p: int) -> None:
    need(rank(rows, p) == len(rows), f"the minor is zero modulo {p}")


def check_layer(run: Evaluation, at: Numbers, given: list[Numbers], layer: list[Any], pairs: list[list[int]],
                columns: list[int]) -> tuple[int, list[list[int]], list[int]]:  # fmt: skip
    """For the output V Z, with independent tokens: what rows of V add that do not occur, and the rows and columns of the minor.

    Rows (r, token) become outputs, together with (r, token) for all independent tokens, and the entries of these rows of V become
    columns.
    """
    circuit, (name, values) = run.circuit, layer
    z, height, t = last_layer(circuit, name)
    width, flat = circuit.size(z) // t, circuit.flat[name]
    tokens = different(values, len(given) * t, "a token")
    need(len(tokens) <= width, "there are more tokens than rows of Z")
    need(not any(c in flat for c in columns), "a column is in the last layer")
    need(not {x for _, x in pairs} & set(tokens), "a row's token is one of the independent ones")
    used = {r for r, _ in pairs}
    need(all(r < height for r in used), "there is no such row")
    every = [*((r, x) for r in used for x in tokens), *pairs]
    outputs = [[x // t, r * t + x % t] for r, x in every]
    own = [flat.start + r * width + b for r in used for b in range(width)]
    found = {n: run.values(at, given[n])[z] for n in {x // t for x in tokens}}
    if tokens:
        need_independent([found[x // t][x % t :: t] for x in tokens], run.ring.p)
    return (height - len(used)) * len(tokens), outputs, [*columns, *own]


def last_layer(circuit: Circuit, name: Any) -> tuple[int, int, int]:
    """For a program with the one output V Z: the place of Z, and the numbers of rows of V and of columns of Z."""
    need(type(name) is str and name in circuit.flat, "the last layer is not a weight")
    place, gate = circuit.weights[name], circuit.gates[circuit.outputs[0]]
    form = gate.operation == "einsum" and gate.words in (["ab", "bc", "ac"], ["ab", "b", "a"])
    users = [g for g in circuit.gates for j in g.operands if j == place]
    alone = form and gate.operands[0] == place and len(users) == len(circuit.outputs) == 1
    need(alone, "the output is not V Z with a weight V that is used only there")
    return gate.operands[1], gate.shape[0], (*gate.shape, 1)[1]


# == 7. Symmetries =======================================================================================

Monomial = tuple[tuple[int, int], ...]
Field = list[tuple[int, int, Monomial]]
"""Parts (i, c, ((j, e), ...)): flat weight i moves by c times the product of the flat weights j to the powers e."""


def symmetry_vectors(
    circuit: Circuit, at: list[int], p: int, groups: Any, vector_fields: Any = ()
) -> list[dict[int, int]]:
    """Verify groups and vector fields; the directions at the point, modulo p, in which they move the weights."""
    own = [] if vector_fields == () else listed(vector_fields, "fields")
    bundles = [group_fields(circuit, group) for group in listed(groups, "groups")]
    found, ring = [], ModP(p)
    for unverified, vector_field in chain(*bundles, ((True, read_field(circuit, value)) for value in own)):
        if unverified:
            check_field(circuit, vector_field)
        found.append({i: x for i, x in field_at(vector_field, ring, at).items() if x})
    return found


def read_monomial(value: Any, count: int) -> Monomial:
    """Pairs of an index below `count` and an exponent, indices ascending."""
    pairs = [integers(pair, 0, 10**6, "an exponent", 2) for pair in listed(value, "a monomial")]
    ascending = all(i < j for (i, _), (j, _) in pairwise(pairs))
    need(ascending and all(i < count and e > 0 for i, e in pairs), "a monomial is not written like this")
    return tuple((i, e) for i, e in pairs)


def read_field(circuit: Circuit, value: Any) -> Field:
    most, found = circuit.parameters, []
    for part in listed(value, "a vector field"):
        i, c, monomial = listed(part, "a part of a vector field", 3)
        i, c = integer(i, 0, most - 1, "a weight"), integer(c, -LARGE, LARGE, "a factor")
        found.append((i, c, read_monomial(monomial, most)))
    need(bool(found), "a vector field does not move anything")
    return found


def group_fields(circuit: Circuit, group: Any) -> Iterator[tuple[bool, Field]]:
    """The infinitesimal generators of a group as vector fields, and whether each must be verified.

    Fields that do not change a function are closed under brackets. Of gl three are verified: a diagonal D of squares, the sum of
    all E_(i,i+1), and that of all E_(i+1,i). Brackets with D multiply the parts of a sum by different numbers, so that each part
    is a combination of such brackets; these parts and D generate gl. Copies of gl have their own D, of further squares, and
    the two sums in common.
    """
    kind = group.get("group") if type(group) is dict else None
    if kind == "scaling":
        _, exponents = fields(group, "a scaling", "group", "weights")
        known = type(exponents) is dict and bool(exponents) and set(exponents) <= set(circuit.flat)
        need(known, "a scaling names weights of the program")
        powers = {name: integer(k, -(10**6), 10**6, "an exponent") for name, k in exponents.items()}
        yield True, [(i, k, ((i, 1),)) for name, k in powers.items() for i in circuit.flat[name]]
        return
    need(kind in ("torus", "gl"), "a group is of no kind that the format knows")
    _, size, axes = fields(group, f"a group: {kind}", "group", "size", "axes")
    tables, copies = read_axes(circuit, axes, size, kind == "gl")
    if kind == "torus":
        yield from ((True, unit(tables, 0, i, i)) for i in range(size))
        return
    every = [(copy, i) for copy in range(copies) for i in range(size)]
    for own in range(copies):
        squares = [(i, (own * size + i + 1) ** 2) for i in range(size)]
        yield True, [x for i, square in squares for x in unit(tables, own, i, i, square)]
    for step in (0, 1) if size > 1 else ():
        sides = [(copy, i + step, i + 1 - step) for copy, i in every if i + 1 < size]
        yield True, [x for side in sides for x in unit(tables, *side)]
    yield from ((False, unit(tables, copy, i, j)) for copy, i in every for j in range(size))


Axes = list[tuple[int, dict[tuple[int, int], list[int]]]]
"""For each axis with a label: the label, and the flat weights with (number of the copy, index on the axis), in one order."""


def unit(tables: Axes, copy: int, i: int, j: int, factor: int = 1) -> Field:
    """1 + e E_ij adds e times row j to row i; its inverse transpose takes e times row i from row j."""
    found: Field = []
    for label, places in tables:
        to, source = (i, j) if label > 0 else (j, i)
        pairs = zip(places[copy, to], places[copy, source], strict=True)
        found += [(x, factor * label, ((y, 1),)) for x, y in pairs]
    return found


def read_axes(circuit: Circuit, axes: Any, size: Any, linear: bool) -> tuple[Axes, int]:
    """The axes on which a group of this size acts, and the number of copies of the group."""
    size, most = integer(size, 1, 10**5, "the size of a group"), 1 if linear else 10**6
    known = type(axes) is dict and bool(axes) and set(axes) <= set(circuit.flat)
    need(known, "axes names weights of the program")
    tables, copies = Axes(), set()
    for name, labels in axes.items():
        shape = circuit.gates[circuit.weights[name]].shape
        listed(labels, "the labels of a weight", len(shape))
        stars = [axis for axis, label in enumerate(labels) if label == "*"]
        plain = [0 if label == "*" else integer(label, -most, most, "a label") for label in labels]
        need(any(plain) and len(stars) <= int(linear), "a weight has no label, or copies that are not known")
        fits = all(not label or n == size for label, n in zip(plain, shape, strict=True))
        need(fits, "an axis has another length than the group")
        copies.add(shape[stars[0]] if stars else 0)
        steps = row_major(shape)
        for axis in [axis for axis, label in enumerate(plain) if label]:
            table: dict[tuple[int, int], list[int]] = {}
            for k, place in enumerate(circuit.flat[name]):
                copy = k // steps[stars[0]] % shape[stars[0]] if stars else 0
                table.setdefault((copy, k // steps[axis] % size), []).append(place)
            tables.append((plain[axis], table))
    need(len(copies) == 1, "weights have different numbers of copies of the group")
    count = max(copies.pop(), 1)
    moved = count * sum(len(places[0, 0]) for _, places in tables)
    limit(moved * (size**2 if linear else size), 4 * MOST_ENTRIES)
    return tables, count


def field_at(vector_field: Field, ring: Any, weights: Numbers) -> dict[int, Any]:
    """How the flat weights move at a point."""
    found: dict[int, Any] = {}
    for i, c, monomial in vector_field:
        term = evaluate_term(ring, c, monomial, weights)
        found[i] = ring.add(found[i], term) if i in found else term
    return found


def evaluate_term(ring: Any, c: Any, monomial: Monomial, values: Numbers) -> Any:
    """c times a product of powers of values."""
    powers = (ring.power(values[j], e) if e > 1 else values[j] for j, e in monomial)
    return reduce(ring.multiply, powers, ring.number(c))


def check_field(circuit: Circuit, vector_field: Field) -> None:
    """Verify that a vector field does not change the function: the derivative along it is zero, as an identity in weights
    and inputs. First values up to some instruction are unknowns of their own where they do not move, or move linearly; what
    holds for all unknowns holds for the values. At last everything is expanded. A point that is drawn can only refute. The
    instruction that served the field before is tried first: fields of one kind die at one place.
    """
    limit(len(circuit.gates), 300)
    size, changes = circuit.parameters + circuit.input_size, "a vector field changes the function"
    too_large: Unknown | None = None
    order = dict.fromkeys([*circuit.unknowns_up_to, *reversed(range(-1, len(circuit.gates)))])
    for number, last in enumerate(order):
        ring = Polynomials(MOST_TERMS if last < 0 else MOST_TERMS // 50)
        try:
            if not moves(Evaluation(circuit, ring), ring.variables(size), vector_field, last):
                circuit.unknowns_up_to = [last]
                return
        except Unknown as reason:
            too_large = reason if last < 0 else too_large
        if circuit.polynomial and number == 0:
            symbols = Symbols()
            drawn = symbols.drawn(size)
            need(not moves(Evaluation(circuit, symbols), drawn, vector_field, -1), changes)
    if too_large:
        raise too_large
    raise Rejected(f"{changes}, or is not seen to keep it")


def moves(run: Evaluation, given: Numbers, vector_field: Field, last: int) -> bool:  # noqa: C901 -- one case for each instruction
    """Whether an output moves when the weights move along a field. Up to instruction number `last`, values that do not move, or
    of which each entry moves by a multiple of an entry, are unknowns that do the same. Values of exp, reciprocal and softmax are
    always unknowns; a line of softmax adds up to one.
    """
    circuit, ring = run.circuit, run.ring
    zero, at, rates = ring.number(0), 0, field_at(vector_field, ring, given)
    values: dict[int, Numbers] = {}
    slopes: list[Numbers | None] = []

    def value(k: int) -> Numbers:
        if k not in values:
            gate = circuit.gates[k]
            if gate.operation in ANALYTIC or (k <= last and slopes[k] is None and gate.operands):
                values[k] = ring.variables(circuit.size(k))
                for line in gate.plan if gate.operation == "softmax" else ():
                    rest = [ring.minus(values[k][i]) for i in line[1:]]
                    values[k][line[0]] = reduce(ring.add, rest, ring.number(1))
            else:
                values[k] = run.step(k, [value(j) for j in gate.operands])
        return values[k]

    for k, gate in enumerate(circuit.gates):
        found: Numbers | None = None
        if gate.operation in ORDER:
            at, start = at + circuit.size(k), at
            values[k] = given[start:at]
            found = [rates.get(i, zero) for i in range(start, at)] if gate.operation == "weight" else None
        for side, j in enumerate(gate.operands):
            if (t := slopes[j]) is not None:
                part = run.along(k, side, value, t, False)
                found = part if found is None else list(map(ring.add, found, part))
        slopes.append(found if found is not None and any(t != zero for t in found) else None)
        if (t := slopes[k]) is not None and k <= last and gate.operands:
            linear = multiples(ring, t, value(k))
            if linear is not None:
                values[k] = ring.variables(len(t))
                slopes[k] = [ring.multiply(ring.number(c), values[k][j]) for c, j in linear]
    return any(slopes[k] is not None for k in circuit.outputs)


def multiples(ring: Polynomials, slopes: Numbers, values: Numbers) -> list[tuple[Any, int]] | None:
    """For each slope a number c and a place j, so that it is c times value number j; None if there are no such."""
    places, found = {min(v): j for j, v in enumerate(values) if v}, []
    for slope in slopes:
        first = min(slope, default=())
        j = places.get(first, 0)
        c = Fraction(slope.get(first, 0)) / (values[j].get(first) or 1)
        c = c.numerator if c.denominator == 1 else c
        if slope != ring.multiply(ring.number(c), values[j]):
            return None
        found.append((c, j))
    return found


# == 8. Upper bounds =====================================================================================


def check_upper(circuit: Circuit, argument: Any, network: Network | None = None) -> int:
    """The dimension that an argument shows not to be exceeded."""
    cut = ("cut", "first", "second", "samples")
    kinds: Kinds = {
        "parameters": (lambda circuit: circuit.parameters, ()),
        "coordinates": (coordinates_bound, ()),
        "span": (span_bound, ()),
        "symmetries": (symmetries_bound, ("prime", "weights", "groups")),
        "fields": (symmetries_bound, ("prime", "weights", "groups", "fields")),
        "composition": (composition_bound, ("prime", "weights", "groups", "fields", *cut)),
        "equations": (equations_bound, ("prime", "weights", "equations")),
        "flattening": (flattening_bound, ("prime", "weights", "flattening")),
        "virtual": (lambda _: virtual_bound(network), ()),
        "layers": (lambda _: layers_bound(network), ()),
    }
    function, values = by_kind(argument, "the upper bound", kinds)
    if values:
        values[0] = prime(values[0])
        values[1] = point(values[1], circuit.parameters, values[0])
    return int(function(circuit, *values))


def symmetries_bound(circuit: Circuit, p: int, at: list[int], groups: Any, vector_fields: Any = ()) -> int:
    """Symmetries are in the kernel of the differential; their rank at one point modulo p is at most the generic one."""
    return circuit.parameters - sparse_rank(symmetry_vectors(circuit, at, p, groups, vector_fields), p)


def highest_degree(circuit: Circuit) -> int:
    """A bound of the degrees of all values, in weights, inputs, and exponentials together, as far as 2^40. Sums of fractions with
    different denominators, behind a reciprocal, have the sum of their degrees.
    """
    found: list[int] = []
    fraction = circuit.depends({k for k, gate in enumerate(circuit.gates) if gate.operation == "reciprocal"})
    for k, gate in enumerate(circuit.gates):
        parts = [found[j] for j in gate.operands] or [int(gate.operation != "constant")]
        factor = gate.words[0] if gate.operation == "power" else 1
        factor = prod(gate.shape) if gate.operation in ANALYTIC else factor
        if fraction[k] and gate.operation in BILINEAR:
            factor = gate.plan[0].products // prod(gate.shape)
        added = fraction[k] or gate.operation in BILINEAR
        found.append(min(2**40, factor * (sum(parts) if added else max(parts))))
    return max(found)


def degree_sets(circuit: Circuit) -> list[int]:
    """For each output the set of degrees in the inputs that can occur."""
    limit(highest_degree(circuit), 10**4)
    found = Evaluation(circuit, DegreeSets()).outputs([1] * circuit.parameters, [2] * circuit.input_size)
    return [int(mask) for mask in found]


def coordinates_bound(circuit: Circuit) -> int:
    """Without inputs the number of outputs; with inputs, for each output the monomials of degrees that can occur."""
    n = circuit.input_size
    if not n:
        return circuit.size(*circuit.outputs)
    masks, total, monomials = Counter(degree_sets(circuit)), 0, 1
    highest = max(masks).bit_length()
    for k in range(highest):
        total += monomials * sum(count for mask, count in masks.items() if mask >> k & 1)
        monomials = monomials * (n + k) // (k + 1)
    return total


def span_bound(circuit: Circuit) -> int:
    """A last linear layer V z: the m outputs are combinations of the n entries of z, so that the m x M matrix of their
    coefficients has rank at most n; such matrices have dimension n (m + M - n). V may be used in z too. All outputs have the
    same degrees, because V is a whole weight.
    """
    last = circuit.gates[circuit.outputs[0]]
    linear = len(circuit.outputs) == 1 and last.operation == "einsum" and last.words == ["ab", "b", "a"]
    linear = linear and circuit.input_size > 0 and circuit.gates[last.operands[0]].operation == "weight"
    need(linear, "the program does not end in a weight times a vector")
    m, n = circuit.gates[last.operands[0]].shape
    each = coordinates_bound(circuit) // m
    return n * (m + each - n) if n < min(m, each) else m * each


def composition_bound(circuit: Circuit, p: int, at: list[int], groups: Any, vector_fields: Any, cut: Any, first: Any,  # noqa: PLR0913 -- the parts of one certificate
                      second: Any, samples: Any) -> int:  # fmt: skip
    """A network g(f(x), x), where f has the value of one instruction as its output, and g an input in its place. At a generic
    point its differential is a linear map of those of f and g, which have ranks of at most U_1 and U_2. A symmetry of the whole
    moves f and g without moving g(f(x), x): the linear map is zero on these k directions, and its rank at most U_1 + U_2 - k.
    """
    cut = integer(cut, 0, len(circuit.gates) - 1, "a cut")
    samples = integer(samples, 1, 10**4, "the number of samples")
    sides = circuit.gates[cut].operands != [] and cut not in circuit.outputs
    need(sides, "there is nothing on one side of the cut")
    parts = [part(circuit, [cut], None), part(circuit, circuit.outputs, cut)]
    bound = check_upper(parts[0][0], first)
    if second == {"kind": "hypersurface"}:
        bound += hypersurface_bound(parts[0][0], parts.pop()[0], cut_name(circuit))
    else:
        bound += check_upper(parts[1][0], second)
    vectors = symmetry_vectors(circuit, at, p, groups, vector_fields)
    moved: list[dict[Any, int]] = [{} for _ in vectors]
    for number, (own, places) in enumerate(parts if vectors else ()):
        if not own.polynomial:
            continue  # fewer rows make k smaller
        run, count = Evaluation(own, ModP(p)), samples if own.input_size else 1
        height = count * own.size(*own.outputs)
        limit(height, MOST_ENTRIES)
        drawn = [[x % p for x in stream(number, n, own.input_size)] for n in range(count)]
        places_of = [entry(own, own.outputs, e) for e in range(own.size(*own.outputs))]
        forms = [(n, *place) for n in range(count) for place in places_of]
        table = jacobian(run, [at[i] for i in places], drawn, forms, list(range(own.parameters)))
        column = {i: c for c, i in enumerate(places)}
        for vector, found in zip(vectors, moved, strict=True):
            terms = [(column[i], x) for i, x in vector.items() if i in column]
            sums = [sum(row[c] * x for c, x in terms) % p for row in table]
            found |= {(number, r): x for r, x in enumerate(sums) if x}
    return bound - sparse_rank(moved, p)


def hypersurface_bound(first: Circuit, second: Circuit, cut: str) -> int:
    """How many coefficients of a second part matter behind n + 1 forms of degree d in n variables. Their image lies in a
    hypersurface of degree D = d^(n-1) (Bezout); second parts of degree e that differ by a multiple of its equation give
    one function. The cut must be the one input of the second part.
    """
    n = first.input_size
    need(n >= 2 and second.input_size == n + 1, "the cut is not of one entry more than the inputs")
    need(list(second.inputs) == [cut] and first.size(*first.outputs) == n + 1, "inputs bypass the cut")
    degrees = []
    for own in (first, second):
        masks = set(degree_sets(own))
        mask = masks.pop() if len(masks) == 1 else 0
        need(mask.bit_count() == 1 and mask > 1, "a part is not homogeneous of one degree")
        degrees.append(mask.bit_length() - 1)
    limit(n * degrees[0].bit_length(), 10**3)
    d, e = degrees[0] ** (n - 1), degrees[1]
    need(d <= e, "the second part has too small a degree for the equation")
    return second.size(*second.outputs) * (comb(e + n, n) - comb(e - d + n, n))


def cut_name(circuit: Circuit) -> str:
    """A name that no input has."""
    return max(["", *circuit.inputs], key=len) + "%"


def part(circuit: Circuit, outputs: list[int], cut: int | None) -> tuple[Circuit, list[int]]:
    """The program of what these outputs use, with an input in the place of the cut; and the flat weights that it has."""
    used = set(outputs)
    for k in reversed(range(len(circuit.gates))):
        used |= set(circuit.gates[k].operands) if k in used and k != cut else set()
    gates = {k: circuit.gates[k] for k in sorted(used)}
    if cut in gates:
        gates[cut] = Gate("input", [cut_name(circuit)], [], gates[cut].shape)
    order = sorted(gates, key=lambda k: ORDER.get(gates[k].operation, 2))
    place = {k: n for n, k in enumerate(order)}
    own = Circuit(outputs=[place[k] for k in outputs])
    for g in map(gates.__getitem__, order):
        own.gates.append(Gate(g.operation, g.words, [place[j] for j in g.operands], g.shape, g.plan))
    return own, [i for name in own.weights for i in circuit.flat[name]]


# == 9. Equations ========================================================================================


Equation = list[tuple[int, Monomial]]
"""Terms: a coefficient and ((coordinate, exponent), ...)."""


def coordinates(circuit: Circuit, ring: Polynomials) -> list[Polynomial]:
    """The coordinates as polynomials in the weights. Without inputs these are the outputs; with inputs, for one output after
    the other, its coefficients at the monomials in the inputs that occur, by degree, then with the first inputs first.
    """
    n, found = circuit.parameters, []
    given = ring.variables(n + circuit.input_size)
    for f in Evaluation(circuit, ring).outputs(given[:n], given[n:]):
        parts: dict[Shape, Polynomial] = {} if circuit.input_size else {(): {}}
        for monomial, c in f.items():
            cut = bisect_left(monomial, n)
            parts.setdefault(monomial[cut:], {})[monomial[:cut]] = c
        found += [parts[inputs] for inputs in sorted(parts, key=lambda m: (len(m), m))]
    return found


def evaluated(polynomials: list[Polynomial], p: int, points: Sequence[list[int]]) -> list[list[int]]:
    """The values of polynomials at points modulo p."""
    number = ModP(p).number
    reduced = [[(number(c), monomial) for monomial, c in f.items()] for f in polynomials]
    return [[sum(c * prod(at[i] for i in m) for c, m in f) % p for f in reduced] for at in points]


def read_equation(value: Any, coordinates: int) -> Equation:
    terms: Equation = []
    for term in listed(value, "a polynomial"):
        c, monomial = listed(term, "a term", 2)
        terms.append((integer(c, -LARGE, LARGE, "a coefficient"), read_monomial(monomial, coordinates)))
        need(c != 0, "a coefficient is zero")
    distinct = len({monomial for _, monomial in terms}) == len(terms) > 0
    need(distinct, "a polynomial is empty or repeats a monomial")
    return terms


def substituted(ring: Any, f: Equation, values: Numbers) -> Any:
    """An equation with these values in the places of the coordinates."""
    terms = [evaluate_term(ring, c, monomial, values) for c, monomial in f]
    return ring.dot(terms, [ring.number(1)] * len(terms))


def check_equations(circuit: Circuit, values: Any) -> tuple[list[Equation], list[Polynomial]]:
    """Polynomials in the coordinates that vanish identically in the weights, by expansion; and the coordinates."""
    ring = Polynomials()
    own = coordinates(circuit, ring)
    equations = [read_equation(value, len(own)) for value in listed(values, "equations")]
    for f in equations:
        need(not substituted(ring, f, own), "an equation does not vanish identically on the image")
    return equations, own


def equations_bound(circuit: Circuit, p: int, weights: list[int], values: Any) -> int:
    """The tangent space of the image's closure at an image point is inside that of the equations, and the closure is
    irreducible: its dimension is at most N minus the rank of the equations' differentials, also modulo p.
    """
    equations, own = check_equations(circuit, values)
    y, rows = evaluated(own, p, [weights])[0], []
    for f in equations:
        row = [0] * len(y)
        for c, monomial in f:
            for i, e in monomial:
                others = prod(pow(y[j], n, p) for j, n in monomial if j != i)
                row[i] = (row[i] + c * e * pow(y[i], e - 1, p) * others) % p
        rows.append(row)
    return len(y) - rank(rows, p)


def flattening_bound(circuit: Circuit, p: int, at: list[int], name: Any) -> int:
    """For y = W_2 (W_1 x)^r, a sum of k terms c (x) l^r with l linear: a flattening, linear in the coefficients, has rank at
    most k times that of one term. Where this is met, the left kernel times the right kernel are differentials that vanish on the
    image's tangent space. All ranks modulo p are at most those over QQ. The first is k times that of one term, which that over QQ
    does not exceed: both are equal, and kernels modulo p are those over QQ, reduced.
    """
    form = [(gate.operation, gate.operands) for gate in circuit.gates]
    layers = [gate.words for gate in circuit.gates if gate.operation == "einsum"]
    hidden = [("einsum", [0, 2]), ("power", [3]), ("einsum", [1, 4])]
    perceptron = form == [("weight", []), ("weight", []), ("input", []), *hidden] and circuit.outputs == [5]
    perceptron = perceptron and layers == [["ab", "b", "a"]] * 2
    need(perceptron, "the program is not a perceptron with one hidden layer")
    (k, n), (m, _), r = circuit.gates[0].shape, circuit.gates[1].shape, circuit.gates[4].words[0]
    limit(r, 60)
    limit(comb(n + r - 1, r) * m, 10**4)
    table, height, width = flattening(name, n, m, r)
    limit((height + width) ** 2, 4 * MOST_ENTRIES)
    rows, outer = nested(at[: k * n], (k, n)), nested(at[k * n :], (m, k))
    powers = [
        [prod(pow(x, d, p) for x, d in zip(row, e, strict=True)) for row in rows] for e in monomials(n, r)
    ]
    counts = [factorial(r) // prod(map(factorial, e)) for e in monomials(n, r)]
    y = [
        c * sum(map(mul, column, each)) % p
        for column in outer
        for c, each in zip(counts, powers, strict=True)
    ]
    # the coefficient of x_1^r alone is a term, and every other one is equivalent to it
    single = table.get(0, [])
    permutation = all(len({entry[side] for entry in single}) == len(single) for side in (0, 1))
    need(permutation, "the flattening of one term is not a permutation")
    matrix = [[0] * width for _ in range(height)]
    for c, places in table.items():
        for a, b, s in places:
            matrix[a][b] = (matrix[a][b] + s * y[c]) % p
    need(rank(matrix, p) == k * len(single), "the flattening does not have the rank that its terms allow")
    right, left = kernel(matrix, p), kernel(transposed(matrix), p)
    limit(len(left) * len(right) * len(y), 4 * MOST_ENTRIES)
    entries = [table.get(c, []) for c in range(len(y))]
    forms = [[sum(u[a] * v[b] * s for a, b, s in each) % p for each in entries] for u in left for v in right]
    return len(y) - rank(forms, p)


def monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    """Exponents of the monomials of a degree, that of x_1^degree first."""
    return [tuple(c.count(v) for v in range(n)) for c in combinations_with_replacement(range(n), degree)]


def flattening(name: Any, n: int, m: int, r: int) -> tuple[dict[int, list[tuple[int, int, int]]], int, int]:
    """Coordinate -> entries (row, column, factor) of the matrix; its height and width. All are maps S^s* (x) Lambda^q -> S^u (x)
    Lambda^(q+1), D (x) w -> sum over i of D(f_i) (x) e_i ^ w. Either the f_i are the outputs (catalecticants with q = 0, and
    Strassen's), or m = 1 and they are the derivatives of the output by x_i (Koszul). They commute with changes of basis, so
    that all terms have one rank.
    """
    if type(name) is list and len(name) == 2 and name[0] == "catalecticant":
        space, q, s = m, 0, r - integer(name[1], 1, r - 1, "the degree of a catalecticant")
    elif name == ["strassen"] and (m, r) == (3, 2):
        space, q, s = m, 1, 1
    else:
        koszul = name == ["koszul"] and m == 1 < r and n % 2 == r % 2 == 1
        need(koszul, "a flattening is [catalecticant, s], [koszul] or, for three quadrics, [strassen]")
        space, q, s = n, (n - 1) // 2, r // 2
    derived = int(name == ["koszul"])
    index = {e: i for i, e in enumerate(monomials(n, r))}
    operators, forms = monomials(n, s), monomials(n, r - s - derived)
    size = space * comb(space, q) * len(operators) * len(forms)
    limit(size, 2 * 10**6)
    small, large = list(combinations(range(space), q)), list(combinations(range(space), q + 1))
    table: dict[int, list[tuple[int, int, int]]] = {}
    for c, chosen in enumerate(small):
        for i in set(range(space)) - set(chosen):
            to, sign = large.index(tuple(sorted((*chosen, i)))), (-1) ** sum(x < i for x in chosen)
            for a, u in enumerate(operators):
                for b, v in enumerate(forms):
                    e = tuple(x + y + derived * (k == i) for k, (x, y) in enumerate(zip(u, v, strict=True)))
                    place = index[e] if derived else i * len(index) + index[e]
                    entry = (b * len(large) + to, a * len(small) + c, sign * prod(map(factorial, e)))
                    table.setdefault(place, []).append(entry)
    return table, len(forms) * len(large), len(operators) * len(small)


# == 10. Built-in networks ===============================================================================

REPEATS = 4
EQUAL = f"both are equal at {REPEATS} random points modulo random primes above 2^61"
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
        """Rank, heads and both widths of each layer of attention."""
        return list(zip(self.ranks, self.heads, self.widths, self.widths[1:], strict=False))

    @property
    def narrow(self) -> bool:
        """Whether weights of this parametrization satisfy equations; then (Q, K, V), with the same image, stand for them."""
        if self.parametrization == "virtual":
            return min([*self.widths[1:-1], *self.ranks]) < self.widths[0]
        return self.parametrization == "attention" and any(a < d for a, _, d, _ in self.layers)

    @property
    def weights(self) -> dict[str, Shape]:
        """Names and shapes of the free weights, in order."""
        w, way = self.widths, "weights" if self.narrow else self.parametrization
        if self.family == "convolution":
            return {f"w{i}": (k,) for i, k in enumerate(w, start=1)}
        if not self.ranks:
            return {f"W{i}": (w[i], w[i - 1]) for i in range(1, len(w))}
        if way == "virtual":
            return {**{f"M{i}": (w[0], w[0]) for i in range(1, len(w))}, "L": (w[-1], w[0])}
        found: dict[str, Shape] = {}
        for i, (a, h, d, e) in enumerate(self.layers, start=1):
            mark, lead = "" if self.family == "lightning" else str(i), (h,) if h > 1 else ()
            scores = {"A": (d, d)} if way == "attention" else {"Q": (a, d), "K": (a, d)}
            found |= {name + mark: (*lead, *shape) for name, shape in (scores | {"V": (e, d)}).items()}
        return found

    @property
    def input_shape(self) -> Shape:
        if self.family != "convolution":
            return (self.widths[0], self.tokens) if self.ranks else (self.widths[0],)
        layers = zip(self.widths[::-1], self.strides[::-1], strict=True)
        return (reduce(lambda size, layer: (size - 1) * layer[1] + layer[0], layers, 1),)

    @property
    def parameter_dim(self) -> int | None:
        """Dimension of the space of weights of the spec's own parametrization; None where it is not known by a formula."""
        if self.parametrization == "attention":
            return sum(h * (matrices(d, a) + d * e) for a, h, d, e in self.layers)
        return None if self.narrow else sum(map(prod, self.weights.values()))


def family_of(spec: str) -> str:
    return re.split(r"[(:]", spec)[0].strip()


def read_spec(spec: str) -> Network | None:
    """The built-in network with this canonical spec; None for a spec of another kind."""
    family, canonical = family_of(spec), "the spec is not in canonical form"
    if family not in (*FAMILIES, "multi-head", "skip-lightning"):
        return None
    match = re.fullmatch(rf"{family}\({FAMILIES.get(family, '(?!)')}\)", spec)
    if match is None and of_further(spec):  # with options
        return None
    if match is None:
        raise Rejected(canonical)
    said = {key: text for key, text in match.groupdict().items() if text is not None}
    read = {key: [int(n) for n in re.findall("[0-9]+", text)] for key, text in said.items()}
    widths, ranks, heads = read["d"] + read.get("dp", []), read.get("a", []), read.get("heads", [1])
    layers, several = len(widths) - 1, "[" in said.get("heads", "")
    need(layers > 0 or family == "convolution", "a network has a layer")
    need("heads" not in said or (len(set(heads)) > 1 if several else heads != [1]), canonical)
    heads = (heads if several else heads * layers) if ranks else []
    need(not ranks or len(ranks) == len(heads) == layers, "ranks or heads are not one for each layer")
    strides = read.get("strides", [1] * len(widths))
    need(len(strides) == len(widths) and ("strides" not in said or set(strides) != {1}), canonical)
    skip, way, tokens = "skip" in said, said.get("way", "weights"), read.get("t", [1])[0]
    need(not skip or len(set(widths)) == 1, "skip connections need equal widths")
    plain = not skip and max(heads, default=1) == 1
    need(way != "virtual" or plain, "virtual weights need one head and no skip")
    segre = layers == 1 and not skip and tokens > 1 and family != "softmax"
    need(segre or "full" not in said, canonical)
    power = read.get("r", [1])[0]
    segre = segre and "full" not in said
    limit(max(widths) ** 2 if ranks else 0, MOST_ENTRIES)
    return Network(family, widths, ranks, heads, tokens, skip, way, power, strides, segre)


Matrix = list[list[Any]]


def product(ring: Any, *factors: Matrix) -> Matrix:
    left, right, *more = factors
    found = [[ring.dot(row, column) for column in transposed(right)] for row in left]
    return product(ring, found, *more) if more else found


def transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def sum_of(ring: Any, left: Matrix, right: Matrix) -> Matrix:
    return [list(map(ring.add, *rows)) for rows in zip(left, right, strict=True)]


def nested(values: Numbers, shape: Shape) -> Any:
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def arrays(circuit: Circuit, weights: Numbers) -> dict[str, Any]:
    """Weights by their names, as nested lists."""
    shapes = {name: circuit.gates[place].shape for name, place in circuit.weights.items()}
    return {name: nested([weights[i] for i in own], shapes[name]) for name, own in circuit.flat.items()}


def head(
    network: Network, ring: Any, w: dict[str, Any], layer: int, number: int
) -> tuple[Matrix, Matrix | None]:
    """A and V of one head, where A may be given by Q and K, or be virtual; V is None for virtual weights."""
    mark, several = "" if network.family == "lightning" else str(layer), network.heads[layer - 1] > 1
    own = {n[0]: value[number] if several else value for n, value in w.items() if n[1:] == mark}
    scores = own.get("A") or own.get("M") or product(ring, transposed(own["K"]), own["Q"])
    return scores, own.get("V")


def network_outputs(network: Network, ring: Any, w: dict[str, Any], x: Any) -> Numbers:
    """The flat output of a built-in network at an input, by its definition; `w` and `x` are nested lists."""
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
            scores = product(ring, transposed(x), A, x)
            if network.family == "softmax":
                # Equation 15: token i attends to token j by exp(x_i^T A x_j)
                scores = transposed([ring.softmax(row) for row in scores])
            part = product(ring, x, scores)  # Equation 1: V X X^T A X; with virtual weights L comes last
            parts.append(product(ring, V, part) if V else part)
        x = reduce(lambda left, right: sum_of(ring, left, right), parts)
    return [v for row in (product(ring, w["L"], x) if "L" in w else x) for v in row]


def segre_outputs(network: Network, ring: Any, w: dict[str, Any]) -> Numbers:
    """Coefficients of x_(m,1) x_(i,2) x_(j,2), i <= j, in output n of the first token: columns of A times rows of V."""
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
    """The definition of a built-in network, for a program that has its weights and inputs."""
    places = circuit.weights
    shapes = [(name, circuit.gates[place].shape) for name, place in places.items()]
    need(shapes == list(network.weights.items()), "the program has other weights than its spec")
    inputs = [circuit.gates[place].shape for place in circuit.inputs.values()]
    segre = network.segre and not inputs
    need(segre or inputs == [network.input_shape], "the program has other inputs than its spec")

    def values(ring: Any, weights: Numbers, x: Numbers) -> Numbers:
        named = arrays(circuit, weights)
        if segre:
            return segre_outputs(network, ring, named)
        return network_outputs(network, ring, named, nested(x, inputs[0]))

    return "gives the Segre coordinates" if segre else "is that", values


def by_map(circuit: Circuit, spec: str) -> Definition | None:
    """The polynomials in a spec ``map:x,y->x^2;x*y``; None for other specs."""
    limit(len(spec), 10**6)
    match = re.fullmatch(r"map:([^>|]+)->([^|]+)", spec)
    symbol = r"[A-Za-z][A-Za-z0-9']*(?:_(?:[0-9]+|[A-Za-z][A-Za-z0-9]*|\([0-9]+(?:,[0-9]+)*\)))?"
    power = rf"{symbol}(?:\^[1-9][0-9]{{0,5}})?"
    term = rf"(?:{RATIONAL.replace('-?', '')}|{power})(?:\*{power})*"
    if not match or not re.fullmatch(rf"{symbol}(?:,{symbol})*", match[1]):
        return None
    texts = match[2].split(";")
    if not all(re.fullmatch(rf"-?{term}(?:[+-]{term})*", text) for text in texts):
        return None
    names = [found[0] for found in re.finditer(rf"{symbol}(?=,|$)", match[1])]
    need(len(set(names)) == len(names) == circuit.parameters, "the program has other variables than its spec")
    need(not circuit.inputs, "the program has inputs, and its spec has none")
    need(
        circuit.size(*circuit.outputs) == len(texts),
        "the program has another number of outputs than its spec",
    )

    def values(ring: Any, weights: Numbers, _: Numbers) -> Numbers:
        at, found = dict(zip(names, weights, strict=True)), []
        for text in texts:
            total = ring.number(0)
            for part in re.findall(r"[+-]?[^+-]+", text):
                value = ring.number(-1 if part[0] == "-" else 1)
                for factor in part.strip("+-").split("*"):
                    base, _, exponent = factor.partition("^")
                    need(base in at or base[0].isdigit(), "a variable of the spec is not declared")
                    number = at[base] if base in at else ring.number(rational(base))
                    value = ring.multiply(value, ring.power(number, int(exponent or 1)))
                total = ring.add(total, value)
            found.append(total)
        return found

    return "is that", values


# Further families, of which only the definition is written here: no bound rests on them. Lists of integers and flags that a
# spec names enter; weights, the shape of the input (None for tensors) and the outputs leave.

Said = dict[str, list[int]]
Built = tuple[dict[str, Shape], Shape | None, Callable[[Any, dict[str, Any], Any], Numbers]]
HEADS = rf"(?:,heads=(?P<heads>{N}|{L}))?"
TOKENS = r"(?P<causal>,causal=true)?(?P<tied>,tied=true)?(?P<positions>,positions=true)?(?P<softmax>,softmax=true)?"
BIAS = r"(?P<bias>,bias=true)?"


def tokens_attend(said: Said) -> Built:
    """Layers X -> V X w(X^T K^T Q X), w a power or softmax of each score, perhaps masked; in a transformer, with a layer
    Y -> Y + U (W Y)^r after each."""
    d, a, t, (r,) = said["d"], said["a"], said["t"][0], said.get("r", [1])
    hidden, layers = said.get("hidden", [0])[0], said.get("layers", [len(d) - 1])[0]
    if "layers" in said:
        limit(layers, 10**4)
        d, a = d * (layers + 1), a * layers
    heads = said.get("heads", [1])
    heads = heads * layers if len(heads) == 1 else heads
    need(len(d) > 1 and len(a) == len(heads) == layers, "ranks or heads are not one for each layer")
    skip, power = "skip" in said or bool(hidden), 1 if hidden else r
    need(not skip or len(set(d)) == 1, "skip connections need equal widths")
    need(power == 1 or "softmax" not in said, "scores of softmax have no power")
    weights: dict[str, Shape] = {"P": (d[0], t)} if "positions" in said else {}
    for i, (rank, h, n, m) in enumerate(zip(a, heads, d, d[1:], strict=False), start=1):
        lead = (h,) if h > 1 else ()
        own = (
            {"K": (rank, n), "V": (m, n)} if "tied" in said else {"Q": (rank, n), "K": (rank, n), "V": (m, n)}
        )
        own |= {"W": (hidden, n), "U": (n, hidden)} if hidden else {}
        weights |= {f"{key}{i}": shape if key in "WU" else (*lead, *shape) for key, shape in own.items()}

    def mixing(ring: Any, scores: Matrix) -> Matrix:
        seen = [range(i + 1) if "causal" in said else range(t) for i in range(t)]
        if "softmax" in said:  # token i attends to token j by row i
            zero, rows = ring.number(0), [ring.softmax([scores[i][j] for j in seen[i]]) for i in range(t)]
            return transposed([row + [zero] * (t - len(row)) for row in rows])
        return [
            [ring.power(scores[j][i], power) if j in seen[i] else ring.number(0) for i in range(t)]
            for j in range(t)
        ]

    def outputs(ring: Any, w: dict[str, Any], x: Matrix) -> Numbers:
        x = sum_of(ring, x, w["P"]) if "P" in w else x
        for i, h in enumerate(heads, start=1):
            parts = [x] if skip else []
            for k in range(h):
                K, Q, V = (
                    (w[key + str(i)] if h == 1 else w[key + str(i)][k])
                    for key in ("K", "K" if "tied" in said else "Q", "V")
                )
                scores = product(ring, transposed(product(ring, K, x)), product(ring, Q, x))
                parts.append(product(ring, V, product(ring, x, mixing(ring, scores))))
            x = reduce(lambda left, right: sum_of(ring, left, right), parts)
            if hidden:
                inner = [[ring.power(y, r) for y in row] for row in product(ring, w[f"W{i}"], x)]
                x = sum_of(ring, x, product(ring, w[f"U{i}"], inner))
        return [y for row in x for y in row]

    return weights, (d[0], t), outputs


def perceptron(said: Said) -> Built:
    """W_l s(... s(W_1 x + b_1) ...) + b_l, s a power for each layer."""
    widths, r = said["widths"], said["r"]
    layers = len(widths) - 1
    need(layers > 0 and ("bias" in said or len(set(r)) > 1), "the spec is not in canonical form")
    need(len(r) == layers - 1, "exponents are not one for each hidden layer")
    limit(max(widths), MOST_ENTRIES)
    limit(layers, 10**5)
    weights: dict[str, Shape] = {}
    for i, (n, m) in enumerate(pairwise(widths), start=1):
        weights |= {f"W{i}": (m, n)} | ({f"b{i}": (m,)} if "bias" in said else {})

    def outputs(ring: Any, w: dict[str, Any], x: Numbers) -> Numbers:
        for i in range(1, layers + 1):
            x = [ring.dot(row, x) for row in w[f"W{i}"]]
            x = list(map(ring.add, x, w[f"b{i}"])) if f"b{i}" in w else x
            x = [ring.power(y, r[i - 1]) for y in x] if i < layers else x
        return x

    return weights, (widths[0],), outputs


def rank_one_sums(said: Said) -> Built:
    """T[i_1, ..., i_N] = sum over s of U_1[i_1, s] ... U_N[i_N, s], the last index fastest."""
    sizes, (rank,) = said["sizes"], said["rank"]

    def outputs(ring: Any, w: dict[str, Any], _: Any) -> Numbers:
        rows = [[ring.number(1)] * rank]
        for factor in w.values():
            rows = [list(map(ring.multiply, row, other)) for row in rows for other in factor]
        return [reduce(ring.add, row) for row in rows]

    return {f"U{k}": (n, rank) for k, n in enumerate(sizes, start=1)}, None, outputs


FURTHER: dict[str, tuple[Callable[[Said], Built], str]] = {
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
    """A canonical spec of a further family, read."""
    family = family_of(spec)
    return re.fullmatch(rf"{family}\({FURTHER[family][1]}\)", spec) if family in FURTHER else None


def by_family(circuit: Circuit, spec: str) -> Definition | None:
    """The definition of a further family, for a program that has its weights and inputs; None for other specs."""
    family = family_of(spec)
    if family not in FURTHER:
        return None
    limit(len(spec), 10**5)
    match = of_further(spec)
    if match is None:
        raise Rejected("the spec is not in canonical form")
    weights, inputs, outputs = FURTHER[family][0](
        {k: list(naturals(v)) for k, v in match.groupdict().items() if v is not None}
    )
    shapes = [(name, circuit.gates[place].shape) for name, place in circuit.weights.items()]
    need(shapes == list(weights.items()), "the program has other weights than its spec")
    own = [circuit.gates[place].shape for place in circuit.inputs.values()]
    need(own == ([] if inputs is None else [inputs]), "the program has other inputs than its spec")

    def values(ring: Any, flat: Numbers, x: Numbers) -> Numbers:
        return outputs(ring, arrays(circuit, flat), None if inputs is None else nested(x, inputs))

    return "is that", values


def compare(circuit: Circuit, spec: str, network: Network | None) -> str | None:
    """Compare a program with what its spec names, at points that the checker draws; a sentence on that, if the spec is known."""
    definition = (
        by_network(circuit, network) if network else by_family(circuit, spec) or by_map(circuit, spec)
    )
    if definition is None:
        return None
    words, values = definition
    limit(highest_degree(circuit), 2**30)
    for _ in range(REPEATS):
        ring = Symbols()
        drawn = ring.drawn(circuit.parameters + circuit.input_size)
        flat, given = drawn[: circuit.parameters], drawn[circuit.parameters :]
        found = Evaluation(circuit, ring).values(flat, given)
        own = [x for place in circuit.outputs for x in found[place]]
        need(own == values(ring, flat, given), "the program is not that of its spec")
    return f"The program {words} of {shown(spec)}: {EQUAL}."


def matrices(d: int, a: int, symmetric: bool = False, most: int | None = None) -> int:
    """Dimension of the d x d matrices of rank <= a, or a bound of that of their symmetric parts (of rank <= 2 a and <= most)."""
    r, s = min(a, d), min(2 * a, d if most is None else most)
    return s * d - s * (s - 1) // 2 if symmetric else r * (2 * d - r)


def virtual_bound(network: Network | None) -> int:
    """Attention with one head and no skip connections is a function of A_i and V_i, and also of M_i = L_(i-1)^T A_i L_(i-1)
    and L_l, where L_i = V_i ... V_1. Both are counted. After tokens of rank one (t = 1, or a layer with a = 1) scores x^T A x
    see the symmetric part of A only. For lightning M_i -> s M_i is undone by L (Equation 13). Softmax with t = 1 is L X.
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
    return min(last + sum(virtual) - (0 if soft else depth), sum(source) - orbit_dim(network, symmetric))


def orbit_dim(network: Network, symmetric: list[bool]) -> int:
    """A lower bound of the dimension of the orbits of GL(d_1) x ... x GL(d_(l-1)), and scalings, on (A_i, V_i): the rank of
    the infinitesimal action at a point.
    """
    w, ring, circuit, at = network.widths, ModP(BIG), Circuit(), list[int]()
    limit(sum(d * d * (2 * d + 2 * max(w)) for d in w[1:-1]), MOST_ENTRIES)
    numbers = (x % BIG for x in stream(1, 1, 10**9))
    for i, (a, _, d, e) in enumerate(network.layers):
        for name, shape in ((f"A{i}", (d, d)), (f"V{i}", (e, d))):
            circuit.gates.append(Gate("weight", [name], [], shape))
        K, Q = ([[next(numbers) for _ in range(d)] for _ in range(min(a, d))] for _ in "KQ")
        A = product(ring, transposed(K), Q)
        A = sum_of(ring, A, transposed(A)) if symmetric[i] else A
        at += [x for row in A for x in row] + [next(numbers) for _ in range(d * e)]
    groups: list[Any] = [
        {"group": "gl", "size": w[k], "axes": {f"V{k - 1}": [1, 0], f"V{k}": [0, -1], f"A{k}": [-1, -1]}}
        for k in range(1, len(w) - 1)
    ]
    if network.family != "softmax":
        groups += [{"group": "scaling", "weights": {f"A{k}": 1, f"V{k}": -1}} for k in range(len(w) - 1)]
    every = [v for group in groups for _, v in group_fields(circuit, group)]
    vectors = [field_at(v, ring, at) for v in every]
    return sparse_rank([{i: x for i, x in vector.items() if x} for vector in vectors], BIG)


def layers_bound(network: Network | None) -> int:
    """Lightning attention has at most the sum of the dimensions of its layers. Without skip connections a change of basis between
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
    """Cubic forms in d variables that lie in the ideal of n of them, for a single token; else d such quadratic forms."""
    return comb(d + 2, 3) - comb(d - n + 2, 3) if single else d * (comb(d + 1, 2) - comb(d - n + 1, 2))


def one_layer(a: int, heads: int, d: int, e: int, single: bool) -> int:
    """A layer is linear in sum_h A_h (x) V_h, a matrix with d e columns of rank <= the number of heads, and is seen in the
    products of columns of A with rows of V in Sym^2 only; for a single token A is symmetric, and products are in Sym^3. With
    one output row they lie in the ideal of as many linear forms as there are heads.
    """
    entries, n = d * (d + 1) // 2 if single else d * d, min(heads, d)
    h = min(heads, entries, d * e)
    bounds = [
        heads * (matrices(d, a, single) + d * e - 1),
        h * (entries + d * e - h),
        e * forms(d, d, single),
    ]
    return min([*bounds, n * (d - n) + forms(d, n, single)] if e == 1 else bounds)


# == 11. Statements ======================================================================================


@dataclass
class Shown:
    """What a verified certificate says, and fields of a record with their values that follow from it."""

    said: list[str]
    follows: dict[str, Any] = field(default_factory=dict)
    coordinates: int | None = None
    generators: Counter[int] = field(default_factory=Counter)  # minimal ones of a closure, by degree
    kind: str = ""
    claims: list[Any] = field(default_factory=list)
    circuit: Circuit = field(default_factory=Circuit)
    network: Network | None = None
    foreign: bool = False  # the spec is not known: that the program is the model's is not shown


def check_certificate(document: Any) -> Shown:
    need(type(document) is dict, "a certificate is an object")
    if "format" not in document or document.get("version") != 2:
        raise Unknown(f"this checker reads format 2, not format {shown(document.get('version'))}")
    kind = document["statement"].get("kind") if type(document.get("statement")) is dict else None
    arguments = ("lower", "upper") if kind == "dimension" else ("argument",)
    keys = ("format", "version", "statement", "spec", "program", *arguments)
    name, version, statement, spec, text, *given = fields(document, "a certificate", *keys)
    need(name == "m2bridge certificate" and type(version) is int, "this is not a certificate of m2bridge")
    need(spec is None or type(spec) is str, "a spec is a text, or null")
    check, claims = by_kind(statement, "the statement", STATEMENTS)
    if kind in ("inside", "outside", "symmetry", "same function"):
        need(given.pop() is None, "it has no argument")
    circuit = read_program(text)
    network = None if spec is None else read_spec(spec)
    about = [f"This is about the program with hash {sha256(text.encode()).hexdigest()}."]
    known = spec is None or compare(circuit, spec, network)
    about += [known] if type(known) is str else []
    about += [] if known else [f"The spec {shown(spec)} is not known to me: nothing is said about it."]
    found: Shown = check(circuit, network, *claims, *given)
    found.said[:0] = about
    found.follows["model"] = "program:" + ";".join(text.splitlines()[1:]) if spec is None else spec
    found.kind, found.claims, found.circuit, found.network = str(kind), claims, circuit, network
    found.foreign = not known
    return found


def check_dimension(circuit: Circuit, network: Network | None, n: Any, lower: Any, upper: Any) -> Shown:
    n = integer(n, 0, 10**9, "a dimension")
    low = check_lower(circuit, lower)
    need(low == n, f"the lower bound shows a dimension of at least {low}, the statement is {n}")
    high = check_upper(circuit, upper, network)
    need(high == n, f"the upper bound shows a dimension of at most {high}, the statement is {n}")
    rests = " (this rests on the spec)" if upper["kind"] in ("virtual", "layers") else ""
    parameters = network.parameter_dim if network else circuit.parameters
    follows = {"image_dim": n, "lower_bound": n, "upper_bound": n}
    if parameters is not None:
        follows |= {"parameters": parameters, "generic_fiber_dim": parameters - n}
    both = f"at least {n} by {lower['kind']}, at most {n} by {upper['kind']}{rests}"
    return Shown([f"Its dimension is {n}: {both}."], follows)


def check_closure(circuit: Circuit, _: Network | None, values: Any, k: Any, argument: Any) -> Shown:
    """Polynomials of degree at most j that vanish on the image: at least the multiples of the equations, at most what is left by
    the rank of all monomials, each as the vector of its values at image points. Both ranks must add up to the number of
    monomials, for each j up to k; gradings of the weights for which all coordinates are homogeneous split them into blocks.
    An equation that is independent of the multiples of those of lower degree is a minimal generator. This could fail for a
    prime that was chosen for it: the checker draws its own.
    """
    p, gradings = fields(argument, "the argument", "prime", "gradings")
    prime(p)
    p, k = Symbols().p, integer(k, 0, 100, "a degree")
    equations, own = check_equations(circuit, values)
    limit(comb(len(own) + k, k), 3 * 10**4)
    grades = [coordinate_degrees(circuit, own, g) for g in listed(gradings, "gradings")]

    def block(monomial: Shape) -> Shape:
        return tuple(sum(grade[i] for i in monomial) for grade in grades)

    low = []
    for f in equations:
        if (degree := max(sum(e for _, e in powers) for _, powers in f)) <= k:
            low.append((degree, [(c % p, tuple(i for i, e in powers for _ in range(e))) for c, powers in f]))
            need(len({block(m) for _, m in low[-1][1]}) == 1, "an equation is not homogeneous for a grading")
    low.sort()
    limit(comb(len(own) + k, k) * (k + 1), MOST_ENTRIES)
    monomials = [list(combinations_with_replacement(range(len(own)), degree)) for degree in range(k + 1)]
    sizes = Counter(block(m) for each in monomials for m in each)
    limit(sum(n * n for n in sizes.values()), 4 * MOST_ENTRIES)
    drawn = [[x % p for x in stream(0, i, circuit.parameters)] for i in range(max(sizes.values()) + 4)]
    points = evaluated(own, p, drawn)
    places: dict[Shape, dict[Shape, int]] = {key: {} for key in sizes}
    seen = {key: Echelon(p, n + 4) for key, n in sizes.items()}
    multiples = {key: Echelon(p, n) for key, n in sizes.items()}
    generators = Counter[int]()
    for degree in range(k + 1):
        for m in monomials[degree]:
            key = block(m)
            places[key][m] = len(places[key])
            seen[key].add([prod(y[i] for i in m) % p for y in points[: sizes[key] + 4]])
        for own_degree, terms in low:
            for factor in monomials[degree - own_degree] if own_degree <= degree else ():
                key = block((*factor, *terms[0][1]))
                if len(seen[key].rows) + len(multiples[key].rows) < len(places[key]):
                    row = [0] * sizes[key]
                    for c, m in terms:
                        row[places[key][tuple(sorted((*factor, *m)))]] = c
                    generators[own_degree] += multiples[key].add(row) and own_degree == degree
        complete = all(len(seen[b].rows) + len(multiples[b].rows) == len(places[b]) for b in sizes)
        need(complete, f"more polynomials of degree at most {degree} may vanish on the image")
    said = [
        f"Each of the {len(equations)} equations vanishes on its image identically, by expansion over ZZ.",
        f"Every polynomial of degree at most {k} that vanishes there is a combination of their multiples of such degrees.",
        "Not covered: equations of higher degree, and whether these generate a prime ideal.",
    ]
    return Shown(said, {"span_dim": len(own) - generators[1]} if k else {}, len(own), generators)


def coordinate_degrees(circuit: Circuit, own: list[Polynomial], value: Any) -> list[int]:
    """The degree of each coordinate when weights have these degrees; all must be homogeneous."""
    degrees = integers(value, -100, 100, "a degree of a weight", circuit.parameters)
    found = [{sum(degrees[i] for i in monomial) for monomial in f} or {0} for f in own]
    need(all(len(each) == 1 for each in found), "a coordinate is not homogeneous for a grading")
    return [each.pop() for each in found]


def check_inside(circuit: Circuit, _: Network | None, weights: Any, point: Any) -> Shown:
    """The image of exact weights."""
    ring = Polynomials()
    own = coordinates(circuit, ring)
    at = [ring.number(x) for x in exact(weights, "weights", circuit.parameters)]
    terms = [[(c, tuple((i, 1) for i in m)) for m, c in f.items()] for f in own]
    given = [ring.number(x) for x in exact(point, "a point", len(own))]
    need([substituted(ring, f, at) for f in terms] == given, "the image of the weights is another point")
    return Shown(["The given point is in its image, by the given weights."], coordinates=len(own))


def check_outside(circuit: Circuit, _: Network | None, point: Any, value: Any) -> Shown:
    """An equation of the image that fails at a point."""
    (equation,), own = check_equations(circuit, [value])
    ring = Polynomials()
    at = [ring.number(x) for x in exact(point, "a point", len(own))]
    need(bool(substituted(ring, equation, at)), "the equation vanishes at the point")
    said = "The given point is not in the closure of its image: an equation that holds there fails."
    return Shown([said], coordinates=len(own))


def check_singular(circuit: Circuit, network: Network | None, weights: Any, argument: Any) -> Shown:
    """An arc w(t) of weights that passes through the point at t = 0 gives an arc of the image; its first coefficient that is
    not zero is a tangent vector. More independent ones than the dimension show that the point is singular: the image is
    irreducible, so that all of it has this dimension there.
    """
    p, upper, arcs = fields(argument, "the argument", "prime", "upper", "arcs")
    p, ring = prime(p), Polynomials()
    run, inputs = Evaluation(circuit, ring), ring.variables(1 + circuit.input_size)[1:]  # variable 0 is t
    at = [ring.number(x) for x in exact(weights, "weights", circuit.parameters)]
    y, vectors = run.outputs(at, inputs), []
    for arc in listed(arcs, "arcs"):
        paths = [exact(path, "an arc") for path in listed(arc, "an arc", len(at))]
        need(all(len(path) <= 20 for path in paths), "an arc has too high a degree")
        moved = [{(0,) * n: c for n, c in enumerate(path) if c} for path in paths]
        image = list(map(ring.add, run.outputs(moved, inputs), map(ring.minus, y)))
        order = min((m.count(0) for f in image for m in f), default=0)
        need(order > 0, "an arc does not pass through the point, or does not move")
        leading = {(k, m): c for k, f in enumerate(image) for m, c in f.items() if m.count(0) == order}
        vectors.append({key: x for key, c in leading.items() if (x := ModP(p).number(c))})
    tangent, high = sparse_rank(vectors, p), check_upper(circuit, upper, network)
    need(tangent > high, f"the arcs span {tangent} dimensions only, and the dimension is at most {high}")
    both = f"{tangent} independent tangent vectors, and a dimension of at most {high}"
    return Shown([f"The closure of its image is singular at the given point: {both}."])


def check_smooth(circuit: Circuit, _: Network | None, weights: Any, argument: Any) -> Shown:
    """Equations whose differentials have rank N - n at a point of an n-dimensional image show that it is smooth there. It is
    irreducible, which `equations_bound` sees to.
    """
    p, lower, equations = fields(argument, "the argument", "prime", "lower", "equations")
    p = prime(p)
    at = [ModP(p).number(x) for x in exact(weights, "weights", circuit.parameters)]
    tangent, low = equations_bound(circuit, p, at, equations), check_lower(circuit, lower)
    need(low == tangent, f"the tangent space has dimension {tangent} at most, the image {low} at least")
    return Shown([f"The closure of its image is smooth at the given point, of dimension {low}."])


def check_symmetry(circuit: Circuit, _: Network | None, groups: Any, own: Any) -> Shown:
    """Groups and vector fields; the dimension of their generic orbits is at least their rank at one point modulo a prime."""
    need(bool(groups or own), "at least one symmetry is named")
    ring = Symbols()  # at a point that was known before, fields might have been made to have a smaller rank
    at = ring.drawn(circuit.parameters)
    orbit = sparse_rank(symmetry_vectors(circuit, at, ring.p, groups, own), ring.p)
    all_of_them = f"{len(groups)} groups and {len(own)} vector fields do not change its function, identically"
    said = f"{all_of_them}; their generic orbits have dimension at least {orbit}."
    return Shown([said], {"symmetry_dim": orbit})


def check_same_function(circuit: Circuit, _: Network | None, pair: Any) -> Shown:
    """Exact weights as constants, inputs as variables."""
    ring = Polynomials()
    inputs = ring.variables(circuit.input_size)
    points = [exact(weights, "weights", circuit.parameters) for weights in listed(pair, "weights", 2)]
    values = [Evaluation(circuit, ring).values([ring.number(x) for x in at], inputs) for at in points]
    need(points[0] != points[1], "the two weights are one")
    equal = all(values[0][k] == values[1][k] for k in circuit.outputs)
    need(equal, "the two weights give different functions")
    said = "The two given weights are different, and the functions are equal as polynomials in the inputs."
    return Shown([said])


STATEMENTS: Kinds = {
    "dimension": (check_dimension, ("dimension",)),
    "closure": (check_closure, ("equations", "degree")),
    "inside": (check_inside, ("weights", "point")),
    "outside": (check_outside, ("point", "equation")),
    "singular": (check_singular, ("weights",)),
    "smooth": (check_smooth, ("weights",)),
    "symmetry": (check_symmetry, ("groups", "fields")),
    "same function": (check_same_function, ("weights",)),
}


# == 12. Records =========================================================================================

HEADLINE = {
    "dimension": ("image_dim",),
    "closure": ("image_dim", "codim", "degree", "completeness"),
    "singular-point": ("verdict",),
    "singular-locus": ("singular_dim", "singular_degree"),
    "symmetries": ("symmetry_dim", "generic_fiber_dim"),
    "membership": ("closure", "complex_image", "real_image"),
    "same": ("verdict",),
}
"""What the first line of each question's answer says. A record is verified when its certificates show all of it."""
PARTLY = ("singular-point", "singular-locus", "symmetries")
"""Questions whose records name dimensions that their certificates need not show; they are listed as not covered then."""


def in_short(own: Shown) -> str:
    """What a certificate shows, in a few words."""
    kind, claims = own.kind, own.claims
    if kind == "closure":
        count = len(claims[0])
        vanish = "1 equation vanishes" if count == 1 else f"{count} equations vanish"
        return f"{vanish} on the image, and up to degree {claims[1]} there are no others"
    if kind == "symmetry":
        return f"{len(claims[0])} groups and {len(claims[1])} vector fields do not change the function"
    return {
        "dimension": f"the dimension is {claims[0]}",
        "inside": "the point is in the image",
        "outside": "the point is not in the closure of the image",
        "singular": "the point is singular",
        "smooth": "the point is smooth",
        "same function": "the two weights compute one function",
    }[kind]


def summary(certificates: list[Shown]) -> str:
    """What all certificates show together, in a few words."""
    told = Counter(map(in_short, certificates))
    return "; ".join(text if n == 1 else f"{text} ({n} points)" for text, n in told.items())


def not_shown(record: dict[str, Any], covered: set[str]) -> list[str]:
    """What the answer of a record says and no certificate shows."""
    analysis = str(record.get("analysis"))
    if analysis not in HEADLINE:
        return ["the answer"]
    stated = [name for name in HEADLINE[analysis] if record.get(name) not in (None, "undecided")]
    missing = [name for name in stated if name not in covered]
    return [*missing, "model"] if "model" in record and "model" not in covered else missing


def altered(record: dict[str, Any]) -> bool:
    """Whether a record has the digest of another one. Who alters a record may write a new digest: this finds mistakes."""
    if "digest" not in record:
        return False
    rest = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return bool(record["digest"] != sha256(text.encode()).hexdigest())


def check_record(record: dict[str, Any], certificates: list[Shown]) -> tuple[list[str], set[str]]:  # noqa: C901 -- one case for each kind of certificate
    """What a record says must follow from its certificates where that is possible; the rest is named, and what follows listed."""
    analysis = record.get("analysis")
    covered, partly = {"certificate"}, dict[str, list[str]]()
    for own in certificates:
        follows, kind = dict(own.follows), own.kind
        if kind == "dimension" and analysis not in PARTLY:
            follows |= {"analysis": "dimension", "certainty": "proved"}
        elif kind in ("same function", "singular", "smooth"):
            if analysis in ("same", "singular-point"):
                follows |= about_points(record, own, partly)
            elif analysis == "singular-locus":
                partly.setdefault("strata", []).extend(about_strata(record, own))
        elif kind == "dimension" and analysis == "symmetries" and not follows.get("generic_fiber_dim", 1):
            follows["symmetry_dim"] = 0  # orbits lie in fibers
        elif kind == "symmetry" and analysis == "symmetries":
            follows["symmetry_lower_bound"] = follows["symmetry_dim"]
            if record.get("symmetry_dim") is None:  # further symmetries were not searched
                del follows["symmetry_dim"]
            partly.setdefault("fields", []).extend(about_fields(record, own))
        elif kind == "closure" and analysis == "closure":
            follows |= about_closure(record, own, partly)
        elif (
            kind in ("inside", "outside") and "point" in record and numbered_alike(record, own, "membership")
        ):
            follows |= dict.fromkeys(("closure", "complex_image", "real_image"), kind == "inside")
            follows["point"] = texts(own.claims[kind == "inside"])
        if record.get("field", "QQ") != "QQ":
            follows.pop("span_dim", None)  # modulo a prime there may be other equations
        for name in sorted(set(record) & set(follows)):
            wrong = f"the record says {name} = {shown(record[name])}, the certificate shows {shown(follows[name])}"
            need(identical(record[name], follows[name]), wrong)
        covered |= set(follows)
    bounds = {"image_dim", "lower_bound", "upper_bound"} & set(record)
    bounds -= {"image_dim"} if analysis == "closure" else set(bounds if analysis in PARTLY else ())
    claims = analysis == "dimension" or bool(bounds)
    need("image_dim" in covered or not claims, "the record is about a dimension, and its certificate is not")
    covered -= {"model"} if any(own.foreign for own in certificates) else set()
    rest = [shown(name)[:40] for name in record if name not in {*covered, *partly}]
    rest += [f"{name} but for {', '.join(parts) or 'none'}" for name, parts in partly.items()]
    more = " and more" * (len(rest) > 60)
    return [f"Not covered by the certificate: {', '.join(rest[:60])}{more}."] if rest else [], covered


def texts(value: Any) -> list[str]:
    """The entries of nested lists, one after the other, as texts."""
    return [text for item in value for text in texts(item)] if type(value) is list else [str(value)]


def about_points(record: dict[str, Any], own: Shown, partly: dict[str, list[str]]) -> dict[str, Any]:
    """The weights that a record is about are those of its certificate, whatever else it says of them; and its verdict."""
    places, verdict, shows = {
        "same": (["first", "second"], "verdict", "same"),
        "singular-point": (["at"], "verdict", own.kind),
    }[record["analysis"]]
    points = own.claims[0] if own.kind == "same function" else own.claims
    need(len(points) == len(places), "the record and its certificate are about different things")
    for name, weights in zip(places, points, strict=True):
        place = record.get(name)
        named = place.get("weights") if type(place) is dict else None
        written = type(named) is dict and set(named) == set(own.circuit.flat)
        if not written or type(place) is not dict or type(named) is not dict:
            raise Rejected(f"{name} does not name the weights of the program")
        flat = [text for weight in own.circuit.flat for text in texts(named[weight])]
        need(flat == texts(weights), f"{name} is not what the certificate is about")
        if any(record[name][key] is not None for key in set(record[name]) - {"kind", "weights"}):
            partly[name] = ["the weights"]
    need(verdict in record, "the record has no verdict")
    return {verdict: shows, **{name: record[name] for name in places if name not in partly}}


def about_strata(record: dict[str, Any], own: Shown) -> list[str]:
    """The strata of a record that have the certificate's point as their representative (A, V); its verdict is theirs."""
    if own.network is None or own.network.heads != [1]:
        raise Rejected("strata are known for one layer of attention with one head")
    ring = Polynomials()
    weights = arrays(own.circuit, [ring.number(x) for x in exact(own.claims[0], "weights")])
    pair = zip("AV", head(own.network, ring, weights, 1, 0), strict=True)
    rows = {name: [[f.get((), 0) for f in row] for row in matrix or []] for name, matrix in pair}
    flat = {name: [str(x) for row in matrix for x in row] for name, matrix in rows.items()}
    strata = [s if type(s) is dict else {} for s in listed(record.get("strata"), "strata")]
    # up to version 3 records of singular loci have rows of integers, since then all entries as text
    found = [k for k, s in enumerate(strata) if s.get("representative") in (rows, flat)]
    need(bool(found), "no stratum of the record has the point of its certificate")
    agree = all(strata[k].get("verdict") == own.kind for k in found)
    need(agree, "a stratum has another verdict than its certificate")
    return [f"the verdict of number {k} at its representative" for k in found]


def about_fields(record: dict[str, Any], own: Shown) -> list[str]:
    """The vector fields of a record that are among those of the certificate."""
    verified = {json.dumps(value) for value in own.claims[1]}
    given = [f.get("coefficients") if type(f) is dict else f for f in listed(record.get("fields"), "fields")]
    found = [value for value in given if json.dumps(value) in verified]
    return [f"the identities of {len(found)} of {len(given)}"]


def numbered_alike(record: dict[str, Any], own: Shown, analysis: str) -> bool:
    """Whether a record of this question, over QQ, numbers coordinates as the certificate: they are outputs, or all coefficients
    of forms in a vector.
    """
    if record.get("analysis") != analysis or record.get("field", "QQ") != "QQ":
        return False
    vector = own.network is not None and len(own.network.input_shape) == 1
    count = len(record["point"]) if "point" in record else record.get("coordinate_count")
    return not own.circuit.input_size or (vector and identical(count, own.coordinates))


def about_closure(record: dict[str, Any], own: Shown, partly: dict[str, list[str]]) -> dict[str, Any]:
    """How many minimal generators of which degree a closure over QQ has, and its equations."""
    (values, k), follows, equations = own.claims, dict[str, Any](), record.get("equations")
    if record.get("field", "QQ") != "QQ":
        return {}
    if "generators" in record:
        need(type(record["generators"]) is dict, "generators is an object")
        shows = {str(degree): n for degree, n in own.generators.items() if n and degree > 1}
        need(all(re.fullmatch(NATURAL, d) for d in record["generators"]), "a degree is not written like this")
        higher = {d: n for d, n in record["generators"].items() if int(d) > k}
        if integer(record.get("degree_bound"), 0, 100, "a degree") <= k:
            follows = {"generators": shows, "degree_bound": record["degree_bound"]}
        else:
            need(identical(record["generators"], shows | higher), "the closure has other generators")
            partly["generators"] = [f"those of degree at most {k}"]
    need(equations is None or type(equations) is list, "equations is a list")
    if equations and numbered_alike(record, own, "closure"):
        found = []
        for f in equations:
            degree, coefficients, monomials = fields(f, "an equation", "degree", "coefficients", "monomials")
            number = len(listed(coefficients, "coefficients"))
            need(all(type(m) is list for m in listed(monomials, "monomials", number)), "a monomial is a list")
            terms = zip(coefficients, monomials, strict=True)
            found.append([[c, [list(power) for power in sorted(Counter(m).items())]] for c, m in terms])
            need(identical(degree, max(map(len, monomials))), "an equation has another degree")
        need(identical(found, values), "the closure has other equations")
        follows |= {"equations": equations, "field": "QQ"}
    return follows


def verify(text: str) -> tuple[int, list[str]]:  # noqa: PLR0911 -- one return for each outcome
    """The outcome for a document, 0, 7, 8 or 9, and sentences that say why. Never raises."""
    try:
        document = read_json(text)
        need(type(document) is dict, "a record is an object")
        if "job" in document and type(document.get("result")) is dict:
            document = document["result"]  # the record of a batch holds that of its answer
        bare = "format" in document or ("certificate" not in document and "sha256" in document)
        given = document if bare else document.get("certificate")
        if given is None or given == []:
            need(not altered(document), "the record was altered after it was written")
            need(
                document.get("certainty") != "proved", "the record calls itself proved and has no certificate"
            )
            nothing = "Nothing was checked, and nothing is known to be wrong."
            if document.get("agreement") is False:
                nothing = "Nothing was checked; it says itself that its witnesses contradict each other."
            return 8, [f"Not proved: there is no certificate in this record. {nothing}"]
        several = given if type(given) is list else [given]
        limit(len(several), 1000)
        found = [check_certificate(certificate) for certificate in several]
        said = list(dict.fromkeys(sentence for own in found for sentence in own.said))
        first = f"Verified: {summary(found)}."
        if bare:
            return 0, [first, *said]
        rest, covered = check_record(document, found)
        missing = not_shown(document, covered)
        unproved = document.get("certainty") == "proved" and missing not in ([], ["model"])
        need(not unproved, f"the record calls itself proved, and no certificate shows {', '.join(missing)}")
        first += f" Not covered: {', '.join(missing)}." if missing else ""
        if altered(document):
            first += " The record was altered after it was written: do not use anything else in it."
            missing.append("the rest")
        return (9 if missing else 0), [first, *said, *rest]
    except Unknown as reason:
        return 8, [f"Not known to me: {shown(reason)}."]
    except Rejected as reason:
        return 7, [f"Rejected: {shown(reason)}."]
    except MemoryError:
        return 8, ["Not known to me: this needs more memory than there is."]
    except Exception as error:  # an error of this program says nothing about the document
        return 8, [f"Not known to me: the checker failed ({type(error).__name__})."]


def verify_data(data: bytes) -> tuple[int, list[str]]:
    """The outcome for the bytes of a document."""
    if len(data) > MOST_BYTES:
        return 8, [f"Not known to me: the file is larger than {MOST_BYTES} bytes."]
    try:
        return verify(data.decode("utf-8"))
    except UnicodeDecodeError:
        return 7, ["The file is not UTF-8."]


def verify_file(path: str, seconds: int = MOST_SECONDS) -> tuple[int, list[str]]:
    """The outcome for a file, from a process of its own that has so many seconds of processor time."""
    try:
        data = read_bytes(path)
    except OSError:
        return 8, [f"The file {shown(path)} cannot be read."]
    command = [sys.executable, "-I", __file__, "--seconds", str(seconds), "-"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode in (0, 5, 7, 8, 9):
        return done.returncode, done.stdout.decode("ascii").splitlines()
    if done.returncode == -signal.SIGKILL:  # one long operation, which the hard limit ended
        return 5, [stopped(seconds)]
    return 8, [f"Not known to me: the checker failed (exit code {done.returncode})."]


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for "-", up to one more than is allowed."""
    if path == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def stopped(seconds: int) -> str:
    return (
        f"Stopped: the check did not end within {seconds} seconds of processor time; --seconds allows more."
    )


def limit_process(seconds: int) -> None:
    """Bound the processor time and the memory of this process. At the limit it prints a sentence and exits with code 5; in one
    operation that takes longer than the five seconds after it, the system ends it.
    """

    def stop(*_: Any) -> None:
        os.write(1, (stopped(seconds) + "\n").encode())
        os._exit(5)

    signal.signal(signal.SIGXCPU, stop)
    until = int(time.process_time()) + seconds
    for kind, soft, more in ((resource.RLIMIT_CPU, until, 5), (resource.RLIMIT_AS, MOST_MEMORY, 0)):
        hard = resource.getrlimit(kind)[1]
        wanted = [x if hard == resource.RLIM_INFINITY else min(x, hard) for x in (soft, soft + more)]
        try:
            resource.setrlimit(kind, (wanted[0], wanted[1]))
        except (ValueError, OSError):  # macOS does not bound the address space
            continue


def main(arguments: list[str]) -> int:
    """Check one document within the limits of this process."""
    match arguments:
        case ["--seconds", number, path] if re.fullmatch("[1-9][0-9]{0,6}", number):
            seconds = int(number)
        case [path] if not path.startswith("--"):
            seconds = MOST_SECONDS
        case _:
            print("usage: python -I checker.py [--seconds N] RECORD.json")
            return 8
    limit_process(seconds)
    try:
        code, said = verify_data(read_bytes(path))
    except OSError:
        code, said = 8, [f"The file {shown(path)} cannot be read."]
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # there is an outcome: the limit no longer replaces it
    print("\n".join(re.sub(r"[^ -~]", "?", line) for line in said))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
