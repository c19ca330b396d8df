"""Batch: the index of a store, an SQLite table made from the records. Records enter, rows for queries leave.

The records are the truth. The index is private to the user who reads and lives in the user's cache directory: a store may be
on a network file system, where SQLite does not work, or belong to somebody else. It is brought up to date whenever it is
opened: only the directories of records that changed since are listed, only records that are new or changed are read. When it
is missing, truncated or damaged it is made again; when the cache cannot be written to, it is made in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from m2bridge.batch.store import Store, decode, shaped
from m2bridge.engine.machine import cache_directory
from m2bridge.errors import M2BridgeError, RecordError
from m2bridge.models.spec import read as read_spec

INDEX_VERSION = 2
COLUMNS = ("key", "analysis", "model", "family", "outcome", "prime", "seed", "seconds", "attempts", "size")
"""Columns that a query can be answered from without reading the rest of a row."""
_TABLES = """
create table if not exists jobs (
    key text primary key, analysis text, model text, family text, outcome text, prime integer, seed integer,
    seconds real, attempts integer, size integer, facts text, stamp text, directory text) without rowid;
create index if not exists by_directory on jobs (directory, key, stamp);
create index if not exists by_outcome on jobs (outcome);
create table if not exists directories (name text primary key, stamp integer) without rowid;
"""
_SETTLED = 2 * 10**9
"""Nanoseconds after which a directory's time of change can be told from that of a later change."""
_LONGEST_FACT = 200


class Index:
    """The index of a store, up to date when opened."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.path = path_of(store)
        self.damaged: list[str] = []
        self._begin(self._open, self._open_anew, _in_memory)

    # -- making ----------------------------------------------------------------------------------------------

    def _begin(self, *ways: Callable[[], sqlite3.Connection]) -> None:
        """Open and refresh in the first of these ways that succeeds; an index in memory always does."""
        for way in ways:
            self.close()
            self.damaged = []
            try:
                self._connection = way()
                self.refresh()
                return
            except (sqlite3.Error, OSError):
                if way is ways[-1]:
                    raise

    def _open(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _forget_stores_that_are_gone(self.path.parent.parent)
            (self.path.parent / "store").write_text(str(self.store.directory.resolve()), encoding="utf-8")
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("pragma synchronous = off")  # it can be made again
            (version,) = connection.execute("pragma user_version").fetchone()
            if version not in (0, INDEX_VERSION):
                raise sqlite3.DatabaseError("an index of another version")
            connection.executescript(_TABLES)
            connection.execute(f"pragma user_version = {INDEX_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_anew(self) -> sqlite3.Connection:
        """In the place of a damaged one; whoever has that open keeps what is there."""
        for name in (self.path.name, f"{self.path.name}-journal"):
            self.path.with_name(name).unlink(missing_ok=True)
        return self._open()

    def refresh(self) -> None:
        """Bring the rows up to date with the records, one directory after another, so that others need not wait long."""
        known = dict(self._connection.execute("select name, stamp from directories"))
        now = self._clock_of_the_files()
        for entry in sorted(os.scandir(self.store.records), key=lambda entry: entry.name):
            changed = entry.stat().st_mtime_ns
            if known.get(entry.name) != changed:
                settled = now is not None and abs(now - changed) > _SETTLED
                self._look_into(entry.name, changed if settled else None)

    def _clock_of_the_files(self) -> int | None:
        """The time that a file changed now would get, which on a network is not this machine's; None for a read-only store."""
        try:
            os.utime(self.store.directory / "locks")
            return (self.store.directory / "locks").stat().st_mtime_ns
        except OSError:
            return None

    def _look_into(self, name: str, stamp: int | None) -> None:
        """Note what is new, changed or gone in one directory of records."""
        connection = self._connection
        rows = dict(connection.execute("select key, stamp from jobs where directory = ?", (name,)))
        there: dict[str, str] = {}
        for entry in os.scandir(self.store.records / name):
            if entry.name.endswith(".json"):
                with contextlib.suppress(FileNotFoundError):
                    there[entry.name.removesuffix(".json")] = _stamp(entry.stat())
        gone, new = [(key,) for key in rows if key not in there], []
        for key in (key for key, stamp_now in there.items() if rows.get(key) != stamp_now):
            try:
                data = (self.store.records / name / f"{key}.json").read_bytes()
                new.append(row_of(shaped(decode(data, key)), there[key]))
            except FileNotFoundError:
                continue
            except RecordError as error:
                self.damaged.append(error.message)
                gone.append((key,))
        connection.execute("begin immediate")
        try:
            connection.executemany("delete from jobs where key = ?", gone)
            connection.executemany(_INSERT, new)
            connection.execute("insert or replace into directories values (?, ?)", (name, stamp))
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("rollback")
            raise
        connection.execute("commit")

    def close(self) -> None:
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self._connection.close()

    # -- asking ----------------------------------------------------------------------------------------------

    def rows(self, conditions: Iterable[tuple[str, str, Any]] = ()) -> Iterator[dict[str, Any]]:
        """Rows as flat dictionaries, narrowed by conditions (column, comparison, value) on :data:`COLUMNS`."""
        clauses, values = [], []
        for column, comparison, value in conditions:
            if column not in COLUMNS or comparison not in ("=", "<", "<=", ">", ">="):
                raise M2BridgeError(f"no condition can be put on {column!r}")
            clauses.append(f"{column} {comparison} ?")
            values.append(value)
        where = f"where {' and '.join(clauses)}" if clauses else ""
        query = f"select {', '.join(COLUMNS)}, facts from jobs {where} order by analysis, size, model, prime, seed, key"
        for row in self._guarded(query, values):
            yield {**json.loads(row[-1]), **dict(zip(COLUMNS, row, strict=False))}

    def counts(self) -> dict[str, int]:
        """How many records there are of each outcome."""
        return dict(self._guarded("select outcome, count(*) from jobs group by outcome", ()))

    def seconds(self) -> list[tuple[str, str, int, float]]:
        """(analysis, model, size, mean seconds) of what was answered, for estimates."""
        query = (
            "select analysis, model, max(size), avg(seconds) from jobs "
            "where outcome in ('complete', 'disagreement') group by analysis, model"
        )
        return list(self._guarded(query, ()))

    def _guarded(self, query: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """A query; when it meets damage, the index is made again and asked once more."""
        parameters = tuple(values)
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.Error:
            self._begin(self._open_anew, _in_memory)
            return self._connection.execute(query, parameters).fetchall()


_INSERT = f"insert or replace into jobs values ({', '.join('?' * 13)})"


def _in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(_TABLES)
    return connection


def row_of(record: dict[str, Any], stamp: str) -> tuple[Any, ...]:
    """The row of a record."""
    job = record["job"]
    parameters = job["parameters"]
    prime = parameters.get("prime", parameters.get("field"))
    family = job["model"].split("(")[0].split(":")[0]
    return (
        record["key"], job["analysis"], job["model"], family, record["outcome"],
        prime if isinstance(prime, int) else None, parameters.get("seed"),
        record["seconds"], len(record["attempts"]), job["size"],
        json.dumps(facts_of(record)), stamp, record["key"][:2],
    )  # fmt: skip


def facts_of(record: dict[str, Any]) -> dict[str, Any]:
    """What can be asked of a record beside the columns: the model's arguments, the parameters, the result's plain values."""
    job = record["job"]
    facts: dict[str, Any] = {**_arguments(job["model"]), **job["parameters"], **job.get("sweep", {})}
    for name, value in (record["result"] or {}).items():
        short = isinstance(value, str) and len(value) <= _LONGEST_FACT
        if short or isinstance(value, bool | int | float | None):
            facts.setdefault(name, value)
    return facts | {
        "name": job.get("name"),
        "tags": job["tags"],
        "message": (record["message"] or "")[:_LONGEST_FACT] or None,
        "engine": (record["engine"] or {}).get("version"),
        "finished": record["finished"],
        "peak_memory_bytes": record["peak_memory_bytes"],
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


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}.{status.st_size}.{status.st_ino}"


def path_of(store: Store) -> Path:
    """Where the index of a store is kept; another directory of records in the same place has another one."""
    records = store.records.stat()
    name = json.dumps([str(store.directory.resolve()), records.st_dev, records.st_ino])
    return cache_directory() / "indexes" / hashlib.sha256(name.encode()).hexdigest()[:32] / "index.sqlite"


def _forget_stores_that_are_gone(indexes: Path) -> None:
    for note in indexes.glob("*/store"):
        with contextlib.suppress(OSError):
            if not Path(note.read_text(encoding="utf-8")).exists():
                shutil.rmtree(note.parent, ignore_errors=True)
