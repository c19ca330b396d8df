"""Convert results to versioned JSON documents (records) and back.

``--json`` prints the same document that ``--save`` writes: the envelope (schema and package version, the analysis and its
version) followed by the fields of the result. Encoding, decoding and the JSON Schema of each analysis are derived from the same
type annotations.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import re
import secrets
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Union

from m2bridge._version import __version__
from m2bridge.errors import InputError, M2BridgeError, RecordError
from m2bridge.questions import find, questions
from m2bridge.results import RESULT_TYPES, Result, ScriptUse

SCHEMA_VERSION = 3
"""The version that is written and read; a record of another version is rejected."""
ENVELOPE = ("schema_version", "analysis", "analysis_version", "package_version")
"""The fields of every document before the fields of its result."""
_OTHER_RESULTS = ("m2bridge.questions.custom_template", "m2bridge.papers.ledger")
"""Modules of result types that belong to no question."""


def to_document(result: Result) -> dict[str, Any]:
    """Convert a result to its JSON document."""
    kind = type(result)
    envelope = dict(zip(ENVELOPE, (SCHEMA_VERSION, kind.ANALYSIS, kind.VERSION, __version__), strict=True))
    body = _encode(result)
    if not kind.__module__.startswith("m2bridge."):
        _check_types(kind, body)
    document = {**envelope, **body}
    return {**document, "digest": digest_of(document)}


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the sha256 of a document without its digest; it does not depend on the order of the keys."""
    content = {name: value for name, value in document.items() if name != "digest"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def change_of(document: Mapping[str, Any]) -> str | None:
    """Return a warning if the digest of a document does not match its content, None otherwise.

    The digest detects only accidental changes: anybody can also replace the digest. Only certificates prove an answer.
    """
    if not isinstance(document, Mapping) or document.get("digest", "") in ("", digest_of(document)):
        return None
    return "The digest does not match: the record was altered. Only what `m2bridge check` verifies in it can be trusted."


def _check_types(kind: type[Result], body: dict[str, Any]) -> None:
    """Raise an error if the values of a result of another package do not have the types that it declares."""
    try:
        decode(kind, body, kind.ANALYSIS)
    except RecordError as error:
        raise M2BridgeError(
            f"the values of {kind.__module__}.{kind.__name__} do not have the declared types: {error.message}"
        ) from None


def from_document(document: Any) -> Result:
    """Convert a document to its result: ``from_document(to_document(r)) == r``.

    Raises
    ------
    RecordError
        The document is not a record, has another version, an unknown analysis, or a missing field.
    """
    if isinstance(document, dict) and "job" in document and "result" in document:
        document = document["result"]  # the record of a batch contains the record of the answer
        if document is None:
            raise RecordError("this record of a batch contains no answer: the job did not finish")
    if not isinstance(document, dict) or "schema_version" not in document:
        raise RecordError("not an m2bridge record: there is no schema_version")
    version = document["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise RecordError(
            f"the record has schema version {version!r}; this m2bridge reads version {SCHEMA_VERSION}: compute it again"
        )
    analysis = document.get("analysis")
    kind = _result_type(analysis) if isinstance(analysis, str) else None
    if kind is None:
        raise RecordError(
            f"unknown analysis {analysis!r}; if it is a question of another package, install that package",
            unknown=True,
        )
    analysis_version = document.get("analysis_version")
    if type(analysis_version) is not int or analysis_version != kind.VERSION:
        raise RecordError(
            f"the record has version {analysis_version!r} of {kind.ANALYSIS}; "
            f"this m2bridge reads version {kind.VERSION}: compute it again"
        )
    body = {key: value for key, value in document.items() if key not in (*ENVELOPE, "digest")}
    result: Result = decode(kind, body, kind.ANALYSIS)
    return result


def _result_type(analysis: str) -> type[Result] | None:
    """Return the type of the result of an analysis, None if it is unknown. Other questions are not imported if possible."""
    if analysis not in RESULT_TYPES:
        with contextlib.suppress(InputError):
            find(analysis)
    if analysis not in RESULT_TYPES:
        _import_other_results()
    return RESULT_TYPES.get(analysis)


def _import_other_results() -> None:
    for module in _OTHER_RESULTS:
        importlib.import_module(module)


def result_types() -> dict[str, type[Result]]:
    """Return all result types, by the name of their analysis."""
    questions()
    _import_other_results()
    return RESULT_TYPES


def dumps(document: Mapping[str, Any]) -> str:
    """Return the text of a document: indented, with keys in the order of the fields; NaN is not allowed."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


_MEASURED = ("seconds", "peak_memory_bytes", "engine", "scripts", "package_version", "digest")
"""Keys whose values may differ between two runs with the same answer."""


def _without_measurements(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_measurements(item) for key, item in value.items() if key not in _MEASURED}
    return [_without_measurements(item) for item in value] if isinstance(value, list) else value


def save(result: Result, directory: Path | str) -> Path:
    """Write the record of a result into `directory`, atomically and durably, and return the path.

    The directory is created if necessary. The file name consists of the analysis, the model (or its name) and a hash of the
    record without measurements. So the same answer replaces its record, and a different answer has another file name.
    """
    directory = Path(directory)
    make_directory(directory, "--save")
    key = dumps(_without_measurements(to_document(result)))
    slug = re.sub(r"[^a-z0-9]+", "-", (result.name or result.model).lower()).strip("-")[:60]
    path = directory / f"{result.ANALYSIS}-{slug}-{sha256(key.encode()).hexdigest()[:12]}.json"
    for script in result.scripts:
        if script.text is not None:
            script_path = directory / "scripts" / f"{script.sha256}{script.suffix}"
            script_path.parent.mkdir(exist_ok=True)
            write_atomically(script_path, script.text)
    write_atomically(path, dumps(to_document(result)) + "\n")
    return path


def make_directory(directory: Path, option: str) -> None:
    """Create the directory that an option names, if it does not exist."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {directory}: the directory cannot be created: {error.strerror}") from None


def scripts_beside(path: Path | str, result: Result) -> Result:
    """Return the result of the record at `path` with the texts of its scripts, which :func:`save` has written."""

    def text_of(script: ScriptUse) -> str | None:
        sha = script.sha256
        file = Path(path).parent / "scripts" / f"{sha}{script.suffix}"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return text if sha256(text.encode()).hexdigest() == sha else None

    scripts = (dataclasses.replace(script, text=text_of(script)) for script in result.scripts)
    return dataclasses.replace(result, scripts=tuple(scripts))


def load(path: Path | str) -> Result:
    """Read a record from a file."""
    return from_document(read_document(path))


def read_document(path: Path | str) -> Any:
    """Read the JSON document in a file."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not a record: {error}") from None


save_record = save
load_record = load
"""The names of :func:`save` and :func:`load` in the package ``m2bridge``."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def write_atomically(path: Path, content: str | bytes, temporary: Path | None = None) -> None:
    """Replace `path` by a file with this content, atomically and durably.

    The content is written to a temporary file, synchronized to the disk and renamed to `path`; renaming is atomic. Finally the
    directory is synchronized, so that the new name is durable. After a crash there is the old file or the new one, never a part.

    `temporary` is an unused path on the same file system; by default it is in the directory of `path`.
    """
    name = temporary or path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with name.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        name.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Synchronize a directory to the disk, so that renamed files have their new names after a power failure."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _encode(value: Any) -> Any:  # noqa: PLR0911 -- one case for each type of field
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: _encode(getattr(value, name)) for key, (name, _) in keyed_hints(type(value)).items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    return value


@cache
def keyed_hints(kind: type) -> dict[str, tuple[str, Any]]:
    """Return for each key of the document of a dataclass the name and the type of the field.

    The key is the name of the field, or the ``key`` of its metadata; a field whose ``key`` is None is not written.
    """
    hints = typing.get_type_hints(kind)
    keys = [(f.metadata.get("key", f.name), f.name) for f in dataclasses.fields(kind)]
    return {key: (name, hints[name]) for key, name in keys if key is not None}


def decode(kind: Any, value: Any, where: str) -> Any:  # noqa: PLR0911 -- one case for each type of field
    """Convert a JSON value to a value of type `kind`; `where` is its path in the record, for error messages."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Literal:
        if value not in arguments:
            raise _wrong(where, f"one of {', '.join(map(str, arguments))}", value)
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, value, where)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _decode_list(origin if origin is tuple else list, arguments, value, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        entries = _expected(dict, value, where, "an object")
        return {
            _parsed(arguments[0], key, where): decode(arguments[1], item, f"{where}.{key}")
            for key, item in entries.items()
        }
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if issubclass(kind, (Enum, Fraction)) and isinstance(value, str):
        return _parsed(kind, value, where)
    if kind is float and type(value) is int:
        return float(value)
    return _expected(kind, value, where, kind.__name__)


def _wrong(where: str, expected: str, value: Any) -> RecordError:
    return RecordError(f"{where} must be {expected}; the record has {value!r}")


def _expected(kind: Any, value: Any, where: str, expected: str) -> Any:
    """Return the value if it has this type, else raise RecordError; true and false are not numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(where, expected, value)
    return value


def _parsed(kind: Any, text: str, where: str) -> Any:
    """Convert a string to a key, a member of an enumeration or a fraction."""
    try:
        return kind(text)
    except (ValueError, ZeroDivisionError):
        raise _wrong(where, kind.__name__, text) from None


def _decode_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    *first_choices, last = (choice for choice in choices if choice is not type(None))
    for choice in first_choices:
        with contextlib.suppress(RecordError):
            return decode(choice, value, where)
    return decode(last, value, where)


def _decode_list(origin: Any, kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    items = _expected(list, value, where, "a list")
    if origin is list or Ellipsis in kinds:
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        raise RecordError(f"{where} must have {len(kinds)} items; the record has {value!r}")
    pairs = enumerate(zip(kinds, items, strict=True))
    return origin(decode(kind, item, f"{where}[{i}]") for i, (kind, item) in pairs)


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    entries = _expected(dict, value, where, "an object")
    hints = keyed_hints(kind)
    if missing := sorted(set(hints) - set(entries)):
        raise RecordError(f"{where}: missing field {', '.join(missing)}")
    if unknown := sorted(set(entries) - set(hints)):
        raise RecordError(f"{where}: unknown field {', '.join(unknown)}")
    return kind(**{name: decode(hint, entries[key], f"{where}.{key}") for key, (name, hint) in hints.items()})
