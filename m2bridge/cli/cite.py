"""CLI: ``m2bridge cite RECORD``: one LaTeX sentence and its BibTeX entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from m2bridge.checker import verify_file
from m2bridge.errors import CertificateError
from m2bridge.records import load
from m2bridge.report.cite import bibliography, sentence


def register(app: typer.Typer) -> None:
    @app.command("cite")
    def command(
        record: Annotated[Path, typer.Argument(help="A record that --save wrote.")],
        bibtex: Annotated[bool, typer.Option("--bibtex", help="The BibTeX entries alone.")] = False,
        latex: Annotated[bool, typer.Option("--latex", help="The sentence alone.")] = False,
    ) -> None:
        """Cite a record: one LaTeX sentence that says what it holds, and BibTeX for what the sentence names.

        A certificate is verified first; a record whose certificate is rejected is not cited (exit 7).

        Example: m2bridge cite records/dimension-....json
        """
        result = load(record)
        version = str(json.loads(record.read_bytes()).get("package_version"))
        verified = False
        if getattr(result, "certificate", None) is not None:
            code, said = verify_file(str(record))
            if code == CertificateError.exit_code:
                raise CertificateError(f"{record.name} is not cited: {' '.join(said)}")
            verified = code == 0
        if not bibtex or latex:
            typer.echo(sentence(result, version=version, verified=verified), nl=False)
        if not latex or bibtex:
            typer.echo(("" if bibtex else "\n") + bibliography(result, version=version), nl=False)
