"""Mutations of the checker: `python tests/checker/mutate.py [--seconds N] [FUNCTION ...]` prints those that no test notices.

With names of functions or classes only these are changed; after N seconds the run ends and counts what was not tried.
SURVIVORS.md, beside this file, tells of the last whole run.

Comparisons, arithmetic, `and`, `or`, `not` and integers of checker.py and checker_further.py are changed one at a time, and calls
of `need` are left out. A mutant is noticed when the outcome of a document changes (the pool of the fuzzer and the published
certificates), or when a test fails. For each function it is known which documents and tests call it; those are asked, the
quickest first, until one notices or `MOST_SECONDS` of them passed. The changed function or class is put into the modules for as
long as it is asked; only lines outside of functions need the whole module.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import multiprocessing
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import fuzz
import test_certificates
import test_exponentials
import test_fields
import test_forgeries
import test_lemmas
import test_points
import test_records

from m2bridge import checker, checker_families, checker_further

MOST_SECONDS = 4.0  # of checks for one mutant
MOST_OF_ONE = 1.0  # seconds of one check
LATE = 10.0  # seconds of computing after which a mutant that does not end is noticed
WORKERS = 6
MODULES = (checker, checker_further)
TOPS = {module: ast.parse(Path(str(module.__file__)).read_text()).body for module in MODULES}
LAST = ("printable", "report", "main", "limit_process", "verify", "bound_size", "Shown", "")
"""Functions that decide nothing, and lines outside of functions: they are tried after the others."""
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
        test_records,
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


Place = tuple[int, int, int, int]
"""The numbers of a module, of a top node in it, of a node in that, and of a way to change it."""


def places() -> list[Place]:
    """List what can be changed."""
    return [
        (m, t, i, k)
        for m, module in enumerate(MODULES)
        for t, top in enumerate(TOPS[module])
        for i, node in enumerate(ast.walk(top))
        for k in range(len(ways(node)))
    ]


def name_at(place: Place) -> str:
    """Return the name of the function or class that is changed."""
    return str(getattr(TOPS[MODULES[place[0]]][place[1]], "name", ""))


def mutant(place: Place) -> tuple[int, str, ast.stmt]:
    """Return the line, what was changed, and the changed top node."""
    m, top, index, way = place
    tree = copy.deepcopy(TOPS[MODULES[m]][top])
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


class LateError(BaseException):
    """A mutant takes too long; the checker itself must not catch this."""


def document_check(text: str) -> Callable[[], None]:
    """Make a check that a document is verified."""

    def passes() -> None:
        assert checker.verify(text)[0] == 0

    return passes


@functools.cache
def checks() -> list[Callable[[], None]]:
    """List documents and tests."""
    documents = [document_check(text) for _, text in (*fuzz.pool(), *fuzz.published())]
    return [*documents, *single_tests()]


def measured(number: int) -> tuple[float, set[tuple[str, int]]]:
    """Run a check; return its seconds, infinity if it is slow or fails, and files and lines of the functions that it calls."""
    reached: set[tuple[str, int]] = set()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "checker" in frame.f_code.co_filename:
            reached.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    began = time.process_time()
    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * MOST_OF_ONE)
    sys.setprofile(profile)
    try:
        checks()[number]()
    except BaseException:
        return float("inf"), set()
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - began, reached


def late(*_: Any) -> None:
    """Stop a mutant that does not end."""
    raise LateError


@contextmanager
def changed(module: ModuleType, tree: ast.stmt) -> Iterator[None]:
    """Put this top node in the place of its own; modules that import it get it too."""
    every = (checker, checker_further, checker_families)
    before, top = {m: dict(vars(m)) for m in every}, ast.fix_missing_locations(tree)
    name = getattr(top, "name", "")
    old = vars(module).get(name)
    kept = dict(vars(old)) if isinstance(old, type) else {}
    try:
        nodes = [top] if name else [top if n.lineno == top.lineno else n for n in TOPS[module]]
        exec(compile(ast.Module(nodes, []), "mutant", "exec"), vars(module))
        new = vars(module).get(name)
        for m in (
            every if isinstance(old, type) else ()
        ):  # other classes are made of it, and objects may be of it
            vars(m).update({key: old for key in vars(m) if key == name})
        for key, value in vars(new).items() if isinstance(old, type) else ():
            if callable(value) or isinstance(value, (property, functools.cached_property)):
                setattr(old, key, value)
        for m in every if name and not isinstance(old, type) else ():
            vars(m).update({key: new for key, value in before[m].items() if value is old})
            for table in ("STATEMENTS", "UPPER", "TYPES"):  # which hold functions
                rows = before[m].get(table, {})
                vars(m)[table] = {key: swapped(row, old, new) for key, row in rows.items()}
        yield
    finally:
        for m in every:
            vars(m).clear()
            vars(m).update(before[m])
        for key, value in kept.items():
            if callable(value) or isinstance(value, (property, functools.cached_property)):
                setattr(old, key, value)


def swapped(row: Any, old: Any, new: Any) -> Any:
    """Replace a function in the row of a table."""
    if isinstance(row, tuple):
        return tuple(new if item is old else item for item in row)
    return new if row is old else row


def noticed(module: ModuleType, tree: ast.stmt, numbers: list[int]) -> bool:
    """Tell whether one of these checks fails with the changed node."""
    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, LATE)
    try:
        with changed(module, tree):
            for number in numbers:
                checks()[number]()
    except BaseException:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return False


Selected = dict[tuple[str, str], list[int]]
"""For each file and function or class: the checks that reach it, the quickest first, as many as the time allows."""


def select(results: list[tuple[float, set[tuple[str, int]]]]) -> Selected:
    """Select the checks of each function."""
    selected: Selected = {}
    order = sorted((seconds, n) for n, (seconds, _) in enumerate(results) if seconds < MOST_OF_ONE)
    for module in MODULES:
        for top in TOPS[module]:
            lines = range(top.lineno - 5, (top.end_lineno or 0) + 1)  # decorators come before
            total, key = 0.0, (str(module.__file__), getattr(top, "name", ""))
            for seconds, n in order:
                hit = not key[1] or any(f == key[0] and line in lines for f, line in results[n][1])
                if hit and total < MOST_SECONDS:
                    selected.setdefault(key, []).append(n)
                    total += seconds
    return selected


SELECTED: Selected = {}
ENDS = [float("inf")]


def tried(place: Place) -> str:
    """Try one mutant: return what was changed if nothing notices it, "late" if there is no time left, else an empty text."""
    if time.monotonic() > ENDS[0]:
        return "late"
    module, name = MODULES[place[0]], name_at(place)
    line, change, tree = mutant(place)
    if noticed(module, tree, SELECTED.get((str(module.__file__), name), [])):
        return ""
    return f"{Path(str(module.__file__)).name}, {name or 'the top'}, line {line}: {change}"


def main(arguments: list[str]) -> None:
    """Measure all checks, and try all mutants."""
    seconds = float(arguments.pop(1)) if arguments[:1] == ["--seconds"] else float("inf")
    names = [name for name in arguments if name != "--seconds"]
    ENDS[0], context = time.monotonic() + seconds, multiprocessing.get_context("fork")
    checks()
    with context.Pool(WORKERS) as pool:
        results = pool.map(measured, range(len(checks())), chunksize=4)
    SELECTED.update(select(results))
    quick = [seconds for seconds, _ in results if seconds < MOST_OF_ONE]
    print(f"{len(quick)} of {len(results)} checks are quick: {sum(quick):.0f} s in all", flush=True)
    wanted = [place for place in places() if not names or name_at(place) in names]
    random.Random(0).shuffle(wanted)
    wanted.sort(key=lambda place: name_at(place) in LAST)
    counts = {"noticed": 0, "not noticed": 0, "not tried": 0}
    with context.Pool(WORKERS) as pool:
        for outcome in pool.imap(tried, wanted, chunksize=1):
            counts["not tried" if outcome == "late" else "not noticed" if outcome else "noticed"] += 1
            if outcome not in ("", "late"):
                print(outcome, flush=True)
            if sum(counts.values()) % 100 == 0:
                print(f"# {counts}", flush=True)
    print(f"# of {len(wanted)} mutants: {counts}")


if __name__ == "__main__":
    main(sys.argv[1:])
