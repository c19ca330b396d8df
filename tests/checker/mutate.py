"""Mutations of the checker itself: `python tests/checker/mutate.py SECONDS [SEED]` prints those that no test notices.

Comparisons, arithmetic, `and`, `or`, `not` and integers are changed one at a time, and calls of `need` are left out. A mutant is
noticed when the outcome of a document of the tests changes (they are collected from a run of the tests), or when one of the quick
tests of the arithmetic fails. Mutants are tried in random order until the time is over.
"""

from __future__ import annotations

import ast
import random
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz
import makers as M  # noqa: N812
import pytest
import test_certificates
import test_forgeries

from m2bridge import checker

SECONDS = 200  # for one mutant; later is noticed
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
    test_certificates.test_intervals_with_a_last_layer,
    test_certificates.test_records_say_nothing_that_their_certificate_does_not,
]


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
        if isinstance(node, ast.BinOp) and ast.unparse(node.right) in ("None", "int", "Network", "Fraction"):
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
    chosen = "not slow and not fuzzer and not any_value and not any_text and not too_large and not very_large and not alone"
    try:
        files = [
            str(Path(__file__).with_name(name)) for name in ("test_certificates.py", "test_forgeries.py")
        ]
        assert pytest.main(["-q", "-p", "no:cacheprovider", "-k", chosen, *files]) == 0
    finally:
        checker.verify = own
    return found | {text: 0 for _, text in fuzz.pool()}


class LateError(Exception):
    pass


def noticed(tree: ast.Module, corpus: dict[str, int]) -> bool:
    module = types.ModuleType("mutant")
    sys.modules["mutant"] = module
    users = (test_certificates, test_forgeries, fuzz)

    def late(*_: Any) -> None:
        raise LateError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        exec(compile(ast.fix_missing_locations(tree), "mutant", "exec"), module.__dict__)
        for user in users:
            user.checker = module  # type: ignore[attr-defined]
        for text, code in corpus.items():
            if module.verify(text)[0] != code:
                return True
        for test in QUICK:
            test()
        return False
    except BaseException:
        return True
    finally:
        signal.alarm(0)
        for user in users:
            user.checker = checker  # type: ignore[attr-defined]


def main(seconds: float, seed: int) -> None:
    corpus = collected()
    order = sorted(corpus, key=lambda text: (random.Random(len(text)).random(), len(text)))
    corpus = {text: corpus[text] for text in order}
    print(f"{len(corpus)} documents, {M.P=}")
    began = time.perf_counter()
    assert not noticed(ast.parse(SOURCE), corpus)
    print(f"one round takes {time.perf_counter() - began:.1f} s", flush=True)
    everything = places()
    random.Random(seed).shuffle(everything)
    survivors, tried = [], 0
    for place in everything:
        if time.perf_counter() - began > seconds:
            break
        line, change, tree = mutant(*place)
        tried += 1
        if not noticed(tree, corpus):
            survivors.append((line, change))
            print(f"line {line}: {change}", flush=True)
    print(f"{tried} of {len(everything)} mutants tried, {len(survivors)} not noticed")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
