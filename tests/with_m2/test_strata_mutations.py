"""A mistake in a provider of strata contradicts the singular scheme, which Macaulay2 computes from the equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from m2bridge.engine import Engine
from m2bridge.families.attention_strata import LayerStrata
from m2bridge.families.linear_strata import LinearStrata
from m2bridge.questions.singular_locus import singular_locus

PROVIDERS = [(LayerStrata, "lightning(d=2,dp=1)"), (LinearStrata, "linear(widths=[3,2,3])")]
Method = Callable[..., Any]


def one_more(right: Method) -> Method:
    def degree(strata: Any, stratum: Any) -> Any:
        found = right(strata, stratum)
        return None if found is None else replace(found, value=found.value + 1)

    return degree


def without_the_largest_singular_one(right: Method) -> Method:
    def strata(provider: Any) -> Any:
        listed = list(right(provider))
        return listed[:-2] + listed[-1:]

    return strata


def of_the_dense_stratum(right: Method) -> Method:
    return lambda strata, stratum: right(strata, strata.strata()[-1])


MISTAKES: dict[str, tuple[str, Callable[[Method], Method]]] = {
    "closure order reversed": ("contains", lambda right: lambda strata, a, b: right(strata, b, a)),
    "a stratum left out": ("strata", without_the_largest_singular_one),
    "tangent vectors of the orbit left out": ("directions", lambda right: lambda s, x: right(s, x)[::2]),
    "degree one too large": ("degree", one_more),
    "wrong representative": ("representative", of_the_dense_stratum),
    "weights of another fiber": ("fiber", of_the_dense_stratum),
}


@pytest.mark.parametrize(("provider", "spec"), PROVIDERS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_strata_is_a_contradiction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, provider: type, spec: str, mistake: str
) -> None:
    method, wrong = MISTAKES[mistake]
    monkeypatch.setattr(provider, method, wrong(getattr(provider, method)))
    result = singular_locus(spec, engine=engine)
    assert result.agreement is False
    assert result.conflicts
