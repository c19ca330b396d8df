"""Certificates: accepted as they are, rejected with any field changed, with and without a forged sha256."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from m2bridge import records
from m2bridge.analyses.dimension import dimension
from m2bridge.checker import Rejected, check
from m2bridge.cli import main

SPECS = (
    "lightning(d=2,dp=1)",
    "deep-lightning(d=[3,3,3],a=[2,2],t=3)",
    "softmax(d=[3,3,3],a=[2,2],t=3)",
    "softmax(d=[3,2],a=[2],t=2)",
    "softmax(d=[3,2,1],a=[1,1],t=2)",
    "mlp(widths=[3,5,1],r=4)",
    "mlp(widths=[5,7,1],r=3)",
    "linear(widths=[3,2,3])",
    "linear(widths=[5,2,3,4])",
    "convolution(filters=[2,3],r=2)",
    "multi-head(d=2,dp=2,a=2,heads=2,t=2)",
    "skip-lightning(d=[2,2,2],a=[2,2],t=2)",
    "skip-lightning(d=[2,2,2],a=[2,2],t=1)",
    "deep-lightning(d=[3,3,3],a=[1,2],t=3)",
    "map:s,t->s^3;s^2*t;s*t^2;t^3",
)


@cache
def _text(spec: str) -> str:
    certificate = dimension(spec, engine=False).certificate
    assert certificate is not None
    return json.dumps(certificate)


def certificate(spec: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_text(spec))
    return found


def forged(document: dict[str, Any]) -> dict[str, Any]:
    """The document with a sha256 that fits it."""
    body = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("spec", SPECS)
def test_certificates_are_accepted(spec: str) -> None:
    assert "the image has dimension" in check(certificate(spec))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index in {0, len(value) - 1}:  # both ends of every list
            yield from leaves(value[index], (*path, index))
    else:
        yield path


def changed(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    other = copy.deepcopy(document)
    target: Any = other
    for key in path[:-1]:
        target = target[key]
    old = target[path[-1]]
    if isinstance(old, bool) or old is None or isinstance(old, list):
        target[path[-1]] = 1
    elif isinstance(old, int):
        target[path[-1]] = old + 1
    else:
        target[path[-1]] = (
            old.replace("3", "4").replace("2", "3") if any(c in "23" for c in old) else old + "x"
        )
    assert target[path[-1]] != old
    return other


@pytest.mark.parametrize("spec", SPECS)
def test_any_changed_field_is_rejected(spec: str) -> None:
    document = certificate(spec)
    paths = list(leaves(document))
    assert {path[0] for path in paths} == {"version", "model", "claim", "lower", "upper", "sha256"}
    for path in paths:
        with pytest.raises(Rejected):
            check(changed(document, path))


@pytest.mark.parametrize("spec", SPECS)
def test_a_change_with_a_forged_sha256_is_rejected_by_the_mathematics(spec: str) -> None:
    """The point is tied to the determinant, so that even a consistent forgery of any field fails.

    The point of the upper bound is free: another point with the same ranks is another true proof.
    """
    document = certificate(spec)
    for path in leaves(document):
        if path[0] == "sha256" or path[:2] == ("upper", "weights") or path == ("upper", "prime"):
            continue
        with pytest.raises(Rejected):
            check(forged(changed(document, path)))


@pytest.mark.parametrize(("bound", "field"), [("lower", "rows"), ("lower", "columns"), ("lower", "prime")])
def test_missing_and_additional_fields_are_rejected(bound: str, field: str) -> None:
    document = certificate("deep-lightning(d=[3,3,3],a=[2,2],t=3)")
    without = copy.deepcopy(document)
    del without[bound][field]
    with pytest.raises(Rejected):
        check(forged(without))
    more = copy.deepcopy(document)
    more[bound]["extra"] = 1
    with pytest.raises(Rejected):
        check(forged(more))


def test_a_wrong_claim_cannot_be_made_consistent() -> None:
    """Every number that speaks of the dimension raised by one, and the sha256 forged."""
    document = certificate("deep-lightning(d=[3,3,3],a=[2,2],t=3)")
    document["claim"]["image_dim"] += 1
    document["upper"]["value"] += 1
    with pytest.raises(Rejected, match="slice"):
        check(forged(document))


@pytest.mark.parametrize("hostile", [None, 3, [], {}, {"version": 1}, {"version": 1, "model": "rm -rf"}])
def test_hostile_documents_are_rejected(hostile: Any) -> None:
    with pytest.raises(Rejected):
        check(hostile)


def test_the_checker_is_separate() -> None:
    """It runs without NumPy and imports nothing of the package but itself."""
    root = Path(__file__).parents[2] / "m2bridge" / "checker"
    for path in root.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "import" in line and "m2bridge" in line and not line.lstrip().startswith((":", "*", "#")):
                assert "m2bridge.checker" in line, (path.name, line)
    code = (
        "import sys, types, json; sys.modules['numpy'] = None\n"
        f"package = types.ModuleType('m2bridge'); package.__path__ = [{str(root.parent)!r}]\n"
        "sys.modules['m2bridge'] = package\n"
        "from m2bridge.checker import check\n"
        "print(check(json.load(sys.stdin)))\n"
    )
    for spec in ("softmax(d=[3,3,3],a=[2,2],t=3)", "mlp(widths=[3,5,1],r=4)"):
        done = subprocess.run(
            [sys.executable, "-c", code], input=_text(spec), capture_output=True, text=True, check=True
        )
        assert "the image has dimension" in done.stdout


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = dimension("lightning(d=2,dp=1)", engine=False)
    path = records.save(result, tmp_path)
    assert main(["check", str(path)]) == 0
    assert "verified" in capsys.readouterr().out
    document = json.loads(path.read_text())
    for name, value in (("image_dim", 6), ("lower_bound", 4), ("model", "lightning(d=2,dp=1,a=1,t=2)")):
        path.write_text(json.dumps({**document, name: value}))
        assert main(["check", str(path)]) == 7
    document["certificate"]["lower"]["seed"] += 1
    path.write_text(json.dumps(document))
    assert main(["check", str(path)]) == 7
    path.write_text("{}")
    assert main(["check", str(path)]) == 2
    assert main(["check", str(tmp_path / "absent.json")]) == 2


def test_large_matrices_use_numpy() -> None:
    assert "dimension 1502" in check(certificate("deep-lightning(d=[32,32,32],a=[4,4],t=3)"))
    wrong = certificate("deep-lightning(d=[32,32,32],a=[4,4],t=3)")
    wrong["lower"]["columns"][-1] = wrong["lower"]["columns"][0]
    with pytest.raises(Rejected):
        check(forged(wrong))
