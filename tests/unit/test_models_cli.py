"""The commands `models` and `describe`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from m2bridge.cli.models import register
from m2bridge.errors import SpecError
from m2bridge.families import FAMILIES, from_callable


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer(pretty_exceptions_enable=False)
    register(application)
    return application


def test_models_lists_every_family_with_an_example(app: typer.Typer) -> None:
    text = CliRunner().invoke(app, ["models"]).output
    assert all(family.example in text for family in FAMILIES.values())
    listed = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert [item["name"] for item in listed] == list(FAMILIES)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("file", "torch", "python")])
def test_describe_prints_and_emits_json(app: typer.Typer, family: str) -> None:
    example = FAMILIES[family].example
    run = CliRunner().invoke(app, ["describe", example])
    assert run.exit_code == 0
    assert "parameters" in run.output
    assert "formula" in run.output
    document = json.loads(CliRunner().invoke(app, ["describe", example, "--json"]).stdout)
    assert document["parameter_count"] > 0
    assert {"symmetries", "formula", "span_dim", "ambient_dim"} <= document.keys()


def test_describe_names_the_failing_hypothesis(app: typer.Typer) -> None:
    text = CliRunner().invoke(app, ["describe", "deep-lightning:d=2-3-2"]).output
    assert "d_0, d_l >= delta: fails" in text


def test_errors_propagate(app: typer.Typer) -> None:
    run = CliRunner().invoke(app, ["describe", "lightnig:d=2"])
    assert isinstance(run.exception, SpecError)


def test_describe_a_network_with_too_many_monomials(app: typer.Typer, tmp_path: Path) -> None:
    network = from_callable(
        lambda x, W, V: V @ (W @ x) ** 8, {"W": (30, 30), "V": (30, 30)}, inputs={"x": (30,)}
    )
    network.save(tmp_path / "wide.toml")
    result = CliRunner().invoke(app, ["describe", f"file:{tmp_path / 'wide.toml'}"])
    assert result.exit_code == 0
    assert "1800: " in result.output
    assert "monomials" in result.output
