"""List every sentence that m2bridge can print, with file and line, so that a reader can go through all of them.

``python tests/sentences.py [PATH ...]`` prints the sentences of the package, or of the given files and directories:

    m2bridge/cli/records.py:95: [error] {source} does not exist: give stores, records or directories of records

A sentence is a string literal (or f-string) with at least two words that is not a docstring; the docstrings of commands are
included because they are help texts. The kind tells where the string is used. Expressions in f-strings are printed in braces.
Of the templates of reports, every line of text is listed.

``python tests/sentences.py --pinned`` lists the literals in assertions of tests that contain two adjacent words of a sentence.
Tests assert values, names and fields, so that a sentence can be changed without a change of tests. Literals that remain
are names in records (quantities, strata, verdicts, symmetries) or texts that the test itself wrote.
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
_MARKUP = re.compile(
    r"<style>.*?</style>|<script.*?</script>|<%.*?%>|{%.*?%}|</?[a-z!][^>]*>|\\\w+(?=\{)", re.DOTALL
)
_ADJACENT_WORDS = re.compile(r"(?=\b([A-Za-z][a-z'-]+ [a-z][a-z'-]*)\b)")
_TEXT_METHODS = {"startswith", "endswith", "search", "match", "count", "fullmatch"}


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


def sentences_of_template(path: Path) -> Iterator[Sentence]:
    """Yield the lines of text of a template, without its statements and markup."""
    name = path.relative_to(PACKAGE.parent).as_posix()
    text = _MARKUP.sub(lambda match: "\n" * match.group().count("\n"), path.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), start=1):
        if _TWO_WORDS.search(line):
            yield Sentence(name, number, "template", " ".join(line.split()))


def sentences_in(root: Path) -> list[Sentence]:
    """Return the sentences of a file, or of all Python files and templates of a directory."""
    files = [root] if root.is_file() else sorted([*root.rglob("*.py"), *root.rglob("*.j2")])
    readers = {".py": sentences_of, ".j2": sentences_of_template}
    return [sentence for file in files for sentence in sorted(readers[file.suffix](file))]


def pinned_literals(tests: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield the literals in assertions of tests that contain two adjacent words of a sentence, with file and line."""
    printed = {words.lower() for s in sentences_in(PACKAGE) for words in _ADJACENT_WORDS.findall(s.text)}
    for file in sorted(tests.rglob("test_*.py")):
        for node in set(_asserted_strings(ast.parse(file.read_text(encoding="utf-8")))):
            words = _ADJACENT_WORDS.findall(node.value)
            if "\n" not in node.value and any(pair.lower() in printed for pair in words):
                yield file, node.lineno, node.value


def _asserted_strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings that are compared in assertions, matched with errors, or arguments of parametrized tests."""
    for node in ast.walk(tree):
        roots: list[ast.AST] = []
        if isinstance(node, ast.Assert):
            roots = [n for n in ast.walk(node.test) if isinstance(n, ast.Compare) or _is_text_call(n)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("raises", "warns")):
            roots = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize"):
            roots = list(node.args[1:])
        for root in roots:
            yield from (n for n in ast.walk(root) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _is_text_call(node: ast.AST) -> bool:
    """Return whether a node calls a method that compares texts, such as ``startswith``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _TEXT_METHODS
    )


def _is_command(function: ast.FunctionDef) -> bool:
    """Return whether a function is a command of the command line, whose docstring is its help text."""
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
    """Print the sentences of the given paths, by default of the package, and their number; with --pinned, see above."""
    if arguments == ["--pinned"]:
        pinned = sorted(pinned_literals(Path(__file__).parent))
        for file, number, text in pinned:
            print(f"{file.relative_to(PACKAGE.parent)}:{number}: {text}")
        print(f"{len(pinned)} literals", file=sys.stderr)
        return
    listed = [sentence for root in arguments or [PACKAGE] for sentence in sentences_in(Path(root).resolve())]
    for path, line, kind, text in listed:
        print(f"{path}:{line}: [{kind}] {text}")
    print(f"{len(listed)} sentences", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
