"""The script that a record prints computes the values of its answer."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from m2bridge import protocol, records
from m2bridge.engine import Engine
from m2bridge.questions import find
from m2bridge.report.explain import explain
from m2bridge.scripts import Script

CASES = [
    pytest.param("closure", "lightning(d=2,dp=2)", {"field": "QQ"}, marks=pytest.mark.slow),
    ("closure", "map:u,v->u;u*v;v^2", {}),
    ("closure", "map:t->t;t^2;t^3", {"method": "kernel"}),
    pytest.param("singular-locus", "lightning(d=2,dp=1)", {}, marks=pytest.mark.slow),
    ("singular-locus", "map:t->t^2;t^3", {}),
    pytest.param("fiber", "mlp(widths=[2,2,1],r=2)", {}, marks=pytest.mark.slow),
    ("dimension", "mlp(widths=[2,2,2],r=2)", {}),
    ("critical-points", "linear(widths=[2,1,2])", {}),
    ("membership", "map:t->t^2;t^3", {"point": [1, 1]}),
    pytest.param("boundary", "lightning(d=2,dp=1)", {}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("question", "spec", "options"), CASES)
def test_the_final_script_reproduces_the_answer(
    question: str, spec: str, options: dict[str, object], engine: Engine, tmp_path: Path
) -> None:
    result = find(question)(spec, engine=engine, **options)
    path = records.save(result, tmp_path)
    loaded = records.scripts_beside(path, records.load(path))
    final = loaded.final_script
    assert final is not None
    assert final.text is not None
    assert final.text.rstrip() in explain(loaded)
    values = protocol.read(engine.run(Script(name=final.name, text=final.text)))
    assert {tag: values[tag] for tag in final.values} == dict(final.values)
    reported = set(find(question).quantities) & {item.name for item in fields(loaded)}
    for name in (reported & set(final.values)) - {"equations", "components"}:
        ours = getattr(loaded, name)
        assert values[name] == (list(ours) if isinstance(ours, tuple) else ours), name


@pytest.mark.slow
def test_an_intermediate_script_is_not_the_one_that_is_printed(engine: Engine, tmp_path: Path) -> None:
    """Quadrics alone define a scheme of degree 32 that contains M(2,2,2), whose degree is 20."""
    result = find("closure")("lightning(d=2,dp=2)", engine=engine, field="QQ")
    degrees = [used.values.get("degree") for used in result.scripts]
    assert len(set(degrees) - {None}) > 1
    assert result.final_script is not None
    assert result.final_script.values["degree"] == result.degree == 20
