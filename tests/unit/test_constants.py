"""Constants: one name, one meaning, and a sentence that documents it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import m2bridge

PACKAGE = Path(m2bridge.__file__).parent


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.BinOp) and _is_number(node.left) and _is_number(node.right)


def numeric_constants(source: str) -> Iterator[str]:
    """Yield the names of module-level constants that are numbers."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            several = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
            names = target.elts if isinstance(target, ast.Tuple) and several else [target]
            values = (
                statement.value.elts
                if isinstance(statement.value, ast.Tuple) and several
                else [statement.value]
            )
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and name.id.isupper() and _is_number(value):
                    yield name.id


def constants_without_sentence(source: str) -> Iterator[str]:
    """Yield the names of numeric constants with neither a comment on their lines nor a string after them."""
    statements, lines = ast.parse(source).body, source.splitlines()
    for statement, after in zip(statements, [*statements[1:], None], strict=True):
        own = lines[statement.lineno - 1 : statement.end_lineno]
        described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if not described and not any("#" in line for line in own):
            yield from numeric_constants("\n".join(own))


def test_every_constant_is_documented() -> None:
    silent = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.name.startswith("checker")
        for name in constants_without_sentence(path.read_text(encoding="utf-8"))
    ]
    assert not silent, "write a comment or a string beside these:\n" + "\n".join(silent)


def test_an_undocumented_constant_is_detected() -> None:
    source = 'A = 1\nB = 2  # characters\nC = 3\n"""Bytes."""\nD = "text"\n'
    assert list(constants_without_sentence(source)) == ["A"]


def test_every_form_is_read() -> None:
    source = "A = 1\n_B, C = 2**5, -0.5\nD: int = 1 << 3\nE = (1, 2)\nF = True\ng = 1\nH = A\ndef f():\n    I = 1\n"
    assert list(numeric_constants(source)) == ["A", "_B", "C", "D"]


def test_no_two_constants_have_one_name() -> None:
    """The checker stands alone and has its own names."""
    files = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.name.startswith("checker"):
            for name in numeric_constants(path.read_text(encoding="utf-8")):
                files[name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    twice = {name: found for name, found in files.items() if len(found) > 1}
    assert not twice, "\n".join(f"{name}: {', '.join(found)}" for name, found in twice.items())
