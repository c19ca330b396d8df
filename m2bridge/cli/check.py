"""CLI: ``m2bridge check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from m2bridge.checker import Rejected, check
from m2bridge.cli import common
from m2bridge.errors import CertificateError, RecordError


def register(app: typer.Typer) -> None:
    @app.command("check")
    def command(
        record: Annotated[
            Path, typer.Argument(help="A record of `m2bridge dimension --save`, or a certificate.")
        ],
        as_json: common.JsonOption = False,
    ) -> None:
        """Verify the certificate in a record with a separate checker; exit 7 when it is rejected.

        Example: m2bridge check dimension-lightning-d-2-dp-1.json
        """
        said = verify(record)
        if as_json:
            common.print_json({"record": record.name, "verified": True, "statement": said})
        else:
            common.console().print(f"[green]verified[/]  {escape(said)}", highlight=False)


def verify(path: Path) -> str:
    """What the certificate in a file proves.

    Raises
    ------
    RecordError
        The file cannot be read, or holds no certificate.
    CertificateError
        The certificate does not hold, or does not belong to the record.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path} is not a record: {error}") from None
    if not isinstance(document, dict):
        raise RecordError(f"{path} is not a record")
    certificate = document.get("certificate", document if "sha256" in document else None)
    if certificate is None:
        raise RecordError(
            f"{path} holds no certificate: the answer was not proved, or its proof has no certificate"
        )
    try:
        said = check(certificate)
        if "certificate" in document:
            _belongs(document, certificate)
    except Rejected as error:
        raise CertificateError(f"the certificate is rejected: {error}", reason=str(error)) from None
    return said


def _belongs(record: dict[str, Any], certificate: dict[str, Any]) -> None:
    """The record claims nothing else than its certificate proves."""
    claim = certificate["claim"]
    proved = {
        "model": certificate["model"],
        "image_dim": claim["image_dim"],
        "parameters": claim["parameters"],
        "lower_bound": claim["image_dim"],
        "upper_bound": claim["image_dim"],
        "generic_fiber_dim": claim["parameters"] - claim["image_dim"],
        "certainty": "proved",
    }
    for name, value in proved.items():
        if record.get(name) != value:
            raise Rejected(f"the record says {name} = {record.get(name)!r}, the certificate proves {value!r}")
