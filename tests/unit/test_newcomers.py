"""Tests of problems that first users reported."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from m2bridge import checker, from_callable, records
from m2bridge.cli import main
from m2bridge.families import UserNetwork
from m2bridge.questions.dimension import dimension
from m2bridge.questions.same import same
from m2bridge.questions.symmetries import symmetries
from m2bridge.report.explain import explain

A = {"W1": [[3], [2]], "W2": [[1, 1]]}
B = {"W1": [[1], [6]], "W2": [["4", "1/4"]]}
PERCEPTRON = "mlp(widths=[1,2,1],r=2)"


def adapter() -> UserNetwork:
    """A frozen matrix with a learned change of rank one."""
    return from_callable(
        lambda x, B, C, V: V @ ((B @ C + [[1, 2, -1]]) @ x) ** 2,
        {"B": (1, 1), "C": (1, 3), "V": (2, 1)},
        inputs={"x": (3,)},
    )


def test_fields_of_mixed_degree_are_found() -> None:
    """dC = W0 + B C, dV = -2 B V mixes degrees 0 and 2."""
    answer = symmetries(adapter(), engine=False)
    assert (answer.symmetry_dim, answer.explains_fiber, answer.certainty.value) == (2, True, "proved")
    assert dimension(adapter(), engine=False, certify=False).certainty.value == "computed"


def test_a_fiber_that_is_proved_is_called_proved() -> None:
    model = from_callable(
        lambda x, W1, b1, W2, b2: W2 @ (W1 @ x + b1) ** 2 + b2,
        {"W1": (3, 2), "b1": (3,), "W2": (1, 3), "b2": (1,)},
        inputs={"x": (2,)},
    )
    answer = symmetries(model, engine=False)
    assert answer.parameters - answer.upper_bound == answer.generic_fiber_dim == 7
    assert answer.words["generic_fiber_dim"].value == "proved"
    # orbits are proved from below only
    assert (answer.symmetry_dim, answer.certainty.value) == (6, "computed")


Damage = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(verdict="different"),
        lambda d: d["first"]["weights"]["W1"][0].__setitem__(0, "7"),
        lambda d: d.update(second=None),
    ],
)
def test_an_altered_pair_is_rejected(damage: Damage) -> None:
    document = records.to_document(same(PERCEPTRON, at=A, other=B, engine=False))
    assert checker.verify(records.dumps(document))[0] == 0
    altered = json.loads(records.dumps(document))
    damage(altered)
    assert checker.verify(records.dumps(altered))[0] == 7


def test_a_record_of_another_network_is_rejected() -> None:
    document = json.loads(records.dumps(records.to_document(dimension(adapter(), engine=False))))
    assert checker.verify(records.dumps(document))[0] == 0
    document["model"] = document["model"].replace("power 2", "power 3")
    assert checker.verify(records.dumps(document))[0] == 7


def test_certificates_of_every_kind_are_explained() -> None:
    assert "`same function`" in explain(same(PERCEPTRON, at=A, other=B, engine=False))


def test_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nanalysis = "dimension"\n')
    assert main(["batch", str(jobs), "--dry-run"]) == 2
    assert "model" in capsys.readouterr().err
    assert main(["symmetries", PERCEPTRON, "--script"]) == 2
    assert "symmetries" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_check_reads_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("{}",))
    writer.start()
    assert main(["check", str(pipe)]) == 8  # no certificate
    writer.join()
