"""CLI: ``m2bridge closure``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.engine import open_engine
from m2bridge.errors import InputError
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime
from m2bridge.questions.closure import FORMATS, Closure, closure

_SHORT_EQUATION = 160


class Method(StrEnum):
    AUTO = "auto"
    INTERPOLATION = "interpolation"
    KERNEL = "kernel"
    GRADED_KERNEL = "graded-kernel"


def register(app: typer.Typer) -> None:
    @app.command("closure")
    def command(
        spec: Annotated[
            str | None,
            typer.Argument(help="A model, e.g. 'lightning(d=2,dp=1)' or 'mlp(widths=[2,2,3],r=2)'."),
        ] = None,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        method: Annotated[Method, typer.Option("--method", help="How to find the equations.")] = Method.AUTO,
        max_degree: Annotated[
            int | None,
            typer.Option(
                "--max-degree", min=1, help="Look for generators up to this degree (default: until settled)."
            ),
        ] = None,
        field: Annotated[
            str | None, typer.Option("--field", help="QQ, or a prime (the same as --prime).")
        ] = None,
        prime: Annotated[
            int | None,
            typer.Option(
                "--prime",
                help=f"Characteristic of the finite field (default: {MACAULAY2_PRIME}, or the next smaller prime that divides "
                "no coefficient of the model).",
            ),
        ] = None,
        cross_check: Annotated[
            bool, typer.Option("--cross-check", help="Also compute the kernel, and compare.")
        ] = False,
        equations: Annotated[bool, typer.Option("--equations", help="Print the equations.")] = False,
        form: Annotated[
            str | None, typer.Option("--format", help=f"Print only the equations: {', '.join(FORMATS)}.")
        ] = None,
        seed: common.SeedOption = 0,
        timeout: Annotated[
            str, typer.Option("--timeout", help="Time limit of the whole computation: 90, 90s, 10m, none.")
        ] = "10m",
        memory: common.MemoryOption = "4G",
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
        evidence: common.EvidenceOption = False,
    ) -> None:
        """The equations of the Zariski closure of a network's functions, with what is shown about them.

        Example: m2bridge closure --d 2 --dp 1 --equations
        """
        model = model_from(spec, d, dp, a, t)
        if form is not None and form not in FORMATS:
            raise InputError(f"--format {form!r} is not one of {', '.join(FORMATS)}")
        limits = common.parse_limits(timeout, memory)
        _check_directories(save, keep)
        with (
            common.Progress(quiet=as_json or form is not None).shown() as progress,
            open_engine(engine, warm=True) as opened,
        ):
            result = closure(
                model, method=method.value, max_degree=max_degree, field=parse_field(field, prime), engine=opened, seed=seed,
                limits=limits, cross_check=cross_check, equations=equations or form is not None or not as_json,
                keep=keep, progress=progress,
            )  # fmt: skip
        if form is not None and not as_json:
            common.finish(
                result, as_json=False, save=save, show=lambda console: print(result.written(form), end="")
            )
            return
        common.finish(
            result, as_json=as_json, save=save,
            show=lambda console: _show(result, model.title, console, equations=equations, evidence=evidence),
        )  # fmt: skip


def _check_directories(save: Path | None, keep: Path | None) -> None:
    common.check_directory("--save", save)
    common.check_directory("--keep", keep)


def parse_field(field: str | None, prime: int | None) -> int | Literal["QQ"] | None:
    """The field that the two options name; None when neither was given."""
    if field is None:
        return prime
    if field.upper() == "QQ":
        return "QQ"
    try:
        p = int(field.removeprefix("F_").removeprefix("ZZ/"))
    except ValueError:
        raise InputError(f"--field {field!r} is neither QQ nor a prime") from None
    check_prime(p, "--field")
    return p


def _show(result: Closure, title: str, console: Console, *, equations: bool, evidence: bool) -> None:
    console.print(f"[bold]Zariski closure[/]  {escape(title)}", highlight=False)
    table = Table(show_header=False, box=None, pad_edge=False)
    counts = (
        ", ".join(f"{count} of degree {degree}" for degree, count in sorted(result.generator_counts.items()))
        or "none"
    )
    rows = [
        (
            "ambient space",
            f"{result.ambient_dim} (linear span {result.span_dim}, {result.linear_forms} linear forms)",
        ),
        (
            "image",
            f"dimension {common.maybe(result.image_dim)}" + (", no cone" if result.homogenized else ""),
        ),
        (
            "closure in its span",
            f"codimension {common.maybe(result.codim)}, degree {common.maybe(result.degree)}",
        ),
        ("minimal generators", counts),
        (
            "completeness",
            f"{result.completeness}, looked at up to degree {result.degree_bound}, over {result.field}"
            + (
                ": one part of the source, the image may be larger"
                if result.completeness == "seen-part"
                else ""
            ),
        ),
        ("certainty", common.certainty_text(result.certainty)),
    ]
    for number, part in enumerate(result.components or (), start=1):
        rows.insert(2 + number, (
            f"component {number} over {result.field}",
            f"dimension {part.dim}, degree {part.degree}, from component {part.source_component} of the source",
        ))  # fmt: skip
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)
    for sentence in result.shown:
        console.print(f"  [green]+[/] {escape(sentence)}")
    for sentence in result.not_shown:
        console.print(f"  [yellow]-[/] not shown: {escape(sentence)}")
    _print_equations(result, console, wanted=equations)
    common.print_grounds(result, console, evidence=evidence, over=f"method {result.method}")


def _print_equations(result: Closure, console: Console, *, wanted: bool) -> None:
    found = result.equations or ()
    zero = f"= 0 (mod {result.characteristic})" if result.characteristic else "= 0"
    if not wanted:
        shown = [f for f in found if f.degree > 1]
        if len(shown) == 1 and len(shown[0].text()) <= _SHORT_EQUATION:
            console.print(f"  {shown[0].text()} {zero}", markup=False)
        return
    used = sorted({i for f in found for m in f.monomials for i in m})
    meaning = "" if result.model.startswith("map:") else "coefficient of "
    names = result.variables or ()
    for i in used if names else ():
        console.print(f"  z{i}: {meaning}{names[i]}", markup=False, soft_wrap=True)
    for f in found:
        console.print(f"  {f.text()} {zero}", markup=False, soft_wrap=True)
