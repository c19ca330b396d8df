"""Mutations of the checker itself: `python tests/checker/mutate.py [FUNCTION ...]` prints those that no test notices; with
names of functions or classes only these are changed. SURVIVORS.md, beside this file, tells of the last whole run.

Comparisons, arithmetic, `and`, `or`, `not` and integers are changed one at a time, and calls of `need` are left out. A mutant is
noticed when the outcome of a document of the tests changes (they are collected from a run of the tests), or when one of the tests
fails. For each line it is known which documents and tests reach it; those are asked, the quickest
first, until one notices or `MOST_SECONDS` of them passed. Of documents that reach the same lines a few are kept. The changed
function or class is put into the module for as long as it is asked; only lines outside of functions need the whole module.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fuzz
import pytest
import test_certificates
import test_exponentials
import test_fields
import test_forgeries
import test_lemmas
import test_points

from m2bridge import checker

MOST_SECONDS = 15.0  # of checks, as they take while lines are traced, for one mutant
LATE = 10.0  # seconds of computing after which a mutant that does not end is noticed
WORKERS = 6
MOST_ALIKE = 3  # documents with one outcome that reach the same lines
SOURCE = Path(checker.__file__).read_text()
SWAPS: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip
LEFT_OUT = (
    "slow",
    "fuzzer",
    "any_value",
    "any_text",
    "too_large",
    "very_large",
    "very_many",
    "alone",
    "records_of",
    "within_the_limit",
)
"""Tests with one of these words in their names are not asked: they take long, or start other processes."""


def single_tests() -> Iterator[Callable[[], None]]:
    """Every test of the checker that needs no fixture, with each of its parameters."""
    for module in (
        test_lemmas,
        test_exponentials,
        test_certificates,
        test_forgeries,
        test_fields,
        test_points,
    ):
        for name, test in vars(module).items():
            if not name.startswith("test_") or any(word in name for word in LEFT_OUT):
                continue
            marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
            names = [
                n.strip()
                for m in marks
                for n in (m.args[0].split(",") if isinstance(m.args[0], str) else m.args[0])
            ]
            if hasattr(test, "hypothesis") or set(names) != set(inspect.signature(test).parameters):
                continue
            choices = [[v if isinstance(m.args[0], tuple) else (v,) for v in m.args[1]] for m in marks]
            for chosen in itertools.product(*choices):
                yield functools.partial(test, **dict(zip(names, itertools.chain(*chosen), strict=True)))


ALWAYS = {
    node.lineno
    for top in ast.parse(SOURCE).body
    if not isinstance(top, (ast.FunctionDef, ast.ClassDef))
    for node in ast.walk(top)
    if hasattr(node, "lineno")
}
"""Lines outside of functions, which run when the module is loaded."""


TOPS = ast.parse(SOURCE).body


def places() -> list[tuple[int, int, int]]:
    """Where something can be changed: the number of a top node, that of a node in it, and that of a way to change it."""
    return [
        (t, i, k)
        for t, top in enumerate(TOPS)
        for i, node in enumerate(ast.walk(top))
        for k in range(len(ways(node)))
    ]


def mutant(top: int, index: int, way: int) -> tuple[int, str, ast.stmt]:
    """Line, what was changed, and the changed top node."""
    tree = copy.deepcopy(TOPS[top])
    target = next(n for i, n in enumerate(ast.walk(tree)) if i == index)
    before = ast.unparse(target)
    ways(target)[way](target)
    line = getattr(target, "lineno", 0) or tree.lineno
    return line, f"{before[:90]}  ->  {ast.unparse(target)[:90]}", tree


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
        began = time.process_time()
        code, said = own(text)
        reasons[said[0]] += 1
        if time.process_time() - began < 0.1 and len(text) < 10**5 and (code == 0 or reasons[said[0]] <= 6):
            found[text] = code
        return code, said

    checker.verify = verify
    chosen = " and ".join(f"not {word}" for word in LEFT_OUT)
    try:
        files = [
            str(Path(__file__).with_name(name))
            for name in ("test_certificates.py", "test_forgeries.py", "test_fields.py", "test_points.py")
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

    began = time.process_time()
    sys.settrace(trace)
    try:
        assert check(checker)
    finally:
        sys.settrace(None)
    return time.process_time() - began, lines, check


def document_check(text: str, code: int) -> Callable[[Any], bool]:
    return lambda module: module.verify(text)[0] == code


def test_check(test: Callable[[], None]) -> Callable[[Any], bool]:
    def passes(_: Any) -> bool:
        test()
        return True

    return passes


@contextmanager
def changed(tree: ast.stmt) -> Iterator[None]:
    """The checker with this top node in the place of its own."""
    before, top = dict(vars(checker)), ast.fix_missing_locations(tree)
    name = getattr(top, "name", "")
    old = before.get(name)
    try:
        if isinstance(top, ast.ClassDef) and name in ("Ring", "ModP"):  # others are made of them
            exec(compile(ast.Module([top], []), "mutant", "exec"), vars(checker))
            new, kept = vars(checker)[name], dict(vars(old))  # type: ignore[arg-type]
            setattr(checker, name, old)
            for key, value in vars(new).items():
                if callable(value):
                    setattr(old, key, value)
            try:
                yield
            finally:
                for key, value in kept.items():
                    if callable(value):
                        setattr(old, key, value)
            return
        nodes = [top]
        if not name:  # what is computed from constants is computed again
            nodes = [top if node.lineno == top.lineno else node for node in TOPS]
        exec(compile(ast.Module(nodes, []), "mutant", "exec"), vars(checker))
        for table in ("STATEMENTS", "UPPER", "TYPES") if name else ():  # which hold functions
            new = vars(checker)[name]
            rows = {
                key: tuple(new if item is old else item for item in row)
                if isinstance(row, tuple)
                else (new if row is old else row)
                for key, row in before[table].items()
            }
            setattr(checker, table, rows)
        yield
    finally:
        vars(checker).clear()
        vars(checker).update(before)


def noticed(tree: ast.stmt, checks: list[Check]) -> bool:
    def late(*_: Any) -> None:
        raise LateError

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, LATE)
    try:
        with changed(tree):
            return not all(check(checker) for _, _, check in checks)
    except BaseException:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def kept(corpus: dict[str, int]) -> list[Check]:
    """The documents as checks; of those that reach the same lines with the same outcome only a few.

    An outcome that a test had by changing the checker is left out.
    """
    alike: Counter[Any] = Counter()
    found = []
    for text, code in sorted(corpus.items(), key=lambda item: len(item[0])):
        if checker.verify(text)[0] != code:
            continue
        check = measured(document_check(text, code))
        alike[code, frozenset(check[1])] += 1
        if alike[code, frozenset(check[1])] <= MOST_ALIKE:
            found.append(check)
    return found


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
    checks = kept(collected()) + [
        check for test in single_tests() if (check := measured(test_check(test)))[0] < MOST_SECONDS
    ]
    checks.sort(key=lambda check: check[0])
    print(f"{len(checks)} checks; one round takes {sum(c[0] for c in checks):.0f} s while traced", flush=True)
    home, began = homes(), time.process_time()
    everything = [p for p in places() if not names or getattr(TOPS[p[0]], "name", "the top") in names]
    random.Random(0).shuffle(
        everything
    )  # so that a run that is ended early has seen something of every function
    children = [pid for part in range(WORKERS) if (pid := try_part(everything[part::WORKERS], checks, home))]
    for pid in children:
        os.waitpid(pid, 0)
    print(f"# {len(everything)} mutants tried, {time.process_time() - began:.0f} s")


def try_part(part: list[tuple[int, int, int]], checks: list[Check], home: dict[int, str]) -> int:
    """Try some mutants in a process of its own; its number."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    survivors, began = 0, time.process_time()
    for tried, place in enumerate(part, start=1):
        line, change, tree = mutant(*place)
        if not noticed(tree, reaching(checks, line)):
            survivors += 1
            print(f"{home.get(line, 'the top')}, line {line}: {change}", flush=True)
        if tried % 50 == 0 or tried == len(part):
            seconds = time.process_time() - began
            print(f"# {tried} of {len(part)}, {survivors} not noticed, {seconds:.0f} s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
