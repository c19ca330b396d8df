"""Whatever text a process prints, the protocol gives exact values or an OutputError, never anything else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from m2bridge.engine.base import EngineInfo, Outcome, Run
from m2bridge.errors import EngineError, OutputError
from m2bridge.limits import Limits
from m2bridge.protocol import Values, parse, read
from m2bridge.scripts import Script

pieces = st.sampled_from(
    ["@m2b", "@m2b ", "@m2b-end ", "@m2b-step ", "a", "codim", " ", "\n", "\r", "\v", "\x85", "\u2028", "1", "0", "2", ".5",
     "[", "]", ",", '"', "\\", "\\ud800", "{", "}", ":", "null", "true", "NaN", "-", "e9", "\0", "\ufffd"]
)  # fmt: skip
hostile = st.lists(pieces | st.text(max_size=3), max_size=40).map("".join)
tags = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
plain = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc")), max_size=10)
scalars = st.none() | st.booleans() | st.integers() | plain
exact = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def a_run(stdout: str, outcome: Outcome = Outcome.FINISHED) -> Run:
    return Run(
        script=Script(name="s", text=""),
        engine=EngineInfo(version="1.21", origin="replay"),
        outcome=outcome,
        stdout=stdout,
        stderr="",
        seconds=0.0,
        limits=Limits(),
    )


def is_exact(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(is_exact, value))
    if isinstance(value, str):
        value.encode()  # can be written to a file
        return True
    return value is None or type(value) in (int, bool)


@given(st.text() | hostile)
def test_arbitrary_text_gives_exact_values_or_an_output_error(text: str) -> None:
    try:
        values = parse(a_run(text))
    except OutputError:
        return
    assert isinstance(values, Values)
    assert all(map(is_exact, values.values()))


@given(st.text() | hostile, st.sampled_from(list(Outcome)))
def test_reading_arbitrary_text_gives_complete_values_or_an_engine_error(text: str, outcome: Outcome) -> None:
    try:
        values = read(a_run(text, outcome))
    except EngineError:
        return
    assert values.complete
    assert outcome is Outcome.FINISHED


@given(st.dictionaries(tags, exact, max_size=5), st.data())
def test_emitted_values_are_read_and_a_prefix_gives_no_wrong_value(
    entries: dict[str, Any], data: Any
) -> None:
    lines = [f"@m2b {tag} {json.dumps(value, ensure_ascii=False)}\n" for tag, value in entries.items()]
    text = "".join(lines) + f"@m2b-end {len(entries)}\n"
    assert dict(read(a_run(text))) == entries
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    values = parse(a_run(cut))
    assert not values.complete
    assert list(values.items()) == list(entries.items())[: len(values)]


@given(st.dictionaries(tags, exact, min_size=1, max_size=5), st.data())
def test_a_lost_or_repeated_line_is_noticed(entries: dict[str, Any], data: Any) -> None:
    lines = [f"@m2b {tag} {json.dumps(value)}\n" for tag, value in entries.items()]
    end = f"@m2b-end {len(entries)}\n"
    index = data.draw(st.integers(0, len(lines) - 1))
    for damaged in (lines[:index] + lines[index + 1 :], [*lines, lines[index]]):
        try:
            read(a_run("".join(damaged) + end))
        except OutputError:
            continue
        raise AssertionError("a damaged transcript was accepted")
