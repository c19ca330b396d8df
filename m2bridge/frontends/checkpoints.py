"""Read weights exactly from files: ``.npz``, ``.safetensors``, ``.pt`` (weights only) and ``.json``.

Binary floats and decimals in JSON are converted to fractions exactly, unless they are to be rounded. No code in a file is
executed: NumPy refuses pickles, and PyTorch reads plain tensors from them.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from m2bridge.errors import InputError
from m2bridge.exact_numbers import exact_json
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.instructions import Shape

LARGEST_CHECKPOINT = 256 * 2**20
"""Bytes of a file with weights; of an .npz, also after decompression."""
MOST_BITS = 52
"""Denominators to which numbers can be rounded are 2 to at most this: those of float64."""
_KINDS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?",
    "BF16": "<u2",
}  # fmt: skip
"""The types of safetensors that NumPy has; BF16 is the upper half of an F32."""


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of weights, and the number of bits to which its numbers are rounded; None if they are exact."""

    path: Path
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.bits is not None and not 1 <= self.bits <= MOST_BITS:
            raise InputError(
                f"--rationalize {self.bits}: bits are from 1 to {MOST_BITS}", argument="rationalize"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Weights over QQ by the names of a model, and a sentence on how they were read."""

    weights: Mapping[str, Any]
    note: str


def read(
    file: CheckpointFile | Path,
    parameters: Mapping[str, Shape],
    constants: Mapping[str, np.ndarray | str] | None = None,
) -> Checkpoint:
    """Read the weights in a file, as nested lists of Fractions or, from JSON, without conversion.

    Dots in names become underscores. Other entries of binary files, such as buffers and frozen parameters, must be equal to
    `constants`: their values when the network was recorded, or the entry to which a parameter is tied.
    """
    checkpoint = file if isinstance(file, CheckpointFile) else CheckpointFile(file)
    path = checkpoint.path
    readers = {".npz": _npz, ".safetensors": _safetensors, ".pt": _pt, ".pth": _pt, ".json": _json}
    if path.suffix not in readers:
        raise InputError(f"{path}: weights are read from {', '.join(readers)}", argument="at")
    try:
        _refuse_large(path, path.stat().st_size)
        contents = readers[path.suffix](path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    rounded = f"rounded to the nearest fractions with denominators up to 2^{checkpoint.bits}"
    how = "converted exactly" if checkpoint.bits is None else rounded
    if path.suffix == ".json":
        return Checkpoint(
            weights=_rounded_lists(contents, checkpoint.bits), note=f"{path.name}, numbers {how}"
        )
    named, others = _by_name(contents, parameters)
    _refuse_other_entries(path, contents, others, constants or {})
    weights = {name: _exact(path, name, array, checkpoint.bits) for name, array in named.items()}
    return Checkpoint(weights=weights, note=f"{path.name}, binary floats {how}")


def _refuse_large(path: Path, size: int) -> None:
    if size > LARGEST_CHECKPOINT:
        raise InputError(
            f"{path} is larger than {LARGEST_CHECKPOINT // 2**20} MB; exact computations require fewer weights"
        )


def _by_name(
    arrays: Mapping[str, np.ndarray], parameters: Mapping[str, Shape]
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return arrays under the names of the model's weights, and the names that it does not have."""

    def name_of(key: str) -> str | None:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", key)
        return next((name for name in (key, plain, f"p{plain}") if name in parameters), None)

    key_of: dict[str, str] = {}
    for key in arrays:
        name = name_of(key)
        if name is not None and key_of.setdefault(name, key) != key:
            raise InputError(
                f"{key_of[name]} and {key} in the file are both read as the weight {name}; rename one"
            )
    if not key_of:
        raise InputError(
            f"the file has {', '.join(list(arrays)[:6]) or 'nothing'}; the model's weights are {', '.join(list(parameters)[:6])}"
        )
    return {name: arrays[key] for name, key in key_of.items()}, tuple(
        key for key in arrays if name_of(key) is None
    )


def _refuse_other_entries(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    names: tuple[str, ...],
    constants: Mapping[str, np.ndarray | str],
) -> None:
    """Raise InputError for entries that are neither weights nor equal to the constants of the recorded network."""

    def is_recorded(name: str) -> bool:
        constant = constants.get(name)
        if isinstance(constant, str):
            constant = arrays.get(constant)
        return constant is not None and np.array_equal(arrays[name], constant)

    counted = "num_batches_tracked"  # a counter of BatchNorm, which its function does not use
    refused = [name for name in names if name.rpartition(".")[2] != counted and not is_recorded(name)]
    if not refused:
        return
    shown = ", ".join(refused[:6]) + (f" and {len(refused) - 6} more" if len(refused) > 6 else "")
    raise InputError(
        f"{path}: {shown}: not among the weights, and not equal to the constants of the recorded network. Buffers and "
        "frozen parameters are not read from the file: call load_state_dict in build(), before the network is recorded, "
        "or remove these entries from the file",
        argument="at",
    )


def _exact(path: Path, name: str, array: np.ndarray, bits: int | None) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} has entries of type {array.dtype}; weights are real numbers")
    if not np.isfinite(array).all():
        raise InputError(f"{path}: {name} has an entry that is infinite or not a number")
    return object_array([_rounded(Fraction(x), bits) for x in array.ravel().tolist()], array.shape)


def _rounded(value: Fraction, bits: int | None) -> Fraction:
    return value if bits is None else value.limit_denominator(2**bits)


# -- the formats -----------------------------------------------------------------------------------------------------------------


def _npz(path: Path) -> dict[str, np.ndarray]:
    try:
        if is_zipfile(path):
            with ZipFile(path) as archive:
                _refuse_large(path, sum(entry.file_size for entry in archive.infolist()))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, KeyError, AttributeError, TypeError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not an .npz of plain arrays: {error}") from None


def _safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file: a JSON header with the position of each tensor, then the bytes."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise InputError(f"{path} is not a safetensors file: its header is truncated")
    try:
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        return {name: _tensor(data[8 + length :], entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from None


def _tensor(data: bytes, entry: Mapping[str, Any]) -> np.ndarray:
    start, stop = entry["data_offsets"]
    kind = entry["dtype"]
    if kind not in _KINDS:
        raise ValueError(f"tensors of type {kind} are not supported")
    array = np.frombuffer(data[start:stop], _KINDS[kind])
    array = (array.astype("<u4") << 16).view("<f4") if kind == "BF16" else array
    return array.reshape(tuple(entry["shape"]))


def _pt(path: Path) -> dict[str, np.ndarray]:
    from m2bridge.frontends.pytorch import pytorch

    torch = pytorch()
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(
            f"{path} contains other objects than weights, or is damaged; save it with torch.save(module.state_dict(), ...)"
            f"\n  PyTorch reports: {str(error).splitlines()[0][:200]}"
        ) from None
    state = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(state, Mapping) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise InputError(
            f"{path} contains no dictionary of tensors; save it with torch.save(module.state_dict(), ...)"
        )
    return {str(k): (v.double() if v.is_floating_point() else v).detach().numpy() for k, v in state.items()}


def _json(path: Path) -> dict[str, Any]:
    return read_json(path.read_bytes(), str(path))


def read_json(document: str | bytes, name: str) -> dict[str, Any]:
    """Read weights by name from a JSON object, decimals exactly as they are written; `name` is its name in errors."""
    weights = exact_json(document, name)
    if not isinstance(weights, dict):
        raise InputError(
            f"{name} should contain an object that maps weights to matrices, not a {type(weights).__name__}"
        )
    return weights


def _rounded_lists(value: Any, bits: int | None) -> Any:
    if isinstance(value, dict):
        return {key: _rounded_lists(item, bits) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded_lists(item, bits) for item in value]
    return _rounded(value, bits) if isinstance(value, Fraction) else value
