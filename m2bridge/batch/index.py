"""Batch: the index of a store: what its records say, as flat rows. Records enter, rows leave.

The records are the truth. The index is private to the user who reads and lives in the user's cache directory, for a store may
belong to somebody else: one file of rows for each directory of records, with its checksum, and with the directory's time of
change as its own. Whenever the index is opened, the directories whose time differs are listed, and of these the records that are
new or changed are read. A file that is missing or damaged is made again; where the cache cannot be written to, rows are kept in
memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from m2bridge.batch.store import Store, checked, decode, encode, shaped
from m2bridge.engine.machine import cache_directory
from m2bridge.errors import M2BridgeError, RecordError
from m2bridge.models.spec import read as read_spec

INDEX_VERSION = 3
COLUMNS = ("key", "analysis", "model", "family", "outcome", "prime", "seed", "seconds", "attempts", "size")
"""What every row has, whatever the question and the model."""
_SETTLED = 2 * 10**9
"""Nanoseconds after which a directory's time of change can be told from that of a later change."""
_UNSETTLED = -(10**9)
"""The time that rows get which are to be looked at again: one that no directory has."""
_LONGEST_FACT = 200

Row = dict[str, Any]
Rows = dict[str, tuple[str, Row]]
"""By the key of the record: the state of its file, and its row."""


class Index:
    """The index of a store, up to date when opened. `damaged` says which records could not be read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.path = path_of(store)
        self.damaged: list[str] = []
        self._unsaved: dict[str, Rows] = {}
        with contextlib.suppress(OSError):
            if not self.path.exists():
                self.path.mkdir(parents=True)
                _forget_stores_that_are_gone(self.path.parent)
                (self.path / "store").write_text(str(store.directory.resolve()), encoding="utf-8")
        self.refresh()

    def refresh(self) -> None:
        """Bring the rows up to date with the records, one directory after another."""
        self.damaged = []
        now = self._clock_of_the_files()
        for entry in sorted(os.scandir(self.store.records), key=lambda entry: entry.name):
            changed = entry.stat().st_mtime_ns
            try:
                seen = (self.path / entry.name).stat().st_mtime_ns
            except OSError:
                seen = None
            if seen != changed:
                settled = now is not None and abs(now - changed) > _SETTLED
                self._look_into(entry.name, self._kept(entry.name) or {}, changed if settled else _UNSETTLED)

    def rows(self) -> Iterator[Row]:
        """The row of every record, in the order of their keys' first two digits."""
        for entry in sorted(os.listdir(self.store.records)):
            rows = self._kept(entry)
            for _, row in (self._look_into(entry, {}, _UNSETTLED) if rows is None else rows).values():
                yield row

    def counts(self) -> dict[str, int]:
        """How many records there are of each outcome."""
        return dict(Counter(row["outcome"] for row in self.rows()))

    def seconds(self) -> Iterator[tuple[str, str, int, float]]:
        """(analysis, model, size, seconds) of what was answered, for estimates."""
        for row in self.rows():
            if row["outcome"] in ("complete", "disagreement"):
                yield row["analysis"], row["model"], row["size"], row["seconds"]

    def _clock_of_the_files(self) -> int | None:
        """The time that a file changed now would get, which on a network is not this machine's; None for a read-only store."""
        try:
            os.utime(self.store.directory / "locks")
            return (self.store.directory / "locks").stat().st_mtime_ns
        except OSError:
            return None

    def _kept(self, name: str) -> Rows | None:
        """The rows of one directory of records when it was last looked into; None when there are none, or not in one piece."""
        if name in self._unsaved:
            return self._unsaved[name]
        try:
            rows: Rows = checked((self.path / name).read_bytes())["rows"]
        except (OSError, RecordError):
            return None
        return rows

    def _look_into(self, name: str, known: Rows, stamp: int) -> Rows:
        """Read what is new or changed in one directory of records, and keep the rows under its time of change."""
        rows: Rows = {}
        for entry in os.scandir(self.store.records / name):
            key = entry.name.removesuffix(".json")
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                state = f"{status.st_mtime_ns}.{status.st_size}.{status.st_ino}"
                if key in known and known[key][0] == state:
                    rows[key] = known[key]
                elif entry.name.endswith(".json"):
                    try:
                        rows[key] = (state, row_of(shaped(decode(Path(entry.path).read_bytes(), key))))
                    except RecordError as error:
                        self.damaged.append(error.message)
        part = self.path / f".{name}.{secrets.token_hex(8)}"
        try:
            part.write_bytes(encode({"rows": rows}))
            os.utime(part, ns=(stamp, stamp))
            os.replace(part, self.path / name)
            self._unsaved.pop(name, None)
        except OSError:
            self._unsaved[name] = rows
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        return rows


def row_of(record: dict[str, Any]) -> Row:
    """A flat row: the columns, the model's arguments, the parameters, and the plain values of the result."""
    job = record["job"]
    parameters = job["parameters"]
    prime = parameters.get("prime", parameters.get("field"))
    row: Row = {**_arguments(job["model"]), **parameters, **job.get("sweep", {})}
    for name, value in (record["result"] or {}).items():
        short = isinstance(value, str) and len(value) <= _LONGEST_FACT
        if short or isinstance(value, bool | int | float | None):
            row.setdefault(name, value)
    return row | {
        "name": job.get("name"),
        "tags": job["tags"],
        "message": (record["message"] or "")[:_LONGEST_FACT] or None,
        "engine": (record["engine"] or {}).get("version"),
        "finished": record["finished"],
        "peak_memory_bytes": record["peak_memory_bytes"],
        "key": record["key"],
        "analysis": job["analysis"],
        "model": job["model"],
        "family": job["model"].split("(")[0].split(":")[0],
        "outcome": record["outcome"],
        "prime": prime if isinstance(prime, int) else None,
        "seed": parameters.get("seed"),
        "seconds": record["seconds"],
        "attempts": len(record["attempts"]),
        "size": job["size"],
    }


@lru_cache(maxsize=4096)
def _arguments(spec: str) -> dict[str, Any]:
    """The arguments in a model's spec; none where it is a map written out."""
    if "(" not in spec:
        return {}
    try:
        values = read_spec(spec).values
    except M2BridgeError:
        return {}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {
        name: value if isinstance(value, int | str | list) else str(value) for name, value in lists.items()
    }


def path_of(store: Store) -> Path:
    """Where the index of a store is kept; another directory of records in the same place has another one."""
    records = store.records.stat()
    name = json.dumps([INDEX_VERSION, str(store.directory.resolve()), records.st_dev, records.st_ino])
    return cache_directory() / "indexes" / hashlib.sha256(name.encode()).hexdigest()[:32]


def _forget_stores_that_are_gone(indexes: Path) -> None:
    for note in indexes.glob("*/store"):
        with contextlib.suppress(OSError, ValueError):  # a note that is damaged is left alone
            if not Path(note.read_text(encoding="utf-8")).exists():
                shutil.rmtree(note.parent, ignore_errors=True)
