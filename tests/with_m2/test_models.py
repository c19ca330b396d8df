"""Every family: Macaulay2's expansion of the network and Python's forward pass give the same values and
derivatives.

The two share no code: Macaulay2 expands the template's network symbolically and substitutes; Python
evaluates.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from m2bridge.engine import Engine, EngineInfo
from m2bridge.families import Mod, Model, from_callable, jacobian, parse_spec
from m2bridge.protocol import read
from m2bridge.questions.dimension import dimension
from m2bridge.scripts import render, template_directory
from tests.running import PATIENCE
from tests.unit.test_programs_mutations import forget_a_head

PRIMES = (32003, 8191)
SPECS = [
    "lightning(d=2,dp=1,a=2,t=2)",
    "lightning(d=3,dp=2,a=2,t=2)",
    "lightning(d=2,dp=2,a=1,t=3,coordinates=full)",
    "lightning(d=3,dp=2,a=2,t=2,parametrization=attention)",
    "lightning(d=2,dp=1,t=1)",
    "deep-lightning(d=[2,1,2],a=[2,1],t=2)",
    "deep-lightning(d=[2,2,1],a=[1,2],t=1)",
    "deep-lightning(d=[2,2,2],a=1,t=1,parametrization=attention)",
    "deep-lightning(d=[2,2,2],t=1,parametrization=virtual)",
    "deep-lightning(d=[1,1,1,1],t=2,parametrization=virtual)",
    "deep-lightning(d=[1,2,1],a=1,t=2,heads=[2,1])",
    "multi-head(d=2,dp=2,heads=2,a=1,coordinates=full)",
    "multi-head(d=2,dp=2,heads=2,parametrization=attention)",
    "skip-lightning(d=[2,2,2],t=1,a=1,parametrization=attention)",
    "skip-lightning(d=[1,1,1],t=2)",
    "mlp(widths=[2,3,2],r=2)",
    "mlp(widths=[2,2,2,1],r=2)",
    "mlp(widths=[3,2],r=2)",
    "convolution(filters=[3,2,2],strides=[2,1,1],r=2)",
    "convolution(filters=[2,2],r=3)",
    "linear(widths=[3,2,3])",
    "map:s,t->s^3-1/2*t;s^2*t;0;5",
]


def free(model: Model) -> bool:
    """On weights of bounded rank a polynomial and its remainder have different derivatives off the variety."""
    return model.free is model


def compare(model: Model, p: int, engine: Engine) -> None:
    rng = np.random.default_rng(p)
    drawn = [model.draw_weights(rng, p) for _ in range(2)]
    values: dict[str, object] = {
        **model.m2_parameters,
        "p": p,
        "points": [model.flatten(weights).tolist() for weights in drawn],
        "wantJacobian": free(model),
    }
    shape = model.input_shape
    X = rng.integers(0, p, (2, *(shape or ())))
    has_network = shape is not None and model.m2_partial != "_custom"
    if has_network:
        values["inputs"] = (X if X.ndim == 3 else X[..., None]).tolist()
    found = read(engine.run(render("model_values", values, partial=model.m2_partial)))
    for i, weights in enumerate(drawn):
        expected, matrix = jacobian(model, weights, p=p)
        assert (np.array(found["coordinates"][i]) % p == expected).all()
        if free(model):
            assert (np.array(found["jacobians"][i]).reshape(matrix.shape) % p == matrix).all()
        if has_network:
            outputs = model.forward({name: Mod(value, p) for name, value in weights.items()}, Mod(X, p))
            assert (np.array(found["outputs"][i]) % p == outputs.values.reshape(2, -1)).all()


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("spec", SPECS)
def test_macaulay2_and_python_agree(spec: str, p: int, engine: Engine) -> None:
    compare(parse_spec(spec), p, engine)


@pytest.mark.parametrize("p", PRIMES)
def test_a_traced_network_agrees(p: int, engine: Engine) -> None:
    def network(X, W, b):  # type: ignore[no-untyped-def]
        return (W @ X + b) ** 2 - 3 * X

    compare(from_callable(network, {"W": (2, 2), "b": (2,)}, inputs={"X": (2,)}), p, engine)


@pytest.mark.parametrize(
    "spec",
    [
        "lightning(d=2,dp=1)",
        "deep-lightning(d=[2,1,1],t=1)",
        "convolution(filters=[2,2],r=2)",
        "map:s->s^2/3",
    ],
)
def test_every_supported_engine_agrees(spec: str, each_engine: Engine) -> None:
    compare(parse_spec(spec), 32003, each_engine)


def test_rational_values(engine: Engine) -> None:
    model = parse_spec("map:s,t->s^3-1/2*t;s*t")
    script = render(
        "model_values", {**model.m2_parameters, "p": 0, "points": [[1, 1]]}, partial=model.m2_partial
    )
    assert read(engine.run(script))["coordinates"] == [["1/2", "1"]]


def test_the_template_runs_as_it_stands(engine_info: EngineInfo, tmp_path: Path) -> None:
    run = subprocess.run(
        [str(engine_info.path), "--script", str(template_directory() / "model_values.m2.j2")],
        capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    model = parse_spec("lightning(d=2,dp=1,parametrization=attention)")
    weights = model.unflatten(Mod(np.arange(1, 7), 32003))
    shown = ",".join(map(str, model.coordinates(weights).values.tolist()))
    assert f"@m2b coordinates [[{shown}]]" in run.stdout
    assert run.stdout.rstrip().endswith("@m2b-end 3")


def test_macaulay2_contradicts_a_network_that_forgets_a_head(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of differentiation agree about any network; the definition in Macaulay2 is another one."""
    spec = "multi-head(d=2,dp=2,a=2,heads=2,t=2)"
    assert dimension(spec, engine=engine, certify=False).agreement is True
    forget_a_head(monkeypatch)
    assert dimension(spec, engine=engine, certify=False).agreement is False
