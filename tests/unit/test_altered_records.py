"""Records that were altered in every field: check, cite, explain and report do not vouch for them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from m2bridge import checker, records
from m2bridge.cli import main
from m2bridge.questions.dimension import dimension
from m2bridge.questions.same import same
from m2bridge.questions.symmetries import symmetries
from m2bridge.results import Result


def answers() -> dict[str, Result]:
    first, second = {"W1": [[1, 2]], "W2": [[1], [2]]}, {"W1": [[2, 4]], "W2": [["1/2"], [1]]}
    return {
        "proved": dimension("lightning(d=2,dp=1)", engine=False),
        "by a theorem": dimension("cp(sizes=[2,2,2,2],rank=3)", engine=False),
        "symmetries": symmetries("mlp(widths=[2,2,1],r=2)"),
        "same": same("linear(widths=[2,1,2])", at=first, other=second, engine=False),
    }


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return {"proved": "computed", "computed": "proved"}.get(value, f"{value} ")
    if isinstance(value, list):
        return value[:-1] if value else [1]
    if isinstance(value, dict):
        return {**value, "altered": 1}
    return 1


def alterations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field, each number of the evidence, a field with its evidence, options and model."""
    for name, value in document.items():
        yield name, {**document, name: changed(value)}
    for place, item in enumerate(document["evidence"][:6]):
        for key in ("value", "certainty", "witness", "relation"):
            own = copy.deepcopy(document)
            own["evidence"][place][key] = changed(item[key])
            yield f"evidence {place} {key}", own
    for name in ("image_dim", "symmetry_dim", "generic_fiber_dim"):
        if name in document:
            own = copy.deepcopy(document)
            own[name] += 1
            for item in own["evidence"]:
                if item["quantity"] == name and isinstance(item["value"], int):
                    item["value"] += 1
            yield f"{name} and its evidence", own


@pytest.mark.parametrize("name", list(answers()))
def test_an_altered_record_is_not_vouched_for(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(records.dumps(records.to_document(answers()[name])))
    cases = list(alterations(document))
    assert len(cases) >= 20
    path = tmp_path / "record.json"
    for what, altered in cases:
        path.write_text(json.dumps(altered))
        code, said = checker.verify(path.read_text())
        assert code in (7, 9), (what, said)
        for command in (["cite"], ["explain"], ["report", "-o", str(tmp_path / "page.html")]):
            assert main([*command, str(path)]) != 0, (what, command)
            shown = capsys.readouterr()
            assert shown.err.strip() or "altered" in shown.out, (what, command)


def test_a_digest_written_anew_vouches_for_no_more_than_the_certificate(tmp_path: Path) -> None:
    """Who alters field and evidence and writes a new digest cannot alter what the certificate shows."""
    document = records.to_document(dimension("lightning(d=2,dp=1)", engine=False))
    own = json.loads(records.dumps(document))
    own["image_dim"] += 1
    own["digest"] = records.digest_of(own)
    assert checker.verify(json.dumps(own))[0] == 7
    own = json.loads(records.dumps({**document, "certificate": None}))
    own["digest"] = records.digest_of(own)
    code, said = checker.verify(json.dumps(own))
    assert (code, "calls itself proved" in said[0]) == (7, True)
