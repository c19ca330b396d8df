"""Samples for a loss: formats, and errors for invalid files and numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.families import parse_spec
from m2bridge.questions.critical_points.losses import drawn_samples, read_samples, sample_loss

X, Y = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])


def test_samples_are_read_from_one_file_or_two(tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", X=X, Y=Y)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "y.npz", outputs=Y)
    np.savez(tmp_path / "my data.npz", X=X, Y=Y)
    files = ("both.npz", "x.npy,{tmp_path}/y.npz", "x.npy, {tmp_path}/y.npz", "my data.npz")
    for text in (f"{tmp_path}/{names.format(tmp_path=tmp_path)}" for names in files):
        inputs, outputs = read_samples(text)
        assert inputs.tolist() == X.tolist()
        assert outputs.tolist() == Y.tolist()


@pytest.mark.parametrize("content", [b"PK\x03\x04damaged", b"", b"words"])
def test_a_damaged_file_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.npz"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.npz"):
        read_samples(str(file))


def test_an_ambiguous_array_needs_a_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", first=X, second=X)
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(InputError, match=r"first, second.* X"):
        read_samples(f"{tmp_path}/x.npz,{tmp_path}/y.npy")


@pytest.mark.parametrize("entry", [float("nan"), float("inf"), 1j, "a"])
def test_entries_are_finite_real_numbers(entry: object) -> None:
    with pytest.raises(InputError, match="finite"):
        sample_loss(parse_spec("linear(widths=[1,1])"), np.array([[entry], [entry]]), Y)
    with pytest.raises(InputError, match="--noise nan"):
        drawn_samples(parse_spec("linear(widths=[1,1])"), 2, float("nan"), 0)
