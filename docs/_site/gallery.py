"""The gallery: each file ``docs/gallery/NAME.py`` is run and becomes a page with its code, its answers and its picture.

A file is a docstring (title, then text) and cells that begin with ``# %%`` and a sentence. The value of a cell's last
expression is shown as a notebook would show it. Files assert what they claim, so that a wrong answer stops the build.
"""

import ast
import hashlib
import html
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import m2bridge
from _site.sheets import Sheet, sheet
from m2bridge import boxes

_FIRST = (
    "attention", "own_network", "deep_attention", "softmax", "correction", "fiber", "skip",
    "mlp", "perceptron_rank", "convolution", "group_convolution", "linear", "tensor_train", "cp", "cp_defective",
    "pearson", "whitney", "cuspidal_edge", "swallowtail",
)  # fmt: skip
"""The order of the pages; others follow by name."""
_PACKAGE = Path(m2bridge.__file__).parent


class Ran(NamedTuple):
    """A cell that was run: its sentence, its code, and the value that it shows, or None."""

    sentence: str
    code: str
    value: object

    def markdown(self) -> str:
        shown = ""
        if self.value is not None:
            plain = f"```text\n{self.value}\n```\n"
            shown = _raw(self.value._repr_html_()) if hasattr(self.value, "_repr_html_") else plain
        return f"{self.sentence}\n\n```python\n{self.code}\n```\n\n{shown}"

    def cells(self, number: int) -> list[dict[str, object]]:
        """Return the cells of an executed notebook."""
        data = {"text/plain": repr(self.value)}
        if hasattr(self.value, "_repr_html_"):
            data["text/html"] = self.value._repr_html_()
        output = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
        code = {"cell_type": "code", "execution_count": number, "metadata": {}, "id": f"code-{number}"}
        return [
            {"cell_type": "markdown", "metadata": {}, "id": f"text-{number}", "source": self.sentence},
            {**code, "source": self.code, "outputs": [] if self.value is None else [output]},
        ]


def write(docs: Path) -> None:
    """Run every file and write its page beside it; pages whose file and package are unchanged are kept."""
    folder = docs / "gallery"
    cards, names = [], []
    for file in sorted(folder.glob("*.py"), key=lambda file: (_rank(file.stem), file.stem)):
        title, text, cells = parts(file)
        page, picture = file.with_suffix(".md"), docs / "_build" / "pictures" / f"{file.stem}.html"
        mark = f"<!-- {_digest(file)} -->"
        kept = page.exists() and picture.exists() and page.read_text(encoding="utf-8").startswith(mark)
        if not kept:
            start = time.monotonic()
            ran, drawn = run(file, cells)
            file.with_suffix(".ipynb").write_text(notebook(title, text, ran), encoding="utf-8")
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_text(drawn.svg(), encoding="utf-8")
            seconds = time.monotonic() - start
            print(f"gallery: {file.name} {seconds:.1f} s", flush=True)
            body = "\n".join(one.markdown() for one in ran)
            page.write_text(
                f"{mark}\n# {title}\n\n{_raw(drawn.html())}\n\n{text}\n\n{body}\n\n"
                f"Run when this page was built, by m2bridge {m2bridge.__version__}: "
                f"{{download}}`as a notebook <{file.stem}.ipynb>`, {{download}}`as Python <{file.name}>`.\n",
                encoding="utf-8",
            )
        names.append(file.stem)
        cards.append(
            f'<a class="card" href="{file.stem}.html">{picture.read_text(encoding="utf-8")}<b>{html.escape(title)}</b>'
            f"<span>{html.escape(' '.join(text.split('. ')[0].split()).rstrip('.'))}.</span></a>"
        )
    _write_first(docs, folder / "_first.txt")
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    head = "# Gallery\n\nWorked examples. Each page is run when the site is built; each picture is drawn from the network itself."
    grid = _raw("<div class='cards'>" + "".join(cards) + "</div>")
    (folder / "index.md").write_text(f"{head}\n\n{grid}\n\n{toctree}\n", encoding="utf-8")


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def parts(file: Path) -> tuple[str, str, list[tuple[str, str]]]:
    """Title, text, and the cells: a sentence and its code each."""
    source = file.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or file.stem).partition("\n")
    cells = []
    for chunk in source.split("# %%")[1:]:
        first, _, code = chunk.partition("\n")
        cells.append((first.strip(), code.strip("\n")))
    return title.rstrip("."), text.strip(), cells


def run(file: Path, cells: list[tuple[str, str]]) -> tuple[list[Ran], Sheet]:
    """Run the cells; return them with their values, and a picture of the last ``model``."""
    names: dict[str, object] = {"m2bridge": m2bridge}
    ran = []
    before = Path.cwd()
    os.chdir(file.parents[2])
    try:
        for sentence, code in cells:
            value = _value(code, names, file)
            kept = "\n".join(line for line in code.splitlines() if not line.startswith("assert ")).strip()
            ran.append(Ran(sentence, kept, value))
    finally:
        os.chdir(before)
    drawn = names["model"]
    return ran, sheet(m2bridge.parse_spec(drawn) if isinstance(drawn, str) else drawn)


def notebook(title: str, text: str, ran: list[Ran]) -> str:
    """Return an executed notebook with the same cells."""
    cells: list[dict[str, object]] = [
        {"cell_type": "markdown", "metadata": {}, "id": "title", "source": f"# {title}\n\n{text}"},
        {
            "cell_type": "code",
            "execution_count": 0,
            "metadata": {},
            "id": "import",
            "source": "import m2bridge",
            "outputs": [],
        },
        *(cell for number, one in enumerate(ran, 1) for cell in one.cells(number)),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}, indent=1
    )


def _value(code: str, names: dict[str, object], file: Path) -> object:
    tree = ast.parse(code)
    last = next((n for n in reversed(tree.body) if not isinstance(n, ast.Assert)), None)
    value = None
    for node in tree.body:
        if node is last and isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), str(file), "eval"), names)
        else:
            exec(compile(ast.Module([node], []), str(file), "exec"), names)
    return value


def _raw(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```\n"


def _digest(file: Path) -> str:
    """Return a digest of what the page depends on: the file and the sources of the package."""
    total = hashlib.sha256(file.read_bytes() + Path(__file__).read_bytes())
    templates = (_PACKAGE.parent / "m2_templates").rglob("*.m2*")  # and the library of Macaulay2 functions
    for path in sorted([*_PACKAGE.rglob("*.py"), *templates]):
        total.update(path.read_bytes())
    return total.hexdigest()


def _write_first(docs: Path, out: Path) -> None:
    """Write what the first page shows below its code: the answer, the picture and the equation of the smallest neuromanifold."""
    names: dict[str, object] = {}
    text = (docs / "index.md").read_text(encoding="utf-8")
    answer = _value(text.split("```python\n")[1].split("```")[0], names, docs / "index.md")
    assert (answer.image_dim, answer.certainty.value) == (10, "proved"), answer
    small = m2bridge.closure("lightning(d=2,dp=1)", field="QQ")
    (equation,) = small.generators
    shown = boxes.typeset(str(equation.as_expr()).replace("**", "^") + " = 0")
    out.write_text(
        _raw(
            f'<div class="first"><div>{answer._repr_html_()}<p>With two-dimensional tokens and one output (rank two), '
            f"the closure is a hypersurface; its equation, {small.certainty.value}:</p>"
            f'<p class="equation">{shown}</p></div>'
            f"{sheet(names['head']).html()}</div>"
        ),
        encoding="utf-8",
    )
