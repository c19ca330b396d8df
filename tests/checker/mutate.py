"""Mutations of the checker itself: `python tests/checker/mutate.py [FUNCTION ...]` prints those that no test notices; with
names of functions or classes only these are changed. SURVIVORS.md, beside this file, tells of the last whole run.

Comparisons, arithmetic, `and`, `or`, `not` and integers are changed one at a time, and calls of `need` are left out. A mutant is
noticed when the outcome of a document of the tests changes (they are collected from a run of the tests), or when one of the quick
tests of the arithmetic fails. For each line it is known which documents and tests reach it; those are asked, the quickest
first, until one notices or `MOST_SECONDS` of them passed. Of documents that reach the same lines a few are kept.
"""

from __future__ import annotations

import ast
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz
import pytest
import test_certificates
import test_fields
import test_forgeries

from m2bridge import checker

MOST_SECONDS = 6.0  # of checks, as they take without a mutation, for one mutant
LATE = 30  # seconds of a mutant that does not end: noticed
MOST_ALIKE = 3  # documents with one outcome that reach the same lines
SOURCE = Path(checker.__file__).read_text()
SWAPS: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip
QUICK: list[Callable[[], None]] = [
    lambda: test_certificates.test_balls_contain_the_truth(64),
    test_certificates.test_the_ball_of_an_exponential_covers_its_radius,
    test_certificates.test_backward_derivatives_agree_with_forward_ones,
    test_certificates.test_elimination_with_packed_rows,
    test_certificates.test_primes,
    test_certificates.test_streams_are_splitmix64,
    test_certificates.test_weights_that_satisfy_equations,
    lambda: every(test_certificates.test_all_terms_have_one_rank_in_a_flattening),
    lambda: every(test_forgeries.test_programs_are_read_strictly),
    lambda: every(test_forgeries.test_only_canonical_specs_are_read),
    lambda: every(test_certificates.test_layer_bounds_are_above_the_truth, 5),
    lambda: every(test_certificates.test_virtual_bounds_are_above_the_truth, 5),
    lambda: every(test_forgeries.test_generators_are_those_of_another_writing),
    test_certificates.test_layer_bounds_that_are_met,
    test_certificates.test_wide_enclosures_are_not_of_full_rank,
    test_certificates.test_points_by_streams,
    test_forgeries.test_the_last_layer_is_read_off_the_program,
    test_forgeries.test_a_record_of_another_question,
    lambda: every(test_forgeries.test_flattenings_are_for_perceptrons_with_one_hidden_layer),
    lambda: every(test_forgeries.test_polynomials_are_read_strictly),
    lambda: every(test_forgeries.test_groups_that_do_not_are_verified),
    lambda: every(test_forgeries.test_groups_that_change_the_function_are_rejected),
    lambda: every(test_fields.test_linear_networks_by_composition),
    lambda: every(test_fields.test_fields_are_read_strictly),
    test_fields.test_layers_by_composition,
    test_fields.test_a_cut_of_weights_alone,
    test_fields.test_a_field_that_dies_in_a_softmax,
    test_fields.test_translations_and_biases,
    test_fields.test_parts_are_programs_of_their_own,
    test_fields.test_weights_in_both_parts_and_inputs_after_the_cut,
    test_certificates.test_intervals_with_a_last_layer,
    test_certificates.test_records_say_nothing_that_their_certificate_does_not,
]


ALWAYS = {
    node.lineno
    for top in ast.parse(SOURCE).body
    if not isinstance(top, (ast.FunctionDef, ast.ClassDef))
    for node in ast.walk(top)
    if hasattr(node, "lineno")
}
"""Lines outside of functions, which run when the module is loaded."""


def every(test: Any, most: int | None = None) -> None:
    """A test with each of its parameters."""
    names, values = test.pytestmark[0].args
    for value in values[:most]:
        test(*(value if isinstance(names, tuple) else [value]))


def places() -> list[tuple[int, int]]:
    """Where something can be changed: the number of a node, and the number of a way to change it."""
    return [(i, k) for i, node in enumerate(ast.walk(ast.parse(SOURCE))) for k in range(len(ways(node)))]


def mutant(index: int, way: int) -> tuple[int, str, ast.Module]:
    """Line, what was changed, and the changed module."""
    tree = ast.parse(SOURCE)
    target = next(n for i, n in enumerate(ast.walk(tree)) if i == index)
    before = ast.unparse(target)
    ways(target)[way](target)
    return getattr(target, "lineno", 0), f"{before[:90]}  ->  {ast.unparse(target)[:90]}", tree


def ways(node: ast.AST) -> list[Callable[[Any], None]]:
    found: list[Callable[[Any], None]] = []
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            found.append(lambda n, k=k, op=op: n.ops.__setitem__(k, SWAPS[type(op)]()))
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        if isinstance(node, ast.BinOp) and ast.unparse(node.right) in (
            "None",
            "int",
            "Network",
            "Fraction",
            "Matrix",
        ):
            return []  # a type
        found.append(lambda n: setattr(n, "op", SWAPS[type(n.op)]()))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        found.append(lambda n: setattr(n, "value", n.value + 1))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append(lambda n: setattr(n, "op", ast.UAdd()))
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
        found.append(lambda n: n.args.__setitem__(0, ast.Constant(True)))
    return found


def collected() -> dict[str, int]:
    """Documents of the tests and their outcomes: those that take less than a tenth of a second."""
    found: dict[str, int] = {}
    reasons: Counter[str] = Counter()
    own = checker.verify

    def verify(text: str) -> tuple[int, list[str]]:
        began = time.perf_counter()
        code, said = own(text)
        reasons[said[0]] += 1
        if time.perf_counter() - began < 0.1 and len(text) < 10**5 and (code == 0 or reasons[said[0]] <= 6):
            found[text] = code
        return code, said

    checker.verify = verify
    left_out = [
        "slow",
        "fuzzer",
        "any_value",
        "any_text",
        "too_large",
        "very_large",
        "alone",
        "lattice",
        "records_of",
    ]
    chosen = " and ".join(f"not {word}" for word in left_out)
    try:
        files = [
            str(Path(__file__).with_name(name))
            for name in ("test_certificates.py", "test_forgeries.py", "test_fields.py")
        ]
        assert pytest.main(["-q", "-p", "no:cacheprovider", "-k", chosen, *files]) == 0
    finally:
        checker.verify = own
    return found | {text: 0 for _, text in fuzz.pool()}


class LateError(BaseException):
    """A mutant takes too long; the checker itself must not catch this."""


Check = tuple[float, set[int], Callable[[Any], bool]]
"""Seconds, the lines of the checker that are reached, and whether a module passes."""


def measured(check: Callable[[Any], bool]) -> Check:
    lines: set[int] = set()

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != checker.__file__:
            return None
        lines.add(frame.f_lineno)
        return trace

    began = time.perf_counter()
    sys.settrace(trace)
    try:
        assert check(checker)
    finally:
        sys.settrace(None)
    return time.perf_counter() - began, lines, check


def document_check(text: str, code: int) -> Callable[[Any], bool]:
    return lambda module: module.verify(text)[0] == code


def test_check(test: Callable[[], None]) -> Callable[[Any], bool]:
    def passes(module: Any) -> bool:
        for user in (test_certificates, test_forgeries, test_fields, fuzz):
            user.checker = module  # type: ignore[attr-defined]
        try:
            test()
        finally:
            for user in (test_certificates, test_forgeries, test_fields, fuzz):
                user.checker = checker  # type: ignore[attr-defined]
        return True

    return passes


def noticed(tree: ast.Module, checks: list[Check]) -> bool:
    module = types.ModuleType("mutant")
    sys.modules["mutant"] = module

    def late(*_: Any) -> None:
        raise LateError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LATE)
    try:
        exec(compile(ast.fix_missing_locations(tree), "mutant", "exec"), module.__dict__)
        return not all(check(module) for _, _, check in checks)
    except BaseException:
        return True
    finally:
        signal.alarm(0)


def kept(corpus: dict[str, int]) -> list[Check]:
    """The documents as checks; of those that reach the same lines with the same outcome only a few."""
    alike: Counter[Any] = Counter()
    found = []
    for text, code in sorted(corpus.items(), key=lambda item: len(item[0])):
        check = measured(document_check(text, code))
        alike[code, frozenset(check[1])] += 1
        if alike[code, frozenset(check[1])] <= MOST_ALIKE:
            found.append(check)
    return found


def without_trace(check: Check) -> Check:
    began = time.perf_counter()
    check[2](checker)
    return time.perf_counter() - began, check[1], check[2]


def reaching(checks: list[Check], line: int) -> list[Check]:
    """The quickest checks that reach a line, as many as the time allows."""
    found, seconds = [], 0.0
    for check in checks:
        if line in check[1] or line in ALWAYS:
            seconds += check[0]
            if seconds > MOST_SECONDS and found:
                break
            found.append(check)
    return found


def homes() -> dict[int, str]:
    """The function or class at the top of the file that each line belongs to."""
    tops = [n for n in ast.parse(SOURCE).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return {line: n.name for n in tops for line in range(n.lineno, (n.end_lineno or 0) + 1)}


def main(names: list[str]) -> None:
    checks = kept(collected()) + [measured(test_check(test)) for test in QUICK]
    checks = sorted(map(without_trace, checks), key=lambda check: check[0])
    print(f"{len(checks)} checks; one round takes {sum(c[0] for c in checks):.0f} s", flush=True)
    home, began = homes(), time.perf_counter()
    lines = [getattr(node, "lineno", 0) for node in ast.walk(ast.parse(SOURCE))]
    everything = [place for place in places() if not names or home.get(lines[place[0]]) in names]
    survivors = 0
    for tried, place in enumerate(sorted(everything, key=lambda place: lines[place[0]]), start=1):
        line, change, tree = mutant(*place)
        if not noticed(tree, reaching(checks, line)):
            survivors += 1
            print(f"{home.get(line, 'the top')}, line {line}: {change}", flush=True)
        if tried % 100 == 0:
            print(f"# {tried} of {len(everything)} after {time.perf_counter() - began:.0f} s", flush=True)
    print(f"# {len(everything)} mutants tried, {survivors} not noticed, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
