"""What a user types never runs: a corpus of hostile values through the only door into a script."""

from __future__ import annotations

import json

import pytest

from m2bridge.engine import Engine, Outcome
from m2bridge.errors import InputError
from m2bridge.limits import Limits
from m2bridge.literals import assignment, literal
from m2bridge.scripts import Script, declared_parameters, render, template_directory, template_names

RAN = "RAN42"
"""What a shell prints if it is ever given the text; the kernel may keep it from leaving a file."""

PRINTABLE = [
    '"; run "echo RAN$((40+2))"; "',
    '\\"; run \\"echo RAN$((40+2))\\"; \\"',
    '\\\\"; run "echo RAN$((40+2))"; --',
    'x" | get "!echo RAN$((40+2))" | "',
    "///; run ///echo RAN$((40+2))///; ///",
    '" -* comment *- ; run "echo RAN$((40+2))"; -- ',
    "-- a comment",
    "-* never closed",
    '"); exit 0; ("',
    'openOut "canary" << "x" << close',
    "$(echo RAN$((40+2)))`echo RAN$((40+2))`; echo RAN$((40+2))",
    '@{ value }@ {{ 7*7 }} <%% set x = 1 %%> --% include "_emit.m2.j2"',
    "\\",
    '"',
    "\\u0022; exit 1",
    "%s%n{0}{x}",
    '"' * 5000,
    "a" * 10_000,
]
REFUSED = [
    'x\n"; run "echo RAN$((40+2))"; "',
    'x\r"; run "echo RAN$((40+2))"',
    "x\x00y",
    "x\x1b]0;y\x07",
    "“; run ”echo RAN$((40+2))“; ”",
    "＂; run ＂echo RAN$((40+2))＂",
    "\u2028run",
    "\u202e;nur",
    "é",
    "\ud800",
    "a" * 2**20,
    1.5,
    float("nan"),
    1j,
    b"run",
    {"run": 1},
    {1, 2},
    object(),
]
NAMES = ["x;run", "x y", "x\n", "", "1x", "x'", 'x"', "ｘ", "x--", 'run "echo RAN$((40+2))"', "a" * 65]


@pytest.mark.parametrize("number", range(len(PRINTABLE)))
def test_a_quoted_string_is_unchanged(engine: Engine, number: int) -> None:
    """Each string is printed unchanged, and none of its text is executed: no other output, no early end."""
    value = PRINTABLE[number]
    show = '<< concatenate apply(ascii userText, n -> toString n | " ") << endl << "end" << endl;'
    text = f"{assignment('userText', value)}\n{show}"
    run = engine.run(Script(name="injection", text=text), Limits(wall_seconds=300))
    assert run.outcome is Outcome.FINISHED, run.stderr[:300]
    codes, end, rest = run.stdout.split("\n")
    assert bytes(int(code) for code in codes.split()).decode() == value
    assert (end, rest) == ("end", "")


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_strings_that_cannot_be_quoted_are_rejected(number: int) -> None:
    for value in (REFUSED[number], [REFUSED[number]], ((1, REFUSED[number]),)):
        with pytest.raises(InputError):
            literal(value)


@pytest.mark.parametrize("name", NAMES)
def test_only_identifiers_are_accepted_as_names(name: str) -> None:
    with pytest.raises(InputError):
        assignment(name, 1)


def test_every_template_rejects_undeclared_parameters() -> None:
    for template in template_names():
        for name in ('x = 1; run "touch canary"', "run", "load"):
            with pytest.raises(InputError):
                render(template, {name: 1})


def test_hostile_strings_are_not_executed_in_any_template(engine: Engine) -> None:
    """A hostile string in place of any parameter gives an error or an answer, and is not executed."""
    hostile = PRINTABLE[0]
    for template in template_names():
        source = (template_directory() / f"{template}.m2.j2").read_text()
        values = dict.fromkeys(declared_parameters(source), hostile)
        script = render(template, values)
        assert literal(hostile) in script.text
        run = engine.run(script, Limits(wall_seconds=300))
        assert RAN not in run.stdout + run.stderr, template


def test_unquoted_text_is_executed(engine: Engine) -> None:
    """Control experiment: without quotes the same text is executed, so the other tests can fail."""
    run = engine.run(Script(name="control", text='run "echo RAN$((40+2))";'), Limits(wall_seconds=300))
    assert run.stdout == f"{RAN}\n"


def test_script_names_are_not_executed(engine: Engine) -> None:
    for name in ('"; run "echo bad"; "', "../../etc/passwd", "a b", "", "ü"):
        run = engine.run(Script(name=name, text='<< "good" << endl;'), Limits(wall_seconds=300))
        assert run.stdout == "good\n", json.dumps(name)
