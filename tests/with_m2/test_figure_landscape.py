"""The loss landscape as a picture: what is drawn is the exact answer, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.families import parse_spec
from m2bridge.figures import landscape
from m2bridge.questions.critical_points import critical_points


@pytest.mark.slow
def test_slice_of_attention(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "landscape.png"
    assert main(["figure", "landscape", "lightning(d=2,dp=1)", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    drawn = json.loads(path.with_suffix(".json").read_text())
    # Whitney's umbrella in the Euclidean metric has ED degree 7; this target sees three real critical functions
    assert (drawn["regular"], drawn["real"], drawn["index"]) == (7, 3, {"minimum": 2, "saddle": 1})
    assert drawn["ending_in_a_minimum"] == drawn["flow_lines"] == 81
    assert "81 of 81" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_plane_with_hundreds_of_critical_points(msolve: Engine, tmp_path: Path) -> None:
    """Functions of degree 7: the two derivatives of the loss have degree 13, and 13^2 common zeros by Bezout's theorem."""
    path = tmp_path / "landscape.png"
    assert main(["figure", "landscape", "mlp(widths=[2,2,2,1],r=2)", "-o", str(path)]) == 0
    drawn = json.loads(path.with_suffix(".json").read_text())
    assert drawn["regular"] == 13**2
    assert (
        drawn["real"]
        == sum(drawn["index"].values())
        == len(path.with_suffix(".csv").read_text().splitlines()) - 1
    )
    assert drawn["index"]["minimum"] >= 1


def test_points_are_critical_and_lines_descend(engine: Engine) -> None:
    plane, _ = landscape.plane_of(parse_spec("lightning(d=2,dp=1)"), 0)
    target = landscape.target_of(plane, 0)
    part = landscape.scene(
        plane, target, critical_points(plane, metric="euclidean", target=target, real=True, engine=engine)
    )
    goal = np.array([float(x) for x in target])
    for function, found in zip(part.functions, part.weights, strict=True):
        assert len(found) == 1  # no critical function lies on the singular line, where there would be two
        values = np.asarray(plane.coordinates({"x": found[0]}))
        assert np.allclose(values, function, atol=1e-9)
        assert np.allclose((values - goal) @ plane.coordinate_jacobian({"x": found[0]}), 0, atol=1e-9)
    for line in part.flows:
        losses = ((np.asarray(plane.coordinates({"x": line})) - goal) ** 2).sum(axis=1)
        assert losses[-1] < losses[0]


@pytest.mark.slow
def test_plane_of_a_larger_network(tmp_path: Path) -> None:
    path = tmp_path / "landscape.svg"
    assert main(["figure", "landscape", "mlp(widths=[2,2,1],r=2)", "-o", str(path), "--seed", "1"]) == 0
    assert "critical functions" in path.read_text()


def test_refusals() -> None:
    with pytest.raises(InputError, match="two weights"):
        landscape.plane_of(parse_spec("map:s->s^2;s^3"), 0)
