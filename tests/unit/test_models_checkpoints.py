"""Weights from files: exactly the numbers that they are, or rounded where that was asked."""

from __future__ import annotations

import json
import re
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from m2bridge import from_callable, singular_point
from m2bridge.cli import main
from m2bridge.errors import InputError
from m2bridge.frontends import checkpoints
from m2bridge.frontends.checkpoints import CheckpointFile, read

SHAPES = {"layer_weight": (2, 1), "p0_bias": (1,)}


def safetensors(path: Path, **tensors: tuple[str, list[int], bytes]) -> Path:
    """A file in the format of the library safetensors, from its description: header length, header, bytes."""
    header, data = {}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_binary_floats_are_the_dyadic_numbers_that_they_are(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(
        path,
        **{
            "layer.weight": np.array([[0.1], [0.5]]),
            "0.bias": np.array([3], dtype=np.int32),
        },
    )
    found = read(path, SHAPES)
    assert found.weights["layer_weight"].tolist() == [[Fraction(0.1)], [Fraction(1, 2)]]
    assert found.weights["layer_weight"][0, 0] != Fraction(1, 10)
    assert found.weights["p0_bias"].tolist() == [Fraction(3)]
    assert "exactly" in found.note


def test_entries_that_are_not_weights_must_equal_the_recorded_constants(tmp_path):
    path = tmp_path / "w.npz"
    weights = {"layer.weight": np.ones((2, 1)), "0.bias": np.ones(1)}
    np.savez(
        path,
        **weights,
        **{"norm.running_mean": np.array([0.5, 2.0]), "norm.num_batches_tracked": np.array(7)},
    )
    assert read(path, SHAPES, {"norm.running_mean": np.array([0.5, 2.0])}).weights
    for constants in (None, {"norm.running_mean": np.zeros(2)}):
        with pytest.raises(InputError, match=r"norm\.running_mean: not among the weights.*load_state_dict"):
            read(path, SHAPES, constants)


def test_rounding_is_optional_and_recorded(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, **{"layer.weight": np.array([[1 / 3], [0.1]])})
    found = read(CheckpointFile(path, 10), SHAPES)
    assert found.weights["layer_weight"].tolist() == [[Fraction(1, 3)], [Fraction(1, 10)]]
    assert "2^10" in found.note


def test_safetensors_without_the_library(tmp_path):
    half = struct.pack("<2H", 0x3F80, 0xC000)  # 1 and -2 in bfloat16
    path = safetensors(
        tmp_path / "w.safetensors",
        **{"layer.weight": ("BF16", [2, 1], half), "0.bias": ("F32", [1], struct.pack("<f", 0.1))},
    )
    found = read(path, SHAPES)
    assert found.weights["layer_weight"].tolist() == [[1], [-2]]
    assert found.weights["p0_bias"].tolist() == [Fraction(13421773, 134217728)], "0.1 in float32"


def test_a_decimal_in_json_is_that_decimal(tmp_path):
    path = tmp_path / "w.json"
    path.write_text('{"layer_weight": [[0.1], ["1/3"]], "p0_bias": [2]}', encoding="utf-8")
    assert read(path, SHAPES).weights["layer_weight"] == [[Fraction(1, 10)], ["1/3"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("w.npz", b"nothing", "npz"),
        ("w.safetensors", b"\xff" * 12, "truncated"),
        ("w.safetensors", struct.pack("<Q", 2) + b"[]", "safetensors"),
        ("w.json", b'{"a": NaN}', "finite"),
        ("w.json", b'{"a": 1e999999999}', "large"),
        ("w.json", b"[1]", "object"),
        ("w.bin", b"", "w.bin"),
    ],
)
def test_files_that_are_no_weights(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path, SHAPES)


def test_pickles_are_not_run(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, layer_weight=np.array([Path("x")], dtype=object))
    with pytest.raises(InputError, match="arrays"):
        read(path, SHAPES)


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez_compressed(path, layer_weight=np.arange(4000).reshape(-1, 1))
    data = bytearray(path.read_bytes())
    data[60:400] = b"\xff" * 340
    path.write_bytes(data)
    with pytest.raises(InputError, match="arrays"):
        read(path, SHAPES)


def test_two_entries_of_one_weight_are_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, **{"layer.weight": np.ones((2, 1)), "layer_weight": np.zeros((2, 1))})
    with pytest.raises(InputError, match=r"layer\.weight and layer_weight"):
        read(path, SHAPES)


def test_the_size_of_an_archive_is_that_of_its_content(tmp_path, monkeypatch):
    path = tmp_path / "w.npz"
    np.savez_compressed(path, layer_weight=np.zeros((1000, 100)))
    monkeypatch.setattr(checkpoints, "LARGEST_CHECKPOINT", 100_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="MB"):
        read(path, SHAPES)


def test_infinite_weights_and_other_names_are_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, layer_weight=np.array([[np.inf], [0]]))
    with pytest.raises(InputError, match="infinite"):
        read(path, SHAPES)
    np.savez(path, other=np.ones(2))
    with pytest.raises(InputError, match="layer_weight"):
        read(path, SHAPES)
    with pytest.raises(InputError, match="missing"):
        read(tmp_path / "missing.npz", SHAPES)


def test_a_critical_checkpoint_is_called_critical(tmp_path, engine):
    """At equal neurons the differential of a b^T + c d^T, which fills 2 x 2, has rank 3 = dim of the tangent space of rank 1."""
    model = from_callable(lambda U, V: U @ V, {"U": (2, 2), "V": (2, 2)})
    path = tmp_path / "w.npz"
    np.savez(path, U=np.array([[1.0, 1.0], [0.5, 0.5]]), V=np.array([[0.25, 2.0], [0.25, 2.0]]))
    answer = singular_point(model, at=path, engine=engine)
    assert (answer.jacobian_rank, answer.image_dim, answer.critical) == (3, 4, True)
    assert any(re.search(r"\b3, 1 ", text) for _, text in answer.view().facts)
    assert "exactly" in answer.at["detail"]


def test_weights_may_be_typed_as_a_json_object(capsys):
    moved = '{"W1": [["3/5", "4/5"], ["-4/5", 0.6]], "W2": [[1, 1]]}'
    given = ["--at", '{"W1": [[1, 0], [0, 1]], "W2": [[1, 1]]}', "--and", moved]
    assert main(["same", "mlp(widths=[2,2,1],r=2)", *given, "--no-engine"]) == 0
    assert capsys.readouterr().out.startswith("same")
    assert main(["same", "mlp(widths=[2,2,1],r=2)", "--at", '{"W1": }', "--and", moved]) == 2
    assert "JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["membership", "map:t->t^2", "--point", "[1e99999999]"],
        ["membership", "map:t->t^2", "--point", '["1e99999999"]'],
        ["boundary", "lightning(d=2,dp=1)", "--point", "1e99999999,0,0,0,0,0"],
        ["critical-points", "map:t->t;t^2", "--target", "1e99999999,1"],
        ["same", "map:t->t", "--at", '{"t": 1e99999999}', "--and", '{"t": 1}'],
    ],
)
def test_a_number_out_of_all_proportion_is_refused_at_once(command, capsys):
    assert main(command) == 2
    assert "1e99999999" in capsys.readouterr().err


def test_a_missing_checkpoint_is_reported_before_the_network_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "net.py"
    file.write_text("raise SystemError('the file was executed')")
    assert main(["dimension", f"python:{file}:f", "--at", str(tmp_path / "missing.npz"), "--no-engine"]) == 2
    assert "missing.npz" in capsys.readouterr().err
