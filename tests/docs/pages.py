"""Run the examples of a Markdown page, commands and Python, in the order of the page, and compare their output.

A block whose first line is a comment with a file name is that file. In a console block a line that begins with ``$`` is run by a
shell, and the lines below it are its output: ``...`` matches any text, also within a line; blanks, seconds and versions are
not compared. In a Python block an expression with a comment that begins like a value is compared with it. A comment
``<!-- not run: why -->`` before a block leaves it out.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

_BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:toml|py|json|sh))$")
_VALUE = re.compile(r"[\d'\"\[({-]|True|False|None|proved|probable")
_VOLATILE = (
    (re.compile(r"\d+(\.\d+)? (s|MB)\b"), "N s"),
    (re.compile(r"Macaulay2 \d[\w.]*"), "Macaulay2 N"),
    (re.compile(r"[━┃╇│┳─|+-]{2,}"), "-"),
    (re.compile(r"[\s┃│]+"), " "),
)


@dataclass(frozen=True)
class Block:
    """A block of code: its language, text, and line in the page."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are run."""
    return [
        Block(
            found[3],
            re.sub(rf"^{found[2]}", "", found[4], flags=re.MULTILINE),
            page.count("\n", 0, found.start()) + 1,
        )
        for found in _BLOCK.finditer(page)
        if not found[1]
    ]


def run(page: Path, directory: Path) -> int:
    """Run the examples of a page in `directory`; the number of things that were run. Raises AssertionError with the line."""
    names: dict[str, object] = {"__name__": "__page__"}
    count = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        first = block.text.partition("\n")[0]
        if named := _FILE.match(first):
            (directory / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (directory / named[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            _python(block.text, names, where, directory)
            count += 1
        elif block.text.startswith("$ ") and block.language in ("", "console"):
            count += _console(block.text, where, directory)
    return count


def _console(text: str, where: str, directory: Path) -> int:
    steps = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }  # fmt: skip
    for step in steps:
        command, _, shown = step.partition("\n")
        command, _, wanted = command.partition("  # exit ")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        code = int(wanted or 0)
        assert done.returncode == code, (
            f"{where}: {command}\nexit {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}"
        )
        came = done.stdout + done.stderr
        assert matches(shown, came), f"{where}: {command}\nshown:\n{shown}\ncame:\n{came[-3000:]}"
    return len(steps)


def matches(shown: str, came: str) -> bool:
    """Return whether the output is the text on the page; ``...`` matches any text.

    >>> matches("a 1.5 s\\n...\\nb", "a 2 s\\nx\\nb\\n"), matches("a\\nb", "a\\nc\\nb")
    (True, False)
    """
    if not shown.strip():
        return True
    pieces = [re.escape(_plain(piece)) for piece in shown.split("...")]
    return re.fullmatch(r"\s*" + ".*".join(pieces) + r"\s*", _plain(came), re.DOTALL) is not None


def _plain(text: str) -> str:
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text.strip()


def _python(text: str, names: dict[str, object], where: str, directory: Path) -> None:
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    before = Path.cwd()
    os.chdir(directory)
    try:
        for node in ast.parse(text).body:
            code = ast.unparse(node)
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), where, "exec"), names)
                continue
            value = eval(code, names)
            shown = comments.get(node.end_lineno or 0, "")
            if _VALUE.match(shown):
                texts = [repr(value), str(value), str(getattr(value, "value", value))]
                assert any(
                    shown == t or shown.startswith((f"{t},", f"{t}:", f"{t} ", f"{t};")) for t in texts
                ), f"{where}: {code} is {value!r}, the page shows {shown}"
    finally:
        os.chdir(before)
