"""CLI: ``m2bridge models`` lists the families; ``m2bridge describe SPEC`` describes one model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli.common import JsonOption, console, print_json, read_model
from m2bridge.cli.show import grid
from m2bridge.families.catalogue import describe, families
from m2bridge.views import shorten, value_text


def register(app: typer.Typer) -> None:
    @app.command("models")
    def models(as_json: JsonOption = False) -> None:
        """List the families of models, with an example of each."""
        if as_json:
            keys = ("name", "kind", "example", "summary")
            print_json([{key: getattr(family, key) for key in keys} for family in families().values()])
            return
        table = Table(show_edge=False, pad_edge=False)
        table.add_column("example", no_wrap=True)
        table.add_column("description")
        for kind, group in groupby(families().values(), key=lambda family: family.kind):
            table.add_row(f"[bold]{kind}[/bold]", "")
            for family in group:
                table.add_row(escape(family.example), escape(family.summary))
            table.add_section()
        out = console()
        out.print(table)
        out.print(
            "\nThe form lightning:d=2,dp=1 or mlp:widths=2-3-2,r=2 needs no quotes in a shell.", markup=False
        )
        out.print(
            "In Python, from_callable() converts a function into a model, and from_sympy() converts polynomials."
        )

    @app.command("describe")
    def describe_command(
        spec: Annotated[str, typer.Argument(help="Specification of a model (see m2bridge models).")],
        program: Annotated[
            bool, typer.Option("--program", help="Print the recorded program, one instruction per line.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Describe a model: parameters, coordinates, symmetries, and the dimension formula with its hypotheses."""
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
    out.print(shorten(document["spec"], 200), markup=False)
    table = grid()
    for name, text in _facts(document):
        table.add_row(name, escape(text))
    out.print(table)


def _facts(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts about a model as pairs of a name and a text."""
    shapes = [f"{name} {_shape(shape)}" for name, shape in document["parameters"].items()]
    yield "parameters", f"{document['parameter_count']}: {', '.join(document['variables'] or shapes)}"
    if document["parameter_dim"] != document["parameter_count"]:
        free = (
            ""
            if document["free"] is None
            else f" (same image as {document['free']}, with unconstrained weights)"
        )
        yield "parameter dimension", f"{document['parameter_dim']}{free}"
    if document["input_shape"] is not None:
        yield "network", f"{_shape(document['input_shape'])} -> {_shape(document['output_shape'])}"
    yield from _target_facts(document)
    for item in document["symmetries"]:
        yield "symmetry", f"{item['group']}: {item['name']} [{item['citation']}]"
    formulas = {"dimension formula": document["formula"], "dimension at most": document["dimension_bound"]}
    for name, formula in formulas.items():
        if formula is not None:
            value = (
                "not applicable (a hypothesis fails)" if formula["value"] is None else str(formula["value"])
            )
            yield name, f"{value} [{formula['citation']}]"
            for hypothesis in formula["hypotheses"]:
                verdict = "holds" if hypothesis["holds"] else "fails"
                yield "  hypothesis", f"{hypothesis['statement']}: {verdict}"
    if document["formula"] is None:
        yield "dimension formula", "none"


def _target_facts(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts about the space of the image."""
    if document["polynomial"] and document["coordinate_count"] is None:
        yield "target coordinates", "not computed (too many monomials)"
    elif document["polynomial"]:
        yield "ambient dimension", value_text(document["ambient_dim"])
        count, names = document["coordinate_count"], document["coordinates"]
        first = "" if names is None else f": {'; '.join(names[:3])}{'; ...' if count > 3 else ''}"
        yield "target coordinates", f"{count}{first}"
        span = document["span_dim"]
        if span is None:
            yield "span dimension", "not computed (too many coordinates)"
        else:
            yield "span dimension", f"{span} (rank at random points over F_p)"
        yield "gradings", value_text(document["grading_rank"])
    else:
        yield "target", "not polynomial: values at finitely many inputs; there is no ideal"


def _shape(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"
