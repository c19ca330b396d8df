"""Certificates, producer side."""

from typing import Any


def certificate_for(*a: Any, **k: Any) -> None:
    return None
