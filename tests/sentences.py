"""List every sentence that m2bridge can print, with file and line, so that a reader can go through all of them.

``python tests/sentences.py [PATH ...]`` prints the sentences of the package, or of the given files and directories:

    m2bridge/cli/records.py:95: [error] {source} does not exist: give stores, records or directories of records

A sentence is a string literal (or f-string) with at least two words that is not a docstring; the docstrings of commands are
included because they are help texts. The kind tells where the string is used. Expressions in f-strings are printed in braces.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "m2bridge"
_TWO_WORDS = re.compile(r"[A-Za-z)}'\",:;]\s+[A-Za-z({'\"]")
_CODE = re.compile(r"^[<@]|^\s*--|\\\\|\(\?|</|;$|^[#.][\w-]+\{")
"""Strings that are markup, LaTeX, regular expressions or programs."""
_HELP_CALLS = {"Option", "Argument", "question", "Subject"}
_VIEW_CALLS = {"View", "Rows"}
_DATA_CALLS = {"Formula", "Hypothesis", "Symmetry", "Claim", "Correction", "Theorem"}


class Sentence(NamedTuple):
    """One sentence: its file, line, kind and text."""

    path: str
    line: int
    kind: str
    text: str


def sentences_of(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of one Python file in order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    name = path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE.parent) else str(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_command(node):
            help_text = ast.get_docstring(node) or ""
            yield Sentence(name, node.lineno, "help", " ".join(help_text.split()))
        if not _is_string(node) or _is_string(parents[node]) or isinstance(parents[node], ast.Expr):
            continue
        text = _text(node)
        if _TWO_WORDS.search(text) and not _CODE.search(text):
            yield Sentence(name, node.lineno, _kind(node, parents), " ".join(text.split()))


def sentences_in(root: Path) -> list[Sentence]:
    """Return the sentences of a file or of all Python files of a directory."""
    files = [root] if root.is_file() else sorted(root.rglob("*.py"))
    return [sentence for file in files for sentence in sorted(sentences_of(file))]


def _is_command(function: ast.FunctionDef) -> bool:
    """Return whether a function is a command of the command line, whose docstring is its help text."""
    if function.name.endswith("_command"):
        return True
    return any(
        isinstance(d, ast.Call) and ast.unparse(d.func).endswith(".command") for d in function.decorator_list
    )


def _is_string(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, (ast.JoinedStr, ast.FormattedValue))


def _text(node: ast.AST) -> str:
    """Return the text of a string literal; expressions of an f-string are kept as source in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    assert isinstance(node, ast.JoinedStr)
    return "".join(_text(value) for value in node.values)


def _kind(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Return where a string is used: in an error, a help text, a view, evidence, cited data, or elsewhere."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.Raise):
            return "error"
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func).rpartition(".")[2]
            if function.endswith("Error"):
                return "error"
            if function in _HELP_CALLS:
                return "help"
            if function in _VIEW_CALLS:
                return "view"
            if function == "Evidence":
                return "evidence"
            if function in _DATA_CALLS:
                return "data"
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return "view" if node.name.endswith("view") else "text"
    return "text"


def main(arguments: list[str]) -> None:
    """Print the sentences of the given paths, by default of the package, and their number."""
    listed = [sentence for root in arguments or [PACKAGE] for sentence in sentences_in(Path(root).resolve())]
    for path, line, kind, text in listed:
        print(f"{path}:{line}: [{kind}] {text}")
    print(f"{len(listed)} sentences", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
