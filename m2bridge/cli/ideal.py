"""CLI: ``m2bridge ideal FILE``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.closure import parse_field
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.models.ideal_text import read_ideal
from m2bridge.questions.ideal import IdealSummary, ideal

_LARGEST_FILE = 16 * 2**20


def register(app: typer.Typer) -> None:
    @app.command("ideal")
    def command(
        file: Annotated[str, typer.Argument(help="A file of polynomials, or - for standard input.")],
        field: Annotated[
            str | None, typer.Option("--field", help="QQ or a prime (default: the file's ring, else 32003).")
        ] = None,
        components: Annotated[
            bool, typer.Option(help="Minimal primes and whether the ideal is radical.")
        ] = True,
        singular: Annotated[bool, typer.Option(help="The singular locus, when it is small.")] = True,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = "10m",
        memory: common.MemoryOption = "4G",
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
        evidence: common.EvidenceOption = False,
    ) -> None:
        """Dimension, degree, Hilbert series, radical, components and singular locus of an ideal of yours.

        The file has one polynomial a line, or a list such as ideal(x*y - z^2, x^3); a ring QQ\\[x,y,z] or a line
        "variables: x, y, z" declares the variables.
        """
        given = read_ideal(_text(file), source="standard input" if file == "-" else Path(file).name)
        limits = common.parse_limits(timeout, memory)
        common.check_directory("--save", save)
        common.check_directory("--keep", keep)
        chosen = parse_field(field, None)
        with common.Progress(quiet=as_json).shown() as progress, open_engine(engine) as opened:
            result = ideal(
                given, field=chosen, components=components, singular=singular, engine=opened, seed=seed, limits=limits,
                keep=keep, progress=progress,
            )  # fmt: skip
        common.finish(
            result, as_json=as_json, save=save, show=lambda console: _show(result, console, evidence=evidence)
        )


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(_LARGEST_FILE)
        path = Path(file)
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{file} is larger than {_LARGEST_FILE // 2**20} MB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None


def _show(result: IdealSummary, console: Console, *, evidence: bool) -> None:
    count = "1 polynomial" if len(result.generators) == 1 else f"{len(result.generators)} polynomials"
    variables = escape(", ".join(result.variables))
    console.print(f"[bold]Ideal[/] of {count} in {variables} over {result.field}")
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in (
        ("homogeneous", result.homogeneous), ("dimension (affine)", result.dim), ("codimension", result.codim),
        ("degree", result.degree), ("h-vector", result.h_vector), ("radical", result.radical),
        ("singular locus: dimension", result.singular_dim), ("singular locus: degree", result.singular_degree),
    ):  # fmt: skip
        if value is not None:
            table.add_row(name, str(value))
    console.print(table)
    for number, part in enumerate(result.components or (), start=1):
        shown = ", ".join(part.generators) or "0"
        text = shown if len(shown) <= 200 else f"{len(part.generators)} generators"
        console.print(
            f"  component {number}: codimension {part.codim}, degree {part.degree}: {text}", markup=False
        )
    for sentence in result.not_shown:
        console.print(f"  [yellow]-[/] not shown: {escape(sentence)}")
    if evidence:
        console.print(common.evidence_table(result.evidence))
    engine = f"Macaulay2 {result.engine.version}" if result.engine else "no Macaulay2"
    console.print(f"certainty: {common.certainty_text(result.certainty)}; {engine}, {result.seconds:.1f} s")
