"""The store, its locks and its rows, without any engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.policy import limits_document
from m2bridge.batch.rows import read_rows
from m2bridge.batch.store import STORE_VERSION, Store, decode, encode
from m2bridge.cli import main
from m2bridge.errors import InputError, RecordError
from m2bridge.limits import Limits


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
        "limits": limits_document(Limits()),
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


def test_records_can_be_read_again(store: Store) -> None:
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


def test_every_damage_is_detected(store: Store) -> None:
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


def test_a_damaged_record_is_moved_to_damaged(store: Store) -> None:
    key = record(1)["key"]
    store.path_of(key).write_text("{}")
    assert store.read_or_set_aside(key) is None
    assert store.read(key) is None
    assert len(list((store.directory / "damaged").iterdir())) == 1


def test_a_directory_with_other_files_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        Store.open_for_writing(tmp_path)
    with pytest.raises(InputError, match=r"store\.json"):
        Store.open(tmp_path)
    with pytest.raises(InputError):
        Store.open_for_writing(tmp_path / "thesis.tex")


def test_files_of_earlier_runners_are_removed(store: Store) -> None:
    store.close()
    (store.directory / "tmp" / "all.7").write_text("half")
    (store.runners / "2-of-8.json").write_text("{}")
    (store.directory / "tmp" / "a directory").mkdir()
    Store.open_for_writing(store.directory).close()
    assert [path.name for path in (store.directory / "tmp").iterdir()] == ["a directory"]
    assert list(store.runners.iterdir()) == []


def test_one_runner_per_store_or_one_per_shard(store: Store) -> None:
    with pytest.raises(InputError, match=f'"pid": {os.getpid()}.*--shard'):
        Store.open_for_writing(store.directory)
    with pytest.raises(InputError, match="--shard"):
        Store.open_for_writing(store.directory, "1-of-2")
    store.close()
    shards = [Store.open_for_writing(store.directory, name) for name in ("1-of-2", "2-of-2")]
    for taken in ("1-of-2", "all"):
        with pytest.raises(InputError, match="--shard"):
            Store.open_for_writing(store.directory, taken)
    theirs = store.directory / "tmp" / "2-of-2.9"
    theirs.write_text("still being written")
    shards[0].close()
    shards[0] = Store.open_for_writing(store.directory, "1-of-2")
    assert theirs.exists()
    for shard in shards:
        shard.publish({"source": shard.runner})
    assert [state["source"] for state in Store.open(store.directory).running_states()] == ["1-of-2", "2-of-2"]
    for shard in shards:
        shard.close()
    Store.open_for_writing(store.directory).close()


def test_a_lock_ends_with_its_process(store: Store) -> None:
    store.close()
    program = (
        "import sys; from pathlib import Path; from m2bridge.batch.store import Store\n"
        "store = Store.open_for_writing(Path(sys.argv[1])); store.publish({'source': 'x'})\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, str(store.directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert store.running_states() == [{"source": "x"}]
        with pytest.raises(InputError, match="--shard"):
            Store.open_for_writing(store.directory)
        child.kill()
    assert store.running_states() == []
    Store.open_for_writing(store.directory).close()


def test_rows_of_the_records(store: Store) -> None:
    assert read_rows(store).outcomes == {"complete": 20}
    entry = record(99, outcome="timed-out", result=None)
    store.write(entry["key"], entry)
    store.path_of(record(5)["key"]).unlink()
    changed = record(6, outcome="partial")
    store.write(changed["key"], changed)
    assert read_rows(store).outcomes == {"complete": 18, "partial": 1, "timed-out": 1}
    assert sorted(path.name for path in store.directory.iterdir()) == [
        "damaged", "lock", "records", "runners", "store.json", "tmp",
    ]  # fmt: skip


def test_a_damaged_record_has_no_row(store: Store) -> None:
    key = record(1)["key"]
    store.path_of(key).write_text("{}")
    contents = read_rows(store)
    assert contents.outcomes == {"complete": 19}
    assert len(contents.damaged) == 1


def test_results_counts_the_damaged_records_that_it_does_not_list(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    keys = [record(number)["key"] for number in range(12)]
    for key in keys:
        store.path_of(key).write_text("{}")
    assert main(["results", str(store.directory), "--format", "csv"]) == 0
    brief = capsys.readouterr().err
    assert sum(key[:12] in brief for key in keys) == 10
    assert re.search(r"\b2 more .*--verify", brief)
    assert main(["results", str(store.directory), "--format", "csv", "--verify"]) != 0
    full = capsys.readouterr().err
    assert all(key[:12] in full for key in keys)
    assert "more" not in full


def scatter(store: Store) -> list[str]:
    """Create files that are not records at every level of a store; return their names."""
    records, subdirectory = store.records, store.path_of(record(1)["key"]).parent
    (store.directory / "notes.txt").write_text("x")
    (store.directory / "store.json~").write_text("{}")
    (records / "zz.json").write_text("{}")
    (records / "zz").mkdir()
    (records / "zz" / f"{'ab' * 32}.json").write_text("{}")
    (subdirectory / "README").write_text("x")
    (subdirectory / f"{record(1)['key']}.json~").write_text("{}")
    (subdirectory / f"{'0f' * 32}.json").write_text("{}")  # of another directory
    (subdirectory / f"{subdirectory.name}{'f' * 62}.json").symlink_to("nowhere")
    (subdirectory / f"{subdirectory.name}{'e' * 62}.json").mkdir()
    (store.runners / "x.json").mkdir()
    (store.runners / "y.json").write_text("not JSON")
    (store.directory / "tmp" / "left").mkdir(exist_ok=True)
    (store.directory / "damaged" / "left").mkdir()
    within = f"records/{subdirectory.name}"
    return sorted([
        "notes.txt", "store.json~", "records/zz", "records/zz.json", f"{within}/README", f"{within}/{record(1)['key']}.json~",
        f"{within}/{'0f' * 32}.json", f"{within}/{subdirectory.name}{'f' * 62}.json",
        f"{within}/{subdirectory.name}{'e' * 62}.json",
    ])  # fmt: skip


def test_files_that_are_not_records_are_listed_and_ignored(
    store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    strays = scatter(store)
    assert sorted(store.contents().strays) == strays
    assert read_rows(store).outcomes == {"complete": 20}
    store.close()
    Store.open_for_writing(store.directory).close()
    for words in (
        ["results", "--format", "json"],
        ["status", "--json"],
        ["report", "-o", str(tmp_path / "x.html")],
    ):
        code = main([words[0], str(store.directory), *words[1:]])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert f"{len(strays)} " in printed.err
        assert "records/zz.json" in printed.err
        if words[0] != "report":  # these results have no question of a report
            assert code == 0
            assert "complete" in printed.out


def test_an_unreadable_record_is_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable = store.path_of(record(1)["key"])
    whole = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path == unreadable:
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    contents = read_rows(store)
    assert contents.outcomes == {"complete": 19}
    [message] = contents.damaged
    assert record(1)["key"][:12] in message
    assert "Permission denied" in message


@pytest.mark.parametrize("name", ["records/ab", "tmp", "damaged"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_in_place_of_a_directory_is_reported(store: Store, name: str, kind: str) -> None:
    store.close()
    (store.directory / name).rmdir()
    if kind == "file":
        (store.directory / name).write_text("x")
    else:
        (store.directory / name).symlink_to("nowhere")
    with pytest.raises(InputError, match=f"{name} exists"):
        Store.open_for_writing(store.directory)
    assert read_rows(Store.open(store.directory)).outcomes == {"complete": 20}


def test_a_directory_in_place_of_a_record_does_not_stop_a_batch(store: Store) -> None:
    entry = record(7)
    path = store.path_of(entry["key"])
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")
    assert store.read_or_set_aside(entry["key"]) is None
    store.write(entry["key"], entry)
    path.unlink()
    path.symlink_to("nowhere")
    assert store.read_or_set_aside(entry["key"]) is None
    store.write(entry["key"], entry)
    assert read_rows(store).outcomes == {"complete": 20}


def test_encoding_is_canonical_json_with_a_checksum() -> None:
    data = encode(record(1))
    assert data.startswith(b'{"sha256":"')
    assert decode(data, record(1)["key"])["job"] == record(1)["job"]
    with pytest.raises(ValueError, match="JSON"):
        encode(record(1, seconds=float("nan")))
