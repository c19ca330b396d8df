"""Mutations of the checker: `python tests/checker/mutate.py [--sample N] [--seconds N] [--families] [FUNCTION ...]` prints those
that no test notices. SURVIVORS.md, beside this file, tells of the last whole run.

Comparisons, arithmetic, `and`, `or`, `not` and integers of checker.py and checker_further.py (with --families:
checker_families.py) are changed one at a time, and calls of `need` are left out. One process imports the tests, runs each of
them and the documents of the fuzzer once, and notes the lines that it reaches. Each mutant is a fork of that process: it gets
the changed code and runs the checks that reach the changed statement, first those that noticed other mutants of the same
function, then the quickest, until one fails. A check that needs more than ten times its processor time fails. Checks beyond
`MOST_OF_ALL` seconds for one mutant are not run; after --seconds of processor time the rest of the mutants is not tried.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

MOST_OF_ALL = 4.0  # seconds of processor time of the checks of one mutant, before the change
MOST_OF_ONE = 3.0  # seconds of one check
MOST_MEMORY = 4 * 2**30
WORKERS = 2
FILES = ("checker.py", "checker_further.py", "checker_families.py")
MORE = ("programs_roots", "programs_exponentials", "analytic_edge_cases", "altered_records")  # of tests/unit
SELECTED = "not (slow or faults or image or cluster or browser or docs or macaulay2)"
LAST = ("", "printable", "report", "main", "limit_process")  # these decide nothing, and are tried last
SWAPS: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip
Check = Callable[[], bool]


@dataclass(frozen=True)
class Mutant:
    """A node of a statement of a function or class of a module, and how it is changed."""

    module: ModuleType
    top: ast.stmt
    lines: range
    node: Any
    change: Callable[[Any], None]

    @property
    def function(self) -> tuple[str, str]:
        """The name of the file and of the function or class; lines outside of them have an empty name."""
        return Path(str(self.module.__file__)).name, getattr(self.top, "name", "")

    def __str__(self) -> str:
        changed = copy.deepcopy(self.node)
        self.change(changed)
        where = f"{', '.join(self.function)}, line {getattr(self.node, 'lineno', self.lines.start)}"
        return f"{where}: {ast.unparse(self.node)[:90]}  ->  {ast.unparse(changed)[:90]}"


def ways(node: ast.AST) -> list[Callable[[Any], None]]:
    """List the changes of a node."""
    if isinstance(node, ast.Compare):
        swaps = [(k, SWAPS[type(op)]) for k, op in enumerate(node.ops)]
        return [lambda n, k=k, swap=swap: n.ops.__setitem__(k, swap()) for k, swap in swaps]
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        return [lambda n: setattr(n, "op", SWAPS[type(n.op)]())]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return [lambda n: setattr(n, "value", n.value + 1)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [lambda n: setattr(n, "op", ast.UAdd())]
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
        return [lambda n: n.args.__setitem__(0, ast.Constant(True))]
    return []


def nodes(node: ast.AST, statement: Any) -> Iterator[tuple[Any, range]]:
    """Generate nodes, without annotations, and the lines of their statements: of `for`, `if` and so on those of the head."""
    if isinstance(node, ast.stmt):
        statement = node
    headed = not isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and getattr(statement, "body", None)
    end = headed[0].lineno - 1 if headed else statement.end_lineno
    yield node, range(statement.lineno, max(end, statement.lineno) + 1)
    for key, value in ast.iter_fields(node):
        if key not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from nodes(child, statement)


def mutants(module: ModuleType) -> Iterator[Mutant]:
    """Generate all mutants of a module."""
    for top in ast.parse(Path(str(module.__file__)).read_text()).body:
        for node, lines in nodes(top, top):
            for change in ways(node):
                yield Mutant(module, top, lines, node, change)


def install(mutant: Mutant) -> None:
    """Change this process. Functions and methods get the changed code and stay the same objects, also in tables of them."""
    mutant.change(mutant.node)
    scratch = dict(vars(mutant.module))
    changed = ast.fix_missing_locations(ast.Module([mutant.top], []))
    exec(compile(changed, str(mutant.module.__file__), "exec"), scratch)
    for name, new in scratch.items():
        old = vars(mutant.module).get(name)
        if isinstance(old, (FunctionType, type)):
            replace(old, new)
            continue
        for module in list(sys.modules.values()):
            if "m2bridge.checker" in getattr(module, "__name__", "") and vars(module).get(name) is old:
                setattr(module, name, new)


def replace(old: Any, new: Any) -> None:
    """Give a function the code of another one, or a class the methods and values of another one."""
    if old is new:
        return
    if isinstance(old, FunctionType):
        old.__code__, old.__defaults__, old.__kwdefaults__ = (
            new.__code__,
            new.__defaults__,
            new.__kwdefaults__,
        )
    elif isinstance(old, type):
        for key, member in vars(new).items():
            if isinstance(member, (FunctionType, property, staticmethod, classmethod, cached_property)):
                replace(vars(old)[key], member)
            elif not key.startswith("__"):
                setattr(old, key, member)
    else:
        inner = {property: "fget", cached_property: "func"}.get(type(old), "__func__")
        replace(getattr(old, inner), getattr(new, inner))


def verifies(text: str) -> bool:
    """Tell whether a document is verified."""
    from m2bridge import checker

    return checker.verify(text)[0] == 0


def passes(item: pytest.Item) -> bool:
    """Tell whether a test passes."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


@cache
def lines_of(code: CodeType) -> frozenset[int]:
    """Return the lines of a function of the checker; nothing for other functions."""
    inside = Path(code.co_filename).name in FILES
    return frozenset(line for *_, line in code.co_lines() if line) if inside else frozenset()


class Server:
    """The process that has imported and measured everything."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.checks: list[Check] = []
        self.seconds: list[float] = []
        self.reached: dict[tuple[str, int], set[int]] = {}
        self.noticing: dict[tuple[str, str], list[int]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run mutants instead of tests."""
        import fuzz

        from m2bridge import checker, checker_families, checker_further

        documents = [partial(verifies, text) for _, text in (*fuzz.pool(), *fuzz.published())]
        self.checks = [*documents, *(partial(passes, item) for item in session.items)]
        self.measure()
        modules = (checker_families,) if self.arguments.families else (checker, checker_further)
        wanted = [m for module in modules for m in mutants(module)]
        wanted = [m for m in wanted if m.function[1] in (self.arguments.functions or [m.function[1]])]
        random.Random(self.arguments.seed).shuffle(wanted)
        wanted.sort(key=lambda m: m.function[1] in LAST)
        self.run(wanted[: self.arguments.sample])
        return True

    def measure(self) -> None:
        """Run every check twice: for its time, and for the lines of the checker that it reaches."""
        failing = []
        for number, check in enumerate(self.checks):
            began = os.times()
            if not check():
                failing.append(number)
            ended = os.times()
            alone = ended.children_user == began.children_user  # other processes have the unchanged file
            self.seconds.append(ended.user - began.user if alone else float("inf"))
            if self.seconds[number] < MOST_OF_ONE:
                self.trace(number, check)
        quick = [seconds for seconds in self.seconds if seconds < MOST_OF_ONE]
        print(f"# {len(quick)} of {len(self.checks)} checks are used: {sum(quick):.0f} s", flush=True)
        if failing:
            raise SystemExit(f"checks fail without a mutation: {[self.checks[n] for n in failing]}")

    def trace(self, number: int, check: Check) -> None:
        """Note the lines of the checker that a check reaches."""
        missing: dict[CodeType, set[int]] = {}  # for each code that was called

        def call(frame: Any, event: str, _: Any) -> Any:
            code = frame.f_code
            if code not in missing:
                missing[code] = set(lines_of(code))
            return line if missing[code] else None

        def line(frame: Any, event: str, _: Any) -> Any:
            missing[frame.f_code].discard(frame.f_lineno)
            return line

        sys.settrace(call)
        try:
            check()
        finally:
            sys.settrace(None)
        for code, rest in missing.items():
            for reached in lines_of(code) - rest:
                self.reached.setdefault((Path(code.co_filename).name, reached), set()).add(number)

    def selected(self, mutant: Mutant) -> tuple[list[int], int]:
        """Return the checks of a mutant in their order, and how many of those that reach it are left out."""
        file, name = mutant.function
        every = set().union(*(self.reached.get((file, line), set()) for line in mutant.lines))
        if not name or not every:  # outside of functions, or in the body of a class
            every = set(range(len(self.checks)))
        first = self.noticing.get(mutant.function, [])
        order = sorted(every, key=lambda n: (n not in first, self.seconds[n]))
        total, chosen = 0.0, []
        for number in order:
            total += self.seconds[number]
            if total < MOST_OF_ALL and self.seconds[number] < MOST_OF_ONE:
                chosen.append(number)
        return chosen, len(every) - len(chosen)

    def run(self, wanted: list[Mutant]) -> None:
        """Try mutants, and print those that are not noticed."""
        results = RawArray("i", [-2] * len(wanted))  # the check that notices; -1: none; -2: it did not end
        running: dict[int, tuple[int, int]] = {}
        gc.freeze()  # forks share these objects
        counts: Counter[str] = Counter()
        for index, mutant in enumerate(wanted):
            if resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > self.arguments.seconds:
                counts["not tried"] += 1
                continue
            chosen, left_out = self.selected(mutant)
            pid = os.fork()
            if pid == 0:
                self.attempt(mutant, chosen, results, index)
            running[pid] = index, left_out
            if len(running) == WORKERS:
                self.finish(wanted, results, running, counts)
            if (index + 1) % 100 == 0:
                print(f"# {dict(counts)}", flush=True)
        while running:
            self.finish(wanted, results, running, counts)
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        print(f"# of {len(wanted)} mutants: {dict(counts)}; {used:.0f} s", flush=True)

    def attempt(self, mutant: Mutant, chosen: list[int], results: Any, index: int) -> None:
        """Run checks in a new process until one fails."""
        results[index] = number = -3  # an exception while the changed code is loaded
        try:
            install(mutant)
            results[index] = -2
            for number in chosen:
                limit = int(time.process_time() + 10 * self.seconds[number]) + 2
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
                resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
                if not self.checks[number]():
                    results[index] = number
                    return
            results[index] = -1
        finally:
            os._exit(0)

    def finish(
        self, wanted: list[Mutant], results: Any, running: dict[int, tuple[int, int]], counts: Counter[str]
    ) -> None:
        """Wait for one mutant, and count it."""
        index, left_out = running.pop(os.wait()[0])
        result, mutant = results[index], wanted[index]
        counts["not noticed" if result == -1 else "noticed"] += 1
        if result == -1:
            print(f"{mutant}  ({left_out} checks left out)", flush=True)
        elif result >= 0:
            first = self.noticing.setdefault(mutant.function, [])
            if result not in first:
                first.append(result)


def main() -> None:
    """Read the arguments, and let pytest collect the tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", action="store_true")
    parser.add_argument("functions", nargs="*")
    here = Path(__file__).parent
    files = [here, *(here.parent / "unit" / f"test_{name}.py" for name in MORE)]
    options = ["-q", "-s", "--tb=native", "--assert=plain", "-p", "no:cacheprovider", "-m", SELECTED]
    pytest.main([*options, *map(str, files)], plugins=[Server(parser.parse_args())])


if __name__ == "__main__":
    main()
