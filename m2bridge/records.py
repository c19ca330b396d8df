"""Records stage: a result becomes a versioned JSON document and comes back equal.

The document that ``--json`` prints is the record that ``--save`` writes: the envelope (schema and package version, the
analysis and its version) and the fields of the result, flat. The same type annotations drive encoding, decoding and the JSON
Schema of each analysis, so the three cannot drift apart.
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
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Union

from m2bridge._version import __version__
from m2bridge.errors import InputError, M2BridgeError, RecordError
from m2bridge.questions import find, questions
from m2bridge.results import RESULT_TYPES, Result

SCHEMA_VERSION = 3
"""The one version that is written and read; a record of another version is refused."""
ENVELOPE = ("schema_version", "analysis", "analysis_version", "package_version")
"""Fields of every document that come before the fields of its result."""
_OTHER_RESULTS = ("m2bridge.questions.custom_template", "m2bridge.papers.ledger")
"""Where result types are that belong to no question."""


def to_document(result: Result) -> dict[str, Any]:
    """The JSON document of a result."""
    kind = type(result)
    envelope = dict(zip(ENVELOPE, (SCHEMA_VERSION, kind.ANALYSIS, kind.VERSION, __version__), strict=True))
    body = _encode(result)
    if not kind.__module__.startswith("m2bridge."):
        _check_types(kind, body)
    document = {**envelope, **body}
    return {**document, "digest": digest_of(document)}


def digest_of(document: Mapping[str, Any]) -> str:
    """The sha256 of a document without its own digest, whatever the order of its keys."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    return sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def change_of(document: Mapping[str, Any]) -> str | None:
    """A sentence where a document has the digest of another one, None otherwise.

    This finds mistakes, not malice: who alters a record can write a new digest. Certificates are what is checked.
    """
    if not isinstance(document, Mapping) or document.get("digest", "") in ("", digest_of(document)):
        return None
    return (
        "The digest of the record is that of another one: it was altered. Nothing in it is vouched for but what `m2bridge check` "
        "verifies."
    )


def _check_types(kind: type[Result], body: dict[str, Any]) -> None:
    """An error where a question of another package answers with values that are not of the types it declares."""
    try:
        _decode(kind, body, kind.ANALYSIS)
    except RecordError as error:
        raise M2BridgeError(
            f"{kind.__module__}.{kind.__name__} declares other types than its question answers with: {error.message}"
        ) from None


def from_document(document: Any) -> Result:
    """The result that a document holds; ``from_document(to_document(r)) == r``.

    Raises
    ------
    RecordError
        The document is not a record, has another version, is of an unknown analysis, or lacks a field.
    """
    if isinstance(document, dict) and "job" in document and "result" in document:
        document = document["result"]  # the record of a batch holds that of its answer
        if document is None:
            raise RecordError("this record of a batch holds no answer: the job did not finish")
    if not isinstance(document, dict) or "schema_version" not in document:
        raise RecordError("this is not an m2bridge record: it has no schema_version")
    version = document["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise RecordError(
            f"the record has schema version {version!r}; this m2bridge reads version {SCHEMA_VERSION}: compute it again"
        )
    analysis = document.get("analysis")
    kind = _result_type(analysis) if isinstance(analysis, str) else None
    if kind is None:
        raise RecordError(
            f"the record is of an unknown analysis {analysis!r}; a question of another package is read where that is installed",
            unknown=True,
        )
    analysis_version = document.get("analysis_version")
    if type(analysis_version) is not int or analysis_version != kind.VERSION:
        raise RecordError(
            f"the record is of version {analysis_version!r} of {kind.ANALYSIS}; "
            f"this m2bridge reads version {kind.VERSION}: compute it again"
        )
    body = {key: value for key, value in document.items() if key not in (*ENVELOPE, "digest")}
    result: Result = _decode(kind, body, kind.ANALYSIS)
    return result


def _result_type(analysis: str) -> type[Result] | None:
    """The type of one question's answer; the other questions, and plugins that are not here, do not matter."""
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
    """Every type of result that a record can hold, by the name of its question."""
    questions()
    _import_other_results()
    return RESULT_TYPES


def dumps(document: Mapping[str, Any]) -> str:
    """The text of a document: indented, keys in the order of the fields, no NaN."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


_MEASURED = ("seconds", "peak_memory_bytes", "engine", "scripts", "package_version", "digest")
"""Keys whose values may differ between two runs that give the same answer."""


def _without_measurements(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_measurements(item) for key, item in value.items() if key not in _MEASURED}
    return [_without_measurements(item) for item in value] if isinstance(value, list) else value


def save(result: Result, directory: Path | str) -> Path:
    """Write the record of a result into `directory`, atomically and durably, and return the path.

    The directory is made if it is missing. The file name consists of the analysis, the model (or its name) and
    a hash of the record without times: the same answer replaces its record, and another answer never does.
    """
    directory = Path(directory)
    make_directory(directory, "--save")
    key = dumps(_without_measurements(to_document(result)))
    slug = re.sub(r"[^a-z0-9]+", "-", (result.name or result.model).lower()).strip("-")[:60]
    path = directory / f"{result.ANALYSIS}-{slug}-{sha256(key.encode()).hexdigest()[:12]}.json"
    for used in result.scripts:
        if used.text is not None:
            beside = directory / "scripts" / f"{used.sha256}.m2"
            beside.parent.mkdir(exist_ok=True)
            write_atomically(beside, used.text)
    write_atomically(path, dumps(to_document(result)) + "\n")
    return path


def make_directory(directory: Path, option: str) -> None:
    """Make a directory that an option names, unless it is there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {directory}: no such directory can be made: {error.strerror}") from None


def scripts_beside(path: Path | str, result: Result) -> Result:
    """The result of the record at `path` with the texts of its scripts, where :func:`save` has left them."""

    def text_of(sha: str) -> str | None:
        file = Path(path).parent / "scripts" / f"{sha}.m2"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return text if sha256(text.encode()).hexdigest() == sha else None

    found = (dataclasses.replace(used, text=text_of(used.sha256)) for used in result.scripts)
    return dataclasses.replace(result, scripts=tuple(found))


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
"""What ``import m2bridge`` calls the two, where `save` and `load` would not say of what."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def write_atomically(path: Path, content: str | bytes, temporary: Path | None = None) -> None:
    """Replace `path` by a file with this content: after a crash there is the old file or the new one, never a part.

    `temporary` is a name on the same file system that is free; by default one beside `path`.
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
    """Make the new names of renamed files durable."""
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
    """Key in documents -> name and type of each field of a dataclass.

    The key is the field's name, or the ``key`` of its metadata; None there is for what is not written.
    """
    hints = typing.get_type_hints(kind)
    keys = [(f.metadata.get("key", f.name), f.name) for f in dataclasses.fields(kind)]
    return {key: (name, hints[name]) for key, name in keys if key is not None}


def _decode(kind: Any, value: Any, where: str) -> Any:  # noqa: PLR0911 -- one case for each type of field
    """The value of a type; `where` names its place in the record, for messages."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Literal:
        if value not in arguments:
            raise _wrong(where, f"one of {', '.join(map(str, arguments))}", value)
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, value, where)
    if origin in (tuple, list):
        return _decode_list(origin, arguments, value, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        found = _expected(dict, value, where, "an object")
        return {
            _parsed(arguments[0], key, where): _decode(arguments[1], item, f"{where}.{key}")
            for key, item in found.items()
        }
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if issubclass(kind, (Enum, Fraction)) and isinstance(value, str):
        return _parsed(kind, value, where)
    if kind is float and type(value) is int:
        return float(value)
    return _expected(kind, value, where, kind.__name__)


def _wrong(where: str, wanted: str, value: Any) -> RecordError:
    return RecordError(f"{where} should be {wanted}, the record has {value!r}")


def _expected(kind: Any, value: Any, where: str, wanted: str) -> Any:
    """A value that must be of this type; true is no number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(where, wanted, value)
    return value


def _parsed(kind: Any, text: str, where: str) -> Any:
    """A key, a member of an enumeration or a fraction from its text."""
    try:
        return kind(text)
    except (ValueError, ZeroDivisionError):
        raise _wrong(where, kind.__name__, text) from None


def _decode_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    *others, last = (choice for choice in choices if choice is not type(None))
    for choice in others:
        with contextlib.suppress(RecordError):
            return _decode(choice, value, where)
    return _decode(last, value, where)


def _decode_list(origin: Any, kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    found = _expected(list, value, where, "a list")
    if origin is list or Ellipsis in kinds:
        kinds = (kinds[0],) * len(found)
    if len(kinds) != len(found):
        raise RecordError(f"{where} should have {len(kinds)} items, the record has {value!r}")
    places = enumerate(zip(kinds, found, strict=True))
    return origin(_decode(kind, item, f"{where}[{i}]") for i, (kind, item) in places)


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    found, hints = _expected(dict, value, where, "an object"), keyed_hints(kind)
    if missing := sorted(set(hints) - set(found)):
        raise RecordError(f"{where} lacks {', '.join(missing)}")
    if unknown := sorted(set(found) - set(hints)):
        raise RecordError(f"{where} has unknown fields {', '.join(unknown)}")
    return kind(**{name: _decode(hint, found[key], f"{where}.{key}") for key, (name, hint) in hints.items()})
