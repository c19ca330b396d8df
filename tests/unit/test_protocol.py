"""Output of runs: values are checked, each failure has an error class, and truncated output gives only complete values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from m2bridge.engine.base import EngineInfo, Outcome, Run
from m2bridge.errors import (
    CrashError,
    EngineError,
    LimitError,
    MemoryLimitError,
    OutputError,
    OutputLimitError,
    ScriptError,
    TimeLimitError,
)
from m2bridge.limits import Limits
from m2bridge.protocol import parse, read, step_of
from m2bridge.scripts import Script

GOOD = """\
@m2b-step network
@m2b ambient_dim 40
something that a package prints
@m2b output ["1","-15999/2"]
@m2b-step closure \N{GREEK SMALL LETTER ALPHA}
@m2b codim 12
@m2b on_variety [true,false,null]
@m2b components [[4,3,["z0*z4-z1*z3"]],[3,4,[]]]
@m2b nothing null
@m2b-end 6
"""
VALUES = {
    "ambient_dim": 40,
    "output": ["1", "-15999/2"],
    "codim": 12,
    "on_variety": [True, False, None],
    "components": [[4, 3, ["z0*z4-z1*z3"]], [3, 4, []]],
    "nothing": None,
}


def a_run(stdout: str, outcome: Outcome = Outcome.FINISHED, **fields: Any) -> Run:
    return Run(
        script=Script(name="question", text="-- nothing\n"),
        engine=EngineInfo(version="1.21", origin="replay"),
        outcome=outcome,
        stdout=stdout,
        stderr=fields.pop("stderr", ""),
        seconds=2.5,
        limits=Limits(wall_seconds=2.0, memory_bytes=1000, output_bytes=77),
        **fields,
    )


def test_a_good_transcript() -> None:
    values = read(a_run(GOOD))
    assert dict(values) == VALUES
    assert values.complete
    assert len(values) == 6
    assert "codim" in values
    assert "degree" not in values
    assert values.get("degree") is None
    assert values.integer("codim") == 12
    assert values.strings("output") == ("1", "-15999/2")


def test_truncated_output_gives_only_complete_values() -> None:
    """Cut after every character: what remains is a prefix of the values, and complete only when nothing is missing."""
    entries = list(VALUES.items())
    for length in range(len(GOOD)):
        values = parse(a_run(GOOD[:length]))
        assert list(values.items()) == entries[: len(values)]
        assert not values.complete
        with pytest.raises(OutputError, match="truncated"):
            read(a_run(GOOD[:length]))
    assert parse(a_run(GOOD)).complete


def test_truncation_at_every_byte() -> None:
    """A cut inside a character arrives as a replacement character; it must not end a line or a value."""
    for length in range(len(GOOD.encode())):
        values = parse(a_run(GOOD.encode()[:length].decode(errors="replace")))
        assert list(values.items()) == list(VALUES.items())[: len(values)]
        assert not values.complete


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.FINISHED])
def test_a_run_that_did_not_finish_is_an_error_even_when_its_output_is_whole(outcome: Outcome) -> None:
    with pytest.raises(EngineError):
        read(a_run(GOOD, outcome))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("@m2b a 1\n@m2b a 1\n@m2b-end 2\n", "line 2 .*'a'"),
        ("@m2b a 1\n@m2b-end 2\n", "emitted 2 values"),
        ("@m2b a 1\n@m2b-end 0\n", "emitted 0 values"),
        ("@m2b-end 0\n@m2b a 1\n", "line 2 follows"),
        ("@m2b-end 0\n@m2b-end 0\n", "line 2 follows"),
        ("@m2b-end 0\n@m2b-step more\n", "line 2 follows"),
        ("@m2b-end 0\n@m2b a", "end line"),
        ("@m2b-end\n", "malformed"),
        ("@m2b-end -1\n", "malformed"),
        ("@m2b-end 1 \n", "malformed"),
        ("@m2b-end 1.0\n", "malformed"),
        ("@m2b-end \N{ARABIC-INDIC DIGIT ZERO}\n", "malformed"),
        ("@m2b-end 0000000000\n", "malformed"),
        ("@m2b\n", "malformed"),
        ("@m2b a\n", "malformed"),
        ("@m2b A 1\n", "malformed"),
        ("@m2b 1a 1\n", "malformed"),
        ("@m2b a-b 1\n", "malformed"),
        ("@m2b  a 1\n", "malformed"),
        ("@m2bx a 1\n", "malformed"),
        ("@m2b-probe 1.21\n", "malformed"),
        ("@m2b \N{CYRILLIC SMALL LETTER A} 1\n", "malformed"),
    ],
)
def test_malformed_lines(lines: str, complaint: str) -> None:
    with pytest.raises(OutputError, match=complaint) as caught:
        parse(a_run(lines))
    assert caught.value.run.stdout == lines
    assert caught.value.line_number in (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "1.0", "1e3", "-0.0", ".333333333333333", "NaN", "Infinity", "-Infinity", "nan", "1/3", "+1", "0x10", "01", "1_000",
        "{}", '{"a":1}', "[{}]", "[1,]", "[1 2]", "[", "]", "1 2", "", " ", "x", "'a'", '"a', '"\t"', "true false", "True",
        "None", "[1.5]", "[[NaN]]", "[" * 18 + "]" * 18, "[" * 100_000, "[" * 100_000 + "]" * 100_000, "9" * 5000,
        '"\\ud800"', '["\\udfff"]', '"\\x41"', "\N{ARABIC-INDIC DIGIT ONE}",
    ],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
def test_inexact_values_are_refused(text: str) -> None:
    with pytest.raises(OutputError, match="exact") as caught:
        parse(a_run(f"@m2b good 1\n@m2b bad {text}\n@m2b-end 2\n"))
    assert caught.value.line_number == 2
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("-1", -1), ("9" * 4000, int("9" * 4000)), ("[" * 17 + "]" * 17, None), ('"a \\"b\\" \\\\"', 'a "b" \\'),
        ('"@m2b codim 5"', "@m2b codim 5"), ("[]", []), ("true", True), ("null", None),
    ],
    ids=lambda x: ascii(x)[:20],
)  # fmt: skip
def test_exact_values(text: str, value: object) -> None:
    found = read(a_run(f"@m2b x {text}\n@m2b-end 1\n"))["x"]
    if value is None and text != "null":
        assert isinstance(found, list)
    else:
        assert found == value
        assert type(found) is type(value)


def test_a_tag_that_was_not_emitted() -> None:
    values = read(a_run("@m2b-end 0\n"))
    with pytest.raises(OutputError, match=r"question .*'codim'") as caught:
        values.integer("codim")
    assert caught.value.run is values.run


@pytest.mark.parametrize("text", ["true", '"1"', "[1]", "null"])
def test_integer_is_an_integer(text: str) -> None:
    with pytest.raises(OutputError, match=r"x .*integer"):
        read(a_run(f"@m2b x {text}\n@m2b-end 1\n")).integer("x")


@pytest.mark.parametrize("text", ["1", "[true]", '["1"]', "[[1]]", "[1,null]", '"12"'])
def test_integers_are_integers(text: str) -> None:
    with pytest.raises(OutputError, match=r"x .*integers"):
        read(a_run(f"@m2b x {text}\n@m2b-end 1\n")).integers("x")


@pytest.mark.parametrize("text", ["1", "[1]", '"ab"', '["a",null]', '[["a"]]'])
def test_strings_are_strings(text: str) -> None:
    with pytest.raises(OutputError, match=r"x .*strings"):
        read(a_run(f"@m2b x {text}\n@m2b-end 1\n")).strings("x")


def test_steps() -> None:
    assert step_of("@m2b-step tangent spaces") == "tangent spaces"
    for line in ("@m2b step 1", "x @m2b-step a", "@m2b-step", ""):
        assert step_of(line) is None


@pytest.mark.parametrize(
    ("outcome", "kind", "fields", "says"),
    [
        (Outcome.TIMED_OUT, TimeLimitError, {"seconds": 2.5}, "--timeout"),
        (Outcome.OUT_OF_MEMORY, MemoryLimitError, {"bytes": 1000}, "--memory"),
        (Outcome.TOO_MUCH_OUTPUT, OutputLimitError, {"bytes": 77}, "77 bytes"),
    ],
)
@pytest.mark.parametrize(
    "stdout", ["@m2b codim 1\n@m2b degree 2", "@m2b codim 1\n@m2b degree 3\n@m2b-end 2\n"]
)
def test_limits_keep_what_was_found(
    outcome: Outcome, kind: type[LimitError], fields: dict[str, object], says: str, stdout: str
) -> None:
    with pytest.raises(LimitError, match=says) as caught:
        read(a_run(stdout, outcome))
    assert type(caught.value) is kind
    assert {name: caught.value.fields[name] for name in fields} == fields
    assert caught.value.values["codim"] == 1
    assert caught.value.exit_code == 5
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.run) == (kind, str(caught.value), caught.value.run)
    assert dict(again.values) == dict(caught.value.values)


def test_a_limit_with_damaged_output_has_no_values() -> None:
    with pytest.raises(TimeLimitError) as caught:
        read(a_run("@m2b codim 1.5\n", Outcome.TIMED_OUT))
    assert caught.value.values is None


def test_crash() -> None:
    with pytest.raises(CrashError, match=r"signal 11 .*question") as caught:
        read(a_run("@m2b codim 1\n", Outcome.CRASHED, signal=11))
    assert caught.value.signal == 11
    assert not isinstance(caught.value, LimitError)


M2_ERROR = """\
--warning: something unimportant
script.m2:33:12:(3):[1]: error: no method for binary operator * applied to objects:
--            V (of class Symbol)
"""


def test_script_error_has_a_position() -> None:
    with pytest.raises(ScriptError) as caught:
        read(a_run("", Outcome.SCRIPT_ERROR, stderr=M2_ERROR, exit_status=1))
    error = caught.value
    assert (error.file, error.line, error.column) == ("script.m2", 33, 12)
    assert error.error == "no method for binary operator * applied to objects:"
    assert "line 33, column 12" in str(error)


RAISED_ELSEWHERE = """\
question.m2:3:1:(3):[7]: warning: something unimportant
/usr/share/Macaulay2/Core/robust.m2:102:26:(1):[8]: error: no method for adjacent objects:
--            nonsense (of class Symbol)
--    SPACE   3 (of class ZZ)
question.m2:25:11:(3):[7]: --back trace--
Macaulay2/Core/startup.m2.in:66:17:(0):[7]: --back trace--
question.m2:9:1:(3):[7]: --back trace--
"""
UNMATCHED = """\
question.m2:24:1:(3):[7]: error: expected "]"
question.m2:22:11:(3):[7]: error:  ... to match this
"""


@pytest.mark.parametrize(
    "message",
    [
        "recursion limit of 300 exceeded",
        "alarm occurred",
        "monomial exponent overflow: pos int32_t + pos int32_t, packed 4",
    ],
)
def test_limits_of_macaulay2_are_limits(message: str) -> None:
    stderr = f"question.m2:1:6:(3):[301]: error: {message}\nquestion.m2:1:6:(3):[300]: --back trace--\n"
    with pytest.raises(LimitError, match=message[:20]) as caught:
        read(a_run("@m2b codim 1\n", Outcome.SCRIPT_ERROR, stderr=stderr, exit_status=1))
    assert (caught.value.exit_code, dict(caught.value.values)) == (5, {"codim": 1})


def test_an_error_raised_elsewhere_is_placed_in_the_script() -> None:
    with pytest.raises(ScriptError) as caught:
        read(a_run("", Outcome.SCRIPT_ERROR, stderr=RAISED_ELSEWHERE, exit_status=1))
    error = caught.value
    assert (error.file, error.line, error.column) == ("question.m2", 25, 11)
    assert "robust.m2" in str(error)
    assert "nonsense (of class Symbol) SPACE 3 (of class ZZ)" in str(error)


def test_a_bracket_that_is_not_closed_is_where_the_error_is() -> None:
    with pytest.raises(ScriptError, match='"]"') as caught:
        read(a_run("", Outcome.SCRIPT_ERROR, stderr=UNMATCHED, exit_status=1))
    assert (caught.value.line, caught.value.column) == (22, 11)


@pytest.mark.parametrize("tag", ["I", "1a", "a-b"])
def test_a_bad_tag_is_an_error_that_states_the_rule(tag: str) -> None:
    with pytest.raises(OutputError, match="tag"):
        parse(a_run(f"@m2b {tag} 1\n"))


def test_output_without_an_end_names_what_ends_it() -> None:
    with pytest.raises(OutputError, match=r"emitEnd\(\)"):
        read(a_run("@m2b a 1\n"))


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("", "message"),
        ("first\nlast words\n", "last words"),
        ("\n\n", "message"),
    ],
)
def test_script_error_without_a_place(stderr: str, says: str) -> None:
    with pytest.raises(ScriptError, match=says) as caught:
        read(a_run("", Outcome.SCRIPT_ERROR, stderr=stderr, exit_status=3))
    assert (caught.value.file, caught.value.line, caught.value.column) == (None, None, None)
    assert "status 3" in str(caught.value)


def test_each_outcome_has_an_error_class() -> None:
    kinds = set()
    for outcome in Outcome:
        try:
            read(a_run("", outcome))
        except EngineError as error:
            kinds.add(type(error))
    assert len(kinds) == len(Outcome) == 6
