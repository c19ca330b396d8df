"""Every instruction: its value, its forward and its reverse derivative, against numbers in plain Python."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from m2bridge.frontends import record
from m2bridge.linear.residues import field_of, residue
from m2bridge.programs import Program, parse_program
from m2bridge.programs.arithmetics import (
    FloatArithmetic,
    ObjectArithmetic,
    PrimeFieldArithmetic,
    elementwise,
)
from m2bridge.programs.coefficients import coefficient_table, output_form, support
from m2bridge.programs.evaluation import unit_directions
from m2bridge.programs.exponentials import Units
from m2bridge.programs.jacobians import jacobian_rows, output_seeds
from m2bridge.programs.run import Lettered, aligned, evaluate, tangents
from tests.unit.dual_numbers import Dual
from tests.unit.dual_numbers import P as LARGE
from tests.unit.programs_interpreter import values as interpreted

POLYNOMIAL = {
    "constant": "%0 = weight w [2]|%1 = constant [2] 3 -1/2|%2 = add %0 %1",
    "add": "%0 = weight w [2,3]|%1 = weight v [2,3]|%2 = add %0 %1",
    "add a number": "%0 = weight w [2,3]|%1 = weight v []|%2 = add %0 %1",
    "add, both repeated": "%0 = weight w [2,1]|%1 = weight v [3]|%2 = add %0 %1",
    "add twice the same": "%0 = weight w [2]|%1 = add %0 %0",
    "scale": "%0 = weight w [3]|%1 = scale -7/4 %0",
    "multiply": "%0 = weight w [2,3]|%1 = weight v [2,3]|%2 = multiply %0 %1",
    "multiply, repeated": "%0 = weight w [1,3]|%1 = weight v [2,1,1]|%2 = multiply %0 %1",
    "multiply by itself": "%0 = weight w [2]|%1 = multiply %0 %0",
    "square": "%0 = weight w []|%1 = power 2 %0",
    "power 7": "%0 = weight w [1,2]|%1 = power 7 %0",
    "matrix product": "%0 = weight w [2,3]|%1 = weight v [3,2]|%2 = einsum ab,bc->ac %0 %1",
    "product of stacks": "%0 = weight w [2,2,3]|%1 = weight v [2,3,1]|%2 = einsum abc,acd->adb %0 %1",
    "outer product": "%0 = weight w [2]|%1 = weight v [3]|%2 = einsum a,b->ba %0 %1",
    "sum in one operand": "%0 = weight w [2,3]|%1 = weight v [2]|%2 = einsum ab,a->a %0 %1",
    "sums in both operands": "%0 = weight w [2,3]|%1 = weight v [2,2]|%2 = einsum ab,cd-> %0 %1",
    "entrywise by einsum": "%0 = weight w [2,3]|%1 = weight v [3,2]|%2 = einsum ab,ba->ba %0 %1",
    "einsum of numbers": "%0 = weight w []|%1 = weight v [2]|%2 = einsum ,a->a %0 %1",
    "einsum with itself": "%0 = weight w [2,2]|%1 = einsum ab,bc->ac %0 %0",
    "transpose": "%0 = weight w [2,1,3]|%1 = einsum abc->cab %0",
    "sum": "%0 = weight w [2,3]|%1 = einsum ab->b %0",
    "whole sum": "%0 = weight w [2,3]|%1 = einsum ab-> %0",
    "reshape": "%0 = weight w [2,3]|%1 = reshape [3,1,2] %0",
    "reshape to a number": "%0 = weight w [1,1]|%1 = reshape [] %0",
    "slice": "%0 = weight w [3,4]|%1 = slice 1:2:1,0:2:3 %0",
    "slice backwards": "%0 = weight w [3,5]|%1 = slice 2:3:-1,4:3:-2 %0",
    "slice of one": "%0 = weight w [3,4]|%1 = slice 2:1:1,3:1:1 %0",
    "gather": "%0 = weight w [2,3]|%1 = gather [2,2] 5,0,3,1 %0",
    "gather repeatedly": "%0 = weight w [2,2]|%1 = gather [5] 3,3,0,3,0 %0",
    "gather a number": "%0 = weight w [4]|%1 = gather [] 2 %0",
    "concatenate": "%0 = weight w [2,1]|%1 = weight v [2,3]|%2 = concatenate 1 %0 %1",
    "concatenate with a constant": "%0 = weight w [2]|%1 = constant [1] 5|%2 = concatenate 0 %0 %1 %0",
    "several outputs": "%0 = weight w [2]|%1 = power 2 %0|%2 = power 3 %0|output first %1|output y %2",
    "one place twice": "%0 = weight w [2]|%1 = power 2 %0|output first %1|output y %1",
    "unused weight": "%0 = weight w [2]|%1 = weight v [3]|%2 = power 2 %0",
    "an input": "%0 = weight w [2,2]|%1 = input x [2]|%2 = einsum ab,b->a %0 %1|%3 = add %2 %1|%4 = power 2 %3",
    "inputs meet": "%0 = weight w []|%1 = input x [2]|%2 = input z [2,1]|%3 = multiply %1 %2|%4 = multiply %0 %3",
    "nothing of the input": "%0 = weight w [2]|%1 = input x [2]|%2 = power 2 %0",
}  # fmt: skip
ANALYTIC = {
    "softmax": "%0 = weight w [2,3]|%1 = softmax 1 %0",
    "softmax over the first axis": "%0 = weight w [3,2]|%1 = softmax 0 %0",
    "softmax of one": "%0 = weight w [1]|%1 = softmax 0 %0",
    "exp": "%0 = weight w [2]|%1 = exp %0",
    "exp of a number": "%0 = weight w []|%1 = exp %0",
    "reciprocal": "%0 = weight w [2,2]|%1 = reciprocal %0",
    "reciprocal of a number": "%0 = weight w []|%1 = reciprocal %0|%2 = power 3 %1|%3 = scale 1/3 %2",
    "with an input": "%0 = weight w [2,2]|%1 = input x [2,3]|%2 = einsum ab,bc->ac %0 %1|"
    "%3 = softmax 1 %2|%4 = einsum ab,cb->ac %1 %3",
}  # fmt: skip
SAMPLES = 3


def program_of(text: str) -> Program:
    lines = text.split("|")
    if not lines[-1].startswith("output"):
        lines.append(f"output y %{len(lines) - 1}")
    return parse_program("m2bridge program 1\n" + "\n".join(lines) + "\n")


def point(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Small integers for weights, and for inputs with a leading axis over samples; none is zero."""
    rng = np.random.default_rng(seed)
    found = {name: rng.integers(1, 9, size=shape) for name, shape in program.parameters.items()}
    return found | {
        name: rng.integers(1, 9, size=(SAMPLES, *shape)) for name, shape in program.input_shapes.items()
    }


def one_sample(program: Program, given: dict[str, np.ndarray], sample: int) -> dict[str, np.ndarray]:
    return {name: array[sample] if name in program.inputs else array for name, array in given.items()}


def by_duals(program: Program, given: dict[str, np.ndarray]) -> tuple[list[int], list[list[int]]]:
    """Values and derivatives modulo 2^61 - 1 of each sample's outputs, by the second interpreter on dual numbers."""
    values: list[int] = []
    moves: list[list[int]] = []
    count = program.parameter_count
    for sample in range(SAMPLES if program.inputs else 1):
        start, arrays = 0, {}
        for name, array in one_sample(program, given, sample).items():
            entries = np.empty(array.size, dtype=object)
            for k, entry in enumerate(array.reshape(-1).tolist()):
                unit = [0] * count
                if name in program.weights:
                    unit[start + k] = 1
                entries[k] = Dual(entry, unit)
            start += array.size if name in program.weights else 0
            arrays[name] = entries.reshape(array.shape)
        for array in interpreted(program, **arrays).values():
            for entry in array.reshape(-1):
                values.append(entry.value if isinstance(entry, Dual) else residue(Fraction(entry), LARGE))
                moves.append(entry.moves if isinstance(entry, Dual) else [0] * count)
    return values, moves


def entered(
    program: Program, arithmetic: Any, given: dict[str, np.ndarray], enter: Any
) -> dict[str, Lettered]:
    return {
        name: Lettered("N" if name in program.inputs else "", enter(array)) for name, array in given.items()
    }


def derivatives(program: Program, arithmetic: Any, given: dict[str, Lettered]) -> tuple[Any, Any, Any]:
    """Outputs, their Jacobian by the forward rules and by the reverse pass; rows are samples, then entries."""
    samples = SAMPLES if program.inputs else 1
    known = evaluate(program, arithmetic, given)
    moved = tangents(program, arithmetic, known, unit_directions(program, arithmetic))
    values, forward = [], []
    for _, place in program.outputs:
        size, core = program.instructions[place].size, len(program.instructions[place].shape)
        array = aligned(known[place], "N", core)
        values.append(arithmetic.broadcast(array.reshape((array.shape[0], size)), (samples, size)))
        item = moved[place]
        if item is None:
            forward.append(arithmetic.zeros((samples, program.parameter_count, size)))
            continue
        array = aligned(item, "NT", core)
        array = array.reshape((*array.shape[:2], size))
        forward.append(arithmetic.broadcast(array, (samples, program.parameter_count, size)))
    columns = np.arange(program.parameter_count)
    rows = jacobian_rows(program, arithmetic, known, output_seeds(program, arithmetic), columns)
    rows = arithmetic.broadcast(rows, (samples, *rows.shape[1:]))
    return (
        arithmetic.concatenate(values, -1).reshape((-1,)),
        arithmetic.concatenate(forward, -1).transpose(0, 2, 1).reshape((-1, program.parameter_count)),
        rows.reshape((-1, program.parameter_count)),
    )


@pytest.mark.parametrize("p", [101, 8388593])
@pytest.mark.parametrize("name", POLYNOMIAL)
def test_values_and_derivatives_over_finite_fields(name: str, p: int) -> None:
    """The second interpreter works over the rationals; small integers keep its numbers below 2^61 - 1 or it is redone."""
    program = program_of(POLYNOMIAL[name])
    given, arithmetic = point(program), PrimeFieldArithmetic(field_of(p))
    values, forward, reverse = derivatives(
        program, arithmetic, entered(program, arithmetic, given, arithmetic.integers)
    )
    exact = exact_numbers(program, given)
    assert arithmetic.field.canonical(values).tolist() == [residue(v, p) for v in exact[0]]
    assert arithmetic.field.canonical(forward).tolist() == [[residue(v, p) for v in row] for row in exact[1]]
    assert arithmetic.field.canonical(reverse).tolist() == [[residue(v, p) for v in row] for row in exact[1]]


def exact_numbers(
    program: Program, given: dict[str, np.ndarray]
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """The numbers over the rationals of which the dual numbers are the residues (heights are far below 2^30)."""
    values, moves = by_duals(program, given)
    return [lifted(v) for v in values], [[lifted(v) for v in row] for row in moves]


def lifted(value: int) -> Fraction:
    """The rational number with denominator 1, 2 or 4 that has this residue."""
    for denominator in (1, 2, 4):
        scaled = value * denominator % LARGE
        scaled -= LARGE if scaled > LARGE // 2 else 0
        if abs(scaled) < 2**40:
            return Fraction(scaled, denominator)
    raise AssertionError(value)


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_values_and_derivatives_over_floats_and_rationals(name: str) -> None:
    program = program_of(POLYNOMIAL[name])
    given = point(program, seed=1)
    exact_values, exact_moves = exact_numbers(program, given)
    floats = derivatives(
        program, FloatArithmetic(), entered(program, FloatArithmetic(), given, FloatArithmetic().integers)
    )
    rationals = ObjectArithmetic(lambda value: value)
    objects = derivatives(program, rationals, entered(program, rationals, given, rationals.integers))
    for found, exact in zip(floats, (exact_values, exact_moves, exact_moves), strict=True):
        assert np.allclose(found, np.array(exact, dtype=float), rtol=1e-13)
    for found, exact in zip(objects, (exact_values, exact_moves, exact_moves), strict=True):
        assert found.tolist() == exact


@pytest.mark.parametrize("name", ANALYTIC)
def test_analytic_instructions_have_the_derivatives_of_their_values(name: str) -> None:
    """Forward equals reverse, both equal finite differences of a plain evaluation."""
    program = program_of(ANALYTIC[name])
    rng = np.random.default_rng(2)
    given = {name: array + rng.uniform(-0.4, 0.4, array.shape) for name, array in point(program).items()}
    given = {name: array / 4 for name, array in given.items()}
    values, forward, reverse = derivatives(
        program, FloatArithmetic(), entered(program, FloatArithmetic(), given, np.asarray)
    )
    assert np.allclose(values, plain(program, given))
    assert np.allclose(forward, reverse, rtol=1e-12, atol=1e-12)
    step, column = 1e-6, 0
    for weight in program.weights:
        for index in np.ndindex(given[weight].shape):
            moved = []
            for sign in (1, -1):
                array = np.array(given[weight])
                array[index] += sign * step
                moved.append(plain(program, given | {weight: array}))
            assert np.allclose(forward[:, column], (moved[0] - moved[1]) / (2 * step), atol=1e-7)
            column += 1


def plain(program: Program, given: dict[str, np.ndarray]) -> np.ndarray:
    """All outputs of all samples, by the second interpreter."""
    found = []
    for sample in range(SAMPLES if program.inputs else 1):
        for array in interpreted(program, **one_sample(program, given, sample)).values():
            found += [float(entry) for entry in array.reshape(-1)]
    return np.array(found)


@pytest.mark.parametrize("name", [name for name in POLYNOMIAL if "input" in name or "of the input" in name])
def test_coefficients_are_those_of_the_symbolic_expansion(name: str) -> None:
    """The outputs at variables for the inputs, expanded by FLINT, have the coefficients that forms collect."""
    program = program_of(POLYNOMIAL[name])
    given = point(program, seed=4)
    ring = flint.fmpq_mpoly_ctx.get(
        [f"x{k}" for k in range(sum(math.prod(s) for s in program.input_shapes.values()))], flint.Ordering.lex
    )
    variables = list(ring.gens())
    arrays: dict[str, Any] = {}
    for key in program.parameters:
        arrays[key] = elementwise(lambda n: flint.fmpq(int(n)) * ring.constant(1), given[key])
    for key, shape in program.input_shapes.items():  # entries of a matrix column by column
        taken = [variables.pop(0) for _ in range(math.prod(shape))]
        entries = np.empty(len(taken), dtype=object)
        entries[:] = taken
        arrays[key] = entries.reshape(tuple(reversed(shape))).transpose()
    expanded = [entry for array in interpreted(program, **arrays).values() for entry in array.reshape(-1)]
    rationals = ObjectArithmetic(lambda value: value)
    weights = {key: Lettered("", rationals.integers(given[key])) for key in program.parameters}
    form = output_form(program, rationals, weights, {})
    exponents = support(form)
    table = coefficient_table(rationals, form, exponents)
    for entry, row in zip(expanded, table.reshape(len(expanded), len(exponents)), strict=True):
        wanted = {
            tuple(map(int, m)): Fraction(int(c.p), int(c.q)) for m, c in entry.to_dict().items() if c != 0
        }
        found = {tuple(map(int, m)): Fraction(c) for m, c in zip(exponents, row, strict=True) if c != 0}
        assert found == wanted


def test_weights_in_batches_are_each_weights() -> None:
    """A leading axis on weights, on inputs, or on both: the same numbers one by one."""
    program = record(lambda W, b, x: (W @ x + b) ** 3, {"W": (2, 2), "b": (2,)}, {"x": (2,)}).program
    rng = np.random.default_rng(5)
    W, b, x = rng.normal(size=(4, 2, 2)), rng.normal(size=2), rng.normal(size=(4, 2))
    given = {"W": Lettered("N", W), "b": Lettered("", b), "x": Lettered("N", x)}
    output = evaluate(program, FloatArithmetic(), given)[program.outputs[0][1]].array
    assert np.allclose(output, [(W[k] @ x[k] + b) ** 3 for k in range(4)])


def test_exponentials_over_finite_fields_need_units() -> None:
    program = program_of(ANALYTIC["softmax"])
    arithmetic, units = PrimeFieldArithmetic(field_of(101)), Units(program, {}, p=101, seed=0)
    given = {"w": Lettered("", arithmetic.integers(np.ones((2, 3), dtype=np.int64)))}
    found = arithmetic.field.canonical(evaluate(program, arithmetic, given, units)[1].array)
    assert (found.sum(axis=1) % 101 == 1).all()
    with pytest.raises(Exception, match="exponential"):
        evaluate(program, arithmetic, given)
