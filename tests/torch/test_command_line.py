"""Modules and their checkpoints from the command line, and the transformer that the benchmark times, made smaller."""

from __future__ import annotations

import importlib.util
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch import nn

from m2bridge import cli, dimension, from_torch, same
from m2bridge.errors import InputError
from m2bridge.families.user_code import model_from_code
from m2bridge.frontends.checkpoints import read

FILE = """
from torch import nn

class Square(nn.Module):
    def forward(self, x):
        return x**2

def build():
    return nn.Sequential(nn.Linear(2, 3, bias=False), Square(), nn.Linear(3, 1, bias=False)), (2,)

def shapeless():
    return build()[0]

def broken():
    raise ValueError("no data")

module = build()[0]
module.input_shape = (2,)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_net.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_module_is_named_on_the_command_line(file, capsys):
    assert cli.main(["dimension", f"torch:{file}:build", "--no-engine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["image_dim"], document["certainty"]) == (3, "proved")
    assert document["model"].startswith("program:")
    assert model_from_code(f"torch:{file}:module") == model_from_code(f"torch:{file}:build")


@pytest.mark.parametrize(
    ("name", "message"), [("shapeless", "input_shape"), ("broken", "line 15: ValueError: no data")]
)
def test_errors_of_the_function_are_reported(file, name, message):
    with pytest.raises(InputError, match=message):
        model_from_code(f"torch:{file}:{name}")


def test_a_checkpoint_of_torch_is_read_exactly(tmp_path):
    module = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[0.1, 0.5]]))
    path = tmp_path / "w.pt"
    torch.save(module.state_dict(), path)
    found = read(path, {"weight": (1, 2)})
    assert found.weights["weight"].tolist() == [[Fraction(13421773, 134217728), Fraction(1, 2)]]


def _normalized() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double().eval()


def test_statistics_of_batch_norm_in_a_file_must_be_those_recorded(tmp_path):
    module = _normalized()
    network = from_torch(module, (1, 2))
    first, second = tmp_path / "a.pt", tmp_path / "b.pt"
    torch.save({**module.state_dict(), "1.num_batches_tracked": torch.tensor(9)}, first)
    torch.save({**module.state_dict(), "1.running_var": torch.tensor([2.0, 3.0])}, second)
    assert same(network, at=first, other=first).verdict == "same"
    with pytest.raises(InputError, match=r"1\.running_var: not among the weights"):
        same(network, at=first, other=second)
    loaded = _normalized()
    loaded.load_state_dict(torch.load(second))
    assert same(from_torch(loaded, (1, 2)), at=second, other=second).verdict == "same"


def test_tied_entries_of_a_file_must_be_equal(tmp_path):
    module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2, bias=False))
    module[2].weight = module[0].weight
    network = from_torch(module, (2,))
    first, second = tmp_path / "a.pt", tmp_path / "b.pt"
    torch.save(module.state_dict(), first)
    torch.save({**module.state_dict(), "2.weight": torch.eye(2)}, second)
    assert same(network, at=first, other=first).verdict == "same"
    with pytest.raises(InputError, match="weight: not among the weights"):
        same(network, at=first, other=second)


def test_a_pickled_module_is_refused(tmp_path):
    path = tmp_path / "w.pt"
    torch.save(nn.Linear(2, 1), path)
    with pytest.raises(InputError, match="state_dict"):
        read(path, {"weight": (1, 2)})


def test_two_checkpoints_of_one_module(file, tmp_path, capsys):
    state = {
        "0.weight": torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]),
        "2.weight": torch.tensor([[1.0, 2.0, -1.0]]),
    }
    torch.save(state, tmp_path / "a.pt")
    scaled = {"0.weight": state["0.weight"][[1, 0, 2]] * 2, "2.weight": state["2.weight"][:, [1, 0, 2]] / 4}
    torch.save(scaled, tmp_path / "b.pt")
    files = ["--at", str(tmp_path / "a.pt"), "--and", str(tmp_path / "b.pt")]
    assert cli.main(["same", f"torch:{file}:build", *files, "--no-engine"]) == 0
    assert "same" in capsys.readouterr().out


def test_a_transformer_of_two_blocks():
    """Parameters minus GL(2) on (Q, K) and on (V, O) of 2 heads in 2 blocks, minus scalings of 3 neurons in 2 blocks."""
    source = Path(__file__).parents[2] / "benchmarks" / "pytorch_modules.py"
    spec = importlib.util.spec_from_file_location("modules_of_benchmark", source)
    modules = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = modules
    spec.loader.exec_module(modules)
    module = nn.Sequential(*(modules.Block(4, 3, heads=2, kind="softmax") for _ in range(2)))
    answer = dimension(from_torch(module, (3, 4)), engine=False)
    expected = answer.parameters - 2 * (2 * 4 + 2 * 4 + 3)
    assert answer.lower_bound == answer.upper_bound == answer.image_dim == expected
    assert answer.certainty.value == "proved"
