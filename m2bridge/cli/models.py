"""CLI: ``m2bridge models`` lists the families, ``m2bridge describe SPEC`` says what is known about one
model.
"""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli.common import JsonOption, console, print_json, read_model
from m2bridge.models import FAMILIES
from m2bridge.models.catalogue import describe
from m2bridge.views import known


def register(app: typer.Typer) -> None:
    @app.command("models")
    def models(as_json: JsonOption = False) -> None:
        """List the families of models by kind, with an example of each."""
        if as_json:
            told = ("name", "kind", "example", "summary")
            print_json([{name: getattr(family, name) for name in told} for family in FAMILIES.values()])
            return
        table = Table(show_edge=False, pad_edge=False)
        table.add_column("example", no_wrap=True)
        table.add_column("what it is")
        for kind, families in groupby(FAMILIES.values(), key=lambda family: family.kind):
            table.add_row(f"[bold]{kind}[/bold]", "")
            for family in families:
                table.add_row(escape(family.example), escape(family.summary))
            table.add_section()
        out = console()
        out.print(table)
        out.print("\nWithout quotes in a shell: lightning:d=2,dp=1 and mlp:widths=2-3-2,r=2.", markup=False)
        out.print("In Python, from_callable() makes a model of a function and from_sympy() of polynomials.")

    @app.command("describe")
    def describe_command(
        spec: Annotated[str, typer.Argument(help="A model, as listed by `m2bridge models`.")],
        program: Annotated[
            bool, typer.Option("--program", help="Print the recorded program: one instruction a line.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Say what is known about a model: parameters, target, symmetries, formula and hypotheses."""
        model = read_model(spec)
        if program:
            recorded = model.program
            if as_json:
                print_json({"spec": model.spec, "sha256": recorded.sha256, "program": recorded.text})
            else:
                typer.echo(recorded.text, nl=False)
            return
        document = describe(model)
        if as_json:
            print_json(document)
        else:
            _show(document, console())


def _show(document: dict[str, Any], out: Console) -> None:
    out.print(document["title"], style="bold", markup=False)
    spec = document["spec"]
    out.print(spec if len(spec) <= 200 else spec[:199] + "…", markup=False)
    table = Table(show_header=False, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("")
    shapes = ", ".join(
        document["variables"] or (f"{name} {_shape(shape)}" for name, shape in document["parameters"].items())
    )
    rows = [("parameters", f"{document['parameter_count']}: {shapes}")]
    if document["parameter_dim"] != document["parameter_count"]:
        free = "" if document["free"] is None else f" (same image with free weights: {document['free']})"
        rows.append(("parameter dimension", f"{document['parameter_dim']}{free}"))
    if document["input_shape"] is not None:
        rows.append(("network", f"{_shape(document['input_shape'])} -> {_shape(document['output_shape'])}"))
    if document["polynomial"]:
        rows.append(("ambient dimension", known(document["ambient_dim"])))
        rows.append(("target coordinates", _coordinates(document)))
        rows.append(("span dimension", _span(document)))
        rows.append(("gradings", known(document["grading_rank"])))
    else:
        rows.append(("target", "not polynomial: functions on finitely many inputs, no ideal"))
    for item in document["symmetries"]:
        rows.append(("symmetry", f"{item['group']}: {item['name']} [{item['citation']}]"))
    rows += _formula_rows("dimension formula", document["formula"])
    rows += _formula_rows("dimension at most", document["dimension_bound"])
    for name, text in rows:
        table.add_row(name, escape(text))
    out.print(table)


def _shape(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _coordinates(document: dict[str, Any]) -> str:
    names = document["coordinates"]
    count = document["coordinate_count"]
    return f"{count}" if names is None else f"{count}: {'; '.join(names[:3])}{'; ...' if count > 3 else ''}"


def _span(document: dict[str, Any]) -> str:
    if document["span_dim"] is None:
        return "not computed: too many coordinates"
    return f"{document['span_dim']} (rank at random points over F_p)"


def _formula_rows(name: str, formula: dict[str, Any] | None) -> list[tuple[str, str]]:
    if formula is None:
        return [(name, "none is known")] if name == "dimension formula" else []
    value = "no formula: a hypothesis fails" if formula["value"] is None else str(formula["value"])
    rows = [(name, f"{value} [{formula['citation']}]")]
    marks = {True: "holds", False: "fails"}
    return rows + [("  hypothesis", f"{h['statement']}: {marks[h['holds']]}") for h in formula["hypotheses"]]
