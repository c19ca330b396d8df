"""The store, its locks and its index, without any engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch import index as index_module
from m2bridge.batch.index import Index
from m2bridge.batch.locks import Locks, scope_of
from m2bridge.batch.policy import JobLimits
from m2bridge.batch.store import STORE_VERSION, Store, decode, encode
from m2bridge.errors import InputError, RecordError


def record(number: int, **changes: Any) -> dict[str, Any]:
    key = f"{number:064x}"[::-1]
    return {
        "store_version": STORE_VERSION,
        "key": key,
        "question": {},
        "job": {
            "analysis": "dimension",
            "model": f"lightning(d={number % 7 + 1},dp=1,a=1,t=2)",
            "parameters": {"prime": 32003, "seed": number},
            "size": number % 7 + 1,
            "tags": ["even"] if number % 2 == 0 else [],
        },
        "outcome": "complete",
        "message": None,
        "result": {"image_dim": number % 7, "certainty": "proved", "agreement": True, "strata": [1, 2]},
        "limits": JobLimits().document(),
        "seconds": 0.5,
        "peak_memory_bytes": None,
        "attempts": [{}],
        "engine": {"version": "1.21", "origin": "path"},
        "package_version": "0",
        "finished": "2024-01-01T00:00:00+00:00",
        **changes,
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open_for_writing(tmp_path / "store")
    for number in range(20):
        entry = record(number)
        opened.write(entry["key"], entry)
    return opened


def test_records_come_back(store: Store) -> None:
    entry = record(3)
    assert store.read(entry["key"]) == {**entry, "sha256": store.read(entry["key"])["sha256"]}  # type: ignore[index]
    assert store.read("f" * 64) is None
    assert sorted(store.all_keys()) == sorted(record(n)["key"] for n in range(20))
    assert json.loads(store.path_of(entry["key"]).read_text())["key"] == entry["key"]
    assert list((store.directory / "tmp").iterdir()) == []


def test_a_key_is_never_a_path(store: Store) -> None:
    for key in ("../../etc/passwd", "", "A" * 64, "0" * 63 + "/"):
        with pytest.raises(RecordError):
            store.path_of(key)


def test_every_damage_is_noticed(store: Store) -> None:
    data = store.path_of(record(1)["key"]).read_bytes()
    key = record(1)["key"]
    for cut in range(0, len(data), 37):
        with pytest.raises(RecordError):
            decode(data[:cut], key)
    for at in range(0, len(data), 41):
        flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        with pytest.raises(RecordError):
            decode(flipped, key)
    with pytest.raises(RecordError):
        decode(data, record(2)["key"])


def test_a_damaged_record_is_set_aside_and_kept(store: Store) -> None:
    key = record(1)["key"]
    store.path_of(key).write_text("{}")
    assert store.read_or_set_aside(key) is None
    assert store.read(key) is None
    assert len(list((store.directory / "damaged").iterdir())) == 1


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="something else"):
        Store.open_for_writing(tmp_path)
    with pytest.raises(InputError, match=r"no store\.json"):
        Store.open(tmp_path)
    with pytest.raises(InputError):
        Store.open_for_writing(tmp_path / "thesis.tex")


def test_what_dead_runners_left_is_cleared_away(store: Store) -> None:
    (store.directory / "tmp" / "0123456789abcdef.7").write_text("half")
    (store.runners / "0123456789abcdef.json").write_text("{}")
    mine = store.directory / "tmp" / f"{store.runner_id}.9"
    mine.write_text("still being written")
    Store.open_for_writing(store.directory).close()
    assert [p.name for p in (store.directory / "tmp").iterdir()] == [mine.name]
    assert list(store.runners.iterdir()) == []


def test_locks_exclude_each_other_and_die_with_their_process(tmp_path: Path) -> None:
    first, second = Locks(tmp_path / "locks"), Locks(tmp_path / "locks")
    assert first.take("job:a")
    assert not first.take("job:a")
    assert not second.take("job:a")
    assert second.take("job:b")
    assert second.is_held("job:a")
    first.release("job:a")
    assert second.take("job:a")
    program = (
        "import sys; from pathlib import Path; from m2bridge.batch.locks import Locks\n"
        "assert Locks(Path(sys.argv[1])).take('job:c'); held = Locks(Path(sys.argv[1])); assert held.take('job:d')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "locks")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    assert first.is_held("job:d")
    assert Locks(tmp_path / "locks", readonly=True).is_held("job:d")
    assert not first.take("job:d")
    child.kill()
    child.wait()
    assert first.take("job:d")
    assert child.stdin is not None
    child.stdin.close()
    child.stdout.close()


MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none
3 1 0:41 / /scratch rw - nfs server:/scratch rw,vers=3,local_lock=all
4 1 0:42 / /lustre rw - lustre mgs:/work rw,localflock
5 1 0:43 / /smb rw - cifs //server/share rw
"""


@pytest.mark.parametrize(
    ("directory", "scope"),
    [
        ("/var/store", ""),
        ("/home/me/store", "hold between hosts (nfs4)"),
        ("/homestead/store", ""),
        ("/scratch/store", "do not hold between hosts (nfs)"),
        ("/lustre/store", "do not hold between hosts (lustre)"),
        ("/smb/store", "do not hold between hosts (cifs)"),
    ],
)
def test_whether_locks_hold_between_hosts_is_said(tmp_path: Path, directory: str, scope: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    found = scope_of(Path(directory), mounts)
    assert found == scope or (scope and found.startswith(scope))


@pytest.mark.parametrize("beats", [True, False])
def test_a_runner_elsewhere_whose_lock_cannot_be_seen(store: Store, beats: bool) -> None:
    """It shows itself by its heartbeat: then locks do not hold here, and its files are left alone."""
    state = store.runners / "0123456789abcdef.json"
    theirs = store.directory / "tmp" / "0123456789abcdef.7"
    theirs.write_text("half")
    done = threading.Event()

    def beat() -> None:
        number = 0
        while not done.is_set():
            number += beats
            state.write_text(json.dumps({"host": "another-host", "beat": number}))
            done.wait(0.5)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        time.sleep(0.2)
        opened = Store.open_for_writing(store.directory)
        assert ("another-host" in opened.lock_scope) is beats
        assert theirs.exists() is beats
        opened.close()
    finally:
        done.set()
        thread.join()


def test_the_index_follows_the_records(store: Store) -> None:
    index = Index(store)
    assert index.counts() == {"complete": 20}
    entry = record(99, outcome="timed-out", result=None)
    store.write(entry["key"], entry)
    store.path_of(record(5)["key"]).unlink()
    changed = record(6, outcome="partial")
    store.write(changed["key"], changed)
    index.refresh()
    assert index.counts() == {"complete": 18, "partial": 1, "timed-out": 1}
    other = Index(store)
    assert list(other.rows()) == list(index.rows())


def test_a_record_in_the_same_tick_is_found_whatever_the_clock_says(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: 10**18)
        patch.setattr(time, "time", lambda: 1e9)
        Index(store)
    entry = record(5, outcome="timed-out", result=None)
    entry["key"] = entry["key"][:2] + "f" * 62
    directory = store.path_of(entry["key"]).parent
    before = directory.stat().st_mtime_ns
    store.write(entry["key"], entry)
    os.utime(directory, ns=(before, before))  # the clock of the files has ticks of milliseconds
    assert Index(store).counts() == {"complete": 20, "timed-out": 1}


def test_a_directory_changed_in_1970_is_looked_into(store: Store) -> None:
    entry = record(5, outcome="timed-out", result=None)
    entry["key"] = entry["key"][:2] + "f" * 62
    Index(store)
    store.write(entry["key"], entry)
    os.utime(store.path_of(entry["key"]).parent, (0, 0))
    assert Index(store).counts() == {"complete": 20, "timed-out": 1}


@pytest.mark.parametrize(
    "damage", ["missing", "one missing", "truncated", "empty", "text", "noise", "flipped"]
)
def test_a_damaged_index_is_made_again(store: Store, damage: str) -> None:
    index = Index(store)
    expected = list(index.rows())
    assert sorted(path.name for path in store.directory.iterdir()) == [
        "damaged", "locks", "records", "runners", "store.json", "tmp",
    ]  # fmt: skip
    part = index.path / record(1)["key"][:2]
    before = part.stat().st_mtime_ns
    if damage == "missing":
        shutil.rmtree(index.path)
    elif damage == "one missing":
        part.unlink()
    elif damage == "truncated":
        os.truncate(part, part.stat().st_size // 2)
    elif damage == "empty":
        os.truncate(part, 0)
    elif damage == "text":
        part.write_text("not an index")
    elif damage == "noise":
        part.write_bytes(os.urandom(part.stat().st_size))
    else:
        part.write_bytes(part.read_bytes().replace(b"complete", b"compleat"))
    if damage not in ("missing", "one missing"):
        os.utime(part, ns=(before, before))
        assert list(index.rows()) == expected
    assert list(Index(store).rows()) == expected
    assert len(expected) == 20


def test_a_damaged_note_of_another_index_is_left_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "cache_directory", lambda: tmp_path / "cache")
    for name, note in (("noise", b"\xdf\x00"), ("gone", b"/nonexistent/store"), ("nul", b"a\x00b")):
        (tmp_path / "cache" / "indexes" / name).mkdir(parents=True)
        (tmp_path / "cache" / "indexes" / name / "store").write_bytes(note)
    index = Index(store)
    assert index.counts() == {"complete": 20}
    left = {path.name for path in index.path.parent.iterdir()}
    assert left - {index.path.name} in ({"noise", "nul"}, {"noise"})


def test_where_the_cache_cannot_be_written_rows_are_kept_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(index_module, "cache_directory", lambda: tmp_path / "file")
    index = Index(store)
    assert index.counts() == {"complete": 20}
    store.path_of(record(5)["key"]).unlink()
    index.refresh()
    assert index.counts() == {"complete": 19}


def test_a_damaged_record_is_not_in_the_index(store: Store) -> None:
    key = record(1)["key"]
    store.path_of(key).unlink()
    store.path_of(key).write_text("{}")
    index = Index(store)
    assert index.counts() == {"complete": 19}
    assert len(index.damaged) == 1


def test_encoding_is_canonical_json_with_a_checksum() -> None:
    data = encode(record(1))
    assert data.startswith(b'{"sha256":"')
    assert decode(data, record(1)["key"])["job"] == record(1)["job"]
    with pytest.raises(ValueError, match="JSON"):
        encode(record(1, seconds=float("nan")))
