"""Check a certificate of m2bridge. Standard library only: ``python -I checker.py RECORD.json``.

A certificate states one fact about one program (a network), for example its dimension, and contains what is needed to verify
it: the program, a point, and arguments. ``docs/certificates.md`` specifies the format. This file reads the document strictly,
computes everything again with exact integers, and prints what is shown. It verifies dimensions and symmetries of programs.

Two files are optional and are loaded if they stand beside this one. ``checker_further.py`` has exponentials, roots, upper
bounds by compositions and by equations, and statements about points and closures. ``checker_families.py`` compares the program
with the built-in network that the certificate names, and the record that contains the certificate with what that shows.

Exit codes: 0 verified; 9 partly verified (the certificates hold, but do not show all of the record); 7 rejected (something in the
document is false, an argument does not show what it is for, or the document is not written as the format demands); 8 not known
(no certificate, another format, too large, not enough memory, a file beside this one is missing, the document cannot be read, or
other arguments); 5 stopped by the limit of processor time (a minute; ``--seconds N`` changes it); 1 an error of this program.

Lemmas. Functions cite them by number; checker_further.py has more of them. Each has a test, ``test_lemma_N_...`` in
``tests/checker/test_lemmas.py``: a false document that would pass if the hypothesis were not checked. Notation: J is the
Jacobian of the outputs by the n weights.

 [1] Rank modulo p. The entries of J are rational functions of weights and inputs with rational coefficients; their denominators
     divide products of the constants' denominators and of the values under `reciprocal`. Where none of these is zero modulo p,
     a minor that is not zero modulo p is not zero. So the rank modulo p at one point is at most the generic rank. The author of
     a document chooses the prime and the point; a bad choice can only make the rank smaller. Schwartz and Zippel's lemma is not
     needed, nor is Hensel's: points modulo p are reductions of integers.
 [2] Dimension. In characteristic 0 the closure of the image of a map has the generic rank of its Jacobian as its dimension
     (Shafarevich, Basic Algebraic Geometry 1, II.6.2). Outputs at chosen inputs are linear in the coefficients of the function:
     the rank of their derivatives is at most that of the coefficients.
 [3] Counting. The rank of J is at most the number of weights and, if the outputs are polynomials in the n inputs, at most the
     number of their coefficients that are not identically zero. Let S(f) be a set that contains the degrees in the inputs of all
     terms of f, empty for f = 0. Then S(f) united with S(g) serves for f + g, and all sums of an element of each for f g. There
     are C(n+k-1, k) monomials of degree k in n variables (Stanley, Enumerative Combinatorics 1, 1.2).
 [4] Kernel. If a vector field xi does not change the function, J xi = 0 identically. So the generic rank of J is at most n
     minus the generic rank of such fields, which by [1] is at least their rank at one point modulo p.
 [5] Groups. Fields that do not change a function are closed under the Lie bracket (xi f = eta f = 0 gives [xi, eta] f = 0), and
     matrices E_(i,i+1), E_(i+1,i) generate those of trace zero (Humphreys, Introduction to Lie Algebras, 1.2). GL(n, C) and its
     torus are connected, also without the analytic hypersurface of all g at which f(g w) is not defined; so they do not change f
     if their fields do not. If f has square roots, of two values, only g near the identity serve: -w for w changes sqrt(w^2) / w.
 [6] Substitution. An identity of polynomials in unknowns holds for all values of the unknowns. Values y of exp, reciprocal, sqrt
     and softmax satisfy dy = y dt, dy = -y^2 dt, 2 y dy = dt, dy_i = y_i (dt_i - sum_j y_j dt_j), a line of softmax adds up to
     1, and a reciprocal y of t satisfies y t = 1.
 [7] Random points. Let G be a polynomial with integer coefficients, not zero, of degree at most D, and let its absolute
     coefficients add up to at most 2^H. Draw a prime p between 2^61 and 2^63 and a point modulo p, both uniformly. With
     probability at most (D + H) / 2^61, G is zero at the point. For p divides one fixed coefficient with probability below
     H / 2^62: it has at most H / 61 such divisors, and there are more than 2^56.9 such primes (Rosser, Schoenfeld 1962, Corollary
     1); otherwise G modulo p is zero at the point with probability at most D / p (Schwartz 1980, Zippel 1979). `Sizes` bounds D
     and H for the numerator of a difference of two values: it is a polynomial in variables and in reciprocals r = 1/v; if it has
     degree d, multiplying by all v^d for the reciprocals of the highest level adds d times the degrees and heights of the v.
     (Units are drawn from 1 to p - 1 >= 2^61. In specs exp and sqrt are random functions: two arguments may be equal by chance.)
     This is used for relations between arguments of exponentials and to compare a program with its spec and with a text; the
     probability is printed. The generators of a closure are counted modulo such a prime, which is printed too. Nothing else can
     be verified wrongly by chance, but for [18]. (True documents can be rejected by chance.)
 [8] Last layer. Let the outputs be V Z, with V used once. Rows of V occur in their own outputs only. So the matrix of
     derivatives by some rows of V and by other weights is block triangular with the columns of Z in its diagonal blocks, and
     ranks add up.
 [9] Primes. Miller and Rabin's test with the first twelve primes errs for no number below 3 * 10^23 (Sorenson, Webster 2017).
[18] Solutions (after Dumas, Kaltofen, 2014). If a square matrix A modulo p is singular, A x = b has a solution for at most one in
     p right-hand sides b. These are drawn from a hash of the program and of everything in the argument but the solutions, so that
     nothing that determines A can be chosen after b; each further choice that somebody tries passes with probability at most
     p^-k, at most 2^-100, for k right-hand sides. It needs no elimination.

Contents: 1 Documents   2 Programs   3 Numbers   4 Evaluation   5 Linear algebra   6 Minors   7 Symmetries   8 Upper bounds
9 Dimensions and symmetries   10 Last layers   11 Documents and outcomes.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from hashlib import sha256
from itertools import accumulate, chain, groupby, pairwise
from math import gcd, prod
from operator import mul
from pathlib import Path
from types import ModuleType
from typing import Any

Shape = tuple[int, ...]
Numbers = list[Any]
Table = list[list[int]]
Vector = dict[int, int]

MOST_BYTES = 16 * 2**20  # of a document
MOST_ENTRIES = 4 * 2**20  # of all arrays of a program together
MOST_TERMS = 10**7  # products of terms in one expansion of polynomials
MOST_DEGREE = 1000  # of a monomial in a document
LEAST_CHALLENGE = 2**100  # right-hand sides that solutions of a minor were drawn from [18]
MOST_SECONDS = 60  # of processor time, if --seconds does not say otherwise
MOST_MEMORY = 4 * 2**30  # bytes of address space
LARGE = 10**4000
RANDOM = random.SystemRandom()
REPEATS = 4  # random points for an identity
LEAST_EXPONENT = 40  # an error of 2^-40 is the largest that is accepted
EQUAL = (
    f"are equal at {REPEATS} random points modulo random primes above 2^61"
    " (if they were not equal, this would have a probability below 2^-{k})"
)
SOLVED = "The minor has solutions for drawn right-hand sides (if it were zero: a probability below 2^-100)."
WHERE = ", wherever the program is defined (that it is defined somewhere was not verified)"


class Rejected(Exception):  # noqa: N818 - a verdict
    """Something in the document is false, or is not written as the format demands."""


class Undefined(Rejected):
    """A denominator or a radicand is zero at a point modulo a prime."""


class NoRoot(Rejected):
    """A number is not a square modulo a prime."""


class Unknown(Exception):  # noqa: N818 - a verdict
    """The document may be true; this checker does not decide it."""


def need(condition: bool, reason: str) -> None:
    """Reject the document if a condition does not hold."""
    if not condition:
        raise Rejected(reason)


def bound_size(size: float, most: float = MOST_ENTRIES) -> None:
    """Refuse to decide about something that is too large."""
    if size > most:
        raise Unknown(f"this has a size of about {min(size, 10**300):.0e}; this checker stops at {most:.0e}")


# == 1. Documents ========================================================================================


def read_json(data: str | bytes) -> Any:
    """Read a document. Keys that occur twice, NaN, and integers of more than 4300 digits are refused."""

    def read_table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object of its pairs of keys and values."""
        need(len(dict(pairs)) == len(pairs), "a key occurs twice in one object")
        return dict(pairs)

    bound_size(len(data), MOST_BYTES)
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        # int("NaN") is a ValueError
        return json.loads(text, object_pairs_hook=read_table, parse_constant=int)
    except (ValueError, RecursionError):
        raise Rejected("the document is not JSON in UTF-8, or is nested too deeply") from None


def read_object(value: Any, what: str, *names: str) -> list[Any]:
    """Return the values of an object that has exactly these keys."""
    keys_agree = type(value) is dict and set(value) == set(names)
    need(keys_agree, f"{what} has the keys {', '.join(names)} and no others")
    return [value[name] for name in names]


Kinds = dict[str, tuple[Callable[..., Any], tuple[str, ...]]]
"""For each kind of an object: the function that checks it, and its other keys."""


def by_kind(value: Any, what: str, table: str) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function for an object of this kind, and the values of its other keys.

    `table` is the name of the tables of kinds in this file and in checker_further.py.
    """
    kind, others = kind_of(value), beside("further")
    kinds: Kinds = globals()[table] | (getattr(others, table) if others else {})
    if kind in BESIDE:
        load(BESIDE[kind], what)
    need(kind in kinds, f"{what} is of no kind that the format knows")
    function, names = kinds[kind]
    return function, read_object(value, f"{what}: {kind}", "kind", *names)[1:]


def kind_of(value: Any) -> str:
    """Return the kind of an object; an empty text if it has none."""
    kind = value.get("kind") if type(value) is dict else None
    return kind if type(kind) is str else ""


def read_integer(value: Any, low: int, high: int, what: str) -> int:
    """Return an integer of a range."""
    if type(value) is not int or not low <= value <= high:
        raise Rejected(f"{what} is an integer from {printable(low)} to {printable(high)}")
    return value


def read_list(value: Any, what: str, length: int | None = None) -> list[Any]:
    """Return a copy of a list, of this length if one is demanded."""
    need(
        type(value) is list and length in (None, len(value)),
        f"{what} is a list of {'values' if length is None else length}",
    )
    return list(value)


def read_integers(value: Any, low: int, high: int, what: str, length: int | None = None) -> list[int]:
    """Return a list of integers of a range."""
    return [read_integer(x, low, high, what) for x in read_list(value, what, length)]


def read_different(value: Any, count: int, what: str) -> list[int]:
    """Return a list of different integers from 0 to count - 1."""
    numbers = read_integers(value, 0, count - 1, what)
    need(len(set(numbers)) == len(numbers), f"{what} is listed twice")
    return numbers


def printable(value: Any) -> str:
    """Write a value as a short text without control characters."""
    text = str(value) if type(value) is not int or abs(value) < 10**30 else "..."
    return re.sub(r"[^ -~]", "?", text if len(text) <= 160 else text[:150] + "...")


def is_prime(n: int) -> bool:
    """Test whether a number below 2^64 is a prime [9]."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n <= bases[-1] or n % 2 == 0:
        return n in bases
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    powers = ([pow(b, n - 1 >> k, n) for k in range(1, twos + 1)] for b in bases)
    return all(roots[-1] == 1 or n - 1 in roots for roots in powers)


def read_prime(value: Any) -> int:
    """Return a prime below 2^63."""
    p = read_integer(value, 2, 2**63 - 1, "a prime")
    need(is_prime(p), f"{p} is not a prime")
    return p


def stream(seed: int, number: int, count: int, first: int = 0) -> Iterator[int]:
    """Generate numbers of a splitmix64 stream, from the first one or a later one on."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        """Mix the bits of a number."""
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    start = mix(2**32 * seed + number & mask)
    return (mix(start + (i + 1) * 0x9E3779B97F4A7C15 & mask) for i in range(first, first + count))


def read_seed(value: Any) -> int:
    """Return the seed or the number of a stream."""
    return read_integer(value, 0, 2**32 - 1, "a seed or a stream")


def read_point(value: Any, count: int, p: int) -> list[int]:
    """Return a POINT: residues modulo p, listed, or drawn from a stream with some entries fixed."""
    if type(value) is dict and set(value) == {"entries"}:
        return read_integers(value["entries"], 0, p - 1, "an entry of a point", count)
    seed, number, fixed = read_object(value, "a point without entries", "seed", "stream", "fixed")
    entries = [x % p for x in stream(read_seed(seed), read_seed(number), count)]
    end = 0
    for run in read_list(fixed, "fixed"):
        start, values = read_list(run, "a run of fixed entries", 2)
        start = read_integer(start, end, count, "a start")
        residues = read_integers(values, 0, p - 1, "a fixed entry")
        end = start + len(residues)
        need(bool(residues) and end <= count, "a run of fixed entries leaves the point")
        entries[start:end] = residues
    return entries


def read_rational(text: str) -> Fraction | int:
    """Return a rational number in lowest terms."""
    need(bool(re.fullmatch(RATIONAL, text)), "a rational number is not written like this")
    above, _, below = text.partition("/")
    lowest = not below or (gcd(int(above), int(below)) == 1 and below != "1")
    need(lowest, "a fraction is not in lowest terms")
    return Fraction(int(above), int(below)) if below else int(above)


def read_numbers(value: Any, what: str, length: int | None = None) -> Numbers:
    """Return rational numbers: integers, or fractions as texts."""
    numbers = [read_rational(x) if type(x) is str and "/" in x else x for x in read_list(value, what, length)]
    need(all(type(x) in (int, Fraction) for x in numbers), f"{what}: integers, or fractions as texts")
    return numbers


def read_monomial(value: Any, count: int) -> Shape:
    """Return a monomial as the sorted tuple of its variables, from pairs of an index below `count` and an exponent."""
    pairs = [read_integers(pair, 0, 10**6, "an exponent", 2) for pair in read_list(value, "a monomial")]
    ascending = all(i < j for (i, _), (j, _) in pairwise(pairs))
    need(ascending and all(i < count and e > 0 for i, e in pairs), "a monomial is not written like this")
    bound_size(sum(e for _, e in pairs), MOST_DEGREE)
    return tuple(i for i, e in pairs for _ in range(e))


def split_list(values: Numbers, size: int, count: int) -> list[Numbers]:
    """Split a list into so many lists of one size."""
    return [values[n * size : (n + 1) * size] for n in range(count)]


# == 2. Programs =========================================================================================

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
NATURAL = r"(?:0|[1-9][0-9]{0,9})"
RATIONAL = r"(?:0|-?[1-9][0-9]{0,3998})(?:/[1-9][0-9]{0,3998})?"
SHAPE = rf"\[(?:{NATURAL}(?:,{NATURAL})*)?\]"
RUN = rf"{NATURAL}:{NATURAL}:-?{NATURAL}"
WORDS: dict[str, tuple[list[str], int | None]] = {  # words before the operands, and the number of operands
    "weight": ([NAME, SHAPE], 0), "input": ([NAME, SHAPE], 0), "add": ([], 2), "multiply": ([], 2), "scale": ([RATIONAL], 1),
    "power": ([NATURAL], 1), "einsum": ([r"[a-z]*(?:,[a-z]*)?->[a-z]*"], None), "reshape": ([SHAPE], 1),
    "slice": ([rf"{RUN}(?:,{RUN})*"], 1), "gather": ([SHAPE, rf"{NATURAL}(?:,{NATURAL})*"], 1),
    "concatenate": ([NATURAL], None), "softmax": ([NATURAL], 1), "exp": ([], 1), "reciprocal": ([], 1),
    "sqrt": ([], 1),
}  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz"
BILINEAR = ("einsum", "multiply")
EXPONENTIAL = ("softmax", "exp")
ANALYTIC = (*EXPONENTIAL, "reciprocal", "sqrt")
ORDER = {"weight": 0, "input": 1}  # everything else comes after them


@dataclass(frozen=True, slots=True)
class Gate:
    """One instruction of a program. Its plan is what is the same at every point: for einsum and multiply contractions for the
    value and for both transposes; for softmax its lines; else, for each operand, the index in it that each entry of the result
    reads, or None.
    """

    operation: str
    words: list[Any]  # the constants
    operands: list[int]
    shape: Shape
    plan: Any = None


class Circuit:
    """A program. Weights come first, then inputs; flat weights are their entries, one weight after the other."""

    def __init__(self, gates: list[Gate], outputs: list[int], digest: str = "") -> None:
        """Number the flat weights, and list for each flat output its instruction and the index in the value of that.

        `digest` is the hash of the text; a part of a program has none.
        """
        self.gates, self.outputs, self.digest = gates, outputs, digest
        self.weights = {gate.words[0]: k for k, gate in enumerate(gates) if gate.operation == "weight"}
        self.inputs = {gate.words[0]: k for k, gate in enumerate(gates) if gate.operation == "input"}
        ends = list(accumulate((self.size(k) for k in self.weights.values()), initial=0))
        self.flat = {name: range(*pair) for name, pair in zip(self.weights, pairwise(ends), strict=True)}
        self.parameters, self.input_size = ends[-1], self.size(*self.inputs.values())
        self.output_entries = [(k, index) for k in outputs for index in range(self.size(k))]
        self.polynomial = not self.uses(*ANALYTIC)

    def size(self, *instructions: int) -> int:
        """Count the entries of the values of instructions."""
        return sum(prod(self.gates[k].shape) for k in instructions)

    def uses(self, *operations: str) -> bool:
        """Tell whether an instruction is one of these operations."""
        return any(gate.operation in operations for gate in self.gates)

    def depends(self, instructions: set[int]) -> list[bool]:
        """Return, for each instruction, whether its value depends on one of these."""
        reached: list[bool] = []
        for k, gate in enumerate(self.gates):
            reached.append(k in instructions or any(reached[j] for j in gate.operands))
        return reached


def read_program(text: Any) -> Circuit:
    """Read a program from its canonical text."""
    need(type(text) is str and text.isascii(), "a program is ASCII text")
    lines = text.split("\n")
    need(lines[0] == "m2bridge program 1" and lines[-1] == "", "a program has a header and ended lines")
    gates: list[Gate] = []
    outputs: list[int] = []
    names: list[str] = []
    entries = 0
    for line in lines[1:-1]:
        tail = re.fullmatch(rf"output ({NAME}) %({NATURAL})", line)
        if tail:
            need(int(tail[2]) < len(gates), "an output is not computed")
            outputs.append(int(tail[2]))
            names.append(f"output {tail[1]}")
            continue
        need(not outputs, "instructions come before outputs")
        gates.append(read_gate(line, gates))
        entries += prod(gates[-1].shape)
        bound_size(entries)
    kinds = [ORDER.get(gate.operation, 2) for gate in gates]
    need(kinds == sorted(kinds) and 0 in kinds, "weights come first, then inputs, then the computation")
    names += [gate.words[0] for gate in gates if gate.operation in ORDER]
    need(len(set(names)) == len(names), "a name is used twice")
    need(bool(outputs), "a program has an output")
    bound_size(sum(prod(gates[k].shape) for k in outputs))
    return Circuit(gates, outputs, sha256(text.encode()).hexdigest())


def read_gate(line: str, before: list[Gate]) -> Gate:
    """Read one line of a program, after the instructions before it."""
    words, what = line.split(" "), f"instruction {len(before)}"
    need(len(words) > 2 and words[:2] == [f"%{len(before)}", "="], f"{what} is missing or has another number")
    operation, words = words[2], words[3:]
    if operation == "constant":
        need(len(words) > 1 and bool(re.fullmatch(SHAPE, words[0])), f"{what} is not a constant")
        gate = Gate(operation, [read_rational(word) for word in words[1:]], [], integers_in(words[0]))
        need(prod(gate.shape) == len(gate.words), f"{what} has another number of entries than its shape")
    else:
        need(operation in WORDS, f"{what} is not one that the format knows")
        patterns, count = WORDS[operation]
        constants, operands = words[: len(patterns)], words[len(patterns) :]
        written = len(constants) == len(patterns) and all(map(re.fullmatch, patterns, constants))
        written = written and all(re.fullmatch(f"%{NATURAL}", word) for word in operands)
        need(written, f"{what} is not written like this")
        places = [int(word[1:]) for word in operands]
        need(all(k < len(before) for k in places), f"{what}: an operand comes later")
        need(count is None or len(places) == count, f"{what}: {operation} has {count} operands")
        shapes = [before[k].shape for k in places]
        values, shape, plan = TYPES.get(operation, type_entrywise)(operation, constants, shapes, what)
        gate = Gate(operation, values, places, shape, plan)
    need(all(gate.shape) and len(gate.shape) <= 20, f"{what} has an empty axis or too many axes")
    return gate


def integers_in(text: str) -> Shape:
    """Return the integers in a text."""
    return tuple(map(int, re.findall("-?[0-9]+", text)))


def flat_indices(lengths: Sequence[int], steps: Sequence[int], start: int = 0) -> list[int]:
    """List the flat indices of a grid: a start plus the sums of index times step, last axis fastest."""
    bound_size(prod(lengths))
    indices = [start]
    for n, step in zip(lengths, steps, strict=True):
        indices = [index + i * step for index in indices for i in range(n)]
    return indices


def row_major(shape: Sequence[int]) -> list[int]:
    """Return the step of each axis of an array."""
    return [prod(shape[k + 1 :]) for k in range(len(shape))]


def lettered_indices(lengths: dict[str, int], term: str, letters: str) -> list[int]:
    """List the flat indices in an array with the axes `term` while `letters` run, the last one fastest."""
    step = dict(zip(term, row_major([lengths[c] for c in term]), strict=True))
    return flat_indices([lengths[c] for c in letters], [step.get(c, 0) for c in letters])


class Contraction:
    """The map result[kept] = sum over the other letters of x[...] y[...]; a letter that an array lacks has step 0."""

    def __init__(self, lengths: dict[str, int], x: str, y: str, kept: str) -> None:
        """Tabulate the indices of both arrays, those of the result apart from those of the sum."""
        summed = "".join(c for c in lengths if c not in kept and c in x + y)
        self.products = prod(lengths.values())
        bound_size(self.products)
        self.sides = [[lettered_indices(lengths, term, run) for run in (kept, summed)] for term in (x, y)]

    def __call__(self, ring: Any, x: Numbers, y: Numbers) -> Numbers:
        """Apply the map to two flat arrays."""
        tables, zero = [], ring.number(0)
        for values, (outer, inner) in zip((x, y), self.sides, strict=True):
            rows = {o: [values[o + i] for i in inner] for o in set(outer)}
            full = {o: row if any(row) else None for o, row in rows.items()}
            tables.append([full[o] for o in outer])
        return [ring.dot(u, v) if u and v else zero for u, v in zip(*tables, strict=True)]


def contractions(lengths: dict[str, int], x: str, y: str, result: str) -> list[Contraction]:
    """Make a sum of products, and its transposes: a derivative times one array, summed to the shape of the other."""
    return [Contraction(lengths, *way) for way in ((x, y, result), (result, y, x), (result, x, y))]


Typed = tuple[list[Any], Shape, Any]
"""The constants of an instruction, the shape of its result, and its plan."""


def type_variable(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a weight or an input."""
    return [words[0]], integers_in(words[1]), None


def type_broadcast(operation: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a sum or a product of two arrays, aligned at their last axes."""
    letters = LETTERS[: max(map(len, shapes))]
    aligned = [(1,) * (len(letters) - len(shape)) + shape for shape in shapes]
    pairs = list(zip(*aligned, strict=True))
    need(all(m == n or 1 in (m, n) for m, n in pairs), f"{what}: the shapes do not fit")
    shape = tuple(map(max, pairs))
    lengths = dict(zip(letters, shape, strict=True))
    x, y = ("".join(c for c, n in zip(letters, side, strict=True) if n > 1) for side in aligned)
    if operation == "multiply":
        return [], shape, contractions(lengths, x, y, letters)
    return [], shape, [lettered_indices(lengths, term, letters) for term in (x, y)]


def type_einsum(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a sum of products."""
    left, _, result = words[0].partition("->")
    terms, lengths = left.split(","), dict[str, int]()
    fits = f"{what}: the shapes do not fit"
    need([len(term) for term in terms] == [len(shape) for shape in shapes], fits)
    letters = "".join(dict.fromkeys("".join(terms)))
    need(LETTERS.startswith(letters), f"{what}: letters do not come in order")
    once = all(len(set(term)) == len(term) for term in (*terms, result)) and set(result) <= set(letters)
    need(once, f"{what}: a letter occurs twice in a term, or only in the result")
    for letter, n in zip("".join(terms), chain(*shapes), strict=True):
        need(lengths.setdefault(letter, n) == n, fits)
    x, y = (*terms, "")[:2]
    return [x, y, result], tuple(lengths[c] for c in result), contractions(lengths, x, y, result)


def type_slice(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a slice: for each axis start, count and step."""
    runs, steps = [integers_in(run) for run in words[0].split(",")], row_major(shapes[0])
    need(len(runs) == len(shapes[0]), f"{what}: the shapes do not fit")
    for (start, count, step), n in zip(runs, shapes[0], strict=True):
        inside = 0 <= start < n and 0 <= start + (count - 1) * step < n
        need(inside and (step == 1 if count == 1 else step != 0), f"{what}: a slice leaves the array")
    starts, shape, jumps = zip(*runs, strict=True)
    return [], shape, [flat_indices(shape, list(map(mul, jumps, steps)), sum(map(mul, starts, steps)))]


def type_gather(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a list of entries."""
    shape, indices = map(integers_in, words)
    need(len(indices) == prod(shape) and max(indices) < prod(shapes[0]), f"{what}: the shapes do not fit")
    return [], shape, [indices]


def type_concatenate(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type arrays that are joined along an axis: their rows in turn."""
    axis, first = int(words[0]), shapes[0] if shapes else ()
    fits = len(shapes) > 1 and all(len(s) == len(first) > axis for s in shapes)
    fits = fits and len({(*s[:axis], 0, *s[axis + 1 :]) for s in shapes}) == 1
    need(fits, f"{what}: the shapes do not fit")
    shape = (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])
    bound_size(prod(shape) * len(shapes), 4 * MOST_ENTRIES)
    rows = [(side, prod(s[axis:])) for side, s in enumerate(shapes)]
    read = [(side, o * n + i) for o in range(prod(first[:axis])) for side, n in rows for i in range(n)]
    return [], shape, [[i if side == operand else None for side, i in read] for operand, _ in rows]


def type_softmax(_: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type a softmax along an axis; its lines are lists of flat indices."""
    axis, shape = int(words[0]), shapes[0]
    need(axis < len(shape), f"{what}: the shapes do not fit")
    steps = row_major(shape)
    starts = flat_indices(shape[:axis] + shape[axis + 1 :], steps[:axis] + steps[axis + 1 :])
    return [axis], shape, [range(o, o + shape[axis] * steps[axis], steps[axis]) for o in starts]


def type_entrywise(operation: str, words: list[str], shapes: list[Shape], what: str) -> Typed:
    """Type an instruction that acts on each entry, and reshape."""
    constants = [read_rational(word) for word in words] if operation in ("scale", "power") else []
    shape = integers_in(words[0]) if operation == "reshape" else shapes[0]
    need(prod(shape) == prod(shapes[0]), f"{what}: the shapes do not fit")
    need(operation != "power" or 2 <= constants[0] <= 10**6, f"{what}: the exponent is out of range")
    return constants, shape, [range(prod(shape))]


TYPES: dict[str, Callable[[str, list[str], list[Shape], str], Typed]] = {
    "weight": type_variable, "input": type_variable, "add": type_broadcast, "multiply": type_broadcast, "einsum": type_einsum,
    "slice": type_slice, "gather": type_gather, "concatenate": type_concatenate, "softmax": type_softmax,
}  # fmt: skip


# == 3. Numbers ==========================================================================================


class Ring:
    """What all kinds of numbers share: sums of products and powers, made of `add` and `multiply`."""

    add: Callable[[Any, Any], Any]
    multiply: Callable[[Any, Any], Any]
    number: Callable[[Fraction | int], Any]
    exp: Callable[[Any], Any]  # this and the next two not for all kinds
    reciprocal: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]

    def dot(self, xs: Numbers, ys: Numbers) -> Any:
        """Sum products."""
        return reduce(self.add, map(self.multiply, xs, ys), self.number(0))

    def power(self, x: Any, n: int) -> Any:
        """Raise to a power."""
        result = self.number(1)
        for bit in f"{n:b}":
            result = self.multiply(result, result)
            result = self.multiply(result, x) if bit == "1" else result
        return result

    def minus(self, x: Any) -> Any:
        """Change the sign."""
        return self.multiply(self.number(-1), x)

    def softmax(self, xs: Numbers) -> Numbers:
        """Divide exponentials by their sum."""
        return self.normalise([self.exp(x) for x in xs])

    def normalise(self, xs: Numbers) -> Numbers:
        """Divide numbers by their sum."""
        total = self.reciprocal(reduce(self.add, xs))
        return [self.multiply(x, total) for x in xs]


class ModP(Ring):
    """Integers modulo a prime."""

    def __init__(self, p: int) -> None:
        """Choose the prime."""
        self.p = p

    def number(self, q: Fraction | int) -> int:
        """Reduce a rational number."""
        if type(q) is int:
            return q % self.p
        need(q.denominator % self.p != 0, "the prime divides a denominator")
        return int(q.numerator * pow(q.denominator, -1, self.p) % self.p)

    def add(self, x: int, y: int) -> int:
        """Add."""
        return (x + y) % self.p

    def multiply(self, x: int, y: int) -> int:
        """Multiply."""
        return x * y % self.p

    def dot(self, xs: list[int], ys: list[int]) -> int:
        """Sum products, and reduce once."""
        return int(sum(map(mul, xs, ys)) % self.p)

    def power(self, x: int, n: int) -> int:
        """Raise to a power."""
        return pow(x, n, self.p)

    def reciprocal(self, x: int) -> int:
        """Invert a number that is not zero."""
        if x == 0:
            raise Undefined(f"a denominator is zero modulo {self.p}")
        return pow(x, -1, self.p)

    def sqrt(self, x: int) -> int:
        """Return the root below p / 2, by Cipolla: (z + sqrt(d))^((p + 1) / 2) for a number d = z^2 - x that is not a square."""
        p, half = self.p, (self.p - 1) // 2
        if p == 2 or x == 0:
            raise Undefined(f"a radicand is zero modulo {p}")
        if pow(x, half, p) != 1:
            raise NoRoot(f"a radicand is not a square modulo {p}")
        z = next(z for z in range(p) if pow(z * z - x, half, p) == p - 1)
        a, b, d = 1, 0, z * z - x
        for bit in f"{half + 1:b}":
            a, b = (a * a + b * b * d) % p, 2 * a * b % p
            if bit == "1":
                a, b = (a * z + b * d) % p, (a + b * z) % p
        return min(a, p - a)


class RandomField(ModP):
    """Integers modulo a random prime, exp and sqrt random functions: what differs here differs as an expression [7]."""

    def __init__(self) -> None:
        """Draw the prime and the function."""
        super().__init__(next(n for n in iter(lambda: RANDOM.randrange(2**61, 2**63), 0) if is_prime(n)))
        self.key = RANDOM.randbytes(32)

    def exp(self, x: int) -> int:
        """Hash the argument with the key."""
        return int.from_bytes(sha256(self.key + x.to_bytes(8, "little")).digest(), "little") % self.p

    def sqrt(self, x: int) -> int:
        """Hash the argument with another key. Identities that rest on the square of a root are not seen."""
        digest = sha256(b"root" + self.key + x.to_bytes(8, "little")).digest()
        return int.from_bytes(digest, "little") % self.p

    def drawn(self, count: int) -> list[int]:
        """Draw numbers."""
        return [RANDOM.randrange(self.p) for _ in range(count)]


Polynomial = dict[Shape, Any]
"""Coefficients of monomials; a monomial is the sorted tuple of its variables."""
variable: Any = cache(lambda i: {(i,): 1})  # polynomials are never changed: all rings may share one


class Polynomials(Ring):
    """Polynomials with rational coefficients.

    Products of terms are counted; beyond `most` of them, and of very long ones, nothing is decided.
    """

    def __init__(self, most: int = MOST_TERMS) -> None:
        """Begin without variables."""
        self.count, self.terms, self.most = 0, 0, most

    def number(self, q: Fraction | int) -> Polynomial:
        """Make a constant."""
        return {(): q} if q else {}

    def variables(self, count: int) -> list[Polynomial]:
        """Make new variables."""
        self.count += count
        return list(map(variable, range(self.count - count, self.count)))

    def add(self, x: Polynomial, y: Polynomial) -> Polynomial:
        """Add."""
        return self.dot([x, y], [{(): 1}] * 2) if x and y else x or y

    def multiply(self, x: Polynomial, y: Polynomial) -> Polynomial:
        """Multiply."""
        return self.dot([x], [y])

    def dot(self, xs: Numbers, ys: Numbers) -> Polynomial:
        """Sum products."""
        pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x and y]
        degree = max((max(map(len, x)) + max(map(len, y)) for x, y in pairs), default=0)
        self.terms += sum(len(x) * len(y) for x, y in pairs) * max(1, degree // 10)
        bound_size(self.terms, self.most)
        bound_size(degree, 10**4)
        total: Polynomial = {}
        for x, y in pairs:
            for e, c in x.items():
                for f, d in y.items():
                    both = tuple(sorted(e + f)) if e and f else e or f
                    total[both] = total.get(both, 0) + c * d
        bound_size(max(map(bit_size, set(total.values())), default=0), 2**17)
        return {e: c for e, c in total.items() if c}


def bit_size(q: Fraction | int) -> int:
    """Count the bits of a rational number."""
    return q.numerator.bit_length() + q.denominator.bit_length()


class DegreeSets(Ring):
    """Sets of degrees that can occur, as bits of an integer; zero is the empty set [3]."""

    def number(self, q: Fraction | int) -> int:
        """Make the degrees of a constant."""
        return int(q != 0)

    def add(self, x: int, y: int) -> int:
        """Unite."""
        return x | y

    def multiply(self, x: int, y: int) -> int:
        """Add all pairs of degrees."""
        bound_size(x.bit_length() + y.bit_length(), 10**4)
        return reduce(int.__or__, (x << k for k in range(y.bit_length()) if y >> k & 1), 0)


# == 4. Evaluation =======================================================================================

# the value of an entrywise instruction at x, and its derivative: at x, or for exp and reciprocal at the value y; n is an
# exponent, and for scale the factor as a number of the ring
ENTRYWISE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scale": (lambda ring, n, x: ring.multiply(n, x), lambda ring, n, x: n),
    "power": (
        lambda ring, n, x: ring.power(x, n),
        lambda ring, n, x: ring.multiply(ring.number(n), ring.power(x, n - 1)),
    ),
    "exp": (lambda ring, n, x: ring.exp(x), lambda ring, n, y: y),
    "reciprocal": (lambda ring, n, x: ring.reciprocal(x), lambda ring, n, y: ring.minus(ring.multiply(y, y))),
    "sqrt": (lambda ring, n, x: ring.sqrt(x), lambda ring, n, y: ring.reciprocal(ring.add(y, y))),
}
Values = Callable[[int], Numbers]  # the flat value of an instruction, by its number


class Evaluation:
    """A program over one kind of numbers: values of all instructions, and derivatives in both directions.

    With `units`, exponentials are variables: their values follow the inputs, in the order of the instructions.
    """

    def __init__(self, circuit: Circuit, ring: Any, units: bool = False) -> None:
        """Convert the constants; exponents stay integers."""
        self.circuit, self.ring, self.units = circuit, ring, units
        self.constants: list[Numbers] = [
            [ring.number(x) for x in gate.words] if gate.operation in ("constant", "scale") else gate.words
            for gate in circuit.gates
        ]

    def values(self, weights: Numbers, inputs: Numbers, skipped: Sequence[bool] = ()) -> list[Numbers]:
        """Compute the flat values of all instructions, for flat weights and inputs; nothing for those that are skipped."""
        variables, start = [*weights, *inputs], 0
        values: list[Numbers] = []
        for k, gate in enumerate(self.circuit.gates):
            if skipped and skipped[k]:
                values.append([])
            elif gate.operation in ORDER or (self.units and gate.operation in EXPONENTIAL):
                end = start + prod(gate.shape)
                values.append(variables[start:end])
                start = end
                if gate.operation == "softmax":
                    values[-1] = self.along_lines(k, self.ring.normalise, values[-1])
            else:
                values.append(self.step(k, [values[j] for j in gate.operands]))
        need(start == len(variables), "a point has another number of entries than the program")
        return values

    def outputs(self, weights: Numbers, inputs: Numbers) -> Numbers:
        """Compute the flat outputs."""
        values = self.values(weights, inputs)
        return [x for k in self.circuit.outputs for x in values[k]]

    def step(self, k: int, xs: list[Numbers]) -> Numbers:
        """Compute the flat value of one instruction from those of its operands."""
        gate, ring = self.circuit.gates[k], self.ring
        operation, plan = gate.operation, gate.plan
        if operation in ANALYTIC and not hasattr(ring, "exp" if operation == "softmax" else operation):
            raise Unknown(f"a program with {operation} is not polynomial")
        if operation == "constant":
            return self.constants[k]
        if operation in BILINEAR:
            return list(plan[0](ring, *xs, *[[ring.number(1)]] * (2 - len(xs))))
        if operation in ENTRYWISE:
            value, n = ENTRYWISE[operation][0], (self.constants[k] or [None])[0]
            return [value(ring, n, x) for x in xs[0]]
        if operation == "softmax":
            return self.along_lines(k, ring.softmax, xs[0])
        # add, slice, gather, reshape, concatenate: sums of what the entries read
        places = (zip(xs, at, strict=True) for at in zip(*plan, strict=True))
        return [reduce(ring.add, [x[i] for x, i in each if i is not None]) for each in places]

    def along_lines(self, k: int, function: Callable[[Numbers], Numbers], xs: Numbers) -> Numbers:
        """Apply a function to each line of a softmax."""
        results: dict[int, Any] = {}
        for line in self.circuit.gates[k].plan:
            results |= zip(line, function([xs[i] for i in line]), strict=True)
        return [results[i] for i in range(len(results))]

    def derivative(self, k: int, side: int, value: Values, vector: Numbers, back: bool) -> Numbers:
        """Apply the derivative of instruction k by one operand to a vector; or its transpose, where `back`."""
        gate, ring = self.circuit.gates[k], self.ring
        zero, operation, plan = ring.number(0), gate.operation, gate.plan
        if operation in BILINEAR:
            other = value(gate.operands[1 - side]) if len(gate.operands) == 2 else [ring.number(1)]
            pair = [other, vector] if side == 1 and not back else [vector, other]
            return list(plan[(1 + side) if back else 0](ring, *pair))
        if operation == "softmax":  # d y_i = y_i (t_i - sum_j y_j t_j) [6]: a symmetric matrix
            y, result = value(k), [zero] * len(vector)
            for line in plan:
                mean = ring.dot([y[i] for i in line], [vector[i] for i in line])
                for i in line:
                    result[i] = ring.multiply(y[i], ring.add(vector[i], ring.minus(mean)))
            return result
        if not back:
            vector = [zero if i is None else vector[i] for i in plan[side]]
        if operation in ENTRYWISE:
            slope, n = ENTRYWISE[operation][1], (self.constants[k] or [None])[0]
            at = value(k if operation in ANALYTIC else gate.operands[0])
            vector = [ring.multiply(slope(ring, n, x), c) for x, c in zip(at, vector, strict=True)]
        if not back:
            return vector
        result = [zero] * self.circuit.size(gate.operands[side])
        for c, i in zip(vector, plan[side], strict=True):
            if i is not None:
                result[i] = ring.add(result[i], c)
        return result

    def slopes(self, values: list[Numbers], direction: Numbers) -> list[Numbers | None]:
        """Compute how the values of all instructions move if the flat weights move in a direction; None for those that do not."""
        slopes: list[Numbers | None] = []
        for k, gate in enumerate(self.circuit.gates):
            terms: list[Numbers] = []
            if gate.operation == "weight":
                flat = self.circuit.flat[gate.words[0]]
                terms.append(direction[flat.start : flat.stop])
            for side, j in enumerate(gate.operands):
                if (moved := slopes[j]) is not None:
                    terms.append(self.derivative(k, side, values.__getitem__, moved, False))
            slopes.append(reduce(lambda x, y: list(map(self.ring.add, x, y)), terms) if terms else None)
        return slopes

    def gradient(self, values: list[Numbers], k: int, index: int, wanted: list[bool]) -> dict[int, Numbers]:
        """Compute the derivatives of one entry of the value of instruction k by all weights that are wanted."""
        seed = [self.ring.number(0)] * self.circuit.size(k)
        seed[index] = self.ring.number(1)
        gradients = {k: seed}
        for at in reversed(range(k + 1)):
            operands = self.circuit.gates[at].operands
            if at in gradients and operands and wanted[at]:
                vector = gradients.pop(at)
                for side, j in enumerate(operands):
                    if wanted[j]:
                        term = self.derivative(at, side, values.__getitem__, vector, True)
                        both = map(self.ring.add, gradients[j], term) if j in gradients else term
                        gradients[j] = list(both)
        return gradients


# == 5. Linear algebra ===================================================================================


class Echelon:
    """Rows in echelon form modulo p. A row is one long integer with a slot for each entry, so that a row operation is one
    multiplication and one addition; slots are wide enough for width + 1 unreduced products.
    """

    def __init__(self, p: int, width: int, pivots: int | None = None) -> None:
        """Begin without rows. Pivots are sought in the first columns only, if their number is given."""
        self.p, self.width, self.most = p, width, width if pivots is None else pivots
        self.bytes = (2 * p.bit_length() + (width + 1).bit_length()) // 8 + 1
        self.rows: list[tuple[int, int]] = []

    def pack(self, row: list[int]) -> int:
        """Write the entries into the slots of one integer."""
        return int.from_bytes(b"".join(x.to_bytes(self.bytes, "little") for x in row), "little")

    def reduced(self, row: list[int]) -> list[int]:
        """Subtract multiples of the rows before."""
        p, size, mask = self.p, self.bytes, (1 << 8 * self.bytes) - 1
        packed = self.pack(row)
        for shift, other in self.rows:
            if factor := (packed >> shift & mask) % p:
                packed += (p - factor) * other
        data = packed.to_bytes(size * self.width, "little")
        return [int.from_bytes(data[i : i + size], "little") % p for i in range(0, len(data), size)]

    def add(self, row: list[int]) -> bool:
        """Keep a row, and return True, if it is independent of those before."""
        rest = self.reduced(row)
        column = next((c for c in range(self.most) if rest[c]), None)
        if column is None:
            return False
        inverse = pow(rest[column], -1, self.p)
        self.rows.append((8 * self.bytes * column, self.pack([x * inverse % self.p for x in rest])))
        return True


def rank(rows: Sequence[list[int]], p: int) -> int:
    """Compute the rank of rows modulo p."""
    echelon = Echelon(p, len(rows[0]) if rows else 0)
    return sum(echelon.add(row) for row in rows)


def sparse_rank(vectors: list[dict[Any, int]], p: int) -> int:
    """Compute the rank of sparse vectors. One with a coordinate of its own is independent of the others and is removed first."""
    users: dict[Any, set[int]] = {}
    for v, vector in enumerate(vectors):
        for key in vector:
            users.setdefault(key, set()).add(v)
    removed: set[int] = set()
    waiting = [key for key, several in users.items() if len(several) == 1]
    while waiting:
        for v in list(users[waiting.pop()]):  # one, or none
            removed.add(v)
            for key in vectors[v]:
                users[key].discard(v)
                if len(users[key]) == 1:
                    waiting.append(key)
    rest = [vector for v, vector in enumerate(vectors) if v not in removed]
    columns = list({key: 0 for vector in rest for key in vector})
    return len(removed) + rank([[vector.get(key, 0) for key in columns] for vector in rest], p)


def transpose(matrix: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Transpose a matrix."""
    return [list(column) for column in zip(*matrix, strict=True)]


def kernel(matrix: list[list[int]], p: int) -> list[list[int]]:
    """Compute a basis of the vectors v with matrix v = 0 modulo p, by elimination beside the identity."""
    columns, height = transpose(matrix), len(matrix)
    echelon, basis = Echelon(p, height + len(columns), height), []
    for k, column in enumerate(columns):
        row = [*column, *(int(i == k) for i in range(len(columns)))]
        if not echelon.add(row):
            basis.append(echelon.reduced(row)[height:])
    return basis


# == 6. Minors ===========================================================================================

Row = tuple[int, int, int]
"""A row of a Jacobian: the number of a sample, an instruction, the flat index in its value."""


def jacobian(
    run: Evaluation, weights: Numbers, samples: list[Numbers], rows: list[Row], columns: list[int]
) -> list[Numbers]:
    """Compute derivatives of entries of values by the flat weights in `columns`."""
    circuit, zero = run.circuit, run.ring.number(0)
    homes = {c: (circuit.weights[name], c - flat.start) for name, flat in circuit.flat.items() for c in flat}
    wanted = circuit.depends({homes[c][0] for c in columns})
    table: dict[Row, Numbers] = {}
    for sample, same_sample in groupby(sorted(set(rows)), key=lambda row: row[0]):
        values = run.values(weights, samples[sample])
        for row in same_sample:
            gradients = run.gradient(values, *row[1:], wanted)
            entries = (homes[c] for c in columns)
            table[row] = [gradients[j][i] if j in gradients else zero for j, i in entries]
    return [table[row] for row in rows]


@dataclass(frozen=True)
class Samples:
    """A program at a point modulo a prime, and at several inputs."""

    run: Evaluation
    weights: list[int]
    inputs: list[list[int]]  # of each sample; with units, then those in the place of exponentials

    def need_independent(self, rows: Table, columns: list[int]) -> None:
        """Reject if the derivatives of outputs [sample, flat output] by these flat weights are dependent modulo p [1]."""
        matrix = jacobian(self.run, self.weights, self.inputs, self.entries(rows), columns)
        need(rank(matrix, self.run.ring.p) == len(rows), f"the minor is zero modulo {self.run.ring.p}")

    def entries(self, rows: Table) -> list[Row]:
        """Return rows of the Jacobian for pairs of a sample and a flat output."""
        entries, count = self.run.circuit.output_entries, len(self.inputs)
        need(all(n < count and e < len(entries) for n, e in rows), "there is no such sample or output")
        return [(n, *entries[e]) for n, e in rows]

    def need_solutions(self, rows: Table, directions: Table, sides: Table) -> None:
        """Reject if a flat output [sample, flat output] does not move, along each direction of the weights, as its side says."""
        entries = self.entries(rows)
        order = sorted(range(len(rows)), key=lambda i: entries[i])
        for n, same_sample in groupby(order, key=lambda i: entries[i][0]):
            values, numbers = self.run.values(self.weights, self.inputs[n]), list(same_sample)
            for direction, side in zip(directions, sides, strict=True):
                slopes = self.run.slopes(values, direction)
                for i in numbers:
                    slope, index = slopes[entries[i][1]], entries[i][2]
                    need((slope[index] if slope else 0) == side[i], "a solution does not solve the equations")


def draw_sides(circuit: Circuit, argument: Any, p: int, count: int) -> list[list[int]]:
    """Draw right-hand sides from a hash of the program and of the argument without its solutions [18]."""
    need(bool(circuit.digest), "solutions are about a whole program")
    rest = {name: value for name, value in argument.items() if name != "solutions"}
    key = sha256(json.dumps([circuit.digest, rest], sort_keys=True, separators=(",", ":")).encode()).digest()
    hashes = (sha256(key + i.to_bytes(8, "little")).digest() for i in range(count * len(rest["rows"])))
    return split_list([int.from_bytes(x, "little") % p for x in hashes], len(rest["rows"]), count)


def check_lower(circuit: Circuit, argument: Any) -> int:
    """Return the dimension that an argument shows to be reached: the size of a minor of the Jacobian that is not zero [1] [2]."""
    layer = kind_of(argument) == "last layer"
    need(layer or kind_of(argument) == "minor", "the lower bound is of no kind that the format knows")
    units, roots = circuit.uses(*EXPONENTIAL), circuit.uses("sqrt")
    names = ["kind", "prime", "weights", "samples", "inputs", "rows", "columns"]
    solved = type(argument) is dict and "solutions" in argument and not layer
    kinds = {"exponentials": units, "roots": roots, "layer": layer, "tokens": layer, "solutions": solved}
    names += [name for name, needed in kinds.items() if needed]
    values = dict(zip(names, read_object(argument, "the lower bound", *names), strict=True))
    p, size = read_prime(values["prime"]), circuit.input_size
    count = read_integer(values["samples"], 1, 10**6 if size else 1, "the number of samples")
    weights = read_point(values["weights"], circuit.parameters, p)
    if units or roots:
        further = load("further", "a lower bound with exponentials or square roots")
        inputs = further.further_inputs(circuit, values, p, weights, count)
    else:
        inputs = split_list(read_point(values["inputs"], count * size, p), size, count)
    samples = Samples(Evaluation(circuit, ModP(p), units), weights, inputs)
    columns = read_different(values["columns"], circuit.parameters, "the minor is zero: a column")
    rows = [read_integers(row, 0, 10**9, "a row", 2) for row in read_list(values["rows"], "rows")]
    need(len(rows) == len(columns), "a minor has as many rows as columns")
    samples.run.values(weights, inputs[0])  # rejects a program that is not defined there, also without rows
    if layer:
        return check_last_layer(samples, values["layer"], values["tokens"], rows, columns)
    if not solved:
        samples.need_independent(rows, columns)
        return len(rows)
    listed = read_list(values["solutions"], "solutions")
    solutions = [read_integers(x, 0, p - 1, "a solution", len(columns)) for x in listed]
    need(p ** len(solutions) >= LEAST_CHALLENGE, "there are too few solutions")
    directions = [dict(zip(columns, x, strict=True)) for x in solutions]
    flat = [[direction.get(i, 0) for i in range(circuit.parameters)] for direction in directions]
    samples.need_solutions(rows, flat, draw_sides(circuit, argument, p, len(solutions)))
    return len(rows)


# == 7. Symmetries =======================================================================================

Field = dict[int, Polynomial]
"""Flat weight number i moves by polynomial number i in the flat weights; the others do not move."""


def symmetry_vectors(circuit: Circuit, weights: list[int], p: int, groups: Any, fields: Any) -> list[Vector]:
    """Verify groups and vector fields, and return the directions modulo p in which they move these weights [4]."""
    pairs = [group_fields(circuit, group) for group in read_list(groups, "groups")]
    polynomial = [read_field(circuit, value) for value in read_list(fields, "fields")]
    check_fields(circuit, [*chain(*(generating for generating, _ in pairs)), *polynomial])
    every = chain(*(spanning for _, spanning in pairs), polynomial)
    vectors = (field_at(vector_field, ModP(p), weights) for vector_field in every)
    return [{i: x for i, x in vector.items() if x} for vector in vectors]


def read_field(circuit: Circuit, value: Any) -> Field:
    """Return a polynomial vector field on the weights."""
    terms: list[tuple[int, int, Shape]] = []
    for term in read_list(value, "a vector field"):
        i, c, monomial = read_list(term, "a term of a vector field", 3)
        index = read_integer(i, 0, circuit.parameters - 1, "a weight")
        factor = read_integer(c, -LARGE, LARGE, "a factor")
        terms.append((index, factor, read_monomial(monomial, circuit.parameters)))
    need(bool(terms), "a vector field does not move anything")
    return sum_of_terms(terms)


def sum_of_terms(terms: Iterable[tuple[int, int, Shape]]) -> Field:
    """Make a field of terms (i, c, m): flat weight i moves by c times the monomial m."""
    total: Field = {}
    for i, c, monomial in terms:
        polynomial = total.setdefault(i, {})
        polynomial[monomial] = polynomial.get(monomial, 0) + c
    return total


def group_fields(circuit: Circuit, group: Any) -> tuple[list[Field], Iterable[Field]]:
    """Return fields that generate the Lie algebra of a group, which are to be verified, and fields that span it [5].

    For gl the generating ones are a diagonal D of squares, the sum of all E_(i,i+1), and that of all E_(i+1,i). Brackets with D
    multiply the terms of a sum by different numbers, so that each term is a combination of such brackets: these are differences
    2 k + 1 of consecutive squares. Copies of gl have a D each, with the next squares, and the two sums in common.
    """
    kind = group.get("group") if type(group) is dict else None
    if kind == "scaling":
        _, exponents = read_object(group, "a scaling", "group", "weights")
        named = type(exponents) is dict and bool(exponents) and set(exponents) <= set(circuit.flat)
        need(named, "a scaling names weights of the program")
        powers = {name: read_integer(k, -(10**6), 10**6, "an exponent") for name, k in exponents.items()}
        scaling: Field = {i: {(i,): k} for name, k in powers.items() for i in circuit.flat[name]}
        return [scaling], [scaling]
    need(kind in ("torus", "gl"), "a group is of no kind that the format knows")
    _, length, axes = read_object(group, f"a group: {kind}", "group", "size", "axes")
    size = read_integer(length, 1, 10**5, "the size of a group")
    tables, copies = read_axes(circuit, axes, size, kind == "gl")
    if kind == "torus":
        torus = [elementary_field(tables, [(0, i, i, 1)]) for i in range(size)]
        return torus, torus
    every = [(copy, i, j) for copy in range(copies) for i in range(size) for j in range(size)]
    squares = [(copy, i, j, (copy * size + i + 1) ** 2) for copy, i, j in every if i == j]
    generating = [elementary_field(tables, each) for each in split_list(squares, size, copies)]
    for side in (1, -1):
        neighbours = [(copy, i, j, 1) for copy, i, j in every if j - i == side]
        generating += [elementary_field(tables, neighbours)] if neighbours else []
    return generating, (elementary_field(tables, [(*each, 1)]) for each in every)


Axes = list[tuple[int, dict[tuple[int, int], list[int]]]]
"""For each axis with a label: the label, and the flat weights with (number of the copy, index on the axis), in one order."""


def elementary_field(tables: Axes, entries: Sequence[tuple[int, int, int, int]]) -> Field:
    """Return the field of a sum of c E_ij, for entries (copy, i, j, c).

    E_ij adds row j to row i; on axes of the inverse transpose it takes row i from row j.
    """
    terms = []
    for label, indices in tables:
        for copy, i, j, c in entries:
            to, source = (i, j) if label > 0 else (j, i)
            pairs = zip(indices[copy, to], indices[copy, source], strict=True)
            terms += [(x, c * label, (y,)) for x, y in pairs]
    return sum_of_terms(terms)


def read_axes(circuit: Circuit, axes: Any, size: int, linear: bool) -> tuple[Axes, int]:
    """Return the axes on which a group of this size acts, and the number of copies of the group."""
    most = 1 if linear else 10**6
    named = type(axes) is dict and bool(axes) and set(axes) <= set(circuit.flat)
    need(named, "axes names weights of the program")
    tables, copies = Axes(), set()
    for name, labels in axes.items():
        shape = circuit.gates[circuit.weights[name]].shape
        read_list(labels, "the labels of a weight", len(shape))
        stars = [axis for axis, label in enumerate(labels) if label == "*"]
        plain = [0 if label == "*" else read_integer(label, -most, most, "a label") for label in labels]
        need(any(plain) and len(stars) <= int(linear), "a weight has no label, or copies that are not known")
        fits = all(not label or n == size for label, n in zip(plain, shape, strict=True))
        need(fits, "an axis has another length than the group")
        copies.add(shape[stars[0]] if stars else 0)
        steps = row_major(shape)
        for axis in [axis for axis, label in enumerate(plain) if label]:
            table: dict[tuple[int, int], list[int]] = {}
            for k, index in enumerate(circuit.flat[name]):
                copy = k // steps[stars[0]] % shape[stars[0]] if stars else 0
                table.setdefault((copy, k // steps[axis] % size), []).append(index)
            tables.append((plain[axis], table))
    need(len(copies) == 1, "weights have different numbers of copies of the group")
    return tables, max(*copies, 1)


def field_at(vector_field: Field, ring: Any, weights: Numbers) -> dict[int, Any]:
    """Compute how the flat weights move at a point."""
    return {i: evaluate(ring, f, weights) for i, f in vector_field.items()}


def evaluate(ring: Any, f: Polynomial, values: Numbers) -> Any:
    """Compute a polynomial at these values of its variables; terms with a factor zero are left out."""
    factors = [(c, [values[j] for j in m]) for m, c in f.items() if all(values[j] for j in m)]
    terms = [reduce(ring.multiply, powers, ring.number(c)) for c, powers in factors]
    return ring.dot(terms, [ring.number(1)] * len(terms))


Attempt = tuple[int, bool]
"""How a field is verified: the arguments `last` and `solve` of `outputs_may_move`. All attempts are sound."""


def check_fields(circuit: Circuit, vector_fields: list[Field]) -> None:
    """Verify that vector fields do not change the function. The attempt that verified one field is tried first for the next."""
    bound_size(len(circuit.gates) if vector_fields else 0, 300)
    first: Attempt | None = None
    expanded: dict[int, Numbers] = {}
    for vector_field in vector_fields:
        first = check_field(circuit, vector_field, first, expanded)


def check_field(circuit: Circuit, vector_field: Field, first: Any = None, expanded: Any = None) -> Attempt:
    """Verify that the derivative of the outputs along a field is zero [6]. Return the attempt that succeeded.

    First values up to some instruction are unknowns where they do not move, or move linearly; with reciprocals also up to 0, and
    up to values with several uses before the first move. At last (-1) everything is expanded. Drawn points can only refute.
    """
    size, changes = circuit.parameters + circuit.input_size, "a vector field changes the function"
    too_large: Unknown | None = None
    products = sum(gate.plan[0].products for gate in circuit.gates if gate.operation in BILINEAR)
    uses = Counter(j for gate in circuit.gates for j in set(gate.operands))
    moved = {circuit.weights[w] for w, flat in circuit.flat.items() if any(i in flat for i in vector_field)}
    begin = min((k for k, gate in enumerate(circuit.gates) if moved.intersection(gate.operands)), default=0)
    early = [0, *(k for k in reversed(range(begin)) if uses[k] > 1)] if circuit.uses("reciprocal") else []
    lasts = [len(circuit.gates) - 1, *early, *range(len(circuit.gates) - 2, -2, -1)]
    order = [(last, solve) for last in lasts for solve in ((False, True) if early else (False,))]
    for number, attempt in enumerate(dict.fromkeys([first or order[0], *order])):
        ring = Polynomials(MOST_TERMS if attempt[0] < 0 else MOST_TERMS // 50 + 20 * products)
        try:
            run, variables = Evaluation(circuit, ring), ring.variables(size)
            if not outputs_may_move(run, variables, vector_field, attempt[0], attempt[1], expanded):
                return attempt
        except Unknown as reason:
            too_large = reason if attempt[0] < 0 else too_large
        if circuit.polynomial and number == 0:
            drawn = RandomField()
            run = Evaluation(circuit, drawn)
            need(not outputs_may_move(run, drawn.drawn(size), vector_field, -1, False), changes)
    raise too_large or Rejected(f"{changes}, or is not seen to keep it")


def outputs_may_move(  # noqa: C901, PLR0915 -- one case for each way to move
    run: Evaluation, variables: Numbers, vector_field: Field, last: int, solve: bool, expanded: Any = None
) -> bool:
    """Return False if it is shown that no output moves when the weights move along a field.

    Up to instruction number `last`, values that do not move, or of which each entry moves by a multiple of an entry, are unknowns
    that do the same. Values of exp, reciprocal, sqrt and softmax are always unknowns; a line of softmax adds up to one
    and, with `solve`, a reciprocal times its operand is one [6] (products with reciprocals and sums are not unknowns).

    Invariant, after instruction k: there is a substitution of functions of weights and inputs for the unknowns (the flat weights
    and inputs for themselves) that takes values[j] to the value of instruction j for each j <= k in `values`, and slopes[j] to
    its derivative along the field; slopes[j] = None stands for zero. New unknowns extend the substitution and change no old one.
    So slopes that are zero polynomials are zero; others may still become zero by the substitution.

    Values that are polynomials in weights and inputs alone, those of the instructions in `plain`, are the same for all fields;
    they are kept in `expanded`.
    """
    circuit, ring = run.circuit, run.ring
    zero, start, rates = ring.number(0), 0, field_at(vector_field, ring, variables)
    values: dict[int, Numbers] = {}
    slopes: list[Numbers | None] = []  # None for values that do not move
    rules: Rules = {}
    plain, kept = set[int](), {} if expanded is None or solve else expanded

    def value(k: int) -> Numbers:
        """Return the value of an instruction whose slopes are known, or unknowns in its place."""
        if k not in values:
            gate = circuit.gates[k]
            divides = any(circuit.gates[j].operation == "reciprocal" for j in gate.operands)
            solved = solve and gate.operation != "power" and (len(gate.operands) == 1 or divides)
            explicit = solved or not gate.operands
            if gate.operation in ANALYTIC or (k <= last and slopes[k] is None and not explicit):
                values[k] = ring.variables(circuit.size(k))
                for line in gate.plan if gate.operation == "softmax" else ():
                    rest = [ring.minus(values[k][i]) for i in line[1:]]
                    values[k][line[0]] = reduce(ring.add, rest, ring.number(1))
                if gate.operation == "reciprocal" and solve:
                    rules.update(rules_of_reciprocals(ring, value(gate.operands[0]), values[k]))
            else:
                xs = [value(j) for j in gate.operands]
                same = plain.issuperset(gate.operands)
                step = kept[k] if same and k in kept else run.step(k, xs)
                values[k] = [rewritten(ring, x, rules) for x in step] if rules else step
                if same:
                    plain.add(k)
                    kept[k] = step
        return values[k]

    for k, gate in enumerate(circuit.gates):
        terms: list[Numbers] = []
        if gate.operation in ORDER:
            end = start + circuit.size(k)
            values[k] = variables[start:end]
            plain.add(k)
            moves = gate.operation == "weight" and any(start <= i < end for i in rates)
            terms = [[rates.get(i, zero) for i in range(start, end)]] if moves else []
            start = end
        for side, j in enumerate(gate.operands):
            if (moved := slopes[j]) is not None and gate.operation == "sqrt":
                terms.append(root_slopes(ring, moved, value(j), value(k)))
            elif moved is not None:
                terms.append(run.derivative(k, side, value, moved, False))
        slope = reduce(lambda x, y: list(map(ring.add, x, y)), terms) if terms else []
        slope = [rewritten(ring, t, rules) for t in slope] if rules else slope
        slopes.append(slope if any(t != zero for t in slope) else None)
        replaced = slopes[k] is not None and k <= last and gate.operands
        if replaced and (linear := multiples(slope, value(k))) is not None:
            unknowns = zip(ring.variables(len(slope)), value(k), strict=True)
            values[k] = [unknown if x else zero for unknown, x in unknowns]
            slopes[k] = [ring.multiply(ring.number(c), values[k][j]) if c else zero for c, j in linear]
            plain.discard(k)
    return any(slopes[k] is not None for k in circuit.outputs)


def root_slopes(ring: Polynomials, slopes: Numbers, values: Numbers, roots: Numbers) -> Numbers:
    """Return the slopes of roots of v if v' = c v for every entry v, with numbers c: they are c/2 times the root [6]."""
    pairs = [multiples([slope], [value]) for slope, value in zip(slopes, values, strict=True)]
    if any(pair is None for pair in pairs):
        raise Unknown("the derivative of a square root is not a polynomial")
    factors = (Fraction(pair[0][0]) / 2 for pair in pairs if pair is not None)
    return [ring.multiply(ring.number(c), root) for c, root in zip(factors, roots, strict=True)]


Rules = dict[int, tuple[Shape, Polynomial]]
"""For the variable r of the reciprocal of v: the largest monomial m of v, and what r m is by r v = 1."""


def rules_of_reciprocals(ring: Polynomials, values: Numbers, inverses: Numbers) -> Rules:
    """Solve r v = 1 for the product of r and the largest monomial of v."""
    rules: Rules = {}
    for v, inverse in zip(values, inverses, strict=True):
        ((r,),) = inverse
        m = max(v, key=lambda monomial: (len(monomial), monomial), default=())
        others = {monomial: -c for monomial, c in v.items() if monomial != m}
        product = ring.add(ring.number(1), ring.multiply(inverse, others))
        if v:
            rules[r] = m, ring.multiply(ring.number(1 if v[m] == 1 else Fraction(1) / v[m]), product)
    return rules


def rewritten(ring: Polynomials, f: Polynomial, rules: Rules) -> Polynomial:
    """Replace products r m while there are any [6]. This ends: monomials become smaller in a graded monomial order."""
    variables = set(chain.from_iterable(f))
    active = [(r, *rules[r]) for r in rules.keys() & variables if variables.issuperset(rules[r][0])]
    left, result = dict(f), ring.number(0)
    while left and active:
        monomial, c = left.popitem()
        for r, m, equal in active:
            rest = divided(monomial, (r, *m)) if r in monomial else None
            if rest is not None:
                for e, d in ring.multiply({rest: c}, equal).items():
                    left[e] = left.get(e, 0) + d
                break
        else:
            result[monomial] = result.get(monomial, 0) + c
    return {e: c for e, c in result.items() if c} if active else f


def divided(monomial: Shape, divisor: Shape) -> Shape | None:
    """Divide a monomial by another one; None if that does not divide it."""
    rest = list(monomial)
    for i in divisor:
        if i not in rest:
            return None
        rest.remove(i)
    return tuple(rest)


def multiples(slopes: Numbers, values: Numbers) -> list[tuple[Any, int]] | None:
    """Find for each slope a number c and an index j, so that it is c times value number j; None if there are none.

    Of equal values, as in a symmetric matrix, a slope takes the one at its own index: their unknowns are different.
    """
    leads, pairs = [min(v, default=()) for v in values], []
    leading = {monomial: j for j, monomial in enumerate(leads) if values[j]}
    for k, slope in enumerate(slopes):
        monomial = min(slope, default=())
        j = k if leads[k] == monomial else leading.get(monomial, 0)
        c = Fraction(slope.get(monomial, 0)) / (values[j].get(monomial) or 1) if slope else Fraction(0)
        number = c.numerator if c.denominator == 1 else c
        if slope and slope != {e: number * x for e, x in values[j].items()}:  # whatever was chosen above
            return None
        pairs.append((number, j))
    return pairs


# == 8. Upper bounds =====================================================================================


def check_upper(circuit: Circuit, argument: Any, identity: Any = None) -> int:
    """Return the dimension that an argument shows not to be exceeded; `identity` has bounds that rest on the spec."""
    if identity is not None and kind_of(argument) in identity.bounds:
        read_object(argument, "the upper bound", "kind")
        return int(identity.bounds[kind_of(argument)]())
    function, values = by_kind(argument, "the upper bound", "UPPER")
    if not values:
        return int(function(circuit))
    p = read_prime(values[0])
    return int(function(circuit, p, read_point(values[1], circuit.parameters, p), *values[2:]))


def symmetries_bound(circuit: Circuit, p: int, weights: list[int], groups: Any, *fields: Any) -> int:
    """Subtract the rank of groups, and of fields if they are listed, at one point from the number of weights [4]."""
    vectors = symmetry_vectors(circuit, weights, p, groups, fields[0] if fields else [])
    return circuit.parameters - sparse_rank(vectors, p)


def degree_sets(circuit: Circuit) -> list[int]:
    """Return for each output the set of degrees in the inputs that can occur [3]."""
    return Evaluation(circuit, DegreeSets()).outputs([1] * circuit.parameters, [2] * circuit.input_size)


def coordinates_bound(circuit: Circuit) -> int:
    """Count coordinates: without inputs the outputs; with inputs, for each output the monomials of degrees that can occur [3]."""
    n = circuit.input_size
    if not n:
        return circuit.size(*circuit.outputs)
    masks, total, count = Counter(degree_sets(circuit)), 0, 1
    for k in range(max(masks).bit_length()):
        total += count * sum(outputs for mask, outputs in masks.items() if mask >> k & 1)
        count = count * (n + k) // (k + 1)
    return total


UPPER: Kinds = {
    "parameters": (lambda circuit: circuit.parameters, ()),
    "coordinates": (coordinates_bound, ()),
    "symmetries": (symmetries_bound, ("prime", "weights", "groups")),
    "fields": (symmetries_bound, ("prime", "weights", "groups", "fields")),
}


# == 9. Dimensions and symmetries ========================================================================


@dataclass(frozen=True)
class Shown:
    """What a verified certificate shows: in a few words, in sentences, and as numbers that records may contain."""

    summary: str
    sentences: list[str]
    numbers: dict[str, Any] = field(default_factory=dict)


def check_dimension(circuit: Circuit, identity: Any, dimension: Any, lower: Any, upper: Any) -> Shown:
    """Check that both bounds are the dimension of the statement [2]."""
    n = read_integer(dimension, 0, 10**9, "a dimension")
    low = check_lower(circuit, lower)
    need(low == n, f"the lower bound shows a dimension of at least {low}, the statement is {n}")
    high = check_upper(circuit, upper, identity)
    need(high == n, f"the upper bound shows a dimension of at most {printable(high)}, the statement is {n}")
    rests = " (this rests on the spec)" if BESIDE.get(upper["kind"]) == "families" else ""
    both = f"at least {n} by {lower['kind']}, at most {n} by {upper['kind']}{rests}"
    sentences = [f"Its dimension is {n}: {both}.", *lower_bound_sentences(circuit, lower)]
    return Shown(f"the dimension is {n}", sentences, {"dimension": n})


def lower_bound_sentences(circuit: Circuit, lower: Any) -> list[str]:
    """Return what is printed about a verified lower bound whose verification is random or uses relations."""
    sentences = []
    if relations := lower.get("exponentials", {}).get("relations"):
        sentences.append(beside("further").relations_sentence(circuit, relations))
    if "roots" in lower:
        sentences.append(beside("further").ROOTS)
    return [*sentences, SOLVED] if "solutions" in lower else sentences


def check_symmetry(circuit: Circuit, _: Any, groups: Any, vector_fields: Any) -> Shown:
    """Check groups and fields [5]. Their generic orbits have at least the dimension of their rank at a point [1]. It is drawn: at
    a point that is known before, fields could be made to have a smaller rank.
    """
    need(bool(groups or vector_fields), "at least one symmetry is named")
    ring = RandomField()
    weights, inputs = ring.drawn(circuit.parameters), ring.drawn(circuit.input_size)
    # rejects a zero denominator, but none that is zero because of values of exp or sqrt, such as exp(0) - 1
    Evaluation(circuit, ring).values(weights, inputs)
    vectors = symmetry_vectors(circuit, weights, ring.p, groups, vector_fields)
    orbit = sparse_rank(vectors, ring.p)
    near = " (their elements near the identity)" if groups and circuit.uses("sqrt") else ""
    several = f"{len(groups)} groups{near} and {len(vector_fields)} vector fields do not change"
    where = WHERE if circuit.uses(*EXPONENTIAL, "sqrt") else ""
    sentence = f"{several} its function, identically{where}; their generic orbits have dimension at least"
    return Shown(f"{several} the function", [f"{sentence} {orbit}."], {"orbit": orbit})


# == 10. Last layers =====================================================================================


def check_last_layer(samples: Samples, name: Any, tokens: Any, rows: Table, columns: list[int]) -> int:
    """Return the rank that is shown for the output V Z by a minor for some rows of V, and by independent columns of Z [8].

    Rows (r, token) of the minor become outputs, together with (r, token) for all independent tokens, and the entries of these
    rows of V become columns. Each other row of V adds the number of independent tokens.
    """
    run, circuit = samples.run, samples.run.circuit
    z, height, t = last_layer(circuit, name)
    width, flat = circuit.size(z) // t, circuit.flat[name]
    independent = read_different(tokens, len(samples.inputs) * t, "a token")
    need(len(independent) <= width, "there are more tokens than rows of Z")
    need(not any(c in flat for c in columns), "a column is in the last layer")
    need(not {token for _, token in rows} & set(independent), "a row's token is one of the independent ones")
    used = {r for r, _ in rows}
    need(all(r < height for r in used), "there is no such row")
    values = {n: run.values(samples.weights, samples.inputs[n])[z] for n in {x // t for x in independent}}
    matrix = [values[x // t][x % t :: t] for x in independent]
    need(rank(matrix, run.ring.p) == len(matrix), f"the tokens are dependent modulo {run.ring.p}")
    outputs = [[x // t, r * t + x % t] for r, x in [*((r, x) for r in used for x in independent), *rows]]
    of_layer = (flat.start + r * width + b for r in used for b in range(width))
    samples.need_independent(outputs, [*columns, *of_layer])
    return len(outputs) + (height - len(used)) * len(independent)


def last_layer(circuit: Circuit, name: Any) -> tuple[int, int, int]:
    """Return, for a program with the one output V Z, the instruction of Z, and the numbers of rows of V and of columns of Z."""
    need(type(name) is str and name in circuit.flat, "the last layer is not a weight")
    weight, gate = circuit.weights[name], circuit.gates[circuit.outputs[0]]
    form = gate.operation == "einsum" and gate.words in (["ab", "bc", "ac"], ["ab", "b", "a"])
    users = [g for g in circuit.gates for j in g.operands if j == weight]
    alone = form and gate.operands[0] == weight and len(users) == len(circuit.outputs) == 1
    need(alone, "the output is not V Z with a weight V that is used only there")
    return gate.operands[1], gate.shape[0], (*gate.shape, 1)[1]


# == 11. Documents and outcomes ==========================================================================

STATEMENTS: Kinds = {
    "dimension": (check_dimension, ("dimension",)),
    "symmetry": (check_symmetry, ("groups", "fields")),
}
WITHOUT_ARGUMENT = ("inside", "outside", "symmetry", "same function", "different functions")
BESIDE = dict.fromkeys(("virtual", "layers"), "families")
BESIDE |= dict.fromkeys(("span", "composition", "equations", "flattening"), "further")
BESIDE |= dict.fromkeys(("inside", "outside", "singular", "smooth", "identifiable", "closure"), "further")
BESIDE |= dict.fromkeys(("same function", "different functions"), "further")
"""Kinds of bounds and statements, with the file beside this one that checks them."""


@dataclass(frozen=True)
class Certified:
    """A verified certificate: its statement, its program, what was verified about its spec, and what is shown."""

    statement: dict[str, Any]
    circuit: Circuit
    text: str
    spec: str | None
    identity: Any  # of checker_families.py; None if the spec is null or is not supported
    shown: Shown


def check_certificate(document: Any) -> Certified:
    """Check one certificate."""
    need(type(document) is dict, "a certificate is an object")
    if "format" not in document or document.get("version") != 2:
        raise Unknown(f"this checker reads format 2, not format {printable(document.get('version'))}")
    kind = kind_of(document.get("statement"))
    names = ("lower", "upper") if kind == "dimension" else ("argument",)
    keys = ("format", "version", "statement", "spec", "program", *names)
    name, version, statement, spec, text, *arguments = read_object(document, "a certificate", *keys)
    need(name == "m2bridge certificate" and type(version) is int, "this is not a certificate of m2bridge")
    need(spec is None or type(spec) is str, "a spec is a text, or null")
    check, values = by_kind(statement, "the statement", "STATEMENTS")
    if kind in WITHOUT_ARGUMENT:
        need(arguments == [None], "it has no argument")
        arguments = []
    circuit, families = read_program(text), beside("families")
    identity = families.identify(circuit, spec) if families is not None and spec is not None else None
    shown = check(circuit, identity, *values, *arguments)
    return Certified(statement, circuit, text, spec, identity, shown)


def beside(name: str) -> Any:
    """Run the file checker_NAME.py, if it stands beside this one, from its source and no `.pyc`; else return None."""
    path = Path(__file__).with_name(f"checker_{name}.py")
    name = f"m2bridge.checker_{name}"
    if name not in sys.modules and path.is_file():
        sys.modules.setdefault("m2bridge.checker", sys.modules[__name__])  # which that file imports
        sys.modules[name] = module = ModuleType(name)
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    return sys.modules.get(name)


def load(name: str, what: str) -> Any:
    """Load a file beside this one, or refuse to decide about something that it checks."""
    module = beside(name)
    if module is None:
        raise Unknown(f"{what} is checked by checker_{name}.py, which is not beside this file")
    return module


def report(certificates: list[Certified]) -> list[str]:
    """Say what all certificates show together, first in a few words, then program by program."""
    counts = Counter(certified.shown.summary for certified in certificates)
    summaries = (text if n == 1 else f"{text} ({n} certificates)" for text, n in counts.items())
    texts = list(dict.fromkeys(certified.text for certified in certificates))
    lines = [
        f"Verified: {'; '.join(summaries)}.{f' This is about {len(texts)} programs.' * (len(texts) > 1)}"
    ]
    why = "supported by this checker" if beside("families") else "checked without checker_families.py"
    unknown = f"Its spec is not {why}, and nothing is verified about it: "
    for text in texts:
        of_text = [certified for certified in certificates if certified.text == text]
        named = [c for c in of_text if c.spec is not None]
        specs = [
            c.identity.sentence if c.identity else unknown + json.dumps(printable(c.spec)) for c in named
        ]
        lines.append(f"This is about the program with hash {sha256(text.encode()).hexdigest()}.")
        lines += dict.fromkeys([*specs, *chain(*(c.shown.sentences for c in of_text))])
    return lines


def check_document(document: Any) -> tuple[int, list[str]]:
    """Check a certificate, or the certificates of a record, with which checker_families.py compares the record."""
    need(type(document) is dict, "a record is an object")
    if "format" in document:
        return 0, report([check_certificate(document)])
    record, batch, families = document, None, beside("families")
    if "job" in document and type(document.get("result")) is dict:
        record, batch = document["result"], document  # the record of a batch contains that of its answer
    value = record.get("certificate")
    several = value if type(value) is list else [] if value is None else [value]
    bound_size(len(several), 1000)
    certificates = [check_certificate(certificate) for certificate in several]
    if families is not None:
        return families.check_record(record, certificates, batch)  # type: ignore[no-any-return]
    if not certificates:
        return 8, ["Not proved: there is no certificate in this record. Nothing was checked."]
    first, *rest = report(certificates)
    return 9, [f"{first} Not covered: the record, which is not compared without checker_families.py.", *rest]


def verify(data: str | bytes) -> tuple[int, list[str]]:
    """Return the outcome for a document, and sentences that say why. Never raises."""
    try:
        return check_document(read_json(data))
    except Unknown as reason:
        return 8, [f"Not supported by this checker: {printable(reason)}."]
    except Rejected as reason:
        return 7, [f"Rejected: {printable(reason)}."]
    except (MemoryError, RecursionError):
        return 8, ["Not supported by this checker: the verification needs more memory than is available."]
    except Exception as error:
        name = type(error).__name__
        return 1, [f"Error of the checker ({name}): the document was neither verified nor rejected."]


def limit_process(seconds: int) -> None:
    """Bound the processor time and the memory of this process. At the limit it prints a sentence and exits with code 5; in one
    operation that takes longer than the five seconds after it, the system ends it.
    """
    stopped = f"Stopped: the check did not end within {seconds} seconds of processor time"

    def stop(*_: Any) -> None:
        """Exit at the limit."""
        os.write(1, f"{stopped}; allow more with --seconds {10 * seconds}.\n".encode())
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
        with sys.stdin.buffer if path == "-" else Path(path).open("rb") as file:
            code, lines = verify(file.read(MOST_BYTES + 1))
    except OSError:
        code, lines = 8, [f"The file {printable(path)} cannot be read."]
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # there is an outcome: the limit no longer replaces it
    try:
        print("\n".join(re.sub(r"[^ -~]", "?", line) for line in lines), flush=True)
    except OSError:  # nobody reads it; the exit code still says it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
