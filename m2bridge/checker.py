"""Check a certificate of m2bridge. Standard library only: ``python -I checker.py RECORD.json``.

A certificate states one fact about one network, for example its dimension, and holds everything that is needed to see that it
is true: the network as a program, a point, and arguments. ``docs/certificates.md`` specifies all of it. This file reads the
document strictly, computes everything again with exact integers, and prints what is shown, on what it rests, and which
fields of the record it says nothing about. It ends with one of three outcomes: 0 verified, 7 rejected (something in the
document is false or is not written as the format demands), 8 not known (no certificate, another format, or out of reach).

Reading order: documents, programs, arithmetic (one evaluator over five kinds of numbers), linear algebra, lower bounds,
upper bounds, built-in networks, statements. The few facts of mathematics that are used stand where they are used.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, combinations_with_replacement, pairwise
from math import comb, factorial, gcd, prod
from operator import mul
from pathlib import Path
from typing import Any

Shape = tuple[int, ...]
Numbers = list[Any]

MOST_BYTES = 16 * 2**20
MOST_DIGITS = 4000
MOST_ENTRIES = 4 * 2**20  # of all arrays of a program together
MOST_WORK = 10**10  # multiplications, bounded from shapes before anything is evaluated
MOST_TERMS = 2 * 10**7  # products of terms when polynomials are expanded
RANDOM = random.SystemRandom()


class Rejected(Exception):  # noqa: N818 - a verdict
    """Something in the document is false, or is not written as the format demands."""


class Unknown(Exception):  # noqa: N818 - a verdict
    """The document may be true; this checker cannot tell."""


def need(condition: bool, reason: str) -> None:
    if not condition:
        raise Rejected(reason)


def afford(work: float, most: float = MOST_WORK) -> None:
    if work > most:
        raise Unknown(f"this would take about {work:.0e} operations; this checker stops at {most:.0e}")


# -- documents -------------------------------------------------------------------------------------------


def read_json(text: str) -> Any:
    """The document; keys that occur twice, NaN and endless numbers are refused."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        need(len(found) == len(pairs), "a key occurs twice in one object")
        return found

    def whole(digits: str) -> int:
        need(len(digits) <= MOST_DIGITS, "a number has too many digits")
        return int(digits)

    def constant(name: str) -> Any:
        raise Rejected(f"{name} is not a number")

    try:
        return json.loads(text, object_pairs_hook=table, parse_int=whole, parse_constant=constant)
    except (ValueError, RecursionError):
        raise Rejected("the document is not JSON, or is nested too deeply") from None


def fields(value: Any, what: str, *names: str) -> list[Any]:
    """The values of an object that has exactly these keys."""
    need(
        type(value) is dict and set(value) == set(names),
        f"{what} has the keys {', '.join(names)} and no others",
    )
    return [value[name] for name in names]


def integer(value: Any, low: int, high: int, what: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Rejected(f"{what} is an integer from {shown(low)} to {shown(high)}")
    return value


def listed(value: Any, what: str, length: int | None = None) -> list[Any]:
    need(
        type(value) is list and length in (None, len(value)),
        f"{what} is a list" + f" of {length}" * (length is not None),
    )
    return list(value)


def integers(value: Any, low: int, high: int, what: str, length: int | None = None) -> list[int]:
    return [integer(x, low, high, what) for x in listed(value, what, length)]


def shown(value: Any) -> str:
    """A short text in which no control character survives."""
    text = str(value) if type(value) is not int or abs(value) < 10**30 else "..."
    return re.sub(r"[^ -~]", "?", text if len(text) <= 160 else text[:150] + "...")


def is_prime(n: int) -> bool:
    """Miller and Rabin's test; with these bases it makes no mistake below 3 * 10^23."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % q == 0 for q in bases):
        return n in bases
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(
        x in (1, n - 1) or n - 1 in [pow(x, 2**k, n) for k in range(1, twos)]
        for x in (pow(b, odd, n) for b in bases)
    )


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


def point(value: Any, count: int, low: int, modulus: int, high: int | None = None) -> list[int]:
    """A POINT: integers from `low` to `high`; numbers of a stream are reduced to low .. low + modulus - 1."""
    afford(count, MOST_ENTRIES)
    high = low + modulus - 1 if high is None else high
    if type(value) is dict and set(value) == {"entries"}:
        return integers(value["entries"], -high if low else 0, high, "an entry of a point", count)
    seed, number, fixed = fields(
        value, "a point (unless it has the key entries alone)", "seed", "stream", "fixed"
    )
    seed, number = integer(seed, 0, 2**32 - 1, "a seed"), integer(number, 0, 2**32 - 1, "a stream")
    found = [x % modulus + low for x in stream(seed, number, count)]
    end = 0
    for run in listed(fixed, "fixed"):
        start, values = listed(run, "a run of fixed entries", 2)
        start = integer(start, end, count, "the start of a run")
        values = integers(values, -high if low else 0, high, "a fixed entry")
        end = start + len(values)
        need(bool(values) and end <= count, "a run of fixed entries leaves the point")
        found[start:end] = values
    return found


# -- programs --------------------------------------------------------------------------------------------

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
NATURAL = r"(?:0|[1-9][0-9]{0,9})"
RATIONAL = r"(?:0|-?[1-9][0-9]{0,3998})(?:/[1-9][0-9]{0,3998})?"
SHAPE = rf"\[(?:{NATURAL}(?:,{NATURAL})*)?\]"
PART = rf"{NATURAL}:{NATURAL}:-?{NATURAL}"
WORDS = {  # the words between an operation and its operands, and the number of operands
    "weight": ([NAME, SHAPE], 0),
    "input": ([NAME, SHAPE], 0),
    "add": ([], 2),
    "multiply": ([], 2),
    "scale": ([RATIONAL], 1),
    "power": ([NATURAL], 1),
    "einsum": ([r"[a-z]*(?:,[a-z]*)?->[a-z]*"], None),
    "reshape": ([SHAPE], 1),
    "slice": ([rf"{PART}(?:,{PART})*"], 1),
    "gather": ([SHAPE, rf"{NATURAL}(?:,{NATURAL})*"], 1),
    "concatenate": ([NATURAL], None),
    "softmax": ([NATURAL], 1),
    "exp": ([], 1),
    "reciprocal": ([], 1),
}


@dataclass(slots=True)
class Instruction:
    operation: str
    words: list[Any]  # the constants, read
    operands: list[int]
    shape: Shape


@dataclass
class Program:
    """A network. Weights come first; `flat` numbers their entries, one weight after the other."""

    text: str
    instructions: list[Instruction] = field(default_factory=list)
    vanishing: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def named(self, operation: str) -> dict[str, int]:
        return {i.words[0]: k for k, i in enumerate(self.instructions) if i.operation == operation}

    def size(self, *places: int) -> int:
        return sum(prod(self.instructions[k].shape) for k in places)

    @property
    def parameters(self) -> int:
        return self.size(*self.named("weight").values())

    @property
    def input_size(self) -> int:
        return self.size(*self.named("input").values())

    @property
    def hash(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    @property
    def work(self) -> int:
        """Multiplications of one evaluation, about."""
        return sum(
            prod(lengths_of(self, i).values()) if i.operation == "einsum" else prod(i.shape)
            for i in self.instructions
        )


def read_program(text: Any) -> Program:
    """The program with this canonical text."""
    need(type(text) is str and text.isascii(), "a program is ASCII text")
    lines = text.split("\n")
    afford(len(lines), 10**5)
    need(
        lines[0] == "m2bridge program 1" and lines[-1] == "",
        "a program begins with its header and ends with a line break",
    )
    program, entries = Program(text), 0
    names: list[str] = []
    for line in lines[1:-1]:
        tail = re.fullmatch(rf"(?:vanishing|output ({NAME})) %({NATURAL})", line)
        if tail:
            need(int(tail[2]) < len(program.instructions), "an output is not computed")
            (program.outputs if tail[1] else program.vanishing).append(int(tail[2]))
            need(bool(tail[1]) or not program.outputs, "vanishing polynomials come before outputs")
            names.append("output " + (tail[1] or str(len(names))))
            continue
        need(not names, "instructions come before outputs")
        program.instructions.append(read_instruction(line, program.instructions))
        entries += prod(program.instructions[-1].shape)
        afford(entries, MOST_ENTRIES)
    kinds = [{"weight": 0, "input": 1}.get(i.operation, 2) for i in program.instructions]
    need(kinds == sorted(kinds) and 0 in kinds, "weights come first, then inputs, then the computation")
    names += [i.words[0] for i in program.instructions if i.operation in ("weight", "input")]
    need(len(set(names)) == len(names), "a name is used twice")
    need(bool(program.outputs), "a program has an output")
    seen = depends(program, set(program.named("input").values()))
    need(not any(seen[k] for k in program.vanishing), "a vanishing polynomial has inputs in it")
    return program


def depends(program: Program, places: set[int]) -> list[bool]:
    """For each instruction, whether its value depends on one of these places."""
    found: list[bool] = []
    for k, i in enumerate(program.instructions):
        found.append(k in places or any(found[j] for j in i.operands))
    return found


def read_instruction(line: str, before: list[Instruction]) -> Instruction:
    words = line.split(" ")
    what = f"instruction {len(before)}"
    need(len(words) > 2 and words[:2] == [f"%{len(before)}", "="], f"{what} is missing or has another number")
    operation, words = words[2], words[3:]
    if operation == "constant":
        need(len(words) > 1 and bool(re.fullmatch(SHAPE, words[0])), f"{what} is not a constant")
        shape, values = natural_list(words[0][1:-1]), [rational(word) for word in words[1:]]
        need(prod(shape) == len(values), f"{what} has another number of entries than its shape")
        return Instruction(operation, values, [], checked(shape, what))
    need(operation in WORDS, f"{what} is not one that the format knows")
    patterns, count = WORDS[operation]
    own, operands = words[: len(patterns)], words[len(patterns) :]
    need(
        len(own) == len(patterns) and all(map(re.fullmatch, patterns, own)),
        f"{what}: {operation} is not written like this",
    )
    need(
        all(re.fullmatch(f"%{NATURAL}", word) for word in operands),
        f"{what}: an operand is not written like this",
    )
    places = [int(word[1:]) for word in operands]
    need(all(k < len(before) for k in places), f"{what}: an operand comes later")
    need(count is None or len(places) == count, f"{what}: {operation} has {count} operands")
    shapes = [before[k].shape for k in places]
    constants, shape = typed(operation, own, shapes, what)
    return Instruction(operation, constants, places, checked(shape, what))


def checked(shape: Shape, what: str) -> Shape:
    need(all(shape) and len(shape) <= 20, f"{what} has an empty axis or too many axes")
    afford(prod(shape), MOST_ENTRIES)
    return shape


def natural_list(text: str) -> Shape:
    return tuple(int(n) for n in text.split(",")) if text else ()


def rational(text: str) -> Fraction | int:
    need(bool(re.fullmatch(RATIONAL, text)), "a rational number is not written like this")
    above, _, below = text.partition("/")
    need(
        not below or (gcd(int(above), int(below)) == 1 and below != "1"), "a fraction is not in lowest terms"
    )
    return Fraction(int(above), int(below)) if below else int(above)


def typed(operation: str, own: list[str], shapes: list[Shape], what: str) -> tuple[list[Any], Shape]:
    """The constants of an instruction and the shape of its result."""
    first = shapes[0] if shapes else ()
    if operation in ("weight", "input"):
        return [own[0]], natural_list(own[1][1:-1])
    if operation in ("add", "multiply"):
        pairs = list(zip(*(padded(s, max(map(len, shapes)), 1) for s in shapes), strict=True))
        need(all(m == n or 1 in (m, n) for m, n in pairs), f"{what}: the shapes do not fit together")
        return [], tuple(map(max, pairs))
    if operation == "scale":
        return [rational(own[0])], first
    if operation == "power":
        need(2 <= int(own[0]) <= 10**6, f"{what}: the exponent is out of range")
        return [int(own[0])], first
    if operation == "einsum":
        left, _, result = own[0].partition("->")
        terms = left.split(",")
        need(len(terms) == len(shapes) and all(len(set(t)) == len(t) == len(s) for t, s in zip(terms, shapes, strict=True)),
             f"{what}: the terms do not fit the operands")  # fmt: skip
        order = "".join(dict.fromkeys("".join(terms)))
        need("abcdefghijklmnopqrstuvwxyz".startswith(order), f"{what}: letters do not come in order")
        need(
            len(set(result)) == len(result) and set(result) <= set(order), f"{what}: the result does not fit"
        )
        lengths: dict[str, int] = {}
        for letter, n in (
            (c, n) for t, s in zip(terms, shapes, strict=True) for c, n in zip(t, s, strict=True)
        ):
            need(lengths.setdefault(letter, n) == n, f"{what}: a letter has two lengths")
        return [*(*terms, "")[:2], result], tuple(lengths[c] for c in result)
    if operation == "reshape":
        shape = natural_list(own[0][1:-1])
        need(prod(shape) == prod(first), f"{what}: a reshaped array has as many entries as before")
        return [], shape
    if operation == "slice":
        parts = [tuple(map(int, part.split(":"))) for part in own[0].split(",")]
        need(len(parts) == len(first), f"{what}: there is a part for each axis")
        for (start, count, step), n in zip(parts, first, strict=True):
            inside = 0 <= start < n and 0 <= start + (count - 1) * step < n
            need(
                inside and count > 0 and (step == 1 if count == 1 else step != 0),
                f"{what}: a slice leaves the array",
            )
        return parts, tuple(part[1] for part in parts)
    if operation == "gather":
        shape, places = natural_list(own[0][1:-1]), natural_list(own[1])
        need(len(places) == prod(shape) and max(places) < prod(first), f"{what}: the places do not fit")
        return list(places), shape
    if operation in ("concatenate", "softmax"):
        axis = int(own[0])
        need(
            axis < len(first) and (operation == "softmax" or len(shapes) > 1),
            f"{what}: no such axis, or too few operands",
        )
        need(
            len({(*s[:axis], 0, *s[axis + 1 :]) for s in shapes}) == 1,
            f"{what}: the other axes have other lengths",
        )
        return [axis], (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])
    return [], first


def padded(values: Sequence[int], length: int, filler: int) -> list[int]:
    return [filler] * (length - len(values)) + list(values)


def lengths_of(program: Program, item: Instruction) -> dict[str, int]:
    """The length of each letter of an einsum."""
    shapes = (program.instructions[k].shape for k in item.operands)
    return {c: n for t, s in zip(item.words, shapes, strict=False) for c, n in zip(t, s, strict=True)}


# -- arithmetic: kinds of numbers -------------------------------------------------------------------------


class Residues:
    """Integers modulo a prime."""

    def __init__(self, p: int) -> None:
        self.p = p

    def number(self, q: Fraction | int) -> int:
        need(q.denominator % self.p != 0, "the prime divides a denominator of the program")
        return int(q.numerator * pow(q.denominator, -1, self.p) % self.p)

    def add(self, x: int, y: int) -> int:
        return (x + y) % self.p

    def multiply(self, x: int, y: int) -> int:
        return x * y % self.p

    def dot(self, xs: list[int], ys: list[int]) -> int:
        return int(sum(map(mul, xs, ys)) % self.p)

    def power(self, x: int, n: int) -> int:
        return pow(x, n, self.p)


class Ring:
    """What other kinds of numbers share: sums and powers made of `add` and `multiply`."""

    add: Callable[[Any, Any], Any]
    multiply: Callable[[Any, Any], Any]
    number: Callable[[Fraction | int], Any]

    def dot(self, xs: Numbers, ys: Numbers) -> Any:
        total = self.number(0)
        for x, y in zip(xs, ys, strict=True):
            total = self.add(total, self.multiply(x, y))
        return total

    def power(self, x: Any, n: int) -> Any:
        result = self.number(1)
        for bit in f"{n:b}":
            result = self.multiply(result, result)
            result = self.multiply(result, x) if bit == "1" else result
        return result


class Polynomials(Ring):
    """Polynomials with rational coefficients: {exponents, 32 bits for each variable: coefficient}. The top bit of
    each exponent is a guard: two exponents below it cannot flow over, and a product that sets it is refused.
    """

    def __init__(self, most: int = MOST_TERMS) -> None:
        self.terms, self.most, self.guards, self.count = 0, most, 1 << 31, 0

    def number(self, q: Fraction | int) -> dict[int, Any]:
        return {0: q} if q else {}

    def variable(self) -> dict[int, Any]:
        self.count += 1
        self.guards |= 1 << 32 * self.count - 1
        return {1 << 32 * (self.count - 1): 1}

    def variables(self, count: int) -> list[dict[int, Any]]:
        return [self.variable() for _ in range(count)]

    def add(self, x: dict[int, Any], y: dict[int, Any]) -> dict[int, Any]:
        found = dict(x)
        for e, c in y.items():
            found[e] = found.get(e, 0) + c
            if not found[e]:
                del found[e]
        return found

    def multiply(self, x: dict[int, Any], y: dict[int, Any]) -> dict[int, Any]:
        self.terms += len(x) * len(y) + 1
        afford(self.terms, self.most)
        found: dict[int, Any] = {}
        for e, c in x.items():
            for f, d in y.items():
                found[e + f] = found.get(e + f, 0) + c * d
        for e, c in found.items():
            afford(c.numerator.bit_length() + c.denominator.bit_length(), 2**16)
            if e & self.guards:
                raise Unknown("a polynomial has too high a degree")
        return {e: c for e, c in found.items() if c}


class Rationals(Ring):
    """Exact rational numbers."""

    def number(self, q: Fraction | int) -> Fraction | int:
        return q

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def multiply(self, x: Any, y: Any) -> Any:
        return x * y


class Degrees(Ring):
    """Sets of degrees that can occur, as bits of an integer; zero is the empty set."""

    def number(self, q: Fraction | int) -> int:
        return int(q != 0)

    def add(self, x: int, y: int) -> int:
        return x | y

    def multiply(self, x: int, y: int) -> int:
        found = 0
        for k in range(y.bit_length()):
            found |= x << k if y >> k & 1 else 0
        return found


class Symbols(Residues):
    """Integers modulo a random prime, with exp replaced by a random function: what is equal here is equal as an expression."""

    def __init__(self) -> None:
        super().__init__(next(n for n in iter(lambda: RANDOM.randrange(2**61, 2**63), 0) if is_prime(n)))
        self.key = RANDOM.randbytes(32)

    def exp(self, x: int) -> int:
        return int.from_bytes(sha256(self.key + x.to_bytes(8, "little")).digest(), "little") % self.p

    def reciprocal(self, x: int) -> int:
        return pow(x, -1, self.p)

    def softmax(self, xs: list[int]) -> list[int]:
        powers = [self.exp(x) for x in xs]
        total = self.reciprocal(sum(powers) % self.p)
        return [x * total % self.p for x in powers]


Ball = tuple[int, int]


class Balls(Ring):
    """Real numbers (m, r): all within r / 2^bits of m / 2^bits. Every operation rounds outward."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def number(self, q: Fraction | int) -> Ball:
        return (q.numerator << self.bits) // q.denominator, int(q.denominator != 1)

    def add(self, x: Ball, y: Ball) -> Ball:
        return x[0] + y[0], x[1] + y[1]

    def multiply(self, x: Ball, y: Ball) -> Ball:
        return self.dot([x], [y])

    def dot(self, xs: list[Ball], ys: list[Ball]) -> Ball:
        middle = radius = 0
        for (a, r), (b, s) in zip(xs, ys, strict=True):
            middle += a * b
            radius += abs(a) * s + r * (abs(b) + s)
        need(middle.bit_length() < 2**14, "a number of the point's orbit is too large")
        return middle >> self.bits, (
            radius >> self.bits
        ) + 2  # both shifts round down: by less than 2 together

    def exp(self, x: Ball) -> Ball:
        """The series of x / 2^k, each term wrong by less than 3 units of the last place; then k squarings."""
        (m, r), one = x, 1 << self.bits
        need(r <= one and m < one << 10, "an exponential is too large or too uncertain")
        if m < -self.bits * one:
            return 0, 1  # e^(1 - bits) < 2^-bits
        k = 8 + max(0, m.bit_length() - self.bits)
        bits = self.bits + 2 * k + 24
        small = m << bits - self.bits - k  # |small| < 2^(bits - 8)
        term = total = 1 << bits
        n = 0
        while term:
            n += 1
            term = (term * small >> bits) // n
            total += term
        error = 3 * n + 8
        for _ in range(k):
            error = (2 * abs(total) * error + error * error >> bits) + 2
            total = total * total >> bits
        m, spread = total >> bits - self.bits, (error >> bits - self.bits) + 2
        return m, spread + ((m + spread) * 2 * r >> self.bits) + 1  # e^r - 1 <= 2 r for r <= 1

    def reciprocal(self, x: Ball) -> Ball:
        (m, r), square = x, 1 << 2 * self.bits
        need(abs(m) > r, "a number that is divided by may be zero")
        return square // m, r * square // (abs(m) * (abs(m) - r)) + 2

    def softmax(self, xs: list[Ball]) -> list[Ball]:
        top = max(m for m, _ in xs)  # subtracting one number from all changes nothing
        powers = [self.exp((m - top, r)) for m, r in xs]
        total = self.reciprocal((sum(m for m, _ in powers), sum(r for _, r in powers)))
        return [self.multiply(x, total) for x in powers]


# -- arithmetic: one evaluator, forwards and backwards ----------------------------------------------------


def offsets(lengths: Sequence[int], steps: Sequence[int]) -> list[int]:
    """Flat places of a grid: the sums of index times step, last axis fastest."""
    found = [0]
    for n, step in zip(lengths, steps, strict=True):
        found = [start + i * step for start in found for i in range(n)]
    return found


def row_major(shape: Sequence[int]) -> list[int]:
    return [prod(shape[k + 1 :]) for k in range(len(shape))]


class Contraction:
    """result[kept] = sum over summed letters of x[...] y[...]; a letter that an array lacks has step 0."""

    def __init__(self, lengths: dict[str, int], x: str, y: str, kept: str) -> None:
        summed = [c for c in lengths if c not in kept and (c in x or c in y)]
        self.sides = []
        for term in (x, y):
            step = dict(zip(term, row_major([lengths[c] for c in term]), strict=True))
            outer = offsets([lengths[c] for c in kept], [step.get(c, 0) for c in kept])
            self.sides.append(
                (outer, offsets([lengths[c] for c in summed], [step.get(c, 0) for c in summed]))
            )

    def __call__(self, ring: Any, x: Numbers, y: Numbers) -> Numbers:
        tables = []
        for values, (outer, inner) in zip((x, y), self.sides, strict=True):
            rows = {o: [values[o + i] for i in inner] for o in set(outer)}
            tables.append([rows[o] for o in outer])
        return list(map(ring.dot, *tables))


class Evaluator:
    """A program over one kind of numbers: values of all instructions, and derivatives of linear forms of them."""

    def __init__(self, program: Program, ring: Any) -> None:
        self.program, self.ring = program, ring
        self.plans = [self.plan(i) for i in program.instructions]

    def plan(self, item: Instruction) -> Any:
        """What is the same at every point: flat places that an instruction reads."""
        shapes = [self.program.instructions[k].shape for k in item.operands]
        operation, shape = item.operation, item.shape
        if operation in ("add", "multiply"):  # a repeated axis has step 0
            steps = [[0 if n == 1 else s for n, s in zip(sh, row_major(sh), strict=True)] for sh in shapes]
            return [offsets(shape, padded(step, len(shape), 0)) for step in steps]
        if operation == "einsum":
            lengths = lengths_of(self.program, item)
            x, y, kept = item.words
            return (
                Contraction(lengths, x, y, kept),
                Contraction(lengths, kept, y, x),
                Contraction(lengths, kept, x, y),
            )
        if operation == "slice":
            first = sum(part[0] * s for part, s in zip(item.words, row_major(shapes[0]), strict=True))
            return [
                first + o
                for o in offsets(
                    shape, [p[2] * s for p, s in zip(item.words, row_major(shapes[0]), strict=True)]
                )
            ]
        if operation == "gather":
            return item.words
        if operation == "reshape":
            return range(prod(shape))
        if operation in ("concatenate", "softmax"):
            axis = item.words[0]
            inner = prod(shape[axis + 1 :])
            if operation == "softmax":
                lines = offsets(
                    shape[:axis] + shape[axis + 1 :], row_major(shape)[:axis] + row_major(shape)[axis + 1 :]
                )
                return [[o + i * inner for i in range(shape[axis])] for o in lines]
            starts = [sum(prod(s) for s in shapes[:k]) for k in range(len(shapes))]
            blocks = [(start, s[axis] * inner) for start, s in zip(starts, shapes, strict=True)]
            return [a + o * n + i for o in range(prod(shape[:axis])) for a, n in blocks for i in range(n)]
        return None

    def values(self, weights: Numbers, inputs: Numbers) -> list[Numbers]:
        """The flat values of all instructions, for flat weights and inputs."""
        given, at = [*weights, *inputs], 0
        found: list[Numbers] = []
        for k, item in enumerate(self.program.instructions):
            if item.operation in ("weight", "input"):
                at, start = at + prod(item.shape), at
                found.append(given[start:at])
            else:
                found.append(self.step(k, [found[j] for j in item.operands]))
        need(at == len(given), "a point has another number of entries than the program")
        return found

    def step(self, k: int, xs: list[Numbers]) -> Numbers:
        """The flat value of one instruction, for those of its operands."""
        item, plan, ring = self.program.instructions[k], self.plans[k], self.ring
        operation = item.operation
        if operation == "constant":
            return [ring.number(q) for q in item.words]
        if operation in ("add", "multiply"):
            combine = ring.add if operation == "add" else ring.multiply
            return [combine(xs[0][i], xs[1][j]) for i, j in zip(*plan, strict=True)]
        if operation == "scale":
            factor = ring.number(item.words[0])
            return [ring.multiply(factor, x) for x in xs[0]]
        if operation == "power":
            return [ring.power(x, item.words[0]) for x in xs[0]]
        if operation == "einsum":
            return list(plan[0](ring, xs[0], xs[1] if len(xs) == 2 else [ring.number(1)]))
        if operation in ("slice", "gather", "reshape"):
            return [xs[0][i] for i in plan]
        if operation == "concatenate":
            joined = [x for part in xs for x in part]
            return [joined[i] for i in plan]
        if not hasattr(ring, operation):
            raise Unknown(f"a program with {operation} is not polynomial")
        if operation == "softmax":
            value = [None] * len(xs[0])
            for line in plan:
                for i, x in zip(line, ring.softmax([xs[0][i] for i in line]), strict=True):
                    value[i] = x
            return value
        return [getattr(ring, operation)(x) for x in xs[0]]

    def slope(self, k: int, value: Callable[[int], Numbers], ts: list[Numbers | None]) -> Numbers:
        """How the value of instruction k moves when its operands move by `ts`; only the values that matter are asked for."""
        item, ring = self.program.instructions[k], self.ring
        operation, minus = item.operation, ring.number(-1)
        if operation in ("multiply", "einsum") and len(ts) == 2:
            parts = [
                self.step(k, [t, value(item.operands[1])] if side == 0 else [value(item.operands[0]), t])
                for side, t in enumerate(ts)
                if t is not None
            ]
            return parts[0] if len(parts) == 1 else list(map(ring.add, *parts))
        if operation in ("power", "exp", "reciprocal", "softmax"):
            (t,) = ts
            assert t is not None
            if operation == "power":
                n, factor = item.words[0], ring.number(item.words[0])
                rates = [ring.multiply(factor, ring.power(x, n - 1)) for x in value(item.operands[0])]
                return list(map(ring.multiply, rates, t))
            y = value(k)
            if operation == "exp":
                return list(map(ring.multiply, y, t))
            if operation == "reciprocal":
                return [
                    ring.multiply(minus, ring.multiply(u, ring.multiply(v, v)))
                    for u, v in zip(t, y, strict=True)
                ]
            return self.pulled_back(
                item, self.plans[k], 0, t, [t], y
            )  # the derivative of softmax is symmetric
        sizes = [self.program.size(j) for j in item.operands]
        return self.step(
            k, [[ring.number(0)] * n if t is None else t for t, n in zip(ts, sizes, strict=True)]
        )

    def gradient(
        self, values: list[Numbers], seeds: dict[int, Numbers], wanted: list[bool]
    ) -> dict[int, Numbers]:
        """Derivatives, by each weight, of the sum of seeds times values; places not wanted are passed over."""
        ring, found = self.ring, dict(seeds)
        for k in reversed(range(max(seeds) + 1)):
            item, plan = self.program.instructions[k], self.plans[k]
            if k not in found or not item.operands or not wanted[k]:
                continue
            g = found.pop(k)
            xs = [values[j] for j in item.operands]
            for side, j in enumerate(item.operands):
                if wanted[j]:
                    part = self.pulled_back(item, plan, side, g, xs, values[k])
                    found[j] = list(map(ring.add, found[j], part)) if j in found else part
        return found

    def pulled_back(
        self, item: Instruction, plan: Any, side: int, g: Numbers, xs: list[Numbers], y: Numbers
    ) -> Numbers:
        ring, operation = self.ring, item.operation
        if operation == "einsum":
            other = xs[1 - side] if len(xs) == 2 else [ring.number(1)]
            return list(plan[1 + side](ring, g, other))
        if operation == "scale":
            return [ring.multiply(ring.number(item.words[0]), c) for c in g]
        if operation == "power":
            n = item.words[0]
            return [
                ring.multiply(c, ring.multiply(ring.number(n), ring.power(x, n - 1)))
                for c, x in zip(g, xs[0], strict=True)
            ]
        if operation == "exp":
            return list(map(ring.multiply, g, y))
        if operation == "reciprocal":
            return [
                ring.multiply(c, ring.multiply(ring.number(-1), ring.multiply(v, v)))
                for c, v in zip(g, y, strict=True)
            ]
        found = [ring.number(0)] * sum(
            len(x) for x in (xs if operation == "concatenate" else xs[side : side + 1])
        )
        if operation == "softmax":
            for line in plan:
                mean = ring.multiply(ring.number(-1), ring.dot([y[i] for i in line], [g[i] for i in line]))
                for i in line:
                    found[i] = ring.multiply(y[i], ring.add(g[i], mean))
            return found
        if operation == "multiply":
            g = [ring.multiply(c, xs[1 - side][i]) for c, i in zip(g, plan[1 - side], strict=True)]
        for c, i in zip(g, plan[side] if operation in ("add", "multiply") else plan, strict=True):
            found[i] = ring.add(found[i], c)
        if operation == "concatenate":
            start = sum(map(len, xs[:side]))
            return found[start : start + len(xs[side])]
        return found


# -- linear algebra --------------------------------------------------------------------------------------


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
    afford(len(rows) ** 2 * len(rows[0]) / 8 if rows else 0)
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
        found = users[waiting.pop()]
        if len(found) == 1:
            v = next(iter(found))
            aside.add(v)
            for place in vectors[v]:
                users[place].discard(v)
                if len(users[place]) == 1:
                    waiting.append(place)
    rest = [vector for v, vector in enumerate(vectors) if v not in aside]
    columns = {place: k for k, place in enumerate({place: 0 for vector in rest for place in vector})}
    afford(len(rest) ** 2 * len(columns) / 8)
    echelon, total = Echelon(p, len(columns)), len(aside)
    for vector in rest:
        row = [0] * len(columns)
        for place, x in vector.items():
            row[columns[place]] = x
        total += echelon.add(row)
    return total


def kernel(matrix: list[list[int]], p: int) -> list[list[int]]:
    """A basis of the vectors v with matrix v = 0: combinations of columns, read off an elimination beside the identity."""
    columns, height = list(zip(*matrix, strict=True)), len(matrix)
    echelon = Echelon(p, height + len(columns), height)
    found = []
    for k, column in enumerate(columns):
        row = [*column, *(int(i == k) for i in range(len(columns)))]
        left = echelon.reduced(row)
        if any(left[:height]):
            echelon.add(row)
        else:
            found.append(left[height:])
    return found


def independent_columns(table: list[list[Ball]], bits: int) -> None:
    """Verify that every matrix in the enclosure has independent columns. A float elimination proposes rows and an approximate
    inverse C of theirs; integers then show that the row sums of |1 - C T| are below 1, so that C T is not singular.
    """
    width = len(table[0]) if table else 0
    afford(width * width * (len(table) + width))
    work = [[m / (1 << bits) for m, _ in row] for row in table]
    chosen: list[int] = []
    for _ in range(width):  # columns leave at the left, those of the inverse come in at the right
        free = set(range(len(work))) - set(chosen)
        scale = {i: max(map(abs, work[i][: width - len(chosen)])) or 1.0 for i in free}
        top = max(free, key=lambda i: abs(work[i][0]) / scale[i], default=None)
        need(top is not None and work[top][0] != 0, "the enclosure is not seen to be of full rank")
        assert top is not None
        pivot = work[top][0]
        line = [x / pivot for x in [*work[top][1:], 1.0]]
        chosen.append(top)
        for i, row in enumerate(work):
            factor = row[0]
            work[i] = (
                line if i == top else [x - factor * y for x, y in zip([*row[1:], 0.0], line, strict=True)]
            )
    spread = [sum(r for _, r in table[i]) for i in chosen]
    columns = [[table[i][c][0] for i in chosen] for c in range(width)]
    one = 1 << bits + 64
    for k, i in enumerate(chosen):
        line_c = [round(x * 2.0**64) for x in work[i]]
        error = sum(
            abs((one if c == k else 0) - sum(map(mul, line_c, column))) for c, column in enumerate(columns)
        )
        need(
            error + sum(abs(x) * r for x, r in zip(line_c, spread, strict=True)) < one,
            "the enclosure is not seen to be of full rank",
        )


# -- lower bounds ----------------------------------------------------------------------------------------


def jacobian(run: Evaluator, weights: Numbers, samples: list[Numbers], rows: list[tuple[int, dict[int, Numbers]]],
             columns: list[int]) -> list[Numbers]:  # fmt: skip
    """Derivatives by the flat weights in `columns`; a row is a sample and the seeds of a linear form of values there."""
    program, zero = run.program, run.ring.number(0)
    spans, start = [], 0
    for place in program.named("weight").values():
        spans.append((place, start, start + program.size(place)))
        start = spans[-1][2]
    homes = [next((place, c - a) for place, a, b in spans if a <= c < b) for c in columns]
    wanted = depends(program, {place for place, _ in homes})
    used = {sample for sample, _ in rows}
    afford(program.work * (len(used) + 2 * len(rows)))
    values = {n: run.values(weights, samples[n]) for n in sorted(used)}
    table = []
    for n, seeds in rows:
        found = run.gradient(values[n], seeds, wanted)
        table.append([found[place][i] if place in found else zero for place, i in homes])
    return table


def entry(program: Program, ring: Any, places: list[int], index: int) -> dict[int, Numbers]:
    """The linear form that is one entry, by flat index, of the values at these places."""
    for k in places:
        if index < program.size(k):
            return {k: [ring.number(int(i == index)) for i in range(program.size(k))]}
        index -= program.size(k)
    raise Rejected("there is no such entry")


def read_rows(value: Any, samples: int, entries: int) -> list[tuple[int, int]]:
    rows = [listed(row, "a row", 2) for row in listed(value, "rows")]
    return [
        (integer(n, 0, samples - 1, "a sample"), integer(e, 0, entries - 1, "a place in a row"))
        for n, e in rows
    ]


def read_points(
    program: Program, argument: dict[str, Any], p: int, bits: int = 0
) -> tuple[list[int], list[list[int]]]:
    """The weights and the inputs of an argument."""
    size = program.input_size
    count = integer(argument["samples"], 1, 10**6 if size else 1, "the number of samples")
    low, modulus, high = (-(1 << bits - 1), 1 << bits, 1 << bits + 32) if bits else (0, p, p - 1)
    weights = point(argument["weights"], program.parameters, low, modulus, high)
    flat = point(argument["inputs"], count * size, low, modulus, high)
    return weights, [flat[n * size : (n + 1) * size] for n in range(count)]


def last_layer(program: Program, name: Any) -> tuple[int, int, int, int]:
    """For a program with the one output V Z: the places of V and Z, and the numbers of rows of V and of columns of Z."""
    need(
        type(name) is str and name in program.named("weight"), "the last layer is not a weight of the program"
    )
    place, item = program.named("weight")[name], program.instructions[program.outputs[0]]
    form = (
        item.operation == "einsum"
        and item.words in (["ab", "bc", "ac"], ["ab", "b", "a"])
        and item.operands[0] == place
    )
    uses = (
        sum(i.operands.count(place) for i in program.instructions)
        + program.outputs.count(place)
        + program.vanishing.count(place)
    )
    need(
        form and uses == 1 and len(program.outputs) == 1,
        "the output is not V Z with a weight V that is used only there",
    )
    return place, item.operands[1], item.shape[0], (*item.shape, 1)[1]


def check_lower(program: Program, argument: Any) -> int:
    """The dimension that an argument shows to be reached."""
    kind = argument.get("kind") if type(argument) is dict else None
    keys = ("kind", "prime", "weights", "samples", "inputs", "rows", "columns")
    if kind == "minor":
        fields(argument, "a minor", *keys)
        return minor(program, argument)
    if kind == "last layer":
        fields(argument, "a last layer", *keys, "layer", "tokens")
        return minor_of_last_layer(program, argument)
    if kind == "intervals":
        fields(argument, "an argument by intervals", "bits", *keys[:1], *keys[2:], "layer")
        return minor_by_intervals(program, argument)
    raise Rejected("the lower bound is of no kind that the format knows")


def minor(program: Program, argument: dict[str, Any]) -> int:
    """The rank of the Jacobian modulo p at an integer point is at most the generic rank. Vanishing polynomials whose own rows
    are independent at a zero modulo p have a zero over the p-adic integers there (Hensel), and the others are counted.
    """
    p = prime(argument["prime"])
    weights, samples = read_points(program, argument, p)
    columns = integers(argument["columns"], 0, program.parameters - 1, "a column")
    rows = read_rows(argument["rows"], len(samples), program.size(*program.outputs))
    run = Evaluator(program, Residues(p))
    conditions = program.size(*program.vanishing)
    if conditions:
        values = run.values(weights, samples[0])
        need(not any(x for k in program.vanishing for x in values[k]), "the point is not on the source")
    need(len(columns) == len(rows) + conditions, "a minor has as many rows as columns")
    forms = [(0, entry(program, run.ring, program.vanishing, e)) for e in range(conditions)]
    forms += [(n, entry(program, run.ring, program.outputs, e)) for n, e in rows]
    table = jacobian(run, weights, samples, forms, columns)
    need(rank(table, p) == len(columns), f"the minor is zero modulo {p}")
    return len(rows)


def tokens_of(values: Any, count: int) -> list[int]:
    tokens = integers(values, 0, count - 1, "a token")
    need(len(set(tokens)) == len(tokens), "a token is listed twice")
    return tokens


def minor_of_last_layer(program: Program, argument: dict[str, Any]) -> int:
    """Output row r at a token is V[r] z. By V alone the rows (r, token) with independent tokens z have full rank; where
    z = sum c_k z_k, row (r, z) minus sum c_k rows (r, z_k) is zero in the columns of V, so that the rest adds up.
    """
    p = prime(argument["prime"])
    v, z, height, t = last_layer(program, argument["layer"])
    need(not program.vanishing, "a last layer is not known for weights that satisfy equations")
    weights, samples = read_points(program, argument, p)
    tokens = tokens_of(argument["tokens"], len(samples) * t)
    rows = read_rows(argument["rows"], height, len(samples) * t)
    columns = integers(argument["columns"], 0, program.parameters - 1, "a column")
    before = sum(program.size(k) for k in program.named("weight").values() if k < v)
    need(not any(before <= c < before + program.size(v) for c in columns), "a column is in the last layer")
    need(len(rows) == len(columns), "a minor has as many rows as columns")
    need(not {token for _, token in rows} & set(tokens), "a row's token is one of the independent ones")
    run, width = Evaluator(program, Residues(p)), program.size(z) // t
    need(width >= len(tokens), "there are too many tokens to be independent")
    used = {0} | {r for r, _ in rows}
    pairs = [*((r, token) for r in used for token in tokens), *rows]
    afford(program.work * len({token // t for _, token in pairs}))
    at = {n: run.values(weights, samples[n])[z] for n in {token // t for _, token in pairs}}
    matrix = weights[before : before + program.size(v)]

    def form(r: int, token: int) -> tuple[int, dict[int, Numbers]]:
        seeds = [0] * (width * t)
        seeds[token % t :: t] = matrix[r * width : (r + 1) * width]
        return token // t, {z: seeds}

    table = jacobian(run, weights, samples, [form(*pair) for pair in pairs], columns)
    full = {(r, x): at[x // t][x % t :: t] + row for (r, x), row in zip(pairs, table, strict=True)}
    left, echelons = [], [Echelon(p, width + len(columns), width) for _ in range(height)]
    for r in used:
        need(
            all(echelons[r].add(full[r, token]) for token in tokens),
            "the tokens are not independent modulo p",
        )
    for r, token in rows:
        rest = echelons[r].reduced(full[r, token])
        need(not any(rest[:width]), "a token is no combination of the independent ones")
        left.append(rest[width:])
    need(rank(left, p) == len(columns), f"the minor is zero modulo {p}")
    return height * len(tokens) + len(columns)


def minor_by_intervals(program: Program, argument: dict[str, Any]) -> int:
    """A minor that is not zero at one real point shows the generic rank of an analytic map. With `layer`, some rows of V are
    seen by their own outputs only: with independent tokens they add their number times that of the tokens.
    """
    need(not program.vanishing, "intervals are not known for weights that satisfy equations")
    bits = integer(argument["bits"], 1, 256, "bits")
    weights, samples = read_points(program, argument, 0, bits)
    columns = integers(argument["columns"], 0, program.parameters - 1, "a column")
    rows = read_rows(argument["rows"], len(samples), program.size(*program.outputs))
    need(len(columns) == len(rows), "a minor has as many rows as columns")
    added, tokens, z, t = 0, [], 0, 1
    if argument["layer"] is not None:
        name, own, listed_tokens = fields(argument["layer"], "a layer", "weight", "rows", "tokens")
        v, z, height, t = last_layer(program, name)
        own = set(integers(own, 0, height - 1, "a row of the last layer"))
        need(len(own) == len(argument["layer"]["rows"]), "a row of the last layer is listed twice")
        tokens = tokens_of(listed_tokens, len(samples) * t)
        width, before = (
            program.size(z) // t,
            sum(program.size(k) for k in program.named("weight").values() if k < v),
        )
        need(not any(e // t in own for _, e in rows), "a row is an output of the last layer's own rows")
        need(
            not any(before + r * width <= c < before + (r + 1) * width for c in columns for r in own),
            "a column is in those rows",
        )
        added = len(own) * len(tokens)
    for precision in (bits + 96, 2 * bits + 256, 2 * bits + 768):
        run = Evaluator(program, Balls(precision))
        real = [[(x << precision - bits, 0) for x in xs] for xs in (weights, *samples)]
        try:
            if tokens:
                afford(program.work * len(tokens))
                at = {n: run.values(real[0], real[1 + n])[z] for n in {x // t for x in tokens}}
                independent_columns(
                    [list(line) for line in zip(*(at[x // t][x % t :: t] for x in tokens), strict=True)],
                    precision,
                )
            if columns:
                forms = [(n, entry(program, run.ring, program.outputs, e)) for n, e in rows]
                table = jacobian(run, real[0], real[1:], forms, columns)
                independent_columns(table, precision)
            return len(columns) + added
        except Rejected as reason:
            last = reason
    raise last


# -- upper bounds ----------------------------------------------------------------------------------------


def check_upper(program: Program, argument: Any, network: Network | None) -> int:
    """The dimension that an argument shows not to be exceeded."""
    kind = argument.get("kind") if type(argument) is dict else None
    simple = {"parameters": parameters_bound, "coordinates": coordinates_bound, "matrix": matrix_bound}
    if kind in simple:
        fields(argument, f"a bound by {kind}", "kind")
        return simple[kind](program)
    if kind in ("virtual", "layers"):
        fields(argument, f"a bound by {kind}", "kind")
        need(network is not None, f"a bound by {kind} rests on a spec, and there is none that is known")
        assert network is not None
        return virtual_bound(network) if kind == "virtual" else layers_bound(network)
    if kind in ("symmetries", "fields"):
        keys = ("prime", "weights", "groups", *(["fields"] if kind == "fields" else []))
        _, p, weights, *symmetries = fields(argument, f"a bound by {kind}", "kind", *keys)
        p = prime(p)
        at = point(weights, program.parameters, 0, p)
        return program.parameters - sparse_rank(symmetry_vectors(program, at, p, *symmetries), p)
    if kind == "composition":
        return composition_bound(program, argument)
    if kind == "flattening":
        return flattening_bound(program, argument)
    if kind == "equations":
        _, equations, p, weights = fields(
            argument, "a bound by equations", "kind", "equations", "prime", "weights"
        )
        p = prime(p)
        polynomials = check_equations(program, equations)
        return equations_bound(program, polynomials, point(weights, program.parameters, 0, p), p)
    raise Rejected("the upper bound is of no kind that the format knows")


def parameters_bound(program: Program) -> int:
    return program.parameters


def highest_degree(program: Program, analytic: bool = False) -> int:
    """A bound of the degrees of all values, in weights and inputs together (and in exponentials, where these are allowed)."""
    found: list[int] = []
    for item in program.instructions:
        parts = [found[k] for k in item.operands] or [int(item.operation != "constant")]
        factor = item.words[0] if item.operation == "power" else 1
        found.append(factor * (sum(parts) if item.operation in ("multiply", "einsum") else max(parts)))
        if item.operation in ("softmax", "exp", "reciprocal"):
            found[-1] *= prod(item.shape)
            if not analytic:
                raise Unknown(f"a program with {item.operation} is not polynomial")
    return max(found)


def coordinates_bound(program: Program) -> int:
    """Without inputs the number of outputs; with inputs, for each output the monomials of degrees that can occur."""
    if not program.input_size:
        return program.size(*program.outputs)
    afford(highest_degree(program), 10**4)
    afford(program.work * highest_degree(program), MOST_WORK / 100)
    values = Evaluator(program, Degrees()).values([1] * program.parameters, [2] * program.input_size)
    n = program.input_size
    sets = [mask for place in program.outputs for mask in values[place]]
    return sum(comb(n + k - 1, k) for mask in sets for k in range(mask.bit_length()) if mask >> k & 1)


def chain(program: Program) -> list[int] | None:
    """The weights W_1, ..., W_l of a program x -> W_l ... W_1 x, from the last instruction to the input; else None."""
    place, found = program.outputs[0], []
    while program.instructions[place].operation == "einsum" and program.instructions[place].words == [
        "ab",
        "b",
        "a",
    ]:
        weight, place = program.instructions[place].operands
        if program.instructions[weight].operation != "weight":
            return None
        found.append(weight)
    plain = program.instructions[place].operation == "input" and len(program.outputs) == 1
    return found[::-1] if plain and found else None


def matrix_bound(program: Program) -> int:
    """A product of matrices has at most the rank r of its narrowest factor; m x n matrices of rank <= r have dimension
    r (m + n - r).
    """
    weights = chain(program)
    need(weights is not None, "the program is not a product of weights and one input")
    shapes = [program.instructions[k].shape for k in weights or []]
    r = min(min(shape) for shape in shapes)
    return r * (shapes[0][1] + shapes[-1][0] - r)


# -- upper bounds: symmetries ----------------------------------------------------------------------------

Labels = tuple[
    tuple[int, ...], int | None
]  # for each axis how a group acts on it, and the axis of its copies


def check_group(program: Program, group: Any, at: list[int], p: int) -> list[dict[int, int]]:
    """Verify that a group does not change the function; its infinitesimal generators at the point."""
    need(not program.vanishing, "symmetries are not known for weights that satisfy equations")
    kind = group.get("group") if type(group) is dict else None
    if kind == "scaling":
        _, exponents = fields(group, "a scaling", "group", "weights")
        check_scaling(program, exponents)
        return [
            drop_zeros(
                {place: exponents[name] * at[place] for name, place in flat_places(program, exponents)}, p
            )
        ]
    need(kind in ("gl", "torus"), "a group is gl, torus or scaling")
    _, size, axes = fields(group, "a group", "group", "size", "axes")
    size = integer(size, 1, 10**5, "the size of a group")
    first, copies = read_axes(program, axes, size, kind == "gl")
    carry_labels(program, first, kind == "gl")
    afford(
        (size**2 if kind == "gl" else size) * copies * max(program.parameters // size, 1), MOST_ENTRIES * 8
    )
    found = []
    pairs = [(i, j) for i in range(size) for j in range(size) if kind == "gl" or i == j]
    tables = [(labels, axis_places(program, name, star)) for name, (labels, star) in first.items()]
    for copy in range(copies):
        for (
            i,
            j,
        ) in pairs:  # g = 1 + e E_ij acts by row i += e row j; its inverse transpose by row j -= e row i
            vector: dict[int, int] = {}
            for labels, places in tables:
                for axis, label in enumerate(labels):
                    to, source = (i, j) if label > 0 else (j, i)
                    for x, y in (
                        zip(places[axis][copy, to], places[axis][copy, source], strict=True) if label else ()
                    ):
                        vector[x] = vector.get(x, 0) + label * at[y]
            found.append(drop_zeros(vector, p))
    return found


def drop_zeros(vector: dict[int, int], p: int) -> dict[int, int]:
    return {place: x % p for place, x in vector.items() if x % p}


def flat_places(program: Program, names: Any) -> Iterator[tuple[str, int]]:
    start = 0
    for name, place in program.named("weight").items():
        if name in names:
            yield from ((name, start + i) for i in range(program.size(place)))
        start += program.size(place)


def axis_places(program: Program, name: str, star: int | None) -> list[dict[tuple[int, int], list[int]]]:
    """For each axis of a weight, the flat places with (index of the copy, index on this axis), in one order for all."""
    shape = program.instructions[program.named("weight")[name]].shape
    places = [place for _, place in flat_places(program, {name})]
    steps, tables = row_major(shape), []
    for axis in range(len(shape)):
        table: dict[tuple[int, int], list[int]] = {}
        for k, place in enumerate(places):
            copy = 0 if star is None else k // steps[star] % shape[star]
            table.setdefault((copy, k // steps[axis] % shape[axis]), []).append(place)
        tables.append(table)
    return tables


def read_axes(program: Program, axes: Any, size: int, linear: bool) -> tuple[dict[str, Labels], int]:
    """The labels of the weights, and the number of copies of the group."""
    need(
        type(axes) is dict and bool(axes) and set(axes) <= set(program.named("weight")),
        "axes names weights of the program",
    )
    found: dict[str, Labels] = {}
    copies = set()
    for name, labels in axes.items():
        shape = program.instructions[program.named("weight")[name]].shape
        listed(labels, "the labels of a weight", len(shape))
        stars = [axis for axis, label in enumerate(labels) if label == "*"]
        plain = [
            0
            if label == "*"
            else integer(label, -1 if linear else -(10**6), 1 if linear else 10**6, "a label")
            for label in labels
        ]
        need(any(plain) and len(stars) <= int(linear), "a weight has no label, or copies that are not known")
        need(
            all(not label or n == size for label, n in zip(plain, shape, strict=True)),
            "an axis has another length than the group",
        )
        found[name] = tuple(plain), stars[0] if stars else None
        copies.add(shape[stars[0]] if stars else 0)
    need(len(copies) == 1, "weights have different numbers of copies of the group")
    return found, max(copies.pop(), 1)


def check_scaling(program: Program, exponents: Any) -> None:
    need(
        type(exponents) is dict and bool(exponents) and set(exponents) <= set(program.named("weight")),
        "a scaling names weights",
    )
    found: list[int] = []
    for item in program.instructions:
        parts = [found[k] for k in item.operands]
        if item.operation == "weight":
            name = item.words[0]
            found.append(integer(exponents[name], -(10**6), 10**6, "an exponent") if name in exponents else 0)
        elif item.operation in ("softmax", "exp", "reciprocal", "input", "constant"):
            need(not any(parts), f"a scaling does not pass {item.operation}")
            found.append(0)
        elif item.operation in ("multiply", "einsum"):
            found.append(sum(parts))
        else:
            need(len(set(parts)) == 1, "parts of a sum are scaled differently")
            found.append(parts[0] * (item.words[0] if item.operation == "power" else 1))
    need(not any(found[k] for k in program.outputs), "a scaling changes the output")


def carry_labels(program: Program, first: dict[str, Labels], linear: bool) -> None:
    """Carry labels through the program; this proves that the group changes nothing, as an identity."""
    found: list[Labels] = []
    for item in program.instructions:
        parts = [found[k] for k in item.operands]
        shapes = [program.instructions[k].shape for k in item.operands]
        operation, none = item.operation, ((0,) * len(item.shape), None)
        if operation == "weight":
            found.append(first.get(item.words[0], none))
        elif not any(any(labels) for labels, _ in parts):
            found.append(none)
        elif operation == "einsum":
            found.append(einsum_labels(item.words, parts, linear))
        elif operation in ("add", "multiply"):
            found.append(broadcast_labels(operation, parts, shapes, item.shape, linear))
        elif operation == "scale" or (operation == "power" and not linear):
            factor = item.words[0] if operation == "power" else 1
            found.append((tuple(factor * label for label in parts[0][0]), parts[0][1]))
        elif operation == "reshape":
            found.append(reshape_labels(parts[0], shapes[0], item.shape))
        elif operation in ("slice", "concatenate"):
            whole = [(0, n, 1) for n in shapes[0]]
            touched = (
                [k for k, part in enumerate(item.words) if part != whole[k]]
                if operation == "slice"
                else item.words
            )
            need(len(set(parts)) == 1, "arrays with different labels are joined")
            need(
                not any(parts[0][0][k] or parts[0][1] == k for k in touched),
                f"a labelled axis does not pass {operation}",
            )
            found.append(parts[0])
        else:
            raise Rejected(f"a symmetry does not pass {operation}")
    need(not any(any(found[k][0]) for k in program.outputs), "a symmetry changes the output")


def einsum_labels(words: list[str], parts: list[Labels], linear: bool) -> Labels:
    """A summed letter needs labels that cancel. GL acts on a letter that stays only if one operand alone has this letter;
    copies of the group must be counted by one letter, which stays as long as labels do.
    """
    terms, result = words[: len(parts)], words[2]
    total: dict[str, int] = {}
    stars = set()
    for term, (labels, star) in zip(terms, parts, strict=True):
        stars |= {term[star]} if star is not None else set()
        for letter, label in zip(term, labels, strict=True):
            need(
                not (linear and label and letter in result and sum(letter in t for t in terms) > 1),
                "GL does not pass a product",
            )
            total[letter] = total.get(letter, 0) + label
    need(len(stars) <= 1 and not any(total[letter] for letter in stars), "copies of a group are mixed")
    need(
        not any(label for letter, label in total.items() if letter not in result),
        "labels of a summed letter do not cancel",
    )
    if not any(total.values()):
        return (0,) * len(result), None
    need(all(letter in result for letter in stars), "copies of a group are added")
    return tuple(total[letter] for letter in result), result.index(stars.pop()) if stars else None


def broadcast_labels(
    operation: str, parts: list[Labels], shapes: list[Shape], shape: Shape, linear: bool
) -> Labels:
    """Sums need equal labels, products add them; a repeated axis has none. GL passes a product with numbers that do not vary
    along its axis.
    """
    size = len(shape)
    labels = [padded(part[0], size, 0) for part in parts]
    lengths = [padded(s, size, 1) for s in shapes]
    stars = {star + size - len(part) for part, star in parts if star is not None}
    need(len(stars) <= 1, "copies of a group are mixed")
    for side in (0, 1):
        for axis in range(size):
            label, repeated = labels[side][axis], lengths[side][axis] != shape[axis]
            need(not (label and repeated), "an axis with a label is repeated")
            need(
                operation == "multiply" or label == labels[1 - side][axis],
                "parts of a sum have different labels",
            )
            alone = labels[1 - side][axis] == 0 and lengths[1 - side][axis] == 1
            need(not (linear and operation == "multiply" and label) or alone, "GL does not pass a product")
            own_star = parts[side][1] is not None and axis in stars
            need(not own_star or not repeated, "the axis of the copies is repeated")
            need(axis not in stars or label == 0, "copies of a group are mixed")
    need(
        operation == "multiply" or len({part[1] is None for part in parts}) == 1,
        "parts of a sum have different copies",
    )
    found = tuple(a + b if operation == "multiply" else a for a, b in zip(*labels, strict=True))
    return found, stars.pop() if stars and any(found) else None


def reshape_labels(part: Labels, before: Shape, after: Shape) -> Labels:
    """Only axes of length 1 without label may come and go."""
    labels, star = part
    kept = [axis for axis, n in enumerate(before) if n > 1]
    need(
        not any(label for label, n in zip(labels, before, strict=True) if n == 1),
        "a labelled axis of length 1 is reshaped",
    )
    need(star is None or before[star] > 1, "a single copy of a group is reshaped")
    need([before[axis] for axis in kept] == [n for n in after if n > 1], "a labelled array is reshaped")
    sources = iter(kept)
    order = [next(sources) if n > 1 else None for n in after]
    return tuple(
        0 if axis is None else labels[axis] for axis in order
    ), None if star is None else order.index(star)


# -- upper bounds: vector fields -------------------------------------------------------------------------

Field = list[
    tuple[int, int, dict[int, int]]
]  # a flat weight, and how it moves: a factor and {flat weight: exponent}


def read_field(program: Program, value: Any) -> Field:
    most, found = program.parameters, []
    for part in listed(value, "a vector field"):
        i, c, monomial = listed(part, "a part of a vector field", 3)
        i, c = (
            integer(i, 0, most - 1, "a weight"),
            integer(c, -(10**MOST_DIGITS), 10**MOST_DIGITS, "a factor"),
        )
        found.append((i, c, read_monomial(monomial, most)))
    need(bool(found), "a vector field does not move anything")
    return found


def field_at(field: Field, ring: Any, weights: Numbers) -> dict[int, Any]:
    """How the flat weights move at a point."""
    found: dict[int, Any] = {}
    for i, c, monomial in field:
        term = ring.number(c)
        for j, e in monomial.items():
            term = ring.multiply(term, ring.power(weights[j], e))
        found[i] = ring.add(found[i], term) if i in found else term
    return found


def check_field(program: Program, field: Field) -> None:
    """Verify that a vector field does not change the function: its derivative along the field is zero, as an identity in weights
    and inputs. First values of the instructions up to some place are unknowns of their own where they do not move; what holds
    for all unknowns holds for the values. Then everything is expanded, or all points of a lattice that determines a
    polynomial of this degree are tried. A point that is drawn can only refute.
    """
    need(not program.vanishing, "symmetries are not known for weights that satisfy equations")
    afford(len(program.instructions), 500)
    size, rest = program.parameters + program.input_size, None
    if polynomial(program):  # one point can show that a field is none
        run = Evaluator(program, Symbols())
        drawn = [RANDOM.randrange(run.ring.p) for _ in range(size)]
        need(not moves(run, drawn, field, -1), "a vector field changes the function")
    for last in reversed(range(-1, len(program.instructions))):
        ring = Polynomials(MOST_TERMS if last < 0 else MOST_TERMS // 100)
        try:
            if not moves(Evaluator(program, ring), ring.variables(size), field, last):
                return
        except Unknown as reason:
            rest = reason
        else:
            rest = None
    if rest is not None:
        degree = highest_degree(program) - 1 + max(sum(monomial.values()) for _, _, monomial in field)
        afford(comb(size + degree, size) * program.work, MOST_WORK / 100)
        run, rest = Evaluator(program, Rationals()), None
        for chosen in combinations_with_replacement(range(size + 1), degree):
            if moves(run, [chosen.count(v) for v in range(size)], field, -1):
                break
        else:
            return
    raise Rejected("a vector field changes the function, or is not seen to keep it")


def moves(run: Evaluator, given: Numbers, field: Field, last: int) -> bool:
    """Whether an output moves when the weights move along a field. Up to instruction number `last`, values that do not move are
    unknowns; so are those of exp, reciprocal and softmax, where a line of softmax adds up to one.
    """
    program, ring = run.program, run.ring
    zero, at = ring.number(0), 0
    rates = field_at(field, ring, given)
    values: dict[int, Numbers] = {}
    slopes: list[Numbers | None] = []

    def value(k: int) -> Numbers:
        if k not in values:
            operation, size = program.instructions[k].operation, program.size(k)
            if operation in ("exp", "reciprocal", "softmax") or (k <= last and slopes[k] is None):
                values[k] = ring.variables(size)
                for line in run.plans[k] if operation == "softmax" else ():
                    others = [values[k][i] for i in line[1:]]
                    values[k][line[0]] = ring.add(
                        ring.number(1), ring.dot([ring.number(-1)] * len(others), others)
                    )
            else:
                values[k] = run.step(k, [value(j) for j in program.instructions[k].operands])
        return values[k]

    for k, item in enumerate(program.instructions):
        ts, found = [slopes[j] for j in item.operands], None
        if item.operation in ("weight", "input"):
            at, start = at + program.size(k), at
            values[k] = given[start:at]
            if item.operation == "weight":
                found = [rates.get(i, zero) for i in range(start, at)]
        elif any(t is not None for t in ts):
            found = run.slope(k, value, ts)
        slopes.append(found if found is not None and any(t != zero for t in found) else None)
    return any(slopes[k] is not None for k in program.outputs)


def symmetry_vectors(
    program: Program, at: list[int], p: int, groups: Any, vector_fields: Any = ()
) -> list[dict[int, int]]:
    """Verify groups and vector fields; the directions at the point, modulo p, in which they move the weights."""
    vectors = [v for group in listed(groups, "groups") for v in check_group(program, group, at, p)]
    for value in listed(list(vector_fields) if vector_fields == () else vector_fields, "fields"):
        field = read_field(program, value)
        check_field(program, field)
        vectors.append(drop_zeros(field_at(field, Residues(p), at), p))
    return vectors


def composition_bound(program: Program, argument: Any) -> int:
    """A network g(f(x), x), where f has the value of one instruction as its output, and g an input in its place. At a generic
    point its differential is a linear map of those of f and g, which have ranks of at most U_1 and U_2. A symmetry of the whole
    moves f and g without moving g(f(x), x): the linear map is zero on these k directions, and its rank at most U_1 + U_2 - k.
    """
    keys = ("kind", "cut", "first", "second", "groups", "fields", "prime", "weights", "samples")
    _, cut, first, second, groups, vector_fields, p, weights, samples = fields(
        argument, "a composition", *keys
    )
    need(not program.vanishing, "a composition is not known for weights that satisfy equations")
    cut, p = integer(cut, 0, len(program.instructions) - 1, "a cut"), prime(p)
    samples = integer(samples, 1, 10**4, "the number of samples")
    need(
        program.instructions[cut].operands != [] and cut not in program.outputs,
        "there is nothing on one side of the cut",
    )
    at = point(weights, program.parameters, 0, p)
    parts = [part(program, [cut], None), part(program, program.outputs, cut)]
    bounds = [check_upper(own, upper, None) for (own, _), upper in zip(parts, (first, second), strict=True)]
    vectors = symmetry_vectors(program, at, p, groups, vector_fields)
    moved: list[dict[Any, int]] = [{} for _ in vectors]
    for number, (own, places) in enumerate(parts if vectors else ()):
        if not polynomial(own):
            continue  # fewer rows make k smaller
        run, rows = Evaluator(own, Residues(p)), own.size(*own.outputs)
        count = samples if own.input_size else 1
        drawn = [[x % p for x in stream(number, n, own.input_size)] for n in range(count)]
        forms = [(n, entry(own, run.ring, own.outputs, e)) for n in range(count) for e in range(rows)]
        table = jacobian(run, [at[i] for i in places], drawn, forms, list(range(own.parameters)))
        column = {i: c for c, i in enumerate(places)}
        for vector, found in zip(vectors, moved, strict=True):
            terms = [(column[i], x) for i, x in vector.items() if i in column]
            for r, row in enumerate(table):
                if x := sum(row[c] * x for c, x in terms) % p:
                    found[number, r] = x
    return sum(bounds) - sparse_rank(moved, p)


def polynomial(program: Program) -> bool:
    return not any(item.operation in ("softmax", "exp", "reciprocal") for item in program.instructions)


def part(program: Program, outputs: list[int], cut: int | None) -> tuple[Program, list[int]]:
    """The program of what these outputs use, with an input in the place of the cut; and the flat weights that it has."""
    used: set[int] = set()
    for k in reversed(range(len(program.instructions))):
        if k in outputs or k in used:
            used |= {k, *(program.instructions[k].operands if k != cut else ())}
    name = "%"
    while name in program.named("input"):
        name += "%"
    items = {k: program.instructions[k] for k in sorted(used)}
    if cut in items:
        items[cut] = Instruction("input", [name], [], items[cut].shape)
    order = sorted(items, key=lambda k: {"weight": 0, "input": 1}.get(items[k].operation, 2))
    place = {k: n for n, k in enumerate(order)}
    made = [
        Instruction(i.operation, i.words, [place[j] for j in i.operands], i.shape)
        for i in map(items.get, order)
        if i
    ]
    names = [items[k].words[0] for k in order if items[k].operation == "weight"]
    return Program("", made, [], [place[k] for k in outputs]), [i for _, i in flat_places(program, names)]


# -- upper bounds: equations -----------------------------------------------------------------------------

Polynomial = list[tuple[int, dict[int, int]]]  # coefficient and {coordinate: exponent}, for each term


def read_monomial(value: Any, count: int) -> dict[int, int]:
    """{index: exponent}, of ascending indices below `count`."""
    pairs = [integers(pair, 0, 10**6, "an exponent", 2) for pair in listed(value, "a monomial")]
    ascending = all(i < j for (i, _), (j, _) in pairwise(pairs))
    need(ascending and all(i < count and e > 0 for i, e in pairs), "a monomial is not written like this")
    return {i: e for i, e in pairs}


def read_polynomial(value: Any, coordinates: int) -> Polynomial:
    terms: Polynomial = []
    for term in listed(value, "a polynomial"):
        coefficient, monomial = listed(term, "a term", 2)
        most = 10**MOST_DIGITS
        terms.append(
            (integer(coefficient, -most, most, "a coefficient"), read_monomial(monomial, coordinates))
        )
        need(terms[-1][0] != 0, "a coefficient is zero")
    monomials = {tuple(e.items()) for _, e in terms}
    need(bool(terms) and len(monomials) == len(terms), "a polynomial is empty or repeats a monomial")
    return terms


def check_equations(program: Program, values: Any) -> list[Polynomial]:
    """Polynomials in the outputs that vanish identically in the weights, by expansion over ZZ."""
    need(
        not program.input_size, "equations are for programs without inputs, whose outputs are the coordinates"
    )
    need(not program.vanishing, "equations are not known for weights that satisfy equations")
    count = program.size(*program.outputs)
    polynomials = [read_polynomial(value, count) for value in listed(values, "equations")]
    degree = max((sum(e.values()) for f in polynomials for _, e in f), default=0)
    afford(degree * highest_degree(program), 2**20)
    ring = Polynomials()
    outputs = flat_outputs(program, Evaluator(program, ring).values(ring.variables(program.parameters), []))
    for f in polynomials:
        total = ring.number(0)
        for c, exponents in f:
            term = ring.number(c)
            for i, e in exponents.items():
                term = ring.multiply(term, ring.power(outputs[i], e))
            total = ring.add(total, term)
        need(not total, "an equation does not vanish identically on the image")
    return polynomials


def flat_outputs(program: Program, values: list[Numbers]) -> Numbers:
    return [x for place in program.outputs for x in values[place]]


def equations_bound(program: Program, polynomials: list[Polynomial], weights: list[int], p: int) -> int:
    """The tangent space of the image's closure at an image point is inside that of the equations, and the closure is
    irreducible: its dimension is at most N minus the rank of the equations' differentials, also modulo p.
    """
    y = flat_outputs(program, Evaluator(program, Residues(p)).values(weights, []))
    rows = []
    for f in polynomials:
        row = [0] * len(y)
        for c, exponents in f:
            for i, e in exponents.items():
                others = prod(pow(y[j], n, p) for j, n in exponents.items() if j != i)
                row[i] = (row[i] + c * e * pow(y[i], e - 1, p) * others) % p
        rows.append(row)
    return len(y) - rank(rows, p)


def flattening_bound(program: Program, argument: Any) -> int:
    """For y = W_2 (W_1 x)^r, a sum of k terms c (x) l^r with l linear: a flattening, linear in the coefficients, has rank at
    most k times that of one term. Where this is met, the left kernel times the right kernel are differentials that vanish on the
    image's tangent space. All ranks modulo p are at most those over QQ, and the first is known to be equal.
    """
    _, name, p, weights = fields(
        argument, "a bound by a flattening", "kind", "flattening", "prime", "weights"
    )
    p = prime(p)
    last = program.instructions[program.outputs[0]]
    between = program.instructions[last.operands[1]] if last.words == ["ab", "b", "a"] else last
    first = program.instructions[between.operands[0]] if between.operation == "power" else last
    form = (
        first is not last
        and first.operation == "einsum"
        and first.words == ["ab", "b", "a"]
        and len(program.outputs) == 1
    )
    kinds = [program.instructions[k].operation for k in (*first.operands, *last.operands[:1])]
    need(form and kinds == ["weight", "input", "weight"] and first.operands[0] < last.operands[0],
         "the program is not a perceptron with one hidden layer")  # fmt: skip
    r, (k, n), m = between.words[0], program.instructions[first.operands[0]].shape, last.shape[0]
    afford(r, 60)
    afford(comb(n + r - 1, r) * m, 10**4)
    table, height, width = flattening(name, n, m, r)
    at = point(weights, program.parameters, 0, p)
    w1, w2 = at[: k * n], at[k * n :]
    need(len(at) == k * n + m * k, "the program has other weights too")
    exponents = monomials(n, r)
    y = []
    for j in range(m):
        for e in exponents:
            powers = [prod(pow(w1[i * n + v], e[v], p) for v in range(n)) * w2[j * k + i] for i in range(k)]
            y.append(factorial(r) // prod(map(factorial, e)) * sum(powers) % p)
    single = len(
        table.get(0, [])
    )  # the coefficient of x_1^r alone: a term, and every other one is equivalent to it
    lines = ({a for a, _, _ in table.get(0, [])}, {b for _, b, _ in table.get(0, [])})
    need(len(lines[0]) == len(lines[1]) == single, "the flattening of one term is not a permutation")
    matrix = [[0] * width for _ in range(height)]
    for c, places in table.items():
        for a, b, s in places:
            matrix[a][b] = (matrix[a][b] + s * y[c]) % p
    need(rank(matrix, p) == k * single, "the flattening does not have the rank that its terms allow")
    right, left = kernel(matrix, p), kernel([list(column) for column in zip(*matrix, strict=True)], p)
    afford(len(left) * len(right) * sum(map(len, table.values())))
    forms = [
        [sum(u[a] * v[b] * s for a, b, s in table.get(c, [])) % p for c in range(len(y))]
        for u in left
        for v in right
    ]
    return len(y) - rank(forms, p)


def monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    """Exponents of the monomials of a degree, that of x_1^degree first."""
    return [tuple(c.count(v) for v in range(n)) for c in combinations_with_replacement(range(n), degree)]


def flattening(name: Any, n: int, m: int, r: int) -> tuple[dict[int, list[tuple[int, int, int]]], int, int]:
    """Coordinate -> entries (row, column, factor) of the matrix; its height and width. Both kinds commute with changes of
    basis of the inputs, so that all terms have one rank.
    """
    index = {e: i for i, e in enumerate(monomials(n, r))}
    table: dict[int, list[tuple[int, int, int]]] = {}

    def put(output: int, e: tuple[int, ...], row: int, column: int, sign: int) -> None:
        table.setdefault(output * len(index) + index[e], []).append(
            (row, column, sign * prod(map(factorial, e)))
        )

    if type(name) is list and len(name) == 2 and name[0] == "catalecticant":
        s = integer(name[1], 1, r - 1, "the degree of a catalecticant")
        rows, columns = monomials(n, s), monomials(n, r - s)
        for j in range(m):
            for a, u in enumerate(rows):
                for b, v in enumerate(columns):
                    put(j, tuple(map(sum, zip(u, v, strict=True))), j * len(rows) + a, b, 1)
        return table, m * len(rows), len(columns)
    need(
        name == ["koszul"] and m == 1 and r % 2 == 1 and r > 1 and n % 2 == 1,
        "a flattening is [catalecticant, s] or [koszul]",
    )
    q, half = (n - 1) // 2, (r - 1) // 2
    afford(n * comb(n, q) * comb(n + half - 1, half) ** 2, 10**6)
    rows, columns = monomials(n, half), monomials(n, half)
    small, large = (
        list(combinations(range(n), q)),
        {c: i for i, c in enumerate(combinations(range(n), q + 1))},
    )
    for a, u in enumerate(rows):
        for c, chosen in enumerate(small):
            for i in set(range(n)) - set(chosen):
                to, sign = large[tuple(sorted((*chosen, i)))], (-1) ** sum(x < i for x in chosen)
                for b, v in enumerate(columns):
                    e = tuple(x + y + (k == i) for k, (x, y) in enumerate(zip(u, v, strict=True)))
                    put(0, e, b * len(large) + to, a * len(small) + c, sign)
    return table, len(columns) * len(large), len(rows) * len(small)


# -- built-in networks -----------------------------------------------------------------------------------

BIG = 2**61 - 1  # a prime
REPEATS = 4
EQUAL = f"both are equal at {REPEATS} random points modulo random primes above 2^61"
VALUE = r"\[[1-9][0-9]{0,5}(?:,[1-9][0-9]{0,5})*\]|[1-9][0-9]{0,5}(?:/[1-9][0-9]{0,5})?|[a-z]+"
FAMILIES = {  # arguments in canonical order
    "lightning": ["d", "dp", "a", "t", "parametrization", "coordinates"],
    "deep-lightning": ["d", "a", "t", "heads", "skip", "parametrization", "coordinates"],
    "softmax": ["d", "a", "t", "temperature", "parametrization"],
    "mlp": ["widths", "r"],
    "linear": ["widths"],
    "convolution": ["filters", "strides", "r"],
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
    temperature: Fraction = Fraction(1)
    power: int = 1
    strides: list[int] = field(default_factory=list)
    segre: bool = False  # whether its coordinates are those of Proposition A.5

    @property
    def attention(self) -> bool:
        return bool(self.ranks)

    @property
    def narrow(self) -> bool:
        """Whether weights of this parametrization satisfy equations; then (Q, K, V), with the same image, stand for them."""
        virtual = self.parametrization == "virtual" and any(
            n < self.widths[0] for n in (*self.widths[1:-1], *self.ranks)
        )
        return virtual or (
            self.parametrization == "attention"
            and any(a < d for a, d in zip(self.ranks, self.widths, strict=False))
        )

    @property
    def weights(self) -> dict[str, Shape]:
        """Names and shapes of the free weights, in order."""
        w, way = self.widths, "weights" if self.narrow else self.parametrization
        if self.family == "convolution":
            return {f"w{i}": (k,) for i, k in enumerate(w, start=1)}
        if not self.attention:
            return {f"W{i}": (w[i], w[i - 1]) for i in range(1, len(w))}
        if way == "virtual":
            found: dict[str, Shape] = {f"M{i}": (w[0], w[0]) for i in range(1, len(w))}
            return found | {"L": (w[-1], w[0])}
        found = {}
        for i, (a, h, d, e) in enumerate(zip(self.ranks, self.heads, w, w[1:], strict=False), start=1):
            mark, lead = "" if self.family == "lightning" else str(i), (h,) if h > 1 else ()
            scores = (
                {f"A{mark}": (*lead, d, d)}
                if way == "attention"
                else {f"Q{mark}": (*lead, a, d), f"K{mark}": (*lead, a, d)}
            )
            found |= scores | {f"V{mark}": (*lead, e, d)}
        return found

    @property
    def sizes(self) -> list[int]:
        """Neurons before each layer of a convolution and after the last, which has one."""
        found = [1]
        for k, s in zip(self.widths[::-1], self.strides[::-1], strict=True):
            found.append((found[-1] - 1) * s + k)
        return found[::-1]

    @property
    def input_shape(self) -> Shape:
        first = self.sizes[0] if self.family == "convolution" else self.widths[0]
        return (first, self.tokens) if self.attention else (first,)

    @property
    def parameter_dim(self) -> int | None:
        """Dimension of the space of weights of the spec's own parametrization; None where it is not known by a formula."""
        if self.parametrization == "attention":
            layers = zip(self.ranks, self.heads, self.widths, self.widths[1:], strict=False)
            return sum(h * (matrices(d, a) + d * e) for a, h, d, e in layers)
        return None if self.narrow else sum(map(prod, self.weights.values()))


def read_spec(spec: str) -> Network | None:
    """The built-in network with this canonical spec; None for a spec of another kind."""
    family = re.split(r"[(:]", spec)[0].strip()
    if family not in (*FAMILIES, "multi-head", "skip-lightning"):
        return None
    defaults, match = FAMILIES.get(family, []), re.fullmatch(rf"{family}\((.*)\)", spec)
    items = re.findall(rf"([a-z]+)=({VALUE})(?:,|$)", match[1]) if match else []
    written = dict(items)
    order = [key for key in defaults if key in written]
    canonical = (
        match is not None
        and ",".join(map("=".join, items)) == match[1]
        and [key for key, _ in items] == order
    )

    def numbers(key: str, many: bool, length: int | None = None) -> list[int]:
        need(
            bool(re.fullmatch(r"\[[0-9,]+\]" if many else "[0-9]+", written.get(key, ""))),
            f"{key} is missing or not written like this",
        )
        found = [int(n) for n in written[key].strip("[]").split(",")]
        need(
            max(found) <= 10**5 and length in (None, len(found)), f"{key} has another length, or is too large"
        )
        return found

    need(canonical, "the spec is not in canonical form")
    if family in ("mlp", "linear", "convolution"):
        widths = numbers("filters" if family == "convolution" else "widths", True)
        need(len(widths) > 1 or family == "convolution", "a network has a layer")
        strides = numbers("strides", True, len(widths)) if "strides" in written else [1] * len(widths)
        need("strides" not in written or set(strides) != {1}, "the spec is not in canonical form")
        return Network(
            family, widths, power=1 if family == "linear" else numbers("r", False)[0], strides=strides
        )
    single = family == "lightning"
    widths = numbers("d", False) + numbers("dp", False) if single else numbers("d", True)
    need(len(widths) > 1, "a network has a layer")
    layers = len(widths) - 1
    network = Network(family, widths, numbers("a", not single, layers), [1] * layers, numbers("t", False)[0])
    if "heads" in written:
        several = "[" in written["heads"]
        network.heads = numbers("heads", True, layers) if several else numbers("heads", False) * layers
        need(
            len(set(network.heads)) > 1 if several else network.heads[0] > 1,
            "the spec is not in canonical form",
        )
    network.skip = "skip" in written
    need(written.get("skip", "true") == "true", "the spec is not in canonical form")
    need(not network.skip or len(set(widths)) == 1, "skip connections need equal widths")
    network.parametrization = written.get("parametrization", "weights")
    virtual = family == "deep-lightning" and not network.skip and max(network.heads) == 1
    ways = ("attention", "virtual") if virtual else ("attention",)
    need(
        "parametrization" not in written or network.parametrization in ways,
        "the parametrization is not one of this family",
    )
    segre = layers == 1 and not network.skip and network.tokens > 1 and family != "softmax"
    network.segre = segre and "coordinates" not in written
    need(
        written.get("coordinates", "full") == "full" and (segre or "coordinates" not in written),
        "the spec is not in canonical form",
    )
    need(written.get("temperature") != "1", "the spec is not in canonical form")
    network.temperature = Fraction(rational(written.get("temperature", "1")))
    return network


Matrix = list[list[Any]]


def product(ring: Any, left: Matrix, right: Matrix) -> Matrix:
    columns = [list(column) for column in zip(*right, strict=True)]
    return [[ring.dot(row, column) for column in columns] for row in left]


def transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def network_outputs(network: Network, ring: Any, w: dict[str, Any], x: Any) -> Numbers:
    """The flat output of a built-in network at an input, by its definition; `w` and `x` are nested lists."""
    if network.family == "convolution":  # (w * x)_n = sum_j w_j x_(n s + j), powers between the layers
        for i, (stride, after) in enumerate(zip(network.strides, network.sizes[1:], strict=True), start=1):
            x = [ring.power(v, network.power) for v in x] if i > 1 else x
            x = [ring.dot(w[f"w{i}"], x[n * stride : n * stride + len(w[f"w{i}"])]) for n in range(after)]
        return list(x)
    if not network.attention:  # W_l (... (W_1 x)^r ...)
        for i in range(1, len(network.widths)):
            x = [ring.power(v, network.power) for v in x] if i > 1 else x
            x = [ring.dot(row, x) for row in w[f"W{i}"]]
        return list(x)
    for i, heads in enumerate(network.heads, start=1):
        mark, total = "" if network.family == "lightning" else str(i), None
        for h in range(heads):
            own = {name[0]: value[h] if heads > 1 else value for name, value in w.items() if name[1:] == mark}
            if "A" in own or "M" in own:
                scores = product(ring, transposed(x), product(ring, own.get("A") or own["M"], x))
            else:  # A = K^T Q
                scores = product(ring, transposed(product(ring, own["K"], x)), product(ring, own["Q"], x))
            if (
                network.family == "softmax"
            ):  # Equation 15: token i attends to token j by exp(x_i^T A x_j / temperature)
                factor = ring.number(1 / network.temperature)
                scores = transposed([ring.softmax([ring.multiply(factor, s) for s in row]) for row in scores])
            part = product(
                ring, x, scores
            )  # Equation 1: V X X^T A X; by virtual weights V_i = 1 and L comes last
            part = product(ring, own["V"], part) if "V" in own else part
            total = (
                part
                if total is None
                else [list(map(ring.add, *rows)) for rows in zip(total, part, strict=True)]
            )
        assert total is not None
        x = [list(map(ring.add, *rows)) for rows in zip(x, total, strict=True)] if network.skip else total
    return [v for row in (product(ring, w["L"], x) if "L" in w else x) for v in row]


def segre_outputs(network: Network, ring: Any, w: dict[str, Any]) -> Numbers:
    """Coefficients of x_(m,1) x_(i,2) x_(j,2), i <= j, in output n of the first token: columns of A times rows of V."""
    (d, e), heads, mark = network.widths, network.heads[0], "" if network.family == "lightning" else "1"
    total = [ring.number(0)] * (e * d * d * (d + 1) // 2)
    for h in range(heads):
        own = {
            name[0]: value[h] if heads > 1 else value for name, value in w.items() if name[1:] in ("", mark)
        }
        A = own.get("A") or own.get("M") or product(ring, transposed(own["K"]), own["Q"])
        V = own.get("V") or own["L"]
        part = []
        for n in range(e):
            for m in range(d):
                for i, j in combinations_with_replacement(range(d), 2):
                    pairs = [(A[i][m], V[n][j]), (A[j][m], V[n][i])][: 1 + (i < j)]
                    part.append(ring.dot(*map(list, zip(*pairs, strict=True))))
        total = list(map(ring.add, total, part))
    return total


def nested(values: Numbers, shape: Shape) -> Any:
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0]
    return [nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def compare(program: Program, network: Network, spec: str) -> str:
    """Compare the program with the network that its spec names, at points that the checker draws; a sentence on that."""
    shapes = {name: program.instructions[place].shape for name, place in program.named("weight").items()}
    need(
        shapes == network.weights and list(shapes) == list(network.weights),
        "the program has other weights than its spec",
    )
    need(not program.vanishing, "the program's weights satisfy equations that the spec does not have")
    inputs = [program.instructions[place].shape for place in program.named("input").values()]
    segre = not inputs and network.segre
    need(segre or inputs == [network.input_shape], "the program has other inputs than its spec")
    afford(program.work * 8 * REPEATS)
    afford(highest_degree(program, analytic=True), 2**30)
    for _ in range(REPEATS):
        ring = Symbols()
        drawn = [RANDOM.randrange(ring.p) for _ in range(program.parameters + program.input_size)]
        flat, given, w = drawn[: program.parameters], drawn[program.parameters :], {}
        for name, shape in shapes.items():
            w[name], flat = nested(flat[: prod(shape)], shape), flat[prod(shape) :]
        values = Evaluator(program, ring).values(drawn[: program.parameters], given)
        x = nested(given, network.input_shape) if given else None
        own = segre_outputs(network, ring, w) if segre else network_outputs(network, ring, w, x)
        need(flat_outputs(program, values) == own, "the program is not that of its spec")
    what = "gives the Segre coordinates" if segre else "is that"
    return f"The program {what} of {spec}: {EQUAL}."


def matrices(d: int, a: int, symmetric: bool = False, most: int | None = None) -> int:
    """Dimension of the d x d matrices of rank <= a, or a bound of that of their symmetric parts (of rank <= 2 a and <= most)."""
    r, s = min(a, d), min(2 * a, d if most is None else most)
    return s * d - s * (s - 1) // 2 if symmetric else r * (2 * d - r)


def virtual_bound(network: Network) -> int:
    """Attention with one head and no skip connections is a function of A_i and V_i, and also of M_i = L_(i-1)^T A_i L_(i-1)
    and L_l, where L_i = V_i ... V_1. Both are counted. After tokens of rank one (t = 1, or a layer with a = 1) scores x^T A x
    see the symmetric part of A only. For lightning M_i -> s M_i is undone by L (Equation 13). Softmax with t = 1 is L X.
    """
    need(
        network.attention and not network.skip and max(network.heads) == 1,
        "virtual weights are for one head without skip connections",
    )
    w, depth, soft = network.widths, len(network.ranks), network.family == "softmax"
    last = min(w) * (w[0] + w[-1] - min(w))
    if soft and network.tokens == 1:
        return last
    symmetric = [
        not soft and (network.tokens == 1 or 1 in network.ranks[:i] or 1 in w[:i]) for i in range(depth)
    ]
    widths = [min(w[: i + 1]) for i in range(depth)]
    virtual = last - (0 if soft else depth)
    virtual += sum(
        matrices(w[0], min(network.ranks[i], widths[i]), symmetric[i], min(2 * network.ranks[i], widths[i]))
        for i in range(depth)
    )
    source = sum(matrices(w[i], network.ranks[i], symmetric[i]) + w[i] * w[i + 1] for i in range(depth))
    return min(virtual, source - orbit_dim(network, symmetric))


def orbit_dim(network: Network, symmetric: list[bool]) -> int:
    """A lower bound of the dimension of the orbits of GL(d_1) x ... x GL(d_(l-1)), and scalings, on (A_i, V_i): the rank of
    the infinitesimal action at a point.
    """
    w, ring = network.widths, Residues(BIG)
    afford(sum(d * d * (2 * d + 2 * max(w)) for d in w[1:-1]), MOST_ENTRIES)
    numbers = stream(1, 1, 10**9)
    A, V = [], []
    for i, a in enumerate(network.ranks):
        K, Q = ([[next(numbers) % BIG for _ in range(w[i])] for _ in range(min(a, w[i]))] for _ in "KQ")
        matrix = product(ring, transposed(K), Q)
        A.append(
            [list(map(ring.add, *rows)) for rows in zip(matrix, transposed(matrix), strict=True)]
            if symmetric[i]
            else matrix
        )
        V.append([[next(numbers) % BIG for _ in range(w[i])] for _ in range(w[i + 1])])
    vectors: list[dict[Any, int]] = []
    for k in range(
        1, len(w) - 1
    ):  # g = 1 + e E_ij after layer k: V_k -> g V_k, V_(k+1) -> V_(k+1) g^-1, A -> g^-T A g^-1
        for i in range(w[k]):
            for j in range(w[k]):
                vector: dict[Any, int] = {("V", k - 1, i, c): V[k - 1][j][c] for c in range(w[k - 1])}
                vector |= {("V", k, c, j): -V[k][c][i] for c in range(w[k + 1])}
                for c in range(w[k]):
                    for place, x in ((("A", k, j, c), A[k][i][c]), (("A", k, c, j), A[k][c][i])):
                        vector[place] = vector.get(place, 0) - x
                vectors.append(vector)
    if network.family != "softmax":
        for k, (score, value) in enumerate(zip(A, V, strict=True)):
            scaled: dict[Any, int] = {
                ("A", k, i, j): x for i, row in enumerate(score) for j, x in enumerate(row)
            }
            vectors.append(
                scaled | {("V", k, i, j): -x for i, row in enumerate(value) for j, x in enumerate(row)}
            )
    return sparse_rank([{place: x % BIG for place, x in v.items() if x % BIG} for v in vectors], BIG)


def layers_bound(network: Network) -> int:
    """A layer of lightning attention is linear in sum_h A_h (x) V_h, a d^2 x d e matrix of rank <= the number of heads; it is
    seen in the products of columns of A with rows of V in Sym^2 only. With one output row these products lie in the ideal of
    as many linear forms as there are heads. A network has at most the sum of the dimensions of its layers.
    """
    need(
        network.attention and network.family != "softmax",
        "layers are counted for lightning attention",
    )
    total = 0
    for a, heads, d, e in zip(network.ranks, network.heads, network.widths, network.widths[1:], strict=False):
        h, n = min(heads, d * d, d * e), min(heads, d)
        bounds = [
            heads * (matrices(d, a, network.tokens == 1) + d * e - 1),
            h * (d * d + d * e - h),
            d * e * comb(d + 1, 2),
        ]
        if e == 1:
            bounds.append(n * (d - n) + d * (comb(d + 1, 2) - comb(d - n + 1, 2)))
        total += min(bounds)
    return total


# -- statements ------------------------------------------------------------------------------------------


def check_certificate(document: Any) -> tuple[list[str], dict[str, Any]]:
    """Verify a certificate; sentences that say what is shown, and the values of a record that follow from it."""
    need(type(document) is dict, "a certificate is an object")
    if "format" not in document or document.get("version") != 2:
        raise Unknown(
            f"this checker reads certificates of format 2, not of format {shown(document.get('version'))}"
        )
    kind = document["statement"].get("kind") if type(document.get("statement")) is dict else None
    arguments = ("lower", "upper") if kind == "dimension" else ("argument",)
    name, version, statement, spec, text, *given = fields(
        document, "a certificate", "format", "version", "statement", "spec", "program", *arguments
    )
    need(name == "m2bridge certificate" and type(version) is int, "this is not a certificate of m2bridge")
    need(spec is None or type(spec) is str, "a spec is a text, or null")
    program = read_program(text)
    said = [f"This is about the program with hash {program.hash}."]
    network = None
    if spec is not None:
        network = read_spec(spec)
        sentence = compare(program, network, shown(spec)) if network else compare_map(program, spec)
        said.append(sentence or f"The spec {shown(spec)} is not known to me: nothing is said about it.")
    known = {"model": spec} if spec is not None else {}
    if kind == "dimension":
        shown_dimension = check_dimension(program, network, statement, *given)
        n, parameters = statement["dimension"], network.parameter_dim if network else program.parameters
        known |= {
            "analysis": "dimension",
            "certainty": "proved",
            "image_dim": n,
            "lower_bound": n,
            "upper_bound": n,
        }
        if parameters is not None and not program.vanishing:
            known |= {"parameters": parameters, "generic_fiber_dim": parameters - n}
        return said + shown_dimension, known
    kinds: dict[Any, Callable[..., list[str]]] = {
        "closure": check_closure, "singular": check_singular, "smooth": check_smooth, "symmetry": check_symmetry,
        "same function": check_same_function,
    }  # fmt: skip
    need(type(kind) is str and kind in kinds, "the statement is of no kind that the format knows")
    return said + kinds[kind](program, network, statement, *given), known


def check_dimension(
    program: Program, network: Network | None, statement: Any, lower: Any, upper: Any
) -> list[str]:
    _, n = fields(statement, "the statement", "kind", "dimension")
    n = integer(n, 0, 10**9, "a dimension")
    low = check_lower(program, lower)
    need(low == n, f"the lower bound shows a dimension of at least {low}, the statement is {n}")
    high = check_upper(program, upper, network)
    need(high == n, f"the upper bound shows a dimension of at most {high}, the statement is {n}")
    rests = " (this rests on the spec)" if upper["kind"] in ("virtual", "layers") else ""
    return [f"Its dimension is {n}: at least {n} by {lower['kind']}, at most {n} by {upper['kind']}{rests}."]


def check_closure(program: Program, network: Network | None, statement: Any, argument: Any) -> list[str]:
    """Polynomials of degree at most k that vanish on the image: at least the multiples of the equations, at most what ranks of
    evaluations at image points modulo p leave. Gradings of the weights for which all outputs are homogeneous split both.
    """
    _, equations, k = fields(statement, "the statement", "kind", "equations", "degree")
    p, gradings = fields(argument, "the argument", "prime", "gradings")
    p, k, count = prime(p), integer(k, 0, 100, "a degree"), program.size(*program.outputs)
    polynomials = check_equations(program, equations)
    afford(comb(count + k, k), 3 * 10**4)
    grades = [read_grading(program, g) for g in listed(gradings, "gradings")]

    def block(monomial: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sum(grade[i] for i in monomial) for grade in grades)

    blocks: dict[Any, dict[tuple[int, ...], int]] = {}
    for degree in range(k + 1):
        for monomial in combinations_with_replacement(range(count), degree):
            own = blocks.setdefault(block(monomial), {})
            own[monomial] = len(own)
    largest = max(map(len, blocks.values()))
    afford(sum(len(b) ** 3 for b in blocks.values()) / 8 + largest * (program.work + comb(count + k, k) * k))
    run = Evaluator(program, Residues(p))
    points = [
        flat_outputs(program, run.values([x % p for x in stream(0, n, program.parameters)], []))
        for n in range(largest + 4)
    ]
    multiples: dict[Any, list[list[int]]] = {key: [] for key in blocks}
    for f in polynomials:
        terms = [(c, tuple(i for i, e in exponents.items() for _ in range(e))) for c, exponents in f]
        need(len({block(m) for _, m in terms}) == 1, "an equation is not homogeneous for a grading")
        for degree in range(k + 1 - max(len(m) for _, m in terms)):
            for factor in combinations_with_replacement(range(count), degree):
                own = blocks[key := block((*factor, *terms[0][1]))]
                row = [0] * len(own)
                for c, m in terms:
                    row[own[tuple(sorted((*factor, *m)))]] = c % p
                multiples[key].append(row)
    for key, own in blocks.items():
        table = [[prod(y[i] for i in m) % p for m in own] for y in points[: len(own) + 4]]
        need(
            rank(table, p) + rank(multiples[key], p) == len(own),
            f"more polynomials of degree at most {k} may vanish on the image",
        )
    return [
        f"Each of the {len(polynomials)} equations vanishes on its image identically, by expansion over ZZ.",
        f"Every polynomial of degree at most {k} that vanishes there is a combination of their multiples of such degrees.",
        "Not covered: equations of higher degree, and whether these generate a prime ideal.",
    ]


def read_grading(program: Program, value: Any) -> list[int]:
    """The degree of each output when weights have these degrees; all outputs must be homogeneous."""
    degrees = integers(value, 0, 100, "a degree of a weight", program.parameters)
    afford(highest_degree(program) * 100, 10**4)
    masks = flat_outputs(program, Evaluator(program, Degrees()).values([1 << d for d in degrees], []))
    need(all(mask & mask - 1 == 0 for mask in masks), "an output is not homogeneous for a grading")
    return [max(mask.bit_length() - 1, 0) for mask in masks]


def exact_point(program: Program, value: Any) -> list[int]:
    most = 10**MOST_DIGITS
    need(
        not program.input_size and not program.vanishing,
        "this is for programs without inputs and without equations of the weights",
    )
    return integers(value, -most, most, "a weight", program.parameters)


def check_singular(program: Program, network: Network | None, statement: Any, argument: Any) -> list[str]:
    """An arc w(t) of weights that passes through the point at t = 0 gives an arc of the image; its first coefficient that is
    not zero is a tangent vector. More independent ones than the dimension show that the point is singular.
    """
    _, weights = fields(statement, "the statement", "kind", "weights")
    p, upper, arcs = fields(argument, "the argument", "prime", "upper", "arcs")
    weights, p = exact_point(program, weights), prime(p)
    afford(highest_degree(program) * 20, 2**20)
    ring = Polynomials()
    run = Evaluator(program, ring)
    y = flat_outputs(program, run.values([ring.number(x) for x in weights], []))
    vectors = []
    for arc in listed(arcs, "arcs"):
        most = 10**MOST_DIGITS
        paths = [
            integers(path, -most, most, "a coefficient of an arc")
            for path in listed(arc, "an arc", program.parameters)
        ]
        need(all(len(path) <= 20 for path in paths), "an arc has too high a degree")
        moved = [{n: c for n, c in enumerate(path) if c} for path in paths]
        image = [
            ring.add(z, ring.multiply(ring.number(-1), x))
            for x, z in zip(y, flat_outputs(program, run.values(moved, [])), strict=True)
        ]
        first = min((e for z in image for e in z), default=0)
        need(first > 0, "an arc does not pass through the point, or does not move")
        residues = Residues(p)
        vectors.append([residues.number(z.get(first, 0)) for z in image])
    tangent, high = rank(vectors, p), check_upper(program, upper, network)
    need(
        tangent > high,
        f"the arcs span a space of dimension {tangent} only, and the dimension is at most {high}",
    )
    return [
        f"Its image is singular at the given point: {tangent} independent tangent vectors, and a dimension of at most {high}."
    ]


def check_smooth(program: Program, network: Network | None, statement: Any, argument: Any) -> list[str]:
    """Equations whose differentials have rank N - n at a point of an n-dimensional image show that it is smooth there."""
    _, weights = fields(statement, "the statement", "kind", "weights")
    p, lower, equations = fields(argument, "the argument", "prime", "lower", "equations")
    weights, p = exact_point(program, weights), prime(p)
    tangent = equations_bound(program, check_equations(program, equations), [x % p for x in weights], p)
    low = check_lower(program, lower)
    need(
        low == tangent,
        f"the tangent space has dimension at most {tangent}, and the dimension is at least {low}",
    )
    return [f"The closure of its image is smooth at the given point, of dimension {low}."]


def check_symmetry(program: Program, network: Network | None, statement: Any, argument: Any) -> list[str]:
    """Groups by their labels; vector fields by the derivative of the function along them."""
    _, groups, vector_fields = fields(statement, "the statement", "kind", "groups", "fields")
    need(
        argument is None and bool(groups or vector_fields),
        "a symmetry has no argument, and at least one is named",
    )
    symmetry_vectors(program, [0] * program.parameters, 2, groups, vector_fields)
    return [
        f"{len(groups)} groups and {len(vector_fields)} vector fields do not change its function, identically."
    ]


def check_same_function(
    program: Program, network: Network | None, statement: Any, argument: Any
) -> list[str]:
    _, pair = fields(statement, "the statement", "kind", "weights")
    need(argument is None, "two weights with one function need no argument")
    afford(highest_degree(program), 2**20)
    ring = Polynomials()
    points, outputs, inputs = [], [], ring.variables(program.input_size)
    for weights in listed(pair, "weights", 2):
        given = [
            rational(x) if type(x) is str and "/" in x else x
            for x in listed(weights, "weights", program.parameters)
        ]
        need(
            all(type(x) is Fraction or type(x) is int for x in given),
            "a weight is an integer, or a fraction as a text",
        )
        values = Evaluator(program, ring).values([ring.number(x) for x in given], inputs)
        need(not any(z for k in program.vanishing for z in values[k]), "a point is not on the source")
        points.append(given)
        outputs.append(flat_outputs(program, values))
    need(points[0] != points[1], "the two weights are one")
    need(outputs[0] == outputs[1], "the two weights give different functions")
    return ["The two given weights are different, and the functions are equal as polynomials in the inputs."]


def compare_map(program: Program, spec: str) -> str | None:
    """Compare a program with the polynomials in a spec ``map:x,y->x^2;x*y``, at random points; None for other specs."""
    match = re.fullmatch(r"map:([^>|]+)->([^|]+)(?:\|([^|]+))?", spec)
    symbol = r"[A-Za-z][A-Za-z0-9']*(?:_(?:[0-9]+|[A-Za-z][A-Za-z0-9]*|\([0-9]+(?:,[0-9]+)*\)))?"
    if not match or not re.fullmatch(rf"{symbol}(?:,{symbol})*", match[1]):
        return None
    names = [found[0] for found in re.finditer(rf"{symbol}(?=,|$)", match[1])]
    term = rf"(?:{RATIONAL.replace('-?', '')}|{symbol}(?:\^[1-9][0-9]{{0,5}})?)(?:\*{symbol}(?:\^[1-9][0-9]{{0,5}})?)*"
    texts = [*match[2].split(";"), *(match[3].split(";") if match[3] else [])]
    if not all(re.fullmatch(rf"-?{term}(?:[+-]{term})*", text) for text in texts):
        return None
    need(len(set(names)) == len(names) == program.parameters, "the program has other variables than its spec")
    afford(highest_degree(program), 2**30)
    for _ in range(REPEATS):
        ring = Symbols()
        at = {name: RANDOM.randrange(ring.p) for name in names}
        expected = []
        for text in texts:
            total = 0
            for part in re.findall(r"[+-]?[^+-]+", text):
                value = -1 if part[0] == "-" else 1
                for factor in part.strip("+-").split("*"):
                    base, _, exponent = factor.partition("^")
                    need(base in at or base[0].isdigit(), "a variable of the spec is not declared")
                    number = at[base] if base in at else ring.number(rational(base))
                    value = value * ring.power(number, int(exponent or 1)) % ring.p
                total += value
            expected.append(total % ring.p)
        values = Evaluator(program, ring).values(list(at.values()), [])
        found = flat_outputs(program, values) + [x for k in program.vanishing for x in values[k]]
        need(found == expected, "the program is not that of its spec")
    return f"The program is that of {shown(spec)}: {EQUAL}."


def check_record(record: dict[str, Any], known: dict[str, Any]) -> list[str]:
    """What a record says must follow from its certificate where that is possible; the rest is named."""
    for name in sorted(set(record) & set(known)):
        same = type(record[name]) is type(known[name]) and record[name] == known[name]
        need(
            same,
            f"the record says {name} = {shown(record[name])}, the certificate shows {shown(known[name])}",
        )
    claims = {"image_dim", "lower_bound", "upper_bound"} & set(record) or record.get(
        "analysis"
    ) == "dimension"
    need("image_dim" in known or not claims, "the record is about a dimension, and its certificate is not")
    model = record.get("model")
    if "model" not in known and type(model) is str:
        need(
            read_spec(model) is None and not model.startswith("map:"),
            "the record is about a network that its certificate does not name",
        )
    rest = [shown(name)[:40] for name in record if name not in known and name != "certificate"]
    return (
        [f"Not covered by the certificate: {', '.join(rest[:60])}{' and more' * (len(rest) > 60)}."]
        if rest
        else []
    )


def verify(text: str) -> tuple[int, list[str]]:
    """The outcome for a document, 0, 7 or 8, and sentences that say why. Never raises."""
    try:
        document = read_json(text)
        need(type(document) is dict, "a record is an object")
        bare = "format" in document or ("certificate" not in document and "sha256" in document)
        certificate = document if bare else document.get("certificate")
        if certificate is None:
            return 8, ["Not proved: there is no certificate in this record."]
        said, known = check_certificate(certificate)
        return 0, ["Verified.", *said, *([] if bare else check_record(document, known))]
    except Unknown as reason:
        return 8, [f"Not known to me: {shown(reason)}."]
    except Rejected as reason:
        return 7, [f"Rejected: {shown(reason)}."]
    except MemoryError:
        return 8, ["Not known to me: this needs more memory than there is."]
    except Exception as error:
        return 7, [f"Rejected: the document does not make sense ({type(error).__name__})."]


def verify_file(path: str) -> tuple[int, list[str]]:
    """The outcome for a file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        unreadable = isinstance(error, OSError)
        return 8 if unreadable else 7, [f"The file {'cannot be read' if unreadable else 'is not UTF-8'}."]
    if len(data) > MOST_BYTES:
        return 8, [f"Not known to me: the file is larger than {MOST_BYTES} bytes."]
    return verify(text)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -I checker.py RECORD.json")
        return 8
    code, said = verify_file(arguments[0])
    print("\n".join(re.sub(r"[^ -~]", "?", line) for line in said))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
