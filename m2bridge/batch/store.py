"""Batch: the store, one record for each finished job. Records enter, and are there after any crash, whole or not at all.

::

    DIR/store.json            what this directory is
    DIR/records/ab/KEY.json   one record a key; its first line holds the sha256 of the rest
    DIR/damaged/              records that did not match their checksum, kept for examination
    DIR/tmp/                  files on their way into records/
    DIR/runners/NAME.json     what each runner is doing
    DIR/lock, DIR/shards/     the locks of runners (:mod:`m2bridge.batch.runner_lock`)

Nothing else is written here. Anything else that lies here is named by :meth:`Store.contents` and passed over.
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
_FIRST = re.compile(rb'\{"sha256":"([0-9a-f]{64})",\n')
_SUBDIRECTORIES = tuple(f"{i:02x}" for i in range(256))
_TOP = frozenset({"store.json", "records", "damaged", "tmp", "runners", "lock", "shards"})
_PARTS: dict[str, Any] = {
    "job": dict, "outcome": str, "message": str | None, "result": dict | None, "limits": dict, "seconds": int | float,
    "attempts": list, "engine": dict | None,
}  # fmt: skip
_PARTS_OF_A_JOB: dict[str, Any] = {
    "analysis": str,
    "model": str,
    "parameters": dict,
    "size": int,
    "tags": list,
}


@dataclass(slots=True)
class Contents:
    """The keys of the records in a store, and the paths, relative to it, of what does not belong there."""

    keys: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


class Store:
    """A directory of records. Reading needs no write access; :meth:`open_for_writing` does."""

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
        """A store that exists, for reading.

        Raises
        ------
        InputError
            There is none, or it is of another version.
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
                f"{directory} is a store of version {document.get('store_version')!r}; this m2bridge uses {STORE_VERSION}"
            )
        return cls(directory)

    @classmethod
    def open_for_writing(cls, directory: Path, runner: str = WHOLE) -> Store:
        """Open a store to run jobs into: made if the directory is missing or empty. Takes the lock of the named runner.

        Raises
        ------
        InputError
            Another runner lives that may work on the same jobs, or the directory cannot be used.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _mark(directory)
            store = cls.open(directory)
            for name in ("tmp", "runners", "damaged", *(f"records/{sub}" for sub in _SUBDIRECTORIES)):
                (directory / name).mkdir(parents=True, exist_ok=True)
            sync_directory(store.records)
            store._enter(runner)
        except FileExistsError as error:
            raise InputError(
                f"--store: {error.filename} is in the way of a directory of the store; move it away"
            ) from None
        except NotADirectoryError:
            raise InputError(f"--store {directory} is not a directory") from None
        except OSError as error:
            raise InputError(
                f"--store {directory} cannot be written to: {error.strerror}; nothing was run"
            ) from None
        return store

    def _enter(self, runner: str) -> None:
        """Become the runner of this name, and clear away what a dead one of the same name left."""
        self._lock = RunnerLock(self.directory, runner)
        self.runner = runner
        for left in (*self.runners.iterdir(), *(self.directory / "tmp").iterdir()):
            if runner in (WHOLE, left.name.split(".")[0]):  # who holds the whole store is alone in it
                with contextlib.suppress(IsADirectoryError, PermissionError):  # a stray thing, passed over
                    left.unlink(missing_ok=True)
        probe = self.directory / "tmp" / f"{runner}.probe"
        write_atomically(probe, b"1\n", probe.with_suffix(".probing"))
        probe.unlink()

    def publish(self, state: dict[str, Any]) -> None:
        """Say what this runner is doing; a full disk is no reason to stop."""
        temporary = self.directory / "tmp" / f"{self.runner}.state"
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")
            os.replace(temporary, self.runners / f"{self.runner}.json")

    def living(self) -> list[dict[str, Any]]:
        """Return what every living runner said last. A runner lives while its lock is held."""
        states = []
        for path in sorted(self.runners.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, RecursionError):
                state = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(state, dict) and is_held(self.directory, path.stem):
                    states.append(state)
        return states

    def close(self) -> None:
        """Leave the store: the runner's file goes, and its lock."""
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
        """The record of a key, or None.

        Raises
        ------
        RecordError
            There is one, but it is damaged.
        """
        path = self.path_of(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"record {key[:12]} cannot be read: {error.strerror}") from None
        return shaped(decode(data, key))

    def read_or_set_aside(self, key: str) -> dict[str, Any] | None:
        """Like :meth:`read`; a damaged record is moved to ``damaged/``, where it is kept, and counts as missing."""
        try:
            return self.read(key)
        except RecordError:
            name = f"{key}.{secrets.token_hex(4)}.json"
            with contextlib.suppress(FileNotFoundError):
                os.replace(self.path_of(key), self.directory / "damaged" / name)
            return None

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Write a record, atomically and durably: when this returns, it survives a power cut.

        Raises
        ------
        M2BridgeError
            The disk is full or the store cannot be written to; then nothing of the record is there.
        """
        path = self.path_of(key)
        self._count += 1
        temporary = self.directory / "tmp" / f"{self.runner}.{self._count}"
        try:
            write_atomically(path, encode(record), temporary)
        except OSError as error:
            reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            raise M2BridgeError(
                f"the store {self.directory} cannot be written to ({reason}); every record written before is safe: "
                "make room and run the same command again",
                reason=reason,
            ) from None

    def contents(self) -> Contents:
        """List the keys of all records, and what else lies at any level of the store.

        Whether a file with a key for its name is a record is found when it is read. What was written by runners that live or
        died (``tmp``, ``damaged``, ``runners``, ``shards``) is not listed.
        """
        found = Contents()
        for entry in _listed(self.directory):
            if entry.name not in _TOP and not entry.name.startswith(".store-"):
                found.strays.append(entry.name)
        for directory in _listed(self.records):
            name = f"records/{directory.name}"
            if directory.name not in _SUBDIRECTORIES or not directory.is_dir():
                found.strays.append(name)
                continue
            try:
                entries = _listed(Path(directory.path))
            except OSError as error:
                found.strays.append(f"{name} ({error.strerror})")
                continue
            for entry in entries:
                key = entry.name.removesuffix(".json")
                if (
                    entry.name != f"{key}.json"
                    or not _KEY.fullmatch(key)
                    or key[:2] != directory.name
                    or not entry.is_file()
                ):
                    found.strays.append(f"{name}/{entry.name}")
                else:
                    found.keys.append(key)
        return found

    def all_keys(self) -> Iterator[str]:
        """Iterate over the keys of all records."""
        return iter(self.contents().keys)

    def rows(self, where: str | None = None) -> list[dict[str, Any]]:
        """Return one flat dictionary per record, as ``m2bridge results`` lists them; `where` as for that command."""
        from m2bridge.batch import expressions, rows  # they read stores

        condition = None if where is None else expressions.parse(where)
        return rows.read_rows(Store.open(self.directory)).where(condition)

    def frame(self, where: str | None = None) -> Any:
        """Return the records as a pandas DataFrame, which writes LaTeX (``to_latex``), Parquet (``to_parquet``) and more.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise InputError(
                "Store.frame() needs pandas, which is not installed: pip install 'm2bridge[pandas]'"
            ) from None
        return pandas.DataFrame(self.rows(where))


def _listed(directory: Path) -> list[os.DirEntry[str]]:
    """List a directory in the order of names."""
    with os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _mark(directory: Path) -> None:
    """Make an empty directory a store; several runners may do so at once, and any of them may be killed while at it."""
    marker = directory / "store.json"
    if marker.exists():
        return
    foreign = any(not entry.name.startswith(".store-") for entry in directory.iterdir())
    if foreign and not marker.exists():
        raise InputError(f"--store {directory}: the directory holds something else; name an empty or new one")
    text = json.dumps({"kind": KIND, "store_version": STORE_VERSION}) + "\n"
    write_atomically(marker, text, directory / f".store-{secrets.token_hex(8)}")


def encode(document: dict[str, Any]) -> bytes:
    """The bytes of a document: one JSON object whose first line is the checksum of all that follows it."""
    rest = json.dumps(document, allow_nan=False, ensure_ascii=False)[1:].encode() + b"\n"
    return b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest


def checked(data: bytes) -> dict[str, Any]:
    """The document in these bytes; a RecordError when they are not whole."""
    first = _FIRST.match(data)
    if first is None or hashlib.sha256(data[first.end() :]).hexdigest().encode() != first[1]:
        raise RecordError("its checksum does not match")
    try:
        document: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it cannot be read ({type(error).__name__})") from None
    return document


def decode(data: bytes, key: str) -> dict[str, Any]:
    """The record in these bytes, if they are whole and belong to `key`."""
    try:
        record = checked(data)
    except RecordError as error:
        raise _damaged(key, error.message) from None
    if record.get("key") != key:
        raise _damaged(key, f"it holds the key {str(record.get('key'))[:12]}")
    if record.get("store_version") != STORE_VERSION:
        raise RecordError(f"record {key[:12]} is of store version {record.get('store_version')!r}")
    return record


def shaped(record: dict[str, Any]) -> dict[str, Any]:
    """The record itself, if it has the parts that a batch relies on; what is inside a result is not looked at."""
    for parts, where in ((_PARTS, record), (_PARTS_OF_A_JOB, record.get("job"))):
        for name, kinds in parts.items():
            if not isinstance(where, dict) or not isinstance(where.get(name, ...), kinds):
                raise _damaged(record["key"], f"{name} is missing or wrong")
    if record["outcome"] not in set(JobOutcome):
        raise _damaged(record["key"], f"there is no outcome {record['outcome'][:40]!r}")
    return record


def _damaged(key: str, how: str) -> RecordError:
    return RecordError(f"record {key[:12]} is damaged: {how}")
