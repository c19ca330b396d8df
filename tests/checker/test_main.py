"""The checker as a program, in this process: arguments, files, outcomes, limits."""

from __future__ import annotations

import io
import json
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fuzz
import pytest

from m2bridge import checker

TRUE = dict(fuzz.pool())["lightning"]
FALSE = json.dumps({**json.loads(TRUE), "statement": {"kind": "dimension", "dimension": 4}})


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Restore what `main` does with the signal of the limit."""
    before = signal.getsignal(signal.SIGXCPU)
    yield
    signal.signal(signal.SIGXCPU, before)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[int, int]]]:
    """Collect the limits that the checker sets, in place of setting them."""
    collected: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: collected.append((kind, pair)))
    return collected


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 8), (["--seconds", "5"], 8), (["--help"], 8), (["--seconds", "0", "true"], 8), (["--seconds", "-1", "true"], 8),
        (["--seconds", "12345678", "true"], 8), (["true", "true"], 8), (["absent"], 8), ([""], 8), (["true"], 0), (["false"], 7),
        (["--seconds", "1234567", "true"], 0), (["empty"], 7), (["long"], 8),
    ],
)  # fmt: skip
def test_arguments_and_outcomes(
    arguments: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"true": TRUE, "false": FALSE, "empty": ""}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "long").write_text(TRUE + " " * (checker.MOST_BYTES + 1 - len(TRUE)))
    at = [
        str(tmp_path / x) if x in ("true", "false", "empty", "long", "absent", "") else x for x in arguments
    ]
    assert checker.main(at) == code
    printed = capsys.readouterr().out
    assert printed.startswith("Verified: ") == (code == 0)
    assert printed.startswith("Rejected: ") == (code == 7)


@pytest.mark.usefixtures("limits")
def test_a_document_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_text(TRUE + " " * (checker.MOST_BYTES - len(TRUE)))
    assert checker.main([str(path)]) == 0


@pytest.mark.usefixtures("limits")
def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TRUE.encode())))
    assert checker.main(["-"]) == 0
    assert checker.main(["absent"]) == 8


@pytest.mark.parametrize("hard", [resource.RLIM_INFINITY, 40])
def test_limits_are_set_and_not_raised(limits: Any, hard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (hard, hard))
    monkeypatch.setattr(checker.time, "process_time", lambda: 7.9)
    checker.limit_process(30)
    processor, memory = (37, 42), (2**32, 2**32)
    wanted = [processor, memory] if hard == resource.RLIM_INFINITY else [(37, 40), (40, 40)]
    assert limits == list(zip((resource.RLIMIT_CPU, resource.RLIMIT_AS), wanted, strict=True))


def test_at_the_limit_it_names_a_larger_one(limits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Any, ...]] = []
    monkeypatch.setattr(checker.os, "write", lambda *arguments: written.append(arguments))
    monkeypatch.setattr(checker.os, "_exit", lambda code: written.append((code,)))
    checker.limit_process(30)
    handler: Any = signal.getsignal(signal.SIGXCPU)
    handler(signal.SIGXCPU, None)
    (stream, text), (code,) = written
    assert (stream, code) == (1, 5)
    assert b"within 30 seconds" in text
    assert b"--seconds 300." in text
    assert limits


@pytest.mark.usefixtures("limits")
def test_nobody_reads_the_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The exit code still is the outcome, and standard output, not the error output, is redirected."""
    path, redirected = tmp_path / "document", []

    def closed(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    path.write_text(FALSE)
    monkeypatch.setitem(vars(checker), "print", closed)
    monkeypatch.setattr(checker.os, "dup2", lambda _, to: redirected.append(to))
    assert checker.main([str(path)]) == 7
    assert redirected == [1]
