"""Macaulay2 as a further witness of the dimension, and what happens when its algebra is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge import scripts
from m2bridge.analyses.dimension import dimension
from m2bridge.engine import open_engine


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("lightning(d=2,dp=1,a=2,t=2)", 5),
        ("mlp(widths=[3,5,1],r=4)", 14),
        ("linear(widths=[3,2,3])", 8),
        ("convolution(filters=[2,2],r=2)", 3),
        ("multi-head(d=2,dp=2,a=2,heads=2,t=2)", 12),
        ("map:s,t->s^3;s^2*t;s*t^2;t^3", 2),
    ],
)
def test_macaulay2_agrees(spec: str, expected: int) -> None:
    with open_engine() as engine:
        found = dimension(spec, engine=engine, certify=False)
    said = [item for item in found.evidence if item.witness == "macaulay2" and item.quantity == "image_dim"]
    assert [item.value for item in said] == [expected, expected]
    points = [item.value for item in found.evidence if item.quantity == "image_point"]
    assert points[0] == points[1]
    assert found.agreement is True
    assert found.engine is not None
    assert found.scripts[0].name == "dimension"


def test_a_transposed_attention_matrix_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rank alone would not show it: the image point does."""
    directory = tmp_path / "m2_templates"
    directory.mkdir()
    for path in scripts.template_directory().glob("*.j2"):
        text = path.read_text(encoding="utf-8")
        if path.name == "_lightning.m2.j2":
            assert "A = transpose K * Q;" in text
            text = text.replace("A = transpose K * Q;", "A = transpose Q * K;")
        (directory / path.name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(scripts, "template_directory", lambda: directory)
    with open_engine() as engine:
        found = dimension("lightning(d=2,dp=1)", engine=engine, certify=False)
    assert found.agreement is False
    assert {conflict.quantity for conflict in found.conflicts} == {"image_point"}


def test_no_engine_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from m2bridge.errors import NoEngineError

    def nothing(*_: object) -> None:
        raise NoEngineError("none", candidates=())

    monkeypatch.setattr("m2bridge.analyses.workbench.open_engine", nothing)
    found = dimension("lightning(d=2,dp=1)", certify=False)
    assert found.image_dim == 5
    assert any("no Macaulay2" in item.method for item in found.evidence)
