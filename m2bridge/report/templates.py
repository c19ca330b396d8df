"""Report: the texts of ``data/report``: pages, Markdown and LaTeX are templates, into which Python puts values."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from m2bridge import latex
from m2bridge.errors import visible


def asset(name: str) -> str:
    """The text of a file of ``data/report``."""
    return files("m2bridge").joinpath(f"data/report/{name}").read_text(encoding="utf-8")


def written(name: str, **values: Any) -> str:
    """The template of this name with its values. A page escapes what it is given; LaTeX has ``tex`` for that.

    A record may come from anybody: what would steer a terminal is written out.
    """
    return visible(_environment(name.partition(".")[2]).get_template(f"{name}.j2").render(values), but="\n\t")


@cache
def _environment(ending: str) -> jinja2.Environment:
    delimiters: dict[str, Any] = {}
    if ending == "tex":  # where braces mean something
        delimiters = {
            "block_start_string": "<%", "block_end_string": "%>", "variable_start_string": "<<",
            "variable_end_string": ">>", "comment_start_string": "<#", "comment_end_string": "#>",
        }  # fmt: skip
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset), undefined=jinja2.StrictUndefined, autoescape=ending == "html",
        trim_blocks=ending != "tex", keep_trailing_newline=True, **delimiters,
    )  # fmt: skip
    environment.globals["tex"] = latex.escaped
    return environment
