"""Check lower bounds with exponentials and roots, upper bounds by compositions and equations, statements on points and closures.

The file checker.py verifies dimensions and symmetries of programs. This file stands beside it and is needed for lower bounds of
programs with exponentials or square roots, for the upper bounds `span`, `composition`, `equations` and `flattening`, and for the
statements `inside`, `outside`, `singular`, `smooth`, `same function`, `different functions`, `identifiable` and `closure`.
``docs/certificates.md``, sections 3 to 5, specifies them.

Lemmas, after those of checker.py:

[10] Exponentials. Let v_1, v_2, ... be the arguments of exponentials that depend on weights w alone and u_1, u_2, ... the
     others, as formal functions: z_k stands for exp(v_k), y_k for exp(u_k). Where relations name the constant 1, weights or
     inputs, with the common denominator N, variables c, e_i and f_j stand for exp(1/N), exp(w_i/N) and exp(x_j/N). If (A) no
     rational combination of w and v other than the trivial one lies in QQ(c), and (B) no rational combination of the inputs x
     and of u other than the trivial one lies in QQ(c, w, e, z), then w, e, z and, at any number of inputs, x, f and y are
     algebraically independent (Ax, On Schanuel's conjectures, Annals of Mathematics
     93, 1971, Theorem 3; docs/exponentials.md has the proof). So the Jacobian with variables z, y and dz = z dv, dy = y du has
     the generic rank of J, and [1] holds for it at every point modulo p with z, y not zero. If an argument is a rational
     combination of others, the same holds with its exponential replaced by the monomial in theirs. (A) is tested with one value
     of c at all points. With roots that depend on inputs, (B) is about the field with the roots of one sample [19].
[11] Composition. Let the network be g(w, f(w, x), x), with f and g analytic. Its differential at w maps xi to
     (Dg xi)(f, x) + (dg/df)(f, x) (Df xi)(x), a linear function L of the pair of functions (Df xi, Dg xi). All such pairs form a
     space of dimension at most U = rk Df + rk Dg. If xi is a symmetry of the whole, L is zero on its pair. So the generic rank
     of the whole is at most U minus the rank of the pairs of any symmetries (rank and nullity, applied to L).
[12] Matrices. The m x M matrices of rank at most n have dimension n (m + M - n) if n <= min(m, M) (Harris, Algebraic Geometry,
     12.1).
[13] Forms. n + 1 forms of one degree d >= 1 in n >= 1 variables satisfy an equation, homogeneous and not zero, of degree
     d^(n-1): the closure of their image in projective n-space is inside a hypersurface of at most that degree, because d^(n-1)
     bounds the number of points on n - 1 general hyperplanes (Bezout's theorem, Fulton, Intersection Theory, 8.4 and 12.3); a
     form times an equation is an equation. Forms h of degree e >= d^(n-1) that differ by a multiple of it are equal behind them.
[14] Equations. The image is irreducible. If equations vanish on it, at each of its points it has at most the dimension of the
     kernel of their differentials; if this is the dimension of the image, the point is smooth (Jacobian criterion, Hartshorne
     I.5). A point modulo p is the reduction of a rational one, where the differentials have at least the rank modulo p.
[15] Flattenings. Let M be a linear map from the space of coefficients to matrices whose rank is at most rho on each term, over
     the complex numbers. Then it is at most k rho on sums of k terms, hence on the closure X of these. At a point y of X where
     the rank is k rho, u^T M(x) v = 0 for each x in the tangent space of X at y and u, v in the left and the right kernel of
     M(y): matrices of rank at most k rho have this tangent space there (Landsberg, Ottaviani, Equations for secant varieties of
     Veronese and other varieties, 2013, section 2; Harris, Example 14.16). The tangent space has at least the dimension of X.
[16] Arcs. The lowest coefficient of an arc in the image is in its tangent cone, hence in the tangent space (Shafarevich,
     II.1.5). A tangent space that is larger than the dimension of an irreducible variety belongs to a singular point.
[17] Interpolation. Polynomials of degree at most k that vanish on the image vanish at points of the image: their number is at
     most that of the monomials minus the rank of their values, which is no smaller over QQ than modulo p.
[19] Roots. Roots are independent if none of their radicands is a square in the field that weights, the inputs of all samples and
     the roots before it generate. Then they generate a field of algebraic functions, and [1] holds at points where radicands are
     squares other than zero, for any choice of the roots there. The dimension is the generic rank near a complex point at which
     no radicand is zero, with any branches of the roots; it does not depend on the choice. If there is a real point at which all
     radicands are positive, it is also that of the network with positive roots; that there is one is not verified. A root of
     weights alone is independent of those before it if at a point modulo an odd prime these exist, with radicands that are not
     zero, and its radicand is not a square. A root that depends on inputs is, if at two points those before it exist, and its
     radicand is a square other than zero at one of them and not a square at the other, modulo one odd prime, with the same
     choice of the roots of weights and the same units of weights. [10] holds with roots that depend on inputs.
     docs/square-roots.md has the proof.
[20] Functions of the weights. If fields do not change the network and have the rank n - dim at a point, they span the kernel of
     its differential at generic weights, which is the tangent space of the fiber there. A function g of the weights that they do
     not move is constant on the fiber near such a point, because their flows reach all of it there. If fields with components for
     a further weight c do not move c g, put c = 1 (ones, or the identity matrix): the derivative of g
     along each field is a matrix of the kind of c, with polynomial entries, times g. So along flows g is multiplied by invertible
     factors of this kind. If a field that does not change the network moves g at a point modulo p, it does so at generic weights,
     and g has infinitely many values on generic fibers.

Contents: 1 Exponentials and roots   2 Compositions   3 Equations   4 Flattenings   5 Statements about points   6 Closures.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations, combinations_with_replacement, product
from math import comb, factorial, lcm, prod
from typing import Any

from m2bridge.checker import (
    BESIDE,
    EQUAL,
    EXPONENTIAL,
    LARGE,
    LEAST_EXPONENT,
    MOST_ENTRIES,
    ORDER,
    RANDOM,
    REPEATS,
    Circuit,
    Echelon,
    Evaluation,
    Gate,
    Kinds,
    ModP,
    NoRoot,
    Numbers,
    Polynomial,
    Polynomials,
    RandomField,
    Rejected,
    Ring,
    Shape,
    Shown,
    Undefined,
    Unknown,
    bit_size,
    bound_size,
    check_fields,
    check_lower,
    check_upper,
    coordinates_bound,
    degree_sets,
    evaluate,
    jacobian,
    kernel,
    lower_bound_sentences,
    need,
    rank,
    read_field,
    read_integer,
    read_integers,
    read_list,
    read_monomial,
    read_numbers,
    read_object,
    read_point,
    read_prime,
    read_program,
    read_seed,
    sparse_rank,
    split_list,
    stream,
    symmetry_vectors,
    transpose,
)

# == 1. Exponentials and roots ===========================================================================

Size = tuple[int, int, int]
"""Bounds for a polynomial: its degree, the logarithm of the sum of its absolute coefficients, and its level in `Sizes`."""


class Sizes(Ring):
    """Bounds for degree and height of values, in place of the values [7].

    Reciprocals, exponentials and roots are further variables. A reciprocal has a level, above that of its denominator.
    `of_identity` is about values computed before it is called: these add to `denominators`.
    """

    def __init__(self) -> None:
        """Begin without denominators and without exponentials."""
        self.denominators: dict[int, tuple[int, int]] = {}  # the sums of degrees and of logarithms, by level
        self.arguments: list[Size] = []  # of exponentials and roots

    def number(self, q: Fraction | int) -> Size:
        """Bound a constant."""
        size = (0, q.numerator.bit_length(), 0)
        return size if q.denominator == 1 else self.multiply(size, self.reciprocal((0, bit_size(q), 0)))

    def add(self, x: Size, y: Size) -> Size:
        """Bound a sum."""
        return max(x[0], y[0]), max(x[1], y[1]) + 1, max(x[2], y[2])

    def multiply(self, x: Size, y: Size) -> Size:
        """Bound a product."""
        return x[0] + y[0], x[1] + y[1], max(x[2], y[2])

    def power(self, x: Size, n: int) -> Size:
        """Bound a power."""
        return x[0] * n, x[1] * n, x[2]

    def exp(self, x: Size) -> Size:
        """Make a variable."""
        self.arguments.append(x)
        return 1, 0, 0

    sqrt = exp

    def reciprocal(self, x: Size) -> Size:
        """Make a variable of the next level."""
        degree, height = self.denominators.get(x[2] + 1, (0, 0))
        self.denominators[x[2] + 1] = (degree + x[0], height + x[1])
        return 1, 0, x[2] + 1

    def of_identity(self, values: Iterable[Size]) -> int:
        """Bound degree plus height of the numerator of a difference of two values: denominators are multiplied out."""
        degree, height, level = reduce(self.add, values)
        for degrees, heights in (self.denominators[k] for k in range(level, 0, -1)):
            degree, height = degree * (1 + degrees), height + degree * heights
        return degree + height


def error_exponent(size: int) -> int:
    """Return k if all of REPEATS random points miss a false identity of this size with probability at most 2^-k [7]."""
    k = REPEATS * (61 - size.bit_length())
    if k < LEAST_EXPONENT:
        raise Unknown("an identity is too large for random points")
    return k


WEIGHT_UNITS, SAMPLE_UNITS, TEST_WEIGHTS, TEST_INPUTS = 3, 4, 5, 6  # streams


@dataclass(frozen=True)
class Exponentials:
    """Exponentials of a program and what is said of them.

    Functions are numbered: 1, the flat weights, the arguments of exponentials without inputs; from `start` on the inputs and the
    arguments with inputs. Relations express dependent arguments as rational combinations of independent functions.
    """

    circuit: Circuit
    arguments: dict[int, range]  # the functions of each instruction with exponentials
    start: int
    count: int  # of all functions
    relations: dict[int, dict[int, Any]]

    @cached_property
    def denominator(self) -> int:
        """Return the common denominator of the relations: units stand for exponentials of f / denominator."""
        return lcm(*(c.denominator for terms in self.relations.values() for c in terms.values()))

    def units(self, stream_number: int, p: int, draws: Sequence[int], seed: int) -> list[list[int]]:
        """Draw units for the functions of weights, or for the others, at numbered points."""
        width = self.count - self.start if stream_number == SAMPLE_UNITS else self.start
        return [[x % (p - 1) + 1 for x in stream(seed, stream_number, width, n * width)] for n in draws]

    def exponentials(self, p: int, units: list[int]) -> list[int]:
        """Compute all exponentials, in the order of the instructions, from units for all functions."""
        results = []
        for function in (f for k in sorted(self.arguments) for f in self.arguments[k]):
            terms = self.relations.get(function, {function: 1})
            powers = (pow(units[j], int(c * self.denominator), p) for j, c in terms.items())
            results.append(reduce(lambda x, y: x * y % p, powers, 1))
        return results

    def functions(self, run: Evaluation, w: Numbers, x: Numbers, exponentials: Numbers) -> Numbers:
        """Compute the values of all numbered functions at one point."""
        values = run.values(w, [*x, *exponentials])
        results = [
            run.ring.number(1),
            *w,
            *([0] * (self.start - 1 - len(w))),
            *x,
            *([0] * (self.count - self.start - len(x))),
        ]
        for k, functions in self.arguments.items():
            results[functions.start : functions.stop] = values[self.circuit.gates[k].operands[0]]
        return results

    def independent_functions(self) -> tuple[list[int], list[int]]:
        """List the functions that must be independent: those of weights, without weights on which no argument depends; the
        others.
        """
        circuit = self.circuit
        of_weights = [k for k, functions in self.arguments.items() if functions.start < self.start]
        used = [0]
        for name, k in circuit.weights.items():
            reached = circuit.depends({k})
            if any(reached[j] for j in of_weights):
                used += [1 + i for i in circuit.flat[name]]
        arguments = range(1 + circuit.parameters, self.start)
        first = [*used, *(j for j in arguments if j not in self.relations)] if of_weights else []
        return first, [j for j in range(self.start, self.count) if j not in self.relations]


def number_functions(circuit: Circuit) -> Exponentials:
    """Number the functions of a program, without relations."""
    sees = circuit.depends(set(circuit.inputs.values()))
    every = [k for k, gate in enumerate(circuit.gates) if gate.operation in EXPONENTIAL]
    start = 1 + circuit.parameters
    arguments: dict[int, range] = {}
    for k in (k for k in every if not sees[k]):
        arguments[k] = range(start, start + circuit.size(k))
        start = arguments[k].stop
    count = start + circuit.input_size
    for k in (k for k in every if sees[k]):
        arguments[k] = range(count, count + circuit.size(k))
        count = arguments[k].stop
    return Exponentials(circuit, arguments, start, count, {})


def read_relations(plain: Exponentials, value: Any) -> Exponentials:
    """Add relations: dependent arguments, each with the independent functions before it that add up to it, and coefficients."""
    arguments = {f for functions in plain.arguments.values() for f in functions}
    relations: dict[int, dict[int, Any]] = {}
    for pair in read_list(value, "relations"):
        function, sums = read_list(pair, "a relation", 2)
        read_integer(function, 0, plain.count - 1, "an argument")
        once = function in arguments and function not in relations
        need(once, "a relation is not about an argument, or is listed twice")
        terms: dict[int, Any] = {}
        for term in read_list(sums, "a sum of functions"):
            j, c = read_list(term, "a term of a relation", 2)
            j = read_integer(j, 0, function - 1, "a function")
            need(j not in terms, "a function is listed twice in one relation")
            terms[j] = read_numbers([c], "a coefficient")[0]
            bound_size(bit_size(terms[j]), 64)
        relations[function] = terms
    dependent = any(j in relations for terms in relations.values() for j in terms)
    need(not dependent, "a relation names a function that is dependent itself")
    exponentials = replace(plain, relations=relations)
    bound_size(exponentials.denominator, 2**64)
    return exponentials


def further_inputs(
    circuit: Circuit, values: dict[str, Any], p: int, weights: Numbers, count: int
) -> list[Numbers]:
    """Check exponentials and roots of a lower bound, and return the inputs of its samples, with units for exponentials [10] [19].

    With roots, samples are numbered draws of a stream; further draws are points at which a root does not exist.
    """
    size, draws, every = circuit.input_size, list(range(count)), list(range(count))
    points: list[Numbers] = []
    if "roots" in values:
        draws, tests, points = read_roots(circuit, values["roots"], p, count)
        every = draws + tests
    if "roots" in values and size:
        seed, number, fixed = read_object(values["inputs"], "a drawn point", "seed", "stream", "fixed")
        need(fixed == [], "inputs of a program with square roots have no fixed entries")
        inputs = [[x % p for x in stream(read_seed(seed), read_seed(number), size, n * size)] for n in every]
    else:
        inputs = split_list(read_point(values["inputs"], count * size, p), size, count)
    if "exponentials" in values:
        need(not points, "exponentials beside square roots of weights alone are not covered")
        inputs = with_units(circuit, values["exponentials"], p, inputs, every)
    check_roots(circuit, p, weights, inputs[count:], points)
    return inputs[:count]


ROOTS = (
    "Roots are algebraic functions, and any branches may be chosen."
    " That there is a real point at which all radicands are positive was not verified."
)


def read_roots(
    circuit: Circuit, value: Any, p: int, count: int
) -> tuple[list[int], list[int], list[Numbers]]:
    """Return the numbers of the inputs, and for each square root the number of an input, or weights, where it does not exist."""
    draws, tests, points = read_object(value, "roots", "draws", "inputs", "weights")
    sees = circuit.depends(set(circuit.inputs.values()))
    kinds = [
        sees[k]
        for k, gate in enumerate(circuit.gates)
        if gate.operation == "sqrt"
        for _ in range(circuit.size(k))
    ]
    listed = read_list(points, "weights without a root", kinds.count(False))
    return (
        read_integers(draws, 0, 10**12, "a draw", count),
        read_integers(tests, 0, 10**12, "a draw", kinds.count(True)),
        [read_point(point, circuit.parameters, p) for point in listed],
    )


class CountedRoots(ModP):
    """Integers modulo a prime that count square roots."""

    count = 0

    def sqrt(self, x: int) -> int:
        """Count a root that exists."""
        root = super().sqrt(x)
        self.count += 1
        return root


def check_roots(
    circuit: Circuit, p: int, weights: Numbers, inputs: list[Numbers], points: list[Numbers]
) -> None:
    """Check for each square root that it is the first one that does not exist at its point [19].

    Roots of weights alone have weights, at which only what depends on no input is computed; the others have inputs at the same
    weights, at which all roots of weights exist. Roots are numbered in the order of the program.
    """
    sees = circuit.depends(set(circuit.inputs.values()))
    gates = [k for k, gate in enumerate(circuit.gates) if gate.operation == "sqrt"]
    of_inputs = [n for n, seen in enumerate(sees[k] for k in gates for _ in range(circuit.size(k))) if seen]
    tests: list[tuple[int, Numbers, Numbers, list[bool]]] = [
        *((n, weights, x, []) for n, x in zip(of_inputs, inputs, strict=True)),
        *((n, w, [], sees) for n, w in enumerate(points)),
    ]
    for n, w, x, skipped in tests:
        ring = CountedRoots(p)
        try:
            Evaluation(circuit, ring, circuit.uses(*EXPONENTIAL)).values(w, x, skipped)
        except NoRoot:
            need(ring.count == n, "another square root does not exist at a point")
            continue
        raise Rejected("all square roots exist at a point that is to show that one does not")


def with_units(
    circuit: Circuit, value: Any, p: int, inputs: list[Numbers], draws: list[int]
) -> list[Numbers]:
    """Check that arguments of exponentials are independent but for relations, and append to inputs the units for exponentials
    [10]. The inputs have the numbers `draws`.
    """
    seed, relations, test = read_object(value, "exponentials", "seed", "relations", "test")
    exponentials = read_relations(number_functions(circuit), relations)
    check_relations(exponentials)
    check_independence(exponentials, test)
    of_weights = exponentials.units(WEIGHT_UNITS, p, [0], read_seed(seed))[0]
    of_samples = exponentials.units(SAMPLE_UNITS, p, draws, seed)
    pairs = zip(inputs, of_samples, strict=True)
    return [x + exponentials.exponentials(p, of_weights + units) for x, units in pairs]


def relations_error(exponentials: Exponentials) -> int:
    """Return k if `check_relations` accepts a false relation with probability at most 2^-k [7].

    Either a relation is false at a random point, or two radicands are equal there, so that their roots are one variable.
    Exponentials are monomials in the units, of degree at most D S for the common denominator D and the sum S of all absolute
    coefficients, with positive and negative exponents; multiplying by the negative ones adds as much again.
    """
    ring, circuit, relations = Sizes(), exponentials.circuit, exponentials.relations
    count = sum(map(len, exponentials.arguments.values()))
    variables = [[(1, 0, 0)] * n for n in (circuit.parameters, circuit.input_size, count)]
    values = exponentials.functions(Evaluation(circuit, ring, units=True), *variables)
    sizes = [values[f] for f in relations]
    sizes += [
        ring.multiply(ring.number(c), values[j]) for terms in relations.values() for j, c in terms.items()
    ]
    coefficients = [c for terms in relations.values() for c in terms.values()]
    degree = exponentials.denominator * (1 + 2 * sum(map(abs, coefficients)))
    size = len(sizes) * ring.of_identity(sizes)
    if radicands := ring.arguments:
        size += comb(len(radicands), 2) * ring.of_identity(radicands)
    return error_exponent(int(degree) * size)


def relations_sentence(circuit: Circuit, relations: Any) -> str:
    """Say what relations that were verified rest on."""
    k = relations_error(read_relations(number_functions(circuit), relations))
    return f"{len(relations)} relations between arguments of exponentials {EQUAL.format(k=k)}."


def check_relations(exponentials: Exponentials) -> None:
    """Check that each relation is an identity: it holds at random points modulo random large primes [7]."""
    circuit = exponentials.circuit
    if exponentials.relations:
        relations_error(exponentials)  # refuses what is too large
    for _ in range(REPEATS if exponentials.relations else 0):
        ring = RandomField()
        run = Evaluation(circuit, ring, units=True)
        w, x = ring.drawn(circuit.parameters), ring.drawn(circuit.input_size)
        units = [RANDOM.randrange(1, ring.p) for _ in range(exponentials.count)]
        values = exponentials.functions(run, w, x, exponentials.exponentials(ring.p, units))
        for function, terms in exponentials.relations.items():
            total = ring.dot([values[j] for j in terms], [ring.number(c) for c in terms.values()])
            need(total == values[function], "a relation between arguments of exponentials does not hold")


def check_independence(exponentials: Exponentials, test: Any) -> None:
    """Check hypotheses (A) and (B) of docs/exponentials.md by two ranks modulo a prime [1] [10].

    (A) 1, the weights and the independent arguments without inputs have independent values. (B) Differences, between two inputs
    at the same weights and the same units of weights, of the inputs and of the other independent arguments are independent.
    """
    circuit = exponentials.circuit
    names = ["seed", "prime", "weights", "inputs", *(["draws"] if circuit.uses("sqrt") else [])]
    number, prime, groups, members, *listed = read_object(test, "a test", *names)
    p, seed = read_prime(prime), read_seed(number)
    groups, members = (read_integer(n, low, 10**5, "a number") for n, low in ((groups, 1), (members, 2)))
    run, size = Evaluation(circuit, ModP(p), units=True), circuit.input_size
    drawn = [x % p for x in stream(seed, TEST_WEIGHTS, groups * circuit.parameters)]
    weights = split_list(drawn, circuit.parameters, groups)
    every = groups * members
    draws = read_integers(listed[0], 0, 10**12, "a draw", every) if listed else list(range(every))
    inputs = [[x % p for x in stream(seed, TEST_INPUTS, size, n * size)] for n in draws]
    of_weights = exponentials.units(WEIGHT_UNITS, p, range(groups), seed)
    # the unit in the place of exp(1 / denominator) is the same at all points, so that the column of 1 absorbs constants [10]
    of_weights = [[of_weights[0][0], *units[1:]] for units in of_weights]
    of_samples = exponentials.units(SAMPLE_UNITS, p, draws, seed)
    first, rest = exponentials.independent_functions()
    among_weights, among_samples = Echelon(p, len(first)), Echelon(p, len(rest))
    for g in range(groups):
        numbers = range(g * members, (g + 1) * members)
        try:
            rows = [
                exponentials.functions(
                    run, weights[g], inputs[n], exponentials.exponentials(p, of_weights[g] + of_samples[n])
                )
                for n in numbers
            ]
        except Undefined:
            continue  # the point is left out
        if len(among_weights.rows) < len(first):
            among_weights.add([rows[0][j] for j in first])
        for row in rows[1:]:
            if len(among_samples.rows) < len(rest):
                among_samples.add([(row[j] - rows[0][j]) % p for j in rest])
    full = len(among_weights.rows) == len(first) and len(among_samples.rows) == len(rest)
    need(full, "the arguments of exponentials are not seen to be independent")


# == 2. Compositions ====================================================================================


def span_bound(circuit: Circuit) -> int:
    """Bound a last linear layer V z by matrices: the m outputs are combinations of the n entries of z [12].

    V may be used in z too. All outputs have the same degrees, because V is a whole weight.
    """
    last = circuit.gates[circuit.outputs[0]]
    linear = len(circuit.outputs) == 1 and last.operation == "einsum" and last.words == ["ab", "b", "a"]
    need(
        linear and circuit.gates[last.operands[0]].operation == "weight",
        "the program does not end in a weight times a vector",
    )
    m, n = circuit.gates[last.operands[0]].shape
    each = coordinates_bound(circuit) // m
    most = min(n, m, each)  # the rank
    return most * (m + each - most)


def composition_bound(circuit: Circuit, p: int, weights: list[int], groups: Any, vector_fields: Any, index: Any, first: Any,  # noqa: PLR0913 -- the values of one argument
                      second: Any, count: Any) -> int:  # fmt: skip
    """Bound a network g(f(x), x) cut at one instruction: the bounds of f and g, minus the rank of the pairs (Df xi, Dg xi)
    [11].
    """
    cut = read_integer(index, 0, len(circuit.gates) - 1, "a cut")
    samples = read_integer(count, 1, 10**4, "the number of samples")
    sides = circuit.gates[cut].operands != [] and cut not in circuit.outputs
    need(sides, "there is nothing on one side of the cut")
    parts = [subprogram(circuit, [cut], None), subprogram(circuit, circuit.outputs, cut)]
    bound = check_upper(parts[0][0], first)
    if second == {"kind": "hypersurface"}:
        bound += hypersurface_bound(parts[0][0], parts[1][0], name_of_cut(circuit))
        parts = parts[:1]
    else:
        bound += check_upper(parts[1][0], second)
    vectors = symmetry_vectors(circuit, weights, p, groups, vector_fields)
    moved: list[dict[Any, int]] = [{} for _ in vectors]
    for number, (side, flat) in enumerate(parts if vectors else ()):
        if not side.polynomial:
            continue  # fewer rows make the rank smaller
        inputs = [
            [x % p for x in stream(number, n, side.input_size)] for n in range(samples if side.inputs else 1)
        ]
        rows = [(n, *entry) for n in range(len(inputs)) for entry in side.output_entries]
        at, columns = [weights[i] for i in flat], list(range(side.parameters))
        table = jacobian(Evaluation(side, ModP(p)), at, inputs, rows, columns)
        column = {i: c for c, i in enumerate(flat)}
        for vector, images in zip(vectors, moved, strict=True):
            terms = [(column[i], x) for i, x in vector.items() if i in column]
            sums = [sum(row[c] * x for c, x in terms) % p for row in table]
            images |= {(number, r): x for r, x in enumerate(sums) if x}
    return bound - sparse_rank(moved, p)


def hypersurface_bound(first: Circuit, second: Circuit, cut: str) -> int:
    """Count the coefficients of a second part that matter behind n + 1 forms of degree d in n variables [13] [3].

    The forms satisfy an equation of degree D = d^(n-1); second parts of degree e that differ by a multiple of it give one
    function. The cut must be the one input of the second part.
    """
    n = first.input_size
    bound_size(n, 1000)
    need(first.size(*first.outputs) == n + 1, "the cut is not of one entry more than the inputs")
    need(list(second.inputs) == [cut], "inputs bypass the cut")
    degrees = []
    for side in (first, second):
        masks = set(degree_sets(side))
        mask = masks.pop() if len(masks) == 1 else 0
        need(mask.bit_count() == 1 and mask > 1, "a part is not homogeneous of one degree")
        degrees.append(mask.bit_length() - 1)
    d, e = degrees[0] ** (n - 1), degrees[1]
    need(d <= e, "the second part has too small a degree for the equation")
    return second.size(*second.outputs) * (comb(e + n, n) - comb(e - d + n, n))


def name_of_cut(circuit: Circuit) -> str:
    """Make a name that no input has: names have no %, and this one is longer than those of earlier cuts."""
    return f"{max(['', *circuit.inputs], key=len)}%"


def subprogram(circuit: Circuit, outputs: list[int], cut: int | None) -> tuple[Circuit, list[int]]:
    """Make the program of what these outputs use, with an input in the place of the cut; return also the flat weights that it
    has.
    """
    used = set(outputs)
    for k in reversed(range(len(circuit.gates))):
        used |= set(circuit.gates[k].operands) if k in used and k != cut else set()
    gates = {k: circuit.gates[k] for k in sorted(used)}
    if cut in gates:
        gates[cut] = Gate("input", [name_of_cut(circuit)], [], gates[cut].shape)
    order = sorted(gates, key=lambda k: ORDER.get(gates[k].operation, 2))
    number = {k: n for n, k in enumerate(order)}
    renumbered = [
        Gate(g.operation, g.words, [number[j] for j in g.operands], g.shape, g.plan)
        for g in map(gates.__getitem__, order)
    ]
    made = Circuit(renumbered, [number[k] for k in outputs])
    return made, [i for name in made.weights for i in circuit.flat[name]]


# == 3. Equations =======================================================================================


def coordinates(circuit: Circuit, ring: Polynomials) -> list[Polynomial]:
    """Expand the coordinates as polynomials in the weights. Without inputs these are the outputs; with inputs, for one output
    after the other, its coefficients at the monomials in the inputs that occur, by degree, then with the first inputs first.
    """
    n, results = circuit.parameters, []
    variables = ring.variables(n + circuit.input_size)
    for f in Evaluation(circuit, ring).outputs(variables[:n], variables[n:]):
        coefficients: dict[Shape, Polynomial] = {} if circuit.input_size else {(): {}}
        for monomial, c in f.items():
            split = bisect_left(monomial, n)
            coefficients.setdefault(monomial[split:], {})[monomial[:split]] = c
        results += [coefficients[inputs] for inputs in sorted(coefficients, key=lambda m: (len(m), m))]
    return results


def evaluated(polynomials: list[Polynomial], p: int, points: Sequence[list[int]]) -> list[list[int]]:
    """Compute the values of polynomials at points modulo p."""
    ring = ModP(p)
    return [[evaluate(ring, f, at) for f in polynomials] for at in points]


def read_equation(value: Any, count: int) -> Polynomial:
    """Return a polynomial in so many coordinates."""
    equation: Polynomial = {}
    for term in read_list(value, "a polynomial"):
        c, factors = read_list(term, "a term", 2)
        monomial = read_monomial(factors, count)
        need(monomial not in equation, "a polynomial repeats a monomial")
        equation[monomial] = read_integer(c, -LARGE, LARGE, "a coefficient")
    need(bool(equation) and all(equation.values()), "a polynomial or a coefficient is zero")
    return equation


def check_equations(circuit: Circuit, values: Any) -> tuple[list[Polynomial], list[Polynomial]]:
    """Check that polynomials in the coordinates vanish identically in the weights, by expansion; return them and the
    coordinates.
    """
    ring = Polynomials()
    targets = coordinates(circuit, ring)
    equations = [read_equation(value, len(targets)) for value in read_list(values, "equations")]
    for f in equations:
        need(not evaluate(ring, f, targets), "an equation does not vanish identically on the image")
    return equations, targets


def equations_bound(circuit: Circuit, p: int, weights: list[int], values: Any) -> int:
    """Bound the dimension by N minus the rank of the equations' differentials at an image point [14] [1]."""
    equations, targets = check_equations(circuit, values)
    y = evaluated(targets, p, [weights])[0]
    return len(y) - rank([[evaluate(ModP(p), derived(f, i), y) for i in range(len(y))] for f in equations], p)


def derived(f: Polynomial, i: int) -> Polynomial:
    """Differentiate a polynomial by variable i."""
    return {tuple_without(m, i): m.count(i) * c for m, c in f.items() if i in m}


def tuple_without(monomial: Shape, i: int) -> Shape:
    """Divide a monomial by a variable that it contains."""
    index = monomial.index(i)
    return monomial[:index] + monomial[index + 1 :]


# == 4. Flattenings =====================================================================================


def flattening_bound(circuit: Circuit, p: int, weights: list[int], name: Any) -> int:
    """Bound y = W_2 (W_1 x)^r, sums of k terms c (x) l^r with l linear, by the kernels of a flattening [15].

    Ranks modulo p are at most those over QQ. The one at the point is k times that of one term, which that over QQ does not
    exceed: both are equal, and kernels modulo p are those over QQ, reduced.
    """
    form = [(gate.operation, gate.operands) for gate in circuit.gates]
    layers = [gate.words for gate in circuit.gates if gate.operation == "einsum"]
    hidden = [("einsum", [0, 2]), ("power", [3]), ("einsum", [1, 4])]
    fits = form == [("weight", []), ("weight", []), ("input", []), *hidden] and circuit.outputs == [5]
    need(fits and layers == [["ab", "b", "a"]] * 2, "the program is not a perceptron with one hidden layer")
    (k, n), m, r = circuit.gates[0].shape, circuit.gates[1].shape[0], circuit.gates[4].words[0]
    for size in (max(n, r), comb(n + r - 1, r) * m if max(n, r) <= 10**4 else 0):
        bound_size(size, 10**4)
    table, height, width = flattening(name, n, m, r)
    ring = Polynomials()
    outputs = Evaluation(circuit, ring).outputs([ring.number(w) for w in weights], ring.variables(n))
    # the coefficient of x_1^r alone is a term, and every other one is equivalent to it
    single = table.get((0, (0,) * r), [])
    permutation = all(len({place[side] for place in single}) == len(single) for side in (0, 1))
    need(permutation, "the flattening of one term is not a permutation")
    matrix = [[0] * width for _ in range(height)]
    for (i, monomial), places in table.items():
        for a, b, s in places:
            matrix[a][b] = (matrix[a][b] + s * outputs[i].get(monomial, 0)) % p
    need(rank(matrix, p) == k * len(single), "the flattening does not have the rank that its terms allow")
    right, left = kernel(matrix, p), kernel(transpose(matrix), p)
    forms = [
        [sum(u[a] * v[b] * s for a, b, s in places) % p for places in table.values()]
        for u in left
        for v in right
    ]
    return m * comb(n + r - 1, r) - rank(forms, p)


Places = dict[tuple[int, Shape], list[tuple[int, int, int]]]
"""For each coordinate, an output and a monomial: its entries (row, column, factor) in a matrix."""


def flattening(name: Any, n: int, m: int, r: int) -> tuple[Places, int, int]:
    """Return the entries of the coordinates in the matrix, and the height and width of that.

    All are maps S^s* (x) Lambda^q -> S^u (x) Lambda^(q+1), D (x) w -> sum over i of D(f_i) (x) e_i ^ w. Either the f_i are the
    outputs (catalecticants with q = 0, and Strassen's), or m = 1 and they are the derivatives of the output by x_i (Koszul). They
    commute with changes of basis, so that all terms have one rank.
    """
    if type(name) is list and len(name) == 2 and name[0] == "catalecticant":
        space, q, s = m, 0, r - read_integer(name[1], 1, r - 1, "the degree of a catalecticant")
    elif name == ["strassen"] and (m, r) == (3, 2):
        space, q, s = m, 1, 1
    else:
        koszul = name == ["koszul"] and m == 1 < r and n % 2 == r % 2 == 1
        need(koszul, "a flattening is [catalecticant, s], [koszul] or, for three quadrics, [strassen]")
        space, q, s = n, (n - 1) // 2, r // 2
    by_derivatives = name == ["koszul"]
    operators = list(combinations_with_replacement(range(n), s))
    targets = list(combinations_with_replacement(range(n), r - s - int(by_derivatives)))
    bound_size(space * comb(space, q) * len(operators) * len(targets), 2 * 10**6)
    small, large = list(combinations(range(space), q)), list(combinations(range(space), q + 1))
    table: Places = {}
    for c, chosen in enumerate(small):
        for i in set(range(space)) - set(chosen):
            to, sign = large.index(tuple(sorted((*chosen, i)))), (-1) ** sum(x < i for x in chosen)
            for (a, u), (b, v) in product(enumerate(operators), enumerate(targets)):
                monomial = tuple(sorted((*u, *v, i) if by_derivatives else u + v))
                factor = sign * prod(map(factorial, Counter(monomial).values()))
                place = (b * len(large) + to, a * len(small) + c, factor)
                table.setdefault((0 if by_derivatives else i, monomial), []).append(place)
    return table, len(targets) * len(large), len(operators) * len(small)


# == 5. Statements about points =========================================================================


def check_inside(circuit: Circuit, _: Any, values: Any, value: Any) -> Shown:
    """Check that a point has the coordinates of exact weights."""
    ring = Polynomials()
    targets = coordinates(circuit, ring)
    weights = [ring.number(x) for x in read_numbers(values, "weights", circuit.parameters)]
    point = [ring.number(x) for x in read_numbers(value, "a point", len(targets))]
    need([evaluate(ring, f, weights) for f in targets] == point, "the image of the weights is another point")
    sentence = "The given point is in its image, by the given weights."
    return Shown("the point is in the image", [sentence], {"coordinates": len(targets)})


def check_outside(circuit: Circuit, _: Any, value: Any, polynomial: Any) -> Shown:
    """Check that an equation holds on the image and fails at a point."""
    (equation,), targets = check_equations(circuit, [polynomial])
    ring = Polynomials()
    point = [ring.number(x) for x in read_numbers(value, "a point", len(targets))]
    need(bool(evaluate(ring, equation, point)), "the equation vanishes at the point")
    sentence = "The given point is not in the closure of its image: an equation that holds there fails."
    return Shown("the point is not in the closure of the image", [sentence], {"coordinates": len(targets)})


def check_singular(circuit: Circuit, identity: Any, values: Any, argument: Any) -> Shown:
    """Check that arcs of weights w(t) through a point have more independent tangent vectors than the dimension [16]."""
    prime, upper, arcs = read_object(argument, "the argument", "prime", "upper", "arcs")
    p, ring = read_prime(prime), Polynomials()
    run, inputs = Evaluation(circuit, ring), ring.variables(1 + circuit.input_size)[1:]  # variable 0 is t
    weights = [ring.number(x) for x in read_numbers(values, "weights", circuit.parameters)]
    y, vectors = run.outputs(weights, inputs), []
    for arc in read_list(arcs, "arcs"):
        paths = [read_numbers(path, "an arc") for path in read_list(arc, "an arc", len(weights))]
        need(all(len(path) <= 20 for path in paths), "an arc has too high a degree")
        moved = [{(0,) * n: c for n, c in enumerate(path) if c} for path in paths]
        image = list(map(ring.add, run.outputs(moved, inputs), map(ring.minus, y)))
        order = min((m.count(0) for f in image for m in f), default=0)
        need(order > 0, "an arc does not pass through the point, or does not move")
        # the parameter of the arc is variable 0; it is removed, so that vectors of arcs of different orders are compared
        leading = {
            (k, m[order:]): c for k, f in enumerate(image) for m, c in f.items() if m.count(0) == order
        }
        vectors.append({key: x for key, c in leading.items() if (x := ModP(p).number(c))})
    tangent, high = sparse_rank(vectors, p), check_upper(circuit, upper, identity)
    need(
        tangent > high,
        f"the arcs span {tangent} dimensions only, which is not more than the dimension may be",
    )
    rests = " (this rests on the spec)" if BESIDE.get(upper["kind"]) == "families" else ""
    both = f"{tangent} independent tangent vectors, and a dimension of at most {high}{rests}"
    return Shown(
        "the point is singular", [f"The closure of its image is singular at the given point: {both}."]
    )


def check_smooth(circuit: Circuit, _: Any, values: Any, argument: Any) -> Shown:
    """Check that differentials of equations have rank N - n at a point of an n-dimensional image [14]."""
    prime, lower, equations = read_object(argument, "the argument", "prime", "lower", "equations")
    p = read_prime(prime)
    weights = [ModP(p).number(x) for x in read_numbers(values, "weights", circuit.parameters)]
    tangent, low = equations_bound(circuit, p, weights, equations), check_lower(circuit, lower)
    need(low == tangent, f"the tangent space has dimension {tangent} at most, the image {low} at least")
    sentence = f"The closure of its image is smooth at the given point, of dimension {low}."
    return Shown("the point is smooth", [sentence, *lower_bound_sentences(circuit, lower)])


def check_same_function(circuit: Circuit, _: Any, pair: Any) -> Shown:
    """Check that two exact weights give outputs that are equal as polynomials in the inputs."""
    ring = Polynomials()
    inputs, run = ring.variables(circuit.input_size), Evaluation(circuit, ring)
    points = read_pair(circuit, pair)
    functions = [run.outputs([ring.number(x) for x in weights], inputs) for weights in points]
    need(points[0] != points[1], "the two weights are one")
    need(functions[0] == functions[1], "the two weights give different functions")
    sentence = (
        "The two given weights are different, and the functions are equal as polynomials in the inputs."
    )
    return Shown("the two weights compute one function", [sentence])


def check_different_functions(circuit: Circuit, _: Any, pair: Any, values: Any) -> Shown:
    """Check that two exact weights give different outputs at an exact input: they differ modulo a prime that is drawn [1]."""
    if not circuit.polynomial:
        raise Unknown("the program is not polynomial")
    ring = ModP(RandomField().p)
    points = [*read_pair(circuit, pair), read_numbers(values, "an input", circuit.input_size)]
    *weights, inputs = [[ring.number(x) for x in numbers] for numbers in points]
    first, second = (Evaluation(circuit, ring).outputs(flat, inputs) for flat in weights)
    need(first != second, "the two weights give one output at the input")
    sentence = "The two given weights compute different functions: at the given input their outputs differ."
    return Shown("the two weights compute different functions", [sentence])


def read_pair(circuit: Circuit, pair: Any) -> list[Numbers]:
    """Return two exact weights."""
    return [read_numbers(flat, "weights", circuit.parameters) for flat in read_list(pair, "weights", 2)]


UP_TO = (
    (r",([a-z]*)->\1", "determined up to scale"),
    (r"a,(ab)->\1", "each row up to scale"),
    (r"a,(ab[b-z]+)->\1", "each block (head) up to scale"),
    (r"a,([b-z]+a)->\1", "each column up to scale"),
    (r"ab,b([c-z]+)->a\1", "up to a change of basis of the rows"),
    (r"ab,([c-z]+)a->\1b", "up to a change of basis of the columns"),
)
"""Products of a further weight and a function, as einsum, and what the function is determined up to if they are determined."""


def check_identifiable(circuit: Circuit, _: Any, function: Any, verdict: Any, argument: Any) -> Shown:
    """Check what the function of a program determines of a function of its weights, near generic weights [4] [20]."""
    g = read_program(function)
    own, of_g = ([(name, c.gates[k].shape) for name, k in c.weights.items()] for c in (circuit, g))
    same = of_g[: len(own)] == own and not g.inputs and len(g.outputs) == 1 and g.polynomial
    need(same, "the function is not a polynomial one of the weights of the program")
    need(type(verdict) is str, "a verdict is a text")
    if verdict == "not determined":
        need(len(of_g) == len(own), "the verdict is about another function")
        numbers, sentences = check_not_determined(circuit, g, argument)
    else:
        shows = "determined" if len(of_g) == len(own) else up_to(g, len(own))
        need(verdict == shows, "the verdict is about another function")
        numbers, sentences = check_determined(circuit, g, argument)
    lines = "; ".join(function.splitlines()[1 + len(of_g) :])
    first = f"The function of its weights [{lines}], locally at generic weights: {verdict}."
    numbers["verdict"] = verdict
    if verdict.startswith(("each", "up to", "determined up to")):
        sentences.append("Not verified: that a symmetry moves it.")
    return Shown(f"a function of the weights: {verdict}", [first, *sentences], numbers)


def check_not_determined(circuit: Circuit, g: Circuit, argument: Any) -> tuple[dict[str, Any], list[str]]:
    """Check that one vector field does not change the network, and moves a function of its weights at a point [4] [20]."""
    prime, point, fields = read_object(argument, "the argument", "prime", "weights", "fields")
    p = read_prime(prime)
    weights = read_point(point, circuit.parameters, p)
    vectors = symmetry_vectors(circuit, weights, p, [], fields)
    need(len(vectors) == 1, "one vector field moves the function")
    drawn = RandomField()  # rejects a denominator that is zero, unless by values of exp or sqrt
    Evaluation(circuit, drawn).values(drawn.drawn(circuit.parameters), drawn.drawn(circuit.input_size))
    run = Evaluation(g, ModP(p))
    slopes = run.slopes(run.values(weights, []), [vectors[0].get(i, 0) for i in range(circuit.parameters)])
    need(any(slopes[g.outputs[0]] or ()), "the vector field does not move the function at this point")
    undecided = circuit.uses(*EXPONENTIAL, "sqrt")
    sentences = ["That the program is defined somewhere was not verified."] if undecided else []
    return {}, [*sentences, "Not verified: that it is determined up to no factor."]


def check_determined(circuit: Circuit, g: Circuit, argument: Any) -> tuple[dict[str, Any], list[str]]:
    """Check that vector fields change neither the network nor g, and span the tangent spaces of its generic fibers [4] [20].

    If g has a further weight, its last, the fields may move that too; without these terms they are fields on the network.
    """
    prime, point, listed, lower = read_object(argument, "the argument", "prime", "weights", "fields", "lower")
    p, n, fields = read_prime(prime), circuit.parameters, read_list(listed, "fields")
    weights = read_point(point, n, p)
    on_g = [read_field(g, value) for value in fields]
    on_network = [[term for term in value if term[0] < n] for value in fields]
    vectors = symmetry_vectors(circuit, weights, p, [], on_network)
    check_fields(g, on_g)
    if g.parameters > n:
        need_more_values(g, weights, p)
    low, high = check_lower(circuit, lower), n - sparse_rank(vectors, p)
    need(low == high, f"the rank is at least {low}, the symmetries show that it is at most {high}")
    return {"fiber": n - low}, lower_bound_sentences(circuit, lower)


def need_more_values(g: Circuit, weights: list[int], p: int) -> None:
    """Reject a product c f of the last weight c and a function f if the multiples of f may be all values of f near it: that the
    rank of the Jacobian of f is at most the number of entries of c.
    """
    factor, function = g.gates[-1].operands
    run, c = Evaluation(g, ModP(p)), g.size(factor)
    values = run.values([*weights, *[1] * c], [])
    read = [k for k in g.weights.values() if k != factor and g.depends({k})[function]]
    wanted, rows = g.depends(set(read)), Echelon(p, g.size(*read))
    for index in range(g.size(function)):
        if len(rows.rows) <= c:
            gradients = run.gradient(values, function, index, wanted)
            rows.add([x for k in read for x in gradients.get(k, [0] * g.size(k))])
    need(len(rows.rows) > c, "the factor has as many entries as the function has independent values")


def up_to(g: Circuit, count: int) -> str | None:
    """Return what a function is determined up to, if its product with weight number `count`, the last, is; None otherwise."""
    last = g.gates[-1]
    once = [k for gate in g.gates for k in gate.operands].count(count) == 1 and len(g.weights) == count + 1
    multiplied = last.operation == "einsum" and len(last.operands) == 2 and last.operands[0] == count
    if not once or not multiplied or g.outputs != [len(g.gates) - 1]:
        return None
    factor = g.gates[count].shape
    if len(factor) == 2 and factor[0] != factor[1]:
        return None
    first, second, result = last.words
    letters = f"{first},{second}->{result}" if len({*second}) == len(second) else ""
    return next((text for pattern, text in UP_TO if re.fullmatch(pattern, letters)), None)


# == 6. Closures ========================================================================================


def check_closure(circuit: Circuit, _: Any, values: Any, value: Any, argument: Any) -> Shown:
    """Check that up to a degree k nothing but combinations of multiples of the equations vanishes on the image [17].

    For each degree up to k, the rank of the multiples of the equations and the rank of all monomials, as vectors of their
    values at image points, must add up to the number of monomials. Gradings of the weights for which all coordinates are
    homogeneous split them into blocks. Equations that are independent of the multiples of those of lower degree are counted:
    minimal generators, if all are homogeneous. A prime that was chosen for it could make such multiples dependent: the checker
    draws another [7].
    """
    prime, gradings = read_object(argument, "the argument", "prime", "gradings")
    read_prime(prime)
    p, k = RandomField().p, read_integer(value, 0, 100, "a degree")
    equations, targets = check_equations(circuit, values)
    bound_size(comb(len(targets) + k, k), 3 * 10**4)
    grades = [coordinate_degrees(circuit, targets, g) for g in read_list(gradings, "gradings")]

    def block_of(monomial: Shape) -> Shape:
        """Return the degrees of a monomial for all gradings."""
        return tuple(sum(grade[i] for i in monomial) for grade in grades)

    low = [f for f in equations if max(map(len, f)) <= k]
    same = all(len({block_of(m) for m in f}) == 1 for f in low)
    need(same, "an equation is not homogeneous for a grading")
    generators = count_generators(circuit, targets, low, k, block_of, p)
    sentences = [
        f"Each of the {len(equations)} equations vanishes on its image identically, by expansion.",
        f"Every polynomial of degree at most {k} that vanishes there is a combination of their multiples of such degrees.",
        "How many equations of each degree follow from none of lower degree is counted modulo a random prime above 2^61.",
        "Not covered: equations of higher degree, and whether these generate a prime ideal.",
    ]
    vanish = "1 equation vanishes" if len(equations) == 1 else f"{len(equations)} equations vanish"
    summary = f"{vanish} on the image, and all others up to degree {k} are combinations of their multiples"
    span = {"span": len(targets) - generators[1]} if k else {}
    return Shown(summary, sentences, {"coordinates": len(targets), "generators": generators, **span})


def count_generators(circuit: Circuit, targets: list[Polynomial], equations: list[Polynomial], k: int,
                     block_of: Callable[[Shape], Shape], p: int) -> Counter[int]:  # fmt: skip
    """Check that multiples of the equations are all that vanishes, degree by degree [17]; count, for each degree, equations that
    are independent of the multiples of those of lower degree [7].
    """
    monomials_of = [
        list(combinations_with_replacement(range(len(targets)), degree)) for degree in range(k + 1)
    ]
    sizes = Counter(block_of(m) for each in monomials_of for m in each)
    bound_size(sum(n * n for n in sizes.values()), 4 * MOST_ENTRIES)
    weights = [[x % p for x in stream(0, i, circuit.parameters)] for i in range(max(sizes.values()) + 4)]
    points = evaluated(targets, p, weights)
    numbers: dict[Shape, dict[Shape, int]] = {key: {} for key in sizes}
    evaluations = {key: Echelon(p, n + 4) for key, n in sizes.items()}
    products = {key: Echelon(p, n) for key, n in sizes.items()}
    generators = Counter[int]()
    by_degree = sorted(equations, key=lambda f: max(map(len, f)))
    for degree in range(k + 1):
        for m in monomials_of[degree]:
            key = block_of(m)
            numbers[key][m] = len(numbers[key])
            evaluations[key].add([prod(y[i] for i in m) % p for y in points[: sizes[key] + 4]])
        for f in by_degree:
            lowest = max(map(len, f))
            for factor in monomials_of[degree - lowest] if lowest <= degree else ():
                key = block_of((*factor, *next(iter(f))))
                if len(evaluations[key].rows) + len(products[key].rows) < len(numbers[key]):
                    row = [0] * sizes[key]
                    for m, c in f.items():
                        row[numbers[key][tuple(sorted((*factor, *m)))]] = c % p
                    generators[lowest] += products[key].add(row) and lowest == degree
        complete = all(len(evaluations[b].rows) + len(products[b].rows) == len(numbers[b]) for b in sizes)
        need(complete, f"more polynomials of degree at most {degree} may vanish on the image")
    return generators


def coordinate_degrees(circuit: Circuit, targets: list[Polynomial], value: Any) -> list[int]:
    """Return the degree of each coordinate when weights have these degrees; all must be homogeneous."""
    degrees = read_integers(value, -100, 100, "a degree of a weight", circuit.parameters)
    sets = [{sum(degrees[i] for i in monomial) for monomial in f} or {0} for f in targets]
    need(all(len(each) == 1 for each in sets), "a coordinate is not homogeneous for a grading")
    return [each.pop() for each in sets]


UPPER: Kinds = {
    "span": (span_bound, ()),
    "composition": (
        composition_bound,
        ("prime", "weights", "groups", "fields", "cut", "first", "second", "samples"),
    ),
    "equations": (equations_bound, ("prime", "weights", "equations")),
    "flattening": (flattening_bound, ("prime", "weights", "flattening")),
}
STATEMENTS: Kinds = {
    "inside": (check_inside, ("weights", "point")),
    "outside": (check_outside, ("point", "equation")),
    "singular": (check_singular, ("weights",)),
    "smooth": (check_smooth, ("weights",)),
    "same function": (check_same_function, ("weights",)),
    "different functions": (check_different_functions, ("weights", "input")),
    "identifiable": (check_identifiable, ("function", "verdict")),
    "closure": (check_closure, ("equations", "degree")),
}
