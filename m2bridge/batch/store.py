"""The store: a directory with one record for each finished job.

::

    DIR/store.json            marks the directory as a store, with its version
    DIR/records/ab/KEY.json   one record per key; its first line contains the sha256 of the rest
    DIR/damaged/              records that did not match their checksum, kept for examination
    DIR/tmp/                  temporary files, which are renamed to files in records/
    DIR/runners/NAME.json     the state of each runner
    DIR/lock, DIR/shards/     the locks of runners (:mod:`m2bridge.batch.runner_lock`)

A record is written atomically: to a file in ``tmp``, which is synchronized to the disk (fsync) and then renamed. Renaming
replaces the old file in one step, so after a crash or a power failure there is either the old record, or the new one, or none,
and never a part of one. The checksum detects damage that happens later. Other files in the directory are listed by
:meth:`Store.contents` and ignored.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from m2bridge.batch.policy import STORE_VERSION, JobOutcome
from m2bridge.batch.runner_lock import WHOLE, RunnerLock, is_held
from m2bridge.errors import InputError, M2BridgeError, RecordError
from m2bridge.records import sync_directory, write_atomically

KIND = "m2bridge batch store"
_KEY = re.compile(r"[0-9a-f]{64}")
_FIRST_LINE = re.compile(rb'\{"sha256":"([0-9a-f]{64})",\n')
_SUBDIRECTORIES = tuple(f"{i:02x}" for i in range(256))
_TOP = frozenset({"store.json", "records", "damaged", "tmp", "runners", "lock", "shards"})
_RECORD_TYPES: dict[str, Any] = {
    "job": dict, "outcome": str, "message": str | None, "result": dict | None, "limits": dict, "seconds": int | float,
    "attempts": list, "engine": dict | None,
}  # fmt: skip
_JOB_TYPES: dict[str, Any] = {
    "analysis": str,
    "model": str,
    "parameters": dict,
    "size": int,
    "tags": list,
}


@dataclass(slots=True)
class Contents:
    """The keys of the records in a store, and the relative paths of files that do not belong to the store (`strays`)."""

    keys: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


class Store:
    """A directory of records. :meth:`open` needs read access only, :meth:`open_for_writing` needs write access."""

    def __init__(self, directory: Path | str) -> None:
        directory = Path(directory)
        self.directory = directory
        self.records = directory / "records"
        self.runners = directory / "runners"
        self.runner = ""
        self._lock: RunnerLock | None = None
        self._count = 0

    # -- opening ---------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, directory: Path) -> Store:
        """Open an existing store for reading.

        Raises
        ------
        InputError
            The directory is not a store, or a store of another version.
        """
        marker = directory / "store.json"
        try:
            document = json.loads(marker.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{directory} is not a batch store: it has no store.json") from None
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{marker} cannot be read: {error}") from None
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise InputError(f"{directory} is not a batch store")
        if document.get("store_version") != STORE_VERSION:
            raise InputError(
                f"{directory} is a store of version {document.get('store_version')!r}; "
                f"this m2bridge requires version {STORE_VERSION}"
            )
        return cls(directory)

    @classmethod
    def open_for_writing(cls, directory: Path, runner: str = WHOLE) -> Store:
        """Open a store for the records of a runner, and lock it. The store is created if the directory is missing or empty.

        Raises
        ------
        InputError
            Another runner is running that may work on the same jobs, or the directory cannot be used.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _create_marker(directory)
            store = cls.open(directory)
            for name in ("tmp", "runners", "damaged", *(f"records/{sub}" for sub in _SUBDIRECTORIES)):
                (directory / name).mkdir(parents=True, exist_ok=True)
            sync_directory(store.records)
            store._lock_for(runner)
        except FileExistsError as error:
            raise InputError(f"--store: {error.filename} exists and is not a directory; move it") from None
        except NotADirectoryError:
            raise InputError(f"--store {directory} is not a directory") from None
        except OSError as error:
            raise InputError(
                f"--store {directory} cannot be written to: {error.strerror}; no job was run"
            ) from None
        return store

    def _lock_for(self, runner: str) -> None:
        """Lock the store for a runner, remove the files of an earlier runner of the same name, and test writing."""
        self._lock = RunnerLock(self.directory, runner)
        self.runner = runner
        for file in (*self.runners.iterdir(), *(self.directory / "tmp").iterdir()):
            if runner in (WHOLE, file.name.split(".")[0]):  # the runner of a whole job file is the only one
                with contextlib.suppress(IsADirectoryError, PermissionError):  # not a file of a runner
                    file.unlink(missing_ok=True)
        probe = self.directory / "tmp" / f"{runner}.probe"
        write_atomically(probe, b"1\n", probe.with_suffix(".probing"))
        probe.unlink()

    def publish(self, state: dict[str, Any]) -> None:
        """Write the state of this runner. A full disk is ignored here."""
        temporary = self.directory / "tmp" / f"{self.runner}.state"
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")
            os.replace(temporary, self.runners / f"{self.runner}.json")

    def running_states(self) -> list[dict[str, Any]]:
        """Return the last state of every running runner. A runner is running while its lock is held."""
        states = []
        for path in sorted(self.runners.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, RecursionError):
                state = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(state, dict) and is_held(self.directory, path.stem):
                    states.append(state)
        return states

    def close(self) -> None:
        """Remove the state of the runner and release its lock."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                (self.runners / f"{self.runner}.json").unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    # -- records ---------------------------------------------------------------------------------------------

    def path_of(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise RecordError(f"{key[:80]!r} is not a key")
        return self.records / key[:2] / f"{key}.json"

    def read(self, key: str) -> dict[str, Any] | None:
        """Return the record of a key, or None if there is none.

        Raises
        ------
        RecordError
            The record is damaged.
        """
        path = self.path_of(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"record {key[:12]} cannot be read: {error.strerror}") from None
        return check_types(decode(data, key))

    def read_or_set_aside(self, key: str) -> dict[str, Any] | None:
        """Return the record of a key, or None. A damaged record is moved to ``damaged/``; the result is then None."""
        try:
            return self.read(key)
        except RecordError:
            name = f"{key}.{secrets.token_hex(4)}.json"
            with contextlib.suppress(FileNotFoundError):
                os.replace(self.path_of(key), self.directory / "damaged" / name)
            return None

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Write a record atomically and durably: after the return it survives a power failure.

        Raises
        ------
        M2BridgeError
            The disk is full or the store cannot be written to; the record was not written.
        """
        path = self.path_of(key)
        self._count += 1
        temporary = self.directory / "tmp" / f"{self.runner}.{self._count}"
        try:
            write_atomically(path, encode(record), temporary)
        except OSError as error:
            reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            raise M2BridgeError(
                f"the store {self.directory} cannot be written to ({reason}); all records written before are valid: "
                "free space and run the same command again",
                reason=reason,
            ) from None

    def contents(self) -> Contents:
        """List the keys of all records, and the files and directories that do not belong to the store.

        A file whose name is a key is verified only when it is read. The contents of ``tmp``, ``damaged``, ``runners`` and
        ``shards`` are not listed.
        """
        contents = Contents()
        for entry in _listed(self.directory):
            if entry.name not in _TOP and not entry.name.startswith(".store-"):
                contents.strays.append(entry.name)
        for directory in _listed(self.records):
            name = f"records/{directory.name}"
            if directory.name not in _SUBDIRECTORIES or not directory.is_dir():
                contents.strays.append(name)
                continue
            try:
                entries = _listed(Path(directory.path))
            except OSError as error:
                contents.strays.append(f"{name} ({error.strerror})")
                continue
            for entry in entries:
                key = entry.name.removesuffix(".json")
                if (
                    entry.name != f"{key}.json"
                    or not _KEY.fullmatch(key)
                    or key[:2] != directory.name
                    or not entry.is_file()
                ):
                    contents.strays.append(f"{name}/{entry.name}")
                else:
                    contents.keys.append(key)
        return contents

    def all_keys(self) -> Iterator[str]:
        """Iterate over the keys of all records."""
        return iter(self.contents().keys)

    def rows(self, where: str | None = None) -> list[dict[str, Any]]:
        """Return one flat dictionary per record, as listed by ``m2bridge results``; `where` is a filter as for that command."""
        from m2bridge.batch import expressions, rows  # these modules import this one

        condition = None if where is None else expressions.parse(where)
        return rows.read_rows(Store.open(self.directory)).where(condition)

    def frame(self, where: str | None = None) -> Any:
        """Return the records as a pandas DataFrame, which can be written as LaTeX, Parquet and other formats.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise InputError(
                "Store.frame() requires pandas, which is not installed: pip install 'm2bridge[pandas]'"
            ) from None
        return pandas.DataFrame(self.rows(where))


def _listed(directory: Path) -> list[os.DirEntry[str]]:
    """List a directory, sorted by name."""
    with os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _create_marker(directory: Path) -> None:
    """Make an empty directory a store by writing ``store.json``.

    Several runners may do this at the same time, and any of them may be killed meanwhile: each writes a temporary file
    ``.store-*`` and renames it.
    """
    marker = directory / "store.json"
    if marker.exists():
        return
    has_other_files = any(not entry.name.startswith(".store-") for entry in directory.iterdir())
    if has_other_files and not marker.exists():
        raise InputError(
            f"--store {directory}: the directory is not empty and not a store; use an empty or new one"
        )
    text = json.dumps({"kind": KIND, "store_version": STORE_VERSION}) + "\n"
    write_atomically(marker, text, directory / f".store-{secrets.token_hex(8)}")


def encode(document: dict[str, Any]) -> bytes:
    """Encode a document as JSON; the first line contains the sha256 of the rest."""
    rest = json.dumps(document, allow_nan=False, ensure_ascii=False)[1:].encode() + b"\n"
    return b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest


def verify(data: bytes) -> dict[str, Any]:
    """Verify the checksum and return the document. Raises RecordError if the data is damaged."""
    first_line = _FIRST_LINE.match(data)
    if first_line is None or hashlib.sha256(data[first_line.end() :]).hexdigest().encode() != first_line[1]:
        raise RecordError("its checksum does not match")
    try:
        document: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not valid JSON ({type(error).__name__})") from None
    return document


def decode(data: bytes, key: str) -> dict[str, Any]:
    """Decode a record and verify its checksum, key and version. Raises RecordError if they do not match."""
    try:
        record = verify(data)
    except RecordError as error:
        raise _damaged(key, error.message) from None
    if record.get("key") != key:
        raise _damaged(key, f"it contains the key {str(record.get('key'))[:12]}")
    if record.get("store_version") != STORE_VERSION:
        raise RecordError(f"record {key[:12]} has store version {record.get('store_version')!r}")
    return record


def check_types(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record if the entries that a batch uses exist and have the right types; results are not checked."""
    for types, document in ((_RECORD_TYPES, record), (_JOB_TYPES, record.get("job"))):
        for name, kinds in types.items():
            if not isinstance(document, dict) or not isinstance(document.get(name, ...), kinds):
                raise _damaged(record["key"], f"{name} is missing or has the wrong type")
    if record["outcome"] not in set(JobOutcome):
        raise _damaged(record["key"], f"unknown outcome {record['outcome'][:40]!r}")
    return record


def _damaged(key: str, reason: str) -> RecordError:
    return RecordError(f"record {key[:12]} is damaged: {reason}")
