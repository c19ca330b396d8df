"""The families of everyday networks in Macaulay2: their partials are the second definition of each."""

from __future__ import annotations

import pytest

from m2bridge.engine import Engine
from m2bridge.families import parse_spec
from m2bridge.families.attention import AttentionNetwork
from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import dimension
from tests.with_m2.test_models import compare

SPECS = [
    "attention(d=[2,1],a=1,t=2,causal=true,heads=2)",
    "attention(d=[2,2],a=1,t=2,tied=true,positions=true)",
    "attention(d=[2,1],a=1,t=1,r=2)",
    "attention(d=[1,1,1],t=2,skip=true,causal=true)",
    "transformer(d=1,t=2,heads=2,causal=true,positions=true)",
    "transformer(d=2,a=1,t=1,hidden=1,r=3)",
    "cp(sizes=[2,3,2],rank=2)",
]


@pytest.mark.parametrize("spec", SPECS)
def test_macaulay2_and_python_agree(spec: str, engine: Engine) -> None:
    compare(parse_spec(spec), 32003, engine)


def test_every_supported_engine_agrees(each_engine: Engine) -> None:
    for spec in SPECS[::2]:
        compare(parse_spec(spec), 32003, each_engine)


@pytest.mark.parametrize("spec", SPECS)
def test_the_definitions_meet_in_the_question_of_dimension(spec: str, engine: Engine) -> None:
    answer = dimension(spec, engine=engine)
    ranks = [item.value for item in answer.evidence if item.witness == "macaulay2" and item.value is not None]
    assert answer.agreement is True
    assert answer.image_dim in ranks


def test_macaulay2_contradicts_a_network_that_forgets_its_mask(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = "attention(d=[3,1],a=2,t=2,causal=true)"
    assert dimension(spec, engine=engine, certify=False).agreement is True
    monkeypatch.setattr(AttentionNetwork, "mixing", lambda self, scores: scores)
    other = "attention(d=[3,1],a=3,t=2,causal=true)"  # not recorded yet
    assert dimension(other, engine=engine, certify=False).agreement is False


def test_tensors_of_rank_one_are_the_segre_variety(engine: Engine) -> None:
    """P^1 x P^1 x P^1 in P^7: nine quadrics, degree 3! = 6."""
    answer = closure("cp(sizes=[2,2,2],rank=1)", engine=engine)
    assert (answer.generator_counts, answer.degree) == ({2: 9}, 6)
