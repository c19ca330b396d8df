"""Report: render the templates of ``data/report`` (HTML, Markdown and LaTeX)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from m2bridge import latex
from m2bridge.errors import visible


def asset(name: str) -> str:
    """Return the text of a file of ``data/report``."""
    return files("m2bridge").joinpath(f"data/report/{name}").read_text(encoding="utf-8")


def written(name: str, **values: Any) -> str:
    """Render a template. HTML templates escape their values; LaTeX templates call ``tex``.

    Control characters are replaced, because a record may come from an untrusted source.
    """
    return visible(_environment(name.partition(".")[2]).get_template(f"{name}.j2").render(values), but="\n\t")


@cache
def _environment(ending: str) -> jinja2.Environment:
    delimiters: dict[str, Any] = {}
    if ending == "tex":  # braces have a meaning in LaTeX
        delimiters = {
            "block_start_string": "<%", "block_end_string": "%>", "variable_start_string": "<<",
            "variable_end_string": ">>", "comment_start_string": "<#", "comment_end_string": "#>",
        }  # fmt: skip
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset), undefined=jinja2.StrictUndefined, autoescape=ending == "html",
        trim_blocks=ending != "tex", keep_trailing_newline=True, **delimiters,
    )  # fmt: skip
    environment.globals["tex"] = latex.escaped
    environment.filters["breakable"] = breakable
    return environment


def breakable(spec: str) -> Markup:
    """Escape a spec for HTML, and allow line breaks after its separators, so that no value is broken.

    >>> breakable("mlp(widths=[2,3],r=<2>)")
    Markup('mlp(widths=[2,<wbr>3],<wbr>r=&lt;2&gt;)')
    """
    pieces = re.split(r"(?<=[,;/])", spec)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)
